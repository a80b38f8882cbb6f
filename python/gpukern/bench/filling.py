"""The cases one by one, from contenders by name to the rows of a comparison."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from gpukern.bench.blocks import Entrants, Measurer
from gpukern.bench.clock.machine import MachineClock
from gpukern.bench.measuring import Tick
from gpukern.bench.model.case import Case
from gpukern.bench.model.clock import Clock
from gpukern.bench.model.finding import Finding
from gpukern.bench.model.limits import Limits
from gpukern.bench.model.results import Results
from gpukern.bench.model.settings import Effort, Settings
from gpukern.bench.processes.firsts import first_calls
from gpukern.bench.processes.sending import pickled
from gpukern.bench.processes.team import Team
from gpukern.bench.rows import rows_of
from gpukern.machine.conditions import Watch

# Seconds of timing of one contender on one case beyond which its interval hardly shrinks.
_ENOUGH_EACH = 0.2
# The share of a budget that is spread: contenders that tune themselves, and the rounds under way
# when a case's time is over, take some more than their share, and so do pictures.
SPREAD = 0.9
Progress = Callable[[str, int, int], None]
OnTable = Callable[[Results], None]


class Bench(Protocol):
    """What measures blocks: this process, or others."""

    def load(self, cases: Sequence[Case], tick: Tick) -> list[int]:
        """Load what the cases need; how many contenders each has."""

    def limits(self, tick: Tick) -> Limits:
        """What the device can do at most."""

    def prepare(self, block: int, case: Case, index: int, settings: Settings, tick: Tick) -> None:
        """Examine everybody on a case, which is the ``index``-th, for a block of it."""

    def measure(self, block: int, effort: Effort, tick: Tick) -> list[Finding]:
        """The rounds of that block."""


class _Counter:
    """Tells ``progress`` how far it is: a step for each check and for each sample."""

    def __init__(
        self, progress: Progress | None, cases: Sequence[Case], most: Sequence[int], blocks: int
    ) -> None:
        self.progress, self.case, self.done = progress, "", 0
        self.names = [f"{case.op} {case.size} {case.dtype}" for case in cases]
        self.steps = [(1 + Effort().least) * each for each in most for _ in range(blocks)]
        self.blocks = blocks

    def begin(self, index: int, block: int) -> None:
        number = index * self.blocks + block
        self.case = self.names[index]
        self.done, self.until = sum(self.steps[:number]), sum(self.steps[: number + 1])

    def tell(self, doing: str) -> None:
        if self.progress:
            self.progress(f"{self.case}: {doing.rstrip()}", self.done, sum(self.steps))
        self.done = min(self.done + 1, self.until)

    def finish(self) -> None:
        if self.progress:
            self.progress("done", sum(self.steps), sum(self.steps))


@dataclass
class Budget:
    """Seconds for everything, spread over the cases by how many contenders each has.

    What examining them leaves of a case's share is for its blocks, as far as they make use of it.
    """

    seconds: float | None
    weights: Sequence[float]
    blocks: int
    started: float
    now: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._end, self._enough = self.started, 0.0

    def begin(self, index: int) -> None:
        """The next case begins, the ``index``-th."""
        if self.seconds is not None:
            left = self.started + SPREAD * self.seconds - self.now()
            weight = self.weights[index] / max(sum(self.weights[index:]), 1e-9)
            self._end = self.now() + left * weight
            self._enough = _ENOUGH_EACH * self.weights[index] / self.blocks

    def effort(self, whole: Effort, block: int) -> Effort:
        """What is left for a block, which begins now."""
        if self.seconds is None or whole.rounds is not None:
            return whole
        left = (self._end - self.now()) / (self.blocks - block)
        return replace(whole, seconds=min(max(left, 0.0), self._enough))


def fill(
    results: Results,
    cases: Sequence[Case],
    entrants: Entrants,
    settings: Settings | None = None,
    progress: Progress | None = None,
    clock: Clock | None = None,
    watch: Watch | None = None,
    on_table: OnTable | None = None,
) -> None:
    """Measure the cases one by one into ``results``, which is whole after each case.

    ``progress`` is told what comes next, how many steps are done and how many there are;
    ``on_table`` gets the rows of each operation and dtype when their last case is done. In one
    process, all times are read from ``clock``, where it is left out that of this machine; ``watch``
    looks at the device's conditions, and is the same for all that goes into the same results. When
    it is interrupted, what was measured until then is in the rows.
    """
    settings, watch = settings or Settings(), watch or Watch()
    shared, apart = _parted(entrants, settings)
    if settings.processes == 1 and not apart:
        here = Measurer(entrants, results.seed, clock or MachineClock())
        _fill(results, cases, entrants, here, settings, progress, watch, on_table)
        return
    crews = (shared, apart, results.seed, settings.processes, settings.patience)
    with closing(Team(*crews)) as team:
        watch.ours = 1 + len(team)
        _fill(results, cases, entrants, team, settings, progress, watch, on_table)


def check_sendable(entrants: Entrants, settings: Settings) -> None:
    """Raise ValueError for contenders that cannot be sent to the processes that measure them."""
    shared, apart = _parted(entrants, settings)
    if settings.processes > 1 or apart or settings.first_calls:
        for some in (shared, *apart):
            pickled(some)


def _parted(entrants: Entrants, settings: Settings) -> tuple[Entrants, list[Entrants]]:
    """Those who share a process, and each of those who have one of their own."""
    if not settings.isolate:
        return entrants, []
    own = [[pair] for pair in entrants if pair[0].own]
    return [pair for pair in entrants if not pair[0].own], own


def _fill(
    results: Results,
    cases: Sequence[Case],
    entrants: Entrants,
    bench: Bench,
    settings: Settings,
    progress: Progress | None,
    watch: Watch,
    on_table: OnTable | None,
) -> None:
    def loading(doing: str) -> None:
        if progress:
            progress(doing, 0, 1)

    begin = time.monotonic()
    with _spent(results, "loading"):
        most = bench.load(cases, loading)
        limits = bench.limits(loading)
    results.machine["limits"] = limits.to_dict()
    blocks = settings.processes
    counter = _Counter(progress, cases, most, blocks)
    last = {(case.op, case.dtype): index for index, case in enumerate(cases)}
    budget = Budget(settings.budget, most, blocks, begin)
    for index, case in enumerate(cases):
        found: list[list[Finding]] = []
        budget.begin(index)
        try:
            for block in range(blocks):
                watch.look()
                counter.begin(index, block)
                with _spent(results, "checking"):
                    bench.prepare(block, case, index, settings, counter.tell)
                effort = budget.effort(settings.effort, block)
                with _spent(results, "timing"):
                    found.append(bench.measure(block, effort, counter.tell))
            if settings.first_calls:
                seed, patience = results.seed, settings.patience
                first_calls(entrants, case, found[0], seed, patience, counter.tell)
        except KeyboardInterrupt:
            found += _left(bench)
            raise
        finally:
            watch.look()
            results.machine["conditions"] = watch.summary()
            results.rows += rows_of(case, found, results.baseline, limits)
        if on_table and last[case.op, case.dtype] == index:
            on_table(results.only(case.op, case.dtype))
    counter.finish()


@contextmanager
def _spent(results: Results, what: str) -> Iterator[None]:
    """Record the seconds that this part of the work takes."""
    begin = time.monotonic()
    try:
        yield
    finally:
        seconds = results.machine.setdefault("seconds", {})
        seconds[what] = seconds.get(what, 0.0) + time.monotonic() - begin


def _left(bench: Bench) -> list[list[Finding]]:
    """What the block that was interrupted has found out; of another process nothing is known."""
    return [bench.last] if isinstance(bench, Measurer) else []
