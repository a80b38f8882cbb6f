from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import Any, ClassVar, Literal, Self, SupportsIndex, TypeAlias, final

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

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
    "Graph",
    "In",
    "InOut",
    "Out",
    "SimulatorWarning",
    "Stream",
    "abs",
    "add",
    "argmax",
    "argmin",
    "clip",
    "divide",
    "dot",
    "empty",
    "empty_pinned",
    "equal",
    "exp",
    "from_dlpack",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
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
    "not_equal",
    "pin",
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
class Stream:
    @property
    def cuda_stream(self) -> int: ...
    @property
    def device(self) -> int: ...
    def synchronize(self) -> None: ...
    def begin_capture(self) -> None: ...
    def end_capture(self) -> Graph: ...
    def __cuda_stream__(self) -> tuple[int, int]: ...

@final
class In:
    def __new__(cls, array: Any, /) -> In: ...
    @property
    def array(self) -> Any: ...

@final
class Out:
    def __new__(cls, array: Any, /) -> Out: ...
    @property
    def array(self) -> Any: ...

@final
class InOut:
    def __new__(cls, array: Any, /) -> InOut: ...
    @property
    def array(self) -> Any: ...

@final
class Image:
    def __new__(cls, code: bytes, /) -> Image: ...
    def parameters(self, symbol: str, /) -> list[int]: ...
    def symbol(self, symbol: str, /) -> tuple[int, int]: ...
    def array(
        self, symbol: str, dtype: npt.DTypeLike, shape: int | Sequence[int], /
    ) -> DeviceArray: ...

@disjoint_base
class Kernel:
    def __new__(
        cls,
        image: Image,
        symbol: str,
        name: str,
        parameters: tuple[tuple[str, int, int, int, int, int, int, int], ...],
        /,
    ) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def symbol(self) -> str: ...
    def __call__(
        self, grid: Any, block: Any, *arguments: Any, shared: int = 0, stream: _Stream = None
    ) -> None: ...
    def examine(
        self, grid: Any, block: Any, /, *arguments: Any, shared: int = 0, stream: _Stream = None
    ) -> tuple[int, tuple[tuple[memoryview | DeviceArray, bool, bool] | None, ...]]: ...
    def facts(self) -> dict[str, int]: ...
    def active_blocks(self, block: Any, /, shared: int = 0) -> int: ...
    def map(
        self,
        a_block: int,
        block: Any,
        shape: tuple[int, ...],
        dtype: Any,
        arguments: tuple[Any, ...],
        /,
        out: Any = None,
        stream: _Stream = None,
    ) -> Any: ...
    def suggest_block(self, shared: int = 0) -> int: ...

@final
class Graph:
    def launch(self, stream: _Stream = None) -> None: ...

@final
class DeviceArray:
    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, /, *inputs: Any, **named: Any
    ) -> Any: ...
    def __array_function__(
        self,
        function: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...],
        named: dict[str, Any],
        /,
    ) -> Any: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
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
    def device(self) -> int: ...
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
    def transpose(self, *axes: int | Sequence[int] | None) -> DeviceArray: ...
    def ravel(self) -> DeviceArray: ...
    def flatten(self) -> DeviceArray: ...
    def astype(
        self, dtype: npt.DTypeLike, copy: bool = True, *, stream: _Stream = None
    ) -> DeviceArray: ...
    def copy(self, *, stream: _Stream = None) -> DeviceArray: ...
    def fill(self, value: Any, /, *, stream: _Stream = None) -> None: ...
    def sum(
        self,
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
        self,
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
        self,
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
        self,
        /,
        axis: _Axes = None,
        out: Any = None,
        keepdims: bool = False,
        *,
        variant: str | None = None,
        stream: _Stream = None,
    ) -> Any: ...
    def min(
        self,
        /,
        axis: _Axes = None,
        out: Any = None,
        keepdims: bool = False,
        *,
        variant: str | None = None,
        stream: _Stream = None,
    ) -> Any: ...
    def argmax(
        self,
        /,
        axis: int | None = None,
        out: Any = None,
        keepdims: bool = False,
        *,
        variant: str | None = None,
        stream: _Stream = None,
    ) -> Any: ...
    def argmin(
        self,
        /,
        axis: int | None = None,
        out: Any = None,
        keepdims: bool = False,
        *,
        variant: str | None = None,
        stream: _Stream = None,
    ) -> Any: ...
    def dot(
        self, b: _Operand, /, out: Any = None, *, variant: str | None = None, stream: _Stream = None
    ) -> Any: ...
    def clip(
        self,
        /,
        min: float | None = None,
        max: float | None = None,
        out: Any = None,
        *,
        variant: str | None = None,
        stream: _Stream = None,
    ) -> Any: ...
    def __copy__(self) -> DeviceArray: ...
    def __deepcopy__(self, memo: Any, /) -> DeviceArray: ...
    def item(self) -> Any: ...
    def tolist(self) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[DeviceArray]: ...
    def __contains__(self, other: _Operand, /) -> bool: ...
    def __getitem__(self, key: _Index | tuple[_Index, ...], /) -> DeviceArray: ...
    def __setitem__(self, key: _Index | tuple[_Index, ...], value: Any, /) -> None: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __index__(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    def __complex__(self) -> complex: ...
    def __round__(self, ndigits: int | None = None, /) -> Any: ...
    def __format__(self, spec: str, /) -> str: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __eq__(self, other: _Operand, /) -> DeviceArray: ...  # type: ignore[override]
    def __ne__(self, other: _Operand, /) -> DeviceArray: ...  # type: ignore[override]
    def __lt__(self, other: _Operand, /) -> DeviceArray: ...
    def __le__(self, other: _Operand, /) -> DeviceArray: ...
    def __gt__(self, other: _Operand, /) -> DeviceArray: ...
    def __ge__(self, other: _Operand, /) -> DeviceArray: ...
    def __neg__(self) -> DeviceArray: ...
    def __abs__(self) -> DeviceArray: ...
    def __add__(self, other: _Operand, /) -> DeviceArray: ...
    def __radd__(self, other: _Operand, /) -> DeviceArray: ...
    def __iadd__(self, other: _Operand, /) -> DeviceArray: ...
    def __sub__(self, other: _Operand, /) -> DeviceArray: ...
    def __rsub__(self, other: _Operand, /) -> DeviceArray: ...
    def __isub__(self, other: _Operand, /) -> DeviceArray: ...
    def __mul__(self, other: _Operand, /) -> DeviceArray: ...
    def __rmul__(self, other: _Operand, /) -> DeviceArray: ...
    def __imul__(self, other: _Operand, /) -> DeviceArray: ...
    def __truediv__(self, other: _Operand, /) -> DeviceArray: ...
    def __rtruediv__(self, other: _Operand, /) -> DeviceArray: ...
    def __itruediv__(self, other: _Operand, /) -> DeviceArray: ...
    def __matmul__(self, other: _Operand, /) -> DeviceArray: ...
    def __rmatmul__(self, other: _Operand, /) -> DeviceArray: ...
    def __imatmul__(self, other: _Operand, /) -> DeviceArray: ...

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
def less_equal(
    a: _Operand,
    b: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def equal(
    a: _Operand,
    b: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def not_equal(
    a: _Operand,
    b: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def greater(
    a: _Operand,
    b: _Operand,
    /,
    out: Any = None,
    *,
    variant: str | None = None,
    stream: _Stream = None,
) -> Any: ...
def greater_equal(
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
    dtype: npt.DTypeLike | None = None,
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
def empty(
    shape: int | Sequence[int],
    dtype: npt.DTypeLike | None = "float32",
    *,
    stream: _Stream = None,
) -> DeviceArray: ...
def empty_pinned(
    shape: int | Sequence[int], dtype: npt.DTypeLike | None = "float32"
) -> npt.NDArray[Any]: ...
def pin(a: npt.NDArray[Any], /) -> npt.NDArray[Any]: ...
def synchronize(stream: _Stream = None) -> None: ...
def release_memory() -> None: ...

# The rest is what the Python side of the package is built on.
def backend() -> Literal["cuda", "sim"]: ...
def simulator_reason() -> str | None: ...
def rows() -> list[dict[str, Any]]: ...
def matmul_row(a: _Operand, b: _Operand, /, *, by_rule: bool = False) -> int | None: ...
def devices() -> list[dict[str, Any]]: ...
def driver_report() -> dict[str, Any]: ...
def cublas_report() -> dict[str, Any]: ...
def compile_source(
    library: str,
    name: str,
    source: str,
    options: tuple[str, ...],
    headers: tuple[str, ...],
    expressions: tuple[str, ...],
    /,
) -> tuple[bool, bytes, str, tuple[str, ...]]: ...
def xla_target(on_gpu: bool, /) -> Any: ...
def nvrtc_version(library: str, /) -> int: ...
def capability() -> int: ...
def build_report() -> dict[str, Any]: ...
def strict(change: int, /) -> None: ...
def profile_start() -> None: ...
def profile_stop() -> list[dict[str, Any]]: ...
def fail_call(number: int, /) -> bool: ...
def device_count() -> int: ...
def make_current() -> int: ...
def choose_device(ordinal: int, /) -> int: ...
def limit(name: str, /, bytes: int | None = None) -> int: ...
def live_bytes() -> int: ...
def pinned_bytes() -> tuple[int, int]: ...
def staging() -> list[dict[str, Any]]: ...
