"""pycuda.gpuarray: arrays in device memory with arithmetic."""

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpukern.pycuda import reducing
from gpukern.pycuda.array import GPUArray as GPUArray
from gpukern.pycuda.array import apply_to, c_copy, new_like, reduced, result_type, zeroed
from gpukern.pycuda.declarations import vec as vec
from gpukern.pycuda.layout import splay as splay
from gpukern.pycuda.memory import mem_alloc

# arrays of the host, of a shape, of a range -------------------------------------------------------


def to_gpu(ary: Any, allocator: Callable[[int], Any] = mem_alloc) -> GPUArray:
    """A NumPy array in device memory."""
    host = np.asarray(ary)
    f_like = host.flags.f_contiguous and not host.flags.c_contiguous
    result = GPUArray(host.shape, host.dtype, allocator, order="F" if f_like else "C")
    if result.size:
        result[...] = host
    return result


def to_gpu_async(
    ary: Any, allocator: Callable[[int], Any] = mem_alloc, stream: Any = None
) -> GPUArray:
    """to_gpu; it is done when this returns."""
    return to_gpu(ary, allocator)


def empty(
    shape: Any, dtype: Any = np.float64, allocator: Any = mem_alloc, order: str = "C", **named: Any
) -> GPUArray:
    """An array of undefined values."""
    return GPUArray(shape, dtype, allocator, order=order, **named)


def zeros(
    shape: Any, dtype: Any = np.float64, allocator: Any = mem_alloc, order: str = "C"
) -> GPUArray:
    """An array of zeros."""
    return zeroed(empty(shape, dtype, allocator, order))


def ones(
    shape: Any, dtype: Any = np.float64, allocator: Any = mem_alloc, order: str = "C"
) -> GPUArray:
    """An array of ones."""
    return empty(shape, dtype, allocator, order).fill(1)


def empty_like(other_ary: Any, dtype: Any = None, order: str = "K") -> GPUArray:
    """An array of undefined values like another one."""
    return new_like(other_ary, other_ary.dtype if dtype is None else dtype, order)


def zeros_like(other_ary: Any, dtype: Any = None, order: str = "K") -> GPUArray:
    """An array of zeros like another one."""
    return zeroed(empty_like(other_ary, dtype, order))


def ones_like(other_ary: Any, dtype: Any = None, order: str = "K") -> GPUArray:
    """An array of ones like another one."""
    return empty_like(other_ary, dtype, order).fill(1)


def arange(*args: Any, dtype: Any = None, stream: Any = None) -> GPUArray:
    """Numbers at even steps: ``arange(stop)`` or ``arange(start, stop, step)``."""
    return to_gpu(np.arange(*args, dtype=dtype))


# choosing and joining -----------------------------------------------------------------------------


def take(a: GPUArray, indices: GPUArray, out: Any = None, stream: Any = None) -> GPUArray:
    """The elements of an array at each index, of an array of whole numbers."""
    if indices.dtype.kind not in "iu":
        raise TypeError(f"take: indices are whole numbers, not {indices.dtype}")
    result = new_like(indices, a.dtype) if out is None else out
    lowest, highest = (int(f(indices).get()) for f in (min, max)) if indices.size else (0, 0)
    if indices.size and not 0 <= lowest <= highest < a.size:
        raise IndexError(f"take: the indices go from {lowest} to {highest}, of {a.size} elements")
    flat = a.ravel() if a.flags.c_contiguous else c_copy(a).ravel()
    chosen = indices if indices.flags.c_contiguous else c_copy(indices)
    _take_elements(flat, chosen, result, stream)
    return result


def _take_elements(a: GPUArray, indices: GPUArray, out: GPUArray, stream: Any) -> None:
    from gpukern.pycuda.elementwise import ElementwiseKernel, VectorArg

    arguments = [VectorArg(a.dtype, "a"), VectorArg(indices.dtype, "at"), VectorArg(a.dtype, "z")]
    kernel = ElementwiseKernel(arguments, "z[i] = a[at[i]]", "take")
    kernel.over(indices.size, (a, indices, out), stream)


def if_positive(
    criterion: GPUArray, then_: Any, else_: Any, out: Any = None, stream: Any = None
) -> GPUArray:
    """Of each place ``then_`` where the criterion is above zero, and ``else_`` where it is not."""
    return _chosen("c > 0 ? x : y", criterion, then_, else_, out, stream)


def where(
    criterion: GPUArray, then_: Any, else_: Any, out: Any = None, stream: Any = None
) -> GPUArray:
    """Of each place ``then_`` where the criterion is not zero, and ``else_`` where it is."""
    return _chosen("c != 0 ? x : y", criterion, then_, else_, out, stream)


def _chosen(
    operation: str, criterion: GPUArray, then_: Any, else_: Any, out: Any, stream: Any
) -> GPUArray:
    common = result_type(then_, else_)
    inputs = {"c": criterion, "x": (then_, common), "y": (else_, common)}
    return apply_to(f"z[i] = {operation}", common, inputs, out=out, stream=stream)


def maximum(a: Any, b: Any, out: Any = None, stream: Any = None) -> GPUArray:
    """The larger of two, of each place."""
    return _of_two("x > y ? x : y", a, b, out, stream)


def minimum(a: Any, b: Any, out: Any = None, stream: Any = None) -> GPUArray:
    """The smaller of two, of each place."""
    return _of_two("x < y ? x : y", a, b, out, stream)


def _of_two(operation: str, a: Any, b: Any, out: Any = None, stream: Any = None) -> GPUArray:
    common = result_type(a, b)
    inputs = {"x": (a, common), "y": (b, common)}
    return apply_to(f"z[i] = {operation}", common, inputs, out=out, stream=stream)


def logical_and(x1: Any, x2: Any, /, out: Any = None, *, allocator: Any = None) -> GPUArray:
    """Whether both are not zero, of each place."""
    return _logical("x != 0 && y != 0", {"x": x1, "y": x2}, out)


def logical_or(x1: Any, x2: Any, /, out: Any = None, *, allocator: Any = None) -> GPUArray:
    """Whether one of two is not zero, of each place."""
    return _logical("x != 0 || y != 0", {"x": x1, "y": x2}, out)


def logical_not(x: Any, /, out: Any = None, *, allocator: Any = None) -> GPUArray:
    """Whether it is zero, of each place."""
    return _logical("x == 0", {"x": x}, out)


def _logical(operation: str, values: dict[str, Any], out: Any) -> GPUArray:
    inputs = {name: (value, result_type(value)) for name, value in values.items()}
    return apply_to(
        f"z[i] = {operation}", np.dtype(bool) if out is None else out.dtype, inputs, out=out
    )


def transpose(a: GPUArray, axes: Any = None) -> GPUArray:
    """The same elements with the axes in another order."""
    return a.transpose(axes)


def reshape(a: GPUArray, *shape: Any, order: str = "C") -> GPUArray:
    """The same elements by another shape."""
    return a.reshape(*shape, order=order)


def concatenate(arrays: Sequence[GPUArray], axis: int = 0, allocator: Any = None) -> GPUArray:
    """Arrays one after the other along an axis."""
    parts = list(arrays)
    dtype = result_type(*parts)
    shape = list(parts[0].shape)
    shape[axis] = builtins.sum(part.shape[axis] for part in parts)
    result = empty(shape, dtype)
    start = 0
    for part in parts:
        key: list[Any] = [slice(None)] * len(shape)
        key[axis] = slice(start, start + part.shape[axis])
        start += part.shape[axis]
        result[tuple(key)] = part
    return result


def stack(arrays: Sequence[GPUArray], axis: int = 0, allocator: Any = None) -> GPUArray:
    """Arrays beside one another along an axis of their own."""
    parts = list(arrays)
    place = axis % (parts[0].ndim + 1)
    key = (*[slice(None)] * place, None)
    return concatenate([part[key] for part in parts], place)


# one number of an array ---------------------------------------------------------------------------


def sum(a: GPUArray, dtype: Any = None, stream: Any = None, allocator: Any = None) -> GPUArray:
    """The sum, in the array's dtype by default, as an array of no axis."""
    return reduced(reducing.total(dtype, a.dtype), [a], stream)


def any(a: GPUArray, stream: Any = None, allocator: Any = None) -> GPUArray:
    """Whether one element is not zero."""
    return a.any(stream)


def all(a: GPUArray, stream: Any = None, allocator: Any = None) -> GPUArray:
    """Whether every element is not zero."""
    return a.all(stream)


def dot(
    a: GPUArray, b: GPUArray, dtype: Any = None, stream: Any = None, allocator: Any = None
) -> GPUArray:
    """The sum of the products, as an array of no axis."""
    if a.shape != b.shape:
        raise ValueError(f"dot: takes arrays of one shape, not {list(a.shape)} and {list(b.shape)}")
    return reduced(reducing.product(dtype, a.dtype, b.dtype), [a, b], stream)


def max(a: GPUArray, stream: Any = None) -> GPUArray:
    """The largest element, as an array of no axis."""
    return reduced(reducing.extreme("max", a.dtype), [a], stream)


def min(a: GPUArray, stream: Any = None) -> GPUArray:
    """The smallest element, as an array of no axis."""
    return reduced(reducing.extreme("min", a.dtype), [a], stream)


def subset_sum(
    subset: GPUArray, a: GPUArray, dtype: Any = None, stream: Any = None, allocator: Any = None
) -> GPUArray:
    """The sum of the elements at some indices."""
    return sum(take(a, subset), dtype, stream)


def subset_dot(
    subset: GPUArray,
    a: GPUArray,
    b: GPUArray,
    dtype: Any = None,
    stream: Any = None,
    allocator: Any = None,
) -> GPUArray:
    """The sum of the products at some indices."""
    return dot(take(a, subset), take(b, subset), dtype, stream)


def subset_max(subset: GPUArray, a: GPUArray, stream: Any = None) -> GPUArray:
    """The largest of the elements at some indices."""
    return max(take(a, subset), stream)


def subset_min(subset: GPUArray, a: GPUArray, stream: Any = None) -> GPUArray:
    """The smallest of the elements at some indices."""
    return min(take(a, subset), stream)


def __getattr__(name: str) -> Any:
    if name in ("multi_take", "multi_take_put", "multi_put"):
        raise AttributeError(f"pycuda.gpuarray.{name} is left out: take() takes from one array")
    raise AttributeError(f"module 'pycuda.gpuarray' has no attribute {name!r}")
