"""Modules of users' kernels on the simulator: images that are none, what is known of kernels, and
where their output goes."""

from __future__ import annotations

import gc
import io
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpukern as gk
from gpukern import _core
from gpukern.kernels.signature import FLOAT, POINTER
from simulated import AT_ONCE, ON_THE_SIMULATOR

pytestmark = ON_THE_SIMULATOR

SOURCE = r"""
#include <stdio.h>
__global__ void plain(float *x, const double *y, short n, float2 pair) { x[threadIdx.x] += n; }
__global__ void says(int *x) { printf("said %d\n", x[0]); }
__global__ void says_and_strays(int *x) { printf("said %d\n", x[0]); x[1 << 20] = 3; }
"""


@pytest.fixture(scope="module")
def module(kept):
    """The kernels above."""
    return gk.compile(SOURCE)


def the_next_call_works(module):
    x = np.ones(4, np.float32)
    module.plain(1, 4, x, None, 2, bytes(8))
    assert x.tolist() == [3.0] * 4


def test_an_image_that_is_no_library(module):
    parameters = (("float *x", POINTER, 8, 0, FLOAT, 4, 4, 4),)
    for image in (b"\x7fELF" + bytes(60), b"", b".version 8.0"):
        with pytest.raises(gk.CudaError, match=r"^k: the module is none of the simulator's: "):
            _core.Kernel(_core.Image(image), "f", "k", parameters)
    the_next_call_works(module)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="another library needs a C compiler")
def test_a_library_of_something_else(module, tmp_path):
    library, source = tmp_path / "library.so", tmp_path / "library.c"
    source.write_text("int number(void) { return 3; }")
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library], check=True, timeout=60)
    image = _core.Image(library.read_bytes())
    for _ in range(2):
        with pytest.raises(gk.CudaError, match=r"^symbol: the module is none of the simulator's$"):
            image.symbol("number")
    the_next_call_works(module)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_files_of_modules_are_closed(module):
    source = "__global__ void f(int *a) { a[0] = VALUE; }"
    kept = [gk.compile(source, [f"-DVALUE={value}"]).f for value in range(3)]
    del kept
    gc.collect()
    before = open_files()
    for value in range(3):
        a = np.zeros(1, np.int32)
        gk.compile(source, [f"-DVALUE={value}"]).f(1, 1, a)
        assert a[0] == value
        with pytest.raises(gk.CudaError):
            _core.Image(b"none").symbol("x")
    gc.collect()
    gk.synchronize()
    assert open_files() == before


def test_what_a_module_tells_of_its_kernels(module):
    image = module.image
    assert image.parameters("plain") == [8, 8, 2, 8]
    assert image.parameters("says") == [8]
    with pytest.raises(ValueError, match=r"^compile: the module has no kernel absent$"):
        image.parameters("absent")
    with pytest.raises(ValueError, match=r"^symbol: the module has no variable absent$"):
        image.symbol("absent")
    the_next_call_works(module)


def test_how_many_blocks_run_side_by_side(module):
    """A multiprocessor has 1024 threads, 16 blocks and 64 KiB of shared memory."""
    plain = module.plain
    tiled = gk.compile(
        "__global__ void f(float *x) { __shared__ float s[5000]; s[0] = x[0]; x[0] = s[0]; }"
    ).f
    assert [plain.active_blocks(threads) for threads in (1, 64, 65, 512)] == [16, 16, 10, 2]
    assert [plain.active_blocks(64, shared=bytes) for bytes in (4096, 4097, 49152)] == [16, 15, 1]
    assert [tiled.active_blocks(64, shared=bytes) for bytes in (0, 12000, 28900)] == [3, 2, 1]
    assert plain.suggest_block() == 256
    assert tiled.suggest_block() == 512, "two such blocks, which three of 256 threads are less than"
    assert tiled.suggest_block(shared=28900) == 1024
    assert plain.occupancy(65) == 10 * 65 / 1024


class Shut(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(f"nobody reads {text!r}")


@AT_ONCE
def test_what_a_kernel_prints_without_an_output(module, monkeypatch, capsys):
    x = np.full(1, 7, np.int32)
    monkeypatch.setattr(sys, "stdout", None)
    module.says(1, 1, x)
    monkeypatch.setattr(sys, "stdout", Shut())
    with pytest.raises(OSError, match=r"^nobody reads 'said 7\\n'$"):
        module.says(1, 1, x)
    with pytest.raises(gk.CudaError, match="says_and_strays"):
        module.says_and_strays(1, 1, x)
    monkeypatch.undo()
    module.says(1, 1, x)
    assert capsys.readouterr().out == "said 7\n", "and nothing of what was said before"
