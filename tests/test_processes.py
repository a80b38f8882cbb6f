"""Contenders in processes of their own: what they do to their process costs their own row alone."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

import gpukern
from gpukern import _core
from gpukern.bench import filling
from gpukern.bench.contenders import registry
from gpukern.bench.model.case import make_case
from gpukern.bench.model.contender import Contender
from gpukern.bench.processes import room, sending, team
from gpukern.bench.processes.member import Member
from gpukern.machine import conditions
from gpukern.processes import LostError

pytest.importorskip("cloudpickle", reason="functions go to other processes by cloudpickle")


def honest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a + b


def compared(*contenders: object, **named: object) -> dict[str, gpukern.bench.model.row.Row]:
    given = {"mode": "end-to-end", "rounds": 2, "isolate": True, **named}
    found = gpukern.compare("add", [300], contenders=["numpy", *contenders, honest], **given)
    rows = {row.contender: row for row in found.rows}
    for name in ("NumPy", "honest"):
        assert rows[name].status == "right", rows[name].detail
        assert rows[name].end_to_end.rounds == given["rounds"]
    return rows


def children() -> list[psutil.Process]:
    return [one for one in psutil.Process().children(recursive=True) if one.is_running()]


def test_who_ends_the_process_is_broken_and_nobody_else():
    def exits(a, b):
        os._exit(3)

    def crashes(a, b):
        os.kill(os.getpid(), signal.SIGSEGV)

    def leaves(a, b):
        raise SystemExit(4)

    before = len(children())
    rows = compared(exits, crashes, leaves)
    assert {rows[name].status for name in ("exits", "crashes", "leaves")} == {"broken"}
    assert rows["exits"].detail == "its process ended with exit status 3"
    assert rows["crashes"].detail == "its process ended by SIGSEGV"
    assert len(children()) == before


def test_who_hangs_is_broken_in_time():
    def hangs(a, b):
        time.sleep(600)

    begin = time.monotonic()
    rows = compared(hangs, patience=6)
    assert rows["hangs"].status == "broken"
    assert rows["hangs"].detail == "nothing was heard of it for 6 s"
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize("last", [1, 3, 4, 5, 9, 14])
def test_whoever_ends_a_process_that_others_share_is_named(last):
    """At its first call, when it is examined on other inputs, and when it is timed."""
    calls = []

    def late(a):
        calls.append(1)
        if len(calls) >= last:
            os._exit(5)
        return np.sum(a)

    def beside(a):
        return np.sum(a)

    found = gpukern.compare(
        "sum", [300], contenders=["numpy", beside, late], mode="end-to-end", rounds=4, processes=2
    )
    rows = {row.contender: row for row in found.rows}
    assert rows["late"].status == "broken"
    assert rows["late"].detail == "its process ended with exit status 5"
    for name in ("NumPy", "beside"):
        assert rows[name].status == "right", rows[name].detail
        assert rows[name].end_to_end.rounds == 4


@pytest.mark.parametrize("way", ["raises", "ends", "hangs", "objects"])
def test_who_waits_until_it_is_seen_from_outside_costs_its_own_row(way):
    import inspect

    def waits(a, b):
        if not any(frame.function == "call" for frame in inspect.stack()):
            return a + b
        if way == "raises":
            raise ValueError("out of luck")
        if way == "ends":
            os._exit(3)
        if way == "hangs":
            time.sleep(60)
        return (a + b).astype(object)

    rows = compared(waits, patience=8)
    said = {
        "raises": "seen from outside its process: ValueError: out of luck",
        "ends": "its process ended with exit status 3",
        "hangs": "nothing was heard of it for 8 s",
        "objects": "returns object in place of numbers",
    }
    assert rows["waits"].status == "broken"
    assert said[way] in rows["waits"].detail


def test_an_error_that_cannot_be_told_costs_its_own_row():
    class Mute(Exception):
        def __str__(self):
            raise ValueError("no words")

    def mute(a, b):
        raise Mute

    rows = compared(mute)
    assert (rows["mute"].status, rows["mute"].detail) == ("broken", "Mute")


def test_a_name_of_two_words_stays_whole_where_its_process_is_lost():
    def leaves(*inputs):
        os._exit(6)

    gpukern.contender("add", "two words")(leaves)
    try:
        rows = compared("two words")
    finally:
        del registry.REGISTERED["two words"]
    assert rows["two words"].status == "broken"
    assert rows["two words"].variant == ""
    assert set(rows) == {"NumPy", "two words", "honest"}


def test_who_patches_the_check_is_wrong():
    def patches(a, b):
        from gpukern.bench import measuring
        from gpukern.bench.checking.verdict import Verdict

        measuring.HostCalls.look = lambda *named, **more: Verdict(0.0)
        return a + b + 1

    rows = compared(patches)
    assert rows["patches"].status == "WRONG"
    assert "seen from outside its process" in rows["patches"].detail
    assert "in place of" in rows["patches"].detail


def test_who_keeps_a_result_for_those_outside_is_wrong():
    import inspect

    kept = []

    def keeps(a, b):
        from gpukern.bench import measuring
        from gpukern.bench.checking.verdict import Verdict

        measuring.HostCalls.look = lambda *named, **more: Verdict(0.0)
        if any(frame.function == "call" for frame in inspect.stack()):
            kept.append(a + b)
            return kept[0]
        return np.float32(0)

    rows = compared(keeps)
    assert rows["keeps"].status == "WRONG"
    assert "seen from outside its process" in rows["keeps"].detail


def test_who_patches_the_clock_is_wrong():
    def patches(a, b):
        from gpukern.bench.clock.machine import MachineClock

        if not hasattr(MachineClock, "honest_now"):
            MachineClock.honest_now = MachineClock.now
            MachineClock.now = lambda self: self.honest_now() / 1e4
        time.sleep(0.02)
        return a + b

    rows = compared(patches)
    assert rows["patches"].status == "WRONG"
    assert "seen from outside the shortest of 20 takes" in rows["patches"].detail


def test_what_a_contender_prints_is_not_in_the_output(capfd):
    def prints(a, b):
        print("chatter")
        return a + b

    assert compared(prints)["prints"].status == "right"
    assert "chatter" not in capfd.readouterr().out


def test_several_processes_measure_each_case():
    found = gpukern.compare(
        "add", [30], contenders=["numpy", "gpukern:f32"], rounds=6, processes=2, simulated=True
    )
    for row in found.rows:
        for name, blocks in row.samples.items():
            assert [len(block) for block in blocks] == [3, 3], name
        assert row.end_to_end.processes == 2
        assert row.end_to_end.rounds == 6


@pytest.mark.parametrize("names", [("numpy", honest), (honest,)])
def test_processes_of_the_comparison_are_counted_as_its_own(names, monkeypatch):
    seen, before = [], len(children())

    class Counting(conditions.Watch):
        def look(self) -> None:
            seen.append((self.ours, 1 + len(children()) - before))

    monkeypatch.setattr(filling, "Watch", Counting)
    more = {"mode": "end-to-end", "rounds": 2, "isolate": True, "processes": 2}
    gpukern.compare("add", [8], contenders=list(names), **more)
    assert set(seen) == {(1 + 2 * len(names),) * 2}


def test_each_block_is_measured_by_a_process_of_its_own(tmp_path):
    seen = tmp_path / "processes"

    def writes(a, b):
        with seen.open("a") as file:
            print(os.getpid(), file=file)
        return a + b

    compared(writes, processes=2)
    assert len(set(seen.read_text().split())) == 2


def test_all_examine_at_once_and_then_time_in_turn(tmp_path):
    seen = tmp_path / "calls"

    def told(a, b):
        with seen.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return a + b

    compared(told, processes=3, rounds=6)
    calls = seen.read_text().split()
    first = [calls.index(each) for each in dict.fromkeys(calls)]
    last = sorted(len(calls) - calls[::-1].index(each) for each in set(calls))
    assert len(first) == 3
    assert max(first) < last[0], "all are called before the first one is done"


def test_where_memory_is_short_each_examines_before_its_own_rounds(tmp_path, monkeypatch):
    seen = tmp_path / "calls"

    def told(a, b):
        with seen.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return a + b

    monkeypatch.setattr(team, "holds", lambda case, processes: False)
    compared(told, processes=3, rounds=6)
    assert len([key for key, _ in itertools.groupby(seen.read_text().split())]) == 3


def test_a_user_without_a_home_can_compare(monkeypatch):
    def none(*_: object):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pathlib.Path.home", none)
    assert compared(processes=2)["NumPy"].end_to_end


def test_so_many_processes_as_memory_holds():
    small = make_case("add", 1000)
    most = _core.devices()[0]["memory_free"] // small.bytes_moved
    assert room.holds(small, 3)
    assert not room.holds(small, most)


def test_who_tunes_does_so_while_nobody_else_is_at_work(tmp_path):
    seen = tmp_path / "calls"

    def offer(op, dtype):
        def told(a, b):
            with seen.open("a") as file:
                file.write(f"{os.getpid()}\n")
            return a + b

        return [Contender("told", "v", told, tunes=True)]

    peer = registry.Peer("told", "told", offer, needs_gpu=False)
    rows = compared(peer, processes=3, rounds=6, isolate=False)
    assert rows["told"].status == "right"
    assert len([key for key, _ in itertools.groupby(seen.read_text().split())]) == 3


def test_first_calls_are_those_of_fresh_processes():
    def compiles(a, b):
        import numpy

        if not hasattr(numpy, "compiled"):
            time.sleep(0.3)
            numpy.compiled = True
        return a + b

    rows = compared(compiles, first_calls=True)
    assert 0.3 <= rows["compiles"].first_call < 3
    assert 0 < rows["honest"].first_call < 0.3
    assert rows["compiles"].end_to_end.value < 0.1
    assert rows["NumPy"].first_call is not None


def test_what_cannot_be_sent_is_said_before_anything_is_measured():
    lock = __import__("threading").Lock()

    def holds(a, b):
        with lock:
            return a + b

    with pytest.raises(ValueError, match=r"cannot be sent to a process of its own: holds"):
        gpukern.compare("add", [8], contenders=[holds], isolate=True)
    assert not children()


def test_without_cloudpickle_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(ValueError, match="pip install cloudpickle"):
        gpukern.compare("add", [8], contenders=[honest], isolate=True)
    result = gpukern.compare("add", [8], contenders=["numpy"], rounds=2, processes=2)
    assert result.rows[0].end_to_end.processes == 2


def test_an_error_of_the_harness_is_raised_here():
    member = Member(30)
    try:
        member.ask("begin", b"no pickle", 1)
        with pytest.raises(RuntimeError, match="Unpickling"):
            member.answer(lambda doing: None)
        member.ask("nothing")
        with pytest.raises(RuntimeError, match="nothing"):
            member.answer(lambda doing: None)
    finally:
        member.end()


def test_a_process_that_is_gone_says_how():
    member = Member(30)
    os.kill(member._process.pid, signal.SIGKILL)
    with pytest.raises(LostError, match="ended by SIGKILL"):
        member.ask("begin", sending.pickled([]), 1)
        member.answer(lambda doing: None)


def test_ctrl_c_returns_what_is_done_and_leaves_no_process(tmp_path):
    """As in a notebook: the comparison is returned, and says that it was interrupted."""
    code = """
import os, pathlib, signal, sys, threading, time
import gpukern
signal.signal(signal.SIGINT, signal.default_int_handler)
calls = pathlib.Path(sys.argv[1])
def slow(a, b):
    with open(calls, "a") as file:
        file.write("x")
    time.sleep(0.05)
    return a + b
def interrupt():
    while not calls.exists() or calls.stat().st_size < 20:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
found = gpukern.compare("add", [8, 9, 10], contenders=["numpy", slow], mode="end-to-end",
                        rounds=60, isolate=True)
import psutil
print(found.interrupted, len(psutil.Process().children()), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "calls")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "True 0"
