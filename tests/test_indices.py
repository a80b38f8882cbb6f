"""Where the greatest and the least element of a long row of narrow values stand: a thread looks at
a whole vector before it looks at its elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpukern as gk
from arrays import DTYPES, is_float, limits, random

REAL = ("float16", "bfloat16")
NARROW = (*REAL, "uint8", "int8", "uint16", "int16", "bool")


def ends(a: Any) -> tuple[Any, Any]:
    """The least and the greatest value that there is."""
    return (-np.inf, np.inf) if is_float(a.dtype) else limits(a.dtype)


def with_at(a: Any, values: dict[int, float]) -> Any:
    """Those values at those places."""
    changed = a.copy()
    for place, value in values.items():
        changed[place] = value
    return changed


ROWS = {
    "random": lambda a: a,
    "ascending": lambda a: np.sort(a.astype("float64")).astype(a.dtype),
    "descending": lambda a: np.sort(a.astype("float64"))[::-1].astype(a.dtype),
    "all the same": lambda a: np.full_like(a, a[7]),
    "all the least": lambda a: np.full_like(a, ends(a)[0]),
    "all the greatest": lambda a: np.full_like(a, ends(a)[1]),
}
ROWS_OF_REAL = {
    "zeros among negative ones": lambda a: with_at(-abs(a), {40_017: -0.0, 50_001: 0.0}),
    "zeros among positive ones": lambda a: with_at(abs(a), {40_017: 0.0, 50_001: -0.0}),
    "infinities": lambda a: with_at(a, {33_333: np.inf, 60_002: np.inf, 100: -np.inf}),
    "a NaN": lambda a: with_at(a, {44_444: np.nan, 69_999: np.nan}),
    "a NaN whose sign is set": lambda a: with_at(a, {44_443: -np.nan, 3_000: np.inf}),
}


@pytest.mark.parametrize(
    ("dtype", "case"),
    [(d, c) for d in NARROW for c in (ROWS | ROWS_OF_REAL if d in REAL else ROWS)],
)
def test_indices_of_long_rows(dtype, case):
    a = (ROWS | ROWS_OF_REAL)[case](random((70_003,), DTYPES[dtype], 3))
    wide = a.astype("float64") if dtype in REAL else a
    for first in (0, 1):
        there = gk.to_device(a)[first:]
        assert int(gk.argmax(there).to_host()) == np.argmax(wide[first:])
        assert int(gk.argmin(there).to_host()) == np.argmin(wide[first:])
