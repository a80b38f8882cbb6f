// The first idea: a thread an element of C. Neighbouring threads take neighbouring rows, which lie n
// elements apart, so that a warp's load of A is 32 transactions where one would do. On an H200 0.5 TFLOP/s
// at 4096, 1 % of cuBLAS.
#include "matmul/matmul.cuh"

GK_MATMUL_ROW(naive, float32, gk_matmul_naive_f32, "neighbouring threads take neighbouring rows: every load of A and store of C is uncoalesced")
GK_MATMUL_ROW(naive, float64, gk_matmul_naive_f64, "neighbouring threads take neighbouring rows: uncoalesced")

#ifndef GK_ROWS_ONLY

template <typename T>
__device__ static inline void matmul_naive(T *c, const T *a, const T *b, const gk_product &of, size_t at) {
    enum { TILE = GK_MATMUL_TILE };
    gk_corner tile = gk_tile_corner(at, of.n, TILE, TILE);
    gk_dot_product(c, a, b, tile.row + threadIdx.x % TILE, tile.column + threadIdx.x / TILE, of);
}

GK_MATMUL(gk_matmul_naive_f32, matmul_naive, float)
GK_MATMUL(gk_matmul_naive_f64, matmul_naive, double)

#endif
