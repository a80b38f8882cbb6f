"""Errors as a person reads them."""

import re


def one_line(error: BaseException) -> str:
    """An error as one line: its type and the first line of what it says."""
    try:
        said = str(error)
    except Exception:  # which is of others, as the error is
        said = ""
    # Compilers colour what they say.
    text = re.sub(r"\x1b\[[0-9;]*m", "", said).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__
