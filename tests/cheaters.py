"""Contenders that look faster than they are, or more right: each is to be caught.

``CHEATERS`` holds (name, operation, dtype, maker, words): the maker gives a fresh contender, the
words are in what is said of it, where its fault has a name.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

RIGHT: dict[str, Callable] = {
    "transpose": lambda a: np.array(a.T, order="C"),
    "norm": np.linalg.norm,
    **{
        op: getattr(np, op)
        for op in ("add", "multiply", "sum", "dot", "matmul", "max", "argmax", "argmin")
    },
}


def cut(bits: int, values: np.ndarray) -> np.ndarray:
    """float32 with so many bits fewer, rounded to nearest."""
    kept = values.view(np.uint32) + np.uint32(1 << (bits - 1))
    return (kept & np.uint32(0xFFFFFFFF << bits & 0xFFFFFFFF)).view(np.float32)


tf32, bfloat16 = partial(cut, 13), partial(cut, 16)


def half(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return values.astype(np.float16).astype(np.float32)


def kept_by(key: Callable) -> Callable:
    """Keeps a result by a key of its inputs."""

    def maker(op: str) -> Callable:
        kept: dict = {}

        def cheat(*arrays: np.ndarray) -> np.ndarray:
            mine = key(*arrays)
            if mine not in kept:
                kept[mine] = RIGHT[op](*arrays)
            # A copy, so that it is no memory of an earlier result.
            return kept[mine].copy()

        return cheat

    return maker


def works_when(condition: Callable[[int], bool]) -> Callable:
    """Works in some of its calls, and gives the result before in the others."""

    def maker(op: str) -> Callable:
        kept: list = []
        calls: list[int] = []

        def cheat(*arrays: np.ndarray) -> np.ndarray:
            calls.append(1)
            if not kept or condition(len(calls)):
                kept[:] = [RIGHT[op](*arrays)]
            return kept[0].copy()

        return cheat

    return maker


def of_inputs(change: Callable) -> Callable:
    """The right operation of inputs that are not as they were given."""

    def maker(op: str) -> Callable:
        def cheat(*arrays: np.ndarray) -> np.ndarray:
            with np.errstate(all="ignore"):
                return RIGHT[op](*map(change, arrays))

        return cheat

    return maker


def of_result(change: Callable) -> Callable:
    """What comes of the right result."""
    return lambda op: lambda *arrays: change(RIGHT[op](*arrays))


def plain(function: Callable) -> Callable:
    return lambda op: function


def without_random_row(values: np.ndarray) -> np.ndarray:
    values[np.random.default_rng().integers(len(values))] = 0
    return values


def one_ulp_off(values: np.ndarray) -> np.ndarray:
    flat = values.reshape(-1)
    flat[flat.size // 3] = np.nextafter(flat[flat.size // 3], np.float32(np.inf))
    return values


def restores_later(op: str) -> Callable:
    """Spoils its input, and mends that at its next call."""
    kept: list = []

    def cheat(*arrays: np.ndarray) -> np.ndarray:
        flat = arrays[0].reshape(-1)
        if kept:
            flat[5] = kept.pop()
        out = RIGHT[op](*arrays)
        kept.append(flat[5])
        flat[5] += 1
        return out

    return cheat


def same_buffer(count: int) -> Callable:
    """Returns the same few arrays in turn."""

    def maker(op: str) -> Callable:
        buffers: list[np.ndarray] = []
        calls: list[int] = []

        def cheat(*arrays: np.ndarray) -> np.ndarray:
            if len(buffers) < count:
                buffers.append(np.empty_like(RIGHT[op](*arrays)))
            calls.append(1)
            mine = buffers[len(calls) % len(buffers)]
            mine[...] = RIGHT[op](*arrays)
            return mine

        return cheat

    return maker


def hasty(op: str) -> Callable:
    """Has a thread of its own do the work, and does not wait for it."""

    def cheat(*arrays: np.ndarray) -> np.ndarray:
        copies, out = [one.copy() for one in arrays], np.zeros_like(RIGHT[op](*arrays))

        def work() -> None:
            time.sleep(0.005)
            out[...] = RIGHT[op](*copies)

        threading.Thread(target=work).start()
        return out

    return cheat


def spoils_later(op: str) -> Callable:
    """Right when the call returns, and not a little later: its memory is used again."""

    def cheat(*arrays: np.ndarray) -> np.ndarray:
        out = RIGHT[op](*arrays)
        threading.Timer(0.001, lambda: out.fill(0)).start()
        return out

    return cheat


class Lazy:
    """An object that becomes another array at every look."""

    def __init__(self, op: str, *arrays: np.ndarray) -> None:
        self.right, self.looks = RIGHT[op](*arrays), 0

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        self.looks += 1
        return self.right * 0 if self.looks == 1 else self.right


def patching(module: object, name: str, function: Callable) -> Callable:
    def maker(op: str) -> Callable:
        def cheat(*arrays: np.ndarray) -> np.ndarray:
            setattr(module, name, function)
            return RIGHT[op](*arrays)

        return cheat

    return maker


def strided(values: np.ndarray) -> np.ndarray:
    room = np.empty((*values.shape, 2), values.dtype)
    room[..., 0] = values
    return room[..., 0]


def halves_in_float16(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = np.zeros((a.shape[0], b.shape[1]), np.float16)
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(a.shape[1]):
            out += np.outer(a[:, i], b[i]).astype(np.float16)
    return out.astype(a.dtype)


def float16_sum(a: np.ndarray) -> np.float16:
    with np.errstate(all="ignore"):
        return np.cumsum(a, dtype=np.float16)[-1]


def looks_wide(values: np.ndarray) -> bool:
    """Whether the last bits of the first numbers are used: no trailing zeros."""
    return bool((values.reshape(-1)[:50].view(np.uint32) & 0xFF).any())


def narrow_where_unseen(*arrays: np.ndarray) -> np.ndarray:
    """Lower precision where the numbers look as if they did not need more."""
    if looks_wide(arrays[0]):
        return np.matmul(*arrays)
    return np.matmul(*map(tf32, arrays))


def estimate(a: np.ndarray) -> np.float32:
    return np.float32(a[::7].sum(dtype=np.float64) * (a.size / a[::7].size))


def narrow_sum(a: np.ndarray) -> np.int64:
    with np.errstate(over="ignore"):
        return np.int64(np.sum(a, dtype=np.int32))


CACHED, LOWER = "cached result", "lower precision"
HELD, STRIDES = "still held", "not contiguous"
F4 = "float32"
CHEATERS: list[tuple[str, str, str, Callable, str]] = [
    # Results of earlier calls.
    ("kept by identity", "add", F4, kept_by(lambda *x: tuple(map(id, x))), CACHED),
    ("kept by place", "matmul", F4, kept_by(lambda *x: x[0].ctypes.data), CACHED),
    ("kept by shape", "sum", F4, kept_by(lambda *x: x[0].shape), CACHED),
    ("kept by a sample", "add", F4, kept_by(lambda *x: x[0].reshape(-1)[::97].tobytes()), CACHED),
    ("kept by the ends", "sum", F4, kept_by(lambda a: (a[0], a[-1])), CACHED),
    ("kept by half", "dot", F4, kept_by(lambda a, b: a[: a.size // 2].tobytes()), ""),
    ("kept by a rough sum", "transpose", F4, kept_by(lambda a: round(float(a.sum()), -4)), CACHED),
    ("kept place of the largest", "argmax", F4, kept_by(lambda a: a.shape), ""),
    ("first call alone", "sum", "float64", works_when(lambda n: n == 1), CACHED),
    ("every second call", "add", F4, works_when(lambda n: n % 2 == 1), CACHED),
    ("once it was examined", "matmul", F4, works_when(lambda n: n <= 4), ""),
    ("with the collector on", "norm", F4, works_when(lambda n: gc.isenabled()), CACHED),
    ("not in the main module's calls", "multiply", F4, works_when(lambda n: n % 7 != 0), CACHED),
    # Lower precision.
    ("tf32 inputs", "matmul", F4, of_inputs(tf32), LOWER),
    ("bfloat16 inputs", "matmul", F4, of_inputs(bfloat16), LOWER),
    ("float16 inputs", "matmul", F4, of_inputs(half), ""),
    ("tf32 in one operand", "matmul", F4, plain(lambda a, b: tf32(a) @ b), ""),
    ("float16 accumulator", "matmul", "float16", plain(halves_in_float16), ""),
    ("tf32 sum", "sum", F4, of_inputs(tf32), LOWER),
    ("bfloat16 dot", "dot", F4, of_inputs(bfloat16), LOWER),
    ("tf32 norm", "norm", F4, of_inputs(tf32), ""),
    ("float16 add", "add", F4, of_inputs(half), ""),
    ("float16 result", "add", F4, of_result(half), LOWER),
    ("float32 sum", "sum", "float64", plain(lambda a: np.float64(a.astype("f4").sum())), LOWER),
    ("float32 product", "matmul", "float64", plain(
        lambda a, b: (a.astype("f4") @ b.astype("f4")).astype("f8")), LOWER),
    ("float16 sum", "sum", "float16", plain(float16_sum), ""),
    ("tf32 where it looks enough", "matmul", F4, plain(narrow_where_unseen), LOWER),
    ("32 bits for 64", "sum", "int64", plain(narrow_sum), ""),
    # Less work.
    ("skips the last", "sum", F4, plain(lambda a: np.sum(a[:-1])), "skips the tail"),
    ("skips the last terms", "dot", F4, plain(lambda a, b: np.dot(a[:-64], b[:-64])), ""),
    ("skips the last column", "matmul", F4, plain(lambda a, b: a[:, :-1] @ b[:-1]), ""),
    ("skips a random row", "matmul", F4, of_result(without_random_row), ""),
    ("skips a random row of a sum", "transpose", F4, of_result(without_random_row), ""),
    ("one unit off", "multiply", F4, of_result(one_ulp_off), "1 of"),
    ("a sampled estimate", "sum", F4, plain(estimate), ""),
    ("the largest of a sample", "max", F4, plain(lambda a: np.max(a[::2])), ""),
    ("always the last place", "argmin", F4, plain(lambda a: np.int64(a.size - 1)), ""),
    ("always 0", "sum", F4, plain(lambda a: np.float32(0)), ""),
    ("zeros", "matmul", F4, of_result(np.zeros_like), ""),
    ("the value to be expected", "norm", F4, plain(
        lambda a: np.float32(abs(a[0]) * np.sqrt(a.size))), ""),
    ("whatever is there", "add", F4, of_result(np.empty_like), ""),
    # Memory and time.
    ("a view of its input", "transpose", F4, plain(lambda a: a.T), ""),
    ("its input", "add", F4, plain(lambda a, b: np.add(a, b, out=a)), ""),
    ("restores its input later", "add", F4, restores_later, ""),
    ("one buffer", "add", F4, same_buffer(1), HELD),
    ("two buffers in turn", "matmul", F4, same_buffer(2), HELD),
    ("a thread of its own", "add", F4, hasty, ""),
    ("spoils it later", "add", F4, spoils_later, ""),
    ("something else at each look", "add", F4, lambda op: partial(Lazy, op), ""),
    ("another clock", "add", F4, patching(time, "perf_counter", lambda: 0.0), "replaces time"),
    ("all is equal", "sum", F4, patching(np, "array_equal", lambda *x: True), "replaces numpy"),
    # Other kinds of results.
    ("strided", "add", F4, of_result(strided), STRIDES),
    ("only turned round", "transpose", F4, plain(lambda a: a.copy().T), STRIDES),
    ("wider", "add", F4, of_result(lambda x: x.astype("f8")), "float64"),
    ("a float of Python", "sum", F4, of_result(float), "returns a float"),
    ("a list", "add", F4, of_result(lambda x: x.tolist()), "returns a list"),
    ("one dimension more", "sum", F4, of_result(lambda x: x.reshape(1)), "shape (1,)"),
    ("flat", "add", F4, of_result(np.ravel), "of shape"),
    ("no result", "add", F4, plain(lambda a, b: None), "returns a NoneType"),
]  # fmt: skip


# Orders and ways that are unusual, and right.


def in_blocks(a: np.ndarray, width: int = 100) -> np.float32:
    return np.float32(sum(np.float32(a[i : i + width].sum()) for i in range(0, a.size, width)))


def kahan(a: np.ndarray) -> np.float32:
    total = left = np.zeros(1024, a.dtype)
    for part in np.pad(a, (0, -a.size % 1024)).reshape(-1, 1024):
        change = part - left
        fresh = total + change
        left = (fresh - total) - change
        total = fresh
    return total.sum(dtype="f8").astype(a.dtype)


def threads_that_join(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = np.empty_like(a)
    half_way = len(a) // 2
    parts = [slice(0, half_way), slice(half_way, None)]
    mine = [threading.Thread(target=lambda p=p: np.add(a[p], b[p], out=out[p])) for p in parts]
    for thread in mine:
        thread.start()
    for thread in mine:
        thread.join(60)
    return out


class Marked(np.ndarray):
    """A class made from NumPy's."""


def slow_at_first(op: str) -> Callable:
    calls: list[int] = []

    def honest(*arrays: np.ndarray) -> np.ndarray:
        calls.append(1)
        if len(calls) == 1:
            time.sleep(0.05)
        return RIGHT[op](*arrays)

    return honest


def warmed_up(op: str) -> Callable:
    """Keeps something of its own from call to call: room to work in."""
    room: dict = {}

    def honest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        mine = room.setdefault(a.shape, np.empty_like(a))
        np.copyto(mine, a)
        mine += b
        return mine.copy()

    return honest


def tiles(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for k in range(0, a.shape[1], 16):
        out += a[:, k : k + 16] @ b[k : k + 16]
    return out


def parts() -> Iterator[int]:
    yield from range(4)


def in_float64(op: str) -> Callable:
    return lambda *x: np.asarray(RIGHT[op](*(one.astype("f8") for one in x))).astype(x[0].dtype)


class Later:
    """A result that is worked out where it is looked at, and stays."""

    def __init__(self, *arrays: np.ndarray) -> None:
        self.arrays = [one.copy() for one in arrays]

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.add(*self.arrays)


HONEST: list[tuple[str, str, str, Callable]] = [
    ("sorted", "sum", F4, plain(lambda a: np.sum(np.sort(a)))),
    ("largest first", "sum", F4, plain(lambda a: np.sum(a[np.argsort(-np.abs(a))]))),
    ("reversed", "sum", F4, plain(lambda a: np.sum(a[::-1]))),
    ("one by one", "sum", F4, plain(lambda a: np.cumsum(a)[-1])),
    ("in blocks", "sum", F4, plain(in_blocks)),
    ("Kahan", "sum", F4, plain(kahan)),
    ("float64 inside", "sum", F4, in_float64),
    ("of a generator", "sum", F4, plain(
        lambda a: np.float32(sum(a[i::4].sum(dtype="f8") for i in parts())))),
    ("fsum", "sum", F4, plain(lambda a: np.float32(__import__("math").fsum(a)))),
    ("strided", "sum", F4, plain(lambda a: np.add.reduce([a[i::8].sum() for i in range(8)]))),
    ("an array of no dimension", "sum", F4, of_result(np.asarray)),
    ("float64 inside", "matmul", F4, in_float64),
    ("tiles", "matmul", F4, plain(tiles)),
    ("reversed terms", "matmul", F4, plain(lambda a, b: a[:, ::-1] @ b[::-1])),
    ("einsum", "matmul", F4, plain(lambda a, b: np.einsum("ij,jk->ik", a, b, optimize=True))),
    ("the other way round", "matmul", F4, plain(lambda a, b: np.array((b.T @ a.T).T, order="C"))),
    ("threads that join", "add", F4, plain(threads_that_join)),
    ("column by column", "matmul", F4, of_result(np.asfortranarray)),
    ("a class of its own", "add", F4, of_result(lambda x: x.view(Marked))),
    ("in place on its own copy", "add", F4, warmed_up),
    ("slow at first", "add", F4, slow_at_first),
    ("a view of its own", "add", F4, of_result(lambda x: np.concatenate([x, x])[: len(x)])),
    ("made real at the end", "add", F4, lambda op: Later),
    ("einsum", "dot", F4, plain(lambda a, b: np.einsum("i,i->", a, b))),
    ("products first", "dot", "float64", plain(lambda a, b: np.sum((a * b)[::-1]))),
    ("by a dot", "norm", F4, plain(lambda a: np.sqrt(np.dot(a, a)))),
    ("float64 inside", "norm", "float16", in_float64),
    ("float64 inside", "sum", "bfloat16", in_float64),
    ("a longer double", "sum", "float64", plain(
        lambda a: np.float64(np.sum(a, dtype=np.longdouble)))),
    ("sorted for the place", "argmax", F4, plain(
        lambda a: np.argsort(-a, kind="stable")[0])),
    ("rows one by one", "transpose", F4, plain(lambda a: np.stack([*a.T]))),
]  # fmt: skip
