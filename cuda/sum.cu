// The sum of n elements, step by step after M. Harris, "Optimizing Parallel Reduction in CUDA" (2007),
// and on to sums that are as exact as the result's dtype can show. Up to `vectorized` a launch leaves
// one partial sum a block, and `sum_finish` adds those; from `single_launch` on see reduce.cuh. The
// order of the additions depends on n alone, so the same array gives the same bits on every GPU
// (`atomic` apart).
#include "device.cuh"
#include "reduce.cuh"

GK_ACCUMULATE(sum, atomic, float32, gk_sum_atomic_f32, 1, 256, 4, 75, "every thread adds to one cell: serialized, in no fixed order, subnormals flushed to 0")
GK_ROW(sum, interleaved, float32, gk_sum_interleaved_f32, 1, 256, 4, 75, "pairs in shared memory, the stride doubling: few atomics, but warps diverge")
GK_ROW(sum, sequential, float32, gk_sum_sequential_f32, 1, 256, 4, 75, "the stride halving: whole warps retire, no bank conflicts")
GK_ROW(sum, first_add, float32, gk_sum_first_add_f32, 2, 256, 4, 75, "a thread adds two elements as it loads them: half of the threads no longer idle from the start")
GK_ROW(sum, shuffle, float32, gk_sum_shuffle_f32, 16, 256, 4, 75, "16 elements a thread, then warp shuffles: registers in place of shared memory")
GK_ROW(sum, vectorized, float32, gk_sum_vectorized_f32, 16, 256, 16, 75, "the 16 elements as four 128-bit loads: a quarter of the instructions for as many bytes under way")
GK_REDUCTION(sum, single_launch, float32, gk_sum_plain_f32, "the last block to arrive adds the partial sums: one launch; fewer, longer segments")
GK_REDUCTION(sum, compensated, float32, gk_sum_f32, "what each addition rounds off is carried along: twice the precision in the time that the loads take anyway")
GK_REDUCTION(sum, compensated, float64, gk_sum_f64, "what each addition rounds off is carried along: twice the precision")
GK_REDUCTION(sum, single_launch, float16, gk_sum_f16, "accumulated in float32, rounded once at the end")
GK_REDUCTION(sum, single_launch, bfloat16, gk_sum_bf16, "accumulated in float32, rounded once at the end")
GK_REDUCTION(sum, single_launch, int32, gk_sum_i32, "accumulated in int64")
GK_REDUCTION(sum, single_launch, int64, gk_sum_i64, "wraps around as NumPy does")
GK_REDUCTION(sum, single_launch, int8, gk_sum_i8, "accumulated in int64")
GK_REDUCTION(sum, single_launch, uint8, gk_sum_u8, "accumulated in int64")
GK_ROW(sum_finish, shuffle, float32, gk_sum_finish_f32, 1, 1024, 4, 75, "partial sums to the result")

// With dtype=float64 asked for, and what a mean of int64 is made of.
GK_REDUCTION(sum_wide, compensated, float32, gk_sum_wide_f32, "accumulated in float64")
GK_REDUCTION(sum_wide, compensated, float16, gk_sum_wide_f16, "accumulated in float64")
GK_REDUCTION(sum_wide, compensated, bfloat16, gk_sum_wide_bf16, "accumulated in float64")
GK_REDUCTION(sum_wide, compensated, int64, gk_sum_wide_i64, "accumulated in float64")

// A mean is a sum that is divided as it is stored.
GK_REDUCTION(mean, compensated, float32, gk_sum_f32, "the compensated sum, divided in float64 and rounded once")
GK_REDUCTION(mean, compensated, float64, gk_sum_f64, "the compensated sum, divided")
GK_REDUCTION(mean, single_launch, float16, gk_sum_f16, "accumulated in float32, rounded once at the end")
GK_REDUCTION(mean, single_launch, bfloat16, gk_sum_bf16, "accumulated in float32, rounded once at the end")
GK_REDUCTION(mean, single_launch, int32, gk_sum_i32, "the exact sum in int64, divided in float64")
GK_REDUCTION(mean, compensated, int64, gk_sum_wide_i64, "accumulated in float64")
GK_REDUCTION(mean, single_launch, int8, gk_sum_i8, "the exact sum in int64, divided in float64")
GK_REDUCTION(mean, single_launch, uint8, gk_sum_u8, "the exact sum in int64, divided in float64")

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
typedef gk_compensated_sum<float, float> sum_f32;
typedef gk_compensated_sum<double, double> sum_f64;
typedef gk_plain_sum<float16, float> sum_f16;
typedef gk_plain_sum<bfloat16, float> sum_bf16;
typedef gk_plain_sum<int32_t, int64_t> sum_i32;
typedef gk_plain_sum<int64_t, int64_t> sum_i64;
typedef gk_plain_sum<int8_t, int64_t> sum_i8;
typedef gk_plain_sum<uint8_t, int64_t> sum_u8;
typedef gk_compensated_sum<float, double> wide_f32;
typedef gk_compensated_sum<float16, double> wide_f16;
typedef gk_compensated_sum<bfloat16, double> wide_bf16;
typedef gk_compensated_sum<int64_t, double> wide_i64;

GK_REDUCE_KERNELS(gk_sum_plain_f32, plain_f32)
GK_REDUCE_KERNELS(gk_sum_f32, sum_f32)
GK_REDUCE_KERNELS(gk_sum_f64, sum_f64)
GK_REDUCE_KERNELS(gk_sum_f16, sum_f16)
GK_REDUCE_KERNELS(gk_sum_bf16, sum_bf16)
GK_REDUCE_KERNELS(gk_sum_i32, sum_i32)
GK_REDUCE_KERNELS(gk_sum_i64, sum_i64)
GK_REDUCE_KERNELS(gk_sum_i8, sum_i8)
GK_REDUCE_KERNELS(gk_sum_u8, sum_u8)
GK_REDUCE_KERNELS(gk_sum_wide_f32, wide_f32)
GK_REDUCE_KERNELS(gk_sum_wide_f16, wide_f16)
GK_REDUCE_KERNELS(gk_sum_wide_bf16, wide_bf16)
GK_REDUCE_KERNELS(gk_sum_wide_i64, wide_i64)

#endif
