// Element by element from one strided layout into another, on the device: how a strided array
// becomes contiguous, how a small operand is broadcast, and how a result reaches a strided `out`.
// The host takes the widest elements that both sides allow.
#include "device.cuh"
#include "strided.cuh"

#define GK_COPY_THREADS 256 // a block
#define GK_COPY_ROW(size, bytes, note)                                                             \
    GK_ROW(copy, strided, bits##size, gk_copy_##size, note, .takes = GK_TAKES_LAYOUT, .tile_rows = 1, \
           .tile_columns = GK_LONE_ELEMENTS * GK_COPY_THREADS, .threads = GK_COPY_THREADS, .alignment = bytes, .follows = true)

GK_COPY_ROW(8, 1, "any strides; also for elements that are not aligned to their size")
GK_COPY_ROW(16, 2, "any strides")
GK_COPY_ROW(32, 4, "any strides")
GK_COPY_ROW(64, 8, "any strides")
GK_COPY_ROW(128, 16, "any strides, and runs of narrower elements")

#ifndef GK_ROWS_ONLY

enum { THREADS = GK_COPY_THREADS, PER_THREAD = GK_LONE_ELEMENTS };

// All loads before the first store, so that they are in flight together.
template <typename T>
__device__ static inline void copy_strided(char *to, const char *from, const gk_units &units) {
    enum { TO, FROM };
    int64_t offset[PER_THREAD][2];
    T value[PER_THREAD];
    int count = gk_elements_of(units, offset);
#pragma unroll
    for (int j = 0; j < PER_THREAD; j++)
        if (j < count)
            value[j] = *(const T *)(from + offset[j][FROM]);
#pragma unroll
    for (int j = 0; j < PER_THREAD; j++)
        if (j < count)
            *(T *)(to + offset[j][TO]) = value[j];
}

#define GK_COPY(bits, T)                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        gk_copy_##bits(char *to, const char *from, gk_units units) {                                 \
        gk_follow();                                                                               \
        copy_strided<T>(to, from, units);                                                           \
    }

GK_COPY(8, uint8_t)
GK_COPY(16, uint16_t)
GK_COPY(32, uint32_t)
GK_COPY(64, uint64_t)
GK_COPY(128, uint4)

#endif
