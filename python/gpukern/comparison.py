"""The side-by-side: every contender checked against float64, then timed by the same clock."""

import datetime
import json
import platform
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpukern import _core, timing
from gpukern.cases import DTYPES_OF, OPERATIONS, Case, Trial, Verdict, check, make_case, make_trials
from gpukern.cases import poison as poisoned
from gpukern.catalogue import dtype_name
from gpukern.contenders import Absent, Contender, DeviceSide, Peer, gather, one_line, select

if TYPE_CHECKING:
    from rich.console import RenderableType

SCHEMA = 1

RIGHT = "right"
WRONG = "WRONG"
BROKEN = "broken"
ABSENT = "absent"

Size = int | Sequence[int]

_GRID = (1024, 2048, 4096)
_GPU_CASES: dict[str, tuple[tuple[str, tuple[Size, ...]], ...]] = {
    "matmul": (("float32", (1000, 4096)),),
    "add": tuple(
        (dtype, tuple((m, n) for m in _GRID for n in _GRID)) for dtype in ("float32", "float16")
    ),
    "sum": (("float32", (2**27 - 157,)),),
    "transpose": (("float32", (1024, 4096)),),
}
# What two cores simulate in a few seconds, a tail included.
_SIMULATOR_CASES: dict[str, tuple[tuple[str, tuple[Size, ...]], ...]] = {
    "matmul": (("float32", (192,)),),
    "add": tuple((dtype, ((512, 511),)) for dtype in ("float32", "float16")),
    "sum": (("float32", (2**20 - 157,)),),
    "transpose": (("float32", ((512, 511),)),),
}
_DEFAULT_OPERATIONS = ("matmul", "add", "sum")


@dataclass(frozen=True)
class Row:
    """One contender on one case. Times are seconds; ``error`` is the largest absolute error.

    ``status`` is "right", "WRONG", "broken" (it raised) or "absent"; then ``detail`` says why, and
    there are no times. ``simulated`` marks times of the CPU simulator, which say nothing of a GPU.
    """

    op: str
    size: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    contender: str
    variant: str
    status: str
    detail: str = ""
    error: float | None = None
    end_to_end: float | None = None
    on_device: float | None = None
    bytes_moved: int = 0
    operations: int = 0
    simulated: bool = False


@dataclass
class Comparison:
    """What was measured: ``rows``, the seed of the inputs, and the machine.

    ``str()`` gives the tables that the command prints.
    """

    seed: int
    machine: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    interrupted: bool = False

    @property
    def wrong(self) -> list[Row]:
        """The rows whose result was wrong."""
        return [row for row in self.rows if row.status == WRONG]

    @property
    def simulated(self) -> bool:
        """Whether gpukern ran on the CPU simulator."""
        return bool(self.machine["backend"] == "sim")

    def to_dicts(self) -> list[dict[str, Any]]:
        """A plain dictionary a row, for pandas.DataFrame."""
        return [asdict(row) for row in self.rows]

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """The whole comparison as JSON text, also written to ``path`` if there is one."""
        whole = {
            "schema": SCHEMA,
            "seed": self.seed,
            "interrupted": self.interrupted,
            "machine": self.machine,
            "rows": [{**row, "error": _finite(row["error"])} for row in self.to_dicts()],
        }
        text = json.dumps(whole, indent=1, allow_nan=False) + "\n"
        if path is not None:
            Path(path).write_text(text)
        return text

    def renderables(self) -> Iterator["RenderableType"]:
        """Tables and remarks for a rich console."""
        from gpukern.report import renderables

        return renderables(self)

    def __str__(self) -> str:
        from gpukern.render import as_text

        return as_text(*self.renderables())

    def __repr__(self) -> str:
        return f"<comparison of {len(self.rows)} rows, {len(self.wrong)} wrong, seed {self.seed}>"


def _finite(error: float | None) -> float | str | None:
    """JSON has no NaN and no infinity."""
    return error if error is None or np.isfinite(error) else str(error)


def describe_machine() -> dict[str, Any]:
    """Device, driver and versions, as they are recorded with the figures."""
    from gpukern.inventory import versions

    device = _core.devices()[0]
    return {
        "backend": _core.backend(),
        "device": device["name"],
        "capability": device["capability"],
        "driver": _core.driver_report()["version"],
        "platform": platform.platform(),
        "versions": versions(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def plan(
    op: str | Sequence[str] | None = None,
    sizes: Sequence[Size] | None = None,
    dtype: npt.DTypeLike | None = None,
) -> list[Case]:
    """The cases that are asked for; what is left out suits the device.

    Sizes without a dtype are in float32.

    Raises ValueError for unknown operations and dtypes, dtypes that the operation does not take,
    and sizes that do not fit.
    """
    defaults = _SIMULATOR_CASES if _core.backend() == "sim" else _GPU_CASES
    cases: list[Case] = []
    for name in _operations(op):
        chosen = defaults[name]
        if dtype is not None:
            chosen = ((_taken(name, dtype), chosen[0][1]),)
        elif sizes is not None:
            chosen = chosen[:1]
        cases += [
            make_case(name, size, kind)
            for kind, usual in chosen
            for size in (usual if sizes is None else sizes)
        ]
    return cases


def _operations(op: str | Sequence[str] | None) -> tuple[str, ...]:
    if op is None:
        return _DEFAULT_OPERATIONS
    names = (op,) if isinstance(op, str) else tuple(op)
    if "all" in names:
        return (*_DEFAULT_OPERATIONS, "transpose")
    for name in names:
        if name not in OPERATIONS:
            raise ValueError(f"unknown operation {name!r}; there are {', '.join(OPERATIONS)}, all")
    return names or _DEFAULT_OPERATIONS


def _taken(op: str, dtype: npt.DTypeLike) -> str:
    name = dtype_name(dtype)
    if name not in DTYPES_OF[op]:
        raise ValueError(f"{op} does not take {name}; it takes {', '.join(DTYPES_OF[op])}")
    return name


@dataclass(frozen=True)
class _Judged:
    """The verdict on a contender, and its arrays on the device, if it has a device side."""

    verdict: Verdict
    inputs: tuple[Any, ...] = ()
    out: Any = None


def _judge(contender: Contender, case: Case, trials: Sequence[Trial]) -> _Judged:
    """Check every way to call a contender; the arrays of the first trial stay for the timing."""
    largest = 0.0
    kept: _Judged | None = None
    for trial in trials:
        verdict = _check(contender.end_to_end(*trial.inputs), trial, contender, "end to end")
        if verdict.right and contender.device:
            verdict, inputs, out = _run_on_device(contender, contender.device, case, trial)
            kept = kept or _Judged(verdict, inputs, out)
        largest = max(largest, verdict.error)
        if not verdict.right:
            return _Judged(verdict)
    verdict = Verdict(largest)
    return _Judged(verdict, kept.inputs, kept.out) if kept else _Judged(verdict)


def _run_on_device(
    contender: Contender, side: DeviceSide, case: Case, trial: Trial
) -> tuple[Verdict, tuple[Any, ...], Any]:
    inputs = tuple(side.load(array) for array in trial.inputs)
    # Poisoned, so that what is not written cannot pass.
    out = side.load(poisoned(case))
    side.run(inputs, out)
    return _check(side.fetch(out), trial, contender, "on the device"), inputs, out


def _check(got: Any, trial: Trial, contender: Contender, where: str) -> Verdict:
    verdict = check(got, trial.expected, contender.serial)
    if verdict.right:
        return verdict
    return Verdict(verdict.error, f"{where}, {trial.name} inputs: {verdict.detail}")


def _row(case: Case, name: str, variant: str, status: str, **rest: Any) -> Row:
    return Row(
        op=case.op,
        size=case.size,
        shapes=case.shapes,
        dtype=case.dtype,
        contender=name,
        variant=variant,
        status=status,
        bytes_moved=case.bytes_moved,
        operations=case.operations,
        **rest,
    )


def measure(
    contender: Contender | Absent, case: Case, trials: Sequence[Trial], rounds: int | None = None
) -> Row:
    """One row: checked first, and timed only when right. What the contender raises is its row."""
    if isinstance(contender, Absent):
        status = BROKEN if contender.broken else ABSENT
        return _row(case, contender.name, contender.variant, status, detail=contender.why)
    simulated = contender.name == "gpukern" and _core.backend() == "sim"
    try:
        judged = _judge(contender, case, trials)
        verdict = judged.verdict
        if not verdict.right:
            return _row(
                case,
                contender.name,
                contender.variant,
                WRONG,
                detail=verdict.detail,
                error=verdict.error,
            )
        times = _times(contender, judged, trials[0], rounds)
    except Exception as error:
        return _row(case, contender.name, contender.variant, BROKEN, detail=one_line(error))
    return _row(
        case,
        contender.name,
        contender.variant,
        RIGHT,
        error=verdict.error,
        end_to_end=times[0],
        on_device=times[1],
        simulated=simulated,
    )


def _times(
    contender: Contender, judged: _Judged, trial: Trial, rounds: int | None
) -> tuple[float, float | None]:
    whole = timing.end_to_end(
        lambda: contender.end_to_end(*trial.inputs), timing.Effort(rounds=rounds)
    )
    side = contender.device
    if side is None:
        return whole, None
    run, inputs, out = side.run, judged.inputs, judged.out
    device = timing.on_device(lambda: run(inputs, out), timing.Effort(0.1, rounds=rounds))
    return whole, device


Progress = Callable[[str, int, int], None]
Entrants = list[tuple[Peer, str | None]]


def fill(
    comparison: Comparison,
    cases: Sequence[Case],
    entrants: Entrants,
    rounds: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Measure the cases one by one into ``comparison``, which is whole after each row.

    ``progress`` is told what comes next, how many steps are done and how many there are.
    """
    offers: dict[tuple[str, str], list[Contender | Absent]] = {}
    for op, dtype in dict.fromkeys((case.op, case.dtype) for case in cases):
        offers[op, dtype] = []
        for peer, variant in entrants:
            if progress:
                progress(f"loading {peer.name}", 0, 1)
            offers[op, dtype] += gather(peer, variant, op, dtype)
    done, total = 0, sum(len(offers[case.op, case.dtype]) for case in cases)
    for case in cases:
        if progress:
            progress(f"{case.op} {case.size} {case.dtype}: inputs", done, total)
        trials = make_trials(case, comparison.seed)
        for contender in offers[case.op, case.dtype]:
            if progress:
                label = f"{case.op} {case.size} {case.dtype}: {contender.name} {contender.variant}"
                progress(label.rstrip(), done, total)
            comparison.rows.append(measure(contender, case, trials, rounds))
            done += 1
    if progress:
        progress("done", total, total)


def compare(
    op: str | Sequence[str] | None = None,
    sizes: Sequence[Size] | None = None,
    dtype: npt.DTypeLike | None = None,
    contenders: Sequence[str | Peer] | None = None,
    *,
    seed: int | None = None,
    rounds: int | None = None,
) -> Comparison:
    """Check every contender against float64, then time the right ones.

    ``op`` is "add", "sum", "matmul", "transpose", "all" or a list of them; ``sizes`` holds n or
    (rows, columns), for matmul (m, k, n); ``contenders`` names such as "numpy" or "gpukern:tiled".
    ``rounds`` fixes how often each figure is measured. What is left out suits the device. The same
    ``seed`` gives the same inputs. Raises ValueError for a name, dtype or size that does not fit.
    """
    entrants = select(contenders)
    cases = plan(op, sizes, dtype)
    chosen = secrets.randbelow(2**32) if seed is None else seed
    comparison = Comparison(chosen, describe_machine())
    fill(comparison, cases, entrants, rounds)
    return comparison
