"""A case from beginning to end: examine everybody, time the right ones, examine them again."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from gpukern.bench.cases.expected import Trial
from gpukern.bench.checking.entry import Entry, is_simulated
from gpukern.bench.checking.examine import examine, lend
from gpukern.bench.checking.stage import Stage
from gpukern.bench.clock import protocols, wall
from gpukern.bench.clock.device import DeviceClock, Pace
from gpukern.bench.model.case import Case
from gpukern.bench.model.contender import Contender
from gpukern.bench.model.row import BROKEN, WRONG
from gpukern.bench.model.settings import Settings
from gpukern.text.errors import one_line

Tick = Callable[[str], None]


class Round:
    """Times the contenders of one case, one sample each a round."""

    def __init__(
        self, stage: Stage, clock: DeviceClock, settings: Settings, rng: np.random.Generator
    ) -> None:
        self.stage, self.clock, self.settings, self.rng = stage, clock, settings, rng
        self.paces: dict[int, Pace] = {}
        self._fresh = 0

    def prepare(self, entry: Entry) -> None:
        """Find out how a contender is best timed, and which figures it has none of."""
        entry.flags += _untimed(entry.contender, self.settings)
        side = entry.contender.device
        if side is None or not self.settings.device:
            return
        lend(entry, side, self.stage)
        pace = self.clock.pace(entry.work, self.settings.effort.rounds)
        self.paces[id(entry)] = pace
        if pace.note:
            entry.flags.append(pace.note)

    def split(self, entry: Entry) -> None:
        """The transfers of a call one by one, as the library's own functions do them."""
        side = entry.contender.device
        if side is None or not self._has_end_to_end(entry):
            return
        host = self.stage.host
        loads = [
            wall.wall_synchronized(lambda: [side.load(array) for array in host]) for _ in range(3)
        ]
        result = np.array(self.stage.trial.expected.nearest, order="C")
        # A new array each time, since a library may keep what it has fetched once.
        loaded = [side.load(result) for _ in range(3)]
        fetches = [wall.wall_synchronized(partial(side.fetch, one)) for one in loaded]
        entry.split = {"host to device": min(loads), "device to host": min(fetches)}

    def begin(self) -> None:
        """New places in memory for everything that the contenders of a round share."""
        self.stage.renew(self.settings.end_to_end, bool(self.paces), self.rng)

    def take(self, entry: Entry) -> None:
        """One sample of every figure that is asked for."""
        side, pace = entry.contender.device, self.paces.get(id(entry))
        if side is not None and pace is not None:
            lend(entry, side, self.stage)
            self._on_device(entry, pace)
        if self._has_end_to_end(entry):
            self._freshen()
            call = entry.contender.end_to_end
            host = self.stage.host
            entry.add("end_to_end", wall.end_to_end(lambda: call(*host)))

    def _has_end_to_end(self, entry: Entry) -> bool:
        return self.settings.end_to_end and not entry.contender.transfers

    def _on_device(self, entry: Entry, pace: Pace) -> None:
        for _ in range(2):
            blocked = pace.blocked
            sample = self.clock.sample(entry.work, pace)
            if blocked and not pace.blocked:
                entry.samples.clear()
                entry.flags.append(pace.note)
            if sample is not None:
                entry.add("warm", sample.warm)
                entry.add("cold", sample.cold)
                entry.add("overhead", sample.overhead)
                return

    def _freshen(self) -> None:
        """Change an element of each input, so that a result kept by its inputs is of no use."""
        self._fresh += 1
        for array in self.stage.host:
            array.reshape(-1)[0] = self._fresh % 100

    def protocols(self, entry: Entry) -> None:
        """Figures as others take them, to be seen next to the default ones."""
        if self.settings.protocol == "leetcuda" and entry.contender.device is not None:
            entry.protocols["leetcuda"] = protocols.leetcuda(entry.work)
        if self.settings.protocol == "notes" and not entry.contender.transfers:
            host, call = self.stage.host, entry.contender.end_to_end
            entry.protocols["notes"] = protocols.notes(lambda: call(*host))


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


def _examine(entry: Entry, stage: Stage, indices: Sequence[int], when: str = "") -> None:
    for index in indices:
        stage.show(index)
        with _caught(entry):
            verdict = examine(entry, stage, when)
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
    clock: DeviceClock,
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
        _examine(entry, stage, order)
        entry.examined = True
    stage.show(0)
    timed = [e for e in entries if e.right and (settings.simulated or not is_simulated(e))]
    rounds = Round(stage, clock, settings, rng)
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
            _examine(entry, stage, order[:1], "after the timing, ")
        entry.finished = True


def _take_rounds(rounds: Round, timed: Sequence[Entry], tick: Tick) -> None:
    """Everybody once a round, in an order that is drawn anew, so that drift hits all alike."""
    effort, begin, done = rounds.settings.effort, time.perf_counter(), 0
    with wall.no_collection():
        while timed and not effort.enough(done, time.perf_counter() - begin):
            rounds.begin()
            for index in rounds.rng.permutation(len(timed)):
                entry = timed[index]
                tick(f"timing {entry.contender.name} {entry.contender.variant}")
                if entry.right:
                    with _caught(entry):
                        rounds.take(entry)
            done += 1
