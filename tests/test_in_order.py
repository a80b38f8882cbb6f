"""The script benchmarks/in_order.py: its works, how it judges, and a whole small run."""

from __future__ import annotations

import pytest

from scripts import FOLDER, imported, whole_run

SCRIPT = FOLDER / "in_order.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the tests stand alone")


@pytest.fixture(scope="module")
def script():
    with imported("in_order") as [module]:
        yield module


def test_a_whole_run_on_the_simulator(tmp_path):
    stored, told = whole_run(SCRIPT, tmp_path)
    assert f"| right results | each | {len(stored['works'])} works | right |" in told
    assert "below" not in told, "times mean nothing there"
    assert {"sum of every second", "a stack that is turned"} <= {w["kind"] for w in stored["works"]}


def test_the_works_are_what_they_are_called(script):
    found = {}
    for name, one in script.works(2e8, [31]):
        if one.dtype == "float32":
            found.setdefault(name, []).append(one)
    assert str(found["sum of rows"][0]) == "sum 1612903x31 float32 axes 1"
    assert str(found["max of rows that are cut"][0]) == "max 1612903x31 float32 axes 1 cut :,:31"
    assert str(found["argmax of every second"][0]).endswith("axes 1 cut :,::2")
    assert [one.held[1:] for one in found["a stack that is turned"][:2]] == [(49, 31), (31, 49)]
    near = {n + by for n in (32, 64, 1024) for by in (-1, 0, 1)}
    assert near <= set(script.LENGTHS) and len(script.LENGTHS) == len(set(script.LENGTHS))


def test_each_kind_is_judged(script):
    one, other = (draw for _, draw in list(script.works(2e8, [32]))[:2])
    times = {"gpukern": 5e-5, "PyTorch": 8e-5}, {"gpukern": 8e-5, "PyTorch": 5e-5}
    fast, slow = (script.Outcome(d, t) for d, t in zip((one, other), times, strict=True))
    found = [("ahead", fast), ("behind", slow), ("alone", script.Outcome(one))]
    lines = {line.work: (line.met, line.measured) for line in script.judged(found, 4e12)}
    assert lines["right results"][0] == "right"
    assert lines["ahead"] == ("yes", "0 and 0 of 1 below")
    assert lines["behind"][0] == "no" and lines["behind"][1].startswith("1 and 1 of 1 below; sum")
    assert lines["alone"][0] == "yes"
    assert len(list(script.judged(found, 0.0))) == 1
