// A block's tiles of A and B go through shared memory: each element is read from memory once for the 32
// threads that need it, not once for each.
#include "matmul/matmul.cuh"

GK_MATMUL_ROW(tiled, float32, gk_matmul_tiled_f32, "tiles of A and B in shared memory: each element is read from memory n / 32 times, not n")
GK_MATMUL_ROW(tiled, float64, gk_matmul_tiled_f64, "tiles of A and B in shared memory")
GK_MATMUL_ROW(tiled, float16, gk_matmul_tiled_f16, "tiles in shared memory, accumulated in float32, rounded once")
GK_MATMUL_ROW(tiled, bfloat16, gk_matmul_tiled_bf16, "tiles in shared memory, accumulated in float32, rounded once")

#ifndef GK_ROWS_ONLY

template <typename T>
__device__ static inline void matmul_tiled(T *c, const T *a, const T *b, size_t m, size_t n, size_t k) {
    enum { TILE = GK_MATMUL_TILE };
    typedef typename gk_traits<T>::wide W;
    __shared__ T tile_a[TILE][TILE], tile_b[TILE][TILE];
    unsigned x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    gk_corner tile = gk_tile_corner(n, TILE, TILE);
    size_t row = tile.row + y, column = tile.column + x;
    W sum = 0;
    for (size_t step = 0; step < k; step += TILE) {
        // Elements beyond an edge are zeros, so that the loop below needs no test.
        tile_a[y][x] = row < m && step + x < k ? a[row * k + step + x] : T(0.0f);
        tile_b[y][x] = step + y < k && column < n ? b[(step + y) * n + column] : T(0.0f);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++)
            sum += gk_as<W>(tile_a[y][i]) * gk_as<W>(tile_b[i][x]);
        __syncthreads(); // nobody overwrites a tile that a slower thread still reads
    }
    if (row < m && column < n)
        c[row * n + column] = gk_as<T>(sum);
}

GK_MATMUL(gk_matmul_tiled_f32, matmul_tiled, float)
GK_MATMUL(gk_matmul_tiled_f64, matmul_tiled, double)
GK_MATMUL(gk_matmul_tiled_f16, matmul_tiled, float16)
GK_MATMUL(gk_matmul_tiled_bf16, matmul_tiled, bfloat16)

#endif
