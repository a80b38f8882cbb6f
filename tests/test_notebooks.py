"""The notebooks run from top to bottom, and show tables and pictures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpukern.machine.inventory import installed

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NEEDED = ("nbclient", "nbformat", "ipykernel", "matplotlib")

pytestmark = [
    pytest.mark.skipif(not NOTEBOOKS, reason="the tests stand alone, without the notebooks"),
    pytest.mark.skipif(
        not all(map(installed, NEEDED)), reason='not installed: pip install "gpukern[test]"'
    ),
]

EXECUTE = """
import sys, nbclient, nbformat
book = nbformat.read(sys.argv[1], 4)
nbformat.validate(book)
nbclient.NotebookClient(book, timeout=120).execute()
nbformat.write(book, sys.argv[2])
"""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    import nbformat

    target = tmp_path / path.name
    command = [sys.executable, "-c", EXECUTE, str(path), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    code = [cell for cell in nbformat.read(target, 4).cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    kinds = {kind for cell in code for one in cell.outputs for kind in one.get("data", ())}
    assert not any(one.output_type == "error" for cell in code for one in cell.outputs)
    if "%matplotlib" in path.read_text():
        assert {"text/plain", "text/html", "image/png"} <= kinds
