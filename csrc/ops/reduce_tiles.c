/* Reductions of arrays whose axes lie in another order in memory, by tiles, down columns or along
   rows: which order of kept axes has a tile's loads be of neighbours. */
#include "ops/reduce_shape.h"

#include "engine/nest.h"

#include <stdlib.h>
#include <string.h>

enum {
    WARP = 32, /* threads */
    /* Times less than what is moved is used, and a copy is no better: the rest is of rows that are
       read at the same time, or is read again at another. */
    LEAST_OF_KEPT = 4,
    LEAST_OF_REDUCED = 2,
    FEW_BESIDE = 4,          /* rows, which would leave most of a block idle */
    SMALL_BESIDE = 2 << 20,  /* bytes, which are as soon found one by one */
    SMALL_ROW = 8192,        /* elements */
    LEAST_BESIDE = 132,      /* blocks of rows side by side: of fewer each is through too late, */
    LEAST_OF_VECTORS = 60,   /* or of those that have vectors of them: */
    LARGE_BESIDE = 32 << 20, /* bytes, */
    LITTLE_BESIDE = 4 << 20, /* or so many of halves, */
    LONG_BESIDE = 400,       /* of which a row has as many; */
    LEAST_VECTORS = 4,       /* in a row, */
    MOST_IN_FOUR = 3,        /* and rows, more than that in places for four */
    LEAST_ALONG = 128, /* bytes of a column that is a run, or neighbours are better read together */
    LEAST_BEHIND_WIDE = 2, /* elements of 8 bytes behind the nearest axis: a copy costs more */
    ROWS_AT_ONCE = 16,
    LEAST_LINE = 4, /* vectors of elements of 4 bytes, of which tiles are filled ahead; else one */
};

#define BETTER 1.5 /* times more of it used: results have to be put in order afterwards */

/* Used of what is moved, and less is not worth it: by tiles of a long row, where a copy is sooner
   (fitted to 460 sums of 4 to 700 MB on an H200), by threads of neighbouring columns of few rows
   (230 sums), or of the rows of narrow columns that are loaded at a time (160). */
static const double LEAST_OF_ROW = 0.8, LEAST_OF_COLUMNS = 0.4, LEAST_OF_NARROW = 0.45;

/* And more, of so many rows that a block is at, and no tile is needed: fitted to 55 sums of a
   thousand turned ones each way. */
static const double LEAST_OF_LISTED = 0.5;

/* A tile of the array with its axes in some order, of `kept` results by `reduced` elements. */
typedef struct tile {
    int order[GK_MAX_DIMENSIONS];
    size_t kept, reduced;
    bool is_turned; /* kept axes are in the order of memory */
    double used;    /* of the bytes that its loads move */
    int near;       /* its axis along which memory is nearest; -1: it is a single element */
    int nearest;    /* the array's */
} tile;

static size_t product(const gk_array *array, const int *order, int first, int end) {
    size_t count = 1;
    for (int i = first; i < end; i++)
        count *= (size_t)array->shape[order[i]];
    return count;
}

static int count_kept(const gk_array *array, uint64_t reduced) {
    int kept = 0;
    for (int i = 0; i < array->ndim; i++)
        kept += !gk_is_reduced(reduced, i);
    return kept;
}

/* Kept axes, as they come or as they lie in memory, and then reduced ones as they come. */
static void order_axes(const gk_array *array, uint64_t reduced, bool turned, int *order) {
    int lies[GK_MAX_DIMENSIONS], next = 0;
    gk_order_axes(array, lies);
    for (int i = 0; i < array->ndim; i++) {
        const int axis = turned ? lies[i] : i;
        if (!gk_is_reduced(reduced, axis))
            order[next++] = axis;
    }
    for (int i = 0; i < array->ndim; i++)
        if (gk_is_reduced(reduced, i))
            order[next++] = i;
}

/* How far `count` elements in the order of axes [first, end) reach along each of them. */
static void reach(const gk_array *array, const int *order, int first, int end, size_t count,
                  int64_t *along) {
    for (int i = end - 1; i >= first; i--) {
        const size_t length = (size_t)array->shape[order[i]];
        along[order[i]] = (int64_t)(length < count ? length : count);
        count = count / length > 1 ? count / length : 1;
    }
}

/* The share of the sectors that a tile's elements lie in, beside what the whole array's would be.
 */
static void measure(const gk_array *array, int kept, tile *of) {
    int64_t along[GK_MAX_DIMENSIONS], used = 1, all = 1, span, whole;
    int lies[GK_MAX_DIMENSIONS];
    span = whole = (int64_t)gk_dtype_size(array->dtype);
    reach(array, of->order, 0, kept, of->kept, along);
    reach(array, of->order, kept, array->ndim, of->reduced, along);
    gk_order_axes(array, lies);
    of->near = of->nearest = -1;
    for (int i = array->ndim - 1; i >= 0; i--) {
        const int axis = lies[i];
        const int64_t stride = llabs(array->strides[axis]);
        if (array->shape[axis] == 1 || stride == 0)
            continue;
        of->nearest = of->nearest < 0 ? axis : of->nearest;
        if (of->near < 0 && along[axis] > 1)
            of->near = axis;
        if (stride >= GK_SECTOR)
            break;
        used *= along[axis];
        all *= array->shape[axis];
        span += stride * (along[axis] - 1);
        whole += stride * (array->shape[axis] - 1);
    }
    span = span < GK_SECTOR ? GK_SECTOR : span;
    whole = whole < GK_SECTOR ? GK_SECTOR : whole;
    of->used = (double)used / (double)span / ((double)all / (double)whole);
}

/* A tile of so many, its kept axes as they come, or, `turned`, as they lie. */
static tile tile_of(const gk_array *array, uint64_t reduced, bool turned, size_t kept,
                    size_t along) {
    tile made = {.kept = kept, .reduced = along, .is_turned = turned};
    order_axes(array, reduced, turned, made.order);
    measure(array, count_kept(array, reduced), &made);
    return made;
}

bool gk_are_columns_apart(const gk_array *array, uint64_t reduced, size_t rows) {
    return tile_of(array, reduced, false, GK_REDUCE_THREADS, rows).used < LEAST_OF_COLUMNS;
}

bool gk_are_columns_near(const gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    const size_t inner = plan->how.inner;
    const size_t columns = inner < WARP ? inner : WARP;
    return tile_of(array, reduced, false, columns, ROWS_AT_ONCE).used >= LEAST_OF_LISTED;
}

/* Kept axes as they come, `inner` of them in a tile at most, or as they lie where that is better.
 */
static tile choose(const gk_array *array, uint64_t reduced, size_t kept, size_t inner,
                   size_t along) {
    const tile straight = tile_of(array, reduced, false, kept > inner ? inner : kept, along);
    const tile turned = tile_of(array, reduced, true, kept, along);
    return turned.used > straight.used * BETTER ? turned : straight;
}

/* The array with its axes in an order, and strides in elements. */
static gk_array in_order(const gk_array *array, const int *order) {
    const int64_t size = (int64_t)gk_dtype_size(array->dtype);
    gk_array moved = *array;
    for (int i = 0; i < array->ndim; i++) {
        moved.shape[i] = array->shape[order[i]];
        moved.strides[i] = array->strides[order[i]] / size;
    }
    return moved;
}

/* Whether loads take elements whole. */
static bool are_whole(const gk_array *array) {
    uintptr_t bits = (uintptr_t)array->data;
    for (int i = 0; i < array->ndim; i++)
        bits |= (uintptr_t)array->strides[i];
    return bits % gk_dtype_size(array->dtype) == 0;
}

/* Whether they do, and 32 bits count how far elements are apart. */
static bool are_counted(const gk_array *array) {
    const int64_t size = (int64_t)gk_dtype_size(array->dtype);
    int64_t room = INT32_MAX;
    if (gk_count(array) == 0 || gk_count(array) > INT32_MAX)
        return false;
    for (int i = 0; i < array->ndim; i++) {
        const int64_t steps = array->shape[i] - 1, stride = llabs(array->strides[i]) / size;
        if (steps > 0 && stride > room / steps)
            return false;
        room -= stride * (steps > 0 ? steps : 0);
    }
    return are_whole(array);
}

/* The layout, of kept axes and reduced ones. False: there are too many, or nothing is reduced. */
static bool lay_out(gk_reduce_plan *plan, const gk_array *array, int kept, const tile *of) {
    gk_reduction *how = &plan->how;
    gk_axes *layout = &plan->layout;
    const gk_array lies = in_order(array, of->order);
    int outer = 0; /* kept axes in front of all that is reduced, as they come */
    while (!of->is_turned && outer < kept && product(array, of->order, 0, outer) < how->outer)
        outer++;
    *layout = (gk_axes){0};
    if (!gk_append_axes(&lies, 0, outer, layout))
        return false;
    how->outer_axes = (uint8_t)layout->ndim;
    if (!gk_append_axes(&lies, outer, kept, layout))
        return false;
    how->kept_axes = (uint8_t)layout->ndim;
    return gk_append_axes(&lies, kept, lies.ndim, layout) && layout->ndim > how->kept_axes;
}

static bool describe(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                     const tile *of) {
    gk_reduction *how = &plan->how;
    if (!lay_out(plan, array, count_kept(array, reduced), of))
        return false;
    how->reach = (int64_t)gk_dtype_size(array->dtype);
    for (int i = 0; i < array->ndim; i++)
        if (array->strides[i] > 0)
            how->reach += array->strides[i] * (array->shape[i] - 1);
    how->tiles = GK_REDUCE_TILED;
    if (of->near >= 0 && gk_is_reduced(reduced, of->near))
        how->tiles |= GK_REDUCE_DOWN;
    if (how->kept_axes == how->outer_axes + 1 && plan->layout.axis[how->outer_axes].stride == 1)
        how->tiles |= GK_REDUCE_STRAIGHT;
    if (of->is_turned) {
        how->inner *= how->outer;
        how->outer = 1;
    }
    return true;
}

/* Rows that are several runs each become those of matrices that are one, which need no tile. */
static void split_runs(gk_reduce_plan *plan, gk_dtype dtype) {
    gk_reduction *how = &plan->how;
    const int last = how->kept_axes - 1;
    const size_t run = plan->layout.axis[last < 0 ? 0 : last].length.value;
    if (last <= how->outer_axes || plan->layout.axis[last].stride != 1 ||
        !gk_fills_block(how, run, dtype))
        return;
    how->outer = how->outer * how->inner / run;
    how->inner = run;
    how->outer_axes = (uint8_t)last;
    how->tiles |= GK_REDUCE_STRAIGHT;
}

/* Whether another kernel finds the elements as soon: of a large array where rows lie evenly, in
   lines that are long enough for vectors. */
static bool are_found(const gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    const size_t size = gk_dtype_size(array->dtype), width = gk_vector_width(array->dtype);
    gk_reduce_plan found = *plan;
    const gk_axes *layout = &found.layout;
    if (!gk_plan_gathered(&found, array, reduced))
        return false;
    return gk_bytes(array) <= GK_REDUCE_SCATTERED ||
           (found.how.apart != 0 &&
            layout->axis[layout->ndim - 1].length.value >= (size == 4 ? LEAST_LINE : 1) * width);
}

/* The plan becomes what has been made of it, and the axes are taken in the order of that: true. */
static bool settle(gk_reduce_plan *plan, const gk_reduce_plan *made, const tile *of, int *order) {
    *plan = *made;
    plan->gathered = true;
    memcpy(order, of->order, sizeof of->order);
    return true;
}

/* Whether columns are runs that threads go along. */
static bool lie_along(const gk_reduce_plan *plan, gk_dtype dtype) {
    const gk_reduction *how = &plan->how;
    const gk_axes *layout = &plan->layout;
    return layout->ndim == how->kept_axes + 1 && layout->axis[how->kept_axes].stride == 1 &&
           how->length * gk_dtype_size(dtype) >= LEAST_ALONG;
}

/* Whether columns are found by lists of rows, without tiles. */
static bool go_by_lists(const gk_reduce_plan *plan) {
    return plan->short_columns && plan->scattered;
}

/* Whether all threads of a block have the same matrix, and no more than so many of its columns. */
static bool have_blocks(const gk_reduction *how, gk_dtype dtype, size_t most) {
    return 1 << how->group == GK_REDUCE_COLUMN_THREADS &&
           how->lanes * gk_vector_width(dtype) <= most;
}

bool gk_plan_along(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced, size_t fetch_room,
                   int *order) {
    gk_reduce_plan along = *plan;
    tile of = {.near = -1}; /* what of a tile's loads is used does not matter: there is none */
    if (plan->walk != GK_WALK_COLUMNS || plan->how.narrow || go_by_lists(plan) ||
        !have_blocks(&plan->how, array->dtype, GK_REDUCE_ALONG_COLUMNS) || !are_counted(array))
        return false;
    order_axes(array, reduced, false, of.order);
    if (!describe(&along, array, reduced, &of) || !lie_along(&along, array->dtype))
        return false;
    gk_plan_along_blocks(&along.how, array->dtype, fetch_room);
    return settle(plan, &along, &of, order);
}

/* Whether what a tile's loads move beside its elements is of columns that other blocks read at the
   same time: neighbours in memory are kept, as far as a sector goes. */
static bool is_soon_read(const gk_array *array, uint64_t reduced, int nearest) {
    return nearest >= 0 && !gk_is_reduced(reduced, nearest) &&
           array->shape[nearest] * (int64_t)gk_dtype_size(array->dtype) >= GK_SECTOR;
}

bool gk_plan_tiles(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced, int *order) {
    gk_reduce_plan tiles = *plan;
    const size_t wide = plan->how.lanes * gk_vector_width(array->dtype);
    const bool whole = have_blocks(&plan->how, array->dtype, GK_REDUCE_TILE_COLUMNS);
    const bool lists = go_by_lists(plan);
    if (plan->walk != GK_WALK_COLUMNS || plan->how.narrow || !(whole || lists) ||
        !are_counted(array))
        return false;
    if (are_found(plan, array, reduced))
        return false;
    const tile of =
        choose(array, reduced, wide, plan->how.inner,
               (size_t)GK_REDUCE_COLUMN_THREADS / plan->how.lanes * GK_REDUCE_COLUMN_LOADS);
    if (of.used * (is_soon_read(array, reduced, of.nearest) ? LEAST_OF_KEPT : LEAST_OF_REDUCED) <
            1 ||
        !describe(&tiles, array, reduced, &of))
        return false;
    split_runs(&tiles, array->dtype);
    if (lists && !(tiles.how.tiles & GK_REDUCE_STRAIGHT))
        return false;
    return settle(plan, &tiles, &of, order);
}

/* Rows that are read one soon after another, so that what one leaves of a sector is there for the
   next: all of an array that the cache holds; else so many of each segment as it holds of all, with
   a sector for each element. */
static size_t rows_soon_read(const gk_reduction *how, const gk_array *array) {
    if (gk_bytes(array) <= GK_REDUCE_CACHED)
        return how->length;
    const size_t held = GK_REDUCE_CACHED / (how->outer * how->segments * how->inner * GK_SECTOR);
    return held < 1 ? 1 : held < how->segment ? held : how->segment;
}

/* Whether narrow columns are runs of which threads have vectors: the rows that a block has side by
   side are whole ones of these. Of words a warp's single elements are as good, and whole lines. */
static bool go_down_in_vectors(const gk_reduce_plan *plan, gk_dtype dtype) {
    const gk_reduction *how = &plan->how;
    return gk_dtype_size(dtype) < GK_WORD && lie_along(plan, dtype) && how->group <= 1 &&
           how->lanes % how->inner == 0;
}

/* Whether neighbours in memory are kept, in front of an axis that is reduced: other blocks read
   them at the same time. */
static bool is_of_other_blocks(const gk_array *array, uint64_t reduced, int nearest) {
    bool before = false;
    for (int i = nearest + 1; i < array->ndim; i++)
        before = before || (gk_is_reduced(reduced, i) && array->shape[i] > 1);
    return nearest >= 0 && !gk_is_reduced(reduced, nearest) && before;
}

bool gk_plan_narrow(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    gk_reduce_plan narrow = *plan;
    const size_t inner = plan->how.inner, soon = rows_soon_read(&plan->how, array);
    const tile of = tile_of(array, reduced, false, inner, soon);
    const tile at_once = tile_of(array, reduced, false, inner, GK_REDUCE_TILE_ROWS);
    if (!are_counted(array) || of.used * LEAST_OF_KEPT < 1 ||
        (at_once.used < LEAST_OF_NARROW && !is_of_other_blocks(array, reduced, of.nearest)) ||
        !describe(&narrow, array, reduced, &of) || narrow.layout.ndim > narrow.how.kept_axes + 2)
        return false;
    narrow.gathered = true;
    narrow.how.tiles = go_down_in_vectors(&narrow, array->dtype)
                           ? GK_REDUCE_STRAIGHT
                           : narrow.how.tiles & GK_REDUCE_DOWN; /* no shared memory */
    *plan = narrow;
    return true;
}

/* lists ---------------------------------------------------------------------------------------- */

/* Whether 32 bits count how far columns of a row are from its first one. */
static bool are_columns_counted(const gk_reduce_plan *plan) {
    const gk_axes *layout = &plan->layout;
    int64_t far = 0;
    for (int i = plan->how.outer_axes; i < plan->how.kept_axes; i++)
        far += (layout->axis[i].length.value - 1) * llabs(layout->axis[i].stride);
    return far <= INT32_MAX;
}

/* Whether columns come in whole words, wherever their rows and matrices begin. */
static bool are_words(const gk_reduce_plan *plan, const gk_array *array) {
    const gk_axes *layout = &plan->layout;
    const int last = plan->how.kept_axes - 1;
    const size_t size = gk_dtype_size(array->dtype), each = size < 4 ? 4 / size : 1;
    uintptr_t bits = (uintptr_t)array->data / size;
    for (int i = 0; i < layout->ndim; i++)
        bits |= i == last ? 0 : (uintptr_t)layout->axis[i].stride;
    return last >= plan->how.outer_axes && layout->axis[last].stride == 1 &&
           (bits | layout->axis[last].length.value) % each == 0;
}

bool gk_plan_listed(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    gk_reduce_plan listed = *plan;
    tile of = {.near = -1}; /* there is none */
    order_axes(array, reduced, false, of.order);
    if (plan->walk != GK_WALK_COLUMNS || plan->how.narrow || gk_count(array) > INT32_MAX ||
        !are_whole(array) || !describe(&listed, array, reduced, &of) ||
        !are_columns_counted(&listed))
        return false;
    listed.gathered = true;
    listed.how.tiles = GK_REDUCE_LISTED;
    if (are_words(&listed, array))
        listed.how.tiles |= GK_REDUCE_STRAIGHT;
    *plan = listed;
    return true;
}

/* rows ----------------------------------------------------------------------------------------- */

/* Of rows side by side some elements each, or of one row many: what uses more of what it moves. */
static tile choose_rows(const gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                        bool *beside) {
    const size_t width = gk_vector_width(array->dtype);
    const bool is_short = plan->walk == GK_WALK_SHORT;
    const size_t lanes = is_short ? plan->how.lanes : WARP;
    const size_t rows = gk_plan_beside(plan, array->dtype);
    const tile several = choose(array, reduced, rows, rows, lanes * width);
    *beside = true;
    if (is_short)
        return several;
    const tile single = choose(array, reduced, 1, 1, GK_REDUCE_CHUNK_VECTORS * width);
    *beside = several.used > single.used && plan->how.outer >= FEW_BESIDE;
    return *beside ? several : single;
}

/* Kept axes, reduced ones as far as the nearest in memory, and those behind it. */
static bool lay_out_rows(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced, bool beside,
                         const tile *of) {
    gk_reduction *how = &plan->how;
    const gk_array lies = in_order(array, of->order);
    const int kept = count_kept(array, reduced);
    int split = kept;
    while (split < array->ndim && of->order[split] != of->nearest)
        split++;
    split = split < array->ndim ? split + 1 : array->ndim;
    plan->layout = (gk_axes){0};
    if (!gk_append_axes(&lies, 0, kept, &plan->layout))
        return false;
    how->kept_axes = (uint8_t)plan->layout.ndim;
    if (!gk_append_axes(&lies, kept, split, &plan->layout))
        return false;
    how->outer_axes = (uint8_t)plan->layout.ndim;
    const size_t behind = product(array, of->order, split, array->ndim);
    const size_t width = gk_vector_width(array->dtype);
    const size_t least = width > 2 ? GK_REDUCE_TILE_EACH : LEAST_BEHIND_WIDE;
    return gk_append_axes(&lies, split, array->ndim, &plan->layout) &&
           plan->layout.ndim > how->kept_axes &&
           (beside || (behind >= least && behind <= GK_REDUCE_CHUNK_COLUMNS));
}

/* Whether rows that lie side by side come in vectors of neighbours, their elements evenly apart. */
static bool are_in_vectors(const gk_reduce_plan *plan, const gk_array *array) {
    const gk_axes *layout = &plan->layout;
    const int near = plan->how.kept_axes - 1;
    const size_t width = gk_vector_width(array->dtype);
    uintptr_t bits = (uintptr_t)array->data / gk_dtype_size(array->dtype);
    if (near < 0 || layout->ndim != near + 2 || layout->axis[near].stride != 1)
        return false;
    for (int i = 0; i < layout->ndim; i++)
        bits |= i == near ? layout->axis[i].length.value : (uintptr_t)layout->axis[i].stride;
    return bits % width == 0;
}

/* Whether rows of a small array are better by tiles, in one launch, than found or copied: they are
   a block's each, and no vectors of two elements, which are as soon found. */
static bool are_small_tiles(const gk_reduce_plan *plan, gk_dtype dtype) {
    return plan->walk == GK_WALK_ROWS && plan->how.segments == 1 && gk_vector_width(dtype) > 2 &&
           plan->how.length <= SMALL_ROW;
}

/* What rows by tiles and rows side by side begin with; `beside`: they are the latter. */
static bool begin_rows(gk_reduce_plan *tiles, const gk_array *array, uint64_t reduced, tile *of,
                       bool *beside) {
    const bool is_short = tiles->walk == GK_WALK_SHORT;
    if ((tiles->walk != GK_WALK_ROWS && !is_short) || !are_counted(array))
        return false;
    if (gk_bytes(array) < GK_REDUCE_TURNED && !are_small_tiles(tiles, array->dtype))
        return false;
    *of = choose_rows(tiles, array, reduced, beside);
    /* Elements of 8 bytes cost more to copy: as long as that is in the cache it is not worth it. */
    const bool wide = gk_vector_width(array->dtype) == 2;
    const bool small = gk_bytes(array) < GK_REDUCE_OF_MEMORY;
    const double least = *beside || (wide && small) ? 1.0 / LEAST_OF_REDUCED : LEAST_OF_ROW;
    if (of->used < least || of->nearest < 0 || !lay_out_rows(tiles, array, reduced, *beside, of))
        return false;
    tiles->how.short_rows = is_short;
    tiles->how.lone_rows = false;
    const bool even = *beside && tiles->layout.ndim == tiles->how.kept_axes + 1;
    tiles->how.tiles =
        GK_REDUCE_TILED | (*beside ? GK_REDUCE_BESIDE : 0) | (even ? GK_REDUCE_EVEN : 0);
    return true;
}

/* Whether rows are worth vectors of neighbours, as far as can be told before it is known how they
   lie: of arrays that are in the cache, but for long ones of halves, and of very short ones, single
   elements are as good. */
static bool may_be_vectors(const gk_reduce_plan *plan, const gk_array *array) {
    const bool little = gk_dtype_size(array->dtype) < GK_WORD && gk_bytes(array) >= LITTLE_BESIDE &&
                        plan->how.length >= LONG_BESIDE;
    return (little || gk_bytes(array) >= LARGE_BESIDE) &&
           plan->how.length >= LEAST_VECTORS * gk_vector_width(array->dtype);
}

/* Whether vectors of rows fill blocks, and these a device. */
static bool fill_device(const gk_reduce_plan *plan, gk_dtype dtype) {
    const size_t rows = gk_plan_beside(plan, dtype);
    const size_t places = gk_divided(plan->how.outer, rows) * rows;
    return plan->how.outer * 4 > places * MOST_IN_FOUR &&
           gk_plan_blocks(plan, dtype) >= LEAST_OF_VECTORS;
}

bool gk_plan_row_vectors(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                         int *order) {
    gk_reduce_plan vectors = *plan;
    tile of;
    bool beside;
    if (!may_be_vectors(plan, array) || !begin_rows(&vectors, array, reduced, &of, &beside) ||
        !beside || !are_in_vectors(&vectors, array))
        return false;
    vectors.how.tiles |= GK_REDUCE_STRAIGHT;
    return fill_device(&vectors, array->dtype) && settle(plan, &vectors, &of, order);
}

bool gk_plan_row_tiles(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced, int *order) {
    gk_reduce_plan tiles = *plan;
    tile of;
    bool beside;
    if (!begin_rows(&tiles, array, reduced, &of, &beside) ||
        (beside &&
         (gk_bytes(array) < SMALL_BESIDE || gk_plan_blocks(&tiles, array->dtype) < LEAST_BESIDE)))
        return false;
    return settle(plan, &tiles, &of, order);
}
