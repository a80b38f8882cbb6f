"""How far the build is, for whoever sits in front of it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TextIO

from build_tools.steps import Step

INTERVAL = 0.25


class Progress:
    """One line on the terminal that is written over; nothing where there is no terminal.

    pip hides what a build prints, so the line goes to the terminal itself. Its end stays free for
    what pip turns there while it waits.
    """

    def __init__(self, chains: Sequence[Sequence[Step]]) -> None:
        self.total = sum(map(len, chains))
        self.count = self.made = 0
        self.start = time.monotonic()
        self.written = 0.0
        self.lock = threading.Lock()
        self.terminal = open_terminal()

    def finished(self, step: Step, made: bool) -> None:
        """A step is done; `made` tells whether there was anything to do."""
        with self.lock:
            self.count += 1
            self.made += made
            now = time.monotonic()
            if self.terminal and made and now - self.written > INTERVAL:
                self.written = now
                what = step.title or step.source
                self.write(f"{self.count} of {self.total} compiled ({what})")

    def write(self, text: str) -> None:
        """Put the line on the terminal; one that has gone away is no reason to stop."""
        if self.terminal:
            try:
                columns = os.get_terminal_size(self.terminal.fileno()).columns or 80
                self.terminal.write(f"\r\x1b[K  gpukern: {text} "[: columns + 2])
                self.terminal.flush()
            except OSError:
                self.terminal = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.written:
            seconds = time.monotonic() - self.start
            end = "stopped" if kind else f"{self.made} of {self.count} steps made"
            self.write(f"{end}, {seconds:.0f} s")
        if self.terminal:
            self.terminal.close()


def open_terminal() -> TextIO | None:
    """The terminal that this process may write on, if it runs in the foreground of one."""
    if os.environ.get("TERM", "dumb") == "dumb":
        return None
    try:
        descriptor = os.open("/dev/tty", os.O_WRONLY | os.O_NOCTTY)
    except OSError:
        return None
    try:
        in_front = os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        in_front = False
    if in_front:
        return os.fdopen(descriptor, "w", encoding="utf-8")
    os.close(descriptor)
    return None
