// Few lines woven into one, an element of each in turn, and one taken apart into such lines: what a
// transpose is where one of the two axes is short, as of images whose channels lie apart or side by side.
// Both sides are read and written by words; in between, elements change places in shared memory. Elements
// of a word and more are as fast by themselves, but for very few lines of vectors, which change places in
// registers.
#include "device.cuh"
#include "strided.cuh"
#include "transpose/copies.h"
#include "transpose/turn.cuh"

#define GK_WOVEN_THREADS 256 // a block
#define GK_WOVEN_ROW(size, bytes)                                                                  \
    GK_ROW(copy_woven, woven, bits##size, gk_copy_woven_##size, "few lines, an element of each in turn, or the other way: 32 bits an access on both sides", \
           .takes = GK_TAKES_LAYOUT, .tile_rows = 1, .tile_columns = GK_WOVEN_BYTES / bytes, .threads = GK_WOVEN_THREADS, .alignment = bytes, .follows = true)
GK_WOVEN_ROW(8, 1)
GK_WOVEN_ROW(16, 2)
#define GK_WOVEN_VECTORS_ROW(size)                                                                 \
    GK_ROW(copy_woven, woven_vectors, bits##size, gk_copy_woven_vectors_##size, "two to four lines: 128 bits an access on both sides, no element by itself", \
           .takes = GK_TAKES_LAYOUT, .tile_rows = 1, .tile_columns = GK_WOVEN_THREADS * 128 / size, .threads = GK_WOVEN_THREADS, .alignment = 16, .follows = true)
GK_WOVEN_VECTORS_ROW(8)
GK_WOVEN_VECTORS_ROW(16)
GK_WOVEN_VECTORS_ROW(32)

#ifndef GK_ROWS_ONLY

enum { TO, FROM, WORD = sizeof(uint32_t), AT_ONCE = 4, PART = GK_WARP * AT_ONCE /* words */ };

// A warp's share of so many lines of up to so many elements: by parts of PART words, with several loads of a
// thread under way at once, so that many short lines keep a block as busy as few long ones.
template <typename T, typename MOVE> __device__ static inline void gk_each_part(uint32_t lines, uint32_t elements, const MOVE &move) {
    const uint32_t parts = elements * (uint32_t)sizeof(T) / (PART * WORD) + 1;
    for (uint32_t part = threadIdx.x / GK_WARP; part < lines * parts; part += GK_WOVEN_THREADS / GK_WARP) {
        uint32_t line = part / parts;
        move(line, (part - line * parts) * PART);
    }
}

// How a line lies on words: so many elements before the first whole one, so many of these.
template <typename T> struct gk_on_words {
    enum { E = WORD / sizeof(T) };
    uint32_t behind, before, words, elements;

    __device__ inline gk_on_words(const char *line, uint32_t elements) : elements(elements) {
        behind = (uint32_t)((uintptr_t)line % WORD);
        before = (WORD - behind) % WORD / sizeof(T);
        before = before < elements ? before : elements;
        words = (elements - before) / E;
    }
    // What is in no whole word, an element a lane: whether there is one for this lane, and its number.
    __device__ inline bool beside(uint32_t lane, uint32_t *number) const {
        *number = lane < before ? lane : lane + words * E;
        return lane < elements - words * E;
    }
};

// What a block has of a matrix: its woven line, in shared memory, so far behind a word as it lies in memory.
template <typename T> struct gk_woven {
    enum { E = WORD / sizeof(T), WORDS = GK_WOVEN_BYTES / WORD };
    uint32_t *cells;
    uint32_t spread, behind, lines; // a word after every 2^spread: see gk_weaving

    __device__ inline T *at(uint32_t byte) const {
        uint32_t word = byte / WORD;
        return (T *)(cells + word + (word >> spread)) + byte % WORD / sizeof(T);
    }
    // Where an element of a line is, and how far from it the line's next one.
    __device__ inline uint32_t place(uint32_t line, uint32_t column) const { return behind + (column * lines + line) * (uint32_t)sizeof(T); }
    __device__ inline uint32_t apart() const { return lines * (uint32_t)sizeof(T); }

    // The words of a part of a line from number `first` on, to where MOVE finds room for its elements.
    template <typename MOVE> __device__ static inline void load(const gk_on_words<T> &line, const char *from, uint32_t first, const MOVE &move) {
        const uint32_t *source = (const uint32_t *)(from + line.before * sizeof(T));
        const uint32_t begin = first + threadIdx.x % GK_WARP;
        uint32_t value[AT_ONCE];
#pragma unroll
        for (uint32_t j = 0; j < AT_ONCE; j++)
            if (begin + j * GK_WARP < line.words)
                value[j] = source[begin + j * GK_WARP];
#pragma unroll
        for (uint32_t j = 0; j < AT_ONCE; j++)
            if (begin + j * GK_WARP < line.words)
                move(begin + j * GK_WARP, value[j]);
    }
    template <typename MOVE> __device__ static inline void store(const gk_on_words<T> &line, char *to, uint32_t first, const MOVE &word) {
        uint32_t *target = (uint32_t *)(to + line.before * sizeof(T));
        const uint32_t begin = first + threadIdx.x % GK_WARP;
#pragma unroll
        for (uint32_t j = 0; j < AT_ONCE; j++)
            if (begin + j * GK_WARP < line.words)
                target[begin + j * GK_WARP] = word(begin + j * GK_WARP);
    }

    // The woven line, as it lies.
    __device__ inline void load_all(const char *from, uint32_t elements) const {
        const gk_on_words<T> line(from, elements);
        const uint32_t begin = (behind + line.before * (uint32_t)sizeof(T)) / WORD;
        uint32_t number;
        gk_each_part<T>(1, elements, [&](uint32_t, uint32_t first) {
            load(line, from, first, [&](uint32_t i, uint32_t value) { *(uint32_t *)at((begin + i) * WORD) = value; });
        });
        if (line.beside(threadIdx.x, &number))
            *at(behind + number * (uint32_t)sizeof(T)) = ((const T *)from)[number];
    }
    __device__ inline void store_all(char *to, uint32_t elements) const {
        const gk_on_words<T> line(to, elements);
        const uint32_t begin = (behind + line.before * (uint32_t)sizeof(T)) / WORD;
        uint32_t number;
        gk_each_part<T>(1, elements, [&](uint32_t, uint32_t first) {
            store(line, to, first, [&](uint32_t i) { return *(const uint32_t *)at((begin + i) * WORD); });
        });
        if (line.beside(threadIdx.x, &number))
            ((T *)to)[number] = *at(behind + number * (uint32_t)sizeof(T));
    }

    // The lines, each element to or from its place.
    __device__ inline void load_lines(const char *from, int64_t pitch, uint32_t columns) const {
        gk_each_part<T>(lines, columns, [&](uint32_t number, uint32_t first) {
            const char *source = from + number * pitch;
            const gk_on_words<T> line(source, columns);
            uint32_t column;
            load(line, source, first, [&](uint32_t i, uint32_t value) {
                T element[E];
                memcpy(element, &value, WORD);
                uint32_t here = place(number, line.before + i * E);
#pragma unroll
                for (uint32_t e = 0; e < E; e++)
                    *at(here + e * apart()) = element[e];
            });
            if (first == 0 && line.beside(threadIdx.x % GK_WARP, &column))
                *at(place(number, column)) = ((const T *)source)[column];
        });
    }
    __device__ inline void store_lines(char *to, int64_t pitch, uint32_t columns) const {
        gk_each_part<T>(lines, columns, [&](uint32_t number, uint32_t first) {
            char *target = to + number * pitch;
            const gk_on_words<T> line(target, columns);
            uint32_t column;
            store(line, target, first, [&](uint32_t i) {
                T element[E];
                uint32_t value, here = place(number, line.before + i * E);
#pragma unroll
                for (uint32_t e = 0; e < E; e++)
                    element[e] = *at(here + e * apart());
                memcpy(&value, element, WORD);
                return value;
            });
            if (first == 0 && line.beside(threadIdx.x % GK_WARP, &column))
                ((T *)target)[column] = *at(place(number, column));
        });
    }
};

template <typename T> __device__ static inline void copy_woven(char *to, const char *from, const gk_weaving &how, const gk_layout &stack) {
    enum { WORDS = gk_woven<T>::WORDS };
    __shared__ uint32_t cells[WORDS + (WORDS >> GK_WOVEN_SPREAD) + 1];
    const uint32_t lines = how.lines, matrix = gk_divide(blockIdx.x, how.blocks);
    const uint64_t first = (uint64_t)(blockIdx.x - matrix * how.blocks.value) * how.columns_a_block;
    const uint32_t columns = how.columns - first < how.columns_a_block ? (uint32_t)(how.columns - first) : how.columns_a_block;
    int64_t offset[2];
    gk_offsets(stack, matrix, offset);
    to += offset[TO] + (int64_t)(first * sizeof(T)) * (how.weaves ? lines : 1);
    from += offset[FROM] + (int64_t)(first * sizeof(T)) * (how.weaves ? 1 : lines);
    gk_follow();
    const gk_woven<T> block = {cells, how.spread, gk_on_words<T>(how.weaves ? to : from, 0).behind, lines};
    if (how.weaves) {
        block.load_lines(from, how.pitch, columns);
        __syncthreads();
        block.store_all(to, columns * lines);
    } else {
        block.load_all(from, columns * lines);
        __syncthreads();
        block.store_lines(to, how.pitch, columns);
    }
}

#define GK_COPY_WOVEN(bits, T)                                                                     \
    extern "C" __global__ void __launch_bounds__(GK_WOVEN_THREADS, 8)                              \
        gk_copy_woven_##bits(char *to, const char *from, gk_weaving how, gk_layout stack) {        \
        copy_woven<T>(to, from, how, stack);                                                       \
    }

GK_COPY_WOVEN(8, uint8_t)
GK_COPY_WOVEN(16, uint16_t)

// A vector of each line, and as many of the woven one, which a thread weaves in registers. Those of the woven
// line go through shared memory, so that lanes access neighbours.
template <typename T, int LINES> struct gk_vectors {
    enum { EACH = sizeof(uint4) / sizeof(T) };
    uint4 vector[LINES];

    __device__ inline void weave() { gk_turn<T, LINES, EACH>(vector); }
    __device__ inline void take_apart() { gk_turn<T, EACH, LINES>(vector); }

    // `first`: of the thread's vectors in each line; `pitch` between these.
    __device__ inline void load_lines(const char *first, int64_t pitch) {
#pragma unroll
        for (int l = 0; l < LINES; l++)
            vector[l] = *(const uint4 *)(first + l * pitch);
    }
    __device__ inline void store_lines(char *first, int64_t pitch) const {
#pragma unroll
        for (int l = 0; l < LINES; l++)
            __stcs((uint4 *)(first + l * pitch), vector[l]);
    }
    // `first`: of the warp's vectors in the woven line, of which there are `count`.
    __device__ inline void load_woven(const uint4 *first, uint32_t count, uint4 *cells) {
        const uint32_t lane = threadIdx.x % GK_WARP;
#pragma unroll
        for (int l = 0; l < LINES; l++)
            if (l * GK_WARP + lane < count)
                cells[l * GK_WARP + lane] = first[l * GK_WARP + lane];
        __syncwarp();
#pragma unroll
        for (int l = 0; l < LINES; l++)
            if (lane * LINES + l < count)
                vector[l] = cells[lane * LINES + l];
    }
    __device__ inline void store_woven(uint4 *first, uint32_t count, uint4 *cells) const {
        const uint32_t lane = threadIdx.x % GK_WARP;
#pragma unroll
        for (int l = 0; l < LINES; l++)
            if (lane * LINES + l < count)
                cells[lane * LINES + l] = vector[l];
        __syncwarp();
#pragma unroll
        for (int l = 0; l < LINES; l++)
            if (l * GK_WARP + lane < count)
                first[l * GK_WARP + lane] = cells[l * GK_WARP + lane];
    }
};

// The columns from `first` on, which fill no vector, an element a lane.
template <typename T, int LINES>
__device__ static inline void copy_last_columns(char *to, const char *from, const gk_weaving &how, uint64_t first) {
    const uint32_t lane = threadIdx.x % GK_WARP;
    for (uint32_t i = lane; i < (how.columns - first) * LINES; i += GK_WARP) {
        const uint64_t column = first + i / LINES;
        const int64_t woven = (int64_t)((column * LINES + i % LINES) * sizeof(T));
        const int64_t apart = i % LINES * how.pitch + (int64_t)(column * sizeof(T));
        *(T *)(to + (how.weaves ? woven : apart)) = *(const T *)(from + (how.weaves ? apart : woven));
    }
}

template <typename T, int LINES>
__device__ static inline void copy_by_vectors(char *to, const char *from, const gk_weaving &how, uint64_t first, uint4 *cells) {
    typedef gk_vectors<T, LINES> vectors;
    const uint64_t whole = how.columns / vectors::EACH;
    if (first > whole)
        return;
    if (whole - first < GK_WARP)
        copy_last_columns<T, LINES>(to, from, how, whole * vectors::EACH);
    const uint32_t lane = threadIdx.x % GK_WARP, lanes = whole - first < GK_WARP ? (uint32_t)(whole - first) : GK_WARP;
    const int64_t apart = (int64_t)(first + lane) * 16, woven = (int64_t)first * LINES * 16;
    vectors part;
    if (how.weaves) {
        if (lane < lanes)
            part.load_lines(from + apart, how.pitch);
        part.weave();
        part.store_woven((uint4 *)(to + woven), lanes * LINES, cells);
    } else {
        part.load_woven((const uint4 *)(from + woven), lanes * LINES, cells);
        part.take_apart();
        if (lane < lanes)
            part.store_lines(to + apart, how.pitch);
    }
}

// A warp's vectors begin at the same place in each line.
template <typename T> __device__ static inline void copy_woven_vectors(char *to, const char *from, const gk_weaving &how, const gk_layout &stack) {
    __shared__ uint4 cells[GK_WOVEN_THREADS * GK_VECTOR_LINES];
    const uint32_t matrix = gk_divide(blockIdx.x, how.blocks), warp = threadIdx.x / GK_WARP;
    const uint64_t first = (uint64_t)(blockIdx.x - matrix * how.blocks.value) * GK_WOVEN_THREADS + warp * GK_WARP;
    int64_t offset[2];
    gk_offsets(stack, matrix, offset);
    to += offset[TO];
    from += offset[FROM];
    gk_follow();
    if (how.lines == 2)
        copy_by_vectors<T, 2>(to, from, how, first, cells + warp * GK_WARP * GK_VECTOR_LINES);
    else if (how.lines == 3)
        copy_by_vectors<T, 3>(to, from, how, first, cells + warp * GK_WARP * GK_VECTOR_LINES);
    else
        copy_by_vectors<T, 4>(to, from, how, first, cells + warp * GK_WARP * GK_VECTOR_LINES);
}

#define GK_COPY_WOVEN_VECTORS(bits, T)                                                             \
    extern "C" __global__ void __launch_bounds__(GK_WOVEN_THREADS, 6)                              \
        gk_copy_woven_vectors_##bits(char *to, const char *from, gk_weaving how, gk_layout stack) { \
        copy_woven_vectors<T>(to, from, how, stack);                                               \
    }

GK_COPY_WOVEN_VECTORS(8, uint8_t)
GK_COPY_WOVEN_VECTORS(16, uint16_t)
GK_COPY_WOVEN_VECTORS(32, uint32_t)

#endif
