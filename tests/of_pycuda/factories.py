"""ElementwiseKernel, ReductionKernel, scans, random numbers and what tools have."""

import gc

import numpy as np
import pycuda.autoinit  # noqa: F401
from pycuda import gpuarray
from pycuda.characterize import sizeof
from pycuda.curandom import XORWOWRandomNumberGenerator, rand
from pycuda.elementwise import ElementwiseKernel
from pycuda.reduction import ReductionKernel
from pycuda.scan import ExclusiveScanKernel, InclusiveScanKernel
from pycuda.tools import DeviceMemoryPool, dtype_to_ctype, get_or_register_dtype

COUNT = 70_003
random = np.random.default_rng(0)
whole = random.integers(-5, 6, COUNT).astype(np.int32)
real = random.random(COUNT, np.float32)
a, x = gpuarray.to_gpu(whole), gpuarray.to_gpu(real)

polynomial = ElementwiseKernel(
    "float by, float *x, float *z",
    "z[i] = by * squared(x[i]) + 1",
    "polynomial",
    preamble="__device__ float squared(float x) { return x * x; }",
)
z = gpuarray.zeros_like(x)
polynomial(3, x, z)
np.testing.assert_allclose(z.get(), 3 * real * real + 1, rtol=1e-5)
z.fill(0)
polynomial(3, x, z, slice=slice(1, None, 2))
assert (z.get()[::2] == 0).all() and (z.get()[1::2] > 0).all()
z.fill(0)
polynomial(3, x, z, range=slice(9, 2, -3))
assert np.flatnonzero(z.get()).tolist() == [3, 6, 9]

dot = ReductionKernel(
    np.float64, neutral="0", reduce_expr="a+b", map_expr="(double)x[i]*y[i]",
    arguments="float *x, float *y",
)  # fmt: skip
assert abs(dot(x, x).get() - (real.astype(float) ** 2).sum()) < 1e-6 * COUNT
largest = ReductionKernel(np.float32, "-1e30f", "fmaxf(a,b)", arguments="const float *x")
assert largest(x).get() == real.max()
assert largest(x, slice=slice(3, 50, 7)).get() == real[3:50:7].max()

sums = np.cumsum(whole, dtype=np.int32)
assert (InclusiveScanKernel(np.int32, "a+b")(a.copy()).get() == sums).all()
exclusive = ExclusiveScanKernel(np.int32, "a+b", 0)(a.copy())
assert (exclusive.get() == np.concatenate([[0], sums[:-1]])).all()
peaks = InclusiveScanKernel(np.int32, "max(a,b)")
assert (peaks(a, "new").get() == np.maximum.accumulate(whole)).all()
assert (a.get() == whole).all()
for length in (1, 2, 255, 256, 257, 700):
    expected = np.maximum.accumulate(whole[:length])
    assert (peaks(gpuarray.to_gpu(whole[:length])).get() == expected).all()

uniform = rand((300, 100)).get()
assert uniform.dtype == np.float32 and uniform.min() >= 0 and uniform.max() < 1
assert abs(uniform.mean() - 0.5) < 0.01 and abs(uniform.std() - 12**-0.5) < 0.01


def seed(count):
    """The same seed, whoever asks."""
    return gpuarray.to_gpu(np.full(count, 42, np.int32))


one, two = XORWOWRandomNumberGenerator(seed), XORWOWRandomNumberGenerator(seed)
normal = one.gen_normal(50_000, np.float32).get()
assert (normal == two.gen_normal(50_000, np.float32).get()).all()
assert abs(normal.mean()) < 0.02 and abs(normal.std() - 1) < 0.02 and np.isfinite(normal).all()
doubles = one.gen_uniform((7, 9), np.float64).get()
assert len(np.unique(doubles)) == 63 and (doubles >= 0).all() and (doubles < 1).all()
assert (two.gen_uniform((7, 9), np.float64).get() == doubles).all(), "each call goes on"
assert len(np.unique(two.gen_uniform(1000, np.uint32).get())) > 990
logs = np.log(one.gen_log_normal(50_000, np.float32, 0.5, 0.25).get())
assert abs(logs.mean() - 0.5) < 0.01 and abs(logs.std() - 0.25) < 0.01

pool = DeviceMemoryPool()
pooled = gpuarray.to_gpu(real, pool.allocate)
assert pool.active_blocks == 1 and pool.active_bytes == real.nbytes
assert ((pooled + 1).get() == real + 1).all()
del pooled
gc.collect()
assert pool.active_blocks <= 1
pool.free_held()

assert sizeof("Q", "struct Q { char a; long b; };") == 16
pair = np.dtype([("n", np.int32), ("by", np.float32)])
get_or_register_dtype("MyPair", pair)
assert dtype_to_ctype(pair) == "MyPair"
pairs = gpuarray.to_gpu(np.array([(1, 2.0), (3, 4.0)], pair))
products = gpuarray.zeros(2, np.float32)
ElementwiseKernel(
    "MyPair *p, float *o", "o[i] = p[i].n * p[i].by", preamble="struct MyPair { int n; float by; };"
)(pairs, products)
assert products.get().tolist() == [2, 12]
