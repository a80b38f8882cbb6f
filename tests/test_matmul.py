"""matmul: every variant within the error bound of an inner product, in any layout."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpukern as gk
import oracle
from arrays import (
    DTYPES,
    LAYOUTS,
    DeviceView,
    contents,
    dtypes_of,
    is_float,
    on_device,
    on_gpu,
    places,
    random,
    variants,
)

ROWS = variants("matmul")
FLOAT_ROWS = [(variant, dtype) for variant, dtype in ROWS if is_float(DTYPES[dtype])]
# (m, k, n): nothing, one, around the tile's width, primes, long and thin.
SIZES = [
    *((0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0), (1, 1, 1), (1, 7, 1), (7, 1, 7), (1, 1, 9)),
    *((31, 32, 33), (32, 32, 32), (33, 31, 32), (33, 33, 33), (17, 61, 13), (2, 200, 3)),
    *((65, 1, 64), (1, 97, 65), (65, 64, 1)),
]


def pair(m, k, n, dtype):
    return random((m, k), DTYPES[dtype], 1), random((k, n), DTYPES[dtype], 2)


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_sizes(variant, dtype):
    for m, k, n in SIZES:
        a, b = pair(m, k, n, dtype)
        oracle.assert_matmul(gk.matmul(a, b, variant=variant), a, b, variant, f"{m}x{k}x{n}")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_layouts_on_the_host(variant, dtype):
    for left, lay_a in LAYOUTS.items():
        for right, lay_b in LAYOUTS.items():
            a, b = pair(9, 35, 6, dtype)
            a, b = lay_a(a), lay_b(b)
            got = gk.matmul(a, b, variant=variant)
            oracle.assert_matmul(got, a, b, variant, f"{left} @ {right}")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_contents(variant, dtype):
    """What is not finite in a row or a column stays in its row or column."""
    for case, values in contents(DTYPES[dtype], 35 * 37):
        a, b = values.reshape(35, 37), random((37, 34), DTYPES[dtype], 2)
        oracle.assert_matmul(gk.matmul(a, b, variant=variant), a, b, variant, f"{case} @ random")
        oracle.assert_matmul(
            gk.matmul(b.T, a.T, variant=variant), b.T, a.T, variant, f"random @ {case}"
        )


@pytest.mark.parametrize(("variant", "dtype"), FLOAT_ROWS)
def test_one_special_value_spoils_one_row_and_one_column(variant, dtype):
    for special in (np.nan, np.inf):
        a, b = pair(35, 37, 33, dtype)
        a[3, 36] = b[36, 5] = special
        got = gk.matmul(a, b, variant=variant).astype(np.float64)
        spoilt = np.zeros(got.shape, bool)
        spoilt[3, :] = spoilt[:, 5] = True
        np.testing.assert_array_equal(~np.isfinite(got), spoilt)


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_an_empty_inner_dimension_gives_zeros(variant, dtype):
    a, b = pair(5, 0, 3, dtype)
    out = np.full((5, 3), 9, DTYPES[dtype])
    assert gk.matmul(a, b, out=out, variant=variant) is out
    assert not out.any()
    dirty = gk.to_device(np.full((5, 3), 9, DTYPES[dtype]))
    gk.matmul(gk.to_device(a), gk.to_device(b), out=dirty, variant=variant)
    assert not dirty.to_host().any()


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_places_on_the_device(variant, dtype, balanced):
    a, b = pair(9, 35, 6, dtype)
    kinds = [name for name, _ in places(a.shape, a.dtype)]
    for case in kinds:
        for moved in ("a", "b", "out", "all"):
            there = {
                name: on_device(
                    dict(places(shape, a.dtype))[case if moved in (name, "all") else "aligned"],
                    values,
                )
                for name, shape, values in (
                    ("a", a.shape, a),
                    ("b", b.shape, b),
                    ("out", (9, 6), None),
                )
            }
            out = there["out"]
            label = f"{moved} {case}"
            assert (
                gk.matmul(there["a"].view, there["b"].view, out=out.view, variant=variant)
                is out.view
            )
            got = out.place.view(out.parent.to_host()).copy()
            oracle.assert_matmul(got, a, b, variant, label)
            assert out.holds(got), f"{label}: written outside of out"
            assert there["a"].holds(a), f"{label}: a was changed"
            assert there["b"].holds(b), f"{label}: b was changed"


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_out_on_the_host_with_canaries(variant, dtype):
    a, b = pair(33, 35, 31, dtype)
    for case, place in places((33, 31), DTYPES[dtype]):
        block = place.block()
        out = place.view(block)
        assert gk.matmul(a, b, out=out, variant=variant) is out
        oracle.assert_matmul(out.copy(), a, b, variant, case)
        np.testing.assert_array_equal(block, place.block(out.copy()), case)


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
@pytest.mark.parametrize("device", [False, True])
def test_out_is_an_input(variant, dtype, device):
    a, b = pair(35, 35, 35, dtype)
    for pick in ("a", "b"):
        x, y = (gk.to_device(a), gk.to_device(b)) if device else (a.copy(), b.copy())
        out = x if pick == "a" else y
        assert gk.matmul(x, y, out=out, variant=variant) is out
        oracle.assert_matmul(np.asarray(out), a, b, variant, f"out is {pick}")
        square = gk.to_device(a) if device else a.copy()
        gk.matmul(square, square, out=square, variant=variant)
        oracle.assert_matmul(np.asarray(square), a, a, variant, "all the same")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_out_overlaps_the_inputs(variant, dtype):
    base = random(35 * 35 + 40, DTYPES[dtype], 3)
    for start in (1, 3, 40):
        a = base[: 35 * 35].reshape(35, 35)
        device = gk.to_device(base)
        place = dict(places((35, 35), DTYPES[dtype]))["aligned"]
        where = [
            type(place)(place.shape, place.dtype, first * a.itemsize, place.strides, 0)
            for first in (0, start)
        ]
        x, out = (DeviceView(device, each) for each in where)
        gk.matmul(x, x, out=out, variant=variant)
        got = device.to_host()
        product = got[start : start + 35 * 35].reshape(35, 35)
        oracle.assert_matmul(product, a, a, variant, f"out {start} elements behind")
        np.testing.assert_array_equal(got[:start], base[:start])
        np.testing.assert_array_equal(got[start + 35 * 35 :], base[start + 35 * 35 :])


@pytest.mark.parametrize("dtype", dtypes_of("matmul"))
@pytest.mark.parametrize("device", [False, True])
def test_vectors(dtype, device):
    matrix, vector = random((5, 7), DTYPES[dtype], 1), random(7, DTYPES[dtype], 2)
    there = gk.to_device if device else np.asarray
    column = np.asarray(gk.matmul(there(matrix), there(vector)))
    row = np.asarray(gk.matmul(there(vector), there(np.ascontiguousarray(matrix.T))))
    dot = np.asarray(gk.matmul(there(vector), there(vector)))
    assert (column.shape, row.shape, dot.shape) == ((5,), (5,), ())
    # The default of each dtype may be cuBLAS: its bound is the widest of all variants.
    oracle.assert_matmul(column[:, None], matrix, vector[:, None], "cublas", "matrix @ vector")
    oracle.assert_matmul(row[None, :], vector[None, :], matrix.T, "cublas", "vector @ matrix")
    oracle.assert_matmul(dot[None, None], vector[None, :], vector[:, None], "cublas", "dot")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_the_same_bits_every_time(variant, dtype):
    a, b = pair(33, 65, 34, dtype)
    first = gk.matmul(a, b, variant=variant).tobytes()
    x, y = gk.to_device(a), gk.to_device(b)
    for _ in range(3):
        assert gk.matmul(a, b, variant=variant).tobytes() == first
        assert gk.matmul(x, y, variant=variant).to_host().tobytes() == first
        if variant != "cublas":  # which has kernels of their own for transposed operands
            assert gk.matmul(np.asfortranarray(a), b, variant=variant).tobytes() == first


@given(
    row=st.sampled_from(ROWS),
    m=st.integers(0, 70),
    k=st.integers(0, 70),
    n=st.integers(0, 70),
)
def test_any_size(row, m, k, n):
    variant, dtype = row
    a, b = pair(m, k, n, dtype)
    oracle.assert_matmul(gk.matmul(a, b, variant=variant), a, b, variant, f"{m}x{k}x{n}")


@pytest.mark.parametrize(("variant", "dtype"), [row for row in ROWS if row[1] == "float32"])
def test_groups_of_tiles(variant, dtype):
    """Several of whole height, and one that is cut short."""
    a, b = pair(1300, 8, 388, dtype)
    oracle.assert_matmul(gk.matmul(a, b, variant=variant), a, b, variant, "1300x8x388")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_large_matrices(variant, dtype):
    m, k, n = (1000, 1003, 1001) if on_gpu() else (130, 150, 101)
    if dtype == "float64":
        m = 100  # the oracle is NumPy without BLAS
    a, b = pair(m, k, n, dtype)
    oracle.assert_matmul(gk.matmul(a, b, variant=variant), a, b, variant, f"{m}x{k}x{n}")


def test_halves_are_carried_in_float32():
    for dtype in ("float16", "bfloat16"):
        ones = np.ones((1, 3000), DTYPES[dtype])
        got = gk.matmul(ones, np.ascontiguousarray(ones.T))
        assert float(got[0, 0]) == float(DTYPES[dtype].type(3000))


def test_float16_overflows_to_infinity_in_the_result_alone():
    a = np.array([[60000, 60000, -60000]], np.float16)
    b = np.array([[1], [1], [1]], np.float16)
    assert gk.matmul(a, b)[0, 0] == np.float16(60000)
    assert gk.matmul(a[:, :2], b[:2])[0, 0] == np.inf


# (m, k, n) whose rows are multiples of 16 bytes: one tile, many, edges, K shared out among blocks.
FETCHED = [
    *((128, 128, 128), (4, 4, 4), (1, 4, 4), (129, 36, 132), (127, 32, 124), (1000, 1000, 1000)),
    *((100, 8192, 100), (257, 4096, 64), (64, 64, 2048), (3, 20_000, 8), (130, 2052, 260)),
]


@pytest.mark.skipif(
    ("tma", "float32") not in ROWS, reason="needs the copy engine of compute capability 9.0"
)
@pytest.mark.parametrize(("m", "k", "n"), FETCHED)
def test_tiles_that_the_copy_engine_fetches(m, k, n):
    a, b = pair(m, k, n, "float32")
    out = on_device(dict(places((m, n), DTYPES["float32"]))["aligned"])
    gk.matmul(gk.to_device(a), gk.to_device(b), out=out.view, variant="tma")
    got = gk.matmul(a, b, variant="tma")
    oracle.assert_matmul(got, a, b, "tma", f"{m}x{k}x{n}")
    again = gk.matmul(gk.to_device(a), gk.to_device(b), variant="tma").to_host()
    assert out.holds(again), "other bits, or a canary is dead"
    specials = np.resize(np.float32([np.nan, np.inf, -np.inf, 1e38, 1e-42, -0.0]), min(m, k))
    a[np.arange(min(m, k)), np.arange(min(m, k))] = specials
    oracle.assert_matmul(gk.matmul(a, b, variant="tma"), a, b, "tma", f"{m}x{k}x{n}, special")


# --- tensor cores -----------------------------------------------------------------------------

# Without cuBLAS, which has its own rules.
TENSOR_ROWS = [row for row in ROWS if row[0] in (*oracle.TENSOR_CORES[:-1], "tf32")]
# (m, k, n), n a multiple of 8 as these rows ask for: one piece of 16 bytes, around the tiles' sides
# of 64, 128 and 256 and their depths of 32 and 64, more tiles than a GPU has multiprocessors.
FRAGMENTS = [
    *((1, 8, 8), (8, 8, 8), (3, 16, 264), (127, 24, 8), (129, 40, 248), (128, 64, 256)),
    *((100, 1000, 104), (65, 72, 520), (200, 56, 1000), (257, 4096, 64), (1000, 136, 2056)),
]


def lain(values, how):
    """The values on the device, in an array that lies so."""
    rows, columns = values.shape
    if how == "wide":
        room = gk.to_device(np.zeros((rows, columns // 8 * 8 + 24), values.dtype))
        room[:, 8 : 8 + columns] = values
        return room[:, 8 : 8 + columns]
    if how == "transposed":
        room = gk.to_device(np.zeros((columns, rows // 8 * 8 + 16), values.dtype))
        room[:, :rows] = np.ascontiguousarray(values.T)
        return room[:, :rows].T
    if how == "misaligned":
        room = gk.to_device(np.zeros((rows, columns + 1), values.dtype))
        room[:, 1:] = values
        return room[:, 1:]
    return gk.to_device(values)


def ran(a, b, **named):
    with gk.profile() as profile:
        got = gk.matmul(a, b, **named).to_host()
    return got, profile.calls[0].variant


@pytest.mark.skipif(not TENSOR_ROWS, reason="needs tensor cores")
@pytest.mark.parametrize("size", FRAGMENTS)
def test_fragments_of_any_layout(size):
    for variant, dtype in TENSOR_ROWS:
        if dtype == "float64" and np.prod(size) > 1e7:
            continue  # the oracle is NumPy without BLAS
        a, b = pair(*size, dtype)
        for left in ("plain", "wide", "transposed"):
            for right in ("plain", "wide", "transposed"):
                got, by = ran(lain(a, left), lain(b, right), variant=variant)
                case = f"{size} {dtype} {left} @ {right}"
                oracle.assert_matmul(got, a, b, variant, case)
                assert by == variant, f"{case}: {by} ran"


@pytest.mark.skipif(not TENSOR_ROWS, reason="needs tensor cores")
@pytest.mark.parametrize(("m", "k", "n"), [(130, 35, 264), (130, 40, 261), (35, 1003, 8)])
def test_fragments_have_an_alignment(m, k, n):
    """An odd K comes by columns alone; what has no rows of 16-byte pieces another variant does."""
    for variant, dtype in TENSOR_ROWS:
        a, b = pair(m, k, n, dtype)
        for left in ("plain", "transposed", "misaligned"):
            for right in ("plain", "transposed", "misaligned"):
                got, _ = ran(lain(a, left), lain(b, right), variant=variant)
                oracle.assert_matmul(got, a, b, variant, f"{m}x{k}x{n} {left} @ {right}")


@pytest.mark.skipif(not TENSOR_ROWS, reason="needs tensor cores")
@pytest.mark.parametrize("k", [8, 72, 1000])
def test_special_values_stay_in_their_row_and_column_of_fragments(k):
    m, n = 200, 520
    for variant, dtype in TENSOR_ROWS:
        for special in (np.nan, np.inf, -np.inf):
            a, b = pair(m, k, n, dtype)
            a[130, k - 1] = b[k - 1, 300] = special
            for left in ("plain", "transposed"):
                for right in ("plain", "transposed"):
                    got, _ = ran(lain(a, left), lain(b, right), variant=variant)
                    spoilt = np.zeros(got.shape, bool)
                    spoilt[130, :] = spoilt[:, 300] = True
                    np.testing.assert_array_equal(~np.isfinite(got.astype(np.float64)), spoilt)


@pytest.mark.skipif(not TENSOR_ROWS, reason="needs tensor cores")
def test_stacks_of_fragments():
    for variant, dtype in TENSOR_ROWS:
        for left, right in (
            ((5, 40, 72), (5, 72, 264)),
            ((130, 8), (3, 8, 16)),
            ((3, 2, 9, 16), (2, 16, 8)),
        ):
            a, b = stack(left, right, dtype)
            x, y = gk.to_device(a), gk.to_device(b)
            assert_stack(
                gk.matmul(x, y, variant=variant).to_host(), a, b, variant, f"{left} @ {right}"
            )
            axes = (*range(b.ndim - 2), b.ndim - 1, b.ndim - 2)
            turned = gk.to_device(np.ascontiguousarray(b.transpose(axes))).transpose(axes)
            assert_stack(
                gk.matmul(x, turned, variant=variant).to_host(), a, b, variant, "transposed"
            )


@pytest.mark.skipif(not TENSOR_ROWS, reason="needs tensor cores")
def test_fragments_end_at_the_result(balanced):
    for variant, dtype in TENSOR_ROWS:
        a, b = pair(130, 72, 264, dtype)
        out = on_device(dict(places((130, 264), DTYPES[dtype]))["aligned"])
        gk.matmul(gk.to_device(a), gk.to_device(b), out=out.view, variant=variant)
        got = gk.matmul(a, b, variant=variant)
        oracle.assert_matmul(got, a, b, variant, "130x72x264")
        assert out.holds(got), f"{variant} {dtype}: other bits, or a canary is dead"


# --- stacks -----------------------------------------------------------------------------------

# Of the left and the right operand: side by side, one for all, axes that do not merge, vectors,
# nothing, one, tiles of several blocks.
STACKS = [
    ((3, 4, 5), (3, 5, 6)),
    ((4, 5), (3, 5, 6)),
    ((3, 4, 5), (5, 6)),
    ((2, 3, 4, 5), (5, 6)),
    ((2, 1, 4, 5), (3, 5, 6)),
    ((2, 3, 4, 5), (1, 3, 5, 6)),
    ((2, 3, 4, 5), (2, 1, 5, 6)),
    ((2, 3, 1, 4, 5), (3, 2, 5, 2)),
    ((5,), (3, 5, 6)),
    ((3, 4, 5), (5,)),
    ((1, 4, 5), (3, 5, 6)),
    ((1, 1, 4, 5), (1, 5, 6)),
    ((0, 4, 5), (5, 6)),
    ((3, 0, 5), (3, 5, 2)),
    ((3, 4, 0), (3, 0, 2)),
    ((70, 1, 1), (70, 1, 1)),
    ((3, 1, 2, 33, 40), (2, 40, 67)),
]


def stack(left, right, dtype):
    return random(left, DTYPES[dtype], 3), random(right, DTYPES[dtype], 4)


def assert_stack(got, a, b, variant, case):
    """Each of its products is as a product alone has to be."""
    got = np.asarray(got)
    left = a if a.ndim > 1 else a[None, :]
    right = b if b.ndim > 1 else b[:, None]
    leading = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left = np.broadcast_to(left, leading + left.shape[-2:])
    right = np.broadcast_to(right, leading + right.shape[-2:])
    assert got.shape == np.matmul(np.zeros(a.shape, bool), np.zeros(b.shape, bool)).shape, case
    products = got.reshape(*leading, left.shape[-2], right.shape[-1])
    for at in np.ndindex(leading):
        oracle.assert_matmul(products[at], left[at], right[at], variant, f"{case} {at}")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_stacks(variant, dtype):
    for left, right in STACKS:
        a, b = stack(left, right, dtype)
        case = f"{left} @ {right}"
        assert_stack(gk.matmul(a, b, variant=variant), a, b, variant, case)
        there = gk.matmul(gk.to_device(a), b, variant=variant)
        assert_stack(there.to_host() if there.ndim else there, a, b, variant, case)


@pytest.mark.parametrize("dtype", dtypes_of("matmul"))
def test_stacks_of_any_layout(dtype):
    a, b = stack((4, 6, 9, 7), (6, 7, 10), dtype)
    cases = {
        "every second": (a[::2, ::-2], b[::2]),
        "axes exchanged": (a.swapaxes(0, 1)[:, :, :3], b[:, None, :, ::3]),
        "transposed": (a.swapaxes(2, 3)[..., :7, :], np.broadcast_to(b[0].T[:9], (6, 9, 7))),
        "one for all": (np.broadcast_to(a[0, 0], (5, 9, 7)), b[1]),
    }
    for case, (left, right) in cases.items():
        assert_stack(gk.matmul(left, right), left, right, "tiled", case)


@pytest.mark.parametrize("device", [False, True])
def test_a_stack_into_an_array_of_the_callers(device):
    a, b = stack((3, 4, 5), (5, 6), "float32")
    room = np.full((3, 4, 8), 9, np.float32)
    if device:
        there = gk.to_device(room)
        assert gk.matmul(a, b, out=there[..., 1:7]) is not None
        room = there.to_host()
    else:
        gk.matmul(a, b, out=room[..., 1:7])
    np.testing.assert_allclose(room[..., 1:7], a @ b, rtol=1e-5)
    assert (room[..., 0] == 9).all() and (room[..., 7] == 9).all()


def test_stacks_that_do_not_broadcast():
    a, b = stack((2, 3, 4), (3, 4, 5), "float32")
    with pytest.raises(ValueError, match=r"matmul: the stacks of a, .*\(2, 3, 4\).* broadcast"):
        gk.matmul(a, b)
    with pytest.raises(ValueError, match="core dimension 0"):
        gk.matmul(a, b.swapaxes(1, 2))


NUMPYS_OWN = """
from numpy._core.tests.test_multiarray import MatmulCommon

import gpukern

class TestMatmul(MatmulCommon):
    types = "?bhilBHILefd"  # those that it shares with gpukern

    def matmul(self, *operands, **named):
        return gpukern.matmul(*operands, **named)
"""


def test_numpys_own_tests_pass(tmp_path):
    """In a pytest of its own: NumPy's tests have markers that are not ours."""
    (tmp_path / "test_numpys.py").write_text(NUMPYS_OWN)
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path)]
    command += ["-p", "no:cacheprovider", "-W", "ignore", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
