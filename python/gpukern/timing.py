"""The one clock of the project: every figure that is shown comes from here."""

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gpukern import _core

_MOST_ROUNDS = 1000
_BATCH_SECONDS = 0.005
_LARGEST_BATCH = 1000


@dataclass(frozen=True)
class Effort:
    """How long to measure one figure: until ``seconds`` are spent, but at least ``least`` rounds.

    ``rounds`` asks for exactly so many instead.
    """

    seconds: float = 0.3
    least: int = 3
    rounds: int | None = None

    def enough(self, done: int, spent: float) -> bool:
        """Whether so many rounds in so many seconds are enough."""
        if self.rounds is not None:
            return done >= self.rounds
        return done >= _MOST_ROUNDS or (done >= self.least and spent >= self.seconds)


@contextmanager
def _no_collection() -> Iterator[None]:
    """A garbage collection in the middle of a round is not the contender's time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _median(sample: Callable[[], float], effort: Effort) -> float:
    begin = time.perf_counter()
    samples: list[float] = []
    with _no_collection():
        while not effort.enough(len(samples), time.perf_counter() - begin):
            samples.append(sample())
    return statistics.median(samples)


def end_to_end(call: Callable[[], object], effort: Effort) -> float:
    """Seconds of a call that takes and returns NumPy arrays: the median of the rounds."""

    def sample() -> float:
        begin = time.perf_counter()
        result = call()
        spent = time.perf_counter() - begin
        # Freed after the clock has stopped: giving memory back is not part of the call.
        del result
        return spent

    return _median(sample, effort)


def on_device(start: Callable[[], object], effort: Effort) -> float:
    """Seconds that the device needs for the work that ``start`` gives it.

    Events on the legacy default stream stand around batches of calls, and the harness waits for
    them: a contender that returns early gains nothing. Where a kernel is shorter than its launch,
    the launch is what this measures.
    """
    before, after = _core.Event(), _core.Event()

    def batch(calls: int) -> float:
        before.record()
        for _ in range(calls):
            start()
        after.record()
        return after.seconds_since(before) / calls

    one = max(batch(1), 1e-9)
    calls = max(1, min(_LARGEST_BATCH, int(_BATCH_SECONDS / one)))
    return _median(lambda: batch(calls), effort)
