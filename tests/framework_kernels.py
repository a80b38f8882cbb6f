"""Kernels that the tests of PyTorch's operations and of JAX's functions both make such of."""

from __future__ import annotations

from typing import Any

import pytest

import gpukern as gk

SOURCE = r"""
__global__ void twice(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
__global__ void rows(const float *x, float scale, float *sums, int *counts, int width) {
    float sum = 0;
    int positive = 0;
    for (int i = 0; i < width; i++) {
        sum += scale * x[blockIdx.x * width + i];
        positive += x[blockIdx.x * width + i] > 0;
    }
    sums[blockIdx.x] = sum;
    counts[blockIdx.x] = positive;
}
__global__ void histogram(const unsigned char *x, int *bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[x[i]], 1);
}
"""


def compiled(more: str) -> Any:
    """The module of these and more; the test is skipped where nothing can be compiled."""
    try:
        return gk.compile(SOURCE + more)
    except gk.CudaError as error:
        pytest.skip(str(error))
