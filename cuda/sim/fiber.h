/* A stack that a waiting thread of a block is parked on, and the switch from one to another. */
#ifndef GK_SIM_FIBER_H
#define GK_SIM_FIBER_H

#include <stdbool.h>
#include <stddef.h>

#include "state.h"

#if defined(__SANITIZE_ADDRESS__)
#define GK_SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GK_SIM_ASAN 1
#endif
#endif

#if !defined(__x86_64__) && !defined(__aarch64__)
#define GK_SIM_UCONTEXT 1
#endif
#ifdef GK_SIM_UCONTEXT
#include <ucontext.h>
#endif

typedef struct gk_sim_fiber {
    void *stack_pointer;
    char *low; /* the stack's bytes, without the guard page below them */
    size_t bytes;
    char *top; /* where a fresh context starts */
#ifdef GK_SIM_UCONTEXT
    ucontext_t context;
#endif
#ifdef GK_SIM_ASAN
    void *fake_stack;
#endif
} gk_sim_fiber;

enum { GK_SIM_FIBERS_A_SLAB = 32 };

/* One mapping with the stacks of a slab of fibers; `number` counts slabs. False: out of memory. */
GK_SIM_HIDDEN bool gk_sim_slab_map(gk_sim_fiber *fibers, unsigned number);
GK_SIM_HIDDEN void gk_sim_slab_unmap(gk_sim_fiber *fibers);

/* The next switch to the fiber calls `entry`, which never returns. */
GK_SIM_HIDDEN void gk_sim_fiber_reset(gk_sim_fiber *fiber, void (*entry)(void));

/* Leave `from` and go on in `to`. Returns when somebody switches back. `*left` is kept for the
   address sanitizer, which tells each side where the stack that was left lies. */
GK_SIM_HIDDEN void gk_sim_fiber_switch(gk_sim_fiber **left, gk_sim_fiber *from, gk_sim_fiber *to);
/* The first thing that an entry has to call. */
GK_SIM_HIDDEN void gk_sim_fiber_entered(gk_sim_fiber *left);

#endif
