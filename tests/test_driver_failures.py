"""Calls of the driver that fail in the middle, and what a driver and a cuBLAS can lack: the fake
ones say so, and gpukern says what it was doing and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes import HELPERS, NEEDS_FAKE, answers, compiled, with_cublas
from gpukern import _core

pytestmark = NEEDS_FAKE
HERE = Path(__file__).resolve().parent
HOPPER = pytest.mark.skipif(
    not {"90", "90a"} & set(_core.build_report()["architectures"]),
    reason="this build has no code for 9.0",
)


@pytest.fixture
def failures(on_fake):
    """The lines of failures that code prints by fails() or print(json.dumps())."""

    def run(code, **settings):
        done = on_fake(HELPERS + code, **settings)
        assert done.stderr == ""
        return answers(done)

    return run


# What is called, which function of the driver fails with what, and words of the sentence.
FAILING = {
    "the memory that is free is unknown": (
        "fail('cuMemAllocFromPoolAsync', 2, 0, 9); fail('cuMemAlloc_v2', 2, 0, 9)\n"
        "fail('cuMemGetInfo_v2', 999, 0, 9)",
        "gk.empty, 3",
        ("empty: ", "allocating device memory", "CUDA_ERROR_OUT_OF_MEMORY"),
    ),
    "an error without a text": (
        "fail('cuLaunchKernelEx', 12345)",
        "gk.add, x, x",
        ("add: ", "gk_add_f32", "no description"),
    ),
    "the stream's capture is unknown": (
        "fail('cuStreamIsCapturing', 999)",
        "lambda: gk.add(x, x, stream=at(1001)),",
        ("add: ", "asking whether the stream is being captured", "CUDA_ERROR_UNKNOWN"),
    ),
    "a context that cannot be current": (
        "fail('cuCtxSetCurrent', 999)",
        "_core.make_current,",
        ("make_current: ", "choosing the device", "CUDA_ERROR_UNKNOWN"),
    ),
    "a copy to another device": (
        "fail('cuMemcpyPeerAsync', 999)",
        "gk.to_device, beside",
        ("to_device: ", "copying from one device to another", "CUDA_ERROR_UNKNOWN"),
    ),
    "a device that has no name": (
        "fail('cuDeviceGetName', 999)",
        "_core.devices,",
        ("device_info: ", "device 0 could not be read", "CUDA_ERROR_UNKNOWN"),
    ),
}


@pytest.mark.parametrize("case", FAILING)
def test_a_call_that_fails(case, failures):
    plant, call, words = FAILING[case]
    code = f"""
with gk.device(1): beside = gk.to_device(a)
x = gk.to_device(a)
gk.add(x, x), gk.to_device(beside)  # whose kernels are modules
before = live(), _core.live_bytes()
{plant}
fails(({call}))
driver.fake_heal()
assert (live(), _core.live_bytes()) == before
assert (gk.add(x, x).to_host() == 2 * a).all() and (gk.to_device(beside).to_host() == a).all()
assert [device["name"] for device in _core.devices()] == ["Fake GPU 0", "Fake GPU 1"]
"""
    [[kind, sentence]] = failures(code, FAKE_DEVICES=2)
    assert kind == "CudaError"
    for word in words:
        assert word in sentence


CAPTURED = """
s = gk.Stream()
x = gk.to_device(a, s)
turned, out = gk.empty((33, 1472), "f4", stream=s).T, gk.empty(())
def captured(call):
    driver.fake_capture(ctypes.c_void_p(s.cuda_stream), 0)
    call()
    driver.fake_capture(None, 0)
    driver.fake_graph_gone()
    gk.synchronize()
    return live(), _core.live_bytes()
def add():
    gk.add(x, x, stream=s)
def add_up():  # a copy of what is turned
    gk.sum(turned, out=out, stream=s)
before = captured({call})
{plant}
assert captured(lambda: fails(({call},))) == before
driver.fake_heal()
assert captured({call}) == before
"""


@pytest.mark.parametrize(
    ("plant", "kind"),
    [
        ("fail('cuMemAllocFromPoolAsync', 2, 0, 2)", "MemoryError"),
        ("fail('cuStreamSynchronize', 999)", "CudaError"),
        ("fail('cuStreamGetCaptureInfo_v3', 999)", "CudaError"),
        ("fail('cuUserObjectCreate', 999)", "CudaError"),
        ("fail('cuGraphRetainUserObject', 999)", "CudaError"),
    ],
)
@pytest.mark.parametrize(("call", "operation"), [("add", "add"), ("add_up", "sum")])
def test_memory_of_a_graph_that_is_not_to_be_had(call, operation, plant, kind, failures):
    [[got, sentence]] = failures(CAPTURED.format(call=call, plant=plant))
    assert got == kind
    assert sentence.startswith(f"{operation}: ")


def test_what_a_graph_keeps_outlives_the_module(failures):
    """Its destructor runs on a thread of the driver, whenever that likes."""
    code = """
s, x, dies = gk.Stream(), gk.to_device(a), gk.to_device(a, at(1001))
driver.fake_capture(ctypes.c_void_p(s.cuda_stream), 0)
made = gk.add(x, x, stream=s)
driver.fake_capture(None, 0)
del made, dies, s, x
for module in [module for module in sys.modules if module.startswith("gpukern")]:
    del sys.modules[module]
del gk, _core
gc.collect()
driver.fake_graph_gone()
print(json.dumps(live()["objects"]))
"""
    assert failures(code) == 0


def test_copies_between_devices(failures):
    code = """
with gk.device(1): beside = gk.to_device(long)
there = gk.to_device(beside)
assert (there.device, beside.device) == (0, 1) and (there.to_host() == long).all()
assert gk.to_device(beside[:0]).shape == (0,)
print(json.dumps([_core.make_current(), _core.simulator_reason()]))
"""
    assert failures(code, FAKE_DEVICES=2) == [0, None]


@pytest.mark.parametrize("device", ["cuda", None])
def test_a_device_that_is_not_there(device, failures):
    code = """
fails((_core.choose_device, 3), (_core.choose_device, 1 << 20), (gk.add, a, a))
"""
    (kind, sentence), (other, _), (works, _) = failures(code, device=device, FAKE_DEVICES=2)
    assert (kind, other, works) == ("ValueError", "ValueError", "none")
    assert "there is no device 3: 2 are visible" in sentence


@pytest.mark.parametrize(
    ("absent", "words"),
    [
        (("cuDriverGetVersion",), ("cuDriverGetVersion", "r580")),
        (("cuGetErrorName",), ("cuGetErrorName", "r580")),
    ],
)
def test_a_library_that_lacks_what_is_asked_first(absent, words, on_fake, tmp_path):
    folder = compiled(tmp_path, *[f"-D{name}=absent" for name in absent])
    [[kind, sentence]] = answers(on_fake("fails((gk.add, a, a))", folder, FAKE_INIT=100))
    assert kind == "CudaError"
    for word in ("add: ", *words):
        assert word in sentence


def test_every_report_names_what_is_wrong_with_the_driver(on_fake):
    code = """
fails((_core.rows,), (_core.devices,), (_core.device_count,), (_core.live_bytes,),
      (_core.pinned_bytes,), (_core.make_current,), (gk.Stream,), (gk.synchronize,),
      (_core.cublas_report,))
"""
    failures = answers(on_fake(code, FAKE_INIT=999))
    for kind, sentence in failures:
        assert kind == "CudaError"
        assert "CUDA_ERROR_UNKNOWN" in sentence


def test_a_child_of_a_fork_after_a_gpu_was_used(on_fake):
    code = """
x = gk.to_device(a)
child = os.fork()
if child == 0:
    fails((gk.add, a, a), (gk.add, x, x), (x.to_host,), (gk.empty, 3))
    sys.stdout.flush()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert (gk.add(x, x).to_host() == 2 * a).all()
"""
    for kind, sentence in answers(on_fake(code)):
        assert kind == "CudaError"
        for word in ("forked after the GPU had been used", "spawn", "forkserver"):
            assert word in sentence


# --- cuBLAS and the copy engine ---------------------------------------------------------------


def test_a_cublas_that_is_too_old(on_fake, tmp_path):
    folder = with_cublas(tmp_path, "-DcublasSetWorkspace_v2=absent")
    code = """
from gpukern.machine import libraries
libraries.find_cublas = lambda: [os.environ["FAKE_CUBLAS"]]  # whatever else is installed
fails((lambda: gk.matmul(a, a.T.copy(), variant="cublas"),))
print(json.dumps(_core.cublas_report()))
"""
    library = folder / "libcublas.so.13"
    [[kind, sentence]], report = answers(on_fake(code, beside=(folder,), FAKE_CUBLAS=library))
    assert kind in ("ValueError", "CudaError")
    for words in (sentence, report["problem"]):
        assert "is older than 12.0" in words
        assert "pip install" in words


def test_a_cublas_that_is_newer_than_the_driver_is_left(on_fake, tmp_path):
    newer = with_cublas(tmp_path) / "libcublas.so.13"
    older = tmp_path / "libcublas.so.12"
    code = """
from gpukern.machine import libraries
libraries.find_cublas = lambda: os.environ["FAKE_CUBLAS"].split(":")
fails((lambda: gk.matmul(a, a.T.copy(), variant="cublas"),))
print(json.dumps(_core.cublas_report()["library"]))
"""
    settings = {"FAKE_CUBLAS": f"{newer}:{older}", "FAKE_VERSION": 12090}
    [[kind, sentence]], found = answers(on_fake(code, beside=(tmp_path,), **settings))
    assert kind != "none" and "gpukern[cublas12]" in sentence and not found
    older.write_bytes(newer.read_bytes())
    [[kind, _]], found = answers(on_fake(code, beside=(tmp_path,), **settings))
    assert kind == "none" and found == str(older)


def test_a_search_for_cublas_that_fails(on_fake):
    code = """
from gpukern.machine import libraries
def find_cublas(): raise OSError("no folder to look at")
libraries.find_cublas = find_cublas
works = bool((gk.add(a, a) == a + a).all())
print(json.dumps([_core.cublas_report()["problem"] is not None, works]))
"""
    done = on_fake(code)
    assert answers(done) == [True, True]
    assert "no folder to look at" in done.stderr


FIND_CUBLAS = """
from gpukern.machine import libraries
libraries._pathfinder = lambda name: None  # whichever is installed here
"""
EACH_FAULT = """
x, y = gk.to_device(np.ones((256, 128), dtype)), gk.to_device(np.ones((128, 256), dtype))
def product():
    gk.matmul(x, y, variant=variant)
product()
before, raised = (live(), _core.live_bytes()), 0
for number in range(1, 100):
    _core.fail_call(number)
    kind, sentence = failure(product)
    struck = _core.fail_call(0)
    assert (live(), _core.live_bytes()) == before, number
    if not struck:
        break
    assert kind in ("CudaError", "MemoryError") and "planted fault" in sentence, sentence
    raised += 1
print(json.dumps([raised, failure(product)[0]]))
"""


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_every_step_of_a_product_by_cublas_may_fail(dtype, failures, tmp_path):
    folder = with_cublas(tmp_path)
    code = f"dtype, variant = {dtype!r}, 'cublas'\n{EACH_FAULT}"
    named = {"FAKE_CUBLAS": folder / "libcublas.so.13"}
    raised, after = failures(FIND_CUBLAS + code, beside=(folder,), **named)
    assert raised >= 2, "memory and the product"
    assert after == "none"


@pytest.mark.parametrize(("code", "memory"), [(1, 500 << 20), (3, 1 << 30)])
def test_a_handle_that_there_was_no_memory_for_is_tried_again(code, memory, failures, tmp_path):
    """By name an error; otherwise another kernel has that one product, and cuBLAS the next."""
    folder = with_cublas(tmp_path)
    script = f"""
x, y = gk.to_device(np.ones((256, 128), "float32")), gk.to_device(np.ones((128, 256), "float32"))
def made_by(variant=None):
    _core.profile_start()
    gk.matmul(x, y, variant=variant)
    return [call["variant"] for call in _core.profile_stop()]
fail("cublasCreate_v2", {code}, times=3)
first = failure(gk.matmul, x, y, variant="cublas")
print(json.dumps([first, [made_by() for _ in range(4)], made_by("cublas")]))
"""
    named = {"FAKE_CUBLAS": folder / "libcublas.so.13", "FAKE_MEMORY": memory}
    (kind, sentence), later, last = failures(FIND_CUBLAS + script, beside=(folder,), **named)
    assert kind == "MemoryError"
    assert "matmul: variant 'cublas'" in sentence and "of the device are free" in sentence
    assert later[0] != ["cublas"] and later[-1] == last == ["cublas"]


@HOPPER
def test_every_step_of_a_product_by_the_copy_engine_may_fail(failures):
    code = f"dtype, variant = 'float32', 'tma'\n{EACH_FAULT}"
    raised, after = failures(code, FAKE_CAPABILITY=90)
    assert raised >= 4, "memory, the workspace, two matrices that are described, the launch"
    assert after == "none"


@pytest.mark.skipif(
    "90a" not in _core.build_report()["architectures"], reason="this build has no code for 9.0a"
)
@pytest.mark.parametrize(
    ("variant", "dtype", "steps"),
    [
        ("wgmma", "float16", 5),  # memory, three matrices that are described, the launch
        ("wgmma_cluster", "float16", 5),
        ("f16x3", "float32", 12),  # two matrices, the room and its zeros, and four launches more
        ("bf16x6", "float32", 11),
    ],
)
def test_every_step_of_a_product_by_warpgroups_may_fail(failures, variant, dtype, steps):
    code = f"dtype, variant = {dtype!r}, {variant!r}\n{EACH_FAULT}"
    raised, after = failures(code, FAKE_CAPABILITY=90)
    assert raised >= steps
    assert after == "none"


@HOPPER
def test_a_matrix_that_the_driver_does_not_describe(failures):
    code = """
x = gk.to_device(np.ones((256, 128), np.float32))
gk.matmul(x, x.T, variant="tma")
fail("cuTensorMapEncodeTiled", 1)
before = live(), _core.live_bytes()
fails((lambda: gk.matmul(x, x.T, variant="tma"),))
assert (live(), _core.live_bytes()) == before
gk.matmul(x, x.T, variant="tma")
"""
    [[kind, sentence]] = failures(code, FAKE_CAPABILITY=90)
    assert kind == "CudaError"
    for word in ("matmul: ", "describing a matrix for the copy engine", "INVALID_VALUE"):
        assert word in sentence


# --- what a driver leaves to its callers --------------------------------------------------------


def test_a_number_that_is_no_streams_address(failures):
    """A driver would follow it."""
    code = """
x, event, stream = gk.to_device(a), gk.Event(), gk.Stream()
stream.begin_capture()
gk.add(x, x, out=x, stream=stream)
graph, lent = stream.end_capture(), x.__cuda_array_interface__
class Lent:
    __cuda_array_interface__ = {**lent, "stream": 1 << 40}
fails((lambda: gk.add(x, x, stream=1 << 40),), (event.record, 77), (graph.launch, 1 << 40),
      (gk.synchronize, 1 << 40), (gk.add, Lent(), x))
graph.launch(stream); event.record(at(1001)); gk.synchronize()
"""
    functions = ("add", "Event.record", "Graph.launch", "synchronize", "add")
    for (kind, sentence), function in zip(failures(code), functions, strict=True):
        assert kind == "ValueError"
        assert sentence.startswith(f"{function}: stream ")
        assert "is not the handle of a stream" in sentence


def test_an_event_that_is_recorded_again_while_it_is_read(failures):
    code = """
first, last = gk.Event(), gk.Event()
first.record(); last.record()
fail("cuEventElapsedTime", 600, 0, 3)  # not ready
print(json.dumps(last.seconds_since(first) >= 0))
"""
    assert failures(code) is True


def test_the_host_gets_a_copy_by_dlpack(failures):
    code = """
x = gk.to_device(a)
class ToTheHost:
    def __dlpack__(self, **named): return x.__dlpack__(**{**named, "dl_device": (1, 0)})
    def __dlpack_device__(self): return 1, 0
host = np.from_dlpack(ToTheHost())
assert (host == a).all() and not host.flags.owndata
fails((lambda: x.__dlpack__(dl_device=(1, 0), copy=False),),
      (lambda: x.__dlpack__(dl_device=(1, 1)),))
"""
    (kind, sentence), (other, asked) = failures(code)
    assert kind == other == "BufferError"
    assert "copy=False" in sentence
    assert "dl_device asks for (1, 1)" in asked
