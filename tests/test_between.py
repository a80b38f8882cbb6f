"""Short rows of real numbers that lie between vectors: the bits that other kernels have of the same
rows, wherever they begin and however they end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, Array, beside, random, with_special
from fakes import NEEDS_FAKE

# Of so many rows, of elements: lanes from two to a warp's; what is left behind the last vector, a
# vector, a step, a step less one element and all steps that are loaded at a time.
ROWS: dict[str, tuple[tuple[int, int], ...]] = {
    "float32": (
        (70_001, 37),
        (33_001, 66),
        (33_001, 129),
        (9_001, 385),
        (601, 129),
        (601, 513),
        (601, 527),
        (601, 1021),
        (601, 1027),
    ),
    "float64": ((70_001, 19), (9_001, 129), (601, 257), (601, 511)),
    "float16": ((70_001, 75), (33_001, 133), (9_001, 777), (601, 257), (601, 769), (601, 1551)),
    "bfloat16": ((70_001, 81), (601, 2047)),
}
OPERATIONS = ("sum", "mean", "norm", "prod", "sum in float64")


def reduced(op: str, a: Any) -> Array:
    """Along the last axis; of halves in float32, or a rounding would hide the order."""
    if op == "norm":
        return np.asarray(gk.norm(a, a.ndim - 1))
    if op == "sum in float64":
        return np.asarray(gk.sum(a, a.ndim - 1, dtype="float64"))
    halves = a.dtype.itemsize == 2 and op == "sum"
    return np.asarray(getattr(gk, op)(a, a.ndim - 1, **({"dtype": "float32"} if halves else {})))


def values(rows: int, length: int, dtype: str, op: str) -> Array:
    a = random((rows, length), DTYPES[dtype], 5)
    if op == "prod":  # of factors near 1, which neither overflow nor vanish
        a = (1 + a.astype("float64") / 64).astype(a.dtype)
    return with_special(a, 11 * length + 3, 40)


def every_second(a: Array) -> Any:
    """The same rows on the device, where a kernel finds each element."""
    apart = np.zeros((len(a), 2 * a.shape[1]), a.dtype)
    apart[:, ::2] = a
    return gk.to_device(apart)[:, ::2]


def with_gaps(a: Array, before: int, behind: int) -> Any:
    wide = np.full((len(a), before + a.shape[1] + behind), 7, a.dtype)
    wide[:, before : before + a.shape[1]] = a
    return gk.to_device(wide)[:, before : before + a.shape[1]]


@pytest.mark.costly(4)
@pytest.mark.parametrize(
    ("op", "dtype", "rows", "length"),
    [("sum", dtype, *shape) for dtype, shapes in ROWS.items() for shape in shapes]
    + [(op, dtype, *ROWS[dtype][-1]) for op in OPERATIONS[1:] for dtype in ROWS],
)
def test_the_bits_are_those_of_any_lie(op, dtype, rows, length, by_vectors):
    a = values(rows, length, dtype, op)
    got = reduced(op, beside(a, 0))
    found = reduced(op, every_second(a))
    oracle.assert_same(got, found, "found one by one")
    for begin in range(1, 16 // a.itemsize):
        oracle.assert_same(reduced(op, beside(a, begin)), found, f"{begin} elements off")
    for before, behind in ((3, 0), (0, 1), (2, 7)):
        gaps = with_gaps(a, before, behind)
        oracle.assert_same(reduced(op, gaps), found, f"{before} in front, {behind} behind")


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("dtype", ROWS)
def test_they_are_right(op, dtype, by_vectors):
    rows, length = ROWS[dtype][-1]
    a = random((rows, length), DTYPES[dtype], 3)
    wide = a.astype("float64")
    if op == "prod":
        wide = 1 + wide / 64
        a = wide.astype(a.dtype)
        wide = a.astype("float64")
    want = {
        "sum": wide.sum(1),
        "sum in float64": wide.sum(1),
        "mean": wide.mean(1),
        "norm": np.sqrt((wide * wide).sum(1)),
        "prod": wide.prod(1),
    }[op]
    got = reduced(op, beside(a, 1))
    near = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-4, "float64": 1e-12}[dtype]
    scale = np.abs(wide).sum(1) if op.startswith("sum") else np.abs(want)
    assert (np.abs(got.astype("float64") - want) <= near * np.maximum(scale, 1e-3)).all()


@pytest.mark.parametrize("length", [131, 133])
@pytest.mark.parametrize("kept", [5, 2])
def test_rows_in_groups(kept, length, by_vectors):
    """Where groups begin as far behind a vector as rows do, and where not: a warp has several."""
    a = random((8_001, 6, length), DTYPES["float32"], 2)
    there = gk.to_device(a)[:, :kept, 3:]
    want = reduced("sum", gk.to_device(np.ascontiguousarray(a[:, :kept, 3:])))
    oracle.assert_same(reduced("sum", there), want, "in groups")


@pytest.mark.parametrize("what", ["nan", "inf", "cancelling", "subnormal", "negative zeros"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_special_numbers(dtype, what, by_vectors):
    a = random((601, 1021), DTYPES[dtype], 9)
    place = np.arange(601) % 1021
    if what in ("nan", "inf"):
        a[np.arange(601), place] = np.nan if what == "nan" else np.inf
    elif what == "cancelling":
        large = 1e7 if dtype == "float32" else 1e15
        a[:, 0], a[:, -1] = large, -large
    elif what == "subnormal":
        a[...] = np.finfo(dtype).smallest_subnormal
    else:
        a[...] = -0.0
    got = reduced("sum", beside(a, 1))
    oracle.assert_same(got, reduced("sum", every_second(a)), what)
    wide = a.astype(np.longdouble).sum(1)
    if what in ("nan", "inf"):
        assert (np.isnan(got) if what == "nan" else got == np.inf).all()
    else:
        bound = 4 * np.finfo(dtype).eps * np.maximum(np.abs(wide), np.finfo(dtype).tiny)
        assert (np.abs(got - wide) <= bound + 1e-3 * (what == "cancelling")).all()


@pytest.mark.parametrize("begin", [0, 3])
def test_nothing_beside_the_results_is_written(begin):
    a = beside(random((601, 1021), DTYPES["float32"], 4), 1)
    oracle.assert_written_alone(lambda out: gk.sum(a, 1, out=out), np.asarray(gk.sum(a, 1)), begin)


@NEEDS_FAKE
def test_which_arrays_are_taken_so(right):
    """By the blocks of a launch: each has as many rows as a warp's lanes go into, eight times."""
    right(
        """
seen = (ctypes.c_uint * 7).in_dll(driver, "fake_seen_sides")
def is_taken(a, lanes, op=gk.sum):
    op(a, a.ndim - 1)
    rows = a.size // a.shape[-1]
    return seen[0] == -(-rows * lanes // 256)
halves = gk.empty((130_001, 420), "bfloat16")[:, 1:391]
rows = gk.empty((50_003, 997)), gk.empty((50_003, 391)), halves
for one, lanes in zip(rows, (16, 8, 4)):
    assert is_taken(one, lanes) and is_taken(one[1:], lanes), lanes
    assert is_taken(one, lanes, gk.norm), lanes
cut = gk.empty((5_001, 1_001))[:, 1:], gk.empty((5_001, 1_001))[:, :-4]
assert is_taken(cut[0], 32) and is_taken(cut[1], 32, gk.prod)
groups = gk.empty((1_501, 12, 998), "float16")[:, :4, :997], gk.empty((30_001, 3, 391))[:, :2]
assert is_taken(groups[0], 32) and not is_taken(groups[1], 8)
others = gk.empty((9_003, 1_000)), gk.empty((9_003, 2, 1_000))[:, 0]
assert not any(is_taken(one, 32) for one in others)
joined = gk.empty((130_001, 391), "bfloat16"), gk.empty((300_001, 59)) # are brought
assert not any(is_taken(one, lanes) for one in joined for lanes in (2, 4, 8))
assert not is_taken(rows[0], 16, gk.max) and not is_taken(gk.empty((9_003, 2_001))[:, ::2], 16)
""",
        FAKE_KERNELS=0,
    )
