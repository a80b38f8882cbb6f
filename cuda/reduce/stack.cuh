// What blocks of columns end with, wide ones and narrow ones: rows of states in shared memory become one, and those of the blocks
// that have segments of the same columns are joined by a tree, as they come in. All threads of a block take part, whatever columns
// they had.
#ifndef GK_REDUCE_STACK_CUH
#define GK_REDUCE_STACK_CUH

// So many rows of states, one behind the other, become the first of them: at each step those of the upper half are
// joined to those of the lower, by so many threads, of which this one has number `thread`.
template <class Op> __device__ static inline void gk_join_stack(const Op &op, typename Op::State *states, unsigned rows, unsigned columns, unsigned thread, unsigned threads) {
    unsigned half = 1;
    while (half < rows)
        half *= 2;
    for (half /= 2; half > 0; half /= 2) {
        __syncthreads();
        for (unsigned i = thread; i < (rows - half) * columns; i += threads)
            op.join(states[i], states[i + half * columns]);
        rows = half;
    }
    __syncthreads();
}

// The same of rows of threads, of which each has a state in each of some planes: of groups of 2^group threads, with `lanes`
// threads in a row. A plane has a place more than there are threads, so that what a few threads join is in other banks.
enum { GK_PLANE = GK_REDUCE_COLUMN_THREADS + 1 };
template <int PLANES, class Op> __device__ static inline void gk_join_planes(const Op &op, typename Op::State *states, unsigned group, unsigned lanes) {
    for (unsigned lower = (1u << group) / 2; lower >= lanes; lower /= 2) { // threads of a group whose rows are joined to; powers of two
        const unsigned all = lower * (GK_REDUCE_COLUMN_THREADS >> group), side = __popc(lower - 1);
        __syncthreads();
#pragma unroll 4
        for (unsigned i = threadIdx.x; i < PLANES * all; i += GK_REDUCE_COLUMN_THREADS) {
            const unsigned plane = i >> __popc(all - 1), rest = i & (all - 1);
            typename Op::State *const state = states + plane * GK_PLANE + ((rest >> side) << group) + (rest & (lower - 1));
            op.join(*state, state[lower]);
        }
    }
    __syncthreads();
}

// Shared memory for the states of as many vectors as there are threads, in planes; one and the same of all that join some in a
// kernel, of which more blocks have room so.
template <class Op> __device__ static inline typename Op::State *gk_join_memory() {
    enum { COUNT = GK_PLANE * gk_vector<typename Op::Element>::WIDTH };
    static_assert(COUNT * sizeof(typename Op::State) <= GK_REDUCE_JOIN_BYTES, "no more is set aside");
    __shared__ typename Op::State memory[COUNT];
    return memory;
}

// The partial results of segments, joined as they come in: up to 2^branches neighbours by the last of them to arrive, and
// what comes of these likewise, so that nobody has to read many. Of `count` of them a block has number `number`; they are
// `apart` states apart.
struct gk_joints {
    size_t number, count, apart;
    unsigned *arrivals, side;

    __device__ gk_joints(const gk_reduction &how, size_t segment, size_t block) : number(segment), count(how.segments), apart(how.inner), arrivals(how.arrivals + block * gk_reduce_joints(how.segments, how.branches)), side(how.branches) {}
    __device__ size_t first() const { return number >> side << side; }
    __device__ unsigned branches() const { return count - first() < 1u << side ? (unsigned)(count - first()) : 1u << side; }
    __device__ bool is_last() const { return gk_is_last(arrivals + (number >> side), branches()); }
    // What the branches have become is one of fewer.
    __device__ void ascend() {
        count = ((count - 1) >> side) + 1;
        arrivals += count;
        number >>= side;
        apart <<= side;
    }
};

// Every `step`-th of `count` partial results, `apart` states apart: as many as registers hold are loaded before the first of
// them is joined.
template <class Op> __device__ static inline typename Op::State gk_join_branches(const Op &op, const typename Op::State *partials, unsigned first, unsigned count, unsigned step, size_t apart) {
    typedef typename Op::State State;
    enum { LOADS = GK_REDUCE_BRANCH_BYTES / sizeof(State) };
    State state = op.start();
#pragma unroll 1
    for (unsigned i = first; i < count; i += LOADS * step) {
        if (count - i <= step) { // a single one
            op.join(state, partials[i * apart]);
            break;
        }
        State loaded[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            if (i + j * step < count)
                loaded[j] = partials[(i + j * step) * apart];
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            if (i + j * step < count)
                op.join(state, loaded[j]);
    }
    return state;
}

// Whether this block has all that there is of its columns, which are `columns`, so many of them `there`: then they are the
// first states. Until then its own state of a column is where place(column) says. Partial results of these begin at `partials`.
template <class Op, class PLACE>
__device__ static inline bool gk_join_segments(const Op &op, gk_joints joints, typename Op::State *partials, typename Op::State *states, unsigned columns, unsigned there, const PLACE &place) {
    enum { THREADS = GK_REDUCE_COLUMN_THREADS };
    const unsigned rows = columns < THREADS ? THREADS / columns : 1;
    for (bool is_own = true; joints.count > 1; joints.ascend(), is_own = false) {
        for (unsigned column = threadIdx.x; column < there; column += THREADS)
            partials[joints.number * joints.apart + column] = states[is_own ? place(column) : column];
        if (!joints.is_last())
            return false;
        const unsigned branches = joints.branches();
        for (unsigned i = threadIdx.x; i < rows * columns; i += THREADS) {
            const unsigned y = i / columns, column = i - y * columns;
            states[i] = gk_join_branches(op, partials + joints.first() * joints.apart + column, y, column < there ? branches : 0, rows, joints.apart);
        }
        gk_join_stack(op, states, rows < branches ? rows : branches, columns, threadIdx.x, THREADS);
    }
    return true;
}

// The same tree over segments of which a block has all: those of each of its columns, which lie side by side, become the first one. A
// column's branches are shared out among as many threads as if so many vectors of columns lay side by side as there are lanes.
template <int WIDTH, class Op> __device__ static inline void gk_join_own_segments(const Op &op, const gk_reduction &how, typename Op::State *states, unsigned columns) {
    enum { THREADS = GK_REDUCE_COLUMN_THREADS };
    const unsigned wide = how.lanes * WIDTH, rows = wide < THREADS ? THREADS / wide : 1, side = __popc(rows - 1), y = threadIdx.x & (rows - 1); // powers of two
    for (unsigned count = (unsigned)how.segments, joints; count > 1; count = joints) {
        joints = ((count - 1) >> how.branches) + 1;
        for (unsigned begin = 0; begin < joints * columns; begin += THREADS >> side) {
            const unsigned i = begin + (threadIdx.x >> side), joint = i / columns, column = i - joint * columns, first = joint << how.branches;
            const unsigned left = first < count ? count - first : 0, branches = left >> how.branches > 0 ? 1u << how.branches : left;
            typename Op::State state = gk_join_branches(op, states + first * columns + column, y, branches, rows, columns);
            for (unsigned half = rows / 2, all = branches < rows ? branches : rows; half > 0; half /= 2) {
                const typename Op::State other = gk_from_lane_above(state, half, rows);
                if (y + half < all)
                    op.join(state, other);
                all = all < half ? all : half;
            }
            __syncthreads(); // where this joint is put is a branch of it, or of one before it
            if (y == 0 && joint < joints)
                states[joint * columns + column] = state;
        }
        __syncthreads();
    }
}

#endif
