"""What becomes of a comparison: intervals, saved runs, reports, tables, pictures, case lists."""

from __future__ import annotations

import json
import random
import re
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import gpukern
from gpukern import _core
from gpukern.bench import comparison, filling
from gpukern.bench.cases import lists
from gpukern.bench.clock import ceilings
from gpukern.bench.clock.device import Pace
from gpukern.bench.model import changes, intervals
from gpukern.bench.model.intervals import Figure
from gpukern.bench.model.limits import NONE, Limits
from gpukern.bench.model.row import FIGURES, RIGHT, Row
from gpukern.bench.showing import changes as reports
from gpukern.bench.showing import sheets
from gpukern.cli.commands import main
from gpukern.machine import conditions, host
from gpukern.machine.devices import Device
from gpukern.text.units import seconds


def exactly(value: float, spread: float = 0.01) -> Figure:
    return Figure(value, value * (1 - spread), value * (1 + spread), 9)


def row(contender: str, variant: str, size: int, time: float, **more: object) -> Row:
    fields = {
        "op": "add",
        "size": f"{size}x{size}",
        "shapes": ((size, size), (size, size)),
        "dtype": "float32",
        "contender": contender,
        "variant": variant,
        "status": RIGHT,
        "error": 2e-7,
        "ulps": 0.5,
        "first_call": 0.1,
        "end_to_end": exactly(time * 20),
        "on_device": exactly(time),
        "warm": exactly(time * 0.9),
        "overhead": exactly(5e-6),
        "split": {"host to device": time * 10, "compute": time * 2, "device to host": time * 5},
        "device_ratio": exactly(1.7),
        "end_to_end_ratio": exactly(1.001),
        "bytes_moved": 12 * size**2,
    }
    return Row(**{**fields, **more})


def made_up() -> gpukern.Comparison:
    """As from a GPU, so that every column and every panel has something to show."""
    machine = {
        "backend": "cuda",
        "device": "GPU A",
        "date": "2026-01-01",
        "limits": Limits(4e12, 4.8e12, {"float32": 60e12}).to_dict(),
        "conditions": {"watched": False},
    }
    rows = [
        row(name, variant, size, factor * size**2 * 3e-12)
        for size in (1024, 4096)
        for name, variant, factor in (
            *(("PyTorch", "torch.add", 1.0), ("gpukern", "f32", 1.2)),
            *(("gpukern", "f32x4", 0.99), ("Numba", "vector add", 3.0)),
        )
    ]
    rows.append(row("CuPy", "cupy.add", 4096, 1.0, flags=("warm: above the copy bandwidth",)))
    return gpukern.Comparison(7, machine, rows)


def without_ratios() -> gpukern.Comparison:
    """The same where there is no baseline, so that times are judged by themselves."""
    whole = made_up()
    whole.rows = [replace(one, device_ratio=None, end_to_end_ratio=None) for one in whole.rows]
    return whole


class TestIntervals:
    def test_ranks_are_those_of_the_binomial_distribution(self):
        assert [intervals.rank(n) for n in (1, 2, 7, 8, 11, 12, 20)] == [0, 0, 0, 0, 0, 1, 3]

    def test_it_covers_the_median_as_often_as_it_says(self):
        rng, hits, tries = random.Random(1), 0, 2000
        for _ in range(tries):
            found = intervals.figure([[rng.expovariate(1) for _ in range(11)]])
            hits += found.low <= 0.6931 <= found.high
        assert hits / tries > 0.985

    def test_one_round_has_no_spread(self):
        one = intervals.figure([[2.0]])
        assert (one.value, one.rounds, one.spread) == (2.0, 1, None)

    def test_a_drift_that_hits_both_cancels_in_the_ratio(self):
        drift = [1 + 0.1 * i for i in range(12)]
        found = intervals.ratio(*([dict(enumerate(x))] for x in ([2 * d for d in drift], drift)))
        assert found.value == pytest.approx(2)
        assert found.high - found.low < 1e-9
        assert not found.same
        assert intervals.ratio([{1: 1.0, 2: 1.1, 3: 0.9}], [dict.fromkeys((1, 2, 3), 1.0)]).same


class TestSaved:
    def test_there_and_back(self, tmp_path):
        for result in (made_up(), gpukern.compare("add", [8], rounds=2, simulated=True)):
            path = tmp_path / "run.json"
            text = result.to_json(path)
            for source in (path, str(path), text):
                assert gpukern.Comparison.from_json(source) == result

    def test_one_whose_transfers_were_timed_alone(self):
        """As older versions did: they are shown, and no call is made up of them."""
        older = made_up()
        older.rows = [
            replace(one, split={"host to device": 3e-4, "device to host": 2e-4})
            for one in older.rows
        ]
        back = gpukern.Comparison.from_json(older.to_json())
        assert back == older and not any(one.phases() for one in back.rows)
        head = [sheet.head for sheet in sheets.sheets(back)][1]
        assert "in" in head and "out" in head and "compute" not in head
        assert "in, out: the library's own copies, each alone." in back.to_markdown()

    def test_what_is_no_comparison(self, tmp_path):
        for text in ('{"schema": 99}', "{}"):
            with pytest.raises(ValueError, match="no comparison"):
                gpukern.Comparison.from_json(text)

    def test_nan_survives(self):
        wrong = row("a", "b", 8, 1.0, error=float("nan"), status="WRONG")
        back = Row.from_json(json.loads(json.dumps(wrong.to_json(), allow_nan=False)))
        assert np.isnan(back.error)

    def test_flat_rows_have_no_nesting(self):
        for flat in made_up().to_dicts():
            assert not any(isinstance(value, dict | Figure) for value in flat.values())
            assert all(f"{name}_low" in flat for name in FIGURES)
            assert flat["gigabytes_per_second"] > 0
            assert flat["teraflops"] is None

    def test_rates_are_bytes_and_operations_over_the_time_on_the_device(self):
        one = row("a", "b", 8, 1e-3, operations=3 * 10**9, bytes_moved=2 * 10**6)
        assert (one.throughput, one.bandwidth) == pytest.approx((3e12, 2e9))
        flat = one.flat()
        assert (flat["teraflops"], flat["gigabytes_per_second"]) == pytest.approx((3, 2))
        assert (flat["warm"], flat["warm_low"], flat["warm_high"]) == pytest.approx(
            (0.9e-3, 0.9e-3 * 0.99, 0.9e-3 * 1.01)
        )


class TestRegression:
    def slower(self) -> gpukern.Comparison:
        """The first, which has no ratio, by its time; the second by its ratio; the third's time
        has changed with that of the whole machine."""
        now = made_up()
        for index in (0, 2):
            time = now.rows[index].on_device
            now.rows[index] = replace(now.rows[index], on_device=exactly(time.value * 1.5))
        now.rows[0] = replace(now.rows[0], device_ratio=None)
        now.rows[1] = replace(now.rows[1], device_ratio=exactly(0.5))
        return now

    def test_what_became_slower(self):
        found = [c for c in changes.changes(made_up(), self.slower()) if c.verdict != "same"]
        assert [(one.row.label, one.name, one.verdict) for one in found] == [
            ("PyTorch torch.add", "on_device", "slower"),
            ("gpukern f32", "on_device", "slower"),
        ]
        assert [one.factor for one in found] == pytest.approx([1.5, 3.4])
        assert not [c for c in changes.changes(made_up(), made_up()) if c.verdict != "same"]

    def test_that_a_change_is_one_of_ratios_is_said(self):
        before, now = made_up(), self.slower()
        _, said, *_ = reports.report(before, now, changes.changes(before, now))
        assert "ratios to the base of each run" in str(said)

    def test_ratios_that_do_not_agree(self):
        same = changes.agreement(made_up(), made_up())
        assert same.share == 0
        apart = changes.agreement(made_up(), self.slower())
        assert len(apart.apart) == 3
        assert f"3 of {apart.compared} figures" in str(apart)

    def test_each_row_is_held_against_itself_and_each_verdict_has_its_reason(self):
        before, now = without_ratios(), without_ratios()
        factors = {0: 1.1, 1: 0.9, 2: 1.015, 3: 1.0}
        narrow, wide = 0.001, 0.2
        for index, factor in factors.items():
            time = before.rows[index].on_device.value
            before.rows[index] = replace(before.rows[index], on_device=exactly(time, narrow))
            now.rows[index] = replace(now.rows[index], on_device=exactly(time * factor, narrow))
        time = before.rows[4].on_device.value
        now.rows[4] = replace(now.rows[4], on_device=exactly(time * 1.3, wide))
        before.rows[4] = replace(before.rows[4], on_device=exactly(time, wide))
        found = [one for one in changes.changes(before, now) if one.name == "on_device"]
        assert [one.row.variant for one in found] == [row.variant for row in now.rows]
        assert [one.verdict for one in found[:5]] == ["slower", "faster", "same", "same", "same"]
        assert [one.factor for one in found[:5]] == pytest.approx([*factors.values(), 1.3])

    def test_the_table_of_changes(self):
        before, now = without_ratios(), without_ratios()
        for index, factor in ((1, 1.5), (0, 0.5), (2, 3.0)):
            time = now.rows[index].on_device.value
            now.rows[index] = replace(now.rows[index], on_device=exactly(time * factor))
        table, *rest = reports.report(before, now, changes.changes(before, now))
        assert not any("ratios to the base" in str(text) for text in rest), "there is none"
        (lines,) = table.sheet.blocks
        columns = zip(*([cell.text for cell in line] for line in lines), strict=True)
        cells = dict(zip(table.sheet.head, map(list, columns), strict=True))
        assert cells["change"] == [
            *("+200.0 % slower", "+50.0 % slower", "-50.0 % faster"),
        ]
        assert cells["contender"] == ["gpukern f32x4", "gpukern f32", "PyTorch torch.add"]
        assert cells["before"][0] == seconds(before.rows[2].on_device.value)
        assert cells["now"][0] == seconds(now.rows[2].on_device.value)

    def test_on_the_command_line(self, tmp_path):
        before = str(tmp_path / "before.json")
        arguments = ["compare", "add", "--sizes", "16", "--rounds", "2", "--contenders", "numpy"]
        assert CliRunner().invoke(main, [*arguments, "--save", before]).exit_code == 0
        done = CliRunner().invoke(main, [*arguments, "--against", before])
        slower = re.search(r"against the run of \S+: (\d+) slower", done.stdout)
        assert slower, done.output
        assert done.exit_code == (slower[1] != "0"), "two rounds beside other tests may be slower"
        assert "have intervals that do not overlap" in done.stdout
        Path(before).write_text("{}")
        assert CliRunner().invoke(main, [*arguments, "--against", before]).exit_code == 2


class TestTables:
    def test_markdown(self):
        text = made_up().to_markdown()
        assert "| size | contender | variant | max error | ulps | on device |" in text
        assert "| PyTorch | torch.add |" in text
        table = [line for line in text.splitlines() if line.startswith("|")]
        assert {line.count("|") for line in table[:4]} == {table[0].count("|")}

    def lines(self, result: gpukern.Comparison, index: int = 0) -> list[dict[str, sheets.Cell]]:
        """The lines of a table by the heads of their columns."""
        sheet = list(sheets.sheets(result))[index]
        return [
            dict(zip(sheet.head, line, strict=True)) for block in sheet.blocks for line in block
        ]

    def test_each_figure_stands_under_its_head(self):
        split = {"host to device": 3e-4, "compute": 9e-5, "device to host": 2e-4}
        times = {
            "on_device": exactly(8e-5),
            "warm": exactly(7e-5),
            "overhead": exactly(6e-6),
            "end_to_end": exactly(9e-4),
            "first_call": 5.0,
            "split": split,
        }
        one = row("PyTorch", "v", 1000, 1.0, bytes_moved=4 * 10**6, limit=0.25, **times)
        result = replace(made_up(), rows=[one])
        (device,), (whole,) = self.lines(result), self.lines(result, 1)
        shown = {name: cell.text for name, cell in {**whole, **device}.items()}
        assert shown["on device"] == "80.0 us"
        assert shown["warm"] == "70.0 us"
        assert shown["overhead"] == "6.00 us"
        assert shown["rate"] == "50.0 GB/s"
        assert shown["limit"] == "25%"
        assert shown["±"] == "1 %"
        assert shown["end to end"] == "900 us"
        assert shown["first call"] == "5.00 s"
        assert (shown["in"], shown["compute"], shown["out"]) == ("300 us", "90.0 us", "200 us")
        assert (device["ratio"].text, device["from..to"].text) == ("1.70x", "1.68..1.72")
        assert whole["ratio"].text == "same"

    def test_a_product_is_shown_by_its_operations(self):
        one = row("a", "b", 1000, 1e-3, op="matmul", operations=2 * 10**9)
        assert self.lines(replace(made_up(), rows=[one]))[0]["rate"].text == "2.00 TFLOP/s"

    def test_the_fastest_of_each_size_is_bold(self):
        rows = [
            row("gpukern", variant, size, factor * size**2 * 3e-12)
            for size, factors in ((1024, (1.2, 0.9)), (4096, (1.0, 1.3)))
            for variant, factor in zip(("f32", "f32x4"), factors, strict=True)
        ]
        for index, name in ((0, "on device"), (1, "end to end")):
            lines = self.lines(replace(made_up(), rows=rows), index)
            bold = [i for i, line in enumerate(lines) if "bold" in line[name].style]
            assert bold == [1, 2]

    def test_times_of_the_simulator_are_never_the_fastest(self):
        times = {"quick": 1e-6, "real": 1e-3, "slow": 1e-2}
        rows = [row("a", v, 8, time, simulated=v == "quick") for v, time in times.items()]
        lines = self.lines(replace(made_up(), rows=rows), 1)
        assert [line["end to end"].style for line in lines] == ["", "bold green", ""]

    def test_the_caption_says_what_the_phases_are(self):
        text = made_up().to_markdown()
        assert "in, compute, out: the phases of a call that is composed" in text
        bare = replace(made_up(), rows=[replace(one, split={}) for one in made_up().rows])
        assert "start-up. medians" in bare.to_markdown()

    def test_the_caption_says_how_sure_the_intervals_are(self):
        assert "99% intervals" in str(made_up()).replace("\n", " ")

    def test_html_is_escaped(self):
        result = made_up()
        result.rows.append(row("<b>", "v", 4096, 1.0, status="WRONG", detail="<script>"))
        text = result._repr_html_()
        assert text.count("<table>") == 2
        assert "<b>v" not in text and "<script>" not in text
        assert "&lt;script&gt;" in text

    def test_same_and_flags_are_said(self):
        text = str(made_up())
        assert "same" in text
        assert "warm: above the copy bandwidth: CuPy cupy.add" in text

    def test_modes(self):
        both, device = made_up(), replace(made_up(), mode="device")
        whole = replace(made_up(), mode="end-to-end")
        counts = [len(list(sheets.sheets(one))) for one in (both, device, whole)]
        assert counts == [2, 1, 1]

    def test_unknown_names(self):
        with pytest.raises(ValueError, match="unknown mode"):
            gpukern.compare("add", [8], mode="fast")
        with pytest.raises(ValueError, match="unknown protocol"):
            gpukern.compare("add", [8], protocol="none")

    def test_mode_decides_what_is_timed(self):
        names = ["numpy:np.add", "gpukern:f32"]
        for mode, has in (("device", (False, True)), ("end-to-end", (True, False))):
            found = gpukern.compare("add", [8], None, names, mode, rounds=1, simulated=True)
            mine = found.rows[1]
            assert (mine.end_to_end is not None, mine.on_device is not None) == has

    def test_baseline(self):
        names = ["numpy", "gpukern"]
        more = {"rounds": 2, "simulated": True, "baseline": "gpukern:f32"}
        found = gpukern.compare("add", [8], None, names, **more)
        base = [r.variant for r in found.rows if r.on_device and r.device_ratio is None]
        assert base == ["f32"]

    def test_protocols_stand_beside(self):
        names = ["numpy:np.add", "gpukern:f32"]
        for protocol in ("leetcuda", "notes"):
            more = {"rounds": 1, "simulated": True, "protocol": protocol}
            found = gpukern.compare("add", [4], None, names, **more)
            assert found.rows[1].protocols[protocol] > 0
            assert protocol in str(found)


class TestCaseLists:
    pytestmark = pytest.mark.skipif(not lists.names(), reason="the tests stand alone")

    def test_each_is_understood(self):
        assert {"readme", "adds", "protocols"} <= set(lists.names())
        for name in lists.names():
            for case in lists.read(name).cases:
                names = ("op", "sizes", "dtype", "contenders")
                comparison.prepare(*(case.get(key) for key in names), shorten=True)

    def test_run_into_a_readme(self, tmp_path):
        listed = tmp_path / "tiny.toml"
        listed.write_text('title = "t"\n[[case]]\nop = "add"\nsizes = [8]\ncontenders=["numpy"]\n')
        readme = tmp_path / "README.md"
        readme.write_text("above\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nbelow\n")
        arguments = ["bench", str(listed), "--rounds", "1", "--into", str(readme)]
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, done.output
        text = readme.read_text()
        assert "np.add" in text and "\nold\n" not in text
        assert text.startswith("above\n") and text.endswith("end -->\nbelow\n")
        readme.write_text("no marks")
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 2 and "has no <!-- measured: begin -->" in done.stderr

    @pytest.mark.parametrize(
        ("text", "why"),
        [("", "has no"), ("[[case]]\nsize=3\n", "a case has"), ("[[", "list.toml")],
    )
    def test_what_is_wrong_with_one(self, text, why, tmp_path):
        path = tmp_path / "list.toml"
        path.write_text(text)
        with pytest.raises(ValueError, match=why):
            lists.read(str(path))

    def test_unknown_and_not_there(self, monkeypatch):
        done = CliRunner().invoke(main, ["bench", "nothing"])
        assert done.exit_code == 2
        assert "unknown case list 'nothing'; there are adds" in done.stderr
        monkeypatch.setattr(lists, "folder", lambda: None)
        with pytest.raises(ValueError, match="benchmarks/ of the source tree"):
            lists.read("readme")


class TestTimer:
    def test_it_prints_three_times(self, capsys):
        with gpukern.Timer("Sum by GPU") as timer:
            gpukern.sum(np.ones(1000, np.float32))
        text = capsys.readouterr().out
        assert text.startswith("Sum by GPU: wall ")
        assert "CPU" in text and "device" in text
        assert timer.wall > 0 and timer.device > 0

    def test_it_waits_for_the_device(self):
        a = _core.to_device(np.ones((512, 512), np.float32))
        out = _core.empty((512, 512))
        _core.matmul(a, a, out=out, variant="naive")
        with gpukern.Timer(quiet=True) as timer:
            _core.matmul(a, a, out=out, variant="naive")
        assert timer.wall >= timer.device * 0.9


class TestLimitsAndConditions:
    def test_peaks_of_a_known_device(self):
        attributes = {"MULTIPROCESSOR_COUNT": 132, "CLOCK_RATE": 1_980_000}
        known = Device(0, "H200", "", 90, 0, 0, attributes)
        peaks = ceilings.peak_operations(known)
        assert peaks["float32"] == pytest.approx(66.9e12, rel=0.01)
        assert peaks["float16"] == pytest.approx(1070e12, rel=0.01)
        assert peaks["float64"] == pytest.approx(66.9e12, rel=0.01)
        assert ceilings.peak_operations(replace(known, capability=999)) == {}

    def test_share(self):
        known = Limits(1e12, None, {"float32": 1e12})
        assert known.share(10**6, 0, "float32", 2e-6) == pytest.approx(0.5)
        assert known.share(10**6, 10**6, "float32", 2e-6) == pytest.approx(0.5)
        both = Limits(1e12, None, {"float32": 1e12, "float16": 4e12})
        assert both.share(10**6, 10**6, "float16", 2e-6) == pytest.approx(0.125)
        assert known.share(10**6, 10**6, "bfloat16", 2e-6) is None
        assert NONE.share(1, 0, "float32", 1.0) is None

    def test_a_watched_device(self, monkeypatch):
        calls = {
            "nvmlDeviceGetComputeRunningProcesses": lambda h: [1, 2],
            "nvmlDeviceGetClockInfo": lambda h, which: 1980,
            "nvmlDeviceGetTemperature": lambda h, which: 40,
            "nvmlDeviceGetPowerUsage": lambda h: 300_000,
            "nvmlDeviceGetCurrentClocksThrottleReasons": lambda h: 0x4 | 0x1,
            "nvmlSystemGetDriverVersion": lambda: b"580.1",
            "NVML_CLOCK_SM": 1,
            "NVML_CLOCK_MEM": 2,
            "NVML_TEMPERATURE_GPU": 0,
        }
        watch = conditions.Watch()
        assert watch._nvml is not None or watch.summary() == {"watched": False}
        monkeypatch.setattr(watch, "_nvml", types.SimpleNamespace(**calls))
        monkeypatch.setattr(watch, "_seen", [])
        watch.look()
        seen = watch.summary()
        assert seen["sm_mhz"] == [1980, 1980]
        assert seen["watts"] == [300.0, 300.0]
        assert seen["driver_version"] == "580.1"
        assert seen["looks"] == [watch._reading()]
        machine = {"load": [9.0, 1, 1], "usable_cores": 8, "conditions": seen}
        assert conditions.disturbances(machine) == [
            "others were at work on the host: a load of 9.0",
            "the device was slowed down: power cap",
            "1 other processes were on the GPU",
        ]

    def test_one_watch_sees_all_that_goes_into_the_same_results(self, monkeypatch, tmp_path):
        made = []

        class Counting(conditions.Watch):
            def __init__(self) -> None:
                super().__init__()
                made.append(self)
                self.looks = 0

            def look(self) -> None:
                self.looks += 1

            def summary(self) -> dict[str, object]:
                return {"watched": False, "looks": self.looks}

        monkeypatch.setattr(conditions, "Watch", Counting)
        monkeypatch.setattr(filling, "Watch", Counting)
        listed, saved = tmp_path / "two.toml", tmp_path / "saved.json"
        case = '[[case]]\nop = "add"\nsizes = [8]\ncontenders = ["numpy"]\n'
        listed.write_text(case + case)
        arguments = [
            "bench",
            str(listed),
            "--rounds",
            "1",
            "--json",
            str(saved),
            "--processes",
            "1",
        ]
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, done.output
        assert json.loads(saved.read_text())["machine"]["conditions"]["looks"] == 4
        assert len(made) == 1

    def test_commit_is_recorded_in_a_checkout(self, monkeypatch):
        found = conditions.commit()
        assert found is None or found
        monkeypatch.setenv("GPUKERN_COMMIT", "abc")
        monkeypatch.setenv("PATH", "")
        assert conditions.commit() == "abc"

    def test_a_pace_says_what_it_found(self):
        assert Pace(1, 1, 0.0).note == ""
        assert "stream of its own" in Pace(1, 1, 0.0, own_stream=True).note
        assert "waits for the device" in Pace(1, 1, 0.0, blocked=False).note


class TestHost:
    def test_it_is_recorded(self):
        machine = conditions.describe_machine()
        assert machine["processor"]
        assert 1 <= machine["usable_cores"] <= machine["processor_cores"]
        assert len(machine["load"]) == 3
        json.dumps(machine)

    def test_limits_of_a_container(self, monkeypatch, tmp_path):
        (tmp_path / "cpu.max").write_text("250000 100000\n")
        (tmp_path / "memory.max").write_text("max\n")
        monkeypatch.setattr(host, "_GROUP", tmp_path)
        found = host.describe_host()
        assert (found["container_cores"], found["container_bytes"]) == (2.5, None)
        (tmp_path / "cpu.max").write_text("max 100000\n")
        (tmp_path / "memory.max").write_text("4096\n")
        found = host.describe_host()
        assert (found["container_cores"], found["container_bytes"]) == (None, 4096)

    def test_a_busy_one(self):
        assert host.is_busy({"load": [2.1, 0, 0], "usable_cores": 8})
        assert not host.is_busy({"load": [1.9, 9, 9], "usable_cores": 8})
        assert not host.is_busy({})
