"""What one process found out about one contender in one case; plain data, which processes send."""

from dataclasses import dataclass, field

from gpukern.bench.model.row import BROKEN


@dataclass
class Finding:
    """A contender in a case: whether it is right, and its samples, seconds by figure and round.

    ``status`` is empty for one that nothing was found against; ``simulated`` tells that its times
    are those of the CPU simulator.
    """

    contender: str
    variant: str
    version: str = ""
    simulated: bool = False
    carried: str = ""
    status: str = ""
    detail: str = ""
    error: float | None = None
    ulps: float | None = None
    share: float | None = None
    first_call: float | None = None
    examined: bool = False
    finished: bool = False
    samples: dict[str, dict[int, float]] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    split: dict[str, float] = field(default_factory=dict)
    protocols: dict[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The contender and its variant."""
        return f"{self.contender} {self.variant}".strip()

    @property
    def right(self) -> bool:
        """Whether nothing has been found against it."""
        return not self.status


def broken(label: tuple[str, str], version: str, detail: str) -> Finding:
    """A contender whose process did not live to say more."""
    return Finding(*label, version, status=BROKEN, detail=detail)
