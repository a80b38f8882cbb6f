"""What keeps the extension from being imported: NumPy, or the files of gpukern itself.

Imports nothing of gpukern that needs them, so that the doctor can say it on a broken install.
"""

import importlib
import importlib.util
import platform
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

_NUMPY_NEEDED = 2
NUMPY_CURE = 'pip install "numpy>=2.0"'
AGAIN = "install gpukern again: pip install --force-reinstall gpukern"
_PACKAGE = Path(__file__).resolve().parent.parent


class Fault(NamedTuple):
    """What is wrong with which part of the install, and what to do."""

    subject: str
    text: str
    cure: str


def numpy_version() -> str | None:
    """The version of the NumPy that is imported here; None where there is none."""
    try:
        return str(importlib.import_module("numpy").__version__)
    except Exception:
        return None


def find_fault() -> Fault | None:
    """Why the extension cannot be used here; None where it can."""
    return _numpy_fault() or _extension_fault()


def _numpy_fault() -> Fault | None:
    if importlib.util.find_spec("numpy") is None:
        return Fault("NumPy", "is not installed", NUMPY_CURE)
    try:
        found = str(importlib.import_module("numpy").__version__)
    except Exception as error:
        return Fault("NumPy", f"cannot be imported: {_line(error)}", f"{NUMPY_CURE} again")
    major = found.partition(".")[0]
    if major.isdigit() and int(major) < _NUMPY_NEEDED:
        text = f"version {found} is too old: the extension is compiled for NumPy 2"
        return Fault("NumPy", text, NUMPY_CURE)
    return None


def _extension_fault() -> Fault | None:
    try:
        core = importlib.import_module("gpukern._core")
        built = core.build_report()["version"]
    except Exception as error:
        return Fault("extension", *_unloadable(error))
    try:
        installed = version("gpukern")
    except PackageNotFoundError:
        return None
    if built == installed:
        return None
    text = f"gpukern._core is of version {built} and the package of {installed}: a partial copy"
    return Fault("extension", text, AGAIN)


def _unloadable(error: BaseException) -> tuple[str, str]:
    """Which file is not there, or does not load and why; and the cure."""
    files = sorted(path.name for path in _PACKAGE.glob("_core.*.so")) + [
        path.name for path in _PACKAGE.glob("_core.so")
    ]
    here = f"Python {platform.python_version()} on {platform.machine()}"
    if not files:
        return (
            f"gpukern._core is missing in {_PACKAGE}",
            f"{AGAIN}; in a source tree: pip install .",
        )
    if not any(name.removeprefix("_core") in EXTENSION_SUFFIXES for name in files):
        return f"{', '.join(files)} in {_PACKAGE} is not for {here}", AGAIN
    return f"{_PACKAGE / files[0]} cannot be loaded: {_line(error)}", AGAIN


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__


def sentence(error: BaseException) -> str:
    """The fault as the message of the exception that the import of gpukern raises."""
    fault = find_fault() or Fault("extension", f"cannot be loaded: {_line(error)}", AGAIN)
    told = "`python -m gpukern doctor` tells more"
    return f"gpukern: {fault.subject} {fault.text}; {fault.cure} ({told})"


def is_command() -> bool:
    """Whether this process is the command gpukern, whose doctor itself says what is broken."""
    if sys.argv[:1] == ["-m"]:
        words = sys.orig_argv
        return ("-m", "gpukern") in pairwise(words) or "-mgpukern" in words
    return Path(sys.argv[0] if sys.argv else "").name == "gpukern"
