"""The command line: ``gpukern info``, ``doctor``, ``compare`` and ``bench``."""

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gpukern.bench.cases.lists import CaseList
    from gpukern.bench.cases.plans import Size
    from gpukern.bench.comparison import Comparison
    from gpukern.bench.filling import Progress

_INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gpukern", prog_name="gpukern")
@click.pass_context
def main(context: click.Context, /) -> None:
    """CUDA kernels under NumPy arrays: what is here, what is broken, what is fast."""
    from gpukern.machine.install import find_fault

    fault = find_fault() if context.invoked_subcommand in ("compare", "bench") else None
    if fault:
        raise click.UsageError(f"{fault.subject} {fault.text}; {fault.cure}")


@main.command()
def info() -> None:
    """Show the devices, the driver, the libraries that are found and where, and versions."""
    from gpukern.machine.information import renderables
    from gpukern.machine.install import find_fault
    from gpukern.text.render import print_all

    if find_fault():
        print_all(renderables())
        return
    from gpukern.bench.contenders.registry import missing

    with _quiet_simulator():
        print_all(renderables(missing()))


@main.command()
@click.pass_context
def doctor(context: click.Context) -> None:
    """Find out whether gpukern can use a GPU here and, if not, why and what cures it.

    Exit status 0 if it can and nothing is broken, otherwise 1; also 1 where there is no GPU at all
    and the simulator works.
    """
    from gpukern.machine import doctor as checks
    from gpukern.machine.evidence import collect
    from gpukern.machine.information import findings_table
    from gpukern.text.render import print_all

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


@dataclass(frozen=True)
class _Outputs:
    """Where the result goes besides the terminal, and what it is held against."""

    json: str | None = None
    save: str | None = None
    plot: str | None = None
    markdown: str | None = None
    into: str | None = None
    against: str | None = None
    threshold: float = 0.02


class _File(click.Path):
    """A file; one to be written needs a folder that is there, before anything is measured."""

    def __init__(self, **more: Any) -> None:
        super().__init__(dir_okay=False, **more)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        path = super().convert(value, param, ctx)
        folder = Path(str(path)).resolve().parent
        if self.writable and not (folder.is_dir() and os.access(folder, os.W_OK)):
            self.fail(f"{value}: {folder} is no folder that can be written in", param, ctx)
        return path


def _result_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options that ``compare`` and ``bench`` share."""
    options = (
        click.option("--seed", type=click.IntRange(0), help="Of the inputs, to repeat a run."),
        click.option("--rounds", type=click.IntRange(1), help="How often a figure is measured."),
        click.option(
            "--simulated", is_flag=True, help="Show the simulator's times, marked as such."
        ),
        click.option(
            "--json", type=_File(writable=True), metavar="FILE", help="Write all figures."
        ),
        click.option("--markdown", type=_File(writable=True), metavar="FILE", help="Write tables."),
        click.option("--plot", type=_File(writable=True), metavar="FILE", help="Write pictures."),
        click.option("--save", type=_File(writable=True), metavar="FILE", help="For --against."),
        click.option(
            "--against",
            type=_File(exists=True),
            metavar="FILE",
            help="Report what has changed since a run that was saved; exit status 1 if slower.",
        ),
        click.option(
            "--threshold",
            type=click.FloatRange(0),
            default=0.02,
            show_default=True,
            help="For --against: smaller changes are the same.",
        ),
        click.option(
            "--processes",
            type=click.IntRange(1, 100),
            help="How many measure each case in turn; 3 on a GPU unless set, 1 on the simulator.",
        ),
        click.option(
            "--isolate/--no-isolate", default=True, help="Own contenders in own processes."
        ),
        click.option(
            "--patience",
            type=click.FloatRange(0, min_open=True),
            default=60.0,
            show_default=True,
            help="Seconds that a process may be silent.",
        ),
        click.option(
            "--budget",
            type=click.FloatRange(0, min_open=True),
            metavar="SECONDS",
            help="What everything together should take.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


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
    help="numpy, torch, cupy, numba, ..., gpukern; or one variant, as in gpukern:tiled.",
)
@click.option(
    "--mode",
    type=click.Choice(["device", "end-to-end", "both"]),
    default="both",
    show_default=True,
    help="Times on the device, from NumPy array to NumPy array, or both.",
)
@click.option(
    "--protocol",
    type=click.Choice(["default", "leetcuda", "notes"]),
    default="default",
    help="Show next to the figures what another way to take them says.",
)
@click.option("--baseline", metavar="NAME", help="Who the ratios are taken against.")
@_result_options
@click.pass_context
def compare(
    context: click.Context,
    /,
    operations: tuple[str, ...],
    sizes: "list[Size] | None",
    dtype: str | None,
    contenders: list[str] | None,
    **options: Any,
) -> None:
    """Check every contender against float64, then time the right ones side by side.

    Without operations: matmul, add and sum. Exit status 1 if a result is wrong, 2 if the command
    is, 130 if it was interrupted.
    """
    case = {"op": operations or None, "sizes": sizes, "dtype": dtype, "contenders": contenders}
    case |= {"mode": options.pop("mode"), "protocol": options.pop("protocol")}
    _run(context, [case], options)


@main.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--into",
    type=_File(exists=True, writable=True),
    metavar="FILE",
    help="Put the tables between the marks <!-- measured: begin --> and end of a Markdown file.",
)
@_result_options
@click.pass_context
def bench(context: click.Context, /, name: str, **options: Any) -> None:
    """Run a named list of cases: benchmarks/NAME.toml of the source tree, or a path.

    "readme" reproduces the tables of README.md.
    """
    _run(context, list(_case_list(name).cases), options)


def _case_list(name: str) -> "CaseList":
    from gpukern.bench.cases import lists

    with _one_sentence():
        return lists.read(name)


def _run(context: click.Context, cases: list[dict[str, Any]], options: dict[str, Any]) -> None:
    """Measure the cases into one comparison, show it, and set the exit status."""
    from gpukern.bench.comparison import Comparison, chosen_seed
    from gpukern.bench.filling import fill
    from gpukern.machine.conditions import Watch, describe_machine

    seed = options.pop("seed")
    effort = {name: options.pop(name) for name in _EFFORT}
    baseline = options.pop("baseline", None)
    outputs = _Outputs(**options)
    with _quiet_simulator():
        with _one_sentence():
            earlier = _earlier(outputs.against)
            effort["processes"] = effort["processes"] or _processes()
            steps = [_step(case, effort, baseline) for case in cases]
            machine = describe_machine()
        modes, protocols = ({case.get(key) for case in cases} for key in ("mode", "protocol"))
        result = Comparison(
            chosen_seed(seed),
            machine,
            mode=(modes.pop() or "both") if len(modes) == 1 else "both",
            protocol=(protocols.pop() or "default") if len(protocols) == 1 else "default",
            baseline=baseline,
        )
        try:
            watch = Watch()
            with _progress() as report:
                for plan, entrants, settings in steps:
                    fill(result, plan, entrants, settings, report, watch=watch)
        except KeyboardInterrupt:
            result.interrupted = True
        slower = _finish(result, outputs, earlier)
    if result.interrupted:
        context.exit(_INTERRUPTED)
    context.exit(1 if result.wrong or slower else 0)


# How much is done, and how; what a case list does not say.
_EFFORT = ("rounds", "simulated", "processes", "isolate", "patience", "budget")


def _processes() -> int:
    """Several where figures are of a GPU, and have to hold for the next run too."""
    from gpukern._core import backend

    return 3 if backend() == "cuda" else 1


def _step(case: dict[str, Any], effort: dict[str, Any], baseline: str | None) -> Any:
    from gpukern.bench.comparison import check_baseline, prepare
    from gpukern.bench.model.settings import make_settings

    asked = dict(case)
    mode, protocol = asked.pop("mode", "both"), asked.pop("protocol", "default")
    names = ("op", "sizes", "dtype", "contenders")
    plan, entrants = prepare(*(asked.get(name) for name in names))
    check_baseline(baseline, entrants)
    return plan, entrants, make_settings(mode, protocol, **effort)


def _earlier(path: str | None) -> "Comparison | None":
    from gpukern.bench.comparison import Comparison

    if path is None:
        return None
    try:
        return Comparison.from_json(Path(path))
    except (OSError, ValueError) as error:
        raise click.UsageError(f"--against {path}: {error}") from None


@contextmanager
def _one_sentence() -> Iterator[None]:
    """What is wrong with the command, or keeps it from beginning, as its error."""
    from gpukern._core import CudaError

    try:
        yield
    except (TypeError, ValueError, CudaError) as error:
        raise click.UsageError(str(error)) from None


def _finish(result: "Comparison", outputs: _Outputs, earlier: "Comparison | None") -> bool:
    """Show and write everything; whether something has become slower."""
    from gpukern.bench.model.changes import changes
    from gpukern.bench.showing.changes import report
    from gpukern.text.render import print_all

    print_all(result.renderables())
    slower = False
    if earlier is not None:
        found = changes(earlier, result, outputs.threshold)
        print_all(report(earlier, result, found))
        slower = any(change.verdict == "slower" for change in found)
    if result.interrupted:
        click.echo("interrupted: this is what was done until then", err=True)
    for path in _write(result, outputs):
        click.echo(f"written to {path}", err=True)
    return slower


def _write(result: "Comparison", outputs: _Outputs) -> Iterator[str]:
    for path in (outputs.json, outputs.save):
        if path is not None:
            result.to_json(path)
            yield path
    if outputs.markdown is not None:
        Path(outputs.markdown).write_text(result.to_markdown())
        yield outputs.markdown
    if outputs.into is not None:
        _put_into(Path(outputs.into), result.to_markdown())
        yield outputs.into
    if outputs.plot is not None:
        from gpukern.bench.showing import plots

        try:
            yield from map(str, plots.save(result, outputs.plot))
        except ImportError as error:
            raise click.ClickException(str(error)) from None


def _put_into(path: Path, tables: str) -> None:
    """Replace what stands between the marks."""
    marks = re.compile(r"(<!-- measured: begin -->\n).*?(<!-- measured: end -->)", re.DOTALL)
    text, count = marks.subn(lambda found: f"{found[1]}{tables}{found[2]}", path.read_text())
    if not count:
        raise click.ClickException(f"{path} has no <!-- measured: begin --> and end")
    path.write_text(text)


@contextmanager
def _quiet_simulator() -> Iterator[None]:
    """The commands say themselves that the simulator is at work."""
    from gpukern._core import SimulatorWarning

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

    from gpukern.text.render import console

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
