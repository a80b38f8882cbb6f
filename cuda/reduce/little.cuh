// Reductions of little arrays an element at a time.
#ifndef GK_REDUCE_LITTLE_CUH
#define GK_REDUCE_LITTLE_CUH

#include "reduce/few.cuh"

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
    if constexpr (sizeof(typename Op::Element) == 4 && sizeof(typename Op::State) <= 8) // of more there are no registers
        if (how.several && how.length <= GK_REDUCE_FEWEST_ROWS)
            return gk_reduce_few<Op, 1, GK_REDUCE_MANY, 1>(how);
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
