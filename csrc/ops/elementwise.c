/* The elementwise operations of cuda/elementwise.h: one way for all of them, from shapes to
 * kernels.
 */
#include <stdio.h>
#include <string.h>

#include "engine/copy.h"
#include "engine/nest.h"
#include "ops/operation.h"
#include "base/pack.h"
#include "engine/transfer.h"

static gk_status infer_broadcast(gk_call *call, const gk_array *operands, gk_array *result) {
    result->dtype = operands[0].dtype;
    for (int k = 0; k < call->operand_count; k++)
        result->ndim = operands[k].ndim > result->ndim ? operands[k].ndim : result->ndim;
    for (int i = 1; i <= result->ndim; i++) {
        int64_t *length = &result->shape[result->ndim - i];
        *length = 1;
        for (int k = 0; k < call->operand_count; k++) {
            const gk_array *operand = &operands[k];
            int64_t its = i <= operand->ndim ? operand->shape[operand->ndim - i] : 1;
            if (its != 1 && *length != 1 && its != *length) {
                gk_text shapes = {""};
                size_t used = 0;
                for (int j = 0; j < call->operand_count && used < sizeof shapes.text; j++)
                    used += (size_t)snprintf(shapes.text + used, sizeof shapes.text - used, " %s",
                                             gk_short_shape_text(&operands[j]).text);
                return gk_fail(&call->error, GK_VALUE_ERROR,
                               "%s: operands could not be broadcast together with shapes%s",
                               call->operation, shapes.text);
            }
            *length = its != 1 ? its : *length;
        }
    }
    return GK_OK;
}

/* The operands of a launch: arrays on the device in the result's shape, and numbers of the host. */
typedef struct work {
    gk_terms terms;
    gk_array views[GK_MAX_OPERANDS];
    int64_t size; /* of an element */
} work;

static bool is_number(const gk_array *operand) {
    return operand->place == GK_HOST;
}

/* What an operand is to a kernel without a layout: `repeated`, side by side, or neither. */
static bool take_plainly(work *made, int k, const gk_array *operand, const gk_array *result) {
    bool repeated = gk_count(operand) == 1;
    if (is_number(operand))
        gk_pack(&made->terms.value[k], operand, 0, 1);
    else
        made->terms.data[k] = operand->data;
    made->terms.repeated |= (uint32_t)repeated << k;
    return repeated || (gk_same_shape(operand, result) && gk_is_contiguous(operand));
}

/* contiguous ----------------------------------------------------------------------------------- */

static gk_status launch_plain(gk_call *call, const work *ready, void *out, gk_dtype dtype,
                              size_t count) {
    uintptr_t bits = (uintptr_t)out;
    for (int k = 0; k < call->operand_count; k++)
        if (!(ready->terms.repeated >> k & 1))
            bits |= (uintptr_t)ready->terms.data[k];
    const gk_row *row;
    gk_status status = gk_call_choose(call, dtype, bits, &row);
    if (status != GK_OK)
        return status;
    gk_terms terms = ready->terms;
    void *arguments[] = {&out, &terms, &count};
    return gk_call_launch(call, row, gk_blocks(count, row->tile_columns), arguments);
}

/* strided -------------------------------------------------------------------------------------- */

/* How many elements of the last axis may be taken at once: `most`, if every array walks it one by
   one or stays where it is, and nothing else stands against it; or 1. */
static int64_t vector_width(const gk_nest *nest, int64_t size, int64_t most) {
    int last = nest->ndim - 1;
    if (last < 0)
        return 1;
    uintptr_t bits = (uintptr_t)(nest->shape[last] * size);
    for (int k = 0; k < nest->arrays; k++) {
        if (k > 0 && nest->stride[k][last] == 0)
            continue;
        if (nest->stride[k][last] != size)
            return 1;
        bits |= nest->data[k];
        for (int i = 0; i < last; i++)
            bits |= (uintptr_t)nest->stride[k][i];
    }
    return bits % (uintptr_t)(most * size) == 0 ? most : 1;
}

/* The row for strided arrays: the wanted one if it is such a row and its vectors fit; else the last
   that fits of those that stand behind the plainest one. */
static gk_status choose_strided(gk_call *call, gk_dtype dtype, const gk_nest *nest, int64_t size,
                                const gk_row **row) {
    const gk_row *plain = NULL;
    gk_status status =
        gk_row_named(call->operation, "strided", dtype, call->backend, &plain, &call->error);
    if (status != GK_OK)
        return status;
    *row = plain;
    bool narrow = call->wanted == plain;
    for (const gk_row *next = plain + 1; next->strided && next->dtype == dtype && !narrow; next++)
        if (vector_width(nest, size, next->alignment / size) > 1)
            *row = next;
    call->ran = *row;
    return GK_OK;
}

typedef struct strided_launch {
    const gk_row *row;
    gk_terms terms;
} strided_launch;

static gk_status launch_piece(gk_call *call, const gk_nest *piece, const gk_layout *layout,
                              void *context) {
    strided_launch *ready = context;
    uintptr_t out = piece->data[0];
    gk_layout axes = *layout;
    int64_t width = ready->row->alignment / (int64_t)gk_dtype_size(ready->row->dtype);
    uint32_t count = (uint32_t)gk_nest_count(piece);
    for (int k = 1; k < piece->arrays; k++)
        ready->terms.data[k - 1] = (const void *)piece->data[k]; /* a number's stays NULL */
    void *arguments[] = {&out, &ready->terms, &axes, &count};
    return gk_call_launch(call, ready->row, gk_blocks(count, ready->row->tile_columns / (int)width),
                          arguments);
}

static gk_status launch_strided(gk_call *call, const work *ready, gk_nest *nest, gk_dtype dtype) {
    strided_launch launch = {.terms = ready->terms};
    gk_status status = choose_strided(call, dtype, nest, ready->size, &launch.row);
    if (status != GK_OK)
        return status;
    int last = nest->ndim - 1;
    int64_t width = launch.row->alignment / ready->size;
    launch.terms.repeated = 0;
    for (int k = 1; k < nest->arrays; k++)
        if (nest->data[k] == 0 || (last >= 0 && nest->stride[k][last] == 0))
            launch.terms.repeated |= (uint32_t)1 << (k - 1);
    if (last >= 0) { /* in units of vectors */
        nest->shape[last] /= width;
        for (int k = 0; k < nest->arrays; k++)
            nest->stride[k][last] *= width;
    }
    return gk_nest_run(call, nest, launch_piece, &launch);
}

/* the choice between them ---------------------------------------------------------------------- */

static void view_operands(gk_call *call, work *made, const gk_array *operands,
                          const gk_array *result) {
    for (int k = 0; k < call->operand_count; k++) {
        gk_broadcast_view(&operands[k], result, &made->views[k]);
        if (is_number(&operands[k])) {
            made->views[k].data = NULL;
            memset(made->views[k].strides, 0, (size_t)result->ndim * sizeof(int64_t));
        }
    }
}

/* The variant that was asked for takes contiguous arrays alone: copies of those that are not. */
static gk_status run_packed(gk_call *call, work *made, const gk_array *operands, gk_array *result) {
    gk_array packed_result;
    gk_status status = GK_OK;
    for (int k = 0; k < call->operand_count && status == GK_OK; k++) {
        gk_array packed;
        made->terms.repeated &= ~((uint32_t)1 << k);
        if (take_plainly(made, k, &operands[k], result))
            continue;
        status = gk_stage_packed(call, &made->views[k], &packed);
        made->terms.data[k] = packed.data;
    }
    if (status != GK_OK || gk_is_contiguous(result))
        return status != GK_OK
                   ? status
                   : launch_plain(call, made, result->data, result->dtype, gk_count(result));
    gk_copy_view(&packed_result, result);
    gk_make_contiguous(&packed_result);
    status = gk_call_temporary(call, gk_bytes(result), &packed_result.data);
    if (status == GK_OK)
        status = launch_plain(call, made, packed_result.data, result->dtype, gk_count(result));
    return status == GK_OK ? gk_copy_strided(call, result, &packed_result) : status;
}

static gk_status run_elementwise(gk_call *call, const gk_array *operands, gk_array *result) {
    work made;
    made.terms = (gk_terms){.repeated = 0};
    made.size = (int64_t)gk_dtype_size(result->dtype);
    bool strided = call->wanted && call->wanted->strided;
    bool plain = gk_is_contiguous(result) && !strided;
    for (int k = 0; k < call->operand_count; k++)
        plain = take_plainly(&made, k, &operands[k], result) && plain;
    size_t count = gk_count(result);
    if (count == 0)
        return GK_OK;
    if (plain)
        return launch_plain(call, &made, result->data, result->dtype, count);
    const gk_array *arrays[GK_LAYOUT_ARRAYS] = {result};
    gk_nest nest;
    view_operands(call, &made, operands, result);
    for (int k = 0; k < call->operand_count; k++)
        arrays[k + 1] = &made.views[k];
    gk_nest_make(&nest, arrays, call->operand_count + 1);
    if (strided || (!call->wanted && !gk_nest_is_run(&nest, made.size)))
        return launch_strided(call, &made, &nest, result->dtype);
    if (!gk_nest_is_run(&nest, made.size))
        return run_packed(call, &made, operands, result);
    for (int k = 0; k < call->operand_count; k++)
        if (nest.ndim > 0 && nest.stride[k + 1][0] == 0)
            made.terms.repeated |= (uint32_t)1 << k;
    return launch_plain(call, &made, result->data, result->dtype, count);
}

/* host arrays ---------------------------------------------------------------------------------- */

/* A host call cut into chunks: the numbers go to every chunk as they are. */
typedef struct chunked {
    const gk_call *call;
    const gk_array *operands;
} chunked;

/* A chunk runs as a call of its own on its lane's stream. */
static gk_status elementwise_chunk(void *context, gk_stream stream, const gk_array *operands,
                                   gk_array *result, size_t first, gk_error *error) {
    const chunked *whole = context;
    gk_call chunk = *whole->call;
    gk_array all[GK_MAX_OPERANDS];
    int arrays = 0;
    (void)first;
    chunk.stream = stream;
    chunk.phases = NULL;
    for (int k = 0; k < chunk.operand_count; k++) {
        bool number = gk_count(&whole->operands[k]) == 1;
        gk_copy_view(&all[k], number ? &whole->operands[k] : &operands[arrays++]);
    }
    gk_status status = run_elementwise(&chunk, all, result);
    if (status != GK_OK)
        *error = chunk.error;
    return status;
}

static gk_status flow_elementwise(gk_call *call, const gk_array *operands, const gk_array *result) {
    chunked whole = {call, operands};
    gk_flow flow = {.count = gk_count(result),
                    .work = elementwise_chunk,
                    .context = &whole,
                    .has_result = true,
                    .result = *result};
    for (int k = 0; k < call->operand_count; k++)
        if (gk_count(&operands[k]) != 1)
            gk_broadcast_view(&operands[k], result, &flow.operands[flow.operand_count++]);
    return gk_call_flow(call, &flow);
}

static const char *const names_1[] = {"a"};
static const char *const names_2[] = {"a", "b"};
static const char *const names_3[] = {"a", "x", "y"};

#define GK_DEFINE(name_, operands_, ...)                                                           \
    const gk_operation gk_op_##name_ = {.name = #name_,                                            \
                                        .operand_count = operands_,                                \
                                        .operands = names_##operands_,                             \
                                        .elementwise = true,                                       \
                                        .strided = true,                                           \
                                        .infer = infer_broadcast,                                  \
                                        .run = run_elementwise,                                    \
                                        .flow = flow_elementwise,                                  \
                                        .mapped = true};
GK_ELEMENTWISE(GK_DEFINE)
