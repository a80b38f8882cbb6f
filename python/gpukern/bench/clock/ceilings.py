"""What the device can do at most: measured copy bandwidth, and peaks that follow from its units."""

from dataclasses import dataclass

from gpukern import _core
from gpukern.bench.clock.device import copy_bandwidth
from gpukern.machine.devices import Device, device_info

# Floating point operations of one multiprocessor a clock with dense operands in its tensor cores,
# or in its float64 units, by compute capability: from NVIDIA's white papers.
_HALF = {
    75: 1024,
    80: 2048,
    86: 1024,
    87: 1024,
    89: 1024,
    90: 4096,
    100: 8192,
    103: 8192,
    120: 1024,
}
_DOUBLE = {75: 4, 80: 128, 86: 4, 87: 4, 89: 4, 90: 256, 100: 256, 103: 256, 120: 4}

# Reading alone is a little faster than copying, and the copy's own figure is off by some percent.
_TOLERANCE = 1.10


@dataclass(frozen=True)
class Limits:
    """Bytes/s that a large copy reads and writes together, and FLOP/s by dtype where known."""

    copy_bandwidth: float | None
    peak_bandwidth: float | None
    peak_operations: dict[str, float]

    def share(self, moved: int, operations: int, dtype: str, seconds: float) -> float | None:
        """How much of the limit that applies was reached: 1 is all of it."""
        if operations:
            peak = self.peak_operations.get(dtype)
            return operations / seconds / peak if peak else None
        return moved / seconds / self.copy_bandwidth if self.copy_bandwidth else None

    def excess(self, moved: int, operations: int, dtype: str, seconds: float) -> str:
        """What is impossible about a time, or nothing."""
        peak = self.peak_operations.get(dtype)
        if operations and peak and operations / seconds > peak:
            return f"above the peak of {dtype}, {peak / 1e12:.0f} TFLOP/s"
        copy = self.copy_bandwidth
        if copy and moved / seconds > copy * _TOLERANCE:
            return f"above the copy bandwidth, {copy / 1e9:.0f} GB/s"
        return ""

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "copy_bandwidth": self.copy_bandwidth,
            "peak_bandwidth": self.peak_bandwidth,
            "peak_operations": self.peak_operations,
        }


NONE = Limits(None, None, {})


def peak_operations(device: Device) -> dict[str, float]:
    """FLOP/s by dtype at the highest clock; only what is known of the device."""
    peaks = {"float32": device.peak_float32}
    kilohertz = device.attributes.get("CLOCK_RATE", 0)
    count = device.attributes.get("MULTIPROCESSOR_COUNT", 0)
    for dtype, each in (("float16", _HALF), ("bfloat16", _HALF), ("float64", _DOUBLE)):
        peaks[dtype] = each.get(device.capability, 0) * count * kilohertz * 1e3
    return {dtype: peak for dtype, peak in peaks.items() if peak}


def measure_limits() -> Limits:
    """The limits of the device in use; none on the simulator, whose speed means nothing."""
    if _core.backend() == "sim":
        return NONE
    device = device_info()[0]
    return Limits(copy_bandwidth(), device.memory_bandwidth, peak_operations(device))
