"""What is wrong with a wrong result, by name: what the usual ways to look fast leave behind.

A name is an accusation: it is given only where the result is just what that fault would give, and
not what is right. Everything else is wrong, with figures, and that is all that is said of it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.cases import bounds
from gpukern.bench.cases.trials import Trial
from gpukern.bench.checking.regions import poison
from gpukern.bench.checking.verdict import is_wrong
from gpukern.bench.model.case import ELEMENTWISE, Case

Array = npt.NDArray[Any]

# Rows of a product that are worked out again in a lower precision.
_SAMPLES = 8
_MANY = 8
# How many elements of a sum may be left out and still be found.
_LONGEST_TAIL = 4096
_NARROWED = ("elementwise", "sum", "dot", "norm", "matmul")
# By more than this share of the result no rounding is off: zeros are of every precision.
_NEAR = 2.0**-4
# Explicit bits of the significand that are dropped from a float32.
_NARROWER = {"tf32": 13, "bfloat16": 16}


def name_fault(case: Case, trial: Trial, before: Trial | None, got: Array) -> str:
    """The cause in a few words where it is proven, or else "".

    ``before`` is the trial whose inputs were in the same place just before.
    """
    if _same(got, poison(case)):
        return "never writes its output"
    if _is_earlier(trial, got) or (before is not None and _same(got, before.expected.nearest)):
        return "returns a cached result, of inputs before these"
    return _missing_tail(case, trial, got) or _narrower(case, trial, got)


def _same(a: Array, b: Array) -> bool:
    if bounds.is_float(a.dtype):
        a, b = a.astype(np.float64), b.astype(np.float64)
        return bool(np.all((a == b) | (np.isnan(a) & np.isnan(b))))
    return bool(np.array_equal(a, b))


def _is_earlier(trial: Trial, got: Array) -> bool:
    """Whether the result is, bit for bit, what was right before some of the latest changes."""
    answer = trial.expected.nearest.copy()
    flat, wanted = answer.reshape(-1), np.ascontiguousarray(got)
    for part, values in reversed(trial.expected.former):
        flat[part] = values
        # The place that was changed back tells quickly that it is not.
        if _same(wanted.reshape(-1)[part], values) and _same(wanted, answer):
            return True
    return False


def _missing_tail(case: Case, trial: Trial, got: Array) -> str:
    if case.kind == "sum" and not got.ndim:
        return _missing_terms(trial, got)
    wrong = np.atleast_1d(is_wrong(got, trial.expected, trial.expected.bound())).reshape(-1)
    first = int(np.argmax(wrong))
    tail = wrong.size - first
    if tail == wrong.size or not bool(wrong[first:].all()):
        return ""
    values = got.reshape(-1)[first:]
    untouched = _same(values, poison(case).reshape(-1)[first:]) or not np.any(values)
    return f"skips the tail: the last {tail} elements" if untouched else ""


def _missing_terms(trial: Trial, got: Array) -> str:
    """Only sums of whole numbers tell one missing term from rounding."""
    if trial.expected.bound() is not None:
        return ""
    terms = trial.inputs[0].reshape(-1)[-_LONGEST_TAIL:][::-1].astype(np.float64)
    missing = float(trial.expected.exact) - float(got)
    found = np.flatnonzero(np.cumsum(terms) == missing)
    return f"skips the tail: the last {int(found[0]) + 1} elements" if found.size else ""


def _rounded(values: Array, bits: int) -> Array:
    """float32 without its last ``bits``, rounded to nearest, half way away from zero."""
    kept = values.astype(np.float32).view(np.uint32) + np.uint32(1 << (bits - 1))
    return (kept & np.uint32(0xFFFFFFFF << bits & 0xFFFFFFFF)).view(np.float32)


def _rounded_to_even(values: Array, bits: int) -> Array:
    """The same where a number half way between two goes to the even one."""
    kept = values.astype(np.float32).view(np.uint32)
    kept = kept + np.uint32((1 << (bits - 1)) - 1) + (kept >> np.uint32(bits) & np.uint32(1))
    return (kept & np.uint32(0xFFFFFFFF << bits & 0xFFFFFFFF)).view(np.float32)


def _truncated(values: Array, bits: int) -> Array:
    kept = values.astype(np.float32).view(np.uint32)
    return (kept & np.uint32(0xFFFFFFFF << bits & 0xFFFFFFFF)).view(np.float32)


def _half(values: Array) -> Array:
    with np.errstate(over="ignore"):
        return values.astype(np.float16)


def _single(values: Array) -> Array:
    return values.astype(np.float32)


def _precisions(dtype: str) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    if dtype == "float64":
        yield "float32", _single
    if dtype in ("float32", "float64"):
        for name, bits in _NARROWER.items():
            for narrow in (_rounded, _rounded_to_even, _truncated):
                yield name, partial(narrow, bits=bits)
        yield "float16", _half


def _narrower(case: Case, trial: Trial, got: Array) -> str:
    """Whether the result is that of inputs rounded to a lower precision, and not of these."""
    if case.kind not in _NARROWED or not bounds.is_float(case.dtype):
        return ""
    rows = _wrong_rows(trial, got) if case.kind == "matmul" else slice(None)
    found, right = (
        (got[rows], trial.expected.exact[rows]) if got.ndim else (got, trial.expected.exact)
    )
    error = _rms(found, right)
    near = error < _NEAR * _rms(right, np.zeros(1))
    for name, narrow in _precisions(case.dtype):
        if near and _fits(got, narrow) and not _fits(trial.expected.nearest, narrow):
            return f"lower precision: all of it is {name} in place of {case.dtype}"
        if _rms(found, _again(case, trial, rows, narrow)) < 0.1 * error:
            return f"lower precision: {name} in place of {case.dtype}"
    return ""


def _fits(values: Array, narrow: Callable[[Array], Array]) -> bool:
    """Whether all of a few numbers, which is no chance, are of the lower precision as they are."""
    if values.size < _MANY and narrow is not _single:
        return False
    with np.errstate(invalid="ignore", over="ignore"):
        return bool(np.all(narrow(values).astype(values.dtype) == values))


def _wrong_rows(trial: Trial, got: Array) -> Any:
    wrong = is_wrong(got, trial.expected, trial.expected.bound())
    return np.flatnonzero(wrong.any(axis=1))[:_SAMPLES]


def _again(case: Case, trial: Trial, rows: Any, narrow: Callable[[Array], Array]) -> Array:
    def narrowed(array: Array) -> Array:
        return narrow(array).astype(np.float64)

    # What does not fit into the lower precision is infinite there, and its products are no numbers.
    with np.errstate(invalid="ignore", over="ignore"):
        if case.kind == "sum":
            return np.asarray(narrowed(trial.inputs[0]).sum(axis=case.axis))
        if case.kind == "norm":
            return np.asarray(np.sqrt(np.sum(np.square(narrowed(trial.inputs[0])))))
        a, b = trial.inputs
        if case.kind == "dot":
            return np.asarray(np.sum(narrowed(a) * narrowed(b)))
        if case.kind == "elementwise":
            return narrowed(np.asarray(ELEMENTWISE[case.op](a, b)))
        return np.asarray(narrowed(a[rows]) @ narrowed(b))


def _rms(a: Array, b: Array) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        difference = a.astype(np.float64) - b.astype(np.float64)
        return float(np.sqrt(np.mean(np.square(difference))))
