/* Short rows of an array that is a run, of which a thread has as many as a vector has elements. */
#include "ops/reduce_shape.h"

enum {
    PLACES = GK_REDUCE_MULTIPROCESSORS * GK_REDUCE_RESIDENT * GK_REDUCE_THREADS, /* of threads */
};

/* Elements of the longest rows that are sooner taken so, where threads are enough for the device:
   fitted to 844 sums and maxima of 5 to 600 MB. Those of sums are parts of a vector, which a thread
   adds one after another in any plan. */
static size_t longest_row(size_t size, gk_result_of of) {
    static const uint8_t of_extremes[] = {22, 14, 3, 0}, of_sums[] = {0, 6, 3, 0};
    const int bits = __builtin_ctz((unsigned)size);
    return of == GK_EXTREME ? of_extremes[bits] : of_sums[bits];
}

bool gk_plan_own(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                 const gk_array *result, gk_result_of of) {
    gk_reduce_plan own = *plan;
    const gk_reduction *how = &own.how;
    const size_t width = gk_vector_width(array->dtype);
    const uintptr_t bits = (uintptr_t)array->data | (uintptr_t)result->data;
    if (how->length > longest_row(gk_dtype_size(array->dtype), of) || how->length % width == 0 ||
        how->length < 2 || how->outer * how->inner < PLACES * width) /* most ask no more */
        return false;
    if (result->dtype != array->dtype || bits % GK_REDUCE_VECTOR_BYTES != 0 ||
        !gk_is_contiguous(array) || !gk_lie_as_matrices(array, reduced, &own.how) || how->inner > 1)
        return false;
    own.walk = GK_WALK_OWN;
    own.pitched = true;
    own.packed = own.scattered = false;
    own.how.segments = 1;
    *plan = own;
    return true;
}
