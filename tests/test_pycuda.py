"""``gpukern.pycuda``: PyCUDA's modules by name, and scripts that were written for them."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

import gpukern
from fakes import HELPERS, NEEDS_FAKE
from gpukern.machine import libraries
from test_user_kernels import KERNELS, SEEN

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE / "of_pycuda"
INSTALLED = """
import gpukern.pycuda
gpukern.pycuda.install()
import pycuda.driver as cuda
import pycuda.gpuarray as gpuarray
import numpy as np
"""


def run_script(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """What ``python -m gpukern.pycuda`` makes of its arguments."""
    return subprocess.run(
        [sys.executable, "-m", "gpukern.pycuda", *arguments],
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@lru_cache(maxsize=1)
def why_no_kernels() -> str | None:
    """Why kernels of users' own do not run here; None where they do."""
    try:
        gpukern.compile("__global__ void f() {}")
    except gpukern.CudaError as error:
        return str(error)
    return None


@pytest.mark.costly(2)
@pytest.mark.parametrize(
    "arguments",
    [
        ["tutorial"],
        ["kernels"],
        ["variables"],
        ["factories"],
        ["functions_of_arrays"],
        ["refused"],
        ["arrays", "float32"],
        ["arrays", "int32"],
        ["arrays", "complex64"],
    ],
    ids=" ".join,
)
def test_scripts_written_for_pycuda(arguments):
    if reason := why_no_kernels():
        pytest.skip(reason)
    name, *rest = arguments
    done = run_script(str(SCRIPTS / f"{name}.py"), *rest)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def compiles(right, tmp_path):
    """Run code on the fake driver, with NVRTC and kernels that do nothing."""
    if libraries.find_nvrtc(13000) is None:
        pytest.skip("NVRTC is not installed")
    tmp_path.chmod(0o700)
    return lambda code: right(INSTALLED + code, XDG_CACHE_HOME=tmp_path, FAKE_KERNELS=0)


@NEEDS_FAKE
def test_what_is_refused_is_refused_before_a_launch(compiles):
    code = (SCRIPTS / "refused.py").read_text()
    compiles(code)


@NEEDS_FAKE
def test_every_operation_compiles_for_every_dtype(compiles):
    compiles("""
import operator
from pycuda import cumath, curandom
from pycuda.scan import ExclusiveScanKernel, InclusiveScanKernel
BINARY = (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.eq)
for dtype in (np.bool_, np.int8, np.uint16, np.int32, np.uint64, np.float32, np.float64,
              np.complex64, np.complex128):
    x = gpuarray.zeros((3, 4), dtype)
    kind = x.dtype.kind
    for operation in BINARY:
        operation(x, x) if kind != "b" or operation is operator.eq else None
    for operation in (gpuarray.sum, gpuarray.any, gpuarray.all, gpuarray.logical_not):
        operation(x)
    gpuarray.where(x, x, x), x.astype(np.complex128), x.fill(1), gpuarray.dot(x, x)
    if kind != "c":
        gpuarray.max(x), gpuarray.min(x), gpuarray.maximum(x, x), x < x
        gpuarray.if_positive(x, x, x)
    if kind in "fc":
        cumath.exp(x), cumath.tanh(x), cumath.log10(x), -x, abs(x)
    if kind != "b":
        InclusiveScanKernel(dtype, "a+b")(x.ravel())
        ExclusiveScanKernel(dtype, "a+b", 0)(x.ravel())
generator = curandom.XORWOWRandomNumberGenerator()
for dtype in (np.float32, np.float64):
    generator.gen_normal(9, dtype), generator.gen_log_normal(9, dtype, 0, 1)
    curandom.rand(9, dtype)
for dtype in (np.int32, np.uint32):
    generator.gen_uniform(9, dtype)
""")


@pytest.fixture
def launches(right):
    """Run code on the fake driver, with kernels that tell by their symbols what they take."""
    head = "from gpukern.pycuda.functions import Function\nsaxpy = Function(saxpy)\n"
    return lambda code: right(INSTALLED + KERNELS + SEEN + head + code)


@NEEDS_FAKE
def test_what_a_function_hands_to_its_kernel(launches):
    launches("""
there, result = cuda.to_device(x), cuda.to_device(y)
form = dict(block=(32, 1, 1), grid=(2, 3))
assert saxpy(there, result, np.float32(2.5), np.int32(8), **form) is None
assert seen("QQfi") == (int(there), int(result), 2.5, 8)
assert sides() == [2, 3, 1, 32, 1, 1, 0]
saxpy(np.uintp(int(there) + 4), int(result), 1, np.uint32(7), shared=64, **form)
assert seen("QQfi") == (int(there) + 4, int(result), 1.0, 7) and sides()[6] == 64
saxpy(cuda.In(x), cuda.Out(y), 1.0, 8, **form)
assert y[0] == 6.0
array = gpuarray.to_gpu(x)
saxpy(array, gpuarray.to_gpu(y)[2:4], 1.0, 8, **form)
assert seen("Q") == (array.ptr,)
saxpy(0, result, 1.0, 8, **form)
assert seen("Q") == (0,)
saxpy.prepare("PPfi").prepared_call((1, 1), (4, 1, 1), array.gpudata, result, 3, 9)
assert seen("QQfi") == (array.ptr, int(result), 3.0, 9)
saxpy.prepare([np.intp, np.intp, np.float32, np.int32])
assert saxpy(there, result, 1.0, 8, time_kernel=True, **form) > 0
assert saxpy.num_regs >= 0 and saxpy.get_attribute("MAX_THREADS_PER_BLOCK") > 0
assert "texture" in failure(lambda: saxpy(there, result, 1.0, 8, texrefs=[1], **form))[1]
assert "has no num_register" in failure(lambda: saxpy.num_register)[1]
""")


@NEEDS_FAKE
def test_where_memory_is_full_no_kernel_is_needed_to_fill_an_array(on_fake):
    """Not even for the copies of what is there already."""
    code = """
from gpukern.pycuda import gpuarray, array
array._FILLED_BY_COPIES = 1 << 21
for dtype, value in ((np.float32, np.nan), (np.int16, -3), (np.complex64, 1 + 2j)):
    long = gpuarray.empty(1_300_007, dtype)
    long.fill(value)
    assert np.array_equal(long.get(), np.full(1_300_007, value, dtype), equal_nan=True)
"""
    done = on_fake(HELPERS + code, FAKE_MODULE=2)
    assert done.returncode == 0, done.stderr


@NEEDS_FAKE
def test_the_default_stream_waits_for_the_others(launches):
    launches("""
stream, other = cuda.Stream(), cuda.Stream()
there, result = cuda.to_device(x), cuda.to_device(y)
form = dict(block=(32, 1, 1))
saxpy(there, result, 1.0, 8, stream=stream, **form)
cuda.memcpy_htod(there, y)  # waits, or the fake driver ends the process
saxpy(there, result, 1.0, 8, stream=other, **form)
saxpy(there, result, 1.0, 8, **form)
saxpy(there, result, 1.0, 8, stream=stream, **form)
result.free()
saxpy(there, gpuarray.to_gpu(y), 1.0, 8, stream=stream, **form)  # the array dies before the work
gc.collect()
end = cuda.Event().record()
assert end.query() and stream.is_done()
from gpukern.pycuda import streams
assert not streams._busy
""")


def simulated(script, code):
    """Run code that asserts, on the simulator, and nothing is said."""
    done = script(INSTALLED + code, GPUKERN_DEVICE="sim")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", done.stderr


def test_the_modules_are_found_by_pycudas_names(script):
    simulated(
        script,
        """
import sys, pycuda, pycuda.tools, pycuda.compiler
from pycuda import cumath, driver
assert pycuda is gpukern.pycuda and driver is cuda is sys.modules["gpukern.pycuda.driver"]
assert sys.modules["pycuda.driver"] is driver and pycuda.VERSION >= (2025, 1)
gpukern.pycuda.install()
import pycuda.autoinit
assert pycuda.autoinit.device == cuda.Context.get_device() == cuda.Device(0)
for name, words in (("pycuda.gl", "no graphics"), ("pycuda.absent", "there are autoinit, ")):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        assert words in str(error) and error.name == name, error
    else:
        raise AssertionError(name)
""",
    )


def test_pycuda_itself_is_left_alone_where_it_was_imported(script):
    done = script("""
import sys, types
sys.modules["pycuda"] = types.ModuleType("pycuda")
import gpukern.pycuda
try:
    gpukern.pycuda.install()
except ImportError as error:
    assert "PyCUDA itself has been imported already" in str(error), error
else:
    raise AssertionError
assert sys.modules["pycuda"] is not gpukern.pycuda
""")
    assert done.returncode == 0, done.stderr


def test_the_command_runs_a_script(tmp_path):
    script = tmp_path / "script.py"
    (tmp_path / "beside.py").write_text("WORD = 'beside'\n")
    script.write_text(
        "import sys, pycuda.driver, beside\n"
        "print(__name__, sys.argv[1:], beside.WORD)\nsys.exit(3)\n"
    )
    done = run_script(str(script), "a", "-b", GPUKERN_DEVICE="sim")
    assert (done.returncode, done.stdout) == (3, "__main__ ['a', '-b'] beside\n"), done.stderr
    assert run_script().returncode == 2
    assert "usage:" in run_script("--help").stdout
    absent = run_script(str(tmp_path / "absent.py"))
    assert absent.returncode == 1 and "there is no script" in absent.stderr


def test_memory_by_hand(script):
    simulated(
        script,
        """
def refused(kind, words, call):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
x = np.arange(16, dtype=np.float32).reshape(4, 4)
memory = cuda.mem_alloc(x.nbytes)
assert memory.size == 64 and int(memory) % 4 == 0
for given in (x, np.asfortranarray(x), x.tobytes(), bytearray(x.tobytes()), x.data):
    cuda.memcpy_htod(memory, given)
assert (cuda.from_device_like(memory, x) == x).all()
half = np.zeros(8, np.float32)
cuda.memcpy_dtoh(half, int(memory) + 32)
assert (half == np.arange(8, 16)).all()
other = cuda.mem_alloc_like(x)
cuda.memcpy_dtod(other, memory, 64)
cuda.memset_d32(int(other) + 4, 7, 2)
assert cuda.from_device(other, 4, np.int32).tolist()[1:3] == [7, 7]
cuda.memset_d8(other, 1, 64)
cuda.memset_d16(other, 0x0202, 1)
assert cuda.from_device(other, 2, np.int16).tolist() == [0x0202, 0x0101]
pinned = cuda.pagelocked_empty((300, 1000), np.float32, order="F")
assert pinned.shape == (300, 1000) and pinned.flags.f_contiguous
cuda.memcpy_dtoh_async(cuda.pagelocked_zeros_like(x), memory, cuda.Stream())
refused(ValueError, "and the device memory has 64", lambda: cuda.memcpy_htod(memory, np.zeros(9)))
refused(ValueError, "and the device memory has 60", lambda: cuda.memcpy_dtoh(x, int(memory) + 4))
refused(ValueError, "is in no memory", lambda: cuda.memcpy_htod(12345, x))
refused(TypeError, "takes device memory", lambda: cuda.memcpy_htod("there", x))
refused(TypeError, "takes an array on the host", lambda: cuda.memcpy_htod(memory, memory))
refused(TypeError, "pass array.gpudata", lambda: cuda.memcpy_htod(gpuarray.to_gpu(x), x))
refused(TypeError, "takes a NumPy array or a buffer", lambda: cuda.memcpy_htod(memory, 3.0))
refused(ValueError, "is not contiguous", lambda: cuda.memcpy_htod(memory, x[:, 1]))
x.setflags(write=False)
refused(ValueError, "read-only", lambda: cuda.memcpy_dtoh(x, memory))
refused(ValueError, "from 1 on", lambda: cuda.mem_alloc(0))
refused(NotImplementedError, "InOut(array)", lambda: cuda.pagelocked_empty(3, "f4", mem_flags=2))
refused(AttributeError, "texture references", lambda: cuda.TextureReference)
refused(AttributeError, "has no attribute 'nonsense'", lambda: cuda.nonsense)
address = int(memory)
memory.free()
refused(cuda.LogicError, "were freed", lambda: cuda.memcpy_htod(memory, x))
refused(cuda.Error, "called before", memory.free)
refused(ValueError, "is in no memory", lambda: cuda.from_device(address, 1, np.uint8))
refused(MemoryError, "", lambda: cuda.mem_alloc(1 << 60))
free, total = cuda.mem_get_info()
assert 0 < free <= total
""",
    )


def test_arrays_lie_as_numpys_do(script):
    simulated(
        script,
        """
for dtype in (np.float32, np.complex128, np.uint8, [("n", "i4"), ("x", "f8"), ("y", "f4")]):
    x = np.zeros((3, 4, 5), dtype)
    x.view(np.uint8).reshape(-1)[...] = np.arange(x.nbytes) % 100
    for host in (x, np.asfortranarray(x)):
        a = gpuarray.to_gpu(host)
        assert (a.shape, a.dtype, a.strides) == (host.shape, host.dtype, host.strides)
        assert a.flags.c_contiguous == host.flags.c_contiguous
        for key in (1, (1, 2, 3), slice(None, None, -1), (..., 2), (slice(1), None, slice(2, 4))):
            assert (a[key].get() == host[key]).all() and a[key].shape == host[key].shape
        assert (a.T.get() == host.T).all() and (a.copy().get() == host).all()
        assert (a.transpose((1, 2, 0)).get() == host.transpose(1, 2, 0)).all()
        out = np.zeros((3, 4, 5, 2), dtype)[..., 0]
        assert a.get(out) is out and (out == host).all()
        a[1] = host[2]
        a[0, :, 2] = a[2, :, 1]
        expected = host.copy()
        expected[1] = host[2]
        expected[0, :, 2] = host[2, :, 1]
        assert (a.get() == expected).all()
    a = gpuarray.to_gpu(x)
    assert (a.reshape(4, -1).get() == x.reshape(4, -1)).all()
    assert (a.ravel().get() == x.ravel()).all()
    assert (a.view(np.uint8).get() == x.view(np.uint8)).all()
    assert (gpuarray.concatenate([a, a[:1]], 0).get() == np.concatenate([x, x[:1]])).all()
    assert (gpuarray.stack([a, a], 1).get() == np.stack([x, x], 1)).all()
    assert not gpuarray.zeros_like(a).get().view(np.uint8).any()
a = gpuarray.to_gpu(np.arange(6, dtype=np.float32))
assert len(a) == 6 and float(a[4].get()) == 4 and [float(each.get()) for each in a][5] == 5
assert a.view(np.float64).shape == (3,) and a.ptr == int(a.gpudata) == int(a[:2].gpudata)
assert a[2:].ptr == a.ptr + 8 and (cuda.from_device(a[2:].gpudata, 2, "f4") == [2, 3]).all()
again = gpuarray.GPUArray((2,), np.float32, gpudata=int(a.gpudata) + 4)
assert again.get().tolist() == [1, 2]
assert (gpuarray.arange(1, 9, 2, dtype=np.int32).get() == np.arange(1, 9, 2)).all()
assert str(a) == str(a.get()) and gpuarray.empty((0, 3), np.int8).get().shape == (0, 3)
for call, kind, words in (
    (lambda: a.reshape(4), ValueError, "has no shape"),
    (lambda: a.reshape(-1, -1), ValueError, "has no shape"),
    (lambda: a[9], IndexError, ""),
    (lambda: a[0, 0], IndexError, "2 indices for an array of 1 axes"),
    (lambda: a[np.array([1])], IndexError, "take(array, indices)"),
    (lambda: a.set(np.zeros(6)), ValueError, "convert it"),
    (lambda: a.set(np.zeros(5, "f4")), ValueError, "was given (5,)"),
    (lambda: a.get(np.zeros(6)), ValueError, "was given one of"),
    (lambda: bool(a), ValueError, "use .any() or .all()"),
    (lambda: np.asarray(a), TypeError, ".get() makes"),
    (lambda: gpuarray.empty(3, object), TypeError, "Python objects"),
    (lambda: gpuarray.empty(-3), ValueError, "no side below 0"),
    (lambda: gpuarray.GPUArray(9, "f4", gpudata=a.gpudata), ValueError, "has 24"),
    (lambda: a.bind_to_texref(None), NotImplementedError, "__ldg"),
    (lambda: {a}, TypeError, "unhashable"),
    (lambda: gpuarray.multi_take, AttributeError, "left out"),
):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
""",
    )


def test_contexts_devices_and_declarations(script):
    simulated(
        script,
        """
import threading
from pycuda.tools import *
from pycuda import tools
cuda.init()
device = cuda.Device(0)
assert device == cuda.Device(device.pci_bus_id()) and cuda.Device.count() >= 1
assert device.warp_size == 32 == device.get_attribute(cuda.device_attribute.WARP_SIZE)
assert device.compute_capability() >= (7, 5) and device.total_memory() > 0 and device.name()
assert {"WARP_SIZE", "MAX_THREADS_PER_BLOCK"} <= {str(name) for name in device.get_attributes()}
context = device.make_context()
assert cuda.Context.get_current() is context
inner = device.make_context()
context.synchronize()
cuda.Context.pop()
assert cuda.Context.get_current() is context
context.pop()
assert cuda.Context.get_current() is None
other = []
thread = threading.Thread(target=lambda: other.append(device.make_context()))
thread.start(), thread.join()
assert other and cuda.Context.get_current() is None
calls = []
@tools.context_dependent_memoize
def made(size, by=1):
    calls.append(size)
    return size
assert made(3) == made(3) == 3 and made(3, by=2) == 3 and len(calls) == 2
tools.clear_context_caches()
assert made(3) == 3 and len(calls) == 3
assert tools.DeviceData().align_dtype(17, 4) == 32
arg = tools.parse_c_arg("const unsigned long long  *__restrict__ x")
assert (arg.dtype, arg.name, arg.struct_char) == (np.uint64, "x", "P")
assert tools.parse_c_arg("pycuda::complex< float > z").dtype == np.complex64
assert tools.get_arg_type("unsigned n") == "I" and tools.dtype_to_ctype(np.int8) == "signed char"
assert tools.parse_c_arg("float3 p").dtype == gpuarray.vec.float3
assert gpuarray.vec.make_float3(1, 2, 3)["z"] == 3
for call, kind, words in (
    (lambda: tools.parse_c_arg("Unknown x"), TypeError, "get_or_register_dtype"),
    (lambda: tools.dtype_to_ctype([("a", "i4")]), TypeError, "get_or_register_dtype"),
    (lambda: gpuarray.vec.make_float3(1), TypeError, "takes 3 numbers"),
    (lambda: cuda.Device(7), cuda.LogicError, "there is no device 7"),
    (lambda: device.nonsense, AttributeError, "has no nonsense"),
    (cuda.Context.pop, cuda.Error, "no context"),
    (lambda: tools.OccupancyRecord, AttributeError, "suggest_block"),
    (lambda: context.set_limit(1, 2), NotImplementedError, "left as they are"),
):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
""",
    )
