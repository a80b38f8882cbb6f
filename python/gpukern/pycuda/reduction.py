"""pycuda.reduction: one number made of all elements of arrays."""

from typing import Any

import numpy as np

from gpukern.pycuda import reducing
from gpukern.pycuda.array import GPUArray
from gpukern.pycuda.compiler import options_of
from gpukern.pycuda.declarations import arguments_of, dtype_to_ctype
from gpukern.pycuda.elementwise import bounds, builtin_range, vectors_in


class ReductionKernel:
    """``reduce_expr``, of ``a`` and ``b``, over ``map_expr`` of every ``i`` of arrays.

    ``neutral`` is what changes nothing, as C writes it. It is called with arguments as they are
    declared, and ``stream=``, ``out=``, ``range=`` and ``slice=``; the result is an array of no
    axis of ``dtype_out``. Raises TypeError for arguments of other types, RuntimeError for an array
    that is not contiguous.
    """

    def __init__(
        self,
        dtype_out: Any,
        neutral: Any,
        reduce_expr: str,
        map_expr: str | None = None,
        arguments: Any = None,
        name: str = "reduce_kernel",
        keep: bool = False,
        options: Any = None,
        preamble: str = "",
    ) -> None:
        self.dtype_out = np.dtype(dtype_out)
        self.name = name
        if arguments is None:
            arguments = f"const {dtype_to_ctype(dtype_out)} *in"
            map_expr = map_expr or "in[i]"
        self.arguments = arguments_of(arguments)
        arrays = [argument for argument in self.arguments if argument.struct_char == "P"]
        if map_expr is None and len(arrays) == 1:
            map_expr = f"{arrays[0].name}[i]"
        if map_expr is None:
            raise TypeError(f"{name}: map_expr= says what of several arrays is reduced")
        declared = tuple(argument.declarator() for argument in self.arguments)
        recipe = reducing.Recipe(self.dtype_out, str(neutral), reduce_expr, map_expr, declared)
        self._stages = reducing.stages(recipe, name, tuple(options_of(options)), preamble)

    def __call__(
        self,
        *args: Any,
        stream: Any = None,
        out: Any = None,
        allocator: Any = None,
        range: Any = None,
        slice: Any = None,
    ) -> GPUArray:
        """The result; ``range`` and ``slice`` choose i, ``stream`` says where it runs."""
        arrays = vectors_in(self.name, self.arguments, args)
        start, stop, step = bounds(range, slice, arrays[0].size)
        places = builtin_range(start, stop, step)
        result: GPUArray = GPUArray((), self.dtype_out) if out is None else out
        if result.dtype != self.dtype_out or result.size != 1:
            raise ValueError(f"{self.name}: out= takes an array of one element of {self.dtype_out}")
        reducing.run(
            self._stages,
            result,
            lambda blocks: GPUArray((blocks,), self.dtype_out),
            args,
            places,
            stream,
        )
        return result


def _of_recipe(recipe: reducing.Recipe) -> ReductionKernel:
    dtype, neutral, reduce_expr, map_expr, arguments = recipe
    return ReductionKernel(dtype, neutral, reduce_expr, map_expr, ", ".join(arguments), "reduce")


def get_sum_kernel(dtype_out: Any, dtype_in: Any) -> ReductionKernel:
    """The sum of an array, by default in its own dtype."""
    return _of_recipe(reducing.total(dtype_out, dtype_in))


def get_any_kernel(dtype_out: Any, dtype_in: Any) -> ReductionKernel:
    """Whether one element is not zero."""
    return _of_recipe(reducing.whether_any(dtype_in))


def get_all_kernel(dtype_out: Any, dtype_in: Any) -> ReductionKernel:
    """Whether every element is not zero."""
    return _of_recipe(reducing.whether_all(dtype_in))


def get_dot_kernel(dtype_out: Any, dtype_a: Any = None, dtype_b: Any = None) -> ReductionKernel:
    """The sum of the products of two arrays."""
    return _of_recipe(reducing.product(dtype_out, dtype_a, dtype_b))


def get_minmax_kernel(what: str, dtype: Any) -> ReductionKernel:
    """The largest or smallest element: ``what`` is "max" or "min"."""
    return _of_recipe(reducing.extreme(what, dtype))


def __getattr__(name: str) -> Any:
    if name.startswith("get_"):
        raise AttributeError(
            f"pycuda.reduction.{name} is left out: ReductionKernel makes any such kernel, and "
            "pycuda.gpuarray has the reductions of subsets"
        )
    raise AttributeError(f"module 'pycuda.reduction' has no attribute {name!r}")
