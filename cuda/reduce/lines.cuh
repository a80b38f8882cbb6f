// Long rows that are made of lines, as those of an array are of which a part is cut away: a line's elements lie side by side, and
// the next line somewhere else. Where lines begin is listed in shared memory, and a thread divides once to find its first vector:
// it comes from one to the next by additions.
#ifndef GK_REDUCE_LINES_CUH
#define GK_REDUCE_LINES_CUH

#include "reduce/tiles.cuh"

// Elements side by side; those of lines that are aligned vectors; and every second one.
typedef enum gk_lines_lie { GK_LIES_ANYWHERE, GK_LIES_ALIGNED, GK_LIES_APART } gk_lines_lie;

// Where the lines of a part of a row begin, in bytes from `base` on; nothing is read from `reach` on.
struct gk_row_lines {
    const char *base, *reach;
    const int64_t *places;
};

// A vector as it is loaded: all at once, or element by element, or of halves by the pairs of words that it lies in. With several
// under way there are no registers for two aligned vectors of each.
template <typename T, gk_lines_lie LIES> struct gk_loose {
    enum { WIDTH = gk_vector<T>::WIDTH, APART = LIES == GK_LIES_APART ? 2 : 1, BY_PAIRS = sizeof(T) == 2 && LIES == GK_LIES_ANYWHERE };
    uint32_t word[BY_PAIRS ? 6 : 4];

    // 32 bytes may be read from `at` on, or twice as many, unless it is aligned.
    __device__ void load(const T *at) {
        enum { LOADS = LIES == GK_LIES_ALIGNED ? 1 : BY_PAIRS ? 3 : WIDTH, WORDS = sizeof word / sizeof *word / LOADS };
        typedef gk_vector<uint32_t, WORDS> part;
        const char *const first = (const char *)((uintptr_t)at & ~(uintptr_t)(BY_PAIRS ? 7 : 0));
#pragma unroll
        for (int l = 0; l < LOADS; l++) {
            const part loaded = gk_load_global((const part *)(first + l * APART * sizeof(part)));
#pragma unroll
            for (int w = 0; w < WORDS; w++)
                word[l * WORDS + w] = loaded.bits[w];
        }
    }
    __device__ gk_vector<T> vector(const T *at) const {
        gk_vector<T> loaded;
        if constexpr (BY_PAIRS) {
            const bool upper = ((uintptr_t)at & 4) != 0;
            uint32_t from[5];
#pragma unroll
            for (int w = 0; w < 5; w++)
                from[w] = upper ? word[w + 1] : word[w];
#pragma unroll
            for (int w = 0; w < 4; w++)
                loaded.bits[w] = __funnelshift_r(from[w], from[w + 1], (unsigned)(uintptr_t)at * 8); // of 32: half a word, or none
        } else {
            memcpy(loaded.bits, word, sizeof word);
        }
        return loaded;
    }
};

// The vectors of a thread, each STEP elements behind the last one: the number of the line, and of the element along it.
template <uint32_t STEP> struct gk_line_walk {
    const uint32_t length, lines, rest;
    uint32_t line, along;

    __device__ gk_line_walk(gk_divisor of_line, uint32_t first)
        : length(of_line.value), lines(gk_divide(STEP, of_line)), rest(STEP - lines * length), line(gk_divide(first, of_line)), along(first - line * length) {}
    __device__ uint32_t left() const { return length - along; } // of the line
    __device__ void step() {
        along += rest;
        line += lines;
        if (along >= length)
            along -= length, line++;
    }
};

// A vector whose first `left` elements lie from `here` on, and the others from the beginning of the next line on.
template <int APART, typename T> __device__ static inline gk_vector<T> gk_load_across(const T *here, const T *next, uint32_t left) {
    gk_vector<T> loaded;
    T x[gk_vector<T>::WIDTH];
#pragma unroll
    for (int e = 0; e < gk_vector<T>::WIDTH; e++)
        x[e] = gk_read<T>(e < left ? here + e * APART : next + (e - left) * APART);
    loaded.pack(x);
    return loaded;
}

// LOADS vectors of a thread: those that lie in one line are loaded before the first of those that go on in the next one.
template <int LOADS, gk_lines_lie LIES, uint32_t STEP, class Op>
__device__ static inline void gk_take_in_lines(const Op &op, typename Op::State &state, const gk_row_lines &all, gk_line_walk<STEP> &walk) {
    typedef typename Op::Element T;
    typedef gk_loose<T, LIES> loose;
    enum { WIDTH = gk_vector<T>::WIDTH, APART = loose::APART };
    loose x[LOADS];
    const T *place[LOADS], *from[LOADS];
    bool whole[LOADS];
    gk_line_walk<STEP> behind = walk;
#pragma unroll
    for (int j = 0; j < LOADS; j++, walk.step()) {
        const T *const line = (const T *)(all.base + all.places[walk.line]);
        place[j] = line + walk.along * APART;
        whole[j] = LIES == GK_LIES_ALIGNED || (walk.left() >= WIDTH && (const char *)place[j] <= all.reach - 2 * APART * GK_REDUCE_VECTOR_BYTES);
        from[j] = whole[j] ? place[j] : line; // which may be read, for nobody: loads without a condition
    }
#pragma unroll
    for (int j = 0; j < LOADS; j++)
        x[j].load(from[j]);
#pragma unroll
    for (int j = 0; j < LOADS; j++, behind.step()) {
        gk_vector<T> taken;
        if (whole[j])
            taken = x[j].vector(place[j]);
        else
            taken = gk_load_across<APART>(place[j], (const T *)(all.base + (behind.left() < WIDTH ? all.places[behind.line + 1] : 0)), behind.left());
        gk_take_vector(op, state, taken, taken, 0);
    }
}

// Those vectors of a thread that are whole, of elements up to number `end`; returns how many elements lie before the next one.
template <gk_lines_lie LIES, class Op, class WALK>
__device__ static inline uint32_t gk_take_whole_in_lines(const Op &op, typename Op::State &state, const gk_row_lines &all, WALK walk, uint32_t end) {
    enum { WIDTH = gk_vector<typename Op::Element>::WIDTH, STEP = GK_REDUCE_THREADS * WIDTH, LOADS = gk_loose<typename Op::Element, LIES>::BY_PAIRS ? 3 : 4 };
    uint32_t i = threadIdx.x * WIDTH;
#pragma unroll 1
    for (; i + (LOADS - 1) * STEP + WIDTH <= end; i += LOADS * STEP)
        gk_take_in_lines<LOADS, LIES>(op, state, all, walk);
#pragma unroll 1
    for (; i + WIDTH <= end; i += STEP)
        gk_take_in_lines<1, LIES>(op, state, all, walk);
    return i;
}

// The same for all threads.
template <typename T> __device__ static inline gk_lines_lie gk_how_lines_lie(const gk_axes &layout, const T *a) {
    const int last = layout.ndim - 1;
    uintptr_t bits = (uintptr_t)a | layout.axis[last].length.value * sizeof(T);
    for (int axis = 0; axis < last; axis++)
        bits |= (uintptr_t)layout.axis[axis].stride;
    return layout.axis[last].stride != sizeof(T) ? GK_LIES_APART : bits % GK_REDUCE_VECTOR_BYTES == 0 ? GK_LIES_ALIGNED : GK_LIES_ANYWHERE;
}

// The elements of a block's part of a row: chunk by chunk, as many lines at a time as are listed.
template <gk_lines_lie LIES, class Op> __device__ static inline void gk_reduce_rows_in_lines(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    typedef typename Op::Element T;
    enum { WIDTH = gk_vector<T>::WIDTH, STEP = GK_REDUCE_THREADS * WIDTH };
    GK_DYNAMIC_SHARED(uint4, memory);
    int64_t *const places = (int64_t *)memory;
    Op op = {how.order};
    typename Op::State state = op.start();
    const uint32_t segments = (uint32_t)how.segments, row = blockIdx.x / segments, segment = blockIdx.x - row * segments;
    const uint32_t begin = segment * (uint32_t)how.segment, left = (uint32_t)how.length - begin, count = left < how.segment ? left : (uint32_t)how.segment;
    const int axis = layout.ndim - 1;
    const gk_divisor of_line = layout.axis[axis].length;
    const size_t fit = (size_t)(GK_REDUCE_LINES - 2) * of_line.value / STEP * STEP;
    const uint32_t step = fit < count ? (uint32_t)fit : count;
    const gk_row_lines all = {(const char *)a, (const char *)a + how.reach, places};
    gk_follow();
#pragma unroll 1
    for (uint32_t chunk = 0; chunk < count; chunk += step) {
        const uint32_t number = row * (uint32_t)how.length + begin + chunk, first = gk_divide(number, of_line), skip = number - first * of_line.value;
        const uint32_t end = count - chunk < step ? count - chunk : step;
        gk_list_places(places, layout, 0, axis, first, gk_divide(skip + end - 1, of_line) + 1);
        __syncthreads();
        const gk_line_walk<STEP> walk(of_line, skip + threadIdx.x * WIDTH);
        const uint32_t i = gk_take_whole_in_lines<LIES>(op, state, all, walk, end);
        if (i < end)
            gk_take_padded(op, state, (gk_gather(how, layout, a) + (number + i)).one_by_one(end - i), end - i);
        __syncthreads();
    }
    gk_end_row(op, how, row, segment, state);
}

template <class Op> __device__ static inline void gk_reduce_lines(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    const gk_lines_lie lies = gk_how_lines_lie(layout, a);
    if (lies == GK_LIES_ALIGNED)
        return gk_reduce_rows_in_lines<GK_LIES_ALIGNED, Op>(how, layout, a);
    if constexpr (sizeof(typename Op::Element) > 2)
        if (lies == GK_LIES_APART)
            return gk_reduce_rows_in_lines<GK_LIES_APART, Op>(how, layout, a);
    gk_reduce_rows_in_lines<GK_LIES_ANYWHERE, Op>(how, layout, a);
}

#endif
