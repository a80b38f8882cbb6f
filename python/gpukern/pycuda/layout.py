"""Where the elements of an array lie in device memory: shapes, views, copies, the host's side."""

import math
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from gpukern import _core
from gpukern.pycuda import memory, streams
from gpukern.pycuda.expressions import BLOCK, blocks_for
from gpukern.pycuda.memory import DeviceAllocation, address_of, mem_alloc

Dtype = np.dtype[Any]


def splay(n: int, dev: Any = None) -> tuple[tuple[int, int], tuple[int, int, int]]:
    """A grid and a block for so many elements."""
    return (blocks_for(n), 1), (BLOCK, 1, 1)


def _shape_of(shape: Any) -> tuple[int, ...]:
    sides = tuple(map(int, shape)) if isinstance(shape, tuple | list) else _sides_in(shape)
    if sides and min(sides) < 0:
        raise ValueError(f"GPUArray: a shape has no side below 0, and {sides} has")
    return sides


def _sides_in(shape: Any) -> tuple[int, ...]:
    return tuple(map(int, shape)) if np.iterable(shape) else (int(shape),)


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


def _is_one_row(shape: tuple[int, ...]) -> bool:
    """Whether the order of the axes makes no difference."""
    return len(shape) < 2 or 0 in shape or sum(side > 1 for side in shape) < 2


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], wanted: Any) -> bool:
    if 0 in shape:
        return True
    pairs = zip(shape, strides, wanted, strict=True)
    return all(side == 1 or stride == other for side, stride, other in pairs)


class Laid:
    """Elements of a dtype in device memory, in the order of C or Fortran or with strides."""

    base: Any

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
        self.dtype: Dtype = np.dtype(dtype)
        if self.dtype.hasobject:
            raise TypeError("GPUArray: Python objects have no place in device memory")
        if order not in ("C", "F"):
            raise ValueError(f"GPUArray: order is 'C' or 'F', not {order!r}")
        self.shape: tuple[int, ...] = _shape_of(shape)
        if strides is not None:
            order = _order_of(self.shape, tuple(strides), self.dtype.itemsize)
        self.size = math.prod(self.shape)
        self.nbytes = self.size * self.dtype.itemsize
        self.allocator = allocator
        self.base = base
        self._gpudata = gpudata
        if gpudata is None and allocator is not mem_alloc and self.size:
            self._gpudata = allocator(self.nbytes)
        # The bytes in the order in which they lie, and with an element's along the last axis.
        self._row: _core.DeviceArray | None = (
            _core.empty(self.nbytes, "uint8")
            if self._gpudata is None
            else memory.memory_at("GPUArray", self._gpudata, self.nbytes)
        )
        self._elements: _core.DeviceArray | None = None
        row = _is_one_row(self.shape)
        self.in_c_order, self.in_f_order = row or order == "C", row or order == "F"
        self._interface: dict[str, Any] | None = None

    def _view(self, elements: _core.DeviceArray, dtype: Any = None) -> Self:
        """Another array on some of this one's memory."""
        view = type(self).__new__(type(self))
        view.dtype = self.dtype if dtype is None else np.dtype(dtype)
        view.shape = elements.shape[:-1]
        view.size = math.prod(view.shape)
        view.nbytes = view.size * view.dtype.itemsize
        view.allocator = self.allocator
        view.base = self if self.base is None else self.base
        view._row, view._elements, view._interface = None, elements, None
        view._gpudata = None
        strides, itemsize = view.strides, view.dtype.itemsize
        view.in_c_order, view.in_f_order = (
            _is_contiguous(view.shape, strides, _strides(view.shape, itemsize, order))
            for order in "CF"
        )
        return view

    # what it is -----------------------------------------------------------------------------------

    @property
    def _bytes(self) -> _core.DeviceArray:
        """The bytes, those of an element along the last axis."""
        if self._elements is None:
            order = "C" if self.in_c_order else "F"
            row = cast(_core.DeviceArray, self._row)
            self._elements = _laid_out(row, self.shape, self.dtype.itemsize, order)
        return self._elements

    @property
    def memory(self) -> _core.DeviceArray:
        """The bytes of a contiguous array, in the order in which they lie."""
        if self._row is None:
            last = self.ndim
            axes = range(last) if self.in_c_order else range(last)[::-1]
            self._row = self._bytes.transpose((*axes, last)).reshape(self.nbytes)
        return self._row

    @property
    def gpudata(self) -> Any:
        """The memory, or the address of a view; None where there are no elements."""
        if not self.size:
            return None
        if self.base is not None and self._gpudata is None:
            self._gpudata = self.ptr
        elif self._gpudata is None:
            self._gpudata = DeviceAllocation(self.memory)
        return self._gpudata

    @property
    def ptr(self) -> int:
        """The address of the first element."""
        whole = self.base if isinstance(self.base, Laid) else self
        if isinstance(whole.gpudata, DeviceAllocation):
            int(whole.gpudata)  # so that the address is known
        address: int = self.__cuda_array_interface__["data"][0]
        return address

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from an element to the next one along each axis."""
        strides = self._bytes.__cuda_array_interface__["strides"]
        if strides is None:
            return _strides(self.shape, self.dtype.itemsize, "C")
        return tuple(strides[:-1])

    @property
    def flags(self) -> Any:
        """``c_contiguous``, ``f_contiguous`` and ``forc``, one of both."""
        return SimpleNamespace(
            c_contiguous=self.in_c_order,
            f_contiguous=self.in_f_order,
            forc=self.in_c_order or self.in_f_order,
        )

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    @property
    def mem_size(self) -> int:
        """How many elements there are."""
        return self.size

    @property
    def _grid(self) -> tuple[int, int]:
        return splay(self.size)[0]

    @property
    def _block(self) -> tuple[int, int, int]:
        return splay(self.size)[1]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._interface is None:
            self._interface = {
                "shape": self.shape,
                "strides": None if self.in_c_order else self.strides,
                "data": (address_of(self._bytes if self._row is None else self._row), False),
                "typestr": self.dtype.str,
                "version": 3,
                "stream": 1,
            }
        return self._interface

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
        order = "C" if self.in_c_order or not self.in_f_order else "F"
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
            self._bytes.to_host(out=bytes_of(held))
        else:
            self.T._bytes.to_host(out=bytes_of(held.T))
        if held is not ary:
            ary[...] = held
        return cast(npt.NDArray[Any], ary)

    def get_async(self, stream: Any = None, ary: Any = None) -> npt.NDArray[Any]:
        """Get it; it is done when this returns."""
        return self.get(ary)

    # views ----------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Self:
        return self._view(self._bytes[self._key(index)])

    def _key(self, index: Any) -> Any:
        """An index of elements as one of their bytes."""
        key = index if isinstance(index, tuple) else (index,)
        if any(isinstance(each, Laid | np.ndarray | list) for each in key):
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
        if isinstance(value, Laid):
            if value.dtype != self.dtype:
                value = cast(Any, value).astype(self.dtype)
            source: Any = value._bytes
        else:
            source = bytes_of(np.ascontiguousarray(value, self.dtype).reshape(np.shape(value)))
        if target.size:
            target[...] = source

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape: Any, order: str = "C") -> Self:
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
        if not (self.in_c_order if order == "C" else self.in_f_order):
            raise ValueError(
                f"GPUArray.reshape: the array does not lie in order {order!r}; make a copy of it "
                "with .copy()"
            )
        return self._view(_laid_out(self.memory, sides, self.itemsize, order))

    def ravel(self) -> Self:
        """The elements in a row."""
        return self.reshape(self.size)

    def view(self, dtype: Any = None) -> Self:
        """The same bytes as elements of another dtype, along the last axis."""
        kind = np.dtype(self.dtype if dtype is None else dtype)
        if kind.itemsize == self.itemsize:
            return self._view(self._bytes, kind)
        if not self.in_c_order or not self.shape:
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

    def squeeze(self) -> Self:
        """Without the axes of length 1."""
        return self[tuple(0 if side == 1 else slice(None) for side in self.shape)]

    def transpose(self, axes: Sequence[int] | None = None) -> Self:
        """The same elements with the axes in another order, the reverse by default."""
        order = tuple(range(self.ndim)[::-1] if axes is None else axes)
        if sorted(order) != list(range(self.ndim)):
            raise ValueError(f"GPUArray.transpose: {order} are not the axes of {self.shape}")
        return self._view(self._bytes.transpose((*order, self.ndim)))

    @property
    def T(self) -> Self:
        """With the axes reversed."""
        return self.transpose()

    # copies ---------------------------------------------------------------------------------------

    def copy(self) -> Self:
        """The same elements in memory of their own, contiguous."""
        order = "F" if self.in_f_order and not self.in_c_order else "C"
        result = type(self)(self.shape, self.dtype, self.allocator, order=order)
        result[...] = self
        return result

    def reverse(self, stream: Any = None) -> Self:
        """A copy of an array of one axis, from its end to its beginning."""
        return self[::-1].copy()


def bytes_of(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
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
