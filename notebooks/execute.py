"""Run notebooks from top to bottom and keep their outputs, by Python and matplotlib alone.

    python notebooks/execute.py [--record] [--into FOLDER] notebooks/*.ipynb

Each runs in a process of its own, in its folder. One that fails is left as it was, and the exit
status is 1. With --record what was compared on the GPU is written to ``recorded/``, from where it
is taken on a machine without one. With --into both go to that folder, and the notebooks here stay
as they are. For where Jupyter is not installed; Jupyter runs them as well.
"""

import argparse
import ast
import base64
import contextlib
import io
import json
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def execute(path: Path, target: Path) -> None:
    """Run one notebook in this process and its folder, and write it with its outputs."""
    os.chdir(path.parent)
    sys.path.insert(0, str(path.parent))
    book = json.loads(path.read_text())
    namespace = types.ModuleType("__main__").__dict__
    namespace["__builtins__"] = __builtins__
    cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(cells, 1):
        cell["metadata"].pop("execution", None)
        cell["execution_count"] = count
        cell["outputs"] = list(_run("".join(cell["source"]), namespace, count))
    book["metadata"]["language_info"]["version"] = sys.version.split()[0]
    target.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n")


def _run(source: str, namespace: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    """The outputs of a cell: what it prints, and the value of its last expression."""
    # Pictures are drawn as they are returned, as Jupyter does after this line.
    lines = source.splitlines()
    plain = "\n".join("" if line.startswith("%matplotlib") else line for line in lines)
    tree = ast.parse(plain, f"cell {count}")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {count}", "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), namespace)
    if printed.getvalue():
        yield {"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())}
    if value is not None:
        yield {
            "data": _shown(value),
            "execution_count": count,
            "metadata": {},
            "output_type": "execute_result",
        }


def _shown(value: Any) -> dict[str, Any]:
    """A value in every form that it has."""
    data: dict[str, Any] = {}
    if hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png", bbox_inches="tight")
        data["image/png"] = base64.b64encode(picture.getvalue()).decode()
    html = value._repr_html_() if hasattr(value, "_repr_html_") else None
    if html:
        data["text/html"] = _lines(html)
    data["text/plain"] = _lines(repr(value))
    return data


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> int:
    """Run each in a process of its own; 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--record", action="store_true", help="keep what was compared on the GPU")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="write there, not in place")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("notebooks", nargs="+", type=Path)
    given = parser.parse_args()
    if given.here:
        execute(*(path.resolve() for path in given.notebooks))
        return 0
    into = given.into or Path(__file__).parent
    environment = {"MPLBACKEND": "Agg", **os.environ}
    if given.record:
        kept = into.resolve() / "recorded"
        kept.mkdir(parents=True, exist_ok=True)
        environment["RECORD_NOTEBOOKS"] = str(kept)
    failed = False
    for path in given.notebooks:
        print(f"{path} ...", flush=True)
        target = into / path.name if given.into else path
        target.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, __file__, "--here", str(path), str(target)]
        failed |= bool(subprocess.run(command, env=environment, check=False).returncode)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
