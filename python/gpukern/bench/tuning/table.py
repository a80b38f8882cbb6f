"""The file that later processes read: what ``csrc/device/tuned.c`` takes."""

from collections.abc import Iterable, Mapping, Sequence

from gpukern.bench.tuning.search import Box, Choice

HEADING = "# gpukern matmul table 2"
_DEVICE = "# device: "
_MEASURED = "# measured: "


def lines_of(choices: Mapping[Box, Choice]) -> list[str]:
    """A line a box."""
    return [f"{box.text} {choice.variant} {choice.than}" for box, choice in choices.items()]


def table(
    device: str, dtypes: Sequence[str], conditions: Iterable[str], lines: Iterable[str]
) -> str:
    """The whole file; lines in an order that tells nothing of when they were measured."""
    head = [HEADING, f"{_DEVICE}{device}", f"{_MEASURED}{' '.join(dtypes)}"]
    head += [f"# {each}" for each in conditions]
    return "\n".join([*head, *sorted(lines, key=_order)]) + "\n"


def _order(line: str) -> tuple[str, str, int, list[int]]:
    dtype, lie, alignment, *ranges = line.split()[:6]
    return dtype, lie, -int(alignment), [int(each.split("-")[0]) for each in ranges]


def kept(text: str, device: str, dtypes: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of an earlier table of this device the dtypes other than these, and their lines."""
    lines = text.splitlines()
    if HEADING not in lines[:1] or f"{_DEVICE}{device}" not in lines:
        return [], []
    measured = next((line for line in lines if line.startswith(_MEASURED)), _MEASURED)
    others = [name for name in measured.removeprefix(_MEASURED).split() if name not in dtypes]
    return others, [line for line in lines if line.split()[:1] and line.split()[0] in others]
