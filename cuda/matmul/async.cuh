// Tiles that are fetched ahead.
#ifndef GK_ASYNC_CUH
#define GK_ASYNC_CUH

#include "matmul/tiles.cuh"

#ifndef GK_ROWS_ONLY

#ifndef GK_SIM
#include <cuda_pipeline_primitives.h>
#endif

// A tile on its way: four lines at a time where these lie side by side, or else an element at a time, each
// to its place, for which no thread waits. What lies beyond an edge comes as zeros.
template <int DEPTH>
__device__ static inline void gk_fetch_ahead(gk_tile<DEPTH, GK_SQUARE_SIDE> &tile, const gk_lines &from, size_t step) {
    enum { LINES = GK_SQUARE_SIDE, SIZE = sizeof(float) };
    if (from.is_along()) {
#pragma unroll
        for (unsigned e = threadIdx.x; e < DEPTH * LINES; e += GK_SQUARE_THREADS) {
            unsigned line = e / DEPTH, depth = e % DEPTH;
            bool is_inside = line < from.count && step + depth < from.length;
            const float *at = is_inside ? from.first + line * from.across + step + depth : from.first;
            __pipeline_memcpy_async(&tile.at[depth][line], at, SIZE, is_inside ? 0 : SIZE);
        }
        return;
    }
#pragma unroll
    for (unsigned v = threadIdx.x; v < DEPTH * LINES / 4; v += GK_SQUARE_THREADS) {
        unsigned line = v % (LINES / 4) * 4, depth = v / (LINES / 4);
        size_t left = line < from.count && step + depth < from.length ? from.count - line : 0;
        const float *at = left ? from.first + line + (step + depth) * from.along : from.first;
        __pipeline_memcpy_async(&tile.at[depth][line], at, 4 * SIZE, left < 4 ? (4 - left) * SIZE : 0);
    }
}

__device__ static inline void gk_multiply_buffered(float *c, const float *a, const float *b, const gk_product &of,
                                                   const gk_corner &corner, const gk_square &place) {
    enum { SIDE = GK_SQUARE_SIDE, DEPTH = 8 };
    __shared__ __align__(16) gk_tile<DEPTH, SIDE> tile_a[2], tile_b[2];
    gk_lines rows = gk_rows_of(a, of, corner.row), columns = gk_columns_of(b, of, corner.column);
    auto fetch = [&](size_t step) {
        if (step < of.k) {
            gk_fetch_ahead(tile_a[step / DEPTH % 2], rows, step);
            gk_fetch_ahead(tile_b[step / DEPTH % 2], columns, step);
        }
        __pipeline_commit();
    };
    float sum[8][8] = {};
    fetch(0);
    for (size_t step = 0; step < of.k; step += DEPTH) {
        fetch(step + DEPTH);
        __pipeline_wait_prior(1); // all but the latest are there
        __syncthreads();
        gk_multiply(tile_a[step / DEPTH % 2], tile_b[step / DEPTH % 2], place, sum);
        __syncthreads(); // all have read what is fetched into next
    }
    gk_store(c, of, corner, place, sum);
}

#endif
#endif
