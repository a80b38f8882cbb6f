"""What kernels that are made of an expression have in common, elementwise or reductions."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from gpukern import _core
from gpukern.frameworks.offer import checked_how, jax_function, torch_op
from gpukern.frameworks.operation import Backward, check_among
from gpukern.kernels import templates
from gpukern.kernels.declared import Declared
from gpukern.kernels.described import Declares, OfExpression
from gpukern.kernels.module import Kernel, Module, make_kernel
from gpukern.kernels.operands import Operand
from gpukern.kernels.signature import CHAR, SIGNED, UNSIGNED, Parameter
from gpukern.text.calls import called_as

Dtype = np.dtype[Any]
Made = TypeVar("Made")


def _name_of(parameter: Parameter) -> str:
    return parameter.text.replace("*", " ").split()[-1]


def _told(parameter: Parameter, operand: templates.Operand | None) -> Parameter:
    """As it was declared, and of a number of a byte which of both kinds it is."""
    if operand is None:
        return parameter
    made_of = parameter.made_of
    if made_of == CHAR:
        made_of = SIGNED if operand.dtype.kind == "i" else UNSIGNED
    return replace(parameter, text=operand.parameter.text, made_of=made_of)


class ExpressionKernel(ABC, Generic[Made]):
    """Parameters, and the kernels of each signature that it was called with."""

    name: str
    _ins: tuple[Declared, ...]
    _outs: tuple[Declared, ...]
    _made: dict[tuple[Any, ...], Made]

    @property
    def signature(self) -> str:
        """What it takes, as declared, and what it gives."""
        ins = ", ".join(one.text for one in self._ins)
        return f"{ins} -> {', '.join(one.text for one in self._outs)}"

    def _kernels(self, types: dict[str, Dtype], operands: Sequence[Operand]) -> Made:
        """Those for these dtypes, and for what of the operands are numbers."""
        dtypes = tuple(one.dtype_in(types) for one in self._ins + self._outs)
        numbers = tuple(operand.is_number for operand in operands)
        key = (_core.capability(), numbers, *dtypes)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._compiled(dtypes, numbers, types)
        return made

    def _kernel(self, module: Module, part: str, operands: Sequence[templates.Operand]) -> Kernel:
        """One of a module's, under the names that its user knows."""
        found = module.found(f"{self.name}_{part}")
        named = {operand.name: operand for operand in operands}
        told = tuple(_told(one, named.get(_name_of(one))) for one in found.parameters)
        return make_kernel(self.name, found._replace(parameters=told))

    _TAKES: tuple[str, ...] = ()  # what a call takes by name that follows from no argument

    @called_as("as_torch_op")
    def as_torch_op(
        self,
        name: str,
        *,
        numbers: Sequence[str] = (),
        given: Mapping[str, Any] | None = None,
        backward: Backward | None = None,
    ) -> Any:
        """Make it an operation of PyTorch, ``torch.ops.mine.saxpy``::

            saxpy = gpukern.elementwise("float a, float x, float y, float z", "z = a * x + y")
            op = saxpy.as_torch_op(
                "mine::saxpy", numbers=["a"], backward=lambda g, a, x, y: (a * g, g)
            )

        Arguments are tensors, but for those that ``numbers`` names. Shapes are broadcast.
        ``given`` are ``axis`` and ``keepdims`` of a reduction, the same in every call.
        ``backward`` is called with the gradient of each result and the arguments, and returns the
        gradient of each tensor, None for one that has none; it is summed up where the tensor was
        broadcast. Without it there is no gradient.

        Raises TypeError and ValueError for what is not taken, ImportError where there is no
        PyTorch.
        """
        return torch_op(name, lambda: self._described(numbers, given, backward))

    @called_as("as_jax")
    def as_jax(
        self,
        *,
        numbers: Sequence[str] = (),
        given: Mapping[str, Any] | None = None,
        backward: Backward | None = None,
    ) -> Any:
        """Make it a function for JAX, which works under ``jax.jit``, ``jax.vmap`` and ``jax.grad``.

        Arguments are as of ``as_torch_op``; what ``numbers`` names is a number of Python's, and
        part of the compiled program.

        Raises TypeError and ValueError for what is not taken, ImportError where there is no JAX.
        """
        return jax_function(lambda: self._described(numbers, given, backward))

    def _described(
        self, numbers: Sequence[str], given: Mapping[str, Any] | None, backward: Backward | None
    ) -> OfExpression:
        """What a framework has to know of it."""
        named, same = checked_how(numbers, given, backward)
        check_among("what is given has", self.name, same, self._TAKES)
        self._check_results()
        declares = Declares(self.name, self._ins, self._outs, reduces=bool(self._TAKES))
        return OfExpression(self, declares, named, same, backward)

    def _check_results(self) -> None:
        """That each can be made where no array is given for it."""

    @abstractmethod
    def _compiled(
        self, dtypes: tuple[Dtype, ...], numbers: tuple[bool, ...], types: dict[str, Dtype]
    ) -> Made: ...

    def _new(
        self,
        parameter: Declared,
        types: dict[str, Dtype],
        shape: tuple[int, ...],
        on_host: bool,
        stream: Any,
    ) -> Any:
        """An array for a result that was not given one."""
        if parameter.letter and parameter.letter not in types:
            raise TypeError(
                f"{self.name}: no argument tells what {parameter.letter} is in "
                f"{parameter.text}; pass an array as out="
            )
        dtype = parameter.dtype_in(types)
        return np.empty(shape, dtype) if on_host else _core.empty(shape, dtype, stream=stream)
