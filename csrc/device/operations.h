/* The operations, and the steps that they are made of: a number each, by which kernels are found.
   To add an operation, add its line here, its file in ops/ and its kernels in cuda/; one that
   stands in cuda/elementwise/operations.h needs no more than that. */
#ifndef GK_OPERATIONS_H
#define GK_OPERATIONS_H

#include "elementwise/operations.h"

/* Those that walk over an array in one of several ways. */
#define GK_REDUCTIONS(X)                                                                           \
    X(sum)                                                                                         \
    X(mean)                                                                                        \
    X(prod)                                                                                        \
    X(max)                                                                                         \
    X(min)                                                                                         \
    X(norm)                                                                                        \
    X(argmax)                                                                                      \
    X(argmin)

#define GK_OTHER_OPERATIONS(X)                                                                     \
    X(dot)                                                                                         \
    X(matmul)                                                                                      \
    X(transpose)                                                                                   \
    X(matrix_transpose)

#define GK_OPERATIONS(X)                                                                           \
    GK_ELEMENTWISE(X) GK_EXCHANGED(X) GK_REDUCTIONS(X) GK_OTHER_OPERATIONS(X) X(clip)

/* With the steps, which nobody calls by name; X(name), WALKS(name) for those of a reduction, or
   LAYOUTS(name) for those on arrays of any strides. */
#define GK_KERNEL_NAMES(X, WALKS, LAYOUTS)                                                         \
    GK_ELEMENTWISE(LAYOUTS)                                                                        \
    GK_REDUCTIONS(WALKS)                                                                           \
    WALKS(sum_wide)                                                                                \
    GK_OTHER_OPERATIONS(X)                                                                         \
    LAYOUTS(clip)                                                                                  \
    X(matmul_wide)                                                                                 \
    X(matmul_vectors)                                                                              \
    X(matmul_few_vectors)                                                                          \
    X(matmul_vector)                                                                               \
    X(matmul_small)                                                                                \
    X(matmul_part)                                                                                 \
    LAYOUTS(convert)                                                                               \
    X(sum_finish)                                                                                  \
    LAYOUTS(copy)                                                                                  \
    X(copy_run)                                                                                    \
    X(copy_rows)                                                                                   \
    X(copy_packed)                                                                                 \
    X(copy_recurring)                                                                              \
    X(copy_boxed)                                                                                  \
    X(copy_worded)                                                                                 \
    X(copy_woven)

/* The ways over an array. */
typedef enum gk_walk {
    GK_WALK_ROWS,             /* of an array that is one run: along its rows, */
    GK_WALK_SHORT,            /* along short ones, */
    GK_WALK_COLUMNS,          /* down its columns */
    GK_WALK_GATHERED,         /* wherever elements lie: along rows of any length, */
    GK_WALK_GATHERED_COLUMNS, /* down columns */
    GK_WALK_LITTLE,           /* few elements, wherever they lie */
    GK_WALK_SCATTERED,        /* down columns of few rows that lie along two axes */
    GK_WALK_MATRICES,         /* down the columns of little matrices */
    GK_WALK_OWN,              /* along short rows, of which a thread has several */
    GK_WALK_BESIDE,           /* along rows that lie side by side, */
    GK_WALK_EVEN,             /* whose elements are evenly apart, */
    GK_WALK_STRAIGHT,         /* or that many at a time are a vector */
    GK_WALK_ALONG,            /* down columns that are runs */
    GK_WALK_BETWEEN           /* along short rows that lie between vectors */
} gk_walk;

/* How a kernel takes the layout of strided arrays: as it is, whole in a gk_compact, or as that of
   turned ones, by tiles. */
typedef enum gk_form { GK_LAID_OUT, GK_COMPACT, GK_BY_TILES } gk_form;

/* The kernels of a walk, or of a form, have the number of the operation plus that one. */
typedef enum gk_op {
#define GK_NUMBER(name, ...) GK_OP_##name,
#define GK_NUMBERS(name)                                                                           \
    GK_OP_##name, GK_OP_##name##_short, GK_OP_##name##_columns, GK_OP_##name##_gathered,           \
        GK_OP_##name##_gathered_columns, GK_OP_##name##_little, GK_OP_##name##_scattered,          \
        GK_OP_##name##_matrices, GK_OP_##name##_own, GK_OP_##name##_beside, GK_OP_##name##_even,   \
        GK_OP_##name##_straight, GK_OP_##name##_along, GK_OP_##name##_between,
#define GK_NUMBERS_OF_FORMS(name, ...) GK_OP_##name, GK_OP_##name##_compact, GK_OP_##name##_turned,
    GK_KERNEL_NAMES(GK_NUMBER, GK_NUMBERS, GK_NUMBERS_OF_FORMS) GK_OP_COUNT
#undef GK_NUMBER
#undef GK_NUMBERS
#undef GK_NUMBERS_OF_FORMS
} gk_op;

const char *gk_op_name(gk_op op);

#endif
