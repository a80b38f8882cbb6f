// Products, extremes and where they are; over all elements or along an axis (reduce.cuh).
#include "device.cuh"
#include "reduce.cuh"

// X(dtype, suffix, element, wider type, note), a line a dtype.
#define GK_PRODUCTS(X)                                                                             \
    X(float32, f32, float, float, "one multiplication an element")                                 \
    X(float64, f64, double, double, "one multiplication an element")                               \
    X(float16, f16, float16, float, "multiplied in float32, rounded once at the end")              \
    X(bfloat16, bf16, bfloat16, float, "multiplied in float32, rounded once at the end")           \
    X(int32, i32, int32_t, int64_t, "multiplied in int64")                                         \
    X(int64, i64, int64_t, int64_t, "wraps around as NumPy does")                                  \
    X(int8, i8, int8_t, int64_t, "multiplied in int64")                                            \
    X(uint8, u8, uint8_t, int64_t, "multiplied in int64")

#define GK_EXTREMES(X)                                                                             \
    X(float32, f32, float, float, "NaN wins")                                                      \
    X(float64, f64, double, double, "NaN wins")                                                    \
    X(float16, f16, float16, float, "NaN wins")                                                    \
    X(bfloat16, bf16, bfloat16, float, "NaN wins")                                                 \
    X(int32, i32, int32_t, int32_t, "the values as they are")                                      \
    X(int64, i64, int64_t, int64_t, "the values as they are")                                      \
    X(int8, i8, int8_t, int32_t, "compared as int32")                                              \
    X(uint8, u8, uint8_t, int32_t, "compared as int32")

#define GK_PRODUCT_ROW(dtype, suffix, T, A, note) GK_REDUCTION(prod, single_launch, dtype, gk_prod_##suffix, note)
GK_PRODUCTS(GK_PRODUCT_ROW)

// The least value is the greatest one of the reverse order: one kernel serves both.
#define GK_MAX_ROW(dtype, suffix, T, A, note) GK_REDUCTION(max, single_launch, dtype, gk_extreme_##suffix, note)
#define GK_MIN_ROW(dtype, suffix, T, A, note) GK_REDUCTION(min, single_launch, dtype, gk_extreme_##suffix, note)
#define GK_ARGMAX_ROW(dtype, suffix, T, A, note) GK_REDUCTION(argmax, single_launch, dtype, gk_index_##suffix, note "; the first of several")
#define GK_ARGMIN_ROW(dtype, suffix, T, A, note) GK_REDUCTION(argmin, single_launch, dtype, gk_index_##suffix, note "; the first of several")
GK_EXTREMES(GK_MAX_ROW)
GK_EXTREMES(GK_MIN_ROW)
GK_EXTREMES(GK_ARGMAX_ROW)
GK_EXTREMES(GK_ARGMIN_ROW)

#ifndef GK_ROWS_ONLY

#define GK_PRODUCT_KERNELS(dtype, suffix, T, A, note)                                              \
    typedef gk_product<T, A> prod_##suffix;                                                        \
    GK_REDUCE_KERNELS(gk_prod_##suffix, prod_##suffix)
GK_PRODUCTS(GK_PRODUCT_KERNELS)

#define GK_EXTREME_KERNELS(dtype, suffix, T, A, note)                                              \
    typedef gk_extreme<T, A> extreme_##suffix;                                                     \
    typedef gk_extreme_index<T, A> index_##suffix;                                                 \
    GK_REDUCE_KERNELS(gk_extreme_##suffix, extreme_##suffix)                                       \
    GK_REDUCE_KERNELS(gk_index_##suffix, index_##suffix)
GK_EXTREMES(GK_EXTREME_KERNELS)

#endif
