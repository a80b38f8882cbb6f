// Products of planes on tensor cores, added up as float32 does: a block stays for many tiles of C, one thread
// tells the copy engine what to bring, and two groups of four warps multiply 64 rows of a tile each.
#ifndef GK_PLANE_PRODUCTS_CUH
#define GK_PLANE_PRODUCTS_CUH

#include "matmul/planes.cuh"
#include "warpgroup.cuh"

#ifndef GK_ROWS_ONLY
#ifdef GK_WARPGROUP

// How planes of type T are multiplied: 32 elements of K a stage, in boxes of SWIZZLE bytes of each line, of which
// 64 are one plane's chunk.
template <typename ELEMENT, int PLANES_, int SWIZZLE_, int STAGES_> struct planes_form {
    typedef ELEMENT T;
    enum {
        PLANES = PLANES_, SWIZZLE = SWIZZLE_, STAGES = STAGES_,
        TOP = PLANES == 2 ? GK_HALVES_TOP : GK_BFLOATS_TOP,
        WAY = PLANES == 2 ? GK_BY_HALVES : GK_BY_BFLOATS,
        BOXES = PLANES * 64 / SWIZZLE,
        BOX_BYTES = GK_PLANES_SIDE * SWIZZLE,
        SIDE_BYTES = BOXES * BOX_BYTES, // of A, and as many of B
        STAGE_BYTES = 2 * SIDE_BYTES,
        CHAIN = 512 / GK_PLANES_DEPTH, // stages that go into a float32 sum, before that is added to the total
    };
    // Where in a stage 16 elements of the first of the lines and of one plane begin.
    __device__ static constexpr unsigned place(int plane, int sixteen) {
        return plane * 64 / SWIZZLE * BOX_BYTES + plane * 64 % SWIZZLE + sixteen * 32;
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
    float *totals; // of this thread, as many apart as there are threads that multiply
    gk_barrier *full, *empty;
};

__device__ static inline unsigned planes_tiles(const gk_planes_work &work) {
    const unsigned side = GK_PLANES_SIDE;
    return (work.m + side - 1) / side * ((work.n + side - 1) / side);
}

__device__ static inline unsigned planes_steps(const gk_planes_work &work) { return (work.k + GK_PLANES_DEPTH - 1) / GK_PLANES_DEPTH; }

template <typename F>
__device__ static inline void planes_fetch(const gk_planes_work &work, const gk_tensor_map &map_a, const gk_tensor_map &map_b, const planes_stages &stages) {
    unsigned tiles = planes_tiles(work), steps = planes_steps(work);
    planes_turn turn = {0, 0};
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        gk_corner corner = gk_grouped_corner(tile, work.m, work.n, GK_PLANES_SIDE, GK_PLANES_SIDE);
        for (unsigned step = 0; step < steps; step++, turn.advance(F::STAGES)) {
            gk_barrier *full = &stages.full[turn.stage];
            unsigned char *a = stages.memory + turn.stage * F::STAGE_BYTES, *b = a + F::SIDE_BYTES;
            gk_barrier_wait(&stages.empty[turn.stage], turn.phase ^ 1); // at first they are
            gk_barrier_expect(full, F::STAGE_BYTES);
#pragma unroll
            for (int box = 0; box < F::BOXES; box++) {
                unsigned column = (step * F::BOXES + box) * (F::SWIZZLE / 2);
                gk_fetch_box(a + box * F::BOX_BYTES, map_a, column, (unsigned)corner.row, full);
                gk_fetch_box(b + box * F::BOX_BYTES, map_b, column, (unsigned)corner.column, full);
            }
        }
    }
}

// The product of plane P of A and plane Q of B, of one stage.
template <typename F>
__device__ static inline void multiply_planes(float (&sum)[64], unsigned a, unsigned b, int p, int q, bool adds) {
#pragma unroll
    for (int i = 0; i < GK_PLANES_DEPTH / 16; i++)
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

// One arrival a warp.
__device__ static inline void planes_give_back(const planes_stages &stages, unsigned stage) {
    if (threadIdx.x % GK_WARP == 0)
        gk_barrier_arrive(&stages.empty[stage]);
}

// By two to the power of `down`, in two steps, of which only the last one rounds.
__device__ static inline float scale_down(float sum, int down) {
    int part = down / 2;
    return sum * gk_power(part) * gk_power(down - part);
}

template <typename F> __device__ static inline void planes_store(const gk_planes_work &work, unsigned tile, unsigned group, const float (&sum)[64]) {
    unsigned lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP % 4;
    gk_corner corner = gk_grouped_corner(tile, work.m, work.n, GK_PLANES_SIDE, GK_PLANES_SIDE);
    unsigned row = (unsigned)corner.row + group * 64 + warp * 16 + lane / 4, first = (unsigned)corner.column + lane % 4 * 2;
    const int *rows = work.exponents, *columns = rows + work.m;
    int of_row[2] = {row < work.m ? rows[row] - 2 * F::TOP : 0, row + 8 < work.m ? rows[row + 8] - 2 * F::TOP : 0};
    bool in_pairs = work.n % 2 == 0 && (uint64_t)work.c % 8 == 0;
#pragma unroll
    for (int j = 0; j < 16; j++) {
        unsigned column = first + 8 * j;
        bool one = column < work.n, two = column + 1 < work.n;
        int left = one ? columns[column] : 0, right = two ? columns[column + 1] : 0;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float2 pair = {scale_down(sum[4 * j + 2 * half], of_row[half] + left), scale_down(sum[4 * j + 2 * half + 1], of_row[half] + right)};
            float *to = work.c + (size_t)(row + 8 * half) * work.n + column;
            bool is_inside = row + 8 * half < work.m;
            if (is_inside && two && in_pairs)
                *(float2 *)to = pair;
            else if (is_inside && one) {
                to[0] = pair.x;
                if (two)
                    to[1] = pair.y;
            }
        }
    }
}

// So many stages. The tensor cores cut off what does not fit their sums, so no more than two of their steps go
// into a sum of the products of the first planes before it is added to a float32 register, rounded. Meanwhile
// they make the lesser products, whose sums are too small for what is cut off to matter. Of the products of
// halves more than 2^-24 is lost so, towards zero; half of that is given back, which is too little to change a
// sum that is exact.
template <typename F>
__device__ static inline void planes_chain(float (&sum)[64], const planes_stages &stages, planes_turn &turn, unsigned steps, unsigned group) {
    enum { LINES = 64 * F::SWIZZLE };
    const float factor = F::PLANES == 2 ? 1.0f / 2048 : 1.0f, given_back = F::PLANES == 2 ? 0x1p-25f : 0.0f;
    float large[64], small[64];
    unsigned before = 0;
#pragma unroll
    for (int i = 0; i < 64; i++)
        sum[i] = 0.0f;
    for (unsigned step = 0; step < steps; step++, turn.advance(F::STAGES)) {
        unsigned a = gk_shared_address(stages.memory) + turn.stage * F::STAGE_BYTES + group * LINES;
        unsigned b = gk_shared_address(stages.memory) + turn.stage * F::STAGE_BYTES + F::SIDE_BYTES;
        gk_barrier_wait(&stages.full[turn.stage], turn.phase);
        gk_products_begin();
        multiply_planes<F>(large, a, b, 0, 0, false);
        gk_products_end();
        multiply_lesser<F>(small, a, b, step > 0);
        gk_products_end();
        gk_products_wait<1>();
        gk_products_settle(large);
        if (step > 0)
            planes_give_back(stages, before);
        before = turn.stage;
#pragma unroll
        for (int i = 0; i < 64; i++)
            sum[i] += large[i];
    }
    gk_products_wait<0>();
    gk_products_settle(small);
    planes_give_back(stages, before);
#pragma unroll
    for (int i = 0; i < 64; i++)
        sum[i] += fmaf(small[i], factor, sum[i] * given_back);
}

// A thread's totals are in shared memory, since its registers are full.
template <typename F> __device__ static inline void planes_multiply(const gk_planes_work &work, const planes_stages &stages, unsigned group) {
    const unsigned tiles = planes_tiles(work), steps = planes_steps(work), most = F::CHAIN;
    planes_turn turn = {0, 0};
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float sum[64];
        for (unsigned first = 0; first < steps; first += most) {
            planes_chain<F>(sum, stages, turn, min(most, steps - first), group);
            if (first > 0)
#pragma unroll
                for (int i = 0; i < 64; i++)
                    sum[i] += stages.totals[i * GK_PLANES_MULTIPLYING];
            if (first + most < steps)
#pragma unroll
                for (int i = 0; i < 64; i++)
                    stages.totals[i * GK_PLANES_MULTIPLYING] = sum[i];
        }
        planes_store<F>(work, tile, group, sum);
    }
}

template <typename F>
__device__ static inline void matmul_planes(const gk_planes_work &work, const gk_tensor_map &map_a, const gk_tensor_map &map_b) {
    enum { CONSUMING_WARPS = GK_PLANES_MULTIPLYING / GK_WARP };
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ gk_barrier full[F::STAGES], empty[F::STAGES];
    float *totals = (float *)(memory + F::STAGES * F::STAGE_BYTES) + threadIdx.x % GK_PLANES_MULTIPLYING;
    const planes_stages stages = {memory, totals, full, empty};
    unsigned group = threadIdx.x / GK_WARPGROUP_THREADS;
    if (gk_way(work) != F::WAY)
        return;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < F::STAGES; stage++) {
            gk_barrier_init(&full[stage], 1);
            gk_barrier_init(&empty[stage], CONSUMING_WARPS);
        }
        gk_barriers_ready();
    }
    __syncthreads();
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
