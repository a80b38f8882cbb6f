"""pycuda.compiler: SourceModule."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpukern.kernels.compiling import compile
from gpukern.pycuda import headers
from gpukern.pycuda.functions import Function
from gpukern.pycuda.memory import DeviceAllocation

DEFAULT_NVCC_FLAGS: list[str] = []

# Of nvcc's options those that mean nothing to NVRTC, and those that are followed by what they take.
_OF_NVCC = ("-O0", "-O1", "-O2", "-O3", "-m64", "-g", "-cubin", "-ptx", "--cubin", "--ptx")
_OF_NVCC_WITH = ("-ccbin", "--compiler-bindir", "-Xcompiler", "--compiler-options", "-code", "-x")
_SPELLED = {"-Xptxas": "--ptxas-options", "-lineinfo": "-lineinfo", "--std": "-std", "-I": "-I"}


def _translated(options: Sequence[str]) -> list[str]:
    """nvcc's options as NVRTC takes them."""
    found: list[str] = []
    waiting = iter(options)
    for option in waiting:
        if option in _OF_NVCC or option.startswith(tuple(f"{each}=" for each in _OF_NVCC_WITH)):
            continue
        if option in _OF_NVCC_WITH:
            next(waiting, None)
        elif option in ("-Xptxas", "--ptxas-options", "-arch", "-maxrregcount", "-std", "-I", "-D"):
            joint = "" if option in ("-I", "-D") else "="
            found.append(f"{_SPELLED.get(option, option)}{joint}{next(waiting, '')}")
        elif option.startswith("-Xptxas="):
            found.append(option.replace("-Xptxas", "--ptxas-options", 1))
        else:
            found.append(option)
    return found


class SourceModule:
    """The kernels of a source in CUDA C++, compiled for this thread's device.

    ``source`` is a text or anything with ``str()``; ``options`` are nvcc's or NVRTC's;
    ``include_dirs`` are folders of headers. ``keep`` leaves the source in a folder and prints
    which. A kernel is found by its name whether or not the source says extern "C", so
    ``no_extern_c`` changes nothing; ``nvcc``, ``code`` and ``cache_dir`` are taken and not needed.

    Raises driver.CompileError with the source's lines, TypeError for options that are no list.
    """

    def __init__(
        self,
        source: Any,
        nvcc: str = "nvcc",
        options: Sequence[str] | None = None,
        keep: bool = False,
        no_extern_c: bool = False,
        arch: str | None = None,
        code: str | None = None,
        cache_dir: Any = None,
        include_dirs: Sequence[str] = (),
    ) -> None:
        text = str(source)
        chosen = options_of(options)
        if arch is not None:
            chosen.append(f"-arch={arch}")
        chosen += [f"-I{folder}" for folder in include_dirs]
        name = "kernel.cu"
        if keep:
            path = Path(tempfile.mkdtemp(prefix="gpukern-pycuda-")) / name
            path.write_text(text)
            print(f"*** source kept in {path}")
        self._module = compile(text, [*chosen, headers.OPTION], name=name)

    def get_function(self, name: str) -> Function:
        """A kernel by its name, ``"scale<float>"`` of a template; else ValueError."""
        return Function(self._module[self._by_symbol(name)])

    def _by_symbol(self, name: str) -> str:
        """A name as the source has it, for one as the compiler makes it of that."""
        if not name.startswith("_Z"):
            return name
        found = (each for each in self._module.kernels if self._module[each].symbol == name)
        return next(found, name)

    def get_global(self, name: str) -> tuple[DeviceAllocation, int]:
        """A __device__ or __constant__ variable: its memory, and how many bytes it has."""
        image = self._module.image
        if image is None:
            raise ValueError(f"get_global: the source has no kernel, and so no code with {name}")
        _, size = image.symbol(name)
        return DeviceAllocation(image.array(name, "uint8", size)), size

    def get_texref(self, name: str) -> Any:
        """Left out."""
        raise NotImplementedError(
            "SourceModule.get_texref: texture references are no longer part of CUDA, since 12.0; "
            "give the kernel the array and read it with __ldg(&array[i])"
        )

    get_surfref = get_texref


def options_of(options: Sequence[str] | None) -> list[str]:
    """The options of a call, as NVRTC takes them."""
    if isinstance(options, str):
        raise TypeError(f"SourceModule: options has to be a list of texts; one is [{options!r}]")
    return _translated(DEFAULT_NVCC_FLAGS if options is None else options)


def __getattr__(name: str) -> Any:
    if name in ("DynamicModule", "DynamicSourceModule"):
        raise AttributeError(
            f"pycuda.compiler.{name} is left out: a kernel that launches kernels is linked with "
            "libraries that NVRTC does not bring; SourceModule compiles the other sources"
        )
    if name == "compile":
        raise AttributeError("pycuda.compiler.compile is left out: gpukern.compile gives kernels")
    raise AttributeError(f"module 'pycuda.compiler' has no attribute {name!r}")
