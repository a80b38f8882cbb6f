"""The side-by-side, as users call it."""

import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy.typing as npt

from gpukern.bench.cases.plans import Size, plan
from gpukern.bench.contenders.registry import Wanted, select
from gpukern.bench.filling import Entrants, fill
from gpukern.bench.model.case import Case
from gpukern.bench.model.results import Results
from gpukern.bench.model.settings import make_settings
from gpukern.bench.rows import FASTEST_PEER
from gpukern.bench.showing import formats, plots
from gpukern.machine.conditions import describe_machine
from gpukern.text.calls import blamed_on, called_as, checked_count
from gpukern.text.render import as_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Plot
    from rich.console import RenderableType


class Comparison(Results):
    """What was measured: ``rows``, the seed of the inputs, and the machine.

    ``str()`` gives the tables that the command prints; a notebook shows them as HTML. ``mode``,
    ``protocol`` and ``baseline`` are what was asked for.
    """

    def to_markdown(self) -> str:
        """The tables as Markdown."""
        return formats.markdown(self)

    def _repr_html_(self) -> str:
        return formats.html(self)

    def plot(self, kind: str | None = None) -> "Plot":
        """Draw it with matplotlib: a row of panels for each operation and dtype.

        ``kind`` is "time" (against the size), "ratio" (bars), "split" (of a call into transfers and
        compute) or "roofline"; all of them where it is left out. Raises ValueError for another
        kind, and ImportError with a sentence where matplotlib is not installed.
        """
        return plots.draw(self, kind)

    def renderables(self) -> Iterator["RenderableType"]:
        """Tables and remarks for a rich console."""
        return formats.renderables(self)

    def __str__(self) -> str:
        return as_text(*self.renderables())

    def __repr__(self) -> str:
        return f"<comparison of {len(self.rows)} rows, {len(self.wrong)} wrong, seed {self.seed}>"


def prepare(
    op: str | Sequence[str] | None,
    sizes: Sequence[Size] | None,
    dtype: npt.DTypeLike | None,
    contenders: Sequence[Wanted] | None,
) -> tuple[list[Case], Entrants]:
    """Cases and contenders by name. Raises ValueError for what there is not."""
    entrants = select(contenders)
    return plan(op, sizes, dtype), entrants


def check_baseline(baseline: str | None, entrants: Entrants) -> None:
    """Raise ValueError for a baseline that takes no part, TypeError for what is no name."""
    if baseline is None:
        return
    if not isinstance(baseline, str):
        raise TypeError(f"baseline has to be the name of a contender, not {baseline!r}")
    names = list(dict.fromkeys(peer.name.lower() for peer, _ in entrants))
    if baseline != FASTEST_PEER and baseline.lower().partition(":")[0] not in names:
        raise ValueError(
            f"unknown baseline {baseline!r}; there are {', '.join(names)}, {FASTEST_PEER}"
        )


def chosen_seed(seed: int | None) -> int:
    """The seed that is asked for, or one of chance."""
    if seed is None:
        return secrets.randbelow(2**32)
    return checked_count("seed", seed, 0, "a number", 2**128)


@called_as("compare")
def compare(  # noqa: PLR0913
    op: str | Sequence[str] | None = None,
    sizes: Sequence[Size] | None = None,
    dtype: npt.DTypeLike | None = None,
    contenders: Sequence[Wanted] | None = None,
    mode: str = "both",
    *,
    protocol: str = "default",
    baseline: str | None = None,
    seed: int | None = None,
    rounds: int | None = None,
    simulated: bool = False,
) -> Comparison:
    """Check every contender, then time the right ones, and check the calls that are timed.

    ``op`` is "add", "sum", "matmul", "transpose", "all" (these four), one of "subtract",
    "multiply", "maximum", "minimum", "sum axis=0", "sum axis=1", "sum axis=0,1", "max", "min",
    "argmax", "argmin", "dot" and "norm", or a list of them; ``sizes`` holds n or
    (rows, columns), for matmul (m, k, n); ``contenders`` names such as "numpy" or "gpukern:tiled",
    or functions of NumPy arrays. What is left out suits the device. ``mode`` is "device",
    "end-to-end" or "both"; ``protocol`` "leetcuda" or "notes" adds figures taken as these do.
    ``baseline`` names the contender that the ratios are taken against, or is "fastest peer", which
    takes the fastest of the others on each case. ``rounds`` fixes how often
    each figure is measured. The same ``seed`` gives the same inputs. ``simulated`` shows the times
    of the CPU simulator, marked as such. Raises ValueError for a name, dtype or size that does not
    fit.
    """
    with blamed_on("compare"):
        cases, entrants = prepare(op, sizes, dtype, contenders)
        settings = make_settings(mode, protocol, rounds, simulated)
        check_baseline(baseline, entrants)
        chosen = chosen_seed(seed)
    comparison = Comparison(
        chosen, describe_machine(), mode=mode, protocol=protocol, baseline=baseline
    )
    fill(comparison, cases, entrants, settings)
    return comparison
