"""A block: one case measured from beginning to end in one process, this one."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, fields

import numpy as np

from gpukern.bench.cases.trials import make_trials
from gpukern.bench.checking.entry import Entry
from gpukern.bench.clock.device import DeviceTimer
from gpukern.bench.clock.machine import MachineClock
from gpukern.bench.contenders.registry import Peer, gather
from gpukern.bench.measuring import measure
from gpukern.bench.model.case import Case
from gpukern.bench.model.clock import Clock
from gpukern.bench.model.contender import Absent, Contender
from gpukern.bench.model.finding import Finding
from gpukern.bench.model.limits import Limits
from gpukern.bench.model.row import ABSENT, BROKEN
from gpukern.bench.model.settings import Settings

Entrants = list[tuple[Peer, str | None]]
Tick = Callable[[str], None]

# What an entry and its finding have in common.
_SHARED = {one.name for one in fields(Entry)} & {one.name for one in fields(Finding)}


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
        self.timer = DeviceTimer(self.clock)
        self._found: dict[tuple[str, str], list[tuple[Peer, Contender | Absent]]] = {}

    def limits(self) -> Limits:
        """What the device can do at most, measured now."""
        return self.clock.limits()

    def load(self, op: str, dtype: str, tick: Tick) -> int:
        """Load who takes part in that operation and dtype, unless done; how many they are."""
        mine = self._found.get((op, dtype))
        if mine is None:
            mine = []
            for peer, variant in self.entrants:
                tick(f"loading {peer.name}")
                mine += [(peer, one) for one in gather(peer, variant, op, dtype)]
            self._found[op, dtype] = mine
        return len(mine)

    def measure(
        self,
        block: int,
        case: Case,
        index: int,
        settings: Settings,
        tick: Tick,
        without: Collection[str] = (),
    ) -> list[Finding]:
        """A block of rounds of the case, which is the ``index``-th, by all contenders but some.

        ``without`` holds their labels. The first block examines everybody on all inputs, those
        after it on what is timed.
        """
        self.load(case.op, case.dtype, tick)
        tick("inputs")
        trials = make_trials(case, self.seed, only_proof=block > 0)
        mine = self._found[case.op, case.dtype]
        found = [(peer, self._entry(one)) for peer, one in mine if _label(one) not in without]
        entries = [entry for _, entry in found if isinstance(entry, Entry)]
        rng = np.random.default_rng([self.seed, index, block])
        try:
            measure(case, trials, entries, self.timer, settings, rng, tick)
        finally:
            self.last = [_finding(peer, one) for peer, one in found]
        return self.last

    def contender(self, case: Case, label: str) -> Contender:
        """The one of that label, which is loaded."""
        for _, one in self._found[case.op, case.dtype]:
            if isinstance(one, Contender) and _label(one) == label:
                return one
        raise KeyError(label)

    def _entry(self, one: Contender | Absent) -> Entry | Absent:
        if isinstance(one, Absent):
            return one
        on_device = one.device is not None or one.name == "gpukern"
        return Entry(one, simulated=self.clock.simulated and on_device)


def _label(one: Contender | Absent) -> str:
    return f"{one.name} {one.variant}".strip()


def _finding(peer: Peer, one: Entry | Absent) -> Finding:
    if isinstance(one, Absent):
        status = BROKEN if one.broken else ABSENT
        return Finding(one.name, one.variant, peer.version, status=status, detail=one.why)
    shared = {name: getattr(one, name) for name in _SHARED}
    shared.pop("contender")
    who = one.contender
    return Finding(who.name, who.variant, peer.version, carried=who.carried, **shared)
