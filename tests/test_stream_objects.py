"""gpukern.Stream and gpukern.Graph as objects: what they refuse, what becomes of them when they die
or a device call fails in the middle, and what a fault that is far away changes: nothing."""

from __future__ import annotations

import gc
import os
import time

import numpy as np
import pytest

import gpukern as gk
from arrays import on_gpu
from gpukern import _core

SIMULATOR = pytest.mark.skipif(on_gpu(), reason="the simulator's own checks")
A = np.arange(50, dtype=np.float32)


@pytest.fixture
def stream():
    return gk.Stream()


@pytest.fixture
def there():
    return gk.to_device(A)


def live():
    gc.collect()
    gk.synchronize()
    return _core.live_bytes()


def settles_at(wanted):
    """A driver tells on a thread of its own, a moment later, that a graph is gone."""
    end = time.monotonic() + 10
    while live() != wanted and time.monotonic() < end:
        time.sleep(0.001)
    return live() == wanted


def test_a_stream_hands_itself_to_other_libraries(stream):
    assert stream.__cuda_stream__() == (0, stream.cuda_stream)
    assert stream.device == 0


def test_a_capture_is_begun_once_and_ended_once(stream, there):
    with pytest.raises(
        ValueError if not on_gpu() else gk.CudaError, match=r"Stream\.end_capture: "
    ):
        stream.end_capture()
    stream.begin_capture()
    with pytest.raises((ValueError, gk.CudaError), match=r"Stream\.begin_capture: "):
        stream.begin_capture()
    if not on_gpu():  # there the driver's refusal has ended the capture
        twice = gk.add(there, there, stream=stream)
        stream.end_capture().launch()
        assert (twice.to_host() == 2 * A).all()


@SIMULATOR
def test_what_a_stream_that_is_being_captured_refuses(stream, there):
    home, never, earlier = gk.to_device(A, stream=stream), gk.Event(), gk.Event()
    earlier.record()
    stream.begin_capture()
    with pytest.raises(gk.CudaError, match=r"Stream\.synchronize: .*captured"):
        stream.synchronize()
    with pytest.raises(gk.CudaError, match="no event is recorded on a stream that is being"):
        never.record(stream)
    with pytest.raises(ValueError, match="an event that was not recorded has no time"):
        never.seconds_since(earlier)
    with pytest.raises(ValueError, match=r"add: .*captured"):
        gk.add(home, there)  # on a stream that is not
    with pytest.raises(ValueError, match="add: host memory takes part"):
        gk.add(np.ones(70_000, np.float32), np.ones(70_000, np.float32), stream=stream)
    with gk.profile():
        for call in (home.to_host, lambda: repr(home)):
            with pytest.raises(ValueError, match=r"profile\(\) and strict\(\) wait"):
                call()
    twice = gk.add(home, home, stream=stream)
    stream.end_capture().launch()
    assert (twice.to_host() == 2 * A).all()


@pytest.mark.skipif(len(_core.devices()) < 2, reason="this machine has one GPU")
def test_a_copy_from_another_device_is_not_captured(stream):
    with gk.device(1):
        beside = gk.to_device(A)
    before = live()
    stream.begin_capture()
    with pytest.raises(ValueError, match="to_device: a is on device 1, and a copy"):
        gk.to_device(beside, stream=stream)
    stream.end_capture()
    assert live() == before
    assert (gk.to_device(beside).to_host() == A).all()


def test_a_stream_that_dies_in_its_capture_takes_all_of_it_along(there):
    before = live()
    stream = gk.Stream()
    stream.begin_capture()
    gk.add(there, there, stream=stream)
    del stream
    assert live() == before
    assert (gk.add(there, there).to_host() == 2 * A).all()


@SIMULATOR
@pytest.mark.skipif(
    "san" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer ends the process before"
)
@pytest.mark.parametrize("lazy", ["0", "5"])
def test_a_write_past_an_allocation_is_told_with_the_kernel_that_ran_last(lazy, script):
    """Where it is waited for, and once; what was overwritten is made good."""
    run = script(
        """
import ctypes, numpy as np, gpukern as gk
there = gk.to_device(np.ones(12, np.float32))
first = there.__cuda_array_interface__["data"][0]
for offset in (48, -1, 50):
    ctypes.memset(first + offset, 0, 1)
    try:
        gk.add(there, there)
        gk.synchronize()
    except gk.CudaError as error:
        print(error)
assert (gk.add(there, there).to_host() == 2).all()
gk.synchronize()
""",
        GPUKERN_DEVICE="sim",
        GPUKERN_SIM_LAZY=lazy,
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    for line, byte in zip(lines, (48, -1, 50), strict=True):
        assert "gk_add_f32" in line
        assert f"wrote out of bounds: at byte {byte} of an allocation of 48" in line


@SIMULATOR
def test_a_device_that_the_simulator_has_not():
    with pytest.raises(ValueError, match="there is no device 9: the simulator has"):
        _core.choose_device(9)
    assert gk.to_device(A).device == 0


# --- faults -----------------------------------------------------------------------------------


@pytest.fixture
def faults():
    """fail_call, disarmed in the end."""
    yield _core.fail_call
    _core.fail_call(0)


def graph_of(stream, there):
    stream.begin_capture()
    twice = gk.add(there, there, stream=stream)
    return stream.end_capture(), twice


USES = {
    "Stream": lambda stream, there: gk.Stream() and None,
    "Stream.synchronize": lambda stream, there: stream.synchronize(),
    "Graph.launch": lambda stream, there: graph_of(stream, there)[0].launch(),
}


@pytest.mark.parametrize("use", USES)
def test_every_step_may_fail(use, stream, there, faults):
    before, raised = live(), 0
    for number in range(1, 100):
        faults(number)
        try:
            USES[use](stream, there)
        except (gk.CudaError, MemoryError) as error:
            assert "planted fault" in str(error)
            raised += 1
            _end_capture(stream)
        if not faults(0):
            break
        assert settles_at(before)
    assert raised >= 1
    graph, twice = graph_of(stream, there)
    graph.launch()
    assert (twice.to_host() == 2 * A).all()


def _end_capture(stream):
    try:
        stream.end_capture()
    except (ValueError, gk.CudaError):  # it was not begun
        return


@pytest.mark.skipif(len(_core.devices()) < 2, reason="this machine has one GPU")
def test_every_step_of_a_copy_from_another_device_may_fail(faults):
    with gk.device(1):
        beside = gk.to_device(A)
    before, raised = live(), 0
    for number in range(1, 100):
        faults(number)
        try:
            got = gk.to_device(beside)
        except (gk.CudaError, MemoryError) as error:
            assert "planted fault" in str(error)
            raised += 1
            got = None
        struck = faults(0)
        assert got is None or (got.to_host() == A).all()
        if not struck:
            break
        got = None
        assert live() == before, number
    assert raised >= 3


def test_a_fault_that_is_far_away_changes_nothing(faults):
    """Whatever goes to the device goes through what plants faults."""
    faults(1_000_000)
    before = live()
    stream, there, event = gk.Stream(), gk.to_device(A), gk.Event()
    graph, twice = graph_of(stream, there)
    graph.launch()
    event.record(stream)
    assert (twice.to_host() == 2 * A).all()
    assert _core.make_current() == 0
    long = np.arange(100_000, dtype=np.float32)
    assert (gk.add(long, long) == 2 * long).all()
    gk.release_memory()
    del graph, twice, there, stream, event, long
    assert settles_at(before)
    assert not faults(0)
