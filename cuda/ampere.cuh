// What compute capability 8.0 has beyond CUDA C++: tensor cores that a warp multiplies with, the loads that
// bring their operands from shared memory, and copies to shared memory (ahead.cuh). Code that uses it stands
// under GK_AMPERE.
#ifndef GK_AMPERE_CUH
#define GK_AMPERE_CUH

#include "ahead.cuh"

#ifndef GK_ROWS_ONLY

#if __CUDA_ARCH__ >= 800
#define GK_AMPERE

// Four 8 x 8 matrices of 2-byte elements from shared memory. Each lane names a row of 16 bytes, lanes 0 to 7
// those of the first matrix; lane 4 i + j gets elements 2 j and 2 j + 1 of row i of each, or, TRANSPOSED,
// of column i.
template <bool TRANSPOSED> __device__ static inline void gk_load_matrices(uint32_t (&to)[4], unsigned row) {
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(row)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(row)
                     : "memory");
}

__device__ static inline uint32_t gk_load_shared(unsigned at) {
    uint32_t word;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(at) : "memory");
    return word;
}
__device__ static inline void gk_load_shared(uint32_t &lower, uint32_t &upper, unsigned at) {
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(lower), "=r"(upper) : "r"(at) : "memory");
}

// A float32 for tensor cores, which take 10 bits behind the point and cut off the others: as much more as
// makes that the nearest. What is not finite stays as it is.
__device__ static inline uint32_t gk_round_to_tf32(uint32_t bits) {
    return fabsf(__uint_as_float(bits)) < INFINITY ? bits + (1u << 12) : bits;
}

// A warp's product of a 16 x 16 and a 16 x 8 matrix, added to 16 x 8 sums in float32. Of A a lane holds the
// four 8 x 8 quarters, the lower left one second; of B's columns the upper and the lower halves.
#define GK_MULTIPLY_WARP(T, type)                                                                  \
    __device__ static inline void gk_multiply_warp(float(&sum)[4], const uint32_t(&a)[4], uint32_t b_upper, uint32_t b_lower, T) { \
        asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                               \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_upper), "r"(b_lower));             \
    }
GK_MULTIPLY_WARP(float16, "f16")
GK_MULTIPLY_WARP(bfloat16, "bf16")

// The same 8 deep, of float32 rounded to tf32.
__device__ static inline void gk_multiply_warp(float (&sum)[4], const uint32_t (&a)[4], uint32_t b_upper, uint32_t b_lower, float) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_upper), "r"(b_lower));
}

// The same 4 deep, in float64: of A's upper eight rows a lane holds words 0 and 2, of the lower ones 1 and 3.
__device__ static inline void gk_multiply_warp(double (&sum)[4], const uint32_t (&a)[4], uint32_t b_lower_word, uint32_t b_upper_word, double) {
    double upper = __hiloint2double((int)a[2], (int)a[0]), lower = __hiloint2double((int)a[3], (int)a[1]);
    double b = __hiloint2double((int)b_upper_word, (int)b_lower_word);
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
        : "d"(upper), "d"(lower), "d"(b));
#else
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(sum[0]), "+d"(sum[1]) : "d"(upper), "d"(b));
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(sum[2]), "+d"(sum[3]) : "d"(lower), "d"(b));
#endif
}

#endif
#endif
#endif
