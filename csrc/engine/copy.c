#include "engine/copy.h"

#include <stdlib.h>

#include "engine/boxes.h"
#include "engine/matrices.h"
#include "engine/matrix_axes.h"
#include "engine/nest.h"
#include "transpose/copies.h"

enum {
    MANY = 1 << 17,           /* for which a device has no thread each */
    LINE = 128,               /* bytes of a cache */
    LITTLE_COPIED = 1 << 16,  /* bytes of a run that is no whole vectors, which is as soon moved by
                                 elements */
    SHARED_ROW = 8,           /* elements of a row, or fewer */
    LEAST_RUN = 16,           /* elements in a line, of which some are read at a time */
    LONG_ROW = 256,           /* bytes of a row, in whose vectors few end, */
    LONG_ROW_OF_WORDS = 512,  /* or of words, */
    LEAST_BYTES = 1 << 19,    /* of so many in all, */
    LEAST_HALVES = 1 << 20,   /* or so many of halves, */
    LEAST_WORDS = 12 << 20,   /* or of words, */
    LONG_ROW_OF_BYTES = 192,  /* and of rows of small elements that are sooner moved so than */
    LONG_ROW_OF_HALVES = 512, /* otherwise: fitted to 5,800 copies of 4 to 300 MB */
    PART_WORDS = 64,          /* of a part whose order comes again, or more, */
    MOST_PARTS = 16,          /* that a thread has a word of, */
    BUSY_THREADS = 1 << 18,   /* and all threads that a device has to be busy with */
    FEW_RUN_BOXES = 16,       /* of a block */
    LONG_LINES = 128,         /* elements that are written side by side, or more, */
    LINES_OF_WORDS = 3,       /* and whole lines between two threads' words, */
    LINES_APART = 4,          /* or bytes or halves */
};

/* runs ----------------------------------------------------------------------------------------- */

/* Whether a copy is one of runs, which vectors move or the driver; little ones only where both are
   whole vectors. */
static bool are_runs(const gk_array *to, const gk_array *from) {
    const uintptr_t bits = (uintptr_t)to->data | (uintptr_t)from->data | gk_bytes(to);
    return gk_is_contiguous(to) && gk_is_contiguous(from) &&
           (bits % GK_VECTOR == 0 || gk_bytes(to) > LITTLE_COPIED);
}

/* By a kernel: the driver's own copies do not start under the end of the one before, and take 1.24
   times as long in graphs. They serve where there is no memory to load it. */
static gk_status copy_run(gk_call *call, const gk_array *to, const gk_array *from,
                          const gk_row **ran) {
    void *target = to->data, *source = from->data;
    size_t bytes = gk_bytes(to);
    const gk_wish wish = {.op = GK_OP_copy_run,
                          .dtype = GK_bits128,
                          .strided = true,
                          .address_bits = (uintptr_t)target | (uintptr_t)source};
    const gk_row *row = gk_row_suiting(&wish, call->backend);
    if (!row)
        return gk_call_copy_within(call, target, source, bytes);
    void *arguments[] = {&target, &source, &bytes};
    const int64_t vectors = gk_parts_of((int64_t)bytes, GK_VECTOR);
    const size_t blocks = (size_t)gk_parts_of(vectors, row->tile_columns);
    gk_status status = gk_call_launch(call, row, blocks, arguments);
    if (status == GK_MEMORY_ERROR) /* for the kernel, which is loaded when it is first wanted */
        return gk_call_copy_within(call, target, source, bytes);
    if (status == GK_OK && ran)
        *ran = row;
    return status;
}

/* elements ------------------------------------------------------------------------------------- */

/* Elements that are not aligned to their size are copied as bytes: one more axis. */
static int64_t split_into_bytes(gk_nest *nest, int64_t size) {
    nest->shape[nest->ndim] = size;
    nest->stride[GK_TO][nest->ndim] = nest->stride[GK_FROM][nest->ndim] = 1;
    nest->ndim++;
    return 1;
}

/* Runs of elements that both sides have are copied as fewer, wider ones, of up to 16 bytes. */
static int64_t join_elements(gk_nest *nest, int64_t size) {
    int last = nest->ndim - 1;
    if (last < 0 || nest->stride[GK_TO][last] != size || nest->stride[GK_FROM][last] != size)
        return size;
    nest->ndim = last;
    uintptr_t bits = gk_nest_bits(nest);
    nest->ndim = last + 1;
    for (; size < 16 && nest->shape[last] % 2 == 0 && bits % (uintptr_t)(2 * size) == 0; size *= 2)
        nest->shape[last] /= 2;
    nest->stride[GK_TO][last] = nest->stride[GK_FROM][last] = size;
    if (nest->shape[last] == 1) /* what stood side by side is one element now */
        nest->ndim--;
    return size;
}

/* The kernels that elements of a size are copied by. */
typedef struct copying {
    const gk_row *rows[2], *packed, *recurring, *long_rows,
        **ran; /* but for two they may be NULL */
    int64_t size;
} copying;

/* How many elements are read within a line of the cache before one outside of it. */
static int64_t run_in_line(const gk_nest *piece, int64_t size) {
    int64_t run = 1, extent = size;
    for (int i = piece->ndim - 1; i >= 0; i--) {
        extent += (piece->shape[i] - 1) * llabs(piece->stride[GK_FROM][i]);
        if (extent > LINE)
            return run;
        run *= piece->shape[i];
    }
    return run;
}

/* Whether a piece is written as one run that begins on what a row's kernel writes at a time. */
static bool is_run_for(const gk_nest *piece, int64_t size, const gk_row *row) {
    for (int i = piece->ndim - 1; i >= 0; size *= piece->shape[i], i--)
        if (piece->stride[GK_TO][i] != size)
            return false;
    return piece->data[GK_TO] % (uintptr_t)row->alignment == 0;
}

/* Whether there is so much that what it takes to read it counts, and not to find a thread's
   elements one after another; by themselves they are found as soon, but the less so the more axes
   there are. Fitted to 9,700 copies of 0.5 to 400 MB, each in all ways. */
static bool are_enough_packed(const gk_nest *piece, int64_t size) {
    enum { AXES = 6, UNIT = 256 << 10, NEVER = UINT16_MAX };
    /* Bytes, halves and words, in one axis, two, and so on. */
    static const uint16_t least[][AXES] = {
        {8, 8, 6, 6, 4, 4}, {NEVER, 24, 16, 12, 8, 4}, {NEVER, 12, 4, 2, 2, 2}};
    const int axes = piece->ndim < AXES ? piece->ndim : AXES;
    const uint16_t units = least[__builtin_ctz((unsigned)size)][axes > 0 ? axes - 1 : 0];
    return units < NEVER && (int64_t)gk_nest_count(piece) * size >= (int64_t)units * UNIT;
}

/* Whether what the threads of a warp read at a time, each a vector's elements on, are lines of
   their own that keep one another waiting: bytes and halves whole lines apart, words up to some
   lines. Found one by one, they would share them. Fitted to 600 copies of 2 to 30 MB, each both
   ways. */
static bool are_lines_apart(const gk_nest *piece, int64_t size) {
    const int last = piece->ndim - 1;
    if (last < 0 || piece->shape[last] < LONG_LINES)
        return false;
    const int64_t apart = llabs(piece->stride[GK_FROM][last]) * (GK_VECTOR / size);
    if (size == GK_WORD)
        return apart >= LINE && apart <= LINES_OF_WORDS * LINE;
    return apart % LINE == 0 && apart > (size == 1 ? LINE : 0) && apart <= LINES_APART * LINE;
}

/* Whether a piece has many small elements and is written as one run that begins on a vector. Not
   one that is read by short runs: what the threads of a warp read at a time is several elements
   apart, so that each would be in another one of them. Nor one of whose sectors little is read
   soon: neighbouring threads would have the fewer of them in common. */
static bool is_packed(const gk_nest *piece, const copying *how) {
    if (!how->packed || !are_enough_packed(piece, how->size) ||
        gk_bytes_soon(piece, how->size) < GK_SECTOR / 4 || are_lines_apart(piece, how->size))
        return false;
    const int64_t run = run_in_line(piece, how->size);
    return (run == 1 || run >= LEAST_RUN) && is_run_for(piece, how->size, how->packed);
}

/* How a piece is cut into parts in which the order of elements is the same: of one index along its
   outermost axis, or of so many that a part has some whole words. */
static gk_recurrence recurrence_of(const gk_nest *piece, int64_t size) {
    const int64_t inner = (int64_t)gk_nest_count(piece) / piece->shape[0], bytes = inner * size;
    int64_t wide = 1; /* indices whose elements are whole words, and begin alike in words */
    while (wide * bytes % GK_WORD != 0 || wide * piece->stride[GK_FROM][0] % GK_WORD != 0)
        wide *= 2;
    const int64_t side = gk_parts_of(PART_WORDS * GK_WORD, wide * bytes) * wide;
    const int64_t words = side * bytes / GK_WORD, parts = gk_parts_of(piece->shape[0], side);
    int64_t each = words * parts / BUSY_THREADS;
    each = each < MOST_PARTS ? each : MOST_PARTS;
    gk_recurrence how = {.count = (uint32_t)gk_nest_count(piece),
                         .each = (uint32_t)(each / GK_RECURRING_PARTS * GK_RECURRING_PARTS),
                         .words = gk_divisor_of((uint32_t)words),
                         .ndim = piece->ndim,
                         .step = side * piece->stride[GK_FROM][0]};
    for (int k = 0; k < piece->ndim; k++) {
        const int i = piece->ndim - 1 - k;
        how.axis[k].length = gk_divisor_of((uint32_t)(i > 0 ? piece->shape[i] : side));
        how.axis[k].stride = piece->stride[GK_FROM][i];
    }
    if (parts < GK_RECURRING_PARTS)
        how.each = 0;
    return how;
}

/* Whether a piece has so many small elements, each of which is read next to the one before, that
   threads have several words each. */
static bool is_recurring(const gk_nest *piece, const copying *how, gk_recurrence *recurrence) {
    if (!how->recurring || gk_nest_count(piece) <= MANY || gk_until_next(piece) > 1 ||
        !is_run_for(piece, how->size, how->recurring))
        return false;
    *recurrence = recurrence_of(piece, how->size);
    return recurrence->each > 0;
}

static gk_course course_of(const gk_nest *piece) {
    gk_course course = {.count = (uint32_t)gk_nest_count(piece), .ndim = piece->ndim};
    int64_t passed = 0; /* from the first to the last along all nearer axes */
    for (int k = 0; k < piece->ndim; k++) {
        const int i = piece->ndim - 1 - k;
        const int64_t stride = piece->stride[GK_FROM][i];
        course.axis[k].length = gk_divisor_of((uint32_t)piece->shape[i]);
        course.axis[k].stride = stride;
        course.axis[k].step = stride - passed;
        passed += (piece->shape[i] - 1) * stride;
    }
    return course;
}

static gk_status launch_packed(gk_call *call, const gk_nest *piece, const gk_row *row) {
    uintptr_t to = piece->data[GK_TO], from = piece->data[GK_FROM];
    gk_course course = course_of(piece);
    void *arguments[] = {&to, &from, &course};
    size_t blocks = (size_t)gk_parts_of(course.count, row->tile_columns);
    return gk_call_launch(call, row, blocks, arguments);
}

static gk_status launch_recurring(gk_call *call, const gk_nest *piece, const copying *how,
                                  gk_recurrence *recurrence) {
    const gk_row *row = how->recurring;
    uintptr_t to = piece->data[GK_TO], from = piece->data[GK_FROM], first, end;
    const int64_t words = recurrence->words.value; /* and as many threads for some parts */
    const int64_t of_parts = recurrence->each * words * (GK_WORD / how->size);
    const int64_t threads = gk_parts_of(recurrence->count, of_parts) * words;
    gk_nest_extent(piece, GK_FROM, how->size, &first, &end);
    void *arguments[] = {&to, &from, &end, recurrence};
    return gk_call_launch(call, row, gk_blocks((size_t)threads, row->threads), arguments);
}

/* Whether there is enough for vectors of rows, of which a nest has several. Words are as soon moved
   by themselves into rows that follow one another. */
static bool are_rows_many(const gk_nest *nest, int64_t size) {
    const int64_t bytes = (int64_t)gk_nest_count(nest) * size;
    const int last = nest->ndim - 1;
    if (size < GK_WORD)
        return bytes >= (size == 1 ? LEAST_BYTES : LEAST_HALVES);
    return bytes >= LEAST_WORDS && nest->stride[GK_TO][last - 1] != nest->shape[last] * size;
}

/* Whether both sides have rows of so many bytes, and enough of them. */
static bool are_rows_long(const gk_nest *nest, int64_t size, int64_t least) {
    const int last = nest->ndim - 1;
    return last > 0 && nest->stride[GK_TO][last] == size && nest->stride[GK_FROM][last] == size &&
           nest->shape[last] * size >= least && are_rows_many(nest, size) &&
           nest->shape[last] <= (INT32_MAX - 2 * GK_VECTOR) / size;
}

/* Then there is a kernel for them, as for all that are many. */
_Static_assert(LEAST_BYTES > MANY && LEAST_HALVES > 2 * MANY, "the kernel is chosen for these");

/* Whether these are of elements of which vectors move so many more than words or boxes of runs do
   that nothing else is asked. */
static bool are_rows_sooner(const gk_nest *nest, int64_t size) {
    return size < GK_WORD &&
           are_rows_long(nest, size, size == 1 ? LONG_ROW_OF_BYTES : LONG_ROW_OF_HALVES);
}

static gk_status launch_long_rows(gk_call *call, const gk_nest *piece, const gk_layout *layout,
                                  const copying *how) {
    const gk_row *row = how->long_rows;
    uintptr_t to = piece->data[GK_TO], from = piece->data[GK_FROM], first, end;
    uint32_t bytes = (uint32_t)(piece->shape[piece->ndim - 1] * how->size);
    const int64_t vectors = gk_parts_of(bytes, GK_VECTOR) + 1; /* as it may begin between two */
    uint32_t count =
        (uint32_t)((int64_t)gk_nest_count(piece) / piece->shape[piece->ndim - 1] * vectors);
    gk_layout walked = *layout;
    walked.axis[0].length = gk_divisor_of((uint32_t)vectors);
    walked.axis[0].stride[GK_TO] = walked.axis[0].stride[GK_FROM] = 0;
    gk_nest_extent(piece, GK_FROM, how->size, &first, &end);
    void *arguments[] = {&to, &from, &end, &bytes, &count, &walked};
    return gk_call_launch(call, row, gk_blocks(count, row->threads), arguments);
}

/* Whether threads that share rows would be ahead of those that find an element each: of words and
   more these write side by side wherever a row ends, unless rows are so short that most have an end
   in them. */
static bool are_shared(const gk_nest *piece, const copying *how) {
    const gk_row *row = how->rows[GK_LAID_OUT];
    const int64_t length = piece->ndim > 0 ? piece->shape[piece->ndim - 1] : 1;
    return !gk_nest_is_lone(piece, row->tile_columns / row->threads) &&
           (how->size < GK_WORD || length <= SHARED_ROW);
}

/* Elements that are found one by one, which lie so near one another that 32 bits count what is
 * between. */
static bool are_lone(const gk_nest *piece, const copying *how, gk_compact *compact) {
    gk_nest counted;
    return !are_shared(piece, how) &&
           gk_nest_in_elements(piece, 1, (int64_t[]){how->size, how->size}, &counted) &&
           gk_nest_compact(&counted, compact);
}

/* What a piece goes by. */
static const gk_row *row_for(const gk_nest *piece, const copying *how, gk_recurrence *recurrence) {
    const int64_t least = how->size < GK_WORD ? LONG_ROW : LONG_ROW_OF_WORDS;
    if (are_rows_sooner(piece, how->size))
        return how->long_rows;
    if (is_recurring(piece, how, recurrence))
        return how->recurring;
    if (how->long_rows && are_rows_long(piece, how->size, least))
        return how->long_rows;
    return is_packed(piece, how) ? how->packed : how->rows[GK_LAID_OUT];
}

static gk_status launch_copy(gk_call *call, const gk_nest *piece, const gk_layout *layout,
                             void *context) {
    const copying *how = context;
    gk_recurrence recurrence;
    const gk_row *row = row_for(piece, how, &recurrence);
    uintptr_t to = piece->data[GK_TO], from = piece->data[GK_FROM];
    gk_compact compact;
    if (how->ran)
        *how->ran = row;
    if (row == how->recurring)
        return launch_recurring(call, piece, how, &recurrence);
    if (row == how->packed)
        return launch_packed(call, piece, row);
    if (row == how->long_rows)
        return launch_long_rows(call, piece, layout, how);
    if (are_lone(piece, how, &compact))
        return gk_launch_compact(call, how->rows[GK_COMPACT], &compact, GK_LONE_ELEMENTS);
    gk_units units = gk_nest_units(piece, layout, row->tile_columns / row->threads);
    void *arguments[] = {&to, &from, &units};
    return gk_call_launch(call, row, gk_blocks(gk_unit_threads(&units), row->threads), arguments);
}

/* The kernel of an operation that moves elements of a size. */
static gk_status choose_copy(gk_call *call, gk_op op, int64_t size, const gk_row **row) {
    const gk_wish wish = {.op = op, .dtype = gk_bits_of((size_t)size), .strided = true};
    return gk_call_blame(call, gk_row_chosen(&wish, call->backend, row, &call->error));
}

static gk_status copy_elements(gk_call *call, gk_nest *nest, int64_t size, const gk_row **ran) {
    copying how = {.size = join_elements(nest, size), .ran = ran};
    const bool many = gk_nest_count(nest) > MANY;
    gk_status status = choose_copy(call, GK_OP_copy, how.size, &how.rows[GK_LAID_OUT]);
    if (status == GK_OK)
        status = choose_copy(call, GK_OP_copy + GK_COMPACT, how.size, &how.rows[GK_COMPACT]);
    if (status == GK_OK && many && how.size <= GK_WORD)
        status = choose_copy(call, GK_OP_copy_packed, how.size, &how.packed);
    if (status == GK_OK && many && how.size < GK_WORD)
        status = choose_copy(call, GK_OP_copy_recurring, how.size, &how.recurring);
    if (status == GK_OK && many && how.size < GK_VECTOR)
        status = choose_copy(call, GK_OP_copy_rows, GK_VECTOR, &how.long_rows);
    return status == GK_OK ? gk_nest_run(call, nest, launch_copy, &how) : status;
}

/* boxes ---------------------------------------------------------------------------------------- */

static gk_status launch_boxes(gk_call *call, const gk_nest *piece, const gk_layout *layout,
                              void *context) {
    const gk_row *row = context;
    uintptr_t to = piece->data[GK_TO], from = piece->data[GK_FROM];
    gk_boxes boxes = gk_boxes_of(piece, (int64_t)row->alignment);
    void *arguments[] = {&to, &from, &boxes};
    (void)layout;
    return gk_call_launch(call, row, gk_boxes_blocks(&boxes.grid), arguments);
}

/* Of a block, two of which a multiprocessor has, each with what the system reserves. More of them
   while a block has few boxes, so that all of what it has to wait for is soon on its way: 1.04x to
   1.1x of 20 to 80 MB, but 0.98x of 200. */
static uint32_t run_buffers(const gk_run_boxes *boxes, size_t room) {
    const size_t reserved = 1024, most = GK_RUN_BOX_SHARED(GK_RUN_BOX_BUFFERS) + reserved;
    const bool few = boxes->grid.count <= FEW_RUN_BOXES * gk_run_boxes_blocks(boxes);
    return few && room >= 2 * most ? GK_RUN_BOX_BUFFERS : 2;
}

/* Boxes of runs, those of the whole nest known. */
typedef struct running {
    const gk_row *row;
    const gk_nest *whole;
    const gk_run_boxes *boxes;
} running;

static gk_status launch_run_boxes(gk_call *call, const gk_nest *piece, const gk_layout *layout,
                                  void *context) {
    const running *how = context;
    const int64_t size = (int64_t)how->row->alignment;
    uintptr_t to = piece->data[GK_TO], from = piece->data[GK_FROM], first, end;
    gk_run_boxes boxes = piece == how->whole ? *how->boxes : gk_run_boxes_of(piece, size);
    gk_nest_extent(piece, GK_FROM, size, &first, &end);
    boxes.buffers = run_buffers(&boxes, call->backend->fetch_room);
    void *arguments[] = {&to, &from, &first, &end, &boxes};
    (void)layout;
    return gk_call_launch_sharing(call, how->row, gk_run_boxes_blocks(&boxes),
                                  GK_RUN_BOX_SHARED(boxes.buffers), 0, arguments);
}

/* The kernel of boxes of elements, or of runs, which have operations of their own. */
static gk_status choose_boxes(gk_call *call, gk_op op, int64_t size, const gk_row **row,
                              const gk_row **ran) {
    const gk_status status = choose_copy(call, op, size, row);
    if (status == GK_OK && ran)
        *ran = *row;
    return status;
}

static gk_status copy_boxes(gk_call *call, const gk_nest *nest, int64_t size, const gk_row **ran) {
    const gk_row *row;
    const gk_status status = choose_boxes(call, GK_OP_copy_boxed, size, &row, ran);
    return status == GK_OK ? gk_nest_run(call, nest, launch_boxes, (void *)(uintptr_t)row) : status;
}

static gk_status copy_run_boxes(gk_call *call, const gk_nest *nest, int64_t size,
                                const gk_runs *runs, const gk_row **ran) {
    running how = {.whole = nest, .boxes = &runs->boxes};
    const gk_status status = choose_boxes(call, GK_OP_copy_worded, size, &how.row, ran);
    return status == GK_OK ? gk_nest_run(call, nest, launch_run_boxes, &how) : status;
}

/* Of little there are none, and nothing else is asked. */
static bool are_runs_better(gk_call *call, const gk_nest *nest, int64_t size, bool are_boxed,
                            gk_runs *runs) {
    if (are_rows_sooner(nest, size))
        return false;
    const double by_runs = gk_rate_by_runs(call, nest, size, runs);
    return by_runs > 0.0 &&
           by_runs >
               gk_rate_beside_runs(call, nest, size, gk_way_without_runs(nest, size, are_boxed));
}

/* `ran`: where the call wants to know the row, and has a say in it; else NULL. */
static gk_status copy(gk_call *call, const gk_array *to, const gk_array *from, const gk_row **ran) {
    int64_t size = (int64_t)gk_dtype_size(to->dtype);
    gk_nest nest;
    bool asked_for = ran && call->wanted;
    if (gk_count(to) == 0)
        return GK_OK;
    if (are_runs(to, from) && !asked_for)
        return copy_run(call, to, from, ran);
    gk_nest_make(&nest, (const gk_array *[]){to, from}, 2);
    if (gk_nest_bits(&nest) % (uintptr_t)size != 0)
        return copy_elements(call, &nest, split_into_bytes(&nest, size), ran);
    if (!asked_for) /* the variant that was asked for is for elements of this size */
        size = join_elements(&nest, size);
    gk_runs runs = {.is_known = asked_for};
    int axis = nest.ndim > 1 ? gk_nearest_axis(&nest, GK_FROM) : nest.ndim - 1;
    gk_moved moved = GK_MOVED_BY_NONE;
    if (axis != nest.ndim - 1) {
        gk_status status = gk_copy_matrices(call, &nest, axis, size, &runs, ran, &moved);
        if (status != GK_OK || moved == GK_MOVED)
            return status;
    }
    const bool are_boxed = gk_boxes_are_worth(&nest, size, atomic_load(&call->engine->boxed_limit));
    if (moved == GK_SOONER_BY_RUNS || are_runs_better(call, &nest, size, are_boxed, &runs))
        return copy_run_boxes(call, &nest, size, &runs, ran);
    if (are_boxed)
        return copy_boxes(call, &nest, size, ran);
    return copy_elements(call, &nest, size, ran);
}

gk_status gk_copy_strided(gk_call *call, const gk_array *to, const gk_array *from) {
    return copy(call, to, from, NULL);
}

gk_status gk_copy_transposed(gk_call *call, const gk_array *to, const gk_array *from) {
    return copy(call, to, from, &call->ran);
}
