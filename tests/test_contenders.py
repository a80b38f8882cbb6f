"""Who takes part, under which name, and how each is called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import gpukern
from gpukern import _core
from gpukern.bench.contenders import registry
from gpukern.bench.contenders.kept import WITH_ARRAYS, Kept, Prepared
from gpukern.bench.contenders.registry import PEERS, Peer, gather, select
from gpukern.bench.model import case as cases
from gpukern.bench.model.contender import Contender, DeviceSide
from gpukern.bench.model.dtypes import numpy_dtype
from gpukern.bench.model.row import RIGHT, WRONG, Row
from gpukern.bench.showing.remarks import remarks

pytestmark = pytest.mark.usefixtures("many_comparisons")

SEED = 20260103


@pytest.fixture(autouse=True)
def unregistered(monkeypatch):
    """What a test registers goes again."""
    monkeypatch.setattr(registry, "REGISTERED", {})


def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a + b


def total(a: np.ndarray) -> np.ndarray:
    return np.sum(a)


def offered(key: str, op: str, dtype: str = "float32") -> dict[str, Contender]:
    """The contenders of a peer by variant."""
    ((peer, _),) = select([key])
    return {one.variant: one for one in gather(peer, None, op, dtype)}


class TestNames:
    @pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.key)
    def test_those_of_the_built_in_contenders_are_reserved(self, peer):
        for name in (peer.key, peer.name, peer.key.upper(), peer.name.title()):
            with pytest.raises(
                ValueError, match=f"its own, not '{name}', which is that of the built-in"
            ):
                gpukern.contender("add", name)(add)
        assert not registry.REGISTERED

    def test_so_are_those_of_functions(self):
        def numpy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return a + b

        with pytest.raises(ValueError, match=r"contender: the name .* its own, not 'numpy'"):
            gpukern.contender("add")(numpy)
        with pytest.raises(ValueError, match=r"compare: the name .* its own, not 'numpy'"):
            gpukern.compare("add", [8], contenders=[numpy])

    def test_a_name_that_only_begins_alike_is_free(self):
        gpukern.contender("add", "numpy too")(add)
        result = gpukern.compare("add", [8], None, ["numpy too"], rounds=1)
        assert [row.contender for row in result.rows] == ["numpy too"]

    @pytest.mark.parametrize(
        "name",
        ["NumPy ", " numpy", "Nu\xadmPy", "NumPy\u200b", "NumPy\xa0", "NumPy\nNumPy", "a  b"],
    )
    def test_nor_one_with_signs_that_nobody_sees(self, name):
        with pytest.raises(ValueError, match="words with a space between, not"):
            gpukern.contender("add", name)(add)

    def test_wide_letters_are_letters(self):
        with pytest.raises(ValueError, match="that of the built-in NumPy"):
            gpukern.contender("add", "\uff2eumPy")(add)

    def test_two_functions_of_one_name_have_a_row_each(self):
        wrong, right = (lambda a, b: a * 0), (lambda a, b: a + b)
        result = gpukern.compare("add", [64], None, [wrong, right, add, add], rounds=1)
        assert [(row.contender, row.status) for row in result.rows] == [
            ("<lambda>", "WRONG"),
            ("<lambda> 2", RIGHT),
            ("add", RIGHT),
            ("add 2", RIGHT),
        ]
        assert len(result.wrong) == 1

    def test_one_name_for_two_operations_keeps_both(self):
        gpukern.contender("add", "mine")(add)
        gpukern.contender("sum", "mine")(total)
        result = gpukern.compare(["add", "sum"], [9], None, ["mine"], seed=SEED, rounds=1)
        assert [(row.op, row.contender, row.status) for row in result.rows] == [
            ("add", "mine", RIGHT),
            ("sum", "mine", RIGHT),
        ]
        assert len([peer for peer, _ in select(None) if peer.name == "mine"]) == 1

    def test_the_same_name_for_the_same_operation_replaces(self):
        gpukern.contender("sum", "mine")(total)
        gpukern.contender("add", "mine")(lambda a, b: a - b)
        gpukern.contender("add", "mine")(add)
        result = gpukern.compare(["add", "sum"], [9], None, ["mine"], seed=SEED, rounds=1)
        assert {row.status for row in result.rows} == {RIGHT}
        assert len(result.rows) == 2

    def test_one_that_has_nothing_for_an_operation_has_no_row(self):
        gpukern.contender("add", "mine")(add)
        assert not gpukern.compare("sum", [9], None, ["mine"], rounds=1).rows


class TestNumPyWithOut:
    @pytest.mark.parametrize("op", sorted(WITH_ARRAYS))
    def test_is_right_in_an_array_that_it_keeps(self, op):
        for dtype in cases.DTYPES_OF[op]:
            one = offered("numpy", op, dtype).get("out=")
            if one is None:
                assert cases.KINDS[op] in ("sum", "matmul") and dtype in ("float16", "bfloat16")
                continue
            result = gpukern.compare(op, [(17, 9)], dtype, ["numpy:out="], seed=SEED, rounds=1)
            assert [row.status for row in result.rows] == [RIGHT], (dtype, result.rows)
            case = cases.make_case(op, (17, 9), dtype)
            inputs = [np.ones(shape, numpy_dtype(dtype)) for shape in case.shapes]
            first, again = one.end_to_end(*inputs), one.end_to_end(*inputs)
            assert np.shares_memory(first, again) and one.reuses

    def test_another_size_gets_another_array(self):
        one = offered("numpy", "add")["out="]
        small, large = (np.ones(count, np.float32) for count in (3, 50))
        assert one.end_to_end(small, small).shape == (3,)
        assert one.end_to_end(large, large).shape == (50,)

    def test_a_single_number_needs_none(self):
        for op in set(cases.OPERATIONS) - WITH_ARRAYS:
            assert cases.make_case(op, 4).result_shape == ()
            assert "out=" not in offered("numpy", op)
        for op in WITH_ARRAYS:
            assert cases.make_case(op, 4).result_shape

    def test_nobody_else_keeps_a_result(self):
        for op in cases.OPERATIONS:
            for key in ("numpy", "gpukern"):
                found = offered(key, op).items()
                assert {name for name, one in found if getattr(one, "reuses", False)} <= {"out="}


def offer_of(one: Contender) -> Peer:
    def offer(op: str, dtype: str) -> Iterator[Contender]:
        yield one

    return Peer(one.name.lower(), one.name, offer, needs_gpu=False)


def device_side() -> DeviceSide:
    def run(inputs: Sequence[object], out: object) -> None:
        _core.add(*inputs, out=out)

    return DeviceSide(_core.to_device, run, _core.DeviceArray.to_host, lambda memory: memory)


def compared(one: Contender, mode: str = "both") -> tuple[Row, str]:
    """Its row, with simulated times where there is no GPU, and what is said under the tables."""
    names = {"seed": SEED, "rounds": 2, "simulated": True, "mode": mode}
    result = gpukern.compare("add", [40], None, [offer_of(one), "numpy:np.add"], **names)
    return result.rows[0], "\n".join(line.text for line in remarks(result))


class TestWhatIsNotTimed:
    """A time that would not be the contender's own is not shown under its name."""

    def test_transfers_of_another_library(self):
        one = Contender("Borrower", "v", add, device_side(), transfers="gpukern")
        row, said = compared(one)
        assert row.status == RIGHT and row.on_device is not None
        assert row.end_to_end is None and row.end_to_end_ratio is None and not row.split
        assert "no time from end to end, since its transfers are gpukern's: Borrower v" in said

    def test_but_they_are_checked(self):
        one = Contender("Borrower", "v", lambda a, b: a, device_side(), transfers="gpukern")
        row, _ = compared(one)
        assert row.status == WRONG and "end to end" in row.detail

    def test_nobody_asked_for_what_is_not_there(self):
        one = Contender("Borrower", "v", add, device_side(), transfers="gpukern")
        assert "end to end, since" not in compared(one, "device")[1]

    def test_its_own_are_timed(self):
        row, said = compared(Contender("Owner", "v", add, device_side()))
        assert row.end_to_end is not None and row.split
        assert "no time" not in said

    def test_a_stream_that_no_event_is_recorded_on(self):
        one = Contender("Streamer", "v", add, off_device="it works elsewhere")
        row, said = compared(one)
        assert row.end_to_end is not None and row.on_device is None and row.device_ratio is None
        assert "no time on the device: it works elsewhere: Streamer v" in said
        assert "no time on" not in compared(one, "end-to-end")[1]

    def test_a_users_work_on_the_device_is_moved_by_gpukern(self):
        gpukern.contender("add", "mine", device=True)(lambda a, b, out: _core.add(a, b, out=out))
        (one,) = gather(registry.REGISTERED["mine"], None, "add", "float32")
        assert one.transfers == "gpukern"

    def test_the_protocol_of_wall_clocks_is_left_out_too(self):
        one = Contender("Borrower", "v", add, device_side(), transfers="gpukern")
        names = {"rounds": 1, "simulated": True, "protocol": "notes"}
        result = gpukern.compare("add", [40], None, [offer_of(one), "numpy:np.add"], **names)
        borrower, numpy = result.rows
        assert not borrower.protocols and numpy.protocols["notes"] > 0


class TestKept:
    def test_by_place_shape_and_dtype(self):
        made = []
        kept = Kept(lambda shape, dtype: made.append((shape, dtype)) or np.empty(shape, dtype))
        first = kept("a", (2,), "f4")
        assert kept("a", (2,), "f4") is first and kept("b", (2,), "f4") is not first
        assert kept("a", (3,), "f4").shape == (3,) and kept("a", (3,), "f8").dtype == np.float64
        assert kept("a", (2,), "f4") is not first
        assert len(made) == 5

    def test_one_buffer_a_place(self):
        """The one before is gone by the time that another is made."""
        held = [0, 0]

        class Buffer:
            def __init__(self, shape: object, dtype: object) -> None:
                held[0] += 1
                held[1] = max(held)

            def __del__(self) -> None:
                held[0] -= 1

        kept = Kept(Buffer)
        for count in range(4):
            kept("a", (count,), "f4")
        assert held == [1, 1]


class TestPrepared:
    def test_once_for_a_set_of_arrays(self):
        seen: list[object] = []

        def prepare(inputs: Sequence[object], out: object) -> object:
            seen.append("prepare")
            return lambda: seen.append((inputs[0], out))

        run = Prepared(prepare)
        one, other = ("a",), ("b",)
        for inputs, out in ((one, "x"), (one, "x"), (other, "x"), (other, "y")):
            run(inputs, out)
        started = [("a", "x"), ("a", "x"), ("b", "x"), ("b", "y")]
        assert [step for step in seen if step != "prepare"] == started
        assert seen.count("prepare") == 3

    def test_equal_arrays_are_others(self):
        """What is prepared holds pointers, and equal arrays have others."""
        counted: list[object] = []
        run = Prepared(lambda inputs, out: lambda: counted.append(inputs))
        first, second = [1], [1]
        run(first, None)
        run(second, None)
        assert counted[1] is second

    def test_what_it_keeps_of_a_composed_call_goes_before_the_next_is_timed(self):
        """Giving memory back waits for the device, and would be a part of the compute."""
        alive: list[int] = []
        most: list[int] = []

        class Loaded:
            def __init__(self, array: np.ndarray) -> None:
                self.memory = _core.to_device(array)
                alive.append(1)

            def __del__(self) -> None:
                alive.pop()

        def memory(array: object) -> object:
            return array.memory if isinstance(array, Loaded) else array

        def prepare(inputs: Sequence[object], out: object) -> object:
            most.append(len(alive))
            return lambda: _core.add(*map(memory, inputs), out=memory(out))

        def fetch(array: object) -> np.ndarray:
            return memory(array).to_host()

        side = DeviceSide(Loaded, Prepared(prepare), fetch, lambda memory: memory)
        row, _ = compared(Contender("Keeper", "v", add, side), "end-to-end")
        assert row.status == RIGHT and row.phases()
        assert max(most) == 3 and not alive

    def test_what_fails_is_prepared_again(self):
        def prepare(inputs: Sequence[object], out: object) -> object:
            failing.append(1)
            if len(failing) == 1:
                raise RuntimeError("no memory")
            return list

        failing: list[int] = []
        run, inputs = Prepared(prepare), ("a",)
        with pytest.raises(RuntimeError):
            run(inputs, None)
        run(inputs, None)
        assert len(failing) == 2


def test_compilers_are_started_before_libraries_are_imported(monkeypatch):
    called: list[str] = []
    monkeypatch.setattr(
        registry, "_function", lambda path: lambda *given: called.append(f"{path} {given}")
    )
    peers = [
        Peer("a", "a", "", "numpy", needs_gpu=False, ahead="imports"),
        Peer("b", "b", "", needs_gpu=False, ahead="compiles"),
        Peer("c", "c", "", needs_gpu=False),
        Peer("d", "d", "", "there_is_no_such_module", needs_gpu=False, ahead="nothing"),
    ]
    registry.begin_ahead([(peer, None) for peer in peers], [("add", "float32")])
    given = "([('add', 'float32')], None)"
    assert called == [f"compiles {given}", f"imports {given}"]


class TestWhatRan:
    """A time does not stand under the name of a kernel that did not run."""

    def test_a_variant_that_gives_way_is_told(self):
        one = Contender("Yielder", "v", add, device_side(), ran=lambda inputs, out: "other")
        row, said = compared(one)
        assert row.status == RIGHT and row.on_device is not None
        assert "gave way to other, since it does not take such arrays: Yielder v" in said

    def test_one_that_runs_is_not(self):
        one = Contender("Yielder", "v", add, device_side(), ran=lambda inputs, out: "v")
        assert "gave way" not in compared(one)[1]

    def test_gpukern_tells_which_of_its_kernels_ran(self):
        one = offered("gpukern", "add")["f32x4"]
        assert one.ran is not None
        a, b, out = (_core.empty(n)[n - 40 :] for n in (40, 40, 40))
        assert one.ran((a, b), out) == "f32x4"
        a = _core.empty(41)[1:]
        assert one.ran((a, b), out) == "f32"
