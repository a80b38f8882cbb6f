"""The command line: ``gpukern info``, ``gpukern doctor`` and ``gpukern compare``."""

import secrets
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gpukern.comparison import Comparison, Progress, Size

_INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gpukern", prog_name="gpukern")
def main() -> None:
    """CUDA kernels under NumPy arrays: what is here, what is broken, what is fast."""


@main.command()
def info() -> None:
    """Show the devices, the driver, the libraries that are found and where, and versions."""
    from gpukern.information import renderables
    from gpukern.render import print_all

    with _quiet_simulator():
        print_all(renderables())


@main.command()
@click.pass_context
def doctor(context: click.Context) -> None:
    """Find out whether gpukern can use a GPU here and, if not, why and what cures it.

    Exit status 0 if it can and nothing is broken, otherwise 1; also 1 where there is no GPU at all
    and the simulator works.
    """
    from gpukern import doctor as checks
    from gpukern.evidence import collect
    from gpukern.information import findings_table
    from gpukern.render import print_all

    seen = collect()
    findings = checks.examine(seen)
    print_all([findings_table(findings), checks.verdict(seen, findings)])
    context.exit(0 if checks.healthy(findings) else 1)


def _size(text: str) -> "Size":
    parts = text.lower().replace("_", "").split("x")
    if not all(part.isdigit() for part in parts):
        raise click.BadParameter(f"{text!r} is not a size such as 1024, 1024x2048 or 64x128x32")
    return tuple(int(part) for part in parts)


def _listed(convert: Callable[[str], Any]) -> Callable[..., list[Any] | None]:
    """A callback that takes "a,b" and repeated options alike."""

    def callback(
        context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
    ) -> list[Any] | None:
        entries = [entry.strip() for text in given for entry in text.split(",")]
        return [convert(entry) for entry in entries if entry] or None

    return callback


@main.command()
@click.argument("operations", nargs=-1, metavar="[add|sum|matmul|transpose|all]...")
@click.option(
    "--sizes",
    multiple=True,
    callback=_listed(_size),
    metavar="N,MxN,...",
    help="Sizes in place of the default ones: N, ROWSxCOLUMNS, for matmul MxKxN.",
)
@click.option("--dtype", metavar="NAME", help="float32, float64, float16, bfloat16, int32, ...")
@click.option(
    "--contenders",
    multiple=True,
    callback=_listed(str),
    metavar="NAME,...",
    help="numpy, torch, cupy, numba, gpukern; or one variant, as in gpukern:tiled.",
)
@click.option("--seed", type=click.IntRange(0), help="Of the random inputs, to repeat a run.")
@click.option("--rounds", type=click.IntRange(1), help="How often each figure is measured.")
@click.option(
    "--json",
    "path",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="Write every figure there too.",
)
@click.pass_context
def compare(
    context: click.Context,
    operations: tuple[str, ...],
    sizes: "list[Size] | None",
    dtype: str | None,
    contenders: list[str] | None,
    seed: int | None,
    rounds: int | None,
    path: str | None,
) -> None:
    """Check every contender against float64, then time the right ones side by side.

    Without operations: matmul, add and sum. Exit status 1 if a result is wrong, 2 if the command
    is, 130 if it was interrupted.
    """
    from gpukern import comparison as measuring
    from gpukern.contenders import select

    with _quiet_simulator():
        try:
            entrants = select(contenders)
            cases = measuring.plan(operations or None, sizes, dtype)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        chosen = secrets.randbelow(2**32) if seed is None else seed
        result = measuring.Comparison(chosen, measuring.describe_machine())
        try:
            with _progress() as report:
                measuring.fill(result, cases, entrants, rounds, report)
        except KeyboardInterrupt:
            result.interrupted = True
        _finish(result, path)
    if result.interrupted:
        context.exit(_INTERRUPTED)
    context.exit(1 if result.wrong else 0)


def _finish(result: "Comparison", path: str | None) -> None:
    from gpukern.render import print_all

    print_all(result.renderables())
    if result.interrupted:
        click.echo("interrupted: this is what was done until then", err=True)
    if path is not None:
        result.to_json(path)
        click.echo(f"written to {path}", err=True)


@contextmanager
def _quiet_simulator() -> Iterator[None]:
    """The commands say themselves that the simulator is at work."""
    from gpukern import SimulatorWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulatorWarning)
        yield


@contextmanager
def _progress() -> Iterator["Progress | None"]:
    """A bar on standard error while it is a terminal; otherwise nothing."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from gpukern.render import console

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def report(doing: str, done: int, total: int) -> None:
            bar.update(task, description=doing, completed=done, total=total)

        yield report
