"""The sources in CUDA C++ that factories make of an expression and the dtypes of a call.

Contiguous arrays are walked as the built-in operations walk them: 256 threads a block, two vectors
of 16 bytes along each array a thread, all of them loaded before the first is stored.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpukern.kernels.declared import Declared, c_name

THREADS = 256
VECTORS = 2  # of a thread, along each array
_VECTOR_BYTES = 16


class Operand(NamedTuple):
    """A parameter in one source: what it is declared as, and what stands for it."""

    parameter: Declared
    dtype: np.dtype[Any]
    is_number: bool
    is_out: bool

    @property
    def name(self) -> str:
        """As it is declared."""
        return self.parameter.name

    @property
    def type(self) -> str:
        """Of an element, in CUDA C++."""
        return c_name(self.dtype)

    @property
    def is_walked(self) -> bool:
        """Whether each element is one of an array's."""
        return not self.is_number and not self.parameter.raw


_SUPPORT = """
namespace gk {
template <class gk_T, int gk_N> struct alignas(sizeof(gk_T) * gk_N) pack { gk_T at[gk_N]; };
template <class gk_T, int gk_N>
__device__ __forceinline__ void store(gk_T *to, const pack<gk_T, gk_N> &from) {
    if constexpr (sizeof(from) == 16) {
        uint4 bits;
        memcpy(&bits, &from, sizeof bits);
        __stcs(reinterpret_cast<uint4 *>(to), bits);
    } else {
        *reinterpret_cast<pack<gk_T, gk_N> *>(to) = from;
    }
}
template <class gk_T> struct raw {
    gk_T *data;
    long long count;
    __device__ __forceinline__ gk_T &operator[](long long i) const { return data[i]; }
    __device__ __forceinline__ long long size() const { return count; }
};
struct indices {
    long long count;
    __device__ __forceinline__ long long size() const { return count; }
};
template <int gk_ARRAYS> struct axes {
    long long ndim, length[8], stride[gk_ARRAYS][8];
};
template <class gk_I, int gk_ARRAYS>
__device__ __forceinline__ void
offsets(const axes<gk_ARRAYS> &in, gk_I i, long long (&at)[gk_ARRAYS]) {
#pragma unroll
    for (int k = 0; k < gk_ARRAYS; k++)
        at[k] = 0;
#pragma unroll 1
    for (int axis = (int)in.ndim - 1; axis >= 0; axis--) {
        gk_I length = (gk_I)in.length[axis], rest = axis > 0 ? i / length : 0;
        gk_I index = i - rest * length;
        i = rest;
#pragma unroll
        for (int k = 0; k < gk_ARRAYS; k++)
            at[k] += (long long)index * in.stride[k][axis];
    }
}
}
"""


def _half(header: str, kind: str) -> str:
    """What is ambiguous of it otherwise, since it converts to every number."""
    return f"""#include <{header}>
__device__ __forceinline__ {kind} max({kind} a, {kind} b) {{ return __hmax(a, b); }}
__device__ __forceinline__ {kind} min({kind} a, {kind} b) {{ return __hmin(a, b); }}
"""


_HEADERS = {
    "float16": _half("cuda_fp16.h", "__half"),
    "bfloat16": _half("cuda_bf16.h", "__nv_bfloat16"),
}


def head(operands: Sequence[Operand], types: dict[str, np.dtype[Any]], preamble: str) -> str:
    """What every source begins with: headers, what letters stand for, the user's preamble."""
    dtypes = {operand.dtype.name for operand in operands} | {dtype.name for dtype in types.values()}
    headers = "".join(text for name, text in _HEADERS.items() if name in dtypes)
    letters = "".join(f"using {letter} = {c_name(dtype)};\n" for letter, dtype in types.items())
    return f"{headers}{_SUPPORT}{letters}{preamble}\n"


def width_of(operands: Sequence[Operand]) -> int:
    """Elements of a vector: as many as the widest array has in 16 bytes."""
    sizes = [operand.dtype.itemsize for operand in operands if operand.is_walked]
    return _VECTOR_BYTES // max(sizes) if sizes else 1


def is_kept(operation: str) -> bool:
    """Whether an operation may leave an element as it is, or make it of what it was."""
    branches = r"\b(?:if|for|while|do|switch|return|goto)\b|&&|\|\|"
    return re.search(branches, operation) is not None


def declarations(operands: Sequence[Operand]) -> str:
    """The parameters of a kernel."""
    texts = []
    for operand in operands:
        constant = "" if operand.is_out else "const "
        if operand.is_number:
            texts.append(f"{operand.type} {operand.name}")
        else:
            texts.append(f"{constant}{operand.type} *{operand.name}")
        if operand.parameter.raw:
            texts.append(f"long long {operand.name}_size")
    return ", ".join(texts)


def formals(operands: Sequence[Operand]) -> str:
    """The parameters of the function of one element."""
    texts = []
    for operand in operands:
        constant = "" if operand.is_out else "const "
        if operand.parameter.raw:
            texts.append(f"gk::raw<{constant}{operand.type}> {operand.name}")
        elif operand.is_out:
            texts.append(f"{operand.type} &{operand.name}")
        else:
            texts.append(f"const {operand.type} {operand.name}")
    return ", ".join(texts)


def actuals(operands: Sequence[Operand], walked: str) -> str:
    """What that function is called with; ``walked`` is how an element of an array is had."""
    texts = []
    for operand in operands:
        if operand.parameter.raw:
            texts.append(f"{{{operand.name}, {operand.name}_size}}")
        elif operand.is_number:
            texts.append(operand.name)
        else:
            texts.append(walked.format(name=operand.name))
    return ", ".join(texts)


def _one_element(operands: Sequence[Operand], operation: str) -> str:
    indices = "    const gk::indices _ind{n};\n" if re.search(r"\b_ind\b", operation) else ""
    return (
        "__device__ __forceinline__ void\n"
        f"gk_one(long long i, long long n, {formals(operands)}) {{\n"
        f"{indices}    {operation};\n}}\n"
    )


def _wide(name: str, operands: Sequence[Operand], width: int) -> str:
    walked = [operand for operand in operands if operand.is_walked]
    packs = "".join(
        f"    gk::pack<{operand.type}, {width}> {operand.name}_gk[{VECTORS}];\n"
        for operand in walked
    )
    loads = "".join(
        f"            {o.name}_gk[gk_j] = *reinterpret_cast<const gk::pack<{o.type}, {width}> *>"
        f"({o.name} + i);\n"
        for o in walked
    )
    stores = "".join(
        f"            gk::store({operand.name} + i, {operand.name}_gk[gk_j]);\n"
        for operand in walked
        if operand.is_out
    )
    return f"""
extern "C" __global__ void __launch_bounds__({THREADS})
{name}({declarations(operands)}, long long n) {{
    const long long gk_first =
        ((long long)blockIdx.x * {VECTORS * THREADS} + threadIdx.x) * {width};
{packs}#pragma unroll
    for (int gk_j = 0; gk_j < {VECTORS}; gk_j++) {{
        long long i = gk_first + (long long)gk_j * {THREADS * width};
        if (i + {width} <= n) {{
{loads}        }}
    }}
#pragma unroll
    for (int gk_j = 0; gk_j < {VECTORS}; gk_j++) {{
        long long i = gk_first + (long long)gk_j * {THREADS * width};
        if (i + {width} <= n) {{
#pragma unroll
            for (int gk_k = 0; gk_k < {width}; gk_k++)
                gk_one(i + gk_k, n, {actuals(operands, "{name}_gk[gk_j].at[gk_k]")});
{stores}            continue;
        }}
#pragma unroll 1
        for (; i < n; i++)
            gk_one(i, n, {actuals(operands, "{name}[i]")});
    }}
}}
"""


def element_at(operand: Operand, number: int) -> str:
    """An element of an array, ``at[number]`` bytes behind its first."""
    constant, plain = ("", "char") if operand.is_out else ("const ", "const char")
    return (
        f"*reinterpret_cast<{constant}{operand.type} *>"
        f"(reinterpret_cast<{plain} *>({operand.name}) + gk_at[{number}])"
    )


def _strided(name: str, operands: Sequence[Operand], index: str) -> str:
    walked = [operand for operand in operands if operand.is_walked]
    elements = "".join(
        f"    {'' if operand.is_out else 'const '}{operand.type} &{operand.name}_gk = "
        f"{element_at(operand, number)};\n"
        for number, operand in enumerate(walked)
    )
    count = max(len(walked), 1)
    return f"""
extern "C" __global__ void __launch_bounds__({THREADS})
{name}({declarations(operands)}, gk::axes<{count}> gk_layout, {index} n) {{
    const {index} i = ({index})blockIdx.x * {THREADS} + threadIdx.x;
    if (i >= n)
        return;
    long long gk_at[{count}];
    gk::offsets<{index}, {count}>(gk_layout, i, gk_at);
{elements}    gk_one((long long)i, (long long)n, {actuals(operands, "{name}_gk")});
}}
"""


def elementwise(
    name: str,
    operands: Sequence[Operand],
    types: dict[str, np.dtype[Any]],
    operation: str,
    preamble: str,
) -> str:
    """Three kernels: ``name`` of contiguous arrays, and those of any strides, by 32-bit and by
    64-bit numbers."""
    return (
        head(operands, types, preamble)
        + _one_element(operands, operation)
        + _wide(name, operands, width_of(operands))
        + _strided(f"{name}_strided", operands, "unsigned")
        + _strided(f"{name}_strided_far", operands, "unsigned long long")
    )
