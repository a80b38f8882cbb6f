// What every kernel file starts from. A .cu file is read three times: by nvcc (kernels for a GPU),
// by g++ with GK_SIM (the same kernels for the CPU simulator) and by the C compiler with
// GK_ROWS_ONLY (its rows alone, as entries of the table in csrc/device/registry.c).
#ifndef GK_DEVICE_CUH
#define GK_DEVICE_CUH

#include "base/dtypes.h"

// A row registers a kernel, and is all that has to be written to add one:
//   GK_ROW(op, variant, dtype, symbol, "what this step adds", .field = value, ...)
//   GK_LIBRARY(op, variant, dtype, "note", ...): cuBLAS does the work
// The fields are those of struct gk_row in csrc/device/registry.h: what a block covers, its threads,
// the alignment of every pointer, whether the kernel calls gk_follow, the least compute capability (7.5 where none is named), dynamic
// shared memory, and, where a launch has to be prepared on the host, a function that does it, which
// stands in the same file under GK_HOST_PART, in C.
#ifndef GK_ROWS_ONLY
#define GK_ROW(...)
#define GK_LIBRARY(...)
#endif

// The build fails where a kernel of cuda/matmul spills registers on 9.0, unless its file lets it:
//   GK_MAY_SPILL(symbol)
#define GK_MAY_SPILL(symbol)

// Where a part of a row's name is a macro itself.
#define GK_NAMED_ROW(...)      GK_ROW(__VA_ARGS__)
#define GK_JOINED(a, b)        a##b
#define GK_JOIN(a, b)          GK_JOINED(a, b)
#define GK_ELEMENTS_IN_16(bytes) GK_JOINED(GK_ELEMENTS_IN_16_OF_, bytes)
#define GK_ELEMENTS_IN_16_OF_1 16
#define GK_ELEMENTS_IN_16_OF_2 8
#define GK_ELEMENTS_IN_16_OF_4 4
#define GK_ELEMENTS_IN_16_OF_8 2
#define GK_ELEMENTS_IN_32(bytes) GK_JOINED(GK_ELEMENTS_IN_32_OF_, bytes)
#define GK_ELEMENTS_IN_32_OF_1 32
#define GK_ELEMENTS_IN_32_OF_2 16
#define GK_ELEMENTS_IN_32_OF_4 8
#define GK_ELEMENTS_IN_32_OF_8 4

#ifndef GK_ROWS_ONLY

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

// What each thread of a kernel calls once whose row says `.follows = true`: it may have been started under the end of
// the one before it in its stream, and touches no memory before that one is through. What it finds out from its parameters alone
// stands in front of this, and is done by then. From then on, once all blocks have got here, the next one may start in the same way. Programmatic dependent launch (CUDA programming
// guide, section of that name); to GPUs before 9.0 it is nothing, and launches there wait for one another. So it
// is in PTX of 7.5, and no PTX of 9.0 is built for it alone (build_tools/targets.py looks for ">= 900").
__device__ static inline void gk_follow(void) {
#ifdef GK_SIM
    gk_sim_follow();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ / 10 >= 90
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// The global index of this thread in a one-dimensional grid; size_t, since arrays pass 2^32.
__device__ static inline size_t gk_thread(void) {
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

// Calls `one` for elements behind the last whole vector of WIDTH. Those vectors of a launch that are none share them out,
// so that all are on their way at once: a thread that took one after another would wait for memory each time. This
// one begins at element i, the launch would reach element `end`.
template <int WIDTH, class ONE> __device__ static inline void gk_each_left(size_t n, size_t i, size_t end, const ONE &one) {
    const size_t whole = n - n % WIDTH;
#pragma unroll 1
    for (size_t at = whole + (i - whole) / WIDTH; at < n; at += (end - whole) / WIDTH)
        one(at);
}

// Where this block's tile stands in a matrix of `columns` columns. One-dimensional grids only: y
// and z end at 65535 blocks, x at 2^31 - 1.
struct gk_corner {
    size_t row, column;
};
__device__ static inline gk_corner gk_tile_corner(size_t tile, size_t columns, int tile_rows, int tile_columns) {
    size_t across = (columns + tile_columns - 1) / tile_columns;
    return {tile / across * tile_rows, tile % across * tile_columns};
}

// The same in groups of eight rows of tiles, which are gone through column by column: their rows of A and
// columns of B stay in the L2 cache meanwhile.
__device__ static inline gk_corner gk_grouped_corner(size_t tile, size_t rows, size_t columns, int tile_rows, int tile_columns) {
    enum { TALL = 8 };
    size_t down = (rows + tile_rows - 1) / tile_rows, across = (columns + tile_columns - 1) / tile_columns;
    size_t first = tile / (TALL * across) * TALL, tall = down - first < TALL ? down - first : TALL;
    size_t inside = tile - first * across;
    return {(first + inside % tall) * tile_rows, inside / tall * tile_columns};
}

// Adds one, or, where `last` is reached, sets to 0 for the next launch; what was there before. What this thread has seen
// written, whoever comes later sees too (release and acquire): a fence of __threadfence orders all of the device's, and takes longer.
__device__ static inline unsigned gk_arrive(unsigned *arrivals, unsigned last) {
#ifdef __CUDA_ARCH__
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(__cvta_generic_to_global(arrivals)), "r"(last) : "memory");
#else
    __threadfence();
    const unsigned before = atomicInc(arrivals, last);
    __threadfence();
#endif
    return before;
}

// Whether all other blocks of a result have left their partial results before this one.
__device__ static inline bool gk_is_last(unsigned *arrivals, size_t blocks) {
    __shared__ unsigned turn;
    const unsigned last = (unsigned)blocks - 1;
    __syncthreads();
    if (threadIdx.x == 0) // between barriers, for the whole block
        turn = gk_arrive(arrivals, last);
    __syncthreads();
    return turn == last;
}

#include "numbers.cuh"

#endif
#endif
