"""Arrays of any shape beside PyTorch, CuPy and torch.compile, on the device.

    python benchmarks/every_shape.py results.json results.md [--count 300] [--seed N]

Shapes, views and axes are drawn from a seed, another one each time unless it is given
(`shapes.py` says how). Each work is checked, timed in rounds with everybody in turn by the clock
of ``gpukern.compare``, and checked again. ``--compiled`` says how many of the works torch.compile
takes part in, whose compilations take seconds. On the simulator times mean nothing and are not
shown.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import drawn
import shapes
from drawn import BARS, SHORT
from report import Line
from shapes import Draw

from gpukern import _core
from gpukern.bench.clock.device import DeviceTimer
from gpukern.bench.clock.machine import MachineClock
from gpukern.bench.model.contender import Work
from gpukern.machine.conditions import describe_machine
from gpukern.text.units import bandwidth, seconds

WORST = 0.95
LARGE = 64e6
SHARE = 0.80
LISTED = 25


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
        self.rounds = 1 if small else 5
        self.most = 1 << 14 if small else 1 << 31
        self.chance = random.Random(given.seed)
        self.until = time.monotonic() + given.seconds
        self.timer = DeviceTimer(MachineClock())
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
        arrays = shapes.operands(one)
        made = shapes.works(one, arrays, compiled)
        made.calls["gpukern"]()
        outcome.wrong = shapes.fault(one, arrays, made.results["gpukern"])
        ways = {name: Work(call) for name, call in made.calls.items()}
        paces = {name: self.timer.pace(work) for name, work in ways.items()}
        found: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(self.rounds):
            for name in self.chance.sample(list(ways), len(ways)):
                found[name].append(self.timer.sample(ways[name], paces[name]).warm)
        outcome.times = {name: statistics.median(times) for name, times in found.items()}
        outcome.wrong = outcome.wrong or shapes.fault(one, arrays, made.results["gpukern"])
        return outcome

    def copy_rate(self) -> float:
        """Bytes a second that a large copy reads and writes."""
        source, target = (_core.empty(self.most >> 3, "float32") for _ in range(2))
        work = Work(lambda: target.__setitem__(..., source))
        pace = self.timer.pace(work)
        times = [self.timer.sample(work, pace).warm for _ in range(5)]
        return 2 * 4 * (self.most >> 3) / statistics.median(times)


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
            yield from drawn.means(group, which, speeds)
    if longer:
        worst = min(longer, key=lambda one: one.speed)
        below = sum(one.speed < WORST for one in longer)
        asked = f">= {WORST:.2f}x the fastest peer on each of over {seconds(SHORT)}"
        text = f"{below} of {len(longer)} below; {worst}"
        yield Line("all", "the worst", asked, text, "no" if below else "yes")
    yield from shares(run)


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
    parser = drawn.options(__doc__, 300)
    parser.add_argument("--compiled", type=int, default=30)
    given = parser.parse_args(arguments)
    machine = describe_machine()
    run = Run(given)
    run.go()
    lines = list(judged(run))
    remark = f"medians of {run.rounds} rounds on the device, all in turn; "
    remark += f"torch.compile in {len(run.compiled)} works"
    found = {"works": [one.to_dict() for one in run.outcomes]}
    return drawn.tell(given, machine, found, lines, remark, slowest(run))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
