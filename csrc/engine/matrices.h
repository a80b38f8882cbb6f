/* Copies of matrices that change sides: by tiles, along one axis each way or several, or, of few
   lines, by weaving these. */
#ifndef GK_MATRICES_H
#define GK_MATRICES_H

#include "engine/call.h"
#include "engine/nest.h"
#include "engine/rates.h"
#include "engine/run_boxes.h"

/* What boxes of runs move a second (`engine/rates.h`), and which, once it was asked for: it takes
   some microseconds to find out. */
typedef struct gk_runs {
    bool is_known;
    double rate; /* 0: they do not come into question */
    gk_run_boxes boxes;
} gk_runs;

double gk_rate_by_runs(gk_call *call, const gk_nest *nest, int64_t size, gk_runs *runs);

/* What moves an array's elements where neither tiles nor boxes of runs do; `are_boxed`: they go by
   boxes of elements then. */
gk_without_runs gk_way_without_runs(const gk_nest *nest, int64_t size, bool are_boxed);

/* What is moved a second in another way, where boxes of runs are not better. */
double gk_rate_beside_runs(gk_call *call, const gk_nest *nest, int64_t size, gk_without_runs way);

/* Whether a copy is done, or else what is to be tried. */
typedef enum gk_moved { GK_MOVED, GK_MOVED_BY_NONE, GK_SOONER_BY_RUNS } gk_moved;

/* Where rows of the source do not run along the last axis but along this one: as matrices, if that
   is better than by boxes or elements. `ran`: where the call wants to know the row, and has a say
   in it; else NULL. */
gk_status gk_copy_matrices(gk_call *call, gk_nest *nest, int axis, int64_t size, gk_runs *runs,
                           const gk_row **ran, gk_moved *moved);

#endif
