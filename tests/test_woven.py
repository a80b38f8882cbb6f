"""Transposes of few lines: woven into one, an element of each in turn, and taken apart again."""

from __future__ import annotations

from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import gpukern as gk
import oracle
from arrays import DTYPES, limited, on_device, places, ran, random, sanitized

LEAST = 1 << 10  # bytes, of which eight times are woven

# Lines and columns: blocks that are whole and not, and one more or less than a block has. Of more
# than 16 lines none that tiles take by vectors, which are better then.
MATRICES = [(2, 40_001), (3, 20_000), (3, 10_924), (3, 16_357), (4, 16_384), (5, 13_107), (7, 9001)]
MATRICES += [(12, 4099), (11, 600_000), (2, 16_385), (13, 2600), (16, 4099), (33, 1021)]
MANY_LINES = [(46, 3707), (64, 513), (63, 700)]  # of bytes alone


@pytest.fixture(autouse=True)
def of_less_bytes():
    """Lines of arrays that take no minutes on the simulator."""
    with limited(tiled_copy=LEAST):
        yield


WAYS = {("woven",), ("woven_vectors",)}


def assert_woven(
    there: Any, axes: tuple[int, ...], expected: Any, what: str, ways: Any = WAYS
) -> None:
    got, variants = ran(lambda: gk.transpose(there, axes))
    assert tuple(variants) in ways, what
    oracle.assert_same(got.to_host(), expected, what)


CASES = [(*matrix, dtype) for matrix in MATRICES for dtype in ("uint8", "float16")]
CASES += [(*matrix, "uint8") for matrix in MANY_LINES]


@pytest.mark.parametrize(("lines", "columns", "dtype"), CASES)
def test_lines_are_woven_and_taken_apart(lines, columns, dtype):
    a = random((lines, columns), DTYPES[dtype], 1)
    for way, one in (("woven", a), ("taken apart", np.ascontiguousarray(a.T))):
        assert_woven(gk.to_device(one), (1, 0), np.ascontiguousarray(one.T), way)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
@pytest.mark.parametrize("lines", [2, 3, 4])
def test_very_few_lines_by_vectors(lines, dtype):
    """From a vector to blocks of them, and what fills none behind; where lines lie on vectors."""
    each = 16 // DTYPES[dtype].itemsize
    block = 256 * each
    least = (1 << 15) // lines + each
    for columns in (
        least,
        least + 1,
        33 * block,
        33 * block + each - 1,
        32 * block - 31 * each + 1,
    ):
        pitch = -(-columns // each) * each
        held = random((lines, pitch), DTYPES[dtype], columns)
        apart, there = held[:, :columns], gk.to_device(held)[:, :columns]
        woven = np.ascontiguousarray(apart.T)
        assert_woven(there, (1, 0), woven, f"{columns} woven", {("woven_vectors",)})
        out, taken = gk.to_device(np.zeros_like(held)), gk.to_device(woven)
        target = out[:, :columns]
        _, variants = ran(lambda taken=taken, target=target: gk.transpose(taken, out=target))
        assert variants == ["woven_vectors"], f"{columns} taken apart"
        oracle.assert_same(out.to_host()[:, :columns], apart, f"{columns} taken apart")
        assert not out.to_host()[:, columns:].any(), f"{columns}: written behind the lines"


def test_what_tiles_are_better_for():
    """Lines that vectors take, and that are many, long, short or of wide elements."""
    others = [((32, 4096), "uint8"), ((24, 4096), "float16"), ((65, 3001), "uint8")]
    others += [((41, 3001), "float16"), ((3, 20_001), "float32"), ((40, 101), "uint8")]
    for shape, dtype in others:
        a = random((9, *shape), DTYPES[dtype], 6)
        for one in (a, np.ascontiguousarray(a.transpose(0, 2, 1))):
            there = gk.to_device(one)
            got, variants = ran(lambda there=there: gk.transpose(there, (0, 2, 1)))
            assert tuple(variants) not in WAYS, (shape, dtype)
            expected = np.ascontiguousarray(one.transpose(0, 2, 1))
            oracle.assert_same(got.to_host(), expected, f"{shape} {dtype}")


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_wherever_lines_begin(dtype):
    """At any place within a word, each line at another one, and results as well."""
    for lines in (2, 3, 5, 37):
        held = random((lines, 20_011), DTYPES[dtype], 2)
        there = gk.to_device(held)
        for begin in range(5):
            for short in range(3):
                part = np.s_[:, begin : 20_011 - short]
                expected = np.ascontiguousarray(held[part].T)
                assert_woven(there[part], (1, 0), expected, f"from {begin}, {short} less")
        back = gk.to_device(np.ascontiguousarray(held.T))
        for begin in range(5):
            expected = np.ascontiguousarray(held[:, begin:])
            assert_woven(back[begin:], (1, 0), expected, f"apart from row {begin} on")


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
@pytest.mark.parametrize("shape", [(5, 3, 40, 211), (7, 4, 9000), (2, 2, 3, 5001)])
def test_stacks_of_images(shape, dtype):
    """Channels last and first."""
    a = random(shape, DTYPES[dtype], 3)
    last = (0, *range(2, a.ndim), 1)
    first = (0, a.ndim - 1, *range(1, a.ndim - 1))
    if a.ndim == 4 and shape[1] != 3:
        last, first = (0, 1, 3, 2), (0, 1, 3, 2)
    held = np.ascontiguousarray(a.transpose(last))
    assert_woven(gk.to_device(a), last, held, "channels last")
    assert_woven(gk.to_device(held), first, np.ascontiguousarray(held.transpose(first)), "first")


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_places_on_the_device(dtype):
    """Nothing is written beside the result, wherever it lies, and nothing read beside the array."""
    for shape in ((3, 15_003), (15_003, 3)):
        a = random(shape, DTYPES[dtype], 4)
        turned = np.ascontiguousarray(a.T)
        targets = dict(places(turned.shape, a.dtype))
        for name, place in places(shape, a.dtype):
            source, target = on_device(place, a), on_device(targets[name])
            gk.transpose(source.view, out=target.view)
            assert target.holds(turned), name


@hypothesis.given(st.data())
@hypothesis.settings(max_examples=15 if sanitized() else 60, deadline=None)
def test_any_few_lines(data):
    lines, columns = data.draw(st.integers(2, 64)), data.draw(st.integers(600, 9_000))
    stack = data.draw(st.integers(1, 3))
    dtype = DTYPES[data.draw(st.sampled_from(["uint8", "float16"]))]
    begin, gap = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4))
    weaves = data.draw(st.booleans())
    inner = (lines, columns + begin + gap) if weaves else (columns + begin + gap, lines)
    held = random((stack, *inner), dtype, 5)
    part = np.s_[:, :, begin : begin + columns] if weaves else np.s_[:, begin : begin + columns]
    expected = np.ascontiguousarray(held[part].transpose(0, 2, 1))
    got, _ = ran(lambda: gk.transpose(gk.to_device(held)[part], (0, 2, 1)))
    oracle.assert_same(got.to_host(), expected, f"{held.shape} {part}")
