"""What kernels that are made of an expression have in common, elementwise or reductions."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from gpukern import _core
from gpukern.kernels.declared import Declared
from gpukern.kernels.operands import Operand

Dtype = np.dtype[Any]
Made = TypeVar("Made")


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
