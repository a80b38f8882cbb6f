"""The script benchmarks/back_to_back.py: its graphs and streams, how it judges, a small run."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import gpukern as gk
from scripts import FOLDER, imported, whole_run

SCRIPT = FOLDER / "back_to_back.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the tests stand alone")


@pytest.fixture(scope="module")
def script():
    with imported("back_to_back") as [module]:
        yield module


def test_a_whole_run_on_the_simulator(tmp_path):
    stored, told = whole_run(SCRIPT, tmp_path, "--seed", "5")
    assert stored["seed"] == 5 and len(stored["grid"]) == 18
    assert "| right results | each | 18 works | right |" in told


def test_every_kind_is_captured_with_the_result_that_it_has(script):
    shapes, lane = script.shapes, script.Lane()
    for kind in shapes.KINDS:
        axes = () if kind in ("add", "copy") else (1,) if kind == "argmax" else (1, 0)
        one = shapes.Draw(kind, "float32", (5, 7), (slice(None),) * 2, (0, 1), axes)
        arrays = shapes.operands(one, lane.stream)
        gk.synchronize()
        made = shapes.works(one, arrays, False, lane.stream)
        graph = lane.captured("gpukern", made.calls["gpukern"], 3)
        made.results["gpukern"].fill(0)
        gk.synchronize()
        graph.launch(lane.stream)
        gk.synchronize()
        assert shapes.fault(one, arrays, made.results["gpukern"]) == "", kind


def test_what_cannot_be_captured_takes_no_part(script):
    lane = script.Lane()
    host = np.ones(4, np.float32)
    assert lane.captured("gpukern", lambda: gk.add(host, host, stream=lane.stream), 2) is None
    there = gk.to_device(host, stream=lane.stream)
    graph = lane.captured("gpukern", lambda: gk.add(there, there, stream=lane.stream), 2)
    assert graph is not None, "the stream is as it was"


def test_cells_are_judged(script):
    shapes = script.shapes

    def outcome(shape, ours, theirs, stream):
        one = shapes.Draw("add", "float32", shape, (slice(None),) * 2, (0, 1), (0,))
        made = script.Outcome(one, {"gpukern": ours, "PyTorch": theirs})
        made.stream = dict(zip(("gpukern", "PyTorch"), stream, strict=True))
        return made

    grid = [
        outcome((1024, 1024), 2e-6, 2.3e-6, (3e-6, 3e-6)),
        outcome((1024, 2048), 4e-6, 3.99e-6, (4e-6, 3.9e-6)),
    ]
    made = SimpleNamespace(grid=grid, simulated=False)
    lines = {line.work: line for line in script.judged(made)}
    assert lines["right results"].met == "right"
    assert lines["add, 2 cells, graph"].met == "yes", "within half a percent"
    assert lines["add, 2 cells, stream"].met == "no"
    assert lines["add, 1024x1024, graph"].met == "yes"
    assert lines["add, 1024x1024, stream"].met == "no"


def test_a_wrong_result_ends_it(script):
    one = script.shapes.Draw("add", "float32", (3, 4), (slice(None),) * 2, (0, 1), (0,))
    made = SimpleNamespace(grid=[script.Outcome(one, wrong="is off")], simulated=True)
    [line] = script.judged(made)
    assert line.met == "WRONG" and "is off" in line.measured
