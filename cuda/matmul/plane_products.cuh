// Products of planes on tensor cores, added up as float32 does.
#ifndef GK_PLANE_PRODUCTS_CUH
#define GK_PLANE_PRODUCTS_CUH

#include "matmul/planes.cuh"
#include "warpgroup.cuh"

#ifndef GK_ROWS_ONLY
#ifdef GK_WARPGROUP

// How planes of type T are multiplied: DEPTH elements of K a stage, in boxes of SWIZZLE bytes of each line, of
// which 64 are one plane's chunk; clusters of BLOCKS.
template <typename ELEMENT, int PLANES_, int DEPTH_, int SWIZZLE_, int STAGES_, int BLOCKS_> struct planes_form {
    typedef ELEMENT T;
    enum {
        PLANES = PLANES_, DEPTH = DEPTH_, SWIZZLE = SWIZZLE_, STAGES = STAGES_, BLOCKS = BLOCKS_,
        TOP = PLANES == 2 ? GK_HALVES_TOP : GK_BFLOATS_TOP,
        WAY = PLANES == 2 ? GK_BY_HALVES : GK_BY_BFLOATS,
        BOXES = DEPTH * PLANES * 2 / SWIZZLE,
        BOX_BYTES = GK_PLANES_SIDE * SWIZZLE,
        SIDE_BYTES = BOXES * BOX_BYTES, // of A, and as many of B
        STAGE_BYTES = 2 * SIDE_BYTES,
        SHARED_BYTES = STAGES * STAGE_BYTES,
        CHAIN = 512, // elements of K whose lesser products are added up by the tensor cores
    };
    // Where in a stage 16 elements of the first of the lines and of one plane begin.
    __device__ static constexpr unsigned place(int plane, int sixteen) {
        int bytes = (sixteen / 2 * PLANES + plane) * 64;
        return bytes / SWIZZLE * BOX_BYTES + bytes % SWIZZLE + sixteen % 2 * 32;
    }
};

struct planes_turn {
    unsigned stage, phase;
    __device__ void advance(unsigned stages) {
        if (++stage == stages)
            stage = 0, phase ^= 1;
    }
};

struct planes_stages {
    unsigned char *memory;
    gk_barrier *full, *empty;
};

template <typename F> __device__ static inline gk_corner planes_corner(const gk_planes_work &work, unsigned tile) {
    gk_corner corner = gk_grouped_corner(tile, work.m, work.n, GK_PLANES_SIDE * F::BLOCKS, GK_PLANES_SIDE);
    return {corner.row + blockIdx.x % F::BLOCKS * GK_PLANES_SIDE, corner.column};
}

template <typename F> __device__ static inline unsigned planes_tiles(const gk_planes_work &work) {
    const unsigned tall = GK_PLANES_SIDE * F::BLOCKS;
    return (work.m + tall - 1) / tall * ((work.n + GK_PLANES_SIDE - 1) / GK_PLANES_SIDE);
}

template <typename F>
__device__ static inline void planes_fetch(const gk_planes_work &work, const gk_tensor_map &map_a, const gk_tensor_map &map_b, const planes_stages &stages) {
    enum { SHARE = GK_PLANES_SIDE / F::BLOCKS };
    unsigned tiles = planes_tiles<F>(work), steps = (work.k + F::DEPTH - 1) / F::DEPTH, first = blockIdx.x % F::BLOCKS * SHARE;
    planes_turn turn = {0, 0};
    for (unsigned tile = blockIdx.x / F::BLOCKS; tile < tiles; tile += gridDim.x / F::BLOCKS) {
        gk_corner corner = planes_corner<F>(work, tile);
        for (unsigned step = 0; step < steps; step++, turn.advance(F::STAGES)) {
            gk_barrier *full = &stages.full[turn.stage];
            unsigned char *a = stages.memory + turn.stage * F::STAGE_BYTES, *b = a + F::SIDE_BYTES;
            gk_barrier_wait(&stages.empty[turn.stage], turn.phase ^ 1);
            gk_barrier_expect(full, F::STAGE_BYTES);
#pragma unroll
            for (int box = 0; box < F::BOXES; box++) {
                unsigned column = (step * F::BOXES + box) * (F::SWIZZLE / 2);
                gk_fetch_box<1>(a + box * F::BOX_BYTES, map_a, column, (unsigned)corner.row, 0, full);
                gk_fetch_box<F::BLOCKS>(b + box * F::BOX_BYTES + first * F::SWIZZLE, map_b, column, (unsigned)corner.column + first, 0, full);
            }
        }
    }
    for (int i = 0; i < F::STAGES && F::BLOCKS > 1; i++, turn.advance(F::STAGES))
        gk_barrier_wait(&stages.empty[turn.stage], turn.phase ^ 1); // others arrive here: no block leaves before
}

// The product of plane P of A and plane Q of B, of one stage.
template <typename F>
__device__ static inline void multiply_planes(float (&sum)[64], unsigned a, unsigned b, int p, int q, bool adds) {
#pragma unroll
    for (int i = 0; i < F::DEPTH / 16; i++)
        gk_multiply_warpgroup(sum, gk_operand_along<F::SWIZZLE>(a + F::place(p, i)), gk_operand_along<F::SWIZZLE>(b + F::place(q, i)), adds || i > 0, typename F::T());
}

// All products but that of the first planes, the smallest first.
template <typename F> __device__ static inline void multiply_lesser(float (&sum)[64], unsigned a, unsigned b, bool adds) {
    if (F::PLANES == 3) {
        multiply_planes<F>(sum, a, b, 2, 0, adds);
        multiply_planes<F>(sum, a, b, 0, 2, true);
        multiply_planes<F>(sum, a, b, 1, 1, true);
    }
    multiply_planes<F>(sum, a, b, 1, 0, adds || F::PLANES == 3);
    multiply_planes<F>(sum, a, b, 0, 1, true);
}

template <typename F> __device__ static inline void planes_give_back(const planes_stages &stages, unsigned stage) {
    unsigned lane = threadIdx.x % GK_WARP;
    if (F::BLOCKS > 1 && lane < F::BLOCKS)
        gk_barrier_arrive_at(&stages.empty[stage], lane);
    else if (lane == 0)
        gk_barrier_arrive(&stages.empty[stage]);
}

template <typename F> __device__ static inline void planes_store(const gk_planes_work &work, unsigned tile, unsigned group, const float (&sum)[64]) {
    unsigned lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP % 4;
    gk_corner corner = planes_corner<F>(work, tile);
    const gk_measured *rows = work.measured, *columns = work.measured + work.m;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        size_t row = corner.row + group * 64 + warp * 16 + half * 8 + lane / 4;
        if (row >= work.m)
            continue;
        int of_row = gk_shift<F::TOP>(rows[row].top);
#pragma unroll
        for (int j = 0; j < 16; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                size_t column = corner.column + 8 * j + lane % 4 * 2 + i;
                if (column < work.n) {
                    int down = -(of_row + gk_shift<F::TOP>(columns[column].top)), part = down / 2;
                    // In two steps, of which only the last one rounds.
                    work.c[row * work.n + column] = sum[4 * j + 2 * half + i] * gk_power(part) * gk_power(down - part);
                }
            }
    }
}

// The tensor cores cut off what they add, so no more than two of their steps go into a sum of the products of
// the first planes before it is added to a float32 register, rounded. Meanwhile they make the lesser products,
// whose sums are too small for what is cut off to matter; those come to the registers after 512 elements of K.
template <typename F> __device__ static inline void planes_multiply(const gk_planes_work &work, const planes_stages &stages, unsigned group) {
    enum { LINES = 64 * F::SWIZZLE };
    const unsigned tiles = planes_tiles<F>(work), steps = (work.k + F::DEPTH - 1) / F::DEPTH;
    const float factor = F::PLANES == 2 ? 1.0f / 2048 : 1.0f;
    planes_turn turn = {0, 0};
    for (unsigned tile = blockIdx.x / F::BLOCKS; tile < tiles; tile += gridDim.x / F::BLOCKS) {
        float sum[64] = {}, large[64], small[64];
        for (unsigned first = 0; first < steps; first += F::CHAIN / F::DEPTH) {
            unsigned end = min(steps, first + F::CHAIN / F::DEPTH), before = 0;
            for (unsigned step = first; step < end; step++, turn.advance(F::STAGES)) {
                unsigned a = gk_shared_address(stages.memory) + turn.stage * F::STAGE_BYTES + group * LINES;
                unsigned b = gk_shared_address(stages.memory) + turn.stage * F::STAGE_BYTES + F::SIDE_BYTES;
                gk_barrier_wait(&stages.full[turn.stage], turn.phase);
                gk_products_begin();
                multiply_planes<F>(large, a, b, 0, 0, false);
                gk_products_end();
                multiply_lesser<F>(small, a, b, step > first);
                gk_products_end();
                gk_products_wait<1>();
                gk_products_settle(large);
                if (step > first)
                    planes_give_back<F>(stages, before);
                before = turn.stage;
#pragma unroll
                for (int i = 0; i < 64; i++)
                    sum[i] += large[i];
            }
            gk_products_wait<0>();
            gk_products_settle(small);
            planes_give_back<F>(stages, before);
#pragma unroll
            for (int i = 0; i < 64; i++)
                sum[i] = fmaf(small[i], factor, sum[i]);
        }
        planes_store<F>(work, tile, group, sum);
    }
}

template <typename F>
__device__ static inline void matmul_planes(const gk_planes_work &work, const gk_tensor_map &map_a, const gk_tensor_map &map_b) {
    enum { CONSUMING_WARPS = 8 };
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ gk_barrier full[F::STAGES], empty[F::STAGES];
    const planes_stages stages = {memory, full, empty};
    unsigned group = threadIdx.x / GK_WARPGROUP_THREADS;
    if (gk_way(work) != F::WAY)
        return;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < F::STAGES; stage++) {
            gk_barrier_init(&full[stage], 1);
            gk_barrier_init(&empty[stage], CONSUMING_WARPS * F::BLOCKS);
        }
        gk_barriers_ready();
    }
    __syncthreads();
    if (F::BLOCKS > 1)
        gk_cluster_meet();
    if (group == 0) {
        gk_registers_leave<24>();
        if (threadIdx.x == 0)
            planes_fetch<F>(work, map_a, map_b, stages);
        return;
    }
    gk_registers_take<240>();
    planes_multiply<F>(work, stages, group - 1);
}

#endif
#endif
#endif
