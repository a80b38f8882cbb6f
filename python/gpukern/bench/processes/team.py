"""The processes of a comparison, and what becomes of those that a contender takes with it.

Each block of rounds is measured by a process of its own, one after another, never two at a time.
Before that all examine their contenders at once, but for those that tune themselves. Contenders
that are isolated have, for each block, one more process each.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from gpukern.bench.blocks import Entrants
from gpukern.bench.measuring import Tick
from gpukern.bench.model.case import Case
from gpukern.bench.model.finding import Finding, broken
from gpukern.bench.model.limits import Limits
from gpukern.bench.model.settings import Effort, Settings
from gpukern.bench.processes.confirm import confirmed
from gpukern.bench.processes.member import Member
from gpukern.bench.processes.room import holds
from gpukern.bench.processes.sending import pickled
from gpukern.processes import LostError


class Crew:
    """One block's process for some contenders, begun anew where one of them ends it."""

    def __init__(self, entrants: bytes, seed: int, patience: float, trusted: bool) -> None:
        self._arguments, self._patience, self._trusted = (entrants, seed), patience, trusted
        self.lost: dict[str, Finding] = {}
        self._begin()

    def _begin(self) -> None:
        self.member = Member(self._patience)
        self.member.ask("begin", *self._arguments)

    def begun(self, tick: Tick) -> None:
        """Wait until it is there."""
        self.member.answer(tick)

    def asked(self, tick: Tick, command: str, *arguments: Any) -> Any:
        """What it answers."""
        self.member.ask(command, *arguments)
        return self.member.answer(tick)

    def prepare(self, block: int, case: Case, index: int, settings: Settings) -> None:
        """Have it begin to examine everybody; ``measure`` waits for the end of that."""
        self._task = block, case, index, settings
        self._ask_to_prepare()

    def _ask_to_prepare(self) -> None:
        # Where it is gone already, waiting for it will tell.
        with suppress(LostError):
            self.member.ask("prepare", *self._task, set(self.lost))

    def prepared(self, tick: Tick) -> None:
        """Wait until everybody is examined."""
        while True:
            try:
                self.member.answer(tick)
            except LostError as error:
                self._begin_without(error, tick)
            else:
                return

    def measure(self, effort: Effort, tick: Tick) -> list[Finding]:
        """A block; whoever ends the process, or keeps it from going on, is broken from then on."""
        while True:
            try:
                found = self._measured(effort, tick)
            except LostError as error:
                self._begin_without(error, tick)
                self.prepared(tick)
            else:
                return [*found, *self.lost.values()]

    def _begin_without(self, error: LostError, tick: Tick) -> None:
        """Examine everybody anew in a new process, but for the one that was at work."""
        # Its first word is what it did, the rest is who.
        doing, _, label = error.doing.partition(" ")
        if not label or doing == "loading" or label in self.lost:
            raise RuntimeError(f"a measuring process was lost: {error}") from None
        self._begin()
        self.begun(tick)
        name, variant = self.asked(tick, "named", self._task[1], label)
        self.lost[label] = broken(name, variant, str(error))
        self._ask_to_prepare()

    def _measured(self, effort: Effort, tick: Tick) -> list[Finding]:
        ask = partial(self.asked, tick)
        block, case, index, _ = self._task
        found: list[Finding] = ask("measure", block, effort)
        if self._trusted:
            return found
        return [confirmed(ask, case, one, self._arguments[1] + index + 1) for one in found]

    def end(self) -> None:
        """End the process."""
        self.member.end()


class Team:
    """All processes of a comparison, until it is closed."""

    def __init__(
        self,
        shared: Entrants,
        apart: Sequence[Entrants],
        seed: int,
        processes: int,
        patience: float,
    ) -> None:
        self.blocks: list[list[Crew]] = []
        orders = [(pickled(shared), True)] if shared else []
        orders += [(pickled(entrants), False) for entrants in apart]
        try:
            for _ in range(processes):
                self.blocks.append([])
                for order, trusted in orders:
                    self.blocks[-1].append(Crew(order, seed, patience, trusted))
        except BaseException:
            self.close()
            raise

    @property
    def _crews(self) -> list[Crew]:
        return [crew for block in self.blocks for crew in block]

    def __len__(self) -> int:
        """How many processes there are."""
        return len(self._crews)

    def load(self, cases: Sequence[Case], tick: Tick) -> list[int]:
        """All at once, since libraries take seconds to import; how many contenders a case has."""
        for crew in self._crews:
            crew.begun(tick)
        for crew in self._crews:
            crew.member.ask("load", cases)
        counts = [crew.member.answer(tick) for crew in self._crews]
        return [sum(each) for each in zip(*counts[: len(self.blocks[0])], strict=True)]

    def limits(self, tick: Tick) -> Limits:
        """What the device can do at most, measured by the first process."""
        found: Limits = self._crews[0].asked(tick, "limits")
        return found

    def prepare(self, block: int, case: Case, index: int, settings: Settings, tick: Tick) -> None:
        """Examine everybody, in all processes at once if there is memory for that."""
        if not holds(case, len(self)):
            now = [block]
        else:
            now = list(range(len(self.blocks))) if block == 0 else []
        for number in now:
            for crew in self.blocks[number]:
                crew.prepare(number, case, index, settings)
        for number in now:
            for crew in self.blocks[number]:
                crew.prepared(tick)

    def measure(self, block: int, effort: Effort, tick: Tick) -> list[Finding]:
        """One block of what is prepared."""
        return [one for crew in self.blocks[block] for one in crew.measure(effort, tick)]

    def close(self) -> None:
        """End all processes."""
        for crew in self._crews:
            crew.end()
