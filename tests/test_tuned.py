"""The tables of what was measured for matmul: which row they choose, and what is said of broken
ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpukern as gk
from clocks import MadeUpClock
from fakes import NEEDS_FAKE
from gpukern import _core
from gpukern.bench import tuning
from gpukern.bench.clock.device import DeviceTimer
from gpukern.machine import tables

SIMULATOR = "simulator (CPU)"
HEAD = "# gpukern matmul table 1\n# device: {}\n"

CHOSEN = """
import numpy as np, gpukern as gk
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


def test_the_nearest_measured_product_decides(with_table):
    said = with_table(
        """
# a comment, and an empty line

float32 nn 16 64 64 64 naive tiled
float32 nn 16 1024 1024 1024 coalesced
float32 nn 16 64 64 4096 tiled
float32 nn 1 64 64 64 thread_tile
float32 tn 16 64 64 64 thread_column
float16 nn 16 64 64 64 tiled
""",
        """
assert chosen((64, 64), (64, 64)) == ["naive"]
assert chosen((128, 64), (64, 128)) == ["naive"]
assert chosen((2**14, 64), (64, 2**14)) == ["coalesced"]
assert chosen((512, 512), (512, 512)) == ["coalesced"]
assert chosen((20, 4000), (4000, 20)) == ["tiled"]
assert chosen((63, 63), (63, 63)) == ["thread_tile"], "rows that are not multiples of 16 bytes"
assert chosen(normal(64, 64).T, normal(64, 64)) == ["thread_column"]
assert chosen(normal(72, 72), normal(72, 72).T) == ["warptiled"], "by the rule: not measured"
assert chosen(normal(64, 64), normal(64, 64).T) == ["small"], "and so are small ones"
assert chosen((64, 64), (64, 64), dtype="float64") == ["tiled"], "by the rule"
assert chosen((3, 64), (64, 64)) == ["few_vectors"], "few vectors have rows of their own"
assert chosen((5, 64, 64), (64, 64)) == ["naive"], "a stack that is one product"
assert chosen((5, 64, 64), (5, 64, 64)) == ["warptiled"], "and one that is not, by the rule"
""",
    )
    assert said == ""


def test_the_product_runs_by_it(with_table):
    said = with_table(
        "float32 nn 16 64 64 64 naive\nfloat32 tn 16 64 64 64 coalesced\n",
        """
a, b = normal(64, 48), normal(48, 80)
x, y = gk.to_device(a), gk.to_device(b)
assert ran(x, y) == ran(a, b) == "naive"
assert ran(gk.to_device(a.T.copy()).T, y) == ran(np.asfortranarray(a), b) == "coalesced"
assert ran(x, y, variant="tiled") == "tiled", "a name goes before the table"
big = normal(1200, 900)
assert ran(big, normal(900, 1000)) == "naive", "in panels"
i = gk.to_device(np.ones((40, 40), np.int8))
assert gk.matmul(i, i, dtype="int32").to_host()[0, 0] == 40
""",
    )
    assert said == ""


def test_rows_that_do_not_run_here_are_passed_over(with_table):
    said = with_table(
        "float32 nn 16 64 64 64 tma cublas coalesced naive\nfloat32 nn 1 64 64 64 tma cublas\n",
        """
for _ in range(2):
    assert chosen((64, 64), (64, 64)) == ["coalesced"]
    assert chosen((73, 73), (73, 73)) == ["thread_tile"], "none of them runs: the rule"
""",
    )
    assert said == ""


def test_every_size_finds_its_place(with_table):
    """Sizes are told apart by half octaves; what is beyond the last is as the last."""
    lines = "".join(
        f"float32 nn {alignment} {size} 64 64 {variant}\n"
        for alignment in (1, 16)
        for size, variant in ((64, "naive"), (90, "coalesced"), (128, "tiled"))
    )
    said = with_table(
        lines,
        """
borders = {17: "naive", 75: "naive", 77: "coalesced", 107: "coalesced", 108: "tiled",
    2**20: "tiled", 2**40: "tiled"}
for size, variant in borders.items():
    assert chosen((size, 64), (64, 64)) == [variant], size
""",
    )
    assert said == ""


WRONG = [
    ("float32 nn 16 64 64 64 nosuch\n", "line 3: this gpukern has no variant 'nosuch' of matmul"),
    ("\n\nfloat33 nn 16 64 64 64 tiled\n", "line 5: 'float33' is no dtype"),
    ("float32 nx 16 64 64 64 tiled\n", "line 3: 'nx 16' is not how operands lie"),
    ("float32 nn 8 64 64 64 tiled\n", "line 3: 'nn 8' is not how operands lie"),
    ("float32 nn 16 64 0 64 tiled\n", "line 3: '0' is not a size"),
    ("float32 nn 16 64 64 9e3 tiled\n", "line 3: '9e3' is not a size"),
    ("float32 nn 16 64 64 99999999999999999999 tiled\n", "'99999999999999999999' is not a size"),
    ("float32 nn 16 64 64 64\n", "line 3: a line has a dtype"),
    ("float32 nn 16 64 64 64" + 9 * " tiled" + "\n", "line 3: a line has a dtype"),
    ("float64 nn 16 64 64 64 tma\n", "has no variant 'tma' of matmul that may be the default for"),
    ("#" + "x" * 600 + "\n", "line 3: the line is longer than 510 characters"),
    ("float32 nn\0 16 64 64 64 tiled\n" * 2, "line 3: the line is longer"),
    ("# device: NVIDIA H200\n", "line 3: the table is of the device 'NVIDIA H200', and this one"),
]


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
        ("# gpukern matmul table 2\n", "begins with '# gpukern matmul table 2', not with"),
        ("\x80\xff\n", "line 1: this is no table"),
        ("# gpukern matmul table 1\nfloat32 nn 16 64 64 64 tiled\n", "line 2: no line before"),
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
    write(tmp_path / "own", "float32 nn 16 64 64 64 coalesced\n")
    shipped = write(
        tmp_path / "shipped", "float32 nt 16 64 64 64 naive\nfloat64 nn 16 64 64 64 naive\n"
    )
    done = script(
        f"""
from pathlib import Path
from gpukern.machine import tables
tables._SHIPPED = Path({str(shipped.parent)!r})
{CHOSEN}
assert chosen((64, 64), (64, 64)) == ["coalesced"]
assert chosen((64, 64), (64, 64), dtype="float64") == ["naive"]
assert chosen(normal(72, 72), normal(72, 72).T) == ["warptiled"], "float32 is the user's own"
""",
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
    lines = ("nn 16 64 64 64 cublas tma", "tn 16 64 64 64 tma cublas", "nt 16 64 64 64 cublas tma")
    write(tmp_path, "".join(f"float32 {line}\n" for line in lines), "Fake GPU 0")
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
assert ran(x[:63].T, y[:63]) == "cublas", "packed its rows would be no multiples of 16 bytes"
assert kernels(x[:63].T, y[:63]) == 0, "and so it is not packed"
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


def speeds(product: tuning.Product, names: list[str]) -> list[tuple[str, float]]:
    """A made-up device: tma is the best of large products, and cublas of small ones."""
    volume = product.m * product.n * product.k
    rates = {"tma": 4 if volume > 2**24 else 1, "cublas": 2, "naive": 0.1}
    return sorted(((name, volume / rates.get(name, 1.5)) for name in names), key=lambda x: x[1])


def row(variant: str, alignment: int = 1) -> dict[str, object]:
    return {"variant": variant, "alignment": alignment}


LADDER = [row("naive"), row("tiled"), row("tma", 16), row("cublas")]


def tuned(most: int) -> list[str]:
    """The lines of so many products on that device."""
    seen: list[tuning.Product] = []

    def is_over(product: tuning.Product) -> bool:
        seen.append(product)
        return len(seen) > most

    contests = {"float32": tuning.Contest(LADDER)}
    return list(tuning.tune(["float32"], speeds, contests, is_over))


def test_products_go_from_a_coarse_grid_to_a_fine_one():
    found = list(tuning.products(["float32", "float64"]))
    assert found == list(tuning.products(["float32", "float64"]))
    assert len(set(found)) == len(found)
    coarse = 27 - 1  # 16384 x 16384 x 16384 takes too long
    assert {one.way.dtype for one in found[: 8 * coarse]} == {"float32"}
    assert {one.way.dtype for one in found[8 * coarse : 16 * coarse]} == {"float64"}
    sizes = {one.m for one in found if one.way.aligned}
    assert sizes == {64 << i for i in range(9)}
    assert {one.k for one in found if not one.way.aligned} == {size - 1 for size in sizes}
    assert max(one.m * one.n * one.k for one in found) == 8192**3
    assert len({one.way for one in found}) == 16


def test_a_table_lists_the_fastest_first(with_table):
    lines = tuned(8 * 20)
    assert lines == tuned(8 * 20)
    assert lines[0] == "float32 nn 16 64 64 64 cublas tiled tma"
    assert "float32 tn 16 1024 1024 1024 tma cublas tiled" in lines
    assert "float32 tt 1 1023 1023 1023 cublas tiled" in lines, "tma takes no such rows"
    assert not any("naive" in line for line in lines)
    text = tuning.table(SIMULATOR, ["date: today"], lines)
    assert text.startswith(HEAD.format(SIMULATOR) + "# date: today\nfloat32 nn 16 64 64 64 ")
    code = "assert chosen((64, 64), (64, 64)) == chosen((63, 63), (63, 63)) == ['tiled']\n"
    assert with_table("", code, head=text) == ""


def test_the_hopeless_are_not_tried_on_larger_products():
    tried: list[tuple[int, list[str]]] = []

    def measure(product: tuning.Product, names: list[str]) -> list[tuple[str, float]]:
        tried.append((product.m * product.n * product.k, names))
        return speeds(product, names)

    contests = {"float32": tuning.Contest(LADDER)}
    list(tuning.tune(["float32"], measure, contests, lambda product: len(tried) > 8 * 26))
    assert all("naive" in names for volume, names in tried if volume < 1023**3)
    assert not any("naive" in names for volume, names in tried if volume > 1024**3)
    assert max(volume for volume, _ in tried) > 2**30


def test_what_does_not_fit_is_left_out():
    def measure(product: tuning.Product, names: list[str]) -> list[tuple[str, float]]:
        if product.m > 64:
            raise MemoryError
        return speeds(product, names)

    contests = {"float32": tuning.Contest(LADDER)}
    seen: list[tuning.Product] = []
    lines = list(
        tuning.tune(["float32"], measure, contests, lambda one: seen.append(one) or len(seen) > 100)
    )
    assert lines
    assert {line.split()[3] for line in lines} == {"64", "63"}


def test_a_ranking_is_by_the_time_on_the_device():
    """On a made-up clock; the slowest is timed no more than it has to be."""
    clock = MadeUpClock()
    calls: dict[str, int] = {}

    def start(name: str, seconds: float):
        def work() -> None:
            calls[name] = calls.get(name, 0) + 1
            clock.launch(seconds)

        return work

    times = {"slow": 5e-3, "good": 1.1e-4, "best": 1e-4, "fair": 1.4e-4}
    timer = DeviceTimer(clock)
    ranked = tuning.ranking(timer, {name: start(name, time) for name, time in times.items()})
    assert [name for name, _ in ranked] == ["best", "good", "fair", "slow"]
    assert dict(ranked) == pytest.approx(times, rel=0.05)
    assert calls["slow"] <= 3
    assert calls["fair"] < calls["good"]


def test_operands_lie_as_they_are_asked_for(balanced):
    operands = tuning.Operands()
    for dtype in ("float32", "float16"):
        for way in tuning._ways(dtype):
            product = tuning.Product(way, 40, 24, 56)
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


def test_other_dtypes_are_kept():
    text = tuning.table("GPU", [], ["float32 nn 16 64 64 64 tiled", "float16 nn 16 64 64 64 mma"])
    assert tuning.kept(text, "GPU", ["float32"]) == ["float16 nn 16 64 64 64 mma"]
    assert tuning.kept(text, "another", ["float32"]) == []
    assert tuning.kept("", "GPU", ["float32"]) == tuning.kept("nonsense\n", "GPU", []) == []


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
    small products there, and tiled of large ones."""
    code = f"""
sys.path.insert(0, {str(Path(__file__).parent)!r})
from click.testing import CliRunner
from clocks import MadeUpClock
from gpukern.bench import tuning
from gpukern.cli.commands import main
clock = MadeUpClock()
def timed(a, b, **named):
    volume = a.shape[0] * a.shape[1] * b.shape[1]
    best = "tiled" if volume > 2**20 else "cublas"
    clock.launch((1 if named["variant"] == best else 1.5) * 1e-5)
tuning.MachineClock, tuning._core.matmul = lambda: clock, timed
tuning._MOST_PRODUCTS, tuning._DRAWN = 2**24, 2**16
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
assert "products, written to {own}" in tune("--dtype", "float32", "--budget", "3")
assert {str(own)!r} in info()
text = open({str(own)!r}).read()
lines = [line for line in text.splitlines() if line[0] != "#"]
assert text.startswith({HEAD.format("Fake GPU 0")!r}) and "# cuBLAS: " in text
assert any(line.startswith("float32 nn 16 64 64 64 cublas ") for line in lines), lines[0]
assert any(line.startswith("float32 tt 1 63 63 1023 tiled ") for line in lines)
other = {str(tmp_path / "other.txt")!r}
open(other, "w").write(text.replace("float32", "float64"))
assert other in tune("--dtype", "float32", "--budget", "0.2", "--save", other)
assert all(line.replace("float32", "float64") in open(other).read() for line in lines)
""",
        XDG_CACHE_HOME=tmp_path,
    )
    with_blas(
        """
x, y = (gk.to_device(np.ones((64, 64), np.float32)) for _ in range(2))
def chosen(*operands):
    found = gk.variants("matmul", operands=operands)
    return [each.variant for each in found if each.chosen]
assert chosen(x, y) == ["cublas"], chosen(x, y)
assert chosen((64, 1024), (1024, 64)) == ["tiled"]
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
