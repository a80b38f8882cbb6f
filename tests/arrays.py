"""Nasty arrays: the sizes, layouts and contents on which kernels and their callers go wrong."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import gpukern as gk
from gpukern import _core

Array = npt.NDArray[Any]

# NumPy knows the name of bfloat16 from ml_dtypes.
DTYPES: dict[str, np.dtype[Any]] = {name: np.dtype(name) for name in _core.DTYPES}
# Large products of cases walk these dtypes; of all others, which the same templates serve, they
# walk one of each kind.
WALKED = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8")
SAMPLED = tuple({DTYPES[name].kind: name for name in DTYPES if name not in WALKED}.values())

# Around nothing, the widths of vectors, warps, blocks and tiles, and some primes.
SIZES = (0, 1, 2, *range(3, 18), 31, 32, 33, 61, 127, 255, 256, 257, 997)
SIZES += (1023, 1024, 1025, 4095, 4096, 4097, 8191, 8193)

SHAPES: tuple[tuple[int, ...], ...] = (
    *((), (1,), (17,), (257,), (1, 9), (9, 1), (7, 11), (33, 65)),
    *((3, 5, 7), (2, 1, 9), (2, 3, 4, 5), (1, 1, 1, 1)),
)
EMPTY_SHAPES = ((0,), (0, 3), (3, 0), (2, 0, 4))


# The elementwise operations that have kernels, and how many operands each takes; `greater` and
# `greater_equal` go by those of `less` and `less_equal`.
ELEMENTWISE = dict.fromkeys(("add", "subtract", "multiply", "divide", "maximum", "minimum"), 2)
COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
ELEMENTWISE |= {op: 2 for op in COMPARISONS if not op.startswith("greater")}
ELEMENTWISE |= {"scale_add": 3, "clip": 1, "negative": 1, "abs": 1, "sqrt": 1, "exp": 1}
# Over all elements or some axes, into another shape; dot takes two vectors.
REDUCTIONS = ("sum", "mean", "prod", "max", "min", "norm", "argmax", "argmin")
# One of each way of going over elements: the others differ from these in what they make of them.
WAYS_TO_REDUCE = ("sum", "prod", "min", "argmax")


def on_gpu() -> bool:
    """Whether the suite runs on a real device, where larger sizes cost nothing."""
    return _core.backend() == "cuda"


def ran(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """The result of a call and the variants that it took."""
    _core.profile_start()
    got = call()
    return got, [record["variant"] for record in _core.profile_stop()]


@contextlib.contextmanager
def limited(**limits: int) -> Iterator[None]:
    """With these limits, in bytes, by name; those that there were come back."""
    before = {name: _core.limit(name, least) for name, least in limits.items()}
    try:
        yield
    finally:
        for name, least in before.items():
            _core.limit(name, least)


def settled() -> int:
    """Bytes of device memory that live on once garbage is gone. What lives is searched once."""
    gc.collect()
    gc.freeze()
    return _core.live_bytes()


def sanitized() -> bool:
    """Whether AddressSanitizer is loaded: slower, and what is freed stays with it for a while."""
    return "libasan" in Path("/proc/self/maps").read_text()


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether the dtype has NaNs; bfloat16 is none of NumPy's own kinds."""
    return dtype.kind == "f" or dtype == DTYPES["bfloat16"]


def limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the greatest value of a dtype of integers, or of bool."""
    if dtype.kind == "b":
        return 0, 1
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def result_dtype(op: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of what an elementwise operation makes of operands of `dtype`."""
    return np.dtype(bool) if op in COMPARISONS else dtype.newbyteorder("=")


def served(row: dict[str, Any]) -> list[str]:
    """The names of the dtypes that a row of the table serves: one, or all of a size."""
    if not row["dtype"].startswith("bits"):
        return [row["dtype"]]
    size = int(row["dtype"].removeprefix("bits")) // 8
    return [name for name, dtype in DTYPES.items() if dtype.itemsize == size]


@functools.cache
def table() -> list[dict[str, Any]]:
    """All rows of the table, which are many: for tests that only look at them."""
    return _core.rows()


def variants(op: str, runs: bool = True) -> list[tuple[str, str]]:
    """(variant, dtype name) of every row of `op` that runs here, or of those that do not."""
    rows = [row for row in table() if row["op"] == op and row["runs"] is runs]
    return [(row["variant"], name) for row in rows for name in served(row)]


def dtypes_of(op: str) -> list[str]:
    """The names of the dtypes that `op` has a kernel for here, each once."""
    return list(dict.fromkeys(dtype for _, dtype in variants(op)))


def generator(*seed: int | str) -> np.random.Generator:
    """A reproducible generator for the case named by `seed`."""
    numbers = [part if isinstance(part, int) else int.from_bytes(part.encode()) for part in seed]
    return np.random.default_rng(numbers)


def random(shape: int | tuple[int, ...], dtype: np.dtype[Any], seed: int = 0) -> Array:
    """Moderate values of both signs (integers: over the whole range)."""
    rng = generator(seed)
    if is_float(dtype):
        return np.asarray(rng.standard_normal(shape)).astype(dtype)
    least, greatest = limits(dtype)
    values = rng.integers(least, greatest, shape, dtype=dtype.newbyteorder("="), endpoint=True)
    return np.asarray(values, dtype)


def with_special(values: Array, first: int, about: int) -> Array:
    """The same memory with NaN, infinities, zeros of both signs and subnormals from an element on,
    about so many of them, if there are such numbers."""
    if is_float(values.dtype):
        special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45])
        spots = values.reshape(-1)[first :: 1 + values.size // about]
        spots[...] = np.resize(special.astype(values.dtype), spots.size)
    return values


def beside(held: Array, begin: int) -> Any:
    """An array on the device, that many elements behind where memory begins."""
    flat = gk.empty(held.size + begin, held.dtype)
    flat[:begin] = np.zeros(begin, held.dtype)
    flat[begin:] = held.reshape(-1)
    return flat[begin:].reshape(held.shape)


# --- contents ---------------------------------------------------------------------------------


def _sprinkled(dtype: np.dtype[Any], count: int, specials: list[float]) -> Array:
    """Random values with each special one at several places, the first and the last included."""
    values = random(count, dtype, 1)
    places = [0, *range(1, count, 7), count - 1] if count else []
    for place, special in zip(places, itertools.cycle(specials), strict=False):
        values[place] = dtype.type(special)
    return values


def _cancelling(dtype: np.dtype[Any], count: int) -> Array:
    large = 1e8 if dtype.itemsize > 2 else 1e4
    values = np.tile([large, 1e-3, -large, -3e-3], count // 4 + 1)[:count]
    return values.astype(dtype)


def _subnormal(dtype: np.dtype[Any], count: int) -> Array:
    """Bit patterns below the smallest normal number, of both signs."""
    bits = np.arange(1, count + 1, dtype=f"u{dtype.itemsize}")
    bits[1::2] |= np.array(1 << (8 * dtype.itemsize - 1), bits.dtype)
    return bits.view(dtype)


def _cycle(dtype: np.dtype[Any], count: int, *values: float) -> Array:
    return np.resize(np.array(values).astype(dtype), count)


def contents(dtype: np.dtype[Any], count: int) -> Iterator[tuple[str, Array]]:
    """Named one-dimensional arrays of `count` elements that hold what arithmetic trips over."""
    yield "random", random(count, dtype)
    if not is_float(dtype):
        least, greatest = limits(dtype)
        yield "greatest", np.full(count, greatest, dtype)
        yield "least", np.full(count, least, dtype)
        yield "extremes", np.resize(np.array([greatest, least, 1, 0], dtype), count)
        return
    highest = float(ml_dtypes.finfo(dtype).max)
    yield "nan", _sprinkled(dtype, count, [np.nan, -np.nan])
    yield "inf", _sprinkled(dtype, count, [np.inf])
    yield "minus inf", _sprinkled(dtype, count, [-np.inf])
    yield "both inf", _sprinkled(dtype, count, [np.inf, -np.inf])
    yield "zeros", _cycle(dtype, count, 0.0, -0.0)
    yield "minus zero", _cycle(dtype, count, -0.0)
    yield "subnormal", _subnormal(dtype, count)
    yield "greatest", _cycle(dtype, count, highest)
    yield "overflow", _cycle(dtype, count, highest, highest, -highest)
    yield "cancelling", _cancelling(dtype, count)
    yield "ones", _cycle(dtype, count, 1.0)


# --- layouts on the host ----------------------------------------------------------------------


def strided(values: Array) -> Array:
    """Every third element of a larger array."""
    if values.ndim == 0:
        return values
    wide = np.zeros((*values.shape[:-1], values.shape[-1] * 3), values.dtype)
    wide[..., 1::3] = values
    return wide[..., 1::3]


def negative(values: Array) -> Array:
    """The same values read backwards along every axis."""
    backwards = (slice(None, None, -1),) * values.ndim
    return np.ascontiguousarray(values[backwards]).reshape(values.shape)[backwards]


def offset(values: Array, distance: int) -> Array:
    """The same values `distance` bytes behind a 64-byte boundary."""
    room = np.zeros(values.nbytes + 64 + distance, np.uint8)
    start = -room.ctypes.data % 64 + distance
    moved: Array = np.ndarray(values.shape, values.dtype, buffer=room, offset=start)
    moved[...] = values
    return moved


def window(values: Array) -> Array:
    """The middle of an array that is two elements larger on every side."""
    around = np.zeros([side + 4 for side in values.shape], values.dtype)
    middle = around[(..., *(slice(2, -2),) * values.ndim)]
    middle[...] = values
    return middle


def permuted(values: Array) -> Array:
    """The same values with the first axis the fastest in memory and the others in C order."""
    if values.ndim < 2:
        return values
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(values, 0, -1)), -1, 0)


def readonly(values: Array) -> Array:
    """The same values where nothing may be written."""
    fixed = values.copy()
    fixed.setflags(write=False)
    return fixed


def swapped(values: Array) -> Array:
    """The same values in the other byte order, where the dtype has one in NumPy."""
    if values.dtype == DTYPES["bfloat16"]:
        return values
    return values.astype(values.dtype.newbyteorder())


def repeated(values: Array) -> Array:
    """One row of `values` standing for all of them: stride 0 along the first axis."""
    return np.broadcast_to(values[:1], values.shape) if values.ndim else values


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "contiguous": lambda values: values,
    "strided": strided,
    "negative": negative,
    "fortran": lambda values: values.copy(order="F"),
    "one byte off": lambda values: offset(values, 1),
    "one element off": lambda values: offset(values, values.itemsize),
    "window": window,
    "permuted": permuted,
    "readonly": readonly,
    "swapped": swapped,
    "repeated": repeated,
}


def laid_out(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[tuple[str, Array]]:
    """Random arrays of one shape in every layout."""
    for name, layout in LAYOUTS.items():
        yield f"{name} {shape}", layout(random(shape, dtype, 2))


def nasty(dtype: np.dtype[Any]) -> Iterator[tuple[str, Array]]:
    """Every nasty array: sizes, then contents, then layouts in every shape."""
    for size in SIZES:
        yield f"random ({size},)", random(size, dtype, size)
    yield from contents(dtype, 1037)
    for shape in (*SHAPES, *EMPTY_SHAPES):
        yield from laid_out(shape, dtype)


# --- memory with canaries around it -----------------------------------------------------------


_CANARIES = (np.arange(251) * 37 % 251).astype(np.uint8)


def canaries(count: int) -> Array:
    """Bytes that differ from place to place, so that one for another is noticed too."""
    return np.tile(_CANARIES, count // _CANARIES.size + 1)[:count]


@dataclass
class Place:
    """Where an array stands in a block of bytes: what is not its own must never change."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    strides: tuple[int, ...]
    total: int

    def view(self, block: Array) -> Array:
        """The array in a block of bytes on the host."""
        return np.ndarray(self.shape, self.dtype, block, self.offset, self.strides)

    def block(self, values: Array | None = None) -> Array:
        """A block full of canaries with `values` at this place (default: canaries too)."""
        block = canaries(self.total)
        if values is not None:
            self.view(block)[...] = values
        return block


def c_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides in bytes of a C-contiguous array."""
    strides = [itemsize] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
    return tuple(strides)


def _spread(
    shape: tuple[int, ...], dtype: np.dtype[Any], start: int, pitch: tuple[int, ...]
) -> Place:
    """A place at byte `start` whose strides are those of an array of the shape `pitch`."""
    strides = c_strides(pitch, dtype.itemsize)
    reach = sum(max(side - 1, 0) * stride for side, stride in zip(shape, strides, strict=True))
    return Place(shape, dtype, start, strides, start + reach + dtype.itemsize + 64)


def _backwards(place: Place) -> Place:
    """The same bytes with every stride negated."""
    reach = sum(max(n - 1, 0) * s for n, s in zip(place.shape, place.strides, strict=True))
    strides = tuple(-stride for stride in place.strides)
    return Place(place.shape, place.dtype, place.offset + reach, strides, place.total)


def _transposed(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Place:
    place = _spread(shape[::-1], dtype, 64, shape[::-1])
    return Place(shape, dtype, place.offset, place.strides[::-1], place.total)


def places(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[tuple[str, Place]]:
    """Aligned, misaligned, spread, backwards and transposed places for an array."""
    size = dtype.itemsize
    yield "aligned", _spread(shape, dtype, 64, shape)
    yield "one element off", _spread(shape, dtype, 64 + size, shape)
    if size > 1:
        yield "one byte off", _spread(shape, dtype, 65, shape)
    if not shape:
        return
    yield "rows apart", _spread(shape, dtype, 64, (*shape[:-1], shape[-1] + 3))
    # Only the length of a row says that it is not made of whole vectors.
    whole = (*shape[:-1], shape[-1] // 16 * 16 + 16)
    yield "rows at multiples of 16", _spread(shape, dtype, 64, whole)
    if size > 1:
        yield "rows apart, one byte off", _spread(shape, dtype, 65, (*shape[:-1], shape[-1] + 3))
    apart = _spread((*shape, 1), dtype, 64, (*shape, 2))
    yield "elements apart", Place(shape, dtype, 64, apart.strides[:-1], apart.total)
    yield "backwards", _backwards(_spread(shape, dtype, 64, shape))
    yield "transposed", _transposed(shape, dtype)


class DeviceView:
    """A window of a DeviceArray, handed over as another library would: by its interface.

    `changes` replace or add keys of the interface; a value of None removes the key.
    """

    def __init__(
        self, parent: gk.DeviceArray, place: Place, readonly: bool = False, **changes: Any
    ):
        address = parent.__cuda_array_interface__["data"][0]
        interface = {
            "shape": place.shape,
            "typestr": typestr(place.dtype),
            "data": (address + place.offset, readonly),
            "strides": place.strides,
            "version": 3,
            **changes,
        }
        self.parent, self.dtype = parent, place.dtype
        self.__cuda_array_interface__ = {k: v for k, v in interface.items() if v is not None}


def typestr(dtype: np.dtype[Any]) -> str:
    """How gpukern itself names a dtype in the interface."""
    return str(gk.empty((1,), dtype).__cuda_array_interface__["typestr"])


@dataclass
class OnDevice:
    """An array at a place on the device, with canaries around it."""

    place: Place
    parent: gk.DeviceArray
    view: DeviceView

    def holds(self, values: Array) -> bool:
        """Whether the place holds exactly these bytes and every canary is alive."""
        return bool(np.array_equal(self.parent.to_host(), self.place.block(values)))

    def unchanged(self, block: Array) -> bool:
        """Whether the whole block has the same bytes as `block`."""
        return bool(np.array_equal(self.parent.to_host(), block))


def on_device(place: Place, values: Array | None = None, readonly: bool = False) -> OnDevice:
    """Put an array (default: canaries) at a place on the device."""
    parent = gk.to_device(place.block(values))
    return OnDevice(place, parent, DeviceView(parent, place, readonly))


def as_host(memory: object) -> np.ndarray:
    """The simulator's device memory as the array that it is, once all that was put off is done."""
    gk.synchronize()
    interface = memory.__cuda_array_interface__
    dtype = np.dtype(interface["typestr"])
    count = int(np.prod(interface["shape"])) * dtype.itemsize
    raw = (ctypes.c_char * count).from_address(interface["data"][0])
    return np.frombuffer(raw, dtype).reshape(interface["shape"])


def same_bits(got, want, case):
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype, case
    assert got.shape == want.shape, case
    assert got.tobytes() == want.tobytes(), case
