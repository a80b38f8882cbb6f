// out[i] = f(a[i], b[i], ...) where some operands run along other axes than the result, as those of a.T do: by square
// tiles, of which a warp reads what is near in each array, and what is turned changes sides in shared memory (see
// transpose.cu). A copy that turns it first moves each of its elements three times, this once. Where the rows and the columns of a
// tile lie in each array stands in shared memory as well: any axes may follow one another along both sides.
#ifndef GK_TURNED_CUH
#define GK_TURNED_CUH

// Elements along a side of a tile, of so many bytes each: what a warp reads of a row by words, or twice as much.
#define GK_TURNED_SIDE(bytes) GK_JOINED(GK_TURNED_SIDE_OF_, bytes)
#define GK_TURNED_SIDE_OF_1 128
#define GK_TURNED_SIDE_OF_2 64
#define GK_TURNED_SIDE_OF_4 64
#define GK_TURNED_SIDE_OF_8 64
// Threads of a block, each of which has eight words, and blocks that shall fit at a time: as many as these words let.
#define GK_TURNED_THREADS(bytes) ((bytes) == 2 ? 256 : 512)
#define GK_TURNED_RESIDENT(bytes) ((bytes) == 2 ? 6 : (bytes) == 8 ? 2 : 3)

#ifndef GK_ROWS_ONLY

#include "elementwise/gathered.cuh"
#include "strided.cuh"
#include "transpose/turn.cuh"

template <typename OP, typename T, int SIDE, int THREADS> struct gk_turned_tile {
    enum { ROWS, COLUMNS, WAYS };
    enum { ARRAYS = OP::OPERANDS + 1, E = sizeof(T) < GK_WORD ? GK_WORD / sizeof(T) : 1 };
    enum { SPAN = SIDE / E, GROUPS = SPAN / GK_WARP, LINES = THREADS / GK_WARP, WORDS = SPAN / LINES * GROUPS * E };
    // Elements of a word of an operand that is not read by words: so many by themselves, or one for all, since more of them
    // than that take longer than a copy that turns them.
    enum { SINGLES = E > 2 ? 1 : E };
    typedef typename OP::template Result<T>::type R;
    typedef gk_gathered<OP, T, E> gathered;

    struct shared {
        int64_t at[WAYS][ARRAYS][SIDE]; // where rows and columns begin, in bytes
        gk_vector<T, E> cell[E][SPAN][SPAN + 1]; // an odd number of words a line: a column is in all banks
    };
    shared &tile;
    int rows, columns;         // that are there
    uint32_t turned, by_words; // see gk_turned

    // Word j of this thread is one of E, which are a square of elements: where that stands among all, across and along, in words.
    __device__ static inline int square_across(int j) { return (int)threadIdx.x / GK_WARP + j / (GROUPS * E) * LINES; }
    __device__ static inline int square_along(int j) { return (int)threadIdx.x % GK_WARP + j / E % GROUPS * GK_WARP; }
    // Its line, and its place along that.
    __device__ static inline int line_of(int j) { return square_across(j) * E + j % E; }
    __device__ static inline int place_of(int j) { return square_along(j) * E; }

    // Of the lines of a matrix behind number `first`.
    __device__ static inline int lines_left(uint32_t length, uint32_t first) { return length - first < SIDE ? (int)(length - first) : SIDE; }

    // The axes of columns come first in the layout, those of rows behind them.
    __device__ inline void find_lines(const gk_turned &how, uint32_t first_row, uint32_t first_column) {
        for (int i = threadIdx.x; i < WAYS * SIDE; i += THREADS) {
            const int way = i / SIDE, line = i % SIDE;
            int64_t offset[ARRAYS] = {0};
            if (way == ROWS)
                gk_offsets_along(how.layout, how.row_axes, how.matrix_axes, first_row + line, offset);
            else
                gk_offsets_along(how.layout, 0, how.row_axes, first_column + line, offset);
#pragma unroll
            for (int k = 0; k < ARRAYS; k++)
                tile.at[way][k][line] = offset[k];
        }
    }

    __device__ inline bool is_turned(int array) const { return turned >> array & 1; }
    __device__ inline bool is_by_words(int array) const { return E == 1 || by_words >> array & 1; }

    // Where this thread's places along lines are, which are the same along all: as they stand in shared memory, threads
    // would wait for one another's banks each time.
    struct places {
        int64_t at[GROUPS][E];
        __device__ inline places(const int64_t *place) {
#pragma unroll
            for (int j = 0; j < GROUPS * E; j++)
                at[j / E][j % E] = place[place_of(j) + j % E];
        }
        __device__ inline int64_t of(int j, int e) const { return at[j / E % GROUPS][e]; }
    };

    // The words of an operand as its neighbours lie: along rows, or, where it is turned, along columns.
    template <bool BY_WORDS> __device__ inline void load(gathered (&words)[WORDS], int k, const char *from) const {
        const bool is_along_rows = is_turned(k + 1);
        const int lines = is_along_rows ? columns : rows, length = is_along_rows ? rows : columns;
        const int64_t *line = tile.at[is_along_rows ? COLUMNS : ROWS][k + 1];
        const places place(tile.at[is_along_rows ? ROWS : COLUMNS][k + 1]);
#pragma unroll
        for (int j = 0; j < WORDS; j++) {
            const int there = line_of(j) < lines ? length - place_of(j) : 0; // elements
            const char *begin = from + line[line_of(j)];
            words[j].operand[k] = {};
            if constexpr (BY_WORDS) {
                if (there > 0)
                    words[j].operand[k] = *(const gk_vector<T, E> *)(begin + place.of(j, 0));
            } else {
                T elements[E] = {};
#pragma unroll
                for (int e = 0; e < SINGLES; e++)
                    if (e < there)
                        elements[e] = gk_read<T>(begin + place.of(j, e));
#pragma unroll
                for (int e = SINGLES; e < E; e++)
                    elements[e] = elements[0];
                words[j].operand[k].pack(elements);
            }
        }
    }

    __device__ inline void load(gathered (&words)[WORDS], const gk_terms &terms, int k, int64_t matrix) const {
        if (!terms.data[k])
#pragma unroll
            for (int j = 0; j < WORDS; j++)
                words[j].repeat(k, gk_read<T>(&terms.value[k]));
        else if (is_by_words(k + 1))
            load<true>(words, k, gk_at(terms, k, matrix));
        else if constexpr (E > 1)
            load<false>(words, k, gk_at(terms, k, matrix));
    }

    // Squares are turned in registers, and change places in shared memory.
    __device__ inline void turn(gathered (&words)[WORDS], int k) const {
        __syncthreads(); // the operand before has left the tile
#pragma unroll
        for (int j = 0; j < WORDS; j += E) {
            gk_vector<T, E> square[E];
#pragma unroll
            for (int e = 0; e < E; e++)
                square[e] = words[j + e].operand[k];
            gk_turn<typename gk_stored<T>::type, E, E>(square);
#pragma unroll
            for (int e = 0; e < E; e++)
                tile.cell[e][square_along(j)][square_across(j)] = square[e];
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < WORDS; j++)
            words[j].operand[k] = tile.cell[j % E][square_across(j)][square_along(j)];
    }

    template <bool BY_WORDS> __device__ inline void store(const gathered (&words)[WORDS], char *out) const {
        const places place(tile.at[COLUMNS][0]);
#pragma unroll
        for (int j = 0; j < WORDS; j++) {
            const int there = line_of(j) < rows ? columns - place_of(j) : 0;
            char *to = out + tile.at[ROWS][0][line_of(j)];
            if constexpr (BY_WORDS) {
                if (there > 0)
                    words[j].store(to + place.of(j, 0));
            } else {
#pragma unroll
                for (int e = 0; e < E; e++)
                    if (e < there)
                        *(R *)(to + place.of(j, e)) = words[j].result(e);
            }
        }
    }

    __device__ inline void store(const gathered (&words)[WORDS], char *out) const {
        if (is_by_words(0))
            store<true>(words, out);
        else if constexpr (SINGLES > 1)
            store<false>(words, out);
    }
};

// Tiles of the same rows follow one another: what they write lies side by side.
template <typename OP, typename T, int SIDE, int THREADS>
__device__ static inline void gk_map_turned(char *out, const gk_terms &terms, const gk_turned &how) {
    typedef gk_turned_tile<OP, T, SIDE, THREADS> turned_tile;
    __shared__ typename turned_tile::shared shared;
    const uint32_t number = gk_divide(blockIdx.x, how.in_matrix), in_matrix = blockIdx.x - number * how.in_matrix.value;
    const uint32_t down = gk_divide(in_matrix, how.across), across = in_matrix - down * how.across.value;
    const uint32_t row = down * SIDE, column = across * SIDE;
    turned_tile tile = {shared, turned_tile::lines_left(how.rows, row), turned_tile::lines_left(how.columns, column), how.turned, how.by_words};
    typename turned_tile::gathered words[turned_tile::WORDS];
    int64_t matrix[turned_tile::ARRAYS] = {0};
    gk_offsets_along(how.layout, how.matrix_axes, how.layout.ndim, number, matrix);
    tile.find_lines(how, row, column);
    gk_follow();
    __syncthreads();
#pragma unroll
    for (int k = 0; k < OP::OPERANDS; k++)
        tile.load(words, terms, k, matrix[k + 1]);
#pragma unroll
    for (int k = 0; k < OP::OPERANDS; k++)
        if (tile.is_turned(k + 1))
            tile.turn(words, k);
    tile.store(words, out + matrix[0]);
}

#endif
#endif
