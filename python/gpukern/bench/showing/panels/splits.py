"""Where the time of a call from NumPy arrays to a NumPy array goes.

Transfers and compute are timed apart from the call. Where they fit into it they part its bar, whose
whisker is the interval of the call. Where their sum is longer, as where the call lets them overlap,
that would be a lie: then the call is a bar of its own, and the phases are a second one below,
marked as timed apart.
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

_WHOLE = "call, in one piece"
_COLORS = {
    "host to device": "#0072b2",
    "compute": "#d55e00",
    "device to host": "#56b4e9",
    "rest of the call": "#bbbbbb",
    _WHOLE: "#7f7f7f",
}
_PALE = "lower bar: phases timed apart, which together are longer than the call"
# As long as the call, for all that an eye sees of it: a wide interval does not make a bar longer.
_LONGEST = 1.02
_TIMED = ("host to device", "compute", "device to host")


def panel(_: Results, rows: Sequence[Row]) -> Panel:
    """At the largest size; of many contenders the best of each library."""
    shown = [row for row in looks.at_largest(rows) if row.end_to_end and row.phases()]
    if not shown:
        return Panel("no calls were split into transfers and compute")
    chosen = looks.best_of_each(shown, "end_to_end") if len(shown) > looks.MANY else shown
    chosen.sort(key=_call)
    picked = ", the best of each library" if len(chosen) < len(shown) else ""

    def paint(place: "SubFigure") -> None:
        axes = place.subplots()
        looks.title(axes, f"where a call's time goes, {chosen[0].size}{picked}: milliseconds")
        for line, row in enumerate(chosen):
            _bars(axes, line, row)
        _frame(axes, chosen)
        named = list(_COLORS)
        if all(map(fits, chosen)):
            named.remove(_WHOLE)
        else:
            axes.set_xlabel(_PALE, fontsize=looks.SMALL)
        handles = [axes.barh(0, 0, color=_COLORS[name], label=name) for name in named]
        legend: dict[str, Any] = {"ncols": len(named), "frameon": False, "fontsize": looks.SMALL}
        place.legend(handles=handles, loc="outside lower center", **legend)

    return Panel(height=looks.FRAME + 0.25 + 1.4 * looks.LINE * len(chosen), paint=paint)


def fits(row: Row) -> bool:
    """Whether the phases that were timed apart can all be inside of the call."""
    most = min(row.end_to_end.high, _LONGEST * _call(row)) if row.end_to_end else 0.0
    return sum(row.phases()[name] for name in _TIMED) <= most


def _call(row: Row) -> float:
    return row.end_to_end.value if row.end_to_end else 0.0


def _bars(axes: "Axes", line: int, row: Row) -> None:
    phases = row.phases()
    apart = {name: phases[name] for name in _TIMED}
    whole = seconds(_call(row))
    if fits(row):
        _stack(axes, line, 0.66, {**apart, "rest of the call": phases["rest"]})
    else:
        _stack(axes, line - 0.17, 0.34, {_WHOLE: _call(row)})
        _stack(axes, line + 0.2, 0.26, apart, alpha=0.6)
        whole += f"; apart {seconds(sum(apart.values()))}"
    if row.end_to_end:
        _whisker(axes, line if fits(row) else line - 0.17, row.end_to_end)
    looks.beside(axes, line, whole)


def _whisker(axes: "Axes", at: float, one: Figure) -> None:
    reach = [[1e3 * (one.value - one.low)], [1e3 * (one.high - one.value)]]
    axes.errorbar(1e3 * one.value, at, xerr=reach, color=looks.ink(), lw=1, capsize=2)


def _stack(
    axes: "Axes", at: float, height: float, parts: dict[str, float], alpha: float = 1.0
) -> None:
    left = 0.0
    for name, value in parts.items():
        axes.barh(at, 1e3 * value, height, left=left, color=_COLORS[name], alpha=alpha)
        left += 1e3 * value


def _frame(axes: "Axes", rows: Sequence[Row]) -> None:
    axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=looks.SMALL)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="x", labelsize=looks.SMALL)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.25)
    axes.set_axisbelow(True)
