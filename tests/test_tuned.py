"""The tables of what was measured for matmul: which row they choose, and what is said of broken
ones."""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import gpukern as gk
from clocks import MadeUpClock
from fakes import NEEDS_FAKE
from gpukern import _core
from gpukern.bench.clock.device import DeviceTimer
from gpukern.bench.tuning import judging, products, proving, search, table
from gpukern.machine import tables

SIMULATOR = "simulator (CPU)"
HEAD = "# gpukern matmul table 2\n# device: {}\n"

CHOSEN = """
import numpy as np, gpukern as gk
from gpukern import _core
def chosen(*operands, dtype="float32"):
    found = gk.variants("matmul", dtype, operands=operands)
    return [each.variant for each in found if each.chosen]
def ran(a, b, **options):
    with gk.profile() as profile:
        got = gk.matmul(a, b, **options)
    want = np.asarray(a if isinstance(a, np.ndarray) else a.to_host()).astype(np.float64)
    want = want @ np.asarray(b if isinstance(b, np.ndarray) else b.to_host()).astype(np.float64)
    got = got if isinstance(got, np.ndarray) else got.to_host()
    assert np.allclose(got, want, rtol=1e-2, atol=1e-2)
    return profile.calls[0].variant
rng = np.random.default_rng(1)
def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)
"""


def write(folder: Path, lines: str, device: str = SIMULATOR, head: str = HEAD) -> Path:
    """The user's own table, in a cache folder."""
    path = folder / "gpukern" / "matmul" / tables.own_table(device).name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head.format(device) + lines)
    return path


@pytest.fixture
def with_table(script, tmp_path):
    """Run code on the simulator with a table of these lines; what it wrote to standard error."""

    def run(lines: str, code: str, **more) -> str:
        write(tmp_path, lines, **more)
        done = script(CHOSEN + code, XDG_CACHE_HOME=str(tmp_path), GPUKERN_DEVICE="sim")
        assert done.returncode == 0, done.stderr
        return done.stderr

    return run


def test_a_range_decides(with_table):
    said = with_table(
        """
# a comment, and an empty line

float32 nn 16 64-128 64-128 64-128 naive warptiled
float32 nn 16 128-256 64-128 64-96 coalesced warptiled
float32 nn 16 512-768 64-128 64-96 naive tiled
float32 nn 1 64-128 64-128 64-128 tiled thread_tile
float32 tn 16 64-96 64-96 64-96 thread_column warptiled
""",
        """
assert chosen((128, 128), (128, 128)) == ["naive"]
assert chosen((67, 64), (64, 96)) == ["naive"], "rows of A are free to be any number"
assert chosen((129, 64), (64, 128)) == chosen((256, 96), (96, 68)) == ["coalesced"]
assert chosen((132, 100), (100, 128)) == ["warptiled"], "by the rule: K is in no range"
assert chosen((60, 64), (64, 128)) == chosen((20000, 64), (64, 128)) == ["warptiled"]
assert chosen((64, 64), (64, 64)) == ["small"], "the rule's choice is not what it was faster than"
assert chosen((600, 64), (64, 128)) == ["warptiled"], "nor is it here"
assert chosen((127, 127), (127, 127)) == ["tiled"], "rows that are not multiples of 16 bytes"
assert chosen((128, 127), (127, 128)) == ["tiled"]
assert chosen((129, 127), (127, 127)) == ["thread_tile"]
assert chosen(normal(72, 68).T, normal(72, 96)) == ["thread_column"]
assert chosen(normal(72, 68).T, normal(72, 97)) == ["thread_tile"], "not measured"
assert chosen(normal(72, 72), normal(72, 72).T) == ["warptiled"], "nor was this"
assert chosen((128, 128), (128, 128), dtype="float64") == ["tiled"]
assert chosen((3, 64), (64, 64)) == ["few_vectors"], "few vectors have rows of their own"
assert chosen((2, 64, 64), (64, 96)) == ["naive"], "a stack that is one product"
assert chosen((2, 64, 64), (2, 64, 96)) == ["warptiled"], "and one that is not, by the rule"
wide = gk.to_device(normal(72, 104))
assert chosen(wide[:, :100], normal(100, 72)) == ["naive"]
assert chosen(wide[:, :101], normal(101, 72)) == ["warptiled"], "neither aligned nor ragged"
assert chosen(wide[:, 1:101], normal(100, 72)) == ["tiled"]
""",
    )
    assert said == ""


def test_the_product_runs_by_it(with_table):
    said = with_table(
        "float32 nn 16 64-16384 64-16384 64-16384 naive warptiled\n"
        "float32 tn 16 64-16384 64-16384 64-16384 coalesced warptiled\n",
        """
a, b = normal(64, 68), normal(68, 80)
x, y = gk.to_device(a), gk.to_device(b)
assert ran(x, y) == ran(a, b) == "naive"
assert ran(gk.to_device(a.T.copy()).T, y) == ran(np.asfortranarray(a), b) == "coalesced"
for name in ("tiled", "warptiled"):
    assert ran(x, y, variant=name) == name, "a name goes before the table"
rows = _core.rows()
assert rows[_core.matmul_row(x, y)]["variant"] == "naive"
assert rows[_core.matmul_row(x, y, by_rule=True)]["variant"] == "warptiled"
big = normal(1024, 256)
assert ran(big, normal(256, 1024)) == "naive", "in panels"
i = gk.to_device(np.ones((80, 80), np.int8))
assert gk.matmul(i, i, dtype="int32").to_host()[0, 0] == 80
""",
    )
    assert said == ""


def test_a_row_that_does_not_run_here_is_passed_over(with_table):
    said = with_table(
        "float32 nn 16 64-128 64-128 64-128 tma warptiled\n"
        "float32 nn 16 128-256 64-128 64-128 coalesced cublas\n",
        """
for _ in range(2):
    assert chosen((72, 72), (72, 72)) == ["warptiled"]
    assert chosen((200, 72), (72, 72)) == ["warptiled"], "cublas is not the default here"
""",
    )
    assert said == ""


def test_every_size_finds_its_range(with_table):
    """The borders are those of the tuner, and each belongs to the range below it."""
    sizes = products.SIZES
    assert len(sizes) == 17
    assert all(1.3 < high / low <= 1.5 for low, high in itertools.pairwise(sizes))
    variants = ("naive", "coalesced", "tiled")
    expected: dict[int, str] = {63: "warptiled", 16385: "warptiled", 2**40: "warptiled"}
    lines = ""
    for i, (low, high) in enumerate(itertools.pairwise(sizes)):
        lines += f"float32 nn 16 {low}-{high} 64-128 64-128 {variants[i % 3]} warptiled\n"
        expected |= {low + 1: variants[i % 3], high: variants[i % 3]}
    expected[64] = variants[0]
    code = f"""
for size, variant in {expected}.items():
    assert chosen((size, 72), (72, 72)) == [variant], (size, chosen((size, 72), (72, 72)))
"""
    assert with_table(lines, code) == ""


def test_of_two_lines_the_later_counts(with_table):
    lines = (
        "float32 nn 16 64-16384 64-16384 64-16384 naive warptiled\n"
        "float32 nn 16 128-192 64-96 64-96 warptiled warptiled\n"
        "float32 nn 16 192-256 64-96 64-96 tiled warptiled\n"
    )
    code = """
found = [chosen((size, 72), (72, 72)) for size in (128, 129, 193, 257)]
assert found == [["naive"], ["warptiled"], ["tiled"], ["naive"]], found
"""
    assert with_table(lines, code) == ""


SIZED = "float32 nn 16 64-128 64-128"
WRONG = [
    (f"{SIZED} 64-128 nosuch cublas\n", "line 3: this gpukern has no variant 'nosuch' of matmul"),
    (f"{SIZED} 64-128 tiled nosuch\n", "line 3: this gpukern has no variant 'nosuch' of matmul"),
    ("\n\nfloat33 nn 16 64-128 64-128 64-128 tiled naive\n", "line 5: 'float33' is no dtype"),
    ("float32 nx 16 64-128 64-128 64-128 tiled naive\n", "line 3: 'nx 16' is not how operands"),
    ("float32 nn 8 64-128 64-128 64-128 tiled naive\n", "line 3: 'nn 8' is not how operands lie"),
    (f"{SIZED} 64 tiled naive\n", "line 3: '64' is no range from one of the sizes 64, 96, 128"),
    (f"{SIZED} 128-64 tiled naive\n", "line 3: '128-64' is no range"),
    (f"{SIZED} 64-64 tiled naive\n", "line 3: '64-64' is no range"),
    (f"{SIZED} 65-128 tiled naive\n", "line 3: '65-128' is no range"),
    (f"{SIZED} 64-100 tiled naive\n", "line 3: '64-100' is no range"),
    (f"{SIZED} 64-32768 tiled naive\n", "line 3: '64-32768' is no range"),
    (f"{SIZED} 64-128x tiled naive\n", "line 3: '64-128x' is no range"),
    (f"{SIZED} - tiled naive\n", "line 3: '-' is no range"),
    (f"{SIZED} 64-99999999999999999999 tiled naive\n", "'64-99999999999999999999' is no range"),
    (f"{SIZED} 64-128 tiled\n", "line 3: a line has a dtype"),
    (f"{SIZED} 64-128 tiled naive naive\n", "line 3: a line has a dtype"),
    ("float64 nn 16 64-128 64-128 64-128 tma tiled\n", "has no variant 'tma' of matmul that may"),
    ("# measured: float32 float33\n", "line 3: 'float33' is no dtype"),
    ("#" + "x" * 600 + "\n", "line 3: the line is longer than 510 characters"),
    ("float32 nn\0 16 64-128 64-128 64-128 tiled naive\n" * 2, "line 3: the line is longer"),
    ("# device: NVIDIA H200\n", "line 3: the table is of the device 'NVIDIA H200', and this one"),
]


@pytest.mark.costly(3)
@pytest.mark.parametrize(("lines", "sentence"), WRONG, ids=[each[1][:40] for each in WRONG])
def test_a_broken_table_is_one_warning(with_table, tmp_path, lines, sentence):
    """It names the file and the line, and what runs is what would run without a table."""
    code = "assert chosen((72, 72), (72, 72)) == ['warptiled'] and ran(*2 * [normal(9, 9)])\n"
    said = with_table(lines, code)
    assert sentence in said, said
    path = next(tmp_path.rglob("*.txt"))
    assert f"{path}, line" in said
    assert said.count("RuntimeWarning") == 1
    assert "gpukern tune" in said


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        ("", "line 1: this is no table that this gpukern reads: it begins with ''"),
        ("hello\n", "line 1: this is no table that this gpukern reads: it begins with 'hello'"),
        ("# gpukern matmul table 1\n", "line 1: the table is of version 1, and this gpukern reads"),
        ("\x80\xff\n", "line 1: this is no table"),
        (
            "# gpukern matmul table 2\nfloat32 nn 16 64-96 64-96 64-96 tiled naive\n",
            "line 2: no line before this one names the device",
        ),
        ("# gpukern matmul table 2\n# measured: float32\n", "line 2: no line before"),
    ],
)
def test_what_is_no_table(with_table, head, sentence):
    assert sentence in with_table("", "assert ran(*2 * [normal(9, 9)])", head=head)


def test_a_warning_that_is_an_error_is_the_first_calls(script, tmp_path):
    write(tmp_path, "nonsense\n")
    done = script(
        """
import warnings, numpy as np, gpukern as gk
warnings.simplefilter("error")
a = np.ones((3, 3), np.float32)
try:
    gk.add(a, a)
except RuntimeWarning as warning:
    assert "line 3" in str(warning)
    print("raised")
assert (gk.matmul(a, a) == 3).all()
""",
        XDG_CACHE_HOME=str(tmp_path),
        GPUKERN_DEVICE="sim",
    )
    assert (done.returncode, done.stdout) == (0, "raised\n"), done.stderr


def test_what_cannot_be_read_is_said(script, tmp_path):
    code = "import gpukern as gk, numpy as np; gk.add(np.ones(3), np.ones(3))"
    write(tmp_path, "").chmod(0)
    done = script(code, XDG_CACHE_HOME=str(tmp_path), GPUKERN_DEVICE="sim")
    assert done.returncode == 0, done.stderr
    path = next(tmp_path.rglob("*.txt"))
    try:
        path.read_text()
    except PermissionError:
        assert f"{path}: cannot be read: Permission denied" in done.stderr


def test_where_tables_are(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tables.own_table("NVIDIA H200") == tmp_path / "gpukern/matmul/nvidia-h200.txt"
    assert tables.shipped_table("NVIDIA H200").name == "nvidia-h200.txt"
    assert str(tables.own_table("NVIDIA H200")) not in tables.find_tables("NVIDIA H200")
    path = write(tmp_path, "", "NVIDIA H200")
    assert tables.find_tables("NVIDIA H200")[-1] == str(path)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert str(path) not in tables.find_tables("NVIDIA H200")


def test_the_users_own_counts_for_the_dtypes_that_it_has(script, tmp_path):
    ranges = "64-128 64-128 64-128"
    write(tmp_path / "own", f"# measured: bfloat16\nfloat32 nn 16 {ranges} coalesced warptiled\n")
    shipped = write(
        tmp_path / "shipped",
        f"float32 nt 16 {ranges} naive warptiled\nfloat64 nn 16 {ranges} naive tiled\n"
        f"float64 nt 16 {ranges} naive tiled\n",
    )
    code = f"""
from pathlib import Path
from gpukern.machine import tables
tables._SHIPPED = Path({str(shipped.parent)!r})
{CHOSEN}
assert chosen((72, 72), (72, 72)) == ["coalesced"]
assert chosen((72, 72), (72, 72), dtype="float64") == [FLOAT64]
assert chosen(normal(72, 72), normal(72, 72).T) == ["warptiled"], "float32 is the user's own"
"""
    for more, float64 in (("", "naive"), ("# measured: float64\n", "tiled")):
        path = next((tmp_path / "own").rglob("*.txt"))
        path.write_text(path.read_text() + more)
        done = script(
            code.replace("FLOAT64", repr(float64)),
            XDG_CACHE_HOME=str(tmp_path / "own"),
            GPUKERN_DEVICE="sim",
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr


@NEEDS_FAKE
@pytest.mark.skipif(
    not {"90", "90a"} & set(_core.build_report()["architectures"]),
    reason="this build has no code for 9.0",
)
def test_a_plain_row_that_was_measured_is_worth_a_copy(with_blas, tmp_path):
    """tma reads rows alone: what is transposed is packed for it, if it was measured so."""
    write(tmp_path, "float32 tn 16 64-96 64-96 64-96 tma cublas\n", "Fake GPU 0")
    with_blas(
        """
def ran(a, b, **options):
    with gk.profile() as profile:
        gk.matmul(a, b, **options)
    return profile.calls[0].variant
def kernels(*operands):
    return len([step for step in steps(lambda: gk.matmul(*operands)) if step[0] == "l"])
x, y = (gk.to_device(np.ones((72, 72), np.float32)) for _ in range(2))
odd = gk.to_device(np.ones((72, 69), np.float32))
assert (ran(x, y), ran(x.T, y), ran(x, y.T), ran(x.T, odd)) == ("cublas", "tma", "cublas", "cublas")
assert kernels(x.T, y) == 2, "a copy and the product"
assert ran(x[:67].T, y[:67]) == "cublas", "packed its rows would be no multiples of 16 bytes"
assert kernels(x[:67].T, y[:67]) == 0, "and so it is not packed"
""",
        XDG_CACHE_HOME=tmp_path,
    )


def test_shapes_and_arrays_of_variants():
    found = gk.variants("matmul", operands=((100, 64), (64, 70)))
    assert sum(variant.chosen for variant in found) == 1
    assert {variant.dtype for variant in found} == {"float32"}
    lines = repr(found).splitlines()
    assert len(lines) == 1 + len(found)
    assert sum("this one" in line for line in lines) == 1
    a = gk.to_device(np.ones((100, 64), np.float16))
    with gk.profile() as profile:
        gk.matmul(a, a.T)
    assert profile.calls[0].variant in [
        variant.variant for variant in gk.variants("matmul", operands=(a, a.T)) if variant.chosen
    ]
    assert not any(each.chosen for each in gk.variants("matmul", operands=((0, 3), (3, 2))))
    assert all(variant.chosen is None for variant in gk.variants("matmul"))


@pytest.mark.parametrize(
    ("arguments", "operands", "error", "sentence"),
    [
        (("add",), ((3, 3), (3, 3)), ValueError, "variants: operands has to be left out for"),
        ((), ((3, 3), (3, 3)), ValueError, "variants: operands has to be left out for"),
        (("matmul",), ((3, 3),), TypeError, "two arrays or two shapes"),
        (("matmul",), "ab", TypeError, "two arrays or two shapes"),
        (("matmul",), ((3, "x"), (3, 3)), TypeError, "variants: 'str' object cannot be"),
        (("matmul",), ((3, -1), (3, 3)), ValueError, "variants: "),
        (("matmul",), ((3, 4), (3, 3)), ValueError, "mismatch in its core dimension"),
        (("matmul",), ((), (3, 3)), ValueError, "does not have enough dimensions"),
        (("matmul",), (object(), (3, 3)), TypeError, "variants: a has to be"),
        (("matmul", "int8"), (np.ones((3, 3)), (3, 3)), TypeError, "different dtypes"),
        (("matmul", "int8"), 2 * (np.ones((3, 3)),), ValueError, "are of float64, and dtype is"),
    ],
)
def test_operands_that_variants_refuses(balanced, arguments, operands, error, sentence):
    with pytest.raises(error, match=sentence):
        gk.variants(*arguments, operands=operands)


# --- gpukern tune -------------------------------------------------------------------------------

WAY = products.Way("float32", a_transposed=False, b_transposed=False, aligned=True)
RAGGED = products.Way("float32", a_transposed=False, b_transposed=False, aligned=False)
Speeds = Callable[[products.Product], dict[str, float]]


def judge_by(speeds: Speeds, default: str = "cublas") -> judging.Judge:
    """A made-up device, on which variants are so many times as fast as the default."""

    def judge(product: products.Product, names: Sequence[str] | None) -> judging.Verdict:
        found = speeds(product)
        return judging.Verdict(default, {name: found[name] for name in names or found})

    return judge


def never(product: products.Product) -> bool:
    return False


def only(way: products.Way, speeds: Speeds, elsewhere: float = 0.5) -> Speeds:
    """The same, but for products that lie otherwise."""

    def found(product: products.Product) -> dict[str, float]:
        mine = speeds(product)
        return mine if product.way == way else dict.fromkeys(mine, elsewhere)

    return found


def searched(speeds: Speeds, is_over: Callable[[products.Product], bool] = never) -> search.Search:
    """The grid of float32 on that device."""
    done = search.Search(judge_by(speeds), is_over)
    done.run(["float32"])
    return done


def holding(boxes: Sequence[search.Box], way: products.Way, *size: int) -> search.Box:
    """The box that a product is in."""
    places = [next(i for i, border in enumerate(products.SIZES[1:]) if border >= n) for n in size]
    found = [
        box
        for box in boxes
        if box.way == way
        and all(low <= place < low + box.side for low, place in zip(box.low, places, strict=True))
    ]
    assert len(found) == 1, found
    return found[0]


def test_who_wins_everywhere_is_chosen_everywhere_that_was_measured():
    done = searched(only(WAY, lambda product: {"tma": 1.2, "naive": 1.1}))
    choices = done.choices()
    assert set(choices.values()) == {search.Choice("tma", "cublas")}
    assert {box.way for box in choices} == {WAY}
    assert {box.side for box in done.boxes if box.way != WAY} == {4}, "not worth a closer look"
    assert {box.side for box in done.boxes if box.way == WAY} == {1}
    at = holding(done.boxes, WAY, 16384, 16384, 16384)
    assert at not in choices, "that takes too long, and what was not measured is a no"
    assert holding(done.boxes, WAY, 9000, 8192, 8192) not in choices, "nor were all its corners"
    assert holding(done.boxes, WAY, 8192, 8192, 8192) in choices
    for way in search.ways(["float32"]):
        held = sum(box.side**3 for box in done.boxes if box.way == way)
        assert held == 16**3, "each size is in one box"


def test_one_corner_is_enough_against_a_choice():
    """Few tiles and a long K, as one of the corners has them, and the variant loses there."""

    def speeds(product: products.Product) -> dict[str, float]:
        return {"wgmma": 0.25 if product.m <= 4096 and product.k >= 1024 else 1.3}

    done = searched(only(WAY, speeds))
    choices = done.choices()
    assert holding(done.boxes, WAY, 6144, 512, 1024) not in choices
    assert holding(done.boxes, WAY, 8192, 512, 768) in choices
    for box in choices:
        low, high = (products.SIZES[i] for i in (box.low[0], box.low[2] + box.side))
        assert low > 4096 or high < 1024


@pytest.mark.parametrize(("speed", "wins"), [(1.0, False), (1.02, False), (1.04, True)])
def test_a_margin_decides(speed, wins):
    done = searched(only(WAY, lambda product: {"tma": speed}))
    assert bool(done.choices()) is wins


def test_who_wins_a_part_has_that_alone():
    """Between two corners that one wins and two that another wins, nobody does."""

    def speeds(product: products.Product) -> dict[str, float]:
        large = product.m > 1024
        return {"tma": 1.5 if large else 0.9, "warptiled": 0.9 if large else 1.1}

    done = searched(only(WAY, speeds))
    choices = done.choices()
    named = {size: choices.get(holding(done.boxes, WAY, size, 512, 512)) for size in (900, 2000)}
    assert named[900] == search.Choice("warptiled", "cublas")
    assert named[2000] == search.Choice("tma", "cublas") or named[2000] is None
    assert choices.get(holding(done.boxes, WAY, 1200, 512, 512)) is None
    assert choices[holding(done.boxes, WAY, 1700, 512, 512)].variant == "tma"


def test_a_ragged_box_is_won_with_odd_sizes_and_with_even_ones():
    seen = []

    def speeds(product: products.Product) -> dict[str, float]:
        seen.append(product)
        return {"tiled": 1.5 if product.m % 2 else 0.9}

    assert not searched(only(RAGGED, speeds)).choices()
    assert all(one.way.has(one.m, one.n, one.k) for one in seen)
    assert {size for one in seen if not one.way.aligned for size in (one.m, one.k)} <= {
        size - less for size in products.SIZES for less in (1, 2)
    }
    assert searched(only(RAGGED, lambda product: {"tiled": 1.5})).choices()


def test_an_unlike_default_is_a_no():
    """What the rule chooses changes within a box: what one is faster than is not known there."""

    def judge(product: products.Product, names: Sequence[str] | None) -> judging.Verdict | None:
        default = "cublas" if product.m > 1000 else "warptiled"
        return judging.Verdict(default, {"tma": 1.2}) if product.n < 5000 else None

    done = search.Search(judge, never)
    done.run(["float32"])
    choices = done.choices()
    assert choices[holding(done.boxes, WAY, 700, 100, 100)].than == "warptiled"
    assert choices[holding(done.boxes, WAY, 1500, 100, 100)].than == "cublas"
    assert holding(done.boxes, WAY, 1000, 100, 100) not in choices
    assert holding(done.boxes, WAY, 2000, 6000, 100) not in choices, "it does not fit"


def test_time_goes_where_variants_are_close():
    """A box is divided as a whole or not at all; those that are nearly won come first."""
    seen: list[products.Product] = []

    def speeds(product: products.Product) -> dict[str, float]:
        seen.append(product)
        return {"tma": 1.2 if product.m >= 1024 else 0.97 if product.n > 2000 else 0.5}

    whole = searched(only(WAY, speeds))
    count = len(seen)
    assert whole.measured == count
    assert holding(whole.boxes, WAY, 100, 100, 100).side == 4, "far behind at every corner"
    assert holding(whole.boxes, WAY, 100, 3000, 100).side < 4
    seen.clear()
    most = 1700
    part = searched(only(WAY, speeds), lambda product: len(seen) >= most)
    assert 100 < part.measured <= most < count
    assert sum(box.side**3 for box in part.boxes if box.way == WAY) == 16**3
    assert (
        holding(part.boxes, WAY, 1000, 100, 100).side
        < holding(part.boxes, WAY, 100, 3000, 100).side
    )
    none = searched(speeds, lambda product: True)
    assert (none.boxes, none.choices(), none.measured) == ([], {}, 0)


def test_small_products_of_every_way_come_first():
    seen: list[products.Product] = []

    def speeds(product: products.Product) -> dict[str, float]:
        seen.append(product)
        return {"tma": 0.5}

    searched(speeds)
    assert {one.way for one in seen[: 8 * 12]} == set(search.ways(["float32"]))
    assert max(one.m * one.n * one.k for one in seen) <= 8192**3


# --- proving

BOX = search.Box(WAY, (0, 0, 0), 2)
OTHER = search.Box(RAGGED, (4, 4, 4), 1)


def well(product: products.Product, variant: str) -> float:
    return 1.0


def test_a_box_that_loses_on_a_random_shape_is_given_up():
    tma = search.Choice("tma", "cublas")
    both = {BOX: tma, OTHER: tma}
    proof = proving.prove(both, judge_by(lambda product: {"tma": 0.991}), well, never)
    assert (proof.kept, proof.lost, proof.untried) == (both, 0, 0)
    proof = proving.prove(both, judge_by(only(WAY, lambda product: {"tma": 1.1})), well, never)
    assert (proof.kept, proof.lost, proof.untried) == ({BOX: tma}, 1, 0)
    assert sorted(proof.speeds) == [0.5, *16 * [1.1]], "16 rounds, and one that lost"
    for words in ("17 random shapes", "1.050x", "the worst 0.500x; 1 boxes", "more than 1%"):
        assert words in proof.text


def test_a_box_that_no_shape_was_drawn_in_is_given_up():
    tma = search.Choice("tma", "cublas")
    turns = iter((False, True))
    judge = judge_by(lambda product: {"tma": 1.1})
    proof = proving.prove({BOX: tma, OTHER: tma}, judge, well, lambda product: next(turns))
    assert (len(proof.kept), proof.lost, proof.untried) == (1, 0, 1)
    proof = proving.prove({BOX: tma}, judge_by(lambda product: {"tma": 1.1}, "small"), well, never)
    assert (proof.kept, proof.speeds) == ({}, []), "the rule would choose another one there"
    assert proof.text == "no random shapes were drawn"
    assert proving.prove({}, judge, well, never).kept == {}


def test_every_other_shape_fits_the_variant_badly():
    """One that begins a last round of tiles with a single one is seldom drawn by chance."""
    large = search.Box(WAY, (8, 8, 8), 1)  # from 1024 to 1536
    seen: list[float] = []

    def bad(product: products.Product, variant: str) -> float:
        assert variant == "wgmma"
        return judging.fit(product, (128, 256), 50)

    def speeds(product: products.Product) -> dict[str, float]:
        seen.append(bad(product, "wgmma"))
        return {"wgmma": 1.1}

    choice = search.Choice("wgmma", "cublas")
    assert proving.prove({large: choice}, judge_by(speeds), bad, never).kept
    assert len(seen) == 16
    assert max(seen[1::2]) < statistics.median(seen[::2])
    whole = products.Product(WAY, 1280, 1280, 1024)
    assert judging.fit(whole, (128, 256), 50) == 1.0
    over = products.Product(WAY, 1281, 1280, 1024)
    assert judging.fit(over, (128, 256), 50) == pytest.approx(0.5, rel=0.01)


def boxes(chance: random.Random, count: int) -> Iterator[search.Box]:
    for way in search.ways(products.DTYPES):
        for _ in range(count):
            side = chance.choice((1, 2, 4))
            m, n, k = (chance.randrange(0, 16, side) for _ in range(3))
            yield search.Box(way, (m, n, k), side)


def test_shapes_are_drawn_in_their_box():
    chance = random.Random(3)
    for box in boxes(chance, 40):
        product = proving.drawn(box, chance)
        assert product.way == box.way
        assert product.way.has(product.m, product.n, product.k)
        for place, size in zip(box.low, (product.m, product.n, product.k), strict=True):
            assert products.SIZES[place] < size <= products.SIZES[place + box.side]
    drawn = [proving.drawn(OTHER, chance) for _ in range(100)]
    assert {one.k % 4 for one in drawn} == {0, 1, 2, 3}
    assert len({one.m for one in drawn}) > 50


def test_the_shapes_of_a_box_go_by_its_line(with_table):
    """The tuner and the engine agree on which products a line is about."""
    chance = random.Random(4)
    found = [box for box in boxes(chance, 1) if box.way.dtype == "float32"]
    choice = search.Choice("naive", "warptiled")
    lines = table.lines_of(
        {box: choice if box.way.aligned else search.Choice("naive", "thread_tile") for box in found}
    )
    shapes = []
    for box in found:
        for _ in range(20):
            one = proving.drawn(box, chance)
            shapes.append((one.m, one.n, one.k, box.way.a_transposed, box.way.b_transposed))
    text = table.table(SIMULATOR, ["float32"], ["date: today"], lines)
    said = with_table(
        "",
        f"""
def lying(rows, columns, transposed):
    seen = np.broadcast_to(np.float32(0), (rows, columns))
    strides = (4, 4 * rows) if transposed else (4 * columns, 4)
    return np.lib.stride_tricks.as_strided(np.empty(1, np.float32), (rows, columns), strides)
for m, n, k, a, b in {shapes}:
    got = chosen(lying(m, k, a), lying(k, n, b))
    assert got == ["naive"], (m, n, k, a, b, got)
""",
        head=text,
    )
    assert said == ""


# --- judging


def row(variant: str, **more: object) -> dict[str, object]:
    usual = {"op": "matmul", "dtype": "float32", "runs": True, "named": False, "alignment": 1}
    return {"variant": variant, **usual, **more}


def test_who_may_be_a_default_takes_part():
    rows = [
        row("naive"),
        row("tma", alignment=16),
        row("cublas"),
        row("tf32", named=True),
        row("mma", runs=False),
        row("tiled", dtype="float64"),
        row("few", op="matmul_few_vectors"),
    ]
    assert judging.contest(rows, "float32", aligned=True).names == ["naive", "tma", "cublas"]
    assert judging.contest(rows, "float32", aligned=False).names == ["naive", "cublas"]


def test_the_hopeless_are_not_tried_on_larger_products():
    contest = judging.Contest(["naive", "tma"])
    flat, cube = products.Product(WAY, 16384, 64, 64), products.Product(WAY, 512, 512, 512)
    large = products.Product(WAY, 1024, 512, 512)
    contest.learn(flat, {"naive": 0.1, "tma": 1.0})
    assert contest.candidates(large) == ["naive", "tma"], "a flat product does not tell"
    contest.learn(large, {"naive": 0.3, "tma": 0.34})
    contest.learn(cube, {"naive": 0.4, "tma": 1.0})
    assert contest.candidates(large) == ["naive", "tma"]
    assert contest.candidates(products.Product(WAY, 1025, 512, 512)) == ["tma"]


def raced(
    times: dict[str, Callable[[int], float]], default: str
) -> tuple[dict[str, float], dict[str, int]]:
    """The speeds of variants by a made-up clock, and how often each was called."""
    clock = MadeUpClock()
    calls = dict.fromkeys(times, 0)

    def start(name: str) -> Callable[[], None]:
        def work() -> None:
            calls[name] += 1
            clock.launch(times[name](clock.flushes))

        return work

    return judging.race(DeviceTimer(clock), {name: start(name) for name in times}, default), calls


def test_a_race_is_against_the_default():
    times = {"slow": 5e-3, "good": 1.1e-4, "best": 1e-4, "fair": 1.25e-4, "usual": 1.2e-4}
    speeds, calls = raced({name: lambda _, t=time: t for name, time in times.items()}, "usual")
    want = {name: 1.2e-4 / time for name, time in times.items() if name != "usual"}
    assert speeds == pytest.approx(want, rel=0.05)
    assert calls["slow"] <= 3
    assert calls["fair"] == calls["usual"] == calls["best"], "in the same rounds"
    lone, calls = raced({"usual": lambda _: 1e-4, "slow": lambda _: 1e-3}, "usual")
    assert lone["slow"] < 0.2
    assert calls["usual"] == 3, "nobody is left to be held against it"
    speeds, calls = raced({"usual": lambda _: 1e-5, "behind": lambda _: 1.2e-5}, "usual")
    assert speeds["behind"] == pytest.approx(1 / 1.2, rel=0.02)
    assert calls["behind"] < 3 + 6 * 18, "two rounds tell"


def test_a_clock_that_drifts_changes_no_speed():
    """The device becomes slower with every round; both are timed in each."""
    drifting = {
        name: lambda flushes, t=time: t * 1.02**flushes
        for name, time in {"usual": 1e-4, "tma": 0.9e-4}.items()
    }
    speeds, _ = raced(drifting, "usual")
    assert speeds["tma"] == pytest.approx(1 / 0.9, rel=0.005)


def test_long_products_are_timed_call_by_call():
    speeds, calls = raced({"usual": lambda _: 30e-3, "tma": lambda _: 29e-3}, "usual")
    assert speeds["tma"] == pytest.approx(30 / 29, rel=0.01)
    assert calls == {"usual": 9, "tma": 9}


def test_operands_lie_as_they_are_asked_for(balanced):
    operands = products.Operands()
    for dtype in ("float32", "float16"):
        for way in search.ways([dtype]):
            product = products.Product(way, 40, 24, 56)
            a, b, out = operands.of(product)
            assert (a.shape, b.shape, out.shape) == ((40, 56), (56, 24), (40, 24))
            for array, transposed in ((a, way.a_transposed), (b, way.b_transposed)):
                strides = array.__cuda_array_interface__["strides"]
                assert (strides is not None) is transposed
            got = np.asarray(gk.matmul(a, b, out=out).to_host()).astype(np.float64)
            want = a.to_host().astype(np.float64) @ b.to_host().astype(np.float64)
            assert np.allclose(got, want, rtol=1e-2, atol=1e-1)
            assert np.abs(a.to_host()).max() > 1
    del operands, a, b, out


def test_operands_of_other_dtypes_make_room(balanced, monkeypatch):
    operands = products.Operands()
    small, large = products.Product(WAY, 40, 24, 56), products.Product(WAY, 48, 24, 56)
    half = products.Way("float16", a_transposed=False, b_transposed=False, aligned=True)
    operands.of(products.Product(half, 40, 24, 56))
    operands.of(small)
    asked: list[str] = []

    def empty(shape: object, dtype: str) -> object:
        asked.append(dtype)
        if len(asked) == 1:
            raise MemoryError
        return _core.empty(shape, dtype)

    monkeypatch.setattr(products, "_core", FewRooms(empty))
    a, _, _ = operands.of(large)
    assert a.shape == (48, 56)
    assert {dtype for dtype, _ in operands._held} == {"float32"}
    del operands, a


class FewRooms:
    """_core, with another ``empty``."""

    def __init__(self, empty: Callable[[object, str], object]) -> None:
        self.empty = empty

    def __getattr__(self, name: str) -> object:
        return getattr(_core, name)


def test_other_dtypes_are_kept():
    line = "float16 nn 16 64-96 64-96 64-96 mma cublas"
    text = table.table("GPU", ["float32", "float16", "float64"], [], [WON, line])
    assert table.kept(text, "GPU", ["float32"]) == (["float16", "float64"], [line])
    assert table.kept(text, "another", ["float32"]) == ([], [])
    assert table.kept("", "GPU", ["float32"]) == table.kept("nonsense\n", "GPU", []) == ([], [])
    older = text.replace("table 2", "table 1")
    assert table.kept(older, "GPU", ["float32"]) == ([], [])


WON = "float32 nn 16 64-96 64-96 64-96 tma cublas"


def test_a_table_is_in_order():
    later = ["float32 nn 16 128-192 64-96 64-96 tma cublas", "float32 nn 1 64-96 64-96 64-96 a b"]
    text = table.table("GPU", ["float32"], ["date: today"], [later[1], later[0], WON])
    head = ["# gpukern matmul table 2", "# device: GPU", "# measured: float32", "# date: today"]
    assert text == "\n".join([*head, WON, *later]) + "\n"


def test_the_command_refuses_the_simulator(script):
    if _core.backend() != "sim":
        pytest.skip("there is a GPU")
    done = script("from gpukern.__main__ import main; main()", "tune", GPUKERN_DEVICE="sim")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "Error: there is nothing to tune on the simulator, whose times are not a GPU's"
    )
    done = script("from gpukern.__main__ import main; main()", "tune", "--dtype", "int8")
    assert done.returncode == 2
    assert "--dtype int8: there are float32, bfloat16, float16, float64" in done.stderr


@NEEDS_FAKE
def test_the_command_on_a_gpu(with_blas, tmp_path):
    """From the command to the choice of a later process, on a made-up clock: cublas is the best of
    small products there, and tiled of large ones, but for some shapes that are on no grid."""
    code = f"""
sys.path.insert(0, {str(Path(__file__).parent)!r})
from click.testing import CliRunner
from clocks import MadeUpClock
from gpukern.bench.tuning import judging, products, search
from gpukern.cli.commands import main
clock = MadeUpClock()
def timed(a, b, **named):
    m, n, k = a.shape[0], b.shape[1], a.shape[1]
    best = "tiled" if k > 384 and not (k > 8192 and m % 10) else "cublas"
    clock.launch((1 if named["variant"] == best else 1.3) * 1e-5)
judging.MachineClock, judging._core.matmul = lambda: clock, timed
search._MOST_PRODUCTS, products._DRAWN, search._SIDES = 2**24, 2**16, (4, 2)
def tune(*arguments):
    done = CliRunner().invoke(main, ["tune", *arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output
"""
    own = tmp_path / "gpukern/matmul/fake-gpu-0.txt"
    with_blas(
        code
        + f"""
def info():
    return CliRunner().invoke(main, ["info"], env={{"COLUMNS": "300"}}).output
assert "matmul by" in info() and "a rule: see gpukern tune" in info()
said = tune("--dtype", "float32", "--budget", "20")
assert "lines, written to {own}" in said
assert "random shapes where another variant was chosen" in said, said
assert " boxes where it lost by more than 1%" in said, said
assert "float32, of 32768 ranges: tiled " in said, said
assert {str(own)!r} in info()
text = open({str(own)!r}).read()
lines = [line for line in text.splitlines() if line[0] != "#"]
assert text.startswith({HEAD.format("Fake GPU 0")!r} + "# measured: float32\\n")
assert "# cuBLAS: " in text
assert lines and all(line.endswith(" tiled cublas") for line in lines), lines
assert not any("8192-16384 tiled" in line for line in lines), "lost"
other = {str(tmp_path / "other.txt")!r}
open(other, "w").write(text.replace("float32", "float64"))
assert other in tune("--dtype", "float32", "--budget", "0.2", "--save", other)
assert all(line.replace("float32", "float64") in open(other).read() for line in lines)
""",
        XDG_CACHE_HOME=tmp_path,
    )
    with_blas(
        """
def chosen(*operands):
    found = gk.variants("matmul", operands=operands)
    return [each.variant for each in found if each.chosen]
x, y = (gk.to_device(np.ones((72, 72), np.float32)) for _ in range(2))
assert chosen(x, y) == ["cublas"], chosen(x, y)
assert chosen((72, 1024), (1024, 72)) == ["tiled"]
""",
        XDG_CACHE_HOME=tmp_path,
    )


SIGNALLED_WHILE_OPENING = """
import signal, time
import numpy as np, gpukern as gk
from gpukern.machine import tables
a = np.arange(100, dtype=np.float32)
heard = []
def slowly(device):
    time.sleep(0.5)
    return []
tables.find_tables = slowly
def handler(*_):
    heard.append((gk.add(a, a) == a + a).all())
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
assert (gk.add(a, 1.0) == a + 1).all()
assert heard == [True], heard
"""


def test_a_handler_may_call_gpukern_while_tables_are_looked_for(script):
    run = script(SIGNALLED_WHILE_OPENING)
    assert run.returncode == 0, run.stderr
