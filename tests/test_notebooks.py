"""The notebooks run from top to bottom, and show tables, pictures and kernels."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpukern import Comparison, device_info
from gpukern.machine.inventory import installed

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
RECORDED = sorted((FOLDER / "recorded").glob("*.json"))
NEEDED = ("nbclient", "nbformat", "ipykernel")

pytestmark = [
    pytest.mark.skipif(not NOTEBOOKS, reason="the tests stand alone, without the notebooks"),
    pytest.mark.skipif(not installed("matplotlib"), reason="not installed: pip install matplotlib"),
]

JUPYTER = """
import sys, nbclient, nbformat
book = nbformat.read(sys.argv[1], 4)
nbformat.validate(book)
nbclient.NotebookClient(book, timeout=120).execute()
nbformat.write(book, sys.argv[2])
"""


def simulated() -> bool:
    return device_info()[0].simulated


def code_of(path: Path) -> list[dict]:
    return [one for one in json.loads(path.read_text())["cells"] if one["cell_type"] == "code"]


def check(path: Path) -> None:
    """That it has run to its end, with a picture of its figures, and a kernel's source."""
    cells = code_of(path)
    assert all(cell["execution_count"] for cell in cells)
    outputs = [one for cell in cells for one in cell["outputs"]]
    assert not any(one["output_type"] == "error" for one in outputs)
    assert any("image/png" in one.get("data", ()) for one in outputs)
    printed = "".join("".join(one.get("text", ())) for one in outputs)
    assert "// cuda/" in printed
    asked = any("compare(" in "".join(cell["source"]) for cell in cells)
    assert ("No GPU here: measured on an NVIDIA" in printed) == (asked and simulated())


def module(name: str):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def run(*command: str, **more: object) -> None:
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=200, check=False, **more
    )
    assert done.returncode == 0, (done.stderr + done.stdout)[-2000:]


@pytest.mark.skipif(
    not all(map(installed, NEEDED)), reason='not installed: pip install "gpukern[test]"'
)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_in_jupyter(path, tmp_path):
    target = tmp_path / path.name
    run("-c", JUPYTER, str(path), str(target), cwd=FOLDER)
    check(target)


BOOK = {
    "metadata": {"language_info": {"version": "3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
    "cells": [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["words"]},
        {
            "cell_type": "code",
            "id": "b",
            "metadata": {},
            "execution_count": 7,
            "outputs": [],
            "source": ["%matplotlib inline\n", "x = 2\n", "print(x)\n", "x + 1"],
        },
    ],
}


class TestExecute:
    def written(self, tmp_path: Path, *more: str) -> Path:
        book = json.loads(json.dumps(BOOK))
        book["cells"][1]["source"] += more
        path = tmp_path / "book.ipynb"
        path.write_text(json.dumps(book))
        return path

    def test_outputs_are_kept(self, tmp_path):
        path = self.written(tmp_path)
        run(str(FOLDER / "execute.py"), str(path))
        (cell,) = code_of(path)
        assert cell["execution_count"] == 1
        printed, result = cell["outputs"]
        assert printed["text"] == ["2\n"]
        assert result["data"] == {"text/plain": ["3"]}

    def test_pictures_and_tables(self, tmp_path):
        source = "\nfrom matplotlib.figure import Figure\nFigure()"
        path = self.written(tmp_path, source)
        run(str(FOLDER / "execute.py"), str(path))
        assert set(code_of(path)[0]["outputs"][1]["data"]) == {"image/png", "text/plain"}

    def test_one_that_fails_is_left_as_it_was(self, tmp_path):
        path = self.written(tmp_path, "\n1 / 0")
        before = path.read_text()
        command = [sys.executable, str(FOLDER / "execute.py"), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert "ZeroDivisionError" in done.stderr
        assert path.read_text() == before

    def test_a_notebook_of_ours(self, tmp_path):
        nbformat = pytest.importorskip("nbformat")
        before = NOTEBOOKS[0].read_text()
        target = tmp_path / "new"
        run(str(FOLDER / "execute.py"), "--record", "--into", str(target), str(NOTEBOOKS[0]))
        path = target / NOTEBOOKS[0].name
        check(path)
        assert NOTEBOOKS[0].read_text() == before
        # Figures of a simulator are not kept.
        kept = [one.stem for one in (target / "recorded").iterdir()]
        assert kept == ([] if simulated() else ["1-matmul"])
        nbformat.validate(nbformat.read(path, 4))


class TestRecorded:
    @pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
    def test_it_is_of_a_gpu(self, path):
        if "rows" not in json.loads(path.read_text()):
            return  # a profile
        found = Comparison.from_json(path)
        assert not found.simulated and not found.wrong and found.rows

    def test_each_is_asked_for(self):
        whole = "".join("".join(cell["source"]) for path in NOTEBOOKS for cell in code_of(path))
        for path in RECORDED:
            name = path.stem.replace("-uint8", "-{dtype}").replace("6-transpose-float16", "")
            assert f'"{name}"' in whole or not name, path

    def test_a_run_is_kept_only_where_that_is_asked_for(self, tmp_path, monkeypatch):
        recorded = module("recorded")
        result = Comparison.from_json(RECORDED[0])
        gpu = [type("Device", (), {"simulated": False})()]
        monkeypatch.setattr(recorded.gk, "device_info", lambda: gpu)
        monkeypatch.setattr(recorded.gk, "compare", lambda op, *what, **settings: result)
        monkeypatch.delenv(recorded.RECORD, raising=False)
        assert recorded.compare("x", "add") is result
        assert not list(tmp_path.iterdir())
        monkeypatch.setenv(recorded.RECORD, str(tmp_path))
        recorded.compare("x", "add")
        assert Comparison.from_json(tmp_path / "x.json") == result


class TestSources:
    def test_a_kernel_with_its_comment(self):
        text = module("sources").function("reduce/sum.cu", "block_sum")
        assert text.startswith("// The sum over a block, in thread 0.")
        assert text.endswith("return sum;\n}")

    def test_one_that_is_not_there(self):
        with pytest.raises(ValueError, match=r"cuda/reduce/sum\.cu has no function missing"):
            module("sources").function("reduce/sum.cu", "missing")
