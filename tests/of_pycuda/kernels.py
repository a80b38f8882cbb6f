"""Kernels of sources: arguments, streams, prepared calls, structures, templates."""

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
from pycuda import gpuarray
from pycuda.compiler import SourceModule

module = SourceModule(
    """
#include <stdint.h>
#include <pycuda-complex.hpp>
struct Pair { int n; float by; };
__global__ void scale(float *x, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}
__global__ void paired(float *x, Pair p) { if (threadIdx.x < p.n) x[threadIdx.x] *= p.by; }
__global__ void turned(pycuda::complex<float> *z, float2 *w, float3 by) {
    z[threadIdx.x] *= pycuda::complex<float>(by.x, by.z);
    w[threadIdx.x].y = -w[threadIdx.x].y;
}
""",
    options=["-O3", "-Xcompiler", "-fPIC", "-Xptxas", "-v"],
)
scale = module.get_function("scale")
x = np.arange(1000, dtype=np.float32)
SHAPE = {"block": (128, 1, 1), "grid": (8, 1)}

memory = cuda.to_device(x)
assert 0 < scale(memory, np.float32(3), np.int32(1000), time_kernel=True, **SHAPE) < 100
scale.prepare("Pfi").prepared_call((8, 1), (128, 1, 1), memory, 2, 1000)
assert (cuda.from_device_like(memory, x) == 6 * x).all()
stream, other = cuda.Stream(), cuda.Stream()
scale.prepared_async_call((8, 1), (128, 1, 1), stream, int(memory), 0.5, 1000)
stream.synchronize()
assert (cuda.from_device(memory, x.shape, x.dtype) == 3 * x).all()
assert scale.prepared_timed_call((8, 1), (128, 1, 1), memory, 1.0, np.int32(1000))() >= 0
assert scale.num_regs >= 0 and scale.max_threads_per_block >= 128

# What is done on no stream waits for the streams, as PyCUDA's do.
ones = gpuarray.to_gpu(np.ones(5000, np.float32))
for turn in range(10):
    by = np.float32(2 if turn % 2 else 0.5)
    scale(ones, by, np.int32(5000), block=(256, 1, 1), grid=(20, 1), stream=stream)
    stream.synchronize()
    scale(ones, 1 / by, np.int32(5000), block=(256, 1, 1), grid=(20, 1), stream=other)
    other.synchronize()
    scale(ones, by, np.int32(5000), block=(256, 1, 1), grid=(20, 1), stream=stream)
    ones *= 1 / by
assert (ones.get() == 1).all()
start, end = cuda.Event(), cuda.Event()
start.record(stream)
end.record(stream)
assert end.synchronize() is end and end.query()
assert start.time_till(end) == end.time_since(start) >= 0

pair = np.array([(10, 7.0)], np.dtype([("n", np.int32), ("by", np.float32)]))
for given in (pair[0], pair):
    scaled = x.copy()
    module.get_function("paired")(cuda.InOut(scaled), given, block=(32, 1, 1))
    assert (scaled[:10] == 7 * x[:10]).all() and (scaled[10:] == x[10:]).all()

complexes = (np.arange(4) + 1j).astype(np.complex64)
z, w = complexes.copy(), gpuarray.to_gpu(complexes)
turned = module.get_function("turned")
turned(cuda.InOut(z), w, gpuarray.vec.make_float3(1, 2, 3), block=(4, 1, 1))
np.testing.assert_allclose(z, complexes * (1 + 3j))
assert (w.get() == complexes.conj()).all()

wide = SourceModule("template <class T> __global__ void add(T *x) { x[threadIdx.x] += 1; }")
for dtype, name in ((np.float64, "double"), (np.int16, "short")):
    counts = np.zeros(8, dtype)
    wide.get_function(f"add<{name}>")(cuda.InOut(counts), block=(8, 1, 1))
    assert (counts == 1).all()
