"""The errors of float32 products beside cuBLAS's, on operands that are hard in different ways.

    python benchmarks/accuracy.py [--variants f16x3,bf16x6] [--save all.json] [--table all.md]

For every kind of operands and every shape: the root mean square of the error over that of the
product, and the largest error of an element over the inner product of magnitudes, |e| / (|A| |B|),
both in units of 2^-24, against a product in float64. A variant is as accurate as cuBLAS where
neither is larger. Infinities and NaN have to be where float32 has them. On the simulator, or with
``--smoke``, the shapes are small and the reference is a kernel of our own.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gpukern as gk
from gpukern import _core

SEED = 5
UNIT = 2.0**-24
WIDTH = 512
LENGTHS = (1, 4, 16, 32, 64, 128, 512, 1000, 4096)
SHAPES = [(WIDTH, k, WIDTH) for k in LENGTHS]
SHAPES += [
    (128, 65536, 128),
    (128, 128, 128),
    (64, 4096, 64),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
]
SHAPES += [(2048, 16384, 2048), (4096, 4096, 4096)]
SMALL = [(40, k, 36) for k in (1, 16, 33, 64, 100)]

Array = np.ndarray[Any, Any]
Operands = tuple[Array, Array]


@dataclass(frozen=True)
class Errors:
    """Of one product, in 2^-24; None where what is not finite is not where it should be."""

    rms: float | None
    largest: float | None

    def exceeds(self, other: "Errors") -> bool:
        """Whether either is larger than the other's, by more than the luck of the draw."""
        if self.rms is None or self.largest is None:
            return True
        assert other.rms is not None and other.largest is not None
        return self.rms > 1.01 * other.rms or self.largest > 1.1 * other.largest

    def __str__(self) -> str:
        return "wrong" if self.rms is None else f"{self.rms:.2f}, {self.largest:.2f}"


@dataclass(frozen=True)
class Row:
    """One kind of operands of one shape, and the errors of each variant."""

    kind: str
    shape: tuple[int, int, int]
    errors: dict[str, Errors]


class Draw:
    """Operands of one shape."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.m, self.k, self.n = shape
        self.random = np.random.default_rng([SEED, *shape])

    def both(self, draw: Callable[[tuple[int, int]], Array]) -> Operands:
        """A and B, drawn alike."""
        a, b = (draw(shape).astype(np.float32) for shape in ((self.m, self.k), (self.k, self.n)))
        return a, b

    def normal(self) -> Operands:
        return self.both(self.random.standard_normal)

    def uniform(self, low: float) -> Operands:
        return self.both(lambda shape: self.random.uniform(low, 1.0, shape))

    def wide(self, phi: float) -> Operands:
        """(U - 1/2) exp(phi N): exponents that spread the more, the larger phi is."""
        random = self.random
        return self.both(
            lambda shape: (random.random(shape) - 0.5) * np.exp(phi * random.standard_normal(shape))
        )

    def graded(self, powers: float) -> Operands:
        """A D and D^-1 B, D from 2^-powers to 2^powers."""
        a, b = self.normal()
        scale = np.exp2(np.linspace(-powers, powers, self.k))
        return (a * scale).astype(np.float32), (b / scale[:, None]).astype(np.float32)

    def rows_and_columns(self, powers: float) -> Operands:
        """D A and B D': rows and columns of all sizes."""
        a, b = self.normal()
        down = np.exp2(np.linspace(-powers, powers, self.m))[:, None]
        across = np.exp2(np.linspace(powers, -powers, self.n))
        return (a * down).astype(np.float32), (b * across).astype(np.float32)

    def cancelling(self) -> Operands:
        """The second half of K takes away what the first half gives, but for a thousandth."""
        a, b = self.normal()
        half = self.k // 2
        a[:, half : 2 * half] = -a[:, :half]
        b[half : 2 * half] = b[:half] * (1 + 1e-3 * self.random.standard_normal((half, self.n)))
        return a, b

    def scaled(self, of_a: int, of_b: int) -> Operands:
        a, b = self.normal()
        return np.ldexp(a, of_a), np.ldexp(b, of_b)

    def with_odd(self, value: float) -> Operands:
        """Infinity or NaN in five places of each."""
        pair = self.normal()
        for operand in pair:
            operand.flat[self.random.integers(0, operand.size, 5)] = value
        return pair


KINDS: dict[str, Callable[[Draw], Operands]] = {
    "normal": Draw.normal,
    "uniform, -1 to 1": lambda draw: draw.uniform(-1.0),
    "positive, 0 to 1": lambda draw: draw.uniform(0.0),
    "cancelling": Draw.cancelling,
    "graded, 2^-8 to 2^8": lambda draw: draw.graded(8),
    "graded, 2^-20 to 2^20": lambda draw: draw.graded(20),
    "rows and columns of 2^-30 to 2^30": lambda draw: draw.rows_and_columns(30),
    **{f"(U - 1/2) exp({phi} N)": lambda draw, phi=phi: draw.wide(phi) for phi in range(5)},
    "subnormal": lambda draw: draw.scaled(-135, 20),
    "huge": lambda draw: draw.scaled(110, -20),
    "infinities": lambda draw: draw.with_odd(np.inf),
    "NaN": lambda draw: draw.with_odd(np.nan),
}


def in_float64(a: Array, b: Array) -> Array:
    """By the device's library where there is one."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    if _core.backend() != "cuda":
        with np.errstate(invalid="ignore"):
            return np.asarray(a @ b)
    return np.asarray(gk.matmul(gk.to_device(a), gk.to_device(b)).to_host())


def errors_of(got: Array, exact: Array, magnitude: Array) -> Errors:
    finite = np.isfinite(exact)
    if not np.array_equal(finite, np.isfinite(got)) or not np.array_equal(
        exact[~finite], got[~finite].astype(np.float64), equal_nan=True
    ):
        return Errors(None, None)
    error = np.abs(np.where(finite, got.astype(np.float64) - np.where(finite, exact, 0.0), 0.0))
    size = np.sqrt(np.mean(np.square(exact[finite]))) if finite.any() else 0.0
    share = np.divide(error, magnitude, out=np.zeros_like(error), where=finite & (magnitude > 0))
    rms = np.sqrt(np.mean(np.square(error[finite]))) / size if size > 0 else 0.0
    return Errors(float(rms / UNIT), float(share.max(initial=0.0) / UNIT))


def rows(shapes: Sequence[tuple[int, int, int]], variants: Sequence[str]) -> Iterator[Row]:
    for shape in shapes:
        for kind, make in KINDS.items():
            a, b = make(Draw(shape))
            exact, magnitude = in_float64(a, b), in_float64(np.abs(a), np.abs(b))
            there = gk.to_device(a), gk.to_device(b)
            made = {name: gk.matmul(*there, variant=name).to_host() for name in variants}
            errors = {name: errors_of(c, exact, magnitude) for name, c in made.items()}
            yield Row(kind, shape, errors)


def table(done: Sequence[Row], variants: Sequence[str]) -> str:
    lines = ["Errors in 2^-24: rms over rms C, largest |e| / (|A| |B|).", ""]
    lines += [
        f"| M x K x N | operands | {' | '.join(variants)} |",
        "|---" * (len(variants) + 2) + "|",
    ]
    for row in done:
        cells = [str(row.errors[name]) for name in variants]
        for at, name in enumerate(variants[1:], 1):
            cells[at] += " (more)" if row.errors[name].exceeds(row.errors[variants[0]]) else ""
        lines.append(f"| {' x '.join(map(str, row.shape))} | {row.kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def verdicts(done: Sequence[Row], variants: Sequence[str]) -> Iterator[str]:
    reference = variants[0]
    for name in variants[1:]:
        over = [row for row in done if row.errors[name].exceeds(row.errors[reference])]
        share = f"{len(done) - len(over)} of {len(done)}"
        yield f"{name}: no more than the errors of {reference} in {share} cases"


def wanted(asked: str | None) -> list[str]:
    """The reference and the variants that are held against it."""
    there = [v.variant for v in gk.variants("matmul", "float32") if v.runs]
    reference = "cublas" if "cublas" in there else "thread_tile"
    names = asked.split(",") if asked else [n for n in ("f16x3", "bf16x6") if n in there]
    return [reference, *(names or ["naive"])]


def shapes_of(text: str) -> list[tuple[int, int, int]]:
    """ "64x100x32,8x8x8" as M, K and N of each."""
    shapes = [tuple(int(side) for side in shape.split("x")) for shape in text.split(",")]
    if any(len(shape) != 3 for shape in shapes):
        raise argparse.ArgumentTypeError(f"{text!r} is not MxKxN, with commas between shapes")
    return [(m, k, n) for m, k, n in shapes]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--variants", help="names, with commas; default: f16x3,bf16x6")
    parser.add_argument("--shapes", type=shapes_of, help="MxKxN, with commas; default: all")
    parser.add_argument("--save", type=Path, help="a JSON file of all errors")
    parser.add_argument("--table", type=Path, help="a Markdown file of the table")
    parser.add_argument("--smoke", action="store_true", help="small shapes")
    options = parser.parse_args(arguments)
    variants = wanted(options.variants)
    small = options.smoke or _core.backend() != "cuda"
    done = list(rows(options.shapes or (SMALL if small else SHAPES), variants))
    text = table(done, variants) + "\n\n" + "\n".join(verdicts(done, variants)) + "\n"
    print(text)
    if options.table:
        options.table.write_text(text)
    if options.save:
        options.save.write_text(json.dumps([asdict(row) for row in done], indent=1) + "\n")
    return any(error.rms is None for row in done for error in row.errors.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
