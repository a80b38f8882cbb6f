"""The tables of what was measured for matmul, which the engine reads when it opens a device."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gpukern.machine.folders import cache_folder

_SHIPPED = Path(__file__).resolve().parent.parent / "tables"


def shipped_table(device: str) -> Path:
    """Where the table that comes with the package is, if there is one for a device of that name."""
    return _SHIPPED / _file_name(device)


def own_table(device: str) -> Path:
    """Where the user's own is: what ``gpukern tune`` writes."""
    return cache_folder() / "matmul" / _file_name(device)


def find_tables(device: str) -> list[str]:
    """Those that are there, for the engine: what comes later counts for the dtypes that it has."""
    return [str(path) for path in _tables(device) if path.is_file()]


def _tables(device: str) -> Iterator[Path]:
    yield shipped_table(device)
    # A user that the system does not know, as in some containers, has no home.
    with suppress(RuntimeError):
        yield own_table(device)


def _file_name(device: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-") + ".txt"
