"""``gpukern.check``, ``kernel.simulate``: a kernel on the simulator, whatever the device here."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import threading
import time

import numpy as np
import pytest

import gpukern as gk
from fakes import NEEDS_FAKE
from gpukern import _core
from gpukern.kernels import checking, simulating
from gpukern.kernels.signature import FLOAT, POINTER, Parameter
from gpukern.machine import libraries
from waiting import join_all

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ is here"),
    pytest.mark.usefixtures("kept"),
]

ON_GPU = _core.backend() == "cuda"
HAS_NVRTC = libraries.find_nvrtc(13000) is not None


SOURCE = r"""
#include <stdio.h>
struct Pair { float x; double y; };
__constant__ float factors[2] = {1, 2};
__device__ int calls;
__global__ void saxpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
__global__ void off_by_one(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        x[i] = 1;
}
__global__ void missing_barrier(const float *x, float *y) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
__global__ void divergent(float *y) { if (threadIdx.x < 10) __syncthreads(); y[threadIdx.x] = 1; }
__global__ void forever(int *n) { while (n[0] == 0) {} }
__global__ void scaled(float *x) {
    x[threadIdx.x] *= factors[1];
    atomicAdd(&calls, 1);
    if (threadIdx.x == 0) printf("said %d\n", 1);
}
__global__ void structures(Pair one, Pair *all, short s, bool b, char c, double d) {
    all[threadIdx.x].y = one.y + all[threadIdx.x].x + s + b + c + d;
}
__global__ void shifted(float *x, const float *y) { x[threadIdx.x] = 1 + y[threadIdx.x]; }
__global__ void filled(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] = threadIdx.x; }
__global__ void deep(float **rows) { rows[0][0] = 1; }
__global__ void where(int *at, double *half) {
    at[threadIdx.x] = __CUDA_ARCH__; half[0] = 1 + 1e-12 * (__CUDA_ARCH__ == 750);
}
template <class T> __global__ void twice(T *x) { x[threadIdx.x] *= 2; }
"""


@pytest.fixture(scope="module")
def module(kept):
    """Kernels, right and wrong."""
    if ON_GPU and not HAS_NVRTC:
        pytest.skip("NVRTC is not installed")
    return gk.compile(SOURCE, name="folder/mine.cu", names=["twice<double>"])


def line_of(text):
    return next(at for at, line in enumerate(SOURCE.splitlines(), 1) if text in line)


# simulate -----------------------------------------------------------------------------------------


def test_simulate_gives_what_the_call_gives(module):
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    assert module.saxpy.simulate(4, 256, 2.0, x, y, 1000) is None
    np.testing.assert_array_equal(y, 1 + 2 * x)
    there = gk.to_device(y)
    module.saxpy.simulate((4, 1), [256], -2.0, gk.to_device(x), there, np.int32(1000))
    np.testing.assert_array_equal(there.to_host(), np.ones(1000))
    doubles = np.arange(4.0)
    module["twice<double>"].simulate(1, 4, doubles)
    np.testing.assert_array_equal(doubles, [0, 2, 4, 6])


def test_what_goes_in_and_out_is_as_the_call_has_it(module):
    x = np.full(8, 5, np.float32)
    module.saxpy.simulate(1, 8, 1.0, x, gk.In(x), 8)
    np.testing.assert_array_equal(x, np.full(8, 5))
    out = np.zeros(8, np.float32)
    module.filled.simulate(1, 8, gk.Out(out), 4)
    np.testing.assert_array_equal(out[:4], range(4))
    assert np.isnan(out[4:]).all(), "nothing of it went in"
    module.filled.simulate(1, 8, gk.InOut(x), 2)
    np.testing.assert_array_equal(x, [0, 1, 5, 5, 5, 5, 5, 5])


def test_arrays_on_the_device_that_share_memory(module):
    d = gk.to_device(np.arange(8, dtype=np.float32))
    module.shifted.simulate(1, 7, d[:7], d[:7])
    np.testing.assert_array_equal(d.to_host(), [1, 2, 3, 4, 5, 6, 7, 7])
    module.shifted.simulate(1, 3, d[4:8], d[1:5])
    np.testing.assert_array_equal(d.to_host(), [1, 2, 3, 4, 3, 4, 5, 7])


def test_structures_and_numbers_of_every_kind(module):
    pair = np.dtype([("x", np.float32), ("y", np.float64)], align=True)

    class Pair(ctypes.Structure):
        _fields_ = (("x", ctypes.c_float), ("y", ctypes.c_double))

    one = np.array((0, 5.0), pair)
    for given in one, one[()], Pair(0, 5.0), one.tobytes():
        pairs = np.zeros(3, pair)
        pairs["x"] = [1, 2, 3]
        number = np.array(-7, np.int16)
        module.structures.simulate(1, 3, given, pairs, number, True, np.int8(2), np.float64(0.5))
        np.testing.assert_array_equal(pairs["y"], np.array([6, 7, 8]) - 7 + 1 + 2 + 0.5)


def test_variables_of_the_module_come_along(kept, capsys):
    module = gk.compile(SOURCE)
    x = np.ones(4, np.float32)
    module.scaled.simulate(1, 4, x)
    np.testing.assert_array_equal(x, np.full(4, 2))
    assert capsys.readouterr().out == "said 1\n"
    module.symbol("factors")[...] = np.array([1, 10], np.float32)
    module.scaled.simulate(1, 4, x)
    np.testing.assert_array_equal(x, np.full(4, 20))
    assert int(module.symbol("calls")) == 8
    assert gk.check(module.scaled, 1, 4, x).printed == "said 1\n"
    assert int(module.symbol("calls")) == 8, "a check changes nothing"


def test_simulate_raises_what_is_wrong_and_writes_nothing(module):
    x = np.zeros(64, np.float32)
    there = gk.to_device(x)
    for array in x, there:
        with pytest.raises(gk.CudaError, match=r"^off_by_one: block \(1, 0, 0\): thread \(0, 0, 0"):
            module.off_by_one.simulate(2, 64, array, 64)
    assert not x.any()
    assert not there.to_host().any()


def test_kernels_by_cupys_name(module):
    kernel = gk.RawKernel(SOURCE, "filled")
    assert gk.check(kernel, 1, 8, np.zeros(8, np.float32), 8).is_clean
    assert not gk.check(kernel, 1, 8, np.zeros(4, np.float32), 8).is_clean


# check --------------------------------------------------------------------------------------------


def test_a_clean_report(module):
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    report = gk.check(module.saxpy, 1, 128, 2.0, x, y, 100)
    assert report.is_clean
    assert (report.kernel, report.fault, report.compared) == ("saxpy", None, False)
    assert str(report) == "saxpy: the simulator finds nothing wrong with this call"
    np.testing.assert_array_equal(y, np.ones(100))


def test_a_fault_has_its_place_and_the_lines_round_it(module):
    x = np.zeros(64, np.float32)
    report = gk.check(module.off_by_one, 2, 64, x, 64)
    assert not report.is_clean
    fault, line = report.fault, line_of("x[i] = 1;")
    assert (fault.block, fault.thread) == ((1, 0, 0), (0, 0, 0))
    assert (fault.file, fault.line) == ("mine.cu", line)
    assert (
        fault.what == "it writes 4 bytes out of bounds: 0 bytes behind the end of an array of 256"
    )
    assert fault.sentence.startswith("off_by_one: block (1, 0, 0): thread (0, 0, 0), mine.cu:")
    shown = str(report).splitlines()
    assert shown[:2] == [
        f"off_by_one: mine.cu:{line}: {fault.what}",
        "  in block (1, 0, 0), thread (0, 0, 0)",
    ]
    assert f"  {line} |         x[i] = 1;" in shown[2:]
    assert not x.any()


def test_races_and_barriers_are_found(module):
    x = np.zeros(64, np.float32)
    report = gk.check(module.missing_barrier, 1, 64, x, x.copy(), shared=256)
    assert "__syncthreads()" in report.fault.what
    assert report.fault.line == line_of("s[blockDim.x - 1")
    report = gk.check(module.divergent, 1, 64, x)
    assert "which 54 of the block's 64 threads do not reach" in str(report)
    assert report.fault.block == (0, 0, 0)


def test_a_kernel_that_never_ends_costs_nothing_here(module):
    began = time.monotonic()
    report = gk.check(module.forever, 1, 1, np.zeros(1, np.int32), seconds=1.5)
    assert time.monotonic() - began < 30
    assert str(report) == "forever: it did not end within 1.5 s"
    assert report.fault.line is None
    with pytest.raises(gk.CudaError, match=r"^forever: it did not end within 1\.5 s$"):
        module.forever.simulate(1, 1, np.zeros(1, np.int32), seconds=1.5)


@pytest.mark.usefixtures("control_c")
def test_control_c_ends_the_process_too(module):
    import psutil

    stop = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
    before = {child.pid for child in psutil.Process().children()}
    stop.start()
    with pytest.raises(KeyboardInterrupt):
        gk.check(module.forever, 1, 1, np.zeros(1, np.int32))
    join_all(stop)
    assert {child.pid for child in psutil.Process().children()} <= before


def test_a_simulator_that_dies_is_told(module, monkeypatch):
    class Dying(simulating.Asked):
        def answer(self, tick):
            os.kill(self._process.pid, signal.SIGKILL)
            return super().answer(tick)

    monkeypatch.setattr(simulating, "Asked", Dying)
    report = gk.check(module.forever, 1, 1, np.zeros(1, np.int32))
    assert str(report) == ("forever: it took the simulator with it: its process ended by SIGKILL")


def test_what_cannot_be_simulated_says_so():
    if ON_GPU and not HAS_NVRTC:
        pytest.skip("NVRTC is not installed")
    text = '__global__ void f(int *a) {\n#if __CUDA_ARCH__ > %s\n asm volatile("exit;");\n#endif\n}'
    kernel = gk.compile(text % "750").f
    assert gk.check(kernel, 1, 1, np.zeros(1, np.int32)).is_clean
    if ON_GPU:
        kernel = gk.compile(text % "0").f
        with pytest.raises(gk.CompileError, match=r"source.cu:3: error: inline PTX \(asm\) cannot"):
            gk.check(kernel, 1, 1, np.zeros(1, np.int32))


def test_wrong_calls_are_refused_as_the_call_refuses_them(module):
    x = np.zeros(8, np.float32)
    for arguments, kind, words in (
        ((1, 8, 1.0, x[::2], x, 8), ValueError, r"saxpy: const float \*x is not contiguous"),
        (
            (1, 8, 1.0, x, x.astype("f8"), 8),
            TypeError,
            r"saxpy: float \*y takes an array of float32",
        ),
        ((1, 8, 1.0, x), TypeError, "saxpy: takes 4 arguments"),
        ((1, 8, 1.0, x, x, 8.5), TypeError, "saxpy: int n takes a number"),
        ((0, 8, 1.0, x, x, 8), ValueError, "saxpy: grid is 0"),
        ((1, 4096, 1.0, x, x, 8), ValueError, "saxpy: block"),
    ):
        with pytest.raises(kind, match=words):
            gk.check(module.saxpy, *arguments)
        with pytest.raises(kind, match=words):
            module.saxpy.simulate(*arguments)
    with pytest.raises(ValueError, match=r"float \*\*rows is an array of addresses, which are of"):
        gk.check(module.deep, 1, 1, np.zeros(1, np.uint64))
    with pytest.raises(TypeError, match=r"check: kernel has to be one of gpukern\.compile"):
        gk.check(np.add, 1, 1)
    with pytest.raises(ValueError, match="check: seconds is how long the simulator may take"):
        gk.check(module.saxpy, 1, 8, 1.0, x, x, 8, seconds=0)
    with pytest.raises(ValueError, match="check: rtol is a share"):
        gk.check(module.saxpy, 1, 8, 1.0, x, x, 8, rtol=-1)
    with pytest.raises(TypeError, match="check: compare has to be True or False"):
        gk.check(module.saxpy, 1, 8, 1.0, x, x, 8, compare="yes")


def test_variables_that_hold_addresses_are_refused(kept):
    if ON_GPU and not HAS_NVRTC:
        pytest.skip("NVRTC is not installed")
    module = gk.compile("__device__ float *p; __global__ void f(int *n) { *n = p != nullptr; }")
    with pytest.raises(ValueError, match="f: the variable p has addresses"):
        module.f.simulate(1, 1, np.zeros(1, np.int32))


# beside the GPU -----------------------------------------------------------------------------------


def test_results_are_compared_with_the_gpus(module):
    x, y = np.arange(1000, dtype=np.float32) / 7, np.ones(1000, np.float32)
    report = gk.check(module.saxpy, 4, 256, 0.3, x, gk.to_device(y), 1000, compare=True)
    assert report.is_clean
    assert report.compared == ON_GPU
    assert ("and the GPU comes to the same results" in str(report)) == ON_GPU
    before = int(module.symbol("calls"))
    assert gk.check(module.scaled, 1, 4, y[:4].copy(), compare=True).is_clean
    assert int(module.symbol("calls")) == before
    assert gk.check(module.filled, 1, 8, gk.Out(x), 4, compare=True).is_clean
    wrong = gk.check(module.off_by_one, 2, 64, np.zeros(64, np.float32), 64, compare=True)
    assert wrong.fault
    assert not wrong.compared, "a kernel that is wrong does not run on the GPU"


@pytest.mark.skipif(
    not ON_GPU or _core.capability() == 75, reason="the GPU is the simulator's like"
)
def test_a_difference_says_where_it_is(module):
    at, half = np.zeros(8, np.int32), np.zeros(1)
    report = gk.check(module.where, 1, 8, at, half, compare=True)
    assert not report.is_clean
    capability = 10 * _core.capability()
    assert str(report).splitlines() == [
        "where: the GPU and the simulator come to different results",
        f"  int *at: element 0 is {capability} on the GPU and 750 on the simulator; 8 of 8 differ",
    ]
    strict = gk.check(module.where, 1, 8, at, half, compare=True, rtol=0)
    assert [one.array for one in strict.differences] == ["int *at", "double *half"]
    assert not at.any()


@NEEDS_FAKE
@pytest.mark.skipif(not HAS_NVRTC, reason="NVRTC is not installed")
def test_a_process_with_a_gpu_has_the_simulator_beside(right, kept):
    """On the fake driver: its kernels do nothing, its variables have their sizes in their names."""
    source = SOURCE.replace("factors", "factors_8").replace("calls", "calls_4")
    right(
        f"SOURCE = {source!r}\n"
        """
module = gk.compile(SOURCE, name="mine.cu")
assert _core.backend() == "cuda"
x, y = np.arange(8, dtype=np.float32), np.ones(8, np.float32)
there = gk.to_device(y)
module.saxpy, [there[begin:].copy() for begin in (0, 2, 7)]  # whose kernels are modules
before = live()
module.saxpy.simulate(1, 8, 2.0, x, y, 8)
assert y.tolist() == (1 + 2 * x).tolist()
module.saxpy.simulate(1, 8, 2.0, gk.to_device(x), there[2:], 6)
assert there.to_host().tolist() == [1, 1, 1, 3, 5, 7, 9, 11]
report = gk.check(module.off_by_one, 1, 16, there, 8)
assert report.fault.line and report.fault.thread == (8, 0, 0), report
report = gk.check(module.saxpy, 1, 8, 2.0, x, gk.InOut(np.ones(8, np.float32)), 8, compare=True)
assert report.compared and len(report.differences) == 1
assert str(report.differences[0]) == (
    "float *y: element 1 is 1.0 on the GPU and 3.0 on the simulator; 7 of 8 differ"
), report
assert gk.check(module.saxpy, 1, 8, 0.0, x, y, 8, compare=True).is_clean
module.symbol("factors_8")[...] = np.array([1, 10], np.float32)
module.scaled.simulate(1, 8, there)
assert there.to_host().tolist() == [10, 10, 10, 30, 50, 70, 90, 110]
assert int(module.symbol("calls_4")) == 8
differences = gk.check(module.scaled, 1, 8, there, compare=True).differences
assert [one.array for one in differences] == ["float *x", "calls_4"] and differences[1].count == 1
assert int(module.symbol("calls_4")) == 8
del report, differences
assert live() == before and _core.live_bytes() == 32, (live(), before, _core.live_bytes())
""",
        XDG_CACHE_HOME=kept,
        FAKE_KERNELS=0,
    )


@NEEDS_FAKE
def test_a_kernel_without_a_source_is_refused(right):
    right("""
module = gk.compile(b"\\x7fELF" + bytes(60))
name, sentence = failure(gk.check, module.user_w8, 1, 1, a)
assert name == "ValueError" and "user_w8: was not compiled from a source here" in sentence, sentence
""")


# what is done on the way --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "what", "block", "thread", "file", "line"),
    [
        ("k: block (1, 2, 3): thread (4, 5, 6), a.cu:7: bad: so", "bad: so", (1, 2, 3), (4, 5, 6),
         "a.cu", 7),
        ("k: block (1, 2, 3): thread (4, 5, 6): bad", "bad", (1, 2, 3), (4, 5, 6), None, None),
        ("k: block (1, 2, 3): bad (1, 2, 3)", "bad (1, 2, 3)", (1, 2, 3), None, None, None),
        ("k: out of memory", "out of memory", None, None, None, None),
    ],
)  # fmt: skip
def test_sentences_are_taken_apart(sentence, what, block, thread, file, line):
    assert checking._read(sentence, "k") == checking.Fault(
        sentence, what, block, thread, file, line
    )


def test_floats_are_compared_by_half_of_their_digits():
    def count(a, b, dtype, rtol=None):
        a, b = np.array(a, dtype), np.array(b, dtype)
        return int(checking._unlike(a, b, checking._share(str(a.dtype), rtol)).sum())

    inf, nan = np.inf, np.nan
    assert count([1, inf, nan, -inf], [1 + 1e-5, inf, nan, -inf], "float32") == 0
    assert count([1, inf, nan, 0], [1.01, -inf, 0, nan], "float32") == 4
    assert count([1e-9, 100], [2e-9, 100], "float32") == 0, "beside the largest it is nothing"
    assert count([1.0], [1 + 1e-5], "float64") == 1
    assert count([1.0], [1 + 1e-5], "float64", 1e-4) == 0
    assert count([1.0], [1.02], "float16") == 0
    assert count([1, 2], [1, 3], "int32") == 1
    half = checking._values(np.array([0x3F80, 0x4000], np.uint16).tobytes(), "bfloat16")
    np.testing.assert_array_equal(half, [1, 2])


def test_spans_are_grouped_by_the_memory_that_they_share():
    spans = [(0, 10, 0), (4, 6, 1), (8, 12, 2), (12, 14, 3), (20, 21, 4)]
    grouped = [[at for _, _, at in group] for group in simulating._overlapping(spans)]
    assert grouped == [[0, 1, 2], [3], [4]]
    parameter = Parameter("float *x", POINTER, 8, 0, FLOAT, 4, 4, 4)
    assert simulating._plain(parameter, None) is None
