"""`gpukern doctor`: can gpukern use a GPU here, and if not, which known fault is it?

Each check looks at the evidence and says in one line what it found and what cures it. A check that
has nothing to add returns None, so that one fault is one line and not ten.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from gpukern.evidence import Evidence
from gpukern.inventory import cuda_version
from gpukern.libraries import CUBLAS_CURE
from gpukern.units import size

DRIVER_NEEDED = 13000
CAPABILITY_NEEDED = 75
_MEMORY_NEEDED = 256 * 2**20
_NUMPY_NEEDED = (2, 0)
_INSTALL_DRIVER = "install the NVIDIA driver r580 or newer (Ubuntu: sudo ubuntu-drivers install)"
_START_CONTAINER = "start the container with the GPU: docker run --gpus all"

Level = Literal["ok", "note", "broken"]


@dataclass(frozen=True)
class Finding:
    """What a check found; ``cure`` is what to do about it."""

    level: Level
    subject: str
    text: str
    cure: str = ""


Check = Callable[[Evidence], Finding | None]


# What cuInit answers, what that means, and what helps.
STATUS_CURES = {
    "CUDA_ERROR_NO_DEVICE": (
        "the driver is there, but it sees no GPU",
        "nvidia-smi tells whether the card is alive; in a container or a virtual machine, pass "
        "the GPU through",
    ),
    "CUDA_ERROR_OUT_OF_MEMORY": (
        "no memory is left for the driver's own needs",
        "close other programs on the GPU, and lift limits on address space (ulimit -v unlimited)",
    ),
    "CUDA_ERROR_INVALID_DEVICE": (
        "the driver does not know the device it is asked for",
        "unset CUDA_VISIBLE_DEVICES, or name a device that nvidia-smi -L lists",
    ),
    "CUDA_ERROR_NOT_INITIALIZED": (
        "the driver was started before this process was forked",
        "start worker processes with multiprocessing.set_start_method('spawn')",
    ),
    "CUDA_ERROR_DEINITIALIZED": (
        "the process is ending, and the driver has shut down",
        "call no operation from atexit or from a daemon thread that outlives the program",
    ),
    "CUDA_ERROR_STUB_LIBRARY": (
        "libcuda.so.1 is the toolkit's stub, which is for linking only",
        "take the folder named stubs out of LD_LIBRARY_PATH",
    ),
    "CUDA_ERROR_DEVICE_UNAVAILABLE": (
        "the GPU is in use by another process that holds it alone",
        "end that process, or sudo nvidia-smi -c DEFAULT",
    ),
    "CUDA_ERROR_DEVICE_NOT_LICENSED": (
        "the virtual GPU has no licence",
        "have the licence service checked: nvidia-smi -q | grep -i license",
    ),
    "CUDA_ERROR_SYSTEM_NOT_READY": (
        "the GPUs are joined by NVSwitch, and the service that sets it up is not running",
        "sudo systemctl start nvidia-fabricmanager, of the same version as the driver",
    ),
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": (
        "libcuda and the kernel module are of different driver versions",
        "reboot after a driver update; in a container, do not install a driver inside it",
    ),
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": (
        "a forward-compatibility libcuda is in use, and this GPU does not allow it",
        "take the folder named compat out of LD_LIBRARY_PATH and remove the cuda-compat package",
    ),
    "CUDA_ERROR_MPS_CONNECTION_FAILED": (
        "the multi-process service is asked for and does not answer",
        "start nvidia-cuda-mps-control -d, or unset CUDA_MPS_PIPE_DIRECTORY",
    ),
    "CUDA_ERROR_MPS_SERVER_NOT_READY": (
        "the multi-process service is starting or recovering from a fault",
        "wait, or restart it: echo quit | nvidia-cuda-mps-control",
    ),
    "CUDA_ERROR_OPERATING_SYSTEM": (
        "the operating system refused the driver",
        "look at dmesg for NVRM lines; a sandbox may hide /dev/nvidia*",
    ),
    "CUDA_ERROR_ECC_UNCORRECTABLE": (
        "the GPU's memory has an uncorrectable error",
        "sudo nvidia-smi -r resets it; if it comes back, the card is at fault",
    ),
    "CUDA_ERROR_UNKNOWN": (
        "the driver fails without saying why: after suspend, or with nvidia-uvm not loaded",
        "sudo rmmod nvidia_uvm; sudo modprobe nvidia_uvm; or reboot",
    ),
}


def _system(seen: Evidence) -> Finding | None:
    if seen.system == "linux":
        return None
    return Finding("broken", "system", f"gpukern runs on Linux, not on {seen.system}", "use WSL 2")


def _numpy(seen: Evidence) -> Finding:
    numbers = tuple(int(part) for part in re.findall(r"\d+", seen.numpy)[:2])
    if numbers < _NUMPY_NEEDED:
        return Finding(
            "broken", "NumPy", f"version {seen.numpy} is too old", 'pip install "numpy>=2.0"'
        )
    return Finding("ok", "NumPy", seen.numpy)


def _hardware(seen: Evidence) -> Finding | None:
    if seen.hardware or seen.wsl:
        return None
    cure = "gpukern's simulator works without one; for speed, run on a machine with a GPU"
    if seen.container:
        cure = f"{_START_CONTAINER}, if the host has one"
    return Finding("broken", "GPU", "there is no NVIDIA GPU here", cure)


def _kernel_module(seen: Evidence) -> Finding | None:
    works = bool(seen.driver.get("devices"))
    if seen.wsl or works or not seen.pci_gpus or seen.kernel_module:
        return None
    if seen.container:
        return Finding("broken", "container", "it was started without the GPU", _START_CONTAINER)
    if seen.nouveau:
        return Finding(
            "broken",
            "kernel module",
            "the open driver nouveau holds the GPU",
            f"{_INSTALL_DRIVER}, which replaces nouveau, and reboot",
        )
    return Finding(
        "broken",
        "kernel module",
        "the NVIDIA kernel module is not loaded",
        "sudo modprobe nvidia; if that fails: secure boot must trust the module, or the driver has "
        "to be installed again for this kernel",
    )


def _nodes(seen: Evidence) -> Finding | None:
    if seen.wsl or not (seen.nodes or seen.kernel_module):
        return None
    if seen.container and seen.kernel_module and not seen.nodes:
        return Finding("broken", "container", "it was started without the GPU", _START_CONTAINER)
    forbidden = [path for path, permitted in seen.nodes.items() if not permitted]
    needed = [path for path in forbidden if re.fullmatch(r"/dev/nvidia(\d+|ctl|-uvm)", path)]
    if needed and not seen.driver.get("devices"):
        return Finding(
            "broken",
            "device files",
            f"this user may not open {', '.join(needed)}",
            "sudo chmod a+rw on them, or join their group: sudo usermod -aG video $USER",
        )
    if "/dev/nvidia-uvm" not in seen.nodes and not seen.driver.get("devices"):
        return Finding(
            "broken", "device files", "/dev/nvidia-uvm is missing", "sudo nvidia-modprobe -u -c=0"
        )
    return Finding("ok", "device files", f"{len(seen.nodes)} files, open to this user")


def _wsl(seen: Evidence) -> Finding | None:
    if not seen.wsl:
        return None
    library = seen.driver.get("library")
    if library and "/wsl/" not in library:
        return Finding(
            "broken",
            "WSL",
            f"{library} is a Linux driver, and WSL uses Windows's",
            "remove the NVIDIA driver inside WSL; keep the one of Windows",
        )
    if "/dev/dxg" not in seen.nodes:
        return Finding(
            "broken",
            "WSL",
            "/dev/dxg is missing: this is WSL 1, or the GPU is not passed through",
            "wsl --update; wsl --set-version DISTRIBUTION 2",
        )
    return Finding("ok", "WSL", "uses the driver of Windows")


def _library(seen: Evidence) -> Finding | None:
    library = seen.driver.get("library")
    if library:
        return Finding("ok", "driver library", library)
    if not seen.hardware and not seen.wsl:
        return None
    cure = _START_CONTAINER if seen.container else _INSTALL_DRIVER
    if seen.wsl:
        cure = "install the NVIDIA driver in Windows, then wsl --shutdown"
    return Finding("broken", "driver library", "libcuda.so.1 is not found", cure)


def _stub(seen: Evidence) -> Finding | None:
    library = seen.driver.get("library") or ""
    if "stubs" in PurePath(library).parts:
        return Finding(
            "broken",
            "driver library",
            f"{library} is a stub for linking, not a driver",
            "take the folder named stubs out of LD_LIBRARY_PATH",
        )
    folders = seen.environment.get("LD_LIBRARY_PATH", "").split(":")
    if any("stubs" in PurePath(folder).parts for folder in folders):
        return Finding(
            "note",
            "LD_LIBRARY_PATH",
            "names a folder of stubs, which can hide the real driver",
            "take it out",
        )
    return None


def _libcudas(seen: Evidence) -> Finding | None:
    real = [path for path in seen.libcudas if "stubs" not in PurePath(path).parts]
    if len({PurePath(path).name for path in real}) < 2:
        return None
    return Finding(
        "note" if seen.driver.get("devices") else "broken",
        "driver library",
        f"there are {len(real)} that differ: {', '.join(real)}",
        "keep the one of the driver that is loaded; remove cuda-compat or the older driver's files",
    )


def _mismatch(seen: Evidence) -> Finding | None:
    match = re.search(r"libcuda\.so\.(\d+\.\d+(?:\.\d+)?)$", _resolved_library(seen))
    if seen.wsl or not match or not seen.kernel_module or match.group(1) == seen.kernel_module:
        return None
    return Finding(
        "note" if seen.driver.get("devices") else "broken",
        "driver",
        f"libcuda is of {match.group(1)} and the kernel module of {seen.kernel_module}",
        "reboot after a driver update; in a container, do not install a driver inside it",
    )


def _resolved_library(seen: Evidence) -> str:
    """The file behind the libcuda that was opened, where the search for them has met it."""
    library = seen.driver.get("library") or ""
    folder = str(PurePath(library).parent)
    return next((p for p in seen.libcudas if str(PurePath(p).parent) == folder), library)


def _version(seen: Evidence) -> Finding | None:
    version = seen.driver.get("version")
    if not version:
        return None
    text = f"supports CUDA {cuda_version(version)}"
    if seen.kernel_module:
        text = f"{seen.kernel_module}, {text}"
    if version < DRIVER_NEEDED:
        needed = cuda_version(DRIVER_NEEDED)
        return Finding(
            "broken", "driver", f"{text}; gpukern's kernels need {needed}", _INSTALL_DRIVER
        )
    return Finding("ok", "driver", text)


def _visible(seen: Evidence) -> Finding | None:
    value = seen.environment.get("CUDA_VISIBLE_DEVICES")
    if value is None:
        return None
    problem = _visibility_problem(value, seen)
    if problem and (seen.hardware or seen.wsl):
        return Finding(
            "broken" if not seen.driver.get("devices") else "note",
            "CUDA_VISIBLE_DEVICES",
            problem,
            "unset it, or name a device that nvidia-smi -L lists",
        )
    return Finding("note", "CUDA_VISIBLE_DEVICES", f"is {value!r}: other GPUs are hidden")


def _visibility_problem(value: str, seen: Evidence) -> str | None:
    first = value.split(",", maxsplit=1)[0].strip()
    cards = sum(bool(re.fullmatch(r"/dev/nvidia\d+", path)) for path in seen.nodes)
    if not first:
        return "is empty, which hides every GPU"
    if first.startswith("-"):
        return f"is {value!r}, which hides every GPU"
    if not first.isdigit() and not first.startswith(("GPU-", "MIG-")):
        return f"is {value!r}, which names no device"
    if first.isdigit() and cards and int(first) >= cards:
        return f"is {value!r}, and there are {cards} GPUs, counted from 0"
    return None


def _status(seen: Evidence) -> Finding | None:
    status = seen.driver.get("status")
    if status is None or status == "CUDA_SUCCESS":
        return None
    hidden = seen.environment.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None and _visibility_problem(hidden, seen):
        return None
    if not (seen.hardware or seen.wsl):
        return None
    fallback = ("the driver does not start", "look at dmesg for NVRM lines, and reboot")
    text, cure = STATUS_CURES.get(status, fallback)
    return Finding("broken", "driver", f"{text} ({status})", cure)


def _problem(seen: Evidence) -> Finding | None:
    """What the engine says of the driver and no other check explains."""
    problem = seen.driver.get("problem")
    known = seen.driver.get("status") not in (None, "CUDA_SUCCESS")
    version = seen.driver.get("version") or DRIVER_NEEDED
    library = seen.driver.get("library") or ""
    explained = known or not library or version < DRIVER_NEEDED
    if not problem or explained or "stubs" in PurePath(library).parts:
        return None
    return Finding("broken", "driver", problem, _INSTALL_DRIVER)


def _choice(seen: Evidence) -> Finding | None:
    value = seen.environment.get("GPUKERN_DEVICE")
    if value is None:
        return None
    if value not in ("cuda", "sim"):
        return Finding(
            "broken", "GPUKERN_DEVICE", f"is {value!r}, which is neither cuda nor sim", "unset it"
        )
    if value == "sim":
        text, cure = "asks for the simulator: no GPU is used", "unset it to use the GPU"
        return Finding("broken" if seen.hardware else "note", "GPUKERN_DEVICE", text, cure)
    return Finding("note", "GPUKERN_DEVICE", "asks for a GPU: without one, calls are errors")


def _devices(seen: Evidence) -> Finding | None:
    count = seen.driver.get("devices")
    if not count:
        status = seen.driver.get("status")
        if status != "CUDA_SUCCESS":
            return None
        return Finding("broken", "GPU", "the driver runs, but lists no device", "nvidia-smi -L")
    names = ", ".join(device.name for device in seen.devices)
    return Finding("ok", "GPU", f"{count}: {names}" if names else f"{count} visible")


def _capability(seen: Evidence) -> Finding | None:
    old = [device for device in seen.devices if device.capability < CAPABILITY_NEEDED]
    if not old:
        return None
    named = ", ".join(f"{d.name} ({d.capability // 10}.{d.capability % 10})" for d in old)
    rest = [d.ordinal for d in seen.devices if d.capability >= CAPABILITY_NEEDED]
    cure = "CUDA 13 needs a GPU of Turing (2018) or later"
    if rest:
        cure = f"CUDA_VISIBLE_DEVICES={','.join(map(str, rest))} leaves it out"
    first = seen.devices[0] in old
    return Finding(
        "broken" if first else "note", "GPU", f"compute capability under 7.5: {named}", cure
    )


def _compute_mode(seen: Evidence) -> Finding | None:
    modes = {device.attributes.get("COMPUTE_MODE") for device in seen.devices}
    cure = "sudo nvidia-smi -c DEFAULT"
    if 2 in modes:
        return Finding("broken", "compute mode", "prohibited: no process may use the GPU", cure)
    if 3 in modes:
        level: Level = "broken" if seen.kernel.problem else "note"
        return Finding(level, "compute mode", "exclusive: one process has the GPU to itself", cure)
    return None


def _memory(seen: Evidence) -> Finding | None:
    for device in seen.devices:
        if 0 < device.memory_free < _MEMORY_NEEDED:
            free, total = size(device.memory_free), size(device.memory_total)
            return Finding(
                "broken",
                "memory",
                f"{free} of {total} are free on {device.name}",
                "nvidia-smi lists the processes that hold the rest",
            )
    return None


def _limit(seen: Evidence) -> Finding | None:
    if seen.limit is None or not (seen.hardware or seen.wsl):
        return None
    return Finding(
        "broken" if seen.kernel.problem else "note",
        "address space",
        f"is limited to {size(seen.limit)}, and CUDA reserves far more than it uses",
        "ulimit -v unlimited",
    )


def _kernel(seen: Evidence) -> Finding:
    problem = seen.kernel.problem
    if seen.backend == "cuda":
        if problem is None:
            return Finding("ok", "kernel", "runs on the GPU and gives the right answer")
        return Finding("broken", "kernel", problem, "dmesg shows Xid lines if the GPU has faulted")
    if seen.backend is None:
        return Finding("broken", "gpukern", seen.backend_problem or "has no device", "see above")
    if problem is None:
        return Finding("ok", "simulator", "runs the kernels on the CPU and gives the right answer")
    return Finding("broken", "simulator", problem, "install gpukern again")


def _cublas(seen: Evidence) -> Finding | None:
    if seen.backend != "cuda":
        return None
    if not seen.cublas.get("library"):
        text = "is not found; all but variant='cublas' works without it"
        return Finding("note", "cuBLAS", text, CUBLAS_CURE)
    if seen.cublas_run and seen.cublas_run.problem:
        return Finding("broken", "cuBLAS", seen.cublas_run.problem, CUBLAS_CURE)
    return Finding("ok", "cuBLAS", str(seen.cublas["library"]))


def _blocking(seen: Evidence) -> Finding | None:
    value = seen.environment.get("CUDA_LAUNCH_BLOCKING", "0")
    if value in ("", "0"):
        return None
    return Finding(
        "note", "CUDA_LAUNCH_BLOCKING", "is set: each launch waits, and timings mislead", "unset it"
    )


def _forks(seen: Evidence) -> Finding | None:
    if not seen.forks or seen.backend != "cuda":
        return None
    return Finding(
        "note",
        "multiprocessing",
        "forks: a child of a process that has used the GPU cannot use it",
        "multiprocessing.set_start_method('spawn')",
    )


CHECKS: tuple[Check, ...] = (
    _system,
    _numpy,
    _hardware,
    _kernel_module,
    _nodes,
    _wsl,
    _library,
    _stub,
    _libcudas,
    _mismatch,
    _version,
    _visible,
    _status,
    _problem,
    _choice,
    _devices,
    _capability,
    _compute_mode,
    _memory,
    _limit,
    _kernel,
    _cublas,
    _blocking,
    _forks,
)


def examine(seen: Evidence) -> list[Finding]:
    """What every check has to say, in the order of the checks."""
    return [finding for check in CHECKS if (finding := check(seen)) is not None]


def healthy(findings: Sequence[Finding]) -> bool:
    """Whether gpukern can use a GPU here and nothing is broken."""
    return all(finding.level != "broken" for finding in findings)


def verdict(seen: Evidence, findings: Sequence[Finding]) -> str:
    """The answer in one sentence."""
    if seen.backend == "cuda" and healthy(findings):
        return "gpukern can use the GPU here."
    if seen.backend == "cuda":
        return "gpukern finds the GPU, but something is broken."
    if seen.backend == "sim" and seen.kernel.problem is None:
        return "gpukern cannot use a GPU here; its simulator works, and is slow."
    return "gpukern cannot use a GPU here, and its simulator does not run."
