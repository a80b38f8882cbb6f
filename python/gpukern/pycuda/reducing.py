"""Reductions: what is reduced how, and the two launches that do it."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gpukern.kernels.module import Kernel
from gpukern.pycuda.declarations import dtype_to_ctype
from gpukern.pycuda.expressions import BLOCK, blocks_for, reduction_kernels
from gpukern.pycuda.launching import launch

_MOST_BLOCKS = 1024
Stages = tuple[Kernel, Kernel]


class Recipe(NamedTuple):
    """A reduction as C has it: of ``a`` and ``b``, over what is made of each ``i``."""

    dtype: np.dtype[Any]
    neutral: str
    reduce_expr: str
    map_expr: str
    arguments: tuple[str, ...]


@lru_cache(maxsize=256)
def stages(
    recipe: Recipe, name: str = "reduce", options: tuple[str, ...] = (), preamble: str = ""
) -> Stages:
    """The kernels of a recipe."""
    return reduction_kernels(
        dtype_to_ctype(recipe.dtype),
        recipe.neutral,
        recipe.reduce_expr,
        recipe.map_expr,
        recipe.arguments,
        name,
        options,
        preamble,
    )


def run(
    kernels: Stages,
    out: Any,
    empty: Callable[[int], Any],
    args: Sequence[Any],
    places: range,
    stream: Any,
) -> None:
    """Reduce to ``out``; ``empty`` gives an array for so many blocks' results."""
    blocks = min(blocks_for(len(places)), _MOST_BLOCKS)
    parts = empty(blocks) if blocks > 1 else out
    launch(
        kernels[0], blocks, BLOCK, (parts, *args, places.start, places.step, len(places)), stream
    )
    if blocks > 1:
        launch(kernels[1], 1, BLOCK, (out, parts, blocks), stream)


# recipes ------------------------------------------------------------------------------------------


def _in(dtype: Any) -> tuple[str, ...]:
    return (f"const {dtype_to_ctype(dtype)} *in",)


def total(dtype_out: Any, dtype_in: Any) -> Recipe:
    """The sum, by default in the array's own dtype."""
    kind = np.dtype(dtype_in if dtype_out is None else dtype_out)
    return Recipe(kind, "0", "a + b", f"({dtype_to_ctype(kind)})in[i]", _in(dtype_in))


def whether_any(dtype_in: Any) -> Recipe:
    """Whether one element is not zero."""
    return Recipe(np.dtype(bool), "false", "a || b", "in[i] != 0", _in(dtype_in))


def whether_all(dtype_in: Any) -> Recipe:
    """Whether every element is not zero."""
    return Recipe(np.dtype(bool), "true", "a && b", "in[i] != 0", _in(dtype_in))


def product(dtype_out: Any, dtype_a: Any, dtype_b: Any) -> Recipe:
    """The sum of the products of two arrays."""
    kind = np.dtype(np.result_type(dtype_a, dtype_b) if dtype_out is None else dtype_out)
    out, first, second = (dtype_to_ctype(each) for each in (kind, dtype_a, dtype_b))
    arguments = (f"const {first} *x", f"const {second} *y")
    return Recipe(kind, "0", "a + b", f"({out})x[i] * ({out})y[i]", arguments)


def _extreme(what: str, dtype: np.dtype[Any]) -> str:
    """What no element is beyond."""
    if dtype.kind == "f":
        return "-INFINITY" if what == "max" else "INFINITY"
    if dtype.kind == "b":
        return "false" if what == "max" else "true"
    if dtype.kind not in "iu":
        raise TypeError(f"gpuarray.{what}: {dtype} has no order; use .real, .imag or abs(...)")
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    limit = least if what == "max" else most
    # The least of all cannot be written as one number in C.
    return f"({limit + 1} - 1)" if limit < 0 else f"{limit}{'u' if dtype.kind == 'u' else ''}"


def extreme(what: str, dtype: Any) -> Recipe:
    """The largest or smallest element: ``what`` is "max" or "min"."""
    kind = np.dtype(dtype)
    how = "a > b ? a : b" if what == "max" else "a < b ? a : b"
    return Recipe(kind, _extreme(what, kind), how, "in[i]", _in(kind))
