/* Shapes, strides and operands, as the host hands them to a kernel (C and CUDA). */
#ifndef GK_LAYOUT_H
#define GK_LAYOUT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/* A function of the host and of kernels. */
#ifdef __CUDACC__
#define GK_BOTH __host__ __device__
#else
#define GK_BOTH
#endif

enum {
    GK_LAYOUT_DIMENSIONS = 8, /* after neighbouring axes that form one run have been merged */
    GK_LAYOUT_ARRAYS = 4,     /* a result and its operands */
    GK_LAYOUT_OPERANDS = GK_LAYOUT_ARRAYS - 1,
    GK_CHUNK_BLOCKS = 16,   /* of vectors, that take the same part of a row that is read again */
    GK_ROW_VECTORS = 2,     /* of a thread, along operands that are one line each */
    GK_SHARED_ELEMENTS = 4, /* of a row that a thread of copies takes */
    GK_CONVERT_WIDTH = 2,   /* elements of a vector, where both sides of a conversion are runs, */
    GK_CONVERT_VECTORS = 8, /* and vectors of a thread */
    GK_LONE_ELEMENTS = 4,   /* of a thread that finds each by itself */
    GK_LONE_VECTORS = 2,    /* the same, of 16 bytes each */
    GK_COMPACT_WORDS = 30,  /* see gk_compact */
    GK_COMPACT_LENGTHS = 1 << 27, /* an axis in it is shorter, but for the outermost */
};

/* In bytes: what memory moves at a time, a thread at most, and a bank of shared memory. */
enum { GK_SECTOR = 32, GK_VECTOR = 16, GK_WORD = 4 };

/* Division by an invariant: n / d == (n + high word of n * multiplier) >> shift, for n < 2^31.
   After T. Granlund and P. Montgomery, "Division by Invariant Integers using Multiplication". */
typedef struct gk_divisor {
    uint32_t value, multiplier, shift;
} gk_divisor;

/* How one array is walked. What belongs to an axis stands together here and below: a kernel waits
   for each piece of its parameters that it comes to, and most arrays have few axes. */
typedef struct gk_axes {
    int32_t ndim;
    struct {
        gk_divisor length;
        int64_t stride; /* bytes */
    } axis[GK_LAYOUT_DIMENSIONS];
} gk_axes;

/* How several arrays of one shape are walked side by side, the last axis first; array 0 is the one
   that is written. */
typedef struct gk_layout {
    int32_t ndim;
    struct {
        gk_divisor length;
        int64_t stride[GK_LAYOUT_ARRAYS]; /* bytes; 0 repeats an element */
    } axis[GK_LAYOUT_DIMENSIONS];
} gk_layout;

/* The same where a thread takes several elements of the last axis: the layout counts units along
   it, which `1 << lanes` neighbouring threads share; the last unit of a row may not be whole. */
typedef struct gk_units {
    uint32_t count;                  /* of units in all rows */
    uint32_t length;                 /* of the last axis, in elements */
    uint32_t lanes;                  /* log2 of how many threads share a unit */
    int64_t step[GK_LAYOUT_ARRAYS];  /* along the last axis, in bytes */
    int64_t apart[GK_LAYOUT_ARRAYS]; /* from one element of a thread to its next */
    gk_layout layout;
} gk_units;

/* How one array is walked by itself: its axes merged as far as it alone allows, the last one first.
 */
typedef struct gk_own_axes {
    int32_t ndim;  /* 1 at least */
    int32_t reach; /* elements from its address to behind the farthest */
    struct {
        gk_divisor length;
        int32_t stride; /* elements; 0 repeats one */
    } axis[GK_LAYOUT_DIMENSIONS];
} gk_own_axes;

/* How vectors along the rows of the result are walked, and elements behind the last vector of each
   row, one a thread. Array 0 is the result; what the others' rows are does not matter. */
typedef struct gk_row_vectors {
    uint32_t count;    /* of vectors and single elements in all rows */
    uint32_t length;   /* of a row, in elements */
    gk_divisor in_row; /* vectors and single elements */
    gk_divisor times;  /* that a long row of an operand is read, one time after another; or 1 */
    uint32_t blocks;   /* of each of these times, */
    gk_divisor chunks; /* and GK_CHUNK_BLOCKS of these */
    uint32_t straight; /* whether all arrays are one line each: a thread takes GK_ROW_VECTORS */
    uint32_t vectors;    /* of a row, or, where a thread takes several, threads that have some */
    uint32_t again;      /* how many it takes, */
    gk_divisor period;   /* so many apart, after which there is the same of an operand */
    uint32_t comes_again; /* bit k: of operand k */
    gk_own_axes array[GK_LAYOUT_ARRAYS];
} gk_row_vectors;

/* How several arrays are walked an element at a time, whole in 128 bytes: a launch with more
   parameters begins later, by 0.3 us of the 2 that a short kernel takes on an H200, with 480 by
   0.5. `word`: of each array its address, in two words, or in their place the number of the host's
   that it stands for; then, axis by axis from the last one on, a stride of each array in elements
   (in bytes where they are converted) and the gk_divisor of its length in two
   words, the shift above the value. For the outermost axis zeros stand there, and nothing where
   there are as many axes as can be. */
typedef struct gk_compact {
    uint32_t count;        /* of elements, or of vectors of them */
    uint8_t ndim, numbers; /* bit k: array k is a number */
    union {
        uint8_t dtype[2]; /* of a conversion: to and from */
        uint8_t width;    /* elementwise: of a vector, along the last axis, which counts these */
    };
    uint32_t word[GK_COMPACT_WORDS];
} gk_compact;
static_assert(sizeof(gk_compact) == 128, "more parameters cost time");

/* So many axes of so many arrays have room in it. */
#define GK_COMPACT_AXES(arrays) ((GK_COMPACT_WORDS - 2 * (arrays) + 2) / ((arrays) + 2))

/* How tiles go over arrays of which some run along other axes than the one that is written: matrices
   whose columns go along the nearest axes of that one, and whose rows along those of the others. */
typedef struct gk_turned {
    uint32_t rows, columns;       /* of a matrix */
    gk_divisor across, in_matrix; /* tiles of the same rows, and of a matrix */
    uint32_t turned;              /* bit k: array k is near along rows */
    uint32_t by_words;   /* bit k: all words of array k's, in its own direction, are aligned */
    int32_t row_axes, matrix_axes; /* where they begin in the layout: those of columns come first */
    gk_layout layout;
} gk_turned;

/* The operands of an elementwise kernel. Bit k of `repeated`: one element of operand k serves all
   that a vector holds (and in a kernel without a layout all of the result); it is at data[k], or,
   where that is NULL, in the first bytes of value[k]: a number of the host's needs no copy. */
typedef struct gk_terms {
    const void *data[GK_LAYOUT_OPERANDS];
    uint64_t value[GK_LAYOUT_OPERANDS];
    uint32_t repeated;
} gk_terms;

#endif
