// Tiles of elements of up to a word that lie side by side, in rows and columns that begin anywhere. What is read stays
// in shared memory as it lies, with no register between (cp.async, from capability 8.0 on); a column is put together
// from there, a word a lane, from the first sector of memory on that begins in the tile: parts of sectors are dear to
// write. How many rows that leaves to the tile before depends on the column, so a tile reads a sector's elements more.
#ifndef GK_RAGGED_CUH
#define GK_RAGGED_CUH

#include "transpose/copies.h"

// One line a size of element: bits, type, words of a tile down and across.
#define GK_RAGGED_SIZES(X)                                                                         \
    X(8, uint8_t, 32, 32)                                                                          \
    X(16, uint16_t, 32, 64)                                                                        \
    X(32, uint32_t, 64, 64)

enum { GK_RAGGED_THREADS = 256 };

#ifndef GK_ROWS_ONLY

#include "ahead.cuh"
#include "strided.cuh"

// Where the lines of a tile begin, in bytes from its first: a step apart, or as they are listed.
struct gk_even_lines {
    static constexpr bool EVEN = true;
    int64_t step;
    __device__ inline int64_t at(int line) const { return line * step; }
};
struct gk_listed_lines {
    static constexpr bool EVEN = false;
    const int64_t *offset;
    __device__ inline int64_t at(int line) const { return offset[line]; }
};

// In bytes from the first of a chain.
__device__ static inline int64_t gk_find_in_chain(const gk_chain &chain, uint32_t i) {
    int64_t offset = 0;
#pragma unroll
    for (int axis = 0; axis < GK_CHAIN_AXES - 1; axis++) {
        uint32_t rest = gk_divide(i, chain.length[axis]);
        offset += (int64_t)(i - rest * chain.length[axis].value) * chain.step[axis];
        i = rest;
    }
    return offset + (int64_t)i * chain.step[GK_CHAIN_AXES - 1];
}

// DOWN x ACROSS words.
template <typename T, int DOWN, int ACROSS> struct gk_ragged_tile {
    typedef uint32_t WORD;
    enum { THREADS = GK_RAGGED_THREADS, E = GK_WORD / sizeof(T), SECTOR = GK_SECTOR / sizeof(T), WARPS = THREADS / GK_WARP };
    enum { ROWS = DOWN * E, COLUMNS = ACROSS * E, READ = ROWS + SECTOR - 1 };
    // E rows have an odd number of words, so that what a warp takes of a column, E rows a lane, is in as many banks.
    enum { OF_ROWS = E * (ACROSS + 1) + (E > 1 ? 1 : 0), WORDS = (READ * OF_ROWS + E - 1) / E + 1 };
    static_assert(OF_ROWS % 2 == 1, "two lanes would meet in a bank");
    // Where E rows have their first elements, in bytes: what a word of a column is put together from.
    struct alignas(E * sizeof(uint16_t)) places {
        uint16_t of[E];
    };
    static_assert(WORDS * GK_WORD <= UINT16_MAX, "two bytes count what a tile has");
    struct memory {
        WORD cell[WORDS];
        places place[READ];            // of each row on
        int64_t begin[READ + COLUMNS]; // of lines that are listed
    };
    memory &shared;
    int64_t rows, columns; // that there are from the tile's first on

    __device__ static inline uint32_t slot(int row) { return (uint32_t)(row * OF_ROWS) / E; }
    // The aligned word at `at`, of which some elements may lie behind the end.
    __device__ static inline WORD part(const char *at, const char *end) {
        WORD word = 0;
        for (int e = 0; e < E; e++)
            if (at + e * sizeof(T) < end)
                word |= (WORD)((const T *)at)[e] << (e * sizeof(T) * 8);
        return word;
    }
    // The aligned words that hold a row, those of all rows of a warp under way at once. Rows a warp apart that lie evenly
    // begin alike within a word.
    template <bool WHOLE, class PLACES> __device__ inline void read(const char *a, const PLACES &row) const {
        enum { ACROSS_WARP = ACROSS / GK_WARP, TIMES = (READ + WARPS - 1) / WARPS };
        static_assert(WARPS % E == 0, "a step is a whole number of words");
        const int lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP;
        const char *from = a + row.at(WHOLE || warp < rows ? warp : 0), *low = from - (uintptr_t)from % GK_WORD + lane * GK_WORD;
        WORD *const to = shared.cell + slot(warp) + lane;
#pragma unroll
        for (int i = 0; i < TIMES; i++) {
            const int line = warp + i * WARPS;
            if (((i + 1) * WARPS > READ && line >= READ) || (!WHOLE && line >= rows))
                break;
            if (!PLACES::EVEN && i > 0) {
                from = a + row.at(line);
                low = from - (uintptr_t)from % GK_WORD + lane * GK_WORD;
            }
#pragma unroll
            for (int j = 0; j < ACROSS_WARP; j++)
                fetch<WHOLE>(to + slot(i * WARPS) + j * GK_WARP, low + j * GK_WARP * GK_WORD, from + columns * sizeof(T));
            if (PLACES::EVEN)
                low += row.at(WARPS), from += row.at(WARPS);
        }
    }
    template <bool WHOLE> __device__ static inline void fetch(WORD *to, const char *at, const char *end) {
        if (WHOLE || at + GK_WORD <= end)
            gk_copy_element<GK_WORD>(to, at);
        else if (at < end)
            *to = part(at, end);
    }
    // And the last word of a row that lies across one more than it has, a row a thread.
    template <bool WHOLE, class PLACES> __device__ inline void read_ends(const char *a, const PLACES &row) const {
        for (int line = threadIdx.x; line < READ; line += THREADS) {
            const bool is_there = WHOLE || line < rows;
            const char *const from = a + row.at(is_there ? line : 0);
            const uint32_t behind = (uintptr_t)from % GK_WORD;
#pragma unroll
            for (int e = 0; e < E; e++)
                if (e <= line)
                    shared.place[line - e].of[e] = (uint16_t)(slot(line) * GK_WORD + behind);
            if (E > 1 && behind > 0 && is_there)
                fetch<WHOLE>(shared.cell + slot(line) + ACROSS, from - behind + ACROSS * GK_WORD, from + columns * sizeof(T));
        }
    }
    __device__ inline T element(uint32_t place, int column) const { return *(const T *)((const char *)shared.cell + place + column * sizeof(T)); }
    // How many elements of a column lie in front of the first sector that begins in it.
    __device__ static inline uint32_t before(const char *column) { return (uint32_t)(-(uintptr_t)column % GK_SECTOR) / (uint32_t)sizeof(T); }

    // Columns a sector's elements apart begin alike, where they lie evenly.
    template <bool WHOLE, class PLACES> __device__ inline void write(char *out, const PLACES &column) const {
        enum { ALIKE = COLUMNS / SECTOR, TIMES = DOWN / GK_WARP };
        const int lane = threadIdx.x % GK_WARP;
#pragma unroll 1
        for (int first = threadIdx.x / GK_WARP; first < SECTOR; first += WARPS) {
            if (!WHOLE && first >= columns)
                break;
            places place[TIMES];
            uint32_t begin;
            char *to = out + column.at(first);
#pragma unroll
            for (int k = 0; k < ALIKE; k++) {
                const int number = first + k * SECTOR;
                if (!WHOLE && number >= columns)
                    break;
                if (k > 0)
                    to = PLACES::EVEN ? to + column.at(SECTOR) : out + column.at(number);
                if (k == 0 || !PLACES::EVEN) {
                    begin = before(to) + lane * E;
#pragma unroll
                    for (int t = 0; t < TIMES; t++)
                        place[t] = shared.place[begin + t * GK_WARP * E];
                }
#pragma unroll
                for (int t = 0; t < TIMES; t++)
                    put<WHOLE>(to, begin + t * GK_WARP * E, place[t], number);
            }
        }
    }
    template <bool WHOLE> __device__ inline void put(char *to, uint32_t row, const places &place, int column) const {
        char *const at = to + row * sizeof(T);
        if (WHOLE || row + E <= rows) {
            WORD word = 0;
#pragma unroll
            for (int e = 0; e < E; e++)
                word |= (WORD)element(place.of[e], column) << (e * sizeof(T) * 8);
            *(WORD *)at = word;
        } else {
            for (int e = 0; e < E && row + e < rows; e++)
                ((T *)at)[e] = element(place.of[e], column);
        }
    }
    // What lies in front of the first sector of a column, in the tile that has its first elements.
    template <class PLACES> __device__ inline void write_heads(char *out, const PLACES &column) const {
        for (int i = threadIdx.x; i < COLUMNS * SECTOR; i += THREADS) {
            const int number = i / SECTOR, row = i % SECTOR;
            if (number >= columns)
                break;
            char *const to = out + column.at(number);
            if (row < before(to) && row < rows)
                ((T *)to)[row] = element(shared.place[row].of[0], number);
        }
    }
    template <bool WHOLE, class PLACES> __device__ inline void move_part(char *out, const char *a, const PLACES &row, const PLACES &column, bool is_first) const {
        read<WHOLE>(a, row);
        read_ends<WHOLE>(a, row);
        gk_copies_end();
        gk_copies_wait<0>();
        __syncthreads();
        write<WHOLE>(out, column);
        if (is_first)
            write_heads(out, column);
    }
    template <class PLACES> __device__ inline void move(char *out, const char *a, const PLACES &row, const PLACES &column, bool is_first) const {
        if (rows >= READ && columns >= COLUMNS + E)
            move_part<true>(out, a, row, column, is_first);
        else
            move_part<false>(out, a, row, column, is_first);
    }
};

// Where rows and columns begin that run over several axes is found once for a tile, which is the matrix's from so many
// rows and columns on.
template <typename T, int DOWN, int ACROSS>
__device__ static inline void gk_move_ragged(char *out, const char *a, const gk_chain_tiles &how, uint64_t above, uint64_t before) {
    enum { LAST = GK_CHAIN_AXES - 1 };
    typedef gk_ragged_tile<T, DOWN, ACROSS> ragged;
    __shared__ typename ragged::memory shared;
    const ragged tile = {shared, (int64_t)(how.tiles.rows - above), (int64_t)(how.tiles.columns - before)};
    a += before * sizeof(T);
    out += above * sizeof(T);
    if (how.is_even) {
        const gk_even_lines row = {how.rows.step[LAST]}, column = {how.columns.step[LAST]};
        tile.move(out + (int64_t)before * column.step, a + (int64_t)above * row.step, row, column, above == 0);
        return;
    }
    for (int i = threadIdx.x; i < ragged::READ + ragged::COLUMNS; i += ragged::THREADS) {
        const int line = i - ragged::READ; // of the columns
        if (line < 0 && i < tile.rows)
            shared.begin[i] = gk_find_in_chain(how.rows, (uint32_t)above + i);
        else if (line >= 0 && line < tile.columns)
            shared.begin[i] = gk_find_in_chain(how.columns, (uint32_t)before + line);
    }
    __syncthreads();
    tile.move(out, a, gk_listed_lines{shared.begin}, gk_listed_lines{shared.begin + ragged::READ}, above == 0);
}

#endif
#endif
