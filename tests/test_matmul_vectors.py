"""matmul of a matrix and few vectors, which has kernels of its own for float dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, random

KINDS = ["float32", "float64", "float16", "bfloat16"]
# Lines and their length: one, a warp's, beyond a block's, shared by several blocks, whose rows lie
# where 16 bytes do and where they do not.
SHAPES = [(1, 8), (3, 1), (33, 40), (1100, 24), (5, 2056), (8, 1003)]
COUNTS = [1, 3, 4, 5, 16]


def product(lines, length, count, on_the_left, dtype):
    """A matrix on one side, and vectors on the other."""
    shapes = (
        ((lines, length), (length, count)) if on_the_left else ((count, length), (length, lines))
    )
    return tuple(random(shape, DTYPES[dtype], seed) for seed, shape in enumerate(shapes))


def there(values, transposed):
    """The same matrix on the device; transposed, it lies there column after column."""
    return gk.to_device(np.ascontiguousarray(values.T)).T if transposed else gk.to_device(values)


def ran(a, b, **named):
    """The variant that a product takes by default."""
    with gk.profile() as profile:
        gk.matmul(a, b, **named)
    return profile.calls[-1].variant


@pytest.mark.costly(4)
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("on_the_left", [True, False], ids=["matrix @ vectors", "vectors @ matrix"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_of_any_shape_and_lie(dtype, on_the_left, shape):
    for count in COUNTS:
        a, b = product(*shape, count, on_the_left, dtype)
        for lie in ((0, 0), (1, 0), (0, 1), (1, 1)):
            out = gk.to_device(np.full((a.shape[0] + 2, b.shape[1]), 7, a.dtype))
            gk.matmul(there(a, lie[0]), there(b, lie[1]), out=out[1:-1])
            got = out.to_host()
            assert (got[[0, -1]] == 7).all()
            oracle.assert_matmul(got[1:-1], a, b, "cublas", f"{shape} {count} {lie}")


@pytest.mark.parametrize("dtype", KINDS)
def test_few_vectors_have_kernels_of_their_own(dtype):
    matrix = gk.to_device(random((640, 128), DTYPES[dtype]))  # larger than small matrices are
    vectors = gk.to_device(random((128, 17), DTYPES[dtype]))
    by_cublas = any(row.variant == "cublas" and row.runs for row in gk.variants("matmul", dtype))
    # What the library is faster at is its own.
    many = "cublas" if by_cublas else None
    few = None if dtype == "float32" else many
    assert ran(matrix, vectors[:, 0].copy()) == (many or "vector")
    assert ran(matrix, vectors[:, :1].copy()) == (many or "vector")
    if by_cublas and dtype == "float32":
        assert ran(gk.zeros((4096, 4096)), gk.zeros(4096)) == "vector"
        assert ran(gk.zeros((2, 512)), gk.zeros((512, 640))) == "cublas", "side by side, and little"
    assert ran(matrix, vectors[:, :4].copy()) == (few or "few_vectors")
    assert ran(vectors[:, :2].copy().T, matrix.T) == (few or "few_vectors")
    assert ran(matrix, vectors[:, :16].copy()) == (many or "vectors")
    assert ran(vectors[:, :5].copy().T, matrix.T) == (many or "vectors")
    assert ran(matrix, vectors) not in ("vector", "few_vectors", "vectors")
    assert ran(matrix, vectors[:, :1].copy(), variant="tiled") == "tiled"


@pytest.mark.parametrize("dtype", KINDS)
def test_the_same_bits_every_time(dtype):
    a, b = product(40, 5000, 3, True, dtype)
    there_a, there_b = gk.to_device(a), gk.to_device(b)
    first = gk.matmul(there_a, there_b).to_host()
    for _ in range(3):
        assert gk.matmul(there_a, there_b).to_host().tobytes() == first.tobytes()


@pytest.mark.parametrize("special", [np.nan, np.inf])
@pytest.mark.parametrize("transposed", [False, True])
def test_what_is_not_finite_spoils_its_line_alone(special, transposed):
    a, b = product(70, 2048, 2, True, "float32")
    a[33, 1999] = special
    got = gk.matmul(there(a, transposed), gk.to_device(b)).to_host()
    assert (~np.isfinite(got)).any(axis=1).nonzero()[0].tolist() == [33]
    b[5] = 0.0
    a[33, 1999], a[44, 5] = 0.0, special
    got = gk.matmul(there(a, transposed), gk.to_device(b)).to_host()
    assert np.isnan(got).all(axis=1).nonzero()[0].tolist() == [44]
