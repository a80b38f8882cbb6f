"""What a check finds, and the cures that several of them name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gpukern.machine.evidence import Evidence

INSTALL_DRIVER = "install the NVIDIA driver r580 or newer (Ubuntu: sudo ubuntu-drivers install)"
START_CONTAINER = "start the container with the GPU: docker run --gpus all"

Level = Literal["ok", "note", "broken"]


@dataclass(frozen=True)
class Finding:
    """What a check found; ``cure`` is what to do about it."""

    level: Level
    subject: str
    text: str
    cure: str = ""


Check = Callable[[Evidence], Finding | None]
