// Elements of one dtype as elements of another, between arrays of any strides; and a number of the
// host's into every element. One kernel for all pairs of dtypes: what is read and written is the time
// that it takes, and the two branches are the same for all threads.
#include "device.cuh"
#include "strided.cuh"

#define GK_CONVERT_THREADS 256 // a block

GK_ROW(convert, strided, bits8, gk_convert, "any strides and dtypes, by way of float32, float64 or 64-bit integers",
       .takes = GK_TAKES_LAYOUT, .tile_rows = 1, .tile_columns = GK_LONE_ELEMENTS * GK_CONVERT_THREADS,
       .threads = GK_CONVERT_THREADS, .alignment = 1, .follows = true)

#ifndef GK_ROWS_ONLY

enum { TO, FROM, THREADS = GK_CONVERT_THREADS, PER_THREAD = GK_LONE_ELEMENTS };

// What an element passes through, which has every value of its dtype: the one rounding, or what C
// makes of a value that does not fit, is on the way out of it.
template <typename T> struct gk_passage { typedef int64_t type; };
template <> struct gk_passage<uint64_t> { typedef uint64_t type; };
template <> struct gk_passage<float> { typedef float type; };
template <> struct gk_passage<float16> { typedef float type; };
template <> struct gk_passage<bfloat16> { typedef float type; };
template <> struct gk_passage<double> { typedef double type; };

template <typename A, typename B> struct gk_is_same { enum { value = false }; };
template <typename A> struct gk_is_same<A, A> { enum { value = true }; };

// Out of the passage. A float64 goes to float16 by way of a float32 that is rounded to odd, so that the
// second rounding sees on which side of a midpoint the value lies; see gk_fused in elementwise.cuh.
template <typename T, typename W> __device__ static inline T gk_leave(W x) {
    if constexpr (gk_is_same<W, double>::value && gk_is_same<T, float16>::value) {
        float near = (float)x;
        uint32_t bits = __float_as_uint(near);
        if ((double)near != x && x == x && (bits & 1) == 0)
            bits += fabs((double)near) > fabs(x) ? -1 : 1;
        return __float2half_rn(__uint_as_float(bits));
    } else {
        return gk_as<T>(x);
    }
}

template <typename T, typename W>
__device__ static inline void load_elements(W (&passing)[PER_THREAD], int count, const char *from, const int64_t (&offset)[PER_THREAD][2], uint64_t number) {
    if constexpr (gk_is_same<typename gk_passage<T>::type, W>::value) {
        typename gk_stored<T>::type same;
        memcpy(&same, &number, sizeof same);
#pragma unroll
        for (int j = 0; j < PER_THREAD; j++)
            if (j < count)
                passing[j] = gk_as<W>(from ? gk_read<T>(from + offset[j][FROM]) : gk_as<T>(same));
    }
}

template <typename T, typename W>
__device__ static inline void store_elements(char *to, const int64_t (&offset)[PER_THREAD][2], int count, const W (&passing)[PER_THREAD]) {
#pragma unroll
    for (int j = 0; j < PER_THREAD; j++)
        if (j < count)
            *(T *)(to + offset[j][TO]) = gk_leave<T>(passing[j]);
}

#define GK_LOAD_CASE(dtype, name, T, ...)                                                          \
    case GK_##dtype:                                                                               \
        load_elements<T>(passing, count, from, offset, number);                                    \
        break;
#define GK_STORE_CASE(dtype, name, T, ...)                                                         \
    case GK_##dtype:                                                                               \
        store_elements<T>(to, offset, count, passing);                                             \
        break;

template <typename W>
__device__ static inline void convert_by(char *to, const char *from, uint64_t number, const int64_t (&offset)[PER_THREAD][2], int count, int32_t to_dtype, int32_t from_dtype) {
    W passing[PER_THREAD];
    switch (from_dtype) {
        GK_DTYPES(GK_LOAD_CASE, )
    }
    switch (to_dtype) {
        GK_DTYPES(GK_STORE_CASE, )
    }
}

// `from` NULL: the first bytes of `number` are the one element there is.
extern "C" __global__ void __launch_bounds__(THREADS)
    gk_convert(char *to, const char *from, uint64_t number, gk_units units, int32_t to_dtype, int32_t from_dtype) {
    gk_follow();
    int64_t offset[PER_THREAD][2];
    int count = gk_elements_of(units, offset);
    switch (from_dtype) {
    case GK_float32:
    case GK_float16:
    case GK_bfloat16:
        return convert_by<float>(to, from, number, offset, count, to_dtype, from_dtype);
    case GK_float64:
        return convert_by<double>(to, from, number, offset, count, to_dtype, from_dtype);
    case GK_uint64:
        return convert_by<uint64_t>(to, from, number, offset, count, to_dtype, from_dtype);
    default:
        return convert_by<int64_t>(to, from, number, offset, count, to_dtype, from_dtype);
    }
}

#endif
