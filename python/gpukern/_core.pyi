from collections.abc import Sequence
from types import EllipsisType
from typing import Any, Final, Literal, SupportsIndex, TypeAlias, final

import numpy as np
import numpy.typing as npt

# What an operation takes: a NumPy array, a DeviceArray, any object with __cuda_array_interface__ or
# __dlpack__, or (for one of two operands) a Python scalar.
_Operand: TypeAlias = Any
# None, an integer handle, a stream of PyTorch, CuPy or Numba, or an object with __cuda_stream__.
_Stream: TypeAlias = Any
_Axes: TypeAlias = int | tuple[int, ...] | None

_Index: TypeAlias = SupportsIndex | slice | EllipsisType | None

__all__ = [
    "CudaError",
    "DeviceArray",
    "DeviceLostError",
    "Event",
    "SimulatorWarning",
    "abs",
    "add",
    "argmax",
    "argmin",
    "clip",
    "divide",
    "dot",
    "empty",
    "exp",
    "from_dlpack",
    "less",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "multiply",
    "negative",
    "norm",
    "prod",
    "release_memory",
    "scale_add",
    "sqrt",
    "subtract",
    "sum",
    "synchronize",
    "to_device",
    "transpose",
]

DTYPES: dict[str, int]

class CudaError(RuntimeError): ...
class DeviceLostError(CudaError): ...
class SimulatorWarning(UserWarning): ...

@final
class DeviceArray:
    __array_ufunc__: Final[None]
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def T(self) -> DeviceArray: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __dlpack__(
        self,
        *,
        stream: _Stream = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def to_host(self, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]: ...
    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]: ...
    def reshape(self, *shape: int | Sequence[int]) -> DeviceArray: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: _Index | tuple[_Index, ...], /) -> DeviceArray: ...
    def __bool__(self) -> bool: ...
    def __add__(self, other: _Operand, /) -> DeviceArray: ...
    def __radd__(self, other: _Operand, /) -> DeviceArray: ...
    def __sub__(self, other: _Operand, /) -> DeviceArray: ...
    def __rsub__(self, other: _Operand, /) -> DeviceArray: ...
    def __mul__(self, other: _Operand, /) -> DeviceArray: ...
    def __rmul__(self, other: _Operand, /) -> DeviceArray: ...
    def __truediv__(self, other: _Operand, /) -> DeviceArray: ...
    def __rtruediv__(self, other: _Operand, /) -> DeviceArray: ...
    def __neg__(self) -> DeviceArray: ...
    def __abs__(self) -> DeviceArray: ...
    def __matmul__(self, other: _Operand, /) -> DeviceArray: ...
    def __rmatmul__(self, other: _Operand, /) -> DeviceArray: ...

@final
class Event:
    def record(self, stream: _Stream = None) -> None: ...
    def synchronize(self) -> None: ...
    def seconds_since(self, earlier: Event, /) -> float: ...

def add(
    a: _Operand,
    b: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def subtract(
    a: _Operand,
    b: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def multiply(
    a: _Operand,
    b: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def divide(
    a: _Operand,
    b: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def maximum(
    a: _Operand,
    b: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def minimum(
    a: _Operand,
    b: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def less(
    a: _Operand,
    b: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def scale_add(
    a: _Operand,
    x: _Operand,
    y: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def clip(
    a: _Operand,
    /,
    min: float | None = None,
    max: float | None = None,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def negative(
    a: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def abs(
    a: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def sqrt(
    a: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def exp(
    a: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def sum(
    a: _Operand,
    /,
    axis: _Axes = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def mean(
    a: _Operand,
    /,
    axis: _Axes = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def prod(
    a: _Operand,
    /,
    axis: _Axes = None,
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def max(
    a: _Operand,
    /,
    axis: _Axes = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def min(
    a: _Operand,
    /,
    axis: _Axes = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def norm(
    a: _Operand,
    /,
    axis: _Axes = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def argmax(
    a: _Operand,
    /,
    axis: int | None = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def argmin(
    a: _Operand,
    /,
    axis: int | None = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def dot(
    a: _Operand,
    b: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def matmul(
    a: _Operand,
    b: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def transpose(
    a: _Operand,
    /,
    axes: Sequence[int] | None = None,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def matrix_transpose(
    a: _Operand, /, out: Any = None, *, variant: str | None = None, stream: _Stream = None
) -> Any: ...
def to_device(a: Any, /, stream: _Stream = None) -> DeviceArray: ...
def from_dlpack(x: Any, /, *, copy: bool | None = None) -> DeviceArray: ...
def empty(shape: int | Sequence[int], dtype: npt.DTypeLike = "float32") -> DeviceArray: ...
def synchronize(stream: _Stream = None) -> None: ...
def release_memory() -> None: ...

# The rest is what the Python side of the package is built on.
def backend() -> Literal["cuda", "sim"]: ...
def simulator_reason() -> str | None: ...
def rows() -> list[dict[str, Any]]: ...
def devices() -> list[dict[str, Any]]: ...
def driver_report() -> dict[str, Any]: ...
def cublas_report() -> dict[str, Any]: ...
def build_report() -> dict[str, Any]: ...
def strict(change: int, /) -> None: ...
def profile_start() -> None: ...
def profile_stop() -> list[dict[str, Any]]: ...
def fail_call(number: int, /) -> bool: ...
def choose_device(ordinal: int, /) -> int: ...
def limit(name: str, /, bytes: int | None = None) -> int: ...
def live_bytes() -> int: ...
def pinned_bytes() -> tuple[int, int]: ...
