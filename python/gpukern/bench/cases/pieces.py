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

    def one_piece(at: int) -> Result:
        with np.errstate(**handling):  # a thread has its own
            return function(*(one[at : at + PIECE] for one in flat))

    handling: Any = np.geterr()
    return list(_pool().map(one_piece, starts))


def fill(rng: np.random.Generator, function: Callable[..., object], *arrays: Array) -> None:
    """Have ``function(generator, *pieces)`` fill arrays of one size, flattened, piece by piece.

    Each of several has a generator of its own, so that the numbers do not depend on the cores.
    """
    flat = [array.reshape(-1) for array in arrays]
    starts = range(0, flat[0].size, PIECE)
    if len(starts) < 2:
        function(rng, *flat)
        return

    def one(at: int, mine: np.random.Generator) -> None:
        function(mine, *(array[at : at + PIECE] for array in flat))

    list(_pool().map(one, starts, rng.spawn(len(starts))))
