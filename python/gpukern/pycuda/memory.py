"""Device memory as PyCUDA has it: bytes at an address, copied by hand."""

import threading
from bisect import bisect_right, insort
from operator import index
from typing import Any, Protocol
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from gpukern import _core
from gpukern.pycuda import streams

Bytes = npt.NDArray[np.uint8]


class _Addressed(Protocol):
    def __int__(self) -> int: ...


def address_of(memory: _core.DeviceArray) -> int:
    """Where an array's first element is."""
    address: int = memory.__cuda_array_interface__["data"][0]
    return address


class Lent:
    """Device memory as an array of some dtype."""

    def __init__(self, memory: _core.DeviceArray, dtype: np.dtype[Any], whole: int) -> None:
        size = memory.nbytes // whole * whole
        self.memory = memory
        self.__cuda_array_interface__ = {
            "shape": (size // dtype.itemsize,),
            "typestr": dtype.str,
            "data": (address_of(memory), False),
            "version": 3,
            "stream": 1,
        }


class DeviceAllocation:
    """Device memory; ``int(...)`` is its address. It is given back when nothing names it.

    ``array`` is what it holds, as bytes.
    """

    def __init__(self, array: _core.DeviceArray) -> None:
        self._array: _core.DeviceArray | None = array
        self._address: int | None = None
        self._lent: dict[tuple[np.dtype[Any], int], Lent] = {}
        self.size = array.nbytes

    @property
    def array(self) -> _core.DeviceArray:
        """The memory; raises LogicError's kind, CudaError, after free()."""
        if self._array is None:
            raise _core.CudaError(f"DeviceAllocation: the {self.size} bytes were freed")
        return self._array

    def __int__(self) -> int:
        if self._address is None:
            self._address = address_of(self.array)
            _known.add(self, self._address)
        return self._address

    __index__ = __int__

    def lent(self, dtype: np.dtype[Any], whole: int) -> "Lent":
        """All of it as an array of a dtype, of a multiple of ``whole`` bytes."""
        array = self.array
        key = (dtype, whole)
        if key not in self._lent:
            self._lent[key] = Lent(array, dtype, whole)
        return self._lent[key]

    def __repr__(self) -> str:
        state = "freed" if self._array is None else f"{self.size} bytes"
        return f"<{type(self).__name__}, {state}>"

    def free(self) -> None:
        """Give the memory back, once the work that uses it is done."""
        if self._array is None:
            raise _core.CudaError("DeviceAllocation: free() was called before")
        if self._address is not None:
            _known.remove(self, self._address)
        streams.settle()
        self._array = None
        self._lent.clear()

    def as_buffer(self, size: int | None = None, offset: int = 0) -> memoryview:
        """The device memory as a buffer, for libraries that know device addresses.

        Python cannot read it on a GPU.
        """
        import ctypes

        size = self.size - offset if size is None else size
        _check_room("as_buffer", self.size - offset, size)
        return memoryview((ctypes.c_char * size).from_address(int(self) + offset))


class _Known:
    """Every allocation, to be found by any address in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_address: WeakValueDictionary[int, DeviceAllocation] = WeakValueDictionary()
        self._starts: list[int] = []

    def add(self, allocation: DeviceAllocation, start: int) -> None:
        with self._lock:
            if start not in self._by_address:
                insort(self._starts, start)
            self._by_address[start] = allocation
            if len(self._starts) > 2 * len(self._by_address) + 64:
                self._starts = sorted(self._by_address)

    def remove(self, allocation: DeviceAllocation, start: int) -> None:
        with self._lock:
            if self._by_address.get(start) is allocation:
                del self._by_address[start]

    def holding(self, address: int) -> DeviceAllocation | None:
        """The one that an address lies in."""
        found = self._by_address.get(address)
        if found is not None:
            return found
        with self._lock:
            at = bisect_right(self._starts, address)
            while at > 0:
                at -= 1
                found = self._by_address.get(self._starts[at])
                if found is not None:
                    return found if address < int(found) + found.size else None
        return None


_known = _Known()


def is_address(value: Any) -> bool:
    """Whether a value is a device address to PyCUDA: an allocation or a whole number."""
    if isinstance(value, bool | np.bool_):
        return False
    return isinstance(value, DeviceAllocation | int | np.integer)


def memory_from(name: str, place: _Addressed) -> _core.DeviceArray:
    """The bytes from an address to the end of its allocation."""
    if isinstance(place, DeviceAllocation):
        return place.array
    if hasattr(place, "gpudata"):
        raise TypeError(f"{name}: takes device memory, and was given an array; pass array.gpudata")
    if not is_address(place):
        raise TypeError(
            f"{name}: takes device memory (of mem_alloc, to_device or array.gpudata) or an "
            f"address, not {type(place)}"
        )
    address = int(place)
    found = _known.holding(address)
    if found is None:
        raise ValueError(
            f"{name}: {address:#x} is in no memory that mem_alloc, to_device, get_global or a "
            "GPUArray has taken and still has"
        )
    return found.array[address - int(found) :]


def _check_room(name: str, room: int, size: int) -> None:
    if not 0 <= size <= room:
        raise ValueError(f"{name}: {size} bytes, and the device memory has {room} from there on")


def memory_at(name: str, place: _Addressed, size: int) -> _core.DeviceArray:
    """So many bytes from an address on."""
    memory = memory_from(name, place)
    _check_room(name, memory.nbytes, size)
    return memory[:size]


def host_bytes(name: str, value: Any, written: bool = False) -> Bytes:
    """What a NumPy array or a buffer holds, as bytes that share its memory."""
    if hasattr(value, "gpudata") or isinstance(value, DeviceAllocation):
        raise TypeError(f"{name}: takes an array on the host, and was given one on the device")
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
    else:
        try:
            array = np.frombuffer(value, np.uint8)
        except (TypeError, ValueError, BufferError):
            raise TypeError(
                f"{name}: takes a NumPy array or a buffer on the host, not {type(value)}"
            ) from None
    if array.dtype.hasobject:
        raise TypeError(f"{name}: an array of Python objects has no bytes for a device")
    if written and not array.flags.writeable:
        raise ValueError(f"{name}: the array on the host is read-only")
    if not array.flags.forc:
        raise ValueError(
            f"{name}: the array on the host is not contiguous; numpy.ascontiguousarray(...) makes "
            "a copy of it that is"
        )
    return array.reshape(-1, order="A").view(np.uint8)


# taking memory ------------------------------------------------------------------------------------


def mem_alloc(bytes: int) -> DeviceAllocation:
    """So many bytes of device memory, of undefined values. Raises MemoryError."""
    size = index(bytes)
    if size < 1:
        raise ValueError(f"mem_alloc: takes a number of bytes from 1 on, not {size}")
    return DeviceAllocation(_core.empty(size, "uint8"))


def mem_alloc_like(ary: Any) -> DeviceAllocation:
    """Device memory of an array's size."""
    return mem_alloc(ary.nbytes)


def mem_alloc_pitch(width: int, height: int, access_size: int) -> tuple[DeviceAllocation, int]:
    """Memory for rows of ``width`` bytes, and how many bytes each row is given."""
    pitch = -(-width // 512) * 512
    return mem_alloc(pitch * height), pitch


def to_device(bf_obj: Any) -> DeviceAllocation:
    """A copy of an array or a buffer in device memory."""
    data = host_bytes("to_device", bf_obj)
    allocation = mem_alloc(data.size)
    allocation.array[...] = data
    return allocation


def from_device(devptr: _Addressed, shape: Any, dtype: Any, order: Any = "C") -> npt.NDArray[Any]:
    """An array on the host, of what is at an address of the device."""
    result = np.empty(shape, dtype, order)
    memcpy_dtoh(result, devptr)
    return result


def from_device_like(devptr: _Addressed, other_ary: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array on the host like another one, of what is at an address of the device."""
    result = np.empty_like(other_ary)
    memcpy_dtoh(result, devptr)
    return result


# copies -------------------------------------------------------------------------------------------


def memcpy_htod(dest: _Addressed, src: Any) -> None:
    """Copy an array or a buffer to device memory."""
    data = host_bytes("memcpy_htod", src)
    target = memory_at("memcpy_htod", dest, data.size)
    streams.settle()
    if data.size:
        target[...] = data


def memcpy_dtoh(dest: Any, src: _Addressed) -> None:
    """Copy device memory to an array, as much as it holds."""
    data = host_bytes("memcpy_dtoh", dest, written=True)
    source = memory_at("memcpy_dtoh", src, data.size)
    streams.settle()
    if data.size:
        source.to_host(out=data)


def memcpy_dtod(dest: _Addressed, src: _Addressed, size: int) -> None:
    """Copy so many bytes from device memory to device memory."""
    source = memory_at("memcpy_dtod", src, size)
    target = memory_at("memcpy_dtod", dest, size)
    streams.settle()
    if size:
        target[...] = source


def memcpy_htod_async(dest: _Addressed, src: Any, stream: Any = None) -> None:
    """memcpy_htod behind the work of a stream; it is done when this returns."""
    memcpy_htod(dest, src)


def memcpy_dtoh_async(dest: Any, src: _Addressed, stream: Any = None) -> None:
    """memcpy_dtoh behind the work of a stream; it is done when this returns."""
    memcpy_dtoh(dest, src)


def memcpy_dtod_async(dest: _Addressed, src: _Addressed, size: int, stream: Any = None) -> None:
    """memcpy_dtod behind the work of a stream."""
    memcpy_dtod(dest, src, size)


def _set(name: str, dest: _Addressed, value: Any, dtype: Any, count: int) -> None:
    pattern = np.array([value], dtype).view(np.uint8)
    target = memory_at(name, dest, count * pattern.size)
    streams.settle()
    if count:
        target.reshape(count, pattern.size)[...] = pattern


def memset_d8(dest: _Addressed, data: int, count: int) -> None:
    """Write a byte ``count`` times."""
    _set("memset_d8", dest, data, np.uint8, count)


def memset_d16(dest: _Addressed, data: int, count: int) -> None:
    """Write two bytes ``count`` times."""
    _set("memset_d16", dest, data, np.uint16, count)


def memset_d32(dest: _Addressed, data: int, count: int) -> None:
    """Write four bytes ``count`` times."""
    _set("memset_d32", dest, data, np.uint32, count)


# memory of the host that the device copies fast ---------------------------------------------------


def pagelocked_empty(
    shape: Any, dtype: Any, order: Any = "C", mem_flags: int = 0
) -> npt.NDArray[Any]:
    """A NumPy array of undefined values; a large one is in pinned memory."""
    if mem_flags:
        raise NotImplementedError(
            "pagelocked_empty: mem_flags are left out, as memory that is mapped to the device is; "
            "a kernel takes the array with InOut(array)"
        )
    kind = np.dtype(dtype)
    count = int(np.prod(shape))
    memory = _core.empty(count * kind.itemsize, "uint8").to_host()
    array: npt.NDArray[Any] = memory.view(kind).reshape(shape, order=order)
    return array


def pagelocked_zeros(
    shape: Any, dtype: Any, order: Any = "C", mem_flags: int = 0
) -> npt.NDArray[Any]:
    """pagelocked_empty, of zeros."""
    result = pagelocked_empty(shape, dtype, order, mem_flags)
    result[...] = 0
    return result


def _order_of(array: npt.NDArray[Any]) -> str:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def pagelocked_empty_like(array: npt.NDArray[Any], mem_flags: int = 0) -> npt.NDArray[Any]:
    """pagelocked_empty of another array's shape and dtype."""
    return pagelocked_empty(array.shape, array.dtype, _order_of(array), mem_flags)


def pagelocked_zeros_like(array: npt.NDArray[Any], mem_flags: int = 0) -> npt.NDArray[Any]:
    """pagelocked_zeros of another array's shape and dtype."""
    return pagelocked_zeros(array.shape, array.dtype, _order_of(array), mem_flags)
