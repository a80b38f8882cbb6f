"""Numba: CUDA kernels as a Python programmer writes them, and its own reduction."""

import contextlib
import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.contenders.kept import Prepared
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

# As in gpukern's kernels of the same names: the side of a tile, the lines of it that are walked at
# a time, the threads of a block that adds up, and those of the one that adds up the blocks' sums.
_TILE = 32
_LINES = 8
_THREADS = 256
_WIDE = 1024
_HALF = _TILE // 2
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


# A contender's variant, what makes ready the work that writes into a device array, and the shape of
# that. Kernels are configured and views are made once for a set of arrays: Numba takes longer over
# either than over a launch.
Prepare = Callable[..., Callable[[], object]]
Starter = tuple[str, Prepare, Callable[..., Any]]


def _contender(
    variant: str, prepare: Prepare, shape: Callable[..., Any], fetch: Callable[[Any], Array]
) -> Contender:
    def end_to_end(*arrays: Array) -> Array:
        inputs = [load(array) for array in arrays]
        out = cuda.device_array(shape(*arrays), arrays[0].dtype)
        prepare(out, *inputs)()
        return fetch(out)

    run = Prepared(lambda inputs, out: prepare(out, *inputs))
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
    def prepare(out: Any, a: Any, b: Any) -> Callable[[], object]:
        kernel = _add_kernel()[_blocks(out.size, _THREADS), _THREADS]
        return partial(kernel, out.ravel(), a.ravel(), b.ravel())

    yield "vector add", prepare, lambda a, b: a.shape


@cache
def _ufunc(dtype: str) -> Any:
    def add(a: Any, b: Any) -> Any:
        return a + b

    return numba.vectorize([f"{dtype}({dtype}, {dtype})"], target="cuda")(add)


def _vectorized(dtype: str) -> Contender:
    # Made at the first call, since it is compiled as it is made.
    def end_to_end(*arrays: Array) -> Any:
        return _ufunc(dtype)(*arrays)

    def run(inputs: Sequence[Any], out: Any) -> None:
        _ufunc(dtype)(*inputs, out=out)

    return Contender("Numba", "@vectorize", end_to_end, DeviceSide(load, run, fetch, wrap))


@cache
def _reduction() -> Any:
    def add(a: Any, b: Any) -> Any:
        return a + b

    return cuda.reduce(add)


def _sum(dtype: str) -> Iterator[Starter]:
    kind = getattr(numba.types, dtype)

    def reduction(out: Any, a: Any) -> Callable[[], object]:
        return partial(_reduction(), a.ravel(), res=out)

    def whole(out: Any, a: Any) -> Callable[[], object]:
        # Few enough blocks that adding up their sums costs no more roundings than a thread's part.
        count = max(1, min(512, math.isqrt(a.size) // 2))
        zero, kernel = _zero_kernel()[1, 1], _sum_kernel(kind)[count, _THREADS]
        values = a.ravel()
        return lambda: (zero(out), kernel(out, values))

    def sequential(out: Any, a: Any) -> Callable[[], object]:
        count = _blocks(a.size, _THREADS)
        first, finish = _sequential_kernel(kind)[count, _THREADS], _finish_kernel(kind)[1, _WIDE]
        values, partials = a.ravel(), cuda.device_array(count, a.dtype)
        return lambda: (first(partials, values), finish(out, partials))

    yield "cuda.reduce", reduction, lambda a: 1
    yield "sum kernel", whole, lambda a: 1
    if dtype == "float32":
        yield "sequential", sequential, lambda a: 1


@cache
def _zero_kernel() -> Any:
    def zero(out: Any) -> None:
        out[0] = 0

    return cuda.jit(zero)


@cache
def _tree() -> Any:
    def add_tree(cells: Any, width: int) -> None:
        """Into the first of ``width`` cells in shared memory their sum; the stride halves."""
        thread = cuda.threadIdx.x
        cuda.syncthreads()
        width //= 2
        while width > 0:
            if thread < width:
                cells[thread] += cells[thread + width]
            cuda.syncthreads()
            width //= 2

    return cuda.jit(add_tree, device=True)


@cache
def _sum_kernel(kind: Any) -> Any:
    add_tree = _tree()

    def block_sums(out: Any, a: Any) -> None:
        """A thread adds up a part, a tree in shared memory joins a block, atomics the blocks."""
        cells = cuda.shared.array(_THREADS, kind)
        total = kind(0)
        for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
            total += a[i]
        cells[cuda.threadIdx.x] = total
        add_tree(cells, _THREADS)
        if cuda.threadIdx.x == 0:
            cuda.atomic.add(out, 0, cells[0])

    return cuda.jit(block_sums)


@cache
def _sequential_kernel(kind: Any) -> Any:
    add_tree = _tree()

    def sequential(partials: Any, a: Any) -> None:
        """As gpukern's ``sequential``: an element a thread, the stride halving, a sum a block."""
        cells = cuda.shared.array(_THREADS, kind)
        i = cuda.grid(1)
        value = kind(0)
        if i < a.size:
            value = a[i]
        cells[cuda.threadIdx.x] = value
        add_tree(cells, _THREADS)
        if cuda.threadIdx.x == 0:
            partials[cuda.blockIdx.x] = cells[0]

    return cuda.jit(sequential)


@cache
def _finish_kernel(kind: Any) -> Any:
    add_tree = _tree()

    def finish(out: Any, partials: Any) -> None:
        """One block adds up the sums of the others."""
        cells = cuda.shared.array(_WIDE, kind)
        total = kind(0)
        for i in range(cuda.threadIdx.x, partials.size, _WIDE):
            total += partials[i]
        cells[cuda.threadIdx.x] = total
        add_tree(cells, _WIDE)
        if cuda.threadIdx.x == 0:
            out[0] = cells[0]

    return cuda.jit(finish)


# A block of 1024 threads must not ask for more registers than a multiprocessor has for it.
_REGISTERS = 64


@cache
def _matmul_plain(kind: Any, coalesced: bool) -> Any:
    """As gpukern's ``naive`` and ``coalesced``: an element a thread, straight from memory."""

    def matmul(out: Any, a: Any, b: Any) -> None:
        tiles = (out.shape[1] + _TILE - 1) // _TILE
        row = cuda.blockIdx.x // tiles * _TILE
        column = cuda.blockIdx.x % tiles * _TILE
        if coalesced:
            row += cuda.threadIdx.x // _TILE
            column += cuda.threadIdx.x % _TILE
        else:
            row += cuda.threadIdx.x % _TILE
            column += cuda.threadIdx.x // _TILE
        if row < out.shape[0] and column < out.shape[1]:
            # A plain 0.0 would be a float64 and carry the whole sum in it.
            total = kind(0)
            for i in range(a.shape[1]):
                total += a[row, i] * b[i, column]
            out[row, column] = total

    return cuda.jit(matmul, max_registers=_REGISTERS)


@cache
def _matmul_tiled(kind: Any) -> Any:
    """As gpukern's ``tiled``: an element a thread, from tiles in shared memory."""

    def matmul(out: Any, a: Any, b: Any) -> None:
        tile_a = cuda.shared.array((_TILE, _TILE), kind)
        tile_b = cuda.shared.array((_TILE, _TILE), kind)
        x, y = cuda.threadIdx.x % _TILE, cuda.threadIdx.x // _TILE
        tiles = (out.shape[1] + _TILE - 1) // _TILE
        row = cuda.blockIdx.x // tiles * _TILE + y
        column = cuda.blockIdx.x % tiles * _TILE + x
        total = kind(0)
        for step in range(0, a.shape[1], _TILE):
            left, right = kind(0), kind(0)
            if row < a.shape[0] and step + x < a.shape[1]:
                left = a[row, step + x]
            if step + y < b.shape[0] and column < b.shape[1]:
                right = b[step + y, column]
            tile_a[y, x], tile_b[y, x] = left, right
            cuda.syncthreads()
            for i in range(_TILE):
                total += tile_a[y, i] * tile_b[i, x]
            cuda.syncthreads()
        if row < out.shape[0] and column < out.shape[1]:
            out[row, column] = total

    return cuda.jit(matmul, max_registers=_REGISTERS)


@cache
def _matmul_tiled_2x2(kind: Any) -> Any:
    """Two rows and two columns a thread: each value from shared memory is used twice."""

    def matmul(out: Any, a: Any, b: Any) -> None:
        tile_a = cuda.shared.array((_TILE, _HALF), kind)
        tile_b = cuda.shared.array((_HALF, _TILE), kind)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, column = cuda.blockIdx.y * _TILE + y, cuda.blockIdx.x * _TILE + x
        t00, t01, t10, t11 = kind(0), kind(0), kind(0), kind(0)
        for step in range(0, a.shape[1], _HALF):
            for half in range(2):
                r, c = row + half * _HALF, column + half * _HALF
                tile_a[y + half * _HALF, x] = kind(0)
                tile_b[y, x + half * _HALF] = kind(0)
                if r < a.shape[0] and step + x < a.shape[1]:
                    tile_a[y + half * _HALF, x] = a[r, step + x]
                if step + y < b.shape[0] and c < b.shape[1]:
                    tile_b[y, x + half * _HALF] = b[step + y, c]
            cuda.syncthreads()
            for i in range(_HALF):
                a0, a1 = tile_a[y, i], tile_a[y + _HALF, i]
                b0, b1 = tile_b[i, x], tile_b[i, x + _HALF]
                t00 += a0 * b0
                t01 += a0 * b1
                t10 += a1 * b0
                t11 += a1 * b1
            cuda.syncthreads()
        if row < out.shape[0] and column < out.shape[1]:
            out[row, column] = t00
        if row < out.shape[0] and column + _HALF < out.shape[1]:
            out[row, column + _HALF] = t01
        if row + _HALF < out.shape[0] and column < out.shape[1]:
            out[row + _HALF, column] = t10
        if row + _HALF < out.shape[0] and column + _HALF < out.shape[1]:
            out[row + _HALF, column + _HALF] = t11

    return cuda.jit(matmul)


def _matmul(dtype: str) -> Iterator[Starter]:
    kind = getattr(numba.types, dtype)

    def by_tile(make: Callable[..., Any], *options: Any) -> Prepare:
        def prepare(out: Any, a: Any, b: Any) -> Callable[[], object]:
            return partial(make(kind, *options)[_tiles(out), _TILE * _TILE], out, a, b)

        return prepare

    def tiled_2x2(out: Any, a: Any, b: Any) -> Callable[[], object]:
        grid = _blocks(out.shape[1], _TILE), _blocks(out.shape[0], _TILE)
        return partial(_matmul_tiled_2x2(kind)[grid, (_HALF, _HALF)], out, a, b)

    def shape(a: Array, b: Array) -> tuple[int, int]:
        return a.shape[0], b.shape[1]

    yield "naive", by_tile(_matmul_plain, False), shape
    yield "coalesced", by_tile(_matmul_plain, True), shape
    yield "tiled", by_tile(_matmul_tiled), shape
    yield "tiled_2x2", tiled_2x2, shape


def _tiles(matrix: Any) -> int:
    return _blocks(matrix.shape[0], _TILE) * _blocks(matrix.shape[1], _TILE)


@cache
def _transpose_naive() -> Any:
    """As gpukern's ``naive``: 32 x 8 threads walk down a tile, and write down a column."""

    def transpose(out: Any, a: Any) -> None:
        tiles = (a.shape[0] + _TILE - 1) // _TILE
        row = cuda.blockIdx.x % tiles * _TILE
        column = cuda.blockIdx.x // tiles * _TILE + cuda.threadIdx.x % _TILE
        for y in range(cuda.threadIdx.x // _TILE, _TILE, _LINES):
            if row + y < a.shape[0] and column < a.shape[1]:
                out[column, row + y] = a[row + y, column]

    return cuda.jit(transpose)


@cache
def _transpose_tiled(kind: Any, pitch: int) -> Any:
    """As gpukern's ``tiled``, and with one column of padding ``tiled_padded``."""

    def transpose(out: Any, a: Any) -> None:
        cell = cuda.shared.array((_TILE, pitch), kind)
        tiles = (a.shape[0] + _TILE - 1) // _TILE
        row, column = cuda.blockIdx.x % tiles * _TILE, cuda.blockIdx.x // tiles * _TILE
        x, first = cuda.threadIdx.x % _TILE, cuda.threadIdx.x // _TILE
        for y in range(first, _TILE, _LINES):
            if row + y < a.shape[0] and column + x < a.shape[1]:
                cell[y, x] = a[row + y, column + x]
        cuda.syncthreads()
        for y in range(first, _TILE, _LINES):
            if row + x < a.shape[0] and column + y < a.shape[1]:
                out[column + y, row + x] = cell[x, y]

    return cuda.jit(transpose)


def _transpose(dtype: str) -> Iterator[Starter]:
    kind = getattr(numba.types, dtype)

    def by_tile(make: Callable[..., Any], *options: Any) -> Prepare:
        def prepare(out: Any, a: Any) -> Callable[[], object]:
            return partial(make(*options)[_tiles(a), _TILE * _LINES], out, a)

        return prepare

    yield "naive", by_tile(_transpose_naive), lambda a: a.shape[::-1]
    yield "tiled", by_tile(_transpose_tiled, kind, _TILE), lambda a: a.shape[::-1]
    yield "tiled_padded", by_tile(_transpose_tiled, kind, _TILE + 1), lambda a: a.shape[::-1]


_STARTERS: dict[str, Callable[[str], Iterator[Starter]]] = {
    "add": _add,
    "sum": _sum,
    "matmul": _matmul,
    "transpose": _transpose,
}
