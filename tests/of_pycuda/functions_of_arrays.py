"""cumath, and operations of arrays of two dtypes."""

import numpy as np
import pycuda.autoinit  # noqa: F401
from pycuda import cumath, gpuarray

COMPLEX = ["exp", "log", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"]
REAL = [*COMPLEX, "fabs", "ceil", "floor", "asin", "acos", "atan"]
OTHERWISE = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
random = np.random.default_rng(0)


def same(got, expected, tolerance=1e-5):
    """The same dtype, and nearly the same values."""
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    np.testing.assert_allclose(got.get(), expected, rtol=tolerance, atol=tolerance)


reals = random.uniform(0.05, 0.95, 100).astype(np.float32)
for name in REAL:
    same(
        getattr(cumath, name)(gpuarray.to_gpu(reals)), getattr(np, OTHERWISE.get(name, name))(reals)
    )
complexes = (random.uniform(-0.5, 0.5, 100) + 1j * random.uniform(-1, 1, 100)).astype(np.complex64)
for name in COMPLEX:
    same(getattr(cumath, name)(gpuarray.to_gpu(complexes)), getattr(np, name)(complexes), 3e-5)

many, few = (9 * random.random(100)).astype(np.float32), random.random(100).astype(np.float32)
same(cumath.fmod(gpuarray.to_gpu(many), gpuarray.to_gpu(few)), np.fmod(many, few), 1e-4)
significands, exponents = cumath.frexp(gpuarray.to_gpu(many))
same(significands, np.frexp(many)[0])
same(exponents, np.frexp(many)[1].astype(np.float32))
same(cumath.ldexp(significands, exponents), many)
for got, expected in zip(cumath.modf(gpuarray.to_gpu(many)), np.modf(many), strict=True):
    same(got, expected)

whole, real = gpuarray.arange(6, dtype=np.int32), gpuarray.arange(6, dtype=np.float32)
numbers = np.arange(6)
same(whole + real, numbers.astype(np.int32) + numbers.astype(np.float32))
same(whole / 4, numbers / 4)
same(np.float32(2) * real, np.float32(2) * numbers.astype(np.float32))
out = gpuarray.empty_like(real)
assert cumath.exp(real, out=out) is out
same(out, np.exp(numbers.astype(np.float32)))
