"""PyTorch, eager and compiled, in full float32 and with float32 accumulation of the half types."""

import os
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gpukern.bench.model.case import AXES
from gpukern.bench.model.contender import Absent, Contender, DeviceSide
from gpukern.bench.model.dtypes import numpy_dtype

Array = npt.NDArray[Any]

# Processes that get ready to compile would take the cores from whoever is timed meanwhile.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
# It has storage for these and hardly any arithmetic.
_BARE = ("uint16", "uint32", "uint64")

# It advises to use the lower precision that is ruled out here.
warnings.filterwarnings("ignore", "TensorFloat32 tensor cores")


def contenders(op: str, dtype: str) -> Iterator[Contender | Absent]:
    """What takes part in a comparison of ``op`` on ``dtype``."""
    if not torch.cuda.is_available():
        yield Absent("PyTorch", "", "is installed, but finds no GPU")
        return
    # Lower precision than the dtype promises would be a different contest.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    if op not in _OPERATIONS or (dtype in _BARE and op != "transpose"):
        yield Absent("PyTorch", "", f"no {op} for {dtype} here")
        return
    calculate, into = _OPERATIONS[op]

    def end_to_end(*arrays: Array) -> Array:
        return fetch(calculate(*map(load, arrays)))

    def run(inputs: Any, out: Any) -> None:
        into(*inputs, out=out)

    yield Contender("PyTorch", f"torch.{op}", end_to_end, DeviceSide(load, run, fetch, wrap))
    yield _compiled(calculate)


def _compiled(calculate: Callable[..., Any]) -> Contender:
    @cache
    def compiled() -> Callable[..., Any]:
        # Only when it takes part: it imports a compiler, which takes seconds.
        made: Callable[..., Any] = torch.compile(calculate)
        return made

    def end_to_end(*arrays: Array) -> Array:
        return fetch(compiled()(*map(load, arrays)))

    def run(inputs: Any, out: Any) -> Any:
        return compiled()(*inputs)

    return Contender("PyTorch", "torch.compile", end_to_end, DeviceSide(load, run, fetch, wrap))


def wrap(memory: Any) -> Any:
    """A tensor over device memory, without a copy."""
    if memory.dtype == "bfloat16":
        return torch.as_tensor(memory.as_bits(), device="cuda").view(torch.bfloat16)
    return torch.as_tensor(memory, device="cuda")


def load(array: Array) -> Any:
    """A NumPy array on the GPU; bfloat16, which PyTorch does not take from NumPy, by its bits."""
    if array.dtype == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(array).cuda()


def fetch(tensor: Any) -> Array:
    """A NumPy array of a tensor on the GPU."""
    if tensor.dtype == torch.bfloat16:
        bits: Array = tensor.view(torch.int16).cpu().numpy()
        return bits.view(numpy_dtype("bfloat16"))
    found: Array = tensor.cpu().numpy()
    return found


def _all(a: Any) -> tuple[int, ...]:
    return tuple(range(a.dim()))


def _sum_into(a: Any, out: Any) -> None:
    torch.sum(a, dim=_all(a), out=out)


def _max_into(a: Any, out: Any) -> None:
    torch.amax(a, dim=_all(a), out=out)


def _min_into(a: Any, out: Any) -> None:
    torch.amin(a, dim=_all(a), out=out)


def _add(a: Any, b: Any) -> Any:
    return a + b


def _sum(a: Any) -> Any:
    return a.sum()


def _sum_over(axis: Any) -> Callable[..., Any]:
    def total(a: Any, **out: Any) -> Any:
        return torch.sum(a, dim=axis, **out)

    return total


def _named(op: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    function = getattr(torch, op)

    # A Python function around it, which torch.compile can take.
    def call(*arrays: Any) -> Any:
        return function(*arrays)

    return call, function


def _norm(a: Any, **out: Any) -> Any:
    return torch.linalg.vector_norm(a, **out)


def _matmul(a: Any, b: Any) -> Any:
    return a @ b


def _transpose(a: Any) -> Any:
    # torch.transpose alone is a view: the others write a new array.
    return a.T.contiguous()


def _transpose_into(a: Any, out: Any) -> None:
    out.copy_(a.T)


_OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (_add, torch.add),
    **{
        op: _named(op)
        for op in ("subtract", "multiply", "maximum", "minimum", "argmax", "argmin", "dot")
    },
    "sum": (_sum, _sum_into),
    **{op: (_sum_over(axis),) * 2 for op, axis in AXES.items()},
    "max": (_named("max")[0], _max_into),
    "min": (_named("min")[0], _min_into),
    "norm": (_norm, _norm),
    "matmul": (_matmul, torch.matmul),
    "transpose": (_transpose, _transpose_into),
}
