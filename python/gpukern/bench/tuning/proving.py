"""The proof: shapes that are not on the grid, drawn in every box that a variant won.

A box in which the choice loses to the default goes by the default again, and so does one that no
shape was drawn in.
"""

import itertools
import math
import random
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from gpukern.bench.tuning.judging import Judge
from gpukern.bench.tuning.products import SIZES, Product
from gpukern.bench.tuning.search import Box, Choice

# Slower than that, as a share of the default's speed, a choice has lost.
_LOST = 0.99

_SEED = 15
_MOST_ROUNDS = 16


@dataclass(frozen=True)
class Proof:
    """The choices that are left, how many lost or were not tried, and the speed of every draw."""

    kept: Mapping[Box, Choice]
    lost: int
    untried: int
    speeds: list[float]

    @property
    def text(self) -> str:
        """As it is shown, and written into the table."""
        if not self.speeds:
            return "no random shapes were drawn"
        mean = statistics.geometric_mean(self.speeds)
        return (
            f"{len(self.speeds)} random shapes where another variant was chosen: {mean:.3f}x of "
            f"the default's speed, the worst {min(self.speeds):.3f}x; {self.lost} boxes where it "
            f"lost by more than {1 - _LOST:.0%} go by the default again, and so do "
            f"{self.untried} that there was no time for"
        )


def prove(choices: Mapping[Box, Choice], judge: Judge, is_over: Callable[[Product], bool]) -> Proof:
    """Round by round a shape in every box that has not lost, until the time is up."""
    chance = random.Random(_SEED)
    left, speeds = dict(choices), dict[Box, list[float]]()
    for box in _turns(left, chance):
        product = drawn(box, chance)
        if is_over(product):
            break
        speed = _speed(product, left[box], judge)
        if speed is not None:
            speeds.setdefault(box, []).append(speed)
            if speed < _LOST:
                del left[box]
    kept = {box: choice for box, choice in left.items() if box in speeds}
    drawn_speeds = list(itertools.chain(*speeds.values()))
    return Proof(kept, len(choices) - len(left), len(left) - len(kept), drawn_speeds)


def _turns(left: Mapping[Box, Choice], chance: random.Random) -> Iterator[Box]:
    """Round by round, those that are left when the round begins, in random order."""
    for _ in range(_MOST_ROUNDS):
        yield from chance.sample(list(left), len(left))


def _speed(product: Product, choice: Choice, judge: Judge) -> float | None:
    """Of the choice; None where a later call would not make it, or nothing can be measured."""
    verdict = judge(product, [choice.variant])
    if verdict is None or verdict.default != choice.than:
        return None
    return verdict.speeds[choice.variant]


def drawn(box: Box, chance: random.Random) -> Product:
    """A product in the box that lies in its way, its sizes log-uniform."""
    way = box.way
    while True:
        m, n, k = (_size(SIZES[i], SIZES[i + box.side], chance) for i in box.low)
        if way.aligned:
            m = _rounded(m, way.width) if way.a_transposed else m
            n, k = _rounded(n, way.width), _rounded(k, way.width)
        if way.has(m, n, k):
            return Product(way, m, n, k)


def _size(low: int, high: int, chance: random.Random) -> int:
    """Above the lower border and up to the upper one."""
    return min(high, math.floor(math.exp(chance.uniform(math.log(low), math.log(high)))) + 1)


def _rounded(size: int, width: int) -> int:
    """To the next multiple: the borders are some."""
    return -(-size // width) * width
