"""Kernels made of a line of C: source in, kernel out.

``element_kernel`` runs an operation for each i, ``reduction_kernels`` makes one number of all,
``scan_kernels`` one of each beginning. What calls them knows arrays; what is here knows none.
"""

from collections.abc import Sequence
from functools import lru_cache

from gpukern.kernels.compiling import compile
from gpukern.kernels.module import Kernel
from gpukern.pycuda import headers

BLOCK = 256
_MOST_BLOCKS = 4096


def blocks_for(elements: int) -> int:
    """How many blocks of BLOCK threads are launched for so many elements; each thread loops."""
    return min(max(-(-elements // BLOCK), 1), _MOST_BLOCKS)


@lru_cache(maxsize=4096)
def compiled(
    source: str, names: tuple[str, ...], options: tuple[str, ...] = ()
) -> tuple[Kernel, ...]:
    """The kernels of a source, by their names."""
    module = compile(source, (*options, headers.OPTION), name=f"{names[0]}.cu")
    return tuple(module[name] for name in names)


_ELEMENTS = """
#include <pycuda-complex.hpp>
{preamble}
extern "C" __global__ void {name}({arguments})
{{
    size_t tid = threadIdx.x;
    size_t total_threads = gridDim.x * blockDim.x;
    size_t cta_start = blockDim.x * blockIdx.x;
    {index} i;
    {loop_prep};
    {loop}
    {{
        {operation};
    }}
    {after_loop};
}}
"""
_EVERY = "for (i = cta_start + tid; i < n; i += total_threads)"
_RANGE = """for (i = start + (long)(cta_start + tid) * step; step < 0 ? i > stop : i < stop;
         i += (long)total_threads * step)"""


def element_source(
    arguments: Sequence[str],
    operation: str,
    name: str = "kernel",
    *,
    preamble: str = "",
    loop_prep: str = "",
    after_loop: str = "",
    use_range: bool = False,
) -> str:
    """A kernel that runs ``operation`` for each i: of n, or from start to stop by step.

    ``arguments`` are declarations, those of n, or of start, stop and step, the last of them.
    """
    return _ELEMENTS.format(
        preamble=preamble,
        name=name,
        arguments=", ".join(arguments),
        index="long" if use_range else "size_t",
        loop_prep=loop_prep,
        loop=_RANGE if use_range else _EVERY,
        operation=operation,
        after_loop=after_loop,
    )


def element_kernel(arguments: tuple[str, ...], operation: str, preamble: str = "") -> Kernel:
    """The kernel of an operation; it takes ``arguments`` and then n."""
    source = element_source([*arguments, "size_t n"], operation, "elements", preamble=preamble)
    return compiled(source, ("elements",))[0]


_REDUCTION = """
#include <pycuda-complex.hpp>
{preamble}
typedef {out_type} out_type;
#define REDUCE(a, b) ({reduce_expr})

static __device__ void pycuda_reduce_block(out_type acc, out_type *out)
{{
    __shared__ out_type parts[{block}];
    unsigned tid = threadIdx.x;
    parts[tid] = acc;
    __syncthreads();
    for (unsigned half = {block} / 2; half > 0; half /= 2)
    {{
        if (tid < half) parts[tid] = REDUCE(parts[tid], parts[tid + half]);
        __syncthreads();
    }}
    if (tid == 0) out[blockIdx.x] = parts[0];
}}

extern "C" __global__ void {name}_stage1(out_type *out, {arguments}, {first}, size_t n)
{{
    unsigned tid = threadIdx.x;
    size_t total_threads = gridDim.x * blockDim.x;
    out_type acc = {neutral};
    for (size_t pycuda_k = blockDim.x * blockIdx.x + tid; pycuda_k < n; pycuda_k += total_threads)
    {{
        long i = pycuda_start + (long)pycuda_k * pycuda_step;
        acc = REDUCE(acc, ({map_expr}));
    }}
    pycuda_reduce_block(acc, out);
}}

extern "C" __global__ void {name}_stage2(out_type *out, const out_type *pycuda_in, unsigned n)
{{
    out_type acc = {neutral};
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        acc = REDUCE(acc, pycuda_in[i]);
    pycuda_reduce_block(acc, out);
}}
"""


def reduction_kernels(
    out_type: str,
    neutral: str,
    reduce_expr: str,
    map_expr: str,
    arguments: Sequence[str],
    name: str,
    options: tuple[str, ...] = (),
    preamble: str = "",
) -> tuple[Kernel, Kernel]:
    """Two kernels of BLOCK threads a block, for a result of ``reduce_expr``, of a and b.

    The first takes the blocks' results, ``arguments``, where i begins, by how much it goes on and
    how many there are; the second takes the result, the blocks' results and their number.
    """
    source = _REDUCTION.format(
        preamble=preamble,
        out_type=out_type,
        reduce_expr=reduce_expr,
        map_expr=map_expr,
        neutral=neutral,
        name=name,
        arguments=", ".join(arguments),
        first="long pycuda_start, long pycuda_step",
        block=BLOCK,
    )
    first, second = compiled(source, (f"{name}_stage1", f"{name}_stage2"), options)
    return first, second


# A thread goes through `each` elements that lie together, so that their order is kept.
_SCAN = """
#include <pycuda-complex.hpp>
{preamble}
typedef {scan_type} scan_type;
#define SCAN_EXPR(a, b) ({scan_expr})

extern "C" __global__ void {name}_totals(const scan_type *in, scan_type *totals, size_t each,
                                         size_t n)
{{
    size_t thread = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    size_t i = thread * each, end = i + each < n ? i + each : n;
    if (i >= n) return;
    scan_type acc = in[i];
    for (++i; i < end; ++i) acc = SCAN_EXPR(acc, in[i]);
    totals[thread] = acc;
}}

/* One block: of each total those up to it. */
extern "C" __global__ void {name}_carries(scan_type *totals, size_t n)
{{
    __shared__ scan_type parts[{block}];
    unsigned tid = threadIdx.x;
    for (size_t start = 0; start < n; start += {block})
    {{
        size_t i = start + tid;
        if (i < n) parts[tid] = totals[i];
        __syncthreads();
        for (unsigned far = 1; far < {block}; far *= 2)
        {{
            scan_type sum;
            if (i < n) sum = tid < far ? parts[tid] : SCAN_EXPR(parts[tid - far], parts[tid]);
            __syncthreads();
            if (i < n) parts[tid] = sum;
            __syncthreads();
        }}
        if (i < n) totals[i] = start ? SCAN_EXPR(totals[start - 1], parts[tid]) : parts[tid];
        __syncthreads();
    }}
}}

extern "C" __global__ void {name}_update(const scan_type *in, scan_type *out,
                                         const scan_type *totals, size_t each, size_t n)
{{
    size_t thread = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    size_t i = thread * each, end = i + each < n ? i + each : n;
    if (i >= n) return;
    {update}
}}
"""
_INCLUSIVE = """scan_type acc = in[i];
    if (thread) acc = SCAN_EXPR(totals[thread - 1], acc);
    out[i] = acc;
    for (++i; i < end; ++i) out[i] = acc = SCAN_EXPR(acc, in[i]);"""
_EXCLUSIVE = """scan_type acc = {neutral};
    if (thread) acc = SCAN_EXPR(acc, totals[thread - 1]);
    for (; i < end; ++i) {{ scan_type next = SCAN_EXPR(acc, in[i]); out[i] = acc; acc = next; }}"""


def scan_kernels(
    scan_type: str,
    scan_expr: str,
    neutral: str | None,
    name: str,
    options: tuple[str, ...] = (),
    preamble: str = "",
) -> tuple[Kernel, Kernel, Kernel]:
    """Three kernels of BLOCK threads a block for a scan by ``scan_expr``, of a and b.

    They make each thread's total, of those the carries, and the result: exclusive where there is a
    ``neutral`` element, else inclusive.
    """
    update = _INCLUSIVE if neutral is None else _EXCLUSIVE.format(neutral=neutral)
    source = _SCAN.format(
        preamble=preamble,
        scan_type=scan_type,
        scan_expr=scan_expr,
        name=name,
        update=update,
        block=BLOCK,
    )
    names = (f"{name}_totals", f"{name}_carries", f"{name}_update")
    totals, carries, updating = compiled(source, names, options)
    return totals, carries, updating
