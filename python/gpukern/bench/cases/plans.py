"""Which cases are compared: those asked for, or those that suit the device."""

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy.typing as npt

from gpukern import _core
from gpukern.bench.model.case import AXES, DTYPES_OF, KINDS, OPERATIONS, Case, make_case
from gpukern.catalogue import dtype_name
from gpukern.text.units import size as size_text

Size = int | Sequence[int]

# Sizes by dtype, each with one that tiles and vectors do not divide, and few enough for a minute.
# What is short comes first, for the first table to come soon.
_Sizes = dict[str, tuple[Size, ...]]
_ODD, _LARGE_ODD = (2047, 2049), (4095, 4097)
_GPU_CASES: dict[str, _Sizes] = {
    "add": {"float16": ((1023, 1025),), "float32": (_ODD,)},
    "matmul": {"float32": (1000,)},
    "sum": {"float32": (2**24 - 157,)},
    "transpose": {"float32": (4096, _LARGE_ODD)},
}
# What two cores simulate in a few seconds, a tail included.
_SIMULATOR_CASES: dict[str, _Sizes] = {
    "add": {"float16": ((512, 511),), "float32": ((512, 511),)},
    "matmul": {"float32": (192,)},
    "sum": {"float32": (2**20 - 157,)},
    "transpose": {"float32": ((512, 511),)},
}
_DEFAULT_OPERATIONS = ("add", "matmul", "sum")
_ALL = (*_DEFAULT_OPERATIONS, "transpose")
# How much the simulator does for an element, an element of an add being 1: in reductions threads
# wait for one another; of matmul, for a product that is added.
_STEPS = {"elementwise": 1.0, "transpose": 1.0, "matmul": 0.125}
_STEPS_OF_REDUCTIONS = 4.0
# So many steps take a third of a second on two cores, and each variant is called several times.
_SHORT_CALL = 2**22
_LONGEST_CALL = 2**25
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
        if dtype is not None or sizes is not None:
            kind = _taken(name, "float32" if dtype is None else dtype)
            chosen = {kind: chosen["float32"]}
        cases += [
            make_case(name, size, kind)
            for kind, usual in chosen.items()
            for size in (usual if sizes is None else sizes)
        ]
    for case in cases:
        _check_memory(case)
    return cases


def _check_memory(case: Case) -> None:
    """Raise ValueError for what no program on this machine could hold."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if case.bytes_moved > there:
        raise ValueError(
            f"{case.op} {case.size} {case.dtype} takes {size_text(case.bytes_moved)}, and this "
            f"machine has {size_text(there)} of memory"
        )


def simulable(cases: Sequence[Case], shorten: bool) -> list[Case]:
    """The cases, where the simulator is what runs them those that it does in time.

    ``shorten`` puts shorter ones in the place of those that take longer than some seconds. Without
    it, raises ValueError for one that takes minutes.
    """
    if _core.backend() != "sim":
        return list(cases)
    if shorten:
        return list(dict.fromkeys(_shorter(case, _SHORT_CALL) for case in cases))
    for case in cases:
        if _steps(case) > _LONGEST_CALL:
            raise ValueError(
                f"{case.op} {case.size} {case.dtype} takes minutes on the simulator, where no GPU "
                f"is; {_shorter(case, _LONGEST_CALL).size} is done in time"
            )
    return list(cases)


def _steps(case: Case) -> float:
    """How much the simulator has to do for a call."""
    work = case.operations / 2 if case.op == "matmul" else case.count
    return work * _STEPS.get(case.kind, _STEPS_OF_REDUCTIONS)


def _shorter(case: Case, most: int) -> Case:
    """The case with its longest side halved until it has no more steps than that."""
    while _steps(case) > most:
        longest = max(side for shape in case.shapes for side in shape)
        shapes = tuple(
            tuple(side // 2 if side == longest else side for side in shape) for shape in case.shapes
        )
        case = replace(case, shapes=shapes)
    return case


def _usual(op: str, defaults: dict[str, _Sizes]) -> _Sizes:
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
