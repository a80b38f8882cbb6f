"""A contender in a case: what was found out about it, and its samples."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpukern.bench.checking.verdict import Verdict
from gpukern.bench.model.contender import Contender
from gpukern.bench.model.row import WRONG


@dataclass
class Entry:
    """A contender in a case: what was found out about it, and its samples.

    ``samples`` holds seconds by figure and number of the round: a round in which one was lost has
    none. ``simulated`` tells that its times are those of the CPU simulator.
    """

    contender: Contender
    simulated: bool = False
    status: str = ""
    detail: str = ""
    error: float | None = None
    ulps: float | None = None
    share: float | None = None
    first_call: float | None = None
    lent: int | None = None
    operands: tuple[Any, ...] = ()
    out: Any = None
    examined: bool = False
    finished: bool = False
    samples: dict[str, dict[int, float]] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    split: dict[str, float] = field(default_factory=dict)
    protocols: dict[str, float] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        """Whether nothing has been found against it."""
        return not self.status

    @property
    def start(self) -> Callable[[], Any]:
        """Start its work on the device, on what is lent to it."""
        side = self.contender.device
        assert side is not None
        run, operands, out = side.run, self.operands, self.out
        return lambda: run(operands, out)

    def learn(self, verdict: Verdict) -> None:
        """Keep the worst of what is said of it."""
        if not verdict.right:
            self.status, self.detail, self.error = WRONG, verdict.detail, verdict.error
            return
        self.error = max(self.error or 0.0, verdict.error)
        self.ulps = max(self.ulps or 0.0, verdict.ulps)
        if verdict.share is not None:
            self.share = max(self.share or 0.0, verdict.share)

    def add(self, name: str, turn: int, value: float | None) -> None:
        """The sample of a figure in a round."""
        if value is not None:
            self.samples.setdefault(name, {})[turn] = value

    def forget(self, *names: str) -> None:
        """Drop all samples of some figures."""
        for name in names:
            self.samples.pop(name, None)
