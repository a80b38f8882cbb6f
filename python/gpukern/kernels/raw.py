"""Compiled kernels by CuPy's names: ``RawKernel`` and ``RawModule``."""

import os
from collections.abc import Sequence
from typing import Any

from gpukern import _core
from gpukern.kernels.compiling import compile
from gpukern.kernels.module import Kernel, Module
from gpukern.text.calls import blamed_on, called_as, checked_flag, checked_text, checked_texts

_BACKENDS = ("nvrtc", "nvcc")


def _check(backend: str, **flags: bool) -> None:
    """What is taken for CuPy's sake."""
    if not isinstance(backend, str) or backend not in _BACKENDS:
        raise ValueError(f"backend has to be 'nvrtc' or 'nvcc', not {backend!r}")
    for name, value in flags.items():
        if checked_flag(name, value):
            raise ValueError(f"{name} is not supported, and has to be left out")


class RawKernel:
    """A kernel of a source, compiled when it is first used, and called as CuPy's of that name::

        add = gpukern.RawKernel(source, "add")
        add((blocks,), (threads,), (x, y, result, n))

    ``name`` is that of the kernel, ``"add<float>"`` for one of a template; ``options`` are those of
    ``gpukern.compile``. Whichever ``backend`` is named, NVRTC compiles. A kernel that is not
    ``extern "C"`` is found all the same. Arguments are checked and taken as by every kernel that
    gpukern compiles.

    Raises CompileError and ValueError at the first use, and what a kernel's call raises.
    """

    @called_as("RawKernel")
    def __init__(
        self,
        code: Any,
        name: str,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        *,
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        jitify: bool = False,
    ) -> None:
        with blamed_on("RawKernel"):
            _check(
                backend,
                translate_cucomplex=translate_cucomplex,
                enable_cooperative_groups=enable_cooperative_groups,
                jitify=jitify,
            )
            self.code, self.backend = code, backend
            self.name = checked_text("name", name)
            self.options = checked_texts("options", options)
        self._kernel: Kernel | None = None

    @property
    def kernel(self) -> Kernel:
        """The kernel, compiled."""
        if self._kernel is None:
            self._kernel = compile(self.code, self.options)[self.name]
        return self._kernel

    def compile(self, log_stream: Any = None) -> None:
        """Compile now. ``log_stream`` has ``write``, for what the compiler warns of."""
        module = compile(self.code, self.options)
        self._kernel = module[self.name]
        if log_stream is not None:
            log_stream.write(module.log)

    def __call__(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        args: Sequence[Any],
        *,
        shared_mem: int = 0,
        stream: Any = None,
    ) -> None:
        """Launch it: ``args`` is a tuple, ``shared_mem`` bytes of dynamic shared memory."""
        if not isinstance(args, tuple | list):
            raise TypeError(
                f"{self.name}: args has to be a tuple of arguments, as in kernel((1,), (32,), "
                f"(x, n)), not {type(args)}"
            )
        self.kernel(grid, block, *args, shared=shared_mem, stream=stream)

    @property
    def num_regs(self) -> int:
        """Registers of a thread."""
        return self.kernel.registers

    @property
    def max_threads_per_block(self) -> int:
        """The threads that a block may have."""
        return self.kernel.most_threads

    @property
    def shared_size_bytes(self) -> int:
        """Bytes of shared memory that a block has before any dynamic one."""
        return self.kernel.shared

    @property
    def local_size_bytes(self) -> int:
        """Bytes of memory of a thread's own."""
        return self.kernel.local

    @property
    def const_size_bytes(self) -> int:
        """Bytes of constant memory that the source has."""
        return self.kernel.facts()["constant"]

    @property
    def attributes(self) -> dict[str, int]:
        """The five above."""
        names = ("num_regs", "max_threads_per_block", "shared_size_bytes", "local_size_bytes")
        return {name: getattr(self, name) for name in (*names, "const_size_bytes")}

    def __repr__(self) -> str:
        return f"<RawKernel {self.name}>"


class RawModule:
    """A source, or a file of a cubin or PTX, and its kernels, as CuPy's of that name::

        module = gpukern.RawModule(code=source, name_expressions=["scale<float>"])
        module.get_function("scale<float>")((1,), (32,), (x, 2.0))

    Either ``code`` or ``path``; a source may come from ``path`` as well. Kernels of templates in
    ``name_expressions`` share the module's variables with all others.
    """

    @called_as("RawModule")
    def __init__(
        self,
        *,
        code: Any = None,
        path: str | os.PathLike[str] | None = None,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Sequence[str] | None = None,
        jitify: bool = False,
    ) -> None:
        with blamed_on("RawModule"):
            _check(
                backend,
                translate_cucomplex=translate_cucomplex,
                enable_cooperative_groups=enable_cooperative_groups,
                jitify=jitify,
            )
            if path is not None and not isinstance(path, str | os.PathLike):
                raise TypeError(f"path has to be the path of a file, not {path!r}")
            self.options = checked_texts("options", options)
            given = () if name_expressions is None else name_expressions
            self.name_expressions = checked_texts("name_expressions", given)
            if (code is None) == (path is None):
                raise TypeError("takes either code=, a source, or path=, a file")
        self.code, self.file_path, self.backend = code, path, backend
        self._module: Module | None = None
        self._functions: dict[str, RawKernel] = {}

    @property
    def module(self) -> Module:
        """The module, compiled."""
        if self._module is None:
            self.compile()
        assert self._module is not None
        return self._module

    def compile(self, log_stream: Any = None) -> None:
        """Compile now. ``log_stream`` has ``write``, for what the compiler warns of."""
        self._module = compile(
            self.code, self.options, path=self.file_path, names=self.name_expressions
        )
        if log_stream is not None:
            log_stream.write(self._module.log)

    def get_function(self, name: str) -> RawKernel:
        """The kernel of that name; raises ValueError where there is none."""
        found = self._functions.get(name)
        if found is None:
            found = RawKernel(self.code, name, self.options, self.backend)
            found._kernel = self.module[name]
            self._functions[name] = found
        return found

    def get_global(self, name: str) -> _core.DeviceArray:
        """The memory of a variable, as an array of the dtype and the shape that it is declared
        with."""
        return self.module.symbol(name)

    def __repr__(self) -> str:
        return f"<RawModule {self.file_path or 'of a source'}>"
