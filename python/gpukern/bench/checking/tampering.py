"""Whether a contender has replaced functions by which it is timed or checked.

That is for what happens by accident, and for the plain attempts: whoever wants to can reach into
any part of its own process. Code that is not trusted belongs into a process of its own.
"""

import gc
import time
from types import ModuleType
from typing import Any

import numpy as np

_NAMES: tuple[tuple[ModuleType, str], ...] = (
    (time, "perf_counter"),
    *((gc, name) for name in ("collect", "disable", "enable", "isenabled")),
    *(
        (np, name)
        for name in (
            *("all", "any", "argmax", "array_equal", "asarray", "ascontiguousarray", "copyto"),
            *("count_nonzero", "isnan", "may_share_memory", "max", "nanmax", "square", "sqrt"),
            *("abs", "array", "broadcast_to", "empty", "empty_like", "full", "sum", "where"),
        )
    ),
)
_RIGHT: tuple[tuple[ModuleType, str, Any], ...] = tuple(
    (module, name, getattr(module, name)) for module, name in _NAMES
)


def replaced() -> str:
    """The first function that is another one than at first, or ""; all are put back."""
    found = ""
    for module, name, function in _RIGHT:
        if getattr(module, name) is not function:
            setattr(module, name, function)
            found = found or f"replaces {module.__name__}.{name}"
    return found
