"""What matmul asks of a driver and of cuBLAS, by the fake ones: which operands are copied, how many
launches a stack takes, which variant runs, and what waits for what."""

from __future__ import annotations

import pytest

from fakes import NEEDS_FAKE
from gpukern import _core

pytestmark = NEEDS_FAKE
HOPPER = pytest.mark.skipif(
    not {"90", "90a"} & set(_core.build_report()["architectures"]),
    reason="this build has no code for 9.0",
)

COUNT = """
def launches(*operands, **options):
    done = steps(lambda: gk.matmul(*operands, **options))
    return len([step for step in done if step[0] == "l"])
def ran(*operands, **options):
    with gk.profile() as profile:
        gk.matmul(*operands, **options)
    return profile.calls[0].variant
p, q = matrices(60, 40, 50)
x, y = gk.to_device(p), gk.to_device(q)
"""


def test_what_lies_evenly_is_not_copied(right):
    right(f"""{COUNT}
for copies, take in (
    (0, lambda x, y: (x, y)), (0, lambda x, y: (x.T, x)), (0, lambda x, y: (x, x.T)),
    (0, lambda x, y: (y.T, x.T)), (0, lambda x, y: (x[:, :30], y[:30])),
    (0, lambda x, y: (x[5:20, 8:], y[8:, 3:20])), (0, lambda x, y: (x[::3], y)),
    (0, lambda x, y: (x[:, 2:9].T, x[:, 3:9])), (0, lambda x, y: (x[:, 3], x)),
    (0, lambda x, y: (x, y[:, 7])), (0, lambda x, y: (x[::2, 5], x[::2])),
    (0, lambda x, y: (x[:, :1], y[:1])), (0, lambda x, y: (x[3:4], y)),
    (1, lambda x, y: (x[::-1], y)), (1, lambda x, y: (x[:, ::-1], y)),
    (2, lambda x, y: (x[:, ::2], y[::2, ::2])), (2, lambda x, y: (x[::-1].T, x[:, ::2])),
    (1, lambda x, y: (x[::-1, 3], x)),
):
    there = take(x, y)
    assert launches(*there, variant="tiled") == 1 + copies, [each.strides for each in take(p, q)]
    if not copies:  # which the fake driver does not make
        left, right = take(p, q)
        assert (np.asarray(gk.matmul(*there, variant="naive").to_host()) == left @ right).all()
""")


def test_stacks_that_lie_evenly_are_one_launch(right):
    right(f"""{COUNT}
p = rng.integers(-4, 5, (6, 8, 10)).astype(np.float32)
s = gk.to_device(p)
for take in (
    lambda s: (s.transpose((0, 2, 1)), s), lambda s: (s, s.transpose((0, 2, 1))),
    lambda s: (s[:, 1:5, 2:], s[:, :, 3:][:, :8]), lambda s: (s[::2], s.transpose((0, 2, 1))[::2]),
    lambda s: (s.transpose((1, 0, 2)), s[0].T), lambda s: (s[0].T, s),
    lambda s: (s, s[1, 1]), lambda s: (s[:, 2], s[0].T), lambda s: (s[:, :1], s[0].T),
    lambda s: (s.transpose((1, 2, 0)), s.transpose((1, 0, 2))),
    lambda s: (s[:, :, None, :7], s[:, None, 1:, :9]),
):
    assert launches(*take(s), variant="tiled") == 1, [each.strides for each in take(p)]
    left, right = take(p)
    assert (gk.matmul(*take(s), variant="naive").to_host() == left @ right).all(), left.strides
assert launches(s[::-1], s.transpose((0, 2, 1)), variant="tiled") == 2
""")


def test_small_products_are_not_left_to_cublas(with_blas):
    """But for stacks that it was not measured beside."""
    with_blas(f"""{COUNT}
s, large = gk.empty((9, 32, 32)), gk.empty((9, 64, 64))
turned = s.transpose((0, 2, 1))
assert ran(s, s) == ran(turned, s) == "small" and launches(s, s) == 1
assert ran(s, turned) == ran(large, large) == "cublas"
assert ran(s[0], turned[0]) == ran(large[0], large[0]) == "small"
assert ran(s, s, variant="cublas") == "cublas"
""")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_cublas_takes_what_lies_evenly(with_blas, dtype):
    with_blas(f"""
if "{dtype}" == "bfloat16":
    import ml_dtypes
dtype = np.dtype("{dtype}")
p, q = (rng.integers(-4, 5, (6, 9, 11)).astype(dtype) for _ in range(2))
def check(take):
    left, right = take(p, q)
    want = left.astype(np.float64) @ right.astype(np.float64)
    there = take(gk.to_device(p), gk.to_device(q))
    log = steps(lambda: gk.matmul(*there, variant="cublas"))
    assert not [step for step in log if step[0] == "l"], "a copy"
    for operands in (there, (left, right)):
        got = gk.matmul(*operands, variant="cublas")
        got = got.to_host() if hasattr(got, "to_host") else np.asarray(got)
        assert got.shape == want.shape and (got.astype(np.float64) == want).all()
for take in (
    lambda a, b: (a[0].T, b[0]),
    lambda a, b: (a[0], b[0].T),
    lambda a, b: (a[0].T, b[0, :, :9]),
    lambda a, b: (a[1, 2:5, 3:7], b[1, 1:5, 2:]),
    lambda a, b: (a[:, 1, 3:7].T, b[:, 1]),
    lambda a, b: (a[0][:, 3], b[0]),
    lambda a, b: (a[0], b[1, 0]),
    lambda a, b: (a[0].T, b[0][:, 5]),
    lambda a, b: (a[::2, 0], b[0, :3].T),
    lambda a, b: (a[0, :1], b[0, :1].T),
    lambda a, b: (a[0, :, :1], b[0, :1]),
    lambda a, b: (a.transpose((0, 2, 1)), b),
    lambda a, b: (a, b.transpose((0, 2, 1))),
    lambda a, b: (a[:, 1:4, 2:6], b[:, 3:7, 5:]),
    lambda a, b: (a[0].T, b),
    lambda a, b: (a, b[0].T),
    lambda a, b: (a.transpose((1, 0, 2)), b[2].T),
    lambda a, b: (a[::2], b.transpose((0, 2, 1))[::2]),
):
    check(take)
""")


def test_lines_that_overlap_are_copied(with_blas):
    """cuBLAS and the copy engine take no line that begins before the one before it has ended."""
    with_blas(f"""{COUNT}
class Lent:
    def __init__(self, *strides):
        self.__cuda_array_interface__ = dict(
            x.__cuda_array_interface__, shape=(30, 20), strides=strides
        )
for strides in ((0, 4), (4, 0), (4, 4), (40, 4), (76, 4), (4, 116)):
    assert launches(Lent(*strides), x[:20], variant="cublas") == 1, strides
    assert launches(x[:, :30], Lent(*strides), variant="cublas") == 1, strides
for strides in ((80, 4), (4, 120)):
    assert launches(Lent(*strides), x[:20], variant="cublas") == 0, strides
""")


@HOPPER
def test_the_copy_engine_has_what_it_can_fetch(right):
    """By its name also of what it has to be copied for; by default of that only where it pays."""
    right(
        f"""{COUNT}
s, wide = gk.empty((256, 256)), gk.empty((1024, 1024))
assert ran(s, s) == ran(s[:, :32], s[8:40, :20]) == ran(s[::2], s) == "tma", "rows apart"
assert ran(s.T, s) == ran(s, s.T) == "warptiled"
assert ran(s[:, 1:33], s[:32]) == "thread_tile"
assert ran(gk.empty((256, 258))[:, :256], s) == "thread_tile", "rows of another alignment"
assert ran(s[:, :30], s[:30]) == "tma", "an odd K"
assert launches(s.T, s) == launches(s[:, 1:33], s[:32]) == 1
assert ran(wide.T, wide) == "tma" and launches(wide.T, wide) == 2
assert ran(wide[:, :512], wide[:512]) == "tma" and launches(wide[:, :512], wide[:512]) == 1
for left, right, copies in ((s, s, 0), (s.T, s, 1), (s, s[:, 1:33], 1), (s[:, :32], s[:32], 0)):
    assert ran(left, right, variant="tma") == "tma", (left.strides, right.strides)
    assert launches(left, right, variant="tma") == 1 + copies
pitches = (ctypes.c_uint64 * 2).in_dll(driver, "fake_pitches")
for left, right, apart in (
    (s, s, [1024, 1024]), (wide[:32, :256], s[:, :32], [1024, 4096]),
    (s[::3, :8], wide[8:16], [4096, 3072]),
):
    gk.matmul(left, right, variant="tma")
    assert [*pitches] == apart, "of B and A"
""",
        FAKE_CAPABILITY=90,
    )


@HOPPER
def test_a_stack_of_small_products_is_one_launch_by_default(right):
    """Tiles as large as the copy engine's are for those that fill them, in one launch too."""
    right(
        f"""{COUNT}
small, large = gk.empty((9, 32, 32)), gk.empty((3, 1024, 256))
assert ran(small, small) == "small" and launches(small, small) == 1
assert ran(small, small, variant="tma") == "tma" and launches(small, small, variant="tma") == 1
other = gk.empty((3, 256, 1024))
assert ran(large, other) == "tma" and launches(large, other) == 1
many, others = gk.empty((20, 128, 512)), gk.empty((20, 512, 128))  # K shared out: room for each
assert ran(many, others) == "warptiled" and launches(many, others, variant="tma") == 1
planes = (ctypes.c_uint64 * 2).in_dll(driver, "fake_planes")
gk.matmul(many, others, variant="tma")
assert [*planes] == [20, 20], "of B and A"
gk.matmul(many, others[0], variant="tma")
assert [*planes] == [1, 1], "one product of 2560 rows"
gk.matmul(many[0], others, variant="tma")
assert [*planes] == [20, 1], "one A for all"
assert ran(small, small[0]) == "tma" and launches(small, small[0]) == 1, "one product of 288 rows"
""",
        FAKE_CAPABILITY=90,
    )


@pytest.mark.skipif(
    "80" not in _core.build_report()["architectures"], reason="this build has no code for 8.0"
)
def test_tf32_is_for_who_names_it(right):
    right(
        f"""{COUNT}
s, d = gk.empty((64, 64)), gk.empty((64, 64), np.float64)
assert ran(s, s) == "small" and ran(d, d) == "mma"
assert ran(s, s, variant="tf32") == ran(s.T, s.T, variant="tf32") == "tf32"
assert ran(s[:, 1:33], s[:32], variant="tf32") == "thread_tile", "another alignment"
assert launches(s.T, s.T, variant="tf32") == launches(d.T, d.T) == 1
""",
        FAKE_CAPABILITY=80,
    )


WARPGROUPS = pytest.mark.skipif(
    "90a" not in _core.build_report()["architectures"], reason="this build has no code for 9.0a"
)
HALVES = f"""{COUNT}
half = lambda *shape: gk.empty(shape, np.float16)
s = half(64, 64)
def takes(*operands):
    return ran(*operands), launches(*operands)
"""


@WARPGROUPS
def test_warpgroups_take_all_transpositions_and_stacks(right):
    right(
        f"""{HALVES}
for left, right in ((s, s), (s.T, s), (s, s.T), (s.T, s.T), (s[:, 8:], s[:56]), (s[::2], s)):
    assert takes(left, right) == ("wgmma_cluster", 1), (left.strides, right.strides)
t = half(300, 32, 64)
u = t.transpose((0, 2, 1))
for left, right in ((t, u), (t, s), (s, u), (t[::3], t[0].T)):
    assert takes(left, right) == ("wgmma_cluster", 1), (left.strides, right.strides)
for left, right in ((s[:, 1:33], s[:32]), (s, half(64, 65)), (s, half(64, 66)[:, :64])):
    assert takes(left, right) == ("tiled", 1), (left.strides, right.strides)
""",
        FAKE_CAPABILITY=90,
    )


@WARPGROUPS
@pytest.mark.parametrize(
    ("capability", "by", "why"),
    [
        (75, "tiled", "needs compute capability 9.0, this device has 7.5"),
        (80, "mma", "needs compute capability 9.0, this device has 8.0"),
        (90, "wgmma_cluster", None),
        (100, "mma", "is for compute capability 9.0 alone, this device has 10.0"),
    ],
)
def test_a_capability_has_the_tensor_cores_it_has(right, capability, by, why):
    if capability != 90 and "75" not in _core.build_report()["architectures"]:
        pytest.skip("this build is not for every GPU")
    right(
        f"""{HALVES}
assert takes(s, s) == ("{by}", 1)
try:
    gk.matmul(s, s, variant="wgmma")
    assert not {why!r}
except ValueError as error:
    assert {why!r} in str(error), error
""",
        FAKE_CAPABILITY=capability,
    )


PLANES = {"f16x3": 5, "bf16x6": 4}  # launches: those that measure and split, and one a way


@WARPGROUPS
@pytest.mark.parametrize("variant", PLANES)
def test_planes_take_any_operands_and_run_only_by_their_name(right, variant):
    right(
        f"""{COUNT}
many = {PLANES[variant]}
s = gk.empty((64, 64))
for left, right in (
    (s, s), (s.T, s), (s, s.T), (s.T, s.T), (s[:, 1:34], s[:33]), (s[::2], s[:, 3:8]),
    (gk.empty((64, 67))[:, 2:66], s), (s[3, :40], s[:40]), (s, s[5]),
):
    assert ran(left, right, variant="{variant}") == "{variant}", (left.strides, right.strides)
    assert launches(left, right, variant="{variant}") == many, (left.strides, right.strides)
    assert ran(left, right) != "{variant}"
assert launches(s[::-1], s, variant="{variant}") == many + 1, "a copy"
assert launches(s[:, :12], s[:12], variant="{variant}") == 1, "CUDA cores alone, K is short"
assert launches(gk.empty((3, 64, 64)), s.T, variant="{variant}") == many, "one product of 192 rows"
assert launches(gk.empty((3, 64, 64)), gk.empty((3, 64, 64)), variant="{variant}") == 3 * many
before = _core.live_bytes()
gk.matmul(s, s, variant="{variant}", out=s)
assert _core.live_bytes() == before
""",
        FAKE_CAPABILITY=90,
    )


@WARPGROUPS
@pytest.mark.parametrize("variant", PLANES)
def test_planes_in_a_graph(right, variant):
    right(
        f"""{COUNT}
s, out, stream = gk.empty((64, 64)), gk.empty((64, 64)), gk.Stream()
stream.begin_capture()
gk.matmul(s, s, out=out, variant="{variant}", stream=stream)
graph = stream.end_capture()
graph.launch(stream)
stream.synchronize()
""",
        FAKE_CAPABILITY=90,
    )


@WARPGROUPS
@pytest.mark.parametrize(
    ("capability", "why"),
    [
        (80, "needs compute capability 9.0, this device has 8.0"),
        (100, "is for compute capability 9.0 alone, this device has 10.0"),
    ],
)
def test_planes_say_where_they_do_not_run(right, capability, why):
    right(
        f"""{COUNT}
s = gk.empty((64, 64))
for variant in {[*PLANES]}:
    try:
        gk.matmul(s, s, variant=variant)
        raise SystemExit("it ran")
    except ValueError as error:
        assert f"variant '{{variant}}' does not run here" in str(error), error
        assert {why!r} in str(error), error
""",
        FAKE_CAPABILITY=capability,
    )


@pytest.mark.parametrize("pinned", [True, False])
def test_stacks_by_panels(right, pinned):
    right(f"""
def whole(*shape):
    return rng.integers(-4, 5, shape).astype(np.float32)
with gk.limits(pinned_memory={(1 << 30) if pinned else (49 << 20)}):
    for left, right in (
        (whole(400, 30, 60), whole(400, 60, 50)), (whole(900, 30, 60), whole(60, 9)),
        (whole(30, 60), whole(400, 60, 50)), (whole(2, 2000, 120), whole(2, 120, 70)),
        (whole(3, 1, 40, 60), whole(100, 60, 50)),
        (whole(400, 60, 30).swapaxes(1, 2), whole(400, 50, 60).swapaxes(1, 2)),
    ):
        want = left @ right
        for limit in (0, 1 << 20, 150_000):
            with gk.limits(device_memory=limit):
                assert (gk.matmul(left, right, variant="naive") == want).all(), (left.shape, limit)
""")


def test_stacks_by_panels_overlap_and_bring_what_is_shared_once(right):
    right("""
def work(left, right):
    kept = []
    x, y = (gk.add(np.ones(shape, np.float32), 1.0) for shape in (left, right))  # in pinned memory
    done = steps(lambda: kept.append(gk.matmul(x, y, variant="naive")))
    return "".join(step[0] for step in done if step[0] in "ilo")
assert work((400, 30, 60), (400, 60, 50)) == 4 * "iilo"
assert work((900, 30, 60), (60, 90)) == "iilo" + 3 * "ilo"
assert work((30, 60), (400, 60, 50)) == "iilo" + 3 * "ilo"
assert work((2, 2000, 300), (2, 300, 70)) == 2 * ("iilo" + "ilo"), "rows of each"
assert work((2, 500, 30, 60), (500, 60, 9)) == 4 * "iilo", "the second axis too"
assert work((2000, 300), (300, 700)) == "iilo" + 3 * "ilo", "no stack"
""")


def test_windows_that_overlap_are_no_rows_of_one_matrix(with_blas):
    """Side by side they would be more rows than there are elements to the next column."""
    with_blas(f"""{COUNT}
from types import SimpleNamespace
line = rng.integers(-4, 5, 43 * 64).astype(np.float32)
shape, strides = (3, 64, 40), (4 * 64, 4, 4 * 64)
there = gk.to_device(line)
interface = dict(there.__cuda_array_interface__, shape=shape, strides=strides)
lent = SimpleNamespace(__cuda_array_interface__=interface)
windows = np.lib.stride_tricks.as_strided(line, shape, strides)
assert (gk.matmul(lent, y, variant="cublas").to_host() == windows @ q).all()
""")
