"""Every matmul beside cuBLAS: the ladder, tensor cores, random shapes, stacks, vectors, small ones.

    python benchmarks/matmul.py results/h200-matmul.json results/h200-matmul.md [--only ladder,half]

The contests are those of ``contests.py``: on the clock of ``gpukern.compare``, in turn in random
order, on normal random numbers, checked before and after. This script names the cases and holds
them against what is asked of them; pictures are written beside the tables. On the simulator, or
with ``--smoke``, the sizes are small; there the times mean nothing and are not shown.
"""

import json
import math
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from contests import DEFAULT, PEER, Arena, Outcome, Problem, at_places, own_variants, peer
from report import Line, as_markdown, as_table, met, parsed, shown, walked

import gpukern as gk
from gpukern import _core
from gpukern.bench.clock.machine import MachineClock
from gpukern.bench.clock.protocols import leetcuda
from gpukern.bench.clock.wall import wall
from gpukern.bench.model.intervals import Figure, figure, ratio
from gpukern.bench.model.limits import Limits
from gpukern.bench.tuning.products import Operands, Product, Way
from gpukern.machine.conditions import describe_machine
from gpukern.machine.inventory import installed
from gpukern.profiling import bus_bandwidth
from gpukern.text.units import seconds

SEED = 15
SHAPES = 60
# Float32 products on tensor cores, where there are such variants: by name, and what is asked.
SPLIT = {"f16x3": 2.5, "bf16x6": 1.5}
# On CUDA cores, at 4096: steps below that are not timed at larger sizes.
LEAST_RATE = 20e12
# Of the panels in which a product of host arrays goes through the device, one cannot overlap.
PANELS = 4


class Run:
    """The state of one run: small sizes or full ones, and every contest held."""

    def __init__(self, small: bool) -> None:
        self.small = small
        self.machine: dict[str, Any] = describe_machine()
        self.arena = Arena(small, SEED)
        self.clock = MachineClock()
        self._operands = Operands()

    @property
    def simulated(self) -> bool:
        """Whether times mean nothing."""
        return _core.backend() == "sim"

    @cached_property
    def limits(self) -> Limits:
        return self.clock.limits()

    def size(self, full: int, small: int) -> int:
        """One of two sizes."""
        return small if self.small else full

    def problem(self, dtype: str, m: int, k: int, n: int, transposed: str = "nn") -> Problem:
        way = Way(dtype, transposed[0] == "t", transposed[1] == "t", aligned=True)
        a, b, out = self._operands.of(Product(way, m, n, k))
        lies = f" {transposed}" if transposed != "nn" else ""
        size = f"{m}" if m == k == n else f"{m}x{k}x{n}"
        return Problem(f"{size}{lies}", a, b, out)

    def judged(self, section: str, work: str, bar: str, outcome: Outcome, line: "Judge") -> Line:
        """A line by ``line``, or why there is none."""
        if outcome.wrong:
            faults = "; ".join(f"{name}: {what}" for name, what in outcome.wrong.items())
            return Line(section, work, bar, faults, "WRONG")
        if self.simulated:
            return Line(section, work, bar, "-", "simulated")
        return Line(section, work, bar, *line(outcome))


Judge = Callable[[Outcome], tuple[str, str]]


def rate_text(outcome: Outcome, name: str) -> str:
    return f"{outcome.rate(name) / 1e12:.1f} TFLOP/s"


def against(names: Sequence[str], bar: float) -> Judge:
    """The best of these against the peer."""

    def judge(outcome: Outcome) -> tuple[str, str]:
        name = outcome.best(names)
        found = outcome.speed(name) if name else None
        if name is None:
            return "-", "no such variant"
        rates = f"{rate_text(outcome, name)}, {PEER} {rate_text(outcome, PEER)}"
        return f"{shown(found)}: {name} {rates}", met(found, bar)

    return judge


# --- sections ---------------------------------------------------------------------------------


def ladder(run: Run) -> Iterator[Line]:
    """Every float32 variant on CUDA cores, from the naive one up, and the best of them."""
    names = [name for name in own_variants("float32") if name not in SPLIT]
    peak = run.limits.peak_operations.get("float32")
    notes = {row.variant: row.note for row in gk.variants("matmul", "float32")}
    for side in (run.size(4096, 48), run.size(8192, 64)):
        outcome = run.arena.hold("ladder", run.problem("float32", side, side, side), names)

        def step(name: str, outcome: Outcome) -> tuple[str, str]:
            share = f", {outcome.rate(name) / peak:.1%} of the peak" if peak else ""
            part = outcome.seconds(PEER) / outcome.seconds(name)
            return f"{rate_text(outcome, name)}, {part:.1%} of {PEER}{share}", "right"

        for name in names:
            work = f"float32 {side} {name}"
            yield run.judged("ladder", work, notes[name], outcome, partial(step, name))
        work, bar = f"float32 {side} on CUDA cores, the best", f">= 0.95x {PEER}"
        yield run.judged("ladder", work, bar, outcome, against(names, 0.95))
        if not run.simulated:
            names = [name for name in names if outcome.rate(name) >= LEAST_RATE]


def half(run: Run) -> Iterator[Line]:
    """Our variants on tensor cores, each size and on the geometric mean."""
    sides = [run.size(full, small) for full, small in ((4096, 32), (6144, 40), (8192, 48))]
    sides.append(run.size(16384, 64))
    for dtype in ("bfloat16", "float16"):
        names = [name for name in own_variants(dtype) if run.small or "mma" in name]
        speeds: list[Figure | None] = []
        for side in sides:
            outcome = run.arena.hold("half", run.problem(dtype, side, side, side), names)
            best = outcome.best(names)
            speeds.append(outcome.speed(best) if best else None)
            work = f"{dtype} {side}, own variants"
            yield run.judged("half", work, f">= 1.00x {PEER}", outcome, against(names, 1.0))
        yield mean_line(run, "half", f"{dtype}, these sizes", speeds, 1.02)


def mean_line(
    run: Run, section: str, work: str, speeds: Sequence[Figure | None], bar: float
) -> Line:
    """The geometric mean of speeds, and of the ends of their intervals."""
    asked, there = f">= {bar:.2f}x {PEER}, geometric mean", [one for one in speeds if one]
    if run.simulated or not there:
        return Line(section, work, asked, "-", "simulated" if run.simulated else "no peer")
    mean = Figure(
        statistics.geometric_mean(one.value for one in there),
        statistics.geometric_mean(one.low for one in there),
        statistics.geometric_mean(one.high for one in there),
        len(there),
    )
    return Line(section, work, asked, f"{shown(mean)} of {len(there)}", met(mean, bar))


def random_shapes(count: int, least: int, most: int) -> list[tuple[int, int, int, str]]:
    """M, K and N, each log-uniform, and how the operands lie; always the same ones."""
    chance = random.Random(SEED)

    def size() -> int:
        return round(math.exp(chance.uniform(math.log(least), math.log(most))))

    return [
        (size(), size(), size(), chance.choice("nt") + chance.choice("nt")) for _ in range(count)
    ]


def shapes(run: Run) -> Iterator[Line]:
    """The default on random shapes, odd ones too, and random transpositions."""
    found = random_shapes(*((6, 17, 64) if run.small else (SHAPES, 64, 16384)))
    for dtype in ("bfloat16", "float32"):
        outcomes = [
            run.arena.hold("shapes", run.problem(dtype, *shape), [DEFAULT]) for shape in found
        ]
        speeds = [outcome.speed(DEFAULT) for outcome in outcomes]
        work = f"{dtype}, {len(found)} random shapes, the default"
        wrong = next((one for one in outcomes if one.wrong), None)
        if wrong:
            yield run.judged("shapes", work, "right", wrong, against([DEFAULT], 1.0))
            continue
        yield mean_line(run, "shapes", work, speeds, 1.0)
        # One whose interval lies below the bar is worse than any that reaches it.
        worst = min(
            outcomes,
            key=lambda one: (figure_of(one).high >= 0.95, figure_of(one).value),
        )
        below = sum(one.value < 0.95 for one in speeds if one)
        bar = f">= 0.95x {PEER} on each"
        work = f"{dtype}, the worst of them, {worst.name}; {below} below"
        yield run.judged(
            "shapes", work if not run.simulated else dtype, bar, worst, against([DEFAULT], 0.95)
        )


def figure_of(outcome: Outcome) -> Figure:
    return outcome.speed(DEFAULT) or Figure(0.0, 0.0, 0.0, 0)


def stacks(run: Run) -> Iterator[Line]:
    """Many products in one call."""
    full = [(32, 512, 512, 512), (4096, 32, 32, 32), (1000, 100, 7, 100)]
    small = [(3, 24, 24, 24), (16, 8, 8, 8), (10, 20, 7, 20)]
    rng = np.random.default_rng(SEED)
    for count, m, k, n in small if run.small else full:
        a, b = (
            gk.to_device(rng.standard_normal((count, *shape)).astype(np.float32))
            for shape in ((m, k), (k, n))
        )
        problem = Problem(f"{count} x {m}x{k}x{n}", a, b, gk.empty((count, m, n)))
        outcome = run.arena.hold("stacks", problem, [DEFAULT])
        work = f"float32, {problem.name}, the default"
        bar = f">= 1.00x {PEER}"
        yield run.judged("stacks", work, bar, outcome, against([DEFAULT], 1.0))


def vectors(run: Run) -> Iterator[Line]:
    """A matrix and one vector, which is as fast as memory is read."""
    side = run.size(16384, 96)
    for name, (m, k, n), lies in (
        ("matrix @ vector", (side, side, 1), "nn"),
        ("matrix.T @ vector", (side, side, 1), "tn"),
        ("vector @ matrix", (1, side, side), "nn"),
        ("vector @ matrix.T", (1, side, side), "nt"),
    ):
        outcome = run.arena.hold("vectors", run.problem("float32", m, k, n, lies), [DEFAULT])
        moved = 4 * (m * k + k * n + m * n)
        bar = ">= 95% of copy bandwidth"
        judge = partial(by_bandwidth, moved, run.limits.copy_bandwidth)
        yield run.judged("vectors", f"float32 {side}, {name}", bar, outcome, judge)


def by_bandwidth(moved: int, copy: float | None, outcome: Outcome) -> tuple[str, str]:
    time = outcome.time(DEFAULT)
    if not time or not copy:
        return "-", "no limit"
    share = Figure(*(moved / each / copy for each in (time.value, time.high, time.low)), 1)
    text = f"{share.value:.1%} {share.low:.1%}..{share.high:.1%}: {moved / time.value / 1e9:.0f}"
    return f"{text} GB/s, {PEER} {moved / outcome.seconds(PEER) / 1e9:.0f} GB/s", met(share, 0.95)


def small(run: Run) -> Iterator[Line]:
    """The host's time of a small product on device arrays, by the wall clock."""
    problem = run.problem("float32", 64, 64, 64)
    a, b, out = problem.a, problem.b, problem.out
    starts: dict[str, Callable[[], object]] = {
        "gpukern": partial(_core.matmul, a, b, out=out),
        "torch": peer(problem),
    }
    work, bar = "float32 64x64 with out=, host time", "<= 0.8x that of torch"
    if run.simulated:
        for start in starts.values():
            start()
        yield Line("small", work, bar, "-", "simulated")
        return
    samples: dict[str, dict[int, float]] = {name: {} for name in starts}
    for turn in range(run.size(15, 1)):
        for name in random.Random(turn).sample(list(starts), 2):
            samples[name][turn] = leetcuda(run.clock, starts[name])
    speed = ratio([samples["torch"]], [samples["gpukern"]])
    taken = ratio([samples["gpukern"]], [samples["torch"]])
    mine, theirs = (statistics.median(samples[name].values()) for name in ("gpukern", "torch"))
    text = f"{shown(taken)}: {seconds(mine)}, torch {seconds(theirs)}"
    yield Line("small", work, bar, text, met(speed, 1 / 0.8))


def host(run: Run) -> Iterator[Line]:
    """From NumPy arrays to a NumPy array."""
    side = run.size(4096, 64)
    rng = np.random.default_rng(SEED)
    a, b = (rng.standard_normal((side, side)).astype(np.float32) for _ in range(2))
    starts: dict[str, Callable[[], object]] = {"gpukern": lambda: gk.matmul(a, b)}
    if not run.simulated and installed("cupy"):
        import cupy

        starts["CuPy"] = lambda: cupy.asnumpy(cupy.matmul(cupy.asarray(a), cupy.asarray(b)))
    for name, start in starts.items():
        if not np.allclose(start(), a @ b, rtol=1e-3, atol=1e-2):
            yield Line("host", f"float32 {side}, NumPy to NumPy", name, "-", "WRONG")
            return
    samples: dict[str, dict[int, float]] = {name: {} for name in starts}
    for turn in range(run.size(11, 1)):
        for name in random.Random(turn).sample(list(starts), len(starts)):
            samples[name][turn] = wall(run.clock, starts[name])
    yield from host_lines(run, side, samples)


def host_lines(run: Run, side: int, samples: dict[str, dict[int, float]]) -> Iterator[Line]:
    work = f"float32 {side}, NumPy to NumPy"
    nearly, faster = "<= 1.1x of the bus and what cannot overlap", ">= 8x CuPy"
    bus, time = bus_bandwidth(), figure([samples["gpukern"].values()])
    if run.simulated or not bus or not time:
        yield Line("host", work, nearly, "-", "simulated" if run.simulated else "no bus")
        yield Line("host", work, faster, "-", "simulated" if run.simulated else "no bus")
        return
    matrix = 4 * side * side / bus
    kernel = run.arena.hold("host", run.problem("float32", side, side, side), [DEFAULT]).seconds(
        DEFAULT
    )
    # Both operands come in one after another; the last panel is computed and goes out behind them.
    least = 2 * matrix + (kernel + matrix) / PANELS
    share = Figure(*(least / each for each in (time.value, time.high, time.low)), time.rounds)
    text = f"{1 / share.value:.2f}x: {seconds(time.value)}, least {seconds(least)}"
    yield Line("host", work, nearly, text, met(share, 1 / 1.1))
    speed = ratio([samples.get("CuPy", {})], [samples["gpukern"]])
    yield Line("host", work, faster, shown(speed), met(speed, 8.0))


def accuracy(run: Run) -> Iterator[Line]:
    """Float32 products on tensor cores: how fast, and how far off beside SGEMM."""
    names = own_variants("float32", SPLIT) or [DEFAULT]
    for side in (run.size(4096, 48), run.size(8192, 56), run.size(16384, 64)):
        problem = run.problem("float32", side, side, side)
        outcome = run.arena.hold("accuracy", problem, names)
        errors = errors_of(problem, names)
        for name in names:
            bar = SPLIT.get(name, 1.0)
            work = f"float32 {side}, {name}"
            asked = f">= {bar:.1f}x {PEER}"
            yield run.judged("accuracy", work, asked, outcome, against([name], bar))
            text = f"{errors[name]:.2f} x 2^-24, {PEER} {errors[PEER]:.2f}"
            fine = errors[name] <= errors[PEER] or name == DEFAULT
            yield Line(
                "accuracy",
                f"{work}, rms of |e| / (|A||B|)",
                f"<= {PEER}'s",
                text if not run.simulated else "-",
                ("yes" if fine else "no") if not run.simulated else "simulated",
            )


def errors_of(problem: Problem, names: Sequence[str]) -> dict[str, float]:
    """The rms error at the same places, in units of 2^-24."""
    found = {}
    for name in (PEER, *names):
        if name == PEER:
            peer(problem)()
        else:
            variant = None if name == DEFAULT else name
            _core.matmul(problem.a, problem.b, out=problem.out, variant=variant)
        got, want, terms = at_places(problem, random.Random(SEED))
        found[name] = float(np.sqrt(np.mean(((got - want) / terms) ** 2)) * 2**24)
    return found


SECTIONS: dict[str, Callable[[Run], Iterator[Line]]] = {
    one.__name__: one for one in (ladder, half, shapes, stacks, vectors, small, host, accuracy)
}


# --- the report -------------------------------------------------------------------------------


def remarks(run: Run) -> list[str]:
    """The machine, and what the figures are."""
    machine, rounds = run.machine, run.arena.rounds
    versions = machine.get("versions", {})
    return [
        f"{machine['device']}, driver {machine['driver']}, torch {versions.get('torch', 'absent')}",
        f"medians of {rounds} rounds on the device, in turn, on normal random numbers",
        f"{PEER} is torch.matmul with out=, without tf32 and without reduced precision",
    ]


def write(paths: Sequence[str], run: Run, lines: list[Line], spent: dict[str, float]) -> None:
    whole = {
        "machine": run.machine,
        "seconds": spent,
        "lines": [asdict(line) for line in lines],
        "contests": [outcome.to_dict() for outcome in run.arena.outcomes],
    }
    Path(paths[0]).write_text(json.dumps(whole, indent=1) + "\n")
    Path(paths[1]).write_text(as_markdown(lines, remarks(run), []))


def main(arguments: Sequence[str]) -> int:
    given = parsed(__doc__, list(SECTIONS), arguments)
    run = Run(small=given.smoke or _core.backend() == "sim")
    sections = {name: partial(section, run) for name, section in SECTIONS.items()}
    lines = walked(sections, given.only, partial(write, given.paths, run))
    if installed("matplotlib"):
        from matmul_plots import save

        for path in save(run.arena.outcomes, Path(given.paths[1]), run.simulated):
            print(f"written to {path}", file=sys.stderr)
    print("\n".join(remarks(run)))
    print(as_table(lines))
    return 1 if any(line.met == "WRONG" for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
