"""What to know beside the tables: who is missing or wrong, and what the figures mean."""

from collections.abc import Iterator

from gpukern.bench.model.intervals import CONFIDENCE
from gpukern.bench.model.results import Results
from gpukern.bench.model.row import ABSENT, BROKEN, RIGHT, WRONG, Row
from gpukern.bench.showing.sheets import Cell
from gpukern.machine import conditions

_DEVICE = (
    "on the device: operands there already, nothing in the L2 cache; warm: with what the call "
    "before left in it; overhead: the host's time to start a call; limit: share of the measured "
    "copy bandwidth, or of the peak."
)
_END = (
    "end to end: NumPy arrays in, a NumPy array out; first call: with compilation and start-up; "
    "in, compute, out: the library's own copies and its kernel, each alone."
)


def remarks(comparison: Results) -> Iterator[Cell]:
    """A line for each thing to know, said once however many tables it concerns."""
    styles = {WRONG: "bold red", ABSENT: "dim"}
    yield from (Cell(line, "red") for line in _broken(comparison.rows))
    for status, style in styles.items():
        concerned = [row for row in comparison.rows if row.status == status]
        for line in dict.fromkeys(_remark(row) for row in concerned):
            yield Cell(line, style)
    yield from (Cell(line, "yellow") for line in _flagged(comparison.rows))
    for line in conditions.disturbances(comparison.machine):
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


def _caption(comparison: Results) -> str:
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
