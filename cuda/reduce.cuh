// What every reduction is made of. An operation is a small struct (reduce_ops.cuh); here are the three ways
// of walking over an array with it: along rows, along short rows, and down columns.
//
// Which thread takes which elements, and in which order all is joined, depends on the shape alone:
// the same array gives the same bits on every device, wherever its memory starts.
#ifndef GK_REDUCE_CUH
#define GK_REDUCE_CUH

// The three kernels of a reduction, which GK_REDUCE_KERNELS defines:
//   GK_REDUCTION(op, variant, dtype, symbol, note)
#define GK_REDUCTION(op, variant, dtype, symbol, note)                                             \
    GK_REDUCE(op, variant, dtype, symbol##_rows, note)                                             \
    GK_REDUCE(op##_short, variant, dtype, symbol##_short, "of rows shorter than a block")          \
    GK_REDUCE(op##_columns, variant, dtype, symbol##_columns, "of columns")

#ifndef GK_ROWS_ONLY

#include "reduce_ops.cuh"

// 16 bytes of elements: what one load brings. They stay packed until they are taken.
template <typename T> struct gk_vector {
    static constexpr int WIDTH = GK_REDUCE_VECTOR_BYTES / sizeof(T);
    uint4 bits;
    __device__ T operator[](int e) const {
        T elements[WIDTH];
        memcpy(static_cast<void *>(elements), &bits, sizeof bits);
        return elements[e];
    }
};

template <typename T> __device__ static inline bool gk_is_aligned(const T *at) {
    return (uintptr_t)at % GK_REDUCE_VECTOR_BYTES == 0;
}

// Elements [i, i + WIDTH) of a run of n; what is beyond its end is padding. The elements are the same
// ones where the run is not aligned: only the loads are narrower.
template <class Op, typename T>
__device__ static inline gk_vector<T> gk_load(const Op &op, const T *run, size_t i, size_t n, bool aligned) {
    enum { WIDTH = gk_vector<T>::WIDTH };
    if (aligned && i + WIDTH <= n)
        return {*(const uint4 *)(run + i)};
    T elements[WIDTH];
#pragma unroll
    for (int e = 0; e < WIDTH; e++)
        elements[e] = i + e < n ? run[i + e] : op.padding(run[0]);
    gk_vector<T> loaded;
    memcpy(&loaded.bits, elements, sizeof loaded.bits);
    return loaded;
}

// The same vector, to be taken once more without changing anything.
template <class Op, typename T> __device__ static inline void gk_pad(const Op &op, gk_vector<T> &taken) {
    T elements[gk_vector<T>::WIDTH];
#pragma unroll
    for (int e = 0; e < gk_vector<T>::WIDTH; e++)
        elements[e] = op.padding(taken[e]);
    memcpy(&taken.bits, elements, sizeof taken.bits);
}

// Lane 0 of each group of `width` lanes gets all that they hold.
template <class Op>
__device__ static inline void gk_join_lanes(const Op &op, typename Op::State &state, int width) {
    for (int step = width / 2; step > 0; step /= 2)
        op.join(state, gk_from_lane_above(state, step, width));
}

// Thread 0 gets what the whole block holds.
template <class Op> __device__ static inline void gk_join_block(const Op &op, typename Op::State &state) {
    enum { WARPS = GK_REDUCE_THREADS / GK_WARP };
    __shared__ typename Op::State of_warp[WARPS];
    unsigned lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP;
    gk_join_lanes(op, state, GK_WARP);
    if (lane == 0)
        of_warp[warp] = state;
    __syncthreads();
    if (warp == 0) {
        state = of_warp[lane % WARPS];
        gk_join_lanes(op, state, WARPS);
    }
}

// Whether all other blocks of a result have left their partial results before this one.
__device__ static inline bool gk_is_last(unsigned *arrivals, size_t blocks) {
    __shared__ unsigned turn;
    __threadfence(); // what this thread has written is seen before its block arrives
    __syncthreads();
    if (threadIdx.x == 0)
        turn = atomicAdd(arrivals, 1u);
    __syncthreads();
    __threadfence();
    return turn == (unsigned)blocks - 1;
}

// Long rows: one block takes a segment of a row. All elements of an array are one row.
template <class Op>
__device__ static inline void gk_reduce_row(const Op &op, const gk_reduction &how, typename Op::State &state,
                                            const typename Op::Element *a, const typename Op::Element *b, size_t n,
                                            size_t index) {
    typedef gk_vector<typename Op::Element> Vector;
    bool aligned = gk_is_aligned(a) && gk_is_aligned(b);
    for (size_t tile = 0; tile < n; tile += GK_REDUCE_LOADS * GK_REDUCE_THREADS * Vector::WIDTH) {
        Vector x[GK_REDUCE_LOADS], y[GK_REDUCE_LOADS];
        size_t at[GK_REDUCE_LOADS];
#pragma unroll
        for (int j = 0; j < GK_REDUCE_LOADS; j++) {
            at[j] = tile + ((size_t)j * GK_REDUCE_THREADS + threadIdx.x) * Vector::WIDTH;
            x[j] = gk_load(op, a, at[j], n, aligned);
            if (Op::OPERANDS == 2)
                y[j] = gk_load(op, b, at[j], n, aligned);
        }
#pragma unroll
        for (int j = 0; j < GK_REDUCE_LOADS; j++)
#pragma unroll
            for (int e = 0; e < Vector::WIDTH; e++)
                op.take(state, x[j][e], Op::OPERANDS == 2 ? y[j][e] : x[j][e], index + at[j] + e);
    }
}

template <class Op>
__device__ static inline void gk_reduce_rows(const gk_reduction &how, const typename Op::Element *a, const typename Op::Element *b) {
    typedef typename Op::State State;
    Op op = {how.flip};
    size_t row = blockIdx.x / how.segments, segment = blockIdx.x % how.segments;
    State state = op.start(), *partials = (State *)how.partials + row * how.segments;
    if (how.stage != GK_REDUCE_FINISH) {
        size_t begin = segment * how.segment, left = how.length - begin;
        size_t offset = row * how.length + begin;
        gk_reduce_row(op, how, state, a + offset, b + offset, left < how.segment ? left : how.segment, how.first + begin);
        gk_join_block(op, state);
        bool whole = how.stage == GK_REDUCE_WHOLE;
        if (threadIdx.x == 0 && whole && how.segments == 1)
            op.store(how, row, state);
        else if (threadIdx.x == 0)
            partials[how.first / how.segment + segment] = state;
        if (!whole || how.segments == 1 || !gk_is_last(how.arrivals + row, how.segments))
            return;
        state = op.start();
    }
#pragma unroll 8
    for (size_t i = threadIdx.x; i < how.segments; i += GK_REDUCE_THREADS)
        op.join(state, partials[i]);
    gk_join_block(op, state);
    if (threadIdx.x == 0)
        op.store(how, row, state);
}

// Short rows: a group of lanes takes several rows, side by side so that enough loads are under way.
template <class Op> __device__ static inline void gk_reduce_short(const gk_reduction &how, const typename Op::Element *a) {
    typedef gk_vector<typename Op::Element> Vector;
    enum { ROWS = GK_REDUCE_SHORT_ROWS };
    Op op = {how.flip};
    unsigned lane = threadIdx.x % how.lanes, groups = GK_REDUCE_THREADS / how.lanes;
    size_t first = (size_t)blockIdx.x * groups * ROWS + threadIdx.x / how.lanes;
    bool aligned = gk_is_aligned(a) && how.length % Vector::WIDTH == 0;
    typename Op::State state[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        state[r] = op.start();
    for (size_t i = lane * Vector::WIDTH; i < how.length; i += how.lanes * Vector::WIDTH) {
        Vector x[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            size_t row = first + (size_t)r * groups; // beyond the end: the last one again, for nobody
            x[r] = gk_load(op, a + (row < how.outer ? row : how.outer - 1) * how.length, i, how.length, aligned);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int e = 0; e < Vector::WIDTH; e++)
                op.take(state[r], x[r][e], x[r][e], i + e);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        gk_join_lanes(op, state[r], how.lanes);
        size_t row = first + (size_t)r * groups;
        if (lane == 0 && row < how.outer)
            op.store(how, row, state[r]);
    }
}

// Where a thread of a block of columns stands: `lanes` vectors side by side, the other threads below.
struct gk_columns {
    size_t outer, segment, group, column;
    unsigned x, y, height;
};
template <int WIDTH> __device__ static inline gk_columns gk_find_columns(const gk_reduction &how) {
    gk_columns at;
    size_t wide = (size_t)how.lanes * WIDTH, across = (how.inner + wide - 1) / wide;
    at.segment = blockIdx.x % how.segments;
    at.group = blockIdx.x / how.segments;
    at.outer = at.group / across;
    at.x = threadIdx.x % how.lanes;
    at.y = threadIdx.x / how.lanes;
    at.height = GK_REDUCE_THREADS / how.lanes;
    at.column = at.group % across * wide + at.x * WIDTH;
    return at;
}

// The threads of the top row get what those below them hold, column by column.
template <class Op, int WIDTH>
__device__ static inline void gk_join_columns(const Op &op, typename Op::State (&state)[WIDTH], unsigned lanes) {
    enum { WARPS = GK_REDUCE_THREADS / GK_WARP };
    __shared__ typename Op::State of_warp[WARPS][GK_WARP];
    unsigned lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP;
#pragma unroll
    for (int e = 0; e < WIDTH; e++) {
        for (unsigned step = GK_WARP / 2; step >= lanes; step /= 2)
            op.join(state[e], gk_from_lane_above(state[e], step, GK_WARP));
        if (lane < lanes)
            of_warp[warp][lane] = state[e];
        __syncthreads();
        for (int other = 1; other < WARPS && threadIdx.x < lanes; other++)
            op.join(state[e], of_warp[other][lane]);
        __syncthreads(); // nobody overwrites what the top row still reads
    }
}

// The rows [row, end) of a block's columns, every `height`-th one.
template <class Op, int WIDTH>
__device__ static inline void gk_take_columns(const Op &op, const gk_reduction &how, const gk_columns &at, const typename Op::Element *a,
                                              size_t row, size_t end, typename Op::State (&state)[WIDTH]) {
    enum { LOADS = GK_REDUCE_COLUMN_LOADS };
    bool aligned = gk_is_aligned(a) && how.inner % WIDTH == 0;
    for (; row < end; row += (size_t)at.height * LOADS) {
        gk_vector<typename Op::Element> x[LOADS];
        size_t index[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++) {
            size_t wanted = row + (size_t)j * at.height;
            index[j] = wanted < end ? wanted : end - 1;
            x[j] = gk_load(op, a + index[j] * how.inner, at.column, how.inner, aligned);
            if (wanted >= end)
                gk_pad(op, x[j]);
        }
#pragma unroll
        for (int j = 0; j < LOADS; j++)
#pragma unroll
            for (int e = 0; e < WIDTH; e++)
                op.take(state[e], x[j][e], x[j][e], index[j]);
    }
}

// Columns: a thread takes a vector of them, so that a warp reads along the rows.
template <class Op> __device__ static inline void gk_reduce_columns(const gk_reduction &how, const typename Op::Element *a) {
    enum { WIDTH = gk_vector<typename Op::Element>::WIDTH };
    typedef typename Op::State State;
    Op op = {how.flip};
    gk_columns at = gk_find_columns<WIDTH>(how);
    State state[WIDTH], *partials = (State *)how.partials + at.outer * how.segments * how.inner;
    size_t begin = at.segment * how.segment, end = begin + how.segment < how.length ? begin + how.segment : how.length;
#pragma unroll
    for (int e = 0; e < WIDTH; e++)
        state[e] = op.start();
    if (at.column < how.inner)
        gk_take_columns(op, how, at, a + at.outer * how.length * how.inner, begin + at.y, end, state);
    gk_join_columns(op, state, how.lanes);
    if (how.segments > 1) {
#pragma unroll
        for (int e = 0; e < WIDTH; e++) {
            if (at.y == 0 && at.column + e < how.inner)
                partials[at.segment * how.inner + at.column + e] = state[e];
            state[e] = op.start();
        }
        if (!gk_is_last(how.arrivals + at.group, how.segments))
            return;
#pragma unroll 4
        for (size_t s = at.y; s < how.segments; s += at.height)
#pragma unroll
            for (int e = 0; e < WIDTH; e++)
                if (at.column + e < how.inner)
                    op.join(state[e], partials[s * how.inner + at.column + e]);
        gk_join_columns(op, state, how.lanes);
    }
#pragma unroll
    for (int e = 0; e < WIDTH; e++)
        if (at.y == 0 && at.column + e < how.inner)
            op.store(how, at.outer * how.inner + at.column + e, state[e]);
}

#define GK_REDUCE_KERNELS(symbol, Op)                                                              \
    extern "C" __global__ void __launch_bounds__(GK_REDUCE_THREADS) symbol##_rows(gk_reduction how, const Op::Element *a) { \
        gk_reduce_rows<Op>(how, a, a);                                                             \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(GK_REDUCE_THREADS) symbol##_short(gk_reduction how, const Op::Element *a) { \
        gk_reduce_short<Op>(how, a);                                                               \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(GK_REDUCE_THREADS) symbol##_columns(gk_reduction how, const Op::Element *a) { \
        gk_reduce_columns<Op>(how, a);                                                             \
    }

#endif
#endif
