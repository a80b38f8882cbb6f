"""Waits that end: what hangs is a failure, not a suite that stands still."""

from __future__ import annotations

import threading

# More than anything takes on a slow machine, in seconds.
LIMIT = 600


def join_all(*threads: threading.Thread, limit: float = LIMIT) -> None:
    """Wait for threads that are about to end."""
    for thread in threads:
        thread.join(limit)
        assert not thread.is_alive(), f"{thread.name} has not ended after {limit} s"
