// The same work with rows and columns of the threads exchanged: a warp now reads 32 neighbours of B and one
// element of A, and writes 32 neighbours of C. On an H200 5.1 TFLOP/s at 4096, 10 % of cuBLAS.
#include "matmul/matmul.cuh"

GK_MATMUL_ROW(coalesced, float32, gk_matmul_coalesced_f32, "neighbouring threads take neighbouring columns: one transaction a warp")
GK_MATMUL_ROW(coalesced, float64, gk_matmul_coalesced_f64, "neighbouring threads take neighbouring columns")

#ifndef GK_ROWS_ONLY

template <typename T>
__device__ static inline void matmul_coalesced(T *c, const T *a, const T *b, const gk_product &of, size_t at) {
    enum { TILE = GK_MATMUL_TILE };
    gk_corner tile = gk_tile_corner(at, of.n, TILE, TILE);
    gk_dot_product(c, a, b, tile.row + threadIdx.x / TILE, tile.column + threadIdx.x % TILE, of);
}

GK_MATMUL(gk_matmul_coalesced_f32, matmul_coalesced, float)
GK_MATMUL(gk_matmul_coalesced_f64, matmul_coalesced, double)

#endif
