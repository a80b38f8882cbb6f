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
    uintptr_t low = (uintptr_t)info->dlpi_tls_data, here = (uintptr_t)&gk_sim_now;
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

gk_sim_statics gk_sim_statics_find(void) {
    gk_sim_statics statics = {sizeof gk_sim_now, 0};
    gk_sim_now.number = 0; /* the block is allocated at the first touch */
    dl_iterate_phdr(find_statics, &statics);
    return statics;
}

/* The module's thread-locals in this OS thread. Volatile, or the compiler takes what surrounds
   gk_sim_now for out of its bounds. */
static unsigned char *statics_base(const gk_sim_statics *statics) {
    volatile uintptr_t here = (uintptr_t)&gk_sim_now;
    return (unsigned char *)(here - statics->before);
}

/* The part of [low, high) in front of gk_sim_now, and the part behind it. */
static void fill(const gk_sim_statics *statics, size_t low, size_t high) {
    unsigned char *base = statics_base(statics);
    size_t front = statics->before, back = front + sizeof gk_sim_now;
    if (low < front)
        memset(base + low, POISON, (high < front ? high : front) - low);
    if (high > back)
        memset(base + (low > back ? low : back), POISON, high - (low > back ? low : back));
}

/* The bytes in front of the first one that is no longer poison. */
static size_t clean_before(const unsigned char *from, size_t bytes) {
    size_t clean = 0;
    for (uint64_t word; clean + 8 <= bytes; clean += 8) {
        memcpy(&word, from + clean, 8);
        if (word != UINT64_MAX)
            break;
    }
    while (clean < bytes && from[clean] == POISON)
        clean++;
    return clean;
}

/* The bytes up to the end of the last one that is no longer poison. */
static size_t dirty_up_to(const unsigned char *from, size_t bytes) {
    for (uint64_t word; bytes >= 8; bytes -= 8) {
        memcpy(&word, from + bytes - 8, 8);
        if (word != UINT64_MAX)
            break;
    }
    while (bytes && from[bytes - 1] == POISON)
        bytes--;
    return bytes;
}

/* Widen the range by what is no longer poison. */
static void scan(const gk_sim_statics *statics, gk_sim_touched *touched) {
    const unsigned char *base = statics_base(statics);
    size_t front = statics->before, back = front + sizeof gk_sim_now;
    size_t low = clean_before(base, front), high = dirty_up_to(base + back, statics->bytes - back);
    if (low == front)
        low = back + clean_before(base + back, statics->bytes - back);
    high = high ? back + high : dirty_up_to(base, front);
    if (low < touched->low)
        touched->low = low;
    if (high > touched->high)
        touched->high = high;
}

void gk_sim_statics_poison(const gk_sim_statics *statics, gk_sim_touched *touched) {
    /* A later block may use what the first one did not; looking after blocks 1, 2, 4, 8... costs
       next to nothing. */
    uint64_t before = touched->blocks++;
    if (!before) {
        fill(statics, 0, statics->bytes);
        return;
    }
    if ((before & (before - 1)) == 0)
        scan(statics, touched);
    if (touched->low < touched->high)
        fill(statics, touched->low, touched->high);
}

bool gk_sim_dynamic_take(gk_sim_worker *worker, size_t bytes) {
    if (worker->dynamic_shared && worker->dynamic_bytes == bytes)
        return true;
    free(worker->dynamic_shared);
    worker->dynamic_shared = NULL;
    worker->dynamic_bytes = 0;
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
#ifndef GK_SIM_ASAN
    unsigned char *end = (unsigned char *)worker->dynamic_shared + worker->dynamic_bytes;
    if (worker->dynamic_bytes)
        for (int i = 0; i < CANARY_BYTES; i++)
            if (end[i] != CANARY) {
                memset(end, CANARY, CANARY_BYTES);
                return false;
            }
#else
    (void)worker;
#endif
    return true;
}
