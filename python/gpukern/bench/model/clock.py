"""What times are read from: all that a comparison knows of time, so that tests can make it up."""

from typing import Any, Protocol

from gpukern.bench.model.limits import Limits


class Event(Protocol):
    """A point in the device's work, as ``gpukern.Event`` marks it."""

    def record(self) -> None:
        """Mark where the device's work is now."""

    def synchronize(self) -> None:
        """Wait until the device has come to the mark."""

    def seconds_since(self, earlier: Any, /) -> float:
        """Seconds on the device from an earlier event to this one; waits for both."""


class Clock(Protocol):
    """The host's time, the device's time, and what has to be done to the device to take it.

    ``simulated`` tells that the device is a CPU's simulation, whose times mean nothing: there is
    no cache to empty then, nothing to keep busy, and no limit.
    """

    @property
    def simulated(self) -> bool:
        """Whether the device's times are those of a simulation."""

    def now(self) -> float:
        """The host's time in seconds, from any beginning."""

    def synchronize(self) -> None:
        """Wait until the device has done all of its work, on every stream."""

    def event(self) -> Event:
        """A new event."""

    def occupy(self, seconds: float) -> None:
        """Have the device busy for at least so long from now on, without waiting for it."""

    def flush(self) -> None:
        """Have the device empty its L2 cache, without waiting for it."""

    def limits(self) -> Limits:
        """What the device can do at most."""
