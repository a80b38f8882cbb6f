"""Copies by boxes that have long runs on both sides, read by vectors and written by words."""

from __future__ import annotations

import ctypes
import random as chance
from typing import Any

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, limited, on_device, on_gpu, places, ran, random
from test_simulator import C_FLAGS, PLANTED, ROOT, compile_all

LEAST = 1 << 15  # bytes; of words and wider elements boxes have half of them

# Shapes and orders of so many: runs that begin anywhere in a word, rows that lie on vectors and
# rows that do not, two axes and more, and lengths that are no multiple of a box's.
MOVES = (
    ("uint8", (7, 9001), (1, 0)),
    ("uint8", (9001, 7), (1, 0)),
    ("uint8", (15, 4096), (1, 0)),
    ("uint8", (2, 61, 149, 3), (2, 0, 3, 1)),
    ("uint8", (67, 2, 160, 8), (3, 1, 2, 0)),  # whose rows lie in groups, of which some have less
    ("float16", (13, 3001), (1, 0)),
    ("uint8", (9004, 7), (1, 0)),  # runs that are whole words
    ("uint8", (13, 3004), (1, 0)),
    ("float16", (9, 3002), (1, 0)),
    ("float16", (5, 1502, 7), (1, 2, 0)),
    ("float16", (3002, 11), (1, 0)),
    ("float16", (3, 53, 10, 31), (3, 1, 0, 2)),
    ("float16", (37, 301, 8), (2, 1, 0)),
    ("uint8", (9001, 8), (1, 0)),  # what is read at a time lies in a row
    ("uint8", (9004, 4), (1, 0)),
    ("uint8", (3, 2251, 4), (2, 0, 1)),
    ("float16", (4503, 8), (1, 0)),
    ("float16", (2, 76, 64, 6), (3, 1, 0, 2)),
    ("float32", (2003, 5), (1, 0)),
    ("float32", (40, 41, 3, 15), (3, 2, 1, 0)),
    ("float64", (1201, 5), (1, 0)),
    ("float64", (5, 301, 7, 3), (2, 0, 3, 1)),
)


@pytest.fixture(autouse=True)
def of_less_bytes():
    """Boxes for arrays that take no minutes on the simulator, also where tiles are as good."""
    with limited(boxed_copy=LEAST, tiled_copy=1 << 12):
        yield


def variants_of(there: Any, axes: tuple[int, ...]) -> list[str]:
    return ran(lambda: gk.transpose(there, axes))[1]


def assert_moved(there: Any, a: Any, axes: tuple[int, ...], what: str) -> None:
    got = gk.transpose(there, axes).to_host()
    oracle.assert_same(got, np.ascontiguousarray(a.transpose(axes)), what)


@pytest.mark.parametrize(("dtype", "shape", "axes"), MOVES)
def test_wherever_runs_begin(dtype, shape, axes):
    """The array begins at any element of a vector, and ends where its memory does."""
    count, each = int(np.prod(shape)), DTYPES[dtype].itemsize
    for first in range(0, 16 // each, 1 if each > 1 else 3):
        held = random(count + first, DTYPES[dtype], first)
        there = gk.to_device(held)[first:].reshape(shape)
        assert_moved(there, held[first:].reshape(shape), axes, f"from {first} on")
    assert "worded" in variants_of(gk.empty(shape, dtype), axes)


@pytest.mark.parametrize(("dtype", "shape", "axes"), MOVES)
def test_views(dtype, shape, axes):
    views = {
        "rows with a gap": lambda a: a[..., : shape[-1] - 3] if shape[-1] > 9 else a[3:],
        "the first axis backwards": lambda a: a[::-1],
        "every second of the first axis": lambda a: a[::2],
        "from 1 on": lambda a: a[1:],
    }
    a = random(shape, DTYPES[dtype], 1)
    for case, view in views.items():
        assert_moved(view(gk.to_device(a)), view(a), axes, case)


@pytest.mark.parametrize(("dtype", "shape", "axes"), MOVES)
def test_nothing_around_the_result_is_written(dtype, shape, axes):
    a = random(shape, DTYPES[dtype], 2)
    there = gk.to_device(a)
    for case, place in places(tuple(shape[axis] for axis in axes), a.dtype):
        out = on_device(place)
        gk.transpose(there, axes, out=out.view)
        assert out.holds(a.transpose(axes)), case


@pytest.mark.parametrize(("dtype", "shape"), [("uint8", (450_003, 11)), ("float16", (7, 390_001))])
def test_several_boxes_of_a_block(dtype, shape):
    a = np.resize(random(1 << 16, DTYPES[dtype], 8), shape)
    there = gk.to_device(a)
    assert_moved(there, a, (1, 0), "moved")
    assert variants_of(there, (1, 0)) == ["worded"]


@pytest.mark.skipif(not on_gpu(), reason="so many boxes take minutes on the simulator")
@pytest.mark.parametrize(
    ("dtype", "shape", "buffers"),
    [
        ("uint8", (17, 17_000_001), 2),
        ("float16", (11, 2_000_001), 3),
        ("int32", (3_000_001, 23), 2),
    ],
)
def test_many_boxes_of_a_block(dtype, shape, buffers):
    """So many that a block finds out several times where they begin, or has three at a time."""
    a = np.resize(random(1 << 16, DTYPES[dtype], 9), shape)
    there = gk.to_device(a)
    assert_moved(there, a, (1, 0), f"{buffers} at a time")
    assert variants_of(there, (1, 0)) == ["worded"]


def test_which_copies_go_by_boxes_of_runs():
    for dtype, shape, axes, variants in (
        ("uint8", (9001, 7), (1, 0), ["worded"]),
        ("uint8", (3, 20_000), (1, 0), ["woven_vectors"]),  # whose lines are vectors
        ("uint8", (64, 4096), (1, 0), ["vectorized"]),
        ("float16", (9001, 64), (1, 0), ["tiled_deep"]),  # columns are in few banks
        ("float16", (91, 65, 101), (1, 0, 2), ["strided"]),  # rows are the same on both sides
        ("float16", (91, 65, 129), (1, 0, 2), ["rows"]),  # and long
        ("float32", (2003, 5), (1, 0), ["worded"]),
        ("uint8", (2003, 5), (1, 0), ["strided"]),  # less than it takes
    ):
        assert variants_of(gk.empty(shape, dtype), axes) == variants, (dtype, shape)


def test_chance_draws():
    draws = chance.Random(11)
    for _ in range(60):
        ndim = draws.randint(2, 6)
        dtype = draws.choice(["uint8", "float16", "float32", "float64"])
        shape = [draws.randint(1, 9) for _ in range(ndim)]
        longest = draws.randrange(ndim)
        elements = 2 * LEAST // DTYPES[dtype].itemsize
        shape[longest] = elements * shape[longest] // int(np.prod(shape)) + draws.randint(1, 5)
        axes = tuple(draws.sample(range(ndim), ndim))
        a = random(tuple(shape), DTYPES[dtype], 3)
        assert_moved(gk.to_device(a), a, axes, f"{shape} {axes} {dtype}")


# Size, shape, and the strides of the array that is written and of the one that is read.
FAR = (
    (1, (6_197_645, 231, 3), (693, 3, 1), (3, 18_592_935, 1)),
    (2, (11_000_003, 101, 2), (404, 4, 2), (4, 44_000_012, 2)),
    (8, (3_000_017, 401, 2), (6416, 16, 8), (16, 48_000_272, 8)),
    (1, (200_000_003, 100), (100, 1), (1, 200_000_003)),  # 16 rows are too far apart
)


@pytest.fixture(scope="module")
def look_at_boxes(tmp_path_factory):
    """The launches of a copy, what lies farthest apart in their boxes, and the words in a bank."""
    folder = tmp_path_factory.mktemp("boxes")
    sources = [
        PLANTED / "run_boxes.c",
        *(ROOT / f"csrc/engine/{name}.c" for name in ("box_sides", "run_boxes", "nest", "rates")),
    ]
    flags = [*C_FLAGS, "-shared", "-fPIC", f"-I{ROOT / 'csrc'}", f"-I{ROOT / 'cuda'}"]
    compile_all([["gcc", *flags, *map(str, sources), "-o", "boxes.so"]], folder)
    library = ctypes.CDLL(str(folder / "boxes.so"))

    def look(
        size: int, shape: tuple[int, ...], to: tuple[int, ...], source: tuple[int, ...]
    ) -> tuple[int, int, int]:
        farthest, in_a_bank = ctypes.c_int64(), ctypes.c_int()
        arrays = [(ctypes.c_int64 * len(shape))(*each) for each in (shape, to, source)]
        pieces = library.look_at_boxes(
            ctypes.c_int64(size),
            len(shape),
            *arrays,
            ctypes.byref(farthest),
            ctypes.byref(in_a_bank),
        )
        return pieces, farthest.value, in_a_bank.value

    return look


@pytest.mark.parametrize(("size", "shape", "to", "source"), FAR)
def test_offsets_in_a_box_of_more_than_a_launch_takes(size, shape, to, source, look_at_boxes):
    """Of 32 bits, also in what is left for the last launch, whose boxes have other sides."""
    pieces, farthest, _ = look_at_boxes(size, shape, to, source)
    assert pieces > 1
    assert farthest < 1 << 31


# Rows that a warp reads side by side begin at one of eight places, those of vectors.
@pytest.mark.parametrize(("size", "most"), [(1, 5), (2, 4), (4, 4), (8, 4)])
@pytest.mark.parametrize("rows", [64, 67, 1024])
def test_rows_lie_in_different_banks(size, most, rows, look_at_boxes):
    """As far as they can, also of rows that are multiples of all banks."""
    for columns in (64, 512, 4096):
        to, source = (size, rows * size), (columns * size, size)
        pieces, _, in_a_bank = look_at_boxes(size, (rows, columns), to, source)
        assert (pieces, in_a_bank <= most) == (1, True), (columns, in_a_bank)


@pytest.mark.parametrize(("size", "columns"), [(1, 4), (1, 8), (2, 2), (2, 4)])
@pytest.mark.parametrize("rows", [9001, 11_514_088])
def test_elements_of_a_row_are_in_different_banks(size, columns, rows, look_at_boxes):
    """They cannot be moved apart, but lanes begin with other ones of the word that they write."""
    to, source = (size, rows * size), (columns * size, size)
    pieces, _, in_a_bank = look_at_boxes(size, (rows, columns), to, source)
    assert (pieces, in_a_bank <= 2) == (1, True), in_a_bank


@pytest.mark.parametrize(("size", "most"), [(1, 5), (2, 4), (4, 4)])
@pytest.mark.parametrize("columns", [32, 64, 128])
@pytest.mark.parametrize("rows", [49, 67])
def test_rows_of_little_matrices_lie_in_different_banks(size, most, columns, rows, look_at_boxes):
    """Of which a box has several, in one run on both sides: each row of each is one of its own."""
    bytes_of_one = rows * columns * size
    to, source = (bytes_of_one, rows * size, size), (bytes_of_one, size, columns * size)
    pieces, _, in_a_bank = look_at_boxes(size, (30_001, columns, rows), to, source)
    assert (pieces, in_a_bank <= most) == (1, True), in_a_bank
