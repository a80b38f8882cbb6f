/* Columns each of which is a run in memory: what a block has of them, in the order of additions
   that columns side by side have, and whether the copy engine brings it. Fitted to an H200. */
#include "ops/reduce_shape.h"

enum {
    FEW_ROWS = 128,               /* columns of so many or less are found one by one as soon, */
    LEAST_OF_FEW_ROWS = 32 << 20, /* below so many bytes in all; */
    LEAST_OF_EVEN = 8 << 20,      /* of short ones that are whole vectors, */
    SOME_ROWS = 256,              /* and of so many words */
    LEAST_OF_SOME_ROWS = 16 << 20,
    LEAST_FETCHED = 256,        /* bytes of a thread's own column that the copy engine fetches, */
    LEAST_OF_LITTLE = 48 << 20, /* and of all, of halves and bytes, where threads share one */
    SOON_JOINED = 32 << 20,     /* bytes: of more it is sooner through memory, */
    MOST_TURNS = 2,             /* than a block's threads have a column's segments in two turns; */
    LEAST_OF_TURNS = 132,       /* blocks of such columns */
    PLACES = GK_REDUCE_MULTIPROCESSORS * GK_REDUCE_ALONG_RESIDENT,
    TAKEN = 5632, /* bytes of a block's shared memory that are its states', and the system's */
};

bool gk_is_sooner_along(const gk_reduce_plan *plan, gk_dtype dtype, size_t bytes) {
    const size_t length = plan->how.length;
    if (plan->short_columns)
        return bytes >= (length % gk_vector_width(dtype) == 0 ? LEAST_OF_EVEN : LEAST_OF_FEW_ROWS);
    if (length <= FEW_ROWS)
        return bytes >= LEAST_OF_FEW_ROWS;
    return length > SOME_ROWS || gk_dtype_size(dtype) < GK_WORD || bytes >= LEAST_OF_SOME_ROWS;
}

/* Threads side by side along a column, each with a vector of neighbouring rows. */
static size_t threads_of_column(const gk_reduction *how, gk_dtype dtype) {
    return gk_divided(GK_REDUCE_COLUMN_THREADS / how->lanes, gk_vector_width(dtype));
}

/* Whether blocks that have all segments of columns, of so many threads each, are through sooner
   than those of segments are joined through memory: all of them begin at once, and are no fewer
   than they should be. */
static bool are_better_whole(const gk_reduction *how, gk_dtype dtype, size_t threads) {
    const size_t blocks = gk_along_blocks(how);
    if (how->segments == 1)
        return true;
    if (blocks > PLACES)
        return false;
    return threads <= GK_REDUCE_COLUMN_THREADS ||
           (threads <= MOST_TURNS * GK_REDUCE_COLUMN_THREADS && blocks >= LEAST_OF_TURNS &&
            gk_reduced_bytes(how, dtype) < SOON_JOINED);
}

/* All segments of a few columns, as many as a block has threads for, which are joined in shared
   memory, or twice as many, if all blocks begin at once so; or one segment of as many columns as
   would lie side by side. */
static void choose_columns(gk_reduction *how, gk_dtype dtype) {
    const size_t threads = threads_of_column(how, dtype) * how->segments;
    how->whole = true;
    how->bundle =
        threads < GK_REDUCE_COLUMN_THREADS ? (uint32_t)(GK_REDUCE_COLUMN_THREADS / threads) : 1;
    if (!are_better_whole(how, dtype, threads)) {
        how->whole = false;
        how->bundle = (uint32_t)(how->lanes * gk_vector_width(dtype));
    } else if (gk_along_blocks(how) > PLACES && gk_along_blocks(how) <= 2 * (size_t)PLACES) {
        how->bundle *= 2;
    }
}

/* Whether it is sooner fetched: where a thread's loads are of lines that no other thread reads, or
   of a sector each, and of so much that it is not in the cache. */
static bool are_fetched(const gk_reduction *how, gk_dtype dtype) {
    const size_t size = gk_dtype_size(dtype);
    if (threads_of_column(how, dtype) == 1)
        return how->length * size >= LEAST_FETCHED;
    return size < GK_WORD && gk_reduced_bytes(how, dtype) >= LEAST_OF_LITTLE;
}

/* A thread's vectors at a time: all of them, as far as there is room for those of all blocks. */
static size_t vectors_at_a_time(const gk_reduction *how, gk_dtype dtype, size_t fetch_room) {
    const size_t resident = gk_divided(gk_along_blocks(how), GK_REDUCE_MULTIPROCESSORS);
    const size_t most = GK_REDUCE_ALONG_RESIDENT;
    const size_t share = fetch_room / (resident < most ? resident : most);
    const size_t rows = threads_of_column(how, dtype) * gk_vector_width(dtype);
    size_t vectors = gk_divided(how->segment, rows) + 1; /* it may begin between vectors */
    vectors = vectors < GK_REDUCE_ALONG_VECTORS ? vectors : GK_REDUCE_ALONG_VECTORS;
    while (vectors > 0 && GK_REDUCE_FETCHED_BYTES(vectors) + TAKEN > share)
        vectors--;
    return vectors;
}

void gk_plan_along_blocks(gk_reduction *how, gk_dtype dtype, size_t fetch_room) {
    how->tiles = GK_REDUCE_ALONG;
    choose_columns(how, dtype);
    how->fetched = are_fetched(how, dtype) ? vectors_at_a_time(how, dtype, fetch_room) : 0;
}
