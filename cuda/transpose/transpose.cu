// out[j][i] = a[i][j], for one matrix or for each of a stack. A warp reads a row at full speed; the
// question is how it writes a column. Steps after M. Harris, "An Efficient Matrix Transpose in CUDA
// C/C++" (2013). Only the size of an element matters, so the rows carry bits types.
#include "device.cuh"
#include "strided.cuh"
#include "transpose/copies.h"
#include "transpose/ragged.cuh"
#include "transpose/turn.cuh"

// One line a size of element: bits, type; of the last step the word that is moved at a time, its bytes and its
// alignment, the words a tile has down and across, threads a block, blocks that shall fit at a time. Words
// that are elements lie where these do, which is anywhere.
#define GK_TRANSPOSE_SIZES(X)                                                                                \
    X(8, uint8_t, uint32_t, 4, 4, 16, 32, 256, 4)                                                  \
    X(16, uint16_t, uint32_t, 4, 4, 32, 32, 256, 4)                                                \
    X(32, uint32_t, uint32_t, 4, 1, 64, 64, 256, 4)                                                \
    X(64, uint64_t, uint64_t, 8, 1, 32, 32, 256, 4)                                                \
    X(128, uint4, uint4, 16, 1, 32, 32, 256, 4)

#define GK_TRANSPOSE_ROW(variant, dtype, symbol, down, across, block, aligned, note)               \
    GK_ROW(transpose, variant, dtype, symbol, note, .takes = GK_TAKES_LAYOUT, .tile_rows = down, .tile_columns = across, .threads = block, .alignment = aligned, .follows = true)
#define GK_TRANSPOSE_STEPS(size, T, WORD, bytes, aligned, down, across, threads, blocks)                     \
    GK_TRANSPOSE_PLAIN_STEPS(size)                                                                 \
    GK_TRANSPOSE_SMALL_STEPS_##size                                                                \
    GK_TRANSPOSE_ROW(vectorized, bits##size, gk_transpose_vectorized_##size, down * bytes * 8 / size, across * bytes * 8 / size, threads, aligned, "no less than 32 bits an access, small elements turned in registers; more loads in flight")
#define GK_TRANSPOSE_PLAIN_STEPS(size)                                                             \
    GK_TRANSPOSE_ROW(naive, bits##size, gk_transpose_naive_##size, 32, 32, 256, 1, "writes down a column: one transaction a thread") \
    GK_TRANSPOSE_ROW(tiled, bits##size, gk_transpose_tiled_##size, 32, 32, 256, 1, "a tile in shared memory: both sides coalesced") \
    GK_TRANSPOSE_ROW(tiled_padded, bits##size, gk_transpose_padded_##size, 32, 32, 256, 1, "one column of padding: no bank conflicts")
// Of less than a word.
#define GK_TRANSPOSE_SMALL_STEPS(size)                                                             \
    GK_TRANSPOSE_ROW(tiled_deep, bits##size, gk_transpose_deep_##size, 64, 64, 256, 1, "four times the tile: sixteen loads of a thread in flight")
#define GK_TRANSPOSE_SMALL_STEPS_8 GK_TRANSPOSE_SMALL_STEPS(8)
#define GK_TRANSPOSE_SMALL_STEPS_16 GK_TRANSPOSE_SMALL_STEPS(16)
#define GK_TRANSPOSE_SMALL_STEPS_32
#define GK_TRANSPOSE_SMALL_STEPS_64
#define GK_TRANSPOSE_SMALL_STEPS_128
GK_TRANSPOSE_SIZES(GK_TRANSPOSE_STEPS)

// The same with 64 bits an access.
#define GK_TRANSPOSE_WIDE(X)                                                                       \
    X(16, uint16_t, uint2, 8, 8, 32, 32, 256, 4)                                                   \
    X(32, uint32_t, uint2, 8, 8, 32, 32, 256, 4)
#define GK_TRANSPOSE_WIDE_STEP(size, T, WORD, bytes, aligned, down, across, threads, blocks)                 \
    GK_TRANSPOSE_ROW(vectorized_wide, bits##size, gk_transpose_wide_##size, down * bytes * 8 / size, across * bytes * 8 / size, threads, aligned, "64 bits an access: fewer instructions for the same bytes")
GK_TRANSPOSE_WIDE(GK_TRANSPOSE_WIDE_STEP)

// Plain: elements lie side by side on both sides.
#define GK_RAGGED_ROW(size, T, down, across)                                                                    \
    GK_ROW(transpose, ragged, bits##size, gk_transpose_ragged_##size, "rows and columns that begin anywhere: aligned vectors read as they lie, whole sectors written", \
           .takes = GK_TAKES_LAYOUT, .tile_rows = down * 128 / size, .tile_columns = across * 128 / size, .threads = GK_RAGGED_THREADS, .alignment = size / 8, .plain = true, .follows = true)
GK_RAGGED_SIZES(GK_RAGGED_ROW)

#ifndef GK_ROWS_ONLY

enum { TILE = 32, LINES = 8, THREADS = TILE * LINES }; // 32 x 8 threads walk down a tile

// Where the block's tile starts, in rows and columns of its matrix, and the matrix itself.
struct gk_spot {
    char *out;
    const char *a;
    size_t row, column;
};
// Tiles are walked down the columns: blocks that run at a time then write neighbouring pieces of the
// same rows, which is worth a tenth of the bandwidth.
__device__ static inline gk_spot block_spot(char *out, const char *a, const gk_tiles &tiles, const gk_layout &stack, int rows, int columns) {
    uint32_t matrix = gk_divide(blockIdx.x, tiles.in_matrix);
    uint32_t tile = blockIdx.x - matrix * tiles.in_matrix.value;
    uint32_t across = gk_divide(tile, tiles.down), down = tile - across * tiles.down.value;
    int64_t offset[2];
    gk_offsets(stack, matrix, offset);
    return {out + offset[0], a + offset[1], (size_t)down * rows, (size_t)across * columns};
}

__device__ static inline bool is_inside(const gk_tiles &tiles, size_t row, size_t column) {
    return row < tiles.rows && column < tiles.columns;
}

template <typename T>
__device__ static inline T *cell_at(const void *matrix, size_t row, int64_t row_step, size_t column, int64_t column_step) {
    return (T *)((char *)matrix + (int64_t)row * row_step + (int64_t)column * column_step);
}

template <typename T>
__device__ static inline void transpose_naive(char *out, const char *a, const gk_tiles &tiles, const gk_layout &stack) {
    gk_spot at = block_spot(out, a, tiles, stack, TILE, TILE);
    gk_follow();
    size_t column = at.column + threadIdx.x % TILE;
    for (int y = threadIdx.x / TILE; y < TILE; y += LINES) {
        size_t row = at.row + y;
        if (is_inside(tiles, row, column))
            *cell_at<T>(at.out, row, tiles.to_row, column, tiles.to_column) =
                *cell_at<const T>(at.a, row, tiles.from_row, column, tiles.from_column);
    }
}

// A 32 x 32 tile of words puts a column in one bank, so that reading it takes 32 turns; a pitch of
// 33 spreads the column over all 32 banks.
template <int PITCH, typename T>
__device__ static inline void transpose_tiled(char *out, const char *a, const gk_tiles &tiles, const gk_layout &stack) {
    __shared__ T cell[TILE][PITCH];
    gk_spot at = block_spot(out, a, tiles, stack, TILE, TILE);
    gk_follow();
    int x = threadIdx.x % TILE;
    for (int y = threadIdx.x / TILE; y < TILE; y += LINES)
        if (is_inside(tiles, at.row + y, at.column + x))
            cell[y][x] = *cell_at<const T>(at.a, at.row + y, tiles.from_row, at.column + x, tiles.from_column);
    __syncthreads();
    for (int y = threadIdx.x / TILE; y < TILE; y += LINES)
        if (is_inside(tiles, at.row + x, at.column + y))
            *cell_at<T>(at.out, at.row + x, tiles.to_row, at.column + y, tiles.to_column) = cell[x][y];
}

// A square of as many elements a side as a word holds, turned: word i gets element i of each word.
template <typename T, typename WORD, int E> struct gk_square {
    WORD word[E];

    __device__ inline void turn() { gk_turn<T, E, E>(word); }
};

// DOWN x ACROSS squares a tile. The words of a square stand a plane apart in shared memory, so that
// neighbouring lanes, which write down a column, are one padded row apart. Where a word has several
// elements, sides are multiples of a word, words are aligned and elements lie side by side, or the row is not
// chosen. WHOLE: the tile ends inside of the matrix, and no access has to ask, so that all loads are in
// flight at once.
template <typename T, typename WORD, int DOWN, int ACROSS, int BLOCK> struct gk_turned_tile {
    enum { E = sizeof(WORD) / sizeof(T), SQUARES = DOWN * ACROSS / BLOCK, OUT = SQUARES * E, SIDE_BY_SIDE = E > 1 };
    typedef WORD cells[E][ACROSS][DOWN + 1];

    template <bool WHOLE>
    __device__ static inline void move(const gk_spot &at, const gk_tiles &tiles, cells &cell) {
        gk_square<T, WORD, E> square[SQUARES];
        int rows = (int)(tiles.rows - at.row < DOWN * E ? tiles.rows - at.row : DOWN * E);
        int columns = (int)(tiles.columns - at.column < ACROSS * E ? tiles.columns - at.column : ACROSS * E);
        int x = threadIdx.x % ACROSS, y = threadIdx.x / ACROSS;
        const char *from = cell_at<const char>(at.a, at.row + y * E, tiles.from_row, at.column + x * E, SIDE_BY_SIDE ? sizeof(T) : tiles.from_column);
#pragma unroll
        for (int i = 0; i < SQUARES; i++) {
            int down = i * (BLOCK / ACROSS);
            if (WHOLE || ((y + down) * E < rows && x * E < columns))
#pragma unroll
                for (int e = 0; e < E; e++)
                    square[i].word[e] = *(const WORD *)(from + (down * E + e) * tiles.from_row);
        }
#pragma unroll
        for (int i = 0; i < SQUARES; i++) {
            int down = i * (BLOCK / ACROSS);
            if (!WHOLE && ((y + down) * E >= rows || x * E >= columns))
                continue;
            square[i].turn();
#pragma unroll
            for (int e = 0; e < E; e++)
                cell[e][x][y + down] = square[i].word[e];
        }
        __syncthreads();
        x = threadIdx.x % DOWN, y = threadIdx.x / DOWN;
        char *to = cell_at<char>(at.out, at.row + x * E, SIDE_BY_SIDE ? sizeof(T) : tiles.to_row, at.column + y, tiles.to_column);
#pragma unroll
        for (int i = 0; i < OUT; i++) {
            int across = i * (BLOCK / DOWN);
            if (WHOLE || (x * E < rows && y + across < columns))
                __stcs((WORD *)(to + across * tiles.to_column), cell[(y + across) % E][(y + across) / E][x]);
        }
    }
};

template <typename T, typename WORD, int DOWN, int ACROSS, int BLOCK>
__device__ static inline void transpose_vectorized(char *out, const char *a, const gk_tiles &tiles, const gk_layout &stack) {
    typedef gk_turned_tile<T, WORD, DOWN, ACROSS, BLOCK> tile;
    enum { ROWS = DOWN * tile::E, COLUMNS = ACROSS * tile::E };
    __shared__ typename tile::cells cell;
    gk_spot at = block_spot(out, a, tiles, stack, ROWS, COLUMNS);
    gk_follow();
    if (at.row + ROWS <= tiles.rows && at.column + COLUMNS <= tiles.columns)
        tile::template move<true>(at, tiles, cell);
    else
        tile::template move<false>(at, tiles, cell);
}

template <typename T, int DOWN, int ACROSS>
__device__ static inline void transpose_ragged(char *out, const char *a, const gk_chain_tiles &how, const gk_layout &stack) {
    typedef gk_ragged_tile<T, DOWN, ACROSS> ragged;
    const gk_spot at = block_spot(out, a, how.tiles, stack, ragged::ROWS, ragged::COLUMNS);
    gk_follow();
    gk_move_ragged<T, DOWN, ACROSS>(at.out, at.a, how, at.row, at.column);
}

#define GK_TRANSPOSE(name, threads, blocks, ...) GK_TRANSPOSE_BY(gk_tiles, name, threads, blocks, __VA_ARGS__)
#define GK_TRANSPOSE_BY(tiles, name, threads, blocks, ...)                                         \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                  \
        gk_transpose_##name(char *out, const char *a, tiles how, gk_layout stack) {                \
        __VA_ARGS__(out, a, how, stack);                                                           \
    }
#define GK_KERNELS(bits, T, WORD, bytes, aligned, down, across, threads, blocks)                   \
    GK_TRANSPOSE(naive_##bits, THREADS, 4, transpose_naive<T>)                                  \
    GK_TRANSPOSE(tiled_##bits, THREADS, 4, transpose_tiled<TILE, T>)                            \
    GK_TRANSPOSE(padded_##bits, THREADS, 4, transpose_tiled<TILE + 1, T>)                       \
    GK_TRANSPOSE(vectorized_##bits, threads, blocks, transpose_vectorized<T, WORD, down, across, threads>)
GK_TRANSPOSE_SIZES(GK_KERNELS)
GK_TRANSPOSE(deep_8, THREADS, 4, transpose_vectorized<uint8_t, uint8_t, 64, 64, THREADS>)
GK_TRANSPOSE(deep_16, THREADS, 4, transpose_vectorized<uint16_t, uint16_t, 64, 64, THREADS>)
#define GK_RAGGED_KERNEL(bits, T, down, across) GK_TRANSPOSE_BY(gk_chain_tiles, ragged_##bits, GK_RAGGED_THREADS, 4, transpose_ragged<T, down, across>)
GK_RAGGED_SIZES(GK_RAGGED_KERNEL)
#define GK_WIDE_KERNEL(bits, T, WORD, bytes, aligned, down, across, threads, blocks)               \
    GK_TRANSPOSE(wide_##bits, threads, blocks, transpose_vectorized<T, WORD, down, across, threads>)
GK_TRANSPOSE_WIDE(GK_WIDE_KERNEL)

#endif
