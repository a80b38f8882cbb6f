// Down the columns of matrices so little that a row of one is a part of a vector, or a few: a block brings several of them
// to shared memory as they lie, by whole vectors, and takes their elements from there, where neighbours cost nothing. A result's
// additions are those that the plan has for it: of a row that its column would be if it were copied, or of a block of columns.
#ifndef GK_REDUCE_MATRICES_CUH
#define GK_REDUCE_MATRICES_CUH

#include "ahead.cuh"

// The matrices of a block, the first of which is number `first`: `count` of them, in runs of so many bytes, which are
// all of them where little lies between, or one each. In shared memory a run begins as far behind a vector as it does in memory.
template <typename T> struct gk_matrices {
    enum { VECTOR = GK_REDUCE_VECTOR_BYTES, SIDE = 8 }; // threads of a run: a line at a time
    const gk_reduction &how;
    const gk_run<T> all;
    size_t first;
    unsigned count, runs, of_run, pitch;
    const char *start; // of the first run

    __device__ gk_matrices(const gk_reduction &how, const T *a) : how(how), all(gk_run_of(how, a)), first((size_t)blockIdx.x * how.group) {
        const unsigned each = (unsigned)((how.length - 1) * how.apart + (how.inner - 1) * how.step + sizeof(T));
        count = how.outer - first < how.group ? (unsigned)(how.outer - first) : how.group;
        runs = how.joined ? 1 : count;
        of_run = how.joined ? (count - 1) * (unsigned)how.over + each : each;
        pitch = (of_run + 2 * VECTOR - 2) / VECTOR * VECTOR;
        start = begin(0);
    }
    __device__ const char *begin(unsigned run) const { return (const char *)all.matrix(how, first + run).first; }
    __device__ static unsigned beside(const char *begin) { return (unsigned)((uintptr_t)begin % VECTOR); }
    // Where a matrix begins in shared memory.
    __device__ unsigned place(unsigned matrix) const { return runs == 1 ? beside(start) + matrix * (unsigned)how.over : matrix * pitch + beside(begin(matrix)); }
    // A vector's elements that are of a run, where it is not whole in the array.
    __device__ void bring_part(char *to, const char *from, const char *begin) const {
#pragma unroll 1
        for (unsigned i = 0; i < VECTOR; i += sizeof(T))
            if (from + i >= begin && from + i < begin + of_run)
                *(T *)(to + i) = gk_read<T>(from + i);
    }
    // Vector number i of a run that begins there.
    __device__ void bring_vector(char *to, const char *array, const char *begin, unsigned i) const {
        const char *const from = begin - beside(begin) + i * VECTOR;
        if (from >= array && from + VECTOR <= (const char *)all.end)
            gk_copy_element<VECTOR>(to, from);
        else
            bring_part(to, from, begin);
    }
    // Vectors of runs that lie evenly apart, one run after another.
    __device__ void bring_runs(char *held, const char *array) const {
        const unsigned vectors = pitch / VECTOR, inverse = vectors > 1 ? UINT32_MAX / vectors + 1 : 0; // rounded up: exact below 2^16
        for (unsigned i = threadIdx.x; i < runs * vectors; i += GK_REDUCE_THREADS) {
            const unsigned run = inverse ? __umulhi(i, inverse) : i, number = i - run * vectors;
            const char *const from = start + (int64_t)run * how.over;
            if (number * VECTOR < beside(from) + of_run)
                bring_vector(held + i * VECTOR, array, from, number);
        }
    }
    __device__ void bring(char *held, const char *array) const {
        const unsigned vectors = pitch / VECTOR;
        if (runs == 1) // as most are: nothing is to be found for each vector
            for (unsigned i = threadIdx.x; i < vectors; i += GK_REDUCE_THREADS)
                bring_vector(held + i * VECTOR, array, start, i);
        else if (how.bundle < 2)
            bring_runs(held, array);
        else
            for (unsigned run = threadIdx.x / SIDE; run < runs; run += GK_REDUCE_THREADS / SIDE) {
                const char *const from = begin(run);
                for (unsigned i = threadIdx.x % SIDE; i < vectors; i += SIDE)
                    bring_vector(held + (run * vectors + i) * VECTOR, array, from, i);
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

// What comes of words of a row whose order is no matter, of all of them and of all lanes. `take`: a word whose first element has the
// number `number`; the bits of those that are of the row are `kept`, and others come behind them. ARE_COUNTED: whole ones are
// taken by `take_whole`, from `begin` on, which has the number of the first one, `apart` elements from one to the next.
struct gk_words_alike {
    static constexpr bool ARE_COUNTED = false;
    __device__ inline void begin(uint32_t, uint32_t) {}
};
template <class Op> struct gk_words_taken {
    static constexpr bool ARE_TAKEN = false;
};
template <typename T> struct gk_words_taken<gk_plain_sum<T, int64_t>> : gk_words_alike {
    static constexpr bool ARE_TAKEN = sizeof(T) <= 2;
    uint32_t state = 0;

    __device__ inline void take(const gk_plain_sum<T, int64_t> &, uint32_t word, uint32_t kept, uint32_t) { state = gk_add_elements(state, word & kept, GK_ALL_ELEMENTS, T()); }
    __device__ inline uint32_t all() const { return state; }
    __device__ static void join(uint32_t &state, uint32_t other) { state += other; }
};
template <typename T, typename A> struct gk_words_taken<gk_extreme<T, A>> : gk_words_alike {
    static constexpr bool ARE_TAKEN = sizeof(T) <= 2;
    gk_greatest<T> greatest;

    __device__ inline void take(const gk_extreme<T, A> &op, uint32_t word, uint32_t kept, uint32_t) { greatest.take(word, op.order, kept); }
    __device__ inline uint32_t all() const { return greatest.of_all(); }
    __device__ static void join(uint32_t &state, uint32_t other) { gk_way<gk_extreme<T, A>>::join(state, other); }
};
// Of an index the best of a word by its place there first, an instruction less for each. Elements that are not of the row have rank 0
// and come behind those that are, so that they lose to what has that rank, too.
template <typename T> struct gk_index_of_words : gk_words_alike {
    typedef gk_narrow_index<T> Op;
    uint32_t best = 0;

    __device__ static void join(uint32_t &state, uint32_t other) { gk_way<Op>::join(state, other); }
    __device__ inline void take(const Op &op, uint32_t word, uint32_t kept, uint32_t number) {
        const uint32_t ranks = gk_ranks(word, op.order, T()) & kept;
        uint32_t of_word = 0;
#pragma unroll
        for (int k = 0; k < 4 / (int)sizeof(T); k++)
            join(of_word, gk_key<T>(ranks, k, k));
        join(best, of_word - number);
    }
    __device__ inline uint32_t all() const { return best; }
};
// What is below a rank in the keys of whole words is in a register that they are counted by. Of halves the reverses of both numbers.
template <typename T, size_t SIZE = sizeof(T)> struct gk_index_of_counted : gk_index_of_words<T> {
    static constexpr bool ARE_COUNTED = true;
    uint32_t numbers, step;

    __device__ inline void take_whole(const gk_narrow_index<T> &op, uint32_t word) {
        const uint32_t ranks = gk_ranks(word, op.order, T());
        this->join(this->best, __byte_perm(ranks, numbers, 0x1054));
        this->join(this->best, __byte_perm(ranks, numbers, 0x3276));
        numbers -= step;
    }
    __device__ inline void begin(uint32_t number, uint32_t apart) { numbers = 0xfffeffff - 0x10001 * number, step = 0x10001 * apart; }
};
// Of bytes two at a time, where there is an instruction for it: a rank and the reverse of a place among the whole words, no more than
// GK_REDUCE_COUNTED_WORDS, have 16 bits. Half of the instructions.
template <typename T> struct gk_index_of_counted<T, 1> : gk_index_of_words<T> {
    static constexpr bool ARE_COUNTED = gk_compares_words;
    enum : uint32_t { NO_WORDS = 0xfcfdfeff, WORD = 0x04040404 };
    uint32_t odd = 0, even = 0, places = NO_WORDS, first = 0, step = 0;

    __device__ inline void take_whole(const gk_narrow_index<T> &op, uint32_t word) {
        const uint32_t ranks = gk_ranks(word, op.order, T());
        even = __vmaxu2(even, __byte_perm(ranks, places, 0x2604));
        odd = __vmaxu2(odd, __byte_perm(ranks, places, 0x3715));
        places -= WORD;
    }
    __device__ inline void begin(uint32_t number, uint32_t apart) { first = number, step = apart; }
    __device__ inline uint32_t all() const {
        uint32_t all = this->best;
        if (places != NO_WORDS) {
            const uint32_t key = gk_greater_half(__vmaxu2(odd, even)), place = 0xff - (key & 0xff);
            this->join(all, (key >> 8 << 16) + (0xffff - (first + place / 4 * step + place % 4)));
        }
        return all;
    }
};
template <typename T> struct gk_words_taken<gk_narrow_index<T>> : gk_index_of_counted<T> {
    static constexpr bool ARE_TAKEN = true;
};

// The next so many whole words that a lane has, `step` apart: all are loaded before the first is taken. `at` is where they begin, the
// first element of the first one has the number `number`, and then what comes behind them.
template <int COUNT, class Op, class WORDS> __device__ static inline void gk_take_next_words(const Op &op, WORDS &taken, const uint32_t *&at, unsigned step, uint32_t &number) {
    enum { EACH = sizeof(uint32_t) / sizeof(typename Op::Element) };
    uint32_t word[COUNT];
#pragma unroll
    for (int j = 0; j < COUNT; j++, at += step)
        word[j] = *at;
#pragma unroll
    for (int j = 0; j < COUNT; j++)
        if constexpr (WORDS::ARE_COUNTED)
            taken.take_whole(op, word[j]);
        else
            taken.take(op, word[j], UINT32_MAX, number + j * step * EACH);
    number += COUNT * step * EACH;
}

// A row of them in shared memory by the words that it lies in, of which others may have a part of the first one and of the last.
// Lane `lane` of `lanes` has every `lanes`-th one.
template <class Op> __device__ static inline typename gk_way<Op>::State gk_take_words(const Op &op, const typename Op::Element *row, unsigned length, unsigned lane, unsigned lanes) {
    enum { SIZE = sizeof(typename Op::Element), EACH = sizeof(uint32_t) / SIZE, LOADS = GK_REDUCE_COLUMN_LOADS };
    const unsigned head = (unsigned)((uintptr_t)row % sizeof(uint32_t) / SIZE), last = (head + length - 1) / EACH;
    const int before = (int)(head * SIZE), end = (int)((head + length - last * EACH) * SIZE); // bytes of the first one and of the last
    const uint32_t *at = (const uint32_t *)(row - head) + lane;
    gk_words_taken<Op> taken;
    unsigned left = last >= lane ? (last - lane >> __popc(lanes - 1)) + 1 : 0; // words
    uint32_t number = lane * EACH - head;
    if (lane == 0) {
        taken.take(op, *at >> 8 * before, gk_bytes_of_word(0, 0, (last == 0 ? end : (int)sizeof(uint32_t)) - before), 0);
        at += lanes, number += lanes * EACH, left--;
    }
    const bool has_last = left > 0 && (last - lane & (lanes - 1)) == 0;
    left -= has_last;
    taken.begin(number, lanes * EACH);
#pragma unroll 1
    for (; left >= LOADS; left -= LOADS)
        gk_take_next_words<LOADS>(op, taken, at, lanes, number);
    if (left & 4)
        gk_take_next_words<4>(op, taken, at, lanes, number);
    if (left & 2)
        gk_take_next_words<2>(op, taken, at, lanes, number);
    if (left & 1)
        gk_take_next_words<1>(op, taken, at, lanes, number);
    if (has_last)
        taken.take(op, *at, gk_bytes_of_word(0, 0, end), number);
    return taken.all();
}

// What all lanes of a warp have that are `side` apart, in the first of these.
template <class STATE, class JOIN> __device__ static inline void gk_join_far_lanes(STATE &state, unsigned side, const JOIN &join) {
    for (unsigned step = GK_WARP / 2; step >= side; step /= 2)
        join(state, gk_from_lane_above(state, (int)step, GK_WARP));
}

// What a lane of a result has of its column; and what all of them have, in the first one.
template <class Op> __device__ static inline typename Op::State gk_state_of_lane(const Op &op, const gk_reduction &how, const typename Op::Element *top, unsigned lane) {
    enum { WIDTH = gk_vector<typename Op::Element>::WIDTH };
    const unsigned apart = (unsigned)how.apart / sizeof(*top), rows = (unsigned)how.length, lanes = how.lanes;
    if constexpr (!Op::ANY_ORDER)
        if (how.in_vectors)
            return gk_take_column<WIDTH>(op, top, rows, apart, lane, lanes);
    return gk_way<Op>::end(gk_take_column<1>(op, top, rows, apart, lane, lanes), lane, lanes);
}
template <class Op> __device__ static inline typename Op::State gk_state_of_column(const Op &op, const gk_reduction &how, const typename Op::Element *top, unsigned lane, unsigned side) {
    typedef gk_words_taken<Op> words;
    if constexpr (words::ARE_TAKEN)
        if (how.apart == sizeof(*top)) {
            uint32_t taken = gk_take_words(op, top, (unsigned)how.length, lane, how.lanes);
            gk_join_far_lanes(taken, side, [](uint32_t &state, uint32_t other) { words::join(state, other); });
            return gk_way<Op>::end(taken, 0, 1);
        }
    typename Op::State state = gk_state_of_lane(op, how, top, lane);
    gk_join_far_lanes(state, side, [&](typename Op::State &state, const typename Op::State &other) { op.join(state, other); });
    return state;
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
        const typename Op::State state = gk_state_of_column(op, how, top, lane, side);
        if (lane == 0 && wanted < results)
            gk_store(op, how, of.first * columns + result, state);
    }
}

#endif
