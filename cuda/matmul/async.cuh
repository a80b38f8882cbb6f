// Tiles that are fetched ahead.
#ifndef GK_ASYNC_CUH
#define GK_ASYNC_CUH

#include "ampere.cuh"
#include "matmul/tiles.cuh"

#ifndef GK_ROWS_ONLY

// So many elements on their way to shared memory, of which the first ones are fetched and the others zeros.
// How many these are is no constant to the compiler, which CUDA's own function would make branches of.
template <int ELEMENTS> __device__ static inline void gk_copy_ahead(float *to, const float *from, unsigned inside) {
#ifdef GK_AMPERE
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    if (ELEMENTS == 4)
        gk_copy_16(address, from, inside * 4);
    else
        gk_copy_4(address, from, inside * 4);
#else
    for (unsigned e = 0; e < ELEMENTS; e++)
        to[e] = e < inside ? from[e] : 0.0f;
#endif
}

// What a thread fetches of each tile of an operand: pieces of four lines where these lie side by side, or
// else an element at a time, each to its place. What lies beyond an edge comes as zeros.
template <int DEPTH> struct gk_feed {
    typedef gk_tile<DEPTH, GK_SQUARE_SIDE> tile;
    enum { LINES = GK_SQUARE_SIDE, LINES_APART = GK_SQUARE_THREADS / DEPTH, DEPTHS_APART = GK_SQUARE_THREADS / (LINES / 4) };
    const float *from;
    size_t apart, on;           // from a piece to the next, and from a tile
    ptrdiff_t left;             // elements of a line from the first piece on
    unsigned depth, line, lines; // of the first piece, and so many lines from there on
    bool is_along;

    __device__ gk_feed(const gk_lines &of) {
        is_along = of.is_along();
        depth = is_along ? threadIdx.x % DEPTH : threadIdx.x / (LINES / 4);
        line = is_along ? threadIdx.x / DEPTH : threadIdx.x % (LINES / 4) * 4;
        from = of.first + line * of.across + depth * of.along;
        apart = is_along ? LINES_APART * of.across : DEPTHS_APART * of.along;
        on = DEPTH * of.along;
        left = (ptrdiff_t)of.length - (ptrdiff_t)depth;
        lines = of.count > line ? of.count - line : 0;
    }

    __device__ void fetch(tile &to) {
        if (is_along) {
#pragma unroll
            for (unsigned l = 0; l < LINES; l += LINES_APART)
                gk_copy_ahead<1>(&to.at[depth][line + l], from + l / LINES_APART * apart, l < lines && left > 0);
        } else {
#pragma unroll
            for (int d = 0; d < DEPTH; d += DEPTHS_APART)
                gk_copy_ahead<4>(&to.at[depth + d][line], from + d / DEPTHS_APART * apart, d < left ? lines < 4 ? lines : 4 : 0);
        }
        from += on, left -= DEPTH;
        gk_copies_end();
    }
};

__device__ static inline void gk_multiply_buffered(float *c, const float *a, const float *b, const gk_product &of,
                                                   const gk_corner &corner, const gk_square &place) {
    enum { DEPTH = 16 };
    __shared__ __align__(16) gk_tile<DEPTH, GK_SQUARE_SIDE> tile_a[2], tile_b[2];
    gk_feed<DEPTH> rows(gk_rows_of(a, of, corner.row)), columns(gk_columns_of(b, of, corner.column));
    float sum[8][8] = {};
    rows.fetch(tile_a[0]);
    columns.fetch(tile_b[0]);
    for (size_t step = 0; step < of.k; step += DEPTH) {
        unsigned now = step / DEPTH % 2;
        gk_copies_wait<0>();
        __syncthreads(); // these tiles are there, and nobody reads the others any more
        if (step + DEPTH < of.k) {
            rows.fetch(tile_a[now ^ 1]);
            columns.fetch(tile_b[now ^ 1]);
        }
        gk_multiply(tile_a[now].at, tile_b[now].at, place, sum);
    }
    gk_store(c, of.m, of.n, corner, place, sum);
}

#endif
#endif
