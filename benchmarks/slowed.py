"""An add that can be made a few percent slower, to see whether ``--against`` finds that.

    mine="add --sizes 4095x4097 --mode device --load benchmarks/slowed.py --contenders torch,mine"
    gpukern compare $mine --save before.json
    SLOWED=1 gpukern compare $mine --against before.json     # ends with status 1

SLOWED is the share of the elements, in percent, that are added once more: a launch and that much.
"""

import math
import os
from typing import Any

import gpukern


class First:
    """The first elements of an array on the device."""

    def __init__(self, array: Any, count: int) -> None:
        described = array.__cuda_array_interface__
        self.__cuda_array_interface__ = {**described, "shape": (count,), "strides": None}


@gpukern.contender("add", "mine", device=True)
def mine(a: Any, b: Any, out: Any) -> None:
    gpukern.add(a, b, out=out)
    percent = float(os.environ.get("SLOWED", "0"))
    if percent:
        count = max(1, int(math.prod(out.__cuda_array_interface__["shape"]) * percent / 100))
        gpukern.add(First(a, count), First(b, count), out=First(out, count))
