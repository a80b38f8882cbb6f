/* Copies of matrices that change sides: by tiles, along one axis each way or several, or, of few
   lines, by weaving these. */
#ifndef GK_MATRICES_H
#define GK_MATRICES_H

#include "engine/call.h"
#include "engine/nest.h"

/* The axis of a nest along which elements of array 1, which is read, lie closest. */
int gk_source_axis(const gk_nest *nest);

/* Whether boxes of runs are better than what would move elements by themselves, or small ones by
   words. Of long rows that are the same on both sides there is nothing to change places. */
bool gk_are_runs_better(gk_call *call, const gk_nest *nest, int64_t size);

/* Where rows of the source do not run along the last axis but along this one: as matrices, if that
   is better than by boxes or elements; then it is `done`. `ran`: where the call wants to know the
   row, and has a say in it; else NULL. */
gk_status gk_copy_matrices(gk_call *call, gk_nest *nest, int axis, int64_t size, const gk_row **ran,
                           bool *done);

#endif
