"""NumPy arrays in, NumPy arrays out, beside a bare program and beside what the bus alone needs.

    python benchmarks/host_arrays.py results.json results.md [--smoke]

The bare program (`staged.cu`, compiled here by nvcc) stages arrays as a library has to, with no
library round it; its best of many settings on this host is what gpukern is held against,
alone (calls one after the other) and in turn (each after a call of another, with other arrays read
in between, which push its own out of the caches). The bus is measured with pinned memory.
"""

import ctypes
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from report import Line, as_markdown, as_table, parsed, walked

import gpukern as gk
from gpukern import _core
from gpukern.machine.conditions import describe_machine
from gpukern.profiling import bus_bandwidth
from gpukern.text.units import seconds

BESIDE = 1.05  # times the bare program's best
BUS = 1.15  # times what the bus needs
SMALL_CALL = 12e-6
SIDES = (512, 1024, 2048, 4096, 8192, 16384)
WORKERS = (2, 4, 6, 8, 12, 16)
CHUNKS = (256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20)
ROUNDS = 9
WARM = 60  # calls in which gpukern finds its settings out
EVICTED = 512 << 20  # bytes that are read between two calls in turn

Call = Callable[[], Any]


class Bare:
    """The bare program as a library; every function of it ends the process where CUDA fails."""

    def __init__(self, folder: Path) -> None:
        nvcc = shutil.which(
            "nvcc", path=os.environ.get("CUDA_HOME", "") + "/bin:" + os.environ["PATH"]
        )
        if not nvcc:
            sys.exit("host_arrays.py compiles a program of its own, and there is no nvcc")
        library = folder / "libstaged.so"
        source = Path(__file__).with_name("staged.cu")
        command = [nvcc, "-O3", "-std=c++17", "-arch=native", "-Xcompiler", "-fPIC,-pthread"]
        subprocess.run([*command, "-shared", "-o", library, source], check=True)
        self.library = ctypes.CDLL(str(library))
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        for name, result, arguments in (
            ("staged_open", pointer, (ctypes.c_int, size, ctypes.c_int)),
            ("staged_close", None, (pointer,)),
            ("staged_add", None, (pointer, pointer, pointer, pointer, size)),
            ("staged_exp", None, (pointer, pointer, pointer, size)),
            ("staged_in", None, (pointer, pointer, size)),
            ("pinned_new", pointer, (size,)),
            ("pinned_free", None, (pointer,)),
            ("both_ways", None, (pointer, pointer, pointer, size)),
            ("stream_new", pointer, ()),
            ("mapped_add", None, (pointer, pointer, pointer, pointer, size, pointer)),
        ):
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments


@dataclass(frozen=True)
class Setting:
    workers: int
    chunk: int
    past_caches: int

    def __str__(self) -> str:
        way = " past the caches" if self.past_caches else ""
        return f"{self.workers} threads, {self.chunk >> 10} KiB{way}"


def settings() -> Iterator[Setting]:
    for workers, chunk, past in itertools.product(WORKERS, CHUNKS, (0, 1)):
        if workers <= (os.cpu_count() or 1) and workers * chunk <= 24 << 20:
            yield Setting(workers, chunk, past)


def timed(call: Call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def alone(call: Call, rounds: int = ROUNDS) -> float:
    call()
    return statistics.median(timed(call) for _ in range(rounds))


def in_turn(calls: Sequence[Call], between: Call, rounds: int = ROUNDS) -> list[float]:
    found: list[list[float]] = [[] for _ in calls]
    for number in range(rounds * len(calls)):
        between()
        found[number % len(calls)].append(timed(calls[number % len(calls)]))
    return [statistics.median(times) for times in found]


@dataclass(frozen=True)
class Work:
    """A work of gpukern, and the bare program's on the same arrays for a setting that is open."""

    name: str
    ours: Call
    bare: Callable[[int], Call] | None
    bytes_in: int
    bytes_out: int


class Run:
    def __init__(self, small: bool, folder: Path) -> None:
        self.small = small
        self.bare = Bare(folder)
        self.bus = bus_bandwidth() or float("nan")
        self.sides = SIDES[:2] if small else SIDES
        self.rows = 1 << 10 if small else 1 << 13
        rng = np.random.default_rng(1)
        side = self.sides[-1]
        self.a = rng.random((side, side), np.float32)
        self.b = self.a + 1
        self.evicting = np.zeros((1 << 24 if small else EVICTED) // 8)
        self.pinned = self.bare.library.pinned_new(self.a.nbytes)
        self.large = self.a.reshape(-1)[: 1 << 18 if small else 1 << 27].reshape(self.rows, -1)
        self.found: dict[str, Any] = {}
        self.both = self.both_rate()

    def both_rate(self) -> float:
        """Bytes a second of both directions at once."""
        pinned, each = self.pinned, self.a.nbytes // 2
        handle = self.bare.library.staged_open(8, 4 << 20, 0)
        took = alone(lambda: self.bare.library.both_ways(handle, pinned, pinned + each, each))
        self.bare.library.staged_close(handle)
        return 2 * each / took

    def evict(self) -> None:
        self.evicting.sum()

    def add(self, side: int) -> Work:
        a, b = (np.ascontiguousarray(x[:side, :side]) for x in (self.a, self.b))
        add, pinned = self.bare.library.staged_add, self.pinned
        return Work(
            f"add {side}x{side}",
            lambda: gk.add(a, b),
            lambda handle: lambda: add(handle, a.ctypes.data, b.ctypes.data, pinned, a.nbytes),
            2 * a.nbytes,
            a.nbytes,
        )

    def large_ones(self) -> Iterator[Work]:
        """Half a GB in one array, or nearly so."""
        a, out, bare = self.large, np.zeros_like(self.large), self.bare.library
        ragged = a.reshape(-1)[:-157]
        into = gk.empty_pinned(a.shape, "float32")
        pinned = gk.pin(a)
        turned = gk.empty_pinned(a.shape[::-1], "float32")

        def brought(handle: int) -> Call:
            return lambda: bare.staged_in(handle, a.ctypes.data, a.nbytes)

        def mapped(handle: int) -> Call:
            return lambda: bare.staged_exp(handle, a.ctypes.data, self.pinned, a.nbytes)

        yield Work("sum of 2^27-157", lambda: gk.sum(ragged), brought, ragged.nbytes, 0)
        yield Work("sum, axis 0", lambda: gk.sum(a, axis=0), None, a.nbytes, 0)
        yield Work("sum, axis 1", lambda: gk.sum(a, axis=1), None, a.nbytes, 0)
        halves = a.reshape(2, -1)
        yield Work(
            "sum of two rows, axis 0", lambda: gk.sum(halves, axis=0), None, a.nbytes, a.nbytes // 2
        )
        yield Work("exp", lambda: gk.exp(a), mapped, a.nbytes, a.nbytes)
        yield Work("exp, out= an array", lambda: gk.exp(a, out=out), None, a.nbytes, a.nbytes)
        yield Work("exp, pinned", lambda: gk.exp(pinned, out=into), None, a.nbytes, a.nbytes)
        yield Work("transpose", lambda: gk.transpose(a), None, a.nbytes, a.nbytes)
        yield Work(
            "transpose, pinned out=", lambda: gk.transpose(a, out=turned), None, a.nbytes, a.nbytes
        )
        yield Work("to_device", lambda: gk.to_device(a), None, a.nbytes, 0)
        device = gk.to_device(a)
        yield Work("to_host", device.to_host, None, 0, a.nbytes)

    def best_bare(self, works: Sequence[Work]) -> dict[str, tuple[float, Setting]]:
        """The bare program's fastest setting for each work, alone."""
        best: dict[str, tuple[float, Setting]] = {}
        for setting in settings():
            handle = self.bare.library.staged_open(
                setting.workers, setting.chunk, setting.past_caches
            )
            for work in works:
                if work.bare and setting.chunk <= max(work.bytes_in // 2, 1 << 18):
                    rounds = 5 if work.bytes_in < 64 << 20 else 3
                    took = alone(work.bare(handle), rounds)
                    if work.name not in best or took < best[work.name][0]:
                        best[work.name] = took, setting
            self.bare.library.staged_close(handle)
        return best

    def bus_time(self, work: Work) -> float:
        """What the bus needs, one way by its rate one way, both by its rate of both."""
        total = work.bytes_in + work.bytes_out
        return max(work.bytes_in / self.bus, work.bytes_out / self.bus, total / self.both)


def adds(run: Run) -> Iterator[Line]:
    works = [run.add(side) for side in run.sides]
    works += [w for w in run.large_ones() if w.bare]
    best = run.best_bare(works)
    for work in works:
        for _ in range(WARM):
            work.ours()
        _, setting = best[work.name]
        yield from beside(run, work, setting)


def beside(run: Run, work: Work, setting: Setting) -> Iterator[Line]:
    """Both alone, block by block in turn, and in turn with the caches emptied."""
    bare = run.bare.library
    handle = bare.staged_open(setting.workers, setting.chunk, setting.past_caches)
    assert work.bare
    theirs = work.bare(handle)
    blocks = [(alone(work.ours), alone(theirs)) for _ in range(3)]
    mine, other = (statistics.median(times) for times in zip(*blocks, strict=True))
    cold = in_turn([work.ours, theirs], run.evict)
    bare.staged_close(handle)
    for way, ours, bare_time in (("alone", mine, other), ("in turn", *cold)):
        run.found[f"{work.name}, {way}"] = {"gpukern": ours, "bare": bare_time}
        share = run.bus_time(work) / ours
        text = f"{ours / bare_time:.3f}x: {seconds(ours)}, bare {seconds(bare_time)} ({setting}); "
        yield Line(
            "beside",
            f"{work.name}, {way}",
            f"<= {BESIDE:.2f}x of the bare program's best",
            text + f"{share:.0%} of the bus",
            "yes" if ours <= BESIDE * bare_time else "no",
        )


def large(run: Run) -> Iterator[Line]:
    for work in run.large_ones():
        for _ in range(WARM // 2):
            work.ours()
        took, bus = alone(work.ours), run.bus_time(work)
        run.found[work.name] = {"gpukern": took, "bus": bus}
        yield Line(
            "large",
            f"{work.name}, {max(work.bytes_in, work.bytes_out) / 2**20:.0f} MiB",
            f"<= {BUS:.2f}x of what the bus needs",
            f"{took / bus:.3f}x: {seconds(took)}, the bus {seconds(bus)}",
            "yes" if took <= BUS * bus else "no",
        )


def small(run: Run) -> Iterator[Line]:
    """Calls that are over before a copy would have begun."""
    bare, stream = run.bare.library, run.bare.library.stream_new()
    pinned = bare.pinned_new(1 << 20)
    for count in (16, 1024, 16384, 65536):
        a = np.arange(count, dtype=np.float32)
        b, out = a + 1, np.empty_like(a)
        places = (pinned, a.ctypes.data, b.ctypes.data, out.ctypes.data, a.nbytes, stream)
        calls: list[Call] = [
            lambda a=a, b=b: gk.add(a, b),
            lambda a=a, b=b, out=out: gk.add(a, b, out=out),
            lambda a=a: gk.sum(a),
            lambda places=places: bare.mapped_add(*places),
            lambda a=a, b=b: np.add(a, b),
        ]
        took = [alone(lambda c=call: [c() for _ in range(200)]) / 200 for call in calls]
        names = ("add", "add out=", "sum", "bare add", "NumPy")
        run.found[f"{count} floats"] = dict(zip(names, took, strict=True))
        text = ", ".join(f"{name} {seconds(t)}" for name, t in zip(names, took, strict=True))
        bar = f"add <= {seconds(SMALL_CALL)}" if count == 1024 else ""
        met = ("yes" if took[0] <= SMALL_CALL else "no") if bar else ""
        yield Line("small", f"{count} floats", bar, text, met)


SECTIONS = {"beside": adds, "large": large, "small": small}


def main(arguments: Sequence[str]) -> int:
    given = parsed(__doc__, list(SECTIONS), arguments)
    if _core.backend() != "cuda":
        sys.exit("host_arrays.py measures a GPU's bus, and there is no GPU here")
    with tempfile.TemporaryDirectory() as folder:
        run = Run(given.smoke, Path(folder))
        machine = describe_machine()
        remarks = [
            f"{machine['device']}, driver {machine['driver']}, the bus {run.bus / 1e9:.1f} GB/s "
            f"one way, {run.both / 1e9:.1f} both ways",
            "settings found: " + "; ".join(map(str, _core.staging())),
        ]

        def write(lines: list[Line], spent: dict[str, float]) -> None:
            remarks[1] = "settings found: " + "; ".join(map(str, _core.staging()))
            stored = {
                "machine": machine,
                "bus": run.bus,
                "both": run.both,
                "seconds": run.found,
                "spent": spent,
            }
            Path(given.paths[0]).write_text(json.dumps(stored, indent=1) + "\n")
            Path(given.paths[1]).write_text(as_markdown(lines, remarks, []))

        lines = walked(
            {name: lambda f=f: f(run) for name, f in SECTIONS.items()}, given.only, write
        )
    print("\n".join(remarks))
    print(as_table(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
