"""Arrays in the order in which programs have them, beside PyTorch and CuPy, on the device.

    python benchmarks/layouts.py results.json results.md

Images whose channels are nearest in memory and which are taken as images of channels, matrices that
have been transposed, the heads of attention, parts of pictures, tables whose rows have any length,
and such as another dtype: what is drawn by chance (`every_shape.py`) is seldom one of these. Sums
and means of floats have the bits of an array that lies in order, so that an axis that is far apart
in memory is walked along all the same. Each work is checked and timed as drawn ones are. On the
simulator times mean nothing and are not shown.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

import drawn
import shapes
from every_shape import Outcome, Run, shares, the_worst
from report import Line
from shapes import Draw

from gpukern.machine.conditions import describe_machine

BAR = 1.00
FLOATS = ("float32", "float16")
NARROW = ("uint8", "float16", "float32")
# Batch, height, width and channels, in memory.
IMAGES = (
    (32, 56, 56, 256),
    (64, 112, 112, 64),
    (128, 14, 14, 1024),
    (256, 7, 7, 2048),
    (16, 224, 224, 3),
)
MATRICES = (
    (4096, 4096),
    (1000, 100_000),
    (1_000_000, 64),
    (64, 1_000_000),
    (10_000, 1000),
    (1_000_000, 10),
)
# Batch, places, heads and what each has.
HEADS = ((8, 2048, 16, 64), (32, 512, 12, 64))
# Pictures, height, width and channels, and what is cut out of them.
PICTURES = (40, 720, 1280, 3)
PARTS = (
    (slice(None), slice(100, 612), slice(101, 1101), slice(None)),
    (slice(None), slice(None), slice(1, None), slice(None)),
    (slice(None), slice(None), slice(None, None, 2), slice(None)),
    (slice(None), slice(None), slice(None), slice(0, 2)),
)
# Rows and columns of a table, of as many elements as take so many bytes.
TABLES = (3, 10, 100, 257, 1000)
TABLE_BYTES = 240_000_000
CONVERTED = (
    ("to float32", "uint8"),
    ("to float16", "uint8"),
    ("to float16", "float32"),
    ("to float32", "float16"),
)
SMALLER = 32  # times shorter are axes of a small run


def _work(kind: str, dtype: str, held: Sequence[int], order: Sequence[int], *axes: int) -> Draw:
    return replace(shapes.whole(kind, dtype, held, axes), order=tuple(order))


def _part(
    kind: str, dtype: str, held: Sequence[int], cut: Sequence[slice], axes: Sequence[int] = ()
) -> Draw:
    """Of a part; all of an axis that is too short to be cut."""
    cuts = [one if range(n)[one] else slice(None) for n, one in zip(held, cut, strict=True)]
    return replace(shapes.whole(kind, dtype, held, axes), cut=tuple(cuts))


def _table(columns: int, dtype: str, small: bool) -> list[int]:
    return [
        max(1, TABLE_BYTES // shapes.itemsize(dtype) // columns // (SMALLER**3 if small else 1)),
        columns,
    ]


def groups(small: bool) -> Iterator[tuple[str, list[Draw]]]:
    """The works of each kind of array."""

    def sized(all_held: Sequence[Sequence[int]]) -> list[list[int]]:
        return [[max(1, n // SMALLER) for n in held] if small else list(held) for held in all_held]

    images, heads = (0, 3, 1, 2), (0, 2, 1, 3)
    yield (
        "channels last",
        [
            _work(kind, dtype, held, images, *axes)
            for held, dtype in itertools.product(sized(IMAGES), FLOATS)
            for kind, axes in (("mean", (2, 3)), ("mean", (0, 2, 3)), ("max", (2, 3)), ("copy", ()))
        ],
    )
    yield (
        "transposed",
        [
            _work("sum", dtype, held, (1, 0), *axes)
            for held, dtype in itertools.product(sized(MATRICES), FLOATS)
            for axes in ((0,), (1,))
        ],
    )
    yield (
        "transposed, all of it",
        [
            _work("sum", dtype, held, (1, 0), 0, 1)
            for held, dtype in itertools.product(sized(MATRICES), FLOATS)
        ],
    )
    yield (
        "heads of attention",
        [
            _work(kind, dtype, held, heads, *axes)
            for held, dtype in itertools.product(sized(HEADS), FLOATS)
            for kind, axes in (("sum", (3,)), ("max", (3,)), ("sum", (2,)), ("copy", ()))
        ],
    )
    yield (
        "parts of pictures",
        [
            _part("copy", dtype, held, cut)
            for held, dtype in itertools.product(sized([PICTURES]), NARROW)
            for cut in PARTS
        ],
    )
    tables = [(_table(n, dtype, small), dtype) for n, dtype in itertools.product(TABLES, NARROW)]
    yield (
        "rows and columns of tables",
        [
            shapes.whole(kind, dtype, held, (axis,))
            for held, dtype in tables
            for kind, axis in itertools.product(("sum", "max", "argmax"), (0, 1))
        ],
    )
    columns, second = (slice(None), slice(3, None)), (slice(None, None, 2), slice(None))
    yield (
        "parts of tables",
        [
            _part(kind, dtype, held, cut, axes)
            for held, dtype in tables
            if held[1] > TABLES[0]
            for kind, cut, axes in (
                ("mean" if dtype in FLOATS else "sum", columns, (0, 1)),
                ("max", columns, (0, 1)),
                ("sum", columns, (1,)),
                ("argmax", second, (1,)),
            )
        ],
    )
    yield (
        "rows and columns that are added to tables",
        [shapes.whole("add", dtype, held, (axis,)) for held, dtype in tables for axis in (0, 1)],
    )
    yield (
        "transposed, and added to others",
        [
            _work("add", dtype, held, (1, 0))
            for held, dtype in itertools.product(sized(MATRICES), NARROW)
        ]
        + [
            _work("add", dtype, held, images, 0, 2, 3)
            for held, dtype in itertools.product(sized(IMAGES), NARROW)
        ],
    )
    pictures, matrix = sized([PICTURES])[0], sized(MATRICES)[0]
    orders = ((pictures, (0, 1, 2, 3)), (pictures, images), (matrix, (0, 1)), (matrix, (1, 0)))
    yield (
        "conversions",
        [_work(kind, dtype, *held) for held in orders for kind, dtype in CONVERTED],
    )


def judged(found: Sequence[tuple[str, list[Outcome]]], simulated: bool) -> Iterator[Line]:
    """Each group beside the fastest of the others: on the mean, and the worst of it."""
    works = [one for _, outcomes in found for one in outcomes]
    yield drawn.right_results([(one.draw, one.wrong) for one in works])
    for name, outcomes in found if not simulated else ():
        compared = [one for one in outcomes if one.peer]
        yield from drawn.means(name, name, [one.speed for one in compared], BAR)
        yield from the_worst(name, f"{name}, the worst", compared)


def main(arguments: Sequence[str]) -> int:
    given = drawn.options(__doc__).parse_args(arguments)
    machine = describe_machine()
    run = Run(argparse.Namespace(**vars(given), count=0, compiled=0, seconds=0.0))
    small = given.smoke or run.simulated
    found = [(name, [run.hold(one, False) for one in works]) for name, works in groups(small)]
    run.outcomes = [one for _, outcomes in found for one in outcomes]
    lines = list(judged(found, run.simulated))
    lines += [] if run.simulated else shares(run)
    stored = {"works": [one.to_dict() for one in run.outcomes]}
    listed = [] if run.simulated else [f"- {one}" for one in run.outcomes]
    remark = f"the lesser of {run.sittings} medians of {run.rounds} rounds of graphs, all in turn"
    return drawn.tell(given, machine, stored, lines, remark, listed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
