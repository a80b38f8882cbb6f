"""The tables of a comparison, as data.

Two tables for each operation and dtype, one of times on the device, one from end to end.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from gpukern.bench.model.intervals import Figure
from gpukern.bench.model.results import Results
from gpukern.bench.model.row import BROKEN, RIGHT, WRONG, Row
from gpukern.text.units import bandwidth, seconds, throughput

_SIMULATED = "gpukern's times are a CPU's simulated figures, never a GPU's"


_HIDDEN = "gpukern ran on the CPU simulator: right results, and no times, which would mean nothing"


_WHO = ("size", "contender", "variant", "max error", "ulps")


@dataclass(frozen=True)
class Cell:
    """Text, and whether it is good, bad or beside the point."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table as data: blocks of lines, one block a size."""

    title: str
    head: tuple[str, ...]
    blocks: tuple[tuple[tuple[Cell, ...], ...], ...]
    left: int = 3


def sheets(comparison: Results) -> Iterator[Sheet]:
    """All tables."""
    shown = [row for row in comparison.rows if _has_line(row)]
    for (op, dtype), rows in groupby(shown, key=lambda row: (row.op, row.dtype)):
        group = list(rows)
        timed = any(row.on_device for row in group)
        if comparison.mode == "device" or (timed and comparison.mode == "both"):
            yield _sheet(comparison, f"{op} {dtype}", group, _DEVICE)
        if comparison.mode != "device":
            yield _sheet(comparison, f"{op} {dtype}", group, _END)


@dataclass(frozen=True)
class _View:
    """What is measured: on the device alone, or from end to end."""

    name: str
    head: tuple[str, ...]
    protocol: str
    time: Callable[[Row], Figure | None]
    line: Callable[[str, Row, float | None, tuple[str, ...]], tuple[Cell, ...]]


def _sheet(comparison: Results, what: str, rows: list[Row], view: _View) -> Sheet:
    extra = _protocol_names(rows, view.protocol)
    blocks = []
    for size, group in groupby(rows, key=lambda row: row.size):
        block = list(group)
        best = _least(view.time(row) for row in block if not row.simulated)
        blocks.append(tuple(view.line(size if i == 0 else "", row, best, extra)
                            for i, row in enumerate(block)))  # fmt: skip
    title = _title(comparison, f"{what}, {view.name}")
    return _compact(Sheet(title, (*_WHO, *view.head, *extra), tuple(blocks)))


def _compact(sheet: Sheet) -> Sheet:
    """Without the columns that are empty from top to bottom."""
    lines = [line for block in sheet.blocks for line in block]
    kept = [
        i for i in range(len(sheet.head)) if i < 5 or any(line[i].text not in "-" for line in lines)
    ]
    blocks = tuple(tuple(tuple(line[i] for i in kept) for line in b) for b in sheet.blocks)
    return Sheet(sheet.title, tuple(sheet.head[i] for i in kept), blocks, sheet.left)


def _has_line(row: Row) -> bool:
    """Whether a row stands in a table; a peer that is not there at all is a remark alone."""
    return row.status in (RIGHT, WRONG) or (row.status == BROKEN and bool(row.variant))


def _title(comparison: Results, what: str) -> str:
    where = "the simulator" if comparison.simulated else str(comparison.machine["device"])
    title = f"{what} on {where}, seed {comparison.seed}"
    if comparison.simulated:
        shown = any(row.simulated and row.on_device for row in comparison.rows)
        title += f"\n{_SIMULATED if shown else _HIDDEN}"
    return title


def _device_line(
    size: str, row: Row, best: float | None, extra: tuple[str, ...]
) -> tuple[Cell, ...]:
    return (
        *_who(size, row),
        _time(row.on_device, best),
        _spread(row.on_device),
        _time(row.warm),
        _time(row.overhead),
        Cell(_rate(row)),
        Cell("" if row.limit is None else f"{row.limit:.0%}"),
        _ratio(row.device_ratio, row.on_device),
        *_protocols(row, extra),
    )


def _end_line(size: str, row: Row, best: float | None, extra: tuple[str, ...]) -> tuple[Cell, ...]:
    phases = row.phases()
    parts = [_plain(phases.get(name)) for name in ("host to device", "compute", "device to host")]
    return (
        *_who(size, row),
        _time(row.end_to_end, best),
        _spread(row.end_to_end),
        _plain(row.first_call),
        *parts,
        _ratio(row.end_to_end_ratio, row.end_to_end),
        *_protocols(row, extra),
    )


_DEVICE = _View(
    "device",
    ("on device", "±", "warm", "overhead", "rate", "limit", "ratio"),
    "leetcuda",
    lambda row: row.on_device,
    _device_line,
)
_END = _View(
    "end to end",
    ("end to end", "±", "first call", "in", "compute", "out", "ratio"),
    "notes",
    lambda row: row.end_to_end,
    _end_line,
)


def _who(size: str, row: Row) -> tuple[Cell, ...]:
    return Cell(size), Cell(row.contender), Cell(row.variant), _error(row), _ulps(row)


def _least(figures: Iterable[Figure | None]) -> float | None:
    return min((one.value for one in figures if one is not None), default=None)


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


def _time(figure: Figure | None, best: float | None = None) -> Cell:
    if figure is None:
        return Cell("-", "dim")
    return Cell(seconds(figure.value), "bold green" if figure.value == best else "")


def _plain(value: float | None) -> Cell:
    return Cell("-", "dim") if value is None else Cell(seconds(value))


def _spread(figure: Figure | None) -> Cell:
    if figure is None or figure.spread is None:
        return Cell("")
    return Cell(f"{100 * figure.spread:.2g} %", "" if figure.spread < 0.05 else "yellow")


def _rate(row: Row) -> str:
    if row.on_device is None or row.simulated:
        return ""
    if row.operations:
        return throughput(row.operations, row.on_device.value)
    return bandwidth(row.bytes_moved, row.on_device.value)


def _ratio(ratio: Figure | None, time: Figure | None) -> Cell:
    if ratio is None:
        return Cell("base" if time else "", "dim")
    if ratio.rounds > 1 and ratio.same:
        return Cell("same", "dim")
    interval = f" {_short(ratio.low)}..{_short(ratio.high)}" if ratio.rounds > 1 else ""
    return Cell(f"{_short(ratio.value)}x{interval}")


def _short(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _protocol_names(rows: list[Row], name: str) -> tuple[str, ...]:
    return (name,) if any(name in row.protocols for row in rows) else ()


def _protocols(row: Row, names: tuple[str, ...]) -> Iterator[Cell]:
    return (_plain(row.protocols.get(name)) for name in names)
