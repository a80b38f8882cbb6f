"""The proof: shapes that are not on the grid, drawn in every box that a variant won.

Every other one is the worst of many for the variant's tiles: a grid of sizes that fit them well
tells nothing of those that leave most of the GPU idle at the end. A box in which the choice loses
to the default goes by the default again, and so does one that no shape was drawn in.
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
# Of so many shapes the one that fits worst is taken.
_MANY = 32

# The share of what the GPU can do at a time that a variant's tiles of a product are.
Fit = Callable[[Product, str], float]


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
            f"{len(self.speeds)} random shapes where another variant was chosen, half of them such "
            f"as fit it badly: {mean:.3f}x of the default's speed, the worst "
            f"{min(self.speeds):.3f}x; {self.lost} boxes where it lost by more than "
            f"{1 - _LOST:.0%} go by the default again, and so do {self.untried} that there was no "
            "time for"
        )


def prove(
    choices: Mapping[Box, Choice], judge: Judge, fit: Fit, is_over: Callable[[Product], bool]
) -> Proof:
    """Round by round a shape in every box that has not lost, until the time is up."""
    chance = random.Random(_SEED)
    left, speeds = dict(choices), dict[Box, list[float]]()
    for box, badly in _turns(left, chance):
        product = _worst(box, left[box], fit, chance) if badly else drawn(box, chance)
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


def _turns(left: Mapping[Box, Choice], chance: random.Random) -> Iterator[tuple[Box, bool]]:
    """Round by round, those that are left when it begins, in random order; every other badly."""
    for number in range(_MOST_ROUNDS):
        for box in chance.sample(list(left), len(left)):
            yield box, number % 2 == 1


def _worst(box: Box, choice: Choice, fit: Fit, chance: random.Random) -> Product:
    """Of many that are drawn the one that fits the choice worst."""
    many = [drawn(box, chance) for _ in range(_MANY)]
    return min(many, key=lambda product: fit(product, choice.variant))


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
