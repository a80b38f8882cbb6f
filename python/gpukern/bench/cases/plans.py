"""Which cases are compared: those asked for, or those that suit the device."""

from collections.abc import Sequence

import numpy.typing as npt

from gpukern import _core
from gpukern.bench.model.case import AXES, DTYPES_OF, KINDS, OPERATIONS, Case, make_case
from gpukern.catalogue import dtype_name

Size = int | Sequence[int]

_SIDES = (1024, 2048, 4096)
_GPU_CASES: dict[str, tuple[tuple[str, tuple[Size, ...]], ...]] = {
    "matmul": (("float32", (1000, 4096)),),
    "add": tuple((dtype, _SIDES) for dtype in ("float32", "float16")),
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
_ALL = (*_DEFAULT_OPERATIONS, "transpose")
# What has no sizes of its own takes those of the operation that it is most like.
_LIKE = {"elementwise": "add", "sum": "sum", "selection": "sum", "dot": "sum", "norm": "sum"}


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
    if isinstance(sizes, str) or not (sizes is None or hasattr(sizes, "__iter__")):
        raise TypeError(f"sizes has to be a list of sizes, numbers or tuples, not {sizes!r}")
    if sizes is not None and not list(sizes):
        raise ValueError(f"sizes has to hold one size or more, not {sizes!r}")
    defaults = _SIMULATOR_CASES if _core.backend() == "sim" else _GPU_CASES
    cases: list[Case] = []
    for name in _operations(op):
        chosen = _usual(name, defaults)
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


def _usual(
    op: str, defaults: dict[str, tuple[tuple[str, tuple[Size, ...]], ...]]
) -> tuple[tuple[str, tuple[Size, ...]], ...]:
    """Dtypes with sizes for an operation: for a reduction over an axis those of a matrix."""
    kind, over_axis = KINDS[op], op in AXES
    return defaults.get(op) or defaults["transpose" if over_axis else _LIKE[kind]]


def _operations(op: str | Sequence[str] | None) -> tuple[str, ...]:
    if op is None:
        return _DEFAULT_OPERATIONS
    if not hasattr(op, "__iter__"):
        raise TypeError(f"op has to be the name of an operation or a list of names, not {op!r}")
    names = (op,) if isinstance(op, str) else tuple(op)
    if not names:
        raise ValueError(f"op has to name one operation or more, not {op!r}")
    for name in names:
        if not isinstance(name, str) or name not in (*OPERATIONS, "all"):
            raise ValueError(f"unknown operation {name!r}; there are {', '.join(OPERATIONS)}, all")
    return _ALL if "all" in names else names


def _taken(op: str, dtype: npt.DTypeLike) -> str:
    name = dtype_name(dtype)
    if name not in DTYPES_OF[op]:
        raise ValueError(f"{op} does not take {name}; it takes {', '.join(DTYPES_OF[op])}")
    return name
