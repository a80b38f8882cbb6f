"""Contenders of a user's own file."""

import runpy
import sys
import traceback
from pathlib import Path

from gpukern.bench.contenders.registry import REGISTERED


def load_file(path: str) -> list[str]:
    """Run a file of Python, and the names of the contenders that it registers.

    It is not run as ``__main__``. It may import what lies beside it, as the processes that measure
    its contenders may. Raises ValueError for a file
    that raises, or that registers nothing.
    """
    before, folder = dict(REGISTERED), str(Path(path).resolve().parent)
    sys.path.insert(0, folder)
    try:
        runpy.run_path(path, run_name=Path(path).stem)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path}{_line_of(error, path)}: {_said(error)}") from None
    names = [name for name, peer in REGISTERED.items() if before.get(name) is not peer]
    if not names:
        raise ValueError(f"{path} registers no contender: decorate one by @gpukern.contender(...)")
    return names


def _line_of(error: BaseException, path: str) -> str:
    """The line of the file that an error came through last."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return f", line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == path]
    return f", line {lines[-1]}" if lines else ""


def _said(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}".rstrip(": ")
