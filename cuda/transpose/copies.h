/* How a copy between two orders of axes is cut up, as the host hands it to a kernel (C and CUDA).
 */
#ifndef GK_COPIES_H
#define GK_COPIES_H

#include "layout.h"

enum {
    GK_CHAIN_AXES = 3,
    GK_RECURRING_PARTS = 4, /* that a thread has under way */
    GK_BOX_BYTES = 32768, /* of a box, at most, and */
    GK_BOX_ELEMENTS = 4096,
    GK_RUN_BOX_BYTES = 22528,  /* of one whose runs are moved, with what is left free in it, */
    GK_RUN_BOX_VECTORS = 1536, /* that are read of it, */
    GK_RUN_BOX_WORDS = 3968,   /* and that are written */
    GK_RUN_BOX_BUFFERS = 3,    /* of a block of few boxes, if there is room; else two */
    GK_RUN_BOX_PLACES = 64,    /* of boxes, of which a block knows where they begin, */
    GK_RUN_BOX_PLACE = 24,     /* and the bytes of one */
    GK_WOVEN_BYTES = 8192, /* of what a block weaves */
    GK_WOVEN_SPREAD = 5,   /* log2 of the words of it after which one may be left free, or */
    GK_WOVEN_DENSE = 31,   /* none is */
    GK_VECTOR_LINES = 4,   /* or fewer, which are woven by vectors */
};

/* How one array is walked in the order of another one, which is one run: the nearest axis first. */
typedef struct gk_course {
    uint32_t count; /* of elements */
    int32_t ndim;
    struct {
        gk_divisor length;
        int64_t stride; /* bytes */
        int64_t step;   /* from the last element along all nearer axes to the next along this one */
    } axis[GK_LAYOUT_DIMENSIONS];
} gk_course;

/* The same where the order of elements within a part of that run comes again in every part: a
   thread has one word of each of some parts. */
typedef struct gk_recurrence {
    uint32_t count;   /* of elements */
    uint32_t each;    /* parts of a thread, a multiple of GK_RECURRING_PARTS */
    gk_divisor words; /* of a part */
    int32_t ndim;
    int64_t step; /* bytes from where a part begins to the next one's, in the array that is read */
    struct {
        gk_divisor length;
        int64_t stride; /* bytes */
    } axis[GK_LAYOUT_DIMENSIONS]; /* of a part, the nearest first */
} gk_recurrence;

/* How a stack of matrices is cut into tiles, and the steps in bytes from one element to the next. A
   row of the matrix that is read is a column of the one that is written. */
typedef struct gk_tiles {
    uint64_t rows, columns;
    gk_divisor in_matrix, down; /* tiles of one matrix, and tiles below one another in it */
    int64_t from_row, from_column, to_row, to_column;
} gk_tiles;

/* Where the rows of a matrix begin, or its columns: the numbers of those run over several axes. */
typedef struct gk_chain {
    gk_divisor length[GK_CHAIN_AXES - 1]; /* of the nearest axes; the outermost needs none */
    int64_t step[GK_CHAIN_AXES];          /* in bytes, 0 of an axis that is not there */
} gk_chain;

/* Tiles whose rows are read from, and whose columns are written to, where these chains say. */
typedef struct gk_chain_tiles {
    gk_tiles tiles;
    gk_chain rows, columns;
    uintptr_t first, end; /* of what may be read */
    bool is_even; /* both are of a single axis */
} gk_chain_tiles;

/* How matrices of few lines, which lie a pitch of bytes apart, are woven into one with an element
   of each line in turn, or taken apart into them. */
typedef struct gk_weaving {
    uint64_t columns;
    uint32_t columns_a_block, lines;
    uint32_t spread;   /* GK_WOVEN_SPREAD, for what lies so many lines apart to be in other banks,
                          or GK_WOVEN_DENSE where it is as it is */
    gk_divisor blocks; /* of a matrix */
    bool weaves;       /* else it takes apart */
    int64_t pitch;
} gk_weaving;

/* Where boxes begin in two arrays of one shape, of which array 0 is the one that is written. The last
   one along an axis begins early enough to be whole. */
typedef struct gk_box_grid {
    int32_t ndim;
    uint32_t count; /* of boxes */
    struct {
        gk_divisor length; /* boxes along the axis */
        int64_t step[2];   /* bytes from a box to the next */
        int64_t last[2];   /* from the first to the last one */
    } axis[GK_LAYOUT_DIMENSIONS];
} gk_box_grid;

/* How two arrays whose axes lie in another order each are cut into boxes: of some elements along
   what is near in the one, and of some along what is near in the other. */
typedef struct gk_boxes {
    gk_box_grid grid;
    uint32_t elements; /* of a box */
    struct {
        gk_divisor side; /* elements of a box along the axis */
        uint32_t pitch;  /* between elements of a box, in the order of array 0 */
        int32_t stride;  /* elements */
    } part[2][GK_LAYOUT_DIMENSIONS]; /* the axes by array, the nearest elements' first */
} gk_boxes;

/* Where a box in shared memory has the indices of an axis: 2^bits times as many lie `cell` bytes
   apart, each group of these `group` bytes behind the one before. */
typedef struct gk_cells {
    uint32_t cell, group, bits;
} gk_cells;

/* The shared memory of a block that has so many buffers. */
#define GK_RUN_BOX_SHARED(buffers)                                                                 \
    (GK_RUN_BOX_PLACES * GK_RUN_BOX_PLACE + (buffers)*GK_RUN_BOX_BYTES)

static GK_BOTH inline uint32_t gk_cell_of(const gk_cells *cells, uint32_t index) {
    const uint32_t group = index & ((1u << cells->bits) - 1);
    return (index >> cells->bits) * cells->cell + group * cells->group;
}

/* Which element of its word, of as many as a power of two, a lane reads first: 2^bits neighbours the
   same one, the next ones the next. Else those that lanes read at a time lie as far apart as words
   do, and more of them in the same banks. */
static GK_BOTH inline uint32_t gk_turn_of(uint32_t lane, uint32_t bits, uint32_t elements) {
    return lane >> bits & (elements - 1);
}
enum { GK_NO_TURN = 5 }; /* log2 of a warp: all of its lanes read the same one first */

/* The same of elements of up to 8 bytes, where a box has runs in both arrays. They are read by
   vectors that lie as they do in memory, each run a row of the box, and written by words. */
typedef struct gk_run_boxes {
    gk_box_grid grid;
    uint32_t row_vectors;        /* that are read of a box */
    gk_divisor vectors;          /* of a row, which may begin anywhere */
    uint32_t runs, run_elements; /* that are written, and what one has */
    uint32_t run_words;          /* that are written of a box */
    gk_divisor words;            /* of a run, the same */
    bool on_words;               /* all runs that are written begin and end with one */
    uint32_t buffers;            /* boxes of a block at a time: one is written, the others come */
    uint32_t turn_bits;          /* see gk_turn_of */
    int64_t reach[2];     /* of a box in the array that is read, from where it begins, in bytes */
    int32_t across, axes; /* of rows, and of the box, along which it has more than one element */
    struct {
        gk_divisor side; /* elements of a box along the axis */
        int32_t stride;  /* bytes, in the array that is read */
        gk_cells cells;
    } read[GK_LAYOUT_DIMENSIONS]; /* the axes of rows */
    struct {
        gk_divisor side;
        int32_t stride; /* bytes, in the array that is written */
        gk_cells cells;
    } written[GK_LAYOUT_DIMENSIONS]; /* all axes, the nearest there first */
} gk_run_boxes;

#endif
