// Columns that lie as runs in memory, as those of a matrix do that has been transposed: a thread goes along one by aligned
// vectors, of which each element has a state of its own, and all states are put where those of columns that lie side by side
// would be. The additions are those of one run, and no element is put or found by itself.
#ifndef GK_REDUCE_ALONG_CUH
#define GK_REDUCE_ALONG_CUH

#include "ahead.cuh"

// So many rows of a column, by the aligned vectors that they lie in: elements [skip, end) of these. Only the first vector and the last
// one may hold elements that are not the column's, and nothing is asked of the others. Of EACH neighbouring rows each has its own state.
template <class Op, int EACH> struct gk_along {
    typedef typename Op::Element T;
    typedef gk_vector<T> vector;
    enum { WIDTH = vector::WIDTH };
    const gk_run<T> vectors;
    const unsigned skip, end, wholes; // vectors that end in the column
    typename Op::State state[EACH];

    // Of a column that is not there no row.
    __device__ gk_along(const Op &op, const gk_run<T> &column, unsigned rows) : vectors(column - column.head()), skip(column.head()), end(rows > 0 ? skip + rows : 0), wholes(end / WIDTH) {
#pragma unroll
        for (int e = 0; e < EACH; e++)
            state[e] = op.start();
    }
    __device__ void take(const Op &op, const vector &x) {
#pragma unroll
        for (int e = 0; e < WIDTH; e++)
            op.take(state[e % EACH], x[e], x[e], 0);
    }
    __device__ void take_part(const Op &op, const vector &x, unsigned number) {
#pragma unroll
        for (int e = 0; e < WIDTH; e++)
            if (number * WIDTH + e >= skip && number * WIDTH + e < end)
                op.take(state[e % EACH], x[e], x[e], 0);
    }

    // A thread's part: every `step`-th vector, a power of two, from number `first` on. AHEAD loads are under way at any time.
    __device__ void load(const Op &op, unsigned first, unsigned step) {
        enum { AHEAD = GK_REDUCE_ALONG_LOADS };
        const bool has_head = first == 0 && skip > 0, has_tail = end % WIDTH > 0 && (wholes & (step - 1)) == first && !(has_head && wholes == 0);
        const unsigned begin = has_head ? step : first;
        unsigned left = begin < wholes ? (wholes - begin - 1) / step + 1 : 0;
        const vector *from = (const vector *)vectors.first + begin;
        vector head, tail, x[AHEAD];
        if (has_head)
            head = vectors.aligned();
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
            if (j < left)
                x[j] = gk_load_global(from + j * step);
        if (has_tail)
            tail = (vectors + wholes * WIDTH).aligned();
        if (has_head)
            take_part(op, head, 0);
#pragma unroll 1
        for (; left >= 2 * AHEAD; left -= AHEAD) {
            from += AHEAD * step;
#pragma unroll
            for (int j = 0; j < AHEAD; j++) {
                take(op, x[j]);
                x[j] = gk_load_global(from + j * step);
            }
        }
        from += AHEAD * step;
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
            if (j < left) {
                take(op, x[j]);
                if (j + AHEAD < left)
                    x[j] = gk_load_global(from + j * step);
            }
#pragma unroll
        for (int j = 0; j < AHEAD - 1; j++)
            if (j + AHEAD < left)
                take(op, x[j]);
        if (has_tail)
            take_part(op, tail, wholes);
    }

    // All of the column, for each lane of a warp its own, of which all have up to so many `rows`: loads along them would each be of
    // as many lines as there are lanes, and of half of a sector.
    __device__ void fetch(const Op &op, unsigned rows, gk_fetching &fetching) {
        enum { VECTORS = GK_REDUCE_ALONG_VECTORS };
        GK_DYNAMIC_SHARED(uint4, memory);
        vector *const to = (vector *)memory + threadIdx.x * (VECTORS + 1); // in other banks than the next thread's
        const bool has_tail = end % WIDTH > 0;
        vector tail;
        if (has_tail)
            tail = (vectors + wholes * WIDTH).aligned();
#pragma unroll 1
        for (unsigned begin = 0; begin * WIDTH < rows + WIDTH - 1; begin += VECTORS) {
            const unsigned left = begin < wholes ? wholes - begin : 0, count = left < VECTORS ? left : VECTORS;
            fetching.fetch(to, vectors.first + begin * WIDTH, count * sizeof(vector));
            fetching.wait();
            if (count > 0 && begin == 0 && skip > 0)
                take_part(op, to[0], 0);
            else if (count > 0)
                take(op, to[0]);
#pragma unroll 3
            for (int j = 1; j < VECTORS; j++)
                if (j < count)
                    take(op, to[j]);
        }
        if (has_tail)
            take_part(op, tail, wholes);
    }
};

// A segment of a block's columns. EACH: neighbouring rows of a thread, as far as each has a state of its own: a vector's, or all
// that threads have side by side.
template <int EACH, class Op>
__device__ static inline void gk_take_columns_along(const Op &op, const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a, const gk_columns &at, typename Op::State *states) {
    typedef typename Op::Element T;
    enum { WIDTH = gk_vector<T>::WIDTH, WARPS = GK_REDUCE_COLUMN_THREADS / GK_WARP };
    const size_t begin = at.segment * how.segment, left = how.length - begin;
    const unsigned rows = left < how.segment ? (unsigned)left : (unsigned)how.segment;
    const unsigned threads = at.height / EACH, log = __popc(threads - 1); // of a column; powers of two
    const T *const reach = (const T *)((const char *)a + how.reach);
    a += gk_place_along(layout, 0, how.outer_axes, at.outer) + begin;
    const auto all = [&](const auto &take) {
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < how.lanes * WIDTH * threads; i += GK_REDUCE_COLUMN_THREADS) {
            const unsigned number = i >> log, first = i & (threads - 1);
            const bool is_there = at.leftmost + number < how.inner;
            const int32_t place = is_there ? gk_place_along(layout, how.outer_axes, how.kept_axes, at.leftmost + number) : 0;
            gk_along<Op, EACH> column(op, {a + place, reach}, is_there ? rows : 0);
            take(column, first);
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                const unsigned y = (first * EACH + e - column.skip) & (at.height - 1);
                states[number % WIDTH * GK_PLANE + y * how.lanes + number / WIDTH] = column.state[e];
            }
        }
    };
    if constexpr (gk_fetches_runs)
        if (how.tiles & GK_REDUCE_FETCHED) {
            __shared__ uint64_t barriers[WARPS];
            gk_fetching fetching(barriers + threadIdx.x / GK_WARP);
            all([&](auto &column, unsigned) { column.fetch(op, rows, fetching); });
            return;
        }
    all([&](auto &column, unsigned first) { column.load(op, first, threads); });
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
