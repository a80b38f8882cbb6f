"""Products of ours and of cuBLAS, through PyTorch, timed in turn on the same operands.

The operands are normal random numbers in device memory; the clock is that of ``gpukern.compare``.
Each result is checked before it is timed and after, at places of chance against float64, in an
output that holds NaN before the call. Without PyTorch, as on the simulator, our own cublas variant
or the default stands in its place, so that all of it runs.
"""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from gpukern import _core
from gpukern.bench.clock.device import DeviceTimer
from gpukern.bench.clock.machine import MachineClock
from gpukern.bench.model.contender import Work
from gpukern.bench.model.intervals import Figure, figure, ratio

PEER = "cuBLAS"
DEFAULT = "default"
ROUNDS = 9
_PLACES = 8
_UNITS = {"float32": 2.0**-24, "float64": 2.0**-53, "float16": 2.0**-11, "bfloat16": 2.0**-8}

Call = Callable[[], object]


@dataclass(frozen=True)
class Problem:
    """A product: operands and result on the device, and how many operations it takes."""

    name: str
    a: Any
    b: Any
    out: Any

    @property
    def dtype(self) -> str:
        return str(np.dtype(self.a.dtype).name)

    @property
    def operations(self) -> int:
        return 2 * int(self.a.shape[-1]) * int(self.out.size)


@dataclass
class Outcome:
    """The seconds of each contender, round by round, and what is wrong with whom."""

    section: str
    name: str
    dtype: str
    operations: int
    samples: dict[str, dict[int, float]] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)

    def time(self, name: str) -> Figure | None:
        return figure([self.samples.get(name, {}).values()])

    def seconds(self, name: str) -> float:
        found = self.time(name)
        return found.value if found else float("inf")

    def speed(self, name: str, over: str = PEER) -> Figure | None:
        """How many times as fast as another one."""
        return ratio([self.samples.get(over, {})], [self.samples.get(name, {})])

    def best(self, names: Sequence[str]) -> str | None:
        return min((n for n in names if self.samples.get(n)), key=self.seconds, default=None)

    def rate(self, name: str) -> float:
        """Operations a second."""
        return self.operations / self.seconds(name)

    def to_dict(self) -> dict[str, Any]:
        return {
            "section": self.section,
            "problem": self.name,
            "dtype": self.dtype,
            "operations": self.operations,
            "seconds": {name: list(times.values()) for name, times in self.samples.items()},
            "wrong": self.wrong,
        }


def own_variants(dtype: str, among: Collection[str] | None = None) -> list[str]:
    """The variants of matmul that are written here and run here, in the order of the ladder.

    Those ``among`` some names, or those that may be a default.
    """
    return [
        row["variant"]
        for row in _core.rows()
        if (row["op"], row["dtype"]) == ("matmul", dtype)
        and row["runs"]
        and row["symbol"]
        and (row["variant"] in among if among is not None else not row["named"])
    ]


def peer(problem: Problem) -> Call:
    """The product by cuBLAS, as PyTorch calls it."""
    if _core.backend() == "sim":
        return partial(_core.matmul, problem.a, problem.b, out=problem.out)
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    a, b, out = (torch.from_dlpack(each) for each in (problem.a, problem.b, problem.out))
    return partial(torch.matmul, a, b, out=out)


def calls(problem: Problem, names: Sequence[str]) -> dict[str, Call]:
    """The peer and variants of ours by name, or the default."""
    found = {PEER: peer(problem)}
    for name in names:
        variant = None if name == DEFAULT else name
        found[name] = partial(_core.matmul, problem.a, problem.b, out=problem.out, variant=variant)
    return found


class Arena:
    """Times contenders in turn, with one clock."""

    def __init__(self, small: bool, seed: int) -> None:
        self.rounds = 1 if small else ROUNDS
        self._chance = random.Random(seed)
        self._timer = DeviceTimer(MachineClock())
        self.outcomes: list[Outcome] = []

    def hold(self, section: str, problem: Problem, names: Sequence[str]) -> Outcome:
        """Check everybody, time them in rounds of random order, and check them again."""
        outcome = Outcome(section, problem.name, problem.dtype, problem.operations)
        starts = calls(problem, names)
        self._check(outcome, problem, starts)
        works = {name: Work(start) for name, start in starts.items() if name not in outcome.wrong}
        paces = {name: self._timer.pace(work) for name, work in works.items()}
        order = list(works)
        for turn in range(self.rounds):
            self._chance.shuffle(order)
            for name in order:
                sample = self._timer.sample(works[name], paces[name])
                outcome.samples.setdefault(name, {})[turn] = sample.warm
        self._check(outcome, problem, {name: starts[name] for name in works})
        self.outcomes.append(outcome)
        return outcome

    def _check(self, outcome: Outcome, problem: Problem, starts: Mapping[str, Call]) -> None:
        for name, start in starts.items():
            share = error(problem, start, self._chance)
            if not share <= 1:
                outcome.wrong[name] = f"{share:.2g} times the bound of its error"
                outcome.samples.pop(name, None)


def error(problem: Problem, start: Call, chance: random.Random) -> float:
    """The largest error of a call at places of chance, as a share of its bound.

    The bound is what sums in float32 (of float64 in float64) in any order keep, with one rounding
    to the result's dtype; tf32 does not.
    """
    problem.out[...] = float("nan")
    start()
    got, want, terms = at_places(problem, chance)
    unit, length = _UNITS[problem.dtype], int(problem.a.shape[-1])
    carried = min(unit, _UNITS["float32"]) * max(8.0, length**0.5)
    with np.errstate(invalid="ignore"):
        share = np.abs(got - want) / (carried * terms + unit * np.abs(want) + 1e-30)
    return float(share.max()) if np.isfinite(share).all() else float("inf")


def at_places(problem: Problem, chance: random.Random) -> tuple[Any, Any, Any]:
    """Some elements of the result, what they should be, and the sums of |a| |b| behind them."""
    a, b, out = problem.a, problem.b, problem.out
    stack = [tuple(chance.randrange(n) for n in out.shape[:-2]) for _ in range(2)]
    parts = [_some(a[_own(a, at)], b[_own(b, at)], out[at], chance) for at in set(stack)]
    return tuple(np.concatenate(each) for each in zip(*parts, strict=True))


def _own(operand: Any, at: tuple[int, ...]) -> tuple[int, ...]:
    """Where an operand of a stack has its part: one that is broadcast has fewer axes."""
    return at[len(at) - (operand.ndim - 2) :] if operand.ndim > 2 else ()


def _some(a: Any, b: Any, out: Any, chance: random.Random) -> tuple[Any, Any, Any]:
    rows = [chance.randrange(a.shape[0]) for _ in range(_PLACES)]
    columns = [chance.randrange(b.shape[1]) for _ in range(_PLACES)]
    left = np.stack([_wide(a[row]) for row in rows])
    right = np.stack([_wide(b[:, column]) for column in columns], axis=1)
    got = np.array([[float(out[row, column]) for column in columns] for row in rows])
    return got.ravel(), (left @ right).ravel(), (np.abs(left) @ np.abs(right)).ravel()


def _wide(line: Any) -> Any:
    return np.asarray(line.to_host()).astype(np.float64)
