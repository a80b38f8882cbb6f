// Columns of elements that lie in another order than they are taken in, by blocks that list where their rows begin.
// Where a row of a block's is a run it is taken by vectors. Else a block loads a tile of the array as it lies,
// neighbours by neighbouring threads, and takes it from shared memory. The additions are those of one run.
#ifndef GK_REDUCE_TILES_CUH
#define GK_REDUCE_TILES_CUH

// A tile of rows, one behind the other, and lists of places in the array: where rows begin, and where their elements
// lie from there on.
template <typename T, int VECTORS = GK_REDUCE_TILE_VECTORS, int ROWS = GK_REDUCE_TILE_ROWS, int COLUMNS = GK_REDUCE_TILE_COLUMNS> struct gk_tile {
    enum { WIDTH = gk_vector<T>::WIDTH, LOADS = sizeof(T) <= 2 ? 2 * GK_REDUCE_TILE_LOADS : GK_REDUCE_TILE_LOADS, GAP = 32 };
    gk_vector<T> vectors[VECTORS / GAP * (GAP + 1)];
    int32_t rows[ROWS], columns[COLUMNS];

    // A vector is left out after every 32, or the elements of a column would be in one bank.
    __device__ gk_vector<T> at(unsigned vector) const { return vectors[vector + vector / GAP]; }
    __device__ void put(unsigned element, T x) { memcpy((char *)vectors + (element + element / (GAP * WIDTH) * WIDTH) * sizeof(T), &x, sizeof x); }
};

// What is put into a tile: so many rows and columns, the rows `pitch` elements apart there; all of these but the first
// `skip` elements, up to so many.
struct gk_filling {
    uint32_t rows, columns, pitch, skip, most;
};

// Neighbours in memory by neighbouring threads: along the rows, or `down` the columns. A thread stays in one row or
// column, so that an element costs a place in a list; of rows or columns, that is, which of both it has more of, for
// several loads to be under way.
template <int THREADS, typename T, class TILE> __device__ static inline void gk_fill_tile(TILE &tile, const T *a, const gk_filling &by, bool down) {
    enum { LOADS = TILE::LOADS };
    const uint32_t near = down ? by.rows : by.columns, far = down ? by.columns : by.rows;
    const uint32_t side = near < THREADS ? near : THREADS, level = threadIdx.x / side, levels = THREADS / side;
    const bool turns = near > THREADS && near / THREADS > far, stays = down == turns; // in a column
    const uint32_t last = turns ? near : far, step = turns ? THREADS : levels, first = turns ? threadIdx.x : level;
    const int32_t *const places = stays ? tile.rows : tile.columns, *const fixed = stays ? tile.columns : tile.rows;
    const uint32_t apart = stays ? by.pitch : 1, beside = stays ? 1 : by.pitch;
    if (level >= levels)
        return;
#pragma unroll 1
    for (uint32_t other = turns ? 0 : threadIdx.x - level * side; other < (turns ? far : near); other += turns ? 1 : THREADS) {
        const T *const from = a + fixed[other];
        const uint32_t begin = other * beside - by.skip;
#pragma unroll 1
        for (uint32_t i = first; i < last; i += step * LOADS) {
            T x[LOADS];
#pragma unroll
            for (int j = 0; j < LOADS; j++)
                if (i + j * step < last)
                    x[j] = gk_read<T>(from + places[i + j * step]);
#pragma unroll
            for (int j = 0; j < LOADS; j++) {
                const uint32_t element = begin + (i + j * step) * apart;
                if (i + j * step < last && element < by.most)
                    tile.put(element, x[j]);
            }
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

// Where `count` of these lie, from number `from` on, by all threads of a block.
__device__ static inline void gk_list_places(int32_t *places, const gk_axes &layout, int first, int end, size_t from, unsigned count) {
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
        places[i] = gk_place_along(layout, first, end, from + i);
}

// The elements of a vector, of which so many are there.
template <class Op, typename T> __device__ static inline void gk_take_padded(const Op &op, typename Op::State &state, gk_vector<T> x, unsigned wanted) {
    gk_pad(op, x, wanted);
    gk_take_vector(op, state, x, x, 0);
}

// Rows of a segment whose places are listed, of which each is a run: by vectors, without a tile. Near the end of the
// array, where a vector reaches too far, they are taken one at a time.
template <class Op, class A, class STATE, int WIDTH>
__device__ static inline void gk_take_listed(const Op &op, const gk_columns &at, const A &column, const int32_t *places, unsigned rows, size_t wanted, unsigned &number,
                                             STATE (&state)[WIDTH]) {
    enum { LOADS = A::AT_ONCE };
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
                    gk_take_row(op, x[j], number + j, state);
            continue;
        }
#pragma unroll 1
        for (unsigned j = 0; j < LOADS && row + j * at.height < rows; j++) {
            const A one[1] = {column.moved((int64_t)places[row + j * at.height] * (int64_t)sizeof(typename A::Element))};
            gk_vector<typename A::Element> single[1];
            A::template load<GK_ANYWHERE>(single, one, some);
            gk_take_row(op, single[0], number + j, state);
        }
    }
}

// Columns by tiles, or by lists alone.
template <class Op> __device__ static inline void gk_reduce_columns_by_tiles(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    typedef typename Op::Element T;
    // Of narrow elements a vector is much to do, and shared memory is near.
    enum { WIDTH = gk_vector<T>::WIDTH, THREADS = GK_REDUCE_COLUMN_THREADS, UNROLLED = sizeof(T) <= 2 ? 2 : GK_REDUCE_COLUMN_LOADS };
    GK_DYNAMIC_SHARED(uint4, memory);
    gk_tile<T> &tile = *(gk_tile<T> *)memory;
    Op op = {how.order};
    const gk_columns at = gk_find_columns<WIDTH>(how);
    const unsigned wide = how.lanes * WIDTH, tall = at.height * GK_REDUCE_COLUMN_LOADS, lane = threadIdx.x & (how.lanes - 1);
    const bool is_straight = (how.tiles & GK_REDUCE_STRAIGHT) != 0;
    const unsigned listed = is_straight ? (unsigned)GK_REDUCE_TILE_ROWS : tall;
    const size_t begin = at.segment * how.segment, end = begin + how.segment < how.length ? begin + how.segment : how.length;
    const T *const reach = (const T *)((const char *)a + how.reach);
    typename gk_way<Op>::State down[WIDTH];
    unsigned number = 0;
#pragma unroll
    for (int e = 0; e < WIDTH; e++)
        down[e] = gk_way<Op>::start();
    const unsigned columns = how.inner - at.leftmost < wide ? (unsigned)(how.inner - at.leftmost) : wide;
    a += gk_place_along(layout, 0, how.outer_axes, at.outer);
    if (!is_straight)
        gk_list_places(tile.columns, layout, how.outer_axes, how.kept_axes, at.leftmost, columns);
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
        gk_fill_tile<THREADS>(tile, a, {rows, columns, wide, 0, UINT32_MAX}, (how.tiles & GK_REDUCE_DOWN) != 0);
        __syncthreads();
#pragma unroll(UNROLLED)
        for (unsigned j = 0; j < GK_REDUCE_COLUMN_LOADS; j++) {
            const unsigned line = at.y + j * at.height;
            const gk_vector<T> x = tile.at(line * how.lanes + lane);
            if (line < rows)
                gk_take_row(op, x, number + j, down);
        }
        number += GK_REDUCE_COLUMN_LOADS;
    }
    gk_end_columns(op, how, at, begin + at.y, down);
}

// A long row by tiles, of as many elements as are put into one: these are rows and columns themselves, as far as the axes go
// along and behind the one that is nearest in memory.
template <class Op> __device__ static inline void gk_reduce_rows_by_tiles(const gk_reduction &how, const gk_axes &layout, const typename Op::Element *a) {
    typedef typename Op::Element T;
    enum { WIDTH = gk_vector<T>::WIDTH, TURNS = GK_REDUCE_CHUNK_VECTORS / GK_REDUCE_THREADS, THREADS = GK_REDUCE_THREADS };
    typedef gk_tile<T, GK_REDUCE_CHUNK_VECTORS, GK_REDUCE_CHUNK_ROWS, GK_REDUCE_CHUNK_COLUMNS> tile_of_row;
    static_assert(sizeof(tile_of_row) <= GK_REDUCE_GATHERED_BYTES, "the host asks for as much");
    GK_DYNAMIC_SHARED(uint4, memory);
    tile_of_row &tile = *(tile_of_row *)memory;
    Op op = {how.order};
    typename Op::State state = op.start();
    const uint32_t segments = (uint32_t)how.segments, row = blockIdx.x / segments, segment = blockIdx.x - row * segments;
    const uint32_t behind = gk_count_along(layout, how.outer_axes, layout.ndim);
    const size_t begin = segment * how.segment, end = how.length - begin < how.segment ? how.length : begin + how.segment;
    const unsigned fit = (GK_REDUCE_CHUNK_ROWS - 2) * behind / (THREADS * WIDTH), step = (fit < TURNS ? fit : (unsigned)TURNS) * THREADS * WIDTH;
    gk_list_places(tile.columns, layout, how.outer_axes, layout.ndim, 0, behind);
    a += gk_place_along(layout, 0, how.kept_axes, row);
#pragma unroll 1
    for (size_t chunk = begin; chunk < end; chunk += step) {
        const unsigned count = end - chunk < step ? (unsigned)(end - chunk) : step, over = (unsigned)chunk / behind;
        const gk_filling by = {((unsigned)chunk + count - 1) / behind - over + 1, behind, behind, (unsigned)chunk - over * behind, count};
        gk_list_places(tile.rows, layout, how.kept_axes, how.outer_axes, over, by.rows);
        __syncthreads();
        gk_fill_tile<THREADS>(tile, a, by, true);
        __syncthreads();
#pragma unroll 1
        for (unsigned i = threadIdx.x; i * WIDTH < count; i += THREADS)
            gk_take_padded(op, state, tile.at(i), count - i * WIDTH);
    }
    gk_end_row(op, how, row, segment, state);
}

#endif
