"""The pictures of benchmarks/matmul.py: the ladder as bars, and the default on random shapes."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
from contests import DEFAULT, PEER, Outcome

# As in the pictures of a comparison.
OURS, THEIRS = "#0072b2", "#888888"
DTYPES = {"float32": OURS, "bfloat16": "#d55e00", "float16": "#56b4e9"}


def save(outcomes: Sequence[Outcome], beside: Path, simulated: bool) -> Iterator[Path]:
    """Write what there is to be seen, next to a file; of simulated times nothing is."""
    if simulated:
        return
    ladders = [one for one in outcomes if one.section == "ladder" and one.samples]
    chosen = [one for one in outcomes if one.section == "shapes"]
    if ladders:
        yield _save(beside, "ladder", lambda: draw_ladder(ladders[0]))
    if chosen:
        yield _save(beside, "default", lambda: draw_default(chosen))


def _save(beside: Path, name: str, draw: Callable[[], plt.Figure]) -> Path:
    path = beside.with_name(f"{beside.stem}-{name}.png")
    figure = draw()
    figure.savefig(path, dpi=100, bbox_inches="tight")
    plt.close(figure)
    return path


def draw_ladder(outcome: Outcome) -> plt.Figure:
    """TFLOP/s of every step, and of cuBLAS."""
    names = [name for name in outcome.samples if name != PEER]
    names = [*sorted(names, key=outcome.rate), PEER]
    figure, axes = plt.subplots(figsize=(8.4, 0.4 * len(names) + 1))
    rates = [outcome.rate(name) / 1e12 for name in names]
    bars = axes.barh(names, rates, color=[THEIRS if name == PEER else OURS for name in names])
    axes.bar_label(bars, fmt="%.1f", padding=3)
    axes.invert_yaxis()
    axes.set_xlabel("TFLOP/s")
    axes.set_title(f"float32 {outcome.name}", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_default(outcomes: Sequence[Outcome]) -> plt.Figure:
    """How many times as fast as cuBLAS the default is, by the size of the product."""
    figure, axes = plt.subplots(figsize=(8.4, 3.5))
    for dtype, color in DTYPES.items():
        mine = [one for one in outcomes if one.dtype == dtype]
        speeds = [(one.operations, one.speed(DEFAULT)) for one in mine]
        points = [(count, speed.value) for count, speed in speeds if speed]
        if points:
            axes.plot(*zip(*points, strict=True), "o", color=color, label=dtype, markersize=4)
    axes.axhline(1, color=THEIRS, linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("operations of the product")
    axes.set_ylabel(f"times as fast as {PEER}")
    axes.set_title("matmul, the default", loc="left")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
