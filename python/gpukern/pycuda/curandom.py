"""pycuda.curandom: arrays of random numbers, made on the device.

Every number is made of its place and the seed alone (Philox4x32 with ten rounds), so the same seed
gives the same array whatever GPU there is. They are not the numbers that PyCUDA gives.
"""

import threading
from typing import Any

import numpy as np

from gpukern.pycuda.array import GPUArray
from gpukern.pycuda.declarations import dtype_to_ctype
from gpukern.pycuda.expressions import BLOCK, blocks_for, element_kernel
from gpukern.pycuda.gpuarray import to_gpu
from gpukern.pycuda.launching import launch

_PHILOX = """
struct pycuda_random { unsigned word[4]; };
/* Four words of a key and a counter, as Salmon and others give the generator (2011). */
static __device__ pycuda_random pycuda_philox(unsigned long long seed, unsigned long long at)
{
    unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
    unsigned c0 = (unsigned)at, c1 = (unsigned)(at >> 32), c2 = 0, c3 = 0;
    for (int round = 0; round < 10; round++) {
        unsigned long long a = 0xd2511f53ull * c0, b = 0xcd9e8d57ull * c2;
        unsigned n0 = (unsigned)(b >> 32) ^ c1 ^ k0, n2 = (unsigned)(a >> 32) ^ c3 ^ k1;
        c1 = (unsigned)b; c3 = (unsigned)a; c0 = n0; c2 = n2;
        k0 += 0x9e3779b9u; k1 += 0xbb67ae85u;
    }
    pycuda_random r = {{c0, c1, c2, c3}};
    return r;
}
/* From 0 on, below 1. */
static __device__ float pycuda_float(unsigned word) { return (word >> 8) * (1.0f / 16777216); }
static __device__ double pycuda_double(unsigned low, unsigned high) {
    return (((unsigned long long)high << 21) ^ (low >> 11)) * (1.0 / 9007199254740992.0);
}
static __device__ double pycuda_normal(double u, double v) {
    return sqrt(-2.0 * log(1.0 - u)) * cospi(2.0 * v);
}
static __device__ float pycuda_normal(float u, float v) {
    return sqrtf(-2.0f * logf(1.0f - u)) * cospif(2.0f * v);
}
"""
_RANDOM = "pycuda_random r = pycuda_philox(seed, offset + i);\n        "
_UNIFORM = {
    "float32": "dest[i] = pycuda_float(r.word[0])",
    "float64": "dest[i] = pycuda_double(r.word[0], r.word[1])",
    "int32": "dest[i] = (int)r.word[0]",
    "uint32": "dest[i] = r.word[0]",
}
_NORMAL = {
    "float32": "dest[i] = mean + by * pycuda_normal(pycuda_float(r.word[0]), "
    "pycuda_float(r.word[1]))",
    "float64": "dest[i] = mean + by * pycuda_normal(pycuda_double(r.word[0], r.word[1]), "
    "pycuda_double(r.word[2], r.word[3]))",
}


def _fill(
    name: str,
    data: GPUArray,
    table: dict[str, str],
    seed: int,
    offset: int,
    stream: Any,
    factors: tuple[float, ...] = (),
    operation: str = "{}",
) -> None:
    if data.dtype.name not in table:
        raise TypeError(f"{name}: makes {', '.join(table)}, not {data.dtype}")
    if not data.flags.forc:
        raise ValueError(f"{name}: takes a contiguous array")
    ctype = dtype_to_ctype(data.dtype)
    declared = [f"{ctype} *dest", "unsigned long long seed", "unsigned long long offset"]
    declared += [f"{ctype} {factor}" for factor, _ in zip(("mean", "by"), factors, strict=False)]
    line = operation.format(table[data.dtype.name])
    kernel = element_kernel(tuple(declared), _RANDOM + line, _PHILOX)
    values = (data, seed, offset, *(data.dtype.type(factor) for factor in factors), data.size)
    if data.size:
        launch(kernel, blocks_for(data.size), BLOCK, values, stream)


def rand(shape: Any, dtype: Any = np.float32, stream: Any = None) -> GPUArray:
    """Random numbers from 0 on, below 1; whole numbers of every size for int32 and uint32.

    ``numpy.random.seed`` decides which.
    """
    result = GPUArray(shape, dtype)
    seed = int(np.random.randint(2**31 - 1))  # noqa: NPY002 (so that NumPy's own seed decides)
    _fill("curandom.rand", result, _UNIFORM, seed, 0, stream)
    return result


def seed_getter_uniform(n: int) -> GPUArray:
    """One random seed, ``n`` times."""
    seed = np.random.randint(2**31 - 1)  # noqa: NPY002
    return to_gpu(np.full(n, seed, np.int32))


def seed_getter_unique(n: int) -> GPUArray:
    """``n`` random seeds."""
    return to_gpu(np.random.randint(2**31 - 1, size=n).astype(np.int32))  # noqa: NPY002


class _Generator:
    """Random numbers by a seed, each call's behind those of the call before.

    ``seed_getter`` takes a number and gives an array of as many seeds, of which the first counts;
    ``offset`` is how many numbers are left out at the beginning.
    """

    def __init__(self, seed_getter: Any = None, offset: int = 0) -> None:
        seeds = (seed_getter_uniform if seed_getter is None else seed_getter)(1)
        host = seeds.get() if isinstance(seeds, GPUArray) else np.asarray(seeds)
        self._seed = int(host.reshape(-1)[0]) & (2**64 - 1)
        self._offset = int(offset)
        self._lock = threading.Lock()

    def _next(self, count: int) -> int:
        with self._lock:
            offset = self._offset
            self._offset += count
        return offset

    def _fill(self, name: str, data: GPUArray, table: Any, stream: Any, *more: Any) -> None:
        called = f"{type(self).__name__}.{name}"
        _fill(called, data, table, self._seed, self._next(data.size), stream, *more)

    def fill_uniform(self, data: GPUArray, stream: Any = None) -> None:
        """Numbers from 0 on, below 1; whole numbers of every size for int32 and uint32."""
        self._fill("fill_uniform", data, _UNIFORM, stream)

    def fill_normal(self, data: GPUArray, stream: Any = None) -> None:
        """Numbers of mean 0 and standard deviation 1."""
        self._fill("fill_normal", data, _NORMAL, stream, (0.0, 1.0))

    def fill_log_normal(
        self, data: GPUArray, mean: float, stddev: float, stream: Any = None
    ) -> None:
        """Numbers whose logarithms have this mean and standard deviation."""
        table = {name: line.replace("= ", "= exp(") + ")" for name, line in _NORMAL.items()}
        self._fill("fill_log_normal", data, table, stream, (mean, stddev))

    def gen_uniform(self, shape: Any, dtype: Any, stream: Any = None) -> GPUArray:
        """fill_uniform of a new array."""
        result = GPUArray(shape, dtype)
        self.fill_uniform(result, stream)
        return result

    def gen_normal(self, shape: Any, dtype: Any, stream: Any = None) -> GPUArray:
        """fill_normal of a new array."""
        result = GPUArray(shape, dtype)
        self.fill_normal(result, stream)
        return result

    def gen_log_normal(
        self, shape: Any, dtype: Any, mean: float, stddev: float, stream: Any = None
    ) -> GPUArray:
        """fill_log_normal of a new array."""
        result = GPUArray(shape, dtype)
        self.fill_log_normal(result, mean, stddev, stream)
        return result

    def call_skip_ahead(self, i: int, stream: Any = None) -> None:
        """Leave out as many numbers."""
        self._next(int(i))

    def __getattr__(self, name: str) -> Any:
        if "poisson" in name or name.startswith("call_skip_ahead_"):
            raise NotImplementedError(
                f"{type(self).__name__}.{name} is left out: there are uniform, normal and "
                "log-normal numbers, and call_skip_ahead(count)"
            )
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


class XORWOWRandomNumberGenerator(_Generator):
    """PyCUDA's generator by name; the numbers are this module's own."""


class MRG32k3aRandomNumberGenerator(_Generator):
    """PyCUDA's generator by name; the numbers are this module's own."""


def __getattr__(name: str) -> Any:
    if "Sobol" in name or name.startswith("generate_"):
        raise AttributeError(
            f"pycuda.curandom.{name} is left out: XORWOWRandomNumberGenerator makes pseudorandom "
            "numbers, scipy.stats.qmc quasirandom ones"
        )
    raise AttributeError(f"module 'pycuda.curandom' has no attribute {name!r}")
