"""The script benchmarks/user_kernels.py: a whole small run, and how it judges."""

from __future__ import annotations

import pytest

from scripts import FOLDER, imported, whole_run

SCRIPT = FOLDER / "user_kernels.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the tests stand alone")


def test_a_whole_run_on_the_simulator(tmp_path):
    stored, told = whole_run(SCRIPT, tmp_path, "--smoke", XDG_CACHE_HOME=str(tmp_path))
    assert {line["section"] for line in stored["lines"]} == {"compile", "calls", "factories"}
    assert {line["met"] for line in stored["lines"]} == {"simulated"}
    assert all(times for sample in stored["samples"].values() for times in sample.values())
    assert "| work | bar | measured | met? |" in told


def test_a_time_is_held_against_its_limit():
    with imported("user_kernels") as (script,):
        nine = {turn: 0.1 + turn / 1000 for turn in range(9)}
        assert script.at_most(nine, 0.2) == "yes"
        assert script.at_most(nine, 0.103) == "same", "its interval reaches the limit"
        assert script.at_most(nine, 0.05) == "no"
