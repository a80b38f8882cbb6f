// Columns of elements that lie in another order than they are taken in, by blocks that list where their rows begin.
// Where a row of a block's is a run it is taken by vectors. Else a block loads a tile of the array as it lies,
// neighbours by neighbouring threads, and takes it from shared memory. The additions are those of one run.
#ifndef GK_REDUCE_TILES_CUH
#define GK_REDUCE_TILES_CUH

#include "ahead.cuh"

// A tile of elements, and lists of places in the array: where rows begin, and where their elements lie from there on. A vector is
// left out after every GAP, if that is not 0.
template <typename T, int VECTORS, int GAP, int ROWS, int COLUMNS> struct gk_tile {
    gk_vector<T> vectors[VECTORS];
    alignas(16) int32_t rows[ROWS];
    alignas(16) int32_t columns[COLUMNS];

    __device__ static unsigned gaps(unsigned vector) { return GAP == 0 ? 0 : vector / (GAP == 0 ? 1 : GAP); }
    __device__ gk_vector<T> at(unsigned vector) const { return vectors[vector + gaps(vector)]; }
    __device__ T *element(unsigned number) { return (T *)vectors + number + gaps(number / gk_vector<T>::WIDTH) * gk_vector<T>::WIDTH; }
};

// What to multiply by, of which the upper half is taken (__umulhi), to divide numbers below 2^16 by one of 2 to 2^16.
__device__ static inline uint32_t gk_inverse_of(uint32_t divisor) { return UINT32_MAX / divisor + 1; }

// What a tile is filled with: so many places along the axis that is nearest in memory, by places across that one. So far apart in
// the tile are the elements of neighbouring ones; those behind the first `skip` come to its beginning, up to `most`. Threads take
// neighbours in memory, of EACH places across at a time, so that what it costs to find their number is shared by several elements.
struct gk_filling {
    enum { EACH = GK_REDUCE_TILE_EACH };
    struct places {
        const int32_t *list;
        uint32_t count, apart;
    };
    places near, far;
    uint32_t skip, most, side, inverse;

    __device__ gk_filling(places near, places far, uint32_t skip = 0, uint32_t most = INT32_MAX)
        : near(near), far(far), skip(skip), most(most), side(near.count > 1 ? near.count : 2), inverse(gk_inverse_of(side)) {}
};

// Elements that a thread takes at a time, where they lie, and where they go in the tile.
struct gk_few {
    enum { EACH = gk_filling::EACH };
    int32_t place[EACH], element, left;
    uint32_t apart, most;
    bool whole;

    __device__ gk_few(const gk_filling &by, uint32_t number) : apart(by.far.apart), most(by.most) {
        const uint32_t far = __umulhi(number, by.inverse), near = number - far * by.side;
        element = (int32_t)(near * by.near.apart + far * EACH * apart - by.skip);
        left = near < by.near.count && far * EACH < by.far.count ? (int32_t)(by.far.count - far * EACH) : 0;
        whole = left >= EACH && element >= 0 && element + (EACH - 1) * (int32_t)apart < (int32_t)most;
        if (left > 0) {
            const int32_t begin = by.near.list[near];
            const int4 from = ((const int4 *)by.far.list)[far];
            place[0] = begin + from.x, place[1] = begin + from.y, place[2] = begin + from.z, place[3] = begin + from.w;
        }
    }
    template <typename T> __device__ const T *at(const T *a, int k) const { return (const T *)gk_add_product((int64_t)a, place[k], sizeof(T)); }
    // Those that a tile has room for, by a function of their number and where they go.
    template <class DO> __device__ void each(const DO &take) const {
        if (whole) {
#pragma unroll
            for (int k = 0; k < EACH; k++)
                take(k, element + k * apart);
        } else {
#pragma unroll
            for (int k = 0; k < EACH; k++)
                if (k < left && element + k * apart < most)
                    take(k, element + k * apart);
        }
    }
};

// AHEAD: by copies that no thread waits for, where there are such of an element's size: all of a tile's are under way at once.
template <int THREADS, bool AHEAD, typename T, class TILE> __device__ static inline void gk_fill_tile(TILE &tile, const T *a, const gk_filling &by) {
    const uint32_t all = (by.far.count + gk_filling::EACH - 1) / gk_filling::EACH * by.side;
    if constexpr (AHEAD && gk_copies_ahead<sizeof(T)>) {
#pragma unroll 2
        for (uint32_t number = threadIdx.x; number < all; number += THREADS) {
            const gk_few few(by, number);
            few.each([&](int k, uint32_t element) { gk_copy_element<sizeof(T)>(tile.element(element), few.at(a, k)); });
        }
        gk_copies_end();
        gk_copies_wait<0>();
    } else {
        enum { EACH = gk_filling::EACH, TURNS = GK_REDUCE_TILE_LOADS(sizeof(T)) / EACH };
#pragma unroll 1
        for (uint32_t first = threadIdx.x; first < all; first += TURNS * THREADS) {
            T x[TURNS][EACH];
#pragma unroll
            for (int j = 0; j < TURNS; j++) {
                const gk_few few(by, first + j * THREADS);
                if (few.left > 0)
#pragma unroll
                    for (int k = 0; k < EACH; k++)
                        x[j][k] = gk_read<T>(few.at(a, k));
            }
#pragma unroll
            for (int j = 0; j < TURNS; j++)
                gk_few(by, first + j * THREADS).each([&](int k, uint32_t element) { memcpy(tile.element(element), &x[j][k], sizeof(T)); });
        }
    }
}

// Where elements i along some axes lie, in elements; strides of a layout of tiles are.
__device__ static inline int32_t gk_place_along(const gk_axes &layout, int first, int end, size_t i) {
    return (int32_t)gk_offset_along(layout, first, end, (uint32_t)i);
}

__device__ static inline uint32_t gk_count_along(const gk_axes &layout, int first, int end) {
    uint32_t count = 1;
    for (int axis = first; axis < end; axis++)
        count *= layout.axis[axis].length.value;
    return count;
}

// Where `count` of these lie, from number `from` on, by all threads of a block, and once more where the last one does, until
// there are as many as threads that fill a tile look up at once.
template <typename PLACE> __device__ static inline void gk_list_places(PLACE *places, const gk_axes &layout, int first, int end, size_t from, unsigned count) {
    const unsigned even = (count + gk_filling::EACH - 1) & ~(gk_filling::EACH - 1u);
    for (unsigned i = threadIdx.x; i < even; i += blockDim.x)
        places[i] = (PLACE)gk_offset_along(layout, first, end, (uint32_t)from + (i < count ? i : count - 1));
}

// The elements of a vector, of which so many are there.
template <class Op, typename T> __device__ static inline void gk_take_padded(const Op &op, typename Op::State &state, gk_vector<T> x, unsigned wanted) {
    gk_pad(op, x, wanted);
    gk_take_vector(op, state, x, x, 0);
}

// Rows of a segment whose places are listed, of which each is a run: by vectors, without a tile. Near the end of the
// array, where a vector reaches too far, they are taken one at a time.
template <class Op, class A, class WAYS>
__device__ static inline void gk_take_listed(const Op &op, const gk_columns &at, const A &column, const int32_t *places, unsigned rows, size_t wanted, unsigned &number,
                                             WAYS &ways) {
    enum { WIDTH = WAYS::COUNT, LOADS = A::AT_ONCE };
    const int some = wanted < WIDTH ? (int)wanted : WIDTH;
#pragma unroll 1
    for (unsigned row = at.y; row < rows; row += LOADS * at.height, number += LOADS) {
        gk_vector<typename A::Element> x[LOADS];
        A line[LOADS];
        bool sure = true;
#pragma unroll
        for (int j = 0; j < LOADS; j++) { // beyond the end: the last one again, for nobody
            const unsigned i = row + j * at.height;
            line[j] = column.moved((int64_t)places[i < rows ? i : rows - 1] * (int64_t)sizeof(typename A::Element));
            sure = sure && line[j].reaches(0);
        }
        if (sure) {
            A::template load<GK_BETWEEN>(x, line, WIDTH);
#pragma unroll
            for (int j = 0; j < LOADS; j++)
                if (row + j * at.height < rows)
                    ways.take_row(op, x[j], number + j);
            continue;
        }
#pragma unroll 1
        for (unsigned j = 0; j < LOADS && row + j * at.height < rows; j++) {
            const A one[1] = {column.moved((int64_t)places[row + j * at.height] * (int64_t)sizeof(typename A::Element))};
            gk_vector<typename A::Element> single[1];
            A::template load<GK_ANYWHERE>(single, one, some);
            ways.take_row(op, single[0], number + j);
        }
    }
}

// Columns by tiles, or by lists alone.
template <class Op> __device__ static inline void gk_reduce_columns_by_tiles(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    typedef typename Op::Element T;
    // Of narrow elements a vector is much to do, and shared memory is near.
    enum { WIDTH = gk_vector<T>::WIDTH, THREADS = GK_REDUCE_COLUMN_THREADS, UNROLLED = sizeof(T) <= 2 ? 2 : GK_REDUCE_COLUMN_LOADS };
    GK_DYNAMIC_SHARED(uint4, memory);
    // Or the elements of a column would be in one bank.
    enum { GAP = 32 };
    typedef gk_tile<T, GK_REDUCE_TILE_VECTORS / GAP * (GAP + 1), GAP, GK_REDUCE_TILE_ROWS, GK_REDUCE_TILE_COLUMNS> tile_of_columns;
    static_assert(sizeof(tile_of_columns) <= GK_REDUCE_TILE_BYTES, "the host asks for as much");
    tile_of_columns &tile = *(tile_of_columns *)memory;
    Op op = {how.order};
    const gk_columns at = gk_find_columns<WIDTH>(how);
    const unsigned wide = how.lanes * WIDTH, tall = at.height * GK_REDUCE_COLUMN_LOADS, lane = threadIdx.x & (how.lanes - 1);
    const bool is_straight = (how.tiles & GK_REDUCE_STRAIGHT) != 0;
    const unsigned listed = is_straight ? (unsigned)GK_REDUCE_TILE_ROWS : tall;
    const size_t begin = at.segment * how.segment, end = begin + how.segment < how.length ? begin + how.segment : how.length;
    const T *const reach = (const T *)((const char *)a + how.reach);
    gk_ways<Op, WIDTH> down;
    unsigned number = 0;
    down.start();
    const unsigned columns = how.inner - at.leftmost < wide ? (unsigned)(how.inner - at.leftmost) : wide;
    const bool is_down = (how.tiles & GK_REDUCE_DOWN) != 0;
    a += gk_place_along(layout, 0, how.outer_axes, at.outer);
    if (!is_straight)
        gk_list_places(tile.columns, layout, how.outer_axes, how.kept_axes, at.leftmost, columns);
    gk_follow();
    for (size_t row = begin; row < end; row += listed) {
        const unsigned rows = end - row < listed ? (unsigned)(end - row) : listed;
        gk_list_places(tile.rows, layout, how.kept_axes, layout.ndim, row, rows);
        __syncthreads();
        if (is_straight) {
            const gk_run<T> column = {a + at.column, reach};
            if (at.column < how.inner)
                gk_take_listed(op, at, column, tile.rows, rows, how.inner - at.column, number, down);
            __syncthreads();
            continue;
        }
        const gk_filling::places of_rows = {tile.rows, rows, wide}, of_columns = {tile.columns, columns, 1};
        gk_fill_tile<THREADS, true>(tile, a, {is_down ? of_rows : of_columns, is_down ? of_columns : of_rows});
        __syncthreads();
#pragma unroll(UNROLLED)
        for (unsigned j = 0; j < GK_REDUCE_COLUMN_LOADS; j++) {
            const unsigned line = at.y + j * at.height;
            const gk_vector<T> x = tile.at(line * how.lanes + lane);
            if (line < rows)
                down.take_row(op, x, number + j);
        }
        number += GK_REDUCE_COLUMN_LOADS;
    }
    gk_end_columns(op, how, at, begin + at.y, down);
}

// A long row by tiles, of as many elements as are put into one: these are rows and columns themselves, as far as the axes go
// along and behind the one that is nearest in memory. No copies ahead: with these in it, the same kernel takes a tenth more for
// rows side by side.
template <class Op> __device__ static inline void gk_reduce_rows_by_tiles(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    typedef typename Op::Element T;
    enum { WIDTH = gk_vector<T>::WIDTH, TURNS = GK_REDUCE_CHUNK_VECTORS / GK_REDUCE_THREADS, THREADS = GK_REDUCE_THREADS, ROOM = (GK_REDUCE_CHUNK_VECTORS + GK_REDUCE_CHUNK_GAPS) * WIDTH };
    typedef gk_tile<T, GK_REDUCE_CHUNK_VECTORS + GK_REDUCE_CHUNK_GAPS, 0, GK_REDUCE_CHUNK_ROWS, GK_REDUCE_CHUNK_COLUMNS> tile_of_row;
    static_assert(sizeof(tile_of_row) <= GK_REDUCE_GATHERED_BYTES, "the host asks for as much");
    GK_DYNAMIC_SHARED(uint4, memory);
    tile_of_row &tile = *(tile_of_row *)memory;
    Op op = {how.order};
    typename Op::State state = op.start();
    const uint32_t segments = (uint32_t)how.segments, row = blockIdx.x / segments, segment = blockIdx.x - row * segments;
    const uint32_t behind = gk_count_along(layout, how.outer_axes, layout.ndim);
    const size_t begin = segment * how.segment, end = how.length - begin < how.segment ? how.length : begin + how.segment;
    // A vector is left out behind each row of an even number of them, or the elements of a column would be in few banks.
    const uint32_t gap = behind % (2 * WIDTH) == 0, pitch = behind + gap * WIDTH, inverse = gk_inverse_of(behind);
    const uint32_t room = (ROOM - 2 * gap * WIDTH) * behind / pitch, listed = (GK_REDUCE_CHUNK_ROWS - 4) * behind;
    const uint32_t fit = (room < listed ? room : listed) / (THREADS * WIDTH), step = (fit < TURNS ? fit : (uint32_t)TURNS) * THREADS * WIDTH;
    gk_list_places(tile.columns, layout, how.outer_axes, layout.ndim, 0, behind);
    a += gk_place_along(layout, 0, how.kept_axes, row);
    gk_follow();
#pragma unroll 1
    for (size_t chunk = begin; chunk < end; chunk += step) {
        const uint32_t count = end - chunk < step ? (uint32_t)(end - chunk) : step, over = (uint32_t)chunk / behind, skip = (uint32_t)chunk - over * behind;
        const uint32_t last = (skip + count - 1) / behind;
        gk_list_places(tile.rows, layout, how.kept_axes, how.outer_axes, over, last + 1);
        __syncthreads();
        gk_fill_tile<THREADS, false>(tile, a, {{tile.rows, last + 1, pitch}, {tile.columns, behind, 1}, skip, count + last * gap * WIDTH});
        __syncthreads();
        const auto vector = [&](uint32_t i) { return tile.at(gap ? i + __umulhi(i * WIDTH + skip, inverse) : i); };
        uint32_t i = threadIdx.x;
#pragma unroll 2
        for (; (i + 1) * WIDTH <= count; i += THREADS) {
            const gk_vector<T> x = vector(i);
            gk_take_vector(op, state, x, x, 0);
        }
        if (i * WIDTH < count)
            gk_take_padded(op, state, vector(i), count - i * WIDTH);
    }
    gk_end_row(op, how, row, segment, state);
}

#endif
