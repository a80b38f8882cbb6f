"""The planted faults are still there to be planted."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FAULTS = tomllib.loads((ROOT / "tests/planted_faults.toml").read_text())["fault"]

pytestmark = pytest.mark.skipif(not (ROOT / "csrc").exists(), reason="the tests stand alone")


@pytest.mark.parametrize("fault", FAULTS, ids=[fault["why"] for fault in FAULTS])
def test_a_fault_has_its_place(fault):
    """The text that it replaces stands there once."""
    assert (ROOT / fault["file"]).read_text().count(fault["old"]) == 1
