/* gk_array: a typed, strided view of host or device memory, whoever owns it. */
#ifndef GK_ARRAY_H
#define GK_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GK_MAX_DIMENSIONS 64 /* NumPy's own limit */

/* One line a dtype: its name (NumPy's, and the one in a kernel's row) and its size in bytes. */
#define GK_DTYPES(X)                                                                               \
    X(float32, 4)                                                                                  \
    X(float64, 8)                                                                                  \
    X(float16, 2)                                                                                  \
    X(bfloat16, 2)                                                                                 \
    X(int32, 4)                                                                                    \
    X(int64, 8)                                                                                    \
    X(int8, 1)                                                                                     \
    X(uint8, 1)

/* Kernels that only move elements care for their size alone: their rows carry one of these. */
#define GK_BIT_TYPES(X)                                                                            \
    X(bits8, 1)                                                                                    \
    X(bits16, 2)                                                                                   \
    X(bits32, 4)                                                                                   \
    X(bits64, 8)                                                                                   \
    X(bits128, 16)

typedef enum gk_dtype {
#define GK_ENUMERATE(name, size) GK_##name,
    GK_DTYPES(GK_ENUMERATE) GK_DTYPE_COUNT,
    GK_BEFORE_BITS = GK_DTYPE_COUNT - 1,
    GK_BIT_TYPES(GK_ENUMERATE)
#undef GK_ENUMERATE
} gk_dtype;

typedef enum gk_place { GK_HOST, GK_DEVICE } gk_place;

typedef struct gk_array {
    void *data;
    gk_place place;
    gk_dtype dtype;
    bool readonly;
    bool swapped;       /* a host array in the other byte order */
    uintptr_t producer; /* the home of a device array, see gk_call_wait; 0: the call's own memory */
    int ndim;
    int64_t shape[GK_MAX_DIMENSIONS];
    int64_t strides[GK_MAX_DIMENSIONS]; /* in bytes */
} gk_array;

const char *gk_dtype_name(gk_dtype dtype);
size_t gk_dtype_size(gk_dtype dtype);
gk_dtype gk_bits_of(size_t size);       /* the bits type of that size */
gk_dtype gk_dtype_bits(gk_dtype dtype); /* the bits type of the same size */

size_t gk_count(const gk_array *array);
size_t gk_bytes(const gk_array *array);
bool gk_is_contiguous(const gk_array *array);  /* C order */
bool gk_is_addressable(const gk_array *array); /* its size in bytes fits 63 bits */
bool gk_same_shape(const gk_array *a, const gk_array *b);
void gk_make_contiguous(gk_array *array); /* C-order strides for its shape; data untouched */

/* For the path of every call: an assignment would move all 64 axes, these touch those there are. */
void gk_clear_view(gk_array *array); /* no data, no axes */
void gk_copy_view(gk_array *to, const gk_array *from);

/* The first byte that the view can touch and the byte behind its last one; false where that is
   more than an address counts, as the strides of another library may claim. */
bool gk_extent(const gk_array *array, uintptr_t *first, uintptr_t *end);

/* Whether the bytes that the two views can touch have any in common. */
bool gk_overlaps(const gk_array *a, const gk_array *b);

/* "(3, 4)", "(3,)" or "()" as NumPy prints a shape. */
typedef struct gk_text {
    char text[256];
} gk_text;
gk_text gk_shape_text(const gk_array *array);
gk_text gk_short_shape_text(const gk_array *array); /* "(3,4)": NumPy in its messages */

#endif
