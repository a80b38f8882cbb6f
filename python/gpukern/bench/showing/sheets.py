"""The tables of a comparison, as data.

Two tables for each operation and dtype, one of times on the device, one from end to end.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from gpukern.bench.model.intervals import Figure
from gpukern.bench.model.results import Results
from gpukern.bench.model.row import ABSENT, BROKEN, RIGHT, WRONG, Row
from gpukern.machine import conditions
from gpukern.text.units import bandwidth, seconds, throughput

_SIMULATED = "gpukern's times are a CPU's simulated figures, never a GPU's"
_HIDDEN = "gpukern ran on the CPU simulator: right results, and no times, which would mean nothing"


@dataclass(frozen=True)
class Cell:
    """Text, and whether it is good, bad or beside the point."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Column:
    """The head of a column, and its place in the order in which columns are kept where there is
    no room for all: 0 is always there. Columns of one place stay together."""

    head: str
    place: int
    left: bool = False


Line = tuple[Cell, ...]


@dataclass(frozen=True)
class Sheet:
    """A table as data: blocks of lines, one block a size."""

    title: str
    columns: tuple[Column, ...]
    blocks: tuple[tuple[Line, ...], ...]

    @property
    def head(self) -> tuple[str, ...]:
        """What stands above the columns."""
        return tuple(column.head for column in self.columns)

    def only(self, kept: Iterable[int]) -> "Sheet":
        """The columns of these indices."""
        kept = tuple(kept)
        blocks = tuple(tuple(tuple(line[i] for i in kept) for line in b) for b in self.blocks)
        return replace(self, columns=tuple(self.columns[i] for i in kept), blocks=blocks)


@dataclass(frozen=True)
class _Shown:
    """A row of results, and what its cells depend on besides: the fastest time of its size."""

    row: Row
    best: Figure | None
    margin: float


_Fill = Callable[[_Shown], Cell]


@dataclass(frozen=True)
class _View:
    """What is measured: on the device alone, or from end to end."""

    name: str
    time: Callable[[Row], Figure | None]
    columns: tuple[tuple[Column, _Fill], ...]


def sheets(comparison: Results) -> Iterator[Sheet]:
    """All tables."""
    shown = [row for row in comparison.rows if _has_line(row)]
    for (op, dtype), rows in groupby(shown, key=lambda row: (row.op, row.dtype)):
        group = list(rows)
        device = any(row.on_device for row in group)
        whole = any(row.end_to_end for row in group)
        if comparison.mode == "device" or (device and comparison.mode == "both"):
            yield _sheet(comparison, f"{op} {dtype}", group, _DEVICE)
        if comparison.mode == "end-to-end" or (comparison.mode == "both" and (whole or not device)):
            yield _sheet(comparison, f"{op} {dtype}", group, _END)


def _sheet(comparison: Results, what: str, rows: list[Row], view: _View) -> Sheet:
    blocks = []
    for size, group in groupby(rows, key=lambda row: row.size):
        block = list(group)
        best = _fastest(view.time(row) for row in block if not row.simulated)
        lines = (_line(_Shown(row, best, comparison.margin), view) for row in block)
        blocks.append(tuple((Cell("" if i else size), *line) for i, line in enumerate(lines)))
    columns = (Column("size", 0, left=True), *(column for column, _ in view.columns))
    title = _title(comparison, f"{what}, {view.name}")
    return _compact(Sheet(title, columns, tuple(blocks)))


def _line(shown: _Shown, view: _View) -> Line:
    return tuple(fill(shown) for _, fill in view.columns)


def _fastest(figures: Iterable[Figure | None]) -> Figure | None:
    """The least time, where its interval is below those of all the others."""
    timed = sorted((one for one in figures if one is not None), key=lambda one: one.value)
    least, others = timed[:1], timed[1:]
    faster = bool(others) and all(least[0].high < other.low for other in others)
    return least[0] if faster else None


def _compact(sheet: Sheet) -> Sheet:
    """Without the columns that are empty from top to bottom."""
    lines = [line for block in sheet.blocks for line in block]
    return sheet.only(
        i
        for i, column in enumerate(sheet.columns)
        if column.left or any(line[i].text not in "-" for line in lines)
    )


def _has_line(row: Row) -> bool:
    """Whether a row stands in a table; a peer that is not there at all is a remark alone."""
    return row.status != ABSENT


def _title(comparison: Results, what: str) -> str:
    where = "the simulator" if comparison.simulated else str(comparison.machine["device"])
    title = f"{what} on {where}, seed {comparison.seed}"
    if conditions.disturbances(comparison.machine):
        title += ", disturbed"
    if comparison.simulated:
        shown = any(row.simulated and row.on_device for row in comparison.rows)
        title += f"\n{_SIMULATED if shown else _HIDDEN}"
    return title


def _error(row: Row) -> Cell:
    if row.status == WRONG:
        return Cell("WRONG", "bold red")
    if row.status == BROKEN:
        return Cell("broken", "red")
    return Cell("exact" if not row.error else f"{row.error:.2g}")


def _ulps(row: Row) -> Cell:
    if row.status != RIGHT or row.ulps is None:
        return Cell("")
    return Cell("0" if not row.ulps else f"{row.ulps:.2g}")


def _bound_share(row: Row) -> Cell:
    if row.status != RIGHT or row.bound_share is None:
        return Cell("")
    return Cell("0" if not row.bound_share else f"{100 * row.bound_share:.2g} %")


def _time(figure: Figure | None, best: Figure | None = None) -> Cell:
    if figure is None:
        return Cell("-", "dim")
    return Cell(seconds(figure.value), "bold green" if figure is best else "")


def _plain(value: float | None) -> Cell:
    return Cell("-", "dim") if value is None else Cell(seconds(value))


def _spread(figure: Figure | None) -> Cell:
    if figure is None or figure.spread is None:
        return Cell("")
    return Cell(f"{_two_digits(100 * figure.spread)} %", "" if figure.spread < 0.05 else "yellow")


def _two_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _rate(row: Row) -> Cell:
    if row.on_device is None or row.simulated:
        return Cell("")
    if row.operations:
        return Cell(throughput(row.operations, row.on_device.value))
    return Cell(bandwidth(row.bytes_moved, row.on_device.value))


def _limit(row: Row) -> Cell:
    return Cell("" if row.limit is None else f"{row.limit:.0%}")


def _ratio(ratio: Figure | None, time: Figure | None, margin: float) -> Cell:
    if ratio is None:
        return Cell("base" if time else "", "dim")
    if ratio.rounds > 1 and ratio.is_same(margin):
        alike = abs(ratio.value - 1) <= margin
        return Cell("same" if alike else f"~{_short(ratio.value)}x", "dim")
    return Cell(f"{_short(ratio.value)}x")


def _interval(ratio: Figure | None) -> Cell:
    if ratio is None or ratio.rounds < 2:
        return Cell("")
    return Cell(f"{_short(ratio.low)}..{_short(ratio.high)}", "dim")


def _short(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


_WHO: tuple[tuple[Column, _Fill], ...] = (
    (Column("contender", 0, left=True), lambda one: Cell(one.row.contender)),
    (Column("variant", 0, left=True), lambda one: Cell(one.row.variant)),
    (Column("max error", 0), lambda one: _error(one.row)),
    (Column("ulps", 10), lambda one: _ulps(one.row)),
    (Column("of bound", 11), lambda one: _bound_share(one.row)),
)


def _protocol(name: str) -> tuple[Column, _Fill]:
    """A figure that was asked for, as others take it."""
    return Column(name, 2), lambda one: _plain(one.row.protocols.get(name))


def _phase(head: str, place: int, name: str) -> tuple[Column, _Fill]:
    return Column(head, place), lambda one: _plain(one.row.split.get(name))


_DEVICE = _View(
    "device",
    lambda row: row.on_device,
    (
        *_WHO,
        (Column("on device", 0), lambda one: _time(one.row.on_device, one.best)),
        (Column("±", 5), lambda one: _spread(one.row.on_device)),
        (Column("warm", 8), lambda one: _time(one.row.warm)),
        (Column("overhead", 9), lambda one: _time(one.row.overhead)),
        (Column("rate", 4), lambda one: _rate(one.row)),
        (Column("limit", 6), lambda one: _limit(one.row)),
        (
            Column("ratio", 3),
            lambda one: _ratio(one.row.device_ratio, one.row.on_device, one.margin),
        ),
        (Column("from..to", 7), lambda one: _interval(one.row.device_ratio)),
        _protocol("leetcuda"),
    ),
)
_END = _View(
    "end to end",
    lambda row: row.end_to_end,
    (
        *_WHO,
        (Column("end to end", 0), lambda one: _time(one.row.end_to_end, one.best)),
        (Column("±", 5), lambda one: _spread(one.row.end_to_end)),
        (Column("first call", 4), lambda one: _plain(one.row.first_call)),
        _phase("in", 6, "host to device"),
        _phase("compute", 6, "compute"),
        _phase("out", 6, "device to host"),
        (
            Column("ratio", 3),
            lambda one: _ratio(one.row.end_to_end_ratio, one.row.end_to_end, one.margin),
        ),
        (Column("from..to", 7), lambda one: _interval(one.row.end_to_end_ratio)),
        _protocol("notes"),
    ),
)
