"""The inputs and right answers of the operations that are compared, and who is fooled by them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import gpukern
from gpukern import _core
from gpukern.bench import rows
from gpukern.bench.cases import pieces
from gpukern.bench.cases.trials import make_trials
from gpukern.bench.checking.verdict import check
from gpukern.bench.contenders.registry import Peer
from gpukern.bench.model import case as cases
from gpukern.bench.model.case import make_case
from gpukern.bench.model.contender import Contender, DeviceSide
from gpukern.bench.model.intervals import Figure

pytestmark = pytest.mark.usefixtures("many_comparisons")

SEED = 20260102
SIZES = {"sum axis=0": (33, 70), "sum axis=1": (33, 70), "sum axis=0,1": (33, 70)}


def size_of(op: str) -> object:
    return SIZES.get(op, (33, 70) if cases.KINDS[op] in ("elementwise", "transpose") else 2001)


@pytest.mark.parametrize("op", [op for op in cases.OPERATIONS if op != "matmul"])
def test_numpy_is_right_on_every_dtype(op):
    """A third of them an operation, each time others."""
    first = list(cases.OPERATIONS).index(op) % 3
    for dtype in cases.DTYPES_OF[op][first::3]:
        result = gpukern.compare(op, [size_of(op)], dtype, ["numpy"], seed=SEED, rounds=1)
        assert {row.status for row in result.rows} == {"right"}, (dtype, result.rows)


@pytest.mark.parametrize("op", ["sum", "dot", "norm", "max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("missing", [1, 3, 64])
def test_a_skipped_tail_is_wrong(op, missing):
    function = np.linalg.norm if op == "norm" else getattr(np, op)
    case = make_case(op, 5001)
    exact = make_trials(case, SEED)[0]
    whole = check(np.asarray(function(*exact.inputs)), exact.expected)
    short = check(np.asarray(function(*(a[:-missing] for a in exact.inputs))), exact.expected)
    assert whole.right and not short.right


@pytest.mark.parametrize("op", ["sum axis=0", "sum axis=1"])
def test_one_wrong_element_of_a_sum_over_an_axis(op):
    for trial in make_trials(make_case(op, (300, 200)), SEED):
        got = np.sum(trial.inputs[0], axis=int(op[-1]))
        assert check(got, trial.expected).right
        got[7] *= np.float32(1.01)
        found = check(got, trial.expected)
        assert not found.right and "[7]" in found.detail


@pytest.mark.parametrize("op", ["dot", "norm"])
def test_one_of_the_two_inputs_tells_a_narrow_sum(op):
    """The bound of random inputs is that of the worst case; the whole numbers are exact."""
    right = []
    for trial in make_trials(make_case(op, 2**16), SEED):
        narrow = np.float16(0)
        with np.errstate(over="ignore"):
            for a, b in zip(trial.inputs[0], trial.inputs[-1], strict=True):
                narrow += np.float16(a) * np.float16(b)
        got = np.asarray(np.sqrt(narrow) if op == "norm" else narrow, np.float32)
        right.append(check(got, trial.expected).right)
    assert not all(right)


def test_bytes_of_a_sum_over_an_axis():
    assert make_case("sum axis=0", (100, 30)).bytes_moved == 4 * (3000 + 30)
    assert make_case("sum axis=1", (100, 30), "int32").bytes_moved == 4 * 3000 + 8 * 100
    assert make_case("argmax", 10).bytes_moved == 48
    assert make_case("dot", 10).bytes_moved == 84


@pytest.mark.parametrize(("op", "size"), [("dot", (2, 3)), ("sum axis=0", (2, 3, 4))])
def test_sizes_that_do_not_fit(op, size):
    with pytest.raises(ValueError, match=op):
        make_case(op, size)


def test_each_trial_is_shown():
    """The one that is timed carries the proof; of the others one is positive."""
    seen: list[np.ndarray] = []

    def told(a: np.ndarray) -> np.float32:
        seen.append(a.copy())
        return np.sum(a)

    gpukern.compare("sum", [500], None, [told], seed=SEED, rounds=1)
    kinds = [seen[0]]
    for one in seen:
        if np.mean(one == kinds[-1]) < 0.9:
            kinds.append(one)
    assert [bool((one > 0).all()) for one in kinds] == [False, False, True, False]
    assert np.mean(kinds[0] == kinds[-1]) > 0.9


def test_pieces_cover_every_element_once(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 10)
    a, out = np.arange(95), np.zeros(95, np.int64)
    lengths = pieces.in_pieces(lambda x, y: (np.copyto(y, x), x.size)[1], a, out)
    assert lengths == [10] * 9 + [5]
    assert np.array_equal(a, out)
    drawn, again = np.zeros(95, np.int64), np.zeros(95, np.int64)
    for one in (drawn, again):
        rng = np.random.default_rng(1)
        pieces.fill(rng, lambda g, x: np.copyto(x, g.integers(0, 99, x.size)), one)
    assert np.array_equal(drawn, again)
    assert len({tuple(drawn[i : i + 10]) for i in range(0, 90, 10)}) == 9


def test_large_arrays_are_judged_in_pieces(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 100)
    for op, dtype in (("add", "float32"), ("add", "bfloat16"), ("sum", "float16"), ("dot", None)):
        result = gpukern.compare(op, [size_of(op)], dtype, ["numpy"], seed=SEED, rounds=1)
        assert {row.status for row in result.rows} == {"right"}
    trial = make_trials(make_case("add", (33, 70)), SEED)[0]
    wrong = trial.expected.nearest.copy()
    wrong[20, 3] += 1
    found = check(wrong, trial.expected)
    assert "1 of 2310 elements, the first at [20, 3]" in found.detail
    assert found.error == pytest.approx(1)


def planted(name: str, variant: str, side: DeviceSide, host: object = np.add) -> Peer:
    def offer(op: str, dtype: str) -> Iterator[Contender]:
        yield Contender(name, variant, host, side)

    return Peer(name, name, offer, needs_gpu=False)


def on_device(times: int = 1) -> DeviceSide:
    def run(inputs: object, out: object) -> None:
        for _ in range(times):
            _core.add(*inputs, out=out)

    return DeviceSide(_core.to_device, run, _core.DeviceArray.to_host, lambda memory: memory)


def test_the_device_alone_is_examined_where_it_alone_is_timed():
    def never(*arrays: object) -> object:
        raise AssertionError("called from the host")

    peer = planted("planted", "v", on_device(), never)
    (row,) = gpukern.compare("add", [65], None, [peer], "device", seed=SEED, rounds=1).rows
    assert row.status == "right", row.detail
    (row,) = gpukern.compare("add", [65], None, [peer], "both", seed=SEED, rounds=1).rows
    assert row.status == "broken"
    broken = planted("planted", "v", DeviceSide(None, lambda i, o: None, None, lambda m: m))
    (row,) = gpukern.compare("add", [65], None, [broken], "device", seed=SEED, rounds=1).rows
    assert row.status == "WRONG" and "never writes its output" in row.detail


def test_the_fastest_of_the_others_is_the_baseline():
    peers = [planted("slow", "v", on_device(40)), planted("quick", "v", on_device())]
    result = gpukern.compare(
        *("add", [64], "float32", [*peers, "gpukern"], "device"),
        baseline=rows.FASTEST_PEER,
        rounds=5,
        simulated=True,
    )
    slow, quick, *ours = result.rows
    assert quick.device_ratio is None
    assert slow.device_ratio.value < 0.5
    assert all(isinstance(row.device_ratio, Figure) for row in ours)
