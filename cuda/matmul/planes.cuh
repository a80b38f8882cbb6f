// float32 as two planes of float16 or three of bfloat16, which tensor cores multiply with each other: what the
// kernels of steps 14 to 16 and the host have to know of each other.
#ifndef GK_PLANES_CUH
#define GK_PLANES_CUH

#include "device.cuh"
#include "matmul/product.h"

#define GK_PLANES_CHUNK 32 // elements of a line that stand side by side in each plane
#define GK_PLANES_LINES 32 // lines that a block of the first kernels takes
#define GK_PLANES_MEASURED 1024 // elements of each that it measures,
#define GK_PLANES_SPLIT 128 // or splits
#define GK_PLANES_THREADS 256

#define GK_PLANES_SIDE 128 // of a block's tile of C
#define GK_PLANES_BLOCK 384 // its threads: a group of four warps that fetch, and two that multiply
#define GK_PLANES_MULTIPLYING 256
#define GK_PLANES_DEPTH 32 // of its tiles of A and B
#define GK_PLANES_TOTALS (GK_PLANES_SIDE * GK_PLANES_SIDE * 4) // bytes of shared memory
#define GK_HALVES_STAGES 5
#define GK_HALVES_SWIZZLE 128 // bytes of a line that the copy engine brings side by side: two chunks, one of each plane
#define GK_HALVES_SHARED (GK_HALVES_STAGES * 2 * GK_PLANES_SIDE * GK_PLANES_DEPTH * 2 * 2 + GK_PLANES_TOTALS)
#define GK_BFLOATS_STAGES 3
#define GK_BFLOATS_SWIZZLE 64 // one chunk
#define GK_BFLOATS_SHARED (GK_BFLOATS_STAGES * 2 * GK_PLANES_SIDE * GK_PLANES_DEPTH * 3 * 2 + GK_PLANES_TOTALS)

// A product of planes; for capability 9.0 alone, and for any operands.
#define GK_PLANES_ROW(op, variant, symbol, note, shared, ...)                                      \
    GK_ROW(op, variant, float32, symbol, note, .tile_rows = GK_PLANES_SIDE, .tile_columns = GK_PLANES_SIDE, .threads = GK_PLANES_BLOCK, \
           .alignment = 1, .capability = 90, .exact = true, .named = true, .shared_bytes = shared __VA_OPT__(,) __VA_ARGS__)

#if defined(GK_HOST_PART) || !defined(GK_ROWS_ONLY)

// How the product is made, by what the operands hold. Where K is less than this the ways before are not as
// near to the exact product as CUDA cores are.
enum { GK_BY_HALVES, GK_BY_BFLOATS, GK_BY_FLOATS };
enum { GK_HALVES_LEAST_K = 64, GK_BFLOATS_LEAST_K = 16 };

// What the first kernel finds out of a row of A or a column of B. Logarithms are in eighths of a power of two,
// from 0 to GK_PLANES_LOGS.
enum { GK_PLANES_LOGS = 0xfff };
typedef struct gk_measured {
    unsigned top;            // the bits of its largest magnitude
    unsigned bottom;         // GK_PLANES_LOGS less the logarithm of the smallest one that is not 0
    unsigned count;          // of its elements that are not 0,
    unsigned long long logs; // and the sum of their logarithms
} gk_measured;

// And of all lines, for A and for B: the most that is true of any.
typedef struct gk_found {
    unsigned long long drop[2]; // how far its elements that are not 0 are below the largest one, added up
    unsigned range[2];          // from the largest one to the smallest
    unsigned zeros[2];          // among its elements, where not all are
    unsigned odd;               // whether any is infinite or not a number
} gk_found;

// Lines are rows of A and columns of B. Where there is one memory for both, those of A come first.
typedef struct gk_planes_work {
    float *c;
    const float *a, *b;
    uint64_t a_line, a_depth, b_line, b_depth; // from a line to the next, and from an element of a line
    gk_found *found;
    unsigned *arrivals; // of blocks that measure, for 32 lines
    gk_measured *measured;
    int *exponents; // of the lines' largest elements
    uint16_t *a_planes, *b_planes;
    unsigned m, n, k;
    unsigned least; // the first way that comes into question
} gk_planes_work;

#endif

#ifdef GK_HOST_PART

static uint64_t planes_groups(const gk_gemm *gemm) {
    const uint64_t lines = GK_PLANES_LINES;
    return ((uint64_t)gemm->m + lines - 1) / lines + ((uint64_t)gemm->n + lines - 1) / lines;
}

static uint64_t planes_blocks(const gk_gemm *gemm, uint64_t depth) {
    return planes_groups(gemm) * (((uint64_t)gemm->k + depth - 1) / depth);
}

static size_t planes_round(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

// The bytes of `lines` lines in so many planes.
static uint64_t planes_bytes(const gk_gemm *gemm, int64_t lines, uint64_t planes) {
    return (uint64_t)lines * (((uint64_t)gemm->k + GK_PLANES_CHUNK - 1) / GK_PLANES_CHUNK) * GK_PLANES_CHUNK * 2 * planes;
}

// What the room holds, one behind the other; all before the exponents are zeros at first.
typedef struct planes_room {
    size_t arrivals, measured, exponents, a_planes, b_planes, end;
} planes_room;

static planes_room planes_places(const gk_gemm *gemm) {
    planes_room at = {.arrivals = planes_round(sizeof(gk_found))};
    at.measured = at.arrivals + planes_round(planes_groups(gemm) * sizeof(unsigned));
    at.exponents = at.measured + planes_round((uint64_t)(gemm->m + gemm->n) * sizeof(gk_measured));
    at.a_planes = at.exponents + planes_round((uint64_t)(gemm->m + gemm->n) * sizeof(int));
    at.b_planes = at.a_planes + planes_round(planes_bytes(gemm, gemm->m, 3));
    at.end = at.b_planes + planes_bytes(gemm, gemm->n, 3);
    return at;
}

static gk_room planes_workspace(const void *problem) {
    const gk_gemm *gemm = problem;
    planes_room at = planes_places(gemm);
    return gemm->k < GK_BFLOATS_LEAST_K ? (gk_room){0, 0} : (gk_room){at.end, at.exponents};
}

static gk_planes_work planes_work(const gk_gemm *gemm, unsigned char *room, unsigned least) {
    uint64_t a_leading = (uint64_t)gemm->a_leading, b_leading = (uint64_t)gemm->b_leading;
    const planes_room at = planes_places(gemm);
    gk_planes_work work = {
        .c = gemm->c,
        .a = gemm->a,
        .b = gemm->b,
        .a_line = gemm->a_transposed ? 1 : a_leading,
        .a_depth = gemm->a_transposed ? a_leading : 1,
        .b_line = gemm->b_transposed ? b_leading : 1,
        .b_depth = gemm->b_transposed ? 1 : b_leading,
        .m = (unsigned)gemm->m,
        .n = (unsigned)gemm->n,
        .k = (unsigned)gemm->k,
        .least = room ? least : GK_BY_FLOATS,
    };
    if (!room)
        return work;
    work.found = (gk_found *)room;
    work.arrivals = (unsigned *)(room + at.arrivals);
    work.measured = (gk_measured *)(room + at.measured);
    work.exponents = (int *)(room + at.exponents);
    work.a_planes = (uint16_t *)(room + at.a_planes);
    work.b_planes = (uint16_t *)(room + at.b_planes);
    return work;
}

// 32 elements of one plane, or of both, of as many lines as a tile has.
static gk_status planes_map(gk_backend *backend, const gk_gemm *gemm, const gk_planes_work *work, bool is_a, uint64_t planes, gk_tensor_map *map, gk_error *error) {
    uint64_t pitch = planes_bytes(gemm, 1, planes);
    uint32_t swizzle = planes == 2 ? GK_HALVES_SWIZZLE : GK_BFLOATS_SWIZZLE;
    const gk_tensor_box box = {
        .dtype = planes == 2 ? GK_float16 : GK_bfloat16,
        .data = is_a ? work->a_planes : work->b_planes,
        .rows = is_a ? work->m : work->n,
        .columns = pitch / 2,
        .pitch = pitch,
        .box_rows = GK_PLANES_SIDE,
        .box_columns = swizzle / 2,
        .swizzle = swizzle,
    };
    return backend->describe_box(backend, &box, map, error);
}

// The row's own kernel is the one for `least`; what stands behind it are parts, and all leave at once but for
// the one whose way was chosen.
static gk_status planes_prepare(gk_backend *backend, gk_prepared *prepared, unsigned least, gk_error *error) {
    enum { MULTIPROCESSORS = 132, MOST = INT32_MAX / 4 };
    const gk_gemm *gemm = prepared->problem;
    const gk_planes_work work = planes_work(gemm, prepared->workspace, least);
    uint64_t down = ((uint64_t)gemm->m + GK_PLANES_SIDE - 1) / GK_PLANES_SIDE, across = ((uint64_t)gemm->n + GK_PLANES_SIDE - 1) / GK_PLANES_SIDE;
    uint64_t tiles = down * across, measuring = planes_blocks(gemm, GK_PLANES_MEASURED), splitting = planes_blocks(gemm, GK_PLANES_SPLIT);
    gk_status status = GK_OK;
    if (gemm->m > MOST || gemm->n > MOST || gemm->k > MOST || tiles > MOST || splitting > MOST)
        return gk_fail(error, GK_VALUE_ERROR, "float32 products of tensor cores take no more than %d rows, columns or tiles", MOST);
    for (int i = 0; i < 4 && work.least != GK_BY_FLOATS && status == GK_OK; i++)
        status = planes_map(backend, gemm, &work, i % 2 == 0, i < 2 ? 2 : 3, &prepared->maps[i], error);
    _Static_assert(sizeof work <= GK_PREPARED_BYTES, "it has to fit");
    memcpy(prepared->values, &work, sizeof work);
    prepared->arguments[0] = prepared->values;
    for (int i = 0; i < 4; i++)
        prepared->arguments[1 + i] = &prepared->maps[i];
    unsigned blocks = (unsigned)(tiles < MULTIPROCESSORS ? tiles : MULTIPROCESSORS);
    if (work.least != GK_BY_FLOATS) {
        prepared->parts[prepared->part_count++] = (gk_part){"measure", (unsigned)measuring};
        prepared->parts[prepared->part_count++] = (gk_part){"split", (unsigned)splitting};
        prepared->blocks = blocks;
    }
    if (work.least == GK_BY_HALVES)
        prepared->parts[prepared->part_count++] = (gk_part){"bfloats", blocks};
    prepared->parts[prepared->part_count++] = (gk_part){"floats", (unsigned)tiles};
    return status;
}

#endif

#ifndef GK_ROWS_ONLY

// Of an inner product no fewer terms are there than K less the zeros of both lines, and these are no less, in the
// geometric mean, than the product of the largest elements but for `spread`. Of halves what is lost is
// below 2^-50 of that product, so this may be 2^24; and one product is good to 22 bits, so that there have to
// be some to a sum. Three bfloats keep their precision as far as their range goes.
__device__ static inline unsigned gk_way(const gk_planes_work &work) {
    enum { FOR_HALVES = 24 * 8, FOR_BFLOATS = 150 * 8 };
    if (work.least == GK_BY_FLOATS)
        return GK_BY_FLOATS;
    const gk_found &found = *work.found;
    int64_t terms = (int64_t)work.k - found.zeros[0] - found.zeros[1];
    uint64_t spread = found.range[0] + found.range[1];
    if (terms > 0)
        spread = min(spread, (uint64_t)(found.drop[0] + found.drop[1]) / (uint64_t)terms);
    if (found.odd || spread > FOR_BFLOATS)
        return GK_BY_FLOATS;
    return spread > FOR_HALVES || terms < GK_HALVES_LEAST_K ? GK_BY_BFLOATS : work.least;
}

// Two to a power that a float has as a normal number; below those the least.
__device__ static inline float gk_power(int exponent) { return __int_as_float((exponent < -126 ? 1 : exponent + 127) << 23); }

// A line is multiplied by a power of two, so that its largest magnitude is from 2^TOP to below 2^(TOP + 1).
enum { GK_HALVES_TOP = 14, GK_BFLOATS_TOP = 40 };

#endif
#endif
