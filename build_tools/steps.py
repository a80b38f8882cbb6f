"""Commands that make files, done side by side, and what need not be done again."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent


def stop(sentence: str) -> NoReturn:
    """End the build with one sentence and no traceback."""
    raise SystemExit(f"gpukern: {sentence}")


def output_of(command: Sequence[str]) -> str:
    """What a command prints, or "" where it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout + done.stderr


def run(command: Sequence[str], quiet: bool = False) -> str:
    """Run one compiler command in the project's root, showing it and what it says.

    A quiet one is shown when it fails. Returns what it said.
    """
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0 or not quiet:
        print(shlex.join(command), done.stdout, sep="\n", end="", flush=True)
    if done.returncode != 0:
        stop(f"{Path(command[0]).name} failed; its command and its words are above")
    return done.stdout


@dataclass(frozen=True)
class Step:
    """One command that makes one file.

    `folders` are include folders whose paths may change while what they hold does not; `identity`
    names what they hold and which compiler this is. `inputs` are files that the compiler does not
    report as dependencies. `idle` are flags that do not change the output. `target` is what the
    source is compiled for, where there is more than one thing; `title` is for whoever watches.
    """

    output: Path
    tool: list[str]
    flags: list[str]
    source: str
    identity: str
    folders: list[str] = field(default_factory=list)
    inputs: list[Path] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    target: str = ""
    title: str = ""

    def make(self, output: Path) -> Iterable[str]:
        """Write `output`; the names of the files that it was made from."""
        report = output.with_name(output.name + ".d")
        dependencies = ["-MMD", "-MF", str(report)]
        flags = [*self.flags, *self.idle, *self.folders, *dependencies]
        try:
            run([*self.tool, *flags, self.source, "-o", str(output)])
            return reported_inputs((ROOT / report).read_text(), self.output.parent)
        finally:
            (ROOT / report).unlink(missing_ok=True)

    @property
    def record(self) -> Path:
        """Where it is written down what the output was made from."""
        return ROOT / self.output.with_name(self.output.name + ".json")

    def made_from(self, names: Iterable[str]) -> dict[str, str]:
        """What the output depends on, as hashes: the command, and each file by its name."""
        kind = type(self).__name__
        words = "\n".join([kind, self.identity, *self.flags, self.source, self.target])
        made = {name: content_hash(ROOT / name) for name in sorted(names)}
        return {"": hashlib.sha256(words.encode()).hexdigest()} | made

    def is_fresh(self) -> bool:
        """Whether the output is there and nothing that it was made from has changed since."""
        try:
            recorded = json.loads(self.record.read_text())
            now = self.made_from(name for name in recorded if name)
            return (ROOT / self.output).is_file() and bool(recorded == now)
        except (OSError, ValueError):
            return False


def content_hash(path: Path) -> str:
    """A hash of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def reported_inputs(report: str, generated: Path) -> list[str]:
    """The project's own and generated files among the dependencies that a compiler reported."""
    names = re.split(r"(?<!\\)\s+", report.replace("\\\n", " ").partition(":")[2].strip())
    own = []
    for name in names:
        path = Path(os.path.normpath(ROOT / name.replace("\\ ", " ")))
        if path.is_relative_to(ROOT):
            own.append(str(path.relative_to(ROOT)))
        elif path.is_relative_to(generated):
            own.append(str(path))
    return own


def perform(step: Step) -> bool:
    """Do a step unless its output is fresh. An output appears whole or not at all."""
    if step.is_fresh():
        return False
    final = ROOT / step.output
    final.parent.mkdir(parents=True, exist_ok=True)
    output = step.output.with_name(f"{step.output.name}.{os.getpid()}.{threading.get_ident()}")
    start = time.time()
    try:
        names = {*step.make(output), *map(str, step.inputs)}
        step.record.unlink(missing_ok=True)
        (ROOT / output).replace(final)
        # A file edited meanwhile may have been read before or after: then nothing is recorded.
        if all((ROOT / name).stat().st_mtime < start for name in names):
            step.record.write_text(json.dumps(step.made_from(names), indent=1))
    finally:
        (ROOT / output).unlink(missing_ok=True)
    return True


def perform_all(
    chains: Iterable[Sequence[Step]], jobs: int, done: Callable[[Step, bool], None]
) -> None:
    """Do the chains side by side, the steps of each in their order; the first failure ends it."""

    def perform_chain(chain: Sequence[Step]) -> None:
        for step in chain:
            done(step, perform(step))

    with ThreadPoolExecutor(jobs) as pool:
        try:
            for finished in as_completed([pool.submit(perform_chain, chain) for chain in chains]):
                finished.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
