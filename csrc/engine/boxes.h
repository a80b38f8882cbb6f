/* How a copy between two orders of axes is cut into boxes. */
#ifndef GK_BOXES_H
#define GK_BOXES_H

#include "engine/nest.h"
#include "transpose/copies.h"

enum {
    GK_NEAR = 64,  /* bytes from an element to the next: farther ones share no sector */
    GK_SOON = 256, /* elements, within which the first cache still has a sector */
};

/* How many elements are written from one that is read to the next one of its sector, which is
   nearer than half of one; 0: there is none. */
int64_t gk_until_next(const gk_nest *nest);

/* How much of a sector is read while the first cache has it, in bytes. */
int64_t gk_bytes_soon(const gk_nest *nest, int64_t size);

/* Whether boxes are worth their while: the arrays are large, their elements lie near one another in
   both, but along other axes. Array 0 of the nest is written, array 1 read; elements have `size`
   bytes. Arrays below `least` bytes are in the cache when they are read again. */
bool gk_boxes_are_worth(const gk_nest *nest, int64_t size, size_t least);

/* Of a nest that has as many axes as a layout takes, and elements as 31 bits count. */
gk_boxes gk_boxes_of(const gk_nest *nest, int64_t size);

/* Blocks to launch: each goes through some of the boxes. */
size_t gk_boxes_blocks(const gk_box_grid *grid);

#endif
