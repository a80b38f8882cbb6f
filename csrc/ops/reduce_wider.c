/* Columns of small elements with gaps between them, taken with what lies there: it comes in the
   same sectors, and rows that are a run are taken by vectors. */
#include "ops/reduce_shape.h"

enum {
    LEAST_ROWS = 4096,     /* of a column, beside which results that nobody asks for are little */
    LEAST_BYTES = 1 << 20, /* of all, beside which a second launch is */
    MOST_WASTE = 4,        /* elements that are read for one */
};

/* Whether the axes up to this one are one run of what lies along it. */
static bool are_run_up_to(const gk_array *array, int axis) {
    int64_t beyond = array->strides[axis];
    for (int i = axis; i >= 0; i--) {
        if (array->shape[i] > 1 && array->strides[i] != beyond)
            return false;
        beyond *= array->shape[i];
    }
    return true;
}

static size_t rows_of(const gk_array *array, uint64_t reduced) {
    size_t rows = 1;
    for (int i = 0; i < array->ndim; i++)
        rows *= gk_is_reduced(reduced, i) ? (size_t)array->shape[i] : 1;
    return rows;
}

bool gk_plan_wider(const gk_array *array, uint64_t reduced, gk_wider *made) {
    const int64_t size = (int64_t)gk_dtype_size(array->dtype);
    const int axis = gk_last_axis(array, array->ndim), before = gk_last_axis(array, axis);
    if (size > 2 || before < 0 || gk_is_reduced(reduced, axis) ||
        rows_of(array, reduced) < LEAST_ROWS)
        return false;
    const int64_t apart = array->strides[axis], row = array->strides[before];
    const int64_t reach = (array->shape[axis] - 1) * apart + size;
    if (apart <= size || apart % size != 0 || row % size != 0 || row < reach ||
        row >= GK_REDUCE_VECTOR_BYTES || row > MOST_WASTE * size * array->shape[axis] ||
        !are_run_up_to(array, before))
        return false;
    *made = (gk_wider){.array = *array, .axis = axis, .step = apart / size};
    made->columns = array->shape[axis];
    made->array.shape[axis] = row / size;
    made->array.strides[axis] = size;
    made->lacking = (size_t)(row - reach);
    return gk_bytes(&made->array) >= LEAST_BYTES;
}
