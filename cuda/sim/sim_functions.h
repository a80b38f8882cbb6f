// What CUDA declares of the C library for every source, and the functions that are CUDA's alone:
// for users' kernels, which include no header of the host's.
#ifndef GK_SIM_FUNCTIONS_H
#define GK_SIM_FUNCTIONS_H

// Tables, a line each.
// clang-format off

extern "C" {
void *memcpy(void *, const void *, size_t) noexcept;
void *memset(void *, int, size_t) noexcept;
void *memmove(void *, const void *, size_t) noexcept;
int printf(const char *, ...) __attribute__((format(printf, 1, 2)));
long clock(void) noexcept; // of the device: see print.c
}
static inline long long clock64(void) { return clock(); }
static inline unsigned long long globaltimer(void) { return (unsigned long long)clock(); }

#define GK_SIM_ONE(name)                                                                           \
    extern "C" double name(double) noexcept;                                                       \
    extern "C" float name##f(float) noexcept;                                                      \
    static inline float name(float x) { return name##f(x); }
GK_SIM_ONE(sqrt) GK_SIM_ONE(cbrt) GK_SIM_ONE(exp) GK_SIM_ONE(exp2) GK_SIM_ONE(expm1)
GK_SIM_ONE(log) GK_SIM_ONE(log2) GK_SIM_ONE(log10) GK_SIM_ONE(log1p) GK_SIM_ONE(logb)
GK_SIM_ONE(sin) GK_SIM_ONE(cos) GK_SIM_ONE(tan) GK_SIM_ONE(asin) GK_SIM_ONE(acos) GK_SIM_ONE(atan)
GK_SIM_ONE(sinh) GK_SIM_ONE(cosh) GK_SIM_ONE(tanh) GK_SIM_ONE(asinh) GK_SIM_ONE(acosh) GK_SIM_ONE(atanh)
GK_SIM_ONE(erf) GK_SIM_ONE(erfc) GK_SIM_ONE(tgamma) GK_SIM_ONE(lgamma)
GK_SIM_ONE(floor) GK_SIM_ONE(ceil) GK_SIM_ONE(trunc) GK_SIM_ONE(round) GK_SIM_ONE(rint) GK_SIM_ONE(nearbyint) GK_SIM_ONE(fabs)
#undef GK_SIM_ONE
#define GK_SIM_TWO(name)                                                                           \
    extern "C" double name(double, double) noexcept;                                               \
    extern "C" float name##f(float, float) noexcept;                                               \
    static inline float name(float x, float y) { return name##f(x, y); }
GK_SIM_TWO(pow) GK_SIM_TWO(atan2) GK_SIM_TWO(fmod) GK_SIM_TWO(remainder) GK_SIM_TWO(hypot)
GK_SIM_TWO(fmin) GK_SIM_TWO(fmax) GK_SIM_TWO(fdim) GK_SIM_TWO(copysign) GK_SIM_TWO(nextafter)
#undef GK_SIM_TWO
// An integer beside a floating-point number is taken as that.
template <typename A, typename B>
using gk_sim_mixed = std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value && !std::is_same<A, B>::value,
    std::conditional_t<std::is_same<A, double>::value || std::is_same<B, double>::value || (std::is_integral<A>::value && std::is_integral<B>::value), double, float>>;
template <typename A, typename B> static inline gk_sim_mixed<A, B> pow(A x, B y) { using T = gk_sim_mixed<A, B>; return pow((T)x, (T)y); }
template <typename A, typename B> static inline gk_sim_mixed<A, B> fmin(A x, B y) { using T = gk_sim_mixed<A, B>; return fmin((T)x, (T)y); }
template <typename A, typename B> static inline gk_sim_mixed<A, B> fmax(A x, B y) { using T = gk_sim_mixed<A, B>; return fmax((T)x, (T)y); }
#define GK_SIM_INTEGER(name)                                                                       \
    template <typename T> static inline std::enable_if_t<std::is_integral<T>::value, double> name(T x) { return name((double)x); }
GK_SIM_INTEGER(sqrt) GK_SIM_INTEGER(exp) GK_SIM_INTEGER(log) GK_SIM_INTEGER(log2) GK_SIM_INTEGER(log10)
GK_SIM_INTEGER(sin) GK_SIM_INTEGER(cos) GK_SIM_INTEGER(floor) GK_SIM_INTEGER(ceil) GK_SIM_INTEGER(round) GK_SIM_INTEGER(fabs)
#undef GK_SIM_INTEGER

extern "C" {
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
double scalbn(double, int) noexcept;
float scalbnf(float, int) noexcept;
double frexp(double, int *) noexcept;
float frexpf(float, int *) noexcept;
double modf(double, double *) noexcept;
float modff(float, float *) noexcept;
int ilogb(double) noexcept;
int ilogbf(float) noexcept;
long lrint(double) noexcept;
long lrintf(float) noexcept;
long lround(double) noexcept;
long lroundf(float) noexcept;
long long llrint(double) noexcept;
long long llrintf(float) noexcept;
double j0(double) noexcept;
double j1(double) noexcept;
double y0(double) noexcept;
double y1(double) noexcept;
int abs(int) noexcept;
long labs(long) noexcept;
long long llabs(long long) noexcept;
}
static inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
static inline float ldexp(float x, int n) { return ldexpf(x, n); }
static inline float abs(float x) { return fabsf(x); }
static inline double abs(double x) { return fabs(x); }
static inline long abs(long x) { return labs(x); }
static inline long long abs(long long x) { return llabs(x); }
#define GK_SIM_TEST(name)                                                                          \
    static inline bool name(float x) { return __builtin_##name(x); }                               \
    static inline bool name(double x) { return __builtin_##name(x); }
GK_SIM_TEST(isnan) GK_SIM_TEST(isinf) GK_SIM_TEST(isfinite) GK_SIM_TEST(signbit)
#undef GK_SIM_TEST
namespace std { using ::sqrt; using ::exp; using ::log; using ::sin; using ::cos; using ::tan; using ::tanh; using ::pow; using ::fabs;
using ::abs; using ::floor; using ::ceil; using ::round; using ::fma; using ::isnan; using ::isinf; using ::isfinite; using ::memcpy; using ::memset; using ::printf; }

static constexpr double gk_sim_pi = 3.14159265358979323846;
// Exact where the argument is half a turn, as CUDA's are.
static inline double sinpi(double x) { double r = fmod(x, 2.0); return r == trunc(r) ? copysign(0.0, x) : sin(gk_sim_pi * r); }
static inline double cospi(double x) { double r = fabs(fmod(x, 2.0)); return r == 0.5 || r == 1.5 ? 0.0 : cos(gk_sim_pi * r); }
static inline float sinpif(float x) { return (float)sinpi((double)x); }
static inline float cospif(float x) { return (float)cospi((double)x); }
static inline void sincos(double x, double *s, double *c) { *s = sin(x); *c = cos(x); }
static inline void sincosf(float x, float *s, float *c) { *s = sinf(x); *c = cosf(x); }
static inline void sincospi(double x, double *s, double *c) { *s = sinpi(x); *c = cospi(x); }
static inline void sincospif(float x, float *s, float *c) { *s = sinpif(x); *c = cospif(x); }
static inline void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }
static inline double exp10(double x) { return pow(10.0, x); }
static inline float exp10f(float x) { return (float)pow(10.0, (double)x); }
static inline double rcbrt(double x) { return 1.0 / cbrt(x); }
static inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
static inline double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
static inline float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
static inline double norm3d(double x, double y, double z) { return sqrt(x * x + y * y + z * z); }
static inline float norm3df(float x, float y, float z) { return (float)norm3d(x, y, z); }
static inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
static inline float normcdff(float x) { return (float)normcdf(x); }
static inline double erfcx(double x) { return exp(x * x) * erfc(x); }
static inline float erfcxf(float x) { return (float)erfcx(x); }
static inline float fdividef(float x, float y) { return x / y; }

// Conversions. The modes of rounding are _rn, _rz, _ru and _rd; what does not fit is clamped.
template <typename To> static inline To gk_sim_whole(double x) {
    constexpr To most = std::is_signed<To>::value ? (To)(~(unsigned long long)0 >> (65 - 8 * sizeof(To))) : (To)~(To)0, least = std::is_signed<To>::value ? (To)(-most - 1) : (To)0;
    return x != x ? (To)0 : x >= (double)most ? most : x <= (double)least ? least : (To)x;
}
#define GK_SIM_WHOLE(from, T, to, To)                                                              \
    static inline To __##from##2##to##_rn(T x) { return gk_sim_whole<To>(rint((double)x)); }       \
    static inline To __##from##2##to##_rz(T x) { return gk_sim_whole<To>(trunc((double)x)); }      \
    static inline To __##from##2##to##_ru(T x) { return gk_sim_whole<To>(ceil((double)x)); }       \
    static inline To __##from##2##to##_rd(T x) { return gk_sim_whole<To>(floor((double)x)); }
GK_SIM_WHOLE(float, float, int, int)
GK_SIM_WHOLE(float, float, uint, unsigned)
GK_SIM_WHOLE(float, float, ll, long long)
GK_SIM_WHOLE(float, float, ull, unsigned long long)
GK_SIM_WHOLE(double, double, int, int)
GK_SIM_WHOLE(double, double, uint, unsigned)
GK_SIM_WHOLE(double, double, ll, long long)
GK_SIM_WHOLE(double, double, ull, unsigned long long)
#undef GK_SIM_WHOLE
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
static inline double __int2double_rn(int x) { return (double)x; }
static inline double __uint2double_rn(unsigned x) { return (double)x; }
static inline float __double2float_rn(double x) { return (float)x; }
static inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffffu) * (y & 0xffffffu); }
static inline unsigned __sad(int x, int y, unsigned z) { return (x > y ? (unsigned)x - (unsigned)y : (unsigned)y - (unsigned)x) + z; }
static inline unsigned __usad(unsigned x, unsigned y, unsigned z) { return (x > y ? x - y : y - x) + z; }
static inline int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
static inline int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
static inline unsigned long long __brevll(unsigned long long x) {
    unsigned long long reversed = 0;
    for (int i = 0; i < 64; i++)
        reversed |= (x >> i & 1) << (63 - i);
    return reversed;
}

// clang-format on

#endif
