"""NumPy arrays in, NumPy arrays out: how near each library comes to the speed of the bus.

    python benchmarks/transfers.py results/transfers.json results/transfers.md

The figures are those of ``gpukern.compare`` (checked before and after, all contenders in turn in
random order); this script names the cases, relates each to what the bus alone would need, and adds
what takes processes of their own: the first call, and the way from the start of Python to a result.
"""

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import gpukern as gk
from gpukern.bench.comparison import Comparison
from gpukern.bench.contenders.kept import WITH_ARRAYS
from gpukern.bench.model.row import RIGHT, Row
from gpukern.profiling import bus_bandwidth
from gpukern.text.units import seconds

PEERS = ["numpy", "torch:torch.{op}", "torch:pinned", "cupy", "numba"]
OURS = {"add": "gpukern:f32x8", "sum": "gpukern:compensated", "matmul": "gpukern:cublas"}
ADD_SIZES = [(1, 1024), (1, 1 << 14), (1, 1 << 18), (1, 1 << 22), (4096, 4096), (8192, 8192)]
CASES = {"add": ADD_SIZES, "sum": [(2**27 - 157,)], "matmul": [(4096, 4096, 4096)]}
BUDGET = {"add": 30.0, "sum": 15.0, "matmul": 15.0}
PROCESSES = 3

# In a process of its own: the first call on 64 MiB arrays, and Python's start to the first result.
FIRST = {
    "gpukern": "import gpukern as gk; call = lambda a, b: gk.add(a, b)",
    "CuPy": "import cupy as cp; call = lambda a, b: cp.asnumpy(cp.asarray(a) + cp.asarray(b))",
    "PyTorch": (
        "import torch; t = torch.from_numpy;"
        " call = lambda a, b: (t(a).cuda() + t(b).cuda()).cpu().numpy()"
    ),
}
PROGRAM = """
import time, numpy as np
a = np.random.default_rng(1).random((4096, 4096), dtype=np.float32)
small = a[:2, :2].copy()
begin = time.perf_counter()
{imports}
if {small}:
    call(small, small)
    print(time.perf_counter() - begin)
else:
    begin = time.perf_counter()
    result = call(a, a)
    print(time.perf_counter() - begin)
    assert np.array_equal(result, a + a)
"""


@dataclass(frozen=True)
class Line:
    """A case: our time, what the bus alone needs, and how many times as long each peer takes."""

    work: str
    ours: float
    bus: float
    peers: dict[str, float]

    def cells(self) -> list[str]:
        best = min(self.peers.values())
        names = ", ".join(f"{name} {value:.1f}x" for name, value in self.peers.items())
        return [self.work, seconds(self.ours), f"{self.bus / self.ours:.0%}", f"{best:.1f}x", names]


def bus_time(row: Row, bandwidth: float) -> float:
    """Seconds for the longer of the two directions, which the bus does at the same time."""
    count = [4 * shape[0] * (shape[1] if len(shape) > 1 else 1) for shape in row.shapes]
    return max(sum(count), row.bytes_moved - sum(count)) / bandwidth


def lines_of(comparison: Comparison, bandwidth: float) -> list[Line]:
    found = []
    for ours in comparison.rows:
        if ours.contender != "gpukern" or ours.status != RIGHT or ours.end_to_end is None:
            continue
        mine = ours.end_to_end.value
        peers = {
            row.label: row.end_to_end.value / mine
            for row in comparison.rows
            if row.contender != "gpukern" and row.end_to_end and row.size == ours.size
        }
        found.append(Line(f"{ours.op} {ours.size}", mine, bus_time(ours, bandwidth), peers))
    return found


def measure(op: str, bandwidth: float) -> tuple[list[Line], Comparison]:
    contenders = [name.format(op=op) for name in PEERS] + [OURS[op]]
    if op in WITH_ARRAYS:
        contenders.append("torch:out=")
    comparison = gk.compare(
        op, CASES[op], "float32", contenders, mode="end-to-end", seed=1, budget=BUDGET[op]
    )
    return lines_of(comparison, bandwidth), comparison


def in_processes(small: bool) -> dict[str, float]:
    """The median over fresh processes; a library that is not there is left out."""
    found = {}
    for name, imports in FIRST.items():
        program = PROGRAM.format(imports=imports, small=small)
        runs = [
            subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, check=False
            )
            for _ in range(PROCESSES)
        ]
        if all(run.returncode == 0 for run in runs):
            found[name] = statistics.median(float(run.stdout) for run in runs)
    return found


def limited() -> dict[str, float]:
    """Seconds of an add whose arrays are twice the limit on device memory, and without one."""
    found = {}
    for name, limit in (("without a limit", 0), ("under the limit", 3 * 4 * 8192 * 8192 // 2)):
        with gk.limits(device_memory=limit):
            comparison = gk.compare("add", [8192], "float32", [OURS["add"]], mode="end-to-end")
        figure = comparison.rows[0].end_to_end
        found[name] = figure.value if figure else float("nan")
    return found | {"ratio": found["under the limit"] / found["without a limit"]}


def table(lines: list[Line], bandwidth: float) -> list[str]:
    head = ["work, float32", "gpukern", "of the bus", "nearest peer", "each peer's time"]
    rows = [head, ["---"] * len(head), *(line.cells() for line in lines)]
    note = f"The bus: {bandwidth / 1e9:.1f} GB/s one way, measured with pinned memory."
    return [*("| " + " | ".join(row) + " |" for row in rows), "", note]


def main(paths: list[str]) -> int:
    if len(paths) != 2:
        sys.exit(__doc__)
    bandwidth = bus_bandwidth()
    if not bandwidth:
        sys.exit("transfers.py measures a GPU's bus, and there is no GPU here")
    lines: list[Line] = []
    comparisons = {}
    for op in CASES:
        measured, comparison = measure(op, bandwidth)
        lines += measured
        comparisons[op] = json.loads(comparison.to_json())
    extra = {
        "first call, 64 MiB arrays": in_processes(small=False),
        "start to first result": in_processes(small=True),
        "add 8192x8192, three arrays of twice the limit": limited(),
    }
    text = table(lines, bandwidth)
    for name, values in extra.items():
        shown = (f"{k} {v:.2f}" if k == "ratio" else f"{k} {seconds(v)}" for k, v in values.items())
        text.append(f"{name}: {', '.join(shown)}.")
    Path(paths[0]).write_text(
        json.dumps({"bus": bandwidth, "extra": extra, "comparisons": comparisons}, indent=1)
    )
    Path(paths[1]).write_text("\n".join(text) + "\n")
    print("\n".join(text))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
