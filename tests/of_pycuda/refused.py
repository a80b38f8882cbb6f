"""What PyCUDA takes without a word, and what is left out: each says what to do."""

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
from pycuda import cumath, gpuarray
from pycuda.compiler import SourceModule
from pycuda.elementwise import ElementwiseKernel

module = SourceModule("""
__global__ void scale(float *x, float by, int n) { if (threadIdx.x < n) x[threadIdx.x] *= by; }
""")
scale = module.get_function("scale")
twice = ElementwiseKernel("float *x", "x[i] *= 2", "twice")
x = np.ones(32, np.float32)
memory, freed = cuda.to_device(x), cuda.to_device(x)
freed.free()
a = gpuarray.to_gpu(x)


def refused(kind, words, call):
    """A call raises that, and a good one works afterwards."""
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")
    assert (a.get() == 1).all()


def called(*arguments, block=(32, 1, 1), **named):
    """A call of the kernel."""
    return lambda: scale(*arguments, block=block, **named)


one, n = np.float32(1), np.int32(9)
refused(TypeError, "scale: float *x is a pointer and was given a NumPy array", called(x, one, n))
refused(
    TypeError, "float32, and was given one of float64", called(cuda.In(x.astype(float)), one, n)
)
refused(TypeError, "was given one of int32", called(gpuarray.to_gpu(np.zeros(9, "i4")), one, n))
refused(TypeError, "was given one of complex64", called(cuda.InOut(x.astype("c8")), one, n))
refused(TypeError, "int n takes int32, and was given int64", called(memory, one, np.int64(9)))
refused(TypeError, "takes a number, and was given an array", called(memory, one, np.arange(9)))
refused(TypeError, "takes 3 arguments", called(memory, one))
refused(ValueError, "not contiguous", called(gpuarray.to_gpu(np.ones((9, 9), "f4"))[:, 1], one, n))
refused(ValueError, "must specify block size", called(memory, one, n, block=None))
refused(
    ValueError, "block (2048, 1, 1) has 2048 threads", called(memory, one, n, block=(2048, 1, 1))
)
refused(TypeError, "grid has to be a whole number", called(memory, one, n, grid=(1.5, 1)))
refused(ValueError, "0x3039 is in no memory", called(np.uintp(12345), one, n))
refused(RuntimeError, "were freed", called(freed, one, n))
refused(NotImplementedError, "texture references", called(memory, one, n, texrefs=[None]))
refused(
    TypeError, "prepare() was given 'd', of 8 bytes, for float by", lambda: scale.prepare("Pdi")
)
refused(TypeError, "prepare() was given 2 types", lambda: scale.prepare([np.uintp, np.float32]))
refused(ValueError, "has no kernel 'absent'", lambda: module.get_function("absent"))
refused(cuda.CompileError, "kernel.cu", lambda: SourceModule("__global__ void f() { nonsense; }"))
refused(TypeError, "has to be a list of texts", lambda: SourceModule("", options="-O3"))
refused(TypeError, "takes a GPUArray", lambda: twice(x))
refused(TypeError, "takes 1 arguments, (float *x)", lambda: twice(a, a))
refused(RuntimeError, "not contiguous", lambda: twice(gpuarray.to_gpu(np.ones((4, 4), "f4"))[:, 1]))
refused(ValueError, "arrays of one shape", lambda: a + gpuarray.to_gpu(np.ones(4, "f4")))
refused(TypeError, "unsupported operand", lambda: a + "text")
refused(TypeError, "does not fit an array of float32", lambda: a.__iadd__(1j))
refused(TypeError, "takes real numbers", lambda: cumath.ceil(gpuarray.to_gpu(np.zeros(3, "i4"))))
