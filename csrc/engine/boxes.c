#include "engine/boxes.h"

#include <stdlib.h>

#include "engine/box_sides.h"

enum {
    LITTLE_SOON = GK_SECTOR / 4, /* bytes of a sector, if there are so many at a time */
    LATE = 8192,                 /* elements, after which no cache of a multiprocessor has it */
    MANY_BLOCKS = 1024,          /* enough for a device that has to be filled evenly */
    MOST_BOXES = 64,             /* of a block, for which a thread finds its elements once */
};

/* How many elements are read to the next one along an axis whose elements are nearer than that. */
static int64_t until_nearer(const gk_nest *nest, uint64_t than, int64_t least) {
    int64_t count = 1;
    for (int i = nest->ndim - 1; i >= 0; i--) {
        if (count >= least && gk_distance_of(nest->stride[GK_FROM][i]) < than)
            return count;
        count *= nest->shape[i];
    }
    return 0;
}

int64_t gk_until_next(const gk_nest *nest) {
    return until_nearer(nest, GK_SECTOR / 2, 1);
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

int64_t gk_bytes_soon(const gk_nest *nest, int64_t size) {
    int64_t bytes = size, count = 1;
    for (int i = nest->ndim - 1; i >= 0 && count < GK_SOON; i--) {
        const uint64_t stride = gk_distance_of(nest->stride[GK_FROM][i]);
        const int64_t most = stride < GK_SECTOR ? GK_SECTOR / (int64_t)stride : 1;
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
    if (until_nearer(nest, GK_SECTOR, LATE) == 0)
        return false;
    return size < GK_WORD ? gk_bytes_soon(nest, size) < LITTLE_SOON
                          : gk_nest_count(nest) >= 2 * (least / (size_t)size);
}

bool gk_boxes_are_worth(const gk_nest *nest, int64_t size, size_t least) {
    int last = nest->ndim - 1;
    size_t count = gk_nest_count(nest);
    if (last < 1 || count < least / (size_t)size || !are_counted(nest, size))
        return false;
    return gk_distance_of(nest->stride[GK_TO][last]) <= GK_NEAR &&
           is_fetched_again(nest, size, least);
}

gk_boxes gk_boxes_of(const gk_nest *nest, int64_t size) {
    int64_t side[GK_LAYOUT_DIMENSIONS], pitch[GK_LAYOUT_DIMENSIONS], elements = 1;
    int64_t most = GK_BOX_BYTES / size < GK_BOX_ELEMENTS ? GK_BOX_BYTES / size : GK_BOX_ELEMENTS;
    int order[2][GK_MAX_DIMENSIONS];
    gk_sort_axes(nest, GK_TO, order[GK_TO]);
    gk_sort_axes(nest, GK_FROM, order[GK_FROM]);
    gk_choose_sides(nest, order, most, side);
    gk_even_out(nest, side);
    for (int i = nest->ndim - 1; i >= 0; i--) {
        pitch[i] = elements;
        elements *= side[i];
    }
    gk_boxes boxes = {.grid = gk_grid_of(nest, side), .elements = (uint32_t)elements};
    for (int k = 0; k < 2; k++)
        for (int place = 0; place < nest->ndim; place++) {
            const int i = order[k][nest->ndim - 1 - place];
            boxes.part[k][place].side = gk_divisor_of((uint32_t)side[i]);
            boxes.part[k][place].pitch = (uint32_t)pitch[i];
            boxes.part[k][place].stride = side[i] == 1 ? 0 : (int32_t)(nest->stride[k][i] / size);
        }
    return boxes;
}

size_t gk_boxes_blocks(const gk_box_grid *grid) {
    size_t each = grid->count / MANY_BLOCKS;
    each = each < 1 ? 1 : each > MOST_BOXES ? MOST_BOXES : each;
    return (grid->count + each - 1) / each;
}
