"""The fake CUDA driver and the fakes beside it of tests/fake, compiled, and scripts run on them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
COMPILER = shutil.which("gcc") or shutil.which("cc")
NEEDS_FAKE = pytest.mark.skipif(COMPILER is None, reason="the fake driver needs a C compiler")
FILES = ["driver", "order", "streams", "memory", "kernels"]
DRIVER = [ROOT / f"tests/fake/{name}.c" for name in FILES]


def _library(path: Path, sources: list[Path], *flags: str) -> None:
    command = [str(COMPILER), "-shared", "-fPIC", "-O1", f"-I{ROOT}/cuda", *flags]
    command += [*map(str, sources), "-o", str(path), "-lpthread", "-ldl"]
    subprocess.run(command, check=True, timeout=600)


def compiled(folder: Path, *flags: str) -> Path:
    """The folder, with a libcuda.so.1 in it."""
    _library(folder / "libcuda.so.1", DRIVER, *flags)
    return folder


def with_cublas(folder: Path, *flags: str) -> Path:
    """The folder, with a libcublas.so.13 in it."""
    _library(folder / "libcublas.so.13", [ROOT / "tests/fake/cublas.c"], *flags)
    return folder


def with_nvrtc(folder: Path, *flags: str) -> Path:
    """A library in the folder that stands for NVRTC."""
    path = folder / "libnvrtc.so"
    _library(path, [ROOT / "tests/fake/nvrtc.c"], *flags)
    return path


PREAMBLE = """
import ctypes, json, os, sys, warnings
import gpukern as gk, numpy as np
from gpukern import _core
a = np.arange(12, dtype=np.float32).reshape(3, 4)
def failure(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["none", ""]
def fails(*calls):
    print(json.dumps([failure(*call) for call in calls]))
"""


# What code on the fake driver finds beside.
HELPERS = """
import gc, threading
driver = ctypes.CDLL("libcuda.so.1")
def at(number):  # the handle of a made-up stream
    return ctypes.addressof((ctypes.c_char * 4096).in_dll(driver, "fake_streams")) + number
KINDS = ("streams", "events", "modules", "objects", "pinned", "pools", "graphs", "executables")
def live():
    gc.collect()
    return {kind: driver.fake_live(kind.encode()) for kind in KINDS}
def fail(function, code, before=0, times=1):
    driver.fake_fail(function.encode(), code, before, times)
def steps(call):
    text = (ctypes.c_char * (1 << 18)).in_dll(driver, "fake_log")
    before = len(text.value)
    kept = call()
    return text.value[before:].decode().split()
def refused(call):  # each object that a call makes, one a call: how many there were
    import _testcapi
    for _ in range(3):
        call()
    gc.collect()
    held, modules, raised, in_a_row = _core.live_bytes(), live()["modules"], 0, 0
    for number in range(2000):
        _testcapi.set_nomemory(number, number + 1)
        try:
            call()
            in_a_row += 1
        except MemoryError:
            raised, in_a_row = raised + 1, 0
        finally:
            _testcapi.remove_mem_hooks()
        assert _core.live_bytes() == held, number
        if in_a_row == 20:
            break
    assert in_a_row == 20 and live()["modules"] == modules
    call()
    return raised
N = 1_500_000
long = np.resize(np.arange(1000, dtype=np.float32), N)
ones = np.ones(N, np.float32)
rng = np.random.default_rng(0)
def matrices(m, k, n, dtype=np.float32):
    return rng.integers(-4, 5, (m, k)).astype(dtype), rng.integers(-4, 5, (k, n)).astype(dtype)
"""


@pytest.fixture(scope="session")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake driver; its kernels are quick, since many tests run them."""
    return compiled(tmp_path_factory.mktemp("fake"), "-O3")


def search_path(*folders: Path) -> str:
    """Where the loader looks: the folders first."""
    rest = filter(None, [os.environ.get("LD_LIBRARY_PATH")])
    return os.pathsep.join([*map(str, folders), *rest])


@pytest.fixture
def on_fake(script: Any, fake: Path) -> Callable[..., Any]:
    """Run code on the fake driver: on_fake(code, FAKE_INIT=100, ...)."""

    def run(
        code: str,
        folder: Path = fake,
        device: str | None = "cuda",
        beside: tuple[Path, ...] = (),
        **settings: Any,
    ) -> Any:
        changes = {name: str(value) for name, value in settings.items()}
        return script(
            PREAMBLE + code,
            LD_LIBRARY_PATH=search_path(folder, *beside),
            GPUKERN_DEVICE=device,
            **{"CUDA_VISIBLE_DEVICES": None, **changes},
        )

    return run


@pytest.fixture
def right(on_fake: Callable[..., Any]) -> Callable[..., None]:
    """Run code that asserts, on the fake driver."""

    def run(code: str, **settings: Any) -> None:
        done = on_fake(HELPERS + code, **settings)
        assert done.returncode == 0, done.stderr
        assert done.stderr == "", done.stderr

    return run


@pytest.fixture(scope="session")
def cublas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake cuBLAS."""
    return with_cublas(tmp_path_factory.mktemp("cublas"))


@pytest.fixture
def with_blas(on_fake: Callable[..., Any], cublas: Path) -> Callable[..., None]:
    """Run code on the fake cuBLAS as well, whichever is installed here."""
    head = """
from gpukern.machine import libraries
libraries._pathfinder = lambda name: None
assert _core.cublas_report()["library"] == os.environ["FAKE_CUBLAS"]
"""

    def run(code: str, **settings: Any) -> None:
        library = cublas / "libcublas.so.13"
        done = on_fake(HELPERS + head + code, beside=(cublas,), FAKE_CUBLAS=library, **settings)
        assert done.returncode == 0, done.stderr
        assert done.stderr == "", done.stderr

    return run


def answers(run: Any) -> Any:
    """What the script printed as JSON, a line each; one answer is given bare."""
    assert run.returncode == 0, run.stderr
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    return lines[0] if len(lines) == 1 else lines


def scarce(folder: Path) -> Path:
    """The C library that runs out, to be preloaded."""
    path = folder / "libscarce.so"
    _library(path, [ROOT / "tests/fake/scarce.c"])
    return path
