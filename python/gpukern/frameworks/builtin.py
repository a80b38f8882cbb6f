"""The built-in operations, as frameworks have to know them."""

from collections.abc import Callable, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import Any

import ml_dtypes
import numpy as np

from gpukern import _core
from gpukern.frameworks import gradients
from gpukern.frameworks.operation import (
    Argument,
    Backward,
    Operation,
    Shaped,
    axes_of,
    broadcast,
    check_among,
    reduced,
)

_REDUCTIONS = ("sum", "mean", "prod", "max", "min", "argmax", "argmin", "norm")
_TRANSPOSES = ("transpose", "matrix_transpose")
_ELEMENTWISE = (
    *("abs", "add", "clip", "divide", "equal", "exp", "greater", "greater_equal", "less"),
    *("less_equal", "maximum", "minimum", "multiply", "negative", "not_equal", "scale_add"),
    *("sqrt", "subtract"),
)
_NAMES = (*_ELEMENTWISE, *_REDUCTIONS, *_TRANSPOSES, "dot", "matmul")
_NOT_GIVEN = ("out", "stream")


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


class BuiltIn(Operation):
    """One of gpukern's functions; ``given`` are the arguments by name that every call has.

    ``numbers`` names those of its operands that are numbers; ``backward`` takes the place of its
    own.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        numbers: Sequence[str],
        given: dict[str, Any],
        backward: Backward | None,
    ) -> None:
        self.name = _checked_name(function)
        self._function = function
        self._given = given
        parameters = signature(function).parameters.values()
        operands = [one.name for one in parameters if one.kind is Parameter.POSITIONAL_ONLY]
        known = [one.name for one in parameters if one.name not in (*operands, *_NOT_GIVEN)]
        check_among("numbers have", self.name, numbers, operands)
        check_among("what is given has", self.name, given, known)
        self.arguments = tuple(Argument(one, float if one in numbers else None) for one in operands)
        if not any(one.number is None for one in self.arguments):
            raise ValueError(f"{self.name}: one of {', '.join(operands)} has to be an array")
        self.results = 1
        self.broadcasts = self.name in _ELEMENTWISE
        self.packed = False
        self.backward = backward

    def differentiated(self, xp: Any) -> Backward | None:
        """As Operation has it."""
        if self.backward is not None:
            return self.backward
        rule: Callable[..., Any] | None = gradients.BACKWARD.get(self.name)
        if self.name in ("sum", "mean") and self._given.get("dtype") is None:
            axes = axes_of(self._given.get("axis"))
            keepdims = bool(self._given.get("keepdims", False))
            rule = gradients.of_sum(axes, keepdims, self.name == "mean")
        elif self.name == "clip":
            rule = gradients.of_clip(self._given.get("min"), self._given.get("max"))
        elif self.name == "transpose":
            rule = gradients.of_transpose(axes_of(self._given.get("axes")) or None)
        if rule is None:
            return None

        def backward(*given: Any) -> tuple[Any, ...]:
            found = rule(xp, *given)
            found = found if isinstance(found, tuple) else (found,)
            return tuple(
                one
                for one, argument in zip(found, self.arguments, strict=True)
                if argument.number is None
            )

        return backward

    def shaped(self, values: Sequence[Any]) -> tuple[Shaped, ...]:
        """As Operation has it."""
        arrays = [one for one in values if isinstance(one, Shaped)]
        return (Shaped(self._shape(arrays), self._result_dtype(values)),)

    def _shape(self, arrays: list[Shaped]) -> tuple[Any, ...]:
        first = arrays[0].shape
        if self.broadcasts:
            return broadcast(self.name, [one.shape for one in arrays])
        if self.name in _REDUCTIONS:
            return reduced(self.name, first, self._given)
        if self.name == "matrix_transpose":
            self._check_axes(first, 2)
            return (*first[:-2], first[-1], first[-2])
        if self.name == "transpose":
            order = axes_of(self._given.get("axes")) or tuple(reversed(range(len(first))))
            self._check_axes(first, len(order))
            return tuple(first[axis] for axis in order)
        if self.name == "matmul":
            return self._product(first, arrays[1].shape)
        return ()

    def _check_axes(self, shape: tuple[Any, ...], least: int) -> None:
        if len(shape) < least:
            raise ValueError(f"{self.name}: an array of {len(shape)} axes has too few of them")

    def _product(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        self._check_axes(a, 1)
        self._check_axes(b, 1)
        inner = b[-2] if len(b) > 1 else b[0]
        if a[-1] != inner:
            raise ValueError(f"{self.name}: matrices of shapes {a} and {b} have no product")
        rows = a[-2:-1] if len(a) > 1 else ()
        columns = b[-1:] if len(b) > 1 else ()
        return (*broadcast(self.name, [a[:-2], b[:-2]]), *rows, *columns)

    def _result_dtype(self, values: Sequence[Any]) -> str:
        """As a call of it has it, on one element each."""
        kinds = tuple(
            (one.dtype, bool(one.ndim)) if isinstance(one, Shaped) else None for one in values
        )
        return _dtype_of_result(self._function, kinds, tuple(sorted(self._dtype_arguments())))

    def _dtype_arguments(self) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in self._given.items() if name == "dtype"]

    def run(self, values: Sequence[Any], outs: Sequence[Any], stream: Any) -> None:
        """As Operation has it."""
        self._function(*values, out=outs[0], stream=stream, **self._given)


@cache
def _dtype_of_result(
    function: Callable[..., Any],
    kinds: tuple[tuple[str, bool] | None, ...],
    named: tuple[tuple[str, Any], ...],
) -> str:
    arrays = [1.0 if kind is None else np.ones((1, 1), _dtype(kind[0])) for kind in kinds]
    if function.__name__ == "dot":
        arrays = [one if isinstance(one, float) else one.ravel() for one in arrays]
    return str(function(*arrays, **dict(named)).dtype.name)


def _checked_name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    if name not in _NAMES or getattr(_core, name) is not function:
        raise TypeError(
            f"operation has to be one of gpukern's functions ({', '.join(sorted(_NAMES))}), not "
            f"{function!r}; kernels have as_torch_op and as_jax of their own"
        )
    return name
