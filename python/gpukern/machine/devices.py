"""What the devices are: every attribute that the driver names, and what follows from them."""

from dataclasses import dataclass, field
from typing import Any

from gpukern.text.calls import called_as

# float32 units of one multiprocessor by compute capability, from NVIDIA's programming guide.
_CORES_PER_MULTIPROCESSOR = {
    75: 64,
    80: 64,
    86: 128,
    87: 128,
    89: 128,
    90: 128,
    100: 128,
    103: 128,
    110: 128,
    120: 128,
    121: 128,
}


@dataclass(frozen=True)
class Device:
    """One device. ``attributes`` has the driver's own names, without CU_DEVICE_ATTRIBUTE_.

    ``capability`` is the compute capability times ten; memory is in bytes. ``simulated`` marks the
    CPU simulator, of which no speed follows.
    """

    ordinal: int
    name: str
    uuid: str
    capability: int
    memory_total: int
    memory_free: int
    attributes: dict[str, int] = field(repr=False)
    simulated: bool = False

    @property
    def cores(self) -> int | None:
        """How many float32 units there are; None where the capability is not known here."""
        each = _CORES_PER_MULTIPROCESSOR.get(self.capability)
        count = self.attributes.get("MULTIPROCESSOR_COUNT")
        return each * count if each and count and not self.simulated else None

    @property
    def memory_bandwidth(self) -> float | None:
        """The peak of the memory bus in bytes/s; None where the driver does not tell the clock."""
        kilohertz = self.attributes.get("MEMORY_CLOCK_RATE")
        bits = self.attributes.get("GLOBAL_MEMORY_BUS_WIDTH")
        # Two transfers a clock, since the memory is double data rate.
        return 2 * kilohertz * 1e3 * bits / 8 if kilohertz and bits else None

    @property
    def peak_float32(self) -> float | None:
        """Every unit finishing one fused multiply-add a clock, in FLOP/s; None if unknown."""
        kilohertz = self.attributes.get("CLOCK_RATE")
        return 2 * self.cores * kilohertz * 1e3 if self.cores and kilohertz else None

    def summary(self) -> list[tuple[str, str]]:
        """Name and value of what a reader asks first, as text with units."""
        lines = [
            ("compute capability", f"{self.capability // 10}.{self.capability % 10}"),
            ("memory", _memory(self.memory_free, self.memory_total)),
        ]
        if self.uuid:
            lines.insert(0, ("uuid", self.uuid))
        if self.cores:
            count = self.attributes["MULTIPROCESSOR_COUNT"]
            lines.append(("cores", f"{self.cores} ({count} multiprocessors)"))
        if self.memory_bandwidth:
            lines.append(("peak memory bandwidth", f"{self.memory_bandwidth / 1e9:.0f} GB/s"))
        if self.peak_float32:
            lines.append(("peak float32", f"{self.peak_float32 / 1e12:.1f} TFLOP/s"))
        return lines

    def __str__(self) -> str:
        lines = self.summary() + [(name, str(value)) for name, value in self.attributes.items()]
        width = max(len(name) for name, _ in lines)
        body = "\n".join(f"  {name.ljust(width)}  {value}" for name, value in lines)
        return f"device {self.ordinal}: {self.name}\n{body}"


class Devices(list[Device]):
    """A list of devices that prints every attribute of each."""

    def __repr__(self) -> str:
        return "\n\n".join(str(device) for device in self) or "no devices"


def _memory(free: int, total: int) -> str:
    text = f"{total / 2**30:.1f} GiB"
    return f"{text}, {free / 2**30:.1f} GiB free" if free else text


def _device(fields: dict[str, Any], simulated: bool) -> Device:
    return Device(
        ordinal=fields["ordinal"],
        name=fields["name"],
        uuid=fields["uuid"] or "",
        capability=fields["capability"],
        memory_total=fields["memory_total"],
        memory_free=fields["memory_free"],
        attributes=dict(fields["attributes"]),
        simulated=simulated,
    )


@called_as("device_info")
def device_info() -> Devices:
    """Every device there is, with each attribute by the driver's name, and what follows from them.

    Without a GPU this is one device, the simulator, with the limits that it enforces. Raises
    CudaError where GPUKERN_DEVICE=cuda asks for a GPU that cannot be used.
    """
    # The doctor and what it knows of devices are needed where the extension cannot be imported.
    from gpukern import _core

    simulated = _core.backend() == "sim"
    return Devices(_device(fields, simulated) for fields in _core.devices())
