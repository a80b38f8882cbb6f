"""Figures with their confidence: medians of rounds, and ratios between contenders.

Intervals are distribution-free: order statistics around the median, which hold with 99 % confidence
from eight rounds on. With fewer rounds they are the least and the greatest value.
"""

import math
import statistics
from collections.abc import Collection, Mapping
from dataclasses import dataclass

CONFIDENCE = 0.99


@dataclass(frozen=True)
class Figure:
    """A median with the interval that holds the true one, from so many rounds."""

    value: float
    low: float
    high: float
    rounds: int

    @property
    def spread(self) -> float | None:
        """Half the width of the interval relative to the value; None after a single round."""
        if self.rounds < 2 or not self.value:
            return None
        return (self.high - self.low) / 2 / self.value

    @property
    def same(self) -> bool:
        """For a ratio: whether the interval spans 1, so that nothing is decided."""
        return self.low <= 1 <= self.high

    def overlaps(self, other: "Figure") -> bool:
        """Whether the two intervals have a value in common."""
        return self.low <= other.high and other.low <= self.high


def rank(rounds: int, confidence: float = CONFIDENCE) -> int:
    """How many values may be left out at either end of the sorted ones; the extremes stay at 0."""
    outside, below = (1 - confidence) / 2, 0.0
    for left_out in range(rounds // 2 + 1):
        below += math.comb(rounds, left_out) / 2**rounds
        if below > outside:
            return max(left_out - 1, 0)
    return rounds // 2


def figure(samples: Collection[float]) -> Figure:
    """The median of the samples with its interval."""
    ordered = sorted(samples)
    left_out = rank(len(ordered))
    return Figure(
        statistics.median(ordered),
        ordered[left_out],
        ordered[len(ordered) - 1 - left_out],
        len(ordered),
    )


def ratio(numerator: Mapping[int, float], denominator: Mapping[int, float]) -> Figure | None:
    """The median of the ratios round by round, so that what drifts for both cancels.

    The samples go by the number of their round; None where there is no round with both.
    """
    both = [turn for turn in numerator if denominator.get(turn, 0) > 0]
    return figure([numerator[turn] / denominator[turn] for turn in both]) if both else None
