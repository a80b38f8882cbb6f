"""What the scripts on arrays of the device share: their command line, what is asked of each kind
of works, and how they tell what came."""

import argparse
import json
import secrets
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from report import Line, as_markdown, as_table
from shapes import Draw, group_of

# As geometric means over the works of a kind, against the fastest peer of each.
BARS = {"reductions": 1.10, "transposes": 1.50, "elementwise": 1.00}
# Seconds: what takes less is mostly its launch.
SHORT = 5e-6


def options(doc: str | None) -> argparse.ArgumentParser:
    """The command line: two files to write, and the seed of all that is left to chance."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("paths", nargs=2, type=Path, metavar="FILE", help="JSON, markdown")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 31))
    parser.add_argument("--smoke", action="store_true", help="small arrays")
    return parser


def right_results(works: Sequence[tuple[Draw, str]]) -> Line:
    """Of works and what is wrong with each, or nothing."""
    wrong = [f"{draw} {fault}" for draw, fault in works if fault]
    text = f"{len(works)} works" + ("; " + "; ".join(wrong) if wrong else "")
    return Line("all", "right results", "each", text, "WRONG" if wrong else "right")


def means(group: str, work: str, speeds: Sequence[float], bar: float) -> Iterator[Line]:
    """How many times as fast as the fastest peers works of a group are, if there are any."""
    if speeds:
        mean = statistics.geometric_mean(speeds)
        asked = f">= {bar:.2f}x the fastest peer, geometric mean"
        text = f"{mean:.3f}x of {len(speeds)}"
        yield Line(group, work, asked, text, "yes" if mean >= bar else "no")


def is_of(draw: Draw, group: str) -> bool:
    return group_of(draw.kind) == group


def tell(
    given: argparse.Namespace,
    machine: Mapping[str, Any],
    found: Mapping[str, Any],
    lines: Sequence[Line],
    remark: str,
    listed: Sequence[str],
) -> int:
    """Write what was found and print it; the exit status."""
    remarks = [f"{machine['device']}, driver {machine['driver']}, seed {given.seed}", remark]
    stored = {"machine": machine, "seed": given.seed, **found}
    given.paths[0].write_text(json.dumps(stored, indent=1) + "\n")
    given.paths[1].write_text(as_markdown(lines, remarks, listed))
    print("\n".join(remarks))
    print(as_table(lines))
    print("\n".join(listed))
    return 1 if any(line.met == "WRONG" for line in lines) else 0
