// What every reduction is made of. An operation is a small struct (operations.cuh); here are the three ways
// of walking over an array with it: along rows, along short rows, and down columns. The array is a run of
// elements in memory, or one that is gathered, whose elements lie anywhere.
//
// Which thread takes which elements, and in which order all is joined, depends on the shape alone:
// the same array gives the same bits on every device, wherever its elements lie.
#ifndef GK_REDUCE_CUH
#define GK_REDUCE_CUH

#include "device.cuh"
#include "reduce/reduction.h"

// A kernel that takes a gk_reduction, and the three of a reduction, which GK_REDUCE_KERNELS defines.
#define GK_REDUCE(op, variant, dtype, symbol, block, note)                                         \
    GK_ROW(op, variant, dtype, symbol, note, .takes = GK_TAKES_REDUCTION, .tile_rows = 1, .tile_columns = block, .threads = block, .alignment = 1)
#define GK_WALKS(op, variant, dtype, symbol, note)                                                 \
    GK_REDUCE(op, variant, dtype, symbol##_rows, GK_REDUCE_THREADS, note)                          \
    GK_REDUCE(op##_short, variant, dtype, symbol##_short, GK_REDUCE_THREADS, "of rows shorter than a block") \
    GK_REDUCE(op##_columns, variant, dtype, symbol##_columns, GK_REDUCE_COLUMN_THREADS, "of columns") \
    GK_REDUCE(op##_gathered, variant, dtype, symbol##_gathered, GK_REDUCE_THREADS, "of rows whose elements lie anywhere") \
    GK_REDUCE(op##_gathered_columns, variant, dtype, symbol##_gathered_columns, GK_REDUCE_COLUMN_THREADS, "of such columns")

#ifndef GK_ROWS_ONLY

#include "reduce/operations.cuh"
#include "strided.cuh"

// Elements side by side in memory.
template <typename T> struct gk_run {
    typedef T Element;
    const T *first;

    __device__ gk_run operator+(size_t i) const { return {first + i}; }
    // Whether vectors are loaded at once.
    __device__ bool is_aligned() const { return (uintptr_t)first % GK_REDUCE_VECTOR_BYTES == 0; }
    __device__ gk_vector<T> vector() const { return gk_load_once(first); }
    // The elements of a vector, one by one.
    __device__ void read(T (&elements)[gk_vector<T>::WIDTH], int) const {
#pragma unroll
        for (int e = 0; e < gk_vector<T>::WIDTH; e++)
            elements[e] = gk_read<T>(first + e);
    }
};

// Elements that a layout finds, from number `at` on in its order.
template <typename T> struct gk_gathered {
    typedef T Element;
    const char *base;
    const gk_layout *layout;
    bool aligned; // the elements of a vector lie side by side, where one can be loaded
    uint32_t at;

    __device__ gk_gathered operator+(size_t i) const { return {base, layout, aligned, at + (uint32_t)i}; }
    __device__ bool is_aligned() const { return aligned; }
    __device__ gk_vector<T> vector() const {
        uint32_t along;
        return gk_load_once((const T *)(base + find(at, along)));
    }
    __device__ void read(T (&elements)[gk_vector<T>::WIDTH], int count) const {
        uint32_t along;
        int last = layout->ndim - 1;
        int64_t offset = find(at, along);
#pragma unroll
        for (int e = 0; e < gk_vector<T>::WIDTH; e++)
            if (e < count) {
                elements[e] = gk_read<T>(base + offset);
                offset += layout->stride[0][last];
                if (++along == layout->length[last].value && e + 1 < count) // on to the next line
                    offset = find(at + e + 1, along);
            }
    }
    // Where element i lies, and its number along the last axis.
    __device__ int64_t find(uint32_t i, uint32_t &along) const {
        int axis = layout->ndim - 1;
        uint32_t rest = gk_divide(i, layout->length[axis]);
        along = i - rest * layout->length[axis].value;
        int64_t offset = along * layout->stride[0][axis];
#pragma unroll 1
        for (axis--; axis >= 0; axis--) {
            i = rest;
            rest = axis > 0 ? gk_divide(i, layout->length[axis]) : 0;
            offset += (int64_t)(i - rest * layout->length[axis].value) * layout->stride[0][axis];
        }
        return offset;
    }
};

// The vector at the start of `a`, all of whose elements are there, by loads as wide as they allow.
template <bool ALIGNED, class A> __device__ static inline gk_vector<typename A::Element> gk_load_whole(const A &a) {
    typedef typename A::Element T;
    if (ALIGNED)
        return a.vector();
    T elements[gk_vector<T>::WIDTH];
    a.read(elements, gk_vector<T>::WIDTH);
    gk_vector<T> loaded;
    loaded.pack(elements);
    return loaded;
}

// How many vectors a thread loads before it takes the first: of those that come element by element so
// many that registers suffice.
template <bool ALIGNED, typename T, int MOST> struct gk_loads {
    enum { FEW = GK_REDUCE_RAGGED_LOADS / gk_vector<T>::WIDTH, AT_ONCE = ALIGNED || FEW > MOST ? MOST : FEW > 1 ? FEW : 1 };
};

// Elements [i, i + WIDTH) of n, the last of which may be beyond their end: those are padding.
template <class Op, typename T> __device__ static inline gk_vector<T> gk_load_padded(const Op &op, const gk_run<T> &a, size_t i, size_t n) {
    T elements[gk_vector<T>::WIDTH];
#pragma unroll
    for (int e = 0; e < gk_vector<T>::WIDTH; e++)
        elements[e] = i + e < n ? gk_read<T>(a.first + i + e) : op.padding(gk_read<T>(a.first));
    gk_vector<T> loaded;
    loaded.pack(elements);
    return loaded;
}
template <class Op, typename T> __device__ static inline gk_vector<T> gk_load_padded(const Op &op, const gk_gathered<T> &a, size_t i, size_t n) {
    enum { WIDTH = gk_vector<T>::WIDTH };
    T elements[WIDTH], first[WIDTH];
    int count = n - i < WIDTH ? (int)(n - i) : WIDTH;
    (a + i).read(elements, count);
    if (count < WIDTH) {
        a.read(first, 1);
#pragma unroll
        for (int e = 1; e < WIDTH; e++)
            elements[e] = e < count ? elements[e] : op.padding(first[0]);
    }
    gk_vector<T> loaded;
    loaded.pack(elements);
    return loaded;
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

template <class Op, typename T>
__device__ static inline void gk_take_vector(const Op &op, typename Op::State &state, const gk_vector<T> &x, const gk_vector<T> &y, size_t index) {
#pragma unroll
    for (int e = 0; e < gk_vector<T>::WIDTH; e++)
        op.take(state, x[e], y[e], index + e);
}

// Up to LOADS vectors of a run, STEP elements apart: all are loaded before the first is taken. ALL:
// `count` is LOADS.
template <bool ALIGNED, bool ALL, int LOADS, int STEP, class Op, class A>
__device__ static inline void gk_take_vectors(const Op &op, typename Op::State &state, const A &a, const A &b, int count, size_t index) {
    gk_vector<typename A::Element> x[LOADS], y[LOADS];
#pragma unroll
    for (int j = 0; j < LOADS; j++)
        if (ALL || j < count) {
            x[j] = gk_load_whole<ALIGNED>(a + j * STEP);
            y[j] = Op::OPERANDS == 2 ? gk_load_whole<ALIGNED>(b + j * STEP) : x[j];
        }
#pragma unroll
    for (int j = 0; j < LOADS; j++)
        if (ALL || j < count)
            gk_take_vector(op, state, x[j], y[j], index + j * STEP);
}

// The vectors of a thread's part of a run of n elements that are whole, from element i on, several loads
// at a time; where the next one is.
template <bool ALIGNED, class Op, class A>
__device__ static inline size_t gk_take_whole(const Op &op, typename Op::State &state, const A &a, const A &b, size_t i, size_t n, size_t index) {
    typedef typename A::Element T;
    enum { WIDTH = gk_vector<T>::WIDTH, STEP = GK_REDUCE_THREADS * WIDTH, LOADS = gk_loads<ALIGNED, T, GK_REDUCE_LOADS / Op::OPERANDS>::AT_ONCE };
    for (size_t whole = n / (STEP * LOADS); whole > 0; whole--, i += STEP * LOADS)
        gk_take_vectors<ALIGNED, true, LOADS, STEP>(op, state, a + i, b + i, LOADS, index + i);
    int left = i + WIDTH <= n ? (int)((n - i - WIDTH) / STEP) + 1 : 0;
    gk_take_vectors<ALIGNED, false, LOADS, STEP>(op, state, a + i, b + i, left, index + i);
    return i + left * STEP;
}

// A thread's part of a run of n elements, the first of which has the number `index`: every 256th
// vector.
template <class Op, class A>
__device__ static inline void gk_take_run(const Op &op, typename Op::State &state, const A &a, const A &b, size_t n, size_t index) {
    typedef typename A::Element T;
    enum { WIDTH = gk_vector<T>::WIDTH };
    bool aligned = a.is_aligned() && b.is_aligned();
    size_t i = threadIdx.x * WIDTH;
    i = aligned ? gk_take_whole<true>(op, state, a, b, i, n, index) : gk_take_whole<false>(op, state, a, b, i, n, index);
    if (i < n) {
        gk_vector<T> x = gk_load_padded(op, a, i, n);
        gk_take_vector(op, state, x, Op::OPERANDS == 2 ? gk_load_padded(op, b, i, n) : x, index + i);
    }
}

// A thread's part of the partial results: every `step`-th one of `count`, several loads at a time.
template <class Op>
__device__ static inline void gk_join_partials(const Op &op, typename Op::State &state, const typename Op::State *partials, size_t count, size_t step) {
    enum { LOADS = GK_REDUCE_PARTIAL_LOADS };
    for (size_t i = 0; i < count; i += LOADS * step) {
        typename Op::State loaded[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            if (i + j * step < count)
                loaded[j] = partials[i + j * step];
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            if (i + j * step < count)
                op.join(state, loaded[j]);
    }
}

// Long rows: one block takes a segment of a row. All elements of an array are one row.
template <class Op, class A>
__device__ static inline void gk_reduce_rows(const gk_reduction &how, const A &a, const A &b) {
    typedef typename Op::State State;
    Op op = {how.flip};
    size_t row = blockIdx.x / how.segments, segment = blockIdx.x % how.segments;
    State state = op.start(), *partials = (State *)how.partials + row * how.segments;
    if (how.stage != GK_REDUCE_FINISH) {
        size_t begin = segment * how.segment, left = how.length - begin;
        size_t offset = row * how.length + begin;
        gk_take_run(op, state, a + offset, b + offset, left < how.segment ? left : how.segment, how.first + begin);
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
    if (threadIdx.x < how.segments)
        gk_join_partials(op, state, partials + threadIdx.x, how.segments - threadIdx.x, GK_REDUCE_THREADS);
    gk_join_block(op, state);
    if (threadIdx.x == 0)
        op.store(how, row, state);
}

// Short rows: a group of lanes takes several rows, side by side so that enough loads are under way.
// WHOLE: every vector of every row is whole and aligned.
template <bool WHOLE, class Op, class A, int ROWS>
__device__ static inline void gk_take_short(const Op &op, typename Op::State (&state)[ROWS], const A (&row)[ROWS], size_t first, size_t length,
                                            size_t step) {
    for (size_t i = first; i < length; i += step) {
        gk_vector<typename A::Element> x[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            x[r] = WHOLE ? (row[r] + i).vector() : gk_load_padded(op, row[r], i, length);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            gk_take_vector(op, state[r], x[r], x[r], i);
    }
}

// A group of `lanes` lanes that hold a part of each of ROWS rows: at every step half of a lane's rows go
// to the lane across, which sends its parts of the others, so that a row costs one addition of a lane
// where lanes that all do the same would make log2(lanes). A row's additions are those of
// gk_join_lanes. What is left in the lane: `held` rows from number `row` on.
struct gk_held {
    unsigned row, held;
    bool whole; // false: another lane of the group has these rows
};
template <class Op, int ROWS>
__device__ static inline gk_held gk_join_rows(const Op &op, typename Op::State (&state)[ROWS], unsigned lane, unsigned lanes) {
    gk_held mine = {0, ROWS, true};
    unsigned step = lanes / 2;
#pragma unroll
    for (unsigned half = ROWS / 2; half > 0; half /= 2)
        if (step > 0) {
            bool upper = lane & step;
#pragma unroll
            for (unsigned r = 0; r < half; r++) {
                typename Op::State sent = upper ? state[r] : state[r + half];
                state[r] = upper ? state[r + half] : state[r];
                op.join(state[r], gk_from_lane_across(sent, step)); // the same, whichever comes first
            }
            mine.row += upper ? half : 0;
            mine.held = half;
            step /= 2;
        }
    mine.whole = (lane & (2 * step - 1)) == 0 || step == 0;
    gk_join_lanes(op, state[0], 2 * step);
    return mine;
}

template <class Op, class A> __device__ static inline void gk_reduce_short(const gk_reduction &how, const A &a) {
    enum { ROWS = GK_REDUCE_SHORT_ROWS, WIDTH = gk_vector<typename Op::Element>::WIDTH };
    Op op = {how.flip};
    unsigned lane = threadIdx.x % how.lanes, groups = GK_REDUCE_THREADS / how.lanes;
    // Rows of a group one below the other are stored side by side; those of one or two lanes lie apart,
    // so that a warp reads neighbours.
    bool side_by_side = how.lanes > 2;
    size_t begin = (size_t)blockIdx.x * groups * ROWS, group = threadIdx.x / how.lanes;
    size_t apart = side_by_side ? 1 : groups, first = begin + (side_by_side ? group * ROWS : group);
    typename Op::State state[ROWS];
    A row[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) { // beyond the end: the last row again, for nobody
        size_t number = first + r * apart;
        row[r] = a + (number < how.outer ? number : how.outer - 1) * how.length;
        state[r] = op.start();
    }
    if (a.is_aligned() && how.length % WIDTH == 0)
        gk_take_short<true>(op, state, row, lane * WIDTH, how.length, how.lanes * WIDTH);
    else
        gk_take_short<false>(op, state, row, lane * WIDTH, how.length, how.lanes * WIDTH);
    gk_held mine = gk_join_rows(op, state, lane, how.lanes);
#pragma unroll
    for (unsigned r = 0; r < ROWS; r++) {
        size_t number = first + (mine.row + r) * apart;
        if (mine.whole && r < mine.held && number < how.outer)
            op.store(how, number, state[r]);
    }
}

// Where a thread of a block of columns stands: `lanes` vectors side by side, the other threads below.
struct gk_columns {
    size_t outer, segment, group, column;
    size_t height;
    unsigned y;
};
template <int WIDTH> __device__ static inline gk_columns gk_find_columns(const gk_reduction &how) {
    gk_columns at;
    size_t wide = (size_t)how.lanes * WIDTH, across = (how.inner + wide - 1) / wide;
    at.segment = blockIdx.x % how.segments;
    at.group = blockIdx.x / how.segments;
    at.outer = at.group / across;
    at.y = threadIdx.x / how.lanes;
    at.height = GK_REDUCE_COLUMN_THREADS / how.lanes;
    at.column = at.group % across * wide + threadIdx.x % how.lanes * WIDTH;
    return at;
}

// The threads of the top row get what those below them hold, column by column.
template <class Op, int WIDTH>
__device__ static inline void gk_join_columns(const Op &op, typename Op::State (&state)[WIDTH], unsigned lanes) {
    enum { WARPS = GK_REDUCE_COLUMN_THREADS / GK_WARP };
    enum { FIT = GK_REDUCE_JOIN_BYTES / (GK_REDUCE_COLUMN_THREADS * sizeof(typename Op::State)), AT_ONCE = WIDTH < FIT ? WIDTH : FIT };
    __shared__ typename Op::State of_warp[AT_ONCE][WARPS][GK_WARP];
    unsigned lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP;
#pragma unroll
    for (int e = 0; e < WIDTH; e++)
        for (unsigned step = GK_WARP / 2; step >= lanes; step /= 2)
            op.join(state[e], gk_from_lane_above(state[e], step, GK_WARP));
#pragma unroll
    for (int first = 0; first < WIDTH; first += AT_ONCE) {
#pragma unroll
        for (int e = 0; e < AT_ONCE; e++)
            of_warp[e][warp][lane] = state[first + e];
        __syncthreads();
        if (threadIdx.x < lanes)
#pragma unroll
            for (int other = 1; other < WARPS; other++)
#pragma unroll
                for (int e = 0; e < AT_ONCE; e++)
                    op.join(state[first + e], of_warp[e][other][lane]);
        __syncthreads(); // nobody overwrites what the top row still reads
    }
}

template <class Op, typename T, int WIDTH>
__device__ static inline void gk_take_columns(const Op &op, typename Op::State (&state)[WIDTH], const gk_vector<T> &x, size_t index) {
#pragma unroll
    for (int e = 0; e < WIDTH; e++)
        op.take(state[e], x[e], x[e], index);
}

// A thread's part of the rows [row, end): every `height`-th one, LOADS at a time; what is left of them is
// for the next call. WHOLE: every vector of every row is whole and aligned.
template <bool WHOLE, int LOADS, class Op, class A, int WIDTH>
__device__ static inline size_t gk_take_rows(const Op &op, const gk_reduction &how, const gk_columns &at, const A &a, size_t row, size_t end,
                                             typename Op::State (&state)[WIDTH]) {
    for (; row + (LOADS - 1) * at.height < end; row += LOADS * at.height) {
        gk_vector<typename A::Element> x[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++) {
            A line = a + (row + j * at.height) * how.inner;
            x[j] = WHOLE ? (line + at.column).vector() : gk_load_padded(op, line, at.column, how.inner);
        }
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            gk_take_columns(op, state, x[j], row + j * at.height);
    }
    return row;
}

// Columns: a thread takes a vector of them, so that a warp reads along the rows.
template <class Op, class A> __device__ static inline void gk_reduce_columns(const gk_reduction &how, const A &a) {
    enum { WIDTH = gk_vector<typename Op::Element>::WIDTH };
    typedef typename Op::State State;
    Op op = {how.flip};
    gk_columns at = gk_find_columns<WIDTH>(how);
    State state[WIDTH], *partials = (State *)how.partials + at.outer * how.segments * how.inner;
    size_t begin = at.segment * how.segment, end = begin + how.segment < how.length ? begin + how.segment : how.length;
#pragma unroll
    for (int e = 0; e < WIDTH; e++)
        state[e] = op.start();
    A top = a + at.outer * how.length * how.inner;
    size_t row = begin + at.y;
    if (at.column < how.inner && top.is_aligned() && how.inner % WIDTH == 0) {
        row = gk_take_rows<true, GK_REDUCE_COLUMN_LOADS>(op, how, at, top, row, end, state);
        gk_take_rows<true, 1>(op, how, at, top, row, end, state);
    } else if (at.column < how.inner) {
        row = gk_take_rows<false, gk_loads<false, typename Op::Element, GK_REDUCE_COLUMN_LOADS>::AT_ONCE>(op, how, at, top, row, end, state);
        gk_take_rows<false, 1>(op, how, at, top, row, end, state);
    }
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

// Of the bytes that a gathered array begins at; vectors as the host has found them.
template <typename T> __device__ static inline gk_gathered<T> gk_gather(const gk_reduction &how, const gk_layout &layout, const T *a) {
    return {(const char *)a, &layout, how.aligned, 0};
}

#define GK_REDUCE_KERNEL(symbol, threads, resident)                                                \
    extern "C" __global__ void __launch_bounds__(threads, resident) symbol
#define GK_REDUCE_KERNELS(symbol, Op)                                                              \
    GK_REDUCE_KERNEL(symbol##_rows, GK_REDUCE_THREADS, GK_REDUCE_RESIDENT)(gk_reduction how, const Op::Element *a) { \
        gk_reduce_rows<Op>(how, gk_run<Op::Element>{a}, gk_run<Op::Element>{a});                   \
    }                                                                                              \
    GK_REDUCE_KERNEL(symbol##_short, GK_REDUCE_THREADS, GK_REDUCE_RESIDENT)(gk_reduction how, const Op::Element *a) { \
        gk_reduce_short<Op>(how, gk_run<Op::Element>{a});                                          \
    }                                                                                              \
    GK_REDUCE_KERNEL(symbol##_columns, GK_REDUCE_COLUMN_THREADS, GK_REDUCE_COLUMN_RESIDENT)(gk_reduction how, const Op::Element *a) { \
        gk_reduce_columns<Op>(how, gk_run<Op::Element>{a});                                        \
    }                                                                                              \
    GK_REDUCE_KERNEL(symbol##_gathered, GK_REDUCE_THREADS, GK_REDUCE_RESIDENT)(gk_reduction how, const Op::Element *a, gk_layout layout) { \
        gk_gathered<Op::Element> gathered = gk_gather(how, layout, a);                             \
        if (how.short_rows)                                                                        \
            gk_reduce_short<Op>(how, gathered);                                                    \
        else                                                                                       \
            gk_reduce_rows<Op>(how, gathered, gathered);                                           \
    }                                                                                              \
    GK_REDUCE_KERNEL(symbol##_gathered_columns, GK_REDUCE_COLUMN_THREADS, GK_REDUCE_COLUMN_RESIDENT)(gk_reduction how, const Op::Element *a, gk_layout layout) { \
        gk_reduce_columns<Op>(how, gk_gather(how, layout, a));                                     \
    }

#endif
#endif
