"""Two runs of a comparison against each other: what became slower, and whether they agree."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpukern.bench.model.intervals import CONFIDENCE, Figure
from gpukern.bench.model.results import Results
from gpukern.bench.model.row import Row
from gpukern.bench.model.student import probability_beyond

# A time, and the ratio by which it is judged: what is faster or slower on the machine as a whole
# is so for the baseline of the same run too.
_JUDGED = {"on_device": "device_ratio", "end_to_end": "end_to_end_ratio"}
_TIMES = tuple(_JUDGED)
_FIGURES = (*_TIMES, "warm", *_JUDGED.values())
# Under this nobody would act on a change, however certain it is.
THRESHOLD = 0.02


@dataclass(frozen=True)
class Change:
    """A figure of a row in the earlier and in the later run.

    ``judged`` are the figures that decide: ratios to the baseline of each run where there are any,
    otherwise the times themselves. ``verdict`` is "slower", "faster" or "same".
    """

    row: Row
    name: str
    before: Figure
    after: Figure
    judged: tuple[Figure, Figure]
    inverse: bool
    verdict: str = "same"

    @property
    def factor(self) -> float:
        """How many times as long it takes now."""
        before, after = self.judged
        factor = after.value / before.value
        return 1 / factor if self.inverse else factor

    @property
    def chance(self) -> float:
        """How probable such a difference is where nothing has changed; few rounds say nothing."""
        if not all(figure.sound for figure in self.judged):
            return 1.0
        (one, freedom), (other, more) = (figure.uncertainty for figure in self.judged)
        error = math.hypot(one, other)
        if not error:
            return 1.0 if self.factor == 1 else 0.0
        return probability_beyond(abs(math.log(self.factor)) / error, freedom + more)


def changes(before: Results, after: Results, threshold: float = THRESHOLD) -> list[Change]:
    """The times of all rows that both runs have, and what has become of them.

    Many rows are judged at once: by Holm's method the probability that even one of them is called
    slower or faster for no reason is under 1 %. Changes smaller than ``threshold`` are the same.
    """
    found = [one for name in _TIMES for one in _changes(before, after, name)]
    return _verdicts(found, threshold)


def _changes(before: Results, after: Results, name: str) -> Iterator[Change]:
    for row, other in _pairs(before, after):
        old, new = getattr(other, name), getattr(row, name)
        if old is None or new is None:
            continue
        ratios = (getattr(other, _JUDGED[name]), getattr(row, _JUDGED[name]))
        by_ratio = None not in ratios
        yield Change(row, name, old, new, ratios if by_ratio else (old, new), by_ratio)


def _pairs(before: Results, after: Results) -> Iterator[tuple[Row, Row]]:
    """The later row and the earlier one, where both runs have it."""
    earlier = {row.key: row for row in before.rows}
    for row in after.rows:
        if row.key in earlier:
            yield row, earlier[row.key]


def _verdicts(found: Sequence[Change], threshold: float) -> list[Change]:
    verdicts = ["same"] * len(found)
    least_likely = sorted(range(len(found)), key=lambda index: found[index].chance)
    for place, index in enumerate(least_likely):
        one = found[index]
        if one.chance * (len(found) - place) > 1 - CONFIDENCE:
            break
        if abs(math.log(one.factor)) >= math.log1p(threshold):
            verdicts[index] = "slower" if one.factor > 1 else "faster"
    return [
        Change(one.row, one.name, one.before, one.after, one.judged, one.inverse, verdict)
        for one, verdict in zip(found, verdicts, strict=True)
    ]


@dataclass(frozen=True)
class Agreement:
    """How many figures two runs share, and those whose intervals have nothing in common."""

    compared: int
    apart: list[tuple[Row, str, Figure, Figure]]

    @property
    def share(self) -> float:
        """The share of figures that do not agree."""
        return len(self.apart) / self.compared if self.compared else 0.0

    def __str__(self) -> str:
        lines = [
            f"{row.op} {row.size} {row.dtype} {row.label}, {name.replace('_', ' ')}: "
            f"{before.low:.3g}..{before.high:.3g} and {after.low:.3g}..{after.high:.3g}"
            for row, name, before, after in self.apart
        ]
        summary = (
            f"{len(self.apart)} of {self.compared} figures ({self.share:.1%}) have intervals that "
            "do not overlap"
        )
        return "\n".join([*lines, summary])


def agreement(before: Results, after: Results, names: Sequence[str] = _FIGURES) -> Agreement:
    """Whether the figures of two runs are the same as far as their intervals tell."""
    found = [
        (row, name, getattr(other, name), getattr(row, name))
        for row, other in _pairs(before, after)
        for name in names
        if getattr(other, name) is not None and getattr(row, name) is not None
    ]
    apart = [(row, name, old, new) for row, name, old, new in found if not old.overlaps(new)]
    return Agreement(len(found), apart)
