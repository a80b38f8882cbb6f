"""Plants the faults of planted_faults.toml one by one in a copy of the source tree, rebuilds it and
runs the tests that have to notice:

    python tests/planted.py             all of them
    python tests/planted.py pipeline    those with the word in their file or reason
    python tests/planted.py --list      what there is

A fault is caught where a test fails or hangs. Ends with 1 where one survives or an entry is out of
date. The tests run in this Python, which needs what building needs (pip install -e . does)."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FAULTS = ROOT / "tests/planted_faults.toml"
LONGEST = 300  # seconds that tests may take; those that take longer hang


@dataclass(frozen=True)
class Fault:
    """One entry: the text of a file that is replaced, and why a test must notice."""

    file: str
    old: str
    new: str
    why: str
    tests: str  # arguments of pytest


class Copy:
    """A source tree of its own, and the package that is built from it."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.site = folder / "tree", folder / "site"
        names = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout.splitlines()
        for name in names:
            if (ROOT / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.tree / name)
        if (ROOT / "build/gpukern").is_dir():  # what is compiled already
            shutil.copytree(ROOT / "build/gpukern", self.tree / "build/gpukern")

    def builds(self) -> bool:
        """Whether what stands in the tree compiles; it is installed then."""
        for old in (self.site, *self.tree.glob("build/lib*")):
            shutil.rmtree(old, ignore_errors=True)
        flags = ["--no-build-isolation", "--no-deps", "--quiet", "--target", str(self.site)]
        command = [sys.executable, "-m", "pip", "install", *flags, "."]
        return (
            subprocess.run(
                command, cwd=self.tree, capture_output=True, check=False, timeout=1200
            ).returncode
            == 0
        )

    def notices(self, tests: str) -> bool:
        """Whether one of the tests fails."""
        flags = ["-q", "-x", "-p", "no:cacheprovider", "--every=1"]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *flags, *shlex.split(tests)],
                cwd=self.tree,
                env={**os.environ, "PYTHONPATH": str(self.site)},
                capture_output=True,
                timeout=LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return True
        if done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
            raise SystemExit(f"pytest {tests} finds no tests")
        return done.returncode != 0

    def check(self, all_tests: set[str]) -> None:
        """Without a fault it builds, and no test fails."""
        if not self.builds():
            raise SystemExit("without a fault it does not build already")
        for tests in sorted(all_tests):
            if self.notices(tests):
                raise SystemExit(f"without a fault pytest {tests} fails already")

    def outcome(self, fault: Fault) -> str:
        """What becomes of the fault; the tree is as before afterwards."""
        path = self.tree / fault.file
        before = path.read_text()
        if before.count(fault.old) != 1:
            return f"out of date: the text stands in {fault.file} {before.count(fault.old)} times"
        path.write_text(before.replace(fault.old, fault.new))
        try:
            if not self.builds():
                return "does not build"
            return "caught" if self.notices(fault.tests) else "SURVIVED"
        finally:
            path.write_text(before)


def chosen(words: list[str]) -> list[Fault]:
    """The entries with all of the words."""
    entries = tomllib.loads(FAULTS.read_text())["fault"]
    faults = [Fault(**entry) for entry in entries]
    return [fault for fault in faults if all(word in fault.file + fault.why for word in words)]


def main() -> int:
    """Plant what the command line asks for and show a table."""
    parser = argparse.ArgumentParser(description="Do the tests notice planted faults?")
    parser.add_argument("words", nargs="*", help="plant those that have them in file or reason")
    parser.add_argument("--list", action="store_true", help="show them and plant none")
    options = parser.parse_args()
    faults = chosen(options.words)
    survived = 0
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copy = None if options.list else Copy(Path(folder))
        if copy:
            copy.check({fault.tests for fault in faults})
        for fault in faults:
            start = time.monotonic()
            outcome = copy.outcome(fault) if copy else ""
            survived += copy is not None and outcome != "caught"
            seconds = f"{time.monotonic() - start:5.0f} s" if copy else ""
            print(f"{outcome:10} {seconds}  {fault.file}: {fault.why}", flush=True)
    if not options.list:
        print(f"{len(faults) - survived} of {len(faults)} caught")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
