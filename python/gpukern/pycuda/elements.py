"""Operations on arrays, one element after the other: kernels made for the dtypes that come."""

from typing import Any

import numpy as np

from gpukern.pycuda import streams
from gpukern.pycuda.arguments import adapted
from gpukern.pycuda.declarations import dtype_to_ctype
from gpukern.pycuda.expressions import BLOCK, blocks_for, element_kernel

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


def scalar_of(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number as an argument of a dtype."""
    return dtype.type(value)


def apply(
    operation: str, outputs: dict[str, Any], inputs: dict[str, Any], stream: Any = None
) -> None:
    """Run an operation in C for every element of arrays that lie alike.

    ``outputs`` are arrays, which the operation writes as ``name[i]``. ``inputs`` are arrays, or
    pairs of a number or an array and the dtype that it is converted to; each is a variable of that
    name.
    """
    declared = [f"{dtype_to_ctype(array.dtype)} *{name}" for name, array in outputs.items()]
    values: list[Any] = list(outputs.values())
    reads = []
    for name, given in inputs.items():
        value, dtype = given if isinstance(given, tuple) else (given, given.dtype)
        ctype = dtype_to_ctype(dtype)
        if not hasattr(value, "gpudata"):
            declared.append(f"{ctype} {name}")
            values.append(scalar_of(value, dtype))
            continue
        place = "0" if value.shape == () else "i"
        declared.append(f"const {dtype_to_ctype(value.dtype)} *{name}_")
        values.append(value)
        reads.append(f"const {ctype} {name} = ({ctype}){name}_[{place}];")
    count = next(iter(outputs.values())).size
    kernel = element_kernel(tuple(declared), "\n        ".join([*reads, operation]), _HELPERS)
    launch(kernel, (*values, count), count, stream)


def launch(kernel: Any, values: tuple[Any, ...], count: int, stream: Any) -> None:
    """Run a kernel for so many elements; none is run for none."""
    if count == 0:
        return
    given = adapted(kernel, values)
    chosen = streams.given(stream)
    if chosen is None:
        streams.settle()
    kernel(blocks_for(count), BLOCK, *given, stream=chosen)
    streams.used(chosen, given)
