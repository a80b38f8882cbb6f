/* What users' kernels do with memory, watched access by access: bounds of arrays, races and what
   nobody has written in shared memory; races on global memory, by shadow.h. */
#ifndef GK_SIM_WATCH_H
#define GK_SIM_WATCH_H

#include "block.h"

/* On the OS thread that runs the worker's blocks, for a launch. False: out of memory. */
GK_SIM_HIDDEN bool gk_sim_watch_take(gk_sim_worker *worker);
GK_SIM_HIDDEN void gk_sim_watch_free(gk_sim_worker *worker);

/* A block begins; all of its threads have met; lanes of a warp have, in __syncwarp. */
GK_SIM_HIDDEN void gk_sim_watch_block(gk_sim_worker *worker, uint64_t number);
GK_SIM_HIDDEN void gk_sim_watch_barrier(gk_sim_worker *worker);
GK_SIM_HIDDEN void gk_sim_watch_syncwarp(gk_sim_worker *worker, unsigned first, unsigned mask);
/* An atomic follows, of that line. */
GK_SIM_HIDDEN void gk_sim_watch_atomic(gk_sim_worker *worker, const char *file, int line);
/* Whether what another thread of the block has done in that epoch, at that clock of its own, may
   come before or after what the running one does. */
GK_SIM_HIDDEN bool gk_sim_watch_unordered(const gk_sim_worker *worker, uint32_t epoch,
                                          unsigned thread, unsigned clock);
/* The running thread waits or returns: its last write is done. */
GK_SIM_HIDDEN void gk_sim_watch_leave(gk_sim_worker *worker);

#endif
