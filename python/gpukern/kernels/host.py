"""The host's C++ compiler, which compiles users' kernels for the simulator."""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gpukern import _core
from gpukern.kernels import assembly, cache, headers, signature
from gpukern.machine.libraries import find_headers

_USUAL = ("g++", "c++")
_HEADERS = Path(__file__).parent / "sim"

# What a function may have of its own: see STACK_LEFT in cuda/sim/block.c.
MOST_LOCAL_BYTES = 16384

_FLAGS = [
    *("-std=c++17", "-O1", "-g1", "-gno-column-info", "-fPIC", "-fvisibility=hidden"),
    *("-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti", "-ffp-contract=off"),
    *("-fno-optimize-sibling-calls", "-fno-builtin-printf", "-fno-extern-tls-init"),
    # Else copies of a few bytes are made where nobody sees them.
    *("-fno-builtin-memcpy", "-fno-builtin-memmove", "-fno-builtin-memset"),
    *("-fsanitize=thread,alignment,bounds,null,integer-divide-by-zero,return", "-fno-gnu-unique"),
    *("-fsanitize-coverage=trace-pc", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret"),
    f"-Werror=frame-larger-than={MOST_LOCAL_BYTES}",
    *("-Wno-unknown-pragmas", "-Wno-attributes", "-Wno-unused-value"),
]
_LINK = ["-shared", "-nostartfiles", "-Wl,-z,now", "-Wl,-s", "-Wl,--no-undefined"]

# Options of NVRTC that decide how machine code is made, which is not made here.
_OF_MACHINE_CODE = re.compile(
    r"-+(?:arch|gpu-architecture|code|maxrregcount|use_fast_math|ftz|prec-div|prec-sqrt|fmad"
    r"|lineinfo|generate-line-info|device-debug|G|O\d?|dopt|ptxas-options|Xptxas|restrict|rdc"
    r"|relocatable-device-code|device-c|dc|extra-device-vectorization|default-device"
    r"|device-as-default-execution-space|minimal|split-compile|diag-\w+|time|std|pch\w*)(?:=.*)?$"
)
_TAKES_ANOTHER = re.compile(r"-+(?:arch|gpu-architecture|maxrregcount|Xptxas|ptxas-options|std)$")
_KEPT = re.compile(r"-(?:[DUI]|isystem|iquote|w$)|-include=?")


@dataclass(frozen=True)
class HostCompiler:
    """A compiler, what it is given beside, and what tells both from every other one."""

    command: tuple[str, ...]
    flags: tuple[str, ...]
    identity: str


@dataclass(frozen=True)
class Made:
    """What came of a source; ``image`` is empty where it does not compile."""

    image: bytes
    log: str
    signatures: dict[int, str]


@lru_cache(maxsize=1)
def _headers_key() -> str:
    """Of what is given to the compiler, and of what is done with what it makes."""
    files = sorted(_HEADERS.rglob("*.h"))
    files += [Path(__file__), Path(assembly.__file__)]
    return cache.key([text for path in files for text in (path.name, path.read_bytes())])


@lru_cache(maxsize=4)
def find_host_compiler(named: str | None) -> HostCompiler | None:
    """GCC's, by the environment's CXX (``named``) or its usual name; None where there is none."""
    commands = [shlex.split(named)] if named else [[name] for name in _USUAL]
    for command in commands:
        path = shutil.which(command[0])
        if path is None:
            continue
        said = subprocess.run(
            [path, *command[1:], "--version"], capture_output=True, text=True, check=False
        )
        if said.returncode == 0 and "clang" not in said.stdout:
            about = Path(_core.__file__).stat()
            runtime = f"{_core.__file__} {about.st_size} {about.st_mtime_ns}"
            identity = "\n".join([*command, said.stdout, runtime, _headers_key()])
            return HostCompiler((path, *command[1:]), _flags_of(said.stdout), identity)
    return None


def _flags_of(version: str) -> tuple[str, ...]:
    """Volatile accesses are calls of their own, where the compiler can make them so."""
    major = re.search(r" (\d+)\.\d+\.\d+", version)
    return ("--param=tsan-distinguish-volatile=1",) if major and int(major[1]) >= 11 else ()


def no_host_compiler(named: str | None) -> str:
    """What to do about it."""
    looked = named or ", ".join(_USUAL)
    return (
        f"on the simulator the machine's own C++ compiler, GCC's g++, compiles kernels, and it was "
        f"not found (looked for {looked}): apt install g++ brings it, or CXX names it"
    )


def translated(options: Sequence[str]) -> Iterator[str]:
    """NVRTC's options as the host's compiler has them; raises ValueError for what it has not."""
    waiting = iter(options)
    for option in waiting:
        if option.startswith(("--include-path", "-include-path")):
            yield f"-I{option.partition('=')[2] or next(waiting, '')}"
        elif option.startswith(("--define-macro", "--undefine-macro")):
            letter = "D" if "define-macro" in option and "undef" not in option else "U"
            yield f"-{letter}{option.partition('=')[2] or next(waiting, '')}"
        elif option.startswith(("--pre-include", "-include", "-pre-include")):
            yield from ("-include", option.partition("=")[2] or next(waiting, ""))
        elif _KEPT.match(option):
            yield option
            if option in ("-D", "-U", "-I", "-isystem", "-iquote"):
                yield next(waiting, "")
        elif _OF_MACHINE_CODE.match(option):
            if _TAKES_ANOTHER.match(option):
                next(waiting, "")
        else:
            raise ValueError(f"unrecognized option {option}")


def _run(command: Sequence[str]) -> tuple[bool, str]:
    """Ctrl-C ends the compiler too."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env=os.environ | {"LC_ALL": "C"},
    )
    return done.returncode == 0, done.stdout + done.stderr


def _undefined(said: str) -> str:
    """Of all that a linker says, what it did not find."""
    names = dict.fromkeys(re.findall(r"undefined reference to [`']([^`']+)'", said))
    return f"{', '.join(names)} is declared and nowhere defined" if names else said


def compile_for_simulator(
    compiler: HostCompiler,
    name: str,
    text: str,
    options: Sequence[str],
    folders: Sequence[Path],
    kernels: Sequence[str],
    variables: Sequence[str],
) -> Made:
    """Compile a source to a module with its kernels and variables."""
    with tempfile.TemporaryDirectory(prefix="gpukern-") as work:
        folder = Path(work)
        for header, body in headers.IN_MEMORY.items():
            (folder / header).write_text(body)
        shown = name.replace("\\", "\\\\").replace('"', '\\"')
        source, made, module = folder / "gk.cpp", folder / "gk.s", folder / "gk.so"
        source.write_text(f'#line 1 "{shown}"\n{text}\n{signature.host_table(kernels, variables)}')
        beside = [word for path in folders for word in ("-isystem", str(path))]
        given = ["-include", str(folder / headers.PRELUDE), "-include", str(_HEADERS / "user.h")]
        ours = [f"-I{folder}", f"-I{_HEADERS / 'include'}", f"-I{_HEADERS}", *given]
        good, log = _run(
            [
                *compiler.command,
                "-S",
                *_FLAGS,
                *compiler.flags,
                *ours,
                *options,
                *beside,
                str(source),
                "-o",
                str(made),
            ]
        )
        if not good:
            return Made(b"", log, {})
        code = made.read_text()
        others = (work, str(_HEADERS), "/usr/", *map(str, find_headers(None)))
        made.write_text(assembly.for_the_simulator(code, others))
        linked, said = _run(
            [*compiler.command, *_LINK, str(made), str(_core.__file__), "-lm", "-o", str(module)]
        )
        if not linked:
            return Made(b"", _undefined(said), {})
        return Made(module.read_bytes(), log, assembly.signatures(code))
