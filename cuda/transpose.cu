// out[j][i] = a[i][j], for one matrix or for each of a stack. A warp reads a row at full speed; the
// question is how it writes a column. Steps after M. Harris, "An Efficient Matrix Transpose in CUDA
// C/C++" (2013). Only the size of an element matters, so the rows carry bits types.
#include "device.cuh"
#include "strided.cuh"

// One line a size of element: bits, type, the word that is moved at a time and its alignment, how
// many words a tile of the last step has a side.
#define GK_TRANSPOSE_SIZES(X)                                                                                \
    X(8, uint8_t, uint32_t, 4, 32)                                                                 \
    X(16, uint16_t, uint32_t, 4, 32)                                                               \
    X(32, uint32_t, uint32_t, 4, 64)                                                               \
    X(64, uint64_t, uint64_t, 8, 32)                                                               \
    X(128, uint4, uint4, 16, 32)

#define GK_TRANSPOSE_STEPS(size, T, WORD, alignment, side)                                                   \
    GK_TILE(transpose, naive, bits##size, gk_transpose_naive_##size, 32, 32, 256, 1, 75, "writes down a column: one transaction a thread") \
    GK_TILE(transpose, tiled, bits##size, gk_transpose_tiled_##size, 32, 32, 256, 1, 75, "a tile in shared memory: both sides coalesced") \
    GK_TILE(transpose, tiled_padded, bits##size, gk_transpose_padded_##size, 32, 32, 256, 1, 75, "one column of padding: no bank conflicts") \
    GK_TILE(transpose, vectorized, bits##size, gk_transpose_vectorized_##size, side * alignment * 8 / size, side * alignment * 8 / size, 256, alignment, 75, "no less than 32 bits an access, small elements turned in registers; more loads in flight")
GK_TRANSPOSE_SIZES(GK_TRANSPOSE_STEPS)

#ifndef GK_ROWS_ONLY

enum { TILE = 32, LINES = 8, THREADS = TILE * LINES }; // 32 x 8 threads walk down a tile

// Where the block's tile starts, in rows and columns of its matrix, and the matrix itself.
struct gk_spot {
    char *out;
    const char *a;
    size_t row, column;
};
__device__ static inline gk_spot block_spot(char *out, const char *a, const gk_tiles &tiles, const gk_layout &stack, int side) {
    uint32_t matrix = gk_divide(blockIdx.x, tiles.in_matrix);
    uint32_t tile = blockIdx.x - matrix * tiles.in_matrix.value;
    uint32_t down = gk_divide(tile, tiles.across);
    int64_t offset[2];
    gk_offsets(stack, matrix, offset);
    return {out + offset[0], a + offset[1], (size_t)down * side, (size_t)(tile - down * tiles.across.value) * side};
}

template <typename T>
__device__ static inline T *cell_at(const void *matrix, size_t row, int64_t row_step, size_t column, int64_t column_step) {
    return (T *)((char *)matrix + (int64_t)row * row_step + (int64_t)column * column_step);
}

template <typename T>
__device__ static inline void transpose_naive(char *out, const char *a, const gk_tiles &tiles, const gk_layout &stack) {
    gk_spot at = block_spot(out, a, tiles, stack, TILE);
    size_t column = at.column + threadIdx.x % TILE;
    for (int y = threadIdx.x / TILE; y < TILE; y += LINES) {
        size_t row = at.row + y;
        if (row < tiles.rows && column < tiles.columns)
            *cell_at<T>(at.out, row, tiles.to_row, column, tiles.to_column) =
                *cell_at<const T>(at.a, row, tiles.from_row, column, tiles.from_column);
    }
}

// A 32 x 32 tile of words puts a column in one bank, so that reading it takes 32 turns; a pitch of
// 33 spreads the column over all 32 banks.
template <int PITCH, typename T>
__device__ static inline void transpose_tiled(char *out, const char *a, const gk_tiles &tiles, const gk_layout &stack) {
    __shared__ T cell[TILE][PITCH];
    gk_spot at = block_spot(out, a, tiles, stack, TILE);
    int x = threadIdx.x % TILE;
    for (int y = threadIdx.x / TILE; y < TILE; y += LINES)
        if (at.row + y < tiles.rows && at.column + x < tiles.columns)
            cell[y][x] = *cell_at<const T>(at.a, at.row + y, tiles.from_row, at.column + x, tiles.from_column);
    __syncthreads();
    for (int y = threadIdx.x / TILE; y < TILE; y += LINES)
        if (at.row + x < tiles.rows && at.column + y < tiles.columns)
            *cell_at<T>(at.out, at.row + x, tiles.to_row, at.column + y, tiles.to_column) = cell[x][y];
}

// A square of as many elements a side as a word holds, turned: word i gets element i of each word.
template <typename T, typename WORD, int E> struct gk_square {
    WORD word[E];

    __device__ inline void turn() {
        T from[E][E], to[E][E];
        memcpy(from, word, sizeof from);
#pragma unroll
        for (int i = 0; i < E; i++)
#pragma unroll
            for (int j = 0; j < E; j++)
                to[j][i] = from[i][j];
        memcpy(word, to, sizeof to);
    }
};

// SIDE x SIDE squares a tile. The words of a square stand SIDE rows apart in shared memory, so that
// neighbouring lanes, which write down a column, are one padded row apart. Sides are multiples of a
// word and words are aligned, or the row is not chosen.
template <typename T, typename WORD, int SIDE>
__device__ static inline void transpose_vectorized(char *out, const char *a, const gk_tiles &tiles, const gk_layout &stack) {
    enum { E = sizeof(WORD) / sizeof(T), SQUARES = SIDE * SIDE / THREADS, OUT = SIDE * SIDE * E / THREADS };
    __shared__ WORD cell[E][SIDE][SIDE + 1];
    gk_spot at = block_spot(out, a, tiles, stack, SIDE * E);
    gk_square<T, WORD, E> square[SQUARES];
#pragma unroll
    for (int i = 0; i < SQUARES; i++) {
        int x = (i * THREADS + threadIdx.x) % SIDE, y = (i * THREADS + threadIdx.x) / SIDE;
        size_t row = at.row + y * E, column = at.column + x * E;
        if (row < tiles.rows && column < tiles.columns)
#pragma unroll
            for (int e = 0; e < E; e++)
                square[i].word[e] = *cell_at<const WORD>(at.a, row + e, tiles.from_row, column, tiles.from_column);
    }
#pragma unroll
    for (int i = 0; i < SQUARES; i++) {
        int x = (i * THREADS + threadIdx.x) % SIDE, y = (i * THREADS + threadIdx.x) / SIDE;
        if (at.row + y * E >= tiles.rows || at.column + x * E >= tiles.columns)
            continue;
        square[i].turn();
#pragma unroll
        for (int e = 0; e < E; e++)
            cell[e][x][y] = square[i].word[e];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < OUT; i++) {
        int x = (i * THREADS + threadIdx.x) % SIDE, y = (i * THREADS + threadIdx.x) / SIDE;
        size_t row = at.row + x * E, column = at.column + y;
        if (row < tiles.rows && column < tiles.columns)
            *cell_at<WORD>(at.out, row, tiles.to_row, column, tiles.to_column) = cell[y % E][y / E][x];
    }
}

#define GK_TRANSPOSE(name, ...)                                                                 \
    extern "C" __global__ void __launch_bounds__(THREADS, 4)                                       \
        gk_transpose_##name(char *out, const char *a, gk_tiles tiles, gk_layout stack) {           \
        __VA_ARGS__(out, a, tiles, stack);                                                         \
    }
#define GK_KERNELS(bits, T, WORD, alignment, side)                                                 \
    GK_TRANSPOSE(naive_##bits, transpose_naive<T>)                                              \
    GK_TRANSPOSE(tiled_##bits, transpose_tiled<TILE, T>)                                        \
    GK_TRANSPOSE(padded_##bits, transpose_tiled<TILE + 1, T>)                                   \
    GK_TRANSPOSE(vectorized_##bits, transpose_vectorized<T, WORD, side>)
GK_TRANSPOSE_SIZES(GK_KERNELS)

#endif
