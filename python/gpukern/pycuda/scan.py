"""pycuda.scan: of each element, all up to it or all before it."""

from typing import Any

import numpy as np

from gpukern.pycuda.array import GPUArray, new_like
from gpukern.pycuda.compiler import options_of
from gpukern.pycuda.declarations import dtype_to_ctype
from gpukern.pycuda.expressions import BLOCK, scan_kernels
from gpukern.pycuda.launching import launch

_MOST_BLOCKS = 256


class _ScanKernel:
    _is_exclusive: bool

    def __init__(
        self,
        dtype: Any,
        scan_expr: str,
        neutral: Any = None,
        name_prefix: str = "scan",
        options: Any = None,
        preamble: str = "",
        devices: Any = None,
    ) -> None:
        if self._is_exclusive and neutral is None:
            raise ValueError(f"{name_prefix}: an exclusive scan needs a neutral element")
        self.dtype = np.dtype(dtype)
        self.name = name_prefix
        self._kernels = scan_kernels(
            dtype_to_ctype(self.dtype),
            scan_expr,
            str(neutral) if self._is_exclusive else None,
            name_prefix,
            tuple(options_of(options)),
            preamble,
        )

    def __call__(
        self, input_ary: GPUArray, output_ary: Any = None, allocator: Any = None, stream: Any = None
    ) -> GPUArray:
        """Scan an array of one axis, in its place, or to ``output_ary``, "new" for a new one."""
        if input_ary.dtype != self.dtype or input_ary.ndim != 1 or not input_ary.flags.forc:
            raise ValueError(
                f"{self.name}: takes a contiguous array of one axis of {self.dtype}, and was given "
                f"{input_ary.dtype}{list(input_ary.shape)}"
            )
        if output_ary is None:
            output_ary = input_ary
        result = new_like(input_ary, self.dtype) if isinstance(output_ary, str) else output_ary
        if result.shape != input_ary.shape or result.dtype != self.dtype:
            raise ValueError(f"{self.name}: input and output must have the same shape and dtype")
        if input_ary.size:
            self._run(input_ary, result, stream)
        return result

    def _run(self, given: GPUArray, result: GPUArray, stream: Any) -> None:
        count = given.size
        blocks = min(-(-count // BLOCK), _MOST_BLOCKS)
        each = -(-count // (blocks * BLOCK))
        used = -(-count // each)  # the threads that have elements
        sums = GPUArray((blocks * BLOCK,), self.dtype)
        totals, carries, update = self._kernels
        launch(totals, blocks, BLOCK, (given, sums, each, count), stream)
        launch(carries, 1, BLOCK, (sums, used), stream)
        launch(update, blocks, BLOCK, (given, result, sums, each, count), stream)


class InclusiveScanKernel(_ScanKernel):
    """Of each element ``scan_expr``, of ``a`` and ``b``, over all up to it."""

    _is_exclusive = False


class ExclusiveScanKernel(_ScanKernel):
    """Of each element ``scan_expr``, of ``a`` and ``b``, over all before it, from ``neutral``."""

    _is_exclusive = True
