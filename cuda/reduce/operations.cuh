// The operations of the reductions. Each is a struct of
//   Element, State, OPERANDS      what it takes, what it carries, how many arrays it reads
//   ANY_ORDER                     whether the order of elements leaves all bits of the result as they are
//   start()                       the state of no elements
//   padding(x)                    an element that changes nothing where x has been or will be taken
//   take(state, x, y, i)          one more element: number i, x of the first array, y of the second
//   join(state, other)            the elements of `other`, which come after those of `state` or among them
//   Result, gives(how), result(how, state)   the result, where it is of the usual dtype; how: a gk_reduction
//                                 or a gk_little
//   store(how, i, state)          result i where it is of another one
#ifndef GK_REDUCE_OPERATIONS_CUH
#define GK_REDUCE_OPERATIONS_CUH

#include "reduce/ranks.cuh"

// states -----------------------------------------------------------------------------------------

// An unevaluated sum: `low` holds what `high` has lost to rounding.
template <typename A> struct alignas(2 * sizeof(A)) gk_pair {
    A high, low;
};

// A value and where it stands; NOWHERE where no element has been better than the worst value.
template <typename A> struct alignas(16) gk_found {
    A value;
    int64_t index;
};
#define GK_NOWHERE INT64_MAX

template <typename A> __device__ static inline A gk_from_lane_above(A x, int step, int width) {
    return __shfl_down_sync(GK_ALL_LANES, x, step, width);
}
template <typename A> __device__ static inline gk_pair<A> gk_from_lane_above(gk_pair<A> x, int step, int width) {
    return {gk_from_lane_above(x.high, step, width), gk_from_lane_above(x.low, step, width)};
}
template <typename A> __device__ static inline gk_found<A> gk_from_lane_above(gk_found<A> x, int step, int width) {
    return {gk_from_lane_above(x.value, step, width), gk_from_lane_above(x.index, step, width)};
}

template <typename A> __device__ static inline A gk_from_lane_across(A x, int step) { return __shfl_xor_sync(GK_ALL_LANES, x, step); }
template <typename A> __device__ static inline gk_pair<A> gk_from_lane_across(gk_pair<A> x, int step) {
    return {gk_from_lane_across(x.high, step), gk_from_lane_across(x.low, step)};
}
template <typename A> __device__ static inline gk_found<A> gk_from_lane_across(gk_found<A> x, int step) {
    return {gk_from_lane_across(x.value, step), gk_from_lane_across(x.index, step)};
}

// sums of two parts --------------------------------------------------------------------------------

// s + error = a + b exactly (D. Knuth, "The Art of Computer Programming", vol. 2, 4.2.2).
template <typename A> __device__ static inline A gk_two_sum(A a, A b, A *error) {
    A s = a + b, of_b = s - a;
    *error = (a - (s - of_b)) + (b - of_b);
    return s;
}

// A pair rounded once. What overflows has no error left: then the high part is the sum as it is.
template <typename B, typename A> __device__ static inline B gk_settle(gk_pair<A> sum) {
    B whole = (B)sum.high + (B)sum.low;
    return whole != whole ? (B)sum.high : whole;
}

// results ----------------------------------------------------------------------------------------

// What a result goes through once is no part of the kernel's own code, which would have it over and over:
// every instruction is one that has to be there before it is carried out.

template <typename R, typename V> __device__ static inline void gk_store_as(void *result, size_t i, V value) {
    ((R *)result)[i] = gk_as<R>(value);
}

template <typename R> __device__ static __noinline__ void gk_store_real(void *result, int32_t stored, size_t i, R value) {
    switch (stored) {
    case GK_float32:
        gk_store_as<float>(result, i, value);
        break;
    case GK_float64:
        gk_store_as<double>(result, i, value);
        break;
    case GK_float16:
        gk_store_as<float16>(result, i, value);
        break;
    default:
        gk_store_as<bfloat16>(result, i, value);
    }
}

// Whole numbers, cut off to what the dtype holds: signed and unsigned ones of a size have the same bits.
__device__ static __noinline__ void gk_store_whole(void *result, int32_t stored, size_t i, int64_t value) {
    switch (stored) {
    case GK_int64:
    case GK_uint64:
        gk_store_as<int64_t>(result, i, value);
        break;
    case GK_int32:
    case GK_uint32:
        gk_store_as<int32_t>(result, i, value);
        break;
    case GK_int16:
    case GK_uint16:
        gk_store_as<int16_t>(result, i, value);
        break;
    case GK_boolean:
        gk_store_as<bool>(result, i, value);
        break;
    case GK_float64:
        gk_store_as<double>(result, i, value);
        break;
    default:
        gk_store_as<int8_t>(result, i, value);
    }
}

// What a sum has come to, or, divided before it is rounded, a mean, or a root.
__device__ static __noinline__ void gk_store_last(void *result, int32_t stored, int32_t last, size_t i, double value, double divisor) {
    gk_store_real(result, stored, i, last == GK_DIVIDED ? value / divisor : sqrt(value));
}

// A sum and what it has lost to rounding, as two elements that are added up again: of each `block` results all
// sums stand in front of what these have lost. What overflows has lost nothing.
__device__ static __noinline__ void gk_store_parts(double *result, size_t block, size_t i, double high, double low) {
    double lost, *const to = result + i + i / block * block;
    const double whole = gk_two_sum(high, low, &lost);
    to[0] = whole != whole ? high : whole;
    to[block] = fabs(whole) < (double)INFINITY ? lost : 0.0;
}

// value / divisor, rounded once, by a reciprocal that is: what the first quotient is off by is taken from it
// twice, the second time by an exact remainder (P. Markstein, "Computation of elementary functions on the IBM
// RISC System/6000 processor", 1990). A third of the instructions of a division, which remains where a
// remainder is too small to be exact, and where there is none.
__device__ static __noinline__ double gk_divide_any(double value, double divisor) { return value / divisor; }
__device__ static inline double gk_quotient(double value, double divisor, double reciprocal) {
    const double least = 1e-270, first = value * reciprocal, near = gk_times_plus(gk_times_plus(-first, divisor, value), reciprocal, first);
    if (!(fabs(near) > least && fabs(near) < (double)INFINITY))
        return gk_divide_any(value, divisor);
    return gk_times_plus(gk_times_plus(-near, divisor, value), reciprocal, near);
}

// Most results are of the dtype that an operation usually gives, and ready at once: Result, where it `gives`
// that; the way to the others, `store`, costs more than it does.
template <typename T> struct gk_dtype_of;
#define GK_DTYPE_OF(dtype, name, T, ...)                                                           \
    template <> struct gk_dtype_of<T> {                                                            \
        enum { number = GK_##dtype };                                                              \
    };
GK_DTYPES(GK_DTYPE_OF, )
template <class Op, class HOW> __device__ static inline void gk_store(const Op &op, const HOW &how, size_t i, typename Op::State state) {
    if (op.gives(how))
        ((typename Op::Result *)how.result)[i] = op.result(how, state);
    else
        op.store(how, i, state);
}

// The sums of elements T, carried in A, of which means and roots are made: of T where they are real, and else
// whole numbers, which are not divided at once.
template <typename T, typename A> struct gk_total {
    typedef T Result;
    static constexpr bool ANY_ORDER = false;
    uint32_t order; // gk_reduce_order
    template <class HOW> __device__ static bool gives(const HOW &how) { return how.stored == gk_dtype_of<T>::number && how.last < GK_SQUARE_ROOT; }
    template <class HOW> __device__ static T result(const HOW &how, A sum) {
        return how.last == GK_DIVIDED ? gk_as<T>(gk_quotient((double)sum, how.divisor, how.reciprocal)) : gk_as<T>(sum);
    }
    template <class HOW> __device__ static void store(const HOW &how, size_t i, A sum) {
        if (how.last != GK_AS_IT_IS)
            gk_store_last(how.result, how.stored, how.last, i, (double)sum, how.divisor);
        else
            gk_store_real(how.result, how.stored, i, sum);
    }
};
template <typename T> struct gk_total<T, int64_t> {
    typedef int64_t Result;
    static constexpr bool ANY_ORDER = true;
    uint32_t order; // gk_reduce_order
    template <class HOW> __device__ static bool gives(const HOW &how) { return (how.stored == GK_int64 || how.stored == GK_uint64) && how.last == GK_AS_IT_IS; }
    template <class HOW> __device__ static int64_t result(const HOW &, int64_t sum) { return sum; }
    template <class HOW> __device__ static void store(const HOW &how, size_t i, int64_t sum) {
        if (how.last != GK_AS_IT_IS)
            gk_store_last(how.result, how.stored, how.last, i, (double)sum, how.divisor);
        else
            gk_store_whole(how.result, how.stored, i, sum);
    }
};
template <typename T, typename A> struct gk_total<T, gk_pair<A>> {
    typedef T Result;
    static constexpr bool ANY_ORDER = false;
    uint32_t order; // gk_reduce_order
    template <class HOW> __device__ static bool gives(const HOW &how) { return gk_total<T, A>::gives(how); }
    template <class HOW> __device__ static T result(const HOW &how, gk_pair<A> sum) {
        return how.last == GK_DIVIDED ? gk_total<T, double>::result(how, gk_settle<double>(sum)) : gk_as<T>(gk_settle<A>(sum));
    }
    // In float64 all of it: others are added yet.
    template <class HOW> __device__ static void store(const HOW &how, size_t i, gk_pair<A> sum) {
        if (sizeof(T) == sizeof(double) && how.last == GK_IN_PARTS)
            gk_store_parts((double *)how.result, (size_t)how.divisor, i, sum.high, sum.low);
        else if (how.last != GK_AS_IT_IS || how.stored == GK_float64)
            gk_total<T, double>::store(how, i, gk_settle<double>(sum));
        else
            gk_store_real(how.result, how.stored, i, gk_settle<A>(sum));
    }
};

// sums -------------------------------------------------------------------------------------------

// One addition an element, in A; integers wrap around.
template <typename T, typename A> struct gk_plain_sum : gk_total<T, A> {
    typedef T Element;
    typedef A State;
    static constexpr int OPERANDS = 1;
    __device__ static State start() { return State(0); }
    __device__ static T padding(T) { return T(0.0f); }
    __device__ static void take(State &state, T x, T, size_t) { state = gk_plus(state, gk_as<A>(x)); }
    __device__ static void join(State &state, State other) { state = gk_plus(state, other); }
};

// Twice the precision of A: what each addition rounds off is kept, and added at the end (T. Ogita,
// S. Rump, S. Oishi, "Accurate sum and dot product", 2005).
template <typename T, typename A> struct gk_compensated_sum : gk_total<T, gk_pair<A>> {
    typedef T Element;
    typedef gk_pair<A> State;
    static constexpr int OPERANDS = 1;
    __device__ static State start() { return {A(0), A(0)}; }
    __device__ static T padding(T) { return T(0.0f); }
    __device__ static void take(State &state, T x, T, size_t) {
        A error;
        state.high = gk_two_sum(state.high, gk_as<A>(x), &error);
        state.low += error;
    }
    __device__ static void join(State &state, State other) {
        A error;
        state.high = gk_two_sum(state.high, other.high, &error);
        state.low = (state.low + other.low) + error;
    }
};

// products ---------------------------------------------------------------------------------------

template <typename T, typename A> struct gk_product : gk_total<T, A> {
    typedef T Element;
    typedef A State;
    static constexpr int OPERANDS = 1;
    __device__ static State start() { return State(1); }
    __device__ static T padding(T) { return T(1.0f); }
    __device__ static void take(State &state, T x, T, size_t) { state = gk_times(state, gk_as<A>(x)); }
    __device__ static void join(State &state, State other) { state = gk_times(state, other); }
};

// Sums of products x y, or of squares where there is one array. The product of two halves has no more
// digits than float32 has.
template <int COUNT, typename T, typename A> struct gk_plain_dot : gk_plain_sum<T, A> {
    static constexpr int OPERANDS = COUNT;
    __device__ static void take(A &state, T x, T y, size_t) {
        state = gk_plus(state, gk_times(gk_as<A>(x), gk_as<A>(y)));
    }
};

// And with twice the precision: a fused multiplication tells what the product has lost.
template <int COUNT, typename T, typename A> struct gk_compensated_dot : gk_compensated_sum<T, A> {
    static constexpr int OPERANDS = COUNT;
    __device__ static void take(gk_pair<A> &state, T x, T y, size_t) {
        A left = gk_as<A>(x), right = gk_as<A>(y), product = gk_times(left, right), error;
        state.high = gk_two_sum(state.high, product, &error);
        state.low += error + gk_times_plus(left, right, -product);
    }
};

// extremes ---------------------------------------------------------------------------------------

// The greatest value in an order, or NaN where there is one; in the reverse order it is the least.
template <typename T, typename A> struct gk_extreme {
    typedef T Element;
    typedef typename gk_rank<A>::type State;
    static constexpr int OPERANDS = 1;
    static constexpr bool ANY_ORDER = true;
    uint32_t order; // gk_reduce_order
    __device__ static State start() {
        A lowest;
        gk_set_lowest(&lowest);
        return gk_rank<A>::of(lowest);
    }
    __device__ static T padding(T x) { return x; }
    __device__ void take(State &state, T x, T, size_t) const { join(state, gk_rank<A>::of(gk_ordered<T>(gk_as<A>(x), order))); }
    __device__ static void join(State &state, State other) { state = gk_greater(state, other); }
    typedef T Result;
    // Unsigned results have the bits of signed ones.
    template <class HOW> __device__ static bool gives(const HOW &how) { return how.stored == gk_dtype_of<T>::number || how.order & GK_ORDER_UNSIGNED; }
    __device__ A value(State state) const { return gk_ordered<T>(gk_rank<A>::value(state), order); }
    template <class HOW> __device__ T result(const HOW &, State state) const { return gk_as<T>(value(state)); }
    template <class HOW> __device__ void store(const HOW &how, size_t i, State state) const { store_value(how.result, how.stored, i, value(state)); }
    __device__ static void store_value(void *result, int32_t stored, size_t i, float value) { gk_store_real(result, stored, i, value); }
    __device__ static void store_value(void *result, int32_t stored, size_t i, double value) { gk_store_real(result, stored, i, value); }
    __device__ static void store_value(void *result, int32_t stored, size_t i, int64_t value) { gk_store_whole(result, stored, i, value); }
    __device__ static void store_value(void *result, int32_t stored, size_t i, int32_t value) { gk_store_whole(result, stored, i, value); }
};

// Of an index there is one dtype.
struct gk_place {
    typedef int64_t Result;
    static constexpr bool ANY_ORDER = true;
    uint32_t order; // gk_reduce_order
    template <class HOW> __device__ static bool gives(const HOW &) { return true; }
    template <class HOW, class STATE> __device__ static void store(const HOW &, size_t, STATE) {}
};

// A rank and the reverse of a number below 2^16 as one number, of which the greatest is wanted: of the values that are no less the
// first one. The rank is that of element k of a word's; an instruction.
template <typename T> __device__ static inline uint32_t gk_key(uint32_t ranks, int k, uint32_t number) {
    return __byte_perm(ranks, 0xffff - number, sizeof(T) == 1 ? 0x7054 + 0x100 * k : 0x1054 + 0x2200 * k);
}

// Where the greatest value of a dtype of one or two bytes stands, or the first NaN; the first of several. The
// value and the reverse of its place are one number, of which the greatest is wanted: half the registers and
// a third of the instructions of what follows.
template <typename T> struct gk_narrow_index : gk_place {
    typedef T Element;
    typedef uint64_t State;
    static constexpr int OPERANDS = 1, PLACES = 48;
    static constexpr uint64_t LAST = ((uint64_t)1 << PLACES) - 1;
    __device__ static State start() { return 0; }
    __device__ static T padding(T x) { return x; }
    __device__ void take(State &state, T x, T, size_t i) const { join(state, ((uint64_t)gk_short_rank(x, order) << PLACES) + (LAST - i)); }
    __device__ static void join(State &state, State other) { state = other > state ? other : state; }
    template <class HOW> __device__ static int64_t result(const HOW &, State state) { return (int64_t)(LAST - (state & LAST)); }
};

// An index stays what it is where no element that comes later is greater, as in most vectors of a long row, and to see that of
// a whole vector is a third of the instructions. Nor has an element a say that is less than what any lane has found: of
// the lanes that are here, as many as may be, or each would have found its own greatest ones first.
template <class Op> constexpr bool gk_looks_first = false;
template <typename T> constexpr bool gk_looks_first<gk_narrow_index<T>> = true;
__device__ static inline uint32_t gk_greatest_of_lanes(uint32_t rank) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ / 10 >= 80
    return __reduce_max_sync(__activemask(), rank); // of 8.0 and up; no PTX of it is built for this alone
#else
    return rank;
#endif
}
template <typename T> struct gk_look {
    uint32_t least;

    __device__ explicit gk_look(uint64_t state) : least(gk_greatest_of_lanes(rank_of(state))) {}
    __device__ static uint32_t rank_of(uint64_t state) { return (uint32_t)(state >> gk_narrow_index<T>::PLACES); }
    __device__ bool may_change(const gk_narrow_index<T> &op, uint64_t state, const gk_vector<T> &x) const {
        const uint32_t greatest = gk_greatest_rank(x, op.order);
        return greatest >= least && (greatest > rank_of(state) || state == 0); // 0: nothing yet
    }
};

// Of each element of a vector its key, by number: `number` and those that follow, STEP apart.
template <int STEP, typename T, int COUNT, class DO>
__device__ static inline void gk_each_key(const gk_narrow_index<T> &op, const gk_vector<T, COUNT> &x, uint32_t number, const DO &take) {
    gk_each_rank(x, op.order, GK_ZEROS_ALIKE, [&](int e, uint32_t ranks, int k) { take(e, gk_key<T>(ranks, k, number + STEP * e)); });
}

// Where the greatest value stands, or the first NaN; the first of several.
template <typename T, typename A> struct gk_extreme_index : gk_place {
    typedef T Element;
    typedef gk_found<A> State;
    static constexpr int OPERANDS = 1;
    __device__ static State start() {
        A lowest;
        gk_set_lowest(&lowest);
        return {lowest, GK_NOWHERE};
    }
    __device__ static T padding(T x) { return x; }
    // A thread comes by its elements from the first to the last.
    __device__ void take(State &state, T x, T, size_t i) const {
        A value = gk_ordered<T>(gk_as<A>(x), order);
        if (!(value <= state.value) && state.value == state.value)
            state = {value, (int64_t)i};
    }
    __device__ static void join(State &state, State other) {
        bool nan = state.value != state.value, other_nan = other.value != other.value;
        bool same = nan ? other_nan : other.value == state.value;
        if (same ? other.index < state.index : !nan && (other_nan || other.value > state.value))
            state = other;
    }
    // Nothing was greater than the lowest value there is: all are that, the first one too.
    template <class HOW> __device__ static int64_t result(const HOW &, State state) { return state.index == GK_NOWHERE ? 0 : state.index; }
};

#endif
