"""What to know beside the tables: who is missing or wrong, and what the figures mean."""

from collections.abc import Iterator

from gpukern.bench.model.intervals import CONFIDENCE
from gpukern.bench.model.results import Results
from gpukern.bench.model.row import ABSENT, BROKEN, FIGURES, RIGHT, Row
from gpukern.bench.showing.sheets import Cell
from gpukern.machine import conditions

_DEVICE = (
    "on the device: operands there already, nothing in the L2 cache; warm: with what the call "
    "before left in it; overhead: the host's time to start a call; limit: share of the measured "
    "copy bandwidth, or of the peak."
)
_END = "end to end: NumPy arrays in, a NumPy array out"
_FIRST = "first call: in a process of its own, with compilation and start-up"
_PHASES = (
    "in, compute, out: the phases of a call that is composed of the library's own functions, each "
    "of which waits for the one before"
)
# Of a run that timed transfers alone.
_COPIES = "in, out: the library's own copies, each alone"


def remarks(comparison: Results) -> Iterator[Cell]:
    """A line for each thing to know, said once however many tables it concerns."""
    if comparison.interrupted:
        yield Cell("interrupted: this is what was done until then", "bold yellow")
    yield from faults(comparison)
    yield from (Cell(line, "dim") for line in _absent(comparison.rows))
    yield from (Cell(line, "yellow") for line in _flagged(comparison.rows))
    for line in conditions.disturbances(comparison.machine):
        yield Cell(line, "yellow")
    if any(row.status == RIGHT for row in comparison.rows):
        yield Cell(_caption(comparison), "dim")


def faults(comparison: Results) -> Iterator[Cell]:
    """A line for each contender that fails or is wrong."""
    yield from (Cell(line, "red") for line in _broken(comparison.rows))
    for line in dict.fromkeys(_wrong(row) for row in comparison.wrong):
        yield Cell(line, "bold red")


def _wrong(row: Row) -> str:
    case = f" {row.variant}, {row.op} {row.size} {row.dtype}"
    if not row.variant:
        case = f", {row.op} {row.size} {row.dtype}"
    return f"{row.contender}{case}: {row.status}: {row.detail}"


def _absent(rows: list[Row]) -> Iterator[str]:
    """One line for each reason, with those that it keeps away and which of their variants."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        if row.status == ABSENT:
            who = f"{row.contender} {row.op}" if row.variant else row.contender
            variants = found.setdefault(row.detail, {}).setdefault(who, [])
            variants += [row.variant] if row.variant not in ("", *variants) else []
    for detail, names in found.items():
        named = (f"{who} {', '.join(variants)}".rstrip() for who, variants in names.items())
        yield f"{', '.join(named)}: {detail}"


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
    if any(row.bound_share is not None for row in comparison.rows):
        parts.append("of bound: the error as a share of its bound;")
    if comparison.mode != "end-to-end":
        parts.append(_DEVICE)
    if comparison.mode != "device":
        parts.append(f"{'; '.join([_END, *_of_calls(comparison.rows)])}.")
    parts.append(_intervals(comparison))
    used = dict.fromkeys(row.contender for row in comparison.rows if row.status == RIGHT)
    versions = {row.contender: row.version for row in comparison.rows if row.version}
    parts.append(", ".join(f"{name} {versions[name]}" for name in used if name in versions) + ".")
    return " ".join(parts)


def _of_calls(rows: list[Row]) -> Iterator[str]:
    if any(row.first_call is not None for row in rows):
        yield _FIRST
    if any(row.phases() for row in rows):
        yield _PHASES
    elif any(row.split for row in rows):
        yield _COPIES


def _intervals(comparison: Results) -> str:
    """What the intervals are: of a stated confidence only where there are rounds enough for it."""
    rows = [row for row in comparison.rows if row.status == RIGHT]
    figures = [one for row in rows for name in FIGURES if (one := getattr(row, name)) is not None]
    least = min((one.rounds for one in figures), default=0)
    sound = bool(figures) and all(one.sound for one in figures)
    what = f"{CONFIDENCE:.0%} intervals" if sound else f"of {least} rounds, too few to be sure of"
    return (
        f"medians; ± and from..to: {what}; ratio: times as fast as base; same: within "
        f"{100 * comparison.margin:.2g} %; ~: the interval does not decide; bold: faster than all "
        "others by its interval."
    )
