"""Ways to look faster on the device, among many calls between events, and each of them caught.

The simulator's memory is the host's, and the clock is made up: so all that a GPU's timing does is
done here, with up to 64 calls a sample.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

import gpukern
from arrays import as_host
from clocks import US, MadeUpClock
from gpukern import _core
from gpukern.bench import filling
from gpukern.bench.checking import regions
from gpukern.bench.contenders.registry import Peer
from gpukern.bench.model.case import make_case
from gpukern.bench.model.contender import Contender, DeviceSide
from gpukern.bench.model.row import Row
from gpukern.bench.model.settings import Effort, Settings
from gpukern.machine import conditions

pytestmark = [
    pytest.mark.skipif(
        "_core.backend() != 'sim'", reason="reaches into device memory from the host"
    ),
    pytest.mark.usefixtures("many_comparisons"),
]

_RIGHT = {"add": np.add, "sum": np.sum, "matmul": np.matmul, "transpose": _core.transpose}


def row_of(op: str, size: object, run: Callable, seconds: float = 5 * US, **more: object) -> Row:
    """The row of one contender, on the device alone, whose work takes that long."""
    clock = MadeUpClock()

    def timed(inputs: object, out: object) -> object:
        clock.launch(seconds)
        return run(inputs, out)

    side = DeviceSide(_core.to_device, timed, _core.DeviceArray.to_host, lambda memory: memory)
    peer = Peer("one", "one", lambda o, d: [Contender("one", "v", _RIGHT[op], side, **more)],
                needs_gpu=False)  # fmt: skip
    result = gpukern.Comparison(11, conditions.describe_machine())
    settings = Settings(mode="device", effort=Effort(rounds=12))
    filling.fill(result, [make_case(op, size)], [(peer, None)], settings, clock=clock)
    return result.rows[0]


def right(op: str, inputs: object, out: object) -> None:
    getattr(_core, op)(*inputs, out=out)


def kept_by(key: Callable) -> Callable:
    def maker(op: str) -> Callable:
        kept: dict = {}

        def run(inputs: object, out: object) -> None:
            mine = key(*map(as_host, inputs))
            if mine in kept:
                as_host(out)[...] = kept[mine]
                return
            right(op, inputs, out)
            kept[mine] = as_host(out).copy()

        return run

    return maker


def works_when(condition: Callable[[int, np.ndarray], bool]) -> Callable:
    """Leaves in its output what is there in the other calls."""

    def maker(op: str) -> Callable:
        calls: list[int] = []

        def run(inputs: object, out: object) -> None:
            calls.append(1)
            if condition(len(calls), as_host(out)):
                right(op, inputs, out)

        return run

    return maker


def afterwards(spoil: Callable) -> Callable:
    """The right work, and then something else."""

    def maker(op: str) -> Callable:
        def run(inputs: object, out: object) -> None:
            right(op, inputs, out)
            spoil([as_host(one).reshape(-1) for one in inputs], as_host(out).reshape(-1), out)

        return run

    return maker


def beside(offset: int) -> Callable:
    def spoil(inputs: object, out: np.ndarray, memory: object) -> None:
        pointer = memory.__cuda_array_interface__["data"][0]
        ctypes.memset(pointer + (out.nbytes if offset >= 0 else offset), 7, 2)

    return spoil


def restoring(op: str) -> Callable:
    kept: list = []

    def run(inputs: object, out: object) -> None:
        flat = as_host(inputs[0]).reshape(-1)
        if kept:
            flat[5] = kept.pop()
        right(op, inputs, out)
        kept.append(flat[5])
        flat[5] = 0

    return run


def put(at: object, value: float) -> Callable:
    def spoil(inputs: object, out: np.ndarray, memory: object) -> None:
        out[at] = value

    return spoil


def one_element(inputs: object, out: np.ndarray, memory: object) -> None:
    out[np.random.default_rng().integers(out.size)] += 1


def into_input(inputs: list, out: np.ndarray, memory: object) -> None:
    inputs[0][3] += 1


CHEATERS = [
    ("nothing after the first call", "add", works_when(lambda n, out: n == 1)),
    ("nothing once it was examined", "add", works_when(lambda n, out: n <= 12)),
    ("every second call", "add", works_when(lambda n, out: n % 2 == 0)),
    ("most calls", "sum", works_when(lambda n, out: n % 10 == 0)),
    ("only on poison", "add", works_when(lambda n, out: bool(np.isnan(out).any()))),
    ("only on poison, a product", "matmul", works_when(lambda n, out: bool(np.isnan(out).all()))),
    ("kept by place", "matmul", kept_by(lambda *x: x[0].ctypes.data)),
    ("kept by the first elements", "add", kept_by(lambda *x: x[0].reshape(-1)[:10].tobytes())),
    ("kept by a sample", "sum", kept_by(lambda a: a[::7].tobytes())),
    ("kept by a rough sum", "transpose", kept_by(lambda a: round(float(a.sum()), -3))),
    ("before its output", "add", afterwards(beside(-2))),
    ("after its output", "sum", afterwards(beside(0))),
    ("skips the last", "add", afterwards(put(-1, 0))),
    ("one wrong element", "transpose", afterwards(one_element)),
    ("always 0", "sum", afterwards(put(0, 0))),
    ("spoils its input", "add", afterwards(into_input)),
    ("restores its input later", "add", restoring),
]


@pytest.mark.parametrize("seconds", [5 * US, 3e-3])
@pytest.mark.parametrize(("name", "op", "maker"), CHEATERS, ids=[one[0] for one in CHEATERS])
def test_a_cheater_is_caught(name, op, maker, seconds):
    row = row_of(op, 2000 if op == "sum" else 40, maker(op), seconds)
    assert row.status == "WRONG", name
    assert row.on_device is None and "on the device" in row.detail


@pytest.mark.parametrize("op", _RIGHT)
def test_an_honest_one_is_timed(op):
    row = row_of(op, 2000 if op == "sum" else 40, lambda inputs, out: right(op, inputs, out))
    assert row.status == "right", row.detail
    assert row.on_device.value == pytest.approx(5 * US)
    assert row.on_device.rounds == 12


def test_one_that_returns_its_result_is_looked_at_too():
    def adds(inputs: object, out: object) -> object:
        return _core.add(*map(as_host, inputs))

    def returned(change: float) -> Callable:
        calls: list[int] = []

        def run(inputs: object, out: object) -> object:
            calls.append(1)
            made = _core.to_device(adds(inputs, out))
            if change and len(calls) > 12:
                made[0, 0] = change
            return made

        return run

    assert row_of("add", 40, returned(0.0)).status == "right"
    assert row_of("add", 40, returned(9.0)).status == "WRONG"


def test_one_that_reuses_its_result_says_so():
    kept: list = []

    def run(inputs: object, out: object) -> object:
        if not kept:
            kept.append(_core.empty(out.shape, "float32"))
        _core.add(*inputs, out=kept[0])
        return kept[0]

    assert row_of("add", 40, run, reuses=True).status == "right"
    assert row_of("add", 40, run).status == "WRONG"


@pytest.mark.parametrize("dtype", ["float16", "int8", "float64", "bfloat16"])
def test_regions_are_compared_word_by_word(dtype):
    region = regions.Region((5, 3), dtype)
    values = np.arange(15).reshape(5, 3).astype(regions.numpy_dtype(dtype))
    image = region.image(values)
    region.put(image)
    for same in (regions.same_cells, regions.same_on_device):
        assert same(region.cells, image)
        for at in (0, region.cells.size // 2, region.cells.size - 1):
            region.cells[at] = 1
            assert not same(region.cells, image)
            region.put(image)
    assert region.guards() == "" and np.array_equal(region.read(), values)
    region.cells[region.cells.size - 1] = 1
    assert "after its output" in region.guards()
