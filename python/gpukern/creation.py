"""Arrays in device memory that are made of a shape, a value, a range or what a caller has."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern import _core
from gpukern._core import DeviceArray

_Shape = int | Sequence[int]

# What DLPack calls memory that a GPU reads: CUDA's own, and managed memory.
_CUDA_MEMORY = (2, 13)


def _dtype(dtype: npt.DTypeLike | None) -> Any:
    """The dtype as NumPy takes it, which knows bfloat16 by name only once ml_dtypes is there."""
    if isinstance(dtype, str) and dtype == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return dtype


def _is_on_device(a: Any) -> bool:
    if isinstance(a, DeviceArray) or hasattr(a, "__cuda_array_interface__"):
        return True
    return hasattr(a, "__dlpack_device__") and a.__dlpack_device__()[0] in _CUDA_MEMORY


def asarray(a: Any, /, dtype: npt.DTypeLike | None = None, *, stream: Any = None) -> DeviceArray:
    """``a`` as a DeviceArray: itself if it is one of that dtype, else a copy in device memory.

    ``a`` is an array, a number, or a sequence of numbers as ``numpy.asarray`` takes it. ``dtype``
    None is that of ``a``; of Python numbers it is NumPy's: float64, int64 or bool. ``stream`` is
    the CUDA stream to work on, as for every operation.

    Raises TypeError for dtypes and objects that are not taken, ValueError for a ragged sequence,
    OverflowError for an integer that the dtype does not hold, MemoryError and CudaError.
    """
    if not _is_on_device(a):
        return _core.to_device(np.asarray(a, _dtype(dtype)), stream=stream)
    array = a if isinstance(a, DeviceArray) else _core.to_device(a, stream=stream)
    return array if dtype is None else array.astype(dtype, copy=False, stream=stream)


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
    those of ``numpy.arange``. Raises what that raises, and what ``gpukern.to_device`` does.
    """
    if stop is None:
        start, stop = 0, start
    return _core.to_device(np.arange(start, stop, step, dtype=_dtype(dtype)), stream=stream)


def full(
    shape: _Shape, fill_value: Any, dtype: npt.DTypeLike | None = None, *, stream: Any = None
) -> DeviceArray:
    """An array with ``fill_value`` everywhere: a number, or an array that broadcasts to ``shape``.

    ``dtype`` None is that of ``fill_value`` as ``gpukern.asarray`` has it: float64 of a Python
    float.
    Raises TypeError, ValueError, OverflowError, MemoryError and CudaError.
    """
    value: Any
    if _is_on_device(fill_value):
        value = asarray(fill_value, dtype, stream=stream)
    else:
        value = np.asarray(fill_value, _dtype(dtype))
    made = _core.empty(shape, value.dtype, stream=stream)
    made.fill(value, stream=stream)
    return made


def zeros(
    shape: _Shape, dtype: npt.DTypeLike | None = "float32", *, stream: Any = None
) -> DeviceArray:
    """An array of zeros; of float32 where no dtype is given, as ``gpukern.empty``."""
    made = _core.empty(shape, dtype, stream=stream)
    made.fill(False, stream=stream)
    return made


def ones(
    shape: _Shape, dtype: npt.DTypeLike | None = "float32", *, stream: Any = None
) -> DeviceArray:
    """An array of ones; of float32 where no dtype is given, as ``gpukern.empty``."""
    made = _core.empty(shape, dtype, stream=stream)
    made.fill(True, stream=stream)
    return made


def _shape_and_dtype(a: Any, dtype: npt.DTypeLike | None) -> tuple[_Shape, npt.DTypeLike]:
    array = a if isinstance(a, DeviceArray | np.ndarray) else asarray(a)
    return array.shape, array.dtype.newbyteorder("=") if dtype is None else dtype


def empty_like(a: Any, /, dtype: npt.DTypeLike | None = None, *, stream: Any = None) -> DeviceArray:
    """A contiguous array of the shape of ``a``, and its dtype unless another is given."""
    return _core.empty(*_shape_and_dtype(a, dtype), stream=stream)


def zeros_like(a: Any, /, dtype: npt.DTypeLike | None = None, *, stream: Any = None) -> DeviceArray:
    """Zeros in the shape of ``a``, and its dtype unless another is given."""
    return zeros(*_shape_and_dtype(a, dtype), stream=stream)


def ones_like(a: Any, /, dtype: npt.DTypeLike | None = None, *, stream: Any = None) -> DeviceArray:
    """Ones in the shape of ``a``, and its dtype unless another is given."""
    return ones(*_shape_and_dtype(a, dtype), stream=stream)


def full_like(
    a: Any, /, fill_value: Any, dtype: npt.DTypeLike | None = None, *, stream: Any = None
) -> DeviceArray:
    """``fill_value`` in the shape of ``a``, and its dtype unless another is given."""
    shape, dtype = _shape_and_dtype(a, dtype)
    return full(shape, fill_value, dtype, stream=stream)
