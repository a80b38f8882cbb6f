"""CUDA Python: NVIDIA's own bindings. A kernel through cuda.core, and cuBLAS called with them.

cuda.bindings has no module for cuBLAS, so its C functions are called with ctypes on pointers and
streams that come from the bindings.
"""

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from cuda import pathfinder
from cuda.bindings import runtime

try:
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
except ImportError:
    from cuda.core.experimental import Device, LaunchConfig, Program, ProgramOptions, launch

from gpukern.bench.contenders.kept import Kept, Prepared
from gpukern.bench.model.contender import Absent, Contender, DeviceSide

Array = npt.NDArray[Any]

_C_TYPES = {"float32": "float", "float64": "double", "int32": "int", "int64": "long long"}
_GEMM = {
    "float32": ("cublasSgemm_v2", ctypes.c_float),
    "float64": ("cublasDgemm_v2", ctypes.c_double),
}
_THREADS = 256

_SOURCE = """
extern "C" __global__ void add(T *out, const T *a, const T *b, unsigned long long count) {
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = a[i] + b[i];
}
"""


def contenders(op: str, dtype: str) -> Iterator[Contender | Absent]:
    """What takes part in a comparison of ``op`` on ``dtype``."""
    if op == "add" and dtype in _C_TYPES:
        yield _contender("cuda.core add", _adder(dtype), lambda a, b: a)
    elif op == "matmul" and dtype in _GEMM:
        yield _contender("cuBLAS", _gemm(dtype), lambda m, n: (m[0], n[1]))
    else:
        yield Absent("CUDA Python", "", f"no {op} for {dtype} here")


class Owned:
    """An array in memory that the CUDA runtime has allocated."""

    def __init__(self, shape: tuple[int, ...], dtype: "np.dtype[Any]") -> None:
        self.shape, self.dtype = shape, dtype
        self.nbytes = math.prod(shape) * dtype.itemsize
        self.pointer = int(_right(runtime.cudaMalloc(self.nbytes)))

    def __del__(self) -> None:
        if hasattr(self, "pointer"):
            runtime.cudaFree(self.pointer)


def _right(answer: Any) -> Any:
    """The value of a call of the runtime, which comes after its status."""
    status, *values = answer
    if int(status) != 0:
        raise RuntimeError(f"the CUDA runtime says {status}")
    return values[0] if values else None


def load(array: Array) -> Owned:
    """A NumPy array on the GPU."""
    return _put(array, Owned(array.shape, array.dtype))


def _put(array: Array, owned: Owned) -> Owned:
    kind = runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
    source = np.ascontiguousarray(array)
    _right(runtime.cudaMemcpy(owned.pointer, source.ctypes.data, owned.nbytes, kind))
    return owned


def fetch(owned: Owned) -> Array:
    """A NumPy array of one on the GPU."""
    found = np.empty(owned.shape, owned.dtype)
    kind = runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
    _right(runtime.cudaMemcpy(found.ctypes.data, owned.pointer, owned.nbytes, kind))
    return found


def _wrap(memory: Any) -> Any:
    # The kernels take pointers.
    return memory


# Makes what starts the work on some inputs and an output.
Prepare = Callable[[Sequence[Any], Any], Callable[[], object]]


def _contender(variant: str, prepare: Prepare, shape: Callable[..., tuple[int, ...]]) -> Contender:
    buffers = Kept(Owned)

    def end_to_end(*arrays: Array) -> Array:
        inputs = [
            _put(array, buffers(place, array.shape, array.dtype))
            for place, array in enumerate(arrays)
        ]
        out = buffers("out", shape(*(array.shape for array in arrays)), arrays[0].dtype)
        prepare(inputs, out)()
        return fetch(out)

    side = DeviceSide(load, Prepared(prepare), fetch, _wrap)
    return Contender("CUDA Python", variant, end_to_end, side)


@cache
def _device() -> Any:
    device = Device()
    device.set_current()
    return device


@cache
def _add_kernel(dtype: str) -> Any:
    major, minor = _device().compute_capability
    options = ProgramOptions(std="c++17", arch=f"sm_{major}{minor}")
    program = Program(f"typedef {_C_TYPES[dtype]} T;\n{_SOURCE}", "c++", options)
    return program.compile("cubin").get_kernel("add")


def _adder(dtype: str) -> Prepare:
    def prepare(inputs: Sequence[Any], out: Any) -> Callable[[], object]:
        count = math.prod(out.shape)
        config = LaunchConfig(grid=(count + _THREADS - 1) // _THREADS, block=_THREADS)
        pointers = [array.pointer for array in (out, *inputs)]
        kernel, stream = _add_kernel(dtype), _device().default_stream
        return partial(launch, stream, config, kernel, *pointers, np.uint64(count))

    return prepare


@cache
def _cublas() -> tuple[Any, ctypes.c_void_p]:
    """The library with a handle on the legacy default stream."""
    _device()
    library = ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("cublas").abs_path)
    handle = ctypes.c_void_p()
    _worked(library.cublasCreate_v2(ctypes.byref(handle)))
    return library, handle


def _worked(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"cuBLAS says {status}")


def _gemm(dtype: str) -> Prepare:
    name, number = _GEMM[dtype]

    def prepare(inputs: Sequence[Any], out: Any) -> Callable[[], object]:
        library, handle = _cublas()
        a, b = inputs
        (m, k), n = a.shape, b.shape[1]
        function, one, zero = getattr(library, name), number(1), number(0)
        # cuBLAS counts by columns: the transposed product is that of the operands in reverse.
        sizes = [ctypes.c_int(value) for value in (0, 0, n, m, k)]
        left, right, result = (ctypes.c_void_p(array.pointer) for array in (b, a, out))
        factors = [ctypes.byref(one), ctypes.byref(zero)]
        arguments = [handle, *sizes, factors[0], left, n, right, k, factors[1], result, n]
        return lambda: _worked(function(*arguments))

    return prepare
