"""What the README shows is what happens."""

from __future__ import annotations

import doctest
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import gpukern
from gpukern import _core
from gpukern.cli.commands import main
from gpukern.machine import libraries

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="the tests stand alone, without README")


def commands() -> dict[str, str]:
    """The shell blocks that are marked with the name under which CI runs them."""
    text = README.read_text()
    return dict(re.findall(r"<!-- ci: (\w+) -->\n```sh\n(.*?)\n```", text, re.DOTALL))


def test_every_snippet_of_python():
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testfile(str(README), module_relative=False, optionflags=flags)
    assert tried >= 20
    assert not failed


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ is here")
def test_the_kernels_of_your_own(monkeypatch, tmp_path):
    if _core.backend() == "cuda" and libraries.find_nvrtc(None) is None:
        pytest.skip("NVRTC is not installed")
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code = re.search(r"```python\n(module = gk\.compile.*?)```", README.read_text(), re.DOTALL)
    a, x, y = np.ones((4, 4), np.float32), np.arange(9, dtype=np.float32), np.ones(9, np.float32)
    exec(code[1], {"gk": gpukern, "a": a, "x": x, "y": y})
    np.testing.assert_array_equal(a, 2)
    np.testing.assert_array_equal(y, 1 + 2 * x)


def test_the_two_commands():
    assert commands() == {
        "compare": "pip install . && gpukern compare",
        "tests": 'pip install ".[test]" && pytest -n 4',
    }


def test_the_other_commands_are_understood():
    lines = re.findall(r"^gpukern compare(?P<arguments>.*?)(?:#.*)?$", README.read_text(), re.M)
    assert len(lines) >= 4
    for line in lines:
        for option in re.findall(r"--\w+", line):
            assert option in CliRunner().invoke(main, ["compare", "--help"]).output


def test_the_row_that_it_adds_is_like_the_rows_that_there_are():
    source = (ROOT / "cuda" / "elementwise" / "add.cu").read_text()
    row = re.search(r"^GK_ADD_STEP\(f32x2, .*$", README.read_text(), re.M)
    assert row
    existing = re.findall(r"^GK_ADD_STEP\(f.*$", source, re.M)
    assert len(existing) >= 8
    assert {len(re.sub(r'".*"', "", line).split(",")) for line in [row.group(), *existing]} == {5}
    kernel = re.search(r"^GK_ADD\(f32x2, float\) {.*?^}$", README.read_text(), re.M | re.S)
    assert kernel
    for line in (
        "GK_ADD(f32, float) {",
        "size_t i = gk_thread() * 4;",
        "add_rest(out, a, b, i, n);",
    ):
        assert line in source
        assert re.sub(r"f32\b", "f32x2", line).replace("* 4", "* 2") in kernel.group()


def test_every_dtype_is_named():
    text = README.read_text()
    assert all(variant.dtype in text for variant in gpukern.variants())
