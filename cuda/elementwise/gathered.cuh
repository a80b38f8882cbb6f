// What each operation makes of its operands, and the operands of several results, as all kernels of elementwise
// operations take them.
#ifndef GK_GATHERED_CUH
#define GK_GATHERED_CUH

#include "device.cuh"
#include "elementwise/operations.h"

#define GK_ELEMENTWISE_THREADS 256 // a block

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

// operands -------------------------------------------------------------------------------------------

__device__ static inline const char *gk_at(const gk_terms &terms, int k, int64_t offset) {
    return (const char *)terms.data[k] + offset;
}

template <typename T, int WIDTH> __device__ static inline gk_vector<T, WIDTH> gk_repeated(T one) {
    gk_vector<T, WIDTH> same;
    T elements[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        elements[i] = one;
    same.pack(elements);
    return same;
}

// The operands of WIDTH results. All loads of a thread come before its first store, which the compiler
// could not put first: out may be an operand.
template <typename OP, typename T, int WIDTH> struct gk_gathered {
    typedef typename OP::template Result<T>::type R;
    typedef typename gk_traits<T>::wide W;
    gk_vector<T, WIDTH> operand[OP::OPERANDS];

    __device__ inline void repeat(int k, T one) { operand[k] = gk_repeated<T, WIDTH>(one); }

    __device__ inline void load(const gk_terms &terms, int k, int64_t offset) {
        if (terms.repeated >> k & 1)
            repeat(k, terms.data[k] ? gk_read<T>(gk_at(terms, k, offset)) : gk_read<T>(&terms.value[k]));
        else
            operand[k] = *(const gk_vector<T, WIDTH> *)gk_at(terms, k, offset);
    }

    // One element, which is to be repeated.
    __device__ inline void hold(int k, typename gk_stored<T>::type one) { memcpy(operand[k].bits, &one, sizeof one); }

    // What does not lie side by side.
    __device__ inline void collect(int k, const char *from, int64_t step) {
        T elements[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            elements[i] = gk_read<T>(from + i * step);
        operand[k].pack(elements);
    }

    __device__ inline R result(int i) const {
        enum { X = 0, Y = OP::OPERANDS > 1 ? 1 : 0, Z = OP::OPERANDS - 1 };
        return gk_as<R>(OP::template at<T>(gk_as<W>(operand[X][i]), gk_as<W>(operand[Y][i]), gk_as<W>(operand[Z][i])));
    }
    __device__ inline void store(char *out) const {
        R elements[WIDTH];
        gk_vector<R, WIDTH> results;
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            elements[i] = result(i);
        results.pack(elements);
        gk_put(out, results);
    }
};

#endif
#endif
