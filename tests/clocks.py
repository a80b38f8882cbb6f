"""A clock that is made up: a host and a device whose work takes what a test says, to the second.

A contender of a test calls ``launch`` for work on the device, and ``spend`` for work on the host.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpukern import _core
from gpukern.bench.model.limits import NONE, Limits


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
