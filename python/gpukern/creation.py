"""Arrays in device memory that are made of a shape, a value, a range or what a caller has."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern import _core
from gpukern._core import DeviceArray
from gpukern.text.calls import called_as

_Shape = int | Sequence[int]

# What DLPack calls memory that a GPU reads: CUDA's own, and managed memory.
_CUDA_MEMORY = (2, 13)

*_FIRST, _LAST = _core.DTYPES
_DTYPES = f"{', '.join(_FIRST)} and {_LAST}"

# What the functions here are made of: operations, which would speak by their own names.
_STEPS = ("astype", "empty", "fill", "to_device")
_RAISED: tuple[type[Exception], ...] = (TypeError, ValueError, OverflowError, MemoryError)
_RAISED += (BufferError, _core.DeviceLostError, _core.CudaError)  # the narrower one first


@contextmanager
def said_by(name: str, steps: tuple[str, ...] = _STEPS) -> Iterator[None]:
    """Have every step say what is wrong by the name of the function that was called."""
    try:
        yield
    except _RAISED as error:
        whole = str(error).rstrip(".")
        step, _, text = whole.partition(": ")
        # NumPy's kinds of these exceptions are made of other things than a text.
        kind = next(kind for kind in _RAISED if isinstance(error, kind))
        raise kind(f"{name}: {text if step in (name, *steps) else whole}") from None


def _dtype(dtype: npt.DTypeLike | None) -> Any:
    """The dtype as NumPy takes it, which knows bfloat16 by name only once ml_dtypes is there."""
    if dtype is None:
        return None
    if isinstance(dtype, str) and dtype == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    try:
        name = np.dtype(dtype).name
    except (TypeError, ValueError):
        raise TypeError(f"dtype {dtype!r} is none that NumPy knows; use {_DTYPES}") from None
    if name not in _core.DTYPES:
        raise TypeError(f"dtype {dtype!r} is not supported; use {_DTYPES}")
    return dtype


def _check(argument: str, value: Any, array: npt.NDArray[Any]) -> None:
    """Refuse a value that NumPy makes an array of which no operation takes."""
    if type(array) is not np.ndarray and hasattr(array, "mask"):
        raise TypeError(f"{argument} is a masked array; use .filled(...) or .compressed()")
    if array.dtype.name in _core.DTYPES:
        return
    its = "has" if array is value else f"is {type(value)}, as an array of"
    raise TypeError(f"{argument} {its} dtype {array.dtype}, which is not supported; use {_DTYPES}")


def _is_of_numbers(array: npt.NDArray[Any]) -> bool:
    """Whether objects are numbers all the same, as NumPy makes them of integers beyond 64 bits."""
    return array.dtype == object and all(isinstance(each, Real) for each in array.flat)


def _on_host(argument: str, value: Any, dtype: npt.DTypeLike | None) -> npt.NDArray[Any]:
    """An array, a number or a sequence of numbers as an array of NumPy's."""
    wanted = _dtype(dtype)
    try:
        array = np.asanyarray(value)
    except ValueError as error:
        why = "; ".join(str(error).rstrip(".").split(". "))
        raise ValueError(f"{argument} has to be an array or a sequence of numbers: {why}") from None
    # By its own dtype: in another one NumPy takes None for NaN, and texts for numbers.
    if wanted is None or not _is_of_numbers(array):
        _check(argument, value, array)
    return array if wanted is None else _converted(argument, value, wanted)


def _converted(argument: str, value: Any, wanted: Any) -> npt.NDArray[Any]:
    try:
        return np.asanyarray(value, wanted)
    except (OverflowError, ValueError) as error:
        kind = OverflowError if isinstance(error, OverflowError) else ValueError
        raise kind(f"{argument} does not fit the dtype: {error}") from None


def is_on_device(a: Any) -> bool:
    """Whether it is an array in the memory of a device, ours or another library's."""
    if isinstance(a, type):
        return False
    if isinstance(a, DeviceArray) or hasattr(a, "__cuda_array_interface__"):
        return True
    return hasattr(a, "__dlpack_device__") and a.__dlpack_device__()[0] in _CUDA_MEMORY


def _asarray(a: Any, dtype: npt.DTypeLike | None, stream: Any) -> DeviceArray:
    if not is_on_device(a):
        return _core.to_device(_on_host("a", a, dtype), stream=stream)
    array = a if isinstance(a, DeviceArray) else _core.to_device(a, stream=stream)
    return array if dtype is None else array.astype(dtype, copy=False, stream=stream)


def _full(shape: _Shape, fill_value: Any, dtype: npt.DTypeLike | None, stream: Any) -> DeviceArray:
    value: Any
    if is_on_device(fill_value):
        value = _asarray(fill_value, dtype, stream)
    else:
        value = _on_host("fill_value", fill_value, dtype)
    return _filled(shape, value, value.dtype, stream)


def _filled(shape: _Shape, value: Any, dtype: npt.DTypeLike | None, stream: Any) -> DeviceArray:
    made = _core.empty(shape, dtype, stream=stream)
    made.fill(value, stream=stream)
    return made


def _number(argument: str, value: Any) -> None:
    if not isinstance(value, Real | np.bool_):
        raise TypeError(f"{argument} has to be a number, not {value!r}")


@called_as("asarray")
@said_by("asarray")
def asarray(a: Any, /, dtype: npt.DTypeLike | None = None, *, stream: Any = None) -> DeviceArray:
    """``a`` as a DeviceArray: itself if it is one of that dtype, else a copy in device memory.

    ``a`` is an array, a number, or a sequence of numbers as ``numpy.asarray`` takes it. ``dtype``
    None is that of ``a``; of Python numbers it is NumPy's: float64, int64 or bool. ``stream`` is
    the CUDA stream to work on, as for every operation.

    Raises TypeError for dtypes and objects that are not taken, ValueError for a ragged sequence,
    OverflowError for an integer that the dtype does not hold, MemoryError and CudaError.
    """
    return _asarray(a, dtype, stream)


@called_as("arange")
@said_by("arange")
def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: npt.DTypeLike | None = None,
    *,
    stream: Any = None,
) -> DeviceArray:
    """The numbers from ``start`` to before ``stop`` by ``step``; of one number from 0 to before it.

    Its values, and its dtype where none is given (int64 for integers, float64 for floats), are
    those of ``numpy.arange``. Raises TypeError for what is no number, ValueError for a step of 0 or
    more numbers than there can be, OverflowError, MemoryError and CudaError.
    """
    _number("start", start)
    _number("step", step)
    if stop is None:
        start, stop = 0, start
    _number("stop", stop)
    if step == 0:
        raise ValueError("step is 0, and has to be another number")
    try:
        values = np.arange(start, stop, step, dtype=_dtype(dtype))
    except ValueError:
        given = f"start {start!r}, stop {stop!r} and step {step!r}"
        raise ValueError(f"{given} have to give a length that an array can have") from None
    return _core.to_device(values, stream=stream)


@called_as("full")
@said_by("full")
def full(
    shape: _Shape, fill_value: Any, dtype: npt.DTypeLike | None = None, *, stream: Any = None
) -> DeviceArray:
    """An array with ``fill_value`` everywhere: a number, or an array that broadcasts to ``shape``.

    ``dtype`` None is that of ``fill_value`` as ``gpukern.asarray`` has it: float64 of a Python
    float.
    Raises TypeError, ValueError, OverflowError, MemoryError and CudaError.
    """
    return _full(shape, fill_value, dtype, stream)


@called_as("zeros")
@said_by("zeros")
def zeros(
    shape: _Shape, dtype: npt.DTypeLike | None = "float32", *, stream: Any = None
) -> DeviceArray:
    """An array of zeros; of float32 where no dtype is given, as ``gpukern.empty``."""
    return _filled(shape, False, dtype, stream)


@called_as("ones")
@said_by("ones")
def ones(
    shape: _Shape, dtype: npt.DTypeLike | None = "float32", *, stream: Any = None
) -> DeviceArray:
    """An array of ones; of float32 where no dtype is given, as ``gpukern.empty``."""
    return _filled(shape, True, dtype, stream)


def _shape_and_dtype(a: Any, dtype: npt.DTypeLike | None) -> tuple[_Shape, npt.DTypeLike]:
    array: Any
    if isinstance(a, DeviceArray | np.ndarray):
        array = a
    else:
        array = _asarray(a, None, None) if is_on_device(a) else _on_host("a", a, None)
    if dtype is None:
        _check("a", a, array)
    return array.shape, array.dtype.newbyteorder("=") if dtype is None else dtype


@called_as("empty_like")
@said_by("empty_like")
def empty_like(a: Any, /, dtype: npt.DTypeLike | None = None, *, stream: Any = None) -> DeviceArray:
    """A contiguous array of the shape of ``a``, and its dtype unless another is given."""
    return _core.empty(*_shape_and_dtype(a, dtype), stream=stream)


@called_as("zeros_like")
@said_by("zeros_like")
def zeros_like(a: Any, /, dtype: npt.DTypeLike | None = None, *, stream: Any = None) -> DeviceArray:
    """Zeros in the shape of ``a``, and its dtype unless another is given."""
    shape, dtype = _shape_and_dtype(a, dtype)
    return _filled(shape, False, dtype, stream)


@called_as("ones_like")
@said_by("ones_like")
def ones_like(a: Any, /, dtype: npt.DTypeLike | None = None, *, stream: Any = None) -> DeviceArray:
    """Ones in the shape of ``a``, and its dtype unless another is given."""
    shape, dtype = _shape_and_dtype(a, dtype)
    return _filled(shape, True, dtype, stream)


@called_as("full_like")
@said_by("full_like")
def full_like(
    a: Any, /, fill_value: Any, dtype: npt.DTypeLike | None = None, *, stream: Any = None
) -> DeviceArray:
    """``fill_value`` in the shape of ``a``, and its dtype unless another is given."""
    shape, dtype = _shape_and_dtype(a, dtype)
    return _full(shape, fill_value, dtype, stream)
