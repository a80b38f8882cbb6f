"""The buffers of a case: everybody works on the same ones, on the host and on the device.

Between two trials the contents of these buffers change but the buffers do not, so that a result
kept from before is a wrong one.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern import _core
from gpukern.bench.cases.expected import Trial
from gpukern.bench.checking.regions import Image, Region, poison
from gpukern.bench.model.case import Case

Array = npt.NDArray[Any]

_SPACER = 2**25


class Stage:
    """The inputs and the output of a case, on the host and on the device."""

    def __init__(self, case: Case, trials: Sequence[Trial], on_host: bool = True) -> None:
        """``on_host`` False: every contender works on the device, and is examined there alone."""
        self.case, self.trials, self.on_host = case, trials, on_host
        self.shown = -1
        self.before: Trial | None = None
        self.renewals = 0
        self.host = self._new_host() if on_host else ()
        self.inputs, self.out = self._new_device()
        self._poison = self.out.image(poison(case))
        self._images: list[tuple[Image, ...]] = [
            tuple(
                region.image(array) for region, array in zip(self.inputs, one.inputs, strict=True)
            )
            for one in trials
        ]

    def _new_host(self) -> tuple[Array, ...]:
        return tuple(np.empty_like(array, order="C") for array in self.trials[0].inputs)

    def _new_device(self) -> tuple[tuple[Region, ...], Region]:
        inputs = tuple(Region(shape, self.case.dtype) for shape in self.case.shapes)
        return inputs, Region(self.case.result_shape, self.case.result_dtype)

    def renew(self, host: bool, device: bool, rng: np.random.Generator) -> None:
        """The same contents elsewhere in memory.

        Where arrays lie changes what a call takes, and between two runs they lie elsewhere: with
        new places in every round that is part of the spread that the intervals tell of.
        """
        self.renewals += 1
        if host:
            before, self.host = self.host, self._new_host()
            for mine, array in zip(self.host, before, strict=True):
                np.copyto(mine, array)
        if device:
            # In the way for a moment, so that the pool does not hand out the same place again.
            spacer = _core.empty(int(rng.integers(1, _SPACER)), "uint8")
            self.inputs, self.out = self._new_device()
            del spacer
            self._fill_device()

    @property
    def trial(self) -> Trial:
        """The trial whose inputs are in the buffers."""
        return self.trials[self.shown]

    def show(self, index: int) -> None:
        """Put the inputs of a trial into the buffers, whatever is in them."""
        self.before = self.trials[self.shown] if self.shown not in (-1, index) else None
        self.shown = index
        for mine, array in zip(self.host, self.trial.inputs, strict=False):
            np.copyto(mine, array)
        self._fill_device()

    def _fill_device(self) -> None:
        for region, image in zip(self.inputs, self._images[self.shown], strict=True):
            region.put(image)

    def poison(self) -> None:
        """Fill the output on the device with what no right result has."""
        self.out.put(self._poison)

    def damage_on_host(self) -> str:
        """What has happened to the inputs on the host, if anything has; they are mended."""
        pairs = zip(self.host, self.trial.inputs, strict=True)
        if all(same_bits(mine, array) for mine, array in pairs):
            return ""
        self.show(self.shown)
        return "overwrites its input"

    def damage_on_device(self) -> str:
        """The same of the inputs on the device and of the guards around them."""
        pairs = zip(self.inputs, self._images[self.shown], strict=True)
        if all(region.holds(image) for region, image in pairs):
            return ""
        self.show(self.shown)
        return "writes into its input, or around it"


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays hold the same, NaN included."""
    return a.dtype == b.dtype and np.array_equal(_bits(a), _bits(b))


def _bits(array: Array) -> Array:
    """As integers, as wide as they go: NaN is unlike itself, and bytes are slow to compare."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint64 if flat.nbytes % 8 == 0 else np.uint8)
