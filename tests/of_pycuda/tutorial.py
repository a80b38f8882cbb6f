"""What PyCUDA's tutorial does: memory by hand, In and Out, an array, a structure of pointers."""

import numpy as np
import pycuda.autoinit
import pycuda.driver as cuda
from pycuda import gpuarray
from pycuda.compiler import SourceModule

module = SourceModule("""
__global__ void doublify(float *a) { a[threadIdx.x + threadIdx.y * 4] *= 2; }

__global__ void multiply_them(float *dest, float *a, float *b) {
    const int i = threadIdx.x;
    dest[i] = a[i] * b[i];
}

struct Operation { int n, padding; float *data; };
__global__ void double_all(Operation *all) {
    Operation *one = all + blockIdx.x;
    for (int i = threadIdx.x; i < one->n; i += blockDim.x) one->data[i] *= 2;
}
""")
doublify = module.get_function("doublify")
random = np.random.default_rng(0)

a = random.random((4, 4), np.float32)
a_gpu = cuda.mem_alloc(a.nbytes)
cuda.memcpy_htod(a_gpu, a)
doublify(a_gpu, block=(4, 4, 1), grid=(1, 1), shared=0)
doubled = np.empty_like(a)
cuda.memcpy_dtoh(doubled, a_gpu)
assert (doubled == 2 * a).all()

in_place = a.copy()
doublify(cuda.InOut(in_place), block=(4, 4, 1))
assert (in_place == 2 * a).all()

x, y = random.random((2, 400), np.float32)
dest = np.zeros_like(x)
multiply_them = module.get_function("multiply_them")
multiply_them(cuda.Out(dest), cuda.In(x), cuda.In(y), block=(400, 1, 1), grid=(1, 1))
assert (dest == x * y).all()

assert ((2 * gpuarray.to_gpu(a)).get() == 2 * a).all()

arrays = [np.arange(3, dtype=np.float32), np.arange(70, dtype=np.float32)]
held = [cuda.to_device(each) for each in arrays]
layout = np.dtype([("n", np.int32), ("padding", np.int32), ("data", np.uintp)])
operations = cuda.mem_alloc(2 * layout.itemsize)
for at, (array, memory) in enumerate(zip(arrays, held, strict=True)):
    packed = np.array([(array.size, 0, int(memory))], layout)
    cuda.memcpy_htod(int(operations) + at * layout.itemsize, packed)
double_all = module.get_function("double_all")
double_all(operations, block=(32, 1, 1), grid=(2, 1))
double_all(np.uintp(int(operations) + layout.itemsize), block=(32, 1, 1))
assert (cuda.from_device_like(held[0], arrays[0]) == 2 * arrays[0]).all()
assert (cuda.from_device_like(held[1], arrays[1]) == 4 * arrays[1]).all()
assert pycuda.autoinit.device == cuda.Context.get_device()
