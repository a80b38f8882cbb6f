"""Named lists of cases: the files ``benchmarks/NAME.toml`` of the source tree.

Each has ``title`` and a table ``[[case]]`` for each line, with ``op`` and, as ``compare`` takes
them, ``sizes``, ``dtype``, ``contenders``, ``mode`` and ``protocol``.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_KEYS = {"op", "sizes", "dtype", "contenders", "mode", "protocol"}


@dataclass(frozen=True)
class CaseList:
    """A named benchmark: the arguments of one ``compare`` after another."""

    name: str
    title: str
    cases: tuple[dict[str, Any], ...]


def folder() -> Path | None:
    """``benchmarks/`` of the source tree: above the package, or in the current directory."""
    for root in (Path(__file__).resolve().parents[4], Path.cwd()):
        if any((root / "benchmarks").glob("*.toml")):
            return root / "benchmarks"
    return None


def names() -> list[str]:
    """The names that there are."""
    found = folder()
    return sorted(path.stem for path in found.glob("*.toml")) if found else []


def read(name: str) -> CaseList:
    """The list of that name, or of a path that ends in .toml. Raises ValueError for a bad one."""
    path = Path(name)
    if path.suffix != ".toml":
        found = folder()
        if found is None:
            raise ValueError(
                "the case lists are in benchmarks/ of the source tree, which is not here: run this "
                "in a checkout, or give the path of a .toml file"
            )
        path = found / f"{name}.toml"
        if not path.exists():
            raise ValueError(f"unknown case list {name!r}; there are {', '.join(names())}")
    try:
        whole = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path.name}: {error}") from None
    found_cases = whole.get("case", [])
    if not isinstance(found_cases, list) or not all(isinstance(one, dict) for one in found_cases):
        raise ValueError(f"{path.name}: case has to be tables, each begun by [[case]]")
    cases = tuple(found_cases)
    for case in cases:
        unknown = set(case) - _KEYS
        if unknown or "op" not in case:
            raise ValueError(f"{path.name}: a case has {', '.join(sorted(_KEYS))}, not {case}")
    if not cases:
        raise ValueError(f"{path.name} has no [[case]]")
    return CaseList(path.stem, str(whole.get("title", path.stem)), cases)
