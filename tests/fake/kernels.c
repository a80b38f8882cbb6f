/* Launches. The kernels of float32 `add` on contiguous arrays, of the naive product and of float32
   sums compute, so that a result shows what order it was made in. The others leave a mark in the
   first byte of what they write. All of them are held to the order of what they use. */
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "layout.h"
#include "matmul/product.h"
#include "reduce/reduction.h"

enum { MARK = 0x5a };

typedef struct kernel {
    char symbol[64];
    struct kernel *next;
} kernel;

/* A launch under way: who runs what. */
typedef struct launch {
    stream *on;
    epoch when;
    const char *symbol;
    unsigned blocks;
    void **arguments;
} launch;

static pointer address_in(const launch *run, int argument) {
    return *(pointer *)run->arguments[argument];
}

static char *touch(const launch *run, pointer first, size_t bytes, access_kind kind) {
    char *memory = fake_touch(run->on, run->when, first, bytes, kind, run->symbol);
    if (!fake_is_of(run->on->context, memory))
        fake_violation("%s uses memory of another context", run->symbol);
    return memory;
}

/* What it reads and writes in pinned memory is seen from the host once the launch is over. */
static char *reads(const launch *run, pointer first, size_t bytes) {
    char *memory = touch(run, first, bytes, READS);
    if (fake_is_pinned(memory, bytes))
        fake_pend(run->when, memory, memory, bytes, READS);
    return memory;
}

static void writes(const launch *run, pointer first, const void *content, size_t bytes) {
    char *memory = touch(run, first, bytes, WRITES);
    if (fake_is_pinned(memory, bytes))
        fake_pend(run->when, memory, content, bytes, WRITES);
    else
        memcpy(memory, content, bytes);
}

static void mark(const launch *run, pointer first) {
    writes(run, first, &(char){MARK}, 1);
}

/* --- elementwise ------------------------------------------------------------------------- */

static void add_f32(const launch *run) {
    size_t count = *(size_t *)run->arguments[3];
    const float *a = (float *)reads(run, address_in(run, 1), count * sizeof *a);
    const float *b = (float *)reads(run, address_in(run, 2), count * sizeof *b);
    float *sum = malloc(count * sizeof *sum);
    for (size_t i = 0; i < count; i++)
        sum[i] = a[i] + b[i];
    writes(run, address_in(run, 0), sum, count * sizeof *sum);
    free(sum);
}

static void of_terms(const launch *run) {
    const gk_terms *terms = run->arguments[1];
    for (int k = 0; k < GK_LAYOUT_OPERANDS; k++)
        if (terms->data[k])
            (void)reads(run, (pointer)terms->data[k], 1);
    mark(run, address_in(run, 0));
}

/* Elements one by one: addresses, unless numbers stand in their places. */
static void of_compact(const launch *run, int operands) {
    const gk_compact *compact = run->arguments[0];
    pointer address;
    for (int k = 1; k <= operands; k++) {
        memcpy(&address, &compact->word[2 * k], sizeof address);
        if (!(compact->numbers >> k & 1))
            (void)reads(run, address, 1);
    }
    memcpy(&address, &compact->word[0], sizeof address);
    mark(run, address);
}

/* Elements of a run are copied, others only touched. */
static void copy_compact(const launch *run) {
    const gk_compact *compact = run->arguments[0];
    size_t bits = strtoul(strrchr(run->symbol, '_') + 1, NULL, 10);
    const uint32_t *strides = &compact->word[4]; /* behind both addresses */
    pointer to, from;
    memcpy(&to, &compact->word[0], sizeof to);
    memcpy(&from, &compact->word[2], sizeof from);
    if (compact->ndim == 0 || (compact->ndim == 1 && strides[0] == 1 && strides[1] == 1))
        writes(run, to, reads(run, from, compact->count * bits / 8), compact->count * bits / 8);
    else
        of_compact(run, 1);
}

static void of_pointers(const launch *run, int operands) {
    for (int k = 1; k <= operands; k++)
        (void)reads(run, address_in(run, k), 1);
    mark(run, address_in(run, 0));
}

static void copy_run(const launch *run) {
    size_t bytes = *(size_t *)run->arguments[2];
    writes(run, address_in(run, 0), reads(run, address_in(run, 1), bytes), bytes);
}

/* --- products ---------------------------------------------------------------------------- */

/* Rows of B mostly lie in one piece. */
static void add_row(float *restrict sums, float left, const float *right, size_t n, size_t step) {
    if (step == 1)
        for (size_t j = 0; j < n; j++)
            sums[j] += left * right[j];
    else
        for (size_t j = 0; j < n; j++)
            sums[j] += left * right[j * step];
}

static void matmul_f32(const launch *run) {
    const gk_product *of = run->arguments[3];
    size_t m = of->m, n = of->n, k = of->k, products = run->blocks / of->tiles, last = products - 1;
    size_t of_a = last * of->a_step + (m - 1) * of->a_row + (k - 1) * of->a_column + 1;
    size_t of_b = last * of->b_step + (k - 1) * of->b_row + (n - 1) * of->b_column + 1;
    size_t of_c = last * of->c_step + m * n;
    const float *a = (float *)reads(run, address_in(run, 1), of_a * sizeof *a);
    const float *b = (float *)reads(run, address_in(run, 2), of_b * sizeof *b);
    float *c = calloc(of_c, sizeof *c);
    for (size_t p = 0; p < products; p++, a += of->a_step, b += of->b_step)
        for (size_t i = 0; i < m; i++)
            for (size_t l = 0; l < k; l++)
                add_row(c + p * of->c_step + i * n, a[i * of->a_row + l * of->a_column],
                        b + l * of->b_row, n, of->b_column);
    writes(run, address_in(run, 0), c, of_c * sizeof *c);
    free(c);
}

/* A structure that begins with the addresses of C and of two operands. */
static void of_work(const launch *run) {
    const pointer *addresses = run->arguments[0];
    (void)reads(run, addresses[1], 1);
    (void)reads(run, addresses[2], 1);
    mark(run, addresses[0]);
}

/* --- reductions -------------------------------------------------------------------------- */

static double sum_of(const float *a, size_t count, size_t step) {
    double total = 0.0;
    for (size_t i = 0; i < count; i++)
        total += (double)a[i * step];
    return total;
}

/* A double at the head of each partial result. */
static void leave_partials(const launch *run, const gk_reduction *how, const float *a) {
    for (size_t i = 0; i < how->segments; i++) {
        size_t first = i * how->segment, left = how->length - first;
        double total = sum_of(a + first, left < how->segment ? left : how->segment, 1);
        size_t place = how->first / how->segment + i;
        writes(run, (pointer)how->partials + place * GK_REDUCE_PARTIAL_BYTES, &total, sizeof total);
    }
}

static void join_partials(const launch *run, const gk_reduction *how) {
    const char *partials =
        reads(run, (pointer)how->partials, how->segments * GK_REDUCE_PARTIAL_BYTES);
    double total = 0.0, one;
    for (size_t i = 0; i < how->segments; i++) {
        memcpy(&one, partials + i * GK_REDUCE_PARTIAL_BYTES, sizeof one);
        total += one;
    }
    writes(run, (pointer)how->result, &(float){(float)total}, sizeof(float));
}

static void sum_f32(const launch *run) {
    const gk_reduction *how = run->arguments[0];
    if (how->stage == GK_REDUCE_FINISH) {
        join_partials(run, how);
        return;
    }
    size_t count = how->outer * how->length * how->inner, results = how->outer * how->inner;
    const float *a = (float *)reads(run, address_in(run, 1), count * sizeof *a);
    if (how->stage == GK_REDUCE_PARTIAL) {
        leave_partials(run, how, a);
        return;
    }
    float *totals = malloc(results * sizeof *totals);
    for (size_t i = 0; i < results; i++) {
        size_t place = i / how->inner * how->length * how->inner + i % how->inner;
        totals[i] = (float)sum_of(a + place, how->length, how->inner);
    }
    if (how->segments > 1)
        mark(run, (pointer)how->partials);
    writes(run, (pointer)how->result, totals, results * sizeof *totals);
    free(totals);
}

/* Of little arrays, what is worth its time: each element's place is looked up by itself. */
enum { MOST_SUMS = 1000, MOST_ADDENDS = 1 << 14 };

/* Bytes to index i along `count` axes, the first of which is `axis` and the next one `step` on. */
static int64_t little_offset(const gk_little *how, int axis, int step, int count, uint32_t i) {
    int64_t offset = 0;
    for (; count > 1; count--, axis += step) {
        uint32_t length = how->axis[axis].length % GK_COMPACT_LENGTHS;
        offset += (int64_t)(i % length) * how->axis[axis].stride;
        i /= length;
    }
    return count > 0 ? offset + (int64_t)i * how->axis[axis].stride : offset;
}

static void of_little(const launch *run) {
    const gk_little *how = run->arguments[0];
    (void)reads(run, (pointer)how->a, 1);
    mark(run, (pointer)how->result);
}

static void sum_little(const launch *run) {
    const gk_little *how = run->arguments[0];
    if (how->results > MOST_SUMS || how->results * how->length > MOST_ADDENDS) {
        of_little(run);
        return;
    }
    for (uint32_t r = 0; r < how->results; r++) {
        int64_t row = little_offset(how, GK_LITTLE_AXES - 1, -1, how->kept, r);
        double total = 0.0;
        for (uint32_t i = 0; i < how->length; i++) {
            int64_t place = row + little_offset(how, 0, 1, how->reduced, i);
            total += (double)*(float *)reads(run, (pointer)how->a + (pointer)place, sizeof(float));
        }
        writes(run, (pointer)how->result + r * sizeof(float), &(float){(float)total},
               sizeof(float));
    }
}

static void of_reduction(const launch *run) {
    const gk_reduction *how = run->arguments[0];
    if (how->stage == GK_REDUCE_FINISH) {
        (void)reads(run, (pointer)how->partials, how->segments * GK_REDUCE_PARTIAL_BYTES);
    } else if (how->outer * how->length * how->inner > 0) {
        (void)reads(run, address_in(run, 1), 1);
        (void)reads(run, address_in(run, 2), 1);
    }
    if (how->stage == GK_REDUCE_PARTIAL)
        mark(run, (pointer)how->partials + how->first / how->segment * GK_REDUCE_PARTIAL_BYTES);
    else
        mark(run, (pointer)how->result);
}

/* --- kernels of users -------------------------------------------------------------------- */

/* What the last launch of one was given: sides, shared memory and the bytes of its arguments. */
unsigned fake_seen_sides[7];
unsigned char fake_seen[1 << 12];

/* A user's kernel tells by its symbol what it takes: user_r8_w8_v4 reads an array, writes one and
   has a number of 4 bytes. What it reads it doubles as float32 into what it writes. */
static void of_user(const launch *run) {
    size_t used = 0;
    pointer from = 0;
    int argument = 0;
    for (const char *next = strchr(run->symbol, '_'); next; next = strchr(next + 1, '_')) {
        size_t bytes = (size_t)atoi(next + 2);
        pointer at = bytes == sizeof at ? address_in(run, argument) : 0;
        memcpy(fake_seen + used, run->arguments[argument++], bytes);
        used += bytes;
        if (next[1] == 'r' && at)
            from = at, (void)reads(run, at, 1);
        if (next[1] != 'w' || !at)
            continue;
        float value = 0.0f;
        if (from)
            memcpy(&value, reads(run, from, sizeof value), sizeof value);
        writes(run, at, &(float){2 * value}, sizeof value);
    }
}

/* --- which kernel is which --------------------------------------------------------------- */

static int starts(const char *symbol, const char *with) {
    return strncmp(symbol, with, strlen(with)) == 0;
}

static int ends(const char *symbol, const char *with) {
    size_t length = strlen(symbol), tail = strlen(with);
    return length >= tail && strcmp(symbol + length - tail, with) == 0;
}

/* Contiguous copies are made also where other kernels do nothing, as the driver's own ones are. */
static int has_copied(const launch *run) {
    if (strcmp(run->symbol, "gk_copy_run") == 0 || strcmp(run->symbol, "gk_copy_shifted_run") == 0)
        copy_run(run);
    else if (starts(run->symbol, "gk_copy_compact"))
        copy_compact(run);
    else
        return 0;
    return 1;
}

static void run_kernel(const launch *run) {
    const char *symbol = run->symbol;
    if (has_copied(run) || !fake_setting("FAKE_KERNELS", 1))
        return;
    if (starts(symbol, "user_")) {
        of_user(run);
        return;
    }
    if (strstr(symbol, "_compact"))
        of_compact(run, starts(symbol, "gk_convert") ? 1 : 2);
    else if (ends(symbol, "_turned"))
        of_terms(run);
    else if (starts(symbol, "gk_add_f32") && !ends(symbol, "_strided") && !ends(symbol, "_wide"))
        add_f32(run);
    else if (strcmp(symbol, "gk_matmul_naive_f32") == 0)
        matmul_f32(run);
    else if (starts(symbol, "gk_matmul_tma") || starts(symbol, "gk_matmul_wgmma") ||
             starts(symbol, "gk_matmul_f16x3") || starts(symbol, "gk_matmul_bf16x6") ||
             strcmp(symbol, "gk_matmul_measure_f32") == 0 ||
             strcmp(symbol, "gk_matmul_split_f32") == 0 ||
             strcmp(symbol, "gk_matmul_floats_f32") == 0)
        (void)run; /* its arguments are maps, and a structure of the row's own */
    else if (starts(symbol, "gk_matmul_vector_") || starts(symbol, "gk_matmul_vectors_") ||
             starts(symbol, "gk_matmul_few_vectors_") || starts(symbol, "gk_matmul_small_"))
        of_work(run);
    else if (starts(symbol, "gk_matmul"))
        of_pointers(run, 2);
    else if (starts(symbol, "gk_sum") && ends(symbol, "f32_little"))
        sum_little(run);
    else if (ends(symbol, "_little"))
        of_little(run);
    else if (starts(symbol, "gk_sum_f32_") || starts(symbol, "gk_sum_plain_f32_"))
        sum_f32(run);
    else if (ends(symbol, "_rows") || ends(symbol, "_short") || ends(symbol, "_columns") ||
             ends(symbol, "_matrices") || ends(symbol, "_own") ||
             starts(symbol, "gk_dot"))
        of_reduction(run);
    else if (starts(symbol, "gk_sum_atomic")) /* side by side on one result */
        (void)reads(run, address_in(run, 0), 1), (void)reads(run, address_in(run, 1), 1);
    else if (starts(symbol, "gk_transpose") || starts(symbol, "gk_copy") ||
             starts(symbol, "gk_sum"))
        of_pointers(run, 1);
    else if (ends(symbol, "_strided") || ends(symbol, "_wide"))
        of_terms(run);
    else if (starts(symbol, "gk_add"))
        of_pointers(run, 2);
    else
        fake_violation("the fake driver does not know what %s takes", symbol);
}

result cuModuleGetFunction(handle *function, handle module, const char *name) {
    static kernel *kernels;
    (void)module;
    FAKE_ENTER();
    if (!name[0])
        return NOT_FOUND;
    fake_lock();
    kernel *found = kernels;
    while (found && strcmp(found->symbol, name) != 0)
        found = found->next;
    if (!found) {
        found = calloc(1, sizeof *found);
        strncpy(found->symbol, name, sizeof found->symbol - 1);
        found->next = kernels;
        kernels = found;
    }
    fake_unlock();
    *function = found;
    return fake_sticky;
}

result cuFuncLoad(handle function) {
    (void)function;
    FAKE_ENTER();
    return fake_sticky;
}

enum { OWN_SHARED = 1024 }; /* bytes that every kernel has without asking */

result cuFuncSetAttribute(handle function, int attribute, int value) {
    enum { MOST_DYNAMIC = 8 };
    (void)function;
    FAKE_ENTER();
    if (attribute == MOST_DYNAMIC && value + OWN_SHARED > fake_setting("FAKE_SHARED", 49152))
        return INVALID_VALUE;
    return fake_sticky;
}

result cuFuncGetAttribute(int *value, int attribute, handle function) {
    enum { THREADS, SHARED, CONSTANT, LOCAL, REGISTERS, PTX };
    (void)function;
    FAKE_ENTER();
    *value = attribute == THREADS     ? (int)fake_setting("FAKE_THREADS", 1024)
             : attribute == SHARED    ? OWN_SHARED
             : attribute == CONSTANT  ? 64
             : attribute == LOCAL     ? 16
             : attribute == REGISTERS ? 40
             : attribute == PTX       ? (int)fake_setting("FAKE_PTX", 90)
                                      : 0;
    return fake_sticky;
}

/* By the symbol of a user's kernel. */
result cuFuncGetParamInfo(handle function, size_t number, size_t *offset, size_t *bytes) {
    const char *next = strchr(((const kernel *)function)->symbol, '_');
    FAKE_ENTER();
    *offset = 0;
    for (; next && number; number--)
        next = strchr(next + 1, '_');
    if (!next)
        return INVALID_VALUE;
    *bytes = (size_t)atoi(next + 2);
    return fake_sticky;
}

result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, handle function, int threads,
                                                   size_t shared) {
    (void)function, (void)shared;
    FAKE_ENTER();
    *blocks = 1536 / threads;
    return fake_sticky;
}

result cuOccupancyMaxPotentialBlockSize(int *grid, int *threads, handle function, void *bytes_of,
                                        size_t shared, int limit) {
    (void)function, (void)bytes_of, (void)shared, (void)limit;
    FAKE_ENTER();
    *grid = 4;
    *threads = 768;
    return fake_sticky;
}

/* Bytes from row to row of the two matrices that were described last, the later one first: no
   kernel reads the map. */
uint64_t fake_pitches[2], fake_planes[2];

result cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address,
                              const uint64_t *lengths, const uint64_t *strides) {
    (void)map, (void)type;
    FAKE_ENTER();
    if (rank < 2 || rank > 3 || (uintptr_t)address % 16)
        return INVALID_VALUE;
    for (uint32_t axis = 0; axis < rank; axis++)
        if (!lengths[axis] || (axis + 1 < rank && strides[axis] % 16))
            return INVALID_VALUE;
    fake_pitches[1] = fake_pitches[0];
    fake_pitches[0] = strides[0];
    fake_planes[1] = fake_planes[0];
    fake_planes[0] = rank == 3 ? lengths[2] : 0;
    return fake_sticky;
}

/* Whether the last launch was one that may begin under the end of the kernel before it. */
int fake_seen_early;

typedef struct launch_attribute {
    int id;
    uint64_t value[8];
} launch_attribute;
typedef struct launch_config {
    unsigned grid[3], block[3], shared;
    handle stream;
    const launch_attribute *attributes;
    unsigned attribute_count;
} launch_config;

result cuLaunchKernelEx(const launch_config *config, handle function, void **arguments,
                        void **extra) {
    enum { PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
    const handle named = config->stream;
    const unsigned *grid = config->grid, *block = config->block;
    (void)extra;
    FAKE_ENTER();
    fake_lock();
    memcpy(fake_seen_sides, grid, sizeof config->grid);
    memcpy(fake_seen_sides + 3, block, sizeof config->block);
    fake_seen_sides[6] = config->shared;
    fake_seen_early = config->attribute_count == 1 &&
                      config->attributes->id == PROGRAMMATIC_STREAM_SERIALIZATION &&
                      (int)config->attributes->value[0] == 1;
    fake_note('l', named);
    fake_unlock();
    if (fake_sticky)
        return fake_sticky;
    if (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2] || block[0] > 1024)
        return INVALID_VALUE;
    result code = (result)fake_setting("FAKE_LAUNCH", OK);
    if (code == OK)
        fake_sticky = (result)fake_setting("FAKE_FAULT", OK); /* whoever waits finds it */
    else if (code == ILLEGAL_ADDRESS || code == LAUNCH_FAILED)
        fake_sticky = code;
    if (code != OK || fake_sticky)
        return code;
    fake_lock();
    launch run = {.on = fake_stream(named, __func__),
                  .symbol = ((const kernel *)function)->symbol,
                  .blocks = grid[0],
                  .arguments = arguments};
    run.when = fake_submit(run.on);
    if (!fake_is_captured(named))
        run_kernel(&run);
    fake_unlock();
    return OK;
}
