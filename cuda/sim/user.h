// CUDA C++ for a user's source: included in front of it by gpukern.compile where there is no GPU.
// No header of the host's is seen but <type_traits> and <utility>: names are the user's.
#ifndef GK_SIM_USER_H
#define GK_SIM_USER_H
#define GK_SIM_USER 1

typedef decltype(sizeof 0) size_t;
typedef decltype((char *)0 - (char *)0) ptrdiff_t;
#ifndef NULL
#define NULL __null
#endif

#include <type_traits>
#include <utility>

#include <fenv.h>

#include "sim_vectors.h"
#include "sim_words.h"
#include "sim.h"
#include "state.h"

#define __CUDACC__           1
#define __CUDA_ARCH__        750
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __align__(n)         __attribute__((aligned(n)))

// One OS thread runs one block at a time: its copy is the block's. Of an extern one without a
// length the assembler is told where it lies (see kernels/assembly.py).
#define __shared__ __attribute__((used)) thread_local

#define threadIdx (static_cast<const uint3 &>(gk_sim_now.thread))
#define blockIdx  (static_cast<const uint3 &>(gk_sim_now.block))
#define blockDim  (reinterpret_cast<const dim3 &>(gk_sim_now.block_dim))
#define gridDim   (reinterpret_cast<const dim3 &>(gk_sim_now.grid_dim))
static constexpr int warpSize = GK_SIM_WARP_SIZE;

#include "sim_functions.h"
#include "sim_warp.h"
#include "sim_atomic.h"
#include "sim_math.h"
#include "sim_call.h"

// The dynamic shared memory of this OS thread, for the simulator.
extern "C" {
extern __thread char gk_sim_dynamic_block[] __attribute__((visibility("hidden")));
GK_SIM_SHARED void *gk_sim_module_dynamic(void);
__attribute__((no_sanitize("thread"))) void *gk_sim_module_dynamic(void) {
    return gk_sim_dynamic_block;
}
}

// What cannot be simulated says so, with the line.
#define GK_SIM_NEVER(what) __attribute__((error(what " cannot be simulated, and need a GPU")))
#define asm _Pragma("GCC error \"inline PTX (asm) cannot be simulated, and needs a GPU\"") __asm__
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
#define GK_SIM_TEXTURE(name)                                                                       \
    template <typename T, typename... A> GK_SIM_NEVER("textures and surfaces") T name(A...);
GK_SIM_TEXTURE(tex1D)
GK_SIM_TEXTURE(tex1Dfetch)
GK_SIM_TEXTURE(tex2D)
GK_SIM_TEXTURE(tex3D)
GK_SIM_TEXTURE(surf2Dread)
#undef GK_SIM_TEXTURE

#endif
