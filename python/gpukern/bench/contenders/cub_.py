"""CUB: the reductions of the CUDA toolkit's own C++ library, compiled with nvcc when first used.

The compiled library is kept in the user's cache directory (XDG_CACHE_HOME, or ~/.cache).
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from gpukern import _core
from gpukern.bench.contenders.kept import Prepared
from gpukern.bench.model.contender import Absent, Contender, DeviceSide
from gpukern.machine.folders import cache_folder

_SOURCE = Path(__file__).with_name("cub.cu")
_SUPPORTED = {
    "sum": ("float32", "float64", "float16", "int32", "int64"),
    "max": ("float32",),
    "argmax": ("float32",),
}
_RESULTS = {("sum", "int32"): "int64", ("argmax", "float32"): "int64"}
_building = Lock()
_NAMES = {"sum": "DeviceReduce::Sum", "max": "DeviceReduce::Max", "argmax": "DeviceReduce::ArgMax"}


def contenders(op: str, dtype: str) -> Iterator[Contender | Absent]:
    """What takes part in a comparison of ``op`` on ``dtype``."""
    if dtype not in _SUPPORTED.get(op, ()):
        yield Absent("CUB", "", f"no {op} for {dtype} here")
        return
    capability = int(_core.devices()[0]["capability"])
    if not compiled(capability).exists() and not nvcc():
        yield Absent("CUB", "", "needs nvcc of a CUDA toolkit, by CUDA_HOME or PATH, to compile it")
        return
    yield _contender(op, dtype)


def nvcc() -> str | None:
    """The compiler of the toolkit, if there is one."""
    home = os.environ.get("CUDA_HOME")
    folders = [f"{home}/bin"] if home else []
    folders += [os.environ.get("PATH", os.defpath), "/usr/local/cuda/bin"]
    return shutil.which("nvcc", path=os.pathsep.join(folders))


def compiled(capability: int) -> Path:
    """Where the library for that compute capability is, or goes; its name follows the source."""
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    return cache_folder() / f"cub-{digest}-sm_{capability}.so"


def build(capability: int) -> Path:
    """The library, compiled if it is not there yet. Raises RuntimeError with nvcc's first words."""
    with _building:
        target = compiled(capability)
        if not target.exists():
            _compile(target, capability)
        return target


def _compile(target: Path, capability: int) -> None:
    compiler = nvcc()
    if compiler is None:
        raise RuntimeError("there is no nvcc")
    target.parent.mkdir(parents=True, exist_ok=True)
    options = ["-std=c++17", "-O3", f"-arch=sm_{capability}", "-shared", "-Xcompiler", "-fPIC"]
    with TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / "cub.so"
        command = [compiler, *options, "-o", str(made), str(_SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"nvcc: {done.stderr.strip() or done.stdout.strip()}")
        # Into place in one step: another process may be doing the same.
        made.replace(target)


@cache
def library() -> ctypes.CDLL:
    """The compiled library for the device in use."""
    found = ctypes.CDLL(str(build(int(_core.devices()[0]["capability"]))))
    found.gk_cub_error.restype = ctypes.c_char_p
    found.gk_launch_add.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t, ctypes.c_int]
    return found


def version() -> str:
    """CUB's version, that of the toolkit it was compiled with."""
    number = int(library().gk_cub_version())
    return f"{number // 100000}.{number // 100 % 1000}.{number % 100}"


def launch_add(out: Any, a: Any, b: Any, times: int) -> None:
    """cuLaunchKernel ``times`` in a row, on float32 device arrays: what a bare launch costs."""
    pointers = [_pointer(array) for array in (out, a, b)]
    _worked(library().gk_launch_add(*pointers, a.shape[0], times))


def _pointer(array: Any) -> int:
    pointer: int = array.__cuda_array_interface__["data"][0]
    return pointer


def _worked(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"CUB: {library().gk_cub_error(status).decode()}")


@cache
def _function(op: str, dtype: str) -> Any:
    function = library()[f"gk_cub_{op}_{dtype}"]
    size, pointer = ctypes.POINTER(ctypes.c_size_t), ctypes.c_void_p
    function.argtypes = [pointer, size, pointer, pointer, ctypes.c_int64]
    return function


class _Reduction:
    """One function of the library on one set of arrays, and the temporary storage that it wants."""

    def __init__(self, op: str, dtype: str, a: Any, out: Any) -> None:
        self.function, count = _function(op, dtype), prod(a.shape)
        size = ctypes.c_size_t(0)
        _worked(self.function(None, size, None, None, count))
        storage = _core.empty((max(size.value, 1),), "uint8")
        self.arrays = a, out, storage  # the arguments are no more than pointers
        self.arguments = _pointer(storage), size, _pointer(a), _pointer(out), count

    def __call__(self) -> None:
        _worked(self.function(*self.arguments))


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
