// Element by element from one strided layout into another, on the device: how a strided array
// becomes contiguous, how a small operand is broadcast, and how a result reaches a strided `out`.
// The host takes the widest elements that both sides allow.
#include "device.cuh"
#include "strided.cuh"
#include "transpose/copies.h"

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

// Small elements into one run.
#define GK_PACKED_ROW(size, vector)                                                                \
    GK_ROW(copy_packed, packed, bits##size, gk_copy_packed_##size, "an aligned vector a thread, whose elements are found from one to the next: no division but for the first", \
           .takes = GK_TAKES_LAYOUT, .tile_rows = 1, .tile_columns = vector * 8 / size * GK_COPY_THREADS, .threads = GK_COPY_THREADS, .alignment = vector, .follows = true)
GK_PACKED_ROW(8, 8)
GK_PACKED_ROW(16, 8)
GK_PACKED_ROW(32, 16)

// Long rows that begin anywhere on both sides.
GK_ROW(copy_rows, rows, bits128, gk_copy_rows, "rows that begin anywhere: an aligned vector of the result a thread, or the part of one that is of a row",
       .takes = GK_TAKES_LAYOUT, .tile_rows = 1, .tile_columns = GK_COPY_THREADS, .threads = GK_COPY_THREADS, .alignment = 1, .follows = true)

// One run into another, 128 bits at a time.
#define GK_RUN_VECTORS 2 // of a thread
#define GK_RUN_ROW(variant, aligned, note)                                                         \
    GK_ROW(copy_run, variant, bits128, gk_copy_##variant, note, .takes = GK_TAKES_LAYOUT, .tile_rows = 1, \
           .tile_columns = GK_RUN_VECTORS * GK_COPY_THREADS, .threads = GK_COPY_THREADS, .alignment = aligned, .follows = true)
GK_RUN_ROW(shifted_run, 1, "runs that begin anywhere: what is written is whole vectors, each of the two aligned ones that it was in")
GK_RUN_ROW(run, 16, "both begin on a vector, which is read once: begins sooner than a copy of the driver's")

#ifndef GK_ROWS_ONLY

enum { TO, FROM, THREADS = GK_COPY_THREADS };

// All loads before the first store, so that they are in flight together. Offsets are in units.
template <typename T, typename UNIT, int EACH, typename Offset>
__device__ static inline void move_elements(UNIT *to, const UNIT *from, const Offset (&offset)[EACH][2], int count) {
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
    gk_follow();
    move_elements<T>(to, from, offset, count);
}

template <typename T, int EACH> __device__ static inline void copy_lone(const gk_compact &compact) {
    int32_t offset[EACH][2];
    int count = gk_lone_elements(compact, offset);
    gk_follow();
    move_elements<T>((T *)gk_words(compact, TO), (const T *)gk_words(compact, FROM), offset, count);
}

#define GK_COPY(bits, T)                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        gk_copy_##bits(char *to, const char *from, gk_units units) {                               \
        copy_strided<T>(to, from, units);                                                          \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS) gk_copy_compact_##bits(gk_compact compact) { \
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

// Where a thread is on a course. What is tracked goes on by a step; only an axis further out is looked for.
struct gk_walker {
    enum { TRACKED = 3 };
    uint32_t number, index[TRACKED];
    int64_t offset;

    __device__ inline void find(const gk_course &course) {
        uint32_t i = number;
        offset = 0;
#pragma unroll
        for (int axis = 0; axis < GK_LAYOUT_DIMENSIONS; axis++) {
            if (axis >= course.ndim)
                break;
            const uint32_t rest = gk_divide(i, course.axis[axis].length), at = i - rest * course.axis[axis].length.value;
            offset += at * course.axis[axis].stride;
            if (axis < TRACKED)
                index[axis] = at;
            i = rest;
        }
    }
    __device__ inline void go_on(const gk_course &course) {
        number++;
#pragma unroll
        for (int axis = 0; axis < TRACKED; axis++) {
            if (++index[axis] < course.axis[axis].length.value) {
                offset += course.axis[axis].step;
                return;
            }
            index[axis] = 0;
        }
        find(course);
    }
};

template <typename T, typename VECTOR> __device__ static inline void copy_packed(char *to, const char *from, const gk_course &course) {
    enum { EACH = sizeof(VECTOR) / sizeof(T) };
    gk_walker at;
    at.number = (blockIdx.x * THREADS + threadIdx.x) * EACH;
    T *target = (T *)to + at.number, value[EACH];
    at.find(course);
    gk_follow();
    if (at.number >= course.count)
        return;
    const int count = course.count - at.number < EACH ? (int)(course.count - at.number) : EACH;
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        if (j < count)
            value[j] = *(const T *)(from + at.offset);
        if (j + 1 < count)
            at.go_on(course);
    }
    if (count == EACH) {
        VECTOR vector;
        memcpy(&vector, value, sizeof vector);
        *(VECTOR *)target = vector;
        return;
    }
#pragma unroll
    for (int j = 0; j < EACH; j++)
        if (j < count)
            target[j] = value[j];
}

#define GK_COPY_PACKED(bits, T, VECTOR)                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        gk_copy_packed_##bits(char *to, const char *from, gk_course course) {                      \
        copy_packed<T, VECTOR>(to, from, course);                                                  \
    }

GK_COPY_PACKED(8, uint8_t, uint2)
GK_COPY_PACKED(16, uint16_t, uint2)
GK_COPY_PACKED(32, uint32_t, uint4)

enum { VECTOR = sizeof(uint4), APART = THREADS * VECTOR, BLOCK = GK_RUN_VECTORS * APART }; // of runs, in bytes

// The bytes in front of the first whole vector and behind the last one, at which two can be read, are the first block's.
extern "C" __global__ void __launch_bounds__(THREADS) gk_copy_shifted_run(char *to, const char *from, size_t bytes) {
    gk_follow();
    const size_t head = -(uintptr_t)to % VECTOR, first = head + (size_t)blockIdx.x * BLOCK + threadIdx.x * VECTOR;
    gk_vector<uint8_t> vector[GK_RUN_VECTORS];
#pragma unroll
    for (int j = 0; j < GK_RUN_VECTORS; j++)
        if (size_t i = first + j * APART; i + 2 * VECTOR <= bytes)
            vector[j] = gk_load_between((const uint8_t *)from + i);
#pragma unroll
    for (int j = 0; j < GK_RUN_VECTORS; j++)
        if (size_t i = first + j * APART; i + 2 * VECTOR <= bytes)
            gk_put(to + i, vector[j]);
    const size_t whole = bytes < head + 2 * VECTOR ? 0 : (bytes - head) / VECTOR - 1;
    if (blockIdx.x == 0 && threadIdx.x + whole * VECTOR < bytes) {
        const size_t at = threadIdx.x + (threadIdx.x < head ? 0 : whole * VECTOR);
        to[at] = from[at];
    }
}

// Bytes [begin, end) of a vector, which lies on one: by words as far as these are whole.
__device__ static inline void store_part(char *to, const gk_vector<uint8_t> &vector, int begin, int end) {
#pragma unroll
    for (int w = 0; w < VECTOR; w += 4) {
        if (w >= begin && w + 4 <= end) {
            *(uint32_t *)(to + w) = vector.bits[w / 4];
            continue;
        }
#pragma unroll
        for (int i = w; i < w + 4; i++)
            if (i >= begin && i < end)
                to[i] = (char)(vector.bits[w / 4] >> 8 * (i - w));
    }
}

// Rows of so many bytes; the last axis of the layout counts the vectors that one may touch, `count` in all. What is read ends at
// `behind`, and no vector is that reaches beyond.
extern "C" __global__ void __launch_bounds__(THREADS) gk_copy_rows(char *to, const char *from, const char *behind, uint32_t bytes, uint32_t count, gk_layout layout) {
    const uint32_t number = blockIdx.x * THREADS + threadIdx.x;
    int64_t offset[2];
    const int vector = (int)gk_offsets(layout, number, offset) * VECTOR;
    gk_follow();
    to += offset[TO];
    const int first = vector - (int)((uintptr_t)to % VECTOR), last = (int)bytes - first;
    const int begin = first < 0 ? -first : 0, end = last < VECTOR ? last : (int)VECTOR;
    if (number >= count || begin >= end)
        return;
    to += first;
    from += offset[FROM] + first;
    if (from + 2 * VECTOR > behind) {
#pragma unroll 1
        for (int i = begin; i < end; i++)
            to[i] = from[i];
        return;
    }
    const gk_vector<uint8_t> moved = gk_load_part((const uint8_t *)from, begin, end);
    if (end - begin == VECTOR)
        gk_put(to, moved);
    else
        store_part(to, moved, begin, end);
}

// The vectors of a thread are a block's width apart.
extern "C" __global__ void __launch_bounds__(THREADS) gk_copy_run(char *to, const char *from, size_t bytes) {
    gk_follow();
    const size_t first = (size_t)blockIdx.x * BLOCK + threadIdx.x * VECTOR;
    uint4 vector[GK_RUN_VECTORS];
#pragma unroll
    for (int j = 0; j < GK_RUN_VECTORS; j++)
        if (size_t i = first + j * APART; i + VECTOR <= bytes)
            vector[j] = *(const uint4 *)(from + i);
#pragma unroll
    for (int j = 0; j < GK_RUN_VECTORS; j++)
        if (size_t i = first + j * APART; i + VECTOR <= bytes)
            __stcs((uint4 *)(to + i), vector[j]);
        else if (bytes % VECTOR != 0)
            gk_each_left<VECTOR>(bytes, i, (size_t)gridDim.x * BLOCK, [=](size_t at) { to[at] = from[at]; });
}

#endif
