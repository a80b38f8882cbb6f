"""The script benchmarks/layouts.py: its works, how it judges, and a whole small run."""

from __future__ import annotations

import pytest

from scripts import FOLDER, imported, whole_run

SCRIPT = FOLDER / "layouts.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the tests stand alone")


@pytest.fixture(scope="module")
def script():
    with imported("layouts") as [module]:
        yield module


def test_a_whole_run_on_the_simulator(tmp_path):
    stored, told = whole_run(SCRIPT, tmp_path)
    assert f"| right results | each | {len(stored['works'])} works | right |" in told
    assert "the worst" not in told, "times mean nothing there"


def test_the_works_are_what_they_are_called(script):
    found = dict(script.groups(small=False))
    image = found["channels last"][0]
    assert (image.held, image.shape) == ((32, 56, 56, 256), (32, 256, 56, 56))
    assert {one.axes for one in found["transposed, all of it"]} == {(0, 1)}
    assert all(one.shape == one.held[::-1] for one in found["transposed"])
    turned = found["conversions"][-1]
    assert (str(turned), turned.bytes_moved) == ("to float32 4096x4096 float16 turned", 6 << 24)
    small = dict(script.groups(small=True))
    assert {name: len(works) for name, works in small.items()} == {
        name: len(works) for name, works in found.items()
    }


def test_each_group_is_judged(script):
    one, other = (works[0] for _, works in list(script.groups(small=False))[:2])
    times = {"gpukern": 4e-6, "PyTorch": 8e-6}, {"gpukern": 4e-6, "PyTorch": 2e-6}
    outcomes = [[script.Outcome(draw, t)] for draw, t in zip((one, other), times, strict=True)]
    found = [("ahead", outcomes[0]), ("behind", outcomes[1]), ("alone", [script.Outcome(one)])]
    lines = {line.work: line.met for line in script.judged(found, simulated=False)}
    assert lines == {
        "right results": "right",
        "ahead": "yes",
        "ahead, the worst": "yes",
        "behind": "no",
        "behind, the worst": "no",
    }
    assert len(list(script.judged(found, simulated=True))) == 1
