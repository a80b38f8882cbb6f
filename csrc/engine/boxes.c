#include "engine/boxes.h"

#include <stdlib.h>

enum {
    TO,
    FROM,
    NEAR = 64,          /* bytes from an element to the next: farther ones share no sector */
    RUN = 64,           /* bytes side by side that are worth a transaction */
    MANY_BLOCKS = 2048, /* enough for a device that has to be filled evenly */
    MOST_BOXES = 16,    /* of a block, for which a thread finds its elements once */
};

/* A stride of 0 repeats an element: such axes are the farthest. */
static uint64_t distance(int64_t stride) {
    return stride == 0 ? UINT64_MAX : (uint64_t)llabs(stride);
}

/* The axes by how far their elements lie apart, the nearest last; those alike in the nest's order.
 */
static void sort_axes(const gk_nest *nest, int array, int32_t *order) {
    for (int axis = 0; axis < nest->ndim; axis++) {
        int at = axis;
        while (at > 0 &&
               distance(nest->stride[array][order[at - 1]]) < distance(nest->stride[array][axis])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = axis;
    }
}

bool gk_boxes_are_worth(const gk_nest *nest, int64_t size, size_t least) {
    int32_t from[GK_MAX_DIMENSIONS];
    int last = nest->ndim - 1;
    if (last < 1 || gk_nest_count(nest) < least / (size_t)size)
        return false;
    sort_axes(nest, FROM, from);
    if (distance(nest->stride[TO][last]) > NEAR || distance(nest->stride[FROM][from[last]]) > NEAR)
        return false;
    int64_t run = size; /* that both have */
    for (int i = last; i >= 0 && run < RUN; i--) {
        if (from[i] != i)
            return true;
        run *= nest->shape[i];
    }
    return false;
}

/* Sides such that the box has `run` elements, or all there are, along what is near in an array. */
static void widen(const gk_nest *nest, const int32_t *order, int64_t run, int64_t *side) {
    int64_t have = 1;
    for (int i = nest->ndim - 1; i >= 0 && have < run; i--) {
        int axis = order[i];
        int64_t wanted = (run + have - 1) / have;
        wanted = wanted < nest->shape[axis] ? wanted : nest->shape[axis];
        side[axis] = side[axis] > wanted ? side[axis] : wanted;
        have *= side[axis];
    }
}

static int64_t product(const int64_t *numbers, int count) {
    int64_t all = 1;
    for (int i = 0; i < count; i++)
        all *= numbers[i];
    return all;
}

/* The longest runs in both arrays whose box is small enough, those that are written up to twice as
   long as those that are read. */
static void choose_sides(const gk_nest *nest, const gk_boxes *boxes, int64_t most, int64_t *side) {
    for (int64_t run = most;; run /= 2)
        for (int twice = 1; twice >= 0; twice--) {
            for (int i = 0; i < nest->ndim; i++)
                side[i] = 1;
            widen(nest, boxes->order[TO], run << twice, side);
            widen(nest, boxes->order[FROM], run, side);
            if (product(side, nest->ndim) <= most)
                return;
        }
}

gk_boxes gk_boxes_of(const gk_nest *nest, int64_t size) {
    gk_boxes boxes = {.ndim = nest->ndim, .count = 1};
    int64_t side[GK_LAYOUT_DIMENSIONS];
    int64_t most = GK_BOX_BYTES / size < GK_BOX_ELEMENTS ? GK_BOX_BYTES / size : GK_BOX_ELEMENTS;
    for (int i = 0; i < nest->ndim; i++)
        boxes.order[TO][i] = i;
    sort_axes(nest, FROM, boxes.order[FROM]);
    choose_sides(nest, &boxes, most, side);
    boxes.elements = (uint32_t)product(side, nest->ndim);
    for (int i = 0; i < nest->ndim; i++) {
        int64_t along = (nest->shape[i] + side[i] - 1) / side[i];
        boxes.grid[i] = gk_divisor_of((uint32_t)along);
        boxes.side[i] = gk_divisor_of((uint32_t)side[i]);
        boxes.length[i] = (uint32_t)nest->shape[i];
        boxes.count *= (uint32_t)along;
        for (int k = 0; k < 2; k++)
            boxes.stride[k][i] = nest->stride[k][i];
    }
    return boxes;
}

size_t gk_boxes_blocks(const gk_boxes *boxes) {
    size_t each = boxes->count / MANY_BLOCKS;
    each = each < 1 ? 1 : each > MOST_BOXES ? MOST_BOXES : each;
    return (boxes->count + each - 1) / each;
}
