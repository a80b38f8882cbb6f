"""What was measured as rows: figures with their intervals, and ratios against a baseline."""

from collections.abc import Iterator, Sequence
from typing import Any

from gpukern.bench.checking.entry import Entry
from gpukern.bench.contenders.registry import Peer
from gpukern.bench.model.case import Case
from gpukern.bench.model.contender import Absent
from gpukern.bench.model.intervals import figure, ratio
from gpukern.bench.model.limits import Limits
from gpukern.bench.model.row import ABSENT, BROKEN, RIGHT, Row

# As a baseline: whichever of the others is fastest on that case.
FASTEST_PEER = "fastest peer"

# Which contender the others are measured against where nobody says: the first that has a figure.
_END_TO_END_BASELINES = ("NumPy", "PyTorch", "CuPy")
_DEVICE_BASELINES = ("PyTorch", "CuPy", "gpukern")


def rows_of(
    case: Case,
    found: Sequence[tuple[Peer, Entry | Absent]],
    baseline: str | None,
    limits: Limits,
) -> Iterator[Row]:
    """A row for each contender of a case that was examined, or cannot take part."""
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
        return min(
            peers, key=lambda entry: figure(entry.samples[name].values()).value, default=None
        )
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
    figures = {name: figure(taken.values()) for name, taken in entry.samples.items()}
    device = figures.get("cold") or figures.get("warm")
    flags = list(dict.fromkeys(entry.flags))
    if entry.contender.carried:
        flags.append(f"sums are carried in {entry.contender.carried}, and judged by that")
    share = None
    if device and not entry.simulated:
        share = limits.share(case.bytes_moved, case.operations, case.dtype, device.value)
        flags += _excess(case, entry, limits)
    return _row(
        case,
        entry.contender.name,
        entry.contender.variant,
        RIGHT,
        peer,
        detail="" if entry.finished else "interrupted",
        error=entry.error,
        ulps=entry.ulps,
        bound_share=entry.share,
        first_call=None if entry.simulated and not entry.samples else entry.first_call,
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
        simulated=entry.simulated,
    )


def _excess(case: Case, entry: Entry, limits: Limits) -> Iterator[str]:
    """What is too good to be true; a warm figure of a small array comes from the L2 cache."""
    size = (case.bytes_moved, case.operations, case.dtype)
    for name in ("cold", "warm"):
        if not entry.samples.get(name):
            continue
        problem = limits.excess(*size, figure(entry.samples[name].values()).value)
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
