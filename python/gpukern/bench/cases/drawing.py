"""Random numbers of which the inputs of trials are made."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.cases import bounds
from gpukern.bench.cases.pieces import fill
from gpukern.bench.model.dtypes import numpy_dtype

Array = npt.NDArray[Any]


def either_sign(rng: np.random.Generator, bits: int, count: int, dtype: Any) -> Array:
    """Whole numbers of up to so many bits, without 0."""
    most = 2**bits - 1
    values = rng.integers(-most, most, count, dtype)
    # Those from 0 on move up by one.
    values += values >= 0
    return values


def wide_ones(rng: np.random.Generator, bits: int, count: int, dtype: Any) -> Array:
    """Whole numbers of exactly so many bits, of either sign."""
    values = rng.integers(2 ** (bits - 1), 2**bits, count, dtype)
    return np.where(rng.integers(0, 1, count, np.int8, endpoint=True), values, -values)


def mixed(
    rng: np.random.Generator, narrow: int, wide: int, share: float, count: int, dtype: Any
) -> Array:
    """Whole numbers of up to ``narrow`` bits, a share of them replaced by ones of ``wide`` bits."""
    values = either_sign(rng, narrow, count, dtype)
    hits = int(rng.binomial(count, min(share, 1.0)))
    values[rng.integers(0, count, hits)] = wide_ones(rng, wide, hits, dtype)
    return values


def shortened(rng: np.random.Generator, values: Array, widest: int) -> Array:
    """Numbers cut to from 4 to ``widest`` bits each, as many end in zeros in a proof too."""
    double = values.dtype == np.float64
    bits, word = 52 if double else 23, np.dtype("uint64" if double else "uint32")
    dropped = rng.integers(bits + 1 - widest, bits - 3, values.size, np.uint8, endpoint=True)
    ones = np.array(np.iinfo(word).max, word)
    cut: Array = (values.view(word) & np.left_shift(ones, dropped.astype(word))).view(values.dtype)
    return cut


def ordinary(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str, positive: bool, scale: float
) -> Array:
    """Normal numbers, or their absolute values, of widths as mixed as those of a proof."""
    out = np.empty(shape, numpy_dtype(dtype))
    wide: Any = np.float64 if dtype == "float64" else np.float32

    def part(mine: np.random.Generator, piece: Array) -> None:
        values = shortened(mine, mine.standard_normal(piece.size, wide), bounds.SIGNIFICAND[dtype])
        piece[...] = (np.abs(values) if positive else values) * wide(scale)

    fill(rng, part, out)
    return out


def any_value(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Values of full width: normal numbers, since sums of uniform ones would not be rounded."""
    target = numpy_dtype(dtype)
    out = np.empty(shape, target)

    def part(mine: np.random.Generator, piece: Array) -> None:
        if bounds.is_float(dtype):
            wide: Any = np.float64 if dtype == "float64" else np.float32
            piece[...] = mine.standard_normal(piece.size, wide)
        else:
            limits = np.iinfo(target)
            piece[...] = mine.integers(limits.min, limits.max, piece.size, target, endpoint=True)

    fill(rng, part, out)
    return out
