"""The script benchmarks/memory_bound.py: its judgement of figures, and a whole small run."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import gpukern
from gpukern import _core
from gpukern.bench.clock.machine import MachineClock
from gpukern.bench.contenders import cub_
from gpukern.bench.contenders.registry import Peer
from gpukern.bench.model.contender import Contender, DeviceSide
from gpukern.bench.model.intervals import Figure
from gpukern.bench.model.row import RIGHT, WRONG, Row
from scripts import FOLDER, imported, run

SCRIPT = FOLDER / "memory_bound.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the tests stand alone")


@pytest.fixture(scope="module")
def script():
    with imported("memory_bound") as (module,):
        yield module


def row(contender: str, variant: str, time: float, ratio: float | None, **more: object) -> Row:
    fields = {
        "op": "add",
        "size": "8x8",
        "shapes": ((8, 8), (8, 8)),
        "dtype": "float32",
        "contender": contender,
        "variant": variant,
        "status": RIGHT,
        "on_device": Figure(time, time * 0.99, time * 1.01, 9),
        "device_ratio": ratio and Figure(ratio, ratio * 0.99, ratio * 1.01, 9),
        "limit": 0.5 / time,
        "bytes_moved": 768,
    }
    return Row(**{**fields, **more})


def comparison(*rows: Row, backend: str = "cuda") -> gpukern.Comparison:
    return gpukern.Comparison(1, {"backend": backend, "device": "GPU A"}, list(rows))


PEER = row("PyTorch", "torch.add", 1.0, None)


def test_the_best_of_ours_against_the_fastest_peer(script):
    rows = PEER, row("gpukern", "f32", 2.0, 0.5), row("gpukern", "f32x4", 0.5, 2.0)
    line = script.ratio_line("adds", "add", comparison(*rows), 1.5)
    assert line.met == "yes"
    assert "2.000x" in line.measured and "f32x4" in line.measured
    assert "PyTorch torch.add" in line.measured
    assert script.ratio_line("adds", "add", comparison(*rows), 1.5, "f32").met == "no"


def test_the_worst_of_several_sizes_counts(script):
    far = [replace(one, size="9x9") for one in (PEER, row("gpukern", "f32", 1.25, 0.8))]
    found = comparison(PEER, row("gpukern", "f32", 0.5, 2.0), *far)
    line = script.ratio_line("adds", "add", found, 1.0)
    assert line.met == "no" and "at 9x9" in line.measured


def test_a_ratio_that_is_certain_counts_more_than_a_worse_one_that_is_not(script):
    wide = row("gpukern", "f32", 1.0, 0.9)
    wide = replace(wide, device_ratio=replace(wide.device_ratio, high=1.1))
    certain = row("gpukern", "f32", 1.0, 0.95)
    certain = replace(certain, device_ratio=replace(certain.device_ratio, high=0.99))
    far = [replace(one, size="9x9") for one in (PEER, certain)]
    line = script.ratio_line("adds", "add", comparison(PEER, wide, *far), 1.0)
    assert line.met == "no" and "at 9x9" in line.measured


def test_an_interval_that_reaches_the_bar_is_the_same(script):
    found = comparison(PEER, row("gpukern", "f32", 1.0, 0.995))
    assert script.ratio_line("adds", "add", found, 1.0).met == "same"


def test_no_figure_without_a_right_result_or_a_peer_or_a_device(script):
    good, bad = row("gpukern", "f32", 0.5, 2.0), row("gpukern", "x", 0.4, 2.5, status=WRONG)
    for found, status in (
        (comparison(PEER, good, bad), "WRONG"),
        (comparison(row("gpukern", "f32", 0.5, None)), "no peer"),
        (comparison(PEER, good, backend="sim"), "simulated"),
        (comparison(PEER), "broken"),
    ):
        line = script.ratio_line("adds", "add", found, 1.0)
        assert (line.met, line.measured) == (status, "-")


def test_share_of_the_copy_bandwidth(script):
    found = comparison(row("gpukern", "f32", 0.52, None))
    line = script.share_line("adds", "add", found, 0.9)
    assert line.met == "yes" and "96.2%" in line.measured
    line = script.share_line("adds", "add", found, 0.97)
    assert line.met == "same"
    flagged = replace(found.rows[0], flags=("cold: above the copy bandwidth",))
    assert "flagged" in script.share_line("adds", "add", comparison(flagged), 0.9).measured
    warm = replace(found.rows[0], flags=("warm: above the copy bandwidth: the L2 cache",))
    assert "flagged" not in script.share_line("adds", "add", comparison(warm), 0.9).measured


def test_a_whole_run_on_the_simulator(tmp_path):
    paths = [str(tmp_path / name) for name in ("a.json", "a.md")]
    done = run(SCRIPT, *paths, "--smoke")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    stored = json.loads((tmp_path / "a.json").read_text())
    states = {line["work"]: line["met"] for line in stored["lines"]}
    assert {line["section"] for line in stored["lines"]} == set(stored["seconds"])
    assert set(states.values()) == {"simulated", "right", "yes"}, states
    for line in stored["lines"]:
        assert line["section"] == "bits" or line["measured"] == "-"
    text = (tmp_path / "a.md").read_text()
    assert "| work | bar | measured | met? |" in text
    assert "one bit pattern" in done.stdout


def test_one_section(tmp_path):
    paths = [str(tmp_path / name) for name in ("a.json", "a.md")]
    assert run(SCRIPT, *paths, "--only", "transposes").returncode == 0
    assert list(json.loads((tmp_path / "a.json").read_text())["seconds"]) == ["transposes"]
    done = run(SCRIPT, *paths, "--only", "nothing")
    assert done.returncode == 2 and "there are adds" in done.stderr


class ProcessorEvent:
    def record(self) -> None:
        self.at = time.process_time()

    def synchronize(self) -> None:
        _core.synchronize()

    def seconds_since(self, earlier: ProcessorEvent, /) -> float:
        return self.at - earlier.at


class ProcessorClock(MachineClock):
    """The time of the processors, all of which is this process's own, whoever else is at work."""

    def now(self) -> float:
        return time.process_time()

    def event(self) -> ProcessorEvent:
        return ProcessorEvent()


@pytest.mark.skipif(
    _core.backend() == "cuda", reason="the planted peer is slower by the simulator's clock alone"
)
def test_the_sections_hold_ours_against_others(script, monkeypatch):
    """As on a GPU, with a planted peer and the simulator's times."""
    monkeypatch.setattr(script, "fill", partial(script.fill, clock=ProcessorClock()))

    def offer(op: str, dtype: str) -> Iterator[Contender]:
        def run(inputs: object, out: object) -> None:
            for _ in range(10):
                getattr(_core, op)(*inputs, out=out)

        side = DeviceSide(_core.to_device, run, _core.DeviceArray.to_host, lambda memory: memory)
        yield Contender("planted", op, run, side)

    peer = Peer("planted", "planted", offer, needs_gpu=False)
    state = script.Run(small=True, contenders=[peer])
    state.machine["backend"] = "cuda"
    for section in (script.adds, script.sums, script.transposes):
        for line in section(state):
            if line.bar.endswith("fastest peer"):
                assert line.met == "yes" and ", planted " in line.measured
            elif line.bar.endswith("bandwidth"):
                assert line.met == "no limit"
            else:
                assert line.met in ("yes", "same", "no") and "ulps" in line.measured
    assert script.remarks(state)
    assert "planted" in script.as_markdown(
        [], script.remarks(state), [one.to_markdown() for one in state.comparisons]
    )


class TestCub:
    def test_what_is_missing_is_a_line(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.setattr(cub_, "nvcc", lambda: None)
        (absent,) = cub_.contenders("sum", "float32")
        assert "needs nvcc" in absent.why and not absent.broken
        (absent,) = cub_.contenders("transpose", "float32")
        assert absent.why == "no transpose for float32 here"
        with pytest.raises(RuntimeError, match="no nvcc"):
            cub_.build("sum", "float32", 90)

    def test_the_compiler_is_called_once(self, monkeypatch, tmp_path):
        """A stand-in for nvcc: it notes its arguments and writes what it was asked for."""
        fake = tmp_path / "bin" / "nvcc"
        fake.parent.mkdir()
        fake.write_text(
            f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n'
            'while [ "$1" != -o ]; do shift; done; echo made > "$2"\n'
        )
        fake.chmod(0o755)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("CUDA_HOME", str(tmp_path))
        made = cub_.build("sum", "float32", 90)
        assert cub_.build("sum", "float32", 90) == made and made.read_text() == "made\n"
        (call,) = (tmp_path / "calls").read_text().splitlines()
        assert "-arch=sm_90" in call and call.endswith("cub.cu")
        assert "-DREDUCTION=sum -DELEMENT=float -DACCUMULATOR=float -DRESULT=float" in call
        assert cub_.build("max", "float32", 90) != made
        assert cub_.build("sum", "float32", 80) != made
        fake.write_text("#!/bin/sh\necho no such header >&2\nexit 1\n")
        with pytest.raises(RuntimeError, match="no such header"):
            cub_.build("sum", "float32", 75)

    def test_what_is_asked_for_is_compiled_ahead(self, monkeypatch):
        asked: list[tuple[str, str]] = []
        done = threading.Event()

        def build(op, dtype, capability):
            asked.append((op, dtype))
            done.set()

        monkeypatch.setattr(cub_, "nvcc", lambda: "nvcc")
        monkeypatch.setattr(cub_, "build", build)
        cub_.ahead([("add", "float32"), ("sum", "float16")], None)
        assert done.wait(60) and asked == [("sum", "float16")]

    def test_every_reduction_is_in_the_source(self):
        source = Path(cub_.__file__).with_name("cub.cu").read_text()
        for reduction, *_ in cub_._SUPPORTED.values():
            assert f"static cudaError_t {reduction}(" in source
        assert all(name in source for name in cub_._MACROS)

    def test_it_takes_part_on_a_gpu(self):
        if _core.backend() == "sim" or not cub_.nvcc():
            pytest.skip("needs a GPU and nvcc")
        for op, dtype in cub_._SUPPORTED:
            (found,) = gpukern.compare(op, [100_003], dtype, ["cub"], rounds=1).rows
            assert found.status == RIGHT, found.detail
