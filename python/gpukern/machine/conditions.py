"""The conditions of a measurement: machine, versions, commit, clocks, heat, and who else was on.

The clocks come from NVML by way of the optional package nvidia-ml-py.
"""

import datetime
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpukern import _core
from gpukern.machine.host import describe_host, is_busy
from gpukern.machine.inventory import versions

# Bits of nvmlClocksEventReasons that say that the device runs slower than it could.
_SLOWED = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}


def describe_machine() -> dict[str, Any]:
    """Device, driver, versions and commit, as they are recorded with the figures."""
    device = _core.devices()[0]
    return {
        "backend": _core.backend(),
        "device": device["name"],
        "capability": device["capability"],
        "driver": _core.driver_report()["version"],
        **describe_host(),
        "versions": versions(),
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def commit() -> str | None:
    """The commit of the source tree the package runs from; where it is apart, GPUKERN_COMMIT."""
    here = Path(__file__).resolve().parent
    command = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"]
    tracked = ["git", "-C", str(here), "ls-files", "--error-unmatch", "conditions.py"]
    try:
        for step in (tracked, command):
            done = subprocess.run(step, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return os.environ.get("GPUKERN_COMMIT") or None
    return done.stdout.strip()


class Watch:
    """Looks at the GPU between blocks of rounds, and sums up what was seen.

    ``ours`` is how many processes on the GPU are those of the comparison itself.
    """

    def __init__(self) -> None:
        self.ours = 1
        self._nvml: Any = None
        self._handle: Any = None
        self._seen: list[dict[str, Any]] = []
        if _core.backend() == "cuda":
            with suppress(Exception):
                self._open()

    def _open(self) -> None:
        import pynvml  # type: ignore[import-not-found, unused-ignore]

        pynvml.nvmlInit()
        uuid = _core.devices()[0]["uuid"]
        self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        self._nvml = pynvml

    def look(self) -> None:
        """Note clocks, temperature, power, reasons for a slowdown, and other processes."""
        if self._nvml is not None:
            with suppress(Exception):
                self._seen.append(self._reading())

    def _reading(self) -> dict[str, Any]:
        nvml, handle = self._nvml, self._handle
        processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        return {
            "sm_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            "memory_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            "celsius": nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
            "watts": nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
            "slowed": nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
            # In a container the numbers of processes are those outside: only the count tells.
            "others": max(len(processes) - self.ours, 0),
        }

    def summary(self) -> dict[str, Any]:
        """Ranges over all looks; says so where nothing could be seen."""
        if not self._seen:
            return {"watched": False}
        names = ("sm_mhz", "memory_mhz", "celsius", "watts")
        ranges = {n: [f(one[n] for one in self._seen) for f in (min, max)] for n in names}
        bits = 0
        for one in self._seen:
            bits |= one["slowed"]
        return {
            "watched": True,
            **ranges,
            "slowed_by": [name for bit, name in _SLOWED.items() if bits & bit],
            "other_processes": max(one["others"] for one in self._seen),
            "driver_version": self._driver(),
            "looks": self._seen,
        }

    def _driver(self) -> str:
        found = self._nvml.nvmlSystemGetDriverVersion()
        return found.decode() if isinstance(found, bytes) else str(found)


def disturbances(machine: dict[str, Any]) -> list[str]:
    """What a reader has to know of the conditions that figures were taken in, a line each."""
    lines = []
    if is_busy(machine):
        lines.append(f"others were at work on the host: a load of {machine['load'][0]:.1f}")
    conditions = machine.get("conditions", {})
    if not conditions.get("watched"):
        return lines
    if conditions["slowed_by"]:
        lines.append(f"the device was slowed down: {', '.join(conditions['slowed_by'])}")
    if conditions["other_processes"]:
        lines.append(f"{conditions['other_processes']} other processes were on the GPU")
    return lines
