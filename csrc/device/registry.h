/* The table of kernel variants, read from the rows at the head of each cuda/ *.cu file. */
#ifndef GK_REGISTRY_H
#define GK_REGISTRY_H

#include <stdatomic.h>

#include "base/array.h"
#include "device/backend.h"

struct gk_row {
    const char *op;
    const char *variant;
    gk_dtype dtype;     /* of the operands; a bits type serves every dtype of its size */
    const char *family; /* the .cu file: reduce_max for cuda/reduce/max.cu */
    const char *symbol; /* the kernel's name; NULL where a library does the work */
    int tile_rows;      /* one block covers tile_rows x tile_columns elements: of the result, */
    int tile_columns;   /* or of the operand in a reduction; one-dimensional kernels: 1 x columns */
    int threads;        /* threads a block */
    int alignment;      /* bytes that every pointer has to be a multiple of */
    bool strided;       /* takes a gk_layout, and so arrays of any strides */
    bool accumulates;   /* the whole grid adds to one zeroed result with atomics */
    bool reduces;       /* takes a gk_reduction, which says how its blocks divide the array */
    int minimum_capability;
    const char *note; /* what this step adds to the one before it */
};

/* What was chosen before: rows by operation, dtype and alignment, and by name. A lookup that finds
   nothing walks the table once and writes its answer here. */
enum { GK_CHOICES = 1 << 14 };
typedef struct gk_choices {
    _Atomic(const gk_row *) rows[GK_CHOICES];
} gk_choices;

/* All rows, family by family, each family from the naive variant up. */
const gk_row *gk_rows(size_t *count);

/* Whether a row serves arrays of `dtype`. */
bool gk_row_serves(const gk_row *row, gk_dtype dtype);

/* Whether the row can run on this backend; if not, `why` says what is missing. */
bool gk_row_runs(const gk_row *row, gk_backend *backend, gk_error *why);

/* The row of that name, or an error that lists the ones there are. */
gk_status gk_row_named(const char *op, const char *variant, gk_dtype dtype, gk_backend *backend,
                       const gk_row **row, gk_error *error);

/* Whether such a row was looked up before: then nothing is loaded, and nobody is waited for. */
bool gk_row_known(const char *op, const char *variant, gk_dtype dtype, gk_backend *backend);

/* The row to run: the last one in its family that runs here and whose alignment suits
   `address_bits` (the bitwise or of every pointer); with `wanted` set, the last one not behind it,
   which is `wanted` itself unless the pointers are misaligned. */
gk_status gk_row_chosen(const char *op, gk_dtype dtype, gk_backend *backend, uintptr_t address_bits,
                        const gk_row *wanted, const gk_row **row, gk_error *error);

#endif
