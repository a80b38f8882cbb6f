// The intrinsics that are functions of their arguments alone, and the loads and stores with a hint
// for the cache, which a CPU has no use for.
#ifndef GK_SIM_MATH_H
#define GK_SIM_MATH_H

// One line each, as a table.
// clang-format off

#define GK_SIM_LOAD(name)                                                                          \
    template <typename T> static inline T name(const T *from) { return *from; }
GK_SIM_LOAD(__ldg)
GK_SIM_LOAD(__ldca)
GK_SIM_LOAD(__ldcg)
GK_SIM_LOAD(__ldcs)
GK_SIM_LOAD(__ldcv)
GK_SIM_LOAD(__ldlu)
#undef GK_SIM_LOAD
#define GK_SIM_STORE(name)                                                                         \
    template <typename T> static inline void name(T *to, T value) { *to = value; }
GK_SIM_STORE(__stcg)
GK_SIM_STORE(__stcs)
GK_SIM_STORE(__stwb)
GK_SIM_STORE(__stwt)
#undef GK_SIM_STORE

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int i = 0; i < 32; i++)
        reversed |= (x >> i & 1) << (31 - i);
    return reversed;
}
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((uint64_t)x * y >> 32); }
static inline int __mulhi(int x, int y) { return (int)((int64_t)x * y >> 32); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static inline int __mul24(int x, int y) {
    return (int)((unsigned)((int)((unsigned)x << 8) >> 8) * (unsigned)((int)((unsigned)y << 8) >> 8));
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return (unsigned)((((uint64_t)high << 32 | low) << (by & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (by & 31));
}
static inline unsigned __vmaxu2(unsigned x, unsigned y) {
    return (x >> 16 > y >> 16 ? x >> 16 : y >> 16) << 16 | ((x & 0xffff) > (y & 0xffff) ? x & 0xffff : y & 0xffff);
}
static inline unsigned __vimax3_u32(unsigned x, unsigned y, unsigned z) {
    unsigned greater = x > y ? x : y;
    return greater > z ? greater : z;
}
static inline unsigned __vimax3_u16x2(unsigned x, unsigned y, unsigned z) { return __vmaxu2(x, __vmaxu2(y, z)); }
static inline unsigned __vminu2(unsigned x, unsigned y) {
    return (x >> 16 < y >> 16 ? x >> 16 : y >> 16) << 16 | ((x & 0xffff) < (y & 0xffff) ? x & 0xffff : y & 0xffff);
}
// The sum of four products of bytes, or of two of halves and the first two bytes of y, and z.
template <typename Byte, typename Word> static inline Word gk_sim_dp4a(Word x, Word y, Word z) {
    for (int i = 0; i < 4; i++)
        z = (Word)((unsigned)z + (unsigned)((int)(Byte)(x >> 8 * i) * (int)(Byte)(y >> 8 * i)));
    return z;
}
template <typename Half, typename Byte, typename Word> static inline Word gk_sim_dp2a(Word x, Word y, Word z) {
    for (int i = 0; i < 2; i++)
        z = (Word)((unsigned)z + (unsigned)((int)(Half)(x >> 16 * i) * (int)(Byte)(y >> 8 * i)));
    return z;
}
static inline unsigned __dp4a(unsigned x, unsigned y, unsigned z) { return gk_sim_dp4a<uint8_t>(x, y, z); }
static inline int __dp4a(int x, int y, int z) { return gk_sim_dp4a<int8_t>(x, y, z); }
static inline unsigned __dp2a_lo(unsigned x, unsigned y, unsigned z) { return gk_sim_dp2a<uint16_t, uint8_t>(x, y, z); }
static inline int __dp2a_lo(int x, int y, int z) { return gk_sim_dp2a<int16_t, int8_t>(x, y, z); }
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned made = 0;
    for (int i = 0; i < 4; i++) {
        unsigned byte = (unsigned)(both >> 8 * (selector >> 4 * i & 7)) & 0xff;
        made |= (selector >> 4 * i & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << 8 * i;
    }
    return made;
}

template <typename To, typename From> static inline To gk_sim_cast(From from) {
    static_assert(sizeof(To) == sizeof(From), "");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}
static inline int __float_as_int(float x) { return gk_sim_cast<int>(x); }
static inline unsigned __float_as_uint(float x) { return gk_sim_cast<unsigned>(x); }
static inline float __int_as_float(int x) { return gk_sim_cast<float>(x); }
static inline float __uint_as_float(unsigned x) { return gk_sim_cast<float>(x); }
static inline long long __double_as_longlong(double x) { return gk_sim_cast<long long>(x); }
static inline double __longlong_as_double(long long x) { return gk_sim_cast<double>(x); }

// The approximations of a GPU are within a few units in the last place; these are as exact as the C
// library. Macros, since glibc has functions of these names.
#define rsqrtf   gk_sim_rsqrtf
#define rsqrt    gk_sim_rsqrt
#define __expf   expf
#define __exp10f gk_sim_exp10f
#define __logf   logf
#define __log2f  log2f
#define __log10f log10f
#define __sinf   sinf
#define __cosf   cosf
#define __tanf   tanf
#define __powf   powf
static inline float gk_sim_exp10f(float x) { return powf(10.0f, x); }
static inline float gk_sim_rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double gk_sim_rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float gk_sim_fmaf_towards(int mode, volatile float x, volatile float y, volatile float z) {
    int before = fegetround();
    fesetround(mode);
    volatile float rounded = fmaf(x, y, z);
    fesetround(before);
    return rounded;
}
static inline float __fmaf_rd(float x, float y, float z) { return gk_sim_fmaf_towards(FE_DOWNWARD, x, y, z); }
static inline float __fmaf_ru(float x, float y, float z) { return gk_sim_fmaf_towards(FE_UPWARD, x, y, z); }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
static inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

// As CUDA's: of mixed types in the type that C converts them to; a NaN loses against a number.
template <typename A, typename B> using gk_sim_both = std::common_type_t<A, B>;
template <typename A, typename B>
static inline std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value, gk_sim_both<A, B>>
min(A x, B y) {
    gk_sim_both<A, B> a = (gk_sim_both<A, B>)x, b = (gk_sim_both<A, B>)y;
    return b != b || a < b ? a : b;
}
template <typename A, typename B>
static inline std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value, gk_sim_both<A, B>>
max(A x, B y) {
    gk_sim_both<A, B> a = (gk_sim_both<A, B>)x, b = (gk_sim_both<A, B>)y;
    return b != b || a > b ? a : b;
}

// clang-format on

#endif
