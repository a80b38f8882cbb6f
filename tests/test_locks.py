"""The lock that lives through a fork (csrc/base/lock.c), tried from C."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

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
