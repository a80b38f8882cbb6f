"""An operation of PyTorch: its name, its shapes, its gradient and its batches."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import torch

from gpukern import _core
from gpukern.frameworks.operation import Argument, Operation, Shaped, gradients

_TYPES = {int: "SymInt", float: "float", bool: "bool"}
# Names that C allows and a schema does not.
_RESERVED = frozenset(("False", "None", "True", "def", "from", "in", "is", "lambda", "self"))
_KINDS = {
    torch.float16: "float16",
    torch.float32: "float32",
    torch.float64: "float64",
    torch.bfloat16: "bfloat16",
    torch.bool: "bool",
    **{getattr(torch, f"int{bits}"): f"int{bits}" for bits in (8, 16, 32, 64)},
    **{getattr(torch, f"uint{bits}"): f"uint{bits}" for bits in (8, 16, 32, 64)},
}
_DTYPES = {name: dtype for dtype, name in _KINDS.items()}

_KEPT = 256  # calls of other shapes or dtypes whose results are known from the time before

# The operations that were made here: one that is made again takes the place of the one before, as
# in a cell of a notebook that is run twice.
_made: dict[str, Any] = {}


def register(namespace: str, bare: str, operation: Operation) -> Any:
    """Make it ``torch.ops.<namespace>.<bare>``, which is returned."""
    name = f"{namespace}::{bare}"
    before = _made.pop(name, None)
    if before is not None:
        before._destroy()
    if hasattr(getattr(torch.ops, namespace), bare):
        raise ValueError(
            f"as_torch_op: name has to be one that is free, and {name!r} is an operation that was "
            "not made here"
        )
    library = torch.library.Library(namespace, "FRAGMENT")
    library.define(f"{bare}{_schema(operation)}", tags=(torch.Tag.pt2_compliant_tag,))
    of_torch = _OfTorch(name, operation)
    for device in ("CPU", "CUDA"):
        library.impl(bare, of_torch.run, device)
    torch.library.register_fake(name, of_torch.fake, lib=library)
    torch.library.register_autograd(
        name, of_torch.backward, setup_context=of_torch.keep, lib=library
    )
    torch.library.register_vmap(name, of_torch.batched, lib=library)
    _made[name] = library
    of_torch.itself = getattr(getattr(torch.ops, namespace), bare).default
    return of_torch.itself


def _schema(operation: Operation) -> str:
    taken = ", ".join(
        f"{'Tensor' if one.number is None else _TYPES[one.number]} {_safe(one)}"
        for one in operation.arguments
    )
    given = ", ".join(["Tensor"] * operation.results)
    return f"({taken}) -> {given if operation.results == 1 else f'({given})'}"


def _safe(argument: Argument) -> str:
    return argument.name + "_" * (argument.name in _RESERVED)


class _OfTorch:
    """What PyTorch calls."""

    itself: Any

    def __init__(self, name: str, operation: Operation) -> None:
        self._name = name
        self._operation = operation
        self._differentiated = operation.differentiated(torch)
        self._is_array = [one.number is None for one in operation.arguments]
        self._first = self._is_array.index(True)
        self._kept = lru_cache(_KEPT)(self._results)

    # the call -----------------------------------------------------------------------------------

    def run(self, *values: Any) -> Any:
        """On tensors that are there."""
        where = values[self._first].device
        self._check_device(values, where)
        outs = _made_of(self._kept(self._known(values)), where)
        stream = None
        if where.type == "cuda":
            stream = torch.cuda.current_stream(where).cuda_stream
        packed = self._operation.packed
        given = [
            _shown(value, packed) if is_array else value
            for value, is_array in zip(values, self._is_array, strict=True)
        ]
        self._operation.run(given, [_shown(out, False) for out in outs], stream)
        return self._returned(outs)

    def _check_device(self, values: Sequence[Any], where: Any) -> None:
        for value, argument in zip(values, self._operation.arguments, strict=True):
            if argument.number is None and value.device != where:
                raise ValueError(
                    f"{self._name}: {argument.name} is on {value.device}, and the first tensor on "
                    f"{where}; move one of them with .to(...)"
                )

    def fake(self, *values: Any) -> Any:
        """Results without what is in them, which is all that a tracer asks for."""
        results = self._results(self._known(values))
        return self._returned(_made_of(results, values[self._first].device))

    def _returned(self, outs: tuple[Any, ...]) -> Any:
        return outs[0] if self._operation.results == 1 else outs

    def _known(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """What the results follow from: shapes, dtypes and numbers."""
        return tuple(
            [
                (value.shape, value.dtype) if is_array else value
                for value, is_array in zip(values, self._is_array, strict=True)
            ]
        )

    def _results(self, known: tuple[Any, ...]) -> tuple[tuple[Any, Any], ...]:
        """The shape and the dtype of each result."""
        values = [
            Shaped(tuple(one[0]), self._kind(one[1])) if is_array else one
            for one, is_array in zip(known, self._is_array, strict=True)
        ]
        return tuple((one.shape, _DTYPES[one.dtype]) for one in self._operation.shaped(values))

    def _kind(self, dtype: Any) -> str:
        kind = _KINDS.get(dtype)
        if kind is None:
            raise TypeError(
                f"{self._name}: takes no tensors of {dtype}; it takes {', '.join(_DTYPES)}"
            )
        return kind

    # its gradient -------------------------------------------------------------------------------

    def keep(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """What the gradient is made of: the arguments."""
        ctx.save_for_backward(*self._arrays(inputs))
        ctx.numbers = [
            value for value, is_array in zip(inputs, self._is_array, strict=True) if not is_array
        ]
        ctx.set_materialize_grads(True)

    def backward(self, ctx: Any, *cotangents: Any) -> Any:
        """The gradient of each argument: None of numbers, and where there is none."""
        if self._differentiated is None:
            raise NotImplementedError(
                f"{self._name}: has no gradient; as_torch_op(..., backward=...) takes a function "
                "that gives one"
            )
        tensors, numbers = iter(ctx.saved_tensors), iter(ctx.numbers)
        values = [next(tensors if is_array else numbers) for is_array in self._is_array]
        found = iter(gradients(self._operation, self._differentiated, cotangents, values))
        return tuple(
            _like(next(found), value) if is_array else None
            for value, is_array in zip(values, self._is_array, strict=True)
        )

    def _arrays(self, values: Iterable[Any]) -> list[Any]:
        return [one for one, is_array in zip(values, self._is_array, strict=True) if is_array]

    # its batches --------------------------------------------------------------------------------

    def batched(self, info: Any, in_dims: tuple[Any, ...], *values: Any) -> Any:
        """Under ``torch.vmap``: at once where arrays are broadcast, else one after the other."""
        if self._operation.broadcasts:
            return self._broadcast(in_dims, values)
        rows = [
            self.itself(
                *(
                    value if axis is None else value.select(axis, row)
                    for value, axis in zip(values, in_dims, strict=True)
                )
            )
            for row in range(info.batch_size)
        ]
        if self._operation.results == 1:
            return torch.stack(rows), 0
        stacked = tuple(torch.stack(column) for column in zip(*rows, strict=True))
        return stacked, (0,) * len(stacked)

    def _broadcast(self, in_dims: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
        """The batch is in front of as many axes as any of the arrays has without it."""
        ndim = max(
            value.ndim - (axis is not None)
            for value, axis, is_array in zip(values, in_dims, self._is_array, strict=True)
            if is_array
        )
        given = []
        for value, axis in zip(values, in_dims, strict=True):
            if axis is not None:
                value = value.movedim(axis, 0)  # noqa: PLW2901
                between = (1,) * (ndim + 1 - value.ndim)
                value = value.reshape(value.shape[0], *between, *value.shape[1:])  # noqa: PLW2901
            given.append(value)
        results = self.itself(*given)
        return results, 0 if self._operation.results == 1 else (0,) * self._operation.results


def _made_of(results: tuple[tuple[Any, Any], ...], where: Any) -> tuple[Any, ...]:
    """New tensors of those shapes and dtypes, with nothing in them yet."""
    return tuple([torch.empty(shape, dtype=dtype, device=where) for shape, dtype in results])


def _shown(tensor: Any, packed: bool) -> Any:
    """A tensor as gpukern takes it, without a copy but of one that has to be contiguous."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if packed:
        tensor = tensor.contiguous()
    if tensor.is_cuda:
        return _core.from_dlpack(tensor)
    if tensor.dtype == torch.bfloat16:
        bits = tensor.view(torch.int16).numpy()
        return bits.view(np.dtype(ml_dtypes.bfloat16))
    return tensor.numpy()


def _like(gradient: Any, tensor: Any) -> Any:
    """A gradient summed up over the axes along which its tensor was broadcast."""
    if gradient is None:
        return None
    if gradient.shape != tensor.shape:
        gradient = gradient.sum_to_size(tensor.shape)
    return gradient.to(tensor.dtype)
