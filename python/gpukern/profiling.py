"""Where the time of a call goes, and calls that report a fault at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from gpukern import _core
from gpukern.units import bandwidth, seconds, size

if TYPE_CHECKING:
    from rich.table import Table

_PHASES = ("allocate", "host_to_device", "kernel", "device_to_host", "host")


@dataclass(frozen=True)
class Call:
    """One call of an operation: times in seconds, sizes in bytes.

    ``host`` is what is left of ``wall`` when the device's phases are taken away: checking the
    arguments, choosing a kernel, starting it.
    """

    op: str
    variant: str
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    allocate: float
    host_to_device: float
    kernel: float
    device_to_host: float
    overlapped: float
    host: float
    wall: float
    bytes_in: int
    bytes_out: int


class Profile:
    """The calls made inside a ``with gpukern.profile()`` block; complete once the block ends."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def table(self) -> "Table":
        """A rich table: a row a call, a column a phase."""
        from rich.table import Table

        simulated = _core.backend() == "sim"
        title = "where the time went" + (" (simulated on the CPU)" if simulated else "")
        table = Table(title=title, title_justify="left")
        table.add_column("call", overflow="fold")
        table.add_column("variant", no_wrap=True)
        for phase in (*_PHASES, "all"):
            table.add_column(phase.replace("_", " "), justify="right")
        for call in self.calls:
            table.add_row(*_cells(call))
        return table

    def __str__(self) -> str:
        from gpukern.render import as_text

        return as_text(self.table())

    def __repr__(self) -> str:
        return f"<profile of {len(self.calls)} calls>"


def _cells(call: Call) -> Iterator[str]:
    shapes = ", ".join("x".join(map(str, shape)) or "()" for shape in call.shapes)
    yield f"{call.op} {call.dtype}\n{shapes}"
    yield call.variant
    moved = {"host_to_device": call.bytes_in, "device_to_host": call.bytes_out}
    for phase in _PHASES:
        spent: float = getattr(call, phase)
        count = moved.get(phase, 0)
        text = seconds(spent)
        yield f"{text}\n{size(count)}\n{bandwidth(count, spent)}" if count and spent else text
    yield seconds(call.wall)


def _call(fields: dict[str, Any]) -> Call:
    shapes = tuple(tuple(shape) for shape in fields["shapes"])
    return Call(**{**fields, "shapes": shapes})


_taking = Lock()


@contextmanager
def profile() -> Iterator[Profile]:
    """Measure the calls made in a ``with`` block::

        with gpukern.profile() as p:
            gpukern.add(a, b)
        print(p)

    Each call synchronizes, so that its phases can be told apart. Raises RuntimeError when a profile
    is being taken already.
    """
    if not _taking.acquire(blocking=False):
        raise RuntimeError("profile: a profile is being taken already, and profiles do not nest")
    try:
        taken = Profile()
        _core.profile_start()
        try:
            yield taken
        finally:
            taken.calls = [_call(fields) for fields in _core.profile_stop()]
    finally:
        _taking.release()


@contextmanager
def strict() -> Iterator[None]:
    """Synchronize after each launch in a ``with`` block, so that a fault is its own call's error.

    Slower, since nothing overlaps. Blocks nest.
    """
    _core.strict(1)
    try:
        yield
    finally:
        _core.strict(-1)
