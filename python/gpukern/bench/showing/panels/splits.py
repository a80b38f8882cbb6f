"""Where the time of a call from NumPy arrays to a NumPy array goes.

The bar is a call that is composed of the library's own functions, in which each phase waits for the
one before. The mark with its interval is the call in one piece, as users make it: where it stands
inside of its bar, the call lets its phases overlap.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpukern.bench.model.intervals import Figure
from gpukern.bench.model.results import Results
from gpukern.bench.model.row import Row
from gpukern.bench.showing.panels import panel as looks
from gpukern.bench.showing.panels.panel import Panel
from gpukern.text.units import seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

_COLORS = {"host to device": "#0072b2", "compute": "#d55e00", "device to host": "#56b4e9"}
_CALL = "the call in one piece, which may overlap them"


def panel(_: Results, rows: Sequence[Row]) -> Panel:
    """At the largest size; of many contenders the best of each library."""
    shown = [row for row in looks.at_largest(rows) if row.end_to_end and row.phases()]
    if not shown:
        return Panel("no calls were split into transfers and compute")
    chosen = looks.best_of_each(shown, "end_to_end") if len(shown) > looks.MANY else shown
    calls = sorted(((row.end_to_end, row) for row in chosen if row.end_to_end), key=_length)
    picked = ", the best of each library" if len(chosen) < len(shown) else ""

    def paint(place: "SubFigure") -> None:
        axes = place.subplots()
        words = f"phases of a call one after another, {chosen[0].size}{picked}: milliseconds"
        looks.title(axes, words)
        for line, (call, row) in enumerate(calls):
            _stack(axes, line, row.phases())
            _mark(axes, line, call)
            whole = seconds(sum(row.phases().values()))
            looks.beside(axes, line, f"{whole}; in one piece {seconds(call.value)}")
        _frame(axes, [row for _, row in calls])
        _name_colors(place, axes)

    return Panel(height=looks.FRAME + 0.25 + 1.4 * looks.LINE * len(chosen), paint=paint)


def _length(pair: tuple[Figure, Row]) -> float:
    return pair[0].value


def _stack(axes: "Axes", line: int, phases: dict[str, float]) -> None:
    left = 0.0
    for name, value in phases.items():
        axes.barh(line, 1e3 * value, 0.66, left=left, color=_COLORS[name])
        left += 1e3 * value


def _mark(axes: "Axes", line: int, one: Figure) -> None:
    reach = [[1e3 * (one.value - one.low)], [1e3 * (one.high - one.value)]]
    axes.errorbar(1e3 * one.value, line, xerr=reach, **_mark_style())


def _mark_style() -> dict[str, Any]:
    """Seen on every colour of the bars, and beside them."""
    return {"color": looks.ink(), "fmt": "|", "ms": 15, "mew": 2, "lw": 1.2, "capsize": 3}


def _name_colors(place: "SubFigure", axes: "Axes") -> None:
    handles: list[Any] = [
        axes.barh(0, 0, color=color, label=name) for name, color in _COLORS.items()
    ]
    handles.append(axes.errorbar([], [], xerr=[], label=_CALL, **_mark_style()))
    legend: dict[str, Any] = {"ncols": len(handles), "frameon": False, "fontsize": looks.SMALL}
    place.legend(handles=handles, loc="outside lower center", **legend)


def _frame(axes: "Axes", rows: Sequence[Row]) -> None:
    axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=looks.SMALL)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.tick_params(axis="x", labelsize=looks.SMALL)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.25)
    axes.set_axisbelow(True)
