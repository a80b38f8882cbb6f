/* How columns are shared out among blocks, which are of three kinds, and among their threads. */
#ifndef GK_REDUCE_COLUMNS_H
#define GK_REDUCE_COLUMNS_H

#include "ops/reduce_shape.h"

/* To change one changes the bits of results. */
enum {
    GK_REDUCE_WARP = 32,           /* threads */
    GK_REDUCE_LEAST_LANES = 8,     /* of a block of columns: 128 bytes of a row */
    GK_REDUCE_SHORT_COLUMN = 64,   /* rows: a thread goes down a column, and nothing is joined */
    GK_REDUCE_NO_CACHE = 48 << 20, /* bytes of short columns that are turned also where runs are
                                      narrow, of short rows that want long runs, and of columns
                                      that want wide blocks */
};

/* Whether the whole array is in the cache when it is read again. */
static inline bool gk_are_cached(const gk_reduction *how, gk_dtype dtype) {
    return gk_reduced_bytes(how, dtype) < GK_REDUCE_NO_CACHE;
}

/* The kinds of blocks. */
typedef enum gk_column_blocks {
    GK_COLUMNS_NONE,    /* matrices so little that each column is taken as a row */
    GK_COLUMNS_WIDE,    /* vectors side by side, each of as many columns as it holds */
    GK_COLUMNS_STACKED, /* several little matrices, each by part of a warp */
    GK_COLUMNS_NARROW,  /* vectors that are whole rows together */
} gk_column_blocks;

gk_column_blocks gk_choose_column_blocks(const gk_reduce_plan *plan, const gk_array *array,
                                         uint64_t reduced, gk_joining joining);

void gk_plan_columns(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                     gk_joining joining, gk_column_blocks blocks);

/* Whether columns that may be joined in any order are no runs: the kernel that finds each element
   is better with fewer, wider blocks. The order of those that keep one may not come of where they
   lie. */
bool gk_are_columns_found(const gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                          gk_joining joining);

/* Whether rows of bytes or halves begin anywhere in a word, but all of a thread's at the same place
   of one, and hardly more blocks are needed where threads begin at words. */
bool gk_are_columns_shifted(const gk_reduction *how, gk_dtype dtype);

/* Have partial results of segments be joined so many at a time as takes the least time. */
void gk_plan_branches(gk_reduction *how, gk_dtype dtype);

/* The least power of two that is not less, but no more than `most`. */
static inline uint16_t gk_lanes_for(size_t vectors, uint32_t most) {
    uint32_t lanes = 1;
    while (lanes < vectors && lanes < most)
        lanes *= 2;
    return (uint16_t)lanes;
}

/* Segments of `multiple` elements or a multiple of them, about as many as are asked for; of columns
   without an element one that is empty. */
static inline void gk_cut(gk_reduction *how, size_t wanted, size_t least, size_t multiple) {
    how->segment = gk_divided(gk_divided(how->length, wanted), multiple) * multiple;
    least = least > 0 ? least : 1;
    if (how->segment < least)
        how->segment = least;
    how->segments = gk_divided(how->length, how->segment);
}

#endif
