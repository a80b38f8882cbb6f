// Kernels that reverse each block's elements, right and with a bug planted in them: memory.
#include "device.cuh"

GK_ROW(planted, reverse, float32, reverse, 1, 64, 4, 75, "clean: through shared memory")
GK_ROW(planted, reverse_dynamic, float32, reverse_dynamic, 1, 64, 4, 75, "clean: through dynamic shared memory")
GK_ROW(planted, reverse_vector, float32, reverse_vector, 1, 64, 16, 75, "clean: 128-bit loads")
GK_ROW(planted, reverse_rounds, float32, reverse_rounds, 1, 64, 4, 75, "clean: shared memory used twice")
GK_ROW(planted, reverse_three, float32, reverse_three, 1, 64, 4, 75, "clean: grids and blocks of three dimensions")
GK_ROW(planted, missing_barrier, float32, missing_barrier, 1, 64, 4, 75, "no barrier between write and read")
GK_ROW(planted, missing_second, float32, missing_second, 1, 64, 4, 75, "no barrier before shared memory is used again")
GK_ROW(planted, uninitialised, float32, uninitialised, 1, 64, 4, 75, "takes shared memory for zero")
GK_ROW(planted, stale, float32, stale, 1, 64, 4, 75, "all blocks but the first take what another one left")
GK_ROW(planted, stale_dynamic, float32, stale_dynamic, 1, 64, 4, 75, "the same of dynamic shared memory")
GK_ROW(planted, write_past, float32, write_past, 1, 64, 4, 75, "one element beyond out")
GK_ROW(planted, write_before, float32, write_before, 1, 64, 4, 75, "one element in front of out")
GK_ROW(planted, read_past, float32, read_past, 1, 64, 4, 75, "one element beyond the end of in")
GK_ROW(planted, shared_past, float32, shared_past, 1, 64, 4, 75, "one element beyond a shared array")
GK_ROW(planted, dynamic_past, float32, dynamic_past, 1, 64, 4, 75, "one element beyond dynamic shared memory")
GK_ROW(planted, no_dynamic, float32, no_dynamic, 1, 64, 4, 75, "dynamic shared memory that the launch does not give")
GK_ROW(planted, misaligned, float32, misaligned, 1, 64, 4, 75, "a float4 at an address that is no multiple of 16")
GK_ROW(planted, null_pointer, float32, null_pointer, 1, 64, 4, 75, "a load through nullptr")
GK_ROW(planted, divides_by_zero, float32, divides_by_zero, 1, 64, 4, 75, "i % 0")
GK_ROW(planted, last_writer, float32, last_writer, 1, 64, 4, 75, "every thread stores to out[0]")

#ifndef GK_ROWS_ONLY

enum { THREADS = 64 };
#define KERNEL(name)                                                                               \
    extern "C" __global__ void name(float *out, const float *in, [[maybe_unused]] size_t n)

KERNEL(reverse) {
    __shared__ float cell[THREADS];
    unsigned t = threadIdx.x;
    cell[t] = in[gk_thread()];
    __syncthreads();
    out[gk_thread()] = cell[THREADS - 1 - t];
}

KERNEL(reverse_dynamic) {
    GK_DYNAMIC_SHARED(float, cell);
    unsigned t = threadIdx.x;
    cell[t] = in[gk_thread()];
    __syncthreads();
    out[gk_thread()] = cell[blockDim.x - 1 - t];
}

KERNEL(reverse_three) {
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    out[block * threads + threads - 1 - t] = in[block * threads + t];
}

__device__ static inline void reverse_four(float *out, const float *in, size_t from) {
    unsigned t = threadIdx.x;
    __shared__ float4 cell[THREADS / 4];
    if (t < THREADS / 4)
        cell[t] = *(const float4 *)(in + from); // the vector load
    __syncthreads();
    const float *element = (const float *)cell;
    out[gk_thread()] = element[THREADS - 1 - t];
}
KERNEL(reverse_vector) { reverse_four(out, in, gk_thread() + 3 * threadIdx.x); }
KERNEL(misaligned) { reverse_four(out, in, gk_thread() + 3 * threadIdx.x + 1); }


// The second round overwrites what the first one reads.
template <bool barrier> __device__ static inline void two_rounds(float *out, const float *in) {
    __shared__ float cell[THREADS];
    unsigned t = threadIdx.x;
    float first = 0;
    for (int round = 0; round < 2; round++) {
        cell[t] = round == 0 ? in[gk_thread()] : -1.0f;
        __syncthreads();
        if (round == 0)
            first = cell[THREADS - 1 - t];
        if (barrier)
            __syncthreads();
    }
    out[gk_thread()] = first;
}
KERNEL(reverse_rounds) { two_rounds<true>(out, in); }
KERNEL(missing_second) { two_rounds<false>(out, in); }

KERNEL(missing_barrier) {
    __shared__ float cell[THREADS];
    unsigned t = threadIdx.x;
    cell[t] = in[gk_thread()]; // too late for some
    out[gk_thread()] = cell[THREADS - 1 - t]; // too early for others
}

KERNEL(uninitialised) {
    __shared__ float cell[THREADS], offset;
    unsigned t = threadIdx.x;
    cell[t] = in[gk_thread()];
    __syncthreads();
    out[gk_thread()] = cell[THREADS - 1 - t] + offset;
}

KERNEL(stale) {
    __shared__ float cell[THREADS], offset;
    unsigned t = threadIdx.x;
    cell[t] = in[gk_thread()];
    if (t == 0 && blockIdx.x == 0)
        offset = 0;
    __syncthreads();
    out[gk_thread()] = cell[THREADS - 1 - t] + offset;
}

KERNEL(stale_dynamic) {
    GK_DYNAMIC_SHARED(float, cell);
    unsigned t = threadIdx.x;
    cell[t] = in[gk_thread()];
    if (t == 0 && blockIdx.x == 0)
        cell[blockDim.x] = 0;
    __syncthreads();
    out[gk_thread()] = cell[blockDim.x - 1 - t] + cell[blockDim.x];
}

KERNEL(write_past) {
    reverse(out, in, n);
    out[gk_thread() + 1] = 0; // past the end
}

KERNEL(write_before) {
    reverse(out, in, n);
    out[gk_thread() - 1] = 0; // before the start
}

KERNEL(read_past) {
    size_t i = gk_thread();
    out[i] = in[i + 1]; // reads past the end
}

KERNEL(shared_past) {
    __shared__ float cell[THREADS];
    unsigned t = threadIdx.x;
    cell[t] = in[gk_thread()];
    __syncthreads();
    out[gk_thread()] = cell[THREADS - t]; // past the array
}

KERNEL(dynamic_past) {
    GK_DYNAMIC_SHARED(float, cell);
    unsigned t = threadIdx.x;
    cell[t + 1] = in[gk_thread()]; // past dynamic shared memory
    __syncthreads();
    out[gk_thread()] = cell[blockDim.x - t];
}

KERNEL(no_dynamic) {
    GK_DYNAMIC_SHARED(float, wanted);
    wanted[threadIdx.x] = in[gk_thread()];
    out[gk_thread()] = wanted[threadIdx.x];
}

KERNEL(null_pointer) {
    const float *nothing = n ? nullptr : in;
    out[gk_thread()] = nothing[0]; // from address 0
}

KERNEL(divides_by_zero) {
    unsigned zero = (unsigned)(n - n);
    out[gk_thread()] = in[threadIdx.x % zero]; // by zero
}

KERNEL(last_writer) { out[0] = in[gk_thread()]; }

#endif
