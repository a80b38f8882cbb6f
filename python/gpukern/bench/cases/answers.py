"""The right answers of a case, which follow as single elements of its inputs change."""

import math
from collections import deque
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.cases import bounds
from gpukern.bench.cases.pieces import in_pieces
from gpukern.bench.cases.proof import is_far
from gpukern.bench.cases.wide import wide_product
from gpukern.bench.model.case import ELEMENTWISE, Case
from gpukern.bench.model.dtypes import numpy_dtype, widened
from gpukern.catalogue import dtype_name

Array = npt.NDArray[Any]

# So many of the latest answers that are no longer right are remembered.
_REMEMBERED = 256
_SMALL = 2**16


class Answer:
    """The right answer for some inputs: ``exact``, and ``nearest`` of the result's dtype.

    ``follow`` brings it up to date after an element of the inputs has changed. Indices are slices
    of the flattened result: ``touched`` are those that have changed since somebody emptied it,
    ``former`` hold what was right there before.
    """

    def __init__(self, case: Case, inputs: tuple[Array, ...], proof: bool) -> None:
        self.case, self.inputs, self.proof = case, inputs, proof
        self.touched: list[slice] = []
        self.former: deque[tuple[slice, Array]] = deque(maxlen=_REMEMBERED)
        self.exact: Array = np.zeros(())
        self.nearest: Array = np.zeros(())

    def follow(self, which: int, place: int, old: Any) -> None:
        """An element of an input was ``old``, and is another one now."""
        raise NotImplementedError

    def bound(self, serial: bool = False, carried: str = "") -> Array | None:
        """How far from it a result may be; None asks for ``nearest`` itself, bit for bit."""
        return None

    def _start(self, exact: Array) -> None:
        self.exact = exact
        self.nearest = _nearest(self.case, exact)

    def _renew(self, part: slice, exact: Any) -> None:
        flat = self.nearest.reshape(-1)
        self.former.append((part, flat[part].copy()))
        self.touched.append(part)
        self.exact.reshape(-1)[part] = exact
        with np.errstate(over="ignore"):
            flat[part] = exact

    @cached_property
    def typical(self) -> float:
        """The root mean square of the result, as it was at first."""
        if not self.exact.size:
            return 0.0
        squares = in_pieces(lambda x: float(np.sum(np.square(x, dtype=np.float64))), self.exact)
        return math.sqrt(math.fsum(squares) / self.exact.size)

    def ulps(self, difference: Array, exact: Array, typical: float) -> Array:
        """Errors of some elements in units in the last place.

        Where cancellation has left an element smaller than is ``typical`` of all, it is the unit of
        that: how accurate a sum is depends on its terms, not on what is left of them.
        """
        dtype = dtype_name(self.nearest.dtype)
        if not bounds.is_float(dtype):
            return np.zeros(())
        _, exponent = np.frexp(np.maximum(np.abs(exact), typical).astype(np.float64))
        with np.errstate(invalid="ignore"):
            return np.asarray(difference / np.ldexp(1.0, exponent - bounds.SIGNIFICAND[dtype]))


def deviation(got: Array, exact: Array) -> Array:
    """How far each element is from the right one."""
    # NaN and infinity are legitimate here: they are what a wrong result may hold.
    with np.errstate(invalid="ignore", over="ignore"):
        if exact.dtype != np.longdouble:
            exact = exact.astype(np.float64, copy=False)
        difference: Array = np.abs(widened(got) - exact)
        return difference.astype(np.float64, copy=False)


def _nearest(case: Case, exact: Array) -> Array:
    target = numpy_dtype(case.result_dtype)
    rounded = np.empty(exact.shape, target)

    def round_to(out: Array, values: Array) -> None:
        with np.errstate(over="ignore"):
            out[...] = values

    in_pieces(round_to, rounded.reshape(-1), exact)
    return rounded


def _at(place: int) -> slice:
    return slice(place, place + 1, 1)


class Elementwise(Answer):
    """Each element on its own, rounded once."""

    def __init__(self, case: Case, inputs: tuple[Array, ...], proof: bool) -> None:
        super().__init__(case, inputs, proof)
        self._wide = bounds.is_float(case.dtype)
        exact = np.empty(case.result_shape, np.float64 if self._wide else numpy_dtype(case.dtype))
        in_pieces(lambda out, *terms: np.copyto(out, self._calculate(*terms)), exact, *inputs)
        self._start(exact)

    def _calculate(self, *terms: Array) -> Any:
        return ELEMENTWISE[self.case.op](*(map(widened, terms) if self._wide else terms))

    def follow(self, which: int, place: int, old: Any) -> None:
        """Only the element at that place."""
        part = _at(place)
        self._renew(part, self._calculate(*(one.reshape(-1)[part] for one in self.inputs)))


class Transposed(Answer):
    """The same elements in other places."""

    def __init__(self, case: Case, inputs: tuple[Array, ...], proof: bool) -> None:
        super().__init__(case, inputs, proof)
        self.nearest = np.array(inputs[0].T, order="C")
        self.exact = self.nearest

    def follow(self, which: int, place: int, old: Any) -> None:
        """The element that has moved there."""
        row, column = divmod(place, self.inputs[0].shape[1])
        part = _at(column * self.inputs[0].shape[0] + row)
        self._renew(part, self.inputs[0].reshape(-1)[_at(place)])


class Selected(Answer):
    """Which of a few candidates, that are known to lie beyond all others.

    What changes to lie there is one, too.
    """

    def __init__(
        self, case: Case, inputs: tuple[Array, ...], proof: bool, candidates: Array
    ) -> None:
        super().__init__(case, inputs, proof)
        self._candidates = candidates
        self._known = set(candidates.tolist())
        self.exact = self.nearest = np.asarray(self._look()).copy()

    def _chosen(self, places: Array) -> Any:
        values = self.inputs[0].reshape(-1)[places]
        return places[getattr(np, "arg" + self.case.op.removeprefix("arg"))(values)]

    def _look(self) -> Any:
        place = self._chosen(self._candidates)
        is_place = self.case.op.startswith("arg")
        return np.int64(place) if is_place else self.inputs[0].reshape(-1)[place]

    def runner_up(self) -> int:
        """The place that would be it if the last one were none."""
        others = self._candidates[:-1] if len(self._known) > 1 else self._candidates
        return int(self._chosen(others))

    def follow(self, which: int, place: int, old: Any) -> None:
        """Looked for again."""
        if place not in self._known and is_far(self.case, self.inputs[0].reshape(-1)[place]):
            self._known.add(place)
            self._candidates = np.sort(np.append(self._candidates, place))  # the first of several
        found = self._look()
        if found != self.nearest[()]:
            self._renew(_at(0), found)


class Summed(Answer):
    """Sums of elements, of products or of squares: what changes is added and taken away."""

    def __init__(self, case: Case, inputs: tuple[Array, ...], proof: bool) -> None:
        super().__init__(case, inputs, proof)
        self._whole = not bounds.is_float(case.dtype)
        self._wide: Any = np.longdouble if case.dtype == "float64" else np.float64
        self._total = self._sum(lambda x: x)
        self._absolute = self._squares = np.zeros(())
        if not self._whole:
            self._absolute, self._squares = self._sum(np.abs), self._sum(np.square)
        self._start(self._result(self._total))

    def _terms(self, *elements: Array) -> Array:
        if self._whole:
            return np.asarray(elements[0].astype(np.int64))
        wide = [widened(one).astype(self._wide, copy=False) for one in elements]
        if self.case.kind == "dot":
            return np.asarray(wide[0] * wide[1])
        return np.square(wide[0]) if self.case.kind == "norm" else wide[0]

    def _sum(self, of: Any) -> Array:
        kind: Any = np.int64 if self._whole else self._wide
        if isinstance(self.case.axis, int):
            return np.asarray(
                np.sum(of(self._terms(*self.inputs)), axis=self.case.axis, dtype=kind)
            )
        parts = in_pieces(lambda *x: np.sum(of(self._terms(*x)), dtype=kind), *self.inputs)
        return np.asarray(np.sum(np.array(parts, kind), dtype=kind)).copy()

    def _result(self, total: Array) -> Array:
        return np.array(np.sqrt(total) if self.case.kind == "norm" else total)

    def follow(self, which: int, place: int, old: Any) -> None:
        """Take the old term away and add the new one."""
        now = [one.reshape(-1)[_at(place)] for one in self.inputs]
        before = [
            np.asarray([old], now[0].dtype) if i == which else now[i] for i in range(len(now))
        ]
        added, gone = self._terms(*now)[0], self._terms(*before)[0]
        at = 0
        if isinstance(self.case.axis, int):
            at = divmod(place, self.case.shapes[0][1])[1 - self.case.axis]
        with np.errstate(over="ignore"):
            self._total.reshape(-1)[at] += added - gone
            if not self._whole:
                self._absolute.reshape(-1)[at] += np.abs(added) - np.abs(gone)
                self._squares.reshape(-1)[at] += np.square(added) - np.square(gone)
        self._renew(_at(at), self._result(self._total.reshape(-1)[at]))

    def bound(self, serial: bool = False, carried: str = "") -> Array | None:
        """None for a proof that is carried as usual, but for the root of a norm."""
        norm, usual = self.case.kind == "norm", carried in ("", bounds.accumulator(self.case.dtype))
        if self._whole or (self.proof and usual and not norm):
            return None
        if self.proof and usual:
            return np.asarray(bounds.root_bound(self.exact, self.case.dtype), np.float64)
        terms = bounds.Terms(self._total, self._absolute, self._squares, self.case.reduced)
        if norm:
            return np.asarray(bounds.norm_bound(terms, self.case.dtype, carried), np.float64)
        products = int(self.case.kind == "dot")
        return np.asarray(bounds.sum_bound(terms, self.case.dtype, serial, carried, products))


class Product(Answer):
    """A product of matrices: a change changes a row or a column."""

    def __init__(self, case: Case, inputs: tuple[Array, ...], proof: bool) -> None:
        super().__init__(case, inputs, proof)
        self._factors = [widened(one) for one in inputs]
        if case.dtype == "float64" and not proof:
            self._start(wide_product(*self._factors))
        else:
            self._start(np.asarray(self._factors[0] @ self._factors[1]))
        self._absolute = None if proof else np.abs(self._factors[0]) @ np.abs(self._factors[1])
        self._bound: Array | None = None

    def follow(self, which: int, place: int, old: Any) -> None:
        """The row of the result that an element of a is in, or the column of one of b."""
        row, column = divmod(place, self.inputs[which].shape[1])
        now, before = (
            float(widened(np.asarray(x))) for x in (self.inputs[which][row, column], old)
        )
        self._factors[which][row, column] = now
        if which:
            other, width = self._factors[0][:, row], self.exact.shape[1]
            part = slice(column, self.exact.size, width)
        else:
            other, width = self._factors[1][column], self.exact.shape[1]
            part = slice(row * width, (row + 1) * width, 1)
        step = other.astype(self.exact.dtype, copy=False)
        change = step * now - step * before
        if self._absolute is not None:
            self._absolute.reshape(-1)[part] += np.abs(other) * (abs(now) - abs(before))
        self._renew(part, self.exact.reshape(-1)[part] + change)

    def bound(self, serial: bool = False, carried: str = "") -> Array | None:
        """None for a proof; of a large one worked out once, since few of its terms change."""
        if self._absolute is None:
            return None
        if self._bound is None or self.exact.size < _SMALL:
            inner, dtype = self.inputs[0].shape[1], self.case.dtype
            self._bound = np.empty(self.exact.shape)
            in_pieces(
                lambda out, absolute, exact: np.copyto(
                    out, bounds.matmul_bound(absolute, exact, inner, dtype)
                ),
                *(self._bound, self._absolute, self.exact),
            )
        return self._bound


_KINDS: dict[str, type[Answer]] = {
    "elementwise": Elementwise,
    "transpose": Transposed,
    "sum": Summed,
    "dot": Summed,
    "norm": Summed,
    "matmul": Product,
}


def answer(
    case: Case, inputs: tuple[Array, ...], proof: bool, candidates: Array | None = None
) -> Answer:
    """The right answer of a case for these inputs."""
    if case.kind == "selection":
        assert candidates is not None
        return Selected(case, inputs, proof, candidates)
    return _KINDS[case.kind](case, inputs, proof)
