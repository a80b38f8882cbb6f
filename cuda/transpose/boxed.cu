// Between arrays whose axes lie in any two orders, a box of elements at a time through shared memory: read
// along what is near in the one, written along what is near in the other. The tiles of transpose.cu do
// that for two long axes; a box has as many axes as it takes to have runs on both sides.
#include "device.cuh"
#include "layout.h"
#include "strided.cuh"

#define GK_BOX_THREADS 256 // a block
#define GK_BOX_ROW(size, bytes)                                                                    \
    GK_ROW(copy_boxed, boxed, bits##size, gk_copy_boxed_##size, "any two orders of axes: runs on both sides", \
           .takes = GK_TAKES_LAYOUT, .tile_rows = 1, .tile_columns = GK_BOX_ELEMENTS, .threads = GK_BOX_THREADS, .alignment = bytes, .follows = true)
GK_BOX_ROW(8, 1)
GK_BOX_ROW(16, 2)
GK_BOX_ROW(32, 4)
GK_BOX_ROW(64, 8)
GK_BOX_ROW(128, 16)

#ifndef GK_ROWS_ONLY

enum { TO, FROM, THREADS = GK_BOX_THREADS };

// Where a box begins in both arrays, and how much of it there is along each axis: at an end it may be less.
struct gk_box {
    int64_t offset[2];
    uint32_t there[GK_LAYOUT_DIMENSIONS];
    bool whole;
};

__device__ static inline void find_box(const gk_boxes &boxes, uint32_t number, gk_box &box) {
    box.offset[TO] = box.offset[FROM] = 0;
    box.whole = true;
    for (int axis = boxes.ndim - 1; axis >= 0; axis--) {
        uint32_t rest = gk_divide(number, boxes.grid[axis]), side = boxes.side[axis].value;
        uint32_t first = (number - rest * boxes.grid[axis].value) * side, left = boxes.length[axis] - first;
        box.offset[TO] += first * boxes.stride[TO][axis];
        box.offset[FROM] += first * boxes.stride[FROM][axis];
        box.there[axis] = left < side ? left : side;
        box.whole = box.whole && left >= side;
        number = rest;
    }
}

// Element i of a box in the order of one of the arrays: its offset there, and its number in the order of
// the array that is written.
struct gk_part {
    int64_t offset;
    uint32_t number;
};
template <typename T> __device__ static inline uint32_t cell_of(uint32_t number) {
    enum { BANKS = 128 / sizeof(T), WORD = sizeof(T) < 4 ? 4 / sizeof(T) : 1 };
    return number + number / BANKS * WORD;
}
__device__ static inline gk_part find_part(const gk_boxes &boxes, int array, uint32_t i) {
    gk_part part = {0, 0};
#pragma unroll 1
    for (int k = boxes.ndim - 1; k >= 0; k--) {
        int axis = boxes.order[array][k];
        uint32_t rest = gk_divide(i, boxes.side[axis]), index = i - rest * boxes.side[axis].value, pitch = 1;
        for (int behind = axis + 1; behind < boxes.ndim; behind++)
            pitch *= boxes.side[behind].value;
        part.offset += index * boxes.stride[array][axis];
        part.number += index * pitch;
        i = rest;
    }
    return part;
}
__device__ static inline bool is_there(const gk_boxes &boxes, const gk_box &box, int array, uint32_t i) {
    bool there = i < boxes.elements;
    if (there && !box.whole)
#pragma unroll 1
        for (int k = boxes.ndim - 1; k >= 0; k--) {
            int axis = boxes.order[array][k];
            uint32_t rest = gk_divide(i, boxes.side[axis]);
            there = there && i - rest * boxes.side[axis].value < box.there[axis];
            i = rest;
        }
    return there;
}

// A thread's elements have the same places in every box, so it finds them once. What is a run in one array
// is a column in the box of the other: a word after every 128 bytes keeps its elements in different banks.
template <typename T> __device__ static inline void copy_boxed(char *to, const char *from, const gk_boxes &boxes) {
    enum { MOST = GK_BOX_BYTES / (int)sizeof(T) < GK_BOX_ELEMENTS ? GK_BOX_BYTES / (int)sizeof(T) : GK_BOX_ELEMENTS };
    enum { EACH = MOST / THREADS };
    __shared__ T cell[MOST + MOST / 8];
    __shared__ gk_box box[2]; // while one is found, the one before is still read
    gk_part read[EACH];
    int64_t written[EACH];
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        read[j] = find_part(boxes, FROM, threadIdx.x + j * THREADS);
        written[j] = find_part(boxes, TO, threadIdx.x + j * THREADS).offset;
    }
    for (uint32_t number = blockIdx.x, turn = 0; number < boxes.count; number += gridDim.x, turn ^= 1) {
        gk_box &here = box[turn];
        T value[EACH];
        if (threadIdx.x == 0)
            find_box(boxes, number, here);
        __syncthreads(); // it is found, and nobody reads the cells of the one before
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (is_there(boxes, here, FROM, threadIdx.x + j * THREADS))
                value[j] = *(const T *)(from + here.offset[FROM] + read[j].offset);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (is_there(boxes, here, FROM, threadIdx.x + j * THREADS))
                cell[cell_of<T>(read[j].number)] = value[j];
        __syncthreads();
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (is_there(boxes, here, TO, threadIdx.x + j * THREADS))
                *(T *)(to + here.offset[TO] + written[j]) = cell[cell_of<T>(threadIdx.x + j * THREADS)];
    }
}

#define GK_COPY_BOXED(bits, T)                                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS, 3)                                       \
        gk_copy_boxed_##bits(char *to, const char *from, gk_boxes boxes) {                         \
        gk_follow();                                                                               \
        copy_boxed<T>(to, from, boxes);                                                            \
    }

GK_COPY_BOXED(8, uint8_t)
GK_COPY_BOXED(16, uint16_t)
GK_COPY_BOXED(32, uint32_t)
GK_COPY_BOXED(64, uint64_t)
GK_COPY_BOXED(128, uint4)

#endif
