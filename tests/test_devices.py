"""Several devices in one process: what runs where, what waits for what, and what is refused.

Two GPUs where there are two; elsewhere the simulator's two devices.
"""

from __future__ import annotations

import gc
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import gpukern as gk
from arrays import on_gpu
from gpukern import _core

DEVICES = len(_core.devices())
pytestmark = pytest.mark.skipif(DEVICES < 2, reason="this machine has one GPU")

VALUES = np.arange(1000, dtype=np.float32)


def live():
    """Device bytes in use, device by device."""
    gc.collect()
    found = []
    for ordinal in range(2):
        with gk.device(ordinal):
            found.append(_core.live_bytes())
    return found


@pytest.fixture(autouse=True)
def balanced():
    """A test leaves as many bytes allocated on each device as it has found."""
    before = live()
    yield
    assert live() == before


def on_one():
    """VALUES on device 1."""
    with gk.device(1):
        return gk.to_device(VALUES)


def test_an_operation_runs_where_its_operands_are():
    one = on_one()
    total = gk.add(one, one)
    assert (one.device, total.device) == (1, 1)
    assert (total.to_host() == VALUES + VALUES).all()
    assert gk.sum(one).device == 1
    assert gk.add(VALUES, one).device == 1
    assert (one + 1).device == 1
    with gk.device(0):
        assert (-one).device == 1
    assert gk.to_device(VALUES).device == 0


def test_the_result_goes_where_out_is():
    one = on_one()
    assert gk.add(VALUES, VALUES, out=one) is one
    assert (one.to_host() == VALUES + VALUES).all()
    host = np.zeros_like(VALUES)
    gk.add(one, one, out=host)
    assert (host == 4 * VALUES).all()


def test_every_method_works_whichever_device_is_chosen():
    one = on_one()
    for chosen in range(2):
        with gk.device(chosen):
            assert (one.to_host() == VALUES).all()
            assert (np.asarray(one) == VALUES).all()
            assert repr(one).startswith("DeviceArray([")
            assert repr(one[:3]) == "DeviceArray([0., 1., 2.], shape=(3,), dtype=float32)"
            assert bool(one[1]) and not bool(one[0])
            assert (one[::2].reshape(20, 25)).device == 1
            assert (one[::2].reshape(-1).to_host() == VALUES[::2]).all()


def test_a_copy_goes_to_the_chosen_device():
    one = on_one()
    zero = gk.to_device(one[::2])
    assert (zero.device, one.device) == (0, 1)
    assert (zero.to_host() == VALUES[::2]).all()
    with gk.device(1):
        assert gk.to_device(zero).device == 1
        assert gk.to_device(one).device == 1
    assert gk.to_device(one[:0]).shape == (0,)


def test_operands_of_two_devices_are_refused_with_the_way_out():
    one = on_one()
    zero = gk.to_device(VALUES)
    with pytest.raises(
        ValueError, match="add: b is on device 1, and the call runs on device 0"
    ) as e:
        gk.add(zero, one)
    assert "with gpukern.device(0): b = gpukern.to_device(b)" in str(e.value)
    with pytest.raises(ValueError, match="add: out is on device 0, and the call runs on device 1"):
        gk.add(one, one, out=zero)
    with gk.device(0):
        b = gk.to_device(one)
    assert (gk.add(zero, b).to_host() == VALUES + VALUES).all()


def test_a_stream_of_another_device_is_refused():
    with gk.device(1):
        far = gk.Stream()
    near = gk.Stream()
    zero = gk.to_device(VALUES)
    near.begin_capture()
    gk.add(zero, zero, stream=near)
    graph = near.end_capture()
    for call in (
        lambda: gk.add(zero, zero, stream=far),
        lambda: gk.empty(3, stream=far),
        lambda: graph.launch(far),
        lambda: gk.Event().record(far),
    ):
        with pytest.raises(ValueError, match="stream is of device 1, and the call is on device 0"):
            call()
    gk.synchronize(stream=far)


def test_events_stay_on_their_device():
    one = on_one()
    with gk.device(1):
        first = gk.Event()
        first.record()
    gk.add(one, one)
    last = gk.Event()
    with gk.device(1):
        last.record()
    assert last.seconds_since(first) >= 0
    first.record()  # again, with another device chosen
    other = gk.Event()
    other.record()
    with pytest.raises(ValueError, match="recorded on device 1, this event on device 0"):
        other.seconds_since(first)


def test_arrays_of_other_libraries_are_taken_where_they_are():
    one = on_one()
    theirs = SimpleNamespace(__cuda_array_interface__=one.__cuda_array_interface__)
    assert gk.add(theirs, 1.0).device == 1
    assert (gk.add(theirs, one).to_host() == VALUES + VALUES).all()
    with pytest.raises(ValueError, match="add: b is on device 1, and the call runs on device 0"):
        gk.add(gk.to_device(VALUES), theirs)
    with pytest.raises(ValueError, match="add: out is on device 1, and the call runs on device 0"):
        gk.add(gk.to_device(VALUES), 1.0, out=theirs)


@pytest.mark.skipif(not on_gpu(), reason="needs a library with tensors on a GPU")
def test_tensors_of_pytorch_are_taken_where_they_are():
    torch = pytest.importorskip("torch")
    tensor = torch.arange(1000, dtype=torch.float32, device="cuda:1")
    assert gk.add(tensor, tensor).device == 1
    assert (gk.add(tensor, 1.0).to_host() == VALUES + 1).all()
    lent = gk.from_dlpack(tensor)
    assert lent.device == 1
    assert (gk.to_device(tensor).to_host() == VALUES).all()
    assert gk.to_device(tensor).device == 0
    back = torch.from_dlpack(gk.add(tensor, tensor))
    assert back.device.index == 1
    assert (back.cpu().numpy() == VALUES + VALUES).all()


def test_pending_work_there_is_waited_for():
    """Long work on device 1, and a read of it while device 0 is chosen."""
    with gk.device(1):
        large = gk.to_device(np.ones(1 << (24 if on_gpu() else 16), np.float32))
    for _ in range(20):
        gk.add(large, 1.0, out=large)
    assert (large.to_host() == 21).all()
    for _ in range(20):
        gk.add(large, 1.0, out=large)
    assert float(large[-1].to_host()) == 41


def test_a_thread_for_each_device():
    found = [None, None]

    def work(ordinal):
        with gk.device(ordinal):
            there = gk.to_device(VALUES + ordinal)
            for _ in range(50):
                there = gk.add(there, 1.0)
            found[ordinal] = there.to_host() + gk.add(VALUES, VALUES)

    threads = [threading.Thread(target=work, args=(ordinal,)) for ordinal in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for ordinal in range(2):
        assert (found[ordinal] == 3 * VALUES + ordinal + 50).all()
