"""CUDA kernels, written in C, that run under NumPy arrays.

The elementwise operations (``add``, ``subtract``, ``multiply``, ``divide``, ``maximum``,
``minimum``, ``less``, ``scale_add``, ``negative``, ``abs``, ``sqrt``, ``exp``, ``clip``), the
reductions (``sum``, ``mean``, ``prod``, ``max``, ``min``, ``argmax``, ``argmin``, ``norm``,
``dot``), ``matmul`` and ``transpose`` take NumPy arrays, device arrays or any object with
``__cuda_array_interface__`` or ``__dlpack__``. On a machine without an NVIDIA GPU the same kernels
run on a CPU simulator, and one ``SimulatorWarning`` says so.
"""

from typing import TYPE_CHECKING, Any

try:
    from gpukern import _core
    from gpukern._core import *  # noqa: F403 (what _core.__all__ lists: the operations, say)
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
    from gpukern.machine.devices import device_info as device_info
    from gpukern.profiling import Timer as Timer
    from gpukern.profiling import profile as profile
    from gpukern.profiling import strict as strict
    from gpukern.settings import device as device
    from gpukern.settings import limits as limits

    __version__: str

__all__ = [
    "Comparison",
    "Timer",
    "compare",
    "contender",
    "device",
    "device_info",
    "limits",
    "profile",
    "strict",
    "variants",
]
if "_core" in globals():
    __all__ += _core.__all__

# Imported when first used, so that `import gpukern` stays a few milliseconds. The files beside this
# one are what users import; `bench` holds the comparison, `machine` what is here and what is wrong
# with it, `text` how people read it.
_LAZY = {
    "Comparison": "gpukern.bench.comparison",
    "Timer": "gpukern.profiling",
    "compare": "gpukern.bench.comparison",
    "contender": "gpukern.bench.contenders.registry",
    "device": "gpukern.settings",
    "device_info": "gpukern.machine.devices",
    "limits": "gpukern.settings",
    "profile": "gpukern.profiling",
    "strict": "gpukern.profiling",
    "variants": "gpukern.catalogue",
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
