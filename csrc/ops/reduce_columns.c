#include "ops/reduce_columns.h"

#include "engine/nest.h"

/* To change one changes the bits of results. */
enum {
    ENOUGH_BLOCKS = 512,   /* of columns */
    SMALL = 4 << 20,       /* bytes in which blocks of columns are made narrow to be many */
    FEW_TILES = 4,         /* of a column: joining segments takes longer than one after another */
    LEAST_WHOLE_LANES = 4, /* of a block that has all rows: */
    WHOLE_BLOCKS = 200,    /* of columns that are in the cache so many are enough, */
    FEW_WHOLE_BLOCKS = 40, /* and so many better than segments, */
    WHOLE_ROWS = 48,       /* of no more rows of a thread, */
    WHOLE_EVEN_ROWS = 64,  /* or these, where rows are whole vectors */
    PART = 2,              /* times less columns than a vector has: of these by vectors, too */
    LONGEST_WAY = 1 << 15, /* rows that a thread of a block of columns numbers */
    STACKED_LENGTH = 1024, /* rows of matrices that are stacked, */
    STACKED_OUTER = 4096,  /* of which there are many, */
    STACKED_LANES = 16,    /* as many fewer as they are wider, up to here, */
    STACKED_LEAST_LANES = 4,
    STACKED_THREADS = 16,  /* of one of these, at least; */
    STACKED_AT_ONCE = 300, /* blocks of which keep the memory busy */
    HEAVY_ROWS = 16,       /* rows of a thread of narrower ones, at least */
    COLUMN_PLACES = 792,   /* of blocks at a time, on a device of 132 multiprocessors */
    FEW_TURNS = 4,     /* of all places: the last one is as long as any, however few its blocks, */
    FEW_IN_WIDE = 160, /* rows, of which wide blocks are as good in more turns, */
    BLOCK_ROWS = 24,   /* and rows whose time a block takes to begin, and to join what it has */
    JOINED_BLOCKS = 396, /* of columns in segments: half as many, with twice as much each, */
    LARGE_BLOCKS = 528,  /* or two thirds, of large arrays, which may go by tiles */
    JOINED_ROWS = 24,    /* of a thread of such, at least */
    LEVEL_TIME = 3,      /* of a tree of partial results, in half a microsecond, */
    BRANCH_LOADS = 8,    /* of a thread's loads, which are under way together, takes one */
    LEAST_BRANCHES = 4,  /* powers of two */
    MOST_BRANCHES = 9,
    LARGE = 96 << 20, /* bytes, of which no good part is in the cache */
    NARROW = 64,      /* columns, or vectors that make whole rows, */
    NARROW_LOADS = 4, /* of a thread of a block of such, at least, */
    NARROW_EACH = 16, /* or about, of those of many matrices, */
    NARROW_THREADS = COLUMN_PLACES * GK_REDUCE_COLUMN_THREADS, /* if so many have some, */
    NARROW_TURNS = 4,          /* or, so that it is no matter who is the last, times as many */
    MORE_BLOCKS = 8,           /* one more block for so many is no loss */
    NARROW_SEGMENT = 64 << 10, /* and bytes of a segment of such, where there are enough */
};

/* Vectors side by side in a block of columns. A warp's, so that it reads long runs of each row;
   more where columns are so short that a thread loads a whole one at once; fewer where a small
   array would leave the device idle. */
static uint16_t column_lanes(const gk_reduction *how, size_t vectors, size_t bytes) {
    const uint32_t threads = GK_REDUCE_COLUMN_THREADS;
    uint32_t lanes = GK_REDUCE_WARP;
    while (lanes < threads && threads / lanes / 2 * GK_REDUCE_COLUMN_LOADS >= how->length &&
           how->outer * gk_divided(vectors, 2 * (size_t)lanes) >= ENOUGH_BLOCKS)
        lanes *= 2;
    while (lanes > GK_REDUCE_LEAST_LANES && bytes < SMALL &&
           how->outer * gk_divided(vectors, lanes) < ENOUGH_BLOCKS / 2 &&
           threads / lanes * 2 <= how->length)
        lanes /= 2;
    return gk_lanes_for(vectors, lanes);
}

/* Rows that a block's threads have side by side, and those that it loads at a time. */
static size_t rows_of_block(const gk_reduction *how) {
    return (size_t)GK_REDUCE_COLUMN_THREADS / how->lanes;
}

static size_t rows_of_tile(const gk_reduction *how) {
    return rows_of_block(how) * GK_REDUCE_COLUMN_LOADS;
}

/* Whether there are blocks enough with all rows each, or rows so few that nothing is won where they
   are shared out. */
static bool are_whole(const gk_reduction *how, size_t groups) {
    const size_t tile = rows_of_tile(how);
    const bool fills = groups >= ENOUGH_BLOCKS / 2 && how->length <= FEW_TILES * tile;
    return groups == 0 || groups > COLUMN_PLACES || how->length <= tile || fills;
}

/* How long blocks of so many lanes take that have all rows, in rows of a thread. */
static size_t time_of_turns(const gk_reduction *how, gk_dtype dtype, uint16_t lanes) {
    gk_reduction wide = *how;
    wide.lanes = lanes;
    return gk_divided(gk_column_groups(&wide, dtype), COLUMN_PLACES) *
           (gk_divided(how->length, rows_of_block(&wide)) + BLOCK_ROWS);
}

/* Blocks of more columns, twice as many or four times, where all are through sooner so. */
static void widen_blocks(gk_reduction *how, gk_dtype dtype) {
    const bool few = gk_column_groups(how, dtype) <= FEW_TURNS * COLUMN_PLACES;
    if (how->lanes != GK_REDUCE_WARP || !(few || how->length <= FEW_IN_WIDE))
        return;
    while (how->lanes < GK_REDUCE_COLUMN_THREADS &&
           2 * how->lanes * gk_vector_width(dtype) <= GK_REDUCE_TILE_COLUMNS &&
           gk_column_groups(how, dtype) > COLUMN_PLACES &&
           time_of_turns(how, dtype, 2 * how->lanes) < time_of_turns(how, dtype, how->lanes))
        how->lanes *= 2;
}

/* So many that a thread can number its rows. */
static size_t least_segments(const gk_reduction *how) {
    const size_t least = gk_divided(how->length, LONGEST_WAY * rows_of_block(how));
    return least > 0 ? least : 1;
}

/* Blocks so narrow that there are enough of them, but of no fewer lanes than `least`. */
static void narrow_blocks(gk_reduction *how, gk_dtype dtype, uint32_t least, size_t enough) {
    how->lanes = gk_lanes_for(gk_divided(how->inner, gk_vector_width(dtype)), GK_REDUCE_WARP);
    while (how->lanes > least && gk_column_groups(how, dtype) < enough)
        how->lanes /= 2;
}

/* Few segments: blocks are narrow, down to a line of the cache of each row, or two where these come
   from memory, and a thread has many rows, so that there is less to join, and less of it through
   memory; but of a column or a few, which are taken element by element, as many as there are
   places. */
static void plan_segments(gk_reduction *how, gk_dtype dtype, size_t bytes) {
    const uint32_t least = bytes < LARGE ? GK_REDUCE_LEAST_LANES : 2 * GK_REDUCE_LEAST_LANES;
    narrow_blocks(how, dtype, least, JOINED_BLOCKS);
    const size_t groups = gk_column_groups(how, dtype);
    const size_t blocks = how->inner <= GK_REDUCE_FEW ? COLUMN_PLACES
                          : bytes < LARGE             ? JOINED_BLOCKS
                                                      : LARGE_BLOCKS;
    const size_t wanted = groups < blocks ? blocks / groups : 1;
    const size_t fewest = least_segments(how);
    gk_cut(how, wanted > fewest ? wanted : fewest, JOINED_ROWS * rows_of_block(how),
           rows_of_tile(how));
}

/* Blocks so narrow that there are enough of them with all rows each, so that nothing is joined
   through memory. False: each would have too many rows. */
static bool plan_whole(gk_reduction *how, gk_dtype dtype, size_t bytes) {
    const size_t most = how->inner % gk_vector_width(dtype) == 0 ? WHOLE_EVEN_ROWS : WHOLE_ROWS;
    narrow_blocks(how, dtype, LEAST_WHOLE_LANES, WHOLE_BLOCKS);
    if (bytes >= GK_REDUCE_NO_CACHE || how->length > most * rows_of_block(how) ||
        gk_column_groups(how, dtype) < FEW_WHOLE_BLOCKS)
        return false;
    widen_blocks(how, dtype);
    gk_cut(how, 1, rows_of_block(how), rows_of_block(how));
    return true;
}

static void plan_wide(gk_reduction *how, gk_dtype dtype, bool found) {
    const size_t bytes = gk_reduced_bytes(how, dtype);
    how->group = (uint16_t)__builtin_ctz(GK_REDUCE_COLUMN_THREADS);
    if (!found && plan_whole(how, dtype, bytes))
        return;
    how->lanes = column_lanes(how, gk_divided(how->inner, gk_vector_width(dtype)), bytes);
    if (!are_whole(how, gk_column_groups(how, dtype))) {
        plan_segments(how, dtype, bytes);
        return;
    }
    if (!found)
        widen_blocks(how, dtype);
    gk_cut(how, least_segments(how), rows_of_tile(how), rows_of_tile(how));
}

bool gk_are_columns_found(const gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                          gk_joining joining) {
    gk_reduce_plan columns = *plan;
    if (!joining.any_order)
        return false;
    columns.walk = GK_WALK_COLUMNS;
    plan_wide(&columns.how, array->dtype, false);
    return !gk_plan_pitched(&columns, array, reduced);
}

/* Matrices so little that a block would be idle. */
static bool are_matrices_little(const gk_reduction *how) {
    return how->outer > 1 && how->inner > 1 && how->length * how->inner < GK_REDUCE_FEW_ELEMENTS;
}

/* Whether they are columns all the same, which are a good part of a vector, and little, or so many
   that each has a few threads. */
static bool are_stacked(const gk_reduce_plan *plan, gk_dtype dtype) {
    const gk_reduction *how = &plan->how;
    const size_t width = gk_vector_width(dtype), vectors = gk_divided(how->inner, width);
    const size_t wide = vectors < STACKED_LANES ? vectors : STACKED_LANES;
    if (plan->packed || how->inner == 1 || how->inner * PART < width)
        return false;
    return are_matrices_little(how) ||
           (vectors <= GK_REDUCE_WARP && how->length <= STACKED_LENGTH &&
            how->outer * wide >= STACKED_OUTER);
}

/* What is lost where each matrix has so many threads, as a share of the time: loads that are not
   there when a thread's last ones are on their way, joining, and where the last blocks are too few
   to keep the device busy, of bytes with what is done for each. */
static double loss_of_stack(const gk_reduction *how, gk_dtype dtype, size_t threads) {
    const double of_loads = 0.2, of_joining = 0.5;
    const size_t busy = gk_dtype_size(dtype) == 1 ? COLUMN_PLACES : STACKED_AT_ONCE;
    const size_t rows = gk_divided(how->length, threads / how->lanes);
    const size_t loads = gk_divided(rows, GK_REDUCE_COLUMN_LOADS) * GK_REDUCE_COLUMN_LOADS;
    const size_t blocks = gk_divided(how->outer * threads, GK_REDUCE_COLUMN_THREADS);
    const size_t last = blocks > COLUMN_PLACES ? blocks % COLUMN_PLACES : blocks;
    const double joining = threads > how->lanes ? of_joining / (double)rows : 0;
    const double idle = last < busy ? (double)(busy - last) / (double)blocks : 0;
    return of_loads * ((double)loads / (double)rows - 1) + joining + idle;
}

/* Threads of a matrix so narrow that neighbouring rows share a sector: as many as it takes to load
   it in two turns, or more where there would be few blocks. */
static uint32_t threads_side_by_side(const gk_reduction *how, bool heavy) {
    const size_t rows = heavy ? HEAVY_ROWS : GK_REDUCE_COLUMN_LOADS;
    uint32_t threads = how->lanes;
    while (threads < GK_REDUCE_WARP && threads / how->lanes < how->length &&
           (threads / how->lanes * 2 * rows < how->length ||
            how->outer * threads / GK_REDUCE_COLUMN_THREADS < ENOUGH_BLOCKS))
        threads *= 2;
    return threads;
}

static uint32_t threads_of_least_loss(const gk_reduction *how, gk_dtype dtype) {
    uint32_t best = how->lanes < STACKED_THREADS ? STACKED_THREADS : how->lanes;
    for (uint32_t threads = 2 * best; threads <= GK_REDUCE_COLUMN_THREADS; threads *= 2)
        if (loss_of_stack(how, dtype, threads) < loss_of_stack(how, dtype, best))
            best = threads;
    return best;
}

/* Several of them in a block, or one. */
static void plan_stacked(gk_reduction *how, gk_dtype dtype, bool heavy) {
    how->lanes = gk_lanes_for(gk_divided(how->inner, gk_vector_width(dtype)), GK_REDUCE_WARP);
    const bool narrow = how->lanes < STACKED_LEAST_LANES;
    const uint32_t threads =
        narrow ? threads_side_by_side(how, heavy) : threads_of_least_loss(how, dtype);
    how->group = (uint16_t)__builtin_ctz(threads);
    gk_cut(how, 1, how->length, 1);
}

/* Vectors that make whole rows. */
static size_t narrow_vectors(const gk_reduction *how, size_t width) {
    return how->inner / gk_common_divisor(how->inner, width);
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
    return GK_REDUCE_STACKS_NARROW(gk_dtype_size(dtype)) && how->length > GK_REDUCE_SHORT_COLUMN &&
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
    how->group = (uint16_t)(GK_REDUCE_COLUMN_THREADS / how->lanes);
    const size_t rows = how->lanes * width / how->inner;
    const size_t bytes = how->length * how->inner * gk_dtype_size(dtype);
    size_t wanted = gk_divided(how->outer * bytes, NARROW_SEGMENT);
    wanted = wanted < COLUMN_PLACES / 4 ? COLUMN_PLACES / 4 : wanted;
    wanted = gk_divided(wanted < COLUMN_PLACES ? wanted : COLUMN_PLACES, how->outer);
    const size_t least = gk_divided(how->length, LONGEST_WAY * rows);
    gk_cut(how, wanted > least ? wanted : least, NARROW_LOADS * rows, rows);
}

gk_column_blocks gk_choose_column_blocks(const gk_reduce_plan *plan, const gk_array *array,
                                         uint64_t reduced, gk_joining joining) {
    const bool may_be_narrow = are_narrow(plan, array, reduced, joining.any_order);
    if (!plan->scattered && are_stacked(plan, array->dtype) &&
        !(may_be_narrow && are_many_narrow(&plan->how, array->dtype)))
        return GK_COLUMNS_STACKED;
    if (may_be_narrow)
        return GK_COLUMNS_NARROW;
    return are_matrices_little(&plan->how) ? GK_COLUMNS_NONE : GK_COLUMNS_WIDE;
}

bool gk_are_columns_shifted(const gk_reduction *how, gk_dtype dtype) {
    const size_t size = gk_dtype_size(dtype);
    gk_reduction shifted = *how;
    if (how->narrow || size >= GK_WORD || how->inner * size % GK_WORD == 0 ||
        how->inner <= GK_REDUCE_FEW || ((size_t)1 << how->group) / how->lanes * size % GK_WORD != 0)
        return false;
    shifted.shifted = true;
    return gk_column_groups(&shifted, dtype) * MORE_BLOCKS <=
           gk_column_groups(how, dtype) * (MORE_BLOCKS + 1);
}

void gk_plan_columns(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                     gk_joining joining, gk_column_blocks blocks) {
    gk_reduction *how = &plan->how;
    if (blocks == GK_COLUMNS_STACKED)
        plan_stacked(how, array->dtype, joining.heavy);
    else if (blocks == GK_COLUMNS_NARROW)
        plan_narrow(how, array->dtype);
    else
        plan_wide(how, array->dtype, gk_are_columns_found(plan, array, reduced, joining));
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

void gk_plan_branches(gk_reduction *how, gk_dtype dtype) {
    const size_t columns = how->narrow ? how->inner : how->lanes * gk_vector_width(dtype);
    how->branches = LEAST_BRANCHES;
    for (uint8_t more = LEAST_BRANCHES + 1; more <= MOST_BRANCHES; more++)
        if (joining_time(how->segments, columns, more) <
            joining_time(how->segments, columns, how->branches))
            how->branches = more & 0x1fu;
}
