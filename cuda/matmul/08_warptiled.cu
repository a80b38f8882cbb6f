// A warp's threads stand four below one another and eight beside: what they read of A and B in one
// instruction are 64 and 128 bytes side by side, where a row of 16 threads reads 32 and 256. Blocks go
// through C in groups of eight rows of tiles, whose rows of A and columns of B stay in the L2 cache
// meanwhile. That is worth 1 % at most: on an H200 47.4 TFLOP/s at 4096 and 48.2 at 8192, 92 and 94 % of
// cuBLAS, and 48.8, 45.7 and 47.5 of a.T @ b, a @ b.T and a.T @ b.T at 4096.
#include "matmul/async.cuh"

GK_SQUARE_ROW(warptiled, gk_matmul_warptiled_f32, 16, "a warp is 4 x 8 threads: fewer passes through shared memory; tiles in groups that stay in the L2 cache")

#ifndef GK_ROWS_ONLY

__device__ static inline void matmul_warptiled(float *c, const float *a, const float *b, const gk_product &of, size_t at) {
    unsigned lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP;
    gk_square place = {warp % 2 * 8 + lane % 8, warp / 2 * 4 + lane / 8};
    gk_multiply_buffered(c, a, b, of, gk_grouped_corner(at, of.m, of.n, GK_SQUARE_SIDE, GK_SQUARE_SIDE), place);
}

GK_TILES(gk_matmul_warptiled_f32, matmul_warptiled, GK_SQUARE_THREADS)

#endif
