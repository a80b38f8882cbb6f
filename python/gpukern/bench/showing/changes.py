"""What has changed between two runs, as a table."""

from collections.abc import Iterator

from rich.text import Text

from gpukern.bench.model.changes import Change, agreement
from gpukern.bench.model.results import Results
from gpukern.bench.showing.fitting import Fitted
from gpukern.bench.showing.sheets import Cell, Column, Sheet
from gpukern.text.units import seconds

_COLUMNS = (
    *(Column(name, 0, left=True) for name in ("case", "contender", "figure")),
    *(Column("before", 2), Column("now", 1), Column("change", 0)),
)
_VERDICTS = ("slower", "faster", "same")
_BY_RATIO = "change: of ratios to the base of each run, which leave out the pace of the machine"


def report(before: Results, after: Results, found: list[Change]) -> Iterator[Fitted | Text]:
    """The changes as a table, and how many figures are the same."""
    moved = [change for change in found if change.verdict != "same"]
    title = f"against the run of {before.machine.get('date', 'an unknown date')}"
    if before.machine.get("device") != after.machine.get("device"):
        title += f" on another device, {before.machine.get('device')}"
    if moved:
        yield Fitted(_sheet(title, moved))
    if any(one.inverse for one in moved):
        yield Text(_BY_RATIO, style="dim")
    counts = {name: sum(one.verdict == name for one in found) for name in _VERDICTS}
    yield Text(f"{title}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    gone = {row.key for row in before.rows} - {row.key for row in after.rows}
    if gone:
        yield Text(f"{len(gone)} rows of that run are not in this one", style="dim")
    yield Text(str(agreement(before, after)).splitlines()[-1])


def _sheet(title: str, moved: list[Change]) -> Sheet:
    lines = []
    for one in sorted(moved, key=lambda change: -change.factor):
        texts = (
            f"{one.row.op} {one.row.size} {one.row.dtype}",
            one.row.label,
            one.name.replace("_", " "),
            seconds(one.before.value),
            seconds(one.after.value),
        )
        style = "red" if one.verdict == "slower" else "green"
        change = Cell(f"{100 * (one.factor - 1):+.1f} % {one.verdict}", style)
        lines.append((*map(Cell, texts), change))
    return Sheet(title, _COLUMNS, (tuple(lines),))
