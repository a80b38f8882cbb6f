"""PyCUDA's modules on gpukern: scripts that were written for PyCUDA run as they are.

``gpukern.pycuda.install()`` makes ``import pycuda`` and ``import pycuda.driver`` find what is here;
``python -m gpukern.pycuda script.py arguments`` does so and runs a script. What differs from PyCUDA
is in docs/pycuda.md.

PyCUDA's modules by name are made of the others: ``memory`` is device memory by its address,
``streams`` and ``contexts`` are what their names say, ``arguments`` what a kernel is given,
``launching`` and ``functions`` its calls. ``expressions`` makes kernels of a line of C, ``headers``
says where their includes are, ``declarations`` knows C's types. ``layout`` and ``array`` are the
arrays, ``elements`` and ``reducing`` what is done with all elements.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

# The release whose names and arguments are followed.
VERSION = (2025, 1, 0)
VERSION_STATUS = ""
VERSION_TEXT = ".".join(map(str, VERSION))

MODULES = (
    "autoinit",
    "autoprimaryctx",
    "characterize",
    "compiler",
    "cumath",
    "curandom",
    "driver",
    "elementwise",
    "gpuarray",
    "reduction",
    "scan",
    "tools",
)
_LEFT_OUT = {
    "gl": "there is no graphics here; copy arrays to the host with .get() and draw those",
    "sparse": "sparse matrices are left out; SciPy and CuPy have them",
    "compyte": "what of it scripts use is in pycuda.tools",
    "debug": "python -m pdb debugs the script, cuda-gdb its kernels",
}


class _Alias(Loader):
    """Gives a module of this package for one of PyCUDA's name."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return import_module(f"gpukern.{spec.name}")

    def exec_module(self, module: ModuleType) -> None:
        """It is done when it is imported."""


class _Finder(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith("pycuda."):
            return None
        inner = name.removeprefix("pycuda.")
        if inner in MODULES:
            return ModuleSpec(name, _Alias())
        cure = _LEFT_OUT.get(inner.partition(".")[0], f"there are {', '.join(MODULES)}")
        raise ModuleNotFoundError(f"{name} is not part of gpukern.pycuda: {cure}", name=name)


def install() -> None:
    """Have ``import pycuda`` and its modules find those of this package, in this process.

    Called again it does nothing. Raises ImportError where PyCUDA itself has been imported: its
    arrays and contexts are not these.
    """
    here = sys.modules[__name__]
    found = sys.modules.get("pycuda")
    if found is here:
        return
    if found is not None:
        raise ImportError(
            "gpukern.pycuda.install: PyCUDA itself has been imported already, from "
            f"{getattr(found, '__file__', None)}; call install() before anything imports pycuda, "
            "or start the script with python -m gpukern.pycuda",
            name="pycuda",
        )
    sys.modules["pycuda"] = here
    sys.meta_path.insert(0, _Finder())
