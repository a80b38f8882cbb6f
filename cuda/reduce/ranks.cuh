// Numbers in the order asked for: as whole numbers, of which the greatest is wanted.
#ifndef GK_REDUCE_RANKS_CUH
#define GK_REDUCE_RANKS_CUH

#include "reduce/reduction.h"

// The same values in the order asked for, and back: elements T as they are compared. All bits of a whole number
// turned over reverse the order. Unsigned ones with the first bit turned over are in the order of signed ones; those
// of one or two bytes the other way about, since they are taken out of a word with zeros above them. All by arithmetic: of a choice
// compilers make two loops.
template <typename T> __device__ static inline float gk_ordered(float x, uint32_t order) { return __uint_as_float(__float_as_uint(x) ^ (order & GK_ORDER_REVERSED) << 31); }
template <typename T> __device__ static inline double gk_ordered(double x, uint32_t order) { return order & GK_ORDER_REVERSED ? -x : x; }
template <typename T, typename A> __device__ static inline A gk_ordered(A x, uint32_t order) {
    constexpr bool SHORT = sizeof(T) <= 2;
    const A all = SHORT ? (A)((1 << 8 * sizeof(T)) - 1) : (A)-1;
    const uint64_t first = order / GK_ORDER_UNSIGNED % 2 ^ SHORT;
    const A turned = ((A)0 - (A)(order & GK_ORDER_REVERSED)) ^ (A)(first << (8 * (SHORT ? sizeof(T) : sizeof(A)) - 1));
    return (x ^ turned) & all;
}

__device__ static inline void gk_set_lowest(float *x) { *x = -INFINITY; }
__device__ static inline void gk_set_lowest(double *x) { *x = -INFINITY; }
__device__ static inline void gk_set_lowest(int32_t *x) { *x = INT32_MIN; }
__device__ static inline void gk_set_lowest(int64_t *x) { *x = INT64_MIN; }

// What stands for the values in their order, -0 before +0 and NaN behind all, so that which one is the greatest does not depend on
// what came first: a number itself; of doubles a whole number.
template <typename A> struct gk_rank {
    typedef A type;
    __device__ static inline type of(A x) { return x; }
    __device__ static inline A value(type rank) { return rank; }
};
template <> struct gk_rank<float> {
    typedef float type;
    __device__ static inline float of(float x) { return x; }
    __device__ static inline float value(float x) { return x != x ? __int_as_float(INT32_MAX) : x; }
};
template <> struct gk_rank<double> {
    typedef int64_t type;
    __device__ static inline int64_t turned(int64_t bits) { return bits < 0 ? bits ^ INT64_MAX : bits; }
    __device__ static inline int64_t of(double x) { return x != x ? INT64_MAX : turned(__double_as_longlong(x)); }
    __device__ static inline double value(int64_t rank) { return __longlong_as_double(turned(rank)); }
};

// The greater of two that stand for values: since 8.0 floats have an instruction that keeps this order.
template <typename R> __device__ static inline R gk_greater(R x, R y) { return y > x ? y : x; }
__device__ static inline float gk_greater(float x, float y) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ / 10 >= 80
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(x), "f"(y));
    return most;
#else
    if (x == y) // of two zeros +0
        return __int_as_float(__float_as_int(x) & __float_as_int(y));
    return y > x || y != y ? y : x;
#endif
}

// The order of values of one or two bytes in as many bits, of all that a word holds at once: NaN behind all, of either sign. -0 is
// no less than +0, or, where they are told apart (GK_ZEROS_APART), in front of it. What a 0 is added to has a single NaN; where
// that is -0 a zero stays what it is, and where it is +0 there is no -0.
typedef enum gk_zeros { GK_ZEROS_ALIKE, GK_ZEROS_APART } gk_zeros;
template <typename T> __device__ static inline uint32_t gk_ranks(uint32_t word, uint32_t order, T, gk_zeros = GK_ZEROS_ALIKE) {
    const uint32_t turned = (uint32_t)gk_ordered<T>((int32_t)0, order) * (sizeof(T) == 1 ? 0x01010101 : 0x00010001);
    return word ^ turned;
}
// 1 for each byte that is not 0, which is true.
__device__ static inline uint32_t gk_truths(uint32_t word) { return (((word & 0x7f7f7f7f) + 0x7f7f7f7f) | word) >> 7 & 0x01010101; }
__device__ static inline uint32_t gk_ranks(uint32_t word, uint32_t order, bool, gk_zeros = GK_ZEROS_ALIKE) { return gk_ranks(gk_truths(word), order, int8_t()); }
// Two halves so: by an addition where a GPU has one for them, of bfloat16 since 8.0. Before it would be one in float32 and a rounding
// for each, as on a CPU, where bits are looked at sooner.
template <typename T> struct gk_halves;
template <> struct gk_halves<float16> {
    typedef __half2 two;
    static constexpr uint32_t INFINITE = 0x7c007c00, SINCE = 53;
};
template <> struct gk_halves<bfloat16> {
    typedef __nv_bfloat162 two;
    static constexpr uint32_t INFINITE = 0x7f807f80, SINCE = 80;
};
#ifdef __CUDA_ARCH__
template <typename T> constexpr bool gk_adds_halves = __CUDA_ARCH__ / 10 >= gk_halves<T>::SINCE;
#else
template <typename T> constexpr bool gk_adds_halves = false;
#endif
template <typename T> __device__ static inline uint32_t gk_plain_halves(uint32_t word, gk_zeros zeros) {
    if constexpr (gk_adds_halves<T>) {
        const uint32_t zero = zeros == GK_ZEROS_APART ? 0x80008000 : 0;
        typename gk_halves<T>::two x, none;
        memcpy(&x, &word, sizeof x);
        memcpy(&none, &zero, sizeof none);
        x = __hadd2(x, none);
        memcpy(&word, &x, sizeof word);
        return word;
    } else {
        const uint32_t size = word & 0x7fff7fff, nan = (size + (0x7fff7fff - gk_halves<T>::INFINITE)) >> 15 & 0x00010001;
        const uint32_t signs = zeros == GK_ZEROS_APART ? word : word & (size + 0x7fff7fff); // none of 0
        return ((size | (signs & 0x80008000)) & ~(nan << 15)) | nan * 0x7fff;
    }
}
// All bits of each of two halves that is below 0.
__device__ static inline uint32_t gk_signs_of_halves(uint32_t word) {
#ifdef __CUDA_ARCH__
    uint32_t signs; // by an instruction for which CUDA has no name
    asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(signs) : "r"(word));
    return signs;
#else
    return (word >> 15 & 0x00010001) * 0xffff;
#endif
}
template <typename T> __device__ static inline uint32_t gk_ranks_of_halves(uint32_t word, uint32_t order, gk_zeros zeros) {
    const uint32_t bits = gk_plain_halves<T>(order & GK_ORDER_REVERSED ? word ^ 0x80008000 : word, zeros);
    return bits ^ (gk_signs_of_halves(bits) | 0x80008000);
}
__device__ static inline uint32_t gk_ranks(uint32_t word, uint32_t order, float16, gk_zeros zeros = GK_ZEROS_ALIKE) { return gk_ranks_of_halves<float16>(word, order, zeros); }
__device__ static inline uint32_t gk_ranks(uint32_t word, uint32_t order, bfloat16, gk_zeros zeros = GK_ZEROS_ALIKE) { return gk_ranks_of_halves<bfloat16>(word, order, zeros); }
template <typename T> __device__ static inline uint32_t gk_short_rank(T x, uint32_t order, gk_zeros zeros = GK_ZEROS_ALIKE) {
    uint32_t word = 0;
    memcpy(&word, &x, sizeof x);
    return gk_ranks(word, order, x, zeros) & (sizeof(T) == 1 ? 0xff : 0xffff);
}

__device__ static inline uint32_t gk_greater_half(uint32_t two) { return two >> 16 > (two & 0xffff) ? two >> 16 : two & 0xffff; }

// Two words of 16 bits are compared by an instruction since 9.0, two halves since 8.0.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ / 10 >= 90
constexpr bool gk_compares_words = true;
#else
constexpr bool gk_compares_words = false;
#endif
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ / 10 >= 80
constexpr bool gk_compares_halves = true;
#else
constexpr bool gk_compares_halves = false;
#endif

// The greater of each two halves, NaN behind all and -0 before +0.
template <typename T> __device__ static inline uint32_t gk_greater_halves(uint32_t x, uint32_t y) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ / 10 >= 80
    uint32_t greater;
    if (__is_same(T, float16))
        asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(greater) : "r"(x), "r"(y));
    else
        asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(greater) : "r"(x), "r"(y));
    return greater;
#else
    const uint32_t of_x = gk_ranks_of_halves<T>(x, 0, GK_ZEROS_APART), of_y = gk_ranks_of_halves<T>(y, 0, GK_ZEROS_APART);
    const uint32_t upper = of_x >> 16 > of_y >> 16 ? x : y, lower = (of_x & 0xffff) > (of_y & 0xffff) ? x : y;
    return (upper & 0xffff0000) | (lower & 0xffff);
#endif
}

// The greatest among words, of the elements at each place in a word by itself, in ranks. `kept`: the bits of those of a word that are
// asked for. 0 is the rank of none.
// Of bytes, two at a time: those at odd places are halves with what lies below them, which decides nothing.
template <typename T> struct gk_greatest_byte {
    uint32_t odd = 0, even = 0;

    __device__ inline void take(uint32_t word, uint32_t order, uint32_t kept = UINT32_MAX) {
        const uint32_t ranks = gk_ranks(word, order, T()) & kept;
        odd = __vmaxu2(odd, ranks);
        even = __vmaxu2(even, ranks & 0x00ff00ff);
    }
    // Of element k of each word; and of all.
    __device__ inline uint32_t at(int k) const { return (k % 2 == 0 ? even : odd) >> 8 * k & 0xff; }
    __device__ inline uint32_t of_all(gk_zeros = GK_ZEROS_APART) const {
        const uint32_t of_odd = gk_greater_half(odd) >> 8, of_even = gk_greater_half(even);
        return of_odd > of_even ? of_odd : of_even;
    }
};
// Of halves themselves, or of their ranks.
template <typename T, bool BY_VALUE> struct gk_greatest_half {
    static constexpr uint32_t LOWEST = gk_halves<T>::INFINITE | 0x80008000;
    uint32_t two = BY_VALUE ? LOWEST : 0;

    __device__ inline void take(uint32_t word, uint32_t order, uint32_t kept = UINT32_MAX) {
        if constexpr (BY_VALUE) {
            const uint32_t value = order & GK_ORDER_REVERSED ? word ^ 0x80008000 : word;
            two = gk_greater_halves<T>(two, (value & kept) | (LOWEST & ~kept));
        } else {
            two = __vmaxu2(two, gk_ranks(word, order, T(), GK_ZEROS_APART) & kept);
        }
    }
    __device__ inline uint32_t ranks(gk_zeros zeros) const { return BY_VALUE ? gk_ranks_of_halves<T>(two, 0, zeros) : two; }
    __device__ inline uint32_t at(int k) const { return ranks(GK_ZEROS_APART) >> 16 * k & 0xffff; }
    __device__ inline uint32_t of_all(gk_zeros zeros = GK_ZEROS_APART) const {
        const uint32_t before_0 = 0x7fff, most = gk_greater_half(ranks(zeros));
        return !BY_VALUE && zeros == GK_ZEROS_ALIKE && most == before_0 ? most + 1 : most;
    }
};
template <typename T> struct gk_greatest : gk_greatest_byte<T> {};
template <> struct gk_greatest<float16> : gk_greatest_half<float16, gk_compares_halves> {};
template <> struct gk_greatest<bfloat16> : gk_greatest_half<bfloat16, gk_compares_halves> {};
template <> struct gk_greatest<int16_t> {
    uint32_t two = 0;

    __device__ inline void take(uint32_t word, uint32_t order, uint32_t kept = UINT32_MAX) { two = __vmaxu2(two, gk_ranks(word, order, int16_t()) & kept); }
    __device__ inline uint32_t at(int k) const { return two >> 16 * k & 0xffff; }
    __device__ inline uint32_t of_all(gk_zeros = GK_ZEROS_APART) const { return gk_greater_half(two); }
};

// The greatest rank of a vector's elements.
template <typename T> __device__ static inline uint32_t gk_greatest_rank(const gk_vector<T> &x, uint32_t order, gk_zeros zeros = GK_ZEROS_ALIKE) {
    gk_greatest<T> most;
#pragma unroll
    for (int w = 0; w < 4; w++)
        most.take(x.bits[w], order);
    return most.of_all(zeros);
}

// Of each element of a vector, which is whole words, the ranks of its word, and which of them is its own.
template <typename T, int COUNT, class DO> __device__ static inline void gk_each_rank(const gk_vector<T, COUNT> &x, uint32_t order, gk_zeros zeros, const DO &take) {
    enum { EACH = 4 / sizeof(T) };
#pragma unroll
    for (int w = 0; w < COUNT / EACH; w++) {
        const uint32_t ranks = gk_ranks(x.bits[w], order, T(), zeros);
#pragma unroll
        for (int k = 0; k < EACH; k++)
            take(w * EACH + k, ranks, k);
    }
}

// The rank of element k of a word's; an instruction.
template <typename T> __device__ static inline uint32_t gk_rank_of_word(uint32_t ranks, int k) {
    return __byte_perm(ranks, 0, sizeof(T) == 1 ? 0x4440 + k : 0x4410 + 0x22 * k);
}

// The half that such a rank is of, zeros apart, as it was before it was ordered.
template <typename T> __device__ static inline T gk_half_of_rank(uint32_t rank, uint32_t order) {
    const uint32_t turned = order & GK_ORDER_REVERSED && rank != 0xffff ? 0x8000 : 0; // NaN stays what it is
    const uint16_t bits = (uint16_t)((rank & 0x8000 ? rank ^ 0x8000 : ~rank) ^ turned);
    T half;
    memcpy(static_cast<void *>(&half), &bits, sizeof half);
    return half;
}

// What such a rank stands for among those of 32 bits: of whole numbers it is the same, and of halves the float of that value. 0 is
// none of a half: it comes before all.
template <typename T> __device__ static inline int32_t gk_state_of_rank(uint32_t rank, T) { return (int32_t)rank; }
template <typename T> __device__ static inline float gk_float_of_rank(uint32_t rank) { return rank == 0 ? -INFINITY : gk_as<float>(gk_half_of_rank<T>(rank, 0)); }
__device__ static inline float gk_state_of_rank(uint32_t rank, float16) { return gk_float_of_rank<float16>(rank); }
__device__ static inline float gk_state_of_rank(uint32_t rank, bfloat16) { return gk_float_of_rank<bfloat16>(rank); }

#endif
