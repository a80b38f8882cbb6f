"""Elementwise kernels of an expression: ``gpukern.elementwise``, ``vectorize``, and CuPy's way."""

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gpukern import _core
from gpukern.kernels import layout, plans, templates
from gpukern.kernels import operands as taken
from gpukern.kernels.compiling import compile
from gpukern.kernels.declared import (
    RESULT,
    Declared,
    check_names,
    check_type,
    checked_identifier,
    declared,
)
from gpukern.kernels.expression import ExpressionKernel
from gpukern.kernels.mentions import is_assigned, is_read, is_updated
from gpukern.kernels.module import Kernel
from gpukern.kernels.operands import Operand
from gpukern.text.calls import (
    blamed_on,
    called_as,
    checked_count,
    checked_flag,
    checked_text,
    checked_texts,
)

_FEW = 1 << 31


class _Made(NamedTuple):
    """The kernels of one signature."""

    wide: Kernel
    strided: Callable[..., None]
    far: Callable[..., None]
    dtypes: tuple[np.dtype[Any], ...]
    width: int

    @property
    def a_block(self) -> int:
        """Elements of a block of ``wide``."""
        return self.width * templates.VECTORS * templates.THREADS


class _Call(NamedTuple):
    given: list[Any]
    operands: list[Operand | None]
    types: dict[str, np.dtype[Any]]
    stream: Any


class ElementwiseKernel(ExpressionKernel[_Made]):
    """A kernel that is run for every element of arrays, made of what it does with one::

        saxpy = gpukern.ElementwiseKernel("T a, T x, T y", "T z", "z = a * x + y", "saxpy")
        z = saxpy(2.0, x, y)

    As CuPy's class of that name: ``in_params`` and ``out_params`` declare elements, by C's types or
    NumPy's; one letter stands for any dtype, the same in all of them; ``raw`` is an array that the
    operation indexes itself. ``i`` is the number of the element, ``n`` (and ``_ind.size()``) how
    many there are. ``preamble`` stands before the kernel, ``loop_prep`` and ``after_loop`` round
    the operation, ``options`` are the compiler's. With ``return_tuple`` one result is a tuple too,
    with ``no_return`` nothing is returned; ``reduce_dims`` is of no effect, since axes are always
    made as few as can be.

    Arguments are arrays, which are broadcast, and numbers: NumPy's on the host, DeviceArrays, and
    those of other libraries on the device. Results are new arrays, on the device where an argument
    is, or those that are given behind the arguments or as ``out=``; one without axes on the host is
    a scalar. ``size`` is needed where all arrays are raw. For each kind of call the kernel is
    compiled once, and kept on disk.

    Raises TypeError for wrong dtypes and counts, ValueError for shapes and what the text declares,
    CompileError for an operation that does not compile.
    """

    @called_as("ElementwiseKernel")
    def __init__(  # noqa: PLR0913 (CuPy's arguments)
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        *,
        options: Sequence[str] = (),
        loop_prep: str = "",
        after_loop: str = "",
    ) -> None:
        with blamed_on("ElementwiseKernel"):
            self.name = checked_identifier(name)
            self._ins = declared("in_params", in_params)
            self._outs = declared("out_params", out_params)
            self._parameters = self._ins + self._outs
            check_names("in_params with out_params", self._parameters)
            if not self._outs:
                raise ValueError("out_params has to declare what the kernel writes")
            checked_flag("reduce_dims", reduce_dims)
            texts = {"loop_prep": loop_prep, "operation": operation, "after_loop": after_loop}
            self._operation = ";\n    ".join(
                filter(None, (checked_text(*pair) for pair in texts.items()))
            )
            self._preamble = checked_text("preamble", preamble)
            self._options = checked_texts("options", options)
            self._no_return = checked_flag("no_return", no_return)
            self._return_tuple = checked_flag("return_tuple", return_tuple)
        self._made: dict[tuple[Any, ...], _Made] = {}
        self._plans: dict[tuple[Any, ...], plans.Plan] = {}
        self._is_simple = len(self._outs) == 1 and not any(one.raw for one in self._parameters)
        self._keeps = templates.is_kept(self._operation) or any(
            is_read(one.name, self._operation) for one in self._outs
        )
        self._is_by_itself = (
            self._is_simple
            and not self._keeps
            and not templates.is_placed(self._operation, self._preamble)
        )
        self._is_numbered = templates.is_numbered(self._operation, self._preamble)
        self.__doc__ = f"{name}({self.signature})"

    def __repr__(self) -> str:
        return f"<elementwise kernel {self.name}({self.signature})>"

    def __call__(
        self,
        *arguments: Any,
        out: Any = None,
        size: int | None = None,
        stream: Any = None,
        block_size: int | None = None,
    ) -> Any:
        """Run it: the results, as the class says. ``block_size`` is taken for CuPy's sake."""
        del block_size
        plain = self._plain(arguments, out) if size is None else None
        if plain is not None and plain in self._plans:
            again = self._again(self._plans[plain], arguments, out, stream)
            return self._given([again], [out])
        call = self._taken(arguments, out, stream)
        shape = self._shape(call, size)
        count = prod(shape)
        made: _Made | None = None
        if self._is_mapped(call):
            made, result = self._mapped(call, shape)
            results = [result]
        else:
            results = self._results(call, shape)
            made = self._run(call, shape, count) if count else None
        if plain is not None and made is not None:
            on_host, dtype = isinstance(results[0], np.ndarray), made.dtypes[-1]
            if len(self._plans) >= plans.MOST:
                self._plans.clear()
            self._plans[plain] = plans.Plan(made.wide, made.a_block, count, shape, dtype, on_host)
        return self._given(results, call.given[len(self._ins) :])

    def _given(self, results: list[Any], outs: list[Any]) -> Any:
        """As they are returned: what has no axes is a scalar on the host, unless it is an out."""
        if self._no_return:
            return None
        for at, (result, out) in enumerate(zip(results, outs, strict=True)):
            if out is None and isinstance(result, np.ndarray) and result.ndim == 0:
                results[at] = result[()]
        return results[0] if len(results) == 1 and not self._return_tuple else tuple(results)

    def _check_results(self) -> None:
        for one in self._outs:
            self._check_new(one)

    # the same again -----------------------------------------------------------------------------

    def _plain(self, arguments: tuple[Any, ...], out: Any) -> tuple[Any, ...] | None:
        """What a call has to have in common with one before to go as that did; None where it is
        not of the simplest kind: numbers, and arrays in one place that a plan can be made for."""
        if not self._is_simple or len(arguments) != len(self._ins):
            return None
        return plans.key_of(arguments, out, self._is_by_itself)

    def _again(self, plan: plans.Plan, arguments: tuple[Any, ...], out: Any, stream: Any) -> Any:
        wide, a_block, elements, shape, dtype, on_host = plan
        threads = templates.THREADS
        if on_host and self._is_by_itself:
            return wide.map(a_block, threads, shape, dtype, arguments, out, stream)
        result = out
        if out is None:
            result = np.empty(shape, dtype) if on_host else _core.empty(shape, dtype, stream=stream)
        target = self._written(result) if on_host else result
        blocks = -(-elements // a_block)
        wide(blocks, threads, *arguments, target, elements, stream=stream)
        return result

    # what is given ------------------------------------------------------------------------------

    def _taken(self, arguments: tuple[Any, ...], out: Any, stream: Any) -> _Call:
        ins, outs, name = len(self._ins), len(self._outs), self.name
        given: list[Any] = list(arguments)
        if out is not None:
            given += out if isinstance(out, tuple) else (out,)
        if len(given) not in (ins, ins + outs):
            raise TypeError(
                f"{name}: takes {ins} argument{'s' * (ins != 1)}, ({self.signature}), and may be "
                f"given {outs} for results, and was given {len(arguments)}"
                + (f" and {len(given) - len(arguments)} for results" if out is not None else "")
            )
        given += [None] * (ins + outs - len(given))
        operands: list[Operand | None] = []
        for at, (parameter, value) in enumerate(zip(self._parameters, given, strict=True)):
            if at >= ins and value is None:
                self._check_new(parameter)
                operands.append(None)
            else:
                operand = taken.take(name, parameter, value)
                if at >= ins and isinstance(value, np.ndarray):
                    operand = operand._replace(is_number=False)
                self._check(parameter, operand, at >= ins)
                operands.append(operand)
        return _Call(given, operands, taken.bind(name, self._parameters, operands), stream)

    def _check_new(self, parameter: Declared) -> None:
        if parameter.raw:
            raise TypeError(f"{self.name}: {parameter.text} is raw, and its array has to be given")
        if is_updated(parameter.name, self._operation):
            raise TypeError(
                f"{self.name}: {parameter.name} is made of what it was, and no array is given for "
                "it; pass one as out="
            )

    def _check(self, parameter: Declared, operand: Operand, is_out: bool) -> None:
        if operand.is_number and (is_out or parameter.raw):
            raise TypeError(f"{self.name}: {parameter.text} takes an array, and was given a number")
        if is_out and operand.on_host and not operand.given.flags.writeable:
            raise ValueError(f"{self.name}: {parameter.text} is written, and its array read-only")

    def _shape(self, call: _Call, size: int | None) -> tuple[int, ...]:
        ins = len(self._ins)
        walked = [
            operand.shape
            for parameter, operand in zip(self._parameters, call.operands, strict=True)
            if operand is not None and not parameter.raw and not operand.is_number
        ]
        numbers = any(operand is not None and operand.is_number for operand in call.operands)
        if size is not None:
            if walked:
                raise ValueError(
                    f"{self.name}: size is for calls whose arrays are all raw; here it follows "
                    "from those that are not"
                )
            with blamed_on(self.name):
                return (checked_count("size", size, 0, "a number of elements"),)
        if not walked and not numbers:
            given = any(operand is not None for operand in call.operands)
            why = "all arrays are raw" if given else "no array is given"
            raise ValueError(f"{self.name}: {why}, so size= has to say how often it runs")
        ins_alone = [
            operand.shape
            for parameter, operand in zip(self._ins, call.operands, strict=False)
            if operand is not None and not parameter.raw and not operand.is_number
        ]
        shape = taken.broadcast(self.name, ins_alone or walked)
        for parameter, operand in zip(self._outs, call.operands[ins:], strict=True):
            if operand is not None and not parameter.raw and operand.shape != shape:
                raise ValueError(
                    f"{self.name}: {parameter.text} has shape {operand.shape}, and the result has "
                    f"{shape}"
                )
        return shape

    def _results(self, call: _Call, shape: tuple[int, ...]) -> list[Any]:
        """The arrays that are written, those that were not given made."""
        ins = len(self._ins)
        on_host = all(operand is None or operand.on_host for operand in call.operands)
        results = []
        for at, parameter in enumerate(self._outs, ins):
            operand = call.operands[at]
            if operand is not None:
                results.append(call.given[at])
                continue
            made = self._new(parameter, call.types, shape, on_host, call.stream)
            call.operands[at] = taken.take(self.name, parameter, made)._replace(is_number=False)
            results.append(made)
        return results

    # arrays on the host -------------------------------------------------------------------------

    def _is_mapped(self, call: _Call) -> bool:
        """Whether an element is made of those of other arrays and of nothing else, and all of them
        are on the host: they are taken as they lie, large ones in chunks."""
        walked = [one for one in call.operands if one is not None and not one.is_number]
        return self._is_by_itself and bool(walked) and all(one.on_host for one in walked)

    def _mapped(self, call: _Call, shape: tuple[int, ...]) -> tuple[_Made, Any]:
        *ins, out = call.operands
        written = self._outs[0]
        if out is None and written.letter and written.letter not in call.types:
            self._new(written, call.types, shape, True, call.stream)  # which says so
        read = [one for one in ins if one is not None]
        stand_in = Operand(None, None, shape, None, 0, False, True)
        made = self._kernels(call.types, [*read, stand_in])
        arguments = tuple(
            taken.number_of(self.name, parameter, operand, dtype)
            if operand.is_number
            else operand.given
            for parameter, operand, dtype in zip(self._ins, read, made.dtypes, strict=False)
        )
        result = made.wide.map(
            made.a_block,
            templates.THREADS,
            shape,
            made.dtypes[-1],
            arguments,
            out=None if out is None else out.given,
            stream=call.stream,
        )
        return made, result

    # what is run --------------------------------------------------------------------------------

    def _run(self, call: _Call, shape: tuple[int, ...], count: int) -> _Made:
        operands: list[Operand] = call.operands  # type: ignore[assignment]
        made = self._kernels(call.types, operands)
        ins = len(self._ins)
        temporaries = self._apart(call, operands, made)
        arguments: list[Any] = []
        plain = True
        for at, (parameter, operand) in enumerate(zip(self._parameters, operands, strict=True)):
            if operand.is_number:
                arguments.append(taken.number_of(self.name, parameter, operand, made.dtypes[at]))
                continue
            if parameter.raw:
                arguments += (self._raw(operand, at >= ins, call.stream), prod(operand.shape))
                continue
            arguments.append(self._directed(operand, at >= ins))
            plain = (
                plain
                and operand.strides is None
                and operand.shape == shape
                and operand.address % 16 == 0
            )
        if plain:
            blocks = -(-count // made.a_block)
            made.wide(blocks, templates.THREADS, *arguments, count, stream=call.stream)
        else:
            self._run_strided(call, operands, made, shape, count)
        for target, temporary in temporaries:
            target[...] = temporary
        return made

    def _directed(self, operand: Operand, is_out: bool) -> Any:
        """A result on the host need not go to the device where all of it is written."""
        if not operand.on_host:
            return operand.given
        array = operand.given
        return self._written(array) if is_out else np.ascontiguousarray(array, operand.dtype)

    def _written(self, array: Any) -> Any:
        return _core.InOut(array) if self._keeps else _core.Out(array)

    def _raw(self, operand: Operand, is_out: bool, stream: Any) -> Any:
        if operand.on_host:
            if is_out:
                return _core.InOut(operand.given)
            return np.ascontiguousarray(operand.given, operand.dtype)
        if operand.strides is None:
            return operand.given
        if is_out:
            raise ValueError(f"{self.name}: a raw array that is written has to be contiguous")
        return _core.to_device(operand.given, stream=stream)

    def _run_strided(
        self, call: _Call, operands: list[Operand], made: _Made, shape: tuple[int, ...], count: int
    ) -> None:
        ins = len(self._ins)
        arguments: list[Any] = []
        steps: list[tuple[int, ...]] = []
        sizes: list[int] = []
        addresses: list[int] = []
        result = 0
        for at, (parameter, operand) in enumerate(zip(self._parameters, operands, strict=True)):
            size = made.dtypes[at].itemsize
            if operand.is_number:
                arguments.append(taken.number_of(self.name, parameter, operand, made.dtypes[at]))
            elif parameter.raw:
                arguments += (self._raw(operand, at >= ins, call.stream), prod(operand.shape))
            else:
                on_host = operand.on_host
                arguments.append(
                    self._directed(operand, at >= ins) if on_host else taken.first_element(operand)
                )
                steps.append(tuple(taken.strides_in(operand, shape, size)))
                sizes.append(size)
                addresses.append(operand.address % templates.VECTOR_BYTES)
                result = len(sizes) - 1 if at == ins else result
        if self._is_numbered:
            steps.append(taken.contiguous_strides(shape, 1))
        kernel, width = (made.strided, made.width) if count < _FEW else (made.far, 1)
        first = None if self._is_numbered else result
        where = tuple(sizes), tuple(addresses)
        route = layout.route(self.name, shape, tuple(steps), *where, width, first)
        if route.is_run:
            blocks = -(-count // made.a_block)
            made.wide(blocks, templates.THREADS, *arguments, count, stream=call.stream)
            return
        blocks = -(-route.vectors // (templates.THREADS * templates.VECTORS))
        arguments += [route.packed, route.vectors, count]
        kernel(blocks, templates.THREADS, *arguments, stream=call.stream)

    def _apart(self, call: _Call, operands: list[Operand], made: _Made) -> list[tuple[Any, Any]]:
        """Results that lie otherwise than an operand whose memory they share, and those on the host
        that are not contiguous: a temporary for each, to be copied from at the end."""
        pairs = []
        ins = len(self._ins)
        for at in range(ins, len(operands)):
            target = operands[at]
            if target.on_host:
                array = target.given
                if (
                    array.flags.c_contiguous
                    and array.dtype.isnative
                    and not self._shares(array, operands[:at])
                ):
                    continue
                temporary: Any = np.ascontiguousarray(array, target.dtype)
                temporary = temporary.copy() if temporary is array else temporary
            elif self._collides(target, operands, at, made):
                temporary = _core.to_device(target.given, stream=call.stream)
            else:
                continue
            pairs.append((target.given, temporary))
            operands[at] = taken.take(self.name, self._parameters[at], temporary)
        return pairs

    def _shares(self, array: Any, others: list[Operand]) -> bool:
        """Of two results on the host that share memory one would be lost."""
        results = others[len(self._ins) :]
        return any(other.on_host and np.may_share_memory(array, other.given) for other in results)

    def _collides(self, target: Operand, operands: list[Operand], at: int, made: _Made) -> bool:
        low, high = taken.extent(target, made.dtypes[at].itemsize)
        for number, other in enumerate(operands):
            if number == at or other.is_number or other.on_host or self._parameters[number].raw:
                continue
            same = other[1:5] == target[1:5]
            if same or 0 in other.shape:
                continue
            first, end = taken.extent(other, made.dtypes[number].itemsize)
            if first < high and low < end:
                return True
        return False

    # what is compiled ---------------------------------------------------------------------------

    def _compiled(
        self,
        dtypes: tuple[np.dtype[Any], ...],
        numbers: tuple[bool, ...],
        types: dict[str, np.dtype[Any]],
    ) -> _Made:
        ins = len(self._ins)
        operands = [
            templates.Operand(parameter, dtype, number, at >= ins)
            for at, (parameter, dtype, number) in enumerate(
                zip(self._parameters, dtypes, numbers, strict=True)
            )
        ]
        source = templates.elementwise(self.name, operands, types, self._operation, self._preamble)
        module = compile(source, self._options, name=f"{self.name}.cu")
        return _Made(
            self._kernel(module, "flat", operands),
            self._kernel(module, "strided", operands),
            self._kernel(module, "strided_far", operands),
            dtypes,
            templates.width_of(operands),
        )


def _check_rest(name: str, preamble: str, options: Sequence[str]) -> None:
    """What every function here takes."""
    checked_identifier(name)
    checked_text("preamble", preamble)
    checked_texts("options", options)


@called_as("elementwise")
def elementwise(
    parameters: str,
    operation: str,
    *,
    name: str = "elementwise",
    preamble: str = "",
    options: Sequence[str] = (),
) -> ElementwiseKernel:
    """Make a kernel of what it does with one element of each array::

        saxpy = gpukern.elementwise("float a, float x, float y, float z", "z = a * x + y")
        z = saxpy(2.0, x, y)
        saxpy(2.0, x, y, out=z)

    ``parameters`` are elements as CUDA C++ declares them; those that ``operation`` assigns are
    results. One letter in place of a type, as in ``"T x, T y"``, stands for any dtype. Otherwise as
    ElementwiseKernel, with the results among the parameters, which has more to say.

    float16 and bfloat16 are calculated as CUDA's __half and __nv_bfloat16: rounded after each step
    among themselves, and as floats beside other numbers. The two sides of ``?:`` have to be of one
    type: ``"y = x > 0 ? x : T(0)"``.
    """
    with blamed_on("elementwise"):
        given = declared("parameters", parameters)
        checked_text("operation", operation)
        _check_rest(name, preamble, options)
        outs = [one for one in given if is_assigned(one.name, operation)]
        if not outs:
            names = ", ".join(one.name for one in given) or "none"
            raise ValueError(
                f"operation has to assign a parameter, as in 'z = ...', which is the result, and "
                f"{operation!r} assigns none of {names}"
            )
    ins = [one for one in given if one not in outs]
    return ElementwiseKernel(
        ", ".join(one.text for one in ins),
        ", ".join(one.text for one in outs),
        operation,
        name,
        preamble=preamble,
        options=options,
    )


_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\s*(?:\(|::|\w))")
_WORDS = {"true", "false", "sizeof", "i", "INFINITY", "NAN", "M_PI", "M_E"} | {
    word
    for text in ("int", "unsigned", "float", "double", "bool", "char", "short", "long", "const")
    for word in (text,)
}


@called_as("vectorize")
def vectorize(
    expression: str,
    *,
    result: str = "T",
    name: str = "vectorize",
    preamble: str = "",
    options: Sequence[str] = (),
) -> ElementwiseKernel:
    """Make a kernel of an expression in CUDA C++; its names, in their order, are its arguments::

        length = gpukern.vectorize("sqrt(x * x + y * y)")
        length(x, y)

    All arrays have one dtype, any; that of the result is ``result``, theirs (T) unless it says
    otherwise, as ``"bool"`` for a comparison. Functions, ``M_PI`` and the like are no arguments,
    ``i`` is the number of the element, and ``n``, how many there are, no name for an argument. It
    is called as an ElementwiseKernel is.
    """
    with blamed_on("vectorize"):
        checked_text("expression", expression)
        check_type("result", result)
        _check_rest(name, preamble, options)
        found = _NAME.findall(expression)
        names = list(dict.fromkeys(one for one in found if one not in _WORDS))
        if "n" in names:
            raise ValueError(
                f"expression has n in it, which is the number of elements: {expression!r}; "
                "an argument has to have another name"
            )
        if not names:
            raise ValueError(
                f"expression has to have an argument in it, and {expression!r} has none"
            )
        if re.search(r"(?<![=<>!])=(?!=)", expression):
            raise ValueError(
                f"expression has to be one that assigns nothing, not {expression!r}; "
                "gpukern.elementwise takes statements"
            )
    return ElementwiseKernel(
        ", ".join(f"T {one}" for one in names),
        f"{result} {RESULT}",
        f"{RESULT} = {expression}",
        name,
        preamble=preamble,
        options=options,
    )
