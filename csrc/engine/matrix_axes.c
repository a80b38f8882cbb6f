#include "engine/matrix_axes.h"

#include <stdlib.h>

enum { LONG_RUN = 512 }; /* elements, of which tiles along a run are filled well enough */

int gk_nearest_axis(const gk_nest *nest, int array) {
    const int64_t *stride = nest->stride[array];
    int nearest = nest->ndim - 1;
    for (int i = 0; i < nest->ndim; i++)
        if (stride[i] != 0 && (stride[nearest] == 0 || llabs(stride[i]) < llabs(stride[nearest])))
            nearest = i;
    return nearest;
}

bool gk_has_axis(const gk_run_axes *of, int axis) {
    for (int i = 0; i < of->count; i++)
        if (of->axis[i] == axis)
            return true;
    return false;
}

/* Make a run as long as some tiles, by axes that the other one does not have. */
static void lengthen(const gk_nest *nest, int array, const gk_run_axes *other, gk_run_axes *of) {
    for (int i = nest->ndim - 1; i >= 0; i--) {
        const int end = of->axis[of->count - 1];
        if (of->count == GK_CHAIN_AXES || of->length >= LONG_RUN)
            return;
        if (gk_has_axis(of, i) || gk_has_axis(other, i) ||
            nest->stride[array][i] != nest->stride[array][end] * nest->shape[end])
            continue;
        of->axis[of->count++] = i;
        of->length *= nest->shape[i];
        i = nest->ndim; /* what was passed over may follow now */
    }
}

gk_matrix_axes gk_matrix_axes_along(const gk_nest *nest, int array, int axis) {
    const int last = nest->ndim - 1;
    gk_matrix_axes of = {.written = {1, {last}, nest->shape[last]},
                         .read = {1, {axis}, nest->shape[axis]}};
    lengthen(nest, 0, &of.read, &of.written);
    lengthen(nest, array, &of.written, &of.read);
    return of;
}
