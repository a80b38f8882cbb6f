"""``gpukern.compile`` where there is no GPU: users' kernels on the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

import gpukern as gk
from gpukern.machine import libraries
from simulated import AT_ONCE, ON_THE_SIMULATOR

pytestmark = ON_THE_SIMULATOR

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


VARIABLES = """
__constant__ float table[4];
__constant__ float other[2];
template <class T> __global__ void saxpy(T a, const T *x, T *y) {
    y[threadIdx.x] += a * x[threadIdx.x];
}
template <class T> __global__ void looked(T *y) { y[threadIdx.x] = table[threadIdx.x]; }
__global__ void plain(float *y) { y[threadIdx.x] = table[threadIdx.x]; }
"""


def test_variables_beside_templates_that_do_not_use_them(kept, tmp_path):
    values, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    for first in (True, False):
        module = gk.compile(VARIABLES)
        with pytest.raises(ValueError, match=r"^symbol: source.cu has no variable 'nope'; it has"):
            module.symbol("nope")
        if first:
            module["saxpy<float>"](1, 4, 1.0, values, y)
        module.symbol("table")[...] = values
        with pytest.raises(ValueError, match=r"^symbol: source.cu has no variable 'nope'; it has"):
            module.symbol("nope")
        module["saxpy<double>"]
        module.plain(1, 4, y)
        np.testing.assert_array_equal(y, values)
        own = r"^symbol: looked<float> is compiled apart from source.cu, with a table of its own; "
        with pytest.raises(ValueError, match=own + r"compile\(..., names=\['looked<float>'\]\)"):
            module["looked<float>"]
    module = gk.compile(VARIABLES)
    module["looked<float>"](1, 4, y)
    assert module.symbol("other").shape == (2,) and not y.any()
    with pytest.raises(ValueError, match=own):
        module.symbol("table")


def test_what_is_not_read_may_use_every_variable(kept, tmp_path):
    (tmp_path / "mine.cuh").write_text("__device__ float first() { return table[0]; }")
    text = (
        "__constant__ float table[4];\n{}template <class T> __global__ void k(T *x) {{ *x = {}; }}"
    )
    folder = [f"-I{tmp_path}"]
    for source, options in [
        (text.format('#include "mine.cuh"\n', "first()"), folder),
        (text.format("#include <mine.cuh>\n", "first()"), folder),
        (text.format("", "MINE"), ["-DMINE=table[0]"]),
    ]:
        module = gk.compile(source, options)
        module["k<float>"]
        with pytest.raises(ValueError, match="k<float> is compiled apart"):
            module.symbol("table")
    module = gk.compile(text.format("#include <cuda_fp16.h>\n#include <math.h>\n", "1"), ["-DN=3"])
    module["k<float>"]
    assert module.symbol("table").shape == (4,)


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


def test_blocks_that_no_launch_takes_are_not_asked_about(right):
    kernel = right.saxpy
    for block, words in (
        ("x", "block has to be a whole number"),
        (0, "block is 0"),
        ((1, 2, 3, 4), "one to three of them"),
        (5000, "5000 threads, and the device takes 1024"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            kernel.occupancy(block)
    for shared, words in (
        ("x", "shared is a number of bytes"),
        (-1, "whole and from 0, not -1"),
        (10**9, "shared is 1000000000 bytes, and a block of this kernel may have 4"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            kernel.occupancy(256, shared=shared)
        with pytest.raises((TypeError, ValueError), match=words):
            kernel.suggest_block(shared=shared)


TAKEN = {
    "float": "float32",
    "double": "float64",
    "__half": "float16",
    "__nv_bfloat16": "bfloat16",
    "int": "int32",
    "unsigned": "uint32",
    "short": "int16",
    "char": "int8 or uint8",
    "signed char": "int8",
    "unsigned long long": "uint64",
    "bool": "bool",
    "float *": "uint64, as addresses",
    "Pair": "structures of 8 bytes",
}


def test_what_each_pointer_takes_is_said():
    kernels = [f"__global__ void f{i}({one} *a) {{}}" for i, one in enumerate(TAKEN)]
    head = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\nstruct Pair { int a; float b; };\n"
    module = gk.compile(head + "\n".join(kernels))
    for i, (one, taken) in enumerate(TAKEN.items()):
        wrong = np.zeros(3, np.float32 if one == "double" else np.float64)
        with pytest.raises(TypeError) as caught:
            module[f"f{i}"](1, 1, wrong)
        said = str(caught.value)
        assert said.startswith(f"f{i}: "), said
        assert taken in said, (one, said)
        assert str(wrong.dtype) in said, (one, said)
