"""Kernels of users' own, launched on the fake driver: what they are given, and what is refused."""

from __future__ import annotations

import pytest

from fakes import NEEDS_FAKE, answers

pytestmark = NEEDS_FAKE

# Kernels without a compiler: the fake driver reads from a symbol what a kernel takes, and notes the
# arguments of a launch.
KERNELS = """
import struct
from gpukern.kernels.module import Found, make_kernel
from gpukern.kernels.signature import *
from gpukern.kernels.signature import Parameter
IMAGE = b"\\x7fELF" + bytes(60)
def kernel(symbol, *parameters, name="k"):
    return make_kernel(name, Found(_core.Image(IMAGE), symbol, parameters, 0))
def pointer(text, made_of=FLOAT, scalar=4, lanes=1, whole=None):
    size = whole or scalar * lanes
    return Parameter(text, POINTER, 8, text.startswith("const"), made_of, scalar, size, size)
def number(text, made_of, size):
    return Parameter(text, made_of, size, 0, 0, 0, 0, 1)
saxpy = kernel("user_r8_w8_v4_v4", pointer("const float *x"), pointer("float *y"),
               number("float a", FLOAT, 4), number("int n", SIGNED, 4), name="saxpy")
x, y = np.full(8, 3, np.float32), np.full(8, 5, np.float32)
"""
SEEN = """
def seen(form):
    return struct.unpack_from("<" + form, (ctypes.c_char * 4096).in_dll(driver, "fake_seen"))
def sides():
    return list((ctypes.c_uint * 7).in_dll(driver, "fake_seen_sides"))
"""


@pytest.fixture
def runs(right):
    """Run code that asserts, with kernels on the fake driver."""
    return lambda code, **settings: right(KERNELS + SEEN + code, **settings)


def test_numpy_arrays_go_there_and_back_as_the_source_says(runs):
    runs("""
assert saxpy(4, 32, x, y, 2.5, 8) is None
assert y.tolist() == [6.0] + [5.0] * 7 and x.tolist() == [3.0] * 8
assert seen("QQfi")[2:] == (2.5, 8)
assert sides() == [4, 1, 1, 32, 1, 1, 0]
saxpy((1, 2, 3), [4, 5], gk.In(x), gk.In(y), 1, np.int32(-1), shared=256)
assert y[0] == 6.0, "gpukern.In is not copied back"
assert sides() == [1, 2, 3, 4, 5, 1, 256] and seen("QQfi")[2:] == (1.0, -1)
out = np.zeros(8, np.float32)
saxpy(1, 1, x, gk.Out(out), 1.0, 8)
assert out[0] == 6.0
saxpy(1, 1, x, gk.InOut(y), 1.0, 8)
assert _core.live_bytes() == 0
""")


def test_device_arrays_are_used_where_they_are(runs):
    runs("""
there, result = gk.to_device(x), gk.to_device(y)
class Lent:
    __cuda_array_interface__ = result.__cuda_array_interface__
log = steps(lambda: saxpy(1, 32, there, result, 1.0, 8))
assert log == ["l0"], log
at = there.__cuda_array_interface__["data"][0]
assert seen("Q") == (at,)
saxpy(1, 32, gk.In(there), Lent(), 1.0, 8)
assert result.to_host()[0] == 6.0
assert _core.live_bytes() == 64
""")


def test_small_host_arrays_go_in_one_copy_each_way(runs):
    runs("""
several = kernel("user_r8_r8_w8_w8_v4", *[pointer(f"const float *r{k}") for k in "ab"],
                 pointer("float *w"), pointer("float *v"), number("int n", SIGNED, 4))
w, v = np.zeros(70, np.float32), np.full(3, 7, np.float32)
several(1, 32, x, y, w, gk.Out(v), 8)  # which makes the pinned memory
for _ in range(3):
    log = steps(lambda: several(1, 32, x, y, w, gk.Out(v), 8))
    assert log == ["i0", "l0", "o0"], log
places = seen("QQQQi")[:4]
assert all(place % 256 == 0 for place in places), places
assert len(set(places)) == 4 and max(places) - min(places) < 2000
# One that is there already stays where it is, and one that none is read of is not copied in.
there = gk.to_device(x)
log = steps(lambda: several(1, 32, there, gk.In(y), gk.Out(w), gk.Out(v), 8))
assert log == ["i0", "l0", "o0"], log
assert seen("Q")[0] == there.__cuda_array_interface__["data"][0]
assert steps(lambda: several(1, 32, there, there, gk.Out(w), None, 8)) == ["l0", "o0"]
with gk.profile() as profile:
    several(1, 32, x, y, w, gk.Out(v), 8)
[call] = profile.calls
assert (call.bytes_in, call.bytes_out) == (32 + 32 + 280, 280 + 12), call
assert y.tolist() == [5.0] * 8
del there
assert _core.live_bytes() == 0
""")


def test_device_memory_of_small_host_arrays_stays(runs):
    runs("""
others = [kernel(f"user_r8_w8_v4_v4", *saxpy.parameters) for _ in range(3)]
for _ in range(3):
    saxpy(1, 32, x, y, 1.0, 8)
    assert _core.live_bytes() == 0
first = seen("QQ")
for one in others:
    one(1, 32, x, y, 1.0, 8)
    assert seen("QQ") == first, "the same memory for whoever comes next"
gk.release_memory()
assert y[0] == 6.0 and _core.live_bytes() == 0
fail("cuMemAllocFromPoolAsync", 2)  # of what stays, and not of each array
y[:] = 5
saxpy(1, 32, x, y, 1.0, 8)
assert y[0] == 6.0 and _core.live_bytes() == 0
assert steps(lambda: saxpy(1, 32, x, y, 1.0, 8)) == ["i0", "l0", "o0"], "where there is room again"
""")


# A kernel that is made of an expression: `map` takes host arrays as they lie.
MAPPED = """
both = kernel("user_r8_r8_w8_v8", pointer("const float *a"), pointer("const float *b"),
              pointer("float *z"), number("long long n", SIGNED, 8), name="both")
def mapped(a, b, shape, **named):
    return both.map(64, 32, shape, "f4", (a, b), **named)
def given(number, shape):  # what the kernel had of an array, which lies there until the next call
    where, bytes = seen("QQQq")[number], 4 * int(np.prod(shape))
    return np.frombuffer((ctypes.c_char * bytes).from_address(where), "f4").reshape(shape)
rng = np.random.default_rng(1)
a = rng.standard_normal((37, 83)).astype(np.float32)
views = [a, a[:, ::2], a[::-1, 3:], a.T, a[:, :1], a[5], a[5:6], a[:, 3], a[7:8, 2:3],
         a[3, 4, None], a.astype(">f4")[::3], np.array(3, "f4"), a[:0], a[:, :0]]
pairs = []
for one in views:
    for other in views:
        try:
            pairs.append((one, other, np.broadcast_shapes(one.shape, other.shape)))
        except ValueError:
            pass
assert len(pairs) > 40
"""


def test_small_arrays_are_mapped_as_they_lie(runs):
    runs(
        MAPPED
        + """
mapped(a, a, a.shape)
before = live()
for one, other, shape in pairs:
    ones = [np.broadcast_to(each, shape).astype("f4") for each in (one, other)]
    log = steps(lambda: mapped(one, other, shape))
    assert len(log) == (0 not in shape), "a launch, and no copy"
    result = mapped(one, other, shape)
    assert isinstance(result, np.ndarray) and result.shape == shape and result.dtype == "f4"
    if 0 in shape:
        continue
    assert log[0][0] == "l" and log != ["l0"], log
    assert seen("QQQq")[3] == result.size and sides()[0] == -(-result.size // 64)
    assert all(place % 256 == 0 for place in seen("QQQ"))
    for number in range(2):
        assert (given(number, shape) == ones[number]).all(), (one.shape, other.shape, number)
    assert result.ravel()[0] == 2 * ones[1].ravel()[0]
out = np.full((37, 2), 9, np.float32)
assert mapped(a[:, :1], a[:, 5:6], (37, 1), out=out[:, 1:]).base is out
assert out[0].tolist() == [9, 2 * a[0, 5]] and (out[:, 0] == 9).all()
assert live() == before and _core.live_bytes() == 0
with gk.profile() as profile:
    mapped(a, a[0], a.shape)
[call] = profile.calls
assert (call.bytes_in, call.bytes_out) == (2 * a.nbytes, a.nbytes), call
with gk.strict():
    assert mapped(a, a[0], a.shape)[0, 0] == 2 * a[0, 0]
for wrong in (a[:, :3], a[None, None], gk.to_device(a)):
    name, sentence = failure(mapped, a, wrong, a.shape)
    assert name == "ValueError" and sentence.startswith("both: const float *b has to be"), sentence
"""
    )


@pytest.mark.parametrize(("limit", "copies"), [(0, "io"), (1 << 19, "")])
def test_what_is_not_mapped_goes_in_one_copy_each_way(runs, limit, copies):
    runs(
        MAPPED
        + f"""
_core.limit("mapped_call", {limit})
copies = {copies!r}
"""
        + """
for stream in gk.Stream(), None:
    for one, other, shape in pairs:
        mapped(one, other, shape)
        log = steps(lambda: mapped(one, other, shape, stream=stream))
        if 0 in shape:
            assert log == []
            continue
        assert [step[0] for step in log] == list("ilo" if copies or stream else "l"), log
        for number, each in enumerate((one, other)):
            assert (given(number, shape) == np.broadcast_to(each, shape)).all()
assert _core.live_bytes() == 0
"""
    )


def test_failures_of_a_mapped_call_leave_nothing_behind(runs):
    runs(
        MAPPED
        + """
out = np.full(a.shape, 7, np.float32)
mapped(a, a.T[:, :1].T, a.shape)
before = live()
for number in range(1, 100):
    out[:] = 7
    _core.fail_call(number)
    name, sentence = failure(lambda: mapped(a, a[0], a.shape, out=out))
    if not _core.fail_call(0):
        assert name == "none"
        break
    assert "planted" in sentence and sentence.startswith("both: ") and (out == 7).all(), sentence
assert number > 2 and live() == before and _core.live_bytes() == 0
"""
    )


def test_views_go_in_chunks(runs):
    runs(
        MAPPED
        + """
_core.limit("chunk", 1 << 20)
long = np.arange(6_000_000, dtype=np.float32).reshape(2000, 3000)
many = [long[:, ::2], long[0, :1500], long[:, :1], long[::-1, 1500:], np.array(2, 'f4')]
for one in many:
    for other in many:
        shape = np.broadcast_shapes(one.shape, other.shape)
        if shape != (2000, 1500):
            continue
        log = steps(lambda: mapped(one, other, shape))
        result = mapped(one, other, shape)
        assert sum(step[0] == "l" for step in log) > 4, "chunks"
        assert max(sides()[:1]) * 64 < result.size, "of which each has its own blocks"
        assert result[0, 0] == 2 * np.broadcast_to(other, shape)[0, 0]
assert _core.live_bytes() == 0
"""
    )


def test_the_most_that_goes_in_one_copy(runs):
    runs("""
back = kernel("user_w8_v4", pointer("float *p"), number("int n", SIGNED, 4))
for count in 1, 63, 64, 65, 1 << 18, (1 << 18) + 1:  # up to what is bundled, and one more
    values = np.arange(count, dtype=np.float32) + 2
    expected = values.copy()
    expected[0] = 0  # which is what this kernel writes
    log = steps(lambda: back(1, 32, values, 3))
    assert (values == expected).all()
    assert log == ["i0", "l0", "o0"] or count > 1 << 18, log
""")


def test_a_large_array_goes_through_the_pipeline(runs):
    runs("""
long = np.arange(5_000_000, dtype=np.float32) + 1
back = np.zeros_like(long)
saxpy(1, 32, long, back, 1.0, 8)
assert back[0] == 2.0 and back[1:].max() == 0.0
assert _core.live_bytes() == 0
""")


def test_streams_of_arrays_and_of_the_call(runs):
    runs("""
stream = gk.Stream()
there = gk.to_device(x, stream=stream)
result = gk.to_device(y)
saxpy(1, 32, there, result, 1.0, 8, stream=stream)
saxpy(1, 32, there, result, 1.0, 8)
assert result.to_host()[0] == 6.0
saxpy(1, 32, x, y, 1.0, 8, stream=stream)
assert y[0] == 6.0
""")


def test_every_kind_of_number(runs):
    runs("""
def given(parameter, value, form):
    kernel(f"user_v{parameter.bytes}", parameter)(1, 1, value)
    return seen(form)[0]
for size, form in (1, "b"), (2, "h"), (4, "i"), (8, "q"):
    bits = 8 * size
    signed, unsigned = number("s", SIGNED, size), number("u", UNSIGNED, size)
    for value in -2 ** (bits - 1), -1, 0, 2 ** (bits - 1) - 1:
        assert given(signed, value, form) == value
    for value in 0, 2**bits - 1:
        assert given(unsigned, value, form.upper()) == value
    assert given(signed, np.dtype(f"u{size}").type(7), form) == 7
    assert given(unsigned, np.dtype(f"i{size}").type(7), form.upper()) == 7
    assert given(signed, np.dtype(f"i{size}").type(-7), form) == -7
    assert given(signed, True, form) == 1
    assert given(signed, np.array(5, f"i{size}"), form) == 5
for value in True, False, 1, 0, np.True_:
    assert given(number("b", BOOL, 1), value, "?") == bool(value)
assert given(number("c", CHAR, 1), 200, "B") == 200 and given(number("c", CHAR, 1), -3, "b") == -3
assert given(number("f", FLOAT, 4), 0.5, "f") == 0.5 and given(number("f", FLOAT, 4), 3, "f") == 3
assert given(number("f", FLOAT, 4), float("inf"), "f") == float("inf")
assert given(number("d", FLOAT, 8), 0.1, "d") == 0.1
assert given(number("d", FLOAT, 8), np.float64(0.1), "d") == 0.1
assert given(number("h", FLOAT, 2), 1.5, "e") == 1.5 and given(number("h", FLOAT, 2), 2, "e") == 2
assert given(number("h", FLOAT, 2), np.float16(0.5), "e") == 0.5
import ml_dtypes
assert given(number("g", BFLOAT, 2), 1.5, "H") == 0x3fc0
assert given(number("g", BFLOAT, 2), ml_dtypes.bfloat16(1.5), "H") == 0x3fc0
""")


def test_structures_go_by_their_bytes(runs):
    runs("""
pair = np.dtype([("x", "f4"), ("n", "i8")], align=True)
one = np.zeros((), pair)
one["x"], one["n"] = 1.5, 7
class Pair(ctypes.Structure):
    _fields_ = [("x", ctypes.c_float), ("n", ctypes.c_int64)]
take = kernel("user_v16", number("Pair p", BYTES, 16))
for value in one, one[()], Pair(1.5, 7), one.tobytes():
    take(1, 1, value)
    assert seen("f4xq") == (1.5, 7)
many = np.zeros(3, pair)
write = kernel("user_w8", pointer("Pair *p", BYTES, 16, whole=16))
write(1, 1, many)
write(1, 1, gk.to_device(np.zeros(48, np.uint8)))
pairs = kernel("user_r8_w8", pointer("const float2 *z", FLOAT, 4, 2), pointer("float *w"))
pairs(1, 1, np.full(4, 3 + 1j, np.complex64), y)
assert y[0] == 6.0
anything = kernel("user_r8", pointer("const void *p", ANYTHING, 0, whole=0))
for array in x, many, np.zeros(3, np.int8), np.array("text"), gk.to_device(x):
    anything(1, 1, array)
anything(1, 1, None)
assert seen("Q") == (0,)
anything(1, 1, np.zeros(0))
assert seen("Q") == (0,)
""")


def test_over_launches_a_thread_an_element(runs):
    runs("""
saxpy.over(1000)(x, y, 1.0, 8)
assert sides()[:4] == [2, 1, 1, 768], "as the driver suggests"
saxpy[769](x, y, 1.0, 8, shared=16)
assert sides() == [2, 1, 1, 768, 1, 1, 16]
saxpy.over(np.int64(1000), block=100)(x, y, 1.0, 8)
assert sides()[:4] == [10, 1, 1, 100]
assert steps(lambda: saxpy.over(0)(x, y, 1.0, 8)) == []
for wrong, words in (-1, "from 0"), (1.5, "number of elements"), (None, "number of elements"):
    name, sentence = failure(saxpy.over, wrong)
    assert sentence.startswith("saxpy: n is") and words in sentence, sentence
""")


def test_what_is_known_of_a_kernel(runs):
    runs("""
assert saxpy.signature == "saxpy(const float *x, float *y, float a, int n)"
assert repr(saxpy) == f"<kernel {saxpy.signature}>"
assert (saxpy.registers, saxpy.shared, saxpy.local, saxpy.spills) == (40, 1024, 16, 0)
assert saxpy.most_threads == 1024 and saxpy.suggest_block(shared=64) == saxpy.suggest_block() == 768
assert saxpy.occupancy(512) == saxpy.occupancy((32, 16)) == 0.75
import pydoc
shown = pydoc.render_doc(saxpy)
for words in saxpy.signature, "registers a thread: 40", "threads a block: up to 1024":
    assert words in shown, shown
assert "DeviceArray" in pydoc.render_doc(type(saxpy))
""")


# Of calls of saxpy(const float *x, float *y, float a, int n), whose `x` and `y` are float32.
WRONG = {
    "saxpy()": ("TypeError", "takes a grid, a block and 4 arguments", "int n", "given 0 in all"),
    "saxpy(1, 1, x, y, 1.0)": ("TypeError", "takes 4 arguments", "given 3"),
    "saxpy(1, 1, x, y, 1.0, 8, 9)": ("TypeError", "takes 4 arguments", "given 5"),
    "saxpy(1, 1, x, y, 1.0, n=8)": ("TypeError", "no argument 'n'", "by position"),
    "saxpy(1, 1, x, y, 1.0, 8, block=3)": ("TypeError", "no argument 'block'"),
    "saxpy(None, 1, x, y, 1.0, 8)": ("TypeError", "grid is None", "kernel.over(n)"),
    "saxpy(1.5, 1, x, y, 1.0, 8)": ("TypeError", "grid has to be a whole number", "1.5"),
    "saxpy(True, 1, x, y, 1.0, 8)": ("TypeError", "grid has to be a whole number"),
    "saxpy('4', 1, x, y, 1.0, 8)": ("TypeError", "grid has to be", "'4'"),
    "saxpy((), 1, x, y, 1.0, 8)": ("TypeError", "grid has to be", "one to three"),
    "saxpy((1, 1, 1, 1), 1, x, y, 1.0, 8)": ("TypeError", "grid has to be", "one to three"),
    "saxpy((1, x), 1, x, y, 1.0, 8)": ("TypeError", "grid has to be"),
    "saxpy(0, 1, x, y, 1.0, 8)": ("ValueError", "grid is 0", "from 1"),
    "saxpy(-1, 1, x, y, 1.0, 8)": ("ValueError", "grid is -1", "from 1"),
    "saxpy(1, (1 << 40), x, y, 1.0, 8)": ("ValueError", "block is", "from 1"),
    "saxpy(1, 1025, x, y, 1.0, 8)": ("ValueError", "1025 threads", "takes 1024"),
    "saxpy(1, (32, 33), x, y, 1.0, 8)": ("ValueError", "1056 threads", "takes 1024"),
    "saxpy(1, (1, 1, 65), x, y, 1.0, 8)": ("ValueError", "too long along z", "64"),
    "saxpy((1, 65536), 1, x, y, 1.0, 8)": ("ValueError", "too long along y", "65535"),
    "saxpy(1, 1, x, y, 1.0, 8, shared=50000)": ("ValueError", "50000 bytes", "48128", "1024"),
    "saxpy(1, 1, x, y, 1.0, 8, shared=-1)": ("TypeError", "shared is a number of bytes"),
    "saxpy(1, 1, x, y, 1.0, 8, shared=1.0)": ("TypeError", "shared is a number of bytes"),
    "saxpy(1, 1, x, y, 1.0, 8, stream='x')": ("TypeError", "stream has to be"),
    "saxpy(1, 1, 5, y, 1.0, 8)": ("TypeError", "const float *x is a pointer", "int"),
    "saxpy(1, 1, 5.0, y, 1.0, 8)": ("TypeError", "const float *x is a pointer", "one element"),
    "saxpy(1, 1, [1.0], y, 1.0, 8)": ("TypeError", "const float *x", "numpy.array"),
    "saxpy(1, 1, object(), y, 1.0, 8)": ("TypeError", "const float *x", "object"),
    "saxpy(1, 1, x, np.float32(1), 1.0, 8)": ("TypeError", "float *y is a pointer", "float32"),
    "saxpy(1, 1, x.astype('f8'), y, 1.0, 8)": ("TypeError", "const float *x", "float64", ".astype"),
    "saxpy(1, 1, x, y.astype('i4'), 1.0, 8)": ("TypeError", "float *y", "float32", "int32"),
    "saxpy(1, 1, gk.to_device(x.astype('i4')), y, 1.0, 8)": ("TypeError", "of float32", "int32"),
    "saxpy(1, 1, np.zeros(3, complex), y, 1.0, 8)": ("TypeError", "const float *x", "complex128"),
    "saxpy(1, 1, x[::2], y, 1.0, 8)": ("ValueError", "not contiguous", "ascontiguousarray"),
    "saxpy(1, 1, gk.to_device(x)[::2], y, 1.0, 8)": ("ValueError", "not contiguous", ".copy()"),
    "saxpy(1, 1, x, np.broadcast_to(y[:1], 8), 1.0, 8)": ("ValueError", "not contiguous"),
    "saxpy(1, 1, x.astype('>f4'), y, 1.0, 8)": ("ValueError", "byte order", "newbyteorder"),
    "saxpy(1, 1, x, fixed, 1.0, 8)": ("ValueError", "float *y may be written", "gpukern.In"),
    "saxpy(1, 1, gk.Out(x), y, 1.0, 8)": ("TypeError", "const float *x is const"),
    "saxpy(1, 1, gk.InOut(x), y, 1.0, 8)": ("TypeError", "const float *x is const"),
    "saxpy(1, 1, x, y, 1e39, 8)": ("TypeError", "float a cannot hold 1e+39", "float32"),
    "saxpy(1, 1, x, y, 10**400, 8)": ("TypeError", "float a cannot hold", "float32"),
    "saxpy(1, 1, x, y, np.float64(1), 8)": ("TypeError", "float a takes float32", "float64"),
    "saxpy(1, 1, x, y, np.int32(1), 8)": ("TypeError", "float a takes float32", "int32"),
    "saxpy(1, 1, x, y, 1j, 8)": ("TypeError", "float a takes a number", "complex"),
    "saxpy(1, 1, x, y, '1', 8)": ("TypeError", "float a takes a number", "str"),
    "saxpy(1, 1, x, y, x, 8)": ("TypeError", "float a takes a number", "ndarray"),
    "saxpy(1, 1, x, y, gk.to_device(x), 8)": ("TypeError", "float a takes a number"),
    "saxpy(1, 1, x, y, None, 8)": ("TypeError", "float a takes a number", "NoneType"),
    "saxpy(1, 1, x, y, 1.0, 8.0)": ("TypeError", "int n takes a number, of int32", "float"),
    "saxpy(1, 1, x, y, 1.0, np.float32(8))": ("TypeError", "int n takes int32", "float32"),
    "saxpy(1, 1, x, y, 1.0, np.int64(8))": ("TypeError", "int n takes int32", "int64"),
    "saxpy(1, 1, x, y, 1.0, 2**31)": ("TypeError", "int n cannot hold 2147483648", "int32"),
    "saxpy(1, 1, x, y, 1.0, -2**31 - 1)": ("TypeError", "int n cannot hold", "int32"),
    "saxpy(1, 1, x, y, 1.0, 2**70)": ("TypeError", "int n cannot hold", "int32"),
    "saxpy(1, 1, x, y, 1.0, np.uint32(2**31))": ("TypeError", "int n cannot hold", "int32"),
    "both(1, 1, y, y[4:])": ("ValueError", "float *p and float *q share memory", "gpukern.In"),
    "vector(1, 1, np.zeros(6, 'f4'))": ("ValueError", "elements of 16 bytes", "24"),
    "vector(1, 1, gk.to_device(x)[1:5])": ("ValueError", "multiple of 16 bytes", "4 behind"),
    "whole(1, 1, np.zeros(2, 'f8'))": ("TypeError", "structures of 16 bytes", "float64"),
    "anything(1, 1, np.ma.array([1, 2], mask=[0, 1]))": ("TypeError", "void *p", "masked array"),
    "whole(1, 1, np.zeros(4, [('a', 'f8'), ('b', 'i8')])[::2])": ("ValueError", "not contiguous"),
    "one(1, 1, b'123')": ("TypeError", "Pair p takes 16 bytes", "3", "align=True"),
    "one(1, 1, 5)": ("TypeError", "Pair p takes 16 bytes", "int"),
}


def test_wrong_calls_are_refused_by_the_parameter(on_fake):
    code = f"""
fixed = y.copy()
fixed.setflags(write=False)
both = kernel("user_w8_w8", pointer("float *p"), pointer("float *q"))
vector = kernel("user_w8", pointer("float4 *v", FLOAT, 4, 4))
whole = kernel("user_w8", pointer("Pair *p", BYTES, 16, whole=16))
one = kernel("user_v16", number("Pair p", BYTES, 16))
anything = kernel("user_r8", pointer("const void *p", ANYTHING, 0, whole=0))
for call in {list(WRONG)!r}:
    print(json.dumps([*failure(lambda: eval(call)), y.tolist()]))
saxpy(1, 1, x, y, 1.0, 8)
print(json.dumps(["none", str(_core.live_bytes()), y.tolist()]))
"""
    *refused, after = answers(on_fake(KERNELS + code))
    for (call, (kind, *words)), (name, sentence, left) in zip(WRONG.items(), refused, strict=True):
        assert name == kind, (call, name, sentence)
        assert sentence.startswith(("saxpy: ", "k: ")), (call, sentence)
        assert all(word in sentence for word in words), (call, sentence)
        assert left == [5.0] * 8, call
    assert after == ["none", "0", [6.0] + [5.0] * 7]


def test_a_kernel_with_bounds_of_its_own_says_them(runs):
    runs(
        """
name, sentence = failure(saxpy, 1, 512, x, y, 1.0, 8)
for words in "512 threads", "this kernel takes 256", "40 registers", "suggest_block":
    assert words in sentence, sentence
saxpy(1, 1, x, y, 1.0, 8, shared=200000)
""",
        FAKE_THREADS=256,
        FAKE_SHARED=232448,
    )


def test_a_module_that_was_not_compiled_here(runs, tmp_path):
    ptx = tmp_path / "kernels.ptx"
    ptx.write_text(".version 8.0\n.target sm_75\n")
    runs(f"""
module = gk.compile(path={str(ptx)!r})
kernel = module.user_r8_w8_v4_v8_v16
assert kernel.signature.startswith("user_r8_w8_v4_v8_v16(argument 1 (8 bytes), argument 2")
kernel(1, 32, gk.In(x), gk.to_device(y), 7, np.float64(0.5), b"0123456789abcdef")
assert seen("QQid16s")[2:] == (7, 0.5, b"0123456789abcdef")
for wrong, words in (0.5, "numpy.float32"), (np.float64(1), "4 bytes"), (2**33, "cannot hold"):
    name, sentence = failure(kernel, 1, 32, gk.In(x), y, wrong, 1, bytes(16))
    assert name == "TypeError" and words in sentence, sentence
assert repr(module) == "<module {ptx}: no kernels>"
assert not hasattr(module, "_repr_html_")
driver.fake_fail(b"cuModuleGetFunction", 500, 0, 1)
name, sentence = failure(lambda: module["absent"])
assert name == "ValueError" and "no kernel 'absent'" in sentence and "cuobjdump" in sentence
binary = gk.compile(IMAGE, name="x.cubin")
binary.user_v4(1, 1, 3)
""")


@pytest.mark.parametrize(
    "code, words",
    [
        (209, ("compute capability is 9.0", "-arch=sm_90")),
        (200, ("no cubin, fatbin or PTX",)),
        (222, ("newer toolkit", "13.0")),
        (2, ("loading the module failed",)),
    ],
)
def test_a_module_that_the_driver_does_not_load(code, words, runs):
    runs(
        f"""
fail("cuModuleLoadData", {code})
name, sentence = failure(kernel, "user_v4", number("int n", SIGNED, 4))
assert name == "CudaError" and sentence.startswith("k: "), sentence
for words in {words!r}:
    assert words in sentence, sentence
assert live()["modules"] == 1, "that of saxpy"
kernel("user_v4", number("int n", SIGNED, 4))(1, 1, 5)
"""
    )


def test_failures_of_the_driver_leave_nothing_behind(runs):
    runs("""
saxpy(1, 32, x, y, 1.0, 8)  # which makes what is kept
before = live()
for function in ("cuLaunchKernelEx", "cuMemAllocFromPoolAsync", "cuMemcpyHtoDAsync_v2",
                 "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize", "cuCtxSynchronize"):
    y[:] = 5
    fail(function, 1)
    name, sentence = failure(saxpy, 1, 32, x, y, 1.0, 8)
    driver.fake_heal()
    if name != "none":
        assert sentence.startswith("saxpy: "), (function, sentence)
        assert y.tolist() == [5.0] * 8, function
    assert _core.live_bytes() == 0, function
    saxpy(1, 32, x, y, 1.0, 8)
    assert y[0] == 6.0
assert live() == before
""")


def test_planted_faults_strike_every_step(runs):
    runs("""
for number in range(1, 200):
    y[:] = 5
    _core.fail_call(number)
    name, sentence = failure(saxpy, 1, 32, x, y, 1.0, 8)
    if not _core.fail_call(0):
        assert name == "none"
        break
    if name == "none":  # the pinned memory failed, and the arrays went another way
        assert y[0] == 6.0
        continue
    assert name in ("CudaError", "MemoryError") and "planted" in sentence, sentence
    assert y.tolist() == [5.0] * 8 and _core.live_bytes() == 0
assert number > 5
""")


def test_a_fault_names_the_kernel(on_fake):
    code = """
failure(saxpy, 1, 32, gk.to_device(x), gk.to_device(y), 1.0, 8)
del saxpy
fails((gk.synchronize,))
"""
    [[name, sentence]] = [answers(on_fake(KERNELS + code, FAKE_FAULT=700))[0:1][0]]
    assert name == "DeviceLostError"
    assert "user_r8_w8_v4_v4" in sentence


def test_modules_go_with_their_kernels(runs):
    runs("""
before = live()["modules"]
for _ in range(20):
    one = kernel("user_v4", number("int n", SIGNED, 4))
    one(1, 1, 5)
    launcher = one.over(5)
    del one
    launcher(5)
    del launcher
assert live()["modules"] == before
""")


def test_a_graph_keeps_the_module_of_its_kernels(runs):
    runs("""
there = gk.to_device(y)
one = kernel("user_w8", pointer("float *p"))
before = live()["modules"]
stream = gk.Stream()
stream.begin_capture()
one(1, 1, there, stream=stream)
name, sentence = failure(one, 1, 1, y, stream=stream)
assert name == "ValueError" and "host memory takes part" in sentence, sentence
graph = stream.end_capture()
del one
assert live()["modules"] == before
graph.launch()
""")


def test_references_are_given_back(runs):
    runs("""
there = gk.to_device(y)
wrapped, record = gk.In(x), np.zeros(2, [("a", "f4"), ("b", "i4")])
records = kernel("user_r8", pointer("const R *r", BYTES, 8, whole=8))
def calls():
    saxpy(1, 32, wrapped, there, 1.5, 8)
    saxpy.over(8)(x, y, 1.5, 8)
    records(1, 1, record)
    failure(saxpy, 1, 32, x, record, 1.5, 8)
    failure(saxpy, 1, 32, x, y, 1.5, "8")
    failure(records, 1, 1, np.zeros(3, np.float64))
    failure(saxpy, 1, 5000, x, y, 1.5, 8)
calls()
things = (x, y, there, wrapped, record, saxpy)
before = [sys.getrefcount(thing) for thing in things]
for _ in range(300):
    calls()
gc.collect()
assert [sys.getrefcount(thing) for thing in things] == before
record.resize(4, refcheck=False)  # no buffer of it is held
""")


def test_many_threads(runs):
    runs("""
wrong = []
def work(number):
    own = kernel("user_r8_w8_v4_v4", *saxpy.parameters)
    mine, out = np.full(8, number, np.float32), np.zeros(8, np.float32)
    for _ in range(100):
        for one in (own, saxpy):
            out[:] = 0
            one(1, 32, mine, out, 1.0, 8)
            if out[0] != 2 * number:
                wrong.append(number)
threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong and _core.live_bytes() == 0
""")


def test_the_child_of_a_fork_is_told(on_fake):
    code = """
saxpy(1, 32, x, y, 1.0, 8)
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, json.dumps(failure(saxpy, 1, 32, x, y, 1.0, 8)).encode())
    del saxpy
    os._exit(0)
os.wait()
print(os.read(reading, 10000).decode())
"""
    name, sentence = answers(on_fake(KERNELS + code))
    assert name == "CudaError"
    assert "does not survive a fork" in sentence


def test_a_kernel_in_a_profile_and_under_strict(runs):
    runs("""
there = gk.to_device(y)
with gk.profile() as profile:
    saxpy(1, 32, x, there, 1.0, 8)
    kernel("user_v4", number("int n", SIGNED, 4))(1, 1, 5)
first, second = [call for call in profile.calls if call.op in ("saxpy", "k")]
assert first.dtype == "float32" and first.shapes == ((8,), (8,)) and first.bytes_in == 32
assert second.shapes == () and second.dtype == ""
with gk.strict():
    saxpy(1, 32, x, y, 1.0, 8)
""")


def test_two_devices_have_a_module_each(runs):
    runs(
        """
with gk.device(1):
    there = gk.to_device(y)
    saxpy(1, 32, x, y, 1.0, 8)
before = live()["modules"]
saxpy(1, 32, x, there, 1.0, 8)
assert live()["modules"] == before
here = gk.to_device(x)
name, sentence = failure(saxpy, 1, 32, here, there, 1.0, 8)
assert name == "ValueError" and "on device 1" in sentence, sentence
""",
        FAKE_DEVICES=2,
    )


def test_a_kernel_takes_part_in_the_comparison(runs):
    runs("""
from gpukern.bench.contenders import registry
product = kernel("user_r8_r8_w8_v4_v4_v4", pointer("const float *A"), pointer("const float *B"),
                 pointer("float *C"), *(number(f"int {one}", SIGNED, 4) for one in "MNK"),
                 name="product")
assert gk.contender("matmul", kernel=product, grid=lambda a, b, out: (2, out.shape[1]),
                    block=(8, 4), shared=128) is product
peer = registry.REGISTERED["product"]
[one] = registry.gather(peer, None, "matmul", "float32")
assert one.transfers == "gpukern" and one.end_to_end(np.ones((3, 5), "f4"), np.ones((5, 7), "f4")
                                                     ).shape == (3, 7)
assert sides() == [2, 7, 1, 8, 4, 1, 128] and seen("QQQiii")[3:] == (3, 7, 5)
total = kernel("user_w8_r8_v4", pointer("float *out"), pointer("const float *x"),
               number("unsigned size", UNSIGNED, 4), name="total")
gk.contender("add", "ours", kernel=saxpy, args=lambda a, b, out: (a, out, 1.0, 3), block=32)
gk.contender("sum", "ours", kernel=total, grid=1, block=lambda a, out: a.shape[0] * 8)
(a_sum,), (an_add,) = (registry.gather(registry.REGISTERED["ours"], None, op, "float32")
                       for op in ("sum", "add"))
assert a_sum.end_to_end(x) == 0.0 and sides()[:4] == [1, 1, 1, 64] and seen("QQI")[2] == 8
an_add.device.run((gk.to_device(x), gk.to_device(x)), gk.to_device(y))
assert sides()[:4] == [1, 1, 1, 32] and seen("QQfi")[2:] == (1.0, 3)
def says(kind, words, *given, **named):
    name, sentence = failure(gk.contender, *given, **named)
    assert name == kind and sentence.startswith("contender: ") and words in sentence, sentence
says("ValueError", "nothing of add says what float a of saxpy is", "add", kernel=saxpy)
says("ValueError", "has to have 2 arrays that are const", "add", kernel=total)
says("TypeError", "block has to be given", "sum", kernel=total, grid=1)
says("TypeError", "args has to be a function", "sum", kernel=total, args=3)
says("TypeError", "shared is a number of bytes", "sum", kernel=total, shared="x")
says("ValueError", "built-in NumPy", "sum", "numpy", kernel=total)
""")


def test_a_variable_of_a_module_is_an_array_of_its_memory(runs):
    runs("""
gk.to_device(x).copy()  # whose kernel is a module too
image = _core.Image(IMAGE)
before = live()["modules"]
address, size = image.symbol("table_64")
assert size == 64 and image.symbol("table_64") == (address, 64)
table = image.array("table_64", np.float32, (2, 8))
assert table.__cuda_array_interface__["data"] == (address, False) and table.shape == (2, 8)
assert not table.to_host().any(), "as C has it"
table[...] = np.arange(16, dtype=np.float32).reshape(2, 8)
table[1, :4] = np.full(4, 7, np.float32)
assert image.array("table_64", np.float32, 16).to_host()[7:13].tolist() == [7, 7, 7, 7, 7, 12]
assert image.array("table_64", "int8", 3).nbytes == 3
double = make_kernel("k", Found(image, "user_r8_w8", (pointer("const float *r"),
                                                      pointer("float *w")), 0))
double(1, 1, table[1], table[0])
assert table.to_host()[0, 0] == 14
assert _core.live_bytes() == 0, "it is the module's"
del double, image
assert live()["modules"] == before + 1 and table.to_host()[1, 0] == 7
del table
assert live()["modules"] == before
image = _core.Image(IMAGE)
kind, sentence = failure(image.symbol, "absent")
assert (kind, sentence) == ("ValueError", "symbol: the module has no variable absent")
kind, sentence = failure(image.array, "table_64", np.float32, 17)
assert kind == "ValueError"
assert sentence == "symbol: table_64 has 64 bytes, and (17,) of float32 is more", sentence
for wrong in ((), (3, "f4", 1), ("table_64", "text", 1), ("table_64", "f4", "x"), ("table_64",)):
    assert failure(image.array, *wrong)[0] == "TypeError", wrong
assert failure(image.symbol, 3)[0] == "TypeError"
fail("cuModuleGetGlobal_v2", 700)
assert failure(image.symbol, "table_64")[0] == "DeviceLostError"
""")


def test_a_variable_on_each_device(runs):
    runs(
        """
image = _core.Image(IMAGE)
here = image.array("table_64", np.float32, 16)
with gk.device(1):
    there = image.array("table_64", np.float32, 16)
    there[:] = np.full(16, 3, np.float32)
assert there.device == 1 and here.device == 0 and not here.to_host().any()
""",
        FAKE_DEVICES=2,
    )


def test_what_the_extension_is_given_wrongly(runs):
    runs("""
image = _core.Image(IMAGE)
good = ("int n", SIGNED, 4, 0, 0, 0, 0, 4)
for wrong in ((), (image,), (image, "s", "n", [good]), (3, "s", "n", (good,)),
              (image, 3, "n", (good,)), (image, "s", "n", (good[:7],)),
              (image, "s", "n", (("t", 99, 4, 0, 0, 0, 0, 4),)),
              (image, "s", "n", (("t", SIGNED, 16, 0, 0, 0, 0, 4),)),
              (image, "s", "n", (("t", SIGNED, -4, 0, 0, 0, 0, 4),)),
              (image, "s", "n", ((3, *good[1:]),))):
    assert failure(_core.Kernel, *wrong)[0] == "TypeError", wrong
for wrong in (), ("text",), (IMAGE, 1):
    assert failure(_core.Image, *wrong)[0] == "TypeError"
assert failure(image.parameters, 3)[0] == "TypeError"
assert failure(_core.nvrtc_version, 3)[0] == "TypeError"
assert failure(_core.nvrtc_version, "/no/such/library")[0] == "CudaError"
assert failure(_core.compile_source, 1)[0] == "TypeError"
""")


def test_every_object_may_be_refused(runs):
    pytest.importorskip("_testcapi", reason="this Python has not the module that refuses memory")
    # No function is made on the way: CPython 3.12 itself dies where that is refused memory.
    runs("""
there = gk.to_device(x)
integer = (number("int n", SIGNED, 4).numbers(),)
record = np.zeros(2, [("a", "f4"), ("b", "i4")])
records = kernel("user_r8_w8", pointer("const R *r", BYTES, 8, whole=8), pointer("float *w"))
calls = [
    lambda: saxpy(1, 32, gk.In(x), y, 1.5, np.int32(8)),
    lambda: saxpy((1, 2), [32], there, y, 1, 8, shared=64),
    lambda: records(1, 1, record, y),
    lambda: saxpy.facts(),
    lambda: _core.Kernel(_core.Image(IMAGE), "user_v4", "k", integer),
    lambda: _core.Image(IMAGE).parameters("user_v4_v8"),
]
assert sum(refused(call) for call in calls) > 20
""")
