"""The device that the suite runs on, and what the tests share.

Without a GPU the simulator is chosen; GPUKERN_DEVICE=cuda or =sim from outside decides otherwise.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import hypothesis
import pytest

from arrays import settled
from fakes import fake, on_fake  # noqa: F401, fixtures
from gpukern import _core

if "GPUKERN_DEVICE" not in os.environ and _core.driver_report()["problem"] is not None:
    os.environ["GPUKERN_DEVICE"] = "sim"

os.environ.setdefault("GPUKERN_SIM_DEVICES", "2")

hypothesis.settings.register_profile("gpukern", deadline=None, max_examples=60, print_blob=True)
hypothesis.settings.load_profile("gpukern")

Script = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_report_header() -> str:
    """Which device the tests run on."""
    return f"gpukern on {_core.backend()}: {_core.devices()[0]['name']}"


@pytest.fixture(scope="module", autouse=True)
def frozen() -> Iterator[None]:
    """What lives when a file begins is not searched for garbage in each of its tests: with PyTorch
    and JAX in the process one search takes half a second."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def balanced() -> Iterator[None]:
    """The test leaves as many device bytes allocated as it has found."""
    before = settled()
    yield
    assert settled() == before


@pytest.fixture
def script() -> Script:
    """Run Python code in a new process: script(code, NAME=value or None to unset, ...)."""

    def run(code: str, *arguments: str, **changes: str | None) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **{k: v for k, v in changes.items() if v is not None}}
        for name in (name for name, value in changes.items() if value is None):
            environment.pop(name, None)
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    return run
