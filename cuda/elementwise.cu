// out[i] = f(a[i], b[i], ...): memory-bound kernels, so what counts is how many bytes a thread has
// in flight for each instruction that it issues. The operations are listed in elementwise.h, the
// dtypes below; a kernel is made for each pair and each step.
#include "device.cuh"
#include "elementwise.h"
#include "strided.cuh"

// One line a dtype: type, dtype, short name, elements in 128 bits, in twice that, bytes of one.
#define GK_ELEMENTWISE_floats(STEPS, ...)                                                                   \
    STEPS(float, float32, f32, 4, 8, 4, __VA_ARGS__)                                               \
    STEPS(double, float64, f64, 2, 4, 8, __VA_ARGS__)                                              \
    STEPS##_half(float16, float16, f16, 8, 16, 2, __VA_ARGS__)                                     \
    STEPS(bfloat16, bfloat16, bf16, 8, 16, 2, __VA_ARGS__)
#define GK_ELEMENTWISE_numbers(STEPS, ...)                                                                  \
    GK_ELEMENTWISE_floats(STEPS, __VA_ARGS__)                                                               \
    STEPS(int32_t, int32, i32, 4, 8, 4, __VA_ARGS__)                                               \
    STEPS(int64_t, int64, i64, 2, 4, 8, __VA_ARGS__)                                               \
    STEPS(int8_t, int8, i8, 16, 32, 1, __VA_ARGS__)                                                \
    STEPS(uint8_t, uint8, u8, 16, 32, 1, __VA_ARGS__)

#define GK_ELEMENTWISE_STRIDED(T, dtype, name, wide, wider, bytes, op)                                     \
    GK_STRIDED(op, strided, dtype, gk_##op##_strided_##name, 2, 256, bytes, 75, "any strides, 0 for what is broadcast; an index by multiplications, without division") \
    GK_STRIDED(op, strided_##name##x##wide, dtype, gk_##op##_strided_##name##x##wide, 2 * wide, 256, 16, 75, "128 bits at a time along a last axis that every array walks one by one or repeats")
#define GK_ELEMENTWISE_STEPS(T, dtype, name, wide, wider, bytes, op)                                           \
    GK_ELEMENTWISE_STRIDED(T, dtype, name, wide, wider, bytes, op)                                         \
    GK_ROW(op, name, dtype, gk_##op##_##name, 1, 256, bytes, 75, "one element a thread: the plainest kernel that is coalesced") \
    GK_ROW(op, name##x##wide, dtype, gk_##op##_##name##x##wide, wide, 256, 16, 75, "one 128-bit load of each operand and one store a thread") \
    GK_ROW(op, name##x##wider, dtype, gk_##op##_##name##x##wider, wider, 256, 16, 75, "two 128-bit loads of each operand before the first store")
#define GK_ELEMENTWISE_STEPS_half(T, dtype, name, wide, wider, bytes, op)                                      \
    GK_ELEMENTWISE_STRIDED(T, dtype, name, wide, wider, bytes, op)                                         \
    GK_ROW(op, f16, float16, gk_##op##_f16, 1, 256, 2, 75, "one element a thread: 2-byte accesses waste most of each instruction") \
    GK_ROW(op, f16x2, float16, gk_##op##_f16x2, 2, 256, 4, 75, "half2: two halves in one 32-bit access")  \
    GK_ROW(op, f16x8, float16, gk_##op##_f16x8, 8, 256, 4, 75, "four half2 a thread: more loads in flight, still 32 bits each") \
    GK_ROW(op, f16x8_pack, float16, gk_##op##_f16x8_pack, 8, 256, 16, 75, "the four half2 packed in one 128-bit load and store") \
    GK_ROW(op, f16x16_pack, float16, gk_##op##_f16x16_pack, 16, 256, 16, 75, "two 128-bit loads of each operand before the first store")

#define GK_ELEMENTWISE_ROWS(op, operands, dtypes, ...) GK_ELEMENTWISE_##dtypes(GK_ELEMENTWISE_STEPS, op)
GK_ELEMENTWISE(GK_ELEMENTWISE_ROWS)

#ifndef GK_ROWS_ONLY

// The half types are computed in float32 and rounded once: as accurate as arithmetic of their own,
// since float32 has more than twice their bits.
template <typename T> struct gk_wide { typedef T type; };
template <> struct gk_wide<float16> { typedef float type; };
template <> struct gk_wide<bfloat16> { typedef float type; };

template <typename T> __device__ static inline T widened(T x) { return x; }
__device__ static inline float widened(float16 x) { return __half2float(x); }
__device__ static inline float widened(bfloat16 x) { return __bfloat162float(x); }
template <typename T> __device__ static inline void narrow(T &to, T x) { to = x; }
__device__ static inline void narrow(float16 &to, float x) { to = __float2half_rn(x); }
__device__ static inline void narrow(bfloat16 &to, float x) { to = __float2bfloat16_rn(x); }

// Integers wrap around as NumPy's do, which C++ leaves undefined for signed ones.
template <typename T> struct gk_wrapping { typedef T type; };
template <> struct gk_wrapping<int32_t> { typedef uint32_t type; };
template <> struct gk_wrapping<int64_t> { typedef uint64_t type; };
#define GK_WRAP(x) ((typename gk_wrapping<T>::type)(x))

template <typename T> __device__ static inline T plus(T x, T y) { return (T)(GK_WRAP(x) + GK_WRAP(y)); }
template <typename T> __device__ static inline T minus(T x, T y) { return (T)(GK_WRAP(x) - GK_WRAP(y)); }
template <typename T> __device__ static inline T times(T x, T y) { return (T)(GK_WRAP(x) * GK_WRAP(y)); }
template <typename T> __device__ static inline T negated(T x) { return (T)(-GK_WRAP(x)); }
template <typename T> __device__ static inline T absolute(T x) { return x > 0 ? x : negated(x); }
__device__ static inline float absolute(float x) { return fabsf(x); }
__device__ static inline double absolute(double x) { return fabs(x); }
__device__ static inline float square_root(float x) { return sqrtf(x); }
__device__ static inline double square_root(double x) { return sqrt(x); }
__device__ static inline float exponential(float x) { return expf(x); }
__device__ static inline double exponential(double x) { return exp(x); }

template <typename T> __device__ static inline T multiply_add(T x, T y, T z) { return plus(times(x, y), z); }
__device__ static inline float multiply_add(float x, float y, float z) { return fmaf(x, y, z); }
__device__ static inline double multiply_add(double x, double y, double z) { return fma(x, y, z); }

// x * y + z rounded once to T. For a half type the float32 between is rounded to odd (of the two
// floats beside the exact value the one whose last bit is 1), so that the second rounding sees on
// which side of a midpoint the exact value lies: S. Boldo and G. Melquiond, "Emulation of a FMA and
// Correctly Rounded Sums: Proved Algorithms Using Rounding to Odd" (2008).
template <typename T, typename W> __device__ static inline W fused(W x, W y, W z) {
    if constexpr (sizeof(T) == sizeof(W)) {
        return multiply_add(x, y, z);
    } else {
        W below = __fmaf_rd(x, y, z), above = __fmaf_ru(x, y, z);
        return below != above && (__float_as_uint(below) & 1) ? below : above;
    }
}

#define GK_DEFINE(name, operands, dtypes, expression, ...)                                         \
    struct name##_of {                                                                             \
        enum { OPERANDS = operands };                                                              \
        template <typename T, typename W> __device__ static inline W at(W x, W y, W z) {           \
            return expression;                                                                     \
        }                                                                                          \
    };
GK_ELEMENTWISE(GK_DEFINE)

enum { THREADS = 256 };

template <typename T, int WIDTH> struct alignas(sizeof(T) * WIDTH) gk_vector {
    T at[WIDTH];
};

// The same bits in whole words. Operands wait in these for the store: elements of less than a word
// would be taken apart right behind their load, before the next operand's load was issued.
template <int BYTES> struct gk_word { typedef uint32_t type; };
template <> struct gk_word<2> { typedef uint16_t type; };
template <> struct gk_word<1> { typedef uint8_t type; };
template <int BYTES> struct alignas(BYTES) gk_words {
    typename gk_word<BYTES>::type at[BYTES / sizeof(typename gk_word<BYTES>::type)];
};

// 128-bit stores are marked to leave the cache first: no kernel here reads a result again.
template <typename V> __device__ static inline void put(char *out, const V &result) {
    if (sizeof(V) == sizeof(uint4)) {
        uint4 bits;
        memcpy(&bits, &result, sizeof(V) < sizeof bits ? sizeof(V) : sizeof bits);
        __stcs((uint4 *)out, bits);
    } else {
        *(V *)out = result;
    }
}

template <typename OP, typename T, int WIDTH> struct gk_gathered {
    typedef gk_vector<T, WIDTH> vector;
    typedef gk_words<sizeof(vector)> words;
    words operand[OP::OPERANDS];

    __device__ inline void load(const gk_terms &terms, int k, int64_t offset) {
        const char *from = (const char *)terms.data[k] + offset;
        if (terms.repeated >> k & 1) {
            vector same;
            same.at[0] = terms.data[k] ? *(const T *)from : *(const T *)&terms.value[k];
#pragma unroll
            for (int i = 1; i < WIDTH; i++)
                same.at[i] = same.at[0];
            memcpy(&operand[k], &same, sizeof same);
        } else {
            operand[k] = *(const words *)from;
        }
    }

    __device__ inline void store(char *out) const {
        enum { X = 0, Y = OP::OPERANDS > 1 ? 1 : 0, Z = OP::OPERANDS - 1 };
        vector from[OP::OPERANDS], result;
        memcpy(from, operand, sizeof from);
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            narrow(result.at[i], OP::template at<T>(widened(from[X].at[i]), widened(from[Y].at[i]),
                                                    widened(from[Z].at[i])));
        put(out, result);
    }
};

// Elements i, i + 1, ... of contiguous arrays and of repeated elements.
template <typename OP, typename T, int WIDTH>
__device__ static inline void load_at(gk_gathered<OP, T, WIDTH> &gathered, const gk_terms &terms, size_t i) {
#pragma unroll
    for (int k = 0; k < OP::OPERANDS; k++)
        gathered.load(terms, k, terms.repeated >> k & 1 ? 0 : (int64_t)(i * sizeof(T)));
}

// Each thread takes COUNT vectors of WIDTH elements, a block's width apart, so that the accesses of
// a warp are neighbours; all loads come before the first store, which the compiler could not put
// first: out may be an operand. The thread that has less than a vector left takes it one by one.
template <typename OP, typename T, int WIDTH, int COUNT>
__device__ static inline void contiguous(T *out, const gk_terms &terms, size_t n) {
    size_t first = ((size_t)blockIdx.x * COUNT * THREADS + threadIdx.x) * WIDTH;
    gk_gathered<OP, T, WIDTH> gathered[COUNT];
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        size_t i = first + (size_t)j * THREADS * WIDTH;
        if (i + WIDTH <= n)
            load_at(gathered[j], terms, i);
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
            load_at(single, terms, i);
            single.store((char *)(out + i));
        }
    }
}

// The same of arrays of any strides; n and the layout count vectors.
template <typename OP, typename T, int WIDTH, int COUNT>
__device__ static inline void strided(char *out, const gk_terms &terms, const gk_layout &layout, uint32_t n) {
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

#define GK_CONTIGUOUS(op, variant, T, width, count)                                                \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        gk_##op##_##variant(T *out, gk_terms terms, size_t n) {                                    \
        contiguous<op##_of, T, width, count>(out, terms, n);                                       \
    }
#define GK_WITH_STRIDES(op, variant, T, width, count)                                              \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        gk_##op##_##variant(char *out, gk_terms terms, gk_layout layout, uint32_t n) {             \
        strided<op##_of, T, width, count>(out, terms, layout, n);                                  \
    }

#define GK_KERNELS(T, dtype, name, wide, wider, bytes, op)                                         \
    GK_WITH_STRIDES(op, strided_##name, T, 1, 2)                                                   \
    GK_WITH_STRIDES(op, strided_##name##x##wide, T, wide, 2)                                       \
    GK_CONTIGUOUS(op, name, T, 1, 1)                                                               \
    GK_CONTIGUOUS(op, name##x##wide, T, wide, 1)                                                   \
    GK_CONTIGUOUS(op, name##x##wider, T, wide, 2)
#define GK_KERNELS_half(T, dtype, name, wide, wider, bytes, op)                                    \
    GK_WITH_STRIDES(op, strided_f16, T, 1, 2)                                                      \
    GK_WITH_STRIDES(op, strided_f16x8, T, 8, 2)                                                    \
    GK_CONTIGUOUS(op, f16, T, 1, 1)                                                                \
    GK_CONTIGUOUS(op, f16x2, T, 2, 1)                                                              \
    GK_CONTIGUOUS(op, f16x8, T, 2, 4)                                                              \
    GK_CONTIGUOUS(op, f16x8_pack, T, 8, 1)                                                         \
    GK_CONTIGUOUS(op, f16x16_pack, T, 8, 2)

#define GK_KERNELS_OF(op, operands, dtypes, ...) GK_ELEMENTWISE_##dtypes(GK_KERNELS, op)
GK_ELEMENTWISE(GK_KERNELS_OF)

#endif
