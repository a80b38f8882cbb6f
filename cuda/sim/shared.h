/* Shared memory: a kernel's `__shared__` variables are thread-locals, and one OS thread runs one
   block at a time, so the OS thread's copy of them is the block's. */
#ifndef GK_SIM_SHARED_H
#define GK_SIM_SHARED_H

#include "block.h"

/* Where a module's thread-locals lie, seen from one of them that is no static shared memory (of the
   extension gk_sim_now, of a user's module the dynamic shared memory): the same in every OS thread.
 */
typedef struct gk_sim_statics {
    void *(*here)(void);
    size_t hole; /* its bytes */
    size_t bytes;
    size_t before; /* bytes in front of it */
} gk_sim_statics;

/* What has to be filled again between the blocks of one launch on one OS thread. */
typedef struct gk_sim_touched {
    size_t low, high;
    uint64_t blocks;
    bool watched; /* whether it is looked at what they touch */
} gk_sim_touched;

/* What the launches of one of gpukern's kernels have been seen to touch. */
typedef struct gk_sim_seen {
    void (*run)(void **arguments); /* the kernel */
    size_t low, high;
    uint64_t launches;
} gk_sim_seen;

enum { GK_SIM_SEEN = 4096 }; /* places for kernels, of which there are a quarter as many */

GK_SIM_HIDDEN gk_sim_statics gk_sim_statics_find(void *(*here)(void), size_t hole);
GK_SIM_HIDDEN gk_sim_statics gk_sim_statics_own(void);
GK_SIM_HIDDEN gk_sim_statics gk_sim_statics_of(const gk_sim_module *module);

/* What the next launch of a kernel is expected to touch, and whether it is watched. NULL: of a
   user's, which all are, as its module has few thread-locals. */
GK_SIM_HIDDEN gk_sim_touched gk_sim_statics_expect(gk_sim_seen *kernel);
/* The kernel's place in a table of GK_SIM_SEEN. */
GK_SIM_HIDDEN gk_sim_seen *gk_sim_seen_of(gk_sim_seen *table, void (*run)(void **arguments));
/* Before each block of a launch on this OS thread, of what is expected at first, and after all. */
GK_SIM_HIDDEN void gk_sim_statics_poison(const gk_sim_statics *statics, gk_sim_touched *touched);
GK_SIM_HIDDEN void gk_sim_statics_leave(const gk_sim_statics *statics, gk_sim_touched *touched);
/* Under a lock, as each OS thread leaves the launch. */
GK_SIM_HIDDEN void gk_sim_seen_more(gk_sim_seen *kernel, const gk_sim_touched *touched);

/* Dynamic shared memory of exactly `bytes`; of a user's module in its own. False: out of memory. */
GK_SIM_HIDDEN bool gk_sim_dynamic_take(gk_sim_worker *worker, size_t bytes);
GK_SIM_HIDDEN void gk_sim_dynamic_free(gk_sim_worker *worker);
GK_SIM_HIDDEN void gk_sim_dynamic_poison(gk_sim_worker *worker);
/* False: the block has written past the end. */
GK_SIM_HIDDEN bool gk_sim_dynamic_whole(const gk_sim_worker *worker);

#endif
