"""The pictures of a comparison: what they show, and that everything is seen."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from click.testing import CliRunner

import gpukern
from gpukern.bench.model.intervals import Figure
from gpukern.bench.model.row import RIGHT
from gpukern.bench.showing.panels import panel as looks
from gpukern.bench.showing.plots import KINDS
from gpukern.cli.commands import main
from test_results import exactly, made_up, row

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"

pytestmark = pytest.mark.skipif(
    "__import__('importlib.util').util.find_spec('matplotlib') is None",
    reason="not installed: pip install matplotlib",
)


def panels(figure) -> list:
    return [panel for panel in figure.axes if panel.axison]


def names_of(panel) -> list[str]:
    return [text.get_text() for text in panel.get_legend().get_texts()]


def one_size() -> gpukern.Comparison:
    found = made_up()
    return replace(found, rows=[one for one in found.rows if one.size == "4096x4096"])


def words(figure) -> list:
    """Every text that is seen, with its place in pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(figure).draw()
    outside = set()
    for axis in (axis for panel in figure.axes for axis in (panel.xaxis, panel.yaxis)):
        low, high = sorted(axis.get_view_interval())
        beyond = [tick for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high]
        outside |= {tick.label1 for tick in beyond}
    found = set(figure.findobj(Text)) - outside
    shown = [one for one in found if one.get_text() and one.get_visible()]
    return [(one.get_text(), one.get_window_extent()) for one in shown]


class TestKinds:
    def test_all_that_can_be_shown(self):
        assert len(panels(made_up().plot())) == 5  # the ratios are two
        assert [len(panels(made_up().plot(kind))) for kind in KINDS] == [1, 1, 2, 1]

    def test_a_single_size_is_a_list(self):
        figure = one_size().plot("rate")
        (panel,) = panels(figure)
        labels = [label.get_text() for label in panel.get_yticklabels()]
        assert labels[0] == "gpukern f32x4" and labels[-1] == "CuPy cupy.add"
        assert not panel.get_legend()
        # The time of a call is the length of its bar.
        assert len(panels(one_size().plot())) == 4

    def test_nothing_to_draw_is_said(self):
        bare = {"device_ratio": None, "end_to_end_ratio": None, "split": {}}
        bare |= {"on_device": None, "end_to_end": None}
        result = made_up()
        result.rows = [replace(one, **bare) for one in result.rows]
        for kind in (None, *KINDS):
            figure = result.plot(kind)
            assert not panels(figure)
            assert any("no " in text for text, _ in words(figure))
        figure = gpukern.Comparison(1, result.machine).plot()
        assert "nothing to draw" in str(words(figure))

    def test_unknown_kind(self):
        with pytest.raises(ValueError, match="there are rate, time, ratio, split"):
            made_up().plot("roofline")

    def test_without_matplotlib(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(ImportError, match="pip install matplotlib"):
            made_up().plot()

    def test_a_simulated_run_says_so(self):
        result = made_up()
        result.machine = {**result.machine, "backend": "sim"}
        assert any("simulator" in text for text, _ in words(result.plot("rate")))

    def test_a_disturbed_run_says_so(self):
        result = made_up()
        seen = {"watched": True, "slowed_by": ["power cap"], "other_processes": 2}
        result.machine = {**result.machine, "conditions": seen}
        title = next(text for text, _ in words(result.plot()) if "GPU A" in text)
        assert title.splitlines()[1:] == [
            "the device was slowed down: power cap",
            "2 other processes were on the GPU",
        ]


LOPSIDED = Figure(10.0, 9.0, 14.0, 9)


class TestIntervals:
    def result(self, *sizes: int) -> gpukern.Comparison:
        figures = {
            "on_device": LOPSIDED,
            "end_to_end": LOPSIDED,
            "device_ratio": Figure(5.0, 3.0, 7.0, 9),
            "end_to_end_ratio": Figure(2.0, 1.5, 4.0, 9),
            "bytes_moved": 1260 * 10**9,
            "split": {"host to device": 1.0, "compute": 1.0, "device to host": 1.0},
        }
        rows = [row("gpukern", "v", size, 1.0, **figures) for size in sizes]
        return gpukern.Comparison(7, made_up().machine, rows)

    def ends(self, panel, axis: int) -> set[tuple[float, float]]:
        """Where the whiskers of a panel begin and end, along x or y."""
        whiskers = [one[2] for one in panel.containers if hasattr(one, "has_xerr")]
        found = [segment for bars in whiskers for bar in bars for segment in bar.get_segments()]
        return {tuple(round(float(end[axis]), 6) for end in segment) for segment in found}

    @pytest.mark.parametrize(
        ("kind", "sizes", "axis", "ends"),
        [
            ("time", (64, 128), 1, [(9, 14)]),
            ("rate", (64, 128), 1, [(90, 140)]),
            ("time", (64,), 0, [(9000, 14000)]),
            ("rate", (64,), 0, [(90, 140)]),
            ("ratio", (64,), 0, [(3, 7), (1.5, 4)]),
            ("split", (64,), 0, [(9000, 14000)]),
        ],
    )
    def test_they_reach_from_their_low_to_their_high_end(self, kind, sizes, axis, ends):
        found = [self.ends(panel, axis) for panel in panels(self.result(*sizes).plot(kind))]
        assert found == [{one} for one in ends]


class TestRates:
    def test_bandwidth_with_its_limit(self):
        (panel,) = panels(made_up().plot("rate"))
        assert names_of(panel)[-1] == "limit: copying memory"
        limit = panel.get_lines()[-1]
        assert list(limit.get_ydata()) == pytest.approx([4000, 4000])
        plain = next(one for one in panel.get_lines() if one.get_label() == "gpukern f32x4")
        assert plain.get_linewidth() > 2

    def test_the_best_of_a_library_is_bold_and_its_colour_the_same(self):
        drawn = {line.get_label(): line for line in panels(made_up().plot("rate"))[0].get_lines()}
        best, other = drawn["gpukern f32x4"], drawn["gpukern f32"]
        assert best.get_linewidth() > other.get_linewidth()
        assert best.get_color() == other.get_color() != drawn["PyTorch torch.add"].get_color()
        assert best.get_marker() != other.get_marker()

    def test_a_product_is_held_against_the_peak(self):
        more = {"op": "matmul", "bytes_moved": 12 * 1000**2, "operations": 2 * 1000**3}
        machine = made_up().machine
        result = gpukern.Comparison(7, machine, [row("gpukern", "tiled", 1000, 1e-3, **more)])
        figure = result.plot("rate")
        assert any("limit: peak of float32, 60 TFLOP/s" in text for text, _ in words(figure))
        assert any(text.startswith("2 TFLOP/s") for text, _ in words(figure))

    def test_a_product_that_waits_for_memory_is_held_against_its_bandwidth(self):
        more = {"op": "matmul", "bytes_moved": 10**9, "operations": 10**9}
        machine = made_up().machine
        result = gpukern.Comparison(7, machine, [row("gpukern", "tiled", 1000, 1e-3, **more)])
        found = [text for text, _ in words(result.plot("rate"))]
        assert "limit: copying memory, 4 TFLOP/s" in found

    @pytest.mark.parametrize(
        ("bytes_moved", "name"),
        [
            ((10**9, 10**9), "copying memory"),
            ((10**9, 10**6), "copying memory or peak of float32"),
            ((10**6, 10**6), "peak of float32"),
        ],
    )
    def test_the_limit_of_products_is_named_by_what_bounds_them(self, bytes_moved, name):
        rows = [
            row("gpukern", "v", size, 1e-3, op="matmul", bytes_moved=count, operations=10**9)
            for size, count in zip((64, 128), bytes_moved, strict=True)
        ]
        (panel,) = panels(gpukern.Comparison(7, made_up().machine, rows).plot("rate"))
        assert names_of(panel)[-1] == f"limit: {name}"

    def test_sizes_of_as_many_elements_are_points_of_one_line(self):
        result = made_up()
        flat = [
            replace(one, size="2048x512", shapes=((2048, 512),) * 2)
            for one in result.rows
            if one.size == "1024x1024"
        ]
        result.rows += flat
        (panel,) = panels(result.plot("rate"))
        lines = [one for one in panel.get_lines() if one.get_label() == "limit: copying memory"]
        assert len(lines[0].get_xdata()) == 2


class TestRatios:
    def test_points_with_intervals_and_a_line_at_one(self):
        device, whole = panels(made_up().plot("ratio"))
        for panel in (device, whole):
            assert any(list(line.get_xdata()) == [1, 1] for line in panel.get_lines())
            assert panel.get_xscale() == "log"
        # Also where all are nearly the same.
        assert len(whole.get_xticks()) > 2
        assert "1.70x" in [text.get_text() for text in device.texts]

    def test_they_are_those_of_the_largest_size(self):
        for panel in panels(made_up().plot("ratio")):
            assert panel.get_title(loc="left").endswith(", 4096x4096")

    def test_the_baseline_is_named(self):
        result = made_up()
        result.rows = [
            replace(one, device_ratio=None) if one.variant == "torch.add" else one
            for one in result.rows
        ]
        device = panels(result.plot("ratio"))[0]
        assert device.get_xlabel() == "times as fast as PyTorch torch.add"
        assert "base" in [text.get_text() for text in device.texts]


def split(load: float, compute: float, fetch: float) -> dict[str, float]:
    return {"host to device": load, "compute": compute, "device to host": fetch}


class TestSplits:
    def call(self, **more) -> gpukern.Comparison:
        fields = {"end_to_end": Figure(10.0, 9.9, 10.1, 9), "split": split(8.0, 1.0, 3.0)}
        one = row("PyTorch", "torch.add", 64, 1.0, **(fields | more))
        return gpukern.Comparison(7, made_up().machine, [one])

    def bars(self, result: gpukern.Comparison) -> list:
        (panel,) = panels(result.plot("split"))
        return [bar for bar in panel.patches if bar.get_width()]

    def test_the_phases_are_one_bar(self):
        bars = self.bars(self.call())
        assert [bar.get_width() for bar in bars] == pytest.approx([8000, 1000, 3000])
        assert [bar.get_x() for bar in bars] == pytest.approx([0, 8000, 9000])

    def test_each_in_its_colour(self):
        result = self.call()
        figure = result.plot("split")
        (legend,) = figure.findobj(lambda one: type(one).__name__ == "Legend")
        names = [text.get_text() for text in legend.get_texts()]
        assert names[:3] == list(result.rows[0].phases())
        colors = [patch.get_facecolor() for patch in legend.get_patches()]
        assert colors == [bar.get_facecolor() for bar in self.bars(result)]
        assert "in one piece" in names[3]

    def test_the_call_itself_is_a_mark_in_the_bar_where_it_overlaps_its_phases(self):
        figure = self.call().plot("split")
        (panel,) = panels(figure)
        marks = [list(one[0].get_xdata()) for one in panel.containers if hasattr(one, "has_xerr")]
        assert [10000] in marks
        assert "12.0 s; in one piece 10.0 s" in [text for text, _ in words(figure)]

    def test_there_is_none_of_an_older_run_that_timed_its_transfers_alone(self):
        result = self.call(split={"host to device": 8.0, "device to host": 3.0})
        assert not panels(result.plot("split"))
        assert len(panels(result.plot())) == 4

    def test_each_bar_stands_beside_its_name(self):
        result = self.call()
        quick = {"end_to_end": exactly(5.0), "split": split(1.0, 2.0, 1.0)}
        result.rows.append(row("gpukern", "f32", 64, 1.0, **quick))
        (panel,) = panels(result.plot("split"))
        names = [label.get_text() for label in panel.get_yticklabels()]
        assert names == ["gpukern f32", "PyTorch torch.add"]
        above = [bar for bar in panel.patches if bar.get_width() and bar.get_y() < 0.5]
        assert max(bar.get_x() + bar.get_width() for bar in above) == pytest.approx(4000)

    def test_of_many_the_best_of_each_library(self):
        result = made_up()
        result.rows = [
            row("gpukern", f"v{i}", 64, 1.0 + i, status=RIGHT) for i in range(looks.MANY + 1)
        ]
        (panel,) = panels(result.plot("split"))
        assert [label.get_text() for label in panel.get_yticklabels()] == ["gpukern v0"]


class TestSeen:
    def recorded(self) -> list[gpukern.Comparison]:
        path = RESULTS / "h200-compare.json"
        if not path.exists():
            return [made_up()]
        whole = gpukern.Comparison.from_json(path)
        groups = dict.fromkeys((one.op, one.dtype) for one in whole.rows)
        return [made_up(), *(whole.only(*group) for group in groups)]

    def test_no_words_overlap_or_are_cut_off(self):
        for result in self.recorded():
            figure = result.plot()
            found = words(figure)
            for (one, here), (other, there) in combinations(found, 2):
                across = min(here.x1, there.x1) - max(here.x0, there.x0)
                down = min(here.y1, there.y1) - max(here.y0, there.y0)
                assert across <= 2 or down <= 3, (one, other)
            width, height = figure.canvas.get_width_height()
            for text, place in found:
                assert place.x0 >= -1 and place.x1 <= width + 1, text
                assert place.y0 >= -1 and place.y1 <= height + 1, text

    def test_it_is_as_wide_as_it_is_shown(self):
        for result in self.recorded():
            assert result.plot().get_size_inches()[0] * 100 <= 900

    def test_a_dark_style_makes_dark_pictures(self):
        import matplotlib.style
        from matplotlib.colors import to_rgb

        with matplotlib.style.context("dark_background"):
            figure = made_up().plot("rate")
        assert sum(to_rgb(figure.get_facecolor())) < 0.5
        assert sum(to_rgb(panels(figure)[0].get_lines()[-1].get_color())) > 2.5

    def test_colours_are_told_apart_on_white_and_on_black(self):
        from matplotlib.colors import to_rgb

        def light(color: str) -> float:
            parts = [
                c / 12.92 if c <= 0.04 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)
            ]
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

        for color in (*looks._COLORS.values(), *looks._OTHERS):
            assert 1.05 / (light(color) + 0.05) > 2, color
            assert (light(color) + 0.05) / 0.05 > 3, color
        assert len({*looks._COLORS.values(), *looks._OTHERS}) == len(looks._COLORS) + 4


class TestSaved:
    def test_on_the_command_line(self, tmp_path):
        for suffix in ("png", "svg"):
            arguments = ["compare", "add", "sum", "--sizes", "16", "--rounds", "1", "--plot"]
            target, names = tmp_path / f"picture.{suffix}", ["--contenders", "numpy"]
            assert CliRunner().invoke(main, [*arguments, str(target), *names]).exit_code == 0
            found = sorted(path.name for path in tmp_path.glob(f"*.{suffix}"))
            assert found == [f"picture-add-float32.{suffix}", f"picture-sum-float32.{suffix}"]
