"""Kernels as they stand in ``cuda/``, for a notebook to show."""

import re
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "cuda"


def show(file: str, *names: str) -> None:
    """Print the functions of these names, each with the comment above it."""
    for name in names:
        print(f"// cuda/{file}\n{function(file, name)}\n")


def function(file: str, name: str) -> str:
    """The text of one function; ValueError where there is none of that name."""
    lines = (FOLDER / file).read_text().splitlines()
    named = re.compile(rf"[^/\s].*\b{re.escape(name)}\b.*{{$")
    first = next((i for i, line in enumerate(lines) if named.match(line)), None)
    if first is None:
        raise ValueError(f"cuda/{file} has no function {name}")
    last = next(i for i in range(first, len(lines)) if re.fullmatch(r"};?", lines[i]))
    while first and lines[first - 1].startswith(("//", "template")):
        first -= 1
    return "\n".join(lines[first : last + 1])
