// Elements of one dtype as elements of another, between arrays of any strides; and a number of the
// host's into every element. One kernel for all pairs of dtypes: what is read and written is the time
// that it takes, and the two branches are the same for all threads.
#include "device.cuh"
#include "strided.cuh"

#define GK_CONVERT_THREADS 256 // a block
#define GK_CONVERT_EACH 8      // elements of a row that a thread takes: where they lie is found once

#define GK_CONVERT_ROW(op, variant, symbol, each, argument, note)                                  \
    GK_ROW(op, variant, bits8, symbol, note, .takes = argument, .tile_rows = 1, .tile_columns = (each) * GK_CONVERT_THREADS, \
           .threads = GK_CONVERT_THREADS, .alignment = 1, .follows = true)

GK_CONVERT_ROW(convert, vectors, gk_convert_run, GK_CONVERT_VECTORS * GK_CONVERT_WIDTH, GK_TAKES_SIZES, "both arrays one run: two elements an access, eight accesses of a thread")
GK_CONVERT_ROW(convert, strided, gk_convert, GK_CONVERT_EACH, GK_TAKES_LAYOUT, "any strides and dtypes, by way of what holds every value of the one")
GK_CONVERT_ROW(convert_compact, strided, gk_convert_compact, GK_LONE_ELEMENTS, GK_TAKES_LAYOUT, "of few elements, or of rows too short to be shared")

#ifndef GK_ROWS_ONLY

enum { TO, FROM, THREADS = GK_CONVERT_THREADS };

// What an element passes through, which has every value of its dtype: the one rounding, or what C
// makes of a value that does not fit, is on the way out of it. Conversions of 32 bits take a quarter of the time of those of
// 64, and to a float those from float32 less than others: small integers may go by way of that as well.
template <typename T> struct gk_passage { typedef int32_t type; };
template <> struct gk_passage<uint32_t> { typedef int64_t type; };
template <> struct gk_passage<int64_t> { typedef int64_t type; };
template <> struct gk_passage<uint64_t> { typedef uint64_t type; };
template <> struct gk_passage<float> { typedef float type; };
template <> struct gk_passage<float16> { typedef float type; };
template <> struct gk_passage<bfloat16> { typedef float type; };
template <> struct gk_passage<double> { typedef double type; };

template <typename A, typename B> struct gk_is_same { enum { value = false }; };
template <typename A> struct gk_is_same<A, A> { enum { value = true }; };

template <typename T, typename W> struct gk_passes {
    enum { IS_SMALL = sizeof(T) < 4 && gk_is_same<typename gk_passage<T>::type, int32_t>::value };
    enum { value = gk_is_same<typename gk_passage<T>::type, W>::value || (IS_SMALL && gk_is_same<W, float>::value) };
};

// Out of the passage. A float64 goes to float16 by way of a float32 that is rounded to odd, so that the
// second rounding sees on which side of a midpoint the value lies; see gk_fused in gathered.cuh.
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

// Where the elements of a thread lie: each somewhere,
template <int EACH> struct lone_places {
    enum { COUNT = EACH };
    int count;
    int64_t offset[EACH][2];
    __device__ inline int64_t of(int j, int side) const { return offset[j][side]; }
};

// or evenly apart.
template <int EACH> struct even_places {
    enum { COUNT = EACH };
    int count;
    int64_t first[2], apart[2];
    __device__ inline int64_t of(int j, int side) const { return first[side] + j * apart[side]; }
};

// What is converted, where `from` is NULL all to the first bytes of `number`: elements one by one,
template <class PLACES> struct conversion {
    enum { COUNT = PLACES::COUNT };
    char *to;
    const char *from;
    uint64_t number;
    int32_t to_dtype, from_dtype;
    PLACES at;

    template <typename T, typename W> __device__ inline void load(W (&passing)[COUNT]) const {
#pragma unroll
        for (int j = 0; j < COUNT; j++)
            if (j < at.count)
                passing[j] = gk_as<W>(gk_read<T>(from + at.of(j, FROM)));
    }
    template <typename T, typename W> __device__ inline void store(const W (&passing)[COUNT]) const {
#pragma unroll
        for (int j = 0; j < COUNT; j++)
            if (j < at.count)
                *(T *)(to + at.of(j, TO)) = gk_leave<T>(passing[j]);
    }
};

// or vectors from this one on, as many apart as a block has threads, of `vectors` that are there.
struct conversion_of_run {
    enum { WIDTH = GK_CONVERT_WIDTH, COUNT = GK_CONVERT_VECTORS * WIDTH };
    char *to;
    const char *from;
    uint64_t number;
    int32_t to_dtype, from_dtype;
    size_t vector, vectors;

    __device__ static inline int apart(int j) { return j * GK_CONVERT_THREADS; }
    template <typename T, typename W> __device__ inline void load(W (&passing)[COUNT]) const {
        gk_vector<T, WIDTH> loaded[GK_CONVERT_VECTORS] = {};
#pragma unroll
        for (int j = 0; j < GK_CONVERT_VECTORS; j++)
            if (vector + apart(j) < vectors)
                loaded[j] = ((const gk_vector<T, WIDTH> *)from)[vector + apart(j)];
#pragma unroll
        for (int j = 0; j < COUNT; j++)
            passing[j] = gk_as<W>(loaded[j / WIDTH][j % WIDTH]);
    }
    template <typename T, typename W> __device__ inline void store(const W (&passing)[COUNT]) const {
#pragma unroll
        for (int j = 0; j < GK_CONVERT_VECTORS; j++) {
            T elements[WIDTH];
#pragma unroll
            for (int e = 0; e < WIDTH; e++)
                elements[e] = gk_leave<T>(passing[j * WIDTH + e]);
            gk_vector<T, WIDTH> converted;
            converted.pack(elements);
            if (vector + apart(j) < vectors)
                gk_put((gk_vector<T, WIDTH> *)to + (vector + apart(j)), converted);
        }
    }
};

template <typename T, typename W, class HOW>
__device__ static inline void load_elements(W (&passing)[HOW::COUNT], const HOW &how) {
    if constexpr (gk_passes<T, W>::value) {
        if (how.from)
            return how.template load<T>(passing);
        const W same = gk_as<W>(gk_read<T>(&how.number));
#pragma unroll
        for (int j = 0; j < HOW::COUNT; j++)
            passing[j] = same;
    }
}

#define GK_LOAD_CASE(dtype, name, T, ...)                                                          \
    case GK_##dtype:                                                                               \
        load_elements<T>(passing, how);                                                            \
        break;
#define GK_STORE_CASE(dtype, name, T, ...)                                                         \
    case GK_##dtype:                                                                               \
        how.template store<T>(passing);                                                            \
        break;

template <typename W, class HOW> __device__ static inline void convert_by(const HOW &how) {
    W passing[HOW::COUNT];
    switch (how.from_dtype) {
        GK_DTYPES(GK_LOAD_CASE, )
    }
    switch (how.to_dtype) {
        GK_DTYPES(GK_STORE_CASE, )
    }
}

__device__ static inline bool is_float(int32_t dtype) {
    return dtype == GK_float32 || dtype == GK_float64 || dtype == GK_float16 || dtype == GK_bfloat16;
}

template <class HOW> __device__ static inline void convert(const HOW &how) {
    switch (how.from_dtype) {
    case GK_float32:
    case GK_float16:
    case GK_bfloat16:
        return convert_by<float>(how);
    case GK_float64:
        return convert_by<double>(how);
    case GK_uint64:
        return convert_by<uint64_t>(how);
    case GK_int64:
    case GK_uint32:
        return convert_by<int64_t>(how);
    case GK_int32:
        return convert_by<int32_t>(how);
    default:
        return is_float(how.to_dtype) ? convert_by<float>(how) : convert_by<int32_t>(how);
    }
}

// Of so many vectors in all.
extern "C" __global__ void __launch_bounds__(THREADS)
    gk_convert_run(char *to, const char *from, uint64_t number, size_t vectors, int32_t to_dtype, int32_t from_dtype) {
    const size_t first = (size_t)blockIdx.x * (GK_CONVERT_VECTORS * THREADS) + threadIdx.x;
    gk_follow();
    convert(conversion_of_run{to, from, number, to_dtype, from_dtype, first, vectors});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gk_convert(char *to, const char *from, uint64_t number, gk_units units, int32_t to_dtype, int32_t from_dtype) {
    const gk_share<2> share = gk_share_of<GK_CONVERT_EACH, 2>(units);
    gk_follow();
    convert(conversion<even_places<GK_CONVERT_EACH>>{
        to, from, number, to_dtype, from_dtype,
        {share.count, {share.offset[TO], share.offset[FROM]}, {units.apart[TO], units.apart[FROM]}}});
}

template <int EACH> __device__ static inline void convert_lone(const gk_compact &compact) {
    bool is_number = compact.numbers >> FROM & 1;
    uint64_t words = gk_words(compact, FROM);
    conversion<lone_places<EACH>> how = {(char *)gk_words(compact, TO), is_number ? NULL : (const char *)words, words, compact.dtype[TO], compact.dtype[FROM]};
    how.at.count = gk_lone_elements(compact, how.at.offset);
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
