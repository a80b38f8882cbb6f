// Columns that lie as runs in memory, as those of a matrix do that has been transposed: a thread goes along one by aligned
// vectors, of which each element has a state of its own, and all states are put where those of columns that lie side by side
// would be. The additions are those of one run, and no element is put or found by itself.
#ifndef GK_REDUCE_ALONG_CUH
#define GK_REDUCE_ALONG_CUH

// A column's rows of a segment, by aligned vectors: the first of its elements is number `skip` of vector 0, and the last one is
// in front of number `end`. Of vectors as far as number `sure` all elements may be read.
template <typename T> struct gk_along {
    enum { WIDTH = gk_vector<T>::WIDTH };
    const gk_vector<T> *vectors;
    unsigned skip, end, sure;

    __device__ gk_along(const T *first, unsigned rows, const T *reach) : skip((unsigned)((uintptr_t)first % GK_REDUCE_VECTOR_BYTES / sizeof(T))) {
        const T *const begin = first - skip;
        vectors = (const gk_vector<T> *)begin;
        end = skip + rows;
        sure = reach - begin < (int64_t)end ? (unsigned)(reach - begin) / WIDTH : UINT32_MAX;
    }
    __device__ bool is_whole(unsigned number) const { return number * WIDTH >= skip && (number + 1) * WIDTH <= end; }
    __device__ gk_vector<T> load(unsigned number) const {
        gk_vector<T> x;
        if (number < sure)
            return vectors[number];
#pragma unroll 1
        for (unsigned e = number * WIDTH; e < (number + 1) * WIDTH; e++)
            x.push(e < end ? gk_read<T>((const T *)vectors + e) : T());
        return x;
    }
};

// A thread's vectors of a column, every `step`-th one from number `first` on. Of EACH neighbouring elements each has its own state.
template <class Op, int EACH>
__device__ static inline void gk_take_along(const Op &op, const gk_along<typename Op::Element> &column, unsigned first, unsigned step, typename Op::State (&state)[EACH]) {
    typedef gk_vector<typename Op::Element> vector;
    enum { WIDTH = vector::WIDTH, LOADS = GK_REDUCE_COLUMN_LOADS };
#pragma unroll 1
    for (unsigned i = first; i * WIDTH < column.end; i += LOADS * step) {
        vector x[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            if ((i + j * step) * WIDTH < column.end)
                x[j] = column.load(i + j * step);
#pragma unroll
        for (int j = 0; j < LOADS; j++) {
            const unsigned number = i + j * step;
            const bool whole = column.is_whole(number);
#pragma unroll
            for (int e = 0; e < WIDTH; e++)
                if (whole || (number * WIDTH + e >= column.skip && number * WIDTH + e < column.end))
                    op.take(state[e % EACH], x[j][e], x[j][e], 0);
        }
    }
}

// A segment of a block's columns. EACH: neighbouring rows of a thread, as far as each has a state of its own.
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
            const gk_along<T> column(a + gk_place_along(layout, how.outer_axes, how.kept_axes, at.leftmost + number), rows, reach);
            gk_take_along(op, column, first, threads, state);
            skip = column.skip;
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
    State *const states = gk_join_memory<State, GK_PLANE * WIDTH>();
    if (at.height < WIDTH)
        gk_take_columns_along<FEWER>(op, how, layout, a, at, states);
    else
        gk_take_columns_along<WIDTH>(op, how, layout, a, at, states);
    gk_end_planes<Op, WIDTH>(op, how, at, states);
}

#endif
