// The sum of n elements, step by step after M. Harris, "Optimizing Parallel Reduction in CUDA" (2007),
// and on to sums that are as exact as the result's dtype can show. Up to `vectorized` a launch leaves
// one partial sum a block, and `sum_finish` adds those; from `single_launch` on see reduce.cuh. The
// order of the additions depends on n alone, so the same array gives the same bits on every GPU
// (`atomic` apart).
#include "reduce/reduce.cuh"

#define GK_SUM_STEP(variant, symbol, each, aligned, note, ...)                                     \
    GK_ROW(sum, variant, float32, symbol, note, .tile_rows = 1, .tile_columns = (each) * 256, .threads = 256, .alignment = aligned, __VA_ARGS__)
GK_SUM_STEP(atomic, gk_sum_atomic_f32, 1, 4, "every thread adds to one cell: serialized, in no fixed order, subnormals flushed to 0", .accumulates = true)
GK_SUM_STEP(interleaved, gk_sum_interleaved_f32, 1, 4, "pairs in shared memory, the stride doubling: few atomics, but warps diverge", )
GK_SUM_STEP(sequential, gk_sum_sequential_f32, 1, 4, "the stride halving: whole warps retire, no bank conflicts", )
GK_SUM_STEP(first_add, gk_sum_first_add_f32, 2, 4, "a thread adds two elements as it loads them: half of the threads no longer idle from the start", )
GK_SUM_STEP(shuffle, gk_sum_shuffle_f32, 16, 4, "16 elements a thread, then warp shuffles: registers in place of shared memory", )
GK_SUM_STEP(vectorized, gk_sum_vectorized_f32, 16, 16, "the 16 elements as four 128-bit loads: a quarter of the instructions for as many bytes under way", )
GK_ROW(sum_finish, shuffle, float32, gk_sum_finish_f32, "partial sums to the result", .tile_rows = 1, .tile_columns = 1024, .threads = 1024, .alignment = 4)
GK_WALKS_IN_ORDER(sum, single_launch, float32, gk_sum_plain_f32, "the last block to arrive adds the partial sums: one launch; fewer, longer segments")

// Every dtype's default: real ones compensated, the others in an accumulator that is wide enough.
#define GK_SUM_COMPENSATED(dtype, name, T, bytes, text, number, op, note) GK_WALKS_IN_ORDER(op, compensated, dtype, gk_sum_##name, note)
#define GK_SUM_OF_HALVES(dtype, name, T, bytes, text, number, op, note)   GK_WALKS_IN_ORDER(op, single_launch, dtype, gk_sum_##name, note)
#define GK_SUM_PLAIN(dtype, name, T, bytes, text, number, op, note)       GK_WALKS(op, single_launch, dtype, gk_sum_##name, note)
GK_REAL_DTYPES(GK_SUM_COMPENSATED, sum, "what each addition rounds off is carried along: twice the precision in the time that the loads take anyway")
GK_HALF_DTYPES(GK_SUM_OF_HALVES, sum, "accumulated in float32, rounded once at the end")
#define GK_SUMS_IN_INT64(X, ...) GK_SIGNED_DTYPES(X, __VA_ARGS__) GK_UNSIGNED_BELOW_64(X, __VA_ARGS__) GK_BOOLEAN_DTYPES(X, __VA_ARGS__)
#define GK_SUM_IN_64_BITS "accumulated in 64 bits, wrapping around as NumPy does"
GK_SUMS_IN_INT64(GK_SUM_PLAIN, sum, GK_SUM_IN_64_BITS)
GK_WALKS(sum, single_launch, uint64, gk_sum_i64, GK_SUM_IN_64_BITS)

// In float64, with dtype=float64 asked for, and what a mean of 64-bit integers is made of. X(dtype, name, type, carried in)
#define GK_WIDE_SUMS_OF_REALS(X)                                                                   \
    X(float32, f32, float, double)                                                                 \
    X(float16, f16, float16, double)                                                               \
    X(bfloat16, bf16, bfloat16, double)
#define GK_WIDE_SUMS_OF_WHOLE(X)                                                                   \
    X(int64, i64, int64_t, double)                                                                 \
    X(uint64, u64, uint64_t, double)
#define GK_WIDE_ROW(walks, dtype, name)    walks(sum_wide, compensated, dtype, gk_sum_wide_##name, "accumulated in float64")
#define GK_WIDE_REAL(dtype, name, ...)     GK_WIDE_ROW(GK_WALKS_OF_REALS, dtype, name)
#define GK_WIDE_WHOLE(dtype, name, ...)    GK_WIDE_ROW(GK_WALKS, dtype, name)
GK_WIDE_SUMS_OF_REALS(GK_WIDE_REAL)
GK_WIDE_SUMS_OF_WHOLE(GK_WIDE_WHOLE)

// A mean is a sum that is divided as it is stored; of 64-bit integers one in float64.
GK_REAL_DTYPES(GK_SUM_COMPENSATED, mean, "the compensated sum, divided in float64 and rounded once")
GK_HALF_DTYPES(GK_SUM_OF_HALVES, mean, "accumulated in float32, rounded once at the end")
#define GK_MEAN_WHOLE(dtype, name, T, bytes, ...) GK_MEAN_WHOLE_##bytes(dtype, name)
#define GK_MEAN_WHOLE_1(dtype, name) GK_WALKS(mean, single_launch, dtype, gk_sum_##name, "the exact sum in int64, divided in float64")
#define GK_MEAN_WHOLE_2(dtype, name) GK_MEAN_WHOLE_1(dtype, name)
#define GK_MEAN_WHOLE_4(dtype, name) GK_MEAN_WHOLE_1(dtype, name)
#define GK_MEAN_WHOLE_8(dtype, name) GK_WALKS(mean, compensated, dtype, gk_sum_wide_##name, "accumulated in float64")
GK_SUMS_IN_INT64(GK_MEAN_WHOLE, )
GK_UINT64_DTYPE(GK_MEAN_WHOLE, )

#ifndef GK_ROWS_ONLY

enum { SUM_THREADS = 256, SUM_PER_THREAD = 16, FINISH_THREADS = 1024 };

extern "C" __global__ void gk_sum_atomic_f32(float *total, const float *a, size_t n) {
    size_t i = gk_thread();
    if (i < n)
        atomicAdd(total, a[i]);
}

extern "C" __global__ void gk_sum_interleaved_f32(float *partials, const float *a, size_t n) {
    __shared__ float cell[SUM_THREADS];
    size_t i = gk_thread();
    unsigned t = threadIdx.x;
    cell[t] = i < n ? a[i] : 0.0f;
    __syncthreads();
    for (unsigned stride = 1; stride < SUM_THREADS; stride *= 2) {
        if (t % (2 * stride) == 0)
            cell[t] += cell[t + stride];
        __syncthreads();
    }
    if (t == 0)
        partials[blockIdx.x] = cell[0];
}

// Each thread's own value in `cell`; their sum in cell[0].
__device__ static inline void add_sequentially(float *cell) {
    unsigned t = threadIdx.x;
    __syncthreads();
    for (unsigned stride = SUM_THREADS / 2; stride > 0; stride /= 2) {
        if (t < stride)
            cell[t] += cell[t + stride];
        __syncthreads();
    }
}

extern "C" __global__ void gk_sum_sequential_f32(float *partials, const float *a, size_t n) {
    __shared__ float cell[SUM_THREADS];
    size_t i = gk_thread();
    cell[threadIdx.x] = i < n ? a[i] : 0.0f;
    add_sequentially(cell);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = cell[0];
}

extern "C" __global__ void gk_sum_first_add_f32(float *partials, const float *a, size_t n) {
    __shared__ float cell[SUM_THREADS];
    size_t i = (size_t)blockIdx.x * SUM_THREADS * 2 + threadIdx.x;
    float first = i < n ? a[i] : 0.0f, second = i + SUM_THREADS < n ? a[i + SUM_THREADS] : 0.0f;
    cell[threadIdx.x] = first + second;
    add_sequentially(cell);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = cell[0];
}

// The sum over a block, in thread 0. Each lane adds what the lane 16, 8, 4, 2, 1 above it holds, so
// shared memory carries one value a warp, not one a thread.
template <int THREADS> __device__ static inline float block_sum(float sum) {
    __shared__ float of_warp[THREADS / GK_WARP];
    unsigned lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP;
    for (int step = GK_WARP / 2; step > 0; step /= 2)
        sum += __shfl_down_sync(GK_ALL_LANES, sum, step);
    if (lane == 0)
        of_warp[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = lane < THREADS / GK_WARP ? of_warp[lane] : 0.0f;
        for (int step = GK_WARP / 2; step > 0; step /= 2)
            sum += __shfl_down_sync(GK_ALL_LANES, sum, step);
    }
    return sum;
}

extern "C" __global__ void gk_sum_shuffle_f32(float *partials, const float *a, size_t n) {
    size_t first = (size_t)blockIdx.x * SUM_THREADS * SUM_PER_THREAD + threadIdx.x;
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < SUM_PER_THREAD; j++) {
        size_t i = first + (size_t)j * SUM_THREADS; // neighbouring threads, neighbouring elements
        sum += i < n ? a[i] : 0.0f;
    }
    sum = block_sum<SUM_THREADS>(sum);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

extern "C" __global__ void gk_sum_vectorized_f32(float *partials, const float *a, size_t n) {
    size_t first = (size_t)blockIdx.x * SUM_THREADS * SUM_PER_THREAD + threadIdx.x * 4;
    float sum = 0.0f;
    float4 x[SUM_PER_THREAD / 4];
#pragma unroll
    for (int j = 0; j < SUM_PER_THREAD / 4; j++) {
        size_t i = first + (size_t)j * SUM_THREADS * 4;
        x[j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (i + 4 <= n)
            x[j] = *(const float4 *)(a + i);
        else if (i < n)
            x[j] = make_float4(a[i], i + 1 < n ? a[i + 1] : 0.0f, i + 2 < n ? a[i + 2] : 0.0f, 0.0f);
    }
#pragma unroll
    for (int j = 0; j < SUM_PER_THREAD / 4; j++)
        sum = sum + x[j].x + x[j].y + x[j].z + x[j].w;
    sum = block_sum<SUM_THREADS>(sum);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

extern "C" __global__ void gk_sum_finish_f32(float *result, const float *partials, size_t n) {
    float sum = 0.0f;
#pragma unroll 8
    for (size_t i = threadIdx.x; i < n; i += FINISH_THREADS)
        sum += partials[i];
    sum = block_sum<FINISH_THREADS>(sum);
    if (threadIdx.x == 0)
        *result = sum;
}

typedef gk_plain_sum<float, float> plain_f32;
GK_REDUCE_KERNELS_IN_ORDER(gk_sum_plain_f32, plain_f32)

#define GK_COMPENSATED_KERNELS(dtype, name, T, ...)                                                \
    typedef gk_compensated_sum<T, T> sum_##name;                                                   \
    GK_REDUCE_KERNELS_IN_ORDER(gk_sum_##name, sum_##name)
#define GK_HALF_KERNELS(dtype, name, T, ...)                                                       \
    typedef gk_plain_sum<T, gk_traits<T>::sum> sum_##name;                                         \
    GK_REDUCE_KERNELS_IN_ORDER(gk_sum_##name, sum_##name)
#define GK_PLAIN_KERNELS(dtype, name, T, ...)                                                      \
    typedef gk_plain_sum<T, gk_traits<T>::sum> sum_##name;                                         \
    GK_REDUCE_KERNELS(gk_sum_##name, sum_##name)
#define GK_WIDE_KERNELS(kernels, name, T, A)                                                       \
    typedef gk_compensated_sum<T, A> wide_##name;                                                  \
    kernels(gk_sum_wide_##name, wide_##name)
#define GK_WIDE_REAL_KERNELS(dtype, name, T, A)  GK_WIDE_KERNELS(GK_REDUCE_KERNELS_OF_REALS, name, T, A)
#define GK_WIDE_WHOLE_KERNELS(dtype, name, T, A) GK_WIDE_KERNELS(GK_REDUCE_KERNELS, name, T, A)
GK_REAL_DTYPES(GK_COMPENSATED_KERNELS, )
GK_HALF_DTYPES(GK_HALF_KERNELS, )
GK_SUMS_IN_INT64(GK_PLAIN_KERNELS, )
GK_WIDE_SUMS_OF_REALS(GK_WIDE_REAL_KERNELS)
GK_WIDE_SUMS_OF_WHOLE(GK_WIDE_WHOLE_KERNELS)

#endif
