"""One panel of a picture, and what all of them share: colours, markers, axes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log10, prod
from typing import TYPE_CHECKING, Any

from gpukern.bench.model.intervals import Figure
from gpukern.bench.model.row import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import SubFigure

# Inches: a line of a list of contenders, and what is above and below it.
LINE, FRAME = 0.19, 0.85
# Beyond this many contenders a panel shows the best of each library alone.
MANY = 12
# Figures further apart than so many times are drawn on a logarithmic axis.
_FAR = 30
SMALL = 8
# Okabe and Ito's colours, which people who are blind to some still tell apart; their yellow is not
# seen on white, so that the last two are P. Tol's. A library has its own in every picture.
_COLORS = {
    "gpukern": "#0072b2",
    "NumPy": "#7f7f7f",
    "PyTorch": "#d55e00",
    "CuPy": "#009e73",
    "Numba": "#e69f00",
    "PyCUDA": "#cc79a7",
    "Triton": "#56b4e9",
    "CUDA Python": "#aa4499",
    "CUB": "#999933",
}
# One that is drawn in the colour of text, and the colours of a user's own contenders.
_IN_INK = "JAX"
_OTHERS = ("#ee7788", "#66aa55", "#8888dd", "#aa7744")
_MARKERS = "osD^vP*X"
_DASHES = ("-", "--", ":", "-.")


@dataclass(frozen=True)
class Panel:
    """What a panel shows: painted by ``paint``, or the words ``why`` there is nothing."""

    why: str = ""
    height: float = 1.0
    paint: Callable[["SubFigure"], None] | None = None

    def draw(self, place: "SubFigure") -> None:
        """Draw it there."""
        if self.paint:
            self.paint(place)
            return
        panel = place.subplots()
        panel.text(0.5, 0.5, self.why, ha="center", va="center", transform=panel.transAxes)
        panel.set_axis_off()


def ink() -> str:
    """The colour of text, for lines that have to be seen on any background."""
    from matplotlib import rcParams

    return str(rcParams["text.color"])


def count_of(row: Row) -> int:
    """Elements of the first operand."""
    return prod(row.shapes[0])


def at_largest(rows: Sequence[Row]) -> list[Row]:
    """The rows of the largest size."""
    most = max(map(count_of, rows))
    chosen = next(row.size for row in rows if count_of(row) == most)
    return [row for row in rows if row.size == chosen]


def best_of_each(rows: Sequence[Row], name: str) -> list[Row]:
    """Of each library the row with the shortest time ``name``."""
    best: dict[str, Row] = {}
    for row in rows:
        held = best.get(row.contender)
        if held is None or getattr(row, name).value < getattr(held, name).value:
            best[row.contender] = row
    return list(best.values())


def styles(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """For each contender's label: the colour of its library, the marker and dash of its variant."""
    labels = list(dict.fromkeys((row.contender, row.label) for row in rows))
    colors = _colors([name for name, _ in labels])
    found = {}
    for name, label in labels:
        index = [one for of, one in labels if of == name].index(label)
        found[label] = {
            "color": colors[name],
            "marker": _MARKERS[index % len(_MARKERS)],
            "ls": _DASHES[index % len(_DASHES)],
        }
    return found


def _colors(names: Sequence[str]) -> dict[str, str]:
    """Each library's own; those of others by the order of their names, the same in every panel."""
    others = sorted(set(names) - {*_COLORS, _IN_INK})
    found = _COLORS | {name: _OTHERS[i % len(_OTHERS)] for i, name in enumerate(others)}
    return found | {_IN_INK: ink()}


def far_apart(values: Sequence[float]) -> bool:
    """Whether only a logarithmic axis shows the least of them."""
    return max(values) > _FAR * min(values)


def title(panel: "Axes", text: str) -> None:
    """What a panel shows, above its left edge."""
    panel.set_title(text, loc="left", fontsize="medium")


def points(
    panel: "Axes", rows: Sequence[Row], figures: Sequence[Figure | None], scale: float
) -> None:
    """A list of contenders, the first on top: each a point with its interval, if it has one."""
    colors = styles(rows)
    shape: dict[str, Any] = {"fmt": "o", "ms": 5, "capsize": 3}
    for index, (row, one) in enumerate(zip(rows, figures, strict=True)):
        if one is None:
            continue
        low, high = (one.value - one.low) * scale, (one.high - one.value) * scale
        color = colors[row.label]["color"]
        panel.errorbar(one.value * scale, index, xerr=[[low], [high]], color=color, **shape)
    panel.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=SMALL)
    panel.set_ylim(len(rows) - 0.4, -0.6)
    panel.grid(axis="both", alpha=0.25)
    panel.tick_params(axis="x", labelsize=SMALL)
    panel.tick_params(axis="y", length=0)


def beside(panel: "Axes", line: int, text: str) -> None:
    """Words at the right edge of a line of a list, where no point can be."""
    place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    panel.annotate(text, (1, line), xytext=(5, 0), va="center", fontsize=SMALL, **place)


def plain_numbers(axis: "Axis", words: Callable[[float], str] = "{:,g}".format) -> None:
    """Words for the numbers on a logarithmic axis, as many as there is room for."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_formatter(FuncFormatter(lambda value, _: words(value)))
    axis.set_minor_formatter(NullFormatter())
    if high < 2.5 * low:
        axis.set_major_locator(MaxNLocator(5))
    elif high < 4 * low:
        axis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    elif high < 300 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))


def size_axis(panel: "Axes", rows: Sequence[Row], inches: float) -> None:
    """A logarithmic axis of sizes, named as far as the names have room, the largest first."""
    named = {count_of(row): row.size for row in reversed(rows)}
    low, high = min(named), max(named)
    shown: list[int] = []
    for count in sorted(named, reverse=True):
        room = inches * log10(shown[-1] / count) / log10(high / low) if shown else inches
        if room > 0.1 * max(len(named[count]), len(named[shown[-1]]) if shown else 0):
            shown.append(count)
    panel.set_xscale("log")
    panel.set_xticks(shown, [named[count] for count in shown], fontsize=SMALL)
    panel.set_xticks([count for count in named if count not in shown], [], minor=True)
    panel.tick_params(axis="y", labelsize=SMALL)
    panel.grid(alpha=0.25)
