"""A contender in a case: what was found out about it, and its samples."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpukern.bench.checking.verdict import Verdict
from gpukern.bench.model.contender import Contender
from gpukern.bench.model.finding import Findings
from gpukern.bench.model.row import WRONG


@dataclass
class Entry(Findings):
    """A contender in a case: what was found out about it, and what is lent to it."""

    contender: Contender
    lent: int | None = None
    operands: tuple[Any, ...] = ()
    out: Any = None

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
