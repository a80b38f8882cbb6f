"""Comparisons and profiles for the notebooks: measured where there is a GPU, otherwise recorded.

The figures of a simulator say nothing of a GPU, so that a picture of them would not show what the
text beside it explains. ``recorded/`` holds what the notebooks measured on the GPU that they were
last run on; ``execute.py --record`` writes it.
"""

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gpukern as gk
from gpukern.profiling import Call, bus_bandwidth

FOLDER = Path(__file__).parent / "recorded"
# A folder to keep what is measured in.
RECORD = "RECORD_NOTEBOOKS"


def compare(name: str, op: str, *what: Any, **settings: Any) -> gk.Comparison:
    """``gpukern.compare`` of all but ``name``; without a GPU, what it gave under that name."""
    if gk.device_info()[0].simulated:
        found = gk.Comparison.from_json(_path(name))
        _say(found.machine["device"], found.machine["date"])
        return found
    found = gk.compare(op, *what, **settings)
    _keep(name, found.to_json())
    return found


def is_recorded(name: str) -> bool:
    """Whether something was kept under that name."""
    return _path(name).is_file()


def profile(name: str, call: Callable[[], object]) -> tuple[Call, float | None]:
    """The profile of a call, and the bytes/s of the bus; without one those of that name."""
    device = gk.device_info()[0]
    if device.simulated:
        kept = json.loads(_path(name).read_text())
        _say(kept["device"], kept["date"])
        return Call(**kept["call"]), kept["bus"]
    with gk.profile() as taken:
        call()
    first, bus = taken.calls[0], bus_bandwidth()
    date = datetime.now(UTC).isoformat(timespec="seconds")
    kept = {"device": device.name, "date": date, "bus": bus, "call": asdict(first)}
    _keep(name, json.dumps(kept, indent=1) + "\n")
    return first, bus


def _say(device: str, date: str) -> None:
    print(f"No GPU here: measured on an {device}, {date[:10]}.")


def _path(name: str) -> Path:
    return FOLDER / f"{name}.json"


def _keep(name: str, text: str) -> None:
    if RECORD in os.environ:
        (Path(os.environ[RECORD]) / _path(name).name).write_text(text)
