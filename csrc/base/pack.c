#include "base/pack.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* How a run is copied: memcpy, or past the caches, after which the fence stands before anybody is
 * told that it is there. */
typedef void copier(char *to, const char *from, size_t bytes);

static void copy_plainly(char *to, const char *from, size_t bytes) {
    memcpy(to, from, bytes);
}

#ifdef __SSE2__
enum { LINE = 64 }; /* bytes of a cache */

static void copy_past_caches(char *to, const char *from, size_t bytes) {
    size_t start = -(uintptr_t)to % LINE, end;
    start = start < bytes ? start : bytes;
    end = start + (bytes - start) / LINE * LINE;
    memcpy(to, from, start);
    for (size_t i = start; i < end; i += LINE) {
        __m128i part[LINE / sizeof(__m128i)];
        memcpy(part, from + i, LINE);
        for (size_t k = 0; k < LINE / sizeof *part; k++)
            _mm_stream_si128((__m128i *)(void *)(to + i) + k, part[k]);
    }
    memcpy(to + end, from + end, bytes - end);
}

static void fence(void) {
    _mm_sfence();
}
#else
#define copy_past_caches copy_plainly

static void fence(void) {
}
#endif

/* A loop a size of element, so that each copy is one move; memcpy, since the array's side may be
   unaligned. */
#define GK_COPY_RUN(bytes)                                                                         \
    for (size_t i = 0; i < count; i++)                                                             \
        memcpy(to + (ptrdiff_t)i * to_stride, from + (ptrdiff_t)i * from_stride, bytes);           \
    break

static void copy_run(char *to, ptrdiff_t to_stride, const char *from, ptrdiff_t from_stride,
                     size_t count, size_t size, copier *copy) {
    if (to_stride == (ptrdiff_t)size && from_stride == (ptrdiff_t)size) {
        copy(to, from, count * size);
        return;
    }
    switch (size) {
    case 1:
        GK_COPY_RUN(1);
    case 2:
        GK_COPY_RUN(2);
    case 4:
        GK_COPY_RUN(4);
    default:
        GK_COPY_RUN(8);
    }
}

static void swap_bytes(char *packed, size_t count, size_t size) {
    for (size_t i = 0; i < count; i++, packed += size) {
        uint16_t two;
        uint32_t four;
        uint64_t eight;
        switch (size) {
        case 2:
            memcpy(&two, packed, 2);
            two = __builtin_bswap16(two);
            memcpy(packed, &two, 2);
            break;
        case 4:
            memcpy(&four, packed, 4);
            four = __builtin_bswap32(four);
            memcpy(packed, &four, 4);
            break;
        case 8:
            memcpy(&eight, packed, 8);
            eight = __builtin_bswap64(eight);
            memcpy(packed, &eight, 8);
            break;
        default:
            return;
        }
    }
}

/* Where a walk through an array in C order stands. */
typedef struct position {
    int64_t index[GK_MAX_DIMENSIONS];
    char *address;
} position;

static void set_position(position *at, const gk_array *array, size_t element) {
    at->address = array->data;
    for (int axis = array->ndim - 1; axis >= 0; axis--) {
        at->index[axis] = (int64_t)(element % (size_t)array->shape[axis]);
        element /= (size_t)array->shape[axis];
        at->address += at->index[axis] * array->strides[axis];
    }
}

/* From the end of a run along the last axis to the start of the next one. */
static void next_run(position *at, const gk_array *array) {
    for (int axis = array->ndim - 1; axis >= 0; axis--) {
        if (axis < array->ndim - 1) {
            at->index[axis]++;
            at->address += array->strides[axis];
        }
        if (at->index[axis] < array->shape[axis])
            return;
        at->address -= at->index[axis] * array->strides[axis];
        at->index[axis] = 0;
    }
}

static void walk(char *packed, const gk_array *array, size_t first, size_t count, bool unpack,
                 copier *copy) {
    size_t size = gk_dtype_size(array->dtype);
    ptrdiff_t stride = array->ndim > 0 ? (ptrdiff_t)array->strides[array->ndim - 1] : 0;
    int64_t length = array->ndim > 0 ? array->shape[array->ndim - 1] : 1;
    int last = array->ndim > 0 ? array->ndim - 1 : 0;
    position at = {0};
    set_position(&at, array, first);
    while (count > 0) {
        size_t run = (size_t)(length - at.index[last]);
        run = run < count ? run : count;
        if (unpack)
            copy_run(at.address, stride, packed, (ptrdiff_t)size, run, size, copy);
        else
            copy_run(packed, (ptrdiff_t)size, at.address, stride, run, size, copy);
        packed += run * size;
        count -= run;
        at.address += (ptrdiff_t)run * stride;
        at.index[last] += (int64_t)run;
        next_run(&at, array);
    }
}

static void pack(void *packed, const gk_array *array, size_t first, size_t count, copier *copy) {
    size_t size = gk_dtype_size(array->dtype);
    if (gk_is_contiguous(array))
        copy(packed, (const char *)array->data + first * size, count * size);
    else
        walk(packed, array, first, count, false, copy);
    if (array->swapped)
        swap_bytes(packed, count, size);
}

static void unpack(const gk_array *array, const void *packed, size_t first, size_t count,
                   copier *copy) {
    size_t size = gk_dtype_size(array->dtype);
    if (gk_is_contiguous(array))
        copy((char *)array->data + first * size, packed, count * size);
    else
        walk((char *)(uintptr_t)packed, array, first, count, true, copy);
}

void gk_pack(void *packed, const gk_array *array, size_t first, size_t count) {
    pack(packed, array, first, count, copy_plainly);
}

/* Rows that lie apart are plainly copied: they are a few lines each. */
void gk_pack_past_caches(void *packed, const gk_array *array, size_t first, size_t count) {
    bool runs = gk_is_contiguous(array) && !array->swapped;
    pack(packed, array, first, count, runs ? copy_past_caches : copy_plainly);
    fence();
}

void gk_unpack(const gk_array *array, const void *packed, size_t first, size_t count) {
    unpack(array, packed, first, count, copy_plainly);
}

void gk_unpack_past_caches(const gk_array *array, const void *packed, size_t first, size_t count) {
    unpack(array, packed, first, count, copy_past_caches);
    fence();
}
