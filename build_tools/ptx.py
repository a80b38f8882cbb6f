"""PTX, a kernel at a time.

A driver compiles PTX as a whole when a module is loaded: 20 ms an elementwise kernel and 150 ms a
reduction add up to ten seconds a file. So a file's PTX is cut into a module for each kernel, and
loading one costs that one alone.
"""

from __future__ import annotations

import re
import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from build_tools.steps import ROOT, Step, run, stop
from build_tools.targets import architecture_order

_COMMENT_OR_TEXT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_HEADER = re.compile(r"\s*(\.(?:version|target|address_size)\b[^\n]*)\n")
_NAME = re.compile(r"[A-Za-z_$%][\w$]*")
_VERSION = re.compile(r"^(\.version\s+)(\d+)\.(\d+)", re.MULTILINE)
_HINT = re.compile(r'^\s*\.pragma "used_bytes_mask [^"]*";\n', re.MULTILINE)
# What a driver reads of CUDA 12.0, r525, and the newest GPUs that it says all of.
OLD_VERSION, OLD_VERSION_SUFFICES = (8, 0), 90
ALIGNMENT = 16


@dataclass(frozen=True)
class Statement:
    """A statement of a module: a variable, a function or a kernel, or something without a name."""

    text: str
    name: str | None
    is_kernel: bool


def split(text: str) -> dict[str, str]:
    """A module for each kernel of a module, by the kernel's name."""
    text = _COMMENT_OR_TEXT.sub(lambda m: m[0] if m[0].startswith('"') else " ", text)
    header, position = "", 0
    while match := _HEADER.match(text, position):
        header += match[1] + "\n"
        position = match.end()
    statements = list(_statements(re.sub(r"[ \t]*\n\s*", "\n", text[position:])))
    owners: dict[str, list[int]] = {}
    for index, statement in enumerate(statements):
        if statement.name:
            owners.setdefault(statement.name, []).append(index)
    mentions = [set(_NAME.findall(statement.text)) & owners.keys() for statement in statements]
    return {
        statement.name: header + _with_what_it_needs(index, statements, owners, mentions)
        for index, statement in enumerate(statements)
        if statement.is_kernel and statement.name
    }


def _statements(text: str) -> Iterator[Statement]:
    """The statements at the outermost level: up to a semicolon, or a function's closing brace."""
    start, depth = 0, 0
    for match in re.finditer(r'"(?:\\.|[^"\\])*"|[{};]', text):
        mark = match[0]
        depth += {"{": 1, "}": -1}.get(mark, 0)
        if depth < 0:
            break
        if depth > 0 or mark[0] not in ";}":
            continue
        piece = text[start : match.end()].strip()
        if mark == "}" and not _is_function(piece):
            continue  # of an initializer; a semicolon follows
        start = match.end()
        yield Statement(piece + "\n", _defined(piece), _is_function(piece) == ".entry")
    if depth != 0 or text[start:].strip():
        stop("nvcc wrote PTX that does not end where it should: compile that file again with -v")


def _is_function(piece: str) -> str:
    """Which kind of function the statement is, if any."""
    found = re.match(r"(?:\.(?:visible|weak|extern|common)\s+)*(\.entry|\.func)\b", piece)
    return found[1] if found else ""


def _defined(piece: str) -> str | None:
    """The name that a statement defines or declares."""
    if _is_function(piece):
        found = re.search(r"\.(?:entry|func)\s*(?:\([^)]*\)\s*)?([A-Za-z_$%][\w$]*)", piece)
    else:
        found = re.match(
            r"(?:\.(?:visible|weak|extern|common)\s+)*\.(?:global|const|shared)\b[^=;\[{]*?"
            r"([A-Za-z_$%][\w$]*)\s*(?=[\[=;])",
            piece,
        )
    return found[1] if found else None


def _with_what_it_needs(
    kernel: int,
    statements: list[Statement],
    owners: Mapping[str, list[int]],
    mentions: list[set[str]],
) -> str:
    """The kernel, and in their order all statements that it names, they name, and so on."""
    needed = {kernel} | {i for i, statement in enumerate(statements) if statement.name is None}
    left = list(needed)
    while left:
        for name in mentions[left.pop()]:
            new = set(owners[name]) - needed
            needed |= new
            left += new
    return "".join(statements[index].text for index in sorted(needed))


def for_old_drivers(text: str, architecture: str) -> str:
    """The PTX with the version of a language that drivers since r525 read.

    nvcc writes its own version, whether or not there is anything new in the text, and a driver
    refuses a version that it does not know. What may be new is a hint for tools: which bytes of a
    vector are used.
    """
    if architecture_order(architecture)[0] > OLD_VERSION_SUFFICES:
        return text
    major, minor = OLD_VERSION
    return _VERSION.sub(rf"\g<1>{major}.{minor}", _HINT.sub("", text), count=1)


def without_local_memory(modules: Mapping[str, str], source: str) -> None:
    """Stop at a kernel that spills: as slow as the arrays themselves, and no result shows it."""
    for name, text in modules.items():
        if re.search(r"^\s*\.local\b", text, re.MULTILINE):
            stop(
                f"{name} of {source} keeps a variable in local memory, which is the GPU's DRAM: "
                "index arrays by constants and in unrolled loops alone, and take the address of no "
                "parameter"
            )


class PtxStep(Step):
    """Have nvcc compile `source` to PTX that old drivers read."""

    def make(self, output: Path) -> Iterable[str]:
        """Write `output`; what does need a newer version stops ptxas, or a driver."""
        made_from = super().make(output)
        path = ROOT / output
        text = path.read_text(encoding="utf-8")
        path.write_text(for_old_drivers(text, self.target), encoding="utf-8")
        return made_from


# ---- packing ----


class PackStep(Step):
    """Cut the PTX of `source` into kernels and pack each; `tool` is fatbinary."""

    def make(self, output: Path) -> list[str]:
        """Compress every kernel, as an image that the driver unpacks."""
        modules = split((ROOT / self.source).read_text(encoding="utf-8"))
        without_local_memory(modules, self.source)
        images = {}
        with tempfile.TemporaryDirectory() as folder:
            module, image = Path(folder, "kernel.ptx"), Path(folder, "kernel.fatbin")
            for name, text in modules.items():
                module.write_text(text, encoding="utf-8")
                # Hundreds of commands that say nothing are not shown.
                spec = f"--image3=kind=ptx,sm={self.target},file={module}"
                run([*self.tool, *self.flags, f"--create={image}", spec], quiet=True)
                images[name] = image.read_bytes()
        print(f"packed {len(images)} kernels of {self.source}", flush=True)
        (ROOT / output).write_bytes(indexed(images))
        return [self.source]


def indexed(images: Mapping[str, bytes]) -> bytes:
    """Images with an index in front, as csrc/device/cuda/images.c reads it.

    Little words of 32 bits: how many there are, then for each, sorted by name, where its name and
    its image stand. Names end in a zero byte; images are aligned.
    """
    names = sorted(images)
    at = 4 + 8 * len(names)
    text, places = b"", []
    for name in names:
        places.append(at + len(text))
        text += name.encode() + b"\0"
    body = b""
    index = struct.pack("=I", len(names))
    start = at + len(text)
    start += -start % ALIGNMENT
    for name, place in zip(names, places, strict=True):
        index += struct.pack("=II", place, start + len(body))
        body += images[name] + b"\0" * (-len(images[name]) % ALIGNMENT)
    head = index + text
    return head + b"\0" * (start - len(head)) + body
