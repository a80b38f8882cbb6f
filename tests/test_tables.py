"""Tables of a comparison: what stands in them, and how they fit a terminal."""

from __future__ import annotations

import csv
import io
import sys
import types
from dataclasses import replace

import pytest
from rich.console import Console

import gpukern
from gpukern import _core
from gpukern.bench.model.intervals import Figure
from gpukern.bench.model.row import ABSENT, BROKEN, RIGHT, WRONG, Row
from gpukern.bench.showing import formats, progress, remarks, sheets

pytestmark = pytest.mark.usefixtures("many_comparisons")

WHO = {"size", "contender", "variant", "max error"}


def within(value: float, spread: float = 0.01, rounds: int = 9) -> Figure:
    return Figure(value, value * (1 - spread), value * (1 + spread), rounds)


def row(variant: str, time: float = 1e-4, **more: object) -> Row:
    """As from a GPU, with something in every column."""
    fields = {
        "op": "add",
        "size": "4095x4097",
        "shapes": ((4095, 4097), (4095, 4097)),
        "dtype": "float32",
        "contender": "gpukern",
        "variant": variant,
        "status": RIGHT,
        "version": "1.0",
        "error": 2.4e-7,
        "ulps": 0.5,
        "bound_share": 0.25,
        "first_call": 0.1,
        "end_to_end": within(time * 20),
        "on_device": within(time),
        "warm": within(time * 0.9),
        "overhead": within(5e-6),
        "split": {"host to device": time * 10, "compute": time * 2, "device to host": time * 5},
        "device_ratio": within(1.7),
        "end_to_end_ratio": within(0.00125),
        "limit": 0.9,
        "bytes_moved": 12 * 4095 * 4097,
        "protocols": {"leetcuda": 1.1e-4, "notes": 1.2e-4},
    }
    return Row(**{**fields, **more})


def comparison(*rows: Row, **more: object) -> gpukern.Comparison:
    machine = {"backend": "cuda", "device": "NVIDIA H200", "date": "2026-01-01", "limits": {}}
    return replace(gpukern.Comparison(319095917, machine, list(rows)), **more)


def printed(result: gpukern.Comparison, width: int, wide: bool = False) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None, highlight=False)
    for part in formats.tables(result, wide):
        console.print(part, crop=False)
    return stream.getvalue()


def heads(text: str) -> list[list[str]]:
    """The heads of each table."""
    return [
        [head.strip() for head in line.strip("┃").split("┃")]
        for line in text.splitlines()
        if line.startswith("┃")
    ]


class TestWidth:
    everything = comparison(
        row("torch.compile", contender="PyTorch"),
        row("ElementwiseKernel", contender="CuPy"),
        row("np.add via float32", contender="NumPy", status=WRONG, detail="no " * 200),
        row("DeviceReduce::Sum", contender="CUDA Python", status=BROKEN, detail="Error: no"),
        row("f32x8"),
    )

    @pytest.mark.parametrize("width", [70, 80, 100, 120, 200])
    def test_no_line_is_wider_and_no_name_is_broken(self, width):
        text = printed(self.everything, width)
        assert max(map(len, text.splitlines())) <= width
        for one in self.everything.rows:
            assert text.count(one.variant) == 2
        assert text.count("WRONG") == text.count("broken") == 2
        for found in heads(text):
            assert set(found) >= WHO

    def test_what_is_left_out_is_said_and_the_least_important(self):
        whole = heads(printed(self.everything, 80, wide=True))
        for index, left_out in enumerate(heads(printed(self.everything, 80))):
            missing = [head for head in whole[index] if head not in left_out]
            line = [one for one in printed(self.everything, 80).splitlines() if "no room" in one]
            assert f"no room for: {', '.join(missing)} (--wide" in " ".join(line[index:][:1])
            assert {"ulps", "of bound"} <= set(missing)
            assert "ratio" in left_out

    def test_nothing_is_left_out_where_there_is_room(self):
        text = printed(self.everything, 220)
        assert "no room" not in text
        assert heads(text) == heads(printed(self.everything, 80, wide=True))

    def test_wide_shows_all_columns_on_any_terminal(self):
        text = printed(self.everything, 60, wide=True)
        assert text == printed(self.everything, 300, wide=True)
        device, whole = heads(text)
        assert {"warm", "overhead", "limit", "from..to", "leetcuda", "ulps"} <= set(device)
        assert {"first call", "in", "compute", "out", "notes", "of bound"} <= set(whole)

    def test_transfers_and_compute_stay_together(self):
        phases = {"in", "compute", "out"}
        for width in range(60, 220, 5):
            found = phases & set(heads(printed(self.everything, width))[1])
            assert found in (set(), phases)

    def test_a_very_long_name_is_cut_and_that_is_said(self):
        long = "a_contender_that_somebody_has_thought_about_in_a_meeting_and_then_named"
        result = comparison(row("", contender=long), row("f32x8"))
        text = printed(result, 80)
        assert max(map(len, text.splitlines())) <= 80
        assert f"{long[:23]}…" in text
        assert "names are cut short" in " ".join(text.split())
        assert "ratio" in heads(text)[0]
        assert long in printed(result, 80, wide=True)
        assert long in result._repr_html_() and long in result.to_markdown()

    def test_markdown_and_html_have_all_columns(self):
        for text in (self.everything.to_markdown(), self.everything._repr_html_()):
            for head in ("warm", "overhead", "from..to", "ulps", "of bound", "compute", "notes"):
                assert head in text

    def test_it_is_printed_as_wide_as_the_terminal(self, monkeypatch):
        for columns in ("80", "150"):
            monkeypatch.setenv("COLUMNS", columns)
            lines = str(self.everything).splitlines()
            assert max(map(len, lines)) <= int(columns)
            assert any(len(line) > int(columns) * 0.8 for line in lines)


class TestCells:
    def cells(self, result: gpukern.Comparison, head: str, index: int = 0) -> list[sheets.Cell]:
        sheet = list(sheets.sheets(result))[index]
        place = sheet.head.index(head)
        return [line[place] for block in sheet.blocks for line in block]

    def test_bold_is_what_is_faster_by_its_interval(self):
        clear = comparison(row("a", 1e-4), row("b", 1.1e-4), row("c", 3e-4))
        close = comparison(row("a", 1e-4), row("b", 1.015e-4), row("c", 3e-4))
        alone = comparison(row("a", 1e-4))
        for index, head in ((0, "on device"), (1, "end to end")):
            for result, best in ((clear, [0]), (close, []), (alone, [])):
                found = self.cells(result, head, index)
                assert [i for i, cell in enumerate(found) if "bold" in cell.style] == best
        assert close.to_markdown().count("**") == 4, "the titles alone"

    def test_the_same_within_the_margin(self):
        ratios = {
            1.7: "1.70x",
            1.005: "same",
            0.995: "same",
            1.019: "~1.02x",
            1.021: "1.02x",
            0.97: "0.97x",
        }
        rows = [row(str(ratio), device_ratio=within(ratio)) for ratio in ratios]
        assert [cell.text for cell in self.cells(comparison(*rows), "ratio")] == [*ratios.values()]
        loose = comparison(*rows, margin=0.05)
        assert [cell.text for cell in self.cells(loose, "ratio")] == ["1.70x", *["same"] * 5]
        none = comparison(row("a", device_ratio=within(1.005)), margin=0.0)
        assert self.cells(none, "ratio")[0].text == "~1.00x"

    def test_the_interval_of_a_ratio(self):
        assert self.cells(comparison(row("a")), "from..to")[0].text == "1.68..1.72"
        once = comparison(row("a", device_ratio=within(1.7, rounds=1)))
        assert "from..to" not in next(sheets.sheets(once)).head

    def test_the_share_of_the_bound(self):
        shares = {0.25: "25 %", 0.00012: "0.012 %", 0.0: "0"}
        rows = [row("a", bound_share=share) for share in shares]
        assert [c.text for c in self.cells(comparison(*rows), "of bound")] == [*shares.values()]
        assert "of bound" not in next(sheets.sheets(comparison(row("a", bound_share=None)))).head

    def test_a_table_of_times_that_were_not_taken_is_left_out(self):
        only_device = {"end_to_end": None, "end_to_end_ratio": None, "first_call": None}
        assert len(list(sheets.sheets(comparison(row("a", **only_device))))) == 1
        assert len(list(sheets.sheets(comparison(row("a", on_device=None))))) == 1

    def test_a_disturbed_run_says_so_in_its_title(self):
        result = comparison(row("a"))
        assert "disturbed" not in result.to_markdown()
        seen = {"watched": True, "slowed_by": ["power cap"], "other_processes": 0}
        result.machine["conditions"] = seen
        assert "on NVIDIA H200, seed 319095917, disturbed**" in result.to_markdown()


class TestRemarks:
    def lines(self, *rows: Row, **more: object) -> list[str]:
        return [cell.text for cell in remarks.remarks(comparison(*rows, **more))]

    def test_who_is_absent_for_one_reason_is_one_line(self):
        absent = {"status": ABSENT, "detail": "needs a GPU"}
        rows = [row("", contender=name, op=op, **absent) for op in "ab" for name in ("X", "Y")]
        for size in ("8x8", "9x9"):
            for variant in ("tma", "tma_wide"):
                more = {"op": "matmul", "size": size, "status": ABSENT, "detail": "needs 9.0"}
                rows.append(row(variant, **more))
        assert self.lines(*rows) == ["X, Y: needs a GPU", "gpukern matmul tma, tma_wide: needs 9.0"]

    def test_confidence_is_stated_where_the_rounds_support_it(self):
        for rounds, words in ((8, "99% intervals"), (7, "of 7 rounds, too few to be sure of")):
            figures = {name: within(1.0, rounds=rounds) for name in ("on_device", "warm")}
            (caption,) = self.lines(row("a", **figures))
            assert words in caption

    def test_the_margin_is_stated(self):
        assert "same: within 2.5 %" in self.lines(row("a"), margin=0.025)[0]

    def test_what_was_interrupted_says_so(self):
        assert "interrupted: this is what was done until then" in self.lines(
            row("a"), interrupted=True
        )


class TestCommaSeparated:
    def test_a_line_a_row(self):
        first = row("a", flags=("one, two", "three"))
        result = comparison(first, row("b", status=WRONG, on_device=None, split={}, protocols={}))
        a, b = csv.DictReader(io.StringIO(result.to_csv()))
        assert float(a["on_device"]) == first.on_device.value
        assert a["shapes"] == "4095x4097 4095x4097"
        assert a["flags"] == "one, two; three"
        assert (b["status"], b["on_device"], b["protocols_notes"]) == ("WRONG", "", "")
        assert comparison().to_csv() == "\n"


class TestWhileItRuns:
    def test_ctrl_c_in_python_returns_what_is_done(self):
        def interrupted(a, b):
            raise KeyboardInterrupt

        done: list[gpukern.Comparison] = []
        names = ["numpy:np.add", interrupted]
        result = gpukern.compare("add", [8, 9], None, names, rounds=1, on_table=done.append)
        assert result.interrupted and not done
        assert [one.variant for one in result.rows] == ["np.add"]
        assert result.rows[0].detail == "interrupted"
        assert "interrupted: this is what" in str(result)
        assert not gpukern.compare("add", [8], None, ["numpy"], rounds=1).interrupted

    def test_each_table_is_handed_over_when_its_last_case_is_done(self):
        seen = []

        def on_table(done):
            assert isinstance(done, gpukern.Comparison)
            seen.append([(one.op, one.size) for one in done.rows if one.status == RIGHT])

        names = ["numpy:np.add", "numpy:np.sum"]
        gpukern.compare(["add", "sum"], [8, 9], None, names, rounds=1, on_table=on_table)
        assert seen == [[("add", "8x8"), ("add", "9x9")], [("sum", "8"), ("sum", "9")]]
        with pytest.raises(TypeError, match="compare: on_table has to be a function"):
            gpukern.compare("add", [8], on_table=3)

    def test_nothing_is_written_where_nobody_watches(self, capfd):
        gpukern.compare("add", [8], None, ["numpy"], rounds=1)
        assert capfd.readouterr() == ("", "")

    def test_a_notebook_has_a_line_that_is_written_anew(self, monkeypatch):
        shown: list[tuple[str, bool]] = []

        class DisplayHandle:
            def display(self, data, raw, update=False):
                shown.append((data["text/plain"], update))

        module = types.ModuleType("IPython")
        module.get_ipython = lambda: types.SimpleNamespace(kernel=1)
        module.display = types.SimpleNamespace(DisplayHandle=DisplayHandle)
        monkeypatch.setitem(sys.modules, "IPython", module)
        monkeypatch.setattr(progress, "_EACH", 0)
        gpukern.compare("add", [8], None, ["numpy"], rounds=2)
        assert shown[0] == ("starting", False)
        assert all(update for _, update in shown[1:])
        assert "add 8x8 float32: timing NumPy np.add" in "".join(text for text, _ in shown)
        assert any("s left" in text for text, _ in shown)
        assert shown[-1][0].startswith("done in ")


def test_margins_that_are_none():
    for margin, error in (("1", TypeError), (True, TypeError), (-0.1, ValueError), (1, ValueError)):
        with pytest.raises(error, match="compare: margin has to be"):
            gpukern.compare("add", [8], margin=margin)


@pytest.mark.skipif(_core.backend() == "cuda", reason="there is a GPU")
def test_the_simulator_is_not_asked_for_what_takes_minutes():
    for op, size in (("add", 8192), ("sum", 2**27 - 157), ("matmul", 1000)):
        with pytest.raises(ValueError, match=f"compare: {op} .* takes minutes on the simulator"):
            gpukern.compare(op, [size])
