"""What `gpukern doctor` looks at: everything that can break a CUDA install, read but not judged."""

import os
import platform
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpukern.machine.devices import Device, device_info
from gpukern.machine.install import Fault, find_fault, numpy_version
from gpukern.machine.libraries import nvrtc_report
from gpukern.machine.rehearsal import find_crash
from gpukern.text.errors import one_line

_VARIABLES = (
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_VISIBLE_DEVICES",
    "GPUKERN_DEVICE",
    "LD_LIBRARY_PATH",
    "NVIDIA_VISIBLE_DEVICES",
)
_LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
)
_NVIDIA = "0x10de"
_DISPLAY_CLASS = "0x03"


@dataclass(frozen=True)
class Outcome:
    """What became of a trial run: ``problem`` is None when it gave the right answer."""

    problem: str | None = None


@dataclass(frozen=True)
class Evidence:
    """The state of one machine. Every field has the value of a machine without any trace of CUDA.

    ``nodes`` maps device files to whether this user may read and write them. ``limit`` is the
    limit on address space in bytes. ``install`` is what keeps the extension from being used;
    then nothing is known of ``driver``, ``build`` and what ran. ``backend`` is "cuda", "sim", or
    None with ``backend_problem``.
    """

    system: str = "linux"
    environment: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, bool] = field(default_factory=dict)
    pci_gpus: int = 0
    kernel_module: str | None = None
    nouveau: bool = False
    wsl: bool = False
    container: bool = False
    libcudas: tuple[str, ...] = ()
    driver: dict[str, Any] = field(default_factory=dict)
    cublas: dict[str, Any] = field(default_factory=dict)
    nvrtc: dict[str, Any] = field(default_factory=dict)
    build: dict[str, Any] = field(default_factory=dict)
    devices: tuple[Device, ...] = ()
    backend: str | None = "sim"
    backend_problem: str | None = None
    numpy: str = "2.0.0"
    install: Fault | None = None
    limit: int | None = None
    forks: bool = False
    kernel: Outcome = Outcome()
    cublas_run: Outcome | None = None

    @property
    def hardware(self) -> bool:
        """Whether anything at all says that there is an NVIDIA GPU."""
        found = self.driver.get("devices") or self.kernel_module or self.nodes
        return bool(self.pci_gpus or found)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _nodes() -> dict[str, bool]:
    found = sorted(p for p in Path("/dev").glob("nvidia*") if not p.is_dir())
    found += [p for p in (Path("/dev/dxg"),) if p.exists()]
    return {str(p): os.access(p, os.R_OK | os.W_OK) for p in found}


def _pci_gpus() -> int:
    """Display controllers of NVIDIA on the PCI bus; 0 where the bus is hidden too."""
    cards = Path("/sys/bus/pci/devices").glob("*")
    return sum(
        _text(f"{card}/vendor").strip() == _NVIDIA
        and _text(f"{card}/class").startswith(_DISPLAY_CLASS)
        for card in cards
    )


def _kernel_module() -> str | None:
    line = _text("/proc/driver/nvidia/version")
    match = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", line)
    return match.group(1) if match else None


def _container() -> bool:
    marks = ("/.dockerenv", "/run/.containerenv")
    return any(Path(mark).exists() for mark in marks) or "container" in os.environ


def _libcudas(path: str) -> tuple[str, ...]:
    """Every libcuda.so.1 that the loader may meet, links resolved."""
    folders = [folder for folder in path.split(":") if folder]
    folders += [*_LIBRARY_FOLDERS, "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64"]
    files = (Path(folder) / "libcuda.so.1" for folder in folders)
    return tuple(dict.fromkeys(str(file.resolve()) for file in files if file.exists()))


def _address_space() -> int | None:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def _forks() -> bool:
    import multiprocessing

    chosen = multiprocessing.get_start_method(allow_none=True)
    # The first of all methods is the one that is used when none was chosen.
    return (chosen or multiprocessing.get_all_start_methods()[0]) == "fork"


def _try(run: Callable[[], None]) -> Outcome:
    try:
        run()
    except Exception as error:
        return Outcome(one_line(error))
    return Outcome()


def _run_kernel() -> None:
    import numpy as np

    from gpukern import _core

    a = np.arange(1001, dtype=np.float32)
    if not np.array_equal(_core.add(a, a), a + a):
        raise ArithmeticError("add gave a wrong result")


def _run_cublas() -> None:
    import numpy as np

    from gpukern import _core

    a = np.arange(64 * 64, dtype=np.float32).reshape(64, 64) % 7
    if not np.array_equal(_core.matmul(a, a, variant="cublas"), a @ a):
        raise ArithmeticError("matmul gave a wrong result")


def _backend() -> tuple[str | None, str | None]:
    from gpukern import _core

    try:
        return _core.backend(), None
    except (RuntimeError, ValueError) as error:
        return None, str(error)


def _ran() -> dict[str, Any]:
    """What the extension tells of the driver and the devices, and what ran on them."""
    from gpukern import _core

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", _core.SimulatorWarning)
        backend, problem = _backend()
        on_gpu = backend == "cuda"
        # The kernel comes first: it makes the context in which the driver tells what is free.
        return {
            "backend": backend,
            "backend_problem": problem,
            "kernel": Outcome(problem) if problem else _try(_run_kernel),
            "cublas_run": _try(_run_cublas) if on_gpu else None,
            "devices": tuple(device_info()) if on_gpu else (),
            "driver": _core.driver_report(),
            "build": _core.build_report(),
            "cublas": _core.cublas_report() if on_gpu else {},
            "nvrtc": nvrtc_report(_core.driver_report()["version"]) if on_gpu else {},
        }


def collect() -> Evidence:
    """Look at this machine; runs a kernel, and cuBLAS where there is a GPU."""
    install = find_fault() or find_crash()
    unknown = {"backend": None, "kernel": Outcome("the extension cannot be used")}
    environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    return Evidence(
        system=sys.platform,
        environment=environment,
        nodes=_nodes(),
        pci_gpus=_pci_gpus(),
        kernel_module=_kernel_module(),
        nouveau=Path("/sys/module/nouveau").exists(),
        wsl="microsoft" in platform.release().lower(),
        container=_container(),
        libcudas=_libcudas(environment.get("LD_LIBRARY_PATH", "")),
        numpy=numpy_version() or "",
        install=install,
        limit=_address_space(),
        forks=_forks(),
        **(unknown if install else _ran()),
    )
