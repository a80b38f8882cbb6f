#include "device/tuned.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/registry.h"

/* Sizes are told apart by half octaves, from 16 to 32768; what lies outside is the nearest. */
enum { FIRST_HALF = 8, HALVES = 23, SIDES = 3, WAYS = 8, MOST_ROWS = 8, LINE = 512 };

typedef struct entry {
    uint8_t place[SIDES];
    const gk_row *rows[MOST_ROWS + 1];
} entry;

/* Of products that lie alike. A cell of the grid of sizes holds 1 + the number of its nearest
   entry, once that was looked for; 0 until then. */
enum { CELLS = HALVES * HALVES * HALVES, MOST_ENTRIES = UINT16_MAX };
typedef struct measured {
    entry *entries;
    int count;
    _Atomic(uint16_t) *cells;
} measured;

struct gk_tuned {
    measured of[GK_DTYPE_COUNT][WAYS];
};

gk_tuned *gk_tuned_new(void) {
    return calloc(1, sizeof(gk_tuned));
}

/* All of a dtype. */
static void drop(measured *gone) {
    for (int way = 0; way < WAYS; way++) {
        free(gone[way].entries);
        free(gone[way].cells);
        gone[way] = (measured){0};
    }
}

void gk_tuned_free(gk_tuned *tuned) {
    for (int i = 0; i < GK_DTYPE_COUNT && tuned; i++)
        drop(tuned->of[i]);
    free(tuned);
}

/* looking up ----------------------------------------------------------------------------------- */

/* The half octave that a size is nearest to, by its logarithm. */
static uint8_t place_of(int64_t size) {
    enum { QUARTER = 304, THREE_QUARTERS = 431 }; /* 256 x 2^(1/4) and 2^(3/4) */
    int octave = 63 - __builtin_clzll((unsigned long long)size | 1);
    int64_t within = octave > 8 ? size >> (octave - 8) : size << (8 - octave);
    int half = 2 * octave + (within > QUARTER) + (within > THREE_QUARTERS) - FIRST_HALF;
    return (uint8_t)(half < 0 ? 0 : half < HALVES ? half : HALVES - 1);
}

static int way_of(bool a_transposed, bool b_transposed, bool aligned) {
    return 4 * a_transposed + 2 * b_transposed + aligned;
}

static int distance(const entry *from, const uint8_t *place) {
    int sum = 0;
    for (int i = 0; i < SIDES; i++)
        sum += (from->place[i] - place[i]) * (from->place[i] - place[i]);
    return sum;
}

static uint16_t nearest(const measured *of, const uint8_t *place) {
    int found = 0, least = distance(&of->entries[0], place);
    for (int i = 1; i < of->count; i++) {
        int apart = distance(&of->entries[i], place);
        if (apart < least) {
            found = i;
            least = apart;
        }
    }
    return (uint16_t)(found + 1);
}

const gk_row *const *gk_tuned_rows(const gk_tuned *tuned, const gk_gemm *gemm, bool aligned) {
    int way = way_of(gemm->a_transposed, gemm->b_transposed, aligned);
    const measured *of = &tuned->of[gemm->dtype][way];
    if (!of->count)
        return NULL;
    const uint8_t place[SIDES] = {place_of(gemm->m), place_of(gemm->n), place_of(gemm->k)};
    _Atomic(uint16_t) *cell = &of->cells[(place[0] * HALVES + place[1]) * HALVES + place[2]];
    uint16_t found = atomic_load_explicit(cell, memory_order_relaxed);
    if (!found) {
        found = nearest(of, place);
        atomic_store_explicit(cell, found, memory_order_relaxed);
    }
    return of->entries[found - 1].rows;
}

/* reading -------------------------------------------------------------------------------------- */

static const char heading[] = "# gpukern matmul table 1";
static const char device_is[] = "# device: ";

/* A file on its way into a table. */
typedef struct reader {
    const char *path, *device;
    int line;
    bool device_known;
    gk_tuned fresh;
    gk_error *error;
} reader;

#define GK_WRONG(in, ...)                                                                          \
    (gk_fail((in)->error, GK_VALUE_ERROR, __VA_ARGS__),                                            \
     gk_fail_in((in)->error, "%s, line %d: ", (in)->path, (in)->line))

static bool begins_with(const char *text, const char *head) {
    return strncmp(text, head, strlen(head)) == 0;
}

static gk_status read_comment(reader *in, const char *text) {
    if (in->line == 1 && strcmp(text, heading) != 0)
        return GK_WRONG(in,
                        "this is no table that this gpukern reads: it begins with '%.40s', not "
                        "with '%s'",
                        text, heading);
    if (!begins_with(text, device_is))
        return GK_OK;
    in->device_known = true;
    const char *name = text + strlen(device_is);
    if (strcmp(name, in->device) != 0)
        return GK_WRONG(in, "the table is of the device '%.80s', and this one is '%s'", name,
                        in->device);
    return GK_OK;
}

static gk_status read_dtype(reader *in, const char *word, gk_dtype *dtype) {
    for (int i = 0; i < GK_DTYPE_COUNT; i++)
        if (strcmp(gk_dtype_name((gk_dtype)i), word) == 0) {
            *dtype = (gk_dtype)i;
            return GK_OK;
        }
    return GK_WRONG(in, "'%.40s' is no dtype", word);
}

/* "nn", "nt", "tn" or "tt", and the alignment, 16 bytes or 1. */
static gk_status read_way(reader *in, const char *lie, const char *alignment, int *way) {
    bool lies = strlen(lie) == 2 && strspn(lie, "nt") == 2;
    bool aligned = strcmp(alignment, "16") == 0;
    if (!lies || (!aligned && strcmp(alignment, "1") != 0))
        return GK_WRONG(in,
                        "'%.40s %.40s' is not how operands lie: nn, nt, tn or tt, and an "
                        "alignment of 16 or 1",
                        lie, alignment);
    *way = way_of(lie[0] == 't', lie[1] == 't', aligned);
    return GK_OK;
}

static gk_status read_size(reader *in, const char *word, uint8_t *place) {
    char *end;
    errno = 0;
    long long size = strtoll(word, &end, 10);
    if (*end || errno || size < 1)
        return GK_WRONG(in, "'%.40s' is not a size, a whole number of 1 or more", word);
    *place = place_of(size);
    return GK_OK;
}

static gk_status read_row(reader *in, const char *word, gk_dtype dtype, const gk_row **row) {
    size_t count;
    const gk_row *rows = gk_rows(&count);
    for (size_t i = 0; i < count; i++)
        if (rows[i].op == GK_OP_matmul && rows[i].dtype == dtype && !rows[i].named &&
            strcmp(rows[i].variant, word) == 0) {
            *row = &rows[i];
            return GK_OK;
        }
    return GK_WRONG(in,
                    "this gpukern has no variant '%.40s' of matmul that may be the default for "
                    "%s",
                    word, gk_dtype_name(dtype));
}

static gk_status add_entry(reader *in, gk_dtype dtype, int way, const entry *made) {
    measured *to = &in->fresh.of[dtype][way];
    if (to->count >= MOST_ENTRIES)
        return GK_WRONG(in, "there are more than %d lines of %s that lie so", MOST_ENTRIES,
                        gk_dtype_name(dtype));
    if ((to->count & (to->count - 1)) == 0) { /* full: 1, 2, 4, ... */
        size_t room = to->count ? 2 * (size_t)to->count : 1;
        entry *grown = realloc(to->entries, room * sizeof *grown);
        if (!grown)
            return gk_fail(in->error, GK_MEMORY_ERROR, "out of host memory");
        to->entries = grown;
    }
    to->entries[to->count++] = *made;
    return GK_OK;
}

/* "float32 nn 16 4096 4096 4096 tma cublas": how operands lie, M, N, K, and the rows. */
static gk_status read_entry(reader *in, char *text) {
    enum { FIELDS = 6 };
    const char *words[FIELDS + MOST_ROWS + 1];
    int count = 0, rows = 0, way = 0;
    char *rest = NULL;
    gk_dtype dtype = GK_float32;
    entry made = {0};
    for (char *word = strtok_r(text, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest))
        if (count < FIELDS + MOST_ROWS + 1)
            words[count++] = word;
    if (!in->device_known)
        return GK_WRONG(in, "no line before this one names the device, as in '%sNVIDIA H200'",
                        device_is);
    if (count <= FIELDS || count > FIELDS + MOST_ROWS)
        return GK_WRONG(in,
                        "a line has a dtype, how operands lie, their alignment, M, N, K, and 1 "
                        "to %d variants",
                        MOST_ROWS);
    gk_status status = read_dtype(in, words[0], &dtype);
    if (status == GK_OK)
        status = read_way(in, words[1], words[2], &way);
    for (int i = 0; i < SIDES && status == GK_OK; i++)
        status = read_size(in, words[3 + i], &made.place[i]);
    for (int i = FIELDS; i < count && status == GK_OK; i++)
        status = read_row(in, words[i], dtype, &made.rows[rows++]);
    return status == GK_OK ? add_entry(in, dtype, way, &made) : status;
}

static gk_status read_line(reader *in, char *text, bool last) {
    char *end = strchr(text, '\n');
    if (!end && !last)
        return GK_WRONG(in, "the line is longer than %d characters, or no text", LINE - 2);
    if (end)
        *end = '\0';
    if (in->line == 1 || text[0] == '#')
        return read_comment(in, text);
    return text[strspn(text, " \t")] ? read_entry(in, text) : GK_OK;
}

static gk_status read_file(reader *in, FILE *file) {
    char text[LINE];
    gk_status status = GK_OK;
    while (status == GK_OK && fgets(text, sizeof text, file)) {
        in->line++;
        status = read_line(in, text, feof(file));
    }
    if (status == GK_OK && in->line == 0 && !ferror(file)) {
        in->line = 1;
        return read_comment(in, "");
    }
    if (status == GK_OK && ferror(file))
        return gk_fail(in->error, GK_VALUE_ERROR, "%s: cannot be read: %s", in->path,
                       strerror(errno));
    return status;
}

static gk_status make_cells(reader *in, measured *of) {
    if (!of->count)
        return GK_OK;
    of->cells = calloc(CELLS, sizeof *of->cells);
    return of->cells ? GK_OK : gk_fail(in->error, GK_MEMORY_ERROR, "out of host memory");
}

static bool is_measured(const measured *of) {
    bool any = false;
    for (int way = 0; way < WAYS; way++)
        any |= of[way].count > 0;
    return any;
}

/* What was read of a dtype takes the place of what was there; of all dtypes, or of none. */
static gk_status settle(reader *in, gk_tuned *tuned) {
    gk_status status = GK_OK;
    for (int i = 0; i < GK_DTYPE_COUNT; i++)
        for (int way = 0; way < WAYS && status == GK_OK; way++)
            status = make_cells(in, &in->fresh.of[i][way]);
    for (int i = 0; i < GK_DTYPE_COUNT && status == GK_OK; i++)
        if (is_measured(in->fresh.of[i])) {
            drop(tuned->of[i]);
            memcpy(tuned->of[i], in->fresh.of[i], sizeof tuned->of[i]);
            memset(in->fresh.of[i], 0, sizeof in->fresh.of[i]);
        }
    return status;
}

gk_status gk_tuned_read(gk_tuned *tuned, const char *path, const char *device, gk_error *error) {
    reader in = {.path = path, .device = device, .error = error};
    FILE *file = fopen(path, "r");
    if (!file)
        return gk_fail(error, GK_VALUE_ERROR, "%s: cannot be read: %s", path, strerror(errno));
    gk_status status = read_file(&in, file);
    fclose(file);
    if (status == GK_OK)
        status = settle(&in, tuned);
    for (int i = 0; i < GK_DTYPE_COUNT; i++)
        drop(in.fresh.of[i]);
    return status;
}
