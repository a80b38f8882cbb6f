"""The script benchmarks/accuracy.py: what it calls more, and a whole small run."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from scripts import FOLDER, imported

SCRIPT = FOLDER / "accuracy.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the tests stand alone")


@pytest.fixture(scope="module")
def script():
    with imported("accuracy") as (module,):
        yield module


def test_errors_are_in_units_of_a_rounding(script):
    exact = np.array([[1.0, -2.0], [4.0, 0.0]])
    got = exact.astype(np.float32)
    magnitude = np.full((2, 2), 4.0)
    assert script.errors_of(got, exact, magnitude) == script.Errors(0.0, 0.0)
    got[1, 0] = np.nextafter(np.float32(4), np.float32(5))  # by 2^-21
    errors = script.errors_of(got, exact, magnitude)
    assert errors.largest == 2.0
    assert errors.rms == pytest.approx(8 / np.sqrt(21))


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_has_to_be_in_its_place(script, odd):
    exact = np.array([[1.0, odd]])
    magnitude = np.abs(exact)
    right = exact.astype(np.float32)
    assert script.errors_of(right, exact, magnitude) == script.Errors(0.0, 0.0)
    for wrong in (
        [[odd, 1.0]],
        [[1.0, 7.0]],
        [[odd, odd]],
        [[1.0, 0.0 if np.isnan(odd) else -odd]],
    ):
        got = np.array(wrong, np.float32)
        assert script.errors_of(got, exact, magnitude) == script.Errors(None, None), wrong


def test_more_is_either_error_beyond_luck(script):
    errors = script.Errors
    assert not errors(1.0, 5.0).exceeds(errors(1.0, 5.0))
    assert not errors(1.005, 5.4).exceeds(errors(1.0, 5.0))
    assert errors(1.02, 1.0).exceeds(errors(1.0, 5.0))
    assert errors(0.5, 6.0).exceeds(errors(1.0, 5.0))
    assert errors(None, None).exceeds(errors(1.0, 5.0))


def test_every_kind_is_what_it_says(script):
    for name, make in script.KINDS.items():
        a, b = make(script.Draw((20, 64, 30)))
        assert a.shape == (20, 64) and b.shape == (64, 30) and a.dtype == b.dtype == np.float32
        assert np.isfinite(a).all() == (name not in ("infinities", "NaN")), name
        again = make(script.Draw((20, 64, 30)))
        np.testing.assert_array_equal(a, again[0], name)


def test_a_small_run(tmp_path):
    saved, table = tmp_path / "all.json", tmp_path / "all.md"
    command = [sys.executable, str(SCRIPT), "--variants", "naive,tiled"]
    command += ["--shapes", "9x40x17,20x64x8"]
    command += ["--save", str(saved), "--table", str(table)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(saved.read_text())
    assert {row["kind"] for row in rows} >= {"normal", "cancelling", "NaN"}
    assert all(errors["largest"] < 40 for row in rows for errors in row["errors"].values())
    assert table.read_text() in done.stdout
    assert "tiled: no more than the errors of" in done.stdout
