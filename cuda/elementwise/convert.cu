// Elements of one dtype as elements of another, between arrays of any strides; and a number of the
// host's into every element. One kernel for all pairs of dtypes: what is read and written is the time
// that it takes, and the two branches are the same for all threads.
#include "device.cuh"
#include "strided.cuh"

#define GK_CONVERT_THREADS 256 // a block

#define GK_CONVERT_ROW(op, symbol, each, note)                                                     \
    GK_ROW(op, strided, bits8, symbol, note, .takes = GK_TAKES_LAYOUT, .tile_rows = 1, .tile_columns = (each) * GK_CONVERT_THREADS, \
           .threads = GK_CONVERT_THREADS, .alignment = 1, .follows = true)

GK_CONVERT_ROW(convert, gk_convert, GK_SHARED_ELEMENTS, "any strides and dtypes, by way of float32, float64 or 64-bit integers")
GK_CONVERT_ROW(convert_compact, gk_convert_compact, GK_LONE_ELEMENTS, "of few elements, or of rows too short to be shared")

#ifndef GK_ROWS_ONLY

enum { TO, FROM, THREADS = GK_CONVERT_THREADS };

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

// What is converted: elements at addresses and offsets, or where `from` is NULL the first bytes of `number`.
template <int EACH> struct conversion {
    char *to;
    const char *from;
    uint64_t number;
    int32_t to_dtype, from_dtype;
    int count;
    int64_t offset[EACH][2];
};

template <typename T, typename W, int EACH>
__device__ static inline void load_elements(W (&passing)[EACH], const conversion<EACH> &how) {
    if constexpr (gk_is_same<typename gk_passage<T>::type, W>::value) {
        typename gk_stored<T>::type same;
        memcpy(&same, &how.number, sizeof same);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (j < how.count)
                passing[j] = gk_as<W>(how.from ? gk_read<T>(how.from + how.offset[j][FROM]) : gk_as<T>(same));
    }
}

template <typename T, typename W, int EACH>
__device__ static inline void store_elements(const conversion<EACH> &how, const W (&passing)[EACH]) {
#pragma unroll
    for (int j = 0; j < EACH; j++)
        if (j < how.count)
            *(T *)(how.to + how.offset[j][TO]) = gk_leave<T>(passing[j]);
}

#define GK_LOAD_CASE(dtype, name, T, ...)                                                          \
    case GK_##dtype:                                                                               \
        load_elements<T>(passing, how);                                                            \
        break;
#define GK_STORE_CASE(dtype, name, T, ...)                                                         \
    case GK_##dtype:                                                                               \
        store_elements<T>(how, passing);                                                           \
        break;

template <typename W, int EACH> __device__ static inline void convert_by(const conversion<EACH> &how) {
    W passing[EACH];
    switch (how.from_dtype) {
        GK_DTYPES(GK_LOAD_CASE, )
    }
    switch (how.to_dtype) {
        GK_DTYPES(GK_STORE_CASE, )
    }
}

template <int EACH> __device__ static inline void convert(const conversion<EACH> &how) {
    switch (how.from_dtype) {
    case GK_float32:
    case GK_float16:
    case GK_bfloat16:
        return convert_by<float>(how);
    case GK_float64:
        return convert_by<double>(how);
    case GK_uint64:
        return convert_by<uint64_t>(how);
    default:
        return convert_by<int64_t>(how);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gk_convert(char *to, const char *from, uint64_t number, gk_units units, int32_t to_dtype, int32_t from_dtype) {
    conversion<GK_SHARED_ELEMENTS> how = {to, from, number, to_dtype, from_dtype};
    how.count = gk_shared_elements(units, how.offset);
    gk_follow();
    convert(how);
}

template <int EACH> __device__ static inline void convert_lone(const gk_compact &compact) {
    bool is_number = compact.numbers >> FROM & 1;
    uint64_t words = gk_words(compact, FROM);
    conversion<EACH> how = {(char *)gk_words(compact, TO), is_number ? NULL : (const char *)words, words, compact.dtype[TO], compact.dtype[FROM]};
    how.count = gk_lone_elements(compact, how.offset);
    gk_follow();
    convert(how);
}

extern "C" __global__ void __launch_bounds__(THREADS) gk_convert_compact(gk_compact compact) {
    if (gk_are_single(compact))
        convert_lone<1>(compact);
    else
        convert_lone<GK_LONE_ELEMENTS>(compact);
}

#endif
