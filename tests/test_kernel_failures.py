"""Kernels of users' own on the fake driver, where something fails: the driver, Python's memory, a
fork."""

from __future__ import annotations

import pytest

from fakes import NEEDS_FAKE, answers
from test_user_kernels import KERNELS, SEEN

pytestmark = NEEDS_FAKE


@pytest.fixture
def runs(right):
    """Run code that asserts, with kernels on the fake driver."""
    return lambda code, **settings: right(KERNELS + SEEN + code, **settings)


def test_what_is_asked_of_a_kernel_may_fail(runs):
    runs("""
image = _core.Image(IMAGE)
for function, call in (
    ("cuOccupancyMaxActiveBlocksPerMultiprocessor", lambda: saxpy.active_blocks(64)),
    ("cuOccupancyMaxPotentialBlockSize", lambda: saxpy.suggest_block()),
    ("cuFuncGetParamInfo", lambda: image.parameters("user_v4_v8")),
):
    want, before = call(), live()
    fail(function, 999)
    name, sentence = failure(call)
    assert name == "CudaError" and sentence.startswith(("saxpy: asking for", "compile: asking for"))
    assert call() == want and live() == before, function
""")


def test_a_device_that_does_not_take_the_module(runs):
    """The first call of a kernel on it loads the module there."""
    runs(
        """
mapping = kernel("user_r8_w8_v8", pointer("const float *a"), pointer("float *z"),
                 number("long long n", SIGNED, 8))
with gk.device(1):
    here = gk.to_device(x)
calls = {
    "facts": lambda: saxpy.facts()["registers"],
    "active_blocks": lambda: saxpy.active_blocks(64),
    "suggest_block": lambda: saxpy.suggest_block(),
    "a call": lambda: saxpy(1, 32, here, y, 1.0, 8),
    "examine": lambda: saxpy.examine(1, 32, here, y, 1.0, 8),
    "map": lambda: mapping.map(64, 32, (8,), "f4", (x,))[0],
}
for what, call in calls.items():
    with gk.device(1):
        before = live()
        fail("cuModuleLoadData", 2, times=2)
        for _ in range(2):
            name, sentence = failure(call)
            assert name == "CudaError", (what, sentence)
            assert sentence.startswith(("saxpy: loading the module", "k: loading the module"))
        assert live() == before and y.tolist() == [5.0] * 8, what
for what, call in calls.items():
    with gk.device(1):
        assert failure(call)[0] == "none", what
assert y.tolist() == [6.0] + [5.0] * 7
""",
        FAKE_DEVICES=2,
    )


def test_the_child_of_a_fork_is_told_whatever_it_asks(on_fake):
    code = """
image = _core.Image(IMAGE)
calls = [saxpy.facts, lambda: saxpy.active_blocks(64), saxpy.suggest_block, lambda: saxpy[8],
         lambda: image.symbol("table_64"), lambda: image.array("table_64", "f4", 16),
         lambda: image.parameters("user_v4"), lambda: saxpy.examine(1, 32, x, y, 1.0, 8),
         lambda: saxpy.map(64, 32, (8,), "f4", (x, y))]
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, json.dumps([failure(call) for call in calls]).encode())
    os._exit(0)
os.wait()
print(os.read(reading, 10000).decode())
"""
    refused = answers(on_fake(KERNELS + code))
    assert len(refused) == 9
    for name, sentence in refused:
        assert name == "CudaError", sentence
        assert "does not survive a fork" in sentence


# So many arguments that they have no place on the stack.
MANY = """
integers = [number(f"int n{i}", SIGNED, 4) for i in range(17)]
many = kernel("user" + "_v4" * 17, *integers, name="many")
"""


def test_many_arguments(runs):
    runs(f"""{MANY}
many(1, 32, *range(17))
assert seen("17i") == tuple(range(17))
name, sentence = failure(many, 1, 32, *range(16))
assert name == "TypeError" and "takes 17 arguments" in sentence and "given 16" in sentence, sentence
name, sentence = failure(many, 1, 32, *range(16), "x")
assert name == "TypeError" and sentence.startswith("many: int n16 takes a number"), sentence
names = [f"a_long_name_of_a_parameter_{{i:04}}" for i in range(17)]
long = kernel("user" + "_v4" * 17, *[number(f"int {{name}}", SIGNED, 4) for name in names])
name, sentence = failure(long, 1, 32)
assert name == "TypeError" and names[0] in sentence and sentence.endswith("was given 0"), sentence
""")


def test_calls_of_many_arguments_and_of_a_profile_without_memory(runs):
    pytest.importorskip("_testcapi", reason="this Python has not the module that refuses memory")
    runs(f"""{MANY}
there = gk.to_device(y)
def profiled():
    _core.profile_start()
    try:
        saxpy(1, 32, there, y, 1.0, 8)
    finally:
        _core.profile_stop()
calls = lambda: many(1, 32, *range(17)), lambda: many.examine(1, 32, *range(17)), profiled, (
    lambda: saxpy.examine(1, 32, there, x, 1.0, 8))
for call in calls:
    assert refused(call) >= 2
""")


def test_a_map_that_does_not_fit_its_kernel(runs):
    runs("""
scaled = kernel("user_r8_v4_w8_v8", pointer("const float *a"), number("float by", FLOAT, 4),
                pointer("float *z"), number("long long n", SIGNED, 8), name="scaled")
def mapped(*arguments, block=32, shape=(8,), dtype="f4", a_block=64, **named):
    return scaled.map(a_block, block, shape, dtype, arguments, **named)
assert mapped(x, 2.5).tolist()[0] == 6.0 and seen("QfQq")[1] == 2.5
out = np.full(8, 7, np.float32)
for kind, words, call in (
    ("TypeError", "scaled: float by takes a number", lambda: mapped(x, "text", out=out)),
    ("TypeError", "scaled: const float *a is a pointer", lambda: mapped(5, 2.5, out=out)),
    ("TypeError", "scaled: const float *a takes an array of float32",
     lambda: mapped(x.astype("f8"), 2.5, out=out)),
    ("ValueError", "scaled: takes the elements of a block", lambda: mapped(x, out=out)),
    ("ValueError", "and was given 0", lambda: mapped(x, 2.5, a_block=0, out=out)),
    ("TypeError", "", lambda: mapped(x, 2.5, a_block="x", out=out)),
    ("TypeError", "scaled: block has to be", lambda: mapped(x, 2.5, block=1.5, out=out)),
    ("ValueError", "1025 threads", lambda: mapped(x, 2.5, block=1025, out=out)),
    ("TypeError", "scaled: the last parameters", lambda: mapped(x, 2.5, dtype="i4")),
    ("TypeError", "stream has to be", lambda: mapped(x, 2.5, stream="x", out=out)),
    ("TypeError", "map", lambda: mapped(x, 2.5, absent=3, out=out)),
):
    name, sentence = failure(call)
    assert name == kind and words in sentence, sentence
    assert out.tolist() == [7.0] * 8
assert mapped(x, 2.5, out=out) is out and out[0] == 6.0 and _core.live_bytes() == 0
""")


def test_a_direction_in_a_cycle_is_collected(runs):
    runs("""
import weakref
class Lent:
    __cuda_array_interface__ = gk.to_device(x).__cuda_array_interface__
for kind in gk.In, gk.Out, gk.InOut:
    lent, table = Lent(), {}
    lent.itself = kind(lent)
    table["itself"] = [kind(table), lent.itself]
    there = weakref.ref(lent)
    assert lent.itself.array is lent
    del lent, table
    gc.collect()
    assert there() is None, kind
""")
