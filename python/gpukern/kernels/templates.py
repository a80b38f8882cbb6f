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
VECTOR_BYTES = 16


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
    long long ndim, length[8];
    unsigned multiplier[8], shift[8];
    long long stride[gk_ARRAYS][8];
};
template <int gk_ARRAYS>
__device__ __forceinline__ unsigned divide(const axes<gk_ARRAYS> &in, unsigned i, int axis) {
    return (__umulhi(i, in.multiplier[axis]) + i) >> in.shift[axis];
}
template <int gk_ARRAYS>
__device__ __forceinline__ unsigned long long
divide(const axes<gk_ARRAYS> &in, unsigned long long i, int axis) {
    return i / (unsigned long long)in.length[axis];
}
template <class gk_I, int gk_ARRAYS>
__device__ __forceinline__ gk_I
offsets(const axes<gk_ARRAYS> &in, gk_I i, long long (&at)[gk_ARRAYS]) {
    gk_I innermost = 0;
#pragma unroll
    for (int k = 0; k < gk_ARRAYS; k++)
        at[k] = 0;
#pragma unroll 1
    for (int axis = (int)in.ndim - 1; axis >= 0; axis--) {
        gk_I rest = axis > 0 ? divide(in, i, axis) : 0;
        gk_I index = i - rest * (gk_I)in.length[axis];
        if (axis == (int)in.ndim - 1)
            innermost = index;
        i = rest;
#pragma unroll
        for (int k = 0; k < gk_ARRAYS; k++)
            at[k] += (long long)index * in.stride[k][axis];
    }
    return innermost;
}
template <int gk_ARRAYS> struct rows {
    axes<gk_ARRAYS> vectors;
    long long inner, between, apart, step[gk_ARRAYS], way[gk_ARRAYS];
};
enum { ONE_BY_ONE, VECTOR, SAME };
template <class gk_T> __device__ __forceinline__ gk_T &element(gk_T *first, long long at) {
    return *reinterpret_cast<gk_T *>(reinterpret_cast<char *>(first) + at);
}
template <class gk_T>
__device__ __forceinline__ const gk_T &element(const gk_T *first, long long at) {
    return *reinterpret_cast<const gk_T *>(reinterpret_cast<const char *>(first) + at);
}
template <class gk_T, int gk_N, int gk_ARRAYS>
__device__ __forceinline__ void take(pack<gk_T, gk_N> &to, const gk_T *first, long long at,
                                     const rows<gk_ARRAYS> &in, int array) {
    const int way = (int)in.way[array];
    if (way == VECTOR) {
        to = reinterpret_cast<const pack<gk_T, gk_N> &>(element(first, at));
        return;
    }
    to.at[0] = element(first, at);
    if (way == SAME)
        return;
#pragma unroll
    for (int k = 1; k < gk_N; k++)
        to.at[k] = element(first, at + k * in.step[array]);
}
template <class gk_T, int gk_N, int gk_ARRAYS>
__device__ __forceinline__ void spread(pack<gk_T, gk_N> &taken, const rows<gk_ARRAYS> &in,
                                       int array) {
    if ((int)in.way[array] == SAME) {
#pragma unroll
        for (int k = 1; k < gk_N; k++)
            taken.at[k] = taken.at[0];
    }
}
template <class gk_T, int gk_N, int gk_ARRAYS>
__device__ __forceinline__ void put(gk_T *first, long long at, const pack<gk_T, gk_N> &from,
                                    const rows<gk_ARRAYS> &in, int array) {
    if ((int)in.way[array] == VECTOR) {
        store(&element(first, at), from);
    } else {
#pragma unroll
        for (int k = 0; k < gk_N; k++)
            element(first, at + k * in.step[array]) = from.at[k];
    }
}
}
"""


_HALVES = {
    "float16": ("cuda_fp16.h", "__half"),
    "bfloat16": ("cuda_bf16.h", "__nv_bfloat16"),
}
# What a half and another number are calculated in.
_BESIDE_HALF = """
namespace gk {
template <class gk_N> struct beside_half {};
template <> struct beside_half<bool> { using type = float; };
template <> struct beside_half<char> { using type = float; };
template <> struct beside_half<signed char> { using type = float; };
template <> struct beside_half<unsigned char> { using type = float; };
template <> struct beside_half<short> { using type = float; };
template <> struct beside_half<unsigned short> { using type = float; };
template <> struct beside_half<int> { using type = float; };
template <> struct beside_half<unsigned> { using type = float; };
template <> struct beside_half<long> { using type = float; };
template <> struct beside_half<unsigned long> { using type = float; };
template <> struct beside_half<long long> { using type = float; };
template <> struct beside_half<unsigned long long> { using type = float; };
template <> struct beside_half<float> { using type = float; };
template <> struct beside_half<double> { using type = double; };
template <class gk_N> using beside = typename beside_half<gk_N>::type;
template <class gk_N> using truth = decltype(beside<gk_N>() == 0);
template <class gk_T, class gk_H, class gk_R> struct of_half {};
template <class gk_H, class gk_R> struct of_half<gk_H, gk_H, gk_R> { using type = gk_R; };
}
"""


def _half(kind: str) -> str:
    """What is ambiguous of a half otherwise, since it converts to every number. Most are templates,
    so that a preamble's own come first."""
    texts = [
        f"__device__ __forceinline__ {kind} max({kind} a, {kind} b) {{ return __hmax(a, b); }}",
        f"__device__ __forceinline__ {kind} min({kind} a, {kind} b) {{ return __hmin(a, b); }}",
        _of_half(kind, kind, "abs(gk_T a)", "__habs(a)"),
        _of_half(kind, "float", "pow(gk_T a, gk_T b)", "powf(float(a), float(b))"),
    ]
    texts += [
        _of_half(kind, "bool", f"{name}(gk_T a)", f"{name}(float(a))")
        for name in ("isnan", "isinf", "isfinite", "signbit")
    ]
    texts += [_mixed(kind, "beside", f"operator{sign}", f"a {sign} b") for sign in "+-*/"]
    texts += [
        _mixed(kind, "truth", f"operator{sign}", f"a {sign} b")
        for sign in ("==", "!=", "<", "<=", ">", ">=")
    ]
    texts += [_mixed(kind, "beside", name, f"{name}(a, b)") for name in ("max", "min")]
    return "\n".join([*texts, ""])


def _of_half(kind: str, result: str, declared: str, value: str) -> str:
    """A function of halves alone: nothing is converted to one for it."""
    return (
        "template <class gk_T> __device__ __forceinline__ "
        f"typename gk::of_half<gk_T, {kind}, {result}>::type\n{declared} {{ return {value}; }}"
    )


def _mixed(kind: str, result: str, name: str, value: str) -> str:
    """A function of a half and another number, in both orders."""
    return "\n".join(
        f"template <class gk_N> __device__ __forceinline__ gk::{result}<gk_N>\n"
        f"{name}({first} gk_a, {second} gk_b) {{\n"
        f"    const gk::beside<gk_N> a(gk_a), b(gk_b);\n"
        f"    return {value};\n}}"
        for first, second in ((kind, "gk_N"), ("gk_N", kind))
    )


def head(operands: Sequence[Operand], types: dict[str, np.dtype[Any]], preamble: str) -> str:
    """What every source begins with: headers, what letters stand for, the user's preamble."""
    dtypes = {operand.dtype.name for operand in operands} | {dtype.name for dtype in types.values()}
    halves = [half for name, half in _HALVES.items() if name in dtypes]
    headers = "".join(f"#include <{header}>\n" for header, _ in halves)
    headers += _BESIDE_HALF * bool(halves) + "".join(_half(kind) for _, kind in halves)
    letters = "".join(f"using {letter} = {c_name(dtype)};\n" for letter, dtype in types.items())
    return f"{headers}{_SUPPORT}{letters}{preamble}\n"


def width_of(operands: Sequence[Operand]) -> int:
    """Elements of a vector: as many as the widest array has in 16 bytes."""
    sizes = [operand.dtype.itemsize for operand in operands if operand.is_walked]
    return VECTOR_BYTES // max(sizes) if sizes else 1


def is_kept(operation: str) -> bool:
    """Whether an operation may leave an element as it is, or make it of what it was."""
    branches = r"\b(?:if|for|while|do|switch|return|goto)\b|&&|\|\|"
    return re.search(branches, operation) is not None


def is_numbered(operation: str, preamble: str) -> bool:
    """Whether an operation may use the number of its element."""
    return re.search(r"\bi\b", f"{operation}\n{preamble}") is not None


def is_placed(operation: str, preamble: str) -> bool:
    """Whether it may use where an element stands among the others, or the threads of the device."""
    words = r"\b(?:i|n|_ind|gridDim|blockDim|blockIdx|threadIdx)\b"
    return re.search(words, f"{operation}\n{preamble}") is not None


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
        // What is left behind the last whole vector: those that are none share it out.
        const long long gk_whole = n - n % {width};
        const long long gk_end = (long long)gridDim.x * {VECTORS * THREADS * width};
#pragma unroll 1
        for (i = gk_whole + (i - gk_whole) / {width}; i < n; i += (gk_end - gk_whole) / {width})
            gk_one(i, n, {actuals(operands, "{name}[i]")});
    }}
}}
"""


class Walk(NamedTuple):
    """What a kernel with a ``gk_layout`` of ``gk::rows`` does with each vector: its texts speak of
    vector ``gk_j``, which begins ``gk_at`` bytes behind the first elements, and its element
    ``gk_k``. ``named``: the last array of the layout is none, but the elements' own numbers."""

    operands: Sequence[Operand]
    width: int
    named: bool

    @property
    def walked(self) -> list[Operand]:
        """The arrays of the layout."""
        return [operand for operand in self.operands if operand.is_walked]

    @property
    def arrays(self) -> int:
        """How many the layout has."""
        return max(len(self.walked) + self.named, 1)

    @property
    def number(self) -> str:
        """That of the element."""
        last = self.arrays - 1
        return f"gk_at[gk_j][{last}] + gk_k * gk_layout.step[{last}]" if self.named else "0"

    @property
    def of_vectors(self) -> str:
        """The elements in what was loaded."""
        return actuals(self.operands, "{name}_gk[gk_j].at[gk_k]")

    @property
    def of_elements(self) -> str:
        """Those in memory, by their references."""
        return actuals(self.operands, "{name}_gk_single")

    def packs(self, count: int) -> str:
        """Room for so many vectors of each array."""
        return "".join(
            f"    gk::pack<{o.type}, {self.width}> {o.name}_gk[{count}];\n" for o in self.walked
        )

    def loads(self, written: bool = False) -> str:
        """The vectors of what is read, or those of what is written, which have an old value."""
        return "".join(
            f"            gk::take({o.name}_gk[gk_j], {o.name}, gk_at[gk_j][{k}], "
            f"gk_layout, {k});\n"
            for k, o in enumerate(self.walked)
            if o.is_out == written
        )

    def spreads(self) -> str:
        """What makes vectors of the elements that were loaded once. It waits for them, and stands
        behind all loads."""
        return "".join(
            f"            gk::spread({o.name}_gk[gk_j], gk_layout, {k});\n"
            for k, o in enumerate(self.walked)
            if not o.is_out
        )

    def stores(self) -> str:
        """The vectors of what is written."""
        return "".join(
            f"            gk::put({o.name}, gk_at[gk_j][{k}], {o.name}_gk[gk_j], gk_layout, {k});\n"
            for k, o in enumerate(self.walked)
            if o.is_out
        )

    def references(self) -> str:
        """To the elements, where they lie."""
        return "".join(
            f"            {'' if o.is_out else 'const '}{o.type} &{o.name}_gk_single = gk::element("
            f"{o.name}, gk_at[gk_j][{k}] + gk_k * gk_layout.step[{k}]);\n"
            for k, o in enumerate(self.walked)
        )


def _strided(name: str, walk: Walk, index: str) -> str:
    """By vectors along the last axis, each array in the way that it allows. What is written is
    loaded where it is written, so that the compiler sees whether what it was is used at all. A
    vector that is not whole is done with at once, so that nothing is kept for it."""
    width, count = walk.width, walk.arrays
    return f"""
extern "C" __global__ void __launch_bounds__({THREADS})
{name}({declarations(walk.operands)}, gk::rows<{count}> gk_layout, {index} gk_vectors,
       long long n) {{
    const {index} gk_first = ({index})blockIdx.x * {VECTORS * THREADS} + threadIdx.x;
    const {index} gk_inner = ({index})gk_layout.inner, gk_apart = ({index})gk_layout.apart;
    long long gk_at[{VECTORS}][{count}];
    bool gk_is_whole[{VECTORS}];
{walk.packs(VECTORS)}#pragma unroll
    for (int gk_j = 0; gk_j < {VECTORS}; gk_j++) {{
        const {index} gk_vector = gk_first + gk_j * {THREADS};
        gk_is_whole[gk_j] = false;
        if (gk_vector >= gk_vectors)
            continue;
        {index} gk_place = gk::offsets(gk_layout.vectors, gk_vector, gk_at[gk_j]) *
            ({index})gk_layout.between;
        gk_is_whole[gk_j] = gk_place + {width - 1} * gk_apart < gk_inner;
        if (gk_is_whole[gk_j]) {{
{walk.loads()}            continue;
        }}
#pragma unroll 1
        for (int gk_k = 0; gk_place < gk_inner; gk_k++, gk_place += gk_apart) {{
{walk.references()}            gk_one({walk.number}, n, {walk.of_elements});
        }}
    }}
#pragma unroll
    for (int gk_j = 0; gk_j < {VECTORS}; gk_j++) {{
        if (gk_is_whole[gk_j]) {{
{walk.loads(written=True)}{walk.spreads()}#pragma unroll
            for (int gk_k = 0; gk_k < {width}; gk_k++)
                gk_one({walk.number}, n, {walk.of_vectors});
{walk.stores()}        }}
    }}
}}
"""


def elementwise(
    name: str,
    operands: Sequence[Operand],
    types: dict[str, np.dtype[Any]],
    operation: str,
    preamble: str,
) -> str:
    """Three kernels: of contiguous arrays, and those of any strides, by vectors and 32-bit
    numbers, and by elements and 64-bit numbers."""
    named = is_numbered(operation, preamble)
    return (
        head(operands, types, preamble)
        + _one_element(operands, operation)
        + _wide(f"{name}_flat", operands, width_of(operands))
        + _strided(f"{name}_strided", Walk(operands, width_of(operands), named), "unsigned")
        + _strided(f"{name}_strided_far", Walk(operands, 1, named), "unsigned long long")
    )
