"""The inputs of a case with their right answers, worked out by NumPy in float64."""

import zlib
from collections.abc import Callable
from functools import cache, partial
from math import isqrt, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.cases import bounds
from gpukern.bench.cases.expected import Expected, Trial
from gpukern.bench.cases.pieces import draw, in_pieces
from gpukern.bench.model.case import ELEMENTWISE, Case
from gpukern.bench.model.dtypes import numpy_dtype, widened

Array = npt.NDArray[Any]

# Sums of whole numbers stay exact while they are under this.
_EXACT = {"float32": 2**24, "float64": 2**53, "float16": 65504, "bfloat16": 2**24}
# A random sum of n terms of size m stays under this many times m * sqrt(n): 8 / sqrt(1/3) sigma.
_SPREAD = 8
_TAIL = 64


def make_trials(case: Case, seed: int) -> tuple[Trial, Trial]:
    """Fresh inputs: the same case and seed always give the same ones."""
    label = f"{case.op} {case.shapes} {case.dtype}".encode()
    rng = np.random.default_rng([seed, zlib.crc32(label)])
    return _trial(case, "random", _random(case, rng)), _trial(case, "exact", _whole(case, rng))


def _trial(case: Case, name: str, inputs: tuple[Array, ...]) -> Trial:
    return Trial(name, inputs, _EXPECTED[case.kind](case, inputs, name == "exact"))


def _random(case: Case, rng: np.random.Generator) -> tuple[Array, ...]:
    return tuple(_random_array(shape, case.dtype, rng) for shape in case.shapes)


def _random_array(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Array:
    target, count = numpy_dtype(dtype), int(np.prod(shape))
    if not bounds.is_float(dtype):
        limits = np.iinfo(target)
        return draw(
            count,
            target,
            rng,
            lambda g, n: g.integers(limits.min, limits.max, n, target, endpoint=True),
        ).reshape(shape)
    # Normal, since uniform numbers are multiples of one step: adding two would round nothing.
    wide: Any = np.float64 if dtype == "float64" else np.float32
    return draw(count, target, rng, lambda g, n: g.standard_normal(n, wide)).reshape(shape)


def _whole(case: Case, rng: np.random.Generator) -> tuple[Array, ...]:
    """Inputs for which there is one right answer, whatever the order of the additions."""
    if case.kind in _WHOLE and (bounds.is_float(case.dtype) or case.kind == "selection"):
        return _WHOLE[case.kind](case, rng)
    return _random(case, rng)


def _largest(dtype: str, terms: int) -> int:
    """The largest whole number of which so many can be added up without rounding."""
    room = int(_EXACT[dtype] / (_SPREAD * sqrt(terms)))
    precision = 12 if dtype == "float32" else min(bounds.SIGNIFICAND[dtype], 30)
    widest: int = 2**precision - 1
    return max(1, min(room, widest))


def _signs(rng: np.random.Generator, count: int) -> Array:
    return rng.integers(0, 1, count, np.int8, endpoint=True) * np.int8(2) - np.int8(1)


def _whole_terms(case: Case, rng: np.random.Generator) -> tuple[Array, ...]:
    largest = _largest(case.dtype, case.count)

    def drawn(mine: np.random.Generator, count: int) -> Array:
        values = mine.integers(1, largest, count, np.int32, endpoint=True)
        return values * _signs(mine, count)

    values = draw(case.count, numpy_dtype(case.dtype), rng, drawn)
    # All of one sign, so that leaving out any part of the tail shows.
    values[-_TAIL:] = np.abs(values[-_TAIL:])
    return (values.reshape(case.shapes[0]),)


def _whole_pairs(case: Case, rng: np.random.Generator) -> tuple[Array, ...]:
    """Whole numbers against +-1: products that nobody rounds, and sums neither."""
    (terms,) = _whole_terms(case, rng)
    signs = draw(case.count, terms.dtype, rng, _signs)
    signs[-_TAIL:] = 1
    return terms, signs


def _extreme_at_the_end(case: Case, rng: np.random.Generator) -> tuple[Array, ...]:
    """The element that is looked for comes last, where a skipped tail misses it."""
    (values,) = _random(case, rng)
    flat = values.reshape(-1)
    flat[-1] = getattr(np, case.op.removeprefix("arg"))(flat)
    flat[:-1][flat[:-1] == flat[-1]] = 1
    return (values,)


def _ones_among_zeros(case: Case, rng: np.random.Generator) -> tuple[Array, ...]:
    """A square number of +-1, some of them at the end: the norm is whole, and so is every sum."""
    values = np.zeros(case.count, numpy_dtype(case.dtype))
    root = min(isqrt(case.count), isqrt(_EXACT[case.dtype]) // 2)
    tail = min(_TAIL, root * root)
    rest = np.linspace(0, case.count - tail - 1, root * root - tail).astype(np.int64)
    values[rest] = _signs(rng, rest.size)
    values[case.count - tail :] = 1
    return (values.reshape(case.shapes[0]),)


def _whole_factors(case: Case, rng: np.random.Generator) -> tuple[Array, ...]:
    """Wide numbers against +-1, on either side, so that no product and no sum is rounded."""
    (m, k), (_, n) = case.shapes
    largest = _largest(case.dtype, k)
    a = rng.integers(0, 1, (m, k), np.int32, endpoint=True) * 2 - 1
    b = rng.integers(0, 1, (k, n), np.int32, endpoint=True) * 2 - 1
    half = (k + 1) // 2
    a[:, :half] *= rng.integers(1, largest, (m, half), np.int32, endpoint=True)
    b[half:] *= rng.integers(1, largest, (k - half, n), np.int32, endpoint=True)
    dtype = numpy_dtype(case.dtype)
    return a.astype(dtype), b.astype(dtype)


_WHOLE: dict[str, Callable[[Case, np.random.Generator], tuple[Array, ...]]] = {
    "sum": _whole_terms,
    "dot": _whole_pairs,
    "norm": _ones_among_zeros,
    "selection": _extreme_at_the_end,
    "matmul": _whole_factors,
}


def _nearest(case: Case, exact: Array) -> Array:
    if case.result_dtype == "float64":
        return exact
    rounded = np.empty(exact.shape, numpy_dtype(case.result_dtype))

    def round_to(out: Array, values: Array) -> None:
        with np.errstate(over="ignore"):
            out[...] = values

    in_pieces(round_to, rounded.reshape(-1), exact)
    return rounded


def _elementwise(case: Case, inputs: tuple[Array, ...], whole: bool) -> Expected:
    operation = ELEMENTWISE[case.op]
    if not bounds.is_float(case.dtype):
        result = np.empty(case.result_shape, numpy_dtype(case.dtype))
        in_pieces(lambda out, *terms: operation(*terms, out=out), result, *inputs)
        return Expected(result, result, None)
    exact = np.empty(case.result_shape, np.float64)

    def calculate(out: Array, *terms: Array) -> None:
        operation(*map(widened, terms), out=out)

    in_pieces(calculate, exact, *inputs)
    return Expected(exact, _nearest(case, exact), None)


def _total(case: Case, a: Array, absolute: bool = False) -> Any:
    """The sum in float64, or that of the absolute values."""

    def part(piece: Array) -> Any:
        return np.sum(np.abs(piece) if absolute else piece, dtype=np.float64)

    if case.axis is None or case.result_shape == ():
        return np.sum(in_pieces(part, a))
    return np.sum(np.abs(a) if absolute else a, axis=case.axis, dtype=np.float64)


def _sum(case: Case, inputs: tuple[Array, ...], whole: bool) -> Expected:
    (a,) = inputs
    if not bounds.is_float(case.dtype):
        total = np.asarray(np.sum(a, axis=case.axis))
        return Expected(total, total, None)
    exact = np.asarray(_total(case, a))
    absolute = cache(partial(_total, case, a, absolute=True))

    def bound(**carried: Any) -> Any:
        return bounds.sum_bound(absolute(), exact, case.reduced, case.dtype, **carried)

    return _bounded(case, exact, whole, bound)


def _bounded(case: Case, exact: Array, whole: bool, bound: Callable[..., Any]) -> Expected:
    """A sum with its bounds; whole numbers are not rounded, but where they are carried narrowly."""
    return Expected(
        exact,
        _nearest(case, exact),
        None if whole else np.asarray(bound()),
        None if whole else np.asarray(bound(serial=True)),
        lambda carried: np.asarray(bound(carried=carried)),
    )


def _dot(case: Case, inputs: tuple[Array, ...], whole: bool) -> Expected:
    a, b = inputs
    if not bounds.is_float(case.dtype):
        total = np.asarray(np.dot(a, b))
        return Expected(total, total, None)

    def part(x: Array, y: Array) -> Any:
        products = widened(x) * widened(y)
        return np.sum(products), np.sum(np.abs(products))

    exact, absolute = np.sum(in_pieces(part, a, b), axis=0)
    bound = partial(
        bounds.sum_bound, absolute, np.asarray(exact), case.count, case.dtype, products=1
    )
    return _bounded(case, np.asarray(exact), whole, bound)


def _norm(case: Case, inputs: tuple[Array, ...], whole: bool) -> Expected:
    def part(x: Array) -> Any:
        return np.sum(np.square(widened(x)))

    exact = np.asarray(np.sqrt(np.sum(in_pieces(part, inputs[0]))))
    bound = None if whole else np.asarray(bounds.norm_bound(exact, case.count, case.dtype))
    return Expected(exact, _nearest(case, exact), bound)


def _selection(case: Case, inputs: tuple[Array, ...], whole: bool) -> Expected:
    found = np.asarray(getattr(np, case.op)(inputs[0]))
    return Expected(found, found, None)


def _transpose(case: Case, inputs: tuple[Array, ...], whole: bool) -> Expected:
    exact = np.ascontiguousarray(inputs[0].T)
    return Expected(exact, exact, None)


def _matmul(case: Case, inputs: tuple[Array, ...], whole: bool) -> Expected:
    a, b = (x.astype(np.float64, copy=False) for x in inputs)
    exact = np.asarray(a @ b)
    if whole:
        return Expected(exact, _nearest(case, exact), None)
    absolute = np.abs(a) @ np.abs(b)
    bound = bounds.matmul_bound(absolute, exact, a.shape[1], case.dtype)
    return Expected(exact, _nearest(case, exact), bound)


_EXPECTED: dict[str, Callable[[Case, tuple[Array, ...], bool], Expected]] = {
    "elementwise": _elementwise,
    "sum": _sum,
    "dot": _dot,
    "norm": _norm,
    "selection": _selection,
    "transpose": _transpose,
    "matmul": _matmul,
}
