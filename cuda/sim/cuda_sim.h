// CUDA C++ for g++: what nvcc knows of the language, over the simulator's scheduler. A kernel file
// is compiled unchanged; the types and the arithmetic of half and bfloat16 are NVIDIA's own, whose
// headers compile for the host.
#ifndef GK_CUDA_SIM_H
#define GK_CUDA_SIM_H

#include <fenv.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <type_traits>
#include <utility>

#include <vector_functions.h>
#include <vector_types.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "state.h"

// NVIDIA's headers leave these empty or unknown to g++.
#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __managed__
#undef __grid_constant__
#undef __launch_bounds__
#undef __maxnreg__
#undef __cluster_dims__
#undef __forceinline__
#undef __noinline__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))

// One OS thread runs one block at a time: its copy is the block's. See shared.c.
#define __shared__ static thread_local __attribute__((used))
#define GK_DYNAMIC_SHARED(type, name)                                                              \
    type *const name = static_cast<type *>(gk_sim_dynamic_shared(__FILE__, __LINE__))

#define threadIdx (static_cast<const uint3 &>(gk_sim_now.thread))
#define blockIdx  (static_cast<const uint3 &>(gk_sim_now.block))
#define blockDim  (reinterpret_cast<const dim3 &>(gk_sim_now.block_dim))
#define gridDim   (reinterpret_cast<const dim3 &>(gk_sim_now.grid_dim))
static constexpr int warpSize = GK_SIM_WARP_SIZE;

#include "sim_warp.h"
#include "sim_atomic.h"
#include "sim_math.h"

#endif
