"""A block: one case measured from beginning to end in one process, this one."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np

from gpukern.bench.cases.trials import make_trials
from gpukern.bench.checking.entry import Entry
from gpukern.bench.clock.device import DeviceTimer
from gpukern.bench.clock.machine import MachineClock
from gpukern.bench.clock.wall import no_collection
from gpukern.bench.contenders.registry import Peer, begin_ahead, gather
from gpukern.bench.measuring import Measurement, Tick
from gpukern.bench.model.case import Case
from gpukern.bench.model.clock import Clock
from gpukern.bench.model.contender import Absent, Contender
from gpukern.bench.model.finding import Finding, Findings
from gpukern.bench.model.limits import Limits
from gpukern.bench.model.row import ABSENT, BROKEN
from gpukern.bench.model.settings import Effort, Settings

Entrants = list[tuple[Peer, str | None]]

_SHARED = [one.name for one in fields(Findings)]


@dataclass
class Measurer:
    """Contenders that are loaded, and the clock by which they are timed.

    ``last`` is what was found out about the case before, however far it came.
    """

    entrants: Entrants
    seed: int
    clock: Clock = field(default_factory=MachineClock)
    last: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._prepared: tuple[int, Measurement, list[tuple[Peer, Entry | Absent]]] | None = None
        self._found: dict[tuple[str, str], list[tuple[Peer, Contender | Absent]]] = {}

    @cached_property
    def timer(self) -> DeviceTimer:
        """Made when something is timed, since it sets the device to work."""
        return DeviceTimer(self.clock)

    def limits(self, tick: Tick) -> Limits:
        """What the device can do at most, measured now."""
        return self.clock.limits()

    def load(self, cases: Sequence[Case], tick: Tick) -> list[int]:
        """Load what the cases need; how many contenders each has."""
        kinds = list(dict.fromkeys((case.op, case.dtype) for case in cases))
        tick("loading compilers")
        # What libraries make while they are imported stays: a collection would only look at it.
        with no_collection():
            begin_ahead(self.entrants, kinds)
            return [len(self._loaded(case, tick)) for case in cases]

    def _loaded(self, case: Case, tick: Tick) -> list[tuple[Peer, Contender | Absent]]:
        """Who takes part in a case; loaded once for each operation and dtype."""
        mine = self._found.get((case.op, case.dtype))
        if mine is None:
            mine = []
            for peer, variant in self.entrants:
                tick(f"loading {peer.name}")
                mine += [(peer, one) for one in gather(peer, variant, case.op, case.dtype)]
            self._found[case.op, case.dtype] = mine
        return mine

    def prepare(
        self,
        block: int,
        case: Case,
        index: int,
        settings: Settings,
        tick: Tick,
        without: Collection[str] = (),
    ) -> None:
        """Examine contenders on a case, which is the ``index``-th: not those that tune themselves.

        ``without`` holds labels of others that are left out. The first block examines everybody on
        all inputs, those after it on what is timed.
        """
        mine = self._loaded(case, tick)
        tick("inputs")
        trials = make_trials(case, self.seed, only_proof=block > 0)
        found = [(peer, self._entry(one)) for peer, one in mine if not _is_among(one, without)]
        entries = [entry for _, entry in found if isinstance(entry, Entry)]
        rng = np.random.default_rng([self.seed, index, block])
        measurement = Measurement(case, trials, entries, settings, rng, splits=block == 0)
        self._prepared = block, measurement, found
        with self._telling(found):
            measurement.examine(self.clock, tick, tuning=False)

    def measure(self, block: int, effort: Effort, tick: Tick) -> list[Finding]:
        """The rounds of the block that was prepared, and all that was found out."""
        assert self._prepared is not None and self._prepared[0] == block
        _, measurement, found = self._prepared
        self._prepared = None
        with self._telling(found):
            measurement.time(self.timer, effort, tick)
        return self.last

    @contextmanager
    def _telling(self, found: list[tuple[Peer, Entry | Absent]]) -> Iterator[None]:
        """Whatever happens in it, ``last`` holds what is known in the end."""
        try:
            yield
        finally:
            self.last = [_finding(peer, one) for peer, one in found]

    def contender(self, case: Case, label: str, tick: Tick) -> Contender:
        """The one of that label."""
        known = (one for _, one in self._loaded(case, tick) if isinstance(one, Contender))
        return next(one for one in known if one.label == label)

    def _entry(self, one: Contender | Absent) -> Entry | Absent:
        if isinstance(one, Absent):
            return one
        on_device = one.device is not None or one.name == "gpukern"
        return Entry(one, simulated=self.clock.simulated and on_device)


def _is_among(one: Contender | Absent, labels: Collection[str]) -> bool:
    return isinstance(one, Contender) and one.label in labels


def _finding(peer: Peer, one: Entry | Absent) -> Finding:
    if isinstance(one, Absent):
        status = BROKEN if one.broken else ABSENT
        return Finding(one.name, one.variant, peer.version, status=status, detail=one.why)
    shared = {name: getattr(one, name) for name in _SHARED}
    who = one.contender
    return Finding(who.name, who.variant, peer.version, carried=who.carried, **shared)
