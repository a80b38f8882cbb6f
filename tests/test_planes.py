"""What goes before float32 products of tensor cores, on the simulator: the way that is chosen, and
the planes that operands are split into, multiplied here by NumPy in the tensor cores' stead."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from test_simulator import BODY_FLAGS, C_FLAGS, CHECKS, ROOT, compile_all, cuda_headers

HALVES, BFLOATS, FLOATS = 0, 1, 2
LINES, MEASURED, SPLIT, CHUNK, SIDE = 32, 1024, 128, 32, 128
MEASURED_LINE = np.dtype(
    [("top", "u4"), ("bottom", "u4"), ("count", "u4"), ("unused", "u4"), ("logs", "u8")]
)
FILLED = 0x7E00
UNIT = 2.0**-24


FOUND = np.dtype(
    [("drop", "u8", 2), ("range", "u4", 2), ("zeros", "u4", 2), ("odd", "u4"), ("unused", "u4")]
)
ROOM = ("found", "arrivals", "measured", "exponents", "a_planes", "b_planes")


class Work(ctypes.Structure):
    """gk_planes_work of cuda/matmul/planes.cuh."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("c", "a", "b")),
        *((name, ctypes.c_uint64) for name in ("a_line", "a_depth", "b_line", "b_depth")),
        *((name, ctypes.c_void_p) for name in ROOM),
        *((name, ctypes.c_uint) for name in ("m", "n", "k", "least")),
    ]


@pytest.fixture(scope="module")
def run_part(tmp_path_factory: pytest.TempPathFactory) -> Any:
    headers = cuda_headers()
    if headers is None:
        pytest.skip("CUDA headers not installed")
    folder: Path = tmp_path_factory.mktemp("planes")
    includes = [f"-I{ROOT / name}" for name in ("csrc", "cuda", "cuda/sim")]
    sources = [*(ROOT / "cuda/sim").glob("*.c"), ROOT / "tests/planes.c"]
    sources += [ROOT / "csrc/base/lock.c"]
    commands = [
        ["gcc", *C_FLAGS, "-O2", "-fPIC", *includes, "-c", str(source), "-o", f"{source.stem}.o"]
        for source in sources
    ]
    family = ["-DGK_FAMILY=matmul_14_planes", '-DGK_FAMILY_FILE="matmul/14_planes.cu"']
    flags = [*BODY_FLAGS, "-O2", "-fPIC", CHECKS, "-Wno-unknown-pragmas", "-DGK_SIM", *family]
    bodies = ["-isystem", str(headers), "-c", str(ROOT / "cuda/sim/bodies.cpp"), "-o", "bodies.o"]
    commands.append(["g++", *flags, *includes, *bodies])
    compile_all(commands, folder)
    objects = [command[-1] for command in commands]
    compile_all([["gcc", "-shared", *objects, "-o", "planes.so", "-pthread"]], folder)
    function = ctypes.CDLL(str(folder / "planes.so")).run_part
    function.restype = ctypes.c_char_p
    return function


class Product:
    """A product's memory, and its kernels run one after another."""

    def __init__(self, run_part: Any, a: np.ndarray, b: np.ndarray, least: int = HALVES) -> None:
        (m, k), n = a.shape, b.shape[1]
        chunks = -(-k // CHUNK)
        self.run_part, self.a, self.b, self.k = run_part, a, b, k
        self.c = np.full((m, n), np.nan, np.float32)
        self.measured = np.zeros(m + n, MEASURED_LINE)
        self.found = np.zeros(1, FOUND)
        self.arrivals = np.zeros(-(-m // LINES) + -(-n // LINES), np.uint32)
        self.exponents = np.zeros(m + n, np.int32)
        self.planes = [np.full(lines * chunks * CHUNK * 3, FILLED, np.uint16) for lines in (m, n)]
        at = [array.ctypes.data for array in (self.c, a, b)]
        room = (self.found, self.arrivals, self.measured, self.exponents, *self.planes)
        steps = [*(step // 4 for step in a.strides), b.strides[1] // 4, b.strides[0] // 4]
        self.work = Work(*at, *steps, *(x.ctypes.data for x in room), m, n, k, least)

    def run(self, name: str, blocks: int) -> None:
        problem = self.run_part(
            f"gk_matmul_{name}_f32".encode(), blocks, 256, ctypes.byref(self.work)
        )
        assert problem is None, problem.decode()

    def prepare(self) -> int:
        m, n = self.c.shape
        lines = -(-m // LINES) + -(-n // LINES)
        self.run("measure", lines * -(-self.k // MEASURED))
        self.run("split", lines * -(-self.k // SPLIT))
        return self.way()

    def way(self) -> int:
        """Which kernel goes to work: those that split leave behind what they were filled with."""
        self.run("floats", -(-self.c.shape[0] // SIDE) * -(-self.c.shape[1] // SIDE))
        if not np.isnan(self.c).all():
            return FLOATS
        chunks = -(-self.k // CHUNK)
        halves = self.planes[0][: self.c.shape[0] * chunks * CHUNK * 3]
        return BFLOATS if halves[-1] != FILLED else HALVES

    def parts(self, operand: int, way: int) -> list[np.ndarray]:
        """The planes of A, or of B transposed, in float64, as they were scaled."""
        count, dtype = (2, np.float16) if way == HALVES else (3, ml_dtypes.bfloat16)
        lines, chunks = self.c.shape[operand], -(-self.k // CHUNK)
        whole = self.planes[operand][: lines * chunks * CHUNK * count].view(dtype)
        split = whole.reshape(lines, chunks, count, CHUNK).swapaxes(1, 2).astype(np.float64)
        assert not split.reshape(lines, count, -1)[:, :, self.k :].any(), "zeros behind the end"
        return list(split.reshape(lines, count, -1)[:, :, : self.k].swapaxes(0, 1))

    def error(self, way: int) -> float:
        """The largest |e| / (|A| |B|) of the products that are made of the planes, in 2^-24."""
        a, b = self.parts(0, way), self.parts(1, way)
        if way == HALVES:
            product = a[0] @ b[0].T + (a[1] @ b[0].T + a[0] @ b[1].T) / 2048
        else:
            pairs = ((0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0))
            product = sum(a[i] @ b[j].T for i, j in pairs)
        top = 14 if way == HALVES else 40
        tops = self.measured["top"].view(np.float32)
        shift = np.where(tops > 0, top + 1 - np.frexp(tops)[1], 0).astype(np.int64)
        m = self.c.shape[0]
        product = np.ldexp(product, -(shift[:m, None] + shift[m:]))
        a64, b64 = self.a.astype(np.float64), self.b.astype(np.float64)
        scale = np.abs(a64) @ np.abs(b64)
        error = np.abs(product - a64 @ b64)
        assert not error[scale == 0].any()
        return float((error[scale > 0] / scale[scale > 0]).max(initial=0.0) / UNIT)


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def laid(values: np.ndarray, across: bool) -> np.ndarray:
    return np.ascontiguousarray(values.T).T if across else values


@pytest.mark.parametrize("way", [HALVES, BFLOATS])
@pytest.mark.parametrize("across", [(False, False), (True, False), (False, True), (True, True)])
def test_planes_hold_what_was_split(run_part, across, way):
    for m, k, n in ((1, 64, 1), (65, 97, 64), (3, 700, 130), (70, 66, 5), (64, 129, 63)):
        a, b = laid(normal(m, k), across[0]), laid(normal(k, n, seed=2), across[1])
        product = Product(run_part, a, b, way)
        assert product.prepare() == way
        lines = product.measured
        magnitudes = [np.abs(a).max(1), np.abs(b).max(0)]
        np.testing.assert_array_equal(lines["top"].view(np.float32), np.concatenate(magnitudes))
        assert (lines["count"] == k).all()
        assert product.error(way) < (8 if way == HALVES else 0.3), (m, k, n)


def graded(span: float, k: int) -> np.ndarray:
    return np.exp2(np.linspace(-span, span, k)).astype(np.float32)


def along(a: np.ndarray, b: np.ndarray, span: float) -> tuple[np.ndarray, np.ndarray]:
    """A D and D^-1 B."""
    scale = graded(span, len(b))
    return a * scale, b / scale[:, None]


def split_up(a: np.ndarray, b: np.ndarray, small: float) -> tuple[np.ndarray, np.ndarray]:
    """A's last eighth is small, and all else of B zeros."""
    at = len(b) * 7 // 8
    scale = np.where(np.arange(len(b)) < at, 2.0**30, small * 2.0**30)
    return (a * scale).astype(np.float32), np.where(np.arange(len(b))[:, None] < at, 0, b)


WAYS = {
    "normal": (HALVES, lambda a, b: (a, b)),
    "all of one size": (HALVES, lambda a, b: (np.ones_like(a), np.ones_like(b))),
    "nothing but zeros": (HALVES, lambda a, b: (0 * a, b)),
    "half zeros": (HALVES, lambda a, b: (a * (a > 0), b)),
    "both half zeros": (BFLOATS, lambda a, b: (a * (a > 0), b * (b > 0))),
    "small where the others are zeros": (BFLOATS, lambda a, b: split_up(a, b, 2.0**-60)),
    "far too small there": (FLOATS, lambda a, b: split_up(a, np.ldexp(b, 60), 2.0**-145)),
    "few products": (BFLOATS, lambda a, b: (a * (np.abs(a) > 1.5), b)),
    "rows of all sizes": (HALVES, lambda a, b: (a * graded(120, len(a))[:, None], b)),
    "subnormal": (HALVES, lambda a, b: (a * np.float32(2.0**-135), b)),
    "huge": (HALVES, lambda a, b: (a * np.float32(2.0**120), b * np.float32(2.0**-30))),
    "graded a little": (HALVES, lambda a, b: along(a, b, 6)),
    "graded": (BFLOATS, lambda a, b: along(a, b, 20)),
    "graded far": (BFLOATS, lambda a, b: along(a, b, 60)),
    "too far for any": (FLOATS, lambda a, b: along(a, b, 110)),
}


@pytest.mark.parametrize("case", WAYS)
@pytest.mark.parametrize("across", [False, True])
def test_a_way_that_can_hold_the_operands(run_part, case, across):
    way, change = WAYS[case]
    a, b = change(normal(90, 600), normal(600, 70, seed=2))
    product = Product(run_part, laid(a, across), laid(b, across))
    assert product.prepare() == way
    if way != FLOATS:
        assert product.error(way) < 2


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("operand", [0, 1])
def test_what_is_not_finite_goes_to_cuda_cores(run_part, odd, operand):
    a, b = normal(90, 100), normal(100, 70, seed=2)
    (a, b)[operand][(17, 33) if operand == 0 else (99, 69)] = odd
    product = Product(run_part, a, b)
    assert product.prepare() == FLOATS
    assert (product.planes[0] == FILLED).all(), "nothing is split"
    with np.errstate(invalid="ignore"):
        want = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(product.c, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("across", [False, True])
def test_cuda_cores_take_any_layout(run_part, across):
    for m, k, n in ((1, 1, 1), (129, 9, 131), (200, 31, 3)):
        a, b = laid(normal(m, k), across), laid(normal(k, n, seed=2), across)
        product = Product(run_part, a, b, FLOATS)
        product.run("floats", -(-m // SIDE) * -(-n // SIDE))
        np.testing.assert_allclose(product.c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-5)


def test_cuda_cores_leave_at_once_where_planes_hold_all(run_part):
    product = Product(run_part, normal(30, 70), normal(70, 20, seed=2))
    assert product.prepare() == HALVES
    assert np.isnan(product.c).all()
