#include "engine/run_boxes.h"

#include <stdlib.h>

#include "engine/box_sides.h"
#include "engine/rates.h"

enum {
    BANKS = 32,                                     /* of shared memory, */
    VECTORS_OF_BANKS = BANKS * GK_WORD / GK_VECTOR, /* and what they have of one row */
    WIDEST = 8,                                     /* bytes of elements of boxes of runs, */
    LONG_RUN = 2048,                                /* bytes: longer ones are no faster, */
    LARGE_BOX = 12288,                              /* nor is a larger box */
    MANY_IN_A_BANK = 4,                             /* words: are there more, a box is the better */
    SMALL_BOX = 10240,                              /* that has half of its room or less */
    MOST_TIMES = 16,  /* how many times as long as those read they may be */
    PARTS = 32,       /* of its length, to which a run is found */
    LONG_SIDE = 8,    /* words, of which one is a small part */
    RUN_BLOCKS = 264, /* of such boxes at a time, on a device of 132 multiprocessors */
};

/* The axes of a box that lie in an array as one run, the nearest first: how many, and its bytes. */
typedef struct run {
    int axes;
    int64_t bytes, count; /* and how many a box has */
} run;

static run run_of(const gk_nest *nest, int array, const int *order, const int64_t *side,
                  int64_t size) {
    run of = {.bytes = size, .count = gk_product_of(side, nest->ndim) * size};
    for (; of.axes < nest->ndim; of.axes++) {
        const int axis = order[nest->ndim - 1 - of.axes];
        if (nest->stride[array][axis] != of.bytes)
            break;
        of.bytes *= side[axis];
    }
    of.count /= of.bytes;
    return of;
}

typedef struct run_box {
    int order[2][GK_MAX_DIMENSIONS];
    int64_t side[GK_LAYOUT_DIMENSIONS];
    gk_cells cells[GK_LAYOUT_DIMENSIONS];
    run run[2], row;        /* a row of the box is all of a run that is read, or some of its axes */
    int64_t vectors, words; /* that a row may take, and a run that is written; 0: it has no room */
    bool on_words;          /* all runs that are written begin and end with one */
    uint32_t turn_bits;     /* see gk_turn_of */
    int in_a_bank;          /* words that a warp reads at a time, at most */
    int64_t room;           /* bytes for it while no rows are moved apart */
} run_box;

static bool is_in_row(const run_box *box, int ndim, int axis) {
    for (int k = 0; k < box->row.axes; k++)
        if (box->order[GK_FROM][ndim - 1 - k] == axis)
            return true;
    return false;
}

/* So many bytes or more that lie on a vector as those do that are read a stride on. */
static int64_t as_they_lie(int64_t bytes, int64_t stride) {
    return bytes + ((stride - bytes) & (GK_VECTOR - 1));
}

/* How the nearest rows of a box may lie. */
typedef struct spacing {
    int64_t farther; /* so many vectors farther apart than they have to, */
    uint32_t bits;   /* every 2^bits-th side by side */
} spacing;

/* Lay an axis out of whose indices each takes so many bytes. Returns what all of them take. */
static int64_t lay_out_rows(int64_t taken, int64_t side, int64_t stride, spacing by,
                            gk_cells *cells) {
    const int64_t groups = (int64_t)1 << by.bits, each = gk_parts_of(side, groups);
    const int64_t cell = as_they_lie(taken, stride * groups) + by.farther * GK_VECTOR;
    const int64_t together = (each - 1) * cell + taken, group = as_they_lie(together, stride);
    *cells = (gk_cells){(uint32_t)cell, (uint32_t)group, by.bits};
    return (groups - 1) * group + together;
}

/* Lay a box out: rows lie on vectors as they do in the array that is read. Returns the bytes that
   it takes. */
static int64_t lay_out(const gk_nest *nest, int64_t size, spacing by, run_box *box) {
    const int last = nest->ndim - 1;
    int64_t taken = size;
    for (int k = 0; k < box->row.axes; k++) {
        const int axis = box->order[GK_FROM][last - k];
        box->cells[axis] = (gk_cells){.cell = (uint32_t)taken};
        taken *= box->side[axis];
    }
    taken = box->vectors * GK_VECTOR;
    for (int k = 0; k < nest->ndim; k++) {
        const int axis = box->order[GK_TO][last - k];
        if (is_in_row(box, nest->ndim, axis) || box->side[axis] == 1)
            continue;
        taken = lay_out_rows(taken, box->side[axis], nest->stride[GK_FROM][axis], by,
                             &box->cells[axis]);
        by = (spacing){0, 0};
    }
    return taken + GK_VECTOR;
}

/* The first elements that a warp reads at a time: the indices of each along the axes along which
   some have any. */
typedef struct warp_reads {
    int axes, axis[GK_LAYOUT_DIMENSIONS];
    uint32_t index[GK_LAYOUT_DIMENSIONS][BANKS];
} warp_reads;

static warp_reads find_reads(const gk_nest *nest, int64_t size, const run_box *box) {
    const uint32_t each = size < GK_WORD ? (uint32_t)(GK_WORD / size) : 1;
    uint32_t number[BANKS];
    warp_reads reads = {.axes = 0};
    for (uint32_t lane = 0; lane < BANKS; lane++)
        number[lane] = lane * each + gk_turn_of(lane, box->turn_bits, each);
    for (int k = nest->ndim - 1; k >= 0 && number[BANKS - 1] > 0; k--) {
        const int axis = box->order[GK_TO][k];
        const uint32_t side = (uint32_t)box->side[axis];
        reads.axis[reads.axes] = axis;
        for (int lane = 0; lane < BANKS; lane++) {
            reads.index[reads.axes][lane] = number[lane] % side;
            number[lane] /= side;
        }
        reads.axes += side > 1;
    }
    return reads;
}

/* How many words of those are in one bank, at most; or that it is no fewer than `enough`. */
static int words_in_a_bank(const run_box *box, const warp_reads *reads, int enough) {
    enum { ROWS = GK_RUN_BOX_BYTES / GK_WORD / BANKS, BITS = 64 };
    uint64_t has[BANKS][(ROWS + BITS - 1) / BITS] = {{0}}; /* a bit of each word of a bank */
    int count[BANKS] = {0}, most = 0;
    for (int lane = 0; lane < BANKS && most < enough; lane++) {
        uint32_t place = 0;
        for (int k = 0; k < reads->axes; k++)
            place += gk_cell_of(&box->cells[reads->axis[k]], reads->index[k][lane]);
        const uint32_t word = place / GK_WORD, bank = word % BANKS, row = word / BANKS;
        uint64_t *const bits = &has[bank][row / BITS], its = (uint64_t)1 << row % BITS;
        count[bank] += (*bits & its) == 0;
        *bits |= its;
        most = count[bank] > most ? count[bank] : most;
    }
    return most;
}

/* Move rows of such groups apart, as far as there is room, until few words are in one bank; `most`
   times, or fewer. */
static void try_spacings(const gk_nest *nest, int64_t size, const warp_reads *reads, uint32_t bits,
                         int64_t most, run_box *box, spacing *best) {
    for (int64_t farther = 0; farther < most; farther++) {
        const spacing by = {farther, bits};
        if (box->in_a_bank <= GK_FEW_IN_A_BANK || lay_out(nest, size, by, box) > GK_RUN_BOX_BYTES)
            return;
        const int words = words_in_a_bank(box, reads, box->in_a_bank);
        *best = words < box->in_a_bank ? by : *best;
        box->in_a_bank = words < box->in_a_bank ? words : box->in_a_bank;
    }
}

/* Whether what is read at a time lies in several rows, which may be moved apart. */
static bool are_in_rows(const gk_nest *nest, const run_box *box, const warp_reads *reads) {
    for (int k = 0; k < reads->axes; k++)
        if (!is_in_row(box, nest->ndim, reads->axis[k]))
            return true;
    return false;
}

/* Have lanes begin with other elements of their words than their neighbours, if half as many words
   or fewer are in one bank then: what lies within a row cannot be moved apart. */
static void turn_lanes(const gk_nest *nest, int64_t size, run_box *box) {
    const int in_order = box->in_a_bank;
    uint32_t best = GK_NO_TURN;
    for (uint32_t bits = 0; bits < GK_NO_TURN; bits++) {
        box->turn_bits = bits;
        const warp_reads reads = find_reads(nest, size, box);
        const int most = words_in_a_bank(box, &reads, box->in_a_bank);
        if (most < box->in_a_bank && 2 * most <= in_order) {
            box->in_a_bank = most;
            best = bits;
        }
    }
    box->turn_bits = best;
}

/* As few as matter, or the fewest that there can be: what is next to one another in the result lies
   in other banks, if there is room for it. Elements of a word are read by instructions of their
   own, so their rows may lie in groups apart. */
static void spread(const gk_nest *nest, int64_t size, run_box *box) {
    spacing best = {0, 0};
    box->turn_bits = GK_NO_TURN;
    box->in_a_bank = BANKS + 1;
    const warp_reads reads = find_reads(nest, size, box);
    const bool in_rows = are_in_rows(nest, box, &reads);
    try_spacings(nest, size, &reads, 0, in_rows ? VECTORS_OF_BANKS : 1, box, &best);
    if (size < GK_WORD && in_rows)
        try_spacings(nest, size, &reads, size == 1 ? 2 : 1, VECTORS_OF_BANKS, box, &best);
    lay_out(nest, size, best, box);
    if (size < GK_WORD && box->in_a_bank > GK_FEW_IN_A_BANK)
        turn_lanes(nest, size, box);
}

/* Offsets in a box are of 32 bits. */
static bool is_near(const gk_nest *nest, const run_box *box) {
    for (int k = 0; k < 2; k++) {
        int64_t span = 0;
        for (int i = 0; i < nest->ndim; i++)
            span += (box->side[i] - 1) * llabs(nest->stride[k][i]);
        if (span > INT32_MAX - GK_RUN_BOX_BYTES)
            return false;
    }
    return true;
}

/* What the beginnings of all runs that are written are multiples of, and their lengths: boxes
   begin a side apart, and the last one so that it ends with the array. */
static uintptr_t bits_of_written(const gk_nest *nest, const run_box *box) {
    uintptr_t bits = nest->data[GK_TO] | (uintptr_t)box->run[GK_TO].bytes;
    for (int place = 0; place < nest->ndim; place++) {
        const int axis = box->order[GK_TO][nest->ndim - 1 - place];
        const int64_t side = box->side[axis], stride = nest->stride[GK_TO][axis];
        const bool is_in_run = place < box->run[GK_TO].axes;
        if (nest->shape[axis] > side)
            bits |= (uintptr_t)(side * stride) | (uintptr_t)(nest->shape[axis] * stride);
        bits |= is_in_run || side == 1 ? 0 : (uintptr_t)stride;
    }
    return bits;
}

/* Whether a block has room for it with such rows, and each thread for its parts. */
static bool has_room(const gk_nest *nest, int64_t size, const run *row, run_box *box) {
    const uintptr_t bits = gk_nest_bits(nest);
    const int64_t word = size < GK_WORD ? GK_WORD : size;
    box->row = *row;
    box->on_words = bits_of_written(nest, box) % (uintptr_t)word == 0;
    box->words = gk_parts_of(box->run[GK_TO].bytes, word) + (box->on_words ? 0 : 1);
    box->vectors =
        gk_parts_of(row->bytes + (bits % GK_VECTOR == 0 ? 0 : GK_VECTOR - size), GK_VECTOR);
    return box->words * box->run[GK_TO].count <= GK_RUN_BOX_WORDS &&
           box->vectors * row->count <= GK_RUN_BOX_VECTORS &&
           lay_out(nest, size, (spacing){0, 0}, box) <= box->room;
}

/* Cut runs that are written after a whole word, where all that they are cut from is whole words. */
static void end_on_words(const gk_nest *nest, int64_t size, run_box *box) {
    int64_t bytes = size;
    for (int place = nest->ndim - 1; place >= 0; place--) {
        const int axis = box->order[GK_TO][place];
        const int64_t each = GK_WORD / (int64_t)gk_common_divisor(GK_WORD, (size_t)bytes);
        if (nest->stride[GK_TO][axis] != bytes)
            return;
        if (box->side[axis] < nest->shape[axis]) {
            if (box->side[axis] >= LONG_SIDE * each && nest->shape[axis] % each == 0)
                box->side[axis] -= box->side[axis] % each;
            return;
        }
        bytes *= box->side[axis];
    }
}

/* Sides for runs that are read of so many elements, and so many times as many that are written.
   Whether such a box has room. */
static bool has_sides(const gk_nest *nest, int64_t size, int64_t length, int64_t times,
                      run_box *box) {
    for (int i = 0; i < nest->ndim; i++)
        box->side[i] = 1;
    gk_widen_sides(nest, box->order[GK_TO], length * times, box->side);
    gk_widen_sides(nest, box->order[GK_FROM], length, box->side);
    gk_even_out(nest, box->side);
    end_on_words(nest, size, box);
    for (int k = 0; k < 2; k++)
        box->run[k] = run_of(nest, k, box->order[k], box->side, size);
    return is_near(nest, box) && has_room(nest, size, &box->run[GK_FROM], box);
}

/* The same box where what its rows have along their outermost axis are rows of their own: what is
   in one row cannot be moved apart. Whether there are, and such a box has room. */
static bool is_cut(const gk_nest *nest, int64_t size, run_box *box) {
    run row = box->row;
    if (row.axes <= 1)
        return false;
    row.axes--;
    const int64_t side = box->side[box->order[GK_FROM][nest->ndim - 1 - row.axes]];
    row.bytes /= side;
    row.count *= side;
    return has_room(nest, size, &row, box);
}

/* The longest runs that have room, as far as some halvings tell; no words are in one bank until it
   is known which. */
static void find_longest_runs(const gk_nest *nest, int64_t size, int64_t times, run_box *box) {
    int64_t least = box->room / size, step;
    while (!has_sides(nest, size, least, times, box) && least > 1)
        least /= 2;
    for (step = least / 2; step > least / PARTS; step /= 2)
        if (has_sides(nest, size, least + step, times, box))
            least += step;
    if (!has_sides(nest, size, least, times, box))
        box->words = 0;
    box->in_a_bank = 0;
}

/* As they are, or cut along as many axes as leave the fewest words in a bank. */
static void spread_rows(const gk_nest *nest, int64_t size, run_box *box) {
    spread(nest, size, box);
    run_box cut = *box;
    cut.room = GK_RUN_BOX_BYTES;
    while (box->in_a_bank > GK_FEW_IN_A_BANK && is_cut(nest, size, &cut)) {
        spread(nest, size, &cut);
        if (cut.in_a_bank < box->in_a_bank)
            *box = cut;
    }
}

static double rate_of(const gk_nest *nest, int64_t size, const run_box *box) {
    const gk_run_shape shape = {box->run[GK_TO].bytes, box->run[GK_FROM].bytes,
                                gk_product_of(box->side, nest->ndim) * size, box->in_a_bank};
    return box->words > 0 ? gk_rate_of_runs(size, &shape) : 0.0;
}

/* Take the longest runs of so many times as many that are written, as far as `best->room` goes, if
   they are expected to be faster. To spread rows takes longest: only if they would be with all
   words in banks of their own. */
static void take_faster(const gk_nest *nest, int64_t size, int64_t times, run_box *best,
                        double *rate) {
    run_box box = *best;
    find_longest_runs(nest, size, times, &box);
    double its = rate_of(nest, size, &box);
    if (box.words > 0 && its > *rate) {
        spread_rows(nest, size, &box);
        its = rate_of(nest, size, &box);
    }
    if (its > *rate) {
        *rate = its;
        *best = box;
    }
}

/* The box that is expected to be the fastest, and what such boxes move. One that is smaller than it
   may be has the more room to move its rows apart. */
static run_box choose_run_box(const gk_nest *nest, int64_t size, double *rate) {
    run_box best = {.words = 0};
    *rate = -1.0;
    gk_sort_axes(nest, GK_TO, best.order[GK_TO]);
    gk_sort_axes(nest, GK_FROM, best.order[GK_FROM]);
    for (int64_t times = 1; times <= MOST_TIMES; times *= 2) {
        best.room = GK_RUN_BOX_BYTES;
        take_faster(nest, size, times, &best, rate);
        best.room = SMALL_BOX;
        if (best.in_a_bank > MANY_IN_A_BANK)
            take_faster(nest, size, times, &best, rate);
        if (best.run[GK_TO].bytes >= LONG_RUN &&
            gk_product_of(best.side, nest->ndim) * size >= LARGE_BOX)
            break;
    }
    return best;
}

static void describe_axes(const gk_nest *nest, const run_box *box, gk_run_boxes *boxes) {
    for (int k = nest->ndim - 1; k >= 0; k--) {
        const int axis = box->order[GK_TO][k];
        const gk_divisor side = gk_divisor_of((uint32_t)box->side[axis]);
        if (side.value == 1)
            continue;
        boxes->written[boxes->axes].side = side;
        boxes->written[boxes->axes].stride = (int32_t)nest->stride[GK_TO][axis];
        boxes->written[boxes->axes++].cells = box->cells[axis];
        if (is_in_row(box, nest->ndim, axis))
            continue;
        boxes->read[boxes->across].side = side;
        boxes->read[boxes->across].stride = (int32_t)nest->stride[GK_FROM][axis];
        boxes->read[boxes->across++].cells = box->cells[axis];
    }
}

static gk_run_boxes describe(const gk_nest *nest, int64_t size, const run_box *box) {
    gk_run_boxes boxes = {.grid = gk_grid_of(nest, box->side),
                          .row_vectors = (uint32_t)(box->vectors * box->row.count),
                          .vectors = gk_divisor_of((uint32_t)box->vectors),
                          .runs = (uint32_t)box->run[GK_TO].count,
                          .run_elements = (uint32_t)(box->run[GK_TO].bytes / size),
                          .run_words = (uint32_t)(box->words * box->run[GK_TO].count),
                          .words = gk_divisor_of((uint32_t)box->words),
                          .on_words = box->on_words,
                          .turn_bits = box->turn_bits,
                          .reach = {0, size}};
    for (int i = 0; i < nest->ndim; i++)
        boxes.reach[nest->stride[GK_FROM][i] > 0] += (box->side[i] - 1) * nest->stride[GK_FROM][i];
    describe_axes(nest, box, &boxes);
    return boxes;
}

gk_run_boxes gk_run_boxes_of(const gk_nest *nest, int64_t size) {
    double rate;
    const run_box box = choose_run_box(nest, size, &rate);
    return describe(nest, size, &box);
}

double gk_rate_of_run_boxes(const gk_nest *nest, int64_t size, gk_run_boxes *boxes) {
    if (nest->ndim < 2 || nest->ndim > GK_LAYOUT_DIMENSIONS || size > WIDEST)
        return 0.0;
    double rate;
    const run_box box = choose_run_box(nest, size, &rate);
    if (rate > 0.0)
        *boxes = describe(nest, size, &box);
    return rate;
}

size_t gk_run_boxes_blocks(const gk_run_boxes *boxes) {
    return boxes->grid.count < RUN_BLOCKS ? boxes->grid.count : RUN_BLOCKS;
}
