"""Short works one behind another, in CUDA graphs and on a stream, beside PyTorch and CuPy.

    python benchmarks/back_to_back.py results.json results.md [--count 150] [--seed N]

`every_shape.py` has each call between two events of its own, where no kernel can start before the
one ahead of it is through, and where most of a short call's time lies between the events. In
programs short kernels follow one another. So here as many calls of one work are captured in a
graph, and the figures are those of a call in its replay; or they are queued on a stream that is
busy until the last one is there. Additions on a grid of nine sizes come first, then works that
`shapes.py` draws from a seed. Everybody has the same stream. What a library cannot have captured it
takes no part in. On the simulator times mean nothing and are not shown.
"""

import argparse
import itertools
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

import drawn
import shapes
from drawn import BARS, SHORT
from report import Line
from shapes import Draw

import gpukern as gk
from gpukern import _core
from gpukern.machine.conditions import describe_machine
from gpukern.text.units import seconds

SIDES = (1024, 2048, 4096)
CALLS = 100  # of a graph
ROUNDS = 7
# The device's memory takes no part: all of it stays in the L2 cache.
LARGEST = 1 << 20
SAME = 0.005
# As asked of the grid, and of its least size.
GRID, LEAST_SIZE = 1.00, 1.10
LISTED = 15

Call = Callable[[], object]


class Lane:
    """The stream that everybody's calls are on."""

    def __init__(self) -> None:
        self.stream = gk.Stream()

    def entered(self, library: str) -> AbstractContextManager[object]:
        """The stream as the library's current one; ours is given it with each call."""
        if library == "PyTorch":
            import torch

            return torch.cuda.stream(torch.cuda.ExternalStream(self.stream.cuda_stream))
        if library == "CuPy":
            import cupy

            return cupy.cuda.Stream.from_external(self.stream)
        return nullcontext()

    def captured(self, library: str, call: Call, calls: int) -> "_core.Graph | None":
        """So many calls as a graph; None where something in them cannot be captured."""
        with self.entered(library):
            for _ in range(3):  # memory that it keeps is there then
                call()
            self.stream.synchronize()
            self.stream.begin_capture()
            try:
                for _ in range(calls):
                    call()
            except Exception:
                self._abandon()
                return None
            return self.stream.end_capture()

    def _abandon(self) -> None:
        with suppress(gk.CudaError):  # which says what the call has said
            self.stream.end_capture()

    def replayed(self, graph: "_core.Graph", calls: int) -> float:
        """Seconds a call; a replay before has the host be ahead of the device."""
        before, after = _core.Event(), _core.Event()
        graph.launch(self.stream)
        before.record(self.stream)
        graph.launch(self.stream)
        after.record(self.stream)
        after.synchronize()
        return after.seconds_since(before) / calls

    def queued(self, library: str, call: Call, graph: "_core.Graph", calls: int) -> float:
        """Seconds a call of as many on the stream, behind replays that outlast the queueing."""
        each = self.replayed(graph, calls) * calls
        ahead = 2
        while True:
            before, after = _core.Event(), _core.Event()
            for _ in range(ahead):
                graph.launch(self.stream)
            begin = time.perf_counter()
            before.record(self.stream)
            with self.entered(library):
                for _ in range(calls):
                    call()
            after.record(self.stream)
            spent = time.perf_counter() - begin
            after.synchronize()
            if spent < (ahead - 1) * each:
                return after.seconds_since(before) / calls
            ahead *= 2


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
        self.count = given.count
        self.until = time.monotonic() + given.seconds
        self.lane = Lane()
        self.grid: list[Outcome] = []
        self.drawn: list[Outcome] = []

    def go(self) -> None:
        """The grid, and as many draws as there is time for."""
        sides = [side // 32 for side in SIDES] if self.small else SIDES
        for dtype, *shape in itertools.product(("float32", "float16"), sides, sides):
            self.grid.append(self.hold(_addition(tuple(shape), dtype), streams=True))
        for _ in range(self.count):
            one = shapes.draw(self.chance, 1 << 12 if self.small else LARGEST)
            if time.monotonic() < self.until:
                self.drawn.append(self.hold(one, streams=False))

    def hold(self, one: Draw, streams: bool) -> Outcome:
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
        queued: dict[str, list[float]] = {name: [] for name in graphs if streams}
        for _ in range(self.rounds):
            for name in self.chance.sample(list(graphs), len(graphs)):
                found[name].append(self.lane.replayed(graphs[name], self.calls))
                if streams and not self.simulated:
                    call = made.calls[name]
                    queued[name].append(self.lane.queued(name, call, graphs[name], self.calls))
        _core.synchronize()
        outcome.wrong = shapes.fault(one, arrays, made.results["gpukern"])
        outcome.graph = {name: statistics.median(times) for name, times in found.items()}
        outcome.stream = {name: statistics.median(t) for name, t in queued.items() if t}
        return outcome


def _addition(shape: tuple[int, ...], dtype: str) -> Draw:
    return Draw("add", dtype, shape, (slice(None),) * len(shape), tuple(range(len(shape))), ())


# --- the report -------------------------------------------------------------------------------


def judged(run: Run) -> Iterator[Line]:
    """The grid cell by cell and at its least size, then the drawn works of each kind."""
    outcomes = [*run.grid, *run.drawn]
    yield drawn.right_results([(one.draw, one.wrong) for one in outcomes])
    if run.simulated:
        return
    yield from _grid([one for one in run.grid if len(one.graph) > 1])
    compared = [one for one in run.drawn if len(one.graph) > 1 and one.graph["gpukern"] < SHORT]
    for group in BARS:
        speeds = [one.speed(one.graph) for one in compared if drawn.is_of(one.draw, group)]
        worst = f", worst {min(speeds, default=0):.3f}x"
        yield from drawn.means(group, ", drawn", speeds, worst)


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


def slowest(run: Run) -> list[str]:
    """The drawn works on which others were the furthest ahead."""
    compared = [one for one in run.drawn if len(one.graph) > 1 and not run.simulated]
    return [f"- {one}" for one in sorted(compared, key=lambda o: o.speed(o.graph))[:LISTED]]


def stored(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [{"work": str(o.draw), "graph": o.graph, "stream": o.stream} for o in outcomes]


def main(arguments: Sequence[str]) -> int:
    given = drawn.options(__doc__, 150).parse_args(arguments)
    machine = describe_machine()
    run = Run(given)
    run.go()
    lines = list(judged(run))
    remark = (
        f"medians of {run.rounds} rounds of {run.calls} calls, all in turn, what they read and "
    )
    remark += "write in the L2 cache as far as it fits"
    found = {"grid": stored(run.grid), "drawn": stored(run.drawn)}
    return drawn.tell(given, machine, found, lines, remark, slowest(run))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
