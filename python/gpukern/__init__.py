"""CUDA kernels, written in C, that run under NumPy arrays.

The elementwise operations (``add``, ``subtract``, ``multiply``, ``divide``, ``maximum``,
``minimum``, ``scale_add``, ``negative``, ``abs``, ``sqrt``, ``exp``, ``clip``, and the comparisons
``less``, ``less_equal``, ``greater``, ``greater_equal``, ``equal`` and ``not_equal``), the
reductions (``sum``, ``mean``, ``prod``, ``max``, ``min``, ``argmax``, ``argmin``, ``norm``,
``dot``), ``matmul`` and ``transpose`` take NumPy arrays, device arrays or any object with
``__cuda_array_interface__`` or ``__dlpack__``. On a machine without an NVIDIA GPU the same kernels
run on a CPU simulator, and one ``SimulatorWarning`` says so.
"""

from typing import TYPE_CHECKING, Any

try:
    from gpukern import _core
    from gpukern._core import *  # noqa: F403 (what _core.__all__ lists: the operations, say)
    from gpukern.machine import finding as _finding  # noqa: F401 (before any fork)
except (ImportError, RuntimeError) as error:
    from gpukern.machine import install

    # The command runs on: its doctor says what is broken.
    if not install.is_command():
        raise ImportError(install.sentence(error)) from error

if TYPE_CHECKING:
    from gpukern.bench.comparison import Comparison as Comparison
    from gpukern.bench.comparison import compare as compare
    from gpukern.bench.contenders.registry import contender as contender
    from gpukern.catalogue import variants as variants
    from gpukern.creation import arange as arange
    from gpukern.creation import asarray as asarray
    from gpukern.creation import empty_like as empty_like
    from gpukern.creation import full as full
    from gpukern.creation import full_like as full_like
    from gpukern.creation import ones as ones
    from gpukern.creation import ones_like as ones_like
    from gpukern.creation import zeros as zeros
    from gpukern.creation import zeros_like as zeros_like
    from gpukern.frameworks.offer import as_jax as as_jax
    from gpukern.frameworks.offer import as_torch_op as as_torch_op
    from gpukern.kernels.checking import check as check
    from gpukern.kernels.compiling import compile as compile
    from gpukern.kernels.diagnostics import CompileError as CompileError
    from gpukern.kernels.elementwise import ElementwiseKernel as ElementwiseKernel
    from gpukern.kernels.elementwise import elementwise as elementwise
    from gpukern.kernels.elementwise import vectorize as vectorize
    from gpukern.kernels.raw import RawKernel as RawKernel
    from gpukern.kernels.raw import RawModule as RawModule
    from gpukern.kernels.reduction import ReductionKernel as ReductionKernel
    from gpukern.kernels.reduction import reduction as reduction
    from gpukern.machine.devices import device_info as device_info
    from gpukern.profiling import Timer as Timer
    from gpukern.profiling import profile as profile
    from gpukern.profiling import strict as strict
    from gpukern.settings import device as device
    from gpukern.settings import limits as limits

    __version__: str

__all__ = [
    "Comparison",
    "CompileError",
    "ElementwiseKernel",
    "RawKernel",
    "RawModule",
    "ReductionKernel",
    "Timer",
    "arange",
    "as_jax",
    "as_torch_op",
    "asarray",
    "check",
    "compare",
    "compile",
    "contender",
    "device",
    "device_info",
    "elementwise",
    "empty_like",
    "full",
    "full_like",
    "limits",
    "ones",
    "ones_like",
    "profile",
    "reduction",
    "strict",
    "variants",
    "vectorize",
    "zeros",
    "zeros_like",
]
if "_core" in globals():
    __all__ += _core.__all__

# Imported when first used, so that `import gpukern` stays a few milliseconds. The files beside this
# one are what users import; `bench` holds the comparison, `machine` what is here and what is wrong
# with it, `text` how people read it.
_LAZY = {
    "Comparison": "gpukern.bench.comparison",
    "CompileError": "gpukern.kernels.diagnostics",
    "ElementwiseKernel": "gpukern.kernels.elementwise",
    "RawKernel": "gpukern.kernels.raw",
    "RawModule": "gpukern.kernels.raw",
    "ReductionKernel": "gpukern.kernels.reduction",
    "Timer": "gpukern.profiling",
    "arange": "gpukern.creation",
    "as_jax": "gpukern.frameworks.offer",
    "as_torch_op": "gpukern.frameworks.offer",
    "asarray": "gpukern.creation",
    "check": "gpukern.kernels.checking",
    "compare": "gpukern.bench.comparison",
    "compile": "gpukern.kernels.compiling",
    "contender": "gpukern.bench.contenders.registry",
    "device": "gpukern.settings",
    "device_info": "gpukern.machine.devices",
    "elementwise": "gpukern.kernels.elementwise",
    "empty_like": "gpukern.creation",
    "full": "gpukern.creation",
    "full_like": "gpukern.creation",
    "limits": "gpukern.settings",
    "load_ipython_extension": "gpukern.notebook",
    "ones": "gpukern.creation",
    "ones_like": "gpukern.creation",
    "profile": "gpukern.profiling",
    "reduction": "gpukern.kernels.reduction",
    "strict": "gpukern.profiling",
    "variants": "gpukern.catalogue",
    "vectorize": "gpukern.kernels.elementwise",
    "zeros": "gpukern.creation",
    "zeros_like": "gpukern.creation",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("gpukern")
    elif name in _LAZY:
        from importlib import import_module

        value = getattr(import_module(_LAZY[name]), name)
    else:
        raise AttributeError(f"module 'gpukern' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
