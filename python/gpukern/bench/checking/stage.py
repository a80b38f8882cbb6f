"""The buffers of a case: everybody works on the same ones, on the host and on the device.

Before every call a few elements of the inputs change, at random places, to random values like the
others, so that a result kept from an earlier call is a wrong one. The buffers themselves stay where
they are within a round.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern import _core
from gpukern.bench.cases.pieces import in_pieces
from gpukern.bench.cases.trials import Change, Trial
from gpukern.bench.checking.regions import Region, poison
from gpukern.bench.model.case import Case

Array = npt.NDArray[Any]

_SPACER = 2**25
# More changes than that are made up for by a new image.
_MOST_CHANGES = 512
# Of larger inputs on the host some blocks are looked at after a call, another choice each time.
_LARGE = 2**26
_BLOCK = 2**18


class Stage:
    """The inputs and the output of a case, on the host and on the device."""

    def __init__(
        self,
        case: Case,
        trials: Sequence[Trial],
        on_host: bool = True,
        rng: np.random.Generator | None = None,
    ) -> None:
        """``on_host`` False: every contender works on the device, and is examined there alone."""
        self.case, self.trials, self.on_host = case, trials, on_host
        self.rng = rng or np.random.default_rng()
        self.shown = -1
        self.before: Trial | None = None
        self.renewals = 0
        self.host = self._new_host() if on_host else ()
        self.inputs, self.out = self._new_device()
        self.kept = Region(case.result_shape, case.result_dtype)
        self._poison = self.out.image(poison(case))
        self._images: tuple[_core.DeviceArray, ...] = ()
        self._wanted: _core.DeviceArray | None = None
        # Changes that the inputs on the device lack, while those on the host have them.
        self._late: list[Change] = []

    def _new_host(self) -> tuple[Array, ...]:
        return tuple(np.empty_like(array, order="C") for array in self.trials[0].inputs)

    def _new_device(self) -> tuple[tuple[Region, ...], Region]:
        inputs = tuple(Region(shape, self.case.dtype) for shape in self.case.shapes)
        return inputs, Region(self.case.result_shape, self.case.result_dtype)

    def renew(self, host: bool, device: bool) -> None:
        """The same contents elsewhere in memory.

        Where arrays lie changes what a call takes, and between two runs they lie elsewhere: with
        new places in every round that is part of the spread that the intervals tell of.
        """
        self.renewals += 1
        if host and self.on_host:
            before, self.host = self.host, self._new_host()
            for mine, array in zip(self.host, before, strict=True):
                in_pieces(np.copyto, mine, array)
        if device:
            self.catch_up()
            # In the way for a moment, so that the pool does not hand out the same place again.
            spacer = _core.empty(int(self.rng.integers(1, _SPACER)), "uint8")
            self.inputs, self.out = self._new_device()
            del spacer
            self._fill_device()

    def operands(self) -> tuple[Array, ...]:
        """The inputs on the host for calls, whose shapes and flags are nobody else's."""
        return tuple(array[...] for array in self.host)

    @property
    def trial(self) -> Trial:
        """The trial whose inputs are in the buffers."""
        return self.trials[self.shown]

    def show(self, index: int) -> None:
        """Put the inputs of a trial into the buffers, whatever is in them."""
        if self.shown not in (-1, index):
            self.before = self.trials[self.shown]
        self.shown = index
        self._late.clear()
        for mine, array in zip(self.host, self.trial.inputs, strict=False):
            in_pieces(np.copyto, mine, array)
        pairs = zip(self.inputs, self.trial.inputs, strict=True)
        self._images = tuple(region.image(array) for region, array in pairs)
        self._wanted = None
        self._fill_device()

    def _fill_device(self) -> None:
        for region, image in zip(self.inputs, self._images, strict=True):
            region.put(image)

    def poison(self) -> None:
        """Fill the output on the device with what no right result has."""
        self.out.put(self._poison)

    def freshen_host(self) -> None:
        """Change the inputs on the host for the next call."""
        for change in self.trial.draw(self.rng):
            self.adopt(change)
            self._late.append(change)

    def adopt(self, change: Change) -> None:
        """Let the right answer and the inputs on the host follow a change."""
        self.trial.apply(change)
        if self.host:
            self.host[change.which].reshape(-1)[change.place] = change.value

    def catch_up(self) -> None:
        """Make the changes on the device that were made on the host."""
        if len(self._late) > _MOST_CHANGES:
            self.show(self.shown)
        for change in self._late:
            self.write(change)
            self.write_image(change)
        self._late.clear()

    def write(self, change: Change) -> None:
        """Change the inputs on the device, without waiting for it."""
        region = self.inputs[change.which]
        _write(region, region.cells, change)

    def write_image(self, change: Change) -> None:
        """Change what the inputs on the device have to be."""
        _write(self.inputs[change.which], self._images[change.which], change)

    def wanted(self) -> "_core.DeviceArray":
        """The right answer between guards, on the device."""
        answer = self.trial.expected
        if self._wanted is None or len(answer.touched) > _MOST_CHANGES:
            self._wanted = self.out.image(answer.nearest)
        else:
            flat = answer.nearest.reshape(-1).view(self.out.cells.dtype)
            for part in answer.touched:
                bits = np.ascontiguousarray(flat[part])
                self._wanted[self.out.within(part)] = _core.to_device(bits)
        answer.touched.clear()
        return self._wanted

    def damage_on_host(self) -> str:
        """What has happened to the inputs on the host, if anything has; they are mended."""
        pairs = zip(self.host, self.trial.inputs, strict=True)
        if all(self._whole(mine, array) for mine, array in pairs):
            return ""
        self.show(self.shown)
        return "overwrites its input"

    def _whole(self, mine: Array, array: Array) -> bool:
        """Whether all of two arrays is the same, or both ends and every eighth block."""
        if mine.nbytes <= _LARGE:
            return same_bits(mine, array)
        flat, other = mine.reshape(-1), array.reshape(-1)
        blocks = range(int(self.rng.integers(8)) * _BLOCK, flat.size, 8 * _BLOCK)
        starts = (0, flat.size - _BLOCK, *blocks)
        return all(same_bits(flat[at : at + _BLOCK], other[at : at + _BLOCK]) for at in starts)

    def damage_on_device(self) -> str:
        """The same of the inputs on the device and of the guards around them."""
        pairs = zip(self.inputs, self._images, strict=True)
        if all(region.holds(image) for region, image in pairs):
            return ""
        self.show(self.shown)
        return "writes into its input, or around it"


def _write(region: Region, cells: "_core.DeviceArray", change: Change) -> None:
    bits = np.asarray(change.value).view(region.cells.dtype)
    at = region.within(slice(change.place, change.place + 1, 1)).start
    cells[at] = bits[()]


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays hold the same, NaN included."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return all(in_pieces(_same_piece, a, b))


def _same_piece(a: Array, b: Array) -> bool:
    return bool(np.array_equal(_bits(a), _bits(b)))


def _bits(array: Array) -> Array:
    """As integers, as wide as they go: NaN is unlike itself, and bytes are slow to compare."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint64 if flat.nbytes % 8 == 0 else np.uint8)
