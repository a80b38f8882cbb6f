// Boxes whose elements lie in runs on both sides, wherever these begin. What is read goes to shared memory as it
// lies, by vectors and with no register between (cp.async, from capability 8.0 on); what is written is put together
// from there, a word at a time. A load or a store of a byte takes as many instructions as one of a vector, and
// there are more bytes than the memory's rate leaves time for.
#include "ahead.cuh"
#include "transpose/boxes.cuh"

#define GK_WORDED_THREADS 512 // a block
#define GK_WORDED_ROW(size, bytes)                                                                 \
    GK_ROW(copy_worded, worded, bits##size, gk_copy_worded_##size, "any two orders of axes: vectors read and words written, wherever runs begin", \
           .takes = GK_TAKES_LAYOUT, .tile_rows = 1, .tile_columns = GK_RUN_BOX_WORDS, .threads = GK_WORDED_THREADS, .alignment = bytes, .follows = true, .shared_bytes = GK_RUN_BOX_SHARED(GK_RUN_BOX_BUFFERS))
GK_WORDED_ROW(8, 1)
GK_WORDED_ROW(16, 2)
GK_WORDED_ROW(32, 4)
GK_WORDED_ROW(64, 8)

#ifndef GK_ROWS_ONLY

enum { THREADS = GK_WORDED_THREADS, WARPS = THREADS / GK_WARP, VECTOR = sizeof(uint4), CELLS = GK_RUN_BOX_BYTES };

// What elements are written by: themselves, or words of them.
template <typename T> struct gk_word_of {
    typedef uint32_t type;
};
template <> struct gk_word_of<uint64_t> {
    typedef uint64_t type;
};

// The vectors that a thread reads of each box, which it finds once. A row lies on vectors in shared memory as it does
// in the array: the box's first one as far behind one, and the others as many bytes on, but for multiples of 16.
template <typename T> struct gk_read_part {
    enum { EACH = GK_RUN_BOX_VECTORS / THREADS };
    int32_t from[EACH];
    uint32_t cell[EACH];

    __device__ inline gk_read_part(const gk_run_boxes &boxes) {
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const uint32_t number = threadIdx.x + j * THREADS;
            uint32_t i = number, vector = gk_take_index(i, boxes.vectors);
            from[j] = (int32_t)(vector * VECTOR);
            cell[j] = vector * VECTOR;
            gk_each_axis(boxes.across, [&](int axis) {
                const auto &of = boxes.read[axis];
                const uint32_t index = gk_take_index(i, of.side);
                from[j] += (int32_t)index * of.stride;
                cell[j] += gk_cell_of(&of.cells, index);
            });
        }
    }
    __device__ inline void forget() {
        gk_forget(from);
        gk_forget(cell);
    }
    // The whole array begins at `first`. WHOLE: all vectors are in it.
    template <bool WHOLE>
    __device__ inline void fetch(char *cells, const char *from_box, uint32_t count, const char *first, const char *end) const {
        const uint32_t behind = (uint32_t)(uintptr_t)from_box % VECTOR;
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const char *at = from_box + from[j];
            at -= (uintptr_t)at % VECTOR;
            char *to = cells + (behind + cell[j]) / VECTOR * VECTOR;
            if (threadIdx.x + j * THREADS >= count)
                break;
            if (WHOLE || (at >= first && at + VECTOR <= end))
                gk_copy_element<VECTOR>(to, at);
            else
                for (int e = 0; e < VECTOR; e += sizeof(T)) // some of it is not in the array
                    if (at + e >= first && at + e < end)
                        *(T *)(to + e) = *(const T *)(at + e);
        }
        gk_copies_end();
    }
};

// The words that it writes, found once too. In memory a word of small elements may lie between two of its run: a
// neighbour has the other one, for which a warp has a lane more than new words. Of the run's bytes so many are
// left from a word on, as far as it matters: up to 4, and -3 where there are none. ON_WORDS: no word lies so, and
// all are whole, which is half of the instructions. TURNS: lanes begin with other elements of their words than their
// neighbours do, which costs some more.
template <typename T, bool ON_WORDS, bool TURNS> struct gk_written_part {
    typedef typename gk_word_of<T>::type WORD;
    enum { E = sizeof(WORD) / sizeof(T), HELPS = !ON_WORDS, NEW = GK_WARP - HELPS, EACH = (GK_RUN_BOX_WORDS + WARPS * NEW - 1) / (WARPS * NEW), PAIRS = (E + 1) / 2 };
    enum { NO_REST = -3, MOST_REST = 4, REST_BITS = 3, FLAG_BITS = REST_BITS + 1, HALF = 16 };
    static_assert(EACH * FLAG_BITS <= 32 && CELLS <= 1 << HALF, "a register has them all");
    int32_t to[EACH];
    uint32_t cell[EACH][PAIRS]; // two elements' places a register
    uint32_t whole;             // a bit of each word that lies in its run wherever that begins
    uint32_t flags;             // of each other one what is left of its run, and whether it is the first one
    uint32_t turn;              // the element of a word that is read first, or 0

    // In a loop, although the compiler has to choose the registers then: as much code eight times over takes longer
    // to come from memory than to run.
    __device__ inline gk_written_part(const gk_run_boxes &boxes) : whole(0), flags(0), turn(TURNS ? gk_turn_of(threadIdx.x % GK_WARP, boxes.turn_bits, E) : 0) {
#pragma unroll 1
        for (int k = 0; k < EACH; k++) {
            uint32_t place[PAIRS];
            const int32_t offset = find(boxes, k, place);
#pragma unroll
            for (int j = 0; j < EACH; j++)
                if (j == k) {
                    to[j] = offset;
#pragma unroll
                    for (int i = 0; i < PAIRS; i++)
                        cell[j][i] = place[i];
                }
        }
    }
    // The offset of a word, where its elements are in the box, and its bits.
    __device__ inline int32_t find(const gk_run_boxes &boxes, int j, uint32_t (&place)[PAIRS]) {
        const int32_t number = (int32_t)((threadIdx.x / GK_WARP + j * WARPS) * NEW + threadIdx.x % GK_WARP) - HELPS;
        const bool is_there = number >= 0 && (uint32_t)number < boxes.run_words;
        uint32_t run = is_there ? (uint32_t)number : 0, word = gk_take_index(run, boxes.words);
        const bool is_after = !ON_WORDS && word * E >= boxes.run_elements; // there is one after the last of a run
        const uint32_t first = run * boxes.run_elements + (word - is_after) * E;
        int32_t offset = is_after ? (int32_t)sizeof(WORD) : 0;
#pragma unroll
        for (int e = 0; e < E; e++) {
            const uint32_t element = TURNS ? (e + turn) % E : e;
            uint32_t i = first + element, found = 0;
            gk_each_axis(boxes.axes, [&](int axis) {
                const auto &of = boxes.written[axis];
                const uint32_t index = gk_take_index(i, of.side);
                found += gk_cell_of(&of.cells, index);
                if (element == 0)
                    offset += (int32_t)index * of.stride;
            });
            place[e / 2] = e % 2 == 0 ? found : place[e / 2] | found << HALF;
        }
        if (!is_there || (HELPS && threadIdx.x % GK_WARP == 0)) // what lane 0 has is its neighbour's
            return offset;
        const int32_t left = (int32_t)((boxes.run_elements - word * E) * sizeof(T));
        whole |= (uint32_t)(ON_WORDS || (word > 0 && left >= MOST_REST)) << j;
        flags |= ((uint32_t)((left < MOST_REST ? left : MOST_REST) - NO_REST) | (word == 0) << REST_BITS) << j * FLAG_BITS;
        return offset;
    }
    __device__ inline void forget() {
        gk_forget(to);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            gk_forget(cell[j]);
        asm volatile("" : "+r"(flags), "+r"(whole));
        if constexpr (TURNS)
            asm volatile("" : "+r"(turn));
    }

    // `cells`: where the box's first element is. What begins with another element of its word is turned back.
    __device__ inline WORD collect(const char *cells, int j) const {
        T element[E];
        WORD word;
#pragma unroll
        for (int e = 0; e < E; e++)
            element[e] = *(const T *)(cells + (e % 2 == 0 ? cell[j][e / 2] & ((1 << HALF) - 1) : cell[j][e / 2] >> HALF));
        memcpy(&word, element, sizeof word);
        if constexpr (TURNS)
            word = __funnelshift_l(word, word, turn * sizeof(T) * 8);
        return word;
    }
    __device__ inline void store(const char *cells, char *to_box) const {
        WORD collected[EACH];
#pragma unroll
        for (int j = 0; j < EACH; j++)
            collected[j] = collect(cells, j);
        const uint32_t before = ON_WORDS ? 0 : (uint32_t)(uintptr_t)to_box % sizeof(WORD);
        to_box -= before;
        asm volatile("" : "+l"(to_box)); // one number, not a sum
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const uint32_t from_word = (uint32_t)to[j] + before, behind = from_word % sizeof(WORD);
            char *at = to_box + (int32_t)(ON_WORDS ? from_word : from_word - behind);
            WORD word = collected[j];
            if constexpr (!ON_WORDS)
                word = __funnelshift_l(__shfl_up_sync(GK_ALL_LANES, word, 1), word, from_word * 8);
            if (whole >> j & 1)
                __stwb((WORD *)at, word);
            else if (!ON_WORDS && (flags & ((1u << FLAG_BITS) - 1) << j * FLAG_BITS) != 0)
                store_edge(at, word, flags >> j * FLAG_BITS, (int32_t)behind);
        }
    }
    // A word that may begin in front of its run, or end behind it.
    __device__ static inline void store_edge(char *at, uint32_t word, uint32_t flag, int32_t behind) {
        const int32_t end = (int32_t)(flag & ((1 << REST_BITS) - 1)) + NO_REST + behind, begin = flag >> REST_BITS & 1 ? behind : 0;
        if (begin == 0 && end >= (int32_t)sizeof(WORD))
            __stwb((uint32_t *)at, word);
        else
            store_elements(at, word, begin, end);
    }
    __device__ static inline void store_elements(char *at, uint32_t word, int32_t begin, int32_t end) {
#pragma unroll
        for (int e = 0; e < E; e++)
            if (e * (int)sizeof(T) >= begin && e * (int)sizeof(T) < end)
                __stwb((T *)at + e, (T)(word >> e * sizeof(T) * 8));
    }
};

// Where a box begins, and whether all vectors that it is read by are in the array.
struct gk_run_box {
    gk_box at;
    bool is_whole;

    __device__ inline void find(const gk_run_boxes &boxes, uint32_t number, const char *from, const char *first, const char *end) {
        at = gk_find_box(boxes.grid, number);
        from += at.offset[GK_FROM];
        is_whole = from + boxes.reach[0] - VECTOR >= first && from + boxes.reach[1] + 2 * VECTOR <= end;
    }
};

// While a box is written, the next one is on its way, or two. Where boxes begin a warp finds now and then, one a lane: as long
// as it takes for one box, and for each it would keep all other warps waiting.
template <typename T, bool ON_WORDS, bool TURNS>
__device__ static inline void copy_boxes(char *to, const char *from, const char *first, const char *end, const gk_run_boxes &boxes) {
    enum { AT_ONCE = GK_WARP, PLACES = GK_RUN_BOX_PLACES };
    static_assert(PLACES == 2 * AT_ONCE && sizeof(gk_run_box) == GK_RUN_BOX_PLACE, "the host asks for as much");
    GK_DYNAMIC_SHARED(uint4, memory);
    gk_run_box *const box = (gk_run_box *)memory;
    char *const cells = (char *)(box + PLACES), *const behind_cells = cells + boxes.buffers * CELLS;
    const uint32_t each = gridDim.x, count = boxes.grid.count;
    const auto find_from = [&](uint32_t turn) {
        const uint32_t number = blockIdx.x + (turn + threadIdx.x) * each;
        if (threadIdx.x < AT_ONCE && number < count)
            box[(turn + threadIdx.x) % PLACES].find(boxes, number, from, first, end);
    };
    find_from(0);
    gk_read_part<T> read(boxes);
    const auto fetch = [&](char *to, uint32_t turn) {
        const gk_run_box &next = box[turn % PLACES];
        if (blockIdx.x + turn * each >= count)
            gk_copies_end(); // of none
        else if (next.is_whole)
            read.template fetch<true>(to, from + next.at.offset[GK_FROM], boxes.row_vectors, first, end);
        else
            read.template fetch<false>(to, from + next.at.offset[GK_FROM], boxes.row_vectors, first, end);
    };
    __syncthreads();
    gk_follow();
    for (uint32_t ahead = 0; ahead + 1 < boxes.buffers; ahead++)
        fetch(cells + ahead * CELLS, ahead);
    gk_written_part<T, ON_WORDS, TURNS> written(boxes);
    char *present = cells, *before = behind_cells - CELLS;
    for (uint32_t number = blockIdx.x, turn = 0; number < count; number += each, turn++) {
        const gk_box &now = box[turn % PLACES].at;
        read.forget();
        written.forget();
        if (boxes.buffers == 2)
            gk_copies_wait<0>();
        else
            gk_copies_wait<1>();
        __syncthreads(); // the box is there, and nobody reads the one before any more
        fetch(before, turn + boxes.buffers - 1);
        if (turn % AT_ONCE == 0)
            find_from(turn + AT_ONCE);
        const uint32_t behind = (uint32_t)((uintptr_t)from + (uintptr_t)now.offset[GK_FROM]) % VECTOR;
        written.store(present + behind, to + now.offset[GK_TO]);
        before = present;
        present = present + CELLS == behind_cells ? cells : present + CELLS;
    }
}

template <typename T>
__device__ static inline void copy_worded(char *to, const char *from, const char *first, const char *end, const gk_run_boxes &boxes) {
    if constexpr (sizeof(T) < sizeof(uint32_t)) {
        if (boxes.turn_bits < GK_NO_TURN)
            return boxes.on_words ? copy_boxes<T, true, true>(to, from, first, end, boxes) : copy_boxes<T, false, true>(to, from, first, end, boxes);
        if (!boxes.on_words)
            return copy_boxes<T, false, false>(to, from, first, end, boxes);
    }
    copy_boxes<T, true, false>(to, from, first, end, boxes);
}

#define GK_COPY_WORDED(bits, T)                                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS, 2)                                       \
        gk_copy_worded_##bits(char *to, const char *from, const char *first, const char *end, gk_run_boxes boxes) { \
        copy_worded<T>(to, from, first, end, boxes);                                               \
    }

GK_COPY_WORDED(8, uint8_t)
GK_COPY_WORDED(16, uint16_t)
GK_COPY_WORDED(32, uint32_t)
GK_COPY_WORDED(64, uint64_t)

#endif
