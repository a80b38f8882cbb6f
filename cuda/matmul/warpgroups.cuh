// Products by warpgroups, as blocks of their own or in clusters of blocks that share what they fetch.
#ifndef GK_WARPGROUPS_CUH
#define GK_WARPGROUPS_CUH

#include "matmul/fragments.cuh"
#include "warpgroup.cuh"

#define GK_WGMMA_ROWS 128 // of a block's tile of C
#define GK_WGMMA_COLUMNS 256
#define GK_WGMMA_DEPTH 64 // of the tiles of A and B: 128 bytes
#define GK_WGMMA_STAGES 4
#define GK_WGMMA_THREADS 384 // a group of four warps that fetch, and two that multiply
#define GK_WGMMA_A_BYTES (GK_WGMMA_ROWS * GK_WGMMA_DEPTH * 2)
#define GK_WGMMA_B_BYTES (GK_WGMMA_COLUMNS * GK_WGMMA_DEPTH * 2)
#define GK_WGMMA_STAGE_BYTES (GK_WGMMA_A_BYTES + GK_WGMMA_B_BYTES)
#define GK_WGMMA_BOX 64  // rows and columns of C that the copy engine stores at a time
#define GK_WGMMA_BOXES 2 // of each group that multiplies, in shared memory
#define GK_WGMMA_BOX_BYTES (GK_WGMMA_BOX * GK_WGMMA_BOX * 2)
#define GK_WGMMA_SHARED_BYTES (GK_WGMMA_STAGES * GK_WGMMA_STAGE_BYTES + 2 * GK_WGMMA_BOXES * GK_WGMMA_BOX_BYTES)

#if defined(GK_HOST_PART) || !defined(GK_ROWS_ONLY)
typedef struct gk_wgmma_work {
    unsigned m, n, each, all; // of C; what a cluster makes at a time: so many of a product, and in all
    unsigned steps;           // tiles of A and B along K
    int a_transposed, b_transposed;
    int a_stacked, b_stacked; // or else one matrix is for all products
} gk_wgmma_work;
#endif

#ifdef GK_HOST_PART

// What the copy engine brings at a time: 128 bytes along K of as many lines (rows of A, columns of B) as a
// block fetches of a tile, or, where the lines lie side by side, 128 bytes of them for all of its K.
static gk_tensor_box wgmma_box(const gk_gemm *gemm, bool is_a, unsigned cluster) {
    bool turned = is_a ? gemm->a_transposed : gemm->b_transposed, along = is_a != turned;
    int64_t lines = is_a ? gemm->m : gemm->n, leading = is_a ? gemm->a_leading : gemm->b_leading;
    int64_t step = is_a ? gemm->a_step : gemm->b_step;
    uint32_t side = is_a ? GK_WGMMA_ROWS : GK_WGMMA_COLUMNS / cluster;
    return (gk_tensor_box){
        .dtype = gemm->dtype,
        .data = is_a ? gemm->a : gemm->b,
        .rows = (uint64_t)(along ? lines : gemm->k),
        .columns = (uint64_t)(along ? gemm->k : lines),
        .pitch = (uint64_t)leading * 2,
        .box_rows = along ? side : GK_WGMMA_DEPTH,
        .box_columns = GK_WGMMA_DEPTH,
        .swizzle = 128,
        .planes = (uint64_t)(step ? gemm->products : 1),
        .plane_pitch = (uint64_t)(step ? step : leading) * 2, // of one plane any will do
    };
}

static gk_tensor_box wgmma_result_box(const gk_gemm *gemm) {
    return (gk_tensor_box){
        .dtype = gemm->result,
        .data = gemm->c,
        .rows = (uint64_t)gemm->m,
        .columns = (uint64_t)gemm->n,
        .pitch = (uint64_t)gemm->n * 2,
        .box_rows = GK_WGMMA_BOX,
        .box_columns = GK_WGMMA_BOX,
        .swizzle = 128,
        .planes = (uint64_t)gemm->products,
        .plane_pitch = (uint64_t)(gemm->products > 1 ? gemm->c_step : gemm->n) * 2,
    };
}

static gk_status wgmma_prepare_clusters(gk_backend *backend, gk_prepared *prepared, unsigned cluster, gk_error *error) {
    enum { MULTIPROCESSORS = 132 };
    const gk_gemm *gemm = prepared->problem;
    const gk_tensor_box boxes[] = {wgmma_box(gemm, true, cluster), wgmma_box(gemm, false, cluster), wgmma_result_box(gemm)};
    uint64_t tall = GK_WGMMA_ROWS * cluster, wide = GK_WGMMA_COLUMNS;
    uint64_t down = ((uint64_t)gemm->m + tall - 1) / tall, across = ((uint64_t)gemm->n + wide - 1) / wide;
    if (gemm->m > INT32_MAX || gemm->n > INT32_MAX || gemm->k > INT32_MAX || down * across > (uint64_t)(INT32_MAX / gemm->products))
        return gk_fail(error, GK_VALUE_ERROR, "tensor cores by warpgroups take no more than %d rows, columns or tiles of the result", INT32_MAX);
    const gk_wgmma_work work = {
        .m = (unsigned)gemm->m,
        .n = (unsigned)gemm->n,
        .each = (unsigned)(down * across),
        .all = (unsigned)(down * across) * (unsigned)gemm->products,
        .steps = ((unsigned)gemm->k + GK_WGMMA_DEPTH - 1) / GK_WGMMA_DEPTH,
        .a_transposed = gemm->a_transposed,
        .b_transposed = gemm->b_transposed,
        .a_stacked = gemm->a_step != 0,
        .b_stacked = gemm->b_step != 0,
    };
    _Static_assert(sizeof work <= GK_PREPARED_BYTES, "it has to fit");
    memcpy(prepared->values, &work, sizeof work);
    prepared->arguments[0] = prepared->values;
    prepared->blocks = (work.all < MULTIPROCESSORS / cluster ? work.all : MULTIPROCESSORS / cluster) * cluster;
    gk_status status = GK_OK;
    for (int i = 0; i < 3 && status == GK_OK; i++) {
        prepared->arguments[i + 1] = &prepared->maps[i];
        status = backend->describe_box(backend, &boxes[i], &prepared->maps[i], error);
    }
    return status;
}

#endif

#define GK_WGMMA_ROW(variant, dtype, symbol, note, prepared)                                       \
    GK_ROW(matmul, variant, dtype, symbol, note, .tile_rows = GK_WGMMA_ROWS, .tile_columns = GK_WGMMA_COLUMNS, .threads = GK_WGMMA_THREADS, \
           .alignment = 16, .capability = 90, .exact = true, .stacks = true, .shared_bytes = GK_WGMMA_SHARED_BYTES, .prepare = prepared)

#ifndef GK_ROWS_ONLY
#ifdef GK_WARPGROUP

// The stages go round: which one is next, and how often all have been used before, odd or even.
struct wgmma_turn {
    unsigned stage, phase;
    __device__ void advance(void) {
        if (++stage == GK_WGMMA_STAGES)
            stage = 0, phase ^= 1;
    }
};

struct wgmma_stages {
    unsigned char *memory;
    gk_barrier *full, *empty;
    __device__ unsigned char *a(unsigned stage) const { return memory + stage * GK_WGMMA_STAGE_BYTES; }
    __device__ unsigned char *b(unsigned stage) const { return a(stage) + GK_WGMMA_A_BYTES; }
    __device__ unsigned char *box(unsigned group, unsigned i) const { return a(GK_WGMMA_STAGES) + (group * GK_WGMMA_BOXES + i) * GK_WGMMA_BOX_BYTES; }
};

// LINES lines, which begin at `line`, from K's element `depth` on, for all blocks of the cluster: in one box,
// or, where rows in memory go across the lines, in boxes of 64 lines.
template <int LINES, int BLOCKS>
__device__ static inline void fetch_lines(unsigned char *to, const gk_tensor_map &map, bool is_across, unsigned line, unsigned depth, unsigned plane, gk_barrier *full) {
    if (!is_across) {
        gk_fetch_box<BLOCKS>(to, map, depth, line, plane, full);
        return;
    }
#pragma unroll
    for (int i = 0; i < LINES; i += 64)
        gk_fetch_box<BLOCKS>(to + i * GK_WGMMA_DEPTH * 2, map, line + i, depth, plane, full);
}

// A cluster's blocks have tiles below one another.
template <int BLOCKS> __device__ static inline gk_corner corner_of(const gk_wgmma_work &work, unsigned tile) {
    gk_corner corner = gk_grouped_corner(tile % work.each, work.m, work.n, GK_WGMMA_ROWS * BLOCKS, GK_WGMMA_COLUMNS);
    return {corner.row + blockIdx.x % BLOCKS * GK_WGMMA_ROWS, corner.column};
}

// A block fetches its own tile of A, and its share of the tile of B for all of them.
template <int BLOCKS>
__device__ static inline void fetch_tiles(const gk_wgmma_work &work, const gk_tensor_map &map_a, const gk_tensor_map &map_b, const wgmma_stages &stages) {
    enum { SHARE = GK_WGMMA_COLUMNS / BLOCKS };
    unsigned first = blockIdx.x % BLOCKS * SHARE;
    wgmma_turn turn = {0, 0};
    for (unsigned tile = blockIdx.x / BLOCKS; tile < work.all; tile += gridDim.x / BLOCKS) {
        gk_corner corner = corner_of<BLOCKS>(work, tile);
        unsigned product = tile / work.each, row = (unsigned)corner.row, column = (unsigned)corner.column + first;
        for (unsigned step = 0; step < work.steps; step++, turn.advance()) {
            gk_barrier *full = &stages.full[turn.stage];
            unsigned char *a = stages.a(turn.stage), *b = stages.b(turn.stage) + first * GK_WGMMA_DEPTH * 2;
            gk_barrier_wait(&stages.empty[turn.stage], turn.phase ^ 1); // at first they are
            gk_barrier_expect(full, GK_WGMMA_STAGE_BYTES);
            fetch_lines<GK_WGMMA_ROWS, 1>(a, map_a, work.a_transposed, row, step * GK_WGMMA_DEPTH, work.a_stacked ? product : 0, full);
            fetch_lines<SHARE, BLOCKS>(b, map_b, !work.b_transposed, column, step * GK_WGMMA_DEPTH, work.b_stacked ? product : 0, full);
        }
    }
    for (int i = 0; i < GK_WGMMA_STAGES && BLOCKS > 1; i++, turn.advance())
        gk_barrier_wait(&stages.empty[turn.stage], turn.phase ^ 1); // others arrive here: no block leaves before
}

// The group's 64 rows of a tile of A by a tile of B, 16 elements of K an instruction.
template <typename T, bool A_ACROSS, bool B_ACROSS>
__device__ static inline void multiply_stage(float (&sum)[128], const wgmma_stages &stages, unsigned stage, unsigned group, bool adds) {
    enum { BOX = 64 * GK_WGMMA_DEPTH * 2, ALONG = 16 * 2, ACROSS = 16 * 128 }; // in bytes: 64 lines, and 16 of K
    uint64_t a = gk_operand(gk_shared_address(stages.a(stage)) + group * BOX, A_ACROSS ? BOX : 16);
    uint64_t b = gk_operand(gk_shared_address(stages.b(stage)), B_ACROSS ? BOX : 16);
#pragma unroll
    for (int i = 0; i < GK_WGMMA_DEPTH / 16; i++)
        gk_multiply_warpgroup<A_ACROSS, B_ACROSS>(sum, a + i * (A_ACROSS ? ACROSS : ALONG) / 16, b + i * (B_ACROSS ? ACROSS : ALONG) / 16, adds || i > 0, T());
}

// 64 columns of the group's sums, from `first` on, to a box of C in shared memory, in the copy engine's
// 128-byte swizzle.
template <typename T> __device__ static inline void fill_box(unsigned char *box, const float (&sum)[128], int first) {
    unsigned lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP % 4;
    unsigned row = warp * 16 + lane % 16, piece = lane / 16; // of 16 bytes
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
        const float *of = &sum[4 * (first / 8 + j)];
        uint32_t word[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            word[i] = gk_pack_pair(of[2 * i], of[2 * i + 1], T());
        gk_store_matrices(word, gk_shared_address(box) + row * 128 + ((piece + j) ^ row % 8) * 16);
    }
}

// The group's sums to memory, a box at a time. One thread tells the copy engine to store what all have put
// into a box, and waits, before that is filled again, until it has been read: nobody waits for memory.
template <typename T>
__device__ static inline void store_group(const gk_tensor_map &map_c, const wgmma_stages &stages, const gk_corner &corner, unsigned product, unsigned group,
                                          const float (&sum)[128]) {
    bool leads = threadIdx.x % GK_WARPGROUP_THREADS == 0;
    unsigned row = (unsigned)corner.row + group * 64, column = (unsigned)corner.column;
#pragma unroll
    for (int first = 0; first < GK_WGMMA_COLUMNS; first += GK_WGMMA_BOX) {
        unsigned char *box = stages.box(group, first / GK_WGMMA_BOX % GK_WGMMA_BOXES);
        if (leads)
            gk_stores_wait<GK_WGMMA_BOXES - 1>();
        gk_warpgroup_meet(group);
        fill_box<T>(box, sum, first);
        gk_show_to_copy_engine();
        gk_warpgroup_meet(group);
        if (leads) {
            gk_store_box(map_c, column + first, row, product, box);
            gk_stores_end();
        }
    }
}

// One arrival of this warp at the stage's barrier in each block that fetches into it.
template <int BLOCKS> __device__ static inline void give_back(const wgmma_stages &stages, unsigned stage) {
    unsigned lane = threadIdx.x % GK_WARP;
    if (BLOCKS > 1 && lane < BLOCKS)
        gk_barrier_arrive_at(&stages.empty[stage], lane);
    else if (lane == 0)
        gk_barrier_arrive(&stages.empty[stage]);
}

// A stage is free when the products behind it have begun, since then those with it have ended.
template <typename T, int BLOCKS, bool A_ACROSS, bool B_ACROSS>
__device__ static inline void multiply_tiles(const gk_wgmma_work &work, const gk_tensor_map &map_c, const wgmma_stages &stages, unsigned group) {
    wgmma_turn turn = {0, 0};
    for (unsigned tile = blockIdx.x / BLOCKS; tile < work.all; tile += gridDim.x / BLOCKS) {
        float sum[128];
        unsigned before = 0;
        for (unsigned step = 0; step < work.steps; step++, turn.advance()) {
            gk_barrier_wait(&stages.full[turn.stage], turn.phase);
            gk_products_begin();
            multiply_stage<T, A_ACROSS, B_ACROSS>(sum, stages, turn.stage, group, step > 0);
            gk_products_end();
            gk_products_wait<1>();
            if (step > 0)
                give_back<BLOCKS>(stages, before);
            before = turn.stage;
        }
        gk_products_wait<0>();
        gk_products_settle(sum);
        give_back<BLOCKS>(stages, before);
        store_group<T>(map_c, stages, corner_of<BLOCKS>(work, tile), tile / work.each, group, sum);
    }
    gk_stores_wait<0>(); // shared memory is there until then
}

template <typename T, int BLOCKS>
__device__ static inline void matmul_wgmma(const gk_wgmma_work &work, const gk_tensor_map &map_a, const gk_tensor_map &map_b, const gk_tensor_map &map_c) {
    enum { CONSUMING_WARPS = 8 };
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ gk_barrier full[GK_WGMMA_STAGES], empty[GK_WGMMA_STAGES];
    const wgmma_stages stages = {memory, full, empty};
    unsigned group = threadIdx.x / GK_WARPGROUP_THREADS;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < GK_WGMMA_STAGES; stage++) {
            gk_barrier_init(&full[stage], 1);
            gk_barrier_init(&empty[stage], CONSUMING_WARPS * BLOCKS);
        }
        gk_barriers_ready();
    }
    __syncthreads();
    if (BLOCKS > 1)
        gk_cluster_meet();
    if (group == 0) {
        gk_registers_leave<24>();
        if (threadIdx.x == 0)
            fetch_tiles<BLOCKS>(work, map_a, map_b, stages);
        return;
    }
    gk_registers_take<240>();
    if (!work.a_transposed && !work.b_transposed)
        multiply_tiles<T, BLOCKS, false, true>(work, map_c, stages, group - 1);
    else if (!work.a_transposed)
        multiply_tiles<T, BLOCKS, false, false>(work, map_c, stages, group - 1);
    else if (!work.b_transposed)
        multiply_tiles<T, BLOCKS, true, true>(work, map_c, stages, group - 1);
    else
        multiply_tiles<T, BLOCKS, true, false>(work, map_c, stages, group - 1);
}

#define GK_WGMMA_BLOCKS_1
#define GK_WGMMA_BLOCKS_2 __cluster_dims__(2, 1, 1)
#define GK_WGMMA(symbol, T, blocks)                                                                \
    extern "C" __global__ void GK_JOIN(GK_WGMMA_BLOCKS_, blocks) __launch_bounds__(GK_WGMMA_THREADS, 1) \
        symbol(const gk_wgmma_work work, const __grid_constant__ gk_tensor_map map_a, const __grid_constant__ gk_tensor_map map_b, \
               const __grid_constant__ gk_tensor_map map_c) {                                      \
        matmul_wgmma<T, blocks>(work, map_a, map_b, map_c);                                        \
    }

#else

// Capability 9.0 alone has the instructions, by code of its own; the rows say so.
#define GK_WGMMA(symbol, T, blocks)                                                                \
    extern "C" __global__ void __launch_bounds__(GK_WGMMA_THREADS, 1)                               \
        symbol(const gk_wgmma_work, const __grid_constant__ gk_tensor_map, const __grid_constant__ gk_tensor_map, \
               const __grid_constant__ gk_tensor_map) {}

#endif
#endif
#endif
