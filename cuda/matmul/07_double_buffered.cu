// Two tiles of each operand in shared memory: while the threads multiply one pair, the next one is on its
// way, from memory to shared memory with no register between (cp.async, from capability 8.0 on). One barrier
// a tile is enough, before the next is sent for. On an H200 47.6 TFLOP/s at 4096 and
// 48.3 at 8192, 93 and 94 % of cuBLAS, and 48.9 of a.T @ b at 4096, whose tiles come four elements at a time.
#include "matmul/async.cuh"

GK_SQUARE_ROW(double_buffered, gk_matmul_double_buffered_f32, 16, "the next tiles are on their way while these are multiplied")

#ifndef GK_ROWS_ONLY

__device__ static inline void matmul_double_buffered(float *c, const float *a, const float *b, const gk_product &of, size_t at) {
    gk_corner corner = gk_tile_corner(at, of.n, GK_SQUARE_SIDE, GK_SQUARE_SIDE);
    gk_multiply_buffered(c, a, b, of, corner, {threadIdx.x % 16, threadIdx.x / 16});
}

GK_TILES(gk_matmul_double_buffered_f32, matmul_double_buffered, GK_SQUARE_THREADS)

#endif
