"""Two runs of a comparison against each other: what became slower, and whether they agree."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpukern.bench.model.intervals import Figure
from gpukern.bench.model.results import Results
from gpukern.bench.model.row import Row

_TIMES = ("on_device", "end_to_end")
_RATIOS = ("device_ratio", "end_to_end_ratio")
# Under this nobody would act on a change, however certain it is.
_SMALLEST = 0.02


@dataclass(frozen=True)
class Change:
    """A figure of a row in the earlier and in the later run."""

    row: Row
    name: str
    before: Figure
    after: Figure

    @property
    def factor(self) -> float:
        """How many times as long it takes now."""
        return self.after.value / self.before.value

    @property
    def verdict(self) -> str:
        """ "slower", "faster", or "same" where the intervals overlap or the change is tiny."""
        if self.before.overlaps(self.after) or abs(self.factor - 1) < _SMALLEST:
            return "same"
        return "slower" if self.factor > 1 else "faster"


def _pairs(before: Results, after: Results, names: tuple[str, ...]) -> Iterator[Change]:
    earlier = {row.key: row for row in before.rows}
    for row in after.rows:
        other = earlier.get(row.key)
        for name in names:
            old, new = getattr(other, name, None), getattr(row, name)
            if old is not None and new is not None:
                yield Change(row, name, old, new)


def changes(before: Results, after: Results) -> list[Change]:
    """The times of all rows that both runs have."""
    return list(_pairs(before, after, _TIMES))


@dataclass(frozen=True)
class Agreement:
    """How many ratios two runs share, and the ones whose intervals have nothing in common."""

    compared: int
    apart: list[Change]

    @property
    def share(self) -> float:
        """The share of ratios that do not agree."""
        return len(self.apart) / self.compared if self.compared else 0.0

    def __str__(self) -> str:
        lines = [
            f"{change.row.op} {change.row.size} {change.row.dtype} {change.row.label}, "
            f"{change.name.replace('_', ' ')}: {change.before.low:.3g}..{change.before.high:.3g} "
            f"and {change.after.low:.3g}..{change.after.high:.3g}"
            for change in self.apart
        ]
        summary = (
            f"{len(self.apart)} of {self.compared} ratios ({self.share:.1%}) have intervals that "
            "do not overlap"
        )
        return "\n".join([*lines, summary])


def agreement(before: Results, after: Results) -> Agreement:
    """Whether the ratios of two runs are the same as far as their intervals tell."""
    found = list(_pairs(before, after, _RATIOS))
    return Agreement(len(found), [one for one in found if not one.before.overlaps(one.after)])
