/* The CPU simulator, as C sees it: kernels compiled by g++ from the same .cu files, launched by
   grid and block. Nothing here knows of Python or of the engine. */
#ifndef GK_SIM_H
#define GK_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The limits of a device of compute capability 7.5, which every launch is held to. */
enum {
    GK_SIM_CAPABILITY = 75,
    GK_SIM_WARP = 32,
    GK_SIM_MAX_THREADS = 1024, /* a block; also block x and y */
    GK_SIM_MAX_BLOCK_Z = 64,
    GK_SIM_MAX_GRID_X = 2147483647,
    GK_SIM_MAX_GRID_YZ = 65535,
    GK_SIM_MAX_SHARED = 49152, /* bytes of dynamic shared memory a block */
};

typedef struct gk_sim_body {
    const char *symbol;
    void (*run)(void **arguments); /* the kernel for one thread; arguments as cuLaunchKernel's */
    const unsigned *sizes;         /* of the arguments in bytes, 0 behind the last */
} gk_sim_body;

/* A variable of a user's source; the last entry of a table has no name. */
typedef struct gk_sim_variable {
    const char *symbol;
    const void *at;
    size_t bytes;
} gk_sim_variable;

/* Where a user's kernel touches memory: the place that the call of a watching function returns to,
   and the user's line of it. The last entry of a table has no place. */
typedef struct gk_sim_line {
    const void *after;
    const char *file;
    uint64_t line;
} gk_sim_line;

typedef struct gk_sim_span {
    uintptr_t low, high;
} gk_sim_span;

/* A loaded module of a user's kernels. Its thread-locals are the shared memory of its kernels; the
   dynamic part is one of them, GK_SIM_MAX_SHARED bytes with a canary behind. */
typedef struct gk_sim_module {
    void *(*dynamic_shared)(void); /* of the calling OS thread */
    const gk_sim_line *lines;
    gk_sim_span data;                 /* its code and variables */
    size_t shared_bytes, shared_part; /* of all thread-locals; in front of the dynamic part */
} gk_sim_module;

/* What kernels have printed. */
typedef struct gk_sim_output gk_sim_output;
gk_sim_output *gk_sim_output_new(void); /* NULL: out of memory */
void gk_sim_output_free(gk_sim_output *output);
/* All of it so far, to be freed; NULL: nothing. */
char *gk_sim_output_take(gk_sim_output *output, size_t *bytes);

/* What a launch of a user's kernel has beside, for its accesses are watched. */
typedef struct gk_sim_user {
    const gk_sim_module *module;
    const gk_sim_span *arrays; /* all that there are, by address */
    size_t array_count;
    gk_sim_output *output;
    bool (*interrupted)(void *context); /* asked on the launching thread; NULL: never */
    void *context;
    bool was_interrupted;         /* given back */
    struct gk_sim_shadow *shadow; /* the launch's own */
} gk_sim_user;

typedef struct gk_sim_grid {
    const gk_sim_body *body;
    unsigned grid[3];
    unsigned block[3];
    size_t shared_bytes;
    void **arguments;
    gk_sim_user *user;             /* NULL: a kernel of gpukern's own */
    bool follows;                  /* each thread calls gk_sim_follow once, */
    void (*follow)(void *context); /* which calls this; NULL: nothing */
    void *follow_context;
} gk_sim_grid;

/* The module's thread-locals, found by where one of them lies; false: it has none. */
bool gk_sim_module_shared(gk_sim_module *module);
enum { GK_SIM_DYNAMIC_BYTES = GK_SIM_MAX_SHARED + 256 };

typedef struct gk_sim gk_sim;

/* NULL when memory is short. `workers`: cores used, 0 for all that this process may run on.
   `seed`: the order of threads and blocks; 0 is the natural order. */
gk_sim *gk_sim_open(unsigned workers, uint64_t seed);
void gk_sim_close(gk_sim *sim); /* NULL is fine; no launch may be under way */

/* The cores that gk_sim_open(wanted, ...) uses. */
unsigned gk_sim_cores(unsigned wanted);

/* Run the kernel to its end. False, with a sentence in `problem`, when the launch breaks a limit
   or the kernel a rule; the next launch works. Many threads may call at once. */
bool gk_sim_launch(gk_sim *sim, const gk_sim_grid *grid, char *problem, size_t size);

#ifdef __cplusplus
}
#endif
#endif
