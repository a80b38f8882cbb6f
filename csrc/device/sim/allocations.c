#define _GNU_SOURCE /* tsearch, posix_memalign */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "device/sim/simulator.h"

enum {
    POISON = 0xff, /* fresh device memory is not zero: a NaN in every floating type */
    CANARY = 0xa5,
    ALIGNMENT = 256, /* cuMemAlloc's */
    MOST_FREED = 8 << 20,
#ifdef __SANITIZE_ADDRESS__
    REDZONE = 0, /* the sanitizer has its own, and names the line */
#else
    REDZONE = 256,
#endif
};

struct gk_allocation {
    char *start, *end; /* at least one byte, so that each can be told from its neighbours */
    size_t bytes;
    gk_allocation *next, **link;
    gk_graph *graph;           /* that was captured with it, and keeps it; or NULL */
    gk_allocation *kept;       /* the next one of the graph's */
    bool is_lasting, is_freed; /* an array's too; which has died */
};

/* Ranges that share a byte compare as equal: a search for one byte finds its allocation. */
static int compare(const void *left, const void *right) {
    const gk_allocation *a = left, *b = right;
    return a->end <= b->start ? -1 : a->start >= b->end;
}

/* In the child of a fork, where a thread that is not here may have been in the middle of a change.
   The list can be walked forwards at any moment of one; the rest is made of it anew. */
static void inherit(gk_simulated *sim, bool was_abandoned) {
    gk_allocation **link = &sim->first;
    sim->used = 0;
    if (was_abandoned)
        sim->tree = NULL;
    for (gk_allocation *at = sim->first; at; link = &at->next, at = at->next) {
        at->link = link;
        sim->used += (size_t)(at->end - at->start);
        if (was_abandoned)
            (void)tsearch(at, &sim->tree, compare); /* what it has no memory for is not found */
    }
}

static void lock(gk_simulated *sim) {
    gk_taken taken = gk_lock_take(&sim->lock);
    if (taken == GK_INHERITED || taken == GK_ABANDONED)
        inherit(sim, taken == GK_ABANDONED);
}

static void unlock(gk_simulated *sim) {
    gk_lock_give(&sim->lock);
}

/* The live allocation that holds all `bytes` from `pointer`; under the lock. */
static gk_allocation *holder(gk_simulated *sim, const void *pointer, size_t bytes) {
    char *at = (char *)(uintptr_t)pointer;
    gk_allocation wanted = {.start = at, .end = at + 1};
    gk_allocation **found = tfind(&wanted, &sim->tree, compare);
    if (!found || bytes > (size_t)((*found)->start + (*found)->bytes - at))
        return NULL;
    return *found;
}

/* The same of the variables of users' modules. */
static bool is_data(const gk_simulated *sim, const void *pointer, size_t bytes) {
    const gk_simulated_data *at = sim->data;
    uintptr_t first = (uintptr_t)pointer;
    while (at && (first < at->span.low || first >= at->span.high || bytes > at->span.high - first))
        at = at->next;
    return at != NULL;
}

static bool holds(gk_simulated *sim, const void *pointer, size_t bytes) {
    lock(sim);
    bool found = holder(sim, pointer, bytes) || is_data(sim, pointer, bytes);
    unlock(sim);
    return found;
}

void gk_simulated_add_data(gk_simulated *sim, gk_simulated_data *data) {
    lock(sim);
    data->next = sim->data;
    sim->data = data;
    unlock(sim);
}

void gk_simulated_remove_data(gk_simulated *sim, gk_simulated_data *data) {
    lock(sim);
    gk_simulated_data **link = &sim->data;
    while (*link && *link != data)
        link = &(*link)->next;
    if (*link)
        *link = data->next;
    unlock(sim);
}

gk_status gk_simulated_inside(gk_simulated *sim, const void *pointer, size_t bytes,
                              gk_error *error) {
    if (!bytes || holds(sim, pointer, bytes))
        return GK_OK;
    return gk_fail(error, GK_CUDA_ERROR,
                   "CUDA_ERROR_INVALID_VALUE: %zu bytes at %p are not in one allocation of the "
                   "simulator",
                   bytes, pointer);
}

gk_status gk_simulated_owns(gk_backend *backend, const void *first, size_t bytes, gk_error *error) {
    if (holds((gk_simulated *)backend, first, bytes))
        return GK_OK;
    return gk_fail(error, GK_VALUE_ERROR, "%zu bytes at %p are not memory of the simulator", bytes,
                   first);
}

int gk_simulated_place(gk_backend *backend, const void *pointer) {
    return holds((gk_simulated *)backend, pointer, 1) ? backend->ordinal : -1;
}

size_t gk_simulated_used(gk_simulated *sim) {
    lock(sim);
    size_t used = sim->used;
    unlock(sim);
    return used;
}

/* allocating ----------------------------------------------------------------------------------- */

/* Count `bytes` as used if there are that many; what was free before comes back in `left`. */
static bool reserve(gk_simulated *sim, size_t bytes, size_t *left) {
    lock(sim);
    *left = sim->total - sim->used;
    bool fits = bytes <= *left;
    sim->used += fits ? bytes : 0;
    unlock(sim);
    return fits;
}

/* What waits to be freed may make the room that is missing. */
static bool reserve_settled(gk_simulated *sim, size_t bytes, size_t *left) {
    bool lazy = gk_queues_are_lazy(sim->queues);
    lock(sim);
    bool much = sim->freed_bytes > MOST_FREED;
    unlock(sim);
    if (!much && reserve(sim, bytes, left))
        return true;
    if (lazy)
        gk_simulated_settle(sim);
    return lazy && reserve(sim, bytes, left);
}

/* Poisoned memory between its redzones; NULL: out of memory. */
static gk_allocation *fresh_allocation(size_t bytes, size_t extent) {
    void *memory;
    gk_allocation *record = malloc(sizeof *record);
    if (!record || posix_memalign(&memory, ALIGNMENT, extent + 2 * (size_t)REDZONE) != 0) {
        free(record);
        return NULL;
    }
    char *start = (char *)memory + REDZONE;
    *record = (gk_allocation){.start = start, .end = start + extent, .bytes = bytes};
    memset(memory, CANARY, REDZONE);
    memset(start, POISON, extent);
    memset(record->end, CANARY, REDZONE);
    return record;
}

/* Into the tree and the list, from where other threads see it. False: out of memory. */
static bool publish(gk_simulated *sim, gk_allocation *record, gk_graph *graph) {
    lock(sim);
    bool held = tsearch(record, &sim->tree, compare) != NULL;
    if (held) {
        record->next = sim->first;
        record->link = &sim->first;
        if (sim->first)
            sim->first->link = &record->next;
        sim->first = record;
    }
    if (held && graph) {
        record->graph = graph;
        record->kept = graph->kept;
        graph->kept = record;
    }
    unlock(sim);
    return held;
}

static gk_status allocate(gk_backend *backend, size_t bytes, gk_stream stream, bool is_lasting,
                          void **device, gk_error *error) {
    gk_simulated *sim = (gk_simulated *)backend;
    gk_graph *graph;
    if (gk_queues_captured(sim->queues, stream, &graph, error) != GK_OK)
        return error->status;
    size_t extent = bytes ? bytes : 1, left = 0;
    bool reserved = reserve_settled(sim, extent, &left);
    gk_allocation *record = reserved ? fresh_allocation(bytes, extent) : NULL;
    if (record) {
        record->is_lasting = is_lasting;
        if (publish(sim, record, graph)) {
            *device = record->start;
            return GK_OK;
        }
        free(record->start - REDZONE);
        free(record);
    }
    if (reserved) {
        lock(sim);
        sim->used -= extent;
        unlock(sim);
    }
    return gk_fail(error, GK_MEMORY_ERROR,
                   "%zu bytes of device memory asked for, %zu of the simulator's %zu are free",
                   bytes, left, sim->total);
}

gk_status gk_simulated_allocate(gk_backend *backend, size_t bytes, gk_stream stream, void **device,
                                gk_error *error) {
    return allocate(backend, bytes, stream, false, device, error);
}

gk_status gk_simulated_allocate_lasting(gk_backend *backend, size_t bytes, gk_stream stream,
                                        void **device, gk_error *error) {
    return allocate(backend, bytes, stream, true, device, error);
}

/* freeing -------------------------------------------------------------------------------------- */

static void unlink_allocation(gk_simulated *sim, gk_allocation *record) {
    tdelete(record, &sim->tree, compare);
    *record->link = record->next;
    if (record->next)
        record->next->link = record->link;
    sim->used -= (size_t)(record->end - record->start);
}

/* Lazily the memory stays, poisoned, for those that use it though it is no longer theirs. */
static void free_allocation(gk_simulated *sim, gk_allocation *record) {
    if (!gk_queues_are_lazy(sim->queues)) {
        free(record->start - REDZONE);
        free(record);
        return;
    }
    memset(record->start, POISON, (size_t)(record->end - record->start));
    lock(sim);
    record->next = sim->freed;
    sim->freed = record;
    sim->freed_bytes += record->bytes;
    unlock(sim);
}

static gk_status free_now(void *context, const void *payload, gk_error *error) {
    gk_simulated *sim = context;
    void *device;
    (void)error;
    memcpy(&device, payload, sizeof device);
    lock(sim);
    gk_allocation *record = holder(sim, device, 0);
    if (record)
        unlink_allocation(sim, record);
    unlock(sim);
    if (record)
        free_allocation(sim, record);
    return GK_OK;
}

/* Whether a graph keeps it, as it does what was captured with it: then nothing is done now. */
static bool is_kept(gk_simulated *sim, void *device, size_t *bytes) {
    lock(sim);
    gk_allocation *record = holder(sim, device, 0);
    bool kept = record && record->graph;
    if (kept)
        record->is_freed = true;
    *bytes = record ? record->bytes : 0;
    unlock(sim);
    return kept;
}

void gk_simulated_release(gk_backend *backend, void *device, gk_stream stream) {
    gk_simulated *sim = (gk_simulated *)backend;
    gk_graph *graph = NULL;
    gk_error ignored;
    size_t bytes;
    if (!device || is_kept(sim, device, &bytes))
        return;
    if (gk_queues_captured(sim->queues, stream, &graph, &ignored) != GK_OK || graph)
        stream = GK_LEGACY_STREAM;
    gk_step *step = gk_step_new(free_now, NULL, sizeof device);
    if (step) {
        memcpy(gk_step_payload(step), &device, sizeof device);
        gk_step_weigh(step, bytes);
        (void)gk_queues_add(sim->queues, stream, step, &ignored);
    } else {
        gk_queues_drain(sim->queues);
        (void)free_now(sim, &device, &ignored);
    }
}

void gk_simulated_unkeep(gk_simulated *sim, gk_graph *graph) {
    gk_error ignored;
    for (gk_allocation *at = graph->kept; at;) {
        gk_allocation *next = at->kept;
        void *device = at->start;
        lock(sim); /* the array may die in another thread meanwhile */
        bool is_arrays = at->is_lasting && !at->is_freed;
        at->graph = NULL;
        unlock(sim);
        if (!is_arrays)
            (void)free_now(sim, &device, &ignored);
        at = next;
    }
}

/* for users' kernels --------------------------------------------------------------------------- */

static int by_address(const void *left, const void *right) {
    const gk_sim_span *a = left, *b = right;
    return a->low < b->low ? -1 : a->low > b->low;
}

gk_sim_span *gk_simulated_spans(gk_simulated *sim, size_t *count) {
    size_t total = 0, at = 0;
    lock(sim);
    for (const gk_allocation *one = sim->first; one; one = one->next)
        total++;
    gk_sim_span *spans = malloc((total + 1) * sizeof *spans);
    for (const gk_allocation *one = sim->first; one && spans; one = one->next)
        spans[at++] = (gk_sim_span){(uintptr_t)one->start, (uintptr_t)one->start + one->bytes};
    unlock(sim);
    if (spans)
        qsort(spans, at, sizeof *spans, by_address);
    *count = at;
    return spans;
}

/* looking for damage --------------------------------------------------------------------------- */

gk_status gk_simulated_redzones(gk_simulated *sim, const char *symbol, gk_error *error) {
    static const unsigned char canary[] = {[0 ... 255] = CANARY};
    _Static_assert(REDZONE <= (int)sizeof canary, "");
    gk_status status = GK_OK;
    if (!REDZONE)
        return GK_OK;
    lock(sim);
    for (gk_allocation *at = sim->first; at; at = at->next)
        for (int side = 0; side < 2; side++) {
            unsigned char *zone = (unsigned char *)(side ? at->end : at->start - REDZONE);
            if (memcmp(zone, canary, REDZONE) == 0)
                continue;
            /* The byte nearest to the allocation says most. */
            int i = side ? 0 : REDZONE - 1;
            while (zone[i] == CANARY)
                i += side ? 1 : -1;
            status = gk_fail(error, GK_CUDA_ERROR,
                             "%s wrote out of bounds: at byte %td of an allocation of %zu", symbol,
                             (char *)zone + i - at->start, at->bytes);
            memset(zone, CANARY, REDZONE);
        }
    unlock(sim);
    return status;
}

static gk_status check_poison(const gk_allocation *freed, gk_error *error) {
    for (size_t i = 0; i < freed->bytes; i++)
        if ((unsigned char)freed->start[i] != POISON)
            return gk_fail(error, GK_CUDA_ERROR,
                           "memory was written after it was freed: byte %zu of an allocation of "
                           "%zu",
                           i, freed->bytes);
    return GK_OK;
}

void gk_simulated_settle(gk_simulated *sim) {
    gk_error fault;
    gk_queues_drain(sim->queues);
    lock(sim);
    gk_allocation *freed = sim->freed;
    sim->freed = NULL;
    sim->freed_bytes = 0;
    unlock(sim);
    while (freed) {
        gk_allocation *next = freed->next;
        if (check_poison(freed, &fault) != GK_OK)
            gk_queues_blame(sim->queues, &fault);
        free(freed->start - REDZONE);
        free(freed);
        freed = next;
    }
}

void gk_simulated_close_memory(gk_simulated *sim) {
    while (sim->first) {
        gk_allocation *record = sim->first;
        unlink_allocation(sim, record);
        free(record->start - REDZONE);
        free(record);
    }
    while (sim->freed) {
        gk_allocation *next = sim->freed->next;
        free(sim->freed->start - REDZONE);
        free(sim->freed);
        sim->freed = next;
    }
}
