"""The script benchmarks/every_shape.py: what it draws, how it judges, and a whole small run."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from scripts import FOLDER, imported, whole_run

SCRIPT = FOLDER / "every_shape.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the tests stand alone")


@pytest.fixture(scope="module")
def scripts():
    with imported("every_shape", "shapes") as modules:
        yield modules


def test_a_whole_run_on_the_simulator(tmp_path):
    stored, told = whole_run(SCRIPT, tmp_path, "--count", "60", "--seed", "5")
    assert stored["seed"] == 5 and len(stored["works"]) == 60
    assert "| right results | each | 60 works | right |" in told


def test_what_is_drawn(scripts):
    _, shapes = scripts
    chance = random.Random(3)
    drawn = [shapes.draw(chance, 1 << 31) for _ in range(600)]
    assert {one.kind for one in drawn} == set(shapes.KINDS)
    assert {len(one.shape) for one in drawn} == {1, 2, 3, 4, 5, 6}
    assert min(one.bytes_moved for one in drawn) < 100
    assert 1 << 30 < max(one.bytes_moved for one in drawn) < 1 << 34
    views = [one for one in drawn if one.shape != one.held]
    assert 0.3 < len(views) / len(drawn) < 0.7
    again = random.Random(3)
    assert [shapes.draw(again, 1 << 31) for _ in range(600)] == drawn, "a seed says it all"


def test_what_is_stepped_over_is_moved_with_its_sectors(scripts):
    _, shapes = scripts
    every, second = slice(None), slice(None, None, 2)
    for held, cut, moved in (
        ((100, 200), (every, every), 4 * (20_000 + 20_000)),
        ((100, 200), (every, second), 4 * (20_000 + 10_000)),
        ((100, 200, 4), (every, second, every), 4 * (80_000 + 40_000)),
        ((100, 200, 5), (every, second, every), 4 * (100_000 + 50_000)),
        ((100, 200, 20), (every, second, every), 4 * (240_000 + 200_000)),
        ((100, 8), (every, slice(0, 4)), 32 * 100 + 4 * 400),
        ((100, 16), (every, slice(0, 4)), 32 * 100 + 4 * 400),
        ((100, 16), (every, slice(6, 10)), 64 * 100 + 4 * 400),
        ((3, 100), (slice(1, 3), every), 4 * (200 + 200)),
        ((100, 200), (second, every), 4 * (10_000 + 10_000)),
        ((100, 2), (every, second), 4 * (200 + 100)),
        ((2, 2), (second, every), 4 * (2 + 2)),
    ):
        one = shapes.Draw("copy", "float32", held, cut, tuple(range(len(held))), ())
        assert one.bytes_moved == moved, (held, cut)


def test_indices_and_sums_of_integers_are_wider_than_what_they_come_of(scripts):
    _, shapes = scripts
    every = (slice(None),) * 2
    for kind, dtype, moved in (
        ("argmax", "uint8", 100 * 200 + 8 * 100),
        ("sum", "uint8", 100 * 200 + 8 * 100),
        ("sum", "float16", 2 * (100 * 200 + 100)),
        ("mean", "float64", 8 * (100 * 200 + 100)),
        ("max", "int32", 4 * (100 * 200 + 100)),
    ):
        one = shapes.Draw(kind, dtype, (100, 200), every, (0, 1), (1,))
        assert one.bytes_moved == moved, (kind, dtype)


def test_a_wrong_result_is_found(scripts):
    _, shapes = scripts
    chance = random.Random(4)
    for _ in range(40):
        one = shapes.draw(chance, 1 << 12)
        arrays = shapes.operands(one)
        got = shapes.works(one, arrays, False).results["gpukern"]
        if one.kind in ("transpose", "add", "copy"):
            got[...] = 3
        else:
            got = got + got.dtype.type(120)
        assert shapes.fault(one, arrays, got), one


def test_the_worst_and_the_mean_are_judged(scripts):
    script, shapes = scripts
    sums = shapes.Draw("sum", "float32", (9000, 1000), (slice(None),) * 2, (0, 1), (0,))
    adds = shapes.Draw("add", "float32", (10, 10), (slice(None),) * 2, (0, 1), ())
    outcomes = [
        script.Outcome(sums, {"gpukern": 10e-6, "PyTorch": 20e-6, "CuPy": 12e-6}),
        script.Outcome(sums, {"gpukern": 20e-6, "PyTorch": 18e-6}),
        script.Outcome(adds, {"gpukern": 4e-6, "PyTorch": 1e-6}),
    ]
    made = SimpleNamespace(outcomes=outcomes, simulated=False)
    right, reductions, long_ones, elementwise, worst = script.judged(made)
    assert right.met == "right"
    assert reductions.met == "no" and reductions.measured == "1.039x of 2"
    assert long_ones.measured == reductions.measured and "over" in long_ones.work
    assert elementwise.met == "no" and elementwise.measured == "0.250x of 1"
    assert worst.met == "no" and worst.measured.startswith("1 of 2 below; sum 9000x1000 float32")
    assert len(script.slowest(made)) == 2, "short works are not listed"
