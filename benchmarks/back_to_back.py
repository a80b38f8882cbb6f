"""Additions one behind another, in CUDA graphs and on a stream, beside PyTorch and CuPy.

    python benchmarks/back_to_back.py results.json results.md [--seed N]

A grid of nine sizes, each in float32 and float16. So many calls of one work are captured in a
graph, and the figures are those of a call in its replay; or they are queued on a stream that is
busy until the last one is there. Everybody has the same stream. What a library cannot have captured
it takes no part in. On the simulator times mean nothing and are not shown.
"""

import argparse
import itertools
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import drawn
import shapes
from lane import Lane
from report import Line
from shapes import Draw

from gpukern import _core
from gpukern.machine.conditions import describe_machine
from gpukern.text.units import seconds

SIDES = (1024, 2048, 4096)
CALLS = 100  # of a graph
ROUNDS = 7
SAME = 0.005
# As asked of the grid, and of its least size.
GRID, LEAST_SIZE = 1.00, 1.10


@dataclass
class Outcome:
    """Seconds a call of everybody who took part, in a graph and on a stream."""

    draw: Draw
    graph: dict[str, float] = field(default_factory=dict)
    stream: dict[str, float] = field(default_factory=dict)
    wrong: str = ""

    @staticmethod
    def speed(times: dict[str, float]) -> float:
        """How many times as fast as the fastest of the others."""
        return min(t for name, t in times.items() if name != "gpukern") / times["gpukern"]

    def __str__(self) -> str:
        text = f"{self.draw}: {self.speed(self.graph):.3f}x, "
        return text + ", ".join(f"{name} {seconds(t)}" for name, t in self.graph.items())


class Run:
    """The works, and what came of them."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.simulated = _core.backend() == "sim"
        self.small = given.smoke or self.simulated
        self.calls, self.rounds = (2, 1) if self.small else (CALLS, ROUNDS)
        self.chance = random.Random(given.seed)
        self.lane = Lane()
        self.grid: list[Outcome] = []

    def go(self) -> None:
        sides = [side // 32 for side in SIDES] if self.small else SIDES
        for dtype, *shape in itertools.product(("float32", "float16"), sides, sides):
            self.grid.append(self.hold(shapes.whole("add", dtype, shape)))

    def hold(self, one: Draw) -> Outcome:
        outcome = Outcome(one)
        arrays = shapes.operands(one, self.lane.stream)
        _core.synchronize()
        made = shapes.works(one, arrays, False, self.lane.stream)
        graphs = {
            name: graph
            for name, call in made.calls.items()
            if (graph := self.lane.captured(name, call, self.calls)) is not None
        }
        found: dict[str, list[float]] = {name: [] for name in graphs}
        queued: dict[str, list[float]] = {name: [] for name in graphs}
        for _ in range(self.rounds):
            for name in self.chance.sample(list(graphs), len(graphs)):
                found[name].append(self.lane.replayed(graphs[name], self.calls))
                if not self.simulated:
                    call = made.calls[name]
                    queued[name].append(self.lane.queued(name, call, graphs[name], self.calls))
        _core.synchronize()
        outcome.wrong = shapes.fault(one, arrays, made.results["gpukern"])
        outcome.graph = {name: statistics.median(times) for name, times in found.items()}
        outcome.stream = {name: statistics.median(t) for name, t in queued.items() if t}
        return outcome


# --- the report -------------------------------------------------------------------------------


def judged(run: Run) -> Iterator[Line]:
    """The grid cell by cell, and at its least size."""
    yield drawn.right_results([(one.draw, one.wrong) for one in run.grid])
    if not run.simulated:
        yield from _grid([one for one in run.grid if len(one.graph) > 1])


def _grid(grid: Sequence[Outcome]) -> Iterator[Line]:
    for where in ("graph", "stream") if grid else ():
        speeds = [(one.speed(getattr(one, where)), one.draw) for one in grid]
        least, worst = min(speeds, key=lambda pair: pair[0])
        mean = statistics.geometric_mean(speed for speed, _ in speeds)
        asked = f">= {GRID:.2f}x the fastest peer within {SAME:.1%} on each"
        status = "yes" if least >= GRID - SAME else "no"
        text = f"{mean:.3f}x; {worst} {least:.3f}x"
        yield Line("grid", f"add, {len(grid)} cells, {where}", asked, text, status)
        shape = min(one.shape for _, one in speeds)
        small = {one.dtype: speed for speed, one in speeds if one.shape == shape}
        status = "yes" if min(small.values()) >= LEAST_SIZE else "no"
        text = ", ".join(f"{dtype} {speed:.3f}x" for dtype, speed in small.items())
        work = f"add, {'x'.join(map(str, shape))}, {where}"
        yield Line("grid", work, f">= {LEAST_SIZE:.2f}x the fastest peer", text, status)


def stored(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [{"work": str(o.draw), "graph": o.graph, "stream": o.stream} for o in outcomes]


def main(arguments: Sequence[str]) -> int:
    given = drawn.options(__doc__).parse_args(arguments)
    machine = describe_machine()
    run = Run(given)
    run.go()
    lines = list(judged(run))
    remark = (
        f"medians of {run.rounds} rounds of {run.calls} calls, all in turn, what they read and "
    )
    remark += "write in the L2 cache as far as it fits"
    listed = [] if run.simulated else [f"- {one}" for one in run.grid]
    return drawn.tell(given, machine, {"grid": stored(run.grid)}, lines, remark, listed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
