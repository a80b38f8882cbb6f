"""Large host arrays in pieces, side by side on all cores: NumPy releases the GIL in its loops."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Result = TypeVar("Result")

# Elements: their temporary arrays stay in a core's cache.
PIECE = 2**18


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), "gpukern-pieces")


def in_pieces(function: Callable[..., Result], *arrays: Array) -> list[Result]:
    """What ``function`` returns for each piece of some arrays of one size, flattened, in order.

    The pieces of a contiguous array are views, so that the function may write to them. It must not
    call ``in_pieces`` itself: the cores that it would wait for are those that run it.
    """
    flat = [array.reshape(-1) for array in arrays]
    starts = range(0, flat[0].size, PIECE)
    if len(starts) < 2:
        return [function(*flat)]
    return list(_pool().map(lambda at: function(*(one[at : at + PIECE] for one in flat)), starts))


def draw(
    count: int,
    dtype: npt.DTypeLike,
    rng: np.random.Generator,
    drawn: Callable[[np.random.Generator, int], Array],
) -> Array:
    """``count`` random numbers; each piece comes from a generator of its own."""
    out = np.empty(count, dtype)
    pieces = [out[at : at + PIECE] for at in range(0, count, PIECE)]

    def fill(piece: Array, mine: np.random.Generator) -> None:
        piece[...] = drawn(mine, piece.size)

    list(_pool().map(fill, pieces, rng.spawn(len(pieces))))
    return out
