"""What ``tune`` does: measure until the time is up, and write the table."""

import datetime
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gpukern.bench.showing.progress import Display
    from gpukern.bench.tuning.judging import DeviceJudge
    from gpukern.bench.tuning.products import Product
    from gpukern.bench.tuning.proving import Proof
    from gpukern.bench.tuning.search import Box, Search

# The share of a budget that the grid gets; the rest is for shapes that are drawn.
_SEARCHING = 0.6
# Measured when there is time left.
_LAST = "float64"


def chosen_dtypes(given: Sequence[str] | None) -> list[str]:
    """The dtypes to measure; a usage error for one that there is nothing to choose for."""
    from gpukern.bench.tuning.products import DTYPES

    unknown = [name for name in given or () if name not in DTYPES]
    if unknown:
        raise click.UsageError(f"--dtype {unknown[0]}: there are {', '.join(DTYPES)}")
    return list(dict.fromkeys(given or DTYPES))


def run(given: Sequence[str] | None, budget: float, save: str | None) -> None:
    """Measure within the budget and write what was found."""
    from gpukern import _core
    from gpukern.bench.tuning.judging import DeviceJudge
    from gpukern.bench.tuning.table import kept, lines_of, table
    from gpukern.machine.tables import own_table

    dtypes = chosen_dtypes(given)
    if _core.backend() == "sim":
        raise click.UsageError(
            "there is nothing to tune on the simulator, whose times are not a GPU's"
        )
    device = str(_core.devices()[0]["name"])
    path = Path(save) if save else own_table(device)
    search, proof = _measured(dtypes, DeviceJudge(), budget)
    measured = [name for name in dtypes if any(box.way.dtype == name for box in search.boxes)]
    earlier = path.read_text() if path.is_file() else ""
    others, lines = kept(earlier, device, measured)
    lines += lines_of(proof.kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(table(device, measured + others, _conditions(proof), lines))
    for sentence in [*_summary(measured, search, proof), f"{len(lines)} lines, written to {path}"]:
        click.echo(sentence, err=True)


def _measured(dtypes: Sequence[str], judge: "DeviceJudge", budget: float) -> "tuple[Search, Proof]":
    from gpukern.bench.showing.progress import displayed
    from gpukern.bench.tuning.proving import prove
    from gpukern.bench.tuning.search import Search

    with displayed() as display:
        clock = _Budget(display, budget)
        search = Search(judge, lambda product: clock.is_over("grid", product, _SEARCHING))
        for group in (
            [name for name in dtypes if name != _LAST],
            [name for name in dtypes if name == _LAST],
        ):
            search.run(group)
        proof = prove(
            search.choices(),
            judge,
            judge.fit,
            lambda product: clock.is_over("random shapes", product, 1.0),
        )
    return search, proof


class _Budget:
    """How much of the budget is spent, as it is shown before each product."""

    def __init__(self, display: "Display", budget: float) -> None:
        self._display, self._budget, self._begin = display, budget, time.monotonic()

    def is_over(self, what: str, product: "Product", share: float) -> bool:
        spent = time.monotonic() - self._begin
        shape = f"{product.m}x{product.k} @ {product.k}x{product.n}"
        doing = f"{what}: matmul {product.way.text} {shape}"
        self._display.report(doing, int(spent), int(self._budget))
        return spent >= share * self._budget


def _ranges(boxes: "Iterable[Box]") -> int:
    """How many of the finest boxes they are."""
    return sum(box.side**3 for box in boxes)


def _summary(dtypes: Sequence[str], search: "Search", proof: "Proof") -> list[str]:
    """What was found, a line a dtype, and how it did on random shapes."""
    found = [f"{search.measured} products on the grid, then {proof.text}"]
    for dtype in dtypes:
        whole = _ranges(box for box in search.boxes if box.way.dtype == dtype)
        won: dict[str, list[Box]] = {}
        for box, choice in proof.kept.items():
            if box.way.dtype == dtype:
                won.setdefault(choice.variant, []).append(box)
        shares = [f"{name} {_ranges(boxes)}" for name, boxes in won.items()]
        rest = whole - sum(map(_ranges, won.values()))
        found.append(f"{dtype}, of {whole} ranges: {', '.join([*shares, f'the default {rest}'])}")
    return found


def _conditions(proof: "Proof") -> list[str]:
    from gpukern import _core

    cublas = _core.cublas_report()["version"]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return [
        f"driver: {_core.driver_report()['version']}",
        f"cuBLAS: {cublas or 'none'}",
        f"gpukern: {version('gpukern')}",
        f"date: {today}",
        "made by gpukern tune: dtype, how A and B lie (n or t), alignment, ranges of M, N and K,",
        "the variant that is faster there, and the default that it is faster than",
        proof.text,
    ]
