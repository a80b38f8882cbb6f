"""The real clock: the host's performance counter, and the device's own events."""

import math
import time
from functools import cached_property

import numpy as np

from gpukern import _core
from gpukern.bench.clock.ceilings import measure_limits
from gpukern.bench.clock.device import between
from gpukern.bench.model.clock import Clock
from gpukern.bench.model.limits import Limits

_BLOCKER_SIZE = 512
# As it is now: whoever is timed may replace what it finds in the module.
_counter = time.perf_counter


class MachineClock:
    """The clock of this machine and of the device in use."""

    def __init__(self) -> None:
        self.simulated = _core.backend() == "sim"

    @cached_property
    def _blocker(self) -> "Blocker":
        return Blocker(self)

    @cached_property
    def _flusher(self) -> "Flusher":
        return Flusher()

    def now(self) -> float:
        """The host's time in seconds, from any beginning."""
        return _counter()

    def synchronize(self) -> None:
        """Wait until the device has done all of its work, on every stream."""
        _core.synchronize()

    def event(self) -> "_core.Event":
        """A new event."""
        return _core.Event()

    def occupy(self, seconds: float) -> None:
        """Have the device busy for at least so long from now on, without waiting for it."""
        self._blocker.start(seconds)

    def flush(self) -> None:
        """Have the device empty its L2 cache, without waiting for it."""
        self._flusher.start()

    def limits(self) -> Limits:
        """What the device can do at most; nothing is known of the simulator."""
        return measure_limits(self)


class Blocker:
    """Keeps the device busy for as long as asked, with the slowest kernel there is."""

    def __init__(self, clock: Clock) -> None:
        side = np.zeros((_BLOCKER_SIZE, _BLOCKER_SIZE), np.float32)
        self._a = _core.to_device(side)
        self._out = _core.empty(side.shape, "float32")
        self._launch()
        self._each = min(between(clock, self._launch) for _ in range(5))

    def _launch(self) -> None:
        _core.matmul(self._a, self._a, out=self._out, variant="naive")

    def start(self, seconds: float) -> None:
        """Occupy the device for at least that long."""
        for _ in range(max(1, math.ceil(seconds / self._each))):
            self._launch()


class Flusher:
    """Empties the L2 cache by reading three times its size: nothing dirty is left behind.

    The row that reads has to be one whose loads stay in the cache: those of the default sum are the
    first to leave it, and would leave the contender's data where they are.
    """

    def __init__(self) -> None:
        cache = dict(_core.devices()[0]["attributes"]).get("L2_CACHE_SIZE", 0)
        words = max(3 * cache, 2**20) // 4
        self._words = _core.to_device(np.zeros(words, np.float32))
        self._out = _core.empty((), "float32")

    def start(self) -> None:
        """Start reading."""
        _core.sum(self._words, out=self._out, variant="vectorized")
