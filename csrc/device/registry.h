/* The table of kernel variants, read from the rows at the head of each .cu file in cuda/. */
#ifndef GK_REGISTRY_H
#define GK_REGISTRY_H

#include <stdatomic.h>

#include "base/array.h"
#include "device/backend.h"
#include "device/operations.h"

/* What a kernel takes beside the addresses of its result and its operands. */
typedef enum gk_takes {
    GK_TAKES_SIZES,     /* how many elements there are: all are contiguous */
    GK_TAKES_TERMS,     /* a gk_terms, and so numbers and repeated elements */
    GK_TAKES_LAYOUT,    /* a gk_layout, and so arrays of any strides */
    GK_TAKES_REDUCTION, /* a gk_reduction, which says how its blocks divide the array */
} gk_takes;

typedef struct gk_tuned gk_tuned;

struct gk_row {
    gk_op op;
    const char *variant;
    gk_dtype dtype;     /* of the operands; a bits type serves every dtype of its size */
    const char *family; /* the .cu file: reduce_max for cuda/reduce/max.cu */
    const char *symbol; /* the kernel's name; NULL where a library does the work */
    const char *note;   /* what this step adds to the one before it */
    gk_takes takes;
    int tile_rows;    /* one block covers tile_rows x tile_columns elements: of the result, */
    int tile_columns; /* or of the operand in a reduction; one-dimensional kernels: 1 x columns */
    int threads;      /* threads a block */
    int alignment;    /* bytes that every pointer has to be a multiple of */
    int capability;   /* the least compute capability; 0: any that gpukern runs on */
    bool exact;       /* it runs on that one alone, by code that is for no other ("90a") */
    size_t shared_bytes;     /* dynamic shared memory */
    bool accumulates;        /* the whole grid adds to one zeroed result with atomics */
    bool plain;              /* of matmul: takes no transposed operand; its tiles are large */
    bool named;              /* only its name chooses it: it is never a default */
    bool follows;            /* its kernel calls gk_follow, and may be started early */
    bool stacks;             /* of matmul: `prepare` takes many products, and not one at a time */
    gk_workspace *workspace; /* how much device memory a launch needs beside; NULL: none */
    gk_prepare *prepare; /* what the host does before a launch; NULL: the operation knows the way */
};

/* Which rows suit, so far: by operation, dtype, whether the arrays are strided or the product is
   not for plain rows, and alignment, of 1, 2, 4, 8 and 16 bytes or more. A look that finds nothing
   walks the table once and writes its answer. */
enum { GK_FORMS = 3, GK_ALIGNMENTS = 5, GK_MOST_ROWS = 2048 };
typedef enum gk_ready { GK_NOT_TRIED, GK_RUNS, GK_RUNS_NOT } gk_ready;
typedef struct gk_choices {
    _Atomic(gk_ready) ready[GK_MOST_ROWS]; /* rows by their place in the table, once tried */
    struct {
        int first, end; /* of the operation's rows in the table; there may be others among them */
    } range[GK_OP_COUNT];
    _Atomic(const gk_row *) rows[GK_OP_COUNT][GK_DTYPE_AND_BITS_COUNT][GK_FORMS][GK_ALIGNMENTS];
    gk_tuned *tuned; /* of matmul */
} gk_choices;
void gk_choices_init(gk_choices *choices);

/* All rows, family by family, each family from the naive variant up. */
const gk_row *gk_rows(size_t *count);

int gk_row_capability(const gk_row *row);

/* Whether the row can run on this backend; if not, `why` says what is missing. */
bool gk_row_runs(const gk_row *row, gk_backend *backend, gk_error *why);

/* The same, remembered from the first time on. */
bool gk_row_is_ready(const gk_row *row, gk_backend *backend);

/* The row of that name, or an error that lists the ones there are. */
gk_status gk_row_named(gk_op op, const char *variant, gk_dtype dtype, gk_backend *backend,
                       const gk_row **row, gk_error *error);

/* What a row is wanted for. */
typedef struct gk_wish {
    gk_op op;
    gk_dtype dtype;
    bool strided;           /* for arrays that a gk_layout describes */
    bool not_plain;         /* for a product that no plain row is for */
    uintptr_t address_bits; /* the bitwise or of every pointer: what they are aligned to */
    const gk_row *limit;    /* none behind this one, which is the wanted one; or NULL */
} gk_wish;

/* Whether a row of that name, or for that wish where it is NULL, can be found with nothing to load
   and nobody to wait for. */
bool gk_row_known(const gk_wish *wish, const char *variant, gk_backend *backend);

/* The last row in the table that runs here and suits; NULL where none does for these pointers. */
const gk_row *gk_row_suiting(const gk_wish *wish, gk_backend *backend);

/* The same, with a sentence where there is none. */
gk_status gk_row_chosen(const gk_wish *wish, gk_backend *backend, const gk_row **row,
                        gk_error *error);

#endif
