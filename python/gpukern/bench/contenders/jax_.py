"""JAX: NumPy's functions through XLA, at the highest precision of its matmul."""

import os
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern import _core
from gpukern.bench.model.case import AXES, ELEMENTWISE
from gpukern.bench.model.contender import Absent, Contender

# By itself JAX takes three quarters of the device's memory, and leaves too little for the others.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call, unused-ignore]

Array = npt.NDArray[Any]

# Threads of XLA hand the work over, to streams that it does not show: no event of anybody else
# comes before or after it, and a wall clock would time the threads and the launches as well.
_OFF_DEVICE = "it works on streams of its own, where no event can be recorded"


def contenders(op: str, dtype: str) -> Iterator[Contender | Absent]:
    """What takes part in a comparison of ``op`` on ``dtype``."""
    try:
        device = jax.devices("gpu")[_core.make_current()]
    except RuntimeError:
        yield Absent("JAX", "", "is installed, but finds no GPU that it can use")
        return
    if op == "norm" and dtype not in ("float32", "float64"):
        yield Absent("JAX", "", f"no {op} for {dtype} here")
        return
    yield _contender(f"jnp.{op}", _jitted(op), device)


def _contender(variant: str, function: Callable[..., Any], device: Any) -> Contender:
    def end_to_end(*arrays: Array) -> Array:
        return np.asarray(function(*(jax.device_put(array, device) for array in arrays)))

    return Contender("JAX", variant, end_to_end, off_device=_OFF_DEVICE, tunes=True)


def _matmul(a: Any, b: Any) -> Any:
    return jnp.matmul(a, b, precision="highest")


def _dot(a: Any, b: Any) -> Any:
    return jnp.dot(a, b, precision="highest")


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        op: getattr(jnp, op)
        for op in (*ELEMENTWISE, "sum", "max", "min", "argmax", "argmin", "transpose")
    },
    **{op: partial(jnp.sum, axis=axis) for op, axis in AXES.items()},
    "norm": jnp.linalg.norm,
    "dot": _dot,
    "matmul": _matmul,
}


@cache
def _jitted(op: str) -> Any:
    return jax.jit(_FUNCTIONS[op])
