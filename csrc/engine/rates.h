/* What ways of copying move a second, in GB of one side, as far as that tells which one to take:
   fitted to 430 works that chance made, each in all ways, on an H200
   (benchmarks/notes/any_shape.md). */
#ifndef GK_RATES_H
#define GK_RATES_H

#include "engine/nest.h"

enum {
    GK_FEW_IN_A_BANK = 2,   /* words of a warp: what else a box takes is longer */
    GK_BEST_OF_RUNS = 3500, /* what boxes of runs move at most */
};

/* The share of its tiles that a matrix fills. */
double gk_filled(int64_t rows, int64_t columns, const gk_row *row);

/* Tiles that are filled so far, of elements of so many bytes. `parts`: of sectors, which is what
   they write. */
double gk_rate_of_tiles(const gk_row *row, int64_t size, double filled, bool parts);

/* The same of those whose lines begin anywhere, of up to four bytes. `even`: lines are a step
   apart, and not listed. */
double gk_rate_of_ragged(int64_t size, double filled, bool even);

double gk_rate_of_boxes(int64_t size);

/* Elements found by themselves. `far`: what else a sector has is read long after. */
double gk_rate_of_elements(int64_t size, bool far);

/* And of so many bytes that the cache holds both sides: fitted to 5,100 timings of 0.5 to 16 MB. */
double gk_rate_of_cached_tiles(const gk_row *row, int64_t size, double filled, double bytes);
double gk_rate_of_cached_ragged(const gk_row *row, int64_t size, double filled, double bytes);

/* Boxes of runs: bytes of a run that is written, and of one that is read, and of a box, and the
   words that a warp reads at a time from one bank. Fitted to 5,000 works of 32 MB to 2 GB, as are
   those of what else there is for these. */
typedef struct gk_run_shape {
    int64_t written, read, bytes;
    int in_a_bank;
} gk_run_shape;

double gk_rate_of_runs(int64_t size, const gk_run_shape *shape);

typedef enum gk_without_runs {
    GK_BY_WEAVING,
    GK_BY_BOXES,
    GK_BY_FAR_ELEMENTS, /* single ones: all else that a sector has is read long after, */
    GK_FEW_SOON,        /* or nearly all, or three quarters of it, or half, */
    GK_QUARTER_SOON,
    GK_HALF_SOON,
    GK_ALL_LATER, /* or all of it soon, but many others in between, */
    GK_ALL_SOON,  /* or some, */
    GK_ALL_NEXT,  /* or none */
    GK_WITHOUT_RUNS
} gk_without_runs;

double gk_rate_without_runs(int64_t size, gk_without_runs way);

/* The same of single elements that the cache holds. */
double gk_rate_of_cached_elements(int64_t size, gk_without_runs way, double bytes);

/* Ragged tiles, as far as the memory has them move it: less where more of them are not filled. */
double gk_rate_of_ragged_beside_runs(int64_t size, double filled, bool even);

/* How many times as much of an array that is such a share of what leaves the cache before it is
   read again; boxes of runs as other boxes. */
double gk_rate_in_cache(int64_t size, gk_without_runs way, double share);

#endif
