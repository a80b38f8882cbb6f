"""The devices: which there are, and what a program meets that runs kernels on them."""

import re
from collections.abc import Sequence

from gpukern.machine.checks.finding import Check, Finding, Level
from gpukern.machine.evidence import Evidence
from gpukern.machine.install import AGAIN
from gpukern.machine.libraries import DRIVER_IS_NEW, cublas_cure, nvrtc_cure
from gpukern.text.units import size

CAPABILITY_NEEDED = 75
_MEMORY_NEEDED = 256 * 2**20


def _choice(seen: Evidence) -> Finding | None:
    value = seen.environment.get("GPUKERN_DEVICE")
    if not value:
        return None
    if value not in ("cuda", "sim"):
        return Finding(
            "broken", "GPUKERN_DEVICE", f"is {value!r}, which is neither cuda nor sim", "unset it"
        )
    if value == "sim":
        text, cure = "asks for the simulator: no GPU is used", "unset it to use the GPU"
        return Finding("broken" if seen.hardware else "note", "GPUKERN_DEVICE", text, cure)
    if seen.backend is None and not seen.install:
        text = f"asks for a GPU, and none can be used: {seen.backend_problem}"
        return Finding("broken", "GPUKERN_DEVICE", text, "unset it to use the simulator")
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


def _has_machine_code(capability: int, architectures: Sequence[str]) -> bool:
    """Machine code is for its own major version; that of "90a" for 9.0 alone."""
    return any(
        name == f"{capability}a"
        or (name.isdigit() and capability // 10 * 10 <= int(name) <= capability)
        for name in architectures
    )


def _machine_code(seen: Evidence) -> Finding | None:
    if (seen.driver.get("version") or DRIVER_IS_NEW) < DRIVER_IS_NEW:
        return None  # it takes none, as the check of the driver says
    code, ptx = seen.build.get("machine_code", []), seen.build.get("ptx", [])
    for device in seen.devices:
        served = [int(name) for name in ptx if int(name) <= device.capability]
        if served and not _has_machine_code(device.capability, code):
            wanted = f"{device.capability}a" if device.capability == 90 else device.capability
            return Finding(
                "note",
                "machine code",
                f"none for {device.name}: the driver compiles each kernel at first use, from PTX "
                f"of {max(served) // 10}.{max(served) % 10}",
                f"install gpukern again with GPUKERN_ARCHS={wanted}, or where it sees this GPU",
            )
    return None


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


def _unopened(seen: Evidence) -> Finding | None:
    """Why not even the simulator was opened, where no other check has said it."""
    if seen.install or seen.environment.get("GPUKERN_DEVICE") not in (None, "", "sim"):
        return None
    problem = seen.backend_problem or "has no device"
    variable = re.search(r"(GPUKERN_\w+) (is .*)", problem)
    if variable:
        return Finding("broken", variable[1], variable[2], "unset it")
    return Finding("broken", "gpukern", problem, AGAIN)


def _kernel(seen: Evidence) -> Finding | None:
    problem = seen.kernel.problem
    if seen.backend == "cuda":
        if problem is None:
            return Finding("ok", "kernel", "runs on the GPU and gives the right answer")
        return Finding("broken", "kernel", problem, "dmesg shows Xid lines if the GPU has faulted")
    if seen.backend is None:
        return _unopened(seen)
    if problem is None:
        return Finding("ok", "simulator", "runs the kernels on the CPU and gives the right answer")
    return Finding("broken", "simulator", problem, AGAIN)


def _cublas(seen: Evidence) -> Finding | None:
    if seen.backend != "cuda":
        return None
    cure = cublas_cure(seen.driver.get("version"))
    unloadable = re.search(r"cuBLAS was not found \((/.*)\);", seen.cublas.get("problem") or "")
    if unloadable:
        return Finding("broken", "cuBLAS", f"cannot be loaded: {unloadable[1]}", cure)
    if not seen.cublas.get("library"):
        text = "is not found; all but variant='cublas' works without it"
        return Finding("note", "cuBLAS", text, cure)
    if seen.cublas_run and seen.cublas_run.problem:
        return Finding("broken", "cuBLAS", seen.cublas_run.problem, cure)
    return Finding("ok", "cuBLAS", str(seen.cublas["library"]))


def _nvrtc(seen: Evidence) -> Finding | None:
    if seen.backend != "cuda" or not seen.nvrtc:
        return None
    cure = nvrtc_cure(seen.driver.get("version"))
    if not seen.nvrtc.get("library"):
        return Finding("note", "NVRTC", "is not found; all but gpukern.compile works", cure)
    if seen.nvrtc.get("problem"):
        return Finding("broken", "NVRTC", str(seen.nvrtc["problem"]), cure)
    return Finding("ok", "NVRTC", str(seen.nvrtc["library"]))


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
    _choice,
    _devices,
    _capability,
    _machine_code,
    _compute_mode,
    _memory,
    _limit,
    _kernel,
    _cublas,
    _nvrtc,
    _blocking,
    _forks,
)
