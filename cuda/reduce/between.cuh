// Rows that lie between vectors, each of a warp's lanes or of some of them. A lane loads aligned vectors alone, and what its
// own have in the next ones comes from its neighbour, to which these belong. What a row ends with is loaded together with
// what is before it: by itself it would be waited for once more. The additions are those of as many lanes of short rows.
#ifndef GK_REDUCE_BETWEEN_CUH
#define GK_REDUCE_BETWEEN_CUH

#include "reduce/elements.cuh"

// A lane's way along its row, whose first element has `head` others in front of it in its aligned vector: WORDS and, where SHIFTS,
// perhaps a half.
template <typename T, int WORDS, bool SHIFTS> struct gk_between_lane {
    typedef gk_handing<WORDS, SHIFTS> handing;
    typedef gk_vector<T> vector;
    enum { WIDTH = vector::WIDTH, LOADS = GK_REDUCE_BETWEEN_LOADS(sizeof(T)), END = handing::OWN_UPPER ? 0 : LOADS - 1 };
    const vector *at; // that it loads next,
    int begins;       // so many elements behind where its own one begins
    int lanes, from;  // of the row, and the one that hands on to it
    unsigned shift;   // bits
    bool is_end, is_other; // the one to which nobody hands on, and that at the other end

    __device__ gk_between_lane(const T *row, unsigned head, unsigned count) {
        const unsigned in_warp = threadIdx.x % GK_WARP, lane = in_warp & (count - 1);
        at = (const vector *)(row - head) + (lane + handing::OWN_UPPER);
        begins = handing::OWN_UPPER * WIDTH - (int)head;
        lanes = (int)count;
        from = (int)(in_warp - lane + ((handing::OWN_UPPER ? lane - 1 : lane + 1) & (count - 1)));
        shift = SHIFTS ? head % 2 * 16 : 0;
        is_end = lane == (handing::OWN_UPPER ? 0 : count - 1);
        is_other = lane == (handing::OWN_UPPER ? count - 1 : 0);
    }
    __device__ int step() const { return lanes * WIDTH; } // elements
    // What LOADS steps need; `beyond` is what nobody hands on. ALL: so much of the row is there that each vector may be read. Else
    // `left` elements are, from the lane's own on.
    template <bool ALL> __device__ void load(vector (&own)[LOADS], vector &beyond, int left) const {
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            if (ALL || begins + j * step() < left)
                own[j] = gk_load_global(at + j * lanes);
        const int beside = handing::OWN_UPPER ? -1 : 1; // of the aligned vector at the end, the one that belongs to nobody
        if (handing::HANDS && is_end && (ALL || begins + beside * WIDTH + END * step() < left))
            handing::load(beyond, at + END * lanes + beside);
    }
    // The lane's own vector of step j.
    __device__ vector made(const vector (&own)[LOADS], const vector &beyond, int j) const {
        const int next = handing::OWN_UPPER ? j - 1 : j + 1; // whose lane at the other end hands on to the one at this
        return handing::made(own[j], shift, [&](int w) {
            const uint32_t sent = j != END && is_other ? own[j != END ? next : j].bits[w] : own[j].bits[w];
            const uint32_t handed = __shfl_sync(GK_ALL_LANES, sent, from);
            return j == END && is_end ? beyond.bits[w] : handed;
        });
    }
    __device__ void move_on() { at += LOADS * lanes; }
};

// A lane's part of a row of `length` elements, of which `sure` lie in vectors that may be read.
template <int WORDS, bool SHIFTS, class Op>
__device__ static inline void gk_take_between(const Op &op, typename Op::State &state, const typename Op::Element *row, unsigned head, unsigned lanes, int sure, int length) {
    typedef gk_between_lane<typename Op::Element, WORDS, SHIFTS> between;
    enum { WIDTH = between::WIDTH, LOADS = between::LOADS };
    between next(row, head, lanes);
    typename between::vector own[LOADS], beyond = {};
    const int step = next.step();
    int left = sure - (int)(threadIdx.x & (lanes - 1)) * WIDTH;
#pragma unroll 1
    for (; length >= LOADS * step + 2 * WIDTH; length -= LOADS * step, left -= LOADS * step, next.move_on()) {
        next.template load<true>(own, beyond, left);
#pragma unroll
        for (int j = 0; j < LOADS; j++) {
            const auto x = next.made(own, beyond, j);
            gk_take_vector(op, state, x, x, 0);
        }
    }
#pragma unroll 1
    for (; length > 0; length -= LOADS * step, left -= LOADS * step, next.move_on()) {
        next.template load<false>(own, beyond, left);
#pragma unroll
        for (int j = 0; j < LOADS; j++) {
            if (j * step >= length)
                break;
            auto x = next.made(own, beyond, j);
            if (j * step < left) {
                gk_pad(op, x, left - j * step);
                gk_take_vector(op, state, x, x, 0);
            }
        }
    }
}

// The rows of a warp lie as many others apart as a block has warps: all begin alike.
template <class Op> __device__ static inline void gk_reduce_rows_between(const gk_reduction &how, const gk_run<typename Op::Element> &a) {
    typedef typename Op::Element T;
    enum { WIDTH = gk_vector<T>::WIDTH, WARPS = GK_REDUCE_THREADS / GK_WARP, IS_HALF = sizeof(T) == 2 };
    static_assert(WARPS % WIDTH == 0, "they begin alike");
    const unsigned lanes = how.lanes, groups = GK_WARP / lanes, in_warp = threadIdx.x % GK_WARP, lane = in_warp & (lanes - 1);
    const size_t first = (size_t)blockIdx.x * (WARPS * groups) + threadIdx.x / GK_WARP, number = first + in_warp / lanes * WARPS;
    Op op = {how.order};
    typename Op::State state = op.start();
    const gk_run<T> row = a.row(how, number < how.outer ? number : first); // beyond the end: the warp's first again, for nobody
    gk_follow();
    if (first >= how.outer)
        return;
    const int length = (int)how.length;
    const unsigned head = row.head(), words = head * sizeof(T) / sizeof(uint32_t);
    // The array may end within the row's last aligned vector, which is not read then.
    const int sure = row.end - row.first < length + WIDTH ? length - (int)((head + length) % WIDTH) : length;
    if (head == 0)
        gk_take_between<0, false>(op, state, row.first, head, lanes, sure, length);
    else if (IS_HALF && words == 0)
        gk_take_between<0, IS_HALF>(op, state, row.first, head, lanes, sure, length);
    else if (sizeof(T) < 8 && words == 1)
        gk_take_between<1, IS_HALF>(op, state, row.first, head, lanes, sure, length);
    else if (sizeof(T) == 8 || words == 2)
        gk_take_between<2, IS_HALF>(op, state, row.first, head, lanes, sure, length);
    else
        gk_take_between<3, IS_HALF>(op, state, row.first, head, lanes, sure, length);
#pragma unroll 1
    for (int i = sure; i < length; i++)
        if (((unsigned)i / WIDTH & (lanes - 1)) == lane) {
            const T x = gk_read<T>(row.first + i);
            op.take(state, x, x, 0);
        }
    gk_join_lanes(op, state, (int)lanes);
    if (lane == 0 && number < how.outer)
        gk_store(op, how, number, state);
}

#endif
