"""Works on arrays of any shape, drawn by chance: what `every_shape.py` times.

Lengths are log-uniform and ragged, 1 to 6 axes, 16 bytes to so many; half of the arrays are views
of larger ones, that begin anywhere, step over elements or have their axes in another order.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from gpukern import _core

DTYPES = ("float32", "float32", "float16", "bfloat16", "float64", "int32", "uint8")
_FLOATS = {"float32", "float16", "bfloat16", "float64"}
# Works, and the group that a bar is asked of.
KINDS = {
    "sum": "reductions",
    "mean": "reductions",
    "max": "reductions",
    "argmax": "reductions",
    "transpose": "transposes",
    "add": "elementwise",
    "copy": "elementwise",
}

# Works that are not drawn: an array as one of another dtype.
CONVERSIONS = {"to float32": "float32", "to float16": "float16"}

SECTOR = 32  # bytes that memory moves at a time

Call = Callable[[], object]


def group_of(kind: str) -> str:
    """What works of a kind are counted with."""
    return KINDS.get(kind, "conversions")


def itemsize(dtype: str) -> int:
    """Bytes of an element."""
    return _core.empty(0, dtype).dtype.itemsize


@dataclass(frozen=True)
class Draw:
    """A work on an array: the shape of what holds it, how it is cut out of that, and the axes."""

    kind: str
    dtype: str
    held: tuple[int, ...]
    cut: tuple[slice, ...]
    order: tuple[int, ...]
    axes: tuple[int, ...]  # that are reduced, broadcast in the second operand, or their new order

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array itself."""
        cut = [len(range(n)[one]) for n, one in zip(self.held, self.cut, strict=True)]
        return tuple(cut[axis] for axis in self.order)

    @property
    def bytes_moved(self) -> int:
        """What has to be read and written: of an array whole sectors, with what is stepped over."""
        each, count = itemsize(self.dtype), math.prod(self.shape)
        kept = [n for axis, n in enumerate(self.shape) if axis not in self.axes]
        if group_of(self.kind) == "reductions":
            widened = self.kind == "argmax" or (self.kind == "sum" and self.dtype not in _FLOATS)
            return self._bytes_read(each) + (8 if widened else each) * math.prod(kept)
        more = math.prod(kept) if self.kind == "add" else 0
        written = itemsize(CONVERSIONS.get(self.kind, self.dtype))
        return self._bytes_read(each) + each * more + written * count

    def _bytes_read(self, each: int) -> int:
        """Of the array, whose runs lie a pitch apart along the nearest axis that is cut."""
        count = math.prod(self.shape)
        for axis in reversed(range(len(self.held))):  # what is cut farther out leaves long runs
            held = self.held[axis]
            taken = range(held)[self.cut[axis]]
            if len(taken) < held and count > 0:
                near = each * math.prod(self.held[axis + 1 :])
                run = near * (1 if taken.step > 1 else len(taken))
                pitch = near * (taken.step if taken.step > 1 else held)
                return _bytes_of_sectors(near * taken.start, run, pitch, each * count // run)
        return each * count

    def __str__(self) -> str:
        text = f"{self.kind} {'x'.join(map(str, self.shape))} {self.dtype}"
        names = {
            "transpose": "to",
            "add": "row along",
            "copy": "",
            **dict.fromkeys(CONVERSIONS, ""),
        }
        named = names.get(self.kind, "axes")
        text += f" {named} {','.join(map(str, self.axes))}" if named else ""
        whole = self.shape == tuple(self.held[axis] for axis in self.order)
        text += "" if whole else " cut " + ",".join(_cut_text(one) for one in self.cut)
        return text if self.order == tuple(range(len(self.order))) else f"{text} turned"


def _bytes_of_sectors(begin: int, run: int, pitch: int, runs: int) -> int:
    """That runs of bytes, so many, have a part of: a sector between two is one."""
    if runs == 1:
        return run
    repeated = min(runs, SECTOR // math.gcd(pitch, SECTOR))  # runs that lie at other places of one
    sectors, before = 0, -1
    for number in range(repeated):
        first = (begin + number * pitch) // SECTOR
        last = (begin + number * pitch + run - 1) // SECTOR
        sectors += last - max(first, before + 1) + 1
        before = last
    if repeated < runs and before == (begin + repeated * pitch) // SECTOR:
        sectors -= 1  # the next ones begin where the last one ends
    return sectors * SECTOR * runs // repeated


def _cut_text(one: slice) -> str:
    start, step = one.start or "", f":{one.step}" if one.step else ""
    return f"{start}:{'' if one.stop is None else one.stop}{step}"


def draw(chance: random.Random, most: int) -> Draw:
    """A work on an array of up to ``most`` bytes."""
    kind, dtype = chance.choice(list(KINDS)), chance.choice(DTYPES)
    if kind == "mean" and dtype not in _FLOATS:
        dtype = "float32"
    each = itemsize(dtype)
    count = math.exp(chance.uniform(math.log(16 / each), math.log(most / each)))
    ndim = chance.randint(2 if kind == "transpose" else 1, 6)
    shape = _lengths(chance, count, ndim)
    cut, held, order = [slice(None)] * ndim, list(shape), list(range(ndim))
    if chance.random() < 0.5:
        cut, held, order = _view(chance, shape)
    return Draw(kind, dtype, tuple(held), tuple(cut), tuple(order), _axes(chance, kind, ndim))


def _lengths(chance: random.Random, count: float, ndim: int) -> tuple[int, ...]:
    """About so many elements; now and then lengths that others like."""
    shares = [chance.expovariate(1.0) for _ in range(ndim)]
    lengths = [max(1, round(count ** (share / sum(shares)))) for share in shares]
    if chance.random() < 0.3:
        lengths = [n if n < 32 else n // 32 * 32 for n in lengths]
    return tuple(lengths)


def _view(
    chance: random.Random, shape: tuple[int, ...]
) -> tuple[list[slice], list[int], list[int]]:
    cut, held, order = [slice(None)] * len(shape), list(shape), list(range(len(shape)))
    axis = chance.randrange(len(shape))
    way = chance.choice(("begins", "is shorter", "steps", "turned"))
    if way == "turned":
        chance.shuffle(order)
    elif way == "steps":
        held[axis], cut[axis] = 2 * shape[axis], slice(None, None, 2)
    else:
        start = chance.randint(1, 3) if way == "begins" else 0
        held[axis] += start + chance.randint(1, 3)
        cut[axis] = slice(start, start + shape[axis])
    return cut, held, order


def _axes(chance: random.Random, kind: str, ndim: int) -> tuple[int, ...]:
    if kind == "copy":
        return ()
    if kind == "transpose":
        return tuple(chance.sample(range(ndim), ndim))
    if kind == "argmax":
        return (chance.randrange(ndim),)
    least = 0 if kind == "add" else 1
    return tuple(sorted(chance.sample(range(ndim), chance.randint(least, ndim))))


# --- the works, by library --------------------------------------------------------------------


@dataclass
class Works:
    """The calls of a draw by library, each into a result of its own, which are there."""

    calls: dict[str, Call] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)


def whole(kind: str, dtype: str, held: Sequence[int], axes: Sequence[int] = ()) -> Draw:
    """A work on all of an array, in its own order."""
    every = (slice(None),) * len(held)
    return Draw(kind, dtype, tuple(held), every, tuple(range(len(held))), tuple(axes))


def filled(shape: tuple[int, ...], dtype: str, stream: Any = None) -> Any:
    """A device array of random numbers, small enough for sums of whole ones; of that stream."""
    made = _core.empty(shape, dtype, stream=stream)
    if _core.backend() == "sim":
        rng = np.random.default_rng(7)
        values = rng.standard_normal(shape) if dtype in _FLOATS else rng.integers(0, 100, shape)
        made[...] = values.astype(made.dtype)
        return made
    import torch

    tensor = torch.from_dlpack(made)
    _ = tensor.normal_() if dtype in _FLOATS else tensor.random_(0, 100)
    return made


def operands(one: Draw, stream: Any = None) -> tuple[Any, ...]:
    """The array as it lies, and for an addition the other one; calls on ``stream`` do not wait."""
    array = filled(one.held, one.dtype, stream)[one.cut].transpose(one.order)
    if one.kind != "add":
        return (array,)
    row = tuple(1 if axis in one.axes else n for axis, n in enumerate(one.shape))
    return array, filled(row, one.dtype, stream)


def works(one: Draw, arrays: tuple[Any, ...], compiled: bool, stream: Any = None) -> Works:
    """Everybody who is here; ``compiled`` has PyTorch's compiler too, which takes seconds.

    Our calls are on ``stream``, the others' on the one that their library has as its current one.
    """
    made = Works()
    made.results["gpukern"] = _ours(one, arrays, stream)
    made.calls["gpukern"] = partial(_run_ours, one, arrays, made.results["gpukern"], stream)
    if _core.backend() != "sim":
        _add_torch(made, one, arrays, compiled)
        if one.dtype != "bfloat16":  # CuPy has none
            _add_cupy(made, one, arrays)
    return made


def _ours(one: Draw, arrays: tuple[Any, ...], stream: Any) -> Any:
    """A result to write into."""
    if group_of(one.kind) == "reductions":
        return getattr(_core, one.kind)(arrays[0], _axis(one), stream=stream)
    if one.kind in CONVERSIONS:
        return arrays[0].astype(CONVERSIONS[one.kind], stream=stream)
    shape = tuple(one.shape[axis] for axis in one.axes) if one.kind == "transpose" else one.shape
    return _core.empty(shape, one.dtype, stream=stream)


def _axis(one: Draw) -> Any:
    return one.axes[0] if one.kind == "argmax" else one.axes


def _run_ours(one: Draw, arrays: tuple[Any, ...], out: Any, stream: Any) -> object:
    if group_of(one.kind) == "reductions":
        return getattr(_core, one.kind)(arrays[0], _axis(one), out=out, stream=stream)
    if one.kind in CONVERSIONS:  # it has no `out`
        return _ours(one, arrays, stream)
    if one.kind == "transpose":
        return _core.transpose(arrays[0], one.axes, out=out, stream=stream)
    if one.kind == "add":
        return _core.add(*arrays, out=out, stream=stream)
    if stream is not None:  # an assignment has none to name
        return _core.transpose(arrays[0], range(len(one.shape)), out=out, stream=stream)
    out[...] = arrays[0]
    return out


def _add_torch(made: Works, one: Draw, arrays: tuple[Any, ...], compiled: bool) -> None:
    import torch

    tensors = [torch.from_dlpack(array) for array in arrays]
    plain = _of_torch(one)
    made.results["PyTorch"] = out = plain(*tensors).contiguous()
    into: Mapping[str, Callable[..., object]] = {
        "sum": partial(torch.sum, dim=one.axes, dtype=out.dtype, out=out),
        "mean": partial(torch.mean, dim=one.axes, out=out),
        "max": partial(torch.amax, dim=one.axes, out=out),
        "argmax": partial(torch.argmax, dim=one.axes[0] if one.axes else None, out=out),
        "add": partial(torch.add, out=out),
        "copy": out.copy_,
        "transpose": lambda x: out.copy_(x.permute(one.axes)),
        **dict.fromkeys(CONVERSIONS, out.copy_),
    }
    made.calls["PyTorch"] = partial(into[one.kind], *tensors)
    if compiled:
        torch.compiler.reset()
        fused = torch.compile(plain, dynamic=False)
        made.results["torch.compile"] = fused(*tensors)
        made.calls["torch.compile"] = partial(fused, *tensors)


def _of_torch(one: Draw) -> Callable[..., Any]:
    import torch

    return {
        "sum": lambda x: torch.sum(x, one.axes),
        "mean": lambda x: torch.mean(x, one.axes),
        "max": lambda x: torch.amax(x, one.axes),
        "argmax": lambda x: torch.argmax(x, one.axes[0]),
        "add": torch.add,
        "copy": lambda x: x.clone(memory_format=torch.contiguous_format),
        "transpose": lambda x: x.permute(one.axes).clone(memory_format=torch.contiguous_format),
        **{kind: partial(_as_torch, getattr(torch, dtype)) for kind, dtype in CONVERSIONS.items()},
    }[one.kind]


def _as_torch(dtype: Any, x: Any) -> Any:
    return x.to(dtype).contiguous()


def _add_cupy(made: Works, one: Draw, arrays: tuple[Any, ...]) -> None:
    import cupy

    lent = [cupy.from_dlpack(array) for array in arrays]
    of_cupy: Mapping[str, Callable[..., Any]] = {
        "sum": partial(cupy.sum, axis=one.axes),
        "mean": partial(cupy.mean, axis=one.axes),
        "max": partial(cupy.amax, axis=one.axes),
        "argmax": partial(cupy.argmax, axis=one.axes[0] if one.axes else None),
        "add": cupy.add,
    }
    if one.kind in of_cupy:
        made.results["CuPy"] = out = of_cupy[one.kind](*lent)
        made.calls["CuPy"] = partial(of_cupy[one.kind], *lent, out=out)
        return
    source = lent[0].transpose(one.axes) if one.kind == "transpose" else lent[0]
    dtype = CONVERSIONS.get(one.kind, one.dtype)
    made.results["CuPy"] = out = cupy.empty(source.shape, dtype)
    made.calls["CuPy"] = partial(cupy.copyto, out, source, "unsafe")
    made.calls["CuPy"]()


# --- who is right -----------------------------------------------------------------------------


def fault(one: Draw, arrays: tuple[Any, ...], got: Any) -> str:
    """What is wrong with our result, or nothing; on a GPU by PyTorch in float64."""
    if _core.backend() == "sim":
        return _fault(one, *(array.to_host() for array in (*arrays, got)))
    import torch

    tensors = [torch.from_dlpack(array) for array in (*arrays, got)]
    if group_of(one.kind) == "reductions":
        return _reduced_fault(one, torch, tensors[0], tensors[-1])
    want = _of_torch(one)(*tensors[:-1])
    return "" if torch.equal(want, tensors[-1]) else "is not the same"


def _reduced_fault(one: Draw, torch: Any, array: Any, got: Any) -> str:
    most = torch.amax(array, one.axes)
    if one.kind == "max":
        return "" if torch.equal(most, got) else "is not the largest"
    if one.kind == "argmax":
        if bool(((got < 0) | (got >= array.shape[one.axes[0]])).any()):
            return "is no index"
        there = torch.take_along_dim(array, got.long().unsqueeze(one.axes[0]), one.axes[0])
        return "" if torch.equal(there.squeeze(one.axes[0]), most) else "is not where it is"
    want = torch.sum(array, one.axes, dtype=torch.float64)
    size = torch.sum(array.abs(), one.axes, dtype=torch.float64)
    count = math.prod(one.shape[axis] for axis in one.axes) if one.kind == "mean" else 1
    unit, least = 0.0, 0.0
    if array.dtype.is_floating_point:
        unit = torch.finfo(array.dtype).eps
        least = unit * torch.finfo(array.dtype).tiny  # a result may be a subnormal number
    off = (got.double() - want / count).abs()
    bound = unit * want.abs() / count + min(unit, 2.0**-23) * 64 * size / count + least
    return "" if bool((off <= bound).all()) else f"is off by {float((off / bound).max()):.3g}"


def _fault(one: Draw, *arrays: Any) -> str:
    *given, got = arrays
    wide = [each.astype(np.float64) for each in given]
    if group_of(one.kind) == "reductions":
        want = getattr(np, one.kind)(wide[0], axis=_axis(one))
        near = np.allclose(got.astype(np.float64), want, 2.0**-6, 2.0**-6)
        return "" if near and got.shape == np.shape(want) else "is not what NumPy has"
    want = wide[0] + wide[1] if one.kind == "add" else wide[0]
    want = want.transpose(one.axes) if one.kind == "transpose" else want
    want = want.astype(got.dtype)
    return "" if got.tobytes() == np.ascontiguousarray(want).tobytes() else "is not what NumPy has"
