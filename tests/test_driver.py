"""What gpukern says when the driver is missing, broken, too old, or loses its device.

A fake libcuda.so.1, compiled from tests/fake, stands first in the loader's search.
"""

from __future__ import annotations

import ctypes
from importlib.metadata import version
from pathlib import Path

import pytest

from fakes import NEEDS_FAKE, PREAMBLE, answers, compiled
from gpukern import _core

pytestmark = NEEDS_FAKE
BUILD = _core.build_report()
NEEDS_PTX = pytest.mark.skipif(not BUILD["ptx"], reason="this build has no PTX")


# What is wrong, as the environment of the fake, and words of the sentence that follows.
BROKEN = {
    "no device": ({"FAKE_INIT": 100}, ("no GPU", "CUDA_ERROR_NO_DEVICE")),
    "hidden devices": (
        {"FAKE_INIT": 100, "CUDA_VISIBLE_DEVICES": ""},
        ("CUDA_VISIBLE_DEVICES", "CUDA_ERROR_NO_DEVICE"),
    ),
    "a hidden device": (
        {"FAKE_INIT": 100, "CUDA_VISIBLE_DEVICES": "7"},
        ("CUDA_VISIBLE_DEVICES", '"7"'),
    ),
    "a mismatch of library and module": (
        {"FAKE_INIT": 803},
        ("cuInit", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    ),
    "a system that is not ready": ({"FAKE_INIT": 802}, ("CUDA_ERROR_SYSTEM_NOT_READY",)),
    "anything else": ({"FAKE_INIT": 999}, ("CUDA_ERROR_UNKNOWN",)),
    "an error without a name": ({"FAKE_INIT": 12345}, ("cuInit",)),
    "a stub for linking": ({"FAKE_VERSION_FAILS": 34}, ("CUDA_ERROR_STUB_LIBRARY", "stub")),
    "an old driver": ({"FAKE_VERSION": 11040}, ("CUDA 11.4", "12.0", "r580")),
    "a driver a little too old": ({"FAKE_VERSION": 11080}, ("CUDA 11.8", "12.0", "r580")),
    "no devices": ({"FAKE_DEVICES": 0}, ("no GPU", "CUDA_VISIBLE_DEVICES")),
    "an old GPU": ({"FAKE_CAPABILITY": 70}, ("7.0", "7.5")),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_driver_is_an_error_where_a_gpu_was_asked_for(case, on_fake):
    settings, words = BROKEN[case]
    code = "fails((gk.add, a, a), (gk.empty, 3), (_core.backend,), (gk.add, a, a))"
    for name, sentence in answers(on_fake(code, **settings)):
        assert name == "CudaError"
        for word in words:
            assert word in sentence
    assert sentence.startswith("add: ")


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_driver_means_the_simulator_where_nobody_asked(case, on_fake):
    settings, words = BROKEN[case]
    code = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    right = [bool((gk.add(a, a) == a + a).all()) for _ in range(3)]
print(json.dumps([right, [[w.category.__name__, str(w.message)] for w in caught],
                  _core.backend(), _core.simulator_reason()]))
"""
    right, caught, backend, reason = answers(on_fake(code, device=None, **settings))
    assert right == [True] * 3
    assert backend == "sim"
    assert len(caught) == 1
    category, sentence = caught[0]
    assert category == "SimulatorWarning"
    assert reason in sentence
    for word in (*words, "simulator", "GPUKERN_DEVICE"):
        assert word in sentence


@pytest.mark.parametrize("case", BROKEN)
def test_the_report_never_raises(case, on_fake, fake):
    settings, words = BROKEN[case]
    report = answers(on_fake("print(json.dumps(_core.driver_report()))", **settings))
    assert set(report) == {"library", "version", "status", "devices", "problem"}
    assert report["library"] == str(fake / "libcuda.so.1")
    if "FAKE_VERSION_FAILS" not in settings:
        assert report["version"] == settings.get("FAKE_VERSION", 13000)
    for word in words:
        assert word in report["problem"]


def test_the_report_on_a_driver_that_works(on_fake, fake):
    report = answers(on_fake("print(json.dumps(_core.driver_report()))", FAKE_DEVICES=3))
    assert report == {
        "library": str(fake / "libcuda.so.1"),
        "version": 13000,
        "status": "CUDA_SUCCESS",
        "devices": 3,
        "problem": None,
    }


@pytest.mark.parametrize("symbol", ["cuMemPoolCreate", "cuEventElapsedTime_v2", "cuInit"])
def test_a_library_without_a_function(symbol, on_fake, tmp_path):
    folder = compiled(tmp_path, f"-D{symbol}=absent")
    run = on_fake("fails((gk.add, a, a))\nprint(json.dumps(_core.driver_report()))", folder)
    [[name, sentence]], report = answers(run)
    assert name == "CudaError"
    for word in ("add: ", symbol, "r580", str(tmp_path)):
        assert word in sentence
    assert symbol in report["problem"]


# The functions that came with CUDA 12.3, 12.4 and 12.8.
NEW = ("cuStreamGetCaptureInfo_v3", "cuFuncLoad", "cuFuncGetParamInfo", "cuEventElapsedTime_v2")
WORK = """
assert np.array_equal(gk.add(a, a), a + a)
device = gk.to_device(a)
stream = gk.Stream()
stream.begin_capture()
kept = gk.add(device, device, stream=stream)
graph = stream.end_capture()
graph.launch()
del kept, graph
begin, end = gk.Event(), gk.Event()
begin.record(stream), end.record(stream)
assert end.seconds_since(begin) == 0.0
"""


@NEEDS_PTX
@pytest.mark.parametrize("version", [12000, 12040, 12090])
def test_a_driver_from_r525_on_does_all_work(version, on_fake, tmp_path):
    count = {12000: 4, 12040: 1, 12090: 0}[version]
    gone = {12000: NEW, 12040: NEW[3:], 12090: ()}[version]
    assert len(gone) == count
    folder = compiled(tmp_path, *[f"-D{name}=absent{i}" for i, name in enumerate(gone)])
    done = on_fake(WORK, folder, FAKE_VERSION=version)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_a_driver_from_r525_on_needs_the_older_functions(on_fake, tmp_path):
    for name in ("cuEventElapsedTime", "cuStreamGetCaptureInfo_v2"):
        flags = [f"-D{each}=absent{i}" for i, each in enumerate((*NEW, name))]
        run = on_fake("fails((gk.add, a, a))", compiled(tmp_path, *flags), FAKE_VERSION=12000)
        [[kind, sentence]] = answers(run)
        assert kind == "CudaError" and name in sentence and "r580" in sentence


@pytest.mark.parametrize("device", ["cuda", None])
def test_a_library_that_cannot_be_loaded(device, on_fake, tmp_path):
    (tmp_path / "libcuda.so.1").write_bytes(b"\x7fELF is all that is left of it")
    code = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    name, sentence = failure(gk.add, a, a)
print(json.dumps([name, sentence or str(caught[0].message), _core.driver_report()["problem"]]))
"""
    name, sentence, problem = answers(on_fake(code, tmp_path, device))
    assert name == ("none" if device is None else "CudaError")
    for word in ("no NVIDIA driver", "libcuda.so.1", "r580"):
        assert word in sentence
        assert word in problem


def has_libcuda() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.mark.skipif(has_libcuda(), reason="this machine has a driver")
def test_no_driver_at_all(script):
    code = PREAMBLE + "fails((gk.add, a, a))\nprint(json.dumps(_core.driver_report()))"
    [[name, sentence]], report = answers(script(code, GPUKERN_DEVICE="cuda"))
    assert name == "CudaError"
    for word in ("add: ", "no NVIDIA driver", "libcuda.so.1", "r580"):
        assert word in sentence
    assert (report["library"], report["version"], report["devices"]) == (None, None, 0)


# --- a driver that works until it does not ----------------------------------------------------


def test_memory_goes_there_and_back_on_the_fake(on_fake):
    code = """
device = gk.to_device(a)
assert (device.to_host() == a).all()
assert (gk.to_device(device).to_host() == a).all()
gk.add(device, device)  # the fake's kernels do nothing
assert _core.backend() == "cuda"
assert _core.devices()[0]["name"] == "Fake GPU 0"
assert _core.devices()[0]["capability"] == 90
live = _core.live_bytes()
del device
print(json.dumps(live - _core.live_bytes()))
"""
    assert answers(on_fake(code)) == 48


def test_a_fault_in_a_kernel_names_it_and_stays(on_fake):
    code = """
device = gk.to_device(a)
gk.add(device, device, out=device)  # nobody has waited for it yet
fails((gk.synchronize,), (gk.add, device, device), (gk.to_device, a), (device.to_host,),
      (gk.empty, 3), (gk.sum, a), (repr, device))
del device
"""
    for name, sentence in answers(on_fake(code, FAKE_FAULT=700)):
        assert name == "DeviceLostError"
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in sentence
        assert "gk_add_f32" in sentence


@pytest.mark.parametrize("code_of_fault", [700, 719])
def test_a_call_on_host_arrays_meets_the_fault_itself(on_fake, code_of_fault):
    code = "before = a.copy()\nfails((gk.matmul, a, a.T))\nassert (a == before).all()"
    [[name, sentence]] = answers(on_fake(code, FAKE_FAULT=code_of_fault))
    assert name == "DeviceLostError"
    assert sentence.startswith("matmul: ")
    assert "gk_matmul" in sentence or "cublas" in sentence.lower()


def test_strict_blames_the_call(on_fake):
    code = """
device = gk.to_device(a)
with gk.strict():
    fails((gk.add, device, device))
"""
    [[name, sentence]] = answers(on_fake(code, FAKE_FAULT=700))
    assert name == "DeviceLostError"
    assert sentence.startswith("add: ")
    assert "gk_add_f32" in sentence


def test_a_launch_that_meets_the_fault_of_the_kernel_before(on_fake):
    code = """
device = gk.to_device(a)
gk.add(device, device)
os.environ["FAKE_LAUNCH"] = "700"
fails((gk.transpose, device))
os.environ["FAKE_LAUNCH"] = "0"
fails((gk.add, device, device))
"""
    (first,), (second,) = answers(on_fake(code))
    assert [first[0], second[0]] == ["DeviceLostError"] * 2
    assert "gk_add_f32" in first[1]


def test_the_very_first_launch_meets_a_fault(on_fake):
    [[name, sentence]] = answers(on_fake("fails((gk.add, a, a))", FAKE_LAUNCH=700))
    assert name == "DeviceLostError"
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in sentence
    assert "another library" in sentence, "no kernel of ours can have been it"
    assert "gpukern launched" not in sentence


def test_an_error_without_a_name_on_a_device_that_is_full(on_fake):
    """As the driver has it for a launch that finds no memory; with room there is nothing to say."""
    code = """
device = gk.to_device(a)
os.environ["FAKE_LAUNCH"] = "999"
fails((gk.add, device, device))
"""
    [[name, sentence]] = answers(on_fake(code, FAKE_MEMORY=48 << 20))
    assert name == "CudaError"
    for word in ("add: ", "gk_add_f32", "CUDA_ERROR_UNKNOWN", "the device is full", "bytes of its"):
        assert word in sentence
    [[name, sentence]] = answers(on_fake(code))
    assert name == "CudaError"
    assert "full" not in sentence


def test_a_launch_that_fails_loses_nothing(on_fake):
    code = """
device = gk.to_device(a)
live = _core.live_bytes()
os.environ["FAKE_LAUNCH"] = "701"
fails((gk.add, a, a), (gk.add, device, device))
os.environ["FAKE_LAUNCH"] = "0"
gk.add(device, device)
assert (device.to_host() == a).all()
assert _core.live_bytes() == live, (_core.live_bytes(), live)
"""
    for name, sentence in answers(on_fake(code)):
        assert name == "CudaError"
        for word in ("add: ", "gk_add_f32", "grid", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
            assert word in sentence


def test_a_run_is_copied_where_there_is_no_memory_for_a_kernel(on_fake):
    code = """
there, out = gk.to_device(np.arange(1 << 20, dtype=np.uint8)), gk.empty((1 << 20,), "uint8")
out[...] = there
assert (out.to_host() == np.arange(1 << 20, dtype=np.uint8)).all()
fails((gk.add, out, out))
"""
    [[name, sentence]] = answers(on_fake(code, FAKE_MODULE=2))
    assert name == "MemoryError" and "loading the kernel failed" in sentence


def test_operands_are_taken_as_they_lie_where_there_is_no_memory_to_turn_them(on_fake):
    code = """
there, out = gk.to_device(np.zeros((1024, 1100), np.uint8)), gk.empty((1100, 1024), "uint8")
gk.add(there.T, out, out=out)
there.to_host()
taken = [gk.empty((1 << 20,), "uint8"), gk.empty((1 << 20,), "uint8")]
gk.add(there.T, out, out=out)
fails((gk.empty, (1_126_400,), "uint8"))
"""
    [[name, _]] = answers(on_fake(code, FAKE_MEMORY=5_000_000))
    assert name == "MemoryError"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (209, ("9.0", "GPUKERN_ARCHS=90")),
        (222, ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION",)),
    ],
)
def test_kernels_that_cannot_be_loaded(on_fake, status, words):
    code = "fails((gk.add, a, a))\n"
    # That machine code is for other GPUs is remembered; what else stood against it may be over.
    if BUILD["ptx"] or status != 209:
        code += 'os.environ["FAKE_MODULE"] = "0"\ngk.add(a, a)\n'
    [[name, sentence]] = answers(on_fake(code, FAKE_MODULE=status))
    assert name == "CudaError"
    assert sentence.startswith("add: ")
    for word in words:
        assert word in sentence


LOADED = """
import ctypes
from importlib.metadata import version
from pathlib import Path
def loaded():
    driver = ctypes.CDLL("libcuda.so.1")
    return (ctypes.c_char * 4096).in_dll(driver, "fake_modules").value.decode().split()
"""


@NEEDS_PTX
def test_a_kernels_own_ptx_is_loaded_where_no_machine_code_serves(on_fake):
    code = """
device = gk.to_device(a)
steps = [loaded()]
for name in ("add", "add", "subtract", "max", "min"):
    getattr(gk, name)(device)  if name in ("max", "min") else getattr(gk, name)(device, device)
    steps.append(loaded())
print(json.dumps(steps))
"""
    settings = {"FAKE_MACHINE_CODE": 209, "FAKE_CAPABILITY": BUILD["ptx"][-1]}
    none, first, again, *others = answers(on_fake(LOADED + code, **settings))
    assert none == []
    assert first == again == [f"p{BUILD['ptx'][-1]}"], "no other kernel is compiled"
    assert len(others[0]) == 2
    assert others[1] == others[2], "max and min are one kernel"


@pytest.mark.skipif(not BUILD["machine_code"], reason="this build has no machine code")
def test_machine_code_is_loaded_a_file_at_a_time(on_fake):
    code = """
device = gk.to_device(a)
gk.add(device, device)
gk.add(device, device, variant="f32")
print(json.dumps(loaded()))
"""
    architecture = BUILD["machine_code"][0].rstrip("af")
    done = answers(on_fake(LOADED + code, FAKE_CAPABILITY=architecture))
    assert done[0] == f"m{architecture}"
    assert all(image[0] == "m" for image in done)


def test_a_device_that_is_too_small(on_fake):
    code = """
b = np.ones(200, np.float32)
fails((gk.empty, 300), (gk.to_device, np.ones(300, np.float32)), (gk.transpose, b))
assert _core.live_bytes() == 0
gk.add(b, b)  # a small one works on the host's memory, and needs none of the device's
assert (gk.to_device(b).to_host() == b).all()
"""
    failures = answers(on_fake(code, FAKE_MEMORY=1000))
    for (name, sentence), operation in zip(
        failures, ("empty", "to_device", "transpose"), strict=True
    ):
        assert name == "MemoryError"
        assert sentence.startswith(f"{operation}: ")
        assert "1000" in sentence, "what there is"
    assert "1200" in failures[0][1], "what was asked"


def test_a_device_with_less_shared_memory_than_a_kernel_may_have(right):
    """Sums along columns that are runs get what there is, and not what their kernel may have."""
    right("gk.sum(gk.empty((700, 5003)).T, 0)", FAKE_KERNELS=0, FAKE_SHARED=65536)


@pytest.mark.skipif(
    not {"90", "90a"} & set(BUILD["architectures"]),
    reason="this build has no code for 9.0, which the variant with a workspace needs",
)
def test_a_workspace_lasts_as_long_as_its_launch(on_fake):
    """In panels, which the product is cut into, as well as whole."""
    code = """
a, b = np.ones((1024, 1024), np.float32), np.ones((1024, 512), np.float32)
gk.matmul(a, b, variant="tma")
assert _core.live_bytes() == 0
gk.matmul(gk.to_device(a), gk.to_device(b), variant="tma")
assert _core.live_bytes() == 0
print(json.dumps(_core.live_bytes()))
"""
    assert answers(on_fake(code, FAKE_CAPABILITY=90)) == 0


def test_a_pool_that_grows_no_more(on_fake):
    """What the pool has no room for is taken beside it, and is given back like the rest."""
    code = """
b = np.ones(200, np.float32)
c = gk.to_device(b)
gk.add(c, c)
assert (c.to_host() == 1).all()
gk.transpose(np.ones((3, 40), np.float32))
fails((gk.empty, 3000))
del c
assert _core.live_bytes() == 0
gk.empty(2500)  # nothing of the rest was kept
"""
    failures = answers(on_fake(code, FAKE_POOL=900, FAKE_MEMORY=10_000))
    assert [name for name, _ in failures] == ["MemoryError"]


def test_every_device_is_described(on_fake):
    devices = answers(on_fake("print(json.dumps(_core.devices()))", FAKE_DEVICES=2))
    assert [device["name"] for device in devices] == ["Fake GPU 0", "Fake GPU 1"]
    assert [device["ordinal"] for device in devices] == [0, 1]
    assert len({device["uuid"] for device in devices}) == 2
    for device in devices:
        assert device["memory_total"] == 1 << 30
        assert device["attributes"]["WARP_SIZE"] == 32
        assert device["attributes"]["MULTIPROCESSOR_COUNT"] == 4
        assert len(device["attributes"]) > 100


def test_without_cublas_everything_else_works(on_fake):
    """cuBLAS itself, where it is installed, does not start on the fake driver either."""
    code = """
gk.add(a, a)
report = _core.cublas_report()
assert set(report) == {"library", "version", "problem"}
row = next(r for r in _core.rows() if r["variant"] == "cublas")
failed = failure(gk.matmul, a, a.T.copy(), variant="cublas")
print(json.dumps([report["problem"], row["runs"], row["why"], failed]))
"""
    problem, runs, why, (name, sentence) = answers(on_fake(code))
    assert problem
    assert not runs
    assert why
    assert name in ("ValueError", "CudaError")
    assert sentence.startswith("matmul: ")
    if "could not be" in problem or "not found" in problem:
        assert "pip install" in sentence


# --- what this machine tells of itself --------------------------------------------------------

ROW = {"op", "variant", "dtype", "symbol", "note", "minimum_capability", "threads", "tile"}
ROW |= {"alignment", "named", "runs", "why"}


def test_the_rows_of_the_table():
    rows = _core.rows()
    assert {row["op"] for row in rows} >= {
        "add",
        "sum",
        "sum_finish",
        "matmul",
        "transpose",
        "copy",
    }
    names = [(row["op"], row["variant"], row["dtype"]) for row in rows]
    assert len(set(names)) == len(names), "one row a variant"
    served: dict[str, set[str]] = {}
    for row in rows:
        served.setdefault(row["symbol"], set()).add(row["dtype"])
    served.pop(None, None)
    # Where no bit of the result depends on a sign, unsigned integers have the signed ones' kernel.
    shared = {frozenset(dtypes) for dtypes in served.values() if len(dtypes) > 1}
    assert shared == {frozenset((f"int{bits}", f"uint{bits}")) for bits in (8, 16, 32, 64)}
    for row in rows:
        assert set(row) == ROW
        assert row["note"]
        assert row["minimum_capability"] >= 75
        assert row["runs"] is (row["why"] is None)
        assert (row["symbol"] is None) == (row["variant"] == "cublas")
        if row["symbol"]:
            assert row["threads"] % 32 == 0
            assert 32 <= row["threads"] <= 1024
            assert len(row["tile"]) == 2
            assert min(row["tile"]) >= 1
            assert row["alignment"] in (1, 2, 4, 8, 16)


def test_the_devices_of_this_machine():
    devices = _core.devices()
    assert [device["ordinal"] for device in devices] == list(range(len(devices)))
    for device in devices:
        assert device["name"]
        assert device["capability"] >= 75
        assert 0 <= device["memory_free"] <= device["memory_total"]
        assert device["memory_total"] > 0
        assert device["attributes"]["WARP_SIZE"] == 32
        assert device["attributes"]["MAX_THREADS_PER_BLOCK"] == 1024
        major, minor = (device["attributes"][f"COMPUTE_CAPABILITY_{x}"] for x in ("MAJOR", "MINOR"))
        assert device["capability"] == 10 * major + minor


def test_the_build():
    report = _core.build_report()
    lists = {"architectures", "machine_code", "ptx", "families"}
    assert set(report) == {"version", "nvcc", "compiler", *lists}
    assert report["version"] == version("gpukern")
    assert len(set(report["families"])) == len(report["families"]) > 0
    assert {*report["machine_code"], *report["ptx"]} <= set(report["architectures"])
    assert report["nvcc"].startswith("13.")
    assert report["architectures"]
    assert all(isinstance(name, str) for name in report["architectures"])


# --- importing --------------------------------------------------------------------------------


def test_importing_maps_no_library_of_cuda(script):
    code = """
import gpukern, gpukern._core
mapped = open("/proc/self/maps").read()
print([name for name in ("libcuda.", "libcublas", "libnvrtc", "libcudart", "libnvidia")
       if name in mapped])
"""
    run = script(code, GPUKERN_DEVICE=None)
    assert (run.returncode, run.stdout.strip()) == (0, "[]"), run.stderr


def test_the_simulator_never_opens_the_driver(on_fake):
    code = """
gk.add(a, a); gk.variants(); _core.devices(); _core.rows(); _core.cublas_report()
print(json.dumps("libcuda." in open("/proc/self/maps").read()))
"""
    assert answers(on_fake(code, device="sim")) is False


@pytest.mark.parametrize("value", ["nonsense", "CUDA", "0", "cuda:0"])
def test_a_device_that_there_is_not(script, value):
    code = PREAMBLE + "fails((gk.add, a, a), (gk.empty, 3), (gk.add, a, a))"
    for name, sentence in answers(script(code, GPUKERN_DEVICE=value)):
        assert name == "ValueError"
        for word in ("GPUKERN_DEVICE", f'"{value}"', '"cuda"', '"sim"'):
            assert word in sentence


WARNINGS = """
import warnings, json
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import gpukern as gk, numpy as np
    from gpukern import _core
    imported = len(caught)
    a = np.ones(3, np.float32)
    for _ in range(3):
        gk.add(a, a); gk.to_device(a) + a; gk.sum(a)
names, files = [w.category.__name__ for w in caught], [w.filename for w in caught]
print(json.dumps([imported, names, files]))
"""


def test_the_warning_comes_once_and_from_the_callers_line(script, on_fake):
    assert answers(script(WARNINGS, GPUKERN_DEVICE="sim")) == [0, [], []]
    run = on_fake(WARNINGS, device=None, FAKE_INIT=100)
    assert answers(run) == [0, ["SimulatorWarning"], ["<string>"]]


def test_a_warning_that_is_an_error_stops_the_call_and_nothing_else(on_fake):
    code = """
warnings.simplefilter("error")
fails((gk.add, a, a), (gk.add, a, a))
"""
    first, second = answers(on_fake(code, device=None, FAKE_INIT=100))
    assert first[0] == "SimulatorWarning"
    assert second[0] == "none"


@pytest.mark.parametrize("name", ["GPUKERN_SIM_SEED", "GPUKERN_SIM_THREADS", "GPUKERN_SIM_MEMORY"])
@pytest.mark.parametrize("value", ["x", "-1", "1.5"])
def test_settings_of_the_simulator_that_are_no_numbers(script, name, value):
    code = PREAMBLE + "fails((gk.add, a, a))"
    [[kind, sentence]] = answers(script(code, GPUKERN_DEVICE="sim", **{name: value}))
    assert kind == "ValueError"
    for word in ("add: ", name, value):
        assert word in sentence


# --- forks ------------------------------------------------------------------------------------

FORKED_IN_THE_FIRST_CALL = """
import signal, threading, time
inside = os.environ["FAKE_PAUSE"]
first = threading.Thread(target=gk.empty, args=(3,))
first.start()
while not os.path.exists(inside): time.sleep(0.001)
child = os.fork()
if child == 0:
    signal.alarm(60)  # what hangs is ended
    warnings.simplefilter("ignore")
    answers = []
    def call():
        try:
            answers.append(["none", str(bool((gk.add(a, a) == a + a).all()))])
        except gk.CudaError as error:
            answers.append(["CudaError", str(error)])
    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(json.dumps([answers, _core.simulator_reason()]), flush=True)
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
os.remove(inside)
first.join()
print(json.dumps([status, _core.backend()]))
"""


@pytest.mark.parametrize("device", [None, "cuda"])
def test_a_fork_while_another_thread_is_in_the_first_call(device, on_fake, tmp_path):
    """The child does not wait for a thread that it does not have, and leaves the driver alone."""
    run = on_fake(FORKED_IN_THE_FIRST_CALL, device=device, FAKE_PAUSE=tmp_path / "inside")
    child, parent = answers(run)
    calls, reason = child
    sentences = [sentence for _, sentence in calls] if device else [reason]
    if device:
        assert {kind for kind, _ in calls} == {"CudaError"}
        assert reason is None
    else:
        assert calls == [["none", "True"]] * 4
    for sentence in sentences:
        for word in ("forked while a GPU was being opened", "spawn", "forkserver"):
            assert word in sentence
    assert parent == [0, "cuda"]


def test_what_was_put_off_on_a_stream_is_freed_before_the_stream_goes(right):
    """An array that dies while its stream is captured, and the stream next, by its owner or it."""
    right("""
import gc
for hold in (True, False):
    gk.empty(3)
    s = gk.Stream()
    a = gk.empty(1000, stream=s)
    live = _core.live_bytes()
    s.begin_capture()
    if hold:
        del a
        graph = s.end_capture()
        del graph, s
    else:
        del s
        del a
    gc.collect()
    gk.empty(5)
    assert _core.live_bytes() < live, hold
""")


def test_the_stream_that_was_current_need_not_outlive_what_it_lent(right):
    right(f"""
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_dlpack as lending
brief = gk.Stream()
@ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)
def current_stream(kind, ordinal, stream):
    stream[0] = brief.cuda_stream
    return 0
table = lending.Exchange(
    1, 2, None, None, lending.address(lending.lend), None, lending.address(lending.show),
    lending.address(current_stream),
)
lender = lending.tabled(table)(gk.to_device(np.ones(1000, np.float32)))
lent = gk.from_dlpack(lender)
brief = None
gc.collect()
brief = gk.Stream()
assert (gk.add(lent, lent).to_host() == 2).all()
""")
