"""A case from beginning to end: examine everybody, time the right ones, examine them again."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from gpukern.bench.cases.expected import Trial
from gpukern.bench.checking.entry import Entry
from gpukern.bench.checking.examine import examine, lend
from gpukern.bench.checking.stage import Stage
from gpukern.bench.clock import protocols, wall
from gpukern.bench.clock.device import DeviceTimer, Pace
from gpukern.bench.model.case import Case
from gpukern.bench.model.clock import Clock
from gpukern.bench.model.contender import Contender
from gpukern.bench.model.row import BROKEN, WRONG
from gpukern.bench.model.settings import Settings
from gpukern.text.errors import one_line

Tick = Callable[[str], None]


class Round:
    """Times the contenders of one case, one sample each a round."""

    def __init__(
        self, stage: Stage, timer: DeviceTimer, settings: Settings, rng: np.random.Generator
    ) -> None:
        self.stage, self.timer, self.settings, self.rng = stage, timer, settings, rng
        self.clock = timer.clock
        self.paces: dict[int, Pace] = {}
        self.turn = 0
        self._fresh = 0

    def prepare(self, entry: Entry) -> None:
        """Find out how a contender is best timed, and which figures it has none of."""
        entry.flags += _untimed(entry.contender, self.settings)
        side = entry.contender.device
        if side is None or not self.settings.device:
            return
        lend(entry, side, self.stage)
        pace = self.timer.pace(entry.work, self.settings.effort.rounds)
        self.paces[id(entry)] = pace
        if pace.note:
            entry.flags.append(pace.note)

    def split(self, entry: Entry) -> None:
        """The transfers of a call one by one, as the library's own functions do them."""
        side = entry.contender.device
        if side is None or not self._has_end_to_end(entry):
            return
        host = self.stage.host
        clock = self.clock

        def load() -> object:
            return [side.load(array) for array in host]

        loads = [wall.wall_synchronized(clock, load) for _ in range(3)]
        result = np.array(self.stage.trial.expected.nearest, order="C")
        # A new array each time, since a library may keep what it has fetched once.
        loaded = [side.load(result) for _ in range(3)]
        fetches = [wall.wall_synchronized(clock, partial(side.fetch, one)) for one in loaded]
        entry.split = {"host to device": min(loads), "device to host": min(fetches)}

    def begin(self) -> None:
        """The next round: new places in memory for everything that its contenders share."""
        self.turn += 1
        self.stage.renew(self.settings.end_to_end, bool(self.paces), self.rng)

    def take(self, entry: Entry) -> None:
        """One sample of every figure that is asked for."""
        side, pace = entry.contender.device, self.paces.get(id(entry))
        if side is not None and pace is not None:
            lend(entry, side, self.stage)
            self._on_device(entry, pace)
        if self._has_end_to_end(entry):
            call, host = entry.contender.end_to_end, self.stage.host
            spent = wall.end_to_end(self.clock, lambda: call(*host), self._freshen)
            entry.add("end_to_end", self.turn, spent)

    def _has_end_to_end(self, entry: Entry) -> bool:
        return self.settings.end_to_end and not entry.contender.transfers

    def _on_device(self, entry: Entry, pace: Pace) -> None:
        blocked = pace.blocked
        sample = self.timer.sample(entry.work, pace)
        if blocked and not pace.blocked:
            # What was taken until now lacks the gaps between launches that are in it from here on.
            entry.forget("warm", "cold", "overhead")
            entry.flags.append(pace.note)
        entry.add("warm", self.turn, sample.warm)
        entry.add("cold", self.turn, sample.cold)
        entry.add("overhead", self.turn, sample.overhead)

    def _freshen(self) -> None:
        """Change two elements of each input, so that a result kept by its inputs is of no use."""
        self._fresh += 1
        for array in self.stage.host:
            flat = array.reshape(-1)
            flat[:1], flat[1:2] = self._fresh % 100, self._fresh // 100 % 100

    def protocols(self, entry: Entry) -> None:
        """Figures as others take them, to be seen next to the default ones."""
        if self.settings.protocol == "leetcuda" and entry.contender.device is not None:
            entry.protocols["leetcuda"] = protocols.leetcuda(self.clock, entry.work)
        if self.settings.protocol == "notes" and not entry.contender.transfers:
            host, call = self.stage.host, entry.contender.end_to_end
            entry.protocols["notes"] = protocols.notes(self.clock, lambda: call(*host))


def _untimed(one: Contender, settings: Settings) -> Iterator[str]:
    """Why figures that are asked for are not there."""
    if settings.end_to_end and one.transfers:
        yield f"no time from end to end, since its transfers are {one.transfers}'s"
    if settings.device and one.off_device:
        yield f"no time on the device: {one.off_device}"


@contextmanager
def _caught(entry: Entry) -> Iterator[None]:
    """What a contender raises is its own fault, and nobody else's."""
    try:
        yield
    except Exception as error:
        entry.status, entry.detail = BROKEN, one_line(error)


def _needs_host(entry: Entry) -> bool:
    side = entry.contender.device
    return side is None or side.wrap is None


def _examine(
    entry: Entry, stage: Stage, clock: Clock, indices: Sequence[int], when: str = ""
) -> None:
    for index in indices:
        stage.show(index)
        with _caught(entry):
            verdict = examine(entry, stage, clock, when)
            if not verdict.right:
                entry.status, entry.detail = WRONG, verdict.detail
                entry.error = verdict.error
            elif not when:
                entry.error = max(entry.error or 0.0, verdict.error)
                entry.ulps = max(entry.ulps or 0.0, verdict.ulps)
        if not entry.right:
            return


def measure(
    case: Case,
    trials: Sequence[Trial],
    entries: Sequence[Entry],
    timer: DeviceTimer,
    settings: Settings,
    rng: np.random.Generator,
    tick: Tick,
) -> None:
    """Fill in the entries; those that are not ``finished`` at the end were interrupted."""
    stage = Stage(case, trials, settings.end_to_end or any(map(_needs_host, entries)))
    order = range(len(trials))[::-1]
    for entry in entries:
        tick(f"checking {entry.contender.name} {entry.contender.variant}")
        # The exact inputs first: they tell best what is wrong.
        _examine(entry, stage, timer.clock, order)
        entry.examined = True
    stage.show(0)
    timed = [e for e in entries if e.right and (settings.simulated or not e.simulated)]
    rounds = Round(stage, timer, settings, rng)
    for entry in timed:
        with _caught(entry):
            rounds.prepare(entry)
            rounds.split(entry)
    _take_rounds(rounds, timed, tick)
    stage.show(0)
    for entry in timed:
        if entry.right:
            with _caught(entry):
                rounds.protocols(entry)
    for entry in entries:
        if entry.right:
            _examine(entry, stage, timer.clock, order[:1], "after the timing, ")
        entry.finished = True


def _take_rounds(rounds: Round, timed: Sequence[Entry], tick: Tick) -> None:
    """Everybody once a round, in an order that is drawn anew, so that drift hits all alike."""
    clock, effort = rounds.clock, rounds.settings.effort
    begin = clock.now()
    with wall.no_collection():
        while any(entry.right for entry in timed) and not effort.enough(
            rounds.turn, clock.now() - begin
        ):
            rounds.begin()
            for index in rounds.rng.permutation(len(timed)):
                entry = timed[index]
                if entry.right:
                    tick(f"timing {entry.contender.name} {entry.contender.variant}")
                    with _caught(entry):
                        rounds.take(entry)
