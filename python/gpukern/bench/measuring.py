"""A case from beginning to end: examine everybody, and time the right ones call by checked call."""

import gc
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.cases.trials import Trial
from gpukern.bench.checking.entry import Entry
from gpukern.bench.checking.examine import DeviceCalls, HostCalls, lend
from gpukern.bench.checking.regions import poison
from gpukern.bench.checking.stage import Stage
from gpukern.bench.checking.verdict import WrongResult
from gpukern.bench.clock import protocols, wall
from gpukern.bench.clock.composed import composed
from gpukern.bench.clock.device import DeviceTimer, Pace
from gpukern.bench.model.case import Case
from gpukern.bench.model.clock import Clock
from gpukern.bench.model.contender import Contender, DeviceSide
from gpukern.bench.model.row import BROKEN
from gpukern.bench.model.settings import Effort, Settings
from gpukern.bench.model.split import Split, middle
from gpukern.text.errors import one_line

Array = npt.NDArray[Any]
Tick = Callable[[str], None]


# Of a longer call the phases are taken once.
_LONG_CALL = 20e-3
# Bytes that it takes tens of milliseconds to copy.
_LARGE = 2**28


class Round:
    """Times the contenders of one case, one sample each a round."""

    def __init__(
        self, stage: Stage, timer: DeviceTimer, settings: Settings, rng: np.random.Generator
    ) -> None:
        self.stage, self.timer, self.settings, self.rng = stage, timer, settings, rng
        self.clock = timer.clock
        self.paces: dict[int, Pace] = {}
        self.turn = 0
        self.host_calls = HostCalls(stage)

    def prepare(self, entry: Entry) -> None:
        """Find out how a contender is best timed, and which figures it has none of."""
        entry.flags += _untimed(entry.contender, self.settings)
        side = entry.contender.device
        if side is None or not self.settings.device:
            return
        lend(entry, side, self.stage)
        with DeviceCalls(entry, self.stage, timed=True) as calls:
            pace = self.timer.pace(calls.work, self.settings.effort.rounds)
        self.paces[id(entry)] = pace
        entry.flags += _replaced(entry)
        if pace.note:
            entry.flags.append(pace.note)

    def split(self, entry: Entry) -> None:
        """The phases of a call that is composed of the library's own functions."""
        side = entry.contender.device
        if side is None or not self._has_end_to_end(entry):
            return
        blank = poison(self.stage.case)

        def once() -> Split:
            phases = composed(self.clock, side, self.stage.host, blank)
            # Where ``run`` keeps its last arrays, those of this call go now, outside of any time.
            entry.start()
            return phases

        first = once()
        short = sum(first.values()) < _LONG_CALL
        entry.split = middle([first, once(), once()]) if short else first

    def begin(self) -> None:
        """The next round: new places in memory for everything that its contenders share."""
        self.turn += 1
        self.stage.renew(self.settings.end_to_end, bool(self.paces))

    def take(self, entry: Entry) -> None:
        """One sample of every figure that is asked for."""
        side, pace = entry.contender.device, self.paces.get(id(entry))
        if side is not None and pace is not None:
            self._on_device(entry, side, pace)
        if self._has_end_to_end(entry):
            call, host = entry.contender.end_to_end, self.stage.operands()
            look = partial(self.host_calls.look, entry, timed=True, hold=False)
            spent = wall.end_to_end(self.clock, lambda: call(*host), self.stage.freshen_host, look)
            entry.add("end_to_end", self.turn, spent)

    def _has_end_to_end(self, entry: Entry) -> bool:
        return self.settings.end_to_end and not entry.contender.transfers

    def _on_device(self, entry: Entry, side: DeviceSide, pace: Pace) -> None:
        lend(entry, side, self.stage)
        blocked = pace.blocked
        with DeviceCalls(entry, self.stage, timed=True) as calls:
            sample = self.timer.sample(calls.work, pace)
            calls.look()
        if blocked and not pace.blocked:
            # What was taken until now lacks the gaps between launches that are in it from here on.
            entry.forget("warm", "cold", "overhead")
            entry.flags.append(pace.note)
        entry.add("warm", self.turn, sample.warm)
        entry.add("cold", self.turn, sample.cold)
        entry.add("overhead", self.turn, sample.overhead)

    def end(self) -> None:
        """The end of a round: what has been returned in it has to be as it was."""
        self.host_calls.look_again()

    def protocols(self, entry: Entry) -> None:
        """Figures as others take them, to be seen next to the default ones."""
        if self.settings.protocol == "leetcuda" and entry.contender.device is not None:
            entry.protocols["leetcuda"] = protocols.leetcuda(self.clock, entry.start)
        if self.settings.protocol == "notes" and not entry.contender.transfers:
            host, call = self.stage.operands(), entry.contender.end_to_end
            entry.protocols["notes"] = protocols.notes(self.clock, lambda: call(*host))


def _untimed(one: Contender, settings: Settings) -> Iterator[str]:
    """Why figures that are asked for are not there."""
    if settings.end_to_end and one.transfers:
        yield f"no time from end to end, since its transfers are {one.transfers}'s"
    if settings.device and one.off_device:
        yield f"no time on the device: {one.off_device}"


def _replaced(entry: Entry) -> Iterator[str]:
    """Which other variant does the work, where one gives way."""
    who = entry.contender
    ran = who.ran(entry.operands, entry.out) if who.ran else who.variant
    if ran != who.variant:
        yield f"gave way to {ran}, since it does not take such arrays"


@contextmanager
def _caught(entry: Entry, stage: Stage) -> Iterator[None]:
    """What a contender raises is its own fault, and nobody else's."""
    try:
        yield
    except WrongResult as wrong:
        entry.learn(wrong.verdict)
    except Exception as error:
        entry.status, entry.detail = BROKEN, one_line(error)
    if not entry.right:
        # It may have left anything in the buffers.
        stage.show(stage.shown)


def _needs_host(entry: Entry) -> bool:
    side = entry.contender.device
    return side is None or side.wrap is None


class Examination:
    """Has every contender of a case do what it does, once or twice, and looks at it closely."""

    def __init__(self, stage: Stage, clock: Clock) -> None:
        self.stage, self.clock = stage, clock
        self.host_calls = HostCalls(stage)

    def examine(self, entry: Entry) -> None:
        """All ways to call a contender, on the inputs that are on stage."""
        with _caught(entry, self.stage):
            if self.stage.on_host or entry.contender.device is None:
                for _ in range(2 if self._may_spoil() else 1):
                    self._on_host(entry)
                self.host_calls.look_again()
            if entry.right and entry.contender.device is not None:
                self._on_device(entry, entry.contender.device)

    def _may_spoil(self) -> bool:
        """Whether a second call has to show that it leaves the result of the first alone.

        The timed calls show that of a single number too, and copying large inputs takes long.
        """
        case = self.stage.case
        is_quick = math.prod(case.result_shape) > 1 or case.bytes_moved < _LARGE
        return self.stage.shown == 0 and is_quick

    def _on_host(self, entry: Entry) -> None:
        call, host = entry.contender.end_to_end, self.stage.operands()

        def look(result: object, array: Array) -> None:
            hold = self.stage.shown == 0
            entry.learn(self.host_calls.look(entry, result, array, timed=False, hold=hold))

        self.stage.freshen_host()
        wall.wall(self.clock, lambda: call(*host), look)

    def _on_device(self, entry: Entry, side: DeviceSide) -> None:
        lend(entry, side, self.stage)
        with DeviceCalls(entry, self.stage, timed=False) as calls:
            work = calls.work
            work.begin(1)
            work.freshen()
            self.clock.synchronize()
            result = work.start()
            self.clock.synchronize()
            work.keep(result)
            entry.learn(calls.look())


class Measurement:
    """A case in this process: the buffers and the contenders, to be examined and then timed.

    The entries are filled in; those that are not ``finished`` at the end were interrupted.
    """

    def __init__(
        self,
        case: Case,
        trials: Sequence[Trial],
        entries: Sequence[Entry],
        settings: Settings,
        rng: np.random.Generator,
        splits: bool,
    ) -> None:
        """``splits`` tells whether calls are split into their phases, which one process does."""
        on_host = settings.end_to_end or any(map(_needs_host, entries))
        self.stage = Stage(case, trials, on_host, rng)
        self.entries, self.settings, self.rng, self.splits = entries, settings, rng, splits

    def examine(self, clock: Clock, tick: Tick, tuning: bool) -> None:
        """Those that tune themselves, or all others.

        Everybody on the proof first, which tells best what is wrong, and then on the other inputs.
        """
        entries = [entry for entry in self.entries if entry.contender.tunes == tuning]
        if not entries:
            return
        examination = Examination(self.stage, clock)
        # No collection anywhere, so that it tells nobody whether a call is timed.
        with wall.no_collection():
            for index in range(len(self.stage.trials)):
                self.stage.show(index)
                for entry in entries:
                    if entry.right:
                        tick(f"checking {entry.contender.label}")
                        examination.examine(entry)
                    entry.examined = index == len(self.stage.trials) - 1
                gc.collect()
        self.stage.show(0)

    def time(self, timer: DeviceTimer, effort: Effort, tick: Tick) -> None:
        """All figures of those that are right, within the seconds of the effort.

        Of a budget what examining the last ones takes is a part.
        """
        settings, begin = self.settings, timer.clock.now()
        self.examine(timer.clock, tick, tuning=True)
        if settings.budget is None:
            begin = timer.clock.now()
        timed = [e for e in self.entries if e.right and (settings.simulated or not e.simulated)]
        rounds = Round(self.stage, timer, settings, self.rng)
        with wall.no_collection():
            for entry in timed:
                tick(f"pacing {entry.contender.label}")
                with _caught(entry, self.stage):
                    rounds.prepare(entry)
                    if self.splits:
                        rounds.split(entry)
            _take_rounds(rounds, timed, effort, begin, tick)
            for entry in timed:
                if entry.right:
                    tick(f"timing {entry.contender.label}")
                    with _caught(entry, self.stage):
                        rounds.protocols(entry)
        for entry in self.entries:
            entry.finished = True


def _take_rounds(
    rounds: Round, timed: Sequence[Entry], effort: Effort, begin: float, tick: Tick
) -> None:
    """Everybody once a round, in an order that is drawn anew, so that drift hits all alike.

    Those whose calls take long are left out of the later ones.
    """
    clock = rounds.clock
    most = {id(entry): effort.most if effort.rounds is None else effort.rounds for entry in timed}
    while not effort.enough(rounds.turn, clock.now() - begin):
        now = [entry for entry in timed if entry.right and rounds.turn < most[id(entry)]]
        if not now:
            break
        gc.collect()
        rounds.begin()
        for index in rounds.rng.permutation(len(now)):
            entry, since = now[index], clock.now()
            if entry.right:
                tick(f"timing {entry.contender.label}")
                with _caught(entry, rounds.stage):
                    rounds.take(entry)
                most[id(entry)] = effort.rounds_of(clock.now() - since, len(timed))
        rounds.end()
