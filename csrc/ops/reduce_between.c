/* Short rows that are runs and lie between vectors: each begins as far behind one as every eighth
   after it, which are the rows of a warp (cuda/reduce/between.cuh). What pays was fitted to 3,900
   drawn sums of 3 to 200 MB, each by either kernel. */
#include "ops/reduce_columns.h"
#include "ops/reduce_shape.h"

enum {
    LEAST_RAGGED = 5,       /* vectors of a row that ends in a part of one, */
    LEAST = 9,              /* or in a whole one: of shorter rows a warp has too many; */
    LEAST_HALF_STEPS = 5,   /* times half of the lanes, so that they have several each; */
    MOST_WIDE = 127,        /* of elements of 8 bytes, which two loads of 8 bring as well, */
    MOST_WIDE_RAGGED = 255, /* or ragged ones */
    ROWS = GK_REDUCE_THREADS / GK_REDUCE_WARP, /* of a block, where each has a warp */
    PLACES = GK_REDUCE_MULTIPROCESSORS,        /* of a device for a block of each */
    LONG = 256,                                /* vectors: a turn of blocks takes long */
};

/* Whether rows of memory that follow one another are sooner brought to shared memory as they lie
   (gk_plan_matrices). */
static bool are_sooner_brought(const gk_reduction *how, size_t size) {
    static const uint16_t fit[][2] = {{0, 0}, {24, 500}, {23, 60}, {13, 200}};
    const uint16_t *const lengths = fit[__builtin_ctz((unsigned)size)];
    return how->reach >= GK_REDUCE_OF_MEMORY && gk_are_joined(how, size) &&
           how->length >= lengths[0] && how->length <= lengths[1];
}

/* Whether blocks of rows of a warp each fill the last turn of four a multiprocessor better than
   that of five, which are not spread evenly. The additions of the kernel of short rows are the
   same. */
static bool fill_other_turns(const gk_reduction *how, size_t vectors) {
    const size_t blocks = gk_divided(how->outer, ROWS);
    const bool one = blocks > 3 * PLACES && blocks <= 4 * PLACES;
    const bool two = blocks > 5 * PLACES && blocks <= 7 * PLACES && vectors >= LONG;
    return how->lanes == GK_REDUCE_WARP && (one || two);
}

static bool pays(const gk_reduction *how, gk_dtype dtype, bool ragged) {
    const size_t vectors = gk_divided(how->length, gk_vector_width(dtype));
    const bool wide = gk_dtype_size(dtype) > GK_WORD;
    if (wide && (gk_are_cached(how, dtype) || vectors > (ragged ? MOST_WIDE_RAGGED : MOST_WIDE)))
        return false;
    if (fill_other_turns(how, vectors))
        return false;
    return ragged ? vectors >= LEAST_RAGGED
                  : vectors >= LEAST && 2 * vectors >= (size_t)LEAST_HALF_STEPS * how->lanes;
}

bool gk_plan_between(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    gk_reduce_plan made = *plan;
    gk_reduction *how = &made.how;
    const size_t size = gk_dtype_size(array->dtype);
    const bool ragged = how->length % gk_vector_width(array->dtype) != 0;
    if (!plan->of_reals || plan->walk != GK_WALK_SHORT || plan->packed || plan->scattered ||
        !pays(how, array->dtype, ragged))
        return false;
    if (!gk_lie_as_matrices(array, reduced, how) || how->inner > 1 || how->apart != (int64_t)size ||
        are_sooner_brought(how, size))
        return false;
    const int64_t jump = how->bundle > 1 ? how->beyond - how->bundle * how->over : 0;
    const uintptr_t places = (uintptr_t)array->data | (uintptr_t)how->over;
    if (jump % GK_REDUCE_VECTOR_BYTES != 0 || (places % GK_REDUCE_VECTOR_BYTES == 0 && !ragged))
        return false;
    made.walk = GK_WALK_BETWEEN;
    made.pitched = true;
    *plan = made;
    return true;
}
