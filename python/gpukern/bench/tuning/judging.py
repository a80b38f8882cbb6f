"""One product by several variants: how many times as fast as the default each of them is.

The default is what the rule chooses where nothing was measured. It is timed in the same rounds as
the others, in turn, and a variant's speed is the median of the rounds' ratios; so a clock that
drifts changes both alike. Who is far behind is not timed again, neither in the next round nor for
larger products.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gpukern import _core
from gpukern.bench.clock.device import DeviceTimer, Pace, between
from gpukern.bench.clock.machine import MachineClock
from gpukern.bench.model.clock import Clock
from gpukern.bench.model.contender import Work
from gpukern.bench.tuning.products import Operands, Product

# A variant is worth a closer look, more rounds or more sizes, if it is as fast as that.
CLOSE = 0.95

# An even number: every other round is in the opposite order.
_ROUNDS = 6
_FIRST_ROUNDS = 2
# Behind the default by so much is not worth a round: of products whose call alone may take the host
# longer than the device, and of others.
_BEHIND_SHORT, _BEHIND, _SHORT = 2.0, 1.15, 100e-6
# Behind by so much is not tried with a larger product either.
_HOPELESS = 3.0
# Which variants are hopeless a small or a flat product does not tell.
_TELLING = 512
# Seconds that a sample measures, calls in it at most, and about the host's seconds for each; one
# that takes longer than _LONG is timed call by call.
_SAMPLE, _MOST_CALLS, _ISSUE, _LONG = 400e-6, 16, 10e-6, 20e-3


@dataclass(frozen=True)
class Verdict:
    """What was measured of a product: the default, and how many times as fast others are."""

    default: str
    speeds: Mapping[str, float]


# Of all variants, or of those that are named; None: it does not fit on the device, or has a default
# of another kind than the table knows.
Judge = Callable[[Product, Sequence[str] | None], Verdict | None]


@dataclass
class Contest:
    """The variants that products alike may go by, and those that are hopeless for large ones."""

    names: Sequence[str]
    hopeless: dict[str, int] = field(default_factory=dict)

    def candidates(self, product: Product) -> list[str]:
        """Who may be the fastest."""
        volume = product.m * product.n * product.k
        return [name for name in self.names if self.hopeless.get(name, volume) >= volume]

    def learn(self, product: Product, speeds: Mapping[str, float]) -> None:
        """Who is hopeless is not tried with larger products, if this one is of a telling shape."""
        if min(product.m, product.n, product.k) < _TELLING:
            return
        volume = product.m * product.n * product.k
        for name, speed in speeds.items():
            if speed < 1 / _HOPELESS:
                self.hopeless[name] = min(self.hopeless.get(name, volume), volume)


def contest(rows: Sequence[dict[str, Any]], dtype: str, aligned: bool) -> Contest:
    """The variants that run here and may be a default."""
    return Contest(
        [
            row["variant"]
            for row in rows
            if (row["op"], row["dtype"]) == ("matmul", dtype)
            and row["runs"]
            and not row["named"]
            and (aligned or row["alignment"] == 1)
        ]
    )


def race(
    timer: DeviceTimer, starts: Mapping[str, Callable[[], object]], default: str
) -> dict[str, float]:
    """How many times as fast as the default the others are."""
    single = {name: _single(timer.clock, start) for name, start in starts.items()}
    usual = single.pop(default)
    slack = _BEHIND if usual > _SHORT else _BEHIND_SHORT
    speeds = {name: usual / time for name, time in single.items()}
    rounds: dict[str, list[float]] = {
        name: [] for name, time in single.items() if time <= slack * usual
    }
    paces = {name: _pace(time) for name, time in [(default, usual), *single.items()]}

    def sample(name: str) -> float:
        return timer.sample(Work(starts[name]), paces[name]).warm

    for number in range(_ROUNDS):
        racing = [name for name in rounds if number < _FIRST_ROUNDS or speeds[name] >= CLOSE]
        if not racing:
            break
        order = [default, *racing][:: -1 if number % 2 else 1]
        times = {name: sample(name) for name in order}
        for name in racing:
            rounds[name].append(times[default] / times[name])
            speeds[name] = statistics.median(rounds[name])
    return speeds


def _single(clock: Clock, start: Callable[[], object]) -> float:
    """Seconds of a call that is not the first: that one loads the kernel."""
    start()
    return min(between(clock, start) for _ in range(2))


def _pace(single: float) -> Pace:
    """As many calls as fill a sample, and one with a cold cache, which nobody looks at."""
    calls = int(max(1, min(_MOST_CALLS, _SAMPLE / single)))
    return Pace(calls, 1, _ISSUE, long=single > _LONG)


def fit(product: Product, tile: tuple[int, int], multiprocessors: int) -> float:
    """Its results as a share of those of whole tiles, as many at a time as multiprocessors."""
    rows, columns = tile
    tiles = math.ceil(product.m / rows) * math.ceil(product.n / columns)
    whole = math.ceil(tiles / multiprocessors) * multiprocessors * rows * columns
    return product.m * product.n / whole


class DeviceJudge:
    """Judges on the device."""

    def __init__(self) -> None:
        self._timer, self._operands = DeviceTimer(MachineClock()), Operands()
        self._rows = _core.rows()
        self._tiles = {
            (row["dtype"], row["variant"]): row["tile"]
            for row in self._rows
            if row["op"] == "matmul"
        }
        attributes = dict(_core.devices()[0]["attributes"])
        self._multiprocessors = attributes["MULTIPROCESSOR_COUNT"]
        self._contests: dict[tuple[str, bool], Contest] = {}

    def __call__(self, product: Product, names: Sequence[str] | None = None) -> Verdict | None:
        """How fast the variants are, all that have a chance or those that are named."""
        try:
            return self._judged(product, names)
        except MemoryError:
            return None

    def fit(self, product: Product, variant: str) -> float:
        """How well the variant's tiles fit the product and the device."""
        return fit(product, self._tiles[product.way.dtype, variant], self._multiprocessors)

    def _judged(self, product: Product, names: Sequence[str] | None) -> Verdict | None:
        a, b, out = self._operands.of(product)
        place = _core.matmul_row(a, b, by_rule=True)
        if place is None or self._rows[place]["op"] != "matmul":
            return None
        default = self._rows[place]["variant"]
        contest = self._contest(product)
        chosen = contest.candidates(product) if names is None else names
        others = [name for name in chosen if name != default]
        if not others:
            return Verdict(default, {})
        starts = {
            name: partial(_core.matmul, a, b, out=out, variant=name) for name in [default, *others]
        }
        speeds = race(self._timer, starts, default)
        contest.learn(product, speeds)
        return Verdict(default, speeds)

    def _contest(self, product: Product) -> Contest:
        alike = (product.way.dtype, product.way.aligned)
        if alike not in self._contests:
            self._contests[alike] = contest(self._rows, *alike)
        return self._contests[alike]
