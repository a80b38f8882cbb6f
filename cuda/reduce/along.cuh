// Columns that lie as runs in memory, as those of a matrix do that has been transposed: a thread goes along one by aligned
// vectors, of which each element has a state of its own, and all states are put where those of columns that lie side by side
// would be. The additions are those of one run, and no element is put or found by itself.
#ifndef GK_REDUCE_ALONG_CUH
#define GK_REDUCE_ALONG_CUH

// A thread's part of so many rows of a column: every `step`-th aligned vector of those that they lie in, from number `first` on. Of
// EACH neighbouring elements each has its own state.
template <class Op, int EACH>
__device__ static inline void gk_take_along(const Op &op, const gk_run<typename Op::Element> &column, unsigned rows, unsigned first, unsigned step, typename Op::State (&state)[EACH]) {
    typedef gk_vector<typename Op::Element> vector;
    enum { WIDTH = vector::WIDTH, LOADS = GK_REDUCE_COLUMN_LOADS };
    const unsigned skip = column.head(), end = skip + rows;
    const gk_run<typename Op::Element> vectors = column - skip;
    const bool inside = vectors.end - vectors.first >= (int64_t)(end + WIDTH - 1) / WIDTH * WIDTH; // of the array, as far as the last of them
#pragma unroll 1
    for (unsigned i = first; i * WIDTH < end; i += LOADS * step) {
        vector x[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            if ((i + j * step) * WIDTH < end)
                x[j] = inside ? *(const vector *)(vectors.first + (i + j * step) * WIDTH) : (vectors + (i + j * step) * WIDTH).aligned();
#pragma unroll
        for (int j = 0; j < LOADS; j++) {
            const unsigned number = i + j * step;
            const bool whole = number * WIDTH >= skip && (number + 1) * WIDTH <= end;
#pragma unroll
            for (int e = 0; e < WIDTH; e++)
                if (whole || (number * WIDTH + e >= skip && number * WIDTH + e < end))
                    op.take(state[e % EACH], x[j][e], x[j][e], 0);
        }
    }
}

// A segment of a block's columns. EACH: neighbouring rows of a thread, as far as each has a state of its own: a vector's, or all
// that threads have side by side.
template <int EACH, class Op>
__device__ static inline void gk_take_columns_along(const Op &op, const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a, const gk_columns &at, typename Op::State *states) {
    typedef typename Op::Element T;
    enum { WIDTH = gk_vector<T>::WIDTH };
    const size_t begin = at.segment * how.segment, left = how.length - begin;
    const unsigned rows = left < how.segment ? (unsigned)left : (unsigned)how.segment;
    const unsigned threads = at.height / EACH, log = __popc(threads - 1); // of a column; powers of two
    const T *const reach = (const T *)((const char *)a + how.reach);
    a += gk_place_along(layout, 0, how.outer_axes, at.outer) + begin;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < how.lanes * WIDTH * threads; i += GK_REDUCE_COLUMN_THREADS) {
        const unsigned number = i >> log, first = i & (threads - 1);
        typename Op::State state[EACH];
        unsigned skip = 0;
#pragma unroll
        for (int e = 0; e < EACH; e++)
            state[e] = op.start();
        if (at.leftmost + number < how.inner) {
            const gk_run<T> column = {a + gk_place_along(layout, how.outer_axes, how.kept_axes, at.leftmost + number), reach};
            gk_take_along(op, column, rows, first, threads, state);
            skip = column.head();
        }
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const unsigned y = (first * EACH + e - skip) & (at.height - 1);
            states[number % WIDTH * GK_PLANE + y * how.lanes + number / WIDTH] = state[e];
        }
    }
}

template <class Op> __device__ static inline void gk_reduce_columns_along(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    typedef typename Op::State State;
    enum { WIDTH = gk_vector<typename Op::Element>::WIDTH, FEWER = WIDTH < GK_REDUCE_ALONG_ROWS ? WIDTH : GK_REDUCE_ALONG_ROWS };
    Op op = {how.order};
    const gk_columns at = gk_find_columns<WIDTH>(how);
    State *const states = gk_join_memory<Op>();
    gk_follow();
    if (at.height == 1)
        gk_take_columns_along<1>(op, how, layout, a, at, states);
    else if (at.height == 2)
        gk_take_columns_along<2>(op, how, layout, a, at, states);
    else if (at.height < WIDTH)
        gk_take_columns_along<FEWER>(op, how, layout, a, at, states);
    else
        gk_take_columns_along<WIDTH>(op, how, layout, a, at, states);
    gk_end_planes<Op, WIDTH>(op, how, at, states);
}

#endif
