// Matrices so small that they lie in shared memory whole: no loop over tiles of K, and no wait but the one
// between the loads and the products. Of a stack a block takes several products, as many as give each of its
// threads something to do; of one product a few rows, so that there are blocks for all multiprocessors. A
// thread makes 4 x 4 elements of C, and reads four at a time of operands that lie in shared memory as they do
// in memory, transposed or not. On an H200, beside cuBLAS: 4096 x 32^3 14.0 and 12.1 TFLOP/s, 1000 x (100x7 @
// 7x100) 8.2 and 4.5.
#include "matmul/async.cuh"
#include "matmul/small.h"

#define GK_SMALL_THREADS 128
#define GK_SMALL_BLOCKS 7 // a multiprocessor

#if defined(GK_HOST_PART) || !defined(GK_ROWS_ONLY)
// Which operands are transposed, and which of the three arrays are read or written four elements at a time.
enum { GK_SMALL_A_TURNED = 1, GK_SMALL_B_TURNED = 2, GK_SMALL_A_FOURS = 4, GK_SMALL_B_FOURS = 8, GK_SMALL_C_FOURS = 16 };

typedef struct gk_small_work {
    float *c;
    const float *a, *b;
    uint64_t a_step, b_step, c_step; // from a product to the next, in elements
    uint64_t a_leading, b_leading;
    unsigned m, n, k, products;
    unsigned down, across; // 4 x 4 pieces of C, of a part of a product
    unsigned parts, each;  // of a product, and products a block
    unsigned ways;
    uint32_t by_across, by_pieces, by_a_length, by_a_lines, by_b_length, by_b_lines; // to divide by
} gk_small_work;
#endif

#ifdef GK_HOST_PART

// n times this is n / by and a fraction of 31 bits, as long as n x by is below 2^31.
static uint32_t small_divisor(unsigned by) { return ((1u << 31) + by - 1) / by; }

static bool small_by_fours(const void *data, int64_t leading, int64_t step) { return ((uintptr_t)data | (uint64_t)(leading | step) * 4) % 16 == 0; }

static unsigned small_ways(const gk_gemm *gemm) {
    bool a = small_by_fours(gemm->a, gemm->a_leading, gemm->a_step), b = small_by_fours(gemm->b, gemm->b_leading, gemm->b_step);
    bool c = small_by_fours(gemm->c, gemm->n, gemm->c_step) && !gemm->b_transposed;
    return (gemm->a_transposed ? GK_SMALL_A_TURNED : 0u) | (gemm->b_transposed ? GK_SMALL_B_TURNED : 0u) | (a ? GK_SMALL_A_FOURS : 0u) |
           (b ? GK_SMALL_B_FOURS : 0u) | (c ? GK_SMALL_C_FOURS : 0u);
}

// Rows of a part: half of them, and again, until they fit and half of the multiprocessors have one.
static unsigned small_rows(const gk_gemm *gemm) {
    enum { MULTIPROCESSORS = 132 };
    uint64_t m = (uint64_t)gemm->m, rows = gk_small_up(m);
    while (rows > GK_SMALL_SIDE && (gk_small_room(rows, (uint64_t)gemm->n, (uint64_t)gemm->k) > GK_SMALL_FLOATS ||
                                    (m + rows - 1) / rows * (uint64_t)gemm->products < MULTIPROCESSORS / 2))
        rows = gk_small_up(rows / 2);
    return (unsigned)rows;
}

static gk_small_work small_work(const gk_gemm *gemm) {
    gk_small_work work = {.c = gemm->c, .a = gemm->a, .b = gemm->b, .ways = small_ways(gemm)};
    work.a_step = (uint64_t)gemm->a_step, work.b_step = (uint64_t)gemm->b_step, work.c_step = (uint64_t)gemm->c_step;
    work.a_leading = (uint64_t)gemm->a_leading, work.b_leading = (uint64_t)gemm->b_leading;
    work.m = (unsigned)gemm->m, work.n = (unsigned)gemm->n, work.k = (unsigned)gemm->k, work.products = (unsigned)gemm->products;
    unsigned rows = small_rows(gemm), columns = (unsigned)gk_small_up(work.n), deep = (unsigned)gk_small_up(work.k);
    work.down = rows / GK_SMALL_SIDE;
    work.across = columns / GK_SMALL_SIDE;
    work.parts = (work.m + rows - 1) / rows;
    unsigned pieces = work.down * work.across;
    unsigned fit = (unsigned)(GK_SMALL_FLOATS / gk_small_room(rows, columns, deep)), busy = (GK_SMALL_THREADS + pieces - 1) / pieces;
    work.each = work.parts > 1 ? 1 : busy < fit ? busy : fit;
    work.by_across = small_divisor(work.across);
    work.by_pieces = small_divisor(pieces);
    work.by_a_length = small_divisor((gemm->a_transposed ? rows : deep) / (work.ways & GK_SMALL_A_FOURS ? 4 : 1));
    work.by_a_lines = small_divisor(gemm->a_transposed ? deep : rows);
    work.by_b_length = small_divisor((gemm->b_transposed ? deep : columns) / (work.ways & GK_SMALL_B_FOURS ? 4 : 1));
    work.by_b_lines = small_divisor(gemm->b_transposed ? columns : deep);
    return work;
}

static gk_status small_prepare(gk_backend *backend, gk_prepared *prepared, gk_error *error) {
    const gk_small_work work = small_work(prepared->problem);
    (void)backend, (void)error;
    _Static_assert(sizeof work <= GK_PREPARED_BYTES, "it has to fit");
    memcpy(prepared->values, &work, sizeof work);
    prepared->arguments[0] = prepared->values;
    prepared->shared_bytes = work.each * gk_small_room(work.down * GK_SMALL_SIDE, work.n, work.k) * sizeof(float);
    prepared->blocks = work.parts > 1 ? work.parts * work.products : (work.products + work.each - 1) / work.each;
    return GK_OK;
}

#endif

GK_ROW(matmul_small, small, float32, gk_matmul_small_f32, "for small matrices: they lie in shared memory whole, and a block makes several products of a stack",
       .tile_rows = GK_SMALL_SIDE, .tile_columns = GK_SMALL_SIDE, .threads = GK_SMALL_THREADS, .alignment = 1, .stacks = true,
       .shared_bytes = GK_SMALL_FLOATS * 4, .prepare = small_prepare)

#ifndef GK_ROWS_ONLY

__device__ static inline unsigned small_quotient(unsigned n, uint32_t divisor) { return (unsigned)((uint64_t)n * divisor >> 31); }

// Where a block's part of an operand lies in memory: lines and elements that it has there, and steps.
struct small_source {
    const float *first;
    uint64_t step, leading;
    unsigned lines, length;
    bool by_fours;
    uint32_t by_length, by_lines;
};

// The same in shared memory: vectors along K (rows of A, or columns of B), `pieces` of four, either as lines or
// across them. What is beyond those in memory is zeros.
template <bool IS_LINES> struct small_operand {
    unsigned pieces, lines, length, pitch, room;

    __device__ small_operand(unsigned count, unsigned deep) : pieces(count) {
        lines = IS_LINES ? 4 * pieces : deep;
        length = IS_LINES ? deep : 4 * pieces;
        pitch = IS_LINES && length % 8 == 0 ? length + 4 : length; // neighbouring lines lie in other banks
        room = lines * pitch;
    }
    template <int ELEMENTS> __device__ void fetch(float *to, const small_source &from, unsigned products) const {
        unsigned fetches = length / ELEMENTS;
        for (unsigned e = threadIdx.x; e < products * lines * fetches; e += GK_SMALL_THREADS) {
            unsigned line = small_quotient(e, from.by_length), at = (e - line * fetches) * ELEMENTS;
            unsigned product = small_quotient(line, from.by_lines), own = line - product * lines;
            unsigned left = own < from.lines && at < from.length ? from.length - at : 0;
            const float *first = left ? from.first + product * from.step + own * from.leading + at : from.first;
            gk_copy_ahead<ELEMENTS>(to + product * room + own * pitch + at, first, left < ELEMENTS ? left : ELEMENTS);
        }
    }
    __device__ void fetch(float *to, const small_source &from, unsigned products) const {
        if (from.by_fours)
            fetch<4>(to, from, products);
        else
            fetch<1>(to, from, products);
    }
    // Which vector is the so many-th of a piece: neighbouring threads have neighbours.
    __device__ unsigned place(unsigned piece, unsigned i) const { return IS_LINES ? piece + i * pieces : 4 * piece + i; }
    // Four elements of a piece's vectors: to[vector][element].
    __device__ void read(float (&to)[4][4], const float *at, unsigned piece, unsigned depth) const {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float4 four = *(const float4 *)(IS_LINES ? at + place(piece, i) * pitch + depth : at + (depth + i) * pitch + 4 * piece);
            const float each[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int e = 0; e < 4; e++)
                to[IS_LINES ? i : e][IS_LINES ? e : i] = each[e];
        }
    }
};

template <bool A_TURNED, bool B_TURNED> struct small_block {
    const gk_small_work &work;
    unsigned deep; // K in shared memory
    small_operand<!A_TURNED> of_a;
    small_operand<B_TURNED> of_b;
    uint64_t first; // product
    unsigned products, row, rows;

    __device__ explicit small_block(const gk_small_work &of) : work(of), deep((of.k + 3) / 4 * 4), of_a(of.down, deep), of_b(of.across, deep) {
        unsigned tall = 4 * work.down;
        first = work.parts > 1 ? blockIdx.x / work.parts : (uint64_t)blockIdx.x * work.each;
        products = work.products - first < work.each ? (unsigned)(work.products - first) : work.each;
        row = work.parts > 1 ? blockIdx.x % work.parts * tall : 0;
        rows = work.m - row < tall ? work.m - row : tall;
    }
    __device__ void fetch(float *a, float *b) const {
        const float *from_a = work.a + first * work.a_step + row * (A_TURNED ? 1 : work.a_leading), *from_b = work.b + first * work.b_step;
        of_a.fetch(a, {from_a, work.a_step, work.a_leading, A_TURNED ? work.k : rows, A_TURNED ? rows : work.k, (work.ways & GK_SMALL_A_FOURS) != 0, work.by_a_length, work.by_a_lines}, products);
        of_b.fetch(b, {from_b, work.b_step, work.b_leading, B_TURNED ? work.n : work.k, B_TURNED ? work.k : work.n, (work.ways & GK_SMALL_B_FOURS) != 0, work.by_b_length, work.by_b_lines}, products);
    }
    __device__ void multiply(const float *a, const float *b, unsigned y, unsigned x, float (&sum)[4][4]) const {
        for (unsigned depth = 0; depth < deep; depth += 4) {
            float left[4][4], right[4][4];
            of_a.read(left, a, y, depth);
            of_b.read(right, b, x, depth);
#pragma unroll
            for (int d = 0; d < 4; d++)
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int j = 0; j < 4; j++)
                        sum[i][j] = fmaf(left[i][d], right[j][d], sum[i][j]);
        }
    }
    __device__ void store(float *c, unsigned y, unsigned x, const float (&sum)[4][4]) const {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            unsigned own = of_a.place(y, i);
            float *line = c + (uint64_t)(row + own) * work.n;
            if (own >= rows)
                continue;
            if (!B_TURNED && work.ways & GK_SMALL_C_FOURS) {
                *(float4 *)(line + 4 * x) = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
                continue;
            }
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (of_b.place(x, j) < work.n)
                    line[of_b.place(x, j)] = sum[i][j];
        }
    }
    __device__ void run(float *memory) const {
        float *a = memory, *b = a + work.each * of_a.room;
        fetch(a, b);
        gk_copies_end();
        gk_copies_wait<0>();
        __syncthreads();
        unsigned pieces = work.down * work.across;
        for (unsigned piece = threadIdx.x; piece < products * pieces; piece += GK_SMALL_THREADS) {
            unsigned product = small_quotient(piece, work.by_pieces), own = piece - product * pieces;
            unsigned y = small_quotient(own, work.by_across), x = own - y * work.across;
            float sum[4][4] = {};
            multiply(a + product * of_a.room, b + product * of_b.room, y, x, sum);
            store(work.c + (first + product) * work.c_step, y, x, sum);
        }
    }
};

extern "C" __global__ void __launch_bounds__(GK_SMALL_THREADS, GK_SMALL_BLOCKS) gk_matmul_small_f32(gk_small_work work) {
    GK_DYNAMIC_SHARED(float4, memory);
    bool a_turned = work.ways & GK_SMALL_A_TURNED, b_turned = work.ways & GK_SMALL_B_TURNED;
    if (!a_turned && !b_turned)
        small_block<false, false>(work).run((float *)memory);
    else if (!a_turned)
        small_block<false, true>(work).run((float *)memory);
    else if (!b_turned)
        small_block<true, false>(work).run((float *)memory);
    else
        small_block<true, true>(work).run((float *)memory);
}

#endif
