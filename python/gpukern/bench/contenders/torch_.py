"""PyTorch, eager and compiled, in full float32 and with float32 accumulation of the half types."""

import importlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gpukern.bench.contenders.kept import WITH_ARRAYS, Kept
from gpukern.bench.model.case import AXES, Case
from gpukern.bench.model.contender import Absent, Contender, DeviceSide
from gpukern.bench.model.dtypes import numpy_dtype

Array = npt.NDArray[Any]

# Processes that get ready to compile would take the cores from whoever is timed meanwhile.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
_COMPILED = "torch.compile"
# It has storage for these and hardly any arithmetic.
_BARE = ("uint16", "uint32", "uint64")
# Inductor leaves these to a library, and would copy their result to an ``out`` by another kernel.
_BY_LIBRARY = ("dot", "matmul")

# It advises to use the lower precision that is ruled out here.
warnings.filterwarnings("ignore", "TensorFloat32 tensor cores")


def ahead(kinds: Iterable[tuple[str, str]], variant: str | None) -> None:
    """Import what ``torch.compile`` imports in its first call, which takes seconds."""
    wanted = variant in (None, _COMPILED) and any(op in _OPERATIONS for op, _ in kinds)
    if wanted and torch.cuda.is_available():
        importlib.import_module("torch._inductor.compile_fx")


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
    yield _eager(op, calculate, into)
    yield _compiled(op, dtype)
    yield Contender("PyTorch", "pinned", _staged(calculate, False))
    if op in WITH_ARRAYS:
        yield Contender("PyTorch", "out=", _staged(calculate, True), reuses=True)


def _eager(op: str, calculate: Callable[..., Any], into: Callable[..., Any]) -> Contender:
    def end_to_end(*arrays: Array) -> Array:
        return fetch(calculate(*map(load, arrays)))

    def run(inputs: Any, out: Any) -> None:
        into(*inputs, out=out)

    return Contender("PyTorch", f"torch.{op}", end_to_end, DeviceSide(load, run, fetch, wrap))


def _compiled(op: str, dtype: str) -> Contender:
    compiled = _Compiled(_OPERATIONS[op][0], op not in _BY_LIBRARY)

    def end_to_end(*arrays: Array) -> Array:
        case = Case(op, tuple(array.shape for array in arrays), dtype)
        kind = getattr(torch, case.result_dtype)
        out = torch.empty(case.result_shape, dtype=kind, device="cuda")
        result = compiled([load(array) for array in arrays], out)
        return fetch(out if result is None else result)

    side = DeviceSide(load, compiled, fetch, wrap)
    return Contender("PyTorch", _COMPILED, end_to_end, side, tunes=True)


class _Compiled:
    """An operation by ``torch.compile``, for the shapes that it is called with and no others.

    With ``writes`` it writes to ``out``: Inductor makes the copy part of its kernel. Otherwise it
    returns its result. What cannot be compiled whole is an error: nothing falls back to eager.
    """

    def __init__(self, calculate: Callable[..., Any], writes: bool) -> None:
        def write(*inputs: Any, out: Any) -> None:
            out.copy_(calculate(*inputs))

        def give(*inputs: Any, out: Any) -> Any:
            return calculate(*inputs)

        self._function: Callable[..., Any] = write if writes else give
        self._shapes: object = None
        self._made = self._function

    def __call__(self, inputs: Sequence[Any], out: Any) -> Any:
        """Only the first call with some shapes compiles."""
        shapes = [one.shape for one in inputs]
        if shapes != self._shapes:
            # What other cases have left in the caches counts against the limit of recompilations.
            torch.compiler.reset()
            self._made = torch.compile(self._function, dynamic=False, fullgraph=True)
            self._shapes = shapes
        return self._made(*inputs, out=out)


def _staged(calculate: Callable[..., Any], keep: bool) -> Callable[..., Array]:
    """From end to end by way of pinned memory, which is kept from call to call.

    With ``keep`` the result stays there.
    """

    def make(shape: tuple[int, ...], dtype: Any) -> Any:
        return torch.empty(shape, dtype=dtype, pin_memory=True)

    pinned = Kept(make)

    def load_staged(place: int, array: Array) -> Any:
        tensor = _on_host(array)
        stage = pinned(place, tensor.shape, tensor.dtype)
        stage.copy_(tensor)
        return stage.to("cuda", non_blocking=True)

    def end_to_end(*arrays: Array) -> Array:
        result = calculate(*(load_staged(place, array) for place, array in enumerate(arrays)))
        stage = pinned("out", result.shape, result.dtype)
        stage.copy_(result)
        return _as_array(stage if keep else stage.clone())

    return end_to_end


def wrap(memory: Any) -> Any:
    """A tensor over device memory, without a copy."""
    if memory.dtype == "bfloat16":
        return torch.as_tensor(memory.as_bits(), device="cuda").view(torch.bfloat16)
    return torch.as_tensor(memory, device="cuda")


def load(array: Array) -> Any:
    """A NumPy array on the GPU."""
    return _on_host(array).cuda()


def fetch(tensor: Any) -> Array:
    """A NumPy array of a tensor on the GPU."""
    return _as_array(tensor.cpu())


def _on_host(array: Array) -> Any:
    """A tensor over a NumPy array; bfloat16, which is not NumPy's own, by its bits."""
    if array.dtype == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _as_array(tensor: Any) -> Array:
    """A NumPy array over a tensor on the host."""
    if tensor.dtype == torch.bfloat16:
        bits: Array = tensor.view(torch.int16).numpy()
        return bits.view(numpy_dtype("bfloat16"))
    found: Array = tensor.numpy()
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
