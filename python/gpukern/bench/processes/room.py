"""Whether memory is large enough for several processes at once."""

import os

from gpukern import _core
from gpukern.bench.model.case import Case

# How often a process has the arrays of a case, on the host or on the device: to change, to compare
# with, in what libraries keep.
_COPIES = 12


def holds(case: Case, processes: int) -> bool:
    """Whether so many processes find room for a case at once."""
    host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    device: int = _core.devices()[0]["memory_free"]
    return processes * _COPIES * case.bytes_moved < min(host, device)
