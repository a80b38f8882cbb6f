"""The kernel variants that there are, and which of them run on this machine."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Any

import numpy.typing as npt

from gpukern import _core
from gpukern.text.calls import blamed_on, called_as

# Steps that other operations are made of; nobody calls them by name.
_INTERNAL = (
    "copy",
    "convert",
    "_finish",
    "_wide",
    "_short",
    "_columns",
    "_compact",
    "_turned",
    "_packed",
    "_recurring",
    "_boxed",
    "_worded",
    "_woven",
    "_gathered",
    "_little",
    "_scattered",
    "_matrices",
    "_own",
    "_beside",
    "_even",
    "_straight",
    "_along",
    "_between",
    "_vectors",
    "_vector",
    "_small",
    "_part",
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
    is missing when ``runs`` is false. ``chosen``: whether it is the one that would run; None where
    nobody has asked for what.
    """

    op: str
    variant: str
    dtype: str
    note: str
    minimum_capability: int
    runs: bool
    why: str | None
    chosen: bool | None = None


class Variants(list[Variant]):
    """A list of variants that prints as a table."""

    def __repr__(self) -> str:
        if not self:
            return "no variants"
        head = ("op", "variant", "dtype", "runs" if self[0].chosen is None else "would run", "note")
        lines = [head, *(_cells(variant) for variant in self)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head) - 1)]
        return "\n".join(_aligned(line, widths) for line in lines)


def _cells(variant: Variant) -> tuple[str, ...]:
    note = variant.note if variant.runs else f"{variant.note} (not here: {variant.why})"
    runs = "yes" if variant.runs else "no"
    if variant.chosen is not None:
        runs = "this one" if variant.chosen else ""
    return variant.op, variant.variant, variant.dtype, runs, note


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
            yield _variant(row, row["op"], dtype)


def _variant(row: dict[str, Any], op: str, dtype: str) -> Variant:
    return Variant(
        op=op,
        variant=row["variant"],
        dtype=dtype,
        note=row["note"],
        minimum_capability=row["minimum_capability"],
        runs=row["runs"],
        why=row["why"],
    )


@called_as("variants")
def variants(
    op: str | None = None,
    dtype: npt.DTypeLike | None = None,
    *,
    operands: Sequence[Any] | None = None,
) -> Variants:
    """The kernel variants of ``op`` for ``dtype``; of everything where one is left out.

    Each has the fields op, variant, dtype, note, minimum_capability, runs and why, and comes in the
    order of the ladder, from the naive one up. An operation that goes by the kernels of another, as
    ``greater`` does by those of ``less``, has those.

    ``operands`` are the two of a matmul, arrays or shapes of arrays of ``dtype`` (float32 unless
    given): then ``chosen`` is true of the variant that would multiply them, which depends on their
    sizes and on how they lie. Arrays on the host are seen as they would lie on the device; large
    ones go through it in parts, each by the variant that suits its own size.

    Raises ValueError for an unknown op or dtype and for operands that cannot be multiplied,
    TypeError for what are no operands.
    """
    if operands is not None:
        return _for_operands(op, dtype, operands)
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


def _for_operands(op: str | None, dtype: npt.DTypeLike | None, operands: Sequence[Any]) -> Variants:
    """The variants of a matmul, and which of them two arrays would be multiplied by."""
    with blamed_on("variants"):
        _check_two(operands)
        if op != "matmul":
            raise ValueError(
                f"operands has to be left out for {op!r}: it is for matmul, whose variant depends "
                "on their sizes"
            )
        name = None if dtype is None else dtype_name(dtype)
        a, b = _two_arrays(operands, name or "float32")
    rows, place = _core.rows(), _core.matmul_row(a, b)
    if place is None:
        return Variants(replace(variant, chosen=False) for variant in variants("matmul", name))
    chosen = _variant(rows[place], "matmul", rows[place]["dtype"])
    if name not in (None, chosen.dtype):
        raise ValueError(f"variants: the operands are of {chosen.dtype}, and dtype is {name}")
    listed = variants("matmul", chosen.dtype)
    # A product of few vectors has kernels of its own, which nobody calls by name.
    if chosen not in listed:
        listed.append(chosen)
    return Variants(replace(variant, chosen=variant == chosen) for variant in listed)


def _check_two(operands: Sequence[Any]) -> None:
    several = isinstance(operands, tuple | list)
    if several and len(operands) == 2:
        return
    what = f"{len(operands)} in a {type(operands)}" if several else f"{type(operands)}"
    raise TypeError(
        f"operands has to be two arrays or two shapes, as in ((1000, 64), (64, 10)), not {what}"
    )


def _two_arrays(operands: Sequence[Any], dtype: str) -> tuple[Any, Any]:
    """Arrays as they are, and a shape as an array of it that takes no memory."""
    import numpy as np

    def array(operand: Any) -> Any:
        if not isinstance(operand, tuple | list):
            return operand
        shape = tuple(index(length) for length in operand)
        return np.broadcast_to(np.zeros((), _core.empty((0,), dtype).dtype), shape)

    return array(operands[0]), array(operands[1])
