"""Every library that is here, in every way in which it takes part, on every operation."""

from __future__ import annotations

import pytest

import gpukern
from gpukern import _core
from gpukern.bench.contenders.registry import PEERS
from gpukern.bench.model import case as cases
from gpukern.bench.model.row import ABSENT, RIGHT
from gpukern.machine.inventory import installed

SEED = 20260104
USUAL = ("matmul", "add", "sum", "transpose")
# Sides that no tile divides, and one that all do.
SIZES = {"matmul": [(65, 130, 97), 128], "dot": [5001], "transpose": [(65, 130), 128]}

pytestmark = pytest.mark.skipif(_core.backend() == "sim", reason="needs a GPU")


@pytest.fixture(params=PEERS, ids=lambda peer: peer.key)
def peer(request):
    if request.param.requires and not installed(request.param.requires):
        pytest.skip(f"{request.param.name} is not installed")
    return request.param


@pytest.mark.parametrize("op", cases.OPERATIONS)
def test_every_peer_is_right_end_to_end_and_on_the_device(peer, op):
    sizes = SIZES.get(op, [(65, 130)])
    # Compilers take seconds a dtype: all of them where an adapter treats them differently.
    for dtype in cases.DTYPES_OF[op] if op in USUAL else ("float32",):
        result = gpukern.compare(op, sizes, dtype, [peer], seed=SEED, rounds=1)
        bad = [row for row in result.rows if row.status not in (RIGHT, ABSENT)]
        assert not bad, [f"{row.label}: {row.status}, {row.detail}" for row in bad]
        for row in result.rows:
            assert row.status == ABSENT or row.end_to_end or row.on_device, row


@pytest.mark.parametrize("op", USUAL)
def test_who_has_a_time_on_the_device(peer, op):
    result = gpukern.compare(op, [128], "float32", [peer], seed=SEED, rounds=1)
    if all(row.status == ABSENT for row in result.rows):
        pytest.skip(f"{peer.name} has no {op} here")
    timed = [row for row in result.rows if row.on_device]
    assert bool(timed) == (peer.key not in ("numpy", "jax")), result.rows


def test_numba_and_gpukern_have_kernels_of_the_same_names():
    if not installed("numba"):
        pytest.skip("Numba is not installed")
    same = {
        "matmul": {"naive", "coalesced", "tiled"},
        "transpose": {"naive", "tiled", "tiled_padded"},
        "sum": {"sequential"},
    }
    for op, names in same.items():
        result = gpukern.compare(op, [100], "float32", ["numba", "gpukern"], seed=SEED, rounds=1)
        if any(row.contender == "Numba" and row.status == ABSENT for row in result.rows):
            pytest.skip("this Numba sees no GPU")
        for library in ("Numba", "gpukern"):
            assert names <= {row.variant for row in result.rows if row.contender == library}


def test_many_sizes_are_compiled_each():
    """More than torch.compile would compile again before it falls back to eager."""
    if not installed("torch"):
        pytest.skip("PyTorch is not installed")
    sizes = [(16 + i, 30 + i) for i in range(10)]
    result = gpukern.compare("add", sizes, "float32", ["torch:torch.compile"], seed=SEED, rounds=1)
    assert {row.status for row in result.rows} == {RIGHT}, result.rows
    assert len(result.rows) == len(sizes)
