"""The rooms of the sources in C, and what each may include."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CSRC, CUDA = ROOT / "csrc", ROOT / "cuda"

# A room, and what its files may include beside libc and one another, from the ground up. "kernels"
# are the headers of cuda/ that are plain C, and the lists of kernels that the build writes.
MAY_INCLUDE = {
    "base": "",
    "device": "base kernels",
    "device/cuda": "base device kernels cuda.h",
    "device/sim": "base device kernels cuda/sim",
    "device/fault": "base device",
    "engine": "base device kernels",
    "ops": "base device kernels engine",
    "binding/arrays": "base device kernels engine binding Python",
    "binding/calls": "base device kernels engine ops binding binding/arrays Python",
    "binding/kernels": "base device engine ops binding binding/arrays Python",
    "binding/xla": "base engine binding binding/arrays Python",
    "binding": "base device kernels engine ops binding/arrays binding/calls binding/kernels "
    "binding/xla Python",
}
# The one file that knows the concrete devices.
EXCEPTIONS = {"engine/engine.c": "device/cuda device/sim device/fault"}

WRITTEN_BY_THE_BUILD = {"gk_families.h", "gk_family_rows.h", "gk_images.h"}
OUTSIDE = {"Python.h": "Python", "structmember.h": "Python", "numpy": "Python", "cuda.h": "cuda.h"}
LIBC = """dlfcn.h emmintrin.h errno.h link.h math.h pthread.h sched.h search.h signal.h stdarg.h
    stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h sys/mman.h sys/syscall.h
    sys/sysinfo.h sys/types.h time.h unistd.h"""


def c_includes() -> Iterator[tuple[str, str]]:
    """Every include of csrc/: the file, by its path from there, and what it names."""
    for path in sorted(CSRC.rglob("*.[ch]")):
        for name in re.findall(r'^\s*#\s*include\s*([<"][^>"]+)[>"]', path.read_text(), re.M):
            yield path.relative_to(CSRC).as_posix(), name


def c_room_of_file(file: str) -> str:
    """Where a file of csrc/ stands: the folder that it lies in."""
    return Path(file).parent.as_posix()


def c_room_of_include(name: str) -> str | None:
    """Where the file stands that an include names, or None: it is not written as it has to be."""
    quoted, name = name[0] == '"', name[1:]
    if not quoted:
        return "libc" if name in LIBC.split() else OUTSIDE.get(name.split("/")[0])
    if (CSRC / name).is_file():
        return c_room_of_file(name)
    if name in WRITTEN_BY_THE_BUILD:
        return "kernels"
    if (CUDA / name).is_file() and name.endswith(".h"):
        return "cuda/sim" if name.startswith("sim/") else "kernels"
    return None


def c_rule_broken(file: str, name: str) -> str | None:
    """The rule that an include breaks, in words, or None."""
    here, there = c_room_of_file(file), c_room_of_include(name)
    if here not in MAY_INCLUDE:
        return f"csrc/{here} is no room; MAY_INCLUDE lists those there are"
    if there is None:
        return "is neither a path from csrc/ or cuda/ in full nor a header of libc that is known"
    allowed = {"libc", here, *MAY_INCLUDE[here].split(), *EXCEPTIONS.get(file, "").split()}
    if there not in allowed:
        return f"is of {there}, and {here} may include {', '.join(sorted(allowed))}"
    return None


def test_c_each_room_includes_only_what_is_below_it():
    broken = [
        f"csrc/{file} includes {name[1:]}, which {rule}"
        for file, name in c_includes()
        if (rule := c_rule_broken(file, name))
    ]
    assert not broken, "\n".join(broken)


def test_c_the_rules_catch_what_they_are_for():
    """One include for each wall, so that a mistake in the table shows."""
    kernels = next(path for path in sorted(CUDA.rglob("*.h")) if path.parent.name != "sim")
    assert c_rule_broken("device/registry.c", f'"{kernels.relative_to(CUDA)}') is None
    for file, name in {
        "base/array.c": '"device/backend.h',
        "base/lock.h": "<Python.h",
        "base/pack.c": f'"{kernels.relative_to(CUDA)}',
        "device/cuda/backend.c": '"device/sim/backend.h',
        "device/registry.c": "<cuda.h",
        "device/fault/backend.c": '"sim/sim.h',
        "engine/call.c": '"call.h',
        "engine/pool.c": '"device/cuda/backend.h',
        "ops/reduce.c": '"binding/state.h',
        "ops/matmul.c": "<numpy/arrayobject.h",
        "binding/reports.c": '"device/cuda/backend.h',
        "binding/arrays/operands.c": '"binding/calls/invoke.h',
        "elsewhere/file.c": '"base/array.h',
    }.items():
        assert c_rule_broken(file, name), (file, name)


def c_units() -> dict[str, set[str]]:
    """What each unit, a header and the source of its name, includes of the others."""
    units: dict[str, set[str]] = {}
    for file, name in c_includes():
        unit, other = file[:-2], name[1:-2]
        included = units.setdefault(unit, set())
        if (CSRC / name[1:]).is_file() and other != unit:
            included.add(other)
    return units


def c_circle(units: dict[str, set[str]]) -> list[str]:
    """A way from a unit back to itself, or nothing."""
    done: set[str] = set()

    def search(unit: str, way: list[str]) -> list[str]:
        if unit in way:
            return [*way[way.index(unit) :], unit]
        if unit in done:
            return []
        for other in sorted(units.get(unit, ())):
            if circle := search(other, [*way, unit]):
                return circle
        done.add(unit)
        return []

    return next((circle for unit in sorted(units) if (circle := search(unit, []))), [])


def test_c_nothing_includes_itself_by_a_detour():
    assert not c_circle(c_units()), " -> ".join(c_circle(c_units()))
    assert c_circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
