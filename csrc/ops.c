#include "ops.h"

#include <string.h>

#include "transfer.h"

static size_t blocks_for(size_t count, int a_block) {
    return (count + (size_t)a_block - 1) / (size_t)a_block;
}

gk_status gk_operation_infer(gk_call *call, const gk_operation *operation, const gk_array *operands,
                             gk_array *result) {
    memset(result, 0, sizeof *result);
    if (operation->operand_count == 2 && operands[0].dtype != operands[1].dtype)
        return gk_fail(&call->error, GK_TYPE_ERROR,
                       "%s: operands of different dtypes, %s and %s; convert one with .astype(...)",
                       operation->name, gk_dtype_name(operands[0].dtype),
                       gk_dtype_name(operands[1].dtype));
    gk_status status = operation->infer(call, operands, result);
    if (status != GK_OK)
        return status;
    if (!gk_is_addressable(result))
        return gk_fail(
            &call->error, GK_MEMORY_ERROR,
            "%s: a result of shape %s and dtype %s has more bytes than an address counts",
            operation->name, gk_shape_text(result).text, gk_dtype_name(result->dtype));
    gk_make_contiguous(result);
    if (call->variant)
        return gk_row_named(operation->name, call->variant, operands[0].dtype, call->backend,
                            &call->wanted, &call->error);
    const gk_row *row;
    return gk_call_choose(call, operands[0].dtype, 0, &row);
}

gk_status gk_operation_run(gk_call *call, const gk_operation *operation, const gk_array *operands,
                           const gk_array *result) {
    gk_array staged[GK_MAX_OPERANDS], staged_result;
    gk_status status = GK_OK;
    for (int i = 0; i < operation->operand_count && status == GK_OK; i++)
        status = gk_stage_operand(call, &operands[i],
                                  operation->elementwise ? result : &operands[i], &staged[i]);
    if (status == GK_OK)
        status = gk_stage_result(call, result, staged, operation->operand_count,
                                 operation->elementwise, &staged_result);
    if (status == GK_OK)
        status = operation->run(call, staged, &staged_result);
    if (status == GK_OK)
        status = gk_deliver_result(call, &staged_result, result);
    return status;
}

/* add ------------------------------------------------------------------------------------------ */

static gk_status infer_broadcast(gk_call *call, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0], *b = &operands[1];
    result->dtype = a->dtype;
    result->ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int i = 1; i <= result->ndim; i++) {
        int64_t of_a = i <= a->ndim ? a->shape[a->ndim - i] : 1;
        int64_t of_b = i <= b->ndim ? b->shape[b->ndim - i] : 1;
        if (of_a != of_b && of_a != 1 && of_b != 1)
            return gk_fail(&call->error, GK_VALUE_ERROR,
                           "%s: operands could not be broadcast together with shapes %s %s",
                           call->operation, gk_short_shape_text(a).text,
                           gk_short_shape_text(b).text);
        result->shape[result->ndim - i] = of_a == 1 ? of_b : of_a;
    }
    return GK_OK;
}

static gk_status run_elementwise(gk_call *call, const gk_array *operands, gk_array *result) {
    void *a = operands[0].data, *b = operands[1].data, *out = result->data;
    size_t count = gk_count(result);
    const gk_row *row;
    gk_status status =
        gk_call_choose(call, result->dtype, (uintptr_t)a | (uintptr_t)b | (uintptr_t)out, &row);
    if (status != GK_OK)
        return status;
    void *arguments[] = {&out, &a, &b, &count};
    return gk_call_launch(call, row, blocks_for(count, row->tile_columns), arguments);
}

const gk_operation gk_op_add = {"add", 2, true, infer_broadcast, run_elementwise};

/* sum ------------------------------------------------------------------------------------------ */

/* What a sum is carried in, from block to block. */
static gk_dtype partial_dtype(gk_dtype dtype) {
    switch (dtype) {
    case GK_float16:
    case GK_bfloat16:
        return GK_float32;
    case GK_int32:
        return GK_int64;
    default:
        return dtype;
    }
}

static gk_status infer_sum(gk_call *call, const gk_array *operands, gk_array *result) {
    (void)call;
    result->dtype = operands[0].dtype == GK_int32 ? GK_int64 : operands[0].dtype;
    return GK_OK;
}

static gk_status run_sum(gk_call *call, const gk_array *operands, gk_array *result) {
    void *a = operands[0].data, *partials = NULL;
    size_t count = gk_count(&operands[0]);
    const gk_row *row, *finish;
    if (count == 0)
        return gk_call_zero(call, result->data, gk_bytes(result));
    gk_status status = gk_call_choose(call, operands[0].dtype, (uintptr_t)a, &row);
    if (status == GK_OK)
        status = gk_row_chosen("sum_finish", result->dtype, call->backend, 0, NULL, &finish,
                               &call->error);
    if (status != GK_OK)
        return status;

    size_t blocks = blocks_for(count, row->tile_columns);
    size_t partial_count = row->accumulates ? 1 : blocks;
    size_t partial_bytes = partial_count * gk_dtype_size(partial_dtype(operands[0].dtype));
    status = gk_call_temporary(call, partial_bytes, &partials);
    if (status == GK_OK && row->accumulates)
        status = gk_call_zero(call, partials, partial_bytes);
    void *arguments[] = {&partials, &a, &count};
    if (status == GK_OK)
        status = gk_call_launch(call, row, blocks, arguments);
    void *finish_arguments[] = {&result->data, &partials, &partial_count};
    return status == GK_OK ? gk_call_launch(call, finish, 1, finish_arguments) : status;
}

const gk_operation gk_op_sum = {"sum", 1, false, infer_sum, run_sum};

/* matmul --------------------------------------------------------------------------------------- */

/* The sizes of a product; a 1-D operand is a row on the left and a column on the right. */
static gk_gemm product_sizes(const gk_array *a, const gk_array *b) {
    return (gk_gemm){
        .m = a->ndim == 2 ? a->shape[0] : 1,
        .k = a->shape[a->ndim - 1],
        .n = b->ndim == 2 ? b->shape[1] : 1,
    };
}

static gk_status infer_matmul(gk_call *call, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0], *b = &operands[1];
    for (int i = 0; i < 2; i++) {
        if (operands[i].ndim == 0)
            return gk_fail(&call->error, GK_VALUE_ERROR,
                           "matmul: Input operand %d does not have enough dimensions (has 0, "
                           "gufunc core with signature (n?,k),(k,m?)->(n?,m?) requires 1)",
                           i);
        if (operands[i].ndim > 2)
            return gk_fail(&call->error, GK_VALUE_ERROR,
                           "matmul: operand %d has shape %s; 1-D and 2-D arrays are supported, "
                           "stacks of matrices are not",
                           i, gk_shape_text(&operands[i]).text);
    }
    int64_t inner = b->shape[0];
    gk_gemm sizes = product_sizes(a, b);
    if (inner != sizes.k)
        return gk_fail(&call->error, GK_VALUE_ERROR,
                       "matmul: Input operand 1 has a mismatch in its core dimension 0, with "
                       "gufunc signature (n?,k),(k,m?)->(n?,m?) (size %lld is different from %lld)",
                       (long long)inner, (long long)sizes.k);
    result->dtype = a->dtype;
    if (a->ndim == 2)
        result->shape[result->ndim++] = sizes.m;
    if (b->ndim == 2)
        result->shape[result->ndim++] = sizes.n;
    return GK_OK;
}

static gk_status run_matmul(gk_call *call, const gk_array *operands, gk_array *result) {
    gk_gemm gemm = product_sizes(&operands[0], &operands[1]);
    const gk_row *row;
    if (gemm.k == 0)
        return gk_call_zero(call, result->data, gk_bytes(result));
    gk_status status = gk_call_choose(call, result->dtype, 0, &row);
    if (status != GK_OK || gk_count(result) == 0)
        return status;
    gemm.dtype = (int)result->dtype;
    gemm.a = operands[0].data;
    gemm.b = operands[1].data;
    gemm.c = result->data;
    if (!row->symbol)
        return gk_call_gemm(call, row, gemm);
    size_t m = (size_t)gemm.m, n = (size_t)gemm.n, k = (size_t)gemm.k;
    void *arguments[] = {&gemm.c, &gemm.a, &gemm.b, &m, &n, &k};
    size_t tiles = blocks_for(m, row->tile_rows) * blocks_for(n, row->tile_columns);
    return gk_call_launch(call, row, tiles, arguments);
}

const gk_operation gk_op_matmul = {"matmul", 2, false, infer_matmul, run_matmul};

/* transpose ------------------------------------------------------------------------------------ */

static gk_status infer_transpose(gk_call *call, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0];
    if (a->ndim > 2)
        return gk_fail(&call->error, GK_VALUE_ERROR,
                       "transpose: the array has shape %s; up to 2 dimensions are supported",
                       gk_shape_text(a).text);
    result->dtype = a->dtype;
    result->ndim = a->ndim;
    for (int i = 0; i < a->ndim; i++)
        result->shape[i] = a->shape[a->ndim - 1 - i];
    return GK_OK;
}

static gk_status run_transpose(gk_call *call, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0];
    if (a->ndim < 2)
        return gk_copy_strided(call, result, a);
    size_t rows = (size_t)a->shape[0], columns = (size_t)a->shape[1];
    const gk_row *row;
    gk_status status = gk_call_choose(call, a->dtype, 0, &row);
    if (status != GK_OK)
        return status;
    void *from = a->data;
    void *arguments[] = {&result->data, &from, &rows, &columns};
    size_t tiles = blocks_for(rows, row->tile_rows) * blocks_for(columns, row->tile_columns);
    return gk_call_launch(call, row, tiles, arguments);
}

const gk_operation gk_op_transpose = {"transpose", 1, false, infer_transpose, run_transpose};
