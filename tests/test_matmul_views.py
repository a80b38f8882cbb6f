"""matmul of operands that do not lie row by row: transposed, rows apart, slices, stacks of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpukern as gk
import oracle
from arrays import DTYPES, dtypes_of, is_float, on_gpu, random, variants
from gpukern import _core

ROWS = variants("matmul")
# What makes a matrix of `shape` out of a larger one, for NumPy arrays and DeviceArrays alike: the
# shape of the larger one, and the view of it.
VIEWS = {
    "rows": (lambda m, n: (m, n), lambda x, m, n: x),
    "columns": (lambda m, n: (n, m), lambda x, m, n: x.T),
    "rows apart": (lambda m, n: (m + 1, n + 5), lambda x, m, n: x[1:, 2 : n + 2]),
    "columns apart": (lambda m, n: (n + 2, m + 3), lambda x, m, n: x.T[3:, :n]),
    "every third row": (lambda m, n: (3 * m, n + 1), lambda x, m, n: x[::3, :n]),
    "every second element": (lambda m, n: (m, 2 * n), lambda x, m, n: x[:, ::2]),
    "backwards": (lambda m, n: (m, n), lambda x, m, n: x[::-1]),
    "columns backwards": (lambda m, n: (n, m), lambda x, m, n: x.T[:, ::-1]),
    "both apart": (lambda m, n: (3 * m, 2 * n), lambda x, m, n: x[::3, ::2]),
    "of a stack": (lambda m, n: (m, 3, n), lambda x, m, n: x[:, 1]),
}

# One for each way to fetch: an element at a time, four, and few bytes.
EVERY_PAIR = {("tiled", "float32"), ("vectorized", "float32"), ("tiled", "int8")}
# A wide one, single rows, columns and elements, tiles and their edges.
SIZES = [(9, 35, 6), (1, 33, 5), (33, 1, 4), (6, 40, 1), (1, 1, 1), (33, 65, 34)]


def viewed(view, shape, dtype, seed):
    """The same view of an array on the host and on the device."""
    around, take = VIEWS[view]
    larger = random(around(*shape), DTYPES[dtype], seed)
    return take(larger, *shape), take(gk.to_device(larger), *shape)


def same_as_numpy(got, want, case):
    got, want = np.asarray(got), np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype), case
    np.testing.assert_array_equal(got, want, case)


@pytest.mark.costly(2)
@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_every_view_of_each_operand(variant, dtype):
    for left in VIEWS:
        for right in VIEWS if (variant, dtype) in EVERY_PAIR else ("rows", left):
            for m, k, n in SIZES if left in ("columns", "columns apart") else SIZES[:1]:
                a, x = viewed(left, (m, k), dtype, 1)
                b, y = viewed(right, (k, n), dtype, 2)
                case = f"{left} @ {right}, {m} {k} {n}"
                got = gk.matmul(x, y, variant=variant).to_host()
                oracle.assert_matmul(got, a, b, variant, case)
                if variant != "cublas":  # which has kernels of their own for transposed ones
                    packed = [gk.to_device(np.ascontiguousarray(each)) for each in (a, b)]
                    again = gk.matmul(*packed, variant=variant).to_host()
                    assert got.tobytes() == again.tobytes(), case


def within_nan(values, transposed):
    """A matrix on the device whose rows begin where 16 bytes do, with NaN on all sides of it."""
    lying = values.T if transposed else values
    rows, columns = lying.shape
    around = np.full((rows + 2, 16 + -(-columns // 16) * 16 + 16), np.nan, values.dtype)
    around[1:-1, 16 : 16 + columns] = lying
    inside = gk.to_device(around)[1:-1, 16 : 16 + columns]
    return inside.T if transposed else inside


@pytest.mark.parametrize(
    ("variant", "dtype"), [(None, "float32"), *((v, d) for v, d in ROWS if is_float(DTYPES[d]))]
)
def test_nothing_of_the_surroundings_is_taken(variant, dtype):
    for m, k, n in ((5, 7, 8), (33, 37, 12), (129, 5, 132), (8, 1027, 1), (3, 1030, 4)):
        a, b = random((m, k), DTYPES[dtype], 1), random((k, n), DTYPES[dtype], 2)
        for left in (False, True):
            for right in (False, True):
                got = gk.matmul(within_nan(a, left), within_nan(b, right), variant=variant)
                case = f"{m} {k} {n} {left} {right}"
                oracle.assert_matmul(got.to_host(), a, b, variant or "cublas", case)


@given(
    row=st.sampled_from(ROWS),
    m=st.integers(1, 70),
    k=st.integers(1, 70),
    n=st.integers(1, 70),
    left=st.sampled_from(list(VIEWS)),
    right=st.sampled_from(list(VIEWS)),
)
def test_any_size_of_any_view(row, m, k, n, left, right):
    variant, dtype = row
    a, x = viewed(left, (m, k), dtype, 1)
    b, y = viewed(right, (k, n), dtype, 2)
    case = f"{left} @ {right}, {m} {k} {n}"
    oracle.assert_matmul(gk.matmul(x, y, variant=variant).to_host(), a, b, variant, case)
    oracle.assert_matmul(gk.matmul(a, b, variant=variant), a, b, variant, f"host, {case}")
    oracle.assert_matmul(gk.matmul(x, b, variant=variant).to_host(), a, b, variant, f"half, {case}")


@pytest.mark.parametrize(
    ("variant", "dtype"), [(variant, dtype) for variant, dtype in ROWS if is_float(DTYPES[dtype])]
)
def test_what_lies_around_a_view_is_not_read(variant, dtype):
    a, b = random((9, 35), DTYPES[dtype], 1), random((35, 6), DTYPES[dtype], 2)
    around = [np.full((60, 60), np.nan, DTYPES[dtype]) for _ in range(2)]
    around[0][4:39, 7:16] = a.T
    around[1][2:8, 5:40] = b.T
    x, y = map(gk.to_device, around)
    got = gk.matmul(x[4:39, 7:16].T, y[2:8, 5:40].T, variant=variant)
    oracle.assert_matmul(got.to_host(), a, b, variant, "both transposed")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_a_matrix_times_itself(variant, dtype):
    a = random((35, 33), DTYPES[dtype], 1)
    x = gk.to_device(a)
    oracle.assert_matmul(gk.matmul(x.T, x, variant=variant).to_host(), a.T, a, variant, "a.T @ a")
    oracle.assert_matmul(gk.matmul(x, x.T, variant=variant).to_host(), a, a.T, variant, "a @ a.T")
    square = gk.to_device(a[:33])
    gk.matmul(square.T, square, out=square, variant=variant)
    oracle.assert_matmul(square.to_host(), a[:33].T, a[:33], variant, "into itself")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_out_beside_an_operand_in_one_matrix(variant, dtype):
    whole = random((35, 80), DTYPES[dtype], 1)
    x = gk.to_device(whole)
    a, b = whole[:, :30].T.copy(), whole[:, 30:70].copy()
    got = gk.matmul(x[:, :30].T, x[:, 30:70], out=x[:30, 40:80], variant=variant)
    oracle.assert_matmul(got.to_host(), a, b, variant, "over an operand")
    left = x.to_host()
    np.testing.assert_array_equal(left[:, :40], whole[:, :40])
    np.testing.assert_array_equal(left[30:], whole[30:])


@pytest.mark.parametrize("dtype", dtypes_of("matmul"))
def test_vectors_of_any_step(dtype):
    matrix = random((40, 40), DTYPES[dtype], 1)
    there = gk.to_device(matrix)
    for case, take in {
        "a column": lambda x: x[:, 3],
        "backwards": lambda x: x[5, ::-1],
        "one for all": lambda x: np.broadcast_to(x[2, 3], 40) if x is matrix else x[2, 3:4],
        "every second": lambda x: x[7, ::2],
    }.items():
        vector = take(matrix)
        k = len(vector) if take(there).shape == vector.shape else 1
        vector = vector[:k]
        for left, right in ((matrix[:, :k], vector), (vector, matrix[:k]), (vector, vector)):
            x = there[:, :k] if left is not vector else take(there)
            y = there[:k] if right is not vector else take(there)
            got, want = np.asarray(gk.matmul(x, y)), np.matmul(left, right)
            assert got.shape == want.shape, case
            rows = left if left.ndim == 2 else left[None]
            columns = right if right.ndim == 2 else right[:, None]
            got = got.reshape(len(rows), columns.shape[1])
            oracle.assert_matmul(got, rows, columns, "cublas", case)


STACKED = {
    "matrices": (lambda x: x, lambda x: x),
    "transposed": (lambda x: x.transpose((0, 2, 1)), lambda x: x.transpose((0, 2, 1))),
    "rows apart": (lambda x: x[:, :, 1:7], lambda x: x[:, 1:7, 2:]),
    "every second": (lambda x: x[::2], lambda x: x[1::2]),
    "backwards": (lambda x: x[::-1], lambda x: x),
    "the stack behind": (lambda x: x.transpose((1, 0, 2)), lambda x: x.transpose((2, 1, 0))),
    "one on the left": (lambda x: x[1:2], lambda x: x[:, :, 3:11]),
    "one on the right": (lambda x: x, lambda x: x[2]),
    "rows of each, one on the right": (lambda x: x[:, 1:5], lambda x: x[2]),
    "a row of each, one on the right": (lambda x: x[:, 3:4], lambda x: x[2].T),
    "transposed, one on the right": (lambda x: x.transpose((0, 2, 1)), lambda x: x[2]),
    "every second, one on the right": (lambda x: x[::2, :, :6], lambda x: x[2, :6]),
    "the stack inside": (lambda x: x.transpose((1, 2, 0)), lambda x: x.transpose((1, 0, 2))),
}


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_stacks_of_views(variant, dtype):
    a, b = random((8, 8, 8), DTYPES[dtype], 1), random((8, 8, 8), DTYPES[dtype], 2)
    x, y = gk.to_device(a), gk.to_device(b)
    for case, (left, right) in STACKED.items():
        got, (p, q) = gk.matmul(left(x), right(y), variant=variant).to_host(), (left(a), right(b))
        assert got.shape == np.matmul(p, q).shape, case
        p, q = (np.broadcast_to(each, (len(got), *each.shape[-2:])) for each in (p, q))
        for i, one in enumerate(got):
            oracle.assert_matmul(one, p[i], q[i], variant, f"{case} {i}")


# --- a wider result ---------------------------------------------------------------------------

NARROW = ("int8", "uint8", "int16", "uint16")


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_integers_to_int32(dtype):
    for m, k, n in (*SIZES, (3, 0, 4), (0, 3, 2)):
        a, b = random((m, k), DTYPES[dtype], 1), random((k, n), DTYPES[dtype], 2)
        want = np.matmul(a, b, dtype=np.int32)
        for variant in (None, "tiled"):
            same_as_numpy(gk.matmul(a, b, dtype="int32", variant=variant), want, f"{m} {k} {n}")
            there = gk.matmul(gk.to_device(a), gk.to_device(b), dtype=np.int32, variant=variant)
            same_as_numpy(there.to_host(), want, f"{m} {k} {n} on the device")
    a, x = viewed("columns apart", (30, 41), dtype, 1)
    b, y = viewed("every third row", (41, 35), dtype, 2)
    want = np.matmul(a, b, dtype=np.int32)
    out = gk.empty((30, 35), "int32")
    assert gk.matmul(x, y, out=out, dtype="int32") is out
    same_as_numpy(out.to_host(), want, "views")
    vector = np.matmul(a[0], b, dtype=np.int32)
    same_as_numpy(gk.matmul(a[0], b, dtype="int32"), vector, "a vector")


def test_extremes_wrap_as_numpys():
    for dtype in NARROW:
        for value in (np.iinfo(dtype).min, np.iinfo(dtype).max):
            # Of uint8 it takes 33,026 products for the sum to wrap.
            a = np.full((2, 40_000 if dtype == "uint8" else 4000), value, dtype)
            same_as_numpy(
                gk.matmul(a, a.T, dtype="int32"), np.matmul(a, a.T, dtype=np.int32), dtype
            )


def test_a_stack_to_int32():
    a, b = random((5, 20, 30), DTYPES["int8"], 1), random((30, 7), DTYPES["int8"], 2)
    want = np.matmul(a, b, dtype=np.int32)
    same_as_numpy(gk.matmul(a, b, dtype="int32"), want, "one for all")
    same_as_numpy(gk.matmul(gk.to_device(a), b, dtype="int32").to_host(), want, "on the device")
    b = random((5, 30, 7), DTYPES["int8"], 2)
    want = np.matmul(a, b, dtype=np.int32)
    same_as_numpy(gk.matmul(gk.to_device(a), b, dtype="int32").to_host(), want, "side by side")


def test_by_panels_to_int32():
    a, b = random((100_001, 30), DTYPES["int8"], 1), random((30, 3), DTYPES["int8"], 2)
    want = np.matmul(a, b, dtype=np.int32)
    for limit in (0, 1 << 20):
        with gk.limits(device_memory=limit):
            same_as_numpy(gk.matmul(a, b, dtype="int32"), want, f"{limit}")


@pytest.mark.parametrize("dtype", dtypes_of("matmul"))
def test_the_dtype_of_the_operands_may_be_named(dtype):
    a, b = random((5, 7), DTYPES[dtype], 1), random((7, 3), DTYPES[dtype], 2)
    got = gk.matmul(a, b, dtype=dtype)
    assert got.dtype == DTYPES[dtype]
    assert got.tobytes() == gk.matmul(a, b).tobytes()


@pytest.mark.parametrize("dtype", dtypes_of("matmul"))
def test_every_other_dtype_is_refused(dtype):
    a = random((5, 5), DTYPES[dtype], 1)
    offered = {dtype, "int32"} if dtype in NARROW else {dtype}
    for wanted in set(_core.DTYPES) - offered:
        with pytest.raises(TypeError, match=f"matmul: dtype {wanted} is not offered for .*{dtype}"):
            gk.matmul(a, a, dtype=wanted)


def test_the_variant_of_another_dtype_is_refused():
    a = np.ones((5, 5), np.int8)
    with pytest.raises(ValueError, match=r"matmul: .*'naive' is not for int8.* tiled"):
        gk.matmul(a, a, dtype="int32", variant="naive")


# --- stacks from the host, by panels ----------------------------------------------------------

# More than 4 MiB: as many matrices as it takes, a few large ones, one operand for all, axes that do
# not merge, matrices too large for the limit, vectors.
STACKS = [
    ((5000, 9, 17), (5000, 17, 7)),
    ((5000, 9, 17), (17, 7)),
    ((9, 17), (8000, 17, 7)),
    ((2, 2100, 60), (2, 60, 40)),
    ((3, 5001, 40), (40, 24)),
    ((2, 1, 700, 64), (5, 64, 40)),
    ((3, 1, 300, 64), (300, 64, 7)),
    ((2, 300, 30, 64), (300, 64, 7)),
    ((40, 1, 33), (40, 33, 800)),
    ((33,), (50, 33, 800)),
    ((6000, 9, 33), (33,)),
]


@pytest.mark.parametrize(("left", "right"), STACKS)
def test_stacks_by_panels_have_the_bits_of_the_whole(left, right):
    a, b = random(left, DTYPES["float32"], 1), random(right, DTYPES["float32"], 2)
    variant = None if on_gpu() else "naive"
    want = gk.matmul(gk.to_device(a), gk.to_device(b), variant=variant).to_host()
    for limit in (0, 3 << 20, 400 << 10):
        with gk.limits(device_memory=limit):
            got = gk.matmul(a, b, variant=variant)
        assert got.shape == want.shape
        if on_gpu():  # cuBLAS may choose another kernel for fewer products
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-4)
        else:
            assert got.tobytes() == want.tobytes(), limit


def test_columns_that_are_one_by_panels():
    """Of such a B the parts begin at one address, and the last of them is narrower."""
    a = random((2, 9000), DTYPES["float32"], 1)
    b = np.broadcast_to(random((9000, 1), DTYPES["float32"], 2), (9000, 150))
    with gk.limits(device_memory=1 << 20):
        got = gk.matmul(a, b, variant=None if on_gpu() else "naive")
    oracle.assert_matmul(got, a, b, "cublas", "one column")


def test_stacks_of_other_layouts_by_panels():
    a, b = random((300, 64, 60), DTYPES["float32"], 1), random((60, 300, 7), DTYPES["float32"], 2)
    wide = random((60, 300, 30), DTYPES["float32"], 3)  # so that without all of A it is enough
    for case, (p, q) in {
        "transposed": (a.swapaxes(1, 2), a[..., :7]),
        "the stack behind": (a, b.swapaxes(0, 1)),
        "backwards": (a[::-1], b.swapaxes(0, 1)[:, ::-1]),
        "one for all by stride 0": (np.broadcast_to(a[3], (300, 64, 60)), wide.swapaxes(0, 1)),
        "swapped bytes": (a.astype(">f4"), b.swapaxes(0, 1)),
    }.items():
        for limit in (0, 1 << 20, 100 << 10):
            with gk.limits(device_memory=limit):
                got = gk.matmul(p, q, variant=None if on_gpu() else "naive")
            np.testing.assert_allclose(got, p @ q, rtol=0, atol=1e-4, err_msg=f"{case} {limit}")
