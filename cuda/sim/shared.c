#define _GNU_SOURCE /* dl_iterate_phdr */
#include "shared.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

enum {
    POISON = 0xff, /* a NaN in every floating type, -1 in every integer */
    CANARY = 0xa5,
    CANARY_BYTES = 256,
};

static int find_statics(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    gk_sim_statics *statics = context;
    uintptr_t low = (uintptr_t)info->dlpi_tls_data, here = (uintptr_t)statics->here();
    if (!low || here < low)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS && here - low < info->dlpi_phdr[i].p_memsz) {
            statics->bytes = info->dlpi_phdr[i].p_memsz;
            statics->before = here - low;
            return 1;
        }
    return 0;
}

gk_sim_statics gk_sim_statics_find(void *(*here)(void), size_t hole) {
    gk_sim_statics statics = {here, hole, hole, 0};
    (void)*(volatile char *)here(); /* the block is allocated at the first touch */
    dl_iterate_phdr(find_statics, &statics);
    return statics;
}

static void *own_state(void) {
    return &gk_sim_now;
}

gk_sim_statics gk_sim_statics_own(void) {
    return gk_sim_statics_find(own_state, sizeof gk_sim_now);
}

gk_sim_statics gk_sim_statics_of(const gk_sim_module *module) {
    return (gk_sim_statics){module->dynamic_shared, GK_SIM_DYNAMIC_BYTES, module->shared_bytes,
                            module->shared_part};
}

bool gk_sim_module_shared(gk_sim_module *module) {
    gk_sim_statics found = gk_sim_statics_find(module->dynamic_shared, GK_SIM_DYNAMIC_BYTES);
    module->shared_bytes = found.bytes;
    module->shared_part = found.before;
    return found.bytes >= GK_SIM_DYNAMIC_BYTES;
}

/* The module's thread-locals in this OS thread. Volatile, or the compiler takes what surrounds
   gk_sim_now for out of its bounds. */
static unsigned char *statics_base(const gk_sim_statics *statics) {
    volatile uintptr_t here = (uintptr_t)statics->here();
    return (unsigned char *)(here - statics->before);
}

/* The part of [low, high) in front of the hole, and the part behind it. */
static void fill(const gk_sim_statics *statics, size_t low, size_t high) {
    unsigned char *base = statics_base(statics);
    size_t front = statics->before, back = front + statics->hole;
    if (low < front)
        memset(base + low, POISON, (high < front ? high : front) - low);
    if (high > back)
        memset(base + (low > back ? low : back), POISON, high - (low > back ? low : back));
}

enum { STRIDE = 128 }; /* bytes that are looked at together: there are more than a megabyte */
typedef uint64_t words __attribute__((vector_size(16), aligned(1), may_alias));

/* All of them are the module's own: AddressSanitizer need not look at each access. */
__attribute__((no_sanitize("address", "undefined"))) static bool
is_poison(const unsigned char *from) {
    const words *at = (const words *)from;
    words all = at[0] & at[1] & at[2] & at[3] & at[4] & at[5] & at[6] & at[7];
    return (all[0] & all[1]) == UINT64_MAX;
}

/* The bytes in front of the first one that is no longer poison. */
static size_t clean_before(const unsigned char *from, size_t bytes) {
    size_t clean = 0;
    while (clean + STRIDE <= bytes && is_poison(from + clean))
        clean += STRIDE;
    while (clean < bytes && from[clean] == POISON)
        clean++;
    return clean;
}

/* The bytes up to the end of the last one that is no longer poison. */
static size_t dirty_up_to(const unsigned char *from, size_t bytes) {
    while (bytes >= STRIDE && is_poison(from + bytes - STRIDE))
        bytes -= STRIDE;
    while (bytes && from[bytes - 1] == POISON)
        bytes--;
    return bytes;
}

static void widen(size_t *low, size_t *high, size_t other_low, size_t other_high) {
    *low = other_low < *low ? other_low : *low;
    *high = other_high > *high ? other_high : *high;
}

/* Widen the range by what is no longer poison. */
static void scan(const gk_sim_statics *statics, gk_sim_touched *touched) {
    const unsigned char *base = statics_base(statics);
    size_t front = statics->before, back = front + statics->hole;
    size_t low = clean_before(base, front), high = dirty_up_to(base + back, statics->bytes - back);
    if (low == front)
        low = back + clean_before(base + back, statics->bytes - back);
    high = high ? back + high : dirty_up_to(base, front);
    widen(&touched->low, &touched->high, low, high);
}

static bool is_power_of_four(uint64_t number) {
    return (number & (number - 1)) == 0 && (number & 0x5555555555555555u);
}

gk_sim_seen *gk_sim_seen_of(gk_sim_seen *table, void (*run)(void **arguments)) {
    gk_sim_seen *place = table + gk_sim_mix((uintptr_t)run) % GK_SIM_SEEN;
    if (place->run != run)
        *place = (gk_sim_seen){.run = run, .low = SIZE_MAX};
    return place;
}

/* The shared memory of all kernels is megabytes: to fill it for every launch, and to look what is
   no longer poison, was a sixth of what tests take. So a kernel's launches 1, 4, 16... are watched,
   and in the others what it has been seen to touch is filled. What it touches for the first time is
   poison all the same. */
gk_sim_touched gk_sim_statics_expect(gk_sim_seen *kernel) {
    if (!kernel)
        return (gk_sim_touched){.low = SIZE_MAX, .watched = true};
    bool watched = is_power_of_four(++kernel->launches);
    return (gk_sim_touched){.low = kernel->low, .high = kernel->high, .watched = watched};
}

void gk_sim_seen_more(gk_sim_seen *kernel, const gk_sim_touched *touched) {
    widen(&kernel->low, &kernel->high, touched->low, touched->high);
}

void gk_sim_statics_poison(const gk_sim_statics *statics, gk_sim_touched *touched) {
    uint64_t before = touched->blocks++;
    bool all = !before && (touched->watched || !gk_sim_now.poisoned);
    /* A later block may touch what the first one did not. */
    if (touched->watched && is_power_of_four(before))
        scan(statics, touched);
    if (all)
        fill(statics, 0, statics->bytes);
    else if (touched->low < touched->high)
        fill(statics, touched->low, touched->high);
    gk_sim_now.poisoned |= all && !gk_sim_now.worker->user; /* whose memory is its module's */
}

void gk_sim_statics_leave(const gk_sim_statics *statics, gk_sim_touched *touched) {
    if (touched->watched && touched->blocks)
        scan(statics, touched);
}

void gk_sim_dynamic_free(gk_sim_worker *worker) {
    if (!worker->dynamic_is_modules)
        free(worker->dynamic_shared);
    worker->dynamic_shared = NULL;
    worker->dynamic_bytes = 0;
    worker->dynamic_is_modules = false;
}

/* A user's module has its own, for the most that there may be. */
static void take_modules(gk_sim_worker *worker, size_t bytes) {
    gk_sim_dynamic_free(worker);
    worker->dynamic_shared = worker->user->module->dynamic_shared();
    worker->dynamic_bytes = bytes;
    worker->dynamic_is_modules = true;
    memset(worker->dynamic_shared, CANARY, bytes + CANARY_BYTES);
}

bool gk_sim_dynamic_take(gk_sim_worker *worker, size_t bytes) {
    if (worker->user) {
        take_modules(worker, bytes);
        return true;
    }
    if (worker->dynamic_shared && worker->dynamic_bytes == bytes && !worker->dynamic_is_modules)
        return true;
    gk_sim_dynamic_free(worker);
    if (!bytes)
        return true;
#ifdef GK_SIM_ASAN
    size_t size = bytes; /* the sanitizer's redzone stands right behind */
#else
    size_t size = bytes + CANARY_BYTES;
#endif
    void *memory;
    if (posix_memalign(&memory, 256, size) != 0)
        return false;
    memset(memory, CANARY, size);
    worker->dynamic_shared = memory;
    worker->dynamic_bytes = bytes;
    return true;
}

void gk_sim_dynamic_poison(gk_sim_worker *worker) {
    if (worker->dynamic_bytes)
        memset(worker->dynamic_shared, POISON, worker->dynamic_bytes);
}

bool gk_sim_dynamic_whole(const gk_sim_worker *worker) {
#ifdef GK_SIM_ASAN
    if (!worker->dynamic_is_modules) /* which has no redzone */
        return true;
#endif
    unsigned char *end = (unsigned char *)worker->dynamic_shared + worker->dynamic_bytes;
    if (worker->dynamic_bytes)
        for (int i = 0; i < CANARY_BYTES; i++)
            if (end[i] != CANARY) {
                memset(end, CANARY, CANARY_BYTES);
                return false;
            }
    return true;
}
