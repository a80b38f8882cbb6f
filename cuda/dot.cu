// Inner products of two vectors, and the 2-norm: the root of an array's product with itself.
#include "device.cuh"
#include "reduce.cuh"

// X(dtype, suffix, element, operation, carried in, variant, note), a line a dtype.
#define GK_DOTS(X)                                                                                 \
    X(float32, f32, float, gk_compensated_dot, float, compensated, "what products and additions round off is carried along") \
    X(float64, f64, double, gk_compensated_dot, double, compensated, "what products and additions round off is carried along") \
    X(float16, f16, float16, gk_plain_dot, float, single_launch, "exact products, added in float32, rounded once at the end") \
    X(bfloat16, bf16, bfloat16, gk_plain_dot, float, single_launch, "products and sums in float32, rounded once at the end") \
    X(int32, i32, int32_t, gk_plain_dot, int64_t, single_launch, "wraps around as NumPy does")     \
    X(int64, i64, int64_t, gk_plain_dot, int64_t, single_launch, "wraps around as NumPy does")     \
    X(int8, i8, int8_t, gk_plain_dot, int64_t, single_launch, "wraps around as NumPy does")        \
    X(uint8, u8, uint8_t, gk_plain_dot, int64_t, single_launch, "wraps around as NumPy does")

#define GK_NORMS(X)                                                                                \
    X(float32, f32, float, gk_compensated_dot, float, compensated, "squares and their sum in twice the precision") \
    X(float64, f64, double, gk_compensated_dot, double, compensated, "squares and their sum in twice the precision") \
    X(float16, f16, float16, gk_plain_dot, float, single_launch, "squares in float32, rounded once at the end") \
    X(bfloat16, bf16, bfloat16, gk_plain_dot, float, single_launch, "squares in float32, rounded once at the end") \
    X(int32, i32, int32_t, gk_compensated_dot, double, compensated, "squares in float64")          \
    X(int64, i64, int64_t, gk_compensated_dot, double, compensated, "squares in float64")          \
    X(int8, i8, int8_t, gk_plain_dot, int64_t, single_launch, "exact squares in int64, the root in float64") \
    X(uint8, u8, uint8_t, gk_plain_dot, int64_t, single_launch, "exact squares in int64, the root in float64")

#define GK_DOT_ROW(dtype, suffix, T, Op, A, variant, note)  GK_REDUCE(dot, variant, dtype, gk_dot_##suffix, GK_REDUCE_THREADS, note)
#define GK_NORM_ROW(dtype, suffix, T, Op, A, variant, note) GK_REDUCTION(norm, variant, dtype, gk_norm_##suffix, note)
GK_DOTS(GK_DOT_ROW)
GK_NORMS(GK_NORM_ROW)

#ifndef GK_ROWS_ONLY

#define GK_DOT_KERNEL(dtype, suffix, T, Op, A, variant, note)                                      \
    extern "C" __global__ void __launch_bounds__(GK_REDUCE_THREADS, GK_REDUCE_RESIDENT) gk_dot_##suffix(gk_reduction how, const T *a, const T *b) { \
        gk_reduce_rows<Op<2, T, A>>(how, a, b);                                                    \
    }
GK_DOTS(GK_DOT_KERNEL)

#define GK_NORM_KERNELS(dtype, suffix, T, Op, A, variant, note)                                    \
    typedef Op<1, T, A> norm_##suffix;                                                             \
    GK_REDUCE_KERNELS(gk_norm_##suffix, norm_##suffix)
GK_NORMS(GK_NORM_KERNELS)

#endif
