/* Columns with gaps between them, taken with what lies there: it comes in the same sectors, and
   columns side by side are taken by vectors. Their results are left where nobody asks for them. */
#include "ops/reduce_shape.h"

enum {
    LEAST_ROWS = 16,       /* of a column, beside which a result more is little */
    LEAST_BYTES = 1 << 20, /* of all, beside which a second launch is */
    MOST_STEP = 4,         /* elements from one column to the next */
    MOST_TOGETHER = 16,    /* columns of which whole rows are taken, gaps behind them too, */
    MOST_WASTE = 4,        /* of so many elements for one */
};

/* The last axis from `end` down with several elements; -1: there is none. */
static int last_axis(const gk_array *array, int end) {
    int axis = end - 1;
    while (axis >= 0 && array->shape[axis] == 1)
        axis--;
    return axis;
}

/* Whether the axes up to this one are one run of what lies along it. */
static bool are_run_up_to(const gk_array *array, int axis) {
    int64_t beyond = array->strides[axis] * array->shape[axis];
    for (int i = axis - 1; i >= 0; i--) {
        if (array->shape[i] == 1)
            continue;
        if (array->strides[i] != beyond)
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
    const int axis = last_axis(array, array->ndim), before = last_axis(array, axis);
    if (before < 0 || gk_is_reduced(reduced, axis) || rows_of(array, reduced) < LEAST_ROWS)
        return false;
    const int64_t step = array->strides[axis] / size, row = array->strides[before] / size;
    const int64_t reach = (array->shape[axis] - 1) * step + 1;
    if (array->strides[axis] % size != 0 || array->strides[before] % size != 0 || step < 1 ||
        step > MOST_STEP || row < reach)
        return false;
    const bool together = row > array->shape[axis] && row <= MOST_TOGETHER &&
                          row <= MOST_WASTE * array->shape[axis] && are_run_up_to(array, before);
    if (!together && step == 1)
        return false;
    *made = (gk_wider){.array = *array, .axis = axis, .step = step};
    made->columns = array->shape[axis];
    made->array.shape[axis] = together ? row : reach;
    made->array.strides[axis] = size;
    made->lacking = together ? (size_t)((row - reach) * size) : 0;
    return gk_bytes(&made->array) >= LEAST_BYTES;
}
