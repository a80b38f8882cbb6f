"""The lock that lives through a fork (csrc/base/lock.c), tried from C, and from two threads of a
child that come to it at once."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fakes import scarce

ROOT = Path(__file__).resolve().parent.parent
COMPILER = shutil.which("gcc") or shutil.which("cc")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="locks are tried from C")


@pytest.fixture(scope="module")
def locks(tmp_path_factory):
    """The program in planted/locks.c."""
    program = tmp_path_factory.mktemp("locks") / "locks"
    sources = [ROOT / "tests/planted/locks.c", ROOT / "csrc/base/lock.c"]
    flags = ["-std=c17", "-D_GNU_SOURCE=", "-O2", "-Wall", "-Wextra", f"-I{ROOT / 'csrc'}"]
    command = [COMPILER, *flags, *sources, "-Wl,--wrap=madvise", "-pthread", "-o", program]
    subprocess.run([*map(str, command)], check=True, timeout=600)
    return program


@pytest.mark.parametrize("forks_are_told_by", ["pages", "numbers"])
def test_a_lock_in_the_child_of_a_fork(locks, forks_are_told_by):
    run = subprocess.run(
        [locks, forks_are_told_by], capture_output=True, text=True, timeout=120, check=False
    )
    assert (run.returncode, run.stdout) == (0, "right\n"), run.stderr


AT_ONCE = """
import ctypes, os, sys, threading
import numpy as np, gpukern as gk
from gpukern import _core
scarcity = ctypes.CDLL(None)
assert scarcity.scarce_for(_core.__file__.encode())
a = np.arange(50, dtype=np.float32)
there = gk.to_device(a)
def child():
    results = []
    work = lambda: results.append(gk.add(there, there).to_host())
    threads = [threading.Thread(target=work) for _ in range(2)]
    scarcity.scarce_meet(20_000)
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    right = all((result == 2 * a).all() for result in results)
    return 0 if right and len(results) == 2 and scarcity.scarce_meet(0) else 1
def status_of_a_child():
    pid = os.fork()
    if pid == 0:
        os._exit(child())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(status_of_a_child())
"""


@pytest.mark.skipif("san" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer has the locks")
@pytest.mark.parametrize("lazy", ["0", "1"])
def test_one_thread_of_a_child_waits_for_the_other_to_take_over(lazy, script, tmp_path):
    settings = {"GPUKERN_DEVICE": "sim", "GPUKERN_SIM_LAZY": lazy}
    run = script(AT_ONCE, LD_PRELOAD=str(scarce(tmp_path)), **settings)
    assert run.returncode == 0, run.stderr
