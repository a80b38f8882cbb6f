// C = A x B, row-major: A is m x k, B is k x n, C is m x n. Each variant computes one 32 x 32 tile
// of C a block, one element a thread; what changes is where the operands are read from.
#include "device.cuh"

GK_TILE(matmul, naive, float32, gk_matmul_naive_f32, 32, 32, 1024, 1, 75, "neighbouring threads take neighbouring rows: every load of A and store of C is uncoalesced")
GK_TILE(matmul, coalesced, float32, gk_matmul_coalesced_f32, 32, 32, 1024, 1, 75, "neighbouring threads take neighbouring columns: one transaction a warp")
GK_TILE(matmul, tiled, float32, gk_matmul_tiled_f32, 32, 32, 1024, 1, 75, "tiles of A and B in shared memory: each element is read from memory n / 32 times, not n")
GK_LIBRARY(matmul, cublas, float32, 75, "NVIDIA's library, in full float32 (no tf32)")
GK_TILE(matmul, naive, float64, gk_matmul_naive_f64, 32, 32, 1024, 1, 75, "neighbouring threads take neighbouring rows: uncoalesced")
GK_TILE(matmul, coalesced, float64, gk_matmul_coalesced_f64, 32, 32, 1024, 1, 75, "neighbouring threads take neighbouring columns")
GK_TILE(matmul, tiled, float64, gk_matmul_tiled_f64, 32, 32, 1024, 1, 75, "tiles of A and B in shared memory")
GK_LIBRARY(matmul, cublas, float64, 75, "NVIDIA's library")
GK_TILE(matmul, tiled, float16, gk_matmul_tiled_f16, 32, 32, 1024, 1, 75, "tiles in shared memory, accumulated in float32, rounded once")
GK_LIBRARY(matmul, cublas, float16, 75, "NVIDIA's library on tensor cores, accumulated in float32")
GK_TILE(matmul, tiled, bfloat16, gk_matmul_tiled_bf16, 32, 32, 1024, 1, 75, "tiles in shared memory, accumulated in float32, rounded once")
GK_LIBRARY(matmul, cublas, bfloat16, 75, "NVIDIA's library on tensor cores, accumulated in float32")

#ifndef GK_ROWS_ONLY

enum { TILE = 32 };

// One element of C, read straight from memory.
template <typename T>
__device__ static inline void dot_product(T *c, const T *a, const T *b, size_t row, size_t column, size_t m, size_t n, size_t k) {
    if (row >= m || column >= n)
        return;
    T sum = T(0);
    for (size_t i = 0; i < k; i++)
        sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}

template <typename T>
__device__ static inline void matmul_naive(T *c, const T *a, const T *b, size_t m, size_t n, size_t k) {
    gk_corner tile = gk_tile_corner(n, TILE, TILE);
    dot_product(c, a, b, tile.row + threadIdx.x % TILE, tile.column + threadIdx.x / TILE, m, n, k);
}

template <typename T>
__device__ static inline void matmul_coalesced(T *c, const T *a, const T *b, size_t m, size_t n, size_t k) {
    gk_corner tile = gk_tile_corner(n, TILE, TILE);
    dot_product(c, a, b, tile.row + threadIdx.x / TILE, tile.column + threadIdx.x % TILE, m, n, k);
}

template <typename T>
__device__ static inline void matmul_tiled(T *c, const T *a, const T *b, size_t m, size_t n, size_t k) {
    __shared__ T tile_a[TILE][TILE], tile_b[TILE][TILE];
    unsigned x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    gk_corner tile = gk_tile_corner(n, TILE, TILE);
    size_t row = tile.row + y, column = tile.column + x;
    decltype(gk_widen(T())) sum = 0;
    for (size_t step = 0; step < k; step += TILE) {
        // Elements beyond an edge are zeros, so that the loop below needs no test.
        tile_a[y][x] = row < m && step + x < k ? a[row * k + step + x] : T(0.0f);
        tile_b[y][x] = step + y < k && column < n ? b[(step + y) * n + column] : T(0.0f);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++)
            sum += gk_widen(tile_a[y][i]) * gk_widen(tile_b[i][x]);
        __syncthreads(); // nobody overwrites a tile that a slower thread still reads
    }
    if (row < m && column < n)
        gk_store(c + row * n + column, sum);
}

#define GK_MATMUL(symbol, variant, T)                                                              \
    extern "C" __global__ void __launch_bounds__(TILE *TILE)                                       \
        symbol(T *c, const T *a, const T *b, size_t m, size_t n, size_t k) {                       \
        variant(c, a, b, m, n, k);                                                                 \
    }

GK_MATMUL(gk_matmul_naive_f32, matmul_naive, float)
GK_MATMUL(gk_matmul_coalesced_f32, matmul_coalesced, float)
GK_MATMUL(gk_matmul_tiled_f32, matmul_tiled, float)
GK_MATMUL(gk_matmul_naive_f64, matmul_naive, double)
GK_MATMUL(gk_matmul_coalesced_f64, matmul_coalesced, double)
GK_MATMUL(gk_matmul_tiled_f64, matmul_tiled, double)
GK_MATMUL(gk_matmul_tiled_f16, matmul_tiled, float16)
GK_MATMUL(gk_matmul_tiled_bf16, matmul_tiled, bfloat16)

#endif
