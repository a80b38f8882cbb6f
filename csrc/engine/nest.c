#include "engine/nest.h"

enum {
    /* Kernels count elements in 32 bits, and gk_divisor takes 31 of them. What is cut along its
       only axis is cut at whole vectors. */
    MOST_ELEMENTS = INT32_MAX - 15,
    MOST_LANES = 5, /* of a warp, as their logarithm */
    FEW = 1 << 17,  /* elements: a device has a thread for each of twice as many at a time */
};

static int64_t magnitude(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

/* Put an axis where its stride in the first array belongs: the longest step outermost. */
static void insert_axis(gk_nest *nest, const gk_array *const *arrays, int axis) {
    int at = nest->ndim++;
    while (at > 0 && magnitude(nest->stride[0][at - 1]) < magnitude(arrays[0]->strides[axis])) {
        nest->shape[at] = nest->shape[at - 1];
        for (int k = 0; k < nest->arrays; k++)
            nest->stride[k][at] = nest->stride[k][at - 1];
        at--;
    }
    nest->shape[at] = arrays[0]->shape[axis];
    for (int k = 0; k < nest->arrays; k++)
        nest->stride[k][at] = arrays[k]->strides[axis];
}

/* Whether every array walks axis `outer` and the next one as one run. */
static bool is_one_run(const gk_nest *nest, int outer, int inner) {
    for (int k = 0; k < nest->arrays; k++)
        if (nest->stride[k][outer] != nest->stride[k][inner] * nest->shape[inner])
            return false;
    return true;
}

static void merge_axes(gk_nest *nest) {
    int last = 0;
    for (int i = 1; i < nest->ndim; i++) {
        bool merged = is_one_run(nest, last, i);
        int64_t length = merged ? nest->shape[last] * nest->shape[i] : nest->shape[i];
        last += !merged;
        nest->shape[last] = length;
        for (int k = 0; k < nest->arrays; k++)
            nest->stride[k][last] = nest->stride[k][i];
    }
    nest->ndim = nest->ndim > 0 ? last + 1 : 0;
}

void gk_nest_make(gk_nest *nest, const gk_array *const *arrays, int count) {
    nest->ndim = 0;
    nest->arrays = count;
    for (int k = 0; k < count; k++) {
        nest->data[k] = (uintptr_t)arrays[k]->data;
        nest->size[k] = (int64_t)gk_dtype_size(arrays[k]->dtype);
    }
    for (int i = 0; i < arrays[0]->ndim; i++)
        if (arrays[0]->shape[i] != 1)
            insert_axis(nest, arrays, i);
    merge_axes(nest);
}

bool gk_nest_is_run(const gk_nest *nest) {
    if (nest->ndim == 0)
        return true;
    bool run = nest->ndim == 1 && nest->stride[0][0] == nest->size[0];
    for (int k = 1; k < nest->arrays; k++)
        run = run && (nest->stride[k][0] == nest->size[k] || nest->stride[k][0] == 0);
    return run;
}

uintptr_t gk_nest_bits(const gk_nest *nest) {
    uintptr_t bits = 0;
    for (int k = 0; k < nest->arrays; k++) {
        bits |= nest->data[k];
        for (int i = 0; i < nest->ndim; i++)
            bits |= (uintptr_t)nest->stride[k][i];
    }
    return bits;
}

size_t gk_nest_count(const gk_nest *nest) {
    size_t count = 1;
    for (int i = 0; i < nest->ndim; i++)
        count *= (size_t)nest->shape[i];
    return count;
}

void gk_nest_extent(const gk_nest *nest, int array, int64_t size, uintptr_t *first,
                    uintptr_t *end) {
    *first = nest->data[array];
    *end = nest->data[array] + (uintptr_t)size;
    for (int i = 0; i < nest->ndim; i++) {
        const int64_t along = (nest->shape[i] - 1) * nest->stride[array][i];
        *(along < 0 ? first : end) += (uintptr_t)along;
    }
}

gk_divisor gk_divisor_of(uint32_t value) {
    uint32_t shift = 0;
    while (shift < 31 && ((uint32_t)1 << shift) < value)
        shift++;
    uint64_t above = ((uint64_t)1 << shift) - value;
    return (gk_divisor){value, (uint32_t)((above << 32) / value + 1), shift};
}

/* Array k of a nest by itself, its axes merged as far as it alone allows. */
static void take_alone(const gk_nest *nest, int k, gk_nest *alone) {
    alone->ndim = nest->ndim;
    alone->arrays = 1;
    alone->size[0] = nest->size[k];
    alone->data[0] = nest->data[k];
    for (int i = 0; i < nest->ndim; i++) {
        alone->shape[i] = nest->shape[i];
        alone->stride[0][i] = nest->stride[k][i];
    }
    merge_axes(alone);
}

/* False: 32 bits are too few for its offsets, or an axis. */
static bool walk_alone(const gk_nest *nest, int k, gk_own_axes *axes) {
    gk_nest alone, counted;
    uintptr_t first, end;
    take_alone(nest, k, &alone);
    if (!gk_nest_in_elements(&alone, 1, alone.size, &counted))
        return false;
    gk_nest_extent(&alone, 0, alone.size[0], &first, &end);
    const int64_t reach = (int64_t)(end - alone.data[0]) / alone.size[0];
    *axes = (gk_own_axes){.ndim = counted.ndim > 0 ? counted.ndim : 1};
    axes->reach = (int32_t)(reach < INT32_MAX ? reach : INT32_MAX);
    axes->axis[0].length = gk_divisor_of(1);
    for (int i = 0; i < counted.ndim; i++) {
        axes->axis[counted.ndim - 1 - i].length = gk_divisor_of((uint32_t)counted.shape[i]);
        axes->axis[counted.ndim - 1 - i].stride = (int32_t)counted.stride[0][i];
    }
    return true;
}

bool gk_nest_row_vectors(const gk_nest *piece, int64_t width, gk_row_vectors *rows) {
    const size_t count = gk_nest_count(piece);
    rows->straight = true;
    for (int k = 0; k < piece->arrays; k++) {
        if (!walk_alone(piece, k, &rows->array[k]))
            return false;
        rows->straight = rows->straight && rows->array[k].ndim == 1;
    }
    rows->length = rows->array[0].axis[0].length.value;
    rows->vectors = rows->length / (uint32_t)width;
    rows->again = 1;
    rows->period = gk_divisor_of(1);
    rows->comes_again = 0;
    const uint32_t in_row = rows->vectors + rows->length % (uint32_t)width;
    rows->in_row = gk_divisor_of(in_row);
    rows->count = (uint32_t)(count / rows->length * in_row);
    rows->blocks = 1;
    rows->times = rows->chunks = gk_divisor_of(1);
    return true;
}

/* As many neighbours as fill a sector or a row with one element each, so that none is without; more
   where rows are longer than what these take. */
static uint32_t lanes_for(int64_t length, int64_t size, int64_t each) {
    uint32_t lanes = 0;
    while (lanes < MOST_LANES &&
           ((((int64_t)2 << lanes) <= length && (size << lanes) < GK_SECTOR) ||
            (each << lanes) < length))
        lanes++;
    return lanes;
}

gk_units gk_nest_units(const gk_nest *piece, const gk_layout *layout, int64_t each) {
    int last = piece->ndim - 1;
    int64_t length = last < 0 ? 1 : piece->shape[last];
    uint32_t lanes = lanes_for(length, piece->size[0], each);
    gk_units units = {.layout = *layout, .count = (uint32_t)gk_nest_count(piece)};
    units.lanes = lanes;
    int64_t unit = each << units.lanes, in_row = gk_parts_of(length, unit);
    units.length = (uint32_t)length;
    units.count = (uint32_t)(units.count / length * in_row);
    if (last < 0)
        return units;
    units.layout.axis[0].length = gk_divisor_of((uint32_t)in_row);
    for (int k = 0; k < piece->arrays; k++) {
        units.step[k] = piece->stride[k][last];
        units.apart[k] = units.step[k] * ((int64_t)1 << units.lanes);
        units.layout.axis[0].stride[k] *= unit;
    }
    return units;
}

size_t gk_unit_threads(const gk_units *units) {
    return (size_t)units->count << units->lanes;
}

void gk_nest_take_out(gk_nest *nest, int axis) {
    nest->ndim--;
    for (int i = axis; i < nest->ndim; i++) {
        nest->shape[i] = nest->shape[i + 1];
        for (int k = 0; k < nest->arrays; k++)
            nest->stride[k][i] = nest->stride[k][i + 1];
    }
}

/* elements one by one -------------------------------------------------------------------------- */

/* Whether threads that share rows would have less than half of what they can take. */
static bool are_short(const gk_nest *piece, int64_t each) {
    int64_t length = piece->ndim > 0 ? piece->shape[piece->ndim - 1] : 1;
    return each > 0 && length << 1 < each << lanes_for(length, piece->size[0], each);
}

static bool fits(const gk_nest *piece) {
    for (int k = 0; k < piece->arrays; k++)
        for (int i = 0; i < piece->ndim; i++)
            if (magnitude(piece->stride[k][i]) > INT32_MAX)
                return false;
    for (int i = 1; i < piece->ndim; i++)
        if (piece->shape[i] >= GK_COMPACT_LENGTHS)
            return false;
    return piece->ndim <= GK_COMPACT_AXES(piece->arrays);
}

/* Addresses, then strides and lengths from the last axis on. */
static void write_words(const gk_nest *piece, uint32_t *word) {
    for (int k = 0; k < piece->arrays; k++) {
        *word++ = (uint32_t)piece->data[k];
        *word++ = (uint32_t)((uint64_t)piece->data[k] >> 32);
    }
    for (int i = piece->ndim - 1; i >= 0; i--) {
        /* the outermost index is what is left: nothing times a length of 0 is taken from it */
        gk_divisor length = i > 0 ? gk_divisor_of((uint32_t)piece->shape[i]) : (gk_divisor){0};
        for (int k = 0; k < piece->arrays; k++)
            *word++ = (uint32_t)piece->stride[k][i];
        if (piece->ndim - i < GK_COMPACT_AXES(piece->arrays)) {
            *word++ = gk_packed_length(length);
            *word++ = length.multiplier;
        }
    }
}

bool gk_nest_is_lone(const gk_nest *piece, int64_t each) {
    return gk_nest_count(piece) <= FEW || are_short(piece, each);
}

/* The strides of an array in elements; whether 32 bits are enough for every offset. */
static bool count_strides(const gk_nest *piece, int k, gk_nest *counted) {
    int64_t room = INT32_MAX;
    for (int i = 0; i < piece->ndim; i++) {
        int64_t stride = piece->stride[k][i] / counted->size[k], steps = piece->shape[i] - 1;
        if (steps > 0 && magnitude(stride) > room / steps)
            return false;
        room -= magnitude(stride) * steps;
        counted->stride[k][i] = stride;
    }
    return true;
}

bool gk_nest_in_elements(const gk_nest *piece, int64_t width, const int64_t *size,
                         gk_nest *counted) {
    int last = piece->ndim - 1;
    counted->ndim = piece->ndim;
    counted->arrays = piece->arrays;
    for (int i = 0; i <= last; i++)
        counted->shape[i] = i == last ? piece->shape[i] / width : piece->shape[i];
    for (int k = 0; k < piece->arrays; k++) {
        counted->size[k] = size[k];
        counted->data[k] = piece->data[k];
        if (!count_strides(piece, k, counted))
            return false;
        if (last >= 0)
            counted->stride[k][last] *= width;
    }
    return true;
}

bool gk_nest_compact(const gk_nest *piece, gk_compact *compact) {
    if (!fits(piece))
        return false;
    *compact = (gk_compact){.count = (uint32_t)gk_nest_count(piece), .ndim = (uint8_t)piece->ndim};
    write_words(piece, compact->word);
    return true;
}

gk_status gk_launch_compact(gk_call *call, const gk_row *row, gk_compact *compact, int each) {
    size_t block = (size_t)(compact->count <= FEW ? 1 : each) * (size_t)row->threads;
    void *arguments[] = {compact};
    return gk_call_launch(call, row, (compact->count + block - 1) / block, arguments);
}

/* pieces --------------------------------------------------------------------------------------- */

void gk_nest_lay_out(const gk_nest *nest, int axis, gk_layout *layout) {
    const int at = layout->ndim++;
    layout->axis[at].length = gk_divisor_of((uint32_t)nest->shape[axis]);
    for (int k = 0; k < nest->arrays; k++)
        layout->axis[at].stride[k] = nest->stride[k][axis];
}

static gk_status launch_whole(gk_call *call, const gk_nest *nest, gk_nest_launch launch,
                              void *context) {
    gk_layout layout = {.ndim = 0};
    for (int i = nest->ndim - 1; i >= 0; i--)
        gk_nest_lay_out(nest, i, &layout);
    return launch(call, nest, &layout, context);
}

/* The nest over `length` indices of the first axis from `first` on. */
static void take_slab(const gk_nest *nest, int64_t first, int64_t length, gk_nest *slab) {
    int dropped = length == 1;
    slab->ndim = nest->ndim - dropped;
    slab->arrays = nest->arrays;
    for (int i = 0; i < slab->ndim; i++)
        slab->shape[i] = nest->shape[i + dropped];
    if (!dropped)
        slab->shape[0] = length;
    for (int k = 0; k < nest->arrays; k++) {
        slab->size[k] = nest->size[k];
        slab->data[k] = nest->data[k] + (uintptr_t)(first * nest->stride[k][0]);
        for (int i = 0; i < slab->ndim; i++)
            slab->stride[k][i] = nest->stride[k][i + dropped];
    }
}

gk_status gk_nest_run(gk_call *call, const gk_nest *nest, gk_nest_launch launch, void *context) {
    int64_t count = (int64_t)gk_nest_count(nest);
    if (nest->ndim <= GK_LAYOUT_DIMENSIONS && count <= MOST_ELEMENTS)
        return launch_whole(call, nest, launch, context);
    int64_t length = MOST_ELEMENTS / (count / nest->shape[0]);
    length = nest->ndim > GK_LAYOUT_DIMENSIONS || length < 1 ? 1 : length;
    gk_status status = GK_OK;
    for (int64_t first = 0; first < nest->shape[0] && status == GK_OK; first += length) {
        gk_nest slab;
        int64_t rest = nest->shape[0] - first;
        take_slab(nest, first, rest < length ? rest : length, &slab);
        status = gk_nest_run(call, &slab, launch, context);
    }
    return status;
}
