"""What the extension makes of NVRTC (csrc/device/cuda/nvrtc.c), with a fake one that compiles
nothing and whose every function may fail."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gpukern as gk
from fakes import NEEDS_FAKE, with_nvrtc
from gpukern import _core

pytestmark = NEEDS_FAKE

BROKEN, COMPILATION_FAILED = 1, 6


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake."""
    return with_nvrtc(tmp_path_factory.mktemp("nvrtc"))


@pytest.fixture
def fails(library) -> Iterator[Callable[..., None]]:
    """Have one of its functions fail; none does after the test, and no program is left."""
    nvrtc = ctypes.CDLL(str(library))
    yield lambda function, code=BROKEN: nvrtc.fake_nvrtc_fail(function.encode(), code)
    nvrtc.fake_nvrtc_fail(b"", 0)
    assert nvrtc.fake_nvrtc_live() == 0


@pytest.fixture
def compiled(library) -> Callable[..., Any]:
    """Compile a source, with two kernels to be named."""

    def run(source: str, path: Path = library, expressions: Any = ("one", "two<int>")) -> Any:
        headers = ("a.h", "text of a", "b.h", "text of b")
        return _core.compile_source(
            str(path), "k.cu", source, ("-O", "-DN=3"), headers, expressions
        )

    return run


LOG = "a.h text of a\nb.h text of b\nnames one\nnames two<int>\noption -O\noption -DN=3\n"


def test_all_that_is_given_gets_there_and_what_is_made_comes_back(compiled, library):
    assert compiled("a source") == (True, b"cubin k.cu", LOG, ("_one", "_two<int>"))
    assert compiled("ptx") == (True, b"ptx k.cu", LOG, ("_one", "_two<int>"))
    assert compiled("silent", expressions=()) == (True, b"cubin k.cu", "", ())
    assert _core.nvrtc_version(str(library)) == 13040


def test_a_source_with_an_error_is_none_of_nvrtc(compiled, fails):
    fails("nvrtcCompileProgram", COMPILATION_FAILED)
    assert compiled("wrong") == (False, b"", LOG, ())
    with pytest.raises(gk.CudaError, match=r"^compile: NVRTC: the compilation failed: it failed$"):
        compiled("silent")


STEPS = {
    "nvrtcCreateProgram": "taking the source",
    "nvrtcAddNameExpression": "naming a kernel",
    "nvrtcSetFlowCallback": "watching",
    "nvrtcGetProgramLogSize": "asking for the result",
    "nvrtcGetProgramLog": "reading the result",
    "nvrtcGetLoweredName": "asking for a symbol",
    "nvrtcGetCUBINSize": "asking for the result",
    "nvrtcGetCUBIN": "reading the result",
    "nvrtcGetPTXSize": "asking for the result",
    "nvrtcGetPTX": "reading the result",
}


@pytest.mark.parametrize("function", STEPS)
def test_every_step_may_fail(function, compiled, fails):
    source = "ptx" if "PTX" in function else "a source"
    right = compiled(source)
    fails(function)
    with pytest.raises(gk.CudaError) as raised:
        compiled(source)
    assert str(raised.value) == f"compile: NVRTC: {STEPS[function]} failed: it is broken"
    fails("none")
    assert compiled(source) == right


def test_the_version_may_not_be_told(library, fails):
    fails("nvrtcVersion")
    with pytest.raises(gk.CudaError, match=r"^NVRTC: asking for the version failed: it is broken$"):
        _core.nvrtc_version(str(library))
    fails("none")
    assert _core.nvrtc_version(str(library)) == 13040


def test_control_c_ends_a_compilation(compiled, fails, control_c):
    with pytest.raises(KeyboardInterrupt):
        compiled("slow")
    assert compiled("a source")[0]


def test_older_ones(compiled, tmp_path):
    for name in ("watched", "machine"):
        (tmp_path / name).mkdir()
    unwatched = with_nvrtc(tmp_path / "watched", "-DnvrtcSetFlowCallback=absent")
    assert compiled("a source", unwatched) == compiled("a source"), "it runs to its end"
    old = with_nvrtc(tmp_path / "machine", "-DnvrtcGetCUBIN=absent")
    for call in (lambda: compiled("a source", old), lambda: _core.nvrtc_version(str(old))):
        with pytest.raises(gk.CudaError, match=rf"NVRTC at {old} is older than 12\.0$"):
            call()


def test_texts_that_nvrtc_cannot_have(compiled, library):
    for options, headers, expressions in (
        (("\ud800",), (), ()),
        ((), ("a.h", "\ud800"), ()),
        ((), (), ("one", "\ud800")),
    ):
        with pytest.raises(UnicodeEncodeError):
            _core.compile_source(str(library), "k.cu", "text", options, headers, expressions)
    with pytest.raises(TypeError):
        _core.compile_source(str(library), "k.cu", "text", (3,), (), ())
    assert compiled("a source")[0]
