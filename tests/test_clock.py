"""How times are taken, by a made-up clock: on the device, on the host, and by the machine's own."""

from __future__ import annotations

import gc
import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from clocks import US, MadeUpClock, Player, timed
from fakes import NEEDS_FAKE, answers
from gpukern import _core
from gpukern.bench.clock import ceilings, protocols, wall
from gpukern.bench.clock.composed import composed
from gpukern.bench.clock.device import DeviceTimer
from gpukern.bench.clock.machine import MachineClock
from gpukern.bench.model.clock import Clock
from gpukern.bench.model.contender import DeviceSide, Work
from gpukern.bench.model.settings import Effort
from gpukern.bench.model.split import PHASES


def clocked(**known: object) -> tuple[MadeUpClock, DeviceTimer]:
    clock = MadeUpClock(**known)
    return clock, DeviceTimer(clock)


class TestTheMachinesClock:
    def test_it_is_a_clock(self):
        clock: Clock = MachineClock()
        assert clock.simulated is (_core.backend() == "sim")
        before = clock.now()
        first, second = clock.event(), clock.event()
        first.record()
        second.record()
        second.synchronize()
        clock.synchronize()
        assert 0 <= second.seconds_since(first) < clock.now() - before + 1e-3

    def test_nothing_else_is_asked_for_the_time(self):
        """Made-up work takes hours in no time: whoever looked at a real clock would show it."""
        clock = MadeUpClock()
        player = Player(clock, "slow", host=(3600.0,), warm=7200.0, cold=7200.0, issue=1e-3)
        (row,) = timed(clock, player, effort=Effort(rounds=1))
        assert row.end_to_end.value == pytest.approx(3600)
        assert row.on_device.value == pytest.approx(7200)

    def test_the_bandwidth_of_a_copy_counts_what_is_read_and_what_is_written(self):
        clock = MadeUpClock(gap=4 * US)
        assert ceilings.copy_bandwidth(clock, 2**16) == pytest.approx(2 * 2**16 / US)


ON_A_DRIVER = """
import time
from gpukern.bench.clock.ceilings import copy_bandwidth
from gpukern.bench.clock.device import DeviceTimer
from gpukern.bench.clock.machine import MachineClock
from gpukern.bench.model.contender import Work

class Mark:
    def record(self):
        _core.synchronize()
        self.at = time.perf_counter()
    def synchronize(self):
        pass
    def seconds_since(self, earlier):
        return self.at - earlier.at

class Clock(MachineClock):
    def event(self):
        return Mark()

clock = Clock()
timer = DeviceTimer(clock)
x, out = gk.to_device(a), _core.empty(a.shape)
work = Work(lambda: _core.add(x, x, out=out))
sample = timer.sample(work, timer.pace(work))
each, launched = clock._blocker._each, []
clock._blocker._launch = lambda: launched.append(1)
counts = []
for seconds in (0.0, 2.5 * each, 399.5 * each):
    launched.clear()
    clock.occupy(seconds)
    counts.append(len(launched))
cache = dict(_core.devices()[0]["attributes"])["L2_CACHE_SIZE"]
print(json.dumps({
    "simulated": clock.simulated,
    "sample": [sample.warm, sample.cold, sample.overhead],
    "bandwidth": copy_bandwidth(clock, 2**20),
    "counts": counts,
    "emptied": clock._flusher._words.nbytes / cache,
}))
"""


@NEEDS_FAKE
def test_the_machines_clock_on_a_driver(on_fake):
    """The fake driver's events tell no time: the host's is in their place."""
    found = answers(on_fake(ON_A_DRIVER))
    assert not found["simulated"]
    assert min(found["sample"]) > 0
    assert found["bandwidth"] > 0
    assert found["counts"] == [1, 3, 400], "so many blockers as last at least so long"
    assert found["emptied"] >= 3


class TestOnTheDevice:
    def work(self, clock: MadeUpClock, *times: float, issue: float = US) -> tuple[Work, list[int]]:
        """Work that takes so long warm and cold, and a list with an element for each call."""
        calls: list[int] = []

        def start() -> None:
            calls.append(1)
            clock.launch(*times, issue=issue)

        return Work(start), calls

    @pytest.mark.parametrize("warm", [3 * US, 100 * US, 500 * US, 3e-3])
    def test_the_gap_between_two_events_is_taken_off_once(self, warm):
        for gap in (0.0, 2 * US, 9 * US):
            clock, timer = clocked(gap=gap)
            work, _ = self.work(clock, warm, 2 * warm)
            sample = timer.sample(work, timer.pace(work))
            assert sample.warm == pytest.approx(warm, rel=1e-6)
            assert sample.cold == pytest.approx(2 * warm, rel=1e-6)

    def test_a_gap_that_drifts_is_followed_and_one_that_sticks_out_is_not(self):
        clock, timer = clocked(gap=2 * US)
        work, _ = self.work(clock, 50 * US, 70 * US)
        pace = timer.pace(work)
        for _ in range(12):
            clock.gap = 4 * US
            sample = timer.sample(work, pace)
        assert sample.cold == pytest.approx(70 * US)

    @pytest.mark.parametrize(
        ("warm", "calls", "colds"), [(5 * US, 16, 6), (90 * US, 4, 6), (900 * US, 1, 2)]
    )
    def test_so_many_calls_a_sample(self, warm, calls, colds):
        clock, timer = clocked()
        work, made = self.work(clock, warm)
        pace = timer.pace(work)
        assert (pace.calls, pace.colds) == (calls, colds)
        made.clear()
        flushes = clock.flushes
        timer.sample(work, pace)
        assert len(made) == 1 + calls + colds, "one to warm the cache"
        assert clock.flushes - flushes == colds + 1

    def test_a_cold_time_is_the_median_of_a_few(self):
        clock, timer = clocked()
        colds = itertools.cycle([60 * US, 70 * US, 80 * US, 90 * US, 100 * US, 900 * US])
        work = Work(lambda: clock.launch(50 * US, next(colds) if clock.cold else None))
        assert timer.sample(work, timer.pace(work)).cold == pytest.approx(85 * US)

    def test_the_device_does_not_wait_for_the_host(self):
        """Kernels shorter than their launch: the blocker hides it, and is long enough to."""
        clock, timer = clocked()
        work, _ = self.work(clock, 2 * US, 3 * US, issue=10 * US)
        pace = timer.pace(work)
        sample = timer.sample(work, pace)
        assert sample.warm == pytest.approx(2 * US)
        assert sample.overhead == pytest.approx(10 * US)
        assert pace.note == ""

    def test_a_host_that_is_late_adapts_until_it_is_not(self):
        clock, timer = clocked()
        slow = itertools.chain([1 * US] * 40)
        work = Work(lambda: clock.launch(5 * US, 6 * US, next(slow, 30 * US)))
        pace = timer.pace(work)
        sample = timer.sample(work, pace)
        assert sample.warm == pytest.approx(5 * US)
        assert pace.blocked

    def test_handing_over_the_blocker_counts_too(self):
        """It runs from its first launch on, so that it may end that much sooner."""
        clock, timer = clocked()
        work, _ = self.work(clock, 5 * US, 6 * US)
        pace = timer.pace(work)
        clock.occupying = timer._blocking(pace, pace.calls + pace.colds + 1)
        seen = len(clock.occupied)
        assert timer.sample(work, pace).warm == pytest.approx(5 * US)
        assert len(clock.occupied) - seen > 1, "the first is taken again"

    def test_what_is_done_round_the_calls_is_not_in_their_time(self):
        """Inputs change before each call, and one result is put aside, which takes the cache."""
        clock, timer = clocked()
        told: list[str] = []
        calls = itertools.count()

        def keep(result: object) -> bool:
            told.append("keep")
            clock.launch(40 * US)
            return next(calls) % 5 == 0

        work = Work(
            lambda: (told.append("start"), clock.launch(50 * US, 70 * US)),
            begin=lambda count: told.append(f"begin {count}"),
            freshen=lambda: (told.append("freshen"), clock.launch(30 * US)),
            keep=keep,
        )
        pace = timer.pace(work)
        told.clear()
        sample = timer.sample(work, pace)
        assert (sample.warm, sample.cold) == (pytest.approx(50 * US), pytest.approx(70 * US))
        assert told[0] == f"begin {1 + pace.calls + pace.colds}"
        assert told[1::3] == ["freshen"] * (len(told) // 3)
        assert told[2::3] == ["start"] * (len(told) // 3)
        assert told[3::3] == ["keep"] * (len(told) // 3)

    def test_one_that_waits_in_its_call_is_noted_and_timed(self):
        clock, timer = clocked()

        def start() -> None:
            clock.launch(50 * US)
            clock.synchronize()

        pace = timer.pace(Work(start))
        sample = timer.sample(Work(start), pace)
        assert not pace.blocked
        assert "waits for the device" in pace.note
        assert sample.warm == pytest.approx(51 * US, rel=0.1)

    @pytest.mark.parametrize("seconds", [40 * US, 3e-3])
    def test_a_stream_of_its_own_is_noticed_and_timed_by_the_wall_clock(self, seconds):
        clock, timer = clocked()
        work = Work(lambda: clock.launch_aside(seconds))
        pace = timer.pace(work)
        assert "stream of its own" in pace.note
        sample = timer.sample(work, pace)
        assert sample.warm == pytest.approx(seconds, rel=0.05)
        assert sample.cold == pytest.approx(seconds, rel=0.05)

    def test_a_stream_of_its_own_is_noticed_beside_work_on_the_default_one(self):
        clock, timer = clocked()

        def start() -> None:
            clock.launch(20 * US)
            clock.launch_aside(1e-3)

        work = Work(start)
        pace = timer.pace(work)
        assert "stream of its own" in pace.note
        assert timer.sample(work, pace).cold == pytest.approx(1e-3, rel=0.05)

    def test_a_long_call_is_timed_once_a_round(self):
        clock, timer = clocked()
        calls: list[str] = []

        def start() -> None:
            calls.append("start")
            clock.launch(0.3, cold=0.3001)

        work = Work(start, freshen=lambda: calls.append("fresh"))
        pace = timer.pace(work)
        assert pace.long
        assert len(calls) <= 5
        calls.clear()
        sample = timer.sample(work, pace)
        assert calls == ["fresh", "start"]
        assert sample.cold == sample.warm == pytest.approx(0.3001, abs=3 * US)
        assert sample.overhead == pytest.approx(1 * US)

    def test_a_call_that_something_came_between_is_not_long(self):
        clock, timer = clocked()
        times = iter((50 * US, 0.5))
        assert not timer.pace(Work(lambda: clock.launch(next(times, 50 * US)))).long

    def test_a_long_call_on_a_stream_of_its_own_is_seen(self):
        clock, timer = clocked()

        def start() -> None:
            clock.launch(0.03)
            clock.launch_aside(0.3)

        work = Work(start)
        pace = timer.pace(work)
        assert pace.own_stream and not pace.long
        assert timer.sample(work, pace).cold == pytest.approx(0.3, rel=0.01)

    def test_a_contender_that_begins_to_wait_loses_the_device_times_before_and_no_others(self):
        clock = MadeUpClock()
        waits = itertools.count()

        @dataclass
        class Changed(Player):
            def run(self, inputs: object, out: object) -> None:
                super().run(inputs, out)
                if next(waits) > 150:
                    self.clock.synchronize()

        player = Changed(clock, "one", host=(0.002,), warm=50 * US, cold=60 * US)
        (row,) = timed(clock, player, effort=Effort(rounds=30))
        assert row.end_to_end.rounds == 30
        assert 1 <= row.on_device.rounds < 30
        assert any("waits for the device" in flag for flag in row.flags)

    def test_the_simulator_has_warm_times_alone(self):
        clock, timer = clocked(simulated=True, gap=0.0)
        work, made = self.work(clock, 100 * US)
        pace = timer.pace(work, rounds=3)
        assert (pace.calls, pace.colds, clock.flushes, clock.occupied) == (1, 0, 0, [])
        made.clear()
        sample = timer.sample(work, timer.pace(work))
        assert sample.cold is None and sample.overhead is None
        assert sample.warm == pytest.approx(100 * US, rel=0.02)


class TestByTheWallClock:
    def test_a_call_is_made_real_in_its_time_and_freed_after_it(self):
        clock, freed = MadeUpClock(), []

        class Lazy:
            def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
                clock.spend(3.0)
                return np.zeros(1)

            def __del__(self) -> None:
                freed.append(clock.host)
                clock.spend(10.0)

        assert wall.wall(clock, Lazy) == 3.0
        assert freed

    def test_each_of_five_short_calls_has_inputs_of_its_own(self):
        clock, inputs, seen = MadeUpClock(), itertools.count(), []

        def call() -> None:
            seen.append(fresh[-1])
            clock.spend(100 * US)

        fresh: list[int] = []

        def freshen() -> None:
            fresh.append(next(inputs))
            clock.spend(1.0)

        assert wall.end_to_end(clock, call, freshen) == pytest.approx(100 * US)
        assert seen == [0, 1, 2, 3, 4]

    def test_the_device_is_waited_for_before_and_after(self):
        clock = MadeUpClock()
        clock.launch(5.0)
        assert wall.wall_synchronized(clock, lambda: clock.launch(2.0)) == pytest.approx(2.0)

    def test_each_phase_of_a_composed_call_waits_for_the_one_before(self):
        clock, seen = MadeUpClock(), []

        def load(array: np.ndarray) -> str:
            clock.launch_aside(1.0, issue=0.5)
            return f"device {array.size}"

        def run(inputs: tuple[str, ...], out: str) -> str | None:
            seen.append((inputs, out))
            clock.launch_aside(7.0, issue=0.0)
            return "result" if returns else None

        def fetch(array: str) -> np.ndarray:
            seen.append(array)
            clock.spend(4.0)
            return np.zeros(1)

        host, blank = (np.zeros(3), np.zeros(3)), np.zeros(2)
        for returns in (False, True):
            seen.clear()
            taken = composed(clock, DeviceSide(load, run, fetch), host, blank)
            assert list(taken) == list(PHASES)
            # Two inputs are copied one after the other; the host starts the first in 0.5 s.
            assert list(taken.values()) == pytest.approx([2.5, 7.0, 4.0])
            lent = ("device 3", "device 3"), "device 2"
            assert seen == [lent, "result" if returns else "device 2"]

    def test_the_protocols_of_others(self):
        clock, calls = MadeUpClock(), []

        def start() -> None:
            calls.append(1)
            clock.launch(9.0 if len(calls) <= 10 else 10 * US, issue=0.0)

        assert protocols.leetcuda(clock, start) == pytest.approx(10 * US)
        assert len(calls) == 1010
        times = iter([11.0] + [1.0] * 9)
        mean = protocols.notes(clock, lambda: clock.spend(next(times)))
        assert mean == pytest.approx(2.0), "the first is in it"


class TestCollection:
    """Collections of garbage, of which none comes in the middle of a round."""

    def test_what_is_there_is_frozen_though_a_library_froze_something_before(self):
        before = gc.get_freeze_count()
        assert before > 0, "the suite has frozen what was there before"
        made = [[] for _ in range(1000)]
        with wall.no_collection():
            assert gc.get_freeze_count() >= before + len(made)

    def test_what_is_frozen_stays_so(self):
        assert gc.get_freeze_count() > 0, "the suite has frozen what was there before"
        with wall.no_collection():
            gc.collect()
        assert gc.get_freeze_count() > 0
        gc.unfreeze()
        try:
            with wall.no_collection():
                assert gc.get_freeze_count() > 0
            assert gc.get_freeze_count() == 0
        finally:
            gc.freeze()

    def test_garbage_collection_is_left_as_it_was(self):
        assert gc.isenabled()
        with pytest.raises(ZeroDivisionError), wall.no_collection():
            assert not gc.isenabled()
            _ = 1 / 0
        assert gc.isenabled()
