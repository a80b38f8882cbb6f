#include "ops/reduce_shape.h"

#include "engine/nest.h"

#include <stdlib.h>

/* Enough blocks to fill a device, few enough partial results for one block to join. To change one
   changes the bits of results. */
enum {
    WARP = 32,     /* threads */
    ALONE = 16384, /* elements that one block is through with before a second one has begun */
    LEAST_SEGMENT = 4096,   /* elements of a row */
    PLACES = 528,           /* of blocks of rows at a time, on a device of 132 multiprocessors */
    ENOUGH_BLOCKS = 512,    /* of columns */
    SMALL = 4 << 20,        /* bytes in which blocks of columns are made narrow to be many */
    FEW_TILES = 4,          /* of a column: joining segments takes longer than one after another */
    LEAST_LANES = 8,        /* of such a block: 128 bytes of a row */
    TINY_ROW = 32,          /* vectors: a block would be idle */
    SHORT_ROW = 1024,       /* vectors: a warp does it where there are enough rows */
    MANY_ROWS = 1000,       /* rows that are enough */
    BUSY_ROWS = 1 << 13,    /* for a device to be busy with several a warp */
    BUSY_LANES = 1 << 18,   /* all that a device has to be busy with */
    SHORT_COLUMN = 64,      /* rows: a thread goes down a column, and nothing has to be joined */
    ALONE_BYTES = 48 << 20, /* up to which a thread an element is as soon through as vectors, */
    ALONE_HALF_BYTES = 8 << 20, /* of which more is in one */
    RESULT_COST = 4,            /* vectors, where a result costs as much as so many elements */
    MANY_RESULTS = 1 << 20,
    LITTLE = 1 << 20,           /* elements that instructions cost more than the memory does */
    LITTLE_PACKED = 1 << 19,    /* the same, where each has to be found, or joined with many */
    LITTLE_WIDE_ROWS = 1 << 17, /* the same, of rows that are vectors of two elements */
    LITTLE_LENGTH = 8192,   /* of them for a result: as many as one block is soon through with */
    LITTLE_COLUMN = 1024,   /* the same, of neighbouring results */
    LITTLE_ROW = 512,       /* the same, where vectors hold more of them */
    LITTLE_HEAVY = 6 << 20, /* elements, where what is done with each of them is much */
    LITTLE_RESULTS = 16384,
    LONG_COLUMN = 128, /* of such */
    EACH = 8,          /* elements for a lane, */
    EACH_OF_MANY = 16, /* of more than LITTLE_PACKED, */
    EACH_OF_MOST = 64, /* and of the most that are little: neighbours are read as well */
    MANY = 4 << 20,
    FEW = 2048,                /* elements that are too few for a block of columns */
    NARROW = 2,                /* times less columns than a vector has: of these by vectors, too */
    STAGED = 1 << 20,          /* bytes for which a launch more is little */
    STAGE = 4,                 /* times less that the launch leaves */
    COLUMN_PLACES = 792,       /* of blocks of columns at a time, on the same device */
    SCATTERED = 4 << 20,       /* bytes that are in the cache when they are read again */
    FEW_BLOCKS = 64,           /* that leave a device idle */
    LINE = 8,                  /* elements near one another that are worth a load */
    NEAR = 32,                 /* bytes: what memory is read by */
    LONGEST_SEGMENT = 1 << 20, /* bytes, of an array that is a single row: half of a chunk */
};

#define NO_STRIDE INT64_MIN

static size_t divided(size_t count, size_t by) {
    return (count + by - 1) / by;
}

static size_t vector_width(gk_dtype dtype) {
    return GK_REDUCE_VECTOR_BYTES / gk_dtype_size(dtype);
}

/* The least power of two that is not less, but no more than `most`. */
static uint32_t lanes_for(size_t vectors, uint32_t most) {
    uint32_t lanes = 1;
    while (lanes < vectors && lanes < most)
        lanes *= 2;
    return lanes;
}

/* Outer x length x inner, or false where kept and reduced axes alternate more than that. */
static bool merge_axes(const gk_array *array, uint64_t reduced, gk_reduction *how) {
    bool behind = false, simple = true; /* behind the last reduced axis so far */
    how->outer = how->length = how->inner = 1;
    for (int i = 0; i < array->ndim; i++) {
        size_t length = (size_t)array->shape[i];
        if (length == 1)
            continue;
        if (gk_is_reduced(reduced, i)) {
            simple = simple && how->inner == 1;
            behind = true;
            how->length *= length;
        } else if (behind) {
            how->inner *= length;
        } else {
            how->outer *= length;
        }
    }
    return simple;
}

/* Segments of `multiple` elements or a multiple of them, about as many as are asked for. */
static void cut(gk_reduction *how, size_t wanted, size_t least, size_t multiple) {
    how->segment = divided(divided(how->length, wanted), multiple) * multiple;
    if (how->segment < least)
        how->segment = least;
    how->segments = divided(how->length, how->segment);
}

/* A single row is shared out evenly, with a segment for each place; of several rows each by itself,
   so there are twice as many, for the places that would be left over at the end. */
static void plan_rows(gk_reduction *how, gk_dtype dtype) {
    size_t vectors = GK_REDUCE_THREADS * vector_width(dtype), tile = GK_REDUCE_LOADS * vectors;
    size_t wanted = how->outer > 1 ? 2 * PLACES / how->outer : PLACES;
    size_t longest = LONGEST_SEGMENT / gk_dtype_size(dtype);
    if (how->outer == 1 && divided(how->length, longest) > wanted)
        wanted = divided(how->length, longest);
    cut(how, wanted > 0 ? wanted : 1, tile > LEAST_SEGMENT ? tile : LEAST_SEGMENT, vectors);
    if (how->length <= ALONE) {
        how->segment = ALONE;
        how->segments = 1;
    }
}

/* Vectors side by side in a block of columns. A warp's, so that it reads long runs of each row;
   more where columns are so short that a thread loads a whole one at once; fewer where a small
   array would leave the device idle. */
static uint32_t column_lanes(const gk_reduction *how, size_t vectors, size_t bytes) {
    const uint32_t threads = GK_REDUCE_COLUMN_THREADS;
    uint32_t lanes = WARP;
    while (lanes < threads && threads / lanes / 2 * GK_REDUCE_COLUMN_LOADS >= how->length &&
           how->outer * divided(vectors, 2 * (size_t)lanes) >= ENOUGH_BLOCKS)
        lanes *= 2;
    while (lanes > LEAST_LANES && bytes < SMALL &&
           how->outer * divided(vectors, lanes) < ENOUGH_BLOCKS / 2 &&
           threads / lanes * 2 <= how->length)
        lanes /= 2;
    return lanes_for(vectors, lanes);
}

/* Blocks of columns, of one segment each. */
static size_t column_groups(const gk_reduction *how, gk_dtype dtype) {
    size_t stacked = GK_REDUCE_COLUMN_THREADS >> how->group;
    return divided(how->outer, stacked) * divided(how->inner, how->lanes * vector_width(dtype));
}

static void plan_columns(gk_reduction *how, gk_dtype dtype) {
    size_t bytes = how->outer * how->length * how->inner * gk_dtype_size(dtype);
    how->group = (uint8_t)__builtin_ctz(GK_REDUCE_COLUMN_THREADS);
    how->lanes = column_lanes(how, divided(how->inner, vector_width(dtype)), bytes);
    size_t groups = column_groups(how, dtype), most = 2 * COLUMN_PLACES;
    size_t tile = GK_REDUCE_COLUMN_THREADS / how->lanes * GK_REDUCE_COLUMN_LOADS;
    bool fills = groups >= ENOUGH_BLOCKS / 2 && how->length <= FEW_TILES * tile;
    cut(how, groups > 0 && groups < most && !fills ? most / groups : 1, tile, tile);
}

/* Matrices so little that a block would be idle. */
static bool are_matrices_little(const gk_reduction *how) {
    return how->outer > 1 && how->inner > 1 && how->length * how->inner < FEW;
}

/* Whether they are columns all the same, which are a good part of a vector. */
static bool are_stacked(const gk_reduce_plan *plan, gk_dtype dtype) {
    return !plan->packed && are_matrices_little(&plan->how) &&
           plan->how.inner * NARROW >= vector_width(dtype);
}

/* Several of them in a block, each by part of a warp: as many threads as it takes to load it in
   two turns, more where there would be few blocks. */
static void plan_stacked(gk_reduction *how, gk_dtype dtype) {
    how->lanes = lanes_for(divided(how->inner, vector_width(dtype)), WARP);
    uint32_t threads = how->lanes;
    while (threads < WARP && threads / how->lanes < how->length &&
           (threads / how->lanes * 2 * GK_REDUCE_COLUMN_LOADS < how->length ||
            how->outer * threads / GK_REDUCE_COLUMN_THREADS < ENOUGH_BLOCKS))
        threads *= 2;
    how->group = (uint8_t)__builtin_ctz(threads);
    cut(how, 1, how->length, 1);
}

/* Whether all is sooner done an element at a time, with as many threads as that takes, than by
   vectors, of which there are too few, and whose states have to be joined. */
static bool is_little(const gk_reduce_plan *plan, gk_dtype dtype, bool heavy) {
    const gk_reduction *how = &plan->how;
    const size_t results = how->outer * how->inner, count = results * how->length;
    if (count == 0 || how->length > LITTLE_LENGTH)
        return false;
    if (results == 1)
        return how->length <= GK_REDUCE_THREADS * GK_REDUCE_LOADS;
    if (plan->packed)
        return count <= LITTLE_PACKED;
    if (how->inner == 1)
        return how->length <= LITTLE_ROW &&
               count <= (vector_width(dtype) > 2 ? LITTLE : LITTLE_WIDE_ROWS);
    if (heavy && results <= LITTLE_RESULTS && how->length >= LONG_COLUMN)
        return count <= LITTLE_HEAVY;
    return count <= (how->length <= LITTLE_COLUMN ? LITTLE : LITTLE_PACKED);
}

/* Lanes that load all of their elements at once, where a block has so many. */
static void plan_little(gk_reduce_plan *plan) {
    gk_reduction *how = &plan->how;
    const size_t results = how->outer * how->inner, count = results * how->length;
    size_t each = count <= LITTLE_PACKED ? EACH : count <= MANY ? EACH_OF_MANY : EACH_OF_MOST;
    if (results == 1)
        each = GK_REDUCE_LOADS;
    plan->walk = GK_WALK_LITTLE;
    plan->packed = true;
    how->lanes = lanes_for(divided(how->length, each), GK_REDUCE_THREADS);
}

static bool has_short_columns(const gk_reduce_plan *plan) {
    const gk_reduction *how = &plan->how;
    return !plan->packed && how->outer > 0 && how->inner > 1 && how->length > 0 &&
           how->length <= SHORT_COLUMN;
}

/* A thread a column, from its first row to its last, or a vector of columns: which one leaves the
   bits as they are, so that it may depend on how the array lies (gk_plan_alone). */
static void plan_short_columns(gk_reduce_plan *plan, gk_dtype dtype) {
    gk_reduction *how = &plan->how;
    plan->walk = GK_WALK_COLUMNS;
    plan->short_columns = true;
    how->lanes = lanes_for(divided(how->inner, vector_width(dtype)), GK_REDUCE_COLUMN_THREADS);
    how->group = (uint8_t)__builtin_ctz(how->lanes);
    cut(how, 1, how->length, 1);
}

/* Lanes that have several vectors of a row each, so that there is less to join and few of them are
   idle; but enough of them for the whole device. */
static uint32_t short_lanes(size_t vectors, size_t rows) {
    size_t each = vectors <= 6 ? 2 : vectors <= 24 ? 4 : 8;
    uint32_t lanes = lanes_for(divided(vectors, each), WARP);
    uint32_t busy = lanes_for(divided(BUSY_LANES, rows), WARP);
    return lanes_for(vectors, lanes > busy ? lanes : busy);
}

static void plan_run(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    gk_reduction *how = &plan->how;
    bool stacked = are_stacked(plan, array->dtype);
    if (are_matrices_little(how) && !stacked)
        plan->packed = true;
    plan->walk = GK_WALK_COLUMNS;
    if (how->inner == 1 || plan->packed)
        plan->walk = GK_WALK_ROWS;
    gk_plan_part(plan, array, reduced);
    size_t vectors = divided(how->length, vector_width(array->dtype));
    bool is_short = vectors <= TINY_ROW || (vectors <= SHORT_ROW && how->outer >= MANY_ROWS);
    if (plan->walk == GK_WALK_ROWS && how->outer > 1 && is_short) {
        plan->walk = GK_WALK_SHORT;
        how->lanes = short_lanes(vectors, how->outer);
        how->lone_rows = how->lanes == WARP && vectors > TINY_ROW && how->outer < BUSY_ROWS;
    } else if (plan->walk == GK_WALK_ROWS) {
        plan_rows(how, array->dtype);
    } else if (stacked) {
        plan_stacked(how, array->dtype);
    } else {
        plan_columns(how, array->dtype);
    }
}

gk_reduce_plan gk_plan_reduction(const gk_array *array, uint64_t reduced, int operands, bool heavy,
                                 size_t vectors) {
    gk_reduce_plan plan = {0};
    plan.packed = !merge_axes(array, reduced, &plan.how);
    const bool may = operands == 1 && gk_bytes(array) < vectors;
    if (may && is_little(&plan, array->dtype, heavy))
        plan_little(&plan);
    else if (may && has_short_columns(&plan))
        plan_short_columns(&plan, array->dtype);
    else
        plan_run(&plan, array, reduced);
    if (plan.how.segments == 0) /* little arrays, short rows, and axes of no elements */
        plan.how.segments = 1;
    gk_divide_by(&plan.how, plan.how.length);
    return plan;
}

uint64_t gk_reduced_first(const gk_array *array, uint64_t reduced) {
    uint64_t longest = 0, axes = 0;
    size_t most = 1, length = 1, inner = 1;
    int groups = 0;
    if (gk_bytes(array) < STAGED)
        return 0;
    for (int i = array->ndim - 1; i >= 0; i--) {
        size_t along = (size_t)array->shape[i];
        if (along == 1)
            continue;
        if (!gk_is_reduced(reduced, i)) {
            axes = 0;
            length = 1;
        } else {
            groups += axes == 0;
            axes |= (uint64_t)1 << i;
            length *= along;
        }
        inner *= along; /* of the group, as far as it goes */
        if (length > most && (inner == length || inner >= FEW)) {
            most = length;
            longest = axes;
        }
    }
    return groups > 1 && most >= STAGE ? longest : 0;
}

void gk_plan_part(gk_reduce_plan *plan, const gk_array *part, uint64_t reduced) {
    gk_reduction *how = &plan->how;
    (void)merge_axes(part, reduced, how);
    if (plan->walk != GK_WALK_COLUMNS) {
        how->outer *= how->inner;
        how->inner = 1;
    }
}

size_t gk_plan_blocks(const gk_reduce_plan *plan, gk_dtype dtype) {
    const gk_reduction *how = &plan->how;
    switch (plan->walk) {
    case GK_WALK_ROWS:
        return how->outer * how->segments;
    case GK_WALK_SHORT:
        return divided(how->outer, GK_REDUCE_THREADS / how->lanes *
                                       (how->lone_rows ? 1 : GK_REDUCE_SHORT_ROWS));
    case GK_WALK_LITTLE:
        return divided(how->outer * how->inner, GK_REDUCE_THREADS / how->lanes);
    default:
        return column_groups(how, dtype) * how->segments;
    }
}

size_t gk_plan_arrivals(const gk_reduce_plan *plan, gk_dtype dtype) {
    if (plan->how.segments <= 1)
        return 0;
    if (plan->walk != GK_WALK_COLUMNS)
        return plan->how.outer;
    return column_groups(&plan->how, dtype) * gk_reduce_joints(plan->how.segments);
}

size_t gk_plan_partials(const gk_reduce_plan *plan) {
    const gk_reduction *how = &plan->how;
    if (how->segments <= 1)
        return 0;
    return how->outer * how->segments * how->inner * GK_REDUCE_PARTIAL_BYTES;
}

gk_array gk_reduced_last(const gk_array *array, uint64_t reduced) {
    gk_array moved = *array;
    int next = 0;
    for (int behind = 0; behind < 2; behind++)
        for (int i = 0; i < array->ndim; i++)
            if (gk_is_reduced(reduced, i) == (behind == 1)) {
                moved.shape[next] = array->shape[i];
                moved.strides[next++] = array->strides[i];
            }
    return moved;
}

/* views whose rows are runs ----------------------------------------------------------------------
 */

/* Bytes from each element along some axes to the next, which are `otherwise` where there is one,
   and NO_STRIDE where they are not always the same. */
static int64_t stride_along(const gk_array *array, uint64_t axes, int64_t otherwise) {
    int64_t stride = otherwise, beyond = 0;
    bool found = false;
    for (int i = array->ndim - 1; i >= 0; i--) {
        if (!(axes >> i & 1) || array->shape[i] == 1)
            continue;
        if (found && array->strides[i] != beyond)
            return NO_STRIDE;
        stride = found ? stride : array->strides[i];
        beyond = array->strides[i] * array->shape[i];
        found = true;
    }
    return stride;
}

/* The kept axes behind the last one that is reduced. */
static uint64_t inner_axes(const gk_array *array, uint64_t reduced) {
    uint64_t axes = 0;
    for (int i = array->ndim - 1; i >= 0 && !(gk_is_reduced(reduced, i) && array->shape[i] > 1);
         i--)
        axes |= (uint64_t)1 << i;
    return axes & ~reduced;
}

void gk_plan_of_run(gk_reduction *how, gk_dtype dtype) {
    how->apart = (int64_t)(how->inner * gk_dtype_size(dtype));
    how->over = (int64_t)how->length * how->apart;
    how->reach = (int64_t)how->outer * how->over;
}

bool gk_plan_pitched(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    const bool columns = plan->walk == GK_WALK_COLUMNS;
    const int64_t size = (int64_t)gk_dtype_size(array->dtype);
    const uint64_t inner = columns ? inner_axes(array, reduced) : 0;
    gk_reduction *how = &plan->how;
    int64_t row = (int64_t)how->inner * size, near = stride_along(array, inner, size);
    int64_t apart = stride_along(array, reduced, row);
    int64_t over = stride_along(array, ~(reduced | inner), 0);
    bool whole =
        ((uintptr_t)array->data | (uintptr_t)over | (uintptr_t)apart) % (uintptr_t)size == 0;
    bool runs = columns ? near == size && apart >= row : apart == size;
    plan->pitched = plan->walk != GK_WALK_LITTLE && whole && runs && over >= 0;
    if (plan->pitched) {
        how->apart = apart;
        how->over = over;
        how->reach = (int64_t)(how->outer - 1) * over + (int64_t)(how->length - 1) * apart + row;
    }
    return plan->pitched;
}

/* elements that lie anywhere ---------------------------------------------------------------------
 */

/* Axes [first, end) behind those that are there already, those merged that are one; false: they are
   too many for a layout. */
static bool append_axes(const gk_array *array, int first, int end, gk_axes *layout) {
    const int start = layout->ndim;
    for (int i = first; i < end; i++) {
        int64_t length = array->shape[i], stride = array->strides[i];
        int last = layout->ndim - 1;
        if (length == 1)
            continue;
        if (last >= start && layout->axis[last].stride == stride * length)
            length *= layout->axis[last].length.value;
        else if (++last == GK_LAYOUT_DIMENSIONS)
            return false;
        layout->axis[last].length = gk_divisor_of((uint32_t)length);
        layout->axis[last].stride = stride;
        layout->ndim = last + 1;
    }
    return true;
}

/* Whether a load takes any of its elements whole. */
static bool has_whole_elements(const gk_array *array, const gk_axes *layout) {
    uintptr_t bits = (uintptr_t)array->data;
    for (int i = 0; i < layout->ndim; i++)
        bits |= (uintptr_t)layout->axis[i].stride;
    return bits % gk_dtype_size(array->dtype) == 0;
}

/* Whether the kernel of a little array takes these axes. It divides by all lengths but those of the
   outermost axes, of both kinds. */
static bool are_little(const gk_axes *layout, int kept) {
    for (int i = 0; i < layout->ndim; i++) {
        bool divides = i != 0 && i != kept;
        if (llabs(layout->axis[i].stride) > INT32_MAX ||
            (divides && layout->axis[i].length.value >= GK_COMPACT_LENGTHS))
            return false;
    }
    return layout->ndim <= GK_LITTLE_AXES;
}

/* A little array: kept axes, then reduced ones. */
static bool plan_gathered_little(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    gk_array lies = gk_reduced_last(array, reduced);
    gk_axes *layout = &plan->layout;
    int axes = 0; /* that are kept, of which some may be one in the layout */
    for (int i = 0; i < array->ndim; i++)
        axes += !gk_is_reduced(reduced, i);
    if (!append_axes(&lies, 0, axes, layout))
        return false;
    const int kept = plan->kept = layout->ndim;
    if (!append_axes(&lies, axes, lies.ndim, layout) || !has_whole_elements(array, layout) ||
        !are_little(layout, kept))
        return false;
    int last = layout->ndim - 1;
    plan->across = kept > 0 && last >= kept &&
                   llabs(layout->axis[kept - 1].stride) < llabs(layout->axis[last].stride);
    return true;
}

gk_little gk_plan_little(const gk_reduce_plan *plan, const gk_reduction *how, const void *a) {
    const gk_axes *layout = &plan->layout;
    gk_little little = {.a = a, .result = how->result};
    little.divisor = how->divisor;
    little.reciprocal = how->reciprocal;
    little.results = (uint32_t)(how->outer * how->inner);
    little.length = (uint32_t)how->length;
    little.lanes = (uint32_t)__builtin_ctz(how->lanes) & 15;
    little.across = plan->across;
    little.reduced = (uint32_t)(layout->ndim - plan->kept) & 7;
    little.kept = (uint32_t)plan->kept & 7;
    little.stored = how->stored & 31U;
    little.last = how->last & 3U;
    little.flip = how->flip;
    for (int i = 0; i < layout->ndim; i++) {
        bool is_kept = i < plan->kept;
        int place = is_kept ? GK_LITTLE_AXES - plan->kept + i : layout->ndim - 1 - i;
        little.axis[place].stride = (int32_t)layout->axis[i].stride;
        if (i == 0 || i == plan->kept)
            continue;
        little.axis[place].length = gk_packed_length(layout->axis[i].length);
        little.axis[place].multiplier = layout->axis[i].length.multiplier;
    }
    return little;
}

/* A large one, in the order of a run. */
static bool plan_gathered_run(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    gk_array lies = plan->packed ? gk_reduced_last(array, reduced) : *array;
    gk_axes *layout = &plan->layout;
    const size_t size = gk_dtype_size(array->dtype);
    if (gk_count(array) > INT32_MAX || !append_axes(&lies, 0, lies.ndim, layout) ||
        !has_whole_elements(array, layout))
        return false;
    if (layout->ndim == 0)
        layout->axis[layout->ndim++].length = gk_divisor_of(1);
    int last = layout->ndim - 1;
    bool near = llabs(layout->axis[last].stride) <= NEAR;
    if (gk_bytes(array) > SCATTERED && !(near && layout->axis[last].length.value >= LINE))
        return false;
    plan->how.short_rows = plan->walk == GK_WALK_SHORT;
    plan->how.lone_rows = false; /* nor do its bits need it */
    const int64_t apart = stride_along(array, reduced, 0);
    plan->how.apart = apart == NO_STRIDE ? 0 : apart;
    if (plan->how.apart == 0 && plan->walk == GK_WALK_ROWS &&
        plan->how.outer * plan->how.segments < FEW_BLOCKS)
        return false; /* each thread would have to find many */
    plan->how.reach = (int64_t)size;
    for (int i = 0; i < layout->ndim; i++)
        if (layout->axis[i].stride > 0)
            plan->how.reach += layout->axis[i].stride * (layout->axis[i].length.value - 1);
    return true;
}

bool gk_plan_gathered(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    plan->layout = (gk_axes){0};
    plan->gathered = plan->walk == GK_WALK_LITTLE ? plan_gathered_little(plan, array, reduced)
                                                  : plan_gathered_run(plan, array, reduced);
    return plan->gathered;
}

/* What short columns an element a thread is better for. */
static bool are_better_alone(const gk_reduce_plan *plan, const gk_array *array, bool is_run) {
    const gk_reduction *how = &plan->how;
    const size_t size = gk_dtype_size(array->dtype), results = how->outer * how->inner;
    const uintptr_t row = how->inner * size;
    uintptr_t bits = (uintptr_t)array->data | row;
    if (plan->pitched)
        bits |= (uintptr_t)how->apart | (uintptr_t)how->over;
    if (size == 1 || !is_run)
        return true;
    if (size == 2 && results > MANY_RESULTS)
        return false;
    return bits % GK_REDUCE_VECTOR_BYTES != 0 || (how->length + RESULT_COST) * results * size <=
                                                     (size == 2 ? ALONE_HALF_BYTES : ALONE_BYTES);
}

bool gk_plan_alone(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced, bool is_run) {
    gk_reduce_plan alone = *plan;
    if (!plan->short_columns || plan->how.outer * plan->how.inner > INT32_MAX ||
        !are_better_alone(plan, array, is_run))
        return false;
    alone.walk = GK_WALK_LITTLE;
    alone.how.lanes = 1;
    if (!gk_plan_gathered(&alone, array, reduced))
        return false;
    *plan = alone;
    return true;
}

void gk_plan_packed(gk_reduce_plan *plan, const gk_array *packed) {
    gk_array rows = {.data = packed->data, .dtype = packed->dtype, .ndim = 2};
    rows.shape[0] = (int64_t)(plan->how.outer * plan->how.inner);
    rows.shape[1] = (int64_t)plan->how.length;
    gk_make_contiguous(&rows);
    if (plan->walk == GK_WALK_LITTLE)
        (void)gk_plan_gathered(plan, &rows, (uint64_t)1 << 1);
}
