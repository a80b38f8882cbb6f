"""Compiled kernels by CuPy's names: ``RawKernel`` and ``RawModule``."""

import os
from collections.abc import Sequence
from typing import Any

from gpukern import _core
from gpukern.kernels.compiling import compile
from gpukern.kernels.module import Kernel, Module

_BACKENDS = ("nvrtc", "nvcc")


def _check(
    who: str, backend: str, translate_cucomplex: bool, cooperative: bool, jitify: bool
) -> None:
    if backend not in _BACKENDS:
        raise ValueError(f"{who}: backend is 'nvrtc' or 'nvcc', not {backend!r}")
    for name, value in (
        ("translate_cucomplex", translate_cucomplex),
        ("enable_cooperative_groups", cooperative),
        ("jitify", jitify),
    ):
        if value:
            raise ValueError(f"{who}: {name} is not supported; leave it out")


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
        who = "RawKernel"
        _check(who, backend, translate_cucomplex, enable_cooperative_groups, jitify)
        if not isinstance(name, str):
            raise TypeError(f"{who}: name has to be the name of a kernel, not {name!r}")
        self.code, self.name, self.options, self.backend = code, name, tuple(options), backend
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
        who = "RawModule"
        _check(who, backend, translate_cucomplex, enable_cooperative_groups, jitify)
        if (code is None) == (path is None):
            raise TypeError(f"{who}: takes either code=, a source, or path=, a file")
        self.code, self.file_path, self.options = code, path, tuple(options)
        self.backend, self.name_expressions = backend, tuple(name_expressions or ())
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
