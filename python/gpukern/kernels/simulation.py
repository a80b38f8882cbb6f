"""One call of a kernel on copies of its arguments, in whichever process has the device for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpukern import _core
from gpukern.kernels.signature import ANYTHING, POINTER

# What memory holds that nobody has written: NaN in every floating type.
UNWRITTEN = 0xFF


@dataclass(frozen=True)
class Memory:
    """A stretch of memory that arguments lie in; ``contents`` None: nothing goes in.

    ``skew`` bytes are in front of it, since it has not been at a multiple of 256.
    """

    contents: bytes | None
    count: int
    skew: int = 0


class Part(NamedTuple):
    """An argument that is an array: ``size`` bytes of one of the memories."""

    memory: int
    offset: int
    size: int


@dataclass(frozen=True)
class Job:
    """A call: its shape, its arguments (numbers as they are), and what they lie in.

    ``variables`` are the contents of the module's.
    """

    grid: Any
    block: Any
    shared: int
    arguments: tuple[Any, ...]
    memories: tuple[Memory, ...]
    variables: Mapping[str, bytes]


@dataclass(frozen=True)
class Results:
    """What became of the memories and of the variables."""

    memories: tuple[bytes, ...]
    variables: Mapping[str, bytes]


@dataclass(frozen=True)
class Outcome:
    """What a run on the simulator has come to.

    ``results`` is None where there is a ``fault``, of the kernel, or the call was ``refused``.
    """

    results: Results | None = None
    printed: str = ""
    fault: str | None = None
    refused: str | None = None


def of_bytes(
    image: _core.Image, symbol: str, name: str, parameters: Sequence[tuple[Any, ...]]
) -> _core.Kernel:
    """A kernel that takes for a pointer whatever memory it is given."""
    return _core.Kernel(image, symbol, name, tuple(_loosened(*row) for row in parameters))


def _loosened(text: str, made_of: int, size: int, readonly: int, *pointee: int) -> tuple[Any, ...]:
    if made_of != POINTER:
        return (text, made_of, size, readonly, *pointee)
    return (text, POINTER, size, readonly, ANYTHING, 0, 0, 1)


def perform(kernel: _core.Kernel, variables: Mapping[str, _core.DeviceArray], job: Job) -> Results:
    """Run it on this process's device."""
    arrays = []
    for memory in job.memories:
        array = _core.empty(memory.skew + memory.count, "uint8")
        if memory.contents is None:
            array.fill(UNWRITTEN)
        else:
            array[memory.skew :] = np.frombuffer(memory.contents, np.uint8)
        arrays.append(array)
    write(variables, job.variables)
    given = []
    for one in job.arguments:
        if isinstance(one, Part):
            begin = job.memories[one.memory].skew + one.offset
            given.append(arrays[one.memory][begin : begin + one.size])
        else:
            given.append(one)
    kernel(job.grid, job.block, *given, shared=job.shared)
    _core.synchronize()
    made = tuple(
        array[memory.skew :].to_host().tobytes()
        for array, memory in zip(arrays, job.memories, strict=True)
    )
    return Results(made, contents(variables))


def contents(variables: Mapping[str, _core.DeviceArray]) -> dict[str, bytes]:
    """What variables hold."""
    return {name: array.to_host().tobytes() for name, array in variables.items()}


def write(variables: Mapping[str, _core.DeviceArray], values: Mapping[str, bytes]) -> None:
    """Give variables these contents."""
    for name, value in values.items():
        variables[name][...] = np.frombuffer(value, np.uint8)
