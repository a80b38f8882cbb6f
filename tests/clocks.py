"""A clock that is made up: a host and a device whose work takes what a test says, to the second.

A contender of a test calls ``launch`` for work on the device, and ``spend`` for work on the host;
``Player`` is one, and ``timed`` are the rows of a comparison by such a clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

import gpukern
from gpukern import _core
from gpukern.bench import filling
from gpukern.bench.contenders.registry import Peer
from gpukern.bench.model.case import make_case
from gpukern.bench.model.clock import Clock
from gpukern.bench.model.contender import Contender, DeviceSide
from gpukern.bench.model.limits import NONE, Limits
from gpukern.bench.model.row import Row
from gpukern.bench.model.settings import Effort, Settings
from gpukern.machine import conditions

US = 1e-6
CASE = make_case("add", 30)


@dataclass
class MadeUpEvent:
    """An event of the made-up device: where its work was."""

    clock: MadeUpClock
    at: float | None = None

    def record(self) -> None:
        self.clock.device = max(self.clock.device, self.clock.host) + self.clock.gap
        self.at = self.clock.device

    def synchronize(self) -> None:
        assert self.at is not None
        self.clock.host = max(self.clock.host, self.at)

    def seconds_since(self, earlier: MadeUpEvent, /) -> float:
        assert earlier.at is not None
        assert self.at is not None
        return self.at - earlier.at


@dataclass
class MadeUpClock:
    """``host`` is its time, ``device`` when the device will be done, ``aside`` when another stream.

    Two events with nothing between them lie ``gap`` apart. ``cold`` tells that the L2 cache has
    been emptied since the last work. ``occupying`` is what it costs the host to start a blocker.
    """

    simulated: bool = False
    gap: float = 2e-6
    ceilings: Limits = NONE
    occupying: float = 3e-6
    host: float = 100.0
    device: float = 0.0
    aside: float = 0.0
    cold: bool = False
    flushes: int = 0
    occupied: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.host

    def synchronize(self) -> None:
        _core.synchronize()
        self.host = max(self.host, self.device, self.aside)

    def event(self) -> MadeUpEvent:
        return MadeUpEvent(self)

    def occupy(self, seconds: float) -> None:
        self.occupied.append(seconds)
        begin = max(self.device, self.host)
        self.host += self.occupying
        self.device = begin + seconds

    def flush(self) -> None:
        self.flushes += 1
        self.launch(20e-6)
        self.cold = True

    def limits(self) -> Limits:
        return self.ceilings

    def spend(self, seconds: float) -> None:
        """The host is at work."""
        self.host += seconds

    def launch(self, warm: float, cold: float | None = None, issue: float = 1e-6) -> None:
        """Work for the device, which the host needs ``issue`` to start."""
        self.host += issue
        taken = cold if self.cold and cold is not None else warm
        self.device = max(self.device, self.host) + taken
        self.cold = False

    def launch_aside(self, seconds: float, issue: float = 1e-6) -> None:
        """The same on a stream that the default stream does not wait for."""
        self.host += issue
        self.aside = max(self.aside, self.host) + seconds


@dataclass
class Player:
    """A contender of add that is right, and takes what it is told on a made-up clock.

    ``host`` are the seconds of its calls from NumPy arrays, one after another and then the last
    again; ``warm`` and ``cold`` those of its work on the device.
    """

    clock: MadeUpClock
    name: str
    host: Iterable[float] = (50 * US,)
    warm: float | None = None
    cold: float | None = None
    issue: float = 1 * US
    load: float = 200 * US
    fetch: float = 100 * US
    calls: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._host = iter(self.host)
        self._latest = 0.0

    def end_to_end(self, *arrays: np.ndarray) -> np.ndarray:
        self.calls.append("host")
        self._latest = next(self._host, self._latest)
        self.clock.spend(self._latest)
        return np.add(*arrays)

    def run(self, inputs: object, out: object) -> None:
        self.calls.append("device")
        self.clock.launch(self.warm, self.cold, self.issue)
        _core.add(*inputs, out=out)

    def loaded(self, array: np.ndarray) -> object:
        self.clock.spend(self.load)
        return _core.to_device(array)

    def fetched(self, array: object) -> np.ndarray:
        self.clock.spend(self.fetch)
        return array.to_host()

    def peer(self) -> Peer:
        side = DeviceSide(self.loaded, self.run, self.fetched, lambda memory: memory)
        one = Contender(self.name, "v", self.end_to_end, side if self.warm is not None else None)
        return Peer(self.name, self.name, lambda op, dtype: [one], needs_gpu=False)


def timed(
    clock: Clock, *players: Player, effort: Effort | None = None, **more: object
) -> list[Row]:
    """The rows of a comparison by that clock."""
    baseline = more.pop("baseline", None)
    result = gpukern.Comparison(7, conditions.describe_machine(), baseline=baseline)
    settings = Settings(effort=effort or Effort(rounds=5), **more)
    entrants = [(player.peer(), None) for player in players]
    filling.fill(result, [CASE], entrants, settings, clock=clock)
    assert all(row.status == "right" for row in result.rows), result.rows
    return result.rows
