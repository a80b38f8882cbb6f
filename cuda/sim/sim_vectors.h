// CUDA's vector types and dim3, for a machine that has none of NVIDIA's headers; sizes and
// alignments are CUDA's. The guards are those of NVIDIA's headers, which then add nothing.
#ifndef GK_SIM_VECTORS_H
#define GK_SIM_VECTORS_H
#define __VECTOR_TYPES_H__
#define __VECTOR_FUNCTIONS_H__
#define __VECTOR_FUNCTIONS_HPP__

#define GK_SIM_VECTOR(name, T, align2, align4)                                                     \
    struct name##1 {                                                                               \
        T x;                                                                                       \
    };                                                                                             \
    struct __attribute__((aligned(align2))) name##2 {                                              \
        T x, y;                                                                                    \
    };                                                                                             \
    struct name##3 {                                                                               \
        T x, y, z;                                                                                 \
    };                                                                                             \
    struct __attribute__((aligned(align4))) name##4 {                                              \
        T x, y, z, w;                                                                              \
    };                                                                                             \
    static inline name##1 make_##name##1(T x) {                                                    \
        return {x};                                                                                \
    }                                                                                              \
    static inline name##2 make_##name##2(T x, T y) {                                               \
        return {x, y};                                                                             \
    }                                                                                              \
    static inline name##3 make_##name##3(T x, T y, T z) {                                          \
        return {x, y, z};                                                                          \
    }                                                                                              \
    static inline name##4 make_##name##4(T x, T y, T z, T w) {                                     \
        return {x, y, z, w};                                                                       \
    }
GK_SIM_VECTOR(char, signed char, 2, 4)
GK_SIM_VECTOR(uchar, unsigned char, 2, 4)
GK_SIM_VECTOR(short, short, 4, 8)
GK_SIM_VECTOR(ushort, unsigned short, 4, 8)
GK_SIM_VECTOR(int, int, 8, 16)
GK_SIM_VECTOR(uint, unsigned, 8, 16)
GK_SIM_VECTOR(long, long, 16, 16)
GK_SIM_VECTOR(ulong, unsigned long, 16, 16)
GK_SIM_VECTOR(longlong, long long, 16, 16)
GK_SIM_VECTOR(ulonglong, unsigned long long, 16, 16)
GK_SIM_VECTOR(float, float, 8, 16)
GK_SIM_VECTOR(double, double, 16, 16)
#undef GK_SIM_VECTOR

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {
    }
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {
    }
    constexpr operator uint3() const {
        return {x, y, z};
    }
};

#endif
