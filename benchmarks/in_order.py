"""Works of which one length goes through a list, on the device, beside PyTorch.

    python benchmarks/in_order.py results.json results.md --bytes 200e6

Chance seldom draws a power of two, its neighbours, and an array that is cut or taken in steps, all
at once (`every_shape.py`); here they come one after another: rows of so many columns, whole,
without their last element and every second one, their columns, matrices that are turned, alone and
in a stack, and a row or a column that is added. Each work is checked. The sizes tell which cache
holds an array: 3e6, 16e6 and 200e6 bytes differ the most. On the simulator times mean nothing and
are not shown.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import drawn
import shapes
from every_shape import LARGE, SHARE, WORST, Outcome, Run
from report import Line
from shapes import Call, Draw

from gpukern.machine.conditions import describe_machine

PEERS = ("gpukern", "PyTorch")
POWERS = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
ROUND = (2, 3, 5, 6, 7, 10, 12, 20, 24, 40, 48, 50, 80, 96, 100, 160, 200, 300, 400, 700)
LONG = (1000, 1500, 2000, 3000)
LENGTHS = sorted({*ROUND, *LONG, *(n + near for n in POWERS for near in (-1, 0, 1))})
SHORT_LENGTHS = [n for n in LENGTHS if n <= 300]
MIDDLES = (49, 196, 1000, 3136)  # rows of each matrix of a stack
DTYPES = ("uint8", "float16", "float32", "float64", "int32")
LISTED = 40


def _cut(kind: str, dtype: str, held: tuple[int, ...], cut: slice, *axes: int) -> Draw:
    """Of rows, of which that part is taken."""
    return replace(shapes.whole(kind, dtype, held, axes), cut=(slice(None), cut))


def _reductions(dtype: str, columns: int, rows: int) -> Iterator[tuple[str, Draw]]:
    for kind in ("sum", "max", "argmax"):
        yield f"{kind} of rows", shapes.whole(kind, dtype, (rows, columns), (1,))
        yield f"{kind} of columns", shapes.whole(kind, dtype, (rows, columns), (0,))
        cut = slice(0, columns)
        yield f"{kind} of rows that are cut", _cut(kind, dtype, (rows, columns + 1), cut, 1)
        second = slice(None, None, 2)
        yield f"{kind} of every second", _cut(kind, dtype, (rows, 2 * columns), second, 1)


def _others(dtype: str, columns: int, rows: int) -> Iterator[tuple[str, Draw]]:
    yield "a matrix that is turned", shapes.whole("transpose", dtype, (rows, columns), (1, 0))
    yield "a flat one that is turned", shapes.whole("transpose", dtype, (columns, rows), (1, 0))
    yield "a row that is added", shapes.whole("add", dtype, (rows, columns), (0,))
    yield "a column that is added", shapes.whole("add", dtype, (rows, columns), (1,))
    yield "rows that are cut", _cut("copy", dtype, (rows, columns + 1), slice(0, columns))
    for middle in MIDDLES if columns in SHORT_LENGTHS else ():
        stack = max(1, rows // middle)
        for held in ((stack, middle, columns), (stack, columns, middle)):
            yield "a stack that is turned", shapes.whole("transpose", dtype, held, (0, 2, 1))


def works(most: float, lengths: Sequence[int]) -> Iterator[tuple[str, Draw]]:
    """All of about so many bytes, and what each is called."""
    for dtype in DTYPES:
        for columns in lengths:
            rows = max(1, int(most) // shapes.itemsize(dtype) // columns) | 1
            for named in (_reductions, _others):
                yield from named(dtype, columns, rows)


class Beside(Run):
    """Works beside PyTorch alone, of which one sitting is enough: others tell of the same."""

    def timed(self, calls: Mapping[str, Call]) -> dict[str, float]:
        return super().timed({name: call for name, call in calls.items() if name in PEERS})


def judged(found: Sequence[tuple[str, Outcome]], copied: float) -> Iterator[Line]:
    """What each kind of works has below the bars of works that are drawn."""
    yield drawn.right_results([(one.draw, one.wrong) for _, one in found])
    for kind in dict.fromkeys(name for name, _ in found) if copied else ():
        compared = [one for name, one in found if name == kind and one.peer]
        slower = [one for one in compared if one.speed < WORST]
        large = [one for one in compared if one.draw.bytes_moved > LARGE]
        below = [one for one in large if one.rate < SHARE * copied]
        asked = f">= {WORST:.2f}x PyTorch, {SHARE:.0%} of the copy over 64 MB"
        text = f"{len(slower)} and {len(below)} of {len(compared)} below"
        if slower or below:
            text += f"; {min(slower or below, key=lambda one: (one.speed, one.rate))}"
        yield Line(kind, kind, asked, text, "no" if slower or below else "yes")


def options() -> argparse.ArgumentParser:
    parser = drawn.options(__doc__)
    parser.add_argument("--bytes", type=float, default=200e6, help="of an array, about")
    return parser


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    machine = describe_machine()
    run = Beside(argparse.Namespace(**vars(given), count=0, compiled=0, seconds=0.0))
    run.sittings = 1
    small = given.smoke or run.simulated
    most, lengths = (1 << 12, LENGTHS[::12]) if small else (given.bytes, LENGTHS)
    found = [(name, run.hold(one, False)) for name, one in works(most, lengths)]
    copied = 0.0 if run.simulated else run.copy_rate()
    worst = sorted((one for _, one in found if one.peer), key=lambda one: one.speed)
    stored = {"works": [{"kind": name, **one.to_dict()} for name, one in found]}
    remark = f"medians of {run.rounds} rounds of graphs, arrays of about {most:,.0f} bytes"
    listed = [f"- {one}" for one in worst[:LISTED]]
    return drawn.tell(given, machine, stored, list(judged(found, copied)), remark, listed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
