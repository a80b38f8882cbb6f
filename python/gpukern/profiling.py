"""Where the time of a call goes, what a block takes, and calls that report a fault at once."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from gpukern import _core
from gpukern.text.blocks import Block
from gpukern.text.calls import called_as
from gpukern.text.render import as_text
from gpukern.text.units import bandwidth, seconds, size

if TYPE_CHECKING:
    from rich.table import Table

_PHASES = ("allocate", "host_to_device", "kernel", "device_to_host", "host")
_PROBE_BYTES = 64 << 20
_PROBES = 5


@dataclass(frozen=True)
class Call:
    """One call of an operation: times in seconds, sizes in bytes.

    ``host_to_device``, ``kernel`` and ``device_to_host`` are the times in which each of them was
    busy. Of large arrays they run side by side: ``overlapped`` is how much less than their sum they
    took. ``host`` is what is left of ``wall``: ``wall - (allocate + host_to_device + kernel +
    device_to_host - overlapped)``, such as checking the arguments, choosing a kernel, and filling
    staging buffers while nothing else runs. A small call on NumPy arrays copies nothing: its bytes
    cross the bus while the kernel reads and writes them, and are part of its time.
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

    @property
    def bus_seconds(self) -> float | None:
        """What the bus alone needs for the longer of the two ways; None on the simulator."""
        bus = bus_bandwidth()
        return max(self.bytes_in, self.bytes_out) / bus if bus else None

    @property
    def bus_share(self) -> float | None:
        """How much of the bus the call has used, from 0 to 1; None on the simulator."""
        needed = self.bus_seconds
        return needed / self.wall if needed is not None and self.wall else None


@cache
def bus_bandwidth() -> float | None:
    """Bytes/s of a large pinned copy to the device, measured once a process.

    None on the simulator, and where there is no pinned memory to be had.
    """
    if _core.backend() == "sim":
        return None
    before = _core.pinned_bytes()[0]
    held = _core.empty((_PROBE_BYTES // 4,)).to_host()
    if _core.pinned_bytes()[0] - before < _PROBE_BYTES:
        return None
    best = 0.0
    for _ in range(_PROBES):
        first, last = _core.Event(), _core.Event()
        first.record()
        landed = _core.to_device(held)
        last.record()
        best = max(best, _PROBE_BYTES / last.seconds_since(first))
        del landed
    return best


class Profile:
    """The calls made inside a ``with gpukern.profile()`` block; complete once the block ends."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def table(self) -> "Table":
        """A rich table: a row a call, a column a phase; what ran side by side is taken away."""
        from rich.table import Table

        simulated = _core.backend() == "sim"
        title = "where the time went" + (" (simulated on the CPU)" if simulated else "")
        table = Table(title=title, title_justify="left")
        table.add_column("call", overflow="fold")
        table.add_column("variant", no_wrap=True)
        for name in (*_PHASES, "overlapped", "all"):
            table.add_column(name.replace("_", " "), justify="right")
        for call in self.calls:
            table.add_row(*_cells(call))
        return table

    def __str__(self) -> str:
        return as_text(self.table())

    def __repr__(self) -> str:
        return f"<profile of {len(self.calls)} calls>"


def _cells(call: Call) -> Iterator[str]:
    shapes = ", ".join("x".join(map(str, shape)) or "()" for shape in call.shapes)
    yield f"{call.op} {call.dtype}\n{shapes}"
    yield call.variant
    moved = {"host_to_device": call.bytes_in, "device_to_host": call.bytes_out}
    for phase in _PHASES:
        yield _phase(getattr(call, phase), moved.get(phase, 0))
    yield f"-{seconds(call.overlapped)}" if call.overlapped else "0"
    share = call.bus_share
    whole = seconds(call.wall)
    yield f"{whole}\n{_percent(share)}" if share and (call.bytes_in or call.bytes_out) else whole


def _phase(spent: float, count: int) -> str:
    if not count:
        return seconds(spent)
    if not spent:
        return f"in the kernel\n{size(count)}"
    lines = [seconds(spent), size(count), bandwidth(count, spent)]
    bus = bus_bandwidth()
    if bus:
        lines.append(_percent(count / bus / spent))
    return "\n".join(lines)


def _percent(share: float) -> str:
    return f"{share:.0%} of the bus"


def _call(fields: dict[str, Any]) -> Call:
    shapes = tuple(tuple(shape) for shape in fields["shapes"])
    return Call(**{**fields, "shapes": shapes})


_taking = Lock()


@called_as("profile")
def profile() -> Block[Profile]:
    """Measure the calls made in a ``with`` block::

        with gpukern.profile() as p:
            gpukern.add(a, b)
        print(p)

    Each call synchronizes, so that its phases can be told apart. Raises RuntimeError when a profile
    is being taken already.
    """
    return Block("profile()", _taken)


@contextmanager
def _taken() -> Iterator[Profile]:
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


class Timer:
    """Print what a block takes: ``with gpukern.Timer("Sum by GPU"): ...``.

    Wall-clock time until the device has finished what the block started, CPU time of the process,
    and the time between two events on the device around the block, idle gaps included. Afterwards
    they are in ``wall``, ``cpu`` and ``device``, in seconds.
    """

    @called_as("Timer")
    def __init__(self, name: str = "block", quiet: bool = False) -> None:
        self.name = name
        self.quiet = quiet
        self.wall = self.cpu = self.device = 0.0

    def __enter__(self) -> "Timer":
        self._before, self._after = _core.Event(), _core.Event()
        # What was started earlier is not this block's.
        _core.synchronize()
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        self._before.record()
        return self

    def __exit__(self, *exception: object) -> None:
        self._after.record()
        _core.synchronize()
        self.wall = time.perf_counter() - self._wall
        self.cpu = time.process_time() - self._cpu
        self.device = self._after.seconds_since(self._before)
        if not self.quiet:
            print(self)

    def __str__(self) -> str:
        where = "simulated device" if _core.backend() == "sim" else "device"
        return (
            f"{self.name}: wall {seconds(self.wall)}, CPU {seconds(self.cpu)}, "
            f"{where} {seconds(self.device)}"
        )


@called_as("strict")
def strict() -> Block[None]:
    """Synchronize after each launch in a ``with`` block, so that a fault is its own call's error.

    Slower, since nothing overlaps. Blocks nest.
    """
    return Block("strict()", _waiting)


@contextmanager
def _waiting() -> Iterator[None]:
    _core.strict(1)
    try:
        yield
    finally:
        _core.strict(-1)
