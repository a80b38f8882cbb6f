"""Plans of elementwise kernels: what calls have in common that go as the first of them did."""

from math import prod
from typing import Any, NamedTuple

import numpy as np

from gpukern import _core
from gpukern.kernels import operands as taken
from gpukern.kernels.module import Kernel

MOST = 1024  # that a kernel keeps


class Plan(NamedTuple):
    """How a call goes whose arrays are contiguous, aligned, of one shape and in one place, or are
    mapped, which they may be however they lie on the host."""

    wide: Kernel
    a_block: int
    elements: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    on_host: bool


def key_of(arguments: tuple[Any, ...], out: Any, is_by_itself: bool) -> tuple[Any, ...] | None:
    """What calls of one plan have in common; None where there is none for them: they are of the
    simplest kind, numbers, and arrays in one place. ``is_by_itself``: each element of the result
    depends on those at its place alone, so that arrays of the host may be mapped."""
    lying = _as_they_lie(arguments, out) if is_by_itself else None
    if lying is not None:
        return lying
    key: list[Any] = [_core.capability()]
    shape: tuple[int, ...] | None = None
    kind: type | None = None
    places: list[tuple[int, int]] = []
    for value in (*arguments, out):
        if value is None or taken.is_number(value):
            key.append(type(value))
            continue
        found = _on_device if type(value) is _core.DeviceArray else _on_host
        dtype, own, address = found(value, is_out=value is out) or (None, None, 0)
        if dtype is None or kind not in (None, type(value)) or shape not in (None, own):
            return None
        shape, kind = own, type(value)
        places.append((address, dtype.itemsize))
        key.append(dtype)
    if shape is None or (out is not None and kind is not np.ndarray and _meet(places, shape)):
        return None
    return (*key, kind, shape)


def _as_they_lie(arguments: tuple[Any, ...], out: Any) -> tuple[Any, ...] | None:
    """The key of a plan for arrays on the host that are mapped."""
    key: list[Any] = [_core.capability()]
    for value in arguments if out is None else (*arguments, out):
        kind = type(value)
        if kind is np.ndarray and value.ndim > 0:
            key += (value.dtype, value.shape)
        elif value is not out and kind in (float, int, bool):
            key.append(kind)
        else:
            return None
    if out is None:
        return (*key, None)
    return tuple(key) if out.flags.writeable else None


def _on_device(array: Any, is_out: bool) -> tuple[np.dtype[Any], tuple[int, ...], int] | None:
    """Dtype, shape and address of an array that a plan may be made for."""
    del is_out
    interface = array.__cuda_array_interface__
    address = interface["data"][0]
    if interface["strides"] is not None or address % 16:
        return None
    return array.dtype, interface["shape"], address


def _on_host(array: Any, is_out: bool) -> tuple[np.dtype[Any], tuple[int, ...], int] | None:
    """The same of NumPy's."""
    if type(array) is not np.ndarray or array.ndim == 0:
        return None
    flags, dtype = array.flags, array.dtype
    if not flags.c_contiguous or not dtype.isnative or (is_out and not flags.writeable):
        return None
    return dtype, array.shape, 0


def _meet(places: list[tuple[int, int]], shape: tuple[int, ...]) -> bool:
    """Whether the last array shares memory with another one, not element for element; of each its
    address and the bytes of an element."""
    *others, (target, size) = places
    elements = prod(shape)
    return any(
        address < target + elements * size and target < address + elements * its_size
        for address, its_size in others
        if (address, its_size) != (target, size)
    )
