"""Who is compared: the libraries that are known, and the functions that users have added."""

import importlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from gpukern import _core
from gpukern.bench.contenders.users_kernel import Launch, as_function, check_alone
from gpukern.bench.model.case import OPERATIONS, Case
from gpukern.bench.model.contender import Absent, Contender, DeviceSide
from gpukern.catalogue import dtype_name
from gpukern.machine.inventory import installed, versions
from gpukern.text.calls import blamed_on, called_as, checked_flag
from gpukern.text.errors import one_line

Array = npt.NDArray[Any]


Offer = Callable[[str, str], Iterable[Contender | Absent]]


@dataclass(frozen=True)
class Peer:
    """A library to compare with. ``offer`` is "module:function", or the function itself.

    The function takes an operation and a dtype, and yields contenders. ``requires`` is the module
    that has to be importable, ``install`` what brings it, ``package`` whose version is shown.
    ``ahead`` is a function that takes pairs of them, and the one variant that is wanted or None; it
    gets ready what the peer would import or compile in its first call.
    """

    key: str
    name: str
    offer: str | Offer
    requires: str = ""
    install: str = ""
    needs_gpu: bool = True
    package: str = ""
    ahead: str = ""

    @property
    def own(self) -> bool:
        """Whether it is a user's function, not a library that is known here."""
        return not isinstance(self.offer, str)

    @property
    def version(self) -> str:
        """The version that is installed, or nothing."""
        return versions().get(self.package or self.key, "")


PEERS = (
    Peer(
        "numpy",
        "NumPy",
        "gpukern.bench.contenders.numpy_:contenders",
        needs_gpu=False,
        package="numpy",
    ),
    Peer(
        "torch",
        "PyTorch",
        "gpukern.bench.contenders.torch_:contenders",
        "torch",
        "pip install torch",
        ahead="gpukern.bench.contenders.torch_:ahead",
    ),
    Peer(
        "cupy",
        "CuPy",
        "gpukern.bench.contenders.cupy_:contenders",
        "cupy",
        "pip install cupy-cuda13x",
    ),
    Peer(
        "numba",
        "Numba",
        "gpukern.bench.contenders.numba_:contenders",
        "numba",
        'pip install "numba-cuda[cu13]"',
        package="numba-cuda",
    ),
    Peer(
        "pycuda",
        "PyCUDA",
        "gpukern.bench.contenders.pycuda_:contenders",
        "pycuda",
        "pip install pycuda",
    ),
    Peer(
        "triton",
        "Triton",
        "gpukern.bench.contenders.triton_:contenders",
        "triton",
        "pip install triton",
    ),
    Peer(
        "jax", "JAX", "gpukern.bench.contenders.jax_:contenders", "jax", 'pip install "jax[cuda13]"'
    ),
    Peer(
        "cuda-python",
        "CUDA Python",
        "gpukern.bench.contenders.cuda_python_:contenders",
        "cuda.core",
        "pip install cuda-core[cu13]",
        package="cuda-core",
    ),
    Peer(
        "cub",
        "CUB",
        "gpukern.bench.contenders.cub_:contenders",
        ahead="gpukern.bench.contenders.cub_:ahead",
    ),
    Peer("gpukern", "gpukern", "gpukern.bench.contenders.gpukern_:contenders", needs_gpu=False),
)


# What users have added with the decorator, by name.
REGISTERED: dict[str, Peer] = {}


@dataclass(frozen=True)
class _Own:
    """What users have added under one name: a contender for each operation."""

    by_op: dict[str, Contender]

    def __call__(self, op: str, dtype: str) -> Iterable[Contender]:
        return [self.by_op[op]] if op in self.by_op else []


@called_as("contender")
def contender(  # noqa: PLR0913 (what a kernel is launched with)
    op: str,
    name: str | None = None,
    *,
    device: bool = False,
    wrap: Callable[[Any], Any] | None = None,
    kernel: Any = None,
    grid: Any = None,
    block: Any = None,
    args: Callable[..., Sequence[Any]] | None = None,
    shared: int = 0,
) -> Any:
    """Let a function take part in every comparison of ``op`` from here on::

        @gpukern.contender("matmul")
        def mine(a, b):
            return numpy.dot(a, b)

    It takes NumPy arrays and returns one. With ``device=True`` it takes the inputs and then ``out``
    as arrays on the device, and writes the result there on the legacy default stream; ``wrap``
    makes these arrays, for example ``cupy.asarray``, of objects with ``__cuda_array_interface__``;
    it is timed on the device alone. One name may have a function for each of several operations; a
    second one for the same operation takes the place of the first. Raises ValueError for an
    unknown operation and for a name that is a built-in contender's ("NumPy", "torch", ...), and
    TypeError for what is no name, no flag or no function.

    A kernel of ``gpukern.compile`` takes part at once, and nothing is decorated::

        gpukern.contender("matmul", kernel=module.product, grid=lambda a, b, out: ..., block=256)

    ``grid`` and ``block`` are as its call takes them, or functions of the inputs and ``out``;
    without ``grid`` there is a thread for each element of the result. Its ``const`` pointers are
    the inputs and the other one is the result; a length is known by its name, ``m``, ``n`` and
    ``k`` of matmul and ``n``, ``size`` or ``count`` of what else. ``args``, a function of the
    inputs and ``out``, gives other arguments, ``shared`` is bytes of dynamic shared memory. The
    kernel is returned.
    """
    if not isinstance(op, str) or op not in OPERATIONS:
        raise ValueError(f"contender: unknown operation {op!r}; there are {', '.join(OPERATIONS)}")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"contender: name has to be a text, not {name!r}")
    if wrap is not None and not callable(wrap):
        raise TypeError(f"contender: wrap has to be a function of an array, not {wrap!r}")
    with blamed_on("contender"):
        checked_flag("device", device)
        launch = Launch(kernel, grid, block, args, shared)
        if kernel is None:
            check_alone(launch)
        else:
            run, title = as_function(op, launch), _free_name(name or str(kernel.name))

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            raise TypeError(f"contender: it decorates a function, not {function!r}")
        with blamed_on("contender"):
            title = _free_name(name or _name_of(function))
        one = _on_device(title, function, op, wrap) if device else Contender(title, "", function)
        _register(title, op, one)
        return function

    if kernel is None:
        return register
    _register(title, op, _on_device(title, run, op, wrap))
    return kernel


def _register(title: str, op: str, one: Contender) -> None:
    known = REGISTERED[title].offer if title in REGISTERED else None
    others = known.by_op if isinstance(known, _Own) else {}
    REGISTERED[title] = Peer(title, title, _Own({**others, op: one}), needs_gpu=False)


def own_peer(function: Callable[..., Any], name: str) -> "Peer":
    """A user's function, under that name, as a contender of whatever is compared."""
    title = _free_name(name)

    def offer(op: str, dtype: str) -> Iterable[Contender]:
        return [Contender(title, "", function)]

    return Peer(title, title, offer, needs_gpu=False)


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", "contender"))


def _free_name(name: str) -> str:
    """The name, where it is nobody's. Raises ValueError where it is that of a built-in contender.

    A function under that name would stand in the tables as if it were the library, and so it would
    under one that looks like it: no signs that nobody sees, and wide letters are letters.
    """
    if not name.isprintable() or name != " ".join(name.split()):
        raise ValueError(
            f"the name of a contender has to be words with a space between, not {name!r}"
        )
    plain = unicodedata.normalize("NFKC", name).lower()
    for peer in PEERS:
        if plain in (peer.key, peer.name.lower()):
            raise ValueError(
                f"the name of a contender has to be its own, not {name!r}, "
                f"which is that of the built-in {peer.name}"
            )
    return name


def _on_device(
    title: str, function: Callable[..., Any], op: str, wrap: Callable[[Any], Any] | None
) -> Contender:
    def prepared(array: Any) -> Any:
        return wrap(array) if wrap else array

    def run(inputs: Sequence[Any], out: Any) -> None:
        function(*inputs, out)

    def end_to_end(*arrays: Array) -> Array:
        inputs = [_core.to_device(array) for array in arrays]
        case = Case(op, tuple(array.shape for array in arrays), dtype_name(arrays[0].dtype))
        out = _core.empty(case.result_shape, case.result_dtype)
        function(*map(prepared, inputs), prepared(out))
        return out.to_host()

    side = DeviceSide(_core.to_device, run, _core.DeviceArray.to_host, prepared)
    return Contender(title, "", end_to_end, side, transfers="gpukern")


Wanted = str | Peer | Callable[..., Any]


def select(wanted: Sequence[Wanted] | None) -> list[tuple[Peer, str | None]]:
    """Peers and, where only one variant was asked for as "peer:variant", that variant.

    A function takes part under its own name, with a number where another one has that. Raises
    ValueError for an unknown name, listing the known, and for a function that has the name of a
    built-in contender.
    """
    if isinstance(wanted, str) or not (wanted is None or hasattr(wanted, "__iter__")):
        raise TypeError(f"contenders has to be a list of names or functions, not {wanted!r}")
    if wanted is not None and not list(wanted):
        raise ValueError(f"contenders has to name one or more, not {wanted!r}; None is for all")
    if wanted is None:
        return [(peer, None) for peer in (*PEERS, *REGISTERED.values())]
    taken = {entry for entry in wanted if isinstance(entry, str)}
    return [_chosen(entry, taken) for entry in wanted]


def _chosen(entry: Wanted, taken: set[str]) -> tuple[Peer, str | None]:
    """``taken`` are names so far: of two functions with one name each has a row of its own."""
    if isinstance(entry, str):
        return _named(entry)
    if isinstance(entry, Peer):
        return entry, None
    if not callable(entry):
        raise TypeError(f"contenders has to hold names or functions of arrays, not {entry!r}")
    title = name = _name_of(entry)
    number = 1
    while title in taken:
        number += 1
        title = f"{name} {number}"
    taken.add(title)
    return own_peer(entry, title), None


def _named(entry: str) -> tuple[Peer, str | None]:
    key, _, variant = entry.partition(":")
    if key in REGISTERED:
        return REGISTERED[key], None
    for peer in PEERS:
        if key.lower() in (peer.key, peer.name.lower()):
            return peer, variant or None
    known = [peer.key for peer in PEERS] + list(REGISTERED)
    raise ValueError(f"unknown contender {entry!r}; there are {', '.join(known)}")


def _absence(peer: Peer) -> str:
    """Why a peer cannot take part at all; nothing where it can."""
    if peer.needs_gpu and _core.backend() == "sim":
        return "needs a GPU"
    return f"not installed: {peer.install}" if _is_missing(peer) else ""


def _is_missing(peer: Peer) -> bool:
    return bool(peer.requires) and not installed(peer.requires)


def gather(peer: Peer, variant: str | None, op: str, dtype: str) -> list[Contender | Absent]:
    """What a peer offers for an operation; what it raises becomes a broken ``Absent``."""
    why = _absence(peer)
    if why:
        return [Absent(peer.name, "", why)]
    offered: list[Contender | Absent] = []
    try:
        # One by one: what comes before a broken one can take part.
        for one in _offer(peer)(op, dtype):
            offered.append(one)
    except Exception as error:
        offered.append(Absent(peer.name, "", one_line(error), broken=True))
    # Where there are several GPUs, JAX leaves the last one current as it starts, and those that
    # come after it would work there, on arrays that are here.
    _core.make_current()
    if variant is None:
        return offered
    kept = [one for one in offered if one.variant in (variant, "")]
    return kept or [Absent(peer.name, variant, f"no such variant of {op} for {dtype}")]


def check_variants(
    entrants: Iterable[tuple[Peer, str | None]], kinds: Iterable[tuple[str, str]]
) -> None:
    """Raise ValueError for a variant that its peer, which is here, has of none of these operations
    and dtypes."""
    kinds = list(kinds)
    for peer, variant in entrants:
        if variant is None:
            continue
        offered = [one for kind in kinds for one in gather(peer, None, *kind)]
        known = list(dict.fromkeys(one.variant for one in offered))
        # Where a peer cannot take part, nobody knows its variants.
        if "" not in known and variant not in known:
            what = ", ".join(dict.fromkeys(f"{op} for {dtype}" for op, dtype in kinds))
            there = f"there are {', '.join(known)}" if known else "there is none"
            raise ValueError(f"{peer.name} has no variant {variant!r} of {what}; {there}")


def _offer(peer: Peer) -> Offer:
    found: Offer = _function(peer.offer) if isinstance(peer.offer, str) else peer.offer
    return found


def _function(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def begin_ahead(
    entrants: Iterable[tuple[Peer, str | None]], kinds: Sequence[tuple[str, str]]
) -> None:
    """Get ready what peers that are here would import or compile in their first calls.

    First those that have nothing to import: they start a compiler, which runs meanwhile.
    """
    for peer, variant in sorted(entrants, key=lambda one: bool(one[0].requires)):
        if peer.ahead and not _absence(peer):
            _function(peer.ahead)(kinds, variant)


def missing() -> Iterator[tuple[str, str]]:
    """The peers whose library is not here, by key, and what installs each."""
    for peer in PEERS:
        if _is_missing(peer):
            yield peer.key, peer.install
