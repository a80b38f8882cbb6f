"""A comparison as pictures, drawn by matplotlib."""

from collections.abc import Callable, Sequence
from itertools import groupby
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpukern.bench.model.results import Results
from gpukern.bench.model.row import RIGHT, Row
from gpukern.text.units import seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

KINDS = ("time", "ratio", "split", "roofline")
_PANEL = (8.0, 6.5)
_PHASES = ("host to device", "compute", "device to host", "rest")
_PHASE_COLORS = ("#4477aa", "#ee6677", "#66ccee", "#bbbbbb")
_MARKERS = "osD^vP*X"
# As many as there are colours: a library has the same one in every picture.
_LIBRARIES = (
    *("gpukern", "NumPy", "PyTorch", "CuPy", "Numba"),
    *("PyCUDA", "Triton", "JAX", "CUDA Python", "CUB"),
)


def draw(comparison: Results, kind: str | None = None) -> "Figure":
    """A figure with a row of panels for each operation and dtype; see ``Comparison.plot``."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"plot: unknown kind {kind!r}; there are {', '.join(KINDS)}")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plot: needs matplotlib: pip install matplotlib") from error
    rows = [row for row in comparison.rows if row.status == RIGHT]
    groups = [(key, list(group)) for key, group in groupby(rows, key=lambda r: (r.op, r.dtype))]
    kinds = KINDS if kind is None else (kind,)
    across = min(2, len(kinds))
    down = -(-len(kinds) // across)
    height = max(1, len(groups)) * down
    figure = Figure(figsize=(_PANEL[0] * across, _PANEL[1] * height), layout="constrained")
    panels = figure.subplots(height, across, squeeze=False)
    for index, ((op, dtype), group) in enumerate(groups):
        mine = [panel for line in panels[index * down : (index + 1) * down] for panel in line]
        for panel, name in zip(mine, kinds, strict=False):
            panel.set_title(f"{op} {dtype}: {_TITLES[name]}", loc="left", fontsize=11)
            _DRAWERS[name](panel, comparison, group)
    where = "CPU simulator" if comparison.simulated else comparison.machine["device"]
    figure.suptitle(f"gpukern compare on {where}, seed {comparison.seed}", fontsize=12)
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
        draw(comparison.only(op, dtype)).savefig(target, dpi=80)
        written.append(target)
    return written


def _nothing(panel: "Axes", why: str) -> None:
    panel.text(0.5, 0.5, why, ha="center", va="center", transform=panel.transAxes, color="gray")
    panel.set_axis_off()


def _count(row: Row) -> int:
    return prod(row.shapes[0])


def _styles(rows: Sequence[Row]) -> dict[tuple[str, str], dict[str, Any]]:
    """A colour for each library, a marker for each of its variants: the same in every panel."""
    from matplotlib import colormaps

    labels = list(dict.fromkeys((row.contender, row.variant) for row in rows))
    names = list(dict.fromkeys([*_LIBRARIES, *(name for name, _ in labels)]))
    styles = {}
    for name, variant in labels:
        mine = [v for n, v in labels if n == name]
        styles[name, variant] = {
            "color": colormaps["tab10"](names.index(name) % 10),
            "marker": _MARKERS[mine.index(variant) % len(_MARKERS)],
        }
    return styles


def _legend(panel: "Axes", **more: Any) -> None:
    """Under the panel, where it hides nothing."""
    panel.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.1), frameon=False, **more)


def _plain_numbers(axis: "Axis") -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
    if high < 3 * low:
        axis.set_major_locator(LogLocator(subs=range(1, 10)))
    elif high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))


def _time(panel: "Axes", comparison: Results, rows: Sequence[Row]) -> None:
    """Solid: on the device. Dashed: end to end."""
    shown = [row for row in rows if row.on_device or row.end_to_end]
    if not shown:
        _nothing(panel, "no times were taken")
        return
    for label, style in _styles(rows).items():
        mine = [row for row in shown if (row.contender, row.variant) == label]
        for name, line in (("on_device", "-"), ("end_to_end", "--")):
            points = sorted((_count(r), getattr(r, name).value) for r in mine if getattr(r, name))
            if points:
                text = " ".join(label) if name == "on_device" or not mine[0].on_device else None
                panel.plot(*zip(*points, strict=True), line, label=text, lw=1.2, ms=5, **style)
    panel.set(xscale="log", yscale="log", xlabel="elements of the first operand", ylabel="seconds")
    panel.grid(alpha=0.3, which="both")
    _legend(panel, ncols=3, title="solid: on the device, dashed: end to end")


def _largest(rows: Sequence[Row]) -> list[Row]:
    most = max(_count(row) for row in rows)
    chosen = next(row.size for row in rows if _count(row) == most)
    return [row for row in rows if row.size == chosen]


def _ratio(panel: "Axes", comparison: Results, rows: Sequence[Row]) -> None:
    """How many times as fast as the baseline, with the interval, at the largest size."""
    name = "end_to_end_ratio" if comparison.mode == "end-to-end" else "device_ratio"
    shown = [row for row in _largest(rows) if getattr(row, name)]
    if not shown:
        name = "end_to_end_ratio"
        shown = [row for row in _largest(rows) if getattr(row, name)]
    if not shown:
        _nothing(panel, "no ratios: fewer than two contenders were timed")
        return
    shown.sort(key=lambda row: getattr(row, name).value)
    figures = [getattr(row, name) for row in shown]
    values = [one.value for one in figures]
    errors = [[o.value - o.low for o in figures], [o.high - o.value for o in figures]]
    styles = _styles(rows)
    colors = [styles[row.contender, row.variant]["color"] for row in shown]
    panel.barh([row.label for row in shown], values, xerr=errors, color=colors, capsize=2)
    for index, value in enumerate(values):
        text = f" {value:.2f}x" if value >= 0.1 else f" {value:.2g}x"
        panel.annotate(text, (figures[index].high, index), va="center", fontsize=8)
    panel.axvline(1, color="black", lw=1)
    where = "on the device" if name == "device_ratio" else "end to end"
    base = _baseline(_largest(rows), name)
    panel.set_xlabel(f"times as fast as {base}, {where}, size {shown[0].size}")
    panel.set_xscale("log")
    panel.margins(x=0.15)
    _plain_numbers(panel.xaxis)
    panel.tick_params(axis="y", labelsize=8)


def _baseline(rows: Sequence[Row], name: str) -> str:
    """The row that was timed and has no ratio."""
    time = "on_device" if name == "device_ratio" else "end_to_end"
    found = [row.label for row in rows if getattr(row, time) and not getattr(row, name)]
    return found[0] if found else "the baseline"


def _split(panel: "Axes", comparison: Results, rows: Sequence[Row]) -> None:
    """Each call from NumPy array to NumPy array, at the largest size."""
    shown = [row for row in _largest(rows) if row.phases()]
    if not shown:
        _nothing(panel, "no calls were split into transfers and compute")
        return
    shown.sort(key=lambda row: -row.end_to_end.value if row.end_to_end else 0.0)
    labels = [row.label for row in shown]
    left = [0.0] * len(shown)
    for phase, color in zip(_PHASES, _PHASE_COLORS, strict=True):
        widths = [1e3 * row.phases()[phase] for row in shown]
        panel.barh(labels, widths, left=left, color=color, label=phase)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    for index, row in enumerate(shown):
        if row.end_to_end:
            text = f" {seconds(row.end_to_end.value)}"
            panel.annotate(text, (left[index], index), va="center", fontsize=8)
    panel.set_xlabel(f"milliseconds, size {shown[0].size}")
    panel.margins(x=0.12)
    panel.tick_params(axis="y", labelsize=8)
    _legend(panel, ncols=4)


def _roofline(panel: "Axes", comparison: Results, rows: Sequence[Row]) -> None:
    """Rate against intensity: under the roof of bandwidth and peak."""
    shown = [row for row in rows if row.on_device and not row.simulated]
    limits = comparison.machine.get("limits", {})
    if not shown or not limits.get("copy_bandwidth"):
        _nothing(panel, "no roofline: no times of a GPU")
        return
    for label, style in _styles(rows).items():
        mine = [row for row in shown if (row.contender, row.variant) == label]
        points = [
            (_intensity(row), _work(row) / row.on_device.value) for row in mine if row.on_device
        ]
        if points:
            panel.plot(*zip(*points, strict=True), ls="", ms=6, label=" ".join(label), **style)
    peak = limits["peak_operations"].get(shown[0].dtype)
    bandwidth = limits["copy_bandwidth"]
    ridge = peak / bandwidth if peak else 0.0
    low, high = (f(_intensity(row) for row in shown) for f in (min, max))
    corners = [min(low, ridge or low) / 4, ridge, max(high, ridge) * 4] if peak else [low, high]
    roof = [min(x * bandwidth, peak or x * bandwidth) for x in corners]
    text = f"copy {bandwidth / 1e9:.0f} GB/s" + (
        f", peak {peak / 1e12:.0f} TFLOP/s" if peak else ""
    )
    panel.plot(corners, roof, color="black", lw=1.5, label=text)
    panel.set(xscale="log", yscale="log", xlabel="operations per byte", ylabel="operations/s")
    panel.grid(alpha=0.3, which="both")
    _legend(panel, ncols=3)


def _work(row: Row) -> int:
    """Operations; for what only moves or adds, one for each element."""
    return row.operations or _count(row)


def _intensity(row: Row) -> float:
    return _work(row) / row.bytes_moved


_TITLES = {
    "time": "time against size",
    "ratio": "ratio to the baseline",
    "split": "where the time of a call goes",
    "roofline": "roofline",
}
_DRAWERS: dict[str, Callable[["Axes", Results, Sequence[Row]], None]] = {
    "time": _time,
    "ratio": _ratio,
    "split": _split,
    "roofline": _roofline,
}
