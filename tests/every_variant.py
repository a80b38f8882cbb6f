"""Launch every kernel variant that runs here once per awkward size, on device arrays.

What compute-sanitizer is run over: short, and with nothing but our own launches in it.

    compute-sanitizer --tool memcheck python tests/every_variant.py [OPERATION ...]

"users", which is not among them where none is named, are kernels that users might write.
"""

import sys

import numpy as np

import gpukern as gk
from gpukern import _core
from gpukern.catalogue import Variant

LENGTHS = (1, 2, 3, 7, 8, 9, 31, 255, 257, 1023, 4097, 70_001)
MATRICES = ((1, 1, 1), (1, 33, 2), (31, 32, 33), (65, 7, 129))
RUNS_OF = ((3, 17_001), (70, 65), (9000, 3), (2200, 33), (1100, 64), (1, 1))
VIEWS = [(shape, view) for shape in RUNS_OF for view in (np.s_[:], np.s_[::-1, ::-1])]
VIEWS += [
    ((70, 65), np.s_[3:, 1:]),
    ((2000, 40), np.s_[:, :33]),
    ((3, 40_000), np.s_[::2, :32_000]),
]
# More than a cache holds, in another order than it is added up in: the memory, the order of axes,
# those that are reduced.
SHUFFLED = (
    ((13, 7, 9, 89, 31), (0, 1, 2, 3, 4), (0, 2, 3)),
    ((2, 161, 448, 2, 4), (4, 2, 0, 3, 1), (1, 2)),
    ((7, 6, 2, 14, 33, 55), (1, 4, 2, 5, 3, 0), (2, 3)),
)
# Rows that a copy engine can fetch, more of them than a tile has, and more stages than there are.
FETCHED = (136, 264, 392)


def random_array(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Small whole numbers of both signs, where the dtype has two."""
    values = np.random.default_rng(7).integers(-8, 8, shape)
    if dtype.kind in "ub":
        values = values > 0 if dtype.kind == "b" else values & 127
    return values.astype(dtype)


def signs(a: np.ndarray) -> np.ndarray:
    return a if a.dtype.kind == "b" else np.sign(a).astype(a.dtype)


def check(name: str, got: gk.DeviceArray, expected: np.ndarray, tolerance: float) -> None:
    error = np.abs(got.to_host().astype(np.float64) - expected.astype(np.float64))
    if error.size and not error.max() <= tolerance:
        raise SystemExit(f"{name}: wrong by {error.max()}")


def run_elementwise(variant: Variant) -> None:
    operation = getattr(gk, variant.op)
    dtype = gk.empty(0, variant.dtype).dtype
    count = {"scale_add": 3, **dict.fromkeys(ONE_OPERAND, 1)}.get(variant.op, 2)
    bounds = {"min": 2, "max": 5} if variant.op == "clip" else {}
    for length in LENGTHS:
        operands = [random_array((length,), dtype) for _ in range(count)]
        there = [gk.to_device((np.abs(operand) + 1).astype(dtype)) for operand in operands]
        again = operation(*(operand.to_host() for operand in there), **bounds)
        out = gk.empty(length, again.dtype)
        operation(*there, **bounds, out=out, variant=variant.variant)
        check(str(variant), out, again, 0.0)
    wide = gk.to_device(np.ones((64, 65), dtype))
    operation(*[wide[:, 1:]] * (count - 1), wide[0, 1:], **bounds, variant=variant.variant)


def run_sum(variant: Variant) -> None:
    for length in LENGTHS:
        a = random_array((length,), gk.empty(0, variant.dtype).dtype)
        got = gk.sum(gk.to_device(a), variant=variant.variant)
        exact = a.astype(np.int64).sum()
        check(str(variant), got, np.asarray(exact), abs(float(exact)) * 2.0**-7)
    if variant.variant in ("single_launch", "compensated"):
        run_reduction(variant)
        run_shuffled(variant)


def run_reduction(variant: Variant) -> None:
    """Along both axes and over all: rows, short rows, columns, and segments of each, of arrays in
    one run and of others."""
    for shape, view in VIEWS:
        whole = random_array(shape, gk.empty(0, variant.dtype).dtype)
        if variant.op == "prod":
            whole = signs(whole)
        there, a = gk.to_device(whole)[view], whole[view]
        for axis in (None, 0, 1):
            got = getattr(gk, variant.op)(there, axis, variant=variant.variant)
            wide = a.astype(np.float64)
            of_numpy = np.linalg.norm if variant.op == "norm" else getattr(np, variant.op)
            exact = of_numpy(wide.ravel()) if axis is None else of_numpy(wide, axis=axis)
            check(str(variant), got, exact, 2.0**-7 * max(float(np.abs(exact).max()), 1.0))


def run_shuffled(variant: Variant) -> None:
    """Whole numbers that are small, whose sums are exact; on a GPU, where that takes no time."""
    for shape, order, axes in SHUFFLED if _core.backend() == "cuda" else ():
        dtype = gk.empty(0, variant.dtype).dtype
        whole = random_array((8 // dtype.itemsize, *shape), dtype)
        a = whole.transpose(0, *(axis + 1 for axis in order))
        axis = tuple(each + 1 for each in axes)
        got = gk.max(gk.to_device(whole).transpose(0, *(each + 1 for each in order)), axis)
        check(f"max of {shape} {dtype}", got, a.astype(np.float64).max(axis), 0.0)
        got = gk.sum(gk.to_device(whole).transpose(0, *(each + 1 for each in order)), axis)
        exact = a.astype(np.float64).sum(axis)
        check(str(variant), got, exact, 2.0**-7 * max(float(np.abs(exact).max()), 1.0))


def run_dot(variant: Variant) -> None:
    for length in (*LENGTHS[:-1], 40_001):  # float16 counts that far
        a = signs(random_array((length,), gk.empty(0, variant.dtype).dtype))
        got = gk.dot(gk.to_device(a), gk.to_device(a), variant=variant.variant)
        exact = np.dot(a.astype(np.int64), a.astype(np.int64)).astype(a.dtype)
        check(str(variant), got, exact, 2.0**-7 * abs(float(exact)))


def run_matmul(variant: Variant) -> None:
    sizes = MATRICES if _core.backend() == "sim" else (*MATRICES, FETCHED)
    for m, k, n in sizes:
        a, b = (random_array(shape, gk.empty(0, variant.dtype).dtype) for shape in ((m, k), (k, n)))
        whole = a.dtype.kind in "iub"
        exact = np.matmul(a, b) if whole else a.astype(np.float64) @ b.astype(np.float64)
        room = 0.0 if whole else 2.0**-7 * float(np.abs(exact).max())
        x, y = gk.to_device(a), gk.to_device(b)
        check(str(variant), gk.matmul(x, y, variant=variant.variant), exact, room)
        x, y = (gk.to_device(each.T.copy()).T for each in (a, b))
        check(f"{variant} transposed", gk.matmul(x, y, variant=variant.variant), exact, room)
        if variant.dtype in ("int8", "uint8", "int16", "uint16"):
            exact = np.matmul(a, b, dtype=np.int32)
            check(f"{variant} to int32", gk.matmul(x, y, dtype="int32"), exact, 0.0)


def run_few_vectors(dtype: np.dtype) -> int:
    """They have kernels of their own, for lines side by side and for lines one below the other."""
    for m, k, n in ((70, 1024, 1), (9, 4104, 3), (1, 40, 64), (16, 1100, 40)):
        a, b = random_array((m, k), dtype), random_array((k, n), dtype)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        room = 2.0**-7 * float(np.abs(exact).max())
        x, y = gk.to_device(a), gk.to_device(b)
        check(f"{dtype} few vectors", gk.matmul(x, y), exact, room)
        x, y = (gk.to_device(each.T.copy()).T for each in (a, b))
        check(f"{dtype} few vectors, transposed", gk.matmul(x, y), exact, room)
    return 3


def run_small() -> int:
    """They have a kernel of their own, alone and in stacks, transposed or not."""
    for count, m, k, n in (
        (1, 64, 64, 64),
        (1, 33, 9, 70),
        (40, 8, 8, 8),
        (7, 100, 7, 100),
        (3, 31, 37, 41),
    ):
        a, b = (
            random_array((count, m, k), np.dtype("f4")),
            random_array((count, k, n), np.dtype("f4")),
        )
        x, y = gk.to_device(a), gk.to_device(b)
        check("small", gk.matmul(x, y), a @ b, 0.0)
        x, y = (gk.to_device(e.swapaxes(1, 2).copy()).transpose((0, 2, 1)) for e in (a, b))
        check("small, transposed", gk.matmul(x, y), a @ b, 0.0)
    return 1


def run_transpose(variant: Variant) -> None:
    for m, k, _ in MATRICES:
        a = random_array((m, k), gk.empty(0, variant.dtype).dtype)
        check(str(variant), gk.transpose(gk.to_device(a), variant=variant.variant), a.T, 0.0)


SCALED = """
__constant__ float table[4];
__global__ void scaled(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = table[i & 3] * x[i];
}
"""


def run_boxes(dtype: np.dtype) -> int:
    """Skinny matrices both ways, and runs of 16 bytes."""
    long = (1 << 20) // (3 * dtype.itemsize) + 5
    for shape in ((long, 3), (3, long), (3, long // 2, 16 // dtype.itemsize)):
        a = random_array(shape, dtype)
        axes = (1, 0, *range(2, len(shape)))
        check(f"boxes of {dtype}", gk.transpose(gk.to_device(a), axes), a.transpose(axes), 0.0)
    return 1


def run_expression(dtype: np.dtype) -> int:
    """Contiguous ones, and lines that start anywhere, are apart, turned round or one for all."""
    saxpy = gk.elementwise("T a, T x, T y, T z", "z = a * x + y")
    a = random_array((64, 65), dtype)
    there, two = gk.to_device(a), dtype.type(2)
    for length in LENGTHS:
        x = random_array((length,), dtype)
        exact = 3 * x.astype(np.float64)
        check("expression", saxpy(two, *[gk.to_device(x)] * 2), exact, 0.0)
        check("expression of the host", gk.to_device(saxpy(two, x, x)), exact, 0.0)
    for view in (np.s_[:, 1:], np.s_[:, ::2], np.s_[::-1, 3:], np.s_[5:6], np.s_[:, 7:8]):
        exact = 3 * a[view].astype(np.float64)
        check("expression of a view", saxpy(two, there[view], there[view]), exact, 0.0)
    for view in (np.s_[5], np.s_[5:6], np.s_[:, 7:8], np.s_[:, ::-1]):
        exact = 2 * a[view].astype(np.float64) + a
        check("broadcast expression", saxpy(two, there[view], there), exact, 0.0)
    return 1


def run_expression_sums() -> int:
    distance = gk.reduction("T x, T y", "(x - y) * (x - y)", "a + b")
    for shape in ((3, 17_001), (70, 65), (9000, 3), (1, 1)):
        a = random_array(shape, np.dtype("f4"))
        for axis in (None, 0, 1):
            got = distance(gk.to_device(a), 1.0, axis=axis)
            exact = np.asarray(((a.astype("f8") - 1) ** 2).sum(axis=axis))
            check("reduction", got, exact, 2.0**-7 * float(exact.max()))
    return 1


def run_module() -> int:
    """A variable of the module, and arrays of both sides, small and large."""
    module = gk.compile(SCALED)
    table = np.float32([1, -2, 3, -4])
    module.symbol("table")[...] = table
    for length in (*LENGTHS, 1_000_003):
        x = random_array((length,), np.dtype("f4"))
        exact, out = np.resize(table, length) * x, np.empty_like(x)
        module.scaled.over(length)(x, gk.Out(out), length)
        check("kernel", gk.to_device(out), exact, 0.0)
        result = gk.empty(length)
        module.scaled.over(length)(gk.to_device(x), result, length)
        check("kernel", result, exact, 0.0)
    return 1


def run_woven(dtype: np.dtype) -> int:
    """Few lines that begin anywhere within a word, and one that is taken apart into such."""
    for lines, columns in ((2, 20_001), (3, 11_003), (11, 6007)):
        a = random_array((lines, columns + 3), dtype)
        there, turned = gk.to_device(a), gk.to_device(np.ascontiguousarray(a.T))
        for first in range(4):
            part = np.s_[:, first : columns + first // 2]
            check("woven", gk.transpose(there[part]), a[part].T, 0.0)
            check("taken apart", gk.transpose(turned[part[1]]), a[part], 0.0)
    return 1


def run_vectors_of_lines(dtype: np.dtype) -> int:
    """Two to four lines that lie on vectors, and end with what is none."""
    each = 16 // dtype.itemsize
    for lines, columns in ((2, 40_000), (3, 30_001), (4, 16_384 + each - 1)):
        pitch = -(-columns // each) * each
        a = random_array((lines, pitch), dtype)
        part, turned = gk.to_device(a)[:, :columns], np.ascontiguousarray(a[:, :columns].T)
        check("woven", gk.transpose(part), turned, 0.0)
        out = gk.empty(a.shape, dtype)[:, :columns]
        check("taken apart", gk.transpose(gk.to_device(turned), out=out), a[:, :columns], 0.0)
    return 1


def run_runs() -> int:
    """Contiguous copies, of whole vectors, of more, and of less than one."""
    for length in (15, 8191, 1 << 19, (1 << 20) + 1, (1 << 20) + 15):
        a = random_array((length,), np.dtype("u1"))
        check("run", gk.transpose(gk.to_device(a), (0,)), a, 0.0)
    return 1


def run_views(dtype: np.dtype) -> int:
    """Copies of elements that lie otherwise: by tiles over several axes, by vectors, by steps."""
    for shape, axes, key in (
        ((150, 26, 131), (2, 0, 1), np.s_[:, :, 1:]),
        ((37, 5, 26, 151), (3, 1, 0, 2), np.s_[1:]),
        ((601, 661), (1, 0), np.s_[:, ::2]),
        ((3001, 131), (0, 1), np.s_[:, 1:]),
        ((150, 1501), (0, 1), np.s_[:, 1:]),
        ((50, 41, 5, 37), (1, 0, 2, 3), np.s_[..., 2:]),
        ((70_001, 5), (1, 0), np.s_[::2]),
    ):
        a = random_array(shape, dtype)
        part = np.s_[key] if isinstance(key, tuple) else (key,)
        there = gk.to_device(a)[part]
        check("view", gk.transpose(there, axes), a[part].transpose(axes), 0.0)
        if dtype.itemsize <= 4 and axes[-1] != len(axes) - 1:
            got = gk.transpose(there, axes, variant="ragged")
            check("view by ragged tiles", got, a[part].transpose(axes), 0.0)
    return 1


def run_found_operands(dtype: np.dtype) -> int:
    """Sums with a second operand that is repeated or lies otherwise, of rows of any length."""
    for length in (3, 12, 29, 32):
        a = random_array((40, 30, 7, length + 1), dtype)
        b = random_array((40, 1, 7, length), dtype)
        exact = (a[..., 1:].astype(np.float64) + b).astype(dtype)
        check("found", gk.add(gk.to_device(a)[..., 1:], gk.to_device(b)), exact, 0.0)
        c = np.ascontiguousarray(b.T)
        check("found", gk.add(gk.to_device(a)[..., 1:], gk.to_device(c).T), exact, 0.0)
    return 1


ONE_OPERAND = ("clip", "negative", "abs", "sqrt", "exp")
REDUCTIONS = ("mean", "prod", "max", "min", "norm", "argmax", "argmin")
RUNS = {"sum": run_sum, "matmul": run_matmul, "transpose": run_transpose}
RUNS |= {"dot": run_dot, **dict.fromkeys(REDUCTIONS, run_reduction)}


def main(operations: list[str]) -> None:
    launched = 0
    for variant in gk.variants():
        if variant.runs and (not operations or variant.op in operations):
            RUNS.get(variant.op, run_elementwise)(variant)
            launched += 1
    if not operations or "matmul" in operations:
        for name in ("float32", "float64", "float16", "bfloat16"):
            launched += run_few_vectors(gk.empty(0, name).dtype)
        launched += run_small()
    if not operations or "transpose" in operations:
        before = _core.limit("tiled_copy", 1 << 12)  # tiles and lines also of what is little
        launched += run_runs()
        for name in ("uint8", "float16", "float32", "float64"):
            launched += run_boxes(gk.empty(0, name).dtype)
        launched += run_woven(gk.empty(0, "uint8").dtype) + run_woven(gk.empty(0, "float16").dtype)
        for name in ("uint8", "float16", "float32"):
            launched += run_vectors_of_lines(gk.empty(0, name).dtype)
            launched += run_views(gk.empty(0, name).dtype)
        _core.limit("tiled_copy", before)
    if not operations or "add" in operations:
        for name in ("float16", "float32", "int16", "float64"):
            launched += run_found_operands(gk.empty(0, name).dtype)
    if "users" in operations:
        launched += run_expression(np.dtype("f4")) + run_expression(np.dtype("f2"))
        launched += run_expression_sums() + run_module()
    gk.synchronize()
    print(f"{launched} variants right on {gk.device_info()[0].name}")


if __name__ == "__main__":
    main(sys.argv[1:])
