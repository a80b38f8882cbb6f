"""GPUArray: an array in device memory with arithmetic, as PyCUDA has it."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from gpukern import _core
from gpukern.pycuda import reducing, streams
from gpukern.pycuda.elements import apply
from gpukern.pycuda.layout import Dtype, Laid
from gpukern.pycuda.memory import mem_alloc


def result_type(*values: Any) -> Dtype:
    """The dtype of an operation on arrays and numbers, as NumPy has it."""
    kinds = [value.dtype if isinstance(value, GPUArray) else value for value in values]
    return np.result_type(*kinds)


def _divided(dtype: Dtype) -> Dtype:
    """The dtype of a quotient."""
    if dtype.kind in "fc":
        return dtype
    return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)


# Where so much is filled the memory that is left may not hold one more kernel.
_FILLED_BY_COPIES = 1 << 30

# What gpukern's own kernels do, as the expression in C has it, for some kinds of dtypes.
_DIRECT: dict[str, tuple[Callable[..., Any], str]] = {
    "x + y": (_core.add, "iuf"),
    "x - y": (_core.subtract, "iuf"),
    "x * y": (_core.multiply, "iuf"),
    "x / y": (_core.divide, "f"),
}


class GPUArray(Laid):
    """An array in device memory, by PyCUDA's names.

    Arithmetic is done an element at a time, on arrays of one shape, numbers and arrays of no axis;
    the dtype is the one that NumPy gives. Comparisons give ones and zeros of that dtype.
    ``gpudata`` is the memory, as driver functions and kernels take it.
    """

    __array_priority__ = 100
    __array_ufunc__ = None  # so that NumPy's numbers leave arithmetic to this class
    __hash__ = None  # type: ignore[assignment]

    # arithmetic -----------------------------------------------------------------------------------

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
        contiguous = self.in_c_order or self.in_f_order
        if contiguous and self.nbytes >= _FILLED_BY_COPIES:
            self._fill_by_copies(np.asarray(value, self.dtype))
        elif contiguous and self.dtype.kind in "biufc" and self.dtype != np.float16:
            apply("z[i] = x", {"z": self}, {"x": (value, self.dtype)}, stream)
        else:
            self[...] = np.asarray(value, self.dtype)
        return self

    def _fill_by_copies(self, value: np.ndarray[Any, Any]) -> None:
        """Each copy is of what is there already."""
        row = self.memory
        streams.settle()
        first = np.full(max((1 << 20) // self.itemsize, 1), value).view(np.uint8)
        row[: first.size] = first
        done = first.size
        while done < self.nbytes:
            more = min(done, self.nbytes - done)
            row[done : done + more] = row[:more]
            done += more

    def _with(self, operation: str, other: Any, dtype: Any = None, swapped: bool = False) -> Any:
        """An operation of x and y; NotImplemented for what is no operand."""
        if not isinstance(other, GPUArray) and not _is_number(other):
            return NotImplemented
        if self._goes_with(operation, other):
            result = GPUArray(self.shape, self.dtype)
            return self._directly(operation, other, result, swapped)
        common = result_type(self, other) if dtype is None else dtype(result_type(self, other))
        x, y = (other, self) if swapped else (self, other)
        return apply_to(f"z[i] = {operation}", common, {"x": (x, common), "y": (y, common)})

    def _goes_with(self, operation: str, other: Any) -> bool:
        """Whether gpukern's own kernels do it: on one dtype and order, and on numbers like it."""
        _, kinds = _DIRECT.get(operation, (None, ""))
        kind = self.dtype.kind
        if kind not in kinds or not self.in_c_order or not self.size:
            return False
        if type(other) is GPUArray:
            return other.dtype == self.dtype and other.shape == self.shape and other.in_c_order
        if kind == "f":
            return type(other) in (int, float)
        limits = np.iinfo(self.dtype)
        return type(other) is int and limits.min <= other <= limits.max

    def _directly(
        self, operation: str, other: Any, result: "GPUArray", swapped: bool = False
    ) -> "GPUArray":
        function, _ = _DIRECT[operation]
        streams.settle()
        function(*((other, self) if swapped else (self, other)), out=result)
        return result

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
        if self._goes_with(operation, other):
            return self._directly(operation, other, self)
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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | complex | np.number | np.bool_)


def _real(dtype: Dtype) -> Dtype:
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
