#include "base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
    gk_kind kind;
} dtypes[] = {
#define GK_DESCRIBE(dtype, name, type, size, text, number, kind) [GK_##dtype] = {text, size, kind},
#define GK_DESCRIBE_BITS(dtype, size)                            [GK_##dtype] = {#dtype, size, GK_UNSIGNED},
    GK_REAL_DTYPES(GK_DESCRIBE, GK_REAL) GK_HALF_DTYPES(GK_DESCRIBE, GK_HALF)
        GK_SIGNED_DTYPES(GK_DESCRIBE, GK_SIGNED) GK_UNSIGNED_DTYPES(GK_DESCRIBE, GK_UNSIGNED)
            GK_BOOLEAN_DTYPES(GK_DESCRIBE, GK_BOOLEAN) GK_BIT_TYPES(GK_DESCRIBE_BITS)
#undef GK_DESCRIBE
#undef GK_DESCRIBE_BITS
};

void gk_list_add(gk_list *list, const char *item) {
    size_t room = sizeof list->text - list->used;
    int wrote = snprintf(list->text + list->used, room, "%s%s", list->items ? ", " : "", item);
    list->items++;
    list->used += (size_t)wrote < room ? (size_t)wrote : room - 1;
}

void gk_list_end(gk_list *list) {
    char *comma = strrchr(list->text, ',');
    char last[64];
    if (!comma || list->items < 2)
        return;
    snprintf(last, sizeof last, " and %s", comma + 2);
    size_t at = (size_t)(comma - list->text);
    snprintf(comma, sizeof list->text - at, "%s", last);
    list->used = at + strlen(comma);
}

const char *gk_dtype_name(gk_dtype dtype) {
    return dtypes[dtype].name;
}

size_t gk_dtype_size(gk_dtype dtype) {
    return dtypes[dtype].size;
}

gk_dtype gk_bits_of(size_t size) {
    switch (size) {
    case 1:
        return GK_bits8;
    case 2:
        return GK_bits16;
    case 4:
        return GK_bits32;
    case 8:
        return GK_bits64;
    default:
        return GK_bits128;
    }
}

gk_dtype gk_dtype_bits(gk_dtype dtype) {
    return gk_bits_of(dtypes[dtype].size);
}

gk_kind gk_dtype_kind(gk_dtype dtype) {
    return dtypes[dtype].kind;
}

char gk_dtype_letter(gk_dtype dtype) {
    static const char letters[] = {[GK_REAL] = 'f',
                                   [GK_HALF] = 'f',
                                   [GK_SIGNED] = 'i',
                                   [GK_UNSIGNED] = 'u',
                                   [GK_BOOLEAN] = 'b'};
    return letters[dtypes[dtype].kind];
}

bool gk_is_float(gk_dtype dtype) {
    return dtypes[dtype].kind <= GK_HALF;
}

gk_list gk_dtype_list(void) {
    gk_list list = {.text = ""};
    for (int i = 0; i < GK_DTYPE_COUNT; i++)
        gk_list_add(&list, dtypes[i].name);
    gk_list_end(&list);
    return list;
}

size_t gk_count(const gk_array *array) {
    size_t count = 1;
    for (int i = 0; i < array->ndim; i++)
        count *= (size_t)array->shape[i];
    return count;
}

size_t gk_bytes(const gk_array *array) {
    return gk_count(array) * gk_dtype_size(array->dtype);
}

bool gk_is_contiguous(const gk_array *array) {
    int64_t expected = (int64_t)gk_dtype_size(array->dtype);
    if (gk_count(array) == 0)
        return true;
    for (int i = array->ndim - 1; i >= 0; i--) {
        if (array->shape[i] != 1 && array->strides[i] != expected)
            return false;
        expected *= array->shape[i];
    }
    return true;
}

bool gk_lies_farther(const gk_array *array, int axis, int other) {
    return llabs(array->strides[axis]) > llabs(array->strides[other]);
}

void gk_order_axes(const gk_array *array, int *order) {
    for (int axis = 0; axis < array->ndim; axis++) {
        int at = axis;
        for (; at > 0 && gk_lies_farther(array, axis, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = axis;
    }
}

void gk_make_run(gk_array *array, const int *order) {
    int64_t stride = (int64_t)gk_dtype_size(array->dtype);
    for (int i = array->ndim - 1; i >= 0; i--) {
        array->strides[order[i]] = stride;
        stride *= array->shape[order[i]];
    }
}

bool gk_as_lines(const gk_array *array, gk_lines *lines) {
    int64_t next =
        (int64_t)gk_dtype_size(array->dtype); /* from an element or row to its neighbour */
    int i = array->ndim - 1;
    *lines = (gk_lines){.count = 1};
    for (; i >= 0 && (array->shape[i] == 1 || array->strides[i] == next); i--)
        next *= array->shape[i];
    lines->bytes = (size_t)next;
    for (next = 0; i >= 0; i--) {
        if (array->shape[i] == 1)
            continue;
        if (lines->count == 1)
            lines->apart = (size_t)(next = array->strides[i]);
        if (array->strides[i] != next || next < (int64_t)lines->bytes)
            return false;
        lines->count *= (size_t)array->shape[i];
        next *= array->shape[i];
    }
    return true;
}

bool gk_repeats_elements(const gk_array *array) {
    if (gk_count(array) == 0)
        return false;
    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] > 1 && array->strides[i] == 0)
            return true;
    return false;
}

bool gk_lies_by_columns(const gk_array *array) {
    int last = array->ndim - 1;
    if (last < 1 || array->shape[last] <= 1 || array->shape[last - 1] <= 1)
        return false;
    int64_t down = array->strides[last - 1], across = array->strides[last];
    return down != 0 && llabs(down) < llabs(across);
}

void gk_exchange_last(gk_array *array) {
    int last = array->ndim - 1;
    int64_t length = array->shape[last], stride = array->strides[last];
    array->shape[last] = array->shape[last - 1];
    array->strides[last] = array->strides[last - 1];
    array->shape[last - 1] = length;
    array->strides[last - 1] = stride;
}

bool gk_is_addressable(const gk_array *array) {
    int64_t bytes = (int64_t)gk_dtype_size(array->dtype);
    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] != 0 && __builtin_mul_overflow(bytes, array->shape[i], &bytes))
            return false;
    return true;
}

bool gk_same_shape(const gk_array *a, const gk_array *b) {
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) == 0;
}

bool gk_is_same_view(const gk_array *a, const gk_array *b) {
    bool same = a->data == b->data && a->place == b->place && a->dtype == b->dtype &&
                a->swapped == b->swapped && gk_same_shape(a, b);
    for (int i = 0; i < a->ndim && same; i++)
        same = a->shape[i] == 1 || a->strides[i] == b->strides[i];
    return same;
}

void gk_clear_view(gk_array *array) {
    memset(array, 0, offsetof(gk_array, shape));
}

void gk_copy_view(gk_array *to, const gk_array *from) {
    memcpy(to, from, offsetof(gk_array, shape));
    for (int i = 0; i < from->ndim; i++) {
        to->shape[i] = from->shape[i];
        to->strides[i] = from->strides[i];
    }
}

void gk_describe_like(gk_array *to, const gk_array *like) {
    to->dtype = like->dtype;
    to->ndim = like->ndim;
    for (int i = 0; i < like->ndim; i++)
        to->shape[i] = like->shape[i];
}

void gk_append_axis(gk_array *array, int64_t length, int64_t stride) {
    array->shape[array->ndim] = length;
    array->strides[array->ndim++] = stride;
}

void gk_make_contiguous(gk_array *array) {
    int64_t stride = (int64_t)gk_dtype_size(array->dtype);
    for (int i = array->ndim - 1; i >= 0; i--) {
        array->strides[i] = stride;
        stride *= array->shape[i];
    }
}

bool gk_extent(const gk_array *array, uintptr_t *first, uintptr_t *end) {
    int64_t low = 0, high = (int64_t)gk_dtype_size(array->dtype), reach;
    for (int i = 0; i < array->ndim; i++) {
        int64_t *side = array->strides[i] < 0 ? &low : &high;
        if (__builtin_mul_overflow(array->shape[i] - 1, array->strides[i], &reach) ||
            __builtin_add_overflow(*side, reach, side))
            return false;
    }
    *first = (uintptr_t)array->data + (uintptr_t)low;
    *end = (uintptr_t)array->data + (uintptr_t)high;
    return *first <= (uintptr_t)array->data && *end >= (uintptr_t)array->data;
}

bool gk_overlaps(const gk_array *a, const gk_array *b) {
    uintptr_t a_first, a_end, b_first, b_end;
    if (a->place != b->place || gk_count(a) == 0 || gk_count(b) == 0)
        return false;
    return !gk_extent(a, &a_first, &a_end) || !gk_extent(b, &b_first, &b_end) ||
           (a_first < b_end && b_first < a_end);
}

static gk_text shape_text(const gk_array *array, const char *comma) {
    gk_text shape = {"("};
    size_t used = 1;
    for (int i = 0; i < array->ndim && used < sizeof shape.text; i++) {
        const char *separator = array->ndim == 1 ? "," : i + 1 < array->ndim ? comma : "";
        used += (size_t)snprintf(shape.text + used, sizeof shape.text - used, "%lld%s",
                                 (long long)array->shape[i], separator);
    }
    if (used < sizeof shape.text)
        snprintf(shape.text + used, sizeof shape.text - used, ")");
    return shape;
}

gk_text gk_shape_text(const gk_array *array) {
    return shape_text(array, ", ");
}

gk_text gk_short_shape_text(const gk_array *array) {
    return shape_text(array, ",");
}
