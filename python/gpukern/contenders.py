"""Who is compared: gpukern's variants and the libraries beside it, each behind an adapter."""

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from gpukern import _core

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class DeviceSide:
    """How to run a contender on arrays that are on the device already.

    ``run(inputs, out)`` starts the work on the legacy default stream and need not wait for it: the
    harness does.
    """

    load: Callable[[Array], Any]
    run: Callable[[Sequence[Any], Any], object]
    fetch: Callable[[Any], Array]


@dataclass(frozen=True)
class Contender:
    """One way to do one operation on one dtype.

    ``end_to_end`` takes NumPy arrays and returns one. ``serial`` tells that its sums are added one
    element after another, for which a wider error bound holds.
    """

    name: str
    variant: str
    end_to_end: Callable[..., Any]
    device: DeviceSide | None = None
    serial: bool = False


@dataclass(frozen=True)
class Absent:
    """A contender that cannot take part, and why; ``broken`` when that is a fault to report."""

    name: str
    variant: str
    why: str
    broken: bool = False


Offer = Callable[[str, str], Iterable[Contender | Absent]]


@dataclass(frozen=True)
class Peer:
    """A library to compare with. ``offer`` is "module:function", or the function itself.

    The function takes an operation and a dtype, and yields contenders. ``requires`` is the module
    that has to be importable, ``install`` what brings it.
    """

    key: str
    name: str
    offer: str | Offer
    requires: str = ""
    install: str = ""
    needs_gpu: bool = True


PEERS = (
    Peer("numpy", "NumPy", "gpukern.peers.numpy_:contenders", needs_gpu=False),
    Peer("torch", "PyTorch", "gpukern.peers.torch_:contenders", "torch", "pip install torch"),
    Peer("cupy", "CuPy", "gpukern.peers.cupy_:contenders", "cupy", "pip install cupy-cuda13x"),
    Peer(
        "numba",
        "Numba",
        "gpukern.peers.numba_:contenders",
        "numba",
        'pip install "numba-cuda[cu13]"',
    ),
    Peer("gpukern", "gpukern", "gpukern.peers.gpukern_:contenders", needs_gpu=False),
)


def select(wanted: Sequence[str | Peer] | None) -> list[tuple[Peer, str | None]]:
    """Peers and, where only one variant was asked for as "peer:variant", that variant.

    Raises ValueError for an unknown name, listing the known.
    """
    if wanted is None:
        return [(peer, None) for peer in PEERS]
    return [_named(entry) if isinstance(entry, str) else (entry, None) for entry in wanted]


def _named(entry: str) -> tuple[Peer, str | None]:
    key, _, variant = entry.partition(":")
    for peer in PEERS:
        if key.lower() in (peer.key, peer.name.lower()):
            return peer, variant or None
    raise ValueError(f"unknown contender {entry!r}; there are {', '.join(p.key for p in PEERS)}")


def installed(module: str) -> bool:
    """Whether a module is there, without importing what is inside it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def gather(peer: Peer, variant: str | None, op: str, dtype: str) -> list[Contender | Absent]:
    """What a peer offers for an operation; what it raises becomes a broken ``Absent``."""
    if peer.needs_gpu and _core.backend() == "sim":
        return [Absent(peer.name, "", "needs a GPU")]
    if peer.requires and not installed(peer.requires):
        return [Absent(peer.name, "", f"not installed: {peer.install}")]
    try:
        offered = list(_offer(peer)(op, dtype))
    except Exception as error:
        return [Absent(peer.name, "", one_line(error), broken=True)]
    if variant is None:
        return offered
    kept = [one for one in offered if one.variant == variant]
    return kept or [Absent(peer.name, variant, f"no such variant of {op} for {dtype}")]


def _offer(peer: Peer) -> Offer:
    if not isinstance(peer.offer, str):
        return peer.offer
    module, _, function = peer.offer.partition(":")
    found: Offer = getattr(importlib.import_module(module), function)
    return found


def one_line(error: BaseException) -> str:
    """An error as one line: its type and the first line of what it says."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__
