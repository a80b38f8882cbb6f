// Where a reduction's elements lie: in a run in memory, or anywhere, as a layout says. Either gives them by
// vectors of 16 bytes, as many loads under way at a time as the caller has vectors.
#ifndef GK_REDUCE_ELEMENTS_CUH
#define GK_REDUCE_ELEMENTS_CUH

#include "reduce/reduction.h"
#include "strided.cuh"

// What is known of the vectors that are loaded: each is one load; or two aligned ones, which may be read as far as they
// reach; or nothing; or that of two, and all lanes of the warp are here, with neighbours side by side. Of runs so many whole words are
// in front of each in its first aligned vector.
typedef enum gk_lies { GK_ALIGNED, GK_BETWEEN, GK_ANYWHERE, GK_BESIDE, GK_BESIDE_1, GK_BESIDE_2, GK_BESIDE_3 } gk_lies;

// Of either kind a thread loads AT_ONCE vectors at a time, and LEAST where fewer are left.

// Whether the first of every second element is the first one that its aligned vector has of them.
template <typename T> __device__ static inline bool gk_begins_vector(const void *at) { return (uintptr_t)at % GK_REDUCE_VECTOR_BYTES < 2 * sizeof(T); }

// Every second element from `at` on: those of each aligned vector that hold them side by side, and moved to
// where the first one lies, if it does not begin its vector. The last vector may reach 16 bytes beyond the last element.
template <bool BEGINS, typename T> __device__ static inline gk_vector<T> gk_load_every_second(const T *at) {
    enum { SIZE = sizeof(T), EVEN = SIZE == 1 ? 0x6420 : SIZE == 2 ? 0x5410 : 0x3210, ODD = SIZE == 1 ? 0x7531 : SIZE == 2 ? 0x7632 : 0x7654 };
    const unsigned shift = (uintptr_t)at % 16, number = shift / SIZE, begin = BEGINS ? 0 : number / 2 * SIZE, which = number % 2 ? ODD : EVEN;
    const uint4 *low = (const uint4 *)((uintptr_t)at - shift);
    const uint4 from[3] = {low[0], low[1], low[!BEGINS && number > 1 ? 2 : 1]};
    uint32_t word[6];
#pragma unroll
    for (int v = 0; v < 3; v++) {
        word[2 * v] = __byte_perm(from[v].x, from[v].y, which);
        word[2 * v + 1] = __byte_perm(from[v].z, from[v].w, which);
    }
#pragma unroll
    for (int w = 0; w < 5; w++)
        word[w] = begin & 4 ? word[w + 1] : word[w];
    gk_vector<T> loaded;
#pragma unroll
    for (int w = 0; w < 4; w++)
        loaded.bits[w] = SIZE < 4 ? __funnelshift_r(word[w], word[w + 1], begin % 4 * 8) : word[w];
    return loaded;
}

// A vector that lies anywhere. Two elements of 8 bytes are two loads either way, and need no more registers so.
template <typename T> __device__ static inline gk_vector<T> gk_load_anywhere(const T *at) {
    if (sizeof(T) != 8)
        return gk_load_between(at);
    const uint2 low = ((const uint2 *)at)[0], high = ((const uint2 *)at)[1];
    gk_vector<T> loaded;
    loaded.bits[0] = low.x, loaded.bits[1] = low.y, loaded.bits[2] = high.x, loaded.bits[3] = high.y;
    return loaded;
}

// Neighbouring vectors of neighbouring lanes that begin WORDS words behind aligned ones and, where SHIFTS, perhaps a half more: each lane
// loads one of the two aligned vectors that its own lies in, that of which it has more words, and those of the other are handed on.
template <int WORDS, bool SHIFTS> struct gk_handing {
    enum { OF_UPPER = WORDS + SHIFTS, OF_LOWER = 4 - WORDS, HANDS = OF_UPPER > 0, OWN_UPPER = OF_UPPER > OF_LOWER };

    // A lane's own vector, of what it has loaded and hand(w), word w of what its neighbour has. Halves that lie across words are
    // shifted out of them.
    template <typename T, class HAND> __device__ static gk_vector<T> made(const gk_vector<T> &own, unsigned shift, const HAND &hand) {
        uint32_t word[5] = {};
#pragma unroll
        for (int w = 0; w < 4 + SHIFTS; w++)
            word[w] = (WORDS + w >= 4) == OWN_UPPER ? own.bits[(WORDS + w) % 4] : hand((WORDS + w) % 4);
        gk_vector<T> vector;
#pragma unroll
        for (int w = 0; w < 4; w++)
            vector.bits[w] = SHIFTS ? __funnelshift_r(word[w], word[w + 1], shift) : word[w];
        return vector;
    }
    // The words that would be handed on, for a lane to which nobody does.
    template <typename T> __device__ static void load(gk_vector<T> &other, const gk_vector<T> *at) {
#pragma unroll
        for (int w = 0; w < 4 + SHIFTS; w++)
            if ((WORDS + w >= 4) != OWN_UPPER)
                other.bits[(WORDS + w) % 4] = gk_load_global((const gk_vector<uint32_t, 1> *)at + (WORDS + w) % 4).bits[0];
    }
};

// Elements side by side in memory, of an array that ends at `end`: rows anywhere, or the columns of
// matrices whose rows are a pitch apart.
template <typename T> struct gk_run {
    typedef T Element;
    enum { WIDTH = gk_vector<T>::WIDTH, AT_ONCE = GK_REDUCE_RAGGED_LOADS, LEAST = AT_ONCE };
    static constexpr bool IS_RUN = true;
    static constexpr gk_lies RAGGED = GK_BETWEEN; // vectors of a warp that begin anywhere
    const T *first, *end;

    __device__ gk_run operator+(size_t i) const { return {first + i, end}; }
    __device__ gk_run operator-(size_t i) const { return {first - i, end}; }
    __device__ gk_run moved(int64_t bytes) const { return {(const T *)((const char *)first + bytes), end}; }
    __device__ gk_run row(const gk_reduction &how, size_t i) const { return matrix(how, i); }
    __device__ gk_run matrix(const gk_reduction &how, size_t i) const {
        if (how.bundle < 2)
            return moved((int64_t)i * how.over);
        const uint32_t bundle = (uint32_t)i / how.bundle;
        return moved(bundle * how.beyond + (int64_t)((uint32_t)i - bundle * how.bundle) * how.over);
    }
    __device__ gk_run below(const gk_reduction &how, size_t rows) const { return moved((int64_t)rows * how.apart); }
    __device__ bool is_aligned() const { return (uintptr_t)first % GK_REDUCE_VECTOR_BYTES == 0; }
    // How many elements of the aligned vector that it begins in lie in front of it.
    __device__ unsigned head() const { return (unsigned)((uintptr_t)first % GK_REDUCE_VECTOR_BYTES / sizeof(T)); }
    __device__ unsigned words() const { return (unsigned)((uintptr_t)first % GK_REDUCE_VECTOR_BYTES / sizeof(uint32_t)); }
    // Whether every vector that begins in the next n elements is GK_BETWEEN.
    __device__ bool reaches(size_t n) const { return end - first >= (int64_t)(n + 2 * WIDTH); }
    // The first `some` vectors that begin at `at`, `wanted` elements of each: all are loaded before the first
    // is taken.
    template <gk_lies LIES, int COUNT> __device__ static void load(gk_vector<T> (&loaded)[COUNT], const gk_run (&at)[COUNT], int wanted, int some = COUNT) {
        if constexpr (LIES >= GK_BESIDE) {
            load_beside<LIES - GK_BESIDE>(loaded, at, some);
        } else {
#pragma unroll
            for (int j = 0; j < COUNT; j++)
                if (j < some)
                    loaded[j] = LIES == GK_ALIGNED ? gk_load_global((const gk_vector<T> *)at[j].first) : LIES == GK_BETWEEN ? gk_load_anywhere(at[j].first) : at[j].carefully(wanted);
        }
    }
    // A lane loads one of the two aligned vectors that its own lies in, and gets words of the other from the lane that loads that.
    template <int WORDS, int COUNT> __device__ static void load_beside(gk_vector<T> (&loaded)[COUNT], const gk_run (&at)[COUNT], int some) {
        typedef gk_handing<WORDS, sizeof(T) == 2> handing;
        const unsigned lane = threadIdx.x % GK_WARP;
        const bool is_alone = lane == (handing::OWN_UPPER ? 0 : GK_WARP - 1); // nobody hands on to it
        const unsigned within = sizeof(T) == 2 ? (unsigned)(uintptr_t)at[0].first % sizeof(uint32_t) : 0; // a word
        gk_vector<T> own[COUNT], other[COUNT] = {};
#pragma unroll
        for (int j = 0; j < COUNT; j++)
            if (j < some) {
                const gk_vector<T> *const low = (const gk_vector<T> *)((const char *)at[j].first - within - WORDS * sizeof(uint32_t));
                own[j] = gk_load_global(low + handing::OWN_UPPER);
                if (is_alone)
                    other[j] = gk_load_global(low + !handing::OWN_UPPER);
            }
#pragma unroll
        for (int j = 0; j < COUNT; j++)
            if (j < some)
                loaded[j] = handing::made(own[j], within * 8, [&](int w) {
                    const uint32_t handed = handing::OWN_UPPER ? __shfl_up_sync(GK_ALL_LANES, own[j].bits[w], 1) : __shfl_down_sync(GK_ALL_LANES, own[j].bits[w], 1);
                    return is_alone ? other[j].bits[w] : handed;
                });
    }
    __device__ gk_vector<T> carefully(int wanted) const { return reaches(0) ? gk_load_between(first) : by_elements(wanted); }
    // An aligned vector, of which what lies behind the end is not read.
    __device__ gk_vector<T> aligned() const { return end - first >= WIDTH ? *(const gk_vector<T> *)first : by_elements(WIDTH); }
    __device__ gk_vector<T> by_elements(int wanted) const {
        gk_vector<T> loaded;
#pragma unroll 1
        for (int e = 0; e < WIDTH; e++)
            loaded.push(e < wanted && e < end - first ? gk_read<T>(first + e) : T());
        return loaded;
    }
};

// `wanted` elements of each vector, one of each at a time, so that as many loads are under way as there are vectors;
// from element e of vector j to its next it is step(e, j) bytes.
template <typename T, int COUNT, class STEP> __device__ static inline void gk_load_apart(gk_vector<T> (&loaded)[COUNT], const char *(&place)[COUNT], int wanted, const STEP &step) {
    enum { WIDTH = gk_vector<T>::WIDTH, EACH = WIDTH < 4 ? WIDTH : 4 };
#pragma unroll 1
    for (int e = 0; e < WIDTH; e += EACH) {
        T x[COUNT][EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++)
#pragma unroll
            for (int j = 0; j < COUNT; j++) {
                x[j][k] = e + k < wanted ? gk_read<T>(place[j]) : T();
                place[j] += step(e + k, j);
            }
#pragma unroll
        for (int j = 0; j < COUNT; j++)
#pragma unroll
            for (int k = 0; k < EACH; k++)
                loaded[j].push(x[j][k]);
    }
}

// Elements that a layout finds, from number `at` on in its order, of `count`; none lies behind `reach`. Or,
// where those that a thread takes are of a single `line` that has been found, they are `stride` bytes apart, `length`
// of them from `base` on.
template <typename T> struct gk_gathered {
    typedef T Element;
    enum { WIDTH = gk_vector<T>::WIDTH, AT_ONCE = GK_REDUCE_GATHERED_LOADS, LEAST = 1 };
    static constexpr bool IS_RUN = false;
    static constexpr gk_lies RAGGED = GK_BETWEEN;
    const char *base, *reach;
    const gk_axes *layout;
    int64_t stride;
    uint32_t at, length, count;
    bool is_line;

    __device__ gk_gathered operator+(size_t i) const {
        gk_gathered sum = *this;
        sum.at += (uint32_t)i;
        return sum;
    }
    __device__ gk_gathered row(const gk_reduction &how, size_t i) const {
        gk_gathered found = *this + i * how.length;
        uint32_t along;
        if (how.apart != 0) {
            found.base += find(found.at, along);
            found.stride = how.apart;
            found.at = 0;
            found.length = found.count = (uint32_t)how.length;
            found.is_line = true;
        }
        return found;
    }
    __device__ static constexpr bool is_aligned() { return false; } // nor worth a way of its own
    __device__ static constexpr bool reaches(size_t) { return true; } // each load looks
    // Whether its lines are runs of so many elements, or more.
    __device__ bool has_runs(uint32_t least) const { return stride == sizeof(T) && length >= least; }
    // The run that it begins in, and how many elements of that are `left`.
    __device__ gk_run<T> run(uint32_t &left) const {
        uint32_t along;
        const T *const first = (const T *)(base + find(at, along));
        left = length - along;
        return {first, (const T *)reach};
    }
    // The same, of all of them: to find one is work. Where each is of a single line, one index is enough for
    // it, and where its elements lie side by side it is in one piece.
    template <gk_lies, int COUNT> __device__ static void load(gk_vector<T> (&loaded)[COUNT], const gk_gathered (&at)[COUNT], int wanted, int = COUNT) {
        constexpr bool PAYS = sizeof(T) != 4; // to look whether all begin aligned vectors, or pairs of these
        const char *place[COUNT];
        const int64_t apart = at[0].stride;
        const bool second = apart == 2 * (int64_t)sizeof(T);
        bool straight = true, within = true, begins = PAYS;
#pragma unroll
        for (int j = 0; j < COUNT; j++) {
            uint32_t along;
            place[j] = at[j].base + at[j].find(at[j].at, along);
            straight = straight && along + wanted <= at[j].length;
            within = within && place[j] + (second ? 3 : 2) * GK_REDUCE_VECTOR_BYTES <= at[j].reach;
            begins = begins && (second ? gk_begins_vector<T>(place[j]) : (uintptr_t)place[j] % GK_REDUCE_VECTOR_BYTES == 0);
        }
        if (straight && within && begins && apart == sizeof(T)) {
#pragma unroll
            for (int j = 0; j < COUNT; j++)
                loaded[j] = *(const gk_vector<T> *)place[j];
        } else if (straight && within && apart == sizeof(T)) {
#pragma unroll
            for (int j = 0; j < COUNT; j++)
                loaded[j] = gk_load_anywhere((const T *)place[j]);
        } else if (sizeof(T) < 8 && straight && within && second && begins) {
#pragma unroll
            for (int j = 0; j < COUNT; j++)
                loaded[j] = gk_load_every_second<true>((const T *)place[j]);
        } else if (sizeof(T) < 8 && straight && within && second) {
#pragma unroll
            for (int j = 0; j < COUNT; j++)
                loaded[j] = gk_load_every_second<false>((const T *)place[j]);
        } else if (straight) {
            gk_load_apart(loaded, place, wanted, [&](int, int) { return apart; });
        } else {
            in_turn(loaded, at, wanted);
        }
    }
    // By code that stands there once, or it would be more than all the rest of a kernel: what is to be
    // loaded next comes to the front.
    template <int COUNT> __device__ static void in_turn(gk_vector<T> (&loaded)[COUNT], const gk_gathered (&at)[COUNT], int wanted) {
        gk_gathered next = at[0];
        uint32_t number[COUNT];
#pragma unroll
        for (int j = 0; j < COUNT; j++)
            number[j] = at[j].at;
#pragma unroll 1
        for (int turn = 0; turn < COUNT; turn++) {
            next.at = number[0];
            gk_vector<T> one = next.one_by_one(wanted);
#pragma unroll
            for (int j = 0; j < COUNT - 1; j++)
                number[j] = number[j + 1], loaded[j] = loaded[j + 1];
            loaded[COUNT - 1] = one;
        }
    }
    // Of a line that ends before the vector does.
    __device__ gk_vector<T> one_by_one(int wanted) const {
        enum { EACH = WIDTH < 4 ? WIDTH : 4 };
        uint32_t along;
        const char *place = base + find(at, along);
        gk_vector<T> loaded;
#pragma unroll 1
        for (int e = 0; e < WIDTH; e += EACH) {
            T x[EACH];
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                x[j] = e + j < wanted && at + e + j < count ? gk_read<T>(place) : T();
                place += stride;
                if (++along == length) // on to the next line
                    place = base + find(at + e + j + 1, along);
            }
#pragma unroll
            for (int j = 0; j < EACH; j++)
                loaded.push(x[j]);
        }
        return loaded;
    }
    // Where element i lies, and its number along its line.
    __device__ int64_t find(uint32_t i, uint32_t &along) const {
        int axis = layout->ndim - 1;
        along = i;
        if (is_line)
            return i * stride;
        uint32_t line = gk_divide(i, layout->axis[axis].length);
        along = i - line * length;
        return along * stride + gk_offset_along(*layout, 0, axis, line);
    }
};

// The same of lines that end between vectors, so short that a warp always has some that go on: each element is loaded by itself, and
// only the two lines are looked for. A line has a vector's elements or more; or all lines lie evenly apart, and one is as far behind
// the other everywhere.
template <typename T> struct gk_broken {
    typedef T Element;
    enum { WIDTH = gk_vector<T>::WIDTH, AT_ONCE = GK_REDUCE_GATHERED_LOADS, LEAST = 1 };
    static constexpr bool IS_RUN = false;
    static constexpr gk_lies RAGGED = GK_BETWEEN;
    const gk_gathered<T> *all;
    uint32_t at;

    __device__ gk_broken operator+(size_t i) const { return {all, at + (uint32_t)i}; }
    __device__ gk_broken row(const gk_reduction &how, size_t i) const { return *this + i * how.length; }
    __device__ static constexpr bool is_aligned() { return false; }
    __device__ static constexpr bool reaches(size_t) { return true; } // each load looks
    template <gk_lies, int COUNT> __device__ static void load(gk_vector<T> (&loaded)[COUNT], const gk_broken (&at)[COUNT], int wanted, int = COUNT) {
        const gk_gathered<T> &all = *at[0].all;
        const char *place[COUNT];
        int left[COUNT]; // of the line
        int64_t jump[COUNT];
        const int64_t back = (int64_t)(all.length - 1) * all.stride;
        const bool even = all.layout->ndim == 2;
#pragma unroll
        for (int j = 0; j < COUNT; j++) {
            const uint32_t number = at[j].at;
            uint32_t along, beginning;
            const int64_t here = all.find(number, along);
            place[j] = all.base + here;
            left[j] = (int)(all.length - along);
            jump[j] = even ? all.layout->axis[0].stride - back : left[j] < wanted ? all.find(number + left[j], beginning) - here - (left[j] - 1) * all.stride : 0;
        }
        gk_load_apart(loaded, place, wanted, [&](int e, int j) {
            if (e + 1 != left[j])
                return all.stride;
            left[j] += (int)all.length;
            return jump[j];
        });
    }
};

// Of the next n elements as many, from the first one on, as begin vectors that are GK_BETWEEN.
template <class A> __device__ static inline size_t gk_between_of(const A &next, size_t n) {
    return next.reaches(n) ? n : n > 2 * A::WIDTH ? n - 2 * A::WIDTH : 0;
}

template <typename T> __device__ static inline gk_run<T> gk_run_of(const gk_reduction &how, const T *a) {
    return {a, (const T *)((const char *)a + how.reach)};
}
template <typename T> __device__ static inline gk_gathered<T> gk_gather(const gk_reduction &how, const gk_axes &layout, const T *a) {
    const int last = layout.ndim - 1;
    const char *base = (const char *)a;
    return {base, base + how.reach, &layout, layout.axis[last].stride, 0, layout.axis[last].length.value, (uint32_t)(how.outer * how.length * how.inner), false};
}

#endif
