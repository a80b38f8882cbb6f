// A block's tiles of A and B go through shared memory: each element is read from memory once for the 32
// threads that need it, not once for each. Of a transposed operand they are fetched down its columns,
// which lie side by side in memory. On an H200 8.4 TFLOP/s at 4096, 16 % of cuBLAS.
#include "matmul/matmul.cuh"

GK_MATMUL_ROW(tiled, float32, gk_matmul_tiled_f32, "tiles of A and B in shared memory: each element is read from memory n / 32 times, not n, and side by side also of transposed operands")
GK_MATMUL_ROW(tiled, float64, gk_matmul_tiled_f64, "tiles of A and B in shared memory")
GK_MATMUL_ROW(tiled, float16, gk_matmul_tiled_f16, "tiles in shared memory, accumulated in float32, rounded once")
GK_MATMUL_ROW(tiled, bfloat16, gk_matmul_tiled_bf16, "tiles in shared memory, accumulated in float32, rounded once")

// Unsigned integers have the bits of signed ones, and a bool is "or" of "and"s.
#define GK_TILED_ROW(dtype, name, ...)           GK_MATMUL_ROW(tiled, dtype, gk_matmul_tiled_##name, "tiles in shared memory; wraps around as NumPy does")
#define GK_TILED_AS_SIGNED(dtype, name, T, bytes, text, number, none, kernel) GK_TILED_ROW(dtype, kernel)
GK_SIGNED_DTYPES(GK_TILED_ROW, )
GK_UNSIGNED_AS_SIGNED(GK_TILED_AS_SIGNED, )
GK_BOOLEAN_DTYPES(GK_TILED_ROW, )

// matmul(..., dtype="int32") of what is narrower.
#define GK_TILED_WIDE_NOTE "tiles in shared memory; int32 products of narrower integers, added up in int32"
GK_MATMUL_ROW_OF(matmul_wide, tiled, int8, gk_matmul_tiled_i8_i32, GK_TILED_WIDE_NOTE)
GK_MATMUL_ROW_OF(matmul_wide, tiled, uint8, gk_matmul_tiled_u8_i32, GK_TILED_WIDE_NOTE)
GK_MATMUL_ROW_OF(matmul_wide, tiled, int16, gk_matmul_tiled_i16_i32, GK_TILED_WIDE_NOTE)
GK_MATMUL_ROW_OF(matmul_wide, tiled, uint16, gk_matmul_tiled_u16_i32, GK_TILED_WIDE_NOTE)

#ifndef GK_ROWS_ONLY

// What sums are carried in: float32 for the half types, and the result's own type where that is wider.
template <typename T, typename C> struct matmul_carried { typedef C type; };
template <typename T> struct matmul_carried<T, T> { typedef typename gk_traits<T>::wide type; };

template <typename W> __device__ static inline W gk_add_product(W sum, W x, W y) { return gk_plus(sum, gk_times(x, y)); }
__device__ static inline float gk_add_product(float sum, float x, float y) { return sum + x * y; }
__device__ static inline double gk_add_product(double sum, double x, double y) { return sum + x * y; }

// Which element of a tile a thread fetches: neighbouring threads neighbours in memory, which are the next
// ones down the column where the operand is transposed.
struct matmul_place {
    unsigned row, column;
};
__device__ static inline matmul_place place_in_tile(unsigned x, unsigned y, bool down) {
    return down ? matmul_place{x, y} : matmul_place{y, x};
}

template <typename C, typename T>
__device__ static inline void matmul_tiled(C *c, const T *a, const T *b, const gk_product &of, size_t at) {
    enum { TILE = GK_MATMUL_TILE };
    typedef typename matmul_carried<T, C>::type W;
    // Rows of A are read four elements at a time, and a column of B lies in as many banks as a row.
    __shared__ __align__(32) T tile_a[TILE][TILE + 4], tile_b[TILE][TILE + 1];
    unsigned x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    gk_corner tile = gk_tile_corner(at, of.n, TILE, TILE);
    size_t row = tile.row + y, column = tile.column + x;
    matmul_place from_a = place_in_tile(x, y, of.a_row == 1), from_b = place_in_tile(x, y, of.b_row == 1);
    size_t a_row = tile.row + from_a.row, b_column = tile.column + from_b.column;
    a += a_row * of.a_row + from_a.column * of.a_column;
    b += from_b.row * of.b_row + b_column * of.b_column;
    W sum = 0;
    for (size_t step = 0; step < of.k; step += TILE, a += TILE * of.a_column, b += TILE * of.b_row) {
        // Elements beyond an edge are zeros, so that the loop below needs no test.
        tile_a[from_a.row][from_a.column] = a_row < of.m && step + from_a.column < of.k ? gk_read<T>(a) : T(0.0f);
        tile_b[from_b.row][from_b.column] = step + from_b.row < of.k && b_column < of.n ? gk_read<T>(b) : T(0.0f);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i += 4) {
            gk_vector<T, 4> four = *(const gk_vector<T, 4> *)&tile_a[y][i];
#pragma unroll
            for (int e = 0; e < 4; e++)
                sum = gk_add_product(sum, gk_as<W>(four[e]), gk_as<W>(tile_b[i + e][x]));
        }
        __syncthreads(); // nobody overwrites a tile that a slower thread still reads
    }
    if (row < of.m && column < of.n)
        c[row * of.n + column] = gk_as<C>(sum);
}

GK_MATMUL(gk_matmul_tiled_f32, matmul_tiled, float)
GK_MATMUL(gk_matmul_tiled_f64, matmul_tiled, double)
GK_MATMUL(gk_matmul_tiled_f16, matmul_tiled, float16)
GK_MATMUL(gk_matmul_tiled_bf16, matmul_tiled, bfloat16)
#define GK_TILED(dtype, name, T, ...) GK_MATMUL(gk_matmul_tiled_##name, matmul_tiled, T)
GK_SIGNED_DTYPES(GK_TILED, )
GK_BOOLEAN_DTYPES(GK_TILED, )
GK_MATMUL_TO(gk_matmul_tiled_i8_i32, matmul_tiled, int8_t, int32_t)
GK_MATMUL_TO(gk_matmul_tiled_u8_i32, matmul_tiled, uint8_t, int32_t)
GK_MATMUL_TO(gk_matmul_tiled_i16_i32, matmul_tiled, int16_t, int32_t)
GK_MATMUL_TO(gk_matmul_tiled_u16_i32, matmul_tiled, uint16_t, int32_t)

#endif
