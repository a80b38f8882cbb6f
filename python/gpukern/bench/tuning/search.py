"""The search: over a grid of sizes, from coarse to fine where variants are close.

A box is a range of M, N and K between borders of the grid. A variant is taken in it only if it was
faster than the default, by a margin, at every corner, and wherever else in the box was measured.
What was not measured counts as a no. A ragged box is measured at two products a corner, of odd
sizes and of sizes that are even and no more: libraries have kernels of their own for each.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gpukern.bench.tuning.judging import CLOSE, Judge, Verdict
from gpukern.bench.tuning.products import SIZES, Product, Way

# So much faster than the default has to be what takes its place.
MARGIN = 1.03

# Sides of boxes, in ranges: two octaves, one, and half of one.
_SIDES = (4, 2, 1)
# What is larger takes too long, and runs as fast as what is just smaller.
_MOST_PRODUCTS = 8192**3

Point = tuple[int, int, int]


@dataclass(frozen=True)
class Box:
    """From these places in ``SIZES``, so many ranges along M, N and K."""

    way: Way
    low: Point
    side: int

    @property
    def text(self) -> str:
        """As a line of the table has it."""
        ranges = (f"{SIZES[i]}-{SIZES[i + self.side]}" for i in self.low)
        return f"{self.way.text} {' '.join(ranges)}"

    def points(self, step: int) -> list[Point]:
        """Those of the grid in it, ``step`` ranges apart."""
        m, n, k = (range(i, i + self.side + 1, step) for i in self.low)
        return list(itertools.product(m, n, k))

    @property
    def corners(self) -> list[Point]:
        """All eight."""
        return self.points(self.side)

    def halves(self) -> "Iterator[Box]":
        """Eight boxes of half its side."""
        half = self.side // 2
        for more in itertools.product((0, half), repeat=3):
            m, n, k = (i + j for i, j in zip(self.low, more, strict=True))
            yield Box(self.way, (m, n, k), half)


@dataclass(frozen=True)
class Choice:
    """A variant that is faster in a box than the default there."""

    variant: str
    than: str


def ways(dtypes: Iterable[str]) -> list[Way]:
    """How products of these dtypes may lie."""
    lies = itertools.product(dtypes, (False, True), (False, True), (True, False))
    return [Way(dtype, a, b, aligned) for dtype, a, b, aligned in lies]


def products_at(way: Way, point: Point) -> list[Product]:
    """What is measured there; nothing where it takes too long."""
    sizes = [SIZES[i] for i in point]
    if math.prod(sizes) > _MOST_PRODUCTS:
        return []
    less = (0,) if way.aligned else (1, 2)
    return [Product(way, *(size - few for size in sizes)) for few in less]


class Search:
    """What was measured so far, and the boxes that it divides the grid into."""

    def __init__(self, judge: Judge, is_over: Callable[[Product], bool]) -> None:
        self._judge, self._is_over = judge, is_over
        self._known: dict[tuple[Way, Point], Verdict | None] = {}
        self.boxes: list[Box] = []
        self.measured = 0

    def run(self, dtypes: Iterable[str]) -> None:
        """Measure until the time is up; a box is divided only if there is time for all of it."""
        new = self._roots(dtypes)
        for box in new:
            if not self._look(box, box.side):
                return
            self.boxes.append(box)
        for side in _SIDES[:-1]:
            new = [box for box in new if box.side == side and self._best_speed(box) >= CLOSE]
            new = self._divided(sorted(new, key=self._urgency))

    def _divided(self, boxes: list[Box]) -> list[Box]:
        """The halves of the boxes, as long as there is time."""
        gone, halves = set[Box](), list[Box]()
        for box in boxes:
            if not self._look(box, box.side // 2):
                break
            gone.add(box)
            halves += box.halves()
        self.boxes = [box for box in self.boxes if box not in gone] + halves
        return halves

    def _roots(self, dtypes: Iterable[str]) -> list[Box]:
        """The coarsest boxes, of small products first: they tell who is hopeless for large ones."""
        side = _SIDES[0]
        begins = range(0, len(SIZES) - 1, side)
        lows = sorted(itertools.product(begins, begins, begins), key=sum)
        return [Box(way, low, side) for low, way in itertools.product(lows, ways(dtypes))]

    def _look(self, box: Box, step: int) -> bool:
        """Measure its points that are not known; false: the time is up."""
        for point in box.points(step):
            if (box.way, point) in self._known:
                continue
            found = products_at(box.way, point)
            if found and self._is_over(found[0]):
                return False
            self._known[box.way, point] = _both([self._judge(one, None) for one in found])
            self.measured += len(found)
        return True

    def _verdicts(self, box: Box, step: int) -> list[Verdict | None]:
        return [
            self._known[box.way, point]
            for point in box.points(step)
            if (box.way, point) in self._known
        ]

    def _best_speed(self, box: Box) -> float:
        found = [each for each in self._verdicts(box, box.side) if each]
        return max((speed for each in found for speed in each.speeds.values()), default=0.0)

    def _urgency(self, box: Box) -> tuple[int, int]:
        """Those that are nearly won first, and last those that are: a draw tells more of them."""
        wins: dict[str, int] = {}
        for verdict in self._verdicts(box, box.side):
            for name, speed in verdict.speeds.items() if verdict else ():
                wins[name] = wins.get(name, 0) + (speed >= MARGIN)
        most = max(wins.values(), default=0)
        return (1 if most == len(box.corners) else -most), sum(box.low)

    def choice(self, box: Box) -> Choice | None:
        """The variant that won at all of its points; None: nobody did, and the default stays."""
        found = self._verdicts(box, 1)
        corners = self._verdicts(box, box.side)
        sure = [each for each in found if each]
        if len(corners) < len(box.corners) or len(sure) < len(found):
            return None
        if len({each.default for each in sure}) > 1:
            return None
        speeds = {name: [each.speeds.get(name, 0.0) for each in sure] for name in sure[0].speeds}
        won = {name: each for name, each in speeds.items() if min(each) >= MARGIN}
        if not won:
            return None
        best = max(won, key=lambda name: statistics.geometric_mean(won[name]))
        return Choice(best, sure[0].default)

    def choices(self) -> dict[Box, Choice]:
        """Of all boxes that a variant won."""
        found = {box: self.choice(box) for box in self.boxes}
        return {box: choice for box, choice in found.items() if choice}


def _both(verdicts: list[Verdict | None]) -> Verdict | None:
    """What holds of all products that were measured at a point; None where one was not."""
    sure = [each for each in verdicts if each]
    if not sure or len(sure) < len(verdicts) or len({each.default for each in sure}) > 1:
        return None
    names = sure[0].speeds
    return Verdict(
        sure[0].default, {name: min(each.speeds.get(name, 0.0) for each in sure) for name in names}
    )
