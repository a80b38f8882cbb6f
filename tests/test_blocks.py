"""Figures of several processes: their intervals, what they tell of two runs, and time spread."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

import gpukern
from clocks import MadeUpClock
from gpukern.bench.blocks import Measurer
from gpukern.bench.contenders.registry import Peer
from gpukern.bench.filling import SPREAD, Budget
from gpukern.bench.model import changes, intervals
from gpukern.bench.model.case import make_case
from gpukern.bench.model.contender import Contender
from gpukern.bench.model.finding import Finding, broken
from gpukern.bench.model.intervals import CONFIDENCE, SCATTER, figure, ratio
from gpukern.bench.model.limits import NONE
from gpukern.bench.model.row import Row
from gpukern.bench.model.settings import Effort, Settings, make_settings
from gpukern.bench.model.split import PHASES
from gpukern.bench.model.student import probability_beyond, quantile
from gpukern.bench.rows import rows_of
from gpukern.machine import conditions

CASE = make_case("add", 30)


class TestStudent:
    @pytest.mark.parametrize(
        ("freedom", "t"),
        [(1, 63.657), (2, 9.925), (4, 4.604), (6, 3.707), (12, 3.055), (30, 2.750), (200, 2.601)],
    )
    def test_quantiles_are_those_of_the_tables(self, freedom, t):
        assert quantile(0.99, freedom) == pytest.approx(t, abs=1.5e-3)
        assert probability_beyond(t, freedom) == pytest.approx(0.01, rel=2e-3)

    def test_nothing_is_beyond_what_is_far_and_all_beyond_0(self):
        assert probability_beyond(0, 5) == pytest.approx(1)
        assert probability_beyond(1e4, 5) < 1e-15
        assert probability_beyond(-3, 5) == probability_beyond(3, 5)


def drawn(rng: random.Random, processes: int, scatter: float, noise: float) -> list[list[float]]:
    """Rounds of processes that differ, around 1."""
    blocks = []
    for _ in range(processes):
        middle = math.exp(rng.gauss(0, scatter))
        blocks.append([middle * math.exp(rng.gauss(0, noise)) for _ in range(9)])
    return blocks


class TestIntervals:
    @pytest.mark.parametrize("processes", [1, 2, 3, 5])
    @pytest.mark.parametrize("noise", [0.001, 0.01])
    def test_they_hold_between_processes(self, processes, noise):
        """What processes differ by in truth is what is assumed of them."""
        rng, hits, tries, scatter = random.Random(processes), 0, 1500, 0.01
        for _ in range(tries):
            found = figure(drawn(rng, processes, scatter, noise), scatter)
            hits += found.low <= 1 <= found.high
        assert hits / tries > CONFIDENCE - 0.008

    def test_they_widen_where_processes_differ_by_more_than_is_assumed(self):
        rng, hits, tries = random.Random(3), 0, 1500
        for _ in range(tries):
            found = figure(drawn(rng, 5, 0.05, 0.001), 0.005)
            hits += found.low <= 1 <= found.high
        assert hits / tries > 0.9

    def test_two_runs_agree(self):
        rng, apart, tries = random.Random(4), 0, 1500
        for _ in range(tries):
            one, other = (figure(drawn(rng, 3, 0.01, 0.01), 0.01) for _ in range(2))
            apart += not one.overlaps(other)
        assert apart / tries <= 1 - CONFIDENCE

    def test_one_process_says_less_than_three(self):
        rng = random.Random(5)
        blocks = drawn(rng, 3, 0.01, 0.001)
        one, three = figure(blocks[:1], 0.01), figure(blocks, 0.01)
        assert (one.processes, three.processes) == (1, 3)
        assert (one.rounds, three.rounds) == (9, 27)
        assert one.spread > three.spread

    def test_a_process_without_samples_counts_for_nothing(self):
        assert figure([[1.0] * 9, []], 0.0) == figure([[1.0] * 9], 0.0)
        assert figure([[], []], 0.1) is None

    def test_what_is_known_beforehand_counts_for_four_processes(self):
        """Three that are alike: what is left is what others were seen to differ by."""
        found = figure([[2.0]] * 3, 0.01)
        error = 0.01 * math.sqrt(4 / 6 / 3)
        assert math.log(found.high / found.value) == pytest.approx(3.707 * error, rel=1e-3)
        assert found.uncertainty == pytest.approx((error, 6))

    def test_ninety_nine_percent_need_rounds(self):
        assert [figure([[1.0] * n]).sound for n in (1, 7, 8)] == [False, False, True]
        assert figure([[1.0], [1.0]]).sound

    def test_ratios_are_taken_within_a_process(self):
        slow = [{1: 4.0, 2: 4.4}, {1: 2.0, 2: 2.2}]
        fast = [{1: 2.0, 2: 2.2}, {1: 1.0, 2: 1.1}]
        found = ratio(slow, fast, 0.0)
        assert (found.value, found.low, found.high) == pytest.approx((2, 2, 2))
        assert (found.rounds, found.processes) == (4, 2)


def finding(name: str, *seconds: float, **more: object) -> Finding:
    taken = {"end_to_end": dict(enumerate(seconds, 1))} if seconds else {}
    return Finding(name, "v", examined=True, finished=True, samples=taken, **more)


def rows(*blocks: list[Finding], baseline: str | None = None) -> dict[str, Row]:
    return {row.contender: row for row in rows_of(CASE, blocks, baseline, NONE)}


class TestRows:
    def test_a_row_has_the_blocks_of_all_processes(self):
        found = rows(
            [finding("a", 1.0, 1.2, 1.1, first_call=9.0, error=1.0, ulps=0.5)],
            [finding("a", 1.3, 1.3, 1.3, first_call=7.0, error=2.0, ulps=0.25)],
        )["a"]
        assert found.end_to_end.value == pytest.approx(math.sqrt(1.1 * 1.3))
        assert (found.end_to_end.processes, found.end_to_end.rounds) == (2, 6)
        assert (found.first_call, found.error, found.ulps) == (7.0, 2.0, 0.5)
        assert [list(block.values()) for block in found.samples["end_to_end"]] == [
            [1.0, 1.2, 1.1],
            [1.3, 1.3, 1.3],
        ]
        assert Row.from_json(found.to_json()) == found

    def test_the_phases_are_those_of_the_process_in_the_middle(self):
        splits = ((1.0, 1.0, 4.0), (5.0, 2.0, 3.0), (2.0, 4.0, 2.0))
        blocks = [
            [finding("a", 1.0, split=dict(zip(PHASES, split, strict=True)))] for split in splits
        ]
        assert rows(*blocks)["a"].split == dict(zip(PHASES, splits[2], strict=True))
        assert rows(*blocks, [finding("a", 1.0)])["a"].split == blocks[2][0].split
        assert rows([finding("a", 1.0)])["a"].split == {}

    def test_who_is_wrong_once_is_wrong(self):
        blocks = [[finding("a", 1.0)], [finding("a", status="WRONG", detail="off by one")]]
        for order in (blocks, blocks[::-1]):
            assert (rows(*order)["a"].status, rows(*order)["a"].detail) == ("WRONG", "off by one")

    def test_who_is_lost_on_the_way_is_broken_and_nobody_else(self):
        found = rows(
            [finding("a", 1.0), finding("b", 2.0)],
            [finding("b", 2.0), broken("a", "v", "its process ended by SIGSEGV")],
        )
        assert found["a"].status == "broken"
        assert found["b"].end_to_end.processes == 2

    def test_who_lacks_a_block_is_paired_with_the_right_one(self):
        """The baseline has the first process alone, and was three times as slow there."""
        found = rows(
            [finding("base", 3.0, 3.0), finding("a", 1.0, 1.0)],
            [finding("base"), finding("a", 2.0, 2.0)],
            baseline="base",
        )
        assert found["a"].end_to_end_ratio.value == pytest.approx(3)

    def test_who_is_not_in_a_block_has_an_empty_place_there(self):
        """The baseline has the second process alone, and was twice as slow there."""
        found = rows(
            [finding("a", 1.0, 1.0)],
            [finding("base", 4.0, 4.0), finding("a", 2.0, 2.0)],
            baseline="base",
        )
        assert found["a"].end_to_end_ratio.value == pytest.approx(2)


class TestMeasurer:
    def calls(self, block: int, op: str = "add", without: tuple[str, ...] = ()) -> list[str]:
        """Who is called in a block, one after another."""
        clock, seen = MadeUpClock(), []

        def peer(name: str) -> Peer:
            def work(*arrays: np.ndarray) -> np.ndarray:
                seen.append(name)
                clock.spend(0.002)
                return getattr(np, op)(*arrays)

            offered = [Contender(name, "v", work)]
            return Peer(name, name, lambda op, dtype: offered, needs_gpu=False)

        measurer = Measurer([(peer(name), None) for name in "abc"], 7, clock)
        settings = Settings(effort=Effort(rounds=8))
        case = make_case(op, 30)
        measurer.prepare(block, case, 0, settings, lambda doing: None, without)
        measurer.measure(block, settings.effort, lambda doing: None)
        return seen

    def test_each_process_has_an_order_of_its_own(self):
        first, second = self.calls(0), self.calls(1)
        assert len(first) == len(second)
        assert first != second == self.calls(1)

    def test_the_first_process_alone_examines_everybody_on_all_inputs(self):
        """A sum's result may be rounded, so that it has two more inputs than its proof."""
        first, *others = (len(self.calls(block, "sum")) for block in range(3))
        assert first > others[0] == others[1]

    def test_who_is_left_out_is_not_called(self):
        assert set(self.calls(0, without=("b v",))) == {"a", "c"}


def run(seed: int, factor: float = 1.0, count: int = 40) -> gpukern.Comparison:
    """A made-up run of many rows by three processes, the first of them slower by a factor."""
    rng = random.Random(seed)
    result = gpukern.Comparison(7, conditions.describe_machine())
    for number in range(count):
        mine = drawn(rng, 3, SCATTER["device ratio"].of(), 0.004)
        pairs = [{turn: 1 / (value * (factor if number == 0 else 1)) for turn, value in
                  enumerate(block)} for block in mine]  # fmt: skip
        base = [dict.fromkeys(pair, 1.0) for pair in pairs]
        speed = ratio(pairs, base, SCATTER["device ratio"].of())
        result.rows.append(
            Row("add", f"{number}", (), "float32", "gpukern", "f32", "right",
                on_device=intervals.Figure(1.0, 0.9, 1.1, 9), device_ratio=speed)
        )  # fmt: skip
    return result


def test_short_times_scatter_by_seconds_and_long_ones_by_a_share():
    cold = SCATTER["cold"]
    assert cold.of(1.0) == pytest.approx(cold.share)
    assert cold.of(1e-6) == pytest.approx(cold.seconds / 1e-6, rel=0.01)
    assert cold.of(1e-6, 1e-6) == pytest.approx(math.sqrt(2) * cold.seconds / 1e-6, rel=0.01)


class TestAgainst:
    def test_nothing_is_called_slower_where_nothing_has_changed(self):
        called = 0
        for seed in range(30):
            found = changes.changes(run(2 * seed), run(2 * seed + 1), threshold=0.0)
            called += any(one.verdict != "same" for one in found)
        assert called <= 1

    def test_five_percent_are_found(self):
        found = [changes.changes(run(2 * seed), run(2 * seed + 1, 1.05)) for seed in range(20)]
        assert sum(one[0].verdict == "slower" for one in found) >= 18

    def test_what_is_under_the_threshold_is_the_same(self):
        for threshold, verdict in ((0.02, "slower"), (0.1, "same")):
            found = changes.changes(run(1), run(2, 1.06), threshold)
            assert found[0].verdict == verdict

    def test_a_factor_is_that_of_the_time(self):
        found = changes.changes(run(1), run(1, 1.06))
        assert found[0].factor == pytest.approx(1.06)
        assert found[1].factor == 1

    def test_too_few_rounds_say_nothing(self):
        before, now = run(1), run(1)
        for which, value in ((before, 1.0), (now, 3.0)):
            few = intervals.figure([[value, value * 1.001]])
            which.rows[0] = replace(which.rows[0], on_device=few, device_ratio=None)
        assert changes.changes(before, now)[0].verdict == "same"

    def test_a_faster_one_is_faster(self):
        assert changes.changes(run(1), run(2, 0.9))[0].verdict == "faster"


class TestBudget:
    def test_what_is_left_is_spread_by_need(self):
        now = [0.0]
        budget = Budget(100.0 / SPREAD, [100, 300, 100], 2, 0.0, lambda: now[0])
        given = []
        for index in range(3):
            budget.begin(index)
            now[0] += 4.0
            for block in range(2):
                given.append(budget.effort(Effort(), block).seconds)
                now[0] += given[-1] + (1.0 if index == 0 else 0.0)
        assert given[:2] == pytest.approx([(20 - 4) / 2, (20 - 4) / 2 - 1])
        assert given[2] == pytest.approx(((100 - 21) * 3 / 4 - 4) / 2)
        assert now[0] == pytest.approx(100)

    def test_few_contenders_do_not_take_all_of_it(self):
        budget = Budget(60.0, [2, 2], 1, 0.0, lambda: 0.0)
        budget.begin(0)
        assert budget.effort(Effort(), 0).seconds == pytest.approx(0.4)

    def test_without_one_or_with_rounds_it_changes_nothing(self):
        fixed = make_settings("both", "default", 5, False)
        for settings, seconds in ((Settings(), None), (fixed, 9)):
            budget = Budget(seconds, [1], 1, 0.0)
            budget.begin(0)
            assert budget.effort(settings.effort, 0) == settings.effort

    def test_time_that_is_over_leaves_the_least_number_of_rounds(self):
        now = [0.0]
        budget = Budget(1.0, [1, 1], 1, 0.0, lambda: now[0])
        budget.begin(0)
        now[0] = 50.0
        budget.begin(1)
        assert budget.effort(Effort(), 0).seconds == 0
        assert Effort().least > 0

    def test_rounds_are_shared_by_the_processes(self):
        efforts = [
            make_settings("both", "default", None, False, processes=n).effort for n in (1, 3)
        ]
        assert [(one.least, one.most) for one in efforts] == [(8, 30), (3, 10)]
        hurried = [
            make_settings("both", "default", None, False, processes=n, budget=9).effort
            for n in (1, 3)
        ]
        assert [(one.least, one.most) for one in hurried] == [(3, 30), (1, 10)]
        assert make_settings("both", "default", 10, False, processes=3).effort.rounds == 4

    @pytest.mark.parametrize(
        ("named", "error"),
        [
            ({"processes": 0}, ValueError),
            ({"processes": "3"}, TypeError),
            ({"patience": 0}, ValueError),
            ({"patience": "long"}, TypeError),
            ({"budget": -1}, ValueError),
            ({"budget": math.nan}, ValueError),
            ({"budget": True}, TypeError),
            ({"isolate": 1}, TypeError),
        ],
    )
    def test_bad_ones_are_named(self, named, error):
        with pytest.raises(error, match=f"compare: {next(iter(named))} "):
            gpukern.compare("add", [8], contenders=["numpy"], **named)


def test_results_without_samples_can_still_be_read():
    """As those that were written before there were any."""
    old = replace(rows([finding("a", 1.0)])["a"], samples={})
    stored = old.to_json()
    del stored["samples"]
    del stored["end_to_end"]["processes"]
    assert Row.from_json(stored) == old
