"""Kernels as PyCUDA calls them: ``function(*arguments, block=(...), grid=(...))``."""

import struct
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from gpukern import _core
from gpukern.kernels import signature
from gpukern.kernels.module import Kernel
from gpukern.pycuda import streams
from gpukern.pycuda.launching import launch

# What facts() calls them.
_ATTRIBUTES = {
    "num_regs": "registers",
    "local_size_bytes": "local",
    "const_size_bytes": "constant",
    "shared_size_bytes": "shared",
    "max_threads_per_block": "most_threads",
}


class function_attribute:
    """What get_attribute() of a function takes."""

    NUM_REGS = "NUM_REGS"
    LOCAL_SIZE_BYTES = "LOCAL_SIZE_BYTES"
    CONST_SIZE_BYTES = "CONST_SIZE_BYTES"
    SHARED_SIZE_BYTES = "SHARED_SIZE_BYTES"
    MAX_THREADS_PER_BLOCK = "MAX_THREADS_PER_BLOCK"


def _formats(arg_types: Any) -> list[str]:
    """One format of struct each, "P" for a pointer, of what prepare() takes."""
    found = []
    for each in arg_types:
        if isinstance(each, str):
            found.append(each)
        elif isinstance(each, np.dtype) or (isinstance(each, type) and issubclass(each, np.number)):
            kind = np.dtype(each)
            found.append(f"{kind.itemsize}s" if kind.char in "VFD" else kind.char)
        else:
            found.append("P")
    # Digits come as letters of their own where the types are one text: "8s" is one of 8 bytes.
    joined, count = [], ""
    for letters in found:
        if letters.isdigit():
            count += letters
            continue
        joined.append(count + letters)
        count = ""
    return joined


def _of_format(letters: str) -> tuple[int, bool]:
    """The bytes of an argument, and whether it is a number with a fraction."""
    if letters in ("F", "D"):
        return (8 if letters == "F" else 16), False
    return struct.calcsize(letters), letters in "efd"


class Function:
    """A kernel of a module. Its attributes num_regs, local_size_bytes, shared_size_bytes,
    const_size_bytes and max_threads_per_block are what the driver tells of it."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.is_prepared = False

    def __repr__(self) -> str:
        return f"<Function {self.kernel.signature}>"

    def __call__(
        self,
        *args: Any,
        grid: Any = (1, 1),
        block: Any = None,
        shared: int = 0,
        stream: Any = None,
        texrefs: Sequence[Any] = (),
        time_kernel: bool = False,
    ) -> float | None:
        """Run it with ``block`` threads a block and ``grid`` blocks; seconds with time_kernel.

        Raises TypeError and ValueError that name the parameter which does not take its argument.
        """
        _no_textures(self.kernel.name, texrefs)
        if block is None:
            raise ValueError(
                f"{self.kernel.name}: must specify block size, as block=(threads, 1, 1)"
            )
        if not time_kernel:
            launch(self.kernel, grid, block, args, stream, shared)
            return None
        if stream is not None:
            raise ValueError(f"{self.kernel.name}: time_kernel= times the default stream alone")
        streams.synchronize()
        start = time.perf_counter()
        launch(self.kernel, grid, block, args, None, shared)
        streams.synchronize()
        return time.perf_counter() - start

    # prepared calls -------------------------------------------------------------------------------

    def prepare(self, arg_types: Any, texrefs: Sequence[Any] = ()) -> Self:
        """Say what the arguments are: a text for struct.pack, or a list of NumPy's types.

        The kernel's own parameters are known, so this is checked against them.
        """
        _no_textures(self.kernel.name, texrefs)
        formats = _formats(arg_types)
        parameters = self.kernel.parameters
        if len(formats) != len(parameters):
            raise TypeError(
                f"{self.kernel.name}: prepare() was given {len(formats)} types, and the kernel "
                f"takes {len(parameters)}: {self.kernel.signature}"
            )
        for letters, parameter in zip(formats, parameters, strict=True):
            size, is_float = _of_format(letters)
            takes_float = parameter.made_of in (signature.FLOAT, signature.BFLOAT)
            if size != parameter.bytes or (letters != "P" and is_float != takes_float):
                raise TypeError(
                    f"{self.kernel.name}: prepare() was given {letters!r}, of {size} bytes, for "
                    f"{parameter.text}, of {parameter.bytes}"
                )
        self.is_prepared = True
        return self

    def _prepared(self, grid: Any, block: Any, args: Any, shared: int, on: Any) -> None:
        if not self.is_prepared:
            raise TypeError(f"{self.kernel.name}: call prepare(types) before a prepared call")
        if not isinstance(block, tuple | list):
            raise TypeError(
                f"{self.kernel.name}: a prepared call takes the grid and then the block, and block "
                f"is {block!r}"
            )
        launch(self.kernel, grid, block, args, on, shared)

    def prepared_call(self, grid: Any, block: Any, *args: Any, shared_size: int = 0) -> None:
        """Run it; ``args`` are as prepare() says, addresses and Python's numbers among them."""
        self._prepared(grid, block, args, shared_size, None)

    def prepared_async_call(
        self, grid: Any, block: Any, stream: Any, *args: Any, shared_size: int = 0
    ) -> None:
        """prepared_call on a stream."""
        self._prepared(grid, block, args, shared_size, stream)

    def prepared_timed_call(
        self, grid: Any, block: Any, *args: Any, shared_size: int = 0
    ) -> Callable[[], float]:
        """prepared_call; gives a function that waits for it and tells its seconds."""
        start, end = streams.Event(), streams.Event()
        start.record()
        self._prepared(grid, block, args, shared_size, None)
        end.record()
        return lambda: 1e-3 * end.time_since(start)

    # what is known of it --------------------------------------------------------------------------

    def get_attribute(self, attribute: str) -> int:
        """One of function_attribute's."""
        fact = _ATTRIBUTES.get(attribute.lower())
        if fact is None:
            raise _core.CudaError(
                f"{self.kernel.name}: of a function are known {', '.join(_ATTRIBUTES)}, not "
                f"{attribute}"
            )
        return self.kernel.facts()[fact]

    def __getattr__(self, name: str) -> int:
        if name not in _ATTRIBUTES:
            raise AttributeError(
                f"Function has no {name}; it is called with its arguments, block= and grid=, and "
                f"has prepare, prepared_call and {', '.join(_ATTRIBUTES)}"
            )
        return self.get_attribute(name)

    def set_cache_config(self, config: Any) -> None:
        """Taken, and left to the driver."""


def _no_textures(name: str, texrefs: Sequence[Any]) -> None:
    if len(texrefs):
        raise NotImplementedError(
            f"{name}: texture references are no longer part of CUDA, since 12.0; give the kernel "
            "the array and read it with __ldg(&array[i])"
        )
