"""What a device can do at most, and how near to that a time comes."""

from dataclasses import dataclass

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
