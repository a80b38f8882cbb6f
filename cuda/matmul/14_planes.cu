// A float32 has 24 bits, a float16 11: x = h + l, a half each, has about 23 of them, and a b = h h' + (h l' + l
// h') but for what is too small to matter. So tensor cores make a float32 product of three of halves, if each
// row of A and column of B is first multiplied by a power of two that has its largest element fit. bfloat16
// has 8 bits and float32's range: three of them are exact, and six products are enough. These are the kernels
// that go before: they measure the lines, choose a way by what they found, with no word to the host, and split
// the operands, so that whatever stands behind them finds one layout, aligned and along K, however A and B lie.
// The last one makes the product on CUDA cores where something is infinite or not a number, and leaves at once
// where not.
#include "matmul/planes.cuh"
#include "matmul/tiles.cuh"

#define GK_PLANES_PART(name, symbol, of_lines, of_elements, note) \
    GK_ROW(matmul_part, name, float32, symbol, note, .tile_rows = of_lines, .tile_columns = of_elements, .threads = GK_PLANES_THREADS, .alignment = 1, .named = true)
GK_PLANES_PART(measure, gk_matmul_measure_f32, GK_PLANES_LINES, GK_PLANES_MEASURED, "the largest element and the mean logarithm of each line, and the way that follows from them")
GK_PLANES_PART(split, gk_matmul_split_f32, GK_PLANES_LINES, GK_PLANES_SPLIT, "lines, scaled, to two planes of float16 or three of bfloat16")
GK_PLANES_PART(floats, gk_matmul_floats_f32, GK_PLANES_SIDE, GK_PLANES_SIDE, "the product on CUDA cores, for what no planes can hold")

#ifndef GK_ROWS_ONLY

// One operand, as a kernel over lines sees it, and what of it is this block's.
struct planes_operand {
    const float *data;
    uint64_t line_step, depth_step;
    gk_measured *measured;
    int *exponents;
    uint16_t *planes;
    unsigned lines, length;
    unsigned line, depth; // the first of the block
    unsigned group, deep; // of 32 lines, and how many blocks these have
    unsigned number;      // 0 for A and 1 for B
};

// A block has 32 lines and DEPTH elements of each; blocks of A stand before those of B.
template <unsigned DEPTH> __device__ static inline planes_operand operand_of_block(const gk_planes_work &work, unsigned block) {
    unsigned deep = (work.k + DEPTH - 1) / DEPTH, of_a = (work.m + GK_PLANES_LINES - 1) / GK_PLANES_LINES;
    unsigned group = block / deep, depth = block % deep * DEPTH;
    if (group < of_a)
        return {work.a, work.a_line, work.a_depth, work.measured, work.exponents, work.a_planes, work.m, work.k, group * GK_PLANES_LINES, depth, group, deep, 0};
    return {work.b, work.b_line, work.b_depth, work.measured + work.m, work.exponents + work.m, work.b_planes, work.n, work.k, (group - of_a) * GK_PLANES_LINES, depth, group, deep, 1};
}

// The logarithm of a magnitude, too small by no more than a quarter of a power.
__device__ static inline unsigned logarithm(float x) {
    unsigned bits = __float_as_uint(x), normal = 0x00800000, up = 24;
    return (bits < normal ? __float_as_uint(x * 0x1p24f) : bits + (up << 23)) >> 20;
}

// What there is to know of some elements of a line.
struct planes_sample {
    unsigned top, bottom, count, logs;
    __device__ void add(float x) {
        x = fabsf(x);
        unsigned log = logarithm(x);
        bool is_there = x != 0.0f;
        top = max(top, __float_as_uint(x));
        bottom = max(bottom, is_there ? GK_PLANES_LOGS - log : 0);
        count += is_there;
        logs += is_there ? log : 0;
    }
    __device__ void add(const planes_sample &other) {
        top = max(top, other.top);
        bottom = max(bottom, other.bottom);
        count += other.count;
        logs += other.logs;
    }
};

__device__ static inline void report(const planes_operand &of, unsigned line, const planes_sample &sample) {
    if (line >= of.lines || !sample.count)
        return;
    gk_measured *to = &of.measured[line];
    atomicMax(&to->top, sample.top);
    atomicMax(&to->bottom, sample.bottom);
    atomicAdd(&to->count, sample.count);
    atomicAdd(&to->logs, (unsigned long long)sample.logs);
}

// Lines that are runs in memory: a warp takes one at a time, a lane every 32nd element.
__device__ static inline void measure_along(const planes_operand &of) {
    unsigned lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP;
    for (unsigned i = warp; i < GK_PLANES_LINES; i += GK_PLANES_THREADS / GK_WARP) {
        unsigned line = of.line + i;
        planes_sample sample = {0, 0, 0, 0};
        if (line < of.lines) {
            const float *at = of.data + line * of.line_step;
#pragma unroll 16
            for (unsigned j = 0; j < GK_PLANES_MEASURED; j += GK_WARP) {
                unsigned depth = of.depth + j + lane;
                sample.add(depth < of.length ? at[depth] : 0.0f);
            }
        }
#pragma unroll
        for (int apart = GK_WARP / 2; apart > 0; apart /= 2)
            sample.add({__shfl_xor_sync(GK_ALL_LANES, sample.top, apart), __shfl_xor_sync(GK_ALL_LANES, sample.bottom, apart),
                        __shfl_xor_sync(GK_ALL_LANES, sample.count, apart), __shfl_xor_sync(GK_ALL_LANES, sample.logs, apart)});
        if (lane == 0)
            report(of, line, sample);
    }
}

// Lines side by side: a thread has one of them, and every eighth of its elements.
__device__ static inline void measure_across(const planes_operand &of) {
    enum { APART = GK_PLANES_THREADS / GK_PLANES_LINES };
    __shared__ planes_sample samples[APART][GK_PLANES_LINES];
    unsigned i = threadIdx.x % GK_PLANES_LINES, first = threadIdx.x / GK_PLANES_LINES, line = of.line + i;
    planes_sample sample = {0, 0, 0, 0};
    if (line < of.lines) {
        const float *at = of.data + line * of.line_step;
#pragma unroll 16
        for (unsigned j = first; j < GK_PLANES_MEASURED; j += APART) {
            unsigned depth = of.depth + j;
            sample.add(depth < of.length ? at[depth * of.depth_step] : 0.0f);
        }
    }
    samples[first][i] = sample;
    __syncthreads();
    if (first > 0)
        return;
    for (int other = 1; other < APART; other++)
        sample.add(samples[other][i]);
    report(of, line, sample);
}

// Few lines have more than all before them.
template <typename T> __device__ static inline void raise(T *most, T value) {
    if (__ldcg(most) < value)
        atomicMax(most, value);
}

// What all blocks have found of a line.
__device__ static inline void conclude(const gk_planes_work &work, const planes_operand &of, unsigned line) {
    if (line >= of.lines)
        return;
    const gk_measured *from = &of.measured[line];
    unsigned top = __ldcg(&from->top), count = __ldcg(&from->count);
    of.exponents[line] = top >> 23 ? (int)(top >> 23) - 127 : top ? 31 - __clz((int)top) - 149 : 0;
    if (top >= 0x7f800000)
        atomicOr(&work.found->odd, 1u);
    else if (count) {
        unsigned long long largest = logarithm(__uint_as_float(top)) + 2;
        raise(&work.found->drop[of.number], largest * count - __ldcg(&from->logs));
        raise(&work.found->range[of.number], (unsigned)largest + __ldcg(&from->bottom) - GK_PLANES_LOGS);
        raise(&work.found->zeros[of.number], of.length - count);
    }
}

extern "C" __global__ void __launch_bounds__(GK_PLANES_THREADS) gk_matmul_measure_f32(const gk_planes_work work) {
    planes_operand of = operand_of_block<GK_PLANES_MEASURED>(work, blockIdx.x);
    if (of.depth_step == 1)
        measure_along(of);
    else
        measure_across(of);
    if (gk_is_last(&work.arrivals[of.group], of.deep) && threadIdx.x < GK_PLANES_LINES)
        conclude(work, of, of.line + threadIdx.x);
}

// Eight elements to one plane, 16 bytes; the elements become what is left of them.
template <typename T> __device__ static inline void put_plane(uint16_t *to, float (&x)[8], float factor) {
    __align__(16) T part[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        part[i] = T(x[i]);
        x[i] = (x[i] - float(part[i])) * factor;
    }
    *(uint4 *)to = *(const uint4 *)part;
}

// A line's chunk is 32 elements of each plane. The lower halves are 2^11 times what they stand for, so that
// they are no subnormal numbers before the upper ones are.
template <typename T, int PLANES, int TOP>
__device__ static inline void split_eight(const planes_operand &of, unsigned line, unsigned depth, int exponent, float (&x)[8]) {
    unsigned chunks = (of.length + GK_PLANES_CHUNK - 1) / GK_PLANES_CHUNK;
    int shift = TOP - exponent;
    float half = gk_power(shift / 2), other = gk_power(shift - shift / 2);
    uint16_t *to = of.planes + ((uint64_t)line * chunks + depth / GK_PLANES_CHUNK) * PLANES * GK_PLANES_CHUNK + depth % GK_PLANES_CHUNK;
#pragma unroll
    for (int i = 0; i < 8; i++)
        x[i] = x[i] * half * other;
#pragma unroll
    for (int plane = 0; plane < PLANES; plane++)
        put_plane<T>(to + plane * GK_PLANES_CHUNK, x, PLANES == 2 ? 2048.0f : 1.0f);
}

// A block's elements to shared memory, neighbouring threads neighbours in memory.
typedef float planes_tile[GK_PLANES_LINES][GK_PLANES_SPLIT + 1];
template <bool ALONG> __device__ static inline void load_tile(planes_tile &tile, const planes_operand &of) {
    enum { DEEP = GK_PLANES_SPLIT };
    const float *from = of.data + of.line * of.line_step + of.depth * of.depth_step;
#pragma unroll
    for (unsigned e = threadIdx.x; e < GK_PLANES_LINES * DEEP; e += GK_PLANES_THREADS) {
        unsigned i = ALONG ? e / DEEP : e % GK_PLANES_LINES, j = ALONG ? e % DEEP : e / GK_PLANES_LINES;
        bool is_inside = of.line + i < of.lines && of.depth + j < of.length;
        tile[i][j] = is_inside ? from[ALONG ? i * of.line_step + j : i * of.line_step + j * of.depth_step] : 0.0f;
    }
}

// A thread takes runs of eight. The last blocks first: what was measured last is still in the L2 cache.
extern "C" __global__ void __launch_bounds__(GK_PLANES_THREADS, 6) gk_matmul_split_f32(const gk_planes_work work) {
    enum { CHUNK = GK_PLANES_CHUNK, RUNS = CHUNK / 8, APART = GK_PLANES_THREADS / (GK_PLANES_LINES * RUNS) * CHUNK };
    __shared__ planes_tile tile;
    unsigned way = gk_way(work), run = threadIdx.x % RUNS * 8, mine = threadIdx.x / RUNS % GK_PLANES_LINES, first = threadIdx.x / RUNS / GK_PLANES_LINES * CHUNK;
    if (way == GK_BY_FLOATS)
        return;
    planes_operand of = operand_of_block<GK_PLANES_SPLIT>(work, gridDim.x - 1 - blockIdx.x);
    unsigned line = of.line + mine;
    int exponent = line < of.lines ? of.exponents[line] : 0;
    if (of.depth_step == 1)
        load_tile<true>(tile, of);
    else
        load_tile<false>(tile, of);
    __syncthreads();
    if (line >= of.lines)
        return;
    for (unsigned chunk = first; chunk < GK_PLANES_SPLIT && of.depth + chunk < of.length; chunk += APART) {
        float x[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            x[i] = tile[mine][chunk + run + i];
        if (way == GK_BY_HALVES)
            split_eight<float16, 2, GK_HALVES_TOP>(of, line, of.depth + chunk + run, exponent, x);
        else
            split_eight<bfloat16, 3, GK_BFLOATS_TOP>(of, line, of.depth + chunk + run, exponent, x);
    }
}

// The product itself, element by element where nothing is known of how they lie.
extern "C" __global__ void __launch_bounds__(GK_SQUARE_THREADS, 2) gk_matmul_floats_f32(const gk_planes_work work) {
    enum { SIDE = GK_SQUARE_SIDE, DEPTH = 8 };
    __shared__ __align__(16) gk_tile<DEPTH, SIDE> tile_a, tile_b;
    if (gk_way(work) != GK_BY_FLOATS)
        return;
    gk_product of = {work.m, work.n, work.k, work.a_line, work.a_depth, work.b_depth, work.b_line, 0, 0, 0, 0};
    gk_corner corner = gk_grouped_corner(blockIdx.x, of.m, of.n, SIDE, SIDE);
    gk_lines rows = gk_rows_of(work.a, of, corner.row), columns = gk_columns_of(work.b, of, corner.column);
    gk_square place = {threadIdx.x % 16, threadIdx.x / 16};
    float sum[8][8] = {};
    for (size_t step = 0; step < of.k; step += DEPTH) {
        gk_fetch<GK_SQUARE_THREADS>(tile_a, rows, step);
        gk_fetch<GK_SQUARE_THREADS>(tile_b, columns, step);
        __syncthreads();
        gk_multiply(tile_a.at, tile_b.at, place, sum);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) {
            size_t row = corner.row + 4 * place.y + i % 4 + i / 4 * (SIDE / 2), column = corner.column + 4 * place.x + j % 4 + j / 4 * (SIDE / 2);
            if (row < of.m && column < of.n)
                work.c[row * of.n + column] = sum[i][j];
        }
}

#endif
