"""CUB: the reductions of the CUDA toolkit's own C++ library, compiled with nvcc when first used.

Each is a library of its own, kept in the user's cache directory (XDG_CACHE_HOME, or ~/.cache).
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any

from gpukern import _core
from gpukern.bench.contenders.kept import Prepared
from gpukern.bench.model.contender import Absent, Contender, DeviceSide
from gpukern.machine.folders import cache_folder

_SOURCE = Path(__file__).with_name("cub.cu")
# What cub.cu is compiled for: the function, and its types of elements, of sums and of the result.
_SUPPORTED = {
    ("sum", "float32"): ("sum", "float", "float", "float"),
    ("sum", "float64"): ("sum", "double", "double", "double"),
    ("sum", "float16"): ("sum", "__half", "float", "__half"),
    ("sum", "int32"): ("sum", "int32_t", "int64_t", "int64_t"),
    ("sum", "int64"): ("sum", "int64_t", "int64_t", "int64_t"),
    ("max", "float32"): ("max", "float", "float", "float"),
    ("argmax", "float32"): ("argmax", "float", "float", "int64_t"),
}
_building = {kind: Lock() for kind in _SUPPORTED}
_MACROS = ("REDUCTION", "ELEMENT", "ACCUMULATOR", "RESULT")
_RESULTS = {("sum", "int32"): "int64", ("argmax", "float32"): "int64"}
_NAMES = {"sum": "DeviceReduce::Sum", "max": "DeviceReduce::Max", "argmax": "DeviceReduce::ArgMax"}
# The one that is loaded for what is the same in all of them.
_ANY = ("sum", "float32")


def contenders(op: str, dtype: str) -> Iterator[Contender | Absent]:
    """What takes part in a comparison of ``op`` on ``dtype``."""
    if (op, dtype) not in _SUPPORTED:
        yield Absent("CUB", "", f"no {op} for {dtype} here")
        return
    if not compiled(op, dtype, _capability()).exists() and not nvcc():
        yield Absent("CUB", "", "needs nvcc of a CUDA toolkit, by CUDA_HOME or PATH, to compile it")
        return
    library(op, dtype)
    yield _contender(op, dtype)


def ahead(kinds: Iterable[tuple[str, str]], _: str | None) -> None:
    """Begin to compile what these operations and dtypes take, while other libraries are loaded."""
    if nvcc():
        for op, dtype in kinds:
            if (op, dtype) in _SUPPORTED:
                # A failure is told to whoever needs the library.
                Thread(target=build, args=(op, dtype, _capability()), daemon=True).start()


def _capability() -> int:
    return int(_core.devices()[0]["capability"])


def nvcc() -> str | None:
    """The compiler of the toolkit, if there is one."""
    home = os.environ.get("CUDA_HOME")
    folders = [f"{home}/bin"] if home else []
    folders += [os.environ.get("PATH", os.defpath), "/usr/local/cuda/bin"]
    return shutil.which("nvcc", path=os.pathsep.join(folders))


def compiled(op: str, dtype: str, capability: int) -> Path:
    """Where the library of a reduction is, or goes; its name follows the source."""
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    return cache_folder() / f"cub-{digest}-{op}-{dtype}-sm_{capability}.so"


def build(op: str, dtype: str, capability: int) -> Path:
    """The library, compiled if it is not there yet. Raises RuntimeError with nvcc's first words."""
    with _building[op, dtype]:
        target = compiled(op, dtype, capability)
        if not target.exists():
            _compile(target, (op, dtype), capability)
        return target


def _compile(target: Path, kind: tuple[str, str], capability: int) -> None:
    compiler = nvcc()
    if compiler is None:
        raise RuntimeError("there is no nvcc")
    target.parent.mkdir(parents=True, exist_ok=True)
    options = ["-std=c++17", "-O3", f"-arch=sm_{capability}", "-shared", "-Xcompiler", "-fPIC"]
    options += [f"-D{name}={value}" for name, value in zip(_MACROS, _SUPPORTED[kind], strict=True)]
    with TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / "cub.so"
        command = [compiler, *options, "-o", str(made), str(_SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"nvcc: {done.stderr.strip() or done.stdout.strip()}")
        # Into place in one step: another process may be doing the same.
        made.replace(target)


@cache
def library(op: str, dtype: str) -> ctypes.CDLL:
    """The compiled library for the device in use."""
    found = ctypes.CDLL(str(build(op, dtype, _capability())))
    found.gk_cub_error.restype = ctypes.c_char_p
    found.gk_launch_add.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t, ctypes.c_int]
    size, pointer = ctypes.POINTER(ctypes.c_size_t), ctypes.c_void_p
    found.gk_cub_reduce.argtypes = [pointer, size, pointer, pointer, ctypes.c_int64]
    return found


def version() -> str:
    """CUB's version, that of the toolkit it was compiled with."""
    number = int(library(*_ANY).gk_cub_version())
    return f"{number // 100000}.{number // 100 % 1000}.{number % 100}"


def launch_add(out: Any, a: Any, b: Any, times: int) -> None:
    """cuLaunchKernel ``times`` in a row, on float32 device arrays: what a bare launch costs."""
    pointers = [_pointer(array) for array in (out, a, b)]
    _worked(library(*_ANY), library(*_ANY).gk_launch_add(*pointers, a.shape[0], times))


def _pointer(array: Any) -> int:
    pointer: int = array.__cuda_array_interface__["data"][0]
    return pointer


def _worked(of: ctypes.CDLL, status: int) -> None:
    if status != 0:
        raise RuntimeError(f"CUB: {of.gk_cub_error(status).decode()}")


class _Reduction:
    """One function of the library on one set of arrays, and the temporary storage that it wants."""

    def __init__(self, op: str, dtype: str, a: Any, out: Any) -> None:
        self.library, count = library(op, dtype), prod(a.shape)
        size = ctypes.c_size_t(0)
        _worked(self.library, self.library.gk_cub_reduce(None, size, None, None, count))
        storage = _core.empty((max(size.value, 1),), "uint8")
        self.arrays = a, out, storage  # the arguments are no more than pointers
        self.arguments = _pointer(storage), size, _pointer(a), _pointer(out), count

    def __call__(self) -> None:
        _worked(self.library, self.library.gk_cub_reduce(*self.arguments))


def _wrap(memory: Any) -> Any:
    # The functions take pointers.
    return memory


def _contender(op: str, dtype: str) -> Contender:
    def prepare(inputs: Sequence[Any], out: Any) -> _Reduction:
        return _Reduction(op, dtype, inputs[0], out)

    def end_to_end(array: Any) -> Any:
        out = _core.empty((), _RESULTS.get((op, dtype), dtype))
        prepare([_core.to_device(array)], out)()
        return out.to_host()

    side = DeviceSide(_core.to_device, Prepared(prepare), _core.DeviceArray.to_host, _wrap)
    return Contender("CUB", _NAMES[op], end_to_end, side, transfers="gpukern")
