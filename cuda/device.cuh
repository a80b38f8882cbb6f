// What every kernel file starts from. A .cu file is read three times: by nvcc (kernels for a GPU),
// by g++ with GK_SIM (the same kernels for the CPU simulator) and by the C compiler with
// GK_ROWS_ONLY (its rows alone, as entries of the table in csrc/device/registry.c).
#ifndef GK_DEVICE_CUH
#define GK_DEVICE_CUH
#ifndef GK_ROWS_ONLY

// A row registers a kernel, and is all that has to be written to add one:
//   GK_ROW(op, variant, dtype, symbol, elements a thread, threads a block, alignment, capability, note)
//   GK_TILE(op, variant, dtype, symbol, tile rows, tile columns, threads a block, alignment, capability, note)
//   GK_STRIDED: a GK_ROW whose kernel takes a gk_layout, and so arrays of any strides
//   GK_ACCUMULATE: a GK_ROW whose grid adds to one zeroed result with atomics
//   GK_REDUCE(op, variant, dtype, symbol, threads a block, note): a kernel that takes a gk_reduction (reduce.cuh)
//   GK_LIBRARY(op, variant, dtype, capability, note): cuBLAS does the work
// alignment: bytes that every pointer has to be a multiple of; capability: the least one, 75 = 7.5.
#define GK_ROW(...)
#define GK_STRIDED(...)
#define GK_TILE(...)
#define GK_ACCUMULATE(...)
#define GK_REDUCE(...)
#define GK_LIBRARY(...)

#include <stdint.h>
#ifdef GK_SIM
#include "sim/cuda_sim.h"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
// Dynamic shared memory by name; a macro because the simulator has to hand it out per block.
#define GK_DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

#include "layout.h"

#define GK_WARP 32
#define GK_ALL_LANES 0xffffffffu

typedef __half float16;
typedef __nv_bfloat16 bfloat16;

// The global index of this thread in a one-dimensional grid; size_t, since arrays pass 2^32.
__device__ static inline size_t gk_thread(void) {
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

// Where this block's tile stands in a matrix of `columns` columns. One-dimensional grids only: y
// and z end at 65535 blocks, x at 2^31 - 1.
struct gk_corner {
    size_t row, column;
};
__device__ static inline gk_corner gk_tile_corner(size_t columns, int tile_rows, int tile_columns) {
    size_t across = (columns + tile_columns - 1) / tile_columns;
    return {blockIdx.x / across * tile_rows, blockIdx.x % across * tile_columns};
}

// A conversion to the type that a sum or a product of T is carried in.
__device__ static inline float gk_widen(float x) { return x; }
__device__ static inline double gk_widen(double x) { return x; }
__device__ static inline float gk_widen(float16 x) { return __half2float(x); }
__device__ static inline float gk_widen(bfloat16 x) { return __bfloat162float(x); }
__device__ static inline int64_t gk_widen(int32_t x) { return x; }
__device__ static inline int64_t gk_widen(int64_t x) { return x; }

// And back, rounding once.
__device__ static inline void gk_store(float *to, float x) { *to = x; }
__device__ static inline void gk_store(double *to, double x) { *to = x; }
__device__ static inline void gk_store(float16 *to, float x) { *to = __float2half_rn(x); }
__device__ static inline void gk_store(bfloat16 *to, float x) { *to = __float2bfloat16_rn(x); }
__device__ static inline void gk_store(int64_t *to, int64_t x) { *to = x; }

// x + y as NumPy defines it; integers wrap around, which C leaves undefined for signed ones.
__device__ static inline float gk_plus(float x, float y) { return x + y; }
__device__ static inline double gk_plus(double x, double y) { return x + y; }
__device__ static inline float16 gk_plus(float16 x, float16 y) { return __hadd(x, y); }
__device__ static inline bfloat16 gk_plus(bfloat16 x, bfloat16 y) { return __hadd(x, y); }
__device__ static inline int64_t gk_plus(int64_t x, int64_t y) { return (int64_t)((uint64_t)x + (uint64_t)y); }
__device__ static inline int32_t gk_plus(int32_t x, int32_t y) { return (int32_t)((uint32_t)x + (uint32_t)y); }
__device__ static inline int8_t gk_plus(int8_t x, int8_t y) { return (int8_t)((uint8_t)x + (uint8_t)y); }
__device__ static inline uint8_t gk_plus(uint8_t x, uint8_t y) { return (uint8_t)(x + y); }

#endif
#endif
