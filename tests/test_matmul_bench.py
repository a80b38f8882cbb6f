"""The script benchmarks/matmul.py: its judgement of figures, its checks, and a whole small run."""

from __future__ import annotations

import json
import random
from functools import partial

import numpy as np
import pytest

import gpukern as gk
from gpukern import _core
from gpukern.machine.inventory import installed
from scripts import FOLDER, imported, run, whole_run

SCRIPT = FOLDER / "matmul.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the tests stand alone")


@pytest.fixture(scope="module")
def scripts():
    """The script and its parts."""
    with imported("matmul", "contests") as modules:
        yield modules


def outcome(contests, times: dict[str, float], dtype: str = "float32", section: str = "shapes"):
    samples = {name: dict.fromkeys(range(9), time) for name, time in times.items()}
    return contests.Outcome(section, "4096", dtype, 2 * 4096**3, samples)


def test_the_best_is_held_against_cublas(scripts):
    matmul, contests = scripts
    found = outcome(contests, {"cuBLAS": 1.0, "tma": 1.04, "tiled": 5.0})
    text, met = matmul.against(["tma", "tiled"], 0.95)(found)
    assert met == "yes" and "tma" in text and "0.962x" in text
    assert matmul.against(["tma", "tiled"], 1.0)(found)[1] == "no"
    assert matmul.against(["tiled"], 0.95)(found)[1] == "no"
    assert matmul.against(["f16x3"], 2.5)(found) == ("-", "no such variant")


def test_the_mean_is_geometric(scripts, monkeypatch):
    matmul, contests = scripts
    run = matmul.Run(small=True)
    if run.simulated:
        assert matmul.mean_line(run, "half", "x", [], 1.0).met == "simulated"
    monkeypatch.setattr(matmul.Run, "simulated", False)
    speeds = [outcome(contests, {"cuBLAS": 1.0, "x": t}).speed("x") for t in (0.5, 2.0, 1.0)]
    line = matmul.mean_line(run, "half", "x", speeds, 1.0)
    assert line.met == "yes" and "1.000x" in line.measured and "of 3" in line.measured


def test_shapes_are_always_the_same_ones(scripts):
    matmul, _ = scripts
    found = matmul.random_shapes(60, 64, 16384)
    assert found == matmul.random_shapes(60, 64, 16384)
    sizes = [size for *shape, _ in found for size in shape]
    assert min(sizes) >= 64 and max(sizes) <= 16384
    assert any(size % 2 for size in sizes)
    assert {lies for *_, lies in found} == {"nn", "nt", "tn", "tt"}
    assert 800 < np.exp(np.mean(np.log(sizes))) < 1300, "log-uniform"


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [((20, 30), (30, 9)), ((4, 20, 30), (30, 9)), ((3, 5), (5, 1))])
def test_a_result_is_checked_at_places_of_chance(scripts, dtype, shape):
    _, contests = scripts
    rng = np.random.default_rng(1)
    a, b = (gk.to_device(rng.standard_normal(one).astype(dtype)) for one in shape)
    out = gk.empty(gk.matmul(a, b).shape, dtype)
    problem = contests.Problem("x", a, b, out)
    right = partial(gk.matmul, a, b, out=out)
    assert contests.error(problem, right, random.Random(1)) <= 1
    assert contests.error(problem, lambda: None, random.Random(1)) == float("inf")

    def off() -> None:
        right()
        out[...] = out * 1.01

    assert contests.error(problem, off, random.Random(1)) > 1


def test_who_is_wrong_is_not_timed(scripts, monkeypatch):
    matmul, contests = scripts
    run = matmul.Run(small=True)
    problem = run.problem("float32", 20, 24, 28, "tn")
    calls = contests.calls(problem, ["tiled", "naive"])
    calls["tiled"] = lambda: None
    monkeypatch.setattr(contests, "calls", lambda *_: calls)
    found = run.arena.hold("shapes", problem, ["tiled", "naive"])
    assert set(found.wrong) == {"tiled"}
    assert set(found.samples) == {"cuBLAS", "naive"}
    line = run.judged("shapes", "x", "y", found, matmul.against(["naive"], 1.0))
    assert line.met == "WRONG" and "tiled" in line.measured


def test_pictures(scripts, tmp_path):
    if not installed("matplotlib"):
        pytest.skip("not installed: pip install matplotlib")
    _, contests = scripts
    import matmul_plots

    steps = {name: 1.0 / speed for name, speed in (("naive", 1), ("tma", 40), ("cuBLAS", 50))}
    found = [
        outcome(contests, steps, section="ladder"),
        outcome(contests, {"cuBLAS": 1.0, "default": 0.9}, "bfloat16"),
    ]
    paths = list(matmul_plots.save(found, tmp_path / "x.md", simulated=False))
    assert [path.name for path in paths] == ["x-ladder.png", "x-default.png"]
    assert all(path.stat().st_size > 5000 for path in paths)
    assert list(matmul_plots.save(found, tmp_path / "x.md", simulated=True)) == []


@pytest.mark.skipif(_core.backend() == "cuda", reason="judges the simulator's times")
@pytest.mark.parametrize(
    "section", ["ladder", "half", "shapes", "stacks", "vectors", "host", "accuracy"]
)
def test_the_sections_judge_as_on_a_gpu(scripts, monkeypatch, section):
    """The simulator's times stand for a GPU's, and our default for cuBLAS."""
    matmul, _ = scripts
    run = matmul.Run(small=True)
    monkeypatch.setattr(matmul.Run, "simulated", False)
    monkeypatch.setattr(matmul, "LEAST_RATE", 0)
    monkeypatch.setattr(matmul, "bus_bandwidth", lambda: 50e9)
    lines = list(matmul.SECTIONS[section](run))
    assert {line.section for line in lines} == {section}
    for line in lines:
        assert line.met in ("yes", "same", "no", "right", "no limit", "no peer"), line
        assert (line.measured == "-") == (line.met in ("no limit", "no peer")), line
    assert "| work |" in matmul.as_markdown(lines, matmul.remarks(run), [])


def test_a_whole_run_on_the_simulator(tmp_path):
    stored, told = whole_run(SCRIPT, tmp_path, "--smoke")
    assert {line["section"] for line in stored["lines"]} == set(stored["seconds"])
    assert {line["met"] for line in stored["lines"]} == {"simulated"}
    assert all(line["measured"] == "-" for line in stored["lines"])
    assert all(not contest["wrong"] for contest in stored["contests"])
    assert "| work | bar | measured | met? |" in told


def test_one_section(tmp_path):
    paths = [str(tmp_path / name) for name in ("a.json", "a.md")]
    assert run(SCRIPT, *paths, "--only", "stacks").returncode == 0
    assert list(json.loads((tmp_path / "a.json").read_text())["seconds"]) == ["stacks"]
    done = run(SCRIPT, *paths, "--only", "nothing")
    assert done.returncode == 2 and "there are ladder" in done.stderr


def test_it_tells_how_it_is_called(scripts, capsys):
    matmul, _ = scripts
    with pytest.raises(SystemExit) as ended:
        matmul.main(["--help"])
    assert ended.value.code == 0
    assert "JSON MARKDOWN" in capsys.readouterr().out
