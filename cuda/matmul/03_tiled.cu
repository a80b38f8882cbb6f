// A block's tiles of A and B go through shared memory: each element is read from memory once for the 32
// threads that need it, not once for each.
#include "matmul/matmul.cuh"

GK_MATMUL_ROW(tiled, float32, gk_matmul_tiled_f32, "tiles of A and B in shared memory: each element is read from memory n / 32 times, not n")
GK_MATMUL_ROW(tiled, float64, gk_matmul_tiled_f64, "tiles of A and B in shared memory")
GK_MATMUL_ROW(tiled, float16, gk_matmul_tiled_f16, "tiles in shared memory, accumulated in float32, rounded once")
GK_MATMUL_ROW(tiled, bfloat16, gk_matmul_tiled_bf16, "tiles in shared memory, accumulated in float32, rounded once")

// Unsigned integers have the bits of signed ones, and a bool is "or" of "and"s.
#define GK_TILED_ROW(dtype, name, ...)           GK_MATMUL_ROW(tiled, dtype, gk_matmul_tiled_##name, "tiles in shared memory; wraps around as NumPy does")
#define GK_TILED_AS_SIGNED(dtype, name, T, bytes, ...) GK_TILED_AS_SIGNED_##bytes(dtype)
#define GK_TILED_AS_SIGNED_1(dtype)              GK_TILED_ROW(dtype, i8)
#define GK_TILED_AS_SIGNED_2(dtype)              GK_TILED_ROW(dtype, i16)
#define GK_TILED_AS_SIGNED_4(dtype)              GK_TILED_ROW(dtype, i32)
#define GK_TILED_AS_SIGNED_8(dtype)              GK_TILED_ROW(dtype, i64)
GK_SIGNED_DTYPES(GK_TILED_ROW, )
GK_UNSIGNED_DTYPES(GK_TILED_AS_SIGNED, )
GK_BOOLEAN_DTYPES(GK_TILED_ROW, )

#ifndef GK_ROWS_ONLY

template <typename W> __device__ static inline W gk_add_product(W sum, W x, W y) { return gk_plus(sum, gk_times(x, y)); }
__device__ static inline float gk_add_product(float sum, float x, float y) { return sum + x * y; }
__device__ static inline double gk_add_product(double sum, double x, double y) { return sum + x * y; }

template <typename T>
__device__ static inline void matmul_tiled(T *c, const T *a, const T *b, size_t m, size_t n, size_t k, size_t at) {
    enum { TILE = GK_MATMUL_TILE };
    typedef typename gk_traits<T>::wide W;
    __shared__ T tile_a[TILE][TILE], tile_b[TILE][TILE];
    unsigned x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    gk_corner tile = gk_tile_corner(at, n, TILE, TILE);
    size_t row = tile.row + y, column = tile.column + x;
    W sum = 0;
    for (size_t step = 0; step < k; step += TILE) {
        // Elements beyond an edge are zeros, so that the loop below needs no test.
        tile_a[y][x] = row < m && step + x < k ? gk_read<T>(a + row * k + step + x) : T(0.0f);
        tile_b[y][x] = step + y < k && column < n ? gk_read<T>(b + (step + y) * n + column) : T(0.0f);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++)
            sum = gk_add_product(sum, gk_as<W>(tile_a[y][i]), gk_as<W>(tile_b[i][x]));
        __syncthreads(); // nobody overwrites a tile that a slower thread still reads
    }
    if (row < m && column < n)
        c[row * n + column] = gk_as<T>(sum);
}

GK_MATMUL(gk_matmul_tiled_f32, matmul_tiled, float)
GK_MATMUL(gk_matmul_tiled_f64, matmul_tiled, double)
GK_MATMUL(gk_matmul_tiled_f16, matmul_tiled, float16)
GK_MATMUL(gk_matmul_tiled_bf16, matmul_tiled, bfloat16)
#define GK_TILED(dtype, name, T, ...) GK_MATMUL(gk_matmul_tiled_##name, matmul_tiled, T)
GK_SIGNED_DTYPES(GK_TILED, )
GK_BOOLEAN_DTYPES(GK_TILED, )

#endif
