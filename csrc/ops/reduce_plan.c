#include "ops/reduce_shape.h"

#include "ops/reduce_columns.h"

/* Enough blocks to fill a device, few enough partial results for one block to join. To change one
   changes the bits of results. */
enum {
    ALONE = 16384, /* elements that one block is through with before a second one has begun */
    LEAST_SEGMENT = 4096,     /* elements of a row */
    PLACES = 528,             /* of blocks of rows at a time, on a device of 132 multiprocessors */
    TINY_ROW = 32,            /* vectors: a block would be idle */
    SHORT_ROW = 1600,         /* vectors: a warp does it where there are more rows than PLACES; */
    SHORT_HEAVY_ROW = 1024,   /* heavy, which has less to join in the blocks of longer ones; */
    SHORT_ROW_OF_MANY = 2560, /* more rows than MANY_ROWS, of which the last leave less idle */
    MANY_ROWS = 1500,
    BUSY_ROWS = 1 << 13,   /* for a device to be busy with several a warp, */
    LONE_RAGGED_ROW = 128, /* vectors: one a warp is as good where they are ragged */
    BUSY_LANES = 1 << 17,  /* all that a device has to be busy with */
    LEAST_BETWEEN = 9,     /* vectors of a ragged row of reals: of shorter ones lanes have fewer; */
    FEW_OF_LANE = 4,       /* so many or more for a lane, */
    LONG_BETWEEN = 32,     /* of rows of so many or more */
    MANY_OF_LANE = 8,      /* these */
    MANY_COLUMNS = 1 << 15,     /* of columns whose rows are scattered, of so many */
    SCATTERED_RUN = 16,         /* bytes of such a row, or more, half of a sector */
    LITTLE = 1 << 20,           /* elements that instructions cost more than the memory does */
    LITTLE_EVEN_ROWS = 1 << 18, /* the same, of rows that are whole vectors, */
    LITTLE_WIDE_ROWS = 1 << 17, /* or whose vectors have two elements; */
    LITTLE_RAGGED_ROW = 128,    /* of a row that is no whole vectors: MANY in all, */
    LITTLE_WIDE_ROW = 8,        /* and whose vectors have two */
    LITTLE_LENGTH = 8192,   /* of them for a result: as many as one block is soon through with */
    LITTLE_VIEW = 4096,     /* the same, of a view that has a single result */
    LITTLE_COLUMN = 1024,   /* the same, of neighbouring results */
    LITTLE_ROW = 512,       /* the same, where vectors hold more of them */
    LITTLE_HEAVY = 6 << 20, /* elements, where what is done with each of them is much, */
    LITTLE_HEAVY_COLUMNS = 2 << 20, /* or, in columns of few rows that are runs, */
    LITTLE_RESULTS = 16384,         /* and in so many columns */
    LONG_COLUMN = 128,              /* of such */
    EACH = 8,                       /* elements for a lane, */
    EACH_OF_MANY = 16,              /* of more than GK_REDUCE_FOUND, */
    EACH_OF_MOST = 64, /* and of the most that are little: neighbours are read as well */
    MANY = 4 << 20,
    LONG_AND_MANY = 3 << 28,   /* rows times elements: of 512 rows 1.5 million */
    NEAR = 32,                 /* bytes of a row that is in one sector, */
    LINE = 128,                /* or in one line of the cache; */
    FEW_ROWS = 8,              /* columns of so few are as good where rows are shorter */
    SHORT_LINE = 8,            /* elements */
    FEW_FIRST = 16,            /* times less, to which a launch before the others leaves too much */
    HEAVY_COLUMN = 2048,       /* rows of columns of large states, which threads find one by one: */
    FEW_HEAVY_ROWS = 256,      /* few */
    LONGEST_SEGMENT = 1 << 20, /* bytes, of an array that is a single row: half of a chunk */
    FEW_SEGMENTS = 5,          /* of a row, that may be worth less than none, */
    JOINING_LOADS = 32,        /* of each thread, which take as long as to join them */
    FEW_TURNS = 4,             /* of all places: in more it is no matter who is the last */
    LEFT_OVER = 4,             /* times less blocks than places have the memory's rate no more */
};

/* Outer x length x inner; false: kept axes lie between reduced ones, and count as outer. */
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
            how->outer *= how->inner;
            how->inner = 1;
            how->length *= length;
        } else if (behind) {
            how->inner *= length;
        } else {
            how->outer *= length;
        }
    }
    return simple;
}

/* Whether, of not many blocks, so few are there when all others are through that they alone do not
   keep the memory busy. */
static bool leaves_few(size_t blocks) {
    const size_t left = blocks % PLACES;
    return blocks > PLACES && blocks < FEW_TURNS * PLACES && left > 0 && left < PLACES / LEFT_OVER;
}

/* About as many segments of each row as are asked for: up to twice as many, where these leave no
   few blocks over. */
static void cut_evenly(gk_reduction *how, size_t wanted, size_t least, size_t multiple) {
    for (size_t more = wanted; more <= 2 * wanted; more++) {
        gk_cut(how, more, least, multiple);
        if (!leaves_few(how->outer * how->segments))
            return;
    }
    gk_cut(how, wanted, least, multiple);
}

/* Whether a block is through with a row of its own before several are that join what they have of
   it: they have a part of its elements each, a block alone has less to share the memory with.
   `vectors`: the elements that a block's threads load at once. */
static bool is_sooner_alone(const gk_reduction *how, size_t vectors) {
    const double of_alone = 0.8; /* of the time that an element takes among as many as PLACES */
    const double loads = (double)gk_divided(how->length, vectors);
    return how->outer * FEW_SEGMENTS >= PLACES &&
           loads * of_alone <= loads / (double)how->segments + JOINING_LOADS;
}

/* A block for each place, or as many fewer as leave all rows the same number of segments: all
   blocks begin and end together. A single row may have several for each place. */
static void plan_rows(gk_reduction *how, gk_dtype dtype) {
    size_t vectors = GK_REDUCE_THREADS * gk_vector_width(dtype), tile = GK_REDUCE_LOADS * vectors;
    size_t wanted = how->outer > 0 ? PLACES / how->outer : 1;
    size_t longest = LONGEST_SEGMENT / gk_dtype_size(dtype);
    if (how->outer == 1 && gk_divided(how->length, longest) > wanted)
        wanted = gk_divided(gk_divided(how->length, longest), PLACES) * PLACES;
    cut_evenly(how, wanted > 0 ? wanted : 1, tile > LEAST_SEGMENT ? tile : LEAST_SEGMENT, vectors);
    if (how->length <= ALONE)
        gk_cut(how, 1, ALONE, 1);
    else if (how->segments > 1 && is_sooner_alone(how, vectors))
        gk_cut(how, 1, how->length, vectors);
}

/* Whether neighbours that are all reduced, or all kept, are few: what takes vectors of them, as
   they come, finds most elements one by one. */
static bool has_short_lines(const gk_array *array, uint64_t reduced) {
    size_t line = 1;
    for (int i = array->ndim - 1, last = -1; i >= 0 && line <= SHORT_LINE; i--) {
        if (array->shape[i] == 1)
            continue;
        last = last < 0 ? i : last;
        if (gk_is_reduced(reduced, i) != gk_is_reduced(reduced, last))
            return true;
        line *= (size_t)array->shape[i];
    }
    return false;
}

/* Elements of columns that are sooner taken one by one. */
static size_t most_in_columns(const gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                              gk_joining joining) {
    const gk_reduction *how = &plan->how;
    const bool few = joining.heavy && how->outer * how->inner <= LITTLE_RESULTS;
    const size_t otherwise = how->length <= LITTLE_COLUMN ? LITTLE : GK_REDUCE_FOUND;
    if (!few || how->length < LONG_COLUMN)
        return otherwise;
    if (how->inner * gk_dtype_size(array->dtype) <= NEAR)
        return LITTLE_HEAVY;
    if (how->length > HEAVY_COLUMN)
        return otherwise;
    const bool runs = !gk_are_columns_found(plan, array, reduced, joining);
    if (runs && how->length <= FEW_HEAVY_ROWS)
        return LITTLE_HEAVY_COLUMNS;
    return runs && joining.ranked ? LITTLE : LITTLE_HEAVY;
}

int gk_last_axis(const gk_array *array, int end) {
    int axis = end - 1;
    while (axis >= 0 && array->shape[axis] == 1)
        axis--;
    return axis;
}

/* Whether rows, which have several elements, are runs that begin on vectors. */
static bool begin_on_vectors(const gk_array *array) {
    const int last = gk_last_axis(array, array->ndim);
    uintptr_t bits = (uintptr_t)array->data;
    for (int i = 0; i < last; i++)
        bits |= array->shape[i] > 1 ? (uintptr_t)array->strides[i] : 0;
    return bits % GK_REDUCE_VECTOR_BYTES == 0 &&
           array->strides[last] == (int64_t)gk_dtype_size(array->dtype);
}

/* Whether rows are so short that a thread is sooner through with each, an element a load, than
   lanes are with vectors, of which few are in a row, most of them ragged. Fitted to 10,000 drawn
   arrays of 3 to 120 million elements, each both ways. Where an order is kept it does not depend on
   how rows lie. */
static bool are_lone_rows(const gk_reduction *how, const gk_array *array, gk_joining joining) {
    static const uint8_t longest[] = {40, 24, 20, 12}; /* by the bits of an element's size */
    static const uint8_t longest_with_gaps[] = {16, 20, 8, 4};
    const size_t size = gk_dtype_size(array->dtype);
    const int bits = __builtin_ctz((unsigned)size), last = gk_last_axis(array, array->ndim);
    const bool even = how->length % gk_vector_width(array->dtype) == 0;
    if (how->length <= 1 || how->length > longest[bits] || how->outer > INT32_MAX)
        return false;
    if (!joining.any_order)
        return !even;
    const bool gaps = array->strides[last] != (int64_t)size;
    return (!even || size >= GK_WORD) && !begin_on_vectors(array) &&
           (!gaps || how->length <= longest_with_gaps[bits]);
}

/* Elements of rows that are sooner taken one by one: of those that are ragged vectors are put
   together, or read an element at a time. Where an order is kept it does not depend on whether
   there are gaps, with which vectors are slow. */
static size_t most_in_rows(const gk_reduction *how, const gk_array *array, gk_joining joining) {
    const size_t width = gk_vector_width(array->dtype);
    const bool even = how->length % width == 0;
    if (how->length > LITTLE_ROW)
        return 0;
    if (width == 2 && (even || how->length > LITTLE_RAGGED_ROW))
        return LITTLE_WIDE_ROWS;
    if (width == 2)
        return how->length <= LITTLE_WIDE_ROW ? MANY : LITTLE;
    if (even && !joining.any_order)
        return LITTLE;
    if (even && begin_on_vectors(array))
        return LITTLE_EVEN_ROWS;
    const bool is_dear = !joining.any_order || gk_dtype_size(array->dtype) == 1;
    return is_dear || how->length <= LITTLE_RAGGED_ROW ? MANY : LITTLE;
}

/* Whether all is sooner done an element at a time, with as many threads as that takes, than by
   vectors, of which there are too few, and whose states have to be joined. */
static bool is_little(const gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                      gk_joining joining) {
    const gk_reduction *how = &plan->how;
    const size_t results = how->outer * how->inner, count = results * how->length;
    if (count == 0 || how->length > LITTLE_LENGTH)
        return false;
    if (results == 1)
        return how->length <= GK_REDUCE_THREADS * GK_REDUCE_LOADS;
    if (plan->packed)
        return count <= (has_short_lines(array, reduced) ? MANY : GK_REDUCE_FOUND);
    if (how->inner == 1)
        return are_lone_rows(how, array, joining) || count <= most_in_rows(how, array, joining);
    return count <= most_in_columns(plan, array, reduced, joining);
}

/* Of a single result where any order does, and the elements are no run, it may come of where they
   lie: one block finds few of them one by one sooner than as vectors. */
static bool is_little_view(const gk_reduction *how, const gk_array *array, gk_joining joining) {
    return joining.any_order && how->outer * how->inner == 1 && how->length > 0 &&
           how->length <= LITTLE_VIEW && !gk_is_contiguous(array);
}

/* So many that a lane loads all of its elements at once, where a block has so many lanes. Of many
   elements no fewer than leave a block several columns side by side: of one or two it reads little
   of each sector. */
static size_t elements_of_lane(const gk_reduce_plan *plan, gk_joining joining) {
    const gk_reduction *how = &plan->how;
    const size_t results = how->outer * how->inner, count = results * how->length;
    if (results == 1)
        return GK_REDUCE_LOADS;
    if (count <= GK_REDUCE_FOUND)
        return EACH;
    const bool columns = !plan->packed && how->inner > 1 && joining.any_order;
    const bool long_ones = columns && count > LITTLE && how->length * count > LONG_AND_MANY;
    return count > MANY || long_ones ? EACH_OF_MOST : EACH_OF_MANY;
}

static void plan_little(gk_reduce_plan *plan, gk_joining joining) {
    gk_reduction *how = &plan->how;
    const size_t each = elements_of_lane(plan, joining);
    plan->walk = GK_WALK_LITTLE;
    plan->packed = true;
    how->lanes = gk_lanes_for(gk_divided(how->length, each), GK_REDUCE_THREADS);
}

/* Whether columns whose rows lie anywhere, where kept axes lie between reduced ones, are long runs
   each: they are read as they lie, in one pass, and nothing is kept in between. */
static bool are_scattered(const gk_reduction *how, gk_dtype dtype) {
    const size_t run = how->inner * gk_dtype_size(dtype);
    if (how->outer * how->length * how->inner > INT32_MAX)
        return false;
    if (how->length <= GK_REDUCE_SHORT_COLUMN)
        return (run >= SCATTERED_RUN || (how->inner > 1 && how->length <= FEW_ROWS)) &&
               how->outer * how->inner >= MANY_COLUMNS;
    return run >= LINE && how->length * how->inner >= GK_REDUCE_FEW_ELEMENTS;
}

bool gk_is_found_at_once(const gk_array *array, uint64_t reduced) {
    gk_reduction how;
    return !merge_axes(array, reduced, &how) && gk_count(array) <= GK_REDUCE_FOUND &&
           how.length <= LITTLE_LENGTH;
}

bool gk_stays_whole(const gk_array *array, uint64_t reduced, size_t first) {
    gk_reduction how;
    return !merge_axes(array, reduced, &how) && are_scattered(&how, array->dtype) &&
           (how.length <= GK_REDUCE_SHORT_COLUMN || first < FEW_FIRST);
}

static bool has_short_columns(const gk_reduce_plan *plan) {
    const gk_reduction *how = &plan->how;
    return !plan->packed && how->outer > 0 && how->inner > 1 && how->length > 0 &&
           how->length <= GK_REDUCE_SHORT_COLUMN;
}

/* A thread a column, from its first row to its last, or a vector of columns: which one leaves the
   bits as they are, so that it may depend on how the array lies (gk_plan_alone). */
static void plan_short_columns(gk_reduce_plan *plan, gk_dtype dtype) {
    gk_reduction *how = &plan->how;
    plan->walk = GK_WALK_COLUMNS;
    plan->short_columns = true;
    how->lanes =
        gk_lanes_for(gk_divided(how->inner, gk_vector_width(dtype)), GK_REDUCE_COLUMN_THREADS);
    how->group = (uint16_t)__builtin_ctz(how->lanes);
    gk_cut(how, 1, how->length, 1);
}

/* Whether rows are a power of two of vectors and of memory, not of the cache: it gives 128 bytes of
   each and more at a time sooner. What is heavy is better joined as little as may be. */
static bool are_full(const gk_reduction *how, gk_dtype dtype, bool heavy) {
    const size_t vectors = how->length / gk_vector_width(dtype);
    return !heavy && how->length % gk_vector_width(dtype) == 0 &&
           vectors >= GK_REDUCE_LEAST_LANES && (vectors & (vectors - 1)) == 0 &&
           !gk_are_cached(how, dtype);
}

/* Whether rows are brought to shared memory as they lie (gk_plan_matrices), as far as those are
   whose order is kept: there a lane has more of them at no cost. */
static bool are_brought(const gk_reduction *how, gk_dtype dtype) {
    return how->length % gk_vector_width(dtype) != 0 && !gk_are_cached(how, dtype);
}

/* So many lanes, or more where all rows have too few for the whole device; no more than vectors. */
static uint16_t busy_lanes(uint32_t lanes, size_t vectors, size_t rows) {
    const uint32_t busy = gk_lanes_for(gk_divided(BUSY_LANES, rows), GK_REDUCE_WARP);
    return gk_lanes_for(vectors, lanes > busy ? lanes : busy);
}

/* Lanes that have several vectors of a row each, so that there is less to join and few of them are
   idle. */
static uint16_t short_lanes(size_t vectors, size_t rows, bool full, bool brought) {
    size_t each = vectors <= 6 && !brought ? 2 : vectors <= 24 ? 4 : 8;
    if (full)
        each = vectors == GK_REDUCE_LEAST_LANES ? 1 : 2;
    return busy_lanes(gk_lanes_for(gk_divided(vectors, each), GK_REDUCE_WARP), vectors, rows);
}

/* Whether rows are ragged ones of a hundred vectors and more that a warp has sooner one at a time:
   all but words, in memory, that are compared. */
static bool are_lone_ragged(const gk_reduction *how, gk_dtype dtype, size_t vectors, bool heavy) {
    const bool pays = gk_are_cached(how, dtype) || !heavy || gk_dtype_size(dtype) < GK_WORD;
    return vectors >= LONE_RAGGED_ROW && how->length % gk_vector_width(dtype) != 0 && pays;
}

/* Whether rows are ragged ones of which the kernel takes those that lie between vectors
   (gk_plan_between). Wide elements that are in the cache are taken otherwise. */
static bool are_between(const gk_reduction *how, gk_dtype dtype, size_t vectors) {
    const bool other = gk_dtype_size(dtype) > GK_WORD && gk_are_cached(how, dtype);
    return vectors >= LEAST_BETWEEN && how->length % gk_vector_width(dtype) != 0 && !other;
}

/* Lanes of ragged rows that lie between vectors, where instructions are what takes the time: what
   a row costs beside its vectors is less the fewer lanes it has. */
static uint16_t lanes_between(size_t vectors, size_t rows) {
    const size_t each = vectors < LONG_BETWEEN ? FEW_OF_LANE : MANY_OF_LANE;
    return busy_lanes(gk_lanes_for(vectors / each / 2 + 1, GK_REDUCE_WARP), vectors, rows);
}

/* A group of lanes for each row. A warp takes a row at a time, not several side by side, of what is
   longer, or comes in few rows, or is ragged. */
static void plan_short_rows(gk_reduction *how, gk_dtype dtype, size_t vectors, gk_joining joining) {
    const bool heavy = joining.heavy;
    const bool ragged = are_lone_ragged(how, dtype, vectors, heavy);
    const bool full = are_full(how, dtype, heavy);
    if (joining.of_reals && are_between(how, dtype, vectors))
        how->lanes = lanes_between(vectors, how->outer);
    else
        how->lanes = ragged ? GK_REDUCE_WARP
                            : short_lanes(vectors, how->outer, full, are_brought(how, dtype));
    how->lone_rows = how->lanes == GK_REDUCE_WARP && vectors > TINY_ROW &&
                     (ragged || vectors >= GK_REDUCE_LONE_ROW || how->outer < BUSY_ROWS);
}

/* Whether a row is so short that lanes of a warp are enough for it. */
static bool are_short(const gk_reduction *how, size_t vectors, bool heavy) {
    const size_t few = heavy ? SHORT_HEAVY_ROW : SHORT_ROW;
    const size_t longest = how->outer > MANY_ROWS ? SHORT_ROW_OF_MANY : few;
    return how->outer > 1 && (vectors <= TINY_ROW || (vectors <= longest && how->outer > PLACES));
}

static void plan_run(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                     gk_joining joining) {
    const bool heavy = joining.heavy;
    gk_reduction *how = &plan->how;
    const gk_column_blocks blocks = gk_choose_column_blocks(plan, array, reduced, joining);
    if (blocks == GK_COLUMNS_NONE)
        plan->packed = true;
    plan->walk = GK_WALK_COLUMNS;
    if (how->inner == 1 || plan->packed)
        plan->walk = GK_WALK_ROWS;
    gk_plan_part(plan, array, reduced);
    size_t vectors = gk_divided(how->length, gk_vector_width(array->dtype));
    if (plan->walk == GK_WALK_ROWS && are_short(how, vectors, heavy)) {
        plan->walk = GK_WALK_SHORT;
        plan_short_rows(how, array->dtype, vectors, joining);
    } else if (plan->walk == GK_WALK_ROWS) {
        plan_rows(how, array->dtype);
    } else {
        gk_plan_columns(plan, array, reduced, joining, blocks);
    }
}

gk_reduce_plan gk_plan_reduction(const gk_array *array, uint64_t reduced, int operands,
                                 gk_joining joining, size_t vectors) {
    gk_reduce_plan plan = {.of_reals = joining.of_reals, .in_wider = joining.in_wider};
    plan.packed = !merge_axes(array, reduced, &plan.how);
    const bool may = operands == 1 && gk_bytes(array) < vectors;
    if (may &&
        (is_little(&plan, array, reduced, joining) || is_little_view(&plan.how, array, joining))) {
        plan_little(&plan, joining);
    } else {
        plan.scattered = plan.packed && operands == 1 && are_scattered(&plan.how, array->dtype);
        plan.packed = plan.packed && !plan.scattered;
        if (may && has_short_columns(&plan))
            plan_short_columns(&plan, array->dtype);
        else
            plan_run(&plan, array, reduced, joining);
    }
    if (plan.how.segments == 0) /* little arrays, short rows, and axes of no elements */
        plan.how.segments = 1;
    if (plan.walk == GK_WALK_COLUMNS)
        gk_plan_branches(&plan.how, array->dtype);
    gk_divide_by(&plan.how, plan.how.length);
    return plan;
}

void gk_plan_part(gk_reduce_plan *plan, const gk_array *part, uint64_t reduced) {
    gk_reduction *how = &plan->how;
    plan->scattered = !merge_axes(part, reduced, how) && !plan->packed;
    if (plan->walk != GK_WALK_COLUMNS) {
        how->outer *= how->inner;
        how->inner = 1;
    }
}

bool gk_come_in_order(const gk_array *array, uint64_t axes, const int *order) {
    int before = -1;
    for (int i = 0; i < array->ndim; i++) {
        if (!(axes >> order[i] & 1) || array->shape[order[i]] == 1)
            continue;
        if (before > order[i])
            return false;
        before = order[i];
    }
    return true;
}

/* The axes as they lie in memory, or, where `last`, reduced ones behind them as they come. False:
   the reduced ones would not be in the order that they have, next to one another. */
static bool order_kept(const gk_array *array, uint64_t reduced, bool last, int *order) {
    int lies[GK_MAX_DIMENSIONS], next = 0;
    gk_order_axes(array, lies);
    for (int i = 0; i < array->ndim; i++)
        if (!(last && gk_is_reduced(reduced, lies[i])))
            order[next++] = lies[i];
    for (int i = 0; i < array->ndim; i++)
        if (last && gk_is_reduced(reduced, i))
            order[next++] = i;
    return gk_come_in_order(array, reduced, order);
}

/* More columns than half of a block's. */
static size_t least_run(const gk_reduction *how, gk_dtype dtype) {
    return how->lanes / 2 * gk_vector_width(dtype) + 1;
}

bool gk_fills_block(const gk_reduction *how, size_t columns, gk_dtype dtype) {
    return columns >= gk_vector_width(dtype) && columns >= least_run(how, dtype);
}

/* Whether elements are taken one by one, and so few, or as columns, that it does not matter where
   they lie. */
static bool are_found_anywhere(const gk_reduce_plan *plan, const gk_array *array) {
    return plan->walk == GK_WALK_LITTLE && (plan->how.inner > 1 || gk_count(array) <= MANY);
}

/* Whether the kernels take the axes in that order, which is another one. Columns that are `found`
   are a thread's each, wherever their rows lie: these come as they do in the array. */
static bool turn(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced, bool found,
                 int *order) {
    const bool columns = plan->walk == GK_WALK_COLUMNS && !found;
    gk_reduction how = plan->how;
    gk_array turned = *array;
    uint64_t axes = 0;
    int before = -1;
    bool same = true;
    if (!order_kept(array, reduced, !columns, order))
        return false;
    for (int i = 0; i < array->ndim; i++) {
        turned.shape[i] = array->shape[order[i]];
        axes |= (uint64_t)gk_is_reduced(reduced, order[i]) << i;
        if (turned.shape[i] > 1 && !(found && gk_is_reduced(reduced, order[i]))) {
            same = same && before < order[i];
            before = order[i];
        }
    }
    if (same || (columns && !merge_axes(&turned, axes, &how)))
        return false;
    const size_t width = gk_vector_width(array->dtype);
    const bool narrow = plan->short_columns && gk_bytes(array) >= GK_REDUCE_NO_CACHE;
    const size_t fewest = narrow ? width : least_run(&how, array->dtype);
    if (columns && (how.inner < fewest || how.inner == 1)) /* those that lie along a run go by it */
        return false;
    gk_plan_part(plan, &turned, axes);
    if (plan->short_columns)
        plan_short_columns(plan, array->dtype);
    return true;
}

bool gk_plan_turned(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced, int *order) {
    if (are_found_anywhere(plan, array) || plan->how.narrow || gk_bytes(array) < GK_REDUCE_TURNED)
        return false;
    const bool found = plan->scattered && plan->short_columns;
    if (turn(plan, array, reduced, found, order))
        return true;
    return plan->short_columns && !found &&
           gk_are_columns_apart(array, reduced, plan->how.length) &&
           turn(plan, array, reduced, true, order);
}
