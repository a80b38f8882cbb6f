"""The command line: what it prints, and what it says of a command that is wrong."""

from __future__ import annotations

import io
import json
import re
import sys
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import gpukern
from gpukern import _core
from gpukern.bench.cases import lists
from gpukern.bench.contenders.registry import PEERS, REGISTERED, Peer
from gpukern.bench.model.case import OPERATIONS
from gpukern.bench.model.contender import Contender
from gpukern.cli import running
from gpukern.cli.commands import main
from gpukern.cli.outputs import Outputs
from gpukern.machine import inventory, libraries
from gpukern.machine.inventory import installed
from gpukern.text import units


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"COLUMNS": "140"}, prog_name="gpukern")


# ---- info ----------------------------------------------------------------------------------------


def test_info_names_devices_libraries_and_versions():
    done = run("info")
    assert done.exit_code == 0, done.output
    for text in (
        _core.devices()[0]["name"],
        "driver",
        "cuBLAS",
        np.__version__,
        "compute capability",
    ):
        assert text in done.output


def test_architectures_are_shown_with_their_dot(monkeypatch):
    report = {**_core.build_report(), "machine_code": ["75", "90a", "120f"], "ptx": ["100"]}
    monkeypatch.setattr(_core, "build_report", lambda: report)
    said = run("info").output
    assert "compute capability 7.5, 9.0a, 12.0f" in said
    assert "compute capability 10.0" in said


def test_version():
    assert run("--version").output.strip() == f"gpukern, version {version('gpukern')}"
    assert gpukern.__version__ == version("gpukern")


def test_device_info_has_every_attribute_and_what_follows():
    found = gpukern.device_info()
    assert [d.ordinal for d in found] == list(range(len(found)))
    for one, raw in zip(found, _core.devices(), strict=True):
        assert one.attributes == raw["attributes"]
        assert all(name in repr(found) for name in raw["attributes"])


def test_variants_are_named_by_dtype_and_hide_what_is_internal():
    everything = gpukern.variants()
    assert {"add", "scale_add", "sum", "argmax", "dot", "matmul"} <= {v.op for v in everything}
    assert all(callable(getattr(gpukern, v.op)) for v in everything), "operations that one may call"
    assert not any(v.dtype.startswith("bits") for v in everything)
    names = [v.variant for v in gpukern.variants("transpose", np.dtype("int32"))]
    assert names == ["naive", "tiled", "tiled_padded", "vectorized", "vectorized_wide", "ragged"]
    assert gpukern.variants("add", np.float32) == gpukern.variants("add", "float32")
    assert all(v.dtype == "bfloat16" for v in gpukern.variants(dtype="bfloat16"))


def test_variants_print_as_a_table():
    lines = repr(gpukern.variants("add", "float32")).splitlines()
    assert lines[0].split() == ["op", "variant", "dtype", "runs", "note"]
    assert len(lines) == 1 + len(gpukern.variants("add", "float32"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("cube_root",), "unknown operation 'cube_root'; there are add, subtract, multiply"),
        (("add", "complex64"), "unknown dtype 'complex64'; there are float32"),
        ((None, "nonsense"), "unknown dtype 'nonsense'; there are float32"),
    ],
)
def test_variants_that_are_not_there(arguments, text):
    with pytest.raises(ValueError, match=text):
        gpukern.variants(*arguments)


def test_cublas_is_looked_for_in_wheels_then_by_the_loader(monkeypatch):
    monkeypatch.setattr(libraries, "_pathfinder", lambda name: f"/wheels/lib{name}.so.13")
    candidates = ["/wheels/libcublas.so.13", "libcublas.so.13", "libcublas.so.12"]
    assert libraries.find_cublas() == candidates
    monkeypatch.setattr(libraries, "_pathfinder", lambda name: None)
    assert libraries.find_cublas() == candidates[1:]


def test_cublas_without_pathfinder(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    assert libraries.find_cublas() == ["libcublas.so.13", "libcublas.so.12"]


# ---- compare -------------------------------------------------------------------------------------


def plant(monkeypatch: pytest.MonkeyPatch, *functions: Any) -> None:
    def offer(op: str, dtype: str) -> list[Contender]:
        return [Contender("planted", f.__name__, f) for f in functions]

    planted = Peer("planted", "planted", offer, needs_gpu=False)
    monkeypatch.setattr("gpukern.bench.contenders.registry.PEERS", (PEERS[0], planted))


def test_compare_right(tmp_path):
    path = tmp_path / "figures.json"
    done = run(
        *("compare", "add", "matmul", "--sizes", "16,8", "--seed", "5", "--rounds", "1"),
        *("--contenders", "numpy,gpukern", "--json", str(path)),
    )
    assert done.exit_code == 0, done.output
    assert "seed 5" in done.stdout
    assert "8x8" in done.stdout and "16x16" in done.stdout
    assert len(json.loads(path.read_text())["rows"]) > 4


def test_compare_wrong_is_exit_status_1(monkeypatch):
    def off_by_one(a: Any, b: Any) -> Any:
        return a + b + 1

    plant(monkeypatch, off_by_one)
    done = run("compare", "add", "--sizes", "16", "--rounds", "1")
    assert done.exit_code == 1
    assert "WRONG" in done.stdout
    assert "off_by_one" in done.stdout
    assert "np.add" in done.stdout


def test_a_broken_contender_is_exit_status_1(monkeypatch):
    def raising(a: Any, b: Any) -> Any:
        raise OSError("no such file")

    plant(monkeypatch, raising)
    done = run("compare", "add", "--sizes", "16", "--rounds", "1")
    assert done.exit_code == 1
    assert "broken: OSError: no such file" in done.stdout
    assert "WRONG" not in done.stdout


# All in this process, where a GPU would have three measure and a file have one of its own.
HERE = ("--no-isolate", "--processes", "1")


def test_interrupted_prints_what_is_done(monkeypatch):
    def interrupted(a: Any, b: Any) -> Any:
        raise KeyboardInterrupt

    plant(monkeypatch, interrupted)
    done = run("compare", "add", "--sizes", "16", "--rounds", "1", *HERE)
    assert done.exit_code == 130
    assert "np.add" in done.stdout
    assert "interrupted: this is what was done until then" in done.stdout
    assert "interrupted" in done.stderr
    done = run("compare", "add", "--sizes", "16", "--rounds", "1", "--csv", *HERE)
    assert done.exit_code == 130
    assert {line.split(",")[0] for line in done.stdout.splitlines()} == {"op", "add"}


def test_tables_are_printed_as_they_are_done(monkeypatch):
    """Each before anything of the next is called, and each once."""
    printed: list[str] = []

    def watching(a: Any, b: Any = None) -> Any:
        printed.append(sys.stdout.getvalue())
        return np.sum(a) if b is None else a + b

    plant(monkeypatch, watching)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    arguments = ["compare", "add", "sum", "--sizes", "16,17", "--rounds", "1", *HERE]
    main(arguments, standalone_mode=False)
    assert "add float32" not in printed[0]
    assert any("add float32" in text and "sum float32" not in text for text in printed)
    whole = sys.stdout.getvalue()
    assert whole.count("add float32, end to end") == whole.count("sum float32, end to end") == 1
    assert whole.count("max error, ulps: the largest") == 1


def test_a_table_of_two_steps_is_printed_once(tmp_path):
    path = tmp_path / "two.toml"
    case = "[[case]]\nop = 'add'\nsizes = [{}]\ncontenders = ['numpy']\n"
    path.write_text(case.format(8) + case.format(9))
    done = run("bench", str(path), "--rounds", "1")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("add float32, end to end") == 1
    assert "8x8" in done.stdout and "9x9" in done.stdout


FEW = ("add", "--sizes", "8", "--rounds", "1", "--contenders", "numpy:np.add")


def test_data_on_standard_output_is_alone_there(tmp_path):
    done = run("compare", *FEW, "--json", "-")
    assert json.loads(done.stdout)["rows"][0]["variant"] == "np.add"
    assert done.stderr == ""
    for arguments in (("--csv",), ("--csv", "-"), ("--csv=-",)):
        lines = run("compare", *FEW, *arguments).stdout.splitlines()
        assert lines[0].startswith("op,size,shapes,dtype,contender,variant,status")
        assert len(lines) == 2 and lines[1].startswith("add,8x8,8x8 8x8,float32,NumPy,np.add,right")
    assert run("compare", *FEW, "--markdown", "-").stdout.startswith("**add float32, end to end")
    path = tmp_path / "figures.csv"
    done = run("compare", *FEW, "--csv", str(path))
    assert path.read_text().startswith("op,size,") and "np.add" in done.stdout
    assert f"written to {path}" in done.stderr


def test_what_is_wrong_is_said_beside_data(monkeypatch):
    def off_by_one(a: Any, b: Any) -> Any:
        return a + b + 1

    plant(monkeypatch, off_by_one)
    done = run("compare", "add", "--sizes", "16", "--rounds", "1", "--csv")
    assert done.exit_code == 1
    assert done.stdout.startswith("op,")
    assert "planted off_by_one, add 16x16 float32: WRONG" in done.stderr


def test_sizes_are_sums_and_ranges():
    sizes = ("--sizes", "2**3-1,8:32:x2", "--sizes", "64x2")
    done = run("compare", "add", *sizes, *FEW[3:], "--csv")
    assert done.exit_code == 0, done.output
    found = [line.split(",")[1] for line in done.stdout.splitlines()[1:]]
    assert found == ["7x7", "8x8", "16x16", "32x32", "64x2"]


def test_wide_tables_have_all_columns():
    arguments = ("compare", "add", "--sizes", "8", "--rounds", "2", "--simulated")
    narrow, wide = (
        CliRunner().invoke(main, [*arguments, *more], env={"COLUMNS": "80"}).stdout
        for more in ([], ["--wide"])
    )
    assert max(map(len, narrow.splitlines())) <= 80
    assert "(--wide shows all)" in narrow and "no room" not in wide
    heads = [line for line in wide.splitlines() if line.startswith("┃")]
    assert all(name in heads[1] for name in ("ulps", "from..to", "compute"))


def test_the_margin(tmp_path):
    path = tmp_path / "run.json"
    done = run("compare", *FEW, "--margin", "2.5", "--save", str(path))
    assert "same: within 2.5 %" in " ".join(done.stdout.split())
    assert gpukern.Comparison.from_json(path).margin == 0.025


def test_what_was_spent_of_the_budget_is_said():
    lines = run("compare", *FEW, "--budget", "0.01").stderr.splitlines()
    assert len(lines) == 1 and "s of a budget of 0.01 s: loading " in lines[0]
    assert re.search(r"checking \d+ s, timing \d+ s$", lines[0])


@pytest.mark.parametrize(
    ("budget", "kept", "processes"),
    [(60, False, 1), (5, False, 1), (130, False, 2), (900, False, 3), (60, True, 3)],
)
def test_a_process_for_each_minute_and_several_for_what_is_kept(
    budget, kept, processes, monkeypatch
):
    monkeypatch.setattr("gpukern._core.backend", lambda: "cuda")
    assert running._processes(budget, kept) == processes
    assert running._processes(None, kept) == 3


def test_figures_that_a_page_shows_are_to_last():
    assert Outputs(into="README.md").kept and Outputs(save="monday.json").kept
    assert not Outputs(markdown="README.md").kept


def test_contenders_that_cannot_be_sent_to_a_process_of_their_own(mine, monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    arguments = ("compare", *FEW[:-1], "mine", "--load", str(mine))
    assert "pip install cloudpickle" in refused(*arguments)
    assert run(*arguments, *HERE).exit_code == 0


# ---- contenders of a file ------------------------------------------------------------------------

MINE = """
import gpukern
from beside import shift

assert __name__ == "mine"

@gpukern.contender("add")
def mine(a, b):
    return a + b + shift
"""


@pytest.fixture
def mine(tmp_path):
    """A file of a contender, which imports another file; what it registers is forgotten."""
    before = dict(REGISTERED)
    (tmp_path / "beside.py").write_text("shift = 0\n")
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    yield path
    REGISTERED.clear()
    REGISTERED.update(before)
    sys.modules.pop("beside", None)


def test_a_contender_of_a_file(mine):
    for names in ("numpy,mine", "mine"):
        done = run("compare", *FEW[:-1], names, "--load", str(mine), "--csv")
        assert done.exit_code == 0, done.output
        assert done.stdout.splitlines()[-1].startswith("add,8x8,8x8 8x8,float32,mine,,right")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "registers no contender"),
        ("1/0", "mine.py, line 1: ZeroDivisionError: division by zero"),
        ("\n\nraise SystemExit(3)", "mine.py, line 3: SystemExit: 3"),
        ("x =", "mine.py, line 1: SyntaxError: invalid syntax"),
        ("import not_there", "ModuleNotFoundError: No module named 'not_there'"),
        (
            "import gpukern\n@gpukern.contender('cube')\ndef f(a): 0",
            "line 2: ValueError: contender",
        ),
    ],
)
def test_a_file_of_no_use(text, words, mine):
    mine.write_text(text)
    assert words in refused("compare", *FEW, "--load", str(mine))


def test_a_file_whose_contenders_are_not_asked_for(mine):
    words = "registers mine, and the contenders that are asked for are numpy:np.add"
    assert words in refused("compare", *FEW, "--load", str(mine))
    assert "--load" in refused("compare", *FEW, "--load", str(mine.parent / "none.py"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("divide",), "unknown operation 'divide'"),
        (("--dtype", "float8"), "unknown dtype 'float8'"),
        (("matmul", "--dtype", "int8"), "matmul does not take int8"),
        (("--sizes", "12y"), "'12y' is not a size"),
        (("add", "--sizes", "0"), "positive"),
        (("--contenders", "matlab"), "unknown contender 'matlab'"),
        (("--rounds", "0"), "--rounds"),
        (("--rounds", "x"), "--rounds"),
        (("--seed", "-1"), "--seed"),
        (("--mode", "fast"), "--mode"),
        (("--protocol", "x"), "--protocol"),
        (("--baseline", "matlab"), "unknown baseline 'matlab'; there are numpy"),
        (("add", "--sizes", "8x8x8x8", "--contenders", "numpy", "matmul"), "a size of matmul is"),
        (("--json", "/no/such/folder/x.json"), "/no/such/folder is no folder"),
        (("--save", "/"), "--save"),
        (("--against", "/no/such/file"), "--against"),
        (("--nonsense",), "--nonsense"),
        (
            ("--contenders", "numpy,gpukern:fast"),
            "no variant 'fast' of add for float16, add for",
        ),
        (
            ("sum", "--contenders", "numpy:np.add"),
            "NumPy has no variant 'np.add' of sum for float32",
        ),
        (("--baseline", "gpukern:fast"), "the baseline 'gpukern:fast' takes no part: no such"),
        (("--contenders", "numpy", "--baseline", "gpukern"), "unknown baseline 'gpukern'"),
        (
            ("--contenders", "gpukern:tiled", "matmul", "--baseline", "gpukern:naive"),
            "the baseline 'gpukern:naive' takes no part: not among them",
        ),
        (("--sizes", "1k:2k"), "'1k:2k' is not a range"),
        (("add", "--sizes", "2**30", "--contenders", "numpy"), "of memory"),
        (("--csv", "add"), "add is an operation"),
        (("--csv", "/no/such/folder/x.csv"), "/no/such/folder is no folder"),
        (("--json", "-", "--csv"), "--json and --csv cannot both go to standard output"),
        (("--save", "-"), "- is standard output; this needs a file"),
        (("--margin", "-1"), "--margin"),
        (("--load", "/no/such/file"), "--load"),
    ],
)
def test_usage_errors_are_exit_status_2(arguments, text):
    assert text in refused("compare", *arguments)


def refused(*arguments: str) -> str:
    """The one sentence of a command that is wrong."""
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert isinstance(done.exception, SystemExit)
    lines = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1 and done.stderr.splitlines()[-1] == lines[0], done.stderr
    assert "Traceback" not in done.output
    return lines[0]


BROKEN_LISTS = {
    "no TOML": ("[[case", "bad.toml: "),
    "no text": (b"\xff\xfe", "bad.toml: "),
    "nothing": ("", "bad.toml has no [[case]]"),
    "no tables": ("case = 3", "case has to be tables"),
    "a list of numbers": ("case = [1]", "case has to be tables"),
    "an unknown key": ("[[case]]\nop = 'add'\nsize = [1]", "a case has"),
    "no operation": ("[[case]]\nsizes = [1]", "a case has"),
    "an unknown operation": ("[[case]]\nop = 'nonsense'", "unknown operation 'nonsense'"),
    "sizes that are none": ("[[case]]\nop = 'add'\nsizes = 'x'", "sizes has to be a list"),
    "a size that is none": ("[[case]]\nop = 'add'\nsizes = ['x']", "positive whole numbers"),
    "a dtype that is none": ("[[case]]\nop = 'add'\ndtype = 3", "unknown dtype 3"),
    "a number for contenders": ("[[case]]\nop = 'add'\ncontenders = 3", "contenders has to be"),
    "an unknown mode": ("[[case]]\nop = 'add'\nmode = 'x'", "unknown mode 'x'"),
}


@pytest.mark.parametrize("how", BROKEN_LISTS)
def test_a_broken_list_of_cases(how, tmp_path):
    text, words = BROKEN_LISTS[how]
    path = tmp_path / "bad.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert words in refused("bench", str(path))


def test_a_list_of_cases_that_is_not_there(tmp_path):
    assert "none.toml: " in refused("bench", str(tmp_path / "none.toml"))
    refused("bench")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"schema": 2}', '{"schema": 2, "rows": [3]}']
)
def test_an_earlier_run_that_is_none(text, tmp_path):
    path = tmp_path / "earlier.json"
    path.write_text(text)
    assert "from_json: source is" in refused("compare", "add", "--against", str(path))


def test_pictures_that_could_not_be_drawn(monkeypatch):
    if installed("matplotlib"):
        assert "--plot x.mp3: matplotlib writes" in refused("compare", *FEW, "--plot", "x.mp3")
    monkeypatch.setitem(sys.modules, "matplotlib.backend_bases", None)
    assert "--plot needs matplotlib: pip install" in refused("compare", *FEW, "--plot", "x.png")


@pytest.mark.skipif(_core.backend() == "cuda", reason="there is a GPU")
class TestWithoutGpu:
    @pytest.mark.parametrize("device", ["cuda", "nonsense"])
    def test_a_device_that_cannot_be_had(self, device, script, tmp_path):
        listed = tmp_path / "tiny.toml"
        listed.write_text("[[case]]\nop = 'add'\n")
        code = "from gpukern.__main__ import main; main()"
        statuses = {
            ("compare", "add"): 2,
            ("compare", "add", "--sizes", "8", "--contenders", "numpy"): 2,
            ("compare", "--contenders", "gpukern:tiled", "--baseline", "gpukern"): 2,
            ("bench", str(listed)): 2,
            ("info",): 0,
            ("doctor",): 1,
            ("compare", "--help"): 0,
            ("bench", "--help"): 0,
        }
        for arguments, status in statuses.items():
            done = script(code, *arguments, GPUKERN_DEVICE=device)
            assert done.returncode == status, (arguments, done.stderr)
            assert "Traceback" not in done.stderr
            if status == 2:
                assert done.stderr.splitlines()[-1].startswith("Error: ")

    def test_a_list_that_the_simulator_cannot_do_is_shortened_and_that_is_said(self, tmp_path):
        listed = tmp_path / "large.toml"
        case = "[[case]]\nop = 'add'\nsizes = [[65536, {}]]\ncontenders = ['gpukern:f32x8']\n"
        listed.write_text(case.format(64) + case.format(128))
        done = run("bench", str(listed))
        assert done.exit_code == 0, done.output
        (line,) = done.stderr.splitlines()
        assert line.startswith("add float32: 32768x128 in the place of 65536x128, for which")
        assert "32768x128" in done.stdout and "65536x64" in done.stdout
        words = "sum 134217571 float32 takes minutes on the simulator"
        assert words in refused("compare", "sum", "--sizes", "2**27-157")


def test_a_command_that_there_is_not():
    refused("nonsense")


def test_the_module_is_the_command(script):
    code = (
        "import runpy, sys; sys.argv = ['gpukern', *sys.argv[1:]];"
        "runpy.run_module('gpukern', run_name='__main__')"
    )
    arguments = ("sum", "--sizes", "1000", "--rounds", "1", "--contenders", "gpukern")
    done = script(code, "compare", *arguments)
    assert done.returncode == 0, done.stderr
    assert "compensated" in done.stdout
    # No progress bar where nobody watches, and no escape codes.
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_help_names_every_option_and_what_there_is_to_choose_from():
    text = run("compare", "--help").output
    for option in ("--sizes", "--dtype", "--contenders", "--seed", "--rounds", "--json", "--load"):
        assert option in text
    words = " ".join(text.split())
    assert all(op in words for op in OPERATIONS)
    assert all(peer.key in words for peer in PEERS)
    assert "1k, 1M, 1G of 1024" in words
    listed = run("bench", "--help").output
    assert all(name in listed for name in (lists.names() or ["FILE.toml"]))
    assert all(command in run("--help").output for command in ("info", "doctor", "compare"))


# ---- small things --------------------------------------------------------------------------------


def test_import_is_light(script):
    code = """
import sys, numpy
before = set(sys.modules)
import gpukern
heavy = {"rich", "click", "matplotlib", "ml_dtypes", "importlib.metadata", "dataclasses"}
print(sorted(heavy & (set(sys.modules) - before)))
print(sorted(set(gpukern.__all__) - set(dir(gpukern))))
"""
    assert script(code).stdout.split() == ["[]", "[]"]


def test_every_public_name_is_there():
    for name in gpukern.__all__:
        assert getattr(gpukern, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = gpukern.nonsense


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.9996e-3, "1.00 ms"),
        (0, "0"),
        (1.5, "1.50 s"),
        (0.0309, "30.9 ms"),
        (1e-6, "1.00 us"),
        (2.5e-9, "2.50 ns"),
    ],
)
def test_times_for_a_reader(value, text):
    assert units.seconds(value) == text


def test_rates_for_a_reader():
    assert units.size(64 * 2**20) == "64.0 MiB"
    assert units.size(10) == "10 B"
    assert units.bandwidth(47e9, 1) == "47.0 GB/s"
    assert units.throughput(51e12, 1) == "51.0 TFLOP/s"
    assert units.throughput(2e9, 1) == "2.00 GFLOP/s"
    assert inventory.cuda_version(12040) == "12.4"
    assert inventory.cuda_version(None) == "unknown"
