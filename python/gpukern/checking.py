"""The examination of a contender, before its timing and again after it.

Everybody works on the same buffers, on the host and on the device. Between two trials the contents
of these buffers change but the buffers do not, so that a result kept from before is a wrong one.
The output is poisoned before each run and lies between guards.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern import _core
from gpukern.cases import Case, Trial, Verdict, check, poison
from gpukern.contenders import Contender, DeviceSide
from gpukern.diagnosis import name_fault
from gpukern.regions import Image, Region
from gpukern.timing import Work

Array = npt.NDArray[Any]

_SPACER = 2**25


class Stage:
    """The inputs and the output of a case, on the host and on the device."""

    def __init__(self, case: Case, trials: Sequence[Trial]) -> None:
        self.case, self.trials = case, trials
        self.shown = -1
        self.before: Trial | None = None
        self.renewals = 0
        self.host = self._new_host()
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
        for mine, array in zip(self.host, self.trial.inputs, strict=True):
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
        if all(np.array_equal(_bits(mine), _bits(array)) for mine, array in pairs):
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


def _bits(array: Array) -> Array:
    """As integers, as wide as they go: NaN is unlike itself, and bytes are slow to compare."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint64 if flat.nbytes % 8 == 0 else np.uint8)


def _equal(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and np.array_equal(_bits(a), _bits(b))


@dataclass
class Entry:
    """A contender in a case: what was found out about it, and its samples, one for each round."""

    contender: Contender
    status: str = ""
    detail: str = ""
    error: float | None = None
    ulps: float | None = None
    first_call: float | None = None
    lent: int | None = None
    operands: tuple[Any, ...] = ()
    out: Any = None
    examined: bool = False
    finished: bool = False
    samples: dict[str, list[float]] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    split: dict[str, float] = field(default_factory=dict)
    protocols: dict[str, float] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        """Whether nothing has been found against it."""
        return not self.status

    @property
    def work(self) -> Work:
        """Its work on the device, as the clock takes it."""
        side = self.contender.device
        assert side is not None
        run, operands, out = side.run, self.operands, self.out
        return Work(lambda: run(operands, out), side.wait)

    def add(self, name: str, value: float | None) -> None:
        """One more sample of a figure."""
        if value is not None:
            self.samples.setdefault(name, []).append(value)


def examine(entry: Entry, stage: Stage, when: str = "") -> Verdict:
    """Run a contender on what is on stage, in every way to call it."""
    contender = entry.contender
    begin = time.perf_counter()
    result = np.asarray(contender.end_to_end(*stage.host))
    if entry.first_call is None:
        entry.first_call = time.perf_counter() - begin
    verdict = _judged(entry, stage, result, "end to end", when)
    damage = stage.damage_on_host()
    if verdict.right and damage:
        verdict = Verdict(verdict.error, f"{when}end to end: {damage}")
    if not verdict.right or contender.device is None:
        return verdict
    device = _examine_on_device(entry, contender.device, stage, when, (result, verdict))
    worst = max(verdict, device, key=lambda one: (not one.right, one.error))
    return worst if not worst.right else Verdict(worst.error, ulps=max(verdict.ulps, device.ulps))


def _examine_on_device(
    entry: Entry, side: DeviceSide, stage: Stage, when: str, known: tuple[Array, Verdict]
) -> Verdict:
    where = "on the device"
    lend(entry, side, stage)
    stage.poison()
    _core.synchronize()
    returned = side.run(entry.operands, entry.out)
    if returned is not None and side.wait is not None:
        side.wait(returned)
    _core.synchronize()
    found, guards = stage.out.read()
    if returned is not None:
        found = side.fetch(returned)
    elif side.wrap is None:
        found = side.fetch(entry.out)
    # Mostly the bits are those of the end-to-end call, and judged already.
    result, verdict = known
    if found.shape != result.shape or not _equal(found, result):
        verdict = _judged(entry, stage, found, where, when)
    fault = guards or stage.damage_on_device()
    if fault:
        return Verdict(verdict.error, f"{when}{where}: {fault}")
    return verdict


def lend(entry: Entry, side: DeviceSide, stage: Stage) -> None:
    """Give a contender its arrays: the harness's own, or fresh copies where it must copy."""
    if side.wrap is None:
        entry.operands = tuple(side.load(array) for array in stage.host)
        entry.out = side.load(poison(stage.case))
    elif entry.lent != stage.renewals:
        entry.operands = tuple(side.wrap(region) for region in stage.inputs)
        entry.out = side.wrap(stage.out)
    entry.lent = stage.renewals


def _judged(entry: Entry, stage: Stage, got: Any, where: str, when: str) -> Verdict:
    trial = stage.trial
    verdict = check(got, trial.expected, entry.contender.serial, entry.contender.carried)
    if verdict.right:
        return verdict
    fault = name_fault(stage.case, trial, stage.before, got)
    cause = f"{fault}: " if fault else ""
    detail = f"{when}{where}, {trial.name} inputs: {cause}{verdict.detail}"
    return Verdict(verdict.error, detail, verdict.ulps)
