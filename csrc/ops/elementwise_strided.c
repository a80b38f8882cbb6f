/* Elementwise operations on arrays that are not all one run: how threads go over them, by vectors
   or by elements, and which kernel. */
#include "ops/elementwise_strided.h"

#include "ops/elementwise_turned.h"

enum {
    MANY = 1 << 17,    /* elements: for fewer the shorter kernel is as fast */
    LONE = 3 << 17,    /* elements, or vectors: so many are best found one by one */
    SHORT_ROW = 140,   /* words in a row, of whose threads, if they shared it, too many were idle */
    LEAST_VECTORS = 8, /* in a row that ends in less than one */
    LONG_ROW = 512,    /* bytes, in whose vectors few end */
    MOST_PARTS = 8,    /* launches in place of a kernel for more axes */
    MOST_AGAIN = 8,    /* vectors of a thread for which an operand is the same, */
    LEAST_PERIOD = 64, /* so many apart, or more, so that neighbours have neighbouring ones, */
    BUSY_THREADS = 3 << 16, /* and all that a device has to be busy with */
};

bool gk_is_better_strided(const gk_call *call, const gk_row *row, const gk_array *result) {
    return !call->wanted && row->alignment <= GK_WORD && (uintptr_t)result->data % GK_VECTOR == 0 &&
           gk_count(result) > MANY;
}

/* The bits of where array k's rows begin, if their elements lie side by side; else those of one
   element. */
static uintptr_t row_bits(const gk_nest *nest, int k) {
    int last = nest->ndim - 1;
    uintptr_t bits = nest->data[k];
    if (last < 0 || nest->stride[k][last] != nest->size[k])
        return (uintptr_t)nest->size[k];
    for (int i = 0; i < last; i++)
        bits |= (uintptr_t)nest->stride[k][i];
    return bits;
}

/* Whether single elements are better than vectors, which take more instructions to be found and put
   together: of an operand whose elements are apart, and as long as the cache holds all. Fitted to
   5,200 additions of 0.5 to 400 MB, each in all ways. */
static bool are_better_single(const gk_nest *nest, int64_t size) {
    static const struct { /* up to so many bytes of an operand, by the bits of an element's size */
        size_t in_short_rows, in_long_rows, apart;
    } most[] = {{3 << 18, 2 << 20, SIZE_MAX},
                {3 << 20, 4 << 20, 12 << 20},
                {4 << 20, 12 << 20, 12 << 20},
                {16 << 20, 24 << 20, 24 << 20}};
    const int of = __builtin_ctz((unsigned)size), last = nest->ndim - 1;
    const size_t count = gk_nest_count(nest), bytes = count * (size_t)size;
    if (count <= MANY)
        return false;
    for (int k = 1; k < nest->arrays && last >= 0; k++)
        if (nest->stride[k][last] != size && nest->stride[k][last] != 0)
            return bytes <= most[of].apart;
    const bool is_long = last < 0 || nest->shape[last] * size >= LONG_ROW;
    return bytes <= (is_long ? most[of].in_long_rows : most[of].in_short_rows);
}

/* Operands that are neither one run nor one element. */
static int count_found(const gk_nest *nest, const gk_row_vectors *rows) {
    int found = 0;
    for (int k = 1; k < nest->arrays; k++)
        found += rows->array[k].ndim > 1;
    return found;
}

/* Whether rows that all arrays share are so short that threads which shared them were idle. */
static bool are_rows_short(const gk_nest *nest, int64_t size) {
    return nest->ndim > 0 && nest->shape[nest->ndim - 1] <= SHORT_ROW * gk_elements_of_word(size);
}

/* Whether vectors are good for rows of the result's own, whatever rows the operands have: not where
   elements of one of these are apart, of words not where two are found whose rows threads share as
   well, and not of larger elements, since what it takes to find a vector is for few then. */
static bool are_own_rows(const gk_nest *nest, const gk_row_vectors *rows, int64_t size) {
    for (int k = 1; k < nest->arrays; k++)
        if (rows->array[k].axis[0].stride != 1 && rows->array[k].axis[0].stride != 0)
            return false;
    return size < GK_WORD ||
           (size == GK_WORD && (count_found(nest, rows) <= 1 || are_rows_short(nest, size)));
}

/* The same of an array walked by itself. */
static uintptr_t own_row_bits(const gk_nest *nest, int k, const gk_own_axes *axes) {
    uintptr_t bits = nest->data[k];
    if (axes->axis[0].stride != 1)
        return (uintptr_t)nest->size[k];
    for (int i = 1; i < axes->ndim; i++)
        bits |= (uintptr_t)(axes->axis[i].stride * nest->size[k]);
    return bits;
}

/* What the rows of the result are aligned to, in bytes of an operand, its own or those of all
   arrays together: one element, unless vectors are `wanted`, where they are short and no whole
   vectors, since most of their last ones is nothing, or where single ones are better. */
static uintptr_t strided_bits(const gk_nest *nest, const gk_row_vectors *rows, int64_t size,
                              bool wanted) {
    const bool own = wanted || are_own_rows(nest, rows, size);
    const int64_t shared = nest->ndim > 0 ? nest->shape[nest->ndim - 1] : 1;
    const int64_t length = own ? (int64_t)rows->length : shared;
    const bool whole = length * size % GK_VECTOR == 0 || length * size >= LEAST_VECTORS * GK_VECTOR;
    if (!wanted && (!whole || are_better_single(nest, size)))
        return (uintptr_t)size;
    const uintptr_t bits = own ? own_row_bits(nest, 0, &rows->array[0]) : row_bits(nest, 0);
    return bits * (uintptr_t)(size / nest->size[0]);
}

/* Vectors along the result's rows, if these lie so and `rows` tells where all arrays' elements are,
   or elements one by one. */
static gk_status choose_strided(gk_call *call, const gk_work *ready, const gk_nest *piece,
                                gk_row_vectors *rows, const gk_row **row) {
    const int64_t size = (int64_t)gk_dtype_size(ready->dtype);
    const bool known = gk_nest_row_vectors(piece, GK_VECTOR / size, rows);
    const gk_row *wanted =
        call->wanted && call->wanted->takes == GK_TAKES_LAYOUT ? call->wanted : NULL;
    const uintptr_t bits = known ? strided_bits(piece, rows, size, wanted) : (uintptr_t)size;
    const gk_wish wish = {.op = ready->op,
                          .dtype = ready->dtype,
                          .strided = true,
                          .address_bits = bits,
                          .limit = wanted};
    gk_status status = gk_row_chosen(&wish, call->backend, row, &call->error);
    if (status == GK_OK)
        call->ran = *row;
    return gk_call_blame(call, status);
}

/* Whether the result's rows are whole vectors of so many elements, and each operand's that lie side
   by side. The others' elements are found one by one. */
static bool are_vectors(const gk_nest *nest, int64_t width) {
    int last = nest->ndim - 1;
    if (nest->shape[last] % width != 0 || nest->stride[0][last] != nest->size[0])
        return false;
    for (int k = 0; k < nest->arrays; k++) {
        bool run = nest->data[k] != 0 && nest->stride[k][last] == nest->size[k];
        if (run && row_bits(nest, k) % (uintptr_t)(width * nest->size[k]) != 0)
            return false;
    }
    return true;
}

/* Whether short rows of whole words are better taken by these than by vectors along the result's
   own rows, several of which end in each. */
static bool are_better_by_words(const gk_nest *nest, const gk_row_vectors *rows, int64_t size) {
    return size < GK_WORD && are_rows_short(nest, size) && are_vectors(nest, GK_WORD / size) &&
           (size == 1 || count_found(nest, rows) > 1);
}

/* How many elements of a row a thread takes at a time where it finds each time by itself: 16 bytes
   of an operand, a word of it, one element, or 0 where the threads of a row had better share it and
   take `each` of it, or, where that is 0, vectors of `rows`. */
static int64_t lone_width(const gk_nest *nest, const gk_row_vectors *rows, int64_t size,
                          int64_t each) {
    size_t count = gk_nest_count(nest);
    if (count > MANY && are_vectors(nest, GK_VECTOR / size))
        return GK_VECTOR / size;
    bool lone = count <= LONE || gk_nest_is_lone(nest, each);
    if (each == 0)
        lone = lone || are_better_by_words(nest, rows, size);
    else
        lone = lone || (size >= GK_WORD && are_rows_short(nest, size));
    if (!lone)
        return 0;
    return count > MANY && size < GK_WORD && are_vectors(nest, GK_WORD / size) ? GK_WORD / size : 1;
}

/* Vectors or elements one by one, unless a variant was asked for; `ran` tells the row then, else it
   is NULL. */
static gk_status launch_found(gk_call *call, const gk_work *ready, const gk_nest *piece,
                              int64_t width, const gk_row **ran) {
    const int64_t size = (int64_t)gk_dtype_size(ready->dtype);
    gk_compact compact;
    gk_nest counted;
    *ran = NULL;
    if (call->wanted || width == 0 || !gk_nest_in_elements(piece, width, piece->size, &counted) ||
        !gk_nest_compact(&counted, &compact))
        return GK_OK;
    compact.width = (uint8_t)width;
    const gk_wish wish = {.op = ready->op + GK_COMPACT, .dtype = ready->dtype, .strided = true};
    gk_status status = gk_row_chosen(&wish, call->backend, ran, &call->error);
    if (status != GK_OK)
        return gk_call_blame(call, status);
    for (int k = 1; k < piece->arrays; k++)
        if (piece->data[k] == 0)
            gk_compact_number(&compact, k, ready->terms.value[k - 1]);
    int most = width * size < GK_VECTOR ? GK_LONE_ELEMENTS
               : compact.count > LONE   ? GK_LONE_VECTORS
                                        : 1;
    return gk_launch_compact(call, *ran, &compact, most);
}

/* The same of many elements of one axis more than such a kernel takes: a launch for each index
   along the shortest that is not the last one, if they are few. */
static gk_status launch_parts(gk_call *call, const gk_work *ready, const gk_nest *piece,
                              int64_t width, const gk_row **ran) {
    gk_status status = GK_OK;
    int axis = 0;
    *ran = NULL;
    for (int i = 1; i < piece->ndim - 1; i++)
        axis = piece->shape[i] < piece->shape[axis] ? i : axis;
    if (piece->shape[axis] > MOST_PARTS || gk_nest_count(piece) <= MANY)
        return GK_OK;
    for (int64_t i = 0; i < piece->shape[axis] && status == GK_OK && (i == 0 || *ran); i++) {
        gk_nest part = *piece;
        for (int k = 0; k < piece->arrays; k++)
            part.data[k] += part.data[k] == 0 ? 0 : (uintptr_t)(i * piece->stride[k][axis]);
        gk_nest_take_out(&part, axis);
        status = launch_found(call, ready, &part, width, ran);
    }
    return status;
}

static gk_status launch_lone(gk_call *call, const gk_work *ready, const gk_nest *piece,
                             int64_t width, const gk_row **ran) {
    const bool is_one_too_many = piece->ndim == GK_COMPACT_AXES(piece->arrays) + 1;
    return (is_one_too_many ? launch_parts : launch_found)(call, ready, piece, width, ran);
}

/* Whether an operand has a row that is read several times, each of them so long that the cache has
   let go of it before the next: `rows` then takes parts of it in turn. What it takes is blocks. */
static bool read_in_turn(gk_row_vectors *rows, int arrays, size_t least, int64_t width,
                         const gk_row *row, size_t *blocks) {
    const size_t block = (size_t)(row->threads * width);
    const gk_own_axes *of = NULL;
    for (int k = 1; k < arrays; k++) {
        const gk_own_axes *axes = &rows->array[k];
        const bool again = axes->ndim > 1 && axes->axis[0].stride == 1 && axes->axis[1].stride == 0;
        if (again && axes->axis[0].length.value >= least)
            of = axes;
    }
    if (!of || rows->array[0].ndim > 1)
        return false;
    const size_t length = of->axis[0].length.value;
    /* and a vector of single elements behind the last vector of all */
    rows->blocks = (uint32_t)((length + (size_t)(width * width)) / block + 1);
    rows->chunks = gk_divisor_of((uint32_t)gk_blocks(rows->blocks, GK_CHUNK_BLOCKS));
    rows->times = of->axis[1].length;
    *blocks = rows->length / length * rows->chunks.value * GK_CHUNK_BLOCKS;
    return true;
}

/* Elements of the result after which an operand comes again from its first one on, or 0. */
static uint32_t period_of(const gk_own_axes *axes) {
    const int outermost = axes->ndim - 1;
    uint32_t period = 1;
    if (outermost == 0 || axes->axis[outermost].stride != 0)
        return 0;
    for (int i = 0; i < outermost; i++)
        period *= axes->axis[i].length.value;
    return period;
}

/* Whether of some operands what is found for a vector serves several others, as of a row that is
   added to every row of an array: a thread takes those then. */
static bool take_again(gk_row_vectors *rows, int arrays, uint32_t width) {
    uint32_t longest = 0, comes_again = 0;
    for (int k = 1; k < arrays; k++) { /* what comes again sooner than another does so then, too */
        const uint32_t period = period_of(&rows->array[k]);
        longest = period > longest ? period : longest;
        comes_again |= (uint32_t)(period > 0) << (k - 1);
    }
    if (longest == 0 || rows->array[0].ndim > 1)
        return false;
    const size_t shortest = longest / gk_common_divisor(longest, width), whole = rows->vectors;
    const size_t period = (size_t)gk_parts_of(LEAST_PERIOD, (int64_t)shortest) * shortest;
    size_t again = whole / BUSY_THREADS < whole / period ? whole / BUSY_THREADS : whole / period;
    again = again < MOST_AGAIN ? again : MOST_AGAIN;
    if (again < 2)
        return false;
    const uint32_t left = rows->length % width, turn = (uint32_t)(again * period);
    rows->again = (uint32_t)again;
    rows->period = gk_divisor_of((uint32_t)period);
    rows->vectors = (uint32_t)gk_parts_of((int64_t)whole, turn) * (uint32_t)period;
    rows->count = rows->vectors + left;
    rows->in_row = gk_divisor_of(rows->count);
    rows->comes_again = comes_again;
    return true;
}

/* Vectors of `rows`, one a thread, in so many blocks; or, where that is NULL, elements of rows that
   threads share. */
static gk_status launch_rows(gk_call *call, const gk_work *ready, const gk_row *row,
                             const gk_nest *piece, const gk_layout *layout, gk_row_vectors *rows,
                             size_t blocks) {
    uintptr_t out = piece->data[0];
    gk_terms terms = gk_terms_of(ready, piece);
    if (rows)
        return gk_call_launch(call, row, blocks, (void *[]){&out, &terms, rows});
    gk_units units = gk_nest_units(piece, layout, row->tile_columns / row->threads);
    blocks = gk_blocks(gk_unit_threads(&units), row->threads);
    return gk_call_launch(call, row, blocks, (void *[]){&out, &terms, &units});
}

static gk_status launch_in_order(gk_call *call, const gk_nest *piece, const gk_layout *layout,
                                 const gk_work *ready) {
    const int64_t size = (int64_t)gk_dtype_size(ready->dtype);
    const size_t least = atomic_load(&call->engine->repeated_limit) / (size_t)size;
    const gk_row *row, *ran = NULL;
    gk_row_vectors rows;
    size_t blocks = 0;
    gk_status status = choose_strided(call, ready, piece, &rows, &row);
    if (status != GK_OK)
        return status;
    const bool wide = row->alignment == GK_VECTOR;
    if (wide)
        blocks = gk_blocks(rows.count, row->threads * (rows.straight ? GK_ROW_VECTORS : 1));
    if (!wide || !read_in_turn(&rows, piece->arrays, least, GK_VECTOR / size, row, &blocks)) {
        const int each = wide ? 0 : row->tile_columns / row->threads;
        const int64_t width = lone_width(piece, &rows, size, each);
        if (wide && size < GK_WORD && width < GK_VECTOR / size &&
            take_again(&rows, piece->arrays, (uint32_t)(GK_VECTOR / size)))
            blocks = gk_blocks(rows.count, row->threads);
        else
            status = launch_lone(call, ready, piece, width, &ran);
    }
    if (status != GK_OK || ran)
        return status;
    return launch_rows(call, ready, row, piece, layout, wide ? &rows : NULL, blocks);
}

/* By tiles what is turned, the rest in the order of the result; a profile names the tiles. */
static gk_status launch_piece(gk_call *call, const gk_nest *piece, const gk_layout *layout,
                              void *context) {
    bool launched = false;
    gk_nest rest;
    gk_status status =
        call->wanted ? GK_OK : gk_launch_turned(call, context, piece, &launched, &rest);
    if (status != GK_OK || (launched && gk_nest_count(&rest) == 0))
        return status;
    if (!launched)
        return launch_in_order(call, piece, layout, context);
    const gk_row *tiles = call->ran;
    status = gk_nest_run(call, &rest, launch_piece, context);
    call->ran = tiles;
    return status;
}

gk_status gk_launch_strided(gk_call *call, gk_work *ready, const gk_nest *nest) {
    ready->terms.repeated = 0;
    return gk_nest_run(call, nest, launch_piece, ready);
}
