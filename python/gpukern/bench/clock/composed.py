"""A call from NumPy arrays to a NumPy array that is composed of a library's own functions.

The device has done its work before the next phase begins, so that nothing overlaps, and the phases
together are the call.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.model.clock import Clock
from gpukern.bench.model.contender import DeviceSide
from gpukern.bench.model.split import PHASES, Split

Array = npt.NDArray[Any]


def composed(clock: Clock, side: DeviceSide, host: Sequence[Array], blank: Array) -> Split:
    """The phases of one call on the arrays of ``host``.

    ``blank``, of the result's shape and dtype, is on the device before the clock starts, for
    contenders that write their result.
    """
    out = side.load(blank)
    marks = [_mark(clock)]
    inputs = tuple(side.load(array) for array in host)
    marks.append(_mark(clock))
    result = side.run(inputs, out)
    marks.append(_mark(clock))
    array = np.asarray(side.fetch(out if result is None else result))
    marks.append(_mark(clock))
    # Freed after the clock has stopped: giving memory back is not part of the call.
    del array, result, inputs, out
    return dict(zip(PHASES, (end - begin for begin, end in pairwise(marks)), strict=True))


def _mark(clock: Clock) -> float:
    """The time when the device has done all of its work."""
    clock.synchronize()
    return clock.now()
