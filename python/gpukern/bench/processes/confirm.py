"""What a process of a contender that nobody trusts has said of it, looked at from outside.

Such a contender can change whatever its process checks and times it with. So it is called once more
with inputs that this side has drawn and changes before each call, its result is checked here, and
the time of its calls is seen from here too: it cannot be much longer than what was reported.
"""

import math
import time
from dataclasses import replace
from typing import Protocol

import numpy as np

from gpukern.bench.cases.trials import Trial, make_trials
from gpukern.bench.checking.verdict import check
from gpukern.bench.model.case import Case
from gpukern.bench.model.finding import Finding
from gpukern.bench.model.row import BROKEN, WRONG
from gpukern.text.units import seconds

_CALLS = 20
# What a message there and back may take on a busy machine, and by how much one call may be slower
# than another. One call in time is enough.
_MESSAGE = 5e-3
_SLOWER = 3.0


class Asked(Protocol):
    """A process that is asked for what it is told to do."""

    def __call__(self, command: str, *arguments: object) -> object:
        """The answer."""


def confirmed(asked: Asked, case: Case, finding: Finding, seed: int) -> Finding:
    """The finding, or one that says what is wrong with it."""
    if not finding.right or not finding.examined:
        return finding
    try:
        return _confirmed(asked, case, finding, seed)
    except RuntimeError as error:  # that the contender has raised
        return replace(finding, status=BROKEN, detail=f"seen from outside its process: {error}")


def _confirmed(asked: Asked, case: Case, finding: Finding, seed: int) -> Finding:
    trial = make_trials(case, seed, only_proof=True)[0]
    asked("ready", case, finding.label, seed)
    reported = max(finding.samples.get("end_to_end", {}).values(), default=math.inf)
    spent = _shortest(asked, trial, seed, _SLOWER * reported + _MESSAGE)
    verdict = check(np.asarray(asked("result")), trial.expected)
    if not verdict.right:
        detail = f"seen from outside its process, {trial.name} inputs: {verdict.detail}"
        return replace(finding, status=WRONG, detail=detail, error=verdict.error)
    if spent > _SLOWER * reported + _MESSAGE:
        detail = (
            f"its process reports {seconds(reported)} a call at most, and seen from outside the "
            f"shortest of {_CALLS} takes {seconds(spent)}"
        )
        return replace(finding, status=WRONG, detail=detail)
    return finding


def _shortest(asked: Asked, trial: Trial, seed: int, enough: float) -> float:
    """Seconds of the shortest of some calls, or of the first but one that is as short as that.

    A second one has inputs that have changed: what was kept of the first is no answer to it.
    """
    least, rng = math.inf, np.random.default_rng(seed)
    for number in range(_CALLS):
        least = min(least, _timed(asked, trial, rng))
        if least <= enough and number > 0:
            break
    return least


def _timed(asked: Asked, trial: Trial, rng: np.random.Generator) -> float:
    changes = trial.draw(rng)
    for change in changes:
        trial.apply(change)
    begin = time.perf_counter()
    asked("call", changes)
    return time.perf_counter() - begin
