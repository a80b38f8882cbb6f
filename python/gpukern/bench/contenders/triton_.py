"""Triton: add and matmul kernels on PyTorch's tensors, as its tutorials build them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy.typing as npt
import torch
import triton  # type: ignore[import-untyped, unused-ignore]
import triton.language as tl  # type: ignore[import-untyped, unused-ignore]

from gpukern.bench.contenders.torch_ import fetch, load, wrap
from gpukern.bench.model.contender import Absent, Contender, DeviceSide

Array = npt.NDArray[Any]
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

    return Contender("Triton", variant, end_to_end, DeviceSide(load, run, fetch, wrap))


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def add_kernel(out, a, b, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
    """A block of elements a program."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


def _add(out: Any, a: Any, b: Any) -> None:
    add_kernel[(triton.cdiv(out.numel(), _BLOCK),)](out, a, b, out.numel(), BLOCK=_BLOCK)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def matmul_kernel(out, a, b, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201, PLR0913, PLR0917
    """A tile of the product a program, in full float32 for float32."""
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        inner = start + tl.arange(0, K)
        left = tl.load(
            a + rows[:, None] * k + inner[None, :],
            mask=(rows[:, None] < m) & (inner[None, :] < k),
            other=0.0,
        )
        right = tl.load(
            b + inner[:, None] * n + columns[None, :],
            mask=(inner[:, None] < k) & (columns[None, :] < n),
            other=0.0,
        )
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(
        out + rows[:, None] * n + columns[None, :],
        total.to(out.dtype.element_ty),
        mask=(rows[:, None] < m) & (columns[None, :] < n),
    )


def _matmul(out: Any, a: Any, b: Any) -> None:
    (m, k), n = a.shape, b.shape[1]
    # Tensor cores want wider tiles than float32 units, which run out of registers.
    tile = (64, 64, 32) if out.dtype == torch.float32 else (128, 128, 64)
    grid = (triton.cdiv(m, tile[0]), triton.cdiv(n, tile[1]))
    warps = 4 if out.dtype == torch.float32 else 8
    matmul_kernel[grid](out, a, b, m, n, k, M=tile[0], N=tile[1], K=tile[2], num_warps=warps)


def _same_shape(a: Array, b: Array) -> tuple[int, ...]:
    return a.shape


def _product_shape(a: Array, b: Array) -> tuple[int, ...]:
    return a.shape[0], b.shape[1]


_STARTERS: dict[str, tuple[str, Callable[..., object], Callable[..., tuple[int, ...]]]] = {
    "add": ("add kernel", _add, _same_shape),
    "matmul": ("matmul kernel", _matmul, _product_shape),
}
