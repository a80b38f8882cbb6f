#include "ops/reduce_run.h"

#include <stdlib.h>

#include "engine/copy.h"
#include "ops/assign.h"
#include "ops/elementwise.h"
#include "ops/reduce_columns.h"
#include "ops/reduce_reordered.h"

enum {
    LITTLE_TURNED = 1 << 19, /* bytes that are in the caches when they are read again */
    MUCH_TURNED = 12 << 20,  /* bytes of an array that is sooner put in order than its results: */
    LARGE_RESULTS = 2,       /* these are so many times as many bytes */
};

bool gk_is_half(gk_dtype dtype) {
    return gk_dtype_kind(dtype) == GK_HALF;
}

gk_dtype gk_default_result(gk_result_rule rule, gk_dtype dtype) {
    if (rule == GK_OF_INDEX)
        return GK_int64;
    if (rule == GK_OF_OPERAND || gk_is_float(dtype))
        return dtype;
    if (rule == GK_OF_MEAN || rule == GK_OF_REAL)
        return GK_float64;
    return dtype == GK_uint64 ? GK_uint64 : GK_int64;
}

static bool is_sum_of_floats(const gk_reduction_operation *kind, gk_dtype of) {
    return (kind->result == GK_OF_SUM || kind->result == GK_OF_MEAN) && gk_is_float(of);
}

/* A sum in float64 of what does not add up exactly in the accumulator that it has otherwise. */
static bool is_wide(const gk_reduction_operation *kind, gk_dtype of, gk_dtype result) {
    return kind->result <= GK_OF_MEAN && result == GK_float64 &&
           (of == GK_int64 || of == GK_uint64 || (gk_is_float(of) && of != GK_float64));
}

/* the order of elements ------------------------------------------------------------------------ */

static bool is_single_axis(const gk_array *a, uint64_t axes) {
    int count = 0;
    for (int i = 0; i < a->ndim; i++)
        count += gk_is_reduced(axes, i) && a->shape[i] > 1;
    return count == 1;
}

/* Whether the result has the same bits whatever the order of the elements and of the axes. */
static bool is_exact(const gk_reduction_operation *kind, const gk_array *a, uint64_t axes,
                     gk_dtype result) {
    if (kind->result == GK_OF_INDEX)
        return is_single_axis(a, axes);
    if (kind->result == GK_OF_OPERAND) /* an extreme */
        return kind->base.operand_count == 1;
    return !gk_is_float(a->dtype) && kind->result != GK_OF_REAL && !is_wide(kind, a->dtype, result);
}

/* Whether it is of real numbers in their order (gk_reduce_plan). */
static bool adds_reals(const gk_reduction_operation *kind, gk_dtype dtype) {
    return kind->base.operand_count == 1 && gk_is_float(dtype) && kind->result != GK_OF_INDEX &&
           kind->result != GK_OF_OPERAND;
}

/* one launch ----------------------------------------------------------------------------------- */

static gk_walk walk_of(const gk_reduce_plan *plan) {
    if (gk_goes_scattered(plan))
        return GK_WALK_SCATTERED;
    if (plan->how.tiles & GK_REDUCE_BESIDE)
        return plan->how.tiles & GK_REDUCE_STRAIGHT ? GK_WALK_STRAIGHT
               : plan->how.tiles & GK_REDUCE_EVEN   ? GK_WALK_EVEN
                                                    : GK_WALK_BESIDE;
    if (plan->how.tiles & GK_REDUCE_ALONG)
        return GK_WALK_ALONG;
    if (plan->gathered && plan->walk != GK_WALK_LITTLE)
        return plan->walk == GK_WALK_COLUMNS ? GK_WALK_GATHERED_COLUMNS : GK_WALK_GATHERED;
    return plan->walk;
}

gk_status gk_reducing_choose(gk_reducing *made, const gk_array *a, gk_dtype result) {
    gk_call *call = made->call;
    bool wide = is_wide(made->kind, a->dtype, result) && !made->goes_on;
    gk_op op = (wide ? GK_OP_sum_wide : made->kind->base.op) + walk_of(&made->plan);
    if (op == made->kind->base.op)
        return gk_call_choose(call, op, a->dtype, 0, &made->row);
    const gk_wish wish = {.op = op, .dtype = a->dtype};
    if (!call->variant)
        return gk_call_blame(call, gk_row_chosen(&wish, call->backend, &made->row, &call->error));
    gk_status status =
        gk_row_named(op, call->variant, a->dtype, call->backend, &made->row, &call->error);
    if (status != GK_OK && wide)
        return gk_fail(&call->error, status,
                       "%s: variant '%s' does not add up in float64; leave out variant or dtype",
                       call->operation, call->variant);
    return gk_call_blame(call, status);
}

static uint8_t order_of(const gk_reduction_operation *kind, gk_dtype of) {
    const int order = kind->reversed ? GK_ORDER_REVERSED : 0;
    return (uint8_t)(gk_dtype_kind(of) == GK_UNSIGNED ? order | GK_ORDER_UNSIGNED : order);
}

void gk_reducing_describe(gk_reducing *whole, gk_dtype of, gk_dtype result) {
    whole->plan.how.stored = (uint8_t)result;
    whole->plan.how.last = (uint8_t)whole->kind->last;
    whole->plan.how.order = order_of(whole->kind, of) & 3U;
}

/* Counters for blocks to arrive at: the stream's, or memory that has to be zeroed for the launch.
 */
static gk_status take_counters(gk_call *call, size_t count, unsigned *lasting,
                               unsigned **counters) {
    void *memory = NULL;
    *counters = lasting;
    if (lasting && count <= GK_STREAM_COUNTERS)
        return GK_OK;
    gk_status status = gk_call_temporary(call, count * sizeof **counters, &memory);
    *counters = memory;
    return status == GK_OK ? gk_call_zero(call, memory, count * sizeof **counters) : status;
}

/* And what it needs: memory for partial results, and counters. */
static gk_status prepare(gk_reducing *whole, const gk_array *a, gk_dtype result) {
    gk_call *call = whole->call;
    gk_reduction *how = &whole->plan.how;
    gk_stream_memory lasting = {0};
    gk_reducing_describe(whole, a->dtype, result);
    how->shifted =
        walk_of(&whole->plan) == GK_WALK_COLUMNS && gk_are_columns_shifted(how, a->dtype);
    size_t partials = gk_plan_partials(&whole->plan);
    if (partials == 0)
        return GK_OK;
    gk_status status = gk_call_stream_memory(call, partials, &lasting);
    how->partials = lasting.scratch;
    if (status == GK_OK && !lasting.scratch)
        status = gk_call_temporary(call, partials, &how->partials);
    if (status != GK_OK)
        return status;
    size_t arrivals = gk_plan_arrivals(&whole->plan, a->dtype);
    return take_counters(call, arrivals, lasting.counters, &how->arrivals);
}

gk_status gk_reducing_launch(const gk_reducing *whole, gk_call *call, const gk_reduction *how,
                             size_t blocks, const gk_array *operands) {
    const size_t reads = gk_bytes(&operands[0]);
    gk_reduction copy = *how;
    gk_axes layout = whole->plan.layout;
    void *a = operands[0].data, *b = whole->kind->base.operand_count == 2 ? operands[1].data : a;
    if (whole->plan.walk == GK_WALK_LITTLE) {
        gk_little little = gk_plan_little(&whole->plan, how, &operands[0]);
        return gk_call_launch_sharing(call, whole->row, blocks, whole->row->shared_bytes, reads,
                                      (void *[]){&little});
    }
    if (!whole->plan.gathered && !whole->plan.pitched)
        gk_plan_of_run(&copy, operands[0].dtype);
    copy.reach -= (int64_t)whole->lacking;
    void *arguments[] = {&copy, &a, whole->plan.gathered ? (void *)&layout : &b};
    const bool all = whole->plan.walk == GK_WALK_MATRICES || how->tiles & GK_REDUCE_TILED;
    const size_t shared = all                             ? whole->row->shared_bytes
                          : how->lines                    ? GK_REDUCE_LINES_BYTES
                          : how->tiles & GK_REDUCE_LINE   ? GK_REDUCE_LINE_BYTES
                          : how->tiles & GK_REDUCE_LISTED ? GK_REDUCE_LISTED_BYTES
                          : how->tiles & GK_REDUCE_ALONG  ? GK_REDUCE_FETCHED_BYTES(how->fetched)
                                                          : 0;
    return gk_call_launch_sharing(call, whole->row, blocks, shared, reads, arguments);
}

gk_status gk_pack_reduced(gk_call *call, const gk_array *a, gk_array *packed) {
    *packed = *a;
    gk_make_contiguous(packed);
    gk_status status = gk_call_temporary(call, gk_bytes(packed), &packed->data);
    return status == GK_OK ? gk_copy_strided(call, packed, a) : status;
}

/* Whether the results, which have two parts each, come in no other order than they are stored in.
 */
static bool is_in_parts(const gk_reducing *whole) {
    return whole->kind->last == GK_IN_PARTS;
}

static gk_status launch_planned(gk_reducing *whole, const gk_array *operands,
                                const gk_array *result) {
    gk_status status = prepare(whole, &operands[0], result->dtype);
    if (status != GK_OK)
        return status;
    whole->plan.how.result = result->data;
    size_t blocks = gk_plan_blocks(&whole->plan, operands[0].dtype);
    return gk_reducing_launch(whole, whole->call, &whole->plan.how, blocks, operands);
}

/* Whether its kernels keep to an order, as gk_keeps_order has it. */
static bool keeps_order(const gk_reducing *whole, gk_dtype of, gk_dtype result) {
    return is_sum_of_floats(whole->kind, of) &&
           (whole->goes_on || !is_wide(whole->kind, of, result));
}

/* Kept axes may come in another order there. */
static gk_status run_by_tiles(gk_reducing *whole, uint64_t axes, const gk_array *a,
                              const int *order, const gk_array *result) {
    gk_reordered lies;
    gk_status status = gk_reducing_choose(whole, a, result->dtype);
    if (status == GK_OK)
        status = gk_reorder(whole->call, a, axes, order, result, &lies);
    if (status == GK_OK)
        status = launch_planned(whole, &lies.array, &lies.found);
    return status == GK_OK ? gk_put_back(whole->call, &lies) : status;
}

static gk_result_of result_of(const gk_reducing *whole) {
    switch (whole->kind->result) {
    case GK_OF_INDEX:
        return GK_INDEX;
    case GK_OF_OPERAND:
        return GK_EXTREME;
    default:
        return whole->goes_on ? GK_PARTIAL : GK_TOTAL;
    }
}

/* Sums that keep to an order go along columns that are runs before they are asked for any other
   way, where that is `sooner`, or else when most others have not taken them. */
static bool plan_along(gk_reducing *whole, uint64_t axes, const gk_array *a, bool sooner,
                       int *order) {
    return gk_is_sooner_along(&whole->plan, a->dtype, gk_bytes(a)) == sooner &&
           gk_plan_along(&whole->plan, a, axes, whole->call->backend->fetch_room, order);
}

/* What an array goes by where no kernel takes it as it lies; `turned_sums`: it is such sums, of
   axes in another order. */
static bool plan_by_tiles(gk_reducing *whole, uint64_t axes, const gk_array *a, bool turned_sums,
                          int *order) {
    return gk_plan_tiles(&whole->plan, a, axes, order) ||
           (turned_sums && gk_plan_row_tiles(&whole->plan, a, axes, order));
}

/* Sums that keep to an order, and extremes, have a kernel for short rows of a thread's own. */
static bool plan_own(gk_reducing *whole, uint64_t axes, const gk_array *a, const gk_array *result,
                     bool keeps) {
    const gk_result_of of = result_of(whole);
    return (keeps ? of == GK_TOTAL : of == GK_EXTREME) &&
           gk_plan_own(&whole->plan, a, axes, result, of);
}

static gk_status run_as_planned(gk_reducing *whole, uint64_t axes, const gk_array *operands,
                                gk_array *result) {
    gk_call *call = whole->call;
    const gk_array *a = &operands[0];
    const bool is_packed = whole->plan.packed, narrow = whole->plan.how.narrow;
    const bool keeps = keeps_order(whole, a->dtype, result->dtype);
    const bool one = whole->kind->base.operand_count == 1, lies_turned = gk_is_turned(a);
    const bool may_turn = one && !is_in_parts(whole),
               turned_sums = may_turn && lies_turned && keeps;
    gk_array packed[GK_MAX_OPERANDS];
    int order[GK_MAX_DIMENSIONS];
    const bool any = is_exact(whole->kind, a, axes, result->dtype);
    bool is_run = (one && (plan_own(whole, axes, a, result, keeps) ||
                           gk_plan_between(&whole->plan, a, axes) ||
                           gk_plan_matrices(&whole->plan, a, axes, any))) ||
                  (!is_packed && !whole->plan.scattered && gk_is_contiguous(a)) || gk_count(a) == 0;
    if (!is_run && one)
        is_run = gk_plan_pitched(&whole->plan, a, axes) ||
                 (narrow && keeps && gk_plan_narrow(&whole->plan, a, axes));
    if (!is_run && turned_sums &&
        (plan_along(whole, axes, a, true, order) ||
         gk_plan_row_vectors(&whole->plan, a, axes, order)))
        return run_by_tiles(whole, axes, a, order, result);
    is_run = gk_plan_alone(&whole->plan, a, axes, is_run, result_of(whole)) || is_run;
    if (!is_run && one && lies_turned)
        is_run = gk_plan_lanes(&whole->plan, a, axes);
    if (!is_run && turned_sums && plan_along(whole, axes, a, false, order))
        return run_by_tiles(whole, axes, a, order, result);
    if (!is_run && one && (!lies_turned || gk_are_columns_near(&whole->plan, a, axes)))
        is_run = gk_plan_listed(&whole->plan, a, axes);
    if (!is_run && may_turn && plan_by_tiles(whole, axes, a, turned_sums, order))
        return run_by_tiles(whole, axes, a, order, result);
    if (!is_run && !narrow)
        is_run = gk_plan_gathered(&whole->plan, a, axes);
    gk_plan_few(&whole->plan, a, result->data, result_of(whole));
    gk_status status = gk_reducing_choose(whole, a, result->dtype);
    if (status == GK_OK && !is_run) {
        const gk_array taken = gk_as_taken(a, axes, is_packed);
        status = gk_pack_reduced(call, &taken, &packed[0]);
        gk_plan_packed(&whole->plan, &packed[0]);
        gk_plan_few(&whole->plan, &packed[0], result->data, result_of(whole));
        if (!one)
            packed[1] = operands[1];
        operands = packed;
    }
    return status == GK_OK ? launch_planned(whole, operands, result) : status;
}

/* The kept axes in the order of memory, where that leaves the order of all additions. */
static gk_status run_planned(gk_reducing *whole, uint64_t axes, const gk_array *operands,
                             gk_array *result) {
    int order[GK_MAX_DIMENSIONS];
    gk_reordered lies;
    if (whole->kind->base.operand_count > 1 || !gk_is_turned(&operands[0]) || is_in_parts(whole) ||
        !gk_plan_turned(&whole->plan, &operands[0], axes, order))
        return run_as_planned(whole, axes, operands, result);
    gk_status status = gk_reorder(whole->call, &operands[0], axes, order, result, &lies);
    if (status == GK_OK)
        status = run_as_planned(whole, lies.axes, &lies.array, &lies.found);
    return status == GK_OK ? gk_put_back(whole->call, &lies) : status;
}

/* Whether states are of float64 where elements are not: those of squares of whole numbers are, too.
 */
static bool is_in_wider(const gk_reduction_operation *kind, gk_dtype of, gk_dtype result) {
    return is_wide(kind, of, result) || (kind->result == GK_OF_REAL && !gk_is_float(of));
}

/* Heavy is what is better joined as little as may be: extremes, which are as cheap an operation as
   their loads, and of sums and indices those of which large states are carried along for small
   elements. */
static gk_joining joining_of(const gk_reduction_operation *kind, const gk_array *a, uint64_t axes,
                             gk_dtype result) {
    gk_joining made = {.any_order = is_exact(kind, a, axes, result)};
    made.heavy = made.any_order && (kind->result == GK_OF_INDEX || kind->result == GK_OF_OPERAND ||
                                    gk_dtype_size(a->dtype) == 1);
    made.ranked = kind->result == GK_OF_INDEX && gk_dtype_size(a->dtype) == 2;
    made.of_reals = adds_reals(kind, a->dtype);
    made.in_wider = is_in_wider(kind, a->dtype, result);
    return made;
}

/* stages -------------------------------------------------------------------------------------- */

/* What the stages before the last one leave: nothing is rounded there that the result shows. */
static gk_dtype dtype_between(const gk_reduction_operation *kind, gk_dtype dtype) {
    if (kind->result == GK_OF_OPERAND)
        return dtype;
    if (gk_is_half(dtype))
        return GK_float32;
    if (dtype == GK_float32 && kind->result != GK_OF_PRODUCT)
        return GK_float64;
    return gk_default_result(GK_OF_SUM, dtype);
}

/* Sums in more digits than any dtype has go on as they are, or, of float64, in two parts: what an
   addition rounds off is one. */
static bool has_stages(const gk_reduction_operation *kind, const gk_call *call, gk_dtype dtype,
                       gk_dtype result) {
    if (call->variant || kind->result == GK_OF_REAL || kind->result == GK_OF_INDEX)
        return false;
    return !is_wide(kind, dtype, result);
}

static bool has_parts(const gk_reduction_operation *kind, gk_dtype dtype) {
    return is_sum_of_floats(kind, dtype) && dtype == GK_float64;
}

/* What is left of an array: those axes have a single element each. Of a sum in two parts `left`
   gets an axis for these, in front of the axes that are reduced yet, to which the parts belong;
   `block`, how many results there are between the two of one; 0: there is a single part. */
typedef struct remainder {
    gk_array array;
    uint64_t left;
    size_t block;
} remainder;

static remainder remain(const gk_reduction_operation *kind, const gk_array *array, uint64_t first,
                        uint64_t left) {
    const bool parts = has_parts(kind, array->dtype);
    remainder made = {.array = *array};
    gk_array *between = &made.array;
    int next = 0, place = -1;
    between->dtype = dtype_between(kind, array->dtype);
    for (int i = 0; i < array->ndim; i++) {
        if (gk_is_reduced(first, i))
            continue;
        if (gk_is_reduced(left, i) && parts && place < 0) {
            place = next;
            made.left |= (uint64_t)1 << next;
            between->shape[next++] = 2;
        }
        made.left |= (uint64_t)gk_is_reduced(left, i) << next;
        between->shape[next++] = array->shape[i];
    }
    between->ndim = next;
    gk_make_contiguous(between);
    if (parts)
        made.block = (size_t)(between->strides[place] / between->strides[next - 1]);
    return made;
}

gk_reduce_stages gk_plan_stages(const gk_reduction_operation *kind, const gk_call *call,
                                const gk_array *a, uint64_t axes, gk_dtype result) {
    gk_reduce_stages made;
    remainder remains;
    uint64_t left = axes;
    for (made.count = 1; made.count <= GK_MOST_STAGES; made.count++) {
        const int last = made.count - 1;
        bool more = made.count < GK_MOST_STAGES && has_stages(kind, call, a->dtype, result);
        /* What a mean of integers divides may have been rounded in between. */
        bool any = kind->result != GK_OF_MEAN && is_exact(kind, a, left, result);
        uint64_t first = more ? gk_reduced_first(a, left, any) : 0;
        made.axes[last] = first ? first : left;
        made.plan[last] = gk_plan_reduction(a, made.axes[last], kind->base.operand_count,
                                            joining_of(kind, a, made.axes[last], result),
                                            atomic_load(&call->engine->vectors_limit));
        if (!first)
            break;
        made.left[last] = left & ~first;
        remains = remain(kind, a, first, made.left[last]);
        a = &remains.array;
        left = remains.left;
    }
    return made;
}

static gk_status run_stages(const gk_reduction_operation *kind, gk_call *call,
                            const gk_reduce_stages *of, const gk_array *operands,
                            gk_array *result) {
    gk_reduction_operation part = *kind; /* of a mean, the sum */
    remainder between[GK_MOST_STAGES];
    const size_t results = gk_count(result);
    /* What a mean divides by; the lengths of stages count what is in two parts twice. */
    const size_t each = results > 0 ? gk_count(&operands[0]) / results : 0;
    for (int i = 0;; i++) {
        bool goes_on = i + 1 < of->count;
        gk_reducing whole = {.call = call, .kind = goes_on ? &part : kind, .goes_on = goes_on};
        whole.plan = of->plan[i];
        gk_plan_part(&whole.plan, operands, of->axes[i]);
        gk_divide_by(&whole.plan.how, of->count > 1 ? each : whole.plan.how.length);
        if (!goes_on)
            return run_planned(&whole, of->axes[i], operands, result);
        between[i] = remain(kind, operands, of->axes[i], of->left[i]);
        gk_array *found = &between[i].array;
        const bool parts = between[i].block > 0;
        part.last = parts ? GK_IN_PARTS : GK_AS_IT_IS;
        if (parts)
            gk_divide_by(&whole.plan.how, between[i].block);
        gk_status status = gk_call_temporary(call, gk_bytes(found), &found->data);
        if (status == GK_OK)
            status = run_planned(&whole, of->axes[i], operands, found);
        if (status != GK_OK)
            return status;
        operands = found;
    }
}

/* Only the kernel of narrow columns takes an array whose last row lacks its end. */
static bool can_lack(const gk_reduce_stages *planned) {
    const gk_reduce_plan *plan = &planned->plan[0];
    return planned->count == 1 && plan->walk == GK_WALK_COLUMNS && plan->how.narrow;
}

/* Columns with what lies between them, of whose results those that are asked for are copied. */
static gk_status run_wider(gk_reducing *whole, const gk_wider *wider, uint64_t reduced,
                           const gk_array *result) {
    const gk_array *all = &wider->array;
    gk_array found = {.dtype = result->dtype}, asked, wanted;
    int axis = 0;
    for (int i = 0; i < all->ndim; i++)
        if (!gk_is_reduced(reduced, i)) {
            axis = i == wider->axis ? found.ndim : axis;
            gk_append_axis(&found, all->shape[i], 0);
        }
    gk_make_contiguous(&found);
    asked = found;
    asked.shape[axis] = wider->columns;
    asked.strides[axis] *= wider->step;
    wanted = asked;
    wanted.data = result->data;
    gk_make_contiguous(&wanted);
    whole->lacking = wider->lacking;
    gk_divide_by(&whole->plan.how, whole->plan.how.length);
    gk_status status = gk_call_temporary(whole->call, gk_bytes(&found), &found.data);
    if (status == GK_OK)
        status = gk_reducing_choose(whole, all, result->dtype);
    if (status == GK_OK)
        status = launch_planned(whole, all, &found);
    asked.data = found.data;
    return status == GK_OK ? gk_copy_strided(whole->call, &wanted, &asked) : status;
}

/* What no order of elements changes, as it lies, or with what lies in its gaps. */
static gk_status run_any_order(const gk_reduction_operation *kind, gk_call *call,
                               const gk_reduce_stages *alone, const gk_array *a, uint64_t reduced,
                               gk_array *result) {
    gk_wider wider;
    if (gk_plan_wider(a, reduced, &wider)) {
        const gk_reduce_stages planned =
            gk_plan_stages(kind, call, &wider.array, reduced, result->dtype);
        if (can_lack(&planned)) {
            gk_reducing whole = {.call = call, .kind = kind, .plan = planned.plan[0]};
            return run_wider(&whole, &wider, reduced, result);
        }
    }
    return run_stages(kind, call, alone, a, result);
}

/* Whether elements are so few that one launch may find them in the order of the results. */
static bool is_little(const gk_array *a, const gk_reduce_stages *planned) {
    return gk_bytes(a) <= LITTLE_TURNED && planned->count == 1 &&
           planned->plan[0].walk == GK_WALK_LITTLE;
}

/* Whether an array is sooner put in order than its results are, each of which is a large number
   for few small elements. */
static bool are_results_large(const gk_reduce_stages *planned, const gk_array *a,
                              const gk_array *result) {
    return planned->count == 1 && gk_bytes(a) >= MUCH_TURNED &&
           gk_bytes(result) >= LARGE_RESULTS * gk_bytes(a);
}

/* A copy of it in order. */
static gk_status run_packed(const gk_reduction_operation *kind, gk_call *call,
                            const gk_reduce_stages *planned, const gk_array *a, gk_array *result) {
    gk_array packed;
    gk_status status = gk_pack_reduced(call, a, &packed);
    return status == GK_OK ? run_stages(kind, call, planned, &packed, result) : status;
}

/* The array as it lies, and so its results: what no order of additions changes. */
static gk_status run_in_order(const gk_reduction_operation *kind, gk_call *call,
                              const gk_reduce_stages *as_it_comes, const gk_array *a,
                              uint64_t reduced, gk_array *result) {
    int order[GK_MAX_DIMENSIONS];
    gk_reordered lies;
    gk_order_axes(a, order);
    if (are_results_large(as_it_comes, a, result) && !gk_come_in_order(a, ~reduced, order))
        return run_packed(kind, call, as_it_comes, a, result);
    gk_status status = gk_reorder(call, a, reduced, order, result, &lies);
    const gk_reduce_stages planned =
        gk_plan_stages(kind, call, &lies.array, lies.axes, result->dtype);
    if (status == GK_OK)
        status = run_any_order(kind, call, &planned, &lies.array, lies.axes, &lies.found);
    return status == GK_OK ? gk_put_back(call, &lies) : status;
}

/* axes of a single element --------------------------------------------------------------------- */

/* Where nothing is joined: a result is its element, converted, its absolute value, or its index. */
static bool is_of_single_elements(const gk_reduction_operation *kind, const gk_call *call,
                                  const gk_array *a, uint64_t axes, gk_dtype result) {
    for (int i = 0; i < a->ndim; i++)
        if (gk_is_reduced(axes, i) && a->shape[i] != 1)
            return false;
    if (call->variant || kind->base.operand_count > 1)
        return false;
    if (kind->result == GK_OF_INDEX)
        return !call->mapped;
    if (kind->result == GK_OF_REAL)
        return gk_is_float(a->dtype) && result == a->dtype;
    return !(is_sum_of_floats(kind, a->dtype) && result != a->dtype);
}

/* As a sum has it that begins with 0, which makes 0 of -0. */
static gk_status add_nothing(gk_call *call, const gk_array *a, gk_array *result) {
    static const uint64_t nothing = 0;
    gk_array operands[2] = {*a, {.place = GK_HOST, .dtype = a->dtype}};
    operands[1].data = (void *)(uintptr_t)&nothing;
    return gk_run_elementwise(call, GK_OP_add, operands, 2, result);
}

static gk_status take_single_elements(const gk_reduction_operation *kind, gk_call *call,
                                      const gk_array *a, uint64_t axes, const gk_array *result) {
    gk_array to = *result, from = *a;
    if (kind->result == GK_OF_INDEX)
        return gk_call_zero(call, result->data, gk_bytes(result));
    to.ndim = from.ndim = 0;
    for (int i = 0; i < a->ndim; i++)
        if (!gk_is_reduced(axes, i)) {
            gk_append_axis(&from, a->shape[i], a->strides[i]);
            gk_append_axis(&to, a->shape[i], 0);
        }
    gk_make_contiguous(&to);
    if (kind->result == GK_OF_REAL)
        return gk_run_elementwise(call, GK_OP_abs, &from, 1, &to);
    if (is_sum_of_floats(kind, a->dtype))
        return add_nothing(call, &from, &to);
    bool same = to.dtype == from.dtype && !call->mapped;
    return same ? gk_copy_strided(call, &to, &from) : gk_assign_by_kernel(call, &to, &from);
}

gk_status gk_run_reduction(const gk_reduction_operation *kind, gk_call *call, uint64_t axes,
                           const gk_array *operands, gk_array *result) {
    if (is_of_single_elements(kind, call, &operands[0], axes, result->dtype))
        return take_single_elements(kind, call, &operands[0], axes, result);
    const gk_reduce_stages planned = gk_plan_stages(kind, call, &operands[0], axes, result->dtype);
    const bool any = is_exact(kind, &operands[0], axes, result->dtype);
    if (any && gk_is_turned(&operands[0]) && !is_little(&operands[0], &planned))
        return run_in_order(kind, call, &planned, &operands[0], axes, result);
    return any ? run_any_order(kind, call, &planned, &operands[0], axes, result)
               : run_stages(kind, call, &planned, operands, result);
}

gk_status gk_run_part(const gk_reduction_operation *kind, gk_call *call, uint64_t axes,
                      const gk_reduce_stages *whole, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0];
    const bool own = is_exact(kind, a, axes, result->dtype) ||
                     is_of_single_elements(kind, call, a, axes, result->dtype);
    return own ? gk_run_reduction(kind, call, axes, operands, result)
               : run_stages(kind, call, whole, operands, result);
}
