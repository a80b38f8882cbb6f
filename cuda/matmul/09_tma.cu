// The copy engine brings the tiles, four ahead: no thread spends an instruction on a load from memory. It
// does not turn them, so the threads turn each tile of A in shared memory, a step before they multiply it:
// sums, rows and columns then lie in the registers so that few products wait for a bank of them. A block
// makes 128 x 128 elements of C, a thread 8 x 8 of them. Where C has fewer tiles than the GPU has
// multiprocessors, several blocks share a tile, each a part of K, and the last one to arrive adds their
// sums, in the order of their parts: the same bits every time. On an H200 49.2 TFLOP/s at 4096 and 49.8 at
// 8192, 96 and 97 % of cuBLAS. Rows may lie any multiple of 16 bytes apart; operands that are transposed
// come packed. A stack of products is one launch, as if their tiles were those of one product:
// 32 of 512^3 46 TFLOP/s, 97 % of cuBLAS.
#include "hopper.cuh"
#include "matmul/tiles.cuh"

#define GK_TMA_DEPTH 16 // of the tiles of A and B
#define GK_TMA_STAGES 4
#define GK_TMA_TILE (GK_SQUARE_SIDE * GK_TMA_DEPTH)
#define GK_TMA_TURNED ((GK_SQUARE_SIDE + 4) * GK_TMA_DEPTH) // a gk_tile

#if defined(GK_HOST_PART) || !defined(GK_ROWS_ONLY)
typedef struct gk_tma_work {
    float *c;
    uint64_t c_step;            // from a product to the next
    unsigned m, n, tiles;       // of C
    int a_stacked, b_stacked;   // or else one matrix is for all products
    unsigned parts, steps, all; // of K: blocks that share a tile, and tiles a block and in all
    unsigned *arrivals;         // a counter a tile of C, of all products
    float *partials;
} gk_tma_work;
#endif

#ifdef GK_HOST_PART

static gk_tma_work tma_work(const gk_gemm *gemm) {
    enum { MULTIPROCESSORS = 132, FEWEST_STEPS = 8 };
    gk_tma_work work = {.c = gemm->c, .c_step = (uint64_t)gemm->c_step, .m = (unsigned)gemm->m, .n = (unsigned)gemm->n};
    work.tiles = (work.m + GK_SQUARE_SIDE - 1) / GK_SQUARE_SIDE * ((work.n + GK_SQUARE_SIDE - 1) / GK_SQUARE_SIDE);
    work.a_stacked = gemm->a_step != 0;
    work.b_stacked = gemm->b_step != 0;
    work.all = ((unsigned)gemm->k + GK_TMA_DEPTH - 1) / GK_TMA_DEPTH;
    work.parts = (unsigned)(2 * MULTIPROCESSORS / (work.tiles * (uint64_t)gemm->products));
    work.parts = work.parts > work.all / FEWEST_STEPS ? work.all / FEWEST_STEPS : work.parts;
    work.parts = work.parts < 1 ? 1 : work.parts;
    work.steps = (work.all + work.parts - 1) / work.parts;
    work.parts = (work.all + work.steps - 1) / work.steps;
    return work;
}

static gk_room tma_workspace(const void *problem) {
    gk_tma_work work = tma_work(problem);
    size_t tiles = work.tiles * (size_t)((const gk_gemm *)problem)->products;
    size_t counters = (tiles * sizeof(unsigned) + 255) / 256 * 256;
    if (work.parts == 1)
        return (gk_room){0, 0};
    return (gk_room){counters + tiles * work.parts * GK_SQUARE_SIDE * GK_SQUARE_SIDE * 4, counters};
}

static gk_tensor_box tma_box(const gk_gemm *gemm, bool is_a) {
    int64_t leading = is_a ? gemm->a_leading : gemm->b_leading, step = is_a ? gemm->a_step : gemm->b_step;
    return (gk_tensor_box){
        .dtype = GK_float32,
        .data = is_a ? gemm->a : gemm->b,
        .rows = (uint64_t)(is_a ? gemm->m : gemm->k),
        .columns = (uint64_t)(is_a ? gemm->k : gemm->n),
        .pitch = (uint64_t)leading * 4,
        .box_rows = is_a ? GK_SQUARE_SIDE : GK_TMA_DEPTH,
        .box_columns = is_a ? GK_TMA_DEPTH : GK_SQUARE_SIDE,
        .planes = (uint64_t)(step ? gemm->products : 1),
        .plane_pitch = (uint64_t)(step ? step : leading) * 4, // of one plane any will do
    };
}

static gk_status tma_prepare(gk_backend *backend, gk_prepared *prepared, gk_error *error) {
    const gk_gemm *gemm = prepared->problem;
    gk_tma_work work = tma_work(gemm);
    const gk_tensor_box a = tma_box(gemm, true), b = tma_box(gemm, false);
    gk_room room = tma_workspace(gemm);
    work.arrivals = prepared->workspace;
    work.partials = prepared->workspace ? (float *)((char *)prepared->workspace + room.zeroed) : NULL;
    if (gemm->m > INT32_MAX || gemm->n > INT32_MAX || gemm->k > INT32_MAX || work.tiles * (uint64_t)gemm->products > INT32_MAX)
        return gk_fail(error, GK_VALUE_ERROR, "variant 'tma' takes no more than %d rows, columns or tiles of the result", INT32_MAX);
    gk_status status = backend->describe_box(backend, &a, &prepared->maps[0], error);
    if (status == GK_OK)
        status = backend->describe_box(backend, &b, &prepared->maps[1], error);
    _Static_assert(sizeof work <= GK_PREPARED_BYTES, "it has to fit");
    memcpy(prepared->values, &work, sizeof work);
    prepared->arguments[0] = prepared->values;
    prepared->arguments[1] = &prepared->maps[0];
    prepared->arguments[2] = &prepared->maps[1];
    prepared->blocks = work.tiles * (unsigned)gemm->products * work.parts;
    return status;
}

#endif

GK_ROW(matmul, tma, float32, gk_matmul_tma_f32, "the copy engine of capability 9.0 fetches tiles four ahead; 8 x 8 elements a thread; K shared out where tiles are few",
       .tile_rows = GK_SQUARE_SIDE, .tile_columns = GK_SQUARE_SIDE, .threads = GK_SQUARE_THREADS, .alignment = 16, .capability = 90, .plain = true, .stacks = true,
       .shared_bytes = (GK_TMA_STAGES * 2 * GK_TMA_TILE + 2 * GK_TMA_TURNED) * 4, .workspace = tma_workspace, .prepare = tma_prepare)

#ifndef GK_ROWS_ONLY

extern "C" __global__ void __launch_bounds__(GK_SQUARE_THREADS, 2)
    gk_matmul_tma_f32(gk_tma_work work, const __grid_constant__ gk_tensor_map map_a, const __grid_constant__ gk_tensor_map map_b);

#ifdef GK_HOPPER

// A tile of A comes with its rows side by side, and is multiplied with its columns side by side: a thread
// turns two columns of four rows.
__device__ static inline void turn_tile(gk_tile<GK_TMA_DEPTH, GK_SQUARE_SIDE> &turned, const float *tile) {
    unsigned depth = threadIdx.x % (GK_TMA_DEPTH / 2) * 2, row = threadIdx.x / (GK_TMA_DEPTH / 2) * 4;
    float2 pair[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        pair[i] = *(const float2 *)(tile + (row + i) * GK_TMA_DEPTH + depth);
    *(float4 *)&turned.at[depth][row] = make_float4(pair[0].x, pair[1].x, pair[2].x, pair[3].x);
    *(float4 *)&turned.at[depth + 1][row] = make_float4(pair[0].y, pair[1].y, pair[2].y, pair[3].y);
}

// The block's sums lie in its part of the partial results; the last block of a tile adds all parts.
__device__ static inline void join_parts(const gk_tma_work &work, unsigned tile, float *c, const gk_corner &corner) {
    enum { SIDE = GK_SQUARE_SIDE };
    const float *parts = work.partials + (size_t)tile * work.parts * SIDE * SIDE;
    if (!gk_is_last(work.arrivals + tile, work.parts))
        return;
    for (unsigned at = threadIdx.x * 4; at < SIDE * SIDE; at += GK_SQUARE_THREADS * 4) {
        size_t row = corner.row + at / SIDE, column = corner.column + at % SIDE;
        float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (row >= work.m || column >= work.n)
            continue;
        for (unsigned part = 0; part < work.parts; part++) {
            float4 other = __ldcg((const float4 *)(parts + (size_t)part * SIDE * SIDE + at));
            total.x += other.x, total.y += other.y, total.z += other.z, total.w += other.w;
        }
        *(float4 *)(c + row * work.n + column) = total;
    }
}

extern "C" __global__ void __launch_bounds__(GK_SQUARE_THREADS, 2)
    gk_matmul_tma_f32(gk_tma_work work, const __grid_constant__ gk_tensor_map map_a, const __grid_constant__ gk_tensor_map map_b) {
    extern __shared__ __align__(1024) float stages[];
    typedef float fetched_tile[GK_TMA_DEPTH][GK_SQUARE_SIDE];
    __shared__ gk_barrier full[GK_TMA_STAGES];
    auto *turned = (gk_tile<GK_TMA_DEPTH, GK_SQUARE_SIDE> *)(stages + GK_TMA_STAGES * 2 * GK_TMA_TILE);
    unsigned tile = blockIdx.x / work.parts, first = blockIdx.x % work.parts * work.steps;
    unsigned steps = work.all - first < work.steps ? work.all - first : work.steps, product = tile / work.tiles;
    gk_corner corner = gk_grouped_corner(tile % work.tiles, work.m, work.n, GK_SQUARE_SIDE, GK_SQUARE_SIDE);
    auto stage_of = [&](unsigned step) { return stages + step % GK_TMA_STAGES * 2 * GK_TMA_TILE; };
    auto fetch = [&](unsigned step) {
        unsigned k = (first + step) * GK_TMA_DEPTH;
        gk_barrier *barrier = &full[step % GK_TMA_STAGES];
        gk_barrier_expect(barrier, 2 * GK_TMA_TILE * 4);
        gk_fetch_box<1>(stage_of(step), map_a, k, (unsigned)corner.row, work.a_stacked ? product : 0, barrier);
        gk_fetch_box<1>(stage_of(step) + GK_TMA_TILE, map_b, (unsigned)corner.column, k, work.b_stacked ? product : 0, barrier);
    };
    auto turn = [&](unsigned step) {
        gk_barrier_wait(&full[step % GK_TMA_STAGES], step / GK_TMA_STAGES % 2);
        turn_tile(turned[step % 2], stage_of(step));
    };
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < GK_TMA_STAGES; stage++)
            gk_barrier_init(&full[stage], 1);
        gk_barriers_ready();
        for (unsigned step = 0; step < GK_TMA_STAGES && step < steps; step++)
            fetch(step);
    }
    __syncthreads();
    unsigned lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP;
    gk_square place = {warp % 2 * 8 + lane % 8, warp / 2 * 4 + lane / 8};
    float sum[8][8] = {};
    turn(0);
    __syncthreads();
    for (unsigned step = 0; step < steps; step++) {
        if (step + 1 < steps)
            turn(step + 1);
        gk_multiply(turned[step % 2].at, *(const fetched_tile *)(stage_of(step) + GK_TMA_TILE), place, sum);
        __syncthreads(); // the next tile has been turned, and all have read the stage that is filled next
        if (threadIdx.x == 0 && step + GK_TMA_STAGES < steps)
            fetch(step + GK_TMA_STAGES);
    }
    float *c = work.c + product * work.c_step;
    if (work.parts == 1) {
        gk_store(c, work.m, work.n, corner, place, sum);
        return;
    }
    float *partial = work.partials + (size_t)blockIdx.x * GK_SQUARE_SIDE * GK_SQUARE_SIDE;
    gk_store(partial, GK_SQUARE_SIDE, GK_SQUARE_SIDE, {0, 0}, place, sum);
    join_parts(work, tile, c, corner);
}

#else

// Neither the simulator nor an older architecture has a copy engine; the row's capability says so.
extern "C" __global__ void __launch_bounds__(GK_SQUARE_THREADS, 2)
    gk_matmul_tma_f32(gk_tma_work, const __grid_constant__ gk_tensor_map, const __grid_constant__ gk_tensor_map) {}

#endif
#endif
