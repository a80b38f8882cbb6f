"""Triton: add and matmul kernels on PyTorch's tensors, as its tutorials build and tune them."""

import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy.typing as npt
import torch
import triton  # type: ignore[import-untyped, unused-ignore]
import triton.language as tl  # type: ignore[import-untyped, unused-ignore]

from gpukern.bench.contenders.torch_ import fetch, load, wrap
from gpukern.bench.model.contender import Absent, Contender, DeviceSide

Array = npt.NDArray[Any]

# Products are joined to sums, as by nvcc; Triton 3.9 warns where nobody says so.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
_SUPPORTED = {
    "add": ("float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8"),
    "matmul": ("float32", "float16", "bfloat16"),
}
_BLOCK = 1024


def contenders(op: str, dtype: str) -> Iterator[Contender | Absent]:
    """What takes part in a comparison of ``op`` on ``dtype``."""
    if not torch.cuda.is_available():
        yield Absent("Triton", "", "is installed, but PyTorch finds no GPU")
        return
    if dtype not in _SUPPORTED.get(op, ()):
        yield Absent("Triton", "", f"no {op} for {dtype} here")
        return
    yield _contender(*_STARTERS[op])


def _contender(
    variant: str, into: Callable[..., object], shape: Callable[..., tuple[int, ...]]
) -> Contender:
    def run(inputs: Any, out: Any) -> None:
        into(out, *inputs)

    def end_to_end(*arrays: Array) -> Array:
        inputs = [load(array) for array in arrays]
        out = torch.empty(shape(*arrays), dtype=inputs[0].dtype, device="cuda")
        into(out, *inputs)
        return fetch(out)

    side = DeviceSide(load, run, fetch, wrap)
    return Contender("Triton", variant, end_to_end, side, tunes=into is _matmul)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def add_kernel(out, a, b, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
    """A block of elements a program."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


def _add(out: Any, a: Any, b: Any) -> None:
    add_kernel[(triton.cdiv(out.numel(), _BLOCK),)](out, a, b, out.numel(), BLOCK=_BLOCK)


# fmt: off
@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def matmul_kernel(out, a, b, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201, E501, PLR0913, PLR0917
    """A tile of the product a program, in full float32 for float32.

    Programs take GROUP rows of tiles column by column, so that what neighbours read is in L2.
    """
    across = tl.cdiv(n, N)
    group = tl.program_id(0) // (GROUP * across)
    height = min(tl.cdiv(m, M) - group * GROUP, GROUP)
    place = tl.program_id(0) % (GROUP * across)
    rows = (group * GROUP + place % height) * M + tl.arange(0, M)
    columns = (place // height) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    # Beyond an edge the first rows and columns are read again; what comes of them is not stored.
    left = a + (rows % m).to(tl.int64)[:, None] * k + inner[None, :]
    right = b + inner.to(tl.int64)[:, None] * n + (columns % n)[None, :]
    total = tl.zeros((M, N), dtype=tl.float32)
    for step in range(tl.cdiv(k, K)):
        rest = k - step * K
        x = tl.load(left, mask=inner[None, :] < rest, other=0.0)
        y = tl.load(right, mask=inner[:, None] < rest, other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee")
        left += K
        right += K * n
    tl.store(
        out + rows.to(tl.int64)[:, None] * n + columns[None, :],
        total.to(out.dtype.element_ty),
        mask=(rows[:, None] < m) & (columns[None, :] < n),
    )

# fmt: on


# Tiles by rows, columns, depth, stages and warps, of which the fastest is taken for each size. For
# tensor cores those of Triton's tutorial on matmul.
_HALF_TILES = (
    (128, 256, 64, 3, 8),
    (64, 256, 32, 4, 4),
    (128, 128, 32, 4, 4),
    (128, 64, 32, 4, 4),
    (64, 128, 32, 4, 4),
    (128, 32, 32, 4, 4),
    (64, 32, 32, 5, 2),
    (32, 64, 32, 5, 2),
)
# Without tensor cores the sums of a wide tile do not fit into registers.
_FULL_TILES = (
    (128, 128, 16, 3, 8),
    (128, 64, 16, 3, 8),
    (64, 128, 16, 3, 8),
    (64, 64, 32, 3, 4),
)


@cache
def _tuned(full: bool) -> Any:
    """The matmul kernel that is tuned by timing at the first call with a size."""
    configs = [
        triton.Config({"M": m, "N": n, "K": k, "GROUP": 8}, num_stages=stages, num_warps=warps)
        for m, n, k, stages, warps in (_FULL_TILES if full else _HALF_TILES)
    ]
    return triton.autotune(configs=configs, key=["m", "n", "k"])(matmul_kernel)


def _matmul(out: Any, a: Any, b: Any) -> None:
    (m, k), n = a.shape, b.shape[1]

    def grid(tile: dict[str, int]) -> tuple[int]:
        return (triton.cdiv(m, tile["M"]) * triton.cdiv(n, tile["N"]),)

    _tuned(out.dtype == torch.float32)[grid](out, a, b, m, n, k)


def _same_shape(a: Array, b: Array) -> tuple[int, ...]:
    return a.shape


def _product_shape(a: Array, b: Array) -> tuple[int, ...]:
    return a.shape[0], b.shape[1]


_STARTERS: dict[str, tuple[str, Callable[..., object], Callable[..., tuple[int, ...]]]] = {
    "add": ("add kernel", _add, _same_shape),
    "matmul": ("matmul kernel", _matmul, _product_shape),
}
