"""pycuda.elementwise: a kernel of one line of C, run for each element of arrays."""

from typing import Any

import numpy as np

from gpukern.pycuda.compiler import SourceModule
from gpukern.pycuda.declarations import Argument as Argument
from gpukern.pycuda.declarations import ScalarArg as ScalarArg
from gpukern.pycuda.declarations import VectorArg as VectorArg
from gpukern.pycuda.declarations import arguments_of
from gpukern.pycuda.expressions import BLOCK, blocks_for, element_source
from gpukern.pycuda.functions import Function

_COUNT = [ScalarArg(np.uintp, "n")]
_RANGE = [ScalarArg(np.intp, name) for name in ("start", "stop", "step")]


def _module(
    arguments: list[Argument],
    operation: str,
    name: str,
    keep: bool,
    options: Any,
    use_range: bool,
    **parts: str,
) -> SourceModule:
    declared = [argument.declarator() for argument in arguments]
    source = element_source(declared, operation, name, use_range=use_range, **parts)
    return SourceModule(source, options=options, keep=keep, no_extern_c=True)


def get_elwise_module(
    arguments: list[Argument],
    operation: str,
    name: str = "kernel",
    keep: bool = False,
    options: Any = None,
    preamble: str = "",
    loop_prep: str = "",
    after_loop: str = "",
) -> SourceModule:
    """The module of a kernel for i of n; ``n`` is the last of its arguments."""
    parts = {"preamble": preamble, "loop_prep": loop_prep, "after_loop": after_loop}
    return _module(arguments, operation, name, keep, options, False, **parts)


def get_elwise_range_module(
    arguments: list[Argument],
    operation: str,
    name: str = "kernel",
    keep: bool = False,
    options: Any = None,
    preamble: str = "",
    loop_prep: str = "",
    after_loop: str = "",
) -> SourceModule:
    """The module of a kernel for i from ``start`` to ``stop`` by ``step``, its last arguments."""
    parts = {"preamble": preamble, "loop_prep": loop_prep, "after_loop": after_loop}
    return _module(arguments, operation, name, keep, options, True, **parts)


def get_elwise_kernel_and_types(
    arguments: Any,
    operation: str,
    name: str = "kernel",
    keep: bool = False,
    options: Any = None,
    use_range: bool = False,
    **parts: str,
) -> tuple[SourceModule, Function, list[Argument]]:
    """The module, its function, prepared, and the arguments of that."""
    every = [*arguments_of(arguments), *(_RANGE if use_range else _COUNT)]
    module = _module(every, operation, name, keep, options, use_range, **parts)
    function = module.get_function(name)
    function.prepare([argument.struct_char for argument in every])
    return module, function, every


def get_elwise_kernel(
    arguments: Any,
    operation: str,
    name: str = "kernel",
    keep: bool = False,
    options: Any = None,
    **parts: Any,
) -> Function:
    """The function alone."""
    return get_elwise_kernel_and_types(arguments, operation, name, keep, options, **parts)[1]


def vectors_in(name: str, described: list[Argument], args: tuple[Any, ...]) -> list[Any]:
    """The arrays among a call's arguments, which have to lie alike."""
    if len(args) != len(described):
        text = ", ".join(argument.declarator() for argument in described)
        raise TypeError(
            f"{name}: takes {len(described)} arguments, ({text}), and was given {len(args)}"
        )
    arrays = []
    for argument, value in zip(described, args, strict=True):
        if not isinstance(argument, VectorArg):
            continue
        if not hasattr(value, "gpudata"):
            raise TypeError(
                f"{name}: {argument.declarator()} takes a GPUArray, and was given {type(value)}; "
                "gpuarray.to_gpu(...) makes one"
            )
        if not value.flags.forc:
            raise RuntimeError(
                f"{name}: {argument.declarator()} was given an array that is not contiguous; make "
                "a copy of it with .copy()"
            )
        arrays.append(value)
    if not arrays:
        raise TypeError(f"{name}: one of the arguments has to be an array, such as float *x")
    return arrays


class ElementwiseKernel:
    """An operation in C for each ``i`` of arrays: ``ElementwiseKernel("float *x", "x[i] *= 2")``.

    ``arguments`` are declared as in C; ``options``, ``keep``, ``preamble``, ``loop_prep`` and
    ``after_loop`` are PyCUDA's. It is compiled at its first call: ``kernel(*arguments, range=None,
    slice=None, stream=None)``. Raises TypeError for arguments of other types, RuntimeError for an
    array that is not contiguous, ValueError for one that is shorter than the first.
    """

    def __init__(
        self,
        arguments: Any,
        operation: str,
        name: str = "kernel",
        keep: bool = False,
        options: Any = None,
        **parts: Any,
    ) -> None:
        unknown = set(parts) - {"preamble", "loop_prep", "after_loop"}
        if unknown:
            raise TypeError(f"ElementwiseKernel: has no argument {', '.join(sorted(unknown))}")
        self.arguments = arguments_of(arguments)
        self.name = name
        self._made: dict[bool, Function] = {}
        self._recipe = (operation, name, keep, options)
        self._parts = parts

    def _function(self, use_range: bool) -> Function:
        if use_range not in self._made:
            made = get_elwise_kernel_and_types(
                self.arguments, *self._recipe, use_range=use_range, **self._parts
            )
            self._made[use_range] = made[1]
        return self._made[use_range]

    def over(self, count: int, args: tuple[Any, ...], stream: Any = None) -> None:
        """Run it for i from 0 to a count, whatever the arrays' lengths are."""
        if count:
            block = (BLOCK, 1, 1)
            grid = (blocks_for(count), 1)
            self._function(False).prepared_async_call(grid, block, stream, *args, count)

    def __call__(
        self, *args: Any, range: Any = None, slice: Any = None, stream: Any = None
    ) -> None:
        """Run it on arrays; ``range`` and ``slice`` choose i, ``stream`` says where it runs."""
        arrays = vectors_in(self.name, self.arguments, args)
        size = arrays[0].size
        for array in arrays[1:]:
            if array.size < size:
                raise ValueError(
                    f"{self.name}: the first array has {size} elements, and another one of "
                    f"{array.size} is shorter"
                )
        if range is None and slice is None:
            self.over(size, args, stream)
            return
        if range is not None and slice is not None:
            raise TypeError(f"{self.name}: takes range= or slice=, not both")
        start, stop, step = bounds(range, slice, size)
        count = len(builtin_range(start, stop, step))
        if count:
            grid, block = (blocks_for(count), 1), (BLOCK, 1, 1)
            function = self._function(True)
            function.prepared_async_call(grid, block, stream, *args, start, stop, step)

    def get_texref(self, name: str, use_range: bool = False) -> Any:
        """Left out."""
        raise NotImplementedError(
            "ElementwiseKernel.get_texref: texture references are no longer part of CUDA, since "
            "12.0; take the array as an argument, as const float *x"
        )


builtin_range = range


def bounds(range: Any, slice: Any, size: int) -> tuple[int, int, int]:
    """Where i starts and stops and how it steps, of a call's ``range`` and ``slice``."""
    if slice is not None:
        start, stop, step = slice.indices(size)
        return start, stop, step
    if range is None:
        return 0, size, 1
    return range.start or 0, range.stop, 1 if range.step is None else range.step


def __getattr__(name: str) -> Any:
    if name.startswith("get_") and name.endswith("_kernel"):
        raise AttributeError(
            f"pycuda.elementwise.{name} is left out: ElementwiseKernel(arguments, operation) makes "
            "any such kernel, and GPUArray has the operations"
        )
    raise AttributeError(f"module 'pycuda.elementwise' has no attribute {name!r}")
