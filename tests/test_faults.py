"""Faults planted one by one: the Nth device call or host allocation of an operation fails, for
every N until none is left to strike. Each time: the right exception or, where the call has another
way to go, the right result; nothing else changed, nothing leaked."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, LAYOUTS, OnDevice, on_device, places, random, sanitized
from gpukern import _core

OPS = ("add", "sum", "matmul", "transpose")
# One of each kind of reduction, over the last axis but for dot.
OTHERS = {"mean": -1, "argmax": -1, "norm": 0, "max": (0, 1)}
# How an operand or out reaches the operation.
MOST_STEPS = 4000  # a profiled product in panels, six workers at it, takes some 500
KINDS = ("host", "host strided", "host swapped", "device", "device strided", "device off")
OUTS = ("none", "host", "host strided", "device", "device strided", "an input")


@dataclass
class Planted:
    """A call to plant faults in: what it may not change, and how its result is checked."""

    call: Callable[[], Any]
    memory: Callable[[], list[bytes]]
    check: Callable[[Any], None]


@pytest.fixture(autouse=True, scope="module")
def mailboxes():
    """What a process makes in its first small call, and goes another way without, is there."""
    gk.sum(np.ones(9, np.float32))


@pytest.fixture(autouse=True)
def disarmed():
    """No fault outlives its test, and nothing older than the test is collected within it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    _core.fail_call(0)


def attempt(planted: Planted, number: int) -> str:
    """Make the call with its `number`th step failing: "raised", "survived", or "none" where the
    call has fewer steps."""
    before, live = planted.memory(), young()
    _core.fail_call(number)
    try:
        result = planted.call()
    except (MemoryError, gk.CudaError) as error:
        assert _core.fail_call(0), f"step {number} failed by itself: {error}"
        assert type(error) in (MemoryError, gk.CudaError), type(error)
        assert "planted" in str(error)
        del error
        assert planted.memory() == before, f"step {number} changed something"
        assert young() == live, f"step {number} leaked"
        planted.check(planted.call())
        return "raised"
    struck = _core.fail_call(0)
    planted.check(result)
    if not struck:
        return "none"
    del result
    assert young() == live, f"step {number} failed, was survived and leaked"
    return "survived"


def young() -> int:
    """Device bytes that live on when the garbage of this test is gone."""
    gc.collect(0)
    return _core.live_bytes()


def assert_survives(make: Callable[[], Planted], least: int, fallback: bool = False) -> None:
    """Plant faults until none strikes; at least `least` must have. Only a call with a `fallback`
    may succeed in spite of one."""
    for number in range(1, MOST_STEPS):
        outcome = attempt(make(), number)
        if outcome == "none":
            assert number - 1 >= least, f"{number - 1} faults struck, {least} were expected"
            return
        assert fallback or outcome == "raised", f"the fault in step {number} was swallowed"
    raise AssertionError(f"{MOST_STEPS} faults, and no end of them")


def placed(kind: str, values: np.ndarray) -> tuple[Any, Callable[[], bytes]]:
    """An array of that kind, and how to read every byte of it and around it."""
    if kind.startswith("host"):
        layout = {"host strided": "strided", "host swapped": "swapped"}.get(kind, "contiguous")
        array = LAYOUTS[layout](values.copy())
        base = array if array.base is None else array.base
        return array, base.tobytes
    name = {"device strided": "rows apart", "device off": "one byte off"}.get(kind)
    if name is None:
        device = gk.to_device(values)
        return device, lambda: device.to_host().tobytes()
    there: OnDevice = on_device(dict(places(values.shape, values.dtype))[name], values)
    return there.view, lambda: there.parent.to_host().tobytes()


def host_values(array: Any) -> np.ndarray:
    return np.asarray(array if isinstance(array, np.ndarray | np.generic) else gk.to_device(array))


def planted(op: str, kinds: tuple[str, ...], out_kind: str, seed: int, **options: Any) -> Planted:
    shape = (9,) if op == "dot" else (9, 9)
    values = [random(shape, DTYPES["float32"], seed + i) for i in range(len(kinds))]
    operands, readers = zip(*map(placed, kinds, values), strict=True)
    out, out_reader = None, bytes
    if out_kind == "an input":
        out = operands[0]
    elif out_kind != "none":
        result = () if op == "sum" else shape
        name = "device off" if (op, out_kind) == ("sum", "device strided") else out_kind
        out, out_reader = placed(name, random(result, DTYPES["float32"], 99))

    def call() -> Any:
        got = getattr(gk, op)(*operands, out=out, **options)
        assert out is None or got is out
        return got

    def check(got: Any) -> None:
        if out_kind != "an input":  # there the second of two calls starts from another array
            assert_right(op, host_values(got), values, options.get("variant", "default"))

    return Planted(call, lambda: [read() for read in (*readers, out_reader)], check)


def assert_right(op: str, got: np.ndarray, values: list[np.ndarray], variant: str) -> None:
    if op == "add":
        oracle.assert_same(got, oracle.add(*values), op)
    elif op == "sum":
        oracle.assert_sum(got, values[0], variant, op)
    elif op == "matmul":
        oracle.assert_matmul(got, *values, "cublas", op)
    elif op == "transpose":
        oracle.assert_same(got, np.ascontiguousarray(values[0].T), op)
    else:
        oracle.assert_same(got, np.asarray(getattr(gk, op)(*values)), op)


def combinations() -> list[tuple[str, tuple[str, ...], str]]:
    pairs = [(kind, kind) for kind in KINDS]
    pairs += [("host", "device"), ("device", "host"), ("host strided", "device strided")]
    cases: list[tuple[str, tuple[str, ...], str]] = []
    for op in OPS:
        count = 2 if op in ("add", "matmul") else 1
        for kinds in dict.fromkeys(pair[:count] for pair in pairs):
            outs = [out for out in OUTS if not (op == "sum" and out == "an input")]
            cases += [(op, kinds, out) for out in outs]
    return cases


def fewest(op: str, kinds: tuple[str, ...], out: str) -> int:
    """A launch at least; a host operand needs memory and a copy, a new result needs memory. Where
    all is on the host and small, add and sum copy nothing: they launch and wait."""
    mapped = op in ("add", "sum") and out in ("none", "host", "host strided", "an input")
    if mapped and all(kind.startswith("host") for kind in kinds):
        return 2 + (out == "none")
    return 1 + 2 * sum(kind.startswith("host") for kind in kinds) + (out == "none")


@pytest.mark.parametrize(("op", "kinds", "out"), combinations())
def test_every_step_may_fail(op, kinds, out):
    assert_survives(lambda: planted(op, kinds, out, 1), fewest(op, kinds, out))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("kind", ["host", "device"])
def test_every_step_may_fail_in_a_profile(op, kind):
    kinds = (kind,) * (2 if op in ("add", "matmul") else 1)
    _core.profile_start()
    try:
        assert_survives(lambda: planted(op, kinds, "none", 1), 5)
    finally:
        records = _core.profile_stop()
    assert all(record["wall"] >= 0 for record in records)


@pytest.mark.parametrize("op", OPS)
def test_every_step_may_fail_under_strict(op):
    kinds = ("host",) * (2 if op in ("add", "matmul") else 1)
    with gk.strict():
        assert_survives(lambda: planted(op, kinds, "none", 1), 4)


@pytest.mark.parametrize(
    ("op", "variant"),
    [(v.op, v.variant) for v in gk.variants(dtype="float32") if v.runs and v.op in OPS],
)
def test_every_step_of_every_variant_may_fail(op, variant):
    kinds = ("host",) * (2 if op in ("add", "matmul", "dot") else 1)
    assert_survives(lambda: planted(op, kinds, "none", 1, variant=variant), 3)


@functools.lru_cache(maxsize=2)
def reduced(op: str, shape: tuple[int, ...], axis: Any) -> tuple[np.ndarray, np.ndarray]:
    """What is reduced, and the result."""
    values = random(shape, DTYPES["float32"], 3)
    return values, np.array(getattr(gk, op)(values, axis))


def simple_reduction(op: str, kind: str, shape: tuple[int, ...], axis: Any) -> Planted:
    values, want = reduced(op, shape, axis)
    operand, reader = placed(kind, values)

    def check(got: Any) -> None:
        assert host_values(got).tobytes() == want.tobytes()

    return Planted(lambda: getattr(gk, op)(operand, axis), lambda: [reader()], check)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", OTHERS)
def test_every_step_of_a_reduction_may_fail(op, kind):
    assert_survives(lambda: simple_reduction(op, kind, (9, 9), OTHERS[op]), 2)


@pytest.mark.parametrize("shape", [(3, 20_000), (3000, 8), (5, 7, 90)])
def test_every_step_of_a_reduction_in_segments_may_fail(shape):
    """Partial results, their counters, and axes that have to be moved first."""
    axis = {2: 1 if shape[0] == 3 else 0, 3: (0, 2)}[len(shape)]
    assert_survives(lambda: simple_reduction("sum", "device", shape, axis), 2)


def test_every_step_of_a_reduction_by_panels_may_fail():
    with gk.limits(device_memory=200_000, mapped_call=0):
        for shape, axis in (((200, 999), 1), ((999, 200), 0)):
            assert_survives(
                lambda shape=shape, axis=axis: simple_reduction("sum", "host", shape, axis),
                10,
                fallback=True,
            )


# --- large host arrays ------------------------------------------------------------------------

# Several chunks each, and more than one panel; what the workers do when decides which call is the
# Nth, and not how many calls there are.
FLOWS: dict[str, tuple[str, tuple[tuple[int, ...], ...], str]] = {
    "add": ("add", ((70_000,), (70_000,)), "none"),
    "add into an array": ("add", ((70_000,), (70_000,)), "host"),
    "add of halves into an array": ("add", ((70_000,), (70_000,)), "host"),
    "add into a strided array": ("add", ((70_000,), (70_000,)), "host strided"),
    "add into an operand": ("add", ((70_000,), (70_000,)), "an input"),
    "add to a pinned result": ("add", ((140_000,), (140_000,)), "none"),
    "broadcasting": ("add", ((300, 301), (1, 301)), "none"),
    "sum": ("sum", ((140_001,),), "none"),
    "transpose": ("transpose", ((519, 521),), "none"),
    "dot": ("dot", ((140_001,), (140_001,)), "none"),
    "argmax": ("argmax", ((140_001,),), "none"),
    "matmul": ("matmul", ((2048, 520), (520, 1)), "none"),
    "matmul into an array": ("matmul", ((2048, 520), (520, 1)), "host"),
}


def options_of(op: str) -> dict[str, str]:
    """The naive product is the one that the simulator is quick at."""
    return {"variant": "naive"} if op == "matmul" else {}


@functools.lru_cache(maxsize=2)
def drawn(case: str) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """The operands of a case, its result, and what is in `out` before; copies are worked on."""
    op, shapes, _ = FLOWS[case]
    dtype = DTYPES["float16" if "halves" in case else "float32"]
    values = [random(shape, dtype, i) for i, shape in enumerate(shapes)]
    want = np.array(getattr(gk, op)(*values, **options_of(op)))
    before = random(want.shape, dtype, 99)
    for each in (*values, want, before):
        each.setflags(write=False)
    return values, want, before


def flow(case: str) -> Planted:
    op, _, out_kind = FLOWS[case]
    values, want, filled = drawn(case)
    operands = [each.copy() for each in values]
    options = options_of(op)
    out: Any = None
    if out_kind == "an input":
        out = operands[0]
    elif out_kind != "none":
        out, _ = placed(out_kind, filled)
    filled_as_it_comes = out_kind == "host"
    held = [*operands, *([out] if out is not None and not filled_as_it_comes else [])]
    before = None if out is None else out.copy()

    def memory() -> Any:
        mixed = filled_as_it_comes and not ((out == before) | (out == want)).all()
        return [mixed, *(each.tobytes() for each in held)]

    def check(got: Any) -> None:
        if out_kind != "an input":
            assert np.asarray(got).tobytes() == want.tobytes(), case

    return Planted(
        lambda: getattr(gk, op)(*operands, out=out, **options),
        memory,
        check,
    )


@pytest.mark.costly(2)
@pytest.mark.parametrize("profiled", [False, True], ids=["", "profiled"])
@pytest.mark.parametrize("case", FLOWS)
def test_every_step_of_a_large_call_may_fail(case, profiled):
    """Also in its last chunk: what the user has handed over is as it was before, but for an `out`
    where no operand lies, which has results as far as they have come."""
    planted = flow(case)
    with gk.limits(mapped_call=0):
        planted.call()  # the lanes are there from here on
        if profiled:
            _core.profile_start()
        try:
            assert_survives(lambda: flow(case), 6, fallback=True)
        finally:
            if profiled:
                _core.profile_stop()


@pytest.mark.parametrize("count", [70_000, 300_000])
def test_every_step_of_a_large_copy_may_fail(count):
    def upload() -> Planted:
        a = random(count, DTYPES["float32"], 1)
        return simple(lambda: gk.to_device(a[::-1]), a[::-1].copy(), [a])

    assert_survives(upload, 3, fallback=True)

    def download() -> Planted:
        a = random(count, DTYPES["float32"], 1)
        device = gk.to_device(a)
        return simple(device.to_host, a, [a])

    assert_survives(download, 2, fallback=True)  # into pinned memory it is one copy


FIRST_CALLS = """
import os, sys
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])  # one worker: fewer steps, in order
import numpy as np
N = 150_000
calls = {
    "mapped": lambda gk, a: gk.add(a[:50], a[:50]),
    "add": lambda gk, a: gk.add(a[:N], a[:N]),
    "sum": lambda gk, a: gk.sum(a[:N]),
    "to_device": lambda gk, a: gk.to_device(a[:N]).to_host(),
    "matmul": lambda gk, a: gk.matmul(a.reshape(-1, 520), a[:520], variant="naive"),
}
want = {
    "mapped": lambda a: a[:50] + a[:50],
    "add": lambda a: a[:N] + a[:N],
    "sum": lambda a: np.float32(a[:N].sum()),
    "to_device": lambda a: a[:N],
    "matmul": lambda a: a.reshape(-1, 520) @ a[:520],
}
a = (np.arange(2048 * 520) % 3).astype(np.float32)
import gpukern._core as first  # keeps the device's context, which takes a GPU 0.1 s to make
first.backend()
survived = 0
for number in range(1, 400, STEP):
    for module in [module for module in sys.modules if module.startswith("gpukern")]:
        del sys.modules[module]
    import gpukern as gk
    from gpukern import _core
    _core.backend()  # opened without a fault; what the call needs is not there yet
    _core.fail_call(number)
    try:
        got = calls[NAME](gk, a)
    except (MemoryError, gk.CudaError) as error:
        assert "planted" in str(error), error
        got = None
    struck = _core.fail_call(0)
    survived += struck and got is not None
    if got is None:
        got = calls[NAME](gk, a)
    assert (got == want[NAME](a)).all(), number
    got = None
    assert _core.live_bytes() == 0, number
    if not struck:
        break
else:
    raise AssertionError("no end of faults")
print(survived)
"""


# How many a call survives at least: a mapped one a stream for each mailbox, others memory for the
# lanes.
@pytest.mark.parametrize(
    ("call", "least"), [("mapped", 8), ("add", 1), ("sum", 0), ("to_device", 0), ("matmul", 1)]
)
def test_every_step_of_a_first_call_may_fail(script, call, least):
    """Streams, events and staging buffers that are not to be had: most calls go another way."""
    step = 7 if sanitized() else 1
    run = script(f"STEP, NAME = {step}, {call!r}\n{FIRST_CALLS}", GPUKERN_SIM_THREADS="1")
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) >= least // step


def simple(call: Callable[[], Any], values: np.ndarray, memory: list[Any]) -> Planted:
    def check(got: Any) -> None:
        oracle.assert_same(host_values(got), values, "result")

    return Planted(call, lambda: [host_values(each).tobytes() for each in memory], check)


def test_broadcasting():
    def make() -> Planted:
        a, b = random((7, 1), DTYPES["float32"], 1), random((1, 5), DTYPES["float32"], 2)
        return simple(lambda: gk.add(a, b), oracle.add(a, b), [a, b])

    assert_survives(make, 3)


@pytest.mark.parametrize("op", ["scale_add", "exp"])
def test_other_elementwise_operations(op):
    def make() -> Planted:
        a = random((9, 9), DTYPES["float32"], 1)
        device = gk.to_device(a)
        operands = [2.0, device, a] if op == "scale_add" else [device[::2, 1:]]
        want = getattr(gk, op)(*operands).to_host()
        return simple(lambda: getattr(gk, op)(*operands), want, [a, device])

    assert_survives(make, 3 if op == "exp" else 5)


def test_views_and_stacks():
    def make() -> Planted:
        a = random((3, 9, 10), DTYPES["float32"], 1)
        device = gk.to_device(a)
        want = np.ascontiguousarray(a[:, ::-2].transpose(0, 2, 1))
        return simple(lambda: gk.matrix_transpose(device[:, ::-2]), want, [device])

    assert_survives(make, 4)

    def copied() -> Planted:
        a = random((9, 10), DTYPES["float32"], 1)
        device = gk.to_device(a)
        return simple(lambda: device.T.reshape(90), np.ascontiguousarray(a.T).ravel(), [device])

    assert_survives(copied, 4)


def test_a_scalar():
    def make() -> Planted:
        a = random((7, 5), DTYPES["float32"], 1)
        return simple(lambda: gk.add(a, 1.0), oracle.add(a, np.float32(1)), [a])

    assert_survives(make, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_to_device(kind):
    def make() -> Planted:
        a = random((9, 9), DTYPES["float32"], 1)
        array, _ = placed(kind, a)
        return simple(lambda: gk.to_device(array), a, [array])

    assert_survives(make, 2)


@pytest.mark.parametrize("kind", [None, "host", "host strided", "host swapped"])
def test_to_host(kind):
    def make() -> Planted:
        a, b = random((9, 9), DTYPES["float32"], 1), random((9, 9), DTYPES["float32"], 2)
        device = gk.to_device(a)
        out, reader = placed(kind, b) if kind else (None, bytes)

        def check(got: Any) -> None:
            oracle.assert_same(got.astype(a.dtype), a, "to_host")

        return Planted(lambda: device.to_host(out=out), lambda: [reader()], check)

    assert_survives(make, 1 if kind == "host" else 2)


def test_empty():
    def check(got: Any) -> None:
        assert got.to_host().shape == (3, 4)

    def make() -> Planted:
        return Planted(lambda: gk.empty((3, 4)), list, check)

    assert_survives(make, 1)


def test_operators():
    def make() -> Planted:
        a = random((9, 9), DTYPES["float32"], 1)
        device = gk.to_device(a)
        return simple(lambda: device.T, np.ascontiguousarray(a.T), [device])

    assert_survives(make, 1)

    def plus() -> Planted:
        a = random((9, 9), DTYPES["float32"], 1)
        device = gk.to_device(a)
        return simple(lambda: a + device, oracle.add(a, a), [a, device])

    assert_survives(plus, 4)


def test_writes_to_a_device_array():
    """In place and by assignment, also where the operands overlap: whole or not at all."""
    a = np.arange(90, dtype=np.float32)

    def added() -> Planted:
        device = gk.to_device(a)

        def call() -> Any:
            part = device[1:]
            part += device[:-1]
            return device

        return simple(call, np.append(a[:1], a[1:] + a[:-1]), [device])

    def assigned(value: Any) -> Planted:
        device = gk.to_device(a.astype(np.float64))
        want = np.concatenate([a[:1], np.broadcast_to(host_values(value), 88), a[-1:]])
        return simple(
            lambda: device.__setitem__(slice(1, -1), value) or device,
            want.astype(np.float64),
            [device],
        )

    assert_survives(added, 4)
    assert_survives(lambda: assigned(a[:88]), 3)
    assert_survives(lambda: assigned(gk.to_device(a)[:0:-1][:88]), 1)
    assert_survives(lambda: assigned(np.float32(3)), 1)


def test_conversions_and_fills():
    def converted() -> Planted:
        a = random((9, 9), DTYPES["float32"], 1)
        device = gk.to_device(a)
        return simple(lambda: device.T.astype("int8"), a.T.astype(np.int8).copy(), [device])

    assert_survives(converted, 3)

    def filled() -> Planted:
        device = gk.to_device(np.zeros((3, 4)))
        return simple(lambda: device.fill(7) or device, np.full((3, 4), 7.0), [device])

    assert_survives(filled, 2)
    assert_survives(lambda: simple(lambda: gk.asarray([1, 2]), np.array([1, 2]), []), 3)


def test_numbers():
    device = gk.to_device(np.float32([1.5, 2.5]))

    def make() -> Planted:
        return Planted(lambda: float(device[1]), list, lambda got: None)

    assert_survives(make, 3)


def test_into_numpy():
    def make() -> Planted:
        a = random((9, 9), DTYPES["float32"], 1)
        device = gk.to_device(a)
        return simple(lambda: np.asarray(device), a, [a])

    assert_survives(make, 2)


def test_repr():
    for size in (5, 5000):
        device = gk.to_device(random(size, DTYPES["float32"], 1))
        whole = repr(device)

        def check(got: str, whole: str = whole) -> None:
            assert got == whole

        def make(device: Any = device, check: Any = check) -> Planted:
            return Planted(lambda: repr(device), list, check)

        assert_survives(make, 2)


def test_synchronize():
    assert_survives(lambda: Planted(gk.synchronize, list, lambda got: None), 1)


def test_events():
    def record() -> Planted:
        event = gk.Event()
        return Planted(event.record, list, lambda got: None)

    assert_survives(record, 2)
    first, last = gk.Event(), gk.Event()
    first.record()
    last.record()

    def elapsed() -> Planted:
        return Planted(lambda: last.seconds_since(first), list, lambda got: None)

    assert_survives(elapsed, 1)


def test_a_foreign_array_is_asked_for_by_the_driver():
    def make() -> Planted:
        a = random((9, 9), DTYPES["float32"], 1)
        there = on_device(dict(places(a.shape, a.dtype))["aligned"], a)
        return simple(lambda: gk.transpose(there.view), np.ascontiguousarray(a.T), [there.view])

    assert_survives(make, 3)


def test_arming_and_disarming():
    a = random(5, DTYPES["float32"])
    assert not _core.fail_call(0)
    assert not _core.fail_call(1)
    with pytest.raises((MemoryError, gk.CudaError), match="planted"):
        gk.add(a, a)
    gk.add(a, a)  # it strikes once
    assert _core.fail_call(0)
    assert not _core.fail_call(0)
    _core.fail_call(1)
    assert not _core.fail_call(0)
    gk.add(a, a)  # disarmed in time
    with pytest.raises(TypeError):
        _core.fail_call("1")


# --- kernels of users -------------------------------------------------------------------------

KERNELS = """
__constant__ float table[4] = {1, 2, 3, 4};
__global__ void twice(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""


def users_kernels() -> Any:
    """The module, as it is compiled here; it was kept before."""
    return gk.compile(KERNELS)


@pytest.fixture
def module(kept) -> Any:
    try:
        return users_kernels()
    except gk.CudaError as error:
        if "pip install" in str(error) or "apt install" in str(error):
            pytest.skip("no compiler is here")
        raise


@pytest.mark.parametrize("kind", ["host", "device", "large"])
def test_every_step_of_a_users_kernel_may_fail(kind, module):
    """Its arrays in one copy, where they are, or one by one in chunks: these may have come back in
    part, the others are as they were before."""
    count = 300_000 if kind == "large" else 81

    def make() -> Planted:
        x = random(count, DTYPES["float32"], 1)
        where = "device" if kind == "device" else "host"
        (given, _), (y, reader) = placed(where, x), placed(where, x.copy())
        want = np.concatenate([2 * x[:50], x[50:]])

        def memory() -> Any:
            return [((y == x) | (y == want)).all() if kind == "large" else reader()]

        def call() -> Any:
            module.twice(1, 64, given, y, 50)
            return y

        return Planted(call, memory, lambda got: same_bytes(got, want))

    least = {"device": 1, "host": 3, "large": 4}[kind]
    assert_survives(make, least, fallback=kind != "device")


def same_bytes(got: Any, want: np.ndarray) -> None:
    assert host_values(got).tobytes() == want.tobytes()


def test_every_step_of_the_first_call_of_a_users_kernel_may_fail(module):
    def make() -> Planted:
        def call() -> Any:
            out = np.zeros(4, np.float32)
            users_kernels().twice(1, 64, gk.In(np.ones(4, np.float32)), out, 4)
            return out

        return Planted(call, list, lambda got: same_bytes(got, np.full(4, 2, np.float32)))

    assert_survives(make, 5, fallback=True)


def test_what_is_asked_of_a_module_may_fail(module):
    image, twice = module.image, module.twice
    for call in (
        lambda: twice.active_blocks(64),
        twice.suggest_block,
        lambda: image.parameters(twice.symbol),
        lambda: module.symbol("table").to_host().tolist(),
    ):
        want = call()

        def check(got: Any, want: Any = want) -> None:
            assert got == want

        assert_survives(lambda call=call, check=check: Planted(call, list, check), 1)
    assert want == [1, 2, 3, 4]
