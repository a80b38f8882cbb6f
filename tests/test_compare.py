"""The comparison cannot be fooled: wrong contenders are named, right ones pass."""

from __future__ import annotations

import ctypes
import importlib
import json
import math
import sys
import types
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest

import gpukern
from gpukern import _core
from gpukern.bench import comparison, filling
from gpukern.bench.cases import bounds, plans
from gpukern.bench.cases.trials import make_trials
from gpukern.bench.checking.verdict import check
from gpukern.bench.clock.device import DeviceTimer
from gpukern.bench.clock.machine import MachineClock
from gpukern.bench.contenders import registry
from gpukern.bench.contenders.registry import PEERS, Peer, gather, select
from gpukern.bench.model import case as cases
from gpukern.bench.model.case import make_case
from gpukern.bench.model.contender import Absent, Contender, DeviceSide, Work
from gpukern.bench.model.dtypes import numpy_dtype
from gpukern.bench.model.row import WRONG, Row
from gpukern.bench.model.settings import Effort, make_settings
from gpukern.bench.showing import sheets
from gpukern.machine import conditions

pytestmark = pytest.mark.usefixtures("many_comparisons")

SEED = 20260101
# Whose results are rounded on the way, so that they have a bound.
SUMS = [("sum", 3000), ("dot", 3000), ("norm", 3000), ("matmul", 30)]


def planted(end_to_end: Callable[..., object], device: DeviceSide | None = None) -> Peer:
    """A peer with one contender, named "planted"."""

    def offer(op: str, dtype: str) -> Iterator[Contender]:
        yield Contender("planted", "v", end_to_end, device)

    return Peer("planted", "planted", offer, needs_gpu=False)


def only_row(op: str, size: object, dtype: str, peer: Peer) -> Row:
    result = gpukern.compare(op, [size], dtype, [peer], seed=SEED, rounds=1)
    (row,) = result.rows
    return row


def assert_wrong(row: Row) -> None:
    assert row.status == WRONG
    assert row.detail
    assert row.end_to_end is None and row.on_device is None and row.warm is None


def to_tf32(a: np.ndarray) -> np.ndarray:
    """float32 with the last 13 bits of its significand rounded away, as tensor cores take it."""
    bits = a.view(np.uint32) + np.uint32(0x1000)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


@pytest.mark.parametrize(
    ("op", "size"),
    [("add", (33, 65)), ("sum", 70_001), ("matmul", (33, 65, 31)), ("transpose", (33, 65))],
)
def test_numpy_and_every_variant_is_right_on_every_dtype(op, size):
    for dtype in cases.DTYPES_OF[op]:
        result = gpukern.compare(op, [size], dtype, ["numpy", "gpukern"], seed=SEED, rounds=1)
        problems = [row for row in result.rows if row.status not in ("right", "absent")]
        assert not problems
        ran = {row.variant for row in result.rows if row.contender == "gpukern"}
        assert ran == {variant.variant for variant in gpukern.variants(op, dtype)}
        for row in result.rows:
            assert row.variant != "tf32" or row.detail.endswith("which is another contest")


def test_a_size_of_one_is_right_too():
    for op in cases.OPERATIONS:
        result = gpukern.compare(op, [1], None, ["numpy", "gpukern"], seed=SEED, rounds=1)
        assert not result.wrong


class TestPlanted:
    """Every way to be wrong that a table of times would hide."""

    def test_skipped_last_element_of_a_sum(self):
        row = only_row("sum", 2**20 - 157, "float32", planted(lambda a: np.sum(a[:-1])))
        assert_wrong(row)

    def test_skipped_block_in_the_middle_of_a_sum(self):
        def skipping(a: np.ndarray) -> np.ndarray:
            return np.sum(np.concatenate([a[:4096], a[4352:]]))

        assert_wrong(only_row("sum", 2**18, "float32", planted(skipping)))

    def test_skipped_tail_of_an_add(self):
        def skipping(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            out = a + b
            out.reshape(-1)[-3:] = 0
            return out

        row = only_row("add", (64, 65), "float32", planted(skipping))
        assert_wrong(row)
        assert "3 of 4160 elements" in row.detail

    def test_skipped_last_term_of_a_matmul(self):
        row = only_row("matmul", 256, "float32", planted(lambda a, b: a[:, :-1] @ b[:-1]))
        assert_wrong(row)

    @pytest.mark.parametrize("size", [(64, 1000, 64), (16, 4096, 16), (8, 16384, 8)])
    def test_tf32_for_float32(self, size):
        assert_wrong(
            only_row("matmul", size, "float32", planted(lambda a, b: to_tf32(a) @ to_tf32(b)))
        )

    def test_tf32_of_one_operand(self):
        assert_wrong(only_row("matmul", 512, "float32", planted(lambda a, b: a @ to_tf32(b))))
        assert_wrong(only_row("matmul", 512, "float32", planted(lambda a, b: to_tf32(a) @ b)))

    def test_float32_for_float64(self):
        def narrow(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return (a.astype("f4") @ b.astype("f4")).astype("f8")

        assert_wrong(only_row("matmul", 64, "float64", planted(narrow)))

    def test_float16_accumulation(self):
        def halves(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            out = np.zeros((a.shape[0], b.shape[1]), np.float16)
            for i in range(a.shape[1]):
                out += a[:, i, None] * b[None, i]
            return out

        assert_wrong(only_row("matmul", (32, 512, 32), "float16", planted(halves)))

    def test_result_kept_from_an_earlier_call(self):
        kept: list[np.ndarray] = []

        def cached(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            kept.append(a + b)
            return kept[0]

        row = only_row("add", 100, "float32", planted(cached))
        assert_wrong(row)
        assert "cached result, of inputs before these" in row.detail

    def test_output_that_is_never_written(self):
        side = DeviceSide(_core.to_device, lambda inputs, out: None, _core.DeviceArray.to_host)
        row = only_row("add", 100, "float32", planted(np.add, side))
        assert_wrong(row)
        assert "on the device" in row.detail and "nan" in row.detail

    def test_not_a_number(self):
        assert_wrong(only_row("sum", 100, "float32", planted(lambda a: np.float32(np.nan))))

    def test_wrong_dtype_and_wrong_shape(self):
        row = only_row("add", 10, "float32", planted(lambda a, b: (a + b).astype("f8")))
        assert_wrong(row)
        assert "float64" in row.detail
        assert_wrong(only_row("add", 10, "float32", planted(lambda a, b: (a + b)[:5])))

    def test_integers_are_compared_bit_for_bit(self):
        assert_wrong(only_row("add", 10, "int32", planted(lambda a, b: a + b + 1)))

    def test_a_raising_contender_is_broken_and_does_not_stop_the_others(self):
        def raising(*arrays: np.ndarray) -> np.ndarray:
            raise RuntimeError("first line\nsecond line")

        result = gpukern.compare("add", [8], None, [planted(raising), "numpy:np.add"], rounds=1)
        assert [row.status for row in result.rows] == ["broken", "right"]
        assert result.rows[0].detail == "RuntimeError: first line"
        assert "broken: RuntimeError: first line" in str(result)

    def test_a_users_function_that_raises_has_a_row_in_the_table(self):
        def raising(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            raise RuntimeError("no such thing")

        for others in (["numpy:np.add"], []):
            result = gpukern.compare("add", [8], None, [raising, *others], rounds=1)
            (sheet,) = sheets.sheets(result)
            ((line, *rest),) = sheet.blocks
            cells = dict(zip(sheet.head, line, strict=True))
            assert (cells["contender"].text, cells["max error"].text) == ("raising", "broken")
            assert len(rest) == len(others)
            assert {cells[name].text for name in cells if name == "end to end"} <= {"-"}
            assert "raising: broken: RuntimeError: no such thing" in str(result)

    def test_it_is_shown(self):
        result = gpukern.compare(
            "add", [8], None, [planted(lambda a, b: a), "numpy"], seed=SEED, rounds=1
        )
        text = str(result)
        assert "WRONG" in text
        assert f"seed {SEED}" in text
        assert result.wrong == result.rows[:1]


def normal(count: int) -> bounds.Terms:
    """What is known of so many normal numbers, whose sum is a root of them."""
    return bounds.Terms(math.sqrt(count), 0.8 * count, float(count), count)


class TestBounds:
    def test_float32_additions_in_any_order_stay_inside(self):
        for count in (1, 2, 3, 1000, 30_000):
            case = make_case("sum", count)
            for trial in make_trials(case, count):
                serial = np.add.accumulate(trial.inputs[0])[-1]
                assert check(serial, trial.expected, serial=True).right
                assert check(np.sum(trial.inputs[0]), trial.expected).right

    def test_it_is_infinite_where_nothing_is_certain(self):
        assert math.isinf(bounds.gamma(2**24, 2.0**-24))
        assert math.isinf(float(bounds.sum_bound(normal(2**25), "float32", serial=True)))
        assert float(bounds.sum_bound(normal(2**25), "float32")) < 100

    def test_zero_is_no_sum_of_many_elements(self):
        """The one of the default size, whose worst-case bound is 1e5 on an answer of 1e4."""
        count = 2**27 - 157
        mixed = normal(count)
        assert float(bounds.sum_bound(mixed, "float32")) < float(mixed.exact) / 100
        for serial in (False, True):
            positive = bounds.Terms(0.8 * count, 0.8 * count, count, count)
            assert float(bounds.sum_bound(positive, "float32", serial)) < positive.exact
        assert float(bounds.sum_bound(positive, "float32")) < 3e-4 * positive.exact

    def test_they_are_the_worst_case_for_a_few_and_the_likely_one_for_many(self):
        """In unit roundoffs of a sum of terms of 1."""
        u = 2.0**-24

        def ones(count: int) -> bounds.Terms:
            return bounds.Terms(float(count), float(count), float(count), count)

        # Two more for a term's own product and for what is off in the end.
        assert float(bounds.sum_bound(ones(3), "float32")) / u / 3 == pytest.approx(2 + 1)
        many = float(bounds.sum_bound(ones(10_000), "float32")) / u / 10_000
        assert many == pytest.approx(8 * math.sqrt(10_000 / 3 + 1 / 2) + 1, rel=1e-2)
        inner = float(bounds.matmul_bound(1.0, 1.0, 10_000, "float32")) / u
        assert inner == pytest.approx(8 * 100 + 1, rel=1e-2)
        assert bounds.probable(5, u) == bounds.gamma(5, u)

    def test_honest_orders_stay_far_inside_and_use_up_a_share(self):
        """The likely bound is not so narrow that an unusual order leaves it."""
        for name in (1, 2):
            trial = make_trials(make_case("sum", 2**18), SEED)[name]
            (a,) = trial.inputs
            for got in (np.sum(a), np.sum(np.sort(a)), np.add.accumulate(a)[-1]):
                found = check(np.asarray(got), trial.expected)
                assert found.right and 0 <= found.share < 0.5

    @pytest.mark.parametrize("each", [256, 2**15])
    def test_sums_of_blocks_added_one_by_one_are_honest(self, each):
        """What atomicAdd of each block's sum does, a kernel of many tutorials, in any order."""
        for trial in make_trials(make_case("sum", 2**22 + 77), SEED)[1:3]:
            (a,) = trial.inputs
            sums, random = (
                np.add.reduceat(a, np.arange(0, a.size, each)),
                np.random.default_rng(SEED),
            )
            for _ in range(5):
                random.shuffle(sums)
                assert check(np.add.accumulate(sums)[-1], trial.expected).share < 0.5

    @pytest.mark.parametrize(("op", "size"), [*SUMS, ("add", 8)])
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_what_is_no_number_is_wrong_whatever_the_bound(self, op, size, value):
        for trial in make_trials(make_case(op, size), SEED):
            got = trial.expected.nearest.copy()
            got.reshape(-1)[-1] = value
            assert check(trial.expected.nearest, trial.expected).right
            assert not check(got, trial.expected).right
            assert not check(got, trial.expected, serial=True).right

    @pytest.mark.parametrize(("op", "size"), SUMS)
    def test_a_proof_may_not_be_off_by_one_unit_in_the_last_place(self, op, size):
        exact = make_trials(make_case(op, size), SEED)[0].expected
        for serial in (False, True):
            above = exact.nearest
            # The root of a norm is not exact, and may be off by two.
            for _ in range(3 if op == "norm" else 1):
                above = np.nextafter(above, np.float32(np.inf))
            assert not check(np.asarray(above), exact, serial).right

    def test_as_many_elements_in_another_shape_are_wrong(self):
        for trial in make_trials(make_case("add", (4, 6)), SEED):
            for shape in ((24,), (6, 4), (4, 6, 1)):
                found = check(trial.expected.nearest.reshape(shape), trial.expected)
                assert "in place of float32 of shape (4, 6)" in found.detail

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
    def test_one_rounding_is_inside_and_two_ulps_are_not(self, dtype):
        kind = numpy_dtype(dtype)
        exact = np.float64(1) + np.float64(1) / 3
        error = bounds.rounding(exact, dtype)
        assert abs(float(kind.type(exact)) - exact) <= error
        assert error < 2 * 2.0 ** (1 - bounds.SIGNIFICAND[dtype])

    @pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
    @pytest.mark.parametrize("size", [1, 63, 5000])
    def test_exact_inputs_have_no_rounding_in_any_order(self, dtype, size):
        accumulator = np.float64 if dtype == "float64" else np.float32
        trial = make_trials(make_case("sum", size, dtype), SEED)[0]
        values = trial.inputs[0].astype(accumulator)
        for order in (values, values[::-1], np.sort(values)):
            total = np.add.accumulate(order)[-1]
            assert total == trial.expected.exact

    def test_exact_matmul_inputs_have_no_rounding(self):
        trial = make_trials(make_case("matmul", (8, 3000, 8)), SEED)[0]
        a, b = trial.inputs
        total = np.zeros((8, 8), np.float32)
        for i in range(a.shape[1]):
            total += a[:, i, None] * b[None, i]
        assert np.array_equal(total, trial.expected.exact)

    def test_random_sums_round(self):
        """Inputs so tame that nothing is ever rounded would show every contender as exact."""
        trial = make_trials(make_case("add", 1000), SEED)[0]
        assert check(trial.expected.nearest, trial.expected).error > 0


class TestCases:
    def test_same_seed_same_inputs(self):
        case = make_case("matmul", 20)
        first, again, other = (make_trials(case, seed)[0].inputs[0] for seed in (1, 1, 2))
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)

    @pytest.mark.parametrize(
        ("op", "size", "shapes", "label"),
        [
            ("add", 5, ((5, 5), (5, 5)), "5x5"),
            ("add", (2, 3), ((2, 3), (2, 3)), "2x3"),
            ("sum", 7, ((7,),), "7"),
            ("sum", (2, 3), ((2, 3),), "2x3"),
            ("matmul", 4, ((4, 4), (4, 4)), "4x4"),
            ("matmul", (2, 3, 4), ((2, 3), (3, 4)), "2x3x4"),
            ("transpose", (2, 3), ((2, 3),), "2x3"),
        ],
    )
    def test_sizes(self, op, size, shapes, label):
        case = make_case(op, size)
        assert case.shapes == shapes
        assert case.size == label

    def test_bytes_and_operations(self):
        assert make_case("add", (2, 3), "float16").bytes_moved == 36
        assert make_case("sum", 10, "int32").bytes_moved == 48
        assert make_case("matmul", (2, 3, 4)).operations == 48
        assert make_case("transpose", (2, 3), "bfloat16").bytes_moved == 24

    @pytest.mark.parametrize("size", [0, (), (3, -1)])
    def test_sizes_that_do_not_fit(self, size):
        with pytest.raises(ValueError, match="positive"):
            make_case("add", size)

    @pytest.mark.parametrize(("op", "size"), [("matmul", (1, 2, 3, 4)), ("transpose", (1, 2, 3))])
    def test_too_many_dimensions(self, op, size):
        with pytest.raises(ValueError, match=op):
            make_case(op, size)

    def test_names_that_are_not_there(self):
        with pytest.raises(ValueError, match=r"there are add, .*matmul, transpose"):
            gpukern.compare("convolve")
        with pytest.raises(ValueError, match="there are float32"):
            gpukern.compare("add", dtype="float8")
        with pytest.raises(ValueError, match="matmul does not take int32"):
            gpukern.compare("matmul", dtype="int32")
        with pytest.raises(ValueError, match="there are numpy, torch"):
            gpukern.compare("add", contenders=["matlab"])

    def test_defaults_suit_the_device(self):
        plan = plans.plan()
        assert {case.op for case in plan} == {"matmul", "add", "sum"}
        if _core.backend() == "sim":
            assert max(case.count for case in plan) <= 2**20
        else:
            assert make_case("matmul", 1000) in plan
            assert len([case for case in plan if case.op == "add"]) == 2
            assert make_case("sum", 2**24 - 157) in plan
        assert {case.op for case in plans.plan("all")} == {"matmul", "add", "sum", "transpose"}
        assert all(plans.plan(op) for op in cases.OPERATIONS)


FLOAT_MATMUL = ("matmul", "float32")


class TestContenders:
    def test_missing_peer_is_a_line(self):
        peer = Peer("x", "Xyz", "nowhere:x", "no_such_module", "pip install xyz", needs_gpu=False)
        result = gpukern.compare("add", [8], None, [peer, "numpy"], rounds=1)
        assert "Xyz: not installed: pip install xyz" in str(result)
        assert not result.wrong

    def test_missing_peer_is_one_line_however_many_cases(self):
        peer = Peer("x", "Xyz", "nowhere:x", "no_such_module", "pip install xyz", needs_gpu=False)
        result = gpukern.compare(["add", "sum"], [8, 9], None, [peer, "numpy"], rounds=1)
        assert str(result).count("Xyz") == 1

    def test_broken_import_is_a_line_with_its_error(self):
        peer = Peer("x", "Xyz", "gpukern.no_such_adapter:x", needs_gpu=False)
        text = str(gpukern.compare("add", [8], None, [peer, "numpy"], rounds=1))
        assert "Xyz: broken: ModuleNotFoundError" in text
        assert "np.add" in text

    def test_peers_without_a_gpu(self):
        if _core.backend() != "sim":
            pytest.skip("there is a GPU")
        text = str(gpukern.compare("add", [8], rounds=1))
        names = "PyTorch, CuPy, Numba, PyCUDA, Triton, JAX, CUDA Python, CUB"
        assert f"{names}: needs a GPU" in text

    def test_one_variant(self):
        result = gpukern.compare("matmul", [16], None, ["gpukern:tiled"], rounds=1)
        assert [row.variant for row in result.rows] == ["tiled"]
        (absent,) = gather(select(["gpukern"])[0][0], "no_such", "add", "float32")
        assert isinstance(absent, Absent)

    def test_a_variant_that_does_not_run_is_a_line(self, monkeypatch):
        rows = [{**row, "runs": False, "why": "because"} for row in _core.rows()]
        monkeypatch.setattr(_core, "rows", lambda: rows)
        result = gpukern.compare("matmul", [16], None, ["gpukern"], rounds=1)
        assert {row.status for row in result.rows} == {"absent"}
        names = [row["variant"] for row in rows if (row["op"], row["dtype"]) == FLOAT_MATMUL]
        names.remove("tf32")  # which is a different contest
        assert f"gpukern matmul {', '.join(names)}: because" in " ".join(str(result).split())

    def test_every_peer_has_its_adapter(self):
        assert [peer.key for peer in PEERS] == [
            *("numpy", "torch", "cupy", "numba", "pycuda", "triton", "jax", "cuda-python"),
            *("cub", "gpukern"),
        ]
        assert all(isinstance(peer.offer, str) for peer in PEERS)


class TestResult:
    def result(self) -> comparison.Comparison:
        wrong = planted(lambda a, b: np.full_like(a, np.nan))
        return gpukern.compare("add", [8, 9], None, ["numpy", "gpukern", wrong], rounds=1)

    def test_json(self, tmp_path):
        result = self.result()
        path = tmp_path / "result.json"
        text = result.to_json(path)
        assert path.read_text() == text
        whole = json.loads(text)
        assert whole["seed"] == result.seed
        assert whole["machine"]["backend"] == _core.backend()
        assert whole["machine"]["versions"]["numpy"] == np.__version__
        assert len(whole["rows"]) == len(result.rows)
        assert {row["error"] for row in whole["rows"] if row["status"] == "WRONG"} == {"nan"}

    def test_dicts(self):
        rows = self.result().to_dicts()
        assert {row["size"] for row in rows} == {"8x8", "9x9"}
        timed = [row for row in rows if row["status"] == "right" and not row["simulated"]]
        assert timed
        assert all(row["end_to_end_low"] <= row["end_to_end"] for row in timed)

    def test_simulated_times_are_hidden_unless_asked_for(self):
        if _core.backend() != "sim":
            pytest.skip("there is a GPU")
        hidden = self.result()
        assert hidden.simulated
        mine = [row for row in hidden.rows if row.contender == "gpukern"]
        assert all(row.simulated and row.on_device is None for row in mine)
        assert "ran on the CPU simulator: right results, and no times" in str(hidden)
        names = ["numpy", "gpukern"]
        shown = gpukern.compare("add", [8], None, names, rounds=1, simulated=True)
        assert "a CPU's simulated figures, never a GPU's" in str(shown)
        assert all(row.on_device for row in shown.rows if row.contender == "gpukern")
        assert not any(row.simulated for row in shown.rows if row.contender == "NumPy")

    @pytest.mark.parametrize("width", [100, 140])
    def test_tables_are_not_cut(self, width):
        import io

        from rich.console import Console

        stream = io.StringIO()
        console = Console(file=stream, width=width)
        for part in gpukern.compare("all", [33], rounds=1).renderables():
            console.print(part)
        text = stream.getvalue()
        assert "…" not in text
        for row in plans.plan("all"):
            assert row.op in text

    def test_progress_counts_every_row(self):
        seen: list[tuple[str, int, int]] = []
        result = comparison.Comparison(1, conditions.describe_machine())
        plan = plans.plan(["add", "sum"], [9], "float32")
        settings = make_settings("both", "default", 1, False)
        entrants = select(["numpy", "gpukern"])
        filling.fill(result, plan, entrants, settings, lambda *x: seen.append(x))
        *_, (last, done, total) = seen
        assert last == "done"
        assert done == total > len(result.rows)
        steps = [step for doing, step, _ in seen if not doing.startswith("loading")]
        assert steps == sorted(steps)
        assert any("gpukern f32x4" in doing for doing, _, _ in seen)


class TestTiming:
    def test_exactly_so_many_rounds(self):
        result = gpukern.compare("add", [8], None, ["numpy"], rounds=7)
        assert result.rows[0].end_to_end.rounds == 7

    def test_at_least_so_many_and_then_the_budget(self):
        effort = Effort(seconds=0.5, least=3)
        assert not effort.enough(2, 100.0)
        assert not effort.enough(3, 0.4)
        assert effort.enough(3, 0.6)
        assert effort.enough(10**6, 0.0)

    def test_the_device_clock_sees_the_work(self):
        a = _core.to_device(np.ones((64, 64), np.float32))
        out = _core.empty((64, 64))
        work = Work(lambda: _core.add(a, a, out=out))
        timer = DeviceTimer(MachineClock())
        sample = timer.sample(work, timer.pace(work))
        assert 0 < sample.warm < 1

    @pytest.mark.parametrize("size", [64, 1024])
    def test_a_result_of_any_bits_is_wrong_and_no_warning(self, size):
        bits = np.random.default_rng(1).integers(0, 2**32, (size, size), np.uint64)
        noise = bits.astype(np.uint32).view(np.float32)
        row = only_row("add", size, "float32", planted(lambda a, b: noise.copy()))
        assert row.status == WRONG, row.detail


class TestPeers:
    """The adapters beside gpukern's own, as far as a machine without them tells."""

    def test_cupy_is_called_as_numpy_is(self, monkeypatch):
        names = (*cases.OPERATIONS, "ascontiguousarray", "copyto", "linalg")

        def asarray(given: object) -> np.ndarray:
            """On the simulator device memory is the host's."""
            interface = getattr(given, "__cuda_array_interface__", None)
            if interface is None:
                return np.array(given)
            count = math.prod(interface["shape"]) * np.dtype(interface["typestr"]).itemsize
            raw = (ctypes.c_char * count).from_address(interface["data"][0])
            return np.frombuffer(raw, interface["typestr"]).reshape(interface["shape"])

        def asnumpy(given: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
            if out is None:
                return np.array(given)
            np.copyto(out, given)
            return out

        extras = types.ModuleType("cupyx")
        extras.empty_pinned = np.empty
        monkeypatch.setitem(sys.modules, "cupyx", extras)
        fake = types.ModuleType("cupy")
        vars(fake).update({name: getattr(np, name) for name in names if hasattr(np, name)})
        vars(fake).update(asnumpy=asnumpy, asarray=asarray)
        fake.ElementwiseKernel = lambda *_: np.add
        fake.cuda = types.SimpleNamespace(is_available=lambda: True)
        monkeypatch.setitem(sys.modules, "cupy", fake)
        monkeypatch.delitem(sys.modules, "gpukern.bench.contenders.cupy_", raising=False)
        adapter = importlib.import_module("gpukern.bench.contenders.cupy_")
        monkeypatch.delitem(sys.modules, "gpukern.bench.contenders.cupy_")
        if _core.backend() != "sim":
            pytest.skip("device memory is not the host's")
        for op in cases.OPERATIONS:
            peer = Peer("cupy", "CuPy", adapter.contenders, needs_gpu=False)
            result = gpukern.compare(op, [9], None, [peer], seed=SEED, rounds=1)
            assert {row.status for row in result.rows} == {"right"}, result.rows
            assert "pinned" in {row.variant for row in result.rows}


def test_offers_may_be_functions_or_names():
    def offer(op: str, dtype: str) -> Iterable[Contender]:
        return [Contender("a", op, np.add)]

    assert gather(Peer("a", "A", offer, needs_gpu=False), None, "add", "float32")
    assert gather(PEERS[0], None, "add", "float32")


def test_a_device_that_a_library_leaves_behind_is_not_the_comparisons(monkeypatch):
    """Of several GPUs JAX makes the last one current as it starts."""
    done: list[str] = []
    monkeypatch.setattr(registry._core, "make_current", lambda: done.append("chosen"))

    def offer(op: str, dtype: str) -> Iterable[Contender]:
        done.append("asked")
        raise RuntimeError("half started")

    gather(Peer("a", "A", offer, needs_gpu=False), None, "add", "float32")
    assert done == ["asked", "chosen"]
