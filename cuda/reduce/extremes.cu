// The largest and the smallest value, and where they are; over all elements or along an axis. The least
// value is the greatest one of the reverse order, and unsigned numbers are in the order of signed ones once
// their first bit is turned over: one kernel serves all of these.
#include "reduce/reduce.cuh"

#define GK_EXTREME_ROWS(dtype, name, T, bytes, text, number, note) GK_EXTREME_ROWS_BY(dtype, name, note)
#define GK_EXTREME_ROWS_BY(dtype, name, note)                                                      \
    GK_WALKS(max, single_launch, dtype, gk_extreme_##name, note)                                   \
    GK_OWN_ROWS(max, single_launch, dtype, gk_extreme_##name)                                      \
    GK_WALKS(min, single_launch, dtype, gk_extreme_##name, note)                                   \
    GK_OWN_ROWS(min, single_launch, dtype, gk_extreme_##name)                                      \
    GK_WALKS(argmax, single_launch, dtype, gk_index_##name, note "; the first of several")         \
    GK_WALKS(argmin, single_launch, dtype, gk_index_##name, note "; the first of several")
#define GK_UNSIGNED_ROWS(dtype, name, T, bytes, text, number, note, kernel) GK_EXTREME_ROWS_BY(dtype, kernel, note)
GK_REAL_DTYPES(GK_EXTREME_ROWS, "NaN wins")
GK_HALF_DTYPES(GK_EXTREME_ROWS, "NaN wins")
GK_SIGNED_DTYPES(GK_EXTREME_ROWS, "compared as integers of 32 or 64 bits")
GK_UNSIGNED_AS_SIGNED(GK_UNSIGNED_ROWS, "compared as signed integers, the first bit turned over")
GK_BOOLEAN_DTYPES(GK_EXTREME_ROWS, "false before true")

#ifndef GK_ROWS_ONLY

template <bool NARROW, typename T> struct gk_index { typedef gk_extreme_index<T, typename gk_traits<T>::order> type; };
template <typename T> struct gk_index<true, T> { typedef gk_narrow_index<T> type; };

#define GK_EXTREME_KERNELS(dtype, name, T, ...)                                                    \
    typedef gk_extreme<T, gk_traits<T>::order> extreme_##name;                                     \
    typedef gk_index<sizeof(T) <= 2, T>::type index_##name;                                        \
    GK_REDUCE_KERNELS(gk_extreme_##name, extreme_##name)                                           \
    GK_OWN_KERNEL(gk_extreme_##name, extreme_##name)                                               \
    GK_REDUCE_KERNELS(gk_index_##name, index_##name)
GK_REAL_DTYPES(GK_EXTREME_KERNELS, )
GK_HALF_DTYPES(GK_EXTREME_KERNELS, )
GK_SIGNED_DTYPES(GK_EXTREME_KERNELS, )
GK_BOOLEAN_DTYPES(GK_EXTREME_KERNELS, )

#endif
