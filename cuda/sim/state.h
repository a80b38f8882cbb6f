/* What a kernel shares with the scheduler: who is running, and the points where it may wait. */
#ifndef GK_SIM_STATE_H
#define GK_SIM_STATE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
typedef uint3 gk_sim_index;
#else
typedef struct gk_sim_index {
    unsigned x, y, z;
} gk_sim_index;
#endif

#define GK_SIM_WARP_SIZE 32
#define GK_SIM_HIDDEN    __attribute__((visibility("hidden")))
/* What the modules of users' kernels find in the extension. */
#define GK_SIM_SHARED __attribute__((visibility("default")))

/* Where threads meet. The first four gather a block, the others the lanes of a mask. */
#define GK_SIM_MEETINGS(X)                                                                         \
    X(SYNCTHREADS, "__syncthreads")                                                                \
    X(SYNCTHREADS_COUNT, "__syncthreads_count")                                                    \
    X(SYNCTHREADS_AND, "__syncthreads_and")                                                        \
    X(SYNCTHREADS_OR, "__syncthreads_or")                                                          \
    X(SYNCWARP, "__syncwarp")                                                                      \
    X(SHFL, "__shfl_sync")                                                                         \
    X(SHFL_UP, "__shfl_up_sync")                                                                   \
    X(SHFL_DOWN, "__shfl_down_sync")                                                               \
    X(SHFL_XOR, "__shfl_xor_sync")                                                                 \
    X(BALLOT, "__ballot_sync")                                                                     \
    X(ANY, "__any_sync")                                                                           \
    X(ALL, "__all_sync")                                                                           \
    X(MATCH_ANY, "__match_any_sync")

typedef enum gk_sim_meeting {
#define GK_ENUMERATE(name, text) GK_SIM_##name,
    GK_SIM_MEETINGS(GK_ENUMERATE)
#undef GK_ENUMERATE
} gk_sim_meeting;

typedef struct gk_sim_worker gk_sim_worker;

typedef struct gk_sim_state {
    gk_sim_index thread, block, block_dim, grid_dim;
    unsigned number; /* of the thread in its block */
    unsigned
        atomics_left;    /* before the thread lets others run: it may be spinning on one of them */
    unsigned steps_left; /* of a user's kernel, before it lets others run */
    bool poisoned;       /* the OS thread's shared memory has been filled once, see shared.c */
    gk_sim_worker *worker;
} gk_sim_state;

/* The only thread-local of this module that is not some kernel's shared memory (see shared.c). To a
   user's kernel it is constant, as far as a thread sees it: such reads are not watched. */
#ifdef GK_SIM_USER
extern const __thread gk_sim_state gk_sim_now;
#else
extern __thread gk_sim_state gk_sim_now GK_SIM_SHARED;
#endif

/* Wait for the whole block; the meaning of the result is the meeting's. */
GK_SIM_SHARED int gk_sim_meet_block(gk_sim_meeting, int predicate, const char *file, int line);

/* Wait for the lanes of `mask`. A shuffle returns the value of lane `source` (all ones if that
   lane is not in the mask: its value is undefined), a vote the lanes that passed non-zero. */
GK_SIM_SHARED uint64_t gk_sim_meet_warp(gk_sim_meeting, unsigned mask, uint64_t value,
                                        unsigned source, const char *file, int line);

/* Let the other threads of the block run before this one goes on; a fault if for a long time none
   of them has done anything but this. */
GK_SIM_SHARED void gk_sim_yield(void);

/* An atomic is about to be done: others get their turn now and then. */
GK_SIM_SHARED void gk_sim_count_atomic(const char *file, int line);

/* The thread has waited for the kernel before its own, and may touch memory from here on. */
GK_SIM_HIDDEN void gk_sim_follow(void);

/* A fence of a user's kernel; for the threads of its block alone, or for all. */
GK_SIM_SHARED void gk_sim_fence(bool is_of_block);

/* The block's dynamic shared memory. */
GK_SIM_HIDDEN void *gk_sim_dynamic_shared(const char *file, int line);

/* End the launch with a sentence; does not return. `file` may be NULL. */
GK_SIM_SHARED void gk_sim_fault(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#ifdef __cplusplus
}
#endif
#endif
