/* sum: partial sums a block, then their sum; on the whole array, or chunk by chunk as it comes in.
 */
#include "ops.h"
#include "transfer.h"

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

/* A reduction under way. */
typedef struct reduction {
    gk_call *call;
    const gk_row *row, *finish;
    size_t partial_count, partial_size;
    char *partials;
} reduction;

static gk_status begin(gk_call *call, const gk_array *operand, gk_dtype result, uintptr_t address,
                       reduction *made) {
    *made = (reduction){.call = call};
    gk_status status = gk_call_choose(call, operand->dtype, address, &made->row);
    if (status == GK_OK)
        status = gk_row_chosen("sum_finish", result, call->backend, 0, NULL, &made->finish,
                               &call->error);
    if (status != GK_OK)
        return status;
    made->partial_count =
        made->row->accumulates ? 1 : gk_blocks(gk_count(operand), made->row->tile_columns);
    made->partial_size = gk_dtype_size(partial_dtype(operand->dtype));
    size_t bytes = made->partial_count * made->partial_size;
    void *partials = NULL;
    status = gk_call_temporary(call, bytes, &partials);
    made->partials = partials;
    return status == GK_OK && made->row->accumulates ? gk_call_zero(call, partials, bytes) : status;
}

/* The partial sums of elements [first, first + count), where `first` begins a block. */
static gk_status reduce(const reduction *whole, gk_call *call, void *elements, size_t first,
                        size_t count) {
    size_t block = whole->row->accumulates ? 0 : first / (size_t)whole->row->tile_columns;
    char *partials = whole->partials + block * whole->partial_size;
    void *arguments[] = {&partials, &elements, &count};
    return gk_call_launch(call, whole->row, gk_blocks(count, whole->row->tile_columns), arguments);
}

static gk_status end(reduction *whole, void *result) {
    void *arguments[] = {&result, &whole->partials, &whole->partial_count};
    return gk_call_launch(whole->call, whole->finish, 1, arguments);
}

static gk_status run_sum(gk_call *call, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0];
    reduction whole;
    if (gk_count(a) == 0)
        return gk_call_zero(call, result->data, gk_bytes(result));
    gk_status status = begin(call, a, result->dtype, (uintptr_t)a->data, &whole);
    if (status == GK_OK)
        status = reduce(&whole, call, a->data, 0, gk_count(a));
    return status == GK_OK ? end(&whole, result->data) : status;
}

static gk_status sum_chunk(void *context, gk_stream stream, const gk_array *operands,
                           gk_array *result, size_t first, gk_error *error) {
    const reduction *whole = context;
    gk_call chunk = *whole->call;
    (void)result;
    chunk.stream = stream;
    chunk.phases = NULL;
    gk_status status = reduce(whole, &chunk, operands[0].data, first, gk_count(&operands[0]));
    if (status != GK_OK)
        *error = chunk.error;
    return status;
}

static gk_status flow_sum(gk_call *call, const gk_array *operands, const gk_array *result) {
    const gk_array *a = &operands[0];
    reduction whole;
    void *total = NULL;
    gk_status status = begin(call, a, result->dtype, 0, &whole);
    if (status == GK_OK)
        status = gk_call_temporary(call, gk_bytes(result), &total);
    gk_flow flow = {.count = gk_count(a),
                    .operand_count = 1,
                    .operands = {*a},
                    .work = sum_chunk,
                    .context = &whole};
    if (status == GK_OK)
        status = gk_call_flow(call, &flow);
    if (status == GK_OK)
        status = end(&whole, total);
    return status == GK_OK ? gk_call_copy_out(call, result->data, total, gk_bytes(result)) : status;
}

static const char *const names[] = {"a"};

const gk_operation gk_op_sum = {.name = "sum",
                                .operand_count = 1,
                                .operands = names,
                                .infer = infer_sum,
                                .run = run_sum,
                                .flow = flow_sum,
                                .mapped = true};
