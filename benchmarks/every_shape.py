"""Arrays of any shape beside PyTorch, CuPy and torch.compile, on the device.

    python benchmarks/every_shape.py results.json results.md [--count 300] [--seed N]

Shapes, views and axes are drawn from a seed, another one each time unless it is given
(`shapes.py` says how). Each work is checked, timed in rounds with everybody in turn, and checked
again. A time is that of a call in a replayed CUDA graph of several, the lesser of two sittings with
graphs of their own: nobody waits for the host, and short kernels follow one another as they do in
programs; what fits is in the L2 cache. Who cannot be captured takes no part. ``--compiled`` says
how many of the works torch.compile takes part in, whose compilations take seconds. On the simulator
times mean nothing and are not shown.
"""

import argparse
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import drawn
import shapes
from drawn import BARS, SHORT
from lane import Call, Lane
from report import Line
from shapes import Draw

from gpukern import _core
from gpukern.machine.conditions import describe_machine
from gpukern.text.units import bandwidth, seconds

WORST = 0.95
LARGE = 64e6
SHARE = 0.80
LISTED = 25
# One graph may be slow as long as it is there, and all for some milliseconds.
SITTINGS, ROUNDS = 2, 3
# A graph holds as many calls as take so many seconds, and no more than so many.
GRAPH_SECONDS, MOST_CALLS = 500e-6, 100


@dataclass
class Outcome:
    """The seconds of everybody on one work."""

    draw: Draw
    times: dict[str, float] = field(default_factory=dict)
    wrong: str = ""

    @property
    def peer(self) -> str:
        """The fastest of the others."""
        return min(
            (n for n in self.times if n != "gpukern"), key=self.times.__getitem__, default=""
        )

    @property
    def speed(self) -> float:
        """How many times as fast as that one."""
        return self.times[self.peer] / self.times["gpukern"]

    @property
    def rate(self) -> float:
        """Bytes a second."""
        return self.draw.bytes_moved / self.times["gpukern"]

    def to_dict(self) -> dict[str, Any]:
        return {"work": str(self.draw), "bytes": self.draw.bytes_moved, "seconds": self.times}

    def __str__(self) -> str:
        text = f"{self.draw}: {self.speed:.3f}x, {seconds(self.times['gpukern'])}, "
        text += f"{bandwidth(self.draw.bytes_moved, self.times['gpukern'])}; "
        return text + ", ".join(
            f"{n} {seconds(t)}" for n, t in self.times.items() if n != "gpukern"
        )


class Run:
    """A draw of works, and what came of them."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.simulated = _core.backend() == "sim"
        small = given.smoke or self.simulated
        self.sittings, self.rounds = (1, 1) if small else (SITTINGS, ROUNDS)
        self.most = 1 << 14 if small else 1 << 31
        self.chance, self.turns = random.Random(given.seed), random.Random(given.seed)
        self.until = time.monotonic() + given.seconds
        self.lane = Lane()
        self.left_out: Counter[str] = Counter()
        self.outcomes: list[Outcome] = []
        self.compiled = set(
            self.chance.sample(range(given.count), min(given.compiled, given.count))
        )
        self.count = given.count

    def go(self) -> None:
        """All of them, or as many as there is time for."""
        for number in range(self.count):
            one = shapes.draw(self.chance, self.most)
            if time.monotonic() < self.until:
                self.outcomes.append(self.hold(one, number in self.compiled))

    def hold(self, one: Draw, compiled: bool) -> Outcome:
        outcome = Outcome(one)
        arrays = shapes.operands(one, self.lane.stream)
        _core.synchronize()
        made = shapes.works(one, arrays, compiled, self.lane.stream)
        made.calls["gpukern"]()
        _core.synchronize()
        outcome.wrong = shapes.fault(one, arrays, made.results["gpukern"])
        outcome.times = self.timed(made.calls)
        outcome.wrong = outcome.wrong or shapes.fault(one, arrays, made.results["gpukern"])
        return outcome

    def timed(self, calls: Mapping[str, Call]) -> dict[str, float]:
        """Seconds a call of everybody: the lesser of what sittings say."""
        sat = [self.sitting(calls) for _ in range(self.sittings)]
        self.left_out.update(name for name in calls if name not in sat[0])
        return {name: min(one[name] for one in sat if name in one) for name in sat[0]}

    def sitting(self, calls: Mapping[str, Call]) -> dict[str, float]:
        """Medians of rounds in which each has a turn, with graphs that are made anew."""
        replays = {name: self.replay(name, call) for name, call in calls.items()}
        found: dict[str, list[float]] = {name: [] for name, one in replays.items() if one}
        for _ in range(self.rounds):
            for name in self.turns.sample(list(found), len(found)):
                found[name].append(replays[name]())
        _core.synchronize()
        return {name: statistics.median(times) for name, times in found.items()}

    def replay(self, library: str, call: Call) -> Callable[[], float] | None:
        """What replays a graph of calls and says the seconds of one."""
        once = self.lane.captured(library, call, 1)
        if once is None:
            return None
        spent = max(self.lane.replayed(once, 1), 1e-9)
        calls = 1 if self.simulated else int(min(max(GRAPH_SECONDS / spent, 1), MOST_CALLS))
        several = once if calls == 1 else self.lane.captured(library, call, calls)
        return several and partial(self.lane.replayed, several, calls)

    def copy_rate(self) -> float:
        """Bytes a second that a large copy reads and writes."""
        large = shapes.whole("copy", "float32", (self.most >> 3,))
        arrays = shapes.operands(large, self.lane.stream)
        ours = shapes.works(large, arrays, False, self.lane.stream).calls["gpukern"]
        return large.bytes_moved / self.timed({"gpukern": ours})["gpukern"]


def judged(run: Run) -> Iterator[Line]:
    """Each group against the fastest of the others, the worst work, and the worst share."""
    yield drawn.right_results([(one.draw, one.wrong) for one in run.outcomes])
    if run.simulated:
        return
    compared = [one for one in run.outcomes if one.peer]
    longer = [one for one in compared if one.times["gpukern"] > SHORT]
    for group in BARS:
        for works, which in ((compared, ""), (longer, f", over {seconds(SHORT)} alone")):
            speeds = [one.speed for one in works if drawn.is_of(one.draw, group)]
            yield from drawn.means(group, group + which, speeds, BARS[group])
    yield from the_worst("all", "the worst", longer, f" of over {seconds(SHORT)}")
    yield from shares(run)


def the_worst(
    group: str, work: str, outcomes: Sequence[Outcome], which: str = ""
) -> Iterator[Line]:
    """That on which others are the furthest ahead, if there are any."""
    if outcomes:
        worst = min(outcomes, key=lambda one: one.speed)
        below = sum(one.speed < WORST for one in outcomes)
        asked = f">= {WORST:.2f}x the fastest peer on each{which}"
        text = f"{below} of {len(outcomes)} below; {worst}"
        yield Line(group, work, asked, text, "no" if below else "yes")


def shares(run: Run) -> Iterator[Line]:
    large = [one for one in run.outcomes if one.draw.bytes_moved > LARGE]
    if large:
        copied = run.copy_rate()
        worst = min(large, key=lambda one: one.rate)
        below = sum(one.rate < SHARE * copied for one in large)
        asked = f">= {SHARE:.0%} of the copy, arrays over 64 MB"
        text = f"{below} of {len(large)} below; {worst.rate / copied:.1%}: {worst}"
        yield Line("all", "share of the copy bandwidth", asked, text, "no" if below else "yes")


def slowest(run: Run) -> list[str]:
    """The works on which others were the furthest ahead."""
    if run.simulated:
        return []
    longer = [one for one in run.outcomes if one.peer and one.times["gpukern"] > SHORT]
    return [f"- {one}" for one in sorted(longer, key=lambda one: one.speed)[:LISTED]]


def main(arguments: Sequence[str]) -> int:
    parser = drawn.options(__doc__)
    parser.add_argument("--count", type=int, default=300, help="drawn works")
    parser.add_argument("--seconds", type=float, default=3600.0, help="draw no more after that")
    parser.add_argument("--compiled", type=int, default=30)
    given = parser.parse_args(arguments)
    machine = describe_machine()
    run = Run(given)
    run.go()
    lines = list(judged(run))
    remark = f"the lesser of {run.sittings} medians of {run.rounds} rounds of graphs of up to "
    remark += f"{MOST_CALLS} calls, all in turn; "
    remark += f"torch.compile in {len(run.compiled)} works"
    for name, works in run.left_out.items():
        remark += f"; {name} could not be captured in {works} works"
    found = {"works": [one.to_dict() for one in run.outcomes]}
    return drawn.tell(given, machine, found, lines, remark, slowest(run))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
