"""How many times as fast as the baseline each contender is: points with intervals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpukern.bench.model.intervals import Figure
from gpukern.bench.model.results import Results
from gpukern.bench.model.row import Row
from gpukern.bench.showing.panels import panel as looks
from gpukern.bench.showing.panels.panel import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

# The ratio, the time that it is made of, and where that was taken.
_RATIOS = (
    ("device_ratio", "on_device", "on the device"),
    ("end_to_end_ratio", "end_to_end", "end to end"),
)
_BASE = Figure(1.0, 1.0, 1.0, 1)


def panel(_: Results, rows: Sequence[Row]) -> Panel:
    """At the largest size; times on the device and end to end side by side."""
    largest = looks.at_largest(rows)
    columns = [
        (name, time, where)
        for name, time, where in _RATIOS
        if any(getattr(row, name) for row in largest)
    ]
    if not columns:
        return Panel("no ratios: fewer than two contenders were timed")
    shown = [row for row in largest if any(_ratio(row, *column[:2]) for column in columns)]

    def order(row: Row) -> tuple[float, ...]:
        found = (_ratio(row, *column[:2]) for column in columns)
        return tuple(-one.value if one else 0.0 for one in found)

    shown.sort(key=order)

    def paint(place: "SubFigure") -> None:
        panels = place.subplots(1, len(columns), squeeze=False, sharey=True)[0]
        for axes, (name, time, where) in zip(panels, columns, strict=True):
            _column(axes, shown, name, time, where)

    return Panel(height=looks.FRAME + 0.2 + looks.LINE * len(shown), paint=paint)


def _column(axes: "Axes", rows: Sequence[Row], name: str, time: str, where: str) -> None:
    figures = [_ratio(row, name, time) for row in rows]
    base = next((r.label for r in rows if _ratio(r, name, time) is _BASE), "the baseline")
    looks.title(axes, f"{where}, {rows[0].size}")
    axes.set_xlabel(f"times as fast as {base}", fontsize=looks.SMALL)
    axes.set_xscale("log")
    axes.axvline(1, color=looks.ink(), lw=1, zorder=1)
    looks.points(axes, rows, figures, 1.0)
    for line, (row, one) in enumerate(zip(rows, figures, strict=True)):
        looks.beside(axes, line, _words(row, name, one))
    axes.margins(x=0.06)
    looks.plain_numbers(axes.xaxis)


def _ratio(row: Row, name: str, time: str) -> Figure | None:
    """A row that was timed and has no ratio is the baseline."""
    found: Figure | None = getattr(row, name)
    return found or (_BASE if getattr(row, time) else None)


def _words(row: Row, name: str, one: Figure | None) -> str:
    if one is None:
        return "–"
    if not getattr(row, name):
        return "base"
    return f"{one.value:.2f}x" if one.value >= 0.1 else f"{one.value:.2g}x"
