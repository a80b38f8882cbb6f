"""Comparisons for the notebooks: measured where there is a GPU, and what was measured otherwise.

The figures of a simulator say nothing of a GPU, so that a picture of them would not show what the
text beside it explains. ``recorded/`` holds what the notebooks measured on the GPU that they were
last run on; ``execute.py --record`` writes it.
"""

import os
from pathlib import Path
from typing import Any

import gpukern as gk

FOLDER = Path(__file__).parent / "recorded"
# A folder to keep what is measured in.
RECORD = "RECORD_NOTEBOOKS"


def compare(name: str, op: str, *what: Any, **settings: Any) -> gk.Comparison:
    """``gpukern.compare`` of all but ``name``; without a GPU, what it gave under that name."""
    path = FOLDER / f"{name}.json"
    if gk.device_info()[0].simulated:
        found = gk.Comparison.from_json(path)
        machine = found.machine
        print(f"No GPU here: measured on an {machine['device']}, {machine['date'][:10]}.")
        return found
    found = gk.compare(op, *what, **settings)
    if RECORD in os.environ:
        found.to_json(Path(os.environ[RECORD]) / path.name)
    return found
