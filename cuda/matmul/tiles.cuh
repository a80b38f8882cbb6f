// What steps 4 to 8 have in common: a thread makes many elements of C, in its registers, from tiles of A
// and B in shared memory, which are fetched in one of three ways.
#ifndef GK_TILES_CUH
#define GK_TILES_CUH

#include "matmul/matmul.cuh"

#define GK_SQUARE_SIDE 128 // of a block's tile of C from step 5 on; a thread makes 8 x 8 of it
#define GK_SQUARE_THREADS 256
#define GK_SQUARE_ROW(variant, symbol, lined, note)                                                \
    GK_ROW(matmul, variant, float32, symbol, note, .tile_rows = GK_SQUARE_SIDE, .tile_columns = GK_SQUARE_SIDE, .threads = GK_SQUARE_THREADS, .alignment = lined)

#ifndef GK_ROWS_ONLY

#define GK_TILES(symbol, variant, threads)                                                         \
    extern "C" __global__ void __launch_bounds__(threads, 2)                                        \
        symbol(float *c, const float *a, const float *b, gk_product of) {                          \
        size_t product = blockIdx.x / of.tiles;                                                    \
        variant(c + product * of.c_step, a + product * of.a_step, b + product * of.b_step, of, blockIdx.x % of.tiles); \
    }

// What a tile is fetched from, line by line: rows of A, or columns of B. So one function does for both
// operands, transposed or not.
struct gk_lines {
    const float *first;
    size_t across, along;    // from a line to the next, and from an element of a line to the next
    unsigned count;          // so many lines from the first one on, as far as a tile may need them
    size_t length;           // elements of a line
    __device__ bool is_along() const { return along == 1; }
};
__device__ static inline unsigned gk_no_more(size_t count) {
    return count < GK_SQUARE_SIDE ? (unsigned)count : GK_SQUARE_SIDE;
}
__device__ static inline gk_lines gk_rows_of(const float *a, const gk_product &of, size_t row) {
    return {a + row * of.a_row, of.a_row, of.a_column, gk_no_more(of.m - row), of.k};
}
__device__ static inline gk_lines gk_columns_of(const float *b, const gk_product &of, size_t column) {
    return {b + column * of.b_column, of.b_column, of.b_row, gk_no_more(of.n - column), of.k};
}

// A tile holds elements `depth` of its lines side by side. Four elements more a row spread what lies one
// below the other over the banks of shared memory.
template <int DEPTH, int LINES> struct gk_tile {
    float at[DEPTH][LINES + 4];
};

// An element at a time, neighbouring threads neighbours in memory.
template <int THREADS, int DEPTH, int LINES>
__device__ static inline void gk_fetch(gk_tile<DEPTH, LINES> &tile, const gk_lines &from, size_t step) {
#pragma unroll
    for (unsigned e = threadIdx.x; e < DEPTH * LINES; e += THREADS) {
        unsigned line = from.is_along() ? e / DEPTH : e % LINES, depth = from.is_along() ? e % DEPTH : e / LINES;
        bool is_inside = line < from.count && step + depth < from.length;
        // Elements beyond an edge are zeros, so that what follows needs no test.
        tile.at[depth][line] = is_inside ? from.first[line * from.across + (step + depth) * from.along] : 0.0f;
    }
}

// The 8 x 8 elements of a thread: rows 4 y to 4 y + 3 and those 64 behind, columns by x likewise.
struct gk_square {
    unsigned x, y;
};

// Four elements of so many lines, and four of those 64 behind. `to` is aligned as a float4 is.
__device__ static inline void gk_read_lines(float (&to)[8], const float *row, unsigned four) {
    *(float4 *)to = *(const float4 *)(row + 4 * four);
    *(float4 *)(to + 4) = *(const float4 *)(row + 4 * four + GK_SQUARE_SIDE / 2);
}

// What the next depth needs is read while this one is multiplied. Columns are gone down and up in turn: two
// products that follow one another have a factor in common, which registers give but once.
template <int DEPTH, int A_PITCH, int B_PITCH>
__device__ static inline void gk_multiply(const float (&a)[DEPTH][A_PITCH], const float (&b)[DEPTH][B_PITCH],
                                          const gk_square &place, float (&sum)[8][8]) {
    __align__(16) float left[2][8], right[2][8];
    gk_read_lines(left[0], a[0], place.y);
    gk_read_lines(right[0], b[0], place.x);
#pragma unroll
    for (int depth = 0; depth < DEPTH; depth++) {
        if (depth + 1 < DEPTH) {
            gk_read_lines(left[(depth + 1) % 2], a[depth + 1], place.y);
            gk_read_lines(right[(depth + 1) % 2], b[depth + 1], place.x);
        }
#pragma unroll
        for (int j = 0; j < 8; j++)
#pragma unroll
            for (int e = 0; e < 8; e++) {
                int i = j % 2 ? 7 - e : e;
                sum[i][j] = fmaf(left[depth % 2][i], right[depth % 2][j], sum[i][j]);
            }
    }
}

// n is a multiple of 4, as the row's alignment says.
__device__ static inline void gk_store(float *c, size_t m, size_t n, const gk_corner &corner, const gk_square &place,
                                       const float (&sum)[8][8]) {
    enum { HALF = GK_SQUARE_SIDE / 2 };
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            size_t row = corner.row + 4 * place.y + i % 4 + i / 4 * HALF, column = corner.column + 4 * place.x + half * HALF;
            if (row < m && column < n)
                *(float4 *)(c + row * n + column) = float4{sum[i][4 * half], sum[i][4 * half + 1], sum[i][4 * half + 2], sum[i][4 * half + 3]};
        }
}

#endif
#endif
