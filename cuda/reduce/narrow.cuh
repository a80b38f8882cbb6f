// Columns so narrow that a row of them is no even number of vectors. A block takes its rows as one run, by vectors side
// by side, of as many threads as make whole rows: so a thread's vectors hold the same columns each time, every load is
// a whole one, and nothing is done for columns that are not there. Rows that lie apart are taken an element at a time,
// in the same order.
#ifndef GK_REDUCE_NARROW_CUH
#define GK_REDUCE_NARROW_CUH

// Where a block stands: rows [begin, end) of a matrix, `height` of them at a time, whose elements are its slots; or of each of some
// matrices, the first of which is number `outer`, all rows: `stacked` many, or fewer at the end.
struct gk_narrow {
    enum { THREADS = GK_REDUCE_COLUMN_THREADS };
    size_t outer, segment, begin, end;
    unsigned columns, height, stacked;

    __device__ unsigned slots() const { return columns * height; }
};
template <int WIDTH> __device__ static inline gk_narrow gk_find_narrow(const gk_reduction &how) {
    const uint32_t segments = (uint32_t)how.segments; // one, where matrices are stacked
    gk_narrow at;
    at.outer = (size_t)(blockIdx.x / segments) * how.group;
    at.segment = blockIdx.x % segments;
    at.begin = at.segment * how.segment;
    at.end = at.begin + how.segment < how.length ? at.begin + how.segment : how.length;
    at.columns = (unsigned)how.inner;
    at.height = how.lanes * WIDTH / at.columns;
    at.stacked = how.outer - at.outer < how.group ? (unsigned)(how.outer - at.outer) : how.group;
    return at;
}

// A thread's place: it is number `thread` of those that have matrix number `group` of a block's. Of threads that are left over
// there is none. STACKED: there may be several.
template <bool STACKED> struct gk_narrow_thread {
    unsigned group, thread, threads;
    bool is_there;

    __device__ gk_narrow_thread(const gk_reduction &how, const gk_narrow &at)
        : group(STACKED ? threadIdx.x / how.lanes : 0), thread(threadIdx.x - group * how.lanes), threads(STACKED ? how.lanes : (unsigned)gk_narrow::THREADS), is_there(STACKED ? group < at.stacked : thread < how.lanes) {}
};

// What the slots of each matrix hold becomes results.
template <bool STACKED, class Op> __device__ static inline void gk_end_narrow(const Op &op, const gk_reduction &how, const gk_narrow &at, typename Op::State *joined) {
    const gk_narrow_thread<STACKED> my(how, at);
    const bool is_busy = !STACKED || my.is_there;
    typename Op::State *const states = joined + (is_busy ? my.group * at.slots() : 0), *const partials = (typename Op::State *)how.partials + at.outer * how.segments * at.columns;
    gk_join_stack(op, states, at.height, is_busy ? at.columns : 0, my.thread, my.threads);
    if (!STACKED && !gk_join_segments(op, gk_joints(how, at.segment, at.outer), partials, joined, at.columns, at.columns, [](unsigned column) { return column; }))
        return;
    for (unsigned column = my.thread; is_busy && column < at.columns; column += my.threads)
        gk_store(op, how, (at.outer + my.group) * at.columns + column, states[column]);
}

// The next `count` vectors of a thread, LOADS at most, `step` elements apart: all are loaded before the first is taken.
// ALL: they are LOADS.
template <gk_lies LIES, bool ALL, int LOADS, class Op, class A, class WAYS>
__device__ static inline void gk_take_slots(const Op &op, const A &a, size_t step, unsigned number, unsigned count, WAYS &ways) {
    gk_vector<typename A::Element> x[LOADS];
    A at[LOADS];
#pragma unroll
    for (int j = 0; j < LOADS; j++)
        at[j] = a + j * step;
    A::template load<LIES>(x, at, WAYS::COUNT, ALL ? LOADS : (int)count);
    ways.template take_rows<ALL>(op, x, number, count);
}

// A thread's whole vectors of n elements, from element i on, several loads at a time; how many they are.
template <gk_lies LIES, class Op, class A, class WAYS>
__device__ static inline unsigned gk_take_whole_slots(const Op &op, const A &a, size_t i, size_t n, size_t step, WAYS &ways) {
    enum { WIDTH = WAYS::COUNT, LOADS = LIES == GK_ALIGNED ? (int)GK_REDUCE_COLUMN_LOADS : (int)GK_REDUCE_RAGGED_LOADS };
    const unsigned count = i + WIDTH <= n ? (unsigned)((n - i - WIDTH) / step) + 1 : 0;
    unsigned number = 0;
    for (; number + LOADS <= count; number += LOADS)
        gk_take_slots<LIES, true, LOADS>(op, a + (i + number * step), step, number, LOADS, ways);
    if (number < count)
        gk_take_slots<LIES, false, LOADS>(op, a + (i + number * step), step, number, count - number, ways);
    return count;
}

// A thread's slots, WIDTH of them side by side: of a run of n elements those from element `first` on, and every `step`-th.
template <class Op, class A, class WAYS>
__device__ static inline void gk_take_slots_of_run(const Op &op, const A &run, size_t first, size_t n, size_t step, WAYS &ways) {
    enum { WIDTH = WAYS::COUNT };
    const size_t sure = gk_between_of(run, n);
    unsigned number = run.is_aligned() ? gk_take_whole_slots<GK_ALIGNED>(op, run, first, n, step, ways) : gk_take_whole_slots<GK_BETWEEN>(op, run, first, sure, step, ways);
#pragma unroll 1
    for (size_t i = first + number * step; i < n; i += step, number++) {
        const int wanted = n - i < WIDTH ? (int)(n - i) : WIDTH;
        const A last[1] = {run + i};
        gk_vector<typename A::Element> x[1];
        A::template load<GK_ANYWHERE>(x, last, wanted);
#pragma unroll
        for (int e = 0; e < WIDTH; e++)
            if (e < wanted)
                ways.take(op, e, x[0][e], number);
    }
}

// Rows side by side in memory.
template <bool STACKED, class Op, class A> __device__ static inline void gk_reduce_narrow_runs(const gk_reduction &how, const A &a) {
    enum { WIDTH = A::WIDTH };
    typedef typename Op::State State;
    Op op = {how.order};
    const gk_narrow at = gk_find_narrow<WIDTH>(how);
    State *joined = gk_join_memory<Op>();
    const gk_narrow_thread<STACKED> my(how, at);
    const A run = a.matrix(how, at.outer + my.group) + at.begin * at.columns;
    // The last row of all may lack its last columns, for whose results nobody asks.
    const size_t all = (at.end - at.begin) * at.columns, there = (size_t)(run.end - run.first), n = there < all ? there : all;
    const size_t first = my.thread * WIDTH, step = how.lanes * WIDTH;
    gk_ways<Op, WIDTH> ways;
    ways.start();
    gk_follow();
    if (my.is_there) {
        gk_take_slots_of_run(op, run, first, n, step, ways);
#pragma unroll
        for (int e = 0; e < WIDTH; e++)
            joined[my.group * step + first + e] = gk_way<Op>::end(ways.of(e), at.begin + ((unsigned)first + e) / at.columns, at.height);
    }
    gk_end_narrow<STACKED>(op, how, at, joined);
}
// Of bytes and of words matrices are not stacked: the states of a vector of bytes are too many, and those of words no win.
template <class Op, class A> __device__ static inline void gk_reduce_narrow(const gk_reduction &how, const A &a) {
    if constexpr (GK_REDUCE_STACKS_NARROW(sizeof(typename Op::Element)))
        if (how.group > 1)
            return gk_reduce_narrow_runs<true, Op>(how, a);
    gk_reduce_narrow_runs<false, Op>(how, a);
}

// Where rows lie that are apart: evenly, so that the next one is a step away, or, along two axes, evenly in groups that do.
template <bool EVEN> struct gk_rows_apart {
    static constexpr bool IS_EVEN = EVEN;
    int64_t near, far;
    gk_divisor group;

    __device__ int64_t operator()(size_t row) const {
        if (EVEN)
            return (int64_t)row * near;
        const uint32_t over = gk_divide((uint32_t)row, group);
        return over * far + ((uint32_t)row - over * group.value) * near;
    }
};

// Some slots of a thread: the rows of each, from row `first` on every `height`-th.
template <class Op, int SLOTS> struct gk_slots {
    typedef typename Op::Element T;
    const T *top[SLOTS], *next[SLOTS]; // where all rows begin, and where the next one is, if it is a step away
    size_t first[SLOTS];
    unsigned count[SLOTS];
    typename gk_way<Op>::State state[SLOTS];

    // The next LOADS rows of each, ALL of which are there, or some: all are loaded before the first is taken.
    template <bool ALL, int LOADS, class ROWS> __device__ void take(const Op &op, const ROWS &rows, unsigned height, int64_t step, unsigned number) {
        T x[SLOTS][LOADS];
#pragma unroll
        for (int s = 0; s < SLOTS; s++)
#pragma unroll
            for (int j = 0; j < LOADS; j++, next[s] += step)
                if (ALL || number + j < count[s])
                    x[s][j] = gk_read<T>(ROWS::IS_EVEN ? next[s] : top[s] + rows(first[s] + (size_t)(number + j) * height));
#pragma unroll
        for (int s = 0; s < SLOTS; s++)
#pragma unroll
            for (int j = 0; j < LOADS; j++)
                if (ALL || number + j < count[s])
                    gk_way<Op>::take(op, state[s], x[s][j], number + j);
    }
};

// A thread takes the slots of neighbours in memory, some of them side by side, so that many loads are under way also
// where a slot has few rows.
template <class Op, class ROWS>
__device__ static inline void gk_take_apart(const Op &op, const gk_reduction &how, const gk_axes &layout, const gk_narrow &at, const ROWS &rows, const typename Op::Element *a,
                                            typename Op::State *joined) {
    typedef typename Op::Element T;
    enum { SLOTS = gk_vector<T>::WIDTH < GK_REDUCE_APART_SLOTS ? (int)gk_vector<T>::WIDTH : (int)GK_REDUCE_APART_SLOTS, LOADS = GK_REDUCE_APART_BYTES / sizeof(T) / SLOTS };
    const bool down = (how.tiles & GK_REDUCE_DOWN) != 0;
    const unsigned side = down ? at.height : at.columns, slots = at.slots();
    const unsigned all = at.stacked * slots;
    const int64_t step = ROWS::IS_EVEN ? rows(at.height) : 0;
#pragma unroll 1
    for (unsigned slot = threadIdx.x; slot < all; slot += gk_narrow::THREADS * SLOTS) {
        gk_slots<Op, SLOTS> my;
        unsigned place[SLOTS], most = 0, least = UINT32_MAX, number = 0;
#pragma unroll
        for (int s = 0; s < SLOTS; s++) {
            // In place of a slot that is not there the first one again, for nobody: no thread of a warp goes another way.
            const unsigned wanted = slot + s * gk_narrow::THREADS, mine = wanted < all ? wanted : slot, matrix = at.stacked > 1 ? mine / slots : 0;
            const unsigned within = mine - matrix * slots, over = within / side, rest = within - over * side, column = down ? over : rest, y = down ? rest : over;
            place[s] = matrix * slots + y * at.columns + column;
            my.first[s] = at.begin + y;
            my.top[s] = a + gk_place_along(layout, 0, how.outer_axes, at.outer + matrix) + gk_place_along(layout, how.outer_axes, how.kept_axes, column);
            my.next[s] = my.top[s] + rows(my.first[s]);
            my.count[s] = my.first[s] < at.end ? (unsigned)((at.end - my.first[s] - 1) / at.height) + 1 : 0;
            my.state[s] = gk_way<Op>::start();
            most = my.count[s] > most ? my.count[s] : most;
            least = my.count[s] < least ? my.count[s] : least;
        }
#pragma unroll 1
        for (; number + LOADS <= least; number += LOADS)
            my.template take<true, LOADS>(op, rows, at.height, step, number);
#pragma unroll 1
        for (; number < most; number += LOADS)
            my.template take<false, LOADS>(op, rows, at.height, step, number);
#pragma unroll
        for (int s = 0; s < SLOTS; s++)
            if (slot + s * gk_narrow::THREADS < all)
                joined[place[s]] = gk_way<Op>::end(my.state[s], my.first[s], at.height);
    }
}

template <class Op> __device__ static inline void gk_reduce_narrow_apart(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    enum { WIDTH = gk_vector<typename Op::Element>::WIDTH };
    Op op = {how.order};
    const gk_narrow at = gk_find_narrow<WIDTH>(how);
    typename Op::State *joined = gk_join_memory<Op>();
    const int last = layout.ndim - 1;
    gk_follow();
    if (last == how.kept_axes)
        gk_take_apart(op, how, layout, at, gk_rows_apart<true>{layout.axis[last].stride}, a, joined);
    else
        gk_take_apart(op, how, layout, at, gk_rows_apart<false>{layout.axis[last].stride, layout.axis[last - 1].stride, layout.axis[last].length}, a, joined);
    if constexpr (GK_REDUCE_STACKS_NARROW(sizeof(typename Op::Element)))
        if (how.group > 1)
            return gk_end_narrow<true>(op, how, at, joined);
    gk_end_narrow<false>(op, how, at, joined);
}

// Columns each of which is a run, and of which as many rows as are a block's at a time are whole vectors: each thread has the slots of a
// vector down its column, so that loads are whole ones here, too.
template <class Op> __device__ static inline void gk_reduce_narrow_along(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    typedef gk_run<typename Op::Element> A;
    enum { WIDTH = A::WIDTH };
    Op op = {how.order};
    const gk_narrow at = gk_find_narrow<WIDTH>(how);
    typename Op::State *const joined = gk_join_memory<Op>();
    const gk_narrow_thread<false> my(how, at);
    const unsigned side = at.height / WIDTH, column = my.thread / side, y = (my.thread - column * side) * WIDTH;
    gk_ways<Op, WIDTH> ways;
    ways.start();
    gk_follow();
    if (my.is_there) {
        const int64_t place = gk_place_along(layout, 0, how.outer_axes, at.outer) + gk_place_along(layout, how.outer_axes, how.kept_axes, column) + (int64_t)at.begin;
        const A run = {a + place, (const typename Op::Element *)((const char *)a + how.reach)};
        gk_take_slots_of_run(op, run, y, at.end - at.begin, at.height, ways);
#pragma unroll
        for (int e = 0; e < WIDTH; e++)
            joined[(y + e) * at.columns + column] = gk_way<Op>::end(ways.of(e), at.begin + y + e, at.height);
    }
    gk_end_narrow<false>(op, how, at, joined);
}

#endif
