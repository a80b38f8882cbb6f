"""One way to do an operation, its work on the device, or the reason why there is none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class DeviceSide:
    """How to run a contender on arrays that are on the device already.

    ``run(inputs, out)`` writes into ``out``, or returns its result. It starts the work, if it can
    on the legacy default stream, and need not wait for it: the harness does. ``load`` and ``fetch``
    copy an array to the device and back. ``wrap`` makes the library's own array of device memory
    with ``__cuda_array_interface__``, without a copy; where it is None, the arrays are what
    ``load`` returns.
    """

    load: Callable[[Array], Any]
    run: Callable[[Sequence[Any], Any], Any]
    fetch: Callable[[Any], Array]
    wrap: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Contender:
    """One way to do one operation on one dtype.

    ``end_to_end`` takes NumPy arrays and returns one. ``serial`` tells that its sums are added one
    element after another, for which a wider error bound holds; ``carried`` names the dtype in which
    its sums are carried, where that is not float32 for the half types and their own for the others.
    ``reuses`` tells that the array which it returns is its own, and overwritten by the next call,
    as that of a user who passes ``out=``. ``transfers`` names the library whose transfers
    ``end_to_end`` makes, where they are not its own: it is checked so then, and not timed.
    ``tunes`` tells that its first call with a size times some kernels to choose one of them, while
    nobody else may be at work. ``off_device`` says why there is no time on the device, where a
    reader would look for one. ``ran`` names the variant that a call on such inputs and such an
    output, on the device, really runs: one that does not suit them may give way to another.
    """

    name: str
    variant: str
    end_to_end: Callable[..., Any]
    device: DeviceSide | None = None
    serial: bool = False
    carried: str = ""
    reuses: bool = False
    transfers: str = ""
    off_device: str = ""
    tunes: bool = False
    ran: Callable[[Sequence[Any], Any], str] | None = None

    @property
    def label(self) -> str:
        """The name and the variant."""
        return f"{self.name} {self.variant}".strip()


@dataclass(frozen=True)
class Absent:
    """A contender that cannot take part, and why; ``broken`` when that is a fault to report."""

    name: str
    variant: str
    why: str
    broken: bool = False


def _nothing(*known: Any) -> None:
    """What is done round a call that nobody looks at."""


@dataclass(frozen=True)
class Work:
    """What is timed on the device: ``start`` hands the work over.

    Round the calls, and outside of what is timed: ``begin`` is told how many of them are next, or a
    few more; ``freshen`` changes the inputs before each; ``keep`` may put its result aside after
    it, and tells whether that has taken the cache.
    """

    start: Callable[[], object]
    begin: Callable[[int], object] = _nothing
    freshen: Callable[[], object] = _nothing
    keep: Callable[[Any], object] = _nothing
