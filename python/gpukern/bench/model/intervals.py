"""Figures with their confidence: medians of rounds, and ratios between contenders.

What is timed in one process differs from what another one times by more than the rounds of either
say: where its memory lies, and which cores it runs on, stay for its life. So a figure is made of
*blocks*, the rounds of one process each. Several blocks give an interval by Student's t of their
medians; their own scatter is joined with what processes were seen to scatter by elsewhere, as
Smyth (2004) does for many rows with few samples each. One block alone gives order statistics around
its median, widened by that scatter.
"""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gpukern.bench.model.student import quantile

CONFIDENCE = 0.99
# A ratio that differs from 1 by less is called the same.
MARGIN = 0.01


@dataclass(frozen=True)
class Scatter:
    """By how much processes on one machine were seen to differ, as a standard deviation.

    It is a share of the value, and ``seconds`` beside it, which make most of it for short kernels.
    """

    share: float
    seconds: float = 0.0

    def of(self, *values: float) -> float:
        """Relative to a time, or to the ratio of two."""
        return math.hypot(self.share, *(self.seconds / value for value in values if value > 0))


SCATTER = {
    "cold": Scatter(0.007, 0.1e-6),
    "warm": Scatter(0.007, 0.07e-6),
    "overhead": Scatter(0.2),
    "end_to_end": Scatter(0.08),
    "device ratio": Scatter(0.008, 0.1e-6),
    "end-to-end ratio": Scatter(0.09),
}
# How many processes that knowledge counts for.
_PRIOR = 4
# From so many rounds on the order statistics of one process hold what they promise.
_ENOUGH = 8


@dataclass(frozen=True)
class Figure:
    """A value with the interval that holds the true one, from rounds in so many processes."""

    value: float
    low: float
    high: float
    rounds: int
    processes: int = 1

    @property
    def spread(self) -> float | None:
        """Half the width of the interval relative to the value; None after a single round."""
        if self.rounds < 2 or not self.value:
            return None
        return (self.high - self.low) / 2 / self.value

    @property
    def sound(self) -> bool:
        """Whether there are rounds enough for the interval to hold with that confidence."""
        return self.processes > 1 or self.rounds >= _ENOUGH

    @property
    def same(self) -> bool:
        """For a ratio: whether what is within the margin of 1 is in the interval."""
        return self.is_same()

    def is_same(self, margin: float = MARGIN) -> bool:
        """For a ratio: whether the interval reaches to within ``margin`` of 1."""
        return self.low <= 1 + margin and self.high >= 1 / (1 + margin)

    def overlaps(self, other: "Figure") -> bool:
        """Whether the two intervals have a value in common."""
        return self.low <= other.high and other.low <= self.high

    @property
    def uncertainty(self) -> tuple[float, float]:
        """The standard error of the value's logarithm, and its degrees of freedom."""
        freedom = _PRIOR + self.processes - 1
        if self.low <= 0 or self.high <= self.low:
            return 0.0, freedom
        return math.log(self.high / self.low) / 2 / quantile(CONFIDENCE, freedom), freedom


def rank(rounds: int, confidence: float = CONFIDENCE) -> int:
    """How many values may be left out at either end of the sorted ones; the extremes stay at 0."""
    outside, below = (1 - confidence) / 2, 0.0
    for left_out in range(rounds // 2 + 1):
        below += math.comb(rounds, left_out) / 2**rounds
        if below > outside:
            return max(left_out - 1, 0)
    return rounds // 2


def typical(samples: Sequence[Mapping[int, float]]) -> list[float]:
    """The median of all samples; none where there are none."""
    values = [one for taken in samples for one in taken.values()]
    return [statistics.median(values)] if values else []


def figure(blocks: Sequence[Collection[float]], scatter: float = 0.0) -> Figure | None:
    """The samples of each process as one figure; None where there are none."""
    blocks = [block for block in blocks if block]
    if not blocks:
        return None
    return _of_one(blocks[0], scatter) if len(blocks) == 1 else _of_several(blocks, scatter)


def _of_one(samples: Collection[float], scatter: float) -> Figure:
    ordered = sorted(samples)
    left_out, value = rank(len(ordered)), statistics.median(ordered)
    low, high = ordered[left_out], ordered[len(ordered) - 1 - left_out]
    beyond = quantile(CONFIDENCE, _PRIOR) * scatter * value if len(ordered) > 1 else 0.0
    return Figure(
        value,
        max(value - math.hypot(value - low, beyond), min(low, value) / 2),
        value + math.hypot(high - value, beyond),
        len(ordered),
    )


def _of_several(blocks: Sequence[Collection[float]], scatter: float) -> Figure:
    medians = [statistics.median(block) for block in blocks]
    rounds, count = sum(map(len, blocks)), len(medians)
    if min(medians) <= 0:
        return Figure(statistics.median(medians), min(medians), max(medians), rounds, count)
    logs = [math.log(one) for one in medians]
    freedom = _PRIOR + count - 1
    variance = (_PRIOR * scatter**2 + (count - 1) * statistics.variance(logs)) / freedom
    middle = statistics.fmean(logs)
    half = quantile(CONFIDENCE, freedom) * math.sqrt(variance / count)
    value = math.exp(middle)
    return Figure(value, value * math.exp(-half), value * math.exp(half), rounds, count)


def ratio(
    numerators: Sequence[Mapping[int, float]],
    denominators: Sequence[Mapping[int, float]],
    scatter: float = 0.0,
) -> Figure | None:
    """The ratios within each process, round by round, so that what drifts for both cancels.

    The samples of a process go by the number of their round, and a round that one of them lacks is
    left out. None where there is no round with both.
    """
    pairs = zip(numerators, denominators, strict=True)
    return figure([_paired(above, below) for above, below in pairs], scatter)


def _paired(numerator: Mapping[int, float], denominator: Mapping[int, float]) -> list[float]:
    both = [turn for turn in numerator if denominator.get(turn, 0) > 0]
    return [numerator[turn] / denominator[turn] for turn in both]
