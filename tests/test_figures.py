"""A comparison's figures, by a made-up clock: medians, ratios, rounds, and which column is what."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

import gpukern
from clocks import CASE, US, MadeUpClock, Player, timed
from gpukern.bench import filling
from gpukern.bench.contenders.registry import Peer
from gpukern.bench.model import intervals
from gpukern.bench.model.contender import Contender
from gpukern.bench.model.limits import Limits
from gpukern.bench.model.settings import Effort, Settings
from gpukern.machine import conditions

pytestmark = pytest.mark.usefixtures("many_comparisons")


class TestFigures:
    @pytest.mark.parametrize(
        ("values", "median"),
        [([3, 1, 2], 2), ([9, 1, 2, 3], 2.5), ([5], 5), ([1, 100, 101, 102, 103], 101)],
    )
    def test_it_is_the_median_of_the_rounds(self, values, median):
        assert intervals.figure([values]).value == median

    def test_it_is_the_median_all_the_way(self):
        """Calls over a millisecond are taken once a round, after two that examine them."""
        clock = MadeUpClock()
        times = [0.5, 0.5, 0.009, 0.002, 0.004, 0.008, 0.003]
        (row,) = timed(clock, Player(clock, "one", host=times))
        assert row.end_to_end.value == pytest.approx(0.004)
        assert row.end_to_end.low < 0.002
        assert row.end_to_end.high > 0.009, "processes differ by more"
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
            found = intervals.figure([[rng.lognormvariate(0, 1) for _ in range(rounds)]])
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
        spans |= {(1.009, 1.2): True, (0.8, 0.991): True}
        spans |= {(1.011, 1.2): False, (0.8, 0.989): False}
        for (low, high), same in spans.items():
            assert intervals.Figure(1.0, low, high, 9).same is same


class TestRatios:
    def test_rounds_are_paired_by_their_number(self):
        """The second round of one is lost; identical contenders are as fast as each other."""
        drift = {1: 1.0, 2: 1.1, 3: 1.2, 4: 1.3}
        lost = {turn: value for turn, value in drift.items() if turn != 2}
        for found in (intervals.ratio([drift], [lost]), intervals.ratio([lost], [drift])):
            assert (found.value, found.low, found.high, found.rounds) == (1.0, 1.0, 1.0, 3)

    def test_there_is_none_without_a_round_in_common(self):
        assert intervals.ratio([{1: 1.0}], [{2: 1.0}]) is None
        assert intervals.ratio([{1: 1.0}], [{1: 0.0}]) is None

    def test_it_is_the_median_of_the_ratios(self):
        found = intervals.ratio([{1: 1.0, 2: 2.0, 3: 9.0}], [{1: 1.0, 2: 1.0, 3: 1.0}])
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
        scatter = intervals.figure([[1.0] * 9], intervals.SCATTER["end-to-end ratio"].of())
        assert second.end_to_end_ratio.value == pytest.approx(1)
        assert second.end_to_end_ratio.low == pytest.approx(scatter.low)
        assert second.end_to_end_ratio.high == pytest.approx(scatter.high)


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
        inner = seen[6:]  # behind two calls that examine each
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

    def test_no_call_has_the_inputs_of_another(self):
        clock, seen = MadeUpClock(), []

        @dataclass
        class Told(Player):
            def end_to_end(self, *arrays: np.ndarray) -> np.ndarray:
                seen.append(tuple(one.tobytes() for one in arrays))
                return super().end_to_end(*arrays)

        timed(clock, Told(clock, "one"), effort=Effort(rounds=50))
        assert len(seen) == len({*seen}) == 2 + 250

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

    def test_who_takes_long_takes_part_in_fewer(self):
        clock = MadeUpClock()
        slow, fast = Player(clock, "slow", host=(0.5,)), Player(clock, "fast", host=(0.01,))
        rows = timed(clock, slow, fast, effort=Effort(seconds=2.0, least=2, most=10))
        assert [row.end_to_end.rounds for row in rows] == [2, 10]

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
        assert row.first_call is None, "nobody asked"
        assert row.phases() == pytest.approx(
            {
                # Of two inputs, and of a call that finds them in the cache.
                "host to device": 2 * 200 * US,
                "compute": 3 * US + 60 * US,
                "device to host": 100 * US,
            }
        )

    def test_only_what_was_asked_for(self):
        for mode, has in (("device", (False, True)), ("end-to-end", (True, False))):
            clock = MadeUpClock()
            player = Player(clock, "one", warm=60 * US, cold=80 * US)
            (row,) = timed(clock, player, mode=mode)
            assert (row.end_to_end is not None, row.on_device is not None) == has
            assert bool(row.phases()) == (mode == "end-to-end")

    def test_the_phases_are_those_of_one_call(self):
        """That with the median time of three, which did not have the median of each phase."""
        clock = MadeUpClock()

        @dataclass
        class Uneven(Player):
            def __post_init__(self) -> None:
                super().__post_init__()
                self.loads = iter(())
                self.fetches = iter(())

            def loaded(self, array: np.ndarray) -> object:
                self.load = next(self.loads, self.load)
                return super().loaded(array)

            def fetched(self, array: object) -> np.ndarray:
                self.fetch = next(self.fetches, self.fetch)
                return super().fetched(array)

        player = Uneven(clock, "uneven", warm=60 * US, issue=1 * US)
        # Each call loads what it writes into and two inputs; those in all take 5, 2 and 4 ms.
        player.loads = iter(1e-3 * each for each in (9, 2, 2, 9, 0.5, 0.5, 9, 0.75, 0.25))
        player.fetches = iter(1e-3 * each for each in (1, 1, 3))
        (row,) = timed(clock, player, mode="end-to-end")
        assert row.phases() == pytest.approx(
            {"host to device": 1e-3, "compute": 61 * US, "device to host": 3e-3}
        )

    def test_the_first_call_is_in_no_figure(self):
        clock = MadeUpClock()
        (row,) = timed(clock, Player(clock, "compiled", host=(30.0, 0.002)))
        assert row.end_to_end.value == pytest.approx(0.002)
        assert row.end_to_end.high < 0.003

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
