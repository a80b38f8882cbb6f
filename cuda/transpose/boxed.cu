// Between arrays whose axes lie in any two orders, a box of elements at a time through shared memory: read
// along what is near in the one, written along what is near in the other. The tiles of transpose.cu do
// that for two long axes; a box has as many axes as it takes to have runs on both sides.
#include "transpose/boxes.cuh"

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

enum { THREADS = GK_BOX_THREADS };

// Elements i, i + THREADS, ... of a box in the order of one of the arrays: their offset there, in elements, and
// their number in the order of the array that is written.
template <int EACH> struct gk_parts {
    int32_t offset[EACH];
    uint32_t number[EACH];

    template <typename PART> __device__ inline void step_out(const PART &along, uint32_t (&i)[EACH]) {
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const uint32_t index = gk_take_index(i[j], along.side);
            offset[j] += (int32_t)index * along.stride;
            number[j] += index * along.pitch;
        }
    }

    __device__ inline void find(const gk_boxes &boxes, int array) {
        uint32_t i[EACH];
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            i[j] = threadIdx.x + j * THREADS;
            offset[j] = number[j] = 0;
        }
        gk_each_axis(boxes.grid.ndim, [&](int k) { step_out(boxes.part[array][k], i); });
    }
};

// A word after every 128 bytes keeps what is a run in one array, and a column in the box of the other, in
// different banks.
template <typename T> __device__ static inline uint32_t cell_of(uint32_t number) {
    enum { BANKS = 128 / sizeof(T), WORD = sizeof(T) < 4 ? 4 / sizeof(T) : 1 };
    return number + number / BANKS * WORD;
}

// A thread's elements have the same places in every box, so it finds them once.
template <typename T> struct gk_boxed {
    enum { MOST = GK_BOX_BYTES / (int)sizeof(T) < GK_BOX_ELEMENTS ? GK_BOX_BYTES / (int)sizeof(T) : GK_BOX_ELEMENTS };
    enum { EACH = MOST / THREADS, CELLS = MOST + MOST / 8 };
    char *target;
    const char *source;
    uint32_t elements;
    int32_t from[EACH], to[EACH];
    uint32_t place[EACH];
    T value[EACH];

    __device__ inline gk_boxed(char *target, const char *source, const gk_boxes &boxes) : target(target), source(source), elements(boxes.elements) {
        gk_parts<EACH> parts;
        parts.find(boxes, GK_FROM);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            from[j] = parts.offset[j];
            place[j] = cell_of<T>(parts.number[j]);
        }
        parts.find(boxes, GK_TO);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            to[j] = parts.offset[j];
    }
    __device__ inline void forget() {
        gk_forget(place);
        gk_forget(from);
        gk_forget(to);
    }
    __device__ inline bool has(int j) const { return threadIdx.x + j * THREADS < elements; }
    __device__ inline void load(const gk_box &box) {
        const T *first = (const T *)(source + box.offset[GK_FROM]);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (has(j))
                value[j] = first[from[j]];
    }
    __device__ inline void leave(T *cells) const {
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (has(j))
                cells[place[j]] = value[j];
    }
    __device__ inline void store(const T *cells, const gk_box &box) const {
        T *first = (T *)(target + box.offset[GK_TO]);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (has(j))
                first[to[j]] = cells[cell_of<T>(threadIdx.x + j * THREADS)];
    }
};

// While a box is written, the next one is read, and where the one after that begins is found.
template <typename T> __device__ static inline void copy_boxed(char *to, const char *from, const gk_boxes &boxes) {
    enum { AHEAD = 2, BOXES = AHEAD + 1 };
    __shared__ T cells[gk_boxed<T>::CELLS];
    __shared__ gk_box box[BOXES];
    gk_boxed<T> part(to, from, boxes);
    const uint32_t each = gridDim.x, count = boxes.grid.count;
    if (threadIdx.x < AHEAD && blockIdx.x + threadIdx.x * each < count)
        box[threadIdx.x] = gk_find_box(boxes.grid, blockIdx.x + threadIdx.x * each);
    __syncthreads();
    gk_follow();
    part.load(box[0]);
    for (uint32_t number = blockIdx.x, now = 0; number < count; number += each) {
        const uint32_t next = now + 1 < BOXES ? now + 1 : 0, last = next + 1 < BOXES ? next + 1 : 0;
        part.forget();
        __syncthreads(); // nobody reads the cells of the box before, nor where it began
        part.leave(cells);
        if (threadIdx.x == 0 && number + AHEAD * each < count)
            box[last] = gk_find_box(boxes.grid, number + AHEAD * each);
        __syncthreads();
        if (number + each < count)
            part.load(box[next]);
        part.store(cells, box[now]);
        now = next;
    }
}

#define GK_COPY_BOXED(bits, T)                                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS, 2)                                       \
        gk_copy_boxed_##bits(char *to, const char *from, gk_boxes boxes) {                         \
        copy_boxed<T>(to, from, boxes);                                                            \
    }

GK_COPY_BOXED(8, uint8_t)
GK_COPY_BOXED(16, uint16_t)
GK_COPY_BOXED(32, uint32_t)
GK_COPY_BOXED(64, uint64_t)
GK_COPY_BOXED(128, uint4)

#endif
