"""A kernel on the simulator, whatever device this process has: in a process of its own.

The process is given copies of what the kernel is called with, and gives back what became of them.
So the process has one backend as ever, and a kernel that crashes or never ends costs nothing here.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gpukern import _core
from gpukern.kernels.signature import BYTES, POINTER, Parameter, variable
from gpukern.kernels.simulation import Job, Memory, Outcome, Part, Results, contents, write
from gpukern.processes import Asked, LostError, SilentError

_ALIGNMENT = 256
# One device, and every launch is looked at when it is made.
_SETTINGS = {"GPUKERN_DEVICE": "sim", "GPUKERN_SIM_DEVICES": "1", "GPUKERN_SIM_LAZY": "0"}


@dataclass(frozen=True)
class Recipe:
    """A kernel as the simulator takes it, and the source that it is of.

    ``variables`` of the module: of each its symbol in this process's image, and what its type is
    made of.
    """

    code: bytes
    symbol: str
    file: str
    source: str
    variables: dict[str, tuple[str, tuple[int, ...]]]


@dataclass(frozen=True)
class Target:
    """A kernel of this process."""

    kernel: _core.Kernel
    image: _core.Image
    parameters: Sequence[Parameter]
    recipe: Callable[[], Recipe] | None


@dataclass(frozen=True)
class Call:
    """A call of a kernel, examined and copied.

    ``arrays`` are the arguments that are arrays: their place among the arguments, their memory here
    and whether the kernel may write it. ``variables`` are the memory of the module's.
    """

    target: Target
    recipe: Recipe
    job: Job
    arrays: tuple[tuple[int, Any, bool], ...]
    variables: dict[str, _core.DeviceArray]
    ordinal: int


def take(target: Target, grid: Any, block: Any, arguments: Sequence[Any], shared: int) -> Call:
    """Copy what a call takes. Raises what the call raises, and ValueError or CompileError for what
    the simulator cannot have."""
    kernel = target.kernel
    ordinal, found = kernel.examine(grid, block, *arguments, shared=shared)
    if target.recipe is None:
        raise ValueError(
            f"{kernel.name}: was not compiled from a source here, and the simulator compiles "
            "sources; gpukern.compile(source) takes one"
        )
    recipe = target.recipe()
    _refuse_addresses(target, recipe, found)
    with on_device(ordinal):
        variables = {
            name: target.image.array(symbol, "uint8", (_bytes_of(numbers),))
            for name, (symbol, numbers) in recipe.variables.items()
        }
        _core.synchronize()
        memories, parts = _copied(found)
        values = contents(variables)
    given = tuple(
        parts[at] if one else _plain(parameter, argument)
        for at, (one, parameter, argument) in enumerate(
            zip(found, target.parameters, arguments, strict=True)
        )
    )
    job = Job(grid, block, shared, given, tuple(memories), values)
    arrays = tuple((at, one[0], one[2]) for at, one in enumerate(found) if one)
    return Call(target, recipe, job, arrays, variables, ordinal)


@contextmanager
def on_device(ordinal: int) -> Iterator[None]:
    """What is made meanwhile is on that device."""
    before = _core.choose_device(ordinal)
    try:
        yield
    finally:
        _core.choose_device(before)


def _bytes_of(numbers: tuple[int, ...]) -> int:
    dtype, shape = variable(numbers)
    return prod(shape) * (2 if dtype == "bfloat16" else np.dtype(dtype).itemsize)


def _refuse_addresses(target: Target, recipe: Recipe, found: Sequence[Any]) -> None:
    """Of memory of this process's device, which the simulator has not."""
    why = "which are of this process's device, and the simulator has none of that memory"
    for parameter, one in zip(target.parameters, found, strict=True):
        if one and parameter.points_to == POINTER:
            raise ValueError(
                f"{target.kernel.name}: {parameter.text} is an array of addresses, {why}"
            )
    for name, (_, numbers) in recipe.variables.items():
        if numbers[0] == POINTER:
            raise ValueError(f"{target.kernel.name}: the variable {name} has addresses, {why}")


def _plain(parameter: Parameter, argument: Any) -> Any:
    """As it can be sent: a number, the bytes of a structure, or None for no array."""
    if parameter.made_of == POINTER:
        return None
    return memoryview(argument).tobytes() if parameter.made_of == BYTES else argument


def _copied(found: Sequence[Any]) -> tuple[list[Memory], dict[int, Part]]:
    """Each host array is memory of its own, as in a call; those of a device may overlap."""
    memories: list[Memory] = []
    parts: dict[int, Part] = {}
    on_device = []
    for at, one in enumerate(found):
        if one and isinstance(one[0], memoryview):
            memory, is_in, _ = one
            parts[at] = Part(len(memories), 0, memory.nbytes)
            memories.append(Memory(memory.tobytes() if is_in else None, memory.nbytes))
        elif one:
            address = one[0].__cuda_array_interface__["data"][0]
            on_device.append((address, address + one[0].nbytes, at))
    for group in _overlapping(sorted(on_device)):
        low, high = group[0][0], max(end for _, end, _ in group)
        whole = bytearray(high - low)
        for begin, end, at in group:
            parts[at] = Part(len(memories), begin - low, end - begin)
            whole[begin - low : end - low] = found[at][0].to_host().tobytes()
        is_in = any(found[at][1] for _, _, at in group)
        memories.append(Memory(bytes(whole) if is_in else None, high - low, low % _ALIGNMENT))
    return memories, parts


def _overlapping(spans: Sequence[tuple[int, int, int]]) -> list[list[tuple[int, int, int]]]:
    """Spans, in the order of their addresses, by what they share memory with."""
    groups: list[list[tuple[int, int, int]]] = []
    end = 0
    for span in spans:
        if groups and span[0] < end:
            groups[-1].append(span)
        else:
            groups.append([span])
        end = max(end, span[1])
    return groups


def checked_seconds(value: object) -> float:
    """How long the simulator may take."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        raise ValueError(f"seconds is how long the simulator may take, above 0, not {value!r}")
    return float(value)


def simulated(call: Call, seconds: float) -> Outcome:
    """Run it on the simulator. Raises ValueError for what the simulator has no room for."""
    recipe, target = call.recipe, call.target
    process = Asked("gpukern.kernels.simulator", seconds, _SETTINGS)
    numbers = [parameter.numbers() for parameter in target.parameters]
    sizes = {name: len(value) for name, value in call.job.variables.items()}
    try:
        process.ask("run", recipe.code, recipe.symbol, target.kernel.name, numbers, sizes, call.job)
        outcome: Outcome = process.answer(lambda doing: None)
    except SilentError:
        return Outcome(fault=f"{target.kernel.name}: it did not end within {seconds:g} s")
    except LostError as lost:
        return Outcome(fault=f"{target.kernel.name}: it took the simulator with it: {lost}")
    finally:
        process.end()
    if outcome.refused:
        raise ValueError(outcome.refused)
    return outcome


def give_back(call: Call, results: Results) -> None:
    """Write to the arguments and to the module's variables what the kernel has written."""
    for at, memory, is_out in call.arrays:
        if not is_out:
            continue
        part: Part = call.job.arguments[at]
        made = results.memories[part.memory][part.offset : part.offset + part.size]
        if isinstance(memory, memoryview):
            memory[:] = made
        else:
            memory[...] = np.frombuffer(made, np.uint8)
    changed = {
        name: value
        for name, value in results.variables.items()
        if value != call.job.variables[name]
    }
    write(call.variables, changed)
