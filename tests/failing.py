"""Calls that have to fail: nothing changes, nothing is lost, and the next call works."""

from __future__ import annotations

import numpy as np
import pytest

import gpukern as gk
from arrays import DTYPES, random, settled
from gpukern import _core


class Bench:
    """Arrays of every kind, and whether any of them has changed."""

    def __init__(self):
        self.f32 = random((2, 3), DTYPES["float32"], 1)
        self.wide = random((3, 4), DTYPES["float32"], 2)
        self.f64 = random((2, 3), DTYPES["float64"], 3)
        self.i32 = random((2, 3), DTYPES["int32"], 4)
        self.four = random((4,), DTYPES["float32"], 5)
        self.cube = random((2, 2, 2), DTYPES["float32"], 6)
        self.scalar = np.array(1.5, np.float32)
        self.out = random((2, 3), DTYPES["float32"], 7)
        self.small = random((2, 2), DTYPES["float32"], 8)
        self.fixed = random((2, 3), DTYPES["float32"], 9)
        self.fixed.setflags(write=False)
        self.total = random((), DTYPES["float32"], 10)
        self.host = dict(vars(self))
        self.device = {name: gk.to_device(array) for name, array in self.host.items()}
        for name, array in self.device.items():
            setattr(self, f"d_{name}", array)
        self.before = self.bytes()

    def bytes(self):
        return {
            name: (array.tobytes(), self.device[name].to_host().tobytes())
            for name, array in self.host.items()
        }

    def assert_unchanged_and_working(self):
        assert self.bytes() == self.before
        assert gk.add(self.f32, self.f32).tobytes() == (self.f32 + self.f32).tobytes()
        got = gk.add(self.d_f32, self.d_f32).to_host()
        assert got.tobytes() == (self.f32 + self.f32).tobytes()


def assert_fails(call, exception, *words):
    bench = Bench()
    live = settled()
    with pytest.raises(exception) as raised:
        call(bench)
    assert type(raised.value) is exception or exception is MemoryError
    sentence = str(raised.value)
    for word in words:
        found = word in sentence or word in sentence.replace(", ", ",")
        assert found, f"{word!r} is not in {sentence!r}"
    assert _core.live_bytes() == live
    bench.assert_unchanged_and_working()
    return sentence
