// A matrix and a few vectors: a product whose M or N is 16 at most. Each element of the matrix is used so
// few times that the product is as fast as the matrix is read, whatever else is done. So nothing of the
// matrix goes through shared memory: each thread reads 16 bytes at a time, straight into its registers, and
// the vectors, which all threads need, lie in shared memory. Where the result is short, blocks share the
// matrix along K, and the last one to arrive adds their sums in order: the same bits every time.
//
// What counts is how many loads are under way. Lines that stand side by side are read eight rows ahead, with
// nothing in between that waits, and a warp takes every eighth row, so that a block is narrow and there are
// blocks enough; so many of them as multiprocessors have places for, in one wave, since a second one that is
// not full costs as much as one that is. On an H200, a float32 matrix of 16384^2, GB/s, own / cuBLAS (a copy
// moves 4246): lines side by side, one vector 4402 / 4425, four 4331 / 2973, 16 1866 / 2416; lines that are
// runs in memory 4368 / 4209, 3830 / 2051, 1399 / 2061. bfloat16: 4330 / 4396 and 4228 / 4315 for one, 3807 /
// 4401 and 2902 / 3045 for four.
#include "matmul/matmul.cuh"

#define GK_VECTORS_MOST 16
#define GK_VECTORS_FEW 4
#define GK_VECTORS_LINES 4 // of a warp, where a line's elements lie side by side
#define GK_VECTORS_THREADS 256
#define GK_VECTORS_WARPS (GK_VECTORS_THREADS / 32)
// Blocks a multiprocessor, by the most vectors and the bytes of an element: what their sums leave room for.
#define GK_VECTORS_BLOCKS(most, size) ((most) == 1 ? 4 : (most) <= GK_VECTORS_FEW ? 3 : (size) <= 4 ? 2 : 1)
#define GK_VECTORS_KEPT 4096 // elements of the vectors in shared memory at a time

#if defined(GK_HOST_PART) || !defined(GK_ROWS_ONLY)
// The matrix by its lines, of which each makes one element of the result with each vector: rows of A, or
// columns of B. Steps are in elements.
typedef struct gk_vectors_work {
    void *c;
    const void *matrix, *vectors;
    uint64_t lines, length;
    uint64_t across, along;               // from a line to the next, and from its element to the next
    uint64_t vector_across, vector_along; // the same of the vectors
    uint64_t c_line, c_vector;            // from a line's result to the next line's, and vector's
    uint64_t share;                       // elements of a line for each of the blocks that share it
    unsigned count, parts;                // vectors, and blocks that share lines
    unsigned *arrivals;                   // a counter for each group of lines
    void *partials;
} gk_vectors_work;
#endif

#ifdef GK_HOST_PART

// Where lines lie side by side, a thread has so many: 16 bytes' worth, or four where they are multiplied
// by many vectors, whose sums take registers.
static uint64_t vectors_width(size_t size, unsigned most) {
    return most > GK_VECTORS_FEW && size < 4 ? 4 : 16 / size;
}

// Blocks that share each line. The fewest make one wave, if that leaves no more than a fifth of the places
// empty; or else there are four waves, of which the last one may.
static uint64_t vectors_parts(uint64_t groups, uint64_t places) {
    uint64_t one_wave = places / groups;
    return one_wave * groups * 5 >= places * 4 ? one_wave : (4 * places + groups - 1) / groups;
}

// What the host decides before a launch: `each` lines a block, in so many groups.
typedef struct vectors_plan {
    gk_vectors_work work;
    uint64_t groups, each;
    size_t carried; // bytes of a sum
} vectors_plan;

static vectors_plan plan_vectors(const gk_gemm *gemm, unsigned most) {
    enum { MULTIPROCESSORS = 132, LEAST_SHARE = 1024 };
    bool on_the_left = gemm->n <= gemm->m; // the matrix is A
    uint64_t a_leading = (uint64_t)gemm->a_leading, b_leading = (uint64_t)gemm->b_leading;
    uint64_t a_row = gemm->a_transposed ? 1 : a_leading, a_column = gemm->a_transposed ? a_leading : 1;
    uint64_t b_row = gemm->b_transposed ? 1 : b_leading, b_column = gemm->b_transposed ? b_leading : 1;
    gk_vectors_work work = {.c = gemm->c, .length = (uint64_t)gemm->k};
    work.matrix = on_the_left ? gemm->a : gemm->b;
    work.vectors = on_the_left ? gemm->b : gemm->a;
    work.lines = (uint64_t)(on_the_left ? gemm->m : gemm->n);
    work.count = (unsigned)(on_the_left ? gemm->n : gemm->m);
    work.across = on_the_left ? a_row : b_column;
    work.along = on_the_left ? a_column : b_row;
    work.vector_across = on_the_left ? b_column : a_row;
    work.vector_along = on_the_left ? b_row : a_column;
    work.c_line = on_the_left ? (uint64_t)gemm->n : 1;
    work.c_vector = on_the_left ? 1 : (uint64_t)gemm->n;
    size_t size = gk_dtype_size((gk_dtype)gemm->dtype);
    uint64_t each = work.along == 1 ? GK_VECTORS_WARPS * GK_VECTORS_LINES : 32 * vectors_width(size, most);
    uint64_t groups = (work.lines + each - 1) / each, parts = vectors_parts(groups, MULTIPROCESSORS * GK_VECTORS_BLOCKS(most, size));
    uint64_t at_most = (work.length + LEAST_SHARE - 1) / LEAST_SHARE;
    parts = parts < at_most ? parts : at_most;
    work.share = ((work.length + parts - 1) / parts + 15) / 16 * 16; // in whole vectors
    work.parts = (unsigned)((work.length + work.share - 1) / work.share);
    return (vectors_plan){work, groups, each, size < 4 ? 4 : size};
}

static gk_room room_of_vectors(const vectors_plan *plan) {
    const gk_vectors_work *work = &plan->work;
    size_t counters = (plan->groups * sizeof(unsigned) + 255) / 256 * 256;
    size_t sums = plan->groups * work->parts * plan->each * work->count;
    return work->parts == 1 ? (gk_room){0, 0} : (gk_room){counters + sums * plan->carried, counters};
}

static gk_status prepare_vectors(gk_prepared *prepared, unsigned most, gk_error *error) {
    vectors_plan plan = plan_vectors(prepared->problem, most);
    if (plan.groups * plan.work.parts > INT32_MAX)
        return gk_fail(error, GK_VALUE_ERROR, "no kernel for vectors has that many blocks: %llu", (unsigned long long)(plan.groups * plan.work.parts));
    plan.work.arrivals = prepared->workspace;
    plan.work.partials = prepared->workspace ? (char *)prepared->workspace + room_of_vectors(&plan).zeroed : NULL;
    _Static_assert(sizeof plan.work <= GK_PREPARED_BYTES, "it has to fit");
    memcpy(prepared->values, &plan.work, sizeof plan.work);
    prepared->arguments[0] = prepared->values;
    prepared->blocks = (unsigned)(plan.groups * plan.work.parts);
    return GK_OK;
}

#define GK_VECTORS_HOST(variant, most)                                                             \
    static gk_room variant##_workspace(const void *problem) {                                      \
        vectors_plan plan = plan_vectors(problem, most);                                           \
        return room_of_vectors(&plan);                                                             \
    }                                                                                              \
    static gk_status variant##_prepare(gk_backend *backend, gk_prepared *prepared, gk_error *error) { \
        (void)backend;                                                                             \
        return prepare_vectors(prepared, most, error);                                             \
    }
GK_VECTORS_HOST(vector, 1)
GK_VECTORS_HOST(few_vectors, GK_VECTORS_FEW)
GK_VECTORS_HOST(vectors, GK_VECTORS_MOST)

#endif

#define GK_VECTORS_ROW(variant, dtype, symbol, note)                                               \
    GK_ROW(matmul_##variant, variant, dtype, symbol, note, .tile_rows = 1, .tile_columns = 1, .threads = GK_VECTORS_THREADS, .alignment = 16, \
           .workspace = variant##_workspace, .prepare = variant##_prepare)
#define GK_VECTOR_NOTE  "for M or N of 1: as fast as the matrix is read; K shared out where the result is short"
#define GK_VECTORS_NOTE "for M or N up to 16: each element of the matrix is read once for all of them"
#define GK_FEW_NOTE     "for M or N up to 4: fewer sums a thread, and so more loads under way"

GK_VECTORS_ROW(vectors, float32, gk_matmul_vectors_f32, GK_VECTORS_NOTE)
GK_VECTORS_ROW(vectors, float64, gk_matmul_vectors_f64, GK_VECTORS_NOTE)
GK_VECTORS_ROW(vectors, float16, gk_matmul_vectors_f16, GK_VECTORS_NOTE)
GK_VECTORS_ROW(vectors, bfloat16, gk_matmul_vectors_bf16, GK_VECTORS_NOTE)
GK_VECTORS_ROW(few_vectors, float32, gk_matmul_few_vectors_f32, GK_FEW_NOTE)
GK_VECTORS_ROW(few_vectors, float64, gk_matmul_few_vectors_f64, GK_FEW_NOTE)
GK_VECTORS_ROW(few_vectors, float16, gk_matmul_few_vectors_f16, GK_FEW_NOTE)
GK_VECTORS_ROW(few_vectors, bfloat16, gk_matmul_few_vectors_bf16, GK_FEW_NOTE)
GK_VECTORS_ROW(vector, float32, gk_matmul_vector_f32, GK_VECTOR_NOTE)
GK_VECTORS_ROW(vector, float64, gk_matmul_vector_f64, GK_VECTOR_NOTE)
GK_VECTORS_ROW(vector, float16, gk_matmul_vector_f16, GK_VECTOR_NOTE)
GK_VECTORS_ROW(vector, bfloat16, gk_matmul_vector_bf16, GK_VECTOR_NOTE)
GK_MAY_SPILL(gk_matmul_vectors_f16) // a few bytes, once

#ifndef GK_ROWS_ONLY

// A piece of the vectors in shared memory, in the type that sums are carried in.
template <typename T> struct vectors_piece {
    typedef typename gk_traits<T>::wide W;
    W *at;          // [vector][element]
    unsigned pitch; // elements of each that there is room for
    __device__ void fetch(const gk_vectors_work &work, uint64_t first, unsigned length) {
        __syncthreads(); // all have read the piece before
        for (unsigned e = threadIdx.x; e < work.count * length; e += GK_VECTORS_THREADS) {
            // Neighbouring threads neighbours in memory.
            unsigned v = work.vector_along == 1 ? e / length : e % work.count, i = work.vector_along == 1 ? e % length : e / work.count;
            at[v * pitch + i] = gk_as<W>(((const T *)work.vectors)[v * work.vector_across + (first + i) * work.vector_along]);
        }
        __syncthreads();
    }
};

// Where a block's sums go: to C, or to its part of the partial ones.
template <typename T> struct vectors_sums {
    typedef typename gk_traits<T>::wide W;
    const gk_vectors_work &work;
    uint64_t first; // line
    unsigned each;  // lines a block
    W *partials;    // of the group, all parts
    unsigned part;

    __device__ void to_c(unsigned line, unsigned v, W sum) {
        if (first + line < work.lines)
            ((T *)work.c)[(first + line) * work.c_line + v * work.c_vector] = gk_as<T>(sum);
    }
    __device__ void put(unsigned line, unsigned v, W sum) {
        if (work.parts == 1)
            to_c(line, v, sum);
        else
            partials[((size_t)part * work.count + v) * each + line] = sum;
    }
    // The last block of a group adds all parts.
    __device__ void join(unsigned *arrivals) {
        if (work.parts == 1 || !gk_is_last(arrivals, work.parts))
            return;
        for (unsigned o = threadIdx.x; o < each * work.count; o += GK_VECTORS_THREADS) {
            W sum = 0;
            for (unsigned p = 0; p < work.parts; p++)
                sum += __ldcg(&partials[(size_t)p * work.count * each + o]);
            to_c(o % each, o / each, sum);
        }
    }
};

template <typename T, typename W>
__device__ static inline void add_products(W &sum, const gk_vector<T> &elements, const W *vector) {
#pragma unroll
    for (int e = 0; e < gk_vector<T>::WIDTH; e++)
        sum += gk_as<W>(elements[e]) * vector[e];
}

// Lines whose elements lie side by side: a warp reads four lines, and its lanes add up what they have.
template <typename T, int MOST>
__device__ static inline void vectors_along(const gk_vectors_work &work, vectors_sums<T> &sums, vectors_piece<T> piece, uint64_t begin, uint64_t end) {
    enum { LINES = GK_VECTORS_LINES, WIDTH = gk_vector<T>::WIDTH, STEP = GK_WARP * WIDTH };
    typedef typename gk_traits<T>::wide W;
    unsigned lane = threadIdx.x % GK_WARP, mine = threadIdx.x / GK_WARP * LINES;
    const T *line[LINES];
    W sum[LINES][MOST] = {};
#pragma unroll
    for (int l = 0; l < LINES; l++) { // beyond the last one, that one once more
        uint64_t at = sums.first + mine + l;
        line[l] = (const T *)work.matrix + (at < work.lines ? at : work.lines - 1) * work.across;
    }
    for (uint64_t from = begin; from < end; from += piece.pitch) {
        unsigned length = end - from < piece.pitch ? (unsigned)(end - from) : piece.pitch;
        piece.fetch(work, from, length);
        unsigned whole = length / WIDTH * WIDTH;
        for (unsigned i = lane * WIDTH; i < whole; i += STEP) {
            gk_vector<T> elements[LINES];
#pragma unroll
            for (int l = 0; l < LINES; l++)
                elements[l] = gk_load_once(line[l] + from + i);
#pragma unroll
            for (int v = 0; v < MOST; v++) {
                if (v == work.count)
                    break;
#pragma unroll
                for (int l = 0; l < LINES; l++)
                    add_products(sum[l][v], elements[l], piece.at + v * piece.pitch + i);
            }
        }
        for (unsigned i = whole + lane; i < length; i += GK_WARP)
#pragma unroll
            for (int v = 0; v < MOST; v++)
#pragma unroll
                for (int l = 0; l < LINES; l++)
                    if (v < work.count)
                        sum[l][v] += gk_as<W>(line[l][from + i]) * piece.at[v * piece.pitch + i];
    }
#pragma unroll
    for (int v = 0; v < MOST; v++)
#pragma unroll
        for (int l = 0; l < LINES; l++)
            if (v < work.count) {
                for (int far = GK_WARP / 2; far > 0; far /= 2)
                    sum[l][v] += __shfl_xor_sync(GK_ALL_LANES, sum[l][v], far);
                if (lane == 0)
                    sums.put(mine + l, v, sum[l][v]);
            }
}

// How many lines a thread has where they lie side by side, as vectors_width() says on the host, and how many
// loads are under way before the first of them is multiplied.
template <typename T, int MOST> struct vectors_width {
    static constexpr int COUNT = MOST > GK_VECTORS_FEW && sizeof(T) < 4 ? 4 : 16 / (int)sizeof(T);
    static constexpr int AHEAD = MOST > GK_VECTORS_FEW ? 4 : 8;
};

// The elements that are left, and zeros.
template <typename V, typename T> __device__ static inline V load_some(const T *at, uint64_t left) {
    if (left >= V::WIDTH)
        return *(const V *)at;
    T elements[V::WIDTH];
#pragma unroll
    for (int e = 0; e < V::WIDTH; e++)
        elements[e] = e < left ? at[e] : gk_as<T>(0.0f);
    V packed;
    packed.pack(elements);
    return packed;
}

// What a thread has of lines that lie side by side.
template <typename T, int MOST> struct vectors_column {
    enum { WIDTH = vectors_width<T, MOST>::COUNT, AHEAD = vectors_width<T, MOST>::AHEAD };
    typedef typename gk_traits<T>::wide W;
    typedef gk_vector<T, WIDTH> some;
    W sum[WIDTH][MOST];

    __device__ void add(const some &elements, const vectors_piece<T> &piece, unsigned i, unsigned count) {
#pragma unroll
        for (int v = 0; v < MOST; v++) {
            if (v == count)
                break;
            W factor = piece.at[v * piece.pitch + i];
#pragma unroll
            for (int e = 0; e < WIDTH; e++)
                sum[e][v] += gk_as<W>(elements[e]) * factor;
        }
    }
    // Elements i, i + WARPS, ... of the piece; `left` lines are there.
    __device__ void add_piece(const T *first, uint64_t along, uint64_t left, const vectors_piece<T> &piece, unsigned i, unsigned length, unsigned count) {
        enum { WARPS = GK_VECTORS_WARPS };
        for (; left >= WIDTH && i + (AHEAD - 1) * WARPS < length; i += AHEAD * WARPS) {
            some elements[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                elements[u] = gk_load_once<WIDTH>(first + (i + u * WARPS) * along);
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                add(elements[u], piece, i + u * WARPS, count);
        }
        for (; left > 0 && i < length; i += WARPS)
            add(load_some<some>(first + i * along, left), piece, i, count);
    }
};

// Lines that lie side by side: a thread has a few of them, and a warp each eighth of their elements. What the
// warps have of a line is added up where the vectors were.
template <typename T, int MOST>
__device__ static inline void vectors_across(const gk_vectors_work &work, vectors_sums<T> &sums, vectors_piece<T> piece, uint64_t begin, uint64_t end) {
    enum { WIDTH = vectors_width<T, MOST>::COUNT, EACH = GK_WARP * WIDTH };
    typedef typename gk_traits<T>::wide W;
    static_assert(GK_VECTORS_WARPS * EACH <= GK_VECTORS_KEPT, "the warps' sums have room there");
    unsigned mine = threadIdx.x % GK_WARP * WIDTH, warp = threadIdx.x / GK_WARP;
    uint64_t at = sums.first + mine, left = at < work.lines ? work.lines - at : 0;
    vectors_column<T, MOST> column = {};
    for (uint64_t from = begin; from < end; from += piece.pitch) {
        unsigned length = end - from < piece.pitch ? (unsigned)(end - from) : piece.pitch;
        piece.fetch(work, from, length);
        column.add_piece((const T *)work.matrix + at + from * work.along, work.along, left, piece, warp, length, work.count);
    }
#pragma unroll
    for (int v = 0; v < MOST; v++) {
        if (v == work.count)
            break;
        __syncthreads();
#pragma unroll
        for (int e = 0; e < WIDTH; e++)
            piece.at[warp * EACH + mine + e] = column.sum[e][v];
        __syncthreads();
        for (unsigned l = threadIdx.x; l < EACH; l += GK_VECTORS_THREADS) {
            W sum = 0;
            for (unsigned w = 0; w < GK_VECTORS_WARPS; w++)
                sum += piece.at[w * EACH + l];
            sums.put(l, v, sum);
        }
    }
}

template <typename T, int MOST> __device__ static inline void matmul_vectors(const gk_vectors_work &work) {
    typedef typename gk_traits<T>::wide W;
    enum { KEPT = GK_VECTORS_KEPT, ALONG = GK_VECTORS_WARPS * GK_VECTORS_LINES, ACROSS = GK_WARP * vectors_width<T, MOST>::COUNT };
    __shared__ __align__(16) W kept[KEPT];
    unsigned part = blockIdx.x % work.parts, group = blockIdx.x / work.parts;
    unsigned each = work.along == 1 ? ALONG : ACROSS;
    uint64_t begin = part * work.share, end = begin + work.share < work.length ? begin + work.share : work.length;
    W *partials = (W *)work.partials + (size_t)group * work.parts * work.count * each;
    vectors_sums<T> sums = {work, (uint64_t)group * each, each, partials, part};
    vectors_piece<T> piece = {kept, KEPT / work.count / 16 * 16};
    if (work.along == 1)
        vectors_along<T, MOST>(work, sums, piece, begin, end);
    else
        vectors_across<T, MOST>(work, sums, piece, begin, end);
    sums.join(work.arrivals + group);
}

#define GK_VECTORS(symbol, T, most)                                                                \
    extern "C" __global__ void __launch_bounds__(GK_VECTORS_THREADS, GK_VECTORS_BLOCKS(most, sizeof(T))) symbol(gk_vectors_work work) { \
        matmul_vectors<T, most>(work);                                                             \
    }
#define GK_VECTORS_OF(name, T)                                                                     \
    GK_VECTORS(gk_matmul_vectors_##name, T, GK_VECTORS_MOST)                                       \
    GK_VECTORS(gk_matmul_few_vectors_##name, T, GK_VECTORS_FEW)                                    \
    GK_VECTORS(gk_matmul_vector_##name, T, 1)
GK_VECTORS_OF(f32, float)
GK_VECTORS_OF(f64, double)
GK_VECTORS_OF(f16, float16)
GK_VECTORS_OF(bf16, bfloat16)

#endif
