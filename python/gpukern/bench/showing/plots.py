"""A comparison as pictures, drawn by matplotlib.

They follow matplotlib's own settings (rcParams), so that a dark style gives dark pictures, and are
as wide as a notebook or a README shows them: nothing has to be made larger to be read.
"""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from gpukern.bench.model.results import Results
from gpukern.bench.model.row import RIGHT, Row
from gpukern.bench.showing.panels import against_size, ratios, splits
from gpukern.bench.showing.panels.panel import Panel
from gpukern.machine.conditions import disturbances

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

# What each kind draws, or says why it cannot.
_PANELS = {
    "rate": against_size.rates,
    "time": against_size.times,
    "ratio": ratios.panel,
    "split": splits.panel,
}
KINDS = tuple(_PANELS)
_WIDTH = 8.4
_TITLE_HEIGHT, _TITLE_LINE = 0.35, 0.2
_DPI = 100


def draw(comparison: Results, kind: str | None = None) -> "Figure":
    """A figure with panels for each operation and dtype; see ``Comparison.plot``."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"plot: unknown kind {kind!r}; there are {', '.join(KINDS)}")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plot: needs matplotlib: pip install matplotlib") from error
    pages = [(title, _panels(comparison, rows, kind)) for title, rows in _groups(comparison)]
    if not pages:
        pages = [("", [Panel("nothing to draw: no contender was right")])]
    disturbed = disturbances(comparison.machine)
    above = _TITLE_HEIGHT + _TITLE_LINE * len(disturbed)
    heights = [above + sum(panel.height for panel in panels) for _, panels in pages]
    figure = Figure(figsize=(_WIDTH, sum(heights)), dpi=_DPI, layout="constrained")
    parts = figure.subfigures(len(pages), 1, squeeze=False, height_ratios=heights)[:, 0]
    for part, (title, panels) in zip(parts, pages, strict=True):
        head = f"{title} on {_where(comparison)}".strip()
        _page(part, "\n".join([head, *disturbed]), panels)
    return figure


def save(comparison: Results, path: str | Path) -> list[Path]:
    """Write a picture for each operation and dtype; their names come from ``path``."""
    path = Path(path)
    rows = [row for row in comparison.rows if row.status == RIGHT]
    groups = list(dict.fromkeys((row.op, row.dtype) for row in rows))
    written = []
    for op, dtype in groups:
        name = path.stem if len(groups) == 1 else f"{path.stem}-{op}-{dtype}"
        target = path.with_name(name + (path.suffix or ".png"))
        draw(comparison.only(op, dtype)).savefig(target)
        written.append(target)
    return written


def _groups(comparison: Results) -> list[tuple[str, list[Row]]]:
    """The right rows of each operation and dtype, with what they are called."""
    rows = [row for row in comparison.rows if row.status == RIGHT]
    return [
        (f"{op} {dtype}", list(group))
        for (op, dtype), group in groupby(rows, key=lambda row: (row.op, row.dtype))
    ]


def _where(comparison: Results) -> str:
    if comparison.simulated:
        return "the CPU simulator, whose times say nothing of a GPU"
    return str(comparison.machine["device"])


def _panels(comparison: Results, rows: Sequence[Row], kind: str | None) -> list[Panel]:
    """The panel that was asked for; otherwise all that have something to show.

    Of one size alone the times of calls are the marks over the bars of their phases.
    """
    if kind is not None:
        return [_PANELS[kind](comparison, rows)]
    found = {name: make(comparison, rows) for name, make in _PANELS.items()}
    if found["split"].paint and len({row.size for row in rows}) == 1:
        del found["time"]
    return [one for one in found.values() if one.paint] or [Panel("no times were taken")]


def _page(part: "SubFigure", title: str, panels: Sequence[Panel]) -> None:
    part.suptitle(title, fontsize="large", fontweight="bold", x=0.01, ha="left")
    heights = [panel.height for panel in panels]
    for place, panel in zip(
        part.subfigures(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0],
        panels,
        strict=True,
    ):
        panel.draw(place)
