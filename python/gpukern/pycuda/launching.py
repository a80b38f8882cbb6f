"""A kernel launched with what PyCUDA's users give it, in PyCUDA's order of streams."""

from typing import Any

from gpukern.kernels.module import Kernel
from gpukern.pycuda import streams
from gpukern.pycuda.arguments import adapted


def launch(
    kernel: Kernel,
    grid: Any,
    block: Any,
    args: tuple[Any, ...],
    stream: Any = None,
    shared: int = 0,
) -> None:
    """Run a kernel on a stream, or behind all streams on the default one."""
    given = adapted(kernel, args)
    chosen = streams.given(stream)
    if chosen is None:
        streams.settle()
    kernel(grid, block, *given, shared=shared, stream=chosen)
    streams.used(chosen, given)
