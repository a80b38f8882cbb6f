"""PyCUDA: its array class, and CUDA C through SourceModule with In and Out arguments."""

import atexit
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from pycuda import driver, gpuarray
from pycuda.compiler import SourceModule
from pycuda.tools import DeviceMemoryPool

from gpukern import _core
from gpukern.bench.contenders.kept import Prepared
from gpukern.bench.model.contender import Absent, Contender, DeviceSide

Array = npt.NDArray[Any]

_C_TYPES = {"float32": "float", "float64": "double"}
_ARRAY_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sum": gpuarray.sum,
}

_SOURCE = """
__global__ void add(T *out, const T *a, const T *b, long long count) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = a[i] + b[i];
}

__global__ void matmul(T *out, const T *a, const T *b, int m, int k, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || column >= n)
        return;
    T total = 0;
    for (int i = 0; i < k; i++)
        total += a[(long long)row * k + i] * b[(long long)i * n + column];
    out[(long long)row * n + column] = total;
}

__global__ void transpose(T *out, const T *a, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column < columns)
        out[(long long)column * rows + row] = a[(long long)row * columns + column];
}
"""


def contenders(op: str, dtype: str) -> Iterator[Contender | Absent]:
    """What takes part in a comparison of ``op`` on ``dtype``."""
    _context()
    if dtype not in _C_TYPES or op not in ("add", "sum", "matmul", "transpose"):
        yield Absent("PyCUDA", "", f"no {op} for {dtype} here")
        return
    if op in _ARRAY_OPERATIONS:
        yield _array_contender(_ARRAY_OPERATIONS[op])
    if op != "sum":
        yield _source_contender(op, dtype)


@cache
def _context() -> Any:
    """The device's primary context, which everybody shares, as PyCUDA's own for this thread."""
    driver.init()
    context = driver.Device(_core.make_current()).retain_primary_context()
    context.push()
    atexit.register(_leave)
    return context


def _leave() -> None:
    """PyCUDA aborts the process where its stack of contexts is not empty at the end."""
    _kernel.cache_clear()
    _pool.cache_clear()
    driver.Context.pop()


@cache
def _pool() -> Any:
    # Plain allocations wait for the device whenever one is freed.
    return DeviceMemoryPool()


def load(array: Array) -> Any:
    """A NumPy array on the GPU."""
    return gpuarray.to_gpu(array, allocator=_pool().allocate)


def fetch(array: Any) -> Array:
    """A NumPy array of one on the GPU."""
    found: Array = array.get()
    return found


def wrap(memory: Any) -> Any:
    """An array over device memory, without a copy."""
    allocate = _pool().allocate
    return gpuarray.GPUArray(
        memory.shape, np.dtype(memory.dtype), allocator=allocate, gpudata=memory.pointer
    )


def _array_contender(function: Callable[..., Any]) -> Contender:
    def run(inputs: Any, out: Any) -> Any:
        return function(*inputs)

    def end_to_end(*arrays: Array) -> Array:
        return fetch(function(*map(load, arrays)))

    return Contender("PyCUDA", "gpuarray", end_to_end, DeviceSide(load, run, fetch, wrap))


# The arguments of each kernel as PyCUDA has them said: pointers, then sizes.
_FORMATS = {"add": "PPPq", "matmul": "PPPiii", "transpose": "PPii"}


@cache
def _kernel(op: str, dtype: str) -> Any:
    source = f"typedef {_C_TYPES[dtype]} T;\n{_SOURCE}"
    return SourceModule(source).get_function(op).prepare(_FORMATS[op])


def _blocks(count: int, each: int) -> int:
    return (count + each - 1) // each


@dataclass(frozen=True)
class _Geometry:
    """How a kernel is launched, and the sizes that it takes after its pointers."""

    grid: tuple[int, int]
    block: tuple[int, int, int]
    sizes: tuple[np.number[Any], ...]


def _geometry(op: str, shapes: Sequence[tuple[int, ...]]) -> _Geometry:
    """For inputs of these shapes."""
    if op == "add":
        count = math.prod(shapes[0])
        return _Geometry((_blocks(count, 256), 1), (256, 1, 1), (np.int64(count),))
    sizes = (*shapes[0], shapes[1][1]) if op == "matmul" else shapes[0]
    grid = _blocks(sizes[-1], 16), _blocks(sizes[0], 16)
    return _Geometry(grid, (16, 16, 1), tuple(map(np.int32, sizes)))


def _result_shape(op: str, arrays: tuple[Array, ...]) -> tuple[int, ...]:
    if op == "matmul":
        return arrays[0].shape[0], arrays[1].shape[1]
    return arrays[0].shape[::-1] if op == "transpose" else arrays[0].shape


def _source_contender(op: str, dtype: str) -> Contender:
    def prepare(inputs: Sequence[Any], out: Any) -> Callable[[], object]:
        how = _geometry(op, [one.shape for one in inputs])
        pointers = [int(one.gpudata) for one in (out, *inputs)]
        sizes = map(int, how.sizes)
        return partial(_kernel(op, dtype).prepared_call, how.grid, how.block, *pointers, *sizes)

    def end_to_end(*arrays: Array) -> Array:
        out = np.empty(_result_shape(op, arrays), arrays[0].dtype)
        how = _geometry(op, [array.shape for array in arrays])
        arguments = [driver.Out(out), *map(driver.In, arrays), *how.sizes]
        _kernel(op, dtype)(*arguments, block=how.block, grid=how.grid)
        return out

    side = DeviceSide(load, Prepared(prepare), fetch, wrap)
    return Contender("PyCUDA", "SourceModule", end_to_end, side)
