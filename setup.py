"""Builds gpukern._core: the engine in C, the CUDA kernels, the CPU simulator of the same kernels.

Everything else about the package stands in pyproject.toml, and most of how it is done in
build_tools. Environment variables:

GPUKERN_ARCHS      architectures to compile for, as "90a" or "80,90a", or "all", as wheels are
                   (default: those of the GPUs in this machine; where there is none, PTX of 7.5)
GPUKERN_SANITIZE   for the tests: 1 or address, with AddressSanitizer and
                   UndefinedBehaviorSanitizer; kernels, in the simulated kernels as well; thread,
                   with ThreadSanitizer
CUDA_HOME          the CUDA toolkit (13.0 or newer); else nvcc on PATH; else the wheels of it
CC, CXX, CFLAGS, CXXFLAGS, LDFLAGS    as for any C extension

Compiled files are kept under build/gpukern and used again as long as nothing that they depend on
has changed, whatever the Python or the temporary environment of the build.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from build_tools import kept
from build_tools.kernels import (
    Kernels,
    assembly,
    families_header,
    kernel_files,
    rows_header,
    simulator_defines,
)
from build_tools.progress import Progress
from build_tools.sanitizers import PLAIN, Sanitizer, chosen_sanitizer
from build_tools.steps import ROOT, Step, perform_all, run, stop
from build_tools.targets import chosen_targets, installed_gpus, supported_architectures
from build_tools.toolkit import compiler, compiler_version, find_toolkit, header_folders
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

LIMITED_API = "0x030b0000"
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion"]
COMMON_FLAGS = ["-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing"]
C_FLAGS = ["-std=c17", "-D_GNU_SOURCE=", *WARNINGS, *COMMON_FLAGS]
# No exceptions and no RTTI: then the extension needs nothing of libstdc++.
BODY_FLAGS = ["-std=c++17", "-DGK_SIM", "-fno-exceptions", "-fno-rtti", "-Wno-unknown-pragmas"]
# What a kernel writes as two roundings is two roundings, also where the CPU has a fused one.
BODY_FLAGS += ["-ffp-contract=off"]


# It alone depends on the architectures.
IMAGES = Path("csrc/device/cuda/images.c")

# ---- what is built from what ----


@dataclass(frozen=True)
class Plan:
    """All that the steps are made from; paths are relative to the project's root."""

    kernels: Kernels
    cc: list[str]
    cxx: list[str]
    headers: list[str]
    version: str
    work: Path
    sanitizer: Sanitizer
    jobs: int

    @property
    def objects(self) -> Path:
        """Where object files go."""
        return self.work / f"objects{self.sanitizer.suffix}"

    @property
    def bodies(self) -> Path:
        """Where the simulator's bodies go: those of builds that compile them alike are the same."""
        is_plain = self.sanitizer.bodies == PLAIN.bodies
        return self.work / "objects" if is_plain else self.objects

    @property
    def images(self) -> Path:
        """Where the objects go that hold and describe the kernels of these architectures."""
        return self.objects / self.kernels.targets.label

    @property
    def folders(self) -> list[str]:
        """Include folders of others, as system folders: their warnings are theirs."""
        folders = [*self.headers, self.kernels.toolkit.include]
        return [word for folder in folders for word in ("-isystem", folder)]

    def object(self, source: Path) -> Path:
        """Where the object of a source file goes."""
        return self.objects / f"{'-'.join(source.with_suffix('').parts)}.o"


def header_versions() -> str:
    """What the folders of header_folders hold; their paths change with each isolated build."""
    import numpy

    return f"Python {sys.version} NumPy {numpy.__version__}"


def object_step(plan: Plan, source: Path, flags: Sequence[str], output: Path) -> Step:
    """Compile one C or C++ file."""
    is_c = source.suffix == ".c"
    tool = plan.cc if is_c else plan.cxx
    extra = shlex.split(os.environ.get("CFLAGS" if is_c else "CXXFLAGS", ""))
    own = ["-Icsrc", "-Icuda"]
    return Step(
        output=output,
        tool=[*tool, "-c"],
        flags=[*flags, *own, *extra],
        source=str(source),
        identity=" ".join(
            [compiler_version(*tool), header_versions(), plan.kernels.toolkit.version]
        ),
        folders=plan.folders,
    )


def engine_steps(plan: Plan) -> Iterator[Step]:
    """The engine in C."""
    defines = [
        f"-DPy_LIMITED_API={LIMITED_API}",
        "-DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION",
        "-DNPY_TARGET_VERSION=NPY_2_0_API_VERSION",
        f'-DGK_VERSION="{plan.version}"',
        f'-DGK_NVCC_VERSION="{plan.kernels.toolkit.version}"',
    ]
    flags = [*C_FLAGS, *plan.sanitizer.c, *defines, f"-I{plan.objects}"]
    for source in files("csrc", "**/*.c"):
        if source == IMAGES:
            about = [*plan.kernels.images_defines(), f"-I{plan.images}"]
            yield object_step(plan, source, [*flags, *about], plan.images / "images.o")
        else:
            yield object_step(plan, source, flags, plan.object(source))


def simulator_steps(plan: Plan) -> Iterator[Step]:
    """The simulator."""
    for source in files("cuda/sim", "*.c"):
        flags = [*C_FLAGS, *plan.sanitizer.flags(source)]
        yield object_step(plan, source, flags, plan.object(source))


def body_steps(plan: Plan) -> Iterator[Step]:
    """The kernels once more as the simulator's bodies: an object a file."""
    source = Path("cuda/sim/bodies.cpp")
    for file in kernel_files():
        flags = [*BODY_FLAGS, *COMMON_FLAGS, *plan.sanitizer.bodies, *simulator_defines(file)]
        output = plan.bodies / f"bodies-{file.identifier}.o"
        yield replace(
            object_step(plan, source, flags, output), title=f"{file.path} for the simulator"
        )


def files(folder: str, pattern: str) -> list[Path]:
    """The files of a folder, by paths relative to the project's root, in a fixed order."""
    return sorted(path.relative_to(ROOT) for path in (ROOT / folder).glob(pattern))


def embedding_step(plan: Plan) -> Step:
    """An object that holds the compiled kernels."""
    return Step(
        output=plan.images / "embedded.o",
        tool=[*plan.cc, "-c"],
        flags=[],
        source=str(plan.images / "embedded.S"),
        identity=compiler_version(*plan.cc),
        inputs=list(plan.kernels.embedded().values()),
    )


def write_generated(plan: Plan) -> None:
    """Write what the list of kernel files decides."""
    texts = {
        plan.objects / "gk_families.h": families_header(),
        plan.objects / "gk_family_rows.h": rows_header(),
        plan.images / "gk_images.h": plan.kernels.images_header(),
        plan.images / "embedded.S": assembly(plan.kernels.embedded()),
    }
    for path, text in texts.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        if not (ROOT / path).is_file() or (ROOT / path).read_text() != text:
            (ROOT / path).write_text(text)


# ---- the extension ----


class BuildCore(build_ext):
    """build_ext, with this project's compilers in place of distutils' one."""

    def build_extension(self, ext: Extension) -> None:
        """Compile what is not fresh and link the extension."""
        if sys.platform != "linux":
            stop("only Linux is supported (on Windows: inside WSL)")
        target = Path(self.get_ext_fullpath(ext.name)).resolve()
        place_simulator_headers(target.parent)
        state = kept.state()
        if kept.take(state, target):
            print("gpukern: nothing has changed since the extension was linked", flush=True)
            return
        plan = self.plan()
        write_generated(plan)
        bodies, engine = list(body_steps(plan)), [*engine_steps(plan), *simulator_steps(plan)]
        chains = [*plan.kernels.chains(), *([step] for step in [*bodies, *engine])]
        packing = list(plan.kernels.packing())
        embedding = embedding_step(plan)
        with Progress([*chains, *packing, [embedding]]) as progress:
            perform_all(chains, plan.jobs, progress.finished)
            perform_all(packing, plan.jobs, progress.finished)
            perform_all([[embedding]], 1, progress.finished)
            objects = [step.output for step in [*engine, *bodies, embedding]]
            link(plan, objects, target)
        kept.keep(state, target)

    def copy_extensions_to_source(self) -> None:
        """Of a package that is used where its source lies, which needs what goes with it there."""
        super().copy_extensions_to_source()
        place_simulator_headers(ROOT / "python" / "gpukern")

    def plan(self) -> Plan:
        """Look round: compilers, toolkit, architectures, and where to work."""
        cc, cxx = compiler("CC", "gcc"), compiler("CXX", "g++")
        headers = header_folders()
        toolkit = find_toolkit(os.environ, sys.path)
        targets, line = chosen_targets(
            os.environ.get("GPUKERN_ARCHS"), supported_architectures(toolkit.nvcc), installed_gpus
        )
        print(f"gpukern: {line}", flush=True)
        work = work_folder(Path(self.build_temp))
        return Plan(
            kernels=Kernels(toolkit, targets, work, cxx[0]),
            cc=cc,
            cxx=cxx,
            headers=headers,
            version=self.distribution.get_version(),
            work=work,
            sanitizer=chosen_sanitizer(os.environ.get("GPUKERN_SANITIZE", "")),
            jobs=self.parallel or len(os.sched_getaffinity(0)),
        )


def place_simulator_headers(package: Path) -> None:
    """Put the simulator's headers into the package: users' kernels are compiled with them."""
    folder = package / "kernels" / "sim"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        ROOT / "cuda" / "sim", folder, ignore=shutil.ignore_patterns("*.c", "*.cpp", "*.md")
    )


def work_folder(temporary: Path) -> Path:
    """Where compiled files are kept: in the source tree, or else in a temporary folder."""
    kept = ROOT / "build" / "gpukern"
    try:
        kept.mkdir(parents=True, exist_ok=True)
        (kept / ".gitignore").write_text("*\n")
    except OSError:
        return temporary.resolve() / "gpukern"
    return kept.relative_to(ROOT)


def compact() -> list[str]:
    """What makes the extension smaller: the simulator's checks hold thousands of pointers, each of
    which is a relocation of 24 bytes, or of two bits where glibc is 2.36 or newer."""
    version = re.fullmatch(r"glibc (\d+)\.(\d+).*", os.confstr("CS_GNU_LIBC_VERSION") or "")
    is_new = version and tuple(map(int, version.groups())) >= (2, 36)
    return ["-Wl,--strip-all", *(["-Wl,-z,pack-relative-relocs"] if is_new else [])]


def link(plan: Plan, objects: Sequence[Path], path: Path) -> None:
    """Link the extension, with nothing of CUDA and nothing of C++."""
    path.parent.mkdir(parents=True, exist_ok=True)
    output = path.with_name(f"{path.name}.{os.getpid()}")
    small = ["-static-libgcc", "-Wl,--exclude-libs,ALL", *compact()]
    flags = [
        "-shared",
        *(plan.sanitizer.link or small),
        "-Wl,-z,relro,-z,now",
        *shlex.split(os.environ.get("LDFLAGS", "")),
    ]
    libraries = ["-ldl", "-lpthread", "-lm"]
    try:
        run([*plan.cc, *flags, *map(str, objects), *libraries, "-o", str(output)])
        output.replace(path)
    finally:
        output.unlink(missing_ok=True)


if __name__ == "__main__":
    setup(
        license="MIT",
        ext_modules=[
            Extension(
                "gpukern._core",
                [str(path) for path in files("csrc", "**/*.c")],
                py_limited_api=True,
            )
        ],
        cmdclass={"build_ext": BuildCore},
        options={"bdist_wheel": {"py_limited_api": "cp311"}},
    )
