"""The source in CUDA C++ of a reduction: what is made of each element, joined, and made a result.

A block takes a part of a single result, or rows of several, or columns: then threads stand side by
side along results. Each thread takes vectors of neighbours. Where a result has several parts, which
are segments of what is reduced, a second kernel joins them. The order depends on shapes and strides
alone.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpukern.kernels import templates
from gpukern.kernels.templates import THREADS, Operand

STATE_BYTES = 64  # that are carried of what is reduced, at most
LOADS = 4  # vectors of a thread, along each array, that are under way at once
WARP = 32
MOST_COLUMNS = 4  # of a thread


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
    """The threads of a block: those `across` apart are of one result, or those of a group of
    `lanes`, the first of which gets it. Values and what tells of them lie in arrays of their own,
    since between them in one there are bytes that nobody writes; and shared memory holds nothing
    that has a constructor."""
    told, keep, take = "", "value[{0}] = state.value;", "gk_some(value[{0}])"
    if identity is None:
        told = f"    __shared__ bool is_there[{THREADS}];\n"
        keep = "is_there[{0}] = state.is_there; if (state.is_there) value[{0}] = state.value;"
        take = "is_there[{0}] ? gk_some(value[{0}]) : gk_none()"
    return f"""
static_assert(sizeof(gk_state) <= {STATE_BYTES}, "a reduction carries {STATE_BYTES} bytes at most");
struct gk_bytes {{ alignas(gk_value) unsigned char at[sizeof(gk_value)]; }};
__device__ __forceinline__ gk_state gk_in_block(gk_state state, unsigned across) {{
    __shared__ gk_bytes room[{THREADS}];
    gk_value *value = reinterpret_cast<gk_value *>(room);
{told}    const unsigned own = threadIdx.x;
    {keep.format("own")}
    __syncthreads();
    for (unsigned step = {THREADS} / 2; step >= across; step /= 2) {{
        if (own < step) {{
            state = gk_join(state, {take.format("own + step")});
            {keep.format("own")}
        }}
        __syncthreads();
    }}
    return state;
}}
__device__ __forceinline__ gk_state gk_of_lane(const gk_state &state, unsigned step) {{
    unsigned words[(sizeof(gk_state) + 3) / 4] = {{}};
    gk_state other = state;
    memcpy(words, reinterpret_cast<const unsigned char *>(&state), sizeof state);
#pragma unroll
    for (int k = 0; k < (int)(sizeof words / 4); k++)
        words[k] = __shfl_down_sync(0xffffffffu, words[k], step);
    memcpy(reinterpret_cast<unsigned char *>(&other), words, sizeof other);
    return other;
}}
__device__ __forceinline__ gk_state gk_in_group(gk_state state, unsigned lanes) {{
    for (unsigned step = (lanes < {WARP} ? lanes : {WARP}) / 2; step > 0; step /= 2)
        state = gk_join(state, gk_of_lane(state, step));
    return lanes > {WARP} ? gk_in_block(state, {WARP}) : state;
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


def _leave(outs: Sequence[Operand]) -> str:
    """The value of a segment, or where there are no partial ones the result itself."""
    walked = templates.actuals(outs, "{name}[gk_to]")
    return f"""
__device__ __forceinline__ void
gk_leave(const gk_state &gk_own, long long gk_to, long long n, long long gk_results,
         unsigned gk_segment, unsigned char *gk_partials, {templates.declarations(outs)}) {{
    if (gk_partials)
        reinterpret_cast<gk_state *>(gk_partials)[gk_segment * gk_results + gk_to] = gk_own;
    else
        gk_post(gk_own.value, gk_to, n, gk_results, {walked});
}}
"""


def _names(outs: Sequence[Operand]) -> str:
    return ", ".join(operand.name for operand in outs)


def _flat(name: str, operands: Sequence[Operand], outs: Sequence[Operand], width: int) -> str:
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
{name}({templates.declarations([*operands, *outs])}, unsigned char *gk_partials, long long n) {{
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
    gk_own = gk_in_group(gk_own, {THREADS});
    if (threadIdx.x == 0)
        gk_leave(gk_own, 0, n, 1, blockIdx.x, gk_partials, {_names(outs)});
}}
"""


_FIND = """
template <class gk_I, int gk_ARRAYS>
__device__ __forceinline__ gk_I
gk_find(const gk::axes<gk_ARRAYS> &in, const long long (&base)[gk_ARRAYS], gk_I i,
        long long (&at)[gk_ARRAYS]) {
    const gk_I innermost = gk::offsets(in, i, at);
#pragma unroll
    for (int k = 0; k < gk_ARRAYS; k++)
        at[k] += base[k];
    return innermost;
}
template <class gk_I, int gk_ARRAYS>
__device__ __forceinline__ long long
gk_find(const gk::rows<gk_ARRAYS> &in, const long long (&base)[gk_ARRAYS], gk_I vector, int width,
        long long (&at)[gk_ARRAYS]) {
    return in.inner - (long long)gk_find(in.vectors, base, vector, at) * width;
}
"""


def _rows(walk: templates.Walk, outs: Sequence[Operand], name: str, index: str, loads: int) -> str:
    """Several results a block, each a group of lanes', or a segment of a single one. Vectors that
    are not whole come last, one by one."""
    width = walk.width
    return f"""
extern "C" __global__ void __launch_bounds__({THREADS})
{name}({templates.declarations([*walk.operands, *outs])}, gk::axes<{walk.arrays}> gk_kept,
       gk::rows<{walk.arrays}> gk_layout, unsigned gk_lanes, {index} gk_results,
       {index} gk_vectors, {index} gk_segment, unsigned char *gk_partials, long long n) {{
    const {index} gk_to =
        ({index})blockIdx.x * ({THREADS} / gk_lanes) + threadIdx.x / gk_lanes;
    const {index} gk_start = ({index})blockIdx.y * gk_segment;
    const {index} gk_end =
        gk_vectors - gk_start < gk_segment ? gk_vectors : gk_start + gk_segment;
    {index} gk_first = gk_start + threadIdx.x % gk_lanes;
    gk_state gk_own = gk_none();
    long long gk_base[{walk.arrays}];
    if (gk_to < gk_results)
        gk::offsets(gk_kept, gk_to, gk_base);
    for (; gk_to < gk_results && gk_first < gk_end; gk_first += {loads} * gk_lanes) {{
        long long gk_at[{loads}][{walk.arrays}], gk_left[{loads}];
        bool gk_is_broken = false;
{walk.packs(loads)}#pragma unroll
        for (int gk_j = 0; gk_j < {loads}; gk_j++) {{
            const {index} gk_vector = gk_first + gk_j * gk_lanes;
            gk_left[gk_j] = 0;
            if (gk_vector >= gk_end)
                continue;
            gk_left[gk_j] = gk_find(gk_layout, gk_base, gk_vector, {width}, gk_at[gk_j]);
            gk_is_broken |= gk_left[gk_j] < {width};
            if (gk_left[gk_j] >= {width}) {{
{walk.loads()}            }}
        }}
#pragma unroll
        for (int gk_j = 0; gk_j < {loads}; gk_j++) {{
            if (gk_left[gk_j] < {width})
                continue;
{walk.spreads()}#pragma unroll
            for (int gk_k = 0; gk_k < {width}; gk_k++)
                gk_own = gk_join(gk_own, gk_some(gk_map({walk.number}, n, {walk.of_vectors})));
        }}
        if (!gk_is_broken)
            continue;
#pragma unroll 1
        for ({index} gk_vector = gk_first; gk_vector < gk_first + {loads} * gk_lanes;
             gk_vector += gk_lanes) {{
            const int gk_j = 0;
            if (gk_vector >= gk_end)
                break;
            const long long gk_some_left =
                gk_find(gk_layout, gk_base, gk_vector, {width}, gk_at[gk_j]);
            if (gk_some_left >= {width})
                continue;
#pragma unroll 1
            for (int gk_k = 0; gk_k < gk_some_left; gk_k++) {{
{walk.references()}                gk_own = gk_join(
                    gk_own, gk_some(gk_map({walk.number}, n, {walk.of_elements})));
            }}
        }}
    }}
    gk_own = gk_in_group(gk_own, gk_lanes);
    if (threadIdx.x % gk_lanes == 0 && gk_to < gk_results)
        gk_leave(gk_own, gk_to, n, gk_results, blockIdx.y, gk_partials, {_names(outs)});
}}
"""


def _columns(walk: templates.Walk, outs: Sequence[Operand], name: str) -> str:
    """Threads side by side along results, each with a vector of them, and the others below."""
    width = walk.width
    return f"""
extern "C" __global__ void __launch_bounds__({THREADS})
{name}({templates.declarations([*walk.operands, *outs])}, gk::rows<{walk.arrays}> gk_layout,
       gk::axes<{walk.arrays}> gk_reduced, unsigned gk_across, unsigned gk_vectors,
       unsigned gk_length, unsigned gk_segment, long long gk_results,
       unsigned char *gk_partials, long long n) {{
    const unsigned gk_vector = blockIdx.x * gk_across + threadIdx.x % gk_across;
    const unsigned gk_start = blockIdx.y * gk_segment, gk_step = {THREADS} / gk_across;
    const unsigned gk_end =
        gk_length - gk_start < gk_segment ? gk_length : gk_start + gk_segment;
    unsigned gk_first = gk_start + threadIdx.x / gk_across;
    long long gk_base[{walk.arrays}], gk_columns = 0, gk_to = 0;
    gk_state gk_own[{width}];
#pragma unroll
    for (int gk_k = 0; gk_k < {width}; gk_k++)
        gk_own[gk_k] = gk_none();
    if (gk_vector < gk_vectors) {{
        const unsigned gk_column = gk::offsets(gk_layout.vectors, gk_vector, gk_base);
        const int gk_last = (int)gk_layout.vectors.ndim - 1;
        gk_columns = gk_layout.inner - (long long)gk_column * {width};
        gk_to = gk::divide(gk_layout.vectors, gk_vector, gk_last) * gk_layout.inner +
            (long long)gk_column * {width};
    }}
    for (; gk_columns >= {width} && gk_first < gk_end; gk_first += {LOADS} * gk_step) {{
        long long gk_at[{LOADS}][{walk.arrays}];
{walk.packs(LOADS)}#pragma unroll
        for (int gk_j = 0; gk_j < {LOADS}; gk_j++) {{
            if (gk_first + gk_j * gk_step < gk_end) {{
                gk_find(gk_reduced, gk_base, gk_first + gk_j * gk_step, gk_at[gk_j]);
{walk.loads()}            }}
        }}
#pragma unroll
        for (int gk_j = 0; gk_j < {LOADS}; gk_j++) {{
            if (gk_first + gk_j * gk_step >= gk_end)
                continue;
{walk.spreads()}#pragma unroll
            for (int gk_k = 0; gk_k < {width}; gk_k++)
                gk_own[gk_k] =
                    gk_join(gk_own[gk_k], gk_some(gk_map({walk.number}, n, {walk.of_vectors})));
        }}
    }}
#pragma unroll 1
    for (; gk_columns > 0 && gk_first < gk_end; gk_first += gk_step) {{
        const int gk_j = 0;
        long long gk_at[1][{walk.arrays}];
        gk_find(gk_reduced, gk_base, gk_first, gk_at[gk_j]);
#pragma unroll
        for (int gk_k = 0; gk_k < {width}; gk_k++) {{
            if (gk_k >= gk_columns)
                continue;
{walk.references()}            gk_own[gk_k] =
                gk_join(gk_own[gk_k], gk_some(gk_map({walk.number}, n, {walk.of_elements})));
        }}
    }}
#pragma unroll
    for (int gk_k = 0; gk_k < {width}; gk_k++) {{
        gk_own[gk_k] = gk_in_block(gk_own[gk_k], gk_across);
        if (threadIdx.x < gk_across && gk_k < gk_columns)
            gk_leave(gk_own[gk_k], gk_to + gk_k, n, gk_results, blockIdx.y, gk_partials,
                     {_names(outs)});
    }}
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


def width_of(operands: Sequence[Operand]) -> int:
    """Columns of a thread."""
    return min(templates.width_of(operands), MOST_COLUMNS)


def reduction(
    name: str,
    ins: Sequence[Operand],
    outs: Sequence[Operand],
    types: dict[str, np.dtype[Any]],
    texts: tuple[str, str, str, str | None],
    kind: str,
    preamble: str,
) -> str:
    """Five kernels: of contiguous arrays to one result, of rows by vectors and 32-bit
    numbers and by elements and 64-bit numbers, of columns, and the one that joins segments.
    ``texts`` are what is made of an element, how two are joined, what is made of all, and what
    stands for none; ``kind`` is the type of a value.
    """
    mapped, joined, post, identity = texts
    width, named = templates.width_of(ins), templates.is_numbered(mapped, preamble)
    return (
        templates.head([*ins, *outs], types, preamble)
        + _states(kind, joined, identity)
        + _joined(identity)
        + _map(ins, mapped)
        + _post(outs, post)
        + _leave(outs)
        + _FIND
        + _flat(f"{name}_flat", ins, outs, width)
        + _rows(templates.Walk(ins, width, named), outs, f"{name}_rows", "unsigned", LOADS)
        + _rows(templates.Walk(ins, 1, named), outs, f"{name}_far", "unsigned long long", 1)
        + _columns(templates.Walk(ins, width_of(ins), named), outs, f"{name}_columns")
        + _finish(f"{name}_finish", outs)
    )
