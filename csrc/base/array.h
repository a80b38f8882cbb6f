/* gk_array: a typed, strided view of host or device memory, whoever owns it. */
#ifndef GK_ARRAY_H
#define GK_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtypes.h"

#define GK_MAX_DIMENSIONS 64 /* NumPy's own limit */

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

/* "3, 4 and 5", as a sentence lists what there is. */
typedef struct gk_list {
    char text[512];
    size_t used, items;
} gk_list;
void gk_list_add(gk_list *list, const char *item);
void gk_list_end(gk_list *list); /* `and` before the last one */

typedef enum gk_kind { GK_REAL, GK_HALF, GK_SIGNED, GK_UNSIGNED, GK_BOOLEAN } gk_kind;
/* A number of some dtype that elements are held to. */
typedef struct gk_bound {
    enum {
        GK_UNBOUNDED,
        GK_BOUNDED,
        GK_BELOW_ALL,
        GK_ABOVE_ALL
    } is;           /* the last two: of integers */
    uint64_t value; /* its first bytes hold it */
} gk_bound;

/* So many lines of so many bytes side by side, `apart` bytes from one to the next. */
typedef struct gk_lines {
    size_t count, bytes, apart;
} gk_lines;

const char *gk_dtype_name(gk_dtype dtype);
size_t gk_dtype_size(gk_dtype dtype);
gk_kind gk_dtype_kind(gk_dtype dtype); /* of no bits type */
char gk_dtype_letter(gk_dtype dtype);  /* of its kind, as NumPy has it: f, i, u or b */
bool gk_is_float(gk_dtype dtype);
gk_list gk_dtype_list(void);            /* all of them */
gk_dtype gk_bits_of(size_t size);       /* the bits type of that size */
gk_dtype gk_dtype_bits(gk_dtype dtype); /* the bits type of the same size */

size_t gk_count(const gk_array *array);
size_t gk_bytes(const gk_array *array);
bool gk_is_contiguous(const gk_array *array); /* C order */
/* Whether elements along an axis lie farther apart than along the other; the axes by that, the
   farthest first, those that are alike as they come; and the strides of memory that is one run of
   them in that order. */
bool gk_lies_farther(const gk_array *array, int axis, int other);
void gk_order_axes(const gk_array *array, int *order);
void gk_make_run(gk_array *array, const int *order);
/* Whether the array is lines of elements side by side that lie evenly, and how. */
bool gk_as_lines(const gk_array *array, gk_lines *lines);
bool gk_is_addressable(const gk_array *array);   /* its strides fit 63 bits, also of no elements */
bool gk_repeats_elements(const gk_array *array); /* an axis of stride 0: a broadcast view */
bool gk_same_shape(const gk_array *a, const gk_array *b);
bool gk_is_same_view(const gk_array *a, const gk_array *b); /* the same elements in one order */
bool gk_lies_by_columns(
    const gk_array *array);               /* its last two axes exchanged are nearer to C order */
void gk_exchange_last(gk_array *array);   /* the last two axes, of which there have to be two */
void gk_make_contiguous(gk_array *array); /* C-order strides for its shape; data untouched */
void gk_append_axis(gk_array *array, int64_t length, int64_t stride); /* the last one */

/* For the path of every call: an assignment would move all 64 axes, these touch those there are. */
void gk_clear_view(gk_array *array); /* no data, no axes */
void gk_copy_view(gk_array *to, const gk_array *from);
void gk_describe_like(gk_array *to, const gk_array *like); /* its dtype and shape, nothing else */

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
