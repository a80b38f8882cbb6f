"""What the engine asks for in its first call: where libraries and tables lie.

That imports modules, and a fork in the middle of an import would leave its child with a module's
lock that nobody gives back. So forks wait until all is found, and this module is imported before.
"""

import os
import threading

_LOCK = threading.RLock()
os.register_at_fork(
    before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
)


def find_cublas() -> list[str]:
    """Paths of cuBLAS, the best first."""
    with _LOCK:
        from gpukern.machine import libraries

        return libraries.find_cublas()


def find_tables(device: str) -> list[str]:
    """Paths of tables of what was measured on such a device."""
    with _LOCK:
        from gpukern.machine import tables

        return tables.find_tables(device)
