"""What waits for what: the fake driver ends a process whose work is not ordered by streams, events
and waits, or that reads and writes pinned memory that is in use (tests/fake)."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes import HELPERS, NEEDS_FAKE, answers

pytestmark = NEEDS_FAKE

# --- host arrays ------------------------------------------------------------------------------


def test_chunks_and_what_they_leave(right):
    right("""
for _ in range(3):
    assert (gk.add(long, ones) == long + 1).all()
    assert (gk.add(long[::-1], ones) == long[::-1] + 1).all()
    assert gk.sum(long) == np.float32(long.sum(dtype=np.float64))
    gk.multiply(long, 2.0); gk.argmax(long); gk.dot(long, ones); gk.sum(long, variant="atomic")
out = np.zeros(N, np.float32)
assert gk.add(long, ones, out=out) is out and (out == long + 1).all()
with gk.profile():
    assert (gk.add(long, ones) == long + 1).all()
""")


def test_pinned_arrays_are_the_callers_again_when_the_call_is_over(right):
    """Inputs in pinned memory are read in place, and results written there. Chunks have a limit, so
    that none is measured: what is measured is over when the call is."""
    right("""
_core.limit("chunk", 1 << 20)
for use in (lambda: gk.add(pinned, ones), lambda: gk.sum(pinned), lambda: gk.to_device(pinned),
            lambda: gk.sum(pinned.reshape(1000, -1), 1), lambda: gk.add(pinned[:99], pinned[:99])):
    pinned = gk.add(long, ones)
    use()
    pinned[:] = -1
    gk.synchronize()
pinned = gk.add(long, ones)
assert (gk.add(pinned, ones, out=pinned) == long + 2).all()
pinned = gk.add(long, ones)
launches = sum(step[0] == "l" for step in steps(lambda: gk.sum(pinned)))
for number in (launches - 1, 1):  # after the last chunk, and in the midst of them
    pinned = gk.add(long, ones)
    fail("cuLaunchKernelEx", 701, number)
    assert failure(gk.sum, pinned)[0] == "CudaError"
    pinned[:] = -1
    gk.synchronize()
""")


def test_reductions_along_an_axis(right):
    right("""
matrix = np.ones((3000, 500), np.float32)
for limit in (0, 1 << 20):
    with gk.limits(device_memory=limit):
        assert (gk.sum(matrix, 0) == 3000).all()
        assert (gk.sum(matrix, 1) == 500).all()
""")


def test_boxes_and_slabs(right):
    """Transposes, and reductions with many results, whose memory is used again and again. The fake
    driver has no kernels for these: it sees what waits for what."""
    right("""
for chunk in (8 << 20, 1 << 16):
    _core.limit("chunk", chunk)
    matrix = long.reshape(1000, -1)
    for out in (None, np.zeros(matrix.T.shape, np.float32)):
        for turn in range(2):
            gk.transpose(matrix, out=out)
    gk.transpose(matrix.reshape(100, 10, 1500), (2, 0, 1))
    for axis in (0, 1):
        gk.sum(long.reshape((2, -1, 5)[::1 - 2 * axis] if axis else (2, -1)), axis)
        gk.argmax(long.reshape(-1, 3), axis=1)
    with gk.limits(pinned_memory=0):
        gk.transpose(matrix)
    gk.sum(np.ones((3000, 500), np.float32).T, 0)
""")


@pytest.mark.parametrize("pinned", [True, False])
def test_products_by_panels(right, pinned):
    right(f"""
x, y = matrices(2100, 130, 520)
with gk.limits(pinned_memory={(1 << 30) if pinned else (49 << 20)}):
    for limit in (0, 1 << 20, 150_000):
        with gk.limits(device_memory=limit):
            assert (gk.matmul(x, y, variant="naive") == x @ y).all(), limit
    row, wide = matrices(1, 16, 300_000)
    with gk.limits(device_memory=4 << 20):  # several panels of B, each result in one piece
        assert (gk.matmul(row, wide, variant="naive") == row @ wide).all()
    tall = x[:, :1] @ y[:1, :1]
    assert (gk.matmul(x[:, :1].copy(), y[:1, :1].copy(), variant="naive") == tall).all()
""")


def test_copies_there_and_back(right):
    right("""
_core.limit("chunk", 1 << 20)  # of none that is measured, and so over when the call is
for values in (long[:1000], long, long[::2], long.reshape(1000, -1).T, gk.add(long, ones)):
    there = gk.to_device(values)
    gk.release_memory()  # its copies may be under way
    assert (there.to_host() == values).all()
    assert (gk.to_device(values, stream=at(1001)).to_host() == values).all()
    twice = gk.add(there, there)
    assert (twice.to_host() == 2 * values).all()
    out = np.empty_like(values)
    assert gk.add(there, twice).to_host(out=out) is out and (out == 3 * values).all()
""")


def test_calls_of_many_threads(right):
    right("""
def work(seed):
    values = long + seed
    for _ in range(5):
        assert (gk.add(values, ones) == values + 1).all()
        assert gk.sum(values) == np.float32(values.sum(dtype=np.float64))
        assert (gk.add(values[:99], ones[:99]) == values[:99] + 1).all()
        assert (gk.to_device(values).to_host() == values).all()
        done.append(1)
done = []
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
for thread in threads: thread.start()
for thread in threads: gk.release_memory(), thread.join()
assert len(done) == 20
""")


def test_streams_of_our_own_do_not_wait_for_the_legacy_stream(right):
    right("""
gk.add(long, ones)
gk.add(a, a)
gk.matmul(*matrices(2100, 130, 520), variant="naive")
assert driver.fake_live(b"streams") > 0
assert driver.fake_live(b"blocking streams") == 0
""")


# --- small calls on mapped memory -------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"FAKE_HOST_POINTERS": 0}])
def test_small_calls_copy_nothing_wherever_kernels_see_pinned_memory(right, settings):
    right(
        """
for n in (2, 99, 5000):
    assert (gk.add(long[:n], ones[:n]) == long[:n] + 1).all()
    assert gk.sum(long[:n]) == long[:n].sum()
log = steps(lambda: gk.add(long[:99], ones[:99]))
assert len(log) == 1 and log[0][0] == "l", log
""",
        **settings,
    )


def test_small_calls_copy_where_kernels_do_not_see_the_hosts_memory(right):
    right(
        """
assert (gk.add(long[:99], ones[:99]) == long[:99] + 1).all()
assert gk.sum(long[:99]) == long[:99].sum()
log = [step[0] for step in steps(lambda: gk.add(long[:99], ones[:99]))]
assert log.count("i") == 2 and log.count("o") == 1, log
""",
        FAKE_MAPS=0,
    )


# --- arrays of other streams ------------------------------------------------------------------

FOREIGN = """
context = ctypes.c_void_p()
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuCtxPushCurrent_v2(context)
class Foreign:
    def __init__(self, stream):
        self.kept = gk.to_device(ones, stream=stream)
        self.__cuda_array_interface__ = dict(self.kept.__cuda_array_interface__, stream=stream)
        self.stream = stream
        self.write()
    def write(self):  # as the library that it is of does
        pointer = ctypes.c_size_t(self.__cuda_array_interface__["data"][0])
        size = ctypes.c_size_t(ones.nbytes)
        assert driver.cuMemsetD8Async(pointer, 0, size, ctypes.c_void_p(self.stream)) == 0
"""


@pytest.mark.parametrize(("made_for", "early"), [(75, False), (90, True)])
def test_kernels_that_wait_for_the_one_before_them_are_started_early(right, made_for, early):
    """And no others: neither code that cannot wait, nor products."""
    right(
        f"""
def early(call):
    call()
    return bool(ctypes.c_int.in_dll(driver, "fake_seen_early").value)
a = gk.to_device(ones[:9000].reshape(90, 100))
for _ in range(2):
    assert early(lambda: gk.add(a, a)) == early(lambda: gk.sum(a)) == {early}
    assert early(lambda: gk.transpose(a)) == {early}
    assert not early(lambda: gk.matmul(a, a.T, variant="tiled"))
""",
        FAKE_PTX=made_for,
    )


@pytest.mark.parametrize(
    ("multiprocessors", "cache", "shape", "axis", "early"),
    [
        (132, 1, (4 << 20,), 0, False),  # 528 blocks, of which 792 have room
        (88, 1, (4 << 20,), 0, True),  # of which all have room, and fill it
        (87, 1, (4 << 20,), 0, True),  # of which not all have
        (176, 1, (4 << 20,), 0, True),  # which have room beside as many
        (132, 1, (1 << 20,), 0, True),  # which are through as soon as they have begun
        (132, 1, (528, 8000), 1, False),
        (600, 1, (4000, 4000), 1, True),
        (88, 24, (4 << 20,), 0, False),  # which read two thirds of what the cache holds
        (88, 20, (4 << 20,), 0, True),  # of which too little is there again
        (88, 40, (4 << 20,), 0, True),  # which either half of the cache has room for
        (176, 24, (4 << 20,), 0, True),
    ],
)
def test_long_launches_that_early_starts_would_share_out_unevenly_wait(
    right, multiprocessors, cache, shape, axis, early
):
    right(
        f"""
a = gk.empty({shape}, np.float32)
for _ in range(2):
    gk.sum(a, {axis})
    assert bool(ctypes.c_int.in_dll(driver, "fake_seen_early").value) == {early}
""",
        FAKE_MULTIPROCESSORS=multiprocessors,
        FAKE_CACHE=cache << 20,
    )


def test_the_streams_of_foreign_arrays_are_waited_for_and_wait(right):
    right(
        FOREIGN
        + """
x, y, out = Foreign(at(1001)), Foreign(at(1002)), Foreign(at(1003))
for stream in (None, at(1001), at(1004), 2):
    gk.add(x, y, out=out, stream=stream)
    for each in (x, y, out): each.write()
    gk.sum(x, stream=stream)
    x.write()
    gk.add(x, ones, out=out, stream=stream)
    gk.add(x, y)
    for each in (x, y, out): each.write()
    gk.to_device(x, stream=stream)
    x.write()
    into = gk.to_device(ones)
    gk.add(x, y, out=into, stream=stream)
    assert (into.to_host() == 0).all()
"""
    )


def test_results_that_die_while_they_are_computed(right):
    right("""
there = gk.to_device(ones)
for _ in range(20):
    total = gk.add(gk.add(there, there, stream=at(1001)), gk.add(there, there, stream=at(1002)))
assert (total.to_host() == 4).all()
""")


def test_memory_that_is_not_all_there_is_refused(right):
    """The driver is asked for the first and the last byte."""
    right("""
class Longer:
    def __init__(self, array, count):
        self.kept = array
        self.__cuda_array_interface__ = dict(array.__cuda_array_interface__, shape=(count,))
there = gk.empty(1 << 20)
gk.add(Longer(there, 1 << 20), 1.0)
kind, sentence = failure(gk.add, Longer(there, 1 << 23), 1.0)
assert kind == "ValueError" and "is not device memory" in sentence, sentence
""")


def test_foreign_memory_of_another_device_is_refused(right):
    right(
        """
class Foreign:
    def __init__(self, array):
        self.kept = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__
with gk.device(1):
    there = Foreign(gk.empty(100))
    gk.add(there, 1.0)
here = gk.to_device(np.ones(100, np.float32))
for operands in ((there, here), (here, there)):
    kind, sentence = failure(gk.add, *operands)
    assert kind == "ValueError" and "device 1" in sentence and "device 0" in sentence, sentence
""",
        FAKE_DEVICES=2,
    )


# --- memory that runs out ---------------------------------------------------------------------


def test_a_full_pool_is_trimmed_and_asked_again(right):
    right("""
fail("cuMemAllocFromPoolAsync", 2, 0, 1)
fail("cuMemAlloc_v2", 2, 0, 1)
gk.empty(3)
fail("cuMemAllocFromPoolAsync", 2, 0, 2)
assert failure(gk.empty, 3)[0] == "MemoryError", "nor beside the pool"
fail("cuMemAllocFromPoolAsync", 2, 0, 2)
gk.empty(3)
""")


SHORT = """
matrix = np.ones((3000, 500), np.float32)
x, y = matrices(300, 130, 520)
CALLS = {
    "add": lambda: (gk.add(long, ones) == long + 1).all(),
    "sum": lambda: gk.sum(ones) == N,
    "along": lambda: (gk.sum(matrix, 1) == 500).all() and (gk.sum(matrix, 0) == 3000).all(),
    "matmul": lambda: (gk.matmul(x, y, variant="naive") == x @ y).all(),
    "small": lambda: (gk.add(long[:9], ones[:9]) == long[:9] + 1).all(),
}
"""


@pytest.mark.costly(2)
@pytest.mark.parametrize("call", ["add", "sum", "along", "matmul", "small"])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_memory_that_runs_out_for_a_while(right, call, times):
    """The pool and what is beside it fail together, at each place where memory is asked for."""
    right(
        SHORT
        + f"""
for before in range(12):
    gk.release_memory()
    fail("cuMemAllocFromPoolAsync", 2, before, 2 * {times})
    fail("cuMemAlloc_v2", 2, 0, {times})
    name, sentence = failure(lambda: CALLS["{call}"]() or 1 / 0)
    assert name in ("none", "MemoryError"), sentence
    driver.fake_heal()
    assert CALLS["{call}"]()
    assert _core.live_bytes() == 0
"""
    )


@pytest.mark.parametrize("call", ["add", "sum", "along", "matmul", "small"])
def test_arrays_larger_than_the_device(right, call):
    """Too small for the staging buffers as well."""
    right(SHORT + f'assert CALLS["{call}"]() and _core.live_bytes() == 0', FAKE_MEMORY=3 << 20)


def test_a_device_that_stays_full(on_fake):
    code = """
for _ in range(3):
    fails((gk.sum, np.ones((2, 200_000), np.float32), 1), (gk.to_device, ones))
assert _core.live_bytes() == 0
"""
    for failures in answers(on_fake(HELPERS + code, FAKE_MEMORY=700_000)):
        for name, sentence in failures:
            assert name == "MemoryError"
            assert "700000" in sentence, "what there is"
            assert "bytes asked" in sentence


# --- what is made is given back ---------------------------------------------------------------

LEAKS = {
    "large calls": "gk.add(long, ones); gk.sum(long); gk.to_device(long).to_host()",
    "products": 'gk.matmul(*matrices(2100, 130, 520), variant="naive")',
    "profiles": "with gk.profile(): gk.add(long, ones); gk.add(there, there)",
    "events": "event = gk.Event(); event.record(); event.synchronize()",
    "release_memory": "gk.release_memory(); gk.add(long, ones); gk.add(a, a)",
    "copies that fail": 'fail("cuMemcpyHtoDAsync_v2", 1, 3); failure(gk.add, long, ones)',
    "launches that fail": 'fail("cuLaunchKernelEx", 701, 1); '
    'failure(gk.matmul, *matrices(2100, 130, 520), variant="naive")',
    "events that fail": """fail("cuEventCreate", 2)
    assert failure(gk.matmul, *matrices(2100, 130, 520), variant="naive")[0] == "none"
    fail("cuEventCreate", 2)
    name, _ = failure(gk.Event().record)
    assert name == "MemoryError" """,
    "streams that fail": """gk.release_memory()
    fail("cuStreamCreate", 2, 1)
    assert (gk.add(long, ones) == long + 1).all(), "by another way"
    gk.add(long, ones); gk.add(a, a)""",
    "pinning that fails": """gk.release_memory()
    fail("cuMemHostRegister_v2", 2)
    gk.add(long, ones)
    gk.add(long, ones); gk.add(a, a)""",
    "captures": """driver.fake_capture(ctypes.c_void_p(at(1001)), 0)
    gk.add(there, there, stream=at(1001))
    driver.fake_capture(None, 0)
    driver.fake_graph_gone()""",
    "graphs": """stream = gk.Stream()
    stream.begin_capture()
    made = gk.add(there, there, stream=stream)
    gk.sum(made, stream=stream)
    graph = stream.end_capture()
    graph.launch(stream); graph.launch()
    stream.synchronize()
    del made, graph, stream""",
    "graphs that fail": """stream = gk.Stream()
    stream.begin_capture()
    gk.add(there, there, stream=stream)
    fail("cuGraphInstantiateWithFlags", 2)
    failure(stream.end_capture)
    del stream""",
    "graphs that die during a capture": """stream, other = gk.Stream(), gk.Stream()
    stream.begin_capture()
    gk.add(there, there, stream=stream)
    graph = stream.end_capture()
    other.begin_capture()
    del graph
    gk.add(there, there, stream=other)
    graph = other.end_capture()
    del stream, other""",
    "captures that fail": """driver.fake_capture(ctypes.c_void_p(at(1001)), 0)
    fail("cuGraphRetainUserObject", 1)
    failure(gk.add, there, there, stream=at(1001))
    driver.fake_capture(None, 0)
    driver.fake_graph_gone()""",
}


@pytest.mark.costly(2)
@pytest.mark.parametrize("case", LEAKS)
def test_nothing_is_left_after_many_calls(right, case):
    right(f"""
there = gk.to_device(ones)
def cycle():
    {LEAKS[case]}
for _ in range(3): cycle()
before, bytes_before = live(), _core.live_bytes()
for _ in range(8): cycle()
assert live() == before, (live(), before)
assert _core.live_bytes() == bytes_before
""")


def test_a_process_gives_back_all_at_its_end(right):
    right(
        """
event = gk.Event()
event.record()
gk.add(long, ones); gk.add(a, a); gk.matmul(*matrices(2100, 130, 520), variant="naive")
kept = gk.add(gk.to_device(long), ones, stream=at(1001))
lasting = gk.add(long, ones)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(lasting))  # lives longer than gpukern
assert sum(live().values()) > 10
""",
        FAKE_EXIT=1,
    )


def test_a_call_leaves_the_context_of_the_thread_as_it_was(right):
    right(
        """
def current():
    context = ctypes.c_void_p()
    driver.cuCtxGetCurrent(ctypes.byref(context))
    return context.value
def calls():
    there = gk.to_device(long)
    gk.add(there, ones), gk.add(long, ones), gk.add(a, a), gk.sum(there), there.to_host()
    failure(gk.empty, 1 << 40)
    gk.Event().record()
    gk.release_memory()
calls()
assert current() is None
other = ctypes.c_void_p()
driver.cuDevicePrimaryCtxRetain(ctypes.byref(other), 1)
driver.cuCtxPushCurrent_v2(other)
calls()
assert current() == other.value
""",
        FAKE_DEVICES=2,
    )


def test_two_threads_record_a_new_event_at_once(right):
    """Each makes one of the device's, and one of them is given back."""
    right(
        """
gk.to_device(a)
before = live()
for _ in range(5):
    event, barrier = gk.Event(), threading.Barrier(4)
    def record():
        barrier.wait()
        event.record()
    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    event.synchronize()
    del event, record, threads
assert live() == before, (live(), before)
""",
        FAKE_SLOW_EVENTS=20_000,
    )


# --- cuBLAS -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_products_of_ragged_shapes_by_cublas(with_blas, dtype):
    with_blas(f"""
if "{dtype}" == "bfloat16":
    import ml_dtypes
dtype = np.dtype("{dtype}")
for m, k, n in ((1, 1, 1), (3, 5, 7), (33, 17, 65), (128, 1, 9), (2, 70, 1), (1, 70, 2)):
    x, y = matrices(m, k, n, dtype)
    want = x.astype(np.float64) @ y.astype(np.float64)
    for left, right in ((x, y), (x.T.copy().T, y[:, ::-1].copy()[:, ::-1])):
        got = gk.matmul(left, right, variant="cublas")
        assert (got.astype(np.float64) == want).all(), (m, k, n)
        there = [gk.to_device(each) for each in (left, right)]
        there = gk.matmul(*there, variant="cublas", stream=at(1001))
        assert (there.to_host().astype(np.float64) == want).all(), (m, k, n)
assert (gk.matmul(x[0], y, variant="cublas").astype(np.float64) == want[0]).all()
for left, right in (((3, 5, 7), (3, 7, 4)), ((5, 7), (3, 7, 4)), ((3, 5, 7), (7, 4)),
                    ((7,), (3, 7, 4)), ((2, 1, 5, 7), (3, 7, 4)), ((2, 3, 5, 7), (2, 1, 7, 4))):
    x, y = (rng.integers(-4, 5, shape).astype(dtype) for shape in (left, right))
    want = x.astype(np.float64) @ y.astype(np.float64)
    got = gk.matmul(x, y, variant="cublas")
    assert got.shape == want.shape and (got.astype(np.float64) == want).all(), (left, right)
""")


def test_a_stack_is_one_launch_where_its_matrices_lie_evenly(right):
    right("""
def launches(left, right):
    x, y = (gk.to_device(np.ones(shape, np.float32)) for shape in (left, right))
    done = steps(lambda: gk.matmul(x, y, variant="tiled"))
    return len([step for step in done if step[0] == "l"])
assert launches((500, 3, 4), (500, 4, 2)) == 1
assert launches((500, 3, 4), (4, 2)) == 1
assert launches((20, 25, 3, 4), (20, 25, 4, 2)) == 1
assert launches((3, 4), (500, 4, 2)) == 1
assert launches((20, 1, 3, 4), (25, 4, 2)) == 20
""")


def test_cublas_on_several_streams_and_threads(with_blas):
    with_blas("""
def work(stream):
    x, y = matrices(60, 40, 50)
    p, q = gk.to_device(x, stream=stream), gk.to_device(y, stream=stream)
    for _ in range(10):
        product = gk.matmul(p, q, variant="cublas", stream=stream)
        assert (product.to_host() == x @ y).all()
streams = (None, at(1001), at(1002), at(1003))
threads = [threading.Thread(target=work, args=(stream,)) for stream in streams]
for thread in threads: thread.start()
for thread in threads: thread.join()
x, y = matrices(2100, 130, 520)
assert (gk.matmul(x, y, variant="cublas") == x @ y).all(), "by panels"
assert _core.live_bytes() == 0
""")


def test_the_workspace_of_a_full_device_is_smaller(with_blas):
    with_blas(
        """
x, y = matrices(60, 40, 50)
p, q = gk.to_device(x), gk.to_device(y)
assert (gk.matmul(p, q, variant="cublas").to_host() == x @ y).all()
del p, q
assert _core.live_bytes() == 0
fail("cublasGemmEx_64", 7)
name, sentence = failure(gk.matmul, x, y, variant="cublas")
assert name == "CudaError" and sentence.startswith("matmul: cuBLAS: the matrix product"), sentence
assert _core.live_bytes() == 0
""",
        FAKE_MEMORY=5 << 20,
    )


PRODUCT = """
x, y = matrices(60, 40, 50)
def freed(stream=None, times=2):  # by so many products on the stream, which are right
    p, q, out = gk.to_device(x), gk.to_device(y), gk.empty((60, 50))
    def work():
        for _ in range(times):
            gk.matmul(p, q, variant="cublas", stream=stream, out=out)
            assert (out.to_host() == x @ y).all()
    return [step for step in steps(work) if step[0] == "f"]
"""


def test_a_stream_keeps_what_cublas_works_in(with_blas):
    with_blas(f"""{PRODUCT}
assert freed() == freed(at(1001)) == [], "taken once, and kept"
assert freed(2) == ["f2", "f2"], "the stream of a thread is many streams"
assert _core.live_bytes() == 0, "nobody's to release"
assert len(steps(gk.release_memory)) >= 2, "both are given back"
assert freed() == freed(at(1001)) == []
""")


def test_a_stream_that_ends_takes_its_workspace_along(with_blas):
    with_blas(f"""{PRODUCT}
stream = gk.Stream()
assert freed(stream) == []
def end():
    global stream
    del stream
    gc.collect()
assert len([step for step in steps(end) if step[0] == "f"]) == 1
assert all(freed(gk.Stream()) == [] for _ in range(40)), "there is always a place"
assert _core.live_bytes() == 0
""")


def test_a_full_device_has_the_workspaces_back(with_blas):
    with_blas(
        f"""{PRODUCT}
assert freed() == []
stream = gk.Stream()
p, q = gk.to_device(x, stream=stream), gk.to_device(y, stream=stream)
product = gk.matmul(p, q, variant="cublas", stream=stream)
whole = gk.empty((15 << 20,), "uint8")  # once both are through
assert len(freed()) == 2, "what is left is enough for a product, and not to be kept"
del whole
freed()
assert freed() == []
""",
        FAKE_MEMORY=16 << 20,
        FAKE_CAPABILITY=80,
    )


def test_more_streams_than_workspaces(with_blas):
    with_blas(f"""{PRODUCT}
kept = [freed(at(number)) == [] for number in range(1001, 1041)]
assert 8 <= sum(kept) < 40 and kept == sorted(kept, reverse=True), kept
gk.release_memory()
assert freed(at(1040)) == []
""")


def test_a_graph_has_a_workspace_of_its_own(with_blas):
    with_blas(f"""{PRODUCT}
stream = gk.Stream()
p, q, out = gk.to_device(x), gk.to_device(y), gk.empty((60, 50))
multiply = lambda: gk.matmul(p, q, variant="cublas", stream=stream, out=out)
multiply()
before = _core.live_bytes()
def captured():
    stream.begin_capture()
    done = steps(lambda: (multiply(), multiply(), multiply()))
    assert not [step for step in done if step[0] == "f"], "no node but the products"
    return stream.end_capture()
def work():
    return _core.live_bytes() - before
one = captured()
bytes = work()
assert bytes >= 4 << 20
two = captured()
assert work() == 2 * bytes, "one a graph, of which two may run at once"
del one, two
""")


# --- arrays that are lent ---------------------------------------------------------------------


def test_who_borrows_an_array_waits_for_it_on_its_own_stream(right):
    right("""
x = gk.to_device(a, at(1001))
def lent(**named):
    done = steps(lambda: x.__dlpack__(**named))
    return [step for step in done if step[0] in "rw"]
assert lent(stream=at(1002)) == ["r1001", "w1002"]
assert lent(stream=at(1001)) == lent(stream=-1) == []
assert lent() == ["r1001", "w0"]
assert x.__dlpack_device__() == (2, 0)
driver.fake_capture(ctypes.c_void_p(at(1001)), 0)
kind, sentence = failure(lambda: x.__dlpack__(stream=at(1002)))
driver.fake_capture(None, 0)
assert kind == "ValueError" and sentence.startswith("__dlpack__: ") and "captured" in sentence
kind, sentence = failure(gk.from_dlpack, np.ones(3))
assert kind == "BufferError" and "numpy.from_dlpack" in sentence and "gpukern.to_device" in sentence
""")


def test_an_array_is_borrowed_on_the_stream_that_its_table_names(right):
    right(f"""
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_dlpack as lending
x = gk.to_device(a)
lender = lending.tabled(lending.TABLE)(x)
lender.lent.tensor.kind, lender.lent.tensor.ordinal = x.__dlpack_device__()
assert steps(lambda: gk.add(lender, lender, stream=at(1001)))[:2] == ["r1", "w1001"]
assert (gk.add(lender, lender).to_host() == 2 * a).all()
assert (gk.from_dlpack(lender).to_host() == a).all()
""")
