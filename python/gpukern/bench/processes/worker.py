"""A process that measures for another one: ``python -m gpukern.bench.processes.worker DESCRIPTOR``.

It is asked over the descriptor, as ``gpukern.processes`` has it.
"""

import pickle
import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern import _core
from gpukern.bench.blocks import Measurer
from gpukern.bench.cases.trials import Change, make_trials
from gpukern.bench.clock.wall import wall
from gpukern.bench.model.case import Case
from gpukern.bench.model.finding import Finding
from gpukern.bench.model.limits import Limits
from gpukern.bench.model.settings import Effort, Settings
from gpukern.processes import Server, serve


class Worker(Server):
    """What may be asked of the process: its methods by name."""

    def begin(self, entrants: bytes, seed: int) -> None:
        """Who takes part, pickled; imports what defines them."""
        self.measurer = Measurer(pickle.loads(entrants), seed)

    def load(self, cases: Sequence[Case]) -> list[int]:
        """Load what the cases need; how many contenders each has."""
        return self.measurer.load(cases, self.tick)

    def limits(self) -> Limits:
        """What the device can do at most."""
        return self.measurer.limits(self.tick)

    def prepare(
        self, block: int, case: Case, index: int, settings: Settings, without: Collection[str]
    ) -> None:
        """Examine all but some."""
        self.measurer.prepare(block, case, index, settings, self.tick, without)

    def measure(self, block: int, effort: Effort) -> list[Finding]:
        """The rounds of what is prepared."""
        return self.measurer.measure(block, effort, self.tick)

    def first_call(self, case: Case, label: str, seed: int) -> float:
        """Seconds of a contender's first call, which is to be the first thing that is done."""
        self.ready(case, label, seed)
        self.tick(f"calling {label}")
        return wall(self.measurer.clock, lambda: self.work(*self.inputs))

    def ready(self, case: Case, label: str, seed: int) -> None:
        """Have a contender's call at hand, and inputs of that seed."""
        self.inputs = make_trials(case, seed, only_proof=True)[0].inputs
        self.work, self.label = self.measurer.contender(case, label, self.tick).end_to_end, label

    def named(self, case: Case, label: str) -> tuple[str, str]:
        """The name and the variant of the contender of that label."""
        one = self.measurer.contender(case, label, self.tick)
        return one.name, one.variant

    def call(self, changes: Sequence[Change]) -> None:
        """Call it, with inputs that change before."""
        self.tick(f"calling {self.label}")
        for change in changes:
            self.inputs[change.which].reshape(-1)[change.place] = change.value
        self.kept = self.work(*self.inputs)

    def result(self) -> "npt.NDArray[Any]":
        """What the call has returned."""
        self.tick(f"calling {self.label}")
        found = np.array(self.kept)
        if found.dtype.hasobject:
            raise TypeError(f"returns {found.dtype} in place of numbers")
        return found


def main() -> None:
    """Serve on the descriptor that the command line names."""
    warnings.simplefilter("ignore", _core.SimulatorWarning)
    serve(Worker)


if __name__ == "__main__":
    main()
