"""Leaks: reference counts, host memory and device memory after thousands of calls."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import operator
import sys
import warnings
import weakref

import numpy as np
import psutil
import pytest

import gpukern as gk
from arrays import DTYPES, REDUCTIONS, DeviceView, on_device, places, random, sanitized, settled
from gpukern import _core
from wrong_calls import GIVEN, WRONG

CALLS = 300 if sanitized() else 1000
resident = pytest.mark.skipif(sanitized(), reason="AddressSanitizer keeps what is freed")


class Things:
    """What every call below works on."""

    def __init__(self):
        self.a = random((8, 8), DTYPES["float32"], 1)
        self.b = random((8, 8), DTYPES["float32"], 2)
        self.strided = random((8, 16), DTYPES["float32"], 3)[:, ::2]
        self.swapped = self.a.astype(">f4")
        self.wide = random((8, 8), DTYPES["float64"], 4)
        self.short = random((3,), DTYPES["float32"], 5)
        self.brain = random((8, 8), DTYPES["bfloat16"], 6)
        self.out = np.zeros((8, 8), np.float32)
        self.out_strided = np.zeros((8, 16), np.float32)[:, ::2]
        self.total = np.zeros((), np.float32)
        self.device = gk.to_device(self.a)
        self.device_out = gk.to_device(self.b)
        self.there = on_device(dict(places((8, 8), DTYPES["float32"]))["rows apart"], self.a)
        self.view = self.there.view
        self.interface = self.view.__cuda_array_interface__
        self.scalar = 1.5
        self.list = [self.a]
        self.shape = (8, 8)
        self.variant = "f32"
        self.dtype = np.dtype("float32")
        self.axes = (0, 1)
        self.large = 1 << 40  # no small integer, of which there is one for all
        self.whole = np.arange(1000, dtype=np.int64)
        self.whole_device = gk.to_device(self.whole)
        self.stream = gk.Stream()
        self.number = self.stream.__cuda_stream__()[1]
        self.event = gk.Event()
        self.event.record()
        self.stream.begin_capture()
        gk.add(self.device, self.device, out=self.device_out, stream=self.stream)
        self.graph = self.stream.end_capture()


GOOD = {
    "add": lambda x: gk.add(x.a, x.b),
    "add by variant": lambda x: gk.add(x.a, x.b, variant=x.variant),
    "add out": lambda x: gk.add(x.a, x.b, out=x.out),
    "add strided out": lambda x: gk.add(x.strided, x.swapped, out=x.out_strided),
    "add a scalar": lambda x: gk.add(x.a, x.scalar),
    "add bfloat16": lambda x: gk.add(x.brain, x.brain),
    "add on the device": lambda x: gk.add(x.device, x.b),
    "add into the device": lambda x: gk.add(x.device, x.device, out=x.device_out),
    "add foreign arrays": lambda x: gk.add(x.view, x.view, out=x.view),
    "sum": lambda x: gk.sum(x.a),
    "sum out": lambda x: gk.sum(x.strided, axis=x.axes, dtype=x.dtype, out=x.total),
    "sum on the device": lambda x: gk.sum(x.device, keepdims=True),
    "reductions": lambda x: [getattr(gk, op)(x.strided, 0) for op in REDUCTIONS],
    "sum over an axis": lambda x: gk.sum(x.device, axis=(-1,), dtype=x.wide.dtype),
    "argmax on the device": lambda x: gk.argmax(x.device, 1),
    "dot": lambda x: gk.dot(x.a[0], x.device.to_host()[1]),
    "matmul": lambda x: gk.matmul(x.a, x.b),
    "matmul on the device": lambda x: gk.matmul(x.device, x.device, out=x.device_out),
    "transpose": lambda x: gk.transpose(x.a, out=x.out),
    "operators": lambda x: (x.device + x.scalar, x.a @ x.device, x.device.T),
    "arithmetic": lambda x: (x.device - 1, 2 / x.device, -abs(x.device) * x.device),
    "other operations": lambda x: (gk.scale_add(x.scalar, x.device, x.b), gk.exp(x.device)),
    "views": lambda x: (x.device[1:, None, ::-2].T, x.device.reshape(-1, 4), x.device[-1]),
    "copies of views": lambda x: (x.device.T.reshape(64), x.device[::2].to_host()),
    "matrix_transpose": lambda x: gk.matrix_transpose(x.device[None, ::-1]),
    "transpose by axes": lambda x: gk.transpose(x.a, (0, 1)),
    "to_device": lambda x: gk.to_device(x.strided),
    "to_host": lambda x: (x.device.to_host(), x.device.to_host(x.out)),
    "asarray": lambda x: (np.asarray(x.device), np.asarray(x.device, np.float64)),
    "empty": lambda x: gk.empty(x.shape, x.dtype),
    "attributes": lambda x: (x.device.shape, x.device.dtype, x.device.__cuda_array_interface__),
    "repr": lambda x: repr(x.device),
    "weakref": lambda x: weakref.ref(x.device)(),
    "comparisons": lambda x: (
        x.device == x.b,
        operator.lt(1, x.device),
        x.a != x.device,
        x.scalar in x.device,
    ),
    "in place": lambda x: operator.imul(x.device_out[1:], x.device[:-1]),
    "in place on the host": lambda x: operator.iadd(x.out, x.device),
    "one element": lambda x: numbers_of(x.device[2, 3]),
    "an index of the device's": lambda x: (x.device[0][gk.argmax(x.device[0])], x.device.tolist()),
    "iteration": lambda x: [*x.device[1]],
    "assignments": lambda x: (
        x.device_out.__setitem__((..., 1), x.scalar),
        x.device_out.__setitem__(slice(None, None, -1), x.strided),
        x.device_out[1:].fill(x.device_out[:-1]),
    ),
    "conversions": lambda x: (x.device.astype("int8"), x.device.astype(x.dtype, False)),
    "copies": lambda x: (x.device.copy(), x.device.flatten(), x.device.T.ravel()),
    "methods": lambda x: (x.device.sum(0), x.device.clip(max=x.scalar), x.device.transpose(1, 0)),
    "made of values": lambda x: (gk.full(x.shape, x.scalar), gk.asarray(x.a), gk.zeros_like(x.a)),
    "numpy's functions": lambda x: (
        np.sum(x.device, axis=0),
        np.add(x.a, x.device),
        x.a @ x.device,
    ),
    "synchronize": lambda x: gk.synchronize(),
    "event": lambda x: gk.Event().record(),
    "times of events": lambda x: (x.event.synchronize(), x.event.seconds_since(x.event)),
    "a stream": lambda x: (gk.Stream().synchronize(), x.stream.__cuda_stream__(), repr(x.stream)),
    "on a stream": lambda x: (
        gk.add(x.device, x.b, stream=x.stream),
        gk.empty(x.shape, stream=x.stream),
        x.event.record(x.stream),
        gk.synchronize(stream=x.stream),
    ),
    "on a stream's number": lambda x: (
        gk.add(x.device, x.b, stream=x.number),
        x.event.record(x.number),
    ),
    "on streams of other libraries": lambda x: (
        gk.add(x.device, x.b, stream=TheirStream(x.number)),
        gk.add(x.device, x.b, stream=TheirHandle(x.number)),
    ),
    "a graph": lambda x: (captured(x).launch(), x.graph.launch(x.stream)),
    "large integers": lambda x: (
        gk.clip(x.whole, -x.large, x.large),
        gk.add(x.whole_device, x.large),
        gk.full(x.shape, x.large, x.whole.dtype),
        x.whole_device[: x.large],
        x.whole_device.__setitem__(1, x.large),
        x.whole_device.fill(x.large),
        x.whole_device == x.large,
        x.large in x.whole_device,
    ),
    "indices": lambda x: (x.whole_device[np.int64(900)], x.whole_device[np.uint16(900), None]),
    "DLPack": lambda x: gk.from_dlpack(x.device),
    "DLPack of others": lambda x: (
        gk.from_dlpack(Lender(x.device)),
        gk.add(Lender(x.device), x.b),
        gk.from_dlpack(Lender(x.device, max_version=(1, 0))),
    ),
    "a capsule that nobody takes": lambda x: (x.device.__dlpack__(), x.device.__dlpack_device__()),
    "NumPy by DLPack": lambda x: np.from_dlpack(ToTheHost(x.device)),
    "settings": lambda x: (gk.limits(), _core.devices(), _core.rows(), _core.backend()),
}

BAD = {
    "mixed dtypes": lambda x: gk.add(x.a, x.wide),
    "mixed dtypes on the device": lambda x: gk.add(x.device, x.wide, out=x.device_out),
    "shapes": lambda x: gk.add(x.a, x.short),
    "matmul shapes": lambda x: gk.matmul(x.a, x.short),
    "no array": lambda x: gk.add(x.a, [x.b]),
    "objects": lambda x: gk.add(np.array([x.a, None], object), x.a),
    "unknown variant": lambda x: gk.add(x.a, x.b, variant="none"),
    "no such keyword": lambda x: gk.add(x.a, x.b, where=x.out),
    "a keyword twice": lambda x: gk.add(x.a, x.b, x.out, out=x.out),
    "out of another shape": lambda x: gk.add(x.a, x.b, out=x.short),
    "out of another dtype": lambda x: gk.add(x.a, x.b, out=x.wide),
    "out no array": lambda x: gk.add(x.strided, x.b, out=[x.out]),
    "foreign out of another shape": lambda x: gk.add(x.short, x.short, out=x.view),
    "an interface without a version": lambda x: gk.add(changed(x, version=None), x.a),
    "an interface on the host": lambda x: gk.add(x.a, changed(x, data=(x.a.ctypes.data, False))),
    "an axis": lambda x: gk.sum(x.device, axis=2),
    "axes": lambda x: gk.max(x.a, axis=(0, x.list)),
    "vectors of two lengths": lambda x: gk.dot(x.a[0], x.short),
    "another dtype": lambda x: gk.sum(x.swapped, dtype=np.dtype("int64")),
    "a float beside integers": lambda x: gk.add(np.ones(3, np.int32), x.scalar),
    "to_host of another shape": lambda x: x.device.to_host(out=x.short),
    "to_device of objects": lambda x: gk.to_device(np.array([x.a, None], object)),
    "too large": lambda x: gk.empty((1 << 50,), x.dtype),
    "no dtype": lambda x: gk.empty(x.shape, "float31"),
    "no shape": lambda x: gk.empty((-1, 2), x.dtype),
    "an index": lambda x: x.device[1, 9],
    "too many indices": lambda x: x.device[x.axes + x.axes],
    "no index": lambda x: x.device[x.list],
    "a shape that does not fit": lambda x: x.device.reshape(3, -1),
    "no axes": lambda x: gk.transpose(x.device, (0, 0)),
    "a third dtype": lambda x: gk.scale_add(x.scalar, x.a, x.wide),
    "an operator": lambda x: x.device + x.list,
    "a comparison with a list": lambda x: x.device == x.list,
    "no order": lambda x: x.device < x.variant,
    "in place of another dtype": lambda x: operator.iadd(x.device_out, x.wide),
    "in place of another shape": lambda x: operator.iadd(x.device_out, x.short),
    "no number": lambda x: float(x.device),
    "no format": lambda x: f"{x.device:.3f}",
    "a mask": lambda x: x.device[x.device == 0],
    "a value of another shape": lambda x: x.device_out.__setitem__(0, x.short),
    "a value of another kind": lambda x: gk.full(x.shape, 1).fill(x.scalar),
    "no value": lambda x: x.device_out.__setitem__(0, x.list),
    "no element to delete": lambda x: x.device_out.__delitem__(0),
    "astype of no dtype": lambda x: x.device.astype("complex64"),
    "a method's axis": lambda x: x.device.sum(x.axes + x.axes),
    "a function of numpy's": lambda x: np.median(x.device),
    "an argument of numpy's": lambda x: np.sum(x.device, initial=x.scalar),
    "no copy": lambda x: x.device.__array__(copy=False),
    "seconds of nothing": lambda x: gk.Event().seconds_since(gk.Event()),
    "a large index": lambda x: x.device[x.large],
    "a large axis": lambda x: gk.sum(x.a, axis=x.large),
    "a large bound": lambda x: gk.clip(x.whole.astype(np.int8), x.large, None),
    "a large shape": lambda x: gk.empty((x.large, x.large)),
    "a large value": lambda x: gk.full(x.shape, x.large, "int8"),
    "a stream of nobody's": lambda x: gk.add(x.device, x.b, stream=x.large),
    "an event on no stream": lambda x: x.event.record(x.variant),
    "a graph on no stream": lambda x: x.graph.launch(x.large),
    "a capture that did not begin": lambda x: x.stream.end_capture(),
    "a capsule for another device": lambda x: x.device.__dlpack__(dl_device=(x.large, 0)),
    "no capsule": lambda x: gk.from_dlpack(x.variant),
    "a planted fault": lambda x: (_core.fail_call(3), gk.add(x.strided, x.device)),
}


def numbers_of(one):
    return float(one), int(one), complex(one), round(one, 2), bool(one), one.item(), f"{one:.3f}"


def captured(x):
    x.stream.begin_capture()
    gk.add(x.device, x.device, out=x.device_out, stream=x.stream)
    return x.stream.end_capture()


class TheirStream:
    """A stream by the protocol."""

    def __init__(self, number):
        self.number = number

    def __cuda_stream__(self):
        return (0, self.number)


class TheirHandle:
    """A stream as PyTorch has it."""

    def __init__(self, number):
        self.cuda_stream = number


class Lender:
    """Another library's array, by DLPack alone."""

    def __init__(self, array, **options):
        self.array, self.options = array, options

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**self.options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class ToTheHost:
    """Hands over its array as the host's."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(dl_device=(1, 0))

    def __dlpack_device__(self):
        return (1, 0)


def changed(x, **changes):
    return DeviceView(x.there.parent, x.there.place, **changes)


def tried(call, things):
    try:
        call(things)
    except (
        ArithmeticError,
        BufferError,
        LookupError,
        TypeError,
        ValueError,
        MemoryError,
        gk.CudaError,
    ):
        return True
    return False


# Python keeps the names that it last looked up, thousands of them, or None in their places, and
# `ast` makes new ones in each call of `inspect.signature`.
_forget_names = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache


def references(objects):
    _forget_names()
    return [sys.getrefcount(each) for each in objects]


def counts(things):
    held = [*vars(things).values(), None, True, False, np.float32, np.dtype("float32")]
    held += [gk.DeviceArray, gk.Event, gk.Stream, gk.Graph, _core, gk.CudaError]
    held += [ValueError, TypeError, MemoryError]
    return references(held)


MALLINFO = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks")
MALLINFO += ("fordblks", "keepcost")


class Mallinfo(ctypes.Structure):
    """What the C library tells of its memory."""

    _fields_ = [(name, ctypes.c_size_t) for name in MALLINFO]


def allocated():
    """The blocks that Python has given out, and the bytes that the C library has."""
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = Mallinfo
    info = library.mallinfo2()
    return sys.getallocatedblocks(), info.uordblks + info.hblkhd


def _drop():
    """What is garbage, what Python keeps for later, and what was put off until somebody waits."""
    gc.collect()
    _forget_names()
    gk.synchronize()


def growth(call, calls):
    """What many calls leave allocated: blocks and bytes a call."""
    _drop()
    before = allocated()
    for _ in range(calls):
        call()
    _drop()
    return [(now - then) / calls for now, then in zip(allocated(), before, strict=True)]


def assert_steady(call, calls):
    """A leak grows every time; what else is kept for later comes once."""
    for _ in range(10):
        blocks, used = growth(call, calls)
        if sanitized() or (blocks < 0.5 and used < 16):
            return
    raise AssertionError(f"each call leaves {blocks} blocks of Python's, {used} bytes in all")


def assert_no_leak(call, fails):
    things = Things()
    for _ in range(20):
        assert tried(call, things) is fails
    live, before, objects = settled(), counts(things), len(gc.get_objects())
    assert_steady(lambda: tried(call, things), CALLS)
    assert settled() == live
    after = counts(things)
    grown = [
        (i, a, b) for i, (a, b) in enumerate(zip(before, after, strict=True)) if abs(a - b) > 20
    ]
    assert not grown, f"reference counts (index, before, after): {grown}"
    assert len(gc.get_objects()) - objects < 100


@pytest.mark.costly(2)
@pytest.mark.parametrize("case", GOOD)
def test_calls_that_work(case):
    assert_no_leak(GOOD[case], fails=False)


@pytest.mark.parametrize("case", BAD)
def test_calls_that_fail(case):
    try:
        assert_no_leak(BAD[case], fails=True)
    finally:
        _core.fail_call(0)


# These compare, and take long.
SLOW = ("compare", "contender", "plot", "from_json")


@pytest.mark.parametrize("name", [name for name in WRONG if name not in SLOW])
def test_wrong_calls(name):
    """All those of the page of sentences, each a hundred times."""
    around = {"gk": gk, "np": np}
    exec(GIVEN, around)
    codes = [compile(call, name, "exec") for call in WRONG[name]]
    types = [gk.DeviceArray, gk.Event, gk.Stream, gk.Graph, np.dtype(np.float32), _core, None]

    def refused():
        for code in codes:
            with contextlib.suppress(Exception):
                exec(code, around)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(10):
            refused()
        before = references(types)
        assert_steady(refused, 100)
        after = references(types)
    assert all(b - a < 20 for a, b in zip(before, after, strict=True)), (before, after)


def grown_bytes(call, things, calls):
    process = psutil.Process()
    for _ in range(calls // 10):
        tried(call, things)
    gc.collect()
    before = process.memory_info().rss
    for _ in range(calls):
        tried(call, things)
    gc.collect()
    return process.memory_info().rss - before


@resident
@pytest.mark.parametrize("calls", [GOOD, BAD], ids=["that work", "that fail"])
def test_memory_of_the_process(calls):
    """64 bytes lost a call would be 6 MB in all."""
    things = Things()
    rounds = 4000

    def everything(_):
        for case in calls.values():
            tried(case, things)

    grown = grown_bytes(everything, things, rounds // 10)
    _core.fail_call(0)
    assert grown < (4 << 20), f"{grown} bytes in {rounds // 10} rounds of {len(calls)} calls"


LARGE = {
    "add": lambda a, d: gk.add(a, a),
    "add strided": lambda a, d: gk.add(a[::2], a[::2]),
    "add on the device": lambda a, d: gk.add(d, d),
    "sum": lambda a, d: gk.sum(a),
    "to_device": lambda a, d: gk.to_device(a),
    "to_host": lambda a, d: d.to_host(),
    "transpose": lambda a, d: gk.transpose(a.reshape(512, 512)),
}


@resident
@pytest.mark.parametrize("case", LARGE)
def test_large_results_are_given_back(case):
    """A megabyte lost a call would be 40 MB."""
    a = random(1 << 18, DTYPES["float32"])
    device = gk.to_device(a)
    live = settled()
    grown = grown_bytes(lambda _: LARGE[case](a, device), None, 40)
    assert grown < (16 << 20)
    assert settled() == live


def test_profiles_are_given_back():
    a = random(8, DTYPES["float32"])

    def profiled(_):
        _core.profile_start()
        for _ in range(100):
            gk.add(a, a)
        assert len(_core.profile_stop()) == 100

    profiled(None)
    gc.collect()
    objects = len(gc.get_objects())
    for _ in range(20):
        profiled(None)
    gc.collect()
    assert len(gc.get_objects()) - objects < 50


def test_device_arrays_in_cycles_are_found():
    before = settled()
    cycle: list[object] = [gk.empty((1000,))]
    cycle.append(cycle)
    del cycle
    assert settled() == before


RELOADED = """
import gc, sys
import gpukern as gk, numpy as np
a = gk.to_device(np.ones(10, np.float32))
b = gk.add(a, a)
del sys.modules["gpukern._core"], sys.modules["gpukern"]
gc.collect()
assert (b.to_host() == 2).all()
import gpukern as again
assert again.DeviceArray is not gk.DeviceArray or again is gk
c = again.add(np.ones(3, np.float32), 1.0)
assert (c == 2).all()
"""


def test_a_second_instance_of_the_module(script):
    run = script(RELOADED, PYTHONMALLOC="malloc" if sanitized() else "debug")
    assert run.returncode == 0, run.stderr


EXIT = """
import gpukern as gk, numpy as np
kept = [gk.to_device(np.ones(1000, np.float32)) for _ in range(10)]
kept.append(kept)
event = gk.Event(); event.record()
result = gk.add(kept[0], kept[1])
"""


def test_the_process_ends_in_peace_with_arrays_alive(script):
    # The debugging allocator overwrites what is freed, so that using it shows.
    run = script(EXIT, PYTHONMALLOC="malloc" if sanitized() else "debug")
    assert (run.returncode, run.stderr) == (0, "")
