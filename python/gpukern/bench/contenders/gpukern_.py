"""gpukern's own variants, one contender for each row of the table."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from gpukern import _core
from gpukern.bench.model.case import AXES
from gpukern.bench.model.contender import Absent, Contender, DeviceSide
from gpukern.catalogue import variants
from gpukern.profiling import profile

# Every thread adds to one cell, in no fixed order.
_SERIAL = frozenset({("sum", "atomic")})
_COARSE = {("matmul", "tf32"): "rounds what it multiplies to 11 bits, which is another contest"}


def contenders(op: str, dtype: str) -> Iterator[Contender | Absent]:
    """What takes part in a comparison of ``op`` on ``dtype``."""
    if op in AXES:
        # Which kernel it is follows from the shape and the axis.
        yield _contender("sum", "", axis=AXES[op])
        return
    for row in variants(op, dtype):
        why_not = _COARSE.get((op, row.variant)) or row.why
        if why_not or not row.runs:
            yield Absent("gpukern", row.variant, why_not or "does not run here")
        else:
            yield _contender(op, row.variant, variant=row.variant)


def _wrap(memory: Any) -> Any:
    # Taken as it is, by its __cuda_array_interface__.
    return memory


def _contender(op: str, name: str, **options: Any) -> Contender:
    call = partial(getattr(_core, op), **options)

    def run(inputs: Any, out: Any) -> None:
        call(*inputs, out=out)

    def ran(inputs: Sequence[Any], out: Any) -> str:
        with profile() as calls:
            run(inputs, out)
        return calls.calls[0].variant if name else name

    side = DeviceSide(_core.to_device, run, _core.DeviceArray.to_host, _wrap)
    return Contender("gpukern", name, call, side, serial=(op, name) in _SERIAL, ran=ran)
