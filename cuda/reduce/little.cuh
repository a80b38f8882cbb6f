// Reductions of little arrays an element at a time, and of columns of few rows, of which neighbours may be taken as vectors.
#ifndef GK_REDUCE_LITTLE_CUH
#define GK_REDUCE_LITTLE_CUH

#include "reduce/ways.cuh"
#include "strided.cuh"

// What elements i along `count` axes of a little array, the first of which is AXIS and the next one STEP on,
// add to its address, in bytes. Its parameters are operands of instructions, as they would not be in a loop,
// and there is one branch an axis that is there; one element fills the time that another's takes.
template <int AXIS, int STEP, int EACH>
__device__ static inline void gk_find_little(const gk_little &how, int count, uint32_t (&i)[EACH], int64_t (&offset)[EACH]) {
    if constexpr (AXIS >= 0 && AXIS < GK_LITTLE_AXES) {
        if (count <= 0)
            return;
        const bool more = count > 1; // of the outermost axis the index is what is left
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            uint32_t index = more ? gk_take_axis(i[j], how.axis[AXIS].length, how.axis[AXIS].multiplier) : i[j];
            offset[j] = gk_add_product(offset[j], (int32_t)index, how.axis[AXIS].stride);
        }
        gk_find_little<AXIS + STEP, STEP>(how, count - 1, i, offset);
    }
}

// A lane's elements of a single axis: there is nothing to find. It is `far` bytes from the last one of as many as
// a vector has to the next, and `near` between two of these.
template <class Op>
__device__ static inline void gk_take_line(const Op &op, typename Op::State &state, const char *a, int64_t near, int64_t far, unsigned count, unsigned index, unsigned lanes) {
    enum { LOADS = GK_REDUCE_LINE_LOADS };
    typedef typename Op::Element T;
    for (; count > 0; count = count > LOADS ? count - LOADS : 0, index += LOADS * lanes) {
        T x[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++) {
            if (j < count)
                x[j] = gk_read<T>(a);
            a += (j + 1) % gk_vector<T>::WIDTH == 0 ? far : near;
        }
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            if (j < count)
                op.take(state, x[j], x[j], index + j * lanes);
    }
}

// How many of n elements a lane has, of which lanes take EACH at a time.
template <int EACH> __device__ static inline unsigned gk_share_of_line(unsigned n, unsigned lane, unsigned lanes) {
    const unsigned round = lanes * EACH, left = n % round, before = lane * EACH;
    return n / round * EACH + (left > before ? left - before < EACH ? left - before : EACH : 0);
}

// The same of several axes.
template <class Op>
__device__ static inline void gk_take_little(const Op &op, const gk_little &how, typename Op::State &state, const char *a, unsigned lane, unsigned lanes, unsigned length) {
    enum { LOADS = GK_REDUCE_LOADS };
    typedef typename Op::Element T;
    for (unsigned i = lane; i < length; i += LOADS * lanes) {
        T x[LOADS];
        uint32_t at[LOADS];
        int64_t offset[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            at[j] = i + j * lanes, offset[j] = 0;
        gk_find_little<0, 1>(how, how.reduced, at, offset);
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            if (i + j * lanes < length)
                x[j] = gk_read<T>(a + offset[j]);
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            if (i + j * lanes < length)
                op.take(state, x[j], x[j], i + j * lanes);
    }
}

// The results of neighbouring columns, the first of which is number i and lies on a vector, by functions of each one's number: the
// result where it is of the usual dtype, and the state.
template <int COLUMNS, class Op, class HOW, class RESULT, class STATE>
__device__ static inline void gk_store_few(const Op &op, const HOW &how, size_t i, const RESULT &result_of, const STATE &state_of) {
    typedef typename Op::Result R;
    enum { EACH = COLUMNS * sizeof(R) <= GK_REDUCE_VECTOR_BYTES ? COLUMNS : gk_vector<R>::WIDTH };
#pragma unroll
    for (int first = 0; first < COLUMNS; first += EACH) {
        R result[EACH];
        if (op.gives(how)) {
#pragma unroll
            for (int e = 0; e < EACH; e++)
                result[e] = result_of(first + e);
            gk_vector<R, EACH> some;
            some.pack(result);
            *(gk_vector<R, EACH> *)((R *)how.result + i + first) = some;
        } else {
#pragma unroll
            for (int e = 0; e < EACH; e++)
                op.store(how, i + first + e, state_of(first + e));
        }
    }
}

// The rows of a thread's columns, SEVERAL times COLUMNS that lie side by side, from where `row` says on, LOADS at a time: what there is
// no row for costs instructions, too.
template <int LOADS, int AXES, class Op, int COLUMNS, int SEVERAL>
__device__ static inline void gk_take_few(const Op &op, const gk_little &how, const char *(&row)[SEVERAL], gk_ways<Op, COLUMNS> (&down)[SEVERAL]) {
    typedef typename Op::Element T;
    const int64_t apart = how.axis[0].stride;
    const uint32_t near = how.axis[0].length % GK_COMPACT_LENGTHS; // rows along the nearer of two axes
    const int64_t jump = how.axis[1].stride - near * apart;        // from behind the last of them to the next one's
    uint32_t along = 0;
    for (uint32_t i = 0; i < how.length; i += LOADS) {
        gk_vector<T, COLUMNS> x[SEVERAL][LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++) {
            const bool is_last = AXES > 1 && ++along == near;
            along = is_last ? 0 : along;
#pragma unroll
            for (int s = 0; s < SEVERAL; s++, row[s - 1] += is_last ? apart + jump : apart)
                if (i + j < how.length)
                    x[s][j] = *(const gk_vector<T, COLUMNS> *)row[s];
        }
#pragma unroll
        for (int s = 0; s < SEVERAL; s++)
#pragma unroll
            for (int j = 0; j < LOADS; j++)
                if (i + j < how.length)
                    down[s].take_row(op, x[s][j], i + j);
    }
}

// Columns of few rows, each whole by a thread, with no lanes to join: COLUMNS neighbours, which an access moves as a vector
// and which are found together, or SEVERAL a block's threads apart, whose loads are under way side by side. Rows lie along one
// axis, or two.
template <class Op, int COLUMNS, int SEVERAL, int AXES> __device__ static inline void gk_reduce_few(const gk_little &how) {
    typedef typename Op::Element T;
    // As many as registers hold beside the states.
    enum {
        IS_HEAVY = SEVERAL > 1 && sizeof(typename Op::State) > 4 && !gk_looks_first<Op>,
        LOADS = COLUMNS == 1 && !IS_HEAVY ? (int)GK_REDUCE_LINE_LOADS : COLUMNS > 1 && sizeof(T) < 4 ? 2 * GK_REDUCE_LOADS : (int)GK_REDUCE_LOADS
    };
    const uint32_t own = blockIdx.x * (GK_REDUCE_THREADS * SEVERAL) + threadIdx.x, number = own < how.results ? own : 0;
    Op op = {how.order};
    uint32_t found[SEVERAL];
    int64_t begin[SEVERAL];
    const char *row[SEVERAL];
    gk_ways<Op, COLUMNS> down[SEVERAL];
#pragma unroll
    for (int s = 0; s < SEVERAL; s++) { // beyond the last one: the first one again, for nobody
        const uint32_t next = number + s * GK_REDUCE_THREADS;
        found[s] = next < how.results ? next : number, begin[s] = 0;
        down[s].start();
    }
    gk_find_little<GK_LITTLE_AXES - 1, -1>(how, how.kept, found, begin);
#pragma unroll
    for (int s = 0; s < SEVERAL; s++)
        row[s] = (const char *)how.a + begin[s];
    gk_follow();
    if (own >= how.results)
        return;
    if (LOADS > GK_REDUCE_FEWEST_LOADS && how.length <= GK_REDUCE_FEWEST_LOADS)
        gk_take_few<GK_REDUCE_FEWEST_LOADS, AXES>(op, how, row, down);
    else
        gk_take_few<LOADS, AXES>(op, how, row, down);
#pragma unroll
    for (int s = 0; s < SEVERAL; s++) {
        const uint32_t mine = number + s * GK_REDUCE_THREADS;
        if (mine < how.results)
            gk_store_few<COLUMNS>(op, how, (size_t)mine * COLUMNS, [&](int e) { return gk_result_of_way(op, how, down[s].of(e)); }, [&](int e) { return gk_way<Op>::end(down[s].of(e), 0, 1); });
    }
}

// Those whose rows lie along two axes: a kernel of its own, since registers that it needs would be missed by the others.
template <class Op> __device__ static inline void gk_reduce_scattered(const gk_little &how) {
    if (how.wide)
        gk_reduce_few<Op, GK_REDUCE_FEW_COLUMNS(sizeof(typename Op::Element)), 1, GK_FEW_AXES>(how);
    else
        gk_reduce_few<Op, 1, 1, GK_FEW_AXES>(how);
}

// Little work, of the whole array or of each of many results: what counts is how few instructions stand between
// the launch and the result, so each element is loaded alone, and few of them by a thread. A group of lanes has a result: next to
// one another, or `across`, where those of a warp have neighbouring results. Which one only moves
// elements to other threads: lane k takes every `lanes`-th element from the k-th on.
template <class Op> __device__ static inline void gk_reduce_little(const gk_little &how) {
    enum { EACH = gk_vector<typename Op::Element>::WIDTH };
    __shared__ typename Op::State cell[GK_REDUCE_THREADS];
    Op op = {how.order};
    if (how.wide)
        return gk_reduce_few<Op, GK_REDUCE_FEW_COLUMNS(sizeof(typename Op::Element)), 1, 1>(how);
    if (how.several)
        return gk_reduce_few<Op, 1, GK_REDUCE_SEVERAL(sizeof(typename Op::Element)), 1>(how);
    if (how.lanes == 0 && how.reduced == 1)
        return gk_reduce_few<Op, 1, 1, 1>(how);
    unsigned thread = threadIdx.x, lanes = 1u << how.lanes, results = GK_REDUCE_THREADS >> how.lanes;
    unsigned side = how.across ? __popc(results - 1) : how.lanes, above = thread >> side, within = thread - (above << side);
    unsigned lane = how.across ? above : within, number = blockIdx.x * results + (how.across ? within : above);
    unsigned length = number < how.results ? how.length : 0;
    uint32_t result[1] = {number};
    int64_t begin[1] = {0};
    gk_find_little<GK_LITTLE_AXES - 1, -1>(how, how.kept, result, begin);
    const char *a = (const char *)how.a + begin[0];
    typename Op::State state = op.start();
    gk_follow();
    if (how.reduced == 1) {
        const int32_t stride = how.axis[0].stride;
        int64_t near = gk_add_product(0, (int32_t)lanes, stride), far = near;
        unsigned first = lane, count = lane < length ? ((length - lane - 1) >> how.lanes) + 1 : 0;
        if (how.runs) {
            near = stride;
            far = gk_add_product(0, (int32_t)(lanes * EACH - EACH + 1), stride);
            first = lane * EACH;
            count = gk_share_of_line<EACH>(length, lane, lanes);
        }
        gk_take_line(op, state, gk_add_product(0, (int32_t)first, stride) + a, near, far, count, lane, lanes);
    } else {
        gk_take_little(op, how, state, a, lane, lanes, length);
    }
    for (unsigned step = lanes / 2; step > 0; step /= 2) {
        unsigned apart = how.across ? step * results : step;
        if (apart < GK_WARP) {
            op.join(state, gk_from_lane_above(state, apart, GK_WARP));
        } else { // no cell that is read is written at the step after
            if (lane < 2 * step)
                cell[thread] = state;
            __syncthreads();
            if (lane < step)
                op.join(state, cell[thread + apart]);
        }
    }
    if (lane == 0 && length > 0)
        gk_store(op, how, number, state);
}

#endif
