"""Two builds of gpukern beside one another: what became faster, and what slower.

    pip install --target old-site OLD_CHECKOUT && pip install --target new-site NEW_CHECKOUT
    python benchmarks/beside.py old-site new-site results/beside.json results/beside.md

Each build runs in a process of its own on the same GPU. Round by round both measure every case,
in random order, and a ratio is taken of each round. What stays for a process's life (where its
memory lies, which core it runs on) would look like a difference of the builds, so it is done with
several pairs of processes, each build started first in turn: the ratio is the median of the pairs'
medians, the interval reaches from the least of them to the greatest. Device times are events around
calls one after another, so small arrays are in the L2 cache: what is compared is two builds, not a
build with the memory.
"""

import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpukern.text.units import seconds

PAIRS = 4  # of processes
ROUNDS = 4  # of each pair
SAME = 0.01  # of a ratio: what two builds of one source may differ by

WORKER = """
import json, sys, time
import numpy as np
import gpukern as gk

rng = np.random.default_rng(3)
WHOLE = ("int8", "uint8", "int32", "int64")

def array(shape, dtype):
    few = 1000003  # again and again: drawing them all would take longer than what is measured
    if dtype in WHOLE:
        return np.resize(rng.integers(0, 100, few).astype(dtype), shape)
    return np.resize(rng.standard_normal(few).astype(dtype), shape)

def operands(op, shape, dtype):
    two = ("add", "multiply", "divide", "maximum", "dot")
    count = 3 if op == "scale_add" else 2 if op in two else 1
    return [array(shape, dtype) for _ in range(count)]

# Work that keeps the device busy until the calls that are measured are all queued behind it.
queue = [gk.to_device(array((8192, 8192), "float32")) for _ in range(2)]

def hold():
    for _ in range(10):
        gk.add(*queue, out=queue[0])

def on_device(op, shape, dtype, options):
    there = [gk.to_device(a) for a in operands(op, shape, dtype)]
    if options.pop("number", False):
        there[-1] = 1.5
    if options.pop("offset", False):
        there = [a[1:] for a in there]
    call = getattr(gk, op)
    out = call(*there, **options)
    repeat = max(4, min(200, int(2e9 / max(sum(getattr(a, "nbytes", 0) for a in there), 1))))
    start, stop = gk.Event(), gk.Event()
    def measure():
        gk.synchronize()
        hold()
        start.record()
        for _ in range(repeat):
            call(*there, out=out, **options)
        stop.record()
        return stop.seconds_since(start) / repeat
    return measure

def from_host(op, shape, dtype, options):
    here = [operands(op, shape, dtype) for _ in range(2)]
    if op == "matmul":
        here = [[array(shape, dtype), array(shape, dtype)] for _ in range(2)]
    call = getattr(gk, op)
    repeat = 1 if here[0][0].nbytes > 1 << 20 else 200
    turn = [0]
    def measure():
        turn[0] += 1
        start = time.perf_counter()
        for _ in range(repeat):
            call(*here[turn[0] % 2], **options)
        return (time.perf_counter() - start) / repeat
    return measure

def launches(ops, shape, dtype, options):
    work = []
    for op in ops.split():
        there = [gk.to_device(a) for a in operands(op, shape, dtype)]
        work.append((getattr(gk, op), there, getattr(gk, op)(*there, **options)))
    def measure():
        gk.synchronize()
        start = time.perf_counter()
        for _ in range(500):
            for call, there, out in work:
                call(*there, out=out, **options)
        taken = time.perf_counter() - start
        gk.synchronize()
        return taken / 500 / len(work)
    return measure

made = {}
for line in sys.stdin:
    kind, op, shape, dtype, options = case = json.loads(line)
    key = line
    if key not in made:
        if kind == "on device" and len(made) > 40:
            made.clear()
        maker = {"on device": on_device, "host": from_host, "launch": launches}[kind]
        made[key] = maker(op, tuple(shape), dtype, dict(options))
        made[key]()
    print(made[key](), flush=True)
"""


def device_cases() -> Iterator[list[Any]]:
    """What runs on arrays that are there."""
    for dtype in ("float32", "float16"):
        for rows in (1024, 2048, 4096):
            for columns in (1024, 2048, 4096):
                yield ["on device", "add", [rows, columns], dtype, {}]
    for op in ("multiply", "maximum", "scale_add", "sqrt", "exp", "negative"):
        yield ["on device", op, [8192, 8192], "float32", {}]
    for dtype in ("float64", "int8", "int32", "int64"):
        yield ["on device", "add", [1 << 26], dtype, {}]
    yield ["on device", "add", [1 << 26], "float32", {"number": True}]
    yield ["on device", "add", [(1 << 26) + 1], "float32", {"offset": True}]
    yield ["on device", "multiply", [(1 << 26) + 1], "float32", {"offset": True}]
    for op in ("sum", "mean", "max", "argmax", "norm", "dot", "prod"):
        yield ["on device", op, [2**27 - 157], "float32", {}]
    for dtype in ("float16", "int32", "uint8", "float64"):
        yield ["on device", "sum", [1 << 27], dtype, {}]
    for shape in ([8192, 8192], [1 << 20, 64], [64, 1 << 20]):
        for axis in (0, 1):
            yield ["on device", "sum", shape, "float32", {"axis": axis}]
    for dtype in ("float32", "float16", "uint8"):
        yield ["on device", "transpose", [8192, 8192], dtype, {}]


def other_cases() -> Iterator[list[Any]]:
    """Transfers and launches."""
    for shape in ([1024], [1024, 1024], [4096, 4096], [8192, 8192]):
        yield ["host", "add", shape, "float32", {}]
    yield ["host", "sum", [2**27 - 157], "float32", {}]
    yield ["host", "matmul", [4096, 4096], "float32", {}]
    for ops in ("add", "sum", "multiply mean", "divide mean", "matmul"):
        shape = [32, 32] if ops == "matmul" else [1024]
        if ops != "matmul":
            yield ["launch", ops, shape, "float32", {}]
    yield ["launch", "add", [1024], "float32", {"variant": "f32x4"}]


def start(site: str) -> "subprocess.Popen[str]":
    """A process that measures with the build in that folder."""
    environment = {**os.environ, "PYTHONPATH": site}
    return subprocess.Popen(
        [sys.executable, "-c", WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def ask(worker: "subprocess.Popen[str]", case: list[Any]) -> float:
    """Seconds that the case takes there."""
    assert worker.stdin and worker.stdout
    worker.stdin.write(json.dumps(case) + "\n")
    worker.stdin.flush()
    said = worker.stdout.readline()
    if not said:
        sys.exit(f"a process ended at {case}")
    return float(said)


def measure_pair(sites: list[str], first: int, cases: list[list[Any]]) -> list[list[list[float]]]:
    """The seconds of each case, build by build, round by round, by a new process of each build."""
    workers: dict[int, subprocess.Popen[str]] = {}
    for which in (first, 1 - first):
        workers[which] = start(sites[which])
        ask(workers[which], cases[0])
    taken: list[list[list[float]]] = [[[], []] for _ in cases]
    for case, builds in zip(cases, taken, strict=True):
        for _ in range(ROUNDS):
            for which in random.sample((0, 1), 2):
                builds[which].append(ask(workers[which], case))
    for worker in workers.values():
        worker.kill()
        worker.wait()
    return taken


def ratios(pairs: list[list[list[float]]]) -> list[float]:
    """Of each pair of processes the median of its rounds' ratios, the least first."""
    return sorted(
        statistics.median(old / new for old, new in zip(*builds, strict=True)) for builds in pairs
    )


def line_of(case: list[Any], pairs: list[list[list[float]]]) -> str:
    """A line of the table."""
    kind, op, shape, dtype, options = case
    found = ratios(pairs)
    verdict = "same"
    if found[0] > 1 + SAME:
        verdict = "faster"
    if found[-1] < 1 - SAME:
        verdict = "SLOWER"
    named = ", ".join(f"{key} {value}" for key, value in options.items())
    size = "x".join(map(str, shape))
    old, new = (
        statistics.median(time for builds in pairs for time in builds[which]) for which in (0, 1)
    )
    return (
        f"| {kind} | {op} {size} {dtype}{' ' + named if named else ''} | {seconds(old)} | "
        f"{seconds(new)} | {statistics.median(found):.3f}x | {found[0]:.3f}..{found[-1]:.3f} | "
        f"{verdict} |"
    )


def main(arguments: list[str]) -> int:
    if len(arguments) != 4:
        sys.exit(__doc__)
    cases = [*device_cases(), *other_cases()]
    taken = [measure_pair(arguments[:2], number % 2, cases) for number in range(PAIRS)]
    lines = ["| | work | before | now | ratio | interval | |", "|---|---|---|---|---|---|---|"]
    stored = []
    for case, *pairs in zip(cases, *taken, strict=True):
        lines.append(line_of(case, pairs))
        stored.append({"case": case, "pairs": pairs})
    print("\n".join(lines))
    Path(arguments[2]).write_text("[\n" + ",\n".join(map(json.dumps, stored)) + "\n]\n")
    Path(arguments[3]).write_text("\n".join(lines) + "\n")
    return int(any("SLOWER" in line for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
