// C = A x B: A is m x k, B is k x n, C is m x n and row-major; A and B have any steps from row to row and
// from column to column, and so may be transposed. What the first steps have in common: a block makes
// one 32 x 32 tile of C, a thread one element of it.
#ifndef GK_MATMUL_CUH
#define GK_MATMUL_CUH

#include "device.cuh"
#include "matmul/product.h"

#define GK_MATMUL_TILE 32
#define GK_MATMUL_ROW(variant, dtype, symbol, note) GK_MATMUL_ROW_OF(matmul, variant, dtype, symbol, note)
#define GK_MATMUL_ROW_OF(op, variant, dtype, symbol, note)                                         \
    GK_ROW(op, variant, dtype, symbol, note, .tile_rows = GK_MATMUL_TILE, .tile_columns = GK_MATMUL_TILE, .threads = GK_MATMUL_TILE * GK_MATMUL_TILE, .alignment = 1)

#ifndef GK_ROWS_ONLY

// One element of C, read straight from memory.
template <typename T>
__device__ static inline void gk_dot_product(T *c, const T *a, const T *b, size_t row, size_t column, const gk_product &of) {
    if (row >= of.m || column >= of.n)
        return;
    T sum = T(0);
    a += row * of.a_row;
    b += column * of.b_column;
    for (size_t i = 0; i < of.k; i++, a += of.a_column, b += of.b_row)
        sum += *a * *b;
    c[row * of.n + column] = sum;
}

// Of operands of type T a result of type C.
#define GK_MATMUL(symbol, variant, T) GK_MATMUL_TO(symbol, variant, T, T)
#define GK_MATMUL_TO(symbol, variant, T, C)                                                            \
    extern "C" __global__ void __launch_bounds__(GK_MATMUL_TILE * GK_MATMUL_TILE)                   \
        symbol(C *c, const T *a, const T *b, gk_product of) {                                      \
        size_t product = blockIdx.x / of.tiles;                                                    \
        variant(c + product * of.c_step, a + product * of.a_step, b + product * of.b_step, of, blockIdx.x % of.tiles); \
    }

#endif
#endif
