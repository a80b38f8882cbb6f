"""array[key] = value and fill: what is written where, in which dtype, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import gpukern as gk
import oracle
from arrays import DTYPES, LAYOUTS, DeviceView, on_device, places, random, settled
from gpukern import _core

KEYS = [
    *(0, -1, np.int64(1), slice(1, None), slice(None, None, -1), slice(5, 2), slice(-100, 100)),
    *((slice(None), 1), (Ellipsis, 3), (Ellipsis, None, slice(0, 4, 2)), (None, 1, Ellipsis, -2)),
    *((1, 2, 3, 4), (slice(3, 0, -2), Ellipsis, slice(4, None, -3)), Ellipsis, (), None),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_key_and_every_kind_of_value(dtype, balanced):
    a = random((2, 3, 4, 5), DTYPES[dtype])
    for key in KEYS:
        part = a[key].copy()
        new = random(part.shape, a.dtype, 5)
        one = a.dtype.type(1)
        for value, plain in (
            *((new, new), (gk.to_device(new), new), (new[None, None], new)),
            *((one, one), (True, one)),
        ):
            want, d = a.copy(), gk.to_device(a)
            want[key] = plain
            d[key] = value
            oracle.assert_same(d.to_host(), want, f"{key}")
    del d, value


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_of_every_layout(layout):
    new = LAYOUTS[layout](random((5, 7), DTYPES["float32"], 2))
    want = np.zeros((9, 7), np.float64)
    for value in (new, gk.to_device(new)):
        d = gk.to_device(np.zeros((9, 7)))
        d[2:7, ::-1] = value
        want[2:7, ::-1] = new
        oracle.assert_same(d.to_host(), want, layout)


def kind_holds(source, target):
    return np.can_cast(DTYPES[source], DTYPES[target], "same_kind")


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_dtypes_as_same_kind_has_it(source, target):
    if "bfloat16" in (source, target):
        half = "float16"
        allowed = kind_holds(source.replace("bfloat16", half), target.replace("bfloat16", half))
    else:
        allowed = kind_holds(source, target)
    new = np.array([0, 1, 1]).astype(DTYPES[source])
    for value in (new, gk.to_device(new), new[1], gk.to_device(new)[1]):
        d = gk.to_device(np.zeros(3, DTYPES[target]))
        if allowed:
            d[...] = value
            assert d.astype("int8").tolist() == ([0, 1, 1] if value.ndim else [1, 1, 1])
        else:
            with pytest.raises(TypeError, match=f"setitem: .*{source}.*{target}.*astype"):
                d[...] = value
            assert not d.to_host().any()


@given(st.data())
def test_overlapping_parts_of_one_array(data):
    shape = data.draw(npst.array_shapes(min_dims=1, max_dims=3, max_side=9))
    a = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    keys = npst.basic_indices(shape, allow_newaxis=False)
    to, source = data.draw(keys), data.draw(keys)
    to = (
        to
        if to is Ellipsis or (isinstance(to, tuple) and Ellipsis in to)
        else (*np.index_exp[to], ...)
    )
    d = gk.to_device(a)
    try:
        a[to] = a[source].copy()
    except ValueError:
        with pytest.raises(ValueError, match="does not broadcast"):
            d[to] = d[source]
    else:
        d[to] = d[source]
    oracle.assert_same(d.to_host(), a, f"{to} {source}")


def test_overlap_of_large_parts_and_of_dtypes():
    a = np.arange(100_003, dtype=np.float32)
    for to, source in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
        d, want = gk.to_device(a), a.copy()
        d[to] = d[source]
        want[to] = want[source].copy()
        oracle.assert_same(d.to_host(), want, "shifted")
    d = gk.to_device(np.arange(64, dtype=np.int32))
    place = dict(places((64,), DTYPES["int16"]))["aligned"]
    place.offset = 0
    d[...] = DeviceView(d, place)
    want = np.arange(64, dtype=np.int32)
    want[...] = want.view(np.int16)[:64].copy()
    oracle.assert_same(d.to_host(), want, "the bytes of the target in another dtype")


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_every_place_and_nothing_beside_the_target(dtype):
    """Misaligned ones too, which come from other libraries; into arrays of the dtype and wider."""
    for case, place in places((5, 7), DTYPES[dtype]):
        new = random((5, 7), DTYPES[dtype], 9)
        value = on_device(place, new)
        for target in (dtype, "float64"):
            want = np.full((9, 31), 3).astype(DTYPES[target])
            d = gk.to_device(want)
            want[2:7, 3:24:3] = new
            d[2:7, 3:24:3] = value.view
            oracle.assert_same(d.to_host(), want, f"{case} to {target}")


def test_in_place_through_an_index():
    d = gk.to_device(np.arange(6, dtype=np.float32))
    whole = d
    d[1:] += d[:-1]
    assert whole.tolist() == [0, 1, 3, 5, 7, 9]
    d[::2] *= 2
    d[0] -= 5
    assert whole.tolist() == [-5, 1, 6, 5, 14, 9]


def test_fill():
    d = gk.empty((3, 4), "float16")
    assert d.fill(2) is None
    assert d.tolist() == [[2] * 4] * 3
    d.T[1:].fill(gk.to_device(np.array([7, 8, 9], np.int8)), stream=None)
    assert d.tolist() == [[2, 7, 7, 7], [2, 8, 8, 8], [2, 9, 9, 9]]
    gk.empty((0, 3)).fill(1)


def test_what_is_wrong_is_said_and_nothing_written():
    d = gk.to_device(np.array([1, 2, 3], np.int32))
    with pytest.raises(ValueError, match=r"value of shape \(2,\) does not broadcast.* \(3,\)"):
        d[...] = np.ones(2, np.int32)
    with pytest.raises(ValueError, match="does not broadcast"):
        d[:0] = np.ones(2, np.int32)
    with pytest.raises(TypeError, match=r"setitem: value is .*0\.5 beside an array of int32"):
        d[0] = 0.5
    with pytest.raises(OverflowError, match="setitem: "):
        d[0] = 2**31
    for other in ("x", None, [1, 2, 3]):
        with pytest.raises(TypeError, match="setitem: value has to be a NumPy array"):
            d[...] = other
    with pytest.raises(IndexError):
        d[3] = 1
    with pytest.raises(IndexError, match="only integers"):
        d[d > 1] = 0
    with pytest.raises(TypeError, match="cannot be deleted"):
        del d[0]
    assert d.tolist() == [1, 2, 3]


def test_a_failure_writes_nothing_and_leaves_nothing():
    a = np.arange(1000, dtype=np.float64)
    d = gk.to_device(np.zeros(2000, np.float32))
    before = settled()
    for number in range(1, 40):
        _core.fail_call(number)
        try:
            d[1::2] = a
        except (MemoryError, gk.CudaError):
            assert _core.fail_call(0)
            assert not d.to_host().any()
            assert settled() == before
        else:
            break
    assert not _core.fail_call(0)
    assert number > 3
    assert d[1::2].tolist() == a.tolist()


@pytest.mark.parametrize("begin", [0, 1, 16])
@pytest.mark.parametrize(
    "length", [1, 15, 16, 17, 8191, 8192, 8193, 1 << 16, (1 << 16) + 1, 555_555, (1 << 20) + 15]
)
def test_runs_that_vectors_copy(length, begin):
    """Of one block and of more, what is behind the last vector, and what does not lie on one."""
    copy_bytes(length, begin, 32)


@pytest.mark.parametrize("length", [(1 << 16) + 1, (1 << 16) + 30, 99_999])
@pytest.mark.parametrize("begin", range(17))
def test_runs_that_begin_anywhere(length, begin):
    """Every place within a vector of where it is read, and of where it is written."""
    for to in range(32, 49):
        copy_bytes(length, begin, to)


def copy_bytes(length, begin, to):
    """From one place to another one, with a look at what lies around it."""
    a = random(begin + length, DTYPES["uint8"], length)
    there, held = gk.to_device(a)[begin:], gk.to_device(np.zeros(to + length + 32, np.uint8))
    held[to : to + length] = there
    got = held.to_host()
    oracle.assert_same(got[to : to + length], a[begin:], "copied")
    assert not got[:to].any() and not got[to + length :].any(), "written around it"
    oracle.assert_same(there.copy().to_host(), a[begin:], "a copy")


def test_who_copies_runs():
    """Vectors; of what is no whole ones elements where it is little."""
    for length, key, variant in (
        (16, np.s_[:], "run"),
        (15, np.s_[:], "strided"),
        ((1 << 16) + 1, np.s_[:], "run"),
        (1 << 19, np.s_[:], "run"),
        ((1 << 19) + 16, np.s_[16:], "run"),
        ((1 << 16) + 1, np.s_[1:], "strided"),
        ((1 << 16) + 2, np.s_[1:], "shifted_run"),
        (56 << 20, np.s_[:], "run"),
        ((56 << 20) + 1, np.s_[:], "run"),
    ):
        there = gk.empty((length,), "uint8")
        out = gk.empty(there[key].shape, "uint8")
        _core.profile_start()
        gk.transpose(there[key], (0,), out=out)
        [record] = _core.profile_stop()
        assert record["variant"] == variant, (length, key)
