/* Matrices that are written along some axes and read along others, which several axes in a row may
   be on either side. */
#ifndef GK_MATRIX_AXES_H
#define GK_MATRIX_AXES_H

#include "engine/nest.h"
#include "transpose/copies.h"

/* The axis along which elements of an array lie closest, of those along which they differ. */
int gk_nearest_axis(const gk_nest *nest, int array);

/* Axes that are one run in an array, the nearest first. */
typedef struct gk_run_axes {
    int count, axis[GK_CHAIN_AXES];
    int64_t length;
} gk_run_axes;

bool gk_has_axis(const gk_run_axes *of, int axis);

/* Of the array that is written: the last axis, and those that follow it there. Of one that is read:
   an axis, and those that follow it there. None is of both. */
typedef struct gk_matrix_axes {
    gk_run_axes written, read;
} gk_matrix_axes;

gk_matrix_axes gk_matrix_axes_along(const gk_nest *nest, int array, int axis);

#endif
