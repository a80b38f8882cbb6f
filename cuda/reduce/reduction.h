/* One reduction, as the host hands it to the kernel (C and CUDA). An array of outer x length x inner
   elements becomes one of outer x inner. A long reduced axis is cut into segments, a block each; a
   segment's partial result is joined to the others' in the order of their numbers. */
#ifndef GK_REDUCTION_H
#define GK_REDUCTION_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"

enum {
    GK_REDUCE_THREADS = 256,      /* a block of rows */
    GK_REDUCE_COLUMN_THREADS = 128, /* a block of columns: fewer to join */
    GK_REDUCE_RESIDENT = 4,       /* blocks a multiprocessor: said, or the compiler saves registers
                                     and lets loads wait for one another */
    GK_REDUCE_COLUMN_RESIDENT = 6, /* the same, of these */
    GK_REDUCE_LITTLE_RESIDENT = 6, /* of little arrays */
    GK_REDUCE_VECTOR_BYTES = 16,  /* a load */
    GK_REDUCE_LOADS = 4,          /* of a thread at a time, along a row or two */
    GK_REDUCE_LOOKED_AT = 8,      /* of a thread's vectors, at least, for it to look at each as a whole first */
    GK_REDUCE_LINE_LOADS = 8,     /* of a thread at a time, of a little array along a single axis */
    GK_REDUCE_FEWEST_LOADS = 4,   /* the same, of columns of no more rows; */
    GK_REDUCE_FEWEST_ROWS = 2,    /* of no more than these, */
    GK_REDUCE_MANY = 4,           /* of words, a thread has so many columns, to keep the memory busy */
    GK_REDUCE_SHORT_ROWS = 4,     /* that a group of lanes works on side by side */
    GK_REDUCE_COLUMN_LOADS = 8,   /* of a thread at a time, down a column */
    GK_REDUCE_FEW = 4,            /* columns of a thread, or fewer, that it takes element by element */
    GK_REDUCE_APART_BYTES = 64,   /* of a thread at a time, down narrow columns an element a load, */
    GK_REDUCE_APART_SLOTS = 4,    /* and the slots that these are of */
    GK_REDUCE_RAGGED_LOADS = 4,   /* of a thread at a time, between two aligned vectors */
    GK_REDUCE_GATHERED_LOADS = 4, /* the same of a gathered array: each has to be found */
    GK_REDUCE_TILE_VECTORS = 1024, /* of a block of columns at a time, of elements in another order */
    GK_REDUCE_TILE_EACH = 4,      /* elements that a thread finds at a time */
    GK_REDUCE_TILE_ROWS = 1024,   /* at most, and columns of a warp's vectors */
    GK_REDUCE_TILE_COLUMNS = 512,
    GK_REDUCE_TILE_BYTES = GK_REDUCE_TILE_VECTORS / 32 * 33 * GK_REDUCE_VECTOR_BYTES + 4 * (GK_REDUCE_TILE_ROWS + GK_REDUCE_TILE_COLUMNS),
    GK_REDUCE_LISTED_ROWS = 1024,  /* of a block of columns at a time, where these and their rows are listed, */
    GK_REDUCE_LISTED_LOADS = 32,   /* and loads of a thread at a time, or half of that beside states of more bytes than: */
    GK_REDUCE_LARGE_STATES = 64,
    GK_REDUCE_LISTED_BYTES = 8 * GK_REDUCE_LISTED_ROWS + 4 * GK_REDUCE_COLUMN_THREADS * GK_REDUCE_VECTOR_BYTES,
    GK_REDUCE_ALONG_LOADS = 8,    /* of a thread at any time, along a column, */
    GK_REDUCE_ALONG_VECTORS = 62, /* and vectors that are fetched for it at a time, at most */
    GK_REDUCE_ALONG_COLUMNS = 1024, /* of a block, the same */
    GK_REDUCE_ALONG_RESIDENT = 5, /* as GK_REDUCE_RESIDENT */
    GK_REDUCE_CHUNK_VECTORS = 2048, /* of a block at a time, of a long row whose elements are in another order */
    GK_REDUCE_CHUNK_GAPS = 64,      /* and vectors that are left out between */
    GK_REDUCE_CHUNK_ROWS = 1028, GK_REDUCE_CHUNK_COLUMNS = 2048,
    GK_REDUCE_GATHERED_BYTES = (GK_REDUCE_CHUNK_VECTORS + GK_REDUCE_CHUNK_GAPS) * GK_REDUCE_VECTOR_BYTES + 4 * (GK_REDUCE_CHUNK_ROWS + GK_REDUCE_CHUNK_COLUMNS),
    GK_REDUCE_MATRICES_BYTES = 32768, /* of several little matrices in shared memory */
    GK_REDUCE_COUNTED_WORDS = 63,     /* of their rows of bytes, of a thread */
    GK_REDUCE_BESIDE_BYTES = 16384, /* of the states of rows that lie side by side */
    GK_REDUCE_LINE_BYTES = GK_REDUCE_THREADS * GK_REDUCE_VECTOR_BYTES, /* shared memory of a block of rows that are lines */
    GK_REDUCE_LINES = 2048,       /* of a long row, that are listed at a time */
    GK_REDUCE_LINES_BYTES = GK_REDUCE_LINES * 8,
    GK_REDUCE_RUN_VECTORS = 4,    /* of a thread, in each of the runs that a row is, for it to look where these lie */
    GK_REDUCE_OWN_VECTORS = 16,   /* of a ragged row, from which on it is read by aligned ones alone */
    GK_REDUCE_BRANCH_BYTES = 64,  /* of those of columns, of a thread at a time */
    GK_REDUCE_PARTIAL_LOADS = 8,  /* of a thread at a time, of partial results */
    GK_REDUCE_JOIN_BYTES = 16512, /* shared memory to join the rows of a block of columns in */
    GK_REDUCE_PARTIAL_BYTES = 16, /* room for the widest partial result */
    GK_LITTLE_AXES = 7,           /* of a little array, */
    GK_FEW_AXES = 2,              /* and those that a thread reduces that finds each element from the last */
};

/* Neighbouring columns of a thread where columns have few rows, of elements of so many bytes: of 8 a
   warp's single elements are as good. */
#define GK_REDUCE_FEW_COLUMNS(bytes) ((bytes) == 8 ? 1 : 4)

/* The same, of bytes and halves whose rows begin anywhere, and of results of so many bytes: a vector
   of either. */
#define GK_REDUCE_BETWEEN_OF_WIDER 4
#define GK_REDUCE_BETWEEN_COLUMNS(bytes, result)                                                   \
    ((bytes) > 2     ? 1U                                                                          \
     : (result) > 2 ? (uint32_t)GK_REDUCE_BETWEEN_OF_WIDER                                         \
                     : GK_REDUCE_VECTOR_BYTES / (uint32_t)(bytes))

/* Columns of a thread where they are no vectors, a block's threads apart. */
#define GK_REDUCE_SEVERAL(bytes) ((bytes) == 8 ? 1 : 2)

/* Whether little matrices of few columns, of elements of so many bytes, are several a block. */
#define GK_REDUCE_STACKS_NARROW(bytes) ((bytes) == 2)

/* Rows of a thread that lie side by side: a warp reads whole sectors. And loads of a thread at a time. */
#define GK_REDUCE_BESIDE_ROWS(bytes)  ((bytes) <= 2 ? 2 : 1)
#define GK_REDUCE_BESIDE_LOADS(bytes) ((bytes) <= 2 ? 32 : (bytes) == 4 ? 16 : 8)
/* The same, of vectors of neighbouring rows. */
#define GK_REDUCE_STRAIGHT_LOADS 8

/* Shared memory of a block for each thread of which so many vectors are fetched at a time: one more lies between, so that
   neighbours are in other banks. */
#define GK_REDUCE_FETCHED_BYTES(vectors) ((vectors) > 0 ? GK_REDUCE_COLUMN_THREADS * ((vectors) + 1) * GK_REDUCE_VECTOR_BYTES : 0)

/* Loads of a thread at a time along rows that lie between vectors, and blocks a multiprocessor, as many
   as there are registers for, by the bytes of a state. */
#define GK_REDUCE_BETWEEN_LOADS(bytes)    ((bytes) == 2 ? 3 : 4)
#define GK_REDUCE_BETWEEN_RESIDENT(bytes) ((bytes) > 8 ? 4 : 5)

/* Loads of a thread at a time that fills a tile. */
#define GK_REDUCE_TILE_LOADS(bytes) ((bytes) == 8 ? 8 : 16)

typedef enum gk_reduce_last {
    GK_AS_IT_IS,
    GK_DIVIDED,
    GK_SQUARE_ROOT,
    GK_IN_PARTS, /* of a sum in float64 that goes on: its two parts, `divisor` results apart */
} gk_reduce_last;
typedef enum gk_reduce_order {
    GK_ORDER_REVERSED = 1, /* min and argmin */
    GK_ORDER_UNSIGNED = 2, /* of whole numbers, by the kernels of signed ones */
} gk_reduce_order;
typedef enum gk_reduce_stage {
    GK_REDUCE_WHOLE,   /* the last block to arrive joins the partial results */
    GK_REDUCE_PARTIAL, /* leave the partial results: other launches bring more of them */
    GK_REDUCE_FINISH,  /* only join the partial results */
} gk_reduce_stage;

typedef enum gk_reduce_tiles {
    GK_REDUCE_TILED = 1,    /* by tiles: */
    GK_REDUCE_STRAIGHT = 2, /* each row of a block's is a run; of rows side by side: they come in vectors */
    GK_REDUCE_DOWN = 4,     /* neighbours in memory are in neighbouring rows */
    GK_REDUCE_BESIDE = 8,   /* of rows: side by side, by kernels of their own */
    GK_REDUCE_ALONG = 16,   /* of columns: each is a run */
    GK_REDUCE_LINE = 32,    /* of long rows: their elements lie evenly apart, see gk_line */
    GK_REDUCE_LISTED = 64,  /* of columns: by lists of rows and of columns alone; straight: in words */
    GK_REDUCE_EVEN = 128,   /* of rows side by side: their elements lie evenly apart */
} gk_reduce_tiles;

typedef struct gk_reduction {
    size_t outer, length, inner;
    union {
        size_t segment; /* elements of the reduced axis */
        int64_t step;   /* of little matrices: from one column to the next */
    };
    size_t segments;  /* no more than blocks; 1: no partial results */
    uint16_t group;   /* columns: log2 of the threads that work on one of `outer`, a block or part of one; of
                         narrow ones and of little matrices how many of these a block has */
    uint8_t stored;   /* gk_dtype of the result */
    uint8_t last;     /* gk_reduce_last */
    uint8_t stage;    /* gk_reduce_stage */
    bool short_rows : 1;  /* of a gathered array: `lanes` threads a row */
    bool broken : 1;      /* of such, if it is no matter of any order: see gk_broken, */
    bool lines : 1;       /* and lines.cuh */
    bool lone_rows : 1;   /* of short rows: a warp has one, and not several */
    bool narrow : 1;      /* columns: see gk_narrow */
    bool in_vectors : 1;  /* of little matrices: a lane has as many rows side by side as a vector has elements, */
    bool joined : 1;      /* and little lies between those of a block, or nothing */
    bool whole : 1;       /* of columns that are runs: a block has all segments of its own */
    bool shifted : 1;     /* columns of less than a word, whose rows begin anywhere in one: see gk_take_shifted */
    uint8_t order : 2;    /* of the values of an extreme: gk_reduce_order */
    uint8_t branches : 5; /* columns: log2 of the partial results that one block joins at a time */
    uint8_t tiles;    /* gk_reduce_tiles, of a gathered array that is taken by these; else 0 */
    uint8_t outer_axes, kept_axes; /* of their layout: of matrices, and with those of columns; of rows, those up to the nearest
                                      one that is reduced, and those that are kept */
    uint16_t lanes;   /* short rows, little arrays and matrices: threads a result; columns: vectors side by
                         side in a block, of narrow ones those of some rows */
    uint32_t bundle;  /* of `outer`: so many lie `over` apart, then the next so many; below 2: all do; of columns that are runs:
                         those of a block */
    int64_t reach;    /* bytes from the first element to the end of the farthest */
    union {
        int64_t over;   /* from one of `outer` to the next; not of a gathered array */
        size_t fetched; /* of columns that are runs: a thread's vectors that the copy engine brings at a time; 0: it loads them */
    };
    union {
        int64_t beyond; /* from the first of a bundle to the first of the next; 0: there is none */
        size_t first;   /* of a launch that has a part of one row: where on the reduced axis it starts,
                           a multiple of `segment` */
    };
    int64_t apart;    /* from one reduced element to the next, where all lie so; else 0 */
    double divisor, reciprocal; /* of a mean, and of that */
    void *partials;
    unsigned *arrivals; /* a counter for each result, or gk_reduce_joints for each block of columns: 0
                           before and after */
    void *result;
} gk_reduction;
static_assert(sizeof(gk_reduction) <= 128, "more parameters cost time");

/* The reduction of a little array, whole in the 128 bytes beyond which a launch begins later (see
   gk_compact): few elements, which lie anywhere. The reduced axes stand in front, from the last one
   on, and the kept ones at the end, the last one behind the others; lengths as there, of the outermost
   axes of both kinds none. Or of many results, each of a few elements, which lie apart. */
typedef struct gk_little {
    const void *a;
    void *result;
    double divisor, reciprocal;
    uint32_t results, length;
    uint32_t lanes : 4;          /* log2 */
    uint32_t wide : 1;           /* a lane has a vector of neighbouring results: these are what is counted */
    uint32_t between : 1;        /* the same, of rows that begin anywhere, along few axes (gk_sure_of_few); results are
                                    counted one by one */
    uint32_t several : 1;        /* a lane has several results, as many apart as a block has threads, or vectors
                                    of those between */
    uint32_t across : 1;         /* neighbouring threads have neighbouring results */
    uint32_t runs : 1;           /* lanes take a vector's elements at a time, as those of short rows do */
    uint32_t reduced : 3, kept : 3; /* axes */
    uint32_t stored : 5, last : 2, order : 2; /* as above */
    struct {
        int32_t stride; /* bytes */
        uint32_t length, multiplier; /* the length with its shift */
    } axis[GK_LITTLE_AXES];
} gk_little;
static_assert(sizeof(gk_little) <= 128, "more parameters cost time");

/* Where columns that begin anywhere are `between` vectors, how far behind the first one another may
   begin, in bytes, for the vectors that it lies in to be in the array in all rows: in the place of
   an axis that is none then. */
enum { GK_SURE_OF_FEW = GK_FEW_AXES };
static GK_BOTH inline int64_t gk_sure_of_few(const gk_little *how) {
    return (int64_t)((uint64_t)how->axis[GK_SURE_OF_FEW].multiplier << 32 | how->axis[GK_SURE_OF_FEW].length);
}

/* Columns that a block of so many vectors side by side has results of: where its threads begin at
   words, up to one in front of where their rows do, as many fewer as a word has. */
#define GK_REDUCE_BLOCK_COLUMNS(lanes, width, shifted)                                             \
    ((lanes) * (width) - ((shifted) ? (width) / (GK_REDUCE_VECTOR_BYTES / 4) : 0))

static inline void gk_divide_by(gk_reduction *how, size_t count) {
    how->divisor = (double)count;
    how->reciprocal = 1.0 / how->divisor;
}

/* The places where a tree joins so many partial results, 2^branches at a time. */
static GK_BOTH inline size_t gk_reduce_joints(size_t segments, unsigned branches) {
    size_t joints = 0;
    while (segments > 1) {
        segments = ((segments - 1) >> branches) + 1;
        joints += segments;
    }
    return joints;
}

#endif
