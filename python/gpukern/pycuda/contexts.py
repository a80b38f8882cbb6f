"""Devices and contexts as PyCUDA has them. A context here is a device that a thread has chosen."""

import threading
from functools import lru_cache
from typing import Any

from gpukern import _core
from gpukern.pycuda import streams


def init(flags: int = 0) -> None:
    """Open the devices; raises CudaError where a GPU was asked for and there is none."""
    _core.backend()


def get_version() -> tuple[int, int, int]:
    """The CUDA version of the driver, as (13, 0, 0); on the simulator the newest known here."""
    number = get_driver_version()
    return number // 1000, number % 1000 // 10, number % 10


def get_driver_version() -> int:
    """13000 for CUDA 13.0."""
    return _core.driver_report()["version"] or 13000


# What the simulator does not tell, having no such parts, and programs ask for.
_SIMULATED = {
    "CAN_MAP_HOST_MEMORY": 0,
    "CONCURRENT_KERNELS": 0,
    "GPU_OVERLAP": 0,
    "INTEGRATED": 1,
    "MAX_REGISTERS_PER_BLOCK": 65536,
    "MAX_THREADS_PER_MULTIPROCESSOR": 1024,
    "TOTAL_CONSTANT_MEMORY": 65536,
}


@lru_cache(maxsize=1)
def _attribute_names() -> frozenset[str]:
    return frozenset(Device(0).get_attributes())


class _Names(type):
    """Gives each of an enumeration's names as a text, when it is asked for."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("_") or not name.isupper():
            raise AttributeError(f"{cls.__name__} has no {name}")
        return name


class device_attribute(metaclass=_Names):
    """The attributes of a device, by the driver's names without CU_DEVICE_ATTRIBUTE_."""


class Device:
    """A device by its number or its PCI bus id."""

    def __init__(self, number: int | str) -> None:
        self.number: int = Device._at(number) if isinstance(number, str) else int(number)
        if not 0 <= self.number < Device.count():
            raise _core.CudaError(f"Device: there is no device {number}; there are {self.count()}")

    @staticmethod
    def _at(bus_id: str) -> int:
        for number in range(Device.count()):
            if Device(number).pci_bus_id() == bus_id:
                return number
        raise _core.CudaError(f"Device: there is none at {bus_id!r}")

    @staticmethod
    def count() -> int:
        """How many devices there are."""
        return _core.device_count()

    def _report(self) -> dict[str, Any]:
        return _core.devices()[self.number]

    def name(self) -> str:
        """What the driver calls it."""
        name: str = self._report()["name"]
        return name

    def compute_capability(self) -> tuple[int, int]:
        """(9, 0) for an H200."""
        number = self._report()["capability"]
        return number // 10, number % 10

    def total_memory(self) -> int:
        """Bytes of device memory."""
        total: int = self._report()["memory_total"]
        return total

    def pci_bus_id(self) -> str:
        """Where it is, as 0000:3b:00.0."""
        have = self.get_attributes()
        domain, bus, device = (
            have.get(f"PCI_{part}_ID", 0) for part in ("DOMAIN", "BUS", "DEVICE")
        )
        return f"{domain:04x}:{bus:02x}:{device:02x}.0"

    def get_attributes(self) -> dict[str, int]:
        """Every attribute that the driver tells."""
        return {**(_SIMULATED if _core.backend() == "sim" else {}), **self._report()["attributes"]}

    def get_attribute(self, attribute: str) -> int:
        """One attribute, as device_attribute names it."""
        value = self.get_attributes().get(attribute)
        if value is None:
            raise _core.CudaError(f"Device: the device does not tell {attribute}")
        return value

    def __getattr__(self, name: str) -> int:
        if name.startswith("_") or name.upper() not in _attribute_names():
            raise AttributeError(f"Device has no {name}, and the driver no such attribute")
        return self.get_attribute(name.upper())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.number == self.number

    def __hash__(self) -> int:
        return hash(self.number)

    def __repr__(self) -> str:
        return f"<Device {self.number}: {self.name()}>"

    def make_context(self, flags: int = 0) -> "Context":
        """Have this thread's work run on the device, until the context is popped."""
        context = Context(self)
        context.push()
        return context

    def retain_primary_context(self) -> "Context":
        """A context of the device, which push() makes this thread's."""
        return Context(self)


class _Stack(threading.local):
    """The contexts of a thread, and the device that each took the place of."""

    def __init__(self) -> None:
        self.entries: list[tuple[Context, int]] = []


_stack = _Stack()


class Context:
    """A device that a thread has chosen for its work."""

    def __init__(self, device: Device) -> None:
        self._device = device

    @staticmethod
    def get_current() -> "Context | None":
        """The one that was pushed last; None where none was."""
        return _stack.entries[-1][0] if _stack.entries else None

    @staticmethod
    def get_device() -> Device:
        """The device of this thread."""
        current = Context.get_current()
        return current._device if current else Device(0)

    def push(self) -> None:
        """Have this thread's work run on the device."""
        _stack.entries.append((self, _core.choose_device(self._device.number)))

    @staticmethod
    def pop() -> None:
        """Go back to the device before."""
        if not _stack.entries:
            raise _core.CudaError("Context.pop: this thread has no context that was pushed")
        _, before = _stack.entries.pop()
        _core.choose_device(before)

    def detach(self) -> None:
        """Pop it where it is this thread's."""
        if Context.get_current() is self:
            Context.pop()

    @staticmethod
    def synchronize() -> None:
        """Wait until the device has done all of its work."""
        streams.synchronize()

    @staticmethod
    def get_limit(limit: Any) -> int:
        """Left out."""
        raise NotImplementedError("Context.get_limit: the driver's limits are left as they are")

    @staticmethod
    def set_limit(limit: Any, value: int) -> None:
        """Left out."""
        raise NotImplementedError("Context.set_limit: the driver's limits are left as they are")

    @staticmethod
    def set_cache_config(config: Any) -> None:
        """Taken, and left to the driver: GPUs share one memory for both out as they need it."""

    @staticmethod
    def enable_peer_access(context: "Context", flags: int = 0) -> None:
        """Left out."""
        raise NotImplementedError(
            "Context.enable_peer_access: arrays of two devices are copied through the host; "
            "gpukern.asarray(array) under gpukern.device(n) does it"
        )


def mem_get_info() -> tuple[int, int]:
    """The bytes of this thread's device that are free, and those that there are."""
    _core.synchronize()  # only a device that is open tells what is free
    report = _core.devices()[Context.get_device().number]
    return report["memory_free"], report["memory_total"]
