// Short rows of an array that is one run, as many of a thread's own as a vector has elements: together they are whole vectors,
// however long each is, so that no vector is put together and nothing is joined. All threads are at the same place of their rows,
// which is how one branch a warp tells where a row ends.
#ifndef GK_REDUCE_OWN_CUH
#define GK_REDUCE_OWN_CUH

// Each element of a vector, and `after` it what is to be done then.
template <class Op, typename T, class STATE, class AFTER>
__device__ static inline void gk_take_each(const Op &op, const gk_vector<T> &x, STATE &state, const AFTER &after) {
#pragma unroll
    for (int e = 0; e < gk_vector<T>::WIDTH; e++) {
        gk_way<Op>::take(op, state, x[e], 0);
        after();
    }
}
template <typename T, typename A, class AFTER> __device__ static inline void gk_take_each(const gk_extreme<T, A> &op, const gk_vector<T> &x, uint32_t &state, const AFTER &after) {
    gk_each_rank(x, op.order, GK_ZEROS_APART, [&](int, uint32_t ranks, int k) {
        gk_way<gk_extreme<T, A>>::join(state, gk_rank_of_word<T>(ranks, k));
        after();
    });
}

// The last rows, fewer than a vector has elements, one by one.
template <class Op> __device__ static inline void gk_reduce_last_rows(const Op &op, const gk_reduction &how, const typename Op::Element *a, size_t first) {
#pragma unroll 1
    for (size_t row = first; row < how.outer; row++) {
        typename gk_way<Op>::State state = gk_way<Op>::start();
#pragma unroll 1
        for (size_t i = row * how.length; i < (row + 1) * how.length; i++)
            gk_way<Op>::take(op, state, a[i], 0);
        ((typename Op::Result *)how.result)[row] = gk_result_of_way(op, how, state);
    }
}

// A thread's rows, of elements that come one after another, and what the rows have come to that have ended.
template <class Op> struct gk_own_rows {
    typedef gk_way<Op> way;
    typename way::State state;
    gk_vector<typename Op::Result> made;
    unsigned left; // of the row

    __device__ void start(unsigned length) {
        state = way::start();
        left = length;
    }
    __device__ void take(const Op &op, const gk_reduction &how, const gk_vector<typename Op::Element> &x, unsigned length) {
        gk_take_each(op, x, state, [&] {
            if (--left == 0) {
                made.push(gk_result_of_way(op, how, state));
                start(length);
            }
        });
    }
    __device__ void store(const gk_reduction &how, size_t first) const { *(gk_vector<typename Op::Result> *)((typename Op::Result *)how.result + first) = made; }
};

// Those of a few elements each: all of a thread's at once, and where a row ends is known beforehand.
template <int LENGTH, class Op> __device__ static inline void gk_reduce_few_elements(const Op &op, const gk_reduction &how, const typename Op::Element *a, size_t first) {
    typedef gk_vector<typename Op::Element> vector;
    const vector *const from = (const vector *)(a + first * LENGTH);
    vector x[LENGTH];
    gk_own_rows<Op> rows;
    rows.start(LENGTH);
#pragma unroll
    for (int j = 0; j < LENGTH; j++)
        x[j] = gk_load_global(from + j);
#pragma unroll
    for (int j = 0; j < LENGTH; j++)
        rows.take(op, how, x[j], LENGTH);
    rows.store(how, first);
}

// The array and the results begin on vectors, and the results are of the elements' dtype.
template <class Op> __device__ static inline void gk_reduce_own_rows(const gk_reduction &how, const typename Op::Element *a) {
    typedef gk_vector<typename Op::Element> vector;
    enum { ROWS = vector::WIDTH, LOADS = GK_REDUCE_LOADS };
    static_assert(sizeof(typename Op::Element) == sizeof(typename Op::Result), "a vector of elements for one of results");
    Op op = {how.order};
    const unsigned length = (unsigned)how.length;
    const size_t first = gk_thread() * ROWS;
    const vector *from = (const vector *)(a + first * length);
    gk_own_rows<Op> rows;
    rows.start(length);
    gk_follow();
    if (first + ROWS > how.outer)
        return gk_reduce_last_rows(op, how, a, first);
    if (length == 2)
        return gk_reduce_few_elements<2>(op, how, a, first);
    if (length == 3)
        return gk_reduce_few_elements<3>(op, how, a, first);
#pragma unroll 1
    for (unsigned left = length; left > 0; left = left > LOADS ? left - LOADS : 0, from += LOADS) {
        vector x[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            if (j < left)
                x[j] = gk_load_global(from + j);
#pragma unroll 1
        for (int j = 0; j < LOADS && j < left; j++) { // by code that stands there once
            rows.take(op, how, x[0], length);
#pragma unroll
            for (int k = 0; k < LOADS - 1; k++)
                x[k] = x[k + 1];
        }
    }
    rows.store(how, first);
}

#endif
