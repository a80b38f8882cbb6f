"""One measuring process, seen from the side that asks it."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from gpukern.bench.measuring import Tick
from gpukern.bench.processes.keeping import keeping


class LostError(Exception):
    """The process ended, or was ended since nothing was heard of it; ``doing`` is its last word."""

    def __init__(self, why: str, doing: str) -> None:
        super().__init__(why)
        self.doing = doing


class Member:
    """A process that measures; it may be silent for ``patience`` seconds.

    ``changes`` are those of its environment.
    """

    def __init__(self, patience: float, changes: Mapping[str, str] | None = None) -> None:
        self.patience, self.doing = patience, ""
        ours, theirs = socket.socketpair()
        with theirs:
            descriptor = theirs.fileno()
            command = [sys.executable, "-m", "gpukern.bench.processes.worker", str(descriptor)]
            paths = os.pathsep.join(path for path in sys.path if path)
            # In a session of its own: Ctrl-C is for the one who asked, who then ends this one.
            self._process = subprocess.Popen(
                command,
                pass_fds=[descriptor],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**keeping(), **os.environ, "PYTHONPATH": paths, **(changes or {})},
            )
        self._pipe: Connection[Any, Any] = Connection(ours.detach())

    def ask(self, command: str, *arguments: Any) -> None:
        """Have it begin with a command; ``answer`` waits for the result."""
        self.doing = ""
        with self._alive():
            self._pipe.send((command, arguments))

    def answer(self, tick: Tick) -> Any:
        """The result. Raises RuntimeError where that was raised, LostError where it is gone."""
        while True:
            kind, value = self._hear()
            if kind == "done":
                return value
            if kind == "raised":
                raise RuntimeError(value)
            self.doing = value
            tick(value)

    def _hear(self) -> Any:
        with self._alive():
            if self._pipe.poll(self.patience):
                return self._pipe.recv()
        self.end()
        raise LostError(f"nothing was heard of it for {self.patience:g} s", self.doing)

    @contextmanager
    def _alive(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError):
            self.end()
            raise LostError(f"its process ended {self._how()}", self.doing) from None

    def _how(self) -> str:
        status = self._process.returncode
        if status >= 0:
            return f"with exit status {status}"
        return f"by {signal.Signals(-status).name}"

    def end(self) -> None:
        """End it, and everything that it has started."""
        self._pipe.close()
        with suppress(subprocess.TimeoutExpired):
            # A process that has ended by itself says how.
            self._process.wait(0.2)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
