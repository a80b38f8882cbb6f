"""The bits of a sum: what the values and their number alone decide, here worked out by NumPy,
addition by addition, whatever the device, the place, the alignment, the chunks and the order of
threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, REDUCTIONS, Array, on_device, on_gpu, places, random
from gpukern import _core
from waiting import join_all

THREADS, LOADS, WARP = 256, 4, 32
COLUMN_THREADS, COLUMN_LOADS = 128, 8
EACH, EACH_OF_MANY, MANY, LITTLE_PACKED = 8, 16, 4 << 20, 1 << 19
COUNTS = (1, 257, 4099, 16_384, 16_385, 70_001, 300_007)


# --- the model --------------------------------------------------------------------------------

Pair = tuple[Array, Array]


def two_sum(a: Array, b: Array) -> Pair:
    """The rounded sum and what it has lost."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def take(state: Pair, x: Array) -> Pair:
    high, error = two_sum(state[0], x)
    return high, state[1] + error


def join(state: Pair, other: Pair) -> Pair:
    high, error = two_sum(state[0], other[0])
    return high, (state[1] + other[1]) + error


def plain(state: Pair, x: Array) -> Pair:
    return state[0] + x, state[1]


def plain_join(state: Pair, other: Pair) -> Pair:
    return state[0] + other[0], state[1]


def join_block(state: Pair, joined: Any) -> Pair:
    """The last axis has a value a thread: lanes by halves, then the warps' values by halves."""
    warps = tuple(part.reshape(*part.shape[:-1], THREADS // WARP, WARP) for part in state)
    for _ in range(2):
        width = warps[0].shape[-1]
        while width > 1:
            width //= 2
            left, right = (tuple(p[..., i : i + width] for p in warps) for i in (0, width))
            warps = joined(left, right)
        warps = tuple(part[..., 0] for part in warps)
    return warps


def model(a: Array, compensated: bool) -> Any:
    """The sum of a vector, in the dtype of its accumulator, as the kernels add it up."""
    taken, joined = (take, join) if compensated else (plain, plain_join)
    width = 16 // a.dtype.itemsize
    segment = oracle.segment(a.size, a.dtype.itemsize)
    segments = -(-a.size // segment)
    carried = oracle.accumulator(a.dtype)
    padded = np.zeros(segments * segment, carried)
    padded[: a.size] = a
    # Of each segment a thread takes one vector of every 256, four at a time.
    vectors = padded.reshape(segments, segment // (THREADS * width), THREADS, width)
    state = (np.zeros((segments, THREADS), carried),) * 2
    for step in range(vectors.shape[1]):
        for element in range(width):
            state = taken(state, vectors[:, step, :, element])
    partials = join_block(state, joined)
    if segments > 1:
        rounds = -(-segments // THREADS)
        state = (np.zeros(THREADS, carried),) * 2
        for number in range(rounds):
            some = tuple(part[number * THREADS : (number + 1) * THREADS] for part in partials)
            count = some[0].size
            merged = joined(tuple(part[:count] for part in state), some)
            state = tuple(
                np.concatenate([new, old[count:]]) for new, old in zip(merged, state, strict=True)
            )
        partials = tuple(part[None] for part in join_block(state, joined))
    high, low = (part[0] for part in partials)
    return high + low if compensated else high


def by_lanes(a: Array, lanes: int, compensated: bool) -> Any:
    """The sums of rows: lane k takes every `lanes`-th element from the k-th on."""
    taken, joined = (take, join) if compensated else (plain, plain_join)
    rounds = -(-a.shape[1] // lanes)
    padded = np.zeros((len(a), rounds * lanes), oracle.accumulator(a.dtype))
    padded[:, : a.shape[1]] = a
    state = (np.zeros((len(a), lanes), padded.dtype),) * 2
    for number in range(rounds):
        state = taken(state, padded[:, number * lanes : (number + 1) * lanes])
    while lanes > 1:
        lanes //= 2
        state = joined(*(tuple(p[:, i : i + lanes] for p in state) for i in (0, lanes)))
    high, low = (part[:, 0] for part in state)
    return high + low if compensated else high


def up_to(wanted: int, most: int) -> int:
    """The least power of two that is no less than what is wanted, or than the most."""
    lanes = 1
    while lanes < min(wanted, most):
        lanes *= 2
    return lanes


def lanes_for(length: int, each: int) -> int:
    return up_to(-(-length // each), THREADS)


def little(a: Array, compensated: bool) -> Any:
    """The sums of a little matrix's rows."""
    each = EACH if a.size <= LITTLE_PACKED else EACH_OF_MANY
    return by_lanes(a, lanes_for(a.shape[1], each), compensated)


def whole(a: Array, compensated: bool) -> Any:
    """The sum of a vector: as that of a little row where a block loads all of it at once."""
    is_little = a.size <= THREADS * LOADS
    if not is_little:
        return model(a, compensated)
    return by_lanes(a[None], lanes_for(a.size, LOADS), compensated)[0]


def expected(a: Array) -> Array:
    """The default sum, bit for bit."""
    compensated = a.dtype in (DTYPES["float32"], DTYPES["float64"])
    return np.asarray(whole(a, compensated)).astype(a.dtype)


FLOATS = ("float32", "float64", "float16", "bfloat16")


def troublesome(count: int, dtype: str) -> Array:
    """Values of all magnitudes that half precision has, so that every order gives other bits."""
    a = random(count, DTYPES["float64"], count) * np.exp2(random(count, DTYPES["float64"], 1) * 3)
    return a.clip(-6e4, 6e4).astype(DTYPES[dtype])


def hexadecimal(value: Any) -> str:
    return np.asarray(value).tobytes().hex()


# --- the same bits ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [*COUNTS, (1 << 24) + 5] if on_gpu() else COUNTS)
def test_every_way_gives_the_bits_of_the_model(dtype, count):
    a = troublesome(count, dtype)
    want = hexadecimal(expected(a))
    device = gk.to_device(a)
    wide = np.zeros(2 * count, a.dtype)
    wide[::2] = a
    assert hexadecimal(gk.sum(a)) == want, "host"
    assert hexadecimal(gk.sum(device).to_host()) == want, "device"
    with gk.limits(mapped_call=0):
        assert hexadecimal(gk.sum(a)) == want, "streamed"
        assert hexadecimal(gk.sum(wide[::2])) == want, "strided"
        assert hexadecimal(gk.sum(a.reshape(1, -1), 1)) == want, "a row"
    for case, place in places(a.shape, a.dtype):
        assert hexadecimal(gk.sum(on_device(place, a).view).to_host()) == want, case


@pytest.mark.parametrize("dtype", ["float32"])
def test_the_plain_sum_has_its_model_too(dtype):
    for count in COUNTS:
        a = troublesome(count, dtype)
        got = gk.sum(gk.to_device(a), variant="single_launch").to_host()
        assert hexadecimal(got) == hexadecimal(whole(a, compensated=False)), count


LITTLE = ((2, 1), (7, 3), (1000, 5), (300, 38), (3, 257), (15, 512), (1700, 309))
# What an order changes shows in plain sums; compensated ones are right in nearly all of them.
VARIANTS = [*((name, None) for name in FLOATS), ("float32", "single_launch")]


def model_of(rows: Array, order: Any, variant: str | None, *rest: Any) -> str:
    """The sums as `order` adds them up, in hexadecimal digits."""
    compensated = rows.dtype in (DTYPES["float32"], DTYPES["float64"]) and variant is None
    return hexadecimal(np.asarray(order(rows, *rest, compensated)).astype(rows.dtype))


@pytest.mark.parametrize(("dtype", "variant"), VARIANTS)
@pytest.mark.parametrize("shape", LITTLE)
def test_little_sums_have_their_model(dtype, variant, shape):
    rows = troublesome(shape[0] * shape[1], dtype).reshape(shape)
    want = model_of(rows, little, variant)
    columns = np.ascontiguousarray(rows.T)
    wide = np.zeros((shape[0], 2 * shape[1]), rows.dtype)
    wide[:, ::2] = rows
    cases = {
        "columns": (columns, 0),
        "rows turned": (gk.to_device(rows).T, 0),
        "rows": (rows, 1),
        "columns turned": (gk.to_device(columns).T, 1),
        "elements apart": (gk.to_device(wide)[:, ::2], 1),
        "two axes": (rows.reshape(shape[0], 1, shape[1], 1), (1, 2, 3)),
    }
    if dtype == "float64" and rows.size > 1 << 17:  # rows of these are read by vectors
        cases = dict(list(cases.items())[:2])
    for case, (a, axis) in cases.items():
        there = a if isinstance(a, gk.DeviceArray) else gk.to_device(a)
        assert hexadecimal(gk.sum(there, axis, variant=variant).to_host()) == want, case


@pytest.mark.parametrize(("dtype", "variant"), VARIANTS)
@pytest.mark.parametrize("shape", [(90, 40, 70), (300, 3, 31), (6, 800, 3), (40, 17, 700)])
def test_sums_between_others_have_that_model_too(dtype, variant, shape):
    a = troublesome(int(np.prod(shape)), dtype).reshape(shape)
    between = np.moveaxis(a, 1, -1).reshape(-1, shape[1])
    wide = np.zeros((shape[0], 2 * shape[1], shape[2]), a.dtype)
    wide[:, ::2] = a
    turned = gk.to_device(np.ascontiguousarray(a.T)).T
    for x in (gk.to_device(a), gk.to_device(wide)[:, ::2], turned):
        got = gk.sum(x, 1, variant=variant).to_host()
        assert hexadecimal(got) == model_of(between, little, variant)
    around = np.moveaxis(a, 1, 0).reshape(shape[1], -1)
    if around.shape[1] <= 8192:
        for x in (gk.to_device(a), turned):
            got = gk.sum(x, (0, 2), variant=variant).to_host()
            assert hexadecimal(got) == model_of(around, little, variant)


@pytest.mark.parametrize(("dtype", "variant"), VARIANTS)
@pytest.mark.parametrize("shape", [(30_001, 37), (391_200, 11)])
def test_many_ragged_rows_have_that_model_too(dtype, variant, shape):
    """Beyond one million elements, and four; rows that are whole vectors are read as such."""
    if dtype == "float64" and shape[1] == 37:
        shape = (28_001, shape[1])
    rows = troublesome(shape[0] * shape[1], dtype).reshape(shape)
    wide = np.zeros((shape[0], 2 * shape[1]), rows.dtype)
    wide[:, ::2] = rows
    columns = gk.to_device(np.ascontiguousarray(rows.T))
    want = model_of(rows, little, variant)
    for x in (gk.to_device(rows), gk.to_device(wide)[:, ::2], columns.T, rows):
        assert hexadecimal(np.asarray(gk.sum(x, 1, variant=variant))) == want
    if shape[0] % 600 == 0:
        turned = rows.reshape(600, -1, shape[1]).transpose(1, 0, 2)
        there = gk.to_device(np.ascontiguousarray(turned)).transpose(1, 0, 2)
        assert hexadecimal(gk.sum(there, 2, variant=variant).to_host()) == want


@pytest.mark.parametrize(
    ("dtype", "shape"), [("float16", (740_001, 35)), ("float32", (570_001, 23))]
)
def test_ragged_rows_of_five_and_six_vectors_have_the_same_bits(dtype, shape):
    """Of more than the caches hold: in order, with gaps, turned, and in chunks."""
    a = random(shape, DTYPES[dtype], 3)
    a = (a * np.exp2(2 * random(shape, DTYPES["float32"], 4))).astype(a.dtype)
    wide = np.zeros((shape[0], shape[1] + 5), a.dtype)
    wide[:, :-5] = a
    columns = gk.to_device(np.ascontiguousarray(a.T))
    want = np.asarray(gk.sum(gk.to_device(a), 1, dtype="float32"))
    oracle.assert_along("sum", a, 1, want)
    for x in (gk.to_device(wide)[:, :-5], columns.T, a):
        oracle.assert_same(np.asarray(gk.sum(x, 1, dtype="float32")), want, str(shape))


SHORT = ((3, 350_003), (64, 16_400), (400, 5, 528), (30_000, 4, 9), (13, 20, 4100))


@pytest.mark.costly(2)
@pytest.mark.parametrize(("dtype", "variant"), VARIANTS)
@pytest.mark.parametrize("shape", SHORT)
def test_short_columns_are_added_from_their_top(dtype, variant, shape):
    """By whichever kernel: of aligned rows and others, of rows apart, and turned."""
    a = troublesome(int(np.prod(shape)), dtype).reshape(shape)
    axis = a.ndim - 2
    want = model_of(np.moveaxis(a, axis, -1).reshape(-1, shape[axis]), by_lanes, variant, 1)
    ragged = np.zeros((*shape[:-1], shape[-1] + 3), a.dtype)
    ragged[..., 1:-2] = a
    turned = gk.to_device(np.ascontiguousarray(a.T)).T
    for case, there in {
        "as it is": gk.to_device(a),
        "ragged": gk.to_device(ragged)[..., 1:-2],
        "backwards": gk.to_device(np.ascontiguousarray(a[..., ::-1]))[..., ::-1],
        "turned": turned,
        "host": a,
    }.items():
        got = gk.sum(there, axis, variant=variant)
        assert hexadecimal(np.asarray(got)) == want, case


def test_short_columns_by_vectors_are_added_from_their_top():
    """Of halves that are aligned, and many."""
    a = troublesome(9 * 400_000, "float16").reshape(9, 400_000)
    want = model_of(np.ascontiguousarray(a.T), by_lanes, None, 1)
    assert hexadecimal(gk.sum(gk.to_device(a), 0).to_host()) == want


def of_vectors(a: Array, lanes: int, compensated: bool) -> Any:
    """The sums of rows: lane k takes every `lanes`-th vector from the k-th on."""
    taken, joined = (take, join) if compensated else (plain, plain_join)
    width = 16 // a.dtype.itemsize
    rounds = -(-a.shape[1] // (lanes * width))
    padded = np.zeros((len(a), rounds * lanes * width), oracle.accumulator(a.dtype))
    padded[:, : a.shape[1]] = a
    vectors = padded.reshape(len(a), rounds, lanes, width)
    state = (np.zeros((len(a), lanes), padded.dtype),) * 2
    for number in range(rounds):
        for element in range(width):
            state = taken(state, vectors[:, number, :, element])
    while lanes > 1:
        lanes //= 2
        state = joined(*(tuple(p[:, i : i + lanes] for p in state) for i in (0, lanes)))
    high, low = (part[:, 0] for part in state)
    return high + low if compensated else high


def lanes_of_rows(a: Array) -> int:
    """So many that each has some vectors of a row, but enough of them for a whole device. Of rows
    that are no whole vectors each has at least as many, unless wide elements are in the cache."""
    width = 16 // a.dtype.itemsize
    vectors = -(-a.shape[1] // width)
    wide = a.dtype.itemsize == 8 and a.nbytes < 48 << 20
    if a.shape[1] % width and vectors >= 9 and not wide:
        least = up_to(vectors // (4 if vectors < 32 else 8) // 2 + 1, WARP)
    else:
        least = up_to(-(-vectors // (2 if vectors <= 6 else 4 if vectors <= 24 else 8)), WARP)
    busy = up_to(-(-(1 << 17) // len(a)), WARP)
    return up_to(vectors, max(least, busy))


ROWS = (
    (1003, 190),
    (1001, 520),
    (700, 20),
    (40_000, 7),
    (9000, 30),
    (90, 70),
    (33_001, 67),
    (17_003, 133),
    (9001, 262),
    (8500, 390),
)


@pytest.mark.costly(3)
@pytest.mark.parametrize(("dtype", "variant"), VARIANTS)
@pytest.mark.parametrize("shape", ROWS)
def test_short_rows_have_their_model(dtype, variant, shape, by_vectors):
    """Several rows a warp or one, wherever they begin."""
    rows = troublesome(shape[0] * shape[1], dtype).reshape(shape)
    want = model_of(rows, of_vectors, variant, lanes_of_rows(rows))
    ragged = np.zeros((shape[0], shape[1] + 3), rows.dtype)
    ragged[:, 1:-2] = rows
    for case, there in {
        "as they are": gk.to_device(rows),
        "ragged": gk.to_device(ragged)[:, 1:-2],
        "backwards": gk.to_device(np.ascontiguousarray(rows[:, ::-1]))[:, ::-1],
    }.items():
        assert hexadecimal(gk.sum(there, 1, variant=variant).to_host()) == want, case


STACKED = (
    (1000, 40, 15),
    (2000, 17, 8),
    (40_001, 3, 5),
    (300, 250, 7),
    (40, 41, 49),
    (5000, 33, 4),
)


def threads_of_stack(outer: int, length: int, lanes: int, size: int) -> int:
    """Of one of many matrices: for narrow ones as many as load it in two turns, else as many as
    lose least by loads that are not there, by joining and while the last blocks are few."""
    if lanes < 4:
        height = 1
        while height * lanes < WARP and height < length:
            enough = outer * height * lanes >= 512 * COLUMN_THREADS
            if height * 2 * COLUMN_LOADS >= length and enough:
                break
            height *= 2
        return height * lanes

    def loss(threads: int) -> float:
        places, busy = 792, 792 if size == 1 else 300
        rows = -(-length // (threads // lanes))
        blocks = -(-outer * threads // COLUMN_THREADS)
        last = blocks % places if blocks > places else blocks
        loads = -(-rows // COLUMN_LOADS) * COLUMN_LOADS
        joining = 0.5 / rows if threads > lanes else 0.0
        return 0.2 * (loads / rows - 1) + joining + max(0, busy - last) / blocks

    return min((t for t in (16, 32, 64, 128) if t >= lanes), key=loss)


def stacked(a: Array, compensated: bool) -> Any:
    """The sums of little matrices' columns, each matrix by part of a block: of its rows a
    thread takes every `height`-th one, and threads are joined by halves."""
    outer, length, inner = a.shape
    taken, joined = (take, join) if compensated else (plain, plain_join)
    vectors, lanes = -(-inner * a.dtype.itemsize // 16), 1
    while lanes < min(vectors, WARP):
        lanes *= 2
    height = threads_of_stack(outer, length, lanes, a.dtype.itemsize) // lanes
    rounds = -(-length // height)
    padded = np.zeros((outer, rounds * height, inner), oracle.accumulator(a.dtype))
    padded[:, :length] = a
    state = (np.zeros((outer, height, inner), padded.dtype),) * 2
    for number in range(rounds):
        state = taken(state, padded[:, number * height : (number + 1) * height])
    while height > 1:
        height //= 2
        state = joined(*(tuple(p[:, i : i + height] for p in state) for i in (0, height)))
    high, low = (part[:, 0] for part in state)
    return high + low if compensated else high


@pytest.mark.costly(3)
@pytest.mark.parametrize(("dtype", "variant"), VARIANTS)
@pytest.mark.parametrize("shape", STACKED)
def test_columns_of_little_matrices_have_their_model(dtype, variant, shape, by_vectors):
    a = troublesome(int(np.prod(shape)), dtype).reshape(shape)
    want = model_of(a, stacked, variant)
    wide = np.zeros((shape[0], shape[1] + 1, shape[2] + 3), a.dtype)
    wide[:, 1:, 1:-2] = a
    turned = gk.to_device(np.ascontiguousarray(a.T)).T
    for case, there in {
        "as it is": gk.to_device(a),
        "rows apart": gk.to_device(wide)[:, 1:, 1:-2],
        "turned": turned,
        "host": a,
    }.items():
        got = gk.sum(there, 1, variant=variant)
        assert hexadecimal(np.asarray(got)) == want, case


@pytest.mark.costly(3)
@pytest.mark.parametrize(("dtype", "variant"), VARIANTS)
@pytest.mark.parametrize(
    ("outer", "length", "vectors"), [(1030, 310, 4), (690, 207, 6), (300, 90, 29), (3000, 81, 4)]
)
def test_columns_of_many_matrices_have_their_model(dtype, variant, outer, length, vectors):
    """Larger ones, so many that each has a few threads as well."""
    inner = vectors * 16 // DTYPES[dtype].itemsize - 1
    a = troublesome(outer * length * inner, dtype).reshape(outer, length, inner)
    want = model_of(a, stacked, variant)
    wide = np.zeros((outer, length + 1, inner + 3), a.dtype)
    wide[:, 1:, 1:-2] = a
    for case, there in {
        "as it is": gk.to_device(a),
        "apart": gk.to_device(wide)[:, 1:, 1:-2],
    }.items():
        assert hexadecimal(gk.sum(there, 1, variant=variant).to_host()) == want, case


# What the model gave when it was written, so that it cannot change along with the kernels.
BITS = {
    ("float32", 300_007): "e0d15e45",
    ("float64", 300_007): "00003f0b3cdaab40",
    ("float16", 70_001): "29eb",
    ("bfloat16", 70_001): "65c5",
}


@pytest.mark.parametrize(("dtype", "count"), BITS)
def test_the_bits_on_paper(dtype, count):
    """Of whole numbers over powers of two, which every version of NumPy makes alike."""
    i = np.arange(count, dtype=np.int64)
    numbers = (i * 2_654_435_761 % 1_000_003 - 500_001) / 2.0 ** (8 + i % 23)
    a = numbers.astype(DTYPES[dtype])
    assert hexadecimal(expected(a)) == BITS[dtype, count]
    assert hexadecimal(gk.sum(a)) == BITS[dtype, count]
    assert hexadecimal(gk.sum(gk.to_device(a)).to_host()) == BITS[dtype, count]


@pytest.fixture
def chunk():
    """Sets how many bytes of a host array go through the device at a time."""
    before = _core.limit("chunk")
    yield lambda size: _core.limit("chunk", size)
    _core.limit("chunk", before)


def test_chunks_of_any_size(chunk):
    a = troublesome(700_001, "float32")
    b = troublesome(700_001, "float32")[::-1].copy()
    whole = [hexadecimal(getattr(gk, op)(gk.to_device(a)).to_host()) for op in REDUCTIONS]
    whole.append(hexadecimal(gk.dot(gk.to_device(a), gk.to_device(b)).to_host()))
    for size in (1, 300_000, 1 << 20, 2 << 20):
        chunk(size)
        got = [hexadecimal(getattr(gk, op)(a)) for op in REDUCTIONS]
        assert [*got, hexadecimal(gk.dot(a, b))] == whole, size


def test_chunks_of_long_arrays_end_where_segments_end(chunk):
    """Beyond 32 Mi elements a segment is longer than the least chunk, of which these are three."""
    a = np.ones((33 << 20) + 5, np.int8)
    chunk(3 << 15)
    assert gk.sum(a) == a.size
    a = troublesome(2_300_001, "float32")  # in segments of 5120, which are no part of 32768
    for size in (1, 300_000):
        chunk(size)
        assert hexadecimal(gk.sum(a)) == hexadecimal(gk.sum(gk.to_device(a)).to_host())


def test_a_thousand_runs():
    a = troublesome(70_001, "float32")
    want = hexadecimal(expected(a))
    device = gk.to_device(a)
    out = gk.empty(())
    for _ in range(1000 if on_gpu() else 30):
        gk.sum(device, out=out)
        assert hexadecimal(out.to_host()) == want


def test_many_threads_at_once():
    a = troublesome(300_007, "float32")
    want = hexadecimal(expected(a))
    rows = a[:300_000].reshape(500, 600)
    columns = gk.sum(rows, 0).tobytes()
    device, device_rows = gk.to_device(a), gk.to_device(rows)
    wrong = []

    def work() -> None:
        for _ in range(5):
            for x in (a, device):
                if hexadecimal(gk.to_device(gk.sum(x)).to_host()) != want:
                    wrong.append("sum")
            if gk.sum(device_rows, 0).to_host().tobytes() != columns:
                wrong.append("columns")

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    join_all(*workers)
    assert not wrong


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import gpukern as gk
from test_reproducible import COUNTS, troublesome
for dtype in ("float32", "float16"):
    for count in COUNTS:
        a = troublesome(count, dtype)
        print(gk.sum(a).tobytes().hex(), gk.norm(gk.to_device(a)).to_host().tobytes().hex())
    for shape in ((33, 2049), (2049, 33), (3, 17_001), (20, 30, 40), (9000, 7)):
        a = troublesome(int(np.prod(shape)), dtype).reshape(shape)
        for axis in range(len(shape)):
            for op in ("sum", "prod", "argmin"):
                print(op, shape, axis, hash(getattr(gk, op)(a, axis).tobytes()))
"""


def test_any_order_of_threads_and_blocks(script, request):
    here = str(request.path.parent)
    outputs = set()
    for seed in ("1", "2", "987654321"):
        run = script(SCRIPT, here, GPUKERN_SIM_SEED=seed, PYTHONHASHSEED="0")
        assert run.returncode == 0, run.stderr
        outputs.add(run.stdout)
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == 2 * (len(COUNTS) + 3 * 11)


@pytest.mark.parametrize("op", ["sum", "mean", "norm", "prod"])
def test_axes_have_their_own_bits(op):
    """The same wherever the array is and whatever its layout."""
    for shape, axis in (((33, 2049), 1), ((2049, 33), 0), ((64, 300), 1), ((3, 40_001), 1)):
        a = troublesome(shape[0] * shape[1], "float32").reshape(shape)
        want = getattr(gk, op)(gk.to_device(a), axis).to_host().tobytes()
        ways = [a, np.asfortranarray(a), a[::-1, ::-1].copy()[::-1, ::-1], a.astype(">f4")]
        for way in ways:
            assert getattr(gk, op)(way, axis).tobytes() == want, (shape, axis)
        for case, place in places(shape, a.dtype):
            got = getattr(gk, op)(on_device(place, a).view, axis).to_host().tobytes()
            assert got == want, (shape, axis, case)
