"""The system: what runs Linux here, whether it has a GPU, and whether a user may open it."""

import re

from gpukern.machine.checks.finding import INSTALL_DRIVER, START_CONTAINER, Check, Finding
from gpukern.machine.evidence import Evidence


def _system(seen: Evidence) -> Finding | None:
    if seen.system == "linux":
        return None
    return Finding("broken", "system", f"gpukern runs on Linux, not on {seen.system}", "use WSL 2")


def _numpy(seen: Evidence) -> Finding:
    if seen.install and seen.install.subject == "NumPy":
        return Finding("broken", *seen.install)
    return Finding("ok", "NumPy", seen.numpy)


def _extension(seen: Evidence) -> Finding | None:
    if seen.install and seen.install.subject != "NumPy":
        return Finding("broken", *seen.install)
    return None


def _hardware(seen: Evidence) -> Finding | None:
    if seen.hardware or seen.wsl:
        return None
    cure = "gpukern's simulator works without one; for speed, run on a machine with a GPU"
    if seen.container:
        cure = f"{START_CONTAINER}, if the host has one"
    return Finding("broken", "GPU", "there is no NVIDIA GPU here", cure)


def _kernel_module(seen: Evidence) -> Finding | None:
    works = bool(seen.driver.get("devices"))
    if seen.wsl or works or not seen.pci_gpus or seen.kernel_module:
        return None
    if seen.container:
        return Finding("broken", "container", "it was started without the GPU", START_CONTAINER)
    if seen.nouveau:
        return Finding(
            "broken",
            "kernel module",
            "the open driver nouveau holds the GPU",
            f"{INSTALL_DRIVER}, which replaces nouveau, and reboot",
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
        return Finding("broken", "container", "it was started without the GPU", START_CONTAINER)
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


CHECKS: tuple[Check, ...] = (
    _system,
    _numpy,
    _extension,
    _hardware,
    _kernel_module,
    _nodes,
    _wsl,
)
