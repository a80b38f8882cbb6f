"""Kernels of users: compiled, loaded from the disk, called, and made of an expression.

    python benchmarks/user_kernels.py results.json results.md [--only compile,calls]

One kernel, `saxpy` on 1024 floats, by every library that compiles CUDA C++ (and by Numba, which
compiles Python), all in turn in random order. Compilations are of sources that nobody has seen,
each with another comment. On the simulator, or with ``--smoke``, there is one round, and the times
mean nothing and are not shown.
"""

import json
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from report import Line, as_markdown, as_table, met, parsed, shown, walked

import gpukern as gk
from gpukern import _core
from gpukern.bench.clock.device import DeviceTimer, Work
from gpukern.bench.clock.machine import MachineClock
from gpukern.bench.clock.protocols import leetcuda
from gpukern.bench.clock.wall import wall
from gpukern.bench.model.intervals import Figure, figure, ratio
from gpukern.machine.conditions import describe_machine
from gpukern.machine.inventory import installed
from gpukern.text.units import seconds

COUNT = 1024
SOURCE = """
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += a * x[i];
}
"""
# In a process of its own: Python's start to a kernel that has run, with what it needs kept on disk.
START = """
import time
import numpy as np
imported = time.perf_counter()
import gpukern as gk
y = np.ones(8, np.float32)
gk.compile({source!r}).saxpy(1, 8, 2.0, y, gk.InOut(y), 8)
assert y[0] == 3
print(time.perf_counter() - imported)
"""

Calls = dict[str, Callable[[], object]]
Samples = dict[str, dict[int, float]]


class Run:
    """Who takes part, and how often."""

    def __init__(self, small: bool) -> None:
        self.rounds = 1 if small else 9
        self.clock = MachineClock()
        self.simulated = _core.backend() == "sim"
        self.samples: dict[str, Samples] = {}
        self.unseen = (f"{SOURCE}// {number} {random.random()}" for number in count())

    @cached_property
    def machine(self) -> dict[str, Any]:
        return describe_machine()

    def has(self, peer: str) -> bool:
        return not self.simulated and installed(peer)

    def hold(self, section: str, timed: Mapping[str, Callable[[], float]]) -> Samples:
        """All in turn, in rounds of random order; the first of each is not kept."""
        samples: Samples = {name: {} for name in timed}
        order = list(timed)
        for turn in range(-1 if self.rounds > 1 else 0, self.rounds):
            random.Random(turn).shuffle(order)
            for name in order:
                spent = timed[name]()
                if turn >= 0:
                    samples[name][turn] = spent
        self.samples[section] = samples
        return samples

    def line(self, section: str, work: str, bar: str, samples: Samples, judged: str) -> Line:
        """Everybody's median; ``judged`` is whether the bar is met."""
        texts = (f"{name} {seconds(median(times))}" for name, times in samples.items())
        if self.simulated:
            return Line(section, work, bar, "-", "simulated")
        return Line(section, work, bar, ", ".join(texts), judged)

    def against(self, section: str, work: str, bar: float, samples: Samples, other: str) -> Line:
        """gpukern beside another one, which has to be no faster than ``bar`` times."""
        asked = f">= {bar:.2f}x {other}"
        if self.simulated or other not in samples:
            return Line(section, work, asked, "-", "simulated" if self.simulated else "no peer")
        speed = ratio([samples[other]], [samples["gpukern"]])
        times = (f"{name} {seconds(median(found))}" for name, found in samples.items())
        return Line(section, work, asked, f"{shown(speed)}: {', '.join(times)}", met(speed, bar))


def median(times: Mapping[int, float]) -> float:
    return statistics.median(times.values())


def at_most(samples: Mapping[int, float], limit: float) -> str:
    found: Figure | None = figure([samples.values()])
    if found is None or found.value <= limit:
        return "yes"
    return "same" if found.low <= limit else "no"


def compilers(run: Run) -> Calls:
    """What makes a kernel of a source that nobody has seen."""
    found: Calls = {"gpukern": lambda: gk.compile(next(run.unseen)).saxpy}
    if run.has("cupy"):
        import cupy

        found["CuPy"] = lambda: cupy.RawKernel(next(run.unseen), "saxpy").compile()
    if run.has("torch"):
        import torch

        if hasattr(torch.cuda, "_compile_kernel"):
            found["PyTorch"] = lambda: torch.cuda._compile_kernel(next(run.unseen), "saxpy")
    if run.has("numba"):
        from gpukern.bench.contenders.numba_ import cuda

        found["Numba"] = lambda: cuda.jit("void(float32, float32[:], float32[:], int32)")(
            in_python()
        )
    if run.has("pycuda"):
        import pycuda.autoprimaryctx
        from pycuda.compiler import SourceModule

        assert pycuda.autoprimaryctx.context
        found["PyCUDA"] = lambda: SourceModule(next(run.unseen), no_extern_c=True)
    return found


def in_python() -> Callable[..., None]:
    """The same for Numba."""
    from gpukern.bench.contenders.numba_ import cuda

    def saxpy(a: float, x: Any, y: Any, n: int) -> None:
        i = cuda.grid(1)
        if i < n:
            y[i] += a * x[i]

    return saxpy


def compile_(run: Run) -> Iterator[Line]:
    calls = compilers(run)
    samples = run.hold("compile", {name: partial(timed, run, one) for name, one in calls.items()})
    judged = at_most(samples["gpukern"], 0.150)
    yield run.line("compile", "a source that nobody has seen", "<= 150 ms", samples, judged)
    kept = next(run.unseen)
    gk.compile(kept)
    samples = run.hold("kept", {"gpukern": partial(timed, run, partial(gk.compile, kept))})
    judged = at_most(samples["gpukern"], 0.002)
    yield run.line("compile", "the same source again, from the disk", "<= 2 ms", samples, judged)
    program = START.format(source=kept)
    samples = run.hold("start", {"gpukern": partial(in_process, program)})
    yield run.line("compile", "import of gpukern to its result, kept", "-", samples, "right")


def timed(run: Run, call: Callable[[], object]) -> float:
    begin = run.clock.now()
    call()
    return run.clock.now() - begin


def in_process(program: str) -> float:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return float(done.stdout)


def calls(run: Run) -> Iterator[Line]:
    """Calls with arrays on the device one after another, and one wait at the end."""
    x, y = (_core.to_device(np.ones(COUNT, np.float32)) for _ in range(2))
    kernel = gk.compile(SOURCE).saxpy
    found: Calls = {
        "gpukern": partial(kernel, 4, 256, 2.0, x, y, COUNT),
        "gpukern.add": partial(gk.add, x, x, out=y),
        **dict(other_calls(run)),
    }
    samples = run.hold(
        "calls", {name: partial(leetcuda, run.clock, one) for name, one in found.items()}
    )
    yield run.against("calls", "a call with device arrays", 1 / 1.3, samples, "gpukern.add")
    yield run.against("calls", "a call with device arrays", 1.0, samples, "CuPy")
    a, b = np.ones(COUNT, np.float32), np.ones(COUNT, np.float32)
    arrays: Calls = {
        "gpukern": partial(returned, kernel, 4, 256, 2.0, gk.In(a), b, COUNT, result=b),
        "gpukern.add": partial(gk.add, a, b),
    }
    samples = run.hold("arrays", {name: partial(wall, run.clock, f) for name, f in arrays.items()})
    yield run.line("calls", "a call with NumPy arrays of 4 KiB", "-", samples, "right")


def returned(call: Callable[..., object], *arguments: object, result: object) -> object:
    call(*arguments)
    return result


def other_calls(run: Run) -> Iterator[tuple[str, Callable[[], object]]]:
    if run.has("cupy"):
        import cupy

        arrays = [cupy.ones(COUNT, np.float32) for _ in range(2)]
        given = (np.float32(2), *arrays, np.int32(COUNT))
        yield "CuPy", partial(cupy.RawKernel(SOURCE, "saxpy"), (4,), (256,), given)
    if run.has("torch"):
        import torch

        if hasattr(torch.cuda, "_compile_kernel"):
            tensors = [torch.ones(COUNT, device="cuda") for _ in range(2)]
            made = torch.cuda._compile_kernel(SOURCE, "saxpy")
            yield "PyTorch", partial(made, (4, 1, 1), (256, 1, 1), [2.0, *tensors, COUNT])
    if run.has("numba"):
        from gpukern.bench.contenders.numba_ import cuda

        lent = [cuda.to_device(np.ones(COUNT, np.float32)) for _ in range(2)]
        yield "Numba", partial(cuda.jit(in_python())[4, 256], np.float32(2), *lent, np.int32(COUNT))
    if run.has("pycuda"):
        import pycuda.autoprimaryctx
        import pycuda.gpuarray
        from pycuda.compiler import SourceModule

        assert pycuda.autoprimaryctx.context
        held = [pycuda.gpuarray.zeros(COUNT, np.float32) for _ in range(2)]
        called = SourceModule(SOURCE, no_extern_c=True).get_function("saxpy")
        sizes = {"grid": (4, 1), "block": (256, 1, 1)}
        yield "PyCUDA", partial(called, np.float32(2), *held, np.int32(COUNT), **sizes)
        called.prepare("fPPi")
        data = [array.gpudata for array in held]
        given = ((4, 1), (256, 1, 1), np.float32(2), *data, np.int32(COUNT))
        yield "PyCUDA, prepared", partial(called.prepared_call, *given)


def factories(run: Run) -> Iterator[Line]:
    """Kernels made of an expression, beside the rows that are written for the same."""
    length = 1000 if run.rounds == 1 else 1 << 26
    rng = np.random.default_rng(7)
    x, y = (gk.to_device(rng.standard_normal(length, dtype=np.float32)) for _ in range(2))
    z = _core.empty(length, "float32")
    axpy = gk.elementwise("float a, T x, T y, T z", "z = a * x + y")
    total = gk.reduction("T x", "x", "a + b")
    few = x[:COUNT].to_host()
    assert np.allclose(axpy(2.0, few, few), 3 * few)
    assert np.allclose(total(few), few.sum(), atol=1e-3)
    works: dict[str, Calls] = {
        f"2 * x + y, {length}": {
            "gpukern": partial(axpy, 2.0, x, y, out=z),
            "scale_add": partial(gk.scale_add, x, y, 2.0, out=z),
        },
        f"the sum of x, {length}": {"gpukern": partial(total, x), "gk.sum": partial(gk.sum, x)},
    }
    if run.has("cupy"):
        import cupy

        lent, other = (cupy.asarray(one) for one in (x, y))
        made = cupy.ElementwiseKernel("float32 a, T x, T y", "T z", "z = a * x + y", "gk_axpy")
        result = cupy.empty(length, np.float32)
        works[f"2 * x + y, {length}"]["CuPy"] = partial(made, np.float32(2), lent, other, result)
        works[f"the sum of x, {length}"]["CuPy"] = partial(lent.sum)
    works |= layouts(axpy)
    timer = DeviceTimer(run.clock)
    for work, found in works.items():
        ways = {name: Work(call) for name, call in found.items()}
        paces = {name: timer.pace(way) for name, way in ways.items()}
        samples = run.hold(
            work, {name: partial(on_device, timer, ways[name], paces[name]) for name in ways}
        )
        own = next(name for name in found if name not in ("gpukern", "CuPy"))
        yield run.against("factories", f"{work}, on the device", 0.98, samples, own)


def layouts(axpy: Callable[..., object]) -> dict[str, Calls]:
    """The first operand in other orders than it is needed in."""
    rows, columns = (16, 24) if _core.backend() == "sim" else (4096, 8192)
    a = np.random.default_rng(7).standard_normal((rows, 2 * columns), dtype=np.float32)
    there, turned = gk.to_device(a), gk.to_device(a[:, :rows].copy())
    out, square = gk.empty((rows, columns)), gk.empty((rows, rows))
    y = there[:, columns:]
    operands = {
        "columns from 1 on": (there[:, 1 : columns + 1], y, out),
        "every second column": (there[:, ::2], y, out),
        "one column for all": (there[:, 5:6], y, out),
        "one row for all": (there[7, :columns], y, out),
        "transposed": (turned.T, turned, square),
    }
    return {
        f"2 * x + y, {name}": {
            "gpukern": partial(axpy, 2.0, x, y, out=to),
            "scale_add": partial(gk.scale_add, x, y, 2.0, out=to),
        }
        for name, (x, y, to) in operands.items()
    }


def on_device(timer: DeviceTimer, work: Work, pace: Any) -> float:
    return timer.sample(work, pace).warm


def frameworks(run: Run) -> Iterator[Line]:
    """gpukern's addition as an operation of a framework, beside the framework's own."""
    if run.has("torch"):
        import torch

        x, y = (torch.ones(COUNT, device="cuda") for _ in range(2))
        add = gk.as_torch_op(gk.add, "bench::add")
        found: Calls = {"gpukern": partial(add, x, y), "torch.add": partial(torch.add, x, y)}
        samples = run.hold(
            "torch", {name: partial(leetcuda, run.clock, one) for name, one in found.items()}
        )
        yield run.line("frameworks", "PyTorch, a call of an operation", "-", samples, "right")
    if run.has("jax"):
        import jax
        import jax.numpy as jnp

        a, b = (jnp.ones(COUNT, jnp.float32) for _ in range(2))
        programs = {"gpukern": jax.jit(gk.as_jax(gk.add)), "jax.numpy.add": jax.jit(jnp.add)}
        waited = {
            name: partial(wall, run.clock, partial(thousand, one, a, b))
            for name, one in programs.items()
        }
        samples = {
            name: {turn: spent / 1000 for turn, spent in times.items()}
            for name, times in run.hold("jax", waited).items()
        }
        yield run.line("frameworks", "JAX, a call of a jitted function", "-", samples, "right")


def thousand(call: Callable[..., Any], *arguments: object) -> Any:
    """So many calls; the last result, which is complete after all others."""
    for _ in range(999):
        call(*arguments)
    return call(*arguments).block_until_ready()


SECTIONS = {
    "compile": compile_,
    "calls": calls,
    "factories": factories,
    "frameworks": frameworks,
}


def main(arguments: Sequence[str]) -> int:
    given = parsed(__doc__, list(SECTIONS), arguments)
    run = Run(small=given.smoke or _core.backend() == "sim")
    remarks = [
        f"{run.machine['device']}, driver {run.machine['driver']}",
        f"medians of {run.rounds} rounds, all in turn",
    ]

    def write(lines: list[Line], spent: dict[str, float]) -> None:
        whole = {
            "machine": run.machine,
            "seconds": spent,
            "lines": [asdict(line) for line in lines],
            "samples": run.samples,
        }
        Path(given.paths[0]).write_text(json.dumps(whole, indent=1) + "\n")
        Path(given.paths[1]).write_text(as_markdown(lines, remarks, []))

    sections = {name: partial(section, run) for name, section in SECTIONS.items()}
    lines = walked(sections, given.only, write)
    print("\n".join(remarks))
    print(as_table(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
