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

    // Which of the block's rows is number r of the thread's.
    template <int ROWS, bool STRAIGHT> __device__ unsigned row(int r) const { return STRAIGHT ? at * ROWS + r : at + r * side; }
};

// A thread's elements of its rows, whose places are listed for all rows at once, some turns at a time.
template <int ROWS, class Op>
__device__ static inline void gk_take_beside(const Op &op, const gk_reduction &how, const gk_axes &layout, const gk_beside &by, const typename Op::Element *a, int32_t *places, typename Op::State (&state)[ROWS]) {
    typedef typename Op::Element T;
    enum { WIDTH = gk_vector<T>::WIDTH, TURNS = GK_REDUCE_BESIDE_LOADS(sizeof(T)) / (WIDTH * ROWS) };
    const unsigned own = by.lanes * WIDTH, turn = own * by.warps, side = __popc((int)own - 1);
    const T *row[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) { // the last one again in place of what is missing
        const unsigned number = by.row<ROWS, false>(r);
        row[r] = a + gk_place_along(layout, 0, how.kept_axes, by.first + (number < by.rows ? number : by.rows - 1));
    }
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

// The same of rows that lie evenly apart, a vector of neighbours each time: whole lines of memory, and nothing to list.
template <int ROWS, class Op>
__device__ static inline void gk_take_straight(const Op &op, const gk_reduction &how, const gk_axes &layout, const gk_beside &by, const typename Op::Element *a, typename Op::State (&state)[ROWS]) {
    typedef gk_vector<typename Op::Element, ROWS> vector;
    enum { WIDTH = gk_vector<typename Op::Element>::WIDTH, TURNS = GK_REDUCE_STRAIGHT_LOADS / WIDTH };
    const unsigned own = by.lanes * WIDTH, turn = own * by.warps, number = by.row<ROWS, true>(0);
    const int32_t pitch = layout.axis[how.kept_axes].stride;
    const typename Op::Element *row = a + gk_place_along(layout, 0, how.kept_axes, by.first + (number < by.rows ? number : 0));
#pragma unroll 1
    for (uint32_t i = by.begin + by.warp * own + by.lane * WIDTH; i < by.end; i += TURNS * turn) {
        const unsigned left = by.end - i;
        const auto each = [&](const auto &element) {
#pragma unroll
            for (int j = 0; j < TURNS; j++)
#pragma unroll
                for (int e = 0; e < WIDTH; e++)
                    if (j * turn + e < left)
                        element(j, e);
        };
        vector x[TURNS][WIDTH];
        each([&](int j, int e) { x[j][e] = *(const vector *)(row + (int32_t)(i + j * turn + e) * pitch); });
        each([&](int j, int e) {
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                op.take(state[r], x[j][e][r], x[j][e][r], 0);
        });
    }
}

// Long rows' results, of the partial results of the warps of each segment: a warp does what the threads of a block would, in
// their order.
template <class Op> __device__ static inline void gk_end_beside(const Op &op, const gk_reduction &how, const gk_beside &by, const typename Op::State *partials) {
    typedef typename Op::State State;
    enum { WARPS = GK_REDUCE_THREADS / GK_WARP };
    __shared__ State of_warp[WARPS][WARPS];
    const unsigned lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP;
    const unsigned busy = how.segments < GK_REDUCE_THREADS ? ((unsigned)how.segments - 1) / GK_WARP + 1 : (unsigned)WARPS; // others have nothing to join
#pragma unroll 1
    for (unsigned row = warp; row < by.rows; row += WARPS) {
#pragma unroll 1
        for (unsigned of = 0; of < busy; of++) {
            State state = op.start();
#pragma unroll 1
            for (size_t segment = of * GK_WARP + lane; segment < how.segments; segment += GK_REDUCE_THREADS) {
                State part[WARPS];
#pragma unroll
                for (int j = 0; j < WARPS; j++)
                    part[j] = partials[((by.first + row) * how.segments + segment) * WARPS + j];
#pragma unroll
                for (int half = WARPS / 2; half > 0; half /= 2)
#pragma unroll
                    for (int j = 0; j < half; j++)
                        op.join(part[j], part[j + half]);
                op.join(state, part[0]);
            }
            gk_join_lanes(op, state, GK_WARP);
            if (lane == 0)
                of_warp[warp][of] = state;
        }
        __syncwarp();
        State state = lane < busy ? of_warp[warp][lane] : op.start();
        gk_join_lanes(op, state, WARPS);
        __syncwarp();
        if (lane == 0)
            gk_store(op, how, by.first + row, state);
    }
}

template <class Op, int ROWS, bool STRAIGHT> __device__ static inline void gk_reduce_bands(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    typedef typename Op::State State;
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
    if constexpr (STRAIGHT)
        gk_take_straight<ROWS>(op, how, layout, by, a, state);
    else
        gk_take_beside<ROWS>(op, how, layout, by, a, (int32_t *)memory, state);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        states[by.row<ROWS, STRAIGHT>(r) * (by.lanes + 1) + by.lane] = state[r];
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

template <class Op> __device__ static inline void gk_reduce_rows_beside(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    typedef typename Op::Element T;
    if (how.tiles & GK_REDUCE_STRAIGHT)
        gk_reduce_bands<Op, gk_vector<T>::WIDTH, true>(how, layout, a);
    else
        gk_reduce_bands<Op, GK_REDUCE_BESIDE_ROWS(sizeof(T)), false>(how, layout, a);
}

#endif
