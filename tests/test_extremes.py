"""The greatest and the least of values of one byte or two: by columns, by rows, and of views. They
are in the order of their bits once the sign is made good: -0 before +0, and NaN wins both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpukern as gk
from arrays import DTYPES

NAN = 1 << 20  # its rank

SHORT = [name for name, dtype in DTYPES.items() if dtype.itemsize <= 2]


def every_value(name: str) -> Any:
    """Each bit pattern of the dtype, once, in an order that tells nothing."""
    size = DTYPES[name].itemsize
    bits = np.arange(2 if name == "bool" else 256**size, dtype=f"uint{8 * size}")
    return np.random.default_rng(5).permutation(bits).view(DTYPES[name])


def ranked(values: Any) -> Any:
    """Whole numbers in the order of the values, from which these can be told again."""
    if values.dtype.kind in "iub":
        return values.astype(np.int64)
    bits = values.view(np.uint16).astype(np.int64)
    ranks = np.where(bits < 0x8000, bits, 0x7FFF - bits)
    return np.where(np.isnan(values.astype(np.float32)), NAN, ranks)


def right(values: Any, op: str, axis: int, got: Any) -> None:
    """Bit for bit, but for those of NaN."""
    ranks, found = (
        np.where(x == NAN, x if op == "max" else -x, x) for x in map(ranked, (values, got))
    )
    assert got.dtype == values.dtype
    assert np.array_equal(found, getattr(ranks, op)(axis)), (op, axis)


def table(name: str, rows: int, columns: int) -> Any:
    """Values by chance; of halves few are NaN, or every result would be."""
    values = every_value(name)
    values = values[ranked(values) < NAN]
    rng = np.random.default_rng(rows)
    made = values[rng.integers(0, len(values), (rows, columns))]
    if made.dtype.kind not in "iub":
        made[rng.integers(0, rows, 3), rng.integers(0, columns, 3)] = -np.nan
    return made


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("name", SHORT)
def test_of_two_values(name, op):
    """Each with a neighbour by chance, in columns, in rows, and in columns that lie apart."""
    values = every_value(name)
    values = np.resize(values, max(len(values), 4096))
    two = np.stack((values, values[np.random.default_rng(1).permutation(len(values))]))
    right(two, op, 0, getattr(gk, op)(gk.to_device(two), 0).to_host())
    apart = getattr(gk, op)(gk.to_device(two)[:, ::2], 0)
    right(two[:, ::2], op, 0, apart.to_host())
    pairs = np.ascontiguousarray(two.T)
    right(pairs, op, 1, getattr(gk, op)(gk.to_device(pairs), 1).to_host())


@pytest.mark.usefixtures("by_vectors")
@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("size", [(37, 301), (530, 64), (3, 900), (2100, 5), (64, 3000)])
def test_of_many_values(name, op, size):
    values = table(name, *size)
    there = gk.to_device(values)
    for part in (np.s_[:], np.s_[:, 1:], np.s_[::2, :-1], np.s_[:, ::2]):
        for axis in (0, 1):
            right(values[part], op, axis, getattr(gk, op)(there[part], axis).to_host())


@pytest.mark.usefixtures("by_vectors")
@pytest.mark.parametrize("name", SHORT)
def test_of_values_that_are_the_least(name):
    """Where all are the lowest that there is, or of halves the infinity below zero."""
    values = every_value(name)
    least = values[np.argmin(np.where(ranked(values) == NAN, 0, ranked(values)))]
    for size in ((700, 40), (3, 2000), (90, 3)):
        all_least = np.full(size, least)
        for axis in (0, 1):
            right(all_least, "max", axis, gk.max(gk.to_device(all_least), axis).to_host())
