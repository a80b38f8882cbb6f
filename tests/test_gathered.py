"""Reductions of arrays that are no run in memory: without a copy of them, and with the bits of a
contiguous array of the same shape."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

import gpukern as gk
from arrays import DTYPES, REDUCTIONS, WAYS_TO_REDUCE, random, same_bits
from fakes import NEEDS_FAKE
from gpukern import _core

# Where elements lie: beginning anywhere, apart, backwards, turned, in lines of any length, and in
# lines of several rows, none of which need begin where a vector does.
VIEWS = {
    "from column 1 on": lambda a: a[:, 1:],
    "without the last column": lambda a: a[:, :-1],
    "every second column": lambda a: a[:, ::2],
    "every third row": lambda a: a[::3],
    "columns backwards": lambda a: a[:, ::-1],
    "rows backwards": lambda a: a[::-2],
    "transposed": lambda a: a.T,
    "a row for all": lambda a: a[:1].T[:, :1].T,
    "every second plane": lambda a: planes(a, 4)[::2],
    "three axes": lambda a: planes(a, 11)[:, 1:, :-2],
    "three axes turned": lambda a: planes(a, 11).transpose(2, 0, 1),
    "three axes that alternate": lambda a: planes(a, 6)[:, ::2],
    "four axes": lambda a: planes(a, 12).reshape(-1, 4, 3, a.shape[1])[:, 1:, :, :-3],
}
LITTLE = ((67, 70), (300, 9), (24, 5))
ALTERNATELY = ("float32", "float16", "uint8", "int32", "uint8", "float32", "float16")
LARGE = ((130, 531), (617, 190), (260, 256), (1048, 70))


def planes(a: Any, rows: int) -> Any:
    """Three axes, of so many rows each."""
    return a[: len(a) // rows * rows].reshape(-1, rows, a.shape[1])


def over(ndim: int, one: bool) -> list:
    """Axes to reduce: all that there are of one, and pairs that lie apart."""
    axes: list = [*range(ndim), None]
    return axes if one or ndim < 3 else [*axes, (0, 2), (ndim - 1, 0)]


def same_as_contiguous(op: str, view: str, sizes: Any) -> None:
    for size, name in sizes:
        if op in ("mean", "norm") and name in ("int32", "uint8"):
            name = "float64"  # noqa: PLW2901
        a = random(size, DTYPES[name], 3)
        there = VIEWS[view](gk.to_device(a))
        packed = gk.to_device(np.ascontiguousarray(VIEWS[view](a)))
        assert there.shape == packed.shape
        for axis in over(there.ndim, op.startswith("arg")):
            got, want = (getattr(gk, op)(x, axis) for x in (there, packed))
            same_bits(got.to_host(), want.to_host(), f"{op} {view} {size} {name} axis {axis}")


@pytest.mark.parametrize(
    ("dtype", "columns"), [("uint8", 8), ("int16", 3), ("float16", 2), ("float32", 2)]
)
def test_rows_of_very_few_elements(dtype, columns, by_vectors):
    """Of which a vector would be mostly padding: in a run, evenly apart, in groups, and none."""
    a = np.random.default_rng(4).integers(0, 9, (70, 11, 13)).astype(dtype)
    there = gk.to_device(a)
    run = there[:, :, :columns].copy()
    for view, rows in (
        (run, a[:, :, :columns]),
        (there[:, :, :columns], a[:, :, :columns]),
        (there[:, 2:-1, 1 : columns + 1], a[:, 2:-1, 1 : columns + 1]),
        (run[:0], a[:0, :, :columns]),
    ):
        for op in ("sum", "max", "argmax", "min", "argmin"):
            got = getattr(gk, op)(view, 2).to_host()
            assert np.array_equal(got, getattr(np, op)(rows, 2)), (op, rows.shape)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8", "int32", "bool"])
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("outer", [1, 3])
def test_narrow_columns(dtype, columns, outer):
    """Of very many rows, contiguous and apart."""
    held = random((outer, 30_001, columns + 1), DTYPES[dtype], 5)
    there = gk.to_device(held)
    for op in ("sum", "max", "argmax"):
        if op == "sum" and dtype == "bool":
            continue
        for part in (np.s_[:, :-1, :-1], np.s_[:, 1::2, 1:], np.s_[:1, :9, :-1]):
            packed = gk.to_device(np.ascontiguousarray(held[part]))
            got, want = (getattr(gk, op)(x, 1).to_host() for x in (there[part], packed))
            same_bits(got, want, f"{op} {part}")
            if op != "sum":
                assert np.array_equal(want, getattr(held[part], op)(1))


@pytest.mark.costly(3)
@pytest.mark.usefixtures("by_vectors")
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8"])
@pytest.mark.parametrize("length", [48, 96, 301, 2000, 9001])
def test_rows_in_groups(dtype, length):
    """Runs that lie evenly in groups that lie evenly, also where all but the groups are aligned."""
    rows = 40_000 // length
    held = random((5, rows + 3, length + 16), DTYPES[dtype], 5)
    there = gk.to_device(held)
    for op in ("sum", "min", "argmax"):
        for part in (np.s_[:, :-1, :length], np.s_[:, 2:, 1:-15], np.s_[::2, :-1, 16:]):
            want = getattr(gk, op)(gk.to_device(np.ascontiguousarray(held[part])), 2)
            same_bits(getattr(gk, op)(there[part], 2).to_host(), want.to_host(), f"{op} {part}")


@pytest.mark.usefixtures("by_vectors")
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize(("runs", "run"), [(2, 4097), (3, 4096)])
def test_rows_of_long_runs(dtype, runs, run):
    """Which end anywhere within a vector of the row, the last one at the array's own end too."""
    run = run * 4 // DTYPES[dtype].itemsize + run % 2  # as long as it has to be for a look each
    held = random((66, runs, run + 3), DTYPES[dtype], run)  # fewer results would be copied
    there = gk.to_device(held)
    for part in (np.s_[:, :, 3:], np.s_[:, :, 1:-1], np.s_[:, ::-1, :-3]):
        want = gk.sum(gk.to_device(np.ascontiguousarray(held[part])), (1, 2))
        same_bits(gk.sum(there[part], (1, 2)).to_host(), want.to_host(), f"{part}")


@pytest.mark.parametrize("op", WAYS_TO_REDUCE)
@pytest.mark.parametrize(("rows", "length"), [(1, 5_001), (1, 40_003), (3, 17_000)])
def test_long_rows_of_elements_that_lie_evenly_apart(op, rows, length):
    """Columns of a table, say, which end at its end; forwards, backwards, and one below another."""
    for dtype, step in zip(ALTERNATELY, (3, 5, 17, -1, -3, -4, 65), strict=True):
        name = "float64" if op in ("mean", "norm") and dtype in ("int32", "uint8") else dtype
        held = random((rows, length, abs(step)), DTYPES[name], 3).reshape(rows, -1)
        part = np.s_[:, abs(step) - 1 :: abs(step)] if step > 0 else np.s_[:, ::step]
        there, packed = gk.to_device(held)[part], gk.to_device(np.ascontiguousarray(held[part]))
        got, want = (getattr(gk, op)(x, 1).to_host() for x in (there, packed))
        same_bits(got, want, f"{op} {name} {step}")


@pytest.mark.usefixtures("by_vectors")
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8"])
def test_aligned_rows_in_groups_that_are_not(dtype):
    held = random((300, 16, 97), DTYPES[dtype], 5)
    part = gk.to_device(held)[:, :, :96].transpose(1, 0, 2)
    want = gk.sum(gk.to_device(np.ascontiguousarray(held[:, :, :96].transpose(1, 0, 2))), 2)
    same_bits(gk.sum(part, 2).to_host(), want.to_host(), dtype)


@pytest.mark.costly(2)
@pytest.mark.usefixtures("by_vectors")
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8"])
@pytest.mark.parametrize(
    "shape", [(5, 7, 9, 64), (4, 6, 11, 1024), (3, 9, 30, 301), (9, 4, 3, 520), (2, 3, 50, 2049)]
)
def test_columns_of_matrices_in_groups(dtype, shape):
    """Matrices that lie evenly in groups that lie evenly, with and without gaps between rows."""
    outer, inner, rows, columns = shape
    held = random((outer, inner + 3, rows, columns + 3), DTYPES[dtype], 7)
    there = gk.to_device(held)
    cuts = (np.s_[:, 2:-1], np.s_[:, ::2], np.s_[:, 1:-2, :, :-3], np.s_[::2, :-3, :, 1:-2])
    for op in ("sum", "max", "argmax"):
        for part in cuts:
            want = getattr(gk, op)(gk.to_device(np.ascontiguousarray(held[part])), 2)
            same_bits(getattr(gk, op)(there[part], 2).to_host(), want.to_host(), f"{op} {part}")


@pytest.mark.costly(2)
@pytest.mark.usefixtures("by_vectors")
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "uint8"])
@pytest.mark.parametrize(("rows", "columns"), [(8, 16), (8, 8), (12, 32), (30, 16), (5, 64)])
def test_little_matrices_of_which_some_begin_between_vectors(dtype, rows, columns):
    """Several a block, whose rows are whole vectors, but whose places are not."""
    for gap in (1, 3, 4, 8):
        held = random((rows, 304, columns + gap), DTYPES[dtype], gap)
        for begin in (0, 1):
            part = held[:, :, begin : begin + columns].transpose(1, 0, 2)
            there = gk.to_device(held)[:, :, begin : begin + columns].transpose(1, 0, 2)
            for op in ("sum", "max", "argmax"):
                want = getattr(gk, op)(gk.to_device(np.ascontiguousarray(part)), 1)
                same_bits(getattr(gk, op)(there, 1).to_host(), want.to_host(), f"{op} {gap}")


@pytest.mark.usefixtures("by_vectors")
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8"])
@pytest.mark.parametrize(
    ("matrices", "rows", "runs", "run"),
    [(1, 75, 3, 411), (1, 700, 5, 64), (1, 90, 2, 3), (2, 140, 9, 803)],
)
def test_columns_of_runs(dtype, matrices, rows, runs, run):
    """Rows that are several runs, each wide enough to be taken by itself or not."""
    run = run * 4 // DTYPES[dtype].itemsize if matrices > 1 else run  # that lie over 4 MB
    held = random((matrices, rows, runs, run + 3), DTYPES[dtype], 6)
    there = gk.to_device(held)
    for op in ("sum", "max", "argmax"):
        for part in (np.s_[..., :-3], np.s_[..., 2:-1], np.s_[:, :, ::2, :-3]):
            want = getattr(gk, op)(gk.to_device(np.ascontiguousarray(held[part])), 1)
            same_bits(getattr(gk, op)(there[part], 1).to_host(), want.to_host(), f"{op} {part}")


# Columns of which no row is a run: lines that are cut, of whole words or not, elements that lie
# apart, of one matrix or several, in rows that lie evenly and, where two axes are reduced, not.
LISTED = {
    "lines of whole words": ((1300, 3, 20), np.s_[..., :16]),
    "lines that end within a word": ((1300, 3, 20), np.s_[..., :13]),
    "lines of no whole words": ((1300, 3, 18), np.s_[..., 1:14]),
    "lines between words": ((1300, 3, 17), np.s_[..., 1:17]),
    "short lines": ((2600, 5, 4), np.s_[..., 1:]),
    "every second column": ((700, 150), np.s_[:, ::2]),
    "columns with gaps": ((3005, 2, 128, 2), np.s_[:, :, ::2]),
    "columns backwards": ((700, 150), np.s_[:, ::-1]),
    "every third of every second row": ((901, 2, 120), np.s_[::2, :, ::3]),
    "matrices": ((7, 300, 2, 40), np.s_[:, :, :, 3:]),
    "little matrices": ((600, 12, 3, 11), np.s_[..., :-2]),
    "many axes": ((3, 70, 2, 5, 3, 7), np.s_[:, :-1, :, 1:, :, :-1]),
}


@pytest.mark.costly(4)
@pytest.mark.usefixtures("by_vectors")
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8", "int32", "bool"])
@pytest.mark.parametrize("name", LISTED)
def test_listed_columns(dtype, name):
    shape, part = LISTED[name]
    held = random(shape, DTYPES[dtype], 4)
    there, ndim = gk.to_device(held)[part], len(shape)
    packed = gk.to_device(np.ascontiguousarray(held[part]))
    for op, axes in itertools.product(("sum", "min", "argmax"), (0, 1, (0, 1), (1, 2), (0, 2))):
        if np.max(axes) >= ndim - 1 or (op == "sum" and dtype == "bool"):
            continue
        if np.ndim(axes) and op == "argmax":
            continue
        got, want = (getattr(gk, op)(x, axes).to_host() for x in (there, packed))
        same_bits(got, want, f"{op} {axes}")
        if op == "min" and dtype in ("uint8", "int32", "bool"):
            assert np.array_equal(want, held[part].min(axes))


@pytest.mark.usefixtures("by_vectors")
@pytest.mark.parametrize(("dtype", "op"), [("uint8", "max"), ("float32", "sum")])
def test_listed_rows_of_more_than_a_list(dtype, op):
    """So many matrices that each is whole, of more rows than a block lists at a time."""
    held = random((800, 33, 34, 7), DTYPES[dtype], 4)
    part = np.s_[:, :, :33, 1:6]
    got = getattr(gk, op)(gk.to_device(held)[part], (1, 2)).to_host()
    packed = gk.to_device(np.ascontiguousarray(held[part]))
    same_bits(got, getattr(gk, op)(packed, (1, 2)).to_host(), op)


def cut(text: str) -> slice:
    return slice(*(int(each) if each else None for each in text.split(":")))


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("line", [2, 3, 5, 17, 49, 131])
def test_broken_lines(dtype, line):
    """Rows of several lines that end between two vectors, few and many."""
    held = random((1501, 3, line + 2), DTYPES[dtype], 5)
    there = gk.to_device(held)
    for axes in ((0, 1, 2), (1, 2), (2,)):
        for part in (
            np.s_[:, :, 1:-1],
            np.s_[::2, :, :line],
            np.s_[:, :, line:0:-1],
            np.s_[:5, :, 1:-1],
        ):
            packed = gk.to_device(np.ascontiguousarray(held[part]))
            got, want = (gk.sum(x, axes).to_host() for x in (there[part], packed))
            same_bits(got, want, f"{axes} {part}")


# Long rows of lines that are listed: of whole vectors that are aligned and that are not, that end
# anywhere, in two and in three axes, backwards, the last one at the array's end, every second
# element, more lines than are listed at a time, and rows of several segments.
LISTED_LINES = (
    ("float32", (4001, 80), np.s_[:, 16:64], (0, 1)),
    ("float32", (4001, 81), np.s_[:, 1:65], (0, 1)),
    ("float32", (1501, 200), np.s_[:, 3:], (0, 1)),
    ("float32", (20, 70, 150), np.s_[:, 1:, 1:-2], (0, 1, 2)),
    ("float32", (7, 9, 11, 300), np.s_[:, 1:, ::2, :299], (0, 1, 2, 3)),
    ("float32", (900, 301), np.s_[::-1, 2:], (0, 1)),
    ("float32", (400, 1100), np.s_[:, 1::2], (0, 1)),
    ("float32", (64, 2000, 11), np.s_[:, :, 1:9], (1, 2)),
    ("float64", (64, 4000, 6), np.s_[:, :, 1:5], (1, 2)),
    ("float32", (3, 401, 300), np.s_[:, :, 1:298], (1, 2)),
    ("float64", (900, 140), np.s_[:, 5:], (0, 1)),
    ("float64", (700, 84), np.s_[:, 2:82], (0, 1)),
    ("float64", (300, 601), np.s_[:, ::2], (0, 1)),
    ("float16", (3001, 100), np.s_[:, 1:], (0, 1)),
    ("float16", (3001, 104), np.s_[:, 8:], (0, 1)),
    ("float16", (65, 2100, 19), np.s_[:, :, 3:], (1, 2)),
    ("bfloat16", (801, 641), np.s_[::2, :-1], (0, 1)),
)


TOTALS = {
    "sum": gk.sum,
    "mean": gk.mean,
    "norm": gk.norm,
    "prod": gk.prod,
    "in float64": partial(gk.sum, dtype="float64"),
}


@pytest.mark.costly(2)
@pytest.mark.parametrize(("name", "shape", "part", "axes"), LISTED_LINES)
@pytest.mark.parametrize("op", TOTALS)
def test_lines_of_long_rows(op, name, shape, part, axes, by_vectors):
    """With the bits of an array in order."""
    held = random(shape, DTYPES[name], 5)
    if op == "prod":
        held = np.where(held < 0, -1, 1).astype(held.dtype)
        held.flat[:: held.size // 7] *= 2
    got = TOTALS[op](gk.to_device(held)[part], axes).to_host()
    want = TOTALS[op](gk.to_device(np.ascontiguousarray(held[part])), axes).to_host()
    same_bits(got, want, f"{op} {part}")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_the_bits_are_those_of_a_contiguous_array(op, view):
    same_as_contiguous(op, view, zip(LITTLE, ALTERNATELY, strict=False))


@pytest.mark.costly(4)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("op", WAYS_TO_REDUCE)
def test_the_bits_of_a_large_array(op, view, by_vectors):
    same_as_contiguous(op, view, zip(LARGE, ALTERNATELY[len(LITTLE) :], strict=False))


# Parts of arrays of more than 4 MB: lines of one to seven elements, all of it and along rows; and
# rows of more than 528, each by a warp: several at a time, one, and one of 1025 vectors and more.
SHORT_LINES = (
    ("float64", (90_001, 7), np.s_[:, 1:5], (0, 1)),
    ("float64", (70_003, 9), np.s_[:, ::2], (0, 1)),
    ("float32", (150_001, 9), np.s_[:, :7], (0, 1)),
    ("float32", (40_001, 16, 3), np.s_[:, :, :2], (0, 1, 2)),
    ("float32", (611, 400, 9), np.s_[:, :, 1::2], (1, 2)),
    ("int32", (700_001, 5), np.s_[:, 1:3], (0, 1)),
    ("float16", (310_001, 9), np.s_[:, :7], (0, 1)),
    ("float16", (420_001, 5), np.s_[:, 1:4], (0, 1)),  # a vector has parts of three or four lines
    ("float16", (600_001, 4), np.s_[:, :2], (0, 1)),
    ("float32", (531, 2 * 180), np.s_[:, ::2], (1,)),
    ("float64", (550, 2 * 517), np.s_[:, ::2], (1,)),
    ("float16", (530, 2 * 2050), np.s_[:, 1::2], (1,)),
    ("float32", (529, 2 * 4101), np.s_[:, ::2], (1,)),
    ("float64", (529, 3203), np.s_[:, 1:3200], (1,)),
)


@pytest.mark.parametrize(("name", "shape", "part", "axes"), SHORT_LINES)
@pytest.mark.parametrize("op", ["sum", "max"])
def test_short_lines_and_long_rows_of_a_warp(op, name, shape, part, axes):
    a = random(shape, DTYPES[name], 6)
    there = gk.to_device(a)[part]
    want = getattr(gk, op)(gk.to_device(np.ascontiguousarray(a[part])), axes).to_host()
    same_bits(getattr(gk, op)(there, axes).to_host(), want, f"{op} {name} {shape} {axes}")
    wide = a[part].astype(np.longdouble)
    off = np.abs(want.astype(np.longdouble) - getattr(np, op)(wide, axes))
    if op == "max" or name == "int32":
        assert (off == 0).all()
    else:
        size = np.abs(wide).sum(axes)
        unit = np.finfo(DTYPES[name]).eps
        assert (off <= unit * (np.abs(wide.sum(axes)) + size / 64)).all()


@pytest.mark.usefixtures("walks")
@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "uint8", "bool"])
@pytest.mark.parametrize("shift", [0, 1, 3])
def test_wherever_the_memory_begins_and_steps(name, shift):
    dtype = DTYPES[name]
    for rows, pitch in ((90, 64), (1600, 64), (1601, 65), (1599, 80)):
        a = random((rows * pitch + 16,), dtype, 4)
        host = a[shift : shift + rows * pitch].reshape(rows, pitch)[:, :48]
        there = gk.to_device(a)[shift : shift + rows * pitch].reshape(rows, pitch)[:, :48]
        for axis in (0, 1, None):
            want = gk.sum(gk.to_device(np.ascontiguousarray(host)), axis).to_host()
            same_bits(gk.sum(there, axis).to_host(), want, f"{name} {shift} {pitch} {axis}")


@pytest.mark.costly(2)
@pytest.mark.parametrize(
    ("name", "variant"), [("float64", None), ("float16", None), ("float32", "single_launch")]
)
@pytest.mark.parametrize("order", list(itertools.permutations(range(3)))[1:])
def test_kept_axes_in_the_order_of_memory(order, name, variant, by_vectors):
    """From 1 MiB on: results in another order than their elements, each of the bits that it has."""
    size = {"float64": (17, 90, 101), "float16": (34, 130, 151), "float32": (34, 90, 101)}[name]
    a = random(size, DTYPES[name], 7)
    there = gk.to_device(a).transpose(order)
    packed = gk.to_device(np.ascontiguousarray(a.transpose(order)))
    for axis in (0, 1, 2, (0, 1), (0, 2), (1, 2), None):
        got, want = (gk.sum(x, axis, variant=variant).to_host() for x in (there, packed))
        same_bits(got, want, f"{name} {order} axis {axis}")
        got, want = (gk.mean(x, axis).to_host() for x in (there, packed))
        same_bits(got, want, f"mean {name} {order} axis {axis}")


# Rows that lie across memory, whose lanes take as many elements at a time as a vector has; columns
# that lie along it, whose lanes are joined one after another.
FAR_ROWS = ((7, 38_000), (30, 9000), (150, 2001), (1203, 1030))
NEAR_COLUMNS = ((33_000, 67), (270, 130, 90))


@pytest.mark.parametrize(("name", "variant"), [("float32", "single_launch"), ("float16", None)])
@pytest.mark.parametrize("size", [*FAR_ROWS, *NEAR_COLUMNS])
def test_lanes_add_up_what_lies_in_another_order(name, variant, size, by_vectors):
    """Sums that show each change of the order, with the bits of an array that lies in a run."""
    order, axis = ((1, 0), int(size in FAR_ROWS)) if len(size) == 2 else ((0, 2, 1), 1)
    size = (*size[:-1], 2 * size[-1]) if name == "float16" and size in FAR_ROWS else size
    a = random(size, DTYPES[name], 10)
    there = gk.to_device(a).transpose(order)
    packed = gk.to_device(np.ascontiguousarray(a.transpose(order)))
    got, want = (gk.sum(x, axis, variant=variant).to_host() for x in (there, packed))
    same_bits(got, want, f"{name} {size}")
    got, want = (gk.mean(x, axis).to_host() for x in (there, packed))
    same_bits(got, want, f"mean {name} {size}")


# Columns whose rows lie evenly or not, across memory or along it, more than 4 MiB of them: dtype,
# what holds them, its part, the order of axes, those that are reduced.
SHUFFLED = {
    "lists of rows": ("float32", (13, 7, 9, 89, 31), np.s_[..., :87, :], range(5), (0, 2, 3)),
    "rows of which the last ends": ("float16", (3, 1203, 700), np.s_[:, 3:, 1:], range(3), (0, 1)),
    "rows of few": ("float64", (2, 200_003, 5), np.s_[:, ::2, :3], range(3), (0, 1)),
    "across": ("float32", (2, 161, 448, 2, 4), np.s_[:], (4, 2, 0, 3, 1), (1, 2, 4)),
    "along": ("float16", (7, 6, 2, 14, 33, 55), np.s_[:], (1, 4, 2, 5, 3, 0), (2, 3, 5)),
    "along, kept ones turned": ("float32", (41, 37, 29, 31), np.s_[:], (2, 3, 1, 0), (0, 1)),
    "every second pair": ("float32", (1168, 3, 398, 7), np.s_[:, :, ::2], range(4), (0, 1)),
    "every second column": ("float32", (3, 803, 1400), np.s_[:, 3:, ::2], range(3), (0, 1)),
    "short lines": ("float32", (1201, 90, 13), np.s_[:, :, :11], range(3), (0,)),
    "short lines of bytes": ("uint8", (6001, 77, 12), np.s_[:, :, 1:], range(3), (0,)),
    "bytes": ("uint8", (16_001, 290, 2), np.s_[:, ::2], range(3), (0,)),
}


@pytest.mark.parametrize("case", SHUFFLED)
def test_tiles_of_elements_in_another_order(case, by_vectors):
    """Sums that show each change of the order, with the bits of an array that lies in a run."""
    name, size, cut, order, axes = SHUFFLED[case]
    a = random(size, DTYPES[name], 11)
    there = gk.to_device(a)[cut].transpose(tuple(order))
    packed = gk.to_device(np.ascontiguousarray(a[cut].transpose(tuple(order))))
    for variant in (None, "single_launch") if name == "float32" else (None,):
        got, want = (gk.sum(x, axes, variant=variant).to_host() for x in (there, packed))
        same_bits(got, want, f"{case} {variant}")
    for op in ("argmax", "min") if axes and len(axes) == 1 else ("min",):
        axis = axes[0] if op == "argmax" else axes
        got, want = (getattr(gk, op)(x, axis).to_host() for x in (there, packed))
        same_bits(got, want, f"{op} {case}")


@pytest.mark.parametrize("op", ["max", "min", "sum", "prod", "mean"])
@pytest.mark.parametrize(
    ("name", "size", "cut"),
    [
        ("uint8", (4001, 267), np.s_[:, 1:]),
        ("int32", (1303, 211), np.s_[:, :-3]),
        ("float16", (5003, 107), np.s_[:, 2:-3]),
        ("float64", (1203, 7, 18), np.s_[:, 1:, :-1]),
        ("int16", (70, 3, 2600), np.s_[:, :-1, :-1]),
        ("float32", (33, 9, 1100), np.s_[:, 1:, :]),
    ],
)
def test_rows_of_a_view_and_then_their_results(op, name, size, cut, by_vectors):
    """From 1 MiB on, where any order does, rows that lie apart are reduced one by one."""
    a = random(size, DTYPES[name], 8)
    there = gk.to_device(a)[cut]
    packed = gk.to_device(np.ascontiguousarray(a[cut]))
    for axis in (None, (0, 1), tuple(range(a.ndim))[1:]):
        got, want = (getattr(gk, op)(x, axis).to_host() for x in (there, packed))
        same_bits(got, want, f"{op} {name} {size} axis {axis}")


@pytest.mark.parametrize("size", [(3, 10, 2, 22, 5), (2, 4095), (8, 4096), (16, 9, 66), (4097, 2)])
@pytest.mark.parametrize("name", ["int32", "uint8", "float64"])
def test_single_results_of_little_views(size, name):
    """Of as many elements as one block finds, and of more: every second one along each axis."""
    a = random(size, DTYPES[name], 8)
    there = gk.to_device(a)
    for axis in range(len(size)):
        cut = tuple(np.s_[1::2] if i == axis else np.s_[:] for i in range(len(size)))
        for op in ("max", "min", "sum") if name != "float64" else ("max", "min"):
            got, want = getattr(gk, op)(there[cut]), getattr(np, op)(a[cut])
            assert got.to_host() == want, (op, axis)


@pytest.mark.parametrize("op", ["max", "argmin"])
def test_little_results_of_turned_axes(op):
    a = random((5, 6, 7, 8), DTYPES["bfloat16"], 9)
    for order in ((3, 1, 0, 2), (0, 2, 1, 3), (2, 3, 0, 1)):
        there = gk.to_device(a).transpose(order)
        for axis in range(4):
            want = getattr(np, op)(a.transpose(order).astype("f4"), axis)
            got = getattr(gk, op)(there, axis).to_host()
            assert np.array_equal(got.astype(want.dtype), want), (order, axis)


@pytest.mark.parametrize("op", ["argmin", "argmax", "sum"])
def test_results_that_are_more_than_a_turned_array(op):
    """These have eight bytes for two or three elements: the array is put in order, not they."""
    for dtype, held, axis in (("uint8", (3, 26_300, 80, 2), 3), ("int16", (3, 28_001, 90), 1)):
        a = np.random.default_rng(3).integers(0, 120, held).astype(dtype)
        order = (2, 0, 1, 3)[: a.ndim]
        got = getattr(gk, op)(gk.to_device(a).transpose(order), axis).to_host()
        assert np.array_equal(got, getattr(np, op)(a.transpose(order), axis)), dtype


def test_elements_that_are_not_aligned_to_their_size():
    packed = np.zeros(50, np.dtype([("tag", "u1"), ("x", "<f4")]))
    packed["x"] = np.arange(50)
    assert packed["x"].strides == (5,)
    assert gk.sum(packed["x"]) == 1225
    assert gk.argmax(packed["x"]) == 49


def test_more_axes_than_a_kernel_finds_its_way_in():
    a = random((2, 3) * 5, DTYPES["float32"], 5)
    view = np.s_[(slice(None, None, -1), slice(0, 2)) * 5]
    there = gk.to_device(a)[view]
    want = gk.sum(gk.to_device(np.ascontiguousarray(a[view])), (0, 3, 6)).to_host()
    same_bits(gk.sum(there, (0, 3, 6)).to_host(), want, "ten axes")


def test_a_result_that_lies_among_the_elements():
    a = random((40, 50), DTYPES["float32"], 6)
    for axis, where in ((1, np.s_[:, 1]), (0, np.s_[3, ::2])):
        there = gk.to_device(a)
        want = gk.sum(gk.to_device(np.ascontiguousarray(a[:, ::2])), axis).to_host()
        gk.sum(there[:, ::2], axis, out=there[where])
        same_bits(there[where].to_host(), want, f"{axis}")
        a_after = there.to_host()
        a_after[where] = a[where]
        same_bits(a_after, a, "nothing else was written")


def test_nothing_and_one():
    there = gk.zeros((5, 0, 6))
    assert gk.sum(there[::2, :, 1:], 1).to_host().tolist() == np.zeros((3, 5)).tolist()
    assert gk.max(gk.zeros((4, 4))[1:2, ::-4], 0).shape == (1,)


LAUNCHES = """
def taken(call):
    call()
    return [step[0] for step in steps(call)]
a = gk.empty((70, 1000, 300))
"""


@NEEDS_FAKE
def test_what_is_copied_first(right):
    """Turned operands whose neighbours in memory are far from one another, and no columns."""
    right(
        LAUNCHES
        + """
launches = lambda call: taken(call).count("l")
for apart in (gk.empty((3005, 2, 128, 2))[:, :, ::2], gk.empty((1001, 3, 70, 5))[..., 1:]):
    for op in (gk.sum, gk.max, gk.mean):
        assert launches(lambda: op(apart, 0)) == 1, op
for one in (gk.empty((65_600, 64), "float64").T, gk.empty((4096, 1024), "uint8").T):
    assert launches(lambda: gk.add(one, 1)) == 1, "by tiles"
ragged = gk.empty((4099, 1001), "uint8").T
assert launches(lambda: gk.add(ragged, 1)) == 2, "bytes that are no words"
assert launches(lambda: gk.add(ragged[:9], 1)) == 1, "and few"
for rows, count in ((500, 1), (2000, 2)):
    long = gk.empty((rows, 3000)).T
    assert launches(lambda: gk.sum(long)) == count, "a tile has few of a row of so many"
far = gk.empty((600, 64, 128)).transpose((1, 2, 0))
assert launches(lambda: gk.sum(far, 0)) == 2, "as it lies, and the results are put in order"
for dtype in ("uint8", "int8"):
    short = gk.empty((7, 1_250_003), dtype).T
    assert launches(lambda: gk.add(short, 1)) == 2, "bytes in rows that are no words"
    assert launches(lambda: gk.add(short[:1_000_000], 1)) == 1, "and few"
halves = gk.empty((6000, 400, 2), "float16").transpose((1, 0, 2))
assert launches(lambda: gk.add(halves, 1)) == 2, "pairs that are far from their neighbours"
""",
        FAKE_KERNELS=0,
    )


@NEEDS_FAKE
def test_which_lines_are_listed(right):
    """By their shared memory; not short ones that end between vectors, nor what has no order."""
    right(
        LAUNCHES
        + """
seen = (ctypes.c_uint * 7).in_dll(driver, "fake_seen_sides")
def is_listed(a, op=gk.sum):
    op(a)
    return seen[6] == 16384
for dtype, columns, listed in (
    ("float32", 8, True), ("float32", 127, False), ("float32", 129, True),
    ("float64", 8, True), ("float64", 63, False), ("float64", 65, True),
    ("float16", 16, True), ("float16", 63, False), ("bfloat16", 65, True),
):
    a = gk.empty((9001, columns + 3), dtype)[:, 3:]
    for op in (gk.sum, gk.mean, gk.norm, gk.prod):
        assert is_listed(a, op) == listed, (dtype, columns, op)
    assert not is_listed(a, gk.max) and not is_listed(a, gk.argmax)
second = gk.empty((901, 2101))[:, ::2]
assert is_listed(second)
others = second[:, :500], gk.empty((901, 2101), "float16")[:, ::2], gk.empty((901, 3000), "int32")
for number, one in enumerate((*others, others[2][:, 1:])):
    assert not is_listed(one), number
launches = lambda call: taken(call).count("l")
few = gk.empty((100, 1000))[:, 3:900]  # a few blocks
assert launches(lambda: gk.sum(few)) == 1
assert launches(lambda: gk.max(few)) == launches(lambda: gk.argmax(few)) == 2, "copied first"
""",
        FAKE_KERNELS=0,
    )


@NEEDS_FAKE
def test_they_are_one_launch(right):
    right(
        LAUNCHES
        + """
for view, axis in ((a[:, :, 1:], 2), (a[:, :, :-1], 0), (a[::2], (1, 2)),
                   (a[:, 1:], 1), (a[:2, :, ::2], 2), (a[0, :, ::-1], 0), (a[:2].T, 1)):
    assert taken(lambda: gk.sum(view, axis)) in (["l"], ["l", "f"]), (view.shape, axis)
assert taken(lambda: gk.sum(a, (0, 2))).count("l") == 2, "rows, and then columns of what they leave"
assert taken(lambda: gk.sum(a.transpose((1, 2, 0)), 0)).count("l") == 2, "too scattered and large"
assert taken(lambda: gk.sum(a[0, :, ::2], variant="vectorized")).count("l") == 3, "a run is needed"
assert _core.live_bytes() == 70 * 300_000 * 4
""",
        FAKE_KERNELS=0,
    )


FENCED = """
import ctypes, mmap
import numpy as np
import gpukern as gk
from gpukern import _core

PAGE = mmap.PAGESIZE
PAGES = 700
field = gk.empty((PAGES + 3) * PAGE, "uint8")
first = -field.__cuda_array_interface__["data"][0] % PAGE
address = field.__cuda_array_interface__["data"][0] + first
def fence(protection):
    for page in (0, PAGES + 1):
        where = ctypes.c_void_p(address + page * PAGE)
        assert ctypes.CDLL(None).mprotect(where, ctypes.c_size_t(PAGE), protection) == 0
pointer = ctypes.cast(address + PAGE, ctypes.POINTER(ctypes.c_uint8))
memory = np.ctypeslib.as_array(pointer, (PAGES * PAGE,))
memory[:] = np.arange(PAGES * PAGE) % 7
fence(0)
class There:
    def __init__(self, a):
        self.__cuda_array_interface__ = {**a.__array_interface__, "stream": None}
def look(dtype):
    # Bytes of 0 to 6 are small numbers, of any dtype.
    whole = memory.view(dtype)
    for before in (True, False):
        for axis, rows, columns, pitch in (
            (0, 601, 113, 113), (1, 601, 113, 113), (1, 73, 900, 1001), (0, 73, 900, 1001),
            (1, 3, 21001, 21001), (1, 8, 5, 7), (0, 280, 113, 113), (0, 280, 114, 114),
            (None, 2300, 130, 133), (None, 2300, 120, 136), (None, 2300, 136, 141),
            (0, 2, 700_001, 700_003), (0, 2, 1_400_003, 1_400_003),
        ):
            count = (rows - 1) * pitch + columns
            if count > whole.size:
                continue
            part = whole[:count] if before else whole[whole.size - count:]
            strides = (pitch * part.itemsize, part.itemsize)
            a = np.lib.stride_tricks.as_strided(part, (rows, columns), strides)
            got = gk.max(There(a), axis).to_host()
            assert np.array_equal(got, a.max(axis)), (dtype, before, axis, rows, columns)
            for lies in (a.T, a) if axis is None else (a.T,):
                got, want = gk.sum(There(lies), axis).to_host(), lies.sum(axis, dtype="float64")
                assert np.allclose(got, want, rtol=1e-3), (dtype, before, axis, lies.shape)
for vectors in (_core.limit("vectors"), 0):  # an element at a time, and by vectors
    _core.limit("vectors", vectors)
    for dtype in ("uint8", "float16", "float32", "float64"):
        look(dtype)
fence(mmap.PROT_READ | mmap.PROT_WRITE)
print("fenced in")
"""


@pytest.mark.skipif(_core.backend() != "sim", reason="compute-sanitizer is the fence on a GPU")
def test_nothing_around_an_array_is_read(script):
    """Two pages that nobody may touch, and the array right behind the one and before the other."""
    # Not lazily: arrays are turned over then before a kernel runs, the fences too.
    done = script(FENCED, GPUKERN_DEVICE="sim", GPUKERN_SIM_LAZY="0")
    assert done.stdout.strip() == "fenced in", done.stderr or done.returncode
