"""``gpukern.check``: what is wrong with a kernel, as the simulator sees it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern import _core
from gpukern.kernels.diagnostics import around
from gpukern.kernels.module import Kernel
from gpukern.kernels.raw import RawKernel
from gpukern.kernels.signature import dtype_of, variable
from gpukern.kernels.simulating import Call, Recipe, checked_seconds, on_device, simulated, take
from gpukern.kernels.simulation import Results, of_bytes, perform, write
from gpukern.text.calls import blamed_on, called_as, checked_flag

_INDEX = r"\((\d+), (\d+), (\d+)\)"
_SENTENCE = re.compile(
    rf"^.*?: block {_INDEX}: (?:thread {_INDEX}(?:, ([^:]+):(\d+))?: )?(.*)$", re.DOTALL
)

Index = tuple[int, int, int]


@dataclass(frozen=True)
class Fault:
    """What ended a kernel on the simulator.

    ``sentence`` is all that the simulator says of it, ``what`` the same without the place; of the
    place is None what the simulator cannot tell.
    """

    sentence: str
    what: str
    block: Index | None = None
    thread: Index | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Difference:
    """Where an array, or a variable of the module, is not on the GPU what it is on the simulator.

    ``index`` is that of the first such element, counted through the array's memory.
    """

    array: str
    index: int
    on_gpu: Any
    on_simulator: Any
    count: int
    of: int

    def __str__(self) -> str:
        return (
            f"{self.array}: element {self.index} is {self.on_gpu} on the GPU and "
            f"{self.on_simulator} on the simulator; {self.count} of {self.of} differ"
        )


@dataclass(frozen=True)
class Report:
    """What ``gpukern.check`` has found; ``print(report)`` says it in words.

    ``is_clean``: there is no fault and no difference. ``printed`` is what the kernel has printed on
    the simulator; ``excerpt`` are the lines round the fault.
    """

    kernel: str
    fault: Fault | None
    differences: tuple[Difference, ...] = ()
    compared: bool = False
    printed: str = ""
    excerpt: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong that was looked for."""
        return self.fault is None and not self.differences

    def __str__(self) -> str:
        if self.fault:
            return "\n".join([*self._of_fault(self.fault), *self.excerpt])
        if self.differences:
            first = f"{self.kernel}: the GPU and the simulator come to different results"
            return "\n".join([first, *(f"  {one}" for one in self.differences)])
        also = ", and the GPU comes to the same results" if self.compared else ""
        return f"{self.kernel}: the simulator finds nothing wrong with this call{also}"

    def _of_fault(self, fault: Fault) -> Iterator[str]:
        place = f"{fault.file}:{fault.line}: " if fault.file else ""
        yield f"{self.kernel}: {place}{fault.what}"
        where = [
            f"{name} {index}"
            for name, index in (("block", fault.block), ("thread", fault.thread))
            if index is not None
        ]
        if where:
            yield f"  in {', '.join(where)}"


@called_as("check")
def check(
    kernel: Any,
    grid: Any,
    block: Any,
    /,
    *arguments: Any,
    shared: int = 0,
    compare: bool = False,
    rtol: float | None = None,
    seconds: float = 60.0,
) -> Report:
    """Look for what is wrong with a call of a kernel, and write nothing::

        print(gpukern.check(module.saxpy, blocks, threads, 2.0, x, y, n))

    The same source runs on the simulator, on copies of the arguments and of the module's variables,
    in a process of its own, whether this one has a GPU or not. Indices out of bounds, races,
    barriers that not all threads reach, misaligned vectors, stray pointers and whatever else the
    simulator notices is the report's ``fault``, with block, thread and line; so is a kernel that
    takes longer than ``seconds``. An array is what was passed: of a view what lies beside it is out
    of its bounds.

    ``compare=True`` runs a kernel without fault on the GPU as well, on copies too, and tells where
    the results differ: integers at all, floats by more than ``rtol`` of the largest number in the
    array, half of the dtype's digits unless given. Without a GPU nothing is compared.

    ``kernel`` is one of ``gpukern.compile`` or a ``RawKernel``; the rest is what its call takes.
    Raises what the call raises; CompileError for what cannot be simulated; TypeError for what is no
    such kernel; ValueError for a kernel without a source and for arrays and variables that hold
    addresses.
    """
    with blamed_on("check"):
        chosen = _kernel_of(kernel)
        wanted = checked_flag("compare", compare)
        limit = checked_seconds(seconds)
        tolerance = _checked_tolerance(rtol)
    call = take(chosen.target, grid, block, arguments, shared)
    outcome = simulated(call, limit)
    fault = _read(outcome.fault, chosen.name) if outcome.fault else None
    compared = wanted and fault is None and _core.backend() == "cuda"
    differences: tuple[Difference, ...] = ()
    if compared and outcome.results:
        differences = tuple(_differences(call, _on_gpu(call), outcome.results, tolerance))
    excerpt = tuple(_excerpt(fault, call.recipe)) if fault else ()
    return Report(chosen.name, fault, differences, compared, outcome.printed, excerpt)


def _kernel_of(kernel: Any) -> Kernel:
    if isinstance(kernel, RawKernel):
        return kernel.kernel
    if not isinstance(kernel, Kernel):
        raise TypeError(
            "kernel has to be one of gpukern.compile, such as module.add, or a RawKernel, not "
            f"{kernel!r}"
        )
    return kernel


def _checked_tolerance(rtol: object) -> float | None:
    if rtol is None:
        return None
    if isinstance(rtol, bool) or not isinstance(rtol, int | float) or not 0 <= rtol < 1:
        raise ValueError(f"rtol is a share of the largest number, from 0 to 1, not {rtol!r}")
    return float(rtol)


def _read(sentence: str, kernel: str) -> Fault:
    found = _SENTENCE.match(sentence)
    if not found:
        return Fault(sentence, sentence.removeprefix(f"{kernel}: "))
    numbers = [int(one) if one else None for one in found.groups()[:6]]
    block, thread = tuple(numbers[:3]), tuple(numbers[3:])
    return Fault(
        sentence,
        found[9],
        block,  # type: ignore[arg-type]
        None if None in thread else thread,  # type: ignore[arg-type]
        found[7],
        int(found[8]) if found[8] else None,
    )


def _excerpt(fault: Fault, recipe: Recipe) -> Iterator[str]:
    lines = recipe.source.splitlines()
    if fault.line and fault.file == Path(recipe.file).name and fault.line <= len(lines):
        yield from around(lines, fault.line, None)


# beside the GPU -----------------------------------------------------------------------------------


def _on_gpu(call: Call) -> Results:
    """What comes of the call on this process's device; the module's variables stay as they are."""
    target = call.target
    numbers = [parameter.numbers() for parameter in target.parameters]
    kernel = of_bytes(target.image, target.kernel.symbol, target.kernel.name, numbers)
    with on_device(call.ordinal):
        results = perform(kernel, call.variables, call.job)
        write(call.variables, call.job.variables)
    return results


def _differences(
    call: Call, here: Results, simulated_as: Results, rtol: float | None
) -> Iterator[Difference]:
    pairs = []
    for at, _, is_out in call.arrays:
        part = call.job.arguments[at]
        if is_out:
            parameter = call.target.parameters[at]
            mine, other = (one.memories[part.memory] for one in (here, simulated_as))
            span = slice(part.offset, part.offset + part.size)
            pairs.append((parameter.text, dtype_of(parameter), mine[span], other[span]))
    for name, (_, numbers) in call.recipe.variables.items():
        dtype, _ = variable(numbers)
        pairs.append((name, dtype, here.variables[name], simulated_as.variables[name]))
    for name, dtype, mine, other in pairs:
        gpu, sim = _values(mine, dtype), _values(other, dtype)
        places = np.flatnonzero(_unlike(gpu, sim, _share(dtype, rtol)))
        if places.size:
            first = int(places[0])
            yield Difference(name, first, gpu[first], sim[first], places.size, gpu.size)


def _values(data: bytes, dtype: str) -> npt.NDArray[Any]:
    if dtype == "bfloat16":  # the upper half of a float32
        wide = np.frombuffer(data, np.uint16).astype(np.uint32) << 16
        return wide.view(np.float32)
    return np.frombuffer(data, dtype)


# The bits of the fractions; what is compared of them is half.
_FRACTIONS = {"bfloat16": 7, "float16": 10, "float32": 23, "float64": 52}


def _share(dtype: str, rtol: float | None) -> float:
    return 2.0 ** (-_FRACTIONS.get(dtype, 0) / 2) if rtol is None else rtol


def _unlike(a: npt.NDArray[Any], b: npt.NDArray[Any], share: float) -> npt.NDArray[np.bool_]:
    same: npt.NDArray[np.bool_] = a == b
    if a.dtype.kind == "f":
        wide, other = a.astype(np.float64), b.astype(np.float64)
        finite = np.abs(other[np.isfinite(other)])
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(wide - other) <= share * (finite.max() if finite.size else 0.0)
        same = same | near | (np.isnan(wide) & np.isnan(other))
    return np.logical_not(same)
