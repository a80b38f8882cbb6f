#include "base/array.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
#define GK_DESCRIBE(name, size) [GK_##name] = {#name, size},
    GK_DTYPES(GK_DESCRIBE) GK_BIT_TYPES(GK_DESCRIBE)
#undef GK_DESCRIBE
};

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

bool gk_is_addressable(const gk_array *array) {
    int64_t bytes = (int64_t)gk_dtype_size(array->dtype);
    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] == 0)
            return true;
    for (int i = 0; i < array->ndim; i++)
        if (__builtin_mul_overflow(bytes, array->shape[i], &bytes))
            return false;
    return true;
}

bool gk_same_shape(const gk_array *a, const gk_array *b) {
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) == 0;
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
