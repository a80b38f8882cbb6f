"""The kernel files: what each is compiled to, and how the extension finds it.

A .cu file becomes PTX for each architecture; ptxas makes machine code of it, which is packed into
one fatbin a file, and PTX that is to be kept is cut and packed by the kernel (ptx.py). Assembly
puts both into the extension, and csrc/device/cuda/images.c reads what is where from gk_images.h.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from build_tools.ptx import ALIGNMENT, PackStep, PtxStep
from build_tools.ptxas import MachineStep, may_spill
from build_tools.steps import ROOT, Step, run, stop
from build_tools.targets import Targets, architecture_order, dotted, in_order, requests
from build_tools.toolkit import Toolkit

PACK_FLAGS = ["-64", "--compress-mode=size"]
# Old drivers read no zstd; those that take machine code of this compiler do.
PTX_PACK_FLAGS = ["-64", "--compress-mode=speed"]


@dataclass(frozen=True)
class KernelFile:
    """A .cu file, by its path below cuda/."""

    path: str

    @property
    def identifier(self) -> str:
        """What names it in C: "matmul/01_naive.cu" is matmul_01_naive."""
        return self.path.removesuffix(".cu").replace("/", "_")


def kernel_files() -> list[KernelFile]:
    """All below cuda/, in the order of their paths; the simulator's folder has none."""
    folder = ROOT / "cuda"
    paths = sorted(path.relative_to(folder) for path in folder.rglob("*.cu"))
    files = [KernelFile(path.as_posix()) for path in paths if path.parts[0] != "sim"]
    names: dict[str, str] = {}
    for file in files:
        other = names.setdefault(file.identifier, file.path)
        if other != file.path:
            stop(f"cuda/{file.path} and cuda/{other} are both {file.identifier} in C: rename one")
        if not file.identifier.isidentifier():
            stop(f"cuda/{file.path} makes no name in C: use letters, digits and _, letters first")
    return files


class FatbinStep(Step):
    """Pack the machine code of a file, for all architectures; `tool` is fatbinary."""

    def make(self, output: Path) -> list[str]:
        """Write `output`; its inputs are known."""
        run([*self.tool, *self.flags, f"--create={output}"])
        return []


@dataclass(frozen=True)
class Kernels:
    """The steps of all kernel files, and what they leave under `work`."""

    toolkit: Toolkit
    targets: Targets
    work: Path
    host_compiler: str

    def targets_of(self, file: KernelFile) -> Targets:
        """What this file is compiled for."""
        return self.targets.for_source(requests(ROOT / "cuda" / file.path, ROOT / "cuda"))

    def made(self, file: KernelFile, architecture: str, ending: str) -> Path:
        """Where a file of one architecture goes."""
        return self.work / "kernels" / architecture / f"{file.identifier}.{ending}"

    def fatbin(self, file: KernelFile) -> Path:
        """Where the machine code for all architectures goes."""
        return self.work / "kernels" / self.targets.label / f"{file.identifier}.fatbin"

    @property
    def identity(self) -> str:
        """Which compiler this is."""
        return f"nvcc {self.toolkit.version} {os.environ.get('NVCC_APPEND_FLAGS', '')}"

    def chains(self) -> Iterator[list[Step]]:
        """What can be done side by side."""
        for file in kernel_files():
            targets = self.targets_of(file)
            for architecture in in_order([*targets.machine, *targets.ptx]):
                yield self.chain(file, architecture, targets)

    def chain(self, file: KernelFile, architecture: str, targets: Targets) -> list[Step]:
        """A file's PTX of one architecture, and what becomes of it."""
        # No host code comes of it, so that a host compiler newer than nvcc knows does no harm.
        idle = ["-ccbin", self.host_compiler, "-allow-unsupported-compiler"]
        ptx = self.made(file, architecture, "ptx")
        title = f"{file.path} for {dotted(architecture)}"
        allowed = may_spill(ROOT / "cuda" / file.path, ROOT / "cuda")
        steps: list[Step] = [
            PtxStep(
                output=ptx,
                tool=[self.toolkit.nvcc, "-ptx"],
                flags=["-std=c++17", "-O3", "-Icuda", "-Icsrc", f"-arch=compute_{architecture}"],
                source=f"cuda/{file.path}",
                identity=self.identity,
                idle=idle,
                target=architecture,
                title=title,
            )
        ]
        if architecture in targets.ptx:
            steps.append(
                PackStep(
                    output=self.made(file, architecture, "kernels"),
                    tool=[self.toolkit.fatbinary],
                    flags=PTX_PACK_FLAGS,
                    source=str(ptx),
                    identity=self.identity,
                    target=architecture,
                    title=f"{title}, packed",
                )
            )
        if architecture in targets.machine:
            steps.append(
                MachineStep(
                    output=self.made(file, architecture, "cubin"),
                    tool=[self.toolkit.nvcc, "-cubin"],
                    flags=["-O3", f"-arch=sm_{architecture}"],
                    source=str(ptx),
                    identity=" ".join([self.identity, *allowed]),
                    idle=idle,
                    target=architecture,
                    title=f"{title}, machine code",
                    origin=f"cuda/{file.path}",
                    allowed=allowed,
                )
            )
        return steps

    def packing(self) -> Iterator[list[Step]]:
        """The steps after all chains."""
        for file in kernel_files():
            names = self.targets_of(file).machine
            cubins = {name: self.made(file, name, "cubin") for name in names}
            images = [f"--image3=kind=elf,sm={n},file={path}" for n, path in cubins.items()]
            if cubins:
                yield [
                    FatbinStep(
                        output=self.fatbin(file),
                        tool=[self.toolkit.fatbinary],
                        flags=[*PACK_FLAGS, *images],
                        source=f"cuda/{file.path}",
                        identity=self.identity,
                        inputs=list(cubins.values()),
                        target="all",
                    )
                ]

    def embedded(self) -> dict[str, Path]:
        """The files that the extension holds, by their symbols in C."""
        found = {}
        for file in kernel_files():
            targets = self.targets_of(file)
            if targets.machine:
                found[f"gk_machine_{file.identifier}"] = self.fatbin(file)
            for name in targets.ptx:
                found[f"gk_ptx_{name}_{file.identifier}"] = self.made(file, name, "kernels")
        return found

    def images_header(self) -> str:
        """Which file has what, for csrc/device/cuda/images.c."""
        lines = []
        for file in kernel_files():
            targets = self.targets_of(file)
            for name in targets.machine:
                number, exact = architecture_order(name)[0], int(name.endswith("a"))
                lines.append(f"GK_MACHINE_CODE({file.identifier}, {number}, {exact})\n")
            lines += [f"GK_PTX({file.identifier}, {name})\n" for name in targets.ptx]
        return "".join(lines)

    def images_defines(self) -> list[str]:
        """What csrc/device/cuda/images.c tells of the build."""
        of_files = [self.targets_of(file) for file in kernel_files()]
        every = in_order(name for each in of_files for name in (*each.machine, *each.ptx))
        return [
            f'-DGK_ARCHITECTURES="{" ".join(every)}"',
            f'-DGK_MACHINE_CODE_FOR="{" ".join(self.targets.machine)}"',
            f'-DGK_PTX_OF="{" ".join(self.targets.ptx)}"',
        ]


def families_header() -> str:
    """Every kernel file's identifier."""
    return "".join(f"GK_FAMILY({file.identifier})\n" for file in kernel_files())


def rows_header() -> str:
    """The rows of every kernel file, for the table in csrc/device/registry.c."""
    lines = []
    for file in kernel_files():
        lines.append(f'#define GK_FAMILY_NAME "{file.identifier}"\n')
        lines.append(f'#include "{file.path}"\n#undef GK_FAMILY_NAME\n')
    return "".join(lines)


def assembly(files: dict[str, Path]) -> str:
    """Assembly that puts each file behind its symbol."""
    texts = [
        f"""    .section .rodata
    .balign {max(ALIGNMENT, 64)}
    .globl {symbol}
    .hidden {symbol}
    .type {symbol}, %object
{symbol}:
    .incbin "{path}"
    .byte 0
"""
        for symbol, path in files.items()
    ]
    return "".join(texts) + '    .section .note.GNU-stack, "", %progbits\n'


def simulator_defines(file: KernelFile) -> Sequence[str]:
    """What makes cuda/sim/bodies.cpp the bodies of this file."""
    return [f"-DGK_FAMILY={file.identifier}", f'-DGK_FAMILY_FILE="{file.path}"']
