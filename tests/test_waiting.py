"""No test waits without a limit, and a wait that is over its limit is a failure."""

from __future__ import annotations

import ast
import threading
from pathlib import Path

import pytest

from waiting import join_all

PROCESSES = ("run", "call", "check_call", "check_output")
WAITS = ("join", "wait", "communicate", "get", "acquire", "readline")


def unlimited(code: str) -> list[str]:
    """The waits in a test's code that may last for ever; what `script` runs has its own limit."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        named = {keyword.arg for keyword in node.keywords}
        process = ast.unparse(node.func.value) == "subprocess" and node.func.attr in PROCESSES
        other = node.func.attr in WAITS and not node.args
        if (process or other) and "timeout" not in named:
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


@pytest.mark.parametrize("path", sorted(Path(__file__).parent.glob("*.py")), ids=lambda p: p.name)
def test_every_wait_has_a_limit(path):
    assert not unlimited(path.read_text())


def test_a_wait_without_a_limit_is_found():
    code = "t.join()\nsubprocess.run(x)\np.communicate()\nsubprocess.run(x, timeout=3)\n','.join(a)"
    assert [one.partition(":")[0] for one in unlimited(code)] == ["line 1", "line 2", "line 3"]


def test_a_thread_that_hangs_is_a_failure():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, args=(60,))
    thread.start()
    with pytest.raises(AssertionError, match=r"has not ended after 0\.01 s"):
        join_all(thread, limit=0.01)
    stop.set()
    join_all(thread)
