"""Which GPUs the kernels are compiled for: those that are there, or those that are asked for."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from build_tools.steps import output_of, stop

# What wheels are built for.
ALL = ["75", "80", "86", "89", "90", "90a", "100", "120"]
# PTX of it serves every GPU that CUDA 13 knows.
OLDEST = "75"


@dataclass(frozen=True)
class Targets:
    """The architectures of machine code and of PTX, as "75" or "90a", oldest first.

    `on_request` are for the files whose source asks for what only they have: machine code of "90a",
    in place of that of "90", or PTX of "80".
    """

    machine: tuple[str, ...] = ()
    ptx: tuple[str, ...] = ()
    on_request: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """A name for a folder."""
        return "-".join([*self.machine, *(f"ptx{name}" for name in self.ptx)])

    def for_source(self, requests: Iterable[str]) -> Targets:
        """What a file that makes these requests is compiled for."""
        asked = [name for name in self.on_request if name in set(requests)]
        special = [name for name in asked if not name.isdigit()]
        machine = [name for name in self.machine if not any(s[:-1] == name for s in special)]
        return Targets(
            in_order([*machine, *special]),
            in_order([*self.ptx, *(name for name in asked if name.isdigit())]),
        )


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, oldest first."""
    return tuple(sorted(set(names), key=architecture_order))


def architecture_order(name: str) -> tuple[int, str]:
    """A sorting key: 90 < 90a < 100."""
    return int(name.rstrip("abcdefghijklmnopqrstuvwxyz")), name


def dotted(name: str) -> str:
    """ "90a" as "9.0a"."""
    digits = str(architecture_order(name)[0])
    return f"{digits[:-1]}.{digits[-1]}{name[len(digits) :]}"


def listed(names: Iterable[str]) -> str:
    """ "8.6 and 9.0"."""
    *first, last = map(dotted, names)
    return f"{', '.join(first)} and {last}" if first else last


def supported_architectures(nvcc: str) -> list[str]:
    """What this nvcc compiles for, as "75" or "90a", oldest first."""
    names = set(re.findall(r"'compute_(\d+[a-z]?)'", output_of([nvcc, "--help"])))
    return sorted(names, key=architecture_order)


@cache
def installed_gpus() -> list[str]:
    """The compute capabilities of this machine's GPUs, as its driver tells them; [] without one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuInit(0) != 0:
            return []
        count, device, number = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        if driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return []
        found = []
        for ordinal in range(count.value):
            digits = []
            for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
                if (
                    driver.cuDeviceGet(ctypes.byref(device), ordinal) != 0
                    or driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, device) != 0
                ):
                    return []
                digits.append(str(number.value))
            found.append("".join(digits))
    except (OSError, AttributeError):  # no driver, or a library that is none
        return []
    return list(in_order(found))


def chosen_targets(
    wanted: str | None, supported: Sequence[str], gpus: Callable[[], Sequence[str]]
) -> tuple[Targets, str]:
    """What GPUKERN_ARCHS asks for, or else the GPUs that there are; and the line that says so."""
    others = "(GPUKERN_ARCHS=all builds for every GPU, GPUKERN_ARCHS=90a for one kind)"
    if wanted and wanted.strip():
        targets = of_list(named(wanted, supported))
        return targets, f"building for compute capability {listed(targets.machine)}"
    found = gpus()
    known = [name for name in found if name in supported]
    unknown = [name for name in found if name not in supported]
    problem = f"; this nvcc makes no machine code for {listed(unknown)}" if unknown else ""
    if known:
        targets = of_list([*known, *(f"{n}a" for n in known if f"{n}a" in supported)])
        if unknown:
            targets = Targets(targets.machine, in_order([*targets.ptx, OLDEST]), targets.on_request)
        return targets, (
            f"building for this machine's GPU, compute capability {listed(known)}{problem} {others}"
        )
    newer = [name for name in supported if architecture_order(name) > architecture_order(OLDEST)]
    special = [name for name in newer if name.isdigit() or name == "90a"]
    why = problem[2:] if unknown else "no GPU here"
    return Targets((), (OLDEST,), tuple(special)), (
        f"{why}, so building PTX of {dotted(OLDEST)} alone, which every GPU's driver compiles at "
        f"first use {others}"
    )


def named(wanted: str, supported: Sequence[str]) -> list[str]:
    """The architectures that GPUKERN_ARCHS names, with comma or space between them."""
    names = []
    for word in re.split(r"[,;\s]+", wanted.strip()):
        names += ALL if word == "all" else [re.sub(r"^(sm_|compute_)", "", word)] if word else []
    unknown = [name for name in names if name not in supported]
    if unknown:
        stop(
            f"this nvcc does not compile for architecture {', '.join(unknown)}: set GPUKERN_ARCHS "
            f"to all, or to one or more of {','.join(supported)}, or install an nvcc that does"
        )
    return list(in_order(names))


def of_list(names: Sequence[str]) -> Targets:
    """Machine code for each architecture, and PTX where that does not reach.

    Machine code serves its own major version only. PTX of the last architecture serves all that are
    newer, and PTX of one before a gap (10.x, then 12.x) serves the gap. "90a" is for 9.0 alone, so
    that beside "90" it is for the files that ask for it.
    """
    plain = [name for name in names if name.isdigit()]
    special = [name for name in names if not name.isdigit() and name[:-1] in plain]
    ptx = []
    for index, name in enumerate(plain):
        later = plain[index + 1 : index + 2]
        if not later or int(later[0]) // 10 > int(name) // 10 + 1:
            ptx.append(name)
    machine = [name for name in names if name not in special]
    return Targets(in_order(machine), in_order(ptx), in_order(special))


# ---- what a source asks for ----


def requests(path: Path, folder: Path) -> set[str]:
    """The architectures that a file asks for, by itself or in the headers of `folder` it includes.

    __CUDA_ARCH_FEAT_SM90_ALL asks for "90a", and __CUDA_ARCH__ >= 800 for "80".
    """
    found = set()
    for text in texts(path, folder, {}).values():
        found |= {f"{number}a" for number in re.findall(r"\bSM(\d+)_ALL\b", text)}
        found |= {f"{number}a" for number in re.findall(r"__CUDA_ARCH_FEAT_SM(\d+)", text)}
        found |= set(re.findall(r"__CUDA_ARCH__\s*>=?\s*(\d+)0\b", text))
    return found


def texts(path: Path, folder: Path, seen: dict[Path, str]) -> Mapping[Path, str]:
    """The texts of a file and of all that it includes by name in quotes, without comments."""
    if path in seen or not path.is_file():
        return seen
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    seen[path] = text
    for name in re.findall(r'#\s*include\s*"([^"]+)"', text):
        for place in (path.parent / name, folder / name):
            if place.resolve().is_relative_to(folder.resolve()):
                texts(place.resolve(), folder, seen)
    return seen
