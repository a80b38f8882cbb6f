"""A program that mixes gpukern with every other library on the device, step by random step, on
random streams, against a shadow of it all in NumPy. The values are small integers, so that == is
the test.

Nothing is synchronized but by what the libraries do themselves when they hand arrays over.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest

import gpukern as gk
from arrays import on_gpu
from gpukern import _core

STEPS = 10_000
SHAPE = (32, 32)
LARGEST = 1 << 8  # above this an array is started anew: every sum and product stays exact


class Interface:
    """An array of gpukern's own, by __cuda_array_interface__ alone."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__


class Lender:
    """An array of gpukern's own, by DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **named):
        return self.array.__dlpack__(**named)


class Gpukern:
    """gpukern itself, and its memory in the ways that others hand theirs over."""

    name = "gpukern"
    ways = (lambda x: x, Interface, Lender, lambda x: gk.from_dlpack(Lender(x)))

    def __init__(self, rng):
        self.rng = rng

    def make(self, values):
        return self.rng.choice(len(self.ways)), gk.to_device(values)

    def array(self, held):
        way, array = held
        return self.ways[way](array)

    def read(self, held):
        return held[1].to_host()

    def change(self, held):
        """Double it in place."""
        gk.add(held[1], held[1], out=held[1])

    def stream(self):
        return None


class Torch:
    """PyTorch on its own streams."""

    name = "torch"

    def __init__(self, rng):
        self.rng = rng
        self.torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        if not self.torch.cuda.is_available():
            pytest.skip("this PyTorch sees no GPU")
        self.current = self.torch.cuda.current_stream()
        self.streams = [self.current, self.torch.cuda.Stream()]

    def make(self, values):
        return self.torch.tensor(values, device="cuda")

    def array(self, held):
        return held

    def read(self, held):
        return held.cpu().numpy()

    def change(self, held):
        held += held

    def stream(self):
        return self.streams[self.rng.integers(len(self.streams))]


class Cupy:
    """CuPy, whose arrays name its current stream."""

    name = "cupy"

    def __init__(self, rng):
        self.rng = rng
        self.cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
        self.streams = [self.cupy.cuda.Stream.null, self.cupy.cuda.Stream(non_blocking=True)]
        self.streams.append(self.cupy.cuda.Stream(non_blocking=False))

    def make(self, values):
        return self.cupy.asarray(values)

    def array(self, held):
        return held

    def read(self, held):
        return self.cupy.asnumpy(held)

    def change(self, held):
        held += held

    def stream(self):
        return self.streams[self.rng.integers(len(self.streams))]


class Numba:
    """Numba, whose arrays are its default stream's."""

    name = "numba"

    def __init__(self, rng):
        self.rng = rng
        pytest.importorskip("numba", reason="Numba is not installed")
        # By way of the adapter, which knows what a newer NumPy has to be given first.
        self.cuda = pytest.importorskip(
            "gpukern.bench.contenders.numba_", reason="Numba has no CUDA here"
        ).cuda
        if not self.cuda.is_available():
            pytest.skip("this Numba sees no GPU")
        cuda = self.cuda  # a kernel may name modules, and no objects

        def double(x):
            i, j = cuda.grid(2)
            if i < x.shape[0] and j < x.shape[1]:
                x[i, j] += x[i, j]

        self.double = self.cuda.jit(double)
        self.side = self.cuda.stream()

    def make(self, values):
        return self.cuda.to_device(values)

    def array(self, held):
        return held

    def read(self, held):
        return held.copy_to_host()

    def change(self, held):
        self.double[(2, 2), (16, 16)](held)

    def stream(self):
        return (None, self.side)[self.rng.integers(2)]


class Program:
    """Arrays of several libraries, what they hold by NumPy, and the steps that change them."""

    def __init__(self, libraries, seed):
        self.rng = np.random.default_rng(seed)
        self.libraries = [library(self.rng) for library in libraries]
        self.arrays = []
        for _ in range(8):
            self.start()

    def pick(self, things):
        return things[self.rng.integers(len(things))]

    def start(self):
        values = self.rng.integers(-4, 5, SHAPE).astype(np.float32)
        library = self.pick(self.libraries)
        self.arrays.append([library, library.make(values), values])

    def drop(self):
        self.arrays.pop(self.rng.integers(len(self.arrays)))
        self.start()

    def change(self):
        entry = self.pick(self.arrays)
        entry[0].change(entry[1])
        entry[2] = entry[2] + entry[2]

    def check(self):
        library, held, want = self.pick(self.arrays)
        np.testing.assert_array_equal(library.read(held), want, library.name)

    def operate(self, op, new):
        """One operation of gpukern's, on operands of any library, into an array of any, which may
        be one of them, or into a new one."""
        a, b, target = (self.pick(self.arrays) for _ in range(3))
        operands = [entry[0].array(entry[1]) for entry in (a, b)]
        if op == "transpose":
            operands, want = operands[:1], a[2].T.copy()
        else:
            want = a[2] + b[2] if op == "add" else a[2] @ b[2]
        out = None if new else target[0].array(target[1])
        stream = self.pick(self.libraries).stream()
        got = getattr(gk, op)(*operands, out=out, stream=stream)
        if new:
            ours = next(library for library in self.libraries if library.name == "gpukern")
            target[:] = [ours, (0, got), want]
        else:
            target[2] = want

    def total(self):
        library, held, want = self.pick(self.arrays)
        got = gk.sum(library.array(held), stream=self.pick(self.libraries).stream())
        assert float(got.to_host()) == want.sum(dtype=np.float64)

    def tame(self):
        """Values that have grown are given up, before they are no longer exact."""
        for entry in self.arrays:
            if np.abs(entry[2]).max() > LARGEST:
                values = self.rng.integers(-4, 5, SHAPE).astype(np.float32)
                library = self.pick(self.libraries)
                entry[:] = [library, library.make(values), values]

    def step(self):
        kind = self.rng.integers(12)
        if kind < 6:
            self.operate(("add", "matmul", "transpose")[kind % 3], new=kind < 3)
        else:
            self.pick((self.drop, self.change, self.change, self.check, self.check, self.total))()
        self.tame()

    def end(self):
        for library, held, want in self.arrays:
            np.testing.assert_array_equal(library.read(held), want, library.name)


def run(libraries, seed, steps):
    program = Program(libraries, seed)
    for number in range(steps):
        try:
            program.step()
        except AssertionError as error:
            raise AssertionError(f"step {number} of seed {seed}: {error}") from None
    program.end()


def test_gpukern_with_itself(balanced):
    run([Gpukern], 1, STEPS)
    gc.collect()


GPU = pytest.mark.skipif(not on_gpu(), reason="other libraries' device arrays need a GPU")


@GPU
@pytest.mark.parametrize("other", [Torch, Cupy, Numba], ids=lambda library: library.name)
def test_with_one_other(other):
    run([Gpukern, other], 2, STEPS // 4)


@GPU
def test_with_all_of_them():
    installed = [Gpukern]
    for library in (Torch, Cupy, Numba):
        try:
            library(np.random.default_rng(0))
        except pytest.skip.Exception:
            continue
        installed.append(library)
    if len(installed) < 3:
        pytest.skip("fewer than two of PyTorch, CuPy and Numba are here")
    run(installed, 3, STEPS)
    assert _core.backend() == "cuda"
