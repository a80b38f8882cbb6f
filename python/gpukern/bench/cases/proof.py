"""Inputs that carry the proof: there is one right answer, and it takes the claimed precision.

Their elements are whole multiples of a power of two, of either sign. Most of them are narrow, a few
are wide: so wide that rounding them to tf32, bfloat16 or float16, or float64 to float32, changes
the result. They are chosen such that all partial sums fit into the accumulator, float32 for the
half types and their own dtype for the others, so that nothing is ever rounded in it: every order of
the additions gives the same bits.

For sums and products of vectors that holds for every order at all up to 2**20 elements. Of more
elements the positive ones alone add up to more than fits, and it holds for every order that does
not sort by value: the partial sums are a random walk then, which eight standard deviations keep
inside. Of a norm, where all terms are positive, most elements are 0 above 2**20.

What gives these inputs away is that the lowest bits lie at one place, and that in a product of
vectors or matrices one factor of each pair is narrow. Ordinary inputs have as many zeros at their
ends, but at places of their own. Nobody is helped by telling them apart: it is these that are
timed, and each timed call is checked against them.

The scale is a random power of two, an element's row, column and place among the terms have random
ones more in matrices. ``redraw`` gives a new value for a place: of as many bits as the one before,
so that all of this stays as it is however often the inputs are changed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.cases import bounds
from gpukern.bench.cases.drawing import any_value, either_sign, mixed, wide_ones
from gpukern.bench.cases.pieces import fill, in_pieces
from gpukern.bench.model.case import Case
from gpukern.bench.model.dtypes import numpy_dtype

_FEW = 64

Array = npt.NDArray[Any]
Redraw = Callable[[np.random.Generator, int, int], Any]


@dataclass(frozen=True)
class Drawn:
    """Inputs, and how to draw another value for a place in one of them.

    ``candidates`` are the places on which the result depends, where it does on few; the last of
    them counts for most.
    """

    inputs: tuple[Array, ...]
    redraw: Redraw
    candidates: Array | None = None


def proof(case: Case, rng: np.random.Generator) -> Drawn:
    """The inputs of a case that carry the proof."""
    if case.kind == "selection":
        return _selection(case, rng)
    if case.kind in _SUMMED and bounds.is_float(case.dtype):
        return _SUMMED[case.kind](case, rng)
    # What is rounded once at most needs no more than full width.
    inputs = tuple(any_value(rng, shape, case.dtype) for shape in case.shapes)
    return Drawn(inputs, lambda mine, which, place: any_value(mine, (1,), case.dtype)[0])


def spare(case: Case) -> int:
    """Bits that the accumulator has beyond a float32."""
    return bounds.SIGNIFICAND[bounds.accumulator(case.dtype)] - 24


def _whole(case: Case) -> Any:
    return np.int64 if case.dtype == "float64" else np.int32


def _scale(case: Case, rng: np.random.Generator, halves: tuple[int, int]) -> float:
    """A random power of two, for float16 one between bounds that keep everything in its range."""
    least, most = halves if case.dtype == "float16" else (-20, 10)
    return float(2.0 ** rng.integers(least, most, endpoint=True))


def _scaled(whole: Array, scale: Any, case: Case) -> Array:
    """Rounded to the dtype, which leaves it a multiple of the same power of two."""
    result = np.empty(whole.shape, numpy_dtype(case.dtype))
    if np.ndim(scale):
        in_pieces(lambda out, terms, by: np.copyto(out, terms * by, "unsafe"), result, whole, scale)
    else:
        in_pieces(lambda out, terms: np.copyto(out, terms * scale, "unsafe"), result, whole)
    return result


def _alike(rng: np.random.Generator, value: float, unit: float, top: int) -> float:
    """Another multiple of the unit, as wide; the widest of all keep their sign."""
    whole = int(abs(value) / unit)
    bits = whole.bit_length()
    if not bits:
        bits = 2
    if bits >= top:
        # A second one lies on the other side, and neither may come near the next power of two.
        fresh = int(rng.integers(2 ** (bits - 1), 5 * 2 ** (bits - 3)))
        return float(fresh * unit if value > 0 else -fresh * unit)
    fresh = int(rng.integers(2 ** (bits - 1), 2**bits))
    return float(fresh * unit * rng.choice((-1, 1)))


def _redrawn(case: Case, inputs: tuple[Array, ...], unit: Callable[[int, int], float]) -> Redraw:
    dtype, top = numpy_dtype(case.dtype), 24 + spare(case)

    def redraw(rng: np.random.Generator, which: int, place: int) -> Any:
        value = float(inputs[which].reshape(-1)[place])
        return dtype.type(_alike(rng, value, unit(which, place), top))

    return redraw


def _narrow_bits(count: int) -> int:
    """The widest of which so many can be added up in any order, or else in random order."""
    return {21: 3, 22: 2}.get((count - 1).bit_length(), 4)


def _pair(rng: np.random.Generator, case: Case) -> tuple[int, int]:
    """Two terms of full width, of which one adds what the other takes away."""
    least = 2 ** (23 + spare(case))
    one, other = rng.integers(least, least + least // 4, 2)
    if case.dtype in ("float16", "bfloat16") and case.count > _FEW:
        # Next to what is left of both the others would be rounded off.
        other = one
    return (int(one), -int(other)) if rng.integers(2) else (-int(one), int(other))


def _terms(case: Case, rng: np.random.Generator) -> Drawn:
    if isinstance(case.axis, int):
        return _lines(case, rng)
    count, more, dtype = case.count, spare(case), _whole(case)
    whole = np.empty(count, dtype)
    narrow, share = _narrow_bits(count) + more, min(0.25, 256 / count)

    def part(mine: np.random.Generator, piece: Array) -> None:
        piece[...] = mixed(mine, narrow, 13 + more, share, piece.size, dtype)

    fill(rng, part, whole)
    whole[rng.integers(count)], whole[-1] = _pair(rng, case)
    scale = _scale(case, rng, (-14, -10))
    values = _scaled(whole, scale, case)
    if case.result_dtype in ("float16", "bfloat16"):
        _balance(values, values.astype(np.float64) / scale, rng)
    inputs = (values.reshape(case.shapes[0]),)
    return Drawn(inputs, _redrawn(case, inputs, lambda which, place: scale))


def _balance(values: Array, terms: Array, rng: np.random.Generator) -> None:
    """Turn signs until the sum is small: what a half type rounds off would hide what is wrong."""
    total = float(np.sum(terms))
    chosen = rng.permutation(min(terms.size - 1, 2**15))
    # The widest of all stay: one of them for the other.
    chosen = chosen[np.abs(terms[chosen]) < 2**20]
    for i in chosen[np.argsort(-np.abs(terms[chosen]), kind="stable")]:
        if abs(total - 2 * terms[i]) < abs(total):
            total -= 2 * terms[i]
            values[i] = -values[i]
    if total == 0 and chosen.size:
        values[chosen[0]] = -values[chosen[0]]


def _lines(case: Case, rng: np.random.Generator) -> Drawn:
    """Sums over an axis: wide terms here and there, and all of the last line."""
    more, dtype = spare(case), _whole(case)
    whole = np.empty(case.shapes[0], dtype)
    narrow, share = _narrow_bits(case.reduced) + more, min(0.25, 8 / case.reduced)

    def part(mine: np.random.Generator, piece: Array) -> None:
        piece[...] = mixed(mine, narrow, 20 + more, share, piece.size, dtype)

    fill(rng, part, whole)
    last = whole[-1] if case.axis == 0 else whole[:, -1]
    last[...] = wide_ones(rng, 20 + more, last.size, dtype)
    scale = _scale(case, rng, (-14, -10))
    inputs = (_scaled(whole, scale, case),)
    return Drawn(inputs, _redrawn(case, inputs, lambda which, place: scale))


def _pairs(case: Case, rng: np.random.Generator) -> Drawn:
    """Of each pair of factors one is narrow, and the other may be wide."""
    count, more, dtype = case.count, spare(case), _whole(case)
    half = more // 2
    a, b, shifts = np.empty(count, dtype), np.empty(count, dtype), np.empty(count, np.int8)
    share = min(0.25, 256 / count)

    def part(mine: np.random.Generator, x: Array, y: Array, shift: Array) -> None:
        one = mixed(mine, 2 + half, 13 + half, share, x.size, dtype)
        other = either_sign(mine, 2 + half, x.size, dtype)
        left = mine.integers(0, 1, x.size, np.int8, endpoint=True).astype(bool)
        x[...], y[...] = np.where(left, one, other), np.where(left, other, one)
        shift[...] = mine.integers(-2, 2, x.size, np.int8, endpoint=True)

    fill(rng, part, a, b, shifts)
    first = int(rng.integers(count))
    (one, other), sign = _pair(rng, case), int(rng.choice((-1, 1)))
    # 24 bits beside a factor of one bit, which has no precision to lose.
    a[first], b[first], shifts[first] = one, 1, 0
    a[-1], b[-1], shifts[-1] = sign, sign * other, 0
    scale = _scale(case, rng, (-9, -9))
    powers = np.ldexp(scale, shifts), np.ldexp(scale, -shifts)
    inputs = (_scaled(a, powers[0], case), _scaled(b, powers[1], case))
    del powers
    if case.result_dtype in ("float16", "bfloat16"):
        products = inputs[0].astype(np.float64) * inputs[1].astype(np.float64)
        _balance(inputs[0], products / scale**2, rng)
    units = _redrawn(
        case,
        inputs,
        lambda which, place: float(np.ldexp(scale, int((1 - 2 * which) * shifts[place]))),
    )

    def redraw(mine: np.random.Generator, which: int, place: int) -> Any:
        # The places of the widest keep the signs of both of their factors.
        if place in (first, count - 1):
            return inputs[which][place]
        return units(mine, which, place)

    return Drawn(inputs, redraw)


def _squares(case: Case, rng: np.random.Generator) -> Drawn:
    """Two wide elements, the last one of them; beside them as many narrow ones as there is room."""
    count, half, dtype = case.count, spare(case) // 2, _whole(case)
    whole = np.empty(count, dtype)
    kept = min(1.0, 2**20 / (1.2 * count))

    def part(mine: np.random.Generator, piece: Array) -> None:
        piece[...] = either_sign(mine, 2 + half, piece.size, dtype)
        if kept < 1:
            piece[mine.random(piece.size, np.float32) >= kept] = 0

    fill(rng, part, whole)
    least = 2 ** (11 + half)
    places = [int(rng.integers(count)), count - 1]

    def wide(mine: np.random.Generator, place: int) -> int:
        # The last one is odd and the other even, so that rounding changes one alone.
        value = int(mine.integers(least // 2, least // 2 + least // 16)) * 2 + (place == count - 1)
        return value * int(mine.choice((-1, 1)))

    whole[places] = [wide(rng, place) for place in places]
    scale = _scale(case, rng, (-10, -2))
    inputs = (_scaled(whole, scale, case).reshape(case.shapes[0]),)
    like = _redrawn(case, inputs, lambda which, place: scale)

    def redraw(mine: np.random.Generator, which: int, place: int) -> Any:
        if place not in places:
            return like(mine, which, place)
        return inputs[0].dtype.type(wide(mine, place) * scale)

    return Drawn(inputs, redraw)


def _factors(case: Case, rng: np.random.Generator) -> Drawn:
    """Along the terms of a product of matrices either row or column may be wide, never both."""
    (m, inner), (_, n) = case.shapes
    more, dtype = spare(case), _whole(case)
    narrow, wide = 3 + more // 2, 16 + more // 2
    if inner == 1:
        # A single product has room for two wide factors.
        narrow = wide = 12 + more // 2
    a, b = np.empty((m, inner), dtype), np.empty((inner, n), dtype)
    left = rng.integers(0, 1, inner, np.int8, endpoint=True).astype(bool)
    left[0], left[-1] = True, inner == 1
    for whole, able in ((a, left[None, :]), (b, ~left[:, None] | (inner == 1))):
        fill(
            rng, lambda g, piece: np.copyto(piece, either_sign(g, narrow, piece.size, dtype)), whole
        )
        _widen(rng, whole, able, wide, min(0.5, 16 / inner))
    reach = 1 if case.dtype == "float16" else 3
    rows, columns, terms = (
        rng.integers(-reach, reach, size, endpoint=True) for size in (m, n, inner)
    )
    scale = _scale(case, rng, (-6, -6))
    scales = (
        np.ldexp(scale, rows[:, None] + terms[None, :]),
        np.ldexp(scale, columns[None, :] - terms[:, None]),
    )
    inputs = (_scaled(a, scales[0], case), _scaled(b, scales[1], case))
    del scales

    def unit(which: int, place: int) -> float:
        row, column = divmod(place, inputs[which].shape[1])
        power = columns[column] - terms[row] if which else rows[row] + terms[column]
        return float(np.ldexp(scale, int(power)))

    return Drawn(inputs, _redrawn(case, inputs, unit))


def _widen(rng: np.random.Generator, whole: Array, able: Array, bits: int, share: float) -> None:
    hits = int(rng.binomial(whole.size, share))
    places = rng.integers(0, whole.size, hits)
    where = np.broadcast_to(able, whole.shape).reshape(-1)
    # One of them in any case.
    places = np.append(places[where[places]], np.argmax(where))
    whole.reshape(-1)[places] = wide_ones(rng, bits, places.size, whole.dtype)


_SUMMED: dict[str, Callable[[Case, np.random.Generator], Drawn]] = {
    "sum": _terms,
    "dot": _pairs,
    "norm": _squares,
    "matmul": _factors,
}

# Elements among which the one that is looked for is, wherever they lie.
_CANDIDATES = 64
# As they change some are none any more, and others are: who knows the first ones misses these.
_FEWEST_CANDIDATES, _MOST_CANDIDATES = 32, 128
_INNER, _OUTER, _OUTERMOST = range(3)
_FAR = 8  # of normal numbers none is as far from 0


def _candidates(case: Case, rng: np.random.Generator) -> Array:
    """Where the candidates of a selection lie: anywhere, and at the end."""
    if case.count <= _CANDIDATES:
        return np.arange(case.count)
    places = rng.integers(0, case.count, _CANDIDATES - 1)
    return np.unique(np.append(places, case.count - 1))


def _selection(case: Case, rng: np.random.Generator) -> Drawn:
    """Some candidates far out on the side that is looked for, and everything else elsewhere.

    The last element is the outermost, where a skipped tail misses it; every other time that it
    changes it is none of them. Others become candidates as they change, and are none any more.
    """
    values = np.empty(case.shapes[0], numpy_dtype(case.dtype))
    flat, places = values.reshape(-1), _candidates(case, rng)
    now, last = set(places.tolist()), case.count - 1

    def part(mine: np.random.Generator, piece: Array) -> None:
        piece[...] = _at_level(mine, case, piece.size, _INNER)

    fill(rng, part, values)
    flat[places] = _at_level(rng, case, places.size, _OUTER)
    flat[last:] = _at_level(rng, case, 1, _OUTERMOST)

    def redraw(mine: np.random.Generator, which: int, place: int) -> Any:
        if mine.integers(2):
            if place not in now and len(now) < _MOST_CANDIDATES:
                now.add(place)
            elif len(now) > _FEWEST_CANDIDATES:
                now.discard(place)
        level = _OUTER if place in now else _INNER
        if place == last:
            level = int(mine.choice((_INNER, _OUTERMOST)))
        return _at_level(mine, case, 1, level)[0]

    return Drawn((values,), redraw, places)


def is_far(case: Case, value: Any) -> bool:
    """Whether a value lies where candidates of a selection do."""
    if bounds.is_float(case.dtype):
        return bool(abs(float(value)) >= _FAR)
    limits = np.iinfo(numpy_dtype(case.dtype))
    upper = int(value) >= int(limits.min) + 2 ** (limits.bits - 1)
    return upper if case.op.endswith("max") else not upper


def _at_level(rng: np.random.Generator, case: Case, count: int, level: int) -> Array:
    """Random values that lie beyond those of the level below."""
    dtype, largest = numpy_dtype(case.dtype), case.op.endswith("max")
    if bounds.is_float(case.dtype):
        if level == _INNER:
            return rng.standard_normal(count).astype(dtype)
        far = rng.uniform(_FAR * level, 2 * _FAR * level, count).astype(dtype)
        return far if largest else -far
    # Half of all numbers, a quarter and a quarter.
    limits = np.iinfo(dtype)
    least, quarter = int(limits.min), 2 ** (limits.bits - 2)
    begin, quarters = {_INNER: (0, 2), _OUTER: (2, 1), _OUTERMOST: (3, 1)}[level]
    if not largest:
        begin = 4 - begin - quarters
    first = least + begin * quarter
    return rng.integers(first, first + quarters * quarter - 1, count, dtype, endpoint=True)
