"""matmul of small matrices, alone and in stacks, which has a kernel of its own for float32."""

from __future__ import annotations

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, random

# Rows, inner length, columns: one, a piece of 4 x 4, primes on either side of it, several pieces,
# a long row, a tall column, and what takes a block's shared memory to itself.
SHAPES = [
    (1, 1, 1),
    (3, 2, 5),
    (4, 4, 4),
    (7, 5, 3),
    (8, 1, 8),
    (17, 13, 11),
    (32, 32, 32),
    (20, 7, 20),
    (5, 90, 6),
    (127, 3, 2),
    (6, 9, 129),
    (61, 67, 59),
    (100, 7, 100),
]


LIES = ["plain", "apart", "behind"]
LIES += [f"transposed, {lies}" for lies in LIES]


def stacked(count, m, k, n):
    return random((count, m, k), DTYPES["float32"], 3), random((count, k, n), DTYPES["float32"], 4)


def there(values, lies):
    """The same matrices on the device: row after row or column after column, with nothing in
    between, with room, and one element behind where 16 bytes begin."""
    axes = (*range(values.ndim - 2), values.ndim - 1, values.ndim - 2)
    if lies.startswith("transposed"):
        return there(values.transpose(axes), lies[len("transposed, ") :]).transpose(axes)
    before, behind = {"plain": (0, 0), "apart": (4, 4), "behind": (1, 2)}[lies]
    room = [(0, 0)] * (values.ndim - 1) + [(before, behind)]
    lying = gk.to_device(np.pad(values, room, constant_values=np.nan))
    return lying[..., before : before + values.shape[-1]]


def ran(a, b, **named):
    with gk.profile() as profile:
        gk.matmul(a, b, **named)
    return profile.calls[-1].variant


def assert_right(got, a, b, case):
    for at in range(len(got)):
        oracle.assert_matmul(got[at], a[at], b[at], "small", f"{case} {at}")


# So few products are shared out, and of so many a block takes several: the last one fewer.
COUNTS = [(2, shape) for shape in SHAPES] + [(139, shape) for shape in SHAPES if max(shape) < 60]


@pytest.mark.costly(2)
@pytest.mark.parametrize(("count", "shape"), COUNTS, ids=str)
def test_stacks_of_any_shape_and_lie(count, shape):
    a, b = stacked(count, *shape)
    for left in LIES:
        for right in LIES:
            x, y = there(a, left), there(b, right)
            out = gk.to_device(np.full((count + 2, shape[0], shape[2]), 7, np.float32))
            gk.matmul(x, y, out=out[1:-1])
            got = out.to_host()
            assert (got[[0, -1]] == 7).all(), f"{left} {right}: a canary is dead"
            assert_right(got[1:-1], a, b, f"{left} {right}")


@pytest.mark.parametrize(
    "shape", [(64, 64, 64), (33, 21, 17), (21, 128, 20), (128, 5, 19)], ids=str
)
@pytest.mark.parametrize("left", LIES)
def test_one_is_shared_out(shape, left):
    a, b = (each[0] for each in stacked(1, *shape))
    for right in LIES:
        x, y = there(a, left), there(b, right)
        assert ran(x, y) == "small"
        out = gk.to_device(np.full((shape[0] + 2, shape[2]), 7, np.float32))
        gk.matmul(x, y, out=out[1:-1])
        got = out.to_host()
        assert (got[[0, -1]] == 7).all(), f"{right}: a canary is dead"
        oracle.assert_matmul(got[1:-1], a, b, "small", right)


def test_one_matrix_for_all():
    a, b = stacked(6, 12, 9, 10)
    for x, y in ((a[0].T.copy().T, b), (a, b[2]), (a[:1], b), (a.swapaxes(0, 1), b[0])):
        got = gk.matmul(gk.to_device(x), gk.to_device(y)).to_host()
        np.testing.assert_allclose(got, x @ y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_rows_and_columns(special):
    a, b = stacked(9, 14, 7, 11)
    a[4, 13, 6] = special
    b[7, 6, 10] = special
    for lies in ("plain", "transposed, plain", "behind"):
        got = gk.matmul(there(a, lies), there(b, lies)).to_host()
        spoilt = np.zeros(got.shape, bool)
        spoilt[4, 13] = spoilt[7, :, 10] = True
        np.testing.assert_array_equal(~np.isfinite(got), spoilt)


def test_which_products_are_small():
    def of(*shapes, dtype=np.float32, **named):
        return ran(*(gk.to_device(np.ones(shape, dtype)) for shape in shapes), **named)

    assert of((2, 32, 32), (2, 32, 32)) == "small"
    assert of((2, 128, 16), (2, 16, 128)) == "small"
    assert of((64, 64), (64, 64)) == "small"
    assert of((2, 129, 32), (2, 32, 32)) != "small"
    assert of((65, 64), (64, 64)) != "small"
    assert of((2, 64, 64), (2, 64, 64)) != "small", "it does not wait for memory"
    assert of((2, 8, 700), (2, 700, 64)) != "small", "there is no room for B"
    assert of((2, 32, 32), (2, 32, 32), dtype=np.float64) != "small"
    assert of((2, 32, 32), (2, 32, 32), variant="tiled") == "tiled"


def test_the_same_bits_alone_and_in_a_stack():
    a, b = stacked(40, 24, 30, 20)
    together = gk.matmul(gk.to_device(a), gk.to_device(b)).to_host()
    for i in (0, 7, 39):
        alone = gk.matmul(gk.to_device(a[i]), gk.to_device(b[i])).to_host()
        assert alone.tobytes() == together[i].tobytes()
