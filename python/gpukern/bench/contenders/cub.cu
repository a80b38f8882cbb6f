// CUB's device-wide reductions behind plain C names, and a bare launch in a loop: compiled by
// cub_.py with nvcc when a comparison asks for them.
//
// A reduction called with `temp` null writes the bytes of temporary storage that it wants.
#include <cstdint>
#include <cub/device/device_reduce.cuh>
#include <cuda.h>
#include <cuda_fp16.h>

// Its argument types are the accumulator's: half and int32 elements are widened before they are
// added, as by everybody who is compared.
template <typename Accumulator> struct Plus {
    __host__ __device__ Accumulator operator()(Accumulator a, Accumulator b) const {
        return a + b;
    }
};

#define SUM(dtype, T, Accumulator, Result)                                                         \
    extern "C" int gk_cub_sum_##dtype(void *temp, size_t *bytes, const T *in, Result *out,         \
                                      int64_t count) {                                             \
        return cub::DeviceReduce::Reduce(temp, *bytes, in, out, count, Plus<Accumulator>(),        \
                                         Accumulator(0), cudaStreamLegacy);                        \
    }

SUM(float32, float, float, float)
SUM(float64, double, double, double)
SUM(float16, __half, float, __half)
SUM(int32, int32_t, int64_t, int64_t)
SUM(int64, int64_t, int64_t, int64_t)

extern "C" int gk_cub_max_float32(void *temp, size_t *bytes, const float *in, float *out,
                                  int64_t count) {
    return cub::DeviceReduce::Max(temp, *bytes, in, out, count, cudaStreamLegacy);
}

// CUB writes the maximum itself as well.
static __device__ float argmax_value;

extern "C" int gk_cub_argmax_float32(void *temp, size_t *bytes, const float *in, int64_t *out,
                                     int64_t count) {
    void *value = nullptr;
    cudaError_t status = cudaGetSymbolAddress(&value, argmax_value);
    if (status != cudaSuccess)
        return status;
    return cub::DeviceReduce::ArgMax(temp, *bytes, in, (float *)value, out, count,
                                     cudaStreamLegacy);
}

__global__ void add(float *out, const float *a, const float *b, size_t count) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = a[i] + b[i];
}

// cuLaunchKernel itself, `times` in a row with the arguments of an addition: what no library that
// launches a kernel a call can be below.
extern "C" int gk_launch_add(float *out, const float *a, const float *b, size_t count, int times) {
    cudaFunction_t function;
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaError_t status = cudaGetFuncBySymbol(&function, (const void *)add);
    if (status == cudaSuccess)
        status = cudaGetDriverEntryPointByVersion("cuLaunchKernel", &entry, 12000,
                                                  cudaEnableDefault, &found);
    if (status == cudaSuccess && found != cudaDriverEntryPointSuccess)
        status = cudaErrorSymbolNotFound;
    if (status != cudaSuccess)
        return status;
    decltype(&cuLaunchKernel) launch = (decltype(&cuLaunchKernel))entry;
    void *arguments[] = {&out, &a, &b, &count};
    unsigned blocks = (unsigned)((count + 255) / 256);
    for (int i = 0; i < times; i++) {
        CUresult result = launch((CUfunction)function, blocks, 1, 1, 256, 1, 1, 0, CU_STREAM_LEGACY,
                                 arguments, nullptr);
        if (result != CUDA_SUCCESS)
            return (int)result;
    }
    return 0;
}

extern "C" int gk_cub_version(void) {
    return CUB_VERSION;
}

extern "C" const char *gk_cub_error(int status) {
    return cudaGetErrorString((cudaError_t)status);
}
