"""Sizes as the command takes them."""

from __future__ import annotations

import pytest

from gpukern import _core
from gpukern.bench.cases import plans
from gpukern.bench.cases.sizes import parse_sizes
from gpukern.bench.model.case import make_case

UNDERSTOOD = {
    "1024": [(1024,)],
    "1_000": [(1000,)],
    "4096x4096": [(4096, 4096)],
    "512X256x128": [(512, 256, 128)],
    "2**27-157": [(134217571,)],
    "(2+3)*4//3": [(6,)],
    "-1+5": [(4,)],
    "1k": [(1024,)],
    "1M": [(2**20,)],
    "2g": [(2**31,)],
    "1kx2k-1": [(1024, 2047)],
    "1k,2M, 3": [(1024,), (2**21,), (3,)],
    "1k:16k:x2": [(1024,), (2048,), (4096,), (8192,), (16384,)],
    "3:20:x3": [(3,), (9,)],
    "1000:5000:1000": [(1000,), (2000,), (3000,), (4000,), (5000,)],
    "2**4:2**5-1:2**3": [(16,), (24,)],
    "7:7:x2": [(7,)],
    "8, 1:2:1": [(8,), (1,), (2,)],
    "2**62": [(2**62,)],
    "1:1000:1": [(n,) for n in range(1, 1001)],
}

REFUSED = {
    "": "'' is not a size such as",
    ",": "is not a size",
    "12y": "'12y' is not a size",
    "0": "0 is no positive number",
    "8x0": "'8x0' is not a size",
    "3-5": "-2 is no positive number",
    "1.5": "is not a size",
    "1/2": "'1/2' is not a size",
    "08": "is not a size",
    "1 2": "is not a size",
    "2*(": "is not a size",
    "()": "is not a size",
    "k": "is not a size",
    "4x": "'4x' is not a size",
    "__import__('os')": "is not a size",
    "2(3)": "is not a size",
    "1//0": "'1//0': ",
    "2**-1": "makes no whole number",
    "9**9**9": "more elements than an array may have",
    "2**63": "more elements than an array may have",
    "2**62*8//16": "more elements than an array may have",
    "9" * 90: "more elements than an array may have",
    "(" * 60 + "1": "is not a size",
    "1" * 101: "is longer than 100 characters",
    "1k:16k": "FIRST:LAST:xFACTOR",
    "1:2:3:4": "FIRST:LAST:xFACTOR",
    "5:1:1": "empty range: 5 is more than 1",
    "1:5:0": "is not a size",
    "1:5:x1": "does not end",
    "1:5:x": "is not a size",
    "8x8:16x16:x2": "is not a size",
    "1:1000000:1": "more than 1000 sizes",
}


@pytest.mark.parametrize("text", UNDERSTOOD)
def test_understood(text):
    assert parse_sizes(text) == UNDERSTOOD[text]


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    with pytest.raises(ValueError) as error:
        parse_sizes(text)
    assert REFUSED[text] in str(error.value)
    assert text[:20] in str(error.value), "what came"


def tailed(size: plans.Size) -> bool:
    """Whether neither blocks of 32 nor vectors of 16 bytes divide a size."""
    sides = (size,) if isinstance(size, int) else size
    return any(side % 32 for side in sides)


def test_default_sizes_have_tails_and_are_few():
    for table in (plans._GPU_CASES, plans._SIMULATOR_CASES):
        for op, kinds in table.items():
            sizes = [size for sizes in kinds.values() for size in sizes]
            assert any(map(tailed, sizes)) or op == "matmul"
            assert all(make_case(op, size).bytes_moved <= 2**29 for size in sizes)
    assert len(plans.plan()) <= 6
    assert any(map(tailed, plans._GPU_CASES["matmul"]["float32"]))


def test_no_size_is_larger_than_the_machine():
    with pytest.raises(ValueError, match=r"add 1048576x1048576 float32 takes 12288 GiB, and this"):
        plans.plan("add", [2**20], "float32")


class TestSimulator:
    pytestmark = pytest.mark.skipif(_core.backend() == "cuda", reason="there is a GPU")

    def sizes(self, op: str, *sizes: plans.Size) -> list[str]:
        cases = [make_case(op, size) for size in sizes]
        return [case.size for case in plans.simulable(cases, shorten=True)]

    def test_long_cases_are_shortened_and_short_ones_left(self):
        assert self.sizes("add", 1024, 4096, 8192) == ["1024x1024", "2048x2048"]
        assert self.sizes("add", (3, 2**23)) == [f"3x{2**20}"]
        assert self.sizes("sum", 1000, 2**27 - 157) == ["1000", "1048574"]
        assert self.sizes("matmul", 100, 1000, 4096) == ["100x100", "250x250", "256x256"]
        assert self.sizes("matmul", (64, 2**20, 64)) == ["64x8192x64"]

    def test_what_takes_seconds_is_done_where_it_is_asked_for(self):
        cases = [make_case("add", 4096), make_case("sum", 2**22), make_case("matmul", 512)]
        assert plans.simulable(cases, shorten=False) == cases

    def test_what_takes_minutes_is_refused_with_what_would_do(self):
        with pytest.raises(ValueError, match=r"sum 134217571 float32 .* 8388598 is done in time"):
            plans.simulable([make_case("sum", 2**27 - 157)], shorten=False)


def test_a_gpu_does_all_sizes(monkeypatch):
    monkeypatch.setattr(_core, "backend", lambda: "cuda")
    cases = [make_case("sum", 2**27 - 157), make_case("matmul", 4096)]
    assert plans.simulable(cases, shorten=False) == plans.simulable(cases, shorten=True) == cases
