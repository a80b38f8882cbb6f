#define _GNU_SOURCE /* tsearch, posix_memalign */
#include "device/sim/backend.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/lock.h"
#include "base/memory.h"
#include "device/registry.h"
#include "sim/sim.h"

#define GK_FAMILY(name)                                                                            \
    extern const gk_sim_body gk_sim_bodies_##name[] __attribute__((visibility("hidden")));
#include "gk_families.h"
#undef GK_FAMILY

enum {
    MOST_DEVICES = 8,
    POISON = 0xff, /* fresh device memory is not zero: a NaN in every floating type */
    CANARY = 0xa5,
    ALIGNMENT = 256, /* cuMemAlloc's */
#ifdef __SANITIZE_ADDRESS__
    REDZONE = 0, /* the sanitizer has its own, and names the line */
#else
    REDZONE = 256,
#endif
};

typedef struct allocation {
    char *start, *end; /* at least one byte, so that each can be told from its neighbours */
    size_t bytes;
    struct allocation *next, **link;
} allocation;

typedef struct sim_backend {
    gk_backend base;
    gk_sim *sim;
    size_t total; /* what counts as the device's memory */
    gk_lock lock; /* of what follows, but for the bodies */
    size_t used;
    void *tree; /* of allocations, by address */
    allocation *first;
    size_t slots; /* of the hash table of bodies by symbol: a power of two */
    const gk_sim_body **bodies;
} sim_backend;

struct gk_event {
    struct timespec at;
    bool recorded;
};

/* Ranges that share a byte compare as equal: a search for one byte finds its allocation. */
static int compare(const void *left, const void *right) {
    const allocation *a = left, *b = right;
    return a->end <= b->start ? -1 : a->start >= b->end;
}

/* In the child of a fork, where a thread that is not here may have been in the middle of a change.
   The list can be walked forwards at any moment of one; the rest is made of it anew. */
static void inherit(sim_backend *sim, bool was_abandoned) {
    allocation **link = &sim->first;
    sim->used = 0;
    if (was_abandoned)
        sim->tree = NULL;
    for (allocation *at = sim->first; at; link = &at->next, at = at->next) {
        at->link = link;
        sim->used += (size_t)(at->end - at->start);
        if (was_abandoned)
            (void)tsearch(at, &sim->tree, compare); /* what it has no memory for is not found */
    }
}

static void lock(sim_backend *sim) {
    gk_taken taken = gk_lock_take(&sim->lock);
    if (taken == GK_INHERITED || taken == GK_ABANDONED)
        inherit(sim, taken == GK_ABANDONED);
}

static void unlock(sim_backend *sim) {
    gk_lock_give(&sim->lock);
}

static gk_status only_stream(gk_stream stream, gk_error *error) {
    if (stream <= 1) /* 0 and 1 both name the legacy default stream */
        return GK_OK;
    return gk_fail(error, GK_VALUE_ERROR, "the simulator has no streams; leave stream out");
}

/* The live allocation that holds all `bytes` from `pointer`; under the lock. */
static allocation *holder(sim_backend *sim, const void *pointer, size_t bytes) {
    char *at = (char *)(uintptr_t)pointer;
    allocation wanted = {.start = at, .end = at + 1};
    allocation **found = tfind(&wanted, &sim->tree, compare);
    if (!found || bytes > (size_t)((*found)->start + (*found)->bytes - at))
        return NULL;
    return *found;
}

static gk_status inside(sim_backend *sim, const void *pointer, size_t bytes, gk_error *error) {
    if (!bytes)
        return GK_OK;
    lock(sim);
    allocation *found = holder(sim, pointer, bytes);
    unlock(sim);
    if (found)
        return GK_OK;
    return gk_fail(error, GK_CUDA_ERROR,
                   "CUDA_ERROR_INVALID_VALUE: %zu bytes at %p are not in one allocation of the "
                   "simulator",
                   bytes, pointer);
}

/* Count `bytes` as used if there are that many; what was free before comes back in `left`. */
static bool reserve(sim_backend *sim, size_t bytes, size_t *left) {
    lock(sim);
    *left = sim->total - sim->used;
    bool fits = bytes <= *left;
    sim->used += fits ? bytes : 0;
    unlock(sim);
    return fits;
}

/* Poisoned memory between its redzones; NULL: out of memory. */
static allocation *fresh_allocation(size_t bytes, size_t extent) {
    void *memory;
    allocation *record = malloc(sizeof *record);
    if (!record || posix_memalign(&memory, ALIGNMENT, extent + 2 * (size_t)REDZONE) != 0) {
        free(record);
        return NULL;
    }
    char *start = (char *)memory + REDZONE;
    *record = (allocation){.start = start, .end = start + extent, .bytes = bytes};
    memset(memory, CANARY, REDZONE);
    memset(start, POISON, extent);
    memset(record->end, CANARY, REDZONE);
    return record;
}

/* Into the tree and the list, from where other threads see it. False: out of memory. */
static bool publish(sim_backend *sim, allocation *record) {
    lock(sim);
    bool held = tsearch(record, &sim->tree, compare) != NULL;
    if (held) {
        record->next = sim->first;
        record->link = &sim->first;
        if (sim->first)
            sim->first->link = &record->next;
        sim->first = record;
    }
    unlock(sim);
    return held;
}

static gk_status sim_allocate(gk_backend *backend, size_t bytes, gk_stream stream, void **device,
                              gk_error *error) {
    sim_backend *sim = (sim_backend *)backend;
    if (only_stream(stream, error))
        return error->status;
    size_t extent = bytes ? bytes : 1, left;
    bool reserved = reserve(sim, extent, &left);
    allocation *record = reserved ? fresh_allocation(bytes, extent) : NULL;
    if (record && publish(sim, record)) {
        *device = record->start;
        return GK_OK;
    }
    if (record)
        free(record->start - REDZONE);
    free(record);
    if (reserved) {
        lock(sim);
        sim->used -= extent;
        unlock(sim);
    }
    return gk_fail(error, GK_MEMORY_ERROR,
                   "%zu bytes of device memory asked for, %zu of the simulator's %zu are free",
                   bytes, left, sim->total);
}

static void sim_release(gk_backend *backend, void *device, gk_stream stream) {
    sim_backend *sim = (sim_backend *)backend;
    (void)stream;
    if (!device)
        return;
    lock(sim);
    allocation *record = holder(sim, device, 0);
    if (record) {
        tdelete(record, &sim->tree, compare);
        *record->link = record->next;
        if (record->next)
            record->next->link = record->link;
        sim->used -= (size_t)(record->end - record->start);
    }
    unlock(sim);
    if (record)
        free(record->start - REDZONE);
    free(record);
}

static gk_status sim_captured(gk_backend *backend, gk_stream stream, bool *captured,
                              gk_error *error) {
    (void)backend;
    *captured = false;
    return only_stream(stream, error);
}

static gk_status sim_zero(gk_backend *backend, void *device, size_t bytes, gk_stream stream,
                          gk_error *error) {
    if (only_stream(stream, error) || inside((sim_backend *)backend, device, bytes, error))
        return error->status;
    memset(device, 0, bytes);
    return GK_OK;
}

/* A fault ends a launch half-way here without ending the process: the counters would stay as they
   are. */
static gk_status sim_counters(gk_backend *backend, gk_stream stream, unsigned **counters,
                              gk_error *error) {
    (void)backend;
    *counters = NULL;
    return only_stream(stream, error);
}

static gk_status sim_copy_in(gk_backend *backend, void *device, const void *host, size_t bytes,
                             gk_stream stream, gk_error *error) {
    if (only_stream(stream, error) || inside((sim_backend *)backend, device, bytes, error))
        return error->status;
    memcpy(device, host, bytes);
    return GK_OK;
}

static gk_status sim_copy_out(gk_backend *backend, void *host, const void *device, size_t bytes,
                              gk_stream stream, gk_error *error) {
    if (only_stream(stream, error) || inside((sim_backend *)backend, device, bytes, error))
        return error->status;
    memcpy(host, device, bytes);
    return GK_OK;
}

static gk_status sim_copy_within(gk_backend *backend, void *to, const void *from, size_t bytes,
                                 gk_stream stream, gk_error *error) {
    sim_backend *sim = (sim_backend *)backend;
    if (only_stream(stream, error) || inside(sim, to, bytes, error) ||
        inside(sim, from, bytes, error))
        return error->status;
    memmove(to, from, bytes);
    return GK_OK;
}

static size_t hash(const char *symbol) {
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    while (*symbol)
        h = (h ^ (unsigned char)*symbol++) * 0x100000001b3u;
    return (size_t)(h ^ (h >> 32));
}

/* The place of the symbol in the table, or the empty one where it would go. */
static const gk_sim_body **place_of(sim_backend *sim, const char *symbol) {
    size_t at = hash(symbol) & (sim->slots - 1);
    while (sim->bodies[at] && strcmp(sim->bodies[at]->symbol, symbol) != 0)
        at = (at + 1) & (sim->slots - 1);
    return sim->bodies + at;
}

static gk_status sim_holds(gk_backend *backend, const gk_row *row, gk_error *error) {
    if (!row->symbol)
        return gk_fail(error, GK_CUDA_ERROR, "needs a GPU (cuBLAS)");
    if (!*place_of((sim_backend *)backend, row->symbol))
        return gk_fail(error, GK_CUDA_ERROR, "needs a GPU: the simulator has no %s", row->symbol);
    return GK_OK;
}

/* The first byte that the kernel wrote outside of an allocation; the canary is put back. */
static gk_status redzones(sim_backend *sim, const char *symbol, gk_error *error) {
    static const unsigned char canary[] = {[0 ... 255] = CANARY};
    _Static_assert(REDZONE <= (int)sizeof canary, "");
    gk_status status = GK_OK;
    lock(sim);
    for (allocation *at = sim->first; at; at = at->next)
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

static gk_status sim_launch(gk_backend *backend, const gk_launch *launch, gk_error *error) {
    sim_backend *sim = (sim_backend *)backend;
    if (only_stream(launch->stream, error) || sim_holds(backend, launch->row, error))
        return error->status;
    gk_sim_grid grid = {
        .body = *place_of(sim, launch->row->symbol),
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .block = {launch->block[0], launch->block[1], launch->block[2]},
        .shared_bytes = launch->shared_bytes,
        .arguments = launch->arguments,
    };
    if (!gk_sim_launch(sim->sim, &grid, error->text, sizeof error->text))
        return error->status = GK_CUDA_ERROR;
    return REDZONE ? redzones(sim, launch->row->symbol, error) : GK_OK;
}

static gk_status sim_gemm(gk_backend *backend, const gk_gemm *gemm, gk_error *error) {
    (void)backend, (void)gemm;
    return gk_fail(error, GK_CUDA_ERROR, "cuBLAS needs a GPU");
}

static gk_status sim_describe_box(gk_backend *backend, const gk_tensor_box *box, gk_tensor_map *map,
                                  gk_error *error) {
    (void)backend, (void)box, (void)map;
    return gk_fail(error, GK_CUDA_ERROR, "tensor maps need a GPU of compute capability 9.0");
}

/* Everything is over when its call returns, so one stream is as good as many: the legacy one. */
static gk_status sim_stream_new(gk_backend *backend, gk_stream *stream, gk_error *error) {
    (void)backend, (void)error;
    *stream = 1;
    return GK_OK;
}

static void sim_stream_free(gk_backend *backend, gk_stream stream) {
    (void)backend, (void)stream;
}

/* The kernels run on the CPU: all memory is theirs to read and write. */
static gk_status sim_pin(gk_backend *backend, void *host, size_t bytes, gk_error *error) {
    (void)backend, (void)host, (void)bytes, (void)error;
    return GK_OK;
}

static void sim_unpin(gk_backend *backend, void *host) {
    (void)backend, (void)host;
}

static gk_status sim_reach(gk_backend *backend, gk_event *event, gk_error *error) {
    (void)backend, (void)event, (void)error;
    return GK_OK;
}

static gk_status sim_wait_event(gk_backend *backend, gk_stream waiting, gk_event *event,
                                gk_error *error) {
    (void)backend, (void)event;
    return only_stream(waiting, error);
}

static gk_status sim_event_new(gk_backend *backend, gk_event **event, gk_error *error) {
    (void)backend;
    *event = calloc(1, sizeof **event);
    return *event ? GK_OK : gk_fail(error, GK_MEMORY_ERROR, "out of memory for an event");
}

static void sim_event_free(gk_backend *backend, gk_event *event) {
    (void)backend;
    free(event);
}

static gk_status sim_record(gk_backend *backend, gk_event *event, gk_stream stream,
                            gk_error *error) {
    (void)backend;
    if (only_stream(stream, error))
        return error->status;
    clock_gettime(CLOCK_MONOTONIC, &event->at);
    event->recorded = true;
    return GK_OK;
}

static gk_status sim_elapsed(gk_backend *backend, gk_event *from, gk_event *to, double *seconds,
                             gk_error *error) {
    (void)backend;
    if (!from->recorded || !to->recorded)
        return gk_fail(error, GK_VALUE_ERROR, "an event that was not recorded has no time");
    *seconds = (double)(to->at.tv_sec - from->at.tv_sec) +
               1e-9 * (double)(to->at.tv_nsec - from->at.tv_nsec);
    return GK_OK;
}

static gk_status sim_wait(gk_backend *backend, gk_stream waiting, gk_stream producer,
                          gk_error *error) {
    (void)backend;
    return only_stream(waiting | producer, error);
}

/* A launch is over when it returns. */
static gk_status sim_synchronize(gk_backend *backend, gk_stream stream, gk_error *error) {
    (void)backend;
    return only_stream(stream, error);
}

static gk_status sim_owns(gk_backend *backend, const void *first, size_t bytes, gk_error *error) {
    sim_backend *sim = (sim_backend *)backend;
    lock(sim);
    allocation *found = holder(sim, first, bytes);
    unlock(sim);
    if (found)
        return GK_OK;
    return gk_fail(error, GK_VALUE_ERROR, "%zu bytes at %p are not memory of the simulator", bytes,
                   first);
}

static int sim_place(gk_backend *backend, const void *pointer) {
    sim_backend *sim = (sim_backend *)backend;
    lock(sim);
    allocation *found = holder(sim, pointer, 1);
    unlock(sim);
    return found ? backend->ordinal : -1;
}

static gk_status sim_copy_across(gk_backend *backend, void *to, gk_backend *other, const void *from,
                                 size_t bytes, gk_error *error) {
    if (inside((sim_backend *)backend, to, bytes, error) ||
        inside((sim_backend *)other, from, bytes, error))
        return error->status;
    memcpy(to, from, bytes);
    return GK_OK;
}

/* The simulator keeps nothing: what is released is the system's at once. */
static void sim_trim(gk_backend *backend) {
    (void)backend;
}

static size_t sim_live_bytes(gk_backend *backend) {
    sim_backend *sim = (sim_backend *)backend;
    lock(sim);
    size_t used = sim->used;
    unlock(sim);
    return used;
}

static void sim_close(gk_backend *backend) {
    sim_backend *sim = (sim_backend *)backend;
    if (!sim)
        return;
    while (sim->first)
        sim_release(backend, sim->first->start, 0);
    gk_sim_close(sim->sim);
    gk_lock_free(&sim->lock);
    free(sim->bodies);
    free(sim);
}

/* A non-negative number from the environment. */
static gk_status number_from(const char *variable, uint64_t *number, gk_error *error) {
    const char *text = getenv(variable);
    if (!text || !*text)
        return GK_OK;
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (*end || errno || *text < '0' || *text > '9')
        return gk_fail(error, GK_VALUE_ERROR, "%s is '%s', not a number of 0 or more", variable,
                       text);
    *number = value;
    return GK_OK;
}

/* Half of the memory of the machine, or of the container: the arrays on the host need the rest.
   Less where GPUKERN_SIM_MEMORY asks for a small device. */
static size_t device_memory(uint64_t wanted) {
    size_t half = gk_memory_total() / 2;
    return wanted && wanted < half ? (size_t)wanted : half;
}

static bool tabulate(sim_backend *sim) {
    static const gk_sim_body *const families[] = {
#define GK_FAMILY(name) gk_sim_bodies_##name,
#include "gk_families.h"
#undef GK_FAMILY
        NULL,
    };
    size_t count = 0;
    for (int i = 0; families[i]; i++)
        for (const gk_sim_body *body = families[i]; body->symbol; body++)
            count++;
    sim->slots = 1;
    while (sim->slots < 2 * count + 1)
        sim->slots *= 2;
    sim->bodies = calloc(sim->slots, sizeof *sim->bodies);
    if (!sim->bodies)
        return false;
    for (int i = 0; families[i]; i++)
        for (const gk_sim_body *body = families[i]; body->symbol; body++)
            *place_of(sim, body->symbol) = body;
    return true;
}

static const gk_backend functions = {
    .name = "sim",
    .capability = GK_SIM_CAPABILITY,
    .allocate = sim_allocate,
    .allocate_lasting = sim_allocate,
    .release = sim_release,
    .captured = sim_captured,
    .zero = sim_zero,
    .counters = sim_counters,
    .copy_in = sim_copy_in,
    .copy_out = sim_copy_out,
    .copy_within = sim_copy_within,
    .launch = sim_launch,
    .gemm = sim_gemm,
    .describe_box = sim_describe_box,
    .stream_new = sim_stream_new,
    .stream_free = sim_stream_free,
    .start_copy_in = sim_copy_in,
    .start_copy_out = sim_copy_out,
    .pin = sim_pin,
    .unpin = sim_unpin,
    .event_new = sim_event_new,
    .event_free = sim_event_free,
    .record = sim_record,
    .elapsed = sim_elapsed,
    .reach = sim_reach,
    .wait_event = sim_wait_event,
    .wait = sim_wait,
    .synchronize = sim_synchronize,
    .holds = sim_holds,
    .owns = sim_owns,
    .place = sim_place,
    .copy_across = sim_copy_across,
    .live_bytes = sim_live_bytes,
    .trim = sim_trim,
    .close = sim_close,
};

static int device_count(uint64_t asked) {
    return asked == 0 ? 1 : asked < MOST_DEVICES ? (int)asked : MOST_DEVICES;
}

static gk_status check_ordinal(int ordinal, int devices, gk_error *error) {
    if (ordinal < devices)
        return GK_OK;
    if (devices == 1)
        return gk_fail(error, GK_VALUE_ERROR, "there is no device %d: the simulator is device 0",
                       ordinal);
    return gk_fail(error, GK_VALUE_ERROR, "there is no device %d: the simulator has %d", ordinal,
                   devices);
}

gk_status gk_backend_sim_open(gk_backend **backend, int ordinal, gk_error *error) {
    uint64_t seed = 1, cores = 0, memory = 0, devices = 1;
    if (number_from("GPUKERN_SIM_SEED", &seed, error) ||
        number_from("GPUKERN_SIM_THREADS", &cores, error) ||
        number_from("GPUKERN_SIM_DEVICES", &devices, error) ||
        check_ordinal(ordinal, device_count(devices), error) ||
        number_from("GPUKERN_SIM_MEMORY", &memory, error))
        return error->status;
    sim_backend *sim = calloc(1, sizeof *sim);
    if (!sim)
        return gk_fail(error, GK_MEMORY_ERROR, "out of memory for the simulator");
    sim->base = functions;
    sim->base.ordinal = ordinal;
    sim->base.devices = device_count(devices);
    sim->total = device_memory(memory);
    if (!gk_lock_init(&sim->lock)) {
        free(sim);
        return gk_fail(error, GK_MEMORY_ERROR, "the system has no lock for the simulator");
    }
    sim->sim = gk_sim_open(cores < 1024 ? (unsigned)cores : 1024, seed);
    if (!sim->sim || !tabulate(sim)) {
        sim_close(&sim->base);
        return gk_fail(error, GK_MEMORY_ERROR, "out of memory for the simulator");
    }
    *backend = &sim->base;
    return GK_OK;
}

void gk_backend_sim_describe(int ordinal, gk_device_summary *summary, gk_attribute_visitor visit,
                             void *context) {
    (void)ordinal; /* they are all alike */
    gk_error ignored;
    uint64_t cores = 0, memory = 0;
    (void)number_from("GPUKERN_SIM_THREADS", &cores, &ignored);
    (void)number_from("GPUKERN_SIM_MEMORY", &memory, &ignored);
    *summary = (gk_device_summary){
        .name = "simulator (CPU)",
        .capability = GK_SIM_CAPABILITY,
        .memory_total = device_memory(memory),
        .memory_free = gk_memory_free(),
    };
    if (summary->memory_free > summary->memory_total)
        summary->memory_free = summary->memory_total;
    if (!visit)
        return;
    const struct {
        const char *name;
        int value;
    } attributes[] = {
        {"MAX_THREADS_PER_BLOCK", GK_SIM_MAX_THREADS},
        {"MAX_BLOCK_DIM_X", GK_SIM_MAX_THREADS},
        {"MAX_BLOCK_DIM_Y", GK_SIM_MAX_THREADS},
        {"MAX_BLOCK_DIM_Z", GK_SIM_MAX_BLOCK_Z},
        {"MAX_GRID_DIM_X", GK_SIM_MAX_GRID_X},
        {"MAX_GRID_DIM_Y", GK_SIM_MAX_GRID_YZ},
        {"MAX_GRID_DIM_Z", GK_SIM_MAX_GRID_YZ},
        {"MAX_SHARED_MEMORY_PER_BLOCK", GK_SIM_MAX_SHARED},
        {"WARP_SIZE", GK_SIM_WARP},
        {"MULTIPROCESSOR_COUNT", (int)gk_sim_cores(cores < 1024 ? (unsigned)cores : 1024)},
        {"COMPUTE_CAPABILITY_MAJOR", GK_SIM_CAPABILITY / 10},
        {"COMPUTE_CAPABILITY_MINOR", GK_SIM_CAPABILITY % 10},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        visit(context, attributes[i].name, attributes[i].value);
}
