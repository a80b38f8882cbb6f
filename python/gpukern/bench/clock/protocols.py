"""Times as others take them, to be seen next to the clock's own."""

import statistics
from collections.abc import Callable

from gpukern.bench.clock.wall import wall, wall_synchronized
from gpukern.bench.model.clock import Clock


def leetcuda(clock: Clock, start: Callable[[], object]) -> float:
    """The protocol of LeetCUDA's scripts: 10 warm-ups, 1000 calls on the same buffers, the mean.

    The wall clock, with one synchronization at the end: launches and a warm cache are in it.
    """
    for _ in range(10):
        start()

    def iterations() -> None:
        for _ in range(1000):
            start()

    return wall_synchronized(clock, iterations) / 1000


def notes(clock: Clock, call: Callable[[], object]) -> float:
    """The protocol of a lecture's notebook: the mean of ten wall-clock times, warm-up included."""
    return statistics.fmean(wall(clock, call) for _ in range(10))
