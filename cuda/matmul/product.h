/* A product, or a stack of them, as the host hands it to the first steps' kernels (C and CUDA). */
#ifndef GK_PRODUCT_H
#define GK_PRODUCT_H

#include <stdint.h>

/* Steps are in elements. Of a stack each product takes `tiles` blocks, and its matrices lie a_step,
   b_step and c_step behind those of the one before. C is contiguous. */
typedef struct gk_product {
    uint64_t m, n, k;
    uint64_t a_row, a_column, b_row, b_column; /* from a row to the next, and from a column */
    uint64_t a_step, b_step, c_step;
    uint32_t tiles;
} gk_product;

#endif
