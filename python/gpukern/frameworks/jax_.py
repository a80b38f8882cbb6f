"""A function for JAX: XLA calls the operation by its foreign function interface, on its own memory
and stream; what runs it is Python, once a call, with nothing copied."""

import itertools
import secrets
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from gpukern import _core
from gpukern.frameworks.operation import Operation, Shaped, gradients

_TARGET = "gpukern"

# What XLA calls, by a number that a program carries: its operation, and the numbers of the call.
# It begins anywhere, since a program may be kept on disk, and a later process has other operations.
_calls: dict[int, tuple[Operation, tuple[Any, ...]]] = {}
_keys = itertools.count(secrets.randbits(40) << 22)


@cache
def _registered() -> None:
    """Hand XLA the functions that it calls, once a process."""
    jax.ffi.register_ffi_target(_TARGET, _core.xla_target(False), platform="cpu")
    jax.ffi.register_ffi_target(_TARGET, _core.xla_target(True), platform="CUDA")


def run(key: int, stream: int, arguments: tuple[Any, ...], results: tuple[Any, ...]) -> None:
    """A call of XLA's, on its memory."""
    if key not in _calls:
        raise LookupError(
            "as_jax: the program was compiled by another process, whose operations are not known "
            "here; compile it again, without a cache of compiled programs"
        )
    operation, numbers = _calls[key]
    on_host = any(isinstance(one, tuple) for one in (*arguments, *results))
    if on_host:
        arguments = tuple(_on_host(*one) for one in arguments)
        results = tuple(_on_host(*one) for one in results)
    values = _merged(operation, arguments, numbers)
    operation.run(values, results, None if on_host else stream)


def _on_host(memory: Any, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    if memory is None:
        return np.empty(shape, kind)
    return np.frombuffer(memory, kind).reshape(shape)


def _merged(operation: Operation, arrays: Sequence[Any], numbers: Sequence[Any]) -> list[Any]:
    """The arguments of a call, in their order."""
    of_arrays, of_numbers = iter(arrays), iter(numbers)
    return [next(of_arrays if one.number is None else of_numbers) for one in operation.arguments]


def function(operation: Operation) -> Callable[..., Any]:
    """What a user calls, under ``jax.jit`` or not."""
    _registered()
    made: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def call(*values: Any) -> Any:
        arrays, numbers = _sorted(operation, values)
        if numbers not in made:
            made[numbers] = _with_numbers(operation, numbers)
        return made[numbers](*arrays)

    call.__name__ = call.__qualname__ = operation.name
    call.__doc__ = f"{operation.name}({', '.join(one.name for one in operation.arguments)})"
    return call


def _sorted(
    operation: Operation, values: Sequence[Any]
) -> tuple[list[Any], tuple[int | float | bool, ...]]:
    names = ", ".join(one.name for one in operation.arguments)
    if len(values) != len(operation.arguments):
        raise TypeError(
            f"{operation.name}: takes {len(operation.arguments)} arguments, ({names}), and was "
            f"given {len(values)}"
        )
    arrays: list[Any] = []
    numbers = []
    for argument, value in zip(operation.arguments, values, strict=True):
        if argument.number is None:
            arrays.append(jnp.asarray(value))
        elif isinstance(value, jax.Array):
            raise TypeError(
                f"{operation.name}: {argument.name} has to be a number of Python's, which is part "
                f"of the compiled program, not {value!r}; jax.jit(..., static_argnums=...) keeps "
                "it one"
            )
        else:
            numbers.append(argument.number(value))
    return arrays, tuple(numbers)


def _with_numbers(operation: Operation, numbers: tuple[Any, ...]) -> Callable[..., Any]:
    """The function of the arrays alone, with its gradient."""
    key = next(_keys)
    _calls[key] = (operation, numbers)
    rule = operation.differentiated(jnp)

    def forward(*arrays: Any) -> Any:
        return _call(operation, key, numbers, arrays)

    def keep(*arrays: Any) -> Any:
        return forward(*arrays), arrays

    def backward(arrays: tuple[Any, ...], cotangents: Any) -> tuple[Any, ...]:
        if rule is None:
            raise NotImplementedError(
                f"{operation.name}: has no gradient; as_jax(..., backward=...) takes a function "
                "that gives one"
            )
        given = cotangents if isinstance(cotangents, tuple) else (cotangents,)
        found = gradients(operation, rule, given, _merged(operation, arrays, numbers))
        return tuple(_like(one, array) for one, array in zip(found, arrays, strict=True))

    differentiable: Any = jax.custom_vjp(forward)
    differentiable.defvjp(keep, backward)
    return differentiable  # type: ignore[no-any-return]


def _call(operation: Operation, key: int, numbers: tuple[Any, ...], arrays: tuple[Any, ...]) -> Any:
    known = [Shaped(array.shape, array.dtype.name) for array in arrays]
    shaped = operation.shaped(_merged(operation, known, numbers))
    results = tuple(jax.ShapeDtypeStruct(one.shape, _kind(operation, one.dtype)) for one in shaped)
    method = "sequential"
    if operation.broadcasts:
        # A batch comes in front of as many axes as any of them has.
        method, ndim = "expand_dims", max(array.ndim for array in arrays)
        arrays = tuple(array.reshape((1,) * (ndim - array.ndim) + array.shape) for array in arrays)
    one_or_all = results[0] if operation.results == 1 else results
    called = jax.ffi.ffi_call(_TARGET, one_or_all, vmap_method=method)
    return called(*arrays, key=np.int64(key))


def _kind(operation: Operation, dtype: str) -> Any:
    """The dtype, which JAX has to have: without its option none has 64 bits."""
    kind = jnp.dtype(dtype)
    if jax.dtypes.canonicalize_dtype(kind) != kind:
        raise TypeError(
            f"{operation.name}: gives an array of {dtype}, which JAX does not have unless "
            "jax.config.update('jax_enable_x64', True) is called"
        )
    return kind


def _like(gradient: Any, array: Any) -> Any:
    """A gradient summed up over the axes along which its array was broadcast; None for what has
    none, and for integers."""
    if gradient is None or not jnp.issubdtype(array.dtype, jnp.inexact):
        return None
    gradient = jnp.asarray(gradient)
    if gradient.shape != array.shape:
        added = gradient.ndim - array.ndim
        ones = tuple(
            added + axis
            for axis, length in enumerate(array.shape)
            if length == 1 and gradient.shape[added + axis] != 1
        )
        gradient = gradient.sum((*range(added), *ones), keepdims=True).reshape(array.shape)
    return gradient.astype(array.dtype)
