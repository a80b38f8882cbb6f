// out[i] = a[i] + b[i], step by step. Reading and writing is all the time that it takes, so what counts
// is how many bytes a thread has under way for each instruction that it issues. Every step is a kernel
// of contiguous arrays; elementwise.cuh has what serves all other layouts, dtypes and operations.
#include "device.cuh"

#define GK_ADD_THREADS 256
#define GK_ADD_STEP(variant, dtype, each, aligned, note)                                           \
    GK_ROW(add, variant, dtype, gk_add_##variant, note, .tile_rows = 1, .tile_columns = (each) * GK_ADD_THREADS, \
           .threads = GK_ADD_THREADS, .alignment = aligned, .follows = true)

GK_ADD_STEP(f32, float32, 1, 4, "one element a thread: the plainest kernel that is coalesced")
GK_ADD_STEP(f32x4, float32, 4, 16, "one 128-bit load of each operand and one store a thread")
GK_ADD_STEP(f32x8, float32, 8, 16, "two 128-bit loads of each operand before the first store")
GK_ADD_STEP(f16, float16, 1, 2, "one element a thread: 2-byte accesses waste most of each instruction")
GK_ADD_STEP(f16x2, float16, 2, 4, "half2: two halves in one 32-bit access")
GK_ADD_STEP(f16x8, float16, 8, 4, "four half2 a thread: more loads in flight, still 32 bits each")
GK_ADD_STEP(f16x16_pack, float16, 16, 16, "eight half2 a thread, four packed in a 128-bit load or store")
GK_ADD_STEP(f16x8_pack, float16, 8, 16, "one such load of each operand: half as many elements a thread, but twice the threads")

#ifndef GK_ROWS_ONLY

#define GK_ADD(variant, T)                                                                         \
    extern "C" __global__ void __launch_bounds__(GK_ADD_THREADS) gk_add_##variant(T *out, const T *a, const T *b, size_t n)

// The elements from i on, one by one: what is left behind the last whole vector.
template <typename T> __device__ static inline void add_rest(T *out, const T *a, const T *b, size_t i, size_t n) {
#pragma unroll 1
    for (; i < n; i++)
        out[i] = gk_plus(a[i], b[i]);
}

__device__ static inline float4 add4(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

GK_ADD(f32, float) {
    gk_follow();
    size_t i = gk_thread();
    if (i < n)
        out[i] = a[i] + b[i];
}

GK_ADD(f32x4, float) {
    gk_follow();
    size_t i = gk_thread() * 4;
    if (i + 4 <= n)
        __stcs((float4 *)(out + i), add4(*(const float4 *)(a + i), *(const float4 *)(b + i)));
    else
        add_rest(out, a, b, i, n);
}

// The vectors of a thread are a block's width apart, so that the accesses of a warp stay neighbours.
GK_ADD(f32x8, float) {
    gk_follow();
    enum { APART = GK_ADD_THREADS * 4 };
    size_t first = (size_t)blockIdx.x * 2 * APART + threadIdx.x * 4;
    float4 x[2], y[2];
#pragma unroll
    for (int j = 0; j < 2; j++)
        if (size_t i = first + j * APART; i + 4 <= n)
            x[j] = *(const float4 *)(a + i), y[j] = *(const float4 *)(b + i);
#pragma unroll
    for (int j = 0; j < 2; j++)
        if (size_t i = first + j * APART; i + 4 <= n)
            __stcs((float4 *)(out + i), add4(x[j], y[j]));
        else
            add_rest(out, a, b, i, n);
}

GK_ADD(f16, float16) {
    gk_follow();
    size_t i = gk_thread();
    if (i < n)
        out[i] = __hadd(a[i], b[i]);
}

GK_ADD(f16x2, float16) {
    gk_follow();
    size_t i = gk_thread() * 2;
    if (i + 2 <= n)
        *(__half2 *)(out + i) = __hadd2(*(const __half2 *)(a + i), *(const __half2 *)(b + i));
    else
        add_rest(out, a, b, i, n);
}

GK_ADD(f16x8, float16) {
    gk_follow();
    enum { APART = GK_ADD_THREADS * 2 };
    size_t first = (size_t)blockIdx.x * 4 * APART + threadIdx.x * 2;
    __half2 x[4], y[4];
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (size_t i = first + j * APART; i + 2 <= n)
            x[j] = *(const __half2 *)(a + i), y[j] = *(const __half2 *)(b + i);
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (size_t i = first + j * APART; i + 2 <= n)
            *(__half2 *)(out + i) = __hadd2(x[j], y[j]);
        else
            add_rest(out, a, b, i, n);
}

__device__ static inline uint4 add8(uint4 a, uint4 b) {
    __half2 x[4], y[4];
    memcpy(static_cast<void *>(x), &a, sizeof a);
    memcpy(static_cast<void *>(y), &b, sizeof b);
#pragma unroll
    for (int j = 0; j < 4; j++)
        x[j] = __hadd2(x[j], y[j]);
    uint4 sum;
    memcpy(&sum, x, sizeof sum);
    return sum;
}

GK_ADD(f16x16_pack, float16) {
    gk_follow();
    enum { APART = GK_ADD_THREADS * 8 };
    size_t first = (size_t)blockIdx.x * 2 * APART + threadIdx.x * 8;
    uint4 x[2], y[2];
#pragma unroll
    for (int j = 0; j < 2; j++)
        if (size_t i = first + j * APART; i + 8 <= n)
            x[j] = *(const uint4 *)(a + i), y[j] = *(const uint4 *)(b + i);
#pragma unroll
    for (int j = 0; j < 2; j++)
        if (size_t i = first + j * APART; i + 8 <= n)
            __stcs((uint4 *)(out + i), add8(x[j], y[j]));
        else
            add_rest(out, a, b, i, n);
}

GK_ADD(f16x8_pack, float16) {
    gk_follow();
    size_t i = gk_thread() * 8;
    if (i + 8 <= n)
        __stcs((uint4 *)(out + i), add8(*(const uint4 *)(a + i), *(const uint4 *)(b + i)));
    else
        add_rest(out, a, b, i, n);
}

#endif
