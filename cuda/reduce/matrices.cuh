// Down the columns of matrices so little that a row of one is a part of a vector, or a few: a block brings several of them
// to shared memory as they lie, by whole vectors, and takes their elements from there, where neighbours cost nothing. A result's
// additions are those that the plan has for it: of a row that its column would be if it were copied, or of a block of columns.
#ifndef GK_REDUCE_MATRICES_CUH
#define GK_REDUCE_MATRICES_CUH

#include "ahead.cuh"

// The matrices of a block, the first of which is number `first`: `count` of them, in runs of so many bytes, which are
// all of them where little lies between, or one each. In shared memory a run begins as far behind a vector as it does in memory.
template <typename T> struct gk_matrices {
    enum { VECTOR = GK_REDUCE_VECTOR_BYTES };
    const gk_reduction &how;
    const gk_run<T> all;
    size_t first;
    unsigned count, runs, of_run, pitch;

    __device__ gk_matrices(const gk_reduction &how, const T *a) : how(how), all(gk_run_of(how, a)), first((size_t)blockIdx.x * how.group) {
        const unsigned each = (unsigned)((how.length - 1) * how.apart + (how.inner - 1) * how.step + sizeof(T));
        count = how.outer - first < how.group ? (unsigned)(how.outer - first) : how.group;
        runs = how.joined ? 1 : count;
        of_run = how.joined ? (count - 1) * (unsigned)how.over + each : each;
        pitch = (of_run + 2 * VECTOR - 2) / VECTOR * VECTOR;
    }
    __device__ const char *begin(unsigned run) const { return (const char *)all.matrix(how, first + run).first; }
    __device__ static unsigned beside(const char *begin) { return (unsigned)((uintptr_t)begin % VECTOR); }
    // Where a matrix begins in shared memory.
    __device__ unsigned place(unsigned matrix) const { return runs == 1 ? beside(begin(0)) + matrix * (unsigned)how.over : matrix * pitch + beside(begin(matrix)); }
    // A vector's elements that are of a run, where it is not whole in the array.
    __device__ void bring_part(char *to, const char *from, const char *begin) const {
#pragma unroll 1
        for (unsigned i = 0; i < VECTOR; i += sizeof(T))
            if (from + i >= begin && from + i < begin + of_run)
                *(T *)(to + i) = gk_read<T>(from + i);
    }
    __device__ void bring(char *held, const char *array) const {
        const unsigned vectors = pitch / VECTOR;
        for (unsigned i = threadIdx.x; i < runs * vectors; i += GK_REDUCE_THREADS) {
            const unsigned run = runs > 1 ? i / vectors : 0;
            const char *const from_run = begin(run), *const from = from_run - beside(from_run) + (i - run * vectors) * VECTOR;
            char *const to = held + i * VECTOR;
            if (from >= array && from + VECTOR <= (const char *)all.end)
                gk_copy_element<VECTOR>(to, from);
            else
                bring_part(to, from, from_run);
        }
        gk_copies_end();
        gk_copies_wait<0>();
        __syncthreads();
    }
};

// The next so many groups of EACH rows, `step` elements from one to the next and `apart` from row to row: all are loaded before the
// first is taken. `at` is where they begin, the first row has number `number`, and then what comes behind them.
template <int GROUPS, int EACH, class Op>
__device__ static inline void gk_take_groups(const Op &op, typename gk_way<Op>::State &state, const typename Op::Element *&at, unsigned apart, unsigned step, unsigned &number) {
    typename Op::Element x[GROUPS][EACH];
#pragma unroll
    for (int g = 0; g < GROUPS; g++, at += step)
#pragma unroll
        for (int e = 0; e < EACH; e++)
            x[g][e] = at[e * apart];
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
#pragma unroll
        for (int e = 0; e < EACH; e++)
            gk_way<Op>::take(op, state, x[g][e], number++);
}

// Rows of a column in shared memory, so many elements apart, that lane `lane` of `lanes` has: EACH neighbouring ones, and the
// next ones `lanes` times as many below.
template <int EACH, class Op>
__device__ static inline typename gk_way<Op>::State gk_take_column(const Op &op, const typename Op::Element *top, unsigned rows, unsigned apart, unsigned lane, unsigned lanes) {
    enum { GROUPS = EACH < GK_REDUCE_COLUMN_LOADS ? GK_REDUCE_COLUMN_LOADS / EACH : 1 };
    const unsigned step = lanes * EACH * apart, side = __popc(lanes - 1), whole = rows / EACH, count = whole > lane ? (whole - lane - 1 >> side) + 1 : 0;
    const typename Op::Element *at = top + lane * EACH * apart;
    typename gk_way<Op>::State state = gk_way<Op>::start();
    unsigned number = 0, left = count;
#pragma unroll 1
    for (; left >= GROUPS; left -= GROUPS)
        gk_take_groups<GROUPS, EACH>(op, state, at, apart, step, number);
    if constexpr (GROUPS >= 8)
        if (left & 4)
            gk_take_groups<4, EACH>(op, state, at, apart, step, number);
    if constexpr (GROUPS >= 4)
        if (left & 2)
            gk_take_groups<2, EACH>(op, state, at, apart, step, number);
    if constexpr (GROUPS >= 2)
        if (left & 1)
            gk_take_groups<1, EACH>(op, state, at, apart, step, number);
    if (EACH > 1 && (whole & (lanes - 1)) == lane) // the rows behind the last whole group
#pragma unroll 1
        for (unsigned row = whole * EACH; row < rows; row++, at += apart)
            gk_way<Op>::take(op, state, *at, number++);
    return state;
}

// What comes of words of a row whose order is no matter. `kept`: the bits of those elements that are of the row; the word's first
// element has the number `number`.
template <class Op> struct gk_words_taken {
    static constexpr bool ARE_TAKEN = false;
};
template <typename T> struct gk_words_taken<gk_plain_sum<T, int64_t>> {
    static constexpr bool ARE_TAKEN = sizeof(T) <= 2;
    uint32_t state = 0;

    __device__ inline void take(const gk_plain_sum<T, int64_t> &, uint32_t word, uint32_t kept, uint32_t) { state = gk_add_elements(state, word & kept, GK_ALL_ELEMENTS, T()); }
    __device__ inline uint32_t all() const { return state; }
};
template <typename T, typename A> struct gk_words_taken<gk_extreme<T, A>> {
    static constexpr bool ARE_TAKEN = sizeof(T) <= 2;
    gk_greatest<T> greatest;

    __device__ inline void take(const gk_extreme<T, A> &op, uint32_t word, uint32_t kept, uint32_t) { greatest.take(word, op.order, kept); }
    __device__ inline uint32_t all() const { return greatest.of_all(); }
};
template <typename T> struct gk_words_taken<gk_narrow_index<T>> {
    static constexpr bool ARE_TAKEN = true;
    uint32_t best = 0;

    __device__ inline void take(const gk_narrow_index<T> &op, uint32_t word, uint32_t kept, uint32_t number) {
        const uint32_t ranks = gk_ranks(word, op.order, T());
#pragma unroll
        for (int k = 0; k < 4 / (int)sizeof(T); k++)
            if (kept >> k * 8 * sizeof(T) & 1)
                gk_way<gk_narrow_index<T>>::join(best, gk_key<T>(ranks, k, number + k));
    }
    __device__ inline uint32_t all() const { return best; }
};

// A row of them in shared memory by the words that it lies in, of which others may have a part of the first one and of the last.
// Lane `lane` of `lanes` has every `lanes`-th one.
template <class Op> __device__ static inline typename gk_way<Op>::State gk_take_words(const Op &op, const typename Op::Element *row, unsigned length, unsigned lane, unsigned lanes) {
    enum { EACH = sizeof(uint32_t) / sizeof(typename Op::Element), LOADS = GK_REDUCE_COLUMN_LOADS };
    const unsigned head = (unsigned)((uintptr_t)row % sizeof(uint32_t) / sizeof(typename Op::Element)), last = (head + length - 1) / EACH;
    const int end = (int)((head + length - last * EACH) * sizeof(typename Op::Element)); // bytes of the last one
    const uint32_t *const words = (const uint32_t *)(row - head);
    gk_words_taken<Op> taken;
    if (lane == 0)
        taken.take(op, words[0], gk_bytes_of_word(0, (int)(head * sizeof(typename Op::Element)), last == 0 ? end : (int)sizeof(uint32_t)), 0 - head);
    if (lane == lanes - 1 && last > 0)
        taken.take(op, words[last], gk_bytes_of_word(0, 0, end), last * EACH - head);
#pragma unroll 1
    for (unsigned next = 1 + lane; next < last; next += LOADS * lanes) {
        uint32_t word[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            if (next + j * lanes < last)
                word[j] = words[next + j * lanes];
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            if (next + j * lanes < last)
                taken.take(op, word[j], UINT32_MAX, (next + j * lanes) * EACH - head);
    }
    return taken.all();
}

// What a lane of a result has of its column.
template <class Op> __device__ static inline typename Op::State gk_state_of_column(const Op &op, const gk_reduction &how, const typename Op::Element *top, unsigned lane) {
    typedef gk_way<Op> way;
    enum { WIDTH = gk_vector<typename Op::Element>::WIDTH };
    const unsigned apart = (unsigned)how.apart / sizeof(*top), rows = (unsigned)how.length, lanes = how.lanes;
    if constexpr (gk_words_taken<Op>::ARE_TAKEN)
        if (apart == 1)
            return way::end(gk_take_words(op, top, rows, lane, lanes), 0, 1);
    if constexpr (!Op::ANY_ORDER)
        if (how.in_vectors)
            return gk_take_column<WIDTH>(op, top, rows, apart, lane, lanes);
    return way::end(gk_take_column<1>(op, top, rows, apart, lane, lanes), lane, lanes);
}

// Neighbouring lanes of a warp have neighbouring results; the lanes of one are as many apart as there are of those.
template <class Op> __device__ static inline void gk_reduce_matrices(const gk_reduction &how, const typename Op::Element *a) {
    typedef typename Op::Element T;
    GK_DYNAMIC_SHARED(uint4, held);
    Op op = {how.order};
    const gk_matrices<T> of(how, a);
    const unsigned columns = (unsigned)how.inner, results = of.count * columns;
    const unsigned lanes = how.lanes, across = __popc(GK_WARP - 1) - __popc(lanes - 1), side = 1u << across; // powers of two
    const unsigned reciprocal = UINT32_MAX / columns + 1; // rounded up: exact for results, which are below 2^16
    gk_follow();
    of.bring((char *)held, (const char *)a);
    for (unsigned i = threadIdx.x; (i / GK_WARP << across) < results; i += GK_REDUCE_THREADS) {
        const unsigned wanted = (i / GK_WARP << across) + (i & (side - 1)), lane = i % GK_WARP >> across, result = wanted < results ? wanted : 0;
        const unsigned matrix = columns > 1 ? __umulhi(result, reciprocal) : result;
        const T *const top = (const T *)((const char *)held + of.place(matrix)) + (result - matrix * columns) * ((unsigned)how.step / sizeof(T));
        typename Op::State state = gk_state_of_column(op, how, top, lane);
        for (unsigned step = GK_WARP / 2; step >= side; step /= 2)
            op.join(state, gk_from_lane_above(state, (int)step, GK_WARP));
        if (lane == 0 && wanted < results)
            gk_store(op, how, of.first * columns + result, state);
    }
}

#endif
