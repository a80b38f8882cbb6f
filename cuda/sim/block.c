#define _GNU_SOURCE /* posix_memalign */
#include "block.h"
#include "race.h"
#include "shared.h"
#include "watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

__thread gk_sim_state gk_sim_now;

#ifndef GK_SIM_SPIN_SECONDS
#define GK_SIM_SPIN_SECONDS 30
#endif
enum { ATOMICS_BEFORE_A_YIELD = 4096, YIELDS_BEFORE_A_LOOK = 1024 };
/* More than a frame of a user's function (kernels/host.py) and what the C library takes. */
enum { STACK_LEFT = 28 * 1024 };
enum { STEPS_BEFORE_A_YIELD = 1 << 15, MILLISECONDS_BETWEEN_QUESTIONS = 20 };

/* The finalizer of splitmix64. */
uint64_t gk_sim_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static unsigned common_divisor(unsigned a, unsigned b) {
    while (b) {
        unsigned rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static gk_sim_order next_order(gk_sim_worker *worker) {
    gk_sim_order order = {0, 1, 0, 1};
    if (!worker->seed)
        return order;
    uint64_t bits = worker->random = gk_sim_mix(worker->random);
    order.lane = bits & 31;
    order.lane_step = (bits >> 5 & 31) | 1;
    order.warp = (unsigned)(bits >> 16 & 0xffff) % worker->warps;
    order.warp_step = 1 + (unsigned)(bits >> 32 & 0xffff) % worker->warps;
    while (common_divisor(order.warp_step, worker->warps) != 1)
        order.warp_step++;
    return order;
}

/* All threads are ready, in a fresh order. */
static void ready_all(gk_sim_worker *worker) {
    gk_sim_order order = next_order(worker);
    unsigned count = 0, warp = order.warp;
    for (unsigned i = 0; i < worker->warps; i++) {
        for (unsigned j = 0; j < GK_SIM_WARP; j++) {
            unsigned number = warp * GK_SIM_WARP + ((order.lane + j * order.lane_step) & 31);
            worker->ready[count] = (uint16_t)number;
            count += number < worker->count;
        }
        warp = (warp + order.warp_step) % worker->warps;
    }
    worker->ready_head = 0;
    worker->ready_count = count;
}

static void ready_one(gk_sim_worker *worker, unsigned number) {
    unsigned place = (worker->ready_head + worker->ready_count++) % GK_SIM_MAX_THREADS;
    worker->ready[place] = (uint16_t)number;
}

/* Of the threads that have not started; there is one. */
static unsigned start_next(gk_sim_worker *worker) {
    const gk_sim_order *order = &worker->order;
    for (;;) {
        if (worker->order_lane == GK_SIM_WARP) {
            worker->order_lane = 0;
            worker->order_warp = (worker->order_warp + order->warp_step) % worker->warps;
        }
        unsigned lane = (order->lane + worker->order_lane++ * order->lane_step) & 31;
        unsigned number = worker->order_warp * GK_SIM_WARP + lane;
        if (number < worker->count) {
            worker->started++;
            return number;
        }
    }
}

static void enter(void);

/* A fiber that is not in use; more are mapped when none is left. NULL: out of memory. */
static gk_sim_fiber *free_fiber(gk_sim_worker *worker) {
    if (!worker->free_count) {
        gk_sim_fiber *slab = calloc(GK_SIM_FIBERS_A_SLAB, sizeof *slab);
        if (!slab || worker->slabs == GK_SIM_SLABS || !gk_sim_slab_map(slab, worker->slabs)) {
            free(slab);
            return NULL;
        }
        worker->fibers[worker->slabs++] = slab;
        for (unsigned i = 0; i < GK_SIM_FIBERS_A_SLAB; i++) {
            gk_sim_fiber_reset(slab + i, enter);
            worker->free[worker->free_count++] = slab + i;
        }
    }
    return worker->free[--worker->free_count];
}

/* The stacks and records of threads whose turn is near lie all over the second-level cache. */
static inline void prefetch(const gk_sim_worker *worker) {
    const gk_sim_thread *threads = worker->threads;
    unsigned far = (worker->ready_head + 6) % GK_SIM_MAX_THREADS;
    unsigned near = (worker->ready_head + 3) % GK_SIM_MAX_THREADS;
    __builtin_prefetch(threads + worker->ready[far], 1);
    const char *stack = threads[worker->ready[near]].context;
    __builtin_prefetch(stack, 1);
    __builtin_prefetch(stack + 64, 1);
    __builtin_prefetch(stack + 128, 1);
}

/* Leave the running fiber, whose context goes to `save`, for whoever is next: a thread that is
   ready, a free fiber to start one on, or the OS thread's own stack when all threads have returned
   or none can go on. */
static inline void leave(gk_sim_worker *worker, void **save) {
    gk_sim_fiber *mine = worker->running, *next = &worker->main;
    bool start = worker->started < worker->count;
    void *target;
    if (worker->ready_count && (worker->ready_first || !start)) {
        const gk_sim_thread *thread = worker->threads + worker->ready[worker->ready_head];
        worker->ready_head = (worker->ready_head + 1) % GK_SIM_MAX_THREADS;
        worker->ready_count--;
        prefetch(worker);
        next = thread->fiber;
        target = thread->context;
    } else {
        if (start && !(next = free_fiber(worker))) {
            snprintf(worker->problem, sizeof worker->problem,
                     "out of memory for the threads' stacks");
            worker->faulted = true;
            next = &worker->main;
        }
        target = next->context;
    }
    if (next == mine) /* also where the OS thread's own stack has got no fiber to leave for */
        return;
    worker->running = next;
    gk_sim_fiber_switch(&worker->left, mine, save, next, target);
}

/* The running thread waits until somebody has made it ready. */
static inline void park(gk_sim_worker *worker, unsigned number) {
    gk_sim_thread *thread = worker->threads + number;
    thread->fiber = worker->running;
    leave(worker, &thread->context);
    gk_sim_race_thread(worker, number);
    worker->doing[number] = GK_SIM_RUNS;
    worker->owner->thread = thread->index;
    worker->owner->number = number;
}

/* By way of `owner`, since a free fiber may go on in a later launch on another OS thread, and a
   compiler may keep the address of a thread-local in the frame that waits. */
static inline void run_thread(gk_sim_worker *worker, unsigned number) {
    gk_sim_state *now = worker->owner;
    now->thread = worker->threads[number].index;
    now->number = number;
    now->atomics_left = ATOMICS_BEFORE_A_YIELD;
    gk_sim_race_starts(worker, number);
    now->steps_left = STEPS_BEFORE_A_YIELD;
    worker->run(worker->arguments);
    gk_sim_watch_leave(worker);
    gk_sim_race_returns(worker);
    worker->doing[number] = GK_SIM_RETURNED;
    worker->returned++;
    worker->yields = 0;
}

/* Run threads one after another on this stack; a thread that has to wait keeps it. */
static void run_threads(gk_sim_worker *worker) {
    for (;;) {
        while (worker->started < worker->count && !(worker->ready_first && worker->ready_count)) {
            run_thread(worker, start_next(worker));
            if (GK_SIM_STACK_A_THREAD)
                break;
        }
        if (!GK_SIM_STACK_A_THREAD)
            worker->free[worker->free_count++] = worker->running;
        leave(worker, &worker->running->context);
        gk_sim_race_scheduler(worker);
    }
}

static void enter(void) {
    gk_sim_worker *worker = gk_sim_now.worker;
    gk_sim_fiber_entered(worker->left);
    gk_sim_race_scheduler(worker);
    run_threads(worker);
}

void gk_sim_fault(const char *file, int line, const char *format, ...) {
    gk_sim_worker *worker = gk_sim_now.worker;
    gk_sim_index at = gk_sim_now.thread;
    const char *slash = file ? strrchr(file, '/') : NULL;
    char place[128] = "";
    if (file)
        snprintf(place, sizeof place, ", %.100s:%d", slash ? slash + 1 : file, line);
    int used = snprintf(worker->problem, sizeof worker->problem, "thread (%u, %u, %u)%s: ", at.x,
                        at.y, at.z, place);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(worker->problem + used, sizeof worker->problem - (size_t)used, format, arguments);
    va_end(arguments);
    worker->faulted = true;
    gk_sim_fiber *mine = worker->running;
    worker->running = &worker->main;
    gk_sim_fiber_switch(&worker->left, mine, &mine->context, &worker->main, worker->main.context);
    __builtin_unreachable(); /* nobody switches back: the stack is abandoned as it is */
}

/* The thread may be waiting for one that has not started. */
static void let_others_run(gk_sim_worker *worker, unsigned number) {
    worker->ready_first = false;
    ready_one(worker, number);
}

void gk_sim_yield(void) {
    gk_sim_worker *worker = gk_sim_now.worker;
    gk_sim_now.atomics_left = ATOMICS_BEFORE_A_YIELD;
    if (++worker->yields % YIELDS_BEFORE_A_LOOK == 0) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (worker->yields == YIELDS_BEFORE_A_LOOK)
            worker->idle_since = now.tv_sec;
        else if (now.tv_sec - worker->idle_since > GK_SIM_SPIN_SECONDS)
            gk_sim_fault(NULL, 0,
                         "it spins on an atomic, and no thread of its block has got any "
                         "further for %d seconds",
                         GK_SIM_SPIN_SECONDS);
    }
    let_others_run(worker, gk_sim_now.number);
    park(worker, gk_sim_now.number);
}

void gk_sim_count_atomic(const char *file, int line) {
    if (!gk_sim_now.worker) /* as a module is loaded */
        return;
    gk_sim_watch_atomic(gk_sim_now.worker, file, line);
    if (--gk_sim_now.atomics_left == 0)
        gk_sim_yield();
}

static int64_t milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The OS thread's own stack goes on, and asks: Python's signal handlers run on it. */
static void ask(gk_sim_worker *worker, unsigned number) {
    gk_sim_thread *thread = worker->threads + number;
    worker->asks = true;
    thread->fiber = worker->running;
    worker->running = &worker->main;
    gk_sim_fiber_switch(&worker->left, thread->fiber, &thread->context, &worker->main,
                        worker->main.context);
    worker->owner->thread = thread->index;
    worker->owner->number = number;
}

/* The compiler calls this in each basic block of a user's kernel: a loop that waits for another
   thread, or never ends, does not keep the others from going on, nor the user from ending it. */
GK_SIM_SHARED void gk_sim___sanitizer_cov_trace_pc(void);
void gk_sim___sanitizer_cov_trace_pc(void) {
    gk_sim_worker *worker = gk_sim_now.worker;
    char here;
    if (!worker || !worker->running || worker->running == &worker->main)
        return; /* in none of a block's threads */
    if ((uintptr_t)&here - (uintptr_t)worker->running->low < STACK_LEFT)
        gk_sim_fault(NULL, 0, "its stack is used up, as by a function that calls itself for ever");
    if (--gk_sim_now.steps_left)
        return;
    unsigned number = gk_sim_now.number;
    gk_sim_now.steps_left = STEPS_BEFORE_A_YIELD;
    if (atomic_load_explicit(worker->stop, memory_order_relaxed))
        gk_sim_fault(NULL, 0, "the launch was ended");
    gk_sim_watch_leave(worker);
    let_others_run(worker, number);
    if (worker->may_ask && milliseconds() - worker->asked > MILLISECONDS_BETWEEN_QUESTIONS)
        ask(worker, number);
    else
        park(worker, number);
}

/* On the OS thread's own stack, in place of a thread that wants it so. False: it is to end. */
static bool answer(gk_sim_worker *worker) {
    gk_sim_user *user = worker->user;
    worker->asks = false;
    worker->asked = milliseconds();
    user->was_interrupted = user->interrupted(user->context);
    return !user->was_interrupted;
}

static int verdict(gk_sim_meeting meeting, int nonzero, unsigned count) {
    if (meeting == GK_SIM_SYNCTHREADS_AND)
        return (unsigned)nonzero == count;
    return meeting == GK_SIM_SYNCTHREADS_OR ? nonzero != 0 : nonzero;
}

int gk_sim_meet_block(gk_sim_meeting meeting, int predicate, const char *file, int line) {
    gk_sim_worker *worker = gk_sim_now.worker;
    unsigned number = gk_sim_now.number;
    gk_sim_thread *thread = worker->threads + number;
    thread->file = file;
    thread->line = line;
    thread->meeting = (uint8_t)meeting;
    if (!worker->arrived++) {
        worker->first = number;
        worker->mixed = false;
        worker->nonzero = 0;
    }
    gk_sim_watch_leave(worker);
    const gk_sim_thread *first = worker->threads + worker->first;
    if (first->line != line || first->meeting != meeting ||
        (first->file != file && strcmp(first->file, file) != 0))
        worker->mixed = true;
    worker->nonzero += predicate != 0;
    worker->doing[number] = GK_SIM_WAITS_FOR_BLOCK;
    unsigned barrier = gk_sim_race_arrives(worker);
    if (worker->arrived == worker->count && !worker->mixed) {
        worker->verdict = verdict(meeting, worker->nonzero, worker->count);
        worker->arrived = worker->yields = 0;
        ready_all(worker);
        gk_sim_race_all_arrived(worker);
        gk_sim_watch_barrier(worker);
    }
    park(worker, number);
    gk_sim_race_passes(worker, barrier);
    return worker->verdict;
}

/* What the lane takes from a meeting at which all lanes of its mask have arrived. */
static uint64_t outcome(const gk_sim_thread *lanes, unsigned lane) {
    const gk_sim_thread *own = lanes + lane;
    uint64_t bits = 0;
    switch (own->meeting) {
    case GK_SIM_SHFL:
    case GK_SIM_SHFL_UP:
    case GK_SIM_SHFL_DOWN:
    case GK_SIM_SHFL_XOR:
        return own->mask >> own->source & 1 ? lanes[own->source].value : ~(uint64_t)0;
    case GK_SIM_MATCH_ANY:
        for (unsigned i = 0; i < GK_SIM_WARP; i++)
            if (own->mask >> i & 1 && lanes[i].value == own->value)
                bits |= (uint64_t)1 << i;
        return bits;
    default:
        for (unsigned i = 0; i < GK_SIM_WARP; i++)
            if (own->mask >> i & 1 && lanes[i].value)
                bits |= (uint64_t)1 << i;
        return bits;
    }
}

/* Whether all lanes of the mask wait at this very meeting. */
static bool complete(const gk_sim_thread *lanes, unsigned waiting, const gk_sim_thread *own) {
    if (own->mask & ~waiting)
        return false;
    for (unsigned rest = own->mask; rest; rest &= rest - 1) {
        const gk_sim_thread *lane = lanes + __builtin_ctz(rest);
        if (lane->mask != own->mask || lane->meeting != own->meeting)
            return false;
    }
    return true;
}

/* Votes look alike to every lane: one pass serves all. */
static void settle(gk_sim_worker *worker, unsigned first_number, unsigned own, unsigned mask) {
    gk_sim_thread *lanes = worker->threads + first_number;
    bool vote = lanes[own].meeting >= GK_SIM_BALLOT && lanes[own].meeting <= GK_SIM_ALL;
    bool nothing = lanes[own].meeting == GK_SIM_SYNCWARP;
    uint64_t common = vote ? outcome(lanes, own) : 0, taken[GK_SIM_WARP];
    for (unsigned i = 0; i < GK_SIM_WARP; i++)
        taken[i] = vote || nothing || !(mask >> i & 1) ? common : outcome(lanes, i);
    for (unsigned i = 0; i < GK_SIM_WARP; i++)
        if (mask >> i & 1)
            lanes[i].value = taken[i];
    worker->warp_waits[first_number / GK_SIM_WARP] &= ~mask;
    worker->yields = 0;
    /* From the lane that came last, round the warp: the order differs from seed to seed. */
    for (unsigned i = 1; i < GK_SIM_WARP; i++) {
        unsigned lane = (own + i) % GK_SIM_WARP;
        if (mask >> lane & 1)
            ready_one(worker, first_number + lane);
    }
}

uint64_t gk_sim_meet_warp(gk_sim_meeting meeting, unsigned mask, uint64_t value, unsigned source,
                          const char *file, int line) {
    gk_sim_worker *worker = gk_sim_now.worker;
    unsigned number = gk_sim_now.number, lane = number % GK_SIM_WARP;
    gk_sim_thread *thread = worker->threads + number;
    if (!(mask >> lane & 1))
        gk_sim_fault(file, line, "the mask 0x%08x leaves out the lane itself, %u", mask, lane);
    thread->file = file;
    thread->line = line;
    thread->meeting = (uint8_t)meeting;
    thread->mask = mask;
    thread->value = value;
    thread->source = (uint8_t)source;
    gk_sim_watch_leave(worker);
    unsigned *waiting = worker->warp_waits + number / GK_SIM_WARP;
    *waiting |= 1u << lane;
    if (meeting == GK_SIM_SYNCWARP)
        gk_sim_race_syncwarp_arrives(worker, number);
    if (complete(thread - lane, *waiting, thread)) {
        if (meeting == GK_SIM_SYNCWARP) {
            gk_sim_race_syncwarp(worker, number - lane, mask);
            gk_sim_watch_syncwarp(worker, number - lane, mask);
        }
        settle(worker, number - lane, lane, mask);
    } else {
        worker->doing[number] = GK_SIM_WAITS_FOR_WARP;
        park(worker, number);
    }
    if (meeting == GK_SIM_SYNCWARP)
        gk_sim_race_syncwarp_passes(worker, number);
    return thread->value;
}

void *gk_sim_dynamic_shared(const char *file, int line) {
    gk_sim_worker *worker = gk_sim_now.worker;
    if (!worker->dynamic_bytes)
        gk_sim_fault(file, line, "dynamic shared memory is used, but the launch gives none");
    return worker->dynamic_shared;
}

/* Fibers in a known state: after a fault, or when another OS thread takes them over. */
static void reset_fibers(gk_sim_worker *worker) {
    worker->free_count = 0;
    for (unsigned slab = 0; slab < worker->slabs; slab++)
        for (unsigned i = 0; i < GK_SIM_FIBERS_A_SLAB; i++) {
            gk_sim_fiber_reset(worker->fibers[slab] + i, enter);
            worker->free[worker->free_count++] = worker->fibers[slab] + i;
        }
}

bool gk_sim_block_run(gk_sim_worker *worker, uint64_t number) {
    worker->random = gk_sim_mix(worker->seed ^ gk_sim_mix(number));
    worker->order = next_order(worker);
    worker->ready_first = worker->random >> 63;
    worker->order_warp = worker->order.warp;
    worker->order_lane = 0;
    worker->started = worker->returned = worker->arrived = worker->yields = 0;
    worker->ready_head = worker->ready_count = 0;
    worker->mixed = worker->faulted = worker->asks = false;
    memset(worker->doing, GK_SIM_RUNS, worker->count);
    memset(worker->warp_waits, 0, sizeof worker->warp_waits);
    worker->running = &worker->main;
    gk_sim_race_block_starts(worker);
    gk_sim_watch_block(worker, number);
    leave(worker, &worker->main.context);
    while (worker->asks && answer(worker))
        leave(worker, &worker->main.context);
    gk_sim_race_block_ends(worker);
    if (GK_SIM_STACK_A_THREAD)
        reset_fibers(worker);
    if (!worker->faulted && worker->returned == worker->count)
        return true;
    if (worker->user && worker->user->was_interrupted)
        snprintf(worker->problem, sizeof worker->problem, "the launch was interrupted");
    else if (!worker->faulted)
        gk_sim_explain(worker);
    reset_fibers(worker);
    return false;
}

void gk_sim_follow(void) {
    gk_sim_worker *worker = gk_sim_now.worker;
    worker->followed++;
    if (worker->follow)
        worker->follow(worker->follow_context);
}

bool gk_sim_worker_take(gk_sim_worker *worker, const gk_sim_grid *grid, uint64_t seed) {
    const unsigned *block = grid->block;
    worker->run = grid->body->run;
    worker->user = grid->user;
    worker->asks = false;
    worker->asked = 0;
    worker->arguments = grid->arguments;
    worker->seed = seed;
    worker->follow = grid->follow;
    worker->follow_context = grid->follow_context;
    worker->count = block[0] * block[1] * block[2];
    worker->warps = (worker->count + GK_SIM_WARP - 1) / GK_SIM_WARP;
    gk_sim_index dim = {block[0], block[1], block[2]};
    if (memcmp(&worker->block_dim, &dim, sizeof dim) != 0) {
        unsigned number = 0;
        for (unsigned z = 0; z < dim.z; z++)
            for (unsigned y = 0; y < dim.y; y++)
                for (unsigned x = 0; x < dim.x; x++)
                    worker->threads[number++].index = (gk_sim_index){x, y, z};
        worker->block_dim = dim;
    }
    gk_sim_now.block_dim = dim;
    gk_sim_now.grid_dim = (gk_sim_index){grid->grid[0], grid->grid[1], grid->grid[2]};
    gk_sim_now.worker = worker;
    if (worker->owner != &gk_sim_now)
        reset_fibers(worker);
    worker->owner = &gk_sim_now;
    return gk_sim_race_take(worker);
}

gk_sim_worker *gk_sim_worker_new(void) {
    void *memory;
    if (posix_memalign(&memory, _Alignof(gk_sim_worker), sizeof(gk_sim_worker)) != 0)
        return NULL;
    return memset(memory, 0, sizeof(gk_sim_worker));
}

void gk_sim_worker_free(gk_sim_worker *worker) {
    if (!worker)
        return;
    for (unsigned slab = 0; slab < worker->slabs; slab++) {
        gk_sim_slab_unmap(worker->fibers[slab]);
        free(worker->fibers[slab]);
    }
    gk_sim_race_free(worker);
    gk_sim_watch_free(worker);
    free(worker->skips);
    gk_sim_dynamic_free(worker);
    free(worker);
}
