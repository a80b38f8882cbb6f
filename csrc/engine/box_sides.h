/* The sides of boxes that two arrays of one shape are cut into, whose axes lie in another order
   each: some elements along what is near in the one, and some along what is near in the other. */
#ifndef GK_BOX_SIDES_H
#define GK_BOX_SIDES_H

#include "engine/nest.h"
#include "transpose/copies.h"

/* How far apart elements are along an axis. A stride of 0 repeats one: such axes are the farthest.
 */
uint64_t gk_distance_of(int64_t stride);

/* The axes by how far their elements lie apart, the nearest last; those alike in the nest's order.
 */
void gk_sort_axes(const gk_nest *nest, int array, int *order);

/* The elements of a box of such sides. */
int64_t gk_product_of(const int64_t *sides, int count);

/* Sides such that the box has `run` elements, or all there are, along what is near in an array. */
void gk_widen_sides(const gk_nest *nest, const int *order, int64_t run, int64_t *side);

/* The longest runs in both arrays whose box is small enough, those that are written up to twice as
   long as those that are read. */
void gk_choose_sides(const gk_nest *nest, int (*order)[GK_MAX_DIMENSIONS], int64_t most,
                     int64_t *side);

/* As many boxes along each axis, but the last one not much smaller than the others. */
void gk_even_out(const gk_nest *nest, int64_t *side);

/* The sides of boxes of at most `most` bytes that travel between the host and the device, and the
   axes of each array, the nearest elements' last: of runs that are long enough to be packed, and as
   long as can be where they are written. */
void gk_travelling_sides(const gk_nest *nest, int64_t size, int64_t most, int64_t *side,
                         int (*order)[GK_MAX_DIMENSIONS]);

/* Boxes of such sides along all axes. */
gk_box_grid gk_grid_of(const gk_nest *nest, const int64_t *side);

#endif
