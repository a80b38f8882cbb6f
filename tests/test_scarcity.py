"""A system that has no more memory, locks, threads or files to give (tests/fake/scarce.c): each
request of the extension is refused once, from its import on. The call raises or does without, what
comes after it works, and nothing is lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from fakes import NEEDS_FAKE, scarce, search_path, with_nvrtc
from gpukern.kernels.signature import FLOAT, POINTER, SIGNED, Parameter

pytestmark = [
    NEEDS_FAKE,
    pytest.mark.skipif(
        "san" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer has the allocator"
    ),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    return scarce(tmp_path_factory.mktemp("scarce"))


# Everything is imported anew for each request, so that what a first call makes is made within it.
EACH_REQUEST = """
import ctypes, gc, os, sys, typing
import numpy as np
from gpukern import _core as kept
scarcity = ctypes.CDLL(None)
assert scarcity.scarce_for(kept.__file__.encode())
a = np.arange(50, dtype=np.float32)
long = np.arange(70_000, dtype=np.float32) % 1000
matrix = np.arange(120 * 40, dtype=np.float32).reshape(120, 40) % 7
def same(got, want):
    return np.asarray(got).tobytes() == np.asarray(want).tobytes()

def forget():
    for module in [module for module in sys.modules if module.startswith("gpukern")]:
        del sys.modules[module]
    for clear in typing._cleanups:  # caches, which hold classes and so their modules
        clear()

def first_use():
    import gpukern as gk
    return use(gk)

def attempt(number):
    scarcity.scarce_refuse(number)
    try:
        got, outcome = first_use(), "survived"
    except (MemoryError, RuntimeError) as error:
        text = str(error)
        assert isinstance(error, MemoryError) or "memory" in text or "no more locks" in text, text
        outcome = "raised"
    struck = scarcity.scarce_refuse(0)
    assert struck or outcome == "survived"
    if outcome == "raised":
        if "gpukern" not in sys.modules:
            forget()  # what was imported before the import failed
        got = first_use()
    assert got is True, (number, outcome, got)
    core = sys.modules["gpukern._core"]
    core.synchronize()
    gc.collect()
    assert core.live_bytes() == 0, (number, outcome)
    return outcome if struck else None

def settled():
    forget()
    gc.collect()
    return scarcity.scarce_held()

assert settled() >= 0
gc.freeze()  # NumPy's objects, which no search for garbage needs to go through
assert attempt(0) is None
held, outcomes = settled(), {"raised": 0, "survived": 0}
for number in range(1, 1000):
    outcome = attempt(number)
    assert settled() == held, (number, outcome, "something of the host's is lost")
    if outcome is None:
        break
    outcomes[outcome] += 1
else:
    raise AssertionError("no end of requests")
print(outcomes["raised"], outcomes["survived"])
"""

USES = {
    "a small call": "return same(gk.add(a, a), a + a)",
    "a call in chunks": "return same(gk.add(long, long), long + long)",
    "chunks of strided arrays": """
    out = np.zeros((70_000, 2), np.float32)
    gk.add(long[::-1], long, out=out[:, 1])
    return same(out[:, 1], long[::-1] + long) and not out[:, 0].any()""",
    "chunks one after another": """
    with gk.limits(pinned_memory=0):
        return same(gk.add(long, long), long + long)""",
    "reductions": """
    there = gk.to_device(matrix)
    sums = gk.sum(there, 0), gk.sum(there, 1), gk.sum(matrix, 0)
    return all(map(same, sums, (matrix.sum(0), matrix.sum(1), matrix.sum(0))))""",
    "a product": """
    got = gk.matmul(matrix, matrix[:40], variant="naive")
    return same(got, matrix @ matrix[:40])""",
    "copies": """
    there = gk.to_device(matrix.T)
    part = there[::3, 5:].to_host()
    return same(there.T.copy().to_host(), matrix) and same(part, matrix.T[::3, 5:])""",
    "a profile": """
    some = long[:5000]
    with gk.limits(mapped_call=0), gk.profile() as profile:
        right = same(gk.add(some, some), some + some) and same(gk.sum(gk.to_device(a)), a.sum())
    return right and len(profile.calls) >= 3""",
    "streams": """
    stream, first, last = gk.Stream(), gk.Event(), gk.Event()
    first.record(stream)
    there = gk.to_device(a, stream=stream)
    twice = gk.add(there, there)
    thrice = gk.add(twice, there, stream=gk.Stream())
    last.record(stream)
    stream.synchronize()
    return same(thrice.to_host(), 3 * a) and last.seconds_since(first) >= 0""",
    "a graph": """
    stream, there = gk.Stream(), gk.to_device(a)
    stream.begin_capture()
    twice = gk.add(there, there, stream=stream)
    graph = stream.end_capture()
    graph.launch()
    return same(twice.to_host(), 2 * a)""",
    "a graph that is not looked at": """
    stream, there = gk.Stream(), gk.to_device(a)
    stream.begin_capture()
    twice = gk.add(there, there, stream=stream)
    stream.end_capture().launch()
    gk.synchronize()
    return twice.shape == a.shape""",
    "two devices": """
    there = gk.to_device(a)
    with gk.device(1):
        beside = gk.to_device(there)
        return same(gk.add(beside, beside).to_host(), 2 * a)""",
    "arrays lent to NumPy": """
    there = gk.to_device(a)
    return same(np.from_dlpack(there), a) and same(np.from_dlpack(there.copy()), a)""",
}


def numbers(run) -> tuple[int, int]:
    assert run.returncode == 0, run.stderr
    raised, survived = map(int, run.stdout.split())
    return raised, survived


def code_of(body: str) -> str:
    return f"def use(gk):\n    {body.strip()}\n{EACH_REQUEST}"


IN_ANY_ORDER = ["a small call", "a call in chunks", "streams", "a graph"]


@pytest.mark.costly(2)
@pytest.mark.parametrize(
    ("use", "lazy"),
    [(use, "0") for use in USES if "looked" not in use] + [(use, "7") for use in IN_ANY_ORDER],
)
def test_every_request_may_be_refused(use, lazy, library, script):
    settings = {"GPUKERN_DEVICE": "sim", "GPUKERN_SIM_LAZY": lazy, "GPUKERN_SIM_DEVICES": "2"}
    raised, survived = numbers(script(code_of(USES[use]), LD_PRELOAD=str(library), **settings))
    assert raised >= 20, "to open the simulator takes so many"
    assert survived >= 5, "what can be done without"


WITH_A_DRIVER = ["a small call", "a call in chunks", "streams", "two devices"]
WITH_A_DRIVER += ["a graph that is not looked at"]  # the fake does not launch them


@pytest.mark.parametrize("use", WITH_A_DRIVER)
def test_every_request_may_be_refused_with_a_driver(use, library, fake, script):
    settings = {"GPUKERN_DEVICE": "cuda", "FAKE_DEVICES": "2", "LD_LIBRARY_PATH": search_path(fake)}
    raised, survived = numbers(script(code_of(USES[use]), LD_PRELOAD=str(library), **settings))
    assert raised >= 10
    assert survived >= 5


# Of the fake NVRTC at {library!r}.
A_COMPILATION = """
    _, image, log, symbols = gk._core.compile_source(
        {library!r}, "k.cu", "a source", ("-O",), ("a.h", "its text"), ("one", "two"))
    return image == b"cubin k.cu" and "option -O" in log and symbols == ("_one", "_two")"""


def test_every_request_of_a_compilation_may_be_refused(library, script, tmp_path):
    code = code_of(A_COMPILATION.format(library=str(with_nvrtc(tmp_path))))
    raised, _ = numbers(script(code, LD_PRELOAD=str(library), GPUKERN_DEVICE="sim"))
    assert raised >= 6, "a log, a list of symbols, two symbols and an image, beside the import's"


# Into a file, as the simulator has it: attempts need no compiler.
COMPILED = """
import sys
import gpukern as gk
source = "__global__ void twice(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }"
open(sys.argv[1], "wb").write(gk.compile(source).twice.target.recipe().code)
"""
A_USERS_KERNEL = """
    image = gk._core.Image(open({file!r}, "rb").read())
    twice = gk._core.Kernel(image, "twice", "twice", {parameters})
    there, here = gk.to_device(a), a.copy()
    twice(1, 64, there, 50)
    twice(1, 64, here, 50)
    return same(there.to_host(), 2 * a) and same(here, 2 * a)"""
PARAMETERS = tuple(
    each.numbers()
    for each in (
        Parameter("float *x", POINTER, 8, 0, FLOAT, 4, 4, 4),
        Parameter("int n", SIGNED, 4, 0, 0, 0, 0, 4),
    )
)


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ is here")
@pytest.mark.parametrize("lazy", ["0", "7"])
def test_every_request_of_a_users_kernel_may_be_refused(lazy, library, script, tmp_path):
    tmp_path.chmod(0o700)
    file = str(tmp_path / "kernel")
    settings = {"GPUKERN_DEVICE": "sim", "XDG_CACHE_HOME": str(tmp_path)}
    assert script(COMPILED, file, **settings).returncode == 0
    code = code_of(A_USERS_KERNEL.format(file=file, parameters=PARAMETERS))
    settings["GPUKERN_SIM_LAZY"] = lazy
    raised, survived = numbers(script(code, LD_PRELOAD=str(library), **settings))
    assert raised >= 30, "with the module, its file, its kernel and two launches"
    assert survived >= 1
