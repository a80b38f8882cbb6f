"""The comparison's times, by a made-up clock: what is taken, how often, and what comes of it."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pytest

import gpukern
from clocks import MadeUpClock
from fakes import NEEDS_FAKE, answers
from gpukern import _core
from gpukern.bench import filling
from gpukern.bench.clock import ceilings, protocols, wall
from gpukern.bench.clock.device import DeviceTimer
from gpukern.bench.clock.machine import MachineClock
from gpukern.bench.contenders.registry import Peer
from gpukern.bench.model import intervals
from gpukern.bench.model.case import make_case
from gpukern.bench.model.clock import Clock
from gpukern.bench.model.contender import Contender, DeviceSide, Work
from gpukern.bench.model.limits import Limits
from gpukern.bench.model.row import Row
from gpukern.bench.model.settings import Effort, Settings
from gpukern.machine import conditions

US = 1e-6
CASE = make_case("add", 30)


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
        player = Player(clock, "slow", host=(3600.0,), warm=7200.0, cold=7200.0, issue=1.0)
        (row,) = timed(clock, player, effort=Effort(rounds=1))
        assert row.end_to_end.value == pytest.approx(3600)
        assert row.on_device.value == pytest.approx(7200)
        assert row.first_call == pytest.approx(3600)

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


class TestFigures:
    @pytest.mark.parametrize(
        ("values", "median"),
        [([3, 1, 2], 2), ([9, 1, 2, 3], 2.5), ([5], 5), ([1, 100, 101, 102, 103], 101)],
    )
    def test_it_is_the_median_of_the_rounds(self, values, median):
        assert intervals.figure(values).value == median

    def test_it_is_the_median_all_the_way(self):
        """Calls over a millisecond are taken once a round, after two that examine them."""
        clock = MadeUpClock()
        times = [0.5, 0.5, 0.009, 0.002, 0.004, 0.008, 0.003]
        (row,) = timed(clock, Player(clock, "one", host=times))
        assert row.end_to_end.value == pytest.approx(0.004)
        assert (row.end_to_end.low, row.end_to_end.high) == pytest.approx((0.002, 0.009))
        assert row.end_to_end.rounds == 5

    def test_of_an_even_number_it_is_the_mean_of_the_two_in_the_middle(self):
        clock = MadeUpClock()
        times = [0.5, 0.5, 0.009, 0.002, 0.004, 0.008]
        (row,) = timed(clock, Player(clock, "one", host=times), effort=Effort(rounds=4))
        assert row.end_to_end.value == pytest.approx(0.006)

    def test_a_short_call_is_the_median_of_five_in_its_round(self):
        clock = MadeUpClock()
        times = [9.0, 9.0, *(t * US for t in (50, 10, 20, 40, 30))]
        (row,) = timed(clock, Player(clock, "one", host=times), effort=Effort(rounds=1))
        assert row.end_to_end.value == pytest.approx(30 * US)

    @pytest.mark.parametrize("rounds", [8, 9, 12, 20, 30, 31])
    def test_intervals_hold_the_true_median_as_often_as_they_say(self, rounds):
        rng, hits, tries = random.Random(rounds), 0, 3000
        for _ in range(tries):
            found = intervals.figure([rng.lognormvariate(0, 1) for _ in range(rounds)])
            hits += found.low <= 1 <= found.high
        # Three standard deviations of the simulation itself.
        assert hits / tries >= intervals.CONFIDENCE - 3 * (0.01 * 0.99 / tries) ** 0.5

    @pytest.mark.parametrize("rounds", [12, 20, 30, 31])
    def test_they_are_no_wider_than_they_have_to_be(self, rounds):
        def missed(left_out: int) -> float:
            return 2 * sum(math.comb(rounds, i) for i in range(left_out + 1)) / 2**rounds

        left_out = intervals.rank(rounds)
        assert missed(left_out) <= 0.01 < missed(left_out + 1)

    def test_the_spread_is_half_of_the_width(self):
        assert intervals.Figure(2.0, 1.9, 2.3, 9).spread == pytest.approx(0.1)

    def test_same_is_where_the_interval_spans_one(self):
        spans = {(0.9, 1.1): True, (1.0, 1.2): True, (0.8, 1.0): True}
        spans |= {(1.01, 1.2): False, (0.8, 0.99): False}
        for (low, high), same in spans.items():
            assert intervals.Figure(1.0, low, high, 9).same is same


class TestRatios:
    def test_rounds_are_paired_by_their_number(self):
        """The second round of one is lost; identical contenders are as fast as each other."""
        drift = {1: 1.0, 2: 1.1, 3: 1.2, 4: 1.3}
        lost = {turn: value for turn, value in drift.items() if turn != 2}
        for found in (intervals.ratio(drift, lost), intervals.ratio(lost, drift)):
            assert (found.value, found.low, found.high, found.rounds) == (1.0, 1.0, 1.0, 3)

    def test_there_is_none_without_a_round_in_common(self):
        assert intervals.ratio({1: 1.0}, {2: 1.0}) is None
        assert intervals.ratio({1: 1.0}, {1: 0.0}) is None

    def test_it_is_the_median_of_the_ratios(self):
        found = intervals.ratio({1: 1.0, 2: 2.0, 3: 9.0}, {1: 1.0, 2: 1.0, 3: 1.0})
        assert found.value == 2.0

    def test_they_say_how_many_times_as_fast(self):
        clock = MadeUpClock()
        base = Player(clock, "base", host=(0.012,), warm=90 * US, cold=100 * US)
        fast = Player(clock, "fast", host=(0.003,), warm=30 * US, cold=50 * US)
        first, second = timed(clock, base, fast, baseline="base")
        assert first.end_to_end_ratio is None
        assert first.device_ratio is None
        assert second.end_to_end_ratio.value == pytest.approx(4)
        assert second.device_ratio.value == pytest.approx(2), "of the cold times"

    def test_the_fastest_peer_is_the_one_with_the_least_median(self):
        clock = MadeUpClock()
        quick = Player(clock, "steady", host=(0.004,))
        lucky = Player(clock, "lucky", host=(9, 9, 0.001, *(0.008,) * 20))
        ours = Player(clock, "gpukern", host=(0.002,))
        rows = timed(clock, lucky, quick, ours, baseline="fastest peer")
        assert [row.end_to_end_ratio is None for row in rows] == [False, True, False]
        assert rows[2].end_to_end_ratio.value == pytest.approx(2)

    def test_drift_hits_all_alike(self):
        clock = MadeUpClock()
        players = [
            Player(clock, name, host=[0.0, 0.0, *(0.002 * (1 + turn) for turn in range(9))])
            for name in ("a", "b")
        ]
        _, second = timed(clock, *players, effort=Effort(rounds=9), baseline="a")
        assert (second.end_to_end_ratio.low, second.end_to_end_ratio.high) == pytest.approx((1, 1))


class TestRounds:
    def order(self, seed: int, rounds: int = 40) -> list[tuple[str, ...]]:
        """Who was called in each round, one after another."""
        clock, seen = MadeUpClock(), []

        @dataclass
        class Told(Player):
            def end_to_end(self, *arrays: np.ndarray) -> np.ndarray:
                seen.append(self.name)
                return super().end_to_end(*arrays)

        names = ("a", "b", "c")
        result = gpukern.Comparison(seed, conditions.describe_machine())
        entrants = [(Told(clock, name, host=(0.002,)).peer(), None) for name in names]
        filling.fill(result, [CASE], entrants, Settings(effort=Effort(rounds=rounds)), clock=clock)
        # Two trials before, and one after the timing.
        inner = seen[6:-3]
        return [tuple(inner[at : at + 3]) for at in range(0, len(inner), 3)]

    def test_everybody_is_measured_once_a_round_in_an_order_of_chance(self):
        rounds = self.order(1)
        assert len(rounds) == 40
        assert all(sorted(one) == ["a", "b", "c"] for one in rounds)
        counts = Counter(rounds)
        assert set(counts) == set(itertools.permutations(("a", "b", "c")))
        assert max(counts.values()) < 20

    def test_the_order_comes_from_the_seed(self):
        assert self.order(1) == self.order(1)
        assert self.order(1) != self.order(2)

    def test_they_last_for_the_budget(self):
        clock = MadeUpClock()
        player = Player(clock, "one", host=(0.1,))
        (row,) = timed(clock, player, effort=Effort(seconds=2.05, least=3, most=100))
        assert row.end_to_end.rounds == 21

    def test_but_from_the_least_to_the_most(self):
        for each, rounds in ((10.0, 3), (0.01, 12)):
            clock = MadeUpClock()
            player = Player(clock, "one", host=(each,))
            (row,) = timed(clock, player, effort=Effort(seconds=1.0, least=3, most=12))
            assert row.end_to_end.rounds == rounds

    def test_examining_is_not_in_the_budget(self):
        clock = MadeUpClock()
        player = Player(clock, "one", host=(60.0, 60.0, 0.1))
        (row,) = timed(clock, player, effort=Effort(seconds=0.95, least=1, most=100))
        assert row.end_to_end.rounds == 10

    def test_one_that_is_wrong_is_called_once_and_never_timed(self):
        clock = MadeUpClock()

        @dataclass
        class Wrong(Player):
            def end_to_end(self, *arrays: np.ndarray) -> np.ndarray:
                return super().end_to_end(*arrays) + 1

        player = Wrong(clock, "wrong", warm=50 * US)
        result = gpukern.Comparison(7, conditions.describe_machine())
        filling.fill(result, [CASE], [(player.peer(), None)], Settings(), clock=clock)
        assert [row.status for row in result.rows] == ["WRONG"]
        assert player.calls == ["host"]

    def test_they_end_where_nobody_is_left(self):
        asked: list[int] = []

        class Counting(MadeUpClock):
            def now(self) -> float:
                asked.append(1)
                return super().now()

        clock, calls = Counting(), itertools.count()

        def raising(*arrays: np.ndarray) -> np.ndarray:
            if next(calls) > 2:
                raise RuntimeError("second round")
            clock.spend(0.002)
            return np.add(*arrays)

        peer = Peer("r", "r", lambda op, dtype: [Contender("r", "v", raising)], needs_gpu=False)
        result = gpukern.Comparison(7, conditions.describe_machine())
        settings = Settings(effort=Effort(rounds=1000))
        filling.fill(result, [CASE], [(peer, None)], settings, clock=clock)
        assert [row.status for row in result.rows] == ["broken"]
        assert len(asked) < 100

    def test_one_that_raises_in_a_round_has_no_times_and_the_others_all_of_theirs(self):
        clock, calls = MadeUpClock(), itertools.count()

        def raising(*arrays: np.ndarray) -> np.ndarray:
            if next(calls) == 4:
                raise RuntimeError("third round")
            clock.spend(0.002)
            return np.add(*arrays)

        peer = Peer("r", "r", lambda op, dtype: [Contender("r", "v", raising)], needs_gpu=False)
        result = gpukern.Comparison(7, conditions.describe_machine())
        entrants = [(peer, None), (Player(clock, "other", host=(0.003,)).peer(), None)]
        filling.fill(result, [CASE], entrants, Settings(effort=Effort(rounds=6)), clock=clock)
        broken, other = result.rows
        assert (broken.status, broken.detail) == ("broken", "RuntimeError: third round")
        assert broken.end_to_end is None
        assert other.end_to_end.rounds == 6
        assert other.end_to_end_ratio is None, "it is the base itself"


class TestColumns:
    def test_none_is_taken_for_another(self):
        clock = MadeUpClock()
        player = Player(
            clock, "one", host=(7.0, 7.0, 0.005), warm=60 * US, cold=80 * US, issue=3 * US
        )
        (row,) = timed(clock, player)
        assert row.end_to_end.value == pytest.approx(0.005)
        assert row.on_device.value == pytest.approx(80 * US)
        assert row.warm.value == pytest.approx(60 * US)
        assert row.overhead.value == pytest.approx(3 * US)
        assert row.first_call == pytest.approx(7.0)
        assert row.split == pytest.approx({"host to device": 400 * US, "device to host": 100 * US})
        assert row.phases() == pytest.approx(
            {
                "host to device": 400 * US,
                "compute": 80 * US,
                "device to host": 100 * US,
                "rest": 5000 * US - 580 * US,
            }
        )

    def test_only_what_was_asked_for(self):
        for mode, has in (("device", (False, True)), ("end-to-end", (True, False))):
            clock = MadeUpClock()
            player = Player(clock, "one", warm=60 * US, cold=80 * US)
            (row,) = timed(clock, player, mode=mode)
            assert (row.end_to_end is not None, row.on_device is not None) == has
            assert not row.phases()

    def test_the_first_call_is_in_no_other_figure(self):
        clock = MadeUpClock()
        (row,) = timed(clock, Player(clock, "compiled", host=(30.0, 0.002)))
        assert row.first_call == pytest.approx(30.0)
        assert row.end_to_end.high == pytest.approx(0.002)

    def test_the_first_call_on_the_device_waits_for_it(self):
        clock = MadeUpClock()
        player = Player(clock, "one", warm=0.7, cold=0.7)
        (row,) = timed(clock, player, mode="device", effort=Effort(rounds=1))
        assert row.first_call == pytest.approx(0.7 + 1 * US)

    def test_rates_and_shares_come_from_the_cold_time(self):
        ceilings = Limits(1e9, None, {"float32": 1e12})
        clock = MadeUpClock(ceilings=ceilings)
        player = Player(clock, "one", warm=10 * US, cold=20 * US)
        (row,) = timed(clock, player, mode="device")
        assert row.bytes_moved == 3 * 30 * 30 * 4
        assert row.bandwidth == pytest.approx(10800 / 20e-6)
        assert row.limit == pytest.approx(0.54)
        assert row.flat()["gigabytes_per_second"] == pytest.approx(0.54)
        assert row.throughput is None
        assert row.flags == ()

    def test_what_is_faster_than_the_device_can_be_is_flagged(self):
        clock = MadeUpClock(ceilings=Limits(1e9, None, {}))
        player = Player(clock, "one", warm=5 * US, cold=8 * US)
        (row,) = timed(clock, player, mode="device")
        assert row.flags == (
            "cold: above the copy bandwidth, 1 GB/s",
            "warm: above the copy bandwidth, 1 GB/s: served by the L2 cache",
        )

    def test_times_of_a_simulation_are_hidden_and_have_no_share(self):
        for shown in (False, True):
            clock = MadeUpClock(simulated=True, ceilings=Limits(1.0, None, {}))
            one = Player(clock, "one", warm=5 * US)
            host = Player(clock, "host", host=(0.002,))
            mine, other = timed(clock, one, host, simulated=shown)
            assert mine.simulated and not other.simulated
            assert (mine.on_device is not None) is shown
            assert mine.limit is None and mine.flags == ()
            assert other.end_to_end.value == pytest.approx(0.002)


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
        ("warm", "calls", "colds"), [(5 * US, 64, 6), (90 * US, 4, 6), (900 * US, 1, 2)]
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
        clock.occupying = timer._blocking(pace, pace.colds + 2)
        seen = len(clock.occupied)
        assert timer.sample(work, pace).warm == pytest.approx(5 * US)
        assert len(clock.occupied) - seen > 1, "the first is taken again"

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

    def test_what_is_waited_for_by_a_library_of_its_own_is_in_the_time(self):
        clock, timer = clocked()
        threads: list[float] = []

        def start() -> None:
            threads.append(clock.host + 1e-3)

        def wait(result: object) -> None:
            clock.host = max(clock.host, threads[-1])

        work = Work(start, wait)
        sample = timer.sample(work, timer.pace(work))
        assert sample.cold == pytest.approx(1e-3)

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

    def test_a_result_kept_by_the_first_element_of_its_inputs_saves_nothing(self):
        clock, kept = MadeUpClock(), {}

        @dataclass
        class Keeping(Player):
            def end_to_end(self, *arrays: np.ndarray) -> np.ndarray:
                key = arrays[0].ctypes.data, float(arrays[0].flat[0])
                if key not in kept:
                    kept[key] = super().end_to_end(*arrays)
                return kept[key]

        (row,) = timed(clock, Keeping(clock, "keeps", host=(300 * US,)))
        assert row.end_to_end.value == pytest.approx(300 * US)

    def test_the_device_is_waited_for_before_and_after(self):
        clock = MadeUpClock()
        clock.launch(5.0)
        assert wall.wall_synchronized(clock, lambda: clock.launch(2.0)) == pytest.approx(2.0)

    def test_the_protocols_of_others(self):
        clock, calls = MadeUpClock(), []

        def start() -> None:
            calls.append(1)
            clock.launch(9.0 if len(calls) <= 10 else 10 * US, issue=0.0)

        assert protocols.leetcuda(clock, Work(start)) == pytest.approx(10 * US)
        assert len(calls) == 1010
        times = iter([11.0] + [1.0] * 9)
        mean = protocols.notes(clock, lambda: clock.spend(next(times)))
        assert mean == pytest.approx(2.0), "the first is in it"
