// Tiles of elements of up to a word that lie side by side, in rows and columns that begin anywhere. What is read stays in
// shared memory as it lies, with no register between (cp.async, from capability 8.0 on). A column is put together from
// there, from the first sector of memory on that begins in the tile: parts of sectors are dear to write. How many rows that
// leaves to the tile before depends on the column, so a tile reads a sector's elements more.
#ifndef GK_RAGGED_CUH
#define GK_RAGGED_CUH

#include "transpose/copies.h"

// One line a size of element: bits, type, vectors of a tile down and across.
#define GK_RAGGED_SIZES(X)                                                                         \
    X(8, uint8_t, 8, 16)                                                                           \
    X(16, uint16_t, 8, 16)                                                                         \
    X(32, uint32_t, 16, 16)

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

// How many elements of a column lie in front of the first sector that begins in it.
template <typename T> __device__ static inline int gk_before_sector(const char *column) { return (int)(-(uintptr_t)column % GK_SECTOR / sizeof(T)); }

// Of elements of less than a word, DOWN x ACROSS vectors.
template <typename T, int DOWN, int ACROSS> struct gk_ragged_tile {
    enum { THREADS = GK_RAGGED_THREADS, E = GK_VECTOR / sizeof(T), SECTOR = GK_SECTOR / sizeof(T), DEEP = 8, SIDE = THREADS / DEEP };
    enum { ROWS = DOWN * E, COLUMNS = ACROSS * E, READ = ROWS + SECTOR - 1 };
    // Vectors from a row to the next, an odd number of them, and one that is left free after so many rows: what DEEP lanes
    // read of a column, E rows apart, is in as many groups of banks.
    enum { VECTORS = ACROSS + 1, OF_ROW = VECTORS | 1, GROUP = E > DEEP ? E : DEEP };
    struct memory {
        uint4 cell[READ * OF_ROW + READ / GROUP];
        uint16_t place[READ];          // where a row's first element is, in bytes
        int64_t begin[READ + COLUMNS]; // of lines that are listed
    };
    static_assert(sizeof(memory::cell) <= UINT16_MAX, "two bytes count what a tile has");
    memory &shared;
    const char *first, *end; // of all that may be read
    int64_t rows, columns;   // that there are from the tile's first on

    __device__ static inline int slot(int row) { return (row * OF_ROW + row / GROUP) * GK_VECTOR; }
    __device__ inline int reach() const { return (int)(columns < COLUMNS ? columns : COLUMNS); }
    // The aligned vectors that rows lie in, past the first cache, all of a block's under way at once; what may not be read as
    // one, element by element.
    template <class PLACES> __device__ inline void read(const char *a, const PLACES &row) const {
        const int bytes = reach() * (int)sizeof(T);
        for (int i = threadIdx.x; i < READ * VECTORS; i += THREADS) {
            const int line = i / VECTORS, number = i % VECTORS;
            if (line >= rows)
                break;
            const char *const from = a + row.at(line), *const at = from - (uintptr_t)from % GK_VECTOR + number * GK_VECTOR;
            char *const to = (char *)shared.cell + slot(line) + number * GK_VECTOR;
            if (at >= from + bytes)
                continue;
            if (at >= first && at + GK_VECTOR <= end)
                gk_copy_element<GK_VECTOR>(to, at);
            else
                for (int e = 0; e < GK_VECTOR; e += sizeof(T))
                    if (at + e >= from && at + e < from + bytes)
                        *(T *)(to + e) = *(const T *)(at + e);
        }
        for (int line = threadIdx.x; line < READ && line < rows; line += THREADS)
            shared.place[line] = (uint16_t)(slot(line) + (uintptr_t)(a + row.at(line)) % GK_VECTOR);
    }
    __device__ inline T element(uint32_t place, int column) const { return *(const T *)((const char *)shared.cell + place + column * sizeof(T)); }

    // Of rows that are not there another one's.
    __device__ inline void find(int row, uint32_t (&place)[E]) const {
        const int last = (int)(rows < READ ? rows : READ) - 1;
#pragma unroll
        for (int e = 0; e < E; e++)
            place[e] = shared.place[row + e < 0 ? 0 : row + e < last ? row + e : last];
    }
    // DEEP lanes write vectors below one another, of as many columns as a warp has room for. Columns a sector's elements
    // apart begin alike, where they lie evenly, and of those that are listed most do: to find a thread's rows again for
    // each column is as much as to read them.
    template <class PLACES> __device__ inline void write(char *out, const PLACES &column) const {
        static_assert(SIDE % SECTOR == 0, "a thread's columns begin alike");
        const int count = reach(), deep = threadIdx.x % DEEP, side = threadIdx.x / DEEP;
#pragma unroll 1
        for (int down = deep * E; down < ROWS; down += DEEP * E) {
            uint32_t place[E];
            int row = 0;
#pragma unroll 1
            for (int number = side; number < count; number += SIDE) {
                char *const to = out + column.at(number);
                if (number == side || !PLACES::EVEN) {
                    const int begin = gk_before_sector<T>(to) + down;
                    if (number == side || begin != row)
                        find(row = begin, place);
                }
                put(to, row, place, number);
            }
        }
    }
    __device__ inline void put(char *to, int row, const uint32_t (&place)[E], int column) const {
        enum { OF_WORD = GK_WORD / (int)sizeof(T) };
        T *const at = (T *)to + row;
        T elements[E];
        gk_vector<T> vector;
        if (row >= rows)
            return;
#pragma unroll
        for (int e = 0; e < E; e++)
            elements[e] = element(place[e], column);
        vector.pack(elements);
        if (row >= 0 && row + E <= rows) {
            *(gk_vector<T> *)at = vector;
            return;
        }
#pragma unroll
        for (int e = 0; e < E; e += OF_WORD)
            if (row + e >= 0 && row + e + OF_WORD <= rows)
                *(uint32_t *)(at + e) = vector.bits[e / OF_WORD];
            else
#pragma unroll
                for (int i = e; i < e + OF_WORD; i++)
                    if (row + i >= 0 && row + i < rows)
                        at[i] = elements[i];
    }
    // What lies in front of the first sector of a column, in the tile that has its first elements.
    template <class PLACES> __device__ inline void write_heads(char *out, const PLACES &column) const {
        enum { PARTS = SECTOR / E };
        for (int i = threadIdx.x; i < COLUMNS * PARTS; i += THREADS) {
            const int number = i / PARTS;
            if (number >= columns)
                break;
            char *const to = out + column.at(number);
            const int row = gk_before_sector<T>(to) - (i % PARTS + 1) * E;
            uint32_t place[E];
            if (row + E > 0) {
                find(row, place);
                put(to, row, place, number);
            }
        }
    }
};

// Of words, which as vectors took 1.05 times as long: rows have an odd number of them, and a warp moves as many as it has
// lanes of a row, and of a column.
template <int DOWN, int ACROSS> struct gk_ragged_tile<uint32_t, DOWN, ACROSS> {
    typedef uint32_t T;
    enum { THREADS = GK_RAGGED_THREADS, E = GK_VECTOR / GK_WORD, SECTOR = GK_SECTOR / GK_WORD, WARPS = THREADS / GK_WARP };
    enum { ROWS = DOWN * E, COLUMNS = ACROSS * E, READ = ROWS + SECTOR - 1, OF_ROW = COLUMNS + 1 };
    struct memory {
        T cell[READ * OF_ROW];
        int64_t begin[READ + COLUMNS]; // of lines that are listed
    };
    static_assert(OF_ROW % 2 == 1, "two lanes would meet in a bank");
    memory &shared;
    const char *first, *end; // of all that may be read: no word is in part
    int64_t rows, columns;   // that there are from the tile's first on

    // All rows of a warp under way at once.
    template <bool WHOLE, class PLACES> __device__ inline void read_rows(const char *a, const PLACES &row) const {
        const int lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP;
        const char *from = a + row.at(WHOLE || warp < rows ? warp : 0) + lane * GK_WORD;
        T *const to = shared.cell + warp * OF_ROW + lane;
#pragma unroll
        for (int i = 0; i * WARPS < READ; i++) {
            const int line = warp + i * WARPS;
            if (((i + 1) * WARPS > READ && line >= READ) || (!WHOLE && line >= rows))
                break;
            if (!PLACES::EVEN && i > 0)
                from = a + row.at(line) + lane * GK_WORD;
#pragma unroll
            for (int j = 0; j < COLUMNS; j += GK_WARP)
                if (WHOLE || lane + j < columns)
                    gk_copy_element<GK_WORD>(to + i * WARPS * OF_ROW + j, from + j * GK_WORD);
            if (PLACES::EVEN)
                from += row.at(WARPS);
        }
    }
    __device__ inline bool is_whole() const { return rows >= READ && columns >= COLUMNS; }
    template <class PLACES> __device__ inline void read(const char *a, const PLACES &row) const {
        if (is_whole())
            read_rows<true>(a, row);
        else
            read_rows<false>(a, row);
    }
    // A warp's columns, a sector's elements apart, begin alike where they lie evenly.
    template <bool WHOLE, class PLACES> __device__ inline void write_columns(char *out, const PLACES &column) const {
        static_assert(WARPS % SECTOR == 0, "a warp's columns begin alike");
        const int lane = threadIdx.x % GK_WARP, warp = threadIdx.x / GK_WARP;
        char *to = out + column.at(WHOLE || warp < columns ? warp : 0);
        int row = gk_before_sector<T>(to) + lane;
#pragma unroll
        for (int i = 0; i < COLUMNS; i += WARPS) {
            if (!WHOLE && warp + i >= columns)
                break;
            if (i > 0)
                to = PLACES::EVEN ? to + column.at(WARPS) : out + column.at(warp + i);
            if (!PLACES::EVEN && i > 0)
                row = gk_before_sector<T>(to) + lane;
#pragma unroll
            for (int down = 0; down < ROWS; down += GK_WARP)
                if (WHOLE || row + down < rows)
                    ((T *)to)[row + down] = shared.cell[(row + down) * OF_ROW + warp + i];
        }
    }
    template <class PLACES> __device__ inline void write(char *out, const PLACES &column) const {
        if (is_whole())
            write_columns<true>(out, column);
        else
            write_columns<false>(out, column);
    }
    template <class PLACES> __device__ inline void write_heads(char *out, const PLACES &column) const {
        for (int i = threadIdx.x; i < COLUMNS * SECTOR; i += THREADS) {
            const int number = i / SECTOR, row = i % SECTOR;
            if (number >= columns)
                break;
            char *const to = out + column.at(number);
            if (row < gk_before_sector<T>(to) && row < rows)
                ((T *)to)[row] = shared.cell[row * OF_ROW + number];
        }
    }
};

template <class TILE, class PLACES>
__device__ static inline void gk_move_tile(const TILE &tile, char *out, const char *a, const PLACES &row, const PLACES &column, bool is_first) {
    tile.read(a, row);
    gk_copies_end();
    gk_copies_wait<0>();
    __syncthreads();
    tile.write(out, column);
    if (is_first)
        tile.write_heads(out, column);
}

// Where rows and columns begin that run over several axes is found once for a tile, which is the matrix's from so many
// rows and columns on.
template <typename T, int DOWN, int ACROSS>
__device__ static inline void gk_move_ragged(char *out, const char *a, const gk_chain_tiles &how, uint64_t above, uint64_t before) {
    enum { LAST = GK_CHAIN_AXES - 1 };
    typedef gk_ragged_tile<T, DOWN, ACROSS> ragged;
    __shared__ typename ragged::memory shared;
    const ragged tile = {shared, (const char *)how.first, (const char *)how.end, (int64_t)(how.tiles.rows - above), (int64_t)(how.tiles.columns - before)};
    a += before * sizeof(T);
    out += above * sizeof(T);
    if (how.is_even) {
        const gk_even_lines row = {how.rows.step[LAST]}, column = {how.columns.step[LAST]};
        gk_move_tile(tile, out + (int64_t)before * column.step, a + (int64_t)above * row.step, row, column, above == 0);
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
    gk_move_tile(tile, out, a, gk_listed_lines{shared.begin}, gk_listed_lines{shared.begin + ragged::READ}, above == 0);
}

#endif
#endif
