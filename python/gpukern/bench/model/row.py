"""One line of a comparison, and how it becomes JSON and comes back."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from gpukern.bench.model.intervals import Figure
from gpukern.bench.model.split import PHASES, Split

RIGHT = "right"
WRONG = "WRONG"
BROKEN = "broken"
ABSENT = "absent"

# Seconds by number of the round, for each process that measured.
Samples = Sequence[dict[int, float]]

# The fields that hold a figure with its interval.
FIGURES = ("end_to_end", "on_device", "warm", "overhead", "end_to_end_ratio", "device_ratio")


@dataclass(frozen=True)
class Row:
    """One contender on one case. Times are seconds; ``error`` is the largest absolute error, and
    ``bound_share`` how much of its bound an error uses up at most.

    ``status`` is "right", "WRONG", "broken" (it raised) or "absent"; then ``detail`` says why, and
    there are no times. ``end_to_end`` is from NumPy arrays to a NumPy array; ``on_device`` has the
    operands on the device, but not in its L2 cache (on the simulator there is none); ``warm`` finds
    there what the call before left; ``overhead`` is the host's time to start a call; ``split`` has
    the phases of a call that is composed of the library's own functions, as ``phases`` tells them.
    The ratios say how many times as fast as the baseline a contender is. ``limit`` is the share of
    the copy bandwidth, or of the peak, that was reached. ``flags`` is what to know of the figures;
    ``simulated`` marks times of the CPU simulator, which say nothing of a GPU. ``samples`` are the
    raw figures.
    """

    op: str
    size: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    contender: str
    variant: str
    status: str
    version: str = ""
    detail: str = ""
    error: float | None = None
    ulps: float | None = None
    bound_share: float | None = None
    first_call: float | None = None
    end_to_end: Figure | None = None
    on_device: Figure | None = None
    warm: Figure | None = None
    overhead: Figure | None = None
    split: Split = field(default_factory=dict)
    end_to_end_ratio: Figure | None = None
    device_ratio: Figure | None = None
    limit: float | None = None
    flags: tuple[str, ...] = ()
    protocols: dict[str, float] = field(default_factory=dict)
    bytes_moved: int = 0
    operations: int = 0
    simulated: bool = False
    samples: dict[str, Samples] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, ...]:
        """What names the same row in another run."""
        return self.op, self.size, self.dtype, self.contender, self.variant

    @property
    def label(self) -> str:
        """The contender and its variant."""
        return f"{self.contender} {self.variant}".strip()

    @property
    def bandwidth(self) -> float | None:
        """Bytes/s on the device."""
        return self.bytes_moved / self.on_device.value if self.on_device else None

    @property
    def throughput(self) -> float | None:
        """FLOP/s on the device, for operations that are measured by it."""
        return (
            self.operations / self.on_device.value if self.on_device and self.operations else None
        )

    def phases(self) -> Split:
        """What a call consists of in which each phase waits for the one before, in seconds.

        Empty where no call was split, also where an older run timed its transfers alone.
        """
        if any(name not in self.split for name in PHASES):
            return {}
        return {name: self.split[name] for name in PHASES}

    def flat(self) -> dict[str, Any]:
        """A plain dictionary without nesting, for pandas.DataFrame."""
        out: dict[str, Any] = {}
        for name, value in self.__dict__.items():
            if name in FIGURES:
                out[name] = value.value if value else None
                out[f"{name}_low"] = value.low if value else None
                out[f"{name}_high"] = value.high if value else None
            elif name == "samples":
                continue  # as many as there are rounds
            elif isinstance(value, dict):
                out.update({f"{name}_{part.replace(' ', '_')}": n for part, n in value.items()})
            else:
                out[name] = value
        rates = {"gigabytes_per_second": self.bandwidth, "teraflops": self.throughput}
        for (name, rate), unit in zip(rates.items(), (1e9, 1e12), strict=True):
            out[name] = rate / unit if rate else None
        return out

    def to_json(self) -> dict[str, Any]:
        """As JSON takes it, which knows neither NaN nor infinity."""
        return {**asdict(self), "error": _finite(self.error), "ulps": _finite(self.ulps)}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Row":
        """The row that ``to_json`` was called on. What newer versions have added is left out."""
        known = {one.name for one in fields(cls)}
        values = {name: value for name, value in stored.items() if name in known}
        for name in FIGURES:
            if values.get(name) is not None:
                values[name] = Figure(**values[name])
        for name in ("error", "ulps"):
            if isinstance(values.get(name), str):
                values[name] = float(values[name])
        values["samples"] = {
            name: [{int(turn): one for turn, one in block.items()} for block in blocks]
            for name, blocks in values.get("samples", {}).items()
        }
        values["shapes"] = tuple(tuple(shape) for shape in values["shapes"])
        values["flags"] = tuple(values.get("flags", ()))
        return cls(**values)


def _finite(error: float | None) -> float | str | None:
    return error if error is None or math.isfinite(error) else str(error)
