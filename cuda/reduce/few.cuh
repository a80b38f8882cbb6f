// Columns of few rows, each of which a thread has whole: a column, or neighbours, which are loaded as vectors wherever their rows begin.
#ifndef GK_REDUCE_FEW_CUH
#define GK_REDUCE_FEW_CUH

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

// How the neighbouring columns of a thread lie in a row, the first of which is at `at`: as a vector.
template <class V> struct gk_as_vector {
    typedef V Loaded;
    __device__ Loaded load(const char *at) const { return *(const V *)at; }
    __device__ V made(const Loaded &loaded) const { return loaded; }
};
// Anywhere, and those in [first, end) are wanted, in bytes: in the two aligned vectors of which each holds some of them.
template <class V> struct gk_between_vectors {
    struct Loaded {
        V lower, upper;
        unsigned shift;
    };
    int first, end;
    __device__ Loaded load(const char *at) const {
        const unsigned shift = (uintptr_t)at % sizeof(V);
        const V *const low = (const V *)(at - shift);
        return {gk_load_global(low + (shift + first >= sizeof(V))), gk_load_global(low + (shift + end > sizeof(V))), shift};
    }
    __device__ V made(const Loaded &loaded) const {
        enum { WORDS = sizeof(V) / sizeof(uint32_t) };
        uint32_t word[2 * WORDS];
#pragma unroll
        for (int w = 0; w < WORDS; w++)
            word[w] = loaded.lower.bits[w], word[WORDS + w] = loaded.upper.bits[w];
#pragma unroll
        for (int words = WORDS / 2; words > 0; words /= 2)
#pragma unroll
            for (int w = 0; w < WORDS + words; w++)
                word[w] = loaded.shift & (words * sizeof(uint32_t)) ? word[w + words] : word[w];
        V vector;
#pragma unroll
        for (int w = 0; w < WORDS; w++)
            vector.bits[w] = __funnelshift_r(word[w], word[w + 1], loaded.shift % sizeof(uint32_t) * 8);
        return vector;
    }
};
// The last ones of a row, so many bytes, and the first ones of the next, `jump` further on than they would be.
template <class V> struct gk_in_two_rows {
    struct Loaded {
        typename gk_between_vectors<V>::Loaded front, back;
    };
    int bytes;
    int64_t jump;
    __device__ gk_between_vectors<V> front() const { return {0, bytes}; }
    __device__ gk_between_vectors<V> back() const { return {bytes, (int)sizeof(V)}; }
    __device__ Loaded load(const char *at) const { return {front().load(at), bytes < (int)sizeof(V) ? back().load(at + jump) : typename gk_between_vectors<V>::Loaded()}; }
    __device__ V made(const Loaded &loaded) const {
        const V first = front().made(loaded.front), second = back().made(loaded.back);
        V vector;
#pragma unroll
        for (int w = 0; w < sizeof(V) / sizeof(uint32_t); w++) {
            const uint32_t of_second = gk_bytes_from(w, bytes);
            vector.bits[w] = (first.bits[w] & ~of_second) | (second.bits[w] & of_second);
        }
        return vector;
    }
};
// The same where less than COLUMNS may be there, one by one.
template <typename T, int COLUMNS> struct gk_one_by_one {
    struct Loaded {
        T x[COLUMNS];
    };
    uint32_t of_first, there;
    int64_t jump;
    __device__ Loaded load(const char *at) const {
        Loaded loaded;
#pragma unroll
        for (int e = 0; e < COLUMNS; e++)
            loaded.x[e] = e < there ? gk_read<T>(at + (e < of_first ? 0 : jump) + e * sizeof(T)) : T();
        return loaded;
    }
    __device__ gk_vector<T, COLUMNS> made(const Loaded &loaded) const {
        gk_vector<T, COLUMNS> vector;
        vector.pack(loaded.x);
        return vector;
    }
};

// The rows of a thread's columns, SEVERAL times COLUMNS that lie side by side, from where `row` says on, LOADS at a time: what there is
// no row for costs instructions, too.
template <int LOADS, int AXES, class Op, class LIES, int COLUMNS, int SEVERAL>
__device__ static inline void gk_take_few(const Op &op, const gk_little &how, const LIES (&lies)[SEVERAL], const char *(&row)[SEVERAL], gk_ways<Op, COLUMNS> (&down)[SEVERAL]) {
    const int64_t apart = how.axis[0].stride;
    const uint32_t near = how.axis[0].length % GK_COMPACT_LENGTHS; // rows along the nearer of two axes
    const int64_t jump = how.axis[1].stride - near * apart;        // from behind the last of them to the next one's
    uint32_t along = 0;
    for (uint32_t i = 0; i < how.length; i += LOADS) {
        typename LIES::Loaded x[SEVERAL][LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++) {
            const bool is_last = AXES > 1 && ++along == near;
            along = is_last ? 0 : along;
#pragma unroll
            for (int s = 0; s < SEVERAL; s++, row[s - 1] += is_last ? apart + jump : apart)
                if (i + j < how.length)
                    x[s][j] = lies[s].load(row[s]);
        }
#pragma unroll
        for (int s = 0; s < SEVERAL; s++)
#pragma unroll
            for (int j = 0; j < LOADS; j++)
                if (i + j < how.length)
                    down[s].take_row(op, lies[s].made(x[s][j]), i + j);
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
        LOADS = SEVERAL == GK_REDUCE_MANY ? (int)GK_REDUCE_FEWEST_ROWS : COLUMNS == 1 && !IS_HEAVY ? (int)GK_REDUCE_LINE_LOADS : COLUMNS > 1 && sizeof(T) < 4 ? 2 * GK_REDUCE_LOADS : (int)GK_REDUCE_LOADS
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
    const gk_as_vector<gk_vector<T, COLUMNS>> lies[SEVERAL] = {};
    if (LOADS > GK_REDUCE_FEWEST_LOADS && how.length <= GK_REDUCE_FEWEST_LOADS)
        gk_take_few<GK_REDUCE_FEWEST_LOADS, AXES>(op, how, lies, row, down);
    else
        gk_take_few<LOADS, AXES>(op, how, lies, row, down);
#pragma unroll
    for (int s = 0; s < SEVERAL; s++) {
        const uint32_t mine = number + s * GK_REDUCE_THREADS;
        if (mine < how.results)
            gk_store_few<COLUMNS>(op, how, (size_t)mine * COLUMNS, [&](int e) { return gk_result_of_way(op, how, down[s].of(e)); }, [&](int e) { return gk_way<Op>::end(down[s].of(e), 0, 1); });
    }
}

// Of neighbouring columns, from several numbers on: how many are left of the row, and where they begin, in bytes from the first of all.
template <int SIZE, int SEVERAL>
__device__ static inline void gk_find_few(const gk_little &how, const uint32_t (&number)[SEVERAL], uint32_t (&left)[SEVERAL], int64_t (&begin)[SEVERAL]) {
    enum { LAST = GK_LITTLE_AXES - 1 };
    const uint32_t packed = how.axis[LAST].length;
    uint32_t further[SEVERAL];
#pragma unroll
    for (int s = 0; s < SEVERAL; s++) {
        further[s] = number[s];
        const uint32_t along = how.kept > 1 ? gk_take_axis(further[s], packed, how.axis[LAST].multiplier) : number[s];
        left[s] = (how.kept > 1 ? packed % GK_COMPACT_LENGTHS : how.results) - along;
        begin[s] = (int64_t)along * SIZE;
    }
    if (how.kept > 1)
        gk_find_little<LAST - 1, -1>(how, how.kept - 1, further, begin);
}

// Neighbouring columns whose rows begin anywhere, and have COLUMNS or more: so many of a thread, whose results are a vector, SEVERAL times,
// a block's threads apart, which keeps the memory busy where rows are few. A warp takes all in one way; near the end of the array,
// behind which vectors might lie, elements one by one.
template <class Op, int COLUMNS, int SEVERAL> __device__ static inline void gk_reduce_few_between(const gk_little &how) {
    typedef typename Op::Element T;
    typedef gk_vector<T, COLUMNS> vector;
    enum { LOADS = GK_REDUCE_FEWEST_LOADS / SEVERAL, SIZE = sizeof(T), BYTES = sizeof(vector) };
    const int64_t sure = gk_sure_of_few(&how);
    Op op = {how.order};
    uint32_t number[SEVERAL], left[SEVERAL], there[SEVERAL];
    int64_t begin[SEVERAL], jump[SEVERAL];
    const char *row[SEVERAL];
    gk_ways<Op, COLUMNS> down[SEVERAL];
#pragma unroll
    for (int s = 0; s < SEVERAL; s++)
        number[s] = ((blockIdx.x * SEVERAL + s) * GK_REDUCE_THREADS + threadIdx.x) * COLUMNS;
    gk_find_few<SIZE>(how, number, left, begin);
    bool crosses = false, is_near_end = false;
#pragma unroll
    for (int s = 0; s < SEVERAL; s++) {
        there[s] = number[s] < how.results ? how.results - number[s] : 0;
        jump[s] = 0;
        if (left[s] < COLUMNS && left[s] < there[s]) {
            uint32_t i[1] = {number[s] + left[s]};
            int64_t next[1] = {-begin[s] - (int64_t)left[s] * SIZE};
            gk_find_little<GK_LITTLE_AXES - 1, -1>(how, how.kept, i, next);
            jump[s] = next[0];
            crosses = true;
        }
        is_near_end = is_near_end || begin[s] > sure || begin[s] + jump[s] > sure || there[s] < COLUMNS;
        row[s] = (const char *)how.a + begin[s];
        down[s].start();
    }
    const bool any_crosses = __any_sync(GK_ALL_LANES, crosses);
    gk_follow();
    if (is_near_end) {
        gk_one_by_one<T, COLUMNS> lies[SEVERAL];
#pragma unroll
        for (int s = 0; s < SEVERAL; s++)
            lies[s] = {left[s], there[s], jump[s]};
        gk_take_few<1, GK_FEW_AXES>(op, how, lies, row, down);
    } else if (any_crosses) {
        gk_in_two_rows<vector> lies[SEVERAL];
#pragma unroll
        for (int s = 0; s < SEVERAL; s++)
            lies[s] = {left[s] < COLUMNS ? (int)left[s] * SIZE : (int)BYTES, jump[s]};
        gk_take_few<LOADS / 2, GK_FEW_AXES>(op, how, lies, row, down);
    } else {
        gk_between_vectors<vector> lies[SEVERAL];
#pragma unroll
        for (int s = 0; s < SEVERAL; s++)
            lies[s] = {0, BYTES};
        gk_take_few<LOADS, GK_FEW_AXES>(op, how, lies, row, down);
    }
#pragma unroll 1
    for (int s = 0; s < SEVERAL; s++) { // by code that stands there once
        if (COLUMNS <= there[0])
            gk_store_few<COLUMNS>(op, how, number[0], [&](int e) { return gk_result_of_way(op, how, down[0].of(e)); }, [&](int e) { return gk_way<Op>::end(down[0].of(e), 0, 1); });
        else
#pragma unroll
            for (int e = 0; e < COLUMNS; e++)
                if (e < there[0])
                    gk_store(op, how, number[0] + e, gk_way<Op>::end(down[0].of(e), 0, 1));
        down[0] = down[SEVERAL - 1], there[0] = there[SEVERAL - 1], number[0] = number[SEVERAL - 1];
    }
}

// Those whose rows lie along two axes, or begin anywhere: a kernel of its own, since registers that it needs would be missed by the
// others.
template <class Op> __device__ static inline void gk_reduce_scattered(const gk_little &how) {
    enum { BETWEEN = GK_REDUCE_BETWEEN_COLUMNS(sizeof(typename Op::Element), sizeof(typename Op::Result)) };
    if constexpr (BETWEEN > 1)
        if (how.between) {
            if constexpr (BETWEEN == GK_REDUCE_BETWEEN_OF_WIDER) // of more there are no registers for two
                if (how.several)
                    return gk_reduce_few_between<Op, BETWEEN, GK_REDUCE_SEVERAL(sizeof(typename Op::Element))>(how);
            return gk_reduce_few_between<Op, BETWEEN, 1>(how);
        }
    if (how.wide)
        gk_reduce_few<Op, GK_REDUCE_FEW_COLUMNS(sizeof(typename Op::Element)), 1, GK_FEW_AXES>(how);
    else
        gk_reduce_few<Op, 1, 1, GK_FEW_AXES>(how);
}

#endif
