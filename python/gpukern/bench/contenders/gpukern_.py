"""gpukern's own variants, one contender for each row of the table."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from gpukern import _core
from gpukern.bench.model.case import AXES
from gpukern.bench.model.contender import Absent, Contender, DeviceSide
from gpukern.catalogue import variants

# Every thread adds to one cell, in no fixed order.
_SERIAL = frozenset({("sum", "atomic")})
# They round what they multiply to fewer bits than its dtype has, which is a different contest.
_COARSE = frozenset({("matmul", "tf32")})


def contenders(op: str, dtype: str) -> Iterator[Contender | Absent]:
    """What takes part in a comparison of ``op`` on ``dtype``."""
    if op in AXES:
        # Which kernel it is follows from the shape and the axis.
        yield _contender("sum", "", axis=AXES[op])
        return
    for row in variants(op, dtype):
        if (op, row.variant) in _COARSE:
            continue
        if row.runs:
            yield _contender(op, row.variant, variant=row.variant)
        else:
            yield Absent("gpukern", row.variant, row.why or "does not run here")


def _wrap(memory: Any) -> Any:
    # Taken as it is, by its __cuda_array_interface__.
    return memory


def _contender(op: str, name: str, **options: Any) -> Contender:
    call = partial(getattr(_core, op), **options)

    def run(inputs: Any, out: Any) -> None:
        call(*inputs, out=out)

    side = DeviceSide(_core.to_device, run, _core.DeviceArray.to_host, _wrap)
    return Contender("gpukern", name, call, side, serial=(op, name) in _SERIAL)
