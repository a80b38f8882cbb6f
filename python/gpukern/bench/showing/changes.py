"""What has changed between two runs, as a table."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from gpukern.bench.model.changes import Change, agreement
from gpukern.bench.model.results import Results
from gpukern.text.units import seconds

_VERDICTS = ("slower", "faster", "same")


def report(before: Results, after: Results, found: list[Change]) -> Iterator[Table | Text]:
    """The changes as a table, and how many figures are the same."""
    moved = [change for change in found if change.verdict != "same"]
    title = f"against the run of {before.machine.get('date', 'an unknown date')}"
    if before.machine.get("device") != after.machine.get("device"):
        title += f" on another device, {before.machine.get('device')}"
    if moved:
        yield _table(title, moved)
    counts = {name: sum(one.verdict == name for one in found) for name in _VERDICTS}
    yield Text(f"{title}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    gone = {row.key for row in before.rows} - {row.key for row in after.rows}
    if gone:
        yield Text(f"{len(gone)} rows of that run are not in this one", style="dim")
    yield Text(str(agreement(before, after)).splitlines()[-1])


def _table(title: str, moved: list[Change]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in ("case", "contender", "figure"):
        table.add_column(name, overflow="fold")
    for name in ("before", "now", "change"):
        table.add_column(name, justify="right", overflow="fold")
    for one in sorted(moved, key=lambda change: -change.factor):
        style = "red" if one.verdict == "slower" else "green"
        table.add_row(
            f"{one.row.op} {one.row.size} {one.row.dtype}",
            one.row.label,
            one.name.replace("_", " "),
            seconds(one.before.value),
            seconds(one.after.value),
            Text(f"{100 * (one.factor - 1):+.1f} % {one.verdict}", style=style),
        )
    return table
