/* Which products lie in shared memory whole, or a few of their rows with all of B (C and CUDA). */
#ifndef GK_SMALL_H
#define GK_SMALL_H

#include <stdbool.h>
#include <stdint.h>

enum { GK_SMALL_SIDE = 4, GK_SMALL_FLOATS = 12288 }; /* of what a thread makes; of a block */

static inline uint64_t gk_small_up(uint64_t length) {
    return (length + GK_SMALL_SIDE - 1) / GK_SMALL_SIDE * GK_SMALL_SIDE;
}

/* Floats of shared memory that are enough for so many rows of A and columns of B. Lines may lie
   four apart there. */
static inline uint64_t gk_small_room(uint64_t rows, uint64_t columns, uint64_t k) {
    return (gk_small_up(rows) + gk_small_up(columns)) * (gk_small_up(k) + 4);
}

static inline bool gk_small_fits(uint64_t n, uint64_t k) {
    return n <= GK_SMALL_FLOATS && k <= GK_SMALL_FLOATS &&
           gk_small_room(1, n, k) <= GK_SMALL_FLOATS;
}

#endif
