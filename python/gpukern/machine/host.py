"""The host of a measurement: its processor and governor, how busy it is, and what it may use."""

import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

_CPU = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_GROUP = Path("/sys/fs/cgroup")
# So many others that want a core, for each that there is, disturb what is timed.
BUSY = 0.25


def describe_host() -> dict[str, Any]:
    """As it is recorded with the figures; None for what the system does not tell."""
    return {
        "platform": platform.platform(),
        "processor": _processor(),
        "processor_cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "governor": _read(_CPU),
        "load": list(os.getloadavg()),
        "container_cores": _quota(_read(_GROUP / "cpu.max")),
        "container_bytes": _number(_read(_GROUP / "memory.max")),
    }


def is_busy(host: dict[str, Any]) -> bool:
    """Whether others were at work on the cores as the measuring began."""
    load, cores = host.get("load"), host.get("usable_cores")
    return bool(load and cores and load[0] > BUSY * cores)


def _processor() -> str:
    for line in (_read(Path("/proc/cpuinfo")) or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _read(path: Path) -> str | None:
    with suppress(OSError):
        return path.read_text().strip()
    return None


def _quota(text: str | None) -> float | None:
    """Cores: "200000 100000" are two."""
    quota, _, period = (text or "").partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
