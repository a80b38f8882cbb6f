"""Device memory that the harness owns and lends to every contender of a case.

Each region lies between guards. All contenders work on the same inputs and the same output, so that
nobody has a better place in memory, and the harness can poison the output, change the inputs under
a contender's feet, and see what was written where nothing should be. What is compared is compared
word by word, on the device.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern import _core
from gpukern.bench.cases import bounds
from gpukern.bench.cases.pieces import in_pieces
from gpukern.bench.model.case import Case
from gpukern.bench.model.dtypes import itemsize, numpy_dtype

Array = npt.NDArray[Any]

# Bytes before and after; a multiple of 256, to which CUDA aligns allocations.
GUARD = 4096
_PATTERN = 0xA5


class Memory:
    """What ``__cuda_array_interface__`` says of a stretch of device memory; owns nothing."""

    def __init__(self, pointer: int, shape: tuple[int, ...], typestr: str) -> None:
        self.pointer = pointer
        self.shape = shape
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (pointer, False),
            "strides": None,
            "version": 3,
        }


class Region(Memory):
    """An array of ``shape`` and ``dtype`` between guards.

    ``cells`` is all of it, guards included, as integers of an element's width.
    """

    def __init__(self, shape: tuple[int, ...], dtype: str) -> None:
        self.dtype = dtype
        self._width = itemsize(dtype)
        self.count = math.prod(shape)
        self.nbytes = self.count * self._width
        self._first = GUARD // self._width
        self.cells = _core.empty(2 * self._first + self.count, f"int{8 * self._width}")
        pointer: int = self.cells.__cuda_array_interface__["data"][0]
        super().__init__(pointer + GUARD, shape, _typestr(dtype))

    def reshaped(self, shape: tuple[int, ...]) -> Memory:
        """The same memory in another shape."""
        return Memory(self.pointer, shape, _typestr(self.dtype))

    def as_bits(self) -> Memory:
        """The same memory as integers of that width, for libraries that do not take bfloat16."""
        return Memory(self.pointer, self.shape, f"<i{self._width}")

    def image(self, values: Array) -> "_core.DeviceArray":
        """``values`` between guards, on the device, ready to be put into the region."""
        content = np.empty(self.cells.nbytes, np.uint8)
        content[:GUARD] = content[GUARD + self.nbytes :] = _PATTERN
        flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        in_pieces(np.copyto, content[GUARD : GUARD + self.nbytes], flat)
        return _core.to_device(content.view(self.cells.dtype))

    def put(self, image: "_core.DeviceArray") -> None:
        """Overwrite all of the region, guards included."""
        _core.add(image, 0, out=self.cells)

    def copy_of(self, other: "Region") -> None:
        """Take over all that another region of this size holds, without waiting for it."""
        _core.add(other.cells, 0, out=self.cells)

    def within(self, part: slice) -> slice:
        """Some elements as cells of the region, or of an image of it."""
        return slice(part.start + self._first, part.stop + self._first, part.step)

    def holds(self, image: "_core.DeviceArray") -> bool:
        """Whether each word of the region and of its guards is as in the image."""
        return same_cells(self.cells, image)

    def guards(self) -> str:
        """What is wrong with the guards, if anything is."""
        width, first = self._width, self._first
        before = self.cells[:first].to_host().view(np.uint8)
        after = self.cells[first + self.count :].to_host().view(np.uint8)
        assert before.size == GUARD and after.size == first * width
        wrong = (int(np.count_nonzero(one != _PATTERN)) for one in (before, after))
        return _damage(*wrong)

    def read(self) -> Array:
        """What the region holds."""
        content = self.cells.to_host().view(np.uint8)
        found = content[GUARD : GUARD + self.nbytes].view(numpy_dtype(self.dtype))
        return found.reshape(self.shape)


def same_cells(one: "_core.DeviceArray", other: "_core.DeviceArray") -> bool:
    """Whether two arrays on the device hold the same bits, looked at where that is quickest."""
    if _core.backend() == "sim":
        return bool(np.array_equal(one.to_host(), other.to_host()))
    return same_on_device(one, other)


def same_on_device(one: "_core.DeviceArray", other: "_core.DeviceArray") -> bool:
    """The same by kernels of ours."""
    return not bool(_core.max(_core.not_equal(one, other)))


def poison(case: Case) -> Array:
    """An array for the result, full of what no right result has: NaN, or the least integer."""
    dtype = numpy_dtype(case.result_dtype)
    if bounds.is_float(case.result_dtype):
        return np.full(case.result_shape, np.nan, dtype)
    return np.full(case.result_shape, np.iinfo(dtype).min, dtype)


def _typestr(dtype: str) -> str:
    return "<V2" if dtype == "bfloat16" else np.dtype(dtype).str


def _damage(before: int, after: int) -> str:
    places = [
        f"{count} bytes {where} its output"
        for count, where in ((before, "before"), (after, "after"))
        if count
    ]
    return f"writes out of bounds: {' and '.join(places)}" if places else ""
