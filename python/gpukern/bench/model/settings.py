"""What is measured, and for how long."""

import math
from dataclasses import dataclass, field

from gpukern.text.calls import checked_count, checked_flag

MODES = ("device", "end-to-end", "both")
PROTOCOLS = ("default", "leetcuda", "notes")


@dataclass(frozen=True)
class Effort:
    """How many rounds of a process: until ``seconds`` are spent, but from ``least`` to ``most``.

    A contender that takes long takes part in fewer of them than the others, from ``least`` on.
    ``rounds`` asks for exactly so many of everybody instead.
    """

    seconds: float = 1.5
    least: int = 8
    most: int = 30
    rounds: int | None = None

    def enough(self, done: int, spent: float) -> bool:
        """Whether so many rounds in so many seconds are enough."""
        if self.rounds is not None:
            return done >= self.rounds
        return done >= self.most or (done >= self.least and spent >= self.seconds)

    def rounds_of(self, each: float, sharing: int) -> int:
        """The rounds of a contender that takes ``each`` seconds in one and shares the time."""
        if self.rounds is not None:
            return self.rounds
        fit = math.ceil(self.seconds / sharing / each) if each > 0 else self.most
        return min(self.most, max(self.least, fit))


@dataclass(frozen=True)
class Settings:
    """What is measured and how long. ``simulated`` asks for the times of the simulator too.

    ``first_calls`` asks for that of each contender in a process that has done nothing before.

    Each case is measured by ``processes`` one after another; ``isolate`` gives users' contenders
    processes of their own, which may be silent for ``patience`` seconds. ``budget`` are the seconds
    for everything together.
    """

    mode: str = "both"
    protocol: str = "default"
    effort: Effort = field(default_factory=Effort)
    simulated: bool = False
    processes: int = 1
    isolate: bool = False
    patience: float = 60.0
    budget: float | None = None
    first_calls: bool = False

    @property
    def device(self) -> bool:
        """Whether times on the device are asked for."""
        return self.mode != "end-to-end"

    @property
    def end_to_end(self) -> bool:
        """Whether times from NumPy array to NumPy array are asked for."""
        return self.mode != "device"


def make_settings(  # noqa: PLR0913
    mode: str,
    protocol: str,
    rounds: int | None,
    simulated: bool,
    *,
    processes: int = 1,
    isolate: bool = False,
    patience: float = 60.0,
    budget: float | None = None,
    first_calls: bool = False,
) -> Settings:
    """Settings from what a user has asked for. Raises ValueError for a name that there is not."""
    for name, value, known in (("mode", mode, MODES), ("protocol", protocol, PROTOCOLS)):
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"unknown {name} {value!r}; there are {', '.join(known)}")
    processes = checked_count("processes", processes, 1, "a number of processes", 100)
    if rounds is not None:
        rounds = checked_count("rounds", rounds, 1, "a number of measurements")
        rounds = -(-rounds // processes)
    return Settings(
        mode,
        protocol,
        _effort(rounds, processes, budget is not None),
        checked_flag("simulated", simulated),
        processes,
        checked_flag("isolate", isolate),
        _seconds("patience", patience),
        None if budget is None else _seconds("budget", budget),
        checked_flag("first_calls", first_calls),
    )


def _effort(rounds: int | None, processes: int, hurried: bool) -> Effort:
    """The rounds of one process, so that all of them together are as many as of one alone.

    Within a budget three of all processes together are enough of what takes long.
    """
    whole = Effort()
    least = max(1, -(-3 // processes)) if hurried else max(3, -(-whole.least // processes))
    return Effort(whole.seconds / processes, least, max(least, whole.most // processes), rounds)


def _seconds(name: str, value: float) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number:
        raise TypeError(f"{name} has to be seconds, not {value!r}")
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} has to be seconds, more than 0, not {value!r}")
    return float(value)
