// out[i] = a[i] + b[i]: a memory-bound kernel, so what counts is how many bytes a thread has in
// flight for each instruction that it issues.
#include "device.cuh"

GK_ROW(add, f32, float32, gk_add_f32, 1, 256, 4, 75, "one element a thread: the plainest kernel that is coalesced")
GK_ROW(add, f32x4, float32, gk_add_f32x4, 4, 256, 16, 75, "one 128-bit load and store moves four floats")
GK_ROW(add, f64, float64, gk_add_f64, 1, 256, 8, 75, "one element a thread")
GK_ROW(add, f16, float16, gk_add_f16, 1, 256, 2, 75, "one element a thread: 2-byte accesses waste most of each instruction")
GK_ROW(add, f16x2, float16, gk_add_f16x2, 2, 256, 4, 75, "half2: one instruction adds two halves")
GK_ROW(add, f16x8, float16, gk_add_f16x8, 8, 256, 4, 75, "four half2 a thread: more loads in flight, still 32 bits each")
GK_ROW(add, f16x8_pack, float16, gk_add_f16x8_pack, 8, 256, 16, 75, "the four half2 packed in one 128-bit load and store")
GK_ROW(add, bf16, bfloat16, gk_add_bf16, 1, 256, 2, 75, "one element a thread")
GK_ROW(add, i32, int32, gk_add_i32, 1, 256, 4, 75, "one element a thread")
GK_ROW(add, i64, int64, gk_add_i64, 1, 256, 8, 75, "one element a thread")
GK_ROW(add, i8, int8, gk_add_i8, 1, 256, 1, 75, "one element a thread")
GK_ROW(add, u8, uint8, gk_add_u8, 1, 256, 1, 75, "one element a thread")

#ifndef GK_ROWS_ONLY

#define GK_ADD(symbol, T)                                                                          \
    extern "C" __global__ void symbol(T *out, const T *a, const T *b, size_t n) {                  \
        size_t i = gk_thread();                                                                    \
        if (i < n)                                                                                 \
            out[i] = gk_plus(a[i], b[i]);                                                          \
    }

GK_ADD(gk_add_f32, float)
GK_ADD(gk_add_f64, double)
GK_ADD(gk_add_f16, float16)
GK_ADD(gk_add_bf16, bfloat16)
GK_ADD(gk_add_i32, int32_t)
GK_ADD(gk_add_i64, int64_t)
GK_ADD(gk_add_i8, int8_t)
GK_ADD(gk_add_u8, uint8_t)

// The last thread of a vectorized kernel finishes what is less than a vector, one by one.
template <typename T>
__device__ static inline void add_rest(T *out, const T *a, const T *b, size_t first, size_t n) {
    for (size_t i = first; i < n; i++)
        out[i] = gk_plus(a[i], b[i]);
}

extern "C" __global__ void gk_add_f32x4(float *out, const float *a, const float *b, size_t n) {
    size_t i = gk_thread() * 4;
    if (i + 4 <= n) {
        float4 x = *(const float4 *)(a + i), y = *(const float4 *)(b + i);
        *(float4 *)(out + i) = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    } else {
        add_rest(out, a, b, i, n);
    }
}

extern "C" __global__ void gk_add_f16x2(float16 *out, const float16 *a, const float16 *b, size_t n) {
    size_t i = gk_thread() * 2;
    if (i + 2 <= n)
        *(__half2 *)(out + i) = __hadd2(*(const __half2 *)(a + i), *(const __half2 *)(b + i));
    else
        add_rest(out, a, b, i, n);
}

extern "C" __global__ void gk_add_f16x8(float16 *out, const float16 *a, const float16 *b, size_t n) {
    size_t i = gk_thread() * 8;
    if (i + 8 <= n) {
        const __half2 *x = (const __half2 *)(a + i), *y = (const __half2 *)(b + i);
        __half2 *sums = (__half2 *)(out + i);
        // All loads before the first store: out may be a or b, so the compiler cannot reorder them.
        __half2 first = __hadd2(x[0], y[0]), second = __hadd2(x[1], y[1]);
        __half2 third = __hadd2(x[2], y[2]), fourth = __hadd2(x[3], y[3]);
        sums[0] = first;
        sums[1] = second;
        sums[2] = third;
        sums[3] = fourth;
    } else {
        add_rest(out, a, b, i, n);
    }
}

// Eight halves as the registers of one 128-bit access.
struct alignas(16) gk_half8 {
    __half2 pair[4];
};

extern "C" __global__ void gk_add_f16x8_pack(float16 *out, const float16 *a, const float16 *b, size_t n) {
    size_t i = gk_thread() * 8;
    if (i + 8 <= n) {
        gk_half8 x = *(const gk_half8 *)(a + i), y = *(const gk_half8 *)(b + i), sum;
#pragma unroll
        for (int j = 0; j < 4; j++)
            sum.pair[j] = __hadd2(x.pair[j], y.pair[j]);
        *(gk_half8 *)(out + i) = sum;
    } else {
        add_rest(out, a, b, i, n);
    }
}

#endif
