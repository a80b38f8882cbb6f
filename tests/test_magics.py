"""What ``%load_ext gpukern`` brings to IPython."""

from __future__ import annotations

import pytest

from fakes import NEEDS_FAKE
from gpukern.machine import libraries

pytest.importorskip("IPython")

SHELL = """
import gpukern as gk
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "gpukern")
"""


@NEEDS_FAKE
def test_a_cell_is_compiled(right, tmp_path):
    if libraries.find_nvrtc(13000) is None:
        pytest.skip("NVRTC is not installed")
    tmp_path.chmod(0o700)
    code = """
source = "__global__ void fill(float *x) { x[threadIdx.x] = N; }"
made = shell.run_cell_magic("cuda", "mine -DN=3", source)
assert shell.user_ns["mine"] is made and made.kernels == ("fill",) and made.name == "mine.cu"
shell.run_cell("%%cuda -DN=4\\n" + source)
assert shell.user_ns["module"].fill.signature == "fill(float *x)"
name, sentence = failure(shell.run_cell_magic, "cuda", "mine", source)
assert name == "CompileError" and "mine.cu:1" in sentence and shell.user_ns["mine"] is made
name, sentence = failure(shell.run_cell_magic, "cuda", "two-words", source)
assert name == "ValueError" and sentence.startswith("%%cuda: the name of the module"), sentence
"""
    right(SHELL + code, XDG_CACHE_HOME=tmp_path, IPYTHONDIR=tmp_path)


def test_the_command_runs_in_the_notebook(script, tmp_path):
    code = """
@gk.contender("add")
def mine(a, b):
    return a + b
shell.run_line_magic("gpukern", "compare add --sizes 100 --contenders mine,numpy --rounds 1")
shell.run_line_magic("gpukern", "compare nonsense")
"""
    done = script(SHELL + code, GPUKERN_DEVICE="sim", IPYTHONDIR=str(tmp_path), COLUMNS="160")
    assert done.returncode == 0, done.stderr
    assert "mine" in done.stdout and "right" in done.stdout
    assert "nonsense" in done.stderr and "Traceback" not in done.stderr
