// Products, over all elements or along an axis.
#include "reduce/reduce.cuh"

#define GK_PRODUCT_ROW(dtype, name, T, bytes, text, number, note)     GK_WALKS(prod, single_launch, dtype, gk_prod_##name, note)
#define GK_PRODUCT_OF_REALS(dtype, name, T, bytes, text, number, note) GK_WALKS_OF_REALS(prod, single_launch, dtype, gk_prod_##name, note)
GK_REAL_DTYPES(GK_PRODUCT_OF_REALS, "one multiplication an element")
GK_HALF_DTYPES(GK_PRODUCT_OF_REALS, "multiplied in float32, rounded once at the end")
#define GK_PRODUCT_IN_64_BITS "multiplied in 64 bits, wrapping around as NumPy does"
GK_SIGNED_DTYPES(GK_PRODUCT_ROW, GK_PRODUCT_IN_64_BITS)
GK_UNSIGNED_BELOW_64(GK_PRODUCT_ROW, GK_PRODUCT_IN_64_BITS)
GK_WALKS(prod, single_launch, uint64, gk_prod_i64, GK_PRODUCT_IN_64_BITS)
GK_BOOLEAN_DTYPES(GK_PRODUCT_ROW, "1 where all are true")

#ifndef GK_ROWS_ONLY

#define GK_PRODUCT_KERNELS(dtype, name, T, bytes, text, number, kernels)                           \
    typedef gk_product<T, gk_traits<T>::sum> prod_##name;                                          \
    kernels(gk_prod_##name, prod_##name)
GK_REAL_DTYPES(GK_PRODUCT_KERNELS, GK_REDUCE_KERNELS_OF_REALS)
GK_HALF_DTYPES(GK_PRODUCT_KERNELS, GK_REDUCE_KERNELS_OF_REALS)
GK_SIGNED_DTYPES(GK_PRODUCT_KERNELS, GK_REDUCE_KERNELS)
GK_UNSIGNED_BELOW_64(GK_PRODUCT_KERNELS, GK_REDUCE_KERNELS)
GK_BOOLEAN_DTYPES(GK_PRODUCT_KERNELS, GK_REDUCE_KERNELS)

#endif
