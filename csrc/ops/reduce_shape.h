/* How a reduction over some axes of an array is laid out on the device. */
#ifndef GK_REDUCE_SHAPE_H
#define GK_REDUCE_SHAPE_H

#include "base/array.h"
#include "device/operations.h"
#include "layout.h"
#include "reduce/reduction.h"

enum {
    GK_REDUCE_TURNED = 1 << 20, /* bytes for which results may be put in order afterwards */
    GK_REDUCE_FOUND = 1 << 19,  /* elements that are soon found one by one, or joined with many */
    GK_REDUCE_FEW_ELEMENTS = 2048,   /* too few for a block of columns */
    GK_REDUCE_SCATTERED = 4 << 20,   /* bytes that are in the cache when they are read again, */
    GK_REDUCE_CACHED = 32 << 20,     /* or by another block */
    GK_REDUCE_LONE_ROW = 256,        /* vectors: of so many a warp has a row at a time */
    GK_REDUCE_OF_MEMORY = 64 << 20,  /* bytes, of which the cache keeps little */
    GK_REDUCE_MULTIPROCESSORS = 132, /* of the device that plans were fitted to */
};

/* It depends on the shape, the axes and the dtype alone, and so does the order of the additions. */
typedef struct gk_reduce_plan {
    gk_walk walk;       /* of the array as one run in memory */
    bool short_columns; /* see gk_plan_alone */
    bool packed;        /* a run has the kept axes in front of the reduced ones */
    bool scattered;     /* columns whose rows are no part of one run: kept axes lie between */
    gk_reduction how;   /* all of it that comes of the shape */
    bool pitched;       /* the elements lie as `how` says, each row a run */
    bool of_reals;      /* real numbers in their order: kernels take long rows by lines that are
                           listed, and short ones that lie between vectors */
    bool in_wider;      /* carried in a wider type than they are usually */
    bool gathered;      /* the elements lie as `layout` says, in the order of that run */
    gk_axes layout;
    int kept;         /* of a little array: that many axes of it, and behind them those reduced */
    bool across;      /* the same: neighbouring threads have neighbouring results */
    bool wide;        /* the same: a lane has a vector of these, */
    uint32_t between; /* or, above 0, so many whose rows begin anywhere; */
    uint32_t several; /* above 0, so many of those, or of single ones, that are apart */
    bool runs;        /* the same: lanes take elements as short rows' kernel does */
} gk_reduce_plan;

/* Axis i is reduced where bit i of `reduced` is set. */
static inline bool gk_is_reduced(uint64_t reduced, int axis) {
    return (reduced >> axis & 1) != 0;
}

/* Elements of a load. */
static inline size_t gk_vector_width(gk_dtype dtype) {
    return GK_REDUCE_VECTOR_BYTES / gk_dtype_size(dtype);
}

/* How elements are joined: their order changes nothing; to join costs much beside them; what is
   joined are words of a rank and a row's number, of which columns have many a load; they are
   real numbers whose order is kept, of which a kernel takes rows that lie between vectors; and they
   are carried in a wider type than usual. */
typedef struct gk_joining {
    bool any_order, heavy, ranked, of_reals, in_wider;
} gk_joining;

/* Of several operands the elements are taken together, and all of them make one result. Arrays of
   no less bytes than `vectors` are taken by vectors, however few their elements: the engine's
   limit.
 */
gk_reduce_plan gk_plan_reduction(const gk_array *array, uint64_t reduced, int operands,
                                 gk_joining joining, size_t vectors);

/* Where kept and reduced axes alternate in a large array: those reduced axes, next to one another,
   that are better reduced by a launch of their own, after which there is little left; 0: none.
   Where `any_order` does, also of axes that are next to one another and do not lie as one. */
uint64_t gk_reduced_first(const gk_array *array, uint64_t reduced, bool any_order);

/* The last axis before `end` that has several elements; -1: there is none. */
int gk_last_axis(const gk_array *array, int end);

/* Whether kept and reduced axes alternate, but of so few elements that a single launch finds them,
   one by one, sooner than two begin. */
bool gk_is_found_at_once(const gk_array *array, uint64_t reduced);

/* Whether kept and reduced axes alternate, but the array is better taken in one pass than by a
   launch first that leaves so many times less. */
bool gk_stays_whole(const gk_array *array, uint64_t reduced, size_t first);

/* Make it the plan for a part of the array that has fewer elements along kept axes; each result
   keeps its bits. */
void gk_plan_part(gk_reduce_plan *plan, const gk_array *part, uint64_t reduced);

static inline size_t gk_divided(size_t count, size_t by) {
    return (count + by - 1) / by;
}

/* Of all elements. */
static inline size_t gk_reduced_bytes(const gk_reduction *how, gk_dtype dtype) {
    return how->outer * how->length * how->inner * gk_dtype_size(dtype);
}

/* Blocks of columns, of one segment each. */
size_t gk_column_groups(const gk_reduction *how, gk_dtype dtype);

/* Blocks of columns that are runs. */
size_t gk_along_blocks(const gk_reduction *how);

size_t gk_plan_blocks(const gk_reduce_plan *plan, gk_dtype dtype);
size_t gk_plan_beside(const gk_reduce_plan *plan, gk_dtype dtype); /* rows of a block that lie so */
size_t gk_plan_arrivals(const gk_reduce_plan *plan, gk_dtype dtype); /* counters */
size_t gk_plan_partials(const gk_reduce_plan *plan);                 /* bytes */

/* Have an array, whose axes lie in another order in memory, be taken with its kept axes in that
   order, if the plan leaves each result its bits and there is something to gain: true, and that
   order. */
bool gk_plan_turned(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced, int *order);

/* Whether those of the axes (bit i of axis i) come one after another in that order as they do in
   the array. */
bool gk_come_in_order(const gk_array *array, uint64_t axes, const int *order);

/* Whether threads of neighbouring columns of so few rows use little of what memory moves for them.
 */
bool gk_are_columns_apart(const gk_array *array, uint64_t reduced, size_t rows);

/* Whether the rows that a block of columns is at lie so near one another that these use most of
   what memory moves, though axes come in another order there. */
bool gk_are_columns_near(const gk_reduce_plan *plan, const gk_array *array, uint64_t reduced);

/* Whether a run of so many columns fills a block of columns well enough to have its own. */
bool gk_fills_block(const gk_reduction *how, size_t columns, gk_dtype dtype);

/* The kept axes behind the last one that is reduced, as far as they are one run. */
uint64_t gk_run_axes(const gk_array *array, uint64_t reduced, size_t *columns);

/* The bits of the address and of all strides of a layout but that of one axis, or -1. */
uintptr_t gk_place_bits(const gk_array *array, const gk_axes *layout, int but);

/* Where the elements of one run in memory lie. */
void gk_plan_of_run(gk_reduction *how, gk_dtype dtype);

/* Have a kernel of runs take a view of one, if its rows are runs that lie evenly: true. */
bool gk_plan_pitched(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced);

/* Whether it is kept axes, reduced ones and kept ones, of which those in front lie evenly, or do in
   bundles, and the others evenly each: then where its elements lie. */
bool gk_lie_as_matrices(const gk_array *array, uint64_t reduced, gk_reduction *how);

/* What a result is: one of GK_PARTIAL is added to others yet, in a wider dtype. */
typedef enum gk_result_of { GK_TOTAL, GK_PARTIAL, GK_EXTREME, GK_INDEX } gk_result_of;

/* Have a thread take each of short columns by itself, where that is better than by vectors, for
   which the array is ready if it `is_run`: true. */
bool gk_plan_alone(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced, bool is_run,
                   gk_result_of of);

/* Have the kernel of little arrays take a large one whose axes lie in another order in memory, with
   the lanes and the order of additions of the plan, where it can and neighbours lie near then:
   true. */
bool gk_plan_lanes(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced);

/* Have a kernel take columns by tiles, whose loads are of neighbours in memory, where no other
   takes them as they lie and a copy would cost more: true, and the order of axes that it takes,
   kept ones in front. */
bool gk_plan_tiles(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced, int *order);

/* The same, of sums that keep to an order, along columns each of which is a run; `fetch_room`:
   the backend's. */
bool gk_plan_along(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced, size_t fetch_room,
                   int *order);

/* What blocks have of such columns, and how. */
void gk_plan_along_blocks(gk_reduction *how, gk_dtype dtype, size_t fetch_room);

/* Whether such columns are sooner gone along than their elements are loaded by as many threads:
   fitted to 640 drawn sums. */
bool gk_is_sooner_along(const gk_reduce_plan *plan, gk_dtype dtype, size_t bytes);

/* Have a kernel take columns by lists of where they and their rows lie, in the order of the plan:
   true. */
bool gk_plan_listed(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced);

/* The same of rows, where their order of additions is to be kept: of several that lie side by side,
   or by tiles of a single one. */
bool gk_plan_row_tiles(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced, int *order);

/* The same of rows that lie side by side as vectors of neighbours, which is sooner done than
   anything else. */
bool gk_plan_row_vectors(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced, int *order);

/* Have a kernel of sums take narrow columns where they lie, if their rows lie evenly, or do in
   groups: true. */
bool gk_plan_narrow(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced);

/* Columns of which the nearest neighbours lie apart: the array with what lies between them, where
   an axis has every `step`-th of those that it has then. Its last row may lack so many bytes at its
   end, which only the kernel of narrow columns does without. */
typedef struct gk_wider {
    gk_array array;
    int axis;
    int64_t step, columns; /* as many as there were */
    size_t lacking;
} gk_wider;

/* Whether columns are better taken so, by kernels that any order of elements serves. */
bool gk_plan_wider(const gk_array *array, uint64_t reduced, gk_wider *made);

/* Have the kernel of little matrices take the columns of those, with the order of additions of the
   plan, where they are runs and a block that brings several of them to shared memory is better:
   true. `any_order`: that order is none. */
bool gk_plan_matrices(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                      bool any_order);

/* Whether matrices, or rows, follow one another with little between, or nothing. */
bool gk_are_joined(const gk_reduction *how, size_t size);

/* Have a thread take several short rows of an array that is a run, one after another, where the
   order of additions leaves that, and it is sooner done: true. `result`: what comes of them, of an
   extreme where `of` says so, and otherwise of a sum. */
bool gk_plan_own(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                 const gk_array *result, gk_result_of of);

/* Have a kernel of real numbers take short rows that are runs and lie between vectors by aligned
   ones, with the lanes and the order of additions of the plan: true. */
bool gk_plan_between(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced);

/* Have the kernel find the elements where they lie, if it can and that is worth it: true. Else the
   array has to be made one run in memory, and its reduced axes the last ones where the plan says
   so; then the kernel has to find those. */
bool gk_plan_gathered(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced);
void gk_plan_packed(gk_reduce_plan *plan, const gk_array *packed);

/* Whether threads go down columns of a little array, or short ones, along two axes, or have several
   of a thread that begin anywhere: there is a kernel for these. */
bool gk_goes_scattered(const gk_reduce_plan *plan);

/* Have a thread take several columns of a little array, or short ones, side by side, where they are
   many: neighbours where the results, whose memory is known now, are vectors, and the elements too,
   or are of less than a word. */
void gk_plan_few(gk_reduce_plan *plan, const gk_array *array, const void *result, gk_result_of of);

/* How many neighbours that is, or 1, where it is none. */
static inline uint32_t gk_few_columns(gk_dtype dtype) {
    return GK_REDUCE_FEW_COLUMNS(gk_dtype_size(dtype));
}

/* What the kernel of a little array takes. */
gk_little gk_plan_little(const gk_reduce_plan *plan, const gk_reduction *how,
                         const gk_array *array);

/* The array with its axes in the order of outer x length x inner; `packed`: with the reduced ones
   behind all others. The same memory. */
gk_array gk_as_taken(const gk_array *array, uint64_t reduced, bool packed);

/* Axes [first, end) behind those that are there already, those merged that are one; false: they are
   too many for a layout. */
bool gk_append_axes(const gk_array *array, int first, int end, gk_axes *layout);

#endif
