"""One measuring process, seen from the side that asks it."""

import os
from collections.abc import Mapping

from gpukern.bench.processes.keeping import keeping
from gpukern.processes import Asked


class Member(Asked):
    """A process that measures; it may be silent for ``patience`` seconds.

    ``changes`` are those of its environment.
    """

    def __init__(self, patience: float, changes: Mapping[str, str] | None = None) -> None:
        # What is kept may be kept elsewhere by who asks.
        kept = {name: value for name, value in keeping().items() if name not in os.environ}
        super().__init__("gpukern.bench.processes.worker", patience, {**kept, **(changes or {})})
