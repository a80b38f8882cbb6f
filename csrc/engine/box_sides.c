#include "engine/box_sides.h"

#include <stdlib.h>

enum { PACKED = 4096 }; /* bytes that the host copies at full speed, wherever the next ones are */

uint64_t gk_distance_of(int64_t stride) {
    return stride == 0 ? UINT64_MAX : (uint64_t)llabs(stride);
}

void gk_sort_axes(const gk_nest *nest, int array, int *order) {
    for (int axis = 0; axis < nest->ndim; axis++) {
        int at = axis;
        while (at > 0 && gk_distance_of(nest->stride[array][order[at - 1]]) <
                             gk_distance_of(nest->stride[array][axis])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = axis;
    }
}

void gk_widen_sides(const gk_nest *nest, const int *order, int64_t run, int64_t *side) {
    int64_t have = 1;
    for (int i = nest->ndim - 1; i >= 0 && have < run; i--) {
        int axis = order[i];
        int64_t wanted = gk_parts_of(run, have);
        wanted = wanted < nest->shape[axis] ? wanted : nest->shape[axis];
        side[axis] = side[axis] > wanted ? side[axis] : wanted;
        have *= side[axis];
    }
}

int64_t gk_product_of(const int64_t *sides, int count) {
    int64_t all = 1;
    for (int i = 0; i < count; i++)
        all *= sides[i];
    return all;
}

void gk_choose_sides(const gk_nest *nest, int (*order)[GK_MAX_DIMENSIONS], int64_t most,
                     int64_t *side) {
    for (int64_t run = most;; run /= 2)
        for (int twice = 1; twice >= 0; twice--) {
            for (int i = 0; i < nest->ndim; i++)
                side[i] = 1;
            gk_widen_sides(nest, order[GK_TO], run << twice, side);
            gk_widen_sides(nest, order[GK_FROM], run, side);
            if (gk_product_of(side, nest->ndim) <= most)
                return;
        }
}

void gk_even_out(const gk_nest *nest, int64_t *side) {
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
        gk_widen_sides(nest, order[GK_TO], run, side);
        gk_widen_sides(nest, order[GK_FROM], read, side);
        if (gk_product_of(side, nest->ndim) <= most)
            return;
    }
}

void gk_travelling_sides(const gk_nest *nest, int64_t size, int64_t most, int64_t *side,
                         int (*order)[GK_MAX_DIMENSIONS]) {
    const int last = nest->ndim - 1;
    gk_sort_axes(nest, GK_TO, order[GK_TO]);
    gk_sort_axes(nest, GK_FROM, order[GK_FROM]);
    if (last >= 0 && order[GK_TO][last] == order[GK_FROM][last])
        gk_choose_sides(nest, order, most / size, side);
    else
        choose_long_sides(nest, order, PACKED / size, most / size, side);
    gk_even_out(nest, side);
}

gk_box_grid gk_grid_of(const gk_nest *nest, const int64_t *side) {
    gk_box_grid grid = {.ndim = nest->ndim, .count = 1};
    for (int i = 0; i < nest->ndim; i++) {
        const int64_t along = gk_parts_of(nest->shape[i], side[i]);
        grid.axis[i].length = gk_divisor_of((uint32_t)along);
        grid.count *= (uint32_t)along;
        for (int k = 0; k < 2; k++) {
            grid.axis[i].step[k] = side[i] * nest->stride[k][i];
            grid.axis[i].last[k] = (nest->shape[i] - side[i]) * nest->stride[k][i];
        }
    }
    return grid;
}
