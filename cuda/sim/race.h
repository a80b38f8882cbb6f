/* What ThreadSanitizer has to be told, so that it takes each thread of a block for a thread: which
   one runs, and what orders them. With GK_SIM_TSAN only; nothing otherwise. */
#ifndef GK_SIM_RACE_H
#define GK_SIM_RACE_H

#ifdef GK_SIM_TSAN

#include <sanitizer/tsan_interface.h>
#include <stdlib.h>

#include "block.h"

/* The addresses alone matter: what is released at one is seen by who acquires it. */
struct gk_sim_race {
    void *scheduler;
    void *threads[GK_SIM_MAX_THREADS];
    unsigned barriers; /* that the block has passed */
    char start, end, barrier[2], arrived[GK_SIM_MAX_THREADS], passed[GK_SIM_MAX_THREADS];
};

static inline bool gk_sim_race_take(gk_sim_worker *worker) {
    if (!worker->race)
        worker->race = calloc(1, sizeof *worker->race);
    for (unsigned i = 0; worker->race && i < worker->count; i++)
        if (!worker->race->threads[i])
            worker->race->threads[i] = __tsan_create_fiber(0);
    return worker->race != NULL;
}

static inline void gk_sim_race_free(gk_sim_worker *worker) {
    for (unsigned i = 0; worker->race && i < GK_SIM_MAX_THREADS; i++)
        if (worker->race->threads[i])
            __tsan_destroy_fiber(worker->race->threads[i]);
    free(worker->race);
}

/* The scheduler's own code, or the thread's, goes on. */
static inline void gk_sim_race_scheduler(gk_sim_worker *worker) {
    __tsan_switch_to_fiber(worker->race->scheduler, __tsan_switch_to_fiber_no_sync);
}
static inline void gk_sim_race_thread(gk_sim_worker *worker, unsigned number) {
    __tsan_switch_to_fiber(worker->race->threads[number], __tsan_switch_to_fiber_no_sync);
}

/* A thread comes after what was there before its block, and before what follows it; not before or
   after the other threads. */
static inline void gk_sim_race_block_starts(gk_sim_worker *worker) {
    worker->race->scheduler = __tsan_get_current_fiber();
    __tsan_release(&worker->race->start);
}
static inline void gk_sim_race_block_ends(gk_sim_worker *worker) {
    for (unsigned i = 0; i < worker->count; i++)
        if (worker->doing[i] != GK_SIM_RETURNED) { /* abandoned by a fault */
            gk_sim_race_thread(worker, i);
            __tsan_release(&worker->race->end);
        }
    gk_sim_race_scheduler(worker);
    __tsan_acquire(&worker->race->end);
}
static inline void gk_sim_race_starts(gk_sim_worker *worker, unsigned number) {
    gk_sim_race_thread(worker, number);
    __tsan_acquire(&worker->race->start);
}
static inline void gk_sim_race_returns(gk_sim_worker *worker) {
    __tsan_release(&worker->race->end);
    gk_sim_race_scheduler(worker);
}

/* Two addresses in turn: a fast thread may be at the next barrier before a slow one has left. */
static inline unsigned gk_sim_race_arrives(gk_sim_worker *worker) {
    __tsan_release(worker->race->barrier + worker->race->barriers % 2);
    return worker->race->barriers;
}
static inline void gk_sim_race_all_arrived(gk_sim_worker *worker) {
    worker->race->barriers++;
}
static inline void gk_sim_race_passes(gk_sim_worker *worker, unsigned barrier) {
    __tsan_acquire(worker->race->barrier + barrier % 2);
}

/* Of the warp's meetings only __syncwarp orders memory. The last lane hands on what all have done.
 */
static inline void gk_sim_race_syncwarp(gk_sim_worker *worker, unsigned first, unsigned mask) {
    for (unsigned i = 0; i < GK_SIM_WARP; i++)
        if (mask >> i & 1)
            __tsan_acquire(worker->race->arrived + first + i);
    for (unsigned i = 0; i < GK_SIM_WARP; i++)
        if (mask >> i & 1)
            __tsan_release(worker->race->passed + first + i);
}
static inline void gk_sim_race_syncwarp_arrives(gk_sim_worker *worker, unsigned number) {
    __tsan_release(worker->race->arrived + number);
}
static inline void gk_sim_race_syncwarp_passes(gk_sim_worker *worker, unsigned number) {
    __tsan_acquire(worker->race->passed + number);
}

/* A stack is shared memory to it: each thread of a block needs one of its own. */
#define GK_SIM_STACK_A_THREAD 1

#else

#define gk_sim_race_take(worker)                     true
#define gk_sim_race_free(worker)                     ((void)(worker))
#define gk_sim_race_scheduler(worker)                ((void)(worker))
#define gk_sim_race_thread(worker, number)           ((void)(worker))
#define gk_sim_race_block_starts(worker)             ((void)(worker))
#define gk_sim_race_block_ends(worker)               ((void)(worker))
#define gk_sim_race_starts(worker, number)           ((void)(worker))
#define gk_sim_race_returns(worker)                  ((void)(worker))
#define gk_sim_race_arrives(worker)                  0
#define gk_sim_race_all_arrived(worker)              ((void)(worker))
#define gk_sim_race_passes(worker, barrier)          ((void)(barrier))
#define gk_sim_race_syncwarp(worker, first, mask)    ((void)(worker))
#define gk_sim_race_syncwarp_arrives(worker, number) ((void)(worker))
#define gk_sim_race_syncwarp_passes(worker, number)  ((void)(worker))
#define GK_SIM_STACK_A_THREAD                        0

#endif
#endif
