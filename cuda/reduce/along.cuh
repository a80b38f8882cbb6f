// Columns that lie as runs in memory, as those of a matrix do that has been transposed: threads go along one by aligned vectors,
// of which each element has a state of its own. These are joined as those of columns that lie side by side are, so that the
// additions are the same, and no element is put or found by itself.
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

    // The same by the copy engine, which brings up to `each` vectors at a time for each of a column's threads: lanes that load vectors
    // ask for many lines at once, and here each line is asked for once, as far ahead as there is room. All lanes of a warp take
    // part, whose columns have up to `most` rows.
    __device__ void fetch(const Op &op, unsigned most, unsigned first, unsigned step, unsigned each, gk_fetching &fetching) {
        GK_DYNAMIC_SHARED(uint4, memory);
        vector *const here = (vector *)memory + (threadIdx.x - first) * (each + 1); // in other banks than other columns'
        const bool has_tail = end % WIDTH > 0 && (wholes & (step - 1)) == first;
        vector tail;
        if (has_tail)
            tail = (vectors + wholes * WIDTH).aligned();
#pragma unroll 1
        for (unsigned begin = 0; begin * WIDTH < most + WIDTH - 1; begin += each * step) {
            const unsigned left = begin < wholes ? wholes - begin : 0, all = left < each * step ? left : each * step;
            const unsigned before = first * each, own = before < all ? (all - before < each ? all - before : each) : 0;
            fetching.fetch(here + before, vectors.first + (begin + before) * WIDTH, own * sizeof(vector));
            fetching.wait();
            if (first < all && begin == 0 && first == 0 && skip > 0)
                take_part(op, here[0], 0);
            else if (first < all)
                take(op, here[first]);
#pragma unroll 4
            for (unsigned i = first + step; i < all; i += step)
                take(op, here[i]);
            __syncwarp(); // before others are fetched to where these are
        }
        if (has_tail)
            take_part(op, tail, wholes);
    }

    // Of two warps that have a column the second one's states are joined to the first one's, by way of shared memory. All threads of a
    // block take part.
    __device__ void join_warps(const Op &op, typename Op::State *between) {
        between += (threadIdx.x / (2 * GK_WARP) * GK_WARP + threadIdx.x % GK_WARP) * EACH;
        const bool is_second = threadIdx.x / GK_WARP % 2 == 1;
        __syncthreads();
#pragma unroll
        for (int e = 0; is_second && e < EACH; e++)
            between[e] = state[e];
        __syncthreads();
#pragma unroll
        for (int e = 0; !is_second && e < EACH; e++)
            op.join(state[e], between[e]);
    }

    // All states of a column's threads, so many, as one, which the first of them has then. At each step those of the upper half of
    // all rows are joined to those of the lower half; which row is the first one changes nothing.
    __device__ typename Op::State joined(const Op &op, unsigned threads, typename Op::State *between) {
        constexpr bool may_be_two = EACH == WIDTH && GK_REDUCE_COLUMN_THREADS / WIDTH > GK_WARP;
        if (may_be_two && threads > GK_WARP)
            join_warps(op, between);
        for (unsigned step = (threads < GK_WARP ? threads : (unsigned)GK_WARP) / 2; step > 0; step /= 2)
#pragma unroll
            for (int e = 0; e < EACH; e++)
                op.join(state[e], gk_from_lane_across(state[e], step));
#pragma unroll
        for (int half = EACH / 2; half > 0; half /= 2)
#pragma unroll
            for (int e = 0; e < half; e++)
                op.join(state[e], state[e + half]);
        return state[0];
    }
};

// What a block has: `columns` from `leftmost` on, and of these `segments` from `segment` on, all or one.
struct gk_along_block {
    size_t outer, block;
    unsigned leftmost, columns, segment, segments;

    __device__ gk_along_block(const gk_reduction &how) : columns(how.bundle), segments(how.whole ? (unsigned)how.segments : 1) {
        const unsigned across = ((unsigned)how.inner - 1) / columns + 1, parts = (unsigned)how.segments / segments;
        block = blockIdx.x / parts;
        segment = blockIdx.x - (unsigned)block * parts;
        outer = block / across;
        leftmost = ((unsigned)block - (unsigned)outer * across) * columns;
    }
    __device__ unsigned there(const gk_reduction &how) const { return (unsigned)how.inner - leftmost < columns ? (unsigned)how.inner - leftmost : columns; }
};

// The state of each of a block's segments of a column, those of all columns side by side. EACH: neighbouring rows of a thread, a vector's
// as far as threads have so many side by side.
template <int EACH, class Op>
__device__ static inline void gk_take_columns_along(const Op &op, const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a, const gk_along_block &at, typename Op::State *states) {
    typedef typename Op::Element T;
    __shared__ uint64_t barriers[GK_REDUCE_COLUMN_THREADS / GK_WARP];
    gk_fetching fetching(barriers + threadIdx.x / GK_WARP);
    const T *const reach = (const T *)((const char *)a + how.reach);
    const unsigned threads = GK_REDUCE_COLUMN_THREADS / how.lanes / EACH, log = __popc(threads - 1); // of a column; powers of two
    const unsigned all = at.columns * at.segments * threads, there = at.there(how);
    a += gk_place_along(layout, 0, how.outer_axes, at.outer);
#pragma unroll 1
    for (unsigned i = threadIdx.x; i - threadIdx.x < all; i += GK_REDUCE_COLUMN_THREADS) {
        const unsigned number = i >> log, first = i & (threads - 1);
        const unsigned column = at.segments > 1 ? number / at.segments : number, segment = number - column * at.segments;
        const size_t begin = (at.segment + segment) * how.segment, left = how.length - begin;
        const bool is_there = column < there;
        const int64_t place = is_there ? gk_place_along(layout, how.outer_axes, how.kept_axes, at.leftmost + column) + (int64_t)begin : 0;
        gk_along<Op, EACH> run(op, {a + place, reach}, is_there ? (unsigned)(left < how.segment ? left : how.segment) : 0);
        if (gk_fetches_runs && how.fetched > 0)
            run.fetch(op, (unsigned)how.segment, first, threads, (unsigned)how.fetched, fetching);
        else
            run.load(op, first, threads);
        const typename Op::State state = run.joined(op, threads, states + GK_REDUCE_COLUMN_THREADS);
        if (first == 0 && column < at.columns)
            states[segment * at.columns + column] = state;
    }
    __syncthreads();
}

template <class Op> __device__ static inline void gk_reduce_columns_along(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    typedef typename Op::State State;
    enum { WIDTH = gk_vector<typename Op::Element>::WIDTH };
    Op op = {how.order};
    const gk_along_block at(how);
    const unsigned height = GK_REDUCE_COLUMN_THREADS / how.lanes, there = at.there(how);
    State *const states = gk_join_memory<Op>();
    gk_follow();
    if (height == 1)
        gk_take_columns_along<1>(op, how, layout, a, at, states);
    else if (height == 2)
        gk_take_columns_along<2>(op, how, layout, a, at, states);
    else if (WIDTH > 4 && height == 4)
        gk_take_columns_along<WIDTH / 2>(op, how, layout, a, at, states);
    else
        gk_take_columns_along<WIDTH>(op, how, layout, a, at, states);
    if (how.whole)
        gk_join_own_segments<WIDTH>(op, how, states, at.columns);
    else if (how.segments > 1) {
        State *const partials = (State *)how.partials + at.outer * how.segments * how.inner + at.leftmost;
        if (!gk_join_segments(op, gk_joints(how, at.segment, at.block), partials, states, at.columns, there, [](unsigned column) { return column; }))
            return;
    }
    for (unsigned i = threadIdx.x; i < there; i += GK_REDUCE_COLUMN_THREADS)
        gk_store(op, how, at.outer * how.inner + at.leftmost + i, states[i]);
}

#endif
