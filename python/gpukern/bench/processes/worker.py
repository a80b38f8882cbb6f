"""A process that measures for another one: ``python -m gpukern.bench.processes.worker DESCRIPTOR``.

It is asked over the descriptor, one command after another, each a name and its arguments, until the
other side is gone. While it works it answers ("tick", what it does next), in the end ("done", the
result) or ("raised", a sentence).
"""

import os
import pickle
import sys
import warnings
from collections.abc import Collection, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern import _core
from gpukern.bench.blocks import Measurer
from gpukern.bench.cases.trials import make_trials
from gpukern.bench.clock.wall import wall
from gpukern.bench.model.case import Case
from gpukern.bench.model.finding import Finding
from gpukern.bench.model.limits import Limits
from gpukern.bench.model.settings import Effort, Settings
from gpukern.text.errors import one_line


class Worker:
    """What may be asked of the process: its methods by name."""

    def __init__(self, pipe: "Connection[Any, Any]") -> None:
        self.pipe = pipe

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
        self.work = self.measurer.contender(case, label, self.tick).end_to_end

    def named(self, case: Case, label: str) -> tuple[str, str]:
        """The name and the variant of the contender of that label."""
        one = self.measurer.contender(case, label, self.tick)
        return one.name, one.variant

    def call(self) -> None:
        """Call it."""
        self.kept = self.work(*self.inputs)

    def result(self) -> "npt.NDArray[Any]":
        """What the call has returned."""
        return np.array(self.kept)

    def tick(self, doing: str) -> None:
        """Tell the other side what comes next, so that it knows whom to blame for silence."""
        self.say("tick", doing)

    def say(self, kind: str, value: Any) -> None:
        """Send an answer; where nobody is left to hear it, there is nothing left to do."""
        try:
            self.pipe.send((kind, value))
        except OSError:
            os._exit(0)


def serve(pipe: "Connection[Any, Any]") -> None:
    """Do what is asked until nobody asks any more."""
    worker = Worker(pipe)
    while True:
        try:
            command, arguments = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            value = getattr(worker, command)(*arguments)
        except Exception as error:
            worker.say("raised", one_line(error))
        else:
            worker.say("done", value)


def main() -> None:
    """Serve on the descriptor that the command line names."""
    # What a contender prints is not for whoever reads the comparison's output.
    os.dup2(2, 1)
    warnings.simplefilter("ignore", _core.SimulatorWarning)
    with Connection(int(sys.argv[1])) as pipe:
        serve(pipe)
    # Without the exit handlers of a dozen libraries, which take seconds and may hang.
    os._exit(0)


if __name__ == "__main__":
    main()
