"""Whether calls are right: the same look at each of them, whether it is timed or not.

A contender is looked at alone first, with all inputs and all figures of its errors; and then after
every timed call on the host, and after one of the timed calls of each sample on the device.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.cases.trials import Change
from gpukern.bench.checking.entry import Entry
from gpukern.bench.checking.faults import name_fault
from gpukern.bench.checking.regions import poison
from gpukern.bench.checking.results import borrowed, strange
from gpukern.bench.checking.stage import Stage, same_bits
from gpukern.bench.checking.tampering import replaced, watchers
from gpukern.bench.checking.verdict import Verdict, WrongResult, check, mismatch
from gpukern.bench.model.contender import DeviceSide, Work

Array = npt.NDArray[Any]

# Larger results are not held until the end of a round: the next call would find no room.
_HELD = 2**20


class HostCalls:
    """Looks at the results of calls from NumPy arrays, and at what is left of the inputs."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._watching = watchers()
        self._held: list[tuple[Entry, Array, Array]] = []
        self._copy = np.zeros((), np.uint8)

    def look(self, entry: Entry, result: Any, array: Array, timed: bool, hold: bool) -> Verdict:
        """Raise WrongResult where something is wrong with a result, now that it is there."""
        where = f"{'timed, ' if timed else ''}end to end"
        # First of all, and before a function is called that others could be told of.
        wrong = replaced(self._watching)
        wrong = wrong or strange(result, array, self.stage.case.op == "transpose")
        if wrong:
            raise WrongResult(Verdict(np.nan, f"{where}: {wrong}"))
        # What a thread of its own still writes comes too late for the copy.
        copy = self._copied(array)
        verdict = _judged(entry, self.stage, copy, where, figures=not timed)
        wrong = self._borrowed(entry, array) or self.stage.damage_on_host()
        if not wrong and not same_bits(array, copy):
            wrong = "changes its result after the call"
        if wrong:
            raise WrongResult(Verdict(verdict.error, f"{where}: {wrong}"))
        if hold or (array.nbytes <= _HELD and all(one is not entry for one, _, _ in self._held)):
            self._held.append((entry, array, copy.copy()))
        return verdict

    def _borrowed(self, entry: Entry, array: Array) -> str:
        own = entry if entry.contender.reuses else None
        earlier = [held for whose, held, _ in self._held if whose is not own]
        return borrowed(array, self.stage.host, earlier)

    def _copied(self, array: Array) -> Array:
        if self._copy.shape != array.shape or self._copy.dtype != array.dtype:
            self._copy = np.empty(array.shape, array.dtype)
        np.copyto(self._copy, array)
        return self._copy

    def look_again(self) -> None:
        """Let go of what is held; what has changed meanwhile tells against whose it is."""
        for entry, array, copy in self._held:
            if entry.right and not entry.contender.reuses and not same_bits(array, copy):
                entry.learn(Verdict(np.nan, "end to end: changes its result after the call"))
        self._held.clear()


class DeviceCalls:
    """Changes the inputs before each call on the device, and looks at the result of one of them."""

    def __init__(self, entry: Entry, stage: Stage, timed: bool) -> None:
        """For use in a ``with``, at whose end all knows of all changes."""
        assert entry.contender.device is not None
        self.entry, self.stage, self.timed, self.side = entry, stage, timed, entry.contender.device
        # Changes that are drawn for the calls to come, and those that were made.
        self._next: list[list[Change]] = []
        self._plan: list[list[Change]] = []
        self._done = self._chosen = 0
        self._result: Any = None

    def __enter__(self) -> "DeviceCalls":
        return self

    def __exit__(self, *failure: object) -> None:
        self._settle(len(self._plan))

    @property
    def work(self) -> Work:
        """The contender's work as the clock takes it."""
        return Work(self.entry.start, self.begin, self.freshen, self.keep)

    def begin(self, calls: int) -> None:
        """So many calls are next: draw their changes, and which of them is looked at."""
        self._settle(len(self._plan))
        self.stage.catch_up()
        self.stage.poison()
        # One more call where a result is put aside; drawing takes longer than writing.
        self._next = [self._drawn() for _ in range(calls + 1)]
        self._done, self._result = 0, None
        self._chosen = int(self.stage.rng.integers(calls))
        if self.entry.contender.reuses:
            self._chosen = calls - 1

    def freshen(self) -> None:
        """Change the inputs for the next call."""
        changes = self._next.pop() if self._next else self._drawn()
        self._plan.append(changes)
        for change in changes:
            self.stage.write(change)

    def _drawn(self) -> list[Change]:
        """Those that a library has copied stay as they are."""
        return [] if self.side.wrap is None else self.stage.trial.draw(self.stage.rng)

    def keep(self, result: Any) -> bool:
        """Put the result of the chosen call aside."""
        mine, self._done = self._done == self._chosen, self._done + 1
        if not mine:
            return False
        if result is None and self.side.wrap is not None:
            self.stage.kept.copy_of(self.stage.out)
            return True
        self._result = self.entry.out if result is None else result
        return False

    def _settle(self, count: int) -> None:
        """Let the right answer follow the changes of so many calls."""
        for changes in self._plan[:count]:
            for change in changes:
                self.stage.adopt(change)
                self.stage.write_image(change)
        del self._plan[:count]

    def look(self) -> Verdict:
        """Raise WrongResult where something is wrong, now that the device is done."""
        where = f"{'timed, ' if self.timed else ''}on the device"
        assert self._done > self._chosen, "no call was kept"
        wrong = replaced()
        if wrong:
            raise WrongResult(Verdict(np.nan, f"{where}: {wrong}"))
        self._settle(self._chosen + 1)
        verdict = self._judged_result(where)
        self._settle(len(self._plan))
        wrong = self.stage.out.guards() or self.stage.damage_on_device()
        if wrong:
            raise WrongResult(Verdict(verdict.error, f"{where}: {wrong}"))
        return verdict

    def _judged_result(self, where: str) -> Verdict:
        stage, kept = self.stage, self.stage.kept
        if self._result is None:
            if kept.holds(stage.wanted()):
                found = stage.trial.expected.nearest
            else:
                guards = kept.guards()
                if guards:
                    raise WrongResult(Verdict(np.nan, f"{where}: {guards}"))
                found = kept.read()
        else:
            found = np.asarray(self.side.fetch(self._result))
            self._result = None
        return _judged(self.entry, stage, found, where, figures=not self.timed)


def lend(entry: Entry, side: DeviceSide, stage: Stage) -> None:
    """Give a contender its arrays: the harness's own, or fresh copies where it must copy."""
    if side.wrap is None:
        entry.operands = tuple(side.load(array) for array in stage.host)
        entry.out = side.load(poison(stage.case))
    elif entry.lent != stage.renewals:
        entry.operands = tuple(side.wrap(region) for region in stage.inputs)
        entry.out = side.wrap(stage.out)
    entry.lent = stage.renewals


@np.errstate(invalid="ignore")  # what is wrong may be any bits, which no conversion is to warn of
def _judged(entry: Entry, stage: Stage, got: Array, where: str, figures: bool) -> Verdict:
    trial, who = stage.trial, entry.contender
    verdict = check(got, trial.expected, who.serial, who.carried, figures)
    if verdict.right:
        return verdict
    fault = (
        "" if mismatch(got, trial.expected) else name_fault(stage.case, trial, stage.before, got)
    )
    cause = f"{fault}: " if fault else ""
    detail = f"{where}, {trial.name} inputs: {cause}{verdict.detail}"
    raise WrongResult(Verdict(verdict.error, detail, verdict.ulps, verdict.share))
