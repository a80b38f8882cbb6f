"""transpose: every variant moves every bit where it belongs and nothing else."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpukern as gk
import oracle
from arrays import (
    DTYPES,
    LAYOUTS,
    WALKED,
    DeviceView,
    contents,
    generator,
    on_device,
    on_gpu,
    places,
    random,
    sanitized,
    variants,
)
from gpukern import _core

# Kernels know elements by their size alone, and each size is among these.
ROWS = [row for row in variants("transpose") if row[1] in WALKED]
SHAPES = (
    *((0, 0), (0, 5), (5, 0), (1, 1), (1, 40), (40, 1), (31, 33), (32, 32), (33, 31)),
    *((7, 3), (64, 65), (2, 257), (257, 2)),
)


def moved_as_numpy(got, a, case):
    oracle.assert_same(got, np.ascontiguousarray(a.T).astype(a.dtype.newbyteorder("=")), case)


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
@pytest.mark.parametrize("device", [False, True])
def test_shapes(variant, dtype, device):
    for shape in SHAPES:
        a = random(shape, DTYPES[dtype])
        got = gk.transpose(gk.to_device(a) if device else a, variant=variant)
        assert isinstance(got, gk.DeviceArray if device else np.ndarray)
        moved_as_numpy(np.asarray(got), a, f"{shape}")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_layouts_on_the_host(variant, dtype):
    for shape in ((1, 9), (7, 11), (33, 65)):
        for case, layout in LAYOUTS.items():
            a = layout(random(shape, DTYPES[dtype]))
            moved_as_numpy(gk.transpose(a, variant=variant), a, f"{case} {shape}")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_every_bit_arrives(variant, dtype):
    """NaNs with their payloads, subnormals, signs of zeros: no arithmetic touches them."""
    for case, values in contents(DTYPES[dtype], 35 * 37):
        a = values.reshape(35, 37)
        got = gk.transpose(a, variant=variant)
        assert got.tobytes() == np.ascontiguousarray(a.T).tobytes(), case
    bits = np.random.default_rng(1).bytes(35 * 37 * DTYPES[dtype].itemsize)
    a = np.frombuffer(bits, DTYPES[dtype]).reshape(35, 37)
    assert gk.transpose(a, variant=variant).tobytes() == np.ascontiguousarray(a.T).tobytes()


@pytest.mark.costly(3)
@pytest.mark.parametrize(("variant", "dtype"), ROWS)
@pytest.mark.parametrize("shape", [(1, 9), (33, 65), (17, 32)])
def test_places_on_the_device(variant, dtype, shape, balanced):
    a = random(shape, DTYPES[dtype])
    sources, targets = (dict(places(each, a.dtype)) for each in (shape, shape[::-1]))
    for source in sources:
        for target in targets:
            there, out = on_device(sources[source], a), on_device(targets[target])
            assert gk.transpose(there.view, out=out.view, variant=variant) is out.view
            assert out.holds(a.T), f"{source} to {target}"
            assert there.holds(a), f"{source} to {target}: the array was changed"


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_out_on_the_host_with_canaries(variant, dtype):
    a = random((33, 65), DTYPES[dtype])
    for case, place in places((65, 33), DTYPES[dtype]):
        block = place.block()
        out = place.view(block)
        assert gk.transpose(a, out=out, variant=variant) is out
        np.testing.assert_array_equal(block, place.block(a.T), case)


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_out_is_the_input(variant, dtype):
    a = random((35, 35), DTYPES[dtype])
    host = a.copy()
    assert gk.transpose(host, out=host, variant=variant) is host
    moved_as_numpy(host, a, "host")
    device = gk.to_device(a)
    assert gk.transpose(device, out=device, variant=variant) is device
    moved_as_numpy(device.to_host(), a, "device")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_out_overlaps_the_input(variant, dtype):
    base = random(35 * 37 + 9, DTYPES[dtype])
    a = base[: 35 * 37].reshape(35, 37)
    device = gk.to_device(base)
    source, target = (dict(places(s, a.dtype))["aligned"] for s in ((35, 37), (37, 35)))
    source.offset, target.offset = 0, 9 * a.itemsize
    gk.transpose(DeviceView(device, source), out=DeviceView(device, target), variant=variant)
    want = np.concatenate([base[:9], np.ascontiguousarray(a.T).ravel()])
    assert device.to_host().tobytes() == want.tobytes()


@pytest.mark.parametrize("shape", [(), (1,), (9,), (0,)])
def test_less_than_two_dimensions_stay_as_they_are(shape):
    a = random(shape, DTYPES["float32"])
    oracle.assert_same(gk.transpose(a), a, "host")
    got = gk.transpose(gk.to_device(a))
    oracle.assert_same(got.to_host(), a, "device")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
@pytest.mark.parametrize("shape", [(3, 33, 65), (2, 3, 32, 64), (2, 1, 3, 5, 4)])
def test_stacks(variant, dtype, shape):
    a = random(shape, DTYPES[dtype])
    device = gk.to_device(a)
    orders = [None, (*range(len(shape) - 2), -1, -2), tuple(np.roll(range(len(shape)), 1))]
    for order in orders:
        want = np.ascontiguousarray(a.transpose(order))
        got = gk.transpose(device, order, variant=variant)
        oracle.assert_same(got.to_host(), want, f"{order}")
        oracle.assert_same(gk.transpose(a, axes=order, variant=variant), want, f"{order}")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
def test_every_order_of_the_axes_of_views(dtype):
    a = random((9, 12, 10, 24), DTYPES[dtype])
    device = gk.to_device(a)
    for order in itertools.permutations(range(4)):
        want = np.ascontiguousarray(a.transpose(order))
        oracle.assert_same(gk.transpose(device, order).to_host(), want, f"{order}")
        key = (slice(1, None), slice(None, None, -2), slice(None), slice(2, 21))
        want = np.ascontiguousarray(a[key].transpose(order))
        oracle.assert_same(gk.transpose(device[key], order).to_host(), want, f"{order} of a view")
        oracle.assert_same(device.T.T[key].to_host(), np.ascontiguousarray(a[key]), "to_host")


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_ragged_tiles_begin_and_end_anywhere(dtype, balanced):
    """Around words, sectors and tiles, with rows of the source and of the target that begin
    anywhere in one: elements that share one with others of nobody's are left as they are."""
    rng = generator(5)
    lengths = [n + k for n in (0, 8, 32, 64, 128, 256) for k in range(-3, 6) if n + k > 0]
    for _ in range(12 if sanitized() else 40):
        rows, columns = (int(rng.choice(lengths)) for _ in range(2))
        above, below = (int(n) for n in rng.integers(0, 33, 2))
        a = random((rows + 2, columns + above + 2), DTYPES[dtype], rows)
        source = gk.to_device(a)[1:-1, above : above + columns]
        want = random((columns + 2, rows + below + 2), DTYPES[dtype], columns)
        out = gk.to_device(want)
        gk.transpose(source, out=out[1:-1, below : below + rows], variant="ragged")
        want[1:-1, below : below + rows] = a[1:-1, above : above + columns].T
        oracle.assert_same(out.to_host(), want, f"{(rows, columns)} from {above} to {below}")


# Shapes, and orders in which what is near on one side runs over several axes on the other.
CHAINS = (
    ((1031, 26, 131), (2, 0, 1)),  # rows of a tile
    ((131, 1031, 26), (1, 2, 0)),  # columns of a tile
    ((37, 5, 26, 151), (3, 1, 0, 2)),
    ((3, 7, 5, 11, 13, 97), (3, 4, 5, 0, 1, 2)),
    ((2, 3, 5, 7, 9, 11, 13), (6, 4, 5, 0, 3, 1, 2)),
    ((40, 1, 5, 26, 99), (4, 2, 1, 0, 3)),
    ((6, 90, 31, 127), (3, 0, 2, 1)),
)


@pytest.mark.costly(2)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
@pytest.mark.parametrize(("shape", "axes"), CHAINS)
def test_ragged_tiles_run_over_several_axes(shape, axes, dtype, balanced):
    a = random(tuple(n + 1 for n in shape), DTYPES[dtype], 1)
    whole = tuple(slice(n) for n in shape)
    views = {"whole": whole, "within": tuple(slice(1, None) for _ in shape)}
    for case, key in views.items():
        source = np.ascontiguousarray(a[key]) if case == "whole" else a[key]
        there = gk.to_device(source) if case == "whole" else gk.to_device(a)[key]
        want = np.ascontiguousarray(source.transpose(axes))
        for begin in (0, 1):
            held = gk.to_device(np.zeros(want.size + 8, want.dtype))
            out = held[begin : begin + want.size].reshape(want.shape)
            gk.transpose(there, axes, out=out, variant="ragged")
            got = held.to_host()
            oracle.assert_same(got[begin : begin + want.size].reshape(want.shape), want, case)
            assert not got[:begin].any() and not got[begin + want.size :].any(), case


@pytest.fixture
def tiles_of_little():
    """Also where elements are as soon moved by themselves."""
    before = _core.limit("tiled_copy", 1 << 14)
    yield
    _core.limit("tiled_copy", before)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("step", [2, -1, 3])
def test_tiles_of_elements_that_do_not_lie_side_by_side(dtype, step):
    a = random((640, 767), DTYPES[dtype], 2)
    there = gk.to_device(a)
    small = DTYPES[dtype].itemsize < 4
    for variant in ("tiled_padded", "tiled_deep" if small else "vectorized"):
        for key in (np.s_[:, ::step], np.s_[::step], np.s_[::step, ::step]):
            want = np.ascontiguousarray(a[key].T)
            _core.profile_start()
            got = gk.transpose(there[key], variant=variant)
            assert _core.profile_stop()[-1]["variant"] == variant, key
            oracle.assert_same(got.to_host(), want, f"{key}")
            held = gk.to_device(np.zeros((want.shape[0], 2 * want.shape[1] + 1), want.dtype))
            gk.transpose(there[key], out=held[:, 1::2], variant=variant)
            oracle.assert_same(held.to_host()[:, 1::2], want, f"{key} into every second")
            assert not held.to_host()[:, ::2].any(), f"{key}: written between the elements"


@pytest.mark.parametrize(
    ("dtype", "shape", "axes"),
    [
        ("uint8", (9, 7, 6, 5, 3, 187), (2, 0, 3, 1, 5, 4)),
        ("float16", (5, 7, 6, 5, 3, 187), (2, 0, 3, 1, 5, 4)),
        ("float32", (6, 25, 7, 141), (2, 0, 3, 1)),
    ],
)
def test_elements_that_are_found_one_from_another(dtype, shape, axes):
    """A thread's vector of them; the last one is none that is whole."""
    held = random((*shape[:-1], shape[-1] + 3), DTYPES[dtype], 5)
    for begin in (0, 1, 3):
        key = np.s_[..., begin : begin + shape[-1]]
        _core.profile_start()
        got = gk.transpose(gk.to_device(held)[key], axes)
        assert _core.profile_stop()[-1]["variant"] == "packed"
        oracle.assert_same(got.to_host(), np.ascontiguousarray(held[key].transpose(axes)), begin)


def test_which_way_transposes_go():
    """By what moves more a second: tiles as far as they are filled, ragged ones, elements."""
    for dtype, shape, axes, variant in (
        ("float16", (32, 4096, 32), (0, 2, 1), "vectorized_wide"),  # a quarter of each is enough
        ("float16", (8, 4096, 32), (0, 2, 1), "vectorized"),  # but of few tiles these are small
        ("float16", (1128, 1313), (1, 0), "tiled_deep"),
        ("float16", (2128, 4313), (1, 0), "ragged"),  # begin anywhere, and are enough for a device
        ("float32", (8191, 1151), (1, 0), "ragged"),  # written rows begin between two sectors
        ("float32", (8192, 1151), (1, 0), "vectorized"),
        ("float16", (12_000, 13, 7), (2, 1, 0), "ragged"),  # lines of several axes fill theirs
        ("float16", (22, 61, 101), (2, 1, 0), "strided"),  # a few tiles leave a device idle
        ("uint8", (12_801, 1027), (1, 0), "ragged"),
        ("uint8", (340_007, 99), (1, 0), "ragged"),  # short rows of many, which fill less
        ("uint8", (76, 442_007), (1, 0), "worded"),
        ("float16", (14, 75_269), (1, 0), "strided"),  # what is woven of less is in the cache
        ("float16", (75_269, 14), (1, 0), "woven"),
        ("float32", (600, 18, 128), (0, 2, 1), "packed"),
        ("float32", (140, 9, 128), (0, 2, 1), "strided"),  # a thread would wait for each element
        ("float32", (956, 196, 8), (0, 2, 1), "strided"),  # a warp would read whole lines apart
        ("float16", (956, 196, 16), (0, 2, 1), "strided"),
        ("uint8", (956, 196, 32), (0, 2, 1), "strided"),
        ("float32", (8488, 7, 5, 2), (2, 1, 3, 0), "ragged"),  # half-filled tiles of little as well
        ("float32", (3, 53, 2, 717, 7), (4, 1, 0, 2, 3), "strided"),  # a sector is read late again
    ):
        _core.profile_start()
        gk.transpose(gk.empty(shape, dtype), axes)
        assert _core.profile_stop()[-1]["variant"] == variant, (dtype, shape)


def test_matrix_transpose():
    a = random((2, 3, 5, 4), DTYPES["float32"])
    want = np.ascontiguousarray(np.matrix_transpose(a))
    oracle.assert_same(gk.matrix_transpose(a), want, "host")
    oracle.assert_same(gk.matrix_transpose(gk.to_device(a)).to_host(), want, "device")
    oracle.assert_same(gk.matrix_transpose(a[0, 0]), np.ascontiguousarray(a[0, 0].T), "2-D")
    with pytest.raises(ValueError, match=r"matrix_transpose: .*\(4,\).*2"):
        gk.matrix_transpose(a[0, 0, 0])


def test_the_default_turns_words(tiles_of_little):
    ran = []
    cases = (
        ("int8", (640, 60)),
        ("int8", (12_801, 1027)),
        ("int8", (4001, 83)),
        ("int8", (640, 83)),
        ("float32", (6464, 64)),
        ("float32", (640, 64)),
        ("float32", (2005, 225)),
        ("float32", (64, 64)),
    )
    for dtype, shape in cases:
        _core.profile_start()
        gk.transpose(gk.empty(shape, dtype))
        ran += [record["variant"] for record in _core.profile_stop()]
    assert ran == [
        "vectorized",
        "ragged",
        "tiled_deep",
        "strided",
        "vectorized_wide",
        "tiled_padded",
        "vectorized",
        "strided",
    ]


@pytest.mark.parametrize(("dtype", "run"), [("float32", 4), ("int8", 16), ("float64", 2)])
def test_rows_of_short_runs_move_as_wide_elements(dtype, run):
    a = random((261, 140, run), DTYPES[dtype])
    _core.profile_start()
    got = gk.transpose(gk.to_device(a), (1, 0, 2))
    assert _core.profile_stop()[-1]["variant"] == "vectorized"
    oracle.assert_same(got.to_host(), np.ascontiguousarray(a.transpose(1, 0, 2)), f"runs of {run}")
    for part in (got[:, 1:], got[:, :, 1:], got[..., : run // 2]):
        want = np.ascontiguousarray(part.to_host().transpose(1, 0, 2))
        oracle.assert_same(gk.transpose(part, (1, 0, 2)).to_host(), want, "views")


def test_the_attribute():
    a = random((5, 9), DTYPES["float32"])
    device = gk.to_device(a)
    assert isinstance(device.T, gk.DeviceArray)
    assert device.T.shape == (9, 5)
    oracle.assert_same(device.T.to_host(), np.ascontiguousarray(a.T), ".T")
    oracle.assert_same(device.T.T.to_host(), a, ".T.T")


@given(row=st.sampled_from(ROWS), rows=st.integers(0, 100), columns=st.integers(0, 100))
def test_any_shape(row, rows, columns):
    variant, dtype = row
    a = random((rows, columns), DTYPES[dtype])
    moved_as_numpy(gk.transpose(a, variant=variant), a, f"{rows}x{columns}")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_a_large_matrix(variant, dtype):
    shape = (4095, 8193) if on_gpu() else (301, 517)
    a = np.resize(random(1 << 16, DTYPES[dtype]), shape)
    assert np.array_equal(gk.transpose(a, variant=variant), a.T)


def test_axes_one_by_one_are_told_how_to_be_given():
    a = np.ones((2, 3), np.float32)
    for x in (a, gk.to_device(a)):
        for axes in ((1, 0), (1,), (np.int64(0),)):
            with pytest.raises(TypeError, match=r"transpose: axes has .*, as axes=\(1, 0\), not"):
                gk.transpose(x, *axes)
