// Inner products of two vectors, and the 2-norm: the root of an array's product with itself.
#include "reduce/reduce.cuh"

#define GK_DOT_ROW(dtype, name, T, bytes, text, number, variant, note) GK_REDUCE(dot, variant, dtype, gk_dot_##name, GK_REDUCE_THREADS, note)
GK_REAL_DTYPES(GK_DOT_ROW, compensated, "what products and additions round off is carried along")
GK_HALF_DTYPES(GK_DOT_ROW, single_launch, "products and sums in float32, where those of float16 are exact, rounded once at the end")
// Whole numbers of a size have the same bits: a kernel takes them as unsigned ones, which is fewer instructions.
#define GK_DOT_OF_WHOLE(dtype, name, T, bytes, ...) GK_REDUCE(dot, single_launch, dtype, gk_dot_whole_##bytes, GK_REDUCE_THREADS, "wraps around as NumPy does")
GK_SIGNED_DTYPES(GK_DOT_OF_WHOLE, )
GK_UNSIGNED_DTYPES(GK_DOT_OF_WHOLE, )
GK_BOOLEAN_DTYPES(GK_DOT_ROW, single_launch, "whether both are true anywhere")

// Squares of integers of one or two bytes add up exactly in int64, those of others as doubles do.
#define GK_NORM_ROW(dtype, name, T, bytes, text, number, variant, note) GK_WALKS_OF_REALS(norm, variant, dtype, gk_norm_##name, note)
#define GK_NORM_WHOLE(dtype, name, T, bytes, ...) GK_NORM_WHOLE_##bytes(dtype, name)
#define GK_NORM_WHOLE_1(dtype, name) GK_WALKS(norm, single_launch, dtype, gk_norm_##name, "exact squares in int64, the root in float64")
#define GK_NORM_WHOLE_2(dtype, name) GK_NORM_WHOLE_1(dtype, name)
#define GK_NORM_WHOLE_4(dtype, name) GK_WALKS(norm, compensated, dtype, gk_norm_##name, "squares in float64")
#define GK_NORM_WHOLE_8(dtype, name) GK_NORM_WHOLE_4(dtype, name)
GK_REAL_DTYPES(GK_NORM_ROW, compensated, "squares and their sum in twice the precision")
GK_HALF_DTYPES(GK_NORM_ROW, single_launch, "squares in float32, rounded once at the end")
GK_SIGNED_DTYPES(GK_NORM_WHOLE, )
GK_UNSIGNED_DTYPES(GK_NORM_WHOLE, )
GK_BOOLEAN_DTYPES(GK_NORM_WHOLE, )

#ifndef GK_ROWS_ONLY

#define GK_DOT_KERNEL(name, T, Op, A)                                                              \
    extern "C" __global__ void __launch_bounds__(GK_REDUCE_THREADS, GK_REDUCE_RESIDENT) gk_dot_##name(gk_reduction how, const T *a, const T *b) { \
        gk_reduce_rows<Op<2, T, A>>(how, gk_run_of(how, a), gk_run_of(how, b));                    \
    }
#define GK_COMPENSATED_DOT(dtype, name, T, ...) GK_DOT_KERNEL(name, T, gk_compensated_dot, T)
#define GK_PLAIN_DOT(dtype, name, T, ...)       GK_DOT_KERNEL(name, T, gk_plain_dot, gk_traits<T>::sum)
#define GK_WHOLE_DOT(dtype, name, T, bytes, ...) GK_DOT_KERNEL(whole_##bytes, T, gk_plain_dot, gk_traits<T>::sum)
GK_REAL_DTYPES(GK_COMPENSATED_DOT, )
GK_HALF_DTYPES(GK_PLAIN_DOT, )
GK_UNSIGNED_DTYPES(GK_WHOLE_DOT, )
GK_BOOLEAN_DTYPES(GK_PLAIN_DOT, )

#define GK_NORM_KERNELS(kernels, name, T, Op, A)                                                   \
    typedef Op<1, T, A> norm_##name;                                                               \
    kernels(gk_norm_##name, norm_##name)
#define GK_COMPENSATED_NORM(dtype, name, T, ...)      GK_NORM_KERNELS(GK_REDUCE_KERNELS_OF_REALS, name, T, gk_compensated_dot, T)
#define GK_PLAIN_NORM(dtype, name, T, ...)            GK_NORM_KERNELS(GK_REDUCE_KERNELS_OF_REALS, name, T, gk_plain_dot, gk_traits<T>::sum)
#define GK_WHOLE_NORM(dtype, name, T, bytes, ...)     GK_WHOLE_NORM_##bytes(name, T)
#define GK_WHOLE_NORM_1(name, T)                      GK_NORM_KERNELS(GK_REDUCE_KERNELS, name, T, gk_plain_dot, int64_t)
#define GK_WHOLE_NORM_2(name, T)                      GK_NORM_KERNELS(GK_REDUCE_KERNELS, name, T, gk_plain_dot, int64_t)
#define GK_WHOLE_NORM_4(name, T)                      GK_NORM_KERNELS(GK_REDUCE_KERNELS, name, T, gk_compensated_dot, double)
#define GK_WHOLE_NORM_8(name, T)                      GK_NORM_KERNELS(GK_REDUCE_KERNELS, name, T, gk_compensated_dot, double)
GK_REAL_DTYPES(GK_COMPENSATED_NORM, )
GK_HALF_DTYPES(GK_PLAIN_NORM, )
GK_SIGNED_DTYPES(GK_WHOLE_NORM, )
GK_UNSIGNED_DTYPES(GK_WHOLE_NORM, )
GK_BOOLEAN_DTYPES(GK_WHOLE_NORM, )

#endif
