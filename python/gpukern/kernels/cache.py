"""What was compiled, kept on disk for the next program that wants it.

Each entry is a file, written apart and renamed, so that any number of processes may write the same
one. What is loaded from here runs: nothing is taken from a folder that others can write to.
"""

import hashlib
import json
import os
import stat
import threading
import warnings
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpukern.machine.folders import cache_folder

_MAGIC = b"gpukern kernel 1\n"
_DIGEST = hashlib.sha256().digest_size
MOST_BYTES = 512 << 20
_KEPT_SHARE = 0.75


def key(parts: Iterable[str | bytes]) -> str:
    """One name for all that decides what the compiler makes."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


@lru_cache(maxsize=8)
def _folder(path: Path) -> Path | None:
    """The folder, made where there is none; None where it may not be used."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = path.stat()
    except OSError:
        return None
    if about.st_uid == os.geteuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return path
    warnings.warn(
        f"gpukern: {path} belongs to another user or can be written by others, so nothing that was "
        "compiled is kept there; chmod 700 it, or name another folder in XDG_CACHE_HOME",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def _path(name: str) -> Path | None:
    folder = _folder(cache_folder() / "kernels")
    return folder / name[:2] / name[2:] if folder else None


def load(name: str) -> tuple[dict[str, Any], bytes] | None:
    """What was stored by that name, whole and by this user; None where there is none."""
    path = _path(name)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            data = file.read()
        os.utime(path)  # what is used is kept longest
    except OSError:
        return None
    body = data[len(_MAGIC) + _DIGEST :]
    if (
        data[: len(_MAGIC)] != _MAGIC
        or hashlib.sha256(body).digest() != data[len(_MAGIC) :][:_DIGEST]
    ):
        return None
    length = int.from_bytes(body[:8], "little")
    entry: dict[str, Any] = json.loads(body[8 : 8 + length])
    return entry, body[8 + length :]


def store(name: str, entry: dict[str, Any], image: bytes) -> None:
    """Keep it; where that cannot be done the next program compiles again."""
    path = _path(name)
    if path is None:
        return
    about = json.dumps(entry).encode()
    body = len(about).to_bytes(8, "little") + about + image
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        written = path.parent / f".new-{os.getpid()}-{threading.get_ident()}"
        try:
            written.write_bytes(_MAGIC + hashlib.sha256(body).digest() + body)
            written.rename(path)
        except BaseException:
            written.unlink(missing_ok=True)
            raise
        _trim(path.parent.parent)


def _trim(folder: Path) -> None:
    """Remove what was not used for longest, where all of it is more than may be kept."""
    found = []
    for path in folder.glob("??/*"):
        with suppress(OSError):
            about = path.stat()
            found.append((about.st_mtime_ns, about.st_size, path))
    total = sum(size for _, size, _ in found)
    if total <= MOST_BYTES:
        return
    for _, size, path in sorted(found):
        with suppress(OSError):
            path.unlink()
        total -= size
        if total <= MOST_BYTES * _KEPT_SHARE:
            return
