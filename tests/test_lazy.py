"""The simulator that runs work when it is waited for: what nobody waits for shows, no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SEEDS = range(1, 9)

BEGIN = """
import json, sys
from types import SimpleNamespace
import numpy as np
import gpukern as gk

def lent(array, stream):
    "The array's memory as another library's, which names that stream."
    interface = dict(array.__cuda_array_interface__, stream=stream)
    return SimpleNamespace(__cuda_array_interface__=interface)

s, t = gk.Stream(), gk.Stream()
a = np.arange(1000, dtype=np.float32)
right = []
for _ in range(20):
"""

# What is done twenty times, and whether each time is right.
CASES = {
    "a stream that is waited for": (
        """
    made = gk.add(gk.to_device(a, s), 1.0, stream=s)
    right.append((gk.add(lent(made, s.cuda_stream), 1.0, stream=t).to_host() == a + 2).all())
""",
        True,
    ),
    "a stream that nobody waits for": (
        """
    made = gk.add(gk.to_device(a, s), 1.0, stream=s)
    right.append((gk.add(lent(made, t.cuda_stream), 1.0, stream=t).to_host() == a + 2).all())
""",
        False,
    ),
    "memory that is freed after its last use": (
        """
    made = gk.to_device(a, s)
    s.synchronize()
    sums = gk.add(made, 1.0, stream=t)
    del made
    right.append((sums.to_host() == a + 1).all())
""",
        True,
    ),
    "memory that is freed before its last use": (
        """
    made = gk.to_device(a, s)
    s.synchronize()
    sums = gk.add(lent(made, t.cuda_stream), 1.0, stream=t)
    del made
    right.append((sums.to_host() == a + 1).all())
""",
        False,
    ),
    "a result that is waited for": (
        """
    out = gk.to_device(np.zeros_like(a), s)
    gk.add(a, 1.0, out=out, stream=t)
    right.append((gk.add(out, 0.0, stream=s).to_host() == a + 1).all())
""",
        True,
    ),
    "a result that nobody waits for": (
        """
    out = gk.to_device(np.zeros_like(a), s)
    s.synchronize()
    gk.add(gk.to_device(a, t), 1.0, out=lent(out, t.cuda_stream), stream=t)
    right.append((gk.add(out, 0.0, stream=s).to_host() == a + 1).all())
""",
        False,
    ),
}


# A process for each seed, in which gpukern is imported anew; NumPy was before.
EACH_SEED = """
import os, sys
import numpy
for seed in sys.argv[2:]:
    child = os.fork()
    if not child:
        os.environ["GPUKERN_SIM_LAZY"] = seed
        exec(compile(sys.argv[1], "code", "exec"))
        sys.exit()
    if os.waitpid(child, 0)[1]:
        sys.exit(f"with the seed {seed}")
"""


@pytest.fixture
def with_each_seed(script):
    """Run code in the order of each seed: what it has printed, a line each."""

    def run(code: str) -> list[str]:
        done = script(EACH_SEED, code, *map(str, SEEDS), GPUKERN_DEVICE="sim")
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


@pytest.mark.parametrize("case", CASES)
def test_what_nobody_waits_for_shows(case, with_each_seed):
    work, is_right = CASES[case]
    code = BEGIN + work + "\nprint(json.dumps(bool(all(right))))"
    always = [json.loads(line) for line in with_each_seed(code)]
    assert len(always) == len(SEEDS)
    assert all(always) is is_right
    if not is_right:
        assert sum(always) <= len(SEEDS) // 4, "nearly every order shows it"


# Uploads that have returned with copies under way, and what comes next on a stream that does not
# wait for them. Of a new size each, since calls of the same are measured, and wait for all.
BESIDE = """
import json
import numpy as np
import gpukern as gk

COUNT = 400_000
s, t = gk.Stream(), gk.Stream()
b = np.full(COUNT, 7, np.float32)
made, doubled = gk.to_device(b), gk.empty(b.shape, b.dtype)
out, held, pinned = np.empty_like(b), gk.pin(b), gk.empty_pinned(b.shape, b.dtype)
NEXT = (
    lambda: gk.negative(made, out=out, stream=t),
    lambda: (made.to_host(pinned), gk.to_device(b, stream=t)),
    lambda: (gk.add(held, made, out=doubled, stream=t), gk.to_device(b, stream=t)),
    lambda: (gk.add(b, b, out=doubled, stream=t), gk.to_device(b, stream=t)),
)
gk.to_device(np.zeros(COUNT + 100, np.float32))
gk.synchronize()
right = []
for i, then in enumerate(4 * NEXT):
    a = np.arange(COUNT - 64 * i, dtype=np.float32)
    there = gk.to_device(a, stream=s)
    then()
    right.append(bool((gk.add(there, 0.0, stream=s).to_host() == a).all()))
    gk.synchronize()
print(json.dumps(right))
"""


def test_an_upload_under_way_keeps_its_memory(with_each_seed):
    """No result comes back to where an operand still leaves from, and none is packed there."""
    assert all(all(json.loads(line)) for line in with_each_seed(BESIDE))


def test_kernels_wait_before_they_touch_memory():
    """Those that may be started early: their arrays are turned over until they have waited."""
    operations = [
        "add",
        "scale_add",
        "sum",
        "max",
        "dot",
        "transpose",
    ]
    run = subprocess.run(
        [sys.executable, Path(__file__).parent / "every_variant.py", *operations],
        env=os.environ | {"GPUKERN_DEVICE": "sim", "GPUKERN_SIM_LAZY": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert "variants right on simulator" in run.stdout


def test_what_is_written_after_it_was_freed_is_said(script):
    code = (
        BEGIN.replace("for _ in range(20):", "")
        + """
there = gk.to_device(a, t)
heard = False
for _ in range(20):
    made = gk.to_device(a, s)
    s.synchronize()
    gk.add(there, 1.0, out=lent(made, t.cuda_stream), stream=t)
    del made
    try:
        gk.synchronize()
    except gk.CudaError as error:
        heard = "was written after it was freed" in str(error)
        break
print(json.dumps(heard))
gk.synchronize()
"""
    )
    run = script(code, GPUKERN_DEVICE="sim", GPUKERN_SIM_LAZY="1")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) is True


def test_calls_in_pieces_are_right_in_any_order(with_each_seed):
    """Chunks through several lanes, panels on three streams, results in memory used again."""
    code = """
import numpy as np, gpukern as gk
from gpukern import _core
_core.limit("chunk", 1 << 14)
_core.limit("mapped_call", 0)
rng = np.random.default_rng(7)
a, b = (rng.integers(-9, 9, 300_001).astype(np.float32) for _ in range(2))
wide = rng.integers(-9, 9, (1000, 300)).astype(np.float32)
for turn in range(3):
    assert (gk.add(a, b) == a + b).all(), "add"
    assert (gk.add(a[::-1], 1.0) == a[::-1] + 1).all(), "add of a view and a number"
    assert gk.sum(a) == a.sum() and gk.max(a) == a.max(), "reductions"
    there = gk.to_device(a)
    assert (there.to_host() == a).all(), "there and back"
    gk.add(there, b, out=there)
    assert (there.to_host() == a + b).all(), "host and device"
    with gk.limits(pinned_memory=0):
        gk.multiply(there, 2.0, out=there)
        assert (there.to_host() == 2 * (a + b)).all(), "out by the lanes"
    with gk.limits(device_memory=1 << 18):
        assert (gk.sum(wide, axis=0) == wide.sum(0)).all(), "sum in panels"
    a, b = b, a
"""
    with_each_seed(code)


def test_products_by_panels_are_right_in_any_order(with_each_seed):
    """A panel is brought, multiplied and sent on three streams, and its memory used again."""
    code = """
import numpy as np, gpukern as gk
rng = np.random.default_rng(7)
def some(*shape):
    return rng.integers(-9, 9, shape).astype(np.float32)
x, y = some(2100, 5), some(5, 520)
s, t = some(300, 30, 20), some(300, 20, 70)
for limit, pinned in ((1 << 20, 0), (1 << 20, 1 << 30), (300_000, 1 << 30)):
    with gk.limits(device_memory=limit, pinned_memory=pinned):
        assert (gk.matmul(x, y, variant="naive") == x @ y).all(), limit
        assert (gk.matmul(s, t, variant="naive") == s @ t).all(), limit
        assert (gk.matmul(s.swapaxes(1, 2), s, variant="naive") == s.swapaxes(1, 2) @ s).all()
"""
    with_each_seed(code)


def test_arrays_on_streams_are_right_in_any_order(with_each_seed):
    """Each array on a stream of its own, and gone as soon as it has been used."""
    code = """
import numpy as np, gpukern as gk
streams = [gk.Stream() for _ in range(4)]
a = np.arange(5000, dtype=np.float32)
for turn in range(30):
    one, two, three, four = (streams[(turn + i) % 4] for i in range(4))
    x = gk.to_device(a, one)
    y = gk.add(x, 1.0, stream=two)
    del x
    z = gk.add(y, y, stream=three)
    gk.multiply(y, 3.0, out=z, stream=four)
    del y
    assert (gk.add(z, 0.0, stream=one).to_host() == (a + 1) * 3).all()
    assert gk.sum(z).to_host() == ((a + 1) * 3).sum(dtype=np.float64)
"""
    with_each_seed(code)
