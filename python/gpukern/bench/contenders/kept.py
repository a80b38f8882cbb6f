"""What an adapter keeps from one call to the next, as a careful user of its library would."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from gpukern.bench.model.case import AXES, KINDS

Buffer = TypeVar("Buffer")

# Operations whose result is an array, which is worth keeping: a single number is not.
WITH_ARRAYS = frozenset(
    op
    for op, kind in KINDS.items()
    if kind in ("elementwise", "matmul", "transpose") or isinstance(AXES.get(op), int)
)


class Kept(Generic[Buffer]):
    """Buffers by the place that they are for: each is kept until another shape or dtype comes."""

    def __init__(self, make: Callable[[tuple[int, ...], Any], Buffer]) -> None:
        self._make = make
        self._held: dict[Hashable, tuple[object, Buffer]] = {}

    def __call__(self, place: Hashable, shape: Sequence[int], dtype: Any) -> Buffer:
        """The buffer for a place; its contents are those of the call before."""
        wanted = tuple(shape), dtype
        if place not in self._held or self._held[place][0] != wanted:
            # The old one goes before the new one comes, so that there is room for it.
            self._held.pop(place, None)
            self._held[place] = wanted, self._make(*wanted)
        return self._held[place][1]


class Prepared:
    """``run`` of a contender whose arguments are made ready once for a set of arrays.

    ``prepare`` takes the inputs and the output and returns what starts the work on them.
    """

    def __init__(self, prepare: Callable[[Sequence[Any], Any], Callable[[], object]]) -> None:
        self._prepare = prepare
        self._arrays: tuple[Sequence[Any], Any] | None = None
        self._start: Callable[[], object] = _nothing

    def __call__(self, inputs: Sequence[Any], out: Any) -> None:
        """Start the work; the same objects as in the call before are the same arrays."""
        if self._arrays is None or self._arrays[0] is not inputs or self._arrays[1] is not out:
            self._start = self._prepare(inputs, out)
            self._arrays = inputs, out
        self._start()


def _nothing() -> None:
    """Before the first call."""
