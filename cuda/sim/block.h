/* One block of threads on one OS thread: who runs next, who waits for whom, and what went wrong. */
#ifndef GK_SIM_BLOCK_H
#define GK_SIM_BLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fiber.h"
#include "sim.h"
#include "state.h"

enum {
    GK_SIM_WARPS = GK_SIM_MAX_THREADS / GK_SIM_WARP,
    GK_SIM_SLABS = GK_SIM_MAX_THREADS / GK_SIM_FIBERS_A_SLAB + 1,
    GK_SIM_SENTENCE = 896,
};

typedef enum gk_sim_doing {
    GK_SIM_RUNS, /* or is ready to, or has not started */
    GK_SIM_WAITS_FOR_BLOCK,
    GK_SIM_WAITS_FOR_WARP,
    GK_SIM_RETURNED,
} gk_sim_doing;

/* A thread; but for its index, what it waits for, and where. One cache line: a switch touches two
   of these, and the stacks. */
typedef struct gk_sim_thread {
    gk_sim_fiber *fiber;
    void *context; /* of the fiber, where the thread goes on */
    const char *file;
    uint64_t value; /* brought to a meeting of lanes, then what is taken from it */
    int line;
    unsigned mask;
    gk_sim_index index;
    uint8_t source, meeting;
} __attribute__((aligned(64))) gk_sim_thread;

/* An order of a block's threads: warps in one permutation, the lanes of each in another; each is
   first + step * i, the step without a common divisor with the length. */
typedef struct gk_sim_order {
    unsigned warp, warp_step, lane, lane_step;
} gk_sim_order;

struct gk_sim_worker {
    /* The launch. */
    void (*run)(void **arguments);
    void **arguments;
    unsigned count; /* threads in a block */
    unsigned warps;
    gk_sim_index block_dim;
    uint64_t seed;
    void (*follow)(void *context); /* see sim.h */
    void *follow_context;
    char *dynamic_shared; /* of the worker's own, or part of a module's */
    size_t dynamic_bytes;
    bool dynamic_is_modules;
    gk_sim_user *user;          /* of a user's kernel, or NULL */
    struct gk_sim_watch *watch; /* see watch.h; NULL until a user's kernel has run */
    struct gk_sim_skips *skips; /* of random numbers, see skip.c; NULL until wanted */
    atomic_bool *stop;          /* the launch is to end */
    bool may_ask;               /* on the thread that launches: whether it is interrupted */
    bool asks;                  /* the OS thread's own stack is wanted, to ask */
    int64_t asked;              /* when, in milliseconds */

    /* The block. */
    uint64_t random;
    bool ready_first; /* go on with a thread that has waited before starting another one */
    gk_sim_order order;
    unsigned order_warp, order_lane; /* how far the order has been started */
    unsigned started, returned, followed;
    unsigned ready_head, ready_count;
    unsigned arrived;   /* at the block's barrier */
    bool mixed;         /* not all of them at the same one */
    unsigned first;     /* the thread that arrived first */
    int nonzero;        /* predicates */
    int verdict;        /* of the last barrier */
    unsigned yields;    /* since a thread has last returned or met others */
    int64_t idle_since; /* in seconds */
    bool faulted;
    char problem[GK_SIM_SENTENCE];

    /* Fibers. */
    struct gk_sim_race *race; /* see race.h */
    gk_sim_state *owner;      /* gk_sim_now of the OS thread that runs the fibers */
    gk_sim_fiber main;        /* the OS thread's own stack */
    gk_sim_fiber *running, *left;
    gk_sim_fiber *fibers[GK_SIM_SLABS];
    unsigned slabs, free_count;
    gk_sim_fiber *free[GK_SIM_SLABS * GK_SIM_FIBERS_A_SLAB];

    uint8_t doing[GK_SIM_MAX_THREADS];
    uint16_t ready[GK_SIM_MAX_THREADS];
    unsigned warp_waits[GK_SIM_WARPS]; /* lanes that wait for lanes */
    gk_sim_thread threads[GK_SIM_MAX_THREADS];
};

/* NULL: out of memory. */
GK_SIM_HIDDEN gk_sim_worker *gk_sim_worker_new(void);
GK_SIM_HIDDEN void gk_sim_worker_free(gk_sim_worker *worker);

/* Take up a launch on the calling OS thread. False: out of memory. */
GK_SIM_HIDDEN bool gk_sim_worker_take(gk_sim_worker *worker, const gk_sim_grid *grid,
                                      uint64_t seed);

/* Run block `number` (gk_sim_now.block is its index). False: worker->problem says why. */
GK_SIM_HIDDEN bool gk_sim_block_run(gk_sim_worker *worker, uint64_t number);

/* Write into worker->problem why no thread of the block can go on. */
GK_SIM_HIDDEN void gk_sim_explain(gk_sim_worker *worker);

GK_SIM_HIDDEN uint64_t gk_sim_mix(uint64_t x); /* a hash */

#endif
