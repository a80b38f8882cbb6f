"""Rows that are no multiples of anything, and arrays that lie each in a way of its own, with
canaries round what is written."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import (
    DTYPES,
    ELEMENTWISE,
    dtypes_of,
    generator,
    limited,
    on_device,
    places,
    ran,
    random,
    result_dtype,
    sanitized,
    variants,
)
from gpukern import _core

# Of one, two and three operands, and with a result of another size than its operands.
OPERATIONS = ("abs", "add", "less", "scale_add")
STRIDED = [(op, *row) for op in OPERATIONS for row in variants(op) if row[0].startswith("strided")]
# Around sectors of memory, warps, vectors and what the threads of a warp take of a row.
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 131)
LENGTHS += (255, 256, 257, 511, 513, 517)
LENGTHS = LENGTHS[::5] if sanitized() else LENGTHS


def mixed(op, variant, shape, dtype, seed):
    """The operation with each array at a random place, beside the same in plain arrays."""
    rng, kind, to = generator(seed), DTYPES[dtype], result_dtype(op, DTYPES[dtype])
    spots = list(places(shape, kind))
    picked = [spots[rng.integers(len(spots))] for _ in range(ELEMENTWISE[op])]
    case, at = list(places(shape, to))[rng.integers(len(list(places(shape, to))))]
    values = [random(shape, kind, seed + k) for k in range(ELEMENTWISE[op])]
    there = [on_device(place, a) for (_, place), a in zip(picked, values, strict=True)]
    out = on_device(at)
    getattr(gk, op)(*(one.view for one in there), out=out.view, variant=variant)
    label = f"{shape}: {[name for name, _ in picked]} to {case}"
    assert out.holds(np.asarray(getattr(gk, op)(*values))), label
    assert all(one.holds(a) for one, a in zip(there, values, strict=True)), label


@pytest.mark.costly(2)
@pytest.mark.parametrize(("op", "variant", "dtype"), STRIDED)
def test_each_array_in_a_place_of_its_own(op, variant, dtype):
    for seed in range(4 if sanitized() else 16):
        mixed(op, variant, ((3, 517), (7, 131), (2, 3, 65))[seed % 3], dtype, seed)


@pytest.mark.costly(2)
@pytest.mark.parametrize(("op", "variant", "dtype"), STRIDED)
def test_rows_of_every_length(op, variant, dtype):
    for length in LENGTHS:
        mixed(op, variant, (5, length), dtype, length)


@pytest.mark.parametrize("dtype", dtypes_of("scale_add"))
def test_columns_from_one_on_and_every_second_one(dtype):
    """As they are sliced of device arrays, with rows, columns and numbers that are broadcast."""
    kind = DTYPES[dtype]
    a, row, column = (random(shape, kind, 5) for shape in ((6, 288), (1, 140), (6, 1)))
    there, rows, columns = map(gk.to_device, (a, row, column))
    number = kind.type(1)
    outs = [gk.empty((6, pitch), dtype)[:, 16:156] for pitch in (288, 281)]
    for view in (np.s_[:, 1:141], np.s_[:, :280:2], np.s_[:, 140:0:-1], np.s_[:, :140]):
        x, plain = there[view], a[view]
        for operands, beside in (
            ((x, rows, number), (plain, row, number)),
            ((columns, x, x), (column, plain, plain)),
            ((x, number, columns), (plain, number, column)),
        ):
            want = np.asarray(gk.scale_add(*(np.broadcast_to(b, (6, 140)) for b in beside)))
            oracle.assert_same(gk.scale_add(*operands).to_host(), want, f"{view}")
            for out in outs:
                gk.scale_add(*operands, out=out)
                oracle.assert_same(out.to_host(), want, f"{view}, out")


@pytest.mark.parametrize("dtype", dtypes_of("add"))
def test_copies_and_conversions_of_rows_of_every_length(dtype):
    for length in LENGTHS:
        a = random((5, 2 * length + 3), DTYPES[dtype], length)
        there = gk.to_device(a)
        for part in (
            np.s_[:, 1 : length + 1],
            np.s_[:, : 2 * length : 2],
            np.s_[::-2, length:0:-1],
        ):
            oracle.assert_same(there[part].copy().to_host(), a[part].copy(), f"{part}")
            to = gk.to_device(np.zeros_like(a))
            to[part] = there[part]
            want = np.zeros_like(a)
            want[part] = a[part]
            oracle.assert_same(to.to_host(), want, f"{part} into the same")
            to = gk.to_device(np.zeros(a.shape, np.float64))
            to[part] = there[part]
            want = np.zeros(a.shape, np.float64)
            want[part] = a[part].astype(np.float64)
            oracle.assert_same(to.to_host(), want, f"{part} into float64")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
@pytest.mark.parametrize("length", [17, 61, 140, 141])
def test_many_rows_that_are_short(length, dtype):
    """Of words, a thread an element up to so many in a row, and beyond these shared."""
    whole = random((400_000 // length + 2, length + 2), DTYPES[dtype], 1)
    row = random((length,), DTYPES[dtype], 2)
    cut = gk.to_device(whole)[:, 1:-1]
    with np.errstate(over="ignore"):
        oracle.assert_same(gk.add(cut, gk.to_device(row)).to_host(), whole[:, 1:-1] + row, "a row")
        got = gk.to_device(np.zeros_like(whole))
        gk.add(cut, cut, out=got[:, 2:])
        want = np.zeros_like(whole)
        want[:, 2:] = whole[:, 1:-1] * 2
        oracle.assert_same(got.to_host(), want, "into rows that are cut")


# Elements: so many go one by one, and from so many on by vectors that are put together.
SINGLE = {"uint8": 500_000, "float16": 500_000, "bfloat16": 500_001, "float32": 400_003}
TOGETHER = {"uint8": 1 << 21, "float16": 1 << 21, "bfloat16": 1 << 21, "float32": 3 << 20}


@pytest.mark.parametrize("dtype", TOGETHER)
def test_operands_between_aligned_vectors(dtype):
    """Nothing behind the end of an array is read: it is that of its memory as well."""
    for count in (SINGLE[dtype], TOGETHER[dtype] + 1, TOGETHER[dtype] + 16):
        whole = random((count + 3,), DTYPES[dtype], 1)
        b = random((count,), DTYPES[dtype], 2)
        x, y = gk.to_device(whole)[3:], gk.to_device(b)
        with np.errstate(over="ignore"):
            oracle.assert_same(gk.add(x, y).to_host(), whole[3:] + b, f"{count}, the first")
            oracle.assert_same(gk.add(y, x).to_host(), b + whole[3:], f"{count}, the second")
            oracle.assert_same(gk.maximum(x, 1).to_host(), np.maximum(whole[3:], 1), "a number")
        _core.profile_start()
        gk.add(x, y)
        variant = _core.profile_stop()[-1]["variant"]
        assert variant == "strided" if count == SINGLE[dtype] else variant.startswith("strided_")


def interleaved(shape, dtype, seed):
    """An array of as many axes that no two of can be made one: every second element of each."""
    whole = random(tuple(2 * length for length in shape), DTYPES[dtype], seed)
    steps = (slice(None, None, 2),) * len(shape)
    return gk.to_device(whole)[steps], whole[steps]


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 2, 3, 2, 5), (2, 3, 2, 3, 2, 3), (2, 2, 2, 2, 2, 2, 37)])
def test_arrays_of_many_axes(shape, dtype):
    """More of them than kernels have at hand, in short rows and in longer ones."""
    x, a = interleaved(shape, dtype, 1)
    y, b = interleaved(shape, dtype, 2)
    last = (slice(None),) * (len(shape) - 1) + (slice(None, 1),)
    for case, right, beside in (("each", y, b), ("one for a row", y[last], b[last])):
        with np.errstate(over="ignore"):
            oracle.assert_same(gk.add(x, right).to_host(), a + beside, case)
    oracle.assert_same(x.copy().to_host(), a.copy(), "copied")
    oracle.assert_same(x.astype("float64").to_host(), a.astype(np.float64), "converted")
    turned = gk.transpose(x, (*range(1, len(shape)), 0))
    oracle.assert_same(turned.to_host(), np.ascontiguousarray(np.moveaxis(a, 0, -1)), "turned")
    out, into = interleaved(shape, dtype, 3)
    out[...] = y
    oracle.assert_same(out.to_host(), b.copy(), f"written into {into.strides}")


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("shortest", [2, 9])
def test_many_elements_of_many_axes(shortest, dtype):
    """One axis more than a thread finds elements along: by several launches, or otherwise."""
    held = random((13, shortest, 11, 9, 17, 19), DTYPES[dtype], 4)
    row = random((9, 1, 19, 1, 13, 1), DTYPES[dtype], 5)
    a, there = held.transpose(3, 4, 5, 1, 0, 2), gk.to_device(held).transpose(3, 4, 5, 1, 0, 2)
    out = gk.to_device(np.zeros((*a.shape[:-1], 12), DTYPES[dtype]))
    with np.errstate(over="ignore"):
        want = a + row
    oracle.assert_same(gk.add(there, gk.to_device(row)).to_host(), want, "a row")
    gk.add(there, row.flat[0], out=out[..., :-1])
    assert not out.to_host()[..., -1].any()
    with np.errstate(over="ignore"):
        oracle.assert_same(out.to_host()[..., :-1], a + row.flat[0], "a number, into a view")


def cut_out(shape, dtype, chance, seed, broadcast):
    """An operand that is part of an array, a single element along some axes; the same in NumPy."""
    cut = [chance.integers(0, 3, 2) for _ in shape]
    held = [1 if broadcast and chance.random() < 0.4 else n for n in shape]
    whole = random(tuple(n + int(c.sum()) for n, c in zip(held, cut, strict=True)), dtype, seed)
    part = tuple(slice(c[0], c[0] + n) for n, c in zip(held, cut, strict=True))
    return gk.to_device(whole)[part], whole[part]


WIDE = [(op, *row) for op, *row in STRIDED if row[0] != "strided"]
# Of axes that end several times in a vector, once, and seldom; the last two are no whole vectors.
ENDING = (
    (5, 3, 2, 3, 2, 3),
    (41, 2, 9),
    (7, 5, 15),
    (3, 11, 17),
    (4, 3, 31),
    (3, 2, 67),
    (2, 3, 301),
)
ENDING += ((67,), (3, 7, 29, 3))


@pytest.mark.parametrize(("op", "variant", "dtype"), WIDE)
def test_rows_that_end_within_vectors(op, variant, dtype):
    """Vectors along a result that is one row, of operands whose own rows end anywhere."""
    for seed, shape in enumerate(ENDING[::3] if sanitized() else ENDING * 2):
        chance, kind = generator(seed), DTYPES[dtype]
        made = [cut_out(shape, kind, chance, seed + k, k > 0) for k in range(ELEMENTWISE[op])]
        values = [np.ascontiguousarray(np.broadcast_to(a, shape)) for _, a in made]
        out = on_device(next(iter(places(shape, result_dtype(op, kind))))[1])
        call = partial(getattr(gk, op), *(x for x, _ in made), out=out.view, variant=variant)
        assert ran(call)[1] == [variant]
        assert out.holds(np.asarray(getattr(gk, op)(*values))), f"{shape}, {seed}"


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
@pytest.mark.parametrize(
    "shape", [(23, 3, 7, 11, 233), (9973, 5, 3, 11), (130_003, 13), (2, 799_999)]
)
def test_many_elements_beside_rows_that_end_within_vectors(shape, dtype):
    chance, kind = generator(len(shape)), DTYPES[dtype]
    a = random(shape, kind, 1)
    for seed in range(3):
        x, b = cut_out(shape, kind, chance, seed, broadcast=True)
        with np.errstate(over="ignore"):
            oracle.assert_same(gk.add(gk.to_device(a), x).to_host(), a + b, f"{b.shape}")


# Times, and elements: parts of whole blocks, of one element less or more, and of less than one.
REPEATED = ((2, 65_536), (3, 65_535), (2, 65_537), (7, 131_071), (2, 3, 70_001), (5, 2, 66_000))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
@pytest.mark.parametrize("shape", REPEATED)
def test_long_rows_that_are_read_again(shape, dtype):
    """A part of them for each time, then the next part."""
    kind = DTYPES[dtype]
    a, row = random(shape, kind, 1), random((*shape[1:-1], 1, shape[-1])[-2:], kind, 2)
    b = random((shape[0], *[1] * (len(shape) - 2), shape[-1]), kind, 3)
    with limited(repeated_row=1 << 12), np.errstate(over="ignore"):
        for beside in (row, b, a[..., :1, :]):
            got = gk.add(gk.to_device(a), gk.to_device(beside)).to_host()
            oracle.assert_same(got, a + beside, f"{beside.shape}")


def lying(name, shape, dtype, seed):
    """An operand of three axes, as an array on the device or a number, and the same in NumPy."""
    kind, (deep, rows, length) = DTYPES[dtype], shape
    held, cut, order = {
        "as it is": (shape, (), (0, 1, 2)),
        "a slice of the middle": ((deep, rows + 3, length), np.s_[:, 2 : rows + 2], (0, 1, 2)),
        "columns from one on": ((deep, rows, length + 3), np.s_[:, :, 1 : length + 1], (0, 1, 2)),
        "every second": ((deep, rows, 2 * length), np.s_[:, :, ::2], (0, 1, 2)),
        "backwards": (shape, np.s_[::-1, ::-1, ::-1], (0, 1, 2)),
        "upside down": (shape, np.s_[:, ::-1], (0, 1, 2)),
        "turned": ((length, deep, rows), (), (1, 2, 0)),
        "a row for all": ((1, 1, length), (), (0, 1, 2)),
        "a matrix for all": ((1, rows, length), (), (0, 1, 2)),
        "one for a row": ((deep, rows, 1), (), (0, 1, 2)),
        "one for a matrix": ((deep, 1, 1), (), (0, 1, 2)),
        "a number": ((), (), ()),
    }[name]
    whole = random(held, kind, seed)
    if not held:
        return whole[()], whole
    return gk.to_device(whole)[cut].transpose(order), whole[cut].transpose(order)


WHOLE = ("as it is", "a slice of the middle", "columns from one on", "every second", "backwards")
WHOLE += ("upside down", "turned")
LYING = (
    *WHOLE,
    "a row for all",
    "a matrix for all",
    "one for a row",
    "one for a matrix",
    "a number",
)
# Of whole vectors of 16 bytes, of whole words, and of neither; more than 2^17 elements in all, so
# that a thread takes several.
ROWS = (32, 12, 18, 29, 3)
SHARE = 45_000


@pytest.mark.costly(4)
@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "float64", "bool"])
@pytest.mark.parametrize("name", LYING)
def test_rows_of_vectors_words_and_elements(name, dtype):
    """An operand beside others, in one of three operations in turn."""
    for seed, length in enumerate(ROWS[::2] if sanitized() else ROWS):
        shape = (3, SHARE // length, length)
        x, a = lying(name, shape, dtype, seed)
        y, b = lying(WHOLE[(seed + len(name)) % len(WHOLE)], shape, dtype, seed + 50)
        both = [np.ascontiguousarray(np.broadcast_to(c, shape)) for c in (a, b)]
        op, given, beside = (
            ("add", (x, y), both),
            ("less", (y, x), both[::-1]),
            ("scale_add", (y, x, x), (both[1], both[0], both[0])),
        )[(seed + LYING.index(name) + len(dtype)) % 3]
        want = np.asarray(getattr(gk, op)(*beside))
        case = f"{op} of {shape}"
        out = on_device(next(iter(places(shape, want.dtype)))[1])
        getattr(gk, op)(*given, out=out.view)
        assert out.holds(want), case
        wider = gk.to_device(np.zeros((3, SHARE // length, length + 16), want.dtype))
        getattr(gk, op)(*given, out=wider[:, :, :length])
        oracle.assert_same(wider[:, :, :length].to_host(), want, f"{case}, in wider rows")
        assert not wider[:, :, length:].to_host().any(), case


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_rows_of_vectors_in_place(dtype):
    for length in ROWS:
        shape = (3, SHARE // length, length)
        for name in ("a slice of the middle", "upside down", "one for a row"):
            x, a = lying("as it is", shape, dtype, 1)
            y, b = lying(name, shape, dtype, 2)
            gk.add(x, y, out=x)
            with np.errstate(over="ignore"):
                oracle.assert_same(x.to_host(), a + b, f"{shape}, {name}")


def test_large_operands_whose_sectors_would_be_read_again_and_again():
    """Neighbours in memory are far from one another: a copy in order comes first."""
    a = random((65_600, 64), np.dtype(np.float64), 1)
    got = gk.add(gk.to_device(a).transpose((1, 0)), 1)
    oracle.assert_same(got.to_host(), a.T + 1, "turned")


@pytest.mark.costly(2)
@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32"])
@pytest.mark.parametrize(
    ("held", "order"),
    [((1031, 1090), (1, 0)), ((41, 77, 353), (2, 0, 1)), ((9, 1300, 97), (2, 1, 0))],
)
def test_large_operands_that_lie_in_another_order(dtype, held, order):
    """They are put in the order of the result first, whatever else the call takes."""
    a, kind = random(held, DTYPES[dtype], 5), DTYPES[dtype]
    there = gk.to_device(a)
    turned, want = there.transpose(order), a.transpose(order)
    other, row = random(want.shape, kind, 6), random(want.shape[-1:], kind, 7)
    on, beside = gk.to_device(other), gk.to_device(row)
    oracle.assert_same(gk.add(turned, on).to_host(), np.asarray(gk.add(want.copy(), other)), "left")
    oracle.assert_same(gk.subtract(beside, turned).to_host(), row - want, "right, beside a row")
    oracle.assert_same(gk.multiply(turned, 2).to_host(), np.asarray(want * kind.type(2)), "number")
    oracle.assert_same(gk.less(turned, turned).to_host(), np.zeros(want.shape, bool), "both")
    out = gk.zeros(held, dtype)
    gk.maximum(turned, on, out=out.transpose(order))
    greater = np.asarray(gk.maximum(want.copy(), other))
    oracle.assert_same(out.transpose(order).to_host(), greater, "a turned result")
    oracle.assert_same(there.to_host(), a, "the operand was changed")
