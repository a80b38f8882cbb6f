"""The command line: ``gpukern info``, ``doctor``, ``compare`` and ``bench``."""

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gpukern.bench.blocks import Entrants
    from gpukern.bench.cases.lists import CaseList
    from gpukern.bench.comparison import Comparison
    from gpukern.bench.model.case import Case
    from gpukern.bench.model.results import Results
    from gpukern.bench.model.settings import Settings
    from gpukern.bench.showing.progress import Display

_INTERRUPTED = 130
# As the name of a file: standard output.
_STDOUT = "-"


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


def _parsed_sizes(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> list[tuple[int, ...]] | None:
    """The sizes of "a,b" and of repeated options alike."""
    from gpukern.bench.cases.sizes import parse_sizes

    try:
        return [size for text in given for size in parse_sizes(text)] or None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _parsed_names(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> list[str] | None:
    """The names of "a,b" and of repeated options alike."""
    entries = [entry.strip() for text in given for entry in text.split(",")]
    return [entry for entry in entries if entry] or None


@dataclass(frozen=True)
class _Outputs:
    """Where the result goes besides the terminal, and what it is held against."""

    json: str | None = None
    csv: str | None = None
    save: str | None = None
    plot: str | None = None
    markdown: str | None = None
    into: str | None = None
    against: str | None = None
    threshold: float = 0.02
    wide: bool = False

    @property
    def tables(self) -> bool:
        """Whether tables go to standard output, and no data."""
        return _STDOUT not in (self.json, self.csv, self.markdown)

    def check(self) -> None:
        """Raise UsageError for what could not be written once all is measured."""
        asked = {"--json": self.json, "--csv": self.csv, "--markdown": self.markdown}
        to_stdout = [name for name, path in asked.items() if path == _STDOUT]
        if len(to_stdout) > 1:
            raise click.UsageError(f"{' and '.join(to_stdout)} cannot both go to standard output")
        if self.into is not None and not _MARKS.search(Path(self.into).read_text()):
            raise click.UsageError(f"{self.into} has no {_BEGIN} and end")
        if self.plot is not None:
            _check_plot(Path(self.plot))


_BEGIN = "<!-- measured: begin -->"
_MARKS = re.compile(rf"({_BEGIN}\n).*?(<!-- measured: end -->)", re.DOTALL)


def _check_plot(path: Path) -> None:
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise click.UsageError("--plot needs matplotlib: pip install matplotlib") from None
    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix and path.suffix[1:].lower() not in known:
        raise click.UsageError(f"--plot {path}: matplotlib writes {', '.join(sorted(known))}")


class _File(click.Path):
    """A file; one to be written needs a folder that is there, before anything is measured."""

    def __init__(self, **more: Any) -> None:
        super().__init__(dir_okay=False, **more)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        path = super().convert(value, param, ctx)
        if path == _STDOUT:
            if not self.allow_dash:
                self.fail("- is standard output; this needs a file", param, ctx)
            return path
        folder = Path(str(path)).resolve().parent
        if self.writable and not (folder.is_dir() and os.access(folder, os.W_OK)):
            self.fail(f"{value}: {folder} is no folder that can be written in", param, ctx)
        return path


class _FileOrNothing(_File):
    """The file of an option that needs none: an operation behind it was not meant as one."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        from gpukern.bench.model.case import OPERATIONS

        if value in (*OPERATIONS, "all"):
            self.fail(f"{value} is an operation: write it first, or {param.opts[0]} -", param, ctx)
        return super().convert(value, param, ctx)


class _Listing(click.Command):
    """A command whose help ends with what there is to choose from."""

    def __init__(
        self, *arguments: Any, choices: Callable[[], Iterable[tuple[str, str]]], **more: Any
    ) -> None:
        super().__init__(*arguments, **more)
        self._choices = choices

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("To choose from"):
            formatter.write_dl(list(self._choices()), col_max=14)


def _compare_choices() -> Iterator[tuple[str, str]]:
    from gpukern.bench.contenders.registry import PEERS
    from gpukern.bench.model.case import DTYPES_OF, OPERATIONS

    quoted = (f'"{op}"' if " " in op else op for op in OPERATIONS)
    yield "operations", f"{', '.join(quoted)}; all: matmul, add, sum, transpose"
    yield "contenders", ", ".join(peer.key for peer in PEERS)
    yield "dtypes", ", ".join(DTYPES_OF["add"])
    yield (
        "sizes",
        "4095, ROWSxCOLUMNS, for matmul MxKxN; 2**27-157; 1k, 1M, 1G of 1024; ranges as "
        "1k:16k:x2 (1k, 2k, ... 16k) and 1000:5000:1000",
    )


def _bench_choices() -> Iterator[tuple[str, str]]:
    from gpukern.bench.cases import lists

    known = lists.names()
    for name in known:
        yield name, lists.read(name).title
    if not known:
        yield "FILE.toml", "a list of your own; those of the source tree are not here"


def _result_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options that ``compare`` and ``bench`` share."""
    out, data = _File(writable=True), _File(writable=True, allow_dash=True)
    options = (
        click.option("--seed", type=click.IntRange(0), help="Of the inputs, to repeat a run."),
        click.option("--rounds", type=click.IntRange(1), help="How often a figure is measured."),
        click.option(
            "--simulated", is_flag=True, help="Show the simulator's times, marked as such."
        ),
        click.option(
            "--load",
            type=_File(exists=True),
            multiple=True,
            metavar="FILE",
            help="Run a file of Python first, for its @gpukern.contender functions.",
        ),
        click.option(
            "--margin",
            type=click.FloatRange(0, 100, max_open=True),
            default=1,
            show_default=True,
            metavar="PERCENT",
            help="Ratios this close to 1 are the same.",
        ),
        click.option("--wide", is_flag=True, help="Show all columns, room or not."),
        click.option("--json", type=data, metavar="FILE", help="Write all figures."),
        click.option(
            "--csv",
            type=_FileOrNothing(writable=True, allow_dash=True),
            is_flag=False,
            flag_value=_STDOUT,
            metavar="[FILE]",
            help="Write a line for each row, without a file to standard output.",
        ),
        click.option(
            "--markdown",
            type=data,
            metavar="FILE",
            help="Write tables. FILE of these three may be -, standard output, which then has "
            "nothing else.",
        ),
        click.option("--plot", type=out, metavar="FILE", help="Write pictures."),
        click.option("--save", type=out, metavar="FILE", help="For --against."),
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


@main.command(cls=_Listing, choices=_compare_choices)
@click.argument("operations", nargs=-1, metavar="[OPERATION]...")
@click.option(
    "--sizes",
    multiple=True,
    callback=_parsed_sizes,
    metavar="N,MxN,...",
    help="Sizes in place of the default ones.",
)
@click.option("--dtype", metavar="NAME", help="float32, float64, float16, bfloat16, int32, ...")
@click.option(
    "--contenders",
    multiple=True,
    callback=_parsed_names,
    metavar="NAME,...",
    help="numpy, torch, ..., gpukern; or one variant, as in gpukern:tiled.",
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
    sizes: list[tuple[int, ...]] | None,
    dtype: str | None,
    contenders: list[str] | None,
    **options: Any,
) -> None:
    """Check every contender against float64, then time the right ones side by side.

    Without operations: matmul, add and sum. Exit status 1 if a result is wrong or a contender
    fails, 2 if the command is wrong, 130 if it was interrupted.
    """
    case = {"op": operations or None, "sizes": sizes, "dtype": dtype, "contenders": contenders}
    case |= {"mode": options.pop("mode"), "protocol": options.pop("protocol")}
    _run(context, [case], options, shorten=False)


@main.command(cls=_Listing, choices=_bench_choices)
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

    "readme" reproduces the tables of README.md. On the simulator sizes that would take it minutes
    are cut down.
    """
    _run(context, list(_case_list(name).cases), options, shorten=True)


def _case_list(name: str) -> "CaseList":
    from gpukern.bench.cases import lists

    with _one_sentence():
        return lists.read(name)


class _Step(NamedTuple):
    """The cases of one call of ``compare``, and how they are measured."""

    cases: "list[Case]"
    entrants: "Entrants"
    settings: "Settings"


def _run(
    context: click.Context, cases: list[dict[str, Any]], options: dict[str, Any], shorten: bool
) -> None:
    """Measure the cases into one comparison, show it, and set the exit status."""
    from gpukern.bench.comparison import Comparison, chosen_margin, chosen_seed
    from gpukern.machine.conditions import describe_machine

    seed, margin = options.pop("seed"), options.pop("margin") / 100
    effort = {name: options.pop(name) for name in _EFFORT}
    files = options.pop("load")
    baseline = options.pop("baseline", None)
    outputs = _Outputs(**options)
    outputs.check()
    with _quiet_simulator():
        with _one_sentence():
            earlier = _earlier(outputs.against)
            _load(files, cases)
            effort["processes"] = effort["processes"] or _processes()
            steps = [_step(case, effort, shorten) for case in cases]
            modes, protocols = ({case.get(key) for case in cases} for key in ("mode", "protocol"))
            result = Comparison(
                chosen_seed(seed),
                describe_machine(),
                mode=(modes.pop() or "both") if len(modes) == 1 else "both",
                protocol=(protocols.pop() or "default") if len(protocols) == 1 else "default",
                baseline=_baseline(baseline, steps),
                margin=chosen_margin(margin),
            )
        _fill(result, steps, outputs)
        slower = _finish(result, outputs, earlier)
    if result.interrupted:
        context.exit(_INTERRUPTED)
    context.exit(1 if result.wrong or result.broken or slower else 0)


# How much is done, and how; what a case list does not say.
_EFFORT = ("rounds", "simulated", "processes", "isolate", "patience", "budget")


def _processes() -> int:
    """Several where figures are of a GPU, and have to hold for the next run too."""
    from gpukern._core import backend

    return 3 if backend() == "cuda" else 1


def _load(files: Iterable[str], cases: list[dict[str, Any]]) -> None:
    """Run the files of contenders, which have to be of use."""
    from gpukern.bench.contenders.loading import load_file

    for file in files:
        names = load_file(file)
        chosen = [name for case in cases for name in case.get("contenders") or names]
        if not set(names) & set(chosen):
            raise ValueError(
                f"{file} registers {', '.join(names)}, and the contenders that are asked for are "
                f"{', '.join(dict.fromkeys(chosen))}"
            )


def _step(case: dict[str, Any], effort: dict[str, Any], shorten: bool) -> _Step:
    from gpukern.bench.cases.plans import plan
    from gpukern.bench.comparison import prepare
    from gpukern.bench.filling import check_sendable
    from gpukern.bench.model.settings import make_settings

    names = ("op", "sizes", "dtype", "contenders")
    op, sizes, dtype, contenders = (case.get(name) for name in names)
    cases, entrants = prepare(op, sizes, dtype, contenders, shorten)
    _tell_shortened(plan(op, sizes, dtype), cases)
    mode, protocol = case.get("mode", "both"), case.get("protocol", "default")
    settings = make_settings(mode, protocol, **effort)
    check_sendable(entrants, settings)
    return _Step(cases, entrants, settings)


def _tell_shortened(asked: "list[Case]", done: "list[Case]") -> None:
    """Say at once which sizes are cut down, a line for each operation and dtype."""
    for kind in dict.fromkeys((case.op, case.dtype) for case in asked):
        before, after = (
            ", ".join(case.size for case in cases if (case.op, case.dtype) == kind)
            for cases in (asked, done)
        )
        if before != after:
            told = f"{after} in the place of {before}, for which the simulator takes long"
            click.echo(f"{' '.join(kind)}: {told}", err=True)


def _baseline(baseline: str | None, steps: list[_Step]) -> str | None:
    from gpukern.bench.comparison import chosen_baseline

    return chosen_baseline(baseline, steps[0].entrants, steps[0].cases)


def _earlier(path: str | None) -> "Comparison | None":
    from gpukern.bench.comparison import Comparison

    if path is None:
        return None
    try:
        return Comparison.from_json(Path(path))
    except (OSError, ValueError) as error:
        raise ValueError(f"--against {path}: {error}") from None


@contextmanager
def _one_sentence() -> Iterator[None]:
    """What is wrong with the command, or keeps it from beginning, as its error."""
    from gpukern._core import CudaError

    try:
        yield
    except (TypeError, ValueError, CudaError) as error:
        raise click.UsageError(str(error)) from None


class _Tables:
    """Prints the tables of an operation and dtype when the last step that has them is done."""

    def __init__(self, steps: list[_Step], display: "Display", wide: bool) -> None:
        self._display, self._wide = display, wide
        self._left = Counter(
            kind for step in steps for kind in {(case.op, case.dtype) for case in step.cases}
        )

    def add(self, result: "Results", kind: tuple[str, str]) -> None:
        """A step is done with these rows."""
        self._left[kind] -= 1
        if not self._left[kind]:
            self._print(result, kind)

    def add_rest(self, result: "Results") -> None:
        """What was begun when it was interrupted."""
        for kind, left in self._left.items():
            if left:
                self._print(result, kind)

    def _print(self, result: "Results", kind: tuple[str, str]) -> None:
        from gpukern.bench.showing import formats
        from gpukern.text.render import print_all

        with self._display.paused():
            print_all(formats.tables(result.only(*kind), self._wide))


def _fill(result: "Comparison", steps: list[_Step], outputs: _Outputs) -> None:
    """Measure all steps, and print tables as they are done unless data go where they would."""
    from gpukern.bench.filling import fill
    from gpukern.bench.showing.progress import displayed
    from gpukern.machine.conditions import Watch

    watch = Watch()
    with displayed() as display:
        tables = _Tables(steps, display, outputs.wide)

        def on_table(done: "Results") -> None:
            for kind in dict.fromkeys((row.op, row.dtype) for row in done.rows):
                tables.add(result, kind)

        shown = on_table if outputs.tables else None
        try:
            for step in steps:
                fill(result, *step, display.report, watch=watch, on_table=shown)
        except KeyboardInterrupt:
            result.interrupted = True
        if result.interrupted and outputs.tables:
            tables.add_rest(result)


def _finish(result: "Comparison", outputs: _Outputs, earlier: "Comparison | None") -> bool:
    """Show and write everything; whether something has become slower."""
    from gpukern.bench.model.changes import changes
    from gpukern.bench.showing import formats
    from gpukern.bench.showing.changes import report
    from gpukern.text.render import print_all

    # Beside data on standard output only what is wrong is said.
    parts: list[RenderableType] = [*formats.notes(result, only_faults=not outputs.tables)]
    slower = False
    if earlier is not None:
        found = changes(earlier, result, outputs.threshold)
        parts += report(earlier, result, found)
        slower = any(change.verdict == "slower" for change in found)
    print_all(parts, stderr=not outputs.tables)
    if result.interrupted:
        click.echo("interrupted", err=True)
    for path in _write(result, outputs):
        click.echo(f"written to {path}", err=True)
    return slower


def _write(result: "Comparison", outputs: _Outputs) -> Iterator[str]:
    """Write what was asked for; the files, by name."""
    texts = (
        (outputs.json, result.to_json),
        (outputs.save, result.to_json),
        (outputs.csv, result.to_csv),
        (outputs.markdown, result.to_markdown),
    )
    for path, text in texts:
        if path == _STDOUT:
            click.echo(text(), nl=False)
        elif path is not None:
            Path(path).write_text(text())
            yield path
    if outputs.into is not None:
        _put_into(Path(outputs.into), result.to_markdown())
        yield outputs.into
    if outputs.plot is not None:
        from gpukern.bench.showing import plots

        yield from map(str, plots.save(result, outputs.plot))


def _put_into(path: Path, tables: str) -> None:
    """Replace what stands between the marks."""
    path.write_text(_MARKS.sub(lambda found: f"{found[1]}{tables}{found[2]}", path.read_text()))


@contextmanager
def _quiet_simulator() -> Iterator[None]:
    """The commands say themselves that the simulator is at work."""
    from gpukern._core import SimulatorWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulatorWarning)
        yield
