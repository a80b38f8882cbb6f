// out[i] = f(a[i], b[i], ...) for every operation, dtype and layout: three kernels an operation and
// dtype, of contiguous arrays, of arrays of any strides, and of those whose last axis is contiguous.
// What is read and written is all the time that they take, as in add.cu, whose last step they share.
#ifndef GK_ELEMENTWISE_CUH
#define GK_ELEMENTWISE_CUH

#include "device.cuh"
#include "elementwise/operations.h"
#include "strided.cuh"

#define GK_ELEMENTWISE_THREADS 256 // a block
#define GK_ELEMENTWISE_VECTORS 2   // of a thread, along each operand

// rows ---------------------------------------------------------------------------------------------

#define GK_ELEMENTWISE_ROW(op, variant, dtype, symbol, elements, aligned, arguments, note)         \
    GK_NAMED_ROW(op, variant, dtype, symbol, note, .takes = arguments, .tile_rows = 1,             \
                 .tile_columns = (elements) * GK_ELEMENTWISE_VECTORS * GK_ELEMENTWISE_THREADS,     \
                 .threads = GK_ELEMENTWISE_THREADS, .alignment = aligned)
#define GK_STRIDED_ROWS(dtype, name, T, bytes, text, number, op, kernel)                           \
    GK_ELEMENTWISE_ROW(op, strided, dtype, gk_##op##_##kernel##_strided, 1, bytes, GK_TAKES_LAYOUT, "any strides, 0 for what is broadcast; an index by multiplications, without division") \
    GK_ELEMENTWISE_ROW(op, GK_JOIN(strided_##name##x, GK_ELEMENTS_IN_16(bytes)), dtype, gk_##op##_##kernel##_strided_wide, GK_ELEMENTS_IN_16(bytes), 16, GK_TAKES_LAYOUT, "128 bits at a time along a last axis that every array walks one by one or repeats")
#define GK_THREE_ROWS(dtype, name, T, bytes, text, number, op, kernel)                             \
    GK_STRIDED_ROWS(dtype, name, T, bytes, text, number, op, kernel)                               \
    GK_ELEMENTWISE_ROW(op, GK_JOIN(name##x, GK_ELEMENTS_IN_32(bytes)), dtype, gk_##op##_##kernel##_wide, GK_ELEMENTS_IN_16(bytes), 16, GK_TAKES_TERMS, "two 128-bit loads of each operand before the first store")

// Whose kernels serve a dtype: its own, or those of the signed integers of its size.
#define GK_OWN_KERNELS(dtype, name, T, bytes, text, number, op)     GK_THREE_ROWS(dtype, name, T, bytes, text, number, op, name)
#define GK_OWN_STRIDED(dtype, name, T, bytes, text, number, op)     GK_STRIDED_ROWS(dtype, name, T, bytes, text, number, op, name)
#define GK_SIGNED_KERNELS(dtype, name, T, bytes, text, number, op)  GK_SIGNED_KERNELS_##bytes(dtype, name, T, bytes, text, number, op)
#define GK_SIGNED_KERNELS_1(dtype, name, T, bytes, text, number, op) GK_THREE_ROWS(dtype, name, T, bytes, text, number, op, i8)
#define GK_SIGNED_KERNELS_2(dtype, name, T, bytes, text, number, op) GK_THREE_ROWS(dtype, name, T, bytes, text, number, op, i16)
#define GK_SIGNED_KERNELS_4(dtype, name, T, bytes, text, number, op) GK_THREE_ROWS(dtype, name, T, bytes, text, number, op, i32)
#define GK_SIGNED_KERNELS_8(dtype, name, T, bytes, text, number, op) GK_THREE_ROWS(dtype, name, T, bytes, text, number, op, i64)

#define GK_ROWS_OF_floats(op)  GK_REAL_DTYPES(GK_OWN_KERNELS, op) GK_HALF_DTYPES(GK_OWN_KERNELS, op)
#define GK_ROWS_OF_numbers(op) GK_ROWS_OF_floats(op) GK_SIGNED_DTYPES(GK_OWN_KERNELS, op) GK_UNSIGNED_DTYPES(GK_OWN_KERNELS, op)
#define GK_ROWS_OF_ordered(op) GK_ROWS_OF_numbers(op) GK_BOOLEAN_DTYPES(GK_OWN_KERNELS, op)
#define GK_ROWS_OF_wrapping_numbers(op) GK_ROWS_OF_floats(op) GK_SIGNED_DTYPES(GK_OWN_KERNELS, op) GK_UNSIGNED_DTYPES(GK_SIGNED_KERNELS, op)
#define GK_ROWS_OF_wrapping(op) GK_ROWS_OF_wrapping_numbers(op) GK_BOOLEAN_DTYPES(GK_OWN_KERNELS, op)
#define GK_ROWS_OF_laddered(op)                                                                    \
    GK_REAL_DTYPES(GK_UNLADDERED, op) GK_HALF_DTYPES(GK_UNLADDERED, op)                            \
    GK_SIGNED_DTYPES(GK_OWN_KERNELS, op) GK_UNSIGNED_DTYPES(GK_SIGNED_KERNELS, op) GK_BOOLEAN_DTYPES(GK_OWN_KERNELS, op)
#define GK_UNLADDERED(dtype, ...)      GK_UNLADDERED_##dtype(dtype, __VA_ARGS__)
#define GK_UNLADDERED_float32(...)     GK_OWN_STRIDED(__VA_ARGS__)
#define GK_UNLADDERED_float64(...)     GK_OWN_KERNELS(__VA_ARGS__)
#define GK_UNLADDERED_float16(...)     GK_OWN_STRIDED(__VA_ARGS__)
#define GK_UNLADDERED_bfloat16(...)    GK_OWN_KERNELS(__VA_ARGS__)
#define GK_ROWS_OF(op, operands, dtypes, ...) GK_ROWS_OF_##dtypes(op)

#ifndef GK_ROWS_ONLY

// what each operation makes of its operands ----------------------------------------------------------

// x * y + z rounded once to T. For a half type the float32 between is rounded to odd (of the two
// floats beside the exact value the one whose last bit is 1), so that the second rounding sees on
// which side of a midpoint the exact value lies: S. Boldo and G. Melquiond, "Emulation of a FMA and
// Correctly Rounded Sums: Proved Algorithms Using Rounding to Odd" (2008).
template <typename T, typename W> __device__ static inline W gk_fused(W x, W y, W z) {
    if constexpr (sizeof(T) == sizeof(W)) {
        return gk_times_plus(x, y, z);
    } else {
        W below = __fmaf_rd(x, y, z), above = __fmaf_ru(x, y, z);
        return below != above && (__float_as_uint(below) & 1) ? below : above;
    }
}

#define GK_RESULT_same(T)    T
#define GK_RESULT_boolean(T) bool
#define GK_DEFINE(name, operands, dtypes, result, expression, ...)                                 \
    struct name##_of {                                                                             \
        enum { OPERANDS = operands };                                                              \
        template <typename T> struct Result { typedef GK_RESULT_##result(T) type; };               \
        template <typename T, typename W> __device__ static inline auto at(W x, W y, W z) {        \
            return expression;                                                                     \
        }                                                                                          \
    };
GK_ELEMENTWISE(GK_DEFINE)
#undef GK_DEFINE

// how a thread walks ---------------------------------------------------------------------------------

// The operands of WIDTH results. All loads of a thread come before its first store, which the compiler
// could not put first: out may be an operand.
template <typename OP, typename T, int WIDTH> struct gk_gathered {
    typedef typename OP::template Result<T>::type R;
    typedef typename gk_traits<T>::wide W;
    gk_vector<T, WIDTH> operand[OP::OPERANDS];

    __device__ inline void load(const gk_terms &terms, int k, int64_t offset) {
        const char *from = (const char *)terms.data[k] + offset;
        if (terms.repeated >> k & 1) {
            T same[WIDTH];
            same[0] = terms.data[k] ? gk_read<T>(from) : gk_read<T>(&terms.value[k]);
#pragma unroll
            for (int i = 1; i < WIDTH; i++)
                same[i] = same[0];
            operand[k].pack(same);
        } else {
            operand[k] = *(const gk_vector<T, WIDTH> *)from;
        }
    }

    __device__ inline void store(char *out) const {
        enum { X = 0, Y = OP::OPERANDS > 1 ? 1 : 0, Z = OP::OPERANDS - 1 };
        R elements[WIDTH];
        gk_vector<R, WIDTH> result;
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            elements[i] = gk_as<R>(OP::template at<T>(gk_as<W>(operand[X][i]), gk_as<W>(operand[Y][i]), gk_as<W>(operand[Z][i])));
        result.pack(elements);
        gk_put(out, result);
    }
};

// Elements i, i + 1, ... of contiguous arrays and of repeated elements.
template <typename OP, typename T, int WIDTH>
__device__ static inline void gk_load_at(gk_gathered<OP, T, WIDTH> &gathered, const gk_terms &terms, size_t i) {
#pragma unroll
    for (int k = 0; k < OP::OPERANDS; k++)
        gathered.load(terms, k, terms.repeated >> k & 1 ? 0 : (int64_t)(i * sizeof(T)));
}

// Each thread takes vectors of WIDTH elements, a block's width apart, so that the accesses of a warp
// are neighbours. The thread that has less than a vector left takes it one by one.
template <typename OP, typename T, int WIDTH, typename R>
__device__ static inline void gk_map_contiguous(R *out, const gk_terms &terms, size_t n) {
    enum { COUNT = GK_ELEMENTWISE_VECTORS, THREADS = GK_ELEMENTWISE_THREADS };
    size_t first = ((size_t)blockIdx.x * COUNT * THREADS + threadIdx.x) * WIDTH;
    gk_gathered<OP, T, WIDTH> gathered[COUNT];
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        size_t i = first + (size_t)j * THREADS * WIDTH;
        if (i + WIDTH <= n)
            gk_load_at(gathered[j], terms, i);
    }
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        size_t i = first + (size_t)j * THREADS * WIDTH;
        if (i + WIDTH <= n) {
            gathered[j].store((char *)(out + i));
            continue;
        }
#pragma unroll 1
        for (; i < n; i++) {
            gk_gathered<OP, T, 1> single;
            gk_load_at(single, terms, i);
            single.store((char *)(out + i));
        }
    }
}

// The same of arrays of any strides; n and the layout count vectors.
template <typename OP, typename T, int WIDTH>
__device__ static inline void gk_map_strided(char *out, const gk_terms &terms, const gk_layout &layout, uint32_t n) {
    enum { COUNT = GK_ELEMENTWISE_VECTORS, THREADS = GK_ELEMENTWISE_THREADS };
    uint32_t first = blockIdx.x * (COUNT * THREADS) + threadIdx.x;
    gk_gathered<OP, T, WIDTH> gathered[COUNT];
    int64_t offset[COUNT][OP::OPERANDS + 1];
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        if (first + j * THREADS >= n)
            continue;
        gk_offsets(layout, first + j * THREADS, offset[j]);
#pragma unroll
        for (int k = 0; k < OP::OPERANDS; k++)
            gathered[j].load(terms, k, offset[j][k + 1]);
    }
#pragma unroll
    for (int j = 0; j < COUNT; j++)
        if (first + j * THREADS < n)
            gathered[j].store(out + offset[j][0]);
}

// the kernels ----------------------------------------------------------------------------------------

#define GK_STRIDED_KERNEL(symbol, op, T, width)                                                    \
    extern "C" __global__ void __launch_bounds__(GK_ELEMENTWISE_THREADS)                           \
        symbol(char *out, gk_terms terms, gk_layout layout, uint32_t n) {                          \
        gk_map_strided<op##_of, T, width>(out, terms, layout, n);                                  \
    }
#define GK_STRIDED_KERNELS(dtype, name, T, bytes, text, number, op)                                \
    GK_STRIDED_KERNEL(gk_##op##_##name##_strided, op, T, 1)                                        \
    GK_STRIDED_KERNEL(gk_##op##_##name##_strided_wide, op, T, 16 / (bytes))
#define GK_THREE_KERNELS(dtype, name, T, bytes, text, number, op)                                  \
    GK_STRIDED_KERNELS(dtype, name, T, bytes, text, number, op)                                    \
    extern "C" __global__ void __launch_bounds__(GK_ELEMENTWISE_THREADS)                           \
        gk_##op##_##name##_wide(op##_of::Result<T>::type *out, gk_terms terms, size_t n) {         \
        gk_map_contiguous<op##_of, T, 16 / (bytes)>(out, terms, n);                                \
    }

#define GK_KERNELS_OF_floats(op)  GK_REAL_DTYPES(GK_THREE_KERNELS, op) GK_HALF_DTYPES(GK_THREE_KERNELS, op)
#define GK_KERNELS_OF_wrapping_numbers(op) GK_KERNELS_OF_floats(op) GK_SIGNED_DTYPES(GK_THREE_KERNELS, op)
#define GK_KERNELS_OF_wrapping(op) GK_KERNELS_OF_wrapping_numbers(op) GK_BOOLEAN_DTYPES(GK_THREE_KERNELS, op)
#define GK_KERNELS_OF_numbers(op) GK_KERNELS_OF_wrapping_numbers(op) GK_UNSIGNED_DTYPES(GK_THREE_KERNELS, op)
#define GK_KERNELS_OF_ordered(op) GK_KERNELS_OF_numbers(op) GK_BOOLEAN_DTYPES(GK_THREE_KERNELS, op)
#define GK_KERNELS_OF_laddered(op)                                                                 \
    GK_REAL_DTYPES(GK_UNLADDERED_KERNELS, op) GK_HALF_DTYPES(GK_UNLADDERED_KERNELS, op)            \
    GK_SIGNED_DTYPES(GK_THREE_KERNELS, op) GK_BOOLEAN_DTYPES(GK_THREE_KERNELS, op)
#define GK_UNLADDERED_KERNELS(dtype, ...)   GK_UNLADDERED_KERNELS_##dtype(dtype, __VA_ARGS__)
#define GK_UNLADDERED_KERNELS_float32(...)  GK_STRIDED_KERNELS(__VA_ARGS__)
#define GK_UNLADDERED_KERNELS_float64(...)  GK_THREE_KERNELS(__VA_ARGS__)
#define GK_UNLADDERED_KERNELS_float16(...)  GK_STRIDED_KERNELS(__VA_ARGS__)
#define GK_UNLADDERED_KERNELS_bfloat16(...) GK_THREE_KERNELS(__VA_ARGS__)
#define GK_KERNELS_OF(op, operands, dtypes, ...) GK_KERNELS_OF_##dtypes(op)

#endif
#endif
