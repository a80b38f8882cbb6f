"""GPUArray's operations against NumPy's, for the dtype that the command line names."""

import sys

import numpy as np
import pycuda.autoinit  # noqa: F401
from pycuda import gpuarray

DTYPE = np.dtype(sys.argv[1])
random = np.random.default_rng(0)


def same(got, expected):
    """The same shape and dtype, and nearly the same values."""
    expected = np.asarray(expected)
    assert got.shape == expected.shape and got.dtype == expected.dtype, (got.dtype, expected.dtype)
    np.testing.assert_allclose(got.get(), expected, rtol=1e-5, atol=1e-5)


def values():
    """Whole numbers, so that sums in any order are exact."""
    numbers = random.integers(1, 9, (5, 7)).astype(DTYPE)
    if DTYPE.kind == "c":
        numbers += 1j * random.integers(1, 9, (5, 7)).astype(DTYPE)
    return numbers


x, y = values(), values()
a, b = gpuarray.to_gpu(x), gpuarray.to_gpu(y)

same(a + b, x + y)
same(a - b, x - y)
same(a * b, x * y)
same(2 * a, 2 * x)
same(9 - a, 9 - x)
same(a / b, x / y)
same(a**2, x**2)
same(-a, -x)
same(abs(a), abs(x))
same(a == b, (x == y).astype(DTYPE))
same(a.T + b.T, (x + y).T)
same(a[1:4, ::2] + 1, x[1:4, ::2] + 1)
same(a + gpuarray.sum(b), x + y.sum(dtype=DTYPE))
same(a.mul_add(2, b, 3), 2 * x + 3 * y)
same(a.astype(np.complex128), x.astype(np.complex128))

same(gpuarray.sum(a), x.sum(dtype=DTYPE))
same(gpuarray.dot(a, b), (x * y).sum(dtype=DTYPE))
same(gpuarray.any(a), np.bool_(True))
same(a.all(), np.bool_(True))
same(gpuarray.logical_and(a, b), np.ones((5, 7), bool))
same(gpuarray.where(a - a, a, b), y)

indices = random.integers(0, 35, 9).astype(np.int32)
same(gpuarray.take(b, gpuarray.to_gpu(indices)), y.ravel()[indices])
same(gpuarray.subset_sum(gpuarray.to_gpu(indices), b), y.ravel()[indices].sum(dtype=DTYPE))

a += 1
a *= b
a -= b
x = (x + 1) * y - y
same(a, x.astype(DTYPE))
same(a.fill(5), np.full((5, 7), 5, DTYPE))
same(gpuarray.ones_like(b), np.ones((5, 7), DTYPE))

if DTYPE.kind == "c":
    same(b.real, y.real)
    same(b.imag, y.imag)
    same(b.conj(), y.conj())
else:
    same(gpuarray.max(b), y.max())
    same(gpuarray.min(b), y.min())
    same(gpuarray.maximum(a, b), np.maximum(5, y))
    same(gpuarray.minimum(a, b), np.minimum(5, y))
    same(b > 4, (y > 4).astype(DTYPE))
    same(gpuarray.if_positive(b - b, a, b), y)

same(gpuarray.zeros(0, DTYPE) + 1, np.zeros(0, DTYPE))
same(gpuarray.sum(gpuarray.zeros(0, DTYPE)), np.zeros((), DTYPE))
long = gpuarray.ones(1_100_003, DTYPE)
assert gpuarray.sum(long).get() == 1_100_003

try:
    gpuarray.take(b, gpuarray.to_gpu(np.array([0, 99])))
except IndexError as error:
    assert "the indices go from 0 to 99, of 35 elements" in str(error), error
else:
    raise AssertionError("an index beyond the end")
