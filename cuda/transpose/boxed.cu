// Between arrays whose axes lie in any two orders, a box of elements at a time through shared memory: read
// along what is near in the one, written along what is near in the other. The tiles of transpose.cu do
// that for two long axes; a box has as many axes as it takes to have runs on both sides.
#include "device.cuh"
#include "strided.cuh"
#include "transpose/copies.h"

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

// Elements i, i + THREADS, ... of a box in the order of one of the arrays: their offset there, in elements, their
// number in the order of the array that is written, and the axes whose last box does not have them.
template <int EACH> struct gk_parts {
    int32_t offset[EACH];
    uint32_t number[EACH], missing[EACH];

    template <typename PART> __device__ inline void step_out(const PART &along, uint32_t (&i)[EACH]) {
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            uint32_t rest = gk_divide(i[j], along.side), index = i[j] - rest * along.side.value;
            offset[j] += (int32_t)index * along.stride;
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
template <typename T> struct gk_boxed {
    enum { MOST = GK_BOX_BYTES / (int)sizeof(T) < GK_BOX_ELEMENTS ? GK_BOX_BYTES / (int)sizeof(T) : GK_BOX_ELEMENTS };
    enum { EACH = MOST / THREADS, CELLS = MOST + MOST / 8, CELL_BITS = 13, CUT_BITS = GK_LAYOUT_DIMENSIONS + 1 };
    static_assert(CELLS <= 1 << CELL_BITS && CELL_BITS + 2 * CUT_BITS <= 32, "a word has them all");
    int32_t from[EACH], to[EACH];
    uint32_t place[EACH];
    T value[EACH];

    __device__ inline void find(const gk_boxes &boxes) {
        gk_parts<EACH> parts;
        parts.find(boxes, FROM);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            from[j] = parts.offset[j];
            place[j] = cell_of<T>(parts.number[j]) | parts.missing[j] << CELL_BITS;
        }
        parts.find(boxes, TO);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            to[j] = parts.offset[j];
            place[j] |= parts.missing[j] << (CELL_BITS + CUT_BITS);
        }
    }
    // What the compiler may not know any more: it would keep what follows from it in registers that are not there.
    __device__ inline void forget() {
#pragma unroll
        for (int j = 0; j < EACH; j++)
            asm volatile("" : "+r"(place[j]), "+r"(from[j]), "+r"(to[j]));
    }
    __device__ inline void load(const char *source, const gk_box &box) {
        const T *first = (const T *)(source + box.offset[FROM]);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (!(place[j] & box.cut << CELL_BITS))
                value[j] = first[from[j]];
    }
    __device__ inline void turn(T *cell, const gk_box &box) const {
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (!(place[j] & box.cut << CELL_BITS))
                cell[place[j] & ((1 << CELL_BITS) - 1)] = value[j];
    }
    __device__ inline void store(const T *cell, char *target, const gk_box &box) const {
        T *first = (T *)(target + box.offset[TO]);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (!(place[j] & box.cut << (CELL_BITS + CUT_BITS)))
                first[to[j]] = cell[cell_of<T>(threadIdx.x + j * THREADS)];
    }
};

// While a box is written, the next one is read, and where the one after that begins is found.
template <typename T> __device__ static inline void copy_boxed(char *to, const char *from, const gk_boxes &boxes) {
    enum { AHEAD = 2, BOXES = AHEAD + 1 };
    __shared__ T cell[gk_boxed<T>::CELLS];
    __shared__ gk_box box[BOXES];
    gk_boxed<T> part;
    part.find(boxes);
    const uint32_t each = gridDim.x;
    if (threadIdx.x < AHEAD && blockIdx.x + threadIdx.x * each < boxes.count)
        box[threadIdx.x] = find_box(boxes, blockIdx.x + threadIdx.x * each);
    __syncthreads();
    part.load(from, box[0]);
    for (uint32_t number = blockIdx.x, now = 0; number < boxes.count; number += each) {
        const uint32_t next = now + 1 < BOXES ? now + 1 : 0, last = next + 1 < BOXES ? next + 1 : 0;
        part.forget();
        __syncthreads(); // nobody reads the cells of the box before, nor where it began
        part.turn(cell, box[now]);
        if (threadIdx.x == 0 && number + AHEAD * each < boxes.count)
            box[last] = find_box(boxes, number + AHEAD * each);
        __syncthreads();
        if (number + each < boxes.count)
            part.load(from, box[next]);
        part.store(cell, to, box[now]);
        now = next;
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
