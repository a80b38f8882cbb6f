"""The scripts of benchmarks/ under test: as modules, and as commands on the simulator."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parent.parent / "benchmarks"


@contextmanager
def imported(*names: str) -> Iterator[list[ModuleType]]:
    """Scripts as modules, for as long as the block lasts; so with what they import beside them."""
    beside = {path.stem for path in FOLDER.glob("*.py")}
    sys.path.insert(0, str(FOLDER))
    try:
        yield [importlib.import_module(name) for name in names]
    finally:
        sys.path.remove(str(FOLDER))
        for name in beside:
            sys.modules.pop(name, None)


def run(script: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One as a command, on the simulator."""
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        env={**os.environ, "GPUKERN_DEVICE": "sim", "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def whole_run(script: Path, folder: Path, *arguments: str, **environment: str) -> tuple[Any, str]:
    """What a command writes that is given files for JSON and Markdown."""
    paths = [folder / name for name in ("a.json", "a.md")]
    done = run(script, *map(str, paths), *arguments, **environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(paths[0].read_text()), paths[1].read_text()
