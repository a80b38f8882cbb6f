"""The function that XLA calls for an operation, called as XLA does; no JAX is needed."""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gpukern as gk
from arrays import on_gpu
from fakes import NEEDS_FAKE
from gpukern import _core

METADATA, EXECUTE, BUFFER, SCALAR, S64 = 1, 3, 1, 3, 5
DTYPES = {
    **dict(zip(("bool", "int8", "int16", "int32", "int64"), range(1, 6), strict=True)),
    **dict(zip(("uint8", "uint16", "uint32", "uint64"), range(6, 10), strict=True)),
    **dict(zip(("float16", "float32", "float64"), range(10, 13), strict=True)),
    "bfloat16": 16,
}


def structure(name: str, *fields: tuple[str, Any]) -> Any:
    return type(name, (ctypes.Structure,), {"_fields_": [("bytes", c_size_t), *fields]})


LINK = ("extensions", c_void_p)
Version = structure("Version", LINK, ("major", c_int), ("minor", c_int))
Metadata = structure("Metadata", ("version", Version), ("traits", c_uint32))
Question = structure(
    "Question", ("kind", c_int), ("next", c_void_p), ("metadata", POINTER(Metadata))
)
Failure = structure("Failure", LINK, ("message", c_char_p), ("code", c_int))
Asked = structure("Asked", LINK, ("context", c_void_p), ("stream", c_void_p))
CREATE = ctypes.CFUNCTYPE(c_void_p, POINTER(Failure))
GET = ctypes.CFUNCTYPE(c_void_p, POINTER(Asked))
Api = structure(
    "Api",
    LINK,
    ("version", Version),
    ("internal", c_void_p),
    ("create", CREATE),
    *((name, c_void_p) for name in ("message", "destroy", "register")),
    ("stream", GET),
)
Buffer = structure(
    "Buffer",
    LINK,
    ("dtype", c_int),
    ("data", c_void_p),
    ("rank", c_int64),
    ("lengths", POINTER(c_int64)),
)
Buffers = structure(
    "Buffers", LINK, ("count", c_int64), ("kinds", POINTER(c_int)), ("all", POINTER(c_void_p))
)
Scalar = type(
    "Scalar", (ctypes.Structure,), {"_fields_": [("dtype", c_int), ("value", POINTER(c_int64))]}
)
Attributes = structure(
    "Attributes",
    LINK,
    ("count", c_int64),
    ("kinds", POINTER(c_int)),
    ("names", c_void_p),
    ("values", POINTER(c_void_p)),
)
Frame = structure(
    "Frame",
    LINK,
    ("api", POINTER(Api)),
    ("context", c_void_p),
    ("stage", c_int),
    ("arguments", Buffers),
    ("results", Buffers),
    ("attributes", Attributes),
)


def sized(of: Any, **values: Any) -> Any:
    return of(bytes=ctypes.sizeof(of), **values)


class Xla:
    """What XLA has to have to call the function."""

    def __init__(self, stream: int = 0) -> None:
        self.said: list[tuple[int, str]] = []
        self.kept: list[Any] = []

        def create(failure: Any) -> int:
            self.said.append((failure[0].code, failure[0].message.decode()))
            return 77

        def get(asked: Any) -> None:
            asked[0].stream = stream

        self.api = sized(
            Api, version=sized(Version, major=0, minor=3), create=CREATE(create), stream=GET(get)
        )

    def buffers(self, arrays: Any) -> Any:
        made = []
        for array in arrays:
            lengths = (c_int64 * max(array.ndim, 1))(*array.shape)
            data = array.__array_interface__["data"][0] if isinstance(array, np.ndarray) else None
            dtype = DTYPES.get(array.dtype.name, 15)
            made.append(sized(Buffer, dtype=dtype, data=data, rank=array.ndim, lengths=lengths))
        kinds = (c_int * max(len(made), 1))(*[BUFFER] * len(made))
        pointers = (c_void_p * max(len(made), 1))(*map(ctypes.addressof, made))
        self.kept += [made, kinds, pointers]
        return sized(Buffers, count=len(made), kinds=kinds, all=pointers)

    def frame(self, arguments: Any = (), results: Any = (), key: int = 7) -> Any:
        value = c_int64(key)
        scalar = Scalar(dtype=S64, value=ctypes.pointer(value))
        kinds, values = (c_int * 1)(SCALAR), (c_void_p * 1)(ctypes.addressof(scalar))
        self.kept += [value, scalar, kinds, values]
        return sized(
            Frame,
            api=ctypes.pointer(self.api),
            stage=EXECUTE,
            arguments=self.buffers(arguments),
            results=self.buffers(results),
            attributes=sized(Attributes, count=1, kinds=kinds, values=values),
        )


def target(on_gpu: bool = False) -> Any:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    address = pointer(_core.xla_target(on_gpu), b"xla._CUSTOM_CALL_TARGET")
    return ctypes.CFUNCTYPE(c_void_p, c_void_p)(address)


def call(frame: Any, on_gpu: bool = False) -> int | None:
    return target(on_gpu)(ctypes.addressof(frame))


@pytest.fixture
def ran(monkeypatch) -> list[Any]:
    """What the Python side was called with, in place of what needs JAX."""
    calls: list[Any] = []

    def run(key: int, stream: int, arguments: Any, results: Any) -> None:
        calls.append((key, stream, arguments, results))
        for memory, dtype, shape in results:
            if memory is not None:
                kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
                np.frombuffer(memory, kind).reshape(shape)[...] = 1
        if key == 13:
            raise KeyError("unlucky")

    module = ModuleType("gpukern.frameworks.jax_")
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gpukern.frameworks.jax_", module)
    return calls


@pytest.mark.parametrize("gpu", [False, True])
def test_it_tells_its_version(gpu, ran):
    metadata = sized(Metadata, version=sized(Version, major=9, minor=9), traits=9)
    question = sized(Question, kind=METADATA, metadata=ctypes.pointer(metadata))
    frame = sized(Frame, extensions=ctypes.addressof(question))
    assert call(frame, gpu) is None
    assert (metadata.version.major, metadata.version.minor, metadata.traits) == (0, 1, 0)
    assert not ran


@pytest.mark.parametrize("dtype", DTYPES)
def test_buffers_are_arrays(dtype, ran):
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    given, empty, number = np.ones((2, 3), kind), np.ones((0, 3), kind), np.zeros((), kind)
    xla = Xla()
    frame = xla.frame((given, empty), (number,), key=-5)
    assert call(frame) is None
    ((key, stream, arguments, results),) = ran
    assert (key, stream) == (-5, 0)
    (memory, name, shape), (nothing, _, no_shape) = arguments
    assert (name, shape, bytes(memory)) == (dtype, (2, 3), given.tobytes())
    assert memory.readonly
    assert (nothing, no_shape) == (None, (0, 3))
    assert results[0][1:] == (dtype, ())
    assert number == 1
    assert not xla.said


def test_other_stages_do_nothing(ran):
    frame = Xla().frame()
    for stage in (0, 1, 2, 4):
        frame.stage = stage
        assert call(frame) is None
    assert not ran


def other_major(frame: Any) -> None:
    frame.api[0].version.major = 1


@pytest.mark.parametrize(
    "change",
    [
        other_major,
        lambda frame: setattr(frame, "bytes", frame.bytes - 8),
        lambda frame: setattr(frame.arguments, "bytes", 48),
        lambda frame: setattr(frame.results, "bytes", 48),
        lambda frame: setattr(frame.attributes, "bytes", 56),
        lambda frame: setattr(frame.api[0], "bytes", 40),
    ],
)
def test_a_layout_that_is_not_known_is_refused(change, ran):
    xla = Xla()
    frame = xla.frame()
    change(frame)
    assert call(frame) == 77
    ((code, sentence),) = xla.said
    assert code == 3
    assert sentence.startswith("as_jax: this version of XLA ")
    assert "use a newer gpukern or an older jaxlib" in sentence
    assert not ran


def test_what_is_raised_is_xlas_error(ran):
    xla = Xla()
    assert call(xla.frame(key=13)) == 77
    assert xla.said == [(13, "KeyError: 'unlucky'")]
    assert call(xla.frame()) is None


def test_arrays_that_are_not_taken(ran):
    xla = Xla()
    assert call(xla.frame((np.ones(3, "complex64"),))) == 77
    assert "TypeError: as_jax: XLA's array 0 is of its dtype 15 with 1 axes" in xla.said[0][1]
    assert not ran


@pytest.mark.parametrize("count", [0, 2])
def test_a_program_that_names_no_operation(count, ran):
    xla = Xla()
    frame = xla.frame()
    frame.attributes.count = count
    assert call(frame) == 77
    assert xla.said == [(13, "TypeError: as_jax: XLA does not say which operation it calls")]
    assert not ran


def test_a_gpu_of_which_gpukern_knows_nothing(ran):
    if on_gpu():
        pytest.skip("gpukern runs on the GPU here")
    xla = Xla()
    assert call(xla.frame((np.ones(3, "float32"),)), on_gpu=True) == 77
    assert "gpukern on its simulator, which has no such memory" in xla.said[0][1]
    assert not ran


def test_memory_of_a_gpu_is_an_array_there(monkeypatch):
    if not on_gpu():
        pytest.skip("no GPU, whose memory this is")
    shown = []
    module = ModuleType("gpukern.frameworks.jax_")
    module.run = lambda *call: shown.append(call[2][0].to_host())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gpukern.frameworks.jax_", module)
    there = gk.to_device(np.arange(6, dtype=np.float32).reshape(2, 3))
    gk.synchronize()
    stream = gk.Stream()
    xla = Xla(stream=stream.cuda_stream)
    frame = xla.frame((np.zeros((2, 3), np.float32),))
    buffer = ctypes.cast(frame.arguments.all[0], POINTER(Buffer))
    buffer[0].data = there.__cuda_array_interface__["data"][0]
    assert call(frame, on_gpu=True) is None, xla.said
    np.testing.assert_array_equal(shown[0], there.to_host())


def test_a_target_is_for_a_gpu_or_not():
    with pytest.raises(ValueError, match="ambiguous"):
        _core.xla_target(np.ones(2))


IN_A_SCRIPT = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_xla_handler import *
shown = []
module = ModuleType("gpukern.frameworks.jax_")
module.run = lambda *given: shown.append(given)
sys.modules["gpukern.frameworks.jax_"] = module
"""


# Frames with arrays of a GPU, on the fake driver.
ON_A_GPU = f"""{IN_A_SCRIPT}
def frame_of(xla, arguments, results=()):
    frame = xla.frame([np.empty(one.shape, one.dtype) for one in arguments],
                      [np.empty(one.shape, one.dtype) for one in results])
    for buffers, arrays in (frame.arguments, arguments), (frame.results, results):
        for place, array in enumerate(arrays):
            buffer = ctypes.cast(buffers.all[place], POINTER(Buffer))
            buffer[0].data = array.__cuda_array_interface__["data"][0]
    return frame
def refused(arguments, stream=0):
    xla, before = Xla(stream=stream), len(shown)
    assert call(frame_of(xla, arguments), on_gpu=True) == 77 and len(shown) == before
    [(code, sentence)] = xla.said
    assert code == 13
    return sentence
"""


@NEEDS_FAKE
def test_arrays_of_each_gpu_are_on_it(right):
    right(
        f"""{ON_A_GPU}
for ordinal in 1, 0:
    with gk.device(ordinal):
        there, empty = gk.to_device(a), gk.empty((0, 3))
        out, stream = gk.empty(4), gk.Stream()
    xla = Xla(stream=stream.cuda_stream)
    assert call(frame_of(xla, (empty, there), (out,)), on_gpu=True) is None, xla.said
    key, on, (nothing, given), (result,) = shown.pop()
    assert (key, on) == (7, stream.cuda_stream)
    assert given.device == nothing.device == result.device == ordinal
    assert (given.to_host() == a).all() and nothing.shape == (0, 3) and result.shape == (4,)
    with gk.device(ordinal):
        assert call(frame_of(xla, (empty,)), on_gpu=True) is None
    assert shown.pop()[2][0].device == ordinal, "the thread's own, where nothing has memory"
""",
        FAKE_DEVICES=2,
    )


@NEEDS_FAKE
def test_arrays_of_a_gpu_that_are_not_taken(right):
    right(
        f"""{ON_A_GPU}
class Elsewhere:
    shape, dtype = a.shape, a.dtype
    __cuda_array_interface__ = {{"data": (a.ctypes.data, False)}}
class Complex:
    shape, dtype = (2,), np.dtype("complex64")
there = gk.to_device(a)
Complex.__cuda_array_interface__ = there.__cuda_array_interface__
one = gk.Stream()
stream = one.cuda_stream
sentence = refused((Elsewhere,))
assert sentence.startswith("ValueError: as_jax: 0x"), sentence
assert sentence.endswith(" of JAX's is on none of the 2 GPUs that there are"), sentence
assert "XLA's array 1 is of its dtype 15 with 1 axes" in refused((there, Complex))
driver.fake_capture(ctypes.c_void_p(stream), 0)
with gk.strict():
    assert "ValueError: as_jax: profile() and strict() wait" in refused((there,), stream)
driver.fake_capture(None, 0)
assert call(frame_of(Xla(stream=stream), (there,)), on_gpu=True) is None and len(shown) == 1
""",
        FAKE_DEVICES=2,
    )


@NEEDS_FAKE
def test_without_a_gpu_xla_is_told(right):
    right(
        f"""{ON_A_GPU}
xla = Xla()
assert call(xla.frame((a,)), on_gpu=True) == 77 and not shown
assert "CudaError: " in xla.said[0][1] and "no GPU" in xla.said[0][1], xla.said
""",
        FAKE_INIT=100,
    )


def test_every_object_of_a_call_may_be_refused(script):
    """XLA is told that there is no memory, and the next call works. Where ctypes has none, or what
    stands for XLA's functions, nothing is asked."""
    pytest.importorskip("_testcapi", reason="this Python has not the module that refuses memory")
    run = script(f"""{IN_A_SCRIPT}
import _testcapi
beside = []
sys.unraisablehook = beside.append
xla, function = Xla(), target()
given, empty = np.ones((300, 3), np.float32), np.ones((0, 400), np.int8)
frame = xla.frame((given, empty), (given.copy(),))
address, refused, in_a_row = ctypes.addressof(frame), 0, 0
for number in range(1000):
    shown.clear(), xla.said.clear(), beside.clear()
    _testcapi.set_nomemory(number, number + 1)
    try:
        answered = function(address)
    except (MemoryError, ctypes.ArgumentError) as error:
        beside.append(error)
    finally:
        _testcapi.remove_mem_hooks()
    if beside:
        continue
    if answered is None:
        [(_, _, ((memory, *_), (nothing, *_)), (result,))] = shown
        assert bytes(memory) == given.tobytes() and nothing is None and result[2] == (300, 3)
        in_a_row += 1
    else:
        [(code, sentence)] = xla.said
        assert (answered, code) == (77, 13) and not shown and "MemoryError: " in sentence, sentence
        refused, in_a_row = refused + 1, 0
    if in_a_row == 20:
        break
else:
    raise AssertionError("no end of objects")
assert function(address) is None and bytes(shown[-1][2][0][0]) == given.tobytes()
print(refused)
""")
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) >= 5
