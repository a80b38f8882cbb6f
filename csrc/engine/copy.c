#include "engine/copy.h"

#include <stdlib.h>

#include "engine/boxes.h"
#include "engine/nest.h"

enum {
    TO,
    FROM,
    FULL = 35,         /* percent of its tiles that a matrix has to fill */
    FULL_RAGGED = 48,  /* the same of ragged ones, which are larger */
    RAGGED = 256,      /* of which there have to be so many, or a device is idle */
    LITTLE = 1 << 15,  /* elements that are as soon moved by themselves */
    FEW_LINES = 16,    /* that are woven, */
    MOST_LINES = 64,   /* as these are where tiles would move elements by themselves, */
    WIDEST_LINES = 80, /* bytes: of more there are tiles */
    WIDEST_WOVEN = 2,  /* bytes of an element: wider ones are as fast by themselves */
    LEAST_COLUMNS = 128,
    LEAST_MATRIX = 1024, /* bytes: a block would be idle */
};

/* The last of one axis and the rest of the nest, which is a nest for each of its indices. */
static void take_axis_out(gk_nest *nest, int axis) {
    nest->ndim--;
    for (int i = axis; i < nest->ndim; i++) {
        nest->shape[i] = nest->shape[i + 1];
        for (int k = 0; k < nest->arrays; k++)
            nest->stride[k][i] = nest->stride[k][i + 1];
    }
}

/* Matrices that are copied alike, and how: what the row's kernel takes beside the layout of the
   stack. */
typedef struct stacking {
    const gk_row *row;
    void *how;
    size_t blocks; /* of a matrix */
} stacking;

static gk_status launch_stack(gk_call *call, const gk_nest *stack, const gk_layout *layout,
                              void *context) {
    const stacking *matrix = context;
    uintptr_t to = stack->data[TO], from = stack->data[FROM];
    gk_layout matrices = *layout;
    void *arguments[] = {&to, &from, matrix->how, &matrices};
    return gk_call_launch(call, matrix->row, gk_nest_count(stack) * matrix->blocks, arguments);
}

/* The matrix of the last axis and this one, for each index of the others. */
static gk_status copy_stack(gk_call *call, gk_nest *nest, int axis, stacking *matrix) {
    take_axis_out(nest, nest->ndim - 1);
    take_axis_out(nest, axis);
    return gk_nest_run(call, nest, launch_stack, matrix);
}

/* tiles ---------------------------------------------------------------------------------------- */

/* The axis along which elements of the source lie closest. */
static int source_axis(const gk_nest *nest) {
    int closest = nest->ndim - 1;
    for (int i = 0; i < nest->ndim; i++)
        if (nest->stride[FROM][i] != 0 &&
            (nest->stride[FROM][closest] == 0 ||
             llabs(nest->stride[FROM][i]) < llabs(nest->stride[FROM][closest])))
            closest = i;
    return closest;
}

/* Whether elements lie side by side along both sides. */
static bool are_side_by_side(const gk_nest *nest, int axis, int64_t size) {
    return nest->stride[TO][nest->ndim - 1] == size && nest->stride[FROM][axis] == size;
}

/* Whether a vector of elements may be moved at once: both sides are multiples of one. Bits that no
   alignment allows where not. */
static uintptr_t tile_bits(const gk_nest *nest, int axis, int64_t size) {
    int last = nest->ndim - 1;
    uintptr_t bits = nest->data[TO] | nest->data[FROM];
    if (!are_side_by_side(nest, axis, size))
        return 1;
    for (int i = 0; i < nest->ndim; i++) {
        bits |= i == last ? 0 : (uintptr_t)nest->stride[TO][i];
        bits |= i == axis ? 0 : (uintptr_t)nest->stride[FROM][i];
    }
    return bits | (uintptr_t)(nest->shape[last] * size) | (uintptr_t)(nest->shape[axis] * size);
}

/* The row for matrices whose rows in the source run along `axis`, and in the target along the last
   one. `plain`: also one whose elements have to lie side by side. */
static gk_status choose_tiles(gk_call *call, const gk_nest *nest, int axis, int64_t size,
                              bool plain, const gk_row *wanted, const gk_row **row) {
    const gk_wish wish = {.op = GK_OP_transpose,
                          .dtype = gk_bits_of((size_t)size),
                          .strided = true,
                          .not_plain = !plain || !are_side_by_side(nest, axis, size),
                          .address_bits = tile_bits(nest, axis, size),
                          .limit = wanted};
    return gk_call_blame(call, gk_row_chosen(&wish, call->backend, row, &call->error));
}

/* Whether the matrices fill so much of their tiles, in percent. */
static bool do_fill(const gk_nest *nest, int axis, const gk_row *row, double full) {
    int64_t rows = nest->shape[nest->ndim - 1], columns = nest->shape[axis];
    int64_t down = gk_parts_of(rows, row->tile_rows) * row->tile_rows;
    int64_t across = gk_parts_of(columns, row->tile_columns) * row->tile_columns;
    return 100.0 * (double)rows * (double)columns >= full * (double)down * (double)across;
}

/* Whether ragged tiles are better than smaller ones. */
static bool are_worth_ragged(const gk_nest *nest, int axis, const gk_row *row) {
    int64_t tile = (int64_t)row->tile_rows * row->tile_columns;
    return do_fill(nest, axis, row, FULL_RAGGED) && (int64_t)gk_nest_count(nest) >= RAGGED * tile;
}

/* Whether tiles are better than an element at a time through the cache. */
static bool are_worth_tiles(const gk_nest *nest, int axis, int64_t size, const gk_row *row) {
    return gk_nest_count(nest) > LITTLE && are_side_by_side(nest, axis, size) &&
           do_fill(nest, axis, row, FULL);
}

static gk_status copy_tiles(gk_call *call, gk_nest *nest, int axis, const gk_row *row) {
    int last = nest->ndim - 1;
    gk_tiles tiles = {.rows = (uint64_t)nest->shape[last],
                      .columns = (uint64_t)nest->shape[axis],
                      .from_row = nest->stride[FROM][last],
                      .from_column = nest->stride[FROM][axis],
                      .to_row = nest->stride[TO][last],
                      .to_column = nest->stride[TO][axis]};
    int64_t down = gk_parts_of(nest->shape[last], row->tile_rows);
    int64_t across = gk_parts_of(nest->shape[axis], row->tile_columns);
    if (down * across > INT32_MAX)
        return gk_fail(&call->error, GK_VALUE_ERROR, "%s: %lld tiles are more than a grid takes",
                       call->operation, (long long)(down * across));
    tiles.in_matrix = gk_divisor_of((uint32_t)(down * across));
    tiles.down = gk_divisor_of((uint32_t)down);
    stacking matrix = {.row = row, .how = &tiles, .blocks = (size_t)(down * across)};
    return copy_stack(call, nest, axis, &matrix);
}

/* elements ------------------------------------------------------------------------------------- */

/* Elements that are not aligned to their size are copied as bytes: one more axis. */
static int64_t split_into_bytes(gk_nest *nest, int64_t size) {
    nest->shape[nest->ndim] = size;
    nest->stride[TO][nest->ndim] = nest->stride[FROM][nest->ndim] = 1;
    nest->ndim++;
    return 1;
}

/* Runs of elements that both sides have are copied as fewer, wider ones, of up to 16 bytes. */
static int64_t join_elements(gk_nest *nest, int64_t size) {
    int last = nest->ndim - 1;
    if (last < 0 || nest->stride[TO][last] != size || nest->stride[FROM][last] != size)
        return size;
    nest->ndim = last;
    uintptr_t bits = gk_nest_bits(nest);
    nest->ndim = last + 1;
    for (; size < 16 && nest->shape[last] % 2 == 0 && bits % (uintptr_t)(2 * size) == 0; size *= 2)
        nest->shape[last] /= 2;
    nest->stride[TO][last] = nest->stride[FROM][last] = size;
    if (nest->shape[last] == 1) /* what stood side by side is one element now */
        nest->ndim--;
    return size;
}

static gk_status launch_copy(gk_call *call, const gk_nest *piece, const gk_layout *layout,
                             void *context) {
    const gk_row *const *rows = context, *row = rows[GK_LAID_OUT];
    uintptr_t to = piece->data[TO], from = piece->data[FROM];
    gk_compact compact;
    if (gk_nest_is_lone(piece, row->tile_columns / row->threads) &&
        gk_nest_compact(piece, &compact))
        return gk_launch_compact(call, rows[GK_COMPACT], &compact, GK_LONE_ELEMENTS);
    gk_units units = gk_nest_units(piece, layout, row->tile_columns / row->threads, true);
    void *arguments[] = {&to, &from, &units};
    return gk_call_launch(call, row, gk_unit_blocks(&units, row->threads), arguments);
}

/* The kernel of an operation that moves elements of a size. */
static gk_status choose_copy(gk_call *call, gk_op op, int64_t size, const gk_row **row) {
    const gk_wish wish = {.op = op, .dtype = gk_bits_of((size_t)size), .strided = true};
    return gk_call_blame(call, gk_row_chosen(&wish, call->backend, row, &call->error));
}

static gk_status copy_elements(gk_call *call, gk_nest *nest, int64_t size, const gk_row **ran) {
    const gk_row *rows[2];
    size = join_elements(nest, size);
    gk_status status = choose_copy(call, GK_OP_copy, size, &rows[GK_LAID_OUT]);
    if (status == GK_OK)
        status = choose_copy(call, GK_OP_copy + GK_COMPACT, size, &rows[GK_COMPACT]);
    if (status == GK_OK && ran)
        *ran = rows[GK_LAID_OUT];
    return status == GK_OK ? gk_nest_run(call, nest, launch_copy, rows) : status;
}

/* boxes ---------------------------------------------------------------------------------------- */

static gk_status launch_boxes(gk_call *call, const gk_nest *piece, const gk_layout *layout,
                              void *context) {
    const gk_row *row = context;
    uintptr_t to = piece->data[TO], from = piece->data[FROM];
    gk_boxes boxes = gk_boxes_of(piece, (int64_t)row->alignment);
    void *arguments[] = {&to, &from, &boxes};
    (void)layout;
    return gk_call_launch(call, row, gk_boxes_blocks(&boxes), arguments);
}

static gk_status copy_boxes(gk_call *call, const gk_nest *nest, int64_t size, const gk_row **ran) {
    const gk_row *row;
    gk_status status = choose_copy(call, GK_OP_copy_boxed, size, &row);
    if (status == GK_OK && ran)
        *ran = row;
    return status == GK_OK ? gk_nest_run(call, nest, launch_boxes, (void *)(uintptr_t)row) : status;
}

/* few lines ------------------------------------------------------------------------------------ */

/* Which of `axis` and the last one is short and lies closest on one side, if the other is what its
   elements repeat along there, and lies closest on the other side; -1: none. */
static int axis_of_lines(const gk_nest *nest, int axis, int64_t size) {
    const int last = nest->ndim - 1;
    const bool weaves =
        nest->shape[last] <= MOST_LINES; /* the lines lie apart where they are read */
    const int lines = weaves ? last : axis, columns = weaves ? axis : last;
    const int woven = weaves ? TO : FROM, apart = weaves ? FROM : TO;
    const int64_t width = nest->shape[lines] * size;
    bool are = nest->stride[woven][lines] == size && nest->stride[woven][columns] == width &&
               nest->stride[apart][columns] == size && nest->shape[lines] <= MOST_LINES &&
               width <= WIDEST_LINES && nest->shape[columns] >= LEAST_COLUMNS &&
               nest->shape[columns] * width >= LEAST_MATRIX;
    return are ? lines : -1;
}

/* The lines that are better woven than copied by tiles, or -1. */
static gk_status choose_lines(gk_call *call, const gk_nest *nest, int axis, int64_t size,
                              int *lines) {
    const gk_row *tiles;
    bool may = size <= WIDEST_WOVEN && gk_nest_count(nest) > LITTLE;
    *lines = may ? axis_of_lines(nest, axis, size) : -1;
    if (*lines < 0 || nest->shape[*lines] <= FEW_LINES)
        return GK_OK;
    gk_status status = choose_tiles(call, nest, axis, size, false, NULL, &tiles);
    if (status == GK_OK && (int64_t)tiles->alignment > size)
        *lines = -1;
    return status;
}

static gk_status copy_woven(gk_call *call, gk_nest *nest, int axis, int lines, int64_t size,
                            const gk_row **ran) {
    const bool weaves = lines == nest->ndim - 1;
    const int64_t count = nest->shape[lines], align = 4 / size;
    const int64_t width = nest->shape[weaves ? axis : nest->ndim - 1];
    /* What a block has may begin within a word; all blocks begin alike in one, and have as much. */
    const int64_t most = (GK_WOVEN_BYTES - 4) / (count * size) / align * align;
    const int64_t even = gk_parts_of(width, gk_parts_of(width, most));
    const int64_t each = gk_parts_of(even, align) * align, blocks = gk_parts_of(width, each);
    gk_weaving how = {.columns = (uint64_t)width,
                      .columns_a_block = (uint32_t)each,
                      .lines = (uint32_t)count,
                      .spread = count % 2 == 0 ? GK_WOVEN_SPREAD : GK_WOVEN_DENSE,
                      .blocks = gk_divisor_of((uint32_t)blocks),
                      .weaves = weaves,
                      .pitch = nest->stride[weaves ? FROM : TO][lines]};
    stacking matrix = {.how = &how, .blocks = (size_t)blocks};
    gk_status status = choose_copy(call, GK_OP_copy_woven, size, &matrix.row);
    if (status == GK_OK && ran)
        *ran = matrix.row;
    return status == GK_OK ? copy_stack(call, nest, axis, &matrix) : status;
}

/* all ------------------------------------------------------------------------------------------ */

/* Where rows of the source do not run along the last axis but along this one: as matrices, if that
   is better than by boxes or elements; then it is `done`. */
static gk_status copy_matrices(gk_call *call, gk_nest *nest, int axis, int64_t size,
                               const gk_row **ran, bool *done) {
    const gk_row *wanted = ran ? call->wanted : NULL, *row;
    int lines = -1;
    gk_status status = wanted ? GK_OK : choose_lines(call, nest, axis, size, &lines);
    *done = status == GK_OK && lines >= 0;
    if (status != GK_OK || *done)
        return *done ? copy_woven(call, nest, axis, lines, size, ran) : status;
    status = choose_tiles(call, nest, axis, size, true, wanted, &row);
    if (status == GK_OK && !wanted && row->plain && !are_worth_ragged(nest, axis, row))
        status = choose_tiles(call, nest, axis, size, false, NULL, &row);
    *done = status == GK_OK && (wanted || are_worth_tiles(nest, axis, size, row));
    if (*done && ran)
        *ran = row;
    return *done ? copy_tiles(call, nest, axis, row) : status;
}

/* `ran`: where the call wants to know the row, and has a say in it; else NULL. */
static gk_status copy(gk_call *call, const gk_array *to, const gk_array *from, const gk_row **ran) {
    int64_t size = (int64_t)gk_dtype_size(to->dtype);
    gk_nest nest;
    bool asked_for = ran && call->wanted;
    if (gk_count(to) == 0)
        return GK_OK;
    if (gk_is_contiguous(to) && gk_is_contiguous(from) && !asked_for)
        return gk_call_copy_within(call, to->data, from->data, gk_bytes(to));
    gk_nest_make(&nest, (const gk_array *[]){to, from}, 2);
    if (gk_nest_bits(&nest) % (uintptr_t)size != 0)
        return copy_elements(call, &nest, split_into_bytes(&nest, size), ran);
    if (!asked_for) /* the variant that was asked for is for elements of this size */
        size = join_elements(&nest, size);
    int axis = nest.ndim > 1 ? source_axis(&nest) : nest.ndim - 1;
    if (axis != nest.ndim - 1) {
        bool done;
        gk_status status = copy_matrices(call, &nest, axis, size, ran, &done);
        if (status != GK_OK || done)
            return status;
    }
    if (gk_boxes_are_worth(&nest, size, atomic_load(&call->engine->boxed_limit)))
        return copy_boxes(call, &nest, size, ran);
    return copy_elements(call, &nest, size, ran);
}

gk_status gk_copy_strided(gk_call *call, const gk_array *to, const gk_array *from) {
    return copy(call, to, from, NULL);
}

gk_status gk_copy_transposed(gk_call *call, const gk_array *to, const gk_array *from) {
    return copy(call, to, from, &call->ran);
}
