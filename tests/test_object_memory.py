"""Python has no memory for an object: each object of a call is refused once. The call raises
MemoryError or does without, nothing is lost, and the next call works."""

from __future__ import annotations

import pytest

from fakes import NEEDS_FAKE, with_nvrtc

pytest.importorskip("_testcapi", reason="this Python has not the module that refuses memory")

EACH_OBJECT = """
import _imp, _testcapi, gc, importlib.util
import numpy as np, gpukern as gk
from gpukern import _core
a = np.arange(50, dtype=np.float32)
long = np.arange(300_000, dtype=np.float32)
there, matrix, stream = gk.to_device(a), gk.to_device(np.ones((3, 4), np.float32)), gk.Stream()
with gk.device(len(_core.devices()) - 1):  # another one, where there is one
    beside = gk.to_device(a)

class Lent:
    def __dlpack__(self, **named):
        return there.__dlpack__(**named)
    def __dlpack_device__(self):
        return there.__dlpack_device__()

class LentInTheOldWay(Lent):
    def __dlpack__(self, stream=None):
        return there.__dlpack__(stream=stream)

def recorded():
    _core.profile_start()
    try:
        return gk.to_device(a)
    finally:
        _core.profile_stop()

def captured():
    stream.begin_capture()
    _core.fail_call(1_000_000)  # the graph is freed through what plants faults, too
    try:
        return stream.end_capture()
    finally:
        _core.fail_call(0)

def imported():
    spec = importlib.util.spec_from_file_location("gpukern._core", _core.__file__)
    module = _imp.create_dynamic(spec)
    _imp.exec_dynamic(module)
    return module

def first_calls():
    for _ in range(3):
        call()
    gc.collect()
    return _core.live_bytes()

live, raised, in_a_row = first_calls(), 0, 0
for number in range(5000):
    result = None
    _testcapi.set_nomemory(number, number + 1)
    try:
        result = call()
        in_a_row += 1
    except MemoryError:
        raised, in_a_row = raised + 1, 0
    finally:
        _testcapi.remove_mem_hooks()
    result = None
    gc.collect()
    assert _core.live_bytes() == live, number
    if in_a_row == 20:
        break
else:
    raise AssertionError("no end of objects")
assert first_calls() == live
assert (gk.add(a, a) == a + a).all() and (there.to_host() == a).all()
print(raised)
"""

CALLS = {
    "a call": "gk.add(there, there, out=None, variant=None, stream=stream)",
    "a number": "gk.add(there, 1.0)",
    "a reduction": "gk.sum(matrix, axis=1)",
    "a result in pinned memory": "gk.add(long, long)",
    "to_device": "gk.to_device(a)",
    "from another device": "gk.to_device(beside)",
    "to_host": "there.to_host()",
    "a view": "matrix[1:, ::2]",
    "reshape": "matrix.reshape(4, 3)",
    "transpose": "matrix.transpose(1, 0)",
    "the interface": "matrix.__cuda_array_interface__",
    "an array that is lent": "there.__dlpack__(max_version=(1, 0))",
    "an array that is lent in the old way": "there.__dlpack__()",
    "a borrowed array": "gk.add(Lent(), there)",
    "an array borrowed in the old way": "gk.add(LentInTheOldWay(), there)",
    "a recorded call": "recorded()",
    "a stream": "gk.Stream()",
    "an event": "gk.Event()",
    "a graph": "captured()",
    "the devices": "_core.devices()",
    "the build": "_core.build_report()",
    "an import": "imported()",
}
SURVIVES = {"a result in pinned memory"}  # in memory of NumPy's


@pytest.mark.costly(2)
@pytest.mark.parametrize("call", CALLS)
def test_every_object_may_be_refused(call, script):
    run = script(f"call = lambda: {CALLS[call]}\n{EACH_OBJECT}", GPUKERN_SIM_DEVICES="2")
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) >= (call not in SURVIVES)


@NEEDS_FAKE
def test_every_object_of_a_compilation_may_be_refused(script, tmp_path):
    given = (
        str(with_nvrtc(tmp_path)),
        "k.cu",
        "text",
        ("-O",),
        ("a.h", "its text"),
        ("one", "two"),
    )
    calls = f"lambda: (_core.compile_source(*{given!r}), _core.nvrtc_version({given[0]!r}))"
    run = script(f"call = {calls}\n{EACH_OBJECT}")
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) >= 8
