/* gk_nest: the loops over several arrays of one shape, as few and as long as they can be, and their
   way to a kernel that takes a gk_layout. */
#ifndef GK_NEST_H
#define GK_NEST_H

#include "engine/call.h"
#include "layout.h"

/* The arrays of a copy. */
enum { GK_TO, GK_FROM, GK_COPY_ARRAYS };

typedef struct gk_nest {
    int ndim, arrays;
    int64_t shape[GK_MAX_DIMENSIONS];
    int64_t stride[GK_LAYOUT_ARRAYS][GK_MAX_DIMENSIONS]; /* in bytes */
    int64_t size[GK_LAYOUT_ARRAYS];                      /* of an element, in bytes */
    uintptr_t data[GK_LAYOUT_ARRAYS];
} gk_nest;

/* The nest of arrays of one shape that is not empty, the one that is written first: axes of length
   1 dropped, the others in the order in which the first array lies in memory, and those merged that
   every array walks as one run. */
void gk_nest_make(gk_nest *nest, const gk_array *const *arrays, int count);

/* Whether every array is one run, of elements side by side or, but for the first, of a single one.
 */
bool gk_nest_is_run(const gk_nest *nest);

/* The bits of all addresses and strides: what a kernel's accesses are aligned to. */
uintptr_t gk_nest_bits(const gk_nest *nest);

size_t gk_nest_count(const gk_nest *nest);

/* From which byte to which one an array's elements lie, each of so many. */
void gk_nest_extent(const gk_nest *nest, int array, int64_t size, uintptr_t *first, uintptr_t *end);

/* Leave out an axis: a nest for each index along it. */
void gk_nest_take_out(gk_nest *nest, int axis);

/* Append an axis of the nest to those of a layout, of which there are fewer than it takes. */
void gk_nest_lay_out(const gk_nest *nest, int axis, gk_layout *layout);

/* Hand the nest to a kernel: whole if it has no more axes and elements than a gk_layout takes, else
   piece by piece. */
typedef gk_status (*gk_nest_launch)(gk_call *call, const gk_nest *piece, const gk_layout *layout,
                                    void *context);
gk_status gk_nest_run(gk_call *call, const gk_nest *nest, gk_nest_launch launch, void *context);

gk_divisor gk_divisor_of(uint32_t value);

/* The value of a divisor below GK_COMPACT_LENGTHS, and its shift above that. */
static inline uint32_t gk_packed_length(gk_divisor divisor) {
    return divisor.value | divisor.shift * GK_COMPACT_LENGTHS;
}

/* How many parts of that length, the last of which may be shorter. */
static inline int64_t gk_parts_of(int64_t length, int64_t part) {
    return (length + part - 1) / part;
}

/* The greatest that divides both. */
static inline size_t gk_common_divisor(size_t a, size_t b) {
    while (b != 0) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The blocks that cover so many elements. */
static inline size_t gk_blocks(size_t count, int a_block) {
    return (size_t)gk_parts_of((int64_t)count, a_block);
}

/* How threads go over a piece by vectors of so many elements along the result's own rows. False
   where an offset takes more than 32 bits. */
bool gk_nest_row_vectors(const gk_nest *piece, int64_t width, gk_row_vectors *rows);

/* How threads that take `each` elements of a row, or fewer, go over a piece, in turn with their
   neighbours, so that what they write at a time lies side by side; and how many threads. */
gk_units gk_nest_units(const gk_nest *piece, const gk_layout *layout, int64_t each);
size_t gk_unit_threads(const gk_units *units);

/* Whether a thread had better find each of its elements by itself: there are few elements, or
   threads that share rows and take `each` of one would have less than half of that. 0: they take
   whole vectors, and only few elements count. */
bool gk_nest_is_lone(const gk_nest *piece, int64_t each);

/* The same nest with strides in elements of these sizes, an array each, of which they are
   multiples, and its last axis in vectors of so many, of which it is one. False where an offset
   takes more than 32 bits. */
bool gk_nest_in_elements(const gk_nest *piece, int64_t width, const int64_t *size,
                         gk_nest *counted);

/* All that a thread has to know for that, if it fits. */
bool gk_nest_compact(const gk_nest *piece, gk_compact *compact);

/* A number of the host's in the place of array k. */
static inline void gk_compact_number(gk_compact *compact, int k, uint64_t number) {
    compact->numbers |= (uint8_t)(1 << k);
    compact->word[2 * k] = (uint32_t)number;
    compact->word[2 * k + 1] = (uint32_t)(number >> 32);
}

/* Launch the kernel on that, by the row of the operation's GK_COMPACT form: a thread takes one, or,
   where there are many, so many. */
gk_status gk_launch_compact(gk_call *call, const gk_row *row, gk_compact *compact, int each);

#endif
