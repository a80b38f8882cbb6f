"""Elementwise operations, reductions and transposes beside the speed of memory and other libraries.

    python benchmarks/memory_bound.py results.json results.md [--only sums,axes]

The figures are those of ``gpukern.compare`` on the device: checked before and after, all contenders
in turn in random order, nothing in the L2 cache, medians with 99 % intervals. This script names the
cases and holds them against what is asked of them. On the simulator, or with ``--smoke``, the sizes
are small; there the times mean nothing and are not shown.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from report import Line, as_markdown, as_table, met, parsed, shown, walked

import gpukern as gk
from gpukern import _core
from gpukern.bench.cases.plans import Size
from gpukern.bench.clock.machine import MachineClock
from gpukern.bench.clock.protocols import leetcuda
from gpukern.bench.clock.wall import wall_synchronized
from gpukern.bench.comparison import Comparison, prepare
from gpukern.bench.contenders.registry import Wanted, begin_ahead, gather, select
from gpukern.bench.filling import fill
from gpukern.bench.model.clock import Clock
from gpukern.bench.model.intervals import Figure, figure, ratio
from gpukern.bench.model.row import ABSENT, BROKEN, RIGHT, WRONG, Row
from gpukern.bench.model.settings import Effort, Settings
from gpukern.bench.rows import FASTEST_PEER
from gpukern.machine.conditions import describe_machine
from gpukern.text.units import bandwidth, seconds

SEED = 7
LAUNCHES = 1000
BITS_COUNT = 2**20 - 157

# In a process of its own, on some cores: their number makes the size of the chunks.
BITS = """
import os, sys, numpy as np
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(sys.argv[1])])
import gpukern as gk
rng = np.random.default_rng(5)
count = int(sys.argv[3])
a = (rng.standard_normal(count) * 2.0 ** rng.integers(-20, 20, count)).astype(np.float32)
wide = np.zeros((count, 2), np.float32)
wide[:, 1] = a
d = gk.to_device(a)
bits = set()
for i in range(int(sys.argv[2])):
    bits.add(np.asarray(gk.sum(d).to_host()).tobytes())
    bits.add(np.asarray(gk.sum(a)).tobytes())
bits.add(np.asarray(gk.sum(wide[:, 1])).tobytes())
print(" ".join(sorted(one.hex() for one in bits)))
"""


@dataclass
class Run:
    """The state of one run: small sizes or full ones, and every comparison made."""

    small: bool
    contenders: Sequence[Wanted] = ()
    comparisons: list[Comparison] = field(default_factory=list)
    machine: dict[str, object] = field(default_factory=describe_machine)

    @property
    def simulated(self) -> bool:
        """Whether times mean nothing."""
        return _core.backend() == "sim"

    @property
    def rows(self) -> list[Row]:
        """The rows of every comparison made."""
        return [row for comparison in self.comparisons for row in comparison.rows]

    def size(self, full: int, small: int) -> int:
        """One of two sizes."""
        return small if self.small else full

    def compare(
        self,
        op: str,
        sizes: Sequence[Size],
        dtype: str,
        contenders: Sequence[str],
        baseline: str = FASTEST_PEER,
        rounds: int | None = None,
    ) -> Comparison:
        """One comparison on the device; ``contenders`` of the run take part in it too."""
        cases, entrants = prepare(op, sizes, dtype, [*contenders, *self.contenders])
        comparison = Comparison(SEED, dict(self.machine), mode="device", baseline=baseline)
        effort = Effort(seconds=0.4, least=9, rounds=2 if self.small else rounds)
        fill(comparison, cases, entrants, Settings("device", effort=effort, simulated=True))
        self.comparisons.append(comparison)
        return comparison


def ours(comparison: Comparison) -> list[Row]:
    return [row for row in comparison.rows if row.contender == "gpukern" and row.status != ABSENT]


def best(rows: Sequence[Row]) -> Row | None:
    """The fastest of some rows of gpukern."""
    timed = [row for row in rows if row.on_device]
    return min(timed, key=lambda row: row.on_device.value if row.on_device else 0, default=None)


def fault(comparison: Comparison) -> str:
    """What keeps a line from being judged, or nothing."""
    rows = ours(comparison)
    if any(row.status == WRONG for row in rows):
        return "WRONG"
    if any(row.status == BROKEN for row in rows) or not rows:
        return "broken"
    return "simulated" if comparison.simulated else ""


def peer_of(comparison: Comparison, row: Row) -> Row | None:
    """The contender that a row's ratio was taken against."""
    for other in comparison.rows:
        if other.size == row.size and other.on_device and other.device_ratio is None:
            return other
    return None


def ratio_line(
    section: str, work: str, comparison: Comparison, bar: float, variants: str = ""
) -> Line:
    """The worst ratio to the fastest peer over the sizes of a comparison, each with our best.

    One whose interval lies below the bar is worse than any that reaches it.
    """
    asked = f">= {bar:.2f}x the fastest peer"
    reason = fault(comparison)
    if reason:
        return Line(section, work, asked, "-", reason)
    sizes = list(dict.fromkeys(row.size for row in comparison.rows))
    rows = [row for row in ours(comparison) if variants in ("", row.variant)]
    chosen = [best([row for row in rows if row.size == size]) for size in sizes]
    judged = [(row.device_ratio, row) for row in chosen if row and row.device_ratio]
    judged.sort(key=lambda one: (one[0].high >= bar, one[0].value))
    worst = judged[0][1] if judged else None
    if worst is None or worst.on_device is None:
        return Line(section, work, asked, "-", "no peer")
    peer = peer_of(comparison, worst)
    where = f" at {worst.size}" if len(sizes) > 1 else ""
    text = (
        f"{shown(worst.device_ratio)}{where}: {worst.variant or 'gpukern'} "
        f"{seconds(worst.on_device.value)}, {peer.label if peer else 'peer'}"
    )
    return Line(section, work, asked, text + flagged(worst), met(worst.device_ratio, bar))


def flagged(row: Row) -> str:
    # Warm figures of small arrays come from the cache, and are not those that count here.
    flags = [flag for flag in row.flags if not flag.startswith("warm:")]
    return f" (flagged: {flags[0]})" if flags else ""


def share(row: Row) -> Figure | None:
    """The share of the copy bandwidth with its interval: the limit scales with the time."""
    time, value = row.on_device, row.limit
    if time is None or value is None:
        return None
    return Figure(value, value * time.value / time.high, value * time.value / time.low, time.rounds)


def share_line(section: str, work: str, comparison: Comparison, bar: float) -> Line:
    asked = f">= {bar:.0%} of copy bandwidth"
    reason, row = fault(comparison), best(ours(comparison))
    if reason or row is None or row.on_device is None:
        return Line(section, work, asked, "-", reason or "broken")
    found = share(row)
    if found is None:
        return Line(section, work, asked, "-", "no limit")
    rate = bandwidth(row.bytes_moved, row.on_device.value)
    text = f"{found.value:.1%} {found.low:.1%}..{found.high:.1%}: {row.variant}, {rate}"
    above = " (flagged: above the copy itself)" if found.value > 1 else ""
    return Line(section, work, asked, text + (flagged(row) or above), met(found, bar))


def torch_and_cupy(op: str) -> list[str]:
    """Their contenders that are timed on the device."""
    return [f"torch:torch.{op}", "torch:torch.compile", f"cupy:cupy.{op}"]


# --- sections ---------------------------------------------------------------------------------


def adds(run: Run) -> Iterator[Line]:
    """The grid of nine sizes, and arrays far beyond the cache."""
    sides = [run.size(1024 << i, 32 << i) for i in range(3)]
    sizes = [(m, n) for m in sides for n in sides]
    for dtype in ("float32", "float16"):
        peers = [*torch_and_cupy("add"), "numba:vector add", "triton", "gpukern"]
        found = run.compare("add", sizes, dtype, peers)
        yield ratio_line("adds", f"add, nine sizes, {dtype}", found, 1.0)
    side = run.size(2**13, 2**7)
    for dtype in ("float32", "float16", "bfloat16", "float64", "int8"):
        found = run.compare("add", [side], dtype, ["gpukern"], rounds=9)
        yield share_line("adds", f"add {side}x{side} {dtype}", found, 0.98)


def launches(run: Run) -> Iterator[Line]:
    """Calls on 1024 floats one after another, by the wall clock, with one wait at the end."""
    a, b, out = (_core.to_device(np.ones(1024, np.float32)) for _ in range(3))
    clock = MachineClock()
    calls: dict[str, Callable[[], float]] = {
        "gpukern": partial(leetcuda, clock, partial(gk.add, a, b, out=out)),
        **dict(other_launches(run, clock, a, b, out)),
    }
    samples: dict[str, dict[int, float]] = {name: {} for name in calls}
    order = list(calls)
    for turn in range(run.size(21, 1)):
        random.Random(turn).shuffle(order)
        for name in order:
            samples[name][turn] = calls[name]()
    for other, most in (("cuLaunchKernel", 1.4), ("PyTorch", 0.5)):
        work, bar = f"add of 1024 floats, out=, against {other}", f"<= {most}x its time"
        if run.simulated or other not in samples:
            yield Line("launches", work, bar, "-", "simulated" if run.simulated else "no peer")
            continue
        speed = ratio([samples[other]], [samples["gpukern"]])
        mine, theirs = (
            seconds(figure([samples[name].values()]).value) for name in ("gpukern", other)
        )
        taken = ratio([samples["gpukern"]], [samples[other]])
        text = f"{shown(taken)}: {mine}, {other} {theirs}"
        yield Line("launches", work, bar, text, met(speed, 1 / most))


def other_launches(
    run: Run, clock: Clock, a: object, b: object, out: object
) -> Iterator[tuple[str, Callable[[], float]]]:
    if run.simulated:
        return
    if offered(run, "cub", "sum"):
        from gpukern.bench.contenders.cub_ import launch_add

        launch_add(out, a, b, LAUNCHES)
        bare = partial(launch_add, out, a, b, LAUNCHES)
        yield "cuLaunchKernel", lambda: wall_synchronized(clock, bare) / LAUNCHES
    if offered(run, "torch", "add"):
        import torch

        arrays = [torch.as_tensor(one, device="cuda") for one in (a, b, out)]
        call = partial(torch.add, arrays[0], arrays[1], out=arrays[2])
        yield "PyTorch", partial(leetcuda, clock, call)


def offered(run: Run, key: str, op: str) -> bool:
    """Whether a library can take part here."""
    (peer, _), *_ = select([key])
    return hasattr(gather(peer, None, op, "float32")[0], "device")


def sum_rows(dtype: str) -> list[str]:
    """The default sum and the row before it in the ladder, which is the plain one."""
    return [row.variant for row in gk.variants("sum", dtype) if row.runs][-2:]


def sums(run: Run) -> Iterator[Line]:
    """All elements of long arrays."""
    large = run.size(2**28, 2**12)
    odd = run.size(2**27 - 157, 2**14 - 157)
    for count, dtype in ((odd, "float32"), *((large, d) for d in ("float32", "int32", "float16"))):
        names = sum_rows(dtype)
        rows = [f"gpukern:{name}" for name in names]
        found = run.compare("sum", [count], dtype, [*torch_and_cupy("sum"), "cub", *rows])
        work = f"sum {count} {dtype}"
        yield ratio_line("sums", f"{work}, the default", found, 1.03, names[-1])
    plain, default = sum_rows("float32")[0], sum_rows("float32")[-1]
    both = [f"gpukern:{plain}", f"gpukern:{default}"]
    found = run.compare("sum", [odd], "float32", both, f"gpukern:{plain}")
    work, bar = f"sum {odd} float32, {default}", f">= 0.98x the speed of {plain}"
    reason = fault(found)
    row = ours(found)[-1]
    taken = None if reason else row.device_ratio
    text = f"{shown(taken)}, {row.ulps or 0:.2g} ulps"
    yield Line("sums", work, bar, text if taken else "-", reason or met(taken, 0.98))


def axes(run: Run) -> Iterator[Line]:
    """Sums over one axis of square, wide and tall matrices, and over both axes."""
    shapes = [(8192, 8192), (64, 2**20), (2**20, 64)]
    if run.small:
        shapes = [(96, 80), (16, 700), (700, 16)]
    for op in ("sum axis=0", "sum axis=1", "sum axis=0,1"):
        for shape in shapes[:1] if op == "sum axis=0,1" else shapes:
            found = run.compare(op, [shape], "float32", [*torch_and_cupy(op), "gpukern"])
            yield ratio_line("axes", f"{op} of {shape[0]}x{shape[1]}", found, 1.0)


def reductions(run: Run) -> Iterator[Line]:
    """The other reductions of all elements."""
    count = run.size(2**27, 2**14)
    for op in ("argmax", "max", "norm", "dot"):
        peers = [*torch_and_cupy(op), "cub", "gpukern"]
        found = run.compare(op, [count], "float32", peers)
        yield ratio_line("reductions", f"{op} of {count}", found, 1.0)


def transposes(run: Run) -> Iterator[Line]:
    """A matrix turned, in three sizes of element."""
    side = run.size(8192, 96)
    for dtype in ("float32", "float16", "uint8"):
        found = run.compare("transpose", [side], dtype, [*torch_and_cupy("transpose"), "gpukern"])
        work = f"transpose {side}x{side} {dtype}"
        yield share_line("transposes", work, found, 0.90)
        yield ratio_line("transposes", work, found, 1.0)


def ladder(run: Run) -> Iterator[Line]:
    """Every row of the sum, from the naive one up."""
    count = run.size(2**27 - 157, 2**14 - 157)
    found = run.compare("sum", [count], "float32", ["gpukern"], "gpukern", rounds=9)
    notes = {row.variant: row.note for row in gk.variants("sum", "float32")}
    for row in ours(found):
        text, part = "-", share(row)
        if not run.simulated and part and row.on_device:
            rate = bandwidth(row.bytes_moved, row.on_device.value)
            text = f"{seconds(row.on_device.value)}, {rate}, {part.value:.1%} of copy bandwidth"
        status = "right" if row.status == RIGHT else row.status
        yield Line("ladder", f"sum {row.variant}", notes[row.variant], text, status)


def bits(run: Run) -> Iterator[Line]:
    """The same bits whatever the run, the chunks, and where the array lies."""
    runs, cores = run.size(500, 5), os.cpu_count() or 1
    patterns: dict[str, str] = {}
    # One, three and six cores cut this count into chunks of 256, 192 and 96 Ki elements.
    for used in sorted({1, min(3, cores), min(6, cores)}):
        patterns[f"{used} cores"] = bits_of(used, runs, os.environ.get("GPUKERN_DEVICE"))
    for seed in ("1", "2"):
        name = f"simulator, seed {seed}"
        patterns[name] = bits_of(cores, 1, "sim", GPUKERN_SIM_SEED=seed)
    distinct = {one for each in patterns.values() for one in each.split()}
    text = f"{len(distinct)} pattern{'s' * (len(distinct) != 1)} in {2 * runs} runs each on "
    text += ", ".join(patterns)
    work = f"sum {BITS_COUNT}, host and device, chunks by cores"
    yield Line("bits", work, "one bit pattern", text, "yes" if len(distinct) == 1 else "no")
    count = run.size(2**27 - 157, 2**16 - 157)
    a = np.random.default_rng(1).standard_normal(count, np.float32)
    d = gk.to_device(a)
    found = {np.asarray(gk.sum(d).to_host()).tobytes() for _ in range(run.size(1000, 10))}
    found |= {np.asarray(gk.sum(a)).tobytes() for _ in range(run.size(20, 3))}
    text = f"{len(found)} in {run.size(1000, 10)} runs on the device, {run.size(20, 3)} from host"
    status = "yes" if len(found) == 1 else "no"
    yield Line("bits", f"sum {count}", "one bit pattern", text, status)


def bits_of(cores: int, runs: int, device: str | None, **more: str) -> str:
    environment = {**os.environ, **more, **({"GPUKERN_DEVICE": device} if device else {})}
    command = [sys.executable, "-c", BITS, str(cores), str(runs), str(BITS_COUNT)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


SECTIONS: dict[str, Callable[[Run], Iterator[Line]]] = {
    one.__name__: one for one in (adds, launches, sums, axes, reductions, transposes, ladder, bits)
}


# --- the report -------------------------------------------------------------------------------


def remarks(run: Run) -> list[str]:
    """Contenders that took no part, and the copy bandwidths of the comparisons."""
    found = {
        f"{row.label}: {row.op} {row.dtype}: {row.status}: {row.detail}"
        if row.status != ABSENT
        else f"{row.contender}: {row.detail}"
        for row in run.rows
        if row.status != RIGHT
    }
    lines = sorted(found)
    copies = [
        float(limits["copy_bandwidth"])
        for limits in (one.machine.get("limits", {}) for one in run.comparisons)
        if limits.get("copy_bandwidth")
    ]
    if copies:
        low, high = (bandwidth(value, 1.0) for value in (min(copies), max(copies)))
        lines.append(f"CUB {cub_version(run)}")
        lines.append(f"copy bandwidth, measured before each comparison: {low} to {high}")
    return lines


def cub_version(run: Run) -> str:
    if not any(row.contender == "CUB" and row.status == RIGHT for row in run.rows):
        return "took no part"
    from gpukern.bench.contenders.cub_ import version

    return version()


def write(paths: Sequence[str], run: Run, lines: list[Line], spent: dict[str, float]) -> None:
    whole = {
        "machine": run.machine,
        "seconds": spent,
        "lines": [asdict(line) for line in lines],
        "comparisons": [json.loads(one.to_json()) for one in run.comparisons],
    }
    Path(paths[0]).write_text(json.dumps(whole, indent=1) + "\n")
    tables = [one.to_markdown() for one in run.comparisons]
    Path(paths[1]).write_text(as_markdown(lines, remarks(run), tables))


def main(arguments: Sequence[str]) -> int:
    given = parsed(__doc__, list(SECTIONS), arguments)
    run = Run(small=given.smoke or _core.backend() == "sim")
    begin_ahead(select(["cub"]), [(op, "float32") for op in ("sum", "max", "argmax")])
    sections = {name: partial(section, run) for name, section in SECTIONS.items()}
    lines = walked(sections, given.only, partial(write, given.paths, run))
    print("\n".join(remarks(run)))
    print(as_table(lines))
    return 1 if any(line.met in (WRONG, BROKEN) for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
