"""GPUArray: an array in device memory with arithmetic, as PyCUDA has it."""

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from gpukern import _core
from gpukern.pycuda import memory, reducing, streams
from gpukern.pycuda.elements import apply
from gpukern.pycuda.expressions import BLOCK, blocks_for
from gpukern.pycuda.memory import mem_alloc

_Dtype = np.dtype[Any]


def splay(n: int, dev: Any = None) -> tuple[tuple[int, int], tuple[int, int, int]]:
    """A grid and a block for so many elements."""
    return (blocks_for(n), 1), (BLOCK, 1, 1)


def _shape_of(shape: Any) -> tuple[int, ...]:
    sides = tuple(int(side) for side in shape) if np.iterable(shape) else (int(shape),)
    if any(side < 0 for side in sides):
        raise ValueError(f"GPUArray: a shape has no side below 0, and {sides} has")
    return sides


def _strides(shape: tuple[int, ...], itemsize: int, order: str) -> tuple[int, ...]:
    sides = shape if order == "F" else shape[::-1]
    strides, stride = [], itemsize
    for side in sides:
        strides.append(stride)
        stride *= side
    return tuple(strides if order == "F" else strides[::-1])


def _laid_out(
    raw: _core.DeviceArray, shape: tuple[int, ...], itemsize: int, order: str
) -> _core.DeviceArray:
    """Bytes in a row as an array with the bytes of an element along the last axis."""
    if order == "C":
        return raw.reshape((*shape, itemsize))
    last = len(shape)
    return raw.reshape((*shape[::-1], itemsize)).transpose((*range(last)[::-1], last))


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], wanted: Any) -> bool:
    if 0 in shape:
        return True
    pairs = zip(shape, strides, wanted, strict=True)
    return all(side == 1 or stride == other for side, stride, other in pairs)


def result_type(*values: Any) -> _Dtype:
    """The dtype of an operation on arrays and numbers, as NumPy has it."""
    kinds = [value.dtype if isinstance(value, GPUArray) else value for value in values]
    return np.result_type(*kinds)


def _divided(dtype: _Dtype) -> _Dtype:
    """The dtype of a quotient."""
    if dtype.kind in "fc":
        return dtype
    return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)


class GPUArray:
    """An array in device memory, by PyCUDA's names.

    Arithmetic is done an element at a time, on arrays of one shape, numbers and arrays of no axis;
    the dtype is the one that NumPy gives. Comparisons give ones and zeros of that dtype.
    ``gpudata`` is the memory, as driver functions and kernels take it.
    """

    __array_priority__ = 100
    __array_ufunc__ = None  # so that NumPy's numbers leave arithmetic to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        shape: Any,
        dtype: Any,
        allocator: Callable[[int], Any] = mem_alloc,
        base: Any = None,
        gpudata: Any = None,
        strides: Sequence[int] | None = None,
        order: str = "C",
    ) -> None:
        self.dtype: _Dtype = np.dtype(dtype)
        if self.dtype.hasobject:
            raise TypeError("GPUArray: Python objects have no place in device memory")
        if order not in ("C", "F"):
            raise ValueError(f"GPUArray: order is 'C' or 'F', not {order!r}")
        sides = _shape_of(shape)
        if strides is not None:
            order = _order_of(sides, tuple(strides), self.dtype.itemsize)
        size = math.prod(sides) * self.dtype.itemsize
        self.allocator = allocator
        self.base = base
        if gpudata is None and size:
            gpudata = allocator(size)
        self.gpudata = gpudata
        raw = memory.memory_at("GPUArray", gpudata, size) if size else _core.empty(0, "uint8")
        self._take(_laid_out(raw, sides, self.dtype.itemsize, order))

    def _take(self, elements: _core.DeviceArray) -> None:
        """The bytes of the elements, along the last axis."""
        self._bytes = elements
        about = elements.__cuda_array_interface__
        self.ptr: int = about["data"][0]
        self.shape: tuple[int, ...] = elements.shape[:-1]
        strides = about["strides"]
        self.strides: tuple[int, ...] = (
            _strides(self.shape, self.dtype.itemsize, "C")
            if strides is None
            else tuple(strides[:-1])
        )
        self.itemsize = self.dtype.itemsize
        self.ndim = len(self.shape)
        self.size = self.mem_size = math.prod(self.shape)
        self.nbytes = self.size * self.itemsize
        self._grid, self._block = splay(self.size)
        c, f = (
            _is_contiguous(self.shape, self.strides, _strides(self.shape, self.itemsize, order))
            for order in "CF"
        )
        self.flags = SimpleNamespace(c_contiguous=c, f_contiguous=f, forc=c or f)

    def _view(self, elements: _core.DeviceArray, dtype: Any = None) -> "GPUArray":
        """Another array on some of this one's memory."""
        view = GPUArray.__new__(GPUArray)
        view.dtype = self.dtype if dtype is None else np.dtype(dtype)
        view.allocator = self.allocator
        view.base = self if self.base is None else self.base
        view._take(elements)
        view.gpudata = view.ptr if view.size else None
        return view

    # what it is -----------------------------------------------------------------------------------

    @property
    def memory(self) -> _core.DeviceArray:
        """The bytes of a contiguous array, in the order in which they lie."""
        whole = self._bytes
        if not self.flags.c_contiguous:
            last = self.ndim
            whole = whole.transpose((*range(last)[::-1], last))
        return whole.reshape(self.nbytes)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "strides": None if self.flags.c_contiguous else self.strides,
            "data": (self.ptr, False),
            "typestr": self.dtype.str,
            "version": 3,
            "stream": 1,
        }

    def __array__(self, *_: Any, **__: Any) -> npt.NDArray[Any]:
        raise TypeError("GPUArray: it is in device memory; .get() makes a NumPy array of it")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("GPUArray: an array of no axis has no length")
        return self.shape[0]

    def __str__(self) -> str:
        return str(self.get())

    def __repr__(self) -> str:
        return repr(self.get())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                f"GPUArray: an array of {self.size} elements is neither true nor false; use "
                ".any() or .all()"
            )
        return bool(self.get())

    # to and from the host -------------------------------------------------------------------------

    def _like(self, dtype: Any = None) -> "GPUArray":
        return new_like(self, self.dtype if dtype is None else dtype)

    def set(self, ary: Any, async_: bool = False, stream: Any = None) -> None:
        """Copy a NumPy array, or a GPUArray, of this shape and dtype here."""
        if ary.shape != self.shape:
            raise ValueError(f"GPUArray.set: the array is {self.shape}, and was given {ary.shape}")
        if ary.dtype != self.dtype:
            raise ValueError(
                f"GPUArray.set: the array is of {self.dtype}, and was given {ary.dtype}; convert "
                "it with .astype(...)"
            )
        self[...] = ary

    def set_async(self, ary: Any, stream: Any = None) -> None:
        """Set it; it is done when this returns."""
        self.set(ary)

    def get(
        self, ary: Any = None, pagelocked: bool = False, async_: bool = False, stream: Any = None
    ) -> npt.NDArray[Any]:
        """A NumPy array of it, ``ary`` where that is given."""
        order = "C" if self.flags.c_contiguous or not self.flags.f_contiguous else "F"
        if ary is None:
            make: Any = memory.pagelocked_empty if pagelocked else np.empty
            ary = make(self.shape, self.dtype, order)
        if ary.shape != self.shape or ary.dtype != self.dtype:
            raise ValueError(
                f"GPUArray.get: the array is {self.dtype}{list(self.shape)}, and was given one of "
                f"{ary.dtype}{list(ary.shape)}"
            )
        if not ary.flags.writeable:
            raise ValueError("GPUArray.get: the array that was given is read-only")
        streams.settle()
        if self.size == 0:
            return cast(npt.NDArray[Any], ary)
        held = ary if ary.flags.forc else np.empty(self.shape, self.dtype)
        if held.flags.c_contiguous:
            self._bytes.to_host(out=_bytes_of(held))
        else:
            self.T._bytes.to_host(out=_bytes_of(held.T))
        if held is not ary:
            ary[...] = held
        return cast(npt.NDArray[Any], ary)

    def get_async(self, stream: Any = None, ary: Any = None) -> npt.NDArray[Any]:
        """Get it; it is done when this returns."""
        return self.get(ary)

    # views ----------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> "GPUArray":
        return self._view(self._bytes[self._key(index)])

    def _key(self, index: Any) -> Any:
        """An index of elements as one of their bytes."""
        key = index if isinstance(index, tuple) else (index,)
        if any(isinstance(each, GPUArray | np.ndarray | list) for each in key):
            raise IndexError(
                "GPUArray: an array is indexed by numbers and slices; take(array, indices) and "
                "if_positive(criterion, then_, else_) choose elements"
            )
        if len([each for each in key if each is not None and each is not Ellipsis]) > self.ndim:
            raise IndexError(f"GPUArray: {len(key)} indices for an array of {self.ndim} axes")
        if not any(each is Ellipsis for each in key):
            key = (*key, Ellipsis)
        return (*key, slice(None))

    def __setitem__(self, index: Any, value: Any) -> None:
        target = self._bytes[self._key(index)]
        streams.settle()
        if isinstance(value, GPUArray):
            if value.dtype != self.dtype:
                value = value.astype(self.dtype)
            source: Any = value._bytes
        else:
            source = _bytes_of(np.ascontiguousarray(value, self.dtype).reshape(np.shape(value)))
        if target.size:
            target[...] = source

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape: Any, order: str = "C") -> "GPUArray":
        """The same elements by another shape; one side may be -1."""
        sides = shape[0] if len(shape) == 1 and np.iterable(shape[0]) else shape
        sides = tuple(int(side) for side in sides)
        if -1 in sides:
            known = -math.prod(sides)
            if sides.count(-1) > 1 or known == 0 or self.size % known:
                raise ValueError(f"GPUArray.reshape: {self.shape} has no shape {sides}")
            sides = tuple(self.size // known if side == -1 else side for side in sides)
        if math.prod(sides) != self.size:
            raise ValueError(f"GPUArray.reshape: {self.shape} has no shape {sides}")
        if not (self.flags.c_contiguous if order == "C" else self.flags.f_contiguous):
            raise ValueError(
                f"GPUArray.reshape: the array does not lie in order {order!r}; make a copy of it "
                "with .copy()"
            )
        return self._view(_laid_out(self.memory, sides, self.itemsize, order))

    def ravel(self) -> "GPUArray":
        """The elements in a row."""
        return self.reshape(self.size)

    def view(self, dtype: Any = None) -> "GPUArray":
        """The same bytes as elements of another dtype, along the last axis."""
        kind = np.dtype(self.dtype if dtype is None else dtype)
        if kind.itemsize == self.itemsize:
            return self._view(self._bytes, kind)
        if not self.flags.c_contiguous or not self.shape:
            raise ValueError(
                "GPUArray.view: takes another size of elements where they lie in a row"
            )
        row = self.shape[-1] * self.itemsize
        if row % kind.itemsize:
            raise ValueError(
                f"GPUArray.view: {row} bytes along the last axis are no multiple of {kind}'s "
                f"{kind.itemsize}"
            )
        sides = (*self.shape[:-1], row // kind.itemsize)
        return self._view(_laid_out(self.memory, sides, kind.itemsize, "C"), kind)

    def squeeze(self) -> "GPUArray":
        """Without the axes of length 1."""
        return self[tuple(0 if side == 1 else slice(None) for side in self.shape)]

    def transpose(self, axes: Sequence[int] | None = None) -> "GPUArray":
        """The same elements with the axes in another order, the reverse by default."""
        order = tuple(range(self.ndim)[::-1] if axes is None else axes)
        if sorted(order) != list(range(self.ndim)):
            raise ValueError(f"GPUArray.transpose: {order} are not the axes of {self.shape}")
        return self._view(self._bytes.transpose((*order, self.ndim)))

    @property
    def T(self) -> "GPUArray":
        """With the axes reversed."""
        return self.transpose()

    # copies ---------------------------------------------------------------------------------------

    def copy(self) -> "GPUArray":
        """The same elements in memory of their own, contiguous."""
        result = self._like()
        result[...] = self
        return result

    def astype(self, dtype: Any, stream: Any = None) -> "GPUArray":
        """The elements converted, in memory of their own."""
        kind = np.dtype(dtype)
        if kind == self.dtype:
            return self.copy()
        if self.dtype.kind == "c" and kind.kind != "c":
            return self.real.astype(kind, stream)
        return apply_to("z[i] = x", kind, {"x": (self, kind)}, like=self, stream=stream)

    def fill(self, value: Any, stream: Any = None) -> Self:
        """Give every element this value."""
        if self.flags.forc and self.dtype.kind in "biufc" and self.dtype != np.float16:
            apply("z[i] = x", {"z": self}, {"x": (value, self.dtype)}, stream)
        else:
            self[...] = np.asarray(value, self.dtype)
        return self

    def reverse(self, stream: Any = None) -> "GPUArray":
        """A copy of an array of one axis, from its end to its beginning."""
        return self[::-1].copy()

    # arithmetic -----------------------------------------------------------------------------------

    def _with(self, operation: str, other: Any, dtype: Any = None, swapped: bool = False) -> Any:
        """An operation of x and y; NotImplemented for what is no operand."""
        if not isinstance(other, GPUArray) and not _is_number(other):
            return NotImplemented
        common = result_type(self, other) if dtype is None else dtype(result_type(self, other))
        x, y = (other, self) if swapped else (self, other)
        return apply_to(f"z[i] = {operation}", common, {"x": (x, common), "y": (y, common)})

    def __add__(self, other: Any) -> Any:
        return self._with("x + y", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with("x - y", other)

    def __rsub__(self, other: Any) -> Any:
        return self._with("x - y", other, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self._with("x * y", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._with("x / y", other, _divided)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with("x / y", other, _divided, swapped=True)

    def __pow__(self, other: Any) -> Any:
        return self._with("pycuda_power(x, y)", other)

    def __rpow__(self, other: Any) -> Any:
        return self._with("pycuda_power(x, y)", other, swapped=True)

    def _change(self, operation: str, other: Any) -> Any:
        """An operation of x and y whose result is put here, in this dtype."""
        if not isinstance(other, GPUArray) and not _is_number(other):
            return NotImplemented
        common = result_type(self, other)
        if operation == "x / y":
            common = _divided(common)
        if not np.can_cast(common, self.dtype, "same_kind"):
            raise TypeError(
                f"GPUArray: an operation with {common} does not fit an array of {self.dtype} in "
                "its place"
            )
        inputs = {"x": (self, common), "y": (other, common)}
        ctype = f"z[i] = {operation}"
        apply_to(ctype, self.dtype, inputs, out=self)
        return self

    def __iadd__(self, other: Any) -> Any:
        return self._change("x + y", other)

    def __isub__(self, other: Any) -> Any:
        return self._change("x - y", other)

    def __imul__(self, other: Any) -> Any:
        return self._change("x * y", other)

    def __itruediv__(self, other: Any) -> Any:
        return self._change("x / y", other)

    def __ipow__(self, other: Any) -> Any:
        return self._change("pycuda_power(x, y)", other)

    def __neg__(self) -> "GPUArray":
        return apply_to("z[i] = -x", self.dtype, {"x": self})

    def __pos__(self) -> "GPUArray":
        return self

    def __abs__(self) -> "GPUArray":
        if self.dtype.kind == "c":
            return apply_to("z[i] = abs(x)", _real(self.dtype), {"x": self})
        how = "fabs(x)" if self.dtype.kind == "f" else "x < 0 ? -x : x"
        return apply_to(f"z[i] = {how}", self.dtype, {"x": self})

    def mul_add(
        self, selffac: Any, other: Any, otherfac: Any, add_timer: Any = None, stream: Any = None
    ) -> "GPUArray":
        """``selffac * self + otherfac * other``."""
        common = result_type(self, other)
        inputs = {"a": selffac, "x": self, "b": otherfac, "y": other}
        typed = {name: (value, common) for name, value in inputs.items()}
        return apply_to("z[i] = a * x + b * y", common, typed, stream=stream)

    def __eq__(self, other: object) -> Any:
        return self._with("x == y", other)

    def __ne__(self, other: object) -> Any:
        return self._with("x != y", other)

    def __lt__(self, other: Any) -> Any:
        return self._with("x < y", other)

    def __le__(self, other: Any) -> Any:
        return self._with("x <= y", other)

    def __gt__(self, other: Any) -> Any:
        return self._with("x > y", other)

    def __ge__(self, other: Any) -> Any:
        return self._with("x >= y", other)

    @property
    def real(self) -> "GPUArray":
        """The real parts; the array itself where it is not complex."""
        if self.dtype.kind != "c":
            return self
        return apply_to("z[i] = x.real()", _real(self.dtype), {"x": self})

    @property
    def imag(self) -> "GPUArray":
        """The imaginary parts; zeros where it is not complex."""
        if self.dtype.kind != "c":
            return zeroed(new_like(self, self.dtype))
        return apply_to("z[i] = x.imag()", _real(self.dtype), {"x": self})

    def conj(self, out: "GPUArray | None" = None) -> "GPUArray":
        """The conjugates; the array itself where it is not complex."""
        if self.dtype.kind != "c":
            return self
        return apply_to("z[i] = conj(x)", self.dtype, {"x": self}, out=out)

    def any(self, stream: Any = None, allocator: Any = None) -> "GPUArray":
        """Whether one element is not zero, as an array of no axis."""
        return reduced(reducing.whether_any(self.dtype), [self], stream)

    def all(self, stream: Any = None, allocator: Any = None) -> "GPUArray":
        """Whether every element is not zero, as an array of no axis."""
        return reduced(reducing.whether_all(self.dtype), [self], stream)

    def bind_to_texref(self, texref: Any, allow_offset: bool = False) -> Any:
        """Left out."""
        raise NotImplementedError(
            "GPUArray.bind_to_texref: texture references are no longer part of CUDA, since 12.0; "
            "give the kernel the array and read it with __ldg(&array[i])"
        )

    bind_to_texref_ext = bind_to_texref


def _bytes_of(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """A contiguous array with the bytes of each element along a last axis."""
    return array.reshape(-1).view(np.uint8).reshape((*array.shape, array.dtype.itemsize))


def _order_of(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> str:
    for order in "CF":
        if _is_contiguous(shape, strides, _strides(shape, itemsize, order)):
            return order
    raise NotImplementedError(
        f"GPUArray: strides {strides} of a new array of {shape} are left out where it is not "
        "contiguous; slices of an array have them"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | complex | np.number | np.bool_)


def _real(dtype: _Dtype) -> _Dtype:
    return np.dtype(f"f{dtype.itemsize // 2}")


def new_like(array: Any, dtype: Any, order: str = "K") -> GPUArray:
    """A new array that lies like another one, where that is contiguous."""
    f_like = array.flags.f_contiguous and not array.flags.c_contiguous
    chosen = order if order in ("C", "F") else ("F" if f_like else "C")
    allocator = getattr(array, "allocator", mem_alloc)
    return GPUArray(array.shape, dtype, allocator, order=chosen)


def alike(arrays: list[GPUArray]) -> list[GPUArray]:
    """Arrays of one shape as ones that lie alike, copied where they do not."""
    spread = [array for array in arrays if array.shape != ()] or arrays[:1]
    shapes = {array.shape for array in spread}
    if len(shapes) > 1:
        named = " and ".join(str(list(shape)) for shape in sorted(shapes))
        raise ValueError(
            f"GPUArray: an operation takes arrays of one shape, and numbers, not {named}"
        )
    f_like = all(array.flags.f_contiguous for array in spread)
    c_like = all(array.flags.c_contiguous for array in spread)
    if c_like or f_like:
        return arrays
    return [
        array if array.shape == () or array.flags.c_contiguous else c_copy(array)
        for array in arrays
    ]


def c_copy(array: GPUArray) -> GPUArray:
    """A copy that lies in C's order."""
    result = new_like(array, array.dtype, "C")
    result[...] = array
    return result


def apply_to(
    operation: str,
    dtype: Any,
    inputs: dict[str, Any],
    like: GPUArray | None = None,
    out: GPUArray | None = None,
    stream: Any = None,
) -> GPUArray:
    """``z`` of an operation of arrays and numbers."""
    pairs = {
        name: each if isinstance(each, tuple) else (each, each.dtype)
        for name, each in inputs.items()
    }
    names = [name for name, (value, _) in pairs.items() if isinstance(value, GPUArray)]
    if out is not None and names:
        shapes = {pairs[name][0].shape for name in names} - {()}
        if out.dtype != dtype or (shapes and {out.shape} != shapes):
            raise ValueError(
                f"GPUArray: the result is {np.dtype(dtype)}{list(*shapes)}, and is to be put in "
                f"{out.dtype}{list(out.shape)}"
            )
    same = alike([pairs[name][0] for name in names])
    for name, array in zip(names, same, strict=True):
        pairs[name] = (array, pairs[name][1])
    spread = [array for array in same if array.shape != ()] or same[:1]
    result = new_like(spread[0], dtype)
    if out is not None and out.flags.forc and out.strides == result.strides:
        result = out
    apply(operation, {"z": result}, pairs, stream)
    if out is not None and result is not out:
        out[...] = result
    return result if out is None else out


def zeroed(array: GPUArray) -> GPUArray:
    """The array, with every byte 0."""
    if array.size:
        array._bytes[...] = np.zeros(1, np.uint8)
    return array


def reduced(recipe: reducing.Recipe, arrays: Sequence[GPUArray], stream: Any) -> GPUArray:
    """One number of arrays, as an array of no axis."""
    result = GPUArray((), recipe.dtype)

    def parts(blocks: int) -> GPUArray:
        return GPUArray((blocks,), recipe.dtype)

    same = alike(list(arrays))
    reducing.run(reducing.stages(recipe), result, parts, same, range(same[0].size), stream)
    return result
