/* Elementwise operations of which some operands run along other axes than the result, as those of
   a.T do: whether tiles are good for them, and which (cuda/elementwise/turned.cuh). */
#include "ops/elementwise_turned.h"

#include <stdlib.h>

#include "engine/matrix_axes.h"
#include "engine/rates.h"

/* Fitted to 13,800 works that chance made, each with tiles and without, on an H200
   (benchmarks/notes/any_shape.md). */
enum {
    LEAST = 1 << 17, /* elements: of fewer tiles leave a device idle */
    NARROW = 72,     /* elements of a row of the result: what lies along shorter ones */
    LEAST_LINE = 4,  /* elements of an operand's line, of which several are below one another, */
    LEAST_OF_LINES = 4 << 20, /* of so many elements in all times those of a line, */
    FEWER = 4, /* and by this part fewer lines than there is room for, if nothing is left then */
};

/* So much of tiles has to be filled; of narrow rows so much along these, since lines that are close
   to one another stay in the cache as they are. */
static const double LEAST_FILLED = 0.3, LEAST_OF_BYTES = 0.25, LEAST_OF_NARROW = 0.7;

/* How the arrays of a nest are cut into tiles, and what these leave of them: a last axis of length
   0 if that is nothing. */
typedef struct turning {
    const gk_row *row;
    gk_nest nest, rest;
    gk_matrix_axes of;
    uint32_t turned, served, by_words; /* bit k: of array k */
} turning;

/* Whether what is far apart along the last axis is near along this one. */
static bool is_turned(const gk_nest *nest, int array, int axis) {
    const int64_t along = llabs(nest->stride[array][axis]);
    const int64_t across = llabs(nest->stride[array][nest->ndim - 1]);
    return along < GK_SECTOR && across > along;
}

static size_t count_different(const gk_nest *nest, int array) {
    size_t count = 1;
    for (int i = 0; i < nest->ndim; i++)
        count *= nest->stride[array][i] != 0 ? (size_t)nest->shape[i] : 1;
    return count;
}

/* The operand with most elements of those that are turned; 0: none is. */
static int most_turned(const gk_nest *nest) {
    int most = 0;
    for (int k = 1; k < nest->arrays; k++)
        if (nest->data[k] != 0 && is_turned(nest, k, gk_nearest_axis(nest, k)) &&
            (most == 0 || count_different(nest, k) > count_different(nest, most)))
            most = k;
    return most;
}

/* Whether so much of the row's tiles is filled. */
static bool are_filled(const gk_matrix_axes *of, int64_t size, const gk_row *row) {
    const int64_t written = of->written.length;
    const double least = size == 1 ? LEAST_OF_BYTES : LEAST_FILLED;
    return gk_filled(of->read.length, written, row) >= least &&
           gk_filled(row->tile_rows, written, row) >= (written < NARROW ? LEAST_OF_NARROW : least);
}

/* Which arrays are read along the same axis as the one that is turned, and which along either. */
static void see_operands(const gk_nest *nest, int axis, turning *how) {
    how->turned = how->served = 0;
    for (int k = 1; k < nest->arrays; k++) {
        const int nearest = gk_nearest_axis(nest, k);
        how->turned |= (uint32_t)(nearest == axis && is_turned(nest, k, axis)) << k;
        how->served |= (uint32_t)(nearest == axis || nearest == nest->ndim - 1) << k;
    }
}

/* Whether all words of an array along these axes are aligned, of as many elements as those of a
   word of an operand: what lies side by side is whole words of it, each part of which begins with
   one. */
static bool is_by_words(const gk_nest *nest, int array, const gk_run_axes *along, int64_t size) {
    const int64_t width = gk_elements_of_word(size);
    int64_t run = 1;
    int merged = 0;
    while (merged < along->count &&
           nest->stride[array][along->axis[merged]] == run * nest->size[array])
        run *= nest->shape[along->axis[merged++]];
    uintptr_t bits = nest->data[array];
    for (int i = 0; i < nest->ndim; i++)
        bits |= gk_has_axis(along, i) ? 0 : (uintptr_t)nest->stride[array][i];
    for (int i = merged; i < along->count; i++)
        bits |= (uintptr_t)nest->stride[array][along->axis[i]];
    return run % width == 0 && bits % (uintptr_t)(width * nest->size[array]) == 0;
}

/* Whether all elements of such a word are one. */
static bool is_repeated(const gk_nest *nest, int array, const gk_run_axes *along, int64_t size) {
    int64_t same = 1;
    for (int i = 0; i < along->count; i++) {
        if (nest->stride[array][along->axis[i]] != 0)
            return same % gk_elements_of_word(size) == 0;
        same *= nest->shape[along->axis[i]];
    }
    return true;
}

/* Whether kernels take all arrays as they lie: bytes by words, or one for a word. */
static bool take_words(int64_t size, turning *how) {
    const gk_nest *nest = &how->nest;
    how->by_words = 0;
    for (int k = 0; k < nest->arrays; k++) {
        const gk_run_axes *along = how->turned >> k & 1 ? &how->of.read : &how->of.written;
        const bool words = is_by_words(nest, k, along, size);
        how->by_words |= (uint32_t)words << k;
        if (size == 1 && !words && nest->data[k] != 0 &&
            (k == 0 || !is_repeated(nest, k, along, size)))
            return false;
    }
    return true;
}

/* Parts of so long an axis, `most` or nearly as many, which leave nothing of it if that can be. */
static int64_t parts_of(int64_t length, int64_t most, int64_t width) {
    for (int64_t parts = most; parts > most - most / FEWER; parts--)
        if (length % (parts * width) == 0)
            return parts;
    return most;
}

/* Where lines of the operand are too short for a tile, it has those of several parts of the last
   axis below one another. */
static void fold(int64_t size, turning *how) {
    gk_nest *nest = &how->nest;
    const int last = nest->ndim - 1, side = how->row->tile_rows;
    const int64_t length = nest->shape[last], most = side / how->of.read.length;
    if (most < 2 || length < most * side || how->of.read.length < LEAST_LINE ||
        (int64_t)gk_nest_count(nest) < LEAST_OF_LINES / how->of.read.length ||
        nest->ndim == GK_LAYOUT_DIMENSIONS || how->of.read.count == GK_CHAIN_AXES)
        return;
    const int64_t width = gk_elements_of_word(size);
    const int64_t parts = parts_of(length, most, width);
    const int64_t each =
        length % (parts * width) == 0 ? length / parts : length / (parts * side) * side;
    how->rest.shape[last] = length - parts * each;
    nest->ndim++;
    nest->shape[last] = parts;
    nest->shape[last + 1] = each;
    for (int k = 0; k < nest->arrays; k++) {
        const int64_t stride = nest->stride[k][last];
        how->rest.data[k] += nest->data[k] ? (uintptr_t)(parts * each * stride) : 0;
        nest->stride[k][last] = each * stride;
        nest->stride[k][last + 1] = stride;
    }
    how->of.written = (gk_run_axes){1, {last + 1}, each};
    how->of.read.axis[how->of.read.count++] = last;
    how->of.read.length *= parts;
}

/* Whether tiles are good for that, and how. */
static bool cut(gk_call *call, const gk_work *ready, const gk_nest *nest, turning *how) {
    const int64_t size = (int64_t)gk_dtype_size(ready->dtype);
    const int last = nest->ndim - 1;
    if (last < 1 || nest->stride[0][last] != nest->size[0] || gk_nest_count(nest) < LEAST)
        return false;
    const int most = most_turned(nest);
    if (most == 0)
        return false;
    const int axis = gk_nearest_axis(nest, most);
    const gk_wish wish = {.op = ready->op + GK_BY_TILES,
                          .dtype = ready->dtype,
                          .strided = true,
                          .address_bits = (uintptr_t)size};
    how->row = gk_row_suiting(&wish, call->backend);
    how->of = gk_matrix_axes_along(nest, most, axis);
    if (!how->row || how->of.read.length > INT32_MAX || how->of.written.length > INT32_MAX)
        return false;
    see_operands(nest, axis, how);
    how->nest = how->rest = *nest;
    how->rest.shape[last] = 0;
    fold(size, how);
    return are_filled(&how->of, size, how->row) && take_words(size, how);
}

bool gk_are_turned(gk_call *call, const gk_work *ready, const gk_nest *nest, uint32_t *served) {
    turning how;
    if (!cut(call, ready, nest, &how))
        return false;
    *served = how.served >> 1;
    return true;
}

static void add_axes(gk_layout *layout, const gk_nest *nest, const gk_run_axes *axes) {
    for (int i = 0; i < axes->count; i++)
        gk_nest_lay_out(nest, axes->axis[i], layout);
}

/* Where tiles lie in their matrices, and these in memory. */
static gk_turned tiles_of(const turning *way) {
    const gk_nest *nest = &way->nest;
    const int64_t rows = way->of.read.length, columns = way->of.written.length;
    const uint32_t across = (uint32_t)gk_parts_of(columns, way->row->tile_columns);
    const uint32_t down = (uint32_t)gk_parts_of(rows, way->row->tile_rows);
    gk_turned how = {.rows = (uint32_t)rows,
                     .columns = (uint32_t)columns,
                     .across = gk_divisor_of(across),
                     .in_matrix = gk_divisor_of(across * down),
                     .turned = way->turned,
                     .by_words = way->by_words};
    add_axes(&how.layout, nest, &way->of.written);
    how.row_axes = how.layout.ndim;
    add_axes(&how.layout, nest, &way->of.read);
    how.matrix_axes = how.layout.ndim;
    for (int i = nest->ndim - 1; i >= 0; i--)
        if (!gk_has_axis(&way->of.written, i) && !gk_has_axis(&way->of.read, i))
            gk_nest_lay_out(nest, i, &how.layout);
    return how;
}

gk_status gk_launch_turned(gk_call *call, const gk_work *ready, const gk_nest *piece,
                           bool *launched, gk_nest *rest) {
    turning way;
    *launched = cut(call, ready, piece, &way);
    if (!*launched)
        return GK_OK;
    gk_turned how = tiles_of(&way);
    uintptr_t out = piece->data[0];
    gk_terms terms = gk_terms_of(ready, piece);
    const size_t matrices =
        gk_nest_count(&way.nest) / (size_t)(way.of.written.length * way.of.read.length);
    *rest = way.rest;
    call->ran = way.row;
    return gk_call_launch(call, way.row, matrices * how.in_matrix.value,
                          (void *[]){&out, &terms, &how});
}
