"""The device that the suite runs on, and what the tests share.

Without a GPU the simulator is chosen; GPUKERN_DEVICE=cuda or =sim from outside decides otherwise.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import hypothesis
import pytest

import alone  # noqa: F401, before whatever imports NumPy
from arrays import settled
from fakes import cublas, fake, on_fake, right, with_blas  # noqa: F401, fixtures
from gpukern import _core

if "GPUKERN_DEVICE" not in os.environ and _core.driver_report()["problem"] is not None:
    os.environ["GPUKERN_DEVICE"] = "sim"

os.environ.setdefault("GPUKERN_SIM_DEVICES", "2")

# Or JAX takes three quarters of a GPU that the other processes of the suite need as well.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

hypothesis.settings.register_profile("gpukern", deadline=None, max_examples=60, print_blob=True)
hypothesis.settings.load_profile("gpukern")

Script = Callable[..., "subprocess.CompletedProcess[str]"]


# A test with more cases than this has them for the sake of completeness.
MANY_CASES = 2


def pytest_addoption(parser: pytest.Parser) -> None:
    """The order of the tests, and how many of them."""
    parser.addoption(
        "--shuffle", type=int, metavar="SEED", help="files, and tests in each, in another order"
    )
    parser.addoption(
        "--every",
        type=int,
        metavar="N",
        help="of a test's cases one of N, or one; 1: all, also those that are costly to simulate",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    config.addinivalue_line(
        "markers", "costly(n): a GPU sees all cases, the simulator one of n, unless --every is said"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the cases and their order."""
    leave_out(config, items)
    shuffle(config.getoption("shuffle"), items)


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is slow by itself, as a sanitizer is, need not see each dtype of each variant."""
    every = config.getoption("every")
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    many = [mine for mine in cases.values() if len(mine) > MANY_CASES]
    left = {item for mine in many for item in mine} - {
        item for mine in many for item in chosen(mine, every or costs(mine[0]))
    }
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


def costs(item: pytest.Item) -> int:
    """Of so many cases one is simulated."""
    mark = item.get_closest_marker("costly")
    return mark.args[0] if mark and os.environ.get("GPUKERN_DEVICE") == "sim" else 1


def chosen(cases: list[pytest.Item], every: int) -> list[pytest.Item]:
    """By their names: in the order of the cases each third one may be of one dtype."""
    number = {item: crc32(item.nodeid.encode()) for item in cases}
    found = [item for item in cases if number[item] % every == 0]
    return found or [min(cases, key=number.__getitem__)]


def shuffle(seed: int | None, items: list[pytest.Item]) -> None:
    """No test may need another before it: --shuffle shows it. Files stay together, for what their
    tests share takes time to make."""
    if seed is None:
        return
    chance = random.Random(seed)
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    order = list(files.values())
    chance.shuffle(order)
    for tests in order:
        chance.shuffle(tests)
    items[:] = [item for tests in order for item in tests]


def pytest_report_header() -> str:
    """Which device the tests run on."""
    return f"gpukern on {_core.backend()}: {_core.devices()[0]['name']}"


@pytest.fixture
def by_vectors() -> Iterator[None]:
    """Reductions of few elements by the kernels that large arrays have."""
    before = _core.limit("vectors", 0)
    yield
    _core.limit("vectors", before)


@pytest.fixture(params=["as is best", "by vectors"])
def walks(request: pytest.FixtureRequest) -> None:
    """Once by the kernels that the array has, once by those of large ones."""
    if request.param == "by vectors":
        request.getfixturevalue("by_vectors")


@pytest.fixture(scope="module", autouse=True)
def frozen() -> None:
    """What lives when a file begins is not searched for garbage in each of its tests, nor when the
    next file begins: 20,000 tests take 0.2 s, PyTorch and JAX half a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def many_comparisons(frozen: None) -> Iterator[None]:
    """What each comparison asks anew is asked once for a file that makes a hundred: the commit, by
    two processes, and whether anything is frozen, for which all that is frozen is counted."""
    from gpukern.bench.clock import wall
    from gpukern.machine import conditions

    with pytest.MonkeyPatch.context() as patch:
        commit = conditions.commit()
        patch.setattr(conditions, "commit", lambda: commit)
        patch.setattr(wall, "something_is_frozen", lambda: True)
        yield


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of its own for what the tests of a file compile."""
    folder = tmp_path_factory.mktemp("kept")
    folder.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture
def control_c() -> Iterator[None]:
    """SIGINT is heard, as in a terminal; what is started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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
