"""The simulator that runs work when it is waited for: what nobody waits for shows, no more."""

from __future__ import annotations

import json

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


@pytest.mark.parametrize("case", CASES)
def test_what_nobody_waits_for_shows(case, script):
    work, is_right = CASES[case]
    always = []
    for seed in SEEDS:
        code = BEGIN + work + "\nprint(json.dumps(bool(all(right))))"
        run = script(code, GPUKERN_DEVICE="sim", GPUKERN_SIM_LAZY=str(seed))
        assert run.returncode == 0, run.stderr
        always.append(json.loads(run.stdout))
    assert all(always) is is_right
    if not is_right:
        assert sum(always) <= len(SEEDS) // 4, "nearly every order shows it"


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
