// Between arrays whose axes lie in any two orders, a box of elements at a time through shared memory: read
// along what is near in the one, written along what is near in the other. The tiles of transpose.cu do
// that for two long axes; a box has as many axes as it takes to have runs on both sides.
#include "device.cuh"
#include "layout.h"
#include "strided.cuh"

#define GK_BOX_THREADS 512 // a block
#define GK_BOX_ROW(size, bytes)                                                                    \
    GK_ROW(copy_boxed, boxed, bits##size, gk_copy_boxed_##size, "any two orders of axes: runs on both sides", \
           .takes = GK_TAKES_LAYOUT, .tile_rows = 1, .tile_columns = GK_BOX_ELEMENTS, .threads = GK_BOX_THREADS, .alignment = bytes, .follows = true)
GK_BOX_ROW(8, 1)
GK_BOX_ROW(16, 2)
GK_BOX_ROW(32, 4)
GK_BOX_ROW(64, 8)
GK_BOX_ROW(128, 16)

#ifndef GK_ROWS_ONLY

enum { TO, FROM, THREADS = GK_BOX_THREADS, NOWHERE = 1u << GK_LAYOUT_DIMENSIONS };

// Where a box begins in both arrays, and the axes along which it is the last one and has less, a bit
// each; NOWHERE, which no box has, is always among them.
struct gk_box {
    int64_t offset[2];
    uint32_t cut;
};

__device__ static inline gk_box find_box(const gk_boxes &boxes, uint32_t number) {
    gk_box box = {{0, 0}, NOWHERE};
    for (int axis = boxes.ndim - 1; axis >= 0; axis--) {
        const auto &of = boxes.axis[axis];
        uint32_t rest = gk_divide(number, of.grid), index = number - rest * of.grid.value;
        box.offset[TO] += index * of.step[TO];
        box.offset[FROM] += index * of.step[FROM];
        if (index + 1 == of.grid.value)
            box.cut |= of.cut;
        number = rest;
    }
    return box;
}

// Elements i, i + THREADS, ... of a box in the order of one of the arrays: their offset there, their number
// in the order of the array that is written, and the axes whose last box does not have them.
template <int EACH> struct gk_parts {
    int64_t offset[EACH];
    uint32_t number[EACH], missing[EACH];

    template <typename PART> __device__ inline void step_out(const PART &along, uint32_t (&i)[EACH]) {
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            uint32_t rest = gk_divide(i[j], along.side), index = i[j] - rest * along.side.value;
            offset[j] += (int64_t)index * along.stride;
            number[j] += index * along.pitch;
            missing[j] |= index < along.rest ? 0 : along.cut;
            i[j] = rest;
        }
    }

    __device__ inline void find(const gk_boxes &boxes, int array) {
        uint32_t i[EACH];
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            i[j] = threadIdx.x + j * THREADS;
            missing[j] = i[j] < boxes.elements ? 0 : NOWHERE;
            offset[j] = number[j] = 0;
        }
#pragma unroll
        for (int k = 0; k < GK_USUAL_DIMENSIONS; k++)
            if (k < boxes.ndim)
                step_out(boxes.part[array][k], i);
#pragma unroll 1
        for (int k = GK_USUAL_DIMENSIONS; k < boxes.ndim; k++)
            step_out(boxes.part[array][k], i);
    }
};

// A word after every 128 bytes keeps what is a run in one array, and a column in the box of the other, in
// different banks.
template <typename T> __device__ static inline uint32_t cell_of(uint32_t number) {
    enum { BANKS = 128 / sizeof(T), WORD = sizeof(T) < 4 ? 4 / sizeof(T) : 1 };
    return number + number / BANKS * WORD;
}

// A thread's elements have the same places in every box, so it finds them once. What is not an offset is in one
// word: registers are what is short here.
template <typename T> __device__ static inline void copy_boxed(char *to, const char *from, const gk_boxes &boxes) {
    enum { MOST = GK_BOX_BYTES / (int)sizeof(T) < GK_BOX_ELEMENTS ? GK_BOX_BYTES / (int)sizeof(T) : GK_BOX_ELEMENTS };
    enum { EACH = MOST / THREADS, CELLS = MOST + MOST / 8, CELL_BITS = 12, CUT_BITS = GK_LAYOUT_DIMENSIONS + 1 };
    static_assert(CELLS <= 1 << CELL_BITS && CELL_BITS + 2 * CUT_BITS <= 32, "a word has them all");
    __shared__ T cell[CELLS];
    __shared__ gk_box box[2]; // while one is read, the next one is found
    int64_t read[EACH], written[EACH];
    uint32_t place[EACH];
    {
        gk_parts<EACH> parts;
        parts.find(boxes, FROM);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            read[j] = parts.offset[j];
            place[j] = cell_of<T>(parts.number[j]) | parts.missing[j] << CELL_BITS;
        }
        parts.find(boxes, TO);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            written[j] = parts.offset[j];
            place[j] |= parts.missing[j] << (CELL_BITS + CUT_BITS);
        }
    }
    if (threadIdx.x == 0)
        box[0] = find_box(boxes, blockIdx.x);
    for (uint32_t number = blockIdx.x, turn = 0; number < boxes.count; number += gridDim.x, turn ^= 1) {
        T value[EACH];
        __syncthreads(); // it is found, and nobody reads the cells of the one before
        const uint32_t unread = box[turn].cut << CELL_BITS, unwritten = unread << CUT_BITS;
        const char *source = from + box[turn].offset[FROM];
        char *target = to + box[turn].offset[TO];
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (!(place[j] & unread))
                value[j] = *(const T *)(source + read[j]);
        if (threadIdx.x == 0 && number + gridDim.x < boxes.count)
            box[turn ^ 1] = find_box(boxes, number + gridDim.x); // while the loads are on their way
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (!(place[j] & unread))
                cell[place[j] & ((1 << CELL_BITS) - 1)] = value[j];
        __syncthreads();
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (!(place[j] & unwritten))
                *(T *)(target + written[j]) = cell[cell_of<T>(threadIdx.x + j * THREADS)];
    }
}

#define GK_COPY_BOXED(bits, T)                                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS, 2)                                       \
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
