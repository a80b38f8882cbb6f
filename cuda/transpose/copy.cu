// Element by element from one strided layout into another, on the device: how a strided array
// becomes contiguous, how a small operand is broadcast, and how a result reaches a strided `out`.
// The host takes the widest elements that both sides allow.
#include "device.cuh"
#include "strided.cuh"

#define GK_COPY_THREADS 256 // a block
#define GK_COPY_ROW(size, bytes, note)                                                             \
    GK_COPY_BY(copy, size, GK_SHARED_ELEMENTS, gk_copy_##size, bytes, note)                        \
    GK_COPY_BY(copy_compact, size, GK_LONE_ELEMENTS, gk_copy_compact_##size, bytes, "of few elements, or of rows too short to be shared")
#define GK_COPY_BY(op, size, each, symbol, bytes, note)                                            \
    GK_ROW(op, strided, bits##size, symbol, note, .takes = GK_TAKES_LAYOUT, .tile_rows = 1,        \
           .tile_columns = (each) * GK_COPY_THREADS, .threads = GK_COPY_THREADS, .alignment = bytes, .follows = true)

GK_COPY_ROW(8, 1, "any strides; also for elements that are not aligned to their size")
GK_COPY_ROW(16, 2, "any strides")
GK_COPY_ROW(32, 4, "any strides")
GK_COPY_ROW(64, 8, "any strides")
GK_COPY_ROW(128, 16, "any strides, and runs of narrower elements")

#ifndef GK_ROWS_ONLY

enum { TO, FROM, THREADS = GK_COPY_THREADS };

// All loads before the first store, so that they are in flight together.
template <typename T, int EACH>
__device__ static inline void move_elements(char *to, const char *from, const int64_t (&offset)[EACH][2], int count) {
    T value[EACH];
#pragma unroll
    for (int j = 0; j < EACH; j++)
        if (j < count)
            value[j] = *(const T *)(from + offset[j][FROM]);
#pragma unroll
    for (int j = 0; j < EACH; j++)
        if (j < count)
            *(T *)(to + offset[j][TO]) = value[j];
}

template <typename T>
__device__ static inline void copy_strided(char *to, const char *from, const gk_units &units) {
    int64_t offset[GK_SHARED_ELEMENTS][2];
    int count = gk_shared_elements(units, offset);
    move_elements<T>(to, from, offset, count);
}

template <typename T, int EACH> __device__ static inline void copy_lone(const gk_compact &compact) {
    int64_t offset[EACH][2];
    int count = gk_lone_elements(compact, offset);
    move_elements<T>((char *)gk_words(compact, TO), (const char *)gk_words(compact, FROM), offset, count);
}

#define GK_COPY(bits, T)                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        gk_copy_##bits(char *to, const char *from, gk_units units) {                               \
        gk_follow();                                                                               \
        copy_strided<T>(to, from, units);                                                          \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS) gk_copy_compact_##bits(gk_compact compact) { \
        gk_follow();                                                                               \
        if (gk_are_single(compact))                                                                \
            copy_lone<T, 1>(compact);                                                              \
        else                                                                                       \
            copy_lone<T, GK_LONE_ELEMENTS>(compact);                                               \
    }

GK_COPY(8, uint8_t)
GK_COPY(16, uint16_t)
GK_COPY(32, uint32_t)
GK_COPY(64, uint64_t)
GK_COPY(128, uint4)

#endif
