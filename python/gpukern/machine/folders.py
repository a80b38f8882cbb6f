"""Folders of the user's."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Where what can be made again is kept: in XDG_CACHE_HOME, or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpukern"
