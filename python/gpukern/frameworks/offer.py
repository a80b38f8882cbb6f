"""``as_torch_op`` and ``as_jax`` of built-in operations, and what those of kernels call."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpukern.frameworks.builtin import BuiltIn
from gpukern.frameworks.operation import Backward, Operation
from gpukern.text.calls import blamed_on, called_as, checked_texts


def check_backward(backward: Any) -> None:
    """That it is a function, or None."""
    if backward is not None and not callable(backward):
        raise TypeError(f"backward has to be a function, not {backward!r}")


def checked_how(numbers: Any, given: Any, backward: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """What is said of an operation; ``numbers`` and ``given``, as they are used."""
    check_backward(backward)
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"given has to be a dict of arguments by name, not {given!r}")
    return checked_texts("numbers", numbers), dict(given or {})


def torch_op(name: str, operation: Callable[[], Operation]) -> Any:
    """Register an operation under its name, if that is one and it can be described."""
    with blamed_on("as_torch_op"):
        namespace, bare = _parts(name)
        described = operation()
    try:
        import torch  # noqa: F401 (whether it is there)
    except ImportError:
        raise ImportError(
            "as_torch_op needs PyTorch, which is not installed: pip install torch"
        ) from None
    from gpukern.frameworks import pytorch

    return pytorch.register(namespace, bare, described)


def jax_function(operation: Callable[[], Operation]) -> Any:
    """A function of JAX's of an operation that can be described."""
    with blamed_on("as_jax"):
        described = operation()
    try:
        import jax  # noqa: F401 (whether it is there)
    except ImportError:
        raise ImportError("as_jax needs JAX, which is not installed: pip install jax") from None
    from gpukern.frameworks import jax_

    return jax_.function(described)


def _parts(name: Any) -> tuple[str, str]:
    right = "name has to be of a namespace and an operation, as 'mine::double'"
    if not isinstance(name, str):
        raise TypeError(f"{right}, not {name!r}")
    namespace, _, bare = name.partition("::")
    if not (namespace.isidentifier() and bare.isidentifier() and name.isascii()):
        raise ValueError(f"{right}, not {name!r}")
    return namespace, bare


@called_as("as_torch_op")
def as_torch_op(
    operation: Callable[..., Any],
    name: str,
    *,
    numbers: Sequence[str] = (),
    given: Mapping[str, Any] | None = None,
    backward: Backward | None = None,
) -> Any:
    """Make a built-in operation one of PyTorch's, ``torch.ops.mine.add``::

        add = gpukern.as_torch_op(gpukern.add, "mine::add")
        total = gpukern.as_torch_op(gpukern.sum, "mine::total", given={"axis": -1})

    It takes and gives tensors, on the GPU or on the CPU, runs on PyTorch's current stream, and
    works under ``torch.compile(fullgraph=True)`` and ``torch.vmap``. ``numbers`` names operands
    that are numbers in place of tensors; ``given`` are other arguments of the operation, the same
    in every call. Sums, products, what is elementwise and exchanges of axes have gradients.
    ``backward`` gives one to the rest: it is called with the gradient of the result and the
    arguments, and returns the gradient of each tensor. Kernels have ``as_torch_op`` of their own.

    Raises TypeError and ValueError for what is not taken, ImportError where there is no PyTorch.
    """
    return torch_op(name, lambda: _built_in(operation, numbers, given, backward))


@called_as("as_jax")
def as_jax(
    operation: Callable[..., Any],
    *,
    numbers: Sequence[str] = (),
    given: Mapping[str, Any] | None = None,
    backward: Backward | None = None,
) -> Any:
    """Make a function for JAX of a built-in operation::

        add = gpukern.as_jax(gpukern.add)
        total = gpukern.as_jax(gpukern.sum, given={"axis": -1})

    It takes and gives JAX's arrays, where they are, runs on XLA's stream, and works under
    ``jax.jit``, ``jax.vmap`` and ``jax.grad``. ``numbers``, ``given`` and ``backward`` are as of
    ``as_torch_op``; numbers are Python's, and part of the compiled program. Kernels have
    ``as_jax`` of their own.

    Raises TypeError and ValueError for what is not taken, ImportError where there is no JAX.
    """
    return jax_function(lambda: _built_in(operation, numbers, given, backward))


def _built_in(
    operation: Callable[..., Any],
    numbers: Sequence[str],
    given: Mapping[str, Any] | None,
    backward: Backward | None,
) -> Operation:
    return BuiltIn(operation, *checked_how(numbers, given, backward), backward)
