"""What a kernel that is made of an expression is called with: arrays and numbers of any kind."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gpukern import _core
from gpukern.kernels.declared import Declared

*_FIRST, _LAST = _core.DTYPES
_SUPPORTED = f"{', '.join(_FIRST)} and {_LAST}"


class Operand(NamedTuple):
    """An argument. ``given`` is what a kernel takes for it; ``strides`` are bytes, None where it is
    contiguous; ``address`` is 0 on the host. A number of Python's has no dtype of its own."""

    given: Any
    dtype: np.dtype[Any] | None
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    address: int
    is_number: bool
    on_host: bool


class _Lent:
    """An array of another library, from its first element on."""

    def __init__(self, owner: Any, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {**interface, "shape": (), "strides": None}


def is_number(value: Any) -> bool:
    """Whether it is one of Python's."""
    return type(value) in (bool, int, float)


def take(who: str, parameter: Declared, value: Any) -> Operand:
    """The argument of a parameter; raises TypeError."""
    if isinstance(value, _core.DeviceArray):
        return _on_device(value)
    if is_number(value):
        return Operand(value, None, (), None, 0, True, True)
    if isinstance(value, np.ndarray | np.generic):
        return _on_host(who, parameter, value)
    if hasattr(value, "__dlpack__") and not isinstance(value, type):
        return _on_device(_core.from_dlpack(value))
    interface = getattr(value, "__cuda_array_interface__", None)
    if isinstance(interface, dict) and not isinstance(value, type):
        return _foreign(value, interface)
    raise TypeError(
        f"{who}: {parameter.text} takes an array (NumPy's, a DeviceArray or another library's on "
        f"the device) or a number, not {type(value)}"
    )


def _on_device(array: _core.DeviceArray) -> Operand:
    interface = array.__cuda_array_interface__
    address, strides = interface["data"][0], interface["strides"]
    return Operand(array, array.dtype, interface["shape"], strides, address, False, False)


def _foreign(value: Any, interface: dict[str, Any]) -> Operand:
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    strides = interface.get("strides")
    if strides is not None:
        strides = None if _is_contiguous(shape, strides, dtype.itemsize) else tuple(strides)
    given = value if strides is None else _Lent(value, interface)
    return Operand(given, dtype, shape, strides, interface["data"][0], False, False)


def _on_host(who: str, parameter: Declared, value: Any) -> Operand:
    if hasattr(value, "mask"):
        raise TypeError(
            f"{who}: {parameter.text} is a masked array; use .filled(...) or .compressed()"
        )
    dtype = value.dtype.newbyteorder("=")
    if dtype.name not in _core.DTYPES:
        raise TypeError(
            f"{who}: {parameter.text} has dtype {value.dtype}, which is not supported; use "
            f"{_SUPPORTED}"
        )
    number = value.ndim == 0 and not parameter.raw
    return Operand(value, dtype, value.shape, None, 0, number, True)


def _is_contiguous(shape: Sequence[int], strides: Sequence[int], size: int) -> bool:
    expected = size
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


def number_of(
    who: str, parameter: Declared, operand: Operand, dtype: np.dtype[Any]
) -> np.generic | int | float:
    """A number as the kernel takes it: one of another kind has to be of a kind that converts."""
    value = operand.given
    if operand.dtype is None:
        return value  # type: ignore[no-any-return]
    if not np.can_cast(operand.dtype, dtype, "same_kind"):
        raise TypeError(
            f"{who}: {parameter.text} takes {dtype.name}, and was given a number of {operand.dtype}"
        )
    # An array of the other byte order has another dtype, and is converted too.
    return value if value.dtype == dtype else dtype.type(value)  # type: ignore[no-any-return]


def bind(
    who: str, parameters: Sequence[Declared], operands: Sequence[Operand | None]
) -> dict[str, np.dtype[Any]]:
    """The dtype of each letter, and that every array has the dtype of its parameter.

    A letter that only numbers of Python's have is what NumPy makes of those.
    """
    bound: dict[str, np.dtype[Any]] = {}
    by: dict[str, str] = {}
    weak: dict[str, list[Any]] = {}
    for parameter, operand in zip(parameters, operands, strict=True):
        if operand is None:
            continue
        letter = parameter.letter
        if operand.dtype is None:
            if letter:
                weak.setdefault(letter, []).append(operand.given)
        elif letter and bound.setdefault(letter, operand.dtype) != operand.dtype:
            raise TypeError(
                f"{who}: {letter} is {bound[letter]} in {by[letter]}, and {operand.dtype} in "
                f"{parameter.text}; convert one of them with .astype(...)"
            )
        elif letter:
            by.setdefault(letter, parameter.text)
        elif not operand.is_number and operand.dtype != parameter.dtype:
            raise TypeError(
                f"{who}: {parameter.text} takes an array of {parameter.dtype}, and was given one "
                f"of {operand.dtype}; convert it with .astype(...), or declare it by a letter, as "
                f"'T {parameter.name}', which takes any dtype"
            )
    for letter, values in weak.items():
        if letter not in bound:
            bound[letter] = np.result_type(*map(type, values))
    return bound


def broadcast(who: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that all of them have together."""
    first = shapes[0] if shapes else ()
    if all(shape == first for shape in shapes):
        return first
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        shown = " ".join(map(str, shapes))
        raise ValueError(
            f"{who}: operands could not be broadcast together with shapes {shown}"
        ) from None


def contiguous_strides(shape: Sequence[int], size: int) -> tuple[int, ...]:
    """In bytes."""
    strides, step = [], size
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def strides_in(operand: Operand, shape: tuple[int, ...], size: int) -> list[int]:
    """The steps of an operand along the axes of a shape that it is broadcast to."""
    own = operand.strides
    if own is None:
        own = contiguous_strides(operand.shape, size)
    steps = [0 if length == 1 else step for length, step in zip(operand.shape, own, strict=True)]
    return [0] * (len(shape) - len(steps)) + steps


def extent(operand: Operand, size: int) -> tuple[int, int]:
    """The first byte of an array on the device, and the one behind its last."""
    if operand.strides is None:
        return operand.address, operand.address + prod(operand.shape) * size
    low = high = operand.address
    for length, step in zip(operand.shape, operand.strides, strict=True):
        reach = (length - 1) * step
        low, high = min(low, low + reach), max(high, high + reach)
    return low, high + size


def first_element(operand: Operand) -> Any:
    """What a kernel with strides of its own is given: a view of one element, which is where the
    array begins and has its streams."""
    if isinstance(operand.given, _core.DeviceArray) and operand.strides is not None:
        return operand.given[(0,) * len(operand.shape)]
    return operand.given
