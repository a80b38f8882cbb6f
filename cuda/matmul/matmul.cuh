// C = A x B, row-major: A is m x k, B is k x n, C is m x n. What the first steps have in common: a block
// makes one 32 x 32 tile of C, a thread one element of it. Of a stack of products each takes so many
// blocks, `tiles`; its matrices lie a_step, b_step and c_step elements behind those of the one before.
#ifndef GK_MATMUL_CUH
#define GK_MATMUL_CUH

#include "device.cuh"

#define GK_MATMUL_TILE 32
#define GK_MATMUL_ROW(variant, dtype, symbol, note)                                                \
    GK_ROW(matmul, variant, dtype, symbol, note, .tile_rows = GK_MATMUL_TILE, .tile_columns = GK_MATMUL_TILE, .threads = GK_MATMUL_TILE * GK_MATMUL_TILE, .alignment = 1)

#ifndef GK_ROWS_ONLY

// One element of C, read straight from memory.
template <typename T>
__device__ static inline void gk_dot_product(T *c, const T *a, const T *b, size_t row, size_t column, size_t m, size_t n, size_t k) {
    if (row >= m || column >= n)
        return;
    T sum = T(0);
    for (size_t i = 0; i < k; i++)
        sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}

#define GK_MATMUL(symbol, variant, T)                                                              \
    extern "C" __global__ void __launch_bounds__(GK_MATMUL_TILE * GK_MATMUL_TILE)                   \
        symbol(T *c, const T *a, const T *b, size_t m, size_t n, size_t k, unsigned tiles, size_t a_step, size_t b_step, size_t c_step) { \
        size_t product = blockIdx.x / tiles;                                                       \
        variant(c + product * c_step, a + product * a_step, b + product * b_step, m, n, k, blockIdx.x % tiles); \
    }

#endif
#endif
