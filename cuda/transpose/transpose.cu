// out[j][i] = a[i][j], for one matrix or for each of a stack. A warp reads a row at full speed; the
// question is how it writes a column. Steps after M. Harris, "An Efficient Matrix Transpose in CUDA
// C/C++" (2013). Only the size of an element matters, so the rows carry bits types.
#include "device.cuh"
#include "strided.cuh"
#include "transpose/copies.h"
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
// Of less than a word. Plain: elements lie side by side on both sides.
#define GK_TRANSPOSE_SMALL_STEPS(size)                                                             \
    GK_TRANSPOSE_ROW(tiled_deep, bits##size, gk_transpose_deep_##size, 64, 64, 256, 1, "four times the tile: sixteen loads of a thread in flight") \
    GK_ROW(transpose, ragged, bits##size, gk_transpose_ragged_##size, "words that lie between two aligned ones: small elements anywhere, 32 bits an access", \
           .takes = GK_TAKES_LAYOUT, .tile_rows = 1024 / size, .tile_columns = 1024 / size, .threads = 256, .alignment = size / 8, .plain = true, .follows = true)
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
    if (at.row + ROWS <= tiles.rows && at.column + COLUMNS <= tiles.columns)
        tile::template move<true>(at, tiles, cell);
    else
        tile::template move<false>(at, tiles, cell);
}

// Where the lines of a tile begin, in bytes from its first: a step apart, or as they are listed.
struct gk_even_lines {
    int64_t step;
    __device__ inline int64_t at(int line) const { return line * step; }
};
struct gk_listed_lines {
    const int64_t *offset;
    __device__ inline int64_t at(int line) const { return offset[line]; }
};

// In bytes from the first of a chain.
__device__ static inline int64_t find_in_chain(const gk_chain &chain, uint32_t i) {
    int64_t offset = 0;
#pragma unroll
    for (int axis = 0; axis < GK_CHAIN_AXES - 1; axis++) {
        uint32_t rest = gk_divide(i, chain.length[axis]);
        offset += (int64_t)(i - rest * chain.length[axis].value) * chain.step[axis];
        i = rest;
    }
    return offset + (int64_t)i * chain.step[GK_CHAIN_AXES - 1];
}

// Elements of less than a word, in rows that begin anywhere: a word is put together of the two aligned ones it
// lies in, both where it is read and, out of shared memory, where it is written. A tile writes the words of
// its columns that begin in it, for which it reads a square's rows more; the elements in front of the
// first word of a column, and behind its last, go alone.
template <typename T> struct gk_ragged_tile {
    enum { E = sizeof(uint32_t) / sizeof(T), WORDS = 32, SIDE = WORDS * E, SQUARES = WORDS / LINES, READ = SIDE + E };
    typedef uint32_t cells[E][WORDS][WORDS + 1];
    typedef gk_square<T, uint32_t, E> square;
    cells &cell;
    int64_t rows, columns; // that there are from the tile's first on

    // The word at `from`, out of aligned ones that end no later than `end`. All loads of a thread are under way
    // at once.
    template <bool WHOLE> __device__ static inline uint32_t load(const char *from, const char *end) {
        const unsigned shift = (uintptr_t)from % sizeof(uint32_t);
        const char *low = from - shift, *high = low + (shift > 0 ? sizeof(uint32_t) : 0);
        const uint32_t below = WHOLE || low + sizeof(uint32_t) <= end ? *(const uint32_t *)low : 0;
        const uint32_t above = WHOLE || high + sizeof(uint32_t) <= end ? *(const uint32_t *)high : 0;
        return __funnelshift_r(below, above, shift * 8);
    }
    // The first `end` elements of a word.
    __device__ static inline void store(char *to, uint32_t word, int64_t end) {
        for (int e = 0; e < E && e < end; e++)
            ((T *)to)[e] = (T)(word >> (e * sizeof(T) * 8));
    }

    // The squares `y`, y + LINES, ... of a tile.
    template <bool WHOLE, int COUNT, typename PLACES> __device__ inline void read(const char *a, const PLACES &row, int y) const {
        const int x = threadIdx.x % WORDS;
        square turned[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; i++)
#pragma unroll
            for (int e = 0; e < E; e++) {
                const int line = (y + i * LINES) * E + e;
                const bool is_there = WHOLE || line < rows;
                const char *from = a + (is_there ? row.at(line) : 0);
                turned[i].word[e] = load<WHOLE>(from + x * sizeof(uint32_t), is_there ? from + columns * sizeof(T) : NULL);
            }
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            turned[i].turn();
#pragma unroll
            for (int e = 0; e < E; e++)
                cell[e][x][y + i * LINES] = turned[i].word[e];
        }
    }
    // The elements of a row behind its last aligned word, a row a thread.
    template <typename PLACES> __device__ inline void read_ends(const char *a, const PLACES &row) const {
        const int line = threadIdx.x;
        if (line >= READ || line >= rows)
            return;
        const T *from = (const T *)(a + row.at(line));
        const int over = (int)((uintptr_t)(from + columns) % sizeof(uint32_t) / sizeof(T));
        for (int64_t i = columns - over < 0 ? 0 : columns - over; i < columns && i < SIDE; i++)
            ((T *)&cell[i % E][i / E][line / E])[line % E] = from[i];
    }
    // `first`: the tile has the columns' first elements.
    template <bool WHOLE, typename PLACES> __device__ inline void write(char *out, const PLACES &column, bool first) const {
        const int x = threadIdx.x % WORDS;
#pragma unroll 4
        for (int i = threadIdx.x / WORDS; i < SIDE; i += LINES) {
            if (!WHOLE && i >= columns)
                break;
            char *to = out + column.at(i);
            const uint32_t *words = cell[i % E][i / E];
            const int before = (int)(-(uintptr_t)to % sizeof(uint32_t)) / (int)sizeof(T), begin = x * E + before;
            const uint32_t word = __funnelshift_r(words[x], words[x + 1], before * (int)sizeof(T) * 8);
            if (WHOLE || begin + E <= rows)
                *(uint32_t *)(to + begin * sizeof(T)) = word;
            else
                store(to + begin * sizeof(T), word, rows - begin);
            if (first && x == 0)
                store(to, words[0], before < rows ? before : rows);
        }
    }

    template <bool WHOLE, typename PLACES> __device__ inline void move_part(const gk_spot &at, const PLACES &row, const PLACES &column) const {
        const int y = threadIdx.x / WORDS;
        read<WHOLE, SQUARES>(at.a, row, y);
        if (y == 0)
            read<WHOLE, 1>(at.a, row, WORDS);
        __syncthreads();
        if (!WHOLE) {
            read_ends(at.a, row);
            __syncthreads();
        }
        write<WHOLE>(at.out, column, at.row == 0);
    }
    template <typename PLACES> __device__ inline void move(const gk_spot &at, const PLACES &row, const PLACES &column) const {
        if (rows >= READ && columns >= READ)
            move_part<true>(at, row, column);
        else
            move_part<false>(at, row, column);
    }
};

// Where rows and columns begin that run over several axes is found once for a tile.
template <typename T>
__device__ static inline void transpose_ragged(char *out, const char *a, const gk_chain_tiles &how, const gk_layout &stack) {
    enum { LAST = GK_CHAIN_AXES - 1 };
    typedef gk_ragged_tile<T> ragged;
    __shared__ typename ragged::cells cell;
    __shared__ int64_t begin[ragged::READ + ragged::SIDE];
    gk_spot at = block_spot(out, a, how.tiles, stack, ragged::SIDE, ragged::SIDE);
    const ragged tile = {cell, (int64_t)(how.tiles.rows - at.row), (int64_t)(how.tiles.columns - at.column)};
    at.a += at.column * sizeof(T);
    at.out += at.row * sizeof(T);
    if (how.is_even) {
        const gk_even_lines row = {how.rows.step[LAST]}, column = {how.columns.step[LAST]};
        at.a += (int64_t)at.row * row.step;
        at.out += (int64_t)at.column * column.step;
        tile.move(at, row, column);
        return;
    }
    for (int i = threadIdx.x; i < ragged::READ + ragged::SIDE; i += THREADS) {
        const int line = i - ragged::READ; // of the columns
        if (line < 0 && i < tile.rows)
            begin[i] = find_in_chain(how.rows, (uint32_t)at.row + i);
        else if (line >= 0 && line < tile.columns)
            begin[i] = find_in_chain(how.columns, (uint32_t)at.column + line);
    }
    __syncthreads();
    tile.move(at, gk_listed_lines{begin}, gk_listed_lines{begin + ragged::READ});
}

#define GK_TRANSPOSE(name, threads, blocks, ...) GK_TRANSPOSE_BY(gk_tiles, name, threads, blocks, __VA_ARGS__)
#define GK_TRANSPOSE_BY(tiles, name, threads, blocks, ...)                                         \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                  \
        gk_transpose_##name(char *out, const char *a, tiles how, gk_layout stack) {                \
        gk_follow();                                                                               \
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
GK_TRANSPOSE_BY(gk_chain_tiles, ragged_8, THREADS, 3, transpose_ragged<uint8_t>)
GK_TRANSPOSE_BY(gk_chain_tiles, ragged_16, THREADS, 4, transpose_ragged<uint16_t>)
#define GK_WIDE_KERNEL(bits, T, WORD, bytes, aligned, down, across, threads, blocks)               \
    GK_TRANSPOSE(wide_##bits, threads, blocks, transpose_vectorized<T, WORD, down, across, threads>)
GK_TRANSPOSE_WIDE(GK_WIDE_KERNEL)

#endif
