"""What a program may set: the device that calls run on, and how much memory they keep."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from threading import Lock
from weakref import ref

from gpukern import _core
from gpukern.text.blocks import Block
from gpukern.text.calls import blamed_on, called_as, checked_count, checked_index

_NAMES = ("pinned_memory", "device_memory", "mapped_call")


@called_as("device")
def device(ordinal: int) -> Block[None]:
    """Run the calls of a ``with`` block on another device of the machine::

        with gpukern.device(1):
            total = gpukern.sum(a)

    It holds for the calling thread, and blocks nest. Devices are numbered as
    ``gpukern.device_info()`` lists them, from 0. It is for arrays of the host, and for what makes
    new arrays: an operation on arrays that are on a device runs there (``DeviceArray.device``), and
    ``gpukern.to_device`` copies them to this one. Without ``with`` nothing happens but a
    RuntimeWarning. Raises TypeError for what is no whole number and ValueError for a device that
    there is not, both at once.
    """
    with blamed_on("device"):
        chosen = checked_index("ordinal", ordinal, "the number of a device")
    if not 0 <= chosen < _core.device_count():
        names = [f"{each['ordinal']} ({each['name']})" for each in _core.devices()]
        raise ValueError(
            f"device: there is no device {chosen}; this machine has {', '.join(names)}"
        )
    return Block(f"device({chosen})", lambda: _on(chosen))


@contextmanager
def _on(ordinal: int) -> Iterator[None]:
    before = _core.choose_device(ordinal)
    try:
        yield
    finally:
        _core.choose_device(before)


@dataclass(eq=False)
class _Change:
    """What a call of ``limits`` has set one limit to, and how many blocks of it are open.

    ``value`` is what holds in them, which a call inside of one changes.
    """

    given: int
    value: int = 0
    opened: int = 0
    # The Limits that may yet be entered; a change without one, which none has, is there for good.
    owner: Callable[[], object] = lambda: None


class _Limit:
    """One limit: the changes that hold while blocks are open, the newest of which is in force.

    Blocks of several threads end in any order.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.before = 0
        self.changes: list[_Change] = []

    def add(self, change: _Change) -> None:
        self._settle()
        if not self.changes:
            self.before = _core.limit(self.name)
        change.value = change.given
        self.changes.append(change)
        self._apply()

    def enter(self, change: _Change) -> None:
        if change not in self.changes:
            self.add(change)
        change.opened += 1

    def leave(self, change: _Change) -> None:
        """Take it back with what was set inside of its block."""
        change.opened -= 1
        if change.opened:
            return
        first = self.changes.index(change)
        inside = list(takewhile(lambda each: not each.opened, self.changes[first:]))
        del self.changes[first : first + len(inside)]
        self._apply()

    def _settle(self) -> None:
        """Have changes whose block cannot be entered any more belong to the block around them."""
        left = []
        for change in self.changes:
            if change.opened or change.owner():
                left.append(change)
            elif left:
                left[-1].value = change.value
            else:
                self.before = change.value
        self.changes = left

    def _apply(self) -> None:
        _core.limit(self.name, self.changes[-1].value if self.changes else self.before)


_limits = {name: _Limit(name) for name in _NAMES}
_changing = Lock()


@dataclass(frozen=True)
class Limits:
    """The limits in force when ``gpukern.limits()`` returned, in bytes.

    In a ``with`` statement, those that the call has set are what they were before once the block
    ends, also if others are open in other threads.
    """

    pinned_memory: int
    device_memory: int
    mapped_call: int
    _changes: dict[str, _Change] = field(default_factory=dict, repr=False, compare=False)

    def __enter__(self) -> "Limits":
        with _changing:
            for name, change in self._changes.items():
                _limits[name].enter(change)
        return self

    def __exit__(self, *exception: object) -> None:
        with _changing:
            for name, change in self._changes.items():
                _limits[name].leave(change)


@called_as("limits")
def limits(
    pinned_memory: int | None = None,
    device_memory: int | None = None,
    mapped_call: int | None = None,
) -> Limits:
    """Set the limits that are given, in bytes, and return all of them.

    ``pinned_memory``: host memory that results and staging buffers of a device may hold, in use and
    kept to be used again; a sixteenth of the machine's memory unless set. Above it results are
    ordinary NumPy arrays. ``device_memory``: what the arrays of one matmul, or of one reduction
    along an axis, on host arrays may take on the device, which otherwise is what is free; 0 takes
    the limit away. ``mapped_call``: calls
    on host arrays of no more bytes than this, operands and result together, copy nothing: the
    kernel reads and writes the host's memory (192 KiB unless set, 1 MiB at most).

    ``with gpukern.limits(...):`` takes them back when the block ends. They hold for all threads: of
    blocks that are open in several the newest one holds, and once none is, what was before them.
    Raises TypeError for what is no whole number and ValueError for a negative one, and then changes
    nothing.
    """
    given = dict(zip(_NAMES, (pinned_memory, device_memory, mapped_call), strict=True))
    with blamed_on("limits"):
        counts = {
            name: checked_count(name, count, 0, "a number of bytes")
            for name, count in given.items()
            if count is not None
        }
    changes = {name: _Change(count) for name, count in counts.items()}
    with _changing:
        for name, change in changes.items():
            _limits[name].add(change)
        made = Limits(**{name: _core.limit(name) for name in _NAMES}, _changes=changes)
        for change in changes.values():
            change.owner = ref(made)
    return made
