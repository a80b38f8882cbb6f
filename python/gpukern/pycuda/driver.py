"""pycuda.driver: devices, memory, streams and what kernels are given."""

import builtins
from typing import Any

from gpukern import _core
from gpukern.kernels.diagnostics import CompileError as CompileError
from gpukern.pycuda.arguments import ArgumentHandler as ArgumentHandler
from gpukern.pycuda.arguments import In as In
from gpukern.pycuda.arguments import InOut as InOut
from gpukern.pycuda.arguments import Out as Out
from gpukern.pycuda.contexts import Context as Context
from gpukern.pycuda.contexts import Device as Device
from gpukern.pycuda.contexts import device_attribute as device_attribute
from gpukern.pycuda.contexts import get_driver_version as get_driver_version
from gpukern.pycuda.contexts import get_version as get_version
from gpukern.pycuda.contexts import init as init
from gpukern.pycuda.contexts import mem_get_info as mem_get_info
from gpukern.pycuda.functions import Function as Function
from gpukern.pycuda.functions import function_attribute as function_attribute
from gpukern.pycuda.memory import DeviceAllocation as DeviceAllocation
from gpukern.pycuda.memory import from_device as from_device
from gpukern.pycuda.memory import from_device_like as from_device_like
from gpukern.pycuda.memory import mem_alloc as mem_alloc
from gpukern.pycuda.memory import mem_alloc_like as mem_alloc_like
from gpukern.pycuda.memory import mem_alloc_pitch as mem_alloc_pitch
from gpukern.pycuda.memory import memcpy_dtod as memcpy_dtod
from gpukern.pycuda.memory import memcpy_dtod_async as memcpy_dtod_async
from gpukern.pycuda.memory import memcpy_dtoh as memcpy_dtoh
from gpukern.pycuda.memory import memcpy_dtoh_async as memcpy_dtoh_async
from gpukern.pycuda.memory import memcpy_htod as memcpy_htod
from gpukern.pycuda.memory import memcpy_htod_async as memcpy_htod_async
from gpukern.pycuda.memory import memset_d8 as memset_d8
from gpukern.pycuda.memory import memset_d16 as memset_d16
from gpukern.pycuda.memory import memset_d32 as memset_d32
from gpukern.pycuda.memory import pagelocked_empty as pagelocked_empty
from gpukern.pycuda.memory import pagelocked_empty_like as pagelocked_empty_like
from gpukern.pycuda.memory import pagelocked_zeros as pagelocked_zeros
from gpukern.pycuda.memory import pagelocked_zeros_like as pagelocked_zeros_like
from gpukern.pycuda.memory import to_device as to_device
from gpukern.pycuda.streams import Event as Event
from gpukern.pycuda.streams import Stream as Stream

# PyCUDA's errors, as gpukern raises them.
Error = _core.CudaError
LogicError = _core.CudaError
RuntimeError = _core.CudaError
LaunchError = _core.DeviceLostError
MemoryError = builtins.MemoryError


class ctx_flags:
    """What make_context() takes; how the host waits is left to the driver."""

    SCHED_AUTO, SCHED_SPIN, SCHED_YIELD, SCHED_BLOCKING_SYNC = 0, 1, 2, 4
    MAP_HOST, LMEM_RESIZE_TO_MAX = 8, 16


class event_flags:
    """What Event() takes."""

    DEFAULT, BLOCKING_SYNC, DISABLE_TIMING, INTERPROCESS = 0, 1, 2, 4


class func_cache:
    """What set_cache_config() takes."""

    PREFER_NONE, PREFER_SHARED, PREFER_L1, PREFER_EQUAL = 0, 1, 2, 3


_TEXTURES = (
    "texture references are no longer part of CUDA, since 12.0; give the kernel the array and read "
    "it with __ldg(&array[i])"
)
_MODULES = "pycuda.compiler.SourceModule compiles a source; gpukern.compile(path=...) loads a cubin"
_MAPPED = "a kernel takes an array on the host with InOut(array), or gpuarray.to_gpu(array)"
_COPIES = "GPUArray slices copy strided memory: a[1:3, ::2] = b"
_LEFT_OUT = {
    **dict.fromkeys(
        [
            *("Array", "ArrayDescriptor", "ArrayDescriptor3D", "TextureReference"),
            *("SurfaceReference", "array_format", "address_mode", "filter_mode"),
            *("TRSA_OVERRIDE_FORMAT", "TRSF_READ_AS_INTEGER", "TRSF_NORMALIZED_COORDINATES"),
            *("matrix_to_array", "np_to_array", "gpuarray_to_array", "bind_array_to_texref"),
            *("matrix_to_texref", "make_multichannel_2d_array", "texture_from_array"),
        ],
        _TEXTURES,
    ),
    **dict.fromkeys(
        ["module_from_file", "module_from_buffer", "Module", "Linker", "jit_option"], _MODULES
    ),
    **dict.fromkeys(
        [
            *("managed_empty", "managed_zeros", "managed_empty_like", "managed_zeros_like"),
            *("register_host_memory", "host_alloc_flags", "mem_attach_flags", "aligned_empty"),
            *(
                "aligned_zeros",
                "aligned_empty_like",
                "aligned_zeros_like",
                "mem_host_register_flags",
            ),
        ],
        _MAPPED,
    ),
    **dict.fromkeys(["Memcpy2D", "Memcpy3D", "Memcpy3DPeer", "memcpy_peer"], _COPIES),
    **dict.fromkeys(
        ["initialize_profiler", "start_profiler", "stop_profiler"],
        "gpukern.profile() tells what each call took; nsys and ncu start by themselves",
    ),
    "IPCMemoryHandle": "arrays go between processes through the host, or with PyTorch's queues",
    "limit": "the driver's limits are left as they are",
}


def __getattr__(name: str) -> Any:
    if name in _LEFT_OUT:
        raise AttributeError(f"pycuda.driver.{name} is left out: {_LEFT_OUT[name]}")
    raise AttributeError(f"module 'pycuda.driver' has no attribute {name!r}")
