// The sum of n elements, in two launches: `sum` leaves one partial sum a block, `sum_finish` adds
// the partial sums in one block. The partition depends on n alone, so the same array gives the same
// bits on every GPU (but for `atomic`). Steps after M. Harris, "Optimizing Parallel Reduction in
// CUDA" (2007).
#include "device.cuh"

GK_ACCUMULATE(sum, atomic, float32, gk_sum_atomic_f32, 1, 256, 4, 75, "every thread adds to one cell: serialized, in no fixed order, subnormals flushed to 0")
GK_ROW(sum, interleaved, float32, gk_sum_interleaved_f32, 1, 256, 4, 75, "pairs in shared memory, the stride doubling: few atomics, but warps diverge")
GK_ROW(sum, tree, float32, gk_sum_tree_f32, 1, 256, 4, 75, "the stride halving: whole warps retire, no bank conflicts")
GK_ROW(sum, shuffle, float32, gk_sum_shuffle_f32, 16, 256, 4, 75, "16 elements a thread, then warp shuffles: registers in place of shared memory")
GK_ROW(sum, shuffle, float64, gk_sum_shuffle_f64, 16, 256, 8, 75, "16 elements a thread, then warp shuffles")
GK_ROW(sum, shuffle, float16, gk_sum_shuffle_f16, 16, 256, 2, 75, "accumulated in float32, rounded once at the end")
GK_ROW(sum, shuffle, bfloat16, gk_sum_shuffle_bf16, 16, 256, 2, 75, "accumulated in float32, rounded once at the end")
GK_ROW(sum, shuffle, int32, gk_sum_shuffle_i32, 16, 256, 4, 75, "accumulated in int64")
GK_ROW(sum, shuffle, int64, gk_sum_shuffle_i64, 16, 256, 8, 75, "wraps around as NumPy does")

GK_ROW(sum_finish, shuffle, float32, gk_sum_finish_f32, 1, 1024, 4, 75, "partial sums to the result")
GK_ROW(sum_finish, shuffle, float64, gk_sum_finish_f64, 1, 1024, 8, 75, "partial sums to the result")
GK_ROW(sum_finish, shuffle, float16, gk_sum_finish_f16, 1, 1024, 2, 75, "float32 partial sums to the result")
GK_ROW(sum_finish, shuffle, bfloat16, gk_sum_finish_bf16, 1, 1024, 2, 75, "float32 partial sums to the result")
GK_ROW(sum_finish, shuffle, int64, gk_sum_finish_i64, 1, 1024, 8, 75, "partial sums to the result")

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

extern "C" __global__ void gk_sum_tree_f32(float *partials, const float *a, size_t n) {
    __shared__ float cell[SUM_THREADS];
    size_t i = gk_thread();
    unsigned t = threadIdx.x;
    cell[t] = i < n ? a[i] : 0.0f;
    __syncthreads();
    for (unsigned stride = SUM_THREADS / 2; stride > 0; stride /= 2) {
        if (t < stride)
            cell[t] += cell[t + stride];
        __syncthreads();
    }
    if (t == 0)
        partials[blockIdx.x] = cell[0];
}

// The sum over a block, in thread 0. Each lane adds what the lane 16, 8, 4, 2, 1 above it holds, so
// shared memory carries one value a warp, not one a thread.
template <int THREADS, typename A> __device__ static inline A block_sum(A sum) {
    __shared__ A of_warp[THREADS / GK_WARP];
    unsigned lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP;
    for (int step = GK_WARP / 2; step > 0; step /= 2)
        sum = gk_plus(sum, __shfl_down_sync(GK_ALL_LANES, sum, step));
    if (lane == 0)
        of_warp[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = lane < THREADS / GK_WARP ? of_warp[lane] : A(0);
        for (int step = GK_WARP / 2; step > 0; step /= 2)
            sum = gk_plus(sum, __shfl_down_sync(GK_ALL_LANES, sum, step));
    }
    return sum;
}

template <typename T, typename A>
__device__ static inline void sum_shuffle(A *partials, const T *a, size_t n) {
    size_t first = (size_t)blockIdx.x * SUM_THREADS * SUM_PER_THREAD + threadIdx.x;
    A sum = A(0);
#pragma unroll
    for (int j = 0; j < SUM_PER_THREAD; j++) {
        size_t i = first + (size_t)j * SUM_THREADS; // neighbouring threads, neighbouring elements
        sum = gk_plus(sum, i < n ? (A)gk_widen(a[i]) : A(0));
    }
    sum = block_sum<SUM_THREADS>(sum);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

template <typename T, typename A>
__device__ static inline void sum_finish(T *result, const A *partials, size_t n) {
    A sum = A(0);
#pragma unroll 8
    for (size_t i = threadIdx.x; i < n; i += FINISH_THREADS)
        sum = gk_plus(sum, partials[i]);
    sum = block_sum<FINISH_THREADS>(sum);
    if (threadIdx.x == 0)
        gk_store(result, sum);
}

#define GK_SUM(symbol, T, A)                                                                       \
    extern "C" __global__ void symbol(A *partials, const T *a, size_t n) {                         \
        sum_shuffle(partials, a, n);                                                               \
    }
#define GK_FINISH(symbol, T, A)                                                                    \
    extern "C" __global__ void symbol(T *result, const A *partials, size_t n) {                    \
        sum_finish(result, partials, n);                                                           \
    }

GK_SUM(gk_sum_shuffle_f32, float, float)
GK_SUM(gk_sum_shuffle_f64, double, double)
GK_SUM(gk_sum_shuffle_f16, float16, float)
GK_SUM(gk_sum_shuffle_bf16, bfloat16, float)
GK_SUM(gk_sum_shuffle_i32, int32_t, int64_t)
GK_SUM(gk_sum_shuffle_i64, int64_t, int64_t)

GK_FINISH(gk_sum_finish_f32, float, float)
GK_FINISH(gk_sum_finish_f64, double, double)
GK_FINISH(gk_sum_finish_f16, float16, float)
GK_FINISH(gk_sum_finish_bf16, bfloat16, float)
GK_FINISH(gk_sum_finish_i64, int64_t, int64_t)

#endif
