// What NVIDIA's library makes of it: the last step, and what all the others are measured by. There is no
// kernel here; csrc/device/cuda/cublas.c calls the library.
#include "device.cuh"

GK_LIBRARY(matmul, cublas, float32, "NVIDIA's library, in full float32 (no tf32)")
GK_LIBRARY(matmul, cublas, float64, "NVIDIA's library")
GK_LIBRARY(matmul, cublas, float16, "NVIDIA's library on tensor cores, accumulated in float32")
GK_LIBRARY(matmul, cublas, bfloat16, "NVIDIA's library on tensor cores, accumulated in float32")
