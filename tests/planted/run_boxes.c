/* How far apart, in bytes, the elements of a box of runs are, of all boxes that a copy of so many
   elements is cut into, and how many words of what a warp reads at first lie in one bank: the nest's
   pieces, which are no launches here. */
#include <stdlib.h>

#include "engine/run_boxes.h"

gk_status gk_call_launch(gk_call *call, const gk_row *row, size_t blocks, void **arguments) {
    (void)call, (void)row, (void)blocks, (void)arguments;
    return GK_OK;
}

size_t gk_dtype_size(gk_dtype dtype) {
    (void)dtype;
    return 1;
}

enum { BANKS = 32, LANES = 32 };

typedef struct search {
    int64_t size, farthest;
    int pieces, in_a_bank;
} search;

static uint32_t place_of(const gk_run_boxes *boxes, uint32_t number) {
    uint32_t place = 0;
    for (int i = 0; i < boxes->axes; i++) {
        const uint32_t index = number % boxes->written[i].side.value;
        const gk_cells *cells = &boxes->written[i].cells;
        place += (index >> cells->bits) * cells->cell;
        place += index % (1u << cells->bits) * cells->group;
        number /= boxes->written[i].side.value;
    }
    return place;
}

/* Of the words that have what the lanes read first, each some element of the word it writes. */
static int words_in_a_bank(const gk_run_boxes *boxes, int64_t size) {
    const uint32_t each = size < GK_WORD ? GK_WORD / (uint32_t)size : 1;
    uint32_t word[LANES];
    int most = 0;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint32_t first = (lane >> boxes->turn_bits) % each;
        word[lane] = place_of(boxes, lane * each + first) / GK_WORD;
    }
    for (uint32_t bank = 0; bank < BANKS; bank++) {
        int its = 0;
        for (int lane = 0; lane < LANES; lane++) {
            bool is_new = word[lane] % BANKS == bank;
            for (int other = 0; other < lane; other++)
                is_new = is_new && word[other] != word[lane];
            its += is_new;
        }
        most = its > most ? its : most;
    }
    return most;
}

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
    of->in_a_bank = words_in_a_bank(&boxes, of->size);
    of->pieces++;
    return GK_OK;
}

int look_at_boxes(int64_t size, int ndim, const int64_t *shape, const int64_t *to,
                  const int64_t *from, int64_t *farthest, int *in_a_bank) {
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
    *in_a_bank = of.in_a_bank;
    return of.pieces;
}
