// One of CUB's device-wide reductions behind a plain C name, and a bare launch in a loop: compiled by
// cub_.py with nvcc when a comparison asks for it, with REDUCTION, ELEMENT, ACCUMULATOR and RESULT
// defined. One at a time, since each takes nvcc seconds.
#include <cstdint>
#include <cub/device/device_reduce.cuh>
#include <cuda.h>
#include <cuda_fp16.h>

// Its argument types are the accumulator's: half and int32 elements are widened before they are
// added, as by everybody who is compared.
struct Plus {
    __host__ __device__ ACCUMULATOR operator()(ACCUMULATOR a, ACCUMULATOR b) const {
        return a + b;
    }
};

template <typename T>
static cudaError_t sum(void *temp, size_t *bytes, const T *in, RESULT *out, int64_t count) {
    return cub::DeviceReduce::Reduce(temp, *bytes, in, out, count, Plus(), ACCUMULATOR(0),
                                     cudaStreamLegacy);
}

template <typename T>
static cudaError_t max(void *temp, size_t *bytes, const T *in, T *out, int64_t count) {
    return cub::DeviceReduce::Max(temp, *bytes, in, out, count, cudaStreamLegacy);
}

// CUB writes the maximum itself as well.
template <typename T> static __device__ T argmax_value;

template <typename T>
static cudaError_t argmax(void *temp, size_t *bytes, const T *in, int64_t *out, int64_t count) {
    void *value = nullptr;
    cudaError_t status = cudaGetSymbolAddress(&value, argmax_value<T>);
    if (status != cudaSuccess)
        return status;
    return cub::DeviceReduce::ArgMax(temp, *bytes, in, (T *)value, out, count, cudaStreamLegacy);
}

// Called with `temp` null it writes the bytes of temporary storage that it wants.
extern "C" int gk_cub_reduce(void *temp, size_t *bytes, const ELEMENT *in, RESULT *out,
                             int64_t count) {
    return REDUCTION(temp, bytes, in, out, count);
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
