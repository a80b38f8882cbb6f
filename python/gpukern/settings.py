"""What a program may set: the device that calls run on, and how much memory they keep."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class Limits:
    """The limits in force when ``gpukern.limits()`` returned, in bytes.

    In a ``with`` statement, those that the call has set are what they were before once the block
    ends.
    """

    pinned_memory: int
    device_memory: int
    mapped_call: int
    _before: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    def __enter__(self) -> "Limits":
        return self

    def __exit__(self, *exception: object) -> None:
        for name, count in self._before.items():
            _core.limit(name, count)


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

    ``with gpukern.limits(...):`` takes them back when the block ends. They hold for all threads.
    Raises TypeError for what is no whole number and ValueError for a negative one, and then changes
    nothing.
    """
    given = dict(zip(_NAMES, (pinned_memory, device_memory, mapped_call), strict=True))
    with blamed_on("limits"):
        changes = {
            name: checked_count(name, count, 0, "a number of bytes")
            for name, count in given.items()
            if count is not None
        }
    before = {name: _core.limit(name, count) for name, count in changes.items()}
    return Limits(**{name: _core.limit(name) for name in _NAMES}, _before=before)
