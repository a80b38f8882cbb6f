/* Whether a call on small host arrays copies nothing, and has its kernel read and write the host's
   memory, or goes through the pipeline: where the one becomes slower than the other depends on the
   bus and on the host, so calls of sizes at which it may be either find it out. */
#ifndef GK_WAYS_H
#define GK_WAYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/lock.h"
#include "engine/duel.h"

enum {
    GK_WAYS_LEAST = 64 << 10, /* bytes of a call: smaller ones copy nothing */
    GK_WAYS_CLASSES = 4,      /* of sizes, by powers of two */
    GK_WAYS_KINDS = 2,        /* of operations: elementwise, and those with few results */
};

typedef struct gk_way {
    gk_duel duel;
    bool is_settled, flows;
    bool counts; /* a call is on its way whose time is to be noted */
} gk_way;

typedef struct gk_ways {
    gk_lock lock; /* of what follows */
    gk_way ways[GK_WAYS_KINDS][GK_WAYS_CLASSES];
} gk_ways;

/* Whether the call goes through the pipeline; before it is known, where it has more than `usual`
   bytes. `counts`: what it takes is to be noted. */
bool gk_ways_choose(gk_ways *ways, int kind, size_t bytes, size_t usual, bool *counts);
/* Less than 0 seconds: it failed. */
void gk_ways_note(gk_ways *ways, int kind, size_t bytes, double seconds);

#endif
