"""The phases of a call from NumPy arrays to a NumPy array, in seconds, as one call was seen."""

from collections.abc import Sequence

PHASES = ("host to device", "compute", "device to host")

Split = dict[str, float]


def middle(splits: Sequence[Split]) -> Split:
    """Of some calls the one with the median of their times, whole; empty where there is none."""
    ranked = sorted(splits, key=lambda one: sum(one.values()))
    return dict(ranked[(len(ranked) - 1) // 2]) if ranked else {}
