"""Tables as text: on a terminal with its colours, elsewhere plain."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_WIDTH_WITHOUT_TERMINAL = 120


def console(stderr: bool = False) -> "Console":
    """A console as wide as the terminal, or 120 columns where the output is a file or a pipe."""
    import os

    from rich.console import Console

    found = Console(stderr=stderr, highlight=False)
    if not found.is_terminal and "COLUMNS" not in os.environ:
        found = Console(stderr=stderr, highlight=False, width=_WIDTH_WITHOUT_TERMINAL)
    return found


def as_text(*parts: "RenderableType") -> str:
    """The parts one under another, without colours, as wide as ``console``."""
    import io

    from rich.console import Console

    stream = io.StringIO()
    plain = Console(file=stream, width=console().width, highlight=False, color_system=None)
    for part in parts:
        plain.print(part)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def print_all(parts: Iterable["RenderableType"], stderr: bool = False) -> None:
    """Print the parts one under another to standard output, or to standard error."""
    out = console(stderr)
    for part in parts:
        # What is wider than the console is so by the user's wish.
        out.print(part, crop=False)
