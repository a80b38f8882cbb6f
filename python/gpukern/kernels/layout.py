"""How arrays of any strides lie, as the kernels that are made of an expression are told it."""

import struct
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

MOST_AXES = 8  # of gk::axes, in templates.py
_DIVIDED = 1 << 31  # a length that kernels divide numbers of 31 bits by has to be less
_SECTOR = 32  # bytes that the memory of a GPU is read by
_FEWEST = 8  # vectors of a row that are interlaced


class Axes(NamedTuple):
    """The steps of each array along each axis, in bytes, the last axis the one walked first."""

    lengths: list[int]
    steps: list[list[int]]

    def packed(self) -> bytes:
        """gk::axes of templates.py."""
        fill = [0] * (MOST_AXES - len(self.lengths))
        lengths = [*self.lengths, *fill]
        divisors = [_divisor(length) for length in lengths]
        steps = [step for row in self.steps for step in (*row, *fill)]
        return struct.pack(
            f"<{1 + MOST_AXES}q{2 * MOST_AXES}I{len(steps)}q",
            len(self.lengths),
            *lengths,
            *(multiplier for multiplier, _ in divisors),
            *(shift for _, shift in divisors),
            *steps,
        )


NONE = Axes([], [])


class Way(IntEnum):
    """How a thread takes the neighbours that are an array's part of a vector."""

    ONE_BY_ONE = 0
    VECTOR = 1
    SAME = 2


class Rows(NamedTuple):
    """Axes of which the last one is walked in vectors of so many elements: of neighbours, or where
    the vectors are interlaced of elements that are as far apart as a row has vectors, so that
    neighbours are those of neighbouring threads."""

    axes: Axes
    width: int
    ways: list[Way]
    is_interlaced: bool = False

    @property
    def a_row(self) -> int:
        """Vectors of a row, the last one maybe not whole."""
        return -(-self.axes.lengths[-1] // self.width)

    @property
    def vectors(self) -> int:
        """How many there are."""
        vectors = self.a_row
        for length in self.axes.lengths[:-1]:
            vectors *= length
        return vectors

    def packed(self) -> bytes:
        """gk::rows of templates.py."""
        lengths, steps = self.axes
        between, apart = (1, self.a_row) if self.is_interlaced else (self.width, 1)
        vectors = Axes(
            [*lengths[:-1], self.a_row],
            [[*row[:-1], row[-1] * between] for row in steps],
        )
        last = [row[-1] * apart for row in steps]
        return vectors.packed() + struct.pack(
            f"<{3 + 2 * len(last)}q", lengths[-1], between, apart, *last, *self.ways
        )

    def interlaced(self, sizes: Sequence[int]) -> "Rows":
        """The same where that is faster: where an array has several elements in a sector with
        others between them, each load of a warp that takes vectors of neighbours asks for all the
        sectors that the warp's vectors lie in."""
        inner = [row[-1] for row in self.axes.steps]
        shared = any(size < abs(step) < _SECTOR for size, step in zip(sizes, inner, strict=False))
        if not shared or self.width == 1 or self.a_row < _FEWEST:
            return self
        ways: list[Way] = [Way.ONE_BY_ONE if way is Way.VECTOR else way for way in self.ways]
        return self._replace(ways=ways, is_interlaced=True)


def _divisor(length: int) -> tuple[int, int]:
    """What a number is multiplied with and shifted by to be divided; as gk_divisor_of has it."""
    if not 0 < length < _DIVIDED:
        return 0, 0
    shift = (length - 1).bit_length()
    return (((1 << shift) - length) << 32) // length + 1, shift


def merged(who: str, shape: Sequence[int], steps: Sequence[Sequence[int]]) -> Axes:
    """The axes without those of length 1, and neighbours that every array walks as one made one."""
    lengths: list[int] = []
    kept: list[list[int]] = []
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        here = [row[axis] for row in steps]
        if lengths and all(
            outer == length * inner for outer, inner in zip(kept[-1], here, strict=True)
        ):
            lengths[-1] *= length
            kept[-1] = here
        else:
            lengths.append(length)
            kept.append(here)
    if len(lengths) > MOST_AXES:
        raise ValueError(
            f"{who}: the arrays lie in memory in {len(lengths)} axes that cannot be made fewer, "
            f"and {MOST_AXES} are the most; pass copies of those that are not contiguous"
        )
    return Axes(lengths, [[step[k] for step in kept] for k in range(len(steps))])


def in_order_of(
    first: Sequence[int], shape: Sequence[int], steps: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """The axes with the longest step of the first array outermost, for those that no thread has to
    number."""
    order = sorted(range(len(shape)), key=lambda axis: -abs(first[axis]))
    return [shape[axis] for axis in order], [[row[axis] for axis in order] for row in steps]


def rows(
    axes: Axes, sizes: Sequence[int], addresses: Sequence[int], width: int, others: Axes = NONE
) -> Rows:
    """By which way each array goes that has elements of so many bytes from that address on, where
    vectors begin at the steps of other axes as well; what has steps beyond those arrays is none."""
    lengths, steps = axes
    if not lengths:
        lengths, steps = [1], [[0] for _ in steps]
    ways = []
    beside = others.steps or [[] for _ in steps]
    for row, other, size, address in zip(steps, beside, sizes, addresses, strict=False):
        *outer, inner = row
        vector = width * size
        if inner == 0 or lengths[-1] == 1:
            ways.append(Way.SAME)
        elif inner == size and all(at % vector == 0 for at in (address, *outer, *other)):
            ways.append(Way.VECTOR)
        else:
            ways.append(Way.ONE_BY_ONE)
    ways += [Way.ONE_BY_ONE] * (len(steps) - len(ways))
    return Rows(Axes(lengths, steps), width, ways)


class Route(NamedTuple):
    """How a kernel goes over arrays: as if they were contiguous, or by vectors."""

    is_run: bool
    vectors: int
    packed: bytes


@lru_cache(1024)
def route(
    who: str,
    shape: tuple[int, ...],
    steps: tuple[tuple[int, ...], ...],
    sizes: tuple[int, ...],
    addresses: tuple[int, ...],
    width: int,
    first: int | None,
) -> Route:
    """The way over all axes, in the order of that array's steps; None: in their own, and the last
    array is none. Of addresses what is left beyond the last vector is enough."""
    if first is None:
        axes = merged(who, shape, steps)
        run = False
    else:
        axes = merged(who, *in_order_of(steps[first], shape, steps))
        run = is_run(axes, sizes, addresses)
    found = rows(axes, sizes, addresses, width).interlaced(sizes)
    return Route(run, found.vectors, found.packed())


def is_run(axes: Axes, sizes: Sequence[int], addresses: Sequence[int]) -> bool:
    """Whether all arrays are contiguous and aligned, and of one element they all are."""
    return len(axes.lengths) <= 1 and all(
        address % 16 == 0 and (not axes.lengths or row[0] == size)
        for row, size, address in zip(axes.steps, sizes, addresses, strict=True)
    )
