"""How far a comparison is and what it does: a bar on a terminal, a line in a notebook.

Nothing is drawn while a contender is timed: only between two steps, when they are reported.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gpukern.text.render import console

if TYPE_CHECKING:
    from rich.progress import Progress

# Seconds between two looks of a reader.
_EACH = 0.25


class Display:
    """Takes reports and shows nothing: where nobody watches."""

    def report(self, doing: str, done: int, total: int) -> None:
        """What comes next, how many steps are done, and how many there are."""

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Out of the way while something else is printed."""
        yield


class _Timed(Display):
    """Shows a report if the one before has been there for a moment."""

    def __init__(self) -> None:
        self._shown = 0.0

    def report(self, doing: str, done: int, total: int) -> None:
        if time.monotonic() - self._shown >= _EACH:
            self.show(doing, done, total)
            self._shown = time.monotonic()

    def show(self, doing: str, done: int, total: int) -> None:
        raise NotImplementedError


class _Bar(_Timed):
    """A bar on standard error, which goes when all is done."""

    def __init__(self, bar: "Progress") -> None:
        super().__init__()
        self._bar, self._task = bar, bar.add_task("starting", total=None)

    def show(self, doing: str, done: int, total: int) -> None:
        self._bar.update(self._task, description=doing, completed=done, total=total)
        self._bar.refresh()

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._bar.stop()
        yield
        self._bar.start()


class _Line(_Timed):
    """A line in the output of a notebook's cell, which is written anew."""

    def __init__(self, handle: Any) -> None:
        super().__init__()
        self._handle, self._begin, self._there = handle, time.monotonic(), False

    def show(self, doing: str, done: int, total: int) -> None:
        text = f"{done} of {total} steps: {doing}"
        if done:
            left = (time.monotonic() - self._begin) / done * (total - done)
            text = f"about {left:.0f} s left, {text}"
        self.write(text)

    def write(self, text: str) -> None:
        self._handle.display({"text/plain": text}, raw=True, update=self._there)
        self._there = True


@contextmanager
def displayed() -> Iterator[Display]:
    """A bar where standard error is a terminal, a line in a notebook, elsewhere nothing."""
    if _in_notebook():
        from IPython import display  # type: ignore[import-not-found, unused-ignore]

        line = _Line(display.DisplayHandle())  # type: ignore[no-untyped-call, unused-ignore]
        line.write("starting")
        begin = time.monotonic()
        yield line
        line.write(f"done in {time.monotonic() - begin:.0f} s")
    elif sys.stderr is not None and sys.stderr.isatty():
        with _made_bar() as bar:
            yield _Bar(bar)
    else:
        yield Display()


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _made_bar() -> "Progress":
    """A bar that is drawn when it is told to, by no thread of its own, and leaves
    standard output to the tables."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    doing = TextColumn("{task.description}", table_column=Column(no_wrap=True))
    return Progress(
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        doing,
        console=console(stderr=True),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
