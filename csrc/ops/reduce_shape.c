#include "ops/reduce_shape.h"

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
    LEAST_LANES = 8,        /* of such a block: 128 bytes of a row, */
    LEAST_WHOLE_LANES = 4,  /* or half of that, where so it has all rows: */
    WHOLE_BLOCKS = 200,     /* of columns that are in the cache so many are enough, */
    FEW_WHOLE_BLOCKS = 40,  /* and so many better than segments, */
    WHOLE_ROWS = 48,        /* of no more rows of a thread */
    TINY_ROW = 32,          /* vectors: a block would be idle */
    SHORT_ROW = 1600,       /* vectors: a warp does it where there are more rows than PLACES; */
    SHORT_HEAVY_ROW = 1024, /* heavy, which has less to join in the blocks of longer ones */
    BUSY_ROWS = 1 << 13,    /* for a device to be busy with several a warp */
    BUSY_LANES = 1 << 18,   /* all that a device has to be busy with */
    SHORT_COLUMN = 64,      /* rows: a thread goes down a column, and nothing has to be joined; */
    MANY_COLUMNS = 1 << 15, /* of columns whose rows are scattered, of so many */
    SCATTERED_RUN = 16,     /* bytes of such a row, or more, half of a sector */
    LITTLE = 1 << 20,       /* elements that instructions cost more than the memory does */
    LITTLE_WIDE_ROWS = 1 << 17, /* the same, of rows that are vectors of two elements */
    LITTLE_LENGTH = 8192,   /* of them for a result: as many as one block is soon through with */
    LITTLE_VIEW = 4096,     /* the same, of a view that has a single result */
    LITTLE_COLUMN = 1024,   /* the same, of neighbouring results */
    LITTLE_ROW = 512,       /* the same, where vectors hold more of them */
    LITTLE_HEAVY = 6 << 20, /* elements that lie anywhere, where what is done with each is much, */
    LITTLE_HEAVY_COLUMNS = 2 << 20, /* or, of runs, in columns of few, */
    LITTLE_HEAVY_RUNS = 5 << 18,    /* or more, */
    LITTLE_RESULTS = 16384,         /* and in so many columns */
    LONG_COLUMN = 128,              /* of such */
    EACH = 8,                       /* elements for a lane, */
    EACH_OF_MANY = 16,              /* of more than GK_REDUCE_FOUND, */
    EACH_OF_MOST = 64, /* and of the most that are little: neighbours are read as well */
    MANY = 4 << 20,
    PART = 2,              /* times less columns than a vector has: of these by vectors, too */
    LONGEST_WAY = 1 << 15, /* rows that a thread of a block of columns numbers */
    NEAR = 32,             /* bytes of a row that is in one sector, */
    LINE = 128,            /* or in one line of the cache; */
    FEW_ROWS = 8,          /* columns of so few are as good where rows are shorter */
    SHORT_LINE = 8,        /* elements */
    FEW_FIRST = 16,        /* times less, to which a launch before the others leaves too much */
    HEAVY_COLUMN = 2048,   /* rows of columns of large states, which threads find one by one, */
    FEW_HEAVY_ROWS = 256,  /* and of more than those that are little otherwise */
    HEAVY_LENGTH = 1024,   /* the same, of little matrices that are stacked, */
    HEAVY_OUTER = 4096,    /* of which there are many */
    HEAVY_ROWS = 16,       /* rows of a thread of such, at least */
    COLUMN_PLACES = 792,   /* of blocks of columns at a time, on the same device */
    JOINED_BLOCKS = 396,   /* of columns in segments: half as many, with twice as much each, */
    LARGE_BLOCKS = 528,    /* or two thirds, of large arrays, which may go by tiles */
    JOINED_ROWS = 24,      /* of a thread of such, at least */
    LEVEL_TIME = 3,        /* of a tree of partial results, in half a microsecond, */
    BRANCH_LOADS = 8,      /* of a thread's loads, which are under way together, takes one */
    LEAST_BRANCHES = 4,    /* powers of two */
    MOST_BRANCHES = 9,
    LARGE = 96 << 20,          /* bytes, of which no good part is in the cache */
    LONGEST_SEGMENT = 1 << 20, /* bytes, of an array that is a single row: half of a chunk */
    NARROW = 64,               /* columns, or vectors that make whole rows, */
    NARROW_LOADS = 4,          /* of a thread of a block of such, at least, */
    NARROW_EACH = 16,          /* or about, of those of many matrices, */
    NARROW_THREADS = COLUMN_PLACES * GK_REDUCE_COLUMN_THREADS, /* if so many have some, */
    NARROW_TURNS = 4,          /* or, so that it is no matter who is the last, times as many */
    NARROW_SEGMENT = 64 << 10, /* and bytes of a segment of such, where there are enough */
    FEW_TURNS = 4,             /* of all places: in more it is no matter who is the last */
    LEFT_OVER = 4,             /* times less blocks than places have the memory's rate no more */
    NO_CACHE = 48 << 20, /* bytes of short columns that are turned also where runs are narrow, and
                            of short rows that want long runs */
};

/* The least power of two that is not less, but no more than `most`. */
static uint16_t lanes_for(size_t vectors, uint32_t most) {
    uint32_t lanes = 1;
    while (lanes < vectors && lanes < most)
        lanes *= 2;
    return (uint16_t)lanes;
}

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

/* Segments of `multiple` elements or a multiple of them, about as many as are asked for. */
static void cut(gk_reduction *how, size_t wanted, size_t least, size_t multiple) {
    how->segment = gk_divided(gk_divided(how->length, wanted), multiple) * multiple;
    if (how->segment < least)
        how->segment = least;
    how->segments = gk_divided(how->length, how->segment);
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
        cut(how, more, least, multiple);
        if (!leaves_few(how->outer * how->segments))
            return;
    }
    cut(how, wanted, least, multiple);
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
    if (how->length <= ALONE) {
        how->segment = ALONE;
        how->segments = 1;
    }
}

/* Vectors side by side in a block of columns. A warp's, so that it reads long runs of each row;
   more where columns are so short that a thread loads a whole one at once; fewer where a small
   array would leave the device idle. */
static uint16_t column_lanes(const gk_reduction *how, size_t vectors, size_t bytes) {
    const uint32_t threads = GK_REDUCE_COLUMN_THREADS;
    uint32_t lanes = WARP;
    while (lanes < threads && threads / lanes / 2 * GK_REDUCE_COLUMN_LOADS >= how->length &&
           how->outer * gk_divided(vectors, 2 * (size_t)lanes) >= ENOUGH_BLOCKS)
        lanes *= 2;
    while (lanes > LEAST_LANES && bytes < SMALL &&
           how->outer * gk_divided(vectors, lanes) < ENOUGH_BLOCKS / 2 &&
           threads / lanes * 2 <= how->length)
        lanes /= 2;
    return lanes_for(vectors, lanes);
}

/* Whether there are blocks enough with all rows each, or rows so few that nothing is won where they
   are shared out. */
static bool are_whole(const gk_reduction *how, size_t groups, size_t tile) {
    const bool fills = groups >= ENOUGH_BLOCKS / 2 && how->length <= FEW_TILES * tile;
    return groups == 0 || groups > COLUMN_PLACES || how->length <= tile || fills;
}

/* So many that a thread can number its rows. */
static size_t least_segments(const gk_reduction *how) {
    const size_t tall = GK_REDUCE_COLUMN_THREADS / how->lanes;
    const size_t least = gk_divided(how->length, LONGEST_WAY * tall);
    return least > 0 ? least : 1;
}

/* Few segments: blocks are narrow, down to a line of the cache of each row, or two where these come
   from memory, and a thread has many rows, so that there is less to join, and less of it through
   memory; but of a column or a few, which are taken element by element, as many as there are
   places. */
static void plan_segments(gk_reduction *how, gk_dtype dtype, size_t bytes) {
    const uint32_t least = bytes < LARGE ? LEAST_LANES : 2 * LEAST_LANES;
    how->lanes = lanes_for(gk_divided(how->inner, gk_vector_width(dtype)), WARP);
    while (how->lanes > least && gk_column_groups(how, dtype) < JOINED_BLOCKS)
        how->lanes /= 2;
    const size_t groups = gk_column_groups(how, dtype),
                 tall = GK_REDUCE_COLUMN_THREADS / how->lanes;
    const size_t blocks = how->inner <= GK_REDUCE_FEW ? COLUMN_PLACES
                          : bytes < LARGE             ? JOINED_BLOCKS
                                                      : LARGE_BLOCKS;
    const size_t wanted = groups < blocks ? blocks / groups : 1;
    const size_t fewest = least_segments(how);
    cut(how, wanted > fewest ? wanted : fewest, JOINED_ROWS * tall, GK_REDUCE_COLUMN_LOADS * tall);
}

/* Blocks so narrow that there are enough of them with all rows each, so that nothing is joined
   through memory. False: each would have too many rows. */
static bool plan_whole(gk_reduction *how, gk_dtype dtype, size_t bytes) {
    how->lanes = lanes_for(gk_divided(how->inner, gk_vector_width(dtype)), WARP);
    while (how->lanes > LEAST_WHOLE_LANES && gk_column_groups(how, dtype) < WHOLE_BLOCKS)
        how->lanes /= 2;
    const size_t tall = GK_REDUCE_COLUMN_THREADS / how->lanes;
    if (bytes >= NO_CACHE || how->length > WHOLE_ROWS * tall ||
        gk_column_groups(how, dtype) < FEW_WHOLE_BLOCKS)
        return false;
    cut(how, 1, tall, tall);
    return true;
}

static void plan_columns(gk_reduction *how, gk_dtype dtype, bool found) {
    const size_t bytes = how->outer * how->length * how->inner * gk_dtype_size(dtype);
    how->group = (uint8_t)__builtin_ctz(GK_REDUCE_COLUMN_THREADS);
    if (!found && plan_whole(how, dtype, bytes))
        return;
    how->lanes = column_lanes(how, gk_divided(how->inner, gk_vector_width(dtype)), bytes);
    const size_t tall = GK_REDUCE_COLUMN_THREADS / how->lanes, tile = tall * GK_REDUCE_COLUMN_LOADS;
    if (are_whole(how, gk_column_groups(how, dtype), tile))
        cut(how, least_segments(how), tile, tile);
    else
        plan_segments(how, dtype, bytes);
}

/* Whether columns that may be joined in any order are no runs: the kernel that finds each element
   is better with fewer, wider blocks. The order of those that keep one may not come of where they
   lie. */
static bool are_columns_found(const gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                              gk_joining joining) {
    gk_reduce_plan columns = *plan;
    columns.walk = GK_WALK_COLUMNS;
    plan_columns(&columns.how, array->dtype, false);
    return joining.any_order && !gk_plan_pitched(&columns, array, reduced);
}

/* Matrices so little that a block would be idle. */
static bool are_matrices_little(const gk_reduction *how) {
    return how->outer > 1 && how->inner > 1 && how->length * how->inner < GK_REDUCE_FEW_ELEMENTS;
}

/* Whether they are columns all the same, which are a good part of a vector; or, of heavy states, so
   many that each has a few threads. */
static bool are_stacked(const gk_reduce_plan *plan, gk_dtype dtype, bool heavy) {
    const gk_reduction *how = &plan->how;
    const size_t vectors = gk_divided(how->inner, gk_vector_width(dtype));
    if (heavy && !plan->packed && how->inner > 1 && how->inner * PART >= gk_vector_width(dtype) &&
        vectors * PART <= LEAST_LANES && how->length <= HEAVY_LENGTH &&
        how->outer * vectors >= HEAVY_OUTER)
        return true;
    return !plan->packed && are_matrices_little(&plan->how) &&
           plan->how.inner * PART >= gk_vector_width(dtype);
}

/* Several of them in a block, each by part of a warp: as many threads as it takes to load it in
   two turns, more where there would be few blocks. */
static void plan_stacked(gk_reduction *how, gk_dtype dtype, bool heavy) {
    const size_t rows = heavy ? HEAVY_ROWS : GK_REDUCE_COLUMN_LOADS;
    how->lanes = lanes_for(gk_divided(how->inner, gk_vector_width(dtype)), WARP);
    uint32_t threads = how->lanes;
    while (threads < WARP && threads / how->lanes < how->length &&
           (threads / how->lanes * 2 * rows < how->length ||
            how->outer * threads / GK_REDUCE_COLUMN_THREADS < ENOUGH_BLOCKS))
        threads *= 2;
    how->group = (uint8_t)__builtin_ctz(threads);
    cut(how, 1, how->length, 1);
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
    if (are_columns_found(plan, array, reduced, joining))
        return LITTLE_HEAVY;
    if (how->length <= FEW_HEAVY_ROWS)
        return LITTLE_HEAVY_COLUMNS;
    return how->length <= LITTLE_COLUMN ? LITTLE_HEAVY_RUNS : LITTLE;
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
        return how->length <= LITTLE_ROW &&
               count <= (gk_vector_width(array->dtype) > 2 ? LITTLE : LITTLE_WIDE_ROWS);
    return count <= most_in_columns(plan, array, reduced, joining);
}

/* Of a single result where any order does, and the elements are no run, it may come of where they
   lie: one block finds few of them one by one sooner than as vectors. */
static bool is_little_view(const gk_reduction *how, const gk_array *array, gk_joining joining) {
    return joining.any_order && how->outer * how->inner == 1 && how->length > 0 &&
           how->length <= LITTLE_VIEW && !gk_is_contiguous(array);
}

/* Lanes that load all of their elements at once, where a block has so many. */
static void plan_little(gk_reduce_plan *plan) {
    gk_reduction *how = &plan->how;
    const size_t results = how->outer * how->inner, count = results * how->length;
    size_t each = count <= GK_REDUCE_FOUND ? EACH : count <= MANY ? EACH_OF_MANY : EACH_OF_MOST;
    if (results == 1)
        each = GK_REDUCE_LOADS;
    plan->walk = GK_WALK_LITTLE;
    plan->packed = true;
    how->lanes = lanes_for(gk_divided(how->length, each), GK_REDUCE_THREADS);
}

/* Whether columns whose rows lie anywhere, where kept axes lie between reduced ones, are long runs
   each: they are read as they lie, in one pass, and nothing is kept in between. */
static bool are_scattered(const gk_reduction *how, gk_dtype dtype) {
    const size_t run = how->inner * gk_dtype_size(dtype);
    if (how->outer * how->length * how->inner > INT32_MAX)
        return false;
    if (how->length <= SHORT_COLUMN)
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
           (how.length <= SHORT_COLUMN || first < FEW_FIRST);
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
    how->lanes =
        lanes_for(gk_divided(how->inner, gk_vector_width(dtype)), GK_REDUCE_COLUMN_THREADS);
    how->group = (uint8_t)__builtin_ctz(how->lanes);
    cut(how, 1, how->length, 1);
}

/* Whether rows are a power of two of vectors and of memory, not of the cache: it gives 128 bytes of
   each and more at a time sooner. What is heavy is better joined as little as may be. */
static bool are_full(const gk_reduction *how, gk_dtype dtype, bool heavy) {
    const size_t vectors = how->length / gk_vector_width(dtype);
    return !heavy && how->length % gk_vector_width(dtype) == 0 && vectors >= LEAST_LANES &&
           (vectors & (vectors - 1)) == 0 &&
           how->outer * how->length * gk_dtype_size(dtype) >= NO_CACHE;
}

/* Lanes that have several vectors of a row each, so that there is less to join and few of them are
   idle; but enough of them for the whole device. */
static uint16_t short_lanes(size_t vectors, size_t rows, bool full) {
    size_t each = vectors <= 6 ? 2 : vectors <= 24 ? 4 : 8;
    if (full)
        each = vectors == LEAST_LANES ? 1 : 2;
    uint32_t lanes = lanes_for(gk_divided(vectors, each), WARP);
    uint32_t busy = lanes_for(gk_divided(BUSY_LANES, rows), WARP);
    return lanes_for(vectors, lanes > busy ? lanes : busy);
}

static size_t common_divisor(size_t a, size_t b) {
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Vectors that make whole rows. */
static size_t narrow_vectors(const gk_reduction *how, size_t width) {
    return how->inner / common_divisor(how->inner, width);
}

/* Whether each matrix is a run, and they lie evenly. */
static bool are_matrices_runs(const gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    gk_reduce_plan narrow = *plan;
    narrow.walk = GK_WALK_COLUMNS;
    narrow.how.narrow = true;
    return gk_plan_pitched(&narrow, array, reduced);
}

/* Little matrices of few columns, of elements of which several are a block's, so many that some of
   a block's threads for each of them are enough for the whole device. */
static bool are_many_narrow(const gk_reduction *how, gk_dtype dtype) {
    const size_t width = gk_vector_width(dtype), vectors = narrow_vectors(how, width);
    const size_t loads = how->length * how->inner / width / NARROW_LOADS; /* of as many threads */
    return GK_REDUCE_STACKS_NARROW(gk_dtype_size(dtype)) && how->length > SHORT_COLUMN &&
           how->inner * PART <= width && loads >= vectors && loads * how->outer >= NARROW_THREADS;
}

/* Columns so few that a row of them is no even number of vectors, but a good part of a block's
   vectors, side by side, are whole rows; or those of many little matrices. Which rows a thread
   takes then is no matter of where they lie, but it is slower to take them where they are no run,
   and what comes in `any_order` has other ways there. Two elements of 8 bytes are no more a load
   than one, and what begins between vectors costs two.
 */
static bool are_narrow(const gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                       bool any_order) {
    const gk_reduction *how = &plan->how;
    const size_t width = gk_vector_width(array->dtype), count = how->length * how->inner;
    const bool between = how->outer > 1 && count % width != 0;
    if (plan->packed || plan->scattered || how->inner == 1 || how->inner > NARROW ||
        how->inner % width == 0 || narrow_vectors(how, width) > NARROW ||
        (between && width == 4 && how->inner > width))
        return false;
    const bool large = count >= NARROW_LOADS * GK_REDUCE_COLUMN_THREADS * width;
    if (!large && !are_many_narrow(how, array->dtype))
        return false;
    if (!any_order)
        return width > 2;
    const bool pays = width > 4 && (!large || how->inner > GK_REDUCE_FEW);
    return gk_is_contiguous(array) || (pays && are_matrices_runs(plan, array, reduced));
}

/* Threads that have several loads of a matrix each, so that there is less to join; but enough of
   them for the whole device, and no more than a block's. */
static uint16_t narrow_lanes(const gk_reduction *how, gk_dtype dtype) {
    const size_t width = gk_vector_width(dtype), vectors = narrow_vectors(how, width);
    const size_t all = how->length * how->inner / width;
    const bool stacks = GK_REDUCE_STACKS_NARROW(gk_dtype_size(dtype));
    size_t lanes = stacks ? vectors : GK_REDUCE_COLUMN_THREADS;
    while (lanes <= GK_REDUCE_COLUMN_THREADS / 2 && all >= 2 * NARROW_LOADS * lanes &&
           (all > NARROW_EACH * lanes || how->outer * lanes < NARROW_TURNS * NARROW_THREADS))
        lanes *= 2;
    const bool few = lanes <= GK_REDUCE_COLUMN_THREADS / 2;
    return (uint16_t)(few ? lanes : GK_REDUCE_COLUMN_THREADS / vectors * vectors);
}

static void plan_narrow(gk_reduction *how, gk_dtype dtype) {
    const size_t width = gk_vector_width(dtype);
    how->narrow = true;
    how->lanes = narrow_lanes(how, dtype);
    how->group = (uint8_t)(GK_REDUCE_COLUMN_THREADS / how->lanes);
    const size_t rows = how->lanes * width / how->inner;
    const size_t bytes = how->length * how->inner * gk_dtype_size(dtype);
    size_t wanted = gk_divided(how->outer * bytes, NARROW_SEGMENT);
    wanted = wanted < COLUMN_PLACES / 4 ? COLUMN_PLACES / 4 : wanted;
    wanted = gk_divided(wanted < COLUMN_PLACES ? wanted : COLUMN_PLACES, how->outer);
    const size_t least = gk_divided(how->length, LONGEST_WAY * rows);
    cut(how, wanted > least ? wanted : least, NARROW_LOADS * rows, rows);
}

static void plan_run(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                     gk_joining joining) {
    const bool heavy = joining.heavy;
    gk_reduction *how = &plan->how;
    const bool may_be_narrow = are_narrow(plan, array, reduced, joining.any_order);
    const bool stacked = !plan->scattered && are_stacked(plan, array->dtype, heavy) &&
                         !(may_be_narrow && are_many_narrow(how, array->dtype));
    const bool narrow = may_be_narrow && !stacked;
    if (are_matrices_little(how) && !stacked && !narrow)
        plan->packed = true;
    plan->walk = GK_WALK_COLUMNS;
    if (how->inner == 1 || plan->packed)
        plan->walk = GK_WALK_ROWS;
    gk_plan_part(plan, array, reduced);
    size_t vectors = gk_divided(how->length, gk_vector_width(array->dtype));
    const size_t longest = heavy ? SHORT_HEAVY_ROW : SHORT_ROW;
    bool is_short = vectors <= TINY_ROW || (vectors <= longest && how->outer > PLACES);
    if (plan->walk == GK_WALK_ROWS && how->outer > 1 && is_short) {
        plan->walk = GK_WALK_SHORT;
        how->lanes = short_lanes(vectors, how->outer, are_full(how, array->dtype, heavy));
        how->lone_rows = how->lanes == WARP && vectors > TINY_ROW &&
                         (vectors >= GK_REDUCE_LONE_ROW || how->outer < BUSY_ROWS);
    } else if (plan->walk == GK_WALK_ROWS) {
        plan_rows(how, array->dtype);
    } else if (stacked) {
        plan_stacked(how, array->dtype, heavy);
    } else if (narrow) {
        plan_narrow(how, array->dtype);
    } else {
        plan_columns(how, array->dtype, are_columns_found(plan, array, reduced, joining));
    }
}

/* How long partial results of columns take to be joined so many at a time: each level of the tree
   takes a while, and so does each time that a block's threads load some. */
static size_t joining_time(size_t segments, size_t columns, unsigned branches) {
    size_t time = 0;
    while (segments > 1) {
        const size_t most = (size_t)1 << branches, joined = segments < most ? segments : most;
        time += LEVEL_TIME + gk_divided(joined * columns, GK_REDUCE_COLUMN_THREADS * BRANCH_LOADS);
        segments = gk_divided(segments, most);
    }
    return time;
}

static void plan_branches(gk_reduction *how, gk_dtype dtype) {
    const size_t columns = how->narrow ? how->inner : how->lanes * gk_vector_width(dtype);
    how->branches = LEAST_BRANCHES;
    for (uint8_t more = LEAST_BRANCHES + 1; more <= MOST_BRANCHES; more++)
        if (joining_time(how->segments, columns, more) <
            joining_time(how->segments, columns, how->branches))
            how->branches = more;
}

gk_reduce_plan gk_plan_reduction(const gk_array *array, uint64_t reduced, int operands,
                                 gk_joining joining, size_t vectors) {
    gk_reduce_plan plan = {0};
    plan.packed = !merge_axes(array, reduced, &plan.how);
    const bool may = operands == 1 && gk_bytes(array) < vectors;
    if (may &&
        (is_little(&plan, array, reduced, joining) || is_little_view(&plan.how, array, joining))) {
        plan_little(&plan);
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
        plan_branches(&plan.how, array->dtype);
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

/* The axes as they lie in memory, or, where `last`, reduced ones behind them as they come. False:
   the reduced ones would not be in the order that they have, next to one another. */
static bool order_kept(const gk_array *array, uint64_t reduced, bool last, int *order) {
    int lies[GK_MAX_DIMENSIONS], next = 0, before = -1;
    gk_order_axes(array, lies);
    for (int i = 0; i < array->ndim; i++)
        if (!(last && gk_is_reduced(reduced, lies[i])))
            order[next++] = lies[i];
    for (int i = 0; i < array->ndim; i++)
        if (last && gk_is_reduced(reduced, i))
            order[next++] = i;
    for (int i = 0; i < array->ndim; i++) {
        if (!gk_is_reduced(reduced, order[i]) || array->shape[order[i]] == 1)
            continue;
        if (before > order[i])
            return false;
        before = order[i];
    }
    return true;
}

/* More columns than half of a block's. */
static size_t least_run(const gk_reduction *how, gk_dtype dtype) {
    return how->lanes / 2 * gk_vector_width(dtype) + 1;
}

bool gk_fills_block(const gk_reduction *how, size_t columns, gk_dtype dtype) {
    return columns >= gk_vector_width(dtype) && columns >= least_run(how, dtype);
}

bool gk_plan_turned(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced, int *order) {
    const bool found = plan->scattered && plan->short_columns; /* each row, by a thread */
    const bool columns = plan->walk == GK_WALK_COLUMNS && !found;
    gk_reduction how = plan->how;
    gk_array turned = *array;
    uint64_t axes = 0;
    int before = -1;
    bool same = true;
    if (plan->walk == GK_WALK_LITTLE || how.narrow || gk_bytes(array) < GK_REDUCE_TURNED ||
        !order_kept(array, reduced, !columns, order))
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
    const bool narrow = plan->short_columns && gk_bytes(array) >= NO_CACHE;
    const size_t fewest = narrow ? width : least_run(&how, array->dtype);
    if (columns && how.inner < fewest)
        return false;
    gk_plan_part(plan, &turned, axes);
    if (plan->short_columns)
        plan_short_columns(plan, array->dtype);
    return true;
}
