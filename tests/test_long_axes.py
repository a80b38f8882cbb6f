"""Rows and columns of one matrix, as many and as long as make plans change: against NumPy, and with
the same bits wherever the elements lie."""

from __future__ import annotations

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, beside, random, with_special

# Rows and bytes of a row, of which the columns are taken.
COLUMNS = {
    "in blocks twice as wide": (67, 515_308),
    "in blocks four times as wide": (65, 840_004),
    "by few vectors": (9, 1_000_032),
    "short, by vectors of halves": (33, 200_000),
    "short, by vectors": (40, 640_016),
    "short, in between": (40, 640_012),
    "whole, of many rows": (1_900, 3_216),
}
# The same, of which the rows are.
ROWS = {
    "one a block": (120, 80_004),
    "one a block of two that could have it": (250, 100_016),
    "ragged, one a warp": (8_300, 2_604),
    "of two lanes for four": (8_300, 640),
    "one a warp, long": (1_520, 26_404),
}


@pytest.mark.parametrize("case", COLUMNS)
@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        ("sum", "float32"),
        ("max", "float32"),
        ("argmax", "float32"),
        ("sum", "float16"),
        ("max", "uint8"),
        ("sum", "float64"),
    ],
)
def test_columns(op, dtype, case):
    rows, width = COLUMNS[case]
    check(op, dtype, (rows, width // DTYPES[dtype].itemsize), 0)


@pytest.mark.parametrize("case", ROWS)
@pytest.mark.parametrize(
    ("op", "dtype"),
    [("sum", "float32"), ("argmax", "float32"), ("sum", "float16"), ("max", "uint8")],
)
def test_rows(op, dtype, case):
    rows, width = ROWS[case]
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
