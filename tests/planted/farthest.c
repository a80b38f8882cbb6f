/* How far apart, in bytes, the elements of a box of runs are, of all boxes that a copy of so many
   elements is cut into: the nest's pieces, which are no launches here. */
#include <stdlib.h>

#include "engine/boxes.h"

gk_status gk_call_launch(gk_call *call, const gk_row *row, size_t blocks, void **arguments) {
    (void)call, (void)row, (void)blocks, (void)arguments;
    return GK_OK;
}

size_t gk_dtype_size(gk_dtype dtype) {
    (void)dtype;
    return 1;
}

typedef struct search {
    int64_t size, farthest;
    int pieces;
} search;

static gk_status look(gk_call *call, const gk_nest *piece, const gk_layout *layout, void *context) {
    search *of = context;
    const gk_run_boxes boxes = gk_run_boxes_of(piece, of->size);
    int64_t written = 0, read = 0;
    (void)call, (void)layout;
    for (int i = 0; i < boxes.axes; i++)
        written += (int64_t)(boxes.written[i].side.value - 1) * labs(boxes.written[i].stride);
    for (int i = 0; i < boxes.across; i++)
        read += (int64_t)(boxes.read[i].side.value - 1) * labs(boxes.read[i].stride);
    of->farthest = written > of->farthest ? written : of->farthest;
    of->farthest = read > of->farthest ? read : of->farthest;
    of->pieces++;
    return GK_OK;
}

int farthest_in_a_box(int64_t size, int ndim, const int64_t *shape, const int64_t *to,
                      const int64_t *from, int64_t *farthest) {
    gk_nest nest = {.ndim = ndim, .arrays = 2, .size = {size, size}, .data = {4096, 4096}};
    search of = {.size = size};
    for (int i = 0; i < ndim; i++) {
        nest.shape[i] = shape[i];
        nest.stride[GK_TO][i] = to[i];
        nest.stride[GK_FROM][i] = from[i];
    }
    gk_call *call = calloc(1, sizeof *call);
    (void)gk_nest_run(call, &nest, look, &of);
    free(call);
    *farthest = of.farthest;
    return of.pieces;
}
