/* Columns of matrices so little that a block brings several of them to shared memory, and rows that
   are no whole vectors. */
#include "ops/reduce_shape.h"

#include "ops/reduce_columns.h"

enum {
    WARP = 32,              /* threads */
    FEW = 255,              /* matrices of a block, */
    ROOM_OF_FEW = 16384,    /* and bytes, or blocks are few; of rows that are in no cache */
    MOST = 1024,            /* so many, which share what it costs to begin; */
    FEWEST_BLOCKS = 264,    /* blocks, of which there are so many, or the device is not busy */
    ROWS = 8,               /* of a lane, where any order does */
    LARGE = 32 << 20,       /* bytes from the first element to the last: most are in no cache */
    FEW_OF_ROW = 110,       /* elements */
    EVEN_VECTORS = 4,       /* that end in the same bank as those of every eighth row */
    LONGEST_MATRIX = 12288, /* bytes: a block has room for it */
    LEAST_ROWS = 9,         /* of fewer it costs more to find a column than to add it up; */
    LEAST_ROWS_APART = 5,   /* of elements that do not lie side by side vectors are no better */
    LEAST_CACHED_ROWS = 17, /* of those in the cache, and that many of a block's threads */
    LEAST_CACHED_THREADS = 128,
    SHORT = 16,             /* bytes of a row that is a part of a vector; of longer ones, */
    LONGEST = 32,           /* up to here, */
    LONGEST_OF_BYTES = 128, /* or here, */
    MOST_LONG_ROWS = 64,    /* so many rows: more are better taken by vectors */
    FEW_BLOCKS = 412,       /* of what is more than bytes: the other kernels have few as well */
    FEW_ROWS = 51,          /* of such, and fewer bytes in all than so many: */
    LITTLE = 10 << 20,      /* other kernels are through before a block has its matrices */
    LONG_MATRIX = 512,      /* bytes, side by side, whose order has to be kept: so few at a time */
    TWO_LANES = 128,        /* rows of a block, of words with gaps: neighbours in other banks */
    BANKS = 32,             /* words */
    MANY_OF_BANK = 16,      /* of its words, of which a warp wants so many at a time, or */
    FEWER_OF_BANK = 8,      /* times as many as then, or */
    SOME_OF_BANK = 7,       /* of elements smaller than a word; but not if more than */
    FEW_OF_BANK = 2,        /* of neighbouring words are left, */
    LONG_OF_BANK = 96,      /* unless rows take so many bytes */
    GAP = 32,               /* bytes between matrices, or elements, that are read as well */
    THREE = 3,              /* of the four words of a vector */
    FOUND = 9,              /* elements of a row that other kernels find one by one, */
    FOUND_IN_ORDER = 12,    /* and of one whose elements lie apart, in their order */
};

/* Bytes of shared memory for a run of so many, which begins between vectors. */
static size_t place_of(size_t bytes) {
    return gk_divided(bytes + GK_REDUCE_VECTOR_BYTES - 1, GK_REDUCE_VECTOR_BYTES) *
           GK_REDUCE_VECTOR_BYTES;
}

/* Bytes from the first element of a matrix to behind its last one. */
static size_t span_of(const gk_reduction *how, size_t size) {
    return (how->length - 1) * (size_t)how->apart + (how->inner - 1) * (size_t)how->step + size;
}

/* Whether something lies between one and the next. */
static bool are_with_gaps(const gk_reduction *how, size_t size) {
    return how->over > (int64_t)span_of(how, size);
}

bool gk_are_joined(const gk_reduction *how, size_t size) {
    return how->bundle < 2 && (size_t)how->over <= span_of(how, size) + GAP;
}

/* How many a block has room for. */
static size_t most_of_block(const gk_reduction *how, size_t span) {
    const bool few = how->reach < LARGE || how->inner > 1;
    const size_t room = few ? ROOM_OF_FEW : GK_REDUCE_MATRICES_BYTES;
    const size_t over = how->over > 0 ? (size_t)how->over : 1;
    const size_t count = how->joined ? (room - place_of(span)) / over + 1 : room / place_of(span);
    const size_t most = few ? FEW : MOST;
    return count < most ? count : most;
}

/* Rows that blocks of the plan take side by side: a column has so many threads. */
static size_t rows_of_plan(const gk_reduce_plan *plan, size_t width) {
    return plan->how.narrow ? plan->how.lanes * width / plan->how.inner
                            : ((size_t)1 << plan->how.group) / plan->how.lanes;
}

/* Lanes of a result, and which rows each has: those of the plan, of a kind that there is. False:
   there is none. */
static bool take_lanes(gk_reduction *how, const gk_reduce_plan *plan, size_t width) {
    how->in_vectors = plan->packed || how->inner == 1;
    const bool alone =
        plan->walk == GK_WALK_LITTLE && how->lanes == 1; /* from the first to the last */
    if (how->in_vectors)
        return alone || (plan->walk == GK_WALK_SHORT && how->lanes <= WARP);
    const size_t rows = plan->walk == GK_WALK_COLUMNS ? rows_of_plan(plan, width) : 0;
    how->lanes = (uint16_t)rows;
    return rows > 0 && rows <= WARP && (rows & (rows - 1)) == 0 && plan->how.segments == 1;
}

/* As many lanes as a block has threads for, but some rows for each. False: one has more words of
   bytes than are counted. */
static bool take_lanes_of_any_order(gk_reduction *how, size_t size) {
    how->lanes = 1;
    while (how->lanes < WARP &&
           (size_t)2 * how->lanes * how->group * how->inner <= GK_REDUCE_THREADS &&
           how->length >= (size_t)2 * how->lanes * ROWS)
        how->lanes = (uint16_t)(2 * how->lanes);
    return size > 1 || how->length <= (size_t)GK_REDUCE_COUNTED_WORDS * GK_WORD * how->lanes;
}

/* Whether most of what is brought is used, as far as memory is read by less than sectors. */
static bool are_dense(const gk_reduction *how, size_t size) {
    return 2 * how->length * how->inner * size >= span_of(how, size) ||
           (how->apart <= GAP && how->step <= GAP);
}

/* Whether matrices that are brought one by one lie among others, which would come with each. Of two
   that are woven, of bytes or halves, so much is used that it is as good. */
static bool are_among_others(const gk_reduction *how, size_t size) {
    const bool two = (size_t)how->over * 2 >= (size_t)how->apart;
    return (size_t)how->over < span_of(how, size) && (size >= GK_WORD || !two);
}

/* Of those in the cache. Other kernels join what the threads of a block have of a column, unless a
   thread has all of it: of bytes, which are sixteen to a vector, that costs the most. */
static bool pay_in_cache(const gk_reduction *how, size_t size, bool any_order, bool side_by_side) {
    const bool few_blocks = gk_divided(how->outer, how->group) < FEW_BLOCKS;
    if (any_order && how->length > GK_REDUCE_SHORT_COLUMN && (size == 1 || few_blocks))
        return true;
    if (any_order && size > 1 && how->length < FEW_ROWS && how->reach < LITTLE)
        return false;
    if (!any_order && side_by_side && span_of(how, size) >= LONG_MATRIX)
        return false;
    return how->inner * size < SHORT && how->length >= LEAST_CACHED_ROWS &&
           how->group * how->inner * how->lanes >= LEAST_CACHED_THREADS;
}

/* Words of one bank of shared memory, at most, that a warp reads at a time, where rows begin
   `pitch` bytes apart, or, `aligned`, as far behind a vector as they do in memory, and what
   neighbouring lanes of a row have so many. */
static unsigned words_of_bank(const gk_reduction *how, size_t pitch, bool aligned, size_t apart) {
    size_t words[BANKS][WARP];
    unsigned count[BANKS] = {0}, most = 0;
    for (size_t thread = 0; thread < WARP; thread++) {
        const size_t row = thread % (WARP / how->lanes), lane = thread / (WARP / how->lanes);
        const size_t behind = aligned ? row * (size_t)how->over % GK_REDUCE_VECTOR_BYTES : 0;
        const size_t word = (row * pitch + behind + lane * apart) / GK_WORD, bank = word % BANKS;
        unsigned same = 0;
        while (same < count[bank] && words[bank][same] != word)
            same++;
        words[bank][same] = word;
        count[bank] += same == count[bank];
        most = count[bank] > most ? count[bank] : most;
    }
    return most;
}

/* No more rows of words than leave each two lanes. */
static void leave_two_lanes(gk_reduction *how) {
    how->group = (uint16_t)(how->group < TWO_LANES ? how->group : TWO_LANES);
}

/* So many rows as are brought one by one, and their lanes. */
static void take_apart(gk_reduction *how, size_t size, bool any_order) {
    how->joined = false;
    how->group = (uint16_t)most_of_block(how, span_of(how, size));
    if (any_order && size == GK_WORD) {
        leave_two_lanes(how);
        take_lanes_of_any_order(how, size);
    }
}

/* Whether a warp reads so many words of one bank at a time that rows are sooner brought one by one,
   each from a vector on. `apart`: bytes from what a lane takes of a row to what the next one does.
   Fitted to 500 sums, maxima and indices of 200 MB, each both ways. */
static bool are_sooner_apart(const gk_reduction *how, size_t size, size_t apart) {
    const unsigned joined = words_of_bank(how, (size_t)how->over, false, apart);
    const unsigned alone = words_of_bank(how, place_of(span_of(how, size)), true, apart);
    if (joined >= MANY_OF_BANK || joined >= FEWER_OF_BANK * alone)
        return joined > alone;
    if (apart == GK_WORD && alone > FEW_OF_BANK)
        return joined >= SOME_OF_BANK && how->over >= LONG_OF_BANK;
    return joined >= SOME_OF_BANK && size < GK_WORD;
}

/* How rows are brought; all of a block's warps are busy then, or all but a last one. */
static void choose_rows(gk_reduction *how, size_t size, size_t width, bool words, bool any_order) {
    const size_t apart = words ? GK_WORD : width * (size_t)how->apart;
    if (how->joined && are_sooner_apart(how, size, apart))
        take_apart(how, size, any_order);
    const unsigned side_by_side = WARP / how->lanes;
    if (how->group > side_by_side)
        how->group = (uint16_t)(how->group - how->group % side_by_side);
}

/* By what was measured beside the kernels that take vectors. */
static bool pays(const gk_reduction *how, size_t size, bool any_order) {
    const size_t row = how->inner * size, longest = size == 1 ? LONGEST_OF_BYTES : LONGEST;
    const bool side_by_side = how->step == (int64_t)size && how->apart == (int64_t)row;
    if (how->reach < LARGE)
        return pay_in_cache(how, size, any_order, side_by_side);
    return how->length >= (side_by_side ? LEAST_ROWS : LEAST_ROWS_APART) &&
           (row < SHORT || (row < longest && how->length <= MOST_LONG_ROWS));
}

/* Whether rows are whole vectors, and begin alike: as those that are cut out of longer ones do not.
   Two of bytes are as well put together. */
static bool are_vectors(const gk_reduction *how, size_t size) {
    const size_t bytes = how->length * size;
    const uintptr_t steps = (uintptr_t)how->over | (uintptr_t)how->beyond;
    const bool few = size == 1 && bytes == 2 * GK_REDUCE_VECTOR_BYTES;
    return bytes % GK_REDUCE_VECTOR_BYTES == 0 && (few || steps % GK_REDUCE_VECTOR_BYTES == 0);
}

/* Whether rows of whole vectors are better brought all the same: if so many vectors leave a good
   part of as many lanes as a power of two idle, or what neighbouring rows have of a vector each
   lies in one bank of the cache. Fitted to 800 of 96 and 240 MB, and to 300 of 200 MB. */
static bool are_vectors_better_brought(const gk_reduction *how, size_t size, bool any_order) {
    static const uint8_t in_any_order[][2] = {{8, 55}, {8, 55}, {10, 55}, {8, 55}};
    static const uint8_t in_order[][2] = {{1, 0}, {1, 0}, {23, 31}, {25, 31}};
    const int bits = __builtin_ctz((unsigned)size); /* of an element's size */
    const uint8_t *const fit = any_order ? in_any_order[bits] : in_order[bits];
    const size_t vectors = how->length * size / GK_REDUCE_VECTOR_BYTES;
    const bool gains = vectors % EVEN_VECTORS != 0 || size < GK_WORD ||
                       (any_order && (vectors & (vectors - 1)) == 0);
    return vectors >= fit[0] && vectors <= fit[1] && gains;
}

/* Whether rows that are cut out of a little longer ones, or lie a little apart, are better brought:
   shorter ones than those without a gap, of which other kernels take vectors. Fitted to 1,300 of
   200 MB. */
static bool are_cut_better_brought(const gk_reduction *how, size_t size, bool any_order) {
    static const uint16_t in_any_order[][2] = {{15, 4000}, {9, 3000}, {12, 2500}, {9, 400}};
    static const uint16_t in_order[][2] = {{0, 0}, {15, 600}, {13, 300}, {13, 200}};
    const int bits = __builtin_ctz((unsigned)size); /* of an element's size */
    const uint16_t *const fit = any_order ? in_any_order[bits] : in_order[bits];
    if (size == GK_WORD && how->length == THREE && how->over == GK_REDUCE_VECTOR_BYTES)
        return any_order;
    if (!any_order && size > GK_WORD && (how->length & (how->length - 1)) == 0)
        return false; /* the lanes of a row, and of the next ones, are in few banks */
    if (any_order && how->length * size == GK_REDUCE_VECTOR_BYTES)
        return false;
    const bool vectors = !any_order && size == GK_WORD && how->length % GK_WORD == 0;
    return (vectors || how->length >= fit[0]) && how->length <= fit[1];
}

/* Whether rows with more between them than is read as well are, each from a vector on: fitted to
   260 sums, maxima and indices of 150 MB. In groups, for which each row's place takes a division,
   they have to be longer. */
static bool are_better_brought_apart(const gk_reduction *how, size_t size, bool any_order) {
    static const uint16_t in_any_order[][2] = {{28, 1000}, {40, 600}, {12, 130}, {40, 70}};
    static const uint16_t in_order[][2] = {{0, 0}, {40, 600}, {23, 300}, {40, 70}};
    static const uint16_t least_in_groups[2][4] = {{0, 200, 90, 40}, {80, 60, 24, 40}};
    const int bits = __builtin_ctz((unsigned)size); /* of an element's size */
    const uint16_t *const fit = any_order ? in_any_order[bits] : in_order[bits];
    if (how->bundle > 1 && how->length < least_in_groups[any_order][bits])
        return false;
    return how->length >= fit[0] && how->length <= fit[1];
}

/* Whether rows that are runs, a matrix of one column each, are sooner brought as they lie than put
   together from ragged vectors: fitted to 700 sums, maxima and indices of 40 and 120 MB, those of
   bytes and halves in any order to 470 of 48 and 240 MB. Vectors that are in the cache are as good,
   but for small elements and rows of a few of them. */
static bool are_better_brought(const gk_reduction *how, size_t size, bool any_order) {
    static const uint16_t in_any_order[][2] = {{17, 4000}, {15, 2000}, {14, 600}, {12, 400}};
    static const uint16_t in_order[][2] = {{0, 0}, {24, 600}, {23, 300}, {13, 200}};
    const int bits = __builtin_ctz((unsigned)size); /* of an element's size */
    const uint16_t *const fit = any_order ? in_any_order[bits] : in_order[bits];
    const bool few = any_order && size == GK_WORD && how->length <= FEW_OF_ROW;
    const int64_t least = size < GK_WORD || few ? LARGE : GK_REDUCE_OF_MEMORY;
    if (how->reach < least)
        return false;
    if (!how->joined)
        return !are_vectors(how, size) && are_better_brought_apart(how, size, any_order);
    if (are_vectors(how, size))
        return are_vectors_better_brought(how, size, any_order);
    if (are_with_gaps(how, size))
        return are_cut_better_brought(how, size, any_order);
    return how->length >= fit[0] && how->length <= fit[1];
}

/* Whether rows that other kernels take an element at a time may be brought: `runs` of less than a
   word, by words; or of so many elements that it pays. Where an order is kept those without a gap
   are as soon found. */
static bool may_be_brought(const gk_reduction *how, size_t size, bool runs, bool any_order) {
    const bool gap = !runs || are_with_gaps(how, size);
    if (how->inner > 1)
        return false;
    if (!any_order)
        return gap && how->lanes == 1 && (runs || how->length >= FOUND_IN_ORDER);
    if (size < GK_WORD)
        return runs || how->length >= FOUND;
    return runs && (how->length >= FOUND || how->length == THREE);
}

bool gk_plan_matrices(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced,
                      bool any_order) {
    const bool one_by_one = plan->walk == GK_WALK_LITTLE || plan->scattered;
    if (plan->how.outer < FEWEST_BLOCKS || (one_by_one && gk_bytes(array) < LARGE))
        return false; /* most calls have no more to ask */
    gk_reduce_plan held = *plan;
    gk_reduction *how = &held.how;
    const size_t size = gk_dtype_size(array->dtype);
    if (!gk_lie_as_matrices(array, reduced, how))
        return false;
    const bool rows = how->inner == 1 && how->apart == (int64_t)size;
    const bool words = any_order && rows && size < GK_WORD;
    if (one_by_one && !may_be_brought(how, size, rows, any_order))
        return false;
    if (!are_dense(how, size) || span_of(how, size) > LONGEST_MATRIX)
        return false;
    how->joined = gk_are_joined(how, size);
    if (!how->joined && are_among_others(how, size))
        return false;
    how->group = (uint16_t)most_of_block(how, span_of(how, size));
    how->segments = 1;
    if (rows && any_order && size == GK_WORD && !how->joined && how->bundle < 2)
        leave_two_lanes(how);
    if (!(any_order ? take_lanes_of_any_order(how, size)
                    : take_lanes(how, plan, gk_vector_width(array->dtype))))
        return false;
    if (gk_divided(how->outer, how->group) < FEWEST_BLOCKS ||
        !(rows ? are_better_brought(how, size, any_order) : pays(how, size, any_order)))
        return false;
    if (words || (how->inner == 1 && how->over % GK_REDUCE_VECTOR_BYTES == 0))
        choose_rows(how, size, any_order ? 1 : gk_vector_width(array->dtype), words, any_order);
    held.walk = GK_WALK_MATRICES;
    held.pitched = true;
    held.packed = held.short_columns = held.scattered = held.gathered = how->narrow = false;
    *plan = held;
    return true;
}
