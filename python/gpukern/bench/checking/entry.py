"""A contender in a case: what was found out about it, and its samples."""

from dataclasses import dataclass, field
from typing import Any

from gpukern.bench.model.contender import Contender, Work


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
    def work(self) -> Work:
        """Its work on the device, as the clock takes it."""
        side = self.contender.device
        assert side is not None
        run, operands, out = side.run, self.operands, self.out
        return Work(lambda: run(operands, out), side.wait)

    def add(self, name: str, turn: int, value: float | None) -> None:
        """The sample of a figure in a round."""
        if value is not None:
            self.samples.setdefault(name, {})[turn] = value

    def forget(self, *names: str) -> None:
        """Drop all samples of some figures."""
        for name in names:
            self.samples.pop(name, None)
