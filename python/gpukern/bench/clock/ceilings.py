"""What the device can do at most: measured copy bandwidth, and peaks that follow from its units."""

from gpukern import _core
from gpukern.bench.clock.device import between
from gpukern.bench.model.clock import Clock
from gpukern.bench.model.limits import NONE, Limits
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

_COPY_BYTES = 2**28


def peak_operations(device: Device) -> dict[str, float]:
    """FLOP/s by dtype at the highest clock; only what is known of the device."""
    peaks = {"float32": device.peak_float32}
    kilohertz = device.attributes.get("CLOCK_RATE", 0)
    count = device.attributes.get("MULTIPROCESSOR_COUNT", 0)
    for dtype, each in (("float16", _HALF), ("bfloat16", _HALF), ("float64", _DOUBLE)):
        peaks[dtype] = each.get(device.capability, 0) * count * kilohertz * 1e3
    return {dtype: peak for dtype, peak in peaks.items() if peak}


def measure_limits(clock: Clock) -> Limits:
    """The limits of the device in use; none on the simulator, whose speed means nothing."""
    if clock.simulated:
        return NONE
    device = device_info()[0]
    return Limits(copy_bandwidth(clock), device.memory_bandwidth, peak_operations(device))


def copy_bandwidth(clock: Clock, count: int = _COPY_BYTES) -> float:
    """Bytes/s, read and written together, of the driver's own copy of an array of ``count``."""
    source = _core.empty(count, "uint8")

    def copy() -> None:
        _core.to_device(source)

    between(clock, copy)
    best = min(between(clock, copy, 4) for _ in range(5))
    return 2 * count / best
