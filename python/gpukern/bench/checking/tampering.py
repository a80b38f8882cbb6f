"""Whether a contender has replaced functions by which it is timed or checked.

That is for what happens by accident, and for the plain attempts: whoever wants to can reach into
any part of its own process. Code that is not trusted belongs into a process of its own.
"""

import gc
import statistics
import sys
import time
from types import ModuleType
from typing import Any

import numpy as np

_NAMES: tuple[tuple[ModuleType, str], ...] = (
    (time, "perf_counter"),
    (statistics, "median"),
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


def watchers() -> tuple[object, ...]:
    """Whom Python tells of each call and line of this thread: a debugger, or a profiler."""
    tools: Any = getattr(sys, "monitoring", None)  # of Python 3.12 and up
    monitors = (tools.get_tool(number) for number in range(6)) if tools else ()
    return sys.gettrace(), sys.getprofile(), *monitors


def replaced(watching: tuple[object, ...] | None = None) -> str:
    """The first function that is another one than at first, or ""; all are put back.

    Where it is said who was ``watching`` before, others would be told of what is done after a call.
    """
    found = ""
    if watching is not None and watchers() != watching:
        sys.settrace(None)
        sys.setprofile(None)
        found = "has itself told of every call that Python makes"
    for module, name, function in _RIGHT:
        if getattr(module, name) is not function:
            setattr(module, name, function)
            found = found or f"replaces {module.__name__}.{name}"
    return found
