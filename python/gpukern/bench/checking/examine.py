"""The examination of a contender, before its timing and again after it.

The output is poisoned before each run and lies between guards.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.checking.entry import Entry
from gpukern.bench.checking.faults import name_fault
from gpukern.bench.checking.regions import poison
from gpukern.bench.checking.stage import Stage, same_bits
from gpukern.bench.checking.verdict import Verdict, check
from gpukern.bench.model.clock import Clock
from gpukern.bench.model.contender import DeviceSide

Array = npt.NDArray[Any]


def examine(entry: Entry, stage: Stage, clock: Clock, when: str = "") -> Verdict:
    """Run a contender on what is on stage, in every way to call it."""
    contender = entry.contender
    if contender.device is not None and not stage.on_host:
        return _examine_on_device(entry, contender.device, stage, clock, when)
    begin = clock.now()
    result = np.asarray(contender.end_to_end(*stage.host))
    if entry.first_call is None:
        entry.first_call = clock.now() - begin
    verdict = _judged(entry, stage, result, "end to end", when)
    damage = stage.damage_on_host()
    if verdict.right and damage:
        verdict = Verdict(verdict.error, f"{when}end to end: {damage}")
    if not verdict.right or contender.device is None:
        return verdict
    device = _examine_on_device(entry, contender.device, stage, clock, when, (result, verdict))
    worst = max(verdict, device, key=lambda one: (not one.right, one.error))
    return worst if not worst.right else Verdict(worst.error, ulps=max(verdict.ulps, device.ulps))


def _examine_on_device(
    entry: Entry,
    side: DeviceSide,
    stage: Stage,
    clock: Clock,
    when: str,
    known: tuple[Array, Verdict] | None = None,
) -> Verdict:
    """``known`` is the result of the end-to-end call and what was said of it."""
    where = "on the device"
    lend(entry, side, stage)
    stage.poison()
    clock.synchronize()
    begin = clock.now()
    returned = side.run(entry.operands, entry.out)
    if returned is not None and side.wait is not None:
        side.wait(returned)
    clock.synchronize()
    if entry.first_call is None:
        entry.first_call = clock.now() - begin
    found, guards = stage.out.read()
    if returned is not None:
        found = side.fetch(returned)
    elif side.wrap is None:
        found = side.fetch(entry.out)
    # Mostly the bits are those of the end-to-end call, and judged already.
    if known and found.shape == known[0].shape and same_bits(found, known[0]):
        verdict = known[1]
    else:
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
