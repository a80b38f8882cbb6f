"""What PyCUDA's users give a kernel, made into what gpukern's kernels take.

PyCUDA packs the bytes of what it is given and asks nothing. Here the kernel's own parameters
decide: what is wrong is said by the parameter's name. Device memory has no dtype to PyCUDA, so it
is lent as one of the parameter's.
"""

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from gpukern import _core
from gpukern.kernels import signature
from gpukern.kernels.module import Kernel
from gpukern.kernels.signature import Parameter
from gpukern.pycuda.layout import Laid
from gpukern.pycuda.memory import DeviceAllocation, Lent, is_address, memory_from


class ArgumentHandler:
    """An array on the host that a kernel is given in device memory."""

    def __init__(self, ary: Any) -> None:
        self.array = ary


class In(ArgumentHandler):
    """An array that goes to the device for the kernel."""


class Out(ArgumentHandler):
    """An array that comes back from the device behind the kernel."""


class InOut(In, Out):
    """An array that goes to the device for the kernel, and comes back behind it."""


_KINDS = {signature.SIGNED: "i", signature.UNSIGNED: "u", signature.FLOAT: "f"}
_BYTE = np.dtype(np.uint8)
# The kinds of NumPy's dtypes that are taken for what a pointer points to.
_TAKEN = {
    signature.SIGNED: "iu",
    signature.UNSIGNED: "iu",
    signature.FLOAT: "f",
    signature.BOOL: "b",
    signature.CHAR: "iub",
    signature.POINTER: "iu",
    signature.BYTES: "u",
}
_OF_PARTS = (signature.BYTES, signature.CHAR, *_KINDS)


def _pointee(parameter: Parameter) -> np.dtype[Any]:
    """A dtype that a pointer takes."""
    made_of = parameter.points_to
    if made_of in _KINDS:
        return np.dtype(f"{_KINDS[made_of]}{parameter.scalar_bytes}")
    if made_of == signature.BOOL:
        return np.dtype(bool)
    return np.dtype(np.uint64) if made_of == signature.POINTER else _BYTE


def _fits(parameter: Parameter, dtype: np.dtype[Any]) -> bool:
    """Whether elements of a dtype are what a pointer points to, whatever sign integers have."""
    made_of, size = parameter.points_to, dtype.itemsize
    if made_of in (signature.ANYTHING, signature.UNKNOWN):
        return True
    if dtype.kind in "cV":  # complex numbers, vectors and other structures go by their size
        return size == parameter.pointee_bytes and made_of in _OF_PARTS
    kinds = _TAKEN.get(made_of, "")
    return dtype.kind in kinds and size == _pointee(parameter).itemsize


def _refuse_dtype(name: str, parameter: Parameter, dtype: Any) -> TypeError:
    wanted = _pointee(parameter).name
    if parameter.points_to == signature.BYTES:
        wanted = f"structures of {parameter.pointee_bytes} bytes"
    return TypeError(
        f"{name}: {parameter.text} takes an array of {wanted}, and was given one of {dtype}; "
        "convert it with .astype(...), or look at it as another with .view(...)"
    )


class _Target(NamedTuple):
    """A parameter; of a pointer the dtype that memory is lent as, by multiples of some bytes."""

    parameter: Parameter
    dtype: np.dtype[Any] | None
    whole: int


_targets: WeakKeyDictionary[Kernel, tuple[_Target, ...]] = WeakKeyDictionary()


def _target(parameter: Parameter) -> _Target:
    if parameter.made_of != signature.POINTER:
        return _Target(parameter, None, 1)
    dtype = _pointee(parameter)
    return _Target(parameter, dtype, max(parameter.pointee_bytes, dtype.itemsize))


def _targets_of(kernel: Kernel) -> tuple[_Target, ...]:
    found = _targets.get(kernel)
    if found is None:
        found = _targets[kernel] = tuple(map(_target, kernel.parameters))
    return found


def _array(name: str, target: _Target, array: Laid) -> Any:
    """A GPUArray for a pointer."""
    parameter, dtype, whole = target
    if array.dtype == dtype and array.in_c_order and array.nbytes % whole == 0:
        return array
    if not (array.in_c_order or array.in_f_order):
        raise ValueError(
            f"{name}: {parameter.text} was given an array that is not contiguous, and a kernel "
            "sees memory, not strides; make a copy of it with .copy()"
        )
    if not _fits(parameter, array.dtype):
        raise _refuse_dtype(name, parameter, array.dtype)
    return Lent(array.memory, _pointee(parameter), whole)


def _handled(name: str, parameter: Parameter, handler: ArgumentHandler) -> Any:
    """An array on the host for a pointer."""
    array = handler.array
    if isinstance(array, np.ndarray):
        if not _fits(parameter, array.dtype):
            raise _refuse_dtype(name, parameter, array.dtype)
        if not array.flags.forc:
            raise ValueError(
                f"{name}: {parameter.text} was given an array that is not contiguous; "
                "numpy.ascontiguousarray(...) makes a copy of it that is"
            )
        array = array.reshape(-1, order="A").view(_pointee(parameter))
    way: Any = _core.In
    if isinstance(handler, Out):
        way = _core.InOut if isinstance(handler, In) else _core.Out
    return way(array)


def _pointer(name: str, target: _Target, value: Any) -> Any:
    parameter = target.parameter
    dtype = _BYTE if target.dtype is None else target.dtype
    if isinstance(value, Laid):
        return _array(name, target, value)
    if isinstance(value, DeviceAllocation):
        return value.lent(dtype, target.whole)
    if isinstance(value, ArgumentHandler):
        return _handled(name, parameter, value)
    if isinstance(value, np.ndarray):
        raise TypeError(
            f"{name}: {parameter.text} is a pointer and was given a NumPy array by itself, of "
            "which PyCUDA would pass the bytes; wrap it in driver.In, Out or InOut, or put it on "
            "the device with driver.to_device or gpuarray.to_gpu"
        )
    if not is_address(value):
        return value
    if value == 0:
        return None
    return Lent(memory_from(f"{name}: {parameter.text}", value), dtype, target.whole)


def adapted(kernel: Kernel, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call; raises TypeError and ValueError by the parameter's name."""
    targets = _targets_of(kernel)
    if len(values) != len(targets):
        return values  # the kernel says what it takes
    return tuple(
        [
            _number(kernel.name, target.parameter, value)
            if target.dtype is None
            else _pointer(kernel.name, target, value)
            for target, value in zip(targets, values, strict=True)
        ]
    )


def _number(name: str, parameter: Parameter, value: Any) -> Any:
    if type(value) in (int, float):
        return value
    if isinstance(value, DeviceAllocation):
        return int(value)
    if isinstance(value, complex | np.complexfloating):
        return np.array(value, f"c{parameter.bytes}") if parameter.bytes in (8, 16) else value
    if isinstance(value, np.ndarray) and value.ndim and parameter.made_of != signature.BYTES:
        raise TypeError(
            f"{name}: {parameter.text} takes a number, and was given an array of "
            f"{value.dtype}{list(value.shape)}; pass one element of it"
        )
    return value
