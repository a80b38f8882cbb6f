/* How host arrays are staged: by how many threads, in chunks of what size, and whether what is
   packed goes past the caches. What is fastest depends on the host, so the first calls of a size
   find it out: each setting is one step away from the best so far, and stays where it was faster.
 */
#ifndef GK_STAGING_H
#define GK_STAGING_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/duel.h"

typedef struct gk_staging {
    int workers;
    size_t chunk; /* bytes of each direction, at most */
    bool past_caches;
} gk_staging;

enum {
    GK_STAGING_CHUNK = 8 << 20, /* bytes of the longest chunk */
    GK_STAGING_CLASSES = 12, /* of sizes, by powers of two, the last one of all that are larger */
    GK_STAGING_LEAST_BYTES = 1 << 18, /* of the first class, to which smaller flows belong too */
};

/* Which way the bytes go, and what a host has to do for them: results that are not pinned are
   unpacked, and parts are packed from where they lie. */
typedef enum gk_direction {
    GK_GOING_IN,
    GK_GOING_OUT,
    GK_GOING_BOTH,
    GK_GOING_UNPACKED,
    GK_GOING_IN_PARTS
} gk_direction;
enum { GK_DIRECTIONS = 5 };

/* A place on the steps of each of the three. */
enum { GK_STAGING_KNOBS = 3 };
typedef struct gk_search {
    signed char best[GK_STAGING_KNOBS];
    signed char step;    /* that is tried: a knob up or down */
    signed char in_vain; /* steps since the last gain */
    signed char duels;   /* that have ended */
    bool begun;
    gk_duel duel;
} gk_search;

typedef struct gk_tuner {
    int cores;
    gk_search searches[GK_DIRECTIONS][GK_STAGING_CLASSES];
} gk_tuner;

/* A setting for a flow of so many bytes in the wider direction; `counts`: what the flow takes is to
   be noted. */
gk_staging gk_tuner_choose(gk_tuner *tuner, gk_direction direction, size_t bytes, bool *counts);
/* What has been found so far for flows from so many bytes on, and whether that is all; false: there
   was none. */
bool gk_tuner_tell(const gk_tuner *tuner, gk_direction direction, int number, size_t *bytes,
                   gk_staging *staging, bool *is_settled);
void gk_tuner_note(gk_tuner *tuner, gk_direction direction, size_t bytes, double seconds);

#endif
