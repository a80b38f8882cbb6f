"""Run notebooks from top to bottom and store their outputs, without needing Jupyter.

    python notebooks/execute.py notebooks/*.ipynb                      # in place
    python notebooks/execute.py --output results/notebooks notebooks/*.ipynb

What a cell prints, the value of its last expression (as text, HTML and, for matplotlib figures,
PNG) and an exception become its outputs, in the format that Jupyter writes. Nothing but Python is
needed, so that this works on a machine with a GPU and no network. Exit status 1 if a cell raises.
"""

import argparse
import ast
import base64
import contextlib
import io
import json
import sys
import traceback
from pathlib import Path
from typing import Any


def display_data(value: Any) -> dict[str, Any]:
    """A value in each form that a notebook can show."""
    data: dict[str, Any] = {"text/plain": lines(repr(value))}
    if type(value).__module__.startswith("matplotlib.figure"):
        stream = io.BytesIO()
        value.savefig(stream, format="png", dpi=70)
        data["image/png"] = base64.b64encode(stream.getvalue()).decode()
    elif hasattr(value, "_repr_html_"):
        data["text/html"] = lines(value._repr_html_())
    return data


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def run_cell(source: str, name: str, variables: dict[str, Any]) -> Any:
    """Run a cell; the value of its last line if that is an expression."""
    tree = ast.parse(source, name)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr) or source.rstrip().endswith(";"):
        exec(compile(tree, name, "exec"), variables)
        return None
    tree.body.pop()
    exec(compile(tree, name, "exec"), variables)
    return eval(compile(ast.Expression(last.value), name, "eval"), variables)


def outputs_of(source: str, count: int, variables: dict[str, Any]) -> tuple[list[Any], bool]:
    """The outputs of a cell, and whether it went well."""
    printed = io.StringIO()
    found: list[dict[str, Any]] = []
    right, value = True, None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            value = run_cell(source, f"<cell {count}>", variables)
        except Exception as error:
            right = False
            text = traceback.format_exc()
            found.append(
                {
                    "output_type": "error",
                    "ename": type(error).__name__,
                    "evalue": str(error),
                    "traceback": text.splitlines(),
                }
            )
    if printed.getvalue():
        text = printed.getvalue()
        found.insert(0, {"output_type": "stream", "name": "stdout", "text": lines(text)})
    if value is not None:
        data = display_data(value)
        kind = {"output_type": "execute_result", "execution_count": count}
        found.append({**kind, "data": data, "metadata": {}})
    return found, right


def execute(path: Path, target: Path) -> bool:
    """Run one notebook and write it with its outputs; whether every cell went well."""
    notebook = json.loads(path.read_text())
    variables: dict[str, Any] = {"__name__": "__main__"}
    count, right = 0, True
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        count += 1
        cell["execution_count"] = count
        cell["outputs"], right = outputs_of("".join(cell["source"]), count, variables)
        if not right:
            error = cell["outputs"][-1]
            print(f"{path.name}, cell {count}: {error['ename']}: {error['evalue']}")
            break
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    return right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, help="a folder, in place of the notebooks' own")
    arguments = parser.parse_args()
    failed = []
    for path in arguments.notebooks:
        target = arguments.output / path.name if arguments.output else path
        if not execute(path, target):
            failed.append(path.name)
    print(f"{len(arguments.notebooks)} notebooks executed, failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
