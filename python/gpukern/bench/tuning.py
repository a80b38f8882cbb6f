"""Which variants of matmul are the fastest on this device: what ``gpukern tune`` measures.

Products are gone through in an order that is always the same, from a coarse grid of sizes to a fine
one, until the time is up; so every budget makes a table of all ways to lie, and a longer one a
finer table. The variants of a product are timed in turn, round by round, on operands in device
memory that are normal random numbers. What is far behind is not timed again, neither in the next
round nor for larger products.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from gpukern import _core
from gpukern.bench.clock.device import DeviceTimer, Pace, between
from gpukern.bench.clock.machine import MachineClock
from gpukern.bench.model.clock import Clock
from gpukern.bench.model.contender import Work

DTYPES = ("float32", "bfloat16", "float16", "float64")
HEADING = "# gpukern matmul table 1"

_SEED = 15
_ROUNDS = 5
# From coarse to fine: each has the sizes of the one before, and more.
_STEPS = (16, 4, 2)
_LEAST_SIZE, _MOST_SIZE = 64, 16384
# What is larger takes too long, and runs as fast as what is just smaller.
_MOST_PRODUCTS = 8192**3
# Behind the fastest by so much is not worth another round, and by so much not a larger product.
_BEHIND, _HOPELESS = 1.3, 3.0
# Which variants are hopeless a small or a flat product does not tell.
_TELLING = 512
# What a line may name.
_MOST_NAMES = 8
# So many elements are drawn; a longer operand repeats them.
_DRAWN = 2**22


@dataclass(frozen=True)
class Way:
    """How the operands of a product lie: transposed or not, and rows of whole 16 bytes or not."""

    dtype: str
    a_transposed: bool
    b_transposed: bool
    aligned: bool

    @property
    def text(self) -> str:
        """As a line of the table has it."""
        lie = "nt"[self.a_transposed] + "nt"[self.b_transposed]
        return f"{self.dtype} {lie} {16 if self.aligned else 1}"


@dataclass(frozen=True)
class Product:
    """A product to be measured."""

    way: Way
    m: int
    n: int
    k: int

    @property
    def text(self) -> str:
        """As a line of the table has it."""
        return f"{self.way.text} {self.m} {self.n} {self.k}"


def products(dtypes: Sequence[str]) -> Iterator[Product]:
    """Every product, in the order in which they are measured: smaller ones first in each grid."""
    done: set[tuple[int, ...]] = set()
    for step in _STEPS:
        grid = itertools.product(_sizes(step), repeat=3)
        shapes = sorted(
            (each for each in grid if each not in done and math.prod(each) <= _MOST_PRODUCTS),
            key=lambda each: (math.prod(each), each),
        )
        done.update(shapes)
        for dtype, shape in itertools.product(dtypes, shapes):
            for way in _ways(dtype):
                m, n, k = (size - (not way.aligned) for size in shape)
                yield Product(way, m, n, k)


def _ways(dtype: str) -> Iterator[Way]:
    for aligned, a, b in itertools.product((True, False), (False, True), (False, True)):
        yield Way(dtype, a, b, aligned)


def _sizes(step: int) -> list[int]:
    return [_LEAST_SIZE * step**i for i in range(int(math.log(_MOST_SIZE / _LEAST_SIZE, step)) + 1)]


class Operands:
    """Device memory of one dtype at a time, that the operands of every product lie in."""

    def __init__(self) -> None:
        few = np.random.default_rng(_SEED).standard_normal(_DRAWN)
        self._normal = few.astype(np.float32)
        self._drawn: Any = None
        self._held: list[Any] = [None] * 3
        self._dtype = ""

    def of(self, product: Product) -> tuple[Any, Any, Any]:
        """The operands and the result."""
        way, m, n, k = product.way, product.m, product.n, product.k
        self._change(way.dtype)
        a, b, c = (self._room(i, count) for i, count in enumerate((m * k, k * n, m * n)))
        return (
            a.reshape(k, m).T if way.a_transposed else a.reshape(m, k),
            b.reshape(n, k).T if way.b_transposed else b.reshape(k, n),
            c.reshape(m, n),
        )

    def _change(self, dtype: str) -> None:
        if dtype != self._dtype:
            self._held = [None] * 3
            self._drawn = _core.to_device(self._normal).astype(dtype)
            self._dtype = dtype

    def _room(self, number: int, count: int) -> Any:
        """So many elements; memory that is too short is given back, and taken longer."""
        held = self._held[number]
        if held is None or held.size < count:
            held = self._held[number] = None
            held = _core.empty((count,), self._dtype)
            for first in range(0, count, _DRAWN):
                held[first : first + _DRAWN] = self._drawn[: min(_DRAWN, count - first)]
            self._held[number] = held
        return held[:count]


@dataclass
class Contest:
    """The variants of a dtype, and those that are hopeless for large products."""

    rows: list[dict[str, Any]]
    hopeless: dict[str, int] = field(default_factory=dict)

    def candidates(self, product: Product) -> list[str]:
        """Who may be the fastest, the last in the ladder first."""
        volume = product.m * product.n * product.k
        return [
            row["variant"]
            for row in reversed(self.rows)
            if (product.way.aligned or row["alignment"] == 1)
            and self.hopeless.get(row["variant"], volume) >= volume
        ]

    def give_up(self, name: str, product: Product) -> None:
        """It is not tried with larger products, if this one is of a shape that tells."""
        if min(product.m, product.n, product.k) < _TELLING:
            return
        volume = product.m * product.n * product.k
        self.hopeless[name] = min(self.hopeless.get(name, volume), volume)


def contest(dtype: str) -> Contest:
    """The variants that run here and may be a default."""
    return Contest(
        [
            row
            for row in _core.rows()
            if (row["op"], row["dtype"]) == ("matmul", dtype) and row["runs"] and not row["named"]
        ]
    )


@dataclass
class _Runner:
    name: str
    work: Work
    pace: Pace
    times: list[float]

    @property
    def time(self) -> float:
        return statistics.median(self.times)


def ranking(
    timer: DeviceTimer, starts: Mapping[str, Callable[[], object]]
) -> list[tuple[str, float]]:
    """The names and their seconds, from the fastest on, timed in turn."""
    single = {name: _single(timer.clock, start) for name, start in starts.items()}
    least = min(single.values())
    out = [(name, time) for name, time in single.items() if time > _HOPELESS * least]
    runners = [
        _Runner(name, Work(starts[name]), timer.pace(Work(starts[name])), [])
        for name in starts
        if single[name] <= _HOPELESS * least
    ]
    for _ in range(_ROUNDS):
        for runner in runners:
            runner.times.append(timer.sample(runner.work, runner.pace).warm)
        best = min(runner.time for runner in runners)
        out += [(each.name, each.time) for each in runners if each.time > _BEHIND * best]
        runners = [each for each in runners if each.time <= _BEHIND * best]
    return sorted([(each.name, each.time) for each in runners] + out, key=lambda one: one[1])


def _single(clock: Clock, start: Callable[[], object]) -> float:
    """Seconds of a call that is not the first: that one loads the kernel."""
    start()
    return min(between(clock, start) for _ in range(2))


Measure = Callable[[Product, Sequence[str]], list[tuple[str, float]]]


def measuring() -> Measure:
    """What measures the variants of a product on the device."""
    timer, operands = DeviceTimer(MachineClock()), Operands()

    def measure(product: Product, names: Sequence[str]) -> list[tuple[str, float]]:
        a, b, out = operands.of(product)
        starts = {name: partial(_core.matmul, a, b, out=out, variant=name) for name in names}
        return ranking(timer, starts)

    return measure


def tune(
    dtypes: Sequence[str],
    measure: Measure,
    contests: dict[str, Contest],
    is_over: Callable[[Product], bool],
) -> Iterator[str]:
    """Lines of a table, as they are measured, until ``is_over`` says so of the product to come."""
    for product in products(dtypes):
        if is_over(product):
            return
        contest = contests[product.way.dtype]
        names = contest.candidates(product)
        if not names:
            continue
        try:
            ranked = measure(product, names)
        except MemoryError:
            continue  # it does not fit on this device, and what is nearest has to do
        best = ranked[0][1]
        for name, time in ranked:
            if time > _HOPELESS * best:
                contest.give_up(name, product)
        listed = [name for name, time in ranked if time <= _HOPELESS * best]
        yield f"{product.text} {' '.join(listed[:_MOST_NAMES])}"


def table(device: str, conditions: Iterable[str], lines: Iterable[str]) -> str:
    """The whole file; lines in an order that tells nothing of how long they took."""
    head = [HEADING, f"# device: {device}", *(f"# {each}" for each in conditions)]
    return "\n".join([*head, *sorted(lines, key=_order)]) + "\n"


def _order(line: str) -> tuple[Any, ...]:
    dtype, lie, alignment, *sizes = line.split()[:6]
    return dtype, lie, -int(alignment), *map(int, sizes)


def kept(text: str, device: str, dtypes: Sequence[str]) -> list[str]:
    """The lines of an earlier table of this device that are of other dtypes than these."""
    lines = text.splitlines()
    if HEADING not in lines[:1] or f"# device: {device}" not in lines:
        return []
    words = ((line, line.split()) for line in lines if not line.startswith("#"))
    return [line for line, split in words if split and split[0] not in dtypes]
