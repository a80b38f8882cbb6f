"""Rows and columns of one matrix, as many and as long as make plans change: against NumPy, and with
the same bits wherever the elements lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, beside, random, with_special

# Rows, bytes of a row, of which the columns are taken, and what is taken so.
COLUMNS = {
    "in blocks twice as wide": (
        67,
        515_308,
        "sum float32",
        "argmax float32",
        "sum float16",
        "argmax float16",
    ),
    "in blocks four times as wide": (65, 840_004, "sum float32", "sum float64"),
    "few rows of vectors": (9, 1_000_032, "max float32", "sum float16"),
    "short, of halves by vectors": (33, 200_000, "sum float16", "argmax float16"),
    "short, of words by vectors": (40, 640_016, "sum float32", "argmax float32"),
    "short, of words in between": (40, 800_012, "max float32", "sum float32"),
    "short, of bytes": (17, 120_000, "max uint8", "sum uint8"),
    "short, of bytes in between": (17, 530_001, "max uint8"),
    "short, of doubles": (40, 200_000, "sum float64", "max float64"),
    "by pieces of two words": (333, 40_008, "sum float32", "max float32", "sum float16"),
    "whole, of many rows": (1_900, 3_216, "sum float32", "max float16"),
}
# The same, of which the rows are.
ROWS = {
    "one a block": (120, 80_004, "sum float32", "argmax float32", "sum float16"),
    "one a block of two that could have it": (250, 100_016, "sum float32", "max uint8"),
    "ragged, one a warp": (8_300, 2_604, "sum float32", "max uint8", "max float16"),
    "ragged halves, one a warp": (600, 2_602, "sum float16", "max float16"),
    "of two lanes for four": (8_300, 640, "sum float32", "sum float16"),
    "one a warp, long": (1_520, 26_404, "sum float32", "argmax float32"),
}


def each(cases: dict[str, Any]) -> list[Any]:
    return [
        pytest.param(*work.split(), rows, width, id=f"{name}: {work}")
        for name, (rows, width, *works) in cases.items()
        for work in works
    ]


@pytest.mark.costly(3)
@pytest.mark.parametrize(("op", "dtype", "rows", "width"), each(COLUMNS))
def test_columns(op, dtype, rows, width):
    check(op, dtype, (rows, width // DTYPES[dtype].itemsize), 0)


@pytest.mark.costly(2)
@pytest.mark.parametrize(("op", "dtype", "rows", "width"), each(ROWS))
def test_rows(op, dtype, rows, width):
    check(op, dtype, (rows, width // DTYPES[dtype].itemsize), 1)


def check(op: str, dtype: str, shape: tuple[int, int], axis: int) -> None:
    held = with_special(random(shape, DTYPES[dtype], 6), 11, 300)
    reduce = getattr(gk, op)
    got = np.asarray(reduce(gk.to_device(held), axis))
    oracle.assert_along(op, held, axis, got)
    pitched = gk.to_device(np.pad(held, ((0, 0), (0, 5))))[:, : shape[1]]
    turned = gk.to_device(np.ascontiguousarray(held.T)).T
    for what, other in (("between", beside(held, 1)), ("pitched", pitched), ("turned", turned)):
        oracle.assert_same(np.asarray(reduce(other, axis)), got, what)
