// Columns of elements that lie anywhere, by lists of where a block's columns lie in a row and where its rows begin. A thread's
// columns are those of pieces of a vector (gk_columns), so that neighbouring threads load neighbours, however far apart
// these lie and wherever a line of them ends; and where they lie is looked up once for all rows. The additions are those of
// one run.
#ifndef GK_REDUCE_LISTED_CUH
#define GK_REDUCE_LISTED_CUH

#include "reduce/tiles.cuh"

// Where each of a thread's columns lies that are there, so many elements from the beginning of a row. WORDS: those of a piece are one.
template <typename T, bool WORDS> struct gk_listed {
    enum { WIDTH = gk_vector<T>::WIDTH, EACH = WORDS ? gk_columns::piece<WIDTH> : 1, COUNT = WIDTH / EACH };
    typedef gk_vector<T, EACH> piece;
    int32_t place[COUNT], count;

    __device__ gk_listed(const gk_columns &at, const gk_reduction &how, const int32_t *columns) : count(0) {
        const unsigned left = at.left(how);
#pragma unroll
        for (int p = 0; p < COUNT; p++) {
            const unsigned column = at.across(p * EACH);
            place[p] = column < left ? columns[at.offset + column] : 0;
            count += column < left;
        }
    }
    // Those of a row. To make 64 bits of all places beforehand would take as many registers again.
    __device__ void load(piece (&loaded)[COUNT], const T *row) const {
#pragma unroll
        for (int p = 0; p < COUNT; p++)
            if (p < count)
                loaded[p] = *gk_of_device<piece>(gk_add_product((int64_t)row, place[p], sizeof(T)));
    }
    // Words as a vector. Elements one by one: to pack them first a thread would wait for one before it loads the next.
    template <class Op, class WAYS> __device__ static void take(const Op &op, const piece (&loaded)[COUNT], uint32_t number, WAYS &ways) {
        if constexpr (WORDS) {
            gk_vector<T> whole;
            memcpy(whole.bits, loaded, sizeof whole.bits);
            ways.take_row(op, whole, number);
        } else {
#pragma unroll
            for (int e = 0; e < WIDTH; e++)
                ways.take(op, e, loaded[e][0], number);
        }
    }
};

// Where a block's rows begin, so many elements from the first one: evenly apart, or as is listed.
struct gk_listed_rows {
    const int64_t *list; // NULL: evenly
    int64_t step;

    __device__ int64_t operator()(unsigned row) const { return list ? list[row] : row * step; }
};

// The next of a thread's rows, LOADS at most, from number `row` of those there are on: all are loaded before the first is taken.
// ALL: they are LOADS.
template <int LOADS, bool ALL, bool WORDS, class Op, class WAYS>
__device__ static inline void gk_take_some_listed(const Op &op, const gk_columns &at, const gk_listed<typename Op::Element, WORDS> &columns, const typename Op::Element *a,
                                                  const gk_listed_rows &place, unsigned row, unsigned rows, unsigned number, WAYS &ways) {
    typedef gk_listed<typename Op::Element, WORDS> listed;
    typename listed::piece x[LOADS][listed::COUNT];
#pragma unroll
    for (int j = 0; j < LOADS; j++)
        if (ALL || row + j * at.height < rows)
            columns.load(x[j], a + place(row + j * at.height));
#pragma unroll
    for (int j = 0; j < LOADS; j++)
        if (ALL || row + j * at.height < rows)
            listed::take(op, x[j], number + j, ways);
}

// All of them. Only an index asks for their numbers, whose rows lie evenly and are those of a single list.
template <bool WORDS, class Op, class WAYS>
__device__ static inline void gk_take_listed_columns(const Op &op, const gk_columns &at, const gk_listed<typename Op::Element, WORDS> &columns, const typename Op::Element *a,
                                                     const gk_listed_rows &place, unsigned rows, WAYS &ways) {
    // As many loads as there are registers for, beside large states.
    enum { ROOM = sizeof(WAYS) > GK_REDUCE_LARGE_STATES ? GK_REDUCE_LISTED_LOADS / 2 : GK_REDUCE_LISTED_LOADS, FIT = ROOM / gk_listed<typename Op::Element, WORDS>::COUNT };
    enum { LOADS = (int)FIT < (int)GK_REDUCE_COLUMN_LOADS ? (int)FIT : (int)GK_REDUCE_COLUMN_LOADS };
    unsigned row = at.y, number = 0;
#pragma unroll 1
    for (; row + (LOADS - 1) * at.height < rows; row += LOADS * at.height, number += LOADS)
        gk_take_some_listed<LOADS, true>(op, at, columns, a, place, row, rows, number, ways);
    if (LOADS > 1 && row < rows)
        gk_take_some_listed<LOADS, false>(op, at, columns, a, place, row, rows, number, ways);
}

template <bool WORDS, class Op> __device__ static inline void gk_reduce_listed(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    typedef typename Op::Element T;
    enum { WIDTH = gk_vector<T>::WIDTH };
    GK_DYNAMIC_SHARED(uint4, memory);
    int64_t *const rows = (int64_t *)memory;
    int32_t *const columns = (int32_t *)(rows + GK_REDUCE_LISTED_ROWS);
    Op op = {how.order};
    gk_columns at = gk_find_columns<WIDTH>(how);
    const unsigned wide = how.lanes * WIDTH;
    const size_t begin = at.segment * how.segment, end = begin + how.segment < how.length ? begin + how.segment : how.length;
    const bool even = layout.ndim == how.kept_axes + 1;
    const gk_listed_rows place = {even ? NULL : rows, layout.axis[how.kept_axes].stride};
    const size_t listed = even ? how.segment : (size_t)GK_REDUCE_LISTED_ROWS;
    gk_ways<Op, WIDTH> down;
    down.start();
    gk_list_places(columns, layout, how.outer_axes, how.kept_axes, at.leftmost, how.inner - at.leftmost < wide ? (unsigned)(how.inner - at.leftmost) : wide);
    __syncthreads();
    at.take_pieces<gk_columns::piece<WIDTH>>(how);
    const gk_listed<T, WORDS> mine(at, how, columns);
    a += gk_offset_along(layout, 0, how.outer_axes, at.outer < how.outer ? (uint32_t)at.outer : 0) + (even ? (int64_t)begin * place.step : 0);
    gk_follow();
    for (size_t row = begin; row < end; row += listed) {
        const unsigned count = end - row < listed ? (unsigned)(end - row) : (unsigned)listed;
        if (!even) {
            __syncthreads(); // all threads are through with those before
            gk_list_places(rows, layout, how.kept_axes, layout.ndim, row, count);
            __syncthreads();
        }
        if (mine.count > 0)
            gk_take_listed_columns(op, at, mine, a, place, count, down);
    }
    gk_end_columns(op, how, at, begin + at.y, down);
}

template <class Op> __device__ static inline void gk_reduce_columns_listed(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    if constexpr (sizeof(typename Op::Element) < 4)
        if (how.tiles & GK_REDUCE_STRAIGHT)
            return gk_reduce_listed<true, Op>(how, layout, a);
    gk_reduce_listed<false, Op>(how, layout, a);
}

#endif
