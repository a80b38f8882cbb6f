// Down columns: a block takes some of them side by side, a thread a vector of these, and what threads have of the same
// columns is joined.
#ifndef GK_REDUCE_COLUMNS_CUH
#define GK_REDUCE_COLUMNS_CUH

#include "reduce/stack.cuh"

// Where a thread of a group of columns stands: `lanes` vectors side by side, the other threads below. The
// group is a block, or part of a warp, where a matrix is so little that a block takes several; one of
// those that are no more has a column that is none. A thread's columns are a vector, or pieces of one, of which those
// of neighbours lie side by side: a piece is 2^log columns, and there are 2^side lanes. A thread's first column is number
// `offset` of the block's, which begin at `leftmost`.
struct gk_columns {
    size_t outer, segment, block, leftmost, column;
    unsigned height, y, side, log, offset;

    // Columns of a piece of a vector, which has 4 bytes, or an element that is more.
    template <int WIDTH> static constexpr int piece = WIDTH > 4 ? WIDTH / 4 : 1;
    // From the thread's first column to its number e, which may be none.
    __device__ unsigned across(unsigned e) const { return (e >> log << (side + log)) + (e & ((1u << log) - 1)); }
    // How many columns there are from its first one on, so far as a thread's reach.
    __device__ unsigned left(const gk_reduction &how) const {
        const size_t all = column < how.inner ? how.inner - column : 0;
        return all < UINT32_MAX ? (unsigned)all : UINT32_MAX;
    }
    __device__ void begin_at(const gk_reduction &how, unsigned columns) {
        offset = columns;
        column = outer < how.outer ? leftmost + columns : how.inner;
    }
    template <int EACH> __device__ void take_pieces(const gk_reduction &how) {
        log = __popc(EACH - 1);
        begin_at(how, (threadIdx.x & (how.lanes - 1)) * EACH);
    }
    // Those of [row, end) that a thread has, which has every `height`-th one, a power of two.
    __device__ unsigned rows_before(size_t row, size_t end) const { return row < end ? (unsigned)((end - row - 1) >> __popc(height - 1)) + 1 : 0; }
};
// Columns that a block has results of: as many fewer than its threads have as a word holds, where these begin at words.
template <int WIDTH> __device__ static inline unsigned gk_columns_of_block(const gk_reduction &how, bool shifted) { return GK_REDUCE_BLOCK_COLUMNS(how.lanes, WIDTH, shifted); }
template <int WIDTH, bool MAY_SHIFT = false> __device__ static inline gk_columns gk_find_columns(const gk_reduction &how) {
    gk_columns at;
    const bool shifted = MAY_SHIFT && how.shifted;
    const unsigned wide = gk_columns_of_block<WIDTH>(how, shifted), side = __popc(how.lanes - 1); // a power of two, and one where none is shifted
    const uint32_t segments = (uint32_t)how.segments, across = (uint32_t)(shifted ? (how.inner + wide - 1) / wide : (how.inner + wide - 1) >> __popc(wide - 1)); // no more than blocks
    const unsigned thread = threadIdx.x & ((1u << how.group) - 1), stacked = GK_REDUCE_COLUMN_THREADS >> how.group;
    // A division takes longer than to see that there is nothing to divide.
    const uint32_t block = segments > 1 ? blockIdx.x / segments : blockIdx.x, over = across > 1 ? block / across : block;
    at.segment = blockIdx.x - block * segments;
    at.block = block;
    at.outer = (size_t)over * stacked + (threadIdx.x >> how.group);
    at.y = thread >> side;
    at.height = (1u << how.group) >> side;
    at.leftmost = (size_t)(block - over * across) * wide;
    at.begin_at(how, (thread & (how.lanes - 1)) * WIDTH);
    at.side = side;
    at.log = __popc(WIDTH - 1);
    return at;
}

// The next `count` of a thread's rows, LOADS at most: all are loaded before the first is taken. ALL: they are
// LOADS; otherwise the last one is there again in place of what is missing, and not taken. `column` is where the
// first one is, the thread's row `number`, and then where the next one would be. The last vector of a row may be
// one of more columns than there are, whose results nobody stores.
template <gk_lies LIES, int LOADS, bool ALL, class Op, class A, class WAYS>
__device__ static inline void gk_take_rows(const Op &op, const gk_reduction &how, const gk_columns &at, A &column, unsigned &number, unsigned count, WAYS &ways) {
    gk_vector<typename A::Element> x[LOADS];
    A line[LOADS];
    line[0] = column;
#pragma unroll
    for (int j = 1; j < LOADS; j++) {
        line[j] = line[j - 1];
        if (ALL || j < count)
            line[j] = line[j].below(how, at.height);
    }
    A::template load<LIES>(x, line, how.inner - at.column < WAYS::COUNT ? (int)(how.inner - at.column) : WAYS::COUNT, ALL ? LOADS : (int)count);
    ways.template take_rows<ALL>(op, x, number, count);
    column = line[LOADS - 1].below(how, at.height);
    number += count;
}

// The next `count` of a thread's rows, LOADS at a time.
template <gk_lies LIES, int LOADS, class Op, class A, class WAYS>
__device__ static inline void gk_take_down(const Op &op, const gk_reduction &how, const gk_columns &at, A &column, unsigned &number, unsigned count, WAYS &ways) {
    for (; count >= LOADS; count -= LOADS)
        gk_take_rows<LIES, LOADS, true>(op, how, at, column, number, LOADS, ways);
    if (LOADS > 1 && count > 0)
        gk_take_rows<LIES, LOADS, false>(op, how, at, column, number, count, ways);
}

// The next `count` of a thread's rows, LOADS at most, in pieces of a vector, which are so many bytes `beside` the first: of columns
// that begin anywhere they are half as much to load as the two vectors between which they lie. THERE: so many of them are.
template <int LOADS, bool ALL, int THERE, class T, class Op, class WAYS, int PIECES>
__device__ static inline void gk_take_pieces(const Op &op, const char *&from, int64_t below, const unsigned (&beside)[PIECES], unsigned &number, unsigned count, WAYS &ways) {
    typedef gk_vector<T, WAYS::COUNT / PIECES> piece;
    // Where little is done for an element to load the last row again is sooner done than to see that it is not there.
    enum { WORDS = sizeof(piece) / sizeof(uint32_t), IS_LIGHT = Op::ANY_ORDER && sizeof(T) > 1 };
    gk_vector<T> x[LOADS];
#pragma unroll
    for (int j = 0; j < LOADS; from += ALL || !IS_LIGHT || j + 1 < count ? below : 0, j++)
        if (ALL || IS_LIGHT || j < count) {
            if constexpr (PIECES == 1)
                x[j] = gk_load_global((const piece *)from);
            else
#pragma unroll
                for (int p = 0; p < THERE; p++) {
                    const piece one = *(const piece *)(from + beside[p]);
#pragma unroll
                    for (int w = 0; w < WORDS; w++)
                        x[j].bits[p * WORDS + w] = one.bits[w];
                }
        }
    if constexpr (THERE == PIECES)
        ways.template take_rows<ALL>(op, x, number, count);
    else
#pragma unroll
        for (int j = 0; j < LOADS; j++)
#pragma unroll
            for (int e = 0; e < THERE * piece::WIDTH; e++)
                if (ALL || j < count)
                    ways.take(op, e, x[j][e], number + j);
    number += count;
}

// All of them, from a thread's first one on, a whole vector of each or in so many PIECES, the first of which begins so many columns
// `ahead` of the thread's own.
template <int PIECES, int THERE, class T, class Op, class WAYS>
__device__ static inline void gk_take_down_pieces(const Op &op, const gk_reduction &how, const gk_columns &at, const char *from, unsigned count, WAYS &ways, unsigned ahead = 0) {
    enum { LOADS = GK_REDUCE_COLUMN_LOADS, EACH = WAYS::COUNT / PIECES };
    const int64_t below = (int64_t)at.height * how.apart;
    const unsigned left = at.left(how) + ahead;
    unsigned beside[PIECES] = {}, number = 0;
#pragma unroll
    for (int p = 1; p < THERE; p++) // the first one again in place of those that are not there
        beside[p] = at.across(p * EACH) < left ? at.across(p * EACH) * sizeof(T) : 0;
    for (; count >= LOADS; count -= LOADS)
        gk_take_pieces<LOADS, true, THERE, T>(op, from, below, beside, number, LOADS, ways);
    if (count > 0)
        gk_take_pieces<LOADS, false, THERE, T>(op, from, below, beside, number, count, ways);
}

// Of THERE pieces as many as the block has columns for, so that nothing is done for those that no thread has.
template <int PIECES, int THERE, class T, class Op, class WAYS>
__device__ static inline void gk_take_pieces_there(const Op &op, const gk_reduction &how, const gk_columns &at, const char *from, unsigned count, WAYS &ways) {
    if constexpr (THERE > 1 && sizeof(T) >= sizeof(uint32_t))
        if (how.inner - at.leftmost <= at.across((THERE - 1) * (WAYS::COUNT / PIECES)))
            return gk_take_pieces_there<PIECES, THERE - 1, T>(op, how, at, from, count, ways);
    gk_take_down_pieces<PIECES, THERE, T>(op, how, at, from, count, ways);
}

// The same where a thread's columns are pieces of a vector, of EACH columns.
template <int EACH, class A, class Op, class WAYS>
__device__ static inline void gk_take_by_pieces(const Op &op, const gk_reduction &how, gk_columns &at, const A &top, size_t row, unsigned count, WAYS &ways) {
    enum { PIECES = WAYS::COUNT / EACH };
    at.take_pieces<EACH>(how);
    if (at.column < how.inner)
        gk_take_pieces_there<PIECES, PIECES, typename A::Element>(op, how, at, (const char *)(top + at.column).below(how, row).first, count, ways);
}

// The same of bytes or halves whose rows begin anywhere in a word: a thread's rows all begin at the same place of one, so that its
// columns may begin where a word does, which is `ahead` of where they would.
template <class A, class Op, class WAYS>
__device__ static inline unsigned gk_take_shifted(const Op &op, const gk_reduction &how, gk_columns &at, const A &top, size_t row, unsigned count, WAYS &ways) {
    typedef typename A::Element T;
    enum { EACH = sizeof(uint32_t) / sizeof(T) };
    at.take_pieces<EACH>(how);
    const A begin = top.below(how, row);
    const unsigned ahead = (unsigned)((uintptr_t)begin.first % sizeof(uint32_t) / sizeof(T));
    if (at.outer >= how.outer || at.leftmost + at.offset >= how.inner + ahead || count == 0)
        return ahead;
    const T *const first = begin.first + (at.leftmost + at.offset) - ahead;
    // The last word of the last row of all may reach beyond the array.
    const int64_t below = (int64_t)(count - 1) * at.height * how.apart;
    const uintptr_t behind = ((uintptr_t)(begin.first + how.inner) + below + sizeof(uint32_t) - 1) / sizeof(uint32_t) * sizeof(uint32_t);
    const unsigned sure = count - (behind > (uintptr_t)top.end);
    gk_take_down_pieces<WAYS::COUNT / EACH, WAYS::COUNT / EACH, T>(op, how, at, (const char *)first, sure, ways, ahead);
    if (sure < count)
#pragma unroll
        for (int e = 0; e < WAYS::COUNT; e++)
            if (const T *const x = (const T *)((const char *)(first + at.across(e)) + below); at.leftmost + at.offset + at.across(e) - ahead < how.inner && x < top.end)
                ways.take(op, e, gk_read<T>(x), sure);
    return ahead;
}

// Where the top row of threads has the state of each column of its group's: in the plane of that element of a vector.
struct gk_places {
    unsigned side, log; // as those of gk_columns

    __device__ unsigned operator()(unsigned column) const {
        const unsigned piece = column >> log, element = (piece >> side << log) + (column & ((1u << log) - 1));
        return element * GK_PLANE + (piece & ((1u << side) - 1));
    }
};

// The results of a thread's columns: as vectors, or one by one.
template <class Op, int WIDTH>
__device__ static inline void gk_store_columns(const Op &op, const gk_reduction &how, const gk_columns &at, const typename Op::State (&state)[WIDTH]) {
    const size_t i = at.outer * how.inner + at.column;
    const unsigned left = at.left(how);
    const bool is_vector = 1u << at.log == WIDTH && WIDTH <= left;
    if (is_vector && (uintptr_t)((typename Op::Result *)how.result + i) % GK_REDUCE_VECTOR_BYTES == 0) {
        gk_store_few<WIDTH>(op, how, i, [&](int e) { return op.result(how, state[e]); }, [&](int e) { return state[e]; });
        return;
    }
#pragma unroll
    for (int e = 0; e < WIDTH; e++)
        if (at.across(e) < left)
            gk_store(op, how, i + at.across(e), state[e]);
}

// States of a segment, of each thread one in each plane, become results.
template <class Op, int WIDTH, bool SHIFTED> __device__ static inline void gk_end_planes(const Op &op, const gk_reduction &how, const gk_columns &at, typename Op::State *states) {
    typedef typename Op::State State;
    gk_join_planes<WIDTH>(op, states, how.group, how.lanes);
    const gk_places place = {at.side, at.log};
    const unsigned columns = gk_columns_of_block<WIDTH>(how, SHIFTED), all = columns * (GK_REDUCE_COLUMN_THREADS >> how.group);
    const size_t outer = at.outer - (threadIdx.x >> how.group), left = how.inner - at.leftmost;
    if (how.segments > 1) { // of a matrix a block
        State *const partials = (State *)how.partials + outer * how.segments * how.inner + at.leftmost;
        if (!gk_join_segments(op, gk_joints(how, at.segment, at.block), partials, states, columns, left < columns ? (unsigned)left : columns, place))
            return;
    }
    for (unsigned i = threadIdx.x; i < all; i += GK_REDUCE_COLUMN_THREADS) {
        const unsigned number = i / columns, column = i - number * columns;
        if (outer + number < how.outer && column < left)
            gk_store(op, how, (outer + number) * how.inner + at.leftmost + column, states[how.segments > 1 ? column : (number << how.group) + place(column)]);
    }
}

// What a thread has come by in its rows of a segment, the first of which is `row`, becomes results. SHIFTED: its columns are so many
// `ahead` of where they would be.
template <bool SHIFTED, class Op, int WIDTH>
__device__ static inline void gk_end_columns(const Op &op, const gk_reduction &how, const gk_columns &at, size_t row, const gk_ways<Op, WIDTH> &down, unsigned ahead) {
    typedef typename Op::State State;
    State state[WIDTH];
#pragma unroll
    for (int e = 0; e < WIDTH; e++)
        state[e] = gk_way<Op>::end(down.of(e), row, at.height);
    if (!SHIFTED && at.height == 1 && how.segments == 1) { // nothing to join
        if (at.column < how.inner)
            gk_store_columns(op, how, at, state);
        return;
    }
    State *const states = gk_join_memory<Op>();
    const gk_places place = {at.side, at.log};
    const unsigned thread = threadIdx.x & ~(how.lanes - 1u), wide = how.lanes * WIDTH;
#pragma unroll
    for (int e = 0; e < WIDTH; e++)
        if (!SHIFTED)
            states[e * GK_PLANE + threadIdx.x] = state[e];
        else if (const unsigned column = at.offset + at.across(e) - ahead; column < wide)
            states[place(column) + thread] = state[e];
    gk_end_planes<Op, WIDTH, SHIFTED>(op, how, at, states);
}
template <class Op, int WIDTH> __device__ static inline void gk_end_columns(const Op &op, const gk_reduction &how, const gk_columns &at, size_t row, const gk_ways<Op, WIDTH> &down) {
    gk_end_columns<false>(op, how, at, row, down, 0);
}

// A single vector of columns, of which there are fewer than it holds: rows element by element, or vectors that begin at
// each of them would hold most of them several times, and nothing is done for columns that are not there. WHOLE: there
// are so many, and a load takes them all.
template <class Op, int COLUMNS, bool WHOLE, class A> __device__ static inline void gk_reduce_part_of_vector(const gk_reduction &how, const A &a) {
    typedef typename Op::Element T;
    enum { LOADS = GK_REDUCE_COLUMN_LOADS };
    Op op = {how.order};
    const gk_columns at = gk_find_columns<COLUMNS>(how);
    gk_ways<Op, COLUMNS> down;
    const size_t begin = at.segment * how.segment, end = begin + how.segment < how.length ? begin + how.segment : how.length;
    const size_t row = begin + at.y;
    const int64_t apart = (int64_t)at.height * how.apart;
    const unsigned columns = (unsigned)how.inner, count = at.column < how.inner ? at.rows_before(row, end) : 0;
    const char *from = (const char *)a.matrix(how, at.outer < how.outer ? at.outer : 0).below(how, row).first;
    down.start();
    gk_follow();
#pragma unroll 1
    for (unsigned number = 0; number < count; number += LOADS) {
        typedef gk_vector<T, WHOLE ? COLUMNS : 1> piece;
        piece x[LOADS][COLUMNS / piece::WIDTH];
#pragma unroll
        for (int j = 0; j < LOADS; j++, from += apart)
#pragma unroll
            for (int e = 0; e < COLUMNS; e += piece::WIDTH)
                if (number + j < count && (WHOLE || e < columns))
                    x[j][e] = *(const piece *)(from + e * sizeof(T));
#pragma unroll
        for (int j = 0; j < LOADS; j++)
#pragma unroll
            for (int e = 0; e < COLUMNS; e++)
                if (number + j < count && (WHOLE || e < columns))
                    down.take(op, e, x[j][e / piece::WIDTH][e % piece::WIDTH], number + j);
    }
    gk_end_columns(op, how, at, row, down);
}
// Rows begin at multiples of what all of these are multiples of.
template <class A> __device__ static inline uintptr_t gk_row_bits(const gk_reduction &how, const A &a) {
    return (uintptr_t)a.first | (uintptr_t)how.apart | (uintptr_t)how.over | (uintptr_t)how.beyond;
}
template <class Op, int FEW, class A> __device__ static inline void gk_reduce_few_columns(const gk_reduction &how, const A &a) {
    const bool on_vectors = gk_row_bits(how, a) % (how.inner * sizeof(typename Op::Element)) == 0;
    if (on_vectors && how.inner == FEW)
        gk_reduce_part_of_vector<Op, FEW, true>(how, a);
    else if (on_vectors && how.inner == 2)
        gk_reduce_part_of_vector<Op, 2, true>(how, a);
    else
        gk_reduce_part_of_vector<Op, FEW, false>(how, a);
}

// Columns that lie between vectors are taken by pieces of these, of elements of less than a word where rows begin at words.
template <class A> __device__ static inline bool gk_are_pieces(const gk_reduction &how, uintptr_t bits) {
    return sizeof(typename A::Element) >= sizeof(uint32_t) || (bits | how.inner * sizeof(typename A::Element)) % sizeof(uint32_t) == 0;
}

// A thread's rows from number `row` on that lie between vectors; `reaches`: as far as the end both of these may be read,
// or else the last rows of an array end too near to its own end.
template <class Op, class A, class WAYS>
__device__ static inline void gk_take_between(const Op &op, const gk_reduction &how, const gk_columns &at, A &column, size_t row, size_t end, bool reaches, WAYS &ways) {
    const size_t last = how.inner < 2 * WAYS::COUNT ? 2 * WAYS::COUNT / (unsigned)how.inner + 1 : 1;
    const unsigned count = at.rows_before(row, end), sure = reaches ? count : at.rows_before(row, end > last ? end - last : 0);
    unsigned number = 0;
    gk_take_down<GK_BETWEEN, A::AT_ONCE>(op, how, at, column, number, sure, ways);
    gk_take_down<GK_ANYWHERE, 1>(op, how, at, column, number, count - sure, ways);
}

// Columns: a thread takes a vector of them, so that a warp reads along the rows.
template <class Op, class A> __device__ static inline void gk_reduce_columns(const gk_reduction &how, const A &a) {
    enum { WIDTH = gk_vector<typename Op::Element>::WIDTH, FEW = WIDTH / 2 < GK_REDUCE_FEW ? WIDTH / 2 : GK_REDUCE_FEW };
    if constexpr (FEW > 1)
        if (how.inner <= FEW)
            return gk_reduce_few_columns<Op, FEW>(how, a);
    Op op = {how.order};
    gk_columns at = gk_find_columns<WIDTH, (sizeof(typename Op::Element) < sizeof(uint32_t))>(how);
    gk_ways<Op, WIDTH> down;
    down.start();
    size_t begin = at.segment * how.segment, end = begin + how.segment < how.length ? begin + how.segment : how.length;
    A top = a.matrix(how, at.outer < how.outer ? at.outer : 0);
    const size_t row = begin + at.y;
    const unsigned count = at.rows_before(row, end);
    // All matrices of a block in one way: its threads meet to join what they have.
    const uintptr_t bits = 1u << how.group < GK_REDUCE_COLUMN_THREADS ? gk_row_bits(how, a) : (uintptr_t)top.first | (uintptr_t)how.apart;
    gk_follow();
    if constexpr (sizeof(typename Op::Element) < sizeof(uint32_t))
        if (how.shifted) {
            const unsigned ahead = gk_take_shifted(op, how, at, top, row, count, down);
            gk_end_columns<true>(op, how, at, row, down, ahead);
            return;
        }
    if (bits % GK_REDUCE_VECTOR_BYTES == 0 && how.inner % WIDTH == 0) {
        if (at.column < how.inner)
            gk_take_down_pieces<1, 1, typename Op::Element>(op, how, at, (const char *)(top + at.column).below(how, row).first, count, down);
    } else if (gk_are_pieces<A>(how, bits)) {
        enum { PIECE = gk_columns::piece<WIDTH> };
        // Two words a load where rows begin at such.
        if (PIECE < WIDTH / 2 && (bits | how.inner * sizeof(typename Op::Element)) % (2 * sizeof(uint32_t)) == 0)
            gk_take_by_pieces<2 * PIECE>(op, how, at, top, row, count, down);
        else
            gk_take_by_pieces<PIECE>(op, how, at, top, row, count, down);
    } else if constexpr (sizeof(typename Op::Element) < sizeof(uint32_t)) {
        A column = (top + (at.column < how.inner ? at.column : 0)).below(how, row);
        if (at.column < how.inner)
            gk_take_between(op, how, at, column, row, end, top.below(how, end).reaches(0), down);
    }
    gk_end_columns(op, how, at, row, down);
}

#endif
