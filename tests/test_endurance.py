"""Many threads, signals, forks and ten thousand calls: nothing hangs, spins, leaks or changes."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import time

import psutil
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, on_gpu, random, sanitized
from gpukern import _core
from test_threads import all_at_once
from waiting import LIMIT

# From mapped calls over one chunk to several, strided ones among them.
SIZES = (1, 1000, 16_000, 17_000, 40_000, 200_001)


def work_of(number, turns, sizes=SIZES):
    """Calls of every size and way; each result is checked."""
    arrays = [random(size, DTYPES["float32"], number * 100 + size) for size in sizes]
    sums = [gk.sum(each) for each in arrays]
    for turn in range(turns):
        index = (number + turn) % len(sizes)
        a = arrays[index]
        oracle.assert_same(gk.add(a, a[::-1]), a + a[::-1], f"add of {a.size}")
        assert gk.sum(a).tobytes() == sums[index].tobytes(), f"sum of {a.size}"
        if turn % 4 == 0:
            oracle.assert_same((gk.to_device(a) + a).to_host(), a + a, f"device {a.size}")


def test_sixteen_threads_with_mixed_sizes(balanced):
    all_at_once(lambda number: work_of(number, 30), 16)
    gc.collect()


def test_more_small_calls_than_mailboxes():
    """The ninth at once has to copy; which one that is changes nothing."""
    a = random((3, 1000), DTYPES["float32"])
    want, total = oracle.add(a, a), gk.sum(a)

    def work(number):
        for _ in range(150):
            oracle.assert_same(gk.add(a, a), want, f"thread {number}")
            assert gk.sum(a).tobytes() == total.tobytes()

    all_at_once(work, 24)


def test_products_and_sums_side_by_side():
    """Panels use the pipeline piece by piece, and others come in between."""
    a, b = random((9001, 61), DTYPES["float32"], 1), random((61, 67), DTYPES["float32"], 2)
    variant = None if on_gpu() else "naive"
    product, total = gk.matmul(a, b, variant=variant), gk.sum(a)

    def work(number):
        for _ in range(2):
            if number % 2:
                assert gk.matmul(a, b, variant=variant).tobytes() == product.tobytes()
            else:
                assert all(gk.sum(a).tobytes() == total.tobytes() for _ in range(10))

    all_at_once(work, 6)


def test_limits_that_change_while_calls_run():
    a = random(200_001, DTYPES["float32"])
    want = oracle.add(a, a)
    before = gk.limits()

    def work(number):
        for turn in range(60):
            if number == 0:
                gk.limits(pinned_memory=(turn % 3) * (4 << 20), mapped_call=turn % 2 * 100_000)
            oracle.assert_same(gk.add(a, a), want, "add")
            oracle.assert_same(gk.add(a[:9000], a[:9000]), want[:9000], "a small add")

    try:
        all_at_once(work)
    finally:
        gk.limits(before.pinned_memory, before.device_memory, before.mapped_call)


def threads_of(process):
    """The system counts a thread for a moment after it has been joined."""
    counts = []
    for _ in range(50):
        counts.append(process.num_threads())
        time.sleep(0.005)
    return min(counts)


@pytest.mark.skipif(sanitized(), reason="AddressSanitizer keeps what is freed")
def test_ten_thousand_calls_leak_nothing():
    """Eight threads, mixed sizes; a tenth of it on the simulator, which takes longer for each."""
    process = psutil.Process()
    # What the slowest threads leave in their allocators' arenas is there after the first round.
    turns = 10_000 // (2 * 8) if on_gpu() else 60
    all_at_once(lambda number: work_of(number, turns // 2))
    gc.collect()
    threads, live, pinned = threads_of(process), _core.live_bytes(), _core.pinned_bytes()[0]
    resident, files = process.memory_info().rss, process.num_fds()
    all_at_once(lambda number: work_of(number, turns))
    gc.collect()
    assert threads_of(process) == threads
    assert process.num_fds() == files
    assert _core.live_bytes() == live
    assert _core.pinned_bytes()[0] == pinned
    grown = process.memory_info().rss - resident
    assert grown < (48 << 20), f"{grown >> 20} MiB"


# --- threads of our own -----------------------------------------------------------------------

LAZY = """
import os, sys, time
cores = int(sys.argv[1])
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
os.environ["OPENBLAS_NUM_THREADS"] = "1"
def threads(): return len(os.listdir("/proc/self/task"))
import numpy as np, gpukern as gk
from gpukern import _core
a = np.ones(1_000_000, np.float32)
start = threads()
_core.backend()
opened = threads()
if _core.backend() == "sim":
    assert opened == start, "opening the device starts no thread"
gk.limits(mapped_call=512 << 10)
small = np.ones(1000, np.float32)
with gk.limits(pinned_memory=0):
    gk.add(small, small)
if _core.backend() == "sim":
    before = threads()
gk.add(a, a)
first = threads()
for _ in range(5):
    gk.add(a, a); gk.sum(a); gk.to_device(a).to_host()
assert threads() == first, "no more than at first"
print(first - opened)
"""


def test_threads_come_late_and_fit_the_affinity_mask(script):
    cores = len(psutil.Process().cpu_affinity())
    started = {}
    for count in (1, min(2, cores)):
        run = script(LAZY, str(count), GPUKERN_SIM_THREADS="1")
        assert run.returncode == 0, run.stderr
        started[count] = int(run.stdout)
    if not on_gpu():  # the driver starts threads of its own
        assert started == {count: count - 1 for count in started}


IDLE = """
import time
import numpy as np, gpukern as gk
a = np.ones(1_000_000, np.float32)
for _ in range(3):
    gk.add(a, a); gk.add(a[:9], a[:9]); gk.sum(a)
before = time.process_time()
time.sleep(0.5)
spent = time.process_time() - before
assert spent < 0.02, spent
"""


def test_idle_workers_do_not_spin(script):
    run = script(IDLE)
    assert run.returncode == 0, run.stderr


# --- signals ----------------------------------------------------------------------------------

INTERRUPTED = """
import signal, sys, time
# Where the tests run in the background, they and their children are started deaf to it.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.alarm(300)  # what hangs is ended, and with it the wait for its lines
import numpy as np, gpukern as gk
from gpukern import _core
a = np.arange(1_000_000, dtype=np.float32)
small, x = a[:1000], np.ones((9001, 61), np.float32)
gk.add(a, a), gk.add(small, small), gk.matmul(x, x[:61])
print("ready", flush=True)
hits = 0
while hits < 5:
    try:
        while True:
            gk.add(a, a), gk.add(small, small), gk.sum(a), gk.matmul(x, x[:61]), gk.to_device(a)
    except KeyboardInterrupt:
        hits += 1
        print("hit", flush=True)
assert (gk.add(a, a) == a + a).all()
assert (gk.matmul(x, x[:61]) == 61).all()
assert _core.live_bytes() == 0
assert _core.fail_call(0) is False
print("usable")
"""


def test_interrupts_leave_everything_usable():
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert next(process.stdout) == "ready\n"
        for turn in range(5):
            time.sleep(0.05 + 0.013 * turn)
            process.send_signal(signal.SIGINT)
            assert next(process.stdout) == "hit\n"
        out, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (0, "usable\n"), errors


ENDLESS = """
import signal, sys
import numpy as np, gpukern as gk
from gpukern import _core
a = np.broadcast_to(np.float32(1), (1 << 37,))
x = np.ones((9001, 61), np.float32)
b = np.arange(1_000_000, dtype=np.float32)
heard = []
def handler(*_):
    heard.append((gk.add(b, b) == b + b).all() and gk.sum(np.ones(300_000, np.int32)) == 300_000)
    assert (gk.matmul(x, x[:61]) == 61).all()
    if len(heard) == 3:
        raise KeyboardInterrupt
    signal.setitimer(signal.ITIMER_REAL, 0.1)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    gk.sum(a)
except KeyboardInterrupt:
    assert len(heard) == 3 and all(heard), heard
else:
    sys.exit("it ended?")
assert (gk.add(b, b) == b + b).all()
assert _core.live_bytes() == 0
"""


def test_a_long_call_hears_signals_on_its_way(script):
    """Half a terabyte to sum; the handlers call gpukern themselves, and the third one ends it."""
    run = script(ENDLESS)
    assert run.returncode == 0, run.stderr


SIGNALLED = """
import signal, threading
import numpy as np, gpukern as gk
a = np.arange(1_000_000, dtype=np.float32)
gk.add(a, a)
heard = []
signal.signal(signal.SIGALRM, lambda *_: heard.append(threading.current_thread().name))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for _ in range(30):
    assert (gk.add(a, a) == a + a).all()
signal.setitimer(signal.ITIMER_REAL, 0)
assert heard and set(heard) == {"MainThread"}
"""


def test_signals_reach_python_and_disturb_no_call(script):
    run = script(SIGNALLED)
    assert run.returncode == 0, run.stderr


# --- forks ------------------------------------------------------------------------------------

FORKED_WHILE_BUSY = """
import os, signal, threading
import numpy as np, gpukern as gk
from gpukern import _core
a = np.arange(400_000, dtype=np.float32)
wide = np.repeat(a, 2)[::2]
want, total = a + a, gk.sum(a)
stop = threading.Event()
def work():
    while not stop.is_set():
        gk.add(a, wide); gk.sum(wide); gk.add(a[:99], a[:99])
        for _ in range(20): gk.add(a[:120_000], 1.0)  # these are unpacked from staging buffers
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
codes = []
for _ in range(40):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        status = 1
        try:
            good = all(bool((gk.add(a[:n], a[:n]) == want[:n]).all()) for n in (30_000, 90_000))
            good = good and all(bool((gk.add(wide, a) == want).all()) for _ in range(3))
            good = good and gk.sum(wide) == total and bool((gk.add(a[:9], 1.0) == a[:9] + 1).all())
            good = good and bool((gk.to_device(wide).to_host() == a).all())
            status = 0 if good else 2
        except gk.CudaError as error:
            status = 3 if "fork" in str(error) else 4
        finally:
            os._exit(status)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for thread in threads: thread.join()
assert (gk.add(wide, a) == want).all()
print(sorted(set(codes)))
"""


def test_a_fork_in_the_middle_of_calls(script):
    """The child has none of the threads, and whatever they were doing is left undone."""
    run = script(FORKED_WHILE_BUSY)
    assert run.returncode == 0, run.stderr
    assert run.stdout == ("[3]\n" if on_gpu() else "[0]\n")


FORKED_RESULTS = """
import os
import numpy as np, gpukern as gk
a = np.arange(400_000, dtype=np.float32)
kept, gone = gk.add(a, a), gk.add(a, 1.0)
child = os.fork()
if child == 0:
    good = bool((kept == a + a).all())
    del gone            # given back to a pool that only its parent may use
    kept[:] = 0
    os._exit(0 if good else 2)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert code == 0, code
assert (kept == a + a).all() and (gone == a + 1).all()
"""


def test_results_survive_a_fork(script):
    """Both sides have their own: what the child writes or drops, the parent does not see."""
    run = script(FORKED_RESULTS)
    assert run.returncode == 0, run.stderr
