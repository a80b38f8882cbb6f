"""The first call of each contender, in a process that has done nothing before but import it.

What other processes have compiled and kept it does not find.
"""

from collections.abc import Sequence
from tempfile import TemporaryDirectory

from gpukern.bench.blocks import Entrants
from gpukern.bench.measuring import Tick
from gpukern.bench.model.case import Case
from gpukern.bench.model.finding import Finding
from gpukern.bench.processes.member import Member
from gpukern.bench.processes.sending import pickled
from gpukern.processes import LostError

# Where compilers keep what they have compiled: each first call finds an empty folder there.
_CACHES = (
    "XDG_CACHE_HOME",
    "CUDA_CACHE_PATH",
    "CUPY_CACHE_DIR",
    "JAX_COMPILATION_CACHE_DIR",
    "NUMBA_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
)


def first_calls(
    entrants: Entrants,
    case: Case,
    findings: Sequence[Finding],
    seed: int,
    patience: float,
    tick: Tick,
) -> None:
    """Write down the first call of those that are right, one process after another."""
    peers = {peer.name: peer for peer, _ in entrants}
    for one in findings:
        if one.right and one.examined:
            pair = peers[one.contender], one.variant or None
            tick(f"first call of {one.label}")
            one.first_call = _first_call(pickled([pair]), case, one.label, seed, patience)


def _first_call(entrant: bytes, case: Case, label: str, seed: int, patience: float) -> float | None:
    """Seconds, or None for one that ends its process or is silent."""
    with TemporaryDirectory(prefix="gpukern-") as folder:
        member = Member(patience, dict.fromkeys(_CACHES, folder))

        def asked(command: str, *arguments: object) -> object:
            member.ask(command, *arguments)
            return member.answer(lambda doing: None)

        try:
            asked("begin", entrant, seed)
            asked("load", [case])
            seconds = asked("first_call", case, label, seed)
        except (LostError, RuntimeError):
            return None
        finally:
            member.end()
    return float(seconds) if isinstance(seconds, float) else None
