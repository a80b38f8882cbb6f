// out[j][i] = a[i][j]. A warp reads a row at full speed; the question is how it writes a column.
// Steps after M. Harris, "An Efficient Matrix Transpose in CUDA C/C++" (2013). Only the size of an
// element matters, so the rows carry bits types.
#include "device.cuh"

GK_TILE(transpose, naive, bits8, gk_transpose_naive_8, 32, 32, 256, 75, "writes down a column: one transaction a thread")
GK_TILE(transpose, tiled, bits8, gk_transpose_tiled_8, 32, 32, 256, 75, "a tile in shared memory: both sides coalesced")
GK_TILE(transpose, tiled_padded, bits8, gk_transpose_padded_8, 32, 32, 256, 75, "one column of padding: no bank conflicts")
GK_TILE(transpose, naive, bits16, gk_transpose_naive_16, 32, 32, 256, 75, "writes down a column: one transaction a thread")
GK_TILE(transpose, tiled, bits16, gk_transpose_tiled_16, 32, 32, 256, 75, "a tile in shared memory: both sides coalesced")
GK_TILE(transpose, tiled_padded, bits16, gk_transpose_padded_16, 32, 32, 256, 75, "one column of padding: no bank conflicts")
GK_TILE(transpose, naive, bits32, gk_transpose_naive_32, 32, 32, 256, 75, "writes down a column: one transaction a thread")
GK_TILE(transpose, tiled, bits32, gk_transpose_tiled_32, 32, 32, 256, 75, "a tile in shared memory: both sides coalesced")
GK_TILE(transpose, tiled_padded, bits32, gk_transpose_padded_32, 32, 32, 256, 75, "one column of padding: no bank conflicts")
GK_TILE(transpose, naive, bits64, gk_transpose_naive_64, 32, 32, 256, 75, "writes down a column: one transaction a thread")
GK_TILE(transpose, tiled, bits64, gk_transpose_tiled_64, 32, 32, 256, 75, "a tile in shared memory: both sides coalesced")
GK_TILE(transpose, tiled_padded, bits64, gk_transpose_padded_64, 32, 32, 256, 75, "one column of padding: no bank conflicts")

#ifndef GK_ROWS_ONLY

enum { TILE = 32, LINES = 8 }; // 32 x 8 threads walk down a 32 x 32 tile in four steps

template <typename T>
__device__ static inline void transpose_naive(T *out, const T *a, size_t rows, size_t columns) {
    gk_corner tile = gk_tile_corner(columns, TILE, TILE);
    size_t column = tile.column + threadIdx.x % TILE;
    for (int y = threadIdx.x / TILE; y < TILE; y += LINES) {
        size_t row = tile.row + y;
        if (row < rows && column < columns)
            out[column * rows + row] = a[row * columns + column];
    }
}

// A 32 x 32 tile of words puts a column in one bank, so that reading it takes 32 turns; a pitch of
// 33 spreads the column over all 32 banks.
template <int PITCH, typename T>
__device__ static inline void transpose_tiled(T *out, const T *a, size_t rows, size_t columns) {
    __shared__ T cell[TILE][PITCH];
    gk_corner tile = gk_tile_corner(columns, TILE, TILE);
    int x = threadIdx.x % TILE;
    for (int y = threadIdx.x / TILE; y < TILE; y += LINES)
        if (tile.row + y < rows && tile.column + x < columns)
            cell[y][x] = a[(tile.row + y) * columns + tile.column + x];
    __syncthreads();
    for (int y = threadIdx.x / TILE; y < TILE; y += LINES)
        if (tile.row + x < rows && tile.column + y < columns)
            out[(tile.column + y) * rows + tile.row + x] = cell[x][y];
}

#define GK_TRANSPOSE(bits)                                                                         \
    extern "C" __global__ void gk_transpose_naive_##bits(uint##bits##_t *out, const uint##bits##_t *a, size_t rows, size_t columns) { \
        transpose_naive(out, a, rows, columns);                                                    \
    }                                                                                              \
    extern "C" __global__ void gk_transpose_tiled_##bits(uint##bits##_t *out, const uint##bits##_t *a, size_t rows, size_t columns) { \
        transpose_tiled<TILE>(out, a, rows, columns);                                              \
    }                                                                                              \
    extern "C" __global__ void gk_transpose_padded_##bits(uint##bits##_t *out, const uint##bits##_t *a, size_t rows, size_t columns) { \
        transpose_tiled<TILE + 1>(out, a, rows, columns);                                          \
    }

GK_TRANSPOSE(8)
GK_TRANSPOSE(16)
GK_TRANSPOSE(32)
GK_TRANSPOSE(64)

#endif
