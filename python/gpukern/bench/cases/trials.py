"""The inputs of a case with their right answers, and how they change from call to call.

The ``proof`` is what is timed: inputs for which there is one right answer, and that it takes the
claimed precision to find. ``normal`` and ``positive`` inputs show how accurate a sum is that is
rounded; they are as wide, and the results are judged by their bounds.
"""

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.cases import bounds
from gpukern.bench.cases.answers import Answer, Selected, answer
from gpukern.bench.cases.drawing import ordinary
from gpukern.bench.cases.proof import Drawn, proof
from gpukern.bench.model.case import Case

Array = npt.NDArray[Any]

_ROUNDED = ("sum", "dot", "norm", "matmul")


@dataclass(frozen=True)
class Change:
    """An element of an input, by its place in the flattened array, and its next value."""

    which: int
    place: int
    value: Any


@dataclass
class Trial:
    """Inputs with their right answer; both follow the changes."""

    name: str
    drawn: Drawn
    expected: Answer
    _counts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._counts = [array.size for array in self.inputs]

    @property
    def inputs(self) -> tuple[Array, ...]:
        """The inputs as they are now."""
        return self.drawn.inputs

    def draw(self, rng: np.random.Generator) -> list[Change]:
        """Two changes for the next call, one in each of two inputs."""
        changes = []
        for turn in range(2):
            which = turn % len(self.inputs)
            place = self._place(rng, which, turn)
            changes.append(Change(which, place, self.drawn.redraw(rng, which, place)))
        return changes

    def _place(self, rng: np.random.Generator, which: int, turn: int) -> int:
        candidates = self.drawn.candidates
        if candidates is not None and turn:
            return int(candidates[-1])
        if candidates is not None and isinstance(self.expected, Selected) and rng.integers(2):
            # No place is it for long.
            return self.expected.runner_up() if rng.integers(2) else int(rng.choice(candidates))
        return int(rng.integers(self._counts[which]))

    def apply(self, change: Change) -> None:
        """Change the inputs, and bring the answer up to date."""
        flat = self.inputs[change.which].reshape(-1)
        old = flat[change.place].copy()
        flat[change.place] = change.value
        self.expected.follow(change.which, change.place, old)


def make_trials(case: Case, seed: int, only_proof: bool = False) -> tuple[Trial, ...]:
    """Fresh inputs, the proof first: the same case and seed always give the same ones."""
    label = f"{case.op} {case.shapes} {case.dtype}".encode()
    rng = np.random.default_rng([seed, zlib.crc32(label)])
    trials = [_trial("proof", case, proof(case, rng), True)]
    if not only_proof and case.kind in _ROUNDED and bounds.is_float(case.dtype):
        for name in ("normal", "positive"):
            trials.append(_trial(name, case, _ordinary(case, name == "positive", rng), False))
    return tuple(trials)


def _trial(name: str, case: Case, drawn: Drawn, exact: bool) -> Trial:
    return Trial(name, drawn, answer(case, drawn.inputs, exact, drawn.candidates))


def _ordinary(case: Case, positive: bool, rng: np.random.Generator) -> Drawn:
    scale = _scale(case, rng)
    inputs = tuple(ordinary(rng, shape, case.dtype, positive, scale) for shape in case.shapes)

    def redraw(mine: np.random.Generator, which: int, place: int) -> Any:
        return ordinary(mine, (1,), case.dtype, positive, scale)[0]

    return Drawn(inputs, redraw)


def _scale(case: Case, rng: np.random.Generator) -> float:
    """A random power of two; in float16 one with which the result is no infinity."""
    if case.dtype != "float16":
        return float(2.0 ** rng.integers(-12, 6, endpoint=True))
    terms = case.shapes[0][1] if case.kind == "matmul" else case.reduced
    room = 12 - max(terms - 1, 1).bit_length()
    if case.kind in ("dot", "matmul"):
        room //= 2
    return float(2.0 ** min(0, room))
