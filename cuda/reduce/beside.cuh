// Rows that lie side by side in memory, as those of a matrix do that has been transposed: neighbouring threads take the
// neighbouring elements of neighbouring rows, or vectors of these, each for the state that a thread of a row by itself would have.
// The additions are those of one run, and no element goes through shared memory.
#ifndef GK_REDUCE_BESIDE_CUH
#define GK_REDUCE_BESIDE_CUH

// How a block's threads share out its rows, `side` at a time, and of each of them the states of `lanes` lanes: all that there are
// of a short one, and of a long one those of a warp, of which it has `warps`.
struct gk_beside {
    unsigned lanes, log, side, warps, warp, first, rows, at, lane, segment;
    uint32_t begin, end; // elements of each row

    template <int ROWS> __device__ static gk_beside find(const gk_reduction &how) {
        gk_beside made;
        made.lanes = how.short_rows ? how.lanes : (unsigned)GK_WARP;
        made.log = __popc((int)made.lanes - 1);
        made.side = GK_REDUCE_THREADS >> made.log;
        made.warps = how.short_rows ? 1 : GK_REDUCE_THREADS / GK_WARP;
        const uint32_t segments = (uint32_t)how.segments, whole = blockIdx.x / made.warps, band = whole / segments;
        made.warp = blockIdx.x - whole * made.warps;
        made.segment = whole - band * segments;
        made.first = band * made.side * ROWS;
        made.rows = how.outer - made.first < made.side * ROWS ? (unsigned)(how.outer - made.first) : made.side * ROWS;
        made.at = threadIdx.x & (made.side - 1);
        made.lane = threadIdx.x >> __popc((int)made.side - 1);
        made.begin = how.short_rows ? 0 : made.segment * (uint32_t)how.segment;
        made.end = (uint32_t)(how.short_rows || how.length - made.begin < how.segment ? how.length : made.begin + how.segment);
        return made;
    }

    // Which of the block's rows is number r of the thread's, that has EACH neighbours, and as many again a band's threads apart.
    template <int EACH> __device__ unsigned row(int r) const { return (at + r / EACH * side) * EACH + r % EACH; }

    // Where they begin, EACH neighbours at a time: the last ones again in place of those that are missing.
    template <int EACH, class T, int PIECES> __device__ void begin_rows(const gk_reduction &how, const gk_axes &layout, const T *a, const T *(&begins)[PIECES]) const {
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const unsigned number = row<EACH>(p * EACH);
            begins[p] = a + gk_place_along(layout, 0, how.kept_axes, first + (number < rows ? number : rows - EACH));
        }
    }
};

// A thread's elements of its rows, whose places are listed for all rows at once, some turns at a time.
template <int ROWS, class Op>
__device__ static inline void gk_take_beside(const Op &op, const gk_reduction &how, const gk_axes &layout, const gk_beside &by, const typename Op::Element *a, int32_t *places, typename Op::State (&state)[ROWS]) {
    typedef typename Op::Element T;
    enum { WIDTH = gk_vector<T>::WIDTH, TURNS = GK_REDUCE_BESIDE_LOADS(sizeof(T)) / (WIDTH * ROWS) };
    const unsigned own = by.lanes * WIDTH, turn = own * by.warps, side = __popc((int)own - 1);
    const T *row[ROWS];
    by.begin_rows<1>(how, layout, a, row);
#pragma unroll 1
    for (uint32_t i = by.begin + by.warp * own; i < by.end; i += TURNS * turn) {
        for (unsigned j = threadIdx.x; j < TURNS * own; j += GK_REDUCE_THREADS)
            if (i + (j >> side) * turn + (j & (own - 1)) < by.end)
                places[j] = gk_place_along(layout, how.kept_axes, layout.ndim, i + (j >> side) * turn + (j & (own - 1)));
        __syncthreads();
        const unsigned left = by.end - i;
        const auto each = [&](const auto &element) {
#pragma unroll
            for (int j = 0; j < TURNS; j++)
#pragma unroll
                for (int e = 0; e < WIDTH; e++)
                    if (j * turn + by.lane * WIDTH + e < left)
#pragma unroll
                        for (int r = 0; r < ROWS; r++)
                            element(j, e, r);
        };
        T x[TURNS][WIDTH][ROWS];
        each([&](int j, int e, int r) { x[j][e][r] = gk_read<T>(row[r] + places[j * own + by.lane * WIDTH + e]); });
        __syncthreads();
        each([&](int j, int e, int r) { op.take(state[r], x[j][e][r], x[j][e][r], 0); });
    }
}

// The same of rows whose elements lie evenly apart, EACH neighbours at a time: nothing is listed, and a load takes the place of what
// came as soon as that is taken.
template <int ROWS, int EACH, int LOADS, class Op>
__device__ static inline void gk_take_even(const Op &op, const gk_reduction &how, const gk_axes &layout, const gk_beside &by, const typename Op::Element *a, typename Op::State (&state)[ROWS]) {
    typedef typename Op::Element T;
    typedef gk_vector<T, EACH> vector;
    enum { WIDTH = gk_vector<T>::WIDTH, PIECES = ROWS / EACH, TURNS = LOADS / (WIDTH * PIECES) };
    const unsigned own = by.lanes * WIDTH, turn = own * by.warps, step = TURNS * turn;
    const int32_t pitch = layout.axis[how.kept_axes].stride;
    const T *row[PIECES];
    by.begin_rows<EACH>(how, layout, a, row);
    const auto each = [&](const auto &element) {
#pragma unroll
        for (int j = 0; j < TURNS; j++)
#pragma unroll
            for (int e = 0; e < WIDTH; e++)
                element(j * turn + e, j, e);
    };
    vector x[TURNS][WIDTH][PIECES];
    const auto load = [&](uint32_t i, int j, int e) {
#pragma unroll
        for (int p = 0; p < PIECES; p++)
            x[j][e][p] = *(const vector *)(row[p] + (int32_t)i * pitch);
    };
    const auto take = [&](int j, int e) {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            op.take(state[r], x[j][e][r / EACH][r % EACH], x[j][e][r / EACH][r % EACH], 0);
    };
    uint32_t i = by.begin + by.warp * own + by.lane * WIDTH;
    unsigned left = i < by.end ? by.end - i : 0;
    each([&](unsigned at, int j, int e) {
        if (at < left)
            load(i + at, j, e);
    });
#pragma unroll 1
    for (; left >= 2 * step; left -= step) {
        i += step;
        each([&](unsigned at, int j, int e) {
            take(j, e);
            load(i + at, j, e);
        });
    }
    each([&](unsigned at, int j, int e) {
        if (at < left)
            take(j, e);
    });
    each([&](unsigned at, int j, int e) {
        if (at + step < left)
            load(i + step + at, j, e);
    });
    each([&](unsigned at, int j, int e) {
        if (at + step < left)
            take(j, e);
    });
}

// Long rows' results, of the partial results of the warps of each segment: lanes do what the threads of a block would, in their order,
// a warp's for a row, or as many as there are segments, of which others would have nothing to join.
template <class Op> __device__ static inline void gk_end_beside(const Op &op, const gk_reduction &how, const gk_beside &by, const typename Op::State *partials) {
    typedef typename Op::State State;
    enum { WARPS = GK_REDUCE_THREADS / GK_WARP };
    __shared__ State of_warp[WARPS][WARPS];
    const unsigned segments = (unsigned)how.segments, warp = threadIdx.x / GK_WARP;
    const unsigned busy = segments < GK_REDUCE_THREADS ? (segments - 1) / GK_WARP + 1 : (unsigned)WARPS; // warps
    unsigned lanes = GK_WARP;
    while (lanes / 2 >= segments)
        lanes /= 2;
    const unsigned lane = threadIdx.x & (lanes - 1), first = threadIdx.x / lanes, rows = GK_REDUCE_THREADS / lanes;
#pragma unroll 1
    for (unsigned row = first; row - first < by.rows; row += rows) {
        State state;
#pragma unroll 1
        for (unsigned of = 0; of < busy; of++) {
            state = op.start();
#pragma unroll 1
            for (unsigned segment = of * GK_WARP + lane; segment < segments && row < by.rows; segment += GK_REDUCE_THREADS) {
                State part[WARPS];
#pragma unroll
                for (int j = 0; j < WARPS; j++)
                    part[j] = partials[((by.first + row) * (size_t)segments + segment) * WARPS + j];
#pragma unroll
                for (int half = WARPS / 2; half > 0; half /= 2)
#pragma unroll
                    for (int j = 0; j < half; j++)
                        op.join(part[j], part[j + half]);
                op.join(state, part[0]);
            }
            gk_join_lanes(op, state, (int)lanes);
            if (lane == 0 && busy > 1)
                of_warp[warp][of] = state;
        }
        if (busy > 1) {
            __syncwarp();
            state = lane < busy ? of_warp[warp][lane] : op.start();
            gk_join_lanes(op, state, WARPS);
            __syncwarp();
        }
        if (lane == 0 && row < by.rows)
            gk_store(op, how, by.first + row, state);
    }
}

// EACH: neighbouring rows of a thread, whose elements lie evenly apart; 0: they are listed.
template <class Op, int ROWS, int EACH> __device__ static inline void gk_reduce_bands(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    typedef typename Op::State State;
    enum { BYTES = sizeof(typename Op::Element), NEAR = EACH > 1 ? EACH : 1, LOADS = EACH > 1 ? GK_REDUCE_STRAIGHT_LOADS : GK_REDUCE_BESIDE_LOADS(BYTES) };
    static_assert(GK_REDUCE_THREADS * ROWS * 2 * sizeof(State) <= GK_REDUCE_BESIDE_BYTES, "the host asks for as much");
    GK_DYNAMIC_SHARED(uint4, memory);
    State *const states = (State *)memory, *const partials = (State *)how.partials;
    Op op = {how.order};
    const gk_beside by = gk_beside::find<ROWS>(how);
    State state[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        state[r] = op.start();
    gk_follow();
    if constexpr (EACH > 0)
        gk_take_even<ROWS, EACH, LOADS>(op, how, layout, by, a, state);
    else
        gk_take_beside<ROWS>(op, how, layout, by, a, (int32_t *)memory, state);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        states[by.row<NEAR>(r) * (by.lanes + 1) + by.lane] = state[r];
    __syncthreads();
    const unsigned lane = threadIdx.x & (by.lanes - 1);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const unsigned row = (threadIdx.x >> by.log) + r * by.side;
        State joined = states[row * (by.lanes + 1) + lane];
        gk_join_lanes(op, joined, (int)by.lanes);
        if (lane == 0 && row < by.rows && how.short_rows)
            gk_store(op, how, by.first + row, joined);
        else if (lane == 0 && row < by.rows)
            partials[((by.first + row) * how.segments + by.segment) * by.warps + by.warp] = joined;
    }
    if (!how.short_rows && gk_is_last(how.arrivals + by.first / (by.side * ROWS), how.segments * by.warps))
        gk_end_beside(op, how, by, partials);
}

// In kernels of their own: in one the compiler has other registers for each of them, with which they are up to 1.8 times as slow.
template <class Op> __device__ static inline void gk_reduce_rows_beside(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    gk_reduce_bands<Op, GK_REDUCE_BESIDE_ROWS(sizeof(typename Op::Element)), 0>(how, layout, a);
}
template <class Op> __device__ static inline void gk_reduce_rows_even(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    gk_reduce_bands<Op, GK_REDUCE_BESIDE_ROWS(sizeof(typename Op::Element)), 1>(how, layout, a);
}
template <class Op> __device__ static inline void gk_reduce_rows_straight(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    enum { WIDTH = gk_vector<typename Op::Element>::WIDTH };
    gk_reduce_bands<Op, WIDTH, WIDTH>(how, layout, a);
}

#endif
