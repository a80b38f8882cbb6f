"""Streams and events as PyCUDA has them.

PyCUDA's streams wait for the legacy default stream and it for them; gpukern's do not. So work on
the default stream, and whatever takes memory to the host, first waits for the streams that were
used.
"""

import threading
from typing import Any, Self

from gpukern import _core

_lock = threading.Lock()
# Of each stream that was given work: itself, and what the work may still read or write.
_busy: dict[int, tuple[Any, dict[int, Any]]] = {}


class Stream:
    """A queue of work on the device, beside others. ``flags`` are taken and mean nothing."""

    def __init__(self, flags: int = 0) -> None:
        self._stream = _core.Stream()

    @property
    def handle(self) -> int:
        """The address of the driver's own stream."""
        return self._stream.cuda_stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return self._stream.__cuda_stream__()

    def synchronize(self) -> None:
        """Wait until all of its work is done."""
        _wait(self.handle, self._stream)

    def is_done(self) -> bool:
        """True; it waits until all of the stream's work is done."""
        self.synchronize()
        return True

    def wait_for_event(self, event: "Event") -> None:
        """Have what follows come after an event; it waits for it here."""
        event.synchronize()


def given(stream: Any) -> Any:
    """A stream as gpukern takes it; None and 0 are the default one."""
    if isinstance(stream, Stream):
        return stream._stream
    return None if stream is None or stream == 0 else stream


def _handle(stream: Any) -> int:
    if isinstance(stream, int):
        return stream
    number: int = stream.__cuda_stream__()[1] if hasattr(stream, "__cuda_stream__") else id(stream)
    return number


def used(stream: Any, keep: tuple[Any, ...]) -> None:
    """Note that work which uses ``keep`` was given to a stream, as ``given`` has it."""
    if stream is None:
        return
    with _lock:
        kept = _busy.setdefault(_handle(stream), (stream, {}))[1]
        kept.update((id(each), each) for each in keep)


def _wait(handle: int, stream: Any) -> None:
    with _lock:
        known = _busy.pop(handle, None)
    _core.synchronize(stream)
    del known  # what it kept is given back after the work


def settle() -> None:
    """Wait for every stream that was given work."""
    while _busy:
        with _lock:
            waiting = list(_busy.items())
        for handle, (stream, _) in waiting:
            _wait(handle, stream)


def synchronize() -> None:
    """Wait until the device has done all of its work."""
    settle()
    _core.synchronize()


class Event:
    """A moment in a stream's work. ``flags`` are taken and mean nothing."""

    def __init__(self, flags: int = 0) -> None:
        self._event = _core.Event()

    def record(self, stream: Any = None) -> Self:
        """Mark this moment in a stream's work, or in the default one's."""
        chosen = given(stream)
        if chosen is None:
            settle()
        self._event.record(chosen)
        return self

    def synchronize(self) -> Self:
        """Wait until the moment has come."""
        self._event.synchronize()
        return self

    def query(self) -> bool:
        """True; it waits until the moment has come."""
        self.synchronize()
        return True

    def time_since(self, event: "Event") -> float:
        """Milliseconds from another event to this one."""
        self.synchronize()
        event.synchronize()
        return 1e3 * self._event.seconds_since(event._event)

    def time_till(self, event: "Event") -> float:
        """Milliseconds from this event to another one."""
        return event.time_since(self)
