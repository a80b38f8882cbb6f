/* The reductions, over all elements or some axes: on the device in one launch; from the host chunk
   by chunk as it comes in, or by panels where it does not fit in device memory. */
#include "ops/reduce.h"

#include <string.h>

#include "engine/copy.h"
#include "ops/reduce_shape.h"
#include "engine/transfer.h"

/* what each one is ------------------------------------------------------------------------------
 */

/* Where a reduction's kernels stand in the table. */
typedef struct kernels {
    const char *whole, *short_rows, *columns;
} kernels;
#define KERNELS(name)                                                                              \
    { #name, #name "_short", #name "_columns" }

typedef enum result_rule { OF_SUM, OF_MEAN, OF_PRODUCT, AS_OPERAND, REAL, INDEX } result_rule;

typedef struct gk_reduction_kind {
    kernels rows;
    result_rule result;
    gk_reduce_last last;
    bool flip;
    bool zero_of_nothing;    /* else what the kernel makes of no elements */
    const char *no_elements; /* why there has to be one, in NumPy's words; NULL: there need not */
} gk_reduction_kind;

bool gk_takes_one_axis(const gk_reduction_kind *kind) {
    return kind->result == INDEX;
}

static const kernels wide = KERNELS(sum_wide);

static bool is_half(gk_dtype dtype) {
    return dtype == GK_float16 || dtype == GK_bfloat16;
}

static bool is_real(gk_dtype dtype) {
    return is_half(dtype) || dtype == GK_float32 || dtype == GK_float64;
}

static gk_dtype default_result(result_rule rule, gk_dtype dtype) {
    if (rule == INDEX)
        return GK_int64;
    if (rule == AS_OPERAND || is_real(dtype))
        return dtype;
    return rule == OF_MEAN || rule == REAL ? GK_float64 : GK_int64;
}

/* Whether a sum in `dtype` is what the kernels can carry it in; never narrower than the elements.
 */
static bool is_offered(result_rule rule, gk_dtype of, gk_dtype dtype) {
    if (dtype == default_result(rule, of))
        return true;
    if (is_half(of) && dtype == GK_float32)
        return true;
    if (dtype == GK_float64)
        return rule == OF_SUM || (rule == OF_MEAN && is_real(of));
    return rule != OF_MEAN && !is_real(of) && !is_real(dtype);
}

/* A sum in float64 of what does not add up exactly in the accumulator that it has otherwise. */
static bool is_wide(const gk_reduction_kind *kind, gk_dtype of, gk_dtype result) {
    return kind->result <= OF_MEAN && result == GK_float64 &&
           (of == GK_int64 || (is_real(of) && of != GK_float64));
}

static gk_status refuse_dtype(gk_call *call, result_rule rule, gk_dtype of) {
    char offered[256] = "";
    for (int i = 0; i < GK_DTYPE_COUNT; i++)
        if (is_offered(rule, of, (gk_dtype)i)) {
            strcat(offered, offered[0] ? ", " : "");
            strcat(offered, gk_dtype_name((gk_dtype)i));
        }
    return gk_fail(&call->error, GK_TYPE_ERROR,
                   "%s: dtype %s is not offered for an array of %s, but %s; convert the array",
                   call->operation, gk_dtype_name(call->reduction.dtype), gk_dtype_name(of),
                   offered);
}

_Static_assert((int)GK_STORED_FLOAT32 == (int)GK_float32 &&
                   (int)GK_STORED_BFLOAT16 == (int)GK_bfloat16 &&
                   (int)GK_STORED_INT32 == (int)GK_int32 && (int)GK_STORED_UINT8 == (int)GK_uint8,
               "a kernel is told the dtype of its result by gk_dtype's number");

/* shapes ----------------------------------------------------------------------------------------
 */

static void result_shape(const gk_call *call, const gk_array *a, gk_array *result) {
    for (int i = 0; i < a->ndim; i++) {
        bool reduced = gk_is_reduced(call->reduction.axes, i);
        if (!reduced || call->reduction.keepdims)
            result->shape[result->ndim++] = reduced ? 1 : a->shape[i];
    }
}

/* A variant that adds up whole arrays only, where that is not all there is to do. */
static gk_status check_variant(gk_call *call, const gk_array *a, const gk_array *result) {
    const gk_row *row;
    if (!call->variant)
        return GK_OK;
    gk_status status =
        gk_row_named(call->operation, call->variant, a->dtype, call->backend, &row, &call->error);
    bool plain = gk_count(result) == 1 && result->dtype == default_result(OF_SUM, a->dtype);
    if (status == GK_OK && !row->reduces && !plain)
        return gk_fail(&call->error, GK_VALUE_ERROR,
                       "%s: variant '%s' adds up all elements of an array, in its own dtype; leave "
                       "out variant for another axis or dtype",
                       call->operation, call->variant);
    return status;
}

static gk_status infer_reduction(gk_call *call, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0];
    const gk_reduction_kind *kind = call->reduction.kind;
    result->dtype = default_result(kind->result, a->dtype);
    if (call->reduction.has_dtype) {
        if (!is_offered(kind->result, a->dtype, call->reduction.dtype))
            return refuse_dtype(call, kind->result, a->dtype);
        result->dtype = call->reduction.dtype;
    }
    result_shape(call, a, result);
    if (kind->no_elements && gk_count(a) == 0 && gk_count(result) > 0)
        return gk_fail(&call->error, GK_VALUE_ERROR, "%s: %s", call->operation, kind->no_elements);
    return check_variant(call, a, result);
}

static gk_status infer_dot(gk_call *call, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0], *b = &operands[1];
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
    return infer_reduction(call, operands, result);
}

/* on the device ---------------------------------------------------------------------------------
 */

/* A reduction under way. */
typedef struct reduction {
    gk_call *call;
    const gk_row *row;
    gk_reduce_plan plan;
} reduction;

static gk_status choose(gk_call *call, const gk_array *a, gk_dtype result, uintptr_t address,
                        reduction *made) {
    const gk_reduction_kind *kind = call->reduction.kind;
    const kernels *from = is_wide(kind, a->dtype, result) ? &wide : &kind->rows;
    const char *const names[] = {from->whole, from->short_rows, from->columns};
    const char *op = names[made->plan.walk];
    if (op == kind->rows.whole)
        return gk_call_choose(call, a->dtype, address, &made->row);
    if (call->variant)
        return gk_row_named(op, call->variant, a->dtype, call->backend, &made->row, &call->error);
    return gk_row_chosen(op, a->dtype, call->backend, address, NULL, &made->row, &call->error);
}

/* Counters for blocks to arrive at: the stream's, or memory that has to be zeroed for the launch.
 */
static gk_status take_counters(gk_call *call, size_t count, unsigned **counters) {
    gk_status status = GK_OK;
    void *memory = NULL;
    *counters = NULL;
    if (!call->captured && count <= GK_STREAM_COUNTERS)
        status = gk_call_counters(call, counters);
    if (status != GK_OK || *counters)
        return status;
    status = gk_call_temporary(call, count * sizeof **counters, &memory);
    *counters = memory;
    return status == GK_OK ? gk_call_zero(call, memory, count * sizeof **counters) : status;
}

/* What the kernel needs beside the shape, memory for partial results included. */
static gk_status prepare(reduction *whole, const gk_array *a, gk_dtype result) {
    gk_call *call = whole->call;
    gk_reduction *how = &whole->plan.how;
    const gk_reduction_kind *kind = call->reduction.kind;
    how->stored = (int32_t)result;
    how->last = (int32_t)kind->last;
    how->flip = kind->flip;
    size_t partials = gk_plan_partials(&whole->plan);
    if (partials == 0)
        return GK_OK;
    gk_status status = gk_call_temporary(call, partials, &how->partials);
    if (status != GK_OK)
        return status;
    return take_counters(call, gk_plan_arrivals(&whole->plan, a->dtype), &how->arrivals);
}

static gk_status launch(const gk_row *row, gk_call *call, const gk_reduction *how, size_t blocks,
                        const gk_array *operands) {
    gk_reduction copy = *how;
    void *a = operands[0].data, *b = call->reduction.operands == 2 ? operands[1].data : a;
    void *arguments[] = {&copy, &a, &b};
    return gk_call_launch(call, row, blocks, arguments);
}

/* Move the kept axes in front, where they alternate with the reduced ones. */
static gk_status pack(gk_call *call, const gk_array *a, gk_array *packed) {
    gk_array moved = gk_reduced_last(a, call->reduction.axes);
    *packed = moved;
    gk_make_contiguous(packed);
    gk_status status = gk_call_temporary(call, gk_bytes(packed), &packed->data);
    return status == GK_OK ? gk_copy_strided(call, packed, &moved) : status;
}

static gk_status run_planned(gk_call *call, gk_reduce_plan plan, const gk_array *operands,
                             gk_array *result) {
    gk_array taken[GK_MAX_OPERANDS] = {operands[0]};
    reduction whole = {.call = call, .plan = plan};
    if (call->reduction.operands == 2)
        taken[1] = operands[1];
    gk_status status = choose(call, &taken[0], result->dtype, 0, &whole);
    if (status == GK_OK && plan.packed && gk_count(&operands[0]) > 0)
        status = pack(call, &operands[0], &taken[0]);
    if (status == GK_OK)
        status = prepare(&whole, &taken[0], result->dtype);
    if (status != GK_OK)
        return status;
    whole.plan.how.result = result->data;
    size_t blocks = gk_plan_blocks(&whole.plan, taken[0].dtype);
    return launch(whole.row, call, &whole.plan.how, blocks, taken);
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
    gk_status status = gk_row_chosen("sum_finish", row->dtype, call->backend, 0, NULL,
                                     &made->finish, &call->error);
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

static gk_status run_reduction(gk_call *call, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0];
    if (gk_count(a) == 0 && call->reduction.kind->zero_of_nothing)
        return gk_call_zero(call, result->data, gk_bytes(result));
    if (gk_count(result) == 0)
        return GK_OK;
    if (call->wanted && !call->wanted->reduces) {
        const gk_row *row;
        gk_status status = gk_call_choose(call, a->dtype, (uintptr_t)a->data, &row);
        return status == GK_OK ? run_ladder(call, row, a, result) : status;
    }
    return run_planned(call, gk_plan_reduction(a, call->reduction.axes), operands, result);
}

/* from the host, chunk by chunk ------------------------------------------------------------------
 */

static gk_status ladder_chunk(void *context, gk_stream stream, const gk_array *operands,
                              gk_array *result, size_t first, gk_error *error) {
    const ladder *whole = context;
    gk_call chunk = *whole->call;
    (void)result;
    chunk.stream = stream;
    chunk.phases = NULL;
    gk_status status = climb(whole, &chunk, operands[0].data, first, gk_count(&operands[0]));
    if (status != GK_OK)
        *error = chunk.error;
    return status;
}

/* A chunk begins where a segment begins, so that a sum in chunks has the bits of the whole one. */
static gk_status reduction_chunk(void *context, gk_stream stream, const gk_array *operands,
                                 gk_array *result, size_t first, gk_error *error) {
    const reduction *whole = context;
    gk_reduction how = whole->plan.how;
    gk_call chunk = *whole->call;
    (void)result;
    chunk.stream = stream;
    chunk.phases = NULL;
    how.first = first;
    how.length = gk_count(&operands[0]);
    how.segments = (how.length + how.segment - 1) / how.segment;
    how.stage = GK_REDUCE_PARTIAL;
    gk_status status = launch(whole->row, &chunk, &how, how.segments, operands);
    if (status != GK_OK)
        *error = chunk.error;
    return status;
}

static gk_flow flow_of(const gk_call *call, const gk_array *operands) {
    gk_flow flow = {.count = gk_count(&operands[0]),
                    .operand_count = call->reduction.operands,
                    .operands = {operands[0]}};
    if (call->reduction.operands == 2)
        flow.operands[1] = operands[1];
    return flow;
}

static gk_status flow_ladder(gk_call *call, const gk_row *row, const gk_array *operands,
                             void *total) {
    ladder whole;
    gk_flow flow = flow_of(call, operands);
    gk_status status = begin_ladder(call, row, flow.count, &whole);
    flow.work = ladder_chunk;
    flow.context = &whole;
    if (status == GK_OK)
        status = gk_call_flow(call, &flow);
    return status == GK_OK ? end_ladder(&whole, total) : status;
}

static gk_status flow_planned(gk_call *call, const gk_array *operands, gk_dtype result,
                              void *total) {
    gk_flow flow = flow_of(call, operands);
    reduction whole = {.call = call, .plan = gk_plan_reduction(&operands[0], call->reduction.axes)};
    gk_reduction *how = &whole.plan.how;
    gk_status status = choose(call, &operands[0], result, 0, &whole);
    /* Also of a single segment: the launch that finishes it is one and the same. */
    size_t bytes = how->segments * GK_REDUCE_PARTIAL_BYTES;
    if (status == GK_OK)
        status = prepare(&whole, &operands[0], result);
    if (status == GK_OK && !how->partials)
        status = gk_call_temporary(call, bytes, &how->partials);
    flow.multiple = how->segment;
    flow.work = reduction_chunk;
    flow.context = &whole;
    if (status == GK_OK)
        status = gk_call_flow(call, &flow);
    how->stage = GK_REDUCE_FINISH;
    how->result = total;
    return status == GK_OK ? launch(whole.row, call, how, 1, operands) : status;
}

static gk_status flow_whole(gk_call *call, const gk_array *operands, const gk_array *result) {
    const gk_row *wanted = call->wanted;
    void *total = NULL;
    gk_status status = gk_call_temporary(call, gk_bytes(result), &total);
    if (status == GK_OK && wanted && !wanted->reduces)
        status = flow_ladder(call, wanted, operands, total);
    else if (status == GK_OK)
        status = flow_planned(call, operands, result->dtype, total);
    return status == GK_OK ? gk_call_copy_out(call, result->data, total, gk_bytes(result)) : status;
}

/* from the host, by panels -----------------------------------------------------------------------
 */

typedef struct panels {
    gk_call *call;
    gk_reduce_plan plan; /* of the whole array: a panel's results have the same bits */
    size_t limit;        /* bytes of a panel */
    gk_dtype result;
    char *next; /* where on the device the next panel's results go */
} panels;

static gk_status run_panel(panels *of, const gk_array *part, uint64_t reduced) {
    gk_call call = *of->call; /* what a panel takes is given back at its end */
    gk_array there = *part, result = {.dtype = of->result, .data = of->next};
    gk_reduce_plan plan = of->plan;
    if (gk_interrupted(call.interruption, &of->call->error))
        return GK_INTERRUPTED;
    call.temporary_count = 0;
    there.place = GK_DEVICE;
    there.swapped = false;
    gk_make_contiguous(&there);
    gk_plan_part(&plan, part, reduced);
    gk_status status = gk_call_temporary(&call, gk_bytes(&there), &there.data);
    if (status == GK_OK)
        status = gk_upload(&call, part, there.data);
    if (status == GK_OK)
        status = run_planned(&call, plan, &there, &result);
    gk_call_end(&call);
    if (status != GK_OK)
        of->call->error = call.error;
    of->next += plan.how.outer * plan.how.inner * gk_dtype_size(of->result);
    return status;
}

/* Halves along the first kept axis that is longer than 1, so that results follow one another. */
static gk_status run_panels(panels *of, const gk_array *part) {
    uint64_t reduced = of->call->reduction.axes;
    int axis = 0;
    while (axis < part->ndim && (gk_is_reduced(reduced, axis) || part->shape[axis] == 1))
        axis++;
    if (gk_bytes(part) <= of->limit || axis == part->ndim)
        return run_panel(of, part, reduced);
    gk_array half = *part;
    half.shape[axis] = (part->shape[axis] + 1) / 2;
    gk_status status = run_panels(of, &half);
    half.data = (char *)part->data + half.shape[axis] * part->strides[axis];
    half.shape[axis] = part->shape[axis] - half.shape[axis];
    return status == GK_OK ? run_panels(of, &half) : status;
}

static gk_status flow_reduction(gk_call *call, const gk_array *operands, const gk_array *result) {
    size_t limit = atomic_load(&call->engine->device_limit);
    if (gk_count(result) == 1)
        return flow_whole(call, operands, result);
    if (limit == 0 || gk_bytes(&operands[0]) <= limit)
        return GK_MEMORY_ERROR; /* it fits: the plain way copies it in at once */
    panels of = {.call = call,
                 .plan = gk_plan_reduction(&operands[0], call->reduction.axes),
                 .limit = limit,
                 .result = result->dtype};
    void *results = NULL;
    gk_status status = gk_call_temporary(call, gk_bytes(result), &results);
    of.next = results;
    if (status == GK_OK)
        status = run_panels(&of, &operands[0]);
    return status == GK_OK ? gk_download(call, results, result) : status;
}

/* the operations --------------------------------------------------------------------------------
 */

#define NO_EXTREME(name) "zero-size array to reduction operation " #name " which has no identity"
#define NO_INDEX(name)   "attempt to get " #name " of an empty sequence"

static const char *const names[] = {"a", "b"};

#define GK_REDUCTION_OP(name_, count, infer_, result_, ...)                                        \
    static const gk_reduction_kind name_##_kind = {                                                \
        .rows = KERNELS(name_), .result = result_, __VA_ARGS__};                                   \
    const gk_operation gk_op_##name_ = {.name = #name_,                                            \
                                        .operand_count = count,                                    \
                                        .operands = names,                                         \
                                        .reduction = &name_##_kind,                                \
                                        .infer = infer_,                                           \
                                        .run = run_reduction,                                      \
                                        .flow = flow_reduction,                                    \
                                        .mapped = true};

GK_REDUCTION_OP(sum, 1, infer_reduction, OF_SUM, .zero_of_nothing = true)
GK_REDUCTION_OP(mean, 1, infer_reduction, OF_MEAN, .last = GK_DIVIDED)
GK_REDUCTION_OP(prod, 1, infer_reduction, OF_PRODUCT, .last = GK_AS_IT_IS)
GK_REDUCTION_OP(max, 1, infer_reduction, AS_OPERAND, .no_elements = NO_EXTREME(maximum))
GK_REDUCTION_OP(min, 1, infer_reduction, AS_OPERAND, .no_elements = NO_EXTREME(minimum),
                .flip = true)
GK_REDUCTION_OP(norm, 1, infer_reduction, REAL, .last = GK_SQUARE_ROOT, .zero_of_nothing = true)
GK_REDUCTION_OP(argmax, 1, infer_reduction, INDEX, .no_elements = NO_INDEX(argmax))
GK_REDUCTION_OP(argmin, 1, infer_reduction, INDEX, .no_elements = NO_INDEX(argmin), .flip = true)
GK_REDUCTION_OP(dot, 2, infer_dot, AS_OPERAND, .zero_of_nothing = true)
