"""Reductions of an expression: ``gpukern.reduction``, and CuPy's way."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np

from gpukern import _core
from gpukern.kernels import layout, reduction_template, templates
from gpukern.kernels import operands as taken
from gpukern.kernels.compiling import compile
from gpukern.kernels.declared import (
    RESULT,
    Declared,
    c_name,
    check_names,
    check_type,
    checked_identifier,
    declared,
    named_dtype,
)
from gpukern.kernels.expression import ExpressionKernel
from gpukern.kernels.operands import Operand
from gpukern.text.calls import blamed_on, called_as, checked_flag, checked_text, checked_texts

_FEW = 1 << 31
_MOST_BLOCKS = 1024  # of a launch that leaves one value each
_STATE_BYTES = reduction_template.STATE_BYTES
_SIDE_BY_SIDE = 32  # results of a block, or vectors of them, where their elements are neighbours
_WARP_VECTORS = 8  # of each lane, that a warp takes of a row at most


class _Made(NamedTuple):
    """The kernels of one signature."""

    flat: Callable[..., None]
    rows: Callable[..., None]
    far: Callable[..., None]
    columns: Callable[..., None]
    finish: Callable[..., None]
    dtypes: tuple[np.dtype[Any], ...]
    width: int
    columns_width: int

    @property
    def a_block(self) -> int:
        """Elements that a block of ``flat`` has under way."""
        return self.width * reduction_template.LOADS * templates.THREADS


class _Way(NamedTuple):
    """How a launch goes: lanes of a row, or columns of a block, stand ``beside`` each other."""

    rows: layout.Rows
    beside: int
    blocks: int
    segments: int
    segment: int


class _Call(NamedTuple):
    """``shape`` is that of the operands, ``kept`` and ``reduced`` are its axes."""

    operands: list[Operand]
    types: dict[str, np.dtype[Any]]
    shape: tuple[int, ...]
    kept: list[int]
    reduced: list[int]
    stream: Any

    @property
    def results(self) -> int:
        return prod(self.shape[axis] for axis in self.kept)

    @property
    def length(self) -> int:
        return prod(self.shape[axis] for axis in self.reduced)


class _Walked(NamedTuple):
    """The arrays of a call as they lie: steps in bytes, sizes of elements, what is left of each
    address beyond the last vector."""

    shape: tuple[int, ...]
    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    addresses: tuple[int, ...]
    is_numbered: bool

    def length(self, axes: tuple[int, ...]) -> int:
        """The product of the lengths of those axes."""
        return prod(self.shape[axis] for axis in axes)

    def merged(self, who: str, axes: tuple[int, ...], is_ordered: bool) -> layout.Axes:
        """Those axes, in the order of the first array's steps where that is of no account."""
        shape = [self.shape[axis] for axis in axes]
        steps = [[row[axis] for axis in axes] for row in self.steps]
        if not is_ordered:
            shape, steps = layout.in_order_of(steps[0], shape, steps)
        return layout.merged(who, shape, steps)


class _Launch(NamedTuple):
    """Of which kernel, on which grid, and the arguments between the arrays and the partial ones."""

    kernel: str
    grid: tuple[int, int]
    arguments: tuple[Any, ...]


class ReductionKernel(ExpressionKernel[_Made]):
    """A reduction made of what it does with elements::

        norm = gpukern.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
        norm(x, axis=1)

    As CuPy's class of that name: ``map_expr`` is made of each element, ``reduce_expr`` joins two
    such values, ``a`` and ``b``, in an order that depends on shapes and strides alone,
    ``post_map_expr`` assigns the result of what ``a`` came to, and ``identity`` stands for no
    element; where it is None, a reduction of none is an error. ``reduce_type`` is the type of
    values, that of the first result unless it says otherwise. Parameters are declared as an
    ElementwiseKernel's; so are ``preamble`` and ``options``, and ``reduce_dims`` is of no effect.

    Called with arrays, which are broadcast, and ``axis`` (None: all of them), ``keepdims``, ``out``
    and ``stream``. The result is on the device where an argument is, else NumPy's, a scalar where
    it has no axes. Raises TypeError for dtypes and counts, ValueError for shapes and axes,
    CompileError for expressions that do not compile.
    """

    _TAKES = ("axis", "keepdims")

    @called_as("ReductionKernel")
    def __init__(  # noqa: PLR0913, PLR0917 (CuPy's arguments)
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: Any,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: Sequence[str] = (),
    ) -> None:
        with blamed_on("ReductionKernel"):
            self.name = checked_identifier(name)
            self._ins = declared("in_params", in_params)
            self._outs = declared("out_params", out_params)
            check_names("in_params with out_params", self._ins + self._outs)
            for argument, declares in (("in_params", self._ins), ("out_params", self._outs)):
                if not declares:
                    raise ValueError(f"{argument} has to declare a parameter")
            if any(one.raw for one in self._outs):
                raise ValueError("out_params has to declare elements, of which none is raw")
            self._texts = (
                checked_text("map_expr", map_expr),
                checked_text("reduce_expr", reduce_expr),
                checked_text("post_map_expr", post_map_expr),
                _checked_identity(identity),
            )
            if reduce_type is not None:
                checked_text("reduce_type", reduce_type)
            self._reduce_type = reduce_type
            checked_flag("reduce_dims", reduce_dims)
            self._preamble = checked_text("preamble", preamble)
            self._options = checked_texts("options", options)
        self._made: dict[tuple[Any, ...], _Made] = {}
        self._is_numbered = templates.is_numbered(self._texts[0], self._preamble)
        self.__doc__ = f"{name}({self.signature})"

    def __repr__(self) -> str:
        return f"<reduction kernel {self.name}({self.signature})>"

    def __call__(
        self,
        *arguments: Any,
        out: Any = None,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        stream: Any = None,
    ) -> Any:
        """Run it: the results, as the class says."""
        given = list(arguments)
        count, results = len(self._ins), len(self._outs)
        outs: list[Any] = given[count:]
        if out is not None:
            outs += out if isinstance(out, tuple) else (out,)
        if len(given) < count or len(outs) not in (0, results):
            raise TypeError(
                f"{self.name}: takes {count} argument{'s' * (count != 1)}, ({self.signature}), and "
                f"may be given {results} for results, and was given {len(given)}"
            )
        call = self._call(given[:count], outs, axis, stream)
        shape = tuple(
            1 if at in call.reduced else length
            for at, length in enumerate(call.shape)
            if keepdims or at in call.kept
        )
        on_host = all(operand.on_host for operand in call.operands)
        if call.length == 0 and self._texts[3] is None and call.results:
            raise ValueError(
                f"{self.name}: there is no element to reduce, and no identity that stands for none"
            )
        made_here = not outs
        outs = outs or [
            self._new(parameter, call.types, shape, on_host, stream) for parameter in self._outs
        ]
        targets = [
            self._target(parameter, value, shape, stream)
            for parameter, value in zip(self._outs, outs, strict=True)
        ]
        self._run(call, [_core.Out(one) if isinstance(one, np.ndarray) else one for one in targets])
        for value, target in zip(outs, targets, strict=True):
            if target is not value:
                value[...] = target
        if made_here and on_host and not shape:
            outs = [one[()] for one in outs]
        return outs[0] if len(outs) == 1 else tuple(outs)

    # what is given ------------------------------------------------------------------------------

    def _call(self, given: list[Any], outs: list[Any], axis: Any, stream: Any) -> _Call:
        name = self.name
        operands = [
            taken.take(name, parameter, value)
            for parameter, value in zip(self._ins, given, strict=True)
        ]
        for parameter, operand in zip(self._ins, operands, strict=True):
            if parameter.raw and operand.is_number:
                raise TypeError(f"{name}: {parameter.text} takes an array, and was given a number")
        targets: list[Operand | None] = [None] * len(self._outs)
        for at, (parameter, value) in enumerate(zip(self._outs, outs, strict=False)):
            targets[at] = taken.take(name, parameter, value)
        types = taken.bind(name, self._ins + self._outs, [*operands, *targets])
        shape = taken.broadcast(
            name,
            [
                operand.shape
                for parameter, operand in zip(self._ins, operands, strict=True)
                if not parameter.raw and not operand.is_number
            ],
        )
        reduced = self._axes(axis, len(shape))
        kept = [at for at in range(len(shape)) if at not in reduced]
        return _Call(operands, types, shape, kept, reduced, stream)

    def _axes(self, axis: Any, ndim: int) -> list[int]:
        if axis is None:
            return list(range(ndim))
        try:
            return sorted(np.lib.array_utils.normalize_axis_tuple(axis, ndim))
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            is_twice = kind is ValueError and not isinstance(error, np.exceptions.AxisError)
            what = "names an axis twice" if is_twice else f"is none of an array of {ndim} axes"
            raise kind(f"{self.name}: axis {axis!r} {what}") from None

    def _target(self, parameter: Declared, value: Any, shape: tuple[int, ...], stream: Any) -> Any:
        """What the kernel writes: the result, or where that lies otherwise an array for it."""
        operand = taken.take(self.name, parameter, value)
        if operand.shape != shape or taken.is_number(value):
            raise ValueError(
                f"{self.name}: {parameter.text} has shape {operand.shape}, and the result has "
                f"{shape}"
            )
        if not operand.on_host:
            if operand.strides is None:
                return value
            if not isinstance(value, _core.DeviceArray):
                raise ValueError(
                    f"{self.name}: {parameter.text} is another library's array that is not "
                    "contiguous, and a result has to be; pass one that is"
                )
            return _core.empty(shape, operand.dtype, stream=stream)
        if not value.flags.writeable:
            raise ValueError(f"{self.name}: {parameter.text} is written, and is read-only")
        is_plain = value.flags.c_contiguous and value.dtype.isnative
        return value if is_plain else np.empty(shape, operand.dtype)

    # what is run --------------------------------------------------------------------------------

    def _run(self, call: _Call, targets: list[Any]) -> None:
        if call.results == 0:
            return
        made = self._kernels(call.types, call.operands)
        segments, partials = 0, None
        if call.length:
            run = self._run_flat if self._is_plain(call) else self._run_strided
            segments, partials = run(call, made, targets)
            if partials is None:
                return
        across = 1 if call.results < _SIDE_BY_SIDE else _SIDE_BY_SIDE
        made.finish(
            -(-call.results // across),
            templates.THREADS,
            partials,
            *targets,
            across,
            call.results,
            segments,
            call.results * call.length,
            stream=call.stream,
        )

    def _is_plain(self, call: _Call) -> bool:
        return not call.kept and all(
            operand.is_number
            or parameter.raw
            or (
                operand.shape == call.shape
                and operand.strides is None
                and operand.address % 16 == 0
            )
            for parameter, operand in zip(self._ins, call.operands, strict=True)
        )

    def _arguments(self, call: _Call, made: _Made, strided: bool) -> list[Any]:
        arguments: list[Any] = []
        for parameter, operand, dtype in zip(self._ins, call.operands, made.dtypes, strict=False):
            if operand.is_number:
                arguments.append(taken.number_of(self.name, parameter, operand, dtype))
            elif operand.on_host:
                arguments.append(np.ascontiguousarray(operand.given, operand.dtype))
            elif parameter.raw and operand.strides is not None:
                arguments.append(_core.to_device(operand.given, stream=call.stream))
            else:
                arguments.append(taken.first_element(operand) if strided else operand.given)
            if parameter.raw:
                arguments.append(prod(operand.shape))
        return arguments

    def _parts(self, call: _Call, segments: int, targets: list[Any]) -> tuple[list[Any], Any]:
        """What a kernel of so many segments writes: the results, or a value for each segment."""
        if segments == 1:
            return targets, None
        nbytes = segments * call.results * _STATE_BYTES
        return [None] * len(targets), _core.empty(nbytes, "uint8", stream=call.stream)

    def _run_flat(self, call: _Call, made: _Made, targets: list[Any]) -> tuple[int, Any]:
        blocks = min(-(-call.length // made.a_block), _MOST_BLOCKS)
        arguments = self._arguments(call, made, strided=False)
        outs, partials = self._parts(call, blocks, targets)
        threads = templates.THREADS
        made.flat(blocks, threads, *arguments, *outs, partials, call.length, stream=call.stream)
        return blocks, partials

    def _run_strided(self, call: _Call, made: _Made, targets: list[Any]) -> tuple[int, Any]:
        walked = [
            (dtype.itemsize, operand.address % templates.VECTOR_BYTES, operand)
            for parameter, operand, dtype in zip(
                self._ins, call.operands, made.dtypes, strict=False
            )
            if not parameter.raw and not operand.is_number
        ]
        steps = [tuple(taken.strides_in(one, call.shape, size)) for size, _, one in walked]
        if self._is_numbered or not steps:
            steps.append(taken.contiguous_strides(call.shape, 1))
        launch = _launch_of(
            self.name,
            _Walked(
                call.shape,
                tuple(call.kept),
                tuple(call.reduced),
                tuple(steps),
                tuple(size for size, *_ in walked),
                tuple(address for _, address, _ in walked),
                self._is_numbered,
            ),
            made.width,
            made.columns_width,
        )
        outs, partials = self._parts(call, launch.grid[1], targets)
        kernel = {"rows": made.rows, "columns": made.columns, "far": made.far}[launch.kernel]
        kernel(
            launch.grid,
            templates.THREADS,
            *self._arguments(call, made, strided=True),
            *outs,
            *launch.arguments,
            partials,
            call.results * call.length,
            stream=call.stream,
        )
        return launch.grid[1], partials

    # what is compiled ---------------------------------------------------------------------------

    def _compiled(
        self,
        dtypes: tuple[np.dtype[Any], ...],
        numbers: tuple[bool, ...],
        types: dict[str, np.dtype[Any]],
    ) -> _Made:
        count = len(self._ins)
        ins = [
            templates.Operand(parameter, dtype, number, False)
            for parameter, dtype, number in zip(self._ins, dtypes, numbers, strict=False)
        ]
        outs = [
            templates.Operand(parameter, dtype, False, True)
            for parameter, dtype in zip(self._outs, dtypes[count:], strict=True)
        ]
        named = named_dtype(self._reduce_type) if self._reduce_type else dtypes[count]
        kind = c_name(named) if named is not None else str(self._reduce_type)
        source = reduction_template.reduction(
            self.name, ins, outs, types, self._texts, kind, self._preamble
        )
        module = compile(source, self._options, name=f"{self.name}.cu")
        return _Made(
            self._kernel(module, "flat", [*ins, *outs]),
            self._kernel(module, "rows", [*ins, *outs]),
            self._kernel(module, "far", [*ins, *outs]),
            self._kernel(module, "columns", [*ins, *outs]),
            self._kernel(module, "finish", [*ins, *outs]),
            dtypes,
            templates.width_of(ins),
            reduction_template.width_of(ins),
        )


@lru_cache(1024)
def _launch_of(who: str, walked: _Walked, width: int, columns_width: int) -> _Launch:
    """Along rows, or down columns where results are nearer to each other than what is reduced."""
    kept = walked.merged(who, walked.kept, is_ordered=True)
    reduced = walked.merged(who, walked.reduced, walked.is_numbered)
    results, length = walked.length(walked.kept), walked.length(walked.reduced)
    is_far = max(results, length) >= _FEW
    if not is_far and _innermost(kept) < _innermost(reduced):
        rows = layout.rows(kept, walked.sizes, walked.addresses, columns_width, reduced)
        way = _columns(rows, length)
        numbers = (way.beside, rows.vectors, length, way.segment, results)
        layouts = rows.packed(), reduced.packed()
        return _Launch("columns", (way.blocks, way.segments), (*layouts, *numbers))
    width = 1 if is_far else width
    rows = layout.rows(reduced, walked.sizes, walked.addresses, width, kept)
    way = _rows(rows, results)
    arguments = (kept.packed(), rows.packed(), way.beside, results, rows.vectors, way.segment)
    return _Launch("far" if is_far else "rows", (way.blocks, way.segments), arguments)


def _rows(rows: layout.Rows, results: int) -> _Way:
    """A group of lanes a row with a vector or two for each, a warp where they have some more, and a
    block, or several, where they have many."""
    vectors, warp = rows.vectors, reduction_template.WARP
    if vectors <= _WARP_VECTORS * warp:
        lanes = min(_power_from(-(-vectors // 2)), warp)
        return _Way(rows, lanes, -(-results * lanes // templates.THREADS), 1, vectors)
    a_block = templates.THREADS * reduction_template.LOADS
    most = max(1, min(_MOST_BLOCKS // results, -(-vectors // a_block)))
    segment = -(-vectors // most)
    return _Way(rows, templates.THREADS, results, -(-vectors // segment), segment)


def _columns(rows: layout.Rows, length: int) -> _Way:
    """As many columns a block as leave a thread the rows that it loads at once."""
    across, loads = templates.THREADS, reduction_template.LOADS
    while across > _SIDE_BY_SIDE and templates.THREADS // across * loads < length:
        across //= 2
    across = min(across, _power_from(rows.vectors))
    blocks = -(-rows.vectors // across)
    below = templates.THREADS // across
    most = max(1, min(_MOST_BLOCKS // blocks, -(-length // (below * 2 * loads))))
    segment = -(-length // most)
    return _Way(rows, across, blocks, -(-length // segment), segment)


def _power_from(count: int) -> int:
    """The least power of two that is no less."""
    return 1 << (count - 1).bit_length()


def _innermost(axes: layout.Axes) -> float:
    """The step of the first array along the last axis, where there is one."""
    step = abs(axes.steps[0][-1]) if axes.lengths else 0
    return step or inf


def _checked_identity(identity: Any) -> str | None:
    """As the source has it."""
    if identity is None or isinstance(identity, str):
        return identity
    if type(identity) is bool:
        return str(identity).lower()
    if type(identity) not in (int, float):
        raise TypeError(f"identity has to be a number, a text or None, not {identity!r}")
    return repr(identity)


# What stands for no element, where that is not said: other reductions than the sum have none then.
OF_THE_SUM = "0 for a + b"


@called_as("reduction")
def reduction(  # noqa: PLR0913 (what a reduction is made of)
    parameters: str,
    map: str,
    reduce: str = "a + b",
    identity: Any = OF_THE_SUM,
    *,
    post: str = "a",
    result: str | None = None,
    name: str = "reduction",
    preamble: str = "",
    options: Sequence[str] = (),
) -> ReductionKernel:
    """Make a reduction of what it does with elements::

        distance = gpukern.reduction("float x, float y", "(x - y) * (x - y)", post="sqrt(a)")
        distance(x, y)
        largest = gpukern.reduction("T x", "x", "max(a, b)", identity=None)
        largest(x, axis=0)

    ``map`` is made of each element, ``reduce`` joins two of those values, ``a`` and ``b``, in an
    order that depends on shapes and strides alone; ``identity`` stands for no element, unless it is
    said 0 of the sum, and nothing of other reductions (None: a reduction of none is an error).
    ``post`` is made of what ``a`` came to. ``result`` is the type of values and of the result; that
    of the first parameter, unless it says otherwise. It is called as a ReductionKernel is.
    """
    with blamed_on("reduction"):
        given = declared("parameters", parameters)
        if not given:
            raise ValueError("parameters has to declare one that is read")
        checked_identifier(name)
        for what, text in (("map", map), ("reduce", reduce), ("post", post)):
            checked_text(what, text)
        if isinstance(identity, str) and identity == OF_THE_SUM:
            identity = "0" if reduce.replace(" ", "") in ("a+b", "b+a") else None
        _checked_identity(identity)
        if result is not None:
            check_type("result", result)
        checked_text("preamble", preamble)
        checked_texts("options", options)
    kind = result or given[0].letter or c_name(given[0].dtype)  # type: ignore[arg-type]
    return ReductionKernel(
        parameters,
        f"{kind} {RESULT}",
        map,
        reduce,
        f"{RESULT} = {post}",
        identity,
        name,
        preamble=preamble,
        options=options,
    )
