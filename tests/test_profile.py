"""profile: where the time of a call goes, and how many bytes move."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, dtypes_of, random, strided
from gpukern import _core
from waiting import join_all

PHASES = ("allocate", "host_to_device", "kernel", "device_to_host", "host")
KEYS = {*PHASES, "overlapped", "op", "variant", "dtype", "shapes", "wall", "bytes_in", "bytes_out"}


def records_of(*calls):
    _core.profile_start()
    try:
        for call in calls:
            call()
    finally:
        records = _core.profile_stop()
    return records


def record_of(call):
    records = records_of(call)
    assert len(records) == 1
    return records[0]


def assert_sane(record):
    assert set(record) == KEYS
    for phase in (*PHASES, "overlapped", "wall"):
        assert isinstance(record[phase], float)
        assert record[phase] >= 0, phase
    parts = sum(record[phase] for phase in PHASES) - record["overlapped"]
    # The kernel's clock is the device's own: a tenth and 50 us stand for its resolution.
    assert parts <= record["wall"] * 1.1 + 50e-6
    assert parts >= record["wall"] * 0.9 - 50e-6


OPERATIONS = {
    "add": (2, lambda m, n, k: (m * n, m * n, m * n)),
    "matmul": (2, lambda m, n, k: (m * k, k * n, m * n)),
    "transpose": (1, lambda m, n, k: (m * n, 0, m * n)),
    "sum": (1, lambda m, n, k: (m * n, 0, 1)),
}


def operands_of(op, dtype, m=70, k=80, n=90):
    shapes = {"matmul": [(m, k), (k, n)], "add": [(m, n)] * 2}.get(op, [(m, n)])
    return [random(shape, DTYPES[dtype], i) for i, shape in enumerate(shapes)]


@pytest.mark.parametrize("op", OPERATIONS)
def test_a_call_on_host_arrays(op):
    # Mapped without a measurement of it: below 64 KiB. Multiplied by a variant with a name: above.
    m, k, n = (70, 80, 90) if op == "matmul" else (30, 0, 40)
    for dtype in dtypes_of(op):
        operands = operands_of(op, dtype, m, k, n)
        record = record_of(lambda operands=operands: getattr(gk, op)(*operands))
        assert_sane(record)
        assert (record["op"], record["dtype"]) == (op, dtype)
        # A little matrix is turned by the copy of strided arrays.
        names = {"strided"} if op == "transpose" else {v.variant for v in gk.variants(op, dtype)}
        assert record["variant"] in names
        assert record["shapes"] == [operand.shape for operand in operands]
        assert all(isinstance(shape, tuple) for shape in record["shapes"])
        left, right, result = OPERATIONS[op][1](m, n, k)
        size = DTYPES[dtype].itemsize
        result_size = oracle.sum_dtype(DTYPES[dtype]).itemsize if op == "sum" else size
        assert record["bytes_in"] == (left + right) * size
        assert record["bytes_out"] == result * result_size
        assert record["kernel"] > 0
        if op in ("matmul", "transpose"):
            for phase in ("allocate", "host_to_device", "device_to_host"):
                assert record[phase] > 0, phase
        else:  # small: the kernel reads and writes the host's memory, and there is no copy
            assert (record["host_to_device"], record["device_to_host"]) == (0, 0)


@pytest.mark.parametrize("op", OPERATIONS)
def test_a_call_on_large_host_arrays_overlaps(op):
    sizes = (9000, 64, 64) if op == "matmul" else (1100, 1000, 1000)
    operands = operands_of(op, "float32", *sizes)
    result = getattr(gk, op)(*operands)
    record = record_of(lambda: getattr(gk, op)(*operands))
    assert_sane(record)
    named = gk.variants(op, "float32")[0].variant
    assert record_of(lambda: getattr(gk, op)(*operands, variant=named))["variant"] == named
    assert record["bytes_in"] == sum(operand.nbytes for operand in operands)
    assert record["bytes_out"] == result.nbytes
    for phase in ("host_to_device", "kernel", "device_to_host"):
        assert 0 < record[phase] <= record["wall"] * 1.1, f"{phase} took longer than the call"


@pytest.mark.parametrize("op", OPERATIONS)
def test_a_call_on_device_arrays_moves_nothing(op):
    operands = [gk.to_device(operand) for operand in operands_of(op, "float32")]
    record = record_of(lambda: getattr(gk, op)(*operands))
    assert_sane(record)
    assert (record["bytes_in"], record["bytes_out"]) == (0, 0)
    assert (record["host_to_device"], record["device_to_host"]) == (0, 0)
    assert record["kernel"] > 0


def test_a_call_into_device_memory_allocates_nothing():
    a, out = gk.to_device(np.ones(1000, np.float32)), gk.empty((1000,))
    record = record_of(lambda: gk.add(a, a, out=out))
    assert record["allocate"] == 0
    assert record["kernel"] > 0


def test_mixed_places_move_what_has_to_move():
    host = random((100, 100), DTYPES["float32"])
    device = gk.to_device(host)
    out = np.empty_like(host)
    record = record_of(lambda: gk.add(host, device))
    assert (record["bytes_in"], record["bytes_out"]) == (host.nbytes, 0)
    record = record_of(lambda: gk.add(device, device, out=out))
    assert (record["bytes_in"], record["bytes_out"]) == (0, host.nbytes)


def test_layouts_on_the_host_move_the_same_bytes():
    wide = strided(random((50, 50), DTYPES["float32"]))
    record = record_of(lambda: gk.add(wide, wide))
    assert (record["bytes_in"], record["bytes_out"]) == (2 * 10_000, 10_000)
    assert_sane(record)


def test_the_variant_is_the_one_that_ran():
    for op in OPERATIONS:
        operands = operands_of(op, "float32", m=32, k=40, n=48)  # rows that every variant takes
        for variant in gk.variants(op, dtype="float32"):
            if variant.runs:
                name = variant.variant
                record = record_of(
                    lambda op=op, operands=operands, name=name: getattr(gk, op)(
                        *operands, variant=name
                    )
                )
                assert record["variant"] == name


def test_transfers_are_recorded():
    a = random(1000, DTYPES["float32"])
    device = gk.to_device(a)
    records = records_of(lambda: gk.to_device(a), device.to_host)
    assert [record["op"] for record in records] == ["to_device", "to_host"]
    assert [record["bytes_in"] for record in records] == [4000, 0]
    assert [record["bytes_out"] for record in records] == [0, 4000]
    for record in records:
        assert_sane(record)


def test_one_record_a_call_in_order():
    a = random((3, 3), DTYPES["float32"])
    records = records_of(
        lambda: gk.add(a, a), lambda: gk.sum(a), lambda: gk.matmul(a, a), lambda: gk.transpose(a)
    )
    assert [record["op"] for record in records] == ["add", "sum", "matmul", "transpose"]


def test_calls_that_fail_leave_no_record():
    a = random((3, 3), DTYPES["float32"])

    def failing():
        with pytest.raises(ValueError, match="variant"):
            gk.add(a, a, variant="none")

    assert [r["op"] for r in records_of(failing, lambda: gk.add(a, a))] == ["add"]


def test_empty_arrays():
    nothing = np.empty((0, 3), np.float32)
    record = record_of(lambda: gk.add(nothing, nothing))
    assert set(record) == KEYS
    assert (record["bytes_in"], record["bytes_out"]) == (0, 0)


def test_results_are_the_same_as_without():
    a = random((70, 70), DTYPES["float32"])
    plain = [gk.sum(a), gk.matmul(a, a), gk.transpose(a)]
    profiled = []
    records_of(lambda: profiled.extend([gk.sum(a), gk.matmul(a, a), gk.transpose(a)]))
    for x, y in zip(plain, profiled, strict=True):
        assert x.tobytes() == y.tobytes()


def test_opening_and_closing():
    with pytest.raises(RuntimeError, match="profile"):
        _core.profile_stop()
    _core.profile_start()
    with pytest.raises(RuntimeError, match="profile"):
        _core.profile_start()
    assert _core.profile_stop() == []


def test_the_context_manager():
    a = random((30, 30), DTYPES["float32"])
    with gk.profile() as taken:
        gk.add(a, a)
        gk.sum(a)
    assert [call.op for call in taken.calls] == ["add", "sum"]
    assert taken.calls[0].bytes_in == 2 * a.nbytes
    text = str(taken)
    for word in ("add", "sum", "30x30"):
        assert word in text
    gk.add(a, a)
    assert len(taken.calls) == 2
    with pytest.raises(ZeroDivisionError), gk.profile() as broken:
        gk.add(a, a)
        raise ZeroDivisionError
    assert len(broken.calls) == 1
    with gk.profile() as again:
        pass
    assert again.calls == []


def test_what_is_asked_of_the_block_in_place_of_its_profile():
    block = gk.profile()
    with block:
        pass
    with pytest.raises(AttributeError, match=r"^profile: .* 'calls'; .*\) as given:' and given\.c"):
        _ = block.calls
    assert not hasattr(block, "table")


def test_calls_of_other_threads_are_recorded_too():
    a = random((30, 30), DTYPES["float32"])

    def work():
        for _ in range(50):
            gk.add(a, a)

    def all_of_them():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        join_all(*threads)

    records = records_of(all_of_them)
    assert len(records) == 200
    assert all(set(record) == KEYS for record in records)


def test_a_profile_that_ends_while_a_call_runs():
    """The call has begun to measure; nobody waits for its record any more."""
    a = random((40, 40), DTYPES["float32"])
    stop = threading.Event()

    def work():
        while not stop.is_set():
            gk.matmul(a, a)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        _core.profile_start()
        gk.add(a, a)
        assert all(set(record) == KEYS for record in _core.profile_stop())
    stop.set()
    join_all(*threads)


def test_strict_ends_with_a_block_that_raises(monkeypatch):
    changes = []
    monkeypatch.setattr(_core, "strict", changes.append)
    with pytest.raises(ZeroDivisionError), gk.strict():
        raise ZeroDivisionError
    assert changes == [1, -1]


def test_strict_decorates():
    @gk.strict()
    def doubled(a):
        return gk.add(a, a)

    assert doubled.__name__ == "doubled"
    assert doubled(np.ones(1, np.float32)) == 2


def test_strict_gives_the_same_results_and_nests():
    a = random((70, 70), DTYPES["float32"])
    plain = gk.matmul(a, a)
    with gk.strict():
        with gk.strict():
            assert gk.matmul(a, a).tobytes() == plain.tobytes()
        assert gk.matmul(gk.to_device(a), a).to_host().tobytes() == plain.tobytes()
    assert gk.matmul(a, a).tobytes() == plain.tobytes()
