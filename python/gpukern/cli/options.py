"""What the commands take: options, files, sizes and names, and the lists in their help."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from gpukern.cli.outputs import STDOUT


def parsed_sizes(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> list[tuple[int, ...]] | None:
    """The sizes of "a,b" and of repeated options alike."""
    from gpukern.bench.cases.sizes import parse_sizes

    try:
        return [size for text in given for size in parse_sizes(text)] or None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def parsed_names(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> list[str] | None:
    """The names of "a,b" and of repeated options alike."""
    entries = [entry.strip() for text in given for entry in text.split(",")]
    return [entry for entry in entries if entry] or None


class File(click.Path):
    """A file; one to be written needs a folder that is there, before anything is measured."""

    def __init__(self, **more: Any) -> None:
        super().__init__(dir_okay=False, **more)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The path."""
        path = super().convert(value, param, ctx)
        if path == STDOUT:
            if not self.allow_dash:
                self.fail("- is standard output; this needs a file", param, ctx)
            return path
        folder = Path(str(path)).resolve().parent
        if self.writable and not (folder.is_dir() and os.access(folder, os.W_OK)):
            self.fail(f"{value}: {folder} is no folder that can be written in", param, ctx)
        return path


class FileOrNothing(File):
    """The file of an option that needs none: an operation behind it was not meant as one."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The path."""
        from gpukern.bench.model.case import OPERATIONS

        if value in (*OPERATIONS, "all"):
            self.fail(f"{value} is an operation: write it first, or {param.opts[0]} -", param, ctx)
        return super().convert(value, param, ctx)


class Listing(click.Command):
    """A command whose help ends with what there is to choose from."""

    def __init__(
        self, *arguments: Any, choices: Callable[[], Iterable[tuple[str, str]]], **more: Any
    ) -> None:
        super().__init__(*arguments, **more)
        self._choices = choices

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what there is."""
        with formatter.section("To choose from"):
            formatter.write_dl(list(self._choices()), col_max=14)


def compare_choices() -> Iterator[tuple[str, str]]:
    """What ``compare`` takes, by kind."""
    from gpukern.bench.contenders.registry import PEERS
    from gpukern.bench.model.case import DTYPES_OF, OPERATIONS

    quoted = (f'"{op}"' if " " in op else op for op in OPERATIONS)
    yield "operations", f"{', '.join(quoted)}; all: add, matmul, sum, transpose"
    yield "contenders", ", ".join(peer.key for peer in PEERS)
    yield "dtypes", ", ".join(DTYPES_OF["add"])
    yield (
        "sizes",
        "4095, ROWSxCOLUMNS, for matmul MxKxN; 2**27-157; 1k, 1M, 1G of 1024; ranges as "
        "1k:16k:x2 (1k, 2k, ... 16k) and 1000:5000:1000",
    )


def bench_choices() -> Iterator[tuple[str, str]]:
    """The lists of cases, with their titles."""
    from gpukern.bench.cases import lists

    known = lists.names()
    for name in known:
        yield name, lists.read(name).title
    if not known:
        yield "FILE.toml", "a list of your own; those of the source tree are not here"


def result_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options that ``compare`` and ``bench`` share."""
    out, data = File(writable=True), File(writable=True, allow_dash=True)
    options = (
        click.option("--seed", type=click.IntRange(0), help="Of the inputs, to repeat a run."),
        click.option("--rounds", type=click.IntRange(1), help="How often a figure is measured."),
        click.option(
            "--simulated", is_flag=True, help="Show the simulator's times, marked as such."
        ),
        click.option(
            "--load",
            type=File(exists=True),
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
            type=FileOrNothing(writable=True, allow_dash=True),
            is_flag=False,
            flag_value=STDOUT,
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
            type=File(exists=True),
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
            help="How many measure each case in turn. Unless set: on a GPU 3 for bench, --save and "
            "--against, else 1 for each minute of the budget; on the simulator 1.",
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
            help="What everything together should take; unless set, compare has 60, and 180 with "
            "--save or --against.",
        ),
        click.option(
            "--first-calls",
            is_flag=True,
            help="Measure first calls too, each in a fresh process: seconds for each contender.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function
