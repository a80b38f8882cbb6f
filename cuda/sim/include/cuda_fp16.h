// NVIDIA's own cuda_fp16.h as it is for the host, and its atomics.
#ifndef GK_SIM_CUDA_FP16_H
#define GK_SIM_CUDA_FP16_H
#if !__has_include_next(<cuda_fp16.h>)
#error "cuda_fp16.h is of CUDA's own headers: pip install nvidia-cuda-runtime nvidia-cuda-crt"
#endif
#include "gk_before_nvidia.h"
#include_next <cuda_fp16.h>
#include "gk_behind_nvidia.h"
GK_SIM_ATOMIC(atomicAdd, __half, uint16_t, __hadd(old, value))
GK_SIM_ATOMIC(atomicAdd, __half2, uint32_t, __hadd2(old, value))
#endif
