"""Streams and CUDA graphs: what is taken as a stream, and in which order work is submitted.

The fake driver writes down every launch, event and release, so that the order is tested on any
machine; what only a GPU can tell is in test_graphs.py and test_mixed.py.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

import gpukern as gk
from arrays import on_gpu
from fakes import NEEDS_FAKE, answers

SIMULATOR = pytest.mark.skipif(on_gpu(), reason="a handle that is made up ends a real process")


class Protocol:
    def __init__(self, answer):
        self.answer = answer

    def __cuda_stream__(self):
        return self.answer


class Property:
    __cuda_stream__ = (0, 1)


class Number:
    def __int__(self):
        return 1


TAKEN = {
    "None": None,
    "0": 0,
    "1": 1,
    "the protocol": Protocol((0, 1)),
    "the protocol as a property": Property(),
    "like PyTorch's": SimpleNamespace(cuda_stream=0),
    "like CuPy's": SimpleNamespace(ptr=1),
    "like Numba's": SimpleNamespace(handle=ctypes.c_void_p(1)),
    "like Numba's default": SimpleNamespace(handle=ctypes.c_void_p(0)),
    "like Numba's with a handle of CUDA Python": SimpleNamespace(handle=Number()),
    "the protocol before others": SimpleNamespace(__cuda_stream__=lambda: (0, 1), ptr="no"),
}

REFUSED = {
    "a text": ("1", TypeError),
    "a truth": (True, TypeError),
    "a float": (1.0, TypeError),
    "an array": (np.ones(3), TypeError),
    "a type": (Protocol, TypeError),
    "a negative number": (-1, ValueError),
    "too large a number": (1 << 64, ValueError),
    "the protocol without a tuple": (Protocol(1), TypeError),
    "the protocol with three": (Protocol((0, 1, 2)), TypeError),
    "the protocol with a text": (Protocol((0, "1")), TypeError),
    "the protocol's next version": (Protocol((1, 1)), ValueError),
    "a handle that is a text": (SimpleNamespace(handle="1"), TypeError),
    "a handle that is nothing": (SimpleNamespace(ptr=object()), TypeError),
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_is_taken_as_a_stream(case):
    a = np.ones(3, np.float32)
    device = gk.to_device(a, TAKEN[case])
    assert (gk.add(device, a, stream=TAKEN[case]).to_host() == 2).all()
    gk.synchronize(TAKEN[case])
    gk.Event().record(TAKEN[case])


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_as_a_stream(case):
    stream, exception = REFUSED[case]
    a = np.ones(3, np.float32)
    out = np.zeros(3, np.float32)
    with pytest.raises(exception) as raised:
        gk.add(a, a, out=out, stream=stream)
    assert str(raised.value).startswith("add: ")
    assert not out.any()


def test_what_reading_a_stream_raises_is_passed_on():
    class Broken:
        @property
        def ptr(self):
            raise RuntimeError("this stream is closed")

    with pytest.raises(RuntimeError, match="closed"):
        gk.add(np.ones(3), np.ones(3), stream=Broken())


@SIMULATOR
def test_the_simulator_knows_its_streams():
    with pytest.raises(ValueError, match="add: the simulator's device 0 has no stream 0x4d"):
        gk.add(np.ones(3), np.ones(3), stream=Protocol((0, 77)))


def test_reductions_side_by_side_on_more_streams_than_have_counters():
    streams = [gk.Stream() for _ in range(70)]
    size = 300_000 if on_gpu() else 3_000
    arrays = [np.arange(i, i + size, dtype=np.int32) for i in range(len(streams))]
    there = [gk.to_device(array, stream) for array, stream in zip(arrays, streams, strict=True)]
    for _ in range(20 if on_gpu() else 2):
        sums = [gk.sum(a, stream=stream) for a, stream in zip(there, streams, strict=True)]
    assert [int(total.to_host()) for total in sums] == [int(a.sum()) for a in arrays]


# --- the order of work, read off the fake driver ----------------------------------------------

TRACED = """
import ctypes, gc
driver = ctypes.CDLL("libcuda.so.1")
def at(number):  # the handle of a made-up stream
    return ctypes.addressof((ctypes.c_char * 4096).in_dll(driver, "fake_streams")) + number
def log(call):
    gc.collect()
    text = ctypes.c_char * (1 << 16)
    before = len(text.in_dll(driver, "fake_log").value)
    kept = call()
    if kept is None or isinstance(kept, gk.DeviceArray):
        done = text.in_dll(driver, "fake_log").value[before:].decode().split()
    return done, kept
def capture(stream, blocking=0):
    driver.fake_capture(ctypes.c_void_p(stream), blocking)
x, y = gk.to_device(a), gk.to_device(a)
S, T = at(1001), at(1002)
def add(*operands, **named):
    done, kept = log(lambda: gk.add(*operands, **named))
    return done
"""


@pytest.fixture
def traced(on_fake):
    return lambda code: answers(on_fake(TRACED + code))


@NEEDS_FAKE
def test_one_stream_needs_no_event(traced):
    code = """
out = gk.empty((3, 4))
there = gk.to_device(a, S)
print(json.dumps([add(x, y, out=out), add(there, there, out=there, stream=S)]))
"""
    assert traced(code) == [["l0"], ["l1001"]]


@NEEDS_FAKE
def test_a_call_elsewhere_waits_for_the_homes_and_they_for_it(traced):
    code = """
out = gk.empty((3, 4))
print(json.dumps(add(x, y, out=out, stream=S)))
"""
    assert traced(code) == ["r1", "w1001", "l1001", "r1001", "w1"]


@NEEDS_FAKE
def test_each_home_is_joined_once(traced):
    code = """
s, t = gk.to_device(a, S), gk.to_device(a, T)
print(json.dumps([add(s, s), add(s, t, out=x), add(s, t, out=t, stream=T)]))
"""
    first, second, third = traced(code)
    assert first == ["r1001", "w0", "l0", "r0", "w1001"]
    assert second == ["r1001", "w0", "r1002", "w0", "l0", "r0", "w1001", "r0", "w1002"]
    assert third == ["r1001", "w1002", "l1002", "r1002", "w1001"]


@NEEDS_FAKE
def test_a_home_stays_what_it_is(traced):
    """So that what the interface says, reads and releases stay right, whoever wrote last."""
    code = """
s = gk.to_device(a, S)
gk.add(x, y, out=s)
gk.add(s, s, out=x, stream=T)
named = [s.__cuda_array_interface__["stream"] == S, x.__cuda_array_interface__["stream"]]
def end():
    global s
    del s
freed, _ = log(end)
print(json.dumps([named, freed]))
"""
    assert traced(code) == [[True, 1], ["f1001"]]


@NEEDS_FAKE
def test_the_stream_of_a_thread_is_no_home(traced):
    code = """
made = gk.add(x, y, stream=2)
print(json.dumps(made.__cuda_array_interface__["stream"]))
"""
    assert traced(code) == 1


@NEEDS_FAKE
def test_an_array_keeps_the_stream_object_that_it_was_made_on(traced):
    code = """
import weakref
class Stream:
    cuda_stream = S
stream = Stream()
made, seen = gk.add(x, y, stream=stream), weakref.ref(stream)
del stream
gc.collect()
alive = seen() is not None
del made
gc.collect()
print(json.dumps([alive, seen() is None]))
"""
    assert traced(code) == [True, True]


@NEEDS_FAKE
def test_a_stream_has_counters_that_are_zeroed_once(traced):
    """But for a thread's own stream, whose name is every thread's, and for all after the 64th."""
    code = """
long = gk.to_device(np.ones(40_000, np.float32))
def zeroed(stream):
    done, _ = log(lambda: gk.sum(long, stream=stream))
    return [step for step in done if step[0] == "z"]
print(json.dumps([len(zeroed(stream)) for stream in (S, S, T, T, 0, 1, 2, 2, S)]))
print(json.dumps([zeroed(stream) for stream in range(at(2001), at(2001) + 62)][-2:]))
print(json.dumps([zeroed(at(2061)), zeroed(at(2062)), zeroed(0)]))
"""
    seldom, late, again = traced(code)
    assert seldom == [1, 0, 1, 0, 1, 0, 1, 1, 0]
    assert late == [["z2061"], ["z2062"]]
    assert again == [[], ["z2062"], []]


@NEEDS_FAKE
def test_a_graph_has_counters_of_its_own_that_are_zeroed_once(traced):
    """Beside the capture, so that a reduction is one node."""
    code = """
long = gk.to_device(np.ones(40_000, np.float32), S)
gk.sum(long, stream=S)
def captured():
    capture(S)
    done = [log(lambda: gk.sum(long, stream=S)) for _ in range(2)]
    capture(0)
    return [steps for steps, _ in done]
print(json.dumps(captured()))
print(json.dumps(captured()))
"""
    for first, second in traced(code):
        beside, launch = first
        assert launch == "l1001" and beside[0] == "z" and beside != "z1001"
        assert second == ["l1001"]


@NEEDS_FAKE
def test_a_reduction_takes_no_memory(traced):
    """Partial results lie in what a stream keeps, which has room for all that blocks leave."""
    code = """
def taken(array, axis):
    gk.sum(array, axis, stream=S)
    done, _ = log(lambda: gk.sum(array, axis, stream=S))
    return [step for step in done if step[0] != "l"]
print(json.dumps([taken(gk.empty(shape, dtype, stream=S), axis) for dtype, shape, axis in (
    ("f4", (5000, 30), 0), ("f4", (100_000, 300), 0), ("f4", (3, 200_000), 1),
    ("f4", (70, 1000, 300), 1), ("int8", (3000, 50_000), 0), ("int8", (1_000_000, 450), 0))]))
live = _core.live_bytes()
print(json.dumps(live))
"""
    kept, live = traced(code)
    assert kept == [[]] * 6
    assert live == 2 * 48, "nobody's to release"


@NEEDS_FAKE
def test_what_lies_in_another_order_is_copied_first_where_that_is_sooner(on_fake):
    """Of many elements beside each of which a sector of others is moved, or half of one: not where
    their neighbours come soon, nor what lies in order."""
    code = """
def launches(rows, columns, dtype, *axes):
    array = gk.empty((columns, rows), dtype, stream=S).T
    done, _ = log(lambda: gk.sum(array, axes, stream=S))
    return len([step for step in done if step[0] == "l"])
print(json.dumps([launches(24, 16_339, "f2", 1), launches(105, 8_119, "f4", 0, 1),
                  launches(45, 6_000, "f4", 1), launches(45, 2_000, "f4", 1),
                  launches(5, 123_072, "f2", 1), launches(204_576, 3, "f4", 0, 1),
                  launches(4, 100_000, "f8", 1)]))
apart = gk.empty((500, 700, 12), "f4", stream=S)[:, :, 0]
print(json.dumps([step for step in log(lambda: gk.sum(apart, stream=S))[0] if step[0] == "l"]))
"""
    turned, in_order = answers(on_fake(TRACED + code, FAKE_KERNELS=0))
    assert turned == [2, 2, 2, 1, 1, 1, 1]
    assert len(in_order) == 1


@NEEDS_FAKE
def test_a_full_device_has_no_room_for_lasting_counters(on_fake):
    """Nor for what partial results would be kept in: both are of this call alone."""
    code = """
long = gk.to_device(np.ones(40_000, np.float32))
done, _ = log(lambda: gk.sum(long, stream=S))
print(json.dumps([step for step in done if step[0] in "zf"]))
"""
    assert answers(on_fake(TRACED + code, FAKE_MEMORY=400_000)) == ["z1001", "f1001", "f1001"]


@NEEDS_FAKE
def test_captured_calls_are_nodes_alone(traced):
    """No wait for what is not captured, nothing freed, and a result that lives on."""
    code = """
out, long = gk.empty((3, 4)), gk.empty((40_000,))
live = _core.live_bytes()
capture(S)
plain = add(x, y, out=out, stream=S)
summed, total = log(lambda: gk.sum(long, stream=S))
turned, result = log(lambda: gk.transpose(x, stream=S))
capture(None)
shared = _core.live_bytes() - live
values = gk.add(result, 0.0).shape
del total, result
kept = _core.live_bytes() - live
driver.fake_graph_gone()
print(json.dumps([plain, summed, turned, values, shared > 0, kept == shared,
                  _core.live_bytes() == live]))
"""
    plain, summed, turned, shape, shared, kept, gone = traced(code)
    assert plain == ["l1001"]
    assert turned == ["l1001"]
    assert [step for step in summed if step.endswith("1001")] == ["l1001"]
    assert [step[0] for step in summed] == ["z", "l"], "counters that are the graph's"
    assert shape == [4, 3]
    assert (shared, kept, gone) == (True, True, True)


@NEEDS_FAKE
def test_what_captured_calls_need_for_themselves_is_the_graphs(traced):
    """No nodes that take memory and free it, and the same memory for the next call, but for another
    graph; large memory is taken by nodes."""
    code = """
def turned(rows, columns):
    return gk.empty((columns, rows), stream=S).T
little, more, large, out = turned(1472, 33), turned(4000, 33), turned(4200, 4200), gk.empty(())
live = _core.live_bytes()
def captured(*arrays):
    capture(S)
    done = [log(lambda: gk.sum(array, out=out, stream=S))[0] for array in arrays]
    capture(None)
    return [[s for s in steps if s.endswith("1001")] for steps in done], _core.live_bytes() - live
def alone(*arrays):
    found = captured(*arrays)
    driver.fake_graph_gone()
    return *found, _core.live_bytes() - live
print(json.dumps([alone(*arrays) for arrays in (
    [little], [little] * 3, [little, more], [more, little], [little, large])]))
print(json.dumps([captured(little)[1] for _ in range(2)]))
"""
    (one, three, two, again, beside), graphs = traced(code)
    launches = ["l1001", "l1001"]
    assert one[0] == [launches]
    assert three == [[launches] * 3, one[1], 0]
    assert two[0] == again[0] == [launches] * 2
    assert two[1] > again[1] > one[1] > 0, "a larger piece serves for less, too"
    assert beside == [[launches, [*launches, "f1001"]], one[1], 0]
    assert graphs == [one[1], 2 * one[1]], "graphs that are both there"


@NEEDS_FAKE
def test_the_array_may_outlive_the_graph(traced):
    code = """
live = _core.live_bytes()
capture(S)
made = gk.add(x, y, stream=S)
capture(None)
driver.fake_graph_gone()
between = _core.live_bytes() > live
del made
print(json.dumps([between, _core.live_bytes() == live]))
"""
    assert traced(code) == [True, True]


@NEEDS_FAKE
@pytest.mark.parametrize(("home", "blocking"), [("S", 0), ("None", 1)])
def test_an_array_that_dies_during_a_capture_is_freed_after_it(traced, home, blocking):
    code = f"""
there = gk.to_device(a, {home})
live = _core.live_bytes()
capture(S, {blocking})
def end():
    global there
    del there
during, _ = log(end)
capture(None)
after, _ = log(lambda: gk.empty(3))
print(json.dumps([during, after]))
"""
    home_number = "1001" if home == "S" else "0"
    assert traced(code) == [[], [f"f{home_number}"]]


@NEEDS_FAKE
def test_what_cannot_be_captured_says_so_and_leaves_the_capture_alone(traced):
    code = """
s = gk.to_device(a, S)
capture(S)
calls = [(gk.to_device, a, S), (s.to_host,)]
failures = [failure(*call) for call in calls]
failures.append(failure(gk.add, a, x, stream=S))
failures.append(failure(gk.add, x, y, out=a, stream=S))
with gk.strict():
    failures.append(failure(gk.add, x, y, stream=S))
with gk.profile():
    failures.append(failure(gk.add, x, y, stream=S))
failures.append(failure(gk.add, s, x))
print(json.dumps([failures, add(x, y, out=x, stream=S)]))
"""
    failures, still = traced(code)
    words = [*["host memory"] * 4, *["profile() and strict()"] * 2, "pass that stream as stream="]
    operations = ["to_device", "to_host", *["add"] * 5]
    for (kind, sentence), word, operation in zip(failures, words, operations, strict=True):
        assert kind == "ValueError"
        assert sentence.startswith(f"{operation}: ")
        assert word in sentence
    assert still == ["l1001"]
