"""``gpukern.compile``: from a source, or from what another compiler made of one, to a module."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpukern import _core
from gpukern.kernels import cache, headers, signature
from gpukern.kernels.diagnostics import explain, spills_in, warnings_in
from gpukern.kernels.host import (
    HostCompiler,
    compile_for_simulator,
    find_host_compiler,
    no_host_compiler,
    translated,
)
from gpukern.kernels.module import Found, Module, Variables
from gpukern.kernels.simulating import Recipe
from gpukern.kernels.source import Written, includes, kernels, may_use, variables
from gpukern.machine.libraries import find_headers, find_nvrtc, nvrtc_cure
from gpukern.text.calls import blamed_on, called_as, checked_texts

_ELF, _FATBIN = b"\x7fELF", b"\x50\xed\x55\xba"
_ARCHITECTURES = ("-arch", "--gpu-architecture")
# Options that name files: what is in those is not looked at.
_READ_FILES = re.compile(r"-+(?:pre-include|include(?!-path)|optf|options-file|(?:use-)?pch)\b")
# Headers that know nothing of a user's variables, beside those in memory.
_OF_NVIDIA = re.compile(r"(?:cuda|cub|cooperative_groups|curand|mma|nv|thrust)[\w/.]*$")
_FOLDERS = ("-I", "--include-path=", "-include-path=")


@dataclass(frozen=True)
class _Nvrtc:
    """The compiler, and what tells it from every other one."""

    path: str
    identity: str
    driver: int


@dataclass(frozen=True)
class _Source:
    text: str
    name: str
    options: tuple[str, ...]
    folders: tuple[Path, ...]
    compiler: _Nvrtc | HostCompiler


@dataclass(frozen=True)
class _Built:
    image: _core.Image
    kernels: dict[str, tuple[str, tuple[int, ...]]]
    variables: dict[str, tuple[str, tuple[int, ...]]]
    spills: dict[str, int]
    log: str


@called_as("compile")
def compile(
    source: Any = None,
    /,
    options: Sequence[str] = (),
    name: str | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    names: Sequence[str] = (),
) -> Module:
    """Compile kernels in CUDA C++, or load what was compiled for the GPU::

        module = gpukern.compile('''
        __global__ void saxpy(float a, const float *x, float *y, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] += a * x[i];
        }''')
        module.saxpy.over(n)(2.0, x, y, n)

    ``source`` is a text, or anything with ``str()``; ``path`` in its place names a file: a source,
    PTX, a cubin or a fatbin. ``options`` are the compiler's, such as ``-DN=16``, ``-I folder`` or
    ``-use_fast_math``; none is added but for the GPU's architecture. ``name`` is what messages call
    the source. ``module.saxpy`` is a kernel, ``module["scale<float>"]`` one of a template, and
    ``module.symbol("table")`` the memory of a variable. Kernels of templates are compiled when they
    are used, into code of their own with variables of their own, but for those in ``names``.

    What was compiled is kept on disk and used by later programs, as long as source, options,
    compiler, GPU and the contents of every header are the same. The compiler is NVIDIA's NVRTC,
    which ``pip install "gpukern[jit]"`` brings; on the simulator it is the machine's g++, and each
    access of the kernels is watched: what is wrong is a CudaError with kernel, thread and line.

    Raises CompileError (a CudaError) where the source does not compile, with its lines; CudaError
    where there is no compiler; TypeError for what is no source and no options, OSError for
    a file that cannot be read.
    """
    with blamed_on("compile"):
        chosen = checked_texts("options", options)
        wanted = checked_texts("names", names)
    if name is not None and not isinstance(name, str):
        raise TypeError(f"compile: name has to be a text, not {name!r}")
    if path is not None and not isinstance(path, str | os.PathLike):
        raise TypeError(f"compile: path has to be the path of a file, not {path!r}")
    if (source is None) == (path is None):
        raise TypeError("compile: takes either a source or path=, a file")
    if path is not None:
        file = Path(path)
        given: Any = file.read_bytes()
        called = name or str(file)
        folders: tuple[Path, ...] = (file.resolve().parent,)
    else:
        given, called, folders = source, name or "source.cu", ()
    data = bytes(given) if isinstance(given, bytes | bytearray | memoryview) else None
    if data is not None and _is_compiled(data):
        return _loaded(data, called)
    text = str(source) if data is None else data.decode(errors="replace")
    if "\0" in text:
        raise ValueError(f"compile: {called} has a character of code 0, and a source has none")
    return _compiled(text, called, chosen, folders, wanted)


# what is compiled already -------------------------------------------------------------------------


def _is_compiled(data: bytes) -> bool:
    if data.startswith((_ELF, _FATBIN)):
        return True
    words = [line for line in data[:4096].decode(errors="replace").splitlines() if line.strip()]
    code = [line for line in words if not line.lstrip().startswith("//")]
    return bool(code) and code[0].startswith(".version")


def _loaded(data: bytes, name: str) -> Module:
    if _core.backend() != "cuda":
        raise _core.CudaError(
            f"compile: {name} is compiled for a GPU, and this process is on the simulator, which "
            "compiles sources"
        )
    image = _core.Image(data)

    def find(kernel: str) -> Found:
        try:
            sizes = image.parameters(kernel)
        except ValueError:
            raise ValueError(
                f'compile: {name} has no kernel {kernel!r}; one that is not extern "C" is known '
                "by its symbol, such as _Z3addPKfPfi, as cuobjdump -elf shows it"
            ) from None
        return Found(image, kernel, signature.of_sizes(sizes), None)

    return Module(name, "", {}, find, Variables(image, None, lambda *names: False))


# what has to be compiled --------------------------------------------------------------------------


def _compiler() -> _Nvrtc | HostCompiler:
    return _find_compiler() if _core.backend() == "cuda" else _find_host_compiler()


def _find_host_compiler() -> HostCompiler:
    named = os.environ.get("CXX")
    found = find_host_compiler(named)
    if found is None:
        raise _core.CudaError(f"compile: {no_host_compiler(named)}")
    return found


@lru_cache(maxsize=1)
def _find_compiler() -> _Nvrtc:
    driver = _core.driver_report()["version"]
    found = find_nvrtc(driver)
    if found is None:
        raise _core.CudaError(
            f"compile: NVRTC, which compiles kernels, was not found; {nvrtc_cure(driver)} brings it"
        )
    about = Path(found).stat()
    return _Nvrtc(found, f"{found} {about.st_size} {about.st_mtime_ns}", driver)


@lru_cache(maxsize=1)
def _ours() -> str:
    """What gpukern itself gives every source."""
    return cache.key([signature.TABLE, *headers.IN_MEMORY, *headers.IN_MEMORY.values()])


def _folders_of(options: tuple[str, ...]) -> list[Path]:
    """The folders that options name for headers."""
    folders = []
    for at, option in enumerate(options):
        for form in _FOLDERS:
            if not option.startswith(form):
                continue
            named = option.removeprefix(form).strip().lstrip("=")
            if not named and at + 1 < len(options):
                named = options[at + 1]
            folders.append(Path(named))
    return folders


def _full_options(source: _Source, capability: int) -> tuple[str, ...]:
    options = list(source.options)
    if not any(option.startswith(_ARCHITECTURES) for option in options):
        options.append(f"-arch=sm_{capability}")
    options += [f"-I{folder}" for folder in source.folders]
    return (*options, f"--pre-include={headers.PRELUDE}", "--ptxas-options=-v")


def _key(
    source: _Source, options: tuple[str, ...], names: tuple[str, ...], held: tuple[str, ...]
) -> str | None:
    """None where nobody knows which files are read."""
    searched = (*_folders_of(source.options), *source.folders)
    if any(_READ_FILES.match(option) for option in source.options):
        return None
    around = Path(source.name).parent
    try:
        read = [text for pair in headers.contents(source.text, around, searched) for text in pair]
    except (LookupError, OSError):
        return None
    texts = (source.compiler.identity, _ours(), source.name, source.text)
    counts = (str(len(options)), str(len(names)), str(len(held)))
    return cache.key([*texts, *counts, *options, *names, *held, *read])


def _build(source: _Source, names: tuple[str, ...], variables_in: tuple[str, ...] = ()) -> _Built:
    """The source with these kernels and variables; raises CompileError."""
    return _built(*_entry(source, names, variables_in))


def _entry(
    source: _Source, names: tuple[str, ...], variables_in: tuple[str, ...]
) -> tuple[dict[str, Any], bytes]:
    """What is kept of them, and the machine code."""
    is_for_gpu = isinstance(source.compiler, _Nvrtc)
    options = _full_options(source, _core.capability()) if is_for_gpu else _host_options(source)
    name = _key(source, options, names, variables_in)
    if name and (kept := cache.load(name)):
        return kept
    made = _build_for_gpu if is_for_gpu else _build_for_simulator
    entry, image = made(source, options, names, variables_in)
    if name:
        cache.store(name, entry, image)
    return entry, image


def _build_for_gpu(
    source: _Source,
    options: tuple[str, ...],
    names: tuple[str, ...],
    variables_in: tuple[str, ...],
) -> tuple[dict[str, Any], bytes]:
    assert isinstance(source.compiler, _Nvrtc)
    expressions = [(kernel, signature.expression(kernel)) for kernel in names]
    expressions += [(f"&{one}", signature.variable_expression(one)) for one in variables_in]
    held = tuple(text for pair in headers.IN_MEMORY.items() for text in pair)
    compiled, image, log, symbols = _core.compile_source(
        source.compiler.path,
        source.name,
        source.text + signature.TABLE,
        options,
        held,
        tuple(text for pair in expressions for text in pair),
    )
    if not compiled:
        raise explain(source.name, source.text, log)
    told = [
        [symbol, signature.numbers_in(table)]
        for symbol, table in zip(symbols[::2], symbols[1::2], strict=True)
    ]
    entry = {
        "kernels": dict(zip(names, told, strict=False)),
        "variables": dict(zip(variables_in, told[len(names) :], strict=True)),
        "spills": spills_in(log),
        "log": warnings_in(log),
    }
    return entry, image


def _host_options(source: _Source) -> tuple[str, ...]:
    try:
        return tuple(translated(source.options))
    except ValueError as error:
        raise explain(source.name, source.text, str(error)) from None


def _build_for_simulator(
    source: _Source,
    options: tuple[str, ...],
    names: tuple[str, ...],
    variables_in: tuple[str, ...],
) -> tuple[dict[str, Any], bytes]:
    assert isinstance(source.compiler, HostCompiler)
    made = compile_for_simulator(
        source.compiler,
        source.name,
        source.text,
        options,
        source.folders,
        names,
        variables_in,
    )
    if not made.image:
        raise explain(source.name, source.text, made.log)
    told = [
        [name, signature.numbers_in(made.signatures[at])]
        for at, name in enumerate((*names, *variables_in))
    ]
    entry = {
        "kernels": dict(zip(names, told, strict=False)),
        "variables": dict(zip(variables_in, told[len(names) :], strict=True)),
        "spills": {},
        "log": made.log.strip(),
    }
    return entry, made.image


def _built(entry: dict[str, Any], image: bytes) -> _Built:
    kernels_in, variables_in = (
        {name: (symbol, tuple(numbers)) for name, (symbol, numbers) in entry[kind].items()}
        for kind in ("kernels", "variables")
    )
    return _Built(_core.Image(image), kernels_in, variables_in, entry["spills"], entry["log"])


def _found(
    built: _Built, name: str, written: tuple[str, ...], on_simulator: Callable[[], _Source]
) -> Found:
    symbol, numbers = built.kernels[name]
    parameters = signature.parameters(numbers, written)

    def recipe() -> Recipe:
        source = on_simulator()
        entry, code = _entry(source, (name,), tuple(built.variables))
        return Recipe(code, entry["kernels"][name][0], source.name, source.text, built.variables)

    return Found(built.image, symbol, parameters, built.spills.get(symbol), recipe)


def _shown(source: _Source, shown: tuple[str, ...], wanted: tuple[str, ...]) -> _Built:
    """The source with what is wanted, and with all that it shows.

    What was read of it may be no kernel or variable to the compiler, as what #if leaves out: then
    the source compiles without, and each kernel is asked for when it is used.
    """
    held = tuple(variables(source.text))
    ways = [(shown, held), (shown, ()), ((), held), ((), ())] if held else [(shown, ()), ((), ())]
    for kernels_in, variables_in in ways[:-1]:
        try:
            return _build(source, (*kernels_in, *wanted), variables_in)
        except _core.CudaError:
            continue
    return _build(source, wanted)


def _compiled(
    text: str,
    name: str,
    options: tuple[str, ...],
    beside: tuple[Path, ...],
    wanted: tuple[str, ...],
) -> Module:
    def source_for(compiler: _Nvrtc | HostCompiler) -> _Source:
        folders = beside
        if headers.needs_folders(text):
            driver = compiler.driver if isinstance(compiler, _Nvrtc) else None
            folders += tuple(find_headers(driver))
        return _Source(text, name, options, folders, compiler)

    def on_simulator() -> _Source:
        return source_for(_find_host_compiler())

    source = source_for(_compiler())
    written = {kernel.name: kernel for kernel in kernels(text)}
    named = tuple(kernel.name for kernel in written.values() if not kernel.is_template)
    extra = tuple(dict.fromkeys(kernel for kernel in wanted if kernel not in named))
    built = _shown(source, named, extra)
    known = {}
    for kernel in built.kernels:
        shown = written.get(kernel.partition("<")[0].strip())
        known[kernel] = _found(built, kernel, shown.parameters if shown else (), on_simulator)
    held = Variables(built.image, built.variables, lambda *names: _may_use(source, *names))

    def find(kernel: str) -> Found:
        return _sought(source, written, kernel, on_simulator)

    return Module(name, built.log, known, find, held)


def _may_use(source: _Source, kernel: str, variable: str) -> bool:
    """Whether a kernel may use a variable: so it may where files of the user's, which are not
    looked at, or an option that names it have a part in the source."""
    named = includes(source.text)
    if named is None or any(not _is_known(header) for header, _ in named):
        return True
    bare = variable.rpartition("::")[2]
    if any(bare in option or _READ_FILES.match(option) for option in source.options):
        return True
    return may_use(source.text, kernel, variable)


def _is_known(header: str) -> bool:
    """Whether a header is none of the user's."""
    return header in headers.IN_MEMORY or _OF_NVIDIA.match(header) is not None


def _sought(
    source: _Source,
    written: dict[str, Written],
    kernel: str,
    on_simulator: Callable[[], _Source],
) -> Found:
    """A kernel that was not compiled with the source: of a template, or made by a macro."""
    shown = written.get(kernel.partition("<")[0].strip())
    if shown and shown.is_template and "<" not in kernel:
        raise ValueError(
            f"compile: {kernel} is a template; name its arguments, as in module['{kernel}<float>']"
        )
    try:
        built = _build(source, (kernel,))
    except _core.CudaError as error:
        here = ", ".join(written) or "none that can be read from the source"
        text = f"compile: {source.name} has no kernel {kernel!r}; it has {here}"
        raise ValueError(
            text if not shown else f"compile: {kernel!r} is no kernel: {error}"
        ) from error
    return _found(built, kernel, shown.parameters if shown else (), on_simulator)
