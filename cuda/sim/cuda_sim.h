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

#include "sim_words.h"

// One OS thread runs one block at a time: its copy is the block's. See shared.c.
#undef __shared__
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
