"""Our times on the device beside NVIDIA's own, on three kernels of different length.

    python benchmarks/against_ncu.py [result.json]

ncu (of Nsight Compute) profiles each kernel in a process of its own, with its caches flushed before
and its clocks left alone, as `gpukern compare` has them. Where the package cuda-bench is installed
its cold times stand beside. Exit status 1 if any differs from ncu's by more than 3 %.

The kernels take from some 10 microseconds to some milliseconds. The shortest one shows best what is
wrong: a share of what lies between two events anyway, or data left in the caches.
"""

import csv
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gpukern
from gpukern import _core

# Operation, size, variant: from milliseconds down to microseconds on a large GPU.
KERNELS = (
    ("matmul", (2048, 2048, 2048), "tiled"),
    ("add", (8192, 8192), "f32x4"),
    ("add", (4096, 4096), "f32x4"),
    ("add", (2048, 2048), "f32x4"),
)
LAUNCHES = 15
TOLERANCE = 0.03


def work(op: str, size: tuple[int, ...], variant: str) -> Callable[[], Any]:
    """The call that is profiled, on arrays on the device."""
    shapes = (size[:2], size[1:]) if op == "matmul" else (size, size)
    rng = np.random.default_rng(1)
    a, b = (_core.to_device(rng.standard_normal(s, np.float32)) for s in shapes)
    out = _core.empty((size[0], size[-1]), "float32")
    return lambda: getattr(_core, op)(a, b, out=out, variant=variant)


def ours(op: str, size: tuple[int, ...], variant: str) -> gpukern.Comparison:
    contenders = [f"gpukern:{variant}"]
    return gpukern.compare(op, [size], "float32", contenders, mode="device", rounds=15, seed=1)


def by_ncu(index: int) -> list[float]:
    """Seconds of each launch, by gpu__time_duration."""
    command = [
        *("ncu", "--csv", "--page", "raw", "--metrics", "gpu__time_duration.sum"),
        *("--cache-control", "all", "--clock-control", "none"),
        *("--print-units", "base", sys.executable, __file__, "--launch", str(index)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr).strip()[-400:])
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(lines))
    name = next(key for key in rows[0] if key.startswith("gpu__time_duration"))
    op = KERNELS[index][0]
    times = [float(r[name].replace(",", "")) * 1e-9 for r in rows if op in r["Kernel Name"]]
    if not times:
        raise RuntimeError(f"ncu has seen no kernel of {op}: {[r['Kernel Name'] for r in rows]}")
    return times


def by_cuda_bench(index: int) -> list[float]:
    """The cold times of cuda-bench, run in a process of its own."""
    code = f"import against_ncu; against_ncu.register({index})"
    target = Path(f"cuda-bench-{index}.json").resolve()
    command = [sys.executable, "-c", code, "--json", str(target)]
    here = Path(__file__).parent
    done = subprocess.run(
        command, cwd=here, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1])
    whole = json.loads(target.read_text())
    target.unlink()
    summaries = whole["benchmarks"][0]["states"][0]["summaries"]
    found = next(one for one in summaries if one["tag"] == "nv/cold/time/gpu/mean")
    return [float(next(d["value"] for d in found["data"] if d["name"] == "value"))]


def register(index: int) -> None:
    """Hand the kernel to cuda-bench, on the stream that it offers."""
    from cuda import bench

    op, size, variant = KERNELS[index]
    shapes = (size[:2], size[1:]) if op == "matmul" else (size, size)
    a, b = (_core.to_device(np.ones(s, np.float32)) for s in shapes)
    out = _core.empty((size[0], size[-1]), "float32")
    call = getattr(_core, op)

    def launch(given: Any) -> None:
        call(a, b, out=out, variant=variant, stream=given.get_stream().addressof())

    bench.register(lambda state: state.exec(launch))
    bench.run_all_benchmarks(["gpukern", *sys.argv[1:]])


def line(index: int) -> dict[str, Any]:
    op, size, variant = KERNELS[index]
    (row,) = ours(op, size, variant).rows
    if row.on_device is None:
        raise RuntimeError(f"{op} {variant}: {row.status} {row.detail}")
    found: dict[str, Any] = {"kernel": f"{op} {row.size} {variant}", "ours": row.on_device.value}
    if row.warm is not None:
        found["ours_warm"] = row.warm.value
    for name, tool in (("ncu", by_ncu), ("cuda-bench", by_cuda_bench)):
        try:
            found[name] = statistics.median(tool(index))
            found[f"{name}_difference"] = found["ours"] / found[name] - 1
        except Exception as error:
            found[f"{name}_problem"] = f"{type(error).__name__}: {error}"
    return found


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--launch"]:
        start = work(*KERNELS[int(arguments[1])])
        for _ in range(LAUNCHES):
            start()
        _core.synchronize()
        return 0
    if _core.backend() == "sim" or not shutil.which("ncu"):
        print("this needs a GPU and ncu", file=sys.stderr)
        return 2
    lines = [line(index) for index in range(len(KERNELS))]
    if arguments:
        Path(arguments[0]).write_text(json.dumps(lines, indent=1) + "\n")
    worst = 0.0
    for one in lines:
        text = f"{one['kernel']}: ours {1e6 * one['ours']:.2f} us"
        for name in ("ncu", "cuda-bench"):
            if name in one:
                difference = one[f"{name}_difference"]
                text += f", {name} {1e6 * one[name]:.2f} us ({100 * difference:+.1f} %)"
                worst = max(worst, abs(difference)) if name == "ncu" else worst
            else:
                text += f", {name}: {one[f'{name}_problem'][:120]}"
        print(text)
    print(f"the largest difference from ncu: {100 * worst:.1f} %")
    return 0 if 0 < worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
