"""Builds gpukern._core: the engine in C, the CUDA kernels as embedded fatbins, the CPU simulator.

Everything else about the package stands in pyproject.toml. Environment variables:

GPUKERN_ARCHS      architectures to compile for, as "90a" or "80,90a" (default: ARCHITECTURES below)
GPUKERN_SANITIZE   1: with AddressSanitizer and UndefinedBehaviorSanitizer, for the tests
CUDA_HOME          the CUDA toolkit (13.0 or newer); else nvcc on PATH; else the wheels of it
CC, CXX, CFLAGS, CXXFLAGS, LDFLAGS    as for any C extension

Compiled files are kept under build/gpukern and used again as long as nothing that they depend on
has changed, whatever the Python or the temporary environment of the build.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NoReturn

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

def ident(family):
    return family.replace("/", "_")

ROOT = Path(__file__).resolve().parent
ARCHITECTURES = ["75", "80", "86", "89", "90", "90a", "100", "120"]
OLDEST_NVCC = (13, 0)
TOOLKIT_WHEELS = " ".join(
    f"'{name}==13.0.*'"
    for name in ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime")
)
LIMITED_API = "0x030b0000"
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion"]
COMMON_FLAGS = ["-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing"]
C_FLAGS = ["-std=c17", "-D_GNU_SOURCE=", *WARNINGS, *COMMON_FLAGS]
# No exceptions and no RTTI: then the extension needs nothing of libstdc++.
BODY_FLAGS = ["-std=c++17", "-DGK_SIM", "-fno-exceptions", "-fno-rtti", "-Wno-unknown-pragmas"]
# What a kernel writes as two roundings is two roundings, also where the CPU has a fused one.
BODY_FLAGS += ["-ffp-contract=off"]
# What a GPU would fault on; cuda/sim/checks.c turns each into an error that names the line.
BODY_CHECKS = ["-fsanitize=alignment,bounds,null,integer-divide-by-zero"]
SANITIZERS = [
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-g",
    "-O1",
]


def stop(sentence: str) -> NoReturn:
    """End the build with one sentence and no traceback."""
    raise SystemExit(f"gpukern: {sentence}")


def output_of(command: Sequence[str]) -> str:
    """What a command prints, or "" where it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout + done.stderr


# ---- the CUDA toolkit ----


@dataclass(frozen=True)
class Toolkit:
    """An nvcc that is new enough, and what it says of itself."""

    nvcc: str
    version: str
    include: str


def nvcc_places(environ: Mapping[str, str], search: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Where an nvcc may be, best first: (what led there, path)."""
    if environ.get("CUDA_HOME"):
        yield "CUDA_HOME", Path(environ["CUDA_HOME"], "bin", "nvcc")
    on_path = shutil.which("nvcc", path=environ.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    for entry in search:
        yield "wheel nvidia-cuda-nvcc", Path(entry or ".", "nvidia", "cu13", "bin", "nvcc")


def nvcc_version(nvcc: Path) -> str | None:
    """The version as "13.0.88", or None if this is no nvcc that runs."""
    found = re.search(r"release \d+\.\d+, V(\d+\.\d+\.\d+)", output_of([str(nvcc), "--version"]))
    return found.group(1) if found else None


def toolkit_include(nvcc: Path) -> str | None:
    """The folder of cuda.h and cuda_fp16.h; nvcc knows, and it differs between distributions."""
    said = output_of([str(nvcc), "--dryrun", "-x", "cu", os.devnull])
    folders = [Path(folder) for folder in re.findall(r'INCLUDES="-I([^"]+)"', said)]
    folders.append(nvcc.resolve().parent.parent / "include")
    for folder in folders:
        if (folder / "cuda.h").is_file() and (folder / "cuda_fp16.h").is_file():
            return os.path.normpath(folder)
    return None


def find_toolkit(environ: Mapping[str, str], search: Iterable[str]) -> Toolkit:
    """The first toolkit that will do, or the end of the build with what was found in its place."""
    rejected = []
    for origin, nvcc in nvcc_places(environ, search):
        if not nvcc.is_file():
            if origin == "CUDA_HOME":
                rejected.append(f"CUDA_HOME has no {nvcc}")
            continue
        version = nvcc_version(nvcc)
        include = toolkit_include(nvcc) if version else None
        if version is None:
            rejected.append(f"{nvcc} (from {origin}) does not run")
        elif tuple(map(int, version.split(".")))[:2] < OLDEST_NVCC:
            rejected.append(f"{nvcc} (from {origin}) is {version}")
        elif include is None:
            rejected.append(f"{nvcc} (from {origin}) has no cuda.h and cuda_fp16.h beside it")
        else:
            passed_over = f" (passed over: {'; '.join(rejected)})" if rejected else ""
            print(f"gpukern: nvcc {version}, {nvcc}{passed_over}", flush=True)
            return Toolkit(str(nvcc), version, include)
    found = "; ".join(rejected) if rejected else "no nvcc in CUDA_HOME, on PATH or among the wheels"
    stop(
        f"compiling the kernels takes nvcc 13.0 or newer, but {found}: install CUDA 13 and set "
        f"CUDA_HOME to it, or run: pip install {TOOLKIT_WHEELS}"
    )


def supported_architectures(nvcc: str) -> list[str]:
    """What this nvcc compiles for, as "75" or "90a", oldest first."""
    names = set(re.findall(r"'compute_(\d+[a-z]?)'", output_of([nvcc, "--help"])))
    return sorted(names, key=architecture_order)


def architecture_order(name: str) -> tuple[int, str]:
    """A sorting key: 90 < 90a < 100."""
    return int(name.rstrip("abcdefghijklmnopqrstuvwxyz")), name


def chosen_architectures(wanted: str | None, supported: Sequence[str]) -> list[str]:
    """The architectures that GPUKERN_ARCHS names (comma or space between them), or the default."""
    names = re.split(r"[,;\s]+", wanted.strip()) if wanted and wanted.strip() else ARCHITECTURES
    names = [re.sub(r"^(sm_|compute_)", "", name) for name in names if name]
    unknown = [name for name in names if name not in supported]
    if unknown:
        stop(
            f"this nvcc does not compile for architecture {', '.join(unknown)}: set GPUKERN_ARCHS "
            f"to one or more of {','.join(supported)}, or install an nvcc that does"
        )
    return sorted(set(names), key=architecture_order)


def worthwhile(architectures: Sequence[str], source: str) -> list[str]:
    """Without "90a" beside "90" where the source asks for nothing that only the former has."""
    if "__CUDA_ARCH_FEAT_SM" in source:
        return list(architectures)
    return [name for name in architectures if name.isdigit() or name[:-1] not in architectures]


def code_flags(architectures: Sequence[str]) -> list[str]:
    """nvcc's flags: machine code for each architecture, and PTX where that does not reach.

    Machine code serves its own major version only. PTX of the last architecture serves all that are
    newer, and PTX of one before a gap (10.x, then 12.x) serves the gap. "90a" is for 9.0 alone.
    """
    plain = [name for name in architectures if name.isdigit()]
    flags = []
    for name in architectures:
        code = f"sm_{name}"
        if name in plain:
            later = plain[plain.index(name) + 1 :]
            if not later or int(later[0]) // 10 > int(name) // 10 + 1:
                code = f"[{code},compute_{name}]"
        flags += ["-gencode", f"arch=compute_{name},code={code}"]
    return flags


# ---- the C and C++ compilers ----


def compiler(variable: str, default: str) -> list[str]:
    """The words of the compiler's command, from the environment or by its usual name."""
    words = shlex.split(os.environ.get(variable, "")) or [default]
    if shutil.which(words[0]) is None:
        stop(
            f"no {'C' if variable == 'CC' else 'C++'} compiler (looked for {words[0]}): install "
            "gcc and g++, for example with: apt install build-essential"
        )
    return words


@cache
def compiler_version(*words: str) -> str:
    """What a compiler says of itself."""
    return output_of([*words, "--version"])


def header_folders() -> list[str]:
    """The folders of Python.h and of NumPy's headers."""
    try:
        import numpy
    except ImportError:
        stop("compiling takes NumPy 2.0 or newer: pip install 'numpy>=2.0'")
    if int(numpy.__version__.split(".")[0]) < 2:
        stop(f"compiling takes NumPy 2.0 or newer, not {numpy.__version__}: pip install -U numpy")
    python = sysconfig.get_paths()["include"]
    if not Path(python, "Python.h").is_file():
        stop(f"no Python.h in {python}: install Python's headers, as with: apt install python3-dev")
    return [python, numpy.get_include()]


def header_versions() -> str:
    """What the folders of header_folders hold; their paths change with each isolated build."""
    import numpy

    return f"Python {sys.version} NumPy {numpy.__version__}"


# ---- steps, and what need not be done again ----


@dataclass(frozen=True)
class Step:
    """One command that makes one file.

    `folders` are include folders whose paths may change while what they hold does not; `identity`
    names what they hold and which compiler this is. `inputs` are files that the compiler does not
    report as dependencies. `idle` are flags that do not change the output.
    """

    output: Path
    tool: list[str]
    flags: list[str]
    source: str
    identity: str
    folders: list[str] = field(default_factory=list)
    inputs: list[Path] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)

    def command(self, output: Path, report: Path) -> list[str]:
        """The command line that writes `output`, and its dependencies into `report`."""
        flags = [*self.flags, *self.idle, *self.folders, "-MMD", "-MF", str(report)]
        return [*self.tool, *flags, self.source, "-o", str(output)]

    @property
    def record(self) -> Path:
        """Where it is written down what the output was made from."""
        return self.output.with_name(self.output.name + ".json")

    def made_from(self, names: Iterable[str]) -> dict[str, str]:
        """What the output depends on, as hashes: the command, and each file by its name."""
        words = "\n".join([self.identity, *self.flags, self.source])
        made = {name: content_hash(ROOT / name) for name in sorted(names)}
        return {"": hashlib.sha256(words.encode()).hexdigest()} | made

    def is_fresh(self) -> bool:
        """Whether the output is there and nothing that it was made from has changed since."""
        try:
            recorded = json.loads(self.record.read_text())
            now = self.made_from(name for name in recorded if name)
            return self.output.is_file() and bool(recorded == now)
        except (OSError, ValueError):
            return False


def content_hash(path: Path) -> str:
    """A hash of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def reported_inputs(report: str, generated: Path) -> list[str]:
    """The project's own and generated files among the dependencies that a compiler reported."""
    names = re.split(r"(?<!\\)\s+", report.replace("\\\n", " ").partition(":")[2].strip())
    own = []
    for name in names:
        path = Path(os.path.normpath(ROOT / name.replace("\\ ", " ")))
        if path.is_relative_to(ROOT):
            own.append(str(path.relative_to(ROOT)))
        elif path.is_relative_to(generated):
            own.append(str(path))
    return own


def run(command: Sequence[str]) -> None:
    """Run one compiler command in the project's root, showing it and what it says."""
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    print(shlex.join(command), done.stdout, sep="\n", end="", flush=True)
    if done.returncode != 0:
        stop(f"{Path(command[0]).name} failed; its command and its words are above")


def perform(step: Step) -> None:
    """Do a step unless its output is fresh. An output appears whole or not at all."""
    if step.is_fresh():
        return
    step.output.parent.mkdir(parents=True, exist_ok=True)
    mark = f".{os.getpid()}.{threading.get_ident()}"
    output = step.output.with_name(step.output.name + mark)
    report = step.output.with_name(step.output.name + mark + ".d")
    start = time.time()
    try:
        run(step.command(output, report))
        names = {*reported_inputs(report.read_text(), step.output.parent), *map(str, step.inputs)}
        step.record.unlink(missing_ok=True)
        output.replace(step.output)
        # A file edited meanwhile may have been read before or after: then nothing is recorded.
        if all((ROOT / name).stat().st_mtime < start for name in names):
            step.record.write_text(json.dumps(step.made_from(names), indent=1))
    finally:
        output.unlink(missing_ok=True)
        report.unlink(missing_ok=True)


def perform_all(steps: Iterable[Step], jobs: int) -> None:
    """Do the steps side by side; the first failure ends the build."""
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for done in as_completed([pool.submit(perform, step) for step in steps]):
                done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


# ---- what is built from what ----


@dataclass(frozen=True)
class Plan:
    """All that the steps are made from; paths are relative to the project's root."""

    toolkit: Toolkit
    architectures: list[str]
    cc: list[str]
    cxx: list[str]
    headers: list[str]
    version: str
    work: Path
    sanitize: bool
    jobs: int

    @property
    def families(self) -> list[str]:
        """The names of the kernel files, which name the families of kernels."""
        return sorted(str(path.relative_to(ROOT/"cuda").with_suffix("")) for path in (ROOT / "cuda").rglob("*.cu"))

    @property
    def objects(self) -> Path:
        """Where the object files of this configuration go."""
        name = "-".join(["objects", *self.architectures, *(["sanitize"] if self.sanitize else [])])
        return self.work / name

    @property
    def folders(self) -> list[str]:
        """Include folders of others, as system folders: their warnings are theirs."""
        folders = [*self.headers, self.toolkit.include]
        return [word for folder in folders for word in ("-isystem", folder)]

    def optimization(self) -> list[str]:
        """How hard to optimize, and what to check at run time."""
        return SANITIZERS if self.sanitize else ["-O2"]

    def fatbin(self, family: str) -> Path:
        """Where the compiled kernels of a family go."""
        return self.work / "-".join(["fatbins", *self.architectures]) / f"{ident(family)}.fatbin"

    def object(self, source: Path, name: str = "") -> Path:
        """Where the object of a source file goes; `name` tells apart two of the same source."""
        return self.objects / f"{'-'.join(source.with_suffix('').parts)}{name}.o"


def kernel_step(plan: Plan, family: str) -> Step:
    """Compile a family's kernels for every architecture."""
    source = f"cuda/{family}.cu"
    architectures = worthwhile(plan.architectures, Path(ROOT, source).read_text(encoding="utf-8"))
    return Step(
        output=plan.fatbin(family),
        tool=[plan.toolkit.nvcc, "-fatbin"],
        flags=[
            "-std=c++17",
            "-O3",
            "-compress-mode=size",
            "-Icuda", "-Icsrc",
            *code_flags(architectures),
        ],
        source=source,
        identity=f"nvcc {plan.toolkit.version} {os.environ.get('NVCC_APPEND_FLAGS', '')}",
        # No host code comes of it, so that a host compiler newer than nvcc knows does no harm.
        idle=["-ccbin", plan.cxx[0], "-allow-unsupported-compiler", "--threads", str(plan.jobs)],
    )


def object_step(plan: Plan, source: Path, flags: Sequence[str], name: str = "") -> Step:
    """Compile one C or C++ file."""
    is_c = source.suffix == ".c"
    tool = plan.cc if is_c else plan.cxx
    extra = shlex.split(os.environ.get("CFLAGS" if is_c else "CXXFLAGS", ""))
    own = ["-Icsrc", "-Icuda", f"-I{plan.objects}"]
    return Step(
        output=plan.object(source, name),
        tool=[*tool, "-c"],
        flags=[*flags, *plan.optimization(), *own, *extra],
        source=str(source),
        identity=f"{compiler_version(*tool)} {header_versions()} {plan.toolkit.version}",
        folders=plan.folders,
    )


def engine_steps(plan: Plan) -> list[Step]:
    """The engine in C."""
    defines = [
        f"-DPy_LIMITED_API={LIMITED_API}",
        "-DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION",
        "-DNPY_TARGET_VERSION=NPY_2_0_API_VERSION",
        f'-DGK_VERSION="{plan.version}"',
        f'-DGK_NVCC_VERSION="{plan.toolkit.version}"',
        f'-DGK_ARCHITECTURES="{" ".join(plan.architectures)}"',
    ]
    return [object_step(plan, source, [*C_FLAGS, *defines]) for source in files("csrc", "**/*.c")]


def simulator_steps(plan: Plan) -> list[Step]:
    """The simulator, and the kernels once more as its bodies: an object a family."""
    steps = [object_step(plan, source, C_FLAGS) for source in files("cuda/sim", "*.c")]
    for family in plan.families:
        defines = [f"-DGK_FAMILY={ident(family)}", f'-DGK_FAMILY_FILE="{family}.cu"']
        checks = [] if plan.sanitize else BODY_CHECKS
        flags = [*BODY_FLAGS, *COMMON_FLAGS, *checks, *defines]
        steps.append(object_step(plan, Path("cuda/sim/bodies.cpp"), flags, f"-{ident(family)}"))
    return steps


def files(folder: str, pattern: str) -> list[Path]:
    """The files of a folder, by paths relative to the project's root, in a fixed order."""
    return sorted(path.relative_to(ROOT) for path in (ROOT / folder).glob(pattern))


def embedding_step(plan: Plan) -> Step:
    """An object that holds the fatbins."""
    return Step(
        output=plan.objects / "fatbins.o",
        tool=[*plan.cc, "-c"],
        flags=[],
        source=str(plan.objects / "fatbins.S"),
        identity=compiler_version(*plan.cc),
        inputs=[plan.fatbin(family) for family in plan.families],
    )


# ---- generated files ----


def write_generated(plan: Plan) -> None:
    """Write what the list of kernel files decides."""
    texts = {
        "gk_families.h": "".join(f"GK_FAMILY({ident(family)})\n" for family in plan.families),
        "gk_family_rows.h": "".join(map(rows_of, plan.families)),
        "fatbins.S": "".join(embedded(name, plan.fatbin(name)) for name in plan.families)
        + '    .section .note.GNU-stack, "", %progbits\n',
    }
    (ROOT / plan.objects).mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (ROOT / plan.objects / name).write_text(text)


def rows_of(family: str) -> str:
    """The rows of a family, for the table in csrc/device/registry.c."""
    return f'#define GK_FAMILY_NAME "{ident(family)}"\n#include "{family}.cu"\n#undef GK_FAMILY_NAME\n'


def embedded(family: str, fatbin: Path) -> str:
    """Assembly that puts a fatbin between the symbols gk_fatbin_X and gk_fatbin_X_end."""
    start = f"gk_fatbin_{ident(family)}"
    return f"""    .section .rodata
    .balign 64
    .globl {start}, {start}_end
    .hidden {start}, {start}_end
    .type {start}, %object
{start}:
    .incbin "{fatbin}"
{start}_end:
    .byte 0
"""


# ---- the extension ----


class BuildCore(build_ext):
    """build_ext, with this project's compilers in place of distutils' one."""

    def build_extension(self, ext: Extension) -> None:
        """Compile what is not fresh and link the extension."""
        if sys.platform != "linux":
            stop("only Linux is supported (on Windows: inside WSL)")
        plan = self.plan()
        write_generated(plan)
        compiled = [*engine_steps(plan), *simulator_steps(plan)]
        perform_all([*(kernel_step(plan, name) for name in plan.families), *compiled], plan.jobs)
        embedding = embedding_step(plan)
        perform(embedding)
        link(
            plan, [step.output for step in [*compiled, embedding]], self.get_ext_fullpath(ext.name)
        )

    def plan(self) -> Plan:
        """Look round: compilers, toolkit, architectures, and where to work."""
        cc, cxx = compiler("CC", "gcc"), compiler("CXX", "g++")
        headers = header_folders()
        toolkit = find_toolkit(os.environ, sys.path)
        wanted = os.environ.get("GPUKERN_ARCHS")
        return Plan(
            toolkit=toolkit,
            architectures=chosen_architectures(wanted, supported_architectures(toolkit.nvcc)),
            cc=cc,
            cxx=cxx,
            headers=headers,
            version=self.distribution.get_version(),
            work=work_folder(Path(self.build_temp)),
            sanitize=os.environ.get("GPUKERN_SANITIZE", "0") not in ("", "0"),
            jobs=self.parallel or len(os.sched_getaffinity(0)),
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


def link(plan: Plan, objects: Sequence[Path], target: str) -> None:
    """Link the extension, with nothing of CUDA and nothing of C++."""
    path = Path(target).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    output = path.with_name(f"{path.name}.{os.getpid()}")
    flags = SANITIZERS if plan.sanitize else ["-static-libgcc", "-Wl,--exclude-libs,ALL"]
    flags = ["-shared", *flags, "-Wl,-z,relro,-z,now", *shlex.split(os.environ.get("LDFLAGS", ""))]
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
                "gpukern._core", [str(path) for path in files("csrc", "**/*.c")], py_limited_api=True
            )
        ],
        cmdclass={"build_ext": BuildCore},
        options={"bdist_wheel": {"py_limited_api": "cp311"}},
    )
