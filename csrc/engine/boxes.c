#include "engine/boxes.h"

#include <stdlib.h>

enum {
    TO,
    FROM,
    SHARED = 16, /* the same, that are nearer than half a sector: it is there when it is needed */
    SECTOR = 32, /* bytes that memory moves at a time */
    WORD = 4,    /* bytes of elements: smaller ones are as soon moved otherwise, */
    LITTLE_SOON = SECTOR / 4, /* bytes of a sector, if there are so many at a time */
    LATE = 8192,              /* elements, after which no cache of a multiprocessor has it */
    MANY_BLOCKS = 1024,       /* enough for a device that has to be filled evenly */
    PACKED = 4096,   /* bytes that the host copies at full speed, wherever the next ones are */
    MOST_BOXES = 64, /* of a block, for which a thread finds its elements once */
};

/* A stride of 0 repeats an element: such axes are the farthest. */
static uint64_t distance(int64_t stride) {
    return stride == 0 ? UINT64_MAX : (uint64_t)llabs(stride);
}

/* The axes by how far their elements lie apart, the nearest last; those alike in the nest's order.
 */
static void sort_axes(const gk_nest *nest, int array, int *order) {
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

/* The same to the next one along an axis whose elements are nearer than that. */
static int64_t until_nearer(const gk_nest *nest, uint64_t than, int64_t least) {
    int64_t count = 1;
    for (int i = nest->ndim - 1; i >= 0; i--) {
        if (count >= least && distance(nest->stride[FROM][i]) < than)
            return count;
        count *= nest->shape[i];
    }
    return 0;
}

int64_t gk_until_next(const gk_nest *nest) {
    return until_nearer(nest, SHARED, 1);
}

/* Whether 32 bits tell the elements from the first to the last one of any box. */
static bool are_counted(const gk_nest *nest, int64_t size) {
    for (int k = 0; k < 2; k++) {
        int64_t span = 0;
        for (int i = 0; i < nest->ndim; i++) {
            int64_t side = nest->shape[i] < GK_BOX_ELEMENTS ? nest->shape[i] : GK_BOX_ELEMENTS;
            span += (side - 1) * (llabs(nest->stride[k][i]) / size);
        }
        if (span > INT32_MAX)
            return false;
    }
    return true;
}

/* How much of a sector is read while the first cache has it, in bytes. */
static int64_t bytes_soon(const gk_nest *nest, int64_t size) {
    int64_t bytes = size, count = 1;
    for (int i = nest->ndim - 1; i >= 0 && count < GK_SOON; i--) {
        const uint64_t stride = distance(nest->stride[FROM][i]);
        const int64_t most = stride < SECTOR ? SECTOR / (int64_t)stride : 1;
        bytes *= nest->shape[i] < most ? nest->shape[i] : most;
        count *= nest->shape[i];
    }
    return bytes;
}

/* Whether a sector has something that is read so late that it is fetched again: of elements below
   words so much that they would not be moved as soon by themselves. */
static bool is_fetched_again(const gk_nest *nest, int64_t size, size_t least) {
    if (gk_until_next(nest) >= GK_SOON)
        return true;
    if (until_nearer(nest, SECTOR, LATE) == 0)
        return false;
    return size < WORD ? bytes_soon(nest, size) < LITTLE_SOON
                       : gk_nest_count(nest) >= 2 * (least / (size_t)size);
}

bool gk_boxes_are_worth(const gk_nest *nest, int64_t size, size_t least) {
    int last = nest->ndim - 1;
    size_t count = gk_nest_count(nest);
    if (last < 1 || count < least / (size_t)size || !are_counted(nest, size))
        return false;
    return distance(nest->stride[TO][last]) <= GK_NEAR && is_fetched_again(nest, size, least);
}

/* Sides such that the box has `run` elements, or all there are, along what is near in an array. */
static void widen(const gk_nest *nest, const int *order, int64_t run, int64_t *side) {
    int64_t have = 1;
    for (int i = nest->ndim - 1; i >= 0 && have < run; i--) {
        int axis = order[i];
        int64_t wanted = gk_parts_of(run, have);
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
static void choose_sides(const gk_nest *nest, int (*order)[GK_MAX_DIMENSIONS], int64_t most,
                         int64_t *side) {
    for (int64_t run = most;; run /= 2)
        for (int twice = 1; twice >= 0; twice--) {
            for (int i = 0; i < nest->ndim; i++)
                side[i] = 1;
            widen(nest, order[TO], run << twice, side);
            widen(nest, order[FROM], run, side);
            if (product(side, nest->ndim) <= most)
                return;
        }
}

/* As many boxes along each axis, but the last one not much smaller than the others. */
static void even_out(const gk_nest *nest, int64_t *side) {
    for (int i = 0; i < nest->ndim; i++) {
        int64_t along = gk_parts_of(nest->shape[i], side[i]);
        side[i] = gk_parts_of(nest->shape[i], along);
    }
}

/* What is read in runs of so many elements, and written in runs as long as they can be. */
static void choose_long_sides(const gk_nest *nest, int (*order)[GK_MAX_DIMENSIONS], int64_t read,
                              int64_t most, int64_t *side) {
    for (int64_t run = most;; run /= 2) {
        for (int i = 0; i < nest->ndim; i++)
            side[i] = 1;
        widen(nest, order[TO], run, side);
        widen(nest, order[FROM], read, side);
        if (product(side, nest->ndim) <= most)
            return;
    }
}

void gk_travelling_sides(const gk_nest *nest, int64_t size, int64_t most, int64_t *side,
                         int (*order)[GK_MAX_DIMENSIONS]) {
    const int last = nest->ndim - 1;
    sort_axes(nest, TO, order[TO]);
    sort_axes(nest, FROM, order[FROM]);
    if (last >= 0 && order[TO][last] == order[FROM][last])
        choose_sides(nest, order, most / size, side);
    else
        choose_long_sides(nest, order, PACKED / size, most / size, side);
    even_out(nest, side);
}

gk_boxes gk_boxes_of(const gk_nest *nest, int64_t size) {
    gk_boxes boxes = {.ndim = nest->ndim, .count = 1};
    int64_t side[GK_LAYOUT_DIMENSIONS], pitch[GK_LAYOUT_DIMENSIONS], elements = 1;
    int64_t most = GK_BOX_BYTES / size < GK_BOX_ELEMENTS ? GK_BOX_BYTES / size : GK_BOX_ELEMENTS;
    int order[2][GK_MAX_DIMENSIONS];
    sort_axes(nest, TO, order[TO]);
    sort_axes(nest, FROM, order[FROM]);
    choose_sides(nest, order, most, side);
    even_out(nest, side);
    for (int i = nest->ndim - 1; i >= 0; i--) {
        int64_t along = gk_parts_of(nest->shape[i], side[i]);
        boxes.axis[i].grid = gk_divisor_of((uint32_t)along);
        boxes.axis[i].cut = nest->shape[i] % side[i] == 0 ? 0 : (uint32_t)1 << i;
        boxes.count *= (uint32_t)along;
        pitch[i] = elements;
        elements *= side[i];
        for (int k = 0; k < 2; k++)
            boxes.axis[i].step[k] = side[i] * nest->stride[k][i];
    }
    boxes.elements = (uint32_t)elements;
    for (int k = 0; k < 2; k++)
        for (int place = 0; place < nest->ndim; place++) {
            const int i = order[k][nest->ndim - 1 - place];
            boxes.part[k][place].side = gk_divisor_of((uint32_t)side[i]);
            boxes.part[k][place].rest = (uint32_t)((nest->shape[i] - 1) % side[i] + 1);
            boxes.part[k][place].cut = boxes.axis[i].cut;
            boxes.part[k][place].pitch = (uint32_t)pitch[i];
            boxes.part[k][place].stride = side[i] == 1 ? 0 : (int32_t)(nest->stride[k][i] / size);
        }
    return boxes;
}

size_t gk_boxes_blocks(const gk_boxes *boxes) {
    size_t each = boxes->count / MANY_BLOCKS;
    each = each < 1 ? 1 : each > MOST_BOXES ? MOST_BOXES : each;
    return (boxes->count + each - 1) / each;
}
