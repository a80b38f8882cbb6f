#include "shadow.h"
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRANULE = 4, MOST_PENDING = 16, NEAR_NULL = 65536 };

/* Where in the source: what gk_sim_line tells of the place that a call returns to. */
typedef struct spot {
    const void *after;
    const char *file; /* of an atomic, whose call tells it; else NULL */
    int line;
} spot;

/* Who touched four bytes of shared memory last, in which epoch: barriers part epochs. Threads of a
   warp are also ordered by __syncwarp, which their clocks count. */
typedef struct touch {
    spot place;
    uint32_t epoch;
    uint16_t thread, clock;
    uint8_t bytes; /* a mask */
    bool is_atomic;
} touch;
typedef struct cell {
    touch written, read, read_by_another;
    uint32_t filled_epoch;
    uint8_t filled; /* a mask: what has been written since the block began */
} cell;

typedef enum kind { READ, WRITE, ATOMIC } kind;

struct gk_sim_watch {
    const gk_sim_module *module;
    gk_sim_span shared, dynamic; /* in this OS thread */
    gk_sim_span recent;          /* the array that was found last */
    uint32_t epoch, block_epoch;
    spot atomic;        /* the call that is being done */
    uint32_t unordered; /* the epoch in which threads order one another by means of their own */
    /* A write that met another one: no race if both write the same. */
    struct {
        spot place;
        touch before;
        uintptr_t at;
        size_t bytes;
        unsigned char was[MOST_PENDING];
    } pending;
    /* A write to global memory, until it has been done. */
    struct {
        spot place;
        gk_sim_mark mine;
        gk_sim_met met;
        uintptr_t at;
        size_t bytes;
        unsigned char was[GK_SIM_MOST_COMPARED];
    } global;
    uint32_t block; /* its number */
    uint16_t clock[GK_SIM_MAX_THREADS];
    uint16_t seen[GK_SIM_MAX_THREADS][GK_SIM_WARP]; /* clocks of the warp's lanes */
    size_t cell_count;
    cell *cells;
};

/* faults --------------------------------------------------------------------------------------- */

static gk_sim_line line_of(const struct gk_sim_watch *watch, spot place) {
    const gk_sim_line *line = watch->module->lines;
    if (place.file)
        return (gk_sim_line){NULL, place.file, (uint64_t)place.line};
    while (line->after && line->after != place.after)
        line++;
    return line->after ? *line : (gk_sim_line){NULL, "source", 0};
}

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *verb(kind what) {
    return what == READ ? "reads" : what == WRITE ? "writes" : "changes";
}

__attribute__((noreturn)) static void fault_outside(const struct gk_sim_watch *watch, uintptr_t at,
                                                    size_t bytes, kind what, spot place) {
    const gk_sim_user *user = gk_sim_now.worker->user;
    gk_sim_line line = line_of(watch, place);
    const gk_sim_span *nearest = NULL;
    uintptr_t distance = 1 << 20; /* farther off it is of no array */
    bool is_behind = true;
    for (size_t i = 0; i < user->array_count; i++) {
        const gk_sim_span *array = user->arrays + i;
        bool behind = at >= array->low;
        uintptr_t off = !behind ? array->low - at : at < array->high ? 0 : at - array->high;
        if (off < distance) {
            nearest = array;
            distance = off;
            is_behind = behind;
        }
    }
    if (at < NEAR_NULL)
        gk_sim_fault(line.file, (int)line.line, "it %s %zu bytes at %p, through a null pointer",
                     verb(what), bytes, (void *)at);
    if (!nearest)
        gk_sim_fault(line.file, (int)line.line, "it %s %zu bytes at %p, which is in no array",
                     verb(what), bytes, (void *)at);
    gk_sim_fault(line.file, (int)line.line,
                 "it %s %zu bytes out of bounds: %zu bytes %s an array of %zu", verb(what), bytes,
                 (size_t)distance, is_behind ? "behind the end of" : "in front of",
                 (size_t)(nearest->high - nearest->low));
}

__attribute__((noreturn)) static void fault_race(const struct gk_sim_watch *watch, kind what,
                                                 spot place, const touch *other, const char *done) {
    gk_sim_index who = gk_sim_now.worker->threads[other->thread].index;
    gk_sim_line line = line_of(watch, place), before = line_of(watch, other->place);
    gk_sim_fault(line.file, (int)line.line,
                 "a race: it %s shared memory that thread (%u, %u, %u) has %s at %.80s:%d, with no "
                 "__syncthreads() between",
                 verb(what), who.x, who.y, who.z, done, last_part(before.file), (int)before.line);
}

/* Where the memory lies, of an array or of the module's variables. */
static void describe(char *text, size_t size, const struct gk_sim_watch *watch, uintptr_t at) {
    const gk_sim_user *user = gk_sim_now.worker->user;
    snprintf(text, size, "a variable of the module");
    if (at >= watch->module->data.low && at < watch->module->data.high)
        return;
    for (size_t i = 0; i < user->array_count; i++) {
        const gk_sim_span *array = user->arrays + i;
        if (at >= array->low && at < array->high)
            snprintf(text, size, "byte %zu of an array of %zu", (size_t)(at - array->low),
                     (size_t)(array->high - array->low));
    }
}

__attribute__((noreturn)) static void fault_global_race(const struct gk_sim_watch *watch,
                                                        uintptr_t at, kind what, spot place,
                                                        const gk_sim_mark *other,
                                                        const char *done) {
    gk_sim_index who = gk_sim_now.worker->threads[other->thread].index, grid = gk_sim_now.grid_dim;
    uintptr_t base = watch->module->data.low + other->place;
    spot there = other->line ? (spot){NULL, (const char *)base, (int)other->line}
                             : (spot){(const void *)base, NULL, 0};
    gk_sim_line line = line_of(watch, place), before = line_of(watch, there);
    bool is_near = other->block == watch->block;
    char lies[96];
    describe(lies, sizeof lies, watch, at);
    gk_sim_fault(line.file, (int)line.line,
                 "a race: it %s %s that thread (%u, %u, %u) of block (%u, %u, %u) has %s at "
                 "%.80s:%d, %s",
                 verb(what), lies, who.x, who.y, who.z, other->block % grid.x,
                 other->block / grid.x % grid.y, other->block / grid.x / grid.y, done,
                 last_part(before.file), (int)before.line,
                 is_near ? "with no __syncthreads() between"
                         : "and the blocks of a launch come in no order");
}

/* races on shared memory ----------------------------------------------------------------------- */

static bool is_unordered(const struct gk_sim_watch *watch, uint32_t epoch, unsigned them,
                         unsigned clock) {
    unsigned me = gk_sim_now.number;
    if (epoch != watch->epoch || them == me || watch->unordered == watch->epoch)
        return false;
    if (them / GK_SIM_WARP == me / GK_SIM_WARP)
        return watch->seen[me][them % GK_SIM_WARP] <= clock;
    return true;
}

bool gk_sim_watch_unordered(const gk_sim_worker *worker, uint32_t epoch, unsigned thread,
                            unsigned clock) {
    return is_unordered(worker->watch, epoch, thread, clock);
}

/* Whether another thread's touch of these bytes may come before or after the running one's. */
static bool races(const struct gk_sim_watch *watch, const touch *other, uint8_t bytes) {
    return (other->bytes & bytes) && is_unordered(watch, other->epoch, other->thread, other->clock);
}

/* The last write that met another one has been done by now. */
static void settle_shared(struct gk_sim_watch *watch) {
    if (!watch->pending.bytes)
        return;
    size_t bytes = watch->pending.bytes;
    watch->pending.bytes = 0;
    if (memcmp((void *)watch->pending.at, watch->pending.was, bytes) != 0)
        fault_race(watch, WRITE, watch->pending.place, &watch->pending.before, "written");
}

/* Whether it meets a write of another thread's, which may be the same. */
static bool note_write(struct gk_sim_watch *watch, cell *at, const touch *mine, kind what) {
    bool is_atomic = what == ATOMIC, meets = false;
    if (races(watch, &at->read, mine->bytes))
        fault_race(watch, what, mine->place, &at->read, "read");
    if (races(watch, &at->read_by_another, mine->bytes))
        fault_race(watch, what, mine->place, &at->read_by_another, "read");
    if (!(is_atomic && at->written.is_atomic) && races(watch, &at->written, mine->bytes)) {
        if (is_atomic || at->written.is_atomic)
            fault_race(watch, what, mine->place, &at->written, "written");
        watch->pending.before = at->written;
        meets = true;
    }
    at->written = *mine;
    at->written.is_atomic = is_atomic;
    if (at->filled_epoch < watch->block_epoch)
        at->filled = 0;
    at->filled |= mine->bytes;
    at->filled_epoch = watch->epoch;
    return meets;
}

static void note_read(struct gk_sim_watch *watch, cell *at, const touch *mine) {
    if (races(watch, &at->written, mine->bytes))
        fault_race(watch, READ, mine->place, &at->written, "written");
    if (at->read.epoch == watch->epoch && at->read.thread != mine->thread)
        at->read_by_another = at->read;
    at->read = *mine;
}

static bool is_filled(const struct gk_sim_watch *watch, const cell *at, uint8_t bytes) {
    return at->filled_epoch >= watch->block_epoch && (at->filled & bytes);
}

static void watch_shared(struct gk_sim_watch *watch, uintptr_t at, size_t bytes, kind what,
                         spot place) {
    uintptr_t first = (at - watch->shared.low) / GRANULE, end = at + bytes;
    bool filled = what == WRITE, meets = false;
    size_t last = (end - 1 - watch->shared.low) / GRANULE;
    touch mine = {place, watch->epoch, (uint16_t)gk_sim_now.number, watch->clock[gk_sim_now.number],
                  0,     false};
    for (size_t i = first; i <= last && i < watch->cell_count; i++) {
        uintptr_t low = watch->shared.low + i * GRANULE;
        unsigned skipped = at > low ? (unsigned)(at - low) : 0;
        unsigned over = low + GRANULE > end ? (unsigned)(low + GRANULE - end) : 0;
        mine.bytes = (uint8_t)(0xfu << skipped & 0xfu >> over);
        filled = filled || is_filled(watch, &watch->cells[i], mine.bytes);
        if (what == READ)
            note_read(watch, &watch->cells[i], &mine);
        else
            meets |= note_write(watch, &watch->cells[i], &mine, what);
    }
    if (!filled) {
        gk_sim_line line = line_of(watch, place);
        gk_sim_fault(
            line.file, (int)line.line,
            "it %s shared memory that no thread has written since the block began; it is not "
            "zero at the start, and __syncthreads() waits for those that write",
            verb(what));
    }
    if (meets && bytes <= MOST_PENDING) {
        watch->pending.place = place;
        watch->pending.at = at;
        watch->pending.bytes = bytes;
        memcpy(watch->pending.was, (void *)at, bytes);
    }
}

static void check_dynamic(const struct gk_sim_watch *watch, uintptr_t at, size_t bytes, kind what,
                          spot place) {
    size_t given = watch->dynamic.high - watch->dynamic.low;
    if (at < watch->dynamic.low || at >= watch->dynamic.low + GK_SIM_DYNAMIC_BYTES ||
        at + bytes <= watch->dynamic.high)
        return;
    gk_sim_line line = line_of(watch, place);
    gk_sim_fault(line.file, (int)line.line,
                 "it %s %zu bytes at byte %zu of dynamic shared memory, and the launch gives %zu "
                 "(shared=)",
                 verb(what), bytes, (size_t)(at - watch->dynamic.low), given);
}

/* races on global memory ----------------------------------------------------------------------- */

/* The last write to it has been done by now: no race where it is what another has written, or what
   another has read. */
static void settle_global(struct gk_sim_watch *watch) {
    gk_sim_met *met = &watch->global.met;
    uintptr_t at = watch->global.at;
    size_t bytes = watch->global.bytes;
    const unsigned char *now = (const unsigned char *)at;
    if (!bytes)
        return;
    watch->global.bytes = 0;
    gk_sim_shadow_settle(gk_sim_now.worker, at, bytes, watch->global.mine, watch->global.was, met);
    for (size_t i = 0; i < bytes; i++)
        if ((met->compared >> i & 1) && now[i] != met->theirs[i])
            fault_global_race(watch, at, WRITE, watch->global.place, &met->written,
                              "written something else to");
    if (met->read.bytes && memcmp(now, watch->global.was, bytes) != 0)
        fault_global_race(watch, at, WRITE, watch->global.place, &met->read, "read");
}

static gk_sim_mark mark_of(const struct gk_sim_watch *watch, spot place, kind what, bool is_soft) {
    unsigned me = gk_sim_now.number;
    const char *at = place.file ? place.file : (const char *)place.after;
    return (gk_sim_mark){.block = watch->block,
                         .epoch = watch->epoch,
                         .thread = (uint16_t)me,
                         .clock = watch->clock[me],
                         .place = (uint32_t)((uintptr_t)at - watch->module->data.low),
                         .line = (unsigned)place.line & 0x7fffffu,
                         .is_write = what != READ,
                         .is_soft = is_soft || what == ATOMIC};
}

static void watch_global(struct gk_sim_watch *watch, uintptr_t at, size_t bytes, kind what,
                         bool is_volatile, spot place) {
    static const gk_sim_touching kinds[] = {
        [READ] = GK_SIM_READS, [WRITE] = GK_SIM_WRITES, [ATOMIC] = GK_SIM_CHANGES};
    gk_sim_met *met = &watch->global.met;
    gk_sim_mark mine = mark_of(watch, place, what, is_volatile);
    gk_sim_shadow_touch(gk_sim_now.worker, at, bytes, kinds[what], mine, met);
    if (met->race.bytes) {
        const gk_sim_mark race = met->race;
        fault_global_race(watch, at, what, place, &race,
                          race.is_atomic  ? "changed"
                          : race.is_write ? "written"
                                          : "read");
    }
    if (what != WRITE || bytes > GK_SIM_MOST_COMPARED)
        return;
    watch->global.place = place;
    watch->global.mine = mine;
    watch->global.at = at;
    watch->global.bytes = bytes;
    memcpy(watch->global.was, (const void *)at, bytes);
}

/* every access --------------------------------------------------------------------------------- */

static void settle_pending(struct gk_sim_watch *watch) {
    settle_shared(watch);
    settle_global(watch);
}

static bool within(const gk_sim_span *span, uintptr_t at, size_t bytes) {
    return at >= span->low && at <= span->high && bytes <= span->high - at;
}

static bool in_array(struct gk_sim_watch *watch, const gk_sim_user *user, uintptr_t at,
                     size_t bytes) {
    size_t low = 0, high = user->array_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (user->arrays[middle].high <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == user->array_count || !within(user->arrays + low, at, bytes))
        return false;
    watch->recent = user->arrays[low];
    return true;
}

static void look(const void *address, size_t bytes, kind what, bool is_volatile, spot place) {
    gk_sim_worker *worker = gk_sim_now.worker;
    if (!worker) /* a variable of the module is given its value as that is loaded */
        return;
    struct gk_sim_watch *watch = worker->watch;
    uintptr_t at = (uintptr_t)address;
    settle_pending(watch);
    uintptr_t stack = (uintptr_t)worker->running->low;
    if (within(&watch->shared, at, bytes)) {
        check_dynamic(watch, at, bytes, what, place);
        watch_shared(watch, at, bytes, what, place);
    } else if (within(&watch->recent, at, bytes) || within(&watch->module->data, at, bytes) ||
               in_array(watch, worker->user, at, bytes)) {
        watch_global(watch, at, bytes, what, is_volatile, place);
    } else if (at - stack >= worker->running->bytes) {
        fault_outside(watch, at, bytes, what, place);
    }
}

/* Threads that pass a lock, a flag or a fence order one another: what they do is not looked into,
   until the next barrier within a block, and else while the launch lasts. */
static void order_otherwise(bool is_within_block) {
    gk_sim_worker *worker = gk_sim_now.worker;
    if (!worker)
        return;
    worker->watch->unordered = worker->watch->epoch;
    if (!is_within_block)
        gk_sim_shadow_order(worker->user->shadow);
}

static bool is_shared(const void *at) {
    const gk_sim_worker *worker = gk_sim_now.worker;
    return worker && within(&worker->watch->shared, (uintptr_t)at, 1);
}

/* a launch ------------------------------------------------------------------------------------- */

bool gk_sim_watch_take(gk_sim_worker *worker) {
    const gk_sim_module *module = worker->user->module;
    size_t cells = (module->shared_bytes + GRANULE - 1) / GRANULE + 1;
    struct gk_sim_watch *watch = worker->watch;
    if (!watch)
        watch = worker->watch = calloc(1, sizeof *watch);
    if (!watch)
        return false;
    free(watch->cells);
    watch->cells = calloc(cells, sizeof *watch->cells);
    watch->cell_count = watch->cells ? cells : 0;
    watch->module = module;
    uintptr_t dynamic = (uintptr_t)module->dynamic_shared(), low = dynamic - module->shared_part;
    watch->shared = (gk_sim_span){low, low + module->shared_bytes};
    watch->dynamic = (gk_sim_span){dynamic, dynamic + worker->dynamic_bytes};
    watch->recent = (gk_sim_span){1, 0};
    watch->epoch = watch->unordered = 0;
    watch->global.met.recent = NULL;
    return watch->cells != NULL;
}

void gk_sim_watch_free(gk_sim_worker *worker) {
    if (worker->watch)
        free(worker->watch->cells);
    free(worker->watch);
}

void gk_sim_watch_block(gk_sim_worker *worker, uint64_t number) {
    struct gk_sim_watch *watch = worker->watch;
    if (!worker->user)
        return;
    watch->block_epoch = ++watch->epoch;
    watch->pending.bytes = watch->global.bytes = 0;
    watch->block = (uint32_t)number;
    memset(watch->clock, 0, sizeof watch->clock);
    memset(watch->seen, 0, sizeof watch->seen);
}

void gk_sim_watch_barrier(gk_sim_worker *worker) {
    if (worker->user)
        worker->watch->epoch++;
}

void gk_sim_watch_syncwarp(gk_sim_worker *worker, unsigned first, unsigned mask) {
    struct gk_sim_watch *watch = worker->watch;
    uint16_t joined[GK_SIM_WARP] = {0};
    if (!worker->user)
        return;
    for (unsigned lane = 0; lane < GK_SIM_WARP; lane++) {
        if (!(mask >> lane & 1))
            continue;
        watch->seen[first + lane][lane] = ++watch->clock[first + lane];
        for (unsigned i = 0; i < GK_SIM_WARP; i++)
            if (joined[i] < watch->seen[first + lane][i])
                joined[i] = watch->seen[first + lane][i];
    }
    for (unsigned lane = 0; lane < GK_SIM_WARP; lane++)
        if (mask >> lane & 1)
            memcpy(watch->seen[first + lane], joined, sizeof joined);
}

void gk_sim_watch_leave(gk_sim_worker *worker) {
    if (worker->user)
        settle_pending(worker->watch);
}

/* What the compiler calls before each access (-fsanitize=thread), by names of the simulator's own.
 */

#define GK_PLACE ((spot){__builtin_return_address(0), NULL, 0})
#define GK_WATCH(name, bytes, kind, is_volatile)                                                   \
    GK_SIM_SHARED void gk_sim___tsan_##name(const void *at);                                       \
    void gk_sim___tsan_##name(const void *at) {                                                    \
        look(at, bytes, kind, is_volatile, GK_PLACE);                                              \
    }
#define GK_WATCH_SIZE(bytes)                                                                       \
    GK_WATCH(read##bytes, bytes, READ, false)                                                      \
    GK_WATCH(write##bytes, bytes, WRITE, false)                                                    \
    GK_WATCH(unaligned_read##bytes, bytes, READ, false)                                            \
    GK_WATCH(unaligned_write##bytes, bytes, WRITE, false)                                          \
    GK_WATCH(volatile_read##bytes, bytes, READ, true)                                              \
    GK_WATCH(volatile_write##bytes, bytes, WRITE, true)
GK_WATCH_SIZE(1)
GK_WATCH_SIZE(2)
GK_WATCH_SIZE(4)
GK_WATCH_SIZE(8)
GK_WATCH_SIZE(16)

#define GK_RANGE(name, kind)                                                                       \
    GK_SIM_SHARED void gk_sim___tsan_##name(const void *at, size_t bytes);                         \
    void gk_sim___tsan_##name(const void *at, size_t bytes) {                                      \
        if (bytes)                                                                                 \
            look(at, bytes, kind, false, GK_PLACE);                                                \
    }
GK_RANGE(read_range, READ)
GK_RANGE(write_range, WRITE)

GK_SIM_SHARED void gk_sim___tsan_func_entry(void *caller);
GK_SIM_SHARED void gk_sim___tsan_func_exit(void);
GK_SIM_SHARED void gk_sim___tsan_init(void);
void gk_sim___tsan_func_entry(void *caller) {
    (void)caller;
}
void gk_sim___tsan_func_exit(void) {
}
void gk_sim___tsan_init(void) {
}

GK_SIM_SHARED void *gk_sim_memcpy(void *to, const void *from, size_t bytes);
GK_SIM_SHARED void *gk_sim_memmove(void *to, const void *from, size_t bytes);
GK_SIM_SHARED void *gk_sim_memset(void *to, int byte, size_t bytes);
void *gk_sim_memcpy(void *to, const void *from, size_t bytes) {
    if (bytes) {
        look(from, bytes, READ, false, GK_PLACE);
        look(to, bytes, WRITE, false, GK_PLACE);
    }
    return memcpy(to, from, bytes);
}
void *gk_sim_memmove(void *to, const void *from, size_t bytes) {
    if (bytes) {
        look(from, bytes, READ, false, GK_PLACE);
        look(to, bytes, WRITE, false, GK_PLACE);
    }
    return memmove(to, from, bytes);
}
void *gk_sim_memset(void *to, int byte, size_t bytes) {
    if (bytes)
        look(to, bytes, WRITE, false, GK_PLACE);
    return memset(to, byte, bytes);
}

void gk_sim_watch_atomic(gk_sim_worker *worker, const char *file, int line) {
    if (worker->user)
        worker->watch->atomic = (spot){NULL, file, line};
}

static spot atomic_place(void) {
    gk_sim_worker *worker = gk_sim_now.worker;
    return worker ? worker->watch->atomic : (spot){0};
}

/* Atomics are done here, between looks. */
#define GK_ATOMIC(T, bits, name)                                                                   \
    GK_SIM_SHARED T gk_sim___tsan_atomic##bits##_##name(T *at, T value, int order);                \
    T gk_sim___tsan_atomic##bits##_##name(T *at, T value, int order) {                             \
        (void)order;                                                                               \
        look(at, sizeof *at, ATOMIC, true, atomic_place());                                        \
        return __atomic_##name(at, value, __ATOMIC_RELAXED);                                       \
    }
#define GK_SWAP(T, bits, name, is_a_lock)                                                          \
    GK_SIM_SHARED int gk_sim___tsan_atomic##bits##_##name(T *at, T *expected, T value, int order,  \
                                                          int failed);                             \
    int gk_sim___tsan_atomic##bits##_##name(T *at, T *expected, T value, int order, int failed) {  \
        (void)order, (void)failed;                                                                 \
        look(at, sizeof *at, ATOMIC, true, atomic_place());                                        \
        if (is_a_lock)                                                                             \
            order_otherwise(is_shared(at));                                                        \
        return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST,           \
                                           __ATOMIC_SEQ_CST);                                      \
    }
#define GK_ATOMICS(T, bits)                                                                        \
    GK_SIM_SHARED T gk_sim___tsan_atomic##bits##_load(const T *at, int order);                     \
    T gk_sim___tsan_atomic##bits##_load(const T *at, int order) {                                  \
        (void)order;                                                                               \
        look(at, sizeof *at, ATOMIC, true, atomic_place());                                        \
        return __atomic_load_n(at, __ATOMIC_RELAXED);                                              \
    }                                                                                              \
    GK_SIM_SHARED T gk_sim___tsan_atomic##bits##_exchange(T *at, T value, int order);              \
    T gk_sim___tsan_atomic##bits##_exchange(T *at, T value, int order) {                           \
        (void)order;                                                                               \
        look(at, sizeof *at, ATOMIC, true, atomic_place());                                        \
        order_otherwise(is_shared(at));                                                            \
        return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                   \
    }                                                                                              \
    GK_ATOMIC(T, bits, fetch_add)                                                                  \
    GK_ATOMIC(T, bits, fetch_sub)                                                                  \
    GK_ATOMIC(T, bits, fetch_and)                                                                  \
    GK_ATOMIC(T, bits, fetch_or)                                                                   \
    GK_ATOMIC(T, bits, fetch_xor)                                                                  \
    GK_SWAP(T, bits, compare_exchange_strong, true)                                                \
    GK_SWAP(T, bits, compare_exchange_weak, false)
GK_ATOMICS(uint16_t, 16)
GK_ATOMICS(uint32_t, 32)
GK_ATOMICS(uint64_t, 64)

void gk_sim_fence(bool is_of_block) {
    order_otherwise(is_of_block);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

GK_SIM_SHARED void gk_sim___tsan_atomic_thread_fence(int order);
void gk_sim___tsan_atomic_thread_fence(int order) {
    (void)order;
    gk_sim_fence(false);
}
