"""A user's compiled kernel as a function of inputs and of an array for the result."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gpukern.bench.model.case import KINDS
from gpukern.kernels.module import Kernel
from gpukern.kernels.signature import POINTER, SIGNED, UNSIGNED, Parameter
from gpukern.text.calls import checked_count

_COUNTS = ("n", "size", "count", "length", "numel", "num_elements")
_OF_MATMUL = ("m", "n", "k")


class Launch(NamedTuple):
    """How a kernel is launched: ``grid`` and ``block`` as it takes them, or functions of the inputs
    and ``out``; ``args``, such a function, gives its arguments, None: by their declaration."""

    kernel: Any
    grid: Any
    block: Any
    args: Any
    shared: Any


def check_alone(launch: Launch) -> None:
    """That nothing is said of a kernel's launch where there is no kernel."""
    for name, value in (("grid", launch.grid), ("block", launch.block), ("args", launch.args)):
        if value is not None:
            raise TypeError(f"{name} has to be of a kernel, given as kernel=, and is {value!r}")
    if type(launch.shared) is not int or launch.shared:
        raise TypeError(f"shared has to be of a kernel, given as kernel=, and is {launch.shared!r}")


def as_function(op: str, launch: Launch) -> Callable[..., None]:
    """The kernel as ``function(*inputs, out)``; raises TypeError and ValueError."""
    kernel, args = launch.kernel, launch.args
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel has to be one of gpukern.compile's, as module.add, not {kernel!r}")
    if args is not None and not callable(args):
        raise TypeError(f"args has to be a function of the inputs and out, not {args!r}")
    if launch.grid is not None and launch.block is None:
        raise TypeError("block has to be given with grid, as the threads of one")
    checked_count("shared", launch.shared, 0, "a number of bytes")
    plan = None if args is not None else _plan(op, kernel)

    def run(*arrays: Any) -> None:
        *inputs, out = arrays
        given = args(*arrays) if plan is None else _given(plan, op, inputs, out)
        if launch.grid is None:
            kernel.over(_size(out), launch.block)(*given, shared=launch.shared)
            return
        grid, block = (
            side(*arrays) if callable(side) else side for side in (launch.grid, launch.block)
        )
        kernel(grid, block, *given, shared=launch.shared)

    run.__name__ = kernel.name
    return run


def _named(parameter: Parameter) -> str:
    found = re.search(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$", parameter.text)
    return found[1] if found else ""


def _plan(op: str, kernel: Kernel) -> list[str]:
    """Of each parameter what it is given: "in", "out", or the name of a length."""
    lengths = _OF_MATMUL if KINDS[op] == "matmul" else _COUNTS
    plan = []
    for parameter in kernel.parameters:
        name = _named(parameter).lower()
        if parameter.made_of == POINTER:
            plan.append("in" if parameter.readonly else "out")
        elif parameter.made_of in (SIGNED, UNSIGNED) and name in lengths:
            plan.append(name if KINDS[op] == "matmul" else "count")
        else:
            raise ValueError(
                f"nothing of {op} says what {parameter.text} of {kernel.name} is; args has to be "
                "a function of the inputs and out that gives all arguments"
            )
    inputs = 1 if KINDS[op] in ("sum", "selection", "norm", "transpose") else 2
    if (plan.count("in"), plan.count("out")) != (inputs, 1):
        raise ValueError(
            f"{kernel.signature} has to have {inputs} arrays that are const and one that is not "
            f"for {op}; args, a function of the inputs and out, gives other arguments"
        )
    return plan


def _given(plan: list[str], op: str, inputs: Sequence[Any], out: Any) -> list[Any]:
    first = _shape(inputs[0])
    known: Mapping[str, Any] = {"out": out}
    if KINDS[op] == "matmul":
        known = {"out": out, "m": first[0], "k": first[1], "n": _shape(inputs[1])[1]}
    elif "count" in plan:
        known = {"out": out, "count": _size(inputs[0])}
    left = iter(inputs)
    return [next(left) if one == "in" else known[one] for one in plan]


def _shape(array: Any) -> tuple[int, ...]:
    shape = getattr(array, "shape", None)
    return tuple(array.__cuda_array_interface__["shape"] if shape is None else shape)


def _size(array: Any) -> int:
    size = 1
    for length in _shape(array):
        size *= length
    return size
