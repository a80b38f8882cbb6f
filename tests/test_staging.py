"""How host arrays are staged is found out by the calls themselves: on a made-up clock (in C), and
that every setting and every way gives the same results."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import gpukern as gk
from arrays import sanitized
from gpukern import _core

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("base/lock", "engine/duel", "engine/staging", "engine/ways")


@pytest.mark.skipif(
    shutil.which("gcc") is None or not (ROOT / "csrc").exists(), reason="it is a program in C"
)
def test_calls_find_out_what_is_fastest(tmp_path):
    program = tmp_path / "staging"
    sources = [ROOT / f"csrc/{name}.c" for name in SOURCES]
    command = ["gcc", "-std=c17", "-D_DEFAULT_SOURCE", "-O1", f"-I{ROOT / 'csrc'}", "-o", program]
    command += [*sources, ROOT / "tests/planted/staging.c", "-lm", "-pthread"]
    subprocess.run(command, check=True, timeout=120)
    run = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout) == (0, "right\n"), run.stdout


def settled(direction: str, least: int) -> list[bool]:
    found = [e for e in _core.staging() if e["direction"] == direction and e["bytes"] == least]
    return [e["settled"] for e in found]


@pytest.mark.parametrize("count", [70_001] if sanitized() else [70_001, 700_001])
def test_results_are_the_same_while_settings_are_tried(count):
    """Two operands and a result in pinned memory or not, and elements that are only brought in."""
    rng = np.random.default_rng(count)
    a, b = (rng.standard_normal(count).astype(np.float32) for _ in range(2))
    expected, total = a + b, gk.sum(gk.to_device(a)).item()
    with gk.limits(mapped_call=0):
        for _ in range(160):  # of 150 at most, and some that came of another size
            assert np.array_equal(gk.add(a, b), expected)
            assert gk.sum(a) == total
    least = 1 << (8 * count - 1).bit_length() - 1
    assert settled("both", least) == [True], "no call is measured any more"


@pytest.mark.parametrize("count", [6_000, 12_000, 25_000, 50_000])
def test_results_are_the_same_whichever_way_is_tried(count):
    a = np.arange(count, dtype=np.float32)
    for _ in range(12):
        assert np.array_equal(gk.add(a, a), 2 * a)
        assert gk.max(a) == count - 1


def test_what_was_found_is_told():
    gk.sum(np.ones(300_000, np.float32))
    for entry in _core.staging():
        assert entry["direction"] in ("in", "out", "both", "both, unpacked", "both, in parts")
        assert 1 <= entry["workers"] <= 16
        assert 1 << 18 <= entry["chunk"] <= 1 << 23
        assert isinstance(entry["past_caches"], bool)
    assert _core.staging(), "a flow has been"
