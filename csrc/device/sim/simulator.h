/* A simulated device, to the files of this folder. */
#ifndef GK_SIM_SIMULATOR_H
#define GK_SIM_SIMULATOR_H

#include <stddef.h>

#include "base/lock.h"
#include "device/backend.h"
#include "device/sim/queues.h"
#include "sim/sim.h"

typedef struct gk_allocation gk_allocation;

/* Names of users' kernels, which last as long as the backend. */
typedef struct gk_simulated_name {
    struct gk_simulated_name *next;
    char text[];
} gk_simulated_name;

/* The data of a user's module. */
typedef struct gk_simulated_data {
    struct gk_simulated_data *next;
    gk_sim_span span;
} gk_simulated_data;

typedef struct gk_simulated {
    gk_backend base;
    gk_sim *sim;
    gk_queues *queues;
    size_t total; /* what counts as the device's memory */
    gk_lock lock; /* of what follows, but for the bodies */
    size_t used;
    void *tree; /* of allocations, by address */
    gk_allocation *first;
    gk_simulated_data *data;
    gk_allocation *freed; /* lazily: kept until nothing runs that might still use them */
    size_t freed_bytes;
    gk_lock events; /* of what they hold, and of names; nobody takes another lock under it */
    gk_simulated_name *names;
    gk_sim_output *output; /* of users' kernels */
    size_t slots;          /* of the hash table of bodies by symbol: a power of two */
    const gk_sim_body **bodies;
} gk_simulated;

void gk_simulated_add_data(gk_simulated *sim, gk_simulated_data *data);
void gk_simulated_remove_data(gk_simulated *sim, gk_simulated_data *data);

gk_status gk_simulated_allocate(gk_backend *backend, size_t bytes, gk_stream stream, void **device,
                                gk_error *error);
gk_status gk_simulated_allocate_lasting(gk_backend *backend, size_t bytes, gk_stream stream,
                                        void **device, gk_error *error);
void gk_simulated_release(gk_backend *backend, void *device, gk_stream stream);
/* Whether all `bytes` from there are of one allocation. */
gk_status gk_simulated_inside(gk_simulated *sim, const void *pointer, size_t bytes,
                              gk_error *error);
gk_status gk_simulated_owns(gk_backend *backend, const void *first, size_t bytes, gk_error *error);
int gk_simulated_place(gk_backend *backend, const void *pointer);
/* All allocations by address, to be freed. NULL: out of memory. */
gk_sim_span *gk_simulated_spans(gk_simulated *sim, size_t *count);
/* What a kernel wrote outside of an allocation. */
gk_status gk_simulated_redzones(gk_simulated *sim, const char *symbol, gk_error *error);

/* The arrays that a kernel's arguments point to, turned over, so that what it reads or writes of
   them before it may comes out wrong. gk_show turns them back, once, whoever is the first to call
   it. */
typedef struct gk_hidden gk_hidden;
gk_hidden *gk_hide(gk_simulated *sim, const unsigned char *arguments, size_t bytes); /* or NULL */
void gk_show(void *hidden);
void gk_hidden_free(gk_hidden *hidden); /* shows them */

/* The bodies by their symbols, once; false: out of memory. */
bool gk_simulated_tabulate(gk_simulated *sim);
gk_status gk_simulated_holds(gk_backend *backend, const gk_row *row, gk_error *error);
gk_status gk_simulated_launch(gk_backend *backend, const gk_launch *launch, gk_error *error);

size_t gk_simulated_used(gk_simulated *sim);
/* Do all that is queued, and look at what was freed meanwhile. */
void gk_simulated_settle(gk_simulated *sim);
/* What was captured for a graph is kept no longer by it. */
void gk_simulated_unkeep(gk_simulated *sim, gk_graph *graph);
void gk_simulated_close_memory(gk_simulated *sim);

#endif
