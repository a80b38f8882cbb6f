"""The kernel variants that there are, and which of them run on this machine."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from gpukern import _core
from gpukern.text.calls import blamed_on, called_as

# Steps that other operations are made of; nobody calls them by name.
_INTERNAL = (
    *("copy", "convert", "_finish", "_wide", "_short", "_columns"),
    *("_vectors", "_vector", "_part"),
)

# Operations that have no kernels of their own, but go by another one's.
_BY_OTHERS = {"greater": "less", "greater_equal": "less_equal", "matrix_transpose": "transpose"}

DTYPES = tuple(_core.DTYPES)

# A kernel that only moves bits serves every dtype of that size.
_BITS = {
    f"bits{8 * size}": tuple(name for name, bytes_ in _core.DTYPES.items() if bytes_ == size)
    for size in (1, 2, 4, 8, 16)
}


@dataclass(frozen=True)
class Variant:
    """One way to run an operation.

    ``minimum_capability`` is the least compute capability times ten (75 is 7.5); ``why`` says what
    is missing when ``runs`` is false.
    """

    op: str
    variant: str
    dtype: str
    note: str
    minimum_capability: int
    runs: bool
    why: str | None


class Variants(list[Variant]):
    """A list of variants that prints as a table."""

    def __repr__(self) -> str:
        if not self:
            return "no variants"
        head = ("op", "variant", "dtype", "runs", "note")
        lines = [head, *(_cells(variant) for variant in self)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head) - 1)]
        return "\n".join(_aligned(line, widths) for line in lines)


def _cells(variant: Variant) -> tuple[str, ...]:
    note = variant.note if variant.runs else f"{variant.note} (not here: {variant.why})"
    return variant.op, variant.variant, variant.dtype, "yes" if variant.runs else "no", note


def _aligned(line: tuple[str, ...], widths: list[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
    return "  ".join([*padded, line[-1]])


def dtype_name(dtype: npt.DTypeLike) -> str:
    """The name of a dtype as gpukern writes it: ``dtype_name(np.float32) == "float32"``.

    Raises ValueError for a dtype that no operation takes, listing the ones that there are.
    """
    if isinstance(dtype, str) and dtype in DTYPES:
        return dtype
    import numpy as np

    try:
        name = np.dtype(dtype).name
    except (TypeError, ValueError):
        name = ""
    if name not in DTYPES:
        raise ValueError(f"unknown dtype {dtype!r}; there are {', '.join(DTYPES)}")
    return name


def _expanded(rows: Iterable[dict[str, Any]]) -> Iterable[Variant]:
    for row in rows:
        if row["op"].endswith(_INTERNAL):
            continue
        for dtype in _BITS.get(row["dtype"], (row["dtype"],)):
            yield Variant(
                op=row["op"],
                variant=row["variant"],
                dtype=dtype,
                note=row["note"],
                minimum_capability=row["minimum_capability"],
                runs=row["runs"],
                why=row["why"],
            )


@called_as("variants")
def variants(op: str | None = None, dtype: npt.DTypeLike | None = None) -> Variants:
    """The kernel variants of ``op`` for ``dtype``; of everything where one is left out.

    Each has the fields op, variant, dtype, note, minimum_capability, runs and why, and comes in the
    order of the ladder, from the naive one up. An operation that goes by the kernels of another, as
    ``greater`` does by those of ``less``, has those. Raises ValueError for an unknown op or dtype.
    """
    found = Variants(_expanded(_core.rows()))
    known = list(dict.fromkeys(variant.op for variant in found))
    with blamed_on("variants"):
        if isinstance(op, str):
            op = _BY_OTHERS.get(op, op)
        if op is not None and not (isinstance(op, str) and op in known):
            raise ValueError(f"unknown operation {op!r}; there are {', '.join(known)}")
        name = None if dtype is None else dtype_name(dtype)
    return Variants(
        variant for variant in found if op in (None, variant.op) and name in (None, variant.dtype)
    )
