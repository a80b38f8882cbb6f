// How an operation is done on many elements at a time, where that takes fewer instructions than one after another: down
// columns, of which a thread has several side by side, and on the vectors of a row.
#ifndef GK_REDUCE_WAYS_CUH
#define GK_REDUCE_WAYS_CUH

#include "reduce/operations.cuh"

// down columns ------------------------------------------------------------------------------------

// What a thread carries on its way down one, where elements are numbered as it comes by them, in less than 16 bits; and the
// state that makes, where the first one has the number `first` and the next one is `step` further on.
template <class Op> struct gk_plain_way {
    typedef typename Op::State State;
    __device__ static State start() { return Op::start(); }
    template <typename T> __device__ static void take(const Op &op, State &state, T x, uint32_t i) { op.take(state, x, x, i); }
    __device__ static State end(State state, size_t, size_t) { return state; }
};
template <class Op> struct gk_way : gk_plain_way<Op> {};

// Of values of one or two bytes the greatest is found among ranks of so many bits, which are made for all that a word holds at once.
// 0: there has been none yet, or it is the least of whole numbers.
template <bool SHORT, typename T, typename A> struct gk_way_of_extreme : gk_plain_way<gk_extreme<T, A>> {};
template <typename T, typename A> struct gk_way_of_extreme<true, T, A> {
    typedef gk_extreme<T, A> Op;
    typedef uint32_t State;
    __device__ static State start() { return 0; }
    __device__ static void join(State &state, uint32_t rank) { state = rank > state ? rank : state; }
    __device__ static void take(const Op &op, State &state, T x, uint32_t) { join(state, gk_short_rank(x, op.order, GK_ZEROS_APART)); }
    __device__ static typename Op::State end(State rank, size_t, size_t) { return gk_state_of_rank(rank, T()); }
};
template <typename T, typename A> struct gk_way<gk_extreme<T, A>> : gk_way_of_extreme<sizeof(T) <= 2, T, A> {};

// Sums of whole numbers of one or two bytes, of less than 2^16 of which 32 bits are enough.
template <bool SHORT, typename T, typename A> struct gk_way_of_sum : gk_plain_way<gk_plain_sum<T, A>> {};
template <typename T, typename A> struct gk_way_of_sum<true, T, A> {
    typedef uint32_t State;
    __device__ static State start() { return 0; }
    __device__ static void take(const gk_plain_sum<T, A> &, State &state, T x, uint32_t) { state += (uint32_t)gk_as<A>(x); }
    __device__ static A end(State state, size_t, size_t) { return T(-1) < T(0) ? (A)(int32_t)state : (A)state; }
};
template <typename T, typename A> struct gk_way<gk_plain_sum<T, A>> : gk_way_of_sum<sizeof(T) <= 2 && __is_same(A, int64_t), T, A> {};

// An index takes half of the registers there, or fewer.
template <typename T> struct gk_way<gk_narrow_index<T>> {
    typedef gk_narrow_index<T> Op;
    typedef uint32_t State;
    __device__ static State start() { return 0; }
    __device__ static void join(State &state, State other) { state = other > state ? other : state; }
    __device__ static void take(const Op &op, State &state, T x, uint32_t i) {
        join(state, gk_key<T>(gk_short_rank(x, op.order), 0, i));
    }
    __device__ static typename Op::State end(State state, size_t first, size_t step) {
        const size_t i = first + (0xffff - (state & 0xffff)) * step;
        return state == 0 ? 0 : ((uint64_t)(state >> 16) << Op::PLACES) + (Op::LAST - i);
    }
};
template <typename T, typename A> struct gk_way<gk_extreme_index<T, A>> {
    typedef gk_extreme_index<T, A> Op;
    struct State {
        A value;
        uint32_t place;
    };
    __device__ static State start() { return {Op::start().value, UINT32_MAX}; }
    __device__ static void take(const Op &op, State &state, T x, uint32_t i) {
        A value = gk_ordered<T>(gk_as<A>(x), op.order);
        if (!(value <= state.value) && state.value == state.value)
            state = {value, i};
    }
    __device__ static typename Op::State end(State state, size_t first, size_t step) {
        return {state.value, state.place == UINT32_MAX ? GK_NOWHERE : (int64_t)(first + state.place * step)};
    }
};

// The result of all that a thread has come by, where that is a whole column. Of a half it is the rank's own bits.
template <class Op, class HOW> __device__ static inline typename Op::Result gk_result_of_way(const Op &op, const HOW &how, typename gk_way<Op>::State state) {
    return op.result(how, gk_way<Op>::end(state, 0, 1));
}
template <class HOW> __device__ static inline float16 gk_result_of_way(const gk_extreme<float16, float> &op, const HOW &, uint32_t rank) { return gk_half_of_rank<float16>(rank, op.order); }
template <class HOW> __device__ static inline bfloat16 gk_result_of_way(const gk_extreme<bfloat16, float> &op, const HOW &, uint32_t rank) { return gk_half_of_rank<bfloat16>(rank, op.order); }

// One row more, element by element of a vector of columns.
template <class Op, class T, class STATE, int COUNT>
__device__ static inline void gk_take_row(const Op &op, const gk_vector<T, COUNT> &x, uint32_t number, STATE (&state)[COUNT]) {
#pragma unroll
    for (int e = 0; e < COUNT; e++)
        gk_way<Op>::take(op, state[e], x[e], number);
}
template <class T, int COUNT>
__device__ static inline void gk_take_row(const gk_narrow_index<T> &op, const gk_vector<T, COUNT> &x, uint32_t number, uint32_t (&state)[COUNT]) {
    typedef gk_way<gk_narrow_index<T>> way;
    if constexpr (COUNT == 1)
        way::take(op, state[0], x[0], number);
    else
        gk_each_key<0>(op, x, number, [&](int e, uint32_t key) { way::join(state[e], key); });
}

// Rows of bytes, two columns at a time: the best of these few by keys of 16 bits, each a rank and the reverse of its number among them,
// and then by those that all rows have. Half of the instructions.
template <class T, int COUNT, int ROWS>
__device__ static inline void gk_take_rows_of_bytes(const gk_narrow_index<T> &op, const gk_vector<T, COUNT> (&x)[ROWS], uint32_t first, uint32_t (&state)[COUNT]) {
    uint32_t even[COUNT / 4] = {}, odd[COUNT / 4] = {};
#pragma unroll
    for (int j = 0; j < ROWS; j += 2) {
        const uint32_t number = (0xff - j) * 0x00010001u, of_next = number - 0x00010001u; // reversed
#pragma unroll
        for (int w = 0; w < COUNT / 4; w++) {
            const uint32_t ranks = gk_ranks(x[j].bits[w], op.order, T()), next = gk_ranks(x[j + 1].bits[w], op.order, T());
            even[w] = __vimax3_u16x2(even[w], __byte_perm(ranks, number, 0x2404), __byte_perm(next, of_next, 0x2404));
            odd[w] = __vimax3_u16x2(odd[w], (ranks & 0xff00ff00) | number, (next & 0xff00ff00) | of_next);
        }
    }
#pragma unroll
    for (int e = 0; e < COUNT; e++) // a rank and its number, each in 16 bits
        gk_way<gk_narrow_index<T>>::join(state[e], __byte_perm(e % 2 == 0 ? even[e / 4] : odd[e / 4], 0, e % 4 < 2 ? 0x4140 : 0x4342) + (0xff00 - first));
}
// Rows of halves two at a time, by an instruction that finds the greatest of three numbers.
template <class T, int COUNT, int ROWS>
__device__ static inline void gk_take_rows_of_halves(const gk_narrow_index<T> &op, const gk_vector<T, COUNT> (&x)[ROWS], uint32_t number, uint32_t (&state)[COUNT]) {
#pragma unroll
    for (int j = 0; j < ROWS; j += 2)
#pragma unroll
        for (int w = 0; w < COUNT / 2; w++) {
            const uint32_t ranks = gk_ranks(x[j].bits[w], op.order, T()), of_next = gk_ranks(x[j + 1].bits[w], op.order, T());
#pragma unroll
            for (int k = 0; k < 2; k++)
                state[2 * w + k] = __vimax3_u32(state[2 * w + k], gk_key<T>(ranks, k, number + j), gk_key<T>(of_next, k, number + j + 1));
        }
}
template <class Op, int COUNT, int ROWS> constexpr bool gk_takes_rows = false;
template <class T, int COUNT, int ROWS> constexpr bool gk_takes_rows<gk_narrow_index<T>, COUNT, ROWS> = COUNT * sizeof(T) % 4 == 0 && ROWS >= 4 && ROWS % 2 == 0 && gk_compares_words;

template <class T, class A, int COUNT>
__device__ static inline void gk_take_row(const gk_extreme<T, A> &op, const gk_vector<T, COUNT> &x, uint32_t number, uint32_t (&state)[COUNT]) {
    typedef gk_way<gk_extreme<T, A>> way;
    if constexpr (COUNT * sizeof(T) < 4) {
#pragma unroll
        for (int e = 0; e < COUNT; e++)
            way::take(op, state[e], x[e], number);
    } else {
        gk_each_rank(x, op.order, GK_ZEROS_APART, [&](int e, uint32_t ranks, int k) { way::join(state[e], gk_rank_of_word<T>(ranks, k)); });
    }
}

// Elements of a word are added to `sum` by an instruction: those for which there is a 1 in `which`, in a byte of it for each.
enum { GK_ALL_ELEMENTS = 0x01010101 };
__device__ static inline uint32_t gk_add_elements(uint32_t sum, uint32_t word, uint32_t which, uint8_t) { return __dp4a(word, which, sum); }
__device__ static inline uint32_t gk_add_elements(uint32_t sum, uint32_t word, uint32_t which, int8_t) { return (uint32_t)__dp4a((int)word, (int)which, (int)sum); }
__device__ static inline uint32_t gk_add_elements(uint32_t sum, uint32_t word, uint32_t which, uint16_t) { return __dp2a_lo(word, which, sum); }
__device__ static inline uint32_t gk_add_elements(uint32_t sum, uint32_t word, uint32_t which, int16_t) { return (uint32_t)__dp2a_lo((int)word, (int)which, (int)sum); }
__device__ static inline uint32_t gk_add_elements(uint32_t sum, uint32_t word, uint32_t which, bool) { return __dp4a(gk_truths(word), which, sum); }

template <class T, int COUNT>
__device__ static inline void gk_take_row(const gk_plain_sum<T, int64_t> &op, const gk_vector<T, COUNT> &x, uint32_t number, typename gk_way<gk_plain_sum<T, int64_t>>::State (&state)[COUNT]) {
    enum { EACH = 4 / sizeof(T) > 0 ? 4 / sizeof(T) : 1 };
#pragma unroll
    for (int e = 0; e < COUNT; e++)
        if constexpr (sizeof(T) <= 2 && COUNT % EACH == 0)
            state[e] = gk_add_elements(state[e], x.bits[e / EACH], 1u << e % EACH * 8, T());
        else
            gk_way<gk_plain_sum<T, int64_t>>::take(op, state[e], x[e], number);
}

// What a thread carries of neighbouring columns: of each its way.
template <class Op, int COLUMNS, bool PACKED> struct gk_ways_of {
    enum { COUNT = COLUMNS };
    typename gk_way<Op>::State state[COUNT];

    __device__ inline void start() {
#pragma unroll
        for (int e = 0; e < COUNT; e++)
            state[e] = gk_way<Op>::start();
    }
    // One row more of all of them, or of column e.
    template <typename T> __device__ inline void take_row(const Op &op, const gk_vector<T, COUNT> &x, uint32_t number) { gk_take_row(op, x, number, state); }
    template <typename T> __device__ inline void take(const Op &op, int e, T x, uint32_t number) { gk_way<Op>::take(op, state[e], x, number); }
    __device__ inline typename gk_way<Op>::State of(int e) const { return state[e]; }
};
// The greatest of values of one or two bytes two at a time: a quarter of the instructions, and half of the registers.
template <class Op, int COLUMNS> struct gk_ways_of<Op, COLUMNS, true> {
    typedef typename Op::Element T;
    enum { COUNT = COLUMNS, EACH = 4 / sizeof(T) };
    gk_greatest<T> greatest[COUNT / EACH];

    __device__ inline void start() {
#pragma unroll
        for (int w = 0; w < COUNT / EACH; w++)
            greatest[w] = gk_greatest<T>();
    }
    __device__ inline void take_row(const Op &op, const gk_vector<T, COUNT> &x, uint32_t) {
#pragma unroll
        for (int w = 0; w < COUNT / EACH; w++)
            greatest[w].take(x.bits[w], op.order);
    }
    __device__ inline void take(const Op &op, int e, T x, uint32_t) {
        const int place = e % EACH * 8 * sizeof(T);
        uint32_t word = 0;
        memcpy(&word, &x, sizeof x);
        greatest[e / EACH].take(word << place, op.order, (sizeof(T) == 1 ? 0xffu : 0xffffu) << place);
    }
    __device__ inline uint32_t of(int e) const { return greatest[e / EACH].at(e % EACH); }
};
template <class Op, int COLUMNS> constexpr bool gk_are_packed = false;
template <typename T, typename A, int COLUMNS> constexpr bool gk_are_packed<gk_extreme<T, A>, COLUMNS> = sizeof(T) <= 2 && COLUMNS * sizeof(T) % 4 == 0 && (__is_same(typename gk_traits<T>::order, float) ? gk_compares_halves : gk_compares_words);
template <class Op, int COLUMNS> struct gk_ways : gk_ways_of<Op, COLUMNS, gk_are_packed<Op, COLUMNS>> {
    // Rows that follow one another: all of them, or `count`.
    template <bool ALL, typename T, int ROWS> __device__ inline void take_rows(const Op &op, const gk_vector<T, COLUMNS> (&x)[ROWS], uint32_t number, unsigned count) {
        if constexpr (ALL && gk_takes_rows<Op, COLUMNS, ROWS> && sizeof(T) == 1)
            gk_take_rows_of_bytes(op, x, number, this->state);
        else if constexpr (ALL && gk_takes_rows<Op, COLUMNS, ROWS>)
            gk_take_rows_of_halves(op, x, number, this->state);
        else
#pragma unroll
            for (int j = 0; j < ROWS; j++)
                if (ALL || j < count)
                    this->take_row(op, x[j], number + j);
    }
};

// along rows --------------------------------------------------------------------------------------

// A vector of a run, whose elements have the numbers from `index` on; and those of it that are of a run of `length`, where the first
// one would be its number `at`.
template <class Op, typename T>
__device__ static inline void gk_take_vector(const Op &op, typename Op::State &state, const gk_vector<T> &x, const gk_vector<T> &y, size_t index) {
#pragma unroll
    for (int e = 0; e < gk_vector<T>::WIDTH; e++)
        op.take(state, x[e], y[e], index + e);
}
template <typename T, typename A>
__device__ static inline void gk_take_vector(const gk_extreme<T, A> &op, typename gk_extreme<T, A>::State &state, const gk_vector<T> &x, const gk_vector<T> &y, size_t) {
    if constexpr (sizeof(T) <= 2)
        op.join(state, gk_way<gk_extreme<T, A>>::end(gk_greatest_rank(x, op.order, GK_ZEROS_APART), 0, 1));
    else
#pragma unroll
        for (int e = 0; e < gk_vector<T>::WIDTH; e++)
            op.take(state, x[e], y[e], 0);
}
// Of whole numbers of one or two bytes a word at a time.
template <typename T>
__device__ static inline void gk_take_vector(const gk_plain_sum<T, int64_t> &op, int64_t &state, const gk_vector<T> &x, const gk_vector<T> &, size_t) {
    if constexpr (sizeof(T) <= 2) {
        uint32_t sum = 0;
#pragma unroll
        for (int w = 0; w < 4; w++)
            sum = gk_add_elements(sum, x.bits[w], GK_ALL_ELEMENTS, T());
        state += gk_way<gk_plain_sum<T, int64_t>>::end(sum, 0, 1);
    } else {
#pragma unroll
        for (int e = 0; e < gk_vector<T>::WIDTH; e++)
            op.take(state, x[e], x[e], 0);
    }
}
template <class Op, typename T>
__device__ static inline void gk_take_some(const Op &op, typename Op::State &state, const gk_vector<T> &x, int at, unsigned length, size_t index) {
#pragma unroll
    for (int e = 0; e < gk_vector<T>::WIDTH; e++)
        if ((unsigned)(at + e) < length)
            op.take(state, x[e], x[e], index + e);
}
// In 32 bits first, and the best of them in 64.
template <typename T>
__device__ static inline void gk_take_some(const gk_narrow_index<T> &op, uint64_t &state, const gk_vector<T> &x, int at, unsigned length, size_t index) {
    uint32_t best = 0;
    gk_each_key<1>(op, x, 0, [&](int e, uint32_t key) { best = (unsigned)(at + e) < length && key > best ? key : best; });
    if (best > 0)
        op.join(state, gk_way<gk_narrow_index<T>>::end(best, index, 1));
}
template <typename T>
__device__ static inline void gk_take_vector(const gk_narrow_index<T> &op, uint64_t &state, const gk_vector<T> &x, const gk_vector<T> &, size_t index) {
    gk_take_some(op, state, x, 0, gk_vector<T>::WIDTH, index);
}
// The same where any order does, of elements of one or two bytes: those in [first, end) alone, whose bits are kept. Few vectors have
// others, but in most warps there are such.
template <typename T> struct gk_kept {
    uint32_t bits[4];

    __device__ gk_kept(int first, int end) {
#pragma unroll
        for (int w = 0; w < 4; w++)
            bits[w] = UINT32_MAX;
        if (first > 0 || end < gk_vector<T>::WIDTH)
#pragma unroll
            for (int w = 0; w < 4; w++)
                bits[w] = gk_bytes_of_word(w, first * (int)sizeof(T), end * (int)sizeof(T));
    }
};
template <typename T> __device__ static inline void gk_take_kept(const gk_plain_sum<T, int64_t> &op, int64_t &state, gk_vector<T> x, const gk_kept<T> &kept) {
#pragma unroll
    for (int w = 0; w < 4; w++)
        x.bits[w] &= kept.bits[w];
    gk_take_vector(op, state, x, x, 0);
}
template <typename T, typename A> __device__ static inline void gk_take_kept(const gk_extreme<T, A> &op, typename gk_extreme<T, A>::State &state, const gk_vector<T> &x, const gk_kept<T> &kept) {
    gk_greatest<T> most;
#pragma unroll
    for (int w = 0; w < 4; w++)
        most.take(x.bits[w], op.order, kept.bits[w]);
    op.join(state, gk_way<gk_extreme<T, A>>::end(most.of_all(), 0, 1));
}
template <class Op> constexpr bool gk_takes_kept = false;
template <typename T> constexpr bool gk_takes_kept<gk_plain_sum<T, int64_t>> = sizeof(T) <= 2;
template <typename T, typename A> constexpr bool gk_takes_kept<gk_extreme<T, A>> = sizeof(T) <= 2;

template <class Op, typename T>
__device__ static inline void gk_take_part(const Op &op, typename Op::State &state, const gk_vector<T> &x, int at, unsigned length, size_t index) {
    enum { WIDTH = gk_vector<T>::WIDTH };
    if constexpr (gk_takes_kept<Op>)
        gk_take_kept(op, state, x, gk_kept<T>(-at, (int)length - at));
    else if (sizeof(T) <= 2 && at >= 0 && (unsigned)at + WIDTH <= length)
        gk_take_vector(op, state, x, x, index);
    else
        gk_take_some(op, state, x, at, length, index);
}

#endif
