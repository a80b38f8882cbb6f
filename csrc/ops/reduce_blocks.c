/* How many blocks a reduction has, and what they need to join what they have. */
#include "ops/reduce_shape.h"

enum { WARP = 32 }; /* threads */

size_t gk_column_groups(const gk_reduction *how, gk_dtype dtype) {
    size_t stacked = how->narrow ? how->group : GK_REDUCE_COLUMN_THREADS >> how->group;
    return gk_divided(how->outer, stacked) *
           gk_divided(how->inner,
                      GK_REDUCE_BLOCK_COLUMNS(how->lanes, gk_vector_width(dtype), how->shifted));
}

size_t gk_along_blocks(const gk_reduction *how) {
    return how->outer * gk_divided(how->inner, how->bundle) * (how->whole ? 1 : how->segments);
}

static size_t columns_of_thread(const gk_reduce_plan *plan, gk_dtype dtype) {
    const size_t columns = plan->wide          ? gk_few_columns(dtype)
                           : plan->between > 0 ? plan->between
                                               : 1;
    return columns * (plan->several > 0 ? plan->several : 1);
}

/* Rows that lie side by side: a block has several, and of long ones a warp's part of a segment. */
static bool are_beside(const gk_reduce_plan *plan) {
    return (plan->how.tiles & GK_REDUCE_BESIDE) != 0;
}

static size_t beside_warps(const gk_reduce_plan *plan) {
    return plan->walk == GK_WALK_SHORT ? 1 : GK_REDUCE_THREADS / WARP;
}

size_t gk_plan_beside(const gk_reduce_plan *plan, gk_dtype dtype) {
    const size_t lanes = plan->walk == GK_WALK_SHORT ? plan->how.lanes : WARP;
    const bool vectors = (plan->how.tiles & GK_REDUCE_STRAIGHT) != 0;
    return GK_REDUCE_THREADS / lanes *
           (vectors ? gk_vector_width(dtype) : GK_REDUCE_BESIDE_ROWS(gk_dtype_size(dtype)));
}

size_t gk_plan_blocks(const gk_reduce_plan *plan, gk_dtype dtype) {
    const gk_reduction *how = &plan->how;
    if (are_beside(plan))
        return gk_divided(how->outer, gk_plan_beside(plan, dtype)) * how->segments *
               beside_warps(plan);
    if (how->tiles & GK_REDUCE_ALONG)
        return gk_along_blocks(how);
    switch (plan->walk) {
    case GK_WALK_ROWS:
        return how->outer * how->segments;
    case GK_WALK_SHORT:
        return gk_divided(how->outer, (size_t)GK_REDUCE_THREADS / how->lanes *
                                          (how->lone_rows ? 1 : GK_REDUCE_SHORT_ROWS));
    case GK_WALK_BETWEEN:
        return gk_divided(how->outer, (size_t)GK_REDUCE_THREADS / how->lanes);
    case GK_WALK_OWN:
        return gk_divided(how->outer, GK_REDUCE_THREADS * gk_vector_width(dtype));
    case GK_WALK_MATRICES:
        return gk_divided(how->outer, how->group);
    case GK_WALK_LITTLE:
        return gk_divided(gk_divided(how->outer * how->inner, columns_of_thread(plan, dtype)),
                          GK_REDUCE_THREADS / how->lanes);
    default:
        return gk_column_groups(how, dtype) * how->segments;
    }
}

/* Whether blocks join what they have through memory. */
static bool has_partials(const gk_reduce_plan *plan) {
    return (plan->how.segments > 1 && !plan->how.whole) ||
           (are_beside(plan) && beside_warps(plan) > 1);
}

size_t gk_plan_arrivals(const gk_reduce_plan *plan, gk_dtype dtype) {
    if (!has_partials(plan))
        return 0;
    if (plan->walk != GK_WALK_COLUMNS)
        return plan->how.outer;
    return gk_column_groups(&plan->how, dtype) *
           gk_reduce_joints(plan->how.segments, plan->how.branches);
}

size_t gk_plan_partials(const gk_reduce_plan *plan) {
    const gk_reduction *how = &plan->how;
    const size_t inner = plan->walk == GK_WALK_COLUMNS ? how->inner : 1;
    if (!has_partials(plan))
        return 0;
    return how->outer * how->segments * inner * (are_beside(plan) ? beside_warps(plan) : 1) *
           GK_REDUCE_PARTIAL_BYTES;
}
