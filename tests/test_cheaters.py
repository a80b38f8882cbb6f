"""Ways to look faster than one is, each of them caught and named."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import gpukern
from arrays import as_host
from cheaters import CHEATERS, HONEST
from gpukern import _core
from gpukern.bench.clock import device as clock
from gpukern.bench.contenders.registry import REGISTERED, Peer
from gpukern.bench.model import row as rows
from gpukern.bench.model.contender import Contender, DeviceSide
from gpukern.bench.model.limits import Limits
from gpukern.machine.inventory import installed
from waiting import join_all

pytestmark = pytest.mark.usefixtures("many_comparisons")

SEED = 20260102


def compared(op: str, size: object, function: Callable, dtype: str = "float32", **more: object):
    """The row of one contender that takes NumPy arrays."""
    named = {"seed": SEED, "rounds": 2, **more}
    result = gpukern.compare(op, [size], dtype, [function], **named)
    return result.rows[0]


def on_device(op: str, size: object, run: Callable, wrap: Callable | None, **more: object):
    """The row of one contender whose fault is on the device alone."""
    side = DeviceSide(_core.to_device, run, _core.DeviceArray.to_host, wrap)
    return row_of(op, size, side, **more)


def row_of(op: str, size: object, side: DeviceSide, **more: object):
    """The row of one contender that is NumPy from end to end."""
    right = {"add": np.add, "matmul": np.matmul, "sum": np.sum}[op]

    def offer(wanted: str, dtype: str) -> Iterator[Contender]:
        yield Contender("cheater", "v", right, side)

    peer = Peer("cheater", "cheater", offer, needs_gpu=False)
    names = {"simulated": True, "seed": SEED, "rounds": 2, **more}
    return gpukern.compare(op, [size], "float32", [peer], **names).rows[0]


def assert_named(row: rows.Row, *words: str) -> None:
    assert row.status == rows.WRONG, row
    assert row.end_to_end is None and row.on_device is None
    for word in words:
        assert word in row.detail


simulator_only = pytest.mark.skipif(
    "_core.backend() != 'sim'", reason="reaches into device memory from the host"
)


class TestCachedOutput:
    def test_by_the_identity_of_its_inputs(self):
        kept: dict[tuple[int, int], np.ndarray] = {}

        def cached(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return kept.setdefault((id(a), id(b)), a + b)

        assert_named(compared("add", 50, cached), "cached result")

    def test_of_a_sum(self):
        kept: list[np.float32] = []

        def cached(a: np.ndarray) -> np.float32:
            kept.append(np.sum(a))
            return kept[0]

        assert_named(compared("sum", 1000, cached), "cached result")

    def test_only_once_it_is_timed(self):
        calls: list[np.ndarray] = []

        def cached(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            calls.append(a + b)
            return calls[-1] if len(calls) <= 2 else calls[2]

        assert_named(compared("add", 50, cached), "timed")

    def test_on_the_device_by_not_working_at_all(self):
        calls: list[int] = []

        def run(inputs: object, out: object) -> None:
            calls.append(1)
            if len(calls) <= 2:
                _core.add(*inputs, out=out)

        row = on_device("add", 50, run, lambda memory: memory)
        assert_named(row, "timed", "on the device", "never writes its output")

    @pytest.mark.parametrize("op", ["max", "min", "argmax", "argmin"])
    def test_of_the_places_where_the_first_ones_were(self, op):
        """Whoever looks at these alone misses others that have changed."""
        places: list[np.ndarray] = []
        sign = 1 if op.endswith("max") else -1

        def remembers(a: np.ndarray) -> object:
            flat = sign * a.reshape(-1)
            if not places:
                best = np.argpartition(-flat, 70)[:70]
                places.append(np.unique(np.append(best, flat.size - 1)))
            here = places[0]
            chosen = int(np.argmax(flat[here]))
            return np.int64(here[chosen]) if "arg" in op else a.reshape(-1)[here[chosen]]

        row = compared(op, 5000, remembers, rounds=60)
        assert row.status == rows.WRONG, row


class TestSkippedTail:
    def test_of_an_add(self):
        def skipping(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            out = a + b
            out.reshape(-1)[-7:] = 0
            return out

        assert_named(compared("add", (33, 65), skipping), "skips the tail: the last 7 elements")

    def test_of_a_sum(self):
        row = compared("sum", 2**16 - 5, lambda a: np.sum(a[:-3]))
        assert_named(row, "skips the tail: the last 3 elements")

    @simulator_only
    def test_on_the_device(self):
        def run(inputs: object, out: object) -> None:
            a, b, result = (as_host(x).reshape(-1) for x in (*inputs, out))
            whole = result.size // 4 * 4
            result[:whole] = (a + b)[:whole]

        row = on_device("add", (33, 65), run, lambda memory: memory)
        assert_named(row, "on the device", "skips the tail: the last 1 elements")


class TestLowerPrecision:
    @staticmethod
    def tf32(values: np.ndarray) -> np.ndarray:
        bits = values.view(np.uint32) + np.uint32(0x1000)
        return (bits & np.uint32(0xFFFFE000)).view(np.float32)

    def test_tf32_for_float32(self):
        row = compared("matmul", 96, lambda a, b: self.tf32(a) @ self.tf32(b))
        assert_named(row, "lower precision: tf32 in place of float32")

    def test_tf32_by_rounding_to_even(self):
        def even(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            bits = (one.view(np.uint32) for one in (a, b))
            kept = (x + np.uint32(0xFFF) + (x >> np.uint32(13) & np.uint32(1)) for x in bits)
            x, y = ((one & np.uint32(0xFFFFE000)).view(np.float32) for one in kept)
            return x @ y

        assert_named(compared("matmul", 96, even), "tf32 in place of float32")

    def test_tf32_by_truncation(self):
        def truncated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            mask = np.uint32(0xFFFFE000)
            x, y = ((one.view(np.uint32) & mask).view(np.float32) for one in (a, b))
            return x @ y

        assert_named(compared("matmul", 96, truncated), "tf32 in place of float32")

    def test_zeros_are_nobodys_rounding(self):
        row = compared("add", 50, lambda a, b: np.zeros_like(a))
        assert row.status == rows.WRONG
        assert "precision" not in row.detail

    def test_float16_for_float32(self):
        def halves(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            with np.errstate(all="ignore"):
                return a.astype("f2").astype("f4") @ b.astype("f2").astype("f4")

        assert_named(compared("matmul", 96, halves))

    def test_float32_for_float64(self):
        def narrow(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return (a.astype("f4") @ b.astype("f4")).astype("f8")

        row = compared("matmul", 64, narrow, "float64")
        assert_named(row, "lower precision")

    @pytest.mark.skipif(
        "_core.backend() == 'sim' or not installed('torch')", reason="needs a GPU and PyTorch"
    )
    def test_tensor_cores_of_a_real_device(self):
        import torch

        def run(inputs: object, out: object) -> None:
            before = torch.backends.cuda.matmul.allow_tf32
            torch.backends.cuda.matmul.allow_tf32 = True
            torch.matmul(*inputs, out=out)
            torch.backends.cuda.matmul.allow_tf32 = before

        row = on_device("matmul", 512, run, lambda memory: torch.as_tensor(memory, device="cuda"))
        assert_named(row, "on the device", "lower precision")


def test_a_narrow_accumulator_that_is_declared_is_shown_and_judged_by_its_own_bound():
    def halves(a: np.ndarray) -> np.float16:
        parts = np.pad(a.reshape(-1), (0, -a.size % 8)).reshape(8, -1)
        total = np.zeros(8, np.float16)
        for column in parts.T:
            total += column
        return total.sum(dtype=np.float16)

    def offer(op: str, dtype: str, carried: str) -> Iterator[Contender]:
        yield Contender("halves", "v", halves, carried=carried)

    for carried, status in (("float16", rows.RIGHT), ("", rows.WRONG)):
        peer = Peer("h", "h", lambda o, d, c=carried: offer(o, d, c), needs_gpu=False)
        result = gpukern.compare("sum", [2000], "float16", [peer], seed=SEED, rounds=1)
        assert result.rows[0].status == status, result.rows[0]
        assert ("carried in float16" in str(result)) is (carried != "")


class TestNoSynchronization:
    def test_a_lazy_result_is_made_real_in_the_time(self):
        class Lazy:
            def __init__(self, *arrays: np.ndarray) -> None:
                self.arrays = arrays

            def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
                time.sleep(0.01)
                return np.add(*self.arrays)

        row = compared("add", 10, Lazy)
        assert row.status == rows.RIGHT
        assert row.end_to_end.value >= 0.01

    def test_a_thread_that_is_not_waited_for_is_wrong(self):
        threads: list[threading.Thread] = []

        def hasty(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            out = np.zeros_like(a)

            def work() -> None:
                time.sleep(0.02)
                np.add(a, b, out=out)

            threads.append(threading.Thread(target=work))
            threads[-1].start()
            return out

        row = compared("add", 10, hasty)
        join_all(*threads)
        assert_named(row)

    @pytest.mark.skipif(
        "_core.backend() == 'sim' or not installed('torch')", reason="needs a GPU and PyTorch"
    )
    @pytest.mark.parametrize("size", [256, 4096])
    def test_a_stream_of_its_own_is_noticed(self, size):
        import torch

        from gpukern.bench.contenders import torch_

        stream = torch.cuda.Stream()

        def run(inputs: object, out: object) -> None:
            stream.wait_stream(torch.cuda.current_stream())  # which brings the inputs
            with torch.cuda.stream(stream):
                torch.add(*inputs, out=out)

        def fetch(out: object) -> object:
            stream.synchronize()  # its values are right, its time is what is looked at
            return torch_.fetch(out)

        row = row_of("add", size, DeviceSide(torch_.load, run, fetch, torch_.wrap))
        if row.status == rows.WRONG:  # on a GPU that is busy its results may come too late
            assert_named(row)
            return
        assert any("stream of its own" in flag for flag in row.flags)
        least = row.bytes_moved / 20e12
        assert row.on_device.value > max(least, clock._SHORTEST)


class TestL2Resident:
    def test_above_the_copy_bandwidth_is_flagged(self):
        known = Limits(1e12, 1.2e12, {"float32": 50e12})
        assert known.excess(10**6, 0, "float32", 2e-6) == ""
        assert "above the copy bandwidth" in known.excess(10**6, 0, "float32", 0.5e-6)
        assert "above the peak of float32" in known.excess(10**6, 10**9, "float32", 1e-5)

    @pytest.mark.skipif("_core.backend() == 'sim'", reason="the simulator has no L2 cache")
    def test_on_a_real_device_the_cold_time_is_not_fooled(self):
        cache = dict(_core.devices()[0]["attributes"])["L2_CACHE_SIZE"]
        columns = max(1, cache // 4 // 12 // 1024)
        result = gpukern.compare(
            "add", [(1024, columns)], "float32", ["gpukern:f32x4"], mode="device", rounds=8
        )
        (row,) = result.rows
        assert not [flag for flag in row.flags if flag.startswith("cold")]
        # The caches are several times as fast as memory: what is as fast as warm is not cold.
        assert row.on_device.value > 1.3 * row.warm.value


class TestOutOfBounds:
    @simulator_only
    @pytest.mark.parametrize(("first", "where"), [(-3, "before"), (0, "after")])
    def test_canaries(self, first, where):
        def run(inputs: object, out: object) -> None:
            _core.add(*inputs, out=out)
            pointer = out.__cuda_array_interface__["data"][0]
            start = pointer + first if first else pointer + out.nbytes
            ctypes.memset(start, 0, 3)

        row = on_device("add", 50, run, lambda memory: memory)
        assert_named(row, f"writes out of bounds: 3 bytes {where} its output")

    def test_one_element_too_many(self):
        """The same through a kernel, so that it runs on the GPU too."""
        from gpukern.bench.checking.regions import Memory

        def run(inputs: object, out: object) -> None:
            count = int(np.prod(out.shape))
            longer = [Memory(x.pointer, (count + 1,), "<f4") for x in (*inputs, out)]
            _core.add(*longer[:2], out=longer[2])

        row = on_device("add", 50, run, lambda memory: memory)
        assert_named(row, "writes out of bounds", "after its output")


class Late:
    """Has its result asked for twice: within the time there is an array, and after it a product."""

    def __init__(self, a: np.ndarray, b: np.ndarray) -> None:
        self.inputs, self.out, self.looks = (a, b), np.empty((len(a), b.shape[1]), a.dtype), 0

    def __getattr__(self, name: str) -> Callable:
        if name != "__array__":
            raise AttributeError(name)
        self.looks += 1
        if self.looks > 1:
            np.matmul(*self.inputs, out=self.out)
        return lambda dtype=None, copy=None: self.out


class TestWorkAfterTheTime:
    def test_when_the_result_is_asked_what_it_is(self):
        assert_named(compared("matmul", 40, Late), "returns a Late in place of an array")

    @pytest.mark.parametrize("way", [sys.setprofile, sys.settrace])
    def test_when_python_tells_of_the_check(self, way):
        made: list[tuple[np.ndarray, ...]] = []

        def fills(frame: object, event: str, argument: object) -> None:
            while made:
                a, b, out = made.pop()
                np.matmul(a, b, out=out)

        def told(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            out = np.empty((len(a), b.shape[1]), a.dtype)
            made.append((a, b, out))
            way(fills)
            return out

        before = sys.getprofile(), sys.gettrace()
        row = compared("matmul", 40, told)
        assert_named(row, "has itself told of every call")
        assert (sys.getprofile(), sys.gettrace()) == before

    def test_a_profiler_that_was_there_before_is_no_fault(self):
        before = sys.getprofile()
        sys.setprofile(lambda *event: None)
        try:
            row = compared("add", 20, lambda a, b: a + b)
        finally:
            sys.setprofile(before)
        assert row.status == rows.RIGHT, row.detail


@pytest.mark.parametrize("way", ["shape", "writeable"])
def test_what_becomes_of_an_input_is_nobody_elses(way):
    def spoils(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if way == "shape":
            with warnings.catch_warnings(action="ignore"):  # of NumPy, which will have it no more
                a.shape = (a.size,)
            return (a + b.reshape(-1)).reshape(b.shape)
        a.flags.writeable = False
        return a + b

    result = gpukern.compare("add", [20], None, ["numpy", spoils], rounds=2, mode="end-to-end")
    assert {row.status for row in result.rows} == {rows.RIGHT}, result


class TestOverwrittenInput:
    def test_on_the_host(self):
        def in_place(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            a += b
            return a.copy()

        assert_named(compared("add", 20, in_place), "overwrites its input")

    def test_on_the_device(self):
        def run(inputs: object, out: object) -> None:
            _core.add(*inputs, out=out)
            _core.add(*inputs, out=inputs[0])

        row = on_device("add", 20, run, lambda memory: memory)
        assert_named(row, "on the device", "writes into its input")


def test_a_decorated_function_takes_part():
    @gpukern.contender("add")
    def mine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a + b

    @gpukern.contender("add", "mine on the device", device=True)
    def also(a: object, b: object, out: object) -> None:
        _core.add(a, b, out=out)

    try:
        result = gpukern.compare("add", [30], None, ["mine", "mine on the device"], rounds=1)
        assert [row.contender for row in result.rows] == ["mine", "mine on the device"]
        assert {row.status for row in result.rows} == {rows.RIGHT}
        assert "mine" in str(gpukern.compare("add", [30], rounds=1))
        assert "mine" not in str(gpukern.compare("sum", [30], rounds=1))
    finally:
        REGISTERED.clear()
    with pytest.raises(ValueError, match="unknown operation"):
        gpukern.contender("divide")
    assert installed("numpy")


SIZES = {
    "small": {"matmul": 48, "add": (33, 65), "multiply": (33, 65), "transpose": (33, 65)},
    "large": {"matmul": 256, "add": 1024, "multiply": 1024, "transpose": 1024},
}


def size_of(op: str, size: str) -> object:
    return SIZES[size].get(op, 2000 if size == "small" else 2**20)


def named(cases: list) -> list:
    return [pytest.param(*case[1:], id=f"{case[0]}, {case[1]} {case[2]}") for case in cases]


@pytest.mark.parametrize("size", SIZES)
class TestManyKinds:
    @pytest.mark.costly(2)
    @pytest.mark.parametrize(("op", "dtype", "maker", "words"), named(CHEATERS))
    def test_a_cheater_is_caught(self, size, op, dtype, maker, words):
        counter = time.perf_counter
        # So many rounds that what works in most of its calls is called often enough.
        row = compared(op, size_of(op, size), maker(op), dtype, mode="end-to-end", rounds=16)
        assert_named(row, words)
        assert time.perf_counter is counter

    @pytest.mark.costly(2)
    @pytest.mark.parametrize(("op", "dtype", "maker"), named(HONEST))
    def test_an_honest_one_is_not_accused(self, size, op, dtype, maker):
        row = compared(op, size_of(op, size), maker(op), dtype, mode="end-to-end")
        assert row.status == rows.RIGHT, row.detail
        if op in ("sum", "dot", "norm", "matmul"):
            assert row.bound_share < 1
