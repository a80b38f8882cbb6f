"""Times on the device, taken with events on the legacy default stream.

The work is queued behind a *blocker*, a kernel long enough for the host to hand over everything
before it ends; so the device never waits for the host between two events, however short the kernels
are. What two events lie apart with nothing between them is taken off a time that is a single
call's. Work that a contender puts on another stream is noticed, and then timed by the wall clock.
"""

import math
import statistics
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpukern import _core
from gpukern.bench.clock.wall import wall_synchronized
from gpukern.bench.model.contender import Work

_BATCH_SECONDS = 400e-6
_SIMULATED_BATCH = 0.005
_LARGEST_BATCH = 64
_COLD_SECONDS = 2e-3
_MOST_COLD = 6
_LONGEST_DELAY = 0.2
# No kernel is shorter: an event that comes sooner has not seen the work.
_SHORTEST = 0.3e-6
# So many of the latest empty pairs of events tell what lies between two events anyway; it drifts
# with the clocks, by as much as a tenth of a short kernel.
_GAPS = 21
# What may be left on the device after the last event before another stream is suspected.
_LEFTOVER = 30e-6
_BLOCKER_SIZE = 512
_COPY_BYTES = 2**28


@dataclass
class Pace:
    """How a contender is best timed, as found out by ``DeviceClock.pace``.

    ``issue`` is the host's time to start one call. ``blocked`` tells that the blocker hides it;
    not so for a contender that waits for the device itself, or works on a stream of its own.
    """

    calls: int
    colds: int
    issue: float
    blocked: bool = True
    own_stream: bool = False
    late: int = 0

    @property
    def note(self) -> str:
        """What a reader has to know of the figure."""
        if self.own_stream:
            return "works on a stream of its own: timed by the wall clock"
        return (
            "" if self.blocked else "waits for the device in its call: gaps between launches count"
        )


@dataclass(frozen=True)
class Sample:
    """One round on the device, seconds a call.

    ``cold`` finds nothing in the L2 cache, ``warm`` what the call before has left there;
    ``overhead`` is what the host needs to start a call. The simulator has warm times alone.
    """

    warm: float
    cold: float | None = None
    overhead: float | None = None


class Blocker:
    """Keeps the device busy for as long as asked, with the slowest kernel there is."""

    def __init__(self) -> None:
        side = np.zeros((_BLOCKER_SIZE, _BLOCKER_SIZE), np.float32)
        self._a = _core.to_device(side)
        self._out = _core.empty(side.shape, "float32")
        self._launch()
        times = [_between(self._launch) for _ in range(5)]
        self._each = min(times)

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


def _marks(count: int) -> list[tuple[_core.Event, _core.Event]]:
    return [(_core.Event(), _core.Event()) for _ in range(count)]


def _between(start: Callable[[], object], calls: int = 1) -> float:
    before, after = _core.Event(), _core.Event()
    before.record()
    for _ in range(calls):
        start()
    after.record()
    return after.seconds_since(before) / calls


def _clamp(value: float, least: int, most: int) -> int:
    return int(max(least, min(most, value)))


class DeviceClock:
    """Times work on the device; one for a whole comparison."""

    def __init__(self) -> None:
        self.simulated = _core.backend() == "sim"
        if not self.simulated:
            self._blocker = Blocker()
            self._flusher = Flusher()
            self._flush_issue = self._issue_time(Work(self._flusher.start))
            self._gaps: deque[float] = deque(self._measure_gaps(), maxlen=_GAPS)

    def pace(self, work: Work, rounds: int | None = None) -> Pace:
        """Find out how long the work takes and how it behaves. Runs it some ten times."""
        work.start()
        _core.synchronize()
        one = max(_between(work.start), 1e-9)
        if self.simulated:
            calls = 1 if rounds is not None else _clamp(_SIMULATED_BATCH / one, 1, 1000)
            return Pace(calls, 0, 0.0)
        pace = Pace(
            _clamp(_BATCH_SECONDS / one, 1, _LARGEST_BATCH),
            _clamp(_COLD_SECONDS / one, 1, _MOST_COLD),
            self._issue_time(work),
            own_stream=work.wait is not None or self._leftover(work, one) > max(_LEFTOVER, one / 4),
        )
        for _ in range(4):
            sample = self.sample(work, pace)
            if sample is not None:
                break
        if sample is not None and sample.warm < _SHORTEST:
            pace.own_stream = True
        elif sample is not None and not pace.own_stream:
            # Known without the gaps between launches now.
            pace.calls = _clamp(_BATCH_SECONDS / sample.warm, 1, _LARGEST_BATCH)
            pace.calls = _clamp(pace.calls, 1, max(1, int(0.005 / pace.issue)))
        return pace

    def sample(self, work: Work, pace: Pace) -> Sample | None:
        """One round; None where the host was too late, after which ``pace`` has adapted."""
        if self.simulated:
            return Sample(_between(work.start, pace.calls))
        if pace.own_stream:
            return self._by_wall(work, pace)
        return self._by_events(work, pace)

    def _by_events(self, work: Work, pace: Pace) -> Sample | None:
        start, flush = work.start, self._flusher.start
        marks = _marks(pace.colds + 2)
        events = 4e-6 * len(marks)
        delay = 1.5 * (pace.issue * (pace.calls + pace.colds + 1) + events)
        delay += 1.5 * self._flush_issue * (pace.colds + 1) + 100e-6
        _core.synchronize()
        if pace.blocked:
            self._blocker.start(delay)
        begin = time.perf_counter()
        if pace.calls > 1:
            start()  # brings the operands into the cache, as far as they fit
        marks[0][0].record()
        issued = time.perf_counter()
        for _ in range(pace.calls):
            start()
        issued = time.perf_counter() - issued
        marks[0][1].record()
        for before, after in marks[1:-1]:
            flush()
            before.record()
            start()
            after.record()
        self._mark_gap(marks[-1])
        spent = time.perf_counter() - begin
        _core.synchronize()
        if pace.blocked and spent > delay:
            self._adapt(pace, spent)
            return None
        pace.late = 0
        first, *colds, gap = (after.seconds_since(before) for before, after in marks)
        self._gaps.append(gap)
        cold = statistics.median(colds) - statistics.median(self._gaps)
        return Sample(first / pace.calls, max(cold, 1e-9), issued / pace.calls)

    def _adapt(self, pace: Pace, spent: float) -> None:
        """The blocker ended before everything was queued: slow host, or a call that waits."""
        pace.late += 1
        pace.issue = max(pace.issue * 2, spent / (pace.calls + 2 * pace.colds + 1))
        # Fewer calls are handed over in time more easily; the device queues about a thousand.
        pace.calls, pace.colds = max(1, pace.calls // 2), max(1, pace.colds // 2)
        if pace.late >= 3 or pace.issue > _LONGEST_DELAY:
            pace.blocked = False

    def _measure_gaps(self) -> list[float]:
        """What two events behind a flush, with nothing between them, lie apart."""
        marks = _marks(_GAPS)
        self._blocker.start(len(marks) * (self._flush_issue + 8e-6) * 1.5)
        for mark in marks:
            self._mark_gap(mark)
        return [after.seconds_since(before) for before, after in marks]

    def _mark_gap(self, mark: tuple[_core.Event, _core.Event]) -> None:
        self._flusher.start()
        mark[0].record()
        mark[1].record()

    def _by_wall(self, work: Work, pace: Pace) -> Sample:
        def batch() -> object:
            result = None
            for _ in range(pace.calls):
                result = work.start()
            return work.wait(result) if work.wait else None

        def one() -> object:
            result = work.start()
            return work.wait(result) if work.wait else None

        one()
        issue = self._issue_time(work)
        warm = wall_synchronized(batch) / pace.calls
        colds = []
        for _ in range(pace.colds):
            self._flusher.start()
            colds.append(wall_synchronized(one))
        return Sample(warm, statistics.median(colds), issue)

    def _issue_time(self, work: Work) -> float:
        times = []
        for _ in range(3):
            _core.synchronize()
            begin = time.perf_counter()
            result = work.start()
            times.append(time.perf_counter() - begin)
            if work.wait:
                work.wait(result)
        _core.synchronize()
        return min(times)

    def _leftover(self, work: Work, one: float) -> float:
        """Seconds that the device still works after everything on the default stream is done."""
        mark, times = _core.Event(), []
        for _ in range(3):
            _core.synchronize()
            for _ in range(_clamp(_COLD_SECONDS / one, 1, 8)):
                work.start()
            mark.record()
            mark.synchronize()
            begin = time.perf_counter()
            _core.synchronize()
            times.append(time.perf_counter() - begin)
        return min(times)


def copy_bandwidth() -> float:
    """Bytes/s, read and written together, of the driver's own copy of a large array."""
    source = _core.empty(_COPY_BYTES // 4, "float32")
    _between(lambda: _core.to_device(source))
    best = min(_between(lambda: _core.to_device(source), 4) for _ in range(5))
    return 2 * _COPY_BYTES / best
