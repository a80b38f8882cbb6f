"""What ``tune`` does: measure until the time is up, and write the table."""

import datetime
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gpukern.bench import tuning


def chosen_dtypes(given: Sequence[str] | None) -> list[str]:
    """The dtypes to measure; a usage error for one that there is nothing to choose for."""
    from gpukern.bench.tuning import DTYPES

    unknown = [name for name in given or () if name not in DTYPES]
    if unknown:
        raise click.UsageError(f"--dtype {unknown[0]}: there are {', '.join(DTYPES)}")
    return list(dict.fromkeys(given or DTYPES))


def run(given: Sequence[str] | None, budget: float, save: str | None) -> None:
    """Measure within the budget and write what was found."""
    from gpukern import _core
    from gpukern.bench import tuning
    from gpukern.machine.tables import own_table

    dtypes = chosen_dtypes(given)
    if _core.backend() == "sim":
        raise click.UsageError(
            "there is nothing to tune on the simulator, whose times are not a GPU's"
        )
    device = str(_core.devices()[0]["name"])
    path = Path(save) if save else own_table(device)
    contests = {dtype: tuning.contest(dtype) for dtype in dtypes}
    lines = _measured(dtypes, tuning.measuring(), contests, budget)
    earlier = path.read_text() if path.is_file() else ""
    lines += tuning.kept(earlier, device, dtypes)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tuning.table(device, _conditions(), lines))
    click.echo(f"{len(lines)} products, written to {path}", err=True)


def _measured(
    dtypes: Sequence[str],
    measure: "tuning.Measure",
    contests: "dict[str, tuning.Contest]",
    budget: float,
) -> list[str]:
    from gpukern.bench import tuning
    from gpukern.bench.showing.progress import displayed

    begin = time.monotonic()
    with displayed() as display:

        def is_over(product: tuning.Product) -> bool:
            spent = time.monotonic() - begin
            shape = f"{product.m}x{product.k} @ {product.k}x{product.n}"
            display.report(f"matmul {product.way.text} {shape}", int(spent), int(budget))
            return spent >= budget

        return list(tuning.tune(dtypes, measure, contests, is_over))


def _conditions() -> list[str]:
    from gpukern import _core

    cublas = _core.cublas_report()["version"]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return [
        f"driver: {_core.driver_report()['version']}",
        f"cuBLAS: {cublas or 'none'}",
        f"gpukern: {version('gpukern')}",
        f"date: {today}",
        "made by gpukern tune: dtype, how A and B lie (n or t), alignment, M, N, K, and the",
        "variants from the fastest on",
    ]
