"""What the README shows is what happens."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import gpukern
from gpukern.cli.commands import main

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
