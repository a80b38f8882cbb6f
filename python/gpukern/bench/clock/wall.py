"""Times by the wall clock: of calls that end with a NumPy array, or with a wait for the device."""

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from gpukern import _core

_SHORT_CALL = 1e-3


@contextmanager
def no_collection() -> Iterator[None]:
    """A garbage collection in the middle of a round is not the contender's time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def wall(call: Callable[[], object]) -> float:
    """Seconds of one call that ends with a NumPy array; a lazy result is made real in the time."""
    begin = time.perf_counter()
    result = np.asarray(call())
    spent = time.perf_counter() - begin
    # Freed after the clock has stopped: giving memory back is not part of the call.
    del result
    return spent


def end_to_end(call: Callable[[], object]) -> float:
    """One round of a call from NumPy array to NumPy array: of a short one, the median of a few."""
    first = wall(call)
    if first > _SHORT_CALL:
        return first
    return statistics.median([first, *(wall(call) for _ in range(4))])


def wall_synchronized(call: Callable[[], object]) -> float:
    """Seconds of a call until the device has done all of its work."""
    _core.synchronize()
    begin = time.perf_counter()
    result = call()
    _core.synchronize()
    spent = time.perf_counter() - begin
    del result
    return spent
