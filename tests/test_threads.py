"""Many threads at once, and processes that fork."""

from __future__ import annotations

import gc
import sys
import threading

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, on_gpu, random
from gpukern import _core
from waiting import LIMIT, join_all

THREADS = 8


def all_at_once(work, count=THREADS):
    """Run work(0), work(1), ... in threads that start together; the first failure is raised."""
    barrier, failures = threading.Barrier(count), []

    def run(number):
        try:
            barrier.wait(timeout=LIMIT)
            work(number)
        except BaseException as failure:  # a thread's failure is the test's
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    join_all(*threads)
    if failures:
        raise failures[0]


def mixed(number):
    """Every operation on arrays of this thread's own, on the host and on the device."""
    for turn in range(12):
        a, b = (random((33, 33), DTYPES["float32"], number * 100 + turn + i) for i in (0, 50))
        x, y = gk.to_device(a), gk.to_device(b)
        oracle.assert_same(gk.add(a, b), oracle.add(a, b), "add")
        oracle.assert_same((x + y).to_host(), oracle.add(a, b), "add on the device")
        oracle.assert_sum(gk.sum(a), a, "default", "sum")
        oracle.assert_sum(gk.sum(x, variant="atomic").to_host(), a, "atomic", "sum on the device")
        oracle.assert_matmul(gk.matmul(a, b, variant="tiled"), a, b, "tiled", "matmul")
        oracle.assert_matmul((x @ y).to_host(), a, b, "cublas", "matmul on the device")
        oracle.assert_same(gk.transpose(a), np.ascontiguousarray(a.T), "transpose")
        gk.add(x, y, out=x)
        oracle.assert_same(x.to_host(), oracle.add(a, b), "in place")
        with pytest.raises(ValueError, match="core dimension"):
            gk.matmul(a, b[:5])


def test_mixed_operations_in_eight_threads(balanced):
    all_at_once(mixed)
    gc.collect()


def test_threads_that_share_their_operands():
    a = random((64, 64), DTYPES["float32"])
    x, want = gk.to_device(a), oracle.add(a, a)

    def work(number):
        for _ in range(50):
            oracle.assert_same(gk.add(x, a).to_host(), want, f"thread {number}")

    all_at_once(work)


def test_arrays_that_die_in_other_threads(balanced):
    """Made in one thread and dropped in another."""
    shelf: list[object] = []

    def work(number):
        for turn in range(100):
            if number % 2:
                shelf.append(gk.to_device(np.full(1000, turn, np.float32)))
            else:
                while shelf:
                    shelf.pop()

    all_at_once(work)
    shelf.clear()


def test_other_threads_run_while_a_kernel_runs():
    """The GIL is not held: a thread counts while a long call runs."""
    size = 6000 if on_gpu() else 400
    a = random((size, size), DTYPES["float32"])
    ticks, running = [0], threading.Event()

    def count():
        while not running.is_set():
            ticks[0] += 1

    counter = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.001)
    try:
        counter.start()
        before = ticks[0]
        gk.matmul(a, a, variant="naive")
        during = ticks[0] - before
    finally:
        running.set()
        join_all(counter)
        sys.setswitchinterval(interval)
    assert during > 1000, during


FIRST = """
import threading
import gpukern as gk, numpy as np
barrier, wrong = threading.Barrier(8), []
def work():
    barrier.wait()
    try:
        if not (gk.add(np.ones(1000, np.float32), 1.0) == 2).all():
            wrong.append("values")
    except BaseException as failure:
        wrong.append(repr(failure))
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert not wrong, wrong
"""


def test_the_first_call_of_all_in_eight_threads(script):
    """The device is opened once, whoever comes first."""
    run = script(FIRST)
    assert run.returncode == 0, run.stderr


FORK = """
import os, signal, sys
import gpukern as gk, numpy as np
used = sys.argv[1] == "used"
a = np.arange(100_000, dtype=np.float32)
if used:
    kept = gk.to_device(a)
    gk.sum(a)
child = os.fork()
if child == 0:
    signal.alarm(60)
    status = 1
    try:
        good = bool((gk.add(a, a) == a + a).all()) and gk.sum(a) > 0
        good = good and (not used or bool((kept.to_host() == a).all()))
        status = 0 if good else 2
    except gk.CudaError as error:
        print(error)
        status = 3
    finally:
        if used:
            del kept
        sys.stdout.flush()
        os._exit(status)
_, status = os.waitpid(child, 0)
assert (gk.add(a, a) == a + a).all()
print("status", os.waitstatus_to_exitcode(status))
"""


FORK_WITHIN = """
import os, signal, sys, threading, time
import gpukern as gk, numpy as np
begun = threading.Event()
class Slowly:
    def find_spec(name, path=None, target=None):
        if name == "gpukern.machine.tables":
            begun.set()
            time.sleep(0.5)
sys.meta_path.insert(0, Slowly)
a = np.ones(1000, np.float32)
first = threading.Thread(target=gk.add, args=(a, a))
first.start()
assert begun.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(30)
    # Or the next thread may have the number of the one that is not here, which holds a lock.
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    try:
        status = 0 if gk.sum(a) == 1000 else 1
    except gk.CudaError as error:
        print(error, flush=True)
        status = 3
    os._exit(status)
_, status = os.waitpid(child, 0)
first.join()
print("status", os.waitstatus_to_exitcode(status))
"""


def test_a_fork_while_the_first_call_imports(script):
    """The child imports the same, and no thread of the parent's is there to let it. A GPU is in use
    by then, or the child comes before anyone can see that, and has the simulator."""
    run = script(FORK_WITHIN)
    assert run.returncode == 0, run.stderr
    if on_gpu() and "status 3" in run.stdout:
        when = "forked after the GPU had been used", "forked while a GPU was being opened"
        assert any(words in run.stdout for words in when), run.stdout
        return
    assert "status 0" in run.stdout, run.stdout
    assert not on_gpu() or "forked while a GPU was being opened" in run.stderr


def test_a_child_of_a_fork_before_first_use(script):
    run = script(FORK, "unused")
    assert run.returncode == 0, run.stderr
    assert "status 0" in run.stdout, run.stdout


def test_a_child_of_a_fork_after_use(script):
    run = script(FORK, "used")
    assert run.returncode == 0, run.stderr
    if on_gpu():
        assert "status 3" in run.stdout, run.stdout
        for word in ("add: ", "fork", "spawn"):
            assert word in run.stdout
    else:
        assert "status 0" in run.stdout, run.stdout


POOL = """
import multiprocessing, sys
import gpukern as gk, numpy as np
def total(n):
    return float(gk.sum(np.ones(n, np.float32)))
if __name__ == "__main__":
    total(10)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map(total, range(1, 40)) == [float(n) for n in range(1, 40)]
"""


@pytest.mark.skipif(on_gpu(), reason="CUDA does not survive a fork; the test above says so")
def test_a_pool_of_forked_workers(script):
    run = script(POOL)
    assert run.returncode == 0, run.stderr


def test_the_number_of_cores_does_not_change_results(script, request):
    code = """
import sys; sys.path.insert(0, sys.argv[1])
from arrays import DTYPES, random
import gpukern as gk
a = random((100, 100), DTYPES["float32"])
print(gk.matmul(a, a).tobytes().hex()[:4000], gk.sum(a).tobytes().hex())
"""
    here = str(request.path.parent)
    runs = [script(code, here, GPUKERN_SIM_THREADS=threads) for threads in ("1", "2", "7")]
    assert [run.returncode for run in runs] == [0, 0, 0], runs[0].stderr
    assert len({run.stdout for run in runs}) == 1


def test_live_bytes_from_many_threads():
    def work(number):
        for _ in range(200):
            array = gk.empty((100,))
            assert _core.live_bytes() >= array.nbytes

    all_at_once(work)


def test_an_event_that_threads_share():
    """Some record it while others ask for its time, which is never before it was made."""
    event, first = gk.Event(), gk.Event()
    first.record()
    event.record()

    def work(number):
        for _ in range(100):
            if number % 2:
                event.record()
            else:
                assert event.seconds_since(first) >= 0

    all_at_once(work)


def test_live_bytes_while_lanes_come_and_go():
    """They are a few arrays', whatever the memory of the lanes does meanwhile."""
    a = random(1 << 19, DTYPES["float32"])

    def work(number):
        for _ in range(4):
            if number == 0:
                gk.release_memory()
            elif number == 1:
                gk.add(a, a)
            else:
                assert _core.live_bytes() < 1 << 40

    all_at_once(work, 3)
    gk.release_memory()
