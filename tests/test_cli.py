"""The command line: what it prints, and what it says of a command that is wrong."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import gpukern
from gpukern import _core
from gpukern.bench.contenders.registry import PEERS, Peer
from gpukern.bench.model.contender import Contender
from gpukern.cli import main
from gpukern.machine import inventory, libraries
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
    assert names == ["naive", "tiled", "tiled_padded", "vectorized", "vectorized_wide"]
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


def test_compare_broken_is_no_wrong_result(monkeypatch):
    def raising(a: Any, b: Any) -> Any:
        raise OSError("no such file")

    plant(monkeypatch, raising)
    done = run("compare", "add", "--sizes", "16", "--rounds", "1")
    assert done.exit_code == 0
    assert "broken: OSError: no such file" in done.stdout


def test_interrupted_prints_what_is_done(monkeypatch):
    def interrupted(a: Any, b: Any) -> Any:
        raise KeyboardInterrupt

    plant(monkeypatch, interrupted)
    done = run("compare", "add", "--sizes", "16", "--rounds", "1", "--no-isolate")
    assert done.exit_code == 130
    assert "np.add" in done.stdout
    assert "interrupted" in done.stderr


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


@pytest.mark.skipif(_core.backend() == "cuda", reason="there is a GPU")
@pytest.mark.parametrize("device", ["cuda", "nonsense"])
def test_a_device_that_cannot_be_had(device, script):
    code = "from gpukern.__main__ import main; main()"
    for arguments in (("compare", "add"), ("compare", "add", "--sizes", "8")):
        done = script(code, *arguments, GPUKERN_DEVICE=device)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert done.stderr.splitlines()[-1].startswith("Error: ")


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


def test_help_names_every_option():
    text = run("compare", "--help").output
    for option in ("--sizes", "--dtype", "--contenders", "--seed", "--rounds", "--json"):
        assert option in text
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
