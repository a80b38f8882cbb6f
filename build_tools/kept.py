"""The extension as it was linked last, for a build before which nothing has changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

from build_tools.steps import ROOT, content_hash, output_of
from build_tools.targets import installed_gpus
from build_tools.toolkit import look_for_toolkit

SOURCES = ("csrc", "cuda", "build_tools", "setup.py", "pyproject.toml")
VARIABLES = (
    *("GPUKERN_ARCHS", "GPUKERN_SANITIZE", "NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS"),
    *("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS"),
)
FOLDER = Path("build", "gpukern", "last")


def state() -> dict[str, object]:
    """All that decides what the extension becomes, without any of what builds have installed."""
    files = []
    for name in SOURCES:
        path = ROOT / name
        files += [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    lines = [f"{p.relative_to(ROOT)} {content_hash(p)}" for p in files if p.suffix != ".pyc"]
    own, _ = look_for_toolkit(os.environ, [])
    compilers = [os.environ.get("CC") or "gcc", os.environ.get("CXX") or "g++"]
    return {
        "sources": hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest(),
        "environment": {name: os.environ.get(name, "") for name in VARIABLES},
        "python": sys.version,
        "compilers": [output_of([*command.split(), "--version"]) for command in compilers],
        "toolkit": [own.nvcc, own.version] if own else None,
        "gpus": installed_gpus(),
    }


def is_kept(now: dict[str, object]) -> bool:
    """Whether the extension of this state is there."""
    try:
        record = json.loads((ROOT / FOLDER / "state.json").read_text())
        extension = ROOT / FOLDER / "extension"
        return bool(record == now | {"extension": content_hash(extension)})
    except (OSError, ValueError):
        return False


def take(now: dict[str, object], target: Path) -> bool:
    """Put the extension of this state where it is to be, if it is there."""
    if not is_kept(now):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)  # it may be mapped by a process
    shutil.copy2(ROOT / FOLDER / "extension", target)
    return True


def keep(before: dict[str, object], extension: Path) -> None:
    """Keep the extension, if what it was made from is as it was when the build began."""
    folder = ROOT / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "state.json").unlink(missing_ok=True)
        if state() == before:
            shutil.copy2(extension, folder / "extension")
            record = before | {"extension": content_hash(folder / "extension")}
            (folder / "state.json").write_text(json.dumps(record))
    except OSError:  # a source tree that is closed to us
        return
