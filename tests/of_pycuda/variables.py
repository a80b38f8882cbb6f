"""Variables of a source, as get_global gives them."""

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule("""
__device__ float table[4];
__constant__ int offset;
__global__ void tabled(float *x) { x[threadIdx.x] = table[threadIdx.x] + offset; }
""")
table, size = module.get_global("table")
assert size == 16
cuda.memcpy_htod(table, np.array([1, 2, 3, 4], np.float32))
offset, size = module.get_global("offset")
assert size == 4
cuda.memcpy_htod(offset, np.int32(10))
got = np.zeros(4, np.float32)
module.get_function("tabled")(cuda.Out(got), block=(4, 1, 1))
assert got.tolist() == [11, 12, 13, 14], got
back = np.zeros(2, np.float32)
cuda.memcpy_dtoh(back, int(table) + 8)
assert back.tolist() == [3, 4]
try:
    module.get_global("absent")
except ValueError as error:
    assert "absent" in str(error), error
else:
    raise AssertionError("a variable that is not there")
