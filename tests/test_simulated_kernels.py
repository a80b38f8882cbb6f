"""``gpukern.compile`` where there is no GPU: users' kernels on the simulator, and what it finds."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16

import gpukern as gk
from gpukern import _core
from gpukern.kernels import assembly, compiling, host
from gpukern.machine import libraries
from waiting import join_all

pytestmark = [
    pytest.mark.skipif(_core.backend() != "sim", reason="this process has a GPU"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ is here"),
    pytest.mark.usefixtures("kept"),
]


# Lazily a launch is looked at when somebody waits for it, which may be another call.
AT_ONCE = pytest.mark.skipif(
    os.environ.get("GPUKERN_SIM_LAZY", "0") != "0", reason="launches run later"
)


RIGHT = r"""
#include <stdio.h>
#include <math.h>
#define N 64
__global__ void saxpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
__global__ void doublify(float *a) { a[threadIdx.x + threadIdx.y * blockDim.x] *= 2; }
template <class T, int by> __global__ void scale(T *x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] *= by;
}
namespace outer { namespace inner {
    __device__ float twice(float x) { return 2 * x; }
    __global__ void deep(float *x) { x[threadIdx.x] = twice(x[threadIdx.x]); }
} }
__constant__ float table[4] = {1, 2, 3, 4};
__device__ int calls;
__global__ void looked_up(float *x) {
    x[threadIdx.x] = table[threadIdx.x % 4];
    atomicAdd(&calls, 1);
}
__global__ void how_often(int *n) { *n = calls; }
__global__ void reversed(const int *x, int *y) {
    extern __shared__ int s[];
    s[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    y[blockIdx.x * blockDim.x + threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
__global__ void transposed(const float *x, float *y) {
    __shared__ float tile[16][17];
    tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * 16 + threadIdx.x];
    __syncthreads();
    y[threadIdx.y * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
__global__ void summed(const float *x, float *sum, int n) {
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k >>= 1) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) atomicAdd(sum, s[0]);
}
__global__ void warp_summed(const int *x, int *sums) {
    int v = x[threadIdx.x];
    for (int k = 16; k; k /= 2) v += __shfl_down_sync(0xffffffff, v, k);
    if (threadIdx.x % warpSize == 0) sums[threadIdx.x / 32] = v;
}
__global__ void within_warps(const int *x, int *y) {
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncwarp();
    y[threadIdx.x] = s[threadIdx.x ^ 1];
}
__global__ void histogram(const unsigned char *x, unsigned *counts, int n) {
    __shared__ unsigned mine[16];
    if (threadIdx.x < 16) mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&mine[x[i] % 16], 1u);
    __syncthreads();
    if (threadIdx.x < 16) counts[threadIdx.x] = mine[threadIdx.x];
}
__global__ void same_flag(const float *x, int *any) {
    __shared__ bool found;
    if (threadIdx.x == 0) found = false;
    __syncthreads();
    if (x[threadIdx.x] > 5) found = true;
    __syncthreads();
    if (threadIdx.x == 0) *any = found;
}
__global__ void locked(int *sum) {
    __shared__ int lock, s;
    if (threadIdx.x == 0) lock = s = 0;
    __syncthreads();
    bool done = false;
    while (!done)
        if (atomicCAS(&lock, 0, 1) == 0) {
            s = s + 1;
            __threadfence_block();
            atomicExch(&lock, 0);
            done = true;
        }
    __syncthreads();
    if (threadIdx.x == 0) *sum = s;
}
__global__ void math(const float *x, double *y) {
    float a = x[0];
    y[0] = sqrt(a) + rsqrtf(a) + powf(a, 2) + __expf(a) + fminf(a, 3) + max(1, 2) + sinpif(0.5f);
    y[1] = __float2int_rn(2.5f) + __double2int_rz(-2.7) + (isnan(a) ? 9 : 0) + abs(-3) + fabs(-1.5);
    y[2] = M_PI + (INFINITY > 1) + __popc(7u) + __clz(1) + fma(2.0, 3.0, 4.0) + pow(2.0, 3);
}
__global__ void vectors(const float4 *x, float2 *y, dim3 d) {
    float4 v = x[threadIdx.x];
    y[threadIdx.x] = make_float2(v.x + v.y + d.y, v.z + v.w);
}
__global__ void said(int n) { printf("thread %d of %s: %.1f\n", threadIdx.x, "four", n + 0.5); }
__global__ void timed(long long *t) { long long before = clock64(); t[0] = clock() >= before; }
struct Pair { float x; double y; };
__global__ void structures(Pair one, Pair *all) { all[threadIdx.x].y = one.y + all[threadIdx.x].x; }
"""


@pytest.fixture(scope="module")
def right(kept):
    """Kernels that are right."""
    return gk.compile(RIGHT, name="right.cu")


def test_plain_kernels_and_templates(right):
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    right.saxpy.over(1000)(2.0, x, y, 1000)
    np.testing.assert_array_equal(y, 1 + 2 * x)
    a = np.random.default_rng(1).random((4, 4), np.float32)
    expected = 2 * a
    right.doublify(1, (4, 4), a)
    np.testing.assert_array_equal(a, expected)
    for kernel, dtype in (("scale<double, 3>", np.float64), ("scale<unsigned char, 3>", np.uint8)):
        x = np.arange(50, dtype=dtype)
        right[kernel](2, 8, x, 50)
        np.testing.assert_array_equal(x, (3 * np.arange(50)).astype(dtype))
    right["outer::inner::deep"](1, 50, y[:50].copy())
    with pytest.raises(ValueError, match="is a template"):
        right["scale"]
    with pytest.raises(ValueError, match="has no kernel 'absent'; it has saxpy"):
        right["absent"]


def test_pairs_of_halves_and_the_constants_of_math(kept):
    module = gk.compile("""
    #include <cuda_bf16.h>
    #include <cuda_fp16.h>
    #include <math_constants.h>
    __global__ void twice(const __half2 *x, half2 *y) {
        y[threadIdx.x] = __hadd2(x[threadIdx.x], x[threadIdx.x]);
    }
    __global__ void same(const __nv_bfloat162 *x, __nv_bfloat162 *y) {
        y[threadIdx.x] = x[threadIdx.x];
    }
    __global__ void constants(float *f, double *d) {
        f[0] = CUDART_PI_F, f[1] = CUDART_INF_F, f[2] = CUDART_NAN_F, f[3] = CUDART_MAX_NORMAL_F;
        d[0] = CUDART_PI, d[1] = CUDART_INF, d[2] = CUDART_NAN, d[3] = CUDART_L2E;
    }
    """)
    x = np.arange(64, dtype=np.float16)
    y = np.zeros_like(x)
    module.twice(1, 32, x, y)
    np.testing.assert_array_equal(y, 2 * x)
    with pytest.raises(TypeError, match="takes an array of float16"):
        module.twice(1, 32, x.astype(np.float32), y)
    with pytest.raises(ValueError, match="multiple of 4"):
        module.twice(1, 31, gk.to_device(x)[1:-1], y)
    b, c = np.arange(64).astype(bfloat16), np.zeros(64, bfloat16)
    module.same(1, 32, b, c)
    assert b.tobytes() == c.tobytes()
    f, d = np.zeros(4, np.float32), np.zeros(4)
    module.constants(1, 1, f, d)
    np.testing.assert_array_equal(f, np.float32([np.pi, np.inf, np.nan, np.finfo("f4").max]))
    np.testing.assert_array_equal(d, [np.pi, np.inf, np.nan, 1 / np.log(2)])


def test_arrays_on_the_device_and_views(right):
    x = gk.to_device(np.arange(100, dtype=np.float32))
    y = gk.to_device(np.zeros(100, np.float32))
    right.saxpy.over(100)(1.0, x, y, 100)
    np.testing.assert_array_equal(np.asarray(y), np.arange(100))


def test_constants_and_variables_of_the_module_last(right):
    x, n = np.zeros(8, np.float32), np.zeros(1, np.int32)
    right.how_often(1, 1, n)
    before = n[0]
    right.looked_up(1, 8, x)
    right.how_often(1, 1, n)
    assert n[0] == before + 8
    np.testing.assert_array_equal(x, [1, 2, 3, 4] * 2)


def test_shared_memory_and_barriers(right):
    x = np.arange(4 * 64, dtype=np.int32)
    y = np.zeros_like(x)
    right.reversed(4, 64, x, y, shared=64 * 4)
    np.testing.assert_array_equal(y, x.reshape(4, 64)[:, ::-1].ravel())
    a = np.arange(256, dtype=np.float32).reshape(16, 16)
    b = np.zeros_like(a)
    right.transposed(1, (16, 16), a, b)
    np.testing.assert_array_equal(b, a.T)
    z, total = np.ones(10_000, np.float32), np.zeros(1, np.float32)
    right.summed(40, 256, z, total, z.size)
    assert total[0] == 10_000
    n = np.zeros(1, np.int32)
    for value, found in ((9.0, 1), (1.0, 0)):
        right.same_flag(1, 64, np.full(64, value, np.float32), n)
        assert n[0] == found
    right.locked(1, 64, n)
    assert n[0] == 64


def test_warps_and_atomics(right):
    x = np.arange(64, dtype=np.int32)
    sums = np.zeros(2, np.int32)
    right.warp_summed(1, 64, x, sums)
    np.testing.assert_array_equal(sums, [x[:32].sum(), x[32:].sum()])
    y = np.zeros_like(x)
    right.within_warps(1, 64, x, y)
    np.testing.assert_array_equal(y, x ^ 1)
    letters = np.random.default_rng(1).integers(0, 256, 5000, np.uint8)
    counts = np.zeros(16, np.uint32)
    right.histogram(1, 128, letters, counts, letters.size)
    np.testing.assert_array_equal(counts, np.bincount(letters % 16, minlength=16))


def test_math_vectors_structures_and_the_clock(right):
    y = np.zeros(3)
    right.math(1, 1, np.array([2], np.float32), y)
    expected = [
        np.sqrt(2) + 1 / np.sqrt(2) + 4 + np.exp(2) + 2 + 2 + 1,
        2 - 2 + 0 + 3 + 1.5,
        np.pi + 1 + 3 + 31 + 10 + 8,
    ]
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    x, z = np.arange(16, dtype=np.float32), np.zeros(8, np.float32)
    right.vectors(1, 4, x, z, np.array([1, 10, 1], np.uint32).tobytes())
    np.testing.assert_array_equal(z, (x.reshape(8, 2).sum(1) + [10, 0] * 4))
    t = np.zeros(1, np.int64)
    right.timed(1, 1, t)
    assert t[0] == 1
    pair = np.dtype([("x", np.float32), ("y", np.float64)], align=True)
    pairs = np.zeros(3, pair)
    pairs["x"] = [1, 2, 3]
    right.structures(1, 3, np.array((0, 5.0), pair)[()], pairs)
    np.testing.assert_array_equal(pairs["y"], [6, 7, 8])


@AT_ONCE
def test_cooperative_groups():
    module = gk.compile(
        r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__device__ int summed(cg::thread_block_tile<8> tile, int v) {
    for (int by = tile.size() / 2; by > 0; by /= 2) v += tile.shfl_down(v, by);
    return v;
}
__global__ void tiles(const int *x, int *sums, int *ranks, int *most) {
    extern __shared__ int s[];
    cg::thread_block block = cg::this_thread_block();
    int rank = block.thread_rank();
    s[rank] = x[rank];
    cg::sync(block);
    auto tile = cg::tiled_partition<8>(block);
    int v = s[block.size() - 1 - rank], sum = summed(tile, v);
    if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = sum;
    tile.sync();
    ranks[rank] = tile.thread_rank() + 100 * tile.ballot(tile.thread_rank() < 2);
    most[rank] = cg::reduce(tile, v, cg::greater<int>());
}
__global__ void missing(int *y) {
    __shared__ int s[64];
    cg::thread_block block = cg::this_thread_block();
    s[block.thread_rank()] = 1;
    if (block.thread_rank() < 7) block.sync();
}
"""
    )
    x = np.arange(64, dtype=np.int32)
    sums, ranks, most = np.zeros(8, np.int32), np.zeros(64, np.int32), np.zeros(64, np.int32)
    module.tiles(1, 64, x, sums, ranks, most, shared=256)
    rows = x[::-1].reshape(8, 8)
    np.testing.assert_array_equal(sums, rows.sum(1))
    np.testing.assert_array_equal(ranks, np.tile(np.arange(8), 8) + 300)
    np.testing.assert_array_equal(most, np.repeat(rows.max(1), 8))
    with pytest.raises(gk.CudaError, match=r"source.cu:26, which 57 of the block's 64 threads"):
        module.missing(1, 64, x)
    with pytest.raises(gk.CompileError, match="barriers of a whole grid cannot be simulated"):
        gk.compile(
            "#include <cooperative_groups.h>\n"
            "__global__ void f() { cooperative_groups::this_grid().sync(); }"
        )


RANDOM = r"""
#include <curand_kernel.h>
template <class S> __global__ void drawn(unsigned long long seed, unsigned long long sequence,
                                         unsigned long long offset, unsigned *u, float *f,
                                         double *d) {
    S state;
    curand_init(seed, sequence, offset, &state);
    for (int i = 0; i < 5; i++) u[i] = curand(&state);
    for (int i = 0; i < 3; i++) f[i] = curand_uniform(&state);
    for (int i = 3; i < 6; i++) f[i] = curand_normal(&state);
    float2 n = curand_normal2(&state);
    f[6] = n.x, f[7] = n.y, f[8] = curand_log_normal(&state, 0.5f, 2.0f);
    d[0] = curand_uniform_double(&state);
    d[1] = curand_normal_double(&state), d[2] = curand_normal_double(&state);
    double2 m = curand_normal2_double(&state);
    d[3] = m.x, d[4] = m.y;
}
__global__ void begin(curandState *states, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) curand_init(7, i, 0, &states[i]);
}
__global__ void draw(curandState *states, float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = curand_uniform(&states[i]);
}
"""
# What cuRAND's own header gives, on the host.
DRAWN = [
    (
        "drawn<curandState>",
        (0x4D2, 5, 0),
        [3732235839, 2152834071, 919474540, 1633321130, 1363217923],
        [
            0.629326463,
            0.688283563,
            0.780277371,
            0.331305593,
            0.476313472,
            1.36345506,
            0.815766335,
            0.804962456,
            10.4659128,
        ],
        [
            0.56366408276384328,
            0.47423037477429747,
            1.4724405736835309,
            -1.2327499839852234,
            0.75822495692602687,
        ],
    ),
    (
        "drawn<curandStatePhilox4_32_10_t>",
        (0x4D2, 5, 0),
        [4181881884, 3080788858, 2334630092, 3180702920, 1549596404],
        [
            0.249035731,
            0.197131708,
            0.448278606,
            -1.60174739,
            1.10226679,
            -2.35920811,
            0.733725607,
            0.142447397,
            10.1689968,
        ],
        [
            0.99461498018354177,
            1.851623372735377,
            0.73204279940173034,
            -0.47231780965683601,
            -0.72306174051975025,
        ],
    ),
    (
        "drawn<curandState>",
        (0x123456789ABCDEF, 1000003, 77),
        [401039773, 4001144442, 259081780, 490825838, 3099186242],
        [
            0.0443468876,
            0.85172087,
            0.331308931,
            1.63390613,
            -0.425839365,
            0.663655818,
            0.0300676767,
            -1.59784436,
            0.174090758,
        ],
        [
            0.85893620566361761,
            -0.16768593827494982,
            -0.67957044752314666,
            -0.13559570731975226,
            -0.59742858038549718,
        ],
    ),
    (
        "drawn<curandStatePhilox4_32_10_t>",
        (0x123456789ABCDEF, 1000003, 77),
        [3661504357, 2563466236, 1909469552, 3191427104, 4129171186],
        [
            0.602970004,
            0.329500765,
            0.646044612,
            0.813109696,
            0.555873752,
            1.0324527,
            0.0599603876,
            0.653850615,
            5.8980217,
        ],
        [
            0.29917918122373521,
            -1.7330515399518629,
            0.67277917277773991,
            -0.93384633294821295,
            0.01250983046756674,
        ],
    ),
]


@pytest.fixture(scope="module")
def random_numbers(kept):
    """Kernels that draw them."""
    return gk.compile(RANDOM)


@pytest.mark.parametrize(("kernel", "begins", "whole", "floats", "doubles"), DRAWN)
def test_random_numbers_are_curands(random_numbers, kernel, begins, whole, floats, doubles):
    u, f, d = np.zeros(5, np.uint32), np.zeros(9, np.float32), np.zeros(5)
    random_numbers[kernel](1, 1, *begins, u, f, d)
    np.testing.assert_array_equal(u, np.array(whole, np.uint32))
    np.testing.assert_allclose(f, floats, rtol=1e-5)
    np.testing.assert_allclose(d, doubles, rtol=1e-12)


def test_random_numbers_of_many_threads(random_numbers):
    states = np.zeros(3000 * 48, np.uint8)
    random_numbers.begin.over(3000)(states, 3000)
    x, y = np.zeros(3000, np.float32), np.zeros(3000, np.float32)
    random_numbers.draw.over(3000)(states, x, 3000)
    random_numbers.draw.over(3000)(states, y, 3000)
    assert len({*x, *y}) > 5900
    assert abs(x.mean() - 0.5) < 0.05
    assert abs(np.corrcoef(x, y)[0, 1]) < 0.1


@AT_ONCE
def test_printing_goes_to_pythons_output(right, capsys):
    right.said(1, 4, 3)
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == [f"thread {i} of four: 3.5" for i in range(4)]


def test_halves():
    pytest.importorskip("ml_dtypes")
    if not any((folder / "cuda_fp16.h").is_file() for folder in libraries.find_headers(None)):
        pytest.skip("CUDA's headers are not here")
    module = gk.compile(
        """#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void halves(__half *a, __nv_bfloat16 *b) {
    __shared__ __half s[2];
    if (threadIdx.x == 0) s[0] = __hadd(a[0], __float2half(0.5f));
    __syncthreads();
    a[threadIdx.x] = s[0];
    atomicAdd(&b[0], __float2bfloat16(1.0f));
}"""
    )
    import ml_dtypes

    a, b = np.ones(4, np.float16), np.ones(1, ml_dtypes.bfloat16)
    module.halves(1, 4, a, b)
    np.testing.assert_array_equal(a, np.float16(1.5))
    assert b[0] == 5


def test_what_is_known_of_a_kernel(right):
    kernel = right.saxpy
    assert kernel.signature == "saxpy(float a, const float *x, float *y, int n)"
    assert kernel.most_threads == 1024
    assert 0 < kernel.occupancy(256) <= 1
    assert kernel.suggest_block() in (256, 512, 1024)
    assert "up to 1024" in kernel.__doc__
    with pytest.raises(TypeError, match=r"saxpy: const float \*x takes an array of float32"):
        kernel(1, 1, 1.0, np.zeros(3), np.zeros(3, np.float32), 3)
    with pytest.raises(ValueError, match="takes 1024 a block"):
        kernel(1, 2048, 1.0, np.zeros(3, np.float32), np.zeros(3, np.float32), 3)
    with pytest.raises(ValueError, match="shared is 100000 bytes"):
        kernel(1, 1, 1.0, np.zeros(3, np.float32), np.zeros(3, np.float32), 3, shared=100_000)


# what is wrong ------------------------------------------------------------------------------------

BROKEN = r"""
struct Node { int value; Node *next; };
__global__ void off_by_one(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        x[i] = 1; // off_by_one
}
__global__ void reads_behind(const float *x, float *y, int n) {
    int i = threadIdx.x;
    y[i] =
        x[i + 1]; // reads_behind
}
__global__ void in_front(float *x) {
    x[(int)threadIdx.x - 1] = 1; // in_front
}
__global__ void no_bound(float *x) {
    x[blockIdx.x * blockDim.x + threadIdx.x] = 1; // no_bound
}
__global__ void stray(float *x) {
    float *far = x + (1ull << 40);
    *far = 1; // stray
}
__global__ void null_pointer(float *x) {
    x[threadIdx.x] = 1; // null_pointer
}
__global__ void missing_barrier(const float *x, float *y) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = s[63 - threadIdx.x]; // missing_barrier
}
__global__ void race_in_a_sum(const float *x, float *y) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int k = 32; k; k /= 2)
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k]; // race_in_a_sum
    y[0] = s[0];
}
__global__ void race_of_writes(float *y) {
    __shared__ int last;
    last = threadIdx.x; // race_of_writes
    __syncthreads();
    y[threadIdx.x] = last;
}
__global__ void counted_without_atomics(int *y) {
    __shared__ int n;
    if (threadIdx.x == 0) n = 0;
    __syncthreads();
    n++; // counted_without_atomics
    __syncthreads();
    y[0] = n;
}
__global__ void read_too_early(int *y) {
    __shared__ int n;
    if (threadIdx.x == 0) n = 0;
    __syncthreads();
    atomicAdd(&n, 1); // read_too_early
    y[threadIdx.x] = n; // read_too_early
}
__global__ void divergent(float *y) {
    if (threadIdx.x < 10)
        __syncthreads(); // divergent
    y[0] = 1;
}
__global__ void endless_barrier(float *y) {
    while (threadIdx.x == 0)
        __syncthreads(); // endless_barrier
}
__global__ void left_before(float *y, int n) {
    if (threadIdx.x >= n) return;
    __syncthreads(); // left_before
    y[threadIdx.x] = 1;
}
__global__ void misaligned(float *x) {
    float4 v = *(float4 *)(x + 1); // misaligned
    x[0] = v.x;
}
__global__ void uninitialised(float *y) {
    __shared__ float s[64];
    y[threadIdx.x] = s[threadIdx.x]; // uninitialised
}
__global__ void never_zeroed(int *y) {
    __shared__ int n;
    atomicAdd(&n, 1); // never_zeroed
    __syncthreads();
    y[0] = n;
}
__global__ void too_little_shared(float *y) {
    extern __shared__ float s[];
    s[threadIdx.x] = y[threadIdx.x]; // too_little_shared
}
__global__ void wrong_block(float *y) {
    __shared__ float s[32];
    s[threadIdx.x] = y[threadIdx.x]; // wrong_block
}
__global__ void by_zero(int *y) {
    y[1] = y[1] / y[0]; // by_zero
}
__global__ void wrong_mask(int *y) {
    if (threadIdx.x < 16)
        y[threadIdx.x] = __shfl_down_sync(0xffffffff, y[threadIdx.x], 1); // wrong_mask
}
__global__ void old_warp_sum(volatile float *y) {
    __shared__ volatile float s[64];
    s[threadIdx.x] = y[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) {
        s[threadIdx.x] += s[threadIdx.x + 32];
        s[threadIdx.x] += s[threadIdx.x + 16]; // old_warp_sum
    }
    y[0] = s[0];
}
__device__ void helper(float *x, int i) {
    x[i] = 1; // in_a_function
}
__global__ void in_a_function(float *x) {
    helper(x, threadIdx.x + 1);
}
template <class T> __global__ void in_a_template(T *x) {
    x[threadIdx.x + 1] = 1; // in_a_template
}
__global__ void atomic_outside(int *x) {
    atomicAdd(x + 64 + threadIdx.x, 1); // atomic_outside
}
__global__ void asserted(int *x) {
    assert(x[0] == 3); // asserted
}
__global__ void copied(char *x, int n) {
    memcpy(x, x + 60, n); // copied
}
__device__ __noinline__ int deeper(int *x, int n) {
    volatile int here[100];
    here[0] = n;
    return x[0] == 0 ? deeper(x, n + 1) + here[0] : 0;
}
__global__ void recursive(int *x) { x[1] = deeper(x, 0); }
__global__ void last_one_wins(int *x) {
    x[0] = threadIdx.x; // last_one_wins
}
__global__ void last_block_wins(int *x) {
    x[0] = blockIdx.x; // last_block_wins
}
__global__ void moved_in_place(float *x, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 63) x[i] = by + x[i + 1]; // moved_in_place
}
__global__ void barrier_of_one_block(int *x, int *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = i + 1; // barrier_of_one_block
    __syncthreads();
    y[i] = x[63 - i]; // barrier_of_one_block
}
__global__ void counted_in_global_memory(int *x) {
    x[0] = x[0] + 1; // counted_in_global_memory
}
__global__ void zeroed_by_one(int *sum) {
    if (blockIdx.x == 1 && threadIdx.x == 0) *sum = 0; // zeroed_by_one
    atomicAdd(sum, 1); // zeroed_by_one
}
__global__ void mean_too_early(int *sum, int *mean) {
    atomicAdd(sum, 1); // mean_too_early
    if (blockIdx.x == 0 && threadIdx.x == 0) *mean = *sum / 64; // mean_too_early
}
__device__ int how_many;
__global__ void counted_in_a_variable(int *x) {
    how_many++; // counted_in_a_variable
}
__global__ void flag_without_a_fence(int *x, volatile int *ready) {
    if (blockIdx.x == 0) {
        x[0] = 5; // flag_without_a_fence
        *ready = 1;
    } else {
        x[1] = x[0] + *ready; // flag_without_a_fence
    }
}
__global__ void structures_written(double2 *x) {
    x[0] = make_double2(1, threadIdx.x); // structures_written
}
__global__ void copies_written(char *x, const char *y) {
    memcpy(x, y + threadIdx.x, 12); // copies_written
}
"""
BROKEN = BROKEN.replace("struct Node", "#include <assert.h>\nstruct Node", 1)

FLOATS, INTS = np.ones(64, np.float32), np.zeros(64, np.int32)
CASES = {
    "off_by_one": ((2, 64, FLOATS, 64), {}, "it writes 4 bytes out of bounds: 0 bytes behind"),
    "reads_behind": ((1, 64, FLOATS, FLOATS.copy(), 64), {}, "it reads 4 bytes out of bounds"),
    "in_front": ((1, 64, FLOATS), {}, "4 bytes in front of an array of 256"),
    "no_bound": ((2, 48, FLOATS), {}, "it writes 4 bytes out of bounds"),
    "stray": ((1, 1, FLOATS), {}, "which is in no array"),
    "null_pointer": ((1, 4, None), {}, "null pointer"),
    "missing_barrier": ((1, 64, FLOATS, FLOATS.copy()), {}, "__syncthreads()"),
    "race_in_a_sum": ((1, 64, FLOATS, FLOATS.copy()), {}, "a race: it"),
    "race_of_writes": ((1, 64, FLOATS), {}, "a race: it writes shared memory that thread ("),
    "counted_without_atomics": ((1, 64, INTS), {}, "a race: it reads"),
    "read_too_early": ((1, 64, INTS), {}, "a race: it"),
    "divergent": ((1, 64, FLOATS), {}, "which 54 of the block's 64 threads do not reach"),
    "endless_barrier": ((1, 64, FLOATS), {}, "which 63 of the block's 64 threads do not reach"),
    "left_before": ((1, 64, FLOATS, 50), {}, "has returned"),
    "misaligned": ((1, 1, FLOATS), {}, "misaligned"),
    "uninitialised": ((1, 64, FLOATS), {}, "that no thread has written since the block began"),
    "never_zeroed": ((1, 64, INTS), {}, "it changes shared memory that no thread has written"),
    "too_little_shared": (
        (1, 64, FLOATS),
        {"shared": 128},
        "of dynamic shared memory, and the launch gives 128 (shared=)",
    ),
    "wrong_block": ((1, 64, FLOATS), {}, "is out of bounds of 'float [32]'"),
    "by_zero": ((1, 1, INTS), {}, "division by zero"),
    "wrong_mask": ((1, 64, INTS), {}, "names lane"),
    "old_warp_sum": ((1, 64, FLOATS), {}, "a race: it"),
    "in_a_function": ((1, 64, FLOATS), {}, "it writes 4 bytes out of bounds"),
    "in_a_template<float>": ((1, 64, FLOATS), {}, "it writes 4 bytes out of bounds"),
    "atomic_outside": ((1, 1, INTS), {}, "it changes 4 bytes out of bounds"),
    "asserted": ((1, 1, INTS), {}, "assert(x[0] == 3) does not hold"),
    "copied": ((1, 1, np.zeros(64, np.uint8), 32), {}, "it reads 32 bytes out of bounds"),
    "last_one_wins": ((1, 64, INTS), {}, "has written something else to at broken.cu:"),
    "last_block_wins": ((3, 1, INTS), {}, "and the blocks of a launch come in no order"),
    "moved_in_place": ((1, 64, FLOATS, 2.0), {}, "with no __syncthreads() between"),
    "barrier_of_one_block": ((2, 32, INTS, INTS.copy()), {}, "the blocks of a launch come in no"),
    "counted_in_global_memory": ((2, 1, INTS), {}, "byte 0 of an array of 256 that thread (0, 0,"),
    "zeroed_by_one": ((2, 8, INTS), {}, "a race: it"),
    "mean_too_early": ((2, 32, INTS, INTS.copy()), {}, "a race: it"),
    "counted_in_a_variable": ((1, 8, INTS), {}, "a variable of the module that thread ("),
    "flag_without_a_fence": ((2, 1, INTS, INTS.copy()), {}, "a race: it"),
    "structures_written": ((1, 32, np.zeros(4)), {}, "has written something else to"),
    "copies_written": (
        (1, 4, np.zeros(64, np.uint8), np.arange(64, dtype=np.uint8)),
        {},
        "has written something else to",
    ),
}
# What is wrong is in two lines.
OF_TWO_LINES = ["barrier_of_one_block", "zeroed_by_one", "mean_too_early", "flag_without_a_fence"]


@pytest.fixture(scope="module")
def broken(kept):
    """Kernels as learners write them."""
    return gk.compile(BROKEN, name="broken.cu")


@AT_ONCE
@pytest.mark.parametrize("name", CASES)
def test_a_broken_kernel_is_found_with_its_line(broken, name):
    arguments, named, words = CASES[name]
    plain = name.partition("<")[0]
    lines = [at for at, line in enumerate(BROKEN.splitlines(), 1) if line.endswith(f"// {plain}")]
    before = [np.copy(one) for one in arguments if isinstance(one, np.ndarray)]
    with pytest.raises(gk.CudaError) as caught:
        broken[name](*arguments, **named)
    said = str(caught.value)
    assert said.startswith(f"{name}: block (")
    assert words in said, said
    assert any(f"broken.cu:{line}" in said for line in lines), (said, lines)
    assert "thread (" in said
    after = [one for one in arguments if isinstance(one, np.ndarray)]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


@AT_ONCE
@pytest.mark.parametrize("name", OF_TWO_LINES)
def test_a_race_on_global_memory_names_both_lines(broken, name):
    lines = [at for at, line in enumerate(BROKEN.splitlines(), 1) if line.endswith(f"// {name}")]
    with pytest.raises(gk.CudaError) as caught:
        broken[name](*CASES[name][0])
    assert len(lines) == 2
    assert all(f"broken.cu:{line}" in str(caught.value) for line in lines), caught.value
    assert ") of block (" in str(caught.value)


HONEST = r"""
__global__ void flags(const float *x, int *found, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 5) *found = 1;
}
__global__ void bytes(char *x, short *y, char *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = i;
    y[i] = x[i] + 1;
    memcpy(z + 3 * i, x + i, 1);
    z[3 * i + 1] = z[3 * i + 2] = z[3 * i] + 1;
}
__global__ void in_turns(int *x, int *y) { // barriers order what a block has in global memory
    int i = threadIdx.x, n = blockDim.x;
    x += blockIdx.x * n;
    for (int step = 0; step < 5; step++) {
        int next = x[(i + 1) % n];
        __syncthreads();
        x[i] = next + 1;
        __syncthreads();
    }
    y[blockIdx.x * n + i] = x[n - 1 - i];
}
__global__ void in_warps(int *x) {
    int lane = threadIdx.x % 32, *mine = x + threadIdx.x / 32 * 32;
    int next = mine[(lane + 1) % 32];
    __syncwarp();
    mine[lane] = next;
    __syncwarp();
    mine[lane] += mine[lane] > 0 ? 1 : 0;
}
__device__ unsigned finished;
__global__ void last_block_sums(const int *x, int *parts, int *sum) {
    __shared__ bool is_last;
    __shared__ int s;
    if (threadIdx.x == 0) s = 0;
    __syncthreads();
    atomicAdd(&s, x[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = s;
        __threadfence();
        is_last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        int total = 0;
        for (int i = 0; i < gridDim.x; i++) total += parts[i];
        *sum = total;
    }
}
__device__ int lock;
__global__ void locked_over_blocks(int *sum) {
    if (threadIdx.x) return;
    while (atomicCAS(&lock, 0, 1)) ;
    __threadfence();
    *sum = *sum + 1;
    __threadfence();
    atomicExch(&lock, 0);
}
__global__ void most(const int *x, int *best) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] > *(volatile int *)best) atomicMax(best, x[i]);
}
__global__ void all_the_same(int *x, int *y) {
    for (int i = 0; i < 4; i++) x[i] = 7 + i;
    __syncthreads();
    y[blockIdx.x * blockDim.x + threadIdx.x] = x[threadIdx.x % 4];
}
"""


@AT_ONCE
def test_honest_kernels_are_not_accused():
    module = gk.compile(HONEST)
    n = 64 * 256  # more than one core's share
    for _ in range(3):
        x, found = np.arange(n, dtype=np.float32), np.zeros(1, np.int32)
        module.flags(64, 256, x, found, n)
        assert found[0] == 1
        a, b, c = np.zeros(n, np.int8), np.zeros(n, np.int16), np.zeros(3 * n, np.int8)
        module.bytes(64, 256, a, b, c)
        np.testing.assert_array_equal(a, np.arange(n).astype(np.int8))
        x, y = np.zeros(n, np.int32), np.zeros(n, np.int32)
        module.in_turns(64, 256, x, y)
        assert set(y) == {5}
        x = np.tile(np.arange(32, dtype=np.int32), 8)
        module.in_warps(1, 256, x)
        x, parts, total = (
            np.arange(n, dtype=np.int32),
            np.zeros(64, np.int32),
            np.zeros(1, np.int32),
        )
        module.last_block_sums(64, 256, x, parts, total)
        assert total[0] == x.sum()
        total[0] = 0
        module.locked_over_blocks(64, 128, total)
        assert total[0] == 64
        module.most(64, 256, x, total)
        assert total[0] == n - 1
        module.all_the_same(64, 256, x[:4].copy(), y)
        np.testing.assert_array_equal(y, np.tile([7, 8, 9, 10], n // 4))


@AT_ONCE
def test_more_memory_than_is_looked_into():
    """Of a large array what is touched first is looked into, and the rest is right."""
    module = gk.compile(
        "__global__ void f(float *x, int n) {"
        "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)"
        "    x[i] = i; }"
        "__global__ void g(float *x, int n) { x[n - 1] = blockIdx.x; }"
    )
    x = np.zeros(4 << 20, np.float32)
    module.f(2048, 256, x, x.size)
    np.testing.assert_array_equal(x, np.arange(x.size))
    with pytest.raises(gk.CudaError, match="a race: it writes byte 16777212 of an array of"):
        module.g(4, 1, x, x.size)


@AT_ONCE
def test_endless_recursion_ends_the_launch(broken):
    with pytest.raises(gk.CudaError, match=r"recursive: block .* its stack is used up"):
        broken.recursive(2, 64, INTS)


@AT_ONCE
def test_the_next_launch_works_and_nothing_leaks(broken, right):
    files = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with pytest.raises(gk.CudaError):
            broken.stray(1, 1, FLOATS)
        y = np.ones(10, np.float32)
        right.saxpy.over(10)(1.0, y, y.copy(), 10)
    for _ in range(20):
        gk.compile("__global__ void f(int *a) { *a = 1; }").f(1, 1, np.zeros(1, np.int32))
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) <= files + 1


@AT_ONCE
@pytest.mark.usefixtures("control_c")
@pytest.mark.parametrize("blocks", [1, 200])
def test_control_c_ends_an_endless_loop(blocks):
    module = gk.compile(
        "__global__ void forever(int *n) { for (unsigned i = 0; *n == 0; i++) if (i == 7) i = 0; }"
        "__global__ void idle(int *n) { volatile int i = 0; while (1) i = i + 1; }"
    )
    for kernel in (module.forever, module.idle):
        stop = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        stop.start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            kernel(blocks, 64, np.zeros(1, np.int32))
        assert time.monotonic() - began < 20
        join_all(stop)


@pytest.mark.parametrize("waits", ["y[1] == 0", "atomicAdd((int *)&y[1], 0) == 0"])
def test_a_thread_that_waits_for_another_lets_it_go_on(waits, script):
    code = f"""
import gpukern as gk, numpy as np
module = gk.compile(
    "__global__ void handed(volatile int *y) {{"
    "  if (threadIdx.x == 0) {{ while ({waits}) ; y[0] = y[1]; }}"
    "  if (threadIdx.x == 1) y[1] = 7; }}"
)
y = np.zeros(2, np.int32)
module.handed(1, 2, y)
print(list(map(int, y)))
"""
    for seed in (0, 3):  # in the natural order the one that waits comes first
        done = script(code, GPUKERN_DEVICE="sim", GPUKERN_SIM_SEED=str(seed), GPUKERN_SIM_LAZY="0")
        assert done.stdout.strip() == "[7, 7]", done


# what does not compile ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("__global__ void f(float *a) {\n  a[0] = absent;\n}", 2, "'absent' was not declared"),
        ('__global__ void f(int *a) {\n  asm volatile("exit;");\n}', 2, "inline PTX (asm) cannot"),
        (
            "__global__ void f(float *a, cudaTextureObject_t t) {\n *a =\n tex2D<float>(t, 0, 1);}",
            3,
            "textures and surfaces cannot be simulated",
        ),
        ("__global__ void g() {}\n__global__ void f() {\n g<<<1, 1>>>();\n}", 3, "hint: a launch"),
        ("__global__ void f(int *a) {\n a[0] = __shfl_down(a[0], 1);\n}", 2, "__shfl_down_sync"),
        ("__global__ void f(half *a) {}", 1, "hint: #include <cuda_fp16.h> has half"),
        ("\nint main() { cudaMalloc(0, 1); }", 2, "cudaMalloc is for code on the host"),
        (
            "__global__ void f(int *a) {\n int s[5000]; for (int i = 0; i < 5000; i++) s[i] = a[i];"
            " a[0] = s[a[1]];\n}",
            3,
            "a function has 16384 bytes",
        ),
        ('#include "mine.h"', 1, 'options=["-I/its/folder"] says where mine.h is'),
    ],
)
def test_errors_show_the_users_lines(text, line, words):
    with pytest.raises(gk.CompileError) as caught:
        gk.compile(text, name="wrong.cu")
    said = str(caught.value)
    assert said.startswith("compile: wrong.cu does not compile, for ")
    assert f"wrong.cu:{line}: error: " in said
    assert words in said, said
    assert f"\n  {line} | {text.splitlines()[line - 1]}" in said
    assert "^" in said
    assert caught.value.log


def test_tensor_cores_are_refused():
    with pytest.raises(gk.CompileError, match=r"wmma.*cannot be simulated"):
        gk.compile("#include <mma.h>\n__global__ void f() {}")


def test_options_are_nvrtcs(tmp_path):
    (tmp_path / "mine.h").write_text("#define MINE 5\n")
    module = gk.compile(
        '#include "mine.h"\n__global__ void f(int *a) { a[0] = MINE + N; }',
        ["-I", str(tmp_path), "-DN=3", "-use_fast_math", "-arch=sm_90", "--std=c++14"],
    )
    a = np.zeros(1, np.int32)
    module.f(1, 1, a)
    assert a[0] == 8
    (tmp_path / "mine.h").write_text("#define MINE 6\n")
    again = gk.compile(
        '#include "mine.h"\n__global__ void f(int *a) { a[0] = MINE + N; }',
        ["-I", str(tmp_path), "-DN=3"],
    )
    again.f(1, 1, a)
    assert a[0] == 9
    with pytest.raises(gk.CompileError, match="unrecognized option --frobnicate"):
        gk.compile("__global__ void f() {}", ["--frobnicate"])


def test_a_source_from_a_file_and_what_was_compiled_for_a_gpu(tmp_path):
    (tmp_path / "own.h").write_text("__device__ int three() { return 3; }\n")
    (tmp_path / "k.cu").write_text('#include "own.h"\n__global__ void f(int *a) { *a = three(); }')
    a = np.zeros(1, np.int32)
    gk.compile(path=tmp_path / "k.cu").f(1, 1, a)
    assert a[0] == 3
    with pytest.raises(gk.CudaError, match="is compiled for a GPU"):
        gk.compile(b"\x7fELF and so on")


def test_more_shared_memory_than_a_block_has():
    module = gk.compile(
        "__global__ void f(float *a) { __shared__ float s[20000]; s[a[0] > 0] = 1; a[0] = s[1]; }"
    )
    with pytest.raises(gk.CudaError, match=r"declares 80\d\d\d bytes of shared memory"):
        module.f(1, 1, np.zeros(1, np.float32))


def test_without_a_compiler_it_says_what_to_install(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(
        gk.CudaError, match=r"looked for no-such-compiler\): apt install g\+\+ brings it"
    ):
        gk.compile("__global__ void f() {}")


def test_what_is_declared_and_not_defined():
    with pytest.raises(gk.CompileError, match=r"nowhere\(int\) is declared and nowhere defined"):
        gk.compile("__device__ int nowhere(int);__global__ void f(int *a) { *a = nowhere(1); }")


# what is kept -------------------------------------------------------------------------------------


def test_compilations_are_kept(monkeypatch):
    ran = []
    real = compiling.compile_for_simulator
    monkeypatch.setattr(compiling, "compile_for_simulator", lambda *a: ran.append(a) or real(*a))
    text = "__global__ void kept(float *a) { a[0] = 1; }"
    first = gk.compile(text)
    again = gk.compile(text)
    assert len(ran) == 1
    assert again.kept.signature == first.kept.signature
    gk.compile(text, ["-DN=1"])
    gk.compile(text + " ")
    assert len(ran) == 3


def test_processes_compile_one_source(kept):
    code = (
        "import gpukern as gk, numpy as np\n"
        "m = gk.compile('__global__ void f(int *a) { a[0] += 41; }')\n"
        "a = np.ones(1, np.int32); m.f(1, 1, a); print(a[0])"
    )
    environment = {**os.environ, "GPUKERN_DEVICE": "sim", "XDG_CACHE_HOME": str(kept)}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    assert [process.communicate(timeout=120)[0] for process in running] == [b"42\n"] * 3


def test_modules_come_and_go_and_threads_share_them():
    text = "__global__ void f(int *a) { __shared__ int s; s = VALUE; __syncthreads(); *a = s; }"
    for value in range(3):
        module = gk.compile(text, [f"-DVALUE={value}"])
        a = np.full(1, -1, np.int32)
        module.f(1, 1, a)
        assert a[0] == value
        del module
    module = gk.compile(text, ["-DVALUE=9"])
    results = []

    def work():
        for _ in range(20):
            a = np.zeros(1, np.int32)
            module.f(3, 32, a)
            results.append(int(a[0]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    join_all(*threads)
    assert results == [9] * 80


SIGNATURES = """
struct Pair { float x; double y; };
enum Kind { one, two };
__global__ void plain(const float *x, double *y, unsigned n, bool flag, size_t m, char c) {}
extern "C" __global__ void c_name(void *p, const void *q, long l, long long ll) {}
namespace outer { namespace inner {
    __global__ void __launch_bounds__(128, 2) deep(Pair *all, const Pair one, Kind kind) {}
} }
__global__ void vectors(float4 *v, const uint3 *u, float2 by, char *c, int64_t *l, float **deep,
                        double2 *d, uchar4 *e, ushort2 *f, longlong2 *g, dim3 h, char3 *i) {}
__global__ void spread(const int *const __restrict__ a, volatile float *b, short s, uint8_t t) {}
__global__ void nothing() {}
"""
LISTED = """
module = gk.compile(SIGNATURES)
found = {name: [p.numbers() for p in module[name].parameters] for name in module.kernels}
print(json.dumps(found))
"""


@pytest.mark.skipif(libraries.find_nvrtc(13000) is None, reason="NVRTC is not installed")
def test_both_compilers_tell_the_same_of_signatures(on_fake, kept):
    module = gk.compile(SIGNATURES)
    here = {name: [p.numbers() for p in module[name].parameters] for name in module.kernels}
    done = on_fake(f"SIGNATURES = {SIGNATURES!r}" + LISTED, XDG_CACHE_HOME=str(kept))
    assert json.loads(done.stdout) == json.loads(json.dumps(here))


# what is done on the way --------------------------------------------------------------------------


def test_options_are_translated():
    given = [
        "--include-path=/a",
        "-D",
        "N=2",
        "--define-macro=M",
        "-maxrregcount",
        "32",
        "-lineinfo",
    ]
    assert list(host.translated(given)) == ["-I/a", "-D", "N=2", "-DM"]
    with pytest.raises(ValueError, match="--no-such"):
        list(host.translated(["--no-such"]))


def test_dynamic_shared_memory_is_where_the_simulator_says():
    text = assembly.for_the_simulator(
        "\tleaq\ts@tlsgd(%rip), %rdi\n\tleaq\tt@tlsgd(%rip)\nt:\n", ()
    )
    block = text[text.index("gk_sim_dynamic_block:") :]
    assert re.findall(r"^(\w+):$", block, re.M) == ["gk_sim_dynamic_block", "s"]
    header = (host._HEADERS / "sim.h").read_text()
    assert "GK_SIM_MAX_SHARED = 49152" in header
    assert "GK_SIM_DYNAMIC_BYTES = GK_SIM_MAX_SHARED + 256" in header
    assert assembly.DYNAMIC_BYTES == 49152 + 256
