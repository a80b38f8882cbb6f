// out[i] = f(a[i], b[i], ...) for every operation, dtype and layout: five kernels an operation and
// dtype, of contiguous arrays, of arrays of any strides, of those into results whose last axis is
// contiguous, of vectors or elements that a thread finds one by one, and of arrays that are turned (turned.cuh). What is read and written is all the time that they take, as in add.cu, whose last step
// they share.
#ifndef GK_ELEMENTWISE_CUH
#define GK_ELEMENTWISE_CUH

#include "device.cuh"
#include "elementwise/gathered.cuh"
#include "elementwise/turned.cuh"
#include "strided.cuh"

#define GK_ELEMENTWISE_VECTORS 2   // of a thread, along each operand
#define GK_ELEMENTWISE_SINGLES 8   // of a thread, where elements are taken one by one
// Blocks a multiprocessor, at least: of bytes the compiler would give sixteen elements a thread more registers.
#define GK_ELEMENTWISE_RESIDENT(bytes) ((bytes) == 1 ? 6 : 1)

// rows ---------------------------------------------------------------------------------------------

#define GK_ELEMENTWISE_ROW(op, variant, dtype, symbol, each, aligned, arguments, note)             \
    GK_NAMED_ROW(op, variant, dtype, symbol, note, .takes = arguments, .tile_rows = 1,             \
                 .tile_columns = (each) * GK_ELEMENTWISE_THREADS,                                  \
                 .threads = GK_ELEMENTWISE_THREADS, .alignment = aligned, .follows = true)
#define GK_STRIDED_ROWS(dtype, name, T, bytes, text, number, op, kernel)                           \
    GK_NAMED_ROW(op##_turned, turned, dtype, gk_##op##_##kernel##_turned, "operands that run along other axes change sides in shared memory, and no copy is made", .takes = GK_TAKES_LAYOUT, .tile_rows = GK_TURNED_SIDE(bytes), .tile_columns = GK_TURNED_SIDE(bytes), .threads = GK_TURNED_THREADS(bytes), .alignment = bytes, .follows = true) \
    GK_ELEMENTWISE_ROW(op##_compact, strided, dtype, gk_##op##_##kernel##_compact, GK_LONE_ELEMENTS, bytes, GK_TAKES_LAYOUT, "of few elements, of rows too short to be shared, or of whole vectors") \
    GK_ELEMENTWISE_ROW(op, strided, dtype, gk_##op##_##kernel##_strided, GK_ELEMENTWISE_SINGLES, bytes, GK_TAKES_LAYOUT, "any strides, 0 for what is broadcast; one index, by multiplications, for eight elements of a row") \
    GK_ELEMENTWISE_ROW(op, GK_JOIN(strided_##name##x, GK_ELEMENTS_IN_16(bytes)), dtype, gk_##op##_##kernel##_strided_wide, GK_ELEMENTS_IN_16(bytes), 16, GK_TAKES_LAYOUT, "128 bits at a time along the result's rows, and along each operand that lies so, wherever its own rows begin and end")
#define GK_THREE_ROWS(dtype, name, T, bytes, text, number, op, kernel)                             \
    GK_STRIDED_ROWS(dtype, name, T, bytes, text, number, op, kernel)                               \
    GK_ELEMENTWISE_ROW(op, GK_JOIN(name##x, GK_ELEMENTS_IN_32(bytes)), dtype, gk_##op##_##kernel##_wide, GK_ELEMENTS_IN_16(bytes) * GK_ELEMENTWISE_VECTORS, 16, GK_TAKES_TERMS, "two 128-bit loads of each operand before the first store")

// Whose kernels serve a dtype: its own, or those of the signed integers of its size.
#define GK_OWN_KERNELS(dtype, name, T, bytes, text, number, op)     GK_THREE_ROWS(dtype, name, T, bytes, text, number, op, name)
#define GK_OWN_STRIDED(dtype, name, T, bytes, text, number, op)     GK_STRIDED_ROWS(dtype, name, T, bytes, text, number, op, name)

#define GK_ROWS_OF_floats(op)  GK_REAL_DTYPES(GK_OWN_KERNELS, op) GK_HALF_DTYPES(GK_OWN_KERNELS, op)
#define GK_ROWS_OF_numbers(op) GK_ROWS_OF_floats(op) GK_SIGNED_DTYPES(GK_OWN_KERNELS, op) GK_UNSIGNED_DTYPES(GK_OWN_KERNELS, op)
#define GK_ROWS_OF_ordered(op) GK_ROWS_OF_numbers(op) GK_BOOLEAN_DTYPES(GK_OWN_KERNELS, op)
#define GK_ROWS_OF_wrapping_numbers(op) GK_ROWS_OF_floats(op) GK_SIGNED_DTYPES(GK_OWN_KERNELS, op) GK_UNSIGNED_AS_SIGNED(GK_THREE_ROWS, op)
#define GK_ROWS_OF_wrapping(op) GK_ROWS_OF_wrapping_numbers(op) GK_BOOLEAN_DTYPES(GK_OWN_KERNELS, op)
#define GK_ROWS_OF_laddered(op)                                                                    \
    GK_REAL_DTYPES(GK_UNLADDERED, op) GK_HALF_DTYPES(GK_UNLADDERED, op)                            \
    GK_SIGNED_DTYPES(GK_OWN_KERNELS, op) GK_UNSIGNED_AS_SIGNED(GK_THREE_ROWS, op) GK_BOOLEAN_DTYPES(GK_OWN_KERNELS, op)
#define GK_UNLADDERED(dtype, ...)      GK_UNLADDERED_##dtype(dtype, __VA_ARGS__)
#define GK_UNLADDERED_float32(...)     GK_OWN_STRIDED(__VA_ARGS__)
#define GK_UNLADDERED_float64(...)     GK_OWN_KERNELS(__VA_ARGS__)
#define GK_UNLADDERED_float16(...)     GK_OWN_STRIDED(__VA_ARGS__)
#define GK_UNLADDERED_bfloat16(...)    GK_OWN_KERNELS(__VA_ARGS__)
#define GK_ROWS_OF(op, operands, dtypes, ...) GK_ROWS_OF_##dtypes(op)

#ifndef GK_ROWS_ONLY

// how a thread walks ---------------------------------------------------------------------------------

// Elements i, i + 1, ... of contiguous arrays and of repeated elements.
template <typename OP, typename T, int WIDTH>
__device__ static inline void gk_load_at(gk_gathered<OP, T, WIDTH> &gathered, const gk_terms &terms, size_t i) {
#pragma unroll
    for (int k = 0; k < OP::OPERANDS; k++)
        gathered.load(terms, k, terms.repeated >> k & 1 ? 0 : (int64_t)(i * sizeof(T)));
}

// Each thread takes vectors of WIDTH elements, a block's width apart, so that the accesses of a warp
// are neighbours. What is left behind the last one is shared out where that is more than a few.
template <typename OP, typename T, int WIDTH, typename R>
__device__ static inline void gk_map_contiguous(R *out, const gk_terms &terms, size_t n) {
    enum { COUNT = GK_ELEMENTWISE_VECTORS, THREADS = GK_ELEMENTWISE_THREADS, FEW = 4 };
    size_t first = ((size_t)blockIdx.x * COUNT * THREADS + threadIdx.x) * WIDTH;
    gk_gathered<OP, T, WIDTH> gathered[COUNT];
    const auto take = [&](size_t i) {
        gk_gathered<OP, T, 1> single;
        gk_load_at(single, terms, i);
        single.store((char *)(out + i));
    };
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        size_t i = first + (size_t)j * THREADS * WIDTH;
        if (i + WIDTH <= n)
            gk_load_at(gathered[j], terms, i);
    }
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        size_t i = first + (size_t)j * THREADS * WIDTH;
        if (i + WIDTH <= n) {
            gathered[j].store((char *)(out + i));
        } else if constexpr (WIDTH > FEW) {
            if (n % WIDTH != 0)
                gk_each_left<WIDTH>(n, i, (size_t)gridDim.x * (COUNT * THREADS * WIDTH), take);
        } else {
#pragma unroll 1
            for (; i < n; i++)
                take(i);
        }
    }
}

// Elements from `i` on, one by one, where they end a row or come between others: each is found from the one before. Of
// no four does more than one end both the last axis and the one before it, behind which all axes count.
template <typename T, int WIDTH>
__device__ static inline gk_vector<T, WIDTH> gk_take_singly(const T *array, const gk_own_axes &axes, uint32_t i, gk_own_place place) {
    enum { GROUP = WIDTH < 4 ? WIDTH : 4 };
    const int32_t step = axes.axis[0].stride, length = (int32_t)axes.axis[0].length.value;
    const int32_t jump = (axes.ndim > 1 ? axes.axis[1].stride : 0) - length * step;
    T elements[WIDTH];
#pragma unroll
    for (int first = 0; first < WIDTH; first += GROUP) {
        const uint32_t ahead = place.room + (place.rows - 1) * length;
        gk_own_place beyond = place;
        if (axes.ndim > 2 && ahead <= GROUP)
            beyond = gk_find_own(axes, i + first + ahead);
#pragma unroll
        for (int j = 0; j < GROUP; j++) {
            elements[first + j] = gk_read<T>(array + place.at);
            place.at += step;
            if (--place.room == 0) {
                place.room = length;
                place.at += jump;
                place.rows--;
                if (j + 1 == ahead)
                    place = beyond;
            }
        }
    }
    gk_vector<T, WIDTH> taken;
    taken.pack(elements);
    return taken;
}

// The same of rows no shorter than a vector, of which no two end in it. Of few elements single loads are fewer instructions
// than what puts them together from the vectors that they lie in.
template <typename T> __device__ static inline gk_vector<T> gk_take_few(const T *array, const gk_own_axes &axes, uint32_t i, const gk_own_place &place) {
    enum { WIDTH = gk_vector<T>::WIDTH };
    const int32_t step = axes.axis[0].stride, room = (int32_t)place.room;
    const int32_t next = room < WIDTH ? gk_find_next(axes, i, place) - room * step : place.at;
    T elements[WIDTH];
#pragma unroll
    for (int j = 0; j < WIDTH; j++)
        elements[j] = gk_read<T>(array + ((j < room ? place.at : next) + j * step));
    gk_vector<T> taken;
    taken.pack(elements);
    return taken;
}

// Elements [first, end) of a vector of a row, of which `from` would be the first: they lie side by side, or are one.
template <typename T> __device__ static inline gk_vector<T> gk_take_part(const T *from, bool is_run, int first, int end) {
    return is_run ? gk_load_part(from, first, end) : gk_repeated<T, gk_vector<T>::WIDTH>(gk_read<T>(from));
}

// A vector of elements from `i` on, in the widest way that they lie in: what is side by side, or one element for all, of
// a row or of two. No vector is read that reaches beyond the array.
template <typename T> __device__ static inline gk_vector<T> gk_take_own(const T *array, const gk_own_axes &axes, uint32_t i) {
    enum { WIDTH = gk_vector<T>::WIDTH, FEW = 4 };
    const gk_own_place place = gk_find_own(axes, i);
    const bool is_run = axes.axis[0].stride == 1, is_one = axes.axis[0].stride == 0;
    const int room = place.room < WIDTH ? (int)place.room : WIDTH;
    const T *from = array + place.at;
    if (is_run && room == WIDTH && (uintptr_t)from % 16 == 0)
        return *(const gk_vector<T> *)from;
    if (WIDTH <= FEW && axes.axis[0].length.value >= WIDTH)
        return gk_take_few(array, axes, i, place);
    if (!(is_run || is_one) || axes.axis[0].length.value < WIDTH)
        return gk_take_singly<T, WIDTH>(array, axes, i, place);
    const int32_t next = room < WIDTH ? gk_find_next(axes, i, place) : place.at, last = axes.reach - 2 * WIDTH;
    if (is_run && (place.at > last || next > last))
        return gk_take_singly<T, WIDTH>(array, axes, i, place);
    const gk_vector<T> front = gk_take_part(from, is_run, 0, room);
    if (room == WIDTH)
        return front;
    return gk_joined(front, gk_take_part(array + next - (is_run ? room : 0), is_run, room, WIDTH), room);
}

// Elements from `i` on of operands that are walked each by itself, but of those that are `there`.
template <typename OP, typename T, int WIDTH>
__device__ static inline void gk_gather_own(gk_gathered<OP, T, WIDTH> &gathered, const gk_terms &terms, const gk_row_vectors &rows, uint32_t i, uint32_t there) {
#pragma unroll
    for (int k = 0; k < OP::OPERANDS; k++) {
        const T *array = (const T *)terms.data[k];
        if (there >> k & 1)
            continue;
        if (!array)
            gathered.repeat(k, gk_read<T>(&terms.value[k]));
        else if constexpr (WIDTH > 1)
            gathered.operand[k] = gk_take_own<T>(array, rows.array[k + 1], i);
        else
            gathered.operand[k] = *(const gk_vector<T, 1> *)(array + gk_find_own(rows.array[k + 1], i).at);
    }
}

// WIDTH results along the result's rows, the first of which has the number `i`; and, of elements of less than a word, those that a
// thread has a period on, for which what is the same of an operand is not looked for again.
template <typename OP, typename T, int WIDTH>
__device__ static inline void gk_map_own(char *out, const gk_terms &terms, const gk_row_vectors &rows, uint32_t i) {
    typedef typename OP::template Result<T>::type R;
    gk_gathered<OP, T, WIDTH> gathered;
    gk_gather_own(gathered, terms, rows, i, 0);
    gathered.store(out);
    if constexpr (sizeof(T) < sizeof(uint32_t)) {
        const uint32_t step = rows.period.value * WIDTH;
#pragma unroll 1
        for (uint32_t number = 1; number < rows.again && i + step + WIDTH <= rows.length; number++) {
            i += step;
            out += (size_t)step * sizeof(R);
            gk_gather_own(gathered, terms, rows, i, rows.comes_again);
            gathered.store(out);
        }
    }
}
// A single one behind them.
template <typename OP, typename T> __device__ static inline void gk_map_single(char *out, const gk_terms &terms, const gk_row_vectors &rows, uint32_t i) {
    gk_gathered<OP, T, 1> gathered;
    gk_gather_own(gathered, terms, rows, i, 0);
    gathered.store(out);
}

// This block's number. Where a row is read several times, a few blocks of each time come one after another, so that
// what they have of it is in the cache but for the first time; what is no block of the row's is the last number.
__device__ static inline uint32_t gk_block_of(const gk_row_vectors &rows) {
    if (rows.times.value < 2)
        return blockIdx.x;
    const uint32_t chunk = blockIdx.x / GK_CHUNK_BLOCKS, part = gk_divide(chunk, rows.times), row = gk_divide(part, rows.chunks);
    const uint32_t time = chunk + (row - part) * rows.times.value; // of all rows'
    const uint32_t block = (part - row * rows.chunks.value) * GK_CHUNK_BLOCKS + blockIdx.x % GK_CHUNK_BLOCKS;
    return block < rows.blocks ? time * rows.blocks + block : UINT32_MAX / GK_ELEMENTWISE_THREADS;
}

// The same where all of an operand is one line: elements evenly apart, or one for all.
template <typename OP, typename T, int WIDTH>
__device__ static inline void gk_load_straight(gk_gathered<OP, T, WIDTH> &gathered, const gk_terms &terms, const gk_row_vectors &rows, uint32_t i) {
#pragma unroll
    for (int k = 0; k < OP::OPERANDS; k++) {
        const int32_t step = rows.array[k + 1].axis[0].stride;
        const T *from = (const T *)terms.data[k] + (int64_t)i * step;
        if (!terms.data[k])
            gathered.repeat(k, gk_read<T>(&terms.value[k]));
        else if (step == 0)
            gathered.repeat(k, gk_read<T>(from));
        else if (step == 1 && (uintptr_t)from % 16 == 0)
            gathered.operand[k] = *(const gk_vector<T, WIDTH> *)from;
        else if (step == 1 && rows.length - i >= 2 * WIDTH)
            gathered.operand[k] = gk_load_between(from);
        else
            gathered.collect(k, (const char *)from, (int64_t)step * (int)sizeof(T));
    }
}

// Several vectors a thread, a block's width apart: more loads are under way, and blocks are fewer.
template <typename OP, typename T, int WIDTH>
__device__ static inline void gk_map_straight(char *out, const gk_terms &terms, const gk_row_vectors &rows) {
    enum { COUNT = GK_ROW_VECTORS, THREADS = GK_ELEMENTWISE_THREADS };
    typedef typename OP::template Result<T>::type R;
    const uint32_t first = blockIdx.x * (COUNT * THREADS) + threadIdx.x, whole = rows.length / WIDTH;
    gk_gathered<OP, T, WIDTH> gathered[COUNT];
    gk_follow();
#pragma unroll
    for (int j = 0; j < COUNT; j++)
        if (first + j * THREADS < whole)
            gk_load_straight(gathered[j], terms, rows, (first + j * THREADS) * WIDTH);
#pragma unroll
    for (int j = 0; j < COUNT; j++)
        if (first + j * THREADS < whole)
            gathered[j].store(out + (size_t)(first + j * THREADS) * (WIDTH * sizeof(R)));
#pragma unroll 1
    for (int j = 0; j < COUNT; j++)
        if (const uint32_t unit = first + j * THREADS; unit >= whole && unit < rows.count) {
            const uint32_t i = unit + whole * (WIDTH - 1);
            gk_map_single<OP, T>(out + (size_t)i * sizeof(R), terms, rows, i);
        }
}

template <typename OP, typename T, int WIDTH>
__device__ static inline void gk_map_rows(char *out, const gk_terms &terms, const gk_row_vectors &rows) {
    typedef typename OP::template Result<T>::type R;
    if (rows.straight)
        return gk_map_straight<OP, T, WIDTH>(out, terms, rows);
    const uint32_t unit = gk_block_of(rows) * GK_ELEMENTWISE_THREADS + threadIdx.x, whole = rows.length / WIDTH;
    const uint32_t row = gk_divide(unit, rows.in_row), along = unit - row * rows.in_row.value;
    const bool is_vector = along < rows.vectors;
    uint32_t vector = along;
    if (rows.again > 1) // behind the vectors of the threads ahead, which have their periods first
        vector += gk_divide(along, rows.period) * (rows.again - 1) * rows.period.value;
    const uint32_t i = row * rows.length + (is_vector ? vector * WIDTH : along - rows.vectors + whole * WIDTH);
    const bool is_there = unit < rows.count && !(is_vector && vector >= whole);
    out += (int64_t)gk_find_own(rows.array[0], i).at * (int)sizeof(R);
    gk_follow();
    if (!is_there)
        return;
    if (is_vector)
        gk_map_own<OP, T, WIDTH>(out, terms, rows, i);
    else
        gk_map_single<OP, T>(out, terms, rows, i);
}

// Operand k of `count` results: a number of the host's, or elements, of which one that is repeated is
// in the cache.
template <typename OP, typename T, int EACH>
__device__ static inline void gk_load_share(gk_gathered<OP, T, 1> (&gathered)[EACH], const gk_terms &terms, int k, int64_t offset, int64_t apart, int count) {
    const char *from = gk_at(terms, k, offset);
    if (!terms.data[k]) {
#pragma unroll
        for (int j = 0; j < EACH; j++)
            gathered[j].repeat(k, gk_read<T>(&terms.value[k]));
        return;
    }
#pragma unroll
    for (int j = 0; j < EACH; j++, from += apart)
        if (j < count)
            gathered[j].operand[k] = *(const gk_vector<T, 1> *)from;
}

// The same of arrays of any strides, of which a thread takes several elements of a row one by one.
template <typename OP, typename T>
__device__ static inline void gk_map_strided(char *out, const gk_terms &terms, const gk_units &units) {
    enum { EACH = GK_ELEMENTWISE_SINGLES };
    gk_share<OP::OPERANDS + 1> share = gk_share_of<EACH, OP::OPERANDS + 1>(units);
    gk_gathered<OP, T, 1> gathered[EACH];
    gk_follow();
    if (share.count == 0)
        return;
#pragma unroll
    for (int k = 0; k < OP::OPERANDS; k++)
        gk_load_share(gathered, terms, k, share.offset[k + 1], units.apart[k + 1], share.count);
    out += share.offset[0];
#pragma unroll
    for (int j = 0; j < EACH; j++, out += units.apart[0])
        if (j < share.count)
            gathered[j].store(out);
}

// Operand k of `count` vectors of a row: of one element that serves all of a vector it is that element, which
// is put in all places once all loads are on their way.
template <typename OP, typename T, int EACH, int WIDTH>
__device__ static inline void gk_load_lone(gk_gathered<OP, T, WIDTH> (&gathered)[EACH], const gk_compact &compact, int k, const int32_t (&offset)[EACH][OP::OPERANDS + 1], int count) {
    int32_t stride = gk_last_stride<OP::OPERANDS + 1>(compact, k + 1);
    uint64_t words = gk_words(compact, k + 1);
    const typename gk_stored<T>::type *from = (const typename gk_stored<T>::type *)words;
    if (compact.numbers >> (k + 1) & 1) {
#pragma unroll
        for (int j = 0; j < EACH; j++)
            gathered[j].repeat(k, gk_read<T>(&words));
    } else if (WIDTH == 1 || stride == WIDTH) {
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (j < count)
                gathered[j].operand[k] = *(const gk_vector<T, WIDTH> *)(from + offset[j][k + 1]);
    } else if (stride == 0) {
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (j < count)
                gathered[j].hold(k, from[offset[j][k + 1]]);
    } else {
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (j < count)
                gathered[j].collect(k, (const char *)(from + offset[j][k + 1]), (int64_t)(stride / WIDTH) * (int)sizeof(T));
    }
}

// EACH vectors of WIDTH elements, each found by itself: few elements or rows that are too short to be shared, where
// WIDTH is 1, else rows of whole vectors.
template <typename OP, typename T, int EACH, int WIDTH> __device__ static inline void gk_map_lone(const gk_compact &compact) {
    typedef typename OP::template Result<T>::type R;
    int32_t offset[EACH][OP::OPERANDS + 1];
    gk_gathered<OP, T, WIDTH> gathered[EACH];
    int count = gk_lone_elements(compact, offset);
    gk_follow();
    if (count == 0)
        return;
#pragma unroll
    for (int k = 0; k < OP::OPERANDS; k++)
        gk_load_lone(gathered, compact, k, offset, count);
#pragma unroll
    for (int k = 0; k < OP::OPERANDS; k++)
        if (WIDTH > 1 && !(compact.numbers >> (k + 1) & 1) && gk_last_stride<OP::OPERANDS + 1>(compact, k + 1) == 0)
#pragma unroll
            for (int j = 0; j < EACH; j++)
                gathered[j].repeat(k, gathered[j].operand[k][0]);
#pragma unroll
    for (int j = 0; j < EACH; j++)
        if (j < count)
            gathered[j].store((char *)((R *)gk_words(compact, 0) + offset[j][0]));
}

template <typename OP, typename T, int EACH, int WIDTH> __device__ static inline void gk_map_few_or_many(const gk_compact &compact) {
    if (gk_are_single(compact))
        gk_map_lone<OP, T, 1, WIDTH>(compact);
    else
        gk_map_lone<OP, T, EACH, WIDTH>(compact);
}

// By 16 bytes of an operand, by words, where that is more than an element, or one by one.
template <typename OP, typename T> __device__ static inline void gk_map_compact(const gk_compact &compact) {
    enum { VECTOR = 16 / (int)sizeof(T), WORD = 4 / (int)sizeof(T) };
    if (compact.width == VECTOR)
        return gk_map_few_or_many<OP, T, GK_LONE_VECTORS, VECTOR>(compact);
    if constexpr (WORD > 1)
        if (compact.width == WORD)
            return gk_map_few_or_many<OP, T, GK_LONE_ELEMENTS, WORD>(compact);
    gk_map_few_or_many<OP, T, GK_LONE_ELEMENTS, 1>(compact);
}

// the kernels ----------------------------------------------------------------------------------------

#define GK_STRIDED_KERNEL(symbol, units, threads, resident, ...)                                   \
    extern "C" __global__ void __launch_bounds__(threads, resident)                                \
        symbol(char *out, gk_terms terms, units walked) {                                          \
        __VA_ARGS__(out, terms, walked);                                                           \
    }
#define GK_STRIDED_KERNELS(dtype, name, T, bytes, text, number, op)                                \
    GK_STRIDED_KERNEL(gk_##op##_##name##_strided, gk_units, GK_ELEMENTWISE_THREADS, 1, gk_map_strided<op##_of, T>)         \
    GK_STRIDED_KERNEL(gk_##op##_##name##_strided_wide, gk_row_vectors, GK_ELEMENTWISE_THREADS, GK_ELEMENTWISE_RESIDENT(bytes), gk_map_rows<op##_of, T, 16 / (bytes)>) \
    extern "C" __global__ void __launch_bounds__(GK_ELEMENTWISE_THREADS) gk_##op##_##name##_compact(gk_compact compact) { \
        gk_map_compact<op##_of, T>(compact);                                                       \
    }                                                                                              \
    GK_STRIDED_KERNEL(gk_##op##_##name##_turned, gk_turned, GK_TURNED_THREADS(bytes), GK_TURNED_RESIDENT(bytes), gk_map_turned<op##_of, T, GK_TURNED_SIDE(bytes), GK_TURNED_THREADS(bytes)>)
#define GK_THREE_KERNELS(dtype, name, T, bytes, text, number, op)                                  \
    GK_STRIDED_KERNELS(dtype, name, T, bytes, text, number, op)                                    \
    extern "C" __global__ void __launch_bounds__(GK_ELEMENTWISE_THREADS)                           \
        gk_##op##_##name##_wide(op##_of::Result<T>::type *out, gk_terms terms, size_t n) {         \
        gk_follow();                                                                               \
        gk_map_contiguous<op##_of, T, 16 / (bytes)>(out, terms, n);                                \
    }

#define GK_KERNELS_OF_floats(op)  GK_REAL_DTYPES(GK_THREE_KERNELS, op) GK_HALF_DTYPES(GK_THREE_KERNELS, op)
#define GK_KERNELS_OF_wrapping_numbers(op) GK_KERNELS_OF_floats(op) GK_SIGNED_DTYPES(GK_THREE_KERNELS, op)
#define GK_KERNELS_OF_wrapping(op) GK_KERNELS_OF_wrapping_numbers(op) GK_BOOLEAN_DTYPES(GK_THREE_KERNELS, op)
#define GK_KERNELS_OF_numbers(op) GK_KERNELS_OF_wrapping_numbers(op) GK_UNSIGNED_DTYPES(GK_THREE_KERNELS, op)
#define GK_KERNELS_OF_ordered(op) GK_KERNELS_OF_numbers(op) GK_BOOLEAN_DTYPES(GK_THREE_KERNELS, op)
#define GK_KERNELS_OF_laddered(op)                                                                 \
    GK_REAL_DTYPES(GK_UNLADDERED_KERNELS, op) GK_HALF_DTYPES(GK_UNLADDERED_KERNELS, op)            \
    GK_SIGNED_DTYPES(GK_THREE_KERNELS, op) GK_BOOLEAN_DTYPES(GK_THREE_KERNELS, op)
#define GK_UNLADDERED_KERNELS(dtype, ...)   GK_UNLADDERED_KERNELS_##dtype(dtype, __VA_ARGS__)
#define GK_UNLADDERED_KERNELS_float32(...)  GK_STRIDED_KERNELS(__VA_ARGS__)
#define GK_UNLADDERED_KERNELS_float64(...)  GK_THREE_KERNELS(__VA_ARGS__)
#define GK_UNLADDERED_KERNELS_float16(...)  GK_STRIDED_KERNELS(__VA_ARGS__)
#define GK_UNLADDERED_KERNELS_bfloat16(...) GK_THREE_KERNELS(__VA_ARGS__)
#define GK_KERNELS_OF(op, operands, dtypes, ...) GK_KERNELS_OF_##dtypes(op)

#endif
#endif
