// What compute capability 9.0 has and no other, code of "90a": products of a warpgroup, four warps, whose
// operands the tensor cores read from shared memory themselves, and registers that warps hand to others.
// Code that uses it stands under GK_WARPGROUP; the line that defines it has the build compile the file for
// 9.0a as well.
#ifndef GK_WARPGROUP_CUH
#define GK_WARPGROUP_CUH

#include "hopper.cuh"

#ifndef GK_ROWS_ONLY

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define GK_WARPGROUP

enum { GK_WARPGROUP_THREADS = 128 };

// The registers a thread of this warpgroup has from here on, all its warps coming here; those that take
// more wait until others have let go of them.
template <int REGISTERS> __device__ static inline void gk_registers_take(void) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS> __device__ static inline void gk_registers_leave(void) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// Wait for all threads of the block's warpgroup of that number.
__device__ static inline void gk_warpgroup_meet(unsigned group) {
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"((int)GK_WARPGROUP_THREADS) : "memory"); // 0 is __syncthreads()
}

// Where the tensor cores find an operand in shared memory: in rows of 128 bytes, which the copy engine has
// left in its 128-byte swizzle, eight rows to 1024 bytes, on a multiple of 1024. Rows are lines (rows of A,
// columns of B) with 64 elements of K, or elements of K with 64 lines; of the latter what holds the next 64
// lines is `apart` bytes behind, and of the former `apart` is 16 and without a meaning.
__device__ static inline uint64_t gk_operand(unsigned at, unsigned apart) {
    const uint64_t swizzled_128 = 1;
    return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)(apart >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 | swizzled_128 << 62;
}

// The same of rows of SWIZZLE bytes along K, 64 or 128, left in the swizzle of their length; eight rows stand
// on a multiple of their size.
template <int SWIZZLE> __device__ static inline uint64_t gk_operand_along(unsigned at) {
    const uint64_t swizzle = SWIZZLE == 128 ? 1 : 2;
    return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(8 * SWIZZLE >> 4) << 32 | swizzle << 62;
}

// Before the first product, and after sums were touched.
__device__ static inline void gk_products_begin(void) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// The products since the last call are one group.
__device__ static inline void gk_products_end(void) { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Wait until no more than so many groups, the latest ones, are on their way.
template <int GROUPS> __device__ static inline void gk_products_wait(void) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(GROUPS) : "memory");
}

// Keeps the compiler from taking the sums before a wait that stands in front of this.
template <int COUNT> __device__ static inline void gk_products_settle(float (&sum)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        asm volatile("" : "+f"(sum[i])::"memory");
}

#define GK_SUMS_4(s, i)  "+f"(s[i]), "+f"(s[i + 1]), "+f"(s[i + 2]), "+f"(s[i + 3])
#define GK_SUMS_16(s, i) GK_SUMS_4(s, i), GK_SUMS_4(s, i + 4), GK_SUMS_4(s, i + 8), GK_SUMS_4(s, i + 12)
#define GK_SUMS_64(s, i) GK_SUMS_16(s, i), GK_SUMS_16(s, i + 16), GK_SUMS_16(s, i + 32), GK_SUMS_16(s, i + 48)
#define GK_SUMS_128_NAMES                                                                          \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// A warpgroup's product of 64 x 16 and 16 x 256 elements, added to 64 x 256 sums, or, `adds` being 0, in
// their place. ACROSS: the operand's rows in shared memory are elements of K. Warp w has rows 16 w to 16 w +
// 15 of the sums, and of each 8 columns a lane what a warp's product gives it: elements 4 j to 4 j + 3 are of
// columns 8 j to 8 j + 7.
#define GK_MULTIPLY_WARPGROUP(T, type)                                                             \
    template <bool A_ACROSS, bool B_ACROSS>                                                        \
    __device__ static inline void gk_multiply_warpgroup(float(&sum)[128], uint64_t a, uint64_t b, int adds, T) { \
        asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %130, 0;\n"                           \
                     "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {" GK_SUMS_128_NAMES "}, " \
                     "%128, %129, adds, 1, 1, %131, %132;\n}"                                      \
                     : GK_SUMS_64(sum, 0), GK_SUMS_64(sum, 64)                                     \
                     : "l"(a), "l"(b), "r"(adds), "n"((int)A_ACROSS), "n"((int)B_ACROSS)           \
                     : "memory");                                                                  \
    }
GK_MULTIPLY_WARPGROUP(float16, "f16")
GK_MULTIPLY_WARPGROUP(bfloat16, "bf16")

#define GK_SUMS_64_NAMES                                                                           \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// The same of 64 x 16 and 16 x 128 elements, whose rows in shared memory go along K.
#define GK_MULTIPLY_WARPGROUP_ALONG(T, type)                                                       \
    __device__ static inline void gk_multiply_warpgroup(float(&sum)[64], uint64_t a, uint64_t b, int adds, T) { \
        asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %66, 0;\n"                            \
                     "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" GK_SUMS_64_NAMES "}, " \
                     "%64, %65, adds, 1, 1, 0, 0;\n}"                                              \
                     : GK_SUMS_64(sum, 0)                                                          \
                     : "l"(a), "l"(b), "r"(adds)                                                   \
                     : "memory");                                                                  \
    }
GK_MULTIPLY_WARPGROUP_ALONG(float16, "f16")
GK_MULTIPLY_WARPGROUP_ALONG(bfloat16, "bf16")

#endif
#endif
#endif
