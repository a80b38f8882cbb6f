"""What is seen of a GPU while it is measured: clocks, what slows it down, and who else is there."""

from __future__ import annotations

import sys

import pytest

from gpukern import _core
from gpukern.machine import conditions

IDLE, POWER_CAP, THERMAL = 0x1, 0x4, 0x40


class Nvml:
    """Of NVML what is asked for; `looks` is what each look finds, in their order."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = "sm", "memory", "gpu"

    def __init__(self, *looks):
        self.looks, self.number = looks, -1

    def nvmlInit(self):
        pass

    def nvmlDeviceGetHandleByUUID(self, uuid):
        return uuid

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        self.number += 1
        return [None] * self.looks[self.number]["processes"]

    def nvmlDeviceGetClockInfo(self, handle, clock):
        return self.looks[self.number][clock]

    def nvmlDeviceGetTemperature(self, handle, sensor):
        return 40 + self.number

    def nvmlDeviceGetPowerUsage(self, handle):
        return 100_500 + 1000 * self.number

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):
        return self.looks[self.number]["slowed"]

    def nvmlSystemGetDriverVersion(self):
        return b"580.95.05"


def look(sm=1980, memory=3201, processes=1, slowed=IDLE):
    return {"sm": sm, "memory": memory, "processes": processes, "slowed": slowed}


@pytest.fixture
def watched(monkeypatch):
    """What a watch sums up after these looks."""

    def watch(*looks):
        monkeypatch.setitem(sys.modules, "pynvml", Nvml(*looks))
        monkeypatch.setattr(_core, "backend", lambda: "cuda")
        made = conditions.Watch()
        for _ in looks:
            made.look()
        return made.summary()

    return watch


def test_ranges_over_all_looks(watched):
    seen = watched(look(sm=1980), look(sm=345), look(sm=1755))
    assert seen["watched"] is True
    assert seen["sm_mhz"] == [345, 1980]
    assert seen["memory_mhz"] == [3201, 3201]
    assert seen["celsius"] == [40, 42]
    assert seen["watts"] == [100.5, 102.5]
    assert seen["driver_version"] == "580.95.05"


def test_a_quiet_gpu_has_nothing_to_remark(watched):
    seen = watched(look(), look())
    assert seen["slowed_by"] == []
    assert seen["other_processes"] == 0
    assert conditions.disturbances({"conditions": seen}) == []


def test_what_any_look_saw_is_remarked(watched):
    seen = watched(look(slowed=POWER_CAP, processes=3), look(slowed=THERMAL | IDLE), look())
    assert seen["slowed_by"] == ["power cap", "hardware thermal slowdown"]
    assert seen["other_processes"] == 2
    assert conditions.disturbances({"conditions": seen}) == [
        "the device was slowed down: power cap, hardware thermal slowdown",
        "2 other processes were on the GPU",
    ]


def test_nothing_that_could_be_seen_is_said(watched, monkeypatch):
    assert watched() == {"watched": False}
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert conditions.Watch().summary() == {"watched": False}
    assert conditions.disturbances({"conditions": {"watched": False}}) == []
