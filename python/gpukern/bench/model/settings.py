"""What is measured, and for how long."""

from dataclasses import dataclass, field

from gpukern.text.calls import checked_count, checked_flag

MODES = ("device", "end-to-end", "both")
PROTOCOLS = ("default", "leetcuda", "notes")


@dataclass(frozen=True)
class Effort:
    """How many rounds: until ``seconds`` are spent, but from ``least`` to ``most``.

    ``rounds`` asks for exactly so many instead.
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


@dataclass(frozen=True)
class Settings:
    """What is measured and how long. ``simulated`` asks for the times of the simulator too."""

    mode: str = "both"
    protocol: str = "default"
    effort: Effort = field(default_factory=Effort)
    simulated: bool = False

    @property
    def device(self) -> bool:
        """Whether times on the device are asked for."""
        return self.mode != "end-to-end"

    @property
    def end_to_end(self) -> bool:
        """Whether times from NumPy array to NumPy array are asked for."""
        return self.mode != "device"


def make_settings(mode: str, protocol: str, rounds: int | None, simulated: bool) -> Settings:
    """Settings from what a user has asked for. Raises ValueError for a name that there is not."""
    for name, value, known in (("mode", mode, MODES), ("protocol", protocol, PROTOCOLS)):
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"unknown {name} {value!r}; there are {', '.join(known)}")
    if rounds is not None:
        rounds = checked_count("rounds", rounds, 1, "a number of measurements")
    simulated = checked_flag("simulated", simulated)
    return Settings(mode, protocol, Effort(rounds=rounds), simulated)
