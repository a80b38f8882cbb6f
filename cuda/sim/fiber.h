/* A stack that a waiting thread of a block is parked on, and the switch from one to another. */
#ifndef GK_SIM_FIBER_H
#define GK_SIM_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#ifdef GK_SIM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

typedef struct gk_sim_fiber {
    void *context; /* where it goes on: a stack pointer, or a ucontext_t */
    char *low;     /* the stack's bytes, without the guard page below them */
    size_t bytes;
    char *top; /* where a fresh context starts */
#ifdef GK_SIM_UCONTEXT
    ucontext_t saved;
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

#ifndef GK_SIM_UCONTEXT
/* Saves the registers that a call has to preserve on the stack that is left, stores its pointer
   and takes up the other one. */
GK_SIM_HIDDEN void gk_sim_switch(void **save, void *target);
#endif

/* The first thing that an entry has to call; `left` as below. */
static inline void gk_sim_fiber_entered(gk_sim_fiber *left) {
#ifdef GK_SIM_ASAN
    const void *low;
    __sanitizer_finish_switch_fiber(NULL, &low, &left->bytes);
    left->low = (char *)(uintptr_t)low;
#else
    (void)left;
#endif
}

/* Leave `from`, whose context goes to `save`, and go on at the `target` context of `to`. Returns
   when somebody switches back. `*left` tells each side which stack was left: the address sanitizer
   wants to know. */
static inline void gk_sim_fiber_switch(gk_sim_fiber **left, gk_sim_fiber *from, void **save,
                                       gk_sim_fiber *to, void *target) {
    *left = from;
#ifdef GK_SIM_ASAN
    __sanitizer_start_switch_fiber(&from->fake_stack, to->low, to->bytes);
#endif
#ifdef GK_SIM_UCONTEXT
    *save = &from->saved;
    swapcontext(&from->saved, target);
#else
    gk_sim_switch(save, target);
#endif
#ifdef GK_SIM_ASAN
    const void *low;
    __sanitizer_finish_switch_fiber(from->fake_stack, &low, &(*left)->bytes);
    (*left)->low = (char *)(uintptr_t)low;
#else
    (void)to;
#endif
}

#endif
