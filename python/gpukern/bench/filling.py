"""The cases one by one, from contenders by name to the rows of a comparison."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

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
from gpukern.bench.model.results import Results
from gpukern.bench.model.settings import Effort, Settings
from gpukern.bench.rows import rows_of
from gpukern.machine.conditions import Watch

Progress = Callable[[str, int, int], None]
Entrants = list[tuple[Peer, str | None]]


@dataclass
class _Offers:
    """The contenders of each operation and dtype, loaded once."""

    found: dict[tuple[str, str], list[tuple[Peer, Contender | Absent]]] = field(
        default_factory=dict
    )

    def load(self, cases: Sequence[Case], entrants: Entrants, progress: Progress | None) -> None:
        for op, dtype in dict.fromkeys((case.op, case.dtype) for case in cases):
            mine = self.found.setdefault((op, dtype), [])
            for peer, variant in entrants:
                if progress:
                    progress(f"loading {peer.name}", 0, 1)
                mine += [(peer, one) for one in gather(peer, variant, op, dtype)]

    def of(self, case: Case) -> list[tuple[Peer, Contender | Absent]]:
        return self.found[case.op, case.dtype]


class _Counter:
    """Tells ``progress`` how far it is: a step for each check and for each sample."""

    def __init__(self, progress: Progress | None, cases: Sequence[Case], offers: _Offers) -> None:
        self.progress, self.case, self.done = progress, "", 0
        self.most = [len(offers.of(case)) for case in cases]
        self.each = 1 + Effort().least

    def begin(self, index: int, case: Case) -> None:
        self.case = f"{case.op} {case.size} {case.dtype}"
        self.done = self.each * sum(self.most[:index])
        self.until = self.each * sum(self.most[: index + 1])
        self.tell("inputs")

    def tell(self, doing: str) -> None:
        if self.progress:
            self.progress(f"{self.case}: {doing.rstrip()}", self.done, self.each * sum(self.most))
        self.done = min(self.done + 1, self.until)

    def finish(self) -> None:
        total = self.each * sum(self.most)
        if self.progress:
            self.progress("done", total, total)


def fill(
    results: Results,
    cases: Sequence[Case],
    entrants: Entrants,
    settings: Settings | None = None,
    progress: Progress | None = None,
    clock: Clock | None = None,
    watch: Watch | None = None,
) -> None:
    """Measure the cases one by one into ``results``, which is whole after each case.

    ``progress`` is told what comes next, how many steps are done and how many there are. All times
    are read from ``clock``, where it is left out that of this machine; ``watch`` looks at the
    device's conditions, and is the same for all that goes into the same results. When it is
    interrupted, what was checked until then is in the rows.
    """
    settings = settings or Settings()
    offers, watch = _Offers(), watch or Watch()
    offers.load(cases, entrants, progress)
    clock = clock or MachineClock()
    timer, limits = DeviceTimer(clock), clock.limits()
    results.machine["limits"] = limits.to_dict()
    counter = _Counter(progress, cases, offers)
    for index, case in enumerate(cases):
        counter.begin(index, case)
        trials = make_trials(case, results.seed)
        found = [(peer, _entry(one, clock)) for peer, one in offers.of(case)]
        entries = [entry for _, entry in found if isinstance(entry, Entry)]
        rng = np.random.default_rng([results.seed, index])
        watch.look()
        try:
            measure(case, trials, entries, timer, settings, rng, counter.tell)
        finally:
            watch.look()
            results.machine["conditions"] = watch.summary()
            results.rows += rows_of(case, found, results.baseline, limits)
    counter.finish()


def _entry(one: Contender | Absent, clock: Clock) -> Entry | Absent:
    if isinstance(one, Absent):
        return one
    on_device = one.device is not None or one.name == "gpukern"
    return Entry(one, simulated=clock.simulated and on_device)
