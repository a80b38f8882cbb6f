"""The side-by-side, as users call it."""

import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy.typing as npt

from gpukern.bench.blocks import Entrants
from gpukern.bench.cases.plans import Size, plan
from gpukern.bench.contenders.registry import Wanted, select
from gpukern.bench.filling import fill
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
        """Draw it with matplotlib: panels one below the other, for each operation and dtype.

        ``kind`` is "rate" (bandwidth or arithmetic on the device against the size, with the
        device's limit), "time" (from NumPy arrays to a NumPy array against the size), "ratio" (to
        the baseline) or "split" (of a call into transfers and compute); all that have something to
        show where it is left out. The picture takes its background and the colour of its text from
        matplotlib's style. Raises ValueError for another kind, and ImportError with a sentence
        where matplotlib is not installed.
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
    processes: int = 1,
    isolate: bool = False,
    patience: float = 60.0,
    budget: float | None = None,
) -> Comparison:
    """Check every contender against float64, then time the right ones, and check them again.

    ``op`` is "add", "sum", "matmul", "transpose", "all" (these four), one of "subtract",
    "multiply", "maximum", "minimum", "sum axis=0", "sum axis=1", "sum axis=0,1", "max", "min",
    "argmax", "argmin", "dot" and "norm", or a list of them; ``sizes`` holds n or
    (rows, columns), for matmul (m, k, n); ``contenders`` names such as "numpy" or "gpukern:tiled",
    or functions of NumPy arrays. What is left out suits the device. ``mode`` is "device",
    "end-to-end" or "both"; ``protocol`` "leetcuda" or "notes" adds figures taken as these do.
    ``baseline`` names the contender that the ratios are taken against, or is "fastest peer", which
    takes the fastest of the others on each case. ``rounds`` fixes how often
    each figure is measured. The same ``seed`` gives the same inputs. ``simulated`` shows the times
    of the CPU simulator, marked as such.

    ``processes`` measure each case one after another, since what one process times differs from
    what the next one does: then the intervals hold between processes. ``isolate`` gives functions
    of yours processes of their own (which takes the package cloudpickle): one that exits, crashes,
    changes the process or is silent for more than ``patience`` seconds costs its own row and
    nothing else. ``budget`` are the seconds that everything together should take. Ctrl-C ends the
    measuring, and what was done until then is returned with ``interrupted`` set.

    Raises ValueError for a name, dtype or size that does not fit.
    """
    with blamed_on("compare"):
        cases, entrants = prepare(op, sizes, dtype, contenders)
        settings = make_settings(
            mode,
            protocol,
            rounds,
            simulated,
            processes=processes,
            isolate=isolate,
            patience=patience,
            budget=budget,
        )
        check_baseline(baseline, entrants)
        chosen = chosen_seed(seed)
    comparison = Comparison(
        chosen, describe_machine(), mode=mode, protocol=protocol, baseline=baseline
    )
    try:
        fill(comparison, cases, entrants, settings)
    except KeyboardInterrupt:
        comparison.interrupted = True
    return comparison
