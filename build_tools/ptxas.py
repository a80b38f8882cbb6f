"""What ptxas says of the machine code that it makes, and what of that ends the build.

A kernel that spills keeps registers in the GPU's DRAM, and wgmma instructions that are serialized
wait for one another: both are right, and slow, and no result shows it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from build_tools.steps import Step, run, stop
from build_tools.targets import dotted, texts

# A product keeps its sums in registers; a reduction of small elements may spill a few. Tiles are of
# the size that these GPUs have registers for: on others ptxas may need more.
_MUST_NOT_SPILL, _SIZED_FOR = "cuda/matmul/", ("90", "90a")
_SERIALIZED = ("C7508", "C7510", "C7511", "C7514", "C7515")

_KERNEL = re.compile(r"(?:Compiling entry function '|Function properties for )([\w$]+)")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_WARNING = re.compile(r"\((C\d+)\)\s*(.*)")
_NAMED = re.compile(r"function '([\w$]+)'")


@dataclass(frozen=True)
class Fault:
    """What makes a kernel slow, in ptxas's words."""

    kernel: str
    words: str
    is_spill: bool


def faults(output: str) -> Iterator[Fault]:
    """The faults that `ptxas -v` tells of, kernel by kernel."""
    kernel = "a kernel"
    for line in output.splitlines():
        if found := _KERNEL.search(line):
            kernel = found[1]
        if (found := _SPILLS.search(line)) and (int(found[1]) or int(found[2])):
            yield Fault(kernel, found[0], is_spill=True)
        if (found := _WARNING.search(line)) and found[1] in _SERIALIZED:
            named = _NAMED.search(line)
            yield Fault(named[1] if named else kernel, f"({found[1]}) {found[2]}", is_spill=False)


def may_spill(source: Path, folder: Path) -> tuple[str, ...]:
    """The kernels that a file, or a header of `folder` in it, lets spill: GK_MAY_SPILL(name)."""
    found = texts(source, folder, {}).values()
    names = (name for text in found for name in re.findall(r"\bGK_MAY_SPILL\((gk_\w+)\)", text))
    return tuple(sorted(names))


def check(output: str, source: str, architecture: str, allowed: Collection[str]) -> None:
    """Stop at the first kernel of `source` that is slow in a way that no result shows."""
    for fault in faults(output):
        where = f"{fault.kernel} of {source}, compiled for {dotted(architecture)}"
        if not fault.is_spill:
            stop(
                f"{where}, waits for each of its wgmma instructions: ptxas says {fault.words}; "
                "let nothing but wgmma touch the sums between the first one and wgmma.wait_group"
            )
        must_not = source.startswith(_MUST_NOT_SPILL) and architecture in _SIZED_FOR
        if must_not and fault.kernel not in allowed:
            stop(
                f"{where}, keeps registers in memory: ptxas says {fault.words}; make its tile or "
                f"its loops smaller, or write GK_MAY_SPILL({fault.kernel}) where that does no harm"
            )


@dataclass(frozen=True)
class MachineStep(Step):
    """Have ptxas make machine code of `source`, which is the PTX of the file `origin`.

    The kernels `allowed` may spill.
    """

    origin: str = ""
    allowed: tuple[str, ...] = ()

    def make(self, output: Path) -> list[str]:
        """Write `output`, if what ptxas says of it is right."""
        words = ["-Xptxas", "-v", self.source, "-o", str(output)]
        command = [*self.tool, *self.flags, *self.idle, *words]
        print(shlex.join(command), flush=True)
        check(run(command, quiet=True), self.origin, self.target, self.allowed)
        return [self.source]
