"""The source in CUDA C++ of a reduction: what is made of each element, joined, and made a result.

A first kernel leaves a value for each result and segment of what is reduced, a second one joins the
segments. Threads stand side by side along results, as many as ``across``, and along what is
reduced, and are joined in shared memory. The order depends on shapes and strides alone.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpukern.kernels import templates
from gpukern.kernels.templates import THREADS, Operand

STATE_BYTES = 64  # that are carried of what is reduced, at most
LOADS = 4  # vectors of a thread, along each array, that are under way at once


def _states(kind: str, expression: str, identity: str | None) -> str:
    """What is carried: a value, and where nothing stands for none whether there is one."""
    join = f"""
using gk_value = {kind};__device__ __forceinline__ gk_value gk_reduce(gk_value a, gk_value b) {{
    return {expression};
}}
"""
    if identity is not None:
        return f"""{join}
struct gk_state {{ gk_value value; }};
__device__ __forceinline__ gk_state gk_none() {{ return {{gk_value({identity})}}; }}
__device__ __forceinline__ gk_state gk_some(gk_value value) {{ return {{value}}; }}
__device__ __forceinline__ gk_state gk_join(gk_state a, gk_state b) {{
    return {{gk_reduce(a.value, b.value)}};
}}
"""
    return f"""{join}
struct gk_state {{ gk_value value; bool is_there; }};
__device__ __forceinline__ gk_state gk_none() {{ return {{gk_value(), false}}; }}
__device__ __forceinline__ gk_state gk_some(gk_value value) {{ return {{value, true}}; }}
__device__ __forceinline__ gk_state gk_join(gk_state a, gk_state b) {{
    if (!a.is_there || !b.is_there)
        return a.is_there ? a : b;
    return {{gk_reduce(a.value, b.value), true}};
}}
"""


def _joined(identity: str | None) -> str:
    """The threads of a block: those `across` apart are of one result. Values and what tells of them
    lie in arrays of their own, since between them in one there are bytes that nobody writes; and
    shared memory holds nothing that has a constructor."""
    told, keep, take = "", "value[own] = state.value;", "gk_some(value[own + step])"
    if identity is None:
        told = f"    __shared__ bool is_there[{THREADS}];\n"
        keep = "is_there[own] = state.is_there; if (state.is_there) value[own] = state.value;"
        take = f"is_there[own + step] ? {take} : gk_none()"
    return f"""
static_assert(sizeof(gk_state) <= {STATE_BYTES}, "a reduction carries {STATE_BYTES} bytes at most");
struct gk_bytes {{ alignas(gk_value) unsigned char at[sizeof(gk_value)]; }};
__device__ __forceinline__ gk_state gk_in_block(gk_state state, unsigned across) {{
    __shared__ gk_bytes room[{THREADS}];
    gk_value *value = reinterpret_cast<gk_value *>(room);
{told}    const unsigned own = threadIdx.x;
    {keep}
    __syncthreads();
    for (unsigned step = {THREADS} / 2; step >= across; step /= 2) {{
        if (own < step) {{
            state = gk_join(state, {take});
            {keep}
        }}
        __syncthreads();
    }}
    return state;
}}
"""


def _map(operands: Sequence[Operand], expression: str) -> str:
    return f"""
__device__ __forceinline__ gk_value
gk_map(long long i, long long n, {templates.formals(operands)}) {{
    return {expression};
}}
"""


def _post(outs: Sequence[Operand], expression: str) -> str:
    sizes = "".join(
        f"    const gk::indices {name}{{{count}}};\n"
        for name, count in (("_in_ind", "n"), ("_out_ind", "gk_results"))
        if re.search(rf"\b{name}\b", expression)
    )
    return f"""
__device__ __forceinline__ void
gk_post(gk_value a, long long i, long long n, long long gk_results, {templates.formals(outs)}) {{
{sizes}    {expression};
}}
"""


def _flat(name: str, operands: Sequence[Operand], width: int) -> str:
    walked = [operand for operand in operands if operand.is_walked]
    packs = "".join(f"        gk::pack<{o.type}, {width}> {o.name}_gk[{LOADS}];\n" for o in walked)
    loads = "".join(
        f"            {o.name}_gk[gk_j] = *reinterpret_cast<const gk::pack<{o.type}, {width}> *>"
        f"({o.name} + i + gk_j * {THREADS * width});\n"
        for o in walked
    )
    vector = templates.actuals(operands, "{name}_gk[gk_j].at[gk_k]")
    single = templates.actuals(operands, "{name}[i]")
    return f"""
extern "C" __global__ void __launch_bounds__({THREADS})
{name}({templates.declarations(operands)}, unsigned char *gk_partials, long long n) {{
    const long long gk_tile = {THREADS * LOADS * width};
    gk_state gk_own = gk_none();
    long long gk_first = blockIdx.x * gk_tile;
    for (; gk_first + gk_tile <= n; gk_first += gridDim.x * gk_tile) {{
        const long long i = gk_first + threadIdx.x * {width};
{packs}#pragma unroll
        for (int gk_j = 0; gk_j < {LOADS}; gk_j++) {{
{loads}        }}
#pragma unroll
        for (int gk_j = 0; gk_j < {LOADS}; gk_j++)
#pragma unroll
            for (int gk_k = 0; gk_k < {width}; gk_k++)
                gk_own = gk_join(
                    gk_own, gk_some(gk_map(i + gk_j * {THREADS * width} + gk_k, n, {vector})));
    }}
    for (long long i = gk_first + threadIdx.x; i < n && i < gk_first + gk_tile; i += {THREADS})
        gk_own = gk_join(gk_own, gk_some(gk_map(i, n, {single})));
    gk_own = gk_in_block(gk_own, 1);
    if (threadIdx.x == 0)
        reinterpret_cast<gk_state *>(gk_partials)[blockIdx.x] = gk_own;
}}
"""


def _strided(name: str, operands: Sequence[Operand], index: str) -> str:
    """The last array of the layouts is no array: its elements are their own numbers."""
    walked = [operand for operand in operands if operand.is_walked]
    count = len(walked) + 1
    actuals = templates.actuals(operands, "{name}_gk")
    elements = "".join(
        f"            const {o.type} &{o.name}_gk = gk::element({o.name}, gk_at[{number}]);\n"
        for number, o in enumerate(walked)
    )
    return f"""
extern "C" __global__ void __launch_bounds__({THREADS})
{name}({templates.declarations(operands)}, gk::axes<{count}> gk_kept, gk::axes<{count}> gk_reduced,
       unsigned gk_across, {index} gk_results, {index} gk_length, {index} gk_segment,
       unsigned char *gk_partials) {{
    const {index} gk_result = ({index})blockIdx.x * gk_across + threadIdx.x % gk_across;
    const long long n = (long long)gk_results * gk_length;
    gk_state gk_own = gk_none();
    if (gk_result < gk_results) {{
        long long gk_base[{count}], gk_at[{count}];
        gk::offsets(gk_kept, gk_result, gk_base);
        const {index} gk_start = ({index})blockIdx.y * gk_segment;
        const {index} gk_left = gk_length - gk_start;
        const {index} gk_end = gk_left < gk_segment ? gk_length : gk_start + gk_segment;
        const {index} gk_step = {THREADS} / gk_across;
#pragma unroll 4
        for ({index} gk_r = gk_start + threadIdx.x / gk_across; gk_r < gk_end; gk_r += gk_step) {{
            gk::offsets(gk_reduced, gk_r, gk_at);
#pragma unroll
            for (int gk_k = 0; gk_k < {count}; gk_k++)
                gk_at[gk_k] += gk_base[gk_k];
{elements}            gk_own = gk_join(gk_own, gk_some(gk_map(gk_at[{count - 1}], n, {actuals})));
        }}
    }}
    gk_own = gk_in_block(gk_own, gk_across);
    gk_state *gk_row = reinterpret_cast<gk_state *>(gk_partials) + (size_t)blockIdx.y * gk_results;
    if (threadIdx.x < gk_across && gk_result < gk_results)
        gk_row[gk_result] = gk_own;
}}
"""


def _finish(name: str, outs: Sequence[Operand]) -> str:
    walked = templates.actuals(outs, "{name}[gk_result_at]")
    return f"""
extern "C" __global__ void __launch_bounds__({THREADS})
{name}(const unsigned char *gk_partials, {templates.declarations(outs)}, unsigned gk_across,
       long long gk_results, unsigned gk_segments, long long n) {{
    const long long gk_result_at = (long long)blockIdx.x * gk_across + threadIdx.x % gk_across;
    const gk_state *gk_state_at = reinterpret_cast<const gk_state *>(gk_partials);
    const unsigned gk_step = {THREADS} / gk_across;
    gk_state gk_own = gk_none();
    if (gk_result_at < gk_results)
        for (unsigned gk_s = threadIdx.x / gk_across; gk_s < gk_segments; gk_s += gk_step)
            gk_own = gk_join(gk_own, gk_state_at[gk_s * gk_results + gk_result_at]);
    gk_own = gk_in_block(gk_own, gk_across);
    if (threadIdx.x < gk_across && gk_result_at < gk_results)
        gk_post(gk_own.value, gk_result_at, n, gk_results, {walked});
}}
"""


def reduction(
    name: str,
    ins: Sequence[Operand],
    outs: Sequence[Operand],
    types: dict[str, np.dtype[Any]],
    texts: tuple[str, str, str, str | None],
    kind: str,
    preamble: str,
) -> str:
    """Four kernels: ``name`` of contiguous arrays to one result, two of any strides, by 32-bit and
    by 64-bit numbers, and the one that joins segments. ``texts`` are what is made of an element,
    how two are joined, what is made of all, and what stands for none; ``kind`` is the type of a
    value.
    """
    mapped, joined, post, identity = texts
    return (
        templates.head([*ins, *outs], types, preamble)
        + _states(kind, joined, identity)
        + _joined(identity)
        + _map(ins, mapped)
        + _post(outs, post)
        + _flat(name, ins, templates.width_of(ins))
        + _strided(f"{name}_strided", ins, "unsigned")
        + _strided(f"{name}_strided_far", ins, "unsigned long long")
        + _finish(f"{name}_finish", outs)
    )
