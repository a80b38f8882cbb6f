"""A comparison as tables: for the terminal, as HTML for notebooks, and as Markdown.

Two tables for each operation and dtype, one of times on the device, one from end to end.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape as html_escape
from itertools import groupby
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from gpukern.intervals import CONFIDENCE, Figure
from gpukern.machine import conditions
from gpukern.rows import ABSENT, BROKEN, RIGHT, WRONG, Row
from gpukern.text.units import bandwidth, seconds, throughput

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gpukern.comparison import Comparison

_SIMULATED = "gpukern's times are a CPU's simulated figures, never a GPU's"
_HIDDEN = "gpukern ran on the CPU simulator: right results, and no times, which would mean nothing"
_DEVICE = (
    "on the device: operands there already, nothing in the L2 cache; warm: with what the call "
    "before left in it; overhead: the host's time to start a call; limit: share of the measured "
    "copy bandwidth, or of the peak."
)
_END = (
    "end to end: NumPy arrays in, a NumPy array out; first call: with compilation and start-up; "
    "in, compute, out: the library's own copies and its kernel, each alone."
)


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


def sheets(comparison: "Comparison") -> Iterator[Sheet]:
    """All tables."""
    shown = [row for row in comparison.rows if _has_line(row)]
    for (op, dtype), rows in groupby(shown, key=lambda row: (row.op, row.dtype)):
        group = list(rows)
        timed = any(row.on_device for row in group)
        if comparison.mode == "device" or (timed and comparison.mode == "both"):
            yield _compact(_device_sheet(comparison, f"{op} {dtype}", group))
        if comparison.mode != "device":
            yield _compact(_end_sheet(comparison, f"{op} {dtype}", group))


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


def _title(comparison: "Comparison", what: str) -> str:
    where = "the simulator" if comparison.simulated else str(comparison.machine["device"])
    title = f"{what} on {where}, seed {comparison.seed}"
    if comparison.simulated:
        shown = any(row.simulated and row.on_device for row in comparison.rows)
        title += f"\n{_SIMULATED if shown else _HIDDEN}"
    return title


def _device_sheet(comparison: "Comparison", what: str, rows: list[Row]) -> Sheet:
    head = (*_WHO, "on device", "±", "warm", "overhead", "rate", "limit", "ratio")
    extra = _protocol_names(rows, "leetcuda")
    blocks = []
    for size, group in groupby(rows, key=lambda row: row.size):
        block = list(group)
        best = _least(row.on_device for row in block if not row.simulated)
        blocks.append(tuple(_device_line(size if i == 0 else "", row, best, extra)
                            for i, row in enumerate(block)))  # fmt: skip
    return Sheet(_title(comparison, f"{what}, device"), head + extra, tuple(blocks))


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


def _end_sheet(comparison: "Comparison", what: str, rows: list[Row]) -> Sheet:
    head = (*_WHO, "end to end", "±", "first call", "in", "compute", "out", "ratio")
    extra = _protocol_names(rows, "notes")
    blocks = []
    for size, group in groupby(rows, key=lambda row: row.size):
        block = list(group)
        best = _least(row.end_to_end for row in block if not row.simulated)
        blocks.append(tuple(_end_line(size if i == 0 else "", row, best, extra)
                            for i, row in enumerate(block)))  # fmt: skip
    return Sheet(_title(comparison, f"{what}, end to end"), head + extra, tuple(blocks))


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


def remarks(comparison: "Comparison") -> Iterator[Cell]:
    """A line for each thing to know, said once however many tables it concerns."""
    styles = {WRONG: "bold red", ABSENT: "dim"}
    yield from (Cell(line, "red") for line in _broken(comparison.rows))
    for status, style in styles.items():
        concerned = [row for row in comparison.rows if row.status == status]
        for line in dict.fromkeys(_remark(row) for row in concerned):
            yield Cell(line, style)
    yield from (Cell(line, "yellow") for line in _flagged(comparison.rows))
    for line in conditions.remarks(comparison.machine.get("conditions", {})):
        yield Cell(line, "yellow")
    if any(row.status == RIGHT for row in comparison.rows):
        yield Cell(_caption(comparison), "dim")


def _remark(row: Row) -> str:
    if row.status == ABSENT:
        named = f"{row.contender} {row.op} {row.variant}" if row.variant else row.contender
        return f"{named}: {row.detail}"
    case = f" {row.variant}, {row.op} {row.size} {row.dtype}" if row.variant else ""
    if not row.variant and row.status == WRONG:
        case = f", {row.op} {row.size} {row.dtype}"
    return f"{row.contender}{case}: {row.status}: {row.detail}"


def _broken(rows: list[Row]) -> Iterator[str]:
    """One line for each way in which a contender fails, with the cases."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.status == BROKEN:
            cases = found.setdefault(f"{row.label}: {row.status}: {row.detail}", [])
            cases += [f"{row.op} {row.size} {row.dtype}"] if row.variant else []
    for line, cases in found.items():
        yield line + (f" ({_some(cases)})" if cases else "")


def _some(cases: list[str]) -> str:
    return ", ".join(cases[:2]) + (", ..." if len(cases) > 2 else "")


def _flagged(rows: list[Row]) -> Iterator[str]:
    """One line for each flag, with the rows that it concerns."""
    concerned: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        for flag in row.flags:
            mine = concerned.setdefault(flag, {}).setdefault(row.label, [])
            mine.append(f"{row.op} {row.size} {row.dtype}")
    for flag, labels in concerned.items():
        names = (f"{label} ({_some(cases)})" for label, cases in labels.items())
        yield f"{flag}: {'; '.join(names)}"


def _caption(comparison: "Comparison") -> str:
    parts = ["max error, ulps: the largest, against float64;"]
    if comparison.mode != "end-to-end":
        parts.append(_DEVICE)
    if comparison.mode != "device":
        parts.append(_END)
    parts.append(f"medians; ± and a..b: {CONFIDENCE:.0%} intervals; ratio: times as fast as base.")
    used = dict.fromkeys(row.contender for row in comparison.rows if row.status == RIGHT)
    versions = {row.contender: row.version for row in comparison.rows if row.version}
    parts.append(", ".join(f"{name} {versions[name]}" for name in used if name in versions) + ".")
    return " ".join(parts)


def renderables(comparison: "Comparison") -> Iterator["RenderableType"]:
    """Tables, then remarks on what is missing, broken or wrong."""
    for sheet in sheets(comparison):
        yield _table(sheet)
    for line in remarks(comparison):
        yield Text(line.text, style=line.style)


def _table(sheet: Sheet) -> Table:
    table = Table(title=escape(sheet.title), title_justify="left", title_style="bold", padding=0)
    for index, name in enumerate(sheet.head):
        left = index < sheet.left
        table.add_column(name, justify="left" if left else "right", overflow="fold")
    for block in sheet.blocks:
        for index, line in enumerate(block):
            cells = [Text(cell.text, style=cell.style) for cell in line]
            table.add_row(*cells, end_section=index == len(block) - 1)
    return table


def markdown(comparison: "Comparison") -> str:
    """Tables and remarks as Markdown."""
    parts = []
    for sheet in sheets(comparison):
        marks = [":--"] * sheet.left + ["--:"] * (len(sheet.head) - sheet.left)
        lines = [sheet.head, marks]
        for block in sheet.blocks:
            lines += [[_bold(cell) for cell in line] for line in block]
        rows = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        parts.append(f"**{sheet.title.splitlines()[0]}**\n\n{rows}")
    parts += [f"- {line.text}" for line in remarks(comparison)]
    return "\n\n".join(parts).replace("\n\n- ", "\n- ").replace("|\n- ", "|\n\n- ") + "\n"


def _bold(cell: Cell) -> str:
    text = cell.text.replace("|", "\\|")
    return f"**{text}**" if cell.style.startswith("bold") and text else text


_CSS = {
    "bold green": "color:#1a7f37;font-weight:bold",
    "bold red": "color:#cf222e;font-weight:bold",
    "red": "color:#cf222e",
    "yellow": "color:#9a6700",
    "dim": "opacity:.6",
}


def html(comparison: "Comparison") -> str:
    """Tables and remarks as HTML without any script."""
    parts = []
    for sheet in sheets(comparison):
        title = "<br>".join(html_escape(line) for line in sheet.title.splitlines())
        head = "".join(f"<th>{html_escape(name)}</th>" for name in sheet.head)
        body = "".join(
            f"<tr>{''.join(_html_cell(cell, i < sheet.left) for i, cell in enumerate(line))}</tr>"
            for block in sheet.blocks
            for line in block
        )
        parts.append(
            f"<table><caption style='text-align:left'><b>{title}</b></caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )
    for line in remarks(comparison):
        parts.append(f"<div style='{_CSS.get(line.style, '')}'>{html_escape(line.text)}</div>")
    return "\n".join(parts)


def _html_cell(cell: Cell, left: bool) -> str:
    align = "left" if left else "right"
    style = f"text-align:{align};white-space:nowrap;{_CSS.get(cell.style, '')}"
    return f"<td style='{style}'>{html_escape(cell.text)}</td>"
