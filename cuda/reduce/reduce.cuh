// What every reduction is made of. An operation is a small struct (operations.cuh, on many elements at a time ways.cuh); here are the ways of
// walking over an array with it by vectors, wherever they lie (elements.cuh): along rows, along short rows,
// along those that lie between vectors (between.cuh), and down columns (columns.cuh, narrow.cuh; listed.cuh where these are no runs), by tiles of either (tiles.cuh), line by line (lines.cuh), or, where axes lie
// in another order, along columns (along.cuh) and across rows (beside.cuh). Of rows of a few elements a thread has several (own.cuh), and
// a block brings little matrices, or rows that are no whole vectors, to shared memory (matrices.cuh). A little array is walked over an element
// at a time (little.cuh), and of columns of few rows a thread has some (few.cuh).
//
// Which thread takes which elements, and in which order all is joined, depends on the shape alone:
// the same array gives the same bits on every device, wherever its elements lie.
#ifndef GK_REDUCE_CUH
#define GK_REDUCE_CUH

#include "device.cuh"
#include "reduce/reduction.h"

// A kernel that takes a gk_reduction, and those of a reduction, which GK_REDUCE_KERNELS defines.
#define GK_REDUCE(op, variant, dtype, symbol, block, note) GK_REDUCE_SHARING(op, variant, dtype, symbol, block, 0, note)
#define GK_REDUCE_SHARING(op, variant, dtype, symbol, block, bytes, note)                          \
    GK_ROW(op, variant, dtype, symbol, note, .takes = GK_TAKES_REDUCTION, .tile_rows = 1, .tile_columns = block, .threads = block, .alignment = 1, .follows = true, .shared_bytes = bytes)
#define GK_WALKS(op, variant, dtype, symbol, note)                                                 \
    GK_REDUCE(op, variant, dtype, symbol##_rows, GK_REDUCE_THREADS, note)                          \
    GK_REDUCE(op##_short, variant, dtype, symbol##_short, GK_REDUCE_THREADS, "of rows shorter than a block") \
    GK_REDUCE(op##_columns, variant, dtype, symbol##_columns, GK_REDUCE_COLUMN_THREADS, "of columns") \
    GK_REDUCE_SHARING(op##_gathered, variant, dtype, symbol##_gathered, GK_REDUCE_THREADS, GK_REDUCE_GATHERED_BYTES, "of rows whose elements lie anywhere") \
    GK_REDUCE_SHARING(op##_gathered_columns, variant, dtype, symbol##_gathered_columns, GK_REDUCE_COLUMN_THREADS, GK_REDUCE_TILE_BYTES, "of such columns") \
    GK_REDUCE(op##_little, variant, dtype, symbol##_little, GK_REDUCE_THREADS, "of few elements, which lie anywhere") \
    GK_REDUCE(op##_scattered, variant, dtype, symbol##_scattered, GK_REDUCE_THREADS, "of columns whose few rows lie along two axes, or begin anywhere") \
    GK_REDUCE_SHARING(op##_matrices, variant, dtype, symbol##_matrices, GK_REDUCE_THREADS, GK_REDUCE_MATRICES_BYTES, "of columns of little matrices")
// And that of results which are of the elements' dtype.
#define GK_OWN_ROWS(op, variant, dtype, symbol) GK_REDUCE(op##_own, variant, dtype, symbol##_own, GK_REDUCE_THREADS, "of short rows, of which a thread has as many as a vector has elements")
// And those of real numbers, whose order is kept.
#define GK_WALKS_OF_REALS(op, variant, dtype, symbol, note)                                        \
    GK_WALKS(op, variant, dtype, symbol, note)                                                     \
    GK_REDUCE(op##_between, variant, dtype, symbol##_between, GK_REDUCE_THREADS, "of short rows that lie between vectors")
// And those of what keeps its order, wherever elements lie (gk_keeps_order).
#define GK_WALKS_IN_ORDER(op, variant, dtype, symbol, note)                                        \
    GK_WALKS_OF_REALS(op, variant, dtype, symbol, note)                                            \
    GK_OWN_ROWS(op, variant, dtype, symbol)                                                        \
    GK_REDUCE_SHARING(op##_beside, variant, dtype, symbol##_beside, GK_REDUCE_THREADS, GK_REDUCE_BESIDE_BYTES, "of rows that lie side by side") \
    GK_REDUCE_SHARING(op##_even, variant, dtype, symbol##_even, GK_REDUCE_THREADS, GK_REDUCE_BESIDE_BYTES, "of such rows, whose elements lie evenly apart") \
    GK_REDUCE_SHARING(op##_straight, variant, dtype, symbol##_straight, GK_REDUCE_THREADS, GK_REDUCE_BESIDE_BYTES, "of such rows, by vectors of neighbours") \
    GK_REDUCE_SHARING(op##_along, variant, dtype, symbol##_along, GK_REDUCE_COLUMN_THREADS, GK_REDUCE_FETCHED_BYTES(GK_REDUCE_ALONG_VECTORS), "of columns that are runs")

#ifndef GK_ROWS_ONLY

#include "reduce/elements.cuh"
#include "reduce/line.cuh"
#include "reduce/little.cuh"
#include "reduce/ways.cuh"

// The elements behind the first `wanted` become padding.
template <class Op, typename T> __device__ static inline void gk_pad(const Op &op, gk_vector<T> &loaded, size_t wanted) {
    T elements[gk_vector<T>::WIDTH];
    if (wanted >= gk_vector<T>::WIDTH)
        return;
#pragma unroll
    for (int e = 0; e < gk_vector<T>::WIDTH; e++)
        elements[e] = e < wanted ? loaded[e] : op.padding(loaded[0]);
    loaded.pack(elements);
}

template <class Op, class A>
__device__ static inline gk_vector<typename A::Element> gk_load_padded(const Op &op, const A &a, size_t wanted) {
    const A at[1] = {a};
    gk_vector<typename A::Element> loaded[1];
    A::template load<GK_ANYWHERE>(loaded, at, (int)wanted);
    gk_pad(op, loaded[0], wanted);
    return loaded[0];
}

// Sums of real numbers, which are taken in their order, in no wider states than is usual for them: others are taken in
// another order, or seldom, and are no worse for a copy that is made first.
template <class Op> constexpr bool gk_keeps_order = false;
template <typename T, typename A> constexpr bool gk_keeps_order<gk_plain_sum<T, A>> = sizeof(A) <= 4;
template <typename T, typename A> constexpr bool gk_keeps_order<gk_compensated_sum<T, A>> = sizeof(A) == sizeof(T) && !__is_same(T, int64_t) && !__is_same(T, uint64_t);

// Sums, products and norms of real numbers, which take long rows by lines that are listed (lines.cuh).
template <typename T> constexpr bool gk_is_real = __is_same(T, float) || __is_same(T, double) || __is_same(T, float16) || __is_same(T, bfloat16);
template <class Op> constexpr bool gk_lists_lines = Op::OPERANDS == 1 && !Op::ANY_ORDER && gk_is_real<typename Op::Element>;

// Whether aligned vectors may be taken in place of those that begin where a run does.
template <class Op, class A> constexpr bool gk_goes_aligned = Op::ANY_ORDER && Op::OPERANDS == 1 && A::IS_RUN;

// Whether the lanes of a warp hand words on to their neighbours of what begins anywhere, elements that are a word or half of one.
template <class Op, class A> constexpr bool gk_hands_on = Op::OPERANDS == 1 && A::IS_RUN && (sizeof(typename A::Element) == 2 || sizeof(typename A::Element) == 4);

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

// Up to LOADS vectors of a run, STEP elements apart: all are loaded before the first is taken. ALL:
// `count` is LOADS. `is_long`: so many follow that an operation may as well look at each before it takes it.
template <gk_lies LIES, bool ALL, int LOADS, int STEP, class Op, class A>
__device__ static inline void gk_take_vectors(const Op &op, typename Op::State &state, const A &a, const A &b, int count, size_t index, bool is_long) {
    gk_vector<typename A::Element> x[LOADS], y[LOADS];
    A left[LOADS], right[LOADS];
#pragma unroll
    for (int j = 0; j < LOADS; j++)
        left[j] = a + j * STEP, right[j] = b + j * STEP;
    A::template load<LIES>(x, left, A::WIDTH, ALL ? LOADS : count);
    if (Op::OPERANDS == 2)
        A::template load<LIES>(y, right, A::WIDTH, ALL ? LOADS : count);
    if constexpr (gk_looks_first<Op>) {
        const gk_look<typename Op::Element> look(state);
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            if ((ALL || j < count) && (!is_long || look.may_change(op, state, x[j])))
                gk_take_vector(op, state, x[j], x[j], index + j * STEP);
    } else {
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            if (ALL || j < count)
                gk_take_vector(op, state, x[j], Op::OPERANDS == 2 ? y[j] : x[j], index + j * STEP);
    }
}

// The vectors of a thread's part of a run of n elements that are whole, from element i on, several loads
// at a time; where the next one is.
template <gk_lies LIES, int THREADS, class Op, class A>
__device__ static inline size_t gk_take_whole(const Op &op, typename Op::State &state, const A &a, const A &b, size_t i, size_t n, size_t index) {
    enum { WIDTH = A::WIDTH, STEP = THREADS * WIDTH, LOADS = (LIES == GK_ALIGNED ? (int)GK_REDUCE_LOADS : (int)A::AT_ONCE) / Op::OPERANDS };
    // Beside one another all lanes of a warp have as many as the last one.
    const size_t last = LIES >= GK_BESIDE ? i + (GK_WARP - 1 - threadIdx.x % GK_WARP) * WIDTH : i;
    size_t left = last + WIDTH <= n ? (n - last - WIDTH) / STEP + 1 : 0;
    const bool is_long = n >= (size_t)GK_REDUCE_LOOKED_AT * STEP;
    for (; left >= LOADS; left -= LOADS, i += STEP * LOADS)
        gk_take_vectors<LIES, true, LOADS, STEP>(op, state, a + i, b + i, LOADS, index + i, is_long);
    if constexpr (LIES == GK_BETWEEN && (int)A::LEAST == 1) {
#pragma unroll 1
        for (; left > 0; left--, i += STEP)
            gk_take_vectors<LIES, true, 1, STEP>(op, state, a + i, b + i, 1, index + i, is_long);
    } else if (left > 0) {
        gk_take_vectors<LIES, false, LOADS, STEP>(op, state, a + i, b + i, (int)left, index + i, is_long);
    }
    return i + left * STEP;
}

// The same of vectors that are not aligned. A warp goes one way: all lanes' vectors begin as many bytes behind aligned ones.
template <int THREADS, class Op, class A>
__device__ static inline size_t gk_take_ragged(const Op &op, typename Op::State &state, const A &a, const A &b, size_t i, size_t n, size_t index) {
    if constexpr (gk_hands_on<Op, A>) {
        const unsigned words = a.words();
        if constexpr (sizeof(typename A::Element) < sizeof(uint32_t))
            if (words == 0)
                return gk_take_whole<GK_BESIDE, THREADS>(op, state, a, b, i, n, index);
        return words == 1   ? gk_take_whole<GK_BESIDE_1, THREADS>(op, state, a, b, i, n, index)
               : words == 2 ? gk_take_whole<GK_BESIDE_2, THREADS>(op, state, a, b, i, n, index)
                            : gk_take_whole<GK_BESIDE_3, THREADS>(op, state, a, b, i, n, index);
    } else {
        return gk_take_whole<A::RAGGED, THREADS>(op, state, a, b, i, n, index);
    }
}

// A run of n elements where any order does: by aligned vectors alone, wherever it begins. What a thread takes of
// it depends on that, and what comes of all does not.
template <int THREADS, class Op, class A>
__device__ static inline void gk_take_aligned(const Op &op, typename Op::State &state, const A &a, size_t n, size_t index) {
    enum { WIDTH = A::WIDTH, STEP = THREADS * WIDTH };
    const unsigned head = n > 0 ? a.head() : 0;
    const A vectors = a - head;
    size_t i = threadIdx.x % THREADS * WIDTH, end = head + n;
    index -= head;
    if (i < head) {
        gk_take_part(op, state, vectors.aligned(), -(int)head, n < WIDTH ? (unsigned)n : WIDTH, index);
        i += STEP;
    }
    i = gk_take_whole<GK_ALIGNED, THREADS>(op, state, vectors, vectors, i, end, index);
    if (i < end)
        gk_take_part(op, state, (vectors + i).aligned(), 0, (unsigned)(end - i), index + i);
}

// A thread's part of elements that lie in long runs: of each run its whole vectors, with one look at where that lies,
// and the vector that goes on in the next one by itself. It takes what it takes of a single run, in the same order.
template <int THREADS, class Op, typename T>
__device__ static inline void gk_take_runs(const Op &op, typename Op::State &state, const gk_gathered<T> &a, size_t n, size_t index) {
    enum { WIDTH = gk_vector<T>::WIDTH, STEP = THREADS * WIDTH };
#pragma unroll 1
    for (size_t i = threadIdx.x % THREADS * WIDTH; i < n;) {
        uint32_t left;
        const gk_run<T> run = (a + i).run(left), all = run - i;
        const size_t end = n - i < left ? n : i + left;
        i = gk_take_whole<GK_BETWEEN, THREADS>(op, state, all, all, i, i + gk_between_of(run, end - i), index);
        if (i < end) {
            const gk_vector<T> x = gk_load_padded(op, a + i, n - i < WIDTH ? n - i : WIDTH);
            gk_take_vector(op, state, x, x, index + i);
            i += STEP;
        }
    }
}

// A thread's part of a run of n elements, the first of which has the number `index`: one of every THREADS vectors,
// a block's or a warp's. What follows the last of those that may be read as a whole is loaded with care.
template <int THREADS, class Op, class A>
__device__ static inline void gk_take_run(const Op &op, typename Op::State &state, const A &a, const A &b, size_t n, size_t index) {
    enum { WIDTH = A::WIDTH, STEP = THREADS * WIDTH };
    if constexpr (gk_goes_aligned<Op, A>) {
        gk_take_aligned<THREADS>(op, state, a, n, index);
        return;
    }
    if constexpr (gk_keeps_order<Op> && __is_same(A, gk_gathered<typename Op::Element>))
        if (a.has_runs(GK_REDUCE_RUN_VECTORS * STEP)) {
            gk_take_runs<THREADS>(op, state, a, n, index);
            return;
        }
    const size_t of_a = gk_between_of(a, n), of_b = gk_between_of(b, n), sure = of_a < of_b ? of_a : of_b;
    size_t i = threadIdx.x % THREADS * WIDTH;
    i = a.is_aligned() && b.is_aligned() ? gk_take_whole<GK_ALIGNED, THREADS>(op, state, a, b, i, n, index) : gk_take_ragged<THREADS>(op, state, a, b, i, sure, index);
#pragma unroll 1
    for (; i < n; i += STEP) {
        size_t wanted = n - i < WIDTH ? n - i : WIDTH;
        gk_vector<typename A::Element> x = gk_load_padded(op, a + i, wanted);
        gk_take_vector(op, state, x, Op::OPERANDS == 2 ? gk_load_padded(op, b + i, wanted) : x, index + i);
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

__device__ static inline size_t gk_first(const gk_reduction &how) { return how.stage == GK_REDUCE_PARTIAL ? how.first : 0; }

// What a block has of a segment of a row becomes a result, with what the others have, if it is the last of them.
template <class Op> __device__ static inline void gk_end_row(const Op &op, const gk_reduction &how, size_t row, size_t segment, typename Op::State &state) {
    typedef typename Op::State State;
    State *partials = (State *)how.partials + row * how.segments;
    if (how.stage != GK_REDUCE_FINISH) {
        gk_join_block(op, state);
        bool whole = how.stage == GK_REDUCE_WHOLE;
        if (threadIdx.x == 0 && whole && how.segments == 1)
            gk_store(op, how, row, state);
        else if (threadIdx.x == 0)
            partials[gk_first(how) / how.segment + segment] = state;
        if (!whole || how.segments == 1 || !gk_is_last(how.arrivals + row, how.segments))
            return;
        state = op.start();
    }
    if (threadIdx.x < how.segments)
        gk_join_partials(op, state, partials + threadIdx.x, how.segments - threadIdx.x, GK_REDUCE_THREADS);
    gk_join_block(op, state);
    if (threadIdx.x == 0)
        gk_store(op, how, row, state);
}

// Long rows: one block takes a segment of a row. All elements of an array are one row.
template <class Op, class A>
__device__ static inline void gk_reduce_rows(const gk_reduction &how, const A &a, const A &b) {
    Op op = {how.order};
    const uint32_t segments = (uint32_t)how.segments;
    size_t row = blockIdx.x / segments, segment = blockIdx.x % segments;
    typename Op::State state = op.start();
    const size_t begin = segment * how.segment, left = how.length - begin;
    const A of_a = a.row(how, row) + begin, of_b = b.row(how, row) + begin;
    gk_follow();
    if (how.stage != GK_REDUCE_FINISH)
        gk_take_run<GK_REDUCE_THREADS>(op, state, of_a, of_b, left < how.segment ? left : how.segment, gk_first(how) + begin);
    gk_end_row(op, how, row, segment, state);
}

// Short rows: a group of lanes takes several rows, side by side so that enough loads are under way.
// What begins in [i, end); where the next one does. GK_ALIGNED: every vector of every row is whole, too.
template <gk_lies LIES, class Op, class A, int ROWS>
__device__ static inline size_t gk_take_short(const Op &op, const gk_reduction &how, typename Op::State (&state)[ROWS], const A (&row)[ROWS], size_t i,
                                              size_t end) {
    for (; i < end; i += how.lanes * A::WIDTH) {
        gk_vector<typename A::Element> x[ROWS];
        A at[ROWS];
        size_t wanted = LIES == GK_ALIGNED || how.length - i > A::WIDTH ? A::WIDTH : how.length - i;
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            at[r] = row[r] + i;
        A::template load<LIES>(x, at, (int)wanted);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            gk_pad(op, x[r], wanted);
            gk_take_vector(op, state[r], x[r], x[r], i);
        }
    }
    return i;
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

// The same where any order does: by aligned vectors, of which the first and the last of a row are in part others'.
template <class Op, class A, int ROWS>
__device__ static inline void gk_take_short_aligned(const Op &op, const gk_reduction &how, typename Op::State (&state)[ROWS], A (&row)[ROWS], unsigned lane) {
    enum { WIDTH = A::WIDTH };
    unsigned head[ROWS], most = 0;
    const unsigned length = (unsigned)how.length;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        head[r] = length > 0 ? row[r].head() : 0;
        row[r] = row[r] - head[r] + lane * WIDTH;
        most = head[r] > most ? head[r] : most;
    }
    for (unsigned i = lane * WIDTH; i < most + length; i += how.lanes * WIDTH) {
        gk_vector<typename A::Element> x[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (i < head[r] + length)
                x[r] = row[r].aligned();
            row[r] = row[r] + how.lanes * WIDTH;
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int at = (int)i - (int)head[r];
            gk_take_part(op, state[r], x[r], at, length, at);
        }
    }
}

template <class Op, class A> __device__ static inline void gk_reduce_short(const gk_reduction &how, const A &a) {
    enum { ROWS = GK_REDUCE_SHORT_ROWS, WIDTH = gk_vector<typename Op::Element>::WIDTH };
    Op op = {how.order};
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
        row[r] = a.row(how, number < how.outer ? number : how.outer - 1);
        state[r] = op.start();
    }
    gk_follow();
    const int64_t steps = how.over | how.beyond;
    const bool aligned = a.is_aligned() && steps % GK_REDUCE_VECTOR_BYTES == 0 && how.length % WIDTH == 0;
    bool alone = false;
    if constexpr (gk_goes_aligned<Op, A>) {
        // Of shorter rows too much is in the first and the last vector, whose elements are asked for; bytes are dear to
        // put together.
        enum { LEAST = (sizeof(typename Op::Element) == 1 ? GK_REDUCE_OWN_VECTORS / 4 : GK_REDUCE_OWN_VECTORS) * WIDTH };
        alone = !aligned && how.length >= LEAST;
        if (alone)
            gk_take_short_aligned(op, how, state, row, lane);
    }
    if (aligned) {
        gk_take_short<GK_ALIGNED>(op, how, state, row, lane * WIDTH, how.length);
    } else if (!alone) {
        size_t i = gk_take_short<GK_BETWEEN>(op, how, state, row, lane * WIDTH, gk_between_of(row[ROWS - 1], how.length));
        gk_take_short<GK_ANYWHERE>(op, how, state, row, i, how.length);
    }
    gk_held mine = gk_join_rows(op, state, lane, how.lanes);
#pragma unroll
    for (unsigned r = 0; r < ROWS; r++) {
        size_t number = first + (mine.row + r) * apart;
        if (mine.whole && r < mine.held && number < how.outer)
            gk_store(op, how, number, state[r]);
    }
}

// Rows that are longer, and fewer: a warp takes one, with several loads along it under way instead of one of
// each of several rows. Its additions are those of 32 lanes of short rows.
template <class Op, class A> __device__ static inline void gk_reduce_lone_rows(const gk_reduction &how, const A &a) {
    const size_t row = (size_t)blockIdx.x * (GK_REDUCE_THREADS / GK_WARP) + threadIdx.x / GK_WARP;
    Op op = {how.order};
    typename Op::State state = op.start();
    const A elements = a.row(how, row);
    gk_follow();
    if (row >= how.outer)
        return;
    gk_take_run<GK_WARP>(op, state, elements, elements, how.length, 0);
    gk_join_lanes(op, state, GK_WARP);
    if (threadIdx.x % GK_WARP == 0)
        gk_store(op, how, row, state);
}

#include "reduce/between.cuh"
#include "reduce/columns.cuh"
#include "reduce/tiles.cuh"
#include "reduce/lines.cuh"
#include "reduce/listed.cuh"
#include "reduce/narrow.cuh"
#include "reduce/along.cuh"
#include "reduce/matrices.cuh"
#include "reduce/own.cuh"
#include "reduce/beside.cuh"

// Rows, long or short, of elements that lie anywhere: as a layout says, one after another, or by tiles.
template <class Op, class A> __device__ static inline void gk_reduce_found(const gk_reduction &how, const A &a) {
    if (how.short_rows && how.lone_rows)
        gk_reduce_lone_rows<Op>(how, a);
    else if (how.short_rows)
        gk_reduce_short<Op>(how, a);
    else
        gk_reduce_rows<Op>(how, a, a);
}
// Said to be inlined, or the compiler may leave a call here, for which the parameters are copied to memory.
template <class Op> __device__ static __forceinline__ void gk_reduce_gathered(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    const gk_gathered<typename Op::Element> gathered = gk_gather(how, layout, a);
    if (how.tiles & GK_REDUCE_LINE) {
        const gk_line<typename Op::Element> line = {&gathered, NULL, 0};
        return gk_reduce_rows<Op>(how, line, line);
    }
    if constexpr (gk_lists_lines<Op>)
        if (how.lines)
            return gk_reduce_lines<Op>(how, layout, a);
    if constexpr (gk_keeps_order<Op>) {
        if (how.tiles)
            return gk_reduce_rows_by_tiles<Op>(how, layout, a);
        if (how.broken)
            return gk_reduce_found<Op>(how, gk_broken<typename Op::Element>{&gathered, 0});
    }
    gk_reduce_found<Op>(how, gathered);
}

template <class Op> __device__ static inline void gk_reduce_gathered_columns(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    if constexpr (gk_keeps_order<Op> && sizeof(typename Op::Element) == 2)
        if (how.narrow && how.tiles & GK_REDUCE_STRAIGHT)
            return gk_reduce_narrow_along<Op>(how, layout, a);
    if constexpr (gk_keeps_order<Op> && sizeof(typename Op::Element) <= 4)
        if (how.narrow)
            return gk_reduce_narrow_apart<Op>(how, layout, a);
    if (how.tiles & GK_REDUCE_LISTED)
        gk_reduce_columns_listed<Op>(how, layout, a);
    else
        gk_reduce_columns_by_tiles<Op>(how, layout, a);
}

#define GK_REDUCE_KERNEL(symbol, threads, resident)                                                \
    extern "C" __global__ void __launch_bounds__(threads, resident) symbol
#define GK_REDUCE_KERNELS(symbol, Op)                                                              \
    GK_REDUCE_KERNEL(symbol##_rows, GK_REDUCE_THREADS, GK_REDUCE_RESIDENT)(gk_reduction how, const Op::Element *a) { \
        gk_reduce_rows<Op>(how, gk_run_of(how, a), gk_run_of(how, a));                             \
    }                                                                                              \
    GK_REDUCE_KERNEL(symbol##_short, GK_REDUCE_THREADS, GK_REDUCE_RESIDENT)(gk_reduction how, const Op::Element *a) { \
        if (how.lone_rows)                                                                         \
            gk_reduce_lone_rows<Op>(how, gk_run_of(how, a));                                       \
        else                                                                                       \
            gk_reduce_short<Op>(how, gk_run_of(how, a));                                           \
    }                                                                                              \
    GK_REDUCE_KERNEL(symbol##_columns, GK_REDUCE_COLUMN_THREADS, GK_REDUCE_COLUMN_RESIDENT)(gk_reduction how, const Op::Element *a) { \
        if (how.narrow)                                                                            \
            gk_reduce_narrow<Op>(how, gk_run_of(how, a));                                          \
        else                                                                                       \
            gk_reduce_columns<Op>(how, gk_run_of(how, a));                                         \
    }                                                                                              \
    GK_REDUCE_KERNEL(symbol##_gathered, GK_REDUCE_THREADS, GK_REDUCE_RESIDENT)(gk_reduction how, const Op::Element *a, gk_axes layout) { \
        gk_reduce_gathered<Op>(how, layout, a);                                                    \
    }                                                                                              \
    GK_REDUCE_KERNEL(symbol##_gathered_columns, GK_REDUCE_COLUMN_THREADS, GK_REDUCE_COLUMN_RESIDENT)(gk_reduction how, const Op::Element *a, gk_axes layout) { \
        gk_reduce_gathered_columns<Op>(how, layout, a);                                            \
    }                                                                                              \
    GK_REDUCE_KERNEL(symbol##_little, GK_REDUCE_THREADS, GK_REDUCE_LITTLE_RESIDENT)(gk_little how) {      \
        gk_reduce_little<Op>(how);                                                                 \
    }                                                                                              \
    GK_REDUCE_KERNEL(symbol##_scattered, GK_REDUCE_THREADS, GK_REDUCE_RESIDENT)(gk_little how) {      \
        gk_reduce_scattered<Op>(how);                                                              \
    }                                                                                              \
    GK_REDUCE_KERNEL(symbol##_matrices, GK_REDUCE_THREADS, GK_REDUCE_LITTLE_RESIDENT)(gk_reduction how, const Op::Element *a) { \
        gk_reduce_matrices<Op>(how, a);                                                            \
    }

#define GK_OWN_KERNEL(symbol, Op)                                                                  \
    GK_REDUCE_KERNEL(symbol##_own, GK_REDUCE_THREADS, GK_REDUCE_RESIDENT)(gk_reduction how, const Op::Element *a) { \
        gk_reduce_own_rows<Op>(how, a);                                                            \
    }

#define GK_REDUCE_KERNELS_OF_REALS(symbol, Op)                                                     \
    GK_REDUCE_KERNELS(symbol, Op)                                                                  \
    GK_REDUCE_KERNEL(symbol##_between, GK_REDUCE_THREADS, GK_REDUCE_BETWEEN_RESIDENT(sizeof(Op::State)))(gk_reduction how, const Op::Element *a) { \
        gk_reduce_rows_between<Op>(how, gk_run_of(how, a));                                        \
    }
#define GK_REDUCE_KERNELS_IN_ORDER(symbol, Op)                                                     \
    GK_REDUCE_KERNELS_OF_REALS(symbol, Op)                                                         \
    GK_OWN_KERNEL(symbol, Op)                                                                      \
    GK_REDUCE_KERNEL(symbol##_beside, GK_REDUCE_THREADS, GK_REDUCE_RESIDENT)(gk_reduction how, const Op::Element *a, gk_axes layout) { \
        gk_reduce_rows_beside<Op>(how, layout, a);                                                 \
    }                                                                                              \
    GK_REDUCE_KERNEL(symbol##_even, GK_REDUCE_THREADS, GK_REDUCE_RESIDENT)(gk_reduction how, const Op::Element *a, gk_axes layout) { \
        gk_reduce_rows_even<Op>(how, layout, a);                                                   \
    }                                                                                              \
    GK_REDUCE_KERNEL(symbol##_straight, GK_REDUCE_THREADS, GK_REDUCE_RESIDENT)(gk_reduction how, const Op::Element *a, gk_axes layout) { \
        gk_reduce_rows_straight<Op>(how, layout, a);                                               \
    }                                                                                              \
    GK_REDUCE_KERNEL(symbol##_along, GK_REDUCE_COLUMN_THREADS, GK_REDUCE_ALONG_RESIDENT)(gk_reduction how, const Op::Element *a, gk_axes layout) { \
        gk_reduce_columns_along<Op>(how, layout, a);                                               \
    }

#endif
#endif
