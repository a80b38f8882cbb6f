// Element by element from one strided layout into another, on the device: how a strided array
// becomes contiguous, how a small operand is broadcast, and how a result reaches a strided `out`.
// The host takes the widest elements that both sides allow.
#include "device.cuh"
#include "strided.cuh"

GK_STRIDED(copy, strided, bits8, gk_copy_8, 4, 256, 1, 75, "any strides; also for elements that are not aligned to their size")
GK_STRIDED(copy, strided, bits16, gk_copy_16, 4, 256, 2, 75, "any strides")
GK_STRIDED(copy, strided, bits32, gk_copy_32, 4, 256, 4, 75, "any strides")
GK_STRIDED(copy, strided, bits64, gk_copy_64, 4, 256, 8, 75, "any strides")
GK_STRIDED(copy, strided, bits128, gk_copy_128, 4, 256, 16, 75, "any strides, and runs of narrower elements")

#ifndef GK_ROWS_ONLY

enum { THREADS = 256, PER_THREAD = 4 };

// All loads before the first store, so that they are in flight together.
template <typename T>
__device__ static inline void copy_strided(char *to, const char *from, const gk_layout &layout, uint32_t n) {
    uint32_t first = blockIdx.x * (PER_THREAD * THREADS) + threadIdx.x;
    int64_t offset[PER_THREAD][2];
    T value[PER_THREAD];
#pragma unroll
    for (int j = 0; j < PER_THREAD; j++)
        if (first + j * THREADS < n) {
            gk_offsets(layout, first + j * THREADS, offset[j]);
            value[j] = *(const T *)(from + offset[j][1]);
        }
#pragma unroll
    for (int j = 0; j < PER_THREAD; j++)
        if (first + j * THREADS < n)
            *(T *)(to + offset[j][0]) = value[j];
}

#define GK_COPY(bits, T)                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        gk_copy_##bits(char *to, const char *from, gk_layout layout, uint32_t n) {                 \
        copy_strided<T>(to, from, layout, n);                                                      \
    }

GK_COPY(8, uint8_t)
GK_COPY(16, uint16_t)
GK_COPY(32, uint32_t)
GK_COPY(64, uint64_t)
GK_COPY(128, uint4)

#endif
