"""pycuda.tools: contexts, pools of memory, what a device has room for, C's types."""

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakSet

import numpy.typing as npt

from gpukern import _core
from gpukern.pycuda.contexts import Context, Device
from gpukern.pycuda.declarations import Argument as Argument
from gpukern.pycuda.declarations import ScalarArg as ScalarArg
from gpukern.pycuda.declarations import VectorArg as VectorArg
from gpukern.pycuda.declarations import dtype_to_ctype as dtype_to_ctype
from gpukern.pycuda.declarations import get_or_register_dtype as get_or_register_dtype
from gpukern.pycuda.declarations import parse_c_arg as parse_c_arg
from gpukern.pycuda.memory import DeviceAllocation, pagelocked_empty

_Called = TypeVar("_Called", bound=Callable[..., Any])

register_dtype = get_or_register_dtype


def get_arg_type(c_arg: str) -> str:
    """The letter of an argument in a format of struct."""
    return parse_c_arg(c_arg).struct_char


def get_default_device(default: int = 0) -> Device:
    """The device that the environment's CUDA_DEVICE names."""
    return Device(int(os.environ.get("CUDA_DEVICE", default)))


def make_default_context(ctx_maker: Callable[[Device], Context] | None = None) -> Context:
    """A context of get_default_device()."""
    device = get_default_device()
    return device.make_context() if ctx_maker is None else ctx_maker(device)


# what is kept -------------------------------------------------------------------------------------

_kept: list[dict[Any, Any]] = []


def context_dependent_memoize(function: _Called) -> _Called:
    """Keep what a function gives, by its arguments and the device of the thread."""
    results: dict[Any, Any] = {}
    _kept.append(results)

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        key = (Context.get_device().number, args, frozenset(named.items()))
        if key not in results:
            results[key] = function(*args, **named)
        return results[key]

    return call  # type: ignore[return-value]


def clear_context_caches() -> None:
    """Forget what context_dependent_memoize has kept."""
    for results in _kept:
        results.clear()


# pools --------------------------------------------------------------------------------------------


class PooledDeviceAllocation(DeviceAllocation):
    """Device memory of a pool."""


class DeviceMemoryPool:
    """Device memory by ``allocate(bytes)``.

    gpukern keeps the memory of all arrays for later ones, so a pool of its own holds none: it
    counts.
    """

    held_blocks = 0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: WeakSet[PooledDeviceAllocation] = WeakSet()

    def allocate(self, size: int) -> PooledDeviceAllocation:
        """So many bytes, of undefined values. Raises MemoryError."""
        if size < 1:
            raise ValueError(f"DeviceMemoryPool.allocate: takes bytes from 1 on, not {size}")
        allocation = PooledDeviceAllocation(_core.empty(int(size), "uint8"))
        with self._lock:
            self._active.add(allocation)
        return allocation

    @property
    def active_blocks(self) -> int:
        """The allocations that are in use."""
        with self._lock:
            return len(self._active)

    @property
    def active_bytes(self) -> int:
        """The bytes that are in use."""
        with self._lock:
            return sum(allocation.size for allocation in self._active)

    managed_bytes = active_bytes

    def free_held(self) -> None:
        """Give what gpukern keeps for later arrays back to the device."""
        _core.release_memory()

    stop_holding = free_held


class PageLockedMemoryPool:
    """Arrays on the host by ``allocate(shape, dtype)``, in pinned memory where they are large."""

    def allocate(self, shape: Any, dtype: Any, order: str = "C") -> npt.NDArray[Any]:
        """An array of undefined values."""
        return pagelocked_empty(shape, dtype, order)

    def free_held(self) -> None:
        """Give what gpukern keeps for later arrays back to the system."""
        _core.release_memory()

    stop_holding = free_held


# what a device has room for -----------------------------------------------------------------------


class DeviceData:
    """What a device has room for, by PyCUDA's names."""

    def __init__(self, dev: Device | None = None) -> None:
        have = (Context.get_device() if dev is None else dev).get_attributes()
        self.max_threads = have["MAX_THREADS_PER_BLOCK"]
        self.warp_size = have["WARP_SIZE"]
        self.shared_memory = have["MAX_SHARED_MEMORY_PER_BLOCK"]
        self.registers = have.get("MAX_REGISTERS_PER_BLOCK", 65536)
        per_multiprocessor = have.get("MAX_THREADS_PER_MULTIPROCESSOR", 2048)
        self.warps_per_mp = per_multiprocessor // self.warp_size
        self.thread_blocks_per_mp = have.get("MAX_BLOCKS_PER_MULTIPROCESSOR", 16)

    def align(self, bytes: int, word_size: int = 4) -> int:
        """Bytes up to a multiple at which rows of memory are read together."""
        multiple = self.align_bytes(word_size)
        return -(-bytes // multiple) * multiple

    def align_dtype(self, elements: int, dtype_size: int) -> int:
        """Elements up to such a multiple."""
        return self.align(elements * dtype_size, dtype_size) // dtype_size

    def align_words(self, word_size: int) -> int:
        """The words of such a multiple."""
        return self.align_bytes(word_size) // word_size

    def align_bytes(self, word_size: int = 4) -> int:
        """The bytes of such a multiple: of 16 threads."""
        return 16 * word_size

    def coalesce(self, thread_count: int) -> int:
        """Threads up to a multiple of half a warp."""
        return -(-thread_count // 16) * 16


def __getattr__(name: str) -> Any:
    cures = {
        "OccupancyRecord": "gpukern's kernels have occupancy(block) and suggest_block()",
        "DebugMemoryPool": "gpukern.profile() tells what is allocated where",
        "PageLockedAllocator": "PageLockedMemoryPool allocates",
        "mark_cuda_test": "a test needs no mark: a context is a device that a thread chose",
        "init_cuda_context_fixture": "a test needs no fixture: pycuda.autoinit does it",
    }
    if name in cures:
        raise AttributeError(f"pycuda.tools.{name} is left out: {cures[name]}")
    raise AttributeError(f"module 'pycuda.tools' has no attribute {name!r}")
