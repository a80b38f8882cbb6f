"""The side-by-side, as users call it."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy.typing as npt

from gpukern.bench.blocks import Entrants
from gpukern.bench.cases.plans import Size, plan, simulable
from gpukern.bench.contenders.registry import Wanted, check_variants, gather, select
from gpukern.bench.filling import check_sendable, fill
from gpukern.bench.model.case import Case
from gpukern.bench.model.contender import Absent
from gpukern.bench.model.intervals import MARGIN
from gpukern.bench.model.results import Results
from gpukern.bench.model.settings import make_settings
from gpukern.bench.rows import FASTEST_PEER
from gpukern.bench.showing import formats, plots
from gpukern.bench.showing.progress import displayed
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
        the baseline) or "split" (transfers and compute of a call one after another, and the call in
        one piece); all that have something to show where it is left out. The picture takes its
        background and the colour of its text from matplotlib's style. Raises ValueError for another
        kind, and ImportError with a sentence where matplotlib is not installed.
        """
        return plots.draw(self, kind)

    def to_csv(self) -> str:
        """A line of comma-separated values for each row, under a line of names; times in seconds.

        The columns are those of ``to_dicts``.
        """
        return formats.comma_separated(self)

    def renderables(self, wide: bool = False) -> Iterator["RenderableType"]:
        """Tables and remarks for a rich console; ``wide`` shows all columns, room or not."""
        return formats.renderables(self, wide)

    def __str__(self) -> str:
        return as_text(*self.renderables())

    def __repr__(self) -> str:
        return f"<comparison of {len(self.rows)} rows, {len(self.wrong)} wrong, seed {self.seed}>"


def prepare(
    op: str | Sequence[str] | None,
    sizes: Sequence[Size] | None,
    dtype: npt.DTypeLike | None,
    contenders: Sequence[Wanted] | None,
    shorten: bool = False,
) -> tuple[list[Case], Entrants]:
    """Cases and contenders by name.

    What takes the simulator minutes is refused, or done at smaller sizes where ``shorten`` says so.
    Raises ValueError for what there is not.
    """
    entrants = select(contenders)
    cases = plan(op, sizes, dtype)
    if any(peer.key == "gpukern" for peer, _ in entrants):
        cases = simulable(cases, shorten)
    check_variants(entrants, _kinds(cases))
    return cases, entrants


def _kinds(cases: Sequence[Case]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((case.op, case.dtype) for case in cases))


def chosen_baseline(baseline: str | None, entrants: Entrants, cases: Sequence[Case]) -> str | None:
    """The baseline by the name under which its contender has its rows.

    Raises ValueError for one that takes no part, TypeError for what is no name.
    """
    if baseline is None:
        return None
    if not isinstance(baseline, str):
        raise TypeError(f"baseline has to be the name of a contender, not {baseline!r}")
    if baseline == FASTEST_PEER:
        return baseline
    key, _, variant = baseline.partition(":")
    mine = [one for one in entrants if key.lower() in (one[0].key.lower(), one[0].name.lower())]
    if not mine:
        names = ", ".join(dict.fromkeys(peer.key for peer, _ in entrants))
        raise ValueError(f"unknown baseline {baseline!r}; there are {names}, {FASTEST_PEER}")
    offered = [
        one
        for peer, only in mine
        if not variant or only in (None, variant)
        for kind in _kinds(cases)
        for one in gather(peer, variant or only, *kind)
    ]
    if all(isinstance(one, Absent) for one in offered):
        why = next((one.why for one in offered if isinstance(one, Absent)), "not among them")
        raise ValueError(f"the baseline {baseline!r} takes no part: {why}")
    name = mine[0][0].name
    return f"{name}:{variant}" if variant else name


def chosen_seed(seed: int | None) -> int:
    """The seed that is asked for, or one of chance."""
    if seed is None:
        return secrets.randbelow(2**32)
    return checked_count("seed", seed, 0, "a number", 2**128)


def chosen_margin(margin: float) -> float:
    """The share by which ratios may differ from 1 and be the same."""
    if isinstance(margin, bool) or not isinstance(margin, int | float):
        raise TypeError(f"margin has to be a number, 0.01 for one percent, not {margin!r}")
    if not 0 <= margin < 1:
        raise ValueError(f"margin has to be from 0 to less than 1, not {margin!r}")
    return float(margin)


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
    first_calls: bool = False,
    margin: float = MARGIN,
    on_table: Callable[[Results], None] | None = None,
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
    of the CPU simulator, marked as such. Ratios within ``margin`` of 1 are shown as "same".

    ``processes`` measure each case one after another, since what one process times differs from
    what the next one does: then the intervals hold between processes. ``isolate`` gives functions
    of yours processes of their own (which takes the package cloudpickle): one that exits, crashes,
    changes the process or is silent for more than ``patience`` seconds costs its own row and
    nothing else. ``budget`` are the seconds that everything together should take.
    ``first_calls`` measures the first call of each contender too, in a process of its own that has
    done nothing before but import the library: seconds for each of them.

    Where standard error is a terminal, and in a notebook, it shows how far it is; ``on_table`` is
    called with the results of each operation and dtype as soon as they are whole. Ctrl-C ends the
    measuring, and what was done until then is returned with ``interrupted`` set.

    Raises ValueError for a name, dtype or size that does not fit, or that would take the simulator
    minutes.
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
            first_calls=first_calls,
        )
        check_sendable(entrants, settings)
        comparison = Comparison(
            chosen_seed(seed),
            machine={},
            mode=mode,
            protocol=protocol,
            baseline=chosen_baseline(baseline, entrants, cases),
            margin=chosen_margin(margin),
        )
        if on_table is not None and not callable(on_table):
            raise TypeError(f"on_table has to be a function of results, not {on_table!r}")
    comparison.machine = describe_machine()
    with displayed() as display:
        try:
            fill(comparison, cases, entrants, settings, display.report, on_table=on_table)
        except KeyboardInterrupt:
            comparison.interrupted = True
    return comparison
