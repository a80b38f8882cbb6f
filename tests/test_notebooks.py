"""The notebooks run from top to bottom, by the runner here and by Jupyter's if it is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpukern.contenders import installed

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
pytestmark = [
    pytest.mark.skipif(not NOTEBOOKS, reason="the tests stand alone, without the notebooks"),
    pytest.mark.skipif(not installed("matplotlib"), reason="not installed: pip install matplotlib"),
]


def test_each_runs(tmp_path):
    command = [sys.executable, str(FOLDER / "execute.py"), "--output", str(tmp_path)]
    done = subprocess.run(
        [*command, *map(str, NOTEBOOKS)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for path in NOTEBOOKS:
        cells = json.loads((tmp_path / path.name).read_text())["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert all(cell["execution_count"] for cell in code)
        kinds = {kind for cell in code for o in cell["outputs"] for kind in o.get("data", ())}
        assert "text/plain" in kinds
        if "matmul" in path.name:
            assert {"text/html", "image/png"} <= kinds


def test_a_cell_that_raises_is_told(tmp_path):
    cell = {"cell_type": "code", "metadata": {}, "source": ["print(1)\n", "1 / 0"]}
    path = tmp_path / "broken.ipynb"
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4}))
    command = [sys.executable, str(FOLDER / "execute.py"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "broken.ipynb, cell 1: ZeroDivisionError" in done.stdout
    outputs = json.loads(path.read_text())["cells"][0]["outputs"]
    assert [one["output_type"] for one in outputs] == ["stream", "error"]


@pytest.mark.skipif(
    not installed("nbclient") or not installed("ipykernel"),
    reason='not installed: pip install "gpukern[notebook]"',
)
@pytest.mark.skipif(
    "__import__('gpukern')._core.backend() != 'sim'", reason="once is enough on a GPU"
)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_jupyter_runs_them_too(path):
    script = (
        "import sys, nbformat, nbclient\n"
        "book = nbformat.read(sys.argv[1], 4)\n"
        "nbformat.validate(book)\n"
        "nbclient.NotebookClient(book, timeout=120).execute()\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
