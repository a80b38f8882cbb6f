"""pycuda.characterize: what the compiler and the device can do."""

from typing import Any

import numpy as np

from gpukern.pycuda.compiler import SourceModule
from gpukern.pycuda.gpuarray import empty
from gpukern.pycuda.tools import context_dependent_memoize


def platform_bits() -> int:
    """The bits of an address."""
    return 64


def has_stack() -> bool:
    """Whether kernels may recurse: every device that runs them here."""
    return True


def has_double_support() -> bool:
    """Whether kernels may use double: every device that runs them here."""
    return True


@context_dependent_memoize
def sizeof(type_name: str, preamble: str = "") -> int:
    """The bytes of a type, as the compiler has it."""
    source = f"{preamble}\n__global__ void size(size_t *bytes) {{ *bytes = sizeof({type_name}); }}"
    module: Any = SourceModule(source, no_extern_c=True)
    output = empty((), np.uintp)
    module.get_function("size")(output, block=(1, 1, 1))
    return int(output.get())
