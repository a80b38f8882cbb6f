"""Kernels made of expressions, and CuPy's constructors: what they make, and what they refuse.

What is computed is tested where kernels of users run. Everywhere else the sources are compiled and
launched on the fake driver, on which these kernels do nothing.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpukern as gk
from fakes import NEEDS_FAKE
from gpukern.kernels import layout, reduction
from gpukern.machine import libraries

NVRTC = libraries.find_nvrtc(13000)

HEAD = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np, ml_dtypes, gpukern as gk
rng = np.random.default_rng(3)
def some(*shape):
    return rng.standard_normal(shape).astype(np.float32)
def close(got, expected, tolerance=1e-5):
    got = got.to_host() if isinstance(got, gk.DeviceArray) else np.asarray(got)
    expected = np.asarray(expected, np.float64)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    near = np.abs(got.astype(np.float64) - expected) <= tolerance * (1 + np.abs(expected))
    assert near.all(), (got[~near][:4], expected[~near][:4])
"""
PROBE = """
try:
    gk.compile("__global__ void nothing() {}")
except gk.CudaError as error:
    print(error)
    sys.exit(7)
"""


@pytest.fixture
def computes(script: Any, tmp_path: Any) -> Callable[[str], None]:
    """Run code that asserts where kernels of users run."""
    tmp_path.chmod(0o700)

    def run(code: str) -> None:
        done = script(HEAD + PROBE + code, XDG_CACHE_HOME=str(tmp_path))
        if done.returncode == 7:
            pytest.skip(done.stdout.strip())
        assert done.returncode == 0, done.stderr

    return run


@pytest.fixture
def launches(right: Any, tmp_path: Any) -> Callable[..., None]:
    """Run code that asserts, on the fake driver, where kernels do nothing."""
    if NVRTC is None:
        pytest.skip("NVRTC is not installed")
    tmp_path.chmod(0o700)
    return lambda code, **settings: right(
        HEAD + code, **{"XDG_CACHE_HOME": tmp_path, "FAKE_KERNELS": 0, **settings}
    )


# what is computed ---------------------------------------------------------------------------------

SAXPY = """
saxpy = gk.elementwise("float a, float x, float y, float z", "z = a*x + y", name="saxpy")
"""


def test_elementwise_of_every_length(computes):
    computes(
        SAXPY
        + """
for n in 0, 1, 3, 4, 5, 255, 2047, 2048, 2049, 4097:
    x, y = some(n), some(n)
    expected = 2.5 * x.astype(float) + y
    close(saxpy(2.5, gk.to_device(x), gk.to_device(y)), expected)
    result = saxpy(2.5, x, y)
    assert isinstance(result, np.ndarray)
    close(result, expected)
"""
    )


# As CUDA's own functions are called, which every source sees: CuPy's examples have a "norm".
TAKEN = """
x, y = some(300), some(300)
for name in "norm", "exp", "atomicAdd", "printf", "clock":
    saxpy = gk.elementwise("float a, float x, float y, float z", "z = a*x + y", name=name)
    squares = gk.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", name)
"""


def test_a_name_that_a_function_of_cuda_has(computes):
    computes(
        TAKEN
        + """
    close(saxpy(2.0, x, y), 2.0 * x.astype(float) + y)
    close(squares(gk.to_device(x)), (x.astype(float) ** 2).sum(), 1e-4)
"""
    )


def test_a_name_that_a_function_of_cuda_has_by_nvrtc(launches):
    launches(
        TAKEN
        + """
    saxpy(2.0, gk.to_device(x), gk.to_device(y)), squares(gk.to_device(x))
"""
    )


def test_elementwise_of_every_layout(computes):
    computes(
        SAXPY
        + """
x, y = some(12, 10, 8), some(10, 1)
there = gk.to_device(x)
views = [lambda a: a, lambda a: a[::2], lambda a: a[:, ::-1], lambda a: a.transpose(2, 0, 1),
         lambda a: a[:, 3:9, 1:], lambda a: a[5], lambda a: a[5:6], lambda a: a[:, :, 3]]
for view in views:
    host, device = view(x), view(there)
    close(saxpy(0.5, device, device), 1.5 * host.astype(float))
    close(saxpy(0.5, host, device), 1.5 * host.astype(float))
    number = gk.to_device(np.float32([0.5]))
    close(saxpy(number, device, device), 1.5 * host.astype(float))
close(saxpy(there, gk.to_device(y), 1.0), x * y.astype(float) + 1)
close(saxpy(x, y, there), x * y.astype(float) + x)
close(saxpy(there[0, 0], y, there), x[0, 0] * y.astype(float) + x)
"""
    )


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_rows_are_walked_by_vectors_and_what_is_left(computes, dtype):
    computes(
        f"dtype = np.dtype({dtype!r})"
        + """
numbered = gk.elementwise("T x, T y, T z", "z = x + y * T(i % 7)", name="numbered")
plain = gk.elementwise("T x, T y, T z", "z = x + 3 * y", name="plain")
x = (np.arange(6 * 5 * 83) % 29).astype(dtype).reshape(6, 5, 83)
views = [lambda a: a[..., :64], lambda a: a[..., 16:], lambda a: a[..., 1:18], lambda a: a[..., :3],
         lambda a: a[..., ::-2], lambda a: a.transpose(1, 2, 0), lambda a: a.T, lambda a: a[:, 2:3]]
for view in views:
    there, host = view(gk.to_device(x)), view(x)
    for part in (), (slice(1),), (0, 0), (Ellipsis, slice(1)):
        y = host[part]
        places = (np.arange(host.size) % 7).astype(dtype).reshape(host.shape)
        for kernel, times in (numbered, places), (plain, dtype.type(3)):
            expected = host + y * times
            assert (kernel(there, there[part]).to_host() == expected).all()
            out, kept = gk.to_device(np.full_like(x, 99)), np.full_like(x, 99)
            view(kept)[...] = expected
            kernel(there, there[part], out=view(out))
            assert (out.to_host() == kept).all(), "and nothing beside"
"""
    )


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
def test_interlaced_rows_of_every_length(computes, dtype):
    computes(
        f"dtype = np.dtype({dtype!r})"
        + """
numbered = gk.elementwise("T x, T y, T z", "z = x + y * T(i % 7)", name="numbered")
plain = gk.elementwise("T x, T y, T z", "z = x + 3 * y", name="plain")
kept = gk.elementwise("T x, T y, T z", "if (y > 3) z += x", name="kept")
width = 16 // dtype.itemsize
x = (np.arange(6 * 34 * width * 3) % 29).astype(dtype).reshape(6, -1)
there, results = gk.to_device(x), np.arange(x.size).reshape(x.shape).astype(dtype)
for length in 1, 8 * width - 7, 8 * width, 9 * width + 1, 31 * width + 3, 32 * width:
    for step in 2, 3, -3:
        first = 0 if step > 0 else 3 * length - 1
        part = slice(None), slice(first, None, step)
        a, b = (one[part][:, :length] for one in (x, there))
        for other in (slice(0, length),), (slice(3, 4),), (slice(None, None, 2),):
            c, d = x[:, other[0]][:, :length], there[:, other[0]][:, :length]
            if c.shape[1] not in (1, length):
                continue
            places = (np.arange(a.size) % 7).astype(dtype).reshape(a.shape)
            for kernel, expected in [
                (numbered, a + c * places),
                (plain, a + dtype.type(3) * c),
                (kept, results[part][:, :length] + np.where(c > 3, a, 0).astype(dtype)),
            ]:
                out, wanted = gk.to_device(results), results.copy()
                wanted[part][:, :length] = expected
                kernel(b, d, out=out[part][:, :length])
                assert (out.to_host() == wanted).all(), "and nothing beside"
                if kernel is not kept:
                    assert (kernel(b, d).to_host() == expected).all()
"""
    )


def test_the_way_of_each_array():
    run = layout.merged("k", (6, 5, 8), [[160, 32, 4], [160, 32, 4]])
    assert run == layout.Axes([240], [[4], [4]])
    assert layout.is_run(run, [4, 4], [0, 512]) and not layout.is_run(run, [4, 4], [0, 8])
    assert not layout.is_run(layout.Axes([240], [[4], [0]]), [4, 4], [0, 0])
    # A transposed array in the order of the first one's steps is a run again.
    shape, steps = layout.in_order_of([4, 32], (8, 5), [[4, 32], [4, 32]])
    assert layout.merged("k", shape, steps).lengths == [40]
    vector, same, single = layout.Way.VECTOR, layout.Way.SAME, layout.Way.ONE_BY_ONE
    for steps, address, way in [
        ([64, 4], 0, vector),
        ([64, 4], 4, single),
        ([60, 4], 0, single),
        ([64, 8], 0, single),
        ([64, -4], 0, single),
        ([4, 0], 4, same),
    ]:
        axes = layout.Axes([3, 13], [steps, [13, 1]])
        rows = layout.rows(axes, [4], [address], 4)
        assert rows.ways == [way, single] and rows.vectors == 3 * 4
    assert layout.rows(layout.Axes([], [[]]), [4], [4], 4).vectors == 1


@pytest.mark.parametrize(
    ("length", "step", "is_interlaced"),
    [
        *((64, 8, True), (61, -12, True), (29, 28, True), (28, 8, False)),
        *((64, 32, False), (64, 4, False), (64, -4, False), (64, 0, False)),
    ],
)
def test_vectors_are_interlaced_where_their_elements_share_sectors(length, step, is_interlaced):
    plain = layout.rows(layout.Axes([3, length], [[1024, 4], [1024, step]]), [4, 4], [0, 4], 4)
    rows = plain.interlaced([4, 4])
    assert rows.is_interlaced == is_interlaced and rows.vectors == plain.vectors
    assert rows.is_interlaced or rows is plain
    single = layout.Way.ONE_BY_ONE
    assert not is_interlaced or rows.ways == [single, single]
    inner, between, apart, *last = struct.unpack_from("<7q", rows.packed(), 72 + 64 + 128)
    assert (inner, last[:2]) == (length, [4 * apart, step * apart])
    walked = [v * between + k * apart for v in range(rows.a_row) for k in range(4)]
    assert sorted(walked)[:length] == list(range(length)), "each once"
    far = plain._replace(width=1)
    assert far.interlaced([4, 4]) is far, "whose threads take neighbours as it is"
    with pytest.raises(ValueError, match="k: the arrays lie in memory in 9 axes"):
        layout.merged("k", [2] * 9, [[3**axis for axis in range(9)]])


def test_lengths_are_divided_by_as_kernels_do_it():
    rng = np.random.default_rng(0)
    most = (1 << 31) - 1
    for length in 1, 2, 3, 7, 255, 1 << 16, 12345, most, *rng.integers(1, most, 50).tolist():
        packed = layout.Axes([length], []).packed()
        multiplier, shift = struct.unpack_from("<I28xI", packed, 72)
        for number in 0, 1, length - 1, length, most, *rng.integers(0, most, 9).tolist():
            assert ((number * multiplier >> 32) + number) >> shift == number // length


def test_elementwise_in_place_and_into_arrays_that_overlap(computes):
    computes(
        SAXPY
        + """
x = some(100, 8)
there, out = gk.to_device(x), gk.empty((100, 8))
assert saxpy(2.0, there, there, out=out) is out
close(out, 3.0 * x.astype(float))
saxpy(2.0, there, 1.0, out=there)
close(there, 2.0 * x.astype(float) + 1)
there = gk.to_device(x)
saxpy(2.0, there[:-1], 0.0, out=there[1:])
close(there, np.concatenate([x[:1], 2 * x[:-1]]))
there = gk.to_device(x)
saxpy(2.0, there[:, ::-1], 0.0, out=there)
close(there, 2 * x[:, ::-1])
host = x.copy()
saxpy(2.0, host, 0.0, out=host)
close(host, 2 * x)
host = np.zeros((8, 100), np.float32)
assert saxpy(2.0, x, 0.0, out=host.T).base is host
close(host.T, 2 * x)
wide = gk.to_device(np.full((100, 16), 9, np.float32))
saxpy(2.0, x, 0.0, wide[:, ::2])
close(wide[:, ::2], 2 * x)
assert (wide.to_host()[:, 1::2] == 9).all()
"""
    )


def test_what_an_operation_leaves_alone_stays(computes):
    computes("""
x = some(33, 5)
some_of = gk.elementwise("float x, float z", "if (x > 0) z = x")
for make in gk.to_device, np.array:
    out = make(np.full_like(x, 7))
    some_of(x, out=out)
    close(out, np.where(x > 0, x, 7))
more = gk.elementwise("float x, float z", "z += x")
more(x, out=out)
close(out, np.where(x > 0, x, 7) + x)
""")


def test_elementwise_of_every_dtype(computes):
    computes("""
linear = gk.elementwise("T a, T x, T y, T z", "z = a*x + y")
for name in gk._core.DTYPES:
    x = rng.integers(0, 2 if name == "bool" else 5, 703).astype(name)
    result = linear(x.dtype.type(1), gk.to_device(x), x)
    assert result.dtype == x.dtype
    close(result, x if name == "bool" else 2 * x.astype(float))
named = gk.elementwise("float j, float k, float first, float at, float z", "z = j + k*first + at")
x = some(2500)
close(named(1.0, 2.0, gk.to_device(x), 4.0), 5 + 2 * x.astype(float))
mixed = gk.elementwise("float x, double y, int k, bool b, double z", "z = b ? x * y + k : -1")
x, y = some(501), rng.standard_normal(501)
k, b = rng.integers(-9, 9, 501).astype(np.int32), rng.random(501) < 0.5
close(mixed(x, gk.to_device(y), k, gk.to_device(b)), np.where(b, x * y + k, -1), 1e-12)
""")


def test_a_result_without_axes_is_a_scalar_on_the_host(computes):
    computes("""
square = gk.elementwise("T x, T z", "z = x * x")
kept = gk.elementwise("T x, T z", "if (x > 0) z = x * x")
both = gk.ElementwiseKernel("T x", "T s, bool c", "s = x * x; c = x > 0", return_tuple=True)
for _ in range(2):
    for value in np.float32(3), np.array(3, np.float32), 3.0, 3:
        for kernel in square, kept, both:
            results = kernel(value)
            for result in results if kernel is both else [results]:
                assert isinstance(result, np.generic) and result in (9, True), result
        out = np.empty((), np.result_type(value))
        assert square(value, out=out) is out and out == 9
        assert both(value, out, np.empty((), bool))[0] is out
    assert isinstance(square(gk.to_device(np.float32(3))), gk.DeviceArray)
    assert square(np.array([3.0])).shape == (1,)
""")


def test_errors_speak_of_what_the_user_wrote(computes):
    computes("""
def says(call, sentence):
    try:
        call()
    except (TypeError, ValueError, gk.CudaError) as error:
        assert str(error).startswith(sentence), error
    else:
        raise AssertionError(sentence)
x, u, i, row = some(5, 6), np.ones(3, np.uint8), np.ones(3, np.int8), np.empty(6, np.float32)
adding, held = gk.elementwise("T x, T y, T z", "z = x + y"), "elementwise: T y cannot hold"
for _ in range(2):
    for make in np.array, gk.to_device:
        says(lambda: adding(make(u), 300), f"{held} 300, which is not within uint8")
        says(lambda: adding(make(u), -1), f"{held} -1, which is not within uint8")
        says(lambda: adding(make(i), 128), f"{held} 128, which is not within int8")
        assert adding(make(u), 254).tolist() == [255] * 3
        assert adding(make(i), -128).tolist() == [-127] * 3
says(lambda: gk.vectorize("x + k")(u, 256), "vectorize: T k cannot hold 256")
says(lambda: gk.vectorize("x + n"), "vectorize: expression has n in it, which is the number of")
says(lambda: gk.vectorize("x + k", name="mine")(u, 256), "mine: T k cannot hold 256")
says(lambda: gk.vectorize("x")(x, out=row), "vectorize: T out has shape (6,), and the result has")
says(lambda: gk.vectorize("x")(), "vectorize: takes 1 argument, (T x -> T out), and may be")
says(lambda: gk.reduction("T x, int k", "x + k")(x, 2.5), "reduction: int k takes a number")
says(lambda: gk.reduction("T x", "x")(x, out=row), "reduction: T out has shape (6,)")
says(lambda: gk.reduction("T x", "x")(x, axis=(0, 0)), "reduction: axis (0, 0) names an axis t")
says(lambda: gk.reduction("T x", "x")(x, axis=2), "reduction: axis 2 is none of an array of 2 axes")
one = gk.elementwise("float x", "x = 1")
says(one, "elementwise: no array is given, so size= has to say how often it runs")
assert one(size=3).tolist() == [1, 1, 1]
raw = gk.ElementwiseKernel("raw T x", "T z", "z = x[i]")
says(lambda: raw(x), "kernel: all arrays are raw, so size= has to say how often it runs")
if gk._core.backend() == "sim":
    says(lambda: raw(row, size=7), "kernel: block (0, 0, 0): thread ")
with gk.profile() as profile:
    adding(x, x), gk.reduction("T x", "x", name="mine")(x, axis=0)
assert [call.op for call in profile.calls] == ["elementwise", "mine"]
""")


def test_numbers_of_the_other_byte_order(computes):
    computes("""
for name in "bool", "int16", "uint64", "float32", "float64":  # each is two kernels to compile
    dtype = np.dtype(name)
    number = np.array(1 if name == "bool" else 5, dtype.newbyteorder(">"))
    assert gk.vectorize("x")(number) == number and gk.vectorize("x")(number).dtype == dtype
    total = gk.reduction("T x, T y", "x + y")(np.ones(1, dtype), number)
    assert total == number + dtype.type(1)
keep = gk.compile("__global__ void keep(double x, short k, double *to) { to[0] = x + k; }").keep
to = np.zeros(1)
keep(1, 1, np.array(2.5, ">f8"), np.array(-3, ">i2"), to)
assert to == -0.5
""")


HALVES = """
expressions = {
    "x * 2": 2 * values, "1 + x": 1 + values, "x / 4": values / 4, "2.5f - x": 2.5 - values,
    "x * 0.1": values * 0.1, "x * (i < n)": values,
    "x < 1 ? -x : x": np.where(values < 1, -values, values),
    "3u <= x ? T(1) : T(0)": values >= 3, "x == 1 || x != x": values == 1,
    "max(x, 0)": np.maximum(values, 0), "min(0.5, x)": np.minimum(values, 0.5),
    "abs(x)": np.abs(values), "pow(x, x)": values**values, "pow(x, 2)": values**2,
    "isnan(x) + isinf(x) + isfinite(x) + signbit(x)": 1 + (values < 0),
    "x / gk_double(3)": values / 6, "x + y * T(2)": 3 * values,
}
preamble = "template <class N> __device__ N gk_double(N n) { return n + n; }"
preamble += "__device__ float operator*(T x, Own own);"
preamble += "__device__ T abs(T x) { return x < 0 ? -x : x; }"
preamble = "struct Own {};" + preamble
"""


def test_halves_beside_other_numbers(computes):
    computes(
        """
values = np.array([-2, -1, 0.25, 1, 2, 3])
"""
        + HALVES
        + """
each = [f"z[i * {len(expressions)} + {at}] = {text}" for at, text in enumerate(expressions)]
every = gk.ElementwiseKernel("T x, T y", "raw T z", "; ".join(each), preamble=preamble)
saxpy = gk.elementwise("float a, T x, T y, T z", "z = a * x + y")
scaled = gk.reduction("T x", "x * 2", post="a / n")
for dtype in np.float16, ml_dtypes.bfloat16:
    x = values.astype(dtype)
    for make in np.array, gk.to_device:
        result = saxpy(0.5, make(x), make(x))
        assert result.dtype == x.dtype
        close(result, 1.5 * values)
    close(scaled(x), 2 * values.mean(), 1e-2)
    close(gk.vectorize("x + y * T(2)", preamble=preamble)(x, x), expressions["x + y * T(2)"], 1e-2)
    z = gk.empty((len(x), len(expressions)), dtype)
    every(gk.to_device(x), gk.to_device(x), z)
    for at, expected in enumerate(expressions.values()):
        close(z.to_host()[:, at], expected, 1e-2)
    try:
        gk.vectorize("x > 0 ? x : 0")(x)
    except gk.CompileError as error:
        assert "hint: the two sides of ?: have to be of one type" in str(error), error
        assert "(...)" in str(error).splitlines()[-1], error
    else:
        raise AssertionError
"""
    )


@NEEDS_FAKE
def test_halves_beside_other_numbers_by_nvrtc(launches):
    launches(
        """
import ml_dtypes
values = np.ones(6)
"""
        + HALVES
        + """
texts = "; ".join(f"z[{at}] = {text}" for at, text in enumerate(expressions))
every = gk.ElementwiseKernel("T x, T y", "raw T z", texts, preamble=preamble)
for dtype in np.float16, ml_dtypes.bfloat16:
    x = gk.to_device(values.astype(dtype))
    every(x, x, gk.empty(len(expressions), dtype))
    gk.elementwise("float a, T x, T y, T z", "z = a * x + y")(0.5, x, x)
    gk.reduction("T x", "x * 2", post="a / n")(x)
    name, sentence = failure(gk.vectorize("x > 0 ? x : 0"), x)
    assert name == "CompileError", name
    assert "hint: the two sides of ?: have to be of one type" in sentence, sentence
"""
    )


def test_large_host_arrays_go_in_chunks(computes):
    computes(
        SAXPY
        + """
gk._core.limit("chunk", 1 << 16)
x, y = some(3, 70001), some(3, 70001)
expected = 2.5 * x.astype(float) + y
for read_x, read_y in (x, y), (x[:, ::-1][:, ::-1], y), (x.astype(">f4"), y), (x, y.copy("F")):
    result = saxpy(2.5, read_x, read_y)
    assert isinstance(result, np.ndarray)
    close(result, expected)
out = np.full((3, 2 * 70001), 7, np.float32)
assert saxpy(2.5, x, y, out=out[:, ::2]).base is out
close(out[:, ::2], expected), close(out[:, 1::2], np.full((3, 70001), 7))
wide = some(3, 140002)
for read_x, read_y in [(wide[:, ::2], y), (x, y[1]), (x, y[:, 7:8]), (x[:1], y[:, :1]),
                       (wide[::-1, 70001:], y[2:0:-1, None, ::-1][:1]), (x, y[1, :1])]:
    close(saxpy(2.5, read_x, read_y), 2.5 * read_x.astype(float) + read_y)
    close(saxpy(2.5, read_y, read_x), 2.5 * read_y.astype(float) + read_x)
mixed = gk.elementwise("float x, signed char y, double s, T t, T z", "z = T(x + y + s) + t")
small = (rng.integers(-9, 9, x.shape)).astype(np.int8)
close(mixed(x, small, 0.5, y), x.astype(float) + small + 0.5 + y)
many = gk.vectorize("a + b + c + d")
close(many(x, y, x, y), 2 * (x.astype(float) + y))
close(many(wide[:, ::2], y, x[0], y[:, :1]), wide[:, ::2].astype(float) + y + x[0] + y[:, :1])
# What depends on where an element stands, or on what its place held.
close(gk.vectorize("x + i")(x[0]), x[0] + np.arange(70001.0))
z = y.copy()
gk.elementwise("float x, float z", "z = z + x")(x, out=z)
close(z, x.astype(float) + y)
inplace = x.copy()
assert saxpy(1.0, inplace, y, out=inplace) is inplace
close(inplace, x.astype(float) + y)
shifted = wide[0].copy()
saxpy(1.0, shifted[:-1], 1.0, out=shifted[1:])
close(shifted[1:], wide[0, :-1].astype(float) + 1)
for call, words in [
    (lambda: saxpy(1.0, x, y, out=np.empty((3, 2), "f4")), "shape"),
    (lambda: saxpy(1.0, x, y, out=np.empty(x.shape)), "float64"),
    (lambda: saxpy(1j, x, y), "complex"),
    (lambda: saxpy("a", x, y), "str"),
]:
    try:
        call()
    except (TypeError, ValueError) as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
assert gk._core.live_bytes() == 0
"""
    )


def test_host_arrays_larger_than_the_device(script, tmp_path):
    code = """
assert gk._core.backend() == "sim"
x, y = some(1_500_000), some(1_500_000)
close(saxpy(2.5, x, y), 2.5 * x.astype(float) + y)
"""
    settings = {"GPUKERN_DEVICE": "sim", "GPUKERN_SIM_MEMORY": str(16 << 20)}
    done = script(HEAD + PROBE + SAXPY + code, XDG_CACHE_HOME=str(tmp_path), **settings)
    if done.returncode == 7:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stderr


@NEEDS_FAKE
def test_a_kernel_maps_arrays_that_fit_it(launches):
    launches("""
linear = gk.elementwise("float a, float x, float z", "z = a*x")
x = some(600, 1000)
z = np.full_like(x, 3)
log = steps(lambda: linear(1.0, x))
assert sum(step[0] == "l" for step in log) > 1, log
[made] = linear._made.values()
kernel, numbers = made.wide, (1.0, x)
def refused(*arguments, out=None):
    return failure(lambda: kernel.map(*arguments, out=out))
for sentence, arguments in [
    ("ValueError: linear: takes the elements of a block", (0, 256, x.shape, "f4", numbers)),
    ("ValueError: linear: takes the elements of a block", (2048, 256, x.shape, "f4", [1.0, x])),
    ("ValueError: linear: takes the elements of a block", (2048, 256, x.shape, "f4", (1.0,))),
    ("TypeError", (2048, 256, "f4", "f4", numbers)),
    ("ValueError", (2048, 256, x.shape, "f4", (1.0, x[1:]))),
    ("ValueError", (2048, 256, x.shape, "f4", (1.0, gk.to_device(x)))),
    ("TypeError", (2048, 256, x.shape, "f8", numbers)),
    ("TypeError", (2048, 256, x.shape, "f4", ("a", x))),
    ("ValueError", (2048, 4096, x.shape, "f4", numbers)),
]:
    assert ": ".join(refused(*arguments)).startswith(sentence.replace("linear", kernel.name))
out = gk.empty(x.shape)
said = ": ".join(refused(2048, 256, x.shape, "f4", numbers, out=out))
assert said.endswith("out has to be a NumPy array, and is a device array"), said
before, kept = live(), gk._core.live_bytes()
for number in range(1, 400):
    z[:] = 3
    gk._core.fail_call(number)
    name, sentence = failure(linear, 1.0, x, out=z)
    if not gk._core.fail_call(0):
        assert name == "none"
        break
    assert name == "none" or "planted" in sentence and (z == 3).all(), sentence
    assert gk._core.live_bytes() == kept
assert number > 10 and live() == before
""")


def test_vectorize_and_what_cupy_s_class_takes(computes):
    computes("""
x, y = some(77, 3), some(77, 3)
close(gk.vectorize("sqrt(x*x + y*y)")(gk.to_device(x), y), np.hypot(x.astype(float), y))
assert (gk.vectorize("x > y", result="bool")(x, y) == (x > y)).all()
flat, other = x.ravel(), y.ravel()
turned = gk.ElementwiseKernel("T x, raw T y", "T z", "z = x + y[_ind.size() - i - 1]", "turned")
for make in gk.to_device, np.array:
    close(turned(make(flat), make(other)), flat + other[::-1])
fill = gk.ElementwiseKernel("", "raw int32 z", "z[i] = i * 2", "fill")
for z in gk.empty(100, "int32"), np.zeros(100, np.int32):
    fill(z, size=100)
    assert z.tolist() == list(range(0, 200, 2))
both = gk.ElementwiseKernel("T x", "T s, bool c", "s = x * x; c = x > 0", "both")
s, c = both(gk.to_device(x))
close(s, x.astype(float) ** 2)
assert (c.to_host() == (x > 0)).all()
""")


def test_a_reduction_of_all(computes):
    computes("""
dot = gk.reduction("float x, float y", "x * y", name="dot")
for n in 1, 31, 4095, 4096, 4097, 10003:
    x = some(n)
    close(dot(gk.to_device(x), x), np.dot(x.astype(float), x), 1e-4)
assert dot(np.empty(0, np.float32), 1.0) == 0
x = some(100, 30)
there = gk.to_device(x)
close(dot(there[:, ::2], there[:, 1::2]), (x[:, ::2].astype(float) * x[:, 1::2]).sum(), 1e-4)
largest = gk.reduction("T x", "x", "max(a, b)", identity=None)
for name in "int8", "uint16", "int32", "uint64", "float16", "bfloat16", "float64":
    x = rng.integers(0, 100, 701).astype(name)
    assert float(largest(gk.to_device(x))) == x.astype(float).max(), name
""")


def test_a_reduction_into_what_lies_anyhow(computes):
    computes("""
total = gk.reduction("T x", "x")
both = gk.ReductionKernel("T x", "T s, T m", "x", "a + b", "s = a; m = a / n", "0", "both")
x = some(5, 6)
expected = x.astype(float).sum(0)
wide, swapped = np.full(12, 7, np.float32), np.empty(6, ">f4")
there = gk.to_device(wide)
for out in wide[::2], wide[10::-2], swapped, swapped[::-1], there[::2], there[10::-2]:
    for given in x, gk.to_device(x):
        out[...] = 3
        assert total(given, axis=0, out=out) is out
        close(out, expected)
assert (wide[1::2] == 7).all() and (there.to_host()[1::2] == 7).all(), "nothing beside"
number = np.empty((), ">f4")
assert total(x, out=number) is number
close(number, x.astype(float).sum())
s, m = both(x, axis=0, out=(wide[::2], swapped))
close(s, expected), close(m, expected / 30)
kept = wide.copy()
wide.flags.writeable = False
try:
    total(x, axis=0, out=wide[::2])
except ValueError as error:
    assert "is written, and is read-only" in str(error), error
assert (wide == kept).all()
""")


def test_a_reduction_of_axes(computes):
    computes("""
squares = gk.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "squares")
mean = gk.ReductionKernel("T x", "T y", "x", "a + b",
                          "y = a / (_in_ind.size() / _out_ind.size())", "0", "mean")
least = gk.reduction("T x", "x", "min(a, b)", identity=None)
for shape in (7, 30, 5), (40, 3, 50), (1, 300, 1):
    x = some(*shape)
    there = gk.to_device(x)
    for axis in 0, 1, 2, (0, 1), (0, 2), (1, 2), -1, None, ():
        exact = x.astype(float)
        close(squares(there, axis=axis), np.sqrt((exact * exact).sum(axis)), 1e-4)
        close(squares(x.T, axis=axis), np.sqrt((exact.T * exact.T).sum(axis)), 1e-4)
        close(mean(there[:, ::-1], axis=axis), exact[:, ::-1].mean(axis), 1e-4)
        close(least(there, axis=axis, keepdims=True), x.min(axis, keepdims=True))
out = gk.empty(50)
assert mean(there[0, 0, 0] + np.ones((3, 50), np.float32), axis=0, out=out) is out
place = gk.ReductionKernel(
    "T x", "int64 y", "(P{(double)x, i})", "a.value >= b.value ? a : b", "y = a.place",
    "P{-1e300, 0}", "place", "P", preamble="struct P { double value; long long place; };")
x = some(30, 70)
assert place(gk.to_device(x)) == x.argmax() and place(x.T) == x.T.argmax()
""")


@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_rows_and_columns_of_every_length(computes, dtype):
    computes(
        f"dtype = np.dtype({dtype!r})"
        + """
total = gk.reduction("T x", "x", result="long long", name="total")
where = gk.reduction("T x", "x > 0 ? i : -1", "max(a, b)", "-1", result="long long", name="where")
dot = gk.reduction("T x, T y", "x * y", identity=None, result="long long", name="dot")
shapes = [(7,), (70, 3), (33, 32), (70, 17), (3, 700), (2, 9000), (700, 3), (9000, 2), (5, 64, 33),
          (4, 3, 2, 77), (64, 1, 5), (1, 1), (3, 2, 1100)]
for shape in shapes:
    x = rng.integers(-9, 9, shape).astype(dtype)
    numbers = np.arange(x.size).reshape(shape)
    there, long = gk.to_device(x), x.astype(np.int64)
    for bits in range(1, 1 << len(shape)):
        axis = tuple(at for at in range(len(shape)) if bits >> at & 1)
        assert (total(there, axis=axis).to_host() == long.sum(axis)).all(), (shape, axis)
        places = np.where(x > 0, numbers, -1).max(axis)
        assert (where(there, axis=axis).to_host() == places).all(), (shape, axis)
        assert (dot(x, x[..., :1], axis=axis) == (long * long[..., :1]).sum(axis)).all()
    for view in lambda a: a.T, lambda a: a[..., 1:], lambda a: a[::2, ..., ::-1]:
        if x.ndim > 1 and view(x).size:
            for axis in 0, -1, None:
                assert (total(view(there), axis=axis).to_host() == view(long).sum(axis)).all()
                places = np.arange(view(x).size).reshape(view(x).shape)
                places = np.where(view(x) > 0, places, -1).max(axis)
                assert (where(view(there), axis=axis).to_host() == places).all()
"""
    )


def test_how_rows_and_columns_share_blocks():
    def rows(length: int) -> layout.Rows:
        return layout.rows(layout.Axes([length], [[4]]), [4], [0], 4)

    def of_rows(length: int, results: int) -> tuple[int, int, int]:
        way = reduction._rows(rows(length), results)
        assert way.segment * way.segments >= rows(length).vectors > 0
        return way.beside, way.blocks, way.segments

    assert of_rows(3, 1000) == (1, 4, 1) and of_rows(32, 1 << 20) == (4, 1 << 14, 1)
    assert of_rows(256, 1000) == (32, 125, 1) and of_rows(1024, 8) == (32, 1, 1)
    assert of_rows(1025, 5000) == (256, 5000, 1) and of_rows(1 << 21, 16) == (256, 16, 64)

    def of_columns(columns: int, length: int) -> tuple[int, int, int]:
        way = reduction._columns(rows(columns), length)
        assert way.segment * way.segments >= length
        return way.beside, way.blocks, way.segments

    assert of_columns(1 << 20, 32) == (32, 1 << 13, 1) and of_columns(1 << 22, 8) == (128, 8192, 1)
    assert of_columns(8192, 4096) == (32, 64, 16) and of_columns(8, 1 << 20) == (2, 1, 1024)
    assert of_columns(5, 2) == (2, 1, 1)


def test_kernels_that_read_variables(computes):
    computes("""
module = gk.RawModule(code='''__constant__ float table[4][3]; __device__ int counter;
template <class T> __global__ void f(T *out, T by) {
    int i = threadIdx.x;
    out[i] = table[i / 3][i % 3] * by;
    atomicAdd(&counter, 1);
}''', name_expressions=["f<float>", "f<double>"])
values = some(4, 3)
module.get_global("table")[...] = values
out, host = gk.empty(12), np.empty(12)
module.get_function("f<float>")((1,), (12,), (out, 2.0))
module.get_function("f<double>")((1,), (12,), (host, 3.0))
close(out, 2.0 * values.ravel())
close(host, 3.0 * values.ravel())
assert module.get_global("counter").item() == 24
""")


def test_a_kernel_in_the_comparison_is_right(computes):
    computes("""
module = gk.compile("__global__ void sum_of(const float *a, const float *b, float *out, int n) {"
                    "int i = blockIdx.x * blockDim.x + threadIdx.x;"
                    "if (i < n) out[i] = a[i] + b[i]; }")
gk.contender("add", kernel=module.sum_of, block=64)
table = gk.compare("add", [1000], None, ["sum_of"], rounds=1, budget=None)
assert [row.status for row in table.rows] == ["right"], table.rows
""")


# what is compiled, launched and refused -----------------------------------------------------------


@NEEDS_FAKE
def test_one_source_a_signature_and_all_of_them_kept(launches):
    launches("""
from gpukern.kernels import elementwise
compiled, real = [], elementwise.compile
def counting(*arguments, **named):
    compiled.append(arguments[0])
    return real(*arguments, **named)
elementwise.compile = counting
linear = gk.elementwise("T a, T x, T z", "z = a*x", name="linear")
x = gk.to_device(some(10))
for _ in range(3):
    linear(2.0, x); linear(2, x[::2]); linear(np.float32(2), some(4, 1))
assert len(compiled) == 1, "a number and an array of float32"
linear(x, x)
linear(1.0, np.ones(3))
assert len(compiled) == 3
for name in gk._core.DTYPES:
    assert linear(1, np.ones(5, name)).dtype == np.dtype(name), name
assert linear(1, 2).dtype == int and linear(1, 2.0).dtype == float
assert linear(1.5, x).shape == (10,) and isinstance(linear(1.5, x), gk.DeviceArray)
assert "linear(T a, T x -> T z)" in repr(linear)
""")


@NEEDS_FAKE
def test_contiguous_arrays_go_by_16_bytes(launches):
    launches("""
names = []
linear = gk.elementwise("float a, float x, float z", "z = a*x", name="linear")
x = gk.to_device(some(64, 64))
linear(1.0, x)
[made] = linear._made.values()
class Noting:
    def __init__(self, kernel):
        self.kernel = kernel
    def __call__(self, grid, block, *arguments, **named):
        names.append((self.kernel.symbol, grid, block))
        self.kernel(grid, block, *arguments, **named)
    def map(self, a_block, block, shape, *arguments, **named):
        names.append((self.kernel.symbol, -(-int(np.prod(shape)) // a_block), block))
        return self.kernel.map(a_block, block, shape, *arguments, **named)
[key] = linear._made
linear._plans.clear()
linear._made[key] = made._replace(wide=Noting(made.wide), strided=Noting(made.strided),
                                  far=Noting(made.far))
for array in x, x[1], x[1, :4], x[1:3], x.to_host()[:, ::2]:
    linear(1.0, array)
assert {name for name, *_ in names} == {"linear_flat"}
assert names[0] == ("linear_flat", 2, 256) and names[1] == ("linear_flat", 1, 256)
names.clear()
for array in x[1, 1:], x[:, ::2], x.T, x[:1, 0:1]:
    linear(1.0, array)
assert {name for name, *_ in names[:3]} == {"linear_strided"}
names.clear()
y = gk.empty((64, 64))
for _ in range(3):
    linear(1.0, x, out=y), linear(1.0, x, out=x), linear(2, x)
assert [name for name, *_ in names] == ["linear_flat"] * 9
plans = len(linear._plans)
assert linear(1.0, x[:32], out=x[1:33]).shape == (32, 64)
assert len(names) == 10 and len(linear._plans) == plans, "by way of a copy"
# On the host too, and what lies otherwise goes the longer way.
names.clear()
host, z = some(64, 64), np.full((64, 64), 3, np.float32)
for _ in range(3):
    assert isinstance(linear(1.0, host), np.ndarray)
    assert linear(1.0, host, out=z) is z
assert len(linear._plans) == plans + 2
z.flags.writeable = False
assert "read-only" in failure(linear, 1.0, host, out=z)[1]
assert failure(linear, 1.0, x, out=host)[0] == "none"
assert failure(linear, 1.0, host[:32], out=host)[0] == "ValueError"
assert failure(linear, 1.0, host.astype("f8"))[0] == "TypeError"
assert failure(linear, 1.0, host, out=host.astype("f8"))[0] == "TypeError"
assert linear(1.0, np.ones((64, 64), "f4"), out=np.empty((64, 64), "f4")).shape == (64, 64)
assert len(linear._plans) == plans + 2
plans = len(linear._plans)
for array in host, host[:, ::2], host[:1], host[:, 3:4], host.astype(">f4"), host[:, 1::2]:
    log = steps(lambda: linear(1.0, array))
    assert [step[0] for step in log] == ["l"] and log != ["l0"], "without copies"
    log = steps(lambda: linear(1.0, array, stream=gk.Stream()))
    assert [step[0] for step in log] == ["i", "l", "o"], log
assert len(linear._plans) == plans + 3, "of two new shapes and another byte order"
from gpukern.kernels import plans as kept
kept.MOST = len(linear._plans)
linear(1.0, host[:7])
assert len(linear._plans) == 1, "and not ever more of them"
""")


@NEEDS_FAKE
def test_results_on_the_host_are_copied_back_and_nothing_else(launches):
    launches("""
linear = gk.elementwise("float a, float x, float z", "z = a*x")
x, z = some(5), np.full(5, 3, np.float32)
linear(1.0, x)
before = gk._core.live_bytes()
linear(1.0, x, out=z)
assert (z != 3).all(), "all of it is the kernel's, which does nothing here"
z[:] = 3
gk.elementwise("float x, float z", "if (x > 0) z = x")(x, out=z)
assert (z == 3).all()
gk.elementwise("float x, float z", "z += x")(x, out=z)
assert (z == 3).all() and gk._core.live_bytes() == before
failing = gk.elementwise("float x, float z", "z = x")
failing(x)
for number in range(1, 100):
    z[:] = 3
    gk._core.fail_call(number)
    name, sentence = failure(failing, x, out=z)
    if not gk._core.fail_call(0):
        assert name == "none"
        break
    assert "planted" in sentence and (z == 3).all() and gk._core.live_bytes() == before
assert number > 3
""")


@NEEDS_FAKE
def test_wrong_calls_of_elementwise_kernels(launches):
    launches("""
def says(call, kind, *words):
    name, sentence = failure(call)
    assert name == kind and all(word in sentence for word in words), (name, sentence)
saxpy = gk.elementwise("float a, float x, float y, float z", "z = a*x + y", name="saxpy")
x, there = some(10), gk.to_device(some(10))
says(lambda: saxpy(1.0, x), "TypeError", "saxpy: takes 3 arguments", "float a, float x, float y")
says(lambda: saxpy(1.0, x, x, x, x), "TypeError", "was given 5")
says(lambda: saxpy(1.0, x, x[:3]), "ValueError", "saxpy: operands could not be broadcast",
     "(10,) (3,)")
says(lambda: saxpy(1.0, x.astype(float), x), "TypeError",
     "saxpy: float x takes an array of float32", "float64", "'T x'")
says(lambda: saxpy(1j, x, x), "TypeError", "float a takes an array", "complex")
says(lambda: saxpy([1.0], x, x), "TypeError", "list")
says(lambda: saxpy(np.complex64(1), x, x), "TypeError", "complex64", "not supported")
says(lambda: saxpy(np.ma.array(x), x, x), "TypeError", "masked")
says(lambda: saxpy(1.0, x, x, out=np.empty(4, np.float32)), "ValueError",
     "float z has shape (4,)", "(10,)")
says(lambda: saxpy(1.0, x, x, out=np.empty(10)), "TypeError", "float z takes an array of float32")
says(lambda: saxpy(1.0, x, x, out=3.0), "TypeError", "float z takes an array", "number")
fixed = np.empty(10, np.float32)
fixed.flags.writeable = False
says(lambda: saxpy(1.0, x, x, out=fixed), "ValueError", "float z is written", "read-only")
says(lambda: saxpy(1.0, x, x, size=3), "ValueError", "size is for")
says(lambda: saxpy("text", x, x), "TypeError", "float a")
says(lambda: saxpy(1e300, x, x), "TypeError", "cannot hold 1e+300")
any_of = gk.elementwise("T x, T y, U z", "z = x + y", name="any_of")
says(lambda: any_of(x, x.astype(float)), "TypeError", "T is float32 in T x, and float64 in T y")
says(lambda: any_of(x, x), "TypeError", "no argument tells what U is in U z")
says(lambda: gk.vectorize("k + x")(np.int64(3), x), "TypeError", "T is int64 in T k")
counted = gk.elementwise("int n_of, float z", "z = n_of", name="counted")
says(lambda: counted(2.5, out=there), "TypeError", "n_of", "float")
adding = gk.elementwise("float x, float z", "z += x")
says(lambda: adding(x), "TypeError", "z is made of what it was")
raw = gk.ElementwiseKernel("raw T x", "T z", "z = x[i]", "raw_one")
says(lambda: raw(x), "ValueError", "size=")
says(lambda: raw(1.0), "TypeError", "raw T x takes an array")
writing = gk.ElementwiseKernel("T x", "raw T z", "z[i] = x", "writing")
says(lambda: writing(x), "TypeError", "raw T z is raw")
says(lambda: raw(x, size=-1), "ValueError", "size")
broken = gk.elementwise("float x, float z", "z = x + missing", name="broken")
says(lambda: broken(x), "CompileError", "broken.cu", "missing")
says(lambda: gk.elementwise("float x, float z", 3), "TypeError", "operation")
says(lambda: gk.elementwise("float x"), "TypeError", "elementwise: missing")
""")


@NEEDS_FAKE
def test_wrong_calls_of_reductions(launches):
    launches("""
def says(call, kind, *words):
    name, sentence = failure(call)
    assert name == kind and all(word in sentence for word in words), (name, sentence)
total = gk.reduction("float x, float y", "x * y", name="total")
x, there = some(4, 5), gk.to_device(some(4, 5))
assert isinstance(total(x, x), np.float32) and total(there, there).shape == ()
assert total(x, there, axis=1).shape == (4,) and total(x, 2.0, axis=0).shape == (5,)
assert total(x, x, axis=(0, 1), keepdims=True).shape == (1, 1)
assert total(x[:, :0], 1.0, axis=1).shape == (4,)
says(lambda: total(x), "TypeError", "total: takes 2 arguments", "was given 1")
says(lambda: total(x, x, axis=2), "ValueError", "total: axis 2", "2 axes")
says(lambda: total(x, x, axis="x"), "TypeError", "axis 'x'")
says(lambda: total(x, x[:, :3]), "ValueError", "could not be broadcast")
says(lambda: total(x, x.astype(float)), "TypeError", "float y", "float64")
says(lambda: total(x, x, out=np.empty(4, np.float32)), "ValueError", "has shape (4,)", "()")
class Foreign:
    def __init__(self, array):
        self.__cuda_array_interface__ = array.__cuda_array_interface__
says(lambda: total(x, there, axis=1, out=Foreign(there[:, 0])), "ValueError",
     "is another library's array that is not contiguous")
least = gk.reduction("T x", "x", "min(a, b)", identity=None, name="least")
says(lambda: least(x[:0]), "ValueError", "least: there is no element to reduce")
assert least(x[:, :0], axis=0).shape == (0,)
says(lambda: gk.reduction("", "x"), "ValueError", "reduction: parameters has to declare")
says(lambda: gk.ReductionKernel("T x", "raw T y", "x", "a+b", "y=a", "0"), "ValueError", "raw")
says(lambda: gk.ReductionKernel("T x", "T y", 1, "a+b", "y=a", "0"), "TypeError", "map_expr")
""")


WRONG = [
    ("float *x", "pointer"),
    ("foo x", "'foo', which is no type"),
    ("float", "is no parameter"),
    ("float x, float x", "two parameters"),
    ("float i", "a parameter i, which is the number of an element"),
    ("float n", "a parameter n, which is the number of elements"),
    ("float x,, float y", "is no parameter"),
    ("float 3", "is no parameter"),
]


@pytest.mark.parametrize(("parameters", "words"), WRONG)
def test_wrong_declarations(script, parameters, words):
    code = f"import gpukern as gk\ngk.ElementwiseKernel({parameters!r}, 'T z', 'z = 1')"
    done = script(code, GPUKERN_DEVICE="sim")
    last = done.stderr.strip().splitlines()[-1]
    assert "ElementwiseKernel: " in last and words in last, last


def test_what_is_assigned_is_a_result(script):
    code = """
import json, gpukern as gk
told = [gk.elementwise("float x, float y", text).signature for text in (
    "y = x", "y += x", "y  =x", "++y; if (x == y) y = x", "y <<= 1",
    "if (x == 1) { y = x <= 2; }", "x = y == 2")]
told += [gk.vectorize(text).signature for text in (
    "sqrt(x * x + y)", "x > 1e5f ? fmaxf(x, 2) : s.field", "max(b, a) + 0x1F + M_PI")]
print(json.dumps(told))
"""
    told = json.loads(script(code, GPUKERN_DEVICE="sim").stdout)
    assert told[:6] == ["float x -> float y"] * 6
    assert told[6] == "float y -> float x"
    assert told[7:] == [
        "T x, T y -> T out",
        "T x, T s -> T out",
        "T b, T a -> T out",
    ]


@NEEDS_FAKE
def test_raw_kernels_by_cupy_s_names(launches):
    launches("""
code = '''
extern "C" __global__ void one(const float *x, float *y, int n) { if (n) y[0] = x[0]; }
template <class T> __global__ void scale(T *x, T by) { x[0] *= by; }
'''
one = gk.RawKernel(code, "one", ("-DN=3",), backend="nvcc")
x = gk.to_device(some(8))
one((1,), (8,), (x, x, 8), shared_mem=64)
one((1, 1, 1), (8, 1), [x, x, np.int32(8)])
assert one.attributes["num_regs"] == one.num_regs == 40 and one.max_threads_per_block == 1024
assert (one.shared_size_bytes, one.local_size_bytes, one.const_size_bytes) == (1024, 16, 64)
assert one.kernel.signature == "one(const float *x, float *y, int n)" and one.name == "one"
gk.RawKernel(code, "scale<double>")((1,), (1,), (gk.empty(3, "float64"), 2.0))
module = gk.RawModule(code=code, options=("-DM",), name_expressions=("scale<float>",))
assert module.get_function("scale<float>") is module.get_function("scale<float>")
assert module.get_function("one").kernel.name == "one"
import io
log = io.StringIO()
module.compile(log_stream=log)
def says(call, kind, *words):
    name, sentence = failure(call)
    assert name == kind and all(word in sentence for word in words), (name, sentence)
says(lambda: one((1,), (1,), x), "TypeError", "args has to be a tuple")
says(lambda: one((1,), (1,), (x, x)), "TypeError", "takes 3 arguments")
says(lambda: one((1,), (1,), (x, x, 1.5)), "TypeError", "int n")
says(lambda: gk.RawKernel(code, "absent")((1,), (1,), ()), "ValueError", "has no kernel 'absent'")
says(lambda: gk.RawKernel(code, "one", jitify=True), "ValueError", "jitify is not supported")
says(lambda: gk.RawKernel(code, "one", backend="other"), "ValueError", "backend")
says(lambda: gk.RawModule(), "TypeError", "either code=")
says(lambda: gk.RawModule(code=code, path="x"), "TypeError", "either code=")
says(lambda: module.get_function("absent"), "ValueError", "no kernel 'absent'")
says(lambda: gk.RawModule(code=code, name_expressions=["nothing<int>"]).compile(), "CompileError")
""")


@pytest.mark.parametrize(
    ("reduce", "wanted"),
    [("a + b", -6), ("b+a", -6), ("max(a, b)", -1), ("min(a, b)", -3), ("a * b", -6)],
)
def test_an_identity_that_is_not_said_is_that_of_a_sum_alone(reduce, wanted):
    assert gk.reduction("T x", "x", reduce)(np.array([-1, -2, -3], "f4")) == wanted
