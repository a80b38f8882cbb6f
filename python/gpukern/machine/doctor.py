"""`gpukern doctor`: can gpukern use a GPU here, and if not, which known fault is it?"""

from collections.abc import Sequence

from gpukern.machine.checks import device, driver, system
from gpukern.machine.checks.finding import Check, Finding
from gpukern.machine.evidence import Evidence

# In the order in which a reader wants them, from the system up to the devices.
CHECKS: tuple[Check, ...] = (*system.CHECKS, *driver.CHECKS, *device.CHECKS)


def examine(seen: Evidence) -> list[Finding]:
    """What every check has to say, in the order of the checks."""
    return [finding for check in CHECKS if (finding := check(seen)) is not None]


def healthy(findings: Sequence[Finding]) -> bool:
    """Whether gpukern can use a GPU here and nothing is broken."""
    return all(finding.level != "broken" for finding in findings)


def verdict(seen: Evidence, findings: Sequence[Finding]) -> str:
    """The answer in one sentence."""
    if seen.backend == "cuda" and healthy(findings):
        return "gpukern can use the GPU here."
    if seen.backend == "cuda":
        return "gpukern finds the GPU, but something is broken."
    if seen.backend == "sim" and seen.kernel.problem is None:
        return "gpukern cannot use a GPU here; its simulator works, and is slow."
    if seen.environment.get("GPUKERN_DEVICE") not in (None, "", "sim") and not seen.install:
        return "gpukern cannot use a GPU here, and GPUKERN_DEVICE keeps it from its simulator."
    return "gpukern cannot use a GPU here, and its simulator does not run."
