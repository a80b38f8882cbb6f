"""What was measured as rows: figures with their intervals, and ratios against a baseline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gpukern.bench.model.case import Case
from gpukern.bench.model.finding import Finding
from gpukern.bench.model.intervals import SCATTER, Figure, figure, ratio, typical
from gpukern.bench.model.limits import Limits
from gpukern.bench.model.row import RIGHT, Row, Samples
from gpukern.bench.model.split import Split, middle

# As a baseline: whichever of the others is fastest on that case.
FASTEST_PEER = "fastest peer"

# Which contender the others are measured against where nobody says: the first that has a figure.
_END_TO_END_BASELINES = ("NumPy", "PyTorch", "CuPy")
_DEVICE_BASELINES = ("PyTorch", "CuPy", "gpukern")


@dataclass(frozen=True)
class _Merged:
    """What all processes found out about a contender; ``worst`` is where it did worst."""

    worst: Finding
    blocks: Sequence[Finding]

    @property
    def right(self) -> bool:
        return self.worst.right

    def samples(self, name: str) -> Samples:
        """By process; a process that has none has an empty place."""
        return [block.samples.get(name, {}) for block in self.blocks]

    def figure(self, name: str) -> Figure | None:
        samples = self.samples(name)
        return figure(
            [list(taken.values()) for taken in samples], SCATTER[name].of(*typical(samples))
        )

    def least(self, name: str) -> float | None:
        """The least of a number that each process gives."""
        given = (getattr(block, name) for block in self.blocks)
        return min((one for one in given if one is not None), default=None)

    def most(self, name: str) -> float | None:
        """The greatest."""
        given = (getattr(block, name) for block in self.blocks)
        return max((one for one in given if one is not None), default=None)

    @property
    def split(self) -> Split:
        """Of the calls that were split, one a process, that with the median of their times."""
        return middle([block.split for block in self.blocks if block.split])

    @property
    def protocols(self) -> dict[str, float]:
        """The least figure of each protocol."""
        found: dict[str, float] = {}
        for block in self.blocks:
            for name, seconds in block.protocols.items():
                found[name] = min(found.get(name, seconds), seconds)
        return found


def rows_of(
    case: Case, blocks: Sequence[Sequence[Finding]], baseline: str | None, limits: Limits
) -> Iterator[Row]:
    """A row for each contender of a case that was examined, or cannot take part.

    ``blocks`` are the findings of each process that measured the case.
    """
    merged = _merged(blocks)
    right = [one for one in merged if one.right]
    bases = {
        "end_to_end": _baseline(right, "end_to_end", baseline, _END_TO_END_BASELINES),
        "device": _baseline(right, "cold", baseline, _DEVICE_BASELINES)
        or _baseline(right, "warm", baseline, _DEVICE_BASELINES),
    }
    for one in merged:
        worst = one.worst
        if not one.right:
            yield _row(case, worst, worst.status, error=worst.error, detail=worst.detail)
        elif worst.examined:
            yield _measured(case, one, bases, limits)


def _merged(blocks: Sequence[Sequence[Finding]]) -> list[_Merged]:
    """By contender, in the order of their first appearance; each has a place for every process."""
    found: dict[tuple[str, str], dict[int, Finding]] = {}
    for number, block in enumerate(blocks):
        for finding in block:
            found.setdefault((finding.contender, finding.variant), {})[number] = finding
    return [
        _Merged(
            min(mine.values(), key=_soundness),
            [mine.get(number) or Finding(*label) for number in range(len(blocks))],
        )
        for label, mine in found.items()
    ]


def _soundness(finding: Finding) -> tuple[bool, bool, bool]:
    return finding.right, finding.examined, finding.finished


def _baseline(
    merged: Sequence[_Merged], name: str, wanted: str | None, usual: Sequence[str]
) -> _Merged | None:
    able = [(one, timed.value) for one in merged if (timed := one.figure(name)) is not None]
    if wanted == FASTEST_PEER:
        peers = [(one, value) for one, value in able if one.worst.contender != "gpukern"]
        return min(peers, key=lambda pair: pair[1])[0] if peers else None
    if wanted is not None:
        key, _, variant = wanted.lower().partition(":")
        for one, _ in able:
            who = one.worst
            if who.contender.lower() == key and variant in ("", who.variant.lower()):
                return one
    for title in usual:
        of_that_name = [one for one, _ in able if one.worst.contender == title]
        if of_that_name:
            # The first of a library is its plain call, gpukern's last its best.
            return of_that_name[-1 if title == "gpukern" else 0]
    return able[0][0] if able else None


def _row(case: Case, finding: Finding, status: str, **rest: Any) -> Row:
    return Row(
        op=case.op,
        size=case.size,
        shapes=case.shapes,
        dtype=case.dtype,
        contender=finding.contender,
        variant=finding.variant,
        status=status,
        version=finding.version,
        bytes_moved=case.bytes_moved,
        operations=case.operations,
        **rest,
    )


def _measured(case: Case, one: _Merged, bases: dict[str, _Merged | None], limits: Limits) -> Row:
    first = one.worst
    names = list(dict.fromkeys(name for block in one.blocks for name in block.samples))
    figures = {name: one.figure(name) for name in names}
    device = figures.get("cold") or figures.get("warm")
    flags = list(dict.fromkeys(flag for block in one.blocks for flag in block.flags))
    if first.carried:
        flags.append(f"sums are carried in {first.carried}, and judged by that")
    share = None
    if device and not first.simulated:
        share = limits.share(case.bytes_moved, case.operations, case.dtype, device.value)
        flags += _excess(case, figures, limits)
    return _row(
        case,
        one.worst,
        RIGHT,
        detail="" if one.worst.finished else "interrupted",
        error=one.most("error"),
        ulps=one.most("ulps"),
        bound_share=one.most("share"),
        first_call=None if first.simulated and not names else one.least("first_call"),
        end_to_end=figures.get("end_to_end"),
        on_device=device,
        warm=figures.get("warm"),
        overhead=figures.get("overhead"),
        split=one.split if names else {},
        end_to_end_ratio=_ratio(bases["end_to_end"], one, ("end_to_end",), "end-to-end ratio"),
        device_ratio=_ratio(bases["device"], one, ("cold", "warm"), "device ratio"),
        limit=share,
        flags=tuple(flags),
        protocols=one.protocols,
        simulated=first.simulated,
        samples={name: one.samples(name) for name in names},
    )


def _excess(case: Case, figures: dict[str, Figure | None], limits: Limits) -> Iterator[str]:
    """What is too good to be true; a warm figure of a small array comes from the L2 cache."""
    size = (case.bytes_moved, case.operations, case.dtype)
    for name in ("cold", "warm"):
        timed = figures.get(name)
        problem = limits.excess(*size, timed.value) if timed else ""
        if problem and name == "warm" and not case.operations:
            problem += ": served by the L2 cache"
        if problem:
            yield f"{name}: {problem}"


def _ratio(base: _Merged | None, one: _Merged, names: Sequence[str], kind: str) -> Figure | None:
    """How many times as fast as the baseline; None for the baseline itself."""
    if base is None or base is one:
        return None
    for name in names:
        mine, theirs = one.samples(name), base.samples(name)
        if any(mine) and any(theirs):
            scatter = SCATTER[kind].of(*typical(mine), *typical(theirs))
            return ratio(theirs, mine, scatter)
    return None
