/* The reductions, over all elements or some axes: on the device in one launch; from the host chunk
   by chunk as it comes in, or by panels where it does not fit in device memory. */
#include <stddef.h>
#include <string.h>

#include "engine/nest.h"
#include "engine/transfer.h"
#include "ops/operation.h"
#include "ops/reduce_docs.h"
#include "ops/reduce_parts.h"
#include "ops/reduce_run.h"

/* what each one is ------------------------------------------------------------------------------
 */

/* What a caller asks for. */
typedef struct request {
    uint64_t axes; /* bit i: axis i is reduced */
    gk_wanted_dtype dtype;
    bool keepdims;
} request;

static const gk_reduction_operation *reduction_of(const gk_operation *operation) {
    return (const gk_reduction_operation *)operation;
}

/* All of them where there is nothing to ask for: dot. */
static uint64_t axes_of(const gk_call *call) {
    const request *asked = call->parameters;
    return asked ? asked->axes : ~(uint64_t)0;
}

/* Whether a sum in `dtype` is what the kernels can carry it in; never narrower than the elements.
 */
static bool is_offered(gk_result_rule rule, gk_dtype of, gk_dtype dtype) {
    if (dtype == gk_default_result(rule, of))
        return true;
    if (gk_is_half(of) && dtype == GK_float32)
        return true;
    if (dtype == GK_float64)
        return rule == GK_OF_SUM || (rule == GK_OF_MEAN && gk_is_float(of));
    return rule != GK_OF_MEAN && !gk_is_float(of) && !gk_is_float(dtype) && dtype != GK_boolean;
}

static gk_status refuse_dtype(gk_call *call, gk_result_rule rule, gk_dtype of, gk_dtype wanted) {
    gk_list offered = {.text = ""};
    for (int i = 0; i < GK_DTYPE_COUNT; i++)
        if (is_offered(rule, of, (gk_dtype)i))
            gk_list_add(&offered, gk_dtype_name((gk_dtype)i));
    return gk_fail(&call->error, GK_TYPE_ERROR,
                   "%s: dtype %s is not offered for an array of %s, but %s; convert the array",
                   call->operation, gk_dtype_name(wanted), gk_dtype_name(of), offered.text);
}

/* shapes ----------------------------------------------------------------------------------------
 */

static void result_shape(const request *asked, const gk_array *a, gk_array *result) {
    for (int i = 0; i < a->ndim; i++) {
        bool reduced = gk_is_reduced(asked->axes, i);
        if (!reduced || asked->keepdims)
            result->shape[result->ndim++] = reduced ? 1 : a->shape[i];
    }
}

/* A variant that adds up whole arrays only, where that is not all there is to do. */
static gk_status check_variant(const gk_operation *operation, gk_call *call, const gk_array *a,
                               const gk_array *result) {
    const gk_row *row;
    if (!call->variant)
        return GK_OK;
    gk_status status =
        gk_row_named(operation->op, call->variant, a->dtype, call->backend, &row, &call->error);
    bool plain = gk_count(result) == 1 && result->dtype == gk_default_result(GK_OF_SUM, a->dtype);
    if (status == GK_OK && row->takes != GK_TAKES_REDUCTION && !plain)
        return gk_fail(&call->error, GK_VALUE_ERROR,
                       "%s: variant '%s' adds up all elements of an array, in its own dtype; leave "
                       "out variant for another axis or dtype",
                       call->operation, call->variant);
    return gk_call_blame(call, status);
}

/* Whether no element comes to any result, also where there are no results: as NumPy sees it. */
static bool reduces_nothing(const request *asked, const gk_array *a) {
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] == 0 && gk_is_reduced(asked->axes, i))
            return true;
    return false;
}

static gk_status infer_reduction(const gk_operation *operation, gk_call *call,
                                 const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0];
    const request *asked = call->parameters;
    const gk_reduction_operation *kind = reduction_of(operation);
    result->dtype = gk_default_result(kind->result, a->dtype);
    if (asked->dtype.given) {
        if (!is_offered(kind->result, a->dtype, asked->dtype.dtype))
            return refuse_dtype(call, kind->result, a->dtype, asked->dtype.dtype);
        result->dtype = asked->dtype.dtype;
    }
    result_shape(asked, a, result);
    if (kind->no_elements && reduces_nothing(asked, a))
        return gk_fail(&call->error, GK_VALUE_ERROR, "%s: %s", call->operation, kind->no_elements);
    return check_variant(operation, call, a, result);
}

/* A dot has no axes to choose from: it is over the only one. */
static gk_status infer_dot(const gk_operation *operation, gk_call *call, const gk_array *operands,
                           gk_array *result) {
    const gk_array *a = &operands[0], *b = &operands[1];
    (void)operation;
    if (a->ndim != 1 || b->ndim != 1)
        return gk_fail(&call->error, GK_VALUE_ERROR,
                       "dot: the operands have shapes %s and %s; it takes two vectors, and matmul "
                       "takes matrices",
                       gk_shape_text(a).text, gk_shape_text(b).text);
    if (a->shape[0] != b->shape[0])
        return gk_fail(&call->error, GK_VALUE_ERROR,
                       "dot: shapes %s and %s not aligned: %lld (dim 0) != %lld (dim 0)",
                       gk_short_shape_text(a).text, gk_short_shape_text(b).text,
                       (long long)a->shape[0], (long long)b->shape[0]);
    result->dtype = a->dtype;
    return GK_OK;
}

/* the ladder: partial sums a block, and a second launch that adds them ----------------------------
 */

typedef struct ladder {
    gk_call *call;
    const gk_row *row, *finish;
    size_t partial_count;
    float *partials;
} ladder;

static gk_status begin_ladder(gk_call *call, const gk_row *row, size_t count, ladder *made) {
    void *partials = NULL;
    *made = (ladder){.call = call, .row = row};
    made->partial_count = row->accumulates ? 1 : gk_blocks(count, row->tile_columns);
    const gk_wish last = {.op = GK_OP_sum_finish, .dtype = row->dtype};
    gk_status status =
        gk_call_blame(call, gk_row_chosen(&last, call->backend, &made->finish, &call->error));
    size_t bytes = made->partial_count * sizeof *made->partials;
    if (status == GK_OK)
        status = gk_call_temporary(call, bytes, &partials);
    made->partials = partials;
    return status == GK_OK && row->accumulates ? gk_call_zero(call, partials, bytes) : status;
}

/* The partial sums of elements [first, first + count), where `first` begins a block. */
static gk_status climb(const ladder *whole, gk_call *call, void *elements, size_t first,
                       size_t count) {
    size_t block = whole->row->accumulates ? 0 : first / (size_t)whole->row->tile_columns;
    float *partials = whole->partials + block;
    void *arguments[] = {&partials, &elements, &count};
    return gk_call_launch(call, whole->row, gk_blocks(count, whole->row->tile_columns), arguments);
}

static gk_status end_ladder(ladder *whole, void *result) {
    void *arguments[] = {&result, &whole->partials, &whole->partial_count};
    return gk_call_launch(whole->call, whole->finish, 1, arguments);
}

static gk_status run_ladder(gk_call *call, const gk_row *row, const gk_array *a, gk_array *result) {
    ladder whole;
    gk_status status = begin_ladder(call, row, gk_count(a), &whole);
    if (status == GK_OK)
        status = climb(&whole, call, a->data, 0, gk_count(a));
    return status == GK_OK ? end_ladder(&whole, result->data) : status;
}

static bool is_ladder(const gk_row *wanted) {
    return wanted && wanted->takes != GK_TAKES_REDUCTION;
}

static gk_status run_reduction(const gk_operation *operation, gk_call *call,
                               const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0];
    const gk_reduction_operation *kind = reduction_of(operation);
    if (gk_count(a) == 0 && kind->zero_of_nothing)
        return gk_call_zero(call, result->data, gk_bytes(result));
    if (gk_count(result) == 0)
        return GK_OK;
    if (is_ladder(call->wanted)) {
        const gk_row *row;
        gk_array run = *a;
        gk_status status = gk_is_contiguous(a) ? GK_OK : gk_pack_reduced(call, a, &run);
        if (status == GK_OK)
            status = gk_call_choose(call, operation->op, a->dtype, (uintptr_t)run.data, &row);
        return status == GK_OK ? run_ladder(call, row, &run, result) : status;
    }
    return gk_run_reduction(kind, call, axes_of(call), operands, result);
}

/* from the host, chunk by chunk ------------------------------------------------------------------
 */

static gk_status ladder_chunk(void *context, gk_stream stream, const gk_array *operands,
                              gk_array *result, size_t first, gk_error *error) {
    const ladder *whole = context;
    gk_call chunk = gk_call_part(whole->call, stream);
    (void)result;
    chunk.phases = NULL;
    gk_status status = climb(whole, &chunk, operands[0].data, first, gk_count(&operands[0]));
    gk_call_end(&chunk);
    if (status != GK_OK)
        *error = chunk.error;
    return status;
}

/* A chunk begins where a segment begins, so that a sum in chunks has the bits of the whole one. */
static gk_status reduction_chunk(void *context, gk_stream stream, const gk_array *operands,
                                 gk_array *result, size_t first, gk_error *error) {
    const gk_reducing *whole = context;
    gk_reduction how = whole->plan.how;
    gk_call chunk = gk_call_part(whole->call, stream);
    (void)result;
    chunk.phases = NULL;
    how.first = first;
    how.length = gk_count(&operands[0]);
    how.segments = gk_divided(how.length, how.segment);
    how.stage = GK_REDUCE_PARTIAL;
    gk_status status = gk_reducing_launch(whole, &chunk, &how, how.segments, operands);
    gk_call_end(&chunk);
    if (status != GK_OK)
        *error = chunk.error;
    return status;
}

static gk_flow flow_of(const gk_operation *operation, const gk_array *operands) {
    gk_flow flow = {.count = gk_count(&operands[0]), .operand_count = operation->operand_count};
    for (int i = 0; i < operation->operand_count; i++)
        flow.operands[i] = operands[i];
    return flow;
}

static gk_status flow_ladder(const gk_operation *operation, gk_call *call, const gk_array *operands,
                             void *total) {
    ladder whole;
    gk_flow flow = flow_of(operation, operands);
    gk_status status = begin_ladder(call, call->wanted, flow.count, &whole);
    flow.work = ladder_chunk;
    flow.context = &whole;
    if (status == GK_OK)
        status = gk_call_flow(call, &flow);
    return status == GK_OK ? end_ladder(&whole, total) : status;
}

static gk_reduce_plan plan_of(const gk_operation *operation, const gk_call *call,
                              const gk_array *operands) {
    return gk_plan_reduction(&operands[0], axes_of(call), operation->operand_count, (gk_joining){0},
                             atomic_load(&call->engine->vectors_limit));
}

static gk_status flow_planned(const gk_reduction_operation *kind, gk_call *call,
                              const gk_array *operands, gk_dtype result, void *total) {
    gk_flow flow = flow_of(&kind->base, operands);
    gk_reducing whole = {.call = call, .kind = kind, .plan = plan_of(&kind->base, call, operands)};
    gk_reduction *how = &whole.plan.how;
    gk_status status = gk_reducing_choose(&whole, &operands[0], result);
    gk_reducing_describe(&whole, operands[0].dtype, result);
    /* Also of a single segment: the launch that finishes it is one and the same, and needs no
       counters. */
    if (status == GK_OK)
        status = gk_call_temporary(call, how->segments * GK_REDUCE_PARTIAL_BYTES, &how->partials);
    flow.multiple = how->segment;
    flow.work = reduction_chunk;
    flow.context = &whole;
    if (status == GK_OK)
        status = gk_call_flow(call, &flow);
    how->stage = GK_REDUCE_FINISH;
    how->result = total;
    return status == GK_OK ? gk_reducing_launch(&whole, call, how, 1, operands) : status;
}

static gk_status flow_whole(const gk_operation *operation, gk_call *call, const gk_array *operands,
                            const gk_array *result) {
    void *total = NULL;
    gk_status status = gk_call_temporary(call, gk_bytes(result), &total);
    if (status == GK_OK && is_ladder(call->wanted))
        status = flow_ladder(operation, call, operands, total);
    else if (status == GK_OK)
        status = flow_planned(reduction_of(operation), call, operands, result->dtype, total);
    return status == GK_OK ? gk_call_copy_out(call, result->data, total, gk_bytes(result)) : status;
}

static gk_status flow_reduction(const gk_operation *operation, gk_call *call,
                                const gk_array *operands, const gk_array *result) {
    bool is_run =
        is_ladder(call->wanted) || plan_of(operation, call, operands).walk == GK_WALK_ROWS;
    if (gk_count(result) == 1 && is_run)
        return flow_whole(operation, call, operands, result);
    return gk_reduce_in_parts(reduction_of(operation), call, axes_of(call), &operands[0], result);
}

/* the operations --------------------------------------------------------------------------------
 */

#define NO_EXTREME(name) "zero-size array to reduction operation " #name " which has no identity"
#define NO_INDEX(name)   "attempt to get " #name " of an empty sequence"

static const char *const names[] = {"a", "b"};
static const gk_parameter of_sums[] = {{"axis", GK_AXES, offsetof(request, axes)},
                                       {"dtype", GK_DTYPE, offsetof(request, dtype)},
                                       {"out", GK_OUT, 0},
                                       {"keepdims", GK_FLAG, offsetof(request, keepdims)},
                                       {0}};
static const gk_parameter of_extremes[] = {{"axis", GK_AXES, offsetof(request, axes)},
                                           {"out", GK_OUT, 0},
                                           {"keepdims", GK_FLAG, offsetof(request, keepdims)},
                                           {0}};
static const gk_parameter of_indices[] = {{"axis", GK_AXIS, offsetof(request, axes)},
                                          {"out", GK_OUT, 0},
                                          {"keepdims", GK_FLAG, offsetof(request, keepdims)},
                                          {0}};
static const gk_parameter of_dot[] = {{"out", GK_OUT, 0}, {0}};

/* Kernels find the elements, or the operation makes one run of them itself. */
static bool takes_any(const gk_array *view, int operand) {
    (void)view, (void)operand;
    return true;
}

#define GK_REDUCTION_OP(name_, count, infer_, parameters_, bytes_, doc_, result_, ...)             \
    static const gk_reduction_operation name_##_operation = {                                      \
        .base = {.name = #name_,                                                                   \
                 .op = GK_OP_##name_,                                                              \
                 .doc = #name_ doc_,                                                               \
                 .operand_count = count,                                                           \
                 .operands = names,                                                                \
                 .parameters = parameters_,                                                        \
                 .parameter_bytes = bytes_,                                                        \
                 .infer = infer_,                                                                  \
                 .run = run_reduction,                                                             \
                 .flow = flow_reduction,                                                           \
                 .takes = count == 1 ? takes_any : NULL,                                           \
                 .mapped = true},                                                                  \
        .result = result_,                                                                         \
        __VA_ARGS__};                                                                              \
    const gk_operation *const gk_op_##name_ = &name_##_operation.base;
#define GK_OVER_AXES(name, parameters, doc, result, ...)                                           \
    GK_REDUCTION_OP(name, 1, infer_reduction, parameters, sizeof(request), doc, result, __VA_ARGS__)

GK_OVER_AXES(sum, of_sums, GK_SUM_DOC, GK_OF_SUM, .zero_of_nothing = true)
GK_OVER_AXES(mean, of_sums, GK_MEAN_DOC, GK_OF_MEAN, .last = GK_DIVIDED)
GK_OVER_AXES(prod, of_sums, GK_PROD_DOC, GK_OF_PRODUCT, .last = GK_AS_IT_IS)
GK_OVER_AXES(max, of_extremes, GK_MAX_DOC, GK_OF_OPERAND, .no_elements = NO_EXTREME(maximum))
GK_OVER_AXES(min, of_extremes, GK_MIN_DOC, GK_OF_OPERAND, .no_elements = NO_EXTREME(minimum),
             .reversed = true)
GK_OVER_AXES(norm, of_extremes, GK_NORM_DOC, GK_OF_REAL, .last = GK_SQUARE_ROOT,
             .zero_of_nothing = true)
GK_OVER_AXES(argmax, of_indices, GK_ARGMAX_DOC, GK_OF_INDEX, .no_elements = NO_INDEX(argmax))
GK_OVER_AXES(argmin, of_indices, GK_ARGMIN_DOC, GK_OF_INDEX, .no_elements = NO_INDEX(argmin),
             .reversed = true)
GK_REDUCTION_OP(dot, 2, infer_dot, of_dot, 0, GK_DOT_DOC, GK_OF_OPERAND, .zero_of_nothing = true)
