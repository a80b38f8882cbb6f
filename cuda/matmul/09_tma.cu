// The copy engine brings the tiles, four ahead: no thread spends an instruction on a load from memory. It
// does not turn them, so the threads turn each tile of A in shared memory, a step before they multiply it.
// All blocks are as many as run at once. Each makes tiles of C alone as long as there is one for every
// block; what is left is a line of steps, of which all take equal runs, so that they end together. Where
// several have a part of one tile the last one to arrive adds their sums, in the order of the parts: the
// same bits every time. On an H200 47 TFLOP/s at 4096, 92 % of cuBLAS. Rows may lie any multiple of 16
// bytes apart; operands that are transposed come packed. Products of a stack are a launch each.
#include "hopper.cuh"
#include "matmul/tiles.cuh"

#define GK_TMA_DEPTH 16 // of the tiles of A and B
#define GK_TMA_STAGES 4
#define GK_TMA_TILE (GK_SQUARE_SIDE * GK_TMA_DEPTH)
#define GK_TMA_TURNED ((GK_SQUARE_SIDE + 4) * GK_TMA_DEPTH) // a gk_tile
#define GK_TMA_SHARED_BYTES ((GK_TMA_STAGES * 2 * GK_TMA_TILE + 2 * GK_TMA_TURNED) * 4)

#if defined(GK_HOST_PART) || !defined(GK_ROWS_ONLY)
typedef struct gk_tma_work {
    float *c;
    unsigned m, n;
    unsigned steps;     // of a tile of C: tiles of A and B that it takes
    unsigned alone;     // tiles of C that each block makes alone
    uint64_t left;      // steps of all others
    unsigned *arrivals; // a counter for each of these
    float *partials;    // two tiles a block
} gk_tma_work;
#endif

#ifdef GK_HOST_PART

typedef struct tma_plan {
    gk_tma_work work;
    unsigned blocks;
    size_t shared_tiles;
} tma_plan;

static tma_plan plan_tma(const gk_gemm *gemm) {
    enum { BLOCKS = 2 * 132, FEWEST_STEPS = 8 }; // two a multiprocessor
    size_t down = ((size_t)gemm->m + GK_SQUARE_SIDE - 1) / GK_SQUARE_SIDE;
    size_t tiles = down * (((size_t)gemm->n + GK_SQUARE_SIDE - 1) / GK_SQUARE_SIDE);
    size_t steps = ((size_t)gemm->k + GK_TMA_DEPTH - 1) / GK_TMA_DEPTH, blocks = BLOCKS, alone = tiles / BLOCKS;
    if (tiles <= BLOCKS) {
        size_t parts = BLOCKS / tiles < steps / FEWEST_STEPS ? BLOCKS / tiles : steps / FEWEST_STEPS;
        blocks = parts > 1 ? tiles * parts : tiles;
        alone = parts > 1 ? 0 : 1;
    } else if (tiles % BLOCKS != 0) {
        alone--; // so that what is left is more than a tile a block, and a tile has few parts
    }
    tma_plan plan = {.blocks = (unsigned)blocks, .shared_tiles = tiles - alone * blocks};
    plan.work = (gk_tma_work){.c = gemm->c, .m = (unsigned)gemm->m, .n = (unsigned)gemm->n, .steps = (unsigned)steps,
                              .alone = (unsigned)alone, .left = plan.shared_tiles * steps};
    return plan;
}

static gk_room tma_workspace(const void *problem) {
    tma_plan plan = plan_tma(problem);
    size_t counters = (plan.shared_tiles * sizeof(unsigned) + 255) / 256 * 256;
    if (plan.shared_tiles == 0)
        return (gk_room){0, 0};
    return (gk_room){counters + (size_t)plan.blocks * 2 * GK_SQUARE_SIDE * GK_SQUARE_SIDE * 4, counters};
}

static gk_status tma_prepare(gk_backend *backend, gk_prepared *prepared, gk_error *error) {
    const gk_gemm *gemm = prepared->problem;
    tma_plan plan = plan_tma(gemm);
    const gk_tensor_box a = {GK_float32, gemm->a, (uint64_t)gemm->m, (uint64_t)gemm->k, (uint64_t)gemm->a_leading * 4, GK_SQUARE_SIDE, GK_TMA_DEPTH, 0};
    const gk_tensor_box b = {GK_float32, gemm->b, (uint64_t)gemm->k, (uint64_t)gemm->n, (uint64_t)gemm->b_leading * 4, GK_TMA_DEPTH, GK_SQUARE_SIDE, 0};
    gk_room room = tma_workspace(gemm);
    plan.work.arrivals = prepared->workspace;
    plan.work.partials = prepared->workspace ? (float *)((char *)prepared->workspace + room.zeroed) : NULL;
    if ((uint64_t)gemm->m > INT32_MAX || (uint64_t)gemm->n > INT32_MAX || (uint64_t)gemm->k > INT32_MAX)
        return gk_fail(error, GK_VALUE_ERROR, "variant 'tma' takes no more than %d rows or columns", INT32_MAX);
    gk_status status = backend->describe_box(backend, &a, &prepared->maps[0], error);
    if (status == GK_OK)
        status = backend->describe_box(backend, &b, &prepared->maps[1], error);
    _Static_assert(sizeof plan.work <= GK_PREPARED_BYTES, "it has to fit");
    memcpy(prepared->values, &plan.work, sizeof plan.work);
    prepared->arguments[0] = prepared->values;
    prepared->arguments[1] = &prepared->maps[0];
    prepared->arguments[2] = &prepared->maps[1];
    prepared->blocks = plan.blocks;
    return status;
}

#endif

GK_ROW(matmul, tma, float32, gk_matmul_tma_f32, "the copy engine of capability 9.0 fetches tiles four ahead; blocks share out the last tiles of C, and K where tiles are few; a launch for each product of a stack",
       .tile_rows = GK_SQUARE_SIDE, .tile_columns = GK_SQUARE_SIDE, .threads = GK_SQUARE_THREADS, .alignment = 16, .capability = 90, .plain = true,
       .shared_bytes = GK_TMA_SHARED_BYTES, .workspace = tma_workspace, .prepare = tma_prepare)

#ifndef GK_ROWS_ONLY

extern "C" __global__ void __launch_bounds__(GK_SQUARE_THREADS, 2)
    gk_matmul_tma_f32(const __grid_constant__ gk_tma_work work, const __grid_constant__ gk_tensor_map map_a, const __grid_constant__ gk_tensor_map map_b);

#ifdef GK_HOPPER

// Steps of one tile of C that a block makes.
struct tma_part {
    unsigned tile, first, steps;
};

// The block's part that comes at that turn; false behind the last one.
__device__ static inline bool find_part(const gk_tma_work &work, unsigned turn, tma_part *part) {
    if (turn < work.alone) {
        *part = {blockIdx.x + turn * gridDim.x, 0, work.steps};
        return true;
    }
    uint64_t begin = blockIdx.x * work.left / gridDim.x, end = (blockIdx.x + 1) * work.left / gridDim.x;
    uint64_t tile = begin / work.steps + (turn - work.alone), behind = (tile + 1) * work.steps;
    uint64_t first = begin > tile * work.steps ? begin : tile * work.steps, last = end < behind ? end : behind;
    if (first >= last)
        return false;
    *part = {(unsigned)(work.alone * gridDim.x + tile), (unsigned)(first - tile * work.steps), (unsigned)(last - first)};
    return true;
}

__device__ static inline unsigned count_steps(const gk_tma_work &work) {
    uint64_t begin = blockIdx.x * work.left / gridDim.x, end = (blockIdx.x + 1) * work.left / gridDim.x;
    return (unsigned)(work.alone * work.steps + (end - begin));
}

// What the copy engine is sent for. Thread 0 alone knows, and keeps it in shared memory: its registers are
// full of sums like all others', and no others have to step over the code.
struct tma_feed {
    tma_part part; // what of it is still to be fetched
    unsigned turn, row, column;

    __device__ __noinline__ void fetch(const gk_tma_work &work, const gk_tensor_map &map_a, const gk_tensor_map &map_b, float *to, gk_barrier *full) {
        if (part.steps == 0) {
            if (!find_part(work, turn++, &part))
                return;
            gk_corner corner = gk_grouped_corner(part.tile, work.m, work.n, GK_SQUARE_SIDE, GK_SQUARE_SIDE);
            row = (unsigned)corner.row, column = (unsigned)corner.column;
        }
        gk_barrier_expect(full, 2 * GK_TMA_TILE * 4);
        gk_fetch_box(to, map_a, part.first * GK_TMA_DEPTH, row, full);
        gk_fetch_box(to + GK_TMA_TILE, map_b, column, part.first * GK_TMA_DEPTH, full);
        part.first++, part.steps--;
    }
};

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

// Where a block leaves its sums of a tile that it begins, or that another one has begun.
__device__ static inline float *partial_tile(const gk_tma_work &work, unsigned block, bool is_begun_here) {
    return work.partials + (size_t)(2 * block + is_begun_here) * GK_SQUARE_SIDE * GK_SQUARE_SIDE;
}

// The last block of a tile adds what all of them have left, in their order.
__device__ static inline void join_parts(const gk_tma_work &work, const tma_part &part, const gk_corner &corner) {
    auto owner = [&](uint64_t step) { return (unsigned)(((step + 1) * gridDim.x - 1) / work.left); };
    unsigned shared = part.tile - work.alone * gridDim.x;
    unsigned first = owner((uint64_t)shared * work.steps), last = owner((uint64_t)(shared + 1) * work.steps - 1);
    if (!gk_is_last(work.arrivals + shared, last - first + 1))
        return;
    for (unsigned at = threadIdx.x * 4; at < GK_SQUARE_SIDE * GK_SQUARE_SIDE; at += GK_SQUARE_THREADS * 4) {
        size_t row = corner.row + at / GK_SQUARE_SIDE, column = corner.column + at % GK_SQUARE_SIDE;
        float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (row >= work.m || column >= work.n)
            continue;
        for (unsigned block = first; block <= last; block++) {
            float4 other = __ldcg((const float4 *)(partial_tile(work, block, block == first) + at));
            total.x += other.x, total.y += other.y, total.z += other.z, total.w += other.w;
        }
        *(float4 *)(work.c + row * work.n + column) = total;
    }
}

extern "C" __global__ void __launch_bounds__(GK_SQUARE_THREADS, 2)
    gk_matmul_tma_f32(const __grid_constant__ gk_tma_work work, const __grid_constant__ gk_tensor_map map_a, const __grid_constant__ gk_tensor_map map_b) {
    extern __shared__ __align__(1024) float stages[];
    typedef gk_tile<GK_TMA_DEPTH, GK_SQUARE_SIDE> turned_tile;
    typedef float fetched_tile[GK_TMA_DEPTH][GK_SQUARE_SIDE];
    __shared__ gk_barrier full[GK_TMA_STAGES];
    __shared__ tma_feed feed;
    turned_tile *turned = (turned_tile *)(stages + GK_TMA_STAGES * 2 * GK_TMA_TILE);
    auto stage = [&](unsigned step) { return stages + step % GK_TMA_STAGES * 2 * GK_TMA_TILE; };
    auto fetch = [&](unsigned step) { feed.fetch(work, map_a, map_b, stage(step), &full[step % GK_TMA_STAGES]); };
    auto wait = [&](unsigned step) { gk_barrier_wait(&full[step % GK_TMA_STAGES], step / GK_TMA_STAGES % 2); };
    if (threadIdx.x == 0) {
        for (int s = 0; s < GK_TMA_STAGES; s++)
            gk_barrier_init(&full[s], 1);
        gk_barriers_ready();
        feed.turn = feed.part.steps = 0;
        for (unsigned step = 0; step < GK_TMA_STAGES; step++)
            fetch(step);
    }
    __syncthreads();
    unsigned lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP;
    gk_square place = {warp % 2 * 8 + lane % 8, warp / 2 * 4 + lane / 8};
    unsigned step = 0, steps = count_steps(work);
    wait(0);
    turn_tile(turned[0], stage(0));
    __syncthreads();
    tma_part part;
    for (unsigned turn = 0; find_part(work, turn, &part); turn++) {
        float sum[8][8] = {};
        for (unsigned end = step + part.steps; step < end; step++) {
            if (step + 1 < steps) {
                wait(step + 1);
                turn_tile(turned[(step + 1) % 2], stage(step + 1));
            }
            gk_multiply(turned[step % 2].at, *(const fetched_tile *)(stage(step) + GK_TMA_TILE), place, sum);
            __syncthreads(); // these tiles have been read, and the next one has been turned
            if (threadIdx.x == 0)
                fetch(step + GK_TMA_STAGES);
        }
        gk_corner corner = gk_grouped_corner(part.tile, work.m, work.n, GK_SQUARE_SIDE, GK_SQUARE_SIDE);
        if (part.steps == work.steps) {
            gk_store(work.c, work.m, work.n, corner, place, sum);
        } else {
            gk_store(partial_tile(work, blockIdx.x, part.first == 0), GK_SQUARE_SIDE, GK_SQUARE_SIDE, {0, 0}, place, sum);
            join_parts(work, part, corner);
        }
    }
}

#else

// Neither the simulator nor an older architecture has a copy engine; the row's capability says so.
extern "C" __global__ void __launch_bounds__(GK_SQUARE_THREADS, 2)
    gk_matmul_tma_f32(const __grid_constant__ gk_tma_work, const __grid_constant__ gk_tensor_map, const __grid_constant__ gk_tensor_map) {}

#endif
#endif
