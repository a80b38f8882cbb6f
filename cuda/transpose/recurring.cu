// Small elements into one run, where their order within a part of it comes again in every other part, as that of the
// pixels of each row does when a picture is flipped: a thread writes the same word of several parts, and finds once
// where its elements are. To find an element anew costs more than to move it.
#include "strided.cuh"
#include "transpose/copies.h"

#define GK_RECURRING_THREADS 256 // a block
#define GK_RECURRING_ROW(size, each)                                                               \
    GK_ROW(copy_recurring, recurring, bits##size, gk_copy_recurring_##size, "the same word of several parts a thread, whose elements are found for all of them", \
           .takes = GK_TAKES_LAYOUT, .tile_rows = 1, .tile_columns = each * GK_RECURRING_THREADS, .threads = GK_RECURRING_THREADS, .alignment = 4, .follows = true)
GK_RECURRING_ROW(8, 4)
GK_RECURRING_ROW(16, 2)

#ifndef GK_ROWS_ONLY

enum { THREADS = GK_RECURRING_THREADS, PARTS = GK_RECURRING_PARTS /* at a time */ };

// Where element i of a part is, in bytes from where that begins.
__device__ static inline int64_t place_in_part(const gk_recurrence &how, uint32_t i) {
    int64_t place = 0;
#pragma unroll
    for (int axis = 0; axis < GK_LAYOUT_DIMENSIONS; axis++) {
        if (axis >= how.ndim)
            break;
        const uint32_t rest = gk_divide(i, how.axis[axis].length);
        place += (int64_t)(i - rest * how.axis[axis].length.value) * how.axis[axis].stride;
        i = rest;
    }
    return place;
}

// The elements of a word, each loaded by itself.
template <typename T> struct one_by_one {
    enum { EACH = sizeof(uint32_t) / sizeof(T) };
    const char *place[EACH];

    __device__ inline void load(T (&loaded)[EACH]) const {
#pragma unroll
        for (int e = 0; e < EACH; e++)
            loaded[e] = *(const T *)place[e];
    }
    __device__ inline uint32_t word(const T (&loaded)[EACH]) const {
        uint32_t made;
        memcpy(&made, loaded, sizeof made);
        return made;
    }
    __device__ inline void go_on(int64_t bytes) {
#pragma unroll
        for (int e = 0; e < EACH; e++)
            place[e] += bytes;
    }
};

// Bytes that lie near one another: those of up to three words, of which each byte is picked. A load of a byte takes as
// long as one of a word.
struct near_bytes {
    enum { WORDS = 3 };
    const char *from;
    uint32_t pick[WORDS - 1], needed; // from the first two, from what came of these and the third; bits of words

    // Whether they are near enough, and no word of theirs reaches beyond `behind`, as far as `more` bytes on.
    __device__ inline bool find(const one_by_one<uint8_t> &bytes, int64_t more, const char *behind) {
        const char *least = bytes.place[0];
#pragma unroll
        for (int e = 1; e < 4; e++)
            least = bytes.place[e] < least ? bytes.place[e] : least;
        from = least - (uintptr_t)least % sizeof(uint32_t);
        pick[0] = 0, pick[1] = 0, needed = 0;
        bool are_near = true;
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int64_t at = bytes.place[e] - from;
            const uint32_t in = (uint32_t)at & 3;
            are_near = are_near && at < WORDS * (int)sizeof(uint32_t);
            needed |= 1u << (at >> 2 & 3);
            pick[0] |= (at < 8 ? (uint32_t)at : 0) << 4 * e;
            pick[1] |= (at < 8 ? e : 4 + in) << 4 * e;
        }
        const char *const last = from + (WORDS - __clz(needed << (32 - WORDS))) * sizeof(uint32_t);
        return are_near && last + (more > 0 ? more : 0) <= behind;
    }
    __device__ inline void load(uint32_t (&loaded)[WORDS]) const {
#pragma unroll
        for (int w = 0; w < WORDS; w++)
            loaded[w] = needed >> w & 1 ? *(const uint32_t *)(from + w * sizeof(uint32_t)) : 0;
    }
    __device__ inline uint32_t word(const uint32_t (&loaded)[WORDS]) const { return __byte_perm(__byte_perm(loaded[0], loaded[1], pick[0]), loaded[2], pick[1]); }
    __device__ inline void go_on(int64_t bytes) { from += bytes; }
};

// A thread's word of each of its parts, of which the first element has the number `element`: all loads of some come before the first
// store. What there is of the last word of all may be less than one: it is left.
template <int LOADED, typename L, class FROM>
__device__ static inline void move_words(uint32_t *to, FROM &from, const gk_recurrence &how, size_t element, uint32_t each) {
    const size_t length = (size_t)how.words.value * each;
    for (uint32_t part = 0; part < how.each && element + each <= how.count; part += PARTS) {
        L loaded[PARTS][LOADED];
#pragma unroll
        for (int j = 0; j < PARTS; j++) {
            if (element + j * length + each <= how.count)
                from.load(loaded[j]);
            from.go_on(how.step);
        }
#pragma unroll
        for (int j = 0; j < PARTS; j++, element += length)
            if (element + each <= how.count)
                to[element / each] = from.word(loaded[j]);
    }
}

// The elements of the last word of all, if it is less than one and this thread's.
template <typename T> __device__ static inline void move_last(char *to, const one_by_one<T> &from, const gk_recurrence &how, size_t element) {
    enum { EACH = one_by_one<T>::EACH };
    const uint32_t left = how.count % EACH, first = how.count - left, length = how.words.value * EACH;
    if (left == 0 || element > first)
        return;
    const uint32_t parts = (first - (uint32_t)element) / length;
    if (parts >= how.each || element + (size_t)parts * length != first)
        return;
#pragma unroll
    for (int e = 0; e < EACH - 1; e++)
        if (e < left)
            ((T *)to)[first + e] = *(const T *)(from.place[e] + parts * how.step);
}

template <typename T> __device__ static inline void copy_recurring(char *to, const char *from, const char *behind, const gk_recurrence &how) {
    enum { EACH = sizeof(uint32_t) / sizeof(T) };
    const uint32_t thread = blockIdx.x * THREADS + threadIdx.x, group = gk_divide(thread, how.words), word = thread - group * how.words.value;
    const size_t length = (size_t)how.words.value * EACH, element = group * how.each * length + word * EACH;
    one_by_one<T> elements;
    from += (int64_t)(group * how.each) * how.step;
#pragma unroll
    for (int e = 0; e < EACH; e++)
        elements.place[e] = from + place_in_part(how, word * EACH + e);
    gk_follow();
    move_last(to, elements, how, element);
    if constexpr (sizeof(T) == 1) {
        near_bytes bytes;
        if (bytes.find(elements, (how.each - 1) * how.step, behind)) {
            move_words<near_bytes::WORDS, uint32_t>((uint32_t *)to, bytes, how, element, EACH);
            return;
        }
    }
    move_words<EACH, T>((uint32_t *)to, elements, how, element, EACH);
}

#define GK_COPY_RECURRING(bits, T)                                                                 \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        gk_copy_recurring_##bits(char *to, const char *from, const char *behind, gk_recurrence how) { \
        copy_recurring<T>(to, from, behind, how);                                                  \
    }

GK_COPY_RECURRING(8, uint8_t)
GK_COPY_RECURRING(16, uint16_t)

#endif
