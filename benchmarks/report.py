"""What the scripts beside this one report: what was asked, what was measured, if that is met."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpukern.bench.model.intervals import Figure
from gpukern.text.render import as_text


@dataclass(frozen=True)
class Line:
    """What was asked, what was measured, and whether that is met: yes, same, no, or why not."""

    section: str
    work: str
    bar: str
    measured: str
    met: str


def met(found: Figure | None, bar: float) -> str:
    """ "same" where the median is below the bar, but its interval reaches it."""
    if found is None:
        return "no peer"
    if found.value >= bar:
        return "yes"
    return "same" if found.high >= bar else "no"


def shown(found: Figure | None) -> str:
    return f"{found.value:.3f}x {found.low:.3f}..{found.high:.3f}" if found else "-"


def as_markdown(lines: Sequence[Line], notes: Sequence[str], tables: Sequence[str]) -> str:
    head = ["| work | bar | measured | met? |", "| :-- | :-- | :-- | :-- |"]
    rows = [f"| {x.work} | {x.bar} | {x.measured} | {x.met} |" for x in lines]
    return "\n".join([*head, *rows, "", *(f"- {note}" for note in notes), "", *tables]) + "\n"


def as_table(lines: Sequence[Line]) -> str:
    from rich.table import Table

    table = Table("work", "bar", "measured", "met?", box=None, pad_edge=False)
    for line in lines:
        table.add_row(line.work, line.bar, line.measured, line.met)
    return as_text(table)


def parsed(
    doc: str | None, sections: Sequence[str], arguments: Sequence[str]
) -> argparse.Namespace:
    """The command line: two files to write, and which sections."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    for name in ("JSON", "MARKDOWN"):
        parser.add_argument("paths", action="append", metavar=name)
    parser.add_argument("--only", default=",".join(sections), help=", ".join(sections))
    parser.add_argument("--smoke", action="store_true", help="small sizes")
    given = parser.parse_args(arguments)
    given.only = given.only.split(",")
    if not set(given.only) <= set(sections):
        parser.error(f"--only: there are {', '.join(sections)}")
    return given


def walked(
    sections: Mapping[str, Callable[[], Iterator[Line]]],
    wanted: Sequence[str],
    write: Callable[[list[Line], dict[str, float]], None],
) -> list[Line]:
    """The lines of the sections; what there is so far is written after each."""
    lines: list[Line] = []
    spent: dict[str, float] = {}
    for name in wanted:
        begin = time.perf_counter()
        lines += sections[name]()
        spent[name] = time.perf_counter() - begin
        print(f"{name}: {spent[name]:.1f} s", file=sys.stderr, flush=True)
        write(lines, spent)
    return lines
