"""limits and device: what may be set, for how long, and what they say to a mistake."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack

import numpy as np
import pytest

import gpukern as gk
from arrays import DTYPES, random
from fakes import NEEDS_FAKE, answers
from gpukern import _core, settings
from waiting import join_all

NAMES = ("pinned_memory", "device_memory", "mapped_call")


@pytest.fixture(autouse=True)
def unchanged():
    before = gk.limits()
    yield
    assert gk.limits() == before


def test_reading_changes_nothing():
    assert gk.limits() == gk.limits()
    assert gk.limits().mapped_call == 192 << 10
    assert gk.limits().device_memory == 0
    assert gk.limits().pinned_memory > 0
    assert repr(gk.limits(pinned_memory=None)).startswith("Limits(pinned_memory=")


@pytest.mark.parametrize("name", NAMES)
def test_setting_one_leaves_the_others(name):
    before = gk.limits()
    try:
        now = gk.limits(**{name: 12_345})
        assert getattr(now, name) == 12_345
        for other in NAMES:
            assert other == name or getattr(now, other) == getattr(before, other)
        assert gk.limits() == now, "it holds until it is set again"
    finally:
        gk.limits(**{name: getattr(before, name)})


def test_blocks_nest_and_restore():
    before = gk.limits()
    with gk.limits(mapped_call=100) as outer:
        assert outer.mapped_call == 100
        with gk.limits(mapped_call=50, device_memory=1 << 20) as inner:
            assert (inner.mapped_call, inner.device_memory) == (50, 1 << 20)
        assert gk.limits() == outer
        gk.limits(device_memory=5)
        gk.limits(device_memory=before.device_memory)
    with pytest.raises(ZeroDivisionError), gk.limits(mapped_call=1):
        raise ZeroDivisionError
    assert gk.limits() == before


def test_a_block_takes_back_what_it_has_set_and_no_more():
    before = gk.limits()
    with gk.limits(mapped_call=100):
        gk.limits(device_memory=12_345)
    try:
        assert gk.limits().device_memory == 12_345
        assert gk.limits().mapped_call == before.mapped_call
    finally:
        gk.limits(device_memory=before.device_memory)


def test_limits_hold_for_all_threads():
    seen = []
    with gk.limits(mapped_call=77):
        thread = threading.Thread(target=lambda: seen.append(gk.limits().mapped_call))
        thread.start()
        join_all(thread)
    assert seen == [77]


def mapped():
    return gk.limits().mapped_call


def test_blocks_end_in_any_order():
    before = mapped()
    one, two = gk.limits(mapped_call=1), gk.limits(mapped_call=2)
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(one)
        second.enter_context(two)
        assert mapped() == 2
        first.close()
        assert mapped() == 2, "the newest one that is open holds"
        third = first.enter_context(gk.limits(mapped_call=3))
        assert third.mapped_call == 3
        second.close()
        assert mapped() == 3
    assert mapped() == before


def test_a_block_ends_before_the_next_one_has_begun():
    before = mapped()
    with gk.limits(mapped_call=1):
        two = gk.limits(mapped_call=2)
    assert mapped() == before
    for _ in range(2):
        with two, two:
            assert mapped() == 2
            gk.limits(mapped_call=5)
            kept = gk.limits(mapped_call=6)
            assert mapped() == kept.mapped_call == 6
        assert mapped() == before


def test_what_is_set_for_good_is_what_later_blocks_go_back_to():
    before = mapped()
    try:
        for count in (1, 2):
            gk.limits(mapped_call=count)
        with gk.limits(mapped_call=3):
            gk.limits(mapped_call=4)
            with gk.limits(mapped_call=5):
                pass
            assert mapped() == 4
        assert mapped() == 2
        kept = gk.limits(mapped_call=6)
        with gk.limits(mapped_call=3):
            del kept
            gk.limits(mapped_call=4)
        assert mapped() == 6
        _core.limit("mapped_call", 7)
        with gk.limits(mapped_call=8):
            pass
        assert mapped() == 7
    finally:
        gk.limits(mapped_call=before)


def test_limits_set_for_good_do_not_pile_up():
    before = mapped()
    for _ in range(100):
        gk.limits(mapped_call=before)
    assert len(settings._limits["mapped_call"].changes) <= 1


def test_blocks_of_many_threads_leave_nothing():
    def work(count):
        for _ in range(200):
            with gk.limits(mapped_call=count, device_memory=count):
                time.sleep(0)

    before = gk.limits()
    threads = [threading.Thread(target=work, args=(count,)) for count in range(4)]
    for thread in threads:
        thread.start()
    join_all(*threads)
    assert gk.limits() == before


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (-1, ValueError),
        (2**63, ValueError),
        (1.5, TypeError),
        ("1 GiB", TypeError),
        (True, TypeError),
    ],
)
def test_mistakes_change_nothing(wrong, error):
    for name in NAMES:
        with pytest.raises(error, match=f"limits: {name} is a number of bytes"):
            gk.limits(**{"pinned_memory": 5, "mapped_call": 5, name: wrong})


def test_numpys_integers_are_taken():
    with gk.limits(mapped_call=np.int64(4096)) as now:
        assert now.mapped_call == 4096


def test_the_engines_own_words():
    with pytest.raises(ValueError, match="tiled_copy, vectors and repeated_row"):
        _core.limit("memory")
    with pytest.raises(TypeError, match="text"):
        _core.limit(3)
    with pytest.raises(OverflowError):
        _core.limit("mapped_call", -1)


# --- devices ----------------------------------------------------------------------------------


def test_the_first_device_is_the_default():
    a = random(10, DTYPES["float32"])
    with gk.device(0):
        assert gk.add(a, a).tobytes() == (a + a).tobytes()
        with gk.device(0):
            pass
        device = gk.to_device(a)
    assert device.to_host().tobytes() == a.tobytes()


@pytest.mark.parametrize("ordinal", [-1, 15, 16, 99, 10**30])
def test_a_device_that_there_is_not(ordinal):
    name = _core.devices()[0]["name"]
    with pytest.raises(ValueError, match="there is no device") as caught, gk.device(ordinal):
        raise AssertionError("the block has begun")
    assert str(caught.value).startswith(f"device: there is no device {ordinal}; this machine has 0")
    assert name in str(caught.value)
    gk.add(np.ones(3, np.float32), 1.0)


def test_a_device_is_a_number():
    with pytest.raises(TypeError), gk.device("first"):
        raise AssertionError("the block has begun")


TWO_DEVICES = """
import threading
a = np.ones(100_000, np.float32)
zero = gk.to_device(a)
with gk.device(1):
    one = gk.to_device(a)
    assert _core.choose_device(1) == 1
    fails((gk.add, zero, one), (gk.add, one, zero))
    gk.add(one, one)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(_core.choose_device(0)))
    thread.start(); thread.join()
    assert seen == [0], "the choice is the thread's own"
    try:
        with gk.device(2):
            pass
    except ValueError as error:
        print(json.dumps(str(error)))
    assert _core.choose_device(1) == 1
    try:
        with gk.device(0):
            gk.add(zero, zero)
            raise KeyError
    except KeyError:
        pass
    assert _core.choose_device(1) == 1
assert _core.choose_device(0) == 0
assert gk.add(one, a).device == 1, "an operation runs where its operands are"
assert (one.to_host() == a).all(), "an array is read wherever it is"
held = [gk.add(a, a) for _ in range(3)]
with gk.device(1):
    held += [gk.add(a.repeat(3), 1.0) for _ in range(3)]
    assert _core.pinned_bytes()[0] > 0
del one, zero
"""


@NEEDS_FAKE
def test_two_devices(on_fake):
    """Each has memory, streams and a pool of its own; arrays of one are refused on the other."""
    run = on_fake(TWO_DEVICES, FAKE_DEVICES=2)
    assert run.stderr == ""
    refused, sentence = answers(run)
    for name, text in refused:
        assert name == "ValueError"
        assert "device 0" in text
        assert "device 1" in text
    assert "device 2" in sentence
    assert "0 (Fake GPU 0), 1 (Fake GPU 1)" in sentence
