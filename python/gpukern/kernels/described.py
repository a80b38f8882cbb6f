"""Kernels as frameworks have to know them: what they take and give, and how they are launched."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpukern import _core
from gpukern.frameworks.operation import (
    Argument,
    Backward,
    Operation,
    Shaped,
    broadcast,
    check_among,
    reduced,
)
from gpukern.kernels.declared import Declared
from gpukern.kernels.signature import (
    BFLOAT,
    BOOL,
    BYTES,
    FLOAT,
    POINTER,
    UNKNOWN,
    Parameter,
    pointee_dtype,
)

Of = Callable[..., Any]


class Declares(NamedTuple):
    """What a kernel that is made of an expression declares, and whether it is a reduction."""

    name: str
    ins: Sequence[Declared]
    outs: Sequence[Declared]
    reduces: bool


class OfExpression(Operation):
    """A kernel that is made of what it does with elements, or a reduction of them; ``given`` are
    the arguments by name that every call has."""

    packed = False

    def __init__(
        self,
        kernel: Any,
        declares: Declares,
        numbers: Sequence[str],
        given: Mapping[str, Any],
        backward: Backward | None,
    ) -> None:
        name, ins, outs, reduces = declares
        check_among("numbers have", name, numbers, [one.name for one in ins])
        raw = [one.text for one in (*ins, *outs) if one.raw]
        if raw:
            raise ValueError(
                f"{name}: {raw[0]} is raw, and the shape of a result follows from elements alone; "
                "gpukern.compile makes a kernel whose out= says the shape"
            )
        self.name, self.backward, self.broadcasts = name, backward, not reduces
        self.arguments = tuple(
            Argument(one.name, _number_of(one) if one.name in numbers else None) for one in ins
        )
        if all(one.number is not None for one in self.arguments):
            raise ValueError(f"{name}: one of its arguments has to be an array")
        self.results = len(outs)
        self._kernel, self._declares, self._given = kernel, declares, given

    def shaped(self, values: Sequence[Any]) -> tuple[Shaped, ...]:
        """As Operation has it."""
        bound: dict[str, str] = {}
        shapes = []
        for parameter, value in zip(self._declares.ins, values, strict=True):
            if isinstance(value, Shaped):
                shapes.append(value.shape)
                if parameter.letter:
                    bound.setdefault(parameter.letter, value.dtype)
        shape = broadcast(self.name, shapes)
        if self._declares.reduces:
            shape = reduced(self.name, shape, self._given)
        return tuple(Shaped(shape, self._dtype(one, bound)) for one in self._declares.outs)

    def _dtype(self, parameter: Declared, bound: Mapping[str, str]) -> str:
        if parameter.dtype is not None:
            return parameter.dtype.name
        letter = str(parameter.letter)
        if letter not in bound:
            raise TypeError(f"{self.name}: no array tells what {letter} is in {parameter.text}")
        return bound[letter]

    def run(self, values: Sequence[Any], outs: Sequence[Any], stream: Any) -> None:
        """As Operation has it."""
        out = outs[0] if len(outs) == 1 else tuple(outs)
        self._kernel(*values, out=out, stream=stream, **self._given)


def _number_of(parameter: Declared) -> type[int] | type[float] | type[bool]:
    kind = parameter.dtype.kind if parameter.dtype is not None else "f"
    return {"b": bool, "i": int, "u": int}.get(kind, float)


class Call(NamedTuple):
    """A call: its arguments, arrays as Shaped, and how many elements the arrays have."""

    values: Sequence[Any]
    sizes: Mapping[str, int]

    def value_of(self, said: Any) -> Any:
        """What is said by a function of the arguments, by an array's name, or by itself."""
        if isinstance(said, str):
            return self.sizes[said]
        return said(*self.values) if callable(said) else said


def check_launch(over: Any, grid: Any, block: Any) -> None:
    """That it is said how many threads there are."""
    if (over is None) == (grid is None):
        raise TypeError(
            "say either over=, the elements that have a thread each, or grid= and block= as of a "
            "call"
        )
    if grid is not None and block is None:
        raise TypeError("grid= needs block= beside it")


class OfSource(Operation):
    """A kernel of a compiled module, and what its source does not say of a call.

    ``outs`` are the shapes of what it writes, ``given`` what parameters are that are no arguments,
    ``launch`` what runs it with its own arguments, in a call with such values.
    """

    packed = True
    broadcasts = False

    def __init__(
        self,
        name: str,
        parameters: Sequence[Parameter],
        out: Any,
        given: Mapping[str, Any],
        zeroed: bool,
        backward: Backward | None,
    ) -> None:
        self.name, self.backward = name, backward
        self.names = tuple(_name_of(one, at) for at, one in enumerate(parameters, 1))
        self._parameters = dict(zip(self.names, parameters, strict=True))
        self._outs = self._shapes_of(out)
        self._given = given
        self._zeroed = zeroed
        self.results = len(self._outs)
        self._check_given()
        self.arguments = tuple(
            Argument(one, self._number(one))
            for one in self.names
            if one not in self._outs and one not in given
        )
        self._places = {one.name: at for at, one in enumerate(self.arguments)}
        if not any(one.number is None for one in self.arguments):
            raise ValueError(f"{name}: an operation has to take an array, and this takes none")
        for said in self._outs.values():
            self.check_said("out", said, of_arguments=True)
        for said in given.values():
            self.check_said("given", said)

    # what is said of it -------------------------------------------------------------------------

    def _shapes_of(self, out: Any) -> dict[str, Any]:
        written = [
            name
            for name, one in self._parameters.items()
            if one.made_of == POINTER and not one.readonly
        ]
        if not isinstance(out, dict):
            if len(written) != 1:
                raise ValueError(
                    f"{self.name}: out has to name what is written, as "
                    f"{{'y': 'x'}}, since of {', '.join(written) or 'no parameter'} it is not clear"
                )
            return {written[0]: out}
        for name in out:
            if name not in written:
                raise ValueError(
                    f"{self.name}: out names {name!r}, which is no pointer that is written; those "
                    f"are {', '.join(written) or 'none'}"
                )
        for name in written:
            if name not in out:
                raise ValueError(
                    f"{self.name}: {self._parameters[name].text} may be written, and an operation "
                    "changes none of its arguments; declare it const, or name it in out"
                )
        if not out:
            raise ValueError(f"{self.name}: out names nothing, and an operation gives an array")
        return {name: out[name] for name in self.names if name in out}

    def _check_given(self) -> None:
        for name in self._given:
            if name not in self.names or name in self._outs:
                known = ", ".join(one for one in self.names if one not in self._outs)
                raise ValueError(f"{self.name}: given may say {known}, not {name!r}")
        for name in self._outs:
            parameter = self._parameters[name]
            if pointee_dtype(parameter) is None:
                raise TypeError(
                    f"{self.name}: {parameter.text} points to nothing that a framework has a dtype "
                    "for"
                )

    def check_said(self, what: str, said: Any, of_arguments: bool = False) -> None:
        """That what is said is no name, or that of an array of the call."""
        arrays = [one.name for one in self.arguments if one.number is None]
        if not of_arguments:
            arrays += self._outs
        if isinstance(said, str) and said not in arrays:
            raise ValueError(
                f"{self.name}: {what} says {said!r}, and the arrays are {', '.join(arrays)}"
            )

    def _number(self, name: str) -> type[int] | type[float] | type[bool] | None:
        parameter = self._parameters[name]
        if parameter.made_of == POINTER:
            return None
        if parameter.made_of in (BYTES, UNKNOWN):
            raise TypeError(
                f"{self.name}: {parameter.text} is no number and no array, which are what an "
                f"operation takes; given={{{name!r}: ...}} says what it is"
            )
        if parameter.made_of == BOOL:
            return bool
        return float if parameter.made_of in (FLOAT, BFLOAT) else int

    # a call of it -------------------------------------------------------------------------------

    def shaped(self, values: Sequence[Any]) -> tuple[Shaped, ...]:
        """As Operation has it."""
        return tuple(
            Shaped(self._shape(said, values), str(pointee_dtype(self._parameters[name])))
            for name, said in self._outs.items()
        )

    def _shape(self, said: Any, values: Sequence[Any]) -> tuple[Any, ...]:
        if isinstance(said, str):
            return values[self._places[said]].shape  # type: ignore[no-any-return]
        shape = said(*values) if callable(said) else said
        return tuple(shape) if isinstance(shape, tuple | list) else (shape,)

    launch: Callable[["Call", list[Any], Any], None]

    def run(self, values: Sequence[Any], outs: Sequence[Any], stream: Any) -> None:
        """As Operation has it."""
        known = [
            Shaped(value.shape, value.dtype.name) if argument.number is None else value
            for argument, value in zip(self.arguments, values, strict=True)
        ]
        sizes = {name: out.size for name, out in zip(self._outs, outs, strict=True)}
        for name, place in self._places.items():
            if isinstance(known[place], Shaped):
                sizes[name] = known[place].size
        call = Call(known, sizes)
        written = iter(outs)
        arguments: list[Any] = []
        for name in self.names:
            if name in self._outs:
                arguments.append(self._written(next(written), stream))
            elif name in self._given:
                arguments.append(call.value_of(self._given[name]))
            else:
                arguments.append(values[self._places[name]])
        self.launch(call, arguments, stream)

    def _written(self, out: Any, stream: Any) -> Any:
        on_host = isinstance(out, np.ndarray)
        if self._zeroed:
            if on_host:
                out.fill(0)
            else:
                out.fill(0, stream=stream)
        if not on_host:
            return out
        return _core.InOut(out) if self._zeroed else _core.Out(out)


def _name_of(parameter: Parameter, number: int) -> str:
    """As the source has it, or by its number where that is not known."""
    found = re.search(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$", parameter.text)
    return found[1] if found else f"argument{number}"
