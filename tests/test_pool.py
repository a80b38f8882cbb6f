"""Results in memory that is used again: whose it is, how long it lives, and how much there is."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, random, sanitized
from gpukern import _core
from waiting import join_all

COUNT = 300_000  # large enough for a result of its own in the pool
MIB = 1 << 20


def large(seed=0):
    return random(COUNT, DTYPES["float32"], seed)


def in_use():
    gc.collect()
    return _core.pinned_bytes()[0]


@pytest.fixture(autouse=True)
def warm():
    """What the pipeline keeps for good is there before a test counts, nothing of other tests."""
    gk.release_memory()
    gk.add(large(), 1.0)
    gk.add(np.ones(5, np.float32), 1.0)
    before = in_use()
    yield
    assert in_use() == before, "memory of the pool is still in use"


def test_a_result_is_an_ordinary_array():
    got = gk.add(large(), 1.0)
    assert type(got) is np.ndarray
    flags = got.flags
    assert flags.c_contiguous and flags.writeable and flags.aligned
    assert got.base is not None, "what gives the memory back is the base"
    got[:] = 7
    assert got.sum() == 7 * COUNT
    got.resize((3, COUNT // 3), refcheck=False)
    assert got.T.strides == (4, 4 * COUNT // 3)


def test_memory_is_used_again():
    a = large()
    seen = set()
    for _ in range(20):
        result = gk.add(a, a)
        seen.add(result.ctypes.data)
        del result
    assert len(seen) == 1
    first, second = gk.add(a, a), gk.add(a, 1.0)
    assert first.ctypes.data != second.ctypes.data
    oracle.assert_same(first, oracle.add(a, a), "the older of two")
    oracle.assert_same(second, a + np.float32(1), "the newer of two")


def test_small_results_are_numpys_own():
    before = in_use()
    kept = [gk.add(np.ones(1000, np.float32), 1.0) for _ in range(10)]
    assert in_use() == before
    assert all(each.base is None for each in kept)


def test_views_keep_the_memory():
    before = in_use()
    whole = gk.add(large(), 1.0)
    want = whole.copy()
    view = whole[1000:2000].reshape(10, 100).T
    del whole
    assert in_use() > before
    others = [gk.add(large(seed), 1.0) for seed in range(3)]
    oracle.assert_same(view.T.ravel(), want[1000:2000], "a view of an array that is gone")
    del view, others


COPIES = {
    "pickle": lambda array: pickle.loads(pickle.dumps(array, protocol=5)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "astype": lambda array: array.astype("f8").astype("f4"),
    "concatenate": lambda array: np.concatenate([array[:5], array[5:]]),
}


@pytest.mark.parametrize("way", COPIES)
def test_copies_are_independent(way):
    result = gk.add(large(), 1.0)
    want = result.tobytes()
    made = COPIES[way](result)
    assert not np.shares_memory(made, result)
    result[:] = 0
    del result
    gk.add(large(), 2.0)
    assert made.tobytes() == want


def test_pickles_without_a_copy():
    """Protocol 5 hands over the buffer itself: the memory has to live as long as that."""
    result = gk.add(large(), 1.0)
    want, buffers = result.tobytes(), []
    data = pickle.dumps(result, protocol=5, buffer_callback=buffers.append)
    del result
    gk.add(large(1), 2.0)
    again = pickle.loads(data, buffers=buffers)
    assert again.tobytes() == want
    del again
    buffers.clear()


def test_an_array_that_does_not_own_its_memory_is_not_resized():
    result = gk.add(large(), 1.0)
    with pytest.raises(ValueError, match="resize"):
        result.resize(COUNT * 2)
    assert np.resize(result, COUNT * 2).size == COUNT * 2
    view = memoryview(result)
    del result
    gk.add(large(1), 2.0)
    assert view[0] == large()[0] + np.float32(1)
    view.release()


def test_arrays_die_in_other_threads():
    shelf, stop = [], threading.Event()
    a = large()

    def drop():
        while not stop.is_set() or shelf:
            if shelf:
                shelf.pop()

    thread = threading.Thread(target=drop)
    thread.start()
    for _ in range(60):
        shelf.append(gk.add(a, 1.0))
    stop.set()
    join_all(thread)
    assert sum(_core.pinned_bytes()) <= gk.limits().pinned_memory


def test_cycles_give_back():
    before = in_use()
    cycle: list[object] = [gk.add(large(), 1.0)]
    cycle.append(cycle)
    del cycle
    assert in_use() == before


# --- the limit --------------------------------------------------------------------------------


def test_the_pool_stays_within_its_limit():
    """Above it, results are ordinary memory, and as right."""
    a = large()
    room = in_use() + 6 * MIB
    with gk.limits(pinned_memory=room):
        kept = [gk.add(a, float(i)) for i in range(8)]
        assert in_use() <= room
        assert sum(_core.pinned_bytes()) <= room
        bases = [each.base is not None for each in kept]
        assert bases == sorted(bases, reverse=True)
        assert any(bases)
        assert not all(bases)
        for i, each in enumerate(kept):
            oracle.assert_same(each, a + np.float32(i), f"result {i}")
        kept.clear()
        assert gk.add(a, a).base is not None, "there is room again"


def test_a_lower_limit_gives_memory_back():
    kept = [gk.add(large(), 1.0) for _ in range(4)]
    kept.clear()
    used, unused = _core.pinned_bytes()
    assert unused > 0
    with gk.limits(pinned_memory=used + unused // 2):
        assert sum(_core.pinned_bytes()) <= used + unused // 2
    with gk.limits(pinned_memory=0):
        assert _core.pinned_bytes()[1] == 0
        oracle.assert_same(gk.add(large(), 1.0), large() + np.float32(1), "without a pool")


def test_different_sizes_do_not_pile_up():
    limit = in_use() + 24 * MIB
    with gk.limits(pinned_memory=limit):
        for size in (1, 9, 3, 17, 2, 5, 12, 23, 1):
            count = size * MIB // 4
            got = gk.add(np.ones(count, np.float32), 1.0)
            assert got[0] == got[-1] == 2
            assert sum(_core.pinned_bytes()) <= limit


NOTHING_PINNED = """
import numpy as np, gpukern as gk
from gpukern import _core
gk.limits(pinned_memory=0)
rng = np.random.default_rng(1)
a = rng.standard_normal((700, 900)).astype(np.float32)
wide = np.repeat(a, 2, axis=1)[:, ::2]
for x in (a, wide, a[::-1], a.T, a.astype(">f4"), a[:5]):
    assert (gk.add(x, x) == (x + x).astype("f4")).all()
    assert (gk.to_device(x).to_host() == x).all()
    assert abs(gk.sum(x) - float(np.sum(x, dtype="f8"))) < 1
    out = np.zeros_like(x)
    assert gk.add(x, 1.0, out=out) is out and (out == (x + np.float32(1))).all()
y = np.ones((9000, 64), np.float32)
assert (gk.matmul(y, y[:64]) == 64).all()
assert _core.pinned_bytes() == (0, 0)
assert _core.live_bytes() == 0
"""


def test_everything_works_without_pinned_memory(script):
    """No staging, no mailboxes, no results of ours: slower, and the same."""
    run = script(NOTHING_PINNED)
    assert run.returncode == 0, run.stderr


# --- the end ----------------------------------------------------------------------------------

AT_EXIT = """
import atexit, sys, threading, weakref
import numpy as np, gpukern as gk
a = np.ones(400_000, np.float32)
kept = [gk.add(a, float(i)) for i in range(5)]
class Late:
    def __init__(self): self.array = gk.add(a, 9.0)
    def __del__(self): self.array = None
late = Late()
cycle = [late, gk.to_device(kept[0])]; cycle.append(cycle)
sys.kept = kept[1:3]
atexit.register(lambda: gk.add(kept[0], 1.0))
thread = threading.Thread(target=lambda: kept.append(gk.add(a, 7.0)))
thread.start(); thread.join()
"""

DAEMON = """
import threading, time
import numpy as np, gpukern as gk
a = np.ones(400_000, np.float32)
def work():
    while True:
        gk.add(a, 1.0); gk.add(a[:9], 1.0)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
"""

MODULE_GONE = """
import gc, sys
import numpy as np, gpukern as gk
a = np.ones(400_000, np.float32)
kept, more = gk.add(a, 1.0), gk.add(a, 2.0)
del gk
for name in [name for name in sys.modules if name.startswith("gpukern")]:
    del sys.modules[name]
gc.collect()
assert (kept == 2).all() and (more == 3).all()
del more
gc.collect()
kept[:] = 5
assert kept.sum() == 5 * kept.size
import gpukern as gk
assert (gk.add(kept, kept) == 10).all()
del kept
"""


@pytest.mark.parametrize(
    "code", [AT_EXIT, DAEMON, MODULE_GONE], ids=["arrays alive", "daemon threads", "module gone"]
)
def test_the_process_ends_in_peace(script, code):
    run = script(code, PYTHONMALLOC="malloc" if sanitized() else "debug")
    assert (run.returncode, run.stderr) == (0, "")


def test_the_limit_is_a_share_of_what_the_container_may_use(script):
    """Of memory that the machine has and the container may not use there is nothing to pin."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        file = Path("/sys/fs/cgroup", name)
        text = file.read_text().strip() if file.is_file() else "max"
        memory = min(memory, int(text)) if text != "max" else memory
    run = script("import gpukern as gk; print(gk.limits().pinned_memory)")
    assert int(run.stdout) == memory // 16


def test_release_memory_gives_back_the_staging_buffers_and_those_of_small_calls():
    kept = in_use()
    a = large()
    result = gk.add(a, a)
    gk.release_memory()
    assert kept > 0
    used, unused = _core.pinned_bytes()[:2]
    assert used + unused <= 2 * MIB, "the result alone"
    oracle.assert_same(result, a + a, "still there")
    oracle.assert_same(gk.add(a, a), a + a, "afterwards")
    oracle.assert_same(gk.add(a[:9], 1.0), a[:9] + np.float32(1), "afterwards")


def test_release_memory_beside_calls_of_other_threads():
    a, done, problems = np.arange(COUNT, dtype=np.float32), threading.Event(), []

    def call(values):
        while not done.is_set():
            if not (gk.add(values, values) == values + values).all():
                problems.append(len(values))
            gk.to_device(values)  # what comes in may still be on its way when the call is over

    threads = [threading.Thread(target=call, args=(a[:n],)) for n in (9, COUNT, COUNT)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        gk.release_memory()
    done.set()
    join_all(*threads)
    assert problems == []
    gk.add(a, a), gk.add(a[:9], 1.0)


def test_memory_that_dies_under_a_lower_limit_is_not_kept():
    a = np.ones(600_000, np.float32)
    gk.add(a, a)
    made = gk.add(a, a)
    used, _ = _core.pinned_bytes()
    with gk.limits(pinned_memory=0):
        assert (made == 2).all()
        del made
        less, unused = _core.pinned_bytes()
    assert less < used
    assert unused == 0
    assert (gk.add(a, a) == 2).all()


# --- pinned arrays that are asked for -----------------------------------------------------------


def test_a_pinned_array_is_one_of_numpys():
    before = in_use()
    for shape, dtype in (((3, 5), "float32"), (7, "bool"), ((), "float64"), ((0, 4), "int8")):
        made = gk.empty_pinned(shape, dtype)
        assert type(made) is np.ndarray
        assert (made.shape, made.dtype) == (np.empty(shape).shape, dtype)
        assert made.flags.c_contiguous and made.flags.writeable and made.flags.aligned
        made[...] = 1
        assert (made == 1).all()
    assert gk.empty_pinned(4, "bfloat16").dtype == DTYPES["bfloat16"]
    assert gk.empty_pinned(4, None).dtype == gk.empty_pinned(4).dtype == np.float32
    del made
    assert in_use() == before, "the memory is given back"


@pytest.mark.parametrize("dtype", ["float32", ">f8", "uint8", "bfloat16"])
def test_pin_copies_arrays_of_any_layout(dtype):
    a = random((700, 900), DTYPES.get(dtype, np.dtype(dtype)), 3)
    for view in (a, a[::2, 3:], a.T, a[:, ::-1], a[:0], a[5, 6]):
        got = gk.pin(view)
        assert got.flags.c_contiguous and got.dtype == view.dtype.newbyteorder("=")
        oracle.assert_same(got, np.array(view, got.dtype, order="C"), "pinned")
        assert got.shape == view.shape
        assert not np.may_share_memory(got, a)


def test_what_is_pinned_already_is_given_as_it_is():
    made = gk.pin(large())
    assert gk.pin(made) is made
    assert gk.pin(made[:1000]).base is not None, "a part is memory of the pool too"
    assert gk.pin(made[::2]) is not made
    result = gk.add(large(), 1.0)
    assert gk.pin(result) is result


def test_a_result_is_written_to_a_pinned_array_without_a_second_pass():
    a, b, out = gk.pin(large()), gk.pin(large(1)), gk.empty_pinned(COUNT)
    with gk.limits(pinned_memory=in_use()):  # another result would be ordinary memory
        tracemalloc.start()
        for op in ("add", "multiply"):
            assert getattr(gk, op)(a, b, out=out) is out
        assert gk.to_device(a).to_host(out=out) is out
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < out.nbytes // 2, "there was another result in between"
        oracle.assert_same(out, a, "to_host")
        oracle.assert_same(gk.multiply(a, b, out=out), a * b, "multiplied")
    turned = gk.empty_pinned((COUNT // 1000, 1000))
    gk.transpose(a.reshape(1000, -1), out=turned)
    oracle.assert_same(turned, np.ascontiguousarray(a.reshape(1000, -1).T), "transposed")


def test_an_out_that_is_an_operand_too_is_written_when_it_is_whole():
    a = gk.pin(large().reshape(500, 600))
    want = np.ascontiguousarray(a.T)
    square = gk.empty_pinned((600, 600))
    square[:500] = a
    gk.transpose(square, out=square)
    oracle.assert_same(np.ascontiguousarray(square[:, :500]), want, "in place")
    a = gk.pin(large())
    want = oracle.add(a, a)
    assert gk.add(a, a, out=a) is a
    oracle.assert_same(a, want, "add to itself")
    a = gk.pin(random(12 * COUNT, DTYPES["float32"], 5))  # of several chunks
    want = a[:-1] + np.float32(1)
    gk.add(a[:-1], 1.0, out=a[1:])
    oracle.assert_same(a[1:].copy(), want, "each element into the next one's place")


def test_no_more_pinned_memory_than_the_limit():
    with gk.limits(pinned_memory=in_use() + MIB):
        for call in (lambda: gk.empty_pinned(COUNT * 10), lambda: gk.pin(np.ones(COUNT * 10))):
            with pytest.raises(
                MemoryError, match=r"pinned memory are more than .*limits\(pinned_memory="
            ):
                call()
    assert gk.empty_pinned(COUNT).size == COUNT


def test_what_pin_and_empty_pinned_do_not_take():
    for call, words in (
        (lambda: gk.pin(gk.ones(4)), "pin: a has to be a NumPy array, and is on the device"),
        (lambda: gk.pin([1.0]), "pin: a has to be a NumPy array"),
        (lambda: gk.pin(np.ones(3, complex)), "pin: a has dtype complex128"),
        (lambda: gk.empty_pinned(3, "complex64"), "empty_pinned: dtype 'complex64'"),
        (lambda: gk.empty_pinned("x"), "empty_pinned: shape has to be"),
        (gk.empty_pinned, "empty_pinned: "),
    ):
        with pytest.raises(TypeError, match=words):
            call()
    with pytest.raises(MemoryError, match="more bytes than an address counts"):
        gk.empty_pinned((1 << 62, 4))
    with pytest.raises(ValueError, match="negative length"):
        gk.empty_pinned((3, -1))
