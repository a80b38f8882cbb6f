"""What threads share, hammered by several of them under ThreadSanitizer: the workers, the pool,
mailboxes, the pipeline, and the simulator's queues, events and launches (planted/threads.c)."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (
    *("csrc/base/*.c", "csrc/device/sim/*.c", "cuda/sim/*.c", "tests/planted/threads.c"),
    *(
        f"csrc/engine/{name}.c"
        for name in (
            "chunks",
            "duel",
            "flow",
            "mailbox",
            "passage",
            "pipeline",
            "pool",
            "staging",
            "trace",
        )
    ),
)
# As in the build: what switches stacks cannot be followed.
SWITCHING = {"block.c", "fiber.c", "explain.c"}
FLAGS = ["-std=c17", "-D_GNU_SOURCE=", "-g", "-O1", "-fno-strict-aliasing"]
USES = ("workers", "pool", "mailboxes", "pipeline", "parts", "events", "launches", "allocations")

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or not (ROOT / "csrc").exists(), reason="races are shown in C"
)


@pytest.fixture(scope="module")
def threads(tmp_path_factory):
    """The program, with ThreadSanitizer."""
    folder = tmp_path_factory.mktemp("races")
    (folder / "gk_families.h").write_text("GK_FAMILY(threads)\n")
    includes = ["-I.", f"-I{ROOT / 'csrc'}", f"-I{ROOT / 'cuda'}"]

    def compiled(source):
        sanitizer = [] if source.name in SWITCHING else ["-fsanitize=thread"]
        output = f"{source.parent.name}-{source.stem}.o"
        command = ["gcc", *FLAGS, *sanitizer, *includes, "-c", str(source), "-o", output]
        subprocess.run(command, cwd=folder, check=True, timeout=600)
        return output

    sources = [path for pattern in SOURCES for path in sorted(ROOT.glob(pattern))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compiled, sources))
    link = ["gcc", "-fsanitize=thread", *objects, "-o", "threads", "-pthread"]
    subprocess.run(link, cwd=folder, check=True, timeout=600)
    return folder / "threads"


@pytest.mark.costly(2)
@pytest.mark.parametrize("lazy", ["0", "1"], ids=["at once", "in any order"])
@pytest.mark.parametrize("use", USES)
def test_threads_do_not_race(threads, use, lazy):
    """The address space is not randomized: the sanitizer has no place for what lies elsewhere."""
    changes = {"GPUKERN_SIM_LAZY": lazy, "GPUKERN_SIM_THREADS": "3", "GPUKERN_SIM_DEVICES": "1"}
    changes["TSAN_OPTIONS"] = "halt_on_error=1 second_deadlock_stack=1"
    plain = ["setarch", "-R"] if shutil.which("setarch") else []
    run = subprocess.run(
        [*plain, threads, use],
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "right\n"), run.stderr[:4000]
