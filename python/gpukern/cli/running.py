"""What ``compare`` and ``bench`` do: measure cases, print tables as they are done, tell the end."""

import os
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gpukern.cli.faults import one_sentence, quiet_simulator
from gpukern.cli.outputs import Outputs, write

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


def case_list(name: str) -> "CaseList":
    """The list of that name; a usage error where there is none."""
    from gpukern.bench.cases import lists

    with one_sentence():
        return lists.read(name)


class _Step(NamedTuple):
    """The cases of one call of ``compare``, and how they are measured."""

    cases: "list[Case]"
    entrants: "Entrants"
    settings: "Settings"


def run(
    context: click.Context,
    cases: list[dict[str, Any]],
    options: dict[str, Any],
    *,
    shorten: bool,
    hurried: bool,
) -> None:
    """Measure the cases into one comparison, show it, and set the exit status.

    ``hurried``: within a budget also where nobody asks for one.
    """
    from gpukern.bench.comparison import Comparison, chosen_margin, chosen_seed
    from gpukern.machine.conditions import describe_machine

    seed, margin = options.pop("seed"), options.pop("margin") / 100
    effort = {name: options.pop(name) for name in _EFFORT}
    begin = time.monotonic()
    files = options.pop("load")
    baseline = options.pop("baseline", None)
    outputs = Outputs(**options)
    outputs.check()
    if hurried:
        effort["budget"] = effort["budget"] or _MINUTE * (_SEVERAL if outputs.kept else 1)
    _keep_compiled()
    with quiet_simulator():
        with one_sentence():
            earlier = _earlier(outputs.against)
            _load(files, cases)
            effort["processes"] = effort["processes"] or _processes(effort["budget"], outputs.kept)
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
    _tell_time(time.monotonic() - begin, effort["budget"], result.machine.get("seconds", {}))
    if result.interrupted:
        context.exit(_INTERRUPTED)
    context.exit(1 if result.wrong or result.broken or slower else 0)


def _tell_time(spent: float, budget: float | None, parts: dict[str, float]) -> None:
    """What it took, where that is much or more than it should, and for what."""
    if budget and spent > budget / 2:
        told = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in parts.items())
        click.echo(f"took {spent:.0f} s of a budget of {budget:g} s: {told}", err=True)


def _keep_compiled() -> None:
    """Have compilers keep what they make, also where it is this process that measures."""
    from gpukern.bench.processes.keeping import keeping

    for name, value in keeping().items():
        os.environ.setdefault(name, value)


# How much is done, and how; what a case list does not say.
_EFFORT = ("rounds", "simulated", "processes", "isolate", "patience", "budget", "first_calls")


# Processes where figures of a GPU have to hold for the next run too, and the seconds for each.
_SEVERAL, _MINUTE = 3, 60.0


def _processes(budget: float | None, kept: bool) -> int:
    """One for each minute that there is, several where there is time or the result is kept."""
    from gpukern._core import backend

    if backend() != "cuda":
        return 1
    if budget is None or kept:
        return _SEVERAL
    return max(1, min(int(budget / _MINUTE), _SEVERAL))


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


def _fill(result: "Comparison", steps: list[_Step], outputs: Outputs) -> None:
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


def _finish(result: "Comparison", outputs: Outputs, earlier: "Comparison | None") -> bool:
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
    for path in write(result, outputs):
        click.echo(f"written to {path}", err=True)
    return slower
