"""A comparison as tables: one for each operation and dtype, a block for each size."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from gpukern.comparison import ABSENT, BROKEN, RIGHT, WRONG, Comparison, Row
from gpukern.units import bandwidth, seconds, throughput

if TYPE_CHECKING:
    from rich.console import RenderableType

_CAPTION = (
    "maximum error: against float64. end to end: NumPy arrays in, a NumPy array out, median. "
    "on the device: operands there already, CUDA events round batches of calls on the same (warm) "
    "buffers, median."
)
_SIMULATED = "gpukern's times are a CPU's simulated figures, never a GPU's"


def renderables(comparison: Comparison) -> Iterator["RenderableType"]:
    """Tables, then remarks on what is missing, broken or wrong."""
    shown = [row for row in comparison.rows if _has_line(row)]
    for (op, dtype), rows in groupby(shown, key=lambda row: (row.op, row.dtype)):
        yield _table(comparison, op, dtype, list(rows))
    yield from _remarks(comparison.rows)
    if any(row.status == RIGHT for row in shown):
        yield Text(_caption(comparison), style="dim")


def _has_line(row: Row) -> bool:
    """Whether a row stands in a table; a peer that is not there at all is a remark alone."""
    return row.status in (RIGHT, WRONG) or (row.status == BROKEN and bool(row.variant))


def _caption(comparison: Comparison) -> str:
    if not comparison.simulated:
        return _CAPTION
    return _CAPTION.replace("CUDA events", "the wall clock")


def _table(comparison: Comparison, op: str, dtype: str, rows: list[Row]) -> Table:
    where = "the simulator" if comparison.simulated else str(comparison.machine["device"])
    title = f"{op} {dtype} on {where}, seed {comparison.seed}"
    if comparison.simulated:
        title += f"\n{_SIMULATED}"
    table = Table(title=escape(title), title_justify="left", title_style="bold")
    table.add_column("size", no_wrap=True)
    table.add_column("contender", no_wrap=True)
    table.add_column("variant", no_wrap=True)
    for name in ("max error", "end to end", "on the device"):
        table.add_column(name, justify="right", no_wrap=True)
    if not comparison.simulated:
        table.add_column("rate", justify="right", no_wrap=True)
    for size, block in groupby(rows, key=lambda row: row.size):
        _add_block(table, size, list(block), comparison.simulated)
    return table


def _add_block(table: Table, size: str, rows: list[Row], simulated: bool) -> None:
    best_whole = None if simulated else _least(row.end_to_end for row in rows)
    best_device = None if simulated else _least(row.on_device for row in rows)
    for index, row in enumerate(rows):
        cells: list[str | Text] = [
            size if index == 0 else "",
            row.contender,
            escape(row.variant),
            _error(row),
            _time(row.end_to_end, best_whole),
            _time(row.on_device, best_device),
        ]
        if not simulated:
            cells.append(_rate(row))
        table.add_row(*cells, end_section=index == len(rows) - 1)


def _least(times: Iterable[float | None]) -> float | None:
    return min((time for time in times if time is not None), default=None)


def _error(row: Row) -> Text:
    if row.status == WRONG:
        return Text("WRONG", style="bold red")
    if row.status == BROKEN:
        return Text("broken", style="red")
    return Text("exact" if not row.error else f"{row.error:.2g}")


def _time(time: float | None, best: float | None) -> Text:
    if time is None:
        return Text("-", style="dim")
    return Text(seconds(time), style="bold green" if time == best else "")


def _rate(row: Row) -> str:
    if row.on_device is None:
        return ""
    if row.operations:
        return throughput(row.operations, row.on_device)
    return bandwidth(row.bytes_moved, row.on_device)


def _remarks(rows: list[Row]) -> Iterator[Text]:
    """A line for each thing to know, said once however many tables it concerns."""
    styles = {WRONG: "bold red", BROKEN: "red", ABSENT: "dim"}
    for status, style in styles.items():
        concerned = [row for row in rows if row.status == status]
        for line in dict.fromkeys(_remark(row) for row in concerned):
            yield Text(line, style=style)


def _remark(row: Row) -> str:
    if row.status == ABSENT:
        named = f"{row.contender} {row.op} {row.variant}" if row.variant else row.contender
        return f"{named}: {row.detail}"
    case = f" {row.variant}, {row.op} {row.size} {row.dtype}" if row.variant else ""
    return f"{row.contender}{case}: {row.status}: {row.detail}"
