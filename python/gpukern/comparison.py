"""The side-by-side: every contender checked against float64, then timed by the same clock."""

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpukern.cases import Case
from gpukern.ceilings import Limits, measure_limits
from gpukern.checking import Entry
from gpukern.contenders import Absent, Contender, Peer, Wanted, gather, select
from gpukern.intervals import figure, ratio
from gpukern.machine.conditions import Watch, describe_machine
from gpukern.measuring import MODES, PROTOCOLS, Settings, is_simulated, measure
from gpukern.plans import Size, plan
from gpukern.rows import ABSENT, BROKEN, RIGHT, WRONG, Row
from gpukern.timing import DeviceClock, Effort
from gpukern.trials import make_trials

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Plot
    from rich.console import RenderableType

SCHEMA = 2

# As a baseline: whichever of the others is fastest on that case.
FASTEST_PEER = "fastest peer"

# Which contender the others are measured against where nobody says: the first that has a figure.
_END_TO_END_BASELINES = ("NumPy", "PyTorch", "CuPy")
_DEVICE_BASELINES = ("PyTorch", "CuPy", "gpukern")


@dataclass
class Comparison:
    """What was measured: ``rows``, the seed of the inputs, and the machine.

    ``str()`` gives the tables that the command prints; a notebook shows them as HTML. ``mode``,
    ``protocol`` and ``baseline`` are what was asked for.
    """

    seed: int
    machine: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    interrupted: bool = False
    mode: str = "both"
    protocol: str = "default"
    baseline: str | None = None

    @property
    def wrong(self) -> list[Row]:
        """The rows whose result was wrong."""
        return [row for row in self.rows if row.status == WRONG]

    @property
    def simulated(self) -> bool:
        """Whether gpukern ran on the CPU simulator."""
        return bool(self.machine["backend"] == "sim")

    def only(self, op: str | None = None, dtype: str | None = None) -> "Comparison":
        """The rows of one operation, of one dtype, or of both."""
        kept = [r for r in self.rows if op in (None, r.op) and dtype in (None, r.dtype)]
        return replace(self, rows=kept)

    def to_dicts(self) -> list[dict[str, Any]]:
        """A plain dictionary a row, for pandas.DataFrame."""
        return [row.flat() for row in self.rows]

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """The whole comparison as JSON text, also written to ``path`` if there is one."""
        whole = {
            "schema": SCHEMA,
            "seed": self.seed,
            "interrupted": self.interrupted,
            "mode": self.mode,
            "protocol": self.protocol,
            "baseline": self.baseline,
            "machine": self.machine,
            "rows": [row.to_json() for row in self.rows],
        }
        text = json.dumps(whole, indent=1, allow_nan=False) + "\n"
        if path is not None:
            Path(path).write_text(text)
        return text

    @classmethod
    def from_json(cls, source: str | PathLike[str]) -> "Comparison":
        """What ``to_json`` has written: a path, or the text itself.

        Raises ValueError for what is no comparison, or one of another schema.
        """
        text = str(source)
        whole = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text())
        if not isinstance(whole, dict) or whole.get("schema") != SCHEMA:
            raise ValueError(f"this is no comparison of schema {SCHEMA}")
        rows = [Row.from_json(row) for row in whole.pop("rows")]
        del whole["schema"]
        return cls(rows=rows, **whole)

    def to_markdown(self) -> str:
        """The tables as Markdown."""
        from gpukern.report import markdown

        return markdown(self)

    def _repr_html_(self) -> str:
        from gpukern.report import html

        return html(self)

    def plot(self, kind: str | None = None) -> "Plot":
        """Draw it with matplotlib: a row of panels for each operation and dtype.

        ``kind`` is "time" (against the size), "ratio" (bars), "split" (of a call into transfers and
        compute) or "roofline"; all of them where it is left out. Raises ValueError for another
        kind, and ImportError with a sentence where matplotlib is not installed.
        """
        from gpukern.plots import draw

        return draw(self, kind)

    def renderables(self) -> Iterator["RenderableType"]:
        """Tables and remarks for a rich console."""
        from gpukern.report import renderables

        return renderables(self)

    def __str__(self) -> str:
        from gpukern.text.render import as_text

        return as_text(*self.renderables())

    def __repr__(self) -> str:
        return f"<comparison of {len(self.rows)} rows, {len(self.wrong)} wrong, seed {self.seed}>"


Progress = Callable[[str, int, int], None]
Entrants = list[tuple[Peer, str | None]]


@dataclass
class _Offers:
    """The contenders of each operation and dtype, loaded once."""

    found: dict[tuple[str, str], list[tuple[Peer, Contender | Absent]]] = field(
        default_factory=dict
    )

    def load(self, cases: Sequence[Case], entrants: Entrants, progress: Progress | None) -> None:
        for op, dtype in dict.fromkeys((case.op, case.dtype) for case in cases):
            mine = self.found.setdefault((op, dtype), [])
            for peer, variant in entrants:
                if progress:
                    progress(f"loading {peer.name}", 0, 1)
                mine += [(peer, one) for one in gather(peer, variant, op, dtype)]

    def of(self, case: Case) -> list[tuple[Peer, Contender | Absent]]:
        return self.found[case.op, case.dtype]


class _Counter:
    """Tells ``progress`` how far it is: a step for each check and for each sample."""

    def __init__(self, progress: Progress | None, cases: Sequence[Case], offers: _Offers) -> None:
        self.progress, self.case, self.done = progress, "", 0
        self.most = [len(offers.of(case)) for case in cases]
        self.each = 1 + Effort().least

    def begin(self, index: int, case: Case) -> None:
        self.case = f"{case.op} {case.size} {case.dtype}"
        self.done = self.each * sum(self.most[:index])
        self.until = self.each * sum(self.most[: index + 1])
        self.tell("inputs")

    def tell(self, doing: str) -> None:
        if self.progress:
            self.progress(f"{self.case}: {doing.rstrip()}", self.done, self.each * sum(self.most))
        self.done = min(self.done + 1, self.until)

    def finish(self) -> None:
        total = self.each * sum(self.most)
        if self.progress:
            self.progress("done", total, total)


def fill(
    comparison: Comparison,
    cases: Sequence[Case],
    entrants: Entrants,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> None:
    """Measure the cases one by one into ``comparison``, which is whole after each case.

    ``progress`` is told what comes next, how many steps are done and how many there are. When it is
    interrupted, what was checked until then is in the rows.
    """
    settings = settings or Settings()
    offers, watch = _Offers(), Watch()
    offers.load(cases, entrants, progress)
    clock, limits = DeviceClock(), measure_limits()
    comparison.machine["limits"] = limits.to_dict()
    counter = _Counter(progress, cases, offers)
    for index, case in enumerate(cases):
        counter.begin(index, case)
        trials = make_trials(case, comparison.seed)
        found = [(peer, _entry(one)) for peer, one in offers.of(case)]
        entries = [entry for _, entry in found if isinstance(entry, Entry)]
        rng = np.random.default_rng([comparison.seed, index])
        watch.look()
        try:
            measure(case, trials, entries, clock, settings, rng, counter.tell)
        finally:
            watch.look()
            comparison.machine["conditions"] = watch.summary()
            comparison.rows += _rows(case, found, comparison.baseline, limits)
    counter.finish()


def _entry(one: Contender | Absent) -> Entry | Absent:
    return one if isinstance(one, Absent) else Entry(one)


def _rows(
    case: Case,
    found: Sequence[tuple[Peer, Entry | Absent]],
    baseline: str | None,
    limits: Limits,
) -> Iterator[Row]:
    entries = [entry for _, entry in found if isinstance(entry, Entry) and entry.right]
    bases = {
        "end_to_end": _baseline(entries, "end_to_end", baseline, _END_TO_END_BASELINES),
        "device": _baseline(entries, "cold", baseline, _DEVICE_BASELINES)
        or _baseline(entries, "warm", baseline, _DEVICE_BASELINES),
    }
    for peer, entry in found:
        if isinstance(entry, Absent):
            status = BROKEN if entry.broken else ABSENT
            yield _row(case, entry.name, entry.variant, status, peer, detail=entry.why)
        elif not entry.right:
            who = entry.contender
            known = {"error": entry.error, "detail": entry.detail}
            yield _row(case, who.name, who.variant, entry.status, peer, **known)
        elif entry.examined:
            yield _measured(case, peer, entry, bases, limits)


def _baseline(
    entries: Sequence[Entry], name: str, wanted: str | None, usual: Sequence[str]
) -> Entry | None:
    able = [entry for entry in entries if entry.samples.get(name)]
    if wanted == FASTEST_PEER:
        peers = [entry for entry in able if entry.contender.name != "gpukern"]
        return min(peers, key=lambda entry: figure(entry.samples[name]).value, default=None)
    if wanted is not None:
        key, _, variant = wanted.lower().partition(":")
        for entry in able:
            one = entry.contender
            if one.name.lower() == key and variant in ("", one.variant.lower()):
                return entry
    for title in usual:
        of_that_name = [entry for entry in able if entry.contender.name == title]
        if of_that_name:
            # The first of a library is its plain call, gpukern's last its best.
            return of_that_name[-1 if title == "gpukern" else 0]
    return able[0] if able else None


def _row(case: Case, name: str, variant: str, status: str, peer: Peer, **rest: Any) -> Row:
    return Row(
        op=case.op,
        size=case.size,
        shapes=case.shapes,
        dtype=case.dtype,
        contender=name,
        variant=variant,
        status=status,
        version=peer.version,
        bytes_moved=case.bytes_moved,
        operations=case.operations,
        **rest,
    )


def _measured(
    case: Case, peer: Peer, entry: Entry, bases: dict[str, Entry | None], limits: Limits
) -> Row:
    figures = {name: figure(values) for name, values in entry.samples.items()}
    device = figures.get("cold") or figures.get("warm")
    flags = list(dict.fromkeys(entry.flags))
    if entry.contender.carried:
        flags.append(f"sums are carried in {entry.contender.carried}, and judged by that")
    share = None
    if device and not is_simulated(entry):
        share = limits.share(case.bytes_moved, case.operations, case.dtype, device.value)
        flags += _excess(case, entry, limits)
    return _row(
        case,
        entry.contender.name,
        entry.contender.variant,
        RIGHT,
        peer,
        detail="" if entry.finished else "interrupted: not checked again after the timing",
        error=entry.error,
        ulps=entry.ulps,
        first_call=None if is_simulated(entry) and not entry.samples else entry.first_call,
        end_to_end=figures.get("end_to_end"),
        on_device=device,
        warm=figures.get("warm"),
        overhead=figures.get("overhead"),
        split=entry.split if entry.samples else {},
        end_to_end_ratio=_ratio(bases["end_to_end"], entry, ("end_to_end",)),
        device_ratio=_ratio(bases["device"], entry, ("cold", "warm")),
        limit=share,
        flags=tuple(flags),
        protocols=entry.protocols,
        simulated=is_simulated(entry),
    )


def _excess(case: Case, entry: Entry, limits: Limits) -> Iterator[str]:
    """What is too good to be true; a warm figure of a small array comes from the L2 cache."""
    size = (case.bytes_moved, case.operations, case.dtype)
    for name in ("cold", "warm"):
        if not entry.samples.get(name):
            continue
        problem = limits.excess(*size, figure(entry.samples[name]).value)
        if problem and name == "warm" and not case.operations:
            problem += ": served by the L2 cache"
        if problem:
            yield f"{name}: {problem}"


def _ratio(base: Entry | None, entry: Entry, names: Sequence[str]) -> Any:
    """How many times as fast as the baseline; None for the baseline itself."""
    if base is None or base is entry:
        return None
    for name in names:
        mine, theirs = entry.samples.get(name), base.samples.get(name)
        if mine and theirs:
            return ratio(theirs, mine)
    return None


def prepare(
    op: str | Sequence[str] | None,
    sizes: Sequence[Size] | None,
    dtype: npt.DTypeLike | None,
    contenders: Sequence[Wanted] | None,
) -> tuple[list[Case], Entrants]:
    """Cases and contenders by name. Raises ValueError for what there is not."""
    entrants = select(contenders)
    return plan(op, sizes, dtype), entrants


def compare(  # noqa: PLR0913
    op: str | Sequence[str] | None = None,
    sizes: Sequence[Size] | None = None,
    dtype: npt.DTypeLike | None = None,
    contenders: Sequence[Wanted] | None = None,
    mode: str = "both",
    *,
    protocol: str = "default",
    baseline: str | None = None,
    seed: int | None = None,
    rounds: int | None = None,
    simulated: bool = False,
) -> Comparison:
    """Check every contender against float64, then time the right ones, and check them again.

    ``op`` is "add", "sum", "matmul", "transpose", "all" (these four), one of "subtract",
    "multiply", "maximum", "minimum", "sum axis=0", "sum axis=1", "sum axis=0,1", "max", "min",
    "argmax", "argmin", "dot" and "norm", or a list of them; ``sizes`` holds n or
    (rows, columns), for matmul (m, k, n); ``contenders`` names such as "numpy" or "gpukern:tiled",
    or functions of NumPy arrays. What is left out suits the device. ``mode`` is "device",
    "end-to-end" or "both"; ``protocol`` "leetcuda" or "notes" adds figures taken as these do.
    ``baseline`` names the contender that the ratios are taken against, or is "fastest peer", which
    takes the fastest of the others on each case. ``rounds`` fixes how often
    each figure is measured. The same ``seed`` gives the same inputs. ``simulated`` shows the times
    of the CPU simulator, marked as such. Raises ValueError for a name, dtype or size that does not
    fit.
    """
    cases, entrants = prepare(op, sizes, dtype, contenders)
    settings = make_settings(mode, protocol, rounds, simulated)
    chosen = secrets.randbelow(2**32) if seed is None else seed
    comparison = Comparison(
        chosen, describe_machine(), mode=mode, protocol=protocol, baseline=baseline
    )
    fill(comparison, cases, entrants, settings)
    return comparison


def make_settings(mode: str, protocol: str, rounds: int | None, simulated: bool) -> Settings:
    """Settings from what a user has asked for. Raises ValueError for a name that there is not."""
    for name, value, known in (("mode", mode, MODES), ("protocol", protocol, PROTOCOLS)):
        if value not in known:
            raise ValueError(f"unknown {name} {value!r}; there are {', '.join(known)}")
    return Settings(mode, protocol, Effort(rounds=rounds), simulated)
