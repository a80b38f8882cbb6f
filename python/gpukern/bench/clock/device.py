"""Times on the device, taken with events on the legacy default stream.

Each call lies between two events of its own, so that its inputs can be changed before it, outside
of the time. The work is queued behind a *blocker*, a kernel long enough for the host to hand over
everything before it ends; so the device never waits for the host between two events, however short
the kernels are. What two events lie apart with nothing between them is taken off once of what they
measure. Work that a contender puts on another stream is noticed, and then timed by the wall clock.
"""

import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from gpukern.bench.clock.wall import wall_synchronized
from gpukern.bench.model.clock import Clock, Event
from gpukern.bench.model.contender import Work

_BATCH_SECONDS = 400e-6
_SIMULATED_BATCH = 0.005
# Each call has its inputs changed, which takes the host longer than a short kernel takes.
_LARGEST_BATCH = 16
_COLD_SECONDS = 2e-3
_MOST_COLD = 6
_LONGEST_DELAY = 0.2
# A clock's resolution: what comes out shorter is not known.
_LEAST = 1e-9
# No kernel is shorter: an event that comes sooner has not seen the work.
_SHORTEST = 0.3e-6
# So many of the latest empty pairs of events tell what lies between two events anyway; it drifts
# with the clocks, by as much as a tenth of a short kernel.
_GAPS = 21
# A call as long as that is timed once a round: what it finds in the cache when it begins, and what
# lies between two events, are less than a thousandth of it.
_LONG = 20e-3
# What may be left on the device after the last event before another stream is suspected.
_LEFTOVER = 30e-6


@dataclass
class Pace:
    """How a contender is best timed, as found out by ``DeviceTimer.pace``.

    ``issue`` is the host's time to start one call, ``fresh`` that to change its inputs before.
    ``blocked`` tells that the blocker hides it;
    not so for a contender that waits for the device itself, or works on a stream of its own.
    ``long`` calls are timed one by one.
    """

    calls: int
    colds: int
    issue: float
    fresh: float = 0.0
    blocked: bool = True
    own_stream: bool = False
    late: int = 0
    long: bool = False

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


def between(clock: Clock, start: Callable[[], object], calls: int = 1) -> float:
    """Seconds a call between two events, as they come: what lies between events is in it."""
    before, after = clock.event(), clock.event()
    before.record()
    for _ in range(calls):
        start()
    after.record()
    return after.seconds_since(before) / calls


def _clamp(value: float, least: int, most: int) -> int:
    return int(max(least, min(most, value)))


class DeviceTimer:
    """Times work on the device by a clock; one for a whole comparison."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        if not clock.simulated:
            self._flush_issue = self._issue_time(Work(clock.flush))
            self._gaps: deque[float] = deque(self._measure_gaps(), maxlen=_GAPS)

    def pace(self, work: Work, rounds: int | None = None) -> Pace:
        """Find out how long the work takes and how it behaves. Runs it some ten times."""
        work.start()
        self.clock.synchronize()
        one = max(between(self.clock, work.start), _LEAST)
        if self.clock.simulated:
            calls = 1 if rounds is not None else _clamp(_SIMULATED_BATCH / one, 1, 1000)
            return Pace(calls, 0, 0.0)
        if one > _LONG:  # or something came between
            one = min(one, between(self.clock, work.start))
        if one > _LONG and self._leftover(work, one, 1) <= one / 4:
            return Pace(0, 1, 0.0, long=True)
        work.begin(4)
        pace = Pace(
            _clamp(_BATCH_SECONDS / one, 1, _LARGEST_BATCH),
            _clamp(_COLD_SECONDS / one, 1, _MOST_COLD),
            self._issue_time(work),
            self._issue_time(Work(work.freshen)),
            own_stream=self._leftover(work, one, 3) > max(_LEFTOVER, one / 4),
        )
        sample = self.sample(work, pace)
        if sample.warm < _SHORTEST:
            pace.own_stream = True
        elif not pace.own_stream:
            # Known without the gaps between launches now.
            pace.calls = _clamp(_BATCH_SECONDS / sample.warm, 1, _LARGEST_BATCH)
            pace.calls = _clamp(pace.calls, 1, max(1, int(0.005 / (pace.issue + pace.fresh))))
        return pace

    def sample(self, work: Work, pace: Pace) -> Sample:
        """One round. Where the host was too late ``pace`` adapts, and it is taken again."""
        if self.clock.simulated:
            return self._simulated(work, pace)
        if pace.long:
            return self._alone(work)
        if pace.own_stream:
            return self._by_wall(work, pace)
        sample = None
        while sample is None:  # up to three times, since it is not blocked then
            sample = self._by_events(work, pace)
        return sample

    def _simulated(self, work: Work, pace: Pace) -> Sample:
        work.begin(pace.calls)
        marks = self._marks(pace.calls)
        for mark in marks:
            self._between(work, mark, cold=True)
        return Sample(sum(after.seconds_since(before) for before, after in marks) / pace.calls)

    def _alone(self, work: Work) -> Sample:
        """A long call, which is the same whatever is in the cache when it begins."""
        work.begin(1)
        marks = self._marks(1)
        self.clock.synchronize()
        self.clock.occupy(_LONG / 10)
        issued = self._between(work, marks[0], cold=True)
        self.clock.synchronize()
        spent = marks[0][1].seconds_since(marks[0][0])
        return Sample(spent, spent, issued)

    def _by_events(self, work: Work, pace: Pace) -> Sample | None:
        clock = self.clock
        work.begin(1 + pace.calls + pace.colds)
        marks = self._marks(pace.calls + pace.colds + 1)
        delay = self._blocking(pace, len(marks))
        clock.synchronize()
        # From before the blocker is handed over: it may end so long after that.
        begin = clock.now()
        if pace.blocked:
            clock.occupy(delay)
        self._warm_up(work)
        issued = sum(self._between(work, mark, cold=False) for mark in marks[: pace.calls])
        for mark in marks[pace.calls : -1]:
            self._between(work, mark, cold=True)
        self._mark_gap(marks[-1])
        spent = clock.now() - begin
        clock.synchronize()
        if pace.blocked and spent > delay:
            self._adapt(pace, spent)
            return None
        pace.late = 0
        *times, gap = (after.seconds_since(before) for before, after in marks)
        self._gaps.append(gap)
        gap = statistics.median(self._gaps)
        warm = statistics.median(times[: pace.calls]) - gap
        cold = statistics.median(times[pace.calls :]) - gap
        return Sample(max(warm, _LEAST), max(cold, _LEAST), issued / pace.calls)

    def _warm_up(self, work: Work) -> None:
        """A call that brings the operands into the cache, as far as they fit."""
        work.freshen()
        work.keep(work.start())

    def _between(self, work: Work, mark: tuple[Event, Event], cold: bool) -> float:
        """One call between two events, and the host's time to start it."""
        work.freshen()
        if cold and not self.clock.simulated:
            self.clock.flush()
        mark[0].record()
        begin = self.clock.now()
        result = work.start()
        issued = self.clock.now() - begin
        mark[1].record()
        if work.keep(result) and not cold:
            # Putting it aside has taken the cache.
            self._warm_up(work)
        return issued

    def _blocking(self, pace: Pace, marks: int) -> float:
        """Seconds that the device has to be busy for everything of a round to be queued behind."""
        # One more call after a result is put aside.
        seconds = (pace.issue + pace.fresh) * (pace.calls + pace.colds + 2) + 8e-6 * marks
        return 1.5 * (seconds + self._flush_issue * (pace.colds + 1)) + 100e-6

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
        marks = self._marks(_GAPS)
        self.clock.occupy(len(marks) * (self._flush_issue + 8e-6) * 1.5)
        for mark in marks:
            self._mark_gap(mark)
        return [after.seconds_since(before) for before, after in marks]

    def _marks(self, count: int) -> list[tuple[Event, Event]]:
        return [(self.clock.event(), self.clock.event()) for _ in range(count)]

    def _mark_gap(self, mark: tuple[Event, Event]) -> None:
        self.clock.flush()
        mark[0].record()
        mark[1].record()

    def _by_wall(self, work: Work, pace: Pace) -> Sample:
        issue = self._issue_time(work)
        work.begin(1 + pace.calls + pace.colds)
        self._waited_for(work, cold=False)
        warm = [self._waited_for(work, cold=False) for _ in range(pace.calls)]
        colds = [self._waited_for(work, cold=True) for _ in range(pace.colds)]
        return Sample(statistics.median(warm), statistics.median(colds), issue)

    def _waited_for(self, work: Work, cold: bool) -> float:
        """Seconds of one call by the wall clock."""
        results = []

        def call() -> None:
            results.append(work.start())

        work.freshen()
        if cold:
            self.clock.flush()
        spent = wall_synchronized(self.clock, call)
        if work.keep(results.pop()) and not cold:
            self._warm_up(work)
        return spent

    def _issue_time(self, work: Work) -> float:
        times = []
        for _ in range(3):
            self.clock.synchronize()
            begin = self.clock.now()
            work.start()
            times.append(self.clock.now() - begin)
        self.clock.synchronize()
        return min(times)

    def _leftover(self, work: Work, one: float, tries: int) -> float:
        """Seconds that the device still works after everything on the default stream is done."""
        mark, times = self.clock.event(), []
        for _ in range(tries):
            self.clock.synchronize()
            for _ in range(_clamp(_COLD_SECONDS / one, 1, 8)):
                work.start()
            mark.record()
            mark.synchronize()
            begin = self.clock.now()
            self.clock.synchronize()
            times.append(self.clock.now() - begin)
        return min(times)
