#include "engine/matrices.h"

#include <math.h>
#include <stdlib.h>

#include "engine/boxes.h"
#include "engine/matrix_axes.h"
#include "engine/nest.h"
#include "engine/rates.h"
#include "transpose/copies.h"

enum {
    RAGGED = 2 << 20,      /* bytes that there have to be, or tiles of them leave a device idle */
    FEW_TILES = 100,       /* that leave it idle, */
    LARGE_TILE = 32768,    /* bytes: of tiles of so many */
    FEW_LARGE_TILES = 528, /* are few */
    UNCACHED = 32 << 20,   /* bytes, whose sectors leave the cache before all parts of them came */
    LITTLE_LINES = 8,      /* times the limit of tiles is as soon moved without woven lines, */
    LITTLE_HALVES = 40,    /* and so many times where these are halves */
    FEW_LINES = 16,        /* that are woven, */
    MOST_LINES = 64,       /* as these are where tiles would move elements by themselves, */
    WIDEST_LINES = 80,     /* bytes: of more there are tiles */
    WIDEST_WOVEN = 4,      /* bytes of an element: wider ones are as fast by themselves */
    LEAST_COLUMNS = 128,
    LEAST_MATRIX = 8192, /* bytes: of less a block has little */
    LITTLE = 2,          /* of the limit of boxes, of which boxes of runs are no better, */
    LITTLE_WORDS = 4,    /* and as little where these are words, */
    LONG_ROW = 64,       /* elements, which are as soon moved along both sides, */
    LONG_BYTES = 2048,   /* and so many where these are bytes */
    LATER = 32,          /* elements, after which those of a sector are read later */
};

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
    uintptr_t to = stack->data[GK_TO], from = stack->data[GK_FROM];
    gk_layout matrices = *layout;
    void *arguments[] = {&to, &from, matrix->how, &matrices};
    return gk_call_launch(call, matrix->row, gk_nest_count(stack) * matrix->blocks, arguments);
}

/* The matrix of the last axis and this one, for each index of the others. */
static gk_status copy_stack(gk_call *call, gk_nest *nest, int axis, stacking *matrix) {
    gk_nest_take_out(nest, nest->ndim - 1);
    gk_nest_take_out(nest, axis);
    return gk_nest_run(call, nest, launch_stack, matrix);
}

/* tiles ---------------------------------------------------------------------------------------- */

/* Whether elements lie so close along both sides that neighbours share what memory moves. */
static bool are_near(const gk_nest *nest, int axis) {
    return llabs(nest->stride[GK_TO][nest->ndim - 1]) <= GK_NEAR &&
           llabs(nest->stride[GK_FROM][axis]) <= GK_NEAR;
}

/* Whether elements lie side by side along both sides. */
static bool are_side_by_side(const gk_nest *nest, int axis, int64_t size) {
    return nest->stride[GK_TO][nest->ndim - 1] == size && nest->stride[GK_FROM][axis] == size;
}

/* Whether all rows that are written begin and end with a sector of memory. */
static bool are_on_sectors(const gk_nest *nest, int64_t size) {
    const int last = nest->ndim - 1;
    uintptr_t bits = nest->data[GK_TO] | (uintptr_t)(nest->shape[last] * size);
    for (int i = 0; i < last; i++)
        bits |= (uintptr_t)nest->stride[GK_TO][i];
    return bits % GK_SECTOR == 0;
}

/* Whether a vector of elements may be moved at once: both sides are multiples of one. Bits that no
   alignment allows where not. */
static uintptr_t tile_bits(const gk_nest *nest, int axis, int64_t size) {
    int last = nest->ndim - 1;
    uintptr_t bits = nest->data[GK_TO] | nest->data[GK_FROM];
    if (!are_side_by_side(nest, axis, size))
        return 1;
    for (int i = 0; i < nest->ndim; i++) {
        bits |= i == last ? 0 : (uintptr_t)nest->stride[GK_TO][i];
        bits |= i == axis ? 0 : (uintptr_t)nest->stride[GK_FROM][i];
    }
    return bits | (uintptr_t)(nest->shape[last] * size) | (uintptr_t)(nest->shape[axis] * size);
}

/* The row whose accesses such bits allow. `plain`: elements lie side by side on both sides. */
static gk_status choose_tiles(gk_call *call, int64_t size, uintptr_t bits, bool plain,
                              const gk_row *wanted, const gk_row **row) {
    const gk_wish wish = {.op = GK_OP_transpose,
                          .dtype = gk_bits_of((size_t)size),
                          .strided = true,
                          .not_plain = !plain,
                          .address_bits = bits,
                          .limit = wanted};
    return gk_call_blame(call, gk_row_chosen(&wish, call->backend, row, &call->error));
}

/* Where there are few tiles, those of the last row before that has smaller ones, of halves and
   words and what is less aligned: of bytes in words they are slower. */
static const gk_row *of_many_tiles(const gk_call *call, const gk_nest *nest, int64_t size,
                                   const gk_row *row, double filled) {
    const size_t area = (size_t)row->tile_rows * (size_t)row->tile_columns;
    const size_t most = area * (size_t)size >= LARGE_TILE ? FEW_LARGE_TILES : FEW_TILES;
    if ((size < GK_WORD && row->alignment == GK_WORD) || size > GK_WORD ||
        (double)gk_nest_count(nest) > filled * (double)(most * area))
        return row;
    for (const gk_row *other = row - 1; other->op == row->op; other--)
        if (other->dtype == row->dtype && !other->plain && !other->named &&
            (size_t)other->tile_rows * (size_t)other->tile_columns < area)
            return gk_row_is_ready(other, call->backend) ? other : row;
    return row;
}

/* Whether there is so much that elements by themselves are not as soon through with it as tiles: of
   less than words it is their number that counts. */
static bool are_enough_for_tiles(gk_call *call, const gk_nest *nest, int64_t size) {
    const size_t each = size > GK_WORD ? (size_t)size : GK_WORD;
    return gk_nest_count(nest) * each > atomic_load(&call->engine->tiled_limit);
}

/* How a matrix whose rows run along these axes is cut into tiles of the row. */
static gk_status cut_into_tiles(gk_call *call, const gk_row *row, gk_tiles *tiles) {
    int64_t down = gk_parts_of((int64_t)tiles->rows, row->tile_rows);
    int64_t across = gk_parts_of((int64_t)tiles->columns, row->tile_columns);
    if (down * across > INT32_MAX)
        return gk_fail(&call->error, GK_VALUE_ERROR, "%s: %lld tiles are more than a grid takes",
                       call->operation, (long long)(down * across));
    tiles->in_matrix = gk_divisor_of((uint32_t)(down * across));
    tiles->down = gk_divisor_of((uint32_t)down);
    return GK_OK;
}

static gk_status copy_tiles(gk_call *call, gk_nest *nest, int axis, const gk_row *row) {
    int last = nest->ndim - 1;
    gk_tiles tiles = {.rows = (uint64_t)nest->shape[last],
                      .columns = (uint64_t)nest->shape[axis],
                      .from_row = nest->stride[GK_FROM][last],
                      .from_column = nest->stride[GK_FROM][axis],
                      .to_row = nest->stride[GK_TO][last],
                      .to_column = nest->stride[GK_TO][axis]};
    gk_status status = cut_into_tiles(call, row, &tiles);
    stacking matrix = {.row = row, .how = &tiles, .blocks = tiles.in_matrix.value};
    return status == GK_OK ? copy_stack(call, nest, axis, &matrix) : status;
}

/* tiles of several axes ------------------------------------------------------------------------ */

/* Whether a device is busy with so many ragged tiles, and they can be counted. */
static bool are_enough(const gk_nest *nest, int64_t size, const gk_matrix_axes *of) {
    return of->written.length <= INT32_MAX && of->read.length <= INT32_MAX &&
           gk_nest_count(nest) * (size_t)size >= RAGGED;
}

/* Whether lines of both are a step apart. */
static bool are_even(const gk_matrix_axes *of) {
    return of->written.count == 1 && of->read.count == 1;
}

/* Where its parts begin in the other array. */
static gk_chain steps_of(const gk_nest *nest, int array, const gk_run_axes *of) {
    gk_chain steps;
    for (int k = 0; k < GK_CHAIN_AXES; k++) {
        const int i = k - (GK_CHAIN_AXES - of->count), axis = i < 0 ? 0 : of->axis[i];
        steps.step[k] = i < 0 ? 0 : nest->stride[array][axis];
        if (k < GK_CHAIN_AXES - 1)
            steps.length[k] = gk_divisor_of(i < 0 ? 1 : (uint32_t)nest->shape[axis]);
    }
    return steps;
}

static gk_status copy_ragged(gk_call *call, gk_nest *nest, const gk_matrix_axes *of,
                             const gk_row *row) {
    gk_chain_tiles how = {
        .tiles = {.rows = (uint64_t)of->written.length, .columns = (uint64_t)of->read.length},
        .rows = steps_of(nest, GK_FROM, &of->written),
        .columns = steps_of(nest, GK_TO, &of->read),
        .is_even = are_even(of)};
    if (of->written.length > INT32_MAX || of->read.length > INT32_MAX)
        return gk_fail(&call->error, GK_VALUE_ERROR,
                       "%s: a matrix of %lld x %lld elements is more than variant '%s' takes",
                       call->operation, (long long)of->read.length, (long long)of->written.length,
                       row->variant);
    gk_nest_extent(nest, GK_FROM, (int64_t)row->alignment, &how.first, &how.end);
    gk_status status = cut_into_tiles(call, row, &how.tiles);
    stacking matrix = {.row = row, .how = &how, .blocks = how.tiles.in_matrix.value};
    for (int i = nest->ndim - 1; i >= 0; i--)
        if (gk_has_axis(&of->written, i) || gk_has_axis(&of->read, i))
            gk_nest_take_out(nest, i);
    return status == GK_OK ? gk_nest_run(call, nest, launch_stack, &matrix) : status;
}

/* few lines ------------------------------------------------------------------------------------ */

/* Which of `axis` and the last one is short and lies closest on one side, if the other is what its
   elements repeat along there, and lies closest on the other side; -1: none. */
static int axis_of_lines(const gk_nest *nest, int axis, int64_t size) {
    const int last = nest->ndim - 1;
    const bool weaves =
        nest->shape[last] <= MOST_LINES; /* the lines lie apart where they are read */
    const int lines = weaves ? last : axis, columns = weaves ? axis : last;
    const int woven = weaves ? GK_TO : GK_FROM, apart = weaves ? GK_FROM : GK_TO;
    const int64_t width = nest->shape[lines] * size;
    bool are = nest->stride[woven][lines] == size && nest->stride[woven][columns] == width &&
               nest->stride[apart][columns] == size && nest->shape[lines] <= MOST_LINES &&
               width <= WIDEST_LINES && nest->shape[columns] >= LEAST_COLUMNS &&
               nest->shape[columns] * width >= LEAST_MATRIX;
    return are ? lines : -1;
}

/* What both sides are multiples of: of the line that is woven and of those that lie apart. */
static uintptr_t bits_of_lines(const gk_nest *nest, int axis, int lines) {
    const int last = nest->ndim - 1, woven = lines == last ? GK_TO : GK_FROM;
    uintptr_t bits = nest->data[GK_TO] | nest->data[GK_FROM];
    for (int k = 0; k < nest->arrays; k++)
        for (int i = 0; i < nest->ndim; i++)
            bits |= (i == lines && k != woven) || (i != axis && i != last)
                        ? (uintptr_t)nest->stride[k][i]
                        : 0;
    return bits;
}

/* The lines that are better woven than copied by tiles, and how; NULL: there are none. */
static gk_status choose_lines(gk_call *call, const gk_nest *nest, int axis, int64_t size,
                              int *lines, const gk_row **row) {
    const gk_row *tiles;
    bool may = size <= WIDEST_WOVEN && gk_nest_count(nest) * (size_t)size >
                                           LITTLE_LINES * atomic_load(&call->engine->tiled_limit);
    *lines = may ? axis_of_lines(nest, axis, size) : -1;
    *row = NULL;
    if (*lines < 0)
        return GK_OK;
    const bool few = nest->shape[*lines] <= GK_VECTOR_LINES;
    const gk_wish wish = {.op = GK_OP_copy_woven,
                          .dtype = gk_bits_of((size_t)size),
                          .strided = true,
                          .address_bits =
                              few ? bits_of_lines(nest, axis, *lines) : (uintptr_t)size};
    *row = gk_row_suiting(&wish, call->backend);
    if (nest->shape[*lines] <= FEW_LINES)
        return GK_OK;
    gk_status status = choose_tiles(call, size, tile_bits(nest, axis, size), false, NULL, &tiles);
    if (status == GK_OK && (int64_t)tiles->alignment > size)
        *row = NULL;
    return status;
}

/* Whether lines of halves that are woven by words are so few that the cache still has them when
   they are read again: what is written side by side is sooner found element by element. */
static bool are_sooner_found(gk_call *call, const gk_nest *nest, int lines, const gk_row *row) {
    const size_t size = (size_t)row->alignment, limit = atomic_load(&call->engine->tiled_limit);
    return size == 2 && lines == nest->ndim - 1 &&
           gk_nest_count(nest) * size < LITTLE_HALVES * limit;
}

/* Blocks of a woven matrix, and what each has. What it has may begin within a word; all begin alike
   in one, and have as much. */
static int64_t cut_woven(gk_weaving *how, int64_t size, const gk_row *row) {
    const int64_t columns = (int64_t)how->columns, align = GK_WORD / size;
    if (row->alignment > GK_WORD)
        return columns / row->tile_columns + 1;
    const int64_t most = (GK_WOVEN_BYTES - GK_WORD) / (how->lines * size) / align * align;
    const int64_t even = gk_parts_of(columns, gk_parts_of(columns, most));
    how->columns_a_block = (uint32_t)(gk_parts_of(even, align) * align);
    return gk_parts_of(columns, how->columns_a_block);
}

static gk_status copy_woven(gk_call *call, gk_nest *nest, int axis, int lines, int64_t size,
                            const gk_row *row) {
    const bool weaves = lines == nest->ndim - 1;
    const int64_t count = nest->shape[lines];
    gk_weaving how = {.columns = (uint64_t)nest->shape[weaves ? axis : nest->ndim - 1],
                      .lines = (uint32_t)count,
                      .spread = count % 2 == 0 ? GK_WOVEN_SPREAD : GK_WOVEN_DENSE,
                      .weaves = weaves,
                      .pitch = nest->stride[weaves ? GK_FROM : GK_TO][lines]};
    const int64_t blocks = cut_woven(&how, size, row);
    how.blocks = gk_divisor_of((uint32_t)blocks);
    stacking matrix = {.row = row, .how = &how, .blocks = (size_t)blocks};
    return copy_stack(call, nest, axis, &matrix);
}

/* all ------------------------------------------------------------------------------------------ */

static double in_cache(gk_call *call, const gk_nest *nest, int64_t size, gk_without_runs way) {
    const double limit = (double)atomic_load(&call->engine->boxed_limit);
    return gk_rate_in_cache(size, way, (double)gk_nest_count(nest) * (double)size / limit);
}

/* Whether the cache holds both sides, whatever else is read and written. */
static bool is_cached(gk_call *call, const gk_nest *nest, int64_t size) {
    return gk_nest_count(nest) * (size_t)size < atomic_load(&call->engine->boxed_limit) / 2;
}

double gk_rate_beside_runs(gk_call *call, const gk_nest *nest, int64_t size, gk_without_runs way) {
    const double bytes = (double)gk_nest_count(nest) * (double)size;
    if (way > GK_BY_BOXES && is_cached(call, nest, size))
        return gk_rate_of_cached_elements(size, way, bytes);
    return gk_rate_without_runs(size, way) * in_cache(call, nest, size, way);
}

/* Little is sooner through by other ways than by boxes of runs, since what a thread does in a box
   takes time to find out, and of long rows that are the same on both sides there is nothing to
   change places. */
static double rate_of_runs(gk_call *call, const gk_nest *nest, int64_t size, gk_run_boxes *boxes) {
    const size_t limit = atomic_load(&call->engine->boxed_limit);
    const size_t least = size == GK_WORD ? limit / LITTLE_WORDS : limit / LITTLE;
    const int last = nest->ndim - 1;
    const int64_t longest = size == 1 ? LONG_BYTES : LONG_ROW;
    if (last < 1 || (nest->stride[GK_FROM][last] == size && nest->shape[last] >= longest) ||
        gk_nest_count(nest) * (size_t)size < least)
        return 0.0;
    return gk_rate_of_run_boxes(nest, size, boxes) * in_cache(call, nest, size, GK_BY_BOXES);
}

gk_without_runs gk_way_without_runs(const gk_nest *nest, int64_t size, bool are_boxed) {
    const int64_t soon = gk_bytes_soon(nest, size), until = gk_until_next(nest);
    const int64_t quarter = GK_SECTOR / 4, half = GK_SECTOR / 2, all = GK_SECTOR - GK_WORD;
    if (are_boxed)
        return GK_BY_BOXES;
    if (soon >= all)
        return until >= LATER ? GK_ALL_LATER : until > 1 ? GK_ALL_SOON : GK_ALL_NEXT;
    if (soon >= quarter && soon > size)
        return soon >= half ? GK_HALF_SOON : GK_QUARTER_SOON;
    return until >= GK_SOON ? GK_BY_FAR_ELEMENTS : GK_FEW_SOON;
}

/* What is moved a second without tiles: what the cache holds is too little for boxes. */
static double rate_without_tiles(gk_call *call, const gk_nest *nest, int64_t size) {
    if (is_cached(call, nest, size))
        return gk_rate_beside_runs(call, nest, size, gk_way_without_runs(nest, size, false));
    return gk_boxes_are_worth(nest, size, atomic_load(&call->engine->boxed_limit))
               ? gk_rate_of_boxes(size)
               : gk_rate_of_elements(size, gk_until_next(nest) >= GK_SOON);
}

double gk_rate_by_runs(gk_call *call, const gk_nest *nest, int64_t size, gk_runs *runs) {
    if (!runs->is_known)
        runs->rate = rate_of_runs(call, nest, size, &runs->boxes);
    runs->is_known = true;
    return runs->rate;
}

/* What tiles move a second that are filled so far; `parts`: of sectors, which they write. */
static double rate_of_tiles(gk_call *call, const gk_nest *nest, int64_t size, const gk_row *row,
                            double filled, bool parts) {
    const double bytes = (double)gk_nest_count(nest) * (double)size;
    return is_cached(call, nest, size) ? gk_rate_of_cached_tiles(row, size, filled, bytes)
                                       : gk_rate_of_tiles(row, size, filled, parts);
}

/* The same of ragged ones; `even`: lines are a step apart. */
static double rate_of_ragged(gk_call *call, const gk_nest *nest, int64_t size, const gk_row *row,
                             double filled, bool even) {
    const double bytes = (double)gk_nest_count(nest) * (double)size;
    return is_cached(call, nest, size) ? gk_rate_of_cached_ragged(row, size, filled, bytes)
                                       : gk_rate_of_ragged(size, filled, even);
}

/* The tiles that are better than boxes and single elements, if boxes of runs are not better still;
   then all is moved by them. */
static gk_status choose_matrices(gk_call *call, const gk_nest *nest, int axis, int64_t size,
                                 const gk_matrix_axes *of, gk_runs *runs, const gk_row **row,
                                 gk_moved *moved) {
    const gk_row *tiles = NULL, *ragged = NULL;
    *row = NULL;
    *moved = GK_MOVED_BY_NONE;
    if (!are_enough_for_tiles(call, nest, size) || !are_near(nest, axis))
        return GK_OK;
    gk_status status = choose_tiles(call, size, tile_bits(nest, axis, size), false, NULL, &tiles);
    if (status == GK_OK && size <= GK_WORD && are_side_by_side(nest, axis, size))
        status = choose_tiles(call, size, (uintptr_t)size, true, NULL, &ragged);
    if (status != GK_OK)
        return status;
    const int64_t rows = nest->shape[nest->ndim - 1], columns = nest->shape[axis];
    const double filled = gk_filled(rows, columns, tiles);
    const double by_ragged = ragged ? gk_filled(of->written.length, of->read.length, ragged) : 0;
    const size_t bytes = gk_nest_count(nest) * (size_t)size;
    const bool may_be_ragged = ragged && are_enough(nest, size, of);
    const bool parts = may_be_ragged && bytes >= UNCACHED && !are_on_sectors(nest, size);
    const double of_tiles = rate_of_tiles(call, nest, size, tiles, filled, parts);
    const double of_ragged =
        may_be_ragged ? rate_of_ragged(call, nest, size, ragged, by_ragged, are_even(of)) : 0.0;
    const double of_memory = gk_rate_of_ragged_beside_runs(size, by_ragged, are_even(of));
    const double of_far = bytes >= UNCACHED && of_memory < of_ragged ? of_memory : of_ragged;
    if (fmax(of_tiles, of_ragged) < rate_without_tiles(call, nest, size))
        return GK_OK;
    const bool is_ragged = of_tiles < of_far;
    const double rate = is_ragged ? of_far : of_tiles;
    *moved = rate < GK_BEST_OF_RUNS && rate < gk_rate_by_runs(call, nest, size, runs)
                 ? GK_SOONER_BY_RUNS
                 : GK_MOVED;
    *row = is_ragged ? ragged : of_many_tiles(call, nest, size, tiles, filled);
    return GK_OK;
}

/* Whether lines that are woven by words are better left to elements, or to boxes of runs. */
static gk_moved is_left(gk_call *call, const gk_nest *nest, int lines, gk_runs *runs,
                        const gk_row *woven) {
    const int64_t size = (int64_t)woven->alignment;
    if (size >= GK_VECTOR)
        return GK_MOVED;
    if (are_sooner_found(call, nest, lines, woven))
        return GK_MOVED_BY_NONE;
    const double by_weaving = gk_rate_beside_runs(call, nest, size, GK_BY_WEAVING);
    return gk_rate_by_runs(call, nest, size, runs) > by_weaving ? GK_SOONER_BY_RUNS : GK_MOVED;
}

gk_status gk_copy_matrices(gk_call *call, gk_nest *nest, int axis, int64_t size, gk_runs *runs,
                           const gk_row **ran, gk_moved *moved) {
    const gk_row *wanted = ran ? call->wanted : NULL, *woven = NULL, *row = NULL;
    const gk_matrix_axes of = gk_matrix_axes_along(nest, GK_FROM, axis);
    int lines = -1;
    gk_status status = GK_OK;
    if (wanted)
        status = choose_tiles(call, size, tile_bits(nest, axis, size),
                              are_side_by_side(nest, axis, size), wanted, &row);
    else
        status = choose_lines(call, nest, axis, size, &lines, &woven);
    *moved = woven ? is_left(call, nest, lines, runs, woven) : GK_MOVED;
    if (status == GK_OK && !wanted && !woven)
        status = choose_matrices(call, nest, axis, size, &of, runs, &row, moved);
    if (status != GK_OK || *moved != GK_MOVED)
        return status;
    if (ran)
        *ran = woven ? woven : row;
    if (woven)
        return copy_woven(call, nest, axis, lines, size, woven);
    return row->plain ? copy_ragged(call, nest, &of, row) : copy_tiles(call, nest, axis, row);
}
