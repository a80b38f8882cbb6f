"""Graphs: every operation captured on streams of ours, of PyTorch's and of CuPy's, and launched
with new inputs. What has to happen in which order is tested without a GPU in test_streams.py."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, on_gpu, random, settled
from gpukern import _core

SHAPE = (96, 96)


@dataclass
class Case:
    """How many arrays an operation takes after its numbers, and what NumPy makes of them."""

    count: int
    reference: Callable[..., Any]
    numbers: tuple[float, ...] = ()
    shape: tuple[int, ...] = SHAPE


OPERATIONS = {
    **{name: Case(2, getattr(np, name)) for name in ("add", "subtract", "multiply", "divide")},
    **{name: Case(2, getattr(np, name)) for name in ("maximum", "minimum", "matmul")},
    **{name: Case(1, getattr(np, name)) for name in ("negative", "abs", "sqrt", "exp")},
    **{name: Case(1, getattr(np, name)) for name in ("sum", "mean", "max", "min", "prod")},
    **{name: Case(1, getattr(np, name)) for name in ("argmax", "argmin", "transpose")},
    "matrix_transpose": Case(1, np.transpose),
    "norm": Case(1, np.linalg.norm),
    "dot": Case(2, np.dot, shape=(1000,)),
    "scale_add": Case(2, lambda x, y: 2 * x + y, (2.0,)),
}
OPERATIONS = {name: case for name, case in OPERATIONS.items() if hasattr(gk, name)}


def variants():
    """Every variant for float32 that runs here, of the operations above."""
    rows = [row for row in _core.rows() if row["runs"] and row["op"] in OPERATIONS]
    names = [(row["op"], row["variant"]) for row in rows if row["dtype"] in ("float32", "bits32")]
    return [(op, None) for op in OPERATIONS] + list(dict.fromkeys(names))


def small_integers(seed, shape=SHAPE):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


class Ours:
    """Arrays and graphs of gpukern."""

    def array(self, values):
        return gk.to_device(values)

    def fill(self, array, values):
        gk.multiply(values, 1.0, out=array)
        gk.synchronize()

    def read(self, array):
        return array.to_host()

    def capture(self, work):
        stream = gk.Stream()
        gk.synchronize()
        stream.begin_capture()
        try:
            result = work(stream)
        finally:
            graph = stream.end_capture()

        def launch():
            graph.launch()
            stream.synchronize()

        return result, launch


class Torch:
    """Arrays and graphs of PyTorch."""

    def __init__(self):
        self.torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    def array(self, values):
        return self.torch.tensor(values, device="cuda")

    def fill(self, array, values):
        array.copy_(self.torch.tensor(values))

    def read(self, array):
        return array.cpu().numpy()

    def capture(self, work):
        """What work(stream) gave, and a function that launches what it did."""
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            result = work(self.torch.cuda.current_stream())

        def launch():
            graph.replay()
            self.torch.cuda.synchronize()

        return result, launch


class Cupy:
    """Arrays and graphs of CuPy, whose stream waits for the legacy default one or does not."""

    def __init__(self, non_blocking):
        self.cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
        self.non_blocking = non_blocking

    def array(self, values):
        return self.cupy.asarray(values)

    def fill(self, array, values):
        array.set(values)
        self.cupy.cuda.Device().synchronize()

    def read(self, array):
        return self.cupy.asnumpy(array)

    def capture(self, work):
        stream = self.cupy.cuda.Stream(non_blocking=self.non_blocking)
        self.cupy.cuda.Device().synchronize()
        with stream:
            stream.begin_capture()
            try:
                result = work(stream)
            finally:
                graph = stream.end_capture()

        def launch():
            graph.launch(stream)
            stream.synchronize()

        return result, launch


LIBRARIES = {
    "gpukern": Ours,
    "torch": Torch,
    "cupy": lambda: Cupy(False),
    "cupy non-blocking": lambda: Cupy(True),
}


@pytest.fixture(params=LIBRARIES if on_gpu() else ["gpukern"])
def library(request):
    made = LIBRARIES[request.param]()
    made.name = request.param
    return made


@pytest.mark.parametrize(("op", "variant"), variants())
@pytest.mark.parametrize("out", [False, True], ids=["new", "out"])
def test_every_operation_is_captured_and_launched(op, variant, out, library):
    case = OPERATIONS[op]
    values = [small_integers(i, case.shape) for i in range(case.count)]
    operands = [library.array(each) for each in values]
    with np.errstate(all="ignore"):
        like = np.asarray(case.reference(*values))
    target = library.array(np.zeros_like(like)) if out else None

    def work(stream):
        function = getattr(gk, op)
        return function(*case.numbers, *operands, out=target, variant=variant, stream=stream)

    result, launch = library.capture(work)
    for turn in range(3):
        values = [small_integers(10 * turn + i, case.shape) for i in range(case.count)]
        for operand, new in zip(operands, values, strict=True):
            library.fill(operand, new)
        launch()
        got = library.read(target) if out else result.to_host()
        with np.errstate(all="ignore"):
            want = case.reference(*values)
        np.testing.assert_allclose(got, want, 1e-6, err_msg=f"{op} {variant}, launch {turn}")


def test_a_chain_with_arrays_of_its_own(library):
    """Results of the graph are operands in it; they live as long as it does, held or not."""
    x = library.array(small_integers(1))

    def work(stream):
        doubled = gk.add(x, x, stream=stream)
        product = gk.matmul(doubled, x, stream=stream)
        return gk.sum(gk.add(product, doubled, stream=stream), stream=stream)

    result, launch = library.capture(work)
    gc.collect()
    filler = [gk.to_device(np.full(SHAPE, np.nan, np.float32)) for _ in range(20)]
    for turn in range(3):
        a = small_integers(turn + 5)
        library.fill(x, a)
        launch()
        want = np.sum((2.0 * a) @ a + 2 * a, dtype=np.float64)
        assert result.to_host() == want
    assert len(filler) == 20


def test_what_is_being_captured_has_no_values():
    """Whoever reads it is told, and the capture goes on."""
    x, stream, other = gk.to_device(small_integers(1)), gk.Stream(), gk.Stream()
    stream.begin_capture()
    made = gk.add(x, x, stream=stream)
    total = gk.sum(made, stream=stream)
    for read in (
        made.to_host,
        total.item,
        made[0].tolist,
        lambda: bool(total > 1),
        lambda: np.asarray(made.T),
        lambda: made.__dlpack__(dl_device=(1, 0)),
        lambda: made + 1,
        lambda: gk.add(x, made, stream=other),
        lambda: gk.to_device(made),
        lambda: gk.add(np.float32(1), total),
    ):
        with pytest.raises(ValueError, match="being captured in a CUDA graph"):
            read()
    assert repr(made) == f"DeviceArray(<being captured>, shape={made.shape}, dtype=float32)"
    graph = stream.end_capture()
    graph.launch()
    np.testing.assert_array_equal(made.to_host(), 2 * small_integers(1))
    assert (made + 1)[0, 0].item() == 2 * small_integers(1)[0, 0] + 1
    stream.begin_capture()  # another one, which these are not made by
    twice = gk.add(total, total, stream=stream)
    if not on_gpu():  # whose driver refuses to wait for anything meanwhile
        assert total.item() == 2 * small_integers(1).sum()
    stream.end_capture().launch()
    assert twice.item() == 4 * small_integers(1).sum()


@pytest.mark.skipif(not on_gpu(), reason="needs a GPU")
def test_calls_side_by_side_have_memory_of_their_own():
    """Of two streams of one capture, and of several calls of each: all of turned arrays, which are
    copied first."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    arrays = [gk.to_device(small_integers(k, (2000, 400))) for k in range(8)]
    totals = [gk.empty((), "float32") for _ in arrays]
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, capture_error_mode="relaxed"):
        main = torch.cuda.current_stream()
        side.wait_stream(main)
        for array, total, k in zip(arrays, totals, range(8), strict=True):
            gk.sum(array.T, out=total, stream=(main, side)[k % 2])
        main.wait_stream(side)
    for turn in range(20):
        for k, array in enumerate(arrays):
            array[...] = turn + k
        gk.synchronize()
        graph.replay()
        torch.cuda.synchronize()
        assert [total.item() for total in totals] == [array.size * (turn + k) for k in range(8)]


def test_a_launch_is_in_order_with_what_comes_before_and_after_it():
    x, y, stream = gk.to_device(small_integers(1)), gk.to_device(small_integers(2)), gk.Stream()
    stream.begin_capture()
    total = gk.add(x, y, stream=stream)
    graph = stream.end_capture()
    for turn in range(20):
        x[...] = turn
        graph.launch()
        np.testing.assert_array_equal(total.to_host(), small_integers(2) + turn)
        graph.launch(stream=0)
        np.testing.assert_array_equal(gk.add(total, 1.0).to_host(), small_integers(2) + turn + 1)


def test_the_first_call_of_all_may_be_captured(library, script, request):
    """Nothing loaded, no library found yet, no stream made: all of it happens within a capture."""
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from test_graphs import LIBRARIES, small_integers, gk
library = LIBRARIES[sys.argv[2]]()
a, b = small_integers(1), small_integers(2)
x, y = library.array(a), library.array(b)
def work(stream):
    return [gk.matmul(x, y, stream=stream), gk.sum(x, stream=stream), gk.add(x, y, stream=stream)]
results, launch = library.capture(work)
launch()
for got, want in zip(results, (a @ b, a.sum(), a + b)):
    np.testing.assert_array_equal(got.to_host(), want)
"""
    run = script(code, str(request.path.parent), library.name)
    assert run.returncode == 0, run.stderr


def test_memory_goes_when_array_and_graph_are_gone(library):
    x = library.array(small_integers(1, (512, 512)))
    before = settled()

    def cycle():
        result, launch = library.capture(lambda stream: gk.matmul(x, x, stream=stream))
        launch()
        held = settled() - before
        assert held >= 512 * 512 * 4
        del result
        gc.collect()
        launch()

    cycle()
    for _ in range(100):  # the driver tells of a graph's end from a thread of its own
        if settled() == before:
            return
        time.sleep(0.01)
    assert settled() - before < 512 * 512 * 4


def an_event():
    event = gk.Event()
    event.record()
    return event


def a_stream():
    stream, x = gk.Stream(), gk.to_device(small_integers(1))
    return stream, gk.add(x, x, stream=stream)


def a_graph():
    stream, x = gk.Stream(), gk.to_device(small_integers(1))
    stream.begin_capture()
    total = gk.add(x, x, stream=stream)
    graph = stream.end_capture()
    graph.launch()
    return graph, total


def a_pinned_result():
    return gk.add(np.ones(1 << 21, np.float32), 1.0)


def assert_captured_beside(library, meanwhile):
    """A sum is captured, while in the same thread something else is done, and launched."""
    x = library.array(small_integers(1))

    def work(stream):
        meanwhile()
        gc.collect()
        return gk.add(x, x, stream=stream)

    result, launch = library.capture(work)
    launch()
    np.testing.assert_array_equal(result.to_host(), 2 * small_integers(1))


@pytest.mark.parametrize("make", [an_event, a_stream, a_graph, a_pinned_result])
def test_what_dies_during_a_capture_does_not_end_it(make, library):
    """The collector may come at any time, and the driver forbids a capture's thread much."""
    dying = [make()]
    assert_captured_beside(library, dying.clear)


def test_a_stream_that_dies_while_it_is_captured_ends_no_other_capture(library):
    y = gk.to_device(small_integers(2))

    def meanwhile():
        other = gk.Stream()
        other.begin_capture()
        gk.add(y, y, stream=other)

    assert_captured_beside(library, meanwhile)


def test_a_graph_is_made_during_a_capture(library):
    y, made = gk.to_device(small_integers(2)), []

    def meanwhile():
        other = gk.Stream()
        other.begin_capture()
        made.append(gk.add(y, 1.0, stream=other))
        made.append(other.end_capture())

    assert_captured_beside(library, meanwhile)
    made[1].launch()
    np.testing.assert_array_equal(made[0].to_host(), small_integers(2) + 1)


def test_arrays_that_die_during_a_capture(library):
    x = library.array(small_integers(1))
    dying = [gk.add(x, x) for _ in range(10)]
    values = [each.to_host() for each in dying]

    def work(stream):
        total = gk.add(dying[0], x, stream=stream)
        dying[1:] = []
        gc.collect()
        return total

    result, launch = library.capture(work)
    launch()
    np.testing.assert_array_equal(result.to_host(), values[0] + small_integers(1))


def test_host_arrays_are_refused_and_the_capture_goes_on(library):
    x = library.array(small_integers(1))
    a = small_integers(2)

    def work(stream):
        for call in (
            lambda: gk.add(x, a, stream=stream),
            lambda: gk.add(x, x, out=a.copy(), stream=stream),
            lambda: gk.to_device(a, stream),
        ):
            with pytest.raises(ValueError, match="being captured in a CUDA graph"):
                call()
        return gk.add(x, x, stream=stream)

    result, launch = library.capture(work)
    launch()
    np.testing.assert_array_equal(result.to_host(), 2 * small_integers(1))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_products_of_other_dtypes(dtype):
    library = Ours()
    a = random(SHAPE, DTYPES[dtype], 1)
    device = gk.to_device(a)
    result, launch = library.capture(lambda stream: gk.matmul(device, device, stream=stream))
    launch()
    oracle.assert_matmul(result.to_host(), a, a, "cublas", dtype)
