"""Other processes of this Python, that are asked for things over a pipe.

A process says ("here", None) when it has started, and answers one command after another, each a
name and its arguments, until the other side is gone. While it works it says ("tick", what it does
next), in the end ("done", the result) or ("raised", a sentence). Whatever it does, end, crash or
hang, costs no more than itself.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from gpukern.text.errors import one_line

Tick = Callable[[str], None]
# Seconds in which a process has to start, however little patience there is later: on a machine that
# is loaded, starting Python and importing take long.
_TO_START = 60.0


class LostError(Exception):
    """The process ended, or was ended since nothing was heard of it; ``doing`` is its last word."""

    def __init__(self, why: str, doing: str) -> None:
        super().__init__(why)
        self.doing = doing


class SilentError(LostError):
    """The process was ended, since nothing was heard of it."""


class Asked:
    """A process that runs a module, seen from the side that asks; the module calls ``serve``.

    It may be silent for ``patience`` seconds. ``changes`` are those of its environment.
    """

    def __init__(
        self, module: str, patience: float, changes: Mapping[str, str] | None = None
    ) -> None:
        self.patience, self.doing = patience, ""
        self._waits = max(patience, _TO_START)
        ours, theirs = socket.socketpair()
        with theirs:
            descriptor = theirs.fileno()
            paths = os.pathsep.join(path for path in sys.path if path)
            # In a session of its own: Ctrl-C is for the one who asked, who then ends this one.
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(descriptor)],
                pass_fds=[descriptor],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": paths, **(changes or {})},
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
            while self._pipe.poll(self._waits):
                kind, value = self._pipe.recv()
                self._waits = self.patience
                if kind != "here":
                    return kind, value
        self.end()
        raise SilentError(f"nothing was heard of it for {self._waits:g} s", self.doing)

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


class Server:
    """What may be asked of this process: the methods of a class made of this one, by name."""

    def __init__(self, pipe: "Connection[Any, Any]") -> None:
        self.pipe = pipe

    def tick(self, doing: str) -> None:
        """Tell the other side what comes next, so that it knows whom to blame for silence."""
        self.say("tick", doing)

    def say(self, kind: str, value: Any) -> None:
        """Send an answer; where nobody is left to hear it, there is nothing left to do."""
        try:
            self.pipe.send((kind, value))
        except OSError:
            os._exit(0)

    def serve(self) -> None:
        """Do what is asked until nobody asks any more."""
        self.say("here", None)
        while True:
            try:
                command, arguments = self.pipe.recv()
            except (EOFError, OSError):
                return
            try:
                value = getattr(self, command)(*arguments)
            except Exception as error:
                self.say("raised", one_line(error))
            else:
                self.say("done", value)


def serve(server: "Callable[[Connection[Any, Any]], Server]") -> None:
    """Serve on the descriptor that the command line names."""
    # What is printed here is not for whoever reads the output of the one who asks.
    os.dup2(2, 1)
    with Connection(int(sys.argv[1])) as pipe:
        server(pipe).serve()
    # Without the exit handlers of a dozen libraries, which take seconds and may hang.
    os._exit(0)
