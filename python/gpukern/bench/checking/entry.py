"""A contender in a case: what was found out about it, and its samples."""

from dataclasses import dataclass, field
from typing import Any

from gpukern import _core
from gpukern.bench.model.contender import Contender, Work


@dataclass
class Entry:
    """A contender in a case: what was found out about it, and its samples, one for each round."""

    contender: Contender
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
    samples: dict[str, list[float]] = field(default_factory=dict)
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

    def add(self, name: str, value: float | None) -> None:
        """One more sample of a figure."""
        if value is not None:
            self.samples.setdefault(name, []).append(value)


def is_simulated(entry: Entry) -> bool:
    """Whether the times of a contender are those of the CPU simulator."""
    return _core.backend() == "sim" and (
        entry.contender.device is not None or entry.contender.name == "gpukern"
    )
