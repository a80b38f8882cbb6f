#include "engine/pool.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/lock.h"

/* Blocks are made of whole huge pages: pinning them is 20 times faster than 4 KiB pages, and
   touching one takes one fault where 512 would do. */
#define GK_HUGE_PAGE ((size_t)2 << 20)

typedef struct block {
    char *start;
    size_t bytes;
    bool used, pinned;
} block;

struct gk_pool {
    gk_backend *backend; /* NULL after gk_pool_close */
    gk_workers *workers;
    gk_owner maker; /* it alone may unpin */
    gk_lock lock;   /* of what follows */
    size_t limit, used, unused;
    block *blocks; /* by address */
    size_t count, capacity;
    bool closed;
};

gk_pool *gk_pool_new(gk_backend *backend, gk_workers *workers, size_t limit) {
    gk_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->backend = backend;
    pool->workers = workers;
    pool->limit = limit;
    if (!gk_lock_init(&pool->lock)) {
        free(pool);
        return NULL;
    }
    gk_owner_init(&pool->maker);
    return pool;
}

/* What a thread that is not here had begun can be in any state: the child of the fork begins anew.
   Arrays that it has inherited keep their memory. */
static void lock(gk_pool *pool) {
    if (gk_lock_take(&pool->lock) == GK_ABANDONED) {
        pool->blocks = NULL;
        pool->count = pool->capacity = pool->used = pool->unused = 0;
    }
}

static void unlock(gk_pool *pool) {
    gk_lock_give(&pool->lock);
}

/* The first block that ends behind the address. */
static size_t place_of(const gk_pool *pool, const char *address) {
    size_t low = 0, high = pool->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (pool->blocks[middle].start + pool->blocks[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static block *block_at(gk_pool *pool, const char *address) {
    size_t place = place_of(pool, address);
    if (place == pool->count || pool->blocks[place].start > address)
        return NULL;
    return &pool->blocks[place];
}

static bool insert(gk_pool *pool, block made) {
    if (pool->count == pool->capacity) {
        size_t capacity = pool->capacity ? 2 * pool->capacity : 16;
        block *grown = realloc(pool->blocks, capacity * sizeof *grown);
        if (!grown)
            return false;
        pool->blocks = grown;
        pool->capacity = capacity;
    }
    size_t place = place_of(pool, made.start);
    memmove(&pool->blocks[place + 1], &pool->blocks[place],
            (pool->count - place) * sizeof *pool->blocks);
    pool->blocks[place] = made;
    pool->count++;
    return true;
}

/* Give a block that is not used back to the system. */
static void discard(gk_pool *pool, size_t place) {
    block gone = pool->blocks[place];
    memmove(&pool->blocks[place], &pool->blocks[place + 1],
            (pool->count - place - 1) * sizeof *pool->blocks);
    pool->count--;
    pool->unused -= gone.bytes;
    if (gone.pinned && pool->backend && gk_is_owner(&pool->maker))
        pool->backend->unpin(pool->backend, gone.start);
    munmap(gone.start, gone.bytes);
}

static void discard_unused(gk_pool *pool, size_t wanted_bytes) {
    for (size_t i = pool->count; i-- > 0 && pool->used + pool->unused > wanted_bytes;)
        if (!pool->blocks[i].used)
            discard(pool, i);
}

/* new memory ----------------------------------------------------------------------------------- */

static char *map(size_t bytes) {
    size_t longer = bytes + GK_HUGE_PAGE; /* room to start at a huge page's boundary */
    char *all = mmap(NULL, longer, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    size_t before = (GK_HUGE_PAGE - (size_t)all % GK_HUGE_PAGE) % GK_HUGE_PAGE;
    if (before)
        munmap(all, before);
    munmap(all + before + bytes, longer - before - bytes);
    (void)madvise(all + before, bytes, MADV_HUGEPAGE); /* a system without them has small pages */
    return all + before;
}

typedef struct touching {
    char *start;
    size_t bytes;
    atomic_size_t next;
} touching;

/* Faults in one thread come at 2 GB/s, in sixteen at 44: each takes a huge page at a time. */
static void touch(void *context, int worker) {
    touching *work = context;
    (void)worker;
    for (;;) {
        size_t at = atomic_fetch_add(&work->next, GK_HUGE_PAGE);
        if (at >= work->bytes)
            return;
        for (size_t i = 0; i < GK_HUGE_PAGE; i += 4096)
            ((volatile char *)work->start)[at + i] = 0;
    }
}

static bool make(gk_pool *pool, size_t bytes, block *made) {
    gk_error ignored;
    *made = (block){.start = map(bytes), .bytes = bytes};
    if (!made->start)
        return false;
    touching work = {.start = made->start, .bytes = bytes};
    gk_workers_run(pool->workers, GK_ALL_WORKERS, touch, &work);
    made->pinned = pool->backend->pin(pool->backend, made->start, bytes, &ignored) == GK_OK;
    if (!made->pinned)
        munmap(made->start, bytes);
    return made->pinned;
}

/* taking and giving ---------------------------------------------------------------------------- */

/* The smallest block that is not used and fits without wasting more than it holds. */
static block *find_unused(gk_pool *pool, size_t bytes) {
    block *best = NULL;
    for (size_t i = 0; i < pool->count; i++) {
        block *candidate = &pool->blocks[i];
        if (!candidate->used && candidate->bytes >= bytes && candidate->bytes <= 2 * bytes &&
            (!best || candidate->bytes < best->bytes))
            best = candidate;
    }
    return best;
}

static void *use(gk_pool *pool, block *found) {
    found->used = true;
    pool->unused -= found->bytes;
    pool->used += found->bytes;
    return found->start;
}

void *gk_pool_take(gk_pool *pool, size_t bytes) {
    size_t rounded = (bytes + GK_HUGE_PAGE - 1) / GK_HUGE_PAGE * GK_HUGE_PAGE;
    void *memory = NULL;
    block made;
    if (bytes == 0 || rounded < bytes)
        return NULL;
    lock(pool);
    block *found = pool->closed ? NULL : find_unused(pool, rounded);
    bool room = false;
    if (found) {
        memory = use(pool, found);
    } else if (!pool->closed && rounded <= pool->limit) {
        discard_unused(pool, pool->limit - rounded);
        room = pool->used + pool->unused <= pool->limit - rounded;
        if (room)
            pool->used += rounded; /* spoken for while the lock is not held */
    }
    unlock(pool);
    if (!room)
        return memory;

    bool is_made = make(pool, rounded, &made);
    lock(pool);
    pool->used -= rounded;
    if (is_made) {
        pool->unused += made.bytes;
        if (insert(pool, made)) {
            memory = use(pool, block_at(pool, made.start));
        } else {
            pool->unused -= made.bytes;
            pool->backend->unpin(pool->backend, made.start);
            munmap(made.start, made.bytes);
        }
    }
    unlock(pool);
    return memory;
}

static void destroy(gk_pool *pool) {
    gk_lock_free(&pool->lock);
    gk_owner_free(&pool->maker);
    free(pool->blocks);
    free(pool);
}

void gk_pool_give(gk_pool *pool, void *memory) {
    lock(pool);
    block *given = block_at(pool, memory);
    if (given) { /* not so in the child of a fork that began anew */
        given->used = false;
        pool->used -= given->bytes;
        pool->unused += given->bytes;
    }
    if (pool->closed)
        discard_unused(pool, 0);
    else if (pool->used + pool->unused > pool->limit)
        discard_unused(pool, pool->limit);
    bool last = pool->closed && pool->used == 0;
    unlock(pool);
    if (last)
        destroy(pool);
}

void gk_pool_close(gk_pool *pool) {
    if (!pool)
        return;
    lock(pool);
    pool->closed = true;
    discard_unused(pool, 0);
    for (size_t i = 0; i < pool->count; i++) { /* in use: ordinary memory from now on */
        pool->backend->unpin(pool->backend, pool->blocks[i].start);
        pool->blocks[i].pinned = false;
    }
    pool->backend = NULL;
    pool->workers = NULL;
    bool last = pool->used == 0;
    unlock(pool);
    if (last)
        destroy(pool);
}

bool gk_pool_holds(gk_pool *pool, const void *start, size_t bytes) {
    const char *first = start;
    lock(pool);
    const block *found = block_at(pool, first);
    bool holds = found && found->pinned && first + bytes <= found->start + found->bytes;
    unlock(pool);
    return holds;
}

void gk_pool_trim(gk_pool *pool) {
    lock(pool);
    discard_unused(pool, 0);
    unlock(pool);
}

void gk_pool_set_limit(gk_pool *pool, size_t limit) {
    lock(pool);
    pool->limit = limit;
    discard_unused(pool, limit);
    unlock(pool);
}

gk_pool_report gk_pool_describe(gk_pool *pool) {
    lock(pool);
    gk_pool_report report = {pool->limit, pool->used, pool->unused};
    unlock(pool);
    return report;
}
