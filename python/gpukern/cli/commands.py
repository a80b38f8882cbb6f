"""The commands: ``gpukern info``, ``doctor``, ``compare``, ``bench`` and ``tune``."""

from typing import Any

import click

from gpukern.cli.faults import one_sentence, quiet_simulator
from gpukern.cli.options import (
    File,
    Listing,
    bench_choices,
    compare_choices,
    parsed_names,
    parsed_sizes,
    result_options,
)
from gpukern.cli.running import case_list, run
from gpukern.cli.tuning import run as run_tuning


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gpukern", prog_name="gpukern")
@click.pass_context
def main(context: click.Context, /) -> None:
    """CUDA kernels under NumPy arrays: what is here, what is broken, what is fast."""
    from gpukern.machine.install import find_fault

    fault = find_fault() if context.invoked_subcommand in ("compare", "bench", "tune") else None
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

    with quiet_simulator():
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


@main.command(cls=Listing, choices=compare_choices)
@click.argument("operations", nargs=-1, metavar="[OPERATION]...")
@click.option(
    "--sizes",
    multiple=True,
    callback=parsed_sizes,
    metavar="N,MxN,...",
    help="Sizes in place of the default ones.",
)
@click.option("--dtype", metavar="NAME", help="float32, float64, float16, bfloat16, int32, ...")
@click.option(
    "--contenders",
    multiple=True,
    callback=parsed_names,
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
@result_options
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

    Without operations: add, matmul and sum. Exit status 1 if a result is wrong or a contender
    fails, 2 if the command is wrong, 130 if it was interrupted.
    """
    case = {"op": operations or None, "sizes": sizes, "dtype": dtype, "contenders": contenders}
    case |= {"mode": options.pop("mode"), "protocol": options.pop("protocol")}
    run(context, [case], options, shorten=False, hurried=True)


@main.command(cls=Listing, choices=bench_choices)
@click.argument("name", metavar="NAME")
@click.option(
    "--into",
    type=File(exists=True, writable=True),
    metavar="FILE",
    help="Put the tables between the marks <!-- measured: begin --> and end of a Markdown file.",
)
@result_options
@click.pass_context
def bench(context: click.Context, /, name: str, **options: Any) -> None:
    """Run a named list of cases: benchmarks/NAME.toml of the source tree, or a path.

    "readme" reproduces the tables of README.md. On the simulator sizes that would take it minutes
    are cut down.
    """
    run(context, list(case_list(name).cases), options, shorten=True, hurried=False)


@main.command()
@click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    callback=parsed_names,
    metavar="NAME,...",
    help="float32, bfloat16, float16, float64; all of them unless set. Those that are not named "
    "keep what was measured before.",
)
@click.option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to measure: the longer, the finer the grid of sizes, the more random shapes.",
)
@click.option(
    "--save",
    type=File(writable=True),
    metavar="FILE",
    help="Write the table there, and not where later processes of this user find it.",
)
def tune(dtypes: list[str] | None, budget: float, save: str | None) -> None:
    """Measure where a variant of matmul is faster than the default on this GPU.

    Later calls of gpukern.matmul take it in ranges of sizes where it was faster at every corner
    and lost on no random shape; elsewhere the default stays. gpukern.variants("matmul",
    operands=(a, b)) shows which variant runs. On the simulator there is nothing to tune: exit
    status 2.
    """
    with quiet_simulator(), one_sentence():
        run_tuning(dtypes, budget, save)
