// The dtypes as kernels compute with them: conversions, the type that arithmetic on each is done in,
// arithmetic that means the same everywhere, and 128 bits of elements at a time.
#ifndef GK_NUMBERS_CUH
#define GK_NUMBERS_CUH

// conversions --------------------------------------------------------------------------------------

// x as an A, rounded once.
template <typename A, typename T> struct gk_conversion {
    __device__ static inline A of(T x) { return (A)x; }
};
template <typename A> struct gk_conversion<A, float16> {
    __device__ static inline A of(float16 x) { return (A)__half2float(x); }
};
template <typename A> struct gk_conversion<A, bfloat16> {
    __device__ static inline A of(bfloat16 x) { return (A)__bfloat162float(x); }
};
template <typename T> struct gk_conversion<float16, T> {
    __device__ static inline float16 of(T x) { return __float2half_rn((float)x); }
};
template <typename T> struct gk_conversion<bfloat16, T> {
    __device__ static inline bfloat16 of(T x) { return __float2bfloat16_rn((float)x); }
};
template <> struct gk_conversion<float16, float16> {
    __device__ static inline float16 of(float16 x) { return x; }
};
template <> struct gk_conversion<bfloat16, bfloat16> {
    __device__ static inline bfloat16 of(bfloat16 x) { return x; }
};
template <typename A, typename T> __device__ static inline A gk_as(T x) {
    return gk_conversion<A, T>::of(x);
}

// What an element is in memory. A byte of any value but 0 is true: what is viewed as bool may hold more
// than 0 and 1, and C++ knows no others.
template <typename T> struct gk_stored { typedef T type; };
template <> struct gk_stored<bool> { typedef uint8_t type; };
template <typename T> __device__ static inline T gk_read(const void *at) {
    return gk_as<T>(*(const typename gk_stored<T>::type *)at);
}

// traits -------------------------------------------------------------------------------------------

// Of each dtype: `wide`, what its arithmetic is done in (the half types in float32, which has more
// than twice their bits, so that one rounding at the end is as accurate as arithmetic of their own);
// `sum`, what sums and products of many are carried in; `order`, what extremes are compared in, of
// unsigned numbers by those of signed ones.
template <typename T, typename WIDE, typename SUM, typename ORDER> struct gk_traits_of {
    typedef WIDE wide;
    typedef SUM sum;
    typedef ORDER order;
};
template <typename T> struct gk_traits : gk_traits_of<T, T, int64_t, int32_t> {};
template <> struct gk_traits<float> : gk_traits_of<float, float, float, float> {};
template <> struct gk_traits<double> : gk_traits_of<double, double, double, double> {};
template <> struct gk_traits<float16> : gk_traits_of<float16, float, float, float> {};
template <> struct gk_traits<bfloat16> : gk_traits_of<bfloat16, float, float, float> {};
template <> struct gk_traits<int64_t> : gk_traits_of<int64_t, int64_t, int64_t, int64_t> {};

// arithmetic ---------------------------------------------------------------------------------------

// Integers wrap around as NumPy's do, which C++ leaves undefined for signed ones; a bool is true where
// the result is not 0, which makes `or` of + and `and` of *.
template <typename T> struct gk_wrapping { typedef T type; };
template <> struct gk_wrapping<int32_t> { typedef uint32_t type; };
template <> struct gk_wrapping<int64_t> { typedef uint64_t type; };
template <> struct gk_wrapping<int16_t> { typedef uint32_t type; }; // as int, 2^16 squared overflows
template <> struct gk_wrapping<uint16_t> { typedef uint32_t type; };
#define GK_WRAP(x) ((typename gk_wrapping<T>::type)(x))

template <typename T> __device__ static inline T gk_plus(T x, T y) { return (T)(GK_WRAP(x) + GK_WRAP(y)); }
template <typename T> __device__ static inline T gk_minus(T x, T y) { return (T)(GK_WRAP(x) - GK_WRAP(y)); }
template <typename T> __device__ static inline T gk_times(T x, T y) { return (T)(GK_WRAP(x) * GK_WRAP(y)); }
template <typename T> __device__ static inline T gk_negated(T x) { return (T)(-GK_WRAP(x)); }
template <typename T> __device__ static inline T gk_absolute(T x) { return x > 0 ? x : gk_negated(x); }
template <typename T> __device__ static inline T gk_times_plus(T x, T y, T z) { return gk_plus(gk_times(x, y), z); }

// Products that no compiler fuses with the addition behind them: the same bits everywhere.
__device__ static inline float gk_times(float x, float y) { return __fmul_rn(x, y); }
__device__ static inline double gk_times(double x, double y) { return __dmul_rn(x, y); }
__device__ static inline float gk_times_plus(float x, float y, float z) { return __fmaf_rn(x, y, z); }
__device__ static inline double gk_times_plus(double x, double y, double z) { return __fma_rn(x, y, z); }
__device__ static inline float gk_absolute(float x) { return fabsf(x); }
__device__ static inline double gk_absolute(double x) { return fabs(x); }
__device__ static inline bool gk_absolute(bool x) { return x; }
__device__ static inline float gk_square_root(float x) { return sqrtf(x); }
__device__ static inline double gk_square_root(double x) { return sqrt(x); }
__device__ static inline float gk_exponential(float x) { return expf(x); }
__device__ static inline double gk_exponential(double x) { return exp(x); }

// vectors ------------------------------------------------------------------------------------------

// WIDTH elements in whole words, 16 bytes where nothing else is asked for: what one access moves. They
// stay packed until they are taken: elements of less than a word would be taken apart right behind
// their load, before the next load was issued.
template <int BYTES> struct gk_word { typedef uint32_t type; };
template <> struct gk_word<2> { typedef uint16_t type; };
template <> struct gk_word<1> { typedef uint8_t type; };

template <typename T, int COUNT = 16 / (int)sizeof(T)> struct alignas(sizeof(T) * COUNT) gk_vector {
    static constexpr int WIDTH = COUNT;
    typedef typename gk_word<sizeof(T) * COUNT>::type word;
    word bits[sizeof(T) * COUNT / sizeof(word)];

    __device__ inline T operator[](int e) const {
        typename gk_stored<T>::type elements[COUNT];
        memcpy(static_cast<void *>(elements), bits, sizeof bits);
        return gk_as<T>(elements[e]);
    }
    __device__ inline void pack(const T (&elements)[COUNT]) { memcpy(bits, elements, sizeof bits); }
    // One more element behind the others, which move up; the first one goes. Of vectors of whole words.
    __device__ inline void push(T x) {
        enum { WORDS = sizeof bits / 4, BITS = 8 * sizeof(T) % 32, STEP = sizeof(T) / 4 };
        uint32_t last[STEP > 0 ? STEP : 1] = {0};
        memcpy(last, &x, sizeof x);
#pragma unroll
        for (int w = 0; w < WORDS - STEP; w++)
            bits[w] = STEP > 0 ? bits[w + STEP] : __funnelshift_r(bits[w], w + 1 < WORDS ? bits[w + 1] : last[0], BITS);
#pragma unroll
        for (int w = 0; w < STEP; w++)
            bits[WORDS - STEP + w] = last[w];
    }
};

// WIDTH elements, which are read once: the cache may let go of 16 bytes of such before anything else.
template <int WIDTH, typename T> __device__ static inline gk_vector<T, WIDTH> gk_load_once(const T *at) {
    gk_vector<T, WIDTH> loaded;
    if (sizeof loaded != sizeof(uint4))
        return *(const gk_vector<T, WIDTH> *)at;
    uint4 bits = __ldcs((const uint4 *)at);
    memcpy(loaded.bits, &bits, sizeof loaded.bits);
    return loaded;
}
template <typename T> __device__ static inline gk_vector<T> gk_load_once(const T *at) {
    return gk_load_once<gk_vector<T>::WIDTH>(at);
}

// 4, 8 or 16 bytes that others may read as well, said to be in global memory: the compiler no longer knows it of an address that has
// gone through a struct, and would have each looked at. Nor does it put such a load off to where it is wanted.
template <class V> __device__ static inline V gk_load_global(const V *at) {
#ifdef __CUDA_ARCH__
    V loaded;
    static_assert(sizeof(V) == 4 || sizeof(V) == 8 || sizeof(V) == 16, "whole words");
    if constexpr (sizeof(V) == 16)
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(loaded.bits[0]), "=r"(loaded.bits[1]), "=r"(loaded.bits[2]), "=r"(loaded.bits[3]) : "l"(__cvta_generic_to_global(at)));
    else if constexpr (sizeof(V) == 8)
        asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(loaded.bits[0]), "=r"(loaded.bits[1]) : "l"(__cvta_generic_to_global(at)));
    else
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(loaded.bits[0]) : "l"(__cvta_generic_to_global(at)));
    return loaded;
#else
    return *at;
#endif
}

// A vector that lies anywhere, of the two aligned ones that it lies in, `shift` bytes behind where the first begins.
template <typename T> __device__ static inline gk_vector<T> gk_between(uint4 lower, uint4 upper, unsigned shift) {
    uint32_t word[8] = {lower.x, lower.y, lower.z, lower.w, upper.x, upper.y, upper.z, upper.w};
#pragma unroll
    for (int w = 0; w < 6; w++)
        word[w] = shift & 8 ? word[w + 2] : word[w];
#pragma unroll
    for (int w = 0; w < 5; w++)
        word[w] = shift & 4 ? word[w + 1] : word[w];
    gk_vector<T> loaded;
#pragma unroll
    for (int w = 0; w < 4; w++)
        loaded.bits[w] = sizeof(T) < 4 ? __funnelshift_r(word[w], word[w + 1], shift % 4 * 8) : word[w];
    return loaded;
}

// Elements [first, end) of a vector that would begin at `from`, wherever that is, of the aligned ones that have some.
template <typename T> __device__ static inline gk_vector<T> gk_load_part(const T *from, int first, int end) {
    const unsigned shift = (uintptr_t)from % 16;
    const uint4 *low = (const uint4 *)((uintptr_t)from - shift);
    const bool lower = shift + first * (int)sizeof(T) < 16, upper = shift + end * (int)sizeof(T) > 16;
    return gk_between<T>(low[!lower], low[upper], shift);
}

// As many bytes a load as of an aligned one. Of both vectors each holds a byte of it, or, where it is aligned itself,
// they are one; the second may reach 15 bytes beyond it.
template <typename T> __device__ static inline gk_vector<T> gk_load_between(const T *at) {
    return gk_load_part(at, 0, gk_vector<T>::WIDTH);
}

// Those bits of word w of a vector that lie in its bytes from number `first` on, which may be none of it; and in [first, end).
__device__ static inline uint32_t gk_bytes_from(int w, int first) {
    const int behind = first - 4 * w;
    return behind >= 4 ? 0 : 0xffffffffu << (behind > 0 ? 8 * behind : 0);
}
__device__ static inline uint32_t gk_bytes_of_word(int w, int first, int end) { return gk_bytes_from(w, first) & ~gk_bytes_from(w, end); }

// The first `count` elements of one vector, and the others of another.
template <typename T> __device__ static inline gk_vector<T> gk_joined(const gk_vector<T> &front, const gk_vector<T> &back, int count) {
    gk_vector<T> joined;
#pragma unroll
    for (int w = 0; w < 4; w++) {
        const uint32_t mask = gk_bytes_from(w, count * (int)sizeof(T));
        joined.bits[w] = (front.bits[w] & ~mask) | (back.bits[w] & mask);
    }
    return joined;
}

// Results are marked to leave the cache first where they are 16 bytes wide: nothing here reads them
// again.
template <typename V> __device__ static inline void gk_put(void *out, const V &result) {
    if (sizeof(V) == sizeof(uint4)) {
        uint4 bits;
        memcpy(&bits, &result, sizeof(V) < sizeof bits ? sizeof(V) : sizeof bits);
        __stcs((uint4 *)out, bits);
    } else {
        *(V *)out = result;
    }
}

#endif
