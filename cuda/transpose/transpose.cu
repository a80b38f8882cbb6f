// out[j][i] = a[i][j], for one matrix or for each of a stack. A warp reads a row at full speed; the
// question is how it writes a column. Steps after M. Harris, "An Efficient Matrix Transpose in CUDA
// C/C++" (2013). Only the size of an element matters, so the rows carry bits types.
#include "device.cuh"
#include "strided.cuh"

// One line a size of element: bits, type; of the last step the word that is moved at a time and its
// alignment, the words a tile has down and across, threads a block, blocks that shall fit at a time.
#define GK_TRANSPOSE_SIZES(X)                                                                                \
    X(8, uint8_t, uint32_t, 4, 16, 32, 256, 4)                                                     \
    X(16, uint16_t, uint32_t, 4, 32, 32, 256, 4)                                                   \
    X(32, uint32_t, uint32_t, 4, 64, 64, 256, 4)                                                   \
    X(64, uint64_t, uint64_t, 8, 32, 32, 256, 4)                                                   \
    X(128, uint4, uint4, 16, 32, 32, 256, 4)

#define GK_TRANSPOSE_ROW(variant, dtype, symbol, down, across, block, aligned, note)               \
    GK_ROW(transpose, variant, dtype, symbol, note, .takes = GK_TAKES_LAYOUT, .tile_rows = down, .tile_columns = across, .threads = block, .alignment = aligned, .follows = true)
#define GK_TRANSPOSE_STEPS(size, T, WORD, alignment, down, across, threads, blocks)                          \
    GK_TRANSPOSE_PLAIN_STEPS(size)                                                                 \
    GK_TRANSPOSE_RAGGED_STEP_##size                                                                \
    GK_TRANSPOSE_ROW(vectorized, bits##size, gk_transpose_vectorized_##size, down * alignment * 8 / size, across * alignment * 8 / size, threads, alignment, "no less than 32 bits an access, small elements turned in registers; more loads in flight")
#define GK_TRANSPOSE_PLAIN_STEPS(size)                                                             \
    GK_TRANSPOSE_ROW(naive, bits##size, gk_transpose_naive_##size, 32, 32, 256, 1, "writes down a column: one transaction a thread") \
    GK_TRANSPOSE_ROW(tiled, bits##size, gk_transpose_tiled_##size, 32, 32, 256, 1, "a tile in shared memory: both sides coalesced") \
    GK_TRANSPOSE_ROW(tiled_padded, bits##size, gk_transpose_padded_##size, 32, 32, 256, 1, "one column of padding: no bank conflicts")
// Plain: elements lie side by side on both sides.
#define GK_TRANSPOSE_RAGGED_ROW(size)                                                              \
    GK_ROW(transpose, ragged, bits##size, gk_transpose_ragged_##size, "words that lie between two aligned ones: small elements anywhere, 32 bits an access", \
           .takes = GK_TAKES_LAYOUT, .tile_rows = 1024 / size, .tile_columns = 1024 / size, .threads = 256, .alignment = size / 8, .plain = true, .follows = true)
#define GK_TRANSPOSE_RAGGED_STEP_8 GK_TRANSPOSE_RAGGED_ROW(8)
#define GK_TRANSPOSE_RAGGED_STEP_16 GK_TRANSPOSE_RAGGED_ROW(16)
#define GK_TRANSPOSE_RAGGED_STEP_32
#define GK_TRANSPOSE_RAGGED_STEP_64
#define GK_TRANSPOSE_RAGGED_STEP_128
GK_TRANSPOSE_SIZES(GK_TRANSPOSE_STEPS)

// The same with 64 bits an access.
#define GK_TRANSPOSE_WIDE(X)                                                                       \
    X(16, uint16_t, uint2, 8, 32, 32, 256, 4)                                                      \
    X(32, uint32_t, uint2, 8, 32, 32, 256, 4)
#define GK_TRANSPOSE_WIDE_STEP(size, T, WORD, alignment, down, across, threads, blocks)                      \
    GK_TRANSPOSE_ROW(vectorized_wide, bits##size, gk_transpose_wide_##size, down * alignment * 8 / size, across * alignment * 8 / size, threads, alignment, "64 bits an access: fewer instructions for the same bytes")
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

// DOWN x ACROSS squares a tile. The words of a square stand a plane apart in shared memory, so that
// neighbouring lanes, which write down a column, are one padded row apart. Sides are multiples of a
// word, words are aligned and elements lie side by side, or the row is not chosen. WHOLE: the tile
// ends inside of the matrix, and no access has to ask, so that all loads are in flight at once.
template <typename T, typename WORD, int DOWN, int ACROSS, int BLOCK> struct gk_turned_tile {
    enum { E = sizeof(WORD) / sizeof(T), SQUARES = DOWN * ACROSS / BLOCK, OUT = SQUARES * E };
    typedef WORD cells[E][ACROSS][DOWN + 1];

    template <bool WHOLE>
    __device__ static inline void move(const gk_spot &at, const gk_tiles &tiles, cells &cell) {
        gk_square<T, WORD, E> square[SQUARES];
        int rows = (int)(tiles.rows - at.row < DOWN * E ? tiles.rows - at.row : DOWN * E);
        int columns = (int)(tiles.columns - at.column < ACROSS * E ? tiles.columns - at.column : ACROSS * E);
        int x = threadIdx.x % ACROSS, y = threadIdx.x / ACROSS;
        const char *from = cell_at<const char>(at.a, at.row + y * E, tiles.from_row, at.column + x * E, sizeof(T));
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
        char *to = cell_at<char>(at.out, at.row + x * E, sizeof(T), at.column + y, tiles.to_column);
#pragma unroll
        for (int i = 0; i < OUT; i++) {
            int across = i * (BLOCK / DOWN);
            if (WHOLE || (x * E < rows && y + across < columns))
                *(WORD *)(to + across * tiles.to_column) = cell[(y + across) % E][(y + across) / E][x];
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

// Elements of less than a word, in rows that begin anywhere: a word is put together of the two aligned ones it
// lies in, both where it is read and, out of shared memory, where it is written. A tile writes the words of
// its columns that begin in it, for which it reads a square's rows more; the elements in front of the
// first word of a column, and behind its last, go alone.
template <typename T> struct gk_ragged_tile {
    enum { E = sizeof(uint32_t) / sizeof(T), WORDS = 32, SIDE = WORDS * E, SQUARES = WORDS / LINES };
    typedef uint32_t cells[E][WORDS][WORDS + 1];
    typedef gk_square<T, uint32_t, E> square;

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

    // The squares `y`, y + LINES, ... of a tile's rows, of which there are `rows`, of `columns` elements.
    template <bool WHOLE, int COUNT>
    __device__ static inline void read(const gk_spot &at, const gk_tiles &tiles, cells &cell, int y, int64_t rows, int64_t columns) {
        const int x = threadIdx.x % WORDS;
        const char *from = cell_at<const char>(at.a, at.row + y * E, tiles.from_row, at.column, sizeof(T));
        square turned[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; i++)
#pragma unroll
            for (int e = 0; e < E; e++) {
                const int line = i * LINES * E + e;
                const char *row = from + line * tiles.from_row, *end = y * E + line < rows ? row + columns * sizeof(T) : NULL;
                turned[i].word[e] = load<WHOLE>(row + x * sizeof(uint32_t), end);
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
    __device__ static inline void read_ends(const gk_spot &at, const gk_tiles &tiles, cells &cell, int64_t rows, int64_t columns) {
        const int line = threadIdx.x;
        if (line >= SIDE + E || line >= rows)
            return;
        const T *row = cell_at<const T>(at.a, at.row + line, tiles.from_row, at.column, sizeof(T));
        const int over = (int)((uintptr_t)(row + columns) % sizeof(uint32_t) / sizeof(T));
        for (int64_t column = columns - over < 0 ? 0 : columns - over; column < columns && column < SIDE; column++)
            ((T *)&cell[column % E][column / E][line / E])[line % E] = row[column];
    }

    template <bool WHOLE>
    __device__ static inline void move(const gk_spot &at, const gk_tiles &tiles, cells &cell, int64_t rows, int64_t columns) {
        const int x = threadIdx.x % WORDS, y = threadIdx.x / WORDS;
        read<WHOLE, SQUARES>(at, tiles, cell, y, rows, columns);
        if (y == 0)
            read<WHOLE, 1>(at, tiles, cell, WORDS, rows, columns);
        __syncthreads();
        if (!WHOLE) {
            read_ends(at, tiles, cell, rows, columns);
            __syncthreads();
        }
        char *to = cell_at<char>(at.out, at.row, sizeof(T), at.column + y, tiles.to_column);
#pragma unroll 4
        for (int column = y; column < SIDE; column += LINES, to += LINES * tiles.to_column) {
            if (!WHOLE && column >= columns)
                break;
            const uint32_t *words = cell[column % E][column / E];
            const int before = (int)(-(uintptr_t)to % sizeof(uint32_t)) / (int)sizeof(T), first = x * E + before;
            const uint32_t word = __funnelshift_r(words[x], words[x + 1], before * (int)sizeof(T) * 8);
            if (WHOLE || first + E <= rows)
                *(uint32_t *)(to + first * sizeof(T)) = word;
            else
                store(to + first * sizeof(T), word, rows - first);
            if (at.row == 0 && x == 0)
                store(to, words[0], before < rows ? before : rows);
        }
    }
};

template <typename T>
__device__ static inline void transpose_ragged(char *out, const char *a, const gk_tiles &tiles, const gk_layout &stack) {
    typedef gk_ragged_tile<T> tile;
    __shared__ typename tile::cells cell;
    gk_spot at = block_spot(out, a, tiles, stack, tile::SIDE, tile::SIDE);
    const int64_t rows = (int64_t)(tiles.rows - at.row), columns = (int64_t)(tiles.columns - at.column), whole = tile::SIDE + tile::E;
    if (rows >= whole && columns >= whole)
        tile::template move<true>(at, tiles, cell, rows, columns);
    else
        tile::template move<false>(at, tiles, cell, rows, columns);
}

#define GK_TRANSPOSE(name, threads, blocks, ...)                                                \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                  \
        gk_transpose_##name(char *out, const char *a, gk_tiles tiles, gk_layout stack) {           \
        gk_follow();                                                                               \
        __VA_ARGS__(out, a, tiles, stack);                                                         \
    }
#define GK_KERNELS(bits, T, WORD, alignment, down, across, threads, blocks)                        \
    GK_TRANSPOSE(naive_##bits, THREADS, 4, transpose_naive<T>)                                  \
    GK_TRANSPOSE(tiled_##bits, THREADS, 4, transpose_tiled<TILE, T>)                            \
    GK_TRANSPOSE(padded_##bits, THREADS, 4, transpose_tiled<TILE + 1, T>)                       \
    GK_TRANSPOSE(vectorized_##bits, threads, blocks, transpose_vectorized<T, WORD, down, across, threads>)
GK_TRANSPOSE_SIZES(GK_KERNELS)
GK_TRANSPOSE(ragged_8, THREADS, 3, transpose_ragged<uint8_t>)
GK_TRANSPOSE(ragged_16, THREADS, 4, transpose_ragged<uint16_t>)
#define GK_WIDE_KERNEL(bits, T, WORD, alignment, down, across, threads, blocks)                    \
    GK_TRANSPOSE(wide_##bits, threads, blocks, transpose_vectorized<T, WORD, down, across, threads>)
GK_TRANSPOSE_WIDE(GK_WIDE_KERNEL)

#endif
