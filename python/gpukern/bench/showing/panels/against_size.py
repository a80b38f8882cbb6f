"""Rates and times against the size; where there is one size alone, a list of points."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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

_HEIGHT = 3.5
# The width of what lies between the numbers on the left and the names on the right.
_INCHES = 5.2
_LEGEND_LINE = 0.165


def rates(comparison: Results, rows: Sequence[Row]) -> Panel:
    """How much of the device's bandwidth or arithmetic each contender uses."""
    shown = [row for row in rows if row.on_device]
    if not shown:
        return Panel("no times on the device were taken")
    unit, scale = _unit(shown)
    roofs = {looks.count_of(row): _roof(comparison, row) for row in shown}
    if len(roofs) == 1:
        return _list_of_rates(shown, unit, scale, next(iter(roofs.values())))
    known = [(count, roof) for count, roof in sorted(roofs.items()) if roof]

    def paint(place: "SubFigure") -> None:
        panel = place.subplots()
        lines(panel, shown, "on_device", lambda row, one: _rate(row, one, scale))
        if len(known) == len(roofs):
            limit = [(count, scale * roof.rate) for count, roof in known]
            text = f"limit: {_limit_name([roof for _, roof in known])}"
            panel.plot(*zip(*limit, strict=True), label=text, **_limit_style())
        _finish(panel, shown, f"on the device, nothing in its L2 cache: {unit}, higher is better")
        values = [_rate(row, row.on_device, scale).value for row in shown if row.on_device]
        if looks.far_apart(values):
            panel.set_yscale("log")
            looks.plain_numbers(panel.yaxis)
        else:
            panel.set_ylim(bottom=0)

    return Panel(height=_height(shown), paint=paint)


def times(_: Results, rows: Sequence[Row]) -> Panel:
    """How long calls take from NumPy arrays to a NumPy array."""
    shown = [row for row in rows if row.end_to_end]
    if not shown:
        return Panel("no times from NumPy array to NumPy array were taken")
    if len(set(map(looks.count_of, shown))) == 1:
        return _list_of_times(shown)

    def paint(place: "SubFigure") -> None:
        panel = place.subplots()
        lines(panel, shown, "end_to_end", lambda _, one: one)
        _finish(panel, shown, "from NumPy arrays to a NumPy array: time, lower is better")
        panel.set_yscale("log")
        looks.plain_numbers(panel.yaxis, seconds)

    return Panel(height=_height(shown), paint=paint)


def lines(
    panel: "Axes",
    rows: Sequence[Row],
    name: str,
    convert: Callable[[Row, Figure], Figure],
) -> None:
    """A line for each contender with its intervals; the best of each library is bold."""
    looked = looks.styles(rows)
    bold = {row.label for row in looks.best_of_each(looks.at_largest(rows), name)}
    last = {row.label: convert(row, getattr(row, name)).value for row in rows}
    for label in sorted(last, key=lambda one: -last[one]):
        mine = [row for row in rows if row.label == label]
        figures = [convert(row, getattr(row, name)) for row in mine]
        style = looked[label] | (
            {"lw": 2.2, "ms": 6, "zorder": 3} if label in bold else {"lw": 0.8, "ms": 3.5}
        )
        _line(panel, label, list(map(looks.count_of, mine)), figures, style)


def _line(
    panel: "Axes", label: str, counts: Sequence[int], figures: Sequence[Figure], style: Any
) -> None:
    """Sizes of as many elements are points of their own; the line goes through their middle."""
    at: dict[int, list[float]] = {}
    for count, one in zip(counts, figures, strict=True):
        at.setdefault(count, []).append(one.value)
    middle = [(count, statistics.median(at[count])) for count in sorted(at)]
    panel.plot(*zip(*middle, strict=True), **style | {"marker": ""})
    values = [one.value for one in figures]
    errors = [[o.value - o.low for o in figures], [o.high - o.value for o in figures]]
    marks = {key: style[key] for key in ("color", "marker", "ms")}
    panel.errorbar(counts, values, yerr=errors, capsize=2, elinewidth=1, ls="", **marks)
    panel.plot([], [], label=label, **style)


def _finish(panel: "Axes", rows: Sequence[Row], words: str) -> None:
    """Axes, title and names of a panel of lines."""
    looks.title(panel, words)
    looks.size_axis(panel, rows, _INCHES)
    place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "frameon": False}
    panel.legend(fontsize=looks.SMALL, handlelength=2.6, labelspacing=0.25, **place)


def _height(rows: Sequence[Row]) -> float:
    """High enough for the names beside it."""
    names = len({row.label for row in rows}) + 1
    return max(_HEIGHT, _LEGEND_LINE * names + looks.FRAME)


def _list_of_rates(rows: Sequence[Row], unit: str, scale: float, roof: "_Roof | None") -> Panel:
    shown = sorted(rows, key=lambda row: row.on_device.value if row.on_device else 0.0)
    figures = [_rate(row, row.on_device, scale) for row in shown if row.on_device]

    def paint(place: "SubFigure") -> None:
        panel = place.subplots()
        words = f"on the device, {shown[0].size}, nothing in its L2 cache: {unit}, higher is better"
        looks.title(panel, words)
        looks.points(panel, shown, figures, 1.0)
        for line, (row, one) in enumerate(zip(shown, figures, strict=True)):
            share = f", {row.limit:.0%}" if row.limit else ""
            looks.beside(panel, line, f"{_short(one.value)} {unit}{share}")
        if roof:
            text = f"limit: {_limit_name([roof])}, {_short(roof.rate * scale)} {unit}"
            panel.axvline(roof.rate * scale, label=text, **_limit_style())
            place.legend(loc="outside lower right", frameon=False, fontsize=looks.SMALL)
        _list_axis(panel, [one.value for one in figures])

    return Panel(height=looks.FRAME + 0.2 + looks.LINE * len(shown), paint=paint)


def _list_of_times(rows: Sequence[Row]) -> Panel:
    shown = sorted(rows, key=lambda row: row.end_to_end.value if row.end_to_end else 0.0)
    figures = [row.end_to_end for row in shown if row.end_to_end]

    def paint(place: "SubFigure") -> None:
        panel = place.subplots()
        words = f"NumPy arrays to a NumPy array, {shown[0].size}: milliseconds, lower is better"
        looks.title(panel, words)
        looks.points(panel, shown, figures, 1e3)
        for line, one in enumerate(figures):
            looks.beside(panel, line, seconds(one.value))
        _list_axis(panel, [1e3 * one.value for one in figures])

    return Panel(height=looks.FRAME + looks.LINE * len(shown), paint=paint)


def _list_axis(panel: "Axes", values: Sequence[float]) -> None:
    if looks.far_apart(values):
        panel.set_xscale("log")
        looks.plain_numbers(panel.xaxis)
    else:
        panel.set_xlim(left=0)


def _unit(rows: Sequence[Row]) -> tuple[str, float]:
    """GB/s, or for what is measured by its arithmetic TFLOP/s or GFLOP/s; and its part of one."""
    if not rows[0].operations:
        return "GB/s", 1e-9
    fastest = max(row.throughput or 0.0 for row in rows)
    return ("TFLOP/s", 1e-12) if fastest >= 1e11 else ("GFLOP/s", 1e-9)


def _rate(row: Row, time: Figure, scale: float) -> Figure:
    """A time as a rate: the longest gives the lowest."""
    work = scale * (row.operations or row.bytes_moved)
    return Figure(work / time.value, work / time.high, work / time.low, time.rounds)


@dataclass(frozen=True)
class _Roof:
    """The most that the device can do, as work a second, and what it is that bounds it."""

    rate: float
    name: str


def _roof(comparison: Results, row: Row) -> _Roof | None:
    """That of this size: by the device's memory, or by its arithmetic."""
    limits = comparison.machine.get("limits", {})
    copy: float | None = limits.get("copy_bandwidth")
    a_byte = row.operations / row.bytes_moved if row.operations else 1.0
    memory = _Roof(copy * a_byte, "copying memory") if copy else None
    if not row.operations:
        return memory
    peak: float | None = limits.get("peak_operations", {}).get(row.dtype)
    arithmetic = _Roof(peak, f"peak of {row.dtype}") if peak else None
    if memory and arithmetic:
        return min(memory, arithmetic, key=lambda one: one.rate)
    return arithmetic


def _limit_style() -> dict[str, Any]:
    return {"color": looks.ink(), "lw": 1, "ls": (0, (6, 3))}


def _limit_name(roofs: Sequence[_Roof]) -> str:
    """What bounds them: at some sizes it may be the one, at others the other."""
    return " or ".join(dict.fromkeys(roof.name for roof in roofs))


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
