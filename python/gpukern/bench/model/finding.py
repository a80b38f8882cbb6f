"""What one process found out about one contender in one case; plain data, which processes send."""

from dataclasses import dataclass, field

from gpukern.bench.model.row import BROKEN
from gpukern.bench.model.split import Split


@dataclass(kw_only=True)
class Findings:
    """What is found out: whether it is right, and its samples, seconds by figure and round.

    ``status`` is empty for one that nothing was found against; ``simulated`` tells that its times
    are those of the CPU simulator. A round in which a sample was lost has none.
    """

    simulated: bool = False
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
    split: Split = field(default_factory=dict)
    protocols: dict[str, float] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        """Whether nothing has been found against it."""
        return not self.status


@dataclass
class Finding(Findings):
    """The same with the name of the contender, as it is sent."""

    contender: str
    variant: str
    version: str = ""
    carried: str = ""

    @property
    def label(self) -> str:
        """The name and the variant."""
        return f"{self.contender} {self.variant}".strip()


def broken(name: str, variant: str, detail: str) -> Finding:
    """A contender whose process did not live to say more."""
    return Finding(name, variant, status=BROKEN, detail=detail)
