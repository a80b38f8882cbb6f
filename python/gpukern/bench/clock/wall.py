"""Times by the wall clock: of calls that end with a NumPy array, or with a wait for the device."""

import gc
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpukern.bench.model.clock import Clock

_SHORT_CALL = 1e-3


def something_is_frozen() -> bool:
    """Whether anything is left out of collections; it takes as long as there are such objects."""
    return gc.get_freeze_count() > 0


@contextmanager
def no_collection() -> Iterator[None]:
    """A garbage collection in the middle of a round is not the contender's time.

    What is there already is left out of those that are asked for meanwhile, which are quick then.
    Where something was frozen before, a library's objects say, all of it stays so.
    """
    enabled, frozen = gc.isenabled(), something_is_frozen()
    gc.disable()
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not frozen:
            gc.unfreeze()
        if enabled:
            gc.enable()


def _no_look(result: object, array: np.ndarray[Any, Any]) -> None:
    """What becomes of a result that nobody looks at."""


def wall(
    clock: Clock,
    call: Callable[[], object],
    look: Callable[[object, np.ndarray[Any, Any]], object] = _no_look,
) -> float:
    """Seconds of one call that ends with a NumPy array; a lazy result is made real in the time.

    ``look`` gets the result, and it as an array, after the clock has stopped.
    """
    begin = clock.now()
    result = call()
    array = np.asarray(result)
    spent = clock.now() - begin
    look(result, array)
    # Freed after the clock has stopped: giving memory back is not part of the call.
    del array, result
    return spent


def end_to_end(
    clock: Clock,
    call: Callable[[], object],
    freshen: Callable[[], object],
    look: Callable[[object, np.ndarray[Any, Any]], object] = _no_look,
) -> float:
    """One round of a call from NumPy array to NumPy array: of a short one, the median of a few.

    ``freshen`` changes its inputs before each call, ``look`` gets its result, outside of the time.
    """

    def once() -> float:
        freshen()
        return wall(clock, call, look)

    first = once()
    if first > _SHORT_CALL:
        return first
    return statistics.median([first, *(once() for _ in range(4))])


def wall_synchronized(clock: Clock, call: Callable[[], object]) -> float:
    """Seconds of a call until the device has done all of its work."""
    clock.synchronize()
    begin = clock.now()
    result = call()
    clock.synchronize()
    spent = clock.now() - begin
    del result
    return spent
