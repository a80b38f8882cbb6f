"""The driver: which libcuda is opened, whether it is new enough, and why it does not start."""

import re
from pathlib import PurePath

from gpukern.machine.checks.finding import INSTALL_DRIVER, START_CONTAINER, Check, Finding
from gpukern.machine.evidence import Evidence
from gpukern.machine.inventory import cuda_version
from gpukern.machine.libraries import DRIVER_IS_NEW

DRIVER_NEEDED = 12000  # the CUDA version of r525


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


def _library(seen: Evidence) -> Finding | None:
    library = seen.driver.get("library")
    if library:
        return Finding("ok", "driver library", library)
    if seen.install:
        return None  # the extension could not be asked
    if _real(seen):
        problem = seen.driver.get("problem") or ""
        reason = re.search(r"could not be loaded: (.*)\); install", problem)
        return Finding(
            "broken",
            "driver library",
            f"{_real(seen)[0]} is there and cannot be loaded: {reason[1] if reason else problem}",
            f"remove that file if it is no driver's, or {INSTALL_DRIVER}",
        )
    if not seen.hardware and not seen.wsl:
        return None
    cure = START_CONTAINER if seen.container else INSTALL_DRIVER
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


def _real(seen: Evidence) -> list[str]:
    """The libraries of a driver, without the toolkit's stubs."""
    return [path for path in seen.libcudas if "stubs" not in PurePath(path).parts]


def _libcudas(seen: Evidence) -> Finding | None:
    real = _real(seen)
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
            "broken", "driver", f"{text}; gpukern's kernels need {needed}", INSTALL_DRIVER
        )
    if version < DRIVER_IS_NEW:
        return Finding(
            "note",
            "driver",
            f"{text}: it compiles each kernel when it is first called, and keeps it; what needs "
            "machine code, tensor cores of 9.0 among it, is left out",
            INSTALL_DRIVER,
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
    text = problem or f"is {value!r}: other GPUs are hidden"
    return Finding("note", "CUDA_VISIBLE_DEVICES", text)


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
    return Finding("broken", "driver", problem, INSTALL_DRIVER)


CHECKS: tuple[Check, ...] = (
    _library,
    _stub,
    _libcudas,
    _mismatch,
    _version,
    _visible,
    _status,
    _problem,
)
