"""Numba: CUDA kernels as a Python programmer writes them, and its own reduction."""

import contextlib
import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.model.contender import Absent, Contender, DeviceSide

if not hasattr(np, "row_stack"):
    # NumPy 2.5 took this name away, and Numba still looks it up when it is imported.
    np.row_stack = np.vstack  # type: ignore[attr-defined, unused-ignore]  # noqa: NPY201

# Numba carries types for a part of itself only, so it is taken as a whole without.
numba: Any = importlib.import_module("numba")
cuda: Any = importlib.import_module("numba.cuda")

# A small grid is what is compared, not a mistake to be told of. Numba has one switch, and the
# package numba-cuda, which replaces its CUDA part, another.
for _config in ("numba.core.config", "numba.cuda.core.config"):
    with contextlib.suppress(ImportError):
        importlib.import_module(_config).__dict__["CUDA_LOW_OCCUPANCY_WARNINGS"] = 0

Array = npt.NDArray[Any]
_TILE = 16
_WIDE = 2 * _TILE
_THREADS = 256
_VECTORIZED = ("float32", "float64", "int32", "int64")
_SUPPORTED = {
    "add": ("float32", "float64", "float16", "int32", "int64", "int8", "uint8"),
    "sum": ("float32", "float64", "int64"),
    "matmul": ("float32", "float64"),
    "transpose": ("float32", "float64", "float16", "int32", "int64", "int8", "uint8"),
}


def contenders(op: str, dtype: str) -> Iterator[Contender | Absent]:
    """What takes part in a comparison of ``op`` on ``dtype``."""
    if not cuda.is_available():
        yield Absent("Numba", "", "is installed, but finds no GPU that it can use")
        return
    if dtype not in _SUPPORTED.get(op, ()):
        yield Absent("Numba", "", f"no {op} for {dtype} here")
        return
    for starter in _STARTERS[op](dtype):
        yield _contender(*starter, fetch=_fetch_sum if op == "sum" else fetch)
    if op == "add" and dtype in _VECTORIZED:
        yield _vectorized(dtype)


# A contender's variant, what writes its result into a device array, and the shape of the result.
Starter = tuple[str, Callable[..., object], Callable[..., Any]]


def _contender(
    variant: str,
    into: Callable[..., object],
    shape: Callable[..., Any],
    fetch: Callable[[Any], Array],
) -> Contender:
    def run(inputs: Sequence[Any], out: Any) -> None:
        into(out, *inputs)

    def end_to_end(*arrays: Array) -> Array:
        inputs = [load(array) for array in arrays]
        out = cuda.device_array(shape(*arrays), arrays[0].dtype)
        into(out, *inputs)
        return fetch(out)

    return Contender("Numba", variant, end_to_end, DeviceSide(load, run, fetch, wrap))


def wrap(memory: Any) -> Any:
    """A device array over device memory, without a copy; a 0-d one as 1-d."""
    return cuda.as_cuda_array(memory if memory.shape else memory.reshaped((1,)))


def load(array: Array) -> Any:
    """A NumPy array on the GPU; a 0-d one, which Numba's reduction cannot write to, as 1-d."""
    return cuda.to_device(np.atleast_1d(array))


def fetch(array: Any) -> Array:
    """A NumPy array of one on the GPU."""
    found: Array = array.copy_to_host()
    return found


def _fetch_sum(array: Any) -> Array:
    total: Array = fetch(array).reshape(())
    return total


def _blocks(count: int, each: int) -> int:
    return (count + each - 1) // each


@cache
def _add_kernel() -> Any:
    def add(out: Any, a: Any, b: Any) -> None:
        i = cuda.grid(1)
        if i < out.size:
            out[i] = a[i] + b[i]

    return cuda.jit(add)


def _add(dtype: str) -> Iterator[Starter]:
    def into(out: Any, a: Any, b: Any) -> None:
        _add_kernel()[_blocks(out.size, 256), 256](out.ravel(), a.ravel(), b.ravel())

    yield "vector add", into, lambda a, b: a.shape


@cache
def _ufunc(dtype: str) -> Any:
    def add(a: Any, b: Any) -> Any:
        return a + b

    return numba.vectorize([f"{dtype}({dtype}, {dtype})"], target="cuda")(add)


def _vectorized(dtype: str) -> Contender:
    ufunc = _ufunc(dtype)

    def run(inputs: Sequence[Any], out: Any) -> None:
        ufunc(*inputs, out=out)

    return Contender("Numba", "@vectorize", ufunc, DeviceSide(load, run, fetch, wrap))


@cache
def _reduction() -> Any:
    def add(a: Any, b: Any) -> Any:
        return a + b

    return cuda.reduce(add)


def _sum(dtype: str) -> Iterator[Starter]:
    def into(out: Any, a: Any) -> None:
        _reduction()(a.ravel(), res=out)

    def blocks(out: Any, a: Any) -> None:
        # Few enough blocks that adding up their sums costs no more roundings than a thread's part.
        count = max(1, min(512, math.isqrt(a.size) // 2))
        kernel = _sum_kernel(getattr(numba, dtype))
        _zero_kernel()[1, 1](out)
        kernel[count, _THREADS](out, a.ravel())

    yield "cuda.reduce", into, lambda a: 1
    yield "sum kernel", blocks, lambda a: 1


@cache
def _zero_kernel() -> Any:
    def zero(out: Any) -> None:
        out[0] = 0

    return cuda.jit(zero)


@cache
def _sum_kernel(kind: Any) -> Any:
    def block_sums(out: Any, a: Any) -> None:
        """A thread adds up a part, a tree in shared memory joins a block, atomics the blocks."""
        shared = cuda.shared.array(_THREADS, kind)
        thread = cuda.threadIdx.x
        total = kind(0)
        for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
            total += a[i]
        shared[thread] = total
        cuda.syncthreads()
        width = _THREADS // 2
        while width > 0:
            if thread < width:
                shared[thread] += shared[thread + width]
            cuda.syncthreads()
            width //= 2
        if thread == 0:
            cuda.atomic.add(out, 0, shared[0])

    return cuda.jit(block_sums)


@cache
def _matmul_naive(kind: Any) -> Any:
    def matmul(out: Any, a: Any, b: Any) -> None:
        row, column = cuda.grid(2)
        if row < out.shape[0] and column < out.shape[1]:
            # A plain 0.0 would be a float64 and carry the whole sum in it.
            total = kind(0)
            for i in range(a.shape[1]):
                total += a[row, i] * b[i, column]
            out[row, column] = total

    return cuda.jit(matmul)


@cache
def _matmul_shared(kind: Any) -> Any:
    def matmul(out: Any, a: Any, b: Any) -> None:
        tile_a = cuda.shared.array((_TILE, _TILE), kind)
        tile_b = cuda.shared.array((_TILE, _TILE), kind)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = kind(0)
        for step in range(0, a.shape[1], _TILE):
            tile_a[y, x] = kind(0)
            tile_b[y, x] = kind(0)
            if row < a.shape[0] and step + x < a.shape[1]:
                tile_a[y, x] = a[row, step + x]
            if step + y < b.shape[0] and column < b.shape[1]:
                tile_b[y, x] = b[step + y, column]
            cuda.syncthreads()
            for i in range(_TILE):
                total += tile_a[y, i] * tile_b[i, x]
            cuda.syncthreads()
        if row < out.shape[0] and column < out.shape[1]:
            out[row, column] = total

    return cuda.jit(matmul)


@cache
def _matmul_tiled(kind: Any) -> Any:
    """Two rows and two columns a thread: each value from shared memory is used twice."""

    def matmul(out: Any, a: Any, b: Any) -> None:
        tile_a = cuda.shared.array((_WIDE, _TILE), kind)
        tile_b = cuda.shared.array((_TILE, _WIDE), kind)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, column = cuda.blockIdx.y * _WIDE + y, cuda.blockIdx.x * _WIDE + x
        t00, t01, t10, t11 = kind(0), kind(0), kind(0), kind(0)
        for step in range(0, a.shape[1], _TILE):
            for half in range(2):
                r, c = row + half * _TILE, column + half * _TILE
                tile_a[y + half * _TILE, x] = kind(0)
                tile_b[y, x + half * _TILE] = kind(0)
                if r < a.shape[0] and step + x < a.shape[1]:
                    tile_a[y + half * _TILE, x] = a[r, step + x]
                if step + y < b.shape[0] and c < b.shape[1]:
                    tile_b[y, x + half * _TILE] = b[step + y, c]
            cuda.syncthreads()
            for i in range(_TILE):
                a0, a1 = tile_a[y, i], tile_a[y + _TILE, i]
                b0, b1 = tile_b[i, x], tile_b[i, x + _TILE]
                t00 += a0 * b0
                t01 += a0 * b1
                t10 += a1 * b0
                t11 += a1 * b1
            cuda.syncthreads()
        if row < out.shape[0] and column < out.shape[1]:
            out[row, column] = t00
        if row < out.shape[0] and column + _TILE < out.shape[1]:
            out[row, column + _TILE] = t01
        if row + _TILE < out.shape[0] and column < out.shape[1]:
            out[row + _TILE, column] = t10
        if row + _TILE < out.shape[0] and column + _TILE < out.shape[1]:
            out[row + _TILE, column + _TILE] = t11

    return cuda.jit(matmul)


def _matmul(dtype: str) -> Iterator[Starter]:
    kind = getattr(numba, dtype)

    def naive(out: Any, a: Any, b: Any) -> None:
        rows, columns = out.shape
        grid = (_blocks(rows, _TILE), _blocks(columns, _TILE))
        _matmul_naive(kind)[grid, (_TILE, _TILE)](out, a, b)

    def shared(out: Any, a: Any, b: Any) -> None:
        rows, columns = out.shape
        grid = (_blocks(columns, _TILE), _blocks(rows, _TILE))
        _matmul_shared(kind)[grid, (_TILE, _TILE)](out, a, b)

    def tiled(out: Any, a: Any, b: Any) -> None:
        rows, columns = out.shape
        grid = (_blocks(columns, _WIDE), _blocks(rows, _WIDE))
        _matmul_tiled(kind)[grid, (_TILE, _TILE)](out, a, b)

    def shape(a: Array, b: Array) -> tuple[int, int]:
        return a.shape[0], b.shape[1]

    yield "naive", naive, shape
    yield "shared", shared, shape
    yield "tiled", tiled, shape


@cache
def _transpose_kernel() -> Any:
    def transpose(out: Any, a: Any) -> None:
        column, row = cuda.grid(2)
        if row < a.shape[0] and column < a.shape[1]:
            out[column, row] = a[row, column]

    return cuda.jit(transpose)


def _transpose(dtype: str) -> Iterator[Starter]:
    def into(out: Any, a: Any) -> None:
        grid = (_blocks(a.shape[1], 32), _blocks(a.shape[0], 8))
        _transpose_kernel()[grid, (32, 8)](out, a)

    yield "naive", into, lambda a: a.shape[::-1]


_STARTERS: dict[str, Callable[[str], Iterator[Starter]]] = {
    "add": _add,
    "sum": _sum,
    "matmul": _matmul,
    "transpose": _transpose,
}
