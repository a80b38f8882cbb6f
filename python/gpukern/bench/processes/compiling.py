"""What compilers keep on disk is made before anything is measured, while libraries are imported.

Some libraries compile for seconds at the first call with a size, in each process anew, and keep the
outcome on disk, where another process finds it. So every such contender is called once for every
case, each in a process of its own, all side by side.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from gpukern import _core
from gpukern.bench.blocks import Entrants
from gpukern.bench.contenders.registry import Peer
from gpukern.bench.model.case import Case
from gpukern.bench.processes.member import LostError, Member
from gpukern.bench.processes.room import holds
from gpukern.bench.processes.sending import pickled
from gpukern.machine.inventory import installed


class Compiling:
    """Begins at once; ``wait`` or ``close`` is its end."""

    def __init__(self, entrants: Entrants, cases: Sequence[Case], patience: float) -> None:
        self._patience, self._members = patience, list[Member]()
        self._closed = False
        self._pool = ThreadPoolExecutor(os.cpu_count(), "gpukern-compiling")
        tasks = [(entrant, case) for entrant in _compiled(entrants) for case in cases]
        if all(holds(case, len(tasks)) for case in cases):
            for entrant, case in tasks:
                self._pool.submit(self._call, entrant, case)

    def _call(self, entrant: bytes, case: Case) -> None:
        """What goes wrong here goes wrong again, and is told, where it is measured."""
        with suppress(LostError, RuntimeError):
            member = Member(self._patience)
            self._members.append(member)
            try:
                # Closed meanwhile, when it may not have been among those that were ended.
                if not self._closed:
                    for command in (("begin", entrant, 0), ("compile", case)):
                        member.ask(*command)
                        member.answer(lambda doing: None)
            finally:
                member.end()

    def wait(self) -> None:
        """Until everything is compiled."""
        self._pool.shutdown()

    def close(self) -> None:
        """End it as it is."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for member in self._members:
            member.end()
        self._pool.shutdown()


def _compiled(entrants: Entrants) -> list[bytes]:
    """Those that compile to disk, as a process takes them."""
    return [
        pickled([(peer, variant or only)])
        for peer, only in entrants
        if _is_here(peer)
        for variant in peer.compiled
        if only in (None, variant or only)
    ]


def _is_here(peer: Peer) -> bool:
    has_device = not peer.needs_gpu or _core.backend() != "sim"
    return has_device and (not peer.requires or installed(peer.requires))
