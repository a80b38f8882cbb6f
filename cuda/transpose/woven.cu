// Few lines woven into one, an element of each in turn, and one taken apart into such lines: what a
// transpose is where one of the two axes is short, as of images whose channels lie apart or side by side.
// Both sides are read and written by words; in between, elements change places in shared memory. Elements
// of a word and more are as fast by themselves.
#include "device.cuh"
#include "layout.h"
#include "strided.cuh"

#define GK_WOVEN_THREADS 256 // a block
#define GK_WOVEN_ROW(size, bytes)                                                                  \
    GK_ROW(copy_woven, woven, bits##size, gk_copy_woven_##size, "few lines, an element of each in turn, or the other way: 32 bits an access on both sides", \
           .takes = GK_TAKES_LAYOUT, .tile_rows = 1, .tile_columns = GK_WOVEN_BYTES / bytes, .threads = GK_WOVEN_THREADS, .alignment = bytes, .follows = true)
GK_WOVEN_ROW(8, 1)
GK_WOVEN_ROW(16, 2)

#ifndef GK_ROWS_ONLY

enum { TO, FROM, THREADS = GK_WOVEN_THREADS, WORD = sizeof(uint32_t), AT_ONCE = 4 };

// What a block has of a matrix, in shared memory: `lines` lines that begin at multiples of a word there, each
// so far behind it as it lies behind one in memory. A word after every 32 spreads what lies the same
// number of words apart over all banks.
template <typename T> struct gk_woven {
    enum { E = WORD / sizeof(T), WORDS = GK_WOVEN_BYTES / WORD };
    uint32_t *cells;

    __device__ inline T *at(uint32_t byte) const {
        uint32_t word = byte / WORD;
        return (T *)(cells + word + word / 32) + byte % WORD / sizeof(T);
    }
    __device__ static inline uint32_t behind(const char *address) { return (uint32_t)((uintptr_t)address % WORD); }

    // A line of so many elements to byte `base` and behind: whole words, several loads of a thread under way
    // at once, and the elements in front of the first one and behind the last one by themselves.
    __device__ inline void read(uint32_t base, const char *from, uint32_t elements) const {
        const uint32_t place = base + behind(from), before = before_words(from, elements), words = (elements - before) / E;
        const uint32_t *source = (const uint32_t *)(from + before * sizeof(T));
        const uint32_t first = (place + before * sizeof(T)) / WORD;
        for (uint32_t begin = threadIdx.x; begin < words; begin += AT_ONCE * THREADS) {
            uint32_t value[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++)
                if (begin + j * THREADS < words)
                    value[j] = source[begin + j * THREADS];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++)
                if (begin + j * THREADS < words)
                    *(uint32_t *)at((first + begin + j * THREADS) * WORD) = value[j];
        }
        const uint32_t rest = elements - words * E, number = threadIdx.x < before ? threadIdx.x : threadIdx.x + words * E;
        if (threadIdx.x < rest)
            *at(place + number * sizeof(T)) = *(const T *)(from + number * sizeof(T));
    }
    __device__ static inline uint32_t before_words(const char *address, uint32_t elements) {
        uint32_t before = (WORD - behind(address)) % WORD / sizeof(T);
        return before < elements ? before : elements;
    }

    // A line of so many elements, each of which `element` has: with its number, and the next ones.
    template <typename FIND> __device__ inline void write(char *to, uint32_t elements, FIND element) const {
        const uint32_t before = before_words(to, elements), words = (elements - before) / E;
        for (uint32_t i = threadIdx.x; i < words; i += THREADS) {
            FIND next = element;
            next.begin(before + i * E);
            T value[E];
#pragma unroll
            for (int e = 0; e < E; e++)
                value[e] = *at(next.take());
            memcpy(to + (before + i * E) * sizeof(T), value, WORD);
        }
        const uint32_t rest = elements - words * E, number = threadIdx.x < before ? threadIdx.x : threadIdx.x + words * E;
        if (threadIdx.x < rest) {
            element.begin(number);
            *(T *)(to + number * sizeof(T)) = *at(element.take());
        }
    }
};

// Where the elements of the woven line are that is written: of each line in turn.
template <typename T> struct gk_of_lines {
    const gk_weaving &how;
    uint32_t length; // bytes from line to line
    const char *from;
    uint32_t column, line;

    __device__ inline void begin(uint32_t number) {
        column = gk_divide(number, how.lines);
        line = number - column * how.lines.value;
    }
    __device__ inline uint32_t take() {
        uint32_t place = line * length + gk_woven<T>::behind(from + line * how.pitch) + column * (uint32_t)sizeof(T);
        if (++line == how.lines.value)
            line = 0, column++;
        return place;
    }
};

// Where those of a line are that is taken out of the woven one.
template <typename T> struct gk_of_woven {
    uint32_t lines, line, place;

    __device__ inline void begin(uint32_t number) { place += (number * lines + line) * (uint32_t)sizeof(T); }
    __device__ inline uint32_t take() {
        uint32_t here = place;
        place += lines * (uint32_t)sizeof(T);
        return here;
    }
};

template <typename T> __device__ static inline void copy_woven(char *to, const char *from, const gk_weaving &how, const gk_layout &stack) {
    typedef gk_woven<T> woven;
    __shared__ uint32_t cells[woven::WORDS + woven::WORDS / 32 + 1];
    const woven block = {cells};
    const uint32_t lines = how.lines.value, matrix = gk_divide(blockIdx.x, how.blocks);
    const uint64_t first = (uint64_t)(blockIdx.x - matrix * how.blocks.value) * how.columns_a_block;
    const uint32_t columns = how.columns - first < how.columns_a_block ? (uint32_t)(how.columns - first) : how.columns_a_block;
    int64_t offset[2];
    gk_offsets(stack, matrix, offset);
    to += offset[TO] + (int64_t)(first * sizeof(T)) * (how.weaves ? lines : 1);
    from += offset[FROM] + (int64_t)(first * sizeof(T)) * (how.weaves ? 1 : lines);
    if (how.weaves) {
        const uint32_t length = (uint32_t)(columns * sizeof(T) + 2 * WORD - 1) / WORD * WORD;
        for (uint32_t i = 0; i < lines; i++)
            block.read(i * length, from + i * how.pitch, columns);
        __syncthreads();
        block.write(to, columns * lines, gk_of_lines<T>{how, length, from, 0, 0});
    } else {
        block.read(0, from, columns * lines);
        __syncthreads();
        for (uint32_t i = 0; i < lines; i++)
            block.write(to + i * how.pitch, columns, gk_of_woven<T>{lines, i, woven::behind(from)});
    }
}

#define GK_COPY_WOVEN(bits, T)                                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS, 5)                                       \
        gk_copy_woven_##bits(char *to, const char *from, gk_weaving how, gk_layout stack) {        \
        gk_follow();                                                                               \
        copy_woven<T>(to, from, how, stack);                                                       \
    }

GK_COPY_WOVEN(8, uint8_t)
GK_COPY_WOVEN(16, uint16_t)

#endif
