"""Operations on arrays, one element after the other: kernels made for the dtypes that come."""

from functools import lru_cache
from typing import Any

import numpy as np

from gpukern.kernels.module import Kernel
from gpukern.pycuda.declarations import dtype_to_ctype
from gpukern.pycuda.expressions import BLOCK, blocks_for, element_kernel
from gpukern.pycuda.launching import launch
from gpukern.pycuda.layout import Laid

# What C has no word for that does the same for every dtype.
_HELPERS = """
template <class T> static __device__ T pycuda_power(T x, T y) {
    T result = 1;
    for (; y > 0; y /= 2, x *= x)
        if (y % 2) result *= x;
    return y < 0 ? (x == 1 ? T(1) : T(0)) : result;
}
static __device__ float pycuda_power(float x, float y) { return powf(x, y); }
static __device__ double pycuda_power(double x, double y) { return pow(x, y); }
template <class T> static __device__ pycuda::complex<T> pycuda_power(pycuda::complex<T> x,
                                                                     pycuda::complex<T> y) {
    return pow(x, y);
}
"""


def apply(
    operation: str, outputs: dict[str, Any], inputs: dict[str, Any], stream: Any = None
) -> None:
    """Run an operation in C for every element of arrays that lie alike.

    ``outputs`` are arrays, which the operation writes as ``name[i]``. ``inputs`` are arrays, or
    pairs of a number or an array and the dtype that it is converted to; each is a variable of that
    name.
    """
    written = tuple((name, array.dtype) for name, array in outputs.items())
    read: list[tuple[str, Any, Any, str]] = []
    values: list[Any] = list(outputs.values())
    for name, given in inputs.items():
        value, dtype = given if isinstance(given, tuple) else (given, given.dtype)
        if isinstance(value, Laid):
            read.append((name, dtype, value.dtype, "i" if value.shape else "0"))
            values.append(value)
        else:
            read.append((name, dtype, None, ""))
            values.append(dtype.type(value))
    count = values[0].size
    if count:
        kernel = _kernel(operation, written, tuple(read))
        launch(kernel, blocks_for(count), BLOCK, (*values, count), stream)


@lru_cache(maxsize=4096)
def _kernel(
    operation: str,
    written: tuple[tuple[str, np.dtype[Any]], ...],
    read: tuple[tuple[str, np.dtype[Any], np.dtype[Any] | None, str], ...],
) -> Kernel:
    """The kernel of an operation: by name the dtypes of what it writes, and of what it reads the
    dtype of the variable, that of the array (None: it is a number) and which element it is."""
    declared = [f"{dtype_to_ctype(dtype)} *{name}" for name, dtype in written]
    lines = []
    for name, dtype, held, place in read:
        ctype = dtype_to_ctype(dtype)
        if held is None:
            declared.append(f"{ctype} {name}")
            continue
        declared.append(f"const {dtype_to_ctype(held)} *{name}_")
        lines.append(f"const {ctype} {name} = ({ctype}){name}_[{place}];")
    return element_kernel(tuple(declared), "\n        ".join([*lines, operation]), _HELPERS)
